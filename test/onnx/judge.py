#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs cases with mgx-run-onnx and judges the failures by a list of expected ones.

    judge.py [--build build] [--cases build/suite] [--target ref] [--jobs 1]
             [--expected test/onnx/expected_failures.txt] [--kinds node ...] [--left] [-- options of mgx-run-onnx]

On a card (--target gpu, the card is MGX_TEST_DEVICE) most of a case is the start of its process and the
compiling of its kernels, so run many side by side (--jobs 16). A case is whole if kernels of the
target computed every step of its last run; of the others the host computed some. With --left these
are listed, by the operators that the host computed.

Exits with 1 on a failure that is not in the list, and on a case in the list that passes: the list
says what is true.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def read_expected(path, target="ref"):
    """Cases with their reasons; a case that fails on one target alone has its name in front, as in "ref node/...: why"."""
    expected = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                case, reason = line.rstrip("\n").split(": ", 1)
                only, _, case = case.rpartition(" ")
                if only in ("", target):
                    expected[case] = reason
    return expected


def run(runner, cases, kinds, options, jobs):
    """The runner's text and its failures: case -> first line of why."""
    commands = [[runner, *options, "--part", f"{i}/{jobs}", *(os.path.join(cases, kind) for kind in kinds)] for i in range(jobs)]
    started = [subprocess.Popen(c, stdout=subprocess.PIPE, text=True) for c in commands]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        texts = list(pool.map(lambda process: process.communicate()[0], started))
    text, failed = "".join(texts), {}
    for line in text.splitlines():
        match = re.match(r"FAILED (\S+): (.*)", line)
        if match:
            failed[os.path.relpath(match[1], cases).replace(os.sep, "/")] = match[2]
    tables = [re.search(r"^all +(\d+) passed +(\d+) failed +(\d+) whole", t, re.MULTILINE) for t in texts]
    return text, failed, None if None in tables else [sum(int(t[i]) for t in tables) for i in (1, 2, 3)]


def print_left(text, cases):
    """The cases that the host computed some of, by the set of operators; most cases first."""
    left = {}
    for case, operators in re.findall(r"^passed (\S+), left to the host: *(.*)$", text, re.MULTILINE):
        left.setdefault(" ".join(sorted(set(operators.split()))), []).append(os.path.relpath(case, cases))
    for operators, names in sorted(left.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"{len(names):5} {operators}: {' '.join(os.path.basename(name) for name in sorted(names))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--cases")
    parser.add_argument("--target", default="ref")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--expected", default=os.path.join(HERE, "expected_failures.txt"))
    parser.add_argument("--kinds", nargs="*", default=[""], help="folders of the cases, for all")
    parser.add_argument("--left", action="store_true", help="list what the host computes")
    parser.add_argument("options", nargs="*", help="for mgx-run-onnx")
    args = parser.parse_args()
    cases = args.cases or os.path.join(args.build, "suite")
    expected = read_expected(args.expected, args.target)
    options = args.options + (["--target", args.target] if args.target != "ref" else [])
    options += ["--verbose"] if args.left else []
    text, failed, table = run(os.path.join(args.build, "bin", "mgx-run-onnx"), cases, args.kinds, options, args.jobs)
    if not table:
        sys.exit(f"the runner did not come to an end:\n{text[-2000:]}")
    news = {case: why for case, why in failed.items() if case not in expected}
    passes = [case for case in expected
              if case not in failed and os.path.isdir(os.path.join(cases, case)) and
              any(case.startswith(kind) for kind in args.kinds)]
    for case, why in sorted(news.items()):
        print(f"FAILED {case}: {why}")
    for case in sorted(passes):
        print(f"PASSES NOW {case}: take it off the list ({expected[case]})")
    print(f"{table[0]} passed, {table[1]} failed, {len(failed) - len(news)} of them expected")
    if args.target != "ref":
        print(f"{table[2]} of those that passed are whole: no step was left to the host")
    if args.left:
        print_left(text, cases)
    return 1 if news or passes else 0


if __name__ == "__main__":
    sys.exit(main())
