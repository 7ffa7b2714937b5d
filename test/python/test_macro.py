# SPDX-License-Identifier: MIT
"""Macros against numpy."""
import copy
import math
import pickle

import migraphx
import numpy as np
import pytest

RNG = np.random.default_rng(5)


def arrays(*shapes):
    return [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]


def run(macro, *inputs, target="ref"):
    """The results of one macro over parameters of the inputs' shapes."""
    p = migraphx.program()
    m = p.get_main_module()
    args = [m.add_parameter(f"x{i}", migraphx.argument(x).get_shape()) for i, x in enumerate(inputs)]
    m.add_return(m.add_macro(macro, args))
    p.compile(target)
    results = [np.asarray(r) for r in p.run({f"x{i}": x for i, x in enumerate(inputs)})]
    return results[0] if len(results) == 1 else results


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_names_and_options():
    macro = migraphx.macro("gemm", alpha=2.0, transB=True)
    assert macro.name() == "gemm" and macro.options() == {"alpha": 2.0, "transB": True}
    assert repr(macro) == "macro('gemm', **{'alpha': 2.0, 'transB': True})"
    for again in (pickle.loads(pickle.dumps(macro)), copy.deepcopy(macro)):
        assert again.name() == "gemm" and again.options() == macro.options()
    assert migraphx.has_op_builder("einsum") and not migraphx.has_op_builder("relu")
    assert migraphx.get_macros() == sorted(migraphx.get_macros()) and "batchnorm" in migraphx.get_macros()
    with pytest.raises(RuntimeError, match="no macro and no operator is named gemmm"):
        migraphx.macro("gemmm")
    with pytest.raises(RuntimeError, match="No key 'gamma' in gemm"):
        migraphx.macro("gemm", gamma=1)


@pytest.mark.parametrize("options", [{}, {"alpha": 0.5}, {"transA": True}, {"alpha": 2.0, "beta": -1.5, "transA": 1, "transB": True}])
@pytest.mark.parametrize("bias", [None, (5,), (4, 1), (4, 5)])
def test_gemm(options, bias):
    a, b = arrays((3, 4) if options.get("transA") else (4, 3), (5, 3) if options.get("transB") else (3, 5))
    want = options.get("alpha", 1) * (a.T if options.get("transA") else a) @ (b.T if options.get("transB") else b)
    inputs = [a, b]
    if bias:
        inputs += arrays(bias)
        want = want + options.get("beta", 1) * inputs[2]
    for target in ("ref", "cpu"):
        close(run(migraphx.macro("gemm", **options), *inputs, target=target), want)


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.1}])
def test_batchnorm(options):
    x, scale, bias, mean = arrays((2, 3, 4, 4), (3,), (3,), (3,))
    var = np.abs(arrays((3,))[0]) + 1
    by = lambda v: v.reshape(1, 3, 1, 1)
    want = (x - by(mean)) / np.sqrt(by(var) + options.get("epsilon", 1e-5)) * by(scale) + by(bias)
    close(run(migraphx.macro("batchnorm", **options), x, scale, bias, mean, var), want)


def convolve(x, w, pads, stride=1):
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    h, v = (x.shape[2] - w.shape[2]) // stride + 1, (x.shape[3] - w.shape[3]) // stride + 1
    out = np.zeros((x.shape[0], w.shape[0], h, v), x.dtype)
    for i in range(h):
        for j in range(v):
            at = x[:, :, i * stride:i * stride + w.shape[2], j * stride:j * stride + w.shape[3]]
            out[:, :, i, j] = np.einsum("nchw,kchw->nk", at, w)
    return out


@pytest.mark.parametrize("options, pads, stride", [
    ({}, (0, 0, 0, 0), 1), ({"paddings": [1, 2]}, (1, 2, 1, 2), 1), ({"paddings": [1, 0, 2, 1]}, (1, 0, 2, 1), 1),
    ({"strides": [2, 2], "group": 1, "dilations": [1, 1]}, (0, 0, 0, 0), 2), ({"auto_pad": "SAME_UPPER"}, (1, 1, 1, 1), 1),
    ({"padding_mode": 2}, (1, 1, 1, 1), 1),
])
def test_convolution(options, pads, stride):
    x, w, bias = arrays((2, 3, 7, 6), (4, 3, 3, 3), (4,))
    want = convolve(x, w, pads, stride)
    close(run(migraphx.macro("convolution", **options), x, w), want)
    close(run(migraphx.macro("convolution", **options), x, w, bias), want + bias.reshape(1, 4, 1, 1))


