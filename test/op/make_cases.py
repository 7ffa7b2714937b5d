#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes test/op/cases/*.txt, operator cases whose expected values come from numpy.

    python3 test/op/make_cases.py [NAME...]     needs numpy and ml_dtypes

Every module test/op/reference/NAME.py defines cases(w); what it adds becomes cases/NAME.txt. The
files are committed: running the tests needs no Python. Format: case_format.h.

    def cases(w):
        x = w.random("float", (2, 3))
        w.case("relu", [x], np.maximum(x.a, 0))             # values; type of the first input
        w.case("concat[axis=5]", [x, x], fails="axis 5 is out of range")
        w.case("identity", [D("float", (1, 4), 3)], shape="dynamic, float_type, {[1..4], 3}")

Compute references in float64 on what the inputs really hold (x.a is float64 or int64 of the rounded
values) and let the writer round to the output's type.
"""
import importlib
import pathlib
import sys

import ml_dtypes
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent

DTYPES = {
    "bool": np.bool_, "half": np.float16, "float": np.float32, "double": np.float64,
    "uint8": np.uint8, "int8": np.int8, "uint16": np.uint16, "int16": np.int16,
    "int32": np.int32, "int64": np.int64, "uint32": np.uint32, "uint64": np.uint64,
    "bf16": ml_dtypes.bfloat16, "fp8e4m3fn": ml_dtypes.float8_e4m3fn,
    "fp8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "fp8e5m2": ml_dtypes.float8_e5m2,
    "fp8e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "fp8e8m0": ml_dtypes.float8_e8m0fnu,
    "fp4e2m1": ml_dtypes.float4_e2m1fn, "int4": np.int8, "uint4": np.uint8, "int2": np.int8,
    "uint2": np.uint8, "fp4x2": np.uint8, "string": object, "complex64": np.complex64,
    "complex128": np.complex128,
}
FLOATS = ["half", "bf16", "float", "double"]
FP8 = ["fp8e4m3fn", "fp8e4m3fnuz", "fp8e5m2", "fp8e5m2fnuz"]
INTS = ["uint8", "int8", "uint16", "int16", "int32", "int64", "uint32", "uint64"]
NUMBERS = FLOATS + INTS
ANY = NUMBERS + FP8 + ["bool"]


class T:
    """A tensor: type, values (rounded to the type), and strides or None. `a` are the values as
    float64, int64 or uint64 (bool, strings and complex as they are)."""

    def __init__(self, type, values, strides=None, known=False):
        self.type, self.strides, self.known = type, strides, known
        exact = isinstance(values, list) and not is_float(type) and not type.startswith("complex")
        values = np.array(values, dtype=object) if exact else np.asarray(values)
        with np.errstate(all="ignore"):
            self.raw = values.astype(DTYPES[type])
        self.shape = self.raw.shape
        if is_float(type):
            self.a = self.raw.astype(np.float64)
        elif type == "uint64":
            self.a = self.raw
        elif type in ("string", "bool", "complex64", "complex128"):
            self.a = self.raw
        else:
            self.a = self.raw.astype(np.int64)

    def text(self):
        lens = "{" + ", ".join(map(str, self.shape)) + "}"
        if self.strides is not None:
            lens += " {" + ", ".join(map(str, self.strides)) + "}"
        head = ("known " if self.known else "") + f"{self.type} {lens} ="
        return wrap(head, [self.one(v) for v in self.raw.reshape(-1)])

    def one(self, v):
        if self.type == "string":
            return quote(v)
        if self.type.startswith("complex"):
            return f"{number(v.real)}:{number(v.imag)}"
        if is_float(self.type):
            return number(v)
        return str(int(v))


class D:
    """A shape alone, each length a number or a range (min, max[, name]); None for unranked."""

    def __init__(self, type, *dims):
        self.type, self.dims = type, dims

    def text(self):
        if self.dims == (None,):
            return f"{self.type} *"
        return f"{self.type} {{" + ", ".join(self.dim(d) for d in self.dims) + "}"

    @staticmethod
    def dim(d):
        if not isinstance(d, tuple):
            return str(d)
        low, high = d[0], "" if d[1] is None else d[1]
        return f"[{low}..{high}{' ' + d[2] if len(d) > 2 else ''}]"


class Group:
    """A tuple or a sequence of tensors; `type` says what an empty sequence holds."""

    def __init__(self, kind, items, type="float"):
        self.kind, self.items, self.type = kind, items, type

    def text(self):
        head = f"{self.kind} {len(self.items)}" + ("" if self.items else f" {self.type}")
        return "\n".join([head] + ["item " + t.text() for t in self.items])


def Tuple(*items):
    return Group("tuple", items)


def Seq(*items, type="float"):
    return Group("sequence", items, type)


def is_float(type):
    return type in FLOATS + FP8 + ["fp8e8m0", "fp4e2m1"]


def number(v):
    """Shortest text that reads back as the same value of v's own type."""
    f = float(v)
    if f != f or f in (float("inf"), float("-inf")):
        return str(f)
    if f == int(f) and abs(f) < 1e15:
        return "-0.0" if f == 0 and str(f)[0] == "-" else str(int(f))
    kind = type(v)
    return str(v) if kind in (np.float16, np.float32) else repr(f)


