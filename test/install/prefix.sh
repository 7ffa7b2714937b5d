#!/bin/sh
# SPDX-License-Identifier: MIT
# prefix.sh BUILD: installs into a prefix, uses it, moves it and uses it again.
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${CMAKE:-cmake}" --install "$build" --prefix "$work/here" > "$work/log" || { cat "$work/log"; exit 1; }
for file in include/migraphx/migraphx.hpp lib/libmigraphx_c.so.3 lib/migraphx.abi3.so lib/migraphx.pyi lib/onnx_migraphx/backend.py lib/migraphx_modules/generate.py \
    lib/pkgconfig/migraphx.pc lib/cmake/migraphx/migraphx-config.cmake share/doc/migraphx/LICENSE \
    share/doc/migraphx/README.md share/doc/migraphx/docs/api.md share/doc/migraphx/examples/resnet50.c \
    share/man/man1/migraphx-driver.1 share/bash-completion/completions/migraphx-driver \
    share/zsh/site-functions/_migraphx-driver share/fish/vendor_completions.d/migraphx-driver.fish; do
    [ -s "$work/here/$file" ] || { echo "the prefix lacks $file"; exit 1; }
done
grep -rl "$work/here" "$work/here" && { echo "these files name the prefix, which may be moved"; exit 1; }
grep -rl "$(cd "$build" && pwd)" "$work/here" && { echo "these files name the build folder"; exit 1; }
echo "== as installed"
sh "$here/clients.sh" "$work/here" "${PYTHON:-}" "$work/here/lib"
mkdir "$work/another place"
mv "$work/here" "$work/another place/moved"
echo "== moved"
sh "$here/clients.sh" "$work/another place/moved" "${PYTHON:-}" "$work/another place/moved/lib"
