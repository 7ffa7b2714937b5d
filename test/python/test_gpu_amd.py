# SPDX-License-Identifier: MIT
"""Kernels for AMD's cards, by the text that hiprtc would take, against numpy: an emulated card of each kind.

No card is asked: a stand-in for HIP's runtime compiles the text for the processor and computes the matrix instructions
by AMD's documents (test/targets/gpu/device/emulated). A process has one card, so each kind gets its own, which runs the
cases of this file and, as far as they are of AMD's cards, those of its neighbours. MGX_CASES says how many of each.
"""
import os
import subprocess
import sys

import pytest

FOLDER = os.environ.get("MGX_EMULATED_HIP", "")
ARCH = os.environ.get("MGX_EMULATED_ARCH")
if ARCH:
    os.environ.setdefault("MGX_TEST_DEVICE", "hip")
    import numpy as np
    import test_gpu_quantized
    from test_gpu_matrix import Builder, attention, channels_last, convolution, rounded, tail

CASES = int(os.environ.get("MGX_CASES", "1"))
SEED = int(os.environ.get("MGX_SEED", "1")) * 10000 + int((ARCH or "gfx0")[3:].strip("_"), 16)  # other cases for every card
# Roundings of 16 bits, and of a chain in float.
LIMIT = {"half_type": 2e-3, "bf16_type": 1.6e-2, "float_type": 2e-6}
KINDS = list(LIMIT)
UNITS = {"gfx906": [None] * 3, "gfx908": ["mfma"] * 3, "gfx90a": ["mfma"] * 3, "gfx942": ["mfma"] * 3,
         "gfx1030": [None] * 3, "gfx1100": ["wmma", "wmma", None], "gfx1200": ["wmma", "wmma", None]}
OCP = ["FLOAT8E4M3FN", "FLOAT8E5M2"]
# Of fp8: the instruction, and of which kinds.
UNITS_OF_FP8 = {"gfx942": ("mfma_f32_16x16x32_fp8_fp8", ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ"]),
                "gfx950": ("mfma_f32_16x16x32_fp8_fp8", OCP), "gfx1200": ("wmma_f32_16x16x16_fp8_fp8", OCP)}
UNITS_OF_BYTES = {"gfx950": "mfma_i32_16x16x32_i8", "gfx908": "mfma_i32_16x16x16i8", "gfx90a": "mfma_i32_16x16x16i8", "gfx942": "mfma_i32_16x16x32_i8",
                  "gfx1100": "wmma_i32_16x16x16_iu8", "gfx1200": "wmma_i32_16x16x16_iu8"}

on_card = pytest.mark.skipif(not ARCH, reason="of an emulated card's own process")


# Of most what they have not in common with the others.
@pytest.mark.parametrize("arch, cases", [("gfx908", "bf16"), ("gfx90a", ""), ("gfx942", "of_bytes or of_fp8"), ("gfx950", "of_fp8"), ("gfx1100", ""),
                                         ("gfx1200", "half or of_bytes or of_fp8")])
def test_emulated_card(arch, cases):
    if ARCH or not os.path.exists(os.path.join(FOLDER, "libamdhip64.so.7")):
        pytest.skip("no emulated card")
    environment = dict(os.environ, MGX_TEST_DEVICE="hip", MGX_EMULATED_ARCH=arch, LD_LIBRARY_PATH=FOLDER, MIGRAPHX_KERNEL_CACHE=os.path.join(FOLDER, "kernels"))
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", cases, "test_gpu_amd.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=os.path.dirname(os.path.abspath(__file__)))
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout[-3000:] + done.stderr[-1000:]


