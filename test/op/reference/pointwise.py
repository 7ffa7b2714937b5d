# SPDX-License-Identifier: MIT
"""Scalar operators against numpy (and math.erf)."""
import math

import numpy as np
from make_cases import ANY, D, DTYPES, FLOATS, FP8, INTS, NUMBERS, T, is_float

ERF = np.vectorize(math.erf, otypes=[float])

# name: (formula on float64, low, high of the random inputs, types beside the floats)
UNARY = {
    "abs": (np.abs, -9, 9, INTS), "acos": (np.arccos, -1.2, 1.2, []),
    "acosh": (np.arccosh, 0.5, 9, []), "asin": (np.arcsin, -1.2, 1.2, []),
    "asinh": (np.arcsinh, -9, 9, []), "atan": (np.arctan, -9, 9, []),
    "atanh": (np.arctanh, -1.2, 1.2, []), "ceil": (np.ceil, -4, 4, INTS),
    "cos": (np.cos, -9, 9, []), "cosh": (np.cosh, -4, 4, []), "erf": (ERF, -3, 3, []),
    "exp": (np.exp, -4, 4, ["int32"]), "floor": (np.floor, -4, 4, INTS),
    "log": (np.log, -0.5, 9, []), "log2": (np.log2, -0.5, 9, []),
    "nearbyint": (np.rint, -4, 4, INTS), "neg": (np.negative, -9, 9, INTS),
    "recip": (lambda x: 1 / x, -4, 4, []), "relu": (lambda x: np.maximum(x, 0), -4, 4, INTS),
    "rsqrt": (lambda x: 1 / np.sqrt(x), -0.5, 9, []),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -9, 9, []), "sign": (np.sign, -4, 4, INTS),
    "sin": (np.sin, -9, 9, []), "sinh": (np.sinh, -4, 4, []), "sqrt": (np.sqrt, -0.5, 9, ["int32"]),
    "tan": (np.tan, -1.5, 1.5, []), "tanh": (np.tanh, -4, 4, []), "trunc": (np.trunc, -4, 4, INTS),
    "elu[alpha=1]": (lambda x: np.where(x > 0, x, np.expm1(x)), -4, 4, []),
    "elu[alpha=0.5]": (lambda x: np.where(x > 0, x, 0.5 * np.expm1(x)), -4, 4, []),
    "leaky_relu[alpha=0.25]": (lambda x: np.where(x > 0, x, 0.25 * x), -4, 4, []),
    "gelu": (lambda x: x / 2 * (1 + ERF(x / math.sqrt(2))), -3, 4, []),
    "gelu_tanh": (lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))), -3, 4, []),
    "mish": (lambda x: x * np.tanh(np.logaddexp(0, x)), -9, 9, []),
    "silu": (lambda x: x * (1 / (1 + np.exp(-x))), -9, 9, []),
    "softplus": (lambda x: np.logaddexp(0, x), -9, 9, []),
    "swish[alpha=1.702]": (lambda x: x * (1 / (1 + np.exp(-1.702 * x))), -5, 5, []),
    "hard_sigmoid[alpha=0.2,beta=0.5]": (lambda x: np.clip(0.2 * x + 0.5, 0, 1), -4, 4, []),
    "hard_swish[alpha=0.25,beta=0.5]": (lambda x: x * np.clip(0.25 * x + 0.5, 0, 1), -4, 4, []),
}
SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -0.5, 2.5, -2.5, 1e30, -1e-30]

BINARY = {
    "add": np.add, "div": np.true_divide, "fmod": np.fmod, "max": np.maximum, "min": np.minimum,
    "mod": np.mod, "mul": np.multiply, "pow": np.power, "sub": np.subtract,
    "prelu": lambda x, y: np.where(x < 0, x * y, x), "sqdiff": lambda x, y: (x - y) ** 2,
    "equal": np.equal, "greater": np.greater, "less": np.less,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}
BOOL = ("logical_and", "logical_or", "logical_xor")


def wrapped(values, type):
    """Python integers to the type, modulo its width."""
    bits = np.dtype(DTYPES[type]).itemsize * 8
    low = -(1 << (bits - 1)) if type.startswith("int") else 0
    return np.array([(int(v) - low) % (1 << bits) + low for v in values], dtype=object)


