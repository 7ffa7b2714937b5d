# SPDX-License-Identifier: MIT
"""Small models of an encoder and a decoder with made-up weights, in the layouts that exporters write.

    merged     encoder_model, and decoder_model_merged, whose branches are the decoder of first tokens and that of later ones
    pair       encoder_model, decoder_model, decoder_with_past_model
    crossed    genai_config.json names an encoder that gives keys and values itself, and a decoder that takes them
    whole      encoder/model, decoder/model: the decoder takes hidden states at every token

The decoder of later tokens has no mask among its tokens, as a graph has none that was traced with one token. `heard` takes a
source of floats, {batch, 8, frames}, instead of tokens.
"""
import json
import os
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYOUTS = ("merged", "pair", "crossed", "whole")
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
WORDS, WIDTH, HEADS, LAYERS, POSITIONS = 60, 32, 4, 2, 64
SIZE = WIDTH // HEADS
value = helper.make_tensor_value_info


class Graph:
    """Nodes and named weights, the same in all graphs that have them."""

    def __init__(self, prefix=""):
        self.prefix, self.nodes, self.initial, self.count = prefix, [], {}, 0

    def weight(self, name, *shape):
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        data = rng.standard_normal(shape) * (1.5 / np.sqrt(shape[0]) if len(shape) > 1 else 0.3)
        self.initial[name] = numpy_helper.from_array(data.astype(np.float32), name)
        return name

    def constant(self, data):
        data = np.asarray(data)
        name = f"c{zlib.crc32(data.tobytes() + str(data.dtype).encode() + str(data.shape).encode())}"
        self.initial[name] = numpy_helper.from_array(data, name)
        return name

    def node(self, op, *inputs, name=None, **attributes):
        self.count += 1
        out = name or f"{self.prefix}n{self.count}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out

    def linear(self, x, name, n=WIDTH):
        return self.node("MatMul", x, self.weight(name, WIDTH, n))

    def normal(self, x, name):
        return self.node("LayerNormalization", x, self.weight(name + "g", WIDTH), self.weight(name + "b", WIDTH), axis=-1)

    def heads_of(self, x, batch=None):
        """{batch, heads, tokens, size}; the batch may come from elsewhere, as exporters write it."""
        if batch:
            shape = self.node("Concat", batch, self.constant(np.array([-1, HEADS, SIZE], np.int64)), axis=0)
        else:
            shape = self.constant(np.array([0, 0, HEADS, SIZE], np.int64))
        return self.node("Transpose", self.node("Reshape", x, shape), perm=[0, 2, 1, 3])

    def attend(self, q, k, v, bias, name):
        s = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        s = self.node("Mul", s, self.constant(np.float32(SIZE**-0.5)))
        s = self.node("Add", s, bias) if bias else s
        o = self.node("Transpose", self.node("MatMul", self.node("Softmax", s, axis=-1), v), perm=[0, 2, 1, 3])
        return self.linear(self.node("Reshape", o, self.constant(np.array([0, 0, WIDTH], np.int64))), name)

    def model(self, inputs, outputs):
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, list(self.initial.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def keys_and_values(g, hidden, layer, batch=None):
    return [g.heads_of(g.linear(hidden, f"cross{layer}{what}"), batch) for what in ("k", "v")]


def encoder(heard, crossed):
    g = Graph()
    if heard:
        inputs = [value("input_features", FLOAT, ["batch", 8, "frames"])]
        x = g.node("MatMul", g.node("Transpose", "input_features", perm=[0, 2, 1]), g.weight("listen", 8, WIDTH))
    else:
        inputs = [value(n, INT64, ["batch", "source"]) for n in ("input_ids", "attention_mask")]
        x = g.node("Gather", g.weight("source words", WORDS, WIDTH), "input_ids")
        mask = g.node("Cast", g.node("Unsqueeze", "attention_mask", g.constant(np.array([2], np.int64))), to=FLOAT)
        x = g.node("Mul", x, mask)
    mean = g.node("ReduceMean", x, axes=[1], keepdims=1)
    g.node("Tanh", g.node("Add", g.linear(x, "own"), g.linear(mean, "all")), name="last_hidden_state")
    outputs = [value("last_hidden_state", FLOAT, ["batch", "source", WIDTH])]
    for layer in range(LAYERS if crossed else 0):
        for what, made in zip(("key", "value"), keys_and_values(g, "last_hidden_state", layer)):
            g.node("Identity", made, name=f"present_{what}_cross_{layer}")
            outputs.append(value(f"present_{what}_cross_{layer}", FLOAT, ["batch", HEADS, "source", SIZE]))
    return g.model(inputs, outputs)


PAST = {"merged": "past_key_values.{}.decoder.{}", "pair": "past_key_values.{}.decoder.{}", "crossed": "past_{1}_self_{0}",
        "whole": "past_key_values.{}.self.{}"}
PRESENT = {"merged": "present.{}.decoder.{}", "pair": "present.{}.decoder.{}", "crossed": "present_{1}_self_{0}",
           "whole": "present.{}.self.{}"}
CROSS = {"merged": "past_key_values.{}.encoder.{}", "pair": "past_key_values.{}.encoder.{}", "crossed": "past_{1}_cross_{0}"}
BOTH = ("key", "value")


def decode(g, layout, heard, past, crossed):
    """The decoder's nodes; `past`: behind caches, `crossed`: keys and values come in. Gives the names of all results."""
    zero, axis1 = g.constant(np.array([0], np.int64)), g.constant(np.array([1], np.int64))
    batch, count = (g.node("Gather", g.node("Shape", "input_ids"), a) for a in (zero, axis1))
    names = PAST[layout]
    before = g.node("Gather", g.node("Shape", names.format(0, "key")), g.constant(np.array([2], np.int64))) if past else zero
    end = g.node("Add", before, count)
    scalar = [g.node("Squeeze", x, zero) for x in (before, end)]
    places = g.node("Range", scalar[0], scalar[1], g.constant(np.int64(1)))
    x = g.node("Gather", g.weight("words", WORDS, WIDTH), "input_ids")
    x = g.node("Add", x, g.node("Gather", g.weight("places", POSITIONS, WIDTH), places))
    bias = None
    if not past or layout in ("crossed", "whole"):
        keys = g.node("Range", g.constant(np.int64(0)), scalar[1], g.constant(np.int64(1)))
        seen = g.node("LessOrEqual", keys, g.node("Unsqueeze", places, axis1))
        bias = g.node("Where", seen, g.constant(np.float32(0)), g.constant(np.float32(-1e9)))
    hidden = None
    if not heard and layout in ("merged", "pair"):
        mask = g.node("Cast", g.node("Unsqueeze", "encoder_attention_mask", g.constant(np.array([1, 2], np.int64))), to=FLOAT)
        hidden = g.node("Mul", g.node("Sub", mask, g.constant(np.float32(1))), g.constant(np.float32(1e9)))
    results = []
    for layer in range(LAYERS):
        y = g.normal(x, f"n{layer}")
        q, k, v = (g.heads_of(g.linear(y, f"self{layer}{what}")) for what in "qkv")
        if past:
            k, v = (g.node("Concat", names.format(layer, what), now, axis=2) for what, now in zip(BOTH, (k, v)))
        x = g.node("Add", x, g.attend(q, k, v, bias, f"self{layer}o"))
        if crossed:
            ck, cv = (CROSS[layout].format(layer, what) for what in BOTH)
        else:
            ck, cv = keys_and_values(g, "encoder_hidden_states", layer, batch)
        q = g.heads_of(g.linear(g.normal(x, f"m{layer}"), f"cross{layer}q"))
        x = g.node("Add", x, g.attend(q, ck, cv, hidden, f"cross{layer}o"))
        x = g.node("Add", x, g.node("Tanh", g.linear(x, f"up{layer}")))
        results.append((k, v, ck, cv))
    return g.linear(g.normal(x, "last"), "out", WORDS), results


def cache(name, length):
    return value(name, FLOAT, ["batch", HEADS, length, SIZE])


def inputs_of(layout, heard, past, crossed):
    inputs = [value("input_ids", INT64, ["batch", "tokens"])]
    if not heard and layout in ("merged", "pair"):
        inputs.append(value("encoder_attention_mask", INT64, ["batch", "source"]))
    if not crossed:
        inputs.append(value("encoder_hidden_states", FLOAT, ["batch", "source", WIDTH]))
    for layer in range(LAYERS):
        inputs += [cache(PAST[layout].format(layer, what), "past") for what in BOTH if past]
        inputs += [cache(CROSS[layout].format(layer, what), "source") for what in BOTH if crossed]
    return inputs


def decoder(layout, heard, past, crossed, gives_crossed=False):
    g = Graph()
    logits, results = decode(g, layout, heard, past, crossed)
    g.node("Identity", logits, name="logits")
    outputs = [value("logits", FLOAT, ["batch", "tokens", WORDS])]
    for layer, made in enumerate(results):
        kinds = [(PRESENT[layout], made[:2], "total")] + ([("present.{}.encoder.{}", made[2:], "source")] if gives_crossed else [])
        for pattern, values, length in kinds:
            for what, made_ in zip(BOTH, values):
                g.node("Identity", made_, name=pattern.format(layer, what))
                outputs.append(cache(pattern.format(layer, what), length))
    return g.model(inputs_of(layout, heard, past, crossed), outputs)


def branch(heard, past):
    """One branch of a merged decoder; that of later tokens gives empty values for what it was given."""
    g = Graph("later" if past else "first")
    logits, results = decode(g, "merged", heard, past, past)
    outputs = [value(g.node("Identity", logits), FLOAT, None)]
    for made in results:
        outputs += [value(g.node("Identity", name), FLOAT, None) for name in made[:2]]
        given = [g.constant(np.zeros((0, HEADS, 1, SIZE), np.float32))] * 2 if past else made[2:]
        outputs += [value(g.node("Identity", name), FLOAT, None) for name in given]
    return helper.make_graph(g.nodes, g.prefix, [], outputs), g.initial


def merged(heard):
    (later, one), (first, other) = branch(heard, True), branch(heard, False)
    inputs = inputs_of("merged", heard, False, False)
    for layer in range(LAYERS):
        inputs += [cache(PAST["merged"].format(layer, what), "past") for what in BOTH]
        inputs += [cache(CROSS["merged"].format(layer, what), "source") for what in BOTH]
    inputs.append(value("use_cache_branch", BOOL, [1]))
    outputs = [value("logits", FLOAT, ["batch", "tokens", WORDS])]
    for layer in range(LAYERS):
        outputs += [cache(PRESENT["merged"].format(layer, what), "total") for what in BOTH]
        outputs += [cache(f"present.{layer}.encoder.{what}", "given") for what in BOTH]
    node = helper.make_node("If", ["use_cache_branch"], [o.name for o in outputs], then_branch=later, else_branch=first)
    graph = helper.make_graph([node], "merged", inputs, outputs, list({**one, **other}.values()))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def genai_config():
    decoder_inputs = {"input_ids": "input_ids"}
    for what in BOTH:
        decoder_inputs[f"past_{what}_names"] = f"past_{what}_self_%d"
        decoder_inputs[f"cross_past_{what}_names"] = f"past_{what}_cross_%d"
    return {"model": {
        "type": "whisper", "context_length": POSITIONS, "vocab_size": WORDS, "eos_token_id": 1, "decoder_start_token_id": 2,
        "decoder": {"filename": "decoder.onnx", "inputs": decoder_inputs, "outputs": {
            "logits": "logits", **{f"present_{what}_names": f"present_{what}_self_%d" for what in BOTH}}},
        "encoder": {"filename": "encoder.onnx", "outputs": {
            "encoder_hidden_states": "last_hidden_state", **{f"cross_present_{what}_names": f"present_{what}_cross_%d" for what in BOTH}}}},
        "search": {"do_sample": False}}


def save(folder, layout, heard=False):
    """The folder; gives the encoder and the decoder of first tokens, from which every token's scores follow."""
    os.makedirs(folder, exist_ok=True)
    files = {"merged": {"encoder_model": encoder(heard, False), "decoder_model_merged": merged(heard)},
             "pair": {"encoder_model": encoder(heard, False), "decoder_model": decoder("pair", heard, False, False, True),
                      "decoder_with_past_model": decoder("pair", heard, True, True)},
             "crossed": {"encoder": encoder(heard, True), "decoder": decoder("crossed", heard, True, True)},
             "whole": {"encoder/model": encoder(heard, False), "decoder/model": decoder("whole", heard, True, False)}}[layout]
    for name, model in files.items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        onnx.save(model, os.path.join(folder, name + ".onnx"))
    texts = {"genai_config.json": genai_config()} if layout == "crossed" else {
        "config.json": {"is_encoder_decoder": True, "vocab_size": WORDS, "max_target_positions": POSITIONS, "decoder_start_token_id": 2,
                        "eos_token_id": 1}}
    for name, data in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(data, file)
    masked = "pair" if layout in ("merged", "pair") else "whole"
    return encoder(heard, False), decoder(masked, heard, False, False)
