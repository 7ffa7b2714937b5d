# SPDX-License-Identifier: MIT
"""Products, convolutions and attention of 32-bit floats on a card against numpy in double precision: what is asked is the
error of a chain of fused multiply-adds, whatever units compute. And with TF32 allowed, TF32's.

The card is MGX_TEST_DEVICE, else whatever OpenCL has; without one the tests are skipped. MGX_CASES says how many of each.
"""
from card import needs_card  # first: it says which card
import numpy as np
import pytest
from test_gpu_matrix import CASES as MOST
from test_gpu_matrix import SEED, Builder, convolution, rounded, tail

pytestmark = needs_card
CASES = (MOST + 1) // 2
TF32 = 1e-3  # operands of 11 bits: 2.8e-4 each by rounding, twice that by cutting off


def rms(x):
    return float(np.sqrt(np.mean(np.asarray(x, np.float64) ** 2)))


def chain(x, w):
    """The product as a card's ordinary units sum it: term after term, each addition rounded once."""
    sums = np.zeros(x.shape[:-1] + w.shape[1:], np.float32)
    for k in range(x.shape[-1]):
        sums = (sums + x[..., k, None].astype(np.float64) * w[k]).astype(np.float32)
    return sums


def program(kind, x, w, **options):
    b = Builder(kind, **options)
    return b, b.op("dot", [b.param(x), b.constant(w)])


@pytest.mark.parametrize("case", range(CASES))
def test_products_err_no_more_than_a_chain(case):
    rng = np.random.default_rng([SEED, 11, case])
    rows, depth, columns = int(rng.choice([1, 7, 64, 128, 197])), int(rng.integers(8, 700)), int(rng.choice([3, 8, 30, 64, 96, 200, 1000]))
    shift = float(rng.choice([0, 0, 1]))  # sums that grow with every term, too
    x = (rng.standard_normal([rows, depth]) + shift).astype(np.float32)
    w = (rng.standard_normal([depth, columns]) + shift).astype(np.float32)
    want = x.astype(np.float64) @ w
    b, y = program("float_type", x, w)
    ours, theirs = rms(b.run(y) - want), rms(chain(x, w) - want)
    print(f"{rows} x {depth} x {columns}, {shift:g}: {ours / rms(want):.2e}, a chain {theirs / rms(want):.2e}")
    assert ours <= 1.25 * theirs + 2e-8 * rms(want), f"{rows} x {depth} x {columns}: {ours / rms(want):.2e}, a chain errs by {theirs / rms(want):.2e}"
    b, y = program("float_type", x, w, tf32=True)
    error = rms(b.run(y) - want) / rms(want)
    print(f"    TF32 {error:.2e}")
    assert error < TF32


@pytest.mark.parametrize("case", range(CASES))
def test_products_in_a_graph(case):
    rng = np.random.default_rng([SEED, 12, case])
    b = Builder("float_type")
    rows, depth, columns = (int(rng.choice([1, 5, 16, 64, 100, 128, 197, 300])), int(rng.integers(8, 500)), int(rng.choice([3, 8, 30, 64, 96, 200, 264, 1000])))
    batch = [int(n) for n in rng.integers(1, 4, rng.integers(0, 3))]
    x, w = rng.standard_normal(batch + [rows, depth]), rng.standard_normal([depth, columns]) / np.sqrt(depth)
    weights = b.op("transpose", [b.constant(w.T.copy())], permutation=[1, 0]) if rng.integers(2) else b.constant(w)
    if batch:
        weights = b.op("multibroadcast", [weights], out_lens=batch + [depth, columns])
    left = b.op("relu", [b.param(x)]) if rng.integers(2) else None
    x = np.maximum(x, 0) if left else x
    y = b.op("dot", [left or b.param(x), weights])
    y, want = tail(b, rng, y, x.astype(np.float32).astype(np.float64) @ w.astype(np.float32), columns, len(batch) + 1)
    error = rms(b.run(y) - want) / rms(want)
    assert error < 1e-6, f"{batch} {rows} x {depth} x {columns}: {error:.2e}"


