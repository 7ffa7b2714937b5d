# SPDX-License-Identifier: MIT
"""Operators that move elements: concat, gather, pad, scatter, topk and their kin."""
import numpy as np
from make_cases import ANY, D, INTS, NUMBERS, T, Tuple

MOVABLE = ANY + ["string", "complex64"]


def values(w, type, shape):
    if type.startswith("complex"):
        return T(type, (np.arange(np.prod(shape)) + 2j).reshape(shape))
    return w.random(type, shape)


def concat(w):
    for type in MOVABLE:
        x, y = values(w, type, (2, 3)), values(w, type, (2, 1))
        w.case("concat[axis=1]", [x, y], T(type, np.concatenate([x.raw, y.raw], 1)))
    x, y, z = w.random("float", (2, 3)), w.random("float", (0, 3)), w.random("float", (1, 3))
    w.case("concat[axis=0]", [x, y, z], np.concatenate([x.a, y.a, z.a]))
    w.case("concat[axis=-2]", [z, x], np.concatenate([z.a, x.a]))
    w.case("concat[axis=0]", [x], x.a)
    a, b = w.random("float", (2, 3, 4), strides=(12, 1, 3)), w.random("float", (2, 5, 4), strides=(20, 1, 5))
    w.case("concat[axis=1]", [a, b], np.concatenate([a.a, b.a], 1), strides=(32, 1, 8))
    w.case("concat[axis=2]", [x, x], fails="concat: axis 2 is out of range for rank 2")
    w.case("concat[axis=0]", [x, w.random("float", (2, 4))], fails="concat: Dimensions do not match: input 0 is {2, 3}, input 1 is {2, 4}")
    w.case("concat[axis=0]", [x, w.random("int8", (2, 3))], fails="concat: Types do not match")
    w.case("concat[axis=0]", [x, w.random("float", (3,))], fails="concat: Dimensions do not match")
    w.case("concat[axis=0]", [D("float", (1, 4), (2, 5)), D("float", 2, 3)], shape="dynamic, float_type, {[3..6], 3}")
    b = w.broadcast("float", (2, 3, 4), (0,))
    w.case("concat[axis=0]", [a, b], np.concatenate([a.a, b.a]), strides=(12, 1, 3))
    c = w.random("float", (1, 3, 4))
    w.case("concat[axis=0]", [a, c], np.concatenate([a.a, c.a]), strides=(12, 4, 1))
    w.case("concat[axis=0]", [D("int8", 2**61), D("int8", 2**61), D("int8", 2**61), D("int8", 2**61)], fails="concat: the lengths overflow")
    w.case("concat[axis=0]", [D("int8", 2**61), D("int8", 2**61)], fails="a shape of rank 1 is too large")
    w.case("concat[axis=0]", [T("float", 1.0)], fails="concat: axis 0 is out of range for rank 0")


