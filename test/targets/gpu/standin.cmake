# SPDX-License-Identifier: MIT
# A stand-in for HIP's runtime, found before a real one by the test that wants it.
add_library(standin_hip MODULE ${CMAKE_CURRENT_LIST_DIR}/device/standin_hip.c ${CMAKE_CURRENT_LIST_DIR}/device/standin_axpy.c)
set_target_properties(standin_hip PROPERTIES OUTPUT_NAME amdhip64 SUFFIX .so.7
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/standin)
add_custom_command(TARGET standin_hip POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink libamdhip64.so.7
                   ${CMAKE_BINARY_DIR}/test/standin/libhiprtc.so.7)
set_tests_properties(targets/gpu/device/hip PROPERTIES ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/test/standin")
add_dependencies(test-targets-gpu-device-hip standin_hip)

# One that runs kernels, for which it needs a clang that knows _Float16; without one nothing is emulated.
find_program(MGX_EMULATED_COMPILER NAMES clang-15 clang-16 clang-17 clang-18 clang-19 clang-20 clang-21)
if(MGX_EMULATED_COMPILER AND NOT MGX_SANITIZE AND NOT MGX_FUZZ)
  set(folder ${CMAKE_CURRENT_LIST_DIR}/device/emulated)
  add_library(emulated_hip MODULE ${CMAKE_CURRENT_LIST_DIR}/device/standin_hip.c ${folder}/emulated.c ${folder}/fibers.c ${folder}/matrix.c)
  target_compile_definitions(emulated_hip PRIVATE EMULATED_FOLDER="${folder}" EMULATED_COMPILER="${MGX_EMULATED_COMPILER}")
  set_target_properties(emulated_hip PROPERTIES OUTPUT_NAME amdhip64 SUFFIX .so.7
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/emulated)
  target_link_libraries(emulated_hip PRIVATE ${CMAKE_DL_LIBS})
  add_custom_command(TARGET emulated_hip POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink libamdhip64.so.7
                     ${CMAKE_BINARY_DIR}/test/emulated/libhiprtc.so.7)
endif()
