# SPDX-License-Identifier: MIT
"""Results as long as values say, on a card: NonZero, Unique and suppression of boxes against numpy and the reference, on random sizes.

The card is MGX_TEST_DEVICE, else whatever OpenCL has; without one the tests are skipped. MGX_CASES says how many of each.
"""
import os

from card import needs_card  # first: it says which card
import migraphx
import numpy as np
import pytest

pytestmark = needs_card
CASES = int(os.environ.get("MGX_CASES", "1"))
SEED = int(os.environ.get("MGX_SEED", "1"))
KINDS = {np.dtype(np.float32): "float_type", np.dtype(np.int32): "int32_type", np.dtype(np.int64): "int64_type", np.dtype(bool): "bool_type"}


def build(make, feeds):
    program = migraphx.program()
    main = program.get_main_module()
    params = [main.add_parameter(name, migraphx.shape(type=KINDS[x.dtype], lens=list(x.shape))) for name, x in feeds.items()]
    main.add_return(make(lambda name, inputs, **attributes: main.add_instruction(migraphx.op(name, **attributes), inputs), params))
    return program


def on_card(make, feeds):
    """The results, which no step of the host computed."""
    program = build(make, feeds)
    program.compile(migraphx.get_target("gpu"), offload_copy=True)
    assert "ref" not in [line.split("\t")[2] for line in program.plan().splitlines()]
    runs = [[np.array(y) for y in program.run(feeds)] for _ in range(2)]
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(*runs))
    return runs[1]


def on_reference(make, feeds):
    program = build(make, feeds)
    program.compile(migraphx.get_target("ref"))
    return [np.array(y) for y in program.run(feeds)]


@pytest.mark.parametrize("case", range(CASES))
def test_nonzero(case):
    rng = np.random.default_rng([SEED, case])
    shape = rng.integers(1, 40, rng.integers(1, 4))
    x = (rng.standard_normal(shape) * (rng.random(shape) < rng.random())).astype([np.float32, np.int32, bool][rng.integers(3)])
    (places,) = on_card(lambda op, p: [op("nonzero", p)], {"x": x})
    assert np.array_equal(places, np.array(np.nonzero(x)))


@pytest.mark.parametrize("case", range(CASES))
def test_what_follows_a_nonzero(case):
    rng = np.random.default_rng([SEED, case, 1])
    rows, columns = rng.integers(1, 300, 2)
    x, keep = rng.standard_normal((rows, columns)).astype(np.float32), rng.random(rows) < 0.5

    def make(op, p):
        line = op("reshape", [op("nonzero", [p[1]])], dims=[-1])
        taken = op("gather", [p[0], line], axis=0)
        return [op("transpose", [op("neg", [taken])], permutation=[1, 0])]

    (y,) = on_card(make, {"x": x, "keep": keep})
    assert np.array_equal(y, -x[keep].T)


@pytest.mark.parametrize("case", range(CASES))
def test_unique(case):
    rng = np.random.default_rng([SEED, case, 2])
    axis = [None, 0, 1][rng.integers(3)]
    x = rng.integers(-4, 4, rng.integers(1, 30, 2)).astype([np.float32, np.int64][rng.integers(2)])
    if axis is not None:
        x = np.take(x, rng.integers(0, x.shape[axis], 50), axis)
    sort = bool(rng.integers(2))
    attributes = {"sorted": sort} if axis is None else {"sorted": sort, "axis": axis}
    got = on_card(lambda op, p: [op("get_tuple_elem", [op("unique", p, **attributes)], index=i) for i in range(4)], {"x": x})
    values, first, inverse, counts = np.unique(x, True, True, True, axis)
    order = np.arange(len(first)) if sort else np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    want = [np.take(values, order, axis or 0), first[order], rank[inverse.ravel()], counts[order]]
    assert all(np.array_equal(g, w) for g, w in zip(got, want))


@pytest.mark.parametrize("case", range(CASES))
def test_boxes(case):
    rng = np.random.default_rng([SEED, case, 3])
    images, classes, count = rng.integers(1, 3), rng.integers(1, 5), rng.integers(1, 600)
    corner, size = rng.random((images, count, 2)) * 8, rng.random((images, count, 2)) * 2
    feeds = {
        "boxes": np.concatenate([corner, corner + size], 2).astype(np.float32),
        "scores": np.round(rng.random((images, classes, count)), 2).astype(np.float32),  # many are equal
        "most": np.array([rng.integers(0, 40)], np.int64),
        "iou": rng.random(1).astype(np.float32),
        "least": (rng.random(1) * 0.5).astype(np.float32),
    }
    attributes = {"center_point_box": bool(rng.integers(2)), "use_dyn_output": True}
    make = lambda op, p: [op("nonmaxsuppression", p, **attributes)]
    assert np.array_equal(on_card(make, feeds)[0], on_reference(make, feeds)[0])