def test_quantised_products():
    a, b = RNG.integers(-100, 100, (2, 3, 4)).astype(np.int8), RNG.integers(-100, 100, (4, 5)).astype(np.int8)
    result = run(migraphx.macro("quant_dot"), a, b)
    assert result.dtype == np.int32 and np.array_equal(result, a.astype(np.int32) @ b)
    x, w = RNG.integers(-9, 9, (1, 2, 5, 5)).astype(np.int8), RNG.integers(-9, 9, (3, 2, 3, 3)).astype(np.int8)
    assert np.array_equal(run(migraphx.macro("quant_convolution", paddings=[1, 1]), x, w),
                          convolve(x.astype(np.int32), w.astype(np.int32), (1, 1, 1, 1)))


@pytest.mark.parametrize("equation, shapes", [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("ii->i", [(3, 3)]), ("ij->ji", [(2, 3)]), ("i,j->ij", [(2,), (3,)]),
    ("...ij,...jk->...ik", [(5, 2, 3), (5, 3, 4)]), ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]), ("ijk->", [(2, 3, 4)]),
    ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 5)]), ("ij,ij->i", [(2, 3), (2, 3)]), ("ijk,ilm,njm,nlk,abc->", [(2, 2, 2)] * 5),
])
def test_einsum(equation, shapes):
    inputs = arrays(*shapes)
    close(run(migraphx.macro("einsum", equation=equation), *inputs), np.einsum(equation, *inputs))


def gelu_erf(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


def gelu_tanh(x):
    return x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def test_activations():
    x, = arrays((3, 8))
    close(run(migraphx.macro("gelu_erf"), x), gelu_erf(x))
    close(run(migraphx.macro("gelu_tanh"), x), gelu_tanh(x))
    close(run(migraphx.macro("gelu_tanh", fast=True), x), gelu_tanh(x))
    close(run(migraphx.macro("gelu_quick", alpha=1.5), x), x / (1 + np.exp(-1.5 * x)))
    close(run(migraphx.macro("gelu_split"), x), x[:, :4] * gelu_erf(x[:, 4:]))
    close(run(migraphx.macro("celu", alpha=0.5), x), np.maximum(x, 0) + np.minimum(0, 0.5 * (np.exp(x / 0.5) - 1)))
    close(run(migraphx.macro("clip"), x, np.float32(-0.5), np.float32(0.5)), np.clip(x, -0.5, 0.5))


@pytest.mark.parametrize("name, function", [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide),
                                            ("sqdiff", lambda a, b: (a - b)**2), ("pow", np.power),
                                            ("prelu", lambda a, b: np.where(a < 0, a * b, a))])
def test_broadcasting_arithmetic(name, function):
    a, b = (np.abs(x) + 0.5 for x in arrays((2, 3, 4), (3,)))
    close(run(migraphx.macro(name, broadcasted_axis=1), a, b), function(a, b.reshape(3, 1)))
    close(run(migraphx.macro(name), a, b.reshape(3, 1)), function(a, b.reshape(3, 1)))


def test_broadcasting_logic():
    a, b = RNG.integers(0, 2, (2, 3)).astype(bool), RNG.integers(0, 2, (3,)).astype(bool)
    for name in ("and", "or", "xor"):
        assert np.array_equal(run(migraphx.macro("logical_" + name), a, b).astype(bool), getattr(np, "logical_" + name)(a, b))
    x, y = RNG.integers(0, 99, (2, 3)), RNG.integers(0, 99, (2,))
    assert np.array_equal(run(migraphx.macro("bitwise_and", broadcasted_axis=0), x, y), x & y.reshape(2, 1))


