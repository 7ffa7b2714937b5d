#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes cases for the operators of com.microsoft, with the results of ONNX Runtime.

    make_contrib.py [--out build/suite/contrib] [--only REGEX]

One node a case, seeded random inputs, in the folders that make_suite.py writes. An operator that
ONNX Runtime has no CPU kernel for gets its formula in numpy instead (the cases with `expect`). The
comparison is then with that. Needs numpy, onnx and onnxruntime.
"""
import argparse
import os
import re
import shutil
import sys
import zlib
from math import erf

import numpy as np
import onnx
from onnx import helper, numpy_helper

CASES = {}


def case(name, op, inputs, outputs=1, constants=(), expect=None, tolerance="1e-3 1e-4", domain="com.microsoft",
         **attributes):
    """inputs: arrays, None for an absent one. constants: which of them are initializers."""
    assert name not in CASES
    CASES[name] = (op, inputs, outputs, set(constants), expect, tolerance, domain, attributes)


def rand(*shape, scale=1.0):
    """Seeded by how many were drawn, through one generator per file."""
    return (GENERATOR.standard_normal(shape) * scale).astype(np.float32)


def ints(low, high, *shape, dtype=np.int32):
    return GENERATOR.integers(low, high, shape).astype(dtype)


GENERATOR = np.random.default_rng(zlib.crc32(b"contrib"))


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def activations():
    case("gelu", "Gelu", [rand(3, 7)])
    case("fast_gelu", "FastGelu", [rand(3, 7)])
    case("fast_gelu_bias", "FastGelu", [rand(2, 3, 8), rand(8)])
    case("bias_gelu", "BiasGelu", [rand(2, 3, 8), rand(8)])
    case("quick_gelu", "QuickGelu", [rand(3, 7)])
    case("quick_gelu_alpha", "QuickGelu", [rand(3, 7)], alpha=0.5)
    x, b = rand(2, 3, 8), rand(8)
    case("bias_split_gelu", "BiasSplitGelu", [x, b], expect=[(x + b)[..., :4] * gelu((x + b)[..., 4:])])
    x, b, s = rand(2, 3, 8), rand(8), rand(2, 3, 8)
    case("bias_add", "BiasAdd", [x, b, s], expect=[x + b + s])


def norms():
    for name, extra in {"": [], "_beta": [rand(8)], "_bias": [rand(8), rand(8)], "_bias_only": [None, rand(8)]}.items():
        case("skip_layer_norm" + name, "SkipLayerNormalization", [rand(2, 5, 8), rand(2, 5, 8), rand(8), *extra],
             epsilon=1e-5)
    case("skip_layer_norm_sum", "SkipLayerNormalization", [rand(2, 5, 8), rand(2, 5, 8), rand(8), rand(8), rand(8)],
         outputs=[0, 3])
    case("skip_layer_norm_broadcast", "SkipLayerNormalization", [rand(2, 5, 8), rand(1, 5, 8), rand(8), rand(8)])
    case("skip_layer_norm_broadcast2", "SkipLayerNormalization", [rand(2, 5, 8), rand(5, 8), rand(8), rand(8)])
    case("skip_rms", "SkipSimplifiedLayerNormalization", [rand(2, 5, 8), rand(2, 5, 8), rand(8)], epsilon=1e-6)
    case("skip_rms_bias", "SkipSimplifiedLayerNormalization", [rand(2, 5, 8), rand(2, 5, 8), rand(8), rand(8)],
         outputs=[0, 3], epsilon=1e-6)
    case("skip_rms_half", "SkipSimplifiedLayerNormalization",
         [v.astype(np.float16) for v in (rand(2, 5, 8), rand(2, 5, 8), rand(8))], tolerance="1e-2 5e-3")
    case("simplified", "SimplifiedLayerNormalization", [rand(2, 5, 8), rand(8)], domain="")
    case("simplified_axis", "SimplifiedLayerNormalization", [rand(2, 5, 8), rand(5, 8)], domain="", axis=1,
         epsilon=1e-3, outputs=2)
    ids, segments = ints(0, 11, 2, 5), ints(0, 2, 2, 5)
    tables = [rand(11, 8), rand(6, 8), rand(2, 8), rand(8), rand(8)]
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    case("embed", "EmbedLayerNormalization", [ids, segments, *tables], outputs=2)
    case("embed_mask", "EmbedLayerNormalization", [ids, segments, *tables, mask], outputs=3)
    case("embed_positions", "EmbedLayerNormalization", [ids, segments, *tables, mask, ints(0, 6, 2, 5)], outputs=3)
    case("embed_no_segment", "EmbedLayerNormalization", [ids, None, *tables[:2], None, *tables[3:]], outputs=2)
    x, g, b = rand(2, 3, 4, 6), rand(6), rand(6)
    case("group_norm", "GroupNorm", [x, g, b], expect=[group_norm(x, g, b, 3)], groups=3, activation=0)
    y = group_norm(x, g, b, 2)
    case("group_norm_silu", "GroupNorm", [x, g, b], expect=[y / (1 + np.exp(-y))], groups=2, activation=1)
    s, c = rand(2, 1, 1, 6), rand(6)
    case("skip_group_norm", "SkipGroupNorm", [x, g, b, s, c], expect=[group_norm(x + s + c, g, b, 2), x + s + c],
         groups=2, activation=0, channels_last=1)


def group_norm(x, gamma, beta, groups):
    """Channels last."""
    y = x.astype(np.float64).reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    y = (y - y.mean((1, 3), keepdims=True)) / np.sqrt(y.var((1, 3), keepdims=True) + 1e-5)
    return (y.reshape(x.shape) * gamma + beta).astype(np.float32)


def fused():
    case("fused_matmul", "FusedMatMul", [rand(2, 3, 4), rand(4, 5)], alpha=0.5)
    case("fused_matmul_ta", "FusedMatMul", [rand(2, 4, 3), rand(2, 4, 5)], transA=1)
    case("fused_matmul_tb", "FusedMatMul", [rand(2, 3, 4), rand(2, 5, 4)], transB=1, alpha=2.0)
    case("fused_matmul_batch_a", "FusedMatMul", [rand(3, 2, 4), rand(2, 4, 5)], transBatchA=1)
    case("fused_matmul_batch_ta", "FusedMatMul", [rand(4, 2, 3), rand(2, 4, 5)], transBatchA=1, transA=1)
    case("fused_matmul_batch_b", "FusedMatMul", [rand(2, 3, 4), rand(4, 2, 5)], transBatchB=1)
    case("fused_matmul_batch_4", "FusedMatMul", [rand(3, 2, 6, 4), rand(2, 6, 4, 5)], transBatchA=1)
    for name, more in {"Relu": {}, "LeakyRelu": {"activation_alpha": 0.3}, "Sigmoid": {}, "Tanh": {},
                       "HardSigmoid": {"activation_alpha": 0.3, "activation_beta": 0.4}}.items():
        case("fused_gemm_" + name.lower(), "FusedGemm", [rand(3, 4), rand(5, 4), rand(5)], transB=1, alpha=0.7,
             beta=0.5, activation=name, **more)
    for name, params in {"Relu": [], "LeakyRelu": [0.2], "Sigmoid": [], "Tanh": [], "Clip": [-0.5, 0.5],
                         "HardSigmoid": [0.3, 0.4]}.items():
        more = {"activation_params": params} if params else {}
        case("fused_conv_" + name.lower(), "FusedConv", [rand(2, 3, 6, 6), rand(4, 3, 3, 3), rand(4)],
             constants=[1, 2], activation=name, pads=[1, 1, 1, 1], **more)
    case("fused_conv_sum", "FusedConv", [rand(2, 3, 6, 6), rand(4, 3, 3, 3), rand(4), rand(2, 4, 4, 4)],
         constants=[1, 2], activation="Relu")
    x, w, b = rand(2, 5, 6, 3), rand(4, 1, 1, 3), rand(4)
    case("nhwc_conv", "NhwcConv", [x, w, b], expect=[np.einsum("nhwc,mc->nhwm", x, w[:, 0, 0]) + b])


GROUPS = [activations, norms, fused]


def build(op, inputs, outputs, constants, domain, attributes, results=None):
    names = ["" if v is None else f"x{i}" for i, v in enumerate(inputs)]
    wanted = list(range(outputs)) if isinstance(outputs, int) else outputs
    out_names = [f"y{i}" if i in wanted else "" for i in range(max(wanted) + 1)]
    node = helper.make_node(op, names, out_names, name="node", domain=domain, **attributes)

    def info(name, value):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)

    given = [info(names[i], v) for i, v in enumerate(inputs) if v is not None and i not in constants]
    made = [n for n in out_names if n]
    graph = helper.make_graph(
        [node], op, given,
        [info(n, r) for n, r in zip(made, results)] if results else [onnx.ValueInfoProto(name=n) for n in made],
        [numpy_helper.from_array(inputs[i], names[i]) for i in sorted(constants)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def reference(model, feeds):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def write_case(folder, row):
    op, inputs, outputs, constants, expect, tolerance, domain, attributes = row
    inputs = [None if v is None else np.asarray(v) for v in inputs]
    feeds = {f"x{i}": v for i, v in enumerate(inputs) if v is not None and i not in constants}
    if expect is None:
        expect = reference(build(op, inputs, outputs, constants, domain, attributes), feeds)
    elif len(expect) > 1:
        outputs = len(expect)
    expect = [np.asarray(v, np.float32) if np.asarray(v).dtype == np.float64 else v for v in expect]
    model = build(op, inputs, outputs, constants, domain, attributes, expect)
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for stem, values in (("input", feeds.items()), ("output", zip([o.name for o in model.graph.output], expect))):
        for i, (name, value) in enumerate(values):
            with open(os.path.join(data, f"{stem}_{i}.pb"), "wb") as f:
                f.write(numpy_helper.from_array(np.asarray(value), name).SerializeToString())
    with open(os.path.join(folder, "tolerance.txt"), "w") as f:
        f.write(tolerance + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="build/suite/contrib")
    parser.add_argument("--only", default="", help="regular expression on case names")
    args = parser.parse_args()
    for group in GROUPS:
        group()
    failed, written = [], 0
    for name, row in CASES.items():
        if not re.search(args.only, name):
            continue
        folder = os.path.join(args.out, name)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            write_case(folder, row)
            written += 1
        except Exception as e:
            failed.append(f"{name}: {e}")
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{written} cases in {args.out}")
    for line in failed:
        print("not written:", line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
