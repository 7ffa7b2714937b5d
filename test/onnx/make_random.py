#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes cases with random attributes and shapes, results by onnxruntime, for mgx-run-onnx.

    make_random.py [--out build/random] [--each 40] [--seed 1] [--only REGEX]

One node each, of the operators whose attributes interact: windows, resizing, slices, padding,
products, reductions. A draw that onnxruntime refuses is left out. Needs numpy, onnx and
onnxruntime.
"""
import argparse
import os
import re
import shutil
import sys

import numpy as np
import onnxruntime
from onnx import helper

import make_suite

OPSET = 21


class Draw:
    """Random choices."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def ints(self, count, low, high):
        return [self.int(low, high) for _ in range(count)]

    def of(self, *choices):
        return choices[self.int(0, len(choices) - 1)]

    def maybe(self):
        return self.rng.random() < 0.5

    def floats(self, *shape):
        return self.rng.uniform(-2, 2, shape).astype(np.float32)

    def shape(self, low=1, high=4, most=5):
        return self.ints(self.int(low, high), 1, most)


# Each maker gives (operator, inputs, attributes); None stands for an absent input.

def window(d, spatial, size):
    kernel = d.ints(spatial, 1, 4)
    a = {"kernel_shape": kernel}
    if d.maybe():
        a["strides"] = d.ints(spatial, 1, 3)
    if d.maybe():
        a["auto_pad"] = d.of("SAME_UPPER", "SAME_LOWER", "VALID")
    elif d.maybe():
        a["pads"] = [d.int(0, k - 1) for k in kernel * 2]
    return a, d.ints(spatial, 4, size)


def conv(d):
    spatial = d.int(1, 3)
    a, lens = window(d, spatial, 9)
    group, per, out = d.int(1, 3), d.int(1, 3), d.int(1, 3)
    if d.maybe() and "auto_pad" not in a:
        a["dilations"] = d.ints(spatial, 1, 2)
    x, w = d.floats(d.int(1, 2), group * per, *lens), d.floats(group * out, per, *a["kernel_shape"])
    return "Conv", [x, w, d.floats(group * out)] if d.maybe() else [x, w], a | {"group": group}


def conv_transpose(d):
    spatial = d.int(1, 2)
    a, lens = window(d, spatial, 6)
    a.pop("auto_pad", None)
    group, per, out = d.int(1, 2), d.int(1, 3), d.int(1, 3)
    strides = a.get("strides", [1] * spatial)
    if d.maybe():
        a["dilations"] = d.ints(spatial, 1, 2)
    if d.maybe():
        a["output_padding"] = [d.int(0, s - 1) for s in strides]
    elif d.maybe() and "pads" not in a:
        a["output_shape"] = [n * s + d.int(0, 1) for n, s in zip(lens, strides)]
        if d.maybe():
            a["auto_pad"] = d.of("SAME_UPPER", "SAME_LOWER")
    x, w = d.floats(1, group * per, *lens), d.floats(group * per, out, *a["kernel_shape"])
    return "ConvTranspose", [x, w], a | {"group": group}


def pool(d):
    op = d.of("MaxPool", "AveragePool", "LpPool")
    spatial = d.int(1, 3)
    a, lens = window(d, spatial, 10)
    if d.maybe():
        a["ceil_mode"] = 1
    if op == "AveragePool":
        a["count_include_pad"] = d.int(0, 1)
    if d.maybe() and "auto_pad" not in a:
        a["dilations"] = d.ints(spatial, 1, 2)
    if op == "LpPool":
        a["p"] = d.int(1, 3)
    return op, [d.floats(d.int(1, 2), d.int(1, 3), *lens)], a


