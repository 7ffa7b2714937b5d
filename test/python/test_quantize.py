# SPDX-License-Identifier: MIT
"""quantize_int8, quantize_fp8, quantize and int4 weights, against numpy."""
import migraphx
import numpy as np
import pytest

W = np.random.default_rng(1).standard_normal((16, 5)).astype(np.float32)
X = [np.random.default_rng(i).standard_normal((4, 16)).astype(np.float32) for i in range(3)]


def build():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[4, 16]))
    m.add_return([m.add_instruction(migraphx.op("dot"), [x, m.add_literal(W)])])
    return p


def run(p, x, target="cpu"):
    p.compile(migraphx.get_target(target))
    return np.array(p.run({"x": x})[0])


def rounded(x, scale):
    return np.clip(np.rint(x / np.float32(scale)), -128, 127) * np.float32(scale)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_int8(target):
    p = build()
    migraphx.quantize_int8(p, migraphx.get_target(target), [{"x": x} for x in X])
    assert "int8_type" in str(p)
    scale = max(np.abs(x).max() for x in X) / 127
    want = rounded(X[0], scale) @ rounded(W, np.abs(W).max(0) / 127)
    np.testing.assert_allclose(run(p, X[0], target), want, atol=1e-4)


def test_names_and_no_data():
    p = build()
    migraphx.quantize_int8(p, migraphx.get_target("ref"), ins_names={"convolution"})
    assert "int8_type" not in str(p)
    with pytest.raises(RuntimeError, match="only support DOT and CONVOLUTION"):
        migraphx.quantize_int8(p, migraphx.get_target("ref"), [], ["add"])
    migraphx.quantize_int8(p, migraphx.get_target("ref"))
    want = rounded(X[0], 1 / 64) @ rounded(W, np.abs(W).max(0) / 127)
    np.testing.assert_allclose(run(p, X[0]), want, atol=1e-4)
    with pytest.raises(RuntimeError, match="compiled already"):
        migraphx.quantize_int8(p, migraphx.get_target("ref"))


def test_fp8():
    p = build()
    migraphx.quantize_fp8(p, migraphx.get_target("cpu"), [{"x": x} for x in X])
    assert "fp8e4m3fn_type" in str(p)
    want = X[0] @ W
    assert 0 < np.linalg.norm(run(p, X[0]) - want) < 0.1 * np.linalg.norm(want)


@pytest.mark.parametrize("options", [{}, {"asymmetric": True}, {"method": "entropy"}, {"method": "error", "smooth": True},
                                     {"method": "percentile", "percentile": 99.0}, {"correct_bias": True},
                                     {"type": "fp8e5m2"}, {"per_tensor": True}])
def test_choices(options):
    p, q = build(), build()
    text = migraphx.quantize(p, migraphx.get_target("cpu"), [{"x": x} for x in X], **options)
    assert text.startswith("migraphx quantization 1\n") and migraphx.quantization(p) == text
    assert migraphx.quantize(q, migraphx.get_target("cpu"), ranges=text,
                             **{k: v for k, v in options.items() if k == "correct_bias"}) == text
    want, got = X[0] @ W, run(p, X[0])
    assert 0 < np.linalg.norm(got - want) < 0.2 * np.linalg.norm(want)
    np.testing.assert_array_equal(run(q, X[0]), got)


def test_budget():
    p = build()
    text = migraphx.quantize(p, migraphx.get_target("cpu"), [{"x": x} for x in X], budget=0)
    assert "float_type" in text and "why" in text and "quantizelinear" not in str(p)
    with pytest.raises(RuntimeError, match="there are none"):
        migraphx.quantize(build(), migraphx.get_target("cpu"), budget=0.1)


@pytest.mark.parametrize("arguments, message", [({"type": "int32"}, "not quantized to int32_type"), ({"method": "median"}, "median"),
                                                ({"percentile": 101}, "101"), ({"metric": "angle"}, "angle"),
                                                ({"ranges": "x"}, "does not start with"), ({"ins_names": ["add"]}, "DOT and CONVOLUTION")])
def test_refused(arguments, message):
    with pytest.raises(RuntimeError, match=message):
        migraphx.quantize(build(), migraphx.get_target("ref"), [{"x": X[0]}], **arguments)


def test_no_ranges_kept():
    with pytest.raises(RuntimeError, match="does not say how it was quantized"):
        migraphx.quantization(build())


