#!/bin/sh
# SPDX-License-Identifier: MIT
# deb.sh BUILD: makes the Debian package of what is built, reads it with dpkg-deb, unpacks it and uses the tree.
# 77: no cpack or dpkg-deb here. tool/bare_debian.sh installs the package.
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)
command -v dpkg-deb > /dev/null && command -v "$CPACK" > /dev/null || { echo "no cpack or dpkg-deb"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$CPACK" --config "$build/CPackConfig.cmake" -B "$work/out" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
deb=$(ls "$work/out"/*.deb)
echo "$(basename "$deb"), $(wc -c < "$deb") bytes"
dpkg-deb --contents "$deb" > "$work/contents"
for file in lib/libmigraphx_c.so.3 lib/python3/dist-packages/migraphx.abi3.so include/migraphx/migraphx.h \
    bin/migraphx-driver share/man/man1/migraphx-driver.1.gz share/doc/migraphx/copyright lib/pkgconfig/migraphx.pc; do
    grep -q " \./usr/$file" "$work/contents" || { cat "$work/contents"; echo "the package lacks /usr/$file"; exit 1; }
done
grep -v ' \./$\| \./usr/' "$work/contents" && { echo "the package holds something outside /usr"; exit 1; }
grep -v ' root/root ' "$work/contents" && { echo "not all files are root's"; exit 1; }
for field in Package Version Architecture Maintainer Depends Description; do
    [ -n "$(dpkg-deb --field "$deb" $field)" ] || { echo "the package has no $field"; exit 1; }
done
dpkg-deb --ctrl-tarfile "$deb" | tar t | grep -q triggers || { echo "the package does not run ldconfig"; exit 1; }
dpkg-deb -x "$deb" "$work/tree"
LIBRARY_PATH_OF_RUN="$work/tree/usr/lib" sh "$here/clients.sh" "$work/tree/usr" "${PYTHON:-}" \
    "$work/tree/usr/lib/python3/dist-packages"