def resize(d):
    mode = d.of("nearest", "linear", "cubic")
    a = {"mode": mode, "coordinate_transformation_mode": d.of(
        "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")}
    if mode == "nearest":
        a["nearest_mode"] = d.of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic" and d.maybe():
        a |= {"cubic_coeff_a": -0.5, "exclude_outside": 1}
    if mode != "nearest" and d.maybe():
        a["antialias"] = 1
    x = d.floats(1, d.int(1, 2), d.int(2, 6), d.int(2, 6))
    # With align_corners and a scale that does not come out even, onnxruntime and the standard's own
    # reference differ in the length that places are computed from.
    if d.maybe() or a["coordinate_transformation_mode"] == "align_corners":
        return "Resize", [x, None, None, np.array([*x.shape[:2], d.int(1, 12), d.int(1, 12)])], a
    return "Resize", [x, None, np.array([1, 1, d.of(0.5, 1.5, 2, 2.5), d.of(0.75, 1, 2, 3)], np.float32)], a


def slice_(d):
    shape = d.shape()
    axes = [i for i in range(len(shape)) if d.maybe()] or [0]
    steps = [d.of(-3, -2, -1, 1, 2, 3) for _ in axes]
    starts, ends = d.ints(len(axes), -7, 7), d.ints(len(axes), -7, 7)
    far = np.iinfo(np.int64)
    ends = [d.of(e, far.max, far.min) for e in ends]
    axes = [a - len(shape) if d.maybe() else a for a in axes]
    return "Slice", [d.floats(*shape)] + [np.array(v, np.int64) for v in (starts, ends, axes, steps)], {}


def pad(d):
    shape = d.shape(1, 4, 5)
    mode = d.of("constant", "reflect", "edge", "wrap")
    pads = [d.int(-1 if n > 2 and mode == "constant" else 0, max(n - 1, 0)) for n in shape * 2]
    inputs = [d.floats(*shape), np.array(pads, np.int64)]
    if mode == "constant" and d.maybe():
        inputs.append(np.array(1.5, np.float32))
    return "Pad", inputs, {"mode": mode}


def reduce(d):
    op = "Reduce" + d.of("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSumExp", "SumSquare")
    shape = d.shape()
    axes = [i - len(shape) if d.maybe() else i for i in range(len(shape)) if d.maybe()]
    a = {"keepdims": d.int(0, 1), "noop_with_empty_axes": d.int(0, 1)}
    return op, [d.floats(*shape)] + ([np.array(axes, np.int64)] if axes or d.maybe() else []), a


def matmul(d):
    batch, m, k, n = d.shape(0, 3, 3), d.int(1, 4), d.int(1, 4), d.int(1, 4)
    a = [1 if d.maybe() else b for b in batch][d.int(0, len(batch)):]
    left = d.floats(k) if d.rng.random() < 0.15 else d.floats(*a, m, k)
    right = d.floats(k) if d.rng.random() < 0.15 else d.floats(*batch, k, n)
    return "MatMul", [left, right], {}


def gemm(d):
    m, k, n = d.ints(3, 1, 5)
    ta, tb = d.int(0, 1), d.int(0, 1)
    inputs = [d.floats(k, m) if ta else d.floats(m, k), d.floats(n, k) if tb else d.floats(k, n)]
    if d.maybe():
        inputs.append(d.floats(*d.of((m, n), (1, n), (m, 1), (n,), (1,), ())))
    return "Gemm", inputs, {"transA": ta, "transB": tb, "alpha": d.of(1.0, 0.5), "beta": d.of(1.0, 2.0, 0.0)}


def einsum(d):
    equation = d.of("ij,jk->ik", "bij,bjk->bik", "ij,kj->ik", "bhid,bhjd->bhij", "bijd,bjkd->bikd", "ij->ji",
                    "ij->", "ii->i", "iij->ij", "ij,ij->i", "ij,i->j", "i,j->ij", "...ij,...jk->...ik",
                    "...i->...", "ab,bc,cd->ad", "bn,anm,bm->ba", "ij,ij", "aij,ajk->ik", "i,i->", "ij,k->ijk",
                    "abc,cd,def->abef", "bhwc,hkc->bhwk", "xyz->zx")
    sizes = {c: d.int(1, 4) for c in "abcdefhijkmnwxyz"}
    more = d.ints(d.int(0, 2), 1, 3)
    terms = equation.split("->")[0].split(",")
    shapes = [sum((more if c == "." else [sizes[c]] for c in t.replace("...", ".")), []) for t in terms]
    return "Einsum", [d.floats(*s) for s in shapes], {"equation": equation}


