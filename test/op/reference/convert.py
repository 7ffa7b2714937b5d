# SPDX-License-Identifier: MIT
"""convert between all pairs of types, bit_cast, pack and unpack."""
import math

import ml_dtypes
import numpy as np
from make_cases import D, DTYPES, FLOATS, FP8, INTS, T, is_float

NUMBER = {"bool": 0, "half": 1, "float": 2, "double": 3, "uint8": 4, "int8": 5, "uint16": 6,
          "int16": 7, "int32": 8, "int64": 9, "uint32": 10, "uint64": 11, "fp8e4m3fnuz": 12,
          "fp8e4m3fn": 13, "fp8e5m2": 14, "bf16": 15, "fp8e5m2fnuz": 16, "int4": 19, "uint4": 20,
          "int2": 21, "uint2": 22, "fp4e2m1": 23, "fp8e8m0": 24, "string": 25, "complex64": 26,
          "complex128": 27}
BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


def op(type):
    return f"convert[target_type={NUMBER[type]}]"


def integer_range(type):
    if type in BITS:
        return (-(1 << (BITS[type] - 1)), (1 << (BITS[type] - 1)) - 1) if type[0] == "i" else (0, (1 << BITS[type]) - 1)
    info = np.iinfo(DTYPES[type])
    return int(info.min), int(info.max)


def to_integer(v, type):
    """Integers wrap, floats are cut off and saturate, NaN is 0."""
    low, high = integer_range(type)
    if isinstance(v, float):
        if math.isnan(v):
            return 0
        return int(min(max(v, low), high)) if math.isfinite(v) else (high if v > 0 else low)
    return (int(v) - low) % (high - low + 1) + low


def samples(w, type):
    if type == "bool":
        return T(type, [0, 1])
    if type in INTS or type in BITS:
        low, high = integer_range(type)
        return T(type, [0, 1, min(2, high), low, high, high - 1] + [int(v) for v in w.rng.integers(max(low, -100), min(high, 100), 4)])
    return T(type, [0.0, -0.0, 1.0, 0.5, -1.75, 2.5, 3.5, math.inf, -math.inf, math.nan] + list(w.rng.uniform(-300, 300, 6)))


def numbers(w):
    types = FLOATS + FP8 + INTS + ["bool"] + list(BITS)
    for a in types:
        x = samples(w, a)
        for b in types:
            if a == b:
                continue
            if b == "bool":
                y = [int(float(v) != 0) for v in x.a]
            elif b in INTS or b in BITS:
                exact = (lambda v: float(v)) if is_float(a) else int
                y = [to_integer(exact(v), b) for v in x.a]
            elif a in INTS and b in FLOATS and b != "double":
                y = np.array([float(int(v)) for v in x.raw]).astype(DTYPES[b])  # by way of double
            else:
                y = x.a.astype(np.float64).astype(DTYPES[b])
            w.case(op(b), [x], T(b, y))
    x = w.random("float", (2, 3), strides=(1, 2))
    w.case(op("double"), [x], T("double", x.a, (1, 2)))
    w.case(op("int8"), [w.random("float", (2, 0))], T("int8", np.zeros((2, 0))))
    w.case(op("half"), [T("double", 1.5)], T("half", 1.5))
    w.case("convert[target_type=17]", [x], fails="attribute 'target_type' cannot be tuple_type")
    w.case("convert", [D("float", (1, 4))], shape="dynamic, half_type, {[1..4]}")
    # narrow floats by the tables of their formats
    x = T("float", [0, 0.25, 0.26, 0.75, 1.25, 2.5, 5, 5.1, 7, 100, -100, math.inf])
    w.case(op("fp4e2m1"), [x], T("fp4e2m1", [0, 0, 0.5, 1, 1, 2, 4, 6, 6, 6, -6, 6]))
    x = T("float", [1, 2, 3, 1.5, 0.75, 2.0**-127, 2.0**127, math.nan])
    w.case(op("fp8e8m0"), [x], x.a.astype(ml_dtypes.float8_e8m0fnu).astype(float), "fp8e8m0")
    x = T("float", [1, 3, 1.5, 0.7, 2.0**-130, 5e38])
    x = T("float", [1, 3, 1.5, 0.7, 2.0**-130])
    w.case("convert_e8m0[rounding=up,saturate=1]", [x], [1, 4, 2, 1, 2.0**-127], "fp8e8m0")
    w.case("convert_e8m0[rounding=down,saturate=1]", [x], [1, 2, 1, 0.5, 2.0**-127], "fp8e8m0")
    w.case("convert_e8m0[rounding=nearest,saturate=1]", [x], [1, 4, 2, 0.5, 2.0**-127], "fp8e8m0")


