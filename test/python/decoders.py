# SPDX-License-Identifier: MIT
"""Small decoders with made-up weights, one of each kind that exporters write, as models and as folders.

    room       GroupQueryAttention over caches with room, lengths from the mask, as ONNX Runtime GenAI's builder writes it
    lengths    the same with seqlens_k and total_sequence_length as inputs
    growing    attention in plain operators, caches that grow by concat, mask and positions, as Optimum writes it
    masked     the same, but a token is told from those behind it by the number of rows before it, as newer exporters write it
    windowed   as masked, and a token sees the last eight rows alone
    counted    as masked, and positions are no input: they are counted from the rows before
    fixed      a gated recurrent layer and a causal convolution, whose states keep their lengths
    mixed      a convolution's state beside a cache that grows
    hybrid     a convolution's state beside GroupQueryAttention's caches
    padded     the same, and the mask's last places take tokens out of the convolution, as Transformers does
    joined     as mixed, but told by the rows before, as masked
    single     one token at a time for one text: no axis but the cache's is open
    stepwise   as fixed, but its graph takes one token though the axis is open
"""
import json
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

KINDS = ("room", "lengths", "growing", "masked", "windowed", "counted", "fixed", "mixed", "hybrid", "single", "stepwise")
FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
value = helper.make_tensor_value_info


