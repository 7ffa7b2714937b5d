# SPDX-License-Identifier: MIT
"""Quantisation, unpacking and capture, by the formulas in numpy."""
import math

import ml_dtypes
import numpy as np
from make_cases import D, DTYPES, FP8, T

RANGE = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-2**15, 2**15 - 1), "uint16": (0, 2**16 - 1),
         "int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3), "int32": (-2**31, 2**31 - 1)}
NUMBER = {"half_type": 1, "int8": 5, "uint8": 4, "int16": 7, "uint16": 6, "int4": 19, "uint4": 20, "int2": 21,
          "uint2": 22, "int32": 8, "fp8e4m3fnuz": 12, "fp8e4m3fn": 13, "fp8e5m2": 14, "fp8e5m2fnuz": 16,
          "fp4e2m1": 23}


def quantize(x, scale, zero, type):
    """x and scale as arrays of their own type: the quotient is rounded to it."""
    with np.errstate(all="ignore"):
        q = np.asarray(x / scale).astype(np.float64)
    low, high = RANGE[type]
    q = np.rint(q) + zero
    return np.where(np.isnan(q), low, np.clip(q, low, high))


def quantizing(w):
    for type in RANGE:
        for kind in ("float", "half", "double", "bf16"):
            x, s = w.random(kind, (3, 8), -40, 40), w.random(kind, (3, 8), 0.25, 2)
            z = w.random(type, (3, 8), max(RANGE[type][0], -20), min(RANGE[type][1], 20))
            w.case("quantizelinear", [x, s, z], quantize(x.raw, s.raw, z.a, type), type)
            w.case(f"quantizelinear[out_type={NUMBER[type]}]", [x, s], quantize(x.raw, s.raw, 0, type), type)
            if type in ("int8", "uint8"):
                w.case(f"quantizelinear[out_type={NUMBER[type]}]", [x, s, z], quantize(x.raw, s.raw, z.a, type), type)
            y = w.random(type, (3, 8), *RANGE[type])
            s = w.random(kind, (3, 8), -2, 2)
            r = (y.a - z.a) * s.a
            w.case("dequantizelinear", [y, s, z], r.astype(DTYPES[kind]).astype(float), kind)
            w.case("dequantizelinear", [y, s], (y.a * s.a).astype(DTYPES[kind]).astype(float), kind)
    # ties to even, saturation, specials
    x = T("float", [0.5, 1.5, 2.5, -0.5, -1.5, 1e30, -1e30, math.inf, -math.inf, math.nan, 127.5, 254.5, 255.5])
    one = T("float", np.ones(13))
    w.case("quantizelinear", [x, one], quantize(x.raw, one.raw, 0, "uint8"), "uint8")
    w.case("quantizelinear", [x, one, T("int8", np.full(13, 3))], quantize(x.raw, one.raw, 3, "int8"), "int8")
    # a quotient that is a tie in float though not in double
    x, s = T("float", [0.15, 0.35, 8.55]), T("float", [0.1, 0.1, 0.1])
    w.case("quantizelinear", [x, s], quantize(x.raw, s.raw, 0, "uint8"), "uint8")
    w.case("quantizelinear", [T("int32", [300, -7, 5]), T("float", [2, 2, 2])], [150, 0, 2], "uint8")
    w.case("quantizelinear", [T("float", [1, -1, 0]), T("float", [0, 0, 0])], [255, 0, 0], "uint8")
    for type in FP8 + ["fp4e2m1"]:
        top = {"fp8e4m3fn": 448, "fp8e4m3fnuz": 240, "fp8e5m2": 57344, "fp8e5m2fnuz": 57344, "fp4e2m1": 6}[type]
        x = T("float", [1e9, -1e9, 0.3, -2.6, 0, top, 1.5, 0.01])
        s = T("float", [2, 2, 1, 1, 1, 1, 0.5, 1])
        r = np.clip((x.raw / s.raw).astype(float), -top, top).astype(DTYPES[type]).astype(float)
        w.case(f"quantizelinear[out_type={NUMBER[type]}]", [x, s], r, type)
        y = T(type, [0.5, -1, 2, 6])
        w.case("dequantizelinear", [y, T("float", [2, 2, 0.5, 3])], [1, -2, 1, 18], "float")
    x = w.random("float", (2, 3, 4), -9, 9)
    s, z = w.broadcast("float", (2, 3, 4), (0, 2), 0.1, 0.2), w.broadcast("int8", (2, 3, 4), (0, 1, 2))
    w.case("quantizelinear", [x, s, z], quantize(x.raw, s.raw, z.a, "int8"), "int8")
    w.case("quantizelinear", [T("float", np.zeros((0, 2))), T("float", np.zeros((0, 2)))], np.zeros((0, 2)), "uint8")

    x, s = D("float", (1, 4, "n"), 3), D("float", (1, 4), 3)
    w.case("quantizelinear", [x, s], shape="dynamic, uint8_type, {n[1..4], 3}")
    w.case("quantizelinear[out_type=5]", [x, s], shape="dynamic, int8_type, {n[1..4], 3}")
    w.case("quantizelinear[out_type=int8_type]", [x, s], shape="dynamic, int8_type, {n[1..4], 3}")
    w.case("quantizelinear", [x, s, D("int16", (2, 9), 3)], shape="dynamic, int16_type, {n[2..4], 3}")
    w.case("quantizelinear[out_type=5]", [x, s, D("uint8", 1, 3)], fails="Types do not match: zero point is uint8_type, the result int8_type")
    w.case("quantizelinear", [x, D("float", 5, 3)], fails="Dimensions do not match")
    w.case("quantizelinear", [x, D("int32", 4, 3)], fails="must be of a float type")
    w.case("quantizelinear", [D("string", 4, 3), s], fails="must be of numbers")
    w.case("quantizelinear[out_type=0]", [x, s], fails="cannot quantize to bool_type")
    w.case("dequantizelinear", [D("int8", 2, 3), D("half", 2, 3)], shape="half_type, {2, 3}, {3, 1}")
    w.case("dequantizelinear", [D("int8", 2, 3), D("half", 2, 3), D("uint8", 2, 3)], fails="Types do not match: zero point is uint8_type")
    w.case("dequantizelinear", [D("int8", None), D("half", None)], shape="unranked, half_type")


