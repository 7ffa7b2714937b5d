#!/bin/sh
# SPDX-License-Identifier: MIT
# hello.sh SOURCE BUILD EXAMPLE TOOL: the commands in the head of the example, word by word but for the build directory,
# the compiler or interpreter TOOL and the place of the result, give a program that reads the digit, and says which file
# is missing and ends with 1 where there is none. No environment variable but those in the commands is needed.
set -eu
source=$1 build=$2 example=$3 tool=$4
cd "$source"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset LD_LIBRARY_PATH PYTHONPATH LIBRARY_PATH CPATH
fail() { echo "$example: $*"; exit 1; }

# The commands: indented lines of the head.
head=$(sed -nE '1,/^(#include|import)/s,^(//)? +((cc|c\+\+|\./hello|PYTHONPATH=[^ ]*) .*),\2,p' "$example")
[ -n "$head" ] || fail "its head has no commands"
commands=$(echo "$head" | sed "s:-Lbuild:-L$build:; s:\$PWD/build:$build:; s:=build/:=$build/:" |
    sed "s:\./hello :$work/hello :; s:-o hello:-o $work/hello:" |
    sed -E "s:^(cc|c\+\+) :$tool -Wall -Wextra -Werror :; s: python3 : $tool -B :")
answer=$(sh -euc "$commands")
[ "$answer" = "this is a 4" ] || fail "answered '$answer' instead of 'this is a 4'"

last=$(echo "$commands" | tail -1 | sed 's:examples/digits/digits.onnx:no_such_model.onnx:')
status=0
sh -euc "$last" > "$work/out" 2> "$work/err" || status=$?
[ $status = 1 ] || fail "ended with $status where the model is missing"
[ ! -s "$work/out" ] || fail "printed an answer without a model"
grep -q '^error: .*no_such_model.onnx' "$work/err" || fail "did not name the missing file: $(cat "$work/err")"
[ "$(wc -l < "$work/err")" -le 2 ] || fail "said more than the error: $(cat "$work/err")"

# What README tells to type to build a client is what works here.
grep -hE '^ *(cc|c\+\+) .*-lmigraphx_c' README.md | sed 's/^ *//' | while IFS= read -r line; do
    grep -qF "$line" examples/hello.c examples/hello.cpp || fail "README builds in another way: $line"
done
