#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Decoders of attention nodes with caches, a token at a time, beside ONNX Runtime and beside programs made for one length.

    caches.py [--module build/python] [--layers 6] [--width 768] [--heads 12] [--shared 4] [--room 1024] [--steps 200] [--texts 5] [--threads 1]

Writes a decoder of GroupQueryAttention layers (normalisation, rotation, gated products, random weights) and lets both engines generate
the same text in turns, step by step, with caches that grow and with caches that have room; each gets its own caches back as it gave
them, and logits are compared in every step. Then the same text alone, once for the processor's caches and once for the clock, beside
programs with the lengths of every fortieth step fixed (bench/decoding.py tells how). The first round warms up. Printed are medians.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS, POSITIONS = 1000, 4096


def build(layers, width, heads, shared):
    size, rng, initial, nodes = width // heads, np.random.default_rng(0), [], []
    value = helper.make_tensor_value_info

    def weights(name, *shape):
        initial.append(numpy_helper.from_array((rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32), name))
        return name

    def node(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, output if isinstance(output, list) else [output], **attributes))

    angle = np.outer(np.arange(POSITIONS), 10000.0 ** (-np.arange(size // 2) / (size // 2)))
    initial += [numpy_helper.from_array(f(angle).astype(np.float32), n) for f, n in ((np.cos, "cos"), (np.sin, "sin"))]
    inputs = [value("ids", TensorProto.INT64, ["B", "T"]), value("lengths", TensorProto.INT32, ["B"]), value("total", TensorProto.INT32, [])]
    outputs, x = [value("logits", TensorProto.FLOAT, ["B", "T", WORDS])], "x"
    node("Gather", [weights("table", WORDS, width), "ids"], x)
    for i in range(layers):
        p = f"layer{i}."
        inputs += [value(f"past_{k}{i}", TensorProto.FLOAT, ["B", shared, "P", size]) for k in "kv"]
        outputs += [value(f"present_{k}{i}", TensorProto.FLOAT, ["B", shared, "Q", size]) for k in "kv"]
        node("SimplifiedLayerNormalization", [x, weights(p + "g", width)], p + "n", epsilon=1e-5)
        node("MatMul", [p + "n", weights(p + "qkv", width, (heads + 2 * shared) * size)], p + "h")
        node("GroupQueryAttention", [p + "h", "", "", f"past_k{i}", f"past_v{i}", "lengths", "total", "cos", "sin"],
             [p + "a", f"present_k{i}", f"present_v{i}"], domain="com.microsoft", num_heads=heads, kv_num_heads=shared, do_rotary=1)
        node("MatMul", [p + "a", weights(p + "o", width, width)], p + "b")
        node("Add", [x, p + "b"], p + "x")
        node("SimplifiedLayerNormalization", [p + "x", weights(p + "g2", width)], p + "m", epsilon=1e-5)
        for name in ("gate", "up"):
            node("MatMul", [p + "m", weights(p + name, width, 2 * width)], p + name + ".y")
        node("Sigmoid", [p + "gate.y"], p + "s")
        node("Mul", [p + "gate.y", p + "s"], p + "t")
        node("Mul", [p + "t", p + "up.y"], p + "u")
        node("MatMul", [p + "u", weights(p + "down", 2 * width, width)], p + "d")
        node("Add", [p + "x", p + "d"], p + "y")
        x = p + "y"
    node("MatMul", [x, weights("head", width, WORDS)], "logits")
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)


class Text:
    """A text in one engine: the last token, how many there are, and the caches as they came."""

    def __init__(self, run, caches):
        self.run, self.caches, self.token, self.done = run, caches, 1, 0

    def feed(self):
        lengths = np.array([self.done], np.int32)
        return {"ids": np.array([[self.token]]), "lengths": lengths, "total": np.array(self.done + 1, np.int32), **self.caches}

    def step(self, names):
        feed = self.feed()
        start = time.perf_counter()
        results = self.run(feed)
        took = 1e3 * (time.perf_counter() - start)
        logits = np.asarray(results["logits"])
        self.token, self.done = int(logits.argmax()), self.done + 1
        self.caches = {n: results[n.replace("past", "present")] for n in names}
        return took, logits


def beside(mine, other, names, steps):
    """A text in both engines, step by step: times of each."""
    rows = ([], [])
    for length in range(steps):
        took, logits = mine.step(names)
        rows[0].append(took)
        took, expected = other.step(names)
        rows[1].append(took)
        assert np.abs(logits - expected).max() <= 1e-3 * np.abs(expected).max(), f"results differ at length {length}"
    return rows


def alone(start, names, steps, lengths, fixed):
    """The text again, once for the caches and once for the clock, then programs of fixed lengths likewise: ratios by length."""
    for _ in range(2):
        mine, kept, took = start(), {}, {}
        for length in range(steps):
            before = mine.token, mine.done, mine.caches
            took[length], _ = mine.step(names)
            if length in lengths:
                kept[length] = before[0], before[1], {n: np.array(v) for n, v in before[2].items()}
    ratios = {}
    for length, (token, done, caches) in kept.items():
        program, times = fixed(length), []
        for _ in range(15):
            text = Text(program.run, caches)
            text.token, text.done = token, done
            times.append(text.step(names)[0])
        near = [took[i] for i in range(length - 2, length + 3)]
        ratios[length] = statistics.median(near) / statistics.median(times[10:])
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default=os.path.join(HERE, "..", "build", "python"))
    for name, default in (("layers", 6), ("width", 768), ("heads", 12), ("shared", 4), ("room", 1024), ("steps", 200), ("texts", 5), ("threads", 1)):
        parser.add_argument("--" + name, type=int, default=default)
    args = parser.parse_args()
    sys.path.insert(0, args.module)
    import migraphx
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "decoder.onnx")
        onnx.save(build(args.layers, args.width, args.heads, args.shared), path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        outputs = [o.name for o in session.get_outputs()]
        ours = migraphx.parse_onnx(path, dynamic_dims=True)
        ours.compile("cpu", threads=args.threads)
        names = [f"past_{k}{i}" for i in range(args.layers) for k in "kv"]
        for kind, room in (("growing", 0), ("with room", args.room)):
            shape, programs = (1, args.shared, room, args.width // args.heads), {}

            def start(run):
                return Text(run, {n: np.zeros(shape, np.float32) for n in names})

            def fixed(length):
                if length not in programs:
                    lens = {n: [1, args.shared, room or length, shape[3]] for n in names}
                    programs[length] = migraphx.parse_onnx(path, map_input_dims={"ids": [1, 1], "lengths": [1], **lens})
                    programs[length].compile("cpu", threads=args.threads)
                return programs[length]

            rows, ratios = [], []
            for text in range(args.texts + 1):
                found = beside(start(ours.run), start(lambda feed: dict(zip(outputs, session.run(None, feed)))), names, args.steps)
                ratio = alone(lambda: start(ours.run), names, args.steps, range(20, args.steps, 40), fixed)
                if text:
                    rows.append(found)
                    ratios.append(ratio)
            for begin in range(0, args.steps, 40):
                mine, other = (statistics.median(statistics.median(row[k][begin:begin + 40]) for row in rows) for k in range(2))
                print(f"{kind:10} {begin:4} to {begin + 39:4}: ours {mine:.3f} ms, ONNX Runtime {other:.3f} ms, {other / mine:.2f}; "
                      f"beside a program of fixed lengths {statistics.median(r[begin + 20] for r in ratios):.3f}")


if __name__ == "__main__":
    main()