def unpacking(w):
    for bits in range(1, 9):
        x = w.random("uint8", (2, 3, 5), 0, 255)
        n = x.shape[-1] * 8 // bits
        rows = x.a.reshape(-1, x.shape[-1])
        y = [[(int.from_bytes(bytes(map(int, r)), "little") >> (bits * i)) % 2**bits for i in range(n)] for r in rows]
        w.case(f"unpack_nbits[bits={bits}]", [x], np.array(y).reshape(2, 3, n))
    w.case("unpack_nbits[bits=4]", [T("uint8", np.zeros((2, 0)))], np.zeros((2, 0)))
    w.case("unpack_nbits[bits=2]", [D("uint8", 3, (1, 4))], shape="dynamic, uint8_type, {3, [4..16]}")
    for bits in (0, 9, -1):
        w.case(f"unpack_nbits[bits={bits}]", [D("uint8", 3)], fails=f"bits {bits} is out of range 1..8")
    w.case("unpack_nbits", [D("int8", 3)], fails="takes uint8_type, not int8_type")
    w.case("unpack_nbits", [D("uint8")], fails="at least 1 dimensions")


def blocks(w):
    for bits, columns, count, length in ((4, 64, 2, 16), (4, 50, 2, 16), (8, 33, 3, 16), (2, 70, 3, 8), (2, 96, 3, 8)):
        for kind in ("float", "half", "bf16"):
            x, s = w.random("uint8", (3, count, length), 0, 255), w.random(kind, (3, count), -1, 1)
            per = 8 // bits
            q = np.stack([(x.a.astype(np.int64) >> (bits * i)) % 2**bits for i in range(per)], axis=-1)
            q = q.reshape(3, count, length * per)
            flat = (3, count * length * per)
            zeros = (None, w.random("uint8", (3, count), 0, 2**bits - 1), w.random(kind, (3, count), 0, 2**bits - 1))
            for z in zeros:
                zero = 2**(bits - 1) if z is None else z.a[:, :, None]
                y = ((q - zero) * s.a[:, :, None]).reshape(flat)[:, :columns]
                w.case(f"dequantize_blocks[bits={bits},columns={columns}]", [x, s] + ([] if z is None else [z]), y, kind)
    x, s = D("uint8", 3, 2, 16), D("float", 3, 2)
    for columns in (32, 65, -1):
        w.case(f"dequantize_blocks[columns={columns}]", [x, s], fails=f"{columns} columns do not end in the last of 2 blocks")
    w.case("dequantize_blocks[bits=3,columns=64]", [x, s], fails="bits is 3, not 2, 4 or 8")
    w.case("dequantize_blocks[columns=64]", [D("int8", 3, 2, 16), s], fails="takes uint8_type, not int8_type")
    w.case("dequantize_blocks[columns=64]", [x, D("float", 3, 1)], fails="length")
    w.case("dequantize_blocks[columns=64]", [x, s, D("half", 3, 2)], fails="zero points are half_type, scales float_type")
    w.case("dequantize_blocks[columns=64]", [x, D("int8", 3, 2)], fails="must be of a float type")


