# SPDX-License-Identifier: MIT
"""Small models of each kind that the backend takes, and what numpy says of them."""
import os
import subprocess
import sys

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
WEIGHT = np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32)


def model_of(nodes, inputs, outputs, weights=()):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value(*i) for i in inputs], [value(*o) for o in outputs],
                              [numpy_helper.from_array(np.asarray(a), n) for n, a in dict(weights).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def product(batch="batch", weight=WEIGHT):
    """y = x w, rows of a batch."""
    return model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", T.FLOAT, [batch, weight.shape[0]])],
                    [("y", T.FLOAT, [batch, weight.shape[1]])], {"w": weight})


def texts():
    """Texts through and back, and a number for each."""
    return model_of([helper.make_node("Identity", ["s"], ["t"]), helper.make_node("Mul", ["n", "two"], ["m"])],
                    [("s", T.STRING, ["N", "L"]), ("n", T.INT64, ["N"])], [("t", T.STRING, ["N", "L"]), ("m", T.INT64, ["N"])],
                    {"two": np.int64(2)})


def picks():
    """A row of a table by its number; one outside of it is an error."""
    return model_of([helper.make_node("Gather", ["table", "i"], ["row"])], [("i", T.INT64, ["batch", 1])],
                    [("row", T.FLOAT, ["batch", 1, 4])], {"table": WEIGHT})


def lengths():
    """Means over as many numbers as a request has."""
    return model_of([helper.make_node("ReduceMean", ["x"], ["y"], axes=[1], keepdims=0)], [("x", T.FLOAT, ["batch", "length"])],
                    [("y", T.FLOAT, ["batch"])])


def joined():
    """Numbers of all requests one behind the other, and where each ends: doubled, and the sum of each."""
    nodes = [helper.make_node("CumSum", ["x", "axis"], ["sums"]), helper.make_node("Sub", ["ends", "one"], ["last"]),
             helper.make_node("Gather", ["sums", "last"], ["to"]), helper.make_node("Slice", ["to", "axes", "minus"], ["before"]),
             helper.make_node("Concat", ["nought", "before"], ["from"], axis=0), helper.make_node("Sub", ["to", "from"], ["y"]),
             helper.make_node("Add", ["x", "x"], ["twice"])]
    return model_of(nodes, [("x", T.FLOAT, ["total"]), ("ends", T.INT32, ["requests"])],
                    [("y", T.FLOAT, ["requests"]), ("twice", T.FLOAT, ["total"])],
                    {"axis": np.int64(0), "one": np.int32(1), "axes": np.int64([0]), "minus": np.int64([-1]), "nought": np.float32([0])})


def scalar():
    """No axes at all."""
    return model_of([helper.make_node("Add", ["a", "b"], ["c"])], [("a", T.FLOAT, []), ("b", T.FLOAT, [2])], [("c", T.FLOAT, [2])])


def sums():
    """A state: what came before, if the sequence goes on, and the new. Before its first request Triton has anything there, NaN too."""
    nodes = [helper.make_node("Cast", ["start"], ["s"], to=T.BOOL), helper.make_node("Where", ["s", "none", "past"], ["old"]),
             helper.make_node("Add", ["old", "x"], ["present"]),
             helper.make_node("Identity", ["present"], ["total"])]
    return model_of(nodes, [("x", T.FLOAT, ["batch", 2]), ("past", T.FLOAT, ["batch", 2]), ("start", T.INT32, ["batch", 1])],
                    [("total", T.FLOAT, ["batch", 2]), ("present", T.FLOAT, ["batch", 2])], {"none": np.float32(0)})


def heavy(rounds=60, width=512):
    """A run of some hundred milliseconds."""
    rng = np.random.default_rng(2)
    nodes, last = [], "x"
    for i in range(rounds):
        nodes.append(helper.make_node("MatMul", [last, "w"], [f"m{i}"]))
        nodes.append(helper.make_node("Tanh", [f"m{i}"], [f"y{i}"]))
        last = f"y{i}"
    return model_of(nodes, [("x", T.FLOAT, ["batch", width, width])], [(last, T.FLOAT, ["batch", width, width])],
                    {"w": (rng.standard_normal((width, width)) / width**0.5).astype(np.float32)})


# --- a graph of TensorFlow's, written field by field ---

def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value):
    out = b""
    value &= (1 << 64) - 1
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def tensorflow():
    """y = x + x, of rows of three."""
    def attribute(name, value):
        return field(5, field(1, name) + field(2, value))
    kind = attribute("dtype", field(6, 1))
    shape = attribute("shape", field(7, field(2, field(1, -1)) + field(2, field(1, 3))))
    x = field(1, "x") + field(2, "Placeholder") + kind + shape
    y = field(1, "y") + field(2, "AddV2") + field(3, "x") + field(3, "x") + attribute("T", field(6, 1))
    return field(1, x) + field(1, y)


def decoder(folder):
    """A decoder with made-up weights, and what ends its answers."""
    program = os.path.join(HERE, "..", "..", "..", "examples", "generate", "decoder.py")
    subprocess.run([sys.executable, program, folder, "--layers", "2", "--width", "32", "--heads", "2", "--words", "100"], check=True)
