#!/bin/sh
# SPDX-License-Identifier: MIT
# Style that a machine can see: SPDX line, no tabs or trailing blanks, newline at the end, no unfinished words, and
# clang-format where it is installed.
set -eu
cd "$(dirname "$0")/.."
bad=0
files=$(git ls-files '*.c' '*.h' '*.hpp' '*.py' '*.sh' '*.cmake' 'CMakeLists.txt' '*/CMakeLists.txt' Makefile .ci/run)
for f in $files; do
    [ -f "$f" ] || continue
    head -3 "$f" | grep -q 'SPDX-License-Identifier: MIT' || { echo "style: $f: no SPDX line"; bad=1; }
    [ -z "$(tail -c 1 "$f")" ] || { echo "style: $f: no newline at the end"; bad=1; }
done
text=$(git ls-files '*.c' '*.h' '*.hpp' '*.py' '*.sh' '*.md')
if grep -nE '[ 	]+$' $text /dev/null; then echo "style: trailing blanks"; bad=1; fi
code=$(git ls-files '*.c' '*.h' '*.hpp' '*.py')
if grep -nP '\t' $code /dev/null; then echo "style: tabs"; bad=1; fi
if grep -nE '\b(TODO|FIXME|XXX|HACK)\b' $code /dev/null; then echo "style: unfinished words"; bad=1; fi
# Drawings, equations and examples in comments stay as they were drawn. What a formatter does to them
# shows: the last word of a long line on a line of its own; and beside them, a field or enumerator
# cut from its name, an operand of # at the start of a line.
awk 'FNR == 1 { before = "" }
    before ~ /^ *\/\/     *[^ ]/ && length(before) >= 88 && /^ *\/\/     *[A-Za-z|,:;)\]]+[.,;]?$/ {
        print FILENAME ":" FNR ": " $0; bad = 1 }
    /^ +(const )?(struct [a-z_]+|[a-z0-9_]+_t|int|bool|double|float)$/ || /^ +[A-Z0-9_]+ =$/ ||
    (/^#[a-z_]+,/) { print FILENAME ":" FNR ": " $0; bad = 1 }
    { before = $0 }
    END { exit bad }' $(git ls-files '*.c' '*.h') || { echo "style: a drawing or declaration is broken"; bad=1; }
# Prose in comments of the engine keeps to 100 columns, which the formatter leaves alone; drawings stay as drawn.
awk '/^ *\/\/ [^ ]/ && length($0) > 100 { print FILENAME ":" FNR ": " $0; bad = 1 }
    END { exit bad }' $(git ls-files 'src/*.c' 'src/*.h' | grep -v '^src/targets/gpu/') || { echo "style: a comment over 100 columns"; bad=1; }
if command -v clang-format >/dev/null 2>&1; then
    clang-format --dry-run -Werror $(git ls-files '*.c' '*.h') 2> /tmp/style.$$ || { head -20 /tmp/style.$$; echo "style: run 'make format'"; bad=1; }
    rm -f /tmp/style.$$
fi
[ $bad = 0 ] && echo "style: clean"
exit $bad