def experts(w):
    """Rows by one of several matrices, floats or packed as above."""
    which = np.array([2, 0, 2, 2, 0, 1], np.int64)

    def product(x, matrices, per):
        return np.stack([matrices[e] @ x[i // per] for i, e in enumerate(which)])

    for kind in ("float", "half"):
        for per in (1, 2):
            x, m = w.random(kind, (6 // per, 5), -1, 1), w.random(kind, (3, 4, 5), -1, 1)
            w.case(f"expert_dot[per={per}]", [x, T("int64", which), m], product(x.a, m.a, per), kind)
    for bits in (2, 4, 8):
        for kind in ("uint8", "float", None):
            q = np.random.default_rng(bits).integers(0, 2**bits, (3, 4, 2, 32))
            per = 8 // bits
            x, bytes = w.random("float", (6, 64), -1, 1), sum(q[..., i::per] << (bits * i) for i in range(per))
            s = w.random("float", (3, 4, 2), 0, 1)
            z = kind and w.random(kind, (3, 4, 2), 0, 2**bits - 1)
            m = ((q - (z.a if z else 2**(bits - 1))[..., None]) * s.a[..., None]) if z else (q - 2**(bits - 1)) * s.a[..., None]
            w.case(f"expert_dot[bits={bits}]", [x, T("int32", which), T("uint8", bytes), s] + ([z] if z else []),
                   product(x.a, m.reshape(3, 4, 64), 1), tol=(1e-4, 1e-3))
    x, m, four = D("float", 6, 5), D("float", 3, 4, 5), D("uint8", 3, 4, 2, 16)
    w.case("expert_dot", [x, D("int64", 5), m], fails="6 rows for 5 indices, 1 each")
    w.case("expert_dot[per=0]", [x, D("int64", 6), m], fails="per is 0, below 1")
    w.case("expert_dot", [x, D("int64", 6), D("float", 3, 4, 6)], fails="length")
    w.case("expert_dot[bits=3]", [x, D("int64", 6), four, D("float", 3, 4, 2)], fails="bits is 3, not 0, 2, 4 or 8")
    w.case("expert_dot[bits=4]", [x, D("int64", 6), four], fails="expected 4, given 3")
    w.case("expert_dot[bits=4]", [x, D("int64", 6), four, D("float", 3, 4, 2)],
           fails="2 blocks of 16 bytes do not make a depth of 5")
    w.case("expert_dot", [T("float", np.ones((1, 2))), T("int64", [3]), T("float", np.ones((3, 1, 2)))],
           aborts="index 3 is out of range for 3 matrices")


def cases(w):
    quantizing(w)
    unpacking(w)
    blocks(w)
    experts(w)
    x = w.random("half", (2, 3))
    w.case("capture[ins_index=3]", [x], x.a)
