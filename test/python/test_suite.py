# SPDX-License-Identifier: MIT
"""The stored cases of ONNX's backend suite, sequences and strings among them; test/onnx/suite.py runs them all."""
import os
import sys

import pytest

loader = pytest.importorskip("onnx.backend.test.loader")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx"))
import judge  # noqa: E402
import suite  # noqa: E402

EXPECTED = judge.read_expected(os.path.join(os.path.dirname(suite.__file__), "expected_failures.txt"))
CASES = {f"simple/{case.name}": case.model_dir for case in loader.load_model_tests(kind="simple")}


@pytest.mark.parametrize("name", [name for name in CASES if name not in EXPECTED])
def test_case(name):
    for device in ("ref", "cpu"):
        suite.run_case(CASES[name], device)