def gather(w):
    for type in MOVABLE:
        x = values(w, type, (3, 4))
        w.case("gather[axis=1]", [x, T("int64", [3, -4, 1])], T(type, np.take(x.raw, [3, 0, 1], 1)))
    x = w.random("float", (3, 2, 4))
    for t in INTS:
        w.case("gather[axis=0]", [x, T(t, [[2, 0], [1, 1]])], np.take(x.a, [[2, 0], [1, 1]], 0))
    w.case("gather[axis=-1]", [x, T("int32", 2)], np.take(x.a, 2, 2))
    w.case("gather[axis=1]", [x, T("int32", [[[1]]])], np.take(x.a, [[[1]]], 1))
    w.case("gather[axis=0]", [T("float", [5.0, 6.0]), T("int32", -1)], np.array(6.0))
    w.case("gather[axis=0]", [x, T("int32", np.zeros((0,)))], np.zeros((0, 2, 4)))
    w.case("gather[axis=0]", [w.random("float", (0, 2)), T("int32", [0])], aborts="gather: index 0 is out of range for axis 0 of length 0")
    for bad in (3, -4, 2**62, -2**63):
        w.case("gather[axis=0]", [x, T("int64", [0, bad])], aborts=f"gather: index {bad} is out of range for axis 0 of length 3")
    w.case("gather[axis=0]", [x, w.random("float", (2,))], fails="gather: input 1 must be of an integral type, not float_type")
    w.case("gather[axis=0]", [D("float", *[1] * 9), D("int32", *[1] * 9)], fails="gather: 17 dimensions are above the limit of 16")
    w.case("gathernd[batch_dims=0]", [D("float", *[1] * 10), D("int32", *[1] * 9)], fails="gathernd: 17 dimensions are above the limit of 16")
    w.case("gathernd[batch_dims=0]", [D("float", 3, 4), D("int32", 5, (1, 2))], shape="unranked, float_type")
    w.case("gather[axis=3]", [x, T("int32", [0])], fails="gather: axis 3 is out of range for rank 3")
    w.case("gather[axis=0]", [D("float", (1, 4), 3), D("int32", (2, 5))], shape="dynamic, float_type, {[2..5], 3}")
    w.case("gathernd[batch_dims=0]", [x, T("int64", [[0, 1], [-1, 0]])], x.a[[0, 2], [1, 0]])
    w.case("gathernd[batch_dims=0]", [x, T("int64", [2, 1, 3])], x.a[2, 1, 3])
    w.case("gathernd[batch_dims=0]", [x, T("int64", [[[1]], [[2]]])], x.a[[[1], [2]]])
    w.case("gathernd[batch_dims=1]", [x, T("int64", [[1], [0], [1]])], np.stack([x.a[0, 1], x.a[1, 0], x.a[2, 1]]))
    w.case("gathernd[batch_dims=2]", [x, T("int64", [[[3], [0]], [[1], [1]], [[2], [-1]]])], np.array([[x.a[0, 0, 3], x.a[0, 1, 0]], [x.a[1, 0, 1], x.a[1, 1, 1]], [x.a[2, 0, 2], x.a[2, 1, 3]]]))
    w.case("gathernd[batch_dims=0]", [x, T("int64", np.zeros((2, 0)))], np.stack([x.a, x.a]), skip=["dynamic"])
    w.case("gathernd[batch_dims=0]", [x, T("int64", [[0, 2]])], aborts="gathernd: index 2 is out of range for axis 1 of length 2")
    w.case("gathernd[batch_dims=0]", [x, T("int64", [[0, 0, 0, 0]])], fails="gathernd: indices of 4 places for 3 axes")
    w.case("gathernd[batch_dims=3]", [x, T("int64", [[0]])], fails="gathernd: batch_dims 3 is out of range")
    w.case("gathernd[batch_dims=1]", [x, T("int64", [[0], [0]])], fails="gathernd: Dimensions do not match")
    w.case("gathernd[batch_dims=0]", [D("float", (1, 4), 3), D("int64", (2, 5), 1)], shape="dynamic, float_type, {[2..5], 3}")


MODES = ["constant", "reflect", "edge", "wrap"]