@pytest.mark.parametrize("case", range(CASES))
def test_convolutions(case):
    rng = np.random.default_rng([SEED, 13, case])
    tf32 = bool(case % 4 == 3)
    b = Builder("float_type", tf32=tf32)
    pick = lambda *values: int(rng.choice(values))
    size = [pick(1, 2, 3), pick(1, 3, 4, 7, 24, 36, 64, 72, 160), pick(7, 8, 14, 31), pick(7, 9, 28)]
    k = [pick(1, 2, 3, 5, 7), pick(1, 3, 3, 7)]
    if rng.integers(3) == 0:
        k = [1, 1]
    stride, dilation, padding = [pick(1, 1, 2, 3), pick(1, 1, 2)], [pick(1, 1, 2), 1], [pick(0, 1, k[0] // 2), pick(0, k[1] // 2)]
    if (k[0] - 1) * dilation[0] + 1 > size[2] + 2 * padding[0] or k[1] > size[3] + 2 * padding[1]:
        dilation, padding = [1, 1], [k[0] // 2, k[1] // 2]
    out = pick(8, 16, 40, 64, 130)
    x = rng.standard_normal(size)
    w = rng.standard_normal([out, size[1]] + k) / np.sqrt(size[1] * k[0] * k[1])
    before = None
    if rng.integers(2):  # an image that lies as a convolution leaves it
        x = rng.integers(-50, 50, size) / 64
        same = b.constant(np.eye(size[1]).reshape(size[1], size[1], 1, 1))
        before = b.op("relu", [b.op("convolution", [b.param(x), same], padding=[0, 0], stride=[1, 1], dilation=[1, 1], group=1)])
        x = np.maximum(x, 0)
    y = b.op("convolution", [before or b.param(x), b.constant(w)], padding=padding, stride=stride, dilation=dilation, group=1)
    want = convolution(x.astype(np.float32).astype(np.float64), w.astype(np.float32), stride, padding, dilation)
    y, want = tail(b, rng, y, want, out, 1)
    error = rms(b.run(y) - want) / rms(want)
    assert error < (TF32 if tf32 else 1e-6), f"{size} by {out} of {k}, stride {stride}, padding {padding}, dilation {dilation}: {error:.2e}"


@pytest.mark.parametrize("case", range(CASES))
def test_attention(case):
    rng = np.random.default_rng([SEED, 14, case])
    b = Builder("float_type")
    pick = lambda *values: int(rng.choice(values))
    batch, heads, rows, keys = pick(1, 2), pick(1, 3, 4), pick(8, 17, 64, 128, 197), pick(8, 33, 64, 128, 200)
    head, head_v = pick(16, 32, 64, 80, 128), pick(16, 32, 64, 128)
    q, k, v = (rng.standard_normal(s).astype(np.float32) for s in ([batch, rows, heads, head], [batch, keys, heads, head], [batch, keys, heads, head_v]))
    turned = lambda x, order: b.op("transpose", [b.param(x)], permutation=order)
    s = b.op("dot", [turned(q, [0, 2, 1, 3]), turned(k, [0, 2, 3, 1])])
    want = np.einsum("bihd,bjhd->bhij", q.astype(np.float64), k)
    scale = np.float32(1 / np.sqrt(head))
    s = b.op("mul", [s, b.op("multibroadcast", [b.constant(np.array([scale]))], out_lens=[batch, heads, rows, keys])])
    want = want * float(scale)
    if rng.integers(2):
        mask = np.where(rng.integers(0, 3, [batch, 1, 1, keys]) == 0, float(rng.choice([-1e9, -np.inf])), 0.0)
        mask[..., 0] = 0
        s = b.op("add", [s, b.op("multibroadcast", [b.param(mask)], out_lens=[batch, heads, rows, keys])])
        want = want + mask
    weights = np.exp(want - want.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    want = np.einsum("bhij,bjhd->bihd", weights, v)
    y = b.op("dot", [b.op("softmax", [s], axis=3), turned(v, [0, 2, 1, 3])])
    error = rms(b.run(b.op("transpose", [y], permutation=[0, 2, 1, 3])) - want) / rms(want)
    assert error < 2e-6, f"{batch} {heads} {rows} {keys} {head} {head_v}: {error:.2e}"


@pytest.mark.parametrize("case", range(CASES))
def test_attention_of_all_sizes(case):
    """Queries that are 1e-7 and 1e7 times others, of which one is infinite and one no number: each row is as exact as if it were alone. Keys and
    values that are 0.1 to 10 and 0.01 to 100."""
    rng = np.random.default_rng([SEED, 15, case])
    b = Builder("float_type")
    pick = lambda *values: int(rng.choice(values))
    batch, rows, keys, head, head_v = pick(1, 3, 12), pick(16, 33, 128), pick(16, 70, 197), pick(16, 32, 48, 64, 80, 112, 128), pick(16, 48, 64, 96, 128)
    if case % 4 == 3:
        batch, rows, keys = 170, 33, pick(70, 150)  # blocks for all multiprocessors: no warps share rows
    sizes = lambda n, most: 10 ** rng.uniform(-most, most, [batch, n, 1])
    of_q, of_k, of_v = sizes(rows, 7), sizes(keys, 1), sizes(keys, 2)
    q, k, v = (rng.standard_normal([batch, n, d]) * by for n, d, by in ((rows, head, of_q), (keys, head, of_k), (keys, head_v, of_v)))
    q[0, 3, 5], q[0, 9, 0] = np.inf, np.nan
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    shrink = (1 / of_q / np.sqrt(head)).astype(np.float32)  # scores are of a size again
    s = b.op("dot", [b.param(q), b.op("transpose", [b.param(k)], permutation=[0, 2, 1])])
    s = b.op("mul", [s, b.op("multibroadcast", [b.param(shrink)], out_lens=[batch, rows, keys])])
    y = b.run(b.op("dot", [b.op("softmax", [s], axis=2), b.param(v)]))
    lost = np.zeros([batch, rows], bool)
    lost[0, [3, 9]] = True
    assert np.isnan(y[lost]).all() and np.isfinite(y[~lost]).all()
    q = np.where(np.isfinite(q), q, 0).astype(np.float64)
    scores = q @ k.transpose(0, 2, 1) * shrink
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    size = 4 + np.abs(scores).max(-1, keepdims=True)  # a weight is off by as much as its score
    error = (np.abs(y - weights @ v) / (weights @ np.abs(v) * size))[~lost]
    assert error.max() < 4e-6 and rms(error) < 1e-6, f"{batch} {rows} {keys} {head} {head_v}: {error.max():.2e} {rms(error):.2e}"


@pytest.mark.parametrize("case", range(CASES))
def test_both_operands_computed(case):
    """Products that no kernel for constants takes: both operands are computed, of any depth, turned or not."""
    rng = np.random.default_rng([SEED, 18, case])
    kind, tf32 = ["float_type", "half_type", "bf16_type", "float_type"][case % 4], case % 8 == 3
    limit = {"half_type": 2e-3, "bf16_type": 1.6e-2}.get(kind, 5e-5 if tf32 else 1e-6)
    b = Builder(kind, tf32=tf32)
    pick = lambda *values: int(rng.choice(values))
    batch, rows, depth, columns = pick(1, 2, 3), pick(5, 20, 64, 100, 200), pick(1, 17, 40, 63, 131, 300), pick(4, 24, 64, 90, 257)
    x, w = rounded(rng.standard_normal([batch, rows, depth]), kind), rounded(rng.standard_normal([batch, depth, columns]), kind)
    turn = lambda v: b.op("transpose", [b.param(v.transpose(0, 2, 1).copy())], permutation=[0, 2, 1])
    y = b.op("dot", [turn(x) if rng.integers(2) else b.param(x), turn(w) if rng.integers(2) else b.param(w)])
    y, want = tail(b, rng, y, x.astype(np.float64) @ w, columns, 2)
    error = rms(b.run(y) - want) / rms(want)
    assert error < limit, f"{kind} {batch} {rows} x {depth} x {columns}: {error:.2e}"


@pytest.mark.parametrize("case", range(max(CASES, 6)))
def test_groups(case):
    """Together or alone; an infinity stays in its group."""
    rng = np.random.default_rng([SEED, 19, case])
    kind, tf32 = ["float_type", "half_type", "bf16_type", "float_type"][case % 4], case % 8 == 3
    limit = {"half_type": 2e-3, "bf16_type": 1.6e-2}.get(kind, TF32 if tf32 else 1e-6)
    channels, out, group = [(18, 40, 2), (9, 20, 2), (26, 20, 3), (4, 4, 16), (8, 24, 6), (64, 40, 2)][case % 6]
    b = Builder(kind, tf32=tf32)
    x, w = rounded(rng.standard_normal([2, group * channels, 9, 7]), kind), rounded(rng.standard_normal([group * out, channels, 3, 2]) / 9, kind)
    if kind == "float_type" and not tf32:
        x[1, channels - 1, 3, 2] = np.inf
    y = b.op("convolution", [b.param(x), b.constant(w)], padding=[1, 0], stride=[1, 1], dilation=[1, 1], group=group)
    want, got = convolution(x.astype(np.float64), w, [1, 1], [1, 0], [1, 1], group), b.run(y)
    there = np.isfinite(want)
    assert np.array_equal(got[~there], want[~there]) and np.isfinite(got[there]).all()
    error = rms(got[there] - want[there]) / rms(want[there])
    assert error < limit, f"{kind} {group} groups of {channels} by {out}: {error:.2e}"


@pytest.mark.parametrize("case", range(CASES))
def test_integers_are_exact(case):
    """What sums in float hold without rounding, in whatever order, is exact: also factors of 24 bits."""
    rng = np.random.default_rng([SEED, 15, case])
    depth, columns = int(rng.integers(8, 300)), int(rng.choice([8, 30, 96]))
    most = int(np.sqrt(2**24 / depth))
    x, w = rng.integers(-most, most + 1, [70, depth]), rng.integers(-most, most + 1, [depth, columns])
    b, y = program("float_type", x, w)
    assert np.array_equal(b.run(y), x @ w)
    x = rng.integers(-(2**24), 2**24 + 1, [70, depth])
    b, y = program("float_type", x, np.eye(depth))
    assert np.array_equal(b.run(y), x)
    b, y = program("float_type", np.eye(depth), x.T.copy())
    assert np.array_equal(b.run(y), x.T)


def test_values_that_are_not_finite():
    """Infinity and NaN come out where a chain has them, in these rows and columns alone, and the largest floats pass."""
    rng = np.random.default_rng([SEED, 16])
    x, w = (rng.integers(1, 100, s).astype(np.float32) for s in ([90, 75], [75, 40]))
    largest = np.finfo(np.float32).max
    x[3, 5], x[17, 40], x[20, 1], x[41, 74] = np.inf, -np.inf, np.nan, 3.4e38
    x[60], x[61], x[62] = 0, 0, 0
    x[60, 7], x[61, 9], x[62, 11] = largest, 1, np.inf
    w[11, 2], w[8, 3], w[30, 4] = 0, np.inf, np.nan
    w[7], w[9] = 1, largest
    w[8, 3], w[7, 6], w[11, 5] = np.inf, 1 / 64, -1
    with np.errstate(all="ignore"):
        want = chain(x, w)
        b, y = program("float_type", x, w)
        got = b.run(y)
    with np.errstate(all="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want)) | (np.isfinite(got) & np.isfinite(want) & (abs(got - want) <= 1e-6 * abs(want)))
    assert same.all(), [(int(i), int(j), got[i, j], want[i, j]) for i, j in np.argwhere(~same)[:9]]


def test_small_values():
    """Down to 2^-100 floats keep their bits; below, no value errs by more than 2^-132 times its factor."""
    rng = np.random.default_rng([SEED, 17])
    w = (rng.integers(0, 2, [48, 40]) * 2 - 1).astype(np.float32)
    exponents = np.array([-60, -98, -124, -140])
    x = np.ldexp(rng.standard_normal([70, 48]), exponents[np.arange(70) % 4, None]).astype(np.float32)
    want = x.astype(np.float64) @ w
    b, y = program("float_type", x, w)
    error = b.run(y) - want
    for i, exponent in enumerate(exponents):
        assert rms(error[i::4]) <= 4e-7 * rms(want[i::4]) + (48 * 2.0**-132 if exponent < -100 else 0), exponent
