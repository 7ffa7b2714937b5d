# SPDX-License-Identifier: MIT
"""Models with free sizes at random sizes, against ONNX Runtime: sizes that come once, that come again, and that have a plan of their own."""
import os
import re
import sys
import threading

import migraphx
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def weights(rng, **shapes):
    return [numpy_helper.from_array((rng.standard_normal(s) / np.sqrt(np.prod(s[1:]) or 1)).astype(np.float32), k) for k, s in shapes.items()]


def ints(**values):
    return [numpy_helper.from_array(np.int64(v), k) for k, v in values.items()]


def model(nodes, inputs, outputs, initial):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value(*i) for i in inputs], [value(*o) for o in outputs], initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def image():
    """Convolutions, plain and depthwise, a residual, and a product behind a pooling: batch, height and width are free."""
    rng, n = np.random.default_rng(1), helper.make_node
    nodes = [n("Conv", ["x", "w1", "b1"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]), n("Relu", ["a"], ["a1"]),
             n("Conv", ["a1", "w2"], ["b"]), n("Clip", ["b", "zero", "six"], ["bb"]),
             n("Conv", ["bb", "w3"], ["c"], group=48, pads=[1, 1, 1, 1]), n("Clip", ["c", "zero", "six"], ["c1"]),
             n("Conv", ["c1", "w4"], ["d"]), n("Add", ["d", "a1"], ["e"]), n("Conv", ["e", "w5"], ["f"], pads=[1, 1, 1, 1]),
             n("GlobalAveragePool", ["f"], ["p"]), n("Flatten", ["p"], ["q"]), n("Gemm", ["q", "w6"], ["y"], transB=1)]
    initial = weights(rng, w1=(16, 3, 3, 3), b1=(16,), w2=(48, 16, 1, 1), w3=(48, 1, 3, 3), w4=(16, 48, 1, 1), w5=(64, 16, 3, 3), w6=(10, 64))
    initial += [numpy_helper.from_array(np.float32(0), "zero"), numpy_helper.from_array(np.float32(6), "six")]
    made = model(nodes, [("x", FLOAT, ["N", 3, "H", "W"])], [("y", FLOAT, None)], initial)
    return made, lambda r: {"x": r.standard_normal((r.integers(1, 4), 3, r.integers(8, 40), r.integers(8, 40))).astype(np.float32)}


def attention():
    """A table, heads split off by the sizes of the input, a softmax, a normalisation: batch and tokens are free."""
    rng, n = np.random.default_rng(2), helper.make_node
    nodes = [n("Gather", ["table", "ids"], ["x"]), n("Shape", ["ids"], ["s"]), n("Concat", ["s", "heads"], ["split"], axis=0),
             n("Concat", ["s", "width"], ["whole"], axis=0)]
    for k in "qkv":
        nodes += [n("MatMul", ["x", "w" + k], [k]), n("Add", [k, "b" + k], [k + "1"]), n("Reshape", [k + "1", "split"], [k + "2"]),
                  n("Transpose", [k + "2"], [k + "3"], perm=[0, 2, 3, 1] if k == "k" else [0, 2, 1, 3])]
    nodes += [n("MatMul", ["q3", "k3"], ["scores"]), n("Mul", ["scores", "scale"], ["scaled"]), n("Softmax", ["scaled"], ["p"], axis=-1),
              n("MatMul", ["p", "v3"], ["o"]), n("Transpose", ["o"], ["o1"], perm=[0, 2, 1, 3]), n("Reshape", ["o1", "whole"], ["o2"]),
              n("MatMul", ["o2", "wo"], ["o3"]), n("Add", ["o3", "x"], ["r"]), n("LayerNormalization", ["r", "g", "b"], ["y"], axis=-1)]
    shape = dict.fromkeys(["wq", "wk", "wv", "wo"], (64, 64)) | dict.fromkeys(["bq", "bk", "bv", "g", "b"], (64,))
    initial = weights(rng, table=(100, 64), **shape) + ints(heads=[4, 16], width=[64]) + [numpy_helper.from_array(np.float32(0.25), "scale")]
    made = model(nodes, [("ids", INT64, ["N", "T"])], [("y", FLOAT, None)], initial)
    return made, lambda r: {"ids": r.integers(0, 100, (r.integers(1, 4), r.integers(1, 30)))}


