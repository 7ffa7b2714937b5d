#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh PROGRAM EXPECTED [ARGUMENT...]: runs a program of the guides where the models are. EXPECTED is a file with what
# it must print, numbers within a thousandth, or "fails:TEXT": then it must fail, and TEXT be in its message.
set -eu
program=$1 expected=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
"$program" "$@" > "$work/out" 2> "$work/err" || status=$?
fail() { echo "$*" && tail -n 20 "$work/out" && cat "$work/err" && exit 1; }
case $expected in
fails:*)
    [ $status != 0 ] || fail "succeeded where it must fail"
    grep -qF "${expected#fails:}" "$work/err" || fail "failed without '${expected#fails:}'"
    exit 0
    ;;
esac
[ $status = 0 ] || fail "ended with $status"
case $expected in
prints:*)
    grep -qF "${expected#prints:}" "$work/out" || fail "did not print '${expected#prints:}'"
    exit 0
    ;;
esac
# A number and another are the same within a thousandth; everything else must be equal.
awk -F'[ ,:]' '
    NR == FNR { want[NR] = $0; lines = NR; next }
    {
        count = split(want[FNR], w)
        bad = count != NF
        for (i = 1; i <= NF && !bad; i++) {
            number = $i ~ /^-?[0-9.]+$/ && w[i] ~ /^-?[0-9.]+$/
            gap = $i - w[i]
            bad = number ? gap > 0.001 * (1 + w[i] * w[i]) || -gap > 0.001 * (1 + w[i] * w[i]) : $i != w[i]
        }
        if (bad) { print "line " FNR ": \"" $0 "\" instead of \"" want[FNR] "\""; wrong = 1 }
        last = FNR
    }
    END {
        if (last != lines) { print last " lines instead of " lines; wrong = 1 }
        exit wrong
    }' "$expected" "$work/out" || fail "printed something else"
