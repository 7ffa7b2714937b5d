# SPDX-License-Identifier: MIT
# The CPU's kernels: each is compiled with the features that it states (src/targets/cpu/kernel/kernel.h), where this
# processor family and this compiler have them. Sets MGX_KERNELS, the files to compile.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
check_c_source_compiles("#ifndef __x86_64__\n#error\n#endif\nint main(void) { return 0; }" MGX_IS_X86)
check_c_source_compiles("#ifndef __aarch64__\n#error\n#endif\nint main(void) { return 0; }" MGX_IS_ARM)

# clang's strength reduction turns the row addresses of a tile into one chain of additions and hoists the loads, which
# throws the accumulators out of their registers: 71 % of the FMA peak with it, 97 % without.
set(MGX_KERNEL_OPTIONS -O3)
if(CMAKE_BUILD_TYPE STREQUAL Debug)
  set(MGX_KERNEL_OPTIONS -O1)
endif()
if(MGX_SANITIZE) # bounds and races show at any level; at -O3 an instrumented micro-kernel takes minutes to compile
  set(MGX_KERNEL_OPTIONS -O1)
endif()
if(CMAKE_C_COMPILER_ID MATCHES Clang)
  list(APPEND MGX_KERNEL_OPTIONS -mllvm -disable-lsr)
endif()
# A micro-kernel that begins somewhere in a line of 64 bytes is up to 5 % slower than one at its start, and where it
# begins changes with whatever is linked before it. A guard on the stack costs it registers and the alignment of its
# tile in the frame; what kernels write has the sizes that a plan has checked. Marks for indirect jumps stay.
foreach(flag -falign-functions=64 -fno-stack-protector -fno-stack-clash-protection)
  string(MAKE_C_IDENTIFIER "MGX_HAS${flag}" known)
  check_c_compiler_flag(${flag} ${known})
  if(${known})
    list(APPEND MGX_KERNEL_OPTIONS ${flag})
  endif()
endforeach()
# Skylake to Cascade Lake keep no decoded instructions of 32 bytes that a jump ends or crosses.
check_c_compiler_flag(-Wa,-mbranches-within-32B-boundaries MGX_HAS_BRANCH_BOUNDARIES)
if(MGX_HAS_BRANCH_BOUNDARIES)
  list(APPEND MGX_KERNEL_OPTIONS -Wa,-mbranches-within-32B-boundaries)
endif()

# --- what processor and compiler have ---
set(MGX_KERNEL_SCRIPT ${CMAKE_SOURCE_DIR}/tool/kernels.sh)
set(MGX_CPU_FAMILY)
if(MGX_IS_X86)
  set(MGX_CPU_FAMILY X86)
elseif(MGX_IS_ARM)
  set(MGX_CPU_FAMILY ARM)
endif()
execute_process(COMMAND ${MGX_KERNEL_SCRIPT} features ${CMAKE_SOURCE_DIR}/src "${MGX_CPU_FAMILY}"
                OUTPUT_VARIABLE rows OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" rows "${rows}")
set(features)
foreach(row IN LISTS rows)
  string(REGEX MATCH "^([A-Z0-9_]+) (.*)$" row "${row}")
  set(name ${CMAKE_MATCH_1})
  set(MGX_OPTION_${name} ${CMAKE_MATCH_2})
  string(REGEX REPLACE "^\\+" "-march=armv8-a+" CMAKE_REQUIRED_FLAGS "${CMAKE_MATCH_2}")
  check_c_source_compiles("int main(void) { return 0; }" MGX_COMPILES_${name})
  if(MGX_COMPILES_${name})
    list(APPEND features ${name})
  endif()
endforeach()
unset(CMAKE_REQUIRED_FLAGS)

# --- what there is, and how it is compiled ---
execute_process(COMMAND ${MGX_KERNEL_SCRIPT} list ${CMAKE_SOURCE_DIR}/src ${MGX_GEN} ${features}
                COMMAND_ERROR_IS_FATAL ANY)
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/targets/cpu/kernel/*/*.[ch])
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${MGX_KERNEL_SCRIPT}
             ${CMAKE_SOURCE_DIR}/src/targets/cpu/machine/isa.h)
foreach(source IN LISTS sources) # what states a set may state another one
  file(STRINGS ${source} states REGEX "^KERNEL_FOR|\\.needs =" LIMIT_COUNT 1)
  if(states)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  endif()
endforeach()
file(STRINGS ${MGX_GEN}/kernels.txt rows)
# Instrumented micro-kernels take minutes to compile. Fuzzers look at readers; and a build for looking at one thing quickly
# does without by MGX_SANITIZE_KERNELS=OFF.
option(MGX_SANITIZE_KERNELS "instrument the CPU's kernels too, where MGX_SANITIZE is set" ON)
set(bare FALSE)
if(MGX_FUZZ OR (MGX_SANITIZE AND NOT MGX_SANITIZE_KERNELS))
  set(bare TRUE)
endif()
set(MGX_KERNELS)
foreach(row IN LISTS rows)
  string(REGEX MATCH "^([^|]*)\\|(.*)$" row "${row}")
  set(file ${CMAKE_MATCH_1})
  separate_arguments(needs UNIX_COMMAND "${CMAKE_MATCH_2}")
  set(options)
  set(extensions)
  foreach(name IN LISTS needs)
    if(MGX_OPTION_${name} MATCHES "^\\+")
      string(APPEND extensions ${MGX_OPTION_${name}})
    else()
      separate_arguments(more UNIX_COMMAND "${MGX_OPTION_${name}}")
      list(APPEND options ${more})
    endif()
  endforeach()
  if(extensions)
    list(APPEND options -march=armv8-a${extensions})
  endif()
  if(needs)
    list(APPEND options ${MGX_KERNEL_OPTIONS})
    if(bare)
      list(APPEND options -fno-sanitize=all)
    endif()
  elseif(bare)
    set(options -fno-sanitize=all)
  elseif(MGX_SANITIZE) # as above, at -O2 too
    set(options -O1)
  else()
    set(options $<$<CONFIG:Release>:-O3>)
  endif()
  set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${options}")
  list(APPEND MGX_KERNELS ${file})
endforeach()