def pad(w):
    for type in MOVABLE:
        if type in ("string", "complex64"):
            x = values(w, type, (2, 3))
            w.case("pad[mode=2,pads={1, 0, 0, 2},value=0]", [x], T(type, np.pad(x.raw, [(1, 0), (0, 2)], "edge")))
            continue
        x = w.random(type, (2, 3))
        w.case("pad[mode=0,pads={1, 0, 0, 2},value=1]", [x], np.pad(x.a, [(1, 0), (0, 2)], constant_values=1))
    x = w.random("float", (3, 4))
    for m, mode in enumerate(MODES):
        more = {"constant_values": 2.5} if m == 0 else {}
        for before, after in [((1, 2), (2, 1)), ((0, 0), (0, 0)), ((2, 9), (7, 3))]:
            pads = ", ".join(map(str, before + after))
            y = np.pad(x.a, list(zip(before, after)), mode, **more)
            w.case(f"pad[mode={m},pads={{{pads}}},value=2.5]", [x], y)
            w.case(f"pad[mode={m},pads={{}},value=2.5]", [x, T("int64", before + after)], y)
        one = w.random("float", (1, 2))
        w.case(f"pad[mode={m},pads={{2, 0, 2, 0}},value=2.5]", [one], np.pad(one.a, [(2, 2), (0, 0)], mode, **more))
        empty = w.random("float", (0, 2))
        bad = {"aborts": "pad: axis 0 is empty"} if m else {"out": np.full((3, 2), 2.5)}
        w.case(f"pad[mode={m},pads={{1, 0, 2, 0}},value=2.5]", [empty], **bad)
        w.case(f"pad[mode={m},pads={{-1, 2, 0, -3}},value=2.5]", [x], np.pad(x.a[1:], [(0, 0), (2, 0)], mode, **more)[:, :3])
    # a number beyond the type is its largest one, an infinity stays one
    for type, most in [("half", 65504), ("bf16", float.fromhex("0x1.fep127")), ("fp8e5m2", 57344)]:
        two = T(type, np.array([1, 2]))
        w.case("pad[mode=0,pads={1, 0},value=-3.40282e+38]", [two], T(type, np.array([-most, 1, 2])))
        w.case("pad[mode=0,pads={0, 1},value=inf]", [two], T(type, np.array([1, 2, np.inf])))
    w.case("pad[mode=0,pads={-2, 0, -1, 0},value=0]", [x], np.zeros((0, 4)), skip=["dynamic"])
    w.case("pad[mode=0,pads={-2, 0, -2, 0},value=0]", [x], fails="pad: pads -2 and -2 of axis 0 crop more")
    w.case("pad[mode=0,pads={-4, 0, 4, 0},value=0]", [x], fails="pad: pads -4 and 4 of axis 0 crop more")
    w.case("pad[mode=0,pads={1, 2},value=0]", [x], fails="pad: 2 pads for 2 dimensions")
    w.case("pad[mode=4,pads={0, 0, 0, 0},value=0]", [x], fails="pad: mode 4")
    w.case("pad[mode=0,pads={9223372036854775807, 0, 9, 0},value=0]", [x], fails="pad: pads of axis 0 overflow")
    y = np.pad(x.a, 1, constant_values=-7)
    w.case("pad[mode=0,pads={},value=0]", [x, T("int64", [1, 1, 1, 1]), T("float", -7.0)], y)
    w.case("pad[mode=0,pads={},value=0]", [x, T("int64", [1, 1, 1, 1]), T("float", [-7.0])], y)
    w.case("pad[mode=0,pads={},value=0]", [x, T("int64", [1, 1, 1, 1]), T("int8", 1)], fails="pad: Types do not match")
    w.case("pad[mode=0,pads={},value=0]", [x, T("int64", [1, 1, 1, 1]), T("float", [1, 2])], aborts="pad: the value has 2 elements")
    w.case("pad[mode=0,pads={},value=0]", [x, T("int64", [1, 1, 1, 1]), None], np.pad(x.a, 1))
    w.case("pad[mode=0,pads={},value=0]", [T("string", ["a"]), T("int64", [1, 0]), T("string", "zz")], T("string", ["zz", "a"]))
    w.case("pad[mode=0,pads={1, 1},value=0]", [D("float", (1, 4))], shape="dynamic, float_type, {[3..6]}")
    w.case("pad[mode=0,pads={},value=0]", [T("float", 3.0), T("int64", np.zeros(0))], np.array(3.0))


def reverse(w):
    for type in MOVABLE:
        x = values(w, type, (2, 3))
        w.case("reverse[axes={1}]", [x], T(type, x.raw[:, ::-1]))
    x = w.random("float", (2, 3, 4))
    w.case("reverse[axes={0, -1}]", [x], x.a[::-1, :, ::-1])
    w.case("reverse[axes={}]", [x], x.a)
    w.case("reverse[axes={0}]", [w.random("float", (0, 2))], np.zeros((0, 2)))
    w.case("reverse[axes={3}]", [x], fails="reverse: axis 3 is out of range for rank 3")


def onehot(w):
    i = T("int64", [[0, 2], [-1, 5]])
    hot = lambda d, axis: np.moveaxis(np.array([[[k == (v + d if v < 0 else v) for k in range(d)] for v in r] for r in i.a]), -1, axis)
    for type in NUMBERS:
        v = T(type, [3, 7])
        w.case("onehot[axis=-1,depth=3]", [i, v], np.where(hot(3, -1), 7, 3), type)
    v = T("float", [0.0, 1.0])
    w.case("onehot[axis=0,depth=4]", [i, v], hot(4, 0).astype(float), "float")
    w.case("onehot[axis=1,depth=nullopt]", [i, T("int32", [4]), v], hot(4, 1).astype(float), "float")
    w.case("onehot[axis=1,depth=nullopt]", [i, T("int32", 4, known=True), v], hot(4, 1).astype(float), "float")
    w.case("onehot[axis=0,depth=0]", [i, v], np.zeros((0, 2, 2)), "float")
    w.case("onehot[axis=-1,depth=3]", [T("uint8", 1), T("string", ["off", "on"])], T("string", ["off", "on", "off"]))
    w.case("onehot[axis=0,depth=3]", [D("int64", *[1] * 16), v], fails="onehot: 17 dimensions are above the limit of 16")
    w.case("onehot[axis=3,depth=3]", [i, v], fails="onehot: axis 3 is out of range for rank 3")
    w.case("onehot[axis=0,depth=-2]", [i, v], fails="onehot: depth must be one length")
    w.case("onehot[axis=0,depth=nullopt]", [i, v], fails="onehot: depth must be one length")
    w.case("onehot[axis=0,depth=nullopt]", [i, T("int64", -1), v], aborts="onehot: depth must be one length")
    w.case("onehot[axis=0,depth=3]", [i, T("float", [1.0])], fails="onehot: 1 values, expected off and on")
    w.case("onehot[axis=0,depth=3]", [v, v], fails="onehot: input 0 must be of an integral type")


