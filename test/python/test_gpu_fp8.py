# SPDX-License-Identifier: MIT
"""Products and convolutions of fp8 on a card, as QuantizeLinear and DequantizeLinear say them, against numpy's double.

What is quantised on the way is compared in steps: a value near the middle of two numbers may become either. The card is
MGX_TEST_DEVICE, else whatever OpenCL has; without one the tests are skipped. MGX_CASES says how many of each.
"""
import os

import card  # first: it says which card
import migraphx
import numpy as np
import pytest

ml_dtypes = pytest.importorskip("ml_dtypes")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

pytestmark = card.needs_card
CASES = int(os.environ.get("MGX_CASES", "1"))
KINDS = {"FLOAT8E4M3FN": (ml_dtypes.float8_e4m3fn, 448.0), "FLOAT8E5M2": (ml_dtypes.float8_e5m2, 57344.0),
         "FLOAT8E4M3FNUZ": (ml_dtypes.float8_e4m3fnuz, 240.0), "FLOAT8E5M2FNUZ": (ml_dtypes.float8_e5m2fnuz, 57344.0)}
HOPPER = 2.0 ** -11  # of the sum of magnitudes: the units keep 14 digits of what they add up


def quantized(x, scale, kind):
    """The numbers of fp8, as doubles: to the nearest, the largest beyond."""
    to, most = KINDS[kind]
    return np.clip((x / scale).astype(np.float32), -most, most).astype(to).astype(np.float64)


class Model:
    """A graph whose weights and steps are constants."""

    def __init__(self, x):
        self.x, self.nodes, self.inits = x, [], []

    def constant(self, name, value, kind=None):
        self.inits.append(helper.make_tensor(name, getattr(TensorProto, kind), [], [0.0]) if kind else numpy_helper.from_array(value, name))
        return name

    def node(self, op, inputs, **attrs):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attrs))
        return name

    def rounded(self, x, scale, kind, **attrs):
        """Quantised and back."""
        name = f"s{len(self.inits)}"
        step, zero = self.constant(name, np.asarray(scale, np.float32)), None
        zero = self.constant(name + "z", None, kind) if np.ndim(scale) == 0 else None
        if zero is None:
            self.inits.append(helper.make_tensor(name + "z", getattr(TensorProto, kind), list(np.shape(scale)), [0.0] * np.size(scale)))
            zero = name + "z"
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [x, step, zero], **attrs), step, zero], **attrs)

    def run(self, last, half=False):
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(self.x.shape))],
                                  [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)], self.inits)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
        program = migraphx.parse_onnx_buffer(model.SerializeToString())
        if half:
            migraphx.quantize_fp16(program)
        program.compile(migraphx.get_target("gpu"))
        self.plan = program.explain()
        runs = [np.array(program.run({"x": self.x})[0]) for _ in range(3)]  # the third one plays a recording
        assert all(np.array_equal(runs[0], again, equal_nan=True) for again in runs[1:])
        return runs[0]


def near(got, want, magnitude, lost):
    assert got.shape == want.shape
    worst = np.abs(got - want) / (magnitude * lost + 1e-30)
    assert worst.max() <= 1, worst.max()


def dots(rng, rows, depth, columns, kinds, per_column):
    x, w = rng.standard_normal((rows, depth)).astype(np.float32), rng.standard_normal((depth, columns)).astype(np.float32)
    s = np.float32(0.02 if "4M3" in kinds[0] else 0.001)
    t = (rng.random(columns).astype(np.float32) + 0.5) * np.float32(0.02) if per_column else np.float32(0.02)
    m = Model(x)
    a = m.rounded("x", s, kinds[0])
    b = m.rounded(m.constant("w", w), t, kinds[1], **({"axis": 1} if per_column else {}))
    qa, qb = quantized(x, s, kinds[0]), quantized(w, t, kinds[1])
    return m, m.node("MatMul", [a, b]), (qa @ qb) * s * t, (np.abs(qa) @ np.abs(qb)) * s * t


PAIRS = [("FLOAT8E4M3FN", "FLOAT8E4M3FN"), ("FLOAT8E5M2", "FLOAT8E4M3FN"), ("FLOAT8E4M3FNUZ", "FLOAT8E4M3FNUZ"),
         ("FLOAT8E4M3FN", "FLOAT8E5M2"), ("FLOAT8E5M2", "FLOAT8E5M2"), ("FLOAT8E5M2FNUZ", "FLOAT8E4M3FN")]