class Writer:
    """Nodes, weights and names of one graph."""

    def __init__(self, seed, width, heads, shared, words, positions):
        self.rng, self.width, self.heads, self.shared, self.words, self.positions = (
            np.random.default_rng(seed), width, heads, shared, words, positions)
        self.size, self.cos = width // heads, None
        self.first_cache = 0  # the layer that has it
        self.nodes, self.initial, self.inputs, self.outputs, self.count = [], [], [], [], 0

    def weights(self, *shape, scale=None):
        data = self.rng.standard_normal(shape) * (scale or 1 / np.sqrt(shape[0]))
        return self.constant(data.astype(np.float32))

    def constant(self, data):
        self.count += 1
        self.initial.append(numpy_helper.from_array(np.asarray(data), f"c{self.count}"))
        return self.initial[-1].name

    def node(self, op, *inputs, name=None, outputs=1, **attributes):
        self.count += 1
        names = [name] if name else [f"n{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if len(names) == 1 else names

    def normal(self, x):
        return self.node("LayerNormalization", x, self.constant(np.ones(self.width, np.float32)),
                         self.constant(np.zeros(self.width, np.float32)), axis=-1)

    def linear(self, x, n):
        return self.node("MatMul", x, self.weights(self.width, n))

    def state(self, past, present, first, second):
        self.inputs.append(value(past, FLOAT, first))
        self.outputs.append(value(present, FLOAT, second))
        return past

    def heads_of(self, x, heads):
        y = self.node("Reshape", x, self.constant(np.array([0, 0, heads, self.size], np.int64)))
        return self.node("Transpose", y, perm=[0, 2, 1, 3])


def grouped(w, x, layer, lengths, total):
    """GroupQueryAttention with rotation and caches that have room."""
    names = [(f"past_key_values.{layer}.{k}", f"present.{layer}.{k}") for k in ("key", "value")]
    for past, present in names:
        w.state(past, present, ["batch", w.shared, "past", w.size], ["batch", w.shared, "total", w.size])
    if not w.cos:
        angle = np.outer(np.arange(w.positions), 1e4 ** (-np.arange(w.size // 2) / (w.size // 2)))
        w.cos, w.sin = (w.constant(f(angle).astype(np.float32)) for f in (np.cos, np.sin))
    qkv = w.linear(x, (w.heads + 2 * w.shared) * w.size)
    w.count += 1
    out = f"gqa{layer}"
    w.nodes.append(helper.make_node(
        "GroupQueryAttention", [qkv, "", "", names[0][0], names[1][0], lengths, total, w.cos, w.sin], [out, names[0][1], names[1][1]],
        domain="com.microsoft", num_heads=w.heads, kv_num_heads=w.shared, do_rotary=1))
    return w.linear(out, w.width)


def concat(w, x, layer, bias):
    """Attention in plain operators, with caches that grow."""
    q, k, v = (w.heads_of(w.linear(x, w.width), w.heads) for _ in range(3))
    ends = []
    for name, now in (("key", k), ("value", v)):
        past = w.state(f"past_key_values.{layer}.{name}", f"present.{layer}.{name}",
                       ["batch", w.heads, "past", w.size], ["batch", w.heads, "total", w.size])
        ends.append(w.node("Concat", past, now, name=f"present.{layer}.{name}", axis=2))
    s = w.node("MatMul", q, w.node("Transpose", ends[0], perm=[0, 1, 3, 2]))
    s = w.node("Add", w.node("Mul", s, w.constant(np.float32(w.size**-0.5))), bias)
    o = w.node("Transpose", w.node("MatMul", w.node("Softmax", s, axis=-1), ends[1]), perm=[0, 2, 1, 3])
    return w.linear(w.node("Reshape", o, w.constant(np.array([0, 0, w.width], np.int64))), w.width)


def recurrent(w, x, layer):
    """A gated recurrent layer: its last state is handed on."""
    past = w.state(f"past_state.{layer}", f"present_state.{layer}", ["batch", 1, w.width], ["batch", 1, w.width])
    t, h = w.node("Transpose", x, perm=[1, 0, 2]), w.node("Transpose", past, perm=[1, 0, 2])
    scale = 1 / np.sqrt(w.width)
    y, last = w.node("GRU", t, w.weights(1, 3 * w.width, w.width, scale=scale), w.weights(1, 3 * w.width, w.width, scale=scale), "", "", h,
                     outputs=2, hidden_size=w.width, linear_before_reset=1)
    w.node("Transpose", last, name=f"present_state.{layer}", perm=[1, 0, 2])
    y = w.node("Squeeze", y, w.constant(np.array([1], np.int64)))
    return w.node("Transpose", y, perm=[1, 0, 2])


def convolution(w, x, layer):
    """A causal convolution over four tokens: the last three are handed on."""
    past = w.state(f"past_conv.{layer}", f"present_conv.{layer}", ["batch", w.width, 3], ["batch", w.width, 3])
    y = w.node("Concat", past, w.node("Transpose", x, perm=[0, 2, 1]), axis=2)
    w.node("Slice", y, w.constant(np.array([-3], np.int64)), w.constant(np.array([2**31 - 1], np.int64)), w.constant(np.array([2], np.int64)),
           name=f"present_conv.{layer}")
    y = w.node("Conv", y, w.weights(w.width, 1, 4, scale=0.5), group=w.width)
    return w.node("Transpose", y, perm=[0, 2, 1])


def last_masked(w, x):
    """Times the mask's last places, one for each new token."""
    axis, end = w.constant(np.array([1], np.int64)), w.constant(np.array([2**31 - 1], np.int64))
    count = w.node("Slice", w.node("Shape", "input_ids"), axis, end, w.constant(np.array([0], np.int64)))
    mask = w.node("Cast", w.node("Slice", "attention_mask", w.node("Neg", count), end, axis), to=FLOAT)
    return w.node("Mul", x, w.node("Unsqueeze", mask, w.constant(np.array([2], np.int64))))


def gated(w, x):
    """The products behind attention."""
    gate, up = w.node("MatMul", x, w.weights(w.width, 2 * w.width)), w.node("MatMul", x, w.weights(w.width, 2 * w.width))
    return w.node("MatMul", w.node("Mul", w.node("Mul", gate, w.node("Sigmoid", gate)), up), w.weights(2 * w.width, w.width))


def rows_before(w):
    """{tokens, 1}: how many rows of the cache stand before each new token's own."""
    first, count = (w.node("Gather", w.node("Shape", name), w.constant(np.int64(axis)))
                    for name, axis in ((f"past_key_values.{w.first_cache}.key", 2), ("input_ids", 1)))
    places = w.node("Range", first, w.node("Add", first, count), w.constant(np.int64(1)))
    return w.node("Unsqueeze", places, w.constant(np.array([1], np.int64)))


def mask_bias(w, kind):
    """{batch, 1, tokens, total}: 0 where a token sees another, else a large negative number."""
    total = w.node("Gather", w.node("Shape", "attention_mask"), w.constant(np.int64(1)))
    places = w.node("Range", w.constant(np.int64(0)), total, w.constant(np.int64(1)))
    places = w.node("Unsqueeze", places, w.constant(np.array([0, 1], np.int64)))
    by_position = kind in ("growing", "mixed")
    last = w.node("Unsqueeze", "position_ids", w.constant(np.array([2], np.int64))) if by_position else rows_before(w)
    both = w.node("LessOrEqual", places, last)
    if kind == "windowed":
        both = w.node("And", both, w.node("Greater", places, w.node("Sub", last, w.constant(np.int64(8)))))
    there = w.node("Cast", w.node("Unsqueeze", "attention_mask", w.constant(np.array([1], np.int64))), to=TensorProto.BOOL)
    bias = w.node("Where", w.node("And", both, there), w.constant(np.float32(0)), w.constant(np.float32(-1e9)))
    return w.node("Unsqueeze", bias, w.constant(np.array([1], np.int64)))


def lengths_of(w):
    """seqlens_k and total_sequence_length from the mask, as GenAI's builder computes them."""
    count = w.node("ReduceSum", "attention_mask", w.constant(np.array([1], np.int64)), keepdims=0)
    lengths = w.node("Cast", w.node("Sub", count, w.constant(np.int64(1))), to=INT32)
    total = w.node("Cast", w.node("Gather", w.node("Shape", "attention_mask"), w.constant(np.int64(1))), to=INT32)
    return lengths, total


def build(kind, layers=2, width=64, heads=4, shared=2, words=50, positions=512, seed=0):
    """The model of a kind."""
    w = Writer(seed, width, heads, shared, words, positions)
    batch, tokens = (1, 1) if kind == "single" else ("batch", "tokens")
    w.inputs.append(value("input_ids", INT64, [batch, tokens]))
    grows = kind in ("growing", "masked", "windowed", "counted")
    beside = kind in ("mixed", "joined", "hybrid", "padded")  # a convolution in every second layer
    w.first_cache = 1 if beside else 0
    if kind == "room" or beside or grows:
        w.inputs.append(value("attention_mask", INT64, ["batch", "total"]))
    if kind in ("mixed", "joined") or (grows and kind != "counted"):
        w.inputs.append(value("position_ids", INT64, ["batch", "tokens"]))
    if kind == "lengths":
        w.inputs += [value("seqlens_k", INT32, ["batch"]), value("total_sequence_length", INT32, [])]
    w.outputs.append(value("logits", FLOAT, [batch, tokens, words]))
    x = w.node("Gather", w.weights(words, width, scale=1), "input_ids")
    if kind in ("room", "hybrid", "padded"):
        lengths, total = lengths_of(w)
    elif kind == "lengths":
        lengths, total = "seqlens_k", "total_sequence_length"
    elif beside or grows:
        bias = mask_bias(w, kind)
        where = w.node("Transpose", rows_before(w), perm=[1, 0]) if kind == "counted" else "position_ids"
        x = w.node("Add", x, w.node("Gather", w.weights(positions, width, scale=1), where))
    elif kind == "single":
        bias = w.constant(np.zeros((1, 1, 1, 1), np.float32))
    if kind == "stepwise":
        axis = w.constant(np.array([1], np.int64))
        x = w.node("Unsqueeze", w.node("Squeeze", x, axis), axis)
    for layer in range(layers):
        y = w.normal(x)
        if kind in ("room", "lengths") or (kind in ("hybrid", "padded") and layer % 2):
            y = grouped(w, y, layer, lengths, total)
        elif grows or kind == "single" or (beside and layer % 2):
            y = concat(w, y, layer, bias)
        elif kind in ("fixed", "stepwise") and layer % 2:
            y = recurrent(w, y, layer)
        else:
            y = convolution(w, last_masked(w, y) if kind == "padded" else y, layer)
        x = w.node("Add", x, y)
        x = w.node("Add", x, gated(w, w.normal(x)))
    w.node("MatMul", w.normal(x), w.weights(width, words), name="logits")
    if kind == "single":
        for v in list(w.inputs) + list(w.outputs):
            v.type.tensor_type.shape.dim[0].dim_value = 1
    graph = helper.make_graph(w.nodes, "decoder", w.inputs, w.outputs, w.initial)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def save(folder, kind, config="genai", context=256, ends=(1,), **sizes):
    """A folder with the model, its weights beside it, and what its makers say of it ("genai", "transformers" or nothing)."""
    os.makedirs(folder, exist_ok=True)
    model = build(kind, **sizes)
    words = sizes.get("words", 50)
    onnx.save(onnx.ModelProto.FromString(model.SerializeToString()), os.path.join(folder, "model.onnx"), save_as_external_data=True, location="model.onnx.data", size_threshold=256)
    names = {"input_ids": "input_ids", "attention_mask": "attention_mask", "position_ids": "position_ids",
             "past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value"}
    there = {i.name for i in model.graph.input}
    names = {k: v for k, v in names.items() if v in there or "%d" in v}
    texts = {}
    if config == "genai":
        texts["genai_config.json"] = {
            "model": {"type": "tiny", "context_length": context, "vocab_size": words, "eos_token_id": list(ends),
                      "decoder": {"filename": "model.onnx", "inputs": names, "outputs": {
                          "logits": "logits", "present_key_names": "present.%d.key", "present_value_names": "present.%d.value"}}},
            "search": {"do_sample": False, "max_length": context}}
    elif config == "transformers":
        texts["config.json"] = {"model_type": "tiny", "max_position_embeddings": context, "vocab_size": words}
        texts["generation_config.json"] = {"eos_token_id": ends[0], "do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.9}
    for name, data in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(data, file)
    return model
