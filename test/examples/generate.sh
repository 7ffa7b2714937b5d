#!/bin/sh
# SPDX-License-Identifier: MIT
# generate.sh SOURCE BUILD PYTHON: the text generators in C and Python and the driver say the same, and it is more than one word.
set -eu
source=$1 build=$2 python=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -B "$source/examples/generate/decoder.py" "$work/decoder"
"$build/bin/generate" "$work/decoder" 60 1 7 9 > "$work/c" 2> "$work/rate"
PYTHONPATH=$build/python "$python" -B "$source/examples/generate/generate.py" "$work/decoder" 60 1 7 9 2>> "$work/rate" | sed 's/ $//' > "$work/py"
"$build/bin/migraphx-driver" generate "$work/decoder" --tokens 1,7,9 --max-tokens 60 > "$work/driver"
cmp "$work/c" "$work/py"
cmp "$work/c" "$work/driver"
[ "$(wc -w < "$work/c")" = 60 ]
[ "$(tr ' ' '\n' < "$work/c" | sort -u | wc -l)" -gt 4 ]
[ "$(grep -c 'tokens per second' "$work/rate")" = 2 ]
