# SPDX-License-Identifier: MIT
"""Whether what `migraphx-driver perf` prints is true, by a stopwatch outside of it.

    stopwatch.py [--driver FILE] [--rounds N] [--target cpu] [--clock wall|cpu] MODEL.onnx ...

For every model, on one thread, rounds of four processes in turns:

    time -n SHORT, time -n LONG   the stopwatch: (time of LONG - time of SHORT) / (LONG - SHORT)
    perf -n LONG                  what is asked: total, sum over instructions, overhead
    perf -n LONG, empty program   what a run costs that does nothing

The stopwatch's and perf's figures are the least of the rounds (a machine that is not quiet only adds), and each is a mean
over its runs, perf's of the middle half. Wanted: total and stopwatch within 3 %, the sum over instructions and the total
within 10 %, the overhead not above what the empty program takes and one clock reading for every instruction. Exits with 1
where one is not. The wall's clock is the stopwatch; where other work runs beside, perf drops the runs that it disturbed
and the wall does not, and the processes' own processor time (--clock cpu) comes nearer.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

EMPTY = 'module: "main"\nx = @param:x -> float_type, {1}, {1}\nmain:@1 = @return(x)\n\n'
READING_MS = 0.0002 # two readings of the clock


def children_ms():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e3


def run(words, clock=children_ms):
    """Milliseconds of a process, and what it printed."""
    start = clock()
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return clock() - start, done.stdout


def perf(options, path, runs):
    report = json.loads(run([options.driver, "perf", f"--{options.target}", "--threads", "1", "-n", str(runs), "--json", path])[1])
    return {"total": report["total_ms"]["average"], "sum": report["instructions_ms"], "overhead": report["overhead_ms"][0],
            "instructions": len(report["instructions"])}


def stopwatch(options, path, runs):
    words = [options.driver, "time", f"--{options.target}", "--threads", "1", path, "-n"]
    short = max(1, runs // 10)
    clock = children_ms if options.clock == "cpu" else lambda: time.perf_counter() * 1e3
    few, _ = run(words + [str(short)], clock)
    many, _ = run(words + [str(runs)], clock)
    return (many - few) / (runs - short)


def least(rows, key):
    return min(row[key] for row in rows)


def check(options, path, empty):
    first = perf(options, path, 5)
    runs = max(20, min(2000, int(options.seconds * 1e3 / first["total"])))
    outside, inside, nothing = [], [], []
    for _ in range(options.rounds):
        outside.append(stopwatch(options, path, runs))
        inside.append(perf(options, path, runs))
        nothing.append(perf(options, empty, 2000))
    total, instructions = least(inside, "total"), least(inside, "sum")
    overhead, idle = least(inside, "overhead"), least(nothing, "total")
    bound = idle + READING_MS * first["instructions"]
    good = [abs(total / min(outside) - 1) <= 0.03, abs(instructions / total - 1) <= 0.1, overhead <= bound]
    print(f"{os.path.basename(path):24} {min(outside):9.4f} {total:9.4f} {total / min(outside):6.3f} {instructions:9.4f} "
          f"{instructions / total:6.3f} {overhead:9.5f} {bound:9.5f} {'good' if all(good) else 'BAD'}")
    return all(good)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--driver", default=os.path.join(os.path.dirname(__file__), "../build/bin/migraphx-driver"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="that the timed runs of a process take")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    options = parser.parse_args()
    print(f"{'model':24} {'watch ms':>9} {'perf ms':>9} {'ratio':>6} {'sum ms':>9} {'ratio':>6} {'overhead':>9} {'allowed':>9}")
    with tempfile.TemporaryDirectory() as folder:
        empty = os.path.join(folder, "empty.txt")
        with open(empty, "w", encoding="ascii") as f:
            f.write(EMPTY)
        return not all([check(options, path, empty) for path in options.models])


if __name__ == "__main__":
    sys.exit(main())
