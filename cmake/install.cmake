# SPDX-License-Identifier: MIT
# What `cmake --install` puts into a prefix: library, headers, driver with man page and completions, Python module,
# documents, the CMake package migraphx with the target migraphx::c, and migraphx.pc. A prefix can be moved.
include(CMakePackageConfigHelpers)
target_include_directories(migraphx_c INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(migraphx_c PROPERTIES EXPORT_NAME c)
install(TARGETS migraphx_c EXPORT migraphx_targets)
install(DIRECTORY include/migraphx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE README.md CHANGELOG.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN CMakeLists.txt EXCLUDE)

# --- for those who build with it ---
set(MGX_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/migraphx)
install(EXPORT migraphx_targets NAMESPACE migraphx:: FILE migraphx-config.cmake DESTINATION ${MGX_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/migraphx-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/migraphx-config-version.cmake DESTINATION ${MGX_PACKAGE_DIR})
file(RELATIVE_PATH MGX_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(cmake/migraphx.pc.in ${CMAKE_BINARY_DIR}/migraphx.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/migraphx.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# --- the driver; it writes its man page and completions itself ---
if(TARGET migraphx-driver)
  install(TARGETS migraphx-driver)
  set(MGX_MANUAL ${CMAKE_BINARY_DIR}/manual)
  set(manual ${MGX_MANUAL}/migraphx-driver.1 ${MGX_MANUAL}/migraphx-driver.bash ${MGX_MANUAL}/_migraphx-driver
             ${MGX_MANUAL}/migraphx-driver.fish)
  add_custom_command(OUTPUT ${manual}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${MGX_MANUAL}
    COMMAND migraphx-driver --man > ${MGX_MANUAL}/migraphx-driver.1
    COMMAND migraphx-driver --completion bash > ${MGX_MANUAL}/migraphx-driver.bash
    COMMAND migraphx-driver --completion zsh > ${MGX_MANUAL}/_migraphx-driver
    COMMAND migraphx-driver --completion fish > ${MGX_MANUAL}/migraphx-driver.fish
    DEPENDS migraphx-driver COMMENT "" VERBATIM)
  add_custom_target(manual ALL DEPENDS ${manual})
  add_dependencies(release manual)
  set(share ${CMAKE_INSTALL_DATADIR})
  install(FILES ${MGX_MANUAL}/migraphx-driver.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${MGX_MANUAL}/migraphx-driver.bash DESTINATION ${share}/bash-completion/completions RENAME migraphx-driver)
  install(FILES ${MGX_MANUAL}/_migraphx-driver DESTINATION ${share}/zsh/site-functions)
  install(FILES ${MGX_MANUAL}/migraphx-driver.fish DESTINATION ${share}/fish/vendor_completions.d)
endif()

# --- the provider for ONNX Runtime ---
if(TARGET migraphx_ort)
  install(TARGETS migraphx_ort LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# --- the backend for Triton Inference Server, which looks for it in a folder of its name ---
if(TARGET migraphx_triton)
  install(TARGETS migraphx_triton LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# --- the Python module ---
if(TARGET migraphx_python)
  add_dependencies(release python_package)
  install(TARGETS migraphx_python LIBRARY DESTINATION ${MGX_PYTHON_DIR})
  install(DIRECTORY python/onnx_migraphx python/migraphx_modules DESTINATION ${MGX_PYTHON_DIR} FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi")
  install(FILES python/migraphx.pyi DESTINATION ${MGX_PYTHON_DIR})
endif()
