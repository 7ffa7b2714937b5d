#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes cases for the operators of com.microsoft and ai.onnx.ml, with the results of ONNX Runtime.

    make_contrib.py [--out build/suite/contrib] [--only REGEX] [--shapes declared|free|unranked]

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
import contrib_decoders
import contrib_pages
import contrib_small
import onnx
import onnxruntime as ort
from make_suite import forget_shapes
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


# Weights beside operands of eight bits: where a processor has no VNNI, ONNX Runtime adds two products in 16 bits,
# which saturate for larger ones.
SEVEN_BITS = (-63, 64)
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


def attentions():
    b, s, h, n = 2, 4, 8, 2
    qkv = [rand(h, 3 * h, scale=0.4), rand(3 * h)]
    x = rand(b, s, h)
    case("attention", "Attention", [x, *qkv], num_heads=n)
    case("attention_scale", "Attention", [x, *qkv], num_heads=n, scale=0.7)
    case("attention_causal", "Attention", [x, *qkv], num_heads=n, unidirectional=1)
    case("attention_mask_ends", "Attention", [x, *qkv, np.array([3, 4], np.int32)], num_heads=n)
    case("attention_mask_ranges", "Attention", [x, *qkv, np.array([3, 4, 1, 0], np.int32)], num_heads=n)
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1]], np.int32)
    case("attention_mask_2d", "Attention", [x, *qkv, mask], num_heads=n)
    case("attention_mask_2d_causal", "Attention", [x, *qkv, mask], num_heads=n, unidirectional=1)
    case("attention_mask_filter", "Attention", [x, *qkv, mask], num_heads=n, mask_filter_value=-1.0)
    case("attention_mask_3d", "Attention", [x, *qkv, ints(0, 2, b, s, s)], num_heads=n)
    past = rand(2, b, n, 3, h // n)
    case("attention_past", "Attention", [x, *qkv, None, past], outputs=2, num_heads=n)
    case("attention_past_causal", "Attention", [x, *qkv, None, past], outputs=2, num_heads=n, unidirectional=1)
    case("attention_past_mask", "Attention", [x, *qkv, ints(0, 2, b, s + 3), past], outputs=2, num_heads=n)
    case("attention_bias", "Attention", [x, *qkv, None, None, rand(b, n, s, s)], num_heads=n)
    case("attention_sizes", "Attention", [x, rand(h, 20, scale=0.4), rand(20)], num_heads=n,
         qkv_hidden_sizes=[4, 4, 12])
    q, k, v = rand(b, s, h), rand(b, 5, h), rand(b, 5, h)
    mha = "MultiHeadAttention"
    case("mha", mha, [q, k, v], num_heads=n)
    case("mha_bias", mha, [q, k, v, rand(3 * h)], num_heads=n)
    case("mha_other_v", mha, [q, k, rand(b, 5, 12)], num_heads=n, scale=0.3)
    case("mha_mask", mha, [q, k, v, None, ints(0, 2, b, 5)], num_heads=n)
    case("mha_mask_3d", mha, [q, k, v, None, ints(0, 2, b, s, 5)], num_heads=n)
    case("mha_attention_bias", mha, [q, k, v, None, None, rand(1, n, s, 5)], num_heads=n)
    case("mha_causal", mha, [q, q, q], num_heads=n, unidirectional=1)
    heads = [rand(b, n, 5, h // n) for _ in range(2)]
    case("mha_heads", mha, [q, *heads], num_heads=n)
    case("mha_past", mha, [q, q, q, None, None, None, *[rand(b, n, 3, h // n) for _ in range(2)]], outputs=3,
         num_heads=n)
    case("mha_past_bias", mha, [q, q, q, rand(3 * h), None, rand(b, n, s, 7),
                                *[rand(b, n, 3, h // n) for _ in range(2)]], outputs=3, num_heads=n, unidirectional=1)
    case("mha_present", mha, [q, k, v], outputs=3, num_heads=n)
    packed = rand(b, s, n, 3, 4)
    parts = [packed[:, :, :, i].reshape(b, s, h) for i in range(3)]
    expect = reference(build(mha, parts, 1, (), "com.microsoft", {"num_heads": n}),
                       {f"x{i}": p for i, p in enumerate(parts)})
    case("mha_packed_qkv", mha, [packed], expect=expect, num_heads=n)
    pair = np.stack([w.reshape(b, 5, n, 4) for w in (k, v)], 3)
    expect = reference(build(mha, [q, k, v], 1, (), "com.microsoft", {"num_heads": n}), {"x0": q, "x1": k, "x2": v})
    case("mha_packed_kv", mha, [q, pair], expect=expect, num_heads=n)
    quantized = [ints(0, 256, b, s, h, dtype=np.uint8), ints(*SEVEN_BITS, h, 3 * h, dtype=np.int8), rand(3 * h),
                 np.float32(0.02), np.float32(0.01)]
    zeros = [np.uint8(120), np.int8(3)]
    case("qattention", "QAttention", [*quantized, None, *zeros], num_heads=n)
    case("qattention_causal", "QAttention", [*quantized, None, *zeros], num_heads=n, unidirectional=1)
    case("qattention_mask", "QAttention", [*quantized, mask, *zeros], num_heads=n)
    quantized[4] = (rand(3 * h) * 0.001 + 0.01).astype(np.float32)
    zeros[1] = ints(-3, 3, 3 * h, dtype=np.int8)
    case("qattention_columns", "QAttention", [*quantized, None, *zeros], num_heads=n)
    case("qattention_past", "QAttention", [*quantized, None, *zeros, past], outputs=2, num_heads=n)


def rotations():
    angles = rand(20, 4)
    caches = [np.cos(angles), np.sin(angles)]
    places = ints(0, 20, 2, 5, dtype=np.int64)
    first = np.array([3], np.int64)
    for interleaved in (0, 1):
        stem, how = f"rotary_{interleaved}", {"interleaved": interleaved}
        case(stem, "RotaryEmbedding", [rand(2, 5, 24), places, *caches], **how)
        case(stem + "_first", "RotaryEmbedding", [rand(2, 5, 24), first, *caches], **how)
        case(stem + "_4d", "RotaryEmbedding", [rand(2, 3, 5, 8), places, *caches], **how)
        case(stem + "_part", "RotaryEmbedding", [rand(2, 5, 36), places, *caches], num_heads=3, rotary_embedding_dim=8,
             **how)
    gqa, heads, shared, size = "GroupQueryAttention", 4, 2, 16
    angles = rand(20, size // 2)
    caches = [np.cos(angles), np.sin(angles)]
    sizes = {"num_heads": heads, "kv_num_heads": shared}

    def operands(batch, tokens, room):
        past = [rand(batch, shared, room, size) for _ in range(2)] if room is not None else [None, None]
        return [rand(batch, tokens, heads * size), rand(batch, tokens, shared * size),
                rand(batch, tokens, shared * size), *past]

    def lengths(*total):
        return [np.array(total, np.int32) - 1, np.array(max(total), np.int32)]

    variants = {"": {}, "_rotary": {"do_rotary": 1}, "_interleaved": {"do_rotary": 1, "rotary_interleaved": 1},
                "_window": {"local_window_size": 3}, "_softcap": {"softcap": 2.0}, "_smooth": {"smooth_softmax": 1},
                "_scale": {"scale": 0.3}}
    for name, more in variants.items():
        turn = caches if "do_rotary" in more else []
        case("gqa_prompt" + name, gqa, [*operands(2, 5, None), *lengths(5, 5), *turn], outputs=3, constants=[6], **sizes,
             **more)
        case("gqa_decode" + name, gqa, [*operands(2, 1, 6), *lengths(7, 7), *turn], outputs=3, constants=[6], **sizes,
             **more)
    case("gqa_ragged", gqa, [*operands(2, 1, 6), *lengths(7, 5), *caches], outputs=3, do_rotary=1, **sizes)
    case("gqa_total_unknown", gqa, [*operands(2, 1, 6), *lengths(7, 7), *caches], outputs=3, do_rotary=1, **sizes)
    case("gqa_packed", gqa, [rand(2, 5, (heads + 2 * shared) * size), None, None, None, None, *lengths(5, 5), *caches],
         outputs=3, do_rotary=1, **sizes)
    case("gqa_chunk", gqa, [*operands(1, 3, 6), *lengths(9), *caches], outputs=3, do_rotary=1, **sizes)
    case("gqa_bias", gqa, [*operands(2, 1, 6), *lengths(7, 7), None, None, None, rand(1, heads, 1, 7)], outputs=3,
         **sizes)
    case("gqa_sink", gqa, [*operands(2, 5, None), *lengths(5, 5), None, None, None, None, rand(heads)], outputs=3,
         **sizes)
    case("gqa_one_head", gqa, [*operands(2, 5, None)[:1], *[rand(2, 5, size) for _ in range(2)], None, None,
                               *lengths(5, 5)], outputs=3, num_heads=heads, kv_num_heads=1)


def few_bits():
    for bits in (4, 8):
        for columns in (32, 40, 64):
            block, rows = 32, 5
            blocks = -(-columns // block)
            b = ints(0, 256, rows, blocks, block * bits // 8, dtype=np.uint8)
            scales = rand(rows * blocks, scale=0.1)
            sizes = {"K": columns, "N": rows, "bits": bits, "block_size": block}
            stem = f"nbits{bits}_{columns}"
            packed = ints(0, 256, rows * -(-blocks * bits // 8), dtype=np.uint8)
            case(stem, "MatMulNBits", [rand(2, 3, columns), b, scales], constants=[1, 2], **sizes)
            case(stem + "_zero", "MatMulNBits", [rand(3, columns), b, scales, packed], constants=[1, 2, 3], **sizes)
            case(stem + "_bias", "MatMulNBits", [rand(3, columns), b, scales, packed, None, rand(rows)],
                 constants=[1, 2, 3, 5], **sizes)
    case("nbits4_float_zero", "MatMulNBits",
         [rand(3, 64), ints(0, 256, 5, 2, 16, dtype=np.uint8), rand(10), rand(10, scale=3.0)], constants=[1, 2, 3],
         K=64, N=5, bits=4, block_size=32)
    group = np.sort(ints(0, 2, 64))
    case("nbits4_groups", "MatMulNBits",
         [rand(3, 64), ints(0, 256, 5, 2, 16, dtype=np.uint8), rand(10), None, group], constants=[1, 2, 4], K=64, N=5,
         bits=4, block_size=32)
    places = ints(0, 7, 2, 3, dtype=np.int64)
    table, scales = ints(0, 256, 7, 32, dtype=np.uint8), rand(7, 4)
    case("gather4", "GatherBlockQuantized", [table, places, scales], constants=[0, 2], gather_axis=0, quantize_axis=1,
         block_size=16, bits=4)
    case("gather4_zero", "GatherBlockQuantized", [table, places, scales, ints(0, 256, 7, 2, dtype=np.uint8)],
         constants=[0, 2, 3], gather_axis=0, quantize_axis=1, block_size=16, bits=4)
    case("gather8", "GatherBlockQuantized", [ints(0, 256, 7, 64, dtype=np.uint8), places, scales], constants=[0, 2],
         gather_axis=0, quantize_axis=1, block_size=16, bits=8)


def quantized():
    one = "0 1.001"  # a result that falls between two numbers may be either
    u8 = lambda *shape: ints(0, 256, *shape, dtype=np.uint8)
    i8 = lambda *shape: ints(-128, 128, *shape, dtype=np.int8)
    f = np.float32
    for op in ("QLinearAdd", "QLinearMul"):
        case(op.lower(), op, [u8(2, 3, 4), f(0.05), np.uint8(100), u8(2, 3, 4), f(0.03), np.uint8(130), f(0.1),
                              np.uint8(90)], tolerance=one)
        case(op.lower() + "_signed", op, [i8(2, 3, 4), f(0.05), np.int8(10), i8(4), f(0.03), np.int8(-3), f(0.1),
                                          np.int8(9)], tolerance=one)
    case("qlinearleakyrelu", "QLinearLeakyRelu", [u8(3, 4), f(0.05), np.uint8(100), f(0.04), np.uint8(20)],
         constants=[1, 2, 3, 4], tolerance=one, alpha=0.1)
    case("qlinearsigmoid", "QLinearSigmoid", [i8(3, 4), f(0.05), np.int8(10), f(1 / 256), np.int8(-128)],
         constants=[1, 2, 3, 4], tolerance=one)
    for opset in (11, 13):
        case(f"qlinearsoftmax_{opset}", "QLinearSoftmax", [u8(2, 3, 4), f(0.05), np.uint8(10), f(1 / 256), np.uint8(0)],
             constants=[1, 2, 3, 4], tolerance=one, axis=1, opset=opset)
    for last in (0, 1):
        x = [u8(2, 6, 6, 3) if last else u8(2, 3, 6, 6), f(0.05), np.uint8(100), f(0.04), np.uint8(20)]
        case(f"qlinearaveragepool_{last}", "QLinearAveragePool", x, constants=[1, 2, 3, 4], tolerance=one,
             kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], channels_last=last)
        case(f"qlinearglobalaveragepool_{last}", "QLinearGlobalAveragePool", x, constants=[1, 2, 3, 4], tolerance=one,
             channels_last=last)
    case("qlinearconcat", "QLinearConcat", [f(0.05), np.uint8(100), u8(2, 3), f(0.04), np.uint8(90), u8(2, 5), f(0.06),
                                            np.uint8(120)], constants=[0, 1, 3, 4, 6, 7], tolerance=one, axis=1)
    a, b = u8(3, 8), ints(*SEVEN_BITS, 8, 5, dtype=np.int8)
    case("qgemm", "QGemm", [a, f(0.02), np.uint8(120), b, f(0.03), np.int8(0), ints(-500, 500, 5), f(0.2),
                            np.uint8(110)], constants=[1, 2, 4, 5, 7, 8], tolerance=one, alpha=0.5)
    case("qgemm_float", "QGemm", [a, f(0.02), np.uint8(120), b, f(0.03), np.int8(4), ints(-500, 500, 5)],
         constants=[1, 2, 4, 5])
    case("matmulintegertofloat", "MatMulIntegerToFloat", [u8(2, 3, 8), b, f(0.02), f(0.03), np.uint8(120), np.int8(4),
                                                          rand(5)])
    case("matmulintegertofloat_columns", "MatMulIntegerToFloat", [a, b, f(0.02), abs(rand(5)), np.uint8(120), i8(5)])
    case("dynamicquantizematmul", "DynamicQuantizeMatMul", [rand(2, 3, 8), b, f(0.03), np.int8(4), rand(5)])
    case("dynamicquantizematmul_columns", "DynamicQuantizeMatMul", [rand(3, 8), b, abs(rand(5)), i8(5)])


def features():
    ml = {"domain": "ai.onnx.ml"}
    x, n = rand(4, 3), ints(0, 5, 4, 3, dtype=np.int64)
    x[1] = 0  # a row without length
    for norm in ("MAX", "L1", "L2"):
        case(f"ml_normalizer_{norm}", "Normalizer", [np.abs(x)], norm=norm, **ml)
    case("ml_scaler", "Scaler", [x], offset=[1.0, 2.0, 3.0], scale=[0.5, 2.0, -1.0], **ml)
    case("ml_scaler_int", "Scaler", [n], offset=[1.0], scale=[0.5], **ml)
    case("ml_binarizer", "Binarizer", [x], threshold=0.25, **ml)
    case("ml_imputer_int", "Imputer", [n], imputed_value_int64s=[10, 20, 30], replaced_value_int64=2, **ml)
    case("ml_imputer_int_one", "Imputer", [n], imputed_value_int64s=[10], replaced_value_int64=3, **ml)
    case("ml_imputer", "Imputer", [np.where(n == 1, np.float32(np.nan), x)], imputed_value_floats=[7.0],
         replaced_value_float=float("nan"), **ml)
    case("ml_features", "FeatureVectorizer", [x, rand(4, 2)], inputdimensions=[3, 2], **ml)
    case("ml_extract", "ArrayFeatureExtractor", [x, np.array([2, 0, 2], np.int64)], **ml)
    words = np.array([["b", "a"], ["zz", "c"]], object)
    case("ml_labels_1", "LabelEncoder", [words], classes_strings=["a", "b", "c"], default_int64=-5, domain="ai.onnx.ml:1")
    case("ml_labels_1_back", "LabelEncoder", [np.array([2, 0, 9], np.int64)], classes_strings=["a", "b", "c"],
         default_string="none", domain="ai.onnx.ml:1")
    case("ml_labels_text_number", "LabelEncoder", [words], keys_strings=["a", "b", "c"], values_int64s=[3, 4, 5],
         default_int64=-7, **ml)
    case("ml_labels_number_text", "LabelEncoder", [n], keys_int64s=[0, 1, 2], values_strings=["x", "y", "z"],
         default_string="?", **ml)
    case("ml_labels_text_real", "LabelEncoder", [words], keys_strings=["a", "b"], values_floats=[0.5, 1.5],
         default_float=-0.25, **ml)
    case("ml_labels_real_text", "LabelEncoder", [np.array([0.5, 2.5, -1], np.float32)], keys_floats=[0.5, -1.0],
         values_strings=["half", "minus"], **ml)
    case("ml_labels_int_real", "LabelEncoder", [n], keys_int64s=[0, 1, 2], values_floats=[0.5, 1.5, 2.5], **ml)
    case("ml_categories", "CategoryMapper", [words], cats_strings=["a", "b", "c"], cats_int64s=[7, 8, 9],
         default_int64=-3, **ml)
    case("ml_categories_back", "CategoryMapper", [np.array([9, 7, 1], np.int64)], cats_strings=["a", "b", "c"],
         cats_int64s=[7, 8, 9], default_string="else", **ml)
    case("ml_one_hot", "OneHotEncoder", [n], cats_int64s=[0, 2, 4], zeros=1, **ml)
    case("ml_one_hot_float", "OneHotEncoder", [n.astype(np.float32)], cats_int64s=[1, 3], zeros=1, **ml)
    case("ml_one_hot_text", "OneHotEncoder", [words], cats_strings=["a", "c", "d"], zeros=1, **ml)


def machines():
    ml = {"domain": "ai.onnx.ml"}
    x, weights = rand(5, 3), rand(12).tolist()
    for how in ("NONE", "LOGISTIC", "SOFTMAX"):
        case(f"ml_linear_{how}", "LinearRegressor", [x], coefficients=weights, intercepts=weights[:4], targets=4,
             post_transform=how, **ml)
        case(f"ml_classes_{how}", "LinearClassifier", [x], outputs=2, coefficients=weights, intercepts=weights[:4],
             classlabels_ints=[3, 5, 7, 9], post_transform=how, **ml)
    case("ml_classes_text", "LinearClassifier", [x], outputs=2, coefficients=weights[:9], intercepts=[0.1, 0.2, 0.3],
         classlabels_strings=["red", "green", "blue"], **ml)
    # Two trees of depth two over three features: node 0 splits, node 1 splits again, 2 to 4 are leaves.
    nodes = {"nodes_treeids": [0] * 5 + [1] * 5, "nodes_nodeids": [*range(5)] * 2,
             "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0, 0, 0], "nodes_values": [0.1, -0.2, 0, 0, 0, 0.0, 0.3, 0, 0, 0],
             "nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF"] +
                            ["BRANCH_GT", "BRANCH_GTE", "LEAF", "LEAF", "LEAF"],
             "nodes_truenodeids": [1, 3, 0, 0, 0] * 2, "nodes_falsenodeids": [2, 4, 0, 0, 0] * 2}
    leaves = {"treeids": [0, 0, 0, 1, 1, 1], "nodeids": [2, 3, 4] * 2, "ids": [0, 1, 2, 2, 1, 0],
              "weights": [0.5, 1.5, -0.5, 0.25, 0.75, 1.0]}
    for how in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        case(f"ml_forest_{how}", "TreeEnsembleClassifier", [x], outputs=2, classlabels_int64s=[4, 5, 6],
             post_transform=how, **nodes, **{f"class_{k}": v for k, v in leaves.items()}, **ml)
    case("ml_forest_text", "TreeEnsembleClassifier", [x], outputs=2, classlabels_strings=["a", "b", "c"],
         base_values=[0.1, 0.2, 0.3], **nodes, **{f"class_{k}": v for k, v in leaves.items()}, **ml)
    for how in ("SUM", "AVERAGE", "MIN", "MAX"):
        case(f"ml_trees_{how}", "TreeEnsembleRegressor", [x], n_targets=3, aggregate_function=how,
             **nodes, **{f"target_{k}": v for k, v in leaves.items()}, **ml)


def bnb4_weights(codes, packed, scales, rows, columns, block):
    """What the packed codes stand for; the first of a byte is in its upper half."""
    each = np.stack([packed >> 4, packed & 15], 1).reshape(-1)[:rows * columns]
    return (codes[each] * np.repeat(scales, block)[:rows * columns]).reshape(rows, columns)


def bnb4():
    for kind, name in enumerate(("fp4", "nf4")):
        for rows, columns, block in ((5, 32, 16), (3, 21, 16), (4, 64, 32)):
            count = rows * columns
            packed = ints(0, 256, (count + 1) // 2, dtype=np.uint8)
            scales = np.abs(rand((count + block - 1) // block)) + np.float32(0.1)
            case(f"bnb4_{name}_{rows}_{columns}", "MatMulBnb4", [rand(2, 3, columns), packed, scales],
                 constants=(1, 2) if rows != 4 else (), K=columns, N=rows, block_size=block, quant_type=kind)


def onnx_forms():
    """Forms of standard operators of which ONNX Runtime has its own mind."""
    standard = {"domain": ""}
    case("squeeze_no_axes", "Squeeze", [rand(3, 1, 5, 1), ints(0, 1, 0, dtype=np.int64)], constants=(1,), **standard)
    for equation, shapes in {"ij,jk->ik": ((3, 1), (2, 2)), "...ij,...jk->...ik": ((2, 1, 3, 1), (1, 5, 2, 4)),
                             "bi,bi->b": ((1, 2), (3, 2)), "i,i->i": ((1,), (3,)), "ij,i->": ((1, 4), (3,)),
                             "ij,jk,kl->il": ((2, 1), (3, 1), (4, 5))}.items():
        operands = [rand(*s) for s in shapes]
        case("einsum_ones_" + equation.replace(",", "_").replace("->", "_to_").replace(".", "e"), "Einsum", operands,
             equation=equation, **standard)
    # MatMulIntegerToFloat with a scale for each column of A: only the formula says what is meant.
    a, b = ints(0, 255, 4, 3, dtype=np.uint8), ints(-127, 127, 3, 5, dtype=np.int8)
    a_scale, b_scale, zero, bias = abs(rand(3)), abs(rand(5)), ints(0, 255, 3, dtype=np.uint8), rand(5)
    wide = (a.astype(np.float64) - zero) * a_scale
    case("integer_to_float_columns", "MatMulIntegerToFloat", [a, b, a_scale, b_scale, zero, None, bias],
         expect=[wide @ (b * b_scale.astype(np.float64)) + bias])
    whole = ints(0, 9, 3, 5, dtype=np.int8)
    case("integer_zero_each", "MatMulInteger", [a, b, np.uint8(3), whole],
         expect=[((a.astype(np.int32) - 3) @ (b.astype(np.int32) - whole)).astype(np.int32)], **standard)
    x, s = rand(2, 3, 8), rand(2, 3, 8)
    gamma, both = rand(8), (x + s).astype(np.float64)
    square = (both * both).mean(-1, keepdims=True)
    case("skip_rms_all", "SkipSimplifiedLayerNormalization", [x, s, gamma], outputs=4, epsilon=1e-6,
         expect=[both / np.sqrt(square + 1e-6) * gamma, square, 1 / np.sqrt(square + 1e-6), both])


def caches():
    new = [rand(2, 1, 8) for _ in range(3)]
    past = [rand(2, 2, 5, 4) for _ in range(2)]
    for at in (0, 2, 4):
        case(f"mha_room_{at}", "MultiHeadAttention", [*new, None, None, None, *past, np.array([at], np.int32)],
             outputs=3, num_heads=2, constants=(8,) if at else ())
    # Keys and values of one element are placeholders: the query has all.
    packed = [rand(2, 3, 48), rand(1), rand(1)]
    lengths = [np.array([2, 2], np.int32), np.int32(3)]
    empty = np.zeros((2, 2, 0, 8), np.float32)
    part = np.split(packed[0], [16, 32], 2)
    heads = [p.reshape(2, 3, 2, 8).transpose(0, 2, 1, 3) for p in part]
    scores = heads[0] @ heads[1].transpose(0, 1, 3, 2) / np.sqrt(8) + np.triu(np.full((3, 3), -np.inf), 1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = (weights / weights.sum(-1, keepdims=True)) @ heads[2]
    case("gqa_placeholders", "GroupQueryAttention", [*packed, empty, empty, *lengths], constants=(6,),
         expect=[y.transpose(0, 2, 1, 3).reshape(2, 3, 16), heads[1], heads[2]], num_heads=2, kv_num_heads=2)


def quantized_lstm():
    """The input and the states become bytes too; what one thread makes of them, with one scale for all of a batch."""
    for name, directions, columns, dtype in (("forward", 1, False, np.int8), ("bidirectional", 2, True, np.uint8),
                                             ("reverse", 1, True, np.int8)):
        hidden, wide = 4, 3
        low, high = (0, 127) if dtype == np.uint8 else (-63, 63)
        shape = (directions, 4 * hidden) if columns else (directions,)
        zero = np.full(shape, 63 if dtype == np.uint8 else 0, dtype)
        w = [ints(low, high, directions, n, 4 * hidden, dtype=dtype) for n in (wide, hidden)]
        scales = [(abs(rand(*shape)) * 0.003 + 0.004).astype(np.float32) for _ in range(2)]
        case(f"lstm_quantized_{name}", "DynamicQuantizeLSTM",
             [rand(5, 2, wide), *w, rand(directions, 8 * hidden), None, rand(directions, 2, hidden),
              rand(directions, 2, hidden), None, scales[0], zero, scales[1], zero],
             outputs=3, constants=(1, 2, 3, 8, 9, 10, 11), tolerance="1e-6 1e-5", hidden_size=hidden,
             direction=name)


GROUPS = [activations, norms, fused, attentions, rotations, few_bits, quantized, features, machines, bnb4,
          onnx_forms, caches, quantized_lstm]


def build(op, inputs, outputs, constants, domain, attributes, results=None):
    domain, _, version = domain.partition(":")
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
    opsets = [helper.make_opsetid("", int(version or 17) if domain == "" else 17), helper.make_opsetid("com.microsoft", 1)]
    if domain not in ("", "com.microsoft"):
        opsets.append(helper.make_opsetid(domain, int(version or 3)))
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def reference(model, feeds):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def write_case(folder, row, shapes):
    op, inputs, outputs, constants, expect, tolerance, domain, attributes = row
    inputs = [None if v is None else np.asarray(v) for v in inputs]
    feeds = {f"x{i}": v for i, v in enumerate(inputs) if v is not None and i not in constants}
    if expect is None:
        expect = reference(build(op, inputs, outputs, constants, domain, attributes), feeds)
    elif len(expect) > 1:
        outputs = len(expect)
    expect = [np.asarray(v, np.float32) if np.asarray(v).dtype == np.float64 else v for v in expect]
    model = build(op, inputs, outputs, constants, domain, attributes, expect)
    if shapes != "declared":
        forget_shapes(model, shapes)
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
    parser.add_argument("--shapes", choices=["declared", "free", "unranked"], default="declared")
    args = parser.parse_args()
    for group in GROUPS:
        group()
    for group in contrib_decoders.GROUPS + contrib_small.GROUPS + contrib_pages.GROUPS:
        group(sys.modules[__name__])
    failed, written = [], 0
    for name, row in CASES.items():
        if not re.search(args.only, name):
            continue
        folder = os.path.join(args.out, name)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            write_case(folder, row, args.shapes)
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