def int_binary(name, x, y):
    """One element by the definition, in Python's unbounded integers."""
    quotient = lambda: 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return {
        "add": lambda: x + y, "sub": lambda: x - y, "mul": lambda: x * y, "div": quotient,
        "fmod": lambda: 0 if y == 0 else x - quotient() * y, "mod": lambda: 0 if y == 0 else x % y,
        "max": lambda: max(x, y), "min": lambda: min(x, y), "equal": lambda: x == y,
        "greater": lambda: x > y, "less": lambda: x < y, "sqdiff": lambda: (x - y) ** 2,
        "prelu": lambda: x * y if x < 0 else x,
        "pow": lambda: x ** y if y >= 0 else (1 if x == 1 else (-1) ** y if x == -1 else 0),
        "bitwise_and": lambda: x & y, "bitwise_or": lambda: x | y, "bitwise_xor": lambda: x ^ y,
    }[name]()


def extremes(type):
    info = np.iinfo(DTYPES[type])
    return [info.min, info.max, 0, 1, 2, 3, info.max - 1] + ([-1, -2] if info.min else [])


def unary(w):
    for name, (f, low, high, more) in UNARY.items():
        for type in FLOATS + FP8[:1] + more:
            x = w.random(type, (7,), low, high)
            if type.startswith("fp8"):
                w.case(name, [x], f(x.a), tol=(0.02, 0.14))
            else:
                w.case(name, [x], f(x.a))
        x = T("float", SPECIAL)
        # a NaN is neither above nor below zero: selections hand it on
        w.case(name, [x], f(x.a))
        x = w.random("float", (2, 0, 3))
        w.case(name, [x], f(x.a))
        x = w.random("float", (), max(low, 0.6), min(high, 0.9) if high < 2 else high)
        w.case(name, [x], f(x.a))
        x = w.broadcast("double", (2, 3, 2), (1,), low, high)
        w.case(name, [x], f(x.a))
    for type in ["int8", "int32", "int64"]:
        x = T(type, extremes(type))
        w.case("abs", [x], wrapped([abs(v) for v in extremes(type)], type))
        w.case("neg", [x], wrapped([-v for v in extremes(type)], type))
    x = T("float", SPECIAL)
    w.case("isnan", [x], np.isnan(x.a), "bool")
    w.case("isinf", [x], np.isinf(x.a), "bool")
    w.case("not", [x], x.a == 0, "bool")
    x = w.random("int32", (5,))
    w.case("isnan", [x], np.zeros(5), "bool")
    w.case("not", [x], x.a == 0, "bool")
    x = w.random("bool", (5,))
    w.case("not", [x], np.logical_not(x.a))
    for type in INTS:
        x = T(type, extremes(type))
        w.case("bitwise_not", [x], wrapped([~v for v in extremes(type)], type))
    w.case("bitwise_not", [w.random("float", (2,))], fails="bitwise_not: type float_type")
    w.case("abs", [w.random("string", (2,))], fails="abs: type string_type")


def binary(w):
    for name, f in BINARY.items():
        out = "bool" if name in BOOL else None
        for type in FLOATS:
            low = 0.25 if name == "pow" else -4
            x, y = w.random(type, (2, 5), low), w.random(type, (2, 5), low)
            w.case(name, [x, y], f(x.a, y.a), out)
        n = len(SPECIAL)
        x, y = T("float", np.repeat(SPECIAL, n)), T("float", np.tile(SPECIAL, n))
        if name not in ("prelu", "mod", "pow"):  # numpy's own choices there are not ours
            w.case(name, [x, y], f(x.a, y.a), out)
        x, y = w.random("float", (3, 0)), w.random("float", (3, 0))
        w.case(name, [x, y], f(x.a, y.a), out)
        x = w.random("float", (2, 3, 4), 0.25)
        y = w.broadcast("float", (2, 3, 4), (0, 2), 0.25)
        w.case(name, [x, y], f(x.a, y.a), out)
    ints = [n for n in BINARY if n not in BOOL] + ["bitwise_and", "bitwise_or", "bitwise_xor"]
    for name in ints:
        for type in INTS:
            e = extremes(type)
            x, y = np.repeat(np.array(e, dtype=object), len(e)), np.tile(np.array(e, dtype=object), len(e))
            if name == "pow":  # unbounded powers of large numbers: keep the exponents small
                y = np.array([int(v) % 7 for v in y], dtype=object)
            r = wrapped([int_binary(name, int(a), int(b)) for a, b in zip(x, y)], type)
            w.case(name, [T(type, x), T(type, y)], r)
    x, y = T("int32", [1, -1, -1, 0, 2, 1]), T("int32", [-3, -3, -2, -1, -1, -9])
    w.case("pow", [x, y], [1, -1, 1, 0, 0, 1])
    x, y = T("bool", [0, 0, 1, 1]), T("bool", [0, 1, 0, 1])
    for name, r in [("bitwise_and", [0, 0, 0, 1]), ("bitwise_or", [0, 1, 1, 1]),
                    ("bitwise_xor", [0, 1, 1, 0]), ("equal", [1, 0, 0, 1]), ("max", [0, 1, 1, 1]),
                    ("logical_xor", [0, 1, 1, 0])]:
        w.case(name, [x, y], r)
    x, y = T("uint8", [1, 255, 7, 1, 1, 200]), T("uint8", [1, 1, 0, 8, 200, 3])
    w.case("bit_shift_left", [x, y], [2, 254, 7, 0, 0, 64])
    w.case("bit_shift_right", [x, y], [0, 127, 7, 0, 0, 25])
    x, y = T("int32", [-8, -1, 8, 5]), T("int32", [1, 31, 2, -1])
    w.case("bit_shift_right", [x, y], [-4, -1, 2, 0])
    x, y = T("string", ["a", "", "bc", "bc"]), T("string", ["a", "b", "bc", "bd"])
    w.case("equal", [x, y], [1, 0, 1, 0], "bool")


