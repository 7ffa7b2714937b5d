# SPDX-License-Identifier: MIT
"""Quantised models on a card: those of ONNX Runtime's quantizer (test/onnx/make_quantized.py) against the reference, and
random products and convolutions of bytes with what follows them against numpy. The card is MGX_TEST_DEVICE, else whatever OpenCL has;
MGX_CASES says how many of each."""
import math
import os
import re

import card  # first: it says which card
import migraphx
import numpy as np
import pytest
from quantized_models import MODELS, check

pytestmark = card.needs_card
CASES = int(os.environ.get("MGX_CASES", "2"))
SEED = int(os.environ.get("MGX_SEED", "1"))


@pytest.mark.parametrize("path", card.some(MODELS), ids=lambda path: path.stem)
def test_models(path):
    check(path, "gpu", offload_copy=True)


class Builder:
    """A program of bytes, and the same in numpy."""

    def __init__(self, seed):
        self.rng, self.program, self.feeds = np.random.default_rng(seed), migraphx.program(), {}
        self.main = self.program.get_main_module()

    def op(self, name, inputs, **attributes):
        return self.main.add_instruction(migraphx.op(name, **attributes), inputs)

    def pick(self, *values):
        return values[self.rng.integers(len(values))]

    def bytes(self, kind, shape):
        low, high = (-128, 128) if kind == "int8" else (0, 256)
        return self.rng.integers(low, high, shape).astype(kind)

    def param(self, value):
        name = "p%d" % len(self.feeds)
        self.feeds[name] = value
        return self.main.add_parameter(name, migraphx.shape(type=str(value.dtype) + "_type" if value.dtype != np.float32 else "float_type", lens=list(value.shape)))

    def literal(self, value):
        return self.main.add_literal(np.ascontiguousarray(value))

    def over(self, value, shape):
        return self.op("multibroadcast", [self.literal(np.array([value]) if np.ndim(value) == 0 else value)], out_lens=list(shape))

    def zero(self, kind, often=0.5):
        ends = {"int8": [0, -128, 5, -77], "uint8": [0, 128, 3, 200]}[kind]
        return np.array(self.pick(*ends) if self.rng.random() < often else 0, kind)

    def narrowed(self, y, want, shape):
        """What makes bytes of sums: a scale for every column or one, a bias, a residual of bytes, an activation."""
        rng, axis = self.rng, 1 if len(shape) == 4 else len(shape) - 1
        columns = [shape[axis] if d == axis else 1 for d in range(len(shape))]
        size = max(float(np.abs(want).max()), 1.0)
        scale = (rng.uniform(0.5, 2, columns) / size).astype(np.float32)
        y, want = self.op("dequantizelinear", [y, self.over(scale, shape)]), want * scale.astype(np.float64)
        if rng.integers(2):
            bias = rng.uniform(-1, 1, columns).astype(np.float32)
            y, want = self.op("add", [y, self.over(bias, shape)]), want + bias
        if rng.integers(2):
            kind, s = self.pick("int8", "uint8"), np.float32(0.01)
            other, z = self.bytes(kind, shape), self.zero(kind)
            r = self.op("dequantizelinear", [self.param(other), self.over(s, shape), self.over(z, shape)])
            y, want = self.op("add", [y, r]), want + (other.astype(np.float64) - float(z)) * s
        if rng.integers(2):
            y, want = self.op("relu", [y]), np.maximum(want, 0)
        kind, s = self.pick("int8", "uint8"), np.float32(rng.uniform(0.005, 0.02))
        z = self.zero(kind)
        y = self.op("quantizelinear", [y, self.over(s, shape), self.over(z, shape)])
        return y, want / s + float(z), kind

    def check(self, y, want, kind):
        self.main.add_return([y])
        self.program.compile(migraphx.get_target("gpu"), offload_copy=True)
        said = self.program.explain()
        assert ": ref (" not in said, said
        runs = [np.array(self.program.run(self.feeds)[0]) for _ in range(3)]  # the third one plays a recording
        assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])
        if kind is None:
            np.testing.assert_array_equal(runs[0], want)
            return
        low, high = (-128, 127) if kind == "int8" else (0, 255)
        got, want = runs[0].astype(np.float64), np.clip(want, low, high)
        assert np.abs(got - want).max() <= 0.5 + 2e-3, np.abs(got - want).max()  # where a float lies between two


def finish(b, y, want, shape):
    if b.rng.integers(4) == 0:
        b.check(y, want, None)  # sums are exact
    else:
        y, want, kind = b.narrowed(y, want.astype(np.float64), shape)
        b.check(y, want, kind)


def zeros(b, p, q):
    return [b.literal(np.array([p])), b.literal(np.array([q]))] if q else [b.literal(np.array([p]))] if p else []


@pytest.mark.parametrize("case", range(CASES))
def test_products(case):
    b = Builder([SEED, 1, case])
    ka, kb = b.pick("int8", "uint8"), b.pick("int8", "int8", "uint8")
    rows, depth, columns = b.pick(1, 5, 33, 128, 197, 300), b.pick(3, 16, 30, 40, 64, 100, 152, 256, 768), b.pick(3, 8, 30, 40, 64, 96, 200, 264)
    batch = [int(n) for n in b.rng.integers(1, 4, b.rng.integers(0, 3))]
    x, p = b.bytes(ka, batch + [rows, depth]), b.zero(ka)
    constant = b.rng.integers(3) > 0
    w, q = b.bytes(kb, [depth, columns] if constant else batch + [depth, columns]), b.zero(kb, 0.3)
    if not constant:
        right = b.param(w)
    elif b.rng.integers(2):
        right = b.op("transpose", [b.literal(w.T.copy())], permutation=[1, 0])
    else:
        right = b.literal(w)
    if batch and constant:
        right = b.op("multibroadcast", [right], out_lens=batch + [depth, columns])
    y = b.op("quant_dot", [b.param(x), right] + zeros(b, p, q))
    want = (x.astype(np.int64) - int(p)) @ (w.astype(np.int64) - int(q))
    finish(b, y, want, batch + [rows, columns])


