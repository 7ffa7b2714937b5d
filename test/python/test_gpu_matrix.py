# SPDX-License-Identifier: MIT
"""Products, convolutions and attention of 16-bit floats on a card against numpy, on random sizes.

The card is MGX_TEST_DEVICE, else whatever OpenCL has; without one the tests are skipped. MGX_CASES says how many of each.
"""
import os

import card  # first: it says which card
import migraphx
import numpy as np
import pytest

pytestmark = card.needs_card
CASES = int(os.environ.get("MGX_CASES", "2"))
SEED = int(os.environ.get("MGX_SEED", "1"))
# Rounding of a result, and of the operands of a chain of a few roundings, relative to their size.
LIMIT = {"half_type": 2e-3, "bf16_type": 1.6e-2}


def rounded(x, kind):
    if kind == "float_type":
        return x.astype(np.float32)
    if kind == "half_type":
        return x.astype(np.float16).astype(np.float32)
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


class Builder:
    """A program whose values are of one type between conversions of what comes in and goes out."""

    def __init__(self, kind, **options):
        self.kind, self.options, self.program, self.feeds = kind, options, migraphx.program(), {}
        self.main = self.program.get_main_module()

    def op(self, name, inputs, **attributes):
        return self.main.add_instruction(migraphx.op(name, **attributes), inputs)

    def narrow(self, x):
        return self.op("convert", [x], target_type={"half_type": 1, "float_type": 2, "bf16_type": 15}[self.kind])

    def param(self, value):
        name = "p%d" % len(self.feeds)
        self.feeds[name] = value.astype(np.float32)
        return self.narrow(self.main.add_parameter(name, migraphx.shape(type="float_type", lens=list(value.shape))))

    def constant(self, value):
        return self.narrow(self.main.add_literal(np.ascontiguousarray(value, np.float32)))

    def run(self, result):
        self.main.add_return([self.op("convert", [result], target_type=2)])
        self.program.compile(migraphx.get_target("gpu"), offload_copy=True, **self.options)
        runs = [np.array(self.program.run(self.feeds)[0]) for _ in range(3)]  # the third one plays a recording
        assert np.array_equal(runs[0], runs[1], equal_nan=True) and np.array_equal(runs[0], runs[2], equal_nan=True)
        return runs[0]


def check(got, want, kind, what):
    error = np.sqrt(np.mean((got - want) ** 2) / max(np.mean(want**2), 1e-30))
    assert error < LIMIT[kind], f"{what}: relative error {error:.2e}"


def tail(b, rng, y, want, columns, axis):
    """What follows a product: a bias of columns, another value of its size, an activation; each or not."""
    shape = want.shape
    if rng.integers(2):
        bias = rng.standard_normal(columns).astype(np.float32)
        y = b.op("add", [y, b.op("broadcast", [b.constant(bias)], axis=axis, out_lens=list(shape))])
        want = want + rounded(bias, b.kind).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    if rng.integers(2):
        other = rng.standard_normal(shape).astype(np.float32)
        y = b.op("add", [y, b.param(other)])
        want = want + rounded(other, b.kind)
    if rng.integers(2):
        y, want = b.op("relu", [y]), np.maximum(want, 0)
    elif rng.integers(2):
        y, want = b.op("tanh", [y]), np.tanh(want)
    return y, want


