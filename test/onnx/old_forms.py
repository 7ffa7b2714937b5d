# SPDX-License-Identifier: MIT
"""Old forms of ONNX operators whose meaning changed later, with results from numpy.

cases() yields one Case per form; make_versions.py writes them down.
"""
import numpy as np
from onnx import helper, parser

RANDOM = np.random.default_rng(7)


class Case:
    """One node."""

    def __init__(self, op, opset, label, inputs, outputs, tolerance=(1e-4, 1e-6), **attributes):
        self.op, self.opset, self.inputs, self.outputs = op, opset, list(inputs), list(outputs)
        self.name, self.tolerance = f"{op}_{opset}_{label}", tolerance
        names = [f"x{i}" for i in range(len(inputs))]
        results = [f"y{i}" for i in range(len(outputs))]
        kept = [i for i, v in enumerate(inputs) if v is not None]
        node = helper.make_node(op, [n if v is not None else "" for n, v in zip(names, inputs)], results,
                                **attributes)
        graph = helper.make_graph([node], self.name, [info(names[i], inputs[i]) for i in kept],
                                  [info(n, v) for n, v in zip(results, outputs)])
        self.inputs = [inputs[i] for i in kept]
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


class Text:
    """A model in onnx.parser's syntax, its graph as "(inputs) => (outputs) { nodes }"."""

    def __init__(self, op, opset, label, graph, inputs, outputs):
        self.op, self.opset, self.inputs, self.outputs = op, opset, inputs, outputs
        self.name, self.tolerance = f"{op}_{opset}_{label}", (1e-4, 1e-6)
        self.model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {graph}')


def info(name, value):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def floats(*shape, low=-2, high=2):
    return RANDOM.uniform(low, high, shape).astype(np.float32)


# --- arithmetic with the attributes broadcast and axis (opset 1 to 6) ---

def aligned(b, axis, rank):
    return b.reshape(b.shape + (1,) * (rank - axis - b.ndim))


def legacy_arithmetic():
    functions = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide,
                 "Pow": np.power}
    for op, f in functions.items():
        for opset in (1, 6):
            a = floats(2, 3, 4, 5, low=0.5)
            for label, b, axis in (("axis1", floats(3, 4, low=0.5), 1), ("axis0", floats(2, low=0.5), 0),
                                   ("last", floats(4, 5, low=0.5), None), ("scalar", floats(1, low=0.5), None)):
                attributes = {"broadcast": 1} | ({} if axis is None else {"axis": axis})
                wide = b if axis is None else aligned(b, axis, 4)
                yield Case(op, opset, label, [a, b], [f(a, wide)], **attributes)
    for op, f in {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}.items():
        a, b = RANDOM.random((2, 3, 4)) > 0.5, RANDOM.random((3,)) > 0.5
        yield Case(op, 1, "axis1", [a, b], [f(a, b[:, None])], broadcast=1, axis=1)
    for op, f in {"Equal": np.equal, "Greater": np.greater, "Less": np.less}.items():
        type = np.int32 if op == "Equal" else np.float32
        a, b = RANDOM.integers(0, 3, (2, 3, 4)).astype(type), RANDOM.integers(0, 3, (2, 3)).astype(type)
        yield Case(op, 1, "axis0", [a, b], [f(a, b[..., None])], broadcast=1, axis=0)


def legacy_prelu():
    x, slope = floats(2, 3, 4, 5), floats(3)
    for opset in (1, 6):
        yield Case("PRelu", opset, "channel", [x, slope], [np.where(x < 0, x * slope[:, None, None], x)])
        yield Case("PRelu", opset, "shared", [x, slope[:1]], [np.where(x < 0, x * slope[0], x)])


# --- softmax over all axes from one on (before opset 13) ---

def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def hardmax(x):
    return (np.arange(x.shape[-1]) == x.argmax(-1, keepdims=True)).astype(x.dtype)


def flat_softmax():
    functions = {"Softmax": softmax, "LogSoftmax": lambda x: np.log(softmax(x)), "Hardmax": hardmax}
    for op, f in functions.items():
        for opset, axes in ((1, (None, 0, 1, 2)), (11, (None, 0, 1, -1, -2))):
            x = floats(2, 3, 4)
            for axis in axes:
                at = 1 if axis is None else axis % 3
                y = f(x.reshape(int(np.prod(x.shape[:at])), -1)).reshape(x.shape)
                yield Case(op, opset, f"axis{'' if axis is None else axis}", [x], [y.astype(np.float32)],
                           **({} if axis is None else {"axis": axis}))


