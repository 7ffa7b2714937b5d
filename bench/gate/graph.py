# SPDX-License-Identifier: MIT
"""A graph that is written layer by layer: each call adds nodes and weights and returns the name of what they make.

All that is drawn comes from one frozen generator keyed by the model's name (numpy's RandomState, whose stream does not
change), so a name is a model on every machine. Shapes are kept beside the names, since layers are drawn by them.
"""
import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, HALF, INT64, INT32 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64, TensorProto.INT32
TYPES = {FLOAT: np.float32, HALF: np.float16, INT64: np.int64, INT32: np.int32}


class Graph:
    """`real` is the type of inputs and weights; `bytes` quantizes what the products read, as QDQ with one scale a tensor,
    weights with one a channel."""

    def __init__(self, name, real=FLOAT, quantized=False):
        self.name, self.real, self.quantized = name, real, quantized
        self.rng = np.random.RandomState(zlib.crc32(name.encode()))
        self.nodes, self.initial, self.inputs, self.outputs, self.feed = [], [], [], [], {}

    # --- what is drawn ---

    def pick(self, *choices):
        return choices[self.rng.randint(len(choices))]

    def chance(self, probability):
        return self.rng.random_sample() < probability

    # --- parts ---

    def fresh(self, stem):
        return f"{stem}_{len(self.nodes)}_{len(self.initial)}"

    def node(self, op, inputs, outputs=1, domain="", **attributes):
        names = [f"{self.fresh(op.lower())}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=names[0], domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, values, kind=None):
        name = self.fresh("c")
        self.initial.append(numpy_helper.from_array(np.ascontiguousarray(values, dtype=kind or TYPES[self.real]), name))
        return name

    def weight(self, *shape, scale=None):
        depth = np.prod(shape[1:]) if len(shape) > 2 else shape[0]
        return self.constant(self.rng.standard_normal(shape) * (scale or 1 / np.sqrt(depth)))

    def input(self, name, shape, kind=None, free=None, values=None):
        """`free` has names of the sizes that the model leaves open, by axis."""
        kind = kind or self.real
        dims = [(free or {}).get(axis, size) for axis, size in enumerate(shape)]
        self.inputs.append(helper.make_tensor_value_info(name, kind, dims))
        values = self.rng.standard_normal(shape) if values is None else values
        self.feed[name] = np.asarray(values, TYPES[kind])
        return name

    def output(self, name, kind=None, rank=None):
        self.outputs.append(helper.make_tensor_value_info(name, kind or self.real, None if rank is None else [None] * rank))

    def model(self, opset=17):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initial)
        domains = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=domains, ir_version=8)

    # --- layers ---

    def as_bytes(self, x, scale=0.03):
        if not self.quantized:
            return x
        pair = [self.constant(scale, np.float32), self.constant(128, np.uint8)]
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [x, *pair]), *pair])

    def product_weight(self, *shape, axis=0):
        if not self.quantized:
            return self.weight(*shape)
        depth = np.prod(shape) / shape[axis]
        values = self.rng.randint(-60, 61, shape)
        scales = np.full(shape[axis], 1 / (35 * np.sqrt(depth)))
        inputs = [self.constant(values, np.int8), self.constant(scales, np.float32), self.constant(np.zeros(shape[axis]), np.int8)]
        return self.node("DequantizeLinear", inputs, axis=axis)

    def conv(self, x, channels, width, kernel, groups=1, stride=1, dilation=1, dims=2):
        pad = dilation * (kernel - 1) // 2
        w = self.product_weight(width, channels // groups, *[kernel] * dims)
        inputs = [self.as_bytes(x), w] + ([] if self.quantized else [self.weight(width, scale=0.1)])
        return self.node("Conv", inputs, group=groups, strides=[stride] * dims, dilations=[dilation] * dims, pads=[pad] * 2 * dims)

    def dense(self, x, depth, width, bias=True):
        y = self.node("MatMul", [self.as_bytes(x), self.product_weight(depth, width, axis=1)])
        return self.node("Add", [y, self.weight(width, scale=0.1)]) if bias else y

    def normal(self, x, width, kind="layer"):
        g = self.constant(1 + 0.1 * self.rng.standard_normal(width))
        if kind == "layer":
            return self.node("LayerNormalization", [x, g, self.weight(width, scale=0.1)], axis=-1)
        square = self.node("Mul", [x, x])  # RMS
        mean = self.node("ReduceMean", [square], axes=[-1], keepdims=1)
        root = self.node("Sqrt", [self.node("Add", [mean, self.constant(1e-5)])])
        return self.node("Mul", [self.node("Div", [x, root]), g])

    def batch_normal(self, x, width):
        shift = [self.weight(width, scale=0.1) for _ in range(2)]
        spread = [self.constant(1 + 0.2 * self.rng.random_sample(width)) for _ in range(2)]
        return self.node("BatchNormalization", [x, spread[0], *shift, spread[1]])

    def gelu(self, x):
        erf = self.node("Erf", [self.node("Div", [x, self.constant(2 ** 0.5)])])
        one = self.node("Add", [erf, self.constant(1)])
        return self.node("Mul", [self.node("Mul", [x, one]), self.constant(0.5)])

    def gelu_tanh(self, x):
        cube = self.node("Mul", [self.node("Mul", [x, x]), x])
        inner = self.node("Add", [x, self.node("Mul", [cube, self.constant(0.044715)])])
        one = self.node("Add", [self.node("Tanh", [self.node("Mul", [inner, self.constant(0.7978845608)])]), self.constant(1)])
        return self.node("Mul", [self.node("Mul", [x, self.constant(0.5)]), one])

    def activation(self, x, kind):
        if kind == "silu":
            return self.node("Mul", [x, self.node("Sigmoid", [x])])
        if kind in ("gelu", "gelu_tanh"):
            return getattr(self, kind)(x)
        if kind == "relu6":
            return self.node("Clip", [x, self.constant(0), self.constant(6)])
        if kind == "mish":
            return self.node("Mul", [x, self.node("Tanh", [self.node("Softplus", [x])])])
        return x if kind == "none" else self.node(kind, [x])

    def reshape(self, x, *dims):
        return self.node("Reshape", [x, self.constant(dims, np.int64)])

    def attention(self, x, tokens, width, heads, shared=None, past=None):
        """Over {1, tokens, width}; `shared` heads of keys and values; `past` names caches before, and what follows is returned."""
        shared, each = shared or heads, width // heads
        parts = {}
        for part, count in (("q", heads), ("k", shared), ("v", shared)):
            y = self.reshape(self.dense(x, width, count * each), 1, tokens, count, each)
            parts[part] = self.node("Transpose", [y], perm=[0, 2, 1, 3])
        present = []
        if past:
            parts["k"], parts["v"] = present = [self.node("Concat", [p, parts[k]], axis=2) for p, k in zip(past, "kv")]
        if shared != heads:
            for k in "kv":
                y = self.node("Expand", [self.node("Unsqueeze", [parts[k], self.constant([2], np.int64)]),
                                         self.constant([1, shared, heads // shared, 1, 1], np.int64)])
                parts[k] = self.reshape(y, 1, heads, -1, each)
        scores = self.node("MatMul", [parts["q"], self.node("Transpose", [parts["k"]], perm=[0, 1, 3, 2])])
        scores = self.node("Softmax", [self.node("Mul", [scores, self.constant(each ** -0.5)])], axis=-1)
        y = self.node("Transpose", [self.node("MatMul", [scores, parts["v"]])], perm=[0, 2, 1, 3])
        return self.dense(self.reshape(y, 1, tokens, width), width, width), present

    def feed_forward(self, x, width, inner, kind, gated):
        up = self.activation(self.dense(x, width, inner, not gated), kind)
        if gated:
            up = self.node("Mul", [up, self.dense(x, width, inner, False)])
        return self.dense(up, inner, width, not gated)