def convolution(x, w, stride, padding, dilation, group):
    n, c, h, _ = x.shape
    o, cg, kh, kw = w.shape
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    oh = (x.shape[2] - (kh - 1) * dilation[0] - 1) // stride[0] + 1
    ow = (x.shape[3] - (kw - 1) * dilation[1] - 1) // stride[1] + 1
    y = np.zeros((n, o, oh, ow), np.int64)
    for g in range(group):
        for i in range(kh):
            for j in range(kw):
                part = x[:, g * cg : (g + 1) * cg, i * dilation[0] :, j * dilation[1] :][:, :, : (oh - 1) * stride[0] + 1 : stride[0], : (ow - 1) * stride[1] + 1 : stride[1]]
                y[:, g * o // group : (g + 1) * o // group] += np.einsum("nchw,oc->nohw", part, w[g * o // group : (g + 1) * o // group, :, i, j])
    return y


@pytest.mark.parametrize("case", range(CASES))
def test_convolutions(case):
    b = Builder([SEED, 2, case])
    ka, kb = b.pick("int8", "uint8"), b.pick("int8", "int8", "uint8")
    group = b.pick(1, 1, 1, 2)
    size = [b.pick(1, 2, 3), group * b.pick(3, 4, 16, 24, 64, 72, 160), b.pick(7, 8, 14, 31), b.pick(7, 9, 28)]
    if b.rng.integers(8) == 0:
        group = size[1]
    k = [b.pick(1, 2, 3, 5), b.pick(1, 3, 3)] if b.rng.integers(3) else [1, 1]
    stride, dilation = [b.pick(1, 1, 2, 3), b.pick(1, 1, 2)], [b.pick(1, 1, 2), 1]
    padding = [b.pick(0, 1, k[0] // 2), b.pick(0, k[1] // 2)]
    if (k[0] - 1) * dilation[0] + 1 > size[2] + 2 * padding[0] or k[1] > size[3] + 2 * padding[1]:
        dilation, padding = [1, 1], [k[0] // 2, k[1] // 2]
    out = group * (b.pick(1, 2) if group == size[1] else b.pick(8, 16, 40, 64, 65))
    x, p = b.bytes(ka, size), b.zero(ka)
    w, q = b.bytes(kb, [out, size[1] // group] + k), b.zero(kb, 0.3)
    y = b.op("quant_convolution", [b.param(x), b.literal(w)] + zeros(b, p, q), padding=padding, stride=stride, dilation=dilation, group=group)
    want = convolution(x.astype(np.int64) - int(p), w.astype(np.int64) - int(q), stride, padding, dilation, group)
    finish(b, y, want, list(want.shape))


@pytest.mark.parametrize("case", range(CASES + 2))
def test_borders(case):
    """Whole lines of channels whose zero point lies around the image, one reader of it or two, in groups or not; the first
    case is large enough to be packed before it is multiplied where pixels have few channels."""
    b = Builder([SEED, 12, case])
    kind, large = b.pick("int8", "uint8"), case == 0
    size = [2, 32, 120, 113] if large else [b.pick(1, 3), 16 * b.pick(1, 2, 3, 4, 8, 9), b.pick(5, 13, 24, 40), b.pick(4, 7, 20, 33)]
    k = [3, 3] if large else [b.pick(1, 2, 3, 5), b.pick(2, 3, 4)]
    stride, padding = [b.pick(1, 1, 2), b.pick(1, 1, 2)], [b.pick(*range(k[0])), b.pick(*range(1, k[1]))]
    if large:
        stride, padding = [1, 1], [1, 1]
    if k[0] > size[2] + 2 * padding[0]:
        k[0], padding[0] = 1, 0
    p, shown = np.array(b.pick(*{"int8": [5, -77], "uint8": [3, 131]}[kind]), kind), b.bytes("int8", [size[0], 16, *size[2:]])
    every = np.arange(size[1]) % 16  # the image is made by a convolution that repeats channels
    image = b.op("quant_convolution", [b.param(shown), b.literal(np.eye(16, dtype=np.int8)[every].reshape(size[1], 16, 1, 1))], padding=[0, 0], stride=[1, 1], dilation=[1, 1], group=1)
    image = b.op("dequantizelinear", [image, b.over(np.float32(1), size)])
    image = b.op("quantizelinear", [image, b.over(np.float32(1), size), b.over(p, size)])
    x = np.clip(shown[:, every].astype(np.int64) + int(p), *{"int8": (-128, 127), "uint8": (0, 255)}[kind])
    sums, want, group = [], 0, 1 if large else b.pick(1, 1, 2, size[1] // 8)
    for out in [group * b.pick(2, 16, 24, 64, 130) if group < 3 else group * b.pick(4, 8)] * b.pick(1, 2):
        w = b.bytes("int8", [out, size[1] // group] + k)
        y = b.op("quant_convolution", [image, b.literal(w), b.literal(np.array([p]))], padding=padding, stride=stride, dilation=[1, 1], group=group)
        sums.append(y)
        want = want + convolution(x.astype(np.int64) - int(p), w.astype(np.int64), stride, padding, [1, 1], group)
    finish(b, sums[0] if len(sums) == 1 else b.op("add", sums), want, list(want.shape))
    said = b.program.explain()
    if ": gpu::wgmma" in said and b.program.get_output_shapes()[0].type_string() != "int32_type" and not large:
        assert "border by a table" in said, said


@pytest.mark.parametrize("case", range(CASES + 1))
def test_groups_of_half_a_line(case):
    """An odd number of groups of 8 or 24 channels: two are lines of 16 bytes, and the last one is alone."""
    b = Builder([SEED, 21, case])
    each, group = b.pick((8, 33), (8, 55), (24, 11), (24, 13), (8, 35)) if case else (8, 55)
    size, out = [b.pick(1, 3), each * group, b.pick(5, 7, 14), b.pick(4, 7, 19)], group * b.pick(each, 4, 16, 24)
    shown, p = b.bytes("int8", [size[0], 16, *size[2:]]), np.array(b.pick(0, 0, 3, 131), "uint8")
    every = np.arange(size[1]) * 7 % 16
    image = b.op("quant_convolution", [b.param(shown), b.literal(np.eye(16, dtype=np.int8)[every].reshape(size[1], 16, 1, 1))], padding=[0, 0], stride=[1, 1], dilation=[1, 1], group=1)
    image = b.op("dequantizelinear", [image, b.over(np.float32(1), size)])
    image = b.op("quantizelinear", [image, b.over(np.float32(1), size), b.over(p, size)])
    x = np.clip(shown[:, every].astype(np.int64) + int(p), 0, 255)
    k, stride = [b.pick(1, 3), 3], [b.pick(1, 2), b.pick(1, 1, 2)]
    padding, w = [k[0] // 2, 1], b.bytes("int8", [out, each] + k)
    y = b.op("quant_convolution", [image, b.literal(w)] + ([b.literal(np.array([p]))] if p else []), padding=padding, stride=stride, dilation=[1, 1], group=group)
    want = convolution(x - int(p), w.astype(np.int64), stride, padding, [1, 1], group)
    finish(b, y, want, list(want.shape))
    said = b.program.explain()
    assert "groups whose channels are no lines" not in said, said
    assert "gpu::wgmma" not in said or "no matrix units of Hopper" in said or f"of {group} groups in a tile" in said, said


@pytest.mark.parametrize("case", range(CASES + 2))
def test_depthwise(case):
    """Windows that begin at even and at odd pixels, of several words; places that are cut off at the right and below."""
    b = Builder([SEED, 3, case])
    ka, kb = b.pick("int8", "uint8"), b.pick("int8", "int8", "uint8")
    many = case % 4 == 0  # a thread has several rows and columns of places
    size = [b.pick(1, 2), b.pick(4, 7, 16, 36, 122, 144), b.pick(5, 14, 31), b.pick(6, 13, 28)] if not many else [b.pick(5, 6), 144, b.pick(47, 48), b.pick(33, 34)]
    k, stride, far = b.pick([3, 3], [3, 3], [5, 5], [7, 7], [1, 4], [2, 3]), b.pick(1, 1, 2, 3), b.pick(1, 1, 1, 2)
    stride, dilation = [stride, b.pick(stride, 1, 2)], [far, b.pick(1, 1, 1, far)]
    padding = [(k[0] - 1) // 2 * far, k[1] // 2]
    x, p = b.bytes(ka, size), b.zero(ka, 0.3)
    w, q = b.bytes(kb, [size[1], 1] + k), b.zero(kb, 0.5)
    same = b.literal(np.eye(size[1], dtype=np.int8)[:, :, None, None])  # channels lie last behind it
    image = b.op("quant_convolution", [b.param(x), same], padding=[0, 0], stride=[1, 1], dilation=[1, 1], group=1)
    image = b.op("dequantizelinear", [image, b.over(np.float32(1), size)])
    image = b.op("quantizelinear", [image, b.over(np.float32(1), size), b.over(np.array(0, ka), size)])
    y = b.op("quant_convolution", [image, b.literal(w)] + zeros(b, p, q), padding=padding, stride=stride, dilation=dilation, group=size[1])
    x = np.pad(x.astype(np.int64) - int(p), ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    seen = [(x.shape[2 + i] - (k[i] - 1) * dilation[i] - 1) // stride[i] + 1 for i in range(2)]
    want = sum(x[:, :, i * dilation[0] :, j * dilation[1] :][:, :, : (seen[0] - 1) * stride[0] + 1 : stride[0], : (seen[1] - 1) * stride[1] + 1 : stride[1]]
               * (w[:, 0, i, j].astype(np.int64) - int(q))[:, None, None] for i in range(k[0]) for j in range(k[1]))
    finish(b, y, want, list(want.shape))
    said = b.program.explain()
    assert dilation[1] > 1 or "gpu::depthwise (four channels a word)" in said
    assert "-> int32" in said or "pad:" not in said  # bytes beside the image are the kernel's


@pytest.mark.parametrize("each, k, dilation, last", [(2, [3, 3], [1, 1], False), (1, [3, 3], [2, 2], False), (1, [65, 1], [1, 1], False),
                                                    (1, [3, 3], [2, 2], True), (1, [5, 2], [1, 3], True), (1, [3, 5], [2, 2], True)])
def test_depthwise_by_weights_less_their_zero_points(each, k, dilation, last):
    """Where no kernel sums up windows on its way: weights of 16 bits, and one convolution; of images that lie channels last too."""
    b = Builder([SEED, 22, each, *k, *dilation, last])
    size, p, q = [2, 24, 70, 9], np.array(131, "uint8"), np.array(b.pick(3, 250, 128 + 17), "uint8")
    x, w = b.bytes("uint8", size), b.bytes("uint8", [size[1] * each, 1] + k)
    padding, image = [k[0] // 2 * dilation[0], k[1] // 2 * dilation[1]], b.param(x)
    if last:
        image = b.op("quant_convolution", [image, b.literal(np.eye(size[1], dtype=np.int8)[:, :, None, None])], padding=[0, 0], stride=[1, 1], dilation=[1, 1], group=1)
        image = b.op("dequantizelinear", [image, b.over(np.float32(1), size)])
        image = b.op("quantizelinear", [image, b.over(np.float32(1), size), b.over(np.array(0, "uint8"), size)])
    y = b.op("quant_convolution", [image, b.literal(w)] + zeros(b, p, q), padding=padding, stride=[1, 1], dilation=dilation, group=size[1])
    want = convolution(x.astype(np.int64) - int(p), w.astype(np.int64) - int(q), [1, 1], padding, dilation, size[1])
    finish(b, y, want, list(want.shape))
    assert b.program.explain().count("gpu::depthwise (" if last else "gpu::direct (depthwise") == 1


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("k, stride, padding", [([3, 3], [2, 2], [1, 1]), ([2, 3], [1, 2], [0, 1]), ([3, 2], [3, 3], [1, 0])])
def test_maxima(kind, k, stride, padding):
    """Four channels of a word at once, and as many words as a thread takes."""
    b = Builder([SEED, 4, k[0]])
    size = [4, 48, 64, 66]
    x = b.bytes(kind, size)
    image = b.op("transpose", [b.param(x.transpose(0, 2, 3, 1).copy())], permutation=[0, 3, 1, 2])
    y = b.op("pooling", [image], mode=migraphx.op.pooling_mode.max, padding=padding, stride=stride, lengths=k, dilations=[1, 1])
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2), constant_values=np.iinfo(kind).min)
    seen = np.lib.stride_tricks.sliding_window_view(x, k, axis=(2, 3))[:, :, :: stride[0], :: stride[1]]
    b.check(y, seen.max(axis=(4, 5)), None)


@pytest.mark.parametrize("kinds", [("uint8", "uint8"), ("int8", "int8"), ("int8", "uint8")])
@pytest.mark.parametrize("product", [True, False])
@pytest.mark.parametrize("residual", [False, True])
def test_tables(kinds, product, residual):
    """What is a function of one byte is looked up, behind a product and alone, as the result and on the way to it."""
    b, (ka, kb) = Builder([SEED, 5]), kinds
    shape, low = [40, 64], {"int8": -128, "uint8": 0}
    if product:
        x, w, start = b.bytes("uint8", [40, 32]), b.bytes("int8", [32, 64]), b.zero(ka)
        y = b.op("quant_dot", [b.param(x), b.literal(w)])
        y = b.op("dequantizelinear", [y, b.over(np.float32(0.00137913), shape)])
        y = b.op("quantizelinear", [y, b.over(np.float32(0.25), shape), b.over(start, shape)])
        byte = np.rint((x.astype(np.int64) @ w.astype(np.int64)) * float(np.float32(0.00137913)) / 0.25) + int(start)
        byte = np.clip(byte, low[ka], low[ka] + 255)
    else:
        byte = b.bytes(ka, shape)
        y = b.param(byte)
    zero = np.array(7, ka)
    y = b.op("dequantizelinear", [y, b.over(np.float32(0.03137), shape), b.over(zero, shape)])
    z = b.op("quantizelinear", [b.op("erf", [y]), b.over(np.float32(1 / 127), shape), b.over(np.int8(0), shape)])
    z = b.op("dequantizelinear", [z, b.over(np.float32(1 / 127), shape), b.over(np.int8(0), shape)])
    y = b.op("quantizelinear", [b.op("mul", [y, z]), b.over(np.float32(0.02), shape), b.over(np.array(low[kb] + 9, kb), shape)])
    x = (byte.astype(np.float64) - 7) * np.float32(0.03137)
    z = np.rint(np.vectorize(math.erf)(x) * 127) / 127
    want = x * z / 0.02 + low[kb] + 9
    if residual:
        found, other = np.clip(np.rint(want), low[kb], low[kb] + 255), b.bytes("int8", shape)
        y = b.op("dequantizelinear", [y, b.over(np.float32(0.02), shape), b.over(np.array(low[kb] + 9, kb), shape)])
        r = b.op("dequantizelinear", [b.param(other), b.over(np.float32(0.013), shape), b.over(np.int8(5), shape)])
        y = b.op("quantizelinear", [b.op("add", [y, r]), b.over(np.float32(0.027), shape), b.over(np.array(low[kb] + 40, kb), shape)])
        want = ((found - low[kb] - 9) * float(np.float32(0.02)) + (other - 5.0) * float(np.float32(0.013))) / float(np.float32(0.027)) + low[kb] + 40
    b.check(y, want, kb)


def dequantized(b, y, s, z, shape):
    return b.op("dequantizelinear", [y, b.over(np.float32(s), shape), b.over(z, shape)])


def quantized(b, y, s, z, shape):
    return b.op("quantizelinear", [y, b.over(np.float32(s), shape), b.over(z, shape)])


@pytest.mark.parametrize("case", range(CASES))
def test_attention(case):
    b = Builder([SEED, 6, case])
    kind = b.pick("int8", "uint8")
    heads, rows, keys = b.pick(1, 3, 12), b.pick(8, 17, 128, 197), b.pick(16, 100, 128, 197, 300, 520, 577, 1000)
    head, head_v, batch = b.pick(32, 64, 64, 96, 128), b.pick(16, 32, 64, 64, 128), b.pick(1, 2)
    check_attention(b, kind, heads, rows, keys, head, head_v, batch, b.rng.integers(2))


@pytest.mark.parametrize("case", range((CASES + 1) // 2))
def test_attention_of_many_heads(case):
    """There a warp has all keys' scores in registers, of up to 208, and blocks as many warps as leave few idle."""
    b = Builder([SEED, 16, case])
    keys = int(b.rng.integers(129, 209))
    said = check_attention(b, b.pick("int8", "uint8"), 12, b.pick(197, int(b.rng.integers(180, 240))), keys, b.pick(32, 64), b.pick(32, 64),
                           12 if os.environ.get("MGX_TEST_DEVICE") == "cuda" else 1, 0)
    card_is = re.search(r"\bsm_(\d+)", said)
    assert "a warp all keys" in said or not card_is or int(card_is[1]) < 80, said


def check_attention(b, kind, heads, rows, keys, head, head_v, batch, masked):
    """Between bytes, as exporters write it: all steps are rounded, so some results differ by a step or two."""
    rng = b.rng
    low = {"int8": -128, "uint8": 0}[kind]
    zeros = [b.zero(kind) for _ in range(3)]
    sizes = [(batch, rows, heads, head), (batch, keys, heads, head), (batch, keys, heads, head_v)]
    given = [b.bytes(kind, s) for s in sizes]
    q, k, v = (b.op("transpose", [dequantized(b, b.param(x), 0.02, z, s)], permutation=order)
               for x, z, s, order in zip(given, zeros, sizes, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])))
    fq, fk, fv = ((x.astype(np.float64) - float(z)).transpose(0, 2, 1, 3) * np.float32(0.02) for x, z in zip(given, zeros))
    shape, out = [batch, heads, rows, keys], [batch, heads, rows, head_v]
    y, want = b.op("dot", [q, k]), fq @ fk.transpose(0, 1, 3, 2)
    step, middle = np.float32(np.abs(want).max() / 100), np.array(low + 120, kind)
    y = dequantized(b, quantized(b, y, step, middle, shape), step, middle, shape)
    want = (np.clip(np.rint(want / step) + float(middle), low, low + 255) - float(middle)) * step
    if masked:
        mask = np.where(rng.random((batch, 1, 1, keys)) < 0.2, -50, 0).astype(np.float32)
        y, want = b.op("add", [y, b.op("multibroadcast", [b.param(mask)], out_lens=shape)]), want + mask
    zero = b.pick(low, 0)  # 0 is what calibration gives
    p = np.float32(1 / (low + 255 - zero))
    y = quantized(b, b.op("softmax", [y], axis=3), p, np.array(zero, kind), shape)
    e = np.exp(want - want.max(-1, keepdims=True))
    want = np.clip(np.rint(e / e.sum(-1, keepdims=True) / p), 0, low + 255 - zero) * p @ fv
    y = b.op("dot", [dequantized(b, y, p, np.array(zero, kind), shape), v])
    step, middle = np.float32(np.abs(want).max() / 100), np.array(low + 130, kind)
    y = b.op("transpose", [quantized(b, y, step, middle, out)], permutation=[0, 2, 1, 3])
    b.main.add_return([y])
    b.program.compile(migraphx.get_target("gpu"), offload_copy=True)
    said = b.program.explain()
    card_is = re.search(r"\bsm_(\d+)", said)
    assert "gpu::attention_bytes (" in said or not card_is or int(card_is[1]) < 80, said
    runs = [np.array(b.program.run(b.feeds)[0]).astype(np.float64) for _ in range(3)]
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])
    want = np.clip(np.rint(want / step) + float(middle), low, low + 255).transpose(0, 2, 1, 3)
    apart = np.abs(runs[0] - want)
    rows_apart = apart.max(-1)
    moved = np.sum(rows_apart > 3)  # rows where a score lies between two bytes, of which a step is a power of e or more
    assert np.mean(apart[rows_apart <= 3] > 1) < 2e-3 and moved <= max(1, rows_apart.size / 1000), (apart.max(), np.mean(apart > 0), moved)
    return said


def steps_of(b, want, kind):
    """The scale and the zero point that a quantizer gives a value by its range, or by the one that has 128 or 0 in the middle."""
    low = {"int8": -128, "uint8": 0}[kind]
    least, most = min(float(want.min()), 0.0), max(float(want.max()), 0.0)
    if b.rng.integers(2):
        return np.float32(max(-least, most) / 127 or 1), np.array(low + 128, kind)
    scale = np.float32((most - least) / 255 or 1)
    return scale, np.array(np.clip(np.rint(low - least / scale), low, low + 255), kind)


def rounded(b, y, want, steps):
    """Bytes and floats again, as a quantizer's file has every value; and the bytes."""
    (scale, zero), low = steps, np.iinfo(steps[1].dtype).min
    y = quantized(b, y, scale, zero, want.shape)
    bytes_are = np.clip(np.rint(want / float(scale)) + float(zero), low, low + 255)
    return dequantized(b, y, scale, zero, want.shape), (bytes_are - float(zero)) * float(scale), (y, bytes_are)


def head_of_file(b, x, value, sizes, kind, bias):
    """A projection of what a block reads, in heads: rounded behind every step, by numbers that change where a bias is added."""
    batch, tokens, heads, head, width = sizes
    flat = [batch, tokens, heads * head]
    w, s = b.bytes("int8", [width, heads * head]), np.float32(b.rng.uniform(0.001, 0.002))
    weights = b.op("dequantizelinear", [b.literal(w), b.over(s, w.shape), b.over(np.int8(0), w.shape)])
    y, want = b.op("dot", [x, b.op("multibroadcast", [weights], out_lens=[batch, *w.shape])]), value @ (w * float(s))
    steps = steps_of(b, want, kind)
    y, want, _ = rounded(b, y, want, steps)
    added = b.bytes("int8", [heads * head]) * bias  # without one the file adds zeros, and rounds again
    a = b.op("dequantizelinear", [b.literal(added.astype(np.int8)), b.over(np.float32(0.004), [heads * head])])
    y, want = b.op("add", [y, b.op("multibroadcast", [a], out_lens=flat)]), want + added * float(np.float32(0.004))
    if bias:
        steps = steps_of(b, want, kind)
    y, want, _ = rounded(b, y, want, steps)
    y, want, _ = rounded(b, b.op("reshape", [y], dims=[batch, tokens, heads, head]), want.reshape(batch, tokens, heads, head), steps)
    return rounded(b, b.op("transpose", [y], permutation=[0, 2, 1, 3]), want.transpose(0, 2, 1, 3), steps)[:2]


@pytest.mark.parametrize("case", range(2 * CASES))
def test_attention_of_a_file(case):
    """Queries, keys and values of one input, whose zero points are those of their ranges, in the middle of the bytes or not."""
    b = Builder([SEED, 31, case])
    kind, other = b.pick(("uint8", "uint8"), ("uint8", "uint8"), ("int8", "int8"), ("uint8", "int8"))
    sizes = b.pick(1, 2), b.pick(16, 40, 100, 128), b.pick(1, 2, 4), b.pick(32, 64), b.pick(64, 128)
    batch, tokens, heads, head, width = sizes
    x, z = b.bytes(kind, [batch, tokens, width]), b.zero(kind)
    value = (x.astype(np.float64) - float(z)) * float(np.float32(0.02))
    read = dequantized(b, b.param(x), 0.02, z, x.shape)
    bias = b.rng.integers(2)
    (q, fq), (k, fk), (v, fv) = (head_of_file(b, read, value, sizes, other, bias) for _ in range(3))
    y, scores = b.op("dot", [q, b.op("transpose", [k], permutation=[0, 1, 3, 2])]), fq @ fk.transpose(0, 1, 3, 2)
    y, want, _ = rounded(b, y, scores, steps_of(b, scores, other))
    share = np.float32(4 / np.abs(want).max())
    y, want, _ = rounded(b, b.op("mul", [y, b.over(share, want.shape)]), want * float(share), steps_of(b, want * float(share), other))
    e = np.exp(want - want.max(-1, keepdims=True))
    want, step = e / e.sum(-1, keepdims=True), np.float32(1 / 255)
    y = quantized(b, b.op("softmax", [y], axis=3), step, np.uint8(0), want.shape)
    y, want = dequantized(b, y, step, np.uint8(0), want.shape), np.rint(want / float(step)) * float(step)
    y, want = b.op("dot", [y, v]), want @ fv
    steps = steps_of(b, want, other)
    y, want, _ = rounded(b, y, want, steps)
    _, _, end = rounded(b, b.op("transpose", [y], permutation=[0, 2, 1, 3]), want.transpose(0, 2, 1, 3), steps)
    b.main.add_return([end[0]])
    b.program.compile(migraphx.get_target("gpu"), offload_copy=True)
    said = b.program.explain()
    assert ": ref (" not in said, said
    runs = [np.array(b.program.run(b.feeds)[0]).astype(np.float64) for _ in range(3)]
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])
    apart = np.abs(runs[0] - end[1])  # a value between two bytes may go either way, and what it is a part of, twelve roundings later, with it
    assert np.sqrt(np.mean(apart**2)) < 1 and apart.max() <= 8, (apart.max(), np.mean(apart > 0), np.mean(apart > 1))


@pytest.mark.parametrize("half", [False, True])
def test_attention_that_is_calibrated(half):
    """By quantize_int8, alone and after quantize_fp16: the softmax is one of floats, and its results are bytes about 0."""
    rng = np.random.default_rng([SEED, 23])
    batch, heads, rows, head, masked = 2, 3, 40, 64, np.float32(-30)
    program = migraphx.program()
    main = program.get_main_module()
    op = lambda name, inputs, **attributes: main.add_instruction(migraphx.op(name, **attributes), inputs)
    x = rng.standard_normal((batch, heads, rows, head)).astype(np.float32)
    mask = np.where(rng.random((batch, 1, 1, rows)) < 0.3, masked, 0).astype(np.float32)
    given, shown = (main.add_parameter(n, migraphx.shape(type="float_type", lens=list(v.shape))) for n, v in (("x", x), ("mask", mask)))
    q, k, v = (op("dot", [given, op("multibroadcast", [main.add_literal(rng.standard_normal((head, head)).astype(np.float32) / np.float32(8))],
                                    out_lens=[batch, heads, head, head])]) for _ in range(3))
    y = op("dot", [q, op("transpose", [k], permutation=[0, 1, 3, 2])])
    lens = [batch, heads, rows, rows]
    y = op("add", [op("mul", [y, op("multibroadcast", [main.add_literal(np.array([0.125], np.float32))], out_lens=lens)]),
                   op("multibroadcast", [shown], out_lens=lens)])
    main.add_return([op("dot", [op("softmax", [y], axis=3), v])])
    exact, feed = program.clone(), {"x": x, "mask": mask}
    exact.compile(migraphx.get_target("ref"))
    want = np.array(exact.run(feed)[0])
    if half:
        migraphx.quantize_fp16(program)
    migraphx.quantize_int8(program, migraphx.get_target("gpu"), [feed])
    program.compile(migraphx.get_target("gpu"), offload_copy=True)
    said = program.explain()
    card_is = re.search(r"\bsm_(\d+)", said)
    assert "gpu::attention_bytes (" in said or not card_is or int(card_is[1]) < 80, said
    assert not re.search(r"softmax.*-> half_type", said), said
    runs = [np.array(program.run(feed)[0]) for _ in range(3)]
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])
    assert np.sqrt(np.mean((runs[0] - want) ** 2) / np.mean(want**2)) < 0.05


def test_quantize_int8():
    """The guide's flow: calibrated on the card, and products of bytes there."""
    rng = np.random.default_rng(3)
    program = migraphx.program()
    main = program.get_main_module()
    op = lambda name, inputs, **attributes: main.add_instruction(migraphx.op(name, **attributes), inputs)
    x = rng.standard_normal((1, 3, 9, 9)).astype(np.float32)
    y = main.add_parameter("x", migraphx.shape(type="float_type", lens=[1, 3, 9, 9]))
    for channels, to in ((3, 32), (32, 32)):
        w = rng.standard_normal((to, channels, 3, 3)).astype(np.float32) / np.sqrt(np.float32(9 * channels))
        y = op("relu", [op("convolution", [y, main.add_literal(w)], padding=[1, 1], stride=[1, 1], dilation=[1, 1], group=1)])
    main.add_return([y])
    exact = program.clone()
    exact.compile(migraphx.get_target("ref"))
    want = np.array(exact.run({"x": x})[0])
    migraphx.quantize_int8(program, migraphx.get_target("gpu"), [{"x": x}])
    program.compile(migraphx.get_target("gpu"), offload_copy=True)
    said = program.explain()
    assert ": ref (" not in said and said.count("uint8_type, {1, 32, 9, 9}") >= 1, said
    runs = [np.array(program.run({"x": x})[0]) for _ in range(3)]
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])
    assert np.sqrt(np.mean((runs[0] - want) ** 2) / np.mean(want**2)) < 0.03


@pytest.mark.parametrize("elements", [1, 5, 1000, 16384, 16387, 300001, 1100003])
@pytest.mark.parametrize("first", [0, 1])
def test_ranges(elements, first):
    """Scale and zero point of what is quantized while it runs, of one block, of several, and at addresses that are not even."""
    b = Builder([SEED, 9, elements])
    x = (b.rng.standard_normal(elements + first) * b.rng.uniform(0.1, 10)).astype(np.float32)
    x[-1] = b.pick(-77, 0, 55)  # the last one is the end of the range, or neither is
    value = b.op("slice", [b.param(x)], axes=[0], starts=[first], ends=[elements + first])
    b.main.add_return([b.op("byte_range", [value])])
    b.program.compile(migraphx.get_target("gpu"), offload_copy=True)
    assert "gpu::byte_range" in b.program.explain()
    low, high = min(x[first:].min(), np.float32(0)), max(x[first:].max(), np.float32(0))
    scale = (high - low) / np.float32(255) or np.float32(1)
    for _ in range(3):
        got = np.array(b.program.run(b.feeds)[0])
        assert got[0] == pytest.approx(scale, rel=1e-6) and got[1] == np.clip(np.rint(-low / got[0]), 0, 255), (got, low, high)
        assert got[2] == pytest.approx(1 / (255 * scale), rel=1e-6) and got[3] == pytest.approx(got[1] / 255, rel=1e-6)


def range_of(x):
    low, high = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    scale = (high - low) / np.float32(255) or np.float32(1)
    return scale, np.clip(np.rint(-low / scale), 0, 255)


def producers(b, kind, shape):
    """What leaves its range beside it: element-wise work, a normalisation, a mean, a maximum over windows, a product, parts of a concat, a
    convolution of channels each by itself."""
    x = (b.rng.standard_normal(shape) * b.rng.uniform(0.1, 10)).astype(np.float32)
    p = b.param(x)
    if kind == "pointwise":
        return b.op("relu", [b.op("sub", [p, b.over(np.float32(0.5), shape)])]), np.maximum(x - np.float32(0.5), 0)
    if kind == "softmax":
        e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
        return b.op("softmax", [p], axis=len(shape) - 1), (e / e.sum(-1, keepdims=True)).astype(np.float32)
    if kind == "mean":
        return b.op("reduce_mean", [p], axes=[len(shape) - 1]), x.astype(np.float64).mean(-1, keepdims=True).astype(np.float32)
    if kind == "pooling":
        windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))[:, :, ::2, ::2]
        return b.op("pooling", [p], mode=migraphx.op.pooling_mode.max if hasattr(migraphx.op, "pooling_mode") else 1, padding=[0, 0], stride=[2, 2], lengths=[2, 2]), windows.max((4, 5))
    if kind == "product":
        w = b.rng.integers(-3, 4, (shape[-1], 64)).astype(np.float32)
        x = b.feeds["p0"] = np.rint(x)
        return b.op("dot", [p, b.op("multibroadcast", [b.literal(w)], out_lens=[*shape[:-2], *w.shape])]), x @ w
    if kind.startswith("depthwise"):
        x = b.feeds["p0"] = b.rng.integers(-100, 101, shape).astype(np.float32)
        same, w = np.eye(shape[1], dtype=np.float32)[:, :, None, None], b.rng.integers(-9, 10, (shape[1], 1, 3, 3))
        y = b.op("convolution", [p, b.literal(same)], padding=[0, 0], stride=[1, 1], dilation=[1, 1])  # channels lie last behind it
        how = {"padding": [1, 1], "stride": [1, 1], "dilation": [1, 1], "group": shape[1]}
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]), (3, 3), (2, 3))
        want = np.einsum("nchwij,cij->nchw", windows, w[:, 0].astype(np.float32)) - np.float32(0.5)
        if kind == "depthwise":
            y = b.op("convolution", [y, b.literal(w.astype(np.float32))], **how)
        else:
            y = b.op("quantizelinear", [y, b.over(np.float32(1), shape), b.over(np.int8(0), shape)])
            y = b.op("convert", [b.op("quant_convolution", [y, b.literal(w.astype(np.int8))], **how)], target_type="float_type")
        return b.op("sub", [y, b.over(np.float32(0.5), shape)]), want
    parts = [b.op("relu", [p]), b.op("neg", [p])]
    return b.op("concat", parts, axis=len(shape) - 1), np.concatenate([np.maximum(x, 0), -x], -1)


