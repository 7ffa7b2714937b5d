// SPDX-License-Identifier: MIT
// The activations that vectors know (vf_act, vmath.h): tiles end with them, and recurrent layers.
#pragma once

// clang-format off
// One row: enumerator, name, meaning; `a`, `b` are the parameters.
#define MGX_ACT_LIST(X)                                                                            \
    X(MGX_ACT_NONE, "none", x)                                                                     \
    X(MGX_ACT_RELU, "relu", max(x, 0))                                                             \
    X(MGX_ACT_CLIP, "clip", min(max(x, a), b))                                                     \
    X(MGX_ACT_LEAKY_RELU, "leaky_relu", x < 0 ? a * x : x)                                         \
    X(MGX_ACT_SIGMOID, "sigmoid", 1 / (1 + exp(-x)))                                               \
    X(MGX_ACT_TANH, "tanh", tanh(x))                                                               \
    X(MGX_ACT_SILU, "silu", x / (1 + exp(-x)))                                                     \
    X(MGX_ACT_GELU, "gelu", x / 2 * (1 + erf(x / sqrt(2))))                                        \
    X(MGX_ACT_GELU_TANH, "gelu_tanh",                                                              \
      x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x))))                               \
    X(MGX_ACT_HARD_SIGMOID, "hard_sigmoid", min(max(a * x + b, 0), 1))                             \
    X(MGX_ACT_HARD_SWISH, "hard_swish", x * min(max(a * x + b, 0), 1))                             \
    X(MGX_ACT_ELU, "elu", x < 0 ? a * (exp(x) - 1) : x)                                            \
    X(MGX_ACT_SOFTPLUS, "softplus", log(1 + exp(x)))                                               \
    X(MGX_ACT_SOFTSIGN, "softsign", x / (1 + abs(x)))                                              \
    X(MGX_ACT_MISH, "mish", x * tanh(log(1 + exp(x))))                                             \
    X(MGX_ACT_AFFINE, "affine", a * x + b)                                                         \
    X(MGX_ACT_SCALED_TANH, "scaled_tanh", a * tanh(b * x))                                         \
    X(MGX_ACT_THRESHOLDED_RELU, "thresholded_relu", x > a ? x : 0)
// clang-format on

enum mgx_act {
#define X(name, text, meaning) name,
    MGX_ACT_LIST(X)
#undef X
        MGX_ACT_COUNT
};

const char *mgx_act_name(enum mgx_act act);
