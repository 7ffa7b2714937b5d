#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh DRIVER CASE: runs the driver as a case file says and compares exit code, stdout and what stderr must hold.
#
#     $ read --test          the command line
#     ? 0                    the exit code
#     ! some words           stderr contains this (any number of lines)
#     ~ some words           stderr does not contain this (any number of lines)
#     @ NAME=value           in the environment (any number of lines)
#     % numbers              measured numbers (before ms, %, inferences, GFLOP/s, GB/s) count as N
#     -                      then stdout to the letter
set -eu
driver=$1 case=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command=$(sed -n 's/^\$ //p;/^-$/q' "$case" | head -1)
code=$(sed -n 's/^? //p;/^-$/q' "$case" | head -1)
sed '1,/^-$/d' "$case" > "$work/expected"
unset $(env | sed -n 's/^\(MIGRAPHX[A-Z_]*\)=.*/\1/p') || :
sed '/^-$/q' "$case" | sed -n 's/^@ //p' > "$work/environment"
while IFS= read -r assignment; do
    export "${assignment?}"
done < "$work/environment"
set +e
# shellcheck disable=SC2086
eval "set -- $command"
"$driver" "$@" > "$work/out" 2> "$work/err"
got=$?
set -e
if grep -q '^% numbers' "$case"; then
    sed -E 's/-?[0-9][0-9.e+-]*(ms|%| inferences| GFLOP\/s| GB\/s)/N\1/g; s/-?(nan|inf)%/N%/g' "$work/out" > "$work/numbers"
    mv "$work/numbers" "$work/out"
fi
bad=0
[ "$got" = "$code" ] || { echo "exit code $got, expected $code"; bad=1; }
diff "$work/expected" "$work/out" || { echo "stdout differs (< expected, > got)"; bad=1; }
sed '/^-$/q' "$case" | sed -n 's/^! //p' > "$work/patterns"
while IFS= read -r pattern; do
    grep -qF -- "$pattern" "$work/err" || { echo "stderr lacks: $pattern"; bad=1; }
done < "$work/patterns"
sed '/^-$/q' "$case" | sed -n 's/^~ //p' > "$work/patterns"
while IFS= read -r pattern; do
    ! grep -qF -- "$pattern" "$work/err" || { echo "stderr holds: $pattern"; bad=1; }
done < "$work/patterns"
[ $bad = 0 ] || cat "$work/err"
exit $bad