def nonzero(w):
    for type in ANY:
        x = T(type, [[1, 0, 1], [0, 0, 1]])
        w.case("nonzero", [x], np.array(np.nonzero(x.a)), "int64")
    for a in (np.zeros((2, 2)), np.ones((2, 2, 1)), np.zeros((0, 3)), np.array([np.nan, -0.0])):
        w.case("nonzero", [T("float", a)], np.array(np.nonzero(a)), "int64")
    w.case("nonzero", [T("float", 4.0)], np.zeros((0, 1)), "int64")
    w.case("nonzero", [T("float", 0.0)], np.zeros((0, 0)), "int64")
    w.case("nonzero", [D("float", 2, 3)], shape="dynamic, int64_type, {2, [0..6]}")
    w.case("nonzero", [D("float", (1, 4), 3)], shape="dynamic, int64_type, {2, [0..12]}")
    w.case("nonzero", [T("string", ["a"])], fails="nonzero: type string_type is not a number")


def unique(w):
    def expect(x, axis, is_sorted):
        y, first, inverse, counts = np.unique(x.raw if x.type == "string" else x.a, True, True, True, axis=axis)
        inverse = inverse.reshape(-1)
        if not is_sorted:
            order = np.argsort(first, kind="stable")
            y = np.take(y, order, axis or 0)
            first, counts = first[order], counts[order]
            inverse = np.argsort(order, kind="stable")[inverse]
        return Tuple(T(x.type, y), *(T("int64", v) for v in (first, inverse, counts)))

    for type in NUMBERS + ["bool", "string"]:
        x = w.random(type, (3, 4), -2, 2)
        for s in (1, 0):
            w.case(f"unique[axis=nullopt,sorted={s}]", [x], expect(x, None, s))
    for type in ["int32", "float", "uint64"]:
        x = T(type, [[1, 2, 1, 1], [0, 5, 0, 4], [1, 2, 1, 1]])
        for axis in (0, 1):
            for s in (1, 0):
                w.case(f"unique[axis={axis},sorted={s}]", [x], expect(x, axis, s))
    x = T("float", [2.0, np.nan, 1.0, np.nan, np.inf, -np.inf])
    w.case("unique[axis=nullopt,sorted=1]", [x], expect(x, None, 1))
    x = T("uint64", [2**63, 1, 2**64 - 1, 1])
    w.case("unique[axis=nullopt,sorted=1]", [x], expect(x, None, 1))
    x = T("float", np.zeros((0,)))
    w.case("unique[axis=nullopt,sorted=1]", [x], expect(x, None, 1))
    w.case("unique[axis=2,sorted=1]", [w.random("float", (2, 2))], fails="unique: axis 2 is out of range for rank 2")
    w.case("unique[axis=nullopt,sorted=1]", [D("float", 2, 3)], shape="[dynamic, float_type, {[0..6]}, dynamic, int64_type, {[0..6]}, int64_type, {6}, {1}, dynamic, int64_type, {[0..6]}]")


