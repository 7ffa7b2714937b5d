# SPDX-License-Identifier: MIT
"""Models on a card whose sizes come with the run, by shapes or by values, against ONNX Runtime; the card is MIGRAPHX_GPU_DEVICE or whatever OpenCL has."""
from card import needs_card  # first: it says which card
import migraphx
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import test_sizes

pytestmark = needs_card
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
N = helper.make_node


def shape_of(rng, elements):
    """Some shape of so many elements."""
    first = rng.choice([d for d in range(1, elements + 1) if elements % d == 0])
    rest = elements // first
    second = rng.choice([d for d in range(1, rest + 1) if rest % d == 0])
    return np.int64([first, second, rest // second])


def moves():
    """Sizes of a reshape, a repetition, a widening and a padding are inputs; tanh beside them is the work."""
    nodes = [N("Tanh", ["x"], ["a"]), N("Reshape", ["a", "to"], ["b"]), N("Tile", ["b", "times"], ["c"]), N("Pad", ["c", "pads"], ["d"]),
             N("Expand", ["d", "wide"], ["y"])]

    def draw(r):
        return {"x": r.standard_normal((4, 6)).astype(np.float32), "to": shape_of(r, 24), "times": r.integers(1, 4, 3), "pads": r.integers(0, 3, 6),
                "wide": np.int64([r.integers(1, 4), 1, 1, 1])}
    return nodes, [("x", FLOAT, [4, 6]), ("to", INT64, [3]), ("times", INT64, [3]), ("pads", INT64, [6]), ("wide", INT64, [4])], [], draw


def cuts():
    """Starts, ends and steps of a slice, the axes of a sum, and how many of the largest."""
    nodes = [N("Slice", ["x", "starts", "ends", "axes", "steps"], ["a"]), N("Exp", ["a"], ["b"]), N("ReduceSum", ["b", "over"], ["c"]),
             N("Unsqueeze", ["c", "new"], ["y"])]

    def draw(r):
        return {"x": r.standard_normal((7, 9, 5)).astype(np.float32), "starts": r.integers(-3, 3, 2), "ends": r.integers(4, 12, 2),
                "axes": r.permutation(3)[:2].astype(np.int64), "steps": r.integers(1, 3, 2), "over": r.integers(0, 3, 1), "new": r.integers(0, 3, 1)}
    return nodes, [("x", FLOAT, [7, 9, 5]), *((k, INT64, [2]) for k in ("starts", "ends", "axes", "steps")), ("over", INT64, [1]), ("new", INT64, [1])], [], draw


def scales():
    """Scales of a resize are floats; a range from one input to another is added."""
    nodes = [N("Resize", ["x", "", "scales"], ["a"], mode="linear"), N("Shape", ["a"], ["s"]), N("Gather", ["s", "three"], ["w"], axis=0),
             N("Range", ["zero", "w", "one"], ["r"]), N("Cast", ["r"], ["f"], to=FLOAT), N("Mul", ["a", "f"], ["y"])]
    initial = [helper.make_tensor(k, INT64, [], [v]) for k, v in (("three", 3), ("zero", 0), ("one", 1))]

    def draw(r):
        return {"x": r.standard_normal((1, 2, 6, 5)).astype(np.float32), "scales": np.float32([1, 1, *r.uniform(0.6, 3, 2)])}
    return nodes, [("x", FLOAT, [1, 2, 6, 5]), ("scales", FLOAT, [4])], initial, draw


def branch():
    """A condition chooses between two products, one of which is narrower."""
    value = helper.make_tensor_value_info
    bodies = [helper.make_graph([N("Slice", ["x", "zero", end, "one"], [f"{end}_part"]), N("Tanh", [f"{end}_part"], [f"{end}_y"])], end, [],
                                [value(f"{end}_y", FLOAT, None)]) for end in ("two", "four")]
    nodes = [N("If", ["c"], ["i"], then_branch=bodies[0], else_branch=bodies[1]), N("Mul", ["i", "i"], ["y"])]
    initial = [helper.make_tensor(k, INT64, [1], [v]) for k, v in (("zero", 0), ("one", 1), ("two", 2), ("four", 4))]
    return nodes, [("x", FLOAT, [3, 5]), ("c", BOOL, [])], initial, lambda r: {"x": r.standard_normal((3, 5)).astype(np.float32), "c": np.array(r.integers(2) == 1)}


MODELS = {f.__name__: f for f in (moves, cuts, scales, branch)}


def compiled(data, **options):
    p = migraphx.parse_onnx_buffer(data, **options)
    p.compile("gpu", threads=1, specialise="in_call")
    return p, onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("name", MODELS)
def test_sizes_by_values(name):
    nodes, inputs, initial, draw = MODELS[name]()
    data = test_sizes.model(nodes, inputs, [("y", FLOAT, None)], initial)
    p, session = compiled(data)
    rng = np.random.default_rng(11)
    values = [draw(rng) for _ in range(3)]
    for _ in range(3):
        for feed in values:
            feed = feed | {"x": rng.standard_normal(feed["x"].shape).astype(np.float32)}
            test_sizes.same(p.run(feed), session.run(None, feed))
    now = test_sizes.counts(p)
    assert now["met"] == now["made"] == len({tuple(v.tobytes() for k, v in feed.items() if k != "x") for feed in values})


@pytest.mark.parametrize("name", test_sizes.MODELS)
def test_sizes_by_shapes(name):
    data, draw = test_sizes.MODELS[name]()
    p, session = compiled(data, dynamic_dims=True)
    rng = np.random.default_rng(12)
    feeds = [draw(rng) for _ in range(2)]
    for _ in range(3):
        for feed in feeds:
            test_sizes.same(p.run(feed), session.run(None, feed))
    assert test_sizes.counts(p)["made"] == len({tuple(v.shape for v in f.values()) for f in feeds})


def test_values_that_do_not_fit_are_refused_in_the_run():
    p, _ = compiled(test_sizes.model([N("Tanh", ["x"], ["a"]), N("Reshape", ["a", "to"], ["y"])], [("x", FLOAT, [4, 6]), ("to", INT64, [2])],
                                     [("y", FLOAT, None)], []))
    x = np.ones((4, 6), np.float32)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="5"):
            p.run({"x": x, "to": np.int64([5, 5])})
        assert np.asarray(p.run({"x": x, "to": np.int64([8, 3])})[0]).shape == (8, 3)