@pytest.mark.parametrize("shape", [[3, 5], [2, 40, 64], [1, 24, 30, 64], [2, 33, 130, 100]])
@pytest.mark.parametrize("kind", ["pointwise", "softmax", "mean", "pooling", "product", "concat", "depthwise", "depthwise_bytes"])
def test_ranges_that_are_left(kind, shape):
    """A range follows from what the blocks in front leave: nothing is read once more."""
    if kind in ("pooling", "depthwise", "depthwise_bytes") and len(shape) != 4:
        return
    b = Builder([SEED, 11, len(shape)])
    y, want = producers(b, kind, shape)
    b.main.add_return([y, b.op("byte_range", [y])])
    b.program.compile(migraphx.get_target("gpu"), offload_copy=True)
    said = b.program.explain()
    assert ": ref (" not in said and (kind == "product" or "joins what the steps in front leave" in said), said
    for _ in range(3):
        got, found = (np.array(r) for r in b.program.run(b.feeds))
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
        scale, zero = range_of(got)
        assert found[0] == pytest.approx(scale, rel=1e-6) and found[1] == zero, (found, scale, zero)


@pytest.mark.parametrize("shape", [[1, 24, 30, 64], [2, 33, 50, 70], [2, 64, 40, 40]])
@pytest.mark.parametrize("kind", ["product", "depthwise", "depthwise_bytes"])
def test_ranges_of_what_nobody_else_reads(kind, shape):
    """Their kernels leave the range and no results, where they leave ranges at all."""
    b = Builder([SEED, 22, shape[1]])
    y, want = producers(b, kind, shape)
    b.main.add_return([b.op("byte_range", [y])])
    b.program.compile(migraphx.get_target("gpu"), offload_copy=True)
    said = b.program.explain()
    assert ": ref (" not in said and (kind == "product" or "leaves its range alone" in said), said
    scale, zero = range_of(want)
    for _ in range(3):
        found = np.array(b.program.run(b.feeds)[0])
        assert found[0] == pytest.approx(scale, rel=1e-5) and found[1] == zero, (found, scale, zero)