# --- normalisation and dropout ---

def batch_normalization():
    x = floats(2, 3, 4, 5)
    scale, bias, mean, var = floats(3), floats(3), floats(3), floats(3, low=0.5)
    wide = [v[:, None, None] for v in (scale, bias, mean, var)]
    y = (x - wide[2]) / np.sqrt(wide[3] + 1e-5) * wide[0] + wide[1]
    for opset in (1, 6):
        extra = {"consumed_inputs": [0, 0, 0, 1, 1]} if opset == 1 else {}
        yield Case("BatchNormalization", opset, "test", [x, scale, bias, mean, var], [y], is_test=1, **extra)
    for opset in (7, 9):
        yield Case("BatchNormalization", opset, "test", [x, scale, bias, mean, var], [y])
    flat = [floats(3, 4, 5), floats(3, 4, 5), floats(3, 4, 5), floats(3, 4, 5, low=0.5)]
    y = (x - flat[2]) / np.sqrt(flat[3] + 1e-3) * flat[0] + flat[1]
    yield Case("BatchNormalization", 7, "spatial0", [x, *flat], [y], spatial=0, epsilon=1e-3)
    m, v = x.mean((0, 2, 3)), x.var((0, 2, 3))
    y = (x - m[:, None, None]) / np.sqrt(v[:, None, None] + 1e-5) * wide[0] + wide[1]
    new = [mean * 0.9 + m * 0.1, var * 0.9 + v * 0.1]
    yield Case("BatchNormalization", 9, "training", [x, scale, bias, mean, var],
               [y, *(n.astype(np.float32) for n in new), m, v])


def group_normalization():
    x, scale, bias = floats(2, 6, 4), floats(3), floats(3)
    g = x.reshape(2, 3, 8)
    g = (g - g.mean(-1, keepdims=True)) / np.sqrt(g.var(-1, keepdims=True) + 1e-5)
    y = (g * scale[:, None] + bias[:, None]).reshape(x.shape)
    yield Case("GroupNormalization", 18, "groups", [x, scale, bias], [y], num_groups=3)


def dropout():
    x = floats(2, 3)
    ones = {1: np.ones((2, 3), np.float32), 10: np.ones((2, 3), bool)}
    for opset in (1, 6):
        yield Case("Dropout", opset, "test", [x], [x], is_test=1)
        yield Case("Dropout", opset, "mask", [x], [x, ones[1]], is_test=1, ratio=0.3)
    for opset in (7, 10):
        yield Case("Dropout", opset, "plain", [x], [x], ratio=0.3)
    yield Case("Dropout", 7, "mask", [x], [x, ones[1]])
    yield Case("Dropout", 10, "mask", [x], [x, ones[10]])


# --- resizing ---

