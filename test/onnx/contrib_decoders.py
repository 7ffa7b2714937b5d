# SPDX-License-Identifier: MIT
"""Cases of the operators that today's decoders are made of, for make_contrib.py: caches in few bits, experts.

ONNX Runtime's CPU provider judges where it has the operator; a few lines of numpy do where it has not.
"""
import numpy as np

GROUPS = []
HEADS, SHARED, SIZE = 4, 2, 16
GQA = {"num_heads": HEADS, "kv_num_heads": SHARED}


def group(function):
    GROUPS.append(function)
    return function


def lengths(*total):
    return [np.array(total, np.int32) - 1, np.array(max(total), np.int32)]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# --- GroupQueryAttention ---


def operands(c, batch, tokens, room=None, kind=np.float32):
    past = [c.rand(batch, SHARED, room, SIZE).astype(kind) for _ in range(2)] if room is not None else [None, None]
    return [c.rand(batch, tokens, HEADS * SIZE), c.rand(batch, tokens, SHARED * SIZE),
            c.rand(batch, tokens, SHARED * SIZE), *past]


def kept(c, kind, batch, room):
    """A cache of 8 or 4 bits."""
    width = SIZE if kind == np.int8 else SIZE // 2
    low, high = (-128, 128) if kind == np.int8 else (0, 256)
    return [c.ints(low, high, batch, SHARED, room, width, dtype=kind) for _ in range(2)]


@group
def quantized_caches(c):
    for bits, kind in ((8, np.int8), (4, np.uint8)):
        by = 0.02 if bits == 8 else 0.3
        for how, shape in (("PER_TENSOR", (1,)), ("PER_CHANNEL", (1, SHARED, 1, SIZE))):
            more = {"k_quant_type": how, "v_quant_type": how, "kv_cache_bit_width": bits}
            scales = [(np.abs(c.rand(*shape)) * by + by).astype(np.float32) for _ in range(2)]
            stem = f"gqa_kept{bits}_{how[4:].lower()}"
            for name, batch, tokens, room, total in (("prompt", 2, 5, 0, (5, 5)), ("step", 2, 1, 6, (7, 5)),
                                                     ("chunk", 1, 3, 6, (9,))):
                given = operands(c, batch, tokens)[:3] + kept(c, kind, batch, room)
                c.case(f"{stem}_{name}", "GroupQueryAttention", [*given, *lengths(*total), *[None] * 5, *scales],
                       outputs=3, constants=[6, 12, 13], **GQA, **more)


@group
def attention_variants(c):
    gqa = "GroupQueryAttention"
    for mode in (1, 2):
        c.case(f"gqa_scores_{mode}", gqa, [*operands(c, 2, 5), *lengths(5, 5)], outputs=4, constants=[6], qk_output=mode,
               **GQA)
        c.case(f"gqa_scores_{mode}_all", gqa,
               [*operands(c, 2, 1, 6), *lengths(7, 7), *[None] * 3, c.rand(1, HEADS, 1, 7), c.rand(HEADS)], outputs=4,
               constants=[6], qk_output=mode, softcap=2.0, local_window_size=3, **GQA)
    c.case("gqa_both_ways", gqa, [*operands(c, 2, 5), *lengths(5, 5)], outputs=3, constants=[6], causal=0, **GQA)
    c.case("gqa_no_new_keys", gqa, [c.rand(2, 1, HEADS * SIZE), *[np.zeros((2, 0, SHARED * SIZE), np.float32)] * 2,
                                    *operands(c, 2, 1, 6)[3:], *lengths(6, 6)], outputs=3, constants=[6], **GQA)
    c.case("gqa_room_bias", gqa, [*operands(c, 1, 1, 9), *lengths(7), *[None] * 3, c.rand(1, HEADS, 1, 7)],
           outputs=3, constants=[6], **GQA)
    normed(c)


