#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes text files part of the library: the folder is the list.
#   embed.sh FOLDER OUT    writes OUT: for each FOLDER/<name>.gpu a row TEXT(name, " WANTED WANTED ... ", "line\n" ...).
# A string of C may be long where the compiler says so; the lines keep their order and numbers.
set -eu
folder=$1 out=$2
mkdir -p "$(dirname "$out")"
for file in "$folder"/*.gpu; do
    [ -f "$file" ] || continue
    name=$(basename "$file" .gpu)
    printf 'TEXT(%s, " %s ",\n' "$name" "$(sed -n 's|^// Wants: ||p' "$file" | tr '\n' ' ')"
    sed -e 's|^// \(After\|Wants\|Takes\): .*||' -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$/\\n"/' "$file"
    printf ')\n'
done > "$out.new"
if cmp -s "$out.new" "$out"; then rm "$out.new"; else mv "$out.new" "$out"; fi