@pytest.mark.parametrize("case", range(CASES))
def test_products(case):
    rng = np.random.default_rng([SEED, 1, case])
    kind = ["half_type", "bf16_type"][case % 2]
    b = Builder(kind)
    rows, depth, columns = (int(rng.choice([1, 5, 16, 64, 100, 128, 197, 300])), 8 * int(rng.integers(1, 70)), int(rng.choice([3, 8, 30, 64, 96, 200, 264, 1000])))
    batch = [int(n) for n in rng.integers(1, 4, rng.integers(0, 3))]
    x = rng.standard_normal(batch + [rows, depth])
    w = rng.standard_normal([depth, columns]) / np.sqrt(depth)
    weights = b.constant(w.T.copy()) if rng.integers(2) else None
    weights = b.op("transpose", [weights], permutation=[1, 0]) if weights else b.constant(w)
    if batch:
        weights = b.op("multibroadcast", [weights], out_lens=batch + [depth, columns])
    y = b.op("dot", [b.param(x), weights])
    want = rounded(x, kind).astype(np.float64) @ rounded(w, kind)
    y, want = tail(b, rng, y, want, columns, len(batch) + 1)
    check(b.run(y), want, kind, f"{batch} {rows} x {depth} x {columns}")


@pytest.mark.parametrize("kind", ["half_type", "bf16_type"])
@pytest.mark.parametrize("case", range(max(1, CASES // 4)))
def test_few_deep_products(kind, case):
    """Of two that are computed: groups of warps share the depth, whose last blocks are no whole ones."""
    rng = np.random.default_rng([SEED, 21, case, len(kind)])
    b = Builder(kind)
    batch, rows, depth, columns = (int(rng.choice(n)) for n in ([1, 3, 8], [17, 19, 40, 64], [200, 421, 785, 3137], [19, 32, 40, 64]))
    x, w = rng.standard_normal([batch, depth, rows]), rng.standard_normal([batch, depth, columns]) / np.sqrt(depth)
    y = b.op("dot", [b.op("transpose", [b.param(x)], permutation=[0, 2, 1]), b.param(w)])
    want = rounded(x, kind).astype(np.float64).swapaxes(1, 2) @ rounded(w, kind)
    check(b.run(y), want, kind, f"{batch} {rows} x {depth} x {columns}")


def convolution(x, w, stride, padding, dilation, group=1):
    """Over any number of axes, tap by tap."""
    axes = range(x.ndim - 2)
    x = np.pad(x, [(0, 0), (0, 0)] + [(padding[i],) * 2 for i in axes])
    out = [(x.shape[i + 2] - (w.shape[i + 2] - 1) * dilation[i] - 1) // stride[i] + 1 for i in axes]
    x, w = (v.reshape([v.shape[0], group, -1, *v.shape[2:]] if v is x else [group, -1, *v.shape[1:]]) for v in (x, w))
    y = np.zeros([x.shape[0], group, w.shape[1], *out])
    for tap in np.ndindex(*w.shape[3:]):
        part = x[(slice(None),) * 3 + tuple(slice(tap[i] * dilation[i], tap[i] * dilation[i] + (out[i] - 1) * stride[i] + 1, stride[i]) for i in axes)]
        y += np.einsum("ngc...,goc->ngo...", part, w[(slice(None),) * 3 + tap])
    return y.reshape([x.shape[0], -1, *out])


@pytest.mark.parametrize("case", range(CASES))
def test_convolutions(case):
    rng = np.random.default_rng([SEED, 2, case])
    kind = ["half_type", "bf16_type"][case % 2]
    b = Builder(kind)
    pick = lambda *values: int(rng.choice(values))
    size = [pick(1, 2, 3), pick(3, 4, 8, 24, 64, 72, 160), pick(7, 8, 14, 31), pick(7, 9, 28)]
    k = [pick(1, 2, 3, 5, 7), pick(1, 3, 3, 7)]
    if rng.integers(3) == 0:
        k = [1, 1]
    stride, dilation, padding = [pick(1, 1, 2, 3), pick(1, 1, 2)], [pick(1, 1, 2), 1], [pick(0, 1, k[0] // 2), pick(0, k[1] // 2)]
    if (k[0] - 1) * dilation[0] + 1 > size[2] + 2 * padding[0] or k[1] > size[3] + 2 * padding[1]:
        dilation, padding = [1, 1], [k[0] // 2, k[1] // 2]
    out = pick(8, 16, 40, 64, 130)
    x = rng.standard_normal(size)
    w = rng.standard_normal([out, size[1]] + k) / np.sqrt(size[1] * k[0] * k[1])
    before = b.op("relu", [b.op("convolution", [b.param(x), b.constant(np.eye(size[1]).reshape(size[1], size[1], 1, 1))], padding=[0, 0], stride=[1, 1], dilation=[1, 1], group=1)]) if rng.integers(2) else None
    image = rounded(np.maximum(x, 0) if before else x, kind)
    y = b.op("convolution", [before or b.param(x), b.constant(w)], padding=padding, stride=stride, dilation=dilation, group=1)
    want = convolution(image.astype(np.float64), rounded(w, kind), stride, padding, dilation)
    y, want = tail(b, rng, y, want, out, 1)
    check(b.run(y), want, kind, f"{size} by {out} of {k}, stride {stride}, padding {padding}, dilation {dilation}")


def channels_last(b, value, channels):
    """A computed image, as one lies between convolutions: the relu of a parameter by a matrix of ones."""
    point = [1] * (value.ndim - 2)
    y = b.op("convolution", [b.param(value), b.constant(np.eye(channels).reshape([channels, channels] + point))],
             padding=[0 for _ in point], stride=point, dilation=point, group=1)
    return b.op("relu", [y]), rounded(np.maximum(value, 0), b.kind).astype(np.float64)


# Channels of a group, results of a group, groups: many in a tile, some, one; tiles that end within a group's columns.
GROUPS = [(4, 4, 32), (8, 8, 8), (16, 8, 4), (32, 32, 3), (24, 40, 5), (64, 64, 2), (2, 6, 12), (56, 56, 2), (8, 3, 7)]


@pytest.mark.parametrize("case", card.some(range(max(CASES, len(GROUPS)))))
def test_grouped_convolutions(case):
    rng = np.random.default_rng([SEED, 7, case])
    kind = ["half_type", "bf16_type"][(case + case // len(GROUPS)) % 2]
    b = Builder(kind)
    pick = lambda *values: int(rng.choice(values))
    channels, columns, group = GROUPS[case % len(GROUPS)]
    k, stride, dilation = [pick(1, 3), pick(1, 3, 5)], [pick(1, 2), pick(1, 2)], [pick(1, 2), 1]
    padding = [k[0] // 2 * dilation[0], k[1] // 2]
    image, of_image = channels_last(b, rng.standard_normal([pick(1, 3), channels * group, pick(7, 14), pick(9, 28)]), channels * group)
    w = rng.standard_normal([columns * group, channels] + k) / np.sqrt(channels * k[0] * k[1])
    y = b.op("convolution", [image, b.constant(w)], padding=padding, stride=stride, dilation=dilation, group=group)
    want = convolution(of_image, rounded(w, kind), stride, padding, dilation, group)
    y, want = tail(b, rng, y, want, columns * group, 1)
    check(b.run(y), want, kind, f"{of_image.shape} by {group} groups of {columns}, {k}, stride {stride}, dilation {dilation}")


# Image, weights, stride, padding, dilation, groups, over one axis and over three; some lie as they came, some channels last.
AXES = [([2, 80, 300], [96, 80, 3], 1, 1, 1, 1), ([1, 1, 4000], [64, 1, 10], 5, 0, 1, 1), ([2, 64, 400], [64, 8, 3], 1, 130, 130, 8), ([3, 72, 77], [40, 72, 5], 2, 2, 1, 1),
        ([1, 64, 9, 14, 14], [64, 64, 3, 3, 3], 1, 1, 1, 1), ([2, 3, 8, 28, 30], [64, 3, 3, 7, 7], (1, 2, 2), (1, 3, 3), 1, 1), ([1, 64, 8, 12, 9], [96, 64, 1, 3, 3], (1, 2, 1), (0, 1, 1), 1, 1),
        ([2, 96, 7, 6, 5], [64, 96, 3, 1, 1], (2, 1, 1), (1, 0, 0), 1, 1), ([1, 64, 6, 9, 8], [72, 64, 1, 1, 1], 2, 0, 1, 1), ([1, 3, 8, 32, 24], [96, 3, 2, 4, 4], (2, 4, 4), 0, 1, 1),
        ([2, 32, 5, 9, 9], [64, 8, 3, 3, 3], 1, (2, 2, 1), (2, 2, 1), 4), ([1, 48, 40, 9, 9], [64, 48, 17, 1, 1], 1, (17, 0, 0), (2, 1, 1), 1)]


@pytest.mark.parametrize("case", card.some(range(max(CASES, len(AXES)))))
def test_convolutions_of_other_axes(case):
    rng = np.random.default_rng([SEED, 8, case])
    kind = ["half_type", "bf16_type"][(case + case // len(AXES)) % 2]
    b = Builder(kind)
    size, weights, *window, group = AXES[case % len(AXES)]
    stride, padding, dilation = ([v] * (len(size) - 2) if isinstance(v, int) else list(v) for v in window)
    x, w = rng.standard_normal(size), rng.standard_normal(weights) / np.sqrt(np.prod(weights[1:]))
    image, of_image = channels_last(b, x, size[1]) if size[1] > 8 and rng.integers(4) else (b.param(x), rounded(x, kind).astype(np.float64))
    y = b.op("convolution", [image, b.constant(w)], padding=padding, stride=stride, dilation=dilation, group=group)
    want = convolution(of_image, rounded(w, kind), stride, padding, dilation, group)
    y, want = tail(b, rng, y, want, weights[0], 1)
    check(b.run(y), want, kind, f"{size} by {weights}, stride {stride}, padding {padding}, dilation {dilation}, {group} groups")


def group_norm(b, x, shape, groups, gain, shift):
    """As PyTorch exports it: rows of groups are standardised, channels scaled, an activation behind."""
    rows = [shape[0], groups, int(np.prod(shape)) // (shape[0] * groups)]
    wide = lambda v: b.op("multibroadcast", [v], out_lens=rows)
    r = b.op("reshape", [x], dims=rows)
    d = b.op("sub", [r, wide(b.op("reduce_mean", [r], axes=[2]))])
    variance = b.op("reduce_mean", [b.op("mul", [d, d])], axes=[2])
    small = b.op("multibroadcast", [b.constant(np.array([1e-3]))], out_lens=rows[:2] + [1])
    y = b.op("mul", [d, wide(b.op("rsqrt", [b.op("add", [variance, small])]))])
    y = b.op("reshape", [y], dims=list(shape))
    for name, value in ("mul", gain), ("add", shift):
        y = b.op(name, [y, b.op("multibroadcast", [b.constant(value.reshape([-1] + [1] * (len(shape) - 2)))], out_lens=list(shape))])
    return b.op("mul", [y, b.op("sigmoid", [y])])


# Image and groups: of one channel, some, all; lanes that stay in registers and that do not; one axis to three.
NORMS = [([2, 64, 14, 9], 32), ([1, 160, 40, 41], 32), ([2, 24, 7, 8], 1), ([2, 40, 9, 9], 40), ([1, 48, 4, 5, 6], 6), ([3, 96, 33], 8), ([1, 64, 128, 130], 2)]


@pytest.mark.parametrize("case", card.some(range(len(NORMS))))
def test_normalised_groups(case):
    """Between convolutions nothing is copied to another order."""
    rng = np.random.default_rng([SEED, 9, case])
    kind = ["half_type", "bf16_type"][case % 2]
    shape, groups = NORMS[case]
    b = Builder(kind)
    image, x = channels_last(b, rng.standard_normal(shape) + 1, shape[1])
    gain, shift = rng.standard_normal(shape[1]), rng.standard_normal(shape[1])
    y = group_norm(b, image, shape, groups, gain, shift)
    point = [1] * (len(shape) - 2)
    w = rng.standard_normal([16, shape[1]] + point) / np.sqrt(shape[1])
    y = b.op("convolution", [y, b.constant(w)], padding=[0 for _ in point], stride=point, dilation=point, group=1)
    rows = x.reshape(shape[0], groups, -1)
    rows = (rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + 1e-3)
    of_channels = lambda v: rounded(v, kind).reshape([-1] + point)
    z = rows.reshape(shape) * of_channels(gain) + of_channels(shift)
    want = convolution(rounded(z / (1 + np.exp(-z)), kind).astype(np.float64), rounded(w, kind), point, [0 for _ in point], point)
    got = b.run(y)
    error = np.sqrt(np.mean((got - want) ** 2) / np.mean(want**2))
    assert error < 2 * LIMIT[kind], f"{shape}, {groups} groups: relative error {error:.2e}"
    assert not [line for line in b.program.explain().splitlines() if " reshape: gpu::copy" in line], b.program.explain()


@pytest.mark.parametrize("case", range(CASES))
def test_many_tiles(case):
    """More tiles than a card has places: blocks stay and take several, along the rows or along the columns."""
    rng = np.random.default_rng([SEED, 6, case])
    kind = ["half_type", "bf16_type"][case % 2]
    b = Builder(kind)
    pick = lambda *values: int(rng.choice(values))
    results = 1500000 if os.environ["MIGRAPHX_GPU_DEVICE"] == "cuda" else 50000
    if rng.integers(3):
        columns = pick(64, 200, 393, 768, 1000, 9001, 20480)
        rows, depth = int(rng.integers(1, 4)) * results // columns + pick(0, 1, 77), 8 * int(rng.integers(1, 14))
        x, w = rng.standard_normal([rows, depth], np.float32), rng.standard_normal([depth, columns], np.float32) / np.float32(np.sqrt(depth))
        y = b.op("dot", [b.param(x), b.constant(w)])
        want, what, axis = rounded(x, kind) @ rounded(w, kind), f"{rows} x {depth} x {columns}", 1
    else:
        columns, k, stride = pick(64, 96, 130), pick(1, 3), pick(1, 2)
        size = [pick(9, 16, 21) * results // 1500000 + 1, pick(16, 64, 72), 40 * stride, 56 * stride]
        x, w = rng.standard_normal(size, np.float32), rng.standard_normal([columns, size[1], k, k], np.float32) / np.float32(k * np.sqrt(size[1]))
        y = b.op("convolution", [b.param(x), b.constant(w)], padding=[k // 2] * 2, stride=[stride] * 2, dilation=[1, 1], group=1)
        want, what, axis = convolution(rounded(x, kind), rounded(w, kind), [stride] * 2, [k // 2] * 2, [1, 1]), f"{size} by {columns} of {k}, stride {stride}", 1
    y, want = tail(b, rng, y, want, columns, axis)
    check(b.run(y), want, kind, what)


def attention(b, rng):
    """A random attention, what it should give, and its sizes."""
    kind = b.kind
    pick = lambda *values: int(rng.choice(values))
    batch, heads, rows, keys = pick(1, 2), pick(1, 3, 4), pick(8, 17, 64, 128, 197), pick(8, 33, 64, 128, 200, 300, 520)
    if os.environ["MIGRAPHX_GPU_DEVICE"] == "cuda" and rng.integers(3) == 0:
        batch, heads = 16, 20  # blocks are many: a warp takes all keys
    head, head_v = pick(16, 32, 64, 80, 128), pick(16, 32, 64, 128)
    q, k, v = (rng.standard_normal(s) for s in ([batch, rows, heads, head], [batch, keys, heads, head], [batch, keys, heads, head_v]))
    turned = lambda x, order: b.op("transpose", [b.param(x)], permutation=order)
    s = b.op("dot", [turned(q, [0, 2, 1, 3]), turned(k, [0, 2, 3, 1])])
    want = np.einsum("bihd,bjhd->bhij", rounded(q, kind).astype(np.float64), rounded(k, kind))
    scale = 1 / np.sqrt(head)
    s = b.op("mul", [s, b.op("multibroadcast", [b.constant(np.array([scale]))], out_lens=[batch, heads, rows, keys])])
    want = want * float(rounded(np.array([scale]), kind)[0])
    if rng.integers(2):
        mask = np.where(rng.integers(0, 3, [batch, 1, pick(1, rows), keys]) == 0, -30000.0, 0.0)
        mask[..., 0] = 0
        s = b.op("add", [s, b.op("multibroadcast", [b.param(mask)], out_lens=[batch, heads, rows, keys])])
        want = want + mask
    elif rng.integers(2):
        bias = rng.standard_normal([1, heads, rows, keys])
        s = b.op("add", [s, b.op("multibroadcast", [b.constant(bias) if rng.integers(2) else b.param(bias)], out_lens=[batch, heads, rows, keys])])
        want = want + rounded(bias, kind)
    weights = np.exp(want - want.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    want = np.einsum("bhij,bjhd->bihd", weights, rounded(v, kind))
    y = b.op("dot", [b.op("softmax", [s], axis=3), turned(v, [0, 2, 1, 3])])
    return b.op("transpose", [y], permutation=[0, 2, 1, 3]), want, f"{batch} {heads} {rows} {keys} {head} {head_v}"


@pytest.mark.parametrize("case", range(CASES))
def test_attention(case):
    b = Builder(["half_type", "bf16_type"][case % 2])
    y, want, what = attention(b, np.random.default_rng([SEED, 3, case]))
    # Scores and weights are rounded on a card that has no kernel for the whole: a few roundings more.
    got = b.run(y)
    error = np.sqrt(np.mean((got - want) ** 2) / np.mean(want**2))
    assert error < 3 * LIMIT[b.kind], f"{what}: relative error {error:.2e}"


def depthwise(x, w, stride, padding, dilation):
    parts = [convolution(x[:, c : c + 1], w[c : c + 1], stride, padding, dilation) for c in range(x.shape[1])]
    return np.concatenate(parts, axis=1)


def windows(x, mode, length, stride):
    n, c, h, w = x.shape
    view = np.lib.stride_tricks.sliding_window_view(x, length, (2, 3))[:, :, ::stride, ::stride]
    return view.mean((4, 5)) if mode == "average" else view.max((4, 5))


@pytest.mark.parametrize("case", range(CASES))
def test_depthwise_and_poolings(case):
    """Images that lie channels last, so that a thread takes several channels."""
    rng = np.random.default_rng([SEED, 4, case])
    kind = ["half_type", "bf16_type"][case % 2]
    b = Builder(kind)
    pick = lambda *values: int(rng.choice(values))
    n, c, h, w = pick(1, 2, 3), pick(6, 8, 32, 40, 136, 144, 272), pick(7, 14, 33, 65), pick(7, 15, 28, 64)
    k, stride, dilation = [pick(1, 3, 5), pick(2, 3, 5)], [pick(1, 2, 3), pick(1, 1, 2, 3)], [pick(1, 2), pick(1, 1, 2)]
    dilation = dilation if min(h, w) > 10 else [1, 1]
    padding = [pick(0, k[0] // 2), pick(0, k[1] // 2)]
    x = rng.standard_normal([n, h, w, c])
    weights = rng.standard_normal([c, 1] + k) / np.sqrt(k[0] * k[1])
    y = b.op("transpose", [b.param(x)], permutation=[0, 3, 1, 2])
    want = rounded(x, kind).transpose(0, 3, 1, 2).astype(np.float64)
    what = f"{n} {c} {h} {w}"
    if rng.integers(4):
        y = b.op("convolution", [y, b.constant(weights)], padding=padding, stride=stride, dilation=dilation, group=c)
        want = depthwise(want, rounded(weights, kind), stride, padding, dilation)
        y, want = tail(b, rng, y, want, c, 1)
        what += f" by {k}, stride {stride}, padding {padding}, dilation {dilation}"
    mode, (h, w) = ["average", "max"][pick(0, 1)], want.shape[2:]
    if rng.integers(2):
        y = b.op("pooling", [y], mode=mode, padding=[0, 0], stride=[1, 1], lengths=[h, w], dilations=[1, 1])
        want = getattr(want, {"average": "mean", "max": "max"}[mode])((2, 3), keepdims=True)
    elif min(h, w) > 2:
        y = b.op("pooling", [y], mode=mode, padding=[0, 0], stride=[2, 2], lengths=[3, 3], dilations=[1, 1])
        want = windows(want, mode, (3, 3), 2)
    error = np.sqrt(np.mean((b.run(y) - want) ** 2) / max(np.mean(want**2), 1e-30))
    assert error < 3 * LIMIT[kind], f"{what}: {mode} {error:.2e}"


@pytest.mark.parametrize("case", range(CASES))
def test_recurrent(case):
    """Layers that Hopper's clusters take, and some that they leave, against the reference."""
    rng = np.random.default_rng([SEED, 5, case])
    pick = lambda *values: int(rng.choice(values))
    name, gates = [("lstm", 4), ("gru", 3), ("rnn", 1)][case % 3]
    steps, batch, size, hidden = pick(1, 3, 17), pick(1, 2, 5, 9), pick(3, 40, 72), pick(64, 64, 128, 256, 320, 20)
    direction = pick(0, 1, 2)
    dirs = 2 if direction == 2 else 1
    acts = {"lstm": ["sigmoid", "tanh", "tanh"], "gru": ["sigmoid", "tanh"], "rnn": ["tanh"]}[name] * dirs
    values = [rng.standard_normal([steps, batch, size]), rng.standard_normal([dirs, gates * hidden, size]) / np.sqrt(size), rng.standard_normal([dirs, gates * hidden, hidden]) / np.sqrt(hidden),
              rng.standard_normal([dirs, 2 * gates * hidden]), rng.integers(0, steps + 1, [batch]).astype(np.int32), rng.standard_normal([dirs, batch, hidden])]
    values += [rng.standard_normal([dirs, batch, hidden]), rng.standard_normal([dirs, 3 * hidden])] if name == "lstm" else []
    keep = [True] * 3 + [bool(rng.integers(2)) for _ in values[3:]]
    more = {"linear_before_reset": pick(1, 1, 0)} if name == "gru" else {"input_forget": pick(0, 0, 1)} if name == "lstm" else {}
    results = []
    for target in ["ref", "gpu"]:
        program, feeds = migraphx.program(), {}
        main = program.get_main_module()
        inputs = []
        for i, value in enumerate(values):
            if not keep[i]:
                inputs.append(main.add_instruction(migraphx.op("undefined"), []))
            elif i in (0, 4):
                feeds[f"p{i}"] = value.astype(np.int32 if i == 4 else np.float32)
                inputs.append(main.add_parameter(f"p{i}", migraphx.shape(type="int32_type" if i == 4 else "float_type", lens=list(value.shape))))
            else:
                inputs.append(main.add_literal(value.astype(np.float32)))
        main.add_return([main.add_instruction(migraphx.op(name, hidden_size=hidden, actv_func=acts, direction=direction, clip=0.0, **more), inputs)])
        program.compile(migraphx.get_target(target), offload_copy=True)
        results.append([np.array(program.run(feeds)[0]) for _ in range(3)][-1])
    error = np.sqrt(np.mean((results[1] - results[0]) ** 2) / max(np.mean(results[0] ** 2), 1e-30))
    assert error < 1e-5, f"{name} {steps} {batch} {size} {hidden}, direction {direction}, {keep}, {more}: relative error {error:.2e}"