@pytest.mark.parametrize("case", range(2 * CASES))
def test_large_values_computed_twice(case):
    """Once for their range and once for their bytes, by two kernels that make the same numbers: the bytes are those of the floats."""
    b = Builder([SEED, 23, case])
    large = os.environ.get("MGX_TEST_DEVICE") == "cuda"
    channels, columns, deep = b.pick(32, 64), b.pick(64, 96, 256), case % 2
    size = int(np.sqrt(8e6 / (channels if deep else columns))) + b.pick(0, 1, 7) if large else b.pick(9, 20)
    shape = [1, channels, size, size]
    x, same = b.rng.integers(0, 256, shape).astype(np.float32), np.eye(channels, dtype=np.float32)
    x.flat[0], x.flat[-1] = 0, 255
    y = b.op("convolution", [b.param(x), b.literal(same[:, :, None, None])], padding=[0, 0], stride=[1, 1], dilation=[1, 1])
    made, zero = made_bytes(b, b.op("relu", [y]), shape, True)
    if deep:  # each channel by itself
        w, how = b.rng.integers(-20, 21, (channels, 1, 3, 3)).astype(np.int8), {"padding": [1, 1], "group": channels}
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]), (3, 3), (2, 3))
        want = np.einsum("nchwij,cij->nchw", windows, w[:, 0].astype(np.float32))
    else:
        w, how = b.bytes("int8", [columns, channels, 1, 1]), {"padding": [0, 0], "group": 1}
        want = np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0].astype(np.float32))
    y = b.op("convert", [b.op("quant_convolution", [made, b.literal(w), zero, b.literal(np.array([0], np.int8))], stride=[1, 1], dilation=[1, 1], **how)], target_type="float_type")
    never = b.rng.integers(2) == 0
    scales = (b.rng.random(want.shape[1]) * 0.1 + 0.01).astype(np.float32)[:, None, None]
    y = b.op("mul", [y, b.op("multibroadcast", [b.literal(scales)], out_lens=list(want.shape))])
    want = want * scales
    if never:
        y, want = b.op("relu", [y]), np.maximum(want, 0)
    last, zero = made_bytes(b, y, list(want.shape), never)
    b.main.add_return([last])
    b.program.compile(migraphx.get_target("gpu"), offload_copy=True)
    said = b.program.explain()
    assert ": ref (" not in said and (not large or ": gpu::wgmma" not in said or "leaves its range alone" in said), said
    scale, zero = range_of(want)
    expected = np.clip(np.rint(want.astype(np.float64) / scale) + zero, 0, 255)
    for _ in range(3):
        got = np.array(b.program.run(b.feeds)[0]).astype(np.float64)
        apart = np.abs(got - expected)
        assert apart.max() <= 1 and np.mean(apart > 0) < 1e-3, (apart.max(), np.mean(apart > 0))


