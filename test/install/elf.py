# SPDX-License-Identifier: MIT
"""elf.py [--floor N] [--fortified] FILE...: what must hold of every binary that is installed.

It looks for libraries only beside itself, has no writable code and no relocation table that is writable after the
start, guards its stack, and asks for no function that is younger than glibc 2.N.
"""
import argparse
import re
import subprocess
import sys


def readelf(option, path):
    return subprocess.run(["readelf", "--wide", option, path], check=True, capture_output=True, text=True).stdout


def problems(path, floor, fortified):
    dynamic, symbols, segments = (readelf(option, path) for option in ("--dynamic", "--dyn-syms", "--segments"))
    for run_path in re.findall(r"(?:RUNPATH|RPATH).*\[(.*)\]", dynamic):
        for folder in run_path.split(":"):
            if not folder.startswith("$ORIGIN/"):
                yield f"looks for libraries in '{folder}'" + ("" if folder else ", the current folder")
    if "TEXTREL" in dynamic:
        yield "has writable code (TEXTREL)"
    if "BIND_NOW" not in dynamic or "GNU_RELRO" not in segments:
        yield "leaves its relocation table writable"
    if re.search(r"GNU_STACK.*RWE", segments):
        yield "has a stack that can be executed"
    if fortified and "__stack_chk_fail" not in symbols:
        yield "does not guard its stack"
    for name, minor in sorted(set(re.findall(r"(\w+)@GLIBC_2\.(\d+)", symbols))):
        if floor and int(minor) > floor:
            yield f"needs {name} of glibc 2.{minor}: cmake/old_glibc.c has to define it"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--floor", type=int, default=0)
    parser.add_argument("--fortified", action="store_true")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    found = [f"{path}: {text}" for path in args.files for text in problems(path, args.floor, args.fortified)]
    if args.fortified and not any("_chk@" in readelf("--dyn-syms", path) for path in args.files):
        found.append("no binary calls a checked function of libc")
    print("\n".join(found) if found else f"{len(args.files)} binaries, nothing wrong")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
