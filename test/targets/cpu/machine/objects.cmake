# SPDX-License-Identifier: MIT
# No object holds instructions that its name does not state: objects.sh. A user's own -march allows others everywhere.
find_program(MGX_OBJDUMP NAMES objdump)
if(MGX_IS_X86 AND MGX_OBJDUMP AND NOT "${CMAKE_C_FLAGS} $ENV{CFLAGS}" MATCHES "-m(arch|cpu|avx)")
  add_test(NAME targets/cpu/machine/objects
    COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/objects.sh ${MGX_OBJDUMP} $<TARGET_FILE:mgx>)
endif()
