# SPDX-License-Identifier: MIT
"""Reductions, arg extrema, scans and softmax against numpy."""
import math

import numpy as np
from make_cases import D, FLOATS, FP8, INTS, T

FOLDS = {
    "sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod,
    "all": np.all, "any": np.any,
}
EMPTY = {"sum": 0, "mean": math.nan, "max": -math.inf, "min": math.inf, "prod": 1, "all": 1, "any": 0}


def wrap(values, type):
    """Python integers modulo the type's width."""
    bits = {"8": 8, "6": 16, "2": 32, "4": 64}[type[-1]]
    low = 0 if type.startswith("u") else -(1 << (bits - 1))
    f = np.vectorize(lambda v: (int(v) - low) % (1 << bits) + low, otypes=[object])
    return f(values) if np.size(values) else values


def reduce_ints(name, x, axes, type):
    o = x.raw.astype(object)
    if name == "mean":
        n = math.prod(o.shape[a] for a in axes)
        sums = np.sum(o, axis=axes, keepdims=True)
        return np.vectorize(lambda s: abs(s) // n * (1 if s >= 0 else -1), otypes=[object])(sums)
    if name in ("all", "any"):
        return FOLDS[name](o != 0, axis=axes, keepdims=True)
    return wrap(FOLDS[name](o, axis=axes, keepdims=True), type)


def reductions(w):
    for name, f in FOLDS.items():
        op = f"reduce_{name}"
        for type in FLOATS + FP8[1:2]:
            x = w.random(type, (2, 3, 4), 0.5, 2) if name == "prod" else w.random(type, (2, 3, 4))
            for axes in [(1,), (0, 2), (-1,)]:
                w.case(f"{op}[axes={{{', '.join(map(str, axes))}}}]", [x],
                       f(x.a, axis=axes, keepdims=True), tol=(1, 0.2) if type in FP8 else None)
        for type in INTS:
            x = w.random(type, (3, 5), -100, 127)
            w.case(f"{op}[axes={{1}}]", [x], reduce_ints(name, x, (1,), type))
        x = T("uint64", [[2**63, 5, 2**64 - 1], [1, 2**63 + 1, 0]])
        w.case(f"{op}[axes={{1}}]", [x], reduce_ints(name, x, (1,), "uint64"))
        x = T("int64", [[-2**63, 5, 2**63 - 1], [2**62 + 1, 2**62 - 1, 0]])
        w.case(f"{op}[axes={{1}}]", [x], reduce_ints(name, x, (1,), "int64"))
        x = w.random("bool", (3, 4))
        if name in ("all", "any", "max", "min"):
            w.case(f"{op}[axes={{0}}]", [x], f(x.a, axis=0, keepdims=True))
        x = w.random("double", (2, 3))
        w.case(f"{op}[axes={{}}]", [x], np.reshape(f(x.a), (1, 1)))
        x = w.random("float", ())
        w.case(op, [x], f(x.a))
        x = w.broadcast("float", (3, 4, 2), (1,))
        w.case(f"{op}[axes={{1}}]", [x], f(x.a, axis=1, keepdims=True))
        # axes as an input
        x = w.random("float", (2, 3, 2))
        w.case(op, [x, T("int64", [0, -1])], f(x.a, axis=(0, 2), keepdims=True))
        w.case(op, [x, T("int64", [])], x.a if name not in ("all", "any") else x.a != 0)
        w.case(f"{op}[axes={{1}}]", [x, T("int64", [])], f(x.a, axis=1, keepdims=True))
        w.case(op, [x, T("int64", [2, 0], known=True)], shape="float_type, {1, 3, 1}, {3, 1, 1}")
        # nothing to reduce, nothing to give
        w.case(f"{op}[axes={{1}}]", [T("float", np.zeros((2, 0)))], np.full((2, 1), EMPTY[name]))
        w.case(f"{op}[axes={{0}}]", [T("float", np.zeros((2, 0)))], np.zeros((1, 0)))
        values = {"mean": 0, "max": -128, "min": 127}
        w.case(f"{op}[axes={{1}}]", [T("int8", np.zeros((2, 0)))],
               np.full((2, 1), values.get(name, EMPTY[name])))
    x = T("float", [[1, math.nan, 3], [math.nan, 2, 1], [math.inf, -math.inf, 0]])
    for name in ("max", "min", "sum", "mean", "prod"):
        w.case(f"reduce_{name}[axes={{1}}]", [x], FOLDS[name](x.a, axis=1, keepdims=True))
    w.case("reduce_max[axes={1}]", [T("fp8e4m3fn", np.zeros((1, 0)))], [[-448]])


def reduction_shapes(w):
    x = D("float", (1, 4, "n"), 3, 5)
    w.case("reduce_sum[axes={1}]", [x], shape="dynamic, float_type, {n[1..4], 1, 5}")
    w.case("reduce_sum[axes={0}]", [x], shape="float_type, {1, 3, 5}, {15, 5, 1}")
    w.case("reduce_sum", [D("half", 2, 3), D("int64", 1)], shape="dynamic, half_type, {[1..2], [1..3]}")
    w.case("reduce_sum", [D("half", (0, 5), 3), D("int64", (0, 2))],
           shape="dynamic, half_type, {[0..5], [1..3]}")
    w.case("reduce_max[axes={3}]", [x], fails="axis 3 is out of range for rank 3")
    w.case("reduce_max[axes={-4}]", [x], fails="axis -4 is out of range for rank 3")
    w.case("reduce_max[axes={1, -2}]", [x], fails="axis 1 is given twice")
    w.case("reduce_mean", [D("string", 2)], fails="input 0 must be of numbers, not string_type")
    w.case("reduce_mean", [D("float", 2), D("float", 1)], fails="must be of an integral type")
    w.case("reduce_mean", [D("float", None)], shape="unranked, float_type")
    w.case("reduce_sum", [D("float", 2, 3), T("int64", [7])], aborts="axis 7 is out of range")


def arg_reference(x, axis, largest, last):
    v = np.moveaxis(x, axis, -1)
    key = v if largest else -v.astype(object if v.dtype.kind in "iu" else v.dtype)
    if last:
        n = v.shape[-1]
        if v.dtype.kind == "f":
            r = n - 1 - np.argmax(key[..., ::-1], -1)
        else:
            r = np.array([n - 1 - int(np.argmax(np.array(k[::-1]))) for k in key.reshape(-1, n)]).reshape(key.shape[:-1])
    else:
        r = np.argmax(key, -1)
    return np.expand_dims(r, axis)


def args(w):
    for op, largest in [("argmax", True), ("argmin", False)]:
        for last in (False, True):
            attr = f",select_last_index={int(last)}" if last else ""
            for type in ["float", "half", "double", "bf16", "fp8e5m2", "int8", "int64", "uint64", "bool"]:
                x = w.random(type, (3, 7), -2, 2)
                a = x.a.astype(np.int64) if type in ("bool", "uint64") else x.a
                w.case(f"{op}[axis=1{attr}]", [x], arg_reference(a, 1, largest, last), "int64")
            x = w.random("float", (2, 3, 4))
            w.case(f"{op}[axis=-2{attr}]", [x], arg_reference(x.a, 1, largest, last), "int64")
            x = T("float", [[1, math.nan, 5, math.nan], [math.inf, 2, math.inf, 3]])
            w.case(f"{op}[axis=1{attr}]", [x],
                   [[3 if last else 1], [(2 if last else 0) if largest else 1]], "int64")
        x = T("uint64", [2**63 + 1, 7, 2**63])
        w.case(f"{op}[axis=0]", [x], [0 if largest else 1], "int64")
        w.case(f"{op}[axis=0]", [T("float", np.zeros((2, 0)))], np.zeros((1, 0)), "int64")
        w.case(f"{op}[axis=1]", [D("float", 2, 0)], fails="axis 1 has length 0")
        w.case(f"{op}[axis=2]", [D("float", 2, 3)], fails="axis 2 is out of range for rank 2")
        w.case(f"{op}[axis=0]", [D("string", 2)], fails="must be of numbers")
        w.case(f"{op}[axis=0]", [D("float", (1, 9), (2, 4))], shape="dynamic, int64_type, {1, [2..4]}")


def scan_reference(x, axis, exclusive, reverse, product):
    v = np.flip(x, axis) if reverse else x
    v = (np.cumprod if product else np.cumsum)(v, axis=axis)
    if exclusive:
        v = np.roll(v, 1, axis)
        np.moveaxis(v, axis, 0)[0] = 1 if product else 0
    return np.flip(v, axis) if reverse else v


def scans(w):
    for op, product in [("prefix_scan_sum", False), ("prefix_scan_prod", True)]:
        for exclusive in (0, 1):
            for reverse in (0, 1):
                attr = f"exclusive={exclusive},reverse={reverse}"
                for type in ["float", "half", "double", "int32", "uint8", "int64"]:
                    x = w.random(type, (2, 5), -2, 2)
                    r = scan_reference(x.a, 1, exclusive, reverse, product)
                    w.case(f"{op}[axis=1,{attr}]", [x], r if type in FLOATS else wrap(r, type))
                x = w.random("float", (3, 2, 2), -2, 2)
                w.case(f"{op}[axis=-3,{attr}]", [x], scan_reference(x.a, 0, exclusive, reverse, product))
        w.case(f"{op}[axis=0]", [T("float", np.zeros((0, 3)))], np.zeros((0, 3)))
        x = w.broadcast("float", (2, 4), (1,))
        w.case(f"{op}[axis=1]", [x], scan_reference(x.a, 1, 0, 0, product))
        w.case(f"{op}[axis=1]", [D("float", 3)], fails="axis 1 is out of range for rank 1")
        w.case(f"{op}[axis=0]", [D("float", (1, 3))], shape="dynamic, float_type, {[1..3]}")
    x = T("int8", [100, 100, 100])
    w.case("prefix_scan_sum[axis=0]", [x], [100, -56, 44])
    x = T("float", [1, math.inf, -math.inf, 2])
    w.case("prefix_scan_sum[axis=0]", [x], [1, math.inf, math.nan, math.nan])


def softmax(x, axis, log):
    shifted = x - np.max(x, axis=axis, keepdims=True)
    total = np.sum(np.exp(shifted), axis=axis, keepdims=True)
    return shifted - np.log(total) if log else np.exp(shifted) / total


def softmaxes(w):
    for op, log in [("softmax", False), ("logsoftmax", True)]:
        for type in FLOATS + FP8[2:3]:
            for axis in (0, 1, -1):
                x = w.random(type, (2, 3, 4))
                w.case(f"{op}[axis={axis}]", [x], softmax(x.a, axis, log),
                       tol=(0.02, 0.3) if type in FP8 else None)
        x = w.random("float", (2, 3))
        w.case(op, [x], softmax(x.a, 1, log))  # axis=1 unless said otherwise
        x = T("float", [[1000, 1001, 999], [-1e30, 0, 1], [3, -math.inf, 3]])
        w.case(op, [x], softmax(x.a, 1, log))
        x = T("float", [[-math.inf, -math.inf], [math.nan, 1], [math.inf, 1]])
        w.case(op, [x], np.full((3, 2), math.nan))
        w.case(op, [T("float", np.zeros((2, 0)))], np.zeros((2, 0)))
        w.case(op, [D("int32", 2, 3)], fails="must be of a float type")
        w.case(op, [D("float", 3)], fails="axis 1 is out of range for rank 1")
        w.case(op, [D("float", (1, 4, "n"), (2, 3))], shape="dynamic, float_type, {n[1..4], [2..3]}")
        x = T("float", np.arange(6).reshape(2, 3), (1, 2))
        w.case(op, [x], softmax(x.a, 1, log), strides=(1, 2))


def cases(w):
    reductions(w)
    reduction_shapes(w)
    args(w)
    scans(w)
    softmaxes(w)
