#!/bin/sh
# SPDX-License-Identifier: MIT
# misuse.sh BUILD PYTHON SEQUENCES: random calls of the C and Python interfaces of a build with sanitizers.
set -eu
build=$1 python=$2 sequences=$3
root=$(cd "$(dirname "$0")/.." && pwd)
LD_PRELOAD=$(gcc -print-file-name=libasan.so)
ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:max_allocation_size_mb=4096
LSAN_OPTIONS=suppressions=$root/tool/misuse.supp:print_suppressions=0
export LD_PRELOAD ASAN_OPTIONS LSAN_OPTIONS
echo "== C: $sequences sequences"
python3 -B "$root/test/api/misuse.py" "$build/lib/libmigraphx_c.so" "$root/include" --sequences "$sequences"
echo "== Python: $sequences sequences"
MGX_MISUSE_SEQUENCES=$sequences PYTHONPATH=$build/python "$python" -B -m pytest -q -p no:cacheprovider "$root/test/python/test_misuse.py"