def gather(d):
    op = d.of("Gather", "GatherElements", "GatherND")
    shape = d.shape(2, 4, 4)
    axis = d.int(0, len(shape) - 1)
    n = shape[axis]
    if op == "Gather":
        index = np.array(d.rng.integers(-n, n, d.shape(0, 2, 3)))
        return op, [d.floats(*shape), index], {"axis": axis}
    if op == "GatherElements":
        index = d.rng.integers(-n, n, [d.int(1, 5) if i == axis else d.int(1, s) for i, s in enumerate(shape)])
        return op, [d.floats(*shape), index], {"axis": axis - len(shape) if d.maybe() else axis}
    batch = d.int(0, 1)
    depth = d.int(1, len(shape) - batch)
    parts = [d.rng.integers(-s, s, (*shape[:batch], 3, 1)) for s in shape[batch:batch + depth]]
    return op, [d.floats(*shape), np.concatenate(parts, -1)], {"batch_dims": batch}


def scatter(d):
    shape = d.shape(2, 3, 4)
    axis = d.int(0, len(shape) - 1)
    reduction = d.of("none", "add", "mul", "max", "min")
    if d.maybe():
        lens = [d.int(1, s) for s in shape]
        index = np.argsort(d.rng.random([shape[axis] if i == axis else n for i, n in enumerate(lens)]), axis)
        index = np.take(index, range(lens[axis]), axis)
        return "ScatterElements", [d.floats(*shape), index, d.floats(*lens)], {"axis": axis, "reduction": reduction}
    places = d.rng.permutation(shape[0])[:d.int(1, shape[0])].reshape(-1, 1)
    return "ScatterND", [d.floats(*shape), places, d.floats(len(places), *shape[1:])], {"reduction": reduction}


def split(d):
    shape = d.shape(1, 3, 6)
    axis = d.int(0, len(shape) - 1)
    if d.maybe():
        parts = d.int(1, shape[axis])
        return "Split", [d.floats(*shape)], {"axis": axis, "num_outputs": parts, "outputs": parts}
    cut = d.int(0, shape[axis])
    return "Split", [d.floats(*shape), np.array([cut, shape[axis] - cut])], {"axis": axis, "outputs": 2}


def normalise(d):
    op = d.of("LayerNormalization", "InstanceNormalization", "LRN", "LpNormalization", "Softmax", "LogSoftmax")
    x = d.floats(*d.ints(d.int(3, 4), 1, 5))
    if op == "LayerNormalization":
        axis = d.int(0, x.ndim - 1)
        scale = [d.floats(*x.shape[axis:]) for _ in range(d.int(1, 2))]
        return op, [x, *scale], {"axis": axis, "outputs": d.of(1, 3)}
    if op == "InstanceNormalization":
        return op, [x, d.floats(x.shape[1]), d.floats(x.shape[1])], {"epsilon": 1e-3}
    if op == "LRN":
        return op, [d.floats(1, 5, 3, 3)], {"size": d.int(1, 5), "alpha": 0.1, "beta": 0.6, "bias": 1.5}
    a = {"axis": d.int(-x.ndim, x.ndim - 1)}
    return op, [x], a | ({"p": d.int(1, 2)} if op == "LpNormalization" else {})


def select(d):
    x = d.floats(*d.shape(1, 3, 6))
    axis = d.int(0, x.ndim - 1)
    if d.maybe():
        return "TopK", [x, np.array([d.int(1, x.shape[axis])])], {"axis": axis, "largest": d.int(0, 1), "outputs": 2}
    return d.of("ArgMax", "ArgMin"), [np.round(x)], {"axis": axis, "keepdims": d.int(0, 1),
                                                   "select_last_index": d.int(0, 1)}


