#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the const tables' lists: the folder is the list.
#   registry.sh SRC OUT    writes OUT/{op,pass,onnx,tf,target}_list.inc, touching a file only when it changes,
#                          OUT/cpu_kernel_list.inc, the CPU's kernels in the order that they state,
#                          and OUT/kernel_set.inc, a number over all sources: which kernels packed what is in a file.
# A row comes from a definition that starts a line: `const struct mgx_op mgx_op_concat = {`, or, for pointwise
# operators, from a table row `UNARY(relu, ...)`.
set -eu
src=$1 out=$2
mkdir -p "$out"
put() { # put FILE: stdin to $out/FILE if different
    cat > "$out/$1.new"
    if cmp -s "$out/$1.new" "$out/$1"; then rm "$out/$1.new"; else mv "$out/$1.new" "$out/$1"; fi
}
list() { # list KIND MACRO FILES...: sorted MACRO(name) lines for definitions of mgx_KIND_name
    kind=$1 macro=$2
    shift 2
    cat /dev/null "$@" 2>/dev/null | sed -nE "s/^const struct mgx_(op|pass|onnx_op|target) mgx_${kind}_([a-z0-9_]+) =.*/$macro(\2)/p"
}
{
    list op OP "$src"/op/*.c
    sed -nE 's/^(UNARY|BINARY|TERNARY)[A-Z_]*\(([a-z0-9_]+),.*/OP(\2)/p' "$src"/op/pointwise_rows.h 2>/dev/null || :
} | LC_ALL=C sort -u | put op_list.inc
list pass PASS "$src"/pass/*.c | LC_ALL=C sort -u | put pass_list.inc
rules() { # rules KIND MACRO FILES...: in the order of the operators' names, so that bisection finds them
    kind=$1 macro=$2
    shift 2
    cat /dev/null "$@" 2>/dev/null | awk -v head="const struct mgx_${kind}_op mgx_${kind}_" -v macro="$macro" '
        index($0, head) == 1 { rule = substr($0, length(head) + 1); sub(/ =.*/, "", rule) }
        rule != "" && match($0, /\.name = "[^"]+"/) { print substr($0, RSTART + 9, RLENGTH - 10), macro "(" rule ")"; rule = "" }
    ' | LC_ALL=C sort -u | sed 's/.* //'
}
rules onnx ONNX "$src"/onnx/op/*.c "$src"/onnx/simple.c | put onnx_list.inc
rules tf TF "$src"/tf/op/*.c "$src"/tf/simple.c | put tf_list.inc
list target TARGET "$src"/targets/*/*.c | LC_ALL=C sort -u | put target_list.inc
cat /dev/null "$src"/targets/cpu/lower/*.c 2>/dev/null | sed -nE 's/^CPU_KERNEL\(([a-z0-9_]+), ([0-9]+)\)$/\2 KERNEL(\1)/p' | LC_ALL=C sort -n > "$out/cpu_kernels.txt"
twice=$(sed 's/ .*//' "$out/cpu_kernels.txt" | uniq -d)
[ -z "$twice" ] || { echo "registry: two CPU_KERNEL lines of src/targets/cpu/lower have place $twice" >&2; exit 1; }
sed 's/.* //' "$out/cpu_kernels.txt" | put cpu_kernel_list.inc
find "$src" -type f \( -name '*.c' -o -name '*.h' \) | LC_ALL=C sort | xargs cat | cksum |
    awk '{ printf "\"%08x%x\"\n", $1, $2 }' | put kernel_set.inc
