#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The zoo's models on a card, in fp32 and fp16, against ONNX Runtime in fp32 on the CPU.

    PYTHONPATH=build/python python3 bench/gpu_zoo.py [--models NAME ...] [--types fp32 fp16] [--jobs 8] [--json zoo.json]
    PYTHONPATH=build/python python3 bench/gpu_zoo.py --first [--models resnet50]

Models are made in --folder from the zoo's skeletons with frozen random weights, their answers once in --references; both are kept
for the next time. Each model and type runs in a process of its own, --jobs side by side, with --limit seconds: from the .onnx file,
quantize_fp16, compiled without a kernel cache, inputs and results on the host, run five times: on its inputs, on poisoned ones (NaN,
integers in another order), and so on, so that whatever reads what the run before left behind shows; the same inputs must give the
same bits. A result is right if the relative
RMS of its error is at most 1e-4 in fp32 and 2e-2 in fp16 and whole numbers are equal. Detectors, whose last numbers hang on ties of
scores, are judged as decisions.py says: each decision exactly by its own numbers, all else within those tolerances; what their
results look like beside the reference's, as they come, is printed in brackets.

--first measures from the .onnx file to the first answer instead, each time in a fresh process: with an empty kernel cache, then with
what that left. MIGRAPHX_GPU_DEVICE names the card. Exit status 1 if a model is off or did not end.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "zoo")]
import bench  # noqa: E402
import zoo  # noqa: E402

LIMITS = {"fp32": 1e-4, "fp16": 2e-2}
ROUNDING = {"fp32": 0.0, "fp16": 2.0**-10}
DECIDERS = ("ssd300_vgg16", "retinanet_resnet50", "maskrcnn_resnet50")


def model_path(args, name):
    return os.path.join(args.folder, name + ".onnx")


def make_model(args, name):
    if not os.path.exists(model_path(args, name)):
        subprocess.run([sys.executable, os.path.join(HERE, "zoo", "zoo.py"), "make", args.folder, name], check=True)


def make_reference(args, name):
    """Through a file of its own, so that a run cut off leaves none that is half done."""
    path = os.path.join(args.references, name + ".npz")
    if os.path.exists(path):
        return
    _, feed = inputs_of(name)
    results = bench.Ort(model_path(args, name), feed, 1)()
    np.savez_compressed(path + ".part.npz", **{f"{i:02d}": np.asarray(r) for i, r in enumerate(results)})
    os.replace(path + ".part.npz", path)


def inputs_of(name):
    model = onnx.ModelProto.FromString(zoo.skeletons()[name])
    return model, zoo.inputs(name, model)


# --- one model, in a process of its own: prints a line of JSON ---


def compiled(path, feed, kind, times):
    import migraphx
    start = time.perf_counter()
    program = migraphx.parse_onnx(path, map_input_dims={k: list(v.shape) for k, v in feed.items()})
    times["parse_s"] = time.perf_counter() - start
    start = time.perf_counter()
    if kind == "fp16":
        migraphx.quantize_fp16(program)
    times["quantize_s"] = time.perf_counter() - start
    start = time.perf_counter()
    program.compile(migraphx.get_target("gpu"))
    times["compile_s"] = time.perf_counter() - start
    return program


def run(program, feed):
    start = time.perf_counter()
    results = [np.array(r) for r in program.run({k: v for k, v in feed.items() if k in program.get_parameter_names()})]
    return results, time.perf_counter() - start


def poisoned(feed, numbers):
    """Other inputs; NaN unless they have to be numbers."""
    return {k: np.flip(v).copy() if numbers or v.dtype.kind != "f" else np.full_like(v, np.nan) for k, v in feed.items()}


def compare(results, reference, limit):
    errors = [bench.difference([a], [b]) for a, b in zip(results, reference)]
    return errors, len(results) == len(reference) and all(e <= limit for e in errors)


def judge_decisions(args, name, kind, feed, row):
    import decisions
    decided = decisions.Decided(model_path(args, name))
    path = os.path.join(args.folder, f"{name}.{kind}.open.onnx")
    decided.write_open(path)
    results, row["open_run_s"] = run(compiled(path, feed, kind, {}), feed)
    wrong, worst, where = decided.judge(feed, dict(zip(decided.outputs + decided.extra, results)), ROUNDING[kind])
    row.update(decisions=len(decided.found), wrong=wrong, worst=worst, where=where)
    return not wrong and worst <= LIMITS[kind]