def normed(c):
    """Queries and keys by the root of their mean square: no provider of ONNX Runtime for processors has it."""
    angles = c.rand(9, SIZE // 2)
    turn, weight = [np.cos(angles), np.sin(angles)], [c.rand(SIZE) for _ in range(2)]
    given = operands(c, 1, 5)
    for packed in (False, True):
        head = [x.reshape(1, 5, -1, SIZE).astype(np.float64) for x in given[:3]]
        for i in range(2):
            head[i] = head[i] / np.sqrt((head[i] ** 2).mean(-1, keepdims=True) + 1e-3) * weight[i]
            a, b = np.split(head[i], 2, -1)
            cos, sin = (t[:5, None] for t in turn)
            head[i] = np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)
        q, k, v = (x.transpose(0, 2, 1, 3) for x in head)
        wide = [np.repeat(x, HEADS // SHARED, 1) for x in (k, v)]
        scores = q @ wide[0].transpose(0, 1, 3, 2) / np.sqrt(SIZE) + np.triu(np.full((5, 5), -np.inf), 1)
        y = (softmax(scores) @ wide[1]).transpose(0, 2, 1, 3).reshape(1, 5, -1)
        first = [np.concatenate(given[:3], -1), None, None] if packed else given[:3]
        c.case("gqa_normed" + "_packed" * packed, "GroupQueryAttention",
               [*first, None, None, *lengths(5), *turn, *[None] * 5, *weight], constants=[6], expect=[y, k, v],
               do_rotary=1, qk_norm_epsilon=1e-3, **GQA)


# --- experts ---


def experts(x, router, one, two, k, f, over_all=True, normalize=False, weights=None):
    """one, two: matrices and biases of all experts. f: what is between them, of the first product and the expert."""
    p = softmax(router) if over_all else router
    y = np.zeros((len(x), two[0].shape[1]))
    for t, row in enumerate(p):
        chosen = np.argsort(-row, kind="stable")[:k]
        share = row[chosen] if over_all else softmax(row[chosen])
        share = share if weights is None else weights[t, chosen]
        share = share / share.sum() if normalize else share
        for e, w in zip(chosen, share):
            y[t] += w * (two[0][e] @ f(one[0][e] @ x[t] + one[1][e], e, x[t]) + two[1][e])
    return y


def silu(x):
    return x / (1 + np.exp(-x))


@group
def mixtures(c):
    tokens, width, inner, count = 5, 16, 32, 4
    x, router = c.rand(tokens, width), c.rand(tokens, count)
    one, two = [c.rand(count, inner, width), c.rand(count, inner)], [c.rand(count, width, inner), c.rand(count, width)]
    three = [c.rand(count, inner, width), c.rand(count, inner)]
    joined = [c.rand(count, 2 * inner, width), c.rand(count, 2 * inner)]
    for how in ("relu", "gelu", "silu", "identity"):
        c.case(f"moe_{how}", "MoE", [x, router, *one, *two], constants=[2, 3, 4, 5], k=2, activation_type=how,
               tolerance="1e-3 1e-3")
    c.case("moe_normalized", "MoE", [x[None], router, *one, *two], k=2, normalize_routing_weights=1, tolerance="1e-3 1e-3")
    c.case("moe_step", "MoE", [x[:1], router[:1], *one, *two], k=2, activation_type="silu", tolerance="1e-3 1e-3")
    c.case("moe_no_bias", "MoE", [x, router, one[0], None, two[0]], k=1, activation_type="silu", tolerance="1e-3 1e-3")
    gated = {"activation_type": "swiglu", "activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 2.0}
    c.case("moe_swiglu", "MoE", [x, router, *joined, *two], constants=[2, 3, 4, 5], k=2, swiglu_fusion=1,
           tolerance="1e-3 1e-3", **gated)

    def gate(g, u):
        g, u = np.minimum(g, 2), np.clip(u, -2, 2)
        return g / (1 + np.exp(-1.702 * g)) * (u + 1)

    c.case("moe_swiglu_halves", "MoE", [x, router, *joined, *two], k=2, swiglu_fusion=2, **gated,
           expect=[experts(x, router, joined, two, 2, lambda h, e, v: gate(*np.split(h, 2)))])
    c.case("moe_swiglu_three", "MoE", [x, router, *one, *two, *three], k=2, **gated,
           expect=[experts(x, router, one, two, 2, lambda h, e, v: gate(h, three[0][e] @ v + three[1][e]))])
    c.case("moe_three", "MoE", [x, router, *one, *two, *three], k=2, activation_type="silu",
           expect=[experts(x, router, one, two, 2, lambda h, e, v: silu(h) * (three[0][e] @ v + three[1][e]))])


def pack(values, bits):
    """Along the last axis, the first number lowest; what is left of a byte is 0."""
    per = 8 // bits
    values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % per)])
    return sum(values[..., i::per] << (bits * i) for i in range(per)).astype(np.uint8)


