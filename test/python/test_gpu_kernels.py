# SPDX-License-Identifier: MIT
"""Kernels of a card that are no networks' everyday ones, at random shapes, types and strides, against the reference target; the card is MIGRAPHX_GPU_DEVICE or whatever OpenCL has."""
import os

from card import needs_card  # first: it says which card
import migraphx
import numpy as np
import pytest

pytestmark = needs_card
TYPES = {"float_type": 2, "half_type": 1, "bf16_type": 15, "double_type": 3, "int32_type": 8, "int64_type": 9, "int8_type": 5, "uint8_type": 4}
ERROR = {"half_type": 4e-3, "bf16_type": 3e-2, "float_type": 2e-5, "double_type": 1e-6}
ROUNDS = int(os.environ.get("MGX_TEST_ROUNDS", "1"))  # of each test, with other shapes


def program(target, op, attributes, inputs, member):
    """op of parameters; every input comes as float or int64, is given its type, and lies as a transpose leaves it."""
    p = migraphx.program()
    m = p.get_main_module()
    args = []
    for i, (value, kind, permutation) in enumerate(inputs):
        whole = "int64_type" if np.issubdtype(value.dtype, np.integer) else "float_type"
        lens = [value.shape[k] for k in permutation]
        x = m.add_parameter(f"x{i}", migraphx.shape(type=whole, lens=lens))
        if kind != whole:
            x = m.add_instruction(migraphx.op("convert", target_type=TYPES[kind]), [x])
        if permutation != list(range(value.ndim)):
            x = m.add_instruction(migraphx.op("transpose", permutation=[int(k) for k in np.argsort(permutation)]), [x])
        args.append(x)
    y = m.add_instruction(migraphx.op(op, **attributes), args)
    if member is not None:
        y = m.add_instruction(migraphx.op("get_tuple_elem", index=member), [y])
    m.add_return([m.add_instruction(migraphx.op("convert", target_type=TYPES["float_type"]), [y])])
    p.compile(target)
    return p


def compare(rng, op, attributes, values, kinds, member=None):
    inputs = [(v, k, [int(a) for a in (rng.permutation(v.ndim) if rng.integers(2) else range(v.ndim))]) for v, k in zip(values, kinds, strict=True)]
    feed = {f"x{i}": np.ascontiguousarray(v.transpose(p)) for i, (v, _, p) in enumerate(inputs)}
    card = program("gpu", op, attributes, inputs, member)
    kernels = [line.split("\t")[1:3] for line in card.plan().splitlines()]
    assert not [k for k in kernels if k[1] == "ref"], kernels
    got, expected = (np.asarray(p.run(feed)[0]) for p in (card, program("ref", op, attributes, inputs, member)))
    bound = max(ERROR.get(k, 0) for k in kinds) * max(1, np.abs(expected[np.isfinite(expected)]).max(initial=0))
    assert got.shape == expected.shape
    assert np.allclose(got, expected, rtol=0, atol=bound, equal_nan=True), (op, attributes, np.nanmax(np.abs(got - expected)), bound)


def lens(rng, rank, most=7):
    return [int(n) for n in rng.integers(1, most, rank)]


def normal(rng, shape):
    return rng.standard_normal(shape).astype(np.float32)


def choose(rng, *options):
    return options[rng.integers(len(options))]


