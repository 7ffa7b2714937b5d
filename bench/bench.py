#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The benchmark: this engine, ONNX Runtime and OpenVINO on the models of the zoo, side by side.

    bench.py --build build [--models NAME ...] [--threads 1 2] [--seconds 2] [--csv bench/results.csv]
             [--sizes N=8 ...] [--isa avx2] [--scaling]

All engines get the same model file, the same inputs and the same number of threads. Outputs are compared before
anything is timed (relative RMS at most 1e-4; integers equal; detections of equal score in any order). Then the engines run in turns, one call each, round after
round, so that noise of a shared machine meets all alike; a time is the median of its rounds, and a ratio the median of the rounds' ratios, because a
neighbour that slows the machine for seconds slows all engines of a round. `first` is the time
from the file on disk to the first answer, in a process of its own, and `peak` that process's peak memory: medians of three
processes each, the engines in turns, another one first every time. (A virtual machine may have to ask its host for every page
that no process had before: whoever comes first pays for all.)

`share` is how much of the machine's FMA peak (measured next to it) the products reach; Winograd computes fewer than are
counted, so it may pass 100 %.

`--sizes` sets free dimensions (N is the batch). `--isa` holds this engine and OpenVINO to an instruction set by their switches.
ONNX Runtime has none: with `--isa avx2` a preloaded library (hide_avx512.c) shows all engines a processor without AVX-512, where
the processor allows that; else ONNX Runtime runs as ever, and the table says so.

`--scaling` asks instead what threads are worth: each engine against itself, once for every number of `--threads`, in turns as above.