def wide(layer, bits, block):
    """Matrices and biases from bytes of 8 bits, by block."""
    assert bits == 8
    values, scale, bias, zero = layer
    zero = 128 if zero is None else np.repeat(zero.astype(np.int64), block, -1)
    return (values.astype(np.int64) - zero) * np.repeat(scale, block, -1).astype(np.float64), bias


@group
def packed_mixtures(c):
    tokens, width, inner, count = 5, 32, 64, 4
    router, rates = c.rand(tokens, count), np.abs(c.rand(tokens, count))
    x = c.rand(tokens, width)
    biases = [c.rand(count, 2 * inner), c.rand(count, width)]
    for bits in (2, 4, 8):
        for block in (0, 16):
            for zero in (False, True):
                given = {}
                for i, (rows, columns) in enumerate(((2 * inner, width), (width, inner))):
                    blocks = columns // block if block else 1
                    given[i] = [pack(c.ints(0, 1 << bits, count, rows, columns), bits),
                                np.abs(c.rand(*((count, rows, blocks) if block else (count, rows)), scale=0.02)), biases[i]]
                    values = c.ints(0, 1 << bits, *((count, rows, blocks) if block else (count, rows)))
                    given[i].append(pack(values, bits) if zero else None)
                inputs = [x, router, *given[0][:3], *given[1][:3], None, None, None, given[0][3], given[1][3]]
                stem = f"qmoe{bits}" + f"_block" * bool(block) + "_zero" * zero
                more = {"expert_weight_bits": bits, "activation_type": "swiglu", "swiglu_fusion": 1, "k": 2}
                more |= {"block_size": block} if block else {}
                # ONNX Runtime rounds the tokens to bytes for blocks of 8 bits; with them whole it is this formula.
                whole = [wide(given[i], bits, block) for i in range(2)] if bits == 8 and block else None
                expect = whole and [experts(x, router, *whole, 2, lambda h, e, v: silu(h[::2]) * h[1::2], False)]
                c.case(stem, "QMoE", inputs, constants=[2, 3, 5, 6, 11, 12] if zero else [2, 3, 5, 6],
                       tolerance="1e-3 1e-3", expect=expect, **more)
                if bits == 4:
                    c.case(stem + "_step", "QMoE", [x[:1], router[:1], *inputs[2:]], tolerance="1e-3 1e-3",
                           normalize_routing_weights=1, **more)
                    c.case(stem + "_rates", "QMoE", [*inputs, None, rates], tolerance="1e-3 1e-3", **more)


# --- states ---