def topk(w):
    def expect(x, k, axis, largest):
        key = -x.a if largest and x.type != "uint64" else np.iinfo(np.uint64).max - x.a if largest else x.a
        order = np.take(np.argsort(key, axis, kind="stable"), range(k), axis)
        return Tuple(T(x.type, np.take_along_axis(x.raw, order, axis)), T("int64", order))

    for type in NUMBERS:
        x = w.random(type, (3, 5), -3, 3)
        for largest in (1, 0):
            w.case(f"topk[k=3,axis=1,largest={largest}]", [x], expect(x, 3, 1, largest))
    x = w.random("float", (4, 3))
    w.case("topk[k=2,axis=0,largest=1]", [x], expect(x, 2, 0, 1))
    w.case("topk[k=3,axis=-1,largest=0]", [x], expect(x, 3, 1, 0))
    w.case("topk[k=0,axis=0,largest=1]", [x], expect(x, 0, 0, 1), skip=["dynamic"])
    w.case("topk[k=1,axis=0,largest=1]", [x, T("int64", [3])], expect(x, 3, 0, 1))
    names = T("int32", np.arange(x.a.size).reshape(x.a.shape) * 10)
    order = np.argsort(-x.a, 1, kind="stable")[:, :2]
    named = Tuple(T("float", np.take_along_axis(x.a, order, 1)), T("int64", np.take_along_axis(names.a, order, 1)))
    w.case("topk[k=2,axis=1,largest=1]", [x, names], named)
    w.case("topk[k=2,axis=1,largest=1]", [x, T("int32", np.zeros((2, 3)))], fails="topk: ")
    w.case("topk[k=1,axis=0,largest=1]", [x, T("int64", 3, known=True)], expect(x, 3, 0, 1))
    x = T("uint64", [1, 2**64 - 1, 2**63, 5])
    w.case("topk[k=3,axis=0,largest=1]", [x], expect(x, 3, 0, 1))
    x = T("int64", [1, -2**63, 2**63 - 1, 2**62 + 1, 2**62])
    w.case("topk[k=3,axis=0,largest=1]", [x], Tuple(T("int64", [2**63 - 1, 2**62 + 1, 2**62]), T("int64", [2, 3, 4])))
    x = T("float", [1.0, np.nan, 3.0, -np.inf])
    w.case("topk[k=3,axis=0,largest=1]", [x], Tuple(T("float", [np.nan, 3, 1]), T("int64", [1, 2, 0])))
    w.case("topk[k=3,axis=0,largest=0]", [x], Tuple(T("float", [-np.inf, 1, 3]), T("int64", [3, 0, 2])))
    w.case("topk[k=1,axis=0,largest=1]", [T("string", ["a"])], fails="topk: type string_type is not a number")
    w.case("topk[k=5,axis=0,largest=1]", [x], fails="topk: k of 5 is out of range for an axis of length 4")
    w.case("topk[k=1,axis=0,largest=1]", [x, T("int64", [9])], aborts="topk: k of 9 is out of range")
    w.case("topk[k=-1,axis=0,largest=1]", [x], fails="topk: k of -1")
    w.case("topk[k=2,axis=0,largest=1]", [D("float", (2, 4), 3)], shape="[float_type, {2, 3}, {3, 1}, int64_type, {2, 3}, {3, 1}]")


def ranges(w):
    for type, (a, b, c) in [("int32", (1, 10, 3)), ("int64", (10, 1, -4)), ("float", (0, 1, 0.25)), ("double", (1, -1, -0.3)), ("int16", (5, 5, 1)), ("int32", (5, 1, 2)), ("uint8", (250, 255, 2)), ("half", (0, 3, 0.5))]:
        v = [T(type, x) for x in (a, b, c)]
        y = np.arange(*(float(t.a) for t in v)) if type in ("float", "double", "half") else np.arange(a, b, c)
        w.case("dynamic_range[max_output=100]", v, y)
        w.case("dynamic_range[max_output=100]", [T(type, x, known=True) for x in (a, b, c)], y)
    one = lambda *v: [T("int64", x) for x in v]
    w.case("dynamic_range[max_output=100]", one(0, 5, 0), aborts="dynamic_range: delta is 0")
    w.case("dynamic_range[max_output=100]", one(0, 101, 1), aborts="dynamic_range: 101 values are above max_output 100")
    w.case("dynamic_range[max_output=100]", one(-2**63, 2**63 - 1, 1), aborts="dynamic_range: 9223372036854775807 values")
    w.case("dynamic_range[max_output=100]", one(-2**63, 2**63 - 1, 2**62), [-2**63, -2**62, 0, 2**62], "int64")
    w.case("dynamic_range[max_output=100]", [T("float", x) for x in (0, np.inf, 1)], aborts="dynamic_range: 9223372036854775807 values")
    w.case("dynamic_range[max_output=100]", [T("float", x) for x in (0, np.nan, 1)], aborts="dynamic_range: delta is 0, or not a number")
    w.case("dynamic_range[max_output=100]", [T("string", "a")] * 3, fails="dynamic_range: type string_type is not a number")
    w.case("dynamic_range[max_output=100]", [D("int64", 2), D("int64"), D("int64")], fails="dynamic_range: input 0 has 2 values")
    w.case("dynamic_range[max_output=100]", [D("int64"), D("int64"), D("int64")], shape="dynamic, int64_type, {[0..100]}")
    x = w.random("float", (2, 3, 4))
    for s, e in [(0, 0), (1, 0), (0, 2), (-2, 0), (1, -1), (2, 1), (0, 99)]:
        dims = x.shape[s:(e or None)]
        w.case(f"dimensions_of[start={s},end={e}]", [x], np.array(dims), "int64")
    w.case("dimensions_of[start=0,end=0]", [T("string", "a")], np.zeros(0), "int64")