@pytest.mark.parametrize("symmetric", [False, True])
def test_int4_weights(symmetric):
    p = build()
    migraphx.quantize_int4_weights(p, 8, symmetric)
    blocks = W.reshape(2, 8, 5)
    low, high = np.minimum(blocks.min(1, keepdims=True), 0), np.maximum(blocks.max(1, keepdims=True), 0)
    if symmetric:
        scale = np.maximum(-low, high) / np.float32(7)
        w = np.clip(np.rint(blocks / scale), -7, 7) * scale
    else:
        scale = (high - low) / np.float32(15)
        zero = np.rint(-low / scale)
        w = (np.clip(np.rint(blocks / scale) + zero, 0, 15) - zero) * scale
    np.testing.assert_allclose(run(p, X[0]), X[0] @ w.reshape(16, 5), atol=1e-4)


@pytest.mark.parametrize("quantize", [migraphx.quantize_fp16, migraphx.quantize_bf16])
@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_boxes_keep_their_digits(quantize, target):
    """Boxes of several classes are pushed aside by class before one suppression looks at all of them: to 27,000, where half counts
    by 16 and bf16 by 128, and what is suppressed would be chance. The boxes themselves come from a product."""
    rng = np.random.default_rng(2)
    corner = rng.integers(0, 60, (80, 2))
    quarters = np.concatenate([corner, corner + rng.integers(5, 12, (80, 2))], 1)
    feed = {"x": quarters.astype(np.float32), "class": rng.integers(0, 90, 80).astype(np.float32)}
    feed["class"][40:] = feed["class"][:40]  # boxes of a class in pairs, some of which overlap
    feed["x"][40:] = feed["x"][:40] + rng.integers(0, 4, (40, 1))
    scores = rng.permutation(80).astype(np.float32).reshape(1, 1, 80) / 128

    def program():
        p = migraphx.program()
        m = p.get_main_module()
        x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[80, 4]))
        c = m.add_parameter("class", migraphx.shape(type="float_type", lens=[80]))
        boxes = m.add_instruction(migraphx.op("dot"), [x, m.add_literal(np.eye(4, dtype=np.float32) * 4)])
        most = m.add_instruction(migraphx.op("reduce_max", axes=[0, 1]), [boxes])
        most = m.add_instruction(migraphx.op("reshape", dims=[1]), [most])
        most = m.add_instruction(migraphx.op("multibroadcast", out_lens=[80]), [most])
        aside = m.add_instruction(migraphx.op("mul"), [c, most])
        aside = m.add_instruction(migraphx.op("broadcast", axis=0, out_lens=[80, 4]), [aside])
        boxes = m.add_instruction(migraphx.op("unsqueeze", axes=[0]), [m.add_instruction(migraphx.op("add"), [boxes, aside])])
        limits = [m.add_literal(np.array([v], t)) for v, t in ((80, np.int64), (0.5, np.float32), (0.0, np.float32))]
        m.add_return([m.add_instruction(migraphx.op("nonmaxsuppression", use_dyn_output=True), [boxes, m.add_literal(scores), *limits])])
        return p

    def kept(p):
        p.compile(migraphx.get_target(target))
        return np.array(p.run(feed)[0])

    narrow = program()
    quantize(narrow)
    want = kept(program())
    assert 40 < len(want) < 80
    assert np.array_equal(kept(narrow), want)


def floored(kind):
    """x divided by its rows' norms, which 1e-12 keeps from zero in three ways."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[3, 4]))

    def op(name, *inputs, **attributes):
        return m.add_instruction(migraphx.op(name, **attributes), list(inputs))

    def over(value):
        return op("multibroadcast", m.add_literal(np.array([value], np.float32)), out_lens=[3, 1])
    norm = op("reduce_sum", op("mul", x, x), axes=[1])
    if kind == "add":
        norm = op("sqrt", op("add", norm, over(1e-12)))
    else:
        norm = op("sqrt", norm)
        norm = op("max", norm, over(1e-12)) if kind == "max" else op("clip", norm, over(1e-12), over(100.0))
    m.add_return([op("div", x, op("multibroadcast", norm, out_lens=[3, 4]))])
    return p


@pytest.mark.parametrize("kind", ["max", "add", "clip"])
@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_what_keeps_norms_from_zero_is_not_zero_in_half(kind, target):
    p = floored(kind)
    migraphx.quantize_fp16(p)
    x = np.array([[1, 2, 3, 4], [0, 0, 0, 0], [-1, 0.5, 0, 2]], np.float32)
    p.compile(migraphx.get_target(target))
    want = x / np.maximum(np.sqrt((x * x).sum(1, keepdims=True)), 1e-12)
    np.testing.assert_allclose(np.array(p.run({"x": x})[0]), want, atol=2e-3)