@group
def states(c):
    shapes = {"": (2, 2, 2), "_more_queries": (4, 2, 2), "_more_values": (2, 4, 4), "_few_keys": (2, 2, 4)}
    for rule in ("linear", "gated", "delta", "gated_delta"):
        for name, (queries, keys, values) in shapes.items():
            inputs = [c.rand(2, 5, queries * 8), c.rand(2, 5, keys * 8), c.rand(2, 5, values * 6), c.rand(2, values, 8, 6)]
            inputs.append(-np.abs(c.rand(2, 5, values * 8)) if "gated" in rule else None)
            inputs.append(1 / (1 + np.exp(-c.rand(2, 5, values))) if "delta" in rule else None)
            while inputs[-1] is None:
                inputs.pop()
            c.case(f"linear_attention_{rule}{name}", "LinearAttention", inputs, outputs=2, q_num_heads=queries,
                   kv_num_heads=values, update_rule=rule)
    for steps in (1, 5):
        for how in ("none", "silu"):
            x, w, b, past = c.rand(2, 3, steps), c.rand(3, 1, 4), c.rand(3), c.rand(2, 3, 3)
            stem = f"causal_conv_{steps}_{how}"
            c.case(stem, "CausalConvWithState", [x, w, b, past], outputs=2, activation=how)
            c.case(stem + "_first", "CausalConvWithState", [x, w], outputs=2, activation=how)
    c.case("causal_conv_dilated", "CausalConvWithState", [c.rand(2, 3, 9), c.rand(3, 1, 3), None, c.rand(2, 3, 4)],
           outputs=2, dilation=2)
    c.case("causal_conv_last", "CausalConvWithState", [c.rand(2, 5, 3), c.rand(3, 1, 3), None, c.rand(2, 2, 3)],
           outputs=2, channels_last=1)


# --- one token of many heads ---


@group
def one_token(c):
    heads, width, room = 2, 8, 6
    past, at = [c.rand(2, heads, room, 4) for _ in range(2)], np.array([3], np.int32)
    mask, bias = np.array([[1, 1, 0, 1], [0, 1, 1, 1]], np.int32), c.rand(3 * width)
    more = {"num_heads": heads, "past_present_share_buffer": 1}
    new = [c.rand(2, 1, width) for _ in range(3)]
    op = "DecoderMaskedMultiHeadAttention"
    c.case("masked_self", op, [*new, None, None, *past, at], outputs=3, **more)
    c.case("masked_self_all", op, [*new, mask, c.rand(1, heads, 1, 4), *past, at, None, None, bias], outputs=3, **more)
    cross = [c.rand(2, heads, 5, 4) for _ in range(2)]
    c.case("masked_cross", op, [new[0], *cross], num_heads=heads)
    c.case("masked_cross_mask", op, [new[0], *cross, np.array([[1, 0, 1, 1, 1], [1, 1, 1, 0, 0]], np.int32)],
           num_heads=heads)


# --- what is fused ---