def test_ranges_of_two_that_stand_side_by_side():
    """Each range stands behind both that leave one: none is read once more, and none is taken for the other's."""
    b = Builder([SEED, 15])
    x = [(b.rng.standard_normal([3, 70, 33]) * wide).astype(np.float32) for wide in (1, 20)]
    y = [b.op("relu", [b.param(v)]) for v in x]
    b.main.add_return([*(b.op("byte_range", [v]) for v in y), *y])
    b.program.compile(migraphx.get_target("gpu"), offload_copy=True)
    assert b.program.explain().count("joins what the steps in front leave") == 2
    for _ in range(3):
        got = [np.array(r) for r in b.program.run(b.feeds)]
        for found, v in zip(got, x):
            assert found[0] == pytest.approx(range_of(np.maximum(v, 0))[0], rel=1e-6)


@pytest.mark.parametrize("size", [(1, 12, 196, 196, 32, 32), (1, 3, 49, 49, 32, 32), (64, 3, 49, 49, 32, 32), (1, 2, 33, 300, 64, 64),
                                  (2, 2, 17, 130, 16, 128), (1, 1, 100, 1000, 128, 128), (1, 4, 64, 70, 48, 16), (3, 5, 20, 33, 32, 64)])
def test_attention_that_becomes_bytes(size):
    """Heads side by side behind attention of floats, of few blocks and of many: its values, their range, their bytes."""
    batch, heads, rows, keys, head, head_v = size
    b = Builder([SEED, 16, *size])
    q, k, v = (b.rng.standard_normal([batch, heads, *s]).astype(np.float32) for s in ([rows, head], [keys, head], [keys, head_v]))
    scores = b.op("dot", [b.param(q), b.op("transpose", [b.param(k)], permutation=[0, 1, 3, 2])])
    y = b.op("dot", [b.op("softmax", [scores], axis=3), b.param(v)])
    y = b.op("reshape", [b.op("transpose", [y], permutation=[0, 2, 1, 3])], dims=[batch, rows, heads * head_v])
    made, zero = made_bytes(b, y, [batch, rows, heads * head_v])
    w = b.rng.integers(-3, 4, [heads * head_v, heads * head_v]).astype(np.int8)
    product = b.op("quant_dot", [made, b.op("multibroadcast", [b.literal(w)], out_lens=[batch, *w.shape]), zero])
    b.main.add_return([b.op("byte_range", [y]), product])
    b.program.compile(migraphx.get_target("gpu"), offload_copy=True)
    assert ": ref (" not in b.program.explain()
    x = np.einsum("bhqd,bhkd->bhqk", q.astype(np.float64), k)
    x = np.exp(x - x.max(-1, keepdims=True))
    x = np.einsum("bhqk,bhkd->bqhd", x / x.sum(-1, keepdims=True), v).reshape(batch, rows, -1)
    for _ in range(3):
        found, got = (np.array(r) for r in b.program.run(b.feeds))
        low, high = min(x.min(), 0), max(x.max(), 0)
        assert found[0] == pytest.approx((high - low) / 255, rel=1e-4)
        want = (np.clip(np.rint(x / float(found[0])) + found[1], 0, 255) - found[1]) @ w.astype(np.float64)
        # A value that lies half-way between two bytes may be either: then a sum is off by what weights are.
        assert np.abs(got - want).max() <= 3 * 4 and np.mean(got != want) < 0.05, np.abs(got - want).max()


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_depthwise_of_what_is_turned_when_it_is_bytes(kind):
    """Channels last in a program, as behind a normalisation: the image is padded before it becomes bytes."""
    b = Builder([SEED, 17])
    shape, q = [2, 14, 11, 64], b.zero(kind, 1)
    x, w = b.rng.integers(-100, 156, shape).astype(np.float32), b.bytes(kind, [64, 1, 3, 3])
    x.flat[0], x.flat[-1] = -100, 155
    made, zero = made_bytes(b, b.op("mul", [b.param(x), b.over(np.float32(1), shape)]), shape)
    image = b.op("transpose", [made], permutation=[0, 3, 1, 2])
    b.main.add_return([b.op("quant_convolution", [image, b.literal(w), zero, b.literal(np.array([q]))], padding=[1, 1], stride=[1, 1], dilation=[1, 1], group=64)])
    b.program.compile(migraphx.get_target("gpu"), offload_copy=True)
    said = b.program.explain()
    assert ": ref (" not in said and ": gpu::product (" not in said and "gpu::depthwise (four channels a word" in said, said
    wide = np.pad(x.transpose(0, 3, 1, 2).astype(np.int64), [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
    want = np.einsum("nchwij,cij->nchw", windows, w[:, 0].astype(np.int64) - int(q))
    for _ in range(3):
        np.testing.assert_array_equal(np.array(b.program.run(b.feeds)[0]).astype(np.int64), want)


def made_bytes(b, y, shape, never_negative=False):
    """Bytes by y's own range, as DynamicQuantizeLinear makes them, and their zero point, which passes know to be 0 of what is never negative."""
    found = b.op("byte_range", [y])
    scale, zero = (b.op("reshape", [b.op("slice", [found], axes=[0], starts=[i], ends=[i + 1])], dims=[1]) for i in range(2))
    zero = b.literal(np.zeros(1, np.uint8)) if never_negative else b.op("convert", [zero], target_type="uint8_type")
    spread = [b.op("multibroadcast", [v], out_lens=list(shape)) for v in (scale, zero)]
    return b.op("quantizelinear", [y, *spread]), zero


@pytest.mark.parametrize("case", range(4 * CASES))
def test_bytes_of_a_range(case):
    """Products of what is quantized while it runs: by steps of one, so that every byte is known. Ranges are left by what is in front, bytes are
    made on the way to the product or padded on theirs, weights have a zero point or none."""
    b = Builder([SEED, 13, case])
    size, channels, columns = b.pick(1, 7, 14, 29), b.pick(4, 16, 24, 40, 64, 100, 192), b.pick(8, 16, 30, 64, 130)
    kind, k = b.pick("int8", "uint8"), b.pick(1, 1, 3)
    batch, dot = b.pick(1, 2, 5), b.rng.integers(3) == 0
    shape = [batch, size * size + 1, channels] if dot else [batch, channels, size, size]
    never = b.rng.integers(2) == 0
    lowest = 0 if never else -100
    x = b.rng.integers(lowest, lowest + 256, shape).astype(np.float32)
    x.flat[0], x.flat[-1] = lowest, lowest + 255
    same = np.eye(channels, dtype=np.float32)  # a product leaves x as the next one likes it to lie
    if dot:
        y = b.op("dot", [b.param(x), b.op("multibroadcast", [b.literal(same)], out_lens=[batch, channels, channels])])
    else:
        y = b.op("convolution", [b.param(x), b.literal(same[:, :, None, None])], padding=[0, 0], stride=[1, 1], dilation=[1, 1])
    made, zero = made_bytes(b, b.op("relu", [y]) if never else y, shape, never)
    q = b.zero(kind, 0.5)
    if dot:
        w = b.bytes(kind, [channels, columns])
        right = b.op("multibroadcast", [b.literal(w)], out_lens=[batch, channels, columns])
        product = b.op("quant_dot", [made, right, zero, b.literal(np.array([q]))])
        want = x.astype(np.int64) @ (w.astype(np.int64) - int(q))
    else:
        pad = b.pick(0, 1) if k > 1 and size > 1 else 0
        k = k if size + 2 * pad >= k else 1
        w, stride = b.bytes(kind, [columns, channels, k, k]), b.pick(1, 1, 2)
        product = b.op("quant_convolution", [made, b.literal(w), zero, b.literal(np.array([q]))], padding=[pad, pad], stride=[stride, stride], dilation=[1, 1])
        wide = np.pad(x.astype(np.int64), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
        windows = np.lib.stride_tricks.sliding_window_view(wide, (k, k), (2, 3))[:, :, ::stride, ::stride]
        want = np.einsum("nchwij,ocij->nohw", windows, w.astype(np.int64) - int(q))
    if b.rng.integers(2):
        product, want = b.op("convert", [product], target_type="float_type"), want
        other = b.op("relu", [product])
        b.main.add_return([other, b.op("byte_range", [other])])  # ... whose range somebody wants, too
        want = np.maximum(want, 0)
    else:
        b.main.add_return([product])
    b.program.compile(migraphx.get_target("gpu"), offload_copy=True)
    said = b.program.explain()
    assert ": ref (" not in said, said
    for _ in range(3):
        got = [np.array(r) for r in b.program.run(b.feeds)]
        np.testing.assert_array_equal(got[0].astype(np.int64), want)
        if len(got) > 1:
            assert got[1][0] == pytest.approx(range_of(got[0])[0], rel=1e-6)


def clipped(b, y, want, never):
    """y as integers and a bit, cut off so that 255 steps of 4 are its range and no value lies between two steps: its bytes are known."""
    share = np.float32(2.0 ** np.floor(np.log2(255 * 4 / max(np.ptp(want), 255.0)) + 2))
    want = np.rint(want * share)
    low = 0.0 if never else -4.0 * b.rng.integers(40, 200)
    shift = np.float32(low + 4 * 127 - np.rint(np.median(want)) + 0.3)
    y = b.op("nearbyint", [b.op("mul", [y, b.over(share, want.shape)])])
    y = b.op("add", [y, b.over(shift, want.shape)])
    y = b.op("clip", [y, *(b.over(np.float32(v), want.shape) for v in (low, low + 255 * 4))])
    want = np.clip(want + shift, low, low + 255 * 4)
    return y, want, (want.min() == low and want.max() == low + 255 * 4)


@pytest.mark.parametrize("case", sorted({*range(6 * CASES), 25}))  # 25: a result leaves the card between the product and its bytes
def test_bytes_of_what_a_product_leaves(case):
    """A product of bytes whose results become bytes by their own range, for a second one. Sums of integers, cut off so that every byte is known;
    others read the floats too, or nobody does."""
    b = Builder([SEED, 19, case])
    size, channels, columns, last = b.pick(3, 7, 14, 27), b.pick(32, 64, 96, 256), b.pick(16, 48, 64, 128, 256, 320), b.pick(16, 24, 64)
    batch, k, l, never, dot = b.pick(1, 2, 5), b.pick(1, 3), b.pick(1, 3), b.rng.integers(2) == 0, b.rng.integers(3) == 0
    many = case % 4 == 3 and os.environ.get("MGX_TEST_DEVICE") == "cuda"
    if many:  # more tiles than blocks, which take several
        size, channels, columns, batch, k, l = b.pick(112, 120), 32, b.pick(192, 256), b.pick(2, 3), 1, 1
    if os.environ.get("MGX_TEST_DEVICE") != "cuda":
        size = min(size, 14)  # a processor takes seconds for more
    groups = b.pick(1, 1, 2) if not dot else 1
    shape = [batch, size * size, channels] if dot else [batch, channels, size, size]
    x = b.rng.integers(-100, 156, shape).astype(np.float32)
    x.flat[0], x.flat[-1] = -100, 155
    same = np.eye(channels, dtype=np.float32)
    if dot:
        y = b.op("dot", [b.param(x), b.op("multibroadcast", [b.literal(same)], out_lens=[batch, channels, channels])])
    else:
        y = b.op("convolution", [b.param(x), b.literal(same[:, :, None, None])], padding=[0, 0], stride=[1, 1], dilation=[1, 1])
    floats, want = y, x

    def multiply(y, want, to, k, groups, never):
        kind, depth = b.pick("int8", "uint8"), want.shape[-1 if dot else 1]
        made, zero = made_bytes(b, y, want.shape, never)
        q = b.zero(kind, 0.3)
        if dot:
            w = b.bytes(kind, [depth, to])
            product = b.op("quant_dot", [made, b.op("multibroadcast", [b.literal(w)], out_lens=[batch, depth, to]), zero, b.literal(np.array([q]))])
            want = want.astype(np.float64) @ (w.astype(np.float64) - int(q))
        else:
            w = b.bytes(kind, [to, depth // groups, k, k])
            product = b.op("quant_convolution", [made, b.literal(w), zero, b.literal(np.array([q]))], padding=[k // 2] * 2, stride=[1, 1], dilation=[1, 1], group=groups)
            padded = np.pad(want.astype(np.float64), [(0, 0), (0, 0), (k // 2,) * 2, (k // 2,) * 2])
            windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k), (2, 3)).reshape(batch, groups, -1, size, size, k, k)
            windows = windows.transpose(0, 1, 3, 4, 2, 5, 6).reshape(batch, groups, size * size, -1)
            sums = windows @ (w.astype(np.float64) - int(q)).reshape(groups, to // groups, -1).transpose(0, 2, 1)
            want = sums.transpose(0, 1, 3, 2).reshape(batch, to, size, size)  # sums of integers, exact
        return b.op("convert", [product], target_type="float_type"), want

    y, want = multiply(y, want, columns, k, groups, False)
    if channels == columns and b.rng.integers(2):
        y, want = b.op("add", [y, floats]), want + x  # a residual
    y, want, reached = clipped(b, y, want, never)
    if not reached:
        pytest.skip("few values, whose range is another one")
    wide, whole = want, y
    if never and not dot and size > 7 and b.rng.integers(2):  # maxima are those of the bytes
        y = b.op("pooling", [y], mode=1, padding=[1, 1], stride=[2, 2], lengths=[3, 3])
        padded = np.pad(want, [(0, 0), (0, 0), (1, 1), (1, 1)])
        want = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2].max((4, 5))
        size = want.shape[2]
    z, ends = multiply(y, np.rint(want / 4), last, l, 1, never)
    others = 0 if many else b.rng.integers(2)
    b.main.add_return([z] + ([b.op("mul", [whole, b.over(np.float32(2), wide.shape)])] if others else []))
    b.program.compile(migraphx.get_target("gpu"), offload_copy=True)
    said = b.program.explain()
    assert ": ref (" not in said, said
    for _ in range(3):
        got = [np.array(r) for r in b.program.run(b.feeds)]
        np.testing.assert_array_equal(got[0], ends.astype(np.float32))
        if others:
            np.testing.assert_allclose(got[1], 2 * wide, rtol=1e-6)


@pytest.mark.parametrize("case", range(4 * CASES))
def test_bytes_in_another_order(case):
    """Windows of an image, or its axes exchanged: bytes are put in that order as they are made, if nobody wants them in the first one."""
    b = Builder([SEED, 17, case])
    batch, high, wide, side, channels = b.pick(1, 3), b.pick(1, 2, 5), b.pick(1, 3, 8), b.pick(2, 3, 7), b.pick(4, 6, 24, 64, 96)
    shape = [batch, high * side, wide * side, channels]
    x = b.rng.integers(-100, 156, shape).astype(np.float32)
    x.flat[0], x.flat[-1] = -100, 155
    made, zero = made_bytes(b, b.op("relu", [b.op("add", [b.param(x), b.over(np.float32(100), shape)])]), shape)
    x = np.maximum(x + 100, 0)  # 0 is its zero point, 1 its scale
    split = [batch, high, side, wide, side, channels]
    order = b.pick([0, 1, 3, 2, 4, 5], [3, 1, 0, 4, 2, 5], [0, 5, 1, 2, 3, 4])
    moved = b.op("transpose", [b.op("reshape", [made], dims=split)], permutation=order)
    want = x.reshape(split).transpose(order)
    depth = want.shape[-1]
    w, q, rows = b.bytes("uint8", [depth, 40]), b.zero("uint8", 0.5), want.size // depth
    product = b.op("quant_dot", [b.op("reshape", [moved], dims=[rows, depth]), b.literal(w), zero, b.literal(np.array([q]))])
    want = want.reshape(rows, depth).astype(np.int64) @ (w.astype(np.int64) - int(q))
    alone = b.rng.integers(3) > 0
    b.main.add_return([product] if alone else [product, made])
    b.program.compile(migraphx.get_target("gpu"), offload_copy=True)
    said = b.program.explain()
    assert ": ref (" not in said, said
    for _ in range(3):
        got = [np.array(r) for r in b.program.run(b.feeds)]
        np.testing.assert_array_equal(got[0], want)
        if not alone:
            np.testing.assert_array_equal(got[1], x)


@pytest.mark.parametrize("q", [1, 60, 127, 200, 255, -77, 100])
def test_depthwise_by_weights_with_a_zero_point(q):
    """It goes off the weights, of which some do not fit a byte with a sign then; bytes are made by a range, and padded."""
    b = Builder([SEED, 18, q + 128])
    kind, channels, k, pad = "int8" if q in (-77, 100) else "uint8", b.pick(4, 24, 136), b.pick(1, 3, 5), b.pick(0, 1, 2)
    stride, shape = b.pick(1, 2), [b.pick(1, 3), channels, b.pick(5, 14), b.pick(6, 23)]
    x = b.rng.integers(-100, 156, shape).astype(np.float32)
    x.flat[0], x.flat[-1] = -100, 155
    same = np.eye(channels, dtype=np.float32)[:, :, None, None]
    y = b.op("convolution", [b.param(x), b.literal(same)], padding=[0, 0], stride=[1, 1], dilation=[1, 1])
    made, zero = made_bytes(b, y, shape)
    w = b.bytes(kind, [channels, 1, k, k])
    w.flat[:2] = np.iinfo(kind).min, np.iinfo(kind).max
    zeros = [zero, b.literal(np.array([np.array(q, kind)]))]
    product = b.op("quant_convolution", [made, b.literal(w), *zeros], padding=[pad, pad], stride=[stride, stride], dilation=[1, 1], group=channels)
    wide = np.pad(x.astype(np.int64), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    windows = np.lib.stride_tricks.sliding_window_view(wide, (k, k), (2, 3))[:, :, ::stride, ::stride]
    want = np.einsum("nchwij,cij->nchw", windows, w[:, 0].astype(np.int64) - q)
    product = b.op("convert", [product], target_type="float_type")
    b.main.add_return([b.op("relu", [b.op("mul", [product, b.over(np.float32(0.5), list(want.shape))])])])
    b.program.compile(migraphx.get_target("gpu"), offload_copy=True)
    said = b.program.explain()
    assert ": ref (" not in said and "quant_convolution: gpu::" not in said, said
    for _ in range(3):
        np.testing.assert_array_equal(np.array(b.program.run(b.feeds)[0]), np.maximum(want * 0.5, 0))


@pytest.mark.parametrize("case", range(CASES))
def test_depthwise_with_both_zero_points_and_padding(case):
    """What lies around the image is its zero point, and the weights' goes off them: nothing is padded, and no windows are summed up."""
    b = Builder([SEED, 20, case])
    ka, kb, channels, k, pad, stride = b.pick("int8", "uint8"), b.pick("int8", "uint8"), b.pick(4, 24, 38, 136), b.pick(3, 5), b.pick(1, 2), b.pick(1, 2)
    p, q = np.array({"int8": 7, "uint8": 19}[ka], ka), np.array({"int8": -77, "uint8": 130}[kb], kb)
    x, w = b.bytes(ka, (b.pick(1, 3), channels, b.pick(5, 14), b.pick(6, 23))), b.bytes(kb, (channels, 1, k, k))
    image = b.op("pooling", [b.param(x)], mode="max", lengths=[2, 2], stride=[1, 1], padding=[0, 0])  # channels lie last
    x = np.max([x[:, :, i : x.shape[2] - 1 + i, j : x.shape[3] - 1 + j] for i in range(2) for j in range(2)], 0)
    y = b.op("quant_convolution", [image, b.literal(w), *zeros(b, p, q)], padding=[pad, pad], stride=[stride, stride], dilation=[1, 1], group=channels)
    want = convolution(x.astype(np.int64) - int(p), w.astype(np.int64) - int(q), [stride] * 2, [pad] * 2, [1, 1], channels)
    y, want, kind = b.narrowed(y, want.astype(np.float64), list(want.shape))
    b.check(y, want, kind)
    said = b.program.explain()
    assert "quant_convolution: gpu::" not in said and "gpu::pick" not in said, said


@pytest.mark.parametrize("value", [np.nan, np.inf, 0])
def test_ranges_of_what_is_no_number(value):
    """As the reference: a value that is none, an infinite one, and nothing but zeros."""
    results = []
    for target in ("gpu", "ref"):
        b = Builder([SEED, 12])
        x = np.zeros(700, np.float32)
        x[345] = value
        y = b.op("mul", [b.param(x), b.over(np.float32(2), [700])])
        b.main.add_return([b.op("byte_range", [b.op("relu", [y])])])
        b.program.compile(migraphx.get_target(target))
        results.append(np.array(b.program.run(b.feeds)[0]))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


@pytest.mark.parametrize("channels", [24, 40, 44])
def test_lines(channels):
    """Images whose channels are no whole lines begin at such all the same, pixel by pixel, where convolutions alone read them."""
    b = Builder([SEED, 10, channels])
    image = b.rng.integers(-3, 4, [2, 16, 9, 7]).astype(np.int8)

    def convolve(x, of, out, k):
        w = b.rng.integers(-1, 2, [out, of.shape[1], k, k]).astype(np.int8)
        y = b.op("quant_convolution", [x, b.literal(w)], padding=[k // 2] * 2, stride=[1, 1], dilation=[1, 1], group=1)
        return y, convolution(of.astype(np.int64), w.astype(np.int64), [1, 1], [k // 2] * 2, [1, 1], 1)

    def real(y, shape):
        return b.op("dequantizelinear", [y, b.over(np.float32(1), shape)])

    def narrow(y, want):
        y = b.op("quantizelinear", [y, b.over(np.float32(1), want.shape), b.over(np.array(0, np.int8), want.shape)])
        return y, np.clip(want, -128, 127)

    y, want = convolve(b.param(image), image, channels, 1)
    first, seen = narrow(real(y, want.shape), want)
    y, want = convolve(first, seen, channels, 3)
    second, sums = narrow(b.op("add", [real(y, want.shape), real(first, want.shape)]), want + seen)
    y, want = convolve(second, sums, 16, 1)
    b.check(y, want, None)
    assert f", {(channels + 15) // 16 * 16}}}" in b.program.explain()


def requantized(b, x, value, s, z, kind, to, zero):
    """Bytes of a scale and a zero point as others' of scale 1; and in numpy before they are rounded."""
    shape = value.shape
    x = b.op("dequantizelinear", [x, b.over(np.float32(s), shape), b.over(np.array(z, kind), shape)])
    x = b.op("quantizelinear", [x, b.over(np.float32(1), shape), b.over(np.array(zero, to), shape)])
    return x, (value.astype(np.float64) - z) * np.float32(s) + zero


@pytest.mark.parametrize("parts", [2, 5, 19])
def test_parts_side_by_side(parts):
    """A concat of what was quantized each by its own scale: the parts are made in few launches, 16 at most in each."""
    b, to, zero = Builder([SEED, 17, parts]), "uint8", 11
    given, want, side = [], [], b.pick(3, 8)
    for k in range(parts):
        kind = b.pick("int8", "uint8")
        value = b.bytes(kind, (1, b.pick(1, 6, 16, 48), side, side))
        x, y = requantized(b, b.param(value), value, b.rng.uniform(0.2, 1.2), int(b.zero(kind)), kind, to, zero)
        given.append(x)
        want.append(y)
    b.check(b.op("concat", given, axis=1), np.concatenate(want, 1), to)
    assert "one call with the next" in b.program.explain()


def test_parts_of_a_chain():
    """Res2Net's: each part follows from the one before, and all are made bytes of one scale together."""
    b, to, zero, kind = Builder([SEED, 18]), "int8", -3, "int8"
    pieces = [b.bytes(kind, (1, 32, 12, 12)) for _ in range(4)]
    given, want, last = [], [], None
    for k, piece in enumerate(pieces):
        x, value = b.param(piece), piece
        if last:
            shape, half = piece.shape, np.float32(0.37)
            d = [b.op("dequantizelinear", [v, b.over(half, shape)]) for v in (x, last[0])]
            x = b.op("quantizelinear", [b.op("add", d), b.over(np.float32(1), shape), b.over(np.array(0, kind), shape)])
            value = np.clip(np.rint((piece.astype(np.float64) + last[1]) * half), -128, 127).astype(kind)
        x = b.op("pooling", [x], mode="max", lengths=[3, 3], stride=[1, 1], padding=[1, 1])
        padded = np.pad(value, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-128)
        value = np.max([padded[:, :, i : i + 12, j : j + 12] for i in range(3) for j in range(3)], 0)
        last = x, value
        part = requantized(b, x, value, 0.3 + 0.2 * k, 5, kind, to, zero)
        given.append(part[0])
        want.append(part[1])
    b.check(b.op("concat", given, axis=1), np.concatenate(want, 1), to)
    assert "one call with the next 3" in b.program.explain()


@pytest.mark.parametrize("case", range(CASES))
def test_products_of_heads(case):
    """Both operands are heads of one array of bytes, with zero points: keys by values across tokens, then queries by what comes of it."""
    b = Builder([SEED, 19, case])
    tokens, heads, width = b.pick(17, 50, 197, 785), b.pick(1, 3, 8), b.pick(19, 20, 40, 64)
    ka, p = "int8", b.zero("int8", 1.0)
    x = b.bytes(ka, (2, tokens, 3, heads, width))
    all_of, q = b.param(x), b.zero(ka)

    def part(i, order):
        y = b.op("slice", [all_of], axes=[2], starts=[i], ends=[i + 1])
        return b.op("transpose", [b.op("squeeze", [y], axes=[2])], permutation=order), np.transpose(x[:, :, i].astype(np.int64), order)

    turned = b.rng.integers(2)
    left, a = part(1, [0, 2, 3, 1] if turned else [0, 2, 1, 3])
    right, c = part(2, [0, 2, 1, 3] if turned else [0, 2, 3, 1])
    y = b.op("quant_dot", [left, right] + zeros(b, p, q))
    want = (a - int(p)) @ (c - int(q))
    finish(b, y, want, want.shape)


@pytest.mark.parametrize("width", [24, 40, 152])
def test_rows_that_are_no_lines(width):
    """Rows of bytes that a product alone reads begin at whole lines."""
    b, kind = Builder([SEED, 21, width]), "int8"
    x, w = b.bytes(kind, (1, b.pick(50, 197), width)), b.bytes(kind, (width, b.pick(30, 96)))
    y, want = requantized(b, b.param(x), x, 0.7131, 3, kind, kind, -5)
    y = b.op("quant_dot", [b.op("squeeze", [y], axes=[0]), b.literal(w)] + zeros(b, np.array(-5, kind), np.array(0, kind)))
    want = (np.clip(np.rint(want[0]), -128, 127).astype(np.int64) + 5) @ w.astype(np.int64)
    finish(b, y, want, list(want.shape))


@pytest.mark.parametrize("width", [24, 40, 152])
def test_heads_that_are_no_lines(width):
    """So do those of heads side by side, which another product makes."""
    b, kind, heads, tokens = Builder([SEED, 22, width]), "int8", 8, 197
    x, v, u = b.bytes(kind, (2, heads, tokens, width // heads)), b.bytes(kind, (2, heads, width // heads, width // heads)), b.bytes(kind, (width, 40))
    sums = x.astype(np.int64) @ v.astype(np.int64)
    scale = np.float32(90 / np.abs(sums).max())
    y = b.op("dequantizelinear", [b.op("quant_dot", [b.param(x), b.param(v)]), b.over(scale, sums.shape)])
    y = b.op("quantizelinear", [y, b.over(np.float32(1), sums.shape), b.over(np.array(0, kind), sums.shape)])
    y = b.op("reshape", [b.op("transpose", [y], permutation=[0, 2, 1, 3])], dims=[2 * tokens, width])
    want = np.rint(sums * scale).astype(np.int64).transpose(0, 2, 1, 3).reshape(2 * tokens, width) @ u.astype(np.int64)
    y = b.op("convert", [b.op("quant_dot", [y, b.literal(u)])], target_type="float_type")
    b.main.add_return([b.op("relu", [y])])
    b.program.compile(migraphx.get_target("gpu"), offload_copy=True)
    assert ": ref (" not in b.program.explain()
    runs = [np.array(b.program.run(b.feeds)[0]) for _ in range(3)]
    assert all(np.array_equal(r, runs[0]) for r in runs)
    assert (runs[0] != np.maximum(want, 0)).mean() < 0.02  # a row whose byte lay between two steps, to a ten-millionth


@pytest.mark.parametrize("channels", [24, 40, 122])
def test_pixels_that_element_wise_work_makes(channels):
    """As of an image that is weighed by factors: its pixels begin at whole lines where convolutions alone read them."""
    b, kind = Builder([SEED, 23, channels]), "uint8"
    x, f = b.bytes(kind, (2, channels, 9, 12)), b.bytes(kind, (2, channels, 1, 1))
    image = b.op("pooling", [b.param(x)], mode="max", lengths=[2, 2], stride=[1, 1], padding=[0, 0])  # channels lie last
    x = np.max([x[:, :, i : 8 + i, j : 11 + j] for i in range(2) for j in range(2)], 0)
    shape = list(x.shape)
    factor = b.op("multibroadcast", [b.op("dequantizelinear", [b.param(f), b.over(np.float32(1 / 255), f.shape)])], out_lens=shape)
    y = b.op("mul", [b.op("dequantizelinear", [image, b.over(np.float32(0.7131), shape)]), factor])
    y = b.op("quantizelinear", [y, b.over(np.float32(1), shape), b.over(np.array(0, kind), shape)])
    made = np.clip(np.rint(x * np.float32(0.7131) * (f * np.float32(1 / 255))), 0, 255).astype(np.int64)
    w = b.bytes("int8", (30, channels, 1, 1))
    y = b.op("quant_convolution", [y, b.literal(w)], padding=[0, 0], stride=[1, 1], dilation=[1, 1], group=1)
    want = np.einsum("nchw,oc->nohw", made, w[:, :, 0, 0].astype(np.int64))
    y, want, kind = b.narrowed(y, want.astype(np.float64), list(want.shape))
    b.check(y, want, kind)
    line = (channels + 15) // 16 * 16
    assert f"{{{88 * line}, 1, {11 * line}, {line}}}" in b.program.explain(), b.program.explain()


def stepped(b, y, want, shape, kind, steps):
    """Made floats by one step and bytes by the next; ends of float that lie between two steps are as good as never drawn."""
    (s, z), (t, p) = steps
    y = quantized(b, dequantized(b, y, s, z, shape), t, p, shape)
    low, high = (-128, 127) if kind == "int8" else (0, 255)
    return y, np.clip(np.rint((want - float(z)) * np.float64(np.float32(s)) / np.float32(t)) + float(p), low, high)


@pytest.mark.parametrize("case", range(2 * CASES))
def test_rolled_pieces_with_steps_of_their_own(case):
    """A shifted image, whose pieces are quantized each for itself: from bytes, by what makes it, into windows."""
    b = Builder([SEED, 31, case])
    kind, rng = b.pick("int8", "uint8"), b.rng
    batch, rows, columns, channels = b.pick(1, 3), b.pick(4, 6), b.pick(4, 8), b.pick(16, 64, 70)
    shape = [batch, rows, columns, channels]
    x, zero = b.bytes(kind, shape), b.zero(kind)
    y, want = b.param(x), x.astype(np.float64)
    if rng.integers(2):
        y, want = stepped(b, y, want, shape, kind, [(rng.uniform(0.5, 1), zero), (rng.uniform(0.5, 1), zero)])
    for axis in b.pick([1, 2], [2, 1], [1]):
        size, parts, wants = shape[axis], [], []
        by = int(rng.integers(1, size))
        for first, last in ((by, size), (0, by)):
            part = b.op("slice", [y], axes=[axis], starts=[first], ends=[last])
            taken, lens = np.take(want, range(first, last), axis), [last - first if d == axis else n for d, n in enumerate(shape)]
            for _ in range(rng.integers(3)):
                part, taken = stepped(b, part, taken, lens, kind, [(rng.uniform(0.5, 1), b.zero(kind)), (rng.uniform(0.5, 1), zero)])
            parts, wants = parts + [part], wants + [taken]
        y, want = b.op("concat", parts, axis=axis), np.concatenate(wants, axis)
    split, order = [batch, rows // 2, 2, columns // 2, 2, channels], [0, 1, 3, 2, 4, 5]
    if rng.integers(2):
        y = b.op("reshape", [b.op("transpose", [b.op("reshape", [y], dims=split)], permutation=order)], dims=[batch, -1, channels])
        want = want.reshape(split).transpose(order).reshape(batch, -1, channels)
    b.check(y, want, None)


@pytest.mark.parametrize("case", range(2 * CASES))
def test_heads_with_steps_of_their_own(case):
    """Columns of one product, taken apart into members of several heads that become other bytes each, or stay."""
    b = Builder([SEED, 32, case])
    rng = b.rng
    rows, depth, members, heads, head = b.pick(5, 49), b.pick(16, 40), b.pick(2, 3), b.pick(1, 2, 4), b.pick(8, 32)
    shape, part = [rows, members * heads * head], [rows, 1, heads, head]
    x, w = b.bytes("int8", [rows, depth]), b.bytes("int8", [depth, shape[1]])
    zeros = [0, 0] if b.rng.integers(4) == 0 else [3, 200]
    kind, zero = "uint8", [np.array(z, np.uint8) for z in zeros]
    y, want = b.op("quant_dot", [b.param(x), b.literal(w)]), x.astype(np.int64) @ w.astype(np.int64)
    scale, low, high = np.float32(100 / np.abs(want).max()), 0, 255
    y = quantized(b, b.op("dequantizelinear", [y, b.over(scale, shape)]), np.float32(0.7), zero[0], shape)
    want = want * np.float64(scale) / np.float32(0.7) + zeros[0]
    whole, want = b.op("reshape", [y], dims=[rows, members, heads, head]), np.clip(np.rint(want), low, high)
    want, ends, wants = want.reshape(rows, members, heads, head), [], []
    for m in range(members):
        y, member = b.op("slice", [whole], axes=[1], starts=[m], ends=[m + 1]), want[:, m:m + 1]
        if rng.integers(3):
            y, member = stepped(b, y, member, part, kind, [(rng.uniform(0.5, 1), zero[0]), (rng.uniform(0.5, 1), zero[1])])
        ends, wants = ends + [y], wants + [member]
    b.main.add_return([b.op("transpose", [y], permutation=[2, 1, 0, 3]) for y in ends])
    b.program.compile(migraphx.get_target("gpu"), offload_copy=True)
    for _ in range(3):
        for got, member in zip(b.program.run(b.feeds), wants):  # a product's float may lie between two steps
            far = np.abs(np.array(got).astype(np.float64) - member.transpose(2, 1, 0, 3))
            assert far.max() <= 2 and np.mean(far > 0) < 1e-3
