# SPDX-License-Identifier: MIT
"""Attention as PyTorch exports it with a mask: a row that sees nothing is NaN to a softmax, and zeros behind it. Beside ONNX Runtime."""
import os

import migraphx
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

TYPES = {"float": (TensorProto.FLOAT, np.float32, 2e-6), "half": (TensorProto.FLOAT16, np.float16, 2e-3)}


def model(type, heads, rows, keys, size, guard):
    element, dtype, _ = TYPES[type]
    n, value = helper.make_node, helper.make_tensor_value_info
    initial = [numpy_helper.from_array(dtype(size**-0.5), "scale"), numpy_helper.from_array(dtype(0), "zero"),
               numpy_helper.from_array(dtype(-np.inf), "nothing")]
    nodes = [n("MatMul", ["q", "k"], ["s"]), n("Mul", ["s", "scale"], ["t"]), n("Where", ["sees", "zero", "nothing"], ["m"]),
             n("Add", ["t", "m"], ["a"]), n("Softmax", ["a"], ["p"], axis=-1)]
    if guard:
        nodes += [n("IsNaN", ["p"], ["odd"]), n("Where", ["odd", "zero", "p"], ["w"])]
    nodes.append(n("MatMul", ["w" if guard else "p", "v"], ["y"]))
    inputs = [value("q", element, [2, heads, rows, size]), value("k", element, [2, heads, size, keys]), value("v", element, [2, heads, keys, size]),
              value("sees", TensorProto.BOOL, [2, 1, rows, keys])]
    graph = helper.make_graph(nodes, "g", inputs, [value("y", element, None)], initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()


def feed(rng, type, heads, rows, keys, size):
    dtype = TYPES[type][1]
    sees = rng.random((2, 1, rows, keys)) < 0.5
    sees[0, 0, 3] = sees[1, 0, -1] = False
    return {"q": rng.standard_normal((2, heads, rows, size)).astype(dtype), "k": rng.standard_normal((2, heads, size, keys)).astype(dtype),
            "v": rng.standard_normal((2, heads, keys, size)).astype(dtype), "sees": sees}


def target():
    """The card that is named, else the CPU: kernels of attention need a card's matrix units."""
    return "gpu" if os.environ.get("MGX_TEST_DEVICE") else "cpu"


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("guard", [True, False])
@pytest.mark.parametrize("sizes", [(3, 20, 40, 32), (2, 9, 700, 64), (1, 64, 64, 16)], ids=str)
def test_rows_that_see_nothing(type, guard, sizes):
    data, rng = model(type, *sizes, guard), np.random.default_rng(list(sizes))
    p = migraphx.parse_onnx_buffer(data)
    p.compile(target(), offload_copy=True)
    if guard and type == "float":
        assert "attention" in str(p)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for _ in range(3):
        f = feed(rng, type, *sizes)
        got, want = np.asarray(p.run(f)[0]).astype(float), session.run(None, f)[0].astype(float)
        blind = np.broadcast_to(~f["sees"].any(-1, keepdims=True), want.shape)
        assert (got[blind] == 0).all() if guard else np.isnan(got[blind]).all()
        assert np.abs(got[~blind] - want[~blind]).max() <= TYPES[type][2] * np.abs(want[~blind]).max() * 4
