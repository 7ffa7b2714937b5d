# SPDX-License-Identifier: MIT
"""The module's functions, classes and methods called at random, with right and wrong arguments.

Every call returns or raises an ordinary exception; what the memory does is for the sanitizers to see
(`make misuse` runs this file with MGX_MISUSE_SEQUENCES=10000). The names are found by looking, so what
is new is called too.
"""
import inspect
import os
import random

import migraphx
import numpy as np
import pytest

ORDINARY = (RuntimeError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, MemoryError, StopIteration,
            BufferError, NotImplementedError, OSError)
SEQUENCES = int(os.environ.get("MGX_MISUSE_SEQUENCES", "20"))
TEXT = """module: "main"
x = @param:x -> float_type, {2, 3}, {3, 1}
main:@1 = softmax[axis=1](x) -> float_type, {2, 3}, {3, 1}
main:@2 = @return(main:@1)
"""


def junk(r):
    return r.choice([
        lambda: None, lambda: True, lambda: r.choice([0, 1, 2, -1, 7, 1 << 31, 1 << 63, -(1 << 70)]), lambda: r.random() * 1e300,
        lambda: float("nan"), lambda: r.choice(["", "x", "main", "ref", "cpu", "relu", "add", "float_type", "json", "a/b", "\ud800", "n" * 99]),
        lambda: b"\x00\xff", lambda: [], lambda: [1, 2], lambda: [[1], [2, 3]], lambda: ("x", None), lambda: {"x": 1}, lambda: {1: "x"},
        lambda: np.zeros(r.choice([(), (0,), (2, 3), (3, 2)]), r.choice([np.float32, np.int8, bool, complex, object])),
        lambda: np.zeros((4, 6), np.float32)[::2, ::-2], lambda: range(10 ** 12), lambda: object(), lambda: memoryview(b"abcd"),
    ])()


def names(value):
    return [name for name in dir(value) if not name.startswith("_") or name in ("__getitem__", "__len__", "__eq__", "__hash__", "__repr__",
                                                                                "__call__", "__iter__", "__array__", "__dlpack__")]


def start():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[2, 3]))
    return [p, m, x, migraphx.shape(type="float_type", lens=[2, 3]), migraphx.op("relu"), migraphx.argument(np.zeros((2, 3), np.float32)),
            migraphx.get_target("ref"), migraphx.get_target("cpu")]


def call(r, pool):
    """One call of the module or of something that an earlier call made."""
    owner = migraphx if r.random() < 0.3 else r.choice(pool)
    name = r.choice(names(owner))
    member = getattr(owner, name)
    if not callable(member) or inspect.ismodule(member):
        return member

    def argument():
        return r.choice(pool) if r.random() < 0.7 else junk(r)

    def listed():
        return [argument() for _ in range(r.randrange(3))] if r.random() < 0.2 else argument()

    arguments = [listed() for _ in range(r.choice([0, 0, 1, 1, 2, 3, 4]))]
    known = r.choice(["options", "name", "data", "lens", "type", "strides", "inputs", "nothing"])
    keywords = {known: listed()} if r.random() < 0.1 else {}
    return member(*arguments, **keywords)


@pytest.mark.parametrize("first", range(0, SEQUENCES, 20))
def test_any_call_returns_or_raises(first, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)  # any text may be the name of a file
    for seed in range(first, min(first + 20, SEQUENCES)):
        r = random.Random(seed)
        pool = start()
        for _ in range(60):
            try:
                made = call(r, pool)
            except ORDINARY:
                continue
            if type(made).__module__ == "migraphx" and len(pool) < 60:
                pool.append(made)