def recurrent():
    """A GRU that hands its state round: batch and steps are free."""
    rng, n = np.random.default_rng(3), helper.make_node
    nodes = [n("GRU", ["x", "w", "r", "b", "", "h"], ["y", "z"], hidden_size=20, linear_before_reset=1)]
    initial = weights(rng, w=(1, 60, 12), r=(1, 60, 20), b=(1, 120))
    made = model(nodes, [("x", FLOAT, ["T", "N", 12]), ("h", FLOAT, [1, "N", 20])], [("y", FLOAT, None), ("z", FLOAT, None)], initial)

    def draw(r):
        steps, batch = r.integers(1, 20), r.integers(1, 5)
        return {"x": r.standard_normal((steps, batch, 12)).astype(np.float32), "h": r.standard_normal((1, batch, 20)).astype(np.float32)}
    return made, draw


def chosen():
    """How many rows are left depends on values, after a part whose sizes follow from the input's."""
    rng, n = np.random.default_rng(4), helper.make_node
    nodes = [n("MatMul", ["x", "w"], ["a"]), n("ReduceSum", ["a", "last"], ["s"], keepdims=0), n("Greater", ["s", "zero"], ["m"]),
             n("Compress", ["a", "m"], ["c"], axis=0), n("MatMul", ["c", "v"], ["y"])]
    initial = weights(rng, w=(16, 24), v=(24, 8)) + ints(last=[1]) + [numpy_helper.from_array(np.float32(0), "zero")]
    made = model(nodes, [("x", FLOAT, ["N", 16])], [("y", FLOAT, None)], initial)
    return made, lambda r: {"x": r.standard_normal((r.integers(1, 60), 16)).astype(np.float32)}


MODELS = {f.__name__: f for f in (image, attention, recurrent, chosen)}
ERROR = 2e-5  # of the largest value: sums of some hundred terms in another order


def counts(p):
    found = re.search(r"sizes: (\d+) met, (\d+) with a plan of their own \((\d+) made, (\d+) dropped\)", p.explain())
    return dict(zip(("met", "plans", "made", "dropped"), map(int, found.groups())))


def same(results, expected):
    for a, b in zip(results, expected, strict=True):
        a = np.asarray(a)
        assert a.shape == b.shape and np.abs(a - b).max(initial=0) <= ERROR * max(1, np.abs(b).max(initial=0))


@pytest.mark.parametrize("mode", ["never", "in_call", "background"])
@pytest.mark.parametrize("name", MODELS)
def test_random_sizes(name, mode):
    data, draw = MODELS[name]()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    p = migraphx.parse_onnx_buffer(data, dynamic_dims=True)
    p.compile("cpu", threads=1 + (mode == "background"), specialise=mode)
    rng = np.random.default_rng(5)
    feeds = [draw(rng) for _ in range(20)]
    for _ in range(3):
        for feed in feeds:
            same(p.run(feed), session.run(None, feed))
    now, sizes = counts(p), len({tuple(v.shape for v in f.values()) for f in feeds})
    assert now["met"] == sizes
    assert now["plans"] == {"never": 0, "in_call": sizes}.get(mode, now["plans"])
    assert now["made"] >= now["plans"] + now["dropped"] * (mode == "in_call")  # what was made in haste is made anew where it costs


def test_sizes_named_as_optimal_have_plans_at_once():
    data, _ = image()
    dims = [migraphx.shape.dynamic_dimension(1, 4, {1, 4}), 3, migraphx.shape.dynamic_dimension(16, 32, {16, 24, 32}), migraphx.shape.dynamic_dimension(20, 20)]
    p = migraphx.parse_onnx_buffer(data, map_dyn_input_dims={"x": dims})
    p.compile("cpu", threads=1, specialise="never")
    assert counts(p)["made"] == 6


