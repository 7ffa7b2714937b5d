# SPDX-License-Identifier: MIT
"""Models that ONNX Runtime's quantizer made (test/onnx/make_quantized.py), against what it computed."""
import pathlib

import migraphx
import numpy as np
import pytest

MODELS = sorted((pathlib.Path(__file__).resolve().parent.parent / "onnx" / "quantized").glob("*.onnx"))


def run(path, target, x):
    program = migraphx.parse_onnx(str(path))
    program.compile(migraphx.get_target(target))
    return program, np.array(program.run({"x": x})[0])


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_results(path):
    recorded = np.load(path.with_suffix(".npz"))
    x, y = recorded["x"], recorded["y"]
    step = np.diff(np.unique(y)).min() * 1.01
    if path.stem.endswith("dynamic"):  # results are no multiples of anything
        step = np.abs(y).max() / 255
    _, meant = run(path, "ref", x)
    program, given = run(path, "cpu", x)
    assert ": ref (" not in program.explain()
    assert np.abs(given - meant).max() <= step
    # Two roundings of one value may meet in a sum: then what the model says is as far.
    assert np.abs(given - y).max() <= max(step, np.abs(meant - y).max())


def test_there_are_models():
    assert len(MODELS) == 10