def one(args, name, kind):
    row = {"model": name, "type": kind}
    _, feed = inputs_of(name)
    program = compiled(model_path(args, name), feed, kind, row)
    results, row["first_s"] = run(program, feed)
    row["same"] = True
    for _ in range(2):
        run(program, poisoned(feed, name in DECIDERS))
        again, row["run_s"] = run(program, feed)
        row["same"] &= all(np.array_equal(a, b, equal_nan=True) for a, b in zip(results, again))
    lines = program.explain().splitlines()
    row["steps"], row["on_host"] = len([t for t in lines if ": gpu::" in t]), len([t for t in lines if ": ref (" in t])
    with np.load(os.path.join(args.references, name + ".npz")) as file:
        reference = [file[k] for k in sorted(file.files)]
    row["errors"], right = compare(bench.untie(results, reference), reference, LIMITS[kind])
    if name in DECIDERS:
        right = judge_decisions(args, name, kind, feed, row)
    row["right"] = bool(right and row["same"])
    return row


# --- from the file to the first answer ---


def first(args, name, kind):
    row = {"model": name, "type": kind}
    _, feed = inputs_of(name)
    start = time.perf_counter()
    import migraphx
    row["import_s"] = time.perf_counter() - start
    whole = time.perf_counter()
    migraphx.gpu_sync()  # opens the card
    row["card_s"] = time.perf_counter() - whole
    program = compiled(model_path(args, name), feed, kind, row)
    _, row["first_s"] = run(program, feed)
    row["answer_s"] = time.perf_counter() - whole
    return row


def measure_first(args, cases):
    rows = []
    for name, kind in cases:
        folder = tempfile.mkdtemp(prefix="kernels")
        for cache in ("empty", "full", "full", "full"):
            row = child(args, "--first", name, kind, folder)
            row["cache"] = cache
            rows.append(row)
            print("  ".join([f"{name:12} {kind} {cache:5}"] + [f"{k[:-2]} {v:.3f}" for k, v in row.items() if k.endswith("_s")]), flush=True)
        shutil.rmtree(folder)
    return rows


# --- all of them ---


def child(args, how, name, kind, kernels=""):
    command = [sys.executable, "-W", "ignore", os.path.abspath(__file__), how, "--one", name, kind, "--folder", args.folder, "--references", args.references]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=args.limit, check=False, env={**os.environ, "MIGRAPHX_KERNEL_CACHE": kernels})
    except subprocess.TimeoutExpired:
        return {"model": name, "type": kind, "right": False, "why": f"not ended after {args.limit} s"}
    lines = [t for t in done.stdout.splitlines() if t.startswith("{")]
    if done.returncode or not lines:
        return {"model": name, "type": kind, "right": False, "why": (done.stderr.strip().splitlines() or [f"ended by {done.returncode}"])[-1][:300]}
    return json.loads(lines[-1])


def show(row):
    if "why" in row:
        text = row["why"]
    else:
        text = f"compile {row['compile_s']:6.2f}  first {row['first_s']:7.3f}  run {1e3 * row['run_s']:9.2f} ms  on the host {row['on_host']:4} of {row['steps'] + row['on_host']:4}  "
        errors = " ".join(f"{e:.1e}" for e in row["errors"])
        text += f"{row['worst']:.1e} and {len(row['wrong'])} of {row['decisions']} decisions wrong [{errors}]" if "worst" in row else errors
        text += "" if row["same"] else "  NOT THE SAME TWICE"
    print(f"{'ok   ' if row['right'] else 'WRONG'} {row['model']:26} {row['type']}  {text}", flush=True)


def check_all(args, cases):
    rows = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(child, args, "--check", *case) for case in cases]):
            rows.append(done.result())
            show(rows[-1])
    return rows


def prepare(args):
    for folder in (args.folder, args.references):
        os.makedirs(folder, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(lambda name: make_model(args, name), args.models))
    for name in args.models if not args.first else ():
        make_reference(args, name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="*", metavar="NAME")
    parser.add_argument("--types", nargs="*", default=["fp32", "fp16"], choices=list(LIMITS))
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--limit", type=float, default=300, help="seconds of one model")
    parser.add_argument("--folder", default=os.path.join("build", "zoo"))
    parser.add_argument("--references", default=os.path.join("build", "zoo-references"))
    parser.add_argument("--json")
    parser.add_argument("--check", action="store_true", help="compare (the default)")
    parser.add_argument("--first", action="store_true", help="the time to the first answer")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps((first if args.first else one)(args, *args.one)))
        return 0
    args.models = args.models or (["resnet50"] if args.first else sorted(zoo.skeletons(), key=lambda n: n not in DECIDERS))
    prepare(args)
    cases = [(name, kind) for name in args.models for kind in args.types]
    rows = measure_first(args, cases) if args.first else check_all(args, cases)
    if args.json:
        with open(args.json, "w", encoding="ascii") as file:
            json.dump(rows, file, indent=1)
    if args.first:
        return 0
    right = sum(r["right"] for r in rows)
    print(f"{right} of {len(rows)} right")
    return right != len(rows)


if __name__ == "__main__":
    sys.exit(main())