def quote(s):
    out = s.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + out + '"'


def wrap(head, words, width=100):
    lines, line = [], head
    for word in words:
        if len(line) + 1 + len(word) > width:
            lines.append(line)
            line = "   " + word
        else:
            line += " " + word
    return "\n".join(lines + [line])


class Writer:
    def __init__(self, name):
        self.rng = np.random.default_rng(abs(hash_name(name)))
        self.parts = []

    # --- inputs ---
    def random(self, type, shape, low=-4, high=4, strides=None):
        """Values nobody chose; integers over [low, high], floats with few digits."""
        if type == "string":
            words = ["", "a", "bc", "naïve", "x y", "0123456789"]
            return T(type, self.rng.choice(np.array(words, dtype=object), shape), strides)
        if type == "bool":
            return T(type, self.rng.integers(0, 2, shape), strides)
        if is_float(type):
            return T(type, np.round(self.rng.uniform(low, high, shape), 3), strides)
        if type.startswith("uint"):
            low = max(low, 0)
        return T(type, self.rng.integers(low, high + 1, shape), strides)

    def broadcast(self, type, shape, axes, low=-4, high=4):
        """Random values with stride 0 along `axes`."""
        small = [1 if i in axes else n for i, n in enumerate(shape)]
        base = self.random(type, small, low, high)
        strides = [0 if i in axes else s for i, s in enumerate(packed(small))]
        return T(type, np.broadcast_to(base.raw, shape), strides)

    # --- cases ---
    def comment(self, text):
        self.parts.append("# " + text)

    def case(self, op, inputs, out=None, type=None, shape=None, fails=None, aborts=None, tol=None,
             skip=(), strides=None):
        """out: array (type: that of the first input unless given), T, or Group."""
        lines = [f"op {op}"]
        lines += ["in " + ("-" if t is None else t.text()) for t in inputs]
        if shape is not None:
            lines.append(f"shape {shape}")
        if fails is not None:
            lines.append(f"fails {fails}")
        if aborts is not None:
            lines.append(f"aborts {aborts}")
        if tol is not None:
            lines.append(f"tol {tol[0]:g} {tol[1]:g}")
        lines += [f"skip {s}" for s in skip]
        if out is not None:
            if not isinstance(out, (T, Group)):
                out = T(type or inputs[0].type, out, strides)
            lines.append("out " + out.text())
        self.parts.append("\n".join(lines))

    def program(self, text, inputs, outs=(), fails=None, aborts=None):
        lines = ["program", text.strip("\n"), "end"]
        lines += ["in " + t.text() for t in inputs]
        if fails is not None:
            lines.append(f"fails {fails}")
        if aborts is not None:
            lines.append(f"aborts {aborts}")
        lines += ["out " + t.text() for t in outs]
        self.parts.append("\n".join(lines))


def packed(shape):
    strides, step = [], 1
    for n in reversed(shape):
        strides.insert(0, step)
        step *= max(n, 1)
    return strides


def hash_name(name):
    h = 2166136261
    for c in name.encode():
        h = (h ^ c) * 16777619 % 2**32
    return h


def main():
    sys.path.insert(0, str(HERE))
    sys.modules["make_cases"] = sys.modules["__main__"]
    names = sys.argv[1:] or sorted(p.stem for p in (HERE / "reference").glob("*.py"))
    for name in names:
        w = Writer(name)
        with np.errstate(all="ignore"):
            importlib.import_module(f"reference.{name}").cases(w)
        head = f"# Written by make_cases.py from reference/{name}.py; edit that.\n\n"
        (HERE / "cases" / f"{name}.txt").write_text(head + "\n\n".join(w.parts) + "\n")
        print(f"{name}: {sum(not p.startswith('#') for p in w.parts)} cases")


if __name__ == "__main__":
    main()
