#!/bin/sh
# SPDX-License-Identifier: MIT
# Finds the CPU's kernels and what each needs: the folders are the list, and the set that a kernel states decides how it is
# compiled.
#   kernels.sh features SRC CPU          one line per feature of the processors X86 or ARM: "AVX2 -mavx2"
#   kernels.sh list SRC OUT FEATURE...   with the features that processor and compiler have, writes
#       OUT/kernels.txt        what to compile: "file|FEATURE FEATURE ..."
#       OUT/kernels_left.txt   files that need something else
#       OUT/kernel/*.c         a file for each set that the body of a kernel is compiled for: KERNEL_FOR(GENERIC, AVX2)
#       OUT/kernel_list.inc    for every kind of kernel those that there are, the best first
#       OUT/kernel_needs.inc   all that any of them needs
# The language is that of src/targets/cpu/kernel/kernel.h and src/targets/cpu/machine/isa.h.
set -eu
verb=$1 src=$2 out=$3
table=$src/targets/cpu/machine/isa.h folder=$src/targets/cpu/kernel
if [ "$verb" = features ]; then
    sed -n "/^#define MGX_${out}_FEATURES/,/[^\\\\]\$/s/^ *X(\([A-Z0-9_]*\), *\"[a-z0-9_]*\", *\"\([^\"]*\)\".*/\1 \2/p" "$table"
    exit
fi
shift 3
mkdir -p "$out/kernel"
put() { # put FILE: stdin to $out/FILE if different
    cat > "$out/$1.new"
    if cmp -s "$out/$1.new" "$out/$1"; then rm "$out/$1.new"; else mv "$out/$1.new" "$out/$1"; fi
}
# One line per kernel: sort key, file, set of the file's end, kind, object, needs (features), needs (as in C).
LC_ALL=C awk -v have=" $* " '
    function fail(text) { print "kernels: " file ": " text > "/dev/stderr"; failed = 1; exit 1 }
    # The features of a set as C has it: "AVX AVX2".
    function spread(text,    word, n, i, all) {
        gsub(/[()| ]+/, " ", text)
        gsub(/MGX_HAS /, "MGX_HAS_", text)
        n = split(text, word, " ")
        for (i = 1; i <= n; i++)
            if (word[i] in set) all = all " " set[word[i]]
            else if (sub(/^MGX_HAS_/, "", word[i]) && word[i] in bit) all = all " " word[i]
            else fail("what is " word[i] "?")
        sub(/^ +/, "", all); gsub(/  +/, " ", all)
        return all
    }
    # Digits that sort as the set does in C.
    function key(all,    word, n, i, on, text) {
        n = split(all, word, " ")
        for (i = 1; i <= n; i++) on[bit[word[i]]] = 1
        for (i = bits - 1; i >= 0; i--) text = text (i in on ? 1 : 0)
        return text
    }
    function emit(kind, object, end, needs,    all, word, n, i, state) {
        all = spread(needs)
        state = "here"
        n = split(all, word, " ")
        for (i = 1; i <= n; i++) if (!index(have, " " word[i] " ")) state = "left"
        print key(all) "|" state "|" file "|" end "|" kind "|" object "|" all "|" needs
    }
    function finish(    i, j, n, word, name) { # what was found in a file
        for (i = 1; i <= objects; i++) {
            if (sets == "" && needs[i] == "") fail(object[i] " does not state .needs")
            if (sets == "") emit(kind[i], object[i], "", needs[i])
            name = object[i]
            gsub(/^NAME\(|\)$/, "", name)
            n = split(sets, word, /, */)
            for (j = 1; j <= n; j++)
                emit(kind[i], name "__" tolower(word[j]), tolower(word[j]), "MGX_ISA_" word[j])
        }
        if (file ~ /__/ && !objects) fail("no kernel in it")
        objects = 0; sets = ""
    }
    FILENAME != file { finish(); file = FILENAME }
    file ~ /isa\.h$/ {
        if (match($0, /^ *X\([A-Z0-9_]+, *"[a-z0-9_]+", *"[-+]/)) { split($0, part, /[(,]/); bit[part[2]] = bits++ }
        if (sub(/^#define MGX_ISA_/, "MGX_ISA_")) text = $0; else if (text != "") text = text $0
        if (text != "" && !sub(/\\$/, "", text)) {
            name = text; sub(/ .*/, "", name); sub(/^[A-Z0-9_]+ +/, "", text)
            if (name !~ /[()]/) set[name] = text ~ /mgx_isa\)0/ ? "" : spread(text)
            text = ""
        }
        next
    }
    sub(/^KERNEL_FOR\(/, "") { sub(/\).*/, ""); sets = $0 }
    /^const struct mgx_[a-z0-9_]+_kernel [A-Za-z0-9_()]+ = *\{/ {
        objects++
        kind[objects] = $3; gsub(/^mgx_|_kernel$/, "", kind[objects])
        object[objects] = $4; needs[objects] = ""
    }
    match($0, /\.needs = [A-Z0-9_()| ]+/) { needs[objects] = substr($0, RSTART + 9, RLENGTH - 9) }
    END { if (!failed) finish() }
' "$table" $(grep -lE '^KERNEL_FOR\(' "$folder"/*/*.h) "$folder"/*/*__*.c > "$out/kernels.all" || exit 1
LC_ALL=C sort -r -o "$out/kernels.all" "$out/kernels.all"

made=
while IFS='|' read -r key state file end kind object needs set; do
    [ -n "$end" ] || continue
    stem=$(basename "$file" .h)
    made="$made ${stem}__$end.c"
    put "kernel/${stem}__$end.c" <<TEXT
// Made by tool/kernels.sh.
#define KERNEL_SET $end
#define KERNEL_NEEDS $set
#include "${file#"$src"/}"
TEXT
done < "$out/kernels.all"
for old in "$out"/kernel/*.c; do
    case " $made " in *" ${old##*/} "*) ;; *) rm -f "$old" ;; esac
done
awk -F'|' -v out="$out" '
    { file = $3; if ($4 != "") { n = split($3, part, "/"); stem = part[n]; sub(/\.h$/, "", stem); file = out "/kernel/" stem "__" $4 ".c" } }
    { print $2 "|" file "|" $7 }' "$out/kernels.all" | LC_ALL=C sort -u > "$out/kernels.files"
sed -n 's/^here|//p' "$out/kernels.files" | put kernels.txt
sed -n 's/^left|//p' "$out/kernels.files" | put kernels_left.txt
awk -F'|' '
    !($5 in list) { kinds = kinds " " $5; list[$5] = "" }
    $2 == "here" { extern[$5] = extern[$5] (extern[$5] == "" ? "" : ", ") $6
                   list[$5] = list[$5] "    (const struct mgx_kernel *)&" $6 ",\n" }
    END {
        n = split(kinds, kind, " ")
        for (i = 1; i <= n; i++) {
            k = kind[i]
            if (extern[k] != "") print "extern const struct mgx_" k "_kernel " extern[k] ";"
            print "extern const struct mgx_kernel *const mgx_" k "_kernels[];"
            print "const struct mgx_kernel *const mgx_" k "_kernels[] = {\n" list[k] "    NULL};"
        }
        print "static const struct mgx_kernel *const *const kinds[] = {"
        for (i = 1; i <= n; i++) print "    mgx_" kind[i] "_kernels,"
        print "    NULL};"
    }' "$out/kernels.all" | put kernel_list.inc
awk -F'|' '$2 == "here" { print "| (" $8 ")" }' "$out/kernels.all" | LC_ALL=C sort -u | put kernel_needs.inc
