#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs what a build holds under an emulator: every C program of test/, the driver's cases, the example that reads digits.

    emulated.py --build build-arm --leave test/emulated/arm.txt -- qemu-aarch64 -L /usr/aarch64-linux-gnu

It needs no ctest, so an ordinary build can be run on another processor than its own. --leave names tests that are left
out, one a line, each with its reason; a name that is no test is an error, so the list cannot outlive what it speaks of.
Emulation is 10 to 100 times slower, so tests with random problems try --part of them only: every fifth, unless told.
A test that fails shows the end of what it said; all of it is in BUILD/emulated/. Fails where a test fails, takes longer
than --limit seconds, or was not built.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def wrapper(folder, program, emulator):
    """A command that is the program under the emulator, for scripts that take one word."""
    path = folder / program.name
    path.write_text("#!/bin/sh\nexec " + " ".join(f'"{word}"' for word in [*emulator, str(program)]) + ' "$@"\n')
    path.chmod(0o755)
    return str(path)


def commands(build, folder, emulator):
    """name -> (command, folder to run it in); the names are those of ctest."""
    found = {}
    for source in sorted((ROOT / "test").rglob("*_test.c")):
        name = str(source.relative_to(ROOT / "test")).removesuffix("_test.c")
        found[name] = ([*emulator, str(build / "test" / ("test-" + name.replace("/", "-")))], ROOT)
    driver = wrapper(folder, build / "bin" / "migraphx-driver", emulator)
    cases = ROOT / "test" / "driver"
    for case in sorted(cases.glob("*.case")):
        found["driver/" + case.stem] = (["sh", str(cases / "run.sh"), driver, str(case)], cases)
    digits = [str(build / "bin" / "digits"), "examples/digits/digits.onnx", "examples/digits/test.csv"]
    found["examples/digits"] = ([*emulator, *digits], ROOT)
    return found


def left_out(path, names):
    """name -> reason, as the list has them."""
    left = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition(" ")
            if name not in names or not reason.strip():
                sys.exit(f"{path}: '{name}' is no test, or has no reason")
            left[name] = reason.strip()
    return left


def run(name, command, where, folder, limit, environment):
    """(name, how it ended ("" is well), seconds); what it says goes to a file."""
    log = folder / (name.replace("/", "-") + ".log")
    start = time.monotonic()
    with log.open("wb") as out:
        try:
            code = subprocess.run(command, cwd=where, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=limit, env=environment).returncode
            ended = f"exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            ended = f"not done after {limit} s"
        except OSError as error:
            ended = str(error)
    return name, ended, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--leave", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=int, default=1200)
    parser.add_argument("--part", type=int, default=5, help="try one in so many random problems")
    parser.add_argument("--only", default="", help="tests whose name has this regular expression")
    parser.add_argument("emulator", nargs="+")
    args = parser.parse_args()
    build = args.build.resolve()
    folder = build / "emulated"
    folder.mkdir(exist_ok=True)
    tests = commands(build, folder, args.emulator)
    left = left_out(args.leave, tests)
    failed = []
    environment = {**os.environ, "MGX_TEST_PART": str(args.part)}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        chosen = [name for name in tests if name not in left and re.search(args.only, name)]
        waiting = [pool.submit(run, name, *tests[name], folder, args.limit, environment) for name in chosen]
        for one in concurrent.futures.as_completed(waiting):
            name, ended, seconds = one.result()
            print(f"{'FAILED' if ended else 'passed'} {seconds:6.1f} s  {name}  {ended}".rstrip(), flush=True)
            if ended:
                failed.append(name)
    for name in sorted(failed):
        log = folder / (name.replace("/", "-") + ".log")
        print(f"--- {name}", *log.read_text(errors="replace").splitlines()[-10:], sep="\n")
    for name, reason in sorted(left.items()):
        print(f"left out  {name}: {reason}")
    print(f"{len(waiting) - len(failed)} passed, {len(failed)} failed, {len(left)} left out, of {len(tests)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
