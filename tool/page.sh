#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes one page of a page, its style and its script, and of that a C string.
#   page.sh FOLDER OUT    writes OUT: "line\n" "line\n" ... of FOLDER/page.html, page.css, page.js
set -eu
folder=$1 out=$2
sed -e "/^\/\* style \*\/$/{r $folder/page.css" -e 'd}' -e "/^\/\* script \*\/$/{r $folder/page.js" -e 'd}' "$folder/page.html" |
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$/\\n"/' > "$out.new"
mv "$out.new" "$out"
