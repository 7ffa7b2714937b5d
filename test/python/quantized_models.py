# SPDX-License-Identifier: MIT
"""The models of ONNX Runtime's quantizer (test/onnx/make_quantized.py) on a target: three runs the same, and within a step of the
reference and of what ONNX Runtime computed."""
import pathlib

import migraphx
import numpy as np

MODELS = sorted((pathlib.Path(__file__).resolve().parent.parent / "onnx" / "quantized").glob("*.onnx"))


def run(path, target, x, **options):
    program = migraphx.parse_onnx(str(path))
    program.compile(migraphx.get_target(target), **options)
    runs = [np.array(program.run({"x": x})[0]) for _ in range(3)]
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])
    return program, runs[0]


def check(path, target, **options):
    recorded = np.load(path.with_suffix(".npz"))
    x, y = recorded["x"], recorded["y"]
    step = np.diff(np.unique(y)).min() * 1.01
    if path.stem.endswith("dynamic"):  # results are no multiples of anything
        step = np.abs(y).max() / 255
    _, meant = run(path, "ref", x)
    program, given = run(path, target, x, **options)
    assert ": ref (" not in program.explain()
    assert np.abs(given - meant).max() <= step
    # Two roundings of one value may meet in a sum: then what the model says is as far.
    assert np.abs(given - y).max() <= max(step, np.abs(meant - y).max())
