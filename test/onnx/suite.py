#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the ONNX backend suite through the Python module and numpy alone.

    suite.py [--build build] [--cases BUILD/suite] [--device ref] [--only REGEX] [--verbose]

The cases are those that make_suite.py wrote; the module is BUILD/python. What onnx reads from a case goes into
run as it is: arrays, lists for sequences, None for an absent optional; what comes out is compared as it is.
Each case runs in a process of its own with a limit of time, so a crash is one failed case. Types must match,
values within the case's tolerances; the failures that expected_failures.txt lists, and those alone, are
forgiven. Needs numpy, onnx and, for narrow types, ml_dtypes.
"""
import argparse
import collections
import glob
import os
import re
import signal
import sys

import judge
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


def tolerance(folder):
    path = os.path.join(folder, "tolerance.txt")
    if not os.path.exists(path):
        return 1e-3, 1e-7
    with open(path) as f:
        return tuple(map(float, f.read().split()))


def run_case(folder, device):
    import migraphx

    path = os.path.join(folder, "model.onnx")
    model = onnx.load(path, load_external_data=False)
    rtol, atol = tolerance(folder)
    program = migraphx.parse_onnx(path, dynamic_dims=True)
    program.compile(device)
    constants = {t.name for t in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in constants]
    for data in sorted(glob.glob(os.path.join(folder, "test_data_set_*"))):
        values = load_all(data, "input", inputs)
        got = program.run(dict(zip((i.name for i in inputs), values)))
        want = load_all(data, "output", model.graph.output)
        assert len(got) >= len(want), f"{len(got)} results, expected {len(want)}"
        for output, g, w in zip(model.graph.output, got, want):
            assert got[output.name] is g, f"result {output.name} has another place by name"
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
    parser.add_argument("--cases", help="folder of the cases")
    parser.add_argument("--device", default="ref", help="a target's name")
    parser.add_argument("--only", default="", help="regular expression on kind/case")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    sys.path.insert(0, os.path.join(args.build, "python"))
    import migraphx  # noqa: F401  once, before the forks

    expected = judge.read_expected(os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected_failures.txt"), args.device)
    passed, failed, news = collections.Counter(), collections.Counter(), 0
    cases = args.cases or os.path.join(args.build, "suite")
    for path in sorted(glob.glob(os.path.join(cases, "*", "*", "model.onnx"))):
        folder = os.path.dirname(path)
        kind, case = folder.split(os.sep)[-2:]
        if not re.search(args.only, f"{kind}/{case}"):
            continue
        why = run_apart(folder, args.device)
        (failed if why else passed)[kind] += 1
        news += bool(why) != (f"{kind}/{case}" in expected)
        if why:
            print(f"{'expected' if f'{kind}/{case}' in expected else 'FAILED'} {kind}/{case}: {why}")
        elif f"{kind}/{case}" in expected:
            print(f"PASSES NOW {kind}/{case}: take it off the list")
        elif args.verbose:
            print(f"passed {kind}/{case}")
    for kind in sorted(passed | failed):
        print(f"{kind:20} {passed[kind]:5} passed {failed[kind]:5} failed")
    good, bad = sum(passed.values()), sum(failed.values())
    print(f"{'all':20} {good:5} passed {bad:5} failed, {100 * good / max(good + bad, 1):.1f} %")
    return 1 if news or not good else 0


if __name__ == "__main__":
    sys.exit(main())
