# SPDX-License-Identifier: MIT
"""Models that ONNX Runtime's quantizer made (test/onnx/make_quantized.py), against what it computed."""
import migraphx
import numpy as np
import onnx
import onnxruntime
import pytest
from quantized_models import MODELS, check


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_results(path):
    check(path, "cpu")


def test_there_are_models():
    assert len(MODELS) == 17


# --- dynamic quantization: its scale and zero point are made of totals of the whole tensor ---


def dynamic(*shape):
    n, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    kinds = {"q": onnx.TensorProto.UINT8, "scale": onnx.TensorProto.FLOAT, "zero": onnx.TensorProto.UINT8, "twice": onnx.TensorProto.FLOAT}
    two = onnx.helper.make_tensor("two", onnx.TensorProto.FLOAT, [], [2])
    nodes = [n("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]), n("Mul", ["scale", "two"], ["twice"])]
    graph = onnx.helper.make_graph(nodes, "g", [value("x", onnx.TensorProto.FLOAT, shape)], [value(k, v, None) for k, v in kinds.items()], [two])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def same_steps(ours, right):
    """The scale to its last place, as a division by 255 is a multiplication here; so a value between two steps may take the other one."""
    for i in (1, 3):
        np.testing.assert_allclose(ours[i], right[i], rtol=2.4e-7, atol=0)
    np.testing.assert_array_equal(ours[2], right[2])
    apart = np.abs(ours[0].astype(int) - right[0])
    assert apart.max() <= 1 and np.count_nonzero(apart) <= 1 + apart.size // 1000


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_dynamic_quantization_of_any_size(threads):
    rng = np.random.default_rng(threads)
    for shape in [(2,), (1, 17), (3, 5, 7), (4096,), (4097,), (2, 99, 331), (1, 300001), *(tuple(rng.integers(1, 40, 3)) for _ in range(6))]:
        data = dynamic(*map(int, shape))
        p = migraphx.parse_onnx_buffer(data)
        p.compile("cpu", threads=threads)
        assert "total" in p.explain() or np.prod(shape) == 1
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        for low, high in [(-1, 1), (0.5, 9), (-7, -2), (0, 0), (-1e-3, 1e5)]:
            x = rng.uniform(low, high, shape).astype(np.float32)
            same_steps([np.asarray(r) for r in p.run({"x": x})], session.run(None, {"x": x}))


def test_dynamic_quantization_of_what_is_no_number():
    data, rng = dynamic(50, 1000), np.random.default_rng(3)
    programs = [migraphx.parse_onnx_buffer(data) for _ in range(2)]
    for p, target in zip(programs, ("cpu", "ref")):
        p.compile(target)
    for value in (np.nan, np.inf, -np.inf, -0.0, 1e-45, 3e38):
        x = rng.standard_normal((50, 1000)).astype(np.float32)
        x[rng.integers(50), rng.integers(1000)] = value
        ours, right = ([np.asarray(r) for r in p.run({"x": x})] for p in programs)
        if np.isfinite(right[1]):
            same_steps(ours, right)
        else:
            np.testing.assert_array_equal(ours[1], right[1])
