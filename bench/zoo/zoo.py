#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The model zoo: real architectures as weightless ONNX skeletons, refilled on demand.

A skeleton is an ordinary ONNX file whose large float tensors hold no data, only
`doc_string = "normal:<mean>,<std>"` (`positive:` for variances).  `make` fills them from a frozen generator
keyed by the tensor's name, so every machine gets byte-identical models.

    zoo.py list                        every model with its inputs
    zoo.py make DIR [NAME ...]         write DIR/NAME.onnx (all models without a NAME)
    zoo.py inputs DIR NAME [SYM=N ..]  write DIR/NAME.<input>.npy for each graph input

Needs only numpy and onnx.
"""
import os
import sys
import tarfile
import zlib

import numpy as np
import onnx
from onnx import numpy_helper

PACK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "skeletons.tar.xz")
# What a symbolic dimension stands for unless the caller says otherwise.
SYMBOLS = {"N": 1, "T": 128, "H": 224, "W": 224}
# The highest value (exclusive) of an integer input; anything else gets 0 or 1.
VOCABULARY = {"input_ids": 30000, "ids": 1000}
# (model, input) pairs whose sizes differ from SYMBOLS.
SIZES = {"crnn_lstm": {"W": 100}, "dbnet_resnet18": {"H": 320, "W": 320}, "mtcnn_pnet": {"H": 120, "W": 160},
         "retinaface_mobile": {"H": 320, "W": 320}, "gpt2": {"T": 64}, "gru_tagger": {"N": 2, "T": 40}, "llama_tiny": {"T": 64}}


def skeletons(pack=PACK):
    with tarfile.open(pack) as tar:
        return {os.path.splitext(m.name)[0]: tar.extractfile(m).read() for m in tar.getmembers() if m.name.endswith(".onnx")}


def tensors(graph):
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                yield attribute.t
            elif attribute.type == onnx.AttributeProto.GRAPH:
                yield from tensors(attribute.g)


def fill(skeleton):
    """Turn a skeleton's bytes into a complete ModelProto."""
    model = onnx.ModelProto.FromString(skeleton)
    for t in tensors(model.graph):
        kind, _, moments = t.doc_string.partition(":")
        if kind in ("normal", "positive"):
            mean, std = map(float, moments.split(","))
            rng = np.random.RandomState(zlib.crc32(t.name.encode()))
            values = rng.standard_normal(int(np.prod(t.dims))) * std + mean
            t.raw_data = (np.abs(values) if kind == "positive" else values).astype(np.float32).tobytes()
            t.doc_string = ""
    return model


def inputs(name, model, symbols=None):
    """Deterministic input arrays for a model: {input name: array}."""
    sizes = {**SYMBOLS, **SIZES.get(name, {}), **(symbols or {})}
    initial = {t.name for t in model.graph.initializer}
    feed = {}
    for value in model.graph.input:
        if value.name in initial:
            continue
        dims = [d.dim_value if d.HasField("dim_value") else sizes.get(d.dim_param, 1) for d in value.type.tensor_type.shape.dim]
        dtype = np.dtype({1: "f4", 6: "i4", 7: "i8", 9: "?", 10: "f2"}[value.type.tensor_type.elem_type])
        rng = np.random.RandomState(zlib.crc32(f"{name}/{value.name}".encode()))
        if value.name in VOCABULARY:
            feed[value.name] = rng.randint(0, VOCABULARY[value.name], dims).astype(dtype)
        elif np.issubdtype(dtype, np.integer):
            feed[value.name] = np.full(dims, "mask" in value.name, dtype)
        elif name.startswith("yolo") or value.name == "image":
            feed[value.name] = rng.random_sample(dims).astype(dtype)
        else:
            feed[value.name] = rng.standard_normal(dims).astype(dtype)
    return feed


def main(argv):
    command, args = (argv + ["list"])[0], argv[1:]
    if command not in ("list", "make", "inputs") or (command == "make" and not args) or (command == "inputs" and len(args) < 2):
        sys.exit(__doc__)
    pack = skeletons(os.environ.get("ZOO_PACK", PACK))
    wanted = {"list": sorted(pack), "make": args[1:] or sorted(pack), "inputs": args[1:2]}[command]
    for name in wanted:
        if name not in pack:
            sys.exit(f"zoo: no model {name!r}; `zoo.py list` prints them")
        if command == "make":
            os.makedirs(args[0], exist_ok=True)
            onnx.save(fill(pack[name]), os.path.join(args[0], name + ".onnx"))
            continue
        model = onnx.ModelProto.FromString(pack[name])
        feed = inputs(name, model, {k: int(v) for k, v in (a.split("=") for a in args[2:])} if command == "inputs" else None)
        if command == "list":
            print(f"{name:26} opset {model.opset_import[0].version:2}  {len(model.graph.node):5} nodes  " + ", ".join(f"{k} {v.dtype}{list(v.shape)}" for k, v in feed.items()))
            continue
        os.makedirs(args[0], exist_ok=True)
        for key, array in feed.items():
            np.save(os.path.join(args[0], f"{name}.{key.replace('/', '_')}.npy"), array)


if __name__ == "__main__":
    main(sys.argv[1:])