def others(w):
    x = T("string", ["3", "-4", "2.5", "1e2", "NaN", "INF", "-inf", "+7"])
    w.case(op("float"), [x], [3, -4, 2.5, 100, math.nan, math.inf, -math.inf, 7], "float")
    x = T("string", ["3", "-4", "2.9", "1e2", "+7"])
    w.case(op("int32"), [x], T("int32", [3, -4, 2, 100, 7]))
    x = T("string", ["18446744073709551615", "9223372036854775808"])
    w.case(op("uint64"), [x], T("uint64", [2**64 - 1, 2**63]))
    for bad in ("", "x", "1x", "1 2"):
        w.case(op("float"), [T("string", [bad])], aborts=f'convert: "{bad}" is not a number of float_type')
    x = T("float", [0.1, 3, -2.5, 1e20, 16777216, math.nan, math.inf, -math.inf])
    w.case(op("string"), [x], T("string", ["0.1", "3", "-2.5", "1e+20", "16777216", "NaN", "INF", "-INF"]))
    x = T("double", [0.1, 1 / 3])
    w.case(op("string"), [x], T("string", ["0.1", "0.3333333333333333"]))
    w.case(op("string"), [T("uint64", [2**64 - 1])], T("string", ["18446744073709551615"]))
    w.case(op("string"), [T("int64", [-2**63])], T("string", ["-9223372036854775808"]))
    x = T("complex64", [1 + 2j, -3.5 - 1j])
    w.case(op("complex128"), [x], T("complex128", x.raw))
    w.case(op("float"), [x], [1, -3.5], "float")
    w.case(op("complex64"), [T("int8", [-4])], T("complex64", [-4 + 0j]))
    w.case(op("string"), [x], aborts="convert: from complex64_type to string_type")
    x = T("float", [1, -2.5, math.nan])
    w.case("bit_cast[target_type=8]", [x], T("int32", x.raw.view(np.int32)))
    x = T("uint16", [0x3C00, 0x7C00, 0x8000, 1])
    w.case("bit_cast[target_type=1]", [x], T("half", x.raw.view(np.float16)))
    w.case("bit_cast[target_type=15]", [x], T("bf16", x.raw.view(ml_dtypes.bfloat16)))
    w.case("bit_cast[target_type=9]", [x], fails="bit_cast: uint16_type of 2 bytes to type 9")
    w.case("bit_cast[target_type=8]", [D("float", (1, 4), 3)], shape="dynamic, int32_type, {[1..4], 3}")


def packing(w):
    for type, low, high in (("int8", -8, 7), ("uint8", 0, 15)):
        x = w.random(type, (2, 4), low, high)
        u = (x.a & 15)
        y = (u[:, ::2] | u[:, 1::2] << 4).astype(np.uint8)
        packed = T(type, y.view(DTYPES[type]))
        w.case("pack_int4[axis=-1]", [x], packed)
        w.case("unpack_int4[axis=1]", [packed], x.a)
        y = (u[::2] | u[1::2] << 4).astype(np.uint8)
        packed = T(type, y.view(DTYPES[type]))
        w.case("pack_int4[axis=0]", [x], packed)
        w.case("unpack_int4[axis=0]", [packed], x.a)
    # Beyond four bits the nearest that there is: [-8, 7] and [0, 15].
    w.case("pack_int4[axis=1]", [T("int8", [[10, 11], [-9, -128]])], T("int8", [[0x77], [-0x78]]))
    w.case("pack_int4[axis=1]", [T("uint8", [[16, 255], [15, 3]])], T("uint8", [[0xFF], [0x3F]]))
    x = T("float", [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -6])
    code = [0, 1, 2, 3, 4, 5, 6, 7, 9, 15]
    packed = T("fp4x2", [code[i] | code[i + 1] << 4 for i in range(0, 10, 2)])
    w.case("pack_fp4[axis=-1]", [x], packed)
    w.case("unpack_fp4[axis=-1]", [packed], T("float", x.a))
    w.case("pack_int4[axis=0]", [w.random("int8", (3,))], fails="pack_int4: axis 0 has odd length 3")
    w.case("pack_int4[axis=0]", [w.random("float", (2,))], fails="pack_int4: takes int8 or uint8, given float_type")
    w.case("unpack_int4[axis=1]", [w.random("int8", (2,))], fails="unpack_int4: axis 1 is out of range for rank 1")
    w.case("unpack_fp4[axis=0]", [w.random("int8", (2,))], fails="unpack_fp4: takes fp4x2_type, given int8_type")


def cases(w):
    numbers(w)
    others(w)
    packing(w)