@pytest.mark.parametrize("seed", range(CASES))
@pytest.mark.parametrize("kinds", card.some(PAIRS), ids="-".join)
def test_products(kinds, seed):
    rng = np.random.default_rng([seed, len(kinds[0]), len(kinds[1])])
    rows, depth, columns = int(rng.integers(1, 300)), int(rng.integers(1, 40)) * 16, int(rng.integers(1, 20)) * 16
    m, y, want, magnitude = dots(rng, rows, depth, columns, kinds, bool(rng.integers(2)))
    bias = rng.standard_normal(columns).astype(np.float32)
    got = m.run(m.node("Relu", [m.node("Add", [y, m.constant("bias", bias)])]))
    near(got, np.maximum(want + bias, 0), magnitude + np.abs(bias), HOPPER)
    assert "gpu::" in m.plan and "-> fp8" in m.plan  # the product reads fp8


@pytest.mark.parametrize("seed", range(CASES))
@pytest.mark.parametrize("kind", card.some(["FLOAT8E4M3FN", "FLOAT8E5M2"]))
def test_what_goes_on_in_fp8(kind, seed):
    """The second product reads what the first one's end has quantised: that is right within a step of fp8, and what sums lose."""
    rng = np.random.default_rng([seed, 7])
    m, y, first, magnitude = dots(rng, 150, 128, 96, (kind, kind), True)
    s = np.float32(0.5)
    got = m.run(m.rounded(m.node("Relu", [y]), s, kind))
    want = quantized(np.maximum(first, 0), s, kind) * s
    step = np.abs(want) * 2.0 ** (-3 if "4M3" in kind else -2) + s * 2.0 ** -9
    assert (np.abs(got - want) <= step + magnitude * HOPPER).all()
    apart = np.abs(got - want)
    assert (apart > 0).mean() < 2e-2, (apart > 0).mean()
    w = rng.standard_normal((96, 48)).astype(np.float32)
    again = Model(m.x)
    again.nodes, again.inits = list(m.nodes), list(m.inits)
    out = again.run(again.node("MatMul", [m.nodes[-1].output[0], again.rounded(again.constant("u", w), np.float32(0.02), kind)]))
    u = quantized(w, np.float32(0.02), kind) * np.float32(0.02)
    near(out, got.astype(np.float64) @ u, np.abs(got) @ np.abs(u), HOPPER + 2.0 ** -4 * (apart > 0).mean() ** 0.5)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", card.some(list(KINDS)))
def test_both_are_computed(kind, turned):
    """As in attention: x times itself, in one of two orders of memory, for every head."""
    rng = np.random.default_rng([turned, len(kind)])
    heads, rows, depth = 3, int(rng.integers(20, 90)), 32
    x = rng.standard_normal((heads, rows, depth)).astype(np.float32)
    s = np.float32(0.05 if "4M3" in kind else 0.001)
    m = Model(x)
    a = m.rounded("x", s, kind)
    t = m.node("Transpose", [a], perm=[0, 2, 1])
    y = m.node("MatMul", [t, a] if turned else [a, t])
    got = m.run(m.node("Tanh", [m.node("Mul", [y, m.constant("c", np.float32(0.01))])]))
    q = quantized(x, s, kind) * s
    want = np.einsum("hri,hrj->hij" if turned else "hir,hjr->hij", q, q) * 0.01
    near(got, np.tanh(want), np.abs(want) + 1, 2.0 ** -18)
    assert "-> fp8" in m.plan


def attention(m, heads, rows, kinds, mask):
    """Of x, whose last axis is queries, keys and values; the instruction, its sums, and those of magnitudes."""
    keys, head = m.x.shape[2], m.x.shape[3] // 3
    steps = [np.float32(0.02 if "4M3" in k else 0.0004) for k in kinds]
    cut = lambda first, end, axis: [m.constant(f"c{len(m.inits)}{i}", np.array([v])) for i, v in enumerate((first, end, axis))]  # noqa: E731
    parts = [m.node("Slice", ["x", *cut(i * head, (i + 1) * head, 3)]) for i in range(3)]
    parts[0] = m.node("Slice", [parts[0], *cut(0, rows, 2)])
    q, k, v = (m.rounded(p, s, kind) for p, s, kind in zip(parts, steps, kinds))
    scores = m.node("MatMul", [q, m.node("Transpose", [k], perm=[0, 1, 3, 2])])
    scores = m.node("Mul", [scores, m.constant("scale", np.float32(head ** -0.5))])
    if mask is not None:
        scores = m.node("Add", [scores, m.constant("mask", mask)])
    fine = np.float32(1 / 448 if "4M3" in kinds[3] else 1 / 57344)
    weights = m.rounded(m.node("Softmax", [scores], axis=-1), fine, kinds[3])
    nq, nk, nv = (quantized(np.split(m.x, 3, axis=3)[i], steps[i], kinds[i]) * steps[i] for i in range(3))
    z = np.einsum("bhrd,bhkd->bhrk", nq[:, :, :rows], nk) * np.float64(np.float32(head ** -0.5)) + (0 if mask is None else mask)
    w = np.exp(z - z.max(-1, keepdims=True))
    w = quantized(w / w.sum(-1, keepdims=True), fine, kinds[3]) * fine
    return m.node("MatMul", [weights, v]), w @ nv, w @ np.abs(nv)


