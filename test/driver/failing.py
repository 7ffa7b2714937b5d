#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The driver with one allocation of the engine failing: it works, or says why not.

    failing.py DRIVER FAIL_ALLOC [--all]       FAIL_ALLOC is the library of test/fail_alloc.c
"""
import os
import re
import subprocess
import sys
import tempfile

COMMANDS = (["run", "--test", "--cpu", "--fp16"], ["verify", "--test", "--cpu"], ["perf", "--model", "mlp", "--cpu", "-n", "1"])
EACH = 20  # allocations that fail, evenly apart


def run(driver, library, command, n, report):
    open(report, "w").close()
    environment = dict(os.environ, LD_PRELOAD=library, FAIL_ALLOC=str(n), FAIL_ALLOC_REPORT=report)
    return subprocess.run([driver, *command, "--threads", "1"], env=environment, capture_output=True, text=True, errors="replace", timeout=120)


def main():
    driver, library = sys.argv[1:3]
    bad = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report")
        for command in COMMANDS:
            run(driver, library, command, 0, report)
            with open(report, encoding="utf-8") as f:
                count = max(map(int, re.findall(r"\d+", f.read())), default=0)
            step = 1 if "--all" in sys.argv else max(1, count // EACH)
            for n in range(1, count + 1, step):
                done = run(driver, library, command, n, report)
                tried += 1
                if done.returncode not in (0, 1) or (done.returncode == 1 and "[ERROR]" not in done.stderr):
                    bad += 1
                    print(" ".join(command), f"allocation {n} of {count}: exit code {done.returncode}", done.stderr[-300:])
    print(f"{tried} runs, {bad} bad")
    return bad > 0 or tried < len(COMMANDS)


if __name__ == "__main__":
    sys.exit(main())
