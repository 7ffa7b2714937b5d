# SPDX-License-Identifier: MIT
"""The list of the gate's models, and how each becomes a file with inputs beside it.

A model is a name; `make` writes NAME.onnx and NAME.npz and says what else the worker needs: {"free": sizes stay free,
"quantize": a way of this engine's}. A model that cannot be made here raises Skipped with the reason.
"""
import fnmatch
import logging
import os
import sys

import numpy as np
import onnx
from draw import DECODERS, FAMILIES
from graph import FLOAT, HALF, Graph

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "zoo"))
# name: (family, how it is quantized). `qdq` is written by Graph, `static` and `dynamic` are ONNX Runtime's quantizer, what
# starts with `own` is this engine's.
INT8 = {"qdq_conv_1": ("conv", "qdq"), "qdq_conv_2": ("conv", "qdq"), "qdq_conv_3": ("conv", "qdq"), "qdq_conv_4": ("conv", "qdq"),
        "qdq_transformer_1": ("transformer", "qdq"), "qdq_transformer_2": ("transformer", "qdq"), "qdq_mixer": ("mixer", "qdq"),
        "static_conv": ("conv", "static"), "static_transformer": ("transformer", "static"), "dynamic_transformer": ("transformer", "dynamic"),
        "dynamic_recurrent": ("recurrent", "dynamic"), "own_conv_1": ("conv", "own int8"), "own_conv_2": ("conv", "own int8"),
        "own_transformer": ("transformer", "own int8"), "own_4bit_transformer": ("transformer", "own int4"), "own_4bit_mixer": ("mixer", "own int4")}
HALVES = {"fp16_conv": ("conv", "file"), "fp16_transformer": ("transformer", "file"), "fp16_mixer": ("mixer", "file"),
          "own_fp16_conv": ("conv", "own fp16"), "own_bf16_conv": ("conv", "own bf16"), "own_bf16_transformer": ("transformer", "own bf16")}


class Skipped(Exception):
    pass


def zoo_names():
    try:
        import zoo
        return sorted(zoo.skeletons())
    except (ImportError, OSError):
        return []


def names():
    drawn = [f"draw/{family}_{i:02}" for family, (_, count) in FAMILIES.items() for i in range(count)]
    rest = [f"{folder}/{name}" for folder, table in (("int8", INT8), ("halves", HALVES), ("decoder", DECODERS)) for name in table]
    return sorted(["zoo/" + n for n in zoo_names()] + drawn + rest + ["decoder/packed_own"])


def chosen(patterns):
    return [n for n in names() if not patterns or any(fnmatch.fnmatch(n, p) for p in patterns)]


def drawn(name, function, real=FLOAT, quantized=False):
    g = Graph(name, real, quantized)
    function(g)
    return g


def quantized_by_ort(path, feed, kind):
    """The file through ONNX Runtime's quantizer, 7 bits, one input for calibration."""
    from onnxruntime.quantization import QuantType, quantize_dynamic, quantize_static
    logging.getLogger().setLevel(logging.ERROR)  # it advises to prepare the file first
    made, left = path[:-len(".onnx")] + ".float.onnx", [feed]
    os.replace(path, made)

    class Once:
        def get_next(self):
            return left.pop() if left else None
    if kind == "dynamic":
        quantize_dynamic(made, path, weight_type=QuantType.QInt8, reduce_range=True)
    else:
        quantize_static(made, path, Once(), activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
    os.remove(made)


def make_zoo(name, path):
    import zoo
    skeleton = zoo.skeletons()[name]
    if not os.path.exists(path):
        onnx.save(zoo.fill(skeleton), path)
    return zoo.inputs(name, onnx.ModelProto.FromString(skeleton)), {}


def make_drawn(name, path):
    """(inputs, options) of a model that is no zoo's."""
    folder, _, base = name.partition("/")
    options, how, family, real = {}, None, base.rpartition("_")[0], FLOAT
    if base == "packed_own":
        function, options["quantize"] = DECODERS["cached"][0], "int4"
    elif folder == "decoder":
        function, real = DECODERS[base]
    else:
        if folder != "draw":
            family, how = (INT8 if folder == "int8" else HALVES)[base]
        function = FAMILIES[family][0]
        options = {"quantize": how.split()[1]} if how and how.startswith("own") else {"free": True} if family == "dynamic" else {}
        real = HALF if how == "file" else FLOAT
    g = drawn(name, function, real, how == "qdq")
    onnx.save(g.model(), path)
    if how in ("static", "dynamic"):
        quantized_by_ort(path, g.feed, how)
    return g.feed, options


def make(name, folder, zoo_folder):
    """(file, file of inputs, options)."""
    base = name.replace("/", "_")
    is_zoo = name.startswith("zoo/")
    path = os.path.join(zoo_folder, name[4:] + ".onnx") if is_zoo else os.path.join(folder, base + ".onnx")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.makedirs(folder, exist_ok=True)
    try:
        feed, options = make_zoo(name[4:], path) if is_zoo else make_drawn(name, path)
    except Exception as error:
        raise Skipped(f"{type(error).__name__}: {str(error).splitlines()[0][:150] if str(error) else ''}") from error
    inputs = os.path.join(folder, base + ".npz")
    np.savez(inputs, **feed)
    return path, inputs, options
