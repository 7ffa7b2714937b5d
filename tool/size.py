#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The size gate: how long functions and files are, how many comments and assertions they have, by folder; fails over
the hard stops. Comments are lines that hold nothing else, for each line of code; assertions are counted per 1,000 lines.

A function is what starts with a line that ends its header outside a block and ends with a '}' in column 0: true for
every file that clang-format has seen, and of device code (.gpu). Functions over 100 lines and files over 1,000 fail; so does a p95 of functions
over 50. A kernel may ask for an exemption with a comment `size: <reason>` in the line above the function.
"""
import os
import re
import subprocess
import sys

HARD_FUNCTION, HARD_FILE, P95_FUNCTION = 100, 1000, 50
# Device code that was longer when this began to look at it: the lines that a function of the file may have. These may only
# become fewer.
LONGER = {"src/targets/gpu/kernel/cache_attention.gpu": 160, "src/targets/gpu/kernel/few_units.gpu": 140,
          "src/targets/gpu/kernel/rnn_cluster.gpu": 130}
OPEN = re.compile(r"^\{")
ASSERT = re.compile(r"\b(?:static_)?assert\(")


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


def part_of(path):
    """The folder of a source; tests and all else by the first folder."""
    return os.path.dirname(path) if path.startswith("src/") else path.split("/")[0]


def marks(lines):
    """Lines of comment, lines of code, assertions."""
    text = [line.strip() for line in lines if line.strip()]
    comments = sum(line.startswith(("//", "/*", "*")) for line in text)
    return comments, len(text) - comments, sum(len(ASSERT.findall(line)) for line in text if not line.startswith("//"))


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))] if values else 0


class Part:
    """What a folder holds."""

    def __init__(self):
        self.files, self.functions, self.marks = [], [], [0, 0, 0]

    def add(self, counted):
        self.marks = [a + b for a, b in zip(self.marks, counted)]

    def join(self, other, wanted):
        if wanted:
            self.files += other.files
            self.functions += other.functions
            self.add(other.marks)

    def print(self, name):
        sizes, lengths, (comments, code, asserts) = self.files, self.functions, self.marks
        print(f"{name:24} {len(sizes):6} {sum(sizes):8} {percentile(sizes, .5):9} {percentile(sizes, .95):9} {max(sizes, default=0):8} "
              f"{len(lengths):10} {percentile(lengths, .5):7} {percentile(lengths, .95):7} {max(lengths, default=0):7} "
              f"{comments / max(code, 1):9.2f} {asserts:8} {1000 * asserts / max(sum(sizes), 1):9.1f}")


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    files = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.hpp", "*.gpu"], capture_output=True, text=True, check=True).stdout.split()
    parts, bad = {}, []
    for path in files:
        if not os.path.exists(path):
            continue
        lines = open(path, encoding="utf-8").read().split("\n")
        entry = parts.setdefault(part_of(path), Part())
        entry.files.append(len(lines) - 1)
        entry.add(marks(lines))
        if len(lines) - 1 > HARD_FILE:
            bad.append(f"{path}: {len(lines) - 1} lines")
        for name, at, length, exempt in functions(lines):
            entry.functions.append(length)
            if length > LONGER.get(path, HARD_FUNCTION) and not exempt and not path.startswith("test/"):
                bad.append(f"{path}:{at}: {name} has {length} lines")
    print(f"{'part':24} {'files':>6} {'lines':>8} {'file p50':>9} {'file p95':>9} {'longest':>8} {'functions':>10} {'fn p50':>7} {'fn p95':>7} "
          f"{'fn max':>7} {'comments':>9} {'asserts':>8} {'per 1000':>9}")
    source, every = Part(), Part()
    for name, part in sorted(parts.items()):
        part.print(name)
        source.join(part, name.startswith("src/"))
        every.join(part, name != "test")
    source.print("src")
    every.print("all but tests")
    if percentile(every.functions, 0.95) > P95_FUNCTION:
        bad.append(f"functions p95 is {percentile(every.functions, 0.95)}, above {P95_FUNCTION}")
    for line in bad:
        print("size:", line)
    print("size:", "over the limits" if bad else "within the limits")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
