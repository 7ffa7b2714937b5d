# SPDX-License-Identifier: MIT
# Compiler and linker options that turn a memory error of ours into the end of the process instead of somebody else's
# program: guarded stacks, checked copies, a relocation table that is read-only before the first call, and entry marks
# for processors that check jumps. A shared object carries the last only where the system's start files carry them.
include(CheckCCompilerFlag)
option(MGX_HARDEN "guarded stacks and checked copies" ON)
if(MGX_HARDEN AND NOT MGX_SANITIZE AND NOT MGX_FUZZ) # sanitizers check more, in their own way
  foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full)
    string(MAKE_C_IDENTIFIER "MGX_HAS${flag}" known)
    check_c_compiler_flag(${flag} ${known})
    if(${known})
      add_compile_options(${flag})
    endif()
  endforeach()
  # libc checks sizes in optimized code alone, and warns otherwise
  add_compile_options($<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
endif()
add_link_options(-Wl,-z,relro,-z,now)
