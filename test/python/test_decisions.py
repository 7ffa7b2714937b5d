# SPDX-License-Identifier: MIT
"""bench/decisions.py: what it finds in a model that decides, and that it sees a wrong decision and a wrong number."""
import os
import sys

import migraphx
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))

import decisions  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def model(path):
    """Rows whose score is above a half, the best three of them, and their logarithm."""
    weights = np.random.default_rng(1).standard_normal((5, 4)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["scores"]), helper.make_node("ReduceMax", ["scores"], ["best"], axes=[1], keepdims=0),
             helper.make_node("Greater", ["best", "half"], ["above"]), helper.make_node("Compress", ["best", "above"], ["kept"], axis=0),
             helper.make_node("TopK", ["kept", "three"], ["top", "place"], axis=0), helper.make_node("Exp", ["top"], ["y"])]
    constants = {"w": weights, "half": np.float32(0.5), "three": np.array([3], np.int64)}
    graph = helper.make_graph(nodes, "decides", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [20, 5])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])], [numpy_helper.from_array(v, k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def test_decisions_and_all_else(tmp_path):
    path, opened = str(tmp_path / "m.onnx"), str(tmp_path / "open.onnx")
    model(path)
    decided = decisions.Decided(path)
    assert [n.op_type for n in decided.found] == ["Greater", "TopK"]
    decided.write_open(opened)
    feed = {"x": np.random.default_rng(2).standard_normal((20, 5)).astype(np.float32)}
    program = migraphx.parse_onnx(opened)
    program.compile("cpu")
    results = {name: np.array(r) for name, r in zip(decided.outputs + decided.extra, program.run(feed))}
    wrong, error, _ = decided.judge(feed, results)
    assert not wrong and error < 1e-6
    flipped = {**results, "above": ~results["above"]}
    assert decided.judge(feed, flipped)[0] == ["Greater above"]
    swapped = {**results, "place": results["place"][[1, 0, 2]]}
    assert decided.judge(feed, swapped)[0] == ["TopK top"]
    off = {**results, "y": results["y"] * np.float32(1.001)}
    assert decided.judge(feed, off) == ([], pytest.approx(1e-3, rel=0.1), "y")


def test_a_rounding_is_forgiven_where_it_decides(tmp_path):
    path = str(tmp_path / "m.onnx")
    model(path)
    decided = decisions.Decided(path)
    greater = decided.found[0]
    best = np.float32([0.5002, 0.7])  # half a unit of half above the threshold
    known = {**decided.constants, "best": best, "above": np.array([False, True])}
    assert not decided.agrees(greater, known, 0.0) and decided.agrees(greater, known, 2.0**-10)
    known["above"] = np.array([False, False])
    assert not decided.agrees(greater, known, 2.0**-10)
