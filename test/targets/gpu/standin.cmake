# SPDX-License-Identifier: MIT
# A stand-in for HIP's runtime, found before a real one by the test that wants it.
add_library(standin_hip MODULE ${CMAKE_CURRENT_LIST_DIR}/device/standin_hip.c ${CMAKE_CURRENT_LIST_DIR}/device/standin_axpy.c)
set_target_properties(standin_hip PROPERTIES OUTPUT_NAME amdhip64 SUFFIX .so.7
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/standin)
add_custom_command(TARGET standin_hip POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink libamdhip64.so.7
                   ${CMAKE_BINARY_DIR}/test/standin/libhiprtc.so.7)
set_tests_properties(targets/gpu/device/hip PROPERTIES ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/test/standin")
add_dependencies(test-targets-gpu-device-hip standin_hip)

# With kernels that write nothing, and stand-ins for the makers' libraries.
function(idle folder target source arch file)
  add_library(${target} MODULE ${CMAKE_CURRENT_SOURCE_DIR}/targets/gpu/device/${source} ${CMAKE_CURRENT_SOURCE_DIR}/targets/gpu/device/standin_idle.c)
  target_compile_definitions(${target} PRIVATE STANDIN_ARCH="${arch}")
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${file} SUFFIX ""
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/${folder})
  add_custom_command(TARGET ${target} POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink ${file}
                     ${CMAKE_BINARY_DIR}/test/${folder}/${ARGN})
endfunction()
function(vendor folder target file)
  add_library(${target} MODULE ${CMAKE_CURRENT_SOURCE_DIR}/targets/gpu/vendor/${target}.c)
  target_link_libraries(${target} PRIVATE m ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${file} SUFFIX ""
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/${folder})
  add_dependencies(test-targets-gpu-vendor-vendor ${target})
endfunction()
idle(idle_cuda idle_cuda standin_cuda.c sm_80 libcuda.so.1 libnvrtc.so.13)
# Ada and Hopper, whose kernels tool/gpu_compile.py compiles.
idle(idle_ada idle_ada standin_cuda.c sm_89 libcuda.so.1 libnvrtc.so.13)
target_compile_definitions(idle_ada PRIVATE STANDIN_MINOR=9)
idle(idle_hopper idle_hopper standin_cuda.c sm_90a libcuda.so.1 libnvrtc.so.13)
target_compile_definitions(idle_hopper PRIVATE STANDIN_MAJOR=9)
set_tests_properties(targets/gpu/lower/families PROPERTIES ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/test/idle_hopper")
add_dependencies(test-targets-gpu-lower-families idle_hopper)
idle(idle_hip idle_hip standin_hip.c gfx90a:sramecc+:xnack- libamdhip64.so.7 libhiprtc.so.7)
vendor(idle_cuda standin_cublaslt libcublasLt.so.13)
vendor(idle_cuda standin_cudnn libcudnn.so.9)
vendor(vendor_hipblaslt standin_hipblaslt libhipblaslt.so.1)
vendor(vendor_rocblas standin_rocblas librocblas.so.5)
vendor(vendor_rocblas standin_miopen libMIOpen.so.1)
set(path "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/test/idle_cuda:${CMAKE_BINARY_DIR}/test/idle_hip:${CMAKE_BINARY_DIR}/test/vendor_hipblaslt:${CMAKE_BINARY_DIR}/test/vendor_rocblas")
set_tests_properties(targets/gpu/vendor/vendor PROPERTIES ENVIRONMENT ${path})
add_dependencies(test-targets-gpu-vendor-vendor idle_cuda idle_hip)

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
  set_tests_properties(targets/gpu/machine/exchange PROPERTIES ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/test/emulated")
  add_dependencies(test-targets-gpu-machine-exchange emulated_hip)
endif()