# Few blocks whose warps share keys, more of them, blocks of warpgroups; keys at once, and in groups that are walked twice.
ATTENTIONS = [(1, 3, 40, 40, 32), (1, 12, 197, 197, 64), (1, 2, 33, 300, 64), (2, 12, 128, 128, 64), (4, 12, 100, 100, 64),
              (4, 12, 70, 230, 64), (3, 16, 65, 600, 128), (2, 40, 50, 17, 16)]
SMALL = [(1, 2, 20, 28, 32)]
ON_CUDA = os.environ.get("MGX_TEST_DEVICE") == "cuda"


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("sizes", ATTENTIONS if ON_CUDA else SMALL, ids=lambda s: "x".join(map(str, s)))
def test_attention(sizes, masked):
    """Weights are rounded behind their division by the sum: hardly one near the middle of two numbers becomes the other."""
    batch, heads, rows, keys, head = sizes
    rng = np.random.default_rng([masked, *sizes])
    kinds = [("FLOAT8E4M3FN", "FLOAT8E5M2")[i] for i in rng.integers(0, 2, 4) * (not masked)]
    m = Model((rng.standard_normal((batch, heads, keys, 3 * head)) * 1.5).astype(np.float32))
    mask = np.where(rng.random((batch, 1, 1, keys)) < 0.2, -1e4, 0).astype(np.float32) if masked else None
    y, want, magnitude = attention(m, heads, min(rows, keys), kinds, mask)
    got = m.run(m.node("Add", [y, m.constant("one", np.float32(1))]))
    assert got.shape == want.shape
    off = np.abs(got - 1 - want) / (magnitude + 1e-6)
    assert off.max() < 2.0 ** -5 and (off > 2.0 ** -16).mean() < 1e-2, (off.max(), (off > 2.0 ** -16).mean())
    if ON_CUDA:
        assert "gpu::attention (" in m.plan


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("sizes", [(1, 12, 197, 197, 64), (4, 12, 128, 128, 64)] if ON_CUDA else SMALL, ids=lambda s: "x".join(map(str, s)))
def test_attention_that_leaves_fp8(sizes, half):
    """Its results are quantised, for a product; what is not one may be computed in half."""
    batch, heads, rows, keys, head = sizes
    rng = np.random.default_rng([half, *sizes])
    m = Model(rng.standard_normal((batch, heads, keys, 3 * head)).astype(np.float32))
    y, want, magnitude = attention(m, heads, rows, ["FLOAT8E4M3FN"] * 4, np.where(rng.random((batch, 1, 1, keys)) < 0.2, -1e4, 0).astype(np.float32))
    s = np.float32(np.abs(want).max() / 448)
    got = m.run(m.rounded(y, s, "FLOAT8E4M3FN"), half)
    want = quantized(want, s, "FLOAT8E4M3FN") * s
    off = np.abs(got - want)
    assert (off <= np.abs(want) * 2.0 ** -2 + s + magnitude * half * 2.0 ** -6).all() and (off > np.abs(want) * 2.0 ** -9).mean() < (0.15 if half else 5e-3), (off > np.abs(want) * 2.0 ** -9).mean()
    if ON_CUDA:
        assert "gpu::attention (" in m.plan and "gpu::softmax" not in m.plan


