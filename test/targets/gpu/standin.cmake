# SPDX-License-Identifier: MIT
# A stand-in for HIP's runtime, found before a real one by the test that wants it.
add_library(standin_hip MODULE ${CMAKE_CURRENT_LIST_DIR}/device/standin_hip.c)
set_target_properties(standin_hip PROPERTIES OUTPUT_NAME amdhip64 SUFFIX .so.7
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/standin)
add_custom_command(TARGET standin_hip POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink libamdhip64.so.7
                   ${CMAKE_BINARY_DIR}/test/standin/libhiprtc.so.7)
set_tests_properties(targets/gpu/device/hip PROPERTIES ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/test/standin")
add_dependencies(test-targets-gpu-device-hip standin_hip)