def ternary(w):
    for type in FLOATS + INTS:
        x, lo, hi = (w.random(type, (6,)) for _ in range(3))
        w.case("clip", [x, lo, hi], np.minimum(np.maximum(x.a, lo.a), hi.a))
    x = T("float", [math.nan, math.inf, -math.inf])
    w.case("clip", [x, T("float", [-1] * 3), T("float", [1] * 3)], [math.nan, 1, -1])
    for type in ANY + ["string", "complex64"]:
        c = w.random("bool", (2, 4))
        if type == "complex64":
            x, y = T(type, np.arange(8).reshape(2, 4) + 1j), T(type, np.full((2, 4), 3 - 2j))
        else:
            x, y = w.random(type, (2, 4)), w.random(type, (2, 4))
        w.case("where", [c, x, y], np.where(c.a, x.raw, y.raw), type)
    c, x, y = T("int32", [0, 2, -1]), T("float", [1, 2, 3]), T("float", [4, 5, 6])
    w.case("where", [c, x, y], [4, 2, 3], "float")


def shapes(w):
    x = D("float", 2, 3)
    w.case("add", [x, D("float", 2, 4)], fails="add: Dimensions do not match: input 0 is {2, 3}, input 1 is {2, 4}")
    w.case("add", [x, D("double", 2, 3)], fails="add: Types do not match")
    w.case("add", [x], fails="add: Wrong number of arguments")
    w.case("where", [D("bool", 2, 3), x, D("int32", 2, 3)], fails="where: Types do not match")
    w.case("where", [D("bool", 2), x, x], fails="where: Dimensions do not match")
    w.case("where", [D("string", 2, 3), x, x], fails="where: condition has type string_type")
    w.case("add", [D("float", (1, 4), 3), D("float", (2, 9), 3)], shape="dynamic, float_type, {[2..4], 3}")
    w.case("add", [D("float", (1, 4), 3), D("float", 2, (0, None))], shape="float_type, {2, 3}, {3, 1}")
    w.case("add", [D("float", (1, 4), 3), D("float", (5, 6), 3)], fails="add: Dimensions do not match")
    w.case("less", [x, x], shape="float_type, {2, 3}, {3, 1}")
    w.case("isnan", [x], shape="bool_type, {2, 3}, {3, 1}")
    w.case("isnan", [D("float", None)], shape="unranked, bool_type")
    # layouts: packed operands decide
    a = T("float", np.arange(6).reshape(2, 3), (1, 2))
    b = T("float", np.arange(6).reshape(2, 3))
    c = T("float", np.tile([1, 2, 3], (2, 1)), (0, 1))
    w.case("relu", [a], a.a, strides=(1, 2))
    w.case("add", [a, a], a.a + a.a, strides=(1, 2))
    w.case("add", [a, b], a.a + b.a, strides=(3, 1))
    w.case("add", [a, c], a.a + c.a, strides=(1, 2))
    w.case("add", [c, a], a.a + c.a, strides=(1, 2))
    w.case("add", [c, c], c.a + c.a, strides=(3, 1))
    w.case("relu", [T("float", np.arange(6).reshape(2, 3), (1, 4))], np.arange(6).reshape(2, 3), strides=(1, 2))


def cases(w):
    unary(w)
    binary(w)
    ternary(w)
    shapes(w)