def test_a_size_beyond_its_range_is_refused_by_name():
    data, _ = image()
    dims = [1, 3, migraphx.shape.dynamic_dimension(16, 32), migraphx.shape.dynamic_dimension(16, 32)]
    p = migraphx.parse_onnx_buffer(data, map_dyn_input_dims={"x": dims})
    p.compile("cpu", threads=1)
    with pytest.raises(RuntimeError, match=r"parameter: x .*axis 3 has length 40, allowed are 16\.\.32"):
        p.run({"x": np.zeros((1, 3, 20, 40), np.float32)})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_are_gathered_where_lengths_are_open(axis):
    node = helper.make_node("GatherElements", ["x", "i"], ["y"], axis=axis)
    p = migraphx.parse_onnx_buffer(model([node], [("x", FLOAT, ["a", "b", "c"]), ("i", INT64, ["a", "d", "c"])],
                                         [("y", FLOAT, ["a", "d", "c"])], []), dynamic_dims=True)
    assert "deferred" not in str(p)
    p.compile("cpu", threads=1)
    rng = np.random.default_rng(axis + 1)
    for lens in ((3, 4, 5), (2, 6, 1), (1, 1, 7)):
        x = rng.standard_normal(lens).astype(np.float32)
        i = rng.integers(-lens[axis], lens[axis], (lens[0], lens[1] - (axis != 1) * (lens[1] > 1), lens[2]))
        np.testing.assert_array_equal(np.asarray(p.run({"x": x, "i": i})["y"]), np.take_along_axis(x[:, :i.shape[1]] if axis != 1 else x, i, axis))


def test_two_inputs_of_one_name_agree():
    data, draw = recurrent()
    p = migraphx.parse_onnx_buffer(data, dynamic_dims=True)
    p.compile("cpu", threads=1)
    feed = draw(np.random.default_rng(6))
    with pytest.raises(RuntimeError, match='"N"'):
        p.run(feed | {"h": np.zeros((1, 9, 20), np.float32)})


@pytest.mark.parametrize("mode", ["never", "in_call"])
def test_a_name_that_looks_like_a_formula(mode):
    """The engine calls the length of `a` "=(H-2)/2+1" itself; a model's dimension of that name is any length, here 1."""
    n = helper.make_node
    nodes = [n("Conv", ["x", "w"], ["a"], strides=[2, 1], pads=[0, 0, 1, 0]), n("Add", ["a", "z"], ["b"]), n("Relu", ["b"], ["y"])]
    made = model(nodes, [("x", FLOAT, [1, 1, "H", 8]), ("z", FLOAT, [1, 1, "=(H-2)/2+1", 8])], [("y", FLOAT, None)],
                 weights(np.random.default_rng(9), w=(1, 1, 3, 1)))
    rng, p = np.random.default_rng(10), migraphx.parse_onnx_buffer(made, dynamic_dims=True)
    p.compile("cpu", threads=1, specialise=mode)
    reference = onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])
    for height, other in [(9, 1), (9, 4), (14, 1), (14, 7)]:
        feed = {"x": rng.standard_normal((1, 1, height, 8)).astype(np.float32), "z": rng.standard_normal((1, 1, other, 8)).astype(np.float32)}
        same(p.run(feed), reference.run(None, feed))


def test_eight_threads():
    data, draw = attention()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    p = migraphx.parse_onnx_buffer(data, dynamic_dims=True)
    p.compile("cpu", threads=1, specialise="background", plan_bytes=1 << 20)
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(40):
            feed = draw(rng)
            try:
                same(p.run(feed), session.run(None, feed))
            except AssertionError as e:
                failures.append(e)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


@pytest.mark.parametrize("options", [{"specialise": "sometimes"}, {"specialise": 3}])
def test_modes_are_checked(options):
    with pytest.raises((ValueError, TypeError)):
        migraphx.parse_onnx_buffer(image()[0], dynamic_dims=True).compile("cpu", **options)


@pytest.mark.parametrize("name", ["image", "attention", "recurrent"])
@pytest.mark.parametrize("target", ["cpu", "ref"])
def test_reshape(name, target):
    """Back and forth through more lengths than are kept; on "cpu" every one is a plan of one program."""
    data, draw = MODELS[name]()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(9)
    feeds = [draw(rng) for _ in range(12 if target == "cpu" else 3)]
    lens = [{k: list(v.shape) for k, v in f.items()} for f in feeds]
    p = migraphx.parse_onnx_buffer(data, map_input_dims=lens[0])
    p.compile(target, threads=1)
    module = p.get_main_module()
    for i in [*range(len(feeds)), 0, len(feeds) - 1, 0]:
        p.reshape(inputs=lens[i])
        assert p.is_compiled() and {k: v.lens() for k, v in p.get_parameter_shapes().items()} == lens[i]
        results = p.run(feeds[i])
        same(results, session.run(None, feeds[i]))
        assert [s.lens() for s in p.get_output_shapes()] == [list(np.asarray(r).shape) for r in results]
    assert "@param" in str(module)


