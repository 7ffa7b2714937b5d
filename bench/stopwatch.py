# SPDX-License-Identifier: MIT
"""Whether what `migraphx-driver perf` prints is true, by a stopwatch outside of it.

    stopwatch.py [--driver FILE] [--watch FILE] [--rounds N] [--target cpu] [--threads N] MODEL.onnx ...

Two stopwatches time the very runs that perf reports, so that what other work on the machine adds is in both:

    run    a library that is preloaded times every call of the engine, by another clock (stopwatch.c): the
           first call is the warm-up, of the next the mean of the middle half is taken, as perf does
    pipe   this script notes when the driver's line about the end of the warm-up and the first line of its
           report arrive: what lies between must hold all runs, timed and profiled, and little more

For every model, in every round: total and mean against the first stopwatch (wanted within 3 %); the wall's
time of all runs by both stopwatches; the sum over instructions against the profiled runs as they were
watched and against the total (within 10 %); the overhead against what an empty program takes and one
reading of the clock for every instruction. Printed are the medians of the rounds and, of the first three,
the worst; `busy` is the share of the timed runs in which the driver's thread had a core: where others take
it, a run is longer than the sum of its instructions, each of which is a mean of its undisturbed half. The
sum is held against the total only in rounds with 95 % or more. The overhead is the least of the rounds.
Exits with 1 where one is not as wanted.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

EMPTY = 'module: "main"\nx = @param:x -> float_type, {1}, {1}\nmain:@1 = @return(x)\n\n'
READING_MS = 0.0002 # two readings of the clock
LIBRARY = os.path.join(os.path.dirname(__file__), "../build")


def middle_mean(values):
    values = sorted(values)
    drop = len(values) // 4
    return statistics.fmean(values[drop:len(values) - drop])


def piped(words, environment):
    """The report, and milliseconds between the arrival of two lines: the runs' begin, and the report."""
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(words, stdout=out, stderr=subprocess.PIPE, text=True, env=dict(environment, MIGRAPHX_LOG_LEVEL="info"))
        begin = end = None
        for line in process.stderr:
            if "Running performance report" in line:
                begin = time.monotonic()
            elif "] Timed " in line:
                end = time.monotonic()
        if process.wait():
            raise subprocess.CalledProcessError(process.returncode, words)
        out.seek(0)
        return json.loads(out.read()), (end - begin) * 1e3


def perf(options, path, runs):
    with tempfile.NamedTemporaryFile("r") as times:
        environment = dict(os.environ, LD_PRELOAD=options.watch, MGX_STOPWATCH=times.name)
        words = [options.driver, "perf", f"--{options.target}", "--threads", str(options.threads), "-n", str(runs), "--json", path]
        report, piped_ms = piped(words, environment)
        rows = [line.split() for line in times]
    watched = {kind: [int(ns) * 1e-6 for name, ns in rows if name == kind] for kind in ("run", "profile")}
    timed, profiled = watched["run"][1:runs + 1], watched["profile"][:runs] # behind them the limits are measured
    return {"total": report["total_ms"]["average"], "mean": report["total_ms"]["mean"], "sum": report["instructions_ms"],
            "overhead": report["overhead_ms"][0], "busy": report["busy"], "instructions": len(report["instructions"]),
            "watched": middle_mean(timed), "watched mean": statistics.fmean(timed), "watched profile": middle_mean(profiled),
            "all": watched["run"][0] + sum(timed) + sum(profiled), "piped": piped_ms}


def ratios(row):
    return {"total": row["total"] / row["watched"], "mean": row["mean"] / row["watched mean"], "pipe": row["piped"] / row["all"],
            "profile": row["sum"] / row["watched profile"], "sum": row["sum"] / row["total"]}


def check(options, path, empty):
    first = perf(options, path, 5)
    runs = max(20, min(2000, int(options.seconds * 1e3 / first["total"])))
    rows, nothing = [], []
    for _ in range(options.rounds):
        rows.append(perf(options, path, runs))
        nothing.append(perf(options, empty, 2000))
    found = [ratios(row) for row in rows]
    quiet = [ratio["sum"] for ratio, row in zip(found, rows) if row["busy"] >= 0.95]
    worst = {name: max((ratio[name] for ratio in found), key=lambda x: abs(x - 1)) for name in ("total", "mean", "pipe")}
    total = statistics.median(row["total"] for row in rows)
    overhead = min(row["overhead"] for row in rows) # what disturbs only adds
    bound = min(row["total"] for row in nothing) + READING_MS * first["instructions"]
    good = [abs(worst["total"] - 1) <= 0.03, abs(worst["mean"] - 1) <= 0.03, not quiet or abs(statistics.median(quiet) - 1) <= 0.1,
            overhead <= bound]
    cells = [f"{runs:5} {total:9.4f}"]
    cells += [f"{statistics.median(ratio[name] for ratio in found):6.3f} {worst[name]:6.3f}" for name in worst]
    cells += [f"{statistics.median(ratio['profile'] for ratio in found):6.3f}",
              f"{statistics.median(quiet):6.3f}" if quiet else "     -", f"{overhead:8.5f} {bound:8.5f}",
              f"{statistics.median(row['busy'] for row in rows):5.2f}", "good" if all(good) else "BAD"]
    print(f"{os.path.basename(path):22} " + "  ".join(cells), flush=True)
    return all(good)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--driver", default=os.path.join(LIBRARY, "bin/migraphx-driver"))
    parser.add_argument("--watch", default=os.path.join(LIBRARY, "lib/mgx-stopwatch.so"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="that the timed runs of a process take")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    options.watch = os.path.abspath(options.watch)
    print(f"{'':22} {'':5} {'':9}  {'total':>13}  {'mean':>13}  {'pipe':>13}  {'sum of instructions':>14}  {'overhead':>17}")
    print(f"{'model':22} {'runs':>5} {'ms':>9}  {'median':>6} {'worst':>6}  {'median':>6} {'worst':>6}  {'median':>6} {'worst':>6}  "
          f"{'/ run':>6}  {'/total':>6}  {'ms':>8} {'allowed':>8}  {'busy':>5}")
    with tempfile.TemporaryDirectory() as folder:
        empty = os.path.join(folder, "empty.txt")
        with open(empty, "w", encoding="ascii") as f:
            f.write(EMPTY)
        return not all([check(options, path, empty) for path in options.models])


if __name__ == "__main__":
    sys.exit(main())