def upsample():
    x = floats(1, 2, 2, 3)
    near = x.repeat(2, 2).repeat(3, 3)
    yield Case("Upsample", 1, "nearest", [x], [near], height_scale=2.0, width_scale=3.0, mode="nearest")
    yield Case("Upsample", 7, "nearest", [x], [near], scales=[1.0, 1.0, 2.0, 3.0])
    scales = np.array([1, 1, 2, 3], np.float32)
    yield Case("Upsample", 9, "nearest", [x, scales], [near])
    yield Case("Resize", 10, "nearest", [x, scales], [near])
    line = floats(1, 1, 1, 4)
    at = np.arange(8) / 2
    y = np.interp(at, np.arange(4), line[0, 0, 0]).astype(np.float32).reshape(1, 1, 1, 8)
    yield Case("Resize", 11, "nearest", [x, np.zeros(0, np.float32), scales], [near],
               coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    yield Case("Resize", 10, "linear", [line, np.array([1, 1, 1, 2], np.float32)], [y], mode="linear")
    yield Case("Upsample", 7, "linear", [line], [y], scales=[1.0, 1.0, 1.0, 2.0], mode="linear")
    big = floats(1, 1, 4, 6)
    half = np.array([1, 1, 0.5, 0.5], np.float32)
    yield Case("Resize", 10, "down", [big, half], [big[:, :, ::2, ::2].copy()])


# --- other forms ---

def other_forms():
    x = floats(2, 3, 4)
    yield Case("Cast", 1, "name", [x], [x.astype(np.int32)], to="INT32")
    yield Case("Cast", 1, "half", [x], [x.astype(np.float16)], to="FLOAT16")
    yield Case("Concat", 1, "default", [x, x], [np.concatenate([x, x], 1)])
    yield Case("Tile", 1, "axis", [x, np.array(2, np.float32), np.array(1, np.float32)],
               [np.concatenate([x, x], 1)])
    yield Case("Pad", 1, "constant", [x], [np.pad(x, ((0, 1), (1, 0), (2, 2)), constant_values=3)],
               paddings=[0, 1, 2, 1, 0, 2], value=3.0)
    yield Case("Pad", 2, "reflect", [x], [np.pad(x, ((0, 0), (1, 1), (2, 2)), mode="reflect")],
               pads=[0, 1, 2, 0, 1, 2], mode="reflect")
    yield Case("Pad", 2, "negative", [x], [np.pad(x[:, 1:], ((0, 0), (0, 0), (0, 1)))],
               pads=[0, -1, 0, 0, 0, 1])
    yield Case("Slice", 1, "ends", [x], [x[:, 1:3, -2:]], starts=[1, -2], ends=[1000, 4], axes=[1, 2])
    yield Case("Split", 1, "attribute", [x], [x[:, :, :1], x[:, :, 1:]], axis=2, split=[1, 3])
    yield Case("Split", 1, "input", [x, np.array([1, 3], np.float32)], [x[:, :, :1], x[:, :, 1:]], axis=2)
    order = np.argsort(-x, -1)[..., :2]
    values = np.take_along_axis(x, order, -1)
    yield Case("TopK", 1, "k", [x], [values, order], k=2)
    yield Case("TopK", 10, "k", [x, np.array([2])], [values, order])
    rows = x.reshape(1, 2, 12)
    for opset, p in ((1, 2.0), (2, 2), (22, 3)):
        pooled = (np.abs(rows) ** p).sum(-1, keepdims=True) ** (1 / p)
        yield Case("GlobalLpPool", opset, "p", [rows], [pooled.astype(np.float32)], p=p)
    image, region = floats(1, 2, 6, 6), np.array([[0, 1, 1, 4, 4]], np.float32)
    bins = image[:, :, 1:5, 1:5].reshape(1, 2, 2, 2, 2, 2).max((3, 5))
    for opset in (1, 22):
        yield Case("MaxRoiPool", opset, "bins", [image, region], [bins], pooled_shape=[2, 2])
    window = np.stack([np.abs(x[:, :, i:i + 2]).sum(-1) for i in range(3)], -1).astype(np.float32)
    yield Case("LpPool", 1, "p1", [x], [window], kernel_shape=[2], p=1.0)
    for opset in (1, 6):
        three = [floats(2, 3) for _ in range(3)]
        yield Case("Sum", opset, "three", three, [three[0] + three[1] + three[2]])
    yield Case("Scatter", 9, "axis1", [np.zeros((1, 5), np.float32), np.array([[1, 3]]),
                                       np.array([[1.5, 2.5]], np.float32)],
               [np.array([[0, 1.5, 0, 2.5, 0]], np.float32)], axis=1)
    yield from_gemm(1)
    yield from_gemm(6)


def from_gemm(opset):
    a, b, c = floats(3, 2), floats(4, 3), floats(4)
    return Case("Gemm", opset, "broadcast", [a, b, c], [0.5 * a.T @ b.T + 2 * c], alpha=0.5, beta=2.0,
                transA=1, transB=1, broadcast=1)


# --- sequences and optionals ---

def sequences():
    x, y = floats(2, 3), floats(1, 3)
    pair = "(float[2,3] x, float[1,3] y)"
    yield Text("ConcatFromSequence", 11, "axis0", f"{pair} => (float[a,b] z) "
               "{ s = SequenceConstruct(x, y) z = ConcatFromSequence<axis = 0>(s) }", [x, y],
               [np.concatenate([x, y])])
    yield Text("ConcatFromSequence", 11, "new_axis", "(float[2,3] x) => (float[a,b,c] z) "
               "{ s = SequenceConstruct(x, x) z = ConcatFromSequence<axis = -1, new_axis = 1>(s) }", [x],
               [np.stack([x, x], -1)])
    yield Text("SequenceConstruct", 11, "two", f"{pair} => (seq(float) s) "
               "{ s = SequenceConstruct(x, y) }", [x, y], [[x, y]])
    at = np.array(-1)
    yield Text("SequenceAt", 11, "last", "(float[2,3] x, float[1,3] y, int64 i) => (float[a,b] z) "
               "{ s = SequenceConstruct(x, y) z = SequenceAt(s, i) }", [x, y, at], [y])
    yield Text("SequenceErase", 11, "last", f"{pair} => (seq(float) z) "
               "{ s = SequenceConstruct(x, y) z = SequenceErase(s) }", [x, y], [[x]])
    yield Text("SequenceErase", 11, "position", "(float[2,3] x, float[1,3] y, int64 i) => (seq(float) z) "
               "{ s = SequenceConstruct(x, y, x) z = SequenceErase(s, i) }", [x, y, np.array(0)], [[y, x]])
    yield Text("SequenceLength", 11, "two", f"{pair} => (int64 z) "
               "{ s = SequenceConstruct(x, y) z = SequenceLength(s) }", [x, y], [np.array(2)])
    yield Text("SequenceEmpty", 11, "length", "(float[2,3] x) => (int64 z, seq(float) t) "
               "{ s = SequenceEmpty() z = SequenceLength(s) t = SequenceInsert(s, x) }", [x], [np.array(0), [x]])
    for opset in (15, 28):
        yield Text("Optional", opset, "there", "(float[2,3] x) => (float[2,3] y, bool z) "
                   "{ o = Optional(x) y = OptionalGetElement(o) z = OptionalHasElement(o) }", [x],
                   [x, np.array(True)])


# --- control flow ---

def scan_8():
    """Running sums of every batch entry."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["s2"]), helper.make_node("Identity", ["s2"], ["y"])], "body",
        [helper.make_tensor_value_info("s", 1, [2]), helper.make_tensor_value_info("x", 1, [2])],
        [helper.make_tensor_value_info("s2", 1, [2]), helper.make_tensor_value_info("y", 1, [2])])
    s, x = floats(3, 2), floats(3, 4, 2)
    y = s[:, None] + np.cumsum(x, 1)
    yield Case("Scan", 8, "sums", [None, s, x], [y[:, -1].copy(), y], body=body, num_scan_inputs=1)
    back = s[:, None] + np.cumsum(x[:, ::-1], 1)
    yield Case("Scan", 8, "backwards", [None, s, x], [back[:, -1].copy(), back], body=body, num_scan_inputs=1,
               directions=[1])


def scan_8_lengths():
    """Sequences of different lengths: rows after the end are zero."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["s2"]), helper.make_node("Identity", ["s2"], ["y"])], "body",
        [helper.make_tensor_value_info("s", 1, [2]), helper.make_tensor_value_info("x", 1, [2])],
        [helper.make_tensor_value_info("s2", 1, [2]), helper.make_tensor_value_info("y", 1, [2])])
    s, x, lengths = floats(3, 2), floats(3, 4, 2), np.array([4, 1, 3])
    for label, back in (("lengths", 0), ("lengths_back", 1)):
        y, last = np.zeros((3, 4, 2), np.float32), np.zeros((3, 2), np.float32)
        for b, n in enumerate(lengths):
            y[b, :n] = s[b] + np.cumsum(x[b, :n][::-1] if back else x[b, :n], 0)
            last[b] = y[b, n - 1]
        yield Case("Scan", 8, label, [lengths, s, x], [last, y], body=body, num_scan_inputs=1, directions=[back])


def loop_1():
    """Powers of two, one row a round."""
    yield Text("Loop", 1, "powers", """(int64 n, bool go, float[1] x) => (float[1] last, float[a,1] rows) {
        last, rows = Loop(n, go, x) <body = body (int64 i, bool c, float[1] v) =>
            (bool c2, float[1] v2, float[1] row) {
                c2 = Identity(c) v2 = Add(v, v) row = Identity(v2) }> }""",
               [np.array(4), np.array(True), np.ones(1, np.float32)],
               [np.array([16], np.float32), np.array([[2], [4], [8], [16]], np.float32)])


def cases():
    for group in (legacy_arithmetic, legacy_prelu, flat_softmax, batch_normalization, group_normalization,
                  dropout, upsample, other_forms, sequences, scan_8, scan_8_lengths,
                  loop_1):
        yield from group()