def test_reshape_of_some_inputs_takes_the_others_along():
    data, draw = recurrent()
    p = migraphx.parse_onnx_buffer(data)
    p.compile("cpu", threads=1)
    p.reshape({"x": np.array([7, 3, 12])})
    assert p.get_parameter_shapes()["h"].lens() == [1, 3, 20]


def test_reshape_to_what_does_not_fit():
    data, draw = image()
    p = migraphx.parse_onnx_buffer(data, map_input_dims={"x": [1, 3, 16, 16]})
    p.compile("cpu", threads=1)
    p.reshape({"x": [1, 5, 16, 16]})
    with pytest.raises(RuntimeError):
        p.run({"x": np.zeros((1, 5, 16, 16), np.float32)})
    assert p.get_parameter_shapes()["x"].lens() == [1, 3, 16, 16]  # it stays what it was
    with pytest.raises(TypeError, match="not a list of lengths"):
        p.reshape({"x": "16"})


@pytest.mark.parametrize("depth", [1, 5, 9])
def test_operands_that_do_not_match_are_refused_inside_of_fused_steps(depth):
    """A product and what is fused with it, whose result has one size; the depth of one operand is open."""
    n = helper.make_node
    nodes = [n("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]), n("MatMul", ["q", "t"], ["s"]), n("Mul", ["s", "c"], ["m"]), n("Softmax", ["m"], ["y"], axis=-1)]
    scale = [numpy_helper.from_array(np.float32(0.25), "c")]
    p = migraphx.parse_onnx_buffer(model(nodes, [("q", FLOAT, [1, 2, 3, 8]), ("k", FLOAT, [1, 2, 3, "D"])], [("y", FLOAT, None)], scale), dynamic_dims=True)
    p.compile("cpu", threads=1)
    feed = {"q": np.ones((1, 2, 3, 8), np.float32), "k": np.ones((1, 2, 3, 8), np.float32)}
    for _ in range(3):
        same(p.run(feed), [np.full((1, 2, 3, 3), 1 / 3, np.float32)])
        with pytest.raises(RuntimeError, match="do not match"):
            p.run(feed | {"k": np.ones((1, 2, 3, depth), np.float32)})


def decoder(**options):
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "examples", "generate"))
    import decoder
    return decoder.build(**options).SerializeToString()


