#!/bin/sh
# SPDX-License-Identifier: MIT
# custom_op.sh SOURCE BUILD COMPILER: the commands in the head of examples/custom_op.c, but for the build directory and the
# place of the result, build a program that prints what the head says; its answers to other angles are awk's, and what its
# operator refuses comes out as an error that names the operator and the value.
set -eu
source=$1 build=$2 compiler=$3
cd "$source"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset LD_LIBRARY_PATH LIBRARY_PATH CPATH
fail() { echo "custom_op: $*"; exit 1; }

commands=$(sed -nE 's,^// +((cc|\./custom_op) .*),\1,p' examples/custom_op.c |
    sed "s:-Lbuild:-L$build:; s:\$PWD/build:$build:; s:^\./custom_op:$work/custom_op:; s:-o custom_op:-o $work/custom_op:" |
    sed "s:^cc :$compiler -Wall -Wextra -Werror :")
said=$(sed -nE 's,^// prints `([^`]*)`.*,\1,p' examples/custom_op.c)
[ -n "$said" ] || fail "its head says no answer"
answer=$(sh -euc "$commands")
[ "$answer" = "$said" ] || fail "answered '$answer', its head says '$said'"

for angle in 0 3 -3 4 10 -10 100.5; do
    answer=$("$work/custom_op" "$angle" | cut -d' ' -f3)
    wanted=$(awk "BEGIN { pi = atan2(0, -1); x = $angle
        while (x >= pi) x -= 2 * pi
        while (x < -pi) x += 2 * pi
        print 2 * x }")
    awk "BEGIN { exit !(($answer - $wanted) ^ 2 < 1e-4) }" || fail "$angle gives $answer instead of $wanted"
done

status=0
"$work/custom_op" 1 inf > "$work/out" 2> "$work/err" || status=$?
[ $status = 1 ] || fail "ended with $status where an angle is infinite"
grep -q 'wrap_angle: angle 1 is inf' "$work/err" || fail "did not say what it refused: $(cat "$work/err")"
