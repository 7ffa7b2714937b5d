# SPDX-License-Identifier: MIT
"""The architectures that are drawn by seed: a family is a function of a Graph, which draws widths, kernels, activations from it.

A member of a family is its name with a number: `draw/conv_07`. Each takes less than some 0.3 GFLOP, so that the reference is
soon done. A family may only grow: to change what a name means is to lose its record.
"""
import numpy as np
from graph import FLOAT, HALF, INT32, INT64

ACTIVATIONS = ("Relu", "relu6", "silu", "HardSwish", "LeakyRelu", "gelu", "Elu", "mish", "Sigmoid", "Tanh")


def conv_stage(g, x, channels, width, stride):
    """A stage as the usual networks have them: plain, depthwise with a point, groups, a residue, squeeze and excitation."""
    kind, act = g.pick("plain", "depthwise", "groups", "residue", "squeeze"), g.pick(*ACTIVATIONS)
    kernel = g.pick(1, 3, 3, 5)
    if kind == "depthwise":
        x = g.activation(g.batch_normal(g.conv(x, channels, channels, g.pick(3, 5), channels, stride), channels), act)
        return g.activation(g.conv(x, channels, width, 1), g.pick("none", act))
    groups = g.pick(2, 4) if kind == "groups" else 1
    y = g.conv(x, channels, width, kernel, groups, stride, g.pick(1, 1, 2) if kernel == 3 else 1)
    if g.chance(0.5):
        y = g.batch_normal(y, width)
    y = g.activation(y, act)
    if kind == "squeeze":
        s = g.activation(g.conv(g.node("GlobalAveragePool", [y]), width, width // 4, 1), "Relu")
        return g.node("Mul", [y, g.activation(g.conv(s, width // 4, width, 1), g.pick("Sigmoid", "HardSigmoid"))])
    return g.node("Add", [y, g.conv(y, width, width, 3)]) if kind == "residue" else y


def conv(g):
    size, width, stages = g.pick(24, 32, 48), g.pick(16, 24, 32), g.pick(3, 4, 5)
    x, channels = g.input("image", [1, 3, size, size]), width
    x = g.activation(g.conv(x, 3, width, g.pick(3, 5, 7), 1, g.pick(1, 2)), g.pick(*ACTIVATIONS))
    for _ in range(stages):
        wider = channels * g.pick(1, 1, 2) if channels < 128 else channels
        x, channels = conv_stage(g, x, channels, wider, g.pick(1, 1, 2)), wider
    if g.chance(0.4):
        x = g.node(g.pick("MaxPool", "AveragePool"), [x], kernel_shape=[2, 2], strides=[1, 1], pads=[1, 1, 0, 0])
    y = g.node("Flatten", [g.node("GlobalAveragePool", [x])])
    g.output(g.activation(g.dense(y, channels, g.pick(10, 100)), g.pick("none", "Softmax")))


def transformer(g):
    heads, tokens = g.pick(2, 4, 6), g.pick(16, 33, 64)
    width, kind, gated = heads * g.pick(32, 48, 64), g.pick("layer", "rms"), g.chance(0.4)
    act = g.pick("silu", "gelu") if gated else g.pick("gelu", "gelu_tanh", "Relu")
    shared, first = heads // g.pick(1, 2), g.chance(0.7)  # heads of keys and values; norms before or after
    x = g.input("x", [1, tokens, width])
    for _ in range(g.pick(2, 3)):
        y, _ = g.attention(g.normal(x, width, kind) if first else x, tokens, width, heads, shared)
        x = g.node("Add", [x, y]) if first else g.normal(g.node("Add", [x, y]), width, kind)
        y = g.feed_forward(g.normal(x, width, kind) if first else x, width, 2 * width, act, gated)
        x = g.node("Add", [x, y]) if first else g.normal(g.node("Add", [x, y]), width, kind)
    g.output(g.dense(x, width, g.pick(50, 128)))


def recurrent(g):
    op, steps, batch = g.pick("LSTM", "GRU", "RNN"), g.pick(5, 12, 20), g.pick(1, 2, 4)
    depth, hidden, directions = g.pick(32, 64), g.pick(48, 64, 96), g.pick(1, 2)
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    x = g.input("x", [steps, batch, depth])
    for layer in range(2):
        weights = [g.weight(directions, gates * hidden, depth, scale=0.15), g.weight(directions, gates * hidden, hidden, scale=0.15),
                   g.weight(directions, 2 * gates * hidden, scale=0.1)]
        extra = {"linear_before_reset": g.pick(0, 1)} if op == "GRU" else {}
        direction = "bidirectional" if directions == 2 else g.pick("forward", "reverse")
        y = g.node(op, [x, *weights], 2, hidden_size=hidden, direction=direction, **extra)[0]
        x, depth = g.reshape(g.node("Transpose", [y], perm=[0, 2, 1, 3]), steps, batch, directions * hidden), directions * hidden
    g.output(g.dense(x, depth, 20))


def dynamic(g):
    """Sizes that are free in the file: pictures of any height and width, or texts of any length."""
    if g.chance(0.5):
        x = g.input("image", [1, 3, g.pick(24, 31), g.pick(24, 40)], free={2: "H", 3: "W"})
        x = g.activation(g.conv(x, 3, 16, 3, 1, 2), "Relu")
        for width in (16, 32):
            x = g.activation(g.conv(x, 16, width, g.pick(1, 3), 1), g.pick("Relu", "silu"))
        return g.output(g.dense(g.node("Flatten", [g.node("GlobalAveragePool", [x])]), 32, 10))
    width, tokens = g.pick(64, 96), g.pick(7, 24)
    ids = g.input("ids", [1, tokens], INT64, {1: "T"}, g.rng.randint(0, 200, [1, tokens]))
    x = g.node("Gather", [g.weight(200, width, scale=1), ids])
    for _ in range(2):
        y = g.normal(x, width, g.pick("layer", "rms"))
        scores = g.node("MatMul", [g.dense(y, width, width), g.node("Transpose", [g.dense(y, width, width)], perm=[0, 2, 1])])
        scores = g.node("Softmax", [g.node("Mul", [scores, g.constant(width ** -0.5)])], axis=-1)
        x = g.node("Add", [x, g.node("MatMul", [scores, g.dense(y, width, width)])])
        x = g.node("Add", [x, g.feed_forward(x, width, 2 * width, g.pick("gelu", "Relu"), False)])
    return g.output(g.dense(x, width, 32))


def mixer(g):
    tokens, width = g.pick(16, 36, 49), g.pick(48, 64, 96)
    x = g.input("x", [1, tokens, width])
    for _ in range(g.pick(2, 3)):
        y = g.node("Transpose", [g.normal(x, width)], perm=[0, 2, 1])
        y = g.feed_forward(y, tokens, 2 * tokens, g.pick("gelu", "silu"), g.chance(0.3))
        x = g.node("Add", [x, g.node("Transpose", [y], perm=[0, 2, 1])])
        x = g.node("Add", [x, g.feed_forward(g.normal(x, width), width, 2 * width, g.pick("gelu", "silu"), g.chance(0.3))])
    g.output(g.node("ReduceMean", [x], axes=[1], keepdims=0))


def detector(g):
    """Boxes and scores from a small network, then the best by TopK or by NonMaxSuppression."""
    size, classes = g.pick(32, 40), g.pick(3, 5)
    x = g.activation(g.conv(g.input("image", [1, 3, size, size]), 3, 24, 3, 1, 2), "Relu")
    x, count = g.activation(g.conv(x, 24, 32, 3, 1, 2), "silu"), (size // 4) ** 2
    scores = g.activation(g.reshape(g.conv(x, 32, classes, 1), 1, classes, count), "Sigmoid")
    boxes = g.node("Transpose", [g.reshape(g.activation(g.conv(x, 32, 4, 1), "Sigmoid"), 1, 4, count)], perm=[0, 2, 1])
    if g.chance(0.5):
        best = g.node("ReduceMax", [scores], axes=[1], keepdims=0)
        values, places = g.node("TopK", [best, g.constant([g.pick(5, 20)], np.int64)], 2, axis=1)
        g.output(values)
        return g.output(g.node("Gather", [boxes, g.node("Squeeze", [places, g.constant([0], np.int64)])], axis=1))
    limits = [g.constant([g.pick(5, 10)], np.int64), g.constant([0.5], np.float32), g.constant([0.3], np.float32)]
    kept = g.node("NonMaxSuppression", [boxes, scores, *limits])
    g.output(kept, INT64)
    return g.output(g.node("GatherND", [scores, g.node("Slice", [kept, g.constant([0], np.int64), g.constant([2], np.int64),
                                                                g.constant([1], np.int64)])]))


def scalar(g):
    """Pointwise operators, reductions and moves, drawn from many."""
    shape = [g.pick(4, 8), g.pick(30, 64), g.pick(100, 129)]
    x = g.input("x", shape)
    y = g.input("y", shape)
    for _ in range(g.pick(6, 10)):
        op = g.pick("Add", "Mul", "Sub", "Max", "Min", "unary", "unary", "unary", "reduce", "where", "move", "softmax")
        if op == "unary":
            x = g.node(g.pick("Exp", "Tanh", "Sin", "Cos", "Erf", "Sigmoid", "Softplus", "Abs", "Neg", "Atan", "Floor"), [g.node("Tanh", [x])])
        elif op == "reduce":
            axis = g.pick(0, 1, 2)
            x = g.node("Sub", [x, g.node(g.pick("ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp"), [x], axes=[axis], keepdims=1)])
        elif op == "where":
            x = g.node("Where", [g.node(g.pick("Less", "Greater"), [x, y]), x, g.node("Mul", [y, g.constant(0.1)])])
        elif op == "move":
            first = g.constant([1], np.int64), g.constant([shape[1]], np.int64), g.constant([1], np.int64)
            x = g.node("Pad", [g.node("Slice", [x, *first]), g.constant([0, 1, 0, 0, 0, 0], np.int64)], mode=g.pick("constant", "edge", "reflect"))
        elif op == "softmax":
            x = g.node(g.pick("Softmax", "LogSoftmax"), [x], axis=g.pick(1, 2))
        else:
            x = g.node(op, [x, y])
    g.output(g.node("Add", [x, g.node("Mul", [y, g.constant(0.1)])]))


def encoder(g):
    """Down and up again, with joined skips: resizing, transposed convolutions, sums and concatenations."""
    size, width = g.pick(24, 32), g.pick(12, 16)
    x = g.activation(g.conv(g.input("image", [1, 3, size, size]), 3, width, 3), "Relu")
    skips = []
    for level in range(2):
        skips.append(x)
        x = g.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
        x = g.activation(g.conv(x, width << level, width << (level + 1), 3), g.pick("Relu", "silu", "LeakyRelu"))
    for level in (1, 0):
        channels = width << (level + 1)
        if g.chance(0.5):
            x = g.node("ConvTranspose", [x, g.weight(channels, channels, 2, 2)], strides=[2, 2])
        else:
            modes = g.pick(("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners"))
            x = g.node("Resize", [x, "", g.constant([1, 1, 2, 2], np.float32)], mode=modes[0], coordinate_transformation_mode=modes[1])
        x = g.node("Concat", [x, skips[level]], axis=1)
        x = g.activation(g.conv(x, channels + (width << level), width << level, 3), "Relu")
    if g.chance(0.5):
        x = g.node("InstanceNormalization", [x, g.weight(width, scale=0.5), g.weight(width, scale=0.1)])
    g.output(g.activation(g.conv(x, width, 4, 1), g.pick("Sigmoid", "none")))


def sound(g):
    """One axis: convolutions over time, dilated, with gates."""
    length, width = g.pick(200, 400), g.pick(16, 32)
    x = g.conv(g.input("x", [1, 1, length]), 1, width, 5, dims=1)
    for level in range(g.pick(3, 4)):
        a, b = (g.conv(x, width, width, 3, dilation=1 << level, dims=1) for _ in range(2))
        x = g.node("Add", [x, g.node("Mul", [g.node("Tanh", [a]), g.node("Sigmoid", [b])])])
    g.output(g.conv(g.activation(x, "Relu"), width, 8, 1, dims=1))


# --- decoders: one token, caches before it ---

def cached(g):
    width, heads, past = 256, 4, 40
    x = g.node("Gather", [g.weight(500, width, scale=1), g.input("id", [1, 1], INT64, None, [[7]])])
    presents = []
    for i in range(2):
        caches = [g.input(f"past_{k}{i}", [1, heads, past, width // heads], free={2: "P"}) for k in "kv"]
        y, present = g.attention(g.normal(x, width, "layer"), 1, width, heads, past=caches)
        x, presents = g.node("Add", [x, y]), presents + present
        x = g.node("Add", [x, g.feed_forward(g.normal(x, width, "layer"), width, 2 * width, "silu", True)])
    g.output(g.dense(x, width, 500, False))
    for present in presents:
        g.output(present)


def four_bits(g, x, depth, width, block=32):
    blocks = depth // block
    parts = [g.constant(g.rng.randint(0, 256, (width, blocks, block // 2)), np.uint8), g.constant(g.rng.random_sample(width * blocks) * 0.02, np.float32)]
    return g.node("MatMulNBits", [x, *parts], domain="com.microsoft", K=depth, N=width, bits=4, block_size=block)


def grouped(g, product=None):
    """Layers of GroupQueryAttention with rotation; `product` multiplies by weights."""
    width, heads, shared, past = 256, 4, 2, 33
    each, product = width // heads, product or (lambda g, x, d, w: g.dense(x, d, w, False))
    angle = np.outer(np.arange(64), 10000.0 ** (-np.arange(each // 2) / (each // 2)))
    tables = [g.constant(f(angle)) for f in (np.cos, np.sin)]
    lengths = [g.input("lengths", [1], INT32, None, [past]), g.input("total", [], INT32, None, past + 1)]
    x = g.node("Gather", [g.weight(500, width, scale=1), g.input("id", [1, 1], INT64, None, [[7]])])
    presents = []
    for i in range(2):
        caches = [g.input(f"past_{k}{i}", [1, shared, past, each]) for k in "kv"]
        qkv = product(g, g.normal(x, width, "rms"), width, (heads + 2 * shared) * each)
        y = g.node("GroupQueryAttention", [qkv, "", "", *caches, *lengths, *tables], 3, "com.microsoft", num_heads=heads, kv_num_heads=shared, do_rotary=1)
        x, presents = g.node("Add", [x, product(g, y[0], width, width)]), presents + y[1:]
        y = g.activation(product(g, g.normal(x, width, "rms"), width, 512), "silu")
        x = g.node("Add", [x, product(g, y, 512, width)])
    g.output(product(g, x, width, 512))
    for present in presents:
        g.output(present)


def packed(g):
    grouped(g, four_bits)


DECODERS = {"cached": (cached, FLOAT), "cached_half": (cached, HALF), "grouped": (grouped, FLOAT), "grouped_half": (grouped, HALF),
            "packed": (packed, FLOAT)}
FAMILIES = {"conv": (conv, 16), "transformer": (transformer, 12), "recurrent": (recurrent, 6), "dynamic": (dynamic, 6), "mixer": (mixer, 4),
            "detector": (detector, 5), "scalar": (scalar, 6), "encoder": (encoder, 4), "sound": (sound, 3)}