@pytest.mark.parametrize("heads", [1, 4])
def test_a_growing_cache(heads):
    """Two texts token by token: a size in every step, the cache handed on. With one head it lies in one piece, large enough to grow in place."""
    width, layers = 512, 2
    data = decoder(layers=layers, width=width, heads=heads, words=300)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    p = migraphx.parse_onnx_buffer(data, dynamic_dims=True)
    p.compile("cpu", threads=1)
    names = [f"{k}_{i}" for i in range(layers) for k in ("key", "value")]
    rng = np.random.default_rng(10)
    for _ in range(2):
        start = {f"past_{n}": rng.standard_normal((1, heads, 300, width // heads)).astype(np.float32) for n in names}
        ours, theirs, places = start, start, []
        for step in range(40):
            word = {"id": np.array([[(step * 7) % 300]])}
            results, expected = p.run(word | ours), session.run(None, word | theirs)
            same(results, expected)
            ours = {f"past_{n}": results[n] for n in names}
            theirs = {f"past_{n}": expected[1 + i] for i, n in enumerate(names)}
            places.append(np.asarray(results["key_0"]).ctypes.data)
        if heads == 1:
            assert len(set(places)) <= 2
    assert counts(p)["made"] == 0  # no size comes again within a text


class Cached:
    """A decoder and ONNX Runtime beside it, step by step; the caches are not looked at between steps."""

    def __init__(self, heads, **options):
        self.width, self.heads = 128, heads
        data = decoder(layers=2, width=self.width, heads=heads, words=100)
        self.session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        self.names = [f"{k}_{i}" for i in range(2) for k in ("key", "value")]
        self.data, self.p = data, migraphx.parse_onnx_buffer(data, dynamic_dims=True)
        self.p.compile("cpu", threads=1, **options)

    def start(self, length):
        rng = np.random.default_rng(length)
        values = {f"past_{n}": rng.standard_normal((1, self.heads, length, self.width // self.heads)).astype(np.float32) for n in self.names}
        return values, values

    def step(self, word, past, program=None):
        feed = {"id": np.array([[word]])}
        results, expected = (program or self.p).run(feed | past[0]), self.session.run(None, feed | past[1])
        same([results["logits"]], expected[:1])
        return {f"past_{n}": results[n] for n in self.names}, {f"past_{n}": expected[1 + i] for i, n in enumerate(self.names)}

    def check(self, past):
        for name, value in past[1].items():
            assert past[0][name].get_shape().standard() and past[0][name].get_shape().lens() == list(value.shape)
            np.testing.assert_allclose(np.asarray(past[0][name]), value, rtol=0, atol=1e-4)


@pytest.mark.parametrize("heads", [1, 2, 8])
def test_a_cache_of_heads_is_continued(heads):
    d = Cached(heads)
    past = d.start(200)
    kept = []
    for word in range(60):
        past = d.step(word, past)
        if word % 20 == 19:
            kept.append(past)
    for old in kept:  # what came later has not touched them
        d.check(old)


def test_a_cache_goes_on_in_two_ways():
    d = Cached(4)
    past = d.step(1, d.step(0, d.start(300)))
    one, two = d.step(2, past), d.step(3, past)
    for word in range(5):
        one, two = d.step(word, one), d.step(word + 50, two)
    d.check(past)
    d.check(one)
    d.check(two)


def test_a_cache_that_was_written_to_is_what_goes_on():
    d = Cached(4)
    past = d.step(1, d.start(300))
    for name, value in past[0].items():
        there = np.asarray(value)
        there[:, :, ::2] *= 0.5
        past[1][name] = there.copy()
    past = d.step(2, past)
    d.check(d.step(3, past))


def test_a_cache_that_grows_is_any_programs_input():
    d = Cached(4)
    past = d.step(1, d.step(0, d.start(300)))
    lens = {name: list(value.shape) for name, value in past[1].items()}
    fixed = migraphx.parse_onnx_buffer(d.data, map_input_dims={"id": [1, 1], **lens})
    fixed.compile("cpu", threads=1)
    d.check(d.step(5, past, fixed))
    planned = migraphx.parse_onnx_buffer(d.data, dynamic_dims=True)
    planned.compile("cpu", threads=1, specialise="in_call")
    for _ in range(8):  # by then there is a plan for the size
        d.check(d.step(5, past, planned))
    reference = migraphx.parse_onnx_buffer(d.data, dynamic_dims=True)
    reference.compile("ref")
    d.check(d.step(5, past, reference))
    d.check(d.step(5, past))


def test_a_plan_in_haste_is_made_anew_when_its_size_keeps_coming():
    """A second size wants other kernels than the first had: its plan takes those that are packed, and the better ones when it keeps coming."""
    rng, n = np.random.default_rng(6), helper.make_node
    nodes = [n("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]), n("Relu", ["a"], ["b"]), n("Conv", ["b", "v"], ["y"], pads=[1, 1, 1, 1])]
    data = model(nodes, [("x", FLOAT, [1, 128, "H", "W"])], [("y", FLOAT, None)], weights(rng, w=(128, 128, 3, 3), v=(128, 128, 3, 3)))
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    p = migraphx.parse_onnx_buffer(data, dynamic_dims=True)
    p.compile("cpu", threads=1, specialise="in_call")
    feeds = [{"x": rng.standard_normal((1, 128, side, side)).astype(np.float32)} for side in (5, 26, 40)]
    expected = [session.run(None, feed) for feed in feeds]
    for feed, right in zip(feeds, expected):
        same(p.run(feed), right)
    hasty = p.explain().count("in haste")
    assert hasty or "isa: generic" in p.explain()
    for _ in range(300):
        for feed, right in zip(feeds, expected):
            same(p.run(feed), right)
        if "in haste" not in p.explain():
            break
    now = counts(p)
    assert now["plans"] == 3 and now["made"] == 3 + hasty and "in haste" not in p.explain()


def test_a_plan_reads_a_state_that_it_does_not_know_to_grow():
    """One state is seen to grow and stays open in plans; another grows behind an operator, so plans fix its length: it comes with room
    between its heads all the same."""
    n = helper.make_node
    nodes = [n("Concat", ["a", "x"], ["a_"], axis=2), n("Mul", ["b", "one"], ["c"]), n("Concat", ["c", "x"], ["b_"], axis=2),
             n("ReduceSum", ["b_", "axes"], ["s"]), n("Add", ["s", "a_"], ["y"])]
    shape = ["B", 4, "P", 16]
    data = model(nodes, [("x", FLOAT, ["B", 4, "T", 16]), ("a", FLOAT, shape), ("b", FLOAT, shape)], [(k, FLOAT, None) for k in ("y", "a_", "b_")],
                 ints(axes=[2]) + [numpy_helper.from_array(np.float32(1), "one")])
    p = migraphx.parse_onnx_buffer(data, dynamic_dims=True)
    p.compile("cpu", threads=1)
    rng, states = np.random.default_rng(8), []
    a = b = rng.standard_normal((1, 4, 40, 16)).astype(np.float32)
    ours = [migraphx.argument(a)] * 2
    for _ in range(6):  # by two tokens, so that no length is left open
        x = rng.standard_normal((1, 4, 2, 16)).astype(np.float32)
        states.append((x, a, ours))
        ours = p.run({"x": x, "a": ours[0], "b": ours[1]})[1:]
        a = np.concatenate([a, x], 2)
    for _ in range(3):
        for x, a, ours in states:
            y = np.concatenate([a, x], 2)
            same([p.run({"x": x, "a": ours[0], "b": ours[1]})[0]], [y.sum(2, keepdims=True) + y])
    assert counts(p)["plans"] == 6


def test_two_reshapes_of_one_layout():
    """Values alone tell them apart: what was chosen for the first is not taken for the second."""
    n, names = helper.make_node, ("a", "b", "c")
    nodes = [n("Shape", ["a"], ["lens"]), n("ReduceProd", ["lens"], ["all"], keepdims=1), n("Div", ["all", "all"], ["one"]),
             n("Concat", ["all", "one", "one"], ["to_a"], axis=0), n("Concat", ["one", "all", "one"], ["to_b"], axis=0),
             n("Concat", ["one", "one", "all"], ["to_c"], axis=0)]
    for name in names:
        nodes += [n("Transpose", [name], ["t" + name], perm=[1, 0]), n("Reshape", ["t" + name, "to_" + name], ["y" + name])]
    program = migraphx.parse_onnx(model(nodes, [(name, FLOAT, ["m", "n"]) for name in names],
                                        [("y" + name, FLOAT, [None, None, None]) for name in names], []), dynamic_dims=True)
    program.compile(migraphx.get_target("cpu"))
    for m, k in ((30, 50), (40, 40), (50, 30), (30, 50)):
        x = np.arange(m * k, dtype=np.float32).reshape(m, k)
        want = x.T.reshape(-1)
        for i, y in enumerate(program.run({name: x for name in names})):
            np.testing.assert_array_equal(np.array(y), want.reshape([m * k if i == d else 1 for d in range(3)]))


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("shape", [(2, 3), (1, 4), (0, 3), (2, 3, 4)])
def test_repeats_that_a_run_says(shape, target):
    axes = [f"d{i}" for i in range(len(shape))]
    nodes = [helper.make_node("Tile", ["x", "r"], ["t"]), helper.make_node("Neg", ["t"], ["y"])]
    program = migraphx.parse_onnx(model(nodes, [("x", FLOAT, axes), ("r", INT64, [len(shape)])], [("y", FLOAT, None)], []), dynamic_dims=True)
    assert "deferred" not in str(program)  # its rank is known, and so is all that follows
    program.compile(migraphx.get_target(target))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for repeats in ([1, 1, 1], [2, 2, 2], [3, 1, 2], [0, 2, 1], [2, 0, 0]):
        repeats = np.array(repeats[:len(shape)])
        for _ in range(3):
            np.testing.assert_array_equal(np.array(program.run({"x": x, "r": repeats})[0]), -np.tile(x, repeats))
    for wrong in (-1, 1 << 60):
        if 0 not in shape or wrong < 0:
            with pytest.raises(RuntimeError):
                program.run({"x": x, "r": np.full(len(shape), wrong)})
