#!/bin/sh
# SPDX-License-Identifier: MIT
# symbols.sh LIBRARY INCLUDE: what the shared library exports is what the two headers declare, no more and no less,
# and its soname is MIGraphX's. The lists that the tests walk (functions.inc, extensions.inc) name each of them once.
set -eu
lib=$1 include=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$lib" | awk '{print $3}' | LC_ALL=C sort > "$work/exported"
cat "$include/migraphx/migraphx.h" "$include/migraphx/extensions.h" "$include/migraphx/host.h" | sed 's://.*$::' | tr '\n' ' ' |
    grep -oE 'MIGRAPHX_C_EXPORT +((migraphx_status|void) +|const char +\*)migraphx_[a-z0-9_]+ *\(' | grep -oE 'migraphx_[a-z0-9_]+ *\($' |
    tr -d ' (' | LC_ALL=C sort > "$work/declared"
[ -s "$work/declared" ] || { echo "no declarations found"; exit 1; }
diff "$work/declared" "$work/exported" || { echo "< declared but not exported; > exported but not declared"; exit 1; }
here=$(dirname "$0")
{
    cat "$here/functions.inc" "$here/extensions.inc" | sed -nE 's/^ROW\(([a-z0-9_]+),.*/migraphx_\1/p'
    echo migraphx_last_error                           # these take nothing that must not be NULL
    echo migraphx_device_wait
    echo migraphx_test_private_disable_exception_catch
} | LC_ALL=C sort > "$work/listed"
diff "$work/declared" "$work/listed" || { echo "< declared but not listed; > listed but not declared"; exit 1; }
readelf -d "$lib" | grep -q 'SONAME.*libmigraphx_c\.so\.3\]' || { echo "the soname is not libmigraphx_c.so.3"; exit 1; }
echo "$(wc -l < "$work/declared") symbols"