@on_card
@pytest.mark.parametrize("cases", ["lines and 24", "ranges and 0-1000", "ranges and 1-16387", "test_convolutions and 0"])
def test_bytes(cases):
    """Products of four bytes, ranges that the run finds, and images whose pixels lie apart, as the other cards have them."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", cases, "test_gpu_quantized.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=os.path.dirname(os.path.abspath(__file__)))
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout[-3000:] + done.stderr[-1000:]


@on_card
@pytest.mark.parametrize("left", ["int8", "uint8"])
@pytest.mark.parametrize("right", ["int8", "uint8"])
def test_products_of_bytes(left, right):
    """Units that take bytes with a sign alone multiply all of them, with zeros beside the last block of the depth."""
    b = test_gpu_quantized.Builder([SEED, 19, len(left), len(right)])
    rows, depth, columns = b.pick(17, 45, 70, 130), b.pick(16, 47, 64, 130, 400, 777), b.pick(24, 64, 97, 130)
    batch = [2] if b.rng.integers(2) else []
    x, w = b.bytes(left, batch + [rows, depth]), b.bytes(right, batch + [depth, columns])
    turned = b.op("transpose", [b.param(np.ascontiguousarray(w.swapaxes(-1, -2)))], permutation=[*range(len(batch)), len(batch) + 1, len(batch)])
    b.check(b.op("quant_dot", [b.param(x), turned if b.rng.integers(2) else b.param(w)]), x.astype(np.int32) @ w.astype(np.int32), None)
    units = UNITS_OF_BYTES.get(ARCH)
    assert not units or f"matrix units ({units}" in b.program.explain(), b.program.explain()


@on_card
@pytest.mark.parametrize("groups", [1, 4])
def test_convolutions_of_bytes(groups):
    """Groups go together, with zeros between them that are no zeros to units without a sign."""
    b = test_gpu_quantized.Builder([SEED, 20, groups])
    kinds = [b.pick("int8", "uint8") for _ in range(2)]
    per, out = (24, 40) if groups == 1 else (8, 16)
    x, w = b.bytes(kinds[0], [2, per * groups, 6, 9]), b.bytes(kinds[1], [out * groups, per, 3, 3])
    image = b.op("transpose", [b.param(np.ascontiguousarray(x.transpose(0, 2, 3, 1)))], permutation=[0, 3, 1, 2])
    y = b.op("quant_convolution", [image, b.literal(w)], padding=[1, 1, 1, 1], stride=[1, 2], dilation=[1, 1], group=groups)
    want = convolution(x.astype(np.float64), w.astype(np.float64), [1, 2], [1, 1], [1, 1], groups)
    b.check(y, want.astype(np.int32), None)
    units = UNITS_OF_BYTES.get(ARCH)
    assert not units or f"matrix units ({units}" in b.program.explain(), b.program.explain()


@on_card
@pytest.mark.parametrize("left", ["FLOAT8E4M3FN", "FLOAT8E5M2", "FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ"])
@pytest.mark.parametrize("right", ["FLOAT8E4M3FN", "FLOAT8E5M2FNUZ", "FLOAT8E5M2"])
def test_products_of_fp8(left, right):
    """Every number of its kind, zeros of both signs and the largest too, as it lies or as half; a NaN in one row."""
    fp8 = pytest.importorskip("test_gpu_fp8")
    rng = np.random.default_rng([SEED, 21, len(left), len(right), "M3" in right])
    rows, depth, columns = (int(rng.choice(n)) for n in ([17, 45, 70], [16, 40, 66, 130], [24, 64, 97]))
    x, w = (rng.integers(0, 256, size).astype(np.uint8).view(fp8.KINDS[kind][0]).astype(np.float32) for size, kind in (((rows, depth), left), ((depth, columns), right)))
    x[~np.isfinite(x)], w[~np.isfinite(w)] = -0.0, 0
    x[3, 5] = np.nan
    m = fp8.Model(x)
    got = m.run(m.node("MatMul", [m.rounded("x", np.float32(1), left), m.rounded(m.constant("w", w), np.float32(1), right)]))
    x, w = x.astype(np.float64), w.astype(np.float64)
    assert np.isnan(got[3]).all()
    got[3], x[3] = 0, 0
    fp8.near(got, x @ w, np.abs(x) @ np.abs(w), 2.0**-20)
    units, kinds = UNITS_OF_FP8.get(ARCH, ("", []))
    native = left in kinds and right in kinds
    assert ARCH not in UNITS_OF_FP8 or (f"matrix units ({units}" in m.plan) == native, m.plan


def check(b, y, want, what):
    got = b.run(y)
    error = np.sqrt(np.mean((got - want) ** 2) / max(np.mean(want**2), 1e-30))
    assert error < LIMIT[b.kind], f"{b.kind} {what}: relative error {error:.2e}"


def check_units(b, found=True, kernel="product"):
    """Does the plan name the units that the card has for the type?"""
    if ARCH not in UNITS:  # another card, of which nothing is said here
        return
    units = UNITS[ARCH][KINDS.index(b.kind)]
    steps = [line for line in b.program.explain().splitlines() if f": gpu::{kernel} (" in line]
    assert steps, b.program.explain()
    for line in steps:
        assert (f"matrix units ({units}_f32" in line) if units and found else "matrix units (" not in line, line


def operand(b, rng, shape, scale):
    """A computed operand that lies as it is read, or with its last axes turned."""
    value = rng.standard_normal(shape) * scale
    last = len(shape) - 1
    if rng.integers(2):
        return b.param(value), rounded(value, b.kind).astype(np.float64)
    order = [*range(last - 1), last, last - 1]
    return b.op("transpose", [b.param(value.transpose(order))], permutation=order), rounded(value, b.kind).astype(np.float64)


@on_card
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", range(CASES))
def test_products(kind, case):
    rng = np.random.default_rng([SEED, 11, case, KINDS.index(kind)])
    b = Builder(kind)
    pick = lambda *values: int(rng.choice(values))
    rows, depth, columns = pick(17, 33, 63, 64, 100, 129), pick(16, 19, 31, 32, 47, 96, 130, 200, 420), pick(17, 30, 64, 65, 96, 130)
    batch = [int(n) for n in rng.integers(1, 4, rng.integers(0, 3))]
    x, of_x = operand(b, rng, batch + [rows, depth], 1)
    w, of_w = operand(b, rng, batch + [depth, columns], 1 / np.sqrt(depth))
    y, want = tail(b, rng, b.op("dot", [x, w]), of_x @ of_w, columns, len(batch) + 1)
    check(b, y, want, f"{batch} {rows} x {depth} x {columns}")
    check_units(b)


@on_card
@pytest.mark.parametrize("kind, turned, begin", [("half_type", "", 0), ("half_type", "ab", 8), ("half_type", "b", 1), ("float_type", "a", 0), ("float_type", "b", 4), ("bf16_type", "a", 3)])
def test_reading(kind, turned, begin):
    """Operands that are brought 16 bytes at a time, along the depth and across it, or could be but for their address."""
    rng = np.random.default_rng([SEED, 17, len(turned), begin])
    b = Builder(kind)
    x, w = rng.standard_normal([72, 40]), rng.standard_normal([40, 88]) / 6
    inputs = []
    for name, value in ("a", x), ("b", w):
        wide = np.pad(value.T if name in turned else value, ((0, 0), (8, 8)))
        y = b.op("slice", [b.param(np.roll(wide, begin - 8, 1))], axes=[1], starts=[begin], ends=[begin + wide.shape[1] - 16])
        inputs.append(b.op("transpose", [y], permutation=[1, 0]) if name in turned else y)
    check(b, b.op("dot", inputs), rounded(x, kind).astype(np.float64) @ rounded(w, kind), f"{turned} from {begin}")
    check_units(b)


@on_card
@pytest.mark.parametrize("kind", KINDS)
def test_large_tiles(kind):
    """Tiles enough for every unit of the card: 128 x 128, with an edge on either side."""
    rng = np.random.default_rng([SEED, 12, KINDS.index(kind)])
    b = Builder(kind)
    x, w = rng.standard_normal([2, 260, 40]), rng.standard_normal([2, 40, 200]) / 6
    check(b, b.op("dot", [b.param(x), b.param(w)]), rounded(x, kind).astype(np.float64) @ rounded(w, kind), "260 x 40 x 200")
    check_units(b)


@on_card
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", range(CASES))
def test_convolutions(kind, case):
    rng = np.random.default_rng([SEED, 13, case, KINDS.index(kind)])
    b = Builder(kind)
    pick = lambda *values: int(rng.choice(values))
    groups, k = pick(1, 1, 2), [pick(1, 3), pick(1, 2, 3)]
    size = [pick(1, 2), pick(5, 8, 24) * groups, pick(7, 12), pick(9, 14)]
    out, stride, dilation, padding = pick(17, 24, 70) * groups, [pick(1, 2), pick(1, 2)], [pick(1, 2), 1], [pick(0, 1), pick(0, 1)]
    per = size[1] // groups
    x, w = rng.standard_normal(size), rng.standard_normal([out, per] + k) / np.sqrt(per * k[0] * k[1])
    last = rng.integers(2)  # channels lie last
    image = b.op("transpose", [b.param(x.transpose(0, 2, 3, 1))], permutation=[0, 3, 1, 2]) if last else b.param(x)
    y = b.op("convolution", [image, b.constant(w)], padding=padding, stride=stride, dilation=dilation, group=groups)
    x, w = rounded(x, kind).astype(np.float64), rounded(w, kind)
    n = out // groups
    want = np.concatenate([convolution(x[:, g * per : g * per + per], w[g * n : g * n + n], stride, padding, dilation) for g in range(groups)], 1)
    y, want = tail(b, rng, y, want, out, 1)
    check(b, y, want, f"{size} by {out} of {k}, {groups} groups, stride {stride}, padding {padding}, dilation {dilation}")
    if groups == 1 or per * k[0] * k[1] >= 16:  # else it depends on how many of them go together
        check_units(b, per * k[0] * k[1] >= 16 and want.size // out > 16)


@on_card
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("channels, columns, group", [(4, 4, 16), (8, 16, 4), (24, 40, 2)])
def test_narrow_groups(kind, channels, columns, group):
    """Groups that are multiplied together, with zeros between them."""
    rng = np.random.default_rng([SEED, 18, channels, KINDS.index(kind)])
    b = Builder(kind)
    image, x = channels_last(b, rng.standard_normal([1, channels * group, 6, 9]), channels * group)
    w = rng.standard_normal([columns * group, channels, 3, 3]) / np.sqrt(channels * 9)
    y = b.op("convolution", [image, b.constant(w)], padding=[1, 1], stride=[1, 2], dilation=[1, 1], group=group)
    want = convolution(x, rounded(w, kind), [1, 2], [1, 1], [1, 1], group)
    y, want = tail(b, rng, y, want, columns * group, 1)
    check(b, y, want, f"{group} groups of {channels} by {columns}")
    if UNITS[ARCH][KINDS.index(kind)]:
        steps = [line for line in b.program.explain().splitlines() if "gpu::product (matrix units" in line]
        assert len(steps) == 2 and sum("groups together" in line for line in steps) == (channels < 24), steps


@on_card
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", range(CASES * 2))
def test_attention(kind, case):
    """Without units for the type it is several steps, whose results are rounded."""
    b = Builder(kind)
    y, want, what = attention(b, np.random.default_rng([SEED, 15, case, KINDS.index(kind)]))
    got = b.run(y)
    error = np.sqrt(np.mean((got - want) ** 2) / np.mean(want**2))
    assert error < 3 * LIMIT[kind], f"{kind} {what}: relative error {error:.2e}"


@on_card
@pytest.mark.parametrize("kind", KINDS)
def test_attention_is_one_kernel(kind):
    rng = np.random.default_rng([SEED, 16, KINDS.index(kind)])
    b = Builder(kind)
    q, k, v = (rng.standard_normal([2, 3, n, w]) for n, w in ((21, 48), (75, 48), (75, 32)))
    scores = b.op("dot", [b.param(q), b.op("transpose", [b.param(k)], permutation=[0, 1, 3, 2])])
    y = b.op("relu", [b.op("dot", [b.op("softmax", [scores], axis=3), b.param(v)])])
    s = rounded(q, kind).astype(np.float64) @ rounded(k, kind).transpose(0, 1, 3, 2)
    weights = np.exp(s - s.max(-1, keepdims=True))
    want = np.maximum(weights / weights.sum(-1, keepdims=True) @ rounded(v, kind), 0)
    error = np.sqrt(np.mean((b.run(y) - want) ** 2) / np.mean(want**2))
    one = ARCH not in UNITS or UNITS[ARCH][KINDS.index(kind)]
    assert error < 3 * LIMIT[kind] or not one, f"{kind}: relative error {error:.2e}"
    if one:
        check_units(b, kernel="attention")


@on_card
def test_attention_of_windows_is_one_kernel():
    """A mask for every window, the same for all images: between scores and softmax windows lie beside images."""
    rng = np.random.default_rng([SEED, 17])
    images, windows, heads, tokens, size = 2, 3, 2, 17, 16
    b = Builder("half_type")
    x = rng.standard_normal([images * windows, tokens, 3, heads, size])
    mask = np.where(rng.random([1, windows, 1, tokens, tokens]) < 0.3, -4, 0)
    sides = b.param(x)
    part = [b.op("squeeze", [b.op("slice", [sides], axes=[2], starts=[i], ends=[i + 1])], axes=[2]) for i in range(3)]
    q, k, v = (b.op("transpose", [part[i]], permutation=order) for i, order in enumerate(([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])))
    wide = [images, windows, heads, tokens, tokens]
    scores = b.op("reshape", [b.op("dot", [q, k])], dims=wide)
    scores = b.op("softmax", [b.op("add", [scores, b.op("multibroadcast", [b.param(mask)], out_lens=wide)])], axis=4)
    y = b.op("dot", [b.op("reshape", [scores], dims=[images * windows, heads, tokens, tokens]), v])
    x = rounded(x, "half_type").astype(np.float64).transpose(2, 0, 3, 1, 4)
    s = (x[0] @ x[1].transpose(0, 1, 3, 2)).reshape(wide) + mask
    weights = np.exp(s - s.max(-1, keepdims=True))
    want = (weights / weights.sum(-1, keepdims=True)).reshape(images * windows, heads, tokens, tokens) @ x[2]
    one = ARCH not in UNITS or UNITS[ARCH][0]
    error = np.sqrt(np.mean((b.run(y) - want) ** 2) / np.mean(want**2))
    assert error < 3 * LIMIT["half_type"] or not one, f"relative error {error:.2e}"
    if one:
        check_units(b, kernel="attention")


@on_card
@pytest.mark.parametrize("case", range(CASES))
def test_reductions(case):
    """Lanes that threads of a wave share, less than a wave and more."""
    rng = np.random.default_rng([SEED, 14, case])
    b = Builder("float_type")
    pick = lambda *values: int(rng.choice(values))
    x = rng.standard_normal([pick(3, 40), pick(5, 24, 64, 200, 700, 3000)])
    y = b.op("softmax", [b.param(x)], axis=1)
    want = np.exp(x.astype(np.float32).astype(np.float64))
    check(b, y, want / want.sum(1, keepdims=True), f"softmax of {x.shape}")
