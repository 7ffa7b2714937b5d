#!/bin/sh
# SPDX-License-Identifier: MIT
# generate.sh SOURCE BUILD PYTHON: the text generators in C and Python say the same, step by step, and it is more than one word.
set -eu
source=$1 build=$2 python=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -B "$source/examples/generate/decoder.py" "$work/decoder.onnx"
"$build/bin/generate" "$work/decoder.onnx" 60 > "$work/c" 2> "$work/rate"
PYTHONPATH=$build/python "$python" -B "$source/examples/generate/generate.py" "$work/decoder.onnx" 60 > "$work/py" 2>> "$work/rate"
cmp "$work/c" "$work/py"
[ "$(wc -w < "$work/c")" = 60 ]
[ "$(tr ' ' '\n' < "$work/c" | sort -u | wc -l)" -gt 4 ]
[ "$(grep -c 'tokens per second' "$work/rate")" = 2 ]