def floats(rng):
    return choose(rng, "float_type", "half_type", "bf16_type")


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_grid_sample(mode, seed):
    rng = np.random.default_rng([seed, 1])
    spatial = int(rng.integers(1, 4)) if mode != "cubic" else 2
    n, c = lens(rng, 2, 12)
    x, grid = normal(rng, [n, c, *lens(rng, spatial, 9)]), normal(rng, [n, *lens(rng, spatial, 6), spatial])
    grid.flat[0] = rng.choice([np.nan, np.inf, 1, -1, 0])
    attributes = {"mode": mode, "padding_mode": choose(rng, "zeros", "border", "reflection"), "align_corners": bool(rng.integers(2))}
    compare(rng, "grid_sample", attributes, [x, grid], [floats(rng), "float_type"])


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize(mode, seed):
    """Antialiasing, crops, places outside, by sizes and by scales."""
    rng = np.random.default_rng([seed, 2])
    shape = lens(rng, 4, 12)
    place = choose(rng, "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize")
    attributes = {"mode": mode, "coordinate_transformation_mode": place, "nearest_mode": choose(rng, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
                  "antialias": bool(mode != "nearest" and rng.integers(2)), "exclude_outside": bool(rng.integers(2)), "extrapolation_value": float(rng.integers(-5, 5))}
    if place == "tf_crop_and_resize":
        attributes |= {"roi": [0, 0, *rng.uniform(-0.4, 0.4, 2), 1, 1, *rng.uniform(0.6, 1.3, 2)], "exclude_outside": False}
    if rng.integers(2):
        attributes["sizes"] = [*shape[:2], *lens(rng, 2, 20)]
    else:
        attributes["scales"] = [1.0, 1.0, *(float(rng.choice([0.3, 0.5, 0.7, 1, 1.5, 2, 3.1])) + 1 / n for n in shape[2:])]
    compare(rng, "resize", attributes, [normal(rng, shape)], [floats(rng)])


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("kind", ["int8", "half", "float", "double"])
def test_rows_in_another_order(kind, seed):
    """What lies together stays together, as a pixel's channels do that are shuffled: rows of any number of bytes."""
    rng = np.random.default_rng([seed, 32, len(kind)])
    for inner, order in ((choose(rng, (2, 61), (3, 7), (4, 4), (2, 122)), (0, 2, 1)), (choose(rng, (2, 3, 5), (3, 4, 6)), choose(rng, (0, 3, 1, 2), (0, 2, 3, 1), (0, 3, 2, 1)))):
        lens = [int(rng.integers(400, 900)), *inner]
        x = rng.integers(-100, 100, lens).astype(np.dtype({"half": "float16", "float": "float32", "double": "float64"}.get(kind, kind)))
        p = migraphx.program()
        m = p.get_main_module()
        y = m.add_instruction(migraphx.op("transpose", permutation=list(order)), [m.add_parameter("x", migraphx.shape(type=kind + "_type", lens=lens))])
        m.add_return([m.add_instruction(migraphx.op("contiguous"), [y])])
        p.compile("gpu")
        assert "rows through shared memory" in p.explain()
        assert np.array_equal(np.asarray(p.run({"x": x})[0]), x.transpose(order))


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("kind", ["int8", "half", "float", "double"])
def test_one_element_again_and_again(kind, seed):
    """As statistics of a group that each of its channels reads."""
    rng = np.random.default_rng([seed, 33, len(kind)])
    groups, each = int(rng.integers(5000, 9000)), choose(rng, 7, 16, 48, 64)
    x = rng.integers(-100, 100, [groups, 1]).astype(np.dtype({"half": "float16", "float": "float32", "double": "float64"}.get(kind, kind)))
    p = migraphx.program()
    m = p.get_main_module()
    y = m.add_instruction(migraphx.op("multibroadcast", out_lens=[groups, each]), [m.add_parameter("x", migraphx.shape(type=kind + "_type", lens=[groups, 1]))])
    m.add_return([m.add_instruction(migraphx.op("reshape", dims=[groups * each]), [y])])
    p.compile("gpu")
    for _ in range(3):
        assert np.array_equal(np.asarray(p.run({"x": x})[0]), np.repeat(x[:, 0], each)), p.explain()


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("op", ["softmax", "reduce_sum", "reduce_max"])
def test_long_lanes_side_by_side(op, seed):
    """As of tokens: few lanes, that neighbours in memory belong to, each of up to some thousand values."""
    rng = np.random.default_rng([seed, 31])
    length, kind = choose(rng, 127, 197, 785, 2100, 3137), floats(rng)
    shape = [int(rng.integers(1, 3)), length, choose(rng, 9, 32, 40, 152)]
    x = np.ascontiguousarray(normal(rng, shape) * (1 if op == "softmax" else 0.1))
    p = [program(target, op, {"axis": 1} if op == "softmax" else {"axes": [1]}, [(x, kind, [0, 1, 2])], None) for target in ("gpu", "ref")]
    assert "lanes side by side" in p[0].explain()
    got, expected = (np.asarray(q.run({"x0": x})[0]) for q in p)
    assert np.allclose(got, expected, rtol=0, atol=ERROR[kind] * max(1, np.abs(expected).max())), np.abs(got - expected).max()


@pytest.mark.parametrize("seed", range(2 * ROUNDS))
def test_topk(seed):
    """Equal values, signed zeros, infinities and NaN among them; lines from one to some hundred."""
    rng = np.random.default_rng([seed, 3])
    shape = lens(rng, 3, 6)
    axis = int(rng.integers(3))
    shape[axis] = int(rng.choice([1, 2, 5, 33, 300]))
    kind = choose(rng, "float_type", "half_type", "bf16_type", "int32_type", "int64_type", "uint8_type")
    x = rng.integers(0 if kind == "uint8_type" else -9, 9, shape).astype(np.float32 if kind in ERROR else np.int64)
    if kind in ERROR:
        x[rng.random(shape) < 0.2] = rng.choice([np.nan, np.inf, -np.inf, -0.0])
    attributes = {"k": int(rng.integers(1, shape[axis] + 1)), "axis": axis, "largest": bool(rng.integers(2))}
    for member in (0, 1):
        compare(rng, "topk", attributes, [x], [kind], member)


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("delta", [False, True])
def test_linear_attention(delta, seed):
    rng = np.random.default_rng([seed, 4])
    b, h, share, t, dk, dv = (int(rng.integers(1, n)) for n in (3, 4, 3, 9, 20, 80))
    q, k, v = (normal(rng, s) / 3 for s in ([b, h * share, t, dk], [b, h, t, dk], [b, h, t, dv]))
    state, decay = normal(rng, [b, h, dk, dv]), -np.abs(normal(rng, [b, h, t, int(rng.choice([1, dk]))]))
    beta = rng.random([b, int(rng.choice([1, h])), t, 1]).astype(np.float32)
    values = [q, k, v, state, decay, beta][:6 if delta else int(rng.integers(3, 6))]
    kind = floats(rng)
    for member in (0, 1):
        compare(rng, "linear_attention", {"scale": 0.7, "delta": delta}, values, [kind] * len(values), member)


@pytest.mark.parametrize("seed", range(2 * ROUNDS))
def test_dft(seed):
    rng = np.random.default_rng([seed, 5])
    shape = [*lens(rng, 2, 5), int(rng.choice([1, 2, 7, 16, 60])), 0]
    shape = [shape[i] for i in [*rng.permutation(3), 3]]
    axis = int(np.argmax(shape[:3]))
    inverse, onesided = bool(rng.integers(2)), bool(rng.integers(2))
    shape[3] = 2 if inverse and onesided else 1 if onesided else int(rng.integers(1, 3))
    if inverse and onesided:
        shape[axis] = max(shape[axis], 2)
    compare(rng, "dft", {"axis": axis, "inverse": inverse, "onesided": onesided}, [normal(rng, shape)], [floats(rng)])


@pytest.mark.parametrize("seed", range(2 * ROUNDS))
def test_products_of_doubles_and_integers(seed):
    rng = np.random.default_rng([seed, 6])
    batch, (m, k, n) = lens(rng, int(rng.integers(3)), 4), rng.integers(1, 70, 3)
    op = choose(rng, "dot", "quant_dot")
    kind = choose(rng, "double_type", "int32_type", "int64_type") if op == "dot" else "int8_type"
    a, b = ((normal(rng, s) if kind == "double_type" else rng.integers(-128, 128, s)) for s in ([*batch, m, k], [*batch, k, n]))
    compare(rng, op, {}, [a, b], [kind] * 2)


@pytest.mark.parametrize("seed", range(2 * ROUNDS))
def test_quantizing_to_narrow_types(seed):
    """There and back: fp8, fp4 and integers of four bits and two."""
    rng = np.random.default_rng([seed, 7])
    shape = lens(rng, 3)
    x, scale = normal(rng, shape) * 20, rng.uniform(0.2, 3, shape).astype(np.float32)
    kind = floats(rng)
    narrow = int(rng.choice([5, 4, 7, 6, 13, 14, 19, 20, 21, 22, 23]))
    compare(rng, "quantizelinear", {"out_type": narrow}, [x, scale], [kind, kind])


@pytest.mark.parametrize("columns", [1, 2])
def test_few_channels_by_themselves(columns):
    """Of an image as the caller has it, channel behind channel."""
    rng = np.random.default_rng([columns, 34])
    x, w = (rng.integers(-9, 10, s).astype(np.float32) for s in ([2, 4, 6, 6], [4 * columns, 1, 3, 3]))
    p = migraphx.program()
    m = p.get_main_module()
    y = m.add_instruction(migraphx.op("convolution", padding=[0, 0], stride=[1, 1], dilation=[1, 1], group=4), [m.add_parameter("x", migraphx.shape(type="float_type", lens=list(x.shape))), m.add_literal(w)])
    m.add_return([m.add_instruction(migraphx.op("relu"), [y])])
    p.compile("gpu")
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    want = np.maximum(np.einsum("nchwij,cij->nchw", windows.repeat(columns, 1), w[:, 0]), 0)
    for _ in range(3):
        assert np.array_equal(np.asarray(p.run({"x": x})[0]), want), p.explain()
