#!/bin/sh
# SPDX-License-Identifier: MIT
# coverage.sh BUILD VENV: runs the tests of an instrumented build, prints line coverage per folder of src/.
set -eu
build=$1 venv=$2
find "$build" -name '*.gcda' -delete
(cd "$build" && ctest -j2 -Q) || echo "coverage: some tests failed; the figures count all the same"
for dir in base ir op pass onnx api target; do
    [ -d "src/$dir" ] || continue
    printf '%-8s' "$dir"
    "$venv/bin/python" -m gcovr --root . --object-directory "$build" --filter "src/$dir/" --print-summary \
        --gcov-ignore-parse-errors -o /dev/null 2>/dev/null | grep '^lines'
done