Prints a table and writes it as CSV. Ratios above 1 mean that this engine is faster than the peer.
"""
import argparse
import csv
import gc
import itertools
import math
import os
import subprocess
import sys
import time

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "zoo"))
import zoo  # noqa: E402

ENGINES = ("ours", "ort", "openvino")


class Ours:
    def __init__(self, path, feed, threads):
        import migraphx
        self.program = migraphx.parse_onnx(path, map_input_dims={k: list(v.shape) for k, v in feed.items()})
        self.program.compile(migraphx.get_target("cpu"), threads=threads)
        self.feed = {k: v for k, v in feed.items() if k in self.program.get_parameter_names()}

    def __call__(self):
        return self.program.run(self.feed)

    def gflop(self):
        """Multiplications and additions of all products, in 10^9."""
        return float(next(line.split()[1] for line in self.program.explain().splitlines() if line.startswith("products:")))


class Ort:
    def __init__(self, path, feed, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.feed = feed

    def __call__(self):
        return self.session.run(None, self.feed)


class OpenVino:
    def __init__(self, path, feed, threads):
        import openvino
        core = openvino.Core()
        model = core.read_model(path)
        model.reshape({k: list(v.shape) for k, v in feed.items()})
        config = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1}
        self.request = core.compile_model(model, "CPU", config).create_infer_request()
        self.feed = feed
        self.outputs = len(model.outputs)

    def __call__(self):
        self.request.infer(self.feed, share_inputs=True, share_outputs=True)
        return [self.request.get_output_tensor(i).data for i in range(self.outputs)]


MAKERS = {"ours": Ours, "ort": Ort, "openvino": OpenVino}


def difference(results, reference):
    """The largest relative RMS over all results; infinity where shapes or integers differ."""
    worst = 0.0
    for a, b in zip(untie(results, reference), reference):
        a, b = np.asarray(a), np.asarray(b)
        if a.size != b.size:
            return math.inf
        a = a.reshape(b.shape)
        if b.dtype.kind == "f":
            scale = float(np.sqrt((b.astype(np.float64) ** 2).sum()))
            worst = max(worst, float(np.sqrt(((a.astype(np.float64) - b) ** 2).sum())) / max(scale, 1e-30))
        elif not np.array_equal(a, b):
            return math.inf
    return worst


def untie(results, reference):
    """Results with rows exchanged where the reference's scores tie.

    Detections come ordered by score. Where neighbours' scores are equal or one float epsilon apart (relative), their order hangs
    on the order of some sum long before, and every engine has its own; there, and only there, rows of all results are brought
    into the order in which they are closest to the reference. Values are then compared as ever: nothing else is forgiven.
    """
    results, reference = [np.array(r) for r in results], [np.asarray(r) for r in reference]
    count = {r.shape[0] for r in reference if r.ndim}
    scores = [r for r in reference if r.ndim == 1 and r.dtype.kind == "f"]
    if len(reference) < 3 or len(count) != 1 or len(scores) != 1 or any(a.shape != b.shape for a, b in zip(results, reference)):
        return results
    score = scores[0].astype(np.float64)
    apart = np.flatnonzero(np.abs(np.diff(score)) > np.finfo(np.float32).eps * np.abs(score[1:])) + 1
    for run in np.split(np.arange(len(score)), apart):
        if not 2 <= len(run) <= 8:
            continue
        def distance(order):
            rows = ((a[list(order)].astype(np.float64), b[run].astype(np.float64)) for a, b in zip(kept, reference))  # noqa: B023
            return sum(float(np.abs(a - b).sum()) for a, b in rows)
        kept = [r.copy() for r in results]
        best = list(min(itertools.permutations(run), key=distance))
        for r, old in zip(results, kept):
            r[run] = old[best]
    return results


SETTLE = 0.02  # seconds


def rounds(runners, seconds, settle):
    """Times in ms, by round; the engines take turns until each has had `seconds`, at least 5 rounds. With more than one thread
    they `settle`: the workers of the engine before spin on for a while after its call, on the core that the next one
    needs. So each turn waits, runs once untimed, then is timed."""
    times = {name: [] for name in runners}
    until = time.perf_counter() + seconds * len(runners)
    while len(next(iter(times.values()))) < 5 or time.perf_counter() < until:
        for name, run in runners.items():
            if settle:
                time.sleep(SETTLE)
                run()
            start = time.perf_counter()
            run()
            times[name].append(1e3 * (time.perf_counter() - start))
        if len(next(iter(times.values()))) >= 2000:
            break
    return {name: np.array(t) for name, t in times.items()}


def first_answer(args, engine, path, name, threads):
    """(ms to the first answer, peak MB) of a fresh process; None where the engine fails."""
    command = [sys.executable, os.path.abspath(__file__), "--build", args.build, "--first", engine, path, name, str(threads), "--sizes", *args.sizes]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    words = done.stdout.split()[-2:]
    return (float(words[0]), float(words[1])) if done.returncode == 0 and len(words) == 2 else (None, None)


FIRSTS = 3  # processes


def first_answers(args, path, name, threads):
    """{engine: (ms to the first answer, peak MB)}, medians; None where an engine fails."""
    found = {engine: [] for engine in args.engines}
    for turn in range(FIRSTS):
        at = turn % len(args.engines)
        for engine in args.engines[at:] + args.engines[:at]:
            found[engine].append(first_answer(args, engine, path, name, threads))
    return {engine: tuple(None if None in column else float(np.median(column)) for column in zip(*rows)) for engine, rows in found.items()}


def feed_of(args, name):
    return zoo.inputs(name, onnx.ModelProto.FromString(zoo.skeletons()[name]), {k: int(v) for k, v in (s.split("=") for s in args.sizes)})


def measure_first(args, engine, path, name, threads):
    feed = feed_of(args, name)
    gc.collect()
    {"ours": lambda: __import__("migraphx"), "ort": lambda: __import__("onnxruntime"), "openvino": lambda: __import__("openvino")}[engine]()
    start = time.perf_counter()
    MAKERS[engine](path, feed, threads)()
    elapsed = 1e3 * (time.perf_counter() - start)
    with open("/proc/self/status", encoding="ascii") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print(elapsed, peak / 1024)


def fma_peak(build):
    """GFLOP/s of one thread, measured now: clocks change. None where the tool was not built."""
    tool = os.path.join(build, "bin", "mgx-fma-peak")
    return float(subprocess.run([tool], capture_output=True, text=True, check=True).stdout) if os.path.exists(tool) else None


def runner_of(engine, path, feed, threads):
    """A model that has run once; None, and a line, where the engine cannot run it: that is a result too."""
    try:
        runner = MAKERS[engine](path, feed, threads)
        runner()
    except Exception as error:
        print(f"  {engine}: {str(error).splitlines()[0][:150]}", file=sys.stderr)
        return None
    return runner


def measure(args, name, threads):
    path = os.path.join(args.zoo, name + ".onnx")
    feed = feed_of(args, name)
    runners, row = {}, {"model": name, "threads": threads}
    for engine in args.engines:
        runner = runner_of(engine, path, feed, threads)
        if runner:
            runners[engine] = runner
    if "ort" in runners:
        reference = [np.array(r) for r in runners["ort"]()]
        row["error"] = difference(runners["ours"](), reference) if "ours" in runners else math.inf
    times = rounds(runners, args.seconds, threads > 1)
    medians = {engine: float(np.median(t)) for engine, t in times.items()}
    row["rounds"] = len(next(iter(times.values())))
    firsts = {} if args.quick else first_answers(args, path, name, threads)
    for engine in args.engines:
        row[engine + "_ms"] = medians.get(engine)
        if engine in firsts:
            row[engine + "_first_ms"], row[engine + "_peak_mb"] = firsts[engine]
    row["peak_gflops"] = fma_peak(args.build) if not args.isa or avx512_is_hidden(args.build) else None
    if "ours" in runners and row["peak_gflops"]:
        row["share"] = runners["ours"].gflop() / (medians["ours"] * 1e-3) / (threads * row["peak_gflops"])
    over = {e: float(np.median(times[e] / times["ours"])) for e in ("ort", "openvino") if e in times and "ours" in times}
    row["over_ort"] = over.get("ort")
    row["over_best"] = min(over.values()) if over else None
    return row


def show_scaling(args, name):
    """Each engine with more threads against itself with the first number of them: medians, their ratio, the rounds' median ratio."""
    path, feed = os.path.join(args.zoo, name + ".onnx"), feed_of(args, name)
    first, *more = args.threads
    for engine in args.engines:
        runners = {threads: runner_of(engine, path, feed, threads) for threads in args.threads}
        if None in runners.values():
            continue
        times = rounds(runners, args.seconds, True)
        for threads in more:
            one, many = times[first], times[threads]
            print(f"{name:26} {engine:9} {first} and {threads} threads {np.median(one):9.2f} {np.median(many):9.2f} ms, "
                  f"ratio {np.median(one) / np.median(many):.3f}, by rounds {np.median(one / many):.3f} ({len(one)})", flush=True)