def test_a_norm_that_is_quantised():
    """Its rows leave the card's kernel as fp8."""
    rng = np.random.default_rng(5)
    m = Model(rng.standard_normal((70, 96)).astype(np.float32))
    m.node("LayerNormalization", ["x", m.constant("g", np.ones(96, np.float32))], axis=-1)
    s, t = np.float32(0.02), np.float32(0.02)
    w = rng.standard_normal((96, 32)).astype(np.float32)
    a, b = m.rounded(m.nodes[-1].output[0], s, "FLOAT8E4M3FN"), m.rounded(m.constant("w", w), t, "FLOAT8E4M3FN")
    got = m.run(m.node("MatMul", [a, b]))
    x = m.x.astype(np.float64)
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    qx, qw = quantized(x, s, "FLOAT8E4M3FN"), quantized(w, t, "FLOAT8E4M3FN")
    # a value near the middle of two numbers may become either: a step of the largest now and then
    near(got, (qx @ qw) * s * t, (np.abs(qx) @ np.abs(qw)) * s * t, 2.0 ** -8)
    assert "reference" not in m.plan


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("sizes", card.some([(70, 96), (3, 33, 768), (2, 5, 7, 40)]), ids=lambda s: "x".join(map(str, s)))
def test_a_norm_with_two_readers(sizes, half):
    """Its rows leave one kernel twice: as they are, for a residual, and as fp8."""
    rng, width = np.random.default_rng([7, *sizes]), sizes[-1]
    m = Model(rng.standard_normal(sizes).astype(np.float32))
    g, shift = rng.uniform(0.5, 2, width).astype(np.float32), rng.standard_normal(width).astype(np.float32)
    y = m.node("LayerNormalization", ["x", m.constant("g", g), m.constant("shift", shift)], axis=-1)
    s, t = np.float32(0.02), np.float32(0.02)
    w = rng.standard_normal((width, width)).astype(np.float32)
    a, b = m.rounded(y, s, "FLOAT8E4M3FN"), m.rounded(m.constant("w", w), t, "FLOAT8E4M3FN")
    got = m.run(m.node("Add", [m.node("MatMul", [a, b]), y]), half)
    x = m.x.astype(np.float64)
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + shift
    qx, qw = quantized(x, s, "FLOAT8E4M3FN"), quantized(w, t, "FLOAT8E4M3FN")
    # halves round before fp8 does: one value in a hundred becomes the neighbour, an eighth of itself away, which is seen where
    # the sum has few that are large
    lost = 2.0 ** -5 if half else 2.0 ** -8
    near(got, (qx @ qw) * s * t + x, (np.abs(qx) @ np.abs(qw)) * s * t + np.abs(x), lost)
    assert "one call with the next" in m.plan, m.plan


CONVOLUTIONS = [dict(channels=32, filters=48, size=(2, 13, 11), taps=3, stride=1, pads=1, group=1),
                dict(channels=16, filters=16, size=(1, 9, 14), taps=3, stride=2, pads=1, group=4),
                dict(channels=3, filters=32, size=(2, 16, 16), taps=7, stride=2, pads=3, group=1),
                dict(channels=64, filters=64, size=(1, 7, 7), taps=1, stride=1, pads=0, group=1)]


@pytest.mark.parametrize("how", card.some(CONVOLUTIONS), ids=lambda h: f"{h['channels']}x{h['taps']}g{h['group']}")
@pytest.mark.parametrize("kind", card.some(["FLOAT8E4M3FN", "FLOAT8E5M2"]))
def test_convolutions(how, kind):
    rng = np.random.default_rng([how["channels"], how["taps"]])
    n, h, w = how["size"]
    x = rng.standard_normal((n, how["channels"], h, w)).astype(np.float32)
    f = rng.standard_normal((how["filters"], how["channels"] // how["group"], how["taps"], how["taps"])).astype(np.float32)
    s, t = np.float32(0.02), (rng.random(how["filters"]).astype(np.float32) + 0.5) * np.float32(0.02)
    m = Model(x)
    y = m.node("Conv", [m.rounded("x", s, kind), m.rounded(m.constant("f", f), t, kind, axis=0)], group=how["group"],
               strides=[how["stride"]] * 2, pads=[how["pads"]] * 4)
    got = m.run(m.node("Relu", [y]))
    qx, qf = quantized(x, s, kind) * s, quantized(f, t[:, None, None, None], kind) * t[:, None, None, None]
    want, magnitude = (convolved(a, b, how) for a, b in ((qx, qf), (np.abs(qx), np.abs(qf))))
    near(got, np.maximum(want, 0), magnitude, HOPPER)
    assert "-> fp8" in m.plan


def convolved(x, f, how):
    p, s, k = how["pads"], how["stride"], how["taps"]
    x = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(2, 3))[:, :, ::s, ::s]
    each = how["channels"] // how["group"]
    parts = [np.einsum("nchwij,ocij->nohw", windows[:, g * each:(g + 1) * each], part)
             for g, part in enumerate(np.split(f, how["group"]))]
    return np.concatenate(parts, axis=1)
