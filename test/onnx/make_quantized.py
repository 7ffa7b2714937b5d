#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes test/onnx/quantized/: small models that ONNX Runtime's quantizer made, and what it computes.

    make_quantized.py     needs numpy, onnx and onnxruntime

Two networks with random weights, an image network (strides, depthwise, concat, pooling, a residual) and
a transformer's layer, each quantized statically (QDQ and QOperator, per channel and per tensor, signed and
unsigned activations) and dynamically. NAME.onnx is the model, NAME.npz its inputs and results, under the
model's names. test/python/test_quantized.py compares.
"""
import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_dynamic, quantize_static

HERE = pathlib.Path(__file__).resolve().parent / "quantized"
rng = np.random.default_rng(5)


class Graph:
    def __init__(self):
        self.nodes, self.weights, self.count = [], [], 0

    def weight(self, *shape):
        self.count += 1
        name = f"w{self.count}"
        values = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) if len(shape) > 1 else 4)
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def __call__(self, op, *inputs, **attributes):
        self.count += 1
        self.nodes.append(helper.make_node(op, list(inputs), [f"v{self.count}"], **attributes))
        return f"v{self.count}"

    def model(self, shape, y, out):
        graph = helper.make_graph(self.nodes, "main", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info(y, TensorProto.FLOAT, out)], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def image():
    g = Graph()

    def conv(x, i, o, k=1, stride=1, group=1):
        return g("Conv", x, g.weight(o, i // group, k, k), g.weight(o), kernel_shape=[k, k], strides=[stride, stride],
                 pads=[k // 2] * 4, group=group)

    x = g("Relu", conv("x", 3, 16, 3, 2))
    x = g("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    a = g("Relu", conv(conv(x, 16, 16, 3, group=16), 16, 16))
    b = conv(x, 16, 16)
    x = g("Relu", g("Add", a, b))
    c = g("Concat", x, conv(x, 16, 8, 3), axis=1)
    c = conv(c, 24, 12)
    x = g("Mul", c, g("Sigmoid", c))
    x = g("Flatten", g("GlobalAveragePool", x))
    y = g("Gemm", x, g.weight(10, 12), g.weight(10), transB=1)
    return g.model([1, 3, 18, 20], y, [1, 10]), (1, 3, 18, 20)


def layer():
    g = Graph()
    q, k, v = (g("Transpose", g("Reshape", g("Add", g("MatMul", "x", g.weight(32, 32)), g.weight(32)), "heads"),
                 perm=p) for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    g.weights.append(numpy_helper.from_array(np.array([1, 7, 4, 8]), "heads"))
    g.weights.append(numpy_helper.from_array(np.array([1, 7, 32]), "rows"))
    s = g("MatMul", g("Softmax", g("MatMul", q, k), axis=-1), v)
    s = g("Reshape", g("Transpose", s, perm=[0, 2, 1, 3]), "rows")
    x = g("Add", "x", g("MatMul", s, g.weight(32, 32)))
    h = g("Relu", g("Add", g("MatMul", x, g.weight(32, 64)), g.weight(64)))
    y = g("Add", x, g("MatMul", h, g.weight(64, 32)))
    return g.model([1, 7, 32], y, [1, 7, 32]), (1, 7, 32)


class Samples(CalibrationDataReader):
    def __init__(self, shape):
        self.left = [rng.standard_normal(shape).astype(np.float32) for _ in range(4)]

    def get_next(self):
        return {"x": self.left.pop()} if self.left else None


def record(path, shape):
    model = onnx.load(path)
    del model.metadata_props[:]
    model.producer_version = ""
    onnx.save(model, path)
    x = rng.standard_normal(shape).astype(np.float32)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    np.savez(path.with_suffix(".npz"), x=x, y=session.run(None, {"x": x})[0])


def main():
    HERE.mkdir(exist_ok=True)
    for name, make in (("image", image), ("layer", layer)):
        model, shape = make()
        with tempfile.TemporaryDirectory() as room:
            source = pathlib.Path(room) / "float.onnx"
            onnx.save(model, source)
            for kind, form, channels, types in (
                    ("qdq_channels", QuantFormat.QDQ, True, (QuantType.QUInt8, QuantType.QInt8)),
                    ("qdq_signed", QuantFormat.QDQ, False, (QuantType.QInt8, QuantType.QInt8)),
                    ("qoperator", QuantFormat.QOperator, True, (QuantType.QUInt8, QuantType.QInt8)),
                    ("qoperator_unsigned", QuantFormat.QOperator, False, (QuantType.QUInt8, QuantType.QUInt8))):
                path = HERE / f"{name}_{kind}.onnx"
                # Seven bits of weights: its products of bytes saturate on processors of before 2019.
                quantize_static(source, path, Samples(shape), quant_format=form, per_channel=channels,
                                reduce_range=types[1] == QuantType.QInt8, activation_type=types[0], weight_type=types[1])
                record(path, shape)
            path = HERE / f"{name}_dynamic.onnx"
            quantize_dynamic(source, path, weight_type=QuantType.QUInt8)
            record(path, shape)
    other_types()


def other_types():
    """Types that nothing multiplies: 16 bits (in com.microsoft's operators before opset 21), weights of 4, floats of 8."""
    for name, make, kind, opset, types, more in (
            ("image", image, "16", 13, (QuantType.QUInt16, QuantType.QUInt8), {}),
            ("image", image, "16_4", 21, (QuantType.QInt16, QuantType.QInt4), {"per_channel": True}),
            ("image", image, "f8", 19, (QuantType.QFLOAT8E4M3FN, QuantType.QFLOAT8E4M3FN), {"calibrate_method": CalibrationMethod.Distribution}),
            ("layer", layer, "16", 21, (QuantType.QUInt16, QuantType.QInt8), {}),
            ("layer", layer, "s16", 13, (QuantType.QInt16, QuantType.QInt16), {}),
            ("layer", layer, "8_4", 13, (QuantType.QUInt8, QuantType.QInt4), {})):
        model, shape = make()
        model.opset_import[0].version = opset
        model.ir_version = 10
        with tempfile.TemporaryDirectory() as room:
            source = pathlib.Path(room) / "float.onnx"
            onnx.save(model, source)
            path = HERE / f"{name}_{kind}.onnx"
            quantize_static(source, path, Samples(shape), activation_type=types[0], weight_type=types[1], **more)
        record(path, shape)
    model, shape = layer()  # attention's products of two values, each with a scale of the moment
    with tempfile.TemporaryDirectory() as room:
        source = pathlib.Path(room) / "float.onnx"
        onnx.save(model, source)
        path = HERE / "layer_all_dynamic.onnx"
        quantize_dynamic(source, path, weight_type=QuantType.QUInt8, extra_options={"MatMulConstBOnly": False})
    record(path, shape)


if __name__ == "__main__":
    main()
