#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""fail_alloc.py BUILD [--all] [--seconds S] [--only NAME]: runs every test program of a build with
allocations of the engine failing (test/fail_alloc.c), and judges: no crash, no hang, no write out of
bounds, no block lost. Checks that fail are expected: memory was missing.

A run fails allocation n and every 1009th after it; n goes from 1 to 1009 (--all), or over as many of
these as fit into S seconds a program (default 3), from a random one on, evenly apart. Programs that
bring a malloc of their own fail their allocations themselves and are left out here. What the C++ ones
ask for themselves is not the engine's and does not fail. Nor are those of targets/gpu run: a card's
library and the compiler within it ask for memory below our calls, and end the program without."""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

PERIOD = 1009
FOLDERS = ("base", "ir", "op", "pass", "import", "onnx", "tf", "quant", "format", "plan", "far",
           "api", "targets")
LIMIT = 120  # seconds a run
TEST_GAVE_UP = 97  # exit status of a test that read through the NULL it was given


def programs(build, tests, only):
    """The (name, path, folder to run in) of every test program of the folders."""
    for source in sorted([*tests.rglob("*_test.c"), *tests.rglob("*_test.cpp")]):
        name = str(source.relative_to(tests)).rsplit("_test.", 1)[0]
        if name.startswith("targets/gpu"):
            continue
        if name.split("/")[0] in FOLDERS and (not only or only in name):
            program = build / "test" / ("test-" + name.replace("/", "-"))
            if not program.exists():
                sys.exit("%s is not built: make tests" % program)
            yield name, program, program.parent if source.suffix == ".cpp" else tests.parent


def run(program, library, n, folder):
    """One run: exit status, what the library reports, seconds."""
    with tempfile.NamedTemporaryFile("r") as report:
        environment = dict(
            os.environ,
            LD_PRELOAD=str(library),
            FAIL_ALLOC=str(n),
            FAIL_ALLOC_PERIOD=str(PERIOD),
            FAIL_ALLOC_REPORT=report.name,
        )
        start = time.monotonic()
        try:
            done = subprocess.run(
                [program], env=environment, cwd=folder, timeout=LIMIT, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
            )
            status = done.returncode
        except subprocess.TimeoutExpired:
            status = "more than %d seconds" % LIMIT
        return status, report.read(), time.monotonic() - start


def explain(report):
    """The report with addresses turned into functions and lines."""
    lines = []
    for line in report.splitlines():
        if line.startswith("  at ") and "+0x" in line:
            path, offset = line[5:].rsplit(" +", 1)
            found = subprocess.run(
                ["addr2line", "-fpe", path, offset], capture_output=True, text=True, check=False
            )
            line = "  " + (found.stdout.strip() or line.strip())
        lines.append(line)
    return "\n".join(lines)


def starts(count, seconds, budget, everything):
    """The allocations that fail first, one a run."""
    most = min(PERIOD, count)
    if everything:
        return range(1, most + 1)
    runs = max(1, min(most, int(budget / max(seconds, 1e-3))))
    first = random.randrange(most)
    return [1 + (first + i * most // runs) % most for i in range(runs)]


def judge(name, program, arguments, library, folder):
    """Runs one program as often as it gets; returns runs and failures."""
    status, report, seconds = run(program, library, 0, folder)
    counted = [int(line.split()[1]) for line in report.splitlines() if line.startswith("counted ")]
    if not counted or counted[-1] == 0:
        print("%-28s none of the engine's allocations pass here" % name)
        return 0, 0
    bad = 0
    plan = starts(counted[-1], seconds, arguments.seconds, arguments.all)
    for n in plan:
        status, report, _ = run(program, library, n, folder)
        if isinstance(status, int) and 0 <= status <= TEST_GAVE_UP:  # the test's own verdict
            continue
        bad += 1
        if bad <= arguments.show:
            print("%s, allocation %d: status %s\n%s" % (name, n, status, explain(report)))
    print("%-28s %8d allocations, %4d runs, %d bad" % (name, counted[-1], len(plan), bad), flush=True)
    return len(plan), bad


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--all", action="store_true", help="every n")
    parser.add_argument("--seconds", type=float, default=3, help="a program")
    parser.add_argument("--only", help="programs whose name contains this")
    parser.add_argument("--show", type=int, default=2, help="findings printed in full a program")
    parser.add_argument("--seed", type=int, help="of the choice of n")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.randrange(1 << 30)
    random.seed(seed)
    root = pathlib.Path(__file__).resolve().parent.parent
    build = arguments.build.resolve()
    library = build / "lib" / "libfail_alloc.so"
    runs = bad = 0
    print("seed %d" % seed)
    for name, program, folder in programs(build, root / "test", arguments.only):
        r, b = judge(name, program, arguments, library, folder)
        runs, bad = runs + r, bad + b
    print("%d runs, %d bad" % (runs, bad))
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
