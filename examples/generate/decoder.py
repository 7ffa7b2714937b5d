#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a small decoder with a key/value cache: what a language model looks like to an engine, with made-up weights.

    decoder.py FOLDER [--layers 4] [--width 256] [--heads 4] [--words 1000] [--seed 1]

Inputs: `id`, the last token, and per layer `past_key_<i>` and `past_value_<i>` of the tokens before, whose number P is free and may
be 0. Results: `logits` of the next token, and per layer `key_<i>` and `value_<i>`, the past with the token in it. Beside
model.onnx the folder has genai_config.json, which says so, as ONNX Runtime GenAI's does.
"""
import argparse
import json
import os

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


def build(layers, width, heads, words, seed=1):
    rng, n, each = np.random.default_rng(seed), helper.make_node, width // heads
    nodes, initial, inputs, outputs = [], [], [], []

    def weight(name, *shape, scale=None):
        values = rng.standard_normal(shape) * (scale or 1 / np.sqrt(shape[0]))
        initial.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def constant(name, values, kind):
        initial.append(numpy_helper.from_array(np.asarray(values, kind), name))
        return name

    def normal(x, name):
        g, b = constant(name + ".g", np.ones(width), np.float32), constant(name + ".b", np.zeros(width), np.float32)
        nodes.append(n("LayerNormalization", [x, g, b], [name], axis=-1))
        return name

    split, whole = constant("split", [1, 1, heads, each], np.int64), constant("whole", [1, 1, width], np.int64)
    scale = constant("scale", each**-0.5, np.float32)
    nodes.append(n("Gather", [weight("table", words, width, scale=1), "id"], ["x"]))
    x = "x"
    for i in range(layers):
        a = normal(x, f"n{i}")
        for k in ("query", "key", "value"):
            nodes.append(n("MatMul", [a, weight(f"w_{k}_{i}", width, width)], [f"{k}.a{i}"]))
            nodes.append(n("Reshape", [f"{k}.a{i}", split], [f"{k}.b{i}"]))
            nodes.append(n("Transpose", [f"{k}.b{i}"], [f"{k}.c{i}"], perm=[0, 2, 1, 3]))
        for k in ("key", "value"):
            nodes.append(n("Concat", [f"past_{k}_{i}", f"{k}.c{i}"], [f"{k}_{i}"], axis=2))
            inputs.append(helper.make_tensor_value_info(f"past_{k}_{i}", TensorProto.FLOAT, [1, heads, "P", each]))
            outputs.append(helper.make_tensor_value_info(f"{k}_{i}", TensorProto.FLOAT, [1, heads, "Q", each]))
        nodes += [n("Transpose", [f"key_{i}"], [f"kt{i}"], perm=[0, 1, 3, 2]), n("MatMul", [f"query.c{i}", f"kt{i}"], [f"s{i}"]),
                  n("Mul", [f"s{i}", scale], [f"ss{i}"]), n("Softmax", [f"ss{i}"], [f"p{i}"], axis=-1),
                  n("MatMul", [f"p{i}", f"value_{i}"], [f"o{i}"]), n("Transpose", [f"o{i}"], [f"ot{i}"], perm=[0, 2, 1, 3]),
                  n("Reshape", [f"ot{i}", whole], [f"or{i}"]), n("MatMul", [f"or{i}", weight(f"w_out_{i}", width, width)], [f"op{i}"]),
                  n("Add", [x, f"op{i}"], [f"r{i}"])]
        b = normal(f"r{i}", f"m{i}")
        nodes += [n("MatMul", [b, weight(f"up_{i}", width, 4 * width)], [f"u{i}"]), n("Relu", [f"u{i}"], [f"v{i}"]),
                  n("MatMul", [f"v{i}", weight(f"down_{i}", 4 * width, width)], [f"d{i}"]), n("Add", [f"r{i}", f"d{i}"], [f"x{i}"])]
        x = f"x{i}"
    nodes.append(n("MatMul", [normal(x, "last"), weight("head", width, words)], ["logits"]))
    inputs.insert(0, helper.make_tensor_value_info("id", TensorProto.INT64, [1, 1]))
    outputs.insert(0, helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1, words]))
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def describe(words):
    inputs = {"input_ids": "id", "past_key_names": "past_key_%d", "past_value_names": "past_value_%d"}
    outputs = {"logits": "logits", "present_key_names": "key_%d", "present_value_names": "value_%d"}
    decoder = {"filename": "model.onnx", "inputs": inputs, "outputs": outputs}
    return {"model": {"context_length": 4096, "vocab_size": words, "eos_token_id": 0, "decoder": decoder}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    for name, default in (("layers", 4), ("width", 256), ("heads", 4), ("words", 1000), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    save(build(args.layers, args.width, args.heads, args.words, args.seed), os.path.join(args.folder, "model.onnx"))
    with open(os.path.join(args.folder, "genai_config.json"), "w", encoding="utf-8") as file:
        json.dump(describe(args.words), file, indent=2)
