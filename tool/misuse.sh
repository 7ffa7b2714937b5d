#!/bin/sh
# SPDX-License-Identifier: MIT
# misuse.sh BUILD PYTHON SEQUENCES: random calls of the C and Python interfaces of a build with sanitizers.
#
# The interpreter is not instrumented: it, and nothing that it starts, gets the sanitizer's library
# beforehand, and it takes its memory from malloc, so that what it holds is seen as held. At its end
# it keeps much that nobody frees; what counts is memory that the engine or its module asked for.
# That this finds a leak is proved first, by a handle that is lost on purpose.
set -eu
build=$1 python=$2 sequences=$3
root=$(cd "$(dirname "$0")/.." && pwd)
asan=$(gcc -print-file-name=libasan.so)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Runs a command; says what it lost.
watch() {
    rm -f "$work"/log.*
    env LD_PRELOAD="$asan" PYTHONMALLOC=malloc \
        ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1:max_allocation_size_mb=4096:log_path=$work/log:stack_trace_format='    #%n %m %f %S'" \
        LSAN_OPTIONS=exitcode=0 UBSAN_OPTIONS="log_path=$work/log" "$@" || { cat "$work"/log.* 2> /dev/null | head -100; return 1; }
    cat "$work"/log.* 2> /dev/null | awk '/ leak of / { head = $0 } /^ *#1 / && /migraphx/ { print head; print }' > "$work/lost"
}

check() {
    watch "$@"
    [ ! -s "$work/lost" ] || { echo "memory of the engine was lost:"; cat "$work/lost"; exit 1; }
}

echo "== a handle that is lost on purpose is found"
watch python3 -B "$root/test/api/misuse.py" "$build/lib/libmigraphx_c.so" "$root/include" --sequences 1 --lose > /dev/null
[ -s "$work/lost" ] || { echo "misuse: a lost handle was not found"; exit 1; }
echo "== C: $sequences sequences"
check python3 -B "$root/test/api/misuse.py" "$build/lib/libmigraphx_c.so" "$root/include" --sequences "$sequences"
echo "== Python: $sequences sequences"
check env MGX_MISUSE_SEQUENCES="$sequences" PYTHONPATH="$build/python" \
    "$python" -B -m pytest -q -p no:cacheprovider "$root/test/python/test_misuse.py"
echo "== nothing was lost"