def scatter(w):
    kinds = {
        "none": None, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
    }

    def along(x, i, u, axis, f):
        y = x.raw.astype(object) if x.type == "string" else x.a.copy()
        for at in np.ndindex(*i.shape):
            to = list(at)
            to[axis] = i.a[at]
            to = tuple(to)
            v = u.raw[at] if x.type == "string" else u.a[at]
            y[to] = v if f is None else f(y[to], v)
        return T(x.type, y)

    def slabs(x, i, u, f):
        y = x.a.copy()
        for at in np.ndindex(*i.shape[:-1]):
            to = tuple(i.a[at])
            y[to] = u.a[at] if f is None else f(y[to], u.a[at])
        return T(x.type, y)

    for name, f in kinds.items():
        for type in NUMBERS:
            x, u = w.random(type, (3, 4)), w.random(type, (3, 2))
            i = T("int64", [[0, 3], [-1, 1], [2, 2]])
            w.case(f"scatter_{name}[axis=1,skip_out_of_bounds=0]", [x, i, u], along(x, i, u, 1, f))
        x, u = w.random("float", (3, 2, 2)), w.random("float", (2, 1, 2))
        i = T("int32", [[[2, 1]], [[-3, 2]]])
        w.case(f"scatter_{name}[axis=0,skip_out_of_bounds=0]", [x, i, u], along(x, i, u, 0, f))
        x = w.random("float", (3, 2), strides=(1, 3))
        i, u = T("int32", [[1, 1]]), T("float", [[1.5, -2.5]])
        w.case(f"scatter_{name}[axis=0,skip_out_of_bounds=0]", [x, i, u], T("float", along(x, i, u, 0, f).a, (1, 3)))
        bad = T("int64", [[0, 3]])
        w.case(f"scatter_{name}[axis=0,skip_out_of_bounds=0]", [x, bad, u], aborts=f"scatter_{name}: index 3 is out of range for axis 0 of length 3")
        kept = along(x, T("int64", [[0]]), T("float", [[1.5]]), 0, f)
        w.case(f"scatter_{name}[axis=0,skip_out_of_bounds=1]", [x, bad, u], kept)
        w.case(f"scatter_{name}[axis=0,skip_out_of_bounds=0]", [x, T("int64", np.zeros((0, 2))), T("float", np.zeros((0, 2)))], x.a)
        for type in ["float", "int32", "uint64"]:
            x, u = w.random(type, (3, 4, 2)), w.random(type, (2, 2))
            i = T("int64", [[0, 1], [-1, -2]])
            w.case(f"scatternd_{name}", [x, i, u], slabs(x, i, u, f))
            u = w.random(type, (2, 1, 4, 2))
            i = T("int64", [[[1]], [[1]]])
            w.case(f"scatternd_{name}", [x, i, u], slabs(x, i, u, f))
        w.case(f"scatternd_{name}", [x, T("int64", [[0, 4]]), w.random("uint64", (1, 2))], aborts=f"scatternd_{name}: index 4 is out of range for axis 1 of length 4")
        w.case(f"scatternd_{name}", [x, T("int64", [[0, 1, 0, 0]]), w.random("uint64", (1,))], fails=f"scatternd_{name}: indices of 4 places for 3 axes")
        w.case(f"scatternd_{name}", [x, T("int64", [[0, 1]]), w.random("uint64", (1, 3))], fails=f"scatternd_{name}: Dimensions do not match: axis 1 of the updates is 3, expected 2")
        w.case(f"scatternd_{name}", [x, T("int64", [[0, 1]]), w.random("uint64", (2,))], fails=f"scatternd_{name}: updates have 1 dimensions, expected 2")
    x, i, u = w.random("string", (3,)), T("int64", [1]), T("string", ["new"])
    w.case("scatter_none[axis=0,skip_out_of_bounds=0]", [x, i, u], along(x, i, u, 0, None))
    w.case("scatter_add[axis=0,skip_out_of_bounds=0]", [x, i, u], fails="scatter_add: type string_type is not a number")
    x = T("float", [1.0, np.nan])
    w.case("scatter_max[axis=0,skip_out_of_bounds=0]", [x, T("int64", [0, 1]), T("float", [np.nan, 2])], [np.nan, np.nan])
    x = w.random("float", (3, 2))
    w.case("scatter_none[axis=0,skip_out_of_bounds=0]", [x, T("int64", [[0, 0, 0]]), w.random("float", (1, 3))], fails="scatter_none: Dimensions do not match")
    w.case("scatter_none[axis=0,skip_out_of_bounds=0]", [x, T("int64", [[0, 0]]), w.random("float", (2, 2))], fails="scatter_none: Dimensions do not match")
    w.case("scatter_none[axis=0,skip_out_of_bounds=0]", [x, T("int64", [[0, 0]]), w.random("half", (1, 2))], fails="scatter_none: Types do not match")


