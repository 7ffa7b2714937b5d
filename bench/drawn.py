#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""From an .onnx file to the first answer, for models that nobody chose: this engine and ONNX Runtime.

    drawn.py FOLDER [--draw 20] [--seed 7] [--most 40e6] [--threads 1] [--rounds 3] [--module DIR]

Draws as many architectures of timm (which must be installed, with torch) as FOLDER lacks, by the seed, of at most so many
parameters, with random weights, exported by torch.onnx. Then measures every .onnx file in FOLDER, whose inputs get ones
(integers) or numbers between 0 and 1, open axes --length: each engine in processes of its own, in turns, compares the results,
and prints the least of the rounds: loading (of this engine: parsing and compiling) and loading with the first run, by the
wall's clock and by the processor's. The last column is what counts where other work shares the machine. Importing the modules and
making the inputs is not counted.
"""
import argparse
import glob
import json
import math
import os
import subprocess
import sys
import tempfile

import drawing
import loading

KINDS = {1: "float32", 2: "uint8", 3: "int8", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64"}


# --- drawing ---

def export(name, path):
    import torch
    model = drawing.build(name)
    feed = drawing.inputs_of(name, model)(1)
    with torch.no_grad():
        torch.onnx.export(model, tuple(feed.values()), path, opset_version=17, dynamo=False)


def draw(options):
    have = 0
    for name in drawing.names(options.seed, ["timm"]):
        if have == options.draw:
            return
        path = os.path.join(options.folder, drawing.split(name)[1] + ".onnx")
        try:
            if not os.path.exists(path):
                if drawing.parameters(name) > options.most:
                    continue
                export(name, path)
            have += 1
        except Exception as why:  # whatever timm and the exporter raise
            print(f"{name}: {type(why).__name__}", file=sys.stderr)


# --- one process ---

def inputs_of(path, length):
    import numpy as np
    import onnx
    rng = np.random.default_rng(0)
    model = onnx.load(path, load_external_data=False)
    constants = {t.name for t in model.graph.initializer}
    made = {}
    for i in model.graph.input:
        if i.name in constants:
            continue
        lens = [d.dim_value or length for d in i.type.tensor_type.shape.dim]
        kind = KINDS[i.type.tensor_type.elem_type]
        made[i.name] = rng.random(lens).astype(kind) if kind.startswith("float") else np.ones(lens, kind)
    return made


def ours(options, inputs):
    import migraphx

    def load():
        program = migraphx.parse_onnx(options.folder, map_input_dims={k: list(v.shape) for k, v in inputs.items()})
        program.compile(migraphx.get_target("cpu"), threads=options.threads)
        return program
    return load, lambda p: p.run(inputs)


def onnxruntime(options, inputs):
    import onnxruntime as ort
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.log_severity_level = 4
    return (lambda: ort.InferenceSession(options.folder, settings, providers=["CPUExecutionProvider"]),
            lambda session: session.run(None, inputs))


def child(options):
    import numpy as np
    first = []
    load, run = {"ours": ours, "onnxruntime": onnxruntime}[options.child](options, inputs_of(options.folder, options.length))

    def keep(loaded):
        first.append(run(loaded))
    row = loading.measure(load, keep)
    np.save(options.out, np.array(first[0][0], np.float64))
    print(json.dumps(row))


# --- all of them ---

def start(engine, path, out, options):
    command = [sys.executable, __file__, path, "--child", engine, "--threads", str(options.threads), "--module", options.module,
               "--length", str(options.length), "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"  {engine}: {(done.stderr.strip().splitlines() or ['failed'])[-1][:200]}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def measure(path, options):
    import numpy as np
    rows = {"ours": [], "onnxruntime": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for engine, found in rows.items():
                found.append(start(engine, path, os.path.join(folder, engine), options))
        if None in rows["ours"] + rows["onnxruntime"]:
            return None
        a, b = (np.load(os.path.join(folder, f"{engine}.npy")) for engine in rows)
    error = float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))
    return {engine: {key: min(r[key] for r in found) for key in found[0]} for engine, found in rows.items()}, error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--most", type=float, default=40e6)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--length", type=int, default=1)
    parser.add_argument("--module", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../build/python"))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        sys.path.insert(0, options.module)
        child(options)
        return
    os.makedirs(options.folder, exist_ok=True)
    if options.draw:
        draw(options)
    keys = ("load wall", "all wall", "load cpu", "all cpu")
    print(f"{'ms, ours and ONNX Runtime':40}" + "".join(f"{key:>18}" for key in keys) + f"{'error':>10}{'cpu, ours / ort':>17}")
    ratios = []
    for path in sorted(glob.glob(os.path.join(options.folder, "*.onnx"))):
        found = measure(path, options)
        if not found:
            continue
        rows, error = found
        ratios.append(rows["ours"]["all cpu"] / rows["onnxruntime"]["all cpu"])
        print(f"{os.path.basename(path)[:-5]:40}" + "".join(f"{rows['ours'][key]:9.0f}{rows['onnxruntime'][key]:9.0f}" for key in keys) +
              f"{error:10.1e}{ratios[-1]:17.2f}", flush=True)
    if ratios:
        print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, most {max(ratios):.2f}")


if __name__ == "__main__":
    main()
