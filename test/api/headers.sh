#!/bin/sh
# SPDX-License-Identifier: MIT
# headers.sh COMPILER INCLUDE [all]: the C++ headers compile as C++14 and C++20 without a warning, the C headers as C++11
# too, and migraphx.hpp and native.hpp in one source file are refused with a reason, in either order. With "all", every
# C++ header does by itself, as C++14, 17 and 20, but for those that only include native.hpp: minutes.
set -eu
compiler=$1 include=$2 what=${3:-quick}
headers=$(cd "$include/migraphx" && find . -name '*.hpp' | sed 's:^\./::' | sort)
check() { # check STANDARD HEADER...
    standard=$1
    shift
    for header; do echo "#include <migraphx/$header>"; done |
        "$compiler" "-std=c++$standard" -Wall -Wextra -Wshadow -Wpedantic -Werror -fsyntax-only -I "$include" -x c++ - ||
        { echo "$*: does not compile as C++$standard"; exit 1; }
}
refused() { # refused HEADER HEADER
    printf '#include <migraphx/%s>\n' "$@" | "$compiler" -std=c++14 -E -I "$include" -x c++ - 2>&1 > /dev/null |
        grep -q 'one source file includes migraphx.hpp or native.hpp' || { echo "$*: not refused"; exit 1; }
}
check 11 extensions.h version.h
for standard in 14 20; do
    check $standard migraphx.hpp
    check $standard $(echo "$headers" | grep -v '^migraphx.hpp\|^api/')
done
if [ "$what" = all ]; then
    for header in $(cd "$include/migraphx" && grep -L '^// A header of MIGraphX.s guides' $headers); do
        for standard in 14 17 20; do check $standard "$header"; done
    done
fi
refused migraphx.hpp native.hpp
refused native.hpp migraphx.hpp
refused migraphx.hpp onnx.hpp
refused onnx.hpp migraphx.hpp
