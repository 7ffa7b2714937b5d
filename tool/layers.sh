#!/bin/sh
# SPDX-License-Identifier: MIT
# The dependency law: base < ir < op < pass < {import < {onnx, tf}, quant, format, plan < targets} < generate < api <
# {driver, python, host}.
# An include points to the left or inside its own folder; folders include each other in no circle; targets never
# include each other; only src/api sees include/migraphx/, and driver, python and host see nothing else; only src/api reads
# the environment; the library neither prints nor exits.
set -eu
cd "$(dirname "$0")/.."
bad=0
say() { echo "layers: $*"; bad=1; }

allowed() { # what a folder of src may include
    case $1 in
    base) echo base ;;
    ir) echo base ir ;;
    op) echo base ir op ;;
    pass) echo base ir op pass ;;
    import) echo base ir op pass import ;;
    onnx | tf) echo base ir op pass import "$1" ;;
    quant) echo base ir op pass quant ;;
    format) echo base ir op format ;;
    plan) echo base ir op pass plan ;;
    targets) echo base ir op pass plan targets ;;
    generate) echo base ir op pass format plan targets generate ;;
    api) echo base ir op pass import onnx tf quant format plan targets generate api migraphx ;;
    esac
}

for dir in base ir op pass import onnx tf quant format plan targets generate api; do
    [ -d "src/$dir" ] || continue
    may=$(allowed $dir)
    grep -rnE '^ *# *include "' "src/$dir" | while IFS= read -r line; do
        what=$(printf '%s' "$line" | sed -E 's/.*include "([^"]+)".*/\1/')
        case $what in
        */*) top=${what%%/*} ;;
        *) continue ;; # a neighbour or a generated list
        esac
        ok=0
        for m in $may; do [ "$m" = "$top" ] && ok=1; done
        [ $ok = 1 ] || echo "$line"
    done
done > /tmp/layers.$$ || :
for target in src/targets/*/; do
    name=$(basename "$target")
    grep -rnE '^ *# *include "targets/[a-z]+/' "$target" | grep -v "\"targets/$name/" >> /tmp/layers.$$ || :
done
# Inside the CPU target: machine < kernel < lower. (Kernels may look at the machine, not at what offers them.)
grep -nE '^ *# *include "targets/cpu/(kernel|lower)/' src/targets/cpu/machine/* >> /tmp/layers.$$ || :
grep -rnE '^ *# *include "(targets/cpu/lower|plan)/' src/targets/cpu/kernel >> /tmp/layers.$$ || :
# Inside its kernels: what lies in no room < vector < move < end < rows < tile < product < image.
below=
for room in vector move end rows tile product image; do
    below="$below|$room/"
    grep -rnE '^ *# *include "targets/cpu/kernel/[a-z0-9_]+/' "src/targets/cpu/kernel/$room" |
        grep -vE "\"targets/cpu/kernel/(${below#|})" >> /tmp/layers.$$ || :
done
grep -nE '^ *# *include "targets/cpu/kernel/[a-z0-9_]+/' src/targets/cpu/kernel/*.[ch] >> /tmp/layers.$$ || :
for room in src/targets/cpu/kernel/*/; do
    case "|$below|" in *"|$(basename "$room")/|"*) ;; *) echo "$room: a room without a place in the order" >> /tmp/layers.$$ ;; esac
done
grep -rnE '^ *# *include "' driver python host 2>/dev/null | grep -vE '"(migraphx/|[a-z0-9_]+\.(h|inc)")' >> /tmp/layers.$$ || :
if [ -s /tmp/layers.$$ ]; then
    cat /tmp/layers.$$
    say "these includes point the wrong way"
fi
rm -f /tmp/layers.$$
public=$(grep -rnE '^ *# *include *[<"]migraphx/' src | grep -v '^src/api/' || :)
[ -z "$public" ] || { echo "$public"; say "a public header is included below the API"; }
python3 tool/circles.py || say "folders or files use each other in a circle"
env=$(grep -rnE '\bgetenv\(' src | grep -v '^src/api/' || :)
[ -z "$env" ] || { echo "$env"; say "the environment is read outside src/api"; }
out=$(grep -rnE '\b(printf|puts|perror|abort|exit)\(|fprintf\((stderr|stdout)' src --include=*.c | grep -vE '\b(sn|vsn|fs|mgx_[a-z_]*)printf|^src/api/print\.c|//' || :)
[ -z "$out" ] || { echo "$out"; say "the library prints or exits"; }
[ $bad = 0 ] && echo "layers: every include points the right way"
exit $bad
