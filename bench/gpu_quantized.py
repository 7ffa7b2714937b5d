#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Quantised models on a card, each beside the float model it was made of, through quantize_fp16.

    quantized.py make DIR --batch --models resnet50 ... first: NAME_float.onnx and NAME_qdq.onnx, _tensor, _qop and _dyn
    quantized.py draw DIR                               or: twenty that nobody chose, each in a kind of its own
    PYTHONPATH=build/python python3 bench/gpu_quantized.py DIR [--models resnet50] [--kinds qdq] [--batches 1 32 256]

Both run from their files, inputs and results in the card's memory, in turns in one process: a group is as many runs in a
row as fill --seconds, its time the host's clock around them and one wait at the end, divided by their number; the
figure is the median of --groups groups. Results are compared first, with target("cpu"), which is within one step of
the reference's integers, on inputs drawn by a seed: the difference is in steps of the result, its root mean square and the largest.
Of RetinaNet the file holds the convolutions, up to those of the heads (bench/free_batch.py). Without --models and --kinds all files of DIR are taken. --json FILE keeps the rows. --steps N prints the first N
characters of what each step is.
"""
import argparse
import glob
import json
import os
import statistics
import sys
import time

os.environ.setdefault("MIGRAPHX_GPU_DEVICE", "cuda")
import migraphx  # noqa: E402
import numpy as np  # noqa: E402

import quantized  # noqa: E402


def sizes_of(shape, batch, tokens):
    """Of texts `tokens` each."""
    text = "int" in shape.type_string() and len(shape.lens()) == 2
    return [batch, tokens] if text else [batch, *shape.lens()[1:]]


def values_of(rng, name, shape):
    """Words are any of 100, kinds of words and masks 0 or 1: tables of kinds have two rows."""
    if "float" in shape.type_string():
        return rng.standard_normal(shape.lens()).astype(np.float32)
    return rng.integers(0, 2 if "type" in name or "mask" in name else 100, shape.lens()).astype(np.int64)


class Runner:
    def __init__(self, path, batch, fp16, tune, tokens=128):
        self.program = migraphx.parse_onnx(path)
        shapes = self.program.get_parameter_shapes()
        dims = {name: sizes_of(shape, batch, tokens) for name, shape in shapes.items()}
        self.program = migraphx.parse_onnx(path, map_input_dims=dims)
        start = time.perf_counter()
        if fp16:
            migraphx.quantize_fp16(self.program)
        self.program.compile(migraphx.get_target("gpu"), offload_copy=False, exhaustive_tune=tune)
        self.seconds = time.perf_counter() - start
        rng, self.feed, self.params = np.random.default_rng(1), {}, {}
        for name, shape in self.program.get_parameter_shapes().items():
            if "#output" in name:
                self.params[name] = migraphx.allocate_gpu(shape)
                continue
            self.feed[name] = values_of(rng, name, shape)
            self.params[name] = migraphx.to_gpu(migraphx.argument(self.feed[name]))
        self.names = dims

    def __call__(self):
        self.last = self.program.run_async(self.params, 0, "ihipStream_t")

    def results(self):
        self()
        migraphx.gpu_sync()
        return [np.array(migraphx.from_gpu(r)).astype(np.float64) for r in self.last]


def on_cpu(path, dims, feed):
    program = migraphx.parse_onnx(path, map_input_dims=dims)
    program.compile(migraphx.get_target("cpu"))
    return [np.array(r).astype(np.float64) for r in program.run(feed)]


def time_group(runner, runs):
    migraphx.gpu_sync()
    start = time.perf_counter()
    for _ in range(runs):
        runner()
    migraphx.gpu_sync()
    return 1e3 * (time.perf_counter() - start) / runs


def in_turns(runners, args):
    runs = []
    for r in runners:
        time_group(r, 3)
        runs.append(max(3, min(3000, int(1e3 * args.seconds / time_group(r, 5)))))
    groups = [[] for _ in runners]
    for _ in range(args.groups):
        for i, r in enumerate(runners):
            groups[i].append(time_group(r, runs[i]))
    return [statistics.median(g) for g in groups]


def apart(mine, theirs):
    """Differences in steps: the smallest distance of two results where there are few, else a 255th of their range."""
    worst = (0.0, 0.0)
    for a, b in zip(mine, theirs):
        values = np.unique(b)
        step = np.diff(values).min() if 1 < len(values) <= 256 else (values[-1] - values[0]) / 255 or 1
        d = np.abs(a - b) / step
        worst = max(worst, (float(np.sqrt(np.mean(d**2))), float(d.max())), key=lambda w: w[1])
    return worst


def measure(args, name, kind, batch):
    row = {"model": name, "kind": kind, "batch": batch, "tiles": "tuned" if args.tune else "untuned"}
    paths = {"bytes": os.path.join(args.folder, f"{name}_{kind}.onnx"), "fp16": os.path.join(args.folder, f"{name}_float.onnx")}
    runners = {}
    for who, path in paths.items():
        if os.path.exists(path):
            runners[who] = Runner(path, batch, who == "fp16", args.tune)
            row[f"{who}_compile_s"] = round(runners[who].seconds, 2)
    if batch <= args.compare:
        ours = runners["bytes"]
        row["steps_rms"], row["steps_most"] = apart(ours.results(), on_cpu(paths["bytes"], {k: v for k, v in ours.names.items()}, ours.feed))
    for who, ms in zip(runners, in_turns(list(runners.values()), args)):
        row[f"{who}_ms"] = ms
    if "fp16_ms" in row:
        row["ratio"] = row["fp16_ms"] / row["bytes_ms"]
    if args.steps:
        print("\n".join(line[:args.steps] for line in runners["bytes"].program.explain().splitlines()))
    return row


def files_of(args):
    """(model, kind) of each file, those of a model behind one another."""
    stems = (os.path.basename(path)[:-len(".onnx")].rpartition("_") for path in sorted(glob.glob(os.path.join(args.folder, "*_*.onnx"))))
    there = [(name, kind) for name, _, kind in stems if kind in (*quantized.KINDS, *quantized.DRAWN)]
    return [(n, k) for n, k in there if n in (args.models or [n]) and k in (args.kinds or [k])]


def put_means(rows):
    """Of each batch: the geometric mean of the ratios, and which lines are below 1."""
    for batch in sorted({r["batch"] for r in rows if "ratio" in r}):
        of = [r for r in rows if r["batch"] == batch and "ratio" in r]
        slower = ", ".join(f"{r['model']} {r['kind']} {r['ratio']:.2f}" for r in of if r["ratio"] < 1)
        print(f"batch {batch}: {len(of)} files, geometric mean {statistics.geometric_mean(r['ratio'] for r in of):.3f}; slower: {slower or 'none'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--models", nargs="+")
    parser.add_argument("--kinds", nargs="+")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32, 256])
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--groups", type=int, default=5)
    parser.add_argument("--compare", type=int, default=8, help="the largest batch that is compared with the CPU")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--steps", type=int, default=0, help="characters of each step's line")
    parser.add_argument("--json")
    args = parser.parse_args()
    rows = []
    for name, kind in files_of(args):
        for batch in args.batches:
            try:
                rows.append(measure(args, name, kind, batch))
            except Exception as problem:
                print(f"{name} {kind} {batch}: {str(problem).splitlines()[0][:300]}", flush=True)
                continue
            print("  ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in rows[-1].items()), flush=True)
            if args.json:
                with open(args.json, "w") as f:
                    json.dump(rows, f, indent=1)
    put_means(rows)
    return not rows


if __name__ == "__main__":
    sys.exit(main())