def show(row):
    cell = lambda v, f: "-" if v is None else format(v, f)  # noqa: E731
    print(f"{row['model']:26} {row['threads']} {cell(row.get('ours_ms'), '9.2f')} {cell(row.get('ort_ms'), '9.2f')} {cell(row.get('openvino_ms'), '9.2f')} "
          f"{cell(row['over_ort'], '6.2f')} {cell(row['over_best'], '6.2f')} {cell(row.get('error'), '9.1e')} {cell(row.get('share'), '5.0%')} "
          f"{cell(row.get('ours_first_ms'), '8.0f')} {cell(row.get('ort_first_ms'), '8.0f')} {cell(row.get('ours_peak_mb'), '7.0f')} {cell(row.get('ort_peak_mb'), '7.0f')}", flush=True)


def geometric_mean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def hiding_library(build):
    return os.path.abspath(os.path.join(build, "lib", "mgx-hide-avx512.so"))


def avx512_is_hidden(build):
    return os.environ.get("LD_PRELOAD") == hiding_library(build)


def hide_avx512(build):
    """This process again, on a processor without AVX-512; returns where that cannot be."""
    library = hiding_library(build)
    if avx512_is_hidden(build):
        return
    hidden = dict(os.environ, LD_PRELOAD=library)
    if os.path.exists(library) and subprocess.run(["true"], env=hidden, check=False).returncode == 0:
        os.execve(sys.executable, [sys.executable, *sys.argv], hidden)
    print("AVX-512 cannot be hidden here: ONNX Runtime runs with all this machine has")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--zoo", help="folder of the models; made there if missing (default BUILD/zoo)")
    parser.add_argument("--models", nargs="*")
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--engines", nargs="*", default=list(ENGINES))
    parser.add_argument("--seconds", type=float, default=2.0, help="per engine and model")
    parser.add_argument("--quick", action="store_true", help="no first answers, no memory")
    parser.add_argument("--sizes", nargs="*", default=[], metavar="NAME=SIZE", help="of free dimensions")
    parser.add_argument("--isa", choices=("generic", "avx2", "avx512"))
    parser.add_argument("--scaling", action="store_true", help="what threads are worth, engine by engine")
    parser.add_argument("--csv", default=os.path.join(HERE, "results.csv"))
    parser.add_argument("--first", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    sys.path.insert(0, os.path.join(args.build, "python"))
    if args.isa:  # before any engine is loaded
        os.environ["MIGRAPHX_CPU_ISA"] = args.isa
        if args.isa == "avx2":
            hide_avx512(args.build)
        os.environ["ONEDNN_MAX_CPU_ISA"] = {"generic": "SSE41", "avx2": "AVX2", "avx512": "AVX512_CORE"}[args.isa]
    if args.first:
        return measure_first(args, args.first[0], args.first[1], args.first[2], int(args.first[3]))
    args.zoo = args.zoo or os.path.join(args.build, "zoo")
    names = args.models or sorted(zoo.skeletons())
    missing = [n for n in names if not os.path.exists(os.path.join(args.zoo, n + ".onnx"))]
    if missing:
        print(f"making {len(missing)} models in {args.zoo}")
        zoo.main(["make", args.zoo, *missing])
    if args.scaling:
        for name in names:
            show_scaling(args, name)
        return 0
    print(f"{'model':26} T {'ours ms':>9} {'ort ms':>9} {'ov ms':>9} {'/ort':>6} {'/best':>6} {'error':>9} {'share':>5} {'first':>8} {'ort':>8} {'peak MB':>7} {'ort':>7}")
    table = []
    for threads in args.threads:
        for name in names:
            table.append(measure(args, name, threads))
            show(table[-1])
        mine = [r for r in table if r["threads"] == threads]
        print(f"geometric mean, {threads} thread(s): {geometric_mean([r['over_ort'] for r in mine]) or 0:.3f} over ONNX Runtime, "
              f"{geometric_mean([r['over_best'] for r in mine]) or 0:.3f} over the faster peer", flush=True)
    with open(args.csv, "w", newline="", encoding="ascii") as f:
        writer = csv.DictWriter(f, fieldnames=list(dict.fromkeys(k for r in table for k in r)))
        writer.writeheader()
        writer.writerows({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in r.items()} for r in table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
