#!/bin/sh
# SPDX-License-Identifier: MIT
# check_all.sh JOBS: the slow proofs. Each builds into a folder of its own and runs the unit tests there.
set -eu
jobs=${1:-2}
one() { # one NAME CC CMAKE_ARGS... : configure, build, test
    name=$1 cc=$2
    shift 2
    echo "== $name"
    cmake -S . -B "build-$name" -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=RelWithDebInfo "$@" > "/tmp/check-all.$$" 2>&1 || { cat "/tmp/check-all.$$"; exit 1; }
    cmake --build "build-$name" -j"$jobs" > "/tmp/check-all.$$" 2>&1 || { tail -40 "/tmp/check-all.$$"; exit 1; }
    (cd "build-$name" && ctest --output-on-failure -j"$jobs" -LE "slow|python" | tail -15)
    rm -f "/tmp/check-all.$$"
}
one gcc-debug gcc -DCMAKE_BUILD_TYPE=Debug
if command -v clang >/dev/null 2>&1; then
    one clang clang
fi
export UBSAN_OPTIONS=print_stacktrace=1
one asan gcc -DMGX_SANITIZE=address,undefined
one tsan gcc -DMGX_SANITIZE=thread
if command -v valgrind >/dev/null 2>&1; then
    echo "== valgrind, a sample"
    # A handler of faults returns to where registers must be right (base/file).
    flags="--vex-iropt-register-updates=allregs-at-mem-access --leak-check=full --errors-for-leak-kinds=definite"
    for t in build-gcc-debug/test/test-ir-* build-gcc-debug/test/test-base-*; do
        case $t in *-ir-type) continue ;; esac # valgrind rounds an int64 twice on its way to a float
        timeout 600 valgrind -q --error-exitcode=9 $flags "$t" > /tmp/vg.$$ 2>&1 || { tail -30 /tmp/vg.$$; exit 1; }
    done
    rm -f /tmp/vg.$$
fi
echo "check-all: passed"