@group
def fused(c):
    x, y, half = c.rand(2, 3, 8), c.rand(2, 3, 8), c.rand(2, 3, 16)
    c.case("gated_norm", "GatedRMSNorm", [x, c.rand(4), y], epsilon=1e-3)
    c.case("gated_norm_sigmoid", "GatedRMSNorm", [x, c.rand(8), y], activation="sigmoid")
    c.case("gated_norm_vector", "GatedRMSNorm", [c.rand(8), c.rand(4), c.rand(8)])
    c.case("linear_gate", "LinearAttentionGate", [x, c.rand(8), c.rand(8), y], outputs=2)
    c.case("linear_gate_alone", "LinearAttentionGate", [x, c.rand(8), c.rand(8)])
    c.case("gated_add", "GatedAdd", [x, y, c.rand(2, 3, 1)])
    weight = c.rand(8, 1)
    c.case("gated_add_weight", "GatedAdd", [x, y, half[..., 8:], weight],
           expect=[x + y / (1 + np.exp(-half[..., 8:] @ weight))])
    c.case("scaled_silu", "ScaledSiLU", [x], alpha=1.5)
    g, u = np.minimum(half[..., :8], 1), np.clip(half[..., 8:], -1, 1)
    c.case("swiglu_halves", "SwiGLU", [half], limit=1.0, activation_beta=0.5, activation_alpha=1.5,
           expect=[g / (1 + np.exp(-1.5 * g)) * (u + 0.5)])
    c.case("swiglu", "SwiGLU", [x, y], expect=[silu(x) * y])
    c.case("swiglu_vector", "SwiGLU", [half[0, 0]], expect=[silu(half[0, 0, :8]) * half[0, 0, 8:]])
    wide = half.astype(np.float16).astype(np.float32)
    g, u = silu(wide[..., :8]).astype(np.float16).astype(np.float32), wide[..., 8:]
    c.case("swiglu_rounded", "SwiGLU", [half.astype(np.float16)], round_activation=1, tolerance="1e-6 1e-7",
           expect=[(g * u).astype(np.float16)])
    angles = c.rand(20, 4)
    tables, places = [np.cos(angles), np.sin(angles)], c.ints(0, 20, 3, 2, 5, dtype=np.int64)
    for layout in (0, 1):
        more = {"mrope_section": [2, 1, 1], "mrope_layout": layout}
        c.case(f"rotary_of_three_{layout}", "MRotaryEmbedding", [c.rand(2, 5, 24), places, *tables], num_heads=3, **more)
        c.case(f"rotary_of_three_{layout}_part", "MRotaryEmbedding", [c.rand(2, 5, 36), places, *tables], num_heads=3,
               rotary_embedding_dim=8, interleaved=1, **more)
        c.case(f"rotary_of_three_{layout}_heads", "MRotaryEmbedding", [c.rand(2, 3, 5, 8), places, *tables], **more)
    for layout, sections in ((0, [4, 0, 0]), (1, [4, 0, 0]), (0, [0, 1, 3])):
        c.case(f"rotary_of_three_{layout}_" + "".join(map(str, sections)), "MRotaryEmbedding",
               [c.rand(2, 5, 8), places, *tables], num_heads=1, mrope_section=sections, mrope_layout=layout)
    angles = c.rand(20, 8)
    c.case("rotary_of_three_few", "MRotaryEmbedding", [c.rand(2, 5, 32), places, np.cos(angles), np.sin(angles)], num_heads=2,
           mrope_section=[6, 1, 1], mrope_layout=1)
    emb, heads = c.rand(2, 5, 8), [c.rand(2, 3, 5, 8).astype(np.float16) for _ in range(4)]
    cos, sin = (f(emb).astype(np.float16)[:, None] for f in (np.cos, np.sin))
    c.case("gemma_rotary", "GemmaRotaryEmbedding", [emb, *heads], tolerance="2e-2 2e-3",
           expect=[(a * cos + b * sin).astype(np.float16) for a, b in (heads[:2], heads[2:])])


@group
def gated_delta(c):
    queries, values, dk, dv = 2, 4, 8, 6
    for name, lens in (("", (2, 5)), ("_flat", (10,))):
        inputs = [c.rand(*lens, queries, dk), c.rand(*lens, queries, dk), c.rand(*lens, values, dv), None,
                  -np.abs(c.rand(*lens, values)), 1 / (1 + np.exp(-c.rand(*lens, values))), c.rand(2, values, dv, dk)]
        more = {"outputs": 2, "qk_l2_norm": 1}
        c.case("gated_delta" + name, "GatedDeltaNet", inputs, **more)
        c.case("gated_delta_each" + name, "GatedDeltaNet",
               [*inputs[:4], -np.abs(c.rand(*lens, values, dk)), *inputs[5:]], **more)
        for how in ("softplus", "sigmoid"):
            c.case(f"gated_delta_{how}" + name, "GatedDeltaNet",
                   [*inputs[:4], c.rand(*lens, values), c.rand(*lens, values), inputs[6], c.rand(values), c.rand(values)],
                   gate_activation=how, beta_activation="sigmoid", scale=0.5, **more)
