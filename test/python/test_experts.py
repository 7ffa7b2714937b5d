# SPDX-License-Identifier: MIT
"""Mixtures of experts whose tokens are open, on the CPU's kernel and in the reference, against ONNX Runtime: steps and prompts."""
import migraphx
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
EXPERTS, WIDTH, INNER = 6, 64, 96


def weights(rng, bits):
    """Matrices and biases of both products; in `bits` bytes, scales and zero points by blocks of 32."""
    out = {}
    for name, rows, columns in (("one", 2 * INNER, WIDTH), ("two", WIDTH, INNER)):
        if bits == 32:
            out[name] = rng.standard_normal((EXPERTS, rows, columns)) / np.sqrt(columns)
        else:
            blocks = columns // 32
            out[name] = rng.integers(0, 256, (EXPERTS, rows, columns * bits // 8))
            out[name + "_scale"] = rng.random((EXPERTS, rows, blocks)) / 2 ** bits
            out[name + "_zero"] = rng.integers(0, 256, (EXPERTS, rows, -(-blocks * bits // 8)))
        out[name + "_bias"] = rng.standard_normal((EXPERTS, rows))
    return {k: v.astype(np.uint8 if v.dtype == np.int64 else np.float32) for k, v in out.items()}


def model(bits, rank):
    w = weights(np.random.default_rng(bits), bits)
    if bits == 32:
        inputs, more = ["x", "router", "one", "one_bias", "two", "two_bias"], {}
    else:
        inputs = ["x", "router", "one", "one_scale", "one_bias", "two", "two_scale", "two_bias", "", "", "", "one_zero", "two_zero"]
        more = {"expert_weight_bits": bits, "block_size": 32}
    node = helper.make_node("QMoE" if more else "MoE", inputs, ["y"], domain="com.microsoft", k=2, activation_type="swiglu",
                            swiglu_fusion=1, normalize_routing_weights=1, **more)
    value, batch = helper.make_tensor_value_info, ["b", "s"] if rank == 3 else ["t"]
    graph = helper.make_graph([node], "g", [value("x", FLOAT, [*batch, WIDTH]), value("router", FLOAT, ["t", EXPERTS])],
                              [value("y", FLOAT, None)], [numpy_helper.from_array(v, k) for k, v in w.items()])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


@pytest.mark.parametrize("target, threads", [("cpu", 1), ("cpu", 3), ("ref", 0)])
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("bits", [32, 4, 2])
def test_steps_and_prompts(bits, rank, target, threads):
    data = model(bits, rank)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    p = migraphx.parse_onnx_buffer(data, dynamic_dims=True)
    assert "expert_dot" in str(p) and "deferred" not in str(p)
    p.compile(target, **({"threads": threads} if threads else {}))
    rng = np.random.default_rng(1)
    for tokens in (1, 40, 3, 1, 1):
        shape = (1, tokens, WIDTH) if rank == 3 else (tokens, WIDTH)
        feed = {"x": rng.standard_normal(shape).astype(np.float32), "router": rng.standard_normal((tokens, EXPERTS)).astype(np.float32)}
        y = np.asarray(p.run(feed)["y"])
        assert y.shape == shape
        np.testing.assert_allclose(y, session.run(None, feed)[0], rtol=0, atol=2e-4 * np.abs(y).max())


def test_an_expert_that_is_not_there_is_said():
    p = migraphx.program()
    main = p.get_main_module()
    x = main.add_parameter("x", migraphx.shape(type="float_type", lens=[2, 4]))
    which = main.add_parameter("which", migraphx.shape(type="int64_type", lens=[2]))
    w = main.add_literal(np.ones((3, 5, 4), np.float32))
    main.add_return([main.add_instruction(migraphx.op("expert_dot"), [x, which, w])])
    p.compile("cpu")
    values = {"x": np.ones((2, 4), np.float32), "which": np.int64([0, 3])}
    with pytest.raises(RuntimeError, match="index 3 is out of range for 3 matrices"):
        p.run({k: migraphx.argument(v) for k, v in values.items()})