def scan(d):
    x = d.floats(*d.shape(1, 3, 5))
    return "CumSum", [x, np.array(d.int(-x.ndim, x.ndim - 1))], {"exclusive": d.int(0, 1), "reverse": d.int(0, 1)}


def recurrent(d):
    op, gates, funcs = d.of(("RNN", 1, 1), ("GRU", 3, 2), ("LSTM", 4, 3))
    direction = d.of("forward", "reverse", "bidirectional")
    dirs = 2 if direction == "bidirectional" else 1
    steps, batch, size, hidden = d.int(1, 4), d.int(1, 3), d.int(1, 3), d.int(1, 3)
    inputs = [d.floats(steps, batch, size), d.floats(dirs, gates * hidden, size),
              d.floats(dirs, gates * hidden, hidden)]
    inputs.append(d.floats(dirs, 2 * gates * hidden) if d.maybe() else None)
    inputs.append(np.array(d.ints(batch, 1, steps), np.int32) if d.maybe() else None)
    inputs.append(d.floats(dirs, batch, hidden) if d.maybe() else None)
    if op == "LSTM":
        inputs.append(d.floats(dirs, batch, hidden) if d.maybe() else None)
        inputs.append(d.floats(dirs, 3 * hidden) if d.maybe() else None)
    a = {"hidden_size": hidden, "direction": direction, "outputs": 3 if op == "LSTM" else 2}
    if d.maybe():
        names = ["Relu", "Tanh", "Sigmoid", "HardSigmoid", "LeakyRelu", "Elu", "Softsign"]
        a["activations"] = [d.of(*names) for _ in range(funcs * dirs)]
    if d.maybe():
        a["clip"] = 0.7
    if op == "GRU":
        a["linear_before_reset"] = d.int(0, 1)
    return op, inputs, a


MAKERS = [conv, conv_transpose, pool, resize, slice_, pad, reduce, matmul, gemm, einsum, gather, scatter, split,
          normalise, select, scan, recurrent]


def build(name, op, inputs, attributes):
    count = attributes.pop("outputs", 1)
    names = [f"x{i}" if v is not None else "" for i, v in enumerate(inputs)]
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(op, names, [f"y{i}" for i in range(count)], **attributes)
    values = {n: v for n, v in zip(names, inputs) if n}
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
             for n, v in values.items()]
    results = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(count)]
    graph = helper.make_graph([node], name, infos, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8), values


def run(model, values):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, values)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="build/random")
    parser.add_argument("--each", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    written = refused = 0
    for maker in MAKERS:
        if not re.search(args.only, maker.__name__):
            continue
        for i in range(args.each):
            draw = Draw([args.seed, i, *maker.__name__.encode()])
            op, inputs, attributes = maker(draw)
            name = f"{maker.__name__.strip('_')}_{i}_{op}"
            try:
                model, values = build(name, op, inputs, attributes)
                outputs = run(model, values)
            except Exception:  # not a valid node, or not one that onnxruntime runs
                refused += 1
                continue
            if maker is pool and any(v.size == 0 for v in outputs):
                refused += 1  # a kernel wider than the input, which is an error here
                continue
            folder = os.path.join(args.out, "random", name)
            data = os.path.join(folder, "test_data_set_0")
            os.makedirs(data)
            infos = [helper.make_tensor_value_info(f"y{k}", helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                     for k, v in enumerate(outputs)]
            del model.graph.output[:]
            model.graph.output.extend(infos)
            make_suite.write(os.path.join(folder, "model.onnx"), model)
            make_suite.write_values(data, "input", values.values(), model.graph.input)
            make_suite.write_values(data, "output", outputs, model.graph.output)
            with open(os.path.join(folder, "tolerance.txt"), "w", encoding="utf-8") as f:
                f.write("1e-3 1e-5\n")
            written += 1
    print(f"{written} cases in {args.out}, {refused} draws left out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
