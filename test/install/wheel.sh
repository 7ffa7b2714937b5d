#!/bin/sh
# SPDX-License-Identifier: MIT
# wheel.sh BUILD [FLOOR] | --pip BUILD: makes the wheel of what is built, looks at it, installs it into a fresh environment
# without a network, and uses it. --pip: `pip install .` does all of it, and asks for the metadata before anything is built
# or packed (tool/bare_debian.sh has pip build from nothing). FLOOR: the glibc that the tag must name.
# 77: this Python has no pip that can do it.
set -eu
by_pip=
[ "$1" != --pip ] || { by_pip=1; shift; }
build=$1 floor=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pip="$PYTHON -m pip --disable-pip-version-check"
$pip install --help 2> /dev/null | grep -q -e --config-settings || { echo "no pip with --config-settings"; exit 77; }
unset PYTHONPATH PIP_INDEX_URL || :
export PIP_NO_INDEX=1
"$PYTHON" -m venv --without-pip "$work/venv"
if [ "$by_pip" ]; then
    (cd "$source/tool" && "$PYTHON" -c 'import sys, mgx_wheel; mgx_wheel.built = None
print(mgx_wheel.prepare_metadata_for_build_wheel(sys.argv[1]))' "$work/metadata") | grep -q '^migraphx-.*dist-info$'
    grep -q '^Name: migraphx$' "$work"/metadata/*.dist-info/METADATA
    $pip --python "$work/venv" install --config-settings=build="$build" "$source" > "$work/log" 2>&1 ||
        { tail -40 "$work/log"; exit 1; }
else
    mkdir "$work/out"
    $pip wheel --no-deps --config-settings=build="$build" -w "$work/out" "$source" > "$work/log" 2>&1 ||
        { tail -40 "$work/log"; exit 1; }
    wheel=$(ls "$work/out"/*.whl)
    echo "$(basename "$wheel"), $(wc -c < "$wheel") bytes"
    [ "$(wc -c < "$wheel")" -lt 10000000 ] || { echo "the wheel has 10 MB or more"; exit 1; }
    case $wheel in
    *-cp39-abi3-manylinux_2_"${floor:-[0-9]*}"_*) ;;
    *) echo "the wheel is not tagged for any Python from 3.9 and glibc 2.${floor:-?}"; exit 1 ;;
    esac
    $pip --python "$work/venv" install "$wheel" > "$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
fi
python="$work/venv/bin/python"
[ -s "$work/venv"/lib/python3*/site-packages/migraphx-stubs/__init__.pyi ] || { echo "no type stubs"; exit 1; }
[ -s "$work/venv"/lib/python3*/site-packages/migraphx-stubs/generate.pyi ] || { echo "no type stubs of migraphx.generate"; exit 1; }
sh "$here/clients.sh" "$(env -i "$python" -m migraphx_prefix)" "$python"
env -i "$work/venv/bin/migraphx-driver" op relu | grep -q '^relu:' || { echo "the command migraphx-driver fails"; exit 1; }
$pip --python "$work/venv" uninstall -y migraphx > /dev/null 2>&1
left=$(find "$work/venv" -name '*migraphx*')
[ -z "$left" ] || { echo "uninstalling leaves $left"; exit 1; }