def test_quantising():
    x, scale, zero = arrays((2, 4))[0], np.float32([0.1, 0.2, 0.05, 1]), np.int8([1, 0, -3, 2])
    want = np.clip(np.rint(x / scale) + zero, -128, 127).astype(np.int8)
    result = run(migraphx.macro("quantizelinear", axis=1), x, scale, zero)
    assert result.dtype == np.int8 and np.array_equal(result, want)
    assert run(migraphx.macro("quantizelinear", output_type="int8_type"), x, scale).dtype == np.int8
    close(run(migraphx.macro("dequantizelinear", axis=1), want, scale, zero), (want.astype(np.float32) - zero) * scale)
    blocks = run(migraphx.macro("dequantizelinear", axis=1, block_size=2), want, np.float32([[1, 2], [3, 4]]))
    close(blocks, want * np.repeat(np.float32([[1, 2], [3, 4]]), 2, axis=1))
    u = RNG.integers(0, 256, (2, 3)).astype(np.uint8)
    assert np.array_equal(run(migraphx.macro("bias_uint8"), u), (u.astype(int) - 128).astype(np.int8))
    both = run(migraphx.macro("bias_uint8", has_bias=True), u, u[0])
    assert [r.dtype for r in both] == [np.int8] * 2 and np.array_equal(both[1], u[0].astype(int) - 128)


def test_others():
    x, = arrays((2, 3, 4, 5))
    mean, deviation = x.mean((0, 2, 3), keepdims=True), x.std((0, 2, 3), keepdims=True)
    close(run(migraphx.macro("mean_variance_normalization"), x), (x - mean) / deviation)
    close(run(migraphx.macro("tile", repeats=[1, 2, 1, 3]), x), np.tile(x, (1, 2, 1, 3)))
    a, b = arrays((7, 1, 2, 3), (4, 3, 5))
    close(run(migraphx.macro("dot"), a, b), a @ b)
    turned, cos, sin = arrays((1, 2, 3, 4))[0], *arrays((1, 3, 2), (1, 3, 2))
    result = run(migraphx.macro("rotary_embedding"), turned, cos, sin)
    left, right = turned[..., :2], turned[..., 2:]
    c, s = cos[:, None], sin[:, None]
    close(result, np.concatenate([left * c - right * s, left * s + right * c], -1))


def test_a_plain_operator():
    x, = arrays((2, 3))
    close(run(migraphx.macro("reduce_sum", axes=[1]), x), x.sum(1, keepdims=True))
    assert migraphx.macro("concat", axis=1).options() == {"axis": 1}


def test_inserting():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[2, 3]))
    w = m.add_literal(np.ones((3, 2), np.float32))
    end = m.add_instruction(migraphx.op("identity"), [x])
    made = m.insert_macro(end, migraphx.macro("gemm", alpha=2.0), [x, w])
    assert isinstance(made, list) and len(made) == 1 and made[0].shape().lens() == [2, 2]
    names = [i.name() for i in m]
    assert names.index("dot") < names.index("identity") and names[-1] == "identity"
    m.add_return([made[0], end])
    p.compile("ref")
    data = np.float32([[1, 2, 3], [4, 5, 6]])
    assert p.run({"x": data})[0].tolist() == [12, 12, 30, 30]


def test_failures_leave_the_module_as_it_was():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[2, 3]))
    y = m.add_parameter("y", migraphx.shape(type="float", lens=[2, 5]))
    before = str(p)
    for macro, args, text in ((migraphx.macro("gemm", alpha=3.0, transA=True), [x], "takes|inputs|gemm"),
                              (migraphx.macro("gemm", alpha=3.0), [x, y], "Dimensions do not match"),
                              (migraphx.macro("einsum", equation="ij,kl,m"), [x, y], "does not have 2 terms"),
                              (migraphx.macro("add"), [x, y], "do not broadcast"),
                              (migraphx.macro("gelu_split"), [x], "no two halves"),
                              (migraphx.macro("relu"), [x, y], "relu")):
        with pytest.raises(RuntimeError, match=text):
            m.add_macro(macro, args)
        assert str(p) == before
    with pytest.raises(RuntimeError, match="another program"):
        migraphx.program().get_main_module().add_macro(migraphx.macro("relu"), [x])
    p.compile("ref")
    with pytest.raises(RuntimeError):
        p.get_main_module().add_macro(migraphx.macro("relu"), [])
