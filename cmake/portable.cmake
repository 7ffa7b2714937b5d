# SPDX-License-Identifier: MIT
# What is built here runs on older systems too: mgx_portable(TARGET [start]) links the target against the functions of
# glibc 2.17 (see old_glibc.c), where compiler and machine allow it. `start`: the target is a program.
option(MGX_OLD_GLIBC "what is installed runs on glibc 2.17 and later (x86-64)" ON)

set(MGX_OLD_GLIBC_LIBRARIES -Wl,--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -Wl,--pop-state m)
if(MGX_OLD_GLIBC AND NOT MGX_SANITIZE AND NOT MGX_FUZZ)
  file(WRITE ${CMAKE_BINARY_DIR}/old_glibc/main.c "int main(void) { return 0; }\n")
  try_compile(MGX_OLD_GLIBC_WORKS ${CMAKE_BINARY_DIR}/old_glibc
    SOURCES ${CMAKE_BINARY_DIR}/old_glibc/main.c ${CMAKE_SOURCE_DIR}/cmake/old_glibc.c
    COMPILE_DEFINITIONS -D_GNU_SOURCE LINK_LIBRARIES ${MGX_OLD_GLIBC_LIBRARIES} C_STANDARD 17)
  if(NOT MGX_OLD_GLIBC_WORKS)
    message(STATUS "no x86-64 glibc: what is built here needs the C library of this machine or a later one")
  endif()
endif()

function(mgx_portable target)
  if(NOT MGX_OLD_GLIBC_WORKS)
    return()
  endif()
  target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/old_glibc.c)
  target_link_libraries(${target} PRIVATE ${MGX_OLD_GLIBC_LIBRARIES})
  if(ARGC GREATER 1)
    target_compile_definitions(${target} PRIVATE MGX_OLD_START)
  endif()
endfunction()
