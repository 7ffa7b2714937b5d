#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One row by packed weights: the products of GPT-2 as MatMulNBits, this engine beside ONNX Runtime.

    nbits.py [--build DIR] [--threads N] [--rounds N] [--bits 4] [--blocks 32 128]

Makes models of GPT-2's four products in twelve layers and its head (123 million weights, random, tanh between layers), with
and without zero points. Each round starts one process after the other: ours with and without fast_math, ONNX Runtime with
accuracy levels 0 and 4 (0 takes minutes with 8 bits: level 4 alone there). A process takes ten runs unmeasured and the least
of sixty by the wall's clock; the least of all rounds is printed, and the gigabytes of the file that ours reads in a second.
First results are compared: ours without fast_math agrees with level 0 to rounding, or the script ends.

What memory gives is printed by build/test/test-targets-cpu-kernel-tile-narrow --bench ROWS THREADS.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

LAYERS, WIDTH, WORDS = 12, 768, 50257
RUNS = 60


# --- models ---

def product(nodes, weights, rng, x, depth, columns, options):
    """Adds a MatMulNBits and its weights; returns the name of its result."""
    from onnx import helper, numpy_helper
    bits, block, zeros, level = options
    blocks, name = -(-depth // block), f"y{len(nodes)}"
    parts = {"values": rng.integers(0, 256, (columns, blocks, block * bits // 8), dtype=np.uint8),
             "scales": rng.random(columns * blocks, dtype=np.float32) * 0.01 + 0.001}
    if zeros:
        parts["zeros"] = rng.integers(0, 256, columns * -(-blocks * bits // 8), dtype=np.uint8)
    weights += [numpy_helper.from_array(value, f"{name}.{part}") for part, value in parts.items()]
    nodes.append(helper.make_node("MatMulNBits", [x] + [f"{name}.{part}" for part in parts], [name], domain="com.microsoft",
                                  K=depth, N=columns, bits=bits, block_size=block, accuracy_level=level))
    return name


def make(path, options):
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    rng, nodes, x = np.random.default_rng(0), [], "x"
    weights = [numpy_helper.from_array(np.array([i], np.int64), f"i{i}") for i in (0, 1, WIDTH)]
    for layer in range(LAYERS):
        x = product(nodes, weights, rng, x, WIDTH, 3 * WIDTH, options)
        nodes.append(helper.make_node("Slice", [x, "i0", f"i{WIDTH}", "i1"], [f"slice{layer}"]))
        x = f"slice{layer}"
        for i, (depth, columns) in enumerate(((WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))):
            x = product(nodes, weights, rng, x, depth, columns, options)
            nodes.append(helper.make_node("Tanh", [x], [f"tanh{layer}.{i}"]))
            x = f"tanh{layer}.{i}"
    x = product(nodes, weights, rng, x, WIDTH, WORDS, options)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "products", [value("x", TensorProto.FLOAT, [1, WIDTH])],
                              [value(x, TensorProto.FLOAT, [1, WORDS])], weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


# --- one process ---

def runner(args):
    feed = {"x": np.random.default_rng(1).standard_normal((1, WIDTH), dtype=np.float32)}
    if args.child == "ort":
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        session = onnxruntime.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, feed)
    sys.path.insert(0, os.path.join(args.build, "python"))
    import migraphx
    program = migraphx.parse_onnx(args.model)
    program.compile(migraphx.get_target("cpu"), threads=args.threads, fast_math=args.child == "fast")
    return lambda: program.run(feed)


def child(args):
    run = runner(args)
    result = np.array(run()[0])
    np.save(args.result, result)
    for _ in range(10):
        run()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    print(1e3 * min(times))


# --- all ---

def measure(args, folder, engine, model):
    result = os.path.join(folder, engine + ".npy")
    command = [sys.executable, __file__, "--child", engine, "--model", model, "--result", result, "--build", args.build,
               "--threads", str(args.threads)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout), np.load(result)


def row(args, bits, block, zeros):
    with tempfile.TemporaryDirectory() as folder:
        models = {level: os.path.join(folder, f"{level}.onnx") for level in (0, 4)}
        for level, path in models.items():
            make(path, (bits, block, zeros, level))
        engines = {"fast": ("fast", 4), "exact": ("exact", 4), "level 0": ("ort", 0), "level 4": ("ort", 4)}
        if bits == 8:
            del engines["level 0"]
        times, results = {name: [] for name in engines}, {}
        for _ in range(args.rounds):
            for name, (engine, level) in engines.items():
                took, results[name] = measure(args, folder, engine, models[level])
                times[name].append(took)
        size = os.path.getsize(models[0])
    if "level 0" in results:
        far = np.abs(results["exact"] - results["level 0"]).max() / np.abs(results["level 0"]).max()
        assert far < 1e-3, f"results differ by {far}"
    least = {name: min(t) for name, t in times.items()}
    title = f"{bits} bits, blocks of {block}" + (", zero points" if zeros else "")
    print(f"{title:34}{size / 1e6:6.0f}" + "".join(f"{least.get(name, float('nan')):9.2f}" for name in
                                                   ("fast", "exact", "level 0", "level 4"))
          + f"{size / least['fast'] / 1e6:9.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(os.path.dirname(__file__), "../build"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bits", type=int, nargs="+", default=[4])
    parser.add_argument("--blocks", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    parser.add_argument("--result", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args)
        return
    print(f"{args.threads} threads{'':25}{'MB':>6}{'ours':>9}{'exact':>9}{'level 0':>9}{'level 4':>9}{'GB/s':>9}")
    for bits in args.bits:
        for block in args.blocks:
            for zeros in (False, True):
                row(args, bits, block, zeros)


if __name__ == "__main__":
    main()
