#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs cases with mgx-run-onnx and judges the failures by a list of expected ones.

    judge.py [--build build] [--cases build/suite] [--target ref]
             [--expected test/onnx/expected_failures.txt] [-- options of mgx-run-onnx]

Exits with 1 on a failure that is not in the list, and on a case in the list that passes: the list
says what is true.
"""
import argparse
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


def run(runner, cases, options):
    """The runner's text and its failures: case -> first line of why."""
    text = subprocess.run([runner, *options, cases], capture_output=True, text=True, check=False).stdout
    failed = {}
    for line in text.splitlines():
        match = re.match(r"FAILED (\S+): (.*)", line)
        if match:
            failed[os.path.relpath(match[1], cases).replace(os.sep, "/")] = match[2]
    return text, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--cases")
    parser.add_argument("--target", default="ref")
    parser.add_argument("--expected", default=os.path.join(HERE, "expected_failures.txt"))
    parser.add_argument("options", nargs="*", help="for mgx-run-onnx")
    args = parser.parse_args()
    cases = args.cases or os.path.join(args.build, "suite")
    expected = read_expected(args.expected, args.target)
    options = args.options + (["--target", args.target] if args.target != "ref" else [])
    text, failed = run(os.path.join(args.build, "bin", "mgx-run-onnx"), cases, options)
    table = re.search(r"^all +(\d+) passed +(\d+) failed", text, re.MULTILINE)
    if not table:
        sys.exit(f"the runner did not come to an end:\n{text[-2000:]}")
    news = {case: why for case, why in failed.items() if case not in expected}
    passes = [case for case in expected
              if case not in failed and os.path.isdir(os.path.join(cases, case))]
    for case, why in sorted(news.items()):
        print(f"FAILED {case}: {why}")
    for case in sorted(passes):
        print(f"PASSES NOW {case}: take it off the list ({expected[case]})")
    print(f"{table[1]} passed, {table[2]} failed, {len(failed) - len(news)} of them expected")
    return 1 if news or passes else 0


if __name__ == "__main__":
    sys.exit(main())
