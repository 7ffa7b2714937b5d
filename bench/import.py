#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a model costs before its first answer: import, simplification, compilation; and how that grows with its size.

    import.py --build build [--zoo DIR] [--models NAME ...] [--rounds 3] [--sizes 1000 10000 100000] [--csv FILE]

First table: the models of the zoo, each measurement in a process of its own, files in the cache, one thread. `import`,
`verify` and `simplify` (the passes all targets share) add up to `front`; `compile` is import and the whole compilation
for the CPU, which is what ONNX Runtime's creation of a session (`ort`) does; figures are medians of the rounds, in ms.
`anon` is anonymous memory in MB after the shared passes, beside the size of the model's `file`; what a model of one node
takes, which is the process's own, is said before the table and part of every row.

Second table: made-up models of so many nodes, with the exponent by which time grows from one size to the next (1 is
linear).
"""
import argparse
import csv
import math
import os
import statistics
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "zoo"))
import zoo  # noqa: E402

ORT = """
import sys, time, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
options.log_severity_level = 3
start = time.perf_counter()
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
print(1e3 * (time.perf_counter() - start))
"""


def made_up(nodes, seed=1):
    """A model of about `nodes` nodes: convolutions with their normalisations and residuals, products, shape arithmetic
    as exporters leave it, views, and constants to fold."""
    rng = np.random.RandomState(seed)
    graph, initial, count = [], [], 0

    def constant(values, name):
        initial.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(kind, inputs, outputs=1, **attributes):
        nonlocal count
        count += 1
        out = [f"v{count}_{i}" for i in range(outputs)]
        graph.append(helper.make_node(kind, inputs, out, name=f"{kind}_{count}", **attributes))
        return out[0] if outputs == 1 else out

    def weights(*shape):
        return constant((rng.standard_normal(shape) * 0.1).astype(np.float32), f"w{len(initial)}")

    def convolution(x):
        y = node("Conv", [x, weights(8, 8, 3, 3)], pads=[1, 1, 1, 1])
        y = node("BatchNormalization", [y, weights(8), weights(8), weights(8), constant(np.ones(8, "f4") * len(initial), f"w{len(initial)}")])
        return node("Add", [node("Relu", [y]), x])

    def reshaped(x):  # x.view(x.size(0), 8, -1) and back
        size = node("Gather", [node("Shape", [x]), "zero"], axis=0)
        size = node("Unsqueeze", [size, "axis0"])
        flat = node("Reshape", [x, node("Concat", [size, "eight", "rest"], axis=0)])
        y = node("Transpose", [node("MatMul", [node("Transpose", [flat], perm=[0, 2, 1]), weights(8, 8)])], perm=[0, 2, 1])
        return node("Reshape", [y, node("Shape", [x])])

    def scaled(x):
        y = node("Mul", [x, node("Add", [weights(8, 1, 1), weights(8, 1, 1)])])
        return node("Clip", [node("Identity", [y]), "low", "high"])

    def gated(x):
        a, b = node("Split", [x, "halves"], 2, axis=1)
        y = node("Concat", [node("Mul", [a, node("Sigmoid", [b])]), node("Tanh", [b])], axis=1)
        return node("Cast", [node("Cast", [y], to=TensorProto.DOUBLE)], to=TensorProto.FLOAT)

    def normalised(x):  # layer normalisation spelled out
        centred = node("Sub", [x, node("ReduceMean", [x], axes=[-1], keepdims=1)])
        variance = node("ReduceMean", [node("Pow", [centred, "two"])], axes=[-1], keepdims=1)
        return node("Div", [centred, node("Sqrt", [node("Add", [variance, "small"])])])

    for name, value in {"zero": np.int64(0), "axis0": np.int64([0]), "eight": np.int64([8]), "rest": np.int64([-1]), "halves": np.int64([4, 4]),
                        "low": np.float32(-6), "high": np.float32(6), "two": np.float32(2), "small": np.float32(1e-5)}.items():
        constant(value, name)
    blocks, x = [convolution, reshaped, scaled, gated, normalised], "x"
    while count < nodes:
        x = blocks[rng.randint(len(blocks))](x)
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 8, 8]) for name in ("x", x)]
    made = helper.make_graph(graph, "made_up", info[:1], info[1:], initial)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def words(command):
    """The `name value` pairs of one line, or None where the command fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"  {done.stderr.strip().splitlines()[-1][:200] if done.stderr else 'failed'}", file=sys.stderr)
        return None
    found = done.stdout.splitlines()[0].split()
    return {k: float(v) for k, v in zip(found[::2], found[1::2])}


