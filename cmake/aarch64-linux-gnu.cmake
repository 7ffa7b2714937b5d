# SPDX-License-Identifier: MIT
# For -DCMAKE_TOOLCHAIN_FILE: builds for 64-bit ARM with Debian's cross compiler; ctest runs what was built under QEMU's
# user-mode emulation.
# The packages are gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user (or qemu-user-static).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
# Without one the C++ programs of the tests are left out; this machine's compiler must not be found in its place.
find_program(CMAKE_CXX_COMPILER NAMES aarch64-linux-gnu-g++)
find_program(MGX_QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static REQUIRED)
set(CMAKE_CROSSCOMPILING_EMULATOR ${MGX_QEMU_AARCH64};-L;/usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
