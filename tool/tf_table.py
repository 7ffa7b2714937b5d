#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the table of TensorFlow operators in docs/tensorflow.md from the rules in src/tf.

    tf_table.py            rewrites the table
    tf_table.py --check    fails if it is not what the code says"""
import glob
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
DOC = os.path.join(ROOT, "docs", "tensorflow.md")
BEGIN, END = "<!-- operators: made by tool/tf_table.py -->", "<!-- end of operators -->"


def names(path):
    with open(path) as file:
        return sorted(re.findall(r'\.name = "([^"]+)"', file.read()))


def table():
    rows = ["| rules in `src/tf/` | operators |", "|---|---|"]
    for path in ["simple.c"] + sorted(os.path.relpath(p, os.path.join(ROOT, "src", "tf")) for p in glob.glob(os.path.join(ROOT, "src", "tf", "op", "*.c"))):
        found = names(os.path.join(ROOT, "src", "tf", path))
        if found:
            rows.append(f"| `{path}` | {', '.join(found)} |")
    return "\n".join(rows)


def main():
    with open(DOC) as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    made = before + BEGIN + "\n" + table() + "\n" + END + rest.split(END)[1]
    if "--check" in sys.argv:
        if made != text:
            print("tf_table: docs/tensorflow.md is not what src/tf says: run tool/tf_table.py")
        return made != text
    with open(DOC, "w") as file:
        file.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
