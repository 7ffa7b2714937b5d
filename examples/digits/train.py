#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains the network of the digits example and writes digits.onnx and test.csv beside this file.

The data are the 1,797 handwritten digits of the UCI repository that scikit-learn ships, 8 x 8 pixels of 0..16. Every
fifth picture is the test split (359 of them), fixed; the others train. The network is trained here in plain numpy:

    image (N, 1, 8, 8) -> conv 3x3, 16 -> relu -> conv 3x3, 32 -> relu -> max pool 2x2 -> dense 64 -> relu -> dense 10

Needs numpy, scikit-learn and onnx; takes about a minute. Deterministic: the same files come out every time.
"""
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

HERE = os.path.dirname(os.path.abspath(__file__))
EPOCHS, BATCH, RATE, DECAY = 60, 64, 2e-3, 1e-4


def patches(x):
    """(N, C, H, W) with a border of zeros -> (N, H, W, C * 9)"""
    n, c, h, w = x.shape
    p = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.stack([p[:, :, i:i + h, j:j + w] for i in range(3) for j in range(3)], axis=2).transpose(0, 3, 4, 1, 2).reshape(n, h, w, c * 9)


def unpatch(g, c):
    """The transpose of patches."""
    n, h, w, _ = g.shape
    g = g.reshape(n, h, w, c, 9)
    out = np.zeros((n, c, h + 2, w + 2), g.dtype)
    for k in range(9):
        i, j = divmod(k, 3)
        out[:, :, i:i + h, j:j + w] += g[..., k].transpose(0, 3, 1, 2)
    return out[:, :, 1:-1, 1:-1]


def forward(p, x):
    a0 = patches(x)
    z1 = np.maximum(a0 @ p["w1"].reshape(16, -1).T + p["b1"], 0).transpose(0, 3, 1, 2)
    a1 = patches(z1)
    z2 = np.maximum(a1 @ p["w2"].reshape(32, -1).T + p["b2"], 0).transpose(0, 3, 1, 2)
    n = len(x)
    windows = z2.reshape(n, 32, 4, 2, 4, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, 32, 4, 4, 4)
    which = windows.argmax(-1)
    flat = np.take_along_axis(windows, which[..., None], -1).reshape(n, 512)
    hidden = np.maximum(flat @ p["w3"].T + p["b3"], 0)
    return hidden @ p["w4"].T + p["b4"], (a0, z1, a1, z2, which, flat, hidden)


def backward(p, saved, g):
    a0, z1, a1, z2, which, flat, hidden = saved
    n = len(g)
    d = {"w4": g.T @ hidden, "b4": g.sum(0)}
    gh = (g @ p["w4"]) * (hidden > 0)
    d["w3"], d["b3"] = gh.T @ flat, gh.sum(0)
    gw = np.zeros((n, 32, 4, 4, 4), np.float32)
    np.put_along_axis(gw, which[..., None], (gh @ p["w3"]).reshape(n, 32, 4, 4)[..., None], -1)
    g2 = gw.reshape(n, 32, 4, 4, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(z2.shape) * (z2 > 0)
    g2 = g2.transpose(0, 2, 3, 1)
    d["w2"], d["b2"] = np.einsum("nhwo,nhwk->ok", g2, a1, optimize=True).reshape(p["w2"].shape), g2.sum((0, 1, 2))
    g1 = unpatch(g2 @ p["w2"].reshape(32, -1), 16) * (z1 > 0)
    g1 = g1.transpose(0, 2, 3, 1)
    d["w1"], d["b1"] = np.einsum("nhwo,nhwk->ok", g1, a0, optimize=True).reshape(p["w1"].shape), g1.sum((0, 1, 2))
    return d


def shifted(x, rng):
    """Each picture moved by up to one pixel."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    at = rng.integers(0, 3, (len(x), 2))
    return np.stack([padded[i, :, a:a + 8, b:b + 8] for i, (a, b) in enumerate(at)])


def train(x, y):
    rng = np.random.default_rng(20)
    shapes = {"w1": (16, 1, 3, 3), "b1": (16,), "w2": (32, 16, 3, 3), "b2": (32,), "w3": (64, 512), "b3": (64,), "w4": (10, 64), "b4": (10,)}
    p = {k: (rng.standard_normal(s) * np.sqrt(2 / np.prod(s[1:])) if len(s) > 1 else np.zeros(s)).astype(np.float32) for k, s in shapes.items()}
    m, v, t = {k: np.zeros_like(a) for k, a in p.items()}, {k: np.zeros_like(a) for k, a in p.items()}, 0
    for epoch in range(EPOCHS):
        rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        for batch in np.array_split(rng.permutation(len(x)), len(x) // BATCH):
            logits, saved = forward(p, shifted(x[batch], rng))
            e = np.exp(logits - logits.max(1, keepdims=True))
            g = (e / e.sum(1, keepdims=True) - np.eye(10, dtype=np.float32)[y[batch]]) / len(batch)
            t += 1
            for k, d in backward(p, saved, g.astype(np.float32)).items():
                d = d + DECAY * p[k]
                m[k] = 0.9 * m[k] + 0.1 * d
                v[k] = 0.999 * v[k] + 0.001 * d * d
                p[k] = (p[k] - rate * (m[k] / (1 - 0.9 ** t)) / (np.sqrt(v[k] / (1 - 0.999 ** t)) + 1e-8)).astype(np.float32)
    return p


def write(p, path):
    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], "conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("MaxPool", ["r2"], ["p2"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p2"], ["flat"], "flatten"),
        helper.make_node("Gemm", ["flat", "w3", "b3"], ["d3"], "dense1", transB=1),
        helper.make_node("Relu", ["d3"], ["r3"], "relu3"),
        helper.make_node("Gemm", ["r3", "w4", "b4"], ["logits"], "dense2", transB=1),
    ]
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(a, k) for k, a in p.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def main():
    digits = load_digits()
    x, y = (digits.images[:, None] / 16).astype(np.float32), digits.target
    test = np.arange(len(x)) % 5 == 4
    p = train(x[~test], y[~test])
    right = forward(p, x[test])[0].argmax(1) == y[test]
    print(f"{right.sum()} of {test.sum()} test digits read correctly ({100 * right.mean():.2f} %)")
    write(p, os.path.join(HERE, "digits.onnx"))
    with open(os.path.join(HERE, "test.csv"), "w", encoding="ascii") as f:
        f.write("# label, then 64 pixels 0..16 by rows; the test split of train.py\n")
        for image, label in zip(digits.images[test].astype(int), y[test]):
            f.write(",".join(map(str, [label, *image.ravel()])) + "\n")


if __name__ == "__main__":
    main()
