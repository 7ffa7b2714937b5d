#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/answers.md names tests that are there: answers.py DOCS TEST."""
import pathlib
import re
import sys


def main():
    page, root = pathlib.Path(sys.argv[1]) / "answers.md", pathlib.Path(sys.argv[2])
    bad, seen, rows = [], set(), 0
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("|") or line.startswith("|---") or cells[0] == "seen":
            continue
        rows += 1
        tests = re.findall(r"`([^`]+)`", cells[-1])
        if not tests and "declined" not in line:
            bad.append(f"no test: {cells[0]}")
        for test in tests:
            path, _, case = test.partition(": ")
            file = root / path
            seen.add(test)
            if not file.exists():
                bad.append(f"no file: {test}")
            elif case and not re.search(rf"\b{case}\b", file.read_text(encoding="utf-8")):
                bad.append(f"no case: {test}")
    for line in bad:
        print(line)
    print(f"{rows} rows, {len(seen)} tests")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
