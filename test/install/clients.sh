#!/bin/sh
# SPDX-License-Identifier: MIT
# clients.sh PREFIX [PYTHON [PYTHONPATH]]: builds a C, a C++ and a CMake client against an installation, runs them, the
# driver and, where PYTHON is given, the Python module, all in an empty environment. CC, CXX and CMAKE name the tools;
# LIBRARY_PATH_OF_RUN is for a tree that was unpacked and not installed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=$(cd "$1" && pwd) python=${2:-} python_path=${3:-}
cc=${CC:-cc} cxx=${CXX:-c++} cmake=${CMAKE:-cmake}
library=$(dirname "$(find "$prefix" -name libmigraphx_c.so.3 | head -1)")
include=$(dirname "$(dirname "$(find "$prefix" -name migraphx.hpp | head -1)")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

bare() { # with nothing set but where the tools are
    env -i PATH="$(dirname "$cmake"):/usr/local/bin:/usr/bin:/bin" HOME="$work" \
        ${LIBRARY_PATH_OF_RUN:+LD_LIBRARY_PATH="$LIBRARY_PATH_OF_RUN"} "$@"
}
expect() { # expect WHAT COMMAND...: its output is the clients' answer
    what=$1
    shift
    got=$(bare "$@") || { echo "$what: failed"; exit 1; }
    [ "$got" = "0 2" ] || { echo "$what: printed '$got', not '0 2'"; exit 1; }
    echo "$what: works"
}

# shellcheck disable=SC2086 # a compiler may be two words
bare $cc -Wall -Wextra -Werror "$here/client.c" -I "$include" -L "$library" -lmigraphx_c -Wl,-rpath,"$library" -o c
expect C ./c
if command -v "${cxx%% *}" > /dev/null; then
    bare $cxx -std=c++14 -Wall -Wextra -Werror "$here/client.cpp" -I "$include" -L "$library" -lmigraphx_c \
        -Wl,-rpath,"$library" -o cpp
    expect C++ ./cpp
else
    echo "C++: no compiler here, not tried"
fi
if command -v pkg-config > /dev/null; then
    export PKG_CONFIG_PATH="$library/pkgconfig"
    # pkg-config quotes for a shell
    bare sh -c "$cc '$here/client.c' $(pkg-config --cflags --libs "migraphx >= 2.16") \
        -Wl,-rpath,$(pkg-config --variable=libdir migraphx) -o pc"
    expect pkg-config ./pc
else
    echo "pkg-config: not here, not tried"
fi
bare "$cmake" -S "$here/cmake_client" -B cmake -DCMAKE_PREFIX_PATH="$prefix" ${GENERATOR:+-G "$GENERATOR"} \
    -DCMAKE_C_COMPILER="${cc##* }" > cmake.log 2>&1 && bare "$cmake" --build cmake >> cmake.log 2>&1 ||
    { cat cmake.log; echo "CMake: failed"; exit 1; }
expect "CMake, C" cmake/client_c
[ ! -x cmake/client_cpp ] || expect "CMake, C++" cmake/client_cpp
bare "$prefix/bin/migraphx-driver" run --test --log-level error > driver.txt
grep -q 'dot' driver.txt || { cat driver.txt; echo "driver: no dot in its program"; exit 1; }
echo "driver: works"
if [ -n "$python" ]; then
    expect Python ${python_path:+env PYTHONPATH="$python_path"} "$python" "$here/client.py"
fi