def session(path):
    done = subprocess.run([sys.executable, "-c", ORT, path], capture_output=True, text=True, check=False)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else None


def median(rows, key):
    values = [r[key] if key else r for r in rows if r]
    return statistics.median(values) if values else math.nan


def measure(args, path, dims, ort=True):
    tool = os.path.join(args.build, "bin", "mgx-phases")
    front, full, peer = [], [], []
    for _ in range(args.rounds):  # in turns, so that noise meets all alike
        front.append(words([tool, path, *dims]))
        full.append(words([tool, "--cpu", "1", path, *dims]))
        peer.append(session(path) if ort else None)
    row = {k: median(front, k) for k in ("import", "verify", "simplify", "total", "imported", "anon_mb")}
    row.update(compile=median(full, "total"), ort=median(peer, None), peak_mb=median(full, "peak_mb"), file_mb=os.path.getsize(path) / 2**20)
    return row


def floor_mb(args):
    """What a model of one node takes."""
    path = os.path.join(args.build, "one_node.onnx")
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "one_node", info[:1], info[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    found = words([os.path.join(args.build, "bin", "mgx-phases"), path])["anon_mb"]
    os.remove(path)
    return found


def zoo_table(args):
    print(f"a model of one node: {floor_mb(args):.2f} MB anonymous")
    print(f"{'model':26} {'nodes':>6} {'import':>8} {'verify':>7} {'simplify':>8} {'front':>8} {'compile':>8} {'ort':>8} {'/ort':>6} {'anon':>7} {'file':>7} {'anon %':>7}")
    table = []
    for name in args.models if args.models is not None else sorted(zoo.skeletons()):
        path = os.path.join(args.zoo, name + ".onnx")
        if not os.path.exists(path):
            zoo.main(["make", args.zoo, name])
        model = onnx.ModelProto.FromString(zoo.skeletons()[name])
        dims = [f"{k}={','.join(map(str, v.shape))}" for k, v in zoo.inputs(name, model).items()]
        row = {"model": name, "nodes": len(model.graph.node), **measure(args, path, dims)}
        table.append(row)
        print(f"{name:26} {row['nodes']:6} {row['import']:8.1f} {row['verify']:7.2f} {row['simplify']:8.1f} {row['total']:8.1f} {row['compile']:8.1f} {row['ort']:8.1f} "
              f"{row['ort'] / row['compile']:6.2f} {row['anon_mb']:7.1f} {row['file_mb']:7.1f} {100 * row['anon_mb'] / row['file_mb']:7.1f}", flush=True)
    return table


def growth_table(args):
    print(f"{'made up':>10} {'import':>9} {'verify':>8} {'simplify':>9} {'compile':>9} {'front us/node':>13} {'exponents: front':>17} {'compile':>8} {'anon':>7}")
    before, table = None, []
    for size in args.sizes:
        path = os.path.join(args.build, f"made_up_{size}.onnx")
        onnx.save(made_up(size), path)
        row = {"model": f"made_up_{size}", "nodes": size, **measure(args, path, [], ort=False)}
        os.remove(path)
        steep = [math.log(row[k] / before[k]) / math.log(size / before["nodes"]) if before else math.nan for k in ("total", "compile")]
        print(f"{size:10} {row['import']:9.1f} {row['verify']:8.2f} {row['simplify']:9.1f} {row['compile']:9.1f} {1e3 * row['total'] / size:13.2f} {steep[0]:17.2f} {steep[1]:8.2f} {row['anon_mb']:7.1f}", flush=True)
        table.append(row)
        before = row
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--zoo", help="folder of the models; made there if missing (default BUILD/zoo)")
    parser.add_argument("--models", nargs="*", help="default: all; give none for the second table alone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", nargs="*", type=int, default=[1000, 10000, 100000])
    parser.add_argument("--csv")
    args = parser.parse_args()
    args.zoo = args.zoo or os.path.join(args.build, "zoo")
    table = (zoo_table(args) if args.models is None or args.models else []) + (growth_table(args) if args.sizes else [])
    if args.csv:
        with open(args.csv, "w", newline="", encoding="ascii") as f:
            writer = csv.DictWriter(f, fieldnames=list(table[0]))
            writer.writeheader()
            writer.writerows(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
