#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the ONNX backend suite through the Python module, as the public scoreboard does.

    suite.py [--build build] [--device ref] [--only REGEX] [--verbose]

The cases are those that make_suite.py wrote to BUILD/suite; the module is BUILD/python. Each case runs in a
process of its own with a limit of time, so a crash is one failed case. Types must match, values within the
case's tolerances. Needs numpy, onnx and, for narrow types, ml_dtypes.
"""
import argparse
import collections
import glob
import os
import re
import signal
import sys

import numpy as np
import onnx
from onnx import numpy_helper

SECONDS = 60


def load(path, info):
    """A stored value, read as the message that its declared type asks for."""
    kind = info.type.WhichOneof("value")
    with open(path, "rb") as f:
        data = f.read()
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def load_all(folder, stem, infos):
    paths = [os.path.join(folder, f"{stem}_{i}.pb") for i in range(len(infos))]
    return [load(path, info) for path, info in zip(paths, infos) if os.path.exists(path)]


def compare(got, want, rtol, atol):
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want), f"{len(got)} members, expected {len(want)}"
        for g, w in zip(got, want):
            compare(g, w, rtol, atol)
        return
    if want is None or got is None:
        assert got is None and want is None, "one of the two is empty"
        return
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    if want.dtype == object:
        np.testing.assert_array_equal(got.astype(str), want.astype(str))
        return
    assert got.dtype == want.dtype, f"type {got.dtype}, expected {want.dtype}"
    if want.dtype.name == "bfloat16":
        rtol = max(rtol, 2**-6)  # two units of its last place, as the suite's own runner has it
    if want.dtype.kind == "V" or want.dtype.name.startswith(("float8", "float4", "int4", "uint4", "int2", "uint2", "bfloat")):
        got, want = got.astype(np.float32), want.astype(np.float32)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def run_case(folder, device):
    from onnx_migraphx import backend

    path = os.path.join(folder, "model.onnx")
    model = onnx.load(path)
    with open(os.path.join(folder, "tolerance.txt")) as f:
        rtol, atol = map(float, f.read().split())
    rep = backend.prepare(model, device)
    constants = {t.name for t in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in constants]
    for data in sorted(glob.glob(os.path.join(folder, "test_data_set_*"))):
        got = rep.run(load_all(data, "input", inputs))
        for g, w in zip(got, load_all(data, "output", model.graph.output)):
            compare(g, w, rtol, atol)


def run_apart(folder, device):
    """None if the case passed, else why not."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        try:
            run_case(folder, device)
            os._exit(0)
        except BaseException as e:
            os.write(write_end, f"{type(e).__name__}: {e}".encode()[:4000])
            os._exit(1)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as f:
        why = f.read().decode(errors="replace")
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return "took too long" if os.WTERMSIG(status) == signal.SIGALRM else f"ended by signal {os.WTERMSIG(status)}"
    return None if os.WEXITSTATUS(status) == 0 else " ".join(why.split())[:300]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--device", default="ref", help="a target's name")
    parser.add_argument("--only", default="", help="regular expression on kind/case")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    sys.path.insert(0, os.path.join(args.build, "python"))
    import onnx_migraphx.backend  # noqa: F401  once, before the forks

    passed, failed = collections.Counter(), collections.Counter()
    for path in sorted(glob.glob(os.path.join(args.build, "suite", "*", "*", "model.onnx"))):
        folder = os.path.dirname(path)
        kind, case = folder.split(os.sep)[-2:]
        if not re.search(args.only, f"{kind}/{case}"):
            continue
        why = run_apart(folder, args.device)
        (failed if why else passed)[kind] += 1
        if why:
            print(f"FAILED {kind}/{case}: {why}")
        elif args.verbose:
            print(f"passed {kind}/{case}")
    for kind in sorted(passed | failed):
        print(f"{kind:20} {passed[kind]:5} passed {failed[kind]:5} failed")
    good, bad = sum(passed.values()), sum(failed.values())
    print(f"{'all':20} {good:5} passed {bad:5} failed, {100 * good / max(good + bad, 1):.1f} %")
    return 1 if bad or not good else 0


if __name__ == "__main__":
    sys.exit(main())