def memory(w):
    x = w.random("float", (2, 3))
    w.case("fill", [T("float", [2.5]), x], np.full((2, 3), 2.5))
    w.case("fill", [T("float", [2.5, 1]), x], fails="fill: default value must have one element")
    w.case("fixed_pad", [x], x.a, skip=["dynamic"])
    w.case("fixed_pad", [D("float", (1, 4), 3)], shape="float_type, {4, 3}, {3, 1}")
    b = T("int8", np.arange(16))
    w.case("load[shape=int8_type, {2, 3}, {4, 1},offset=5]", [b], [[5, 6, 7], [9, 10, 11]], skip=["stride", "dynamic"])
    w.case("load[shape=float_type, {2}, {1},offset=8]", [b], np.frombuffer(np.arange(16, dtype=np.int8).tobytes(), np.float32)[2:], "float", skip=["stride", "dynamic"])
    w.case("load[shape=float_type, {2}, {1},offset=12]", [b], fails="load: Load access is out of bounds: 8 bytes at 12 of a buffer of 16")
    w.case("load[shape=float_type, {2}, {1},offset=6]", [b], fails="load: offset 6 of float_type")
    w.case("load[shape=float_type, {2}, {1},offset=-4]", [b], fails="load: offset -4")
    w.case("load[shape=float_type, {2}, {1},offset=9223372036854775804]", [b], fails="load: Load access is out of bounds")
    w.case("undefined", [], T("float", np.zeros(0)))
    w.case("outline[shape=float_type, {2, 3}, {3, 1}]", [], T("float", np.zeros((2, 3))))
    w.case("allocate[shape=half_type, {2}, {1},buf_type=nullopt]", [], T("half", np.zeros(2)))
    w.case("allocate[shape=float_type, {}, {},buf_type=2]", [T("int64", [2, 3])], T("float", np.zeros((2, 3))), skip=["dynamic"])
    w.case("allocate[shape=float_type, {}, {},buf_type=8]", [D("int64", 2)], shape="dynamic, int32_type, {[0..], [0..]}")
    w.case("allocate[shape=float_type, {}, {},buf_type=8]", [D("int64", (1, 3))], shape="unranked, int32_type")
    w.case("allocate[shape=dynamic, float_type, {[1..4]},buf_type=nullopt]", [], aborts="allocate: the shape is not known before the run")
    w.case("load[shape=float_type, {2}, {1},offset=0]", [D("int8", None)], shape="unranked, float_type")
    t = Tuple(T("float", [1, 2]), T("int8", 3))
    w.case("get_tuple_elem[index=1]", [t], T("int8", 3))
    w.case("get_tuple_elem[index=0]", [t], T("float", [1, 2]))
    w.case("get_tuple_elem[index=2]", [t], fails="get_tuple_elem: index 2 is out of range for 2 members")
    w.case("get_tuple_elem[index=0]", [T("float", [1])], fails="get_tuple_elem: input is float_type, not a tuple")
    w.case("unknown[op=Foo]", [D("float", 2)], shape="float_type, {2}, {1}")


def cases(w):
    for family in (concat, gather, pad, reverse, onehot, nonzero, unique, topk, ranges, scatter, memory):
        family(w)
