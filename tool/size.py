#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The size gate: how long functions and files are, per part of the tree; fails over the hard stops.

A function is what starts with a line that ends its header outside a block and ends with a '}' in column 0: true for
every file that clang-format has seen. Functions over 100 lines and files over 1,000 fail; so does a p95 of functions
over 50. A kernel may ask for an exemption with a comment `size: <reason>` in the line above the function.
"""
import os
import re
import subprocess
import sys

HARD_FUNCTION, HARD_FILE, P95_FUNCTION = 100, 1000, 50
OPEN = re.compile(r"^\{")


def functions(lines):
    """Yield (name, first line, length, exempt) of each function body found."""
    start = None
    for i, line in enumerate(lines):
        if OPEN.match(line) and start is None:
            head = i
            while head > 0 and lines[head - 1].strip() and not lines[head - 1].startswith(("}", "#", "//")):
                head -= 1
            text = " ".join(lines[head:i])
            if "(" in text and not text.lstrip().startswith(("struct", "enum", "union")) or re.match(r"(struct|enum) \w+ \*?\w+\(", text):
                start = head
        elif line.startswith("}") and start is not None:
            text = " ".join(lines[start:i])
            name = re.search(r"(\w+)\(", text)
            exempt = start > 0 and "size:" in lines[start - 1]
            yield (name.group(1) if name else "?"), start + 1, i - start + 1, exempt
            start = None
        elif line.startswith("}"):
            start = None


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))] if values else 0


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    files = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.hpp"], capture_output=True, text=True, check=True).stdout.split()
    parts, bad = {}, []
    for path in files:
        if not os.path.exists(path):
            continue
        lines = open(path, encoding="utf-8").read().split("\n")
        part = "/".join(path.split("/")[:2]) if path.startswith(("src/", "test/")) else path.split("/")[0]
        if part.startswith("test/"):
            part = "test"
        entry = parts.setdefault(part, ([], []))
        entry[0].append(len(lines) - 1)
        if len(lines) - 1 > HARD_FILE:
            bad.append(f"{path}: {len(lines) - 1} lines")
        for name, at, length, exempt in functions(lines):
            entry[1].append(length)
            if length > HARD_FUNCTION and not exempt and not path.startswith("test/"):
                bad.append(f"{path}:{at}: {name} has {length} lines")
    print(f"{'part':16} {'files':>6} {'lines':>8} {'file p50':>9} {'file p95':>9} {'longest':>8} {'functions':>10} {'fn p50':>7} {'fn p95':>7} {'fn max':>7}")
    every_file, every_function = [], []
    for part, (sizes, lengths) in sorted(parts.items()):
        print_row(part, sizes, lengths)
        if part != "test":
            every_file += sizes
            every_function += lengths
    print_row("all but tests", every_file, every_function)
    if percentile(every_function, 0.95) > P95_FUNCTION:
        bad.append(f"functions p95 is {percentile(every_function, 0.95)}, above {P95_FUNCTION}")
    for line in bad:
        print("size:", line)
    print("size:", "over the limits" if bad else "within the limits")
    return 1 if bad else 0


def print_row(part, sizes, lengths):
    print(f"{part:16} {len(sizes):6} {sum(sizes):8} {percentile(sizes, .5):9} {percentile(sizes, .95):9} {max(sizes, default=0):8} "
          f"{len(lengths):10} {percentile(lengths, .5):7} {percentile(lengths, .95):7} {max(lengths, default=0):7}")


if __name__ == "__main__":
    sys.exit(main())
