#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes cases with one thing set to an extreme, for mgx-run-onnx.

    make_extreme.py [--cases build/suite build/contrib ...] [--out build/extreme] [--each 6] [--seed 1] [--only REGEX]
                    [--absent] [--reference]

The cases are what make_suite.py, make_contrib.py and their like have written. A draw changes one attribute of a node (at any depth of bodies), one input's values, shape, type or presence, or the
number of results. What was a number becomes 0, -1, 2^31, 2^62, NaN and the like; what was a list gets another length.
With --absent, each input of each node is left out in turn before the draws.
With --reference, onnxruntime's results are stored where it accepts the model; it runs in processes of its own, because
it may crash. Needs numpy and onnx.
"""
import argparse
import copy
import multiprocessing
import os
import random
import re
import resource
import shutil
import sys
import warnings

import numpy as np
import onnx
from onnx import AttributeProto as A
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import make_suite

INTS = [0, 1, -1, 2, 3, -2, 5, 7, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, float("nan"), float("inf"), float("-inf"), 1e30, 1e-30, 3e7, 1e9]
TEXTS = ["", "nonsense", "NONE", "SAME_UPPER", "SAME_LOWER", "VALID", "reflect", "edge", "wrap", "linear", "cubic", "nearest",
         "bilinear", "add", "mul", "max", "sum", "mean", "none", "reverse", "bidirectional", "LEFT", "%s%n", "a" * 3000]
TYPES = [T.FLOAT, T.INT64, T.INT32, T.BOOL, T.STRING, T.DOUBLE, T.FLOAT16, T.UINT8, T.BFLOAT16, T.INT8, T.UINT64]
MOST_ELEMENTS = 1 << 16
MOST_PLACES = 24  # inputs to leave out, of one model


# --- the places of a model that can be changed ---

def nodes_of(graph):
    for node in graph.node:
        yield node
        for a in node.attribute:
            for inner in [a.g] if a.type == A.GRAPH else a.graphs if a.type == A.GRAPHS else []:
                yield from nodes_of(inner)


def change_list(values, pool, draw):
    """Another length, or extremes in one place or in all."""
    values = list(values)
    way = draw.randrange(6)
    if way == 0:
        return values[:-1]
    if way == 1:
        return values + [draw.choice(pool)]
    if way == 2 or not values:
        return [draw.choice(pool)] * max(len(values), 1)
    values[draw.randrange(len(values))] = draw.choice(pool)
    return values


def change_attribute(a, draw):
    if a.type == A.INT:
        a.i = draw.choice(INTS)
    elif a.type == A.FLOAT:
        a.f = draw.choice(FLOATS)
    elif a.type == A.STRING:
        a.s = draw.choice(TEXTS).encode()
    elif a.type == A.INTS:
        new = change_list(a.ints, INTS, draw)
        del a.ints[:]
        a.ints.extend(new)
    elif a.type == A.FLOATS:
        new = change_list(a.floats, FLOATS, draw)
        del a.floats[:]
        a.floats.extend(new)
    elif a.type == A.STRINGS:
        new = change_list([s.decode("utf-8", "replace") for s in a.strings], TEXTS, draw)
        del a.strings[:]
        a.strings.extend(s.encode() for s in new)
    elif a.type == A.TENSOR:
        new = change_value(numpy_helper.to_array(a.t), draw)
        a.t.CopyFrom(numpy_helper.from_array(new, a.t.name))
    else:
        return None
    return f"attribute {a.name}"


def other_attribute(model, draw):
    """An attribute that the operator has and the node does not give."""
    node = draw.choice(list(nodes_of(model.graph)))
    version = next((o.version for o in model.opset_import if o.domain == node.domain), 21)
    try:
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return None
    absent = [a for name, a in schema.attributes.items() if name not in {x.name for x in node.attribute}]
    if not absent:
        return None
    a, kind = draw.choice(absent), onnx.defs.OpSchema.AttrType
    pools = {kind.INT: INTS, kind.FLOAT: FLOATS, kind.STRING: TEXTS, kind.INTS: INTS, kind.FLOATS: FLOATS, kind.STRINGS: TEXTS}
    if a.type not in pools:
        return None
    pool = pools[a.type]
    value = draw.choice(pool) if a.type in (kind.INT, kind.FLOAT, kind.STRING) else [draw.choice(pool) for _ in range(draw.randrange(1, 5))]
    node.attribute.append(helper.make_attribute(a.name, value))
    return f"new attribute {a.name}"


def an_attribute(model, draw):
    places = [(n, a) for n in nodes_of(model.graph) for a in n.attribute]
    if not places:
        return other_attribute(model, draw)
    node, a = draw.choice(places)
    if draw.randrange(8) == 0:
        node.attribute.remove(a)
        return f"no attribute {a.name}"
    return change_attribute(a, draw) if draw.randrange(3) else other_attribute(model, draw)


# --- values ---

def random_values(shape, like, draw):
    rng = np.random.default_rng(draw.randrange(1 << 30))
    if like.dtype.kind == "f":
        return rng.uniform(-2, 2, shape).astype(like.dtype)
    if like.dtype.kind in "iu":
        low, high = (int(like.min()), int(like.max()) + 1) if like.size else (0, 3)
        return rng.integers(low, max(high, low + 1), shape).astype(like.dtype)
    if like.dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    flat = like.reshape(-1)
    return np.resize(flat, shape) if flat.size else None


def change_shape(value, draw):
    shape = list(value.shape)
    way = draw.randrange(6)
    if way == 0:
        shape = []
    elif way == 1 or not shape:
        shape.insert(draw.randrange(len(shape) + 1), draw.choice([0, 1, 2, 3]))
    elif way == 2:
        del shape[draw.randrange(len(shape))]
    elif way == 3:
        shape = [1] * draw.choice([8, 15, 17]) + shape
    else:
        shape[draw.randrange(len(shape))] = draw.choice([0, 1, 2, 3, 5, 17])
    if np.prod(shape, dtype=float) > MOST_ELEMENTS:
        return None
    return random_values(shape, value, draw)


def change_content(value, draw):
    value = np.array(value)
    if not value.size or value.dtype.kind not in "iuf":
        return None
    if value.dtype.kind == "f":
        new = draw.choice(FLOATS)
    else:
        info = np.iinfo(value.dtype)
        new = min(max(draw.choice(INTS), info.min), info.max)
    flat = value.reshape(-1)
    with np.errstate(all="ignore"):
        if draw.randrange(2):
            flat[:] = new
        else:
            flat[draw.randrange(flat.size)] = new
    return value


def change_type(value, draw):
    if value.dtype.kind not in "iufb":
        return None
    kind = draw.choice(TYPES)
    if kind == T.STRING:
        return value.astype(str).astype(object)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return value.astype(helper.tensor_dtype_to_np_dtype(kind))


def change_value(value, draw):
    new = draw.choice([change_shape, change_content, change_content, change_type])(value, draw)
    return value if new is None else new


def an_input(model, values, draw):
    tensors = [i for i, v in enumerate(values) if isinstance(v, np.ndarray)]
    if not tensors:
        return None
    i = draw.choice(tensors)
    new = draw.choice([change_shape, change_shape, change_content, change_content, change_type])(values[i], draw)
    if new is None:
        return None
    values[i] = np.asarray(new)
    info = model.graph.input[i]
    kind = T.STRING if values[i].dtype == object else helper.np_dtype_to_tensor_dtype(values[i].dtype)
    info.CopyFrom(helper.make_tensor_value_info(info.name, kind, values[i].shape))
    return f"input {info.name}"


def an_end(model, draw):
    """One input or result less, or more, or none in its place."""
    node = draw.choice(list(nodes_of(model.graph)))
    names = node.input if draw.randrange(3) else node.output
    way = draw.randrange(4)
    if way == 0 and names:
        names.pop()
    elif way == 1 and names and names is node.input:
        names[draw.randrange(len(names))] = ""
    elif way == 2 and node.input:
        names.append(draw.choice(list(node.input)) if names is node.input else f"more_{len(names)}")
    elif way == 3 and len(node.input) > 1:
        i, k = draw.randrange(len(node.input)), draw.randrange(len(node.input))
        node.input[i], node.input[k] = node.input[k], node.input[i]
    else:
        return None
    return "number of inputs or results"


def to_constants(model, values, draw):
    """Some inputs become initialisers, so that the importer sees their values."""
    keep = [i for i, v in enumerate(values) if not isinstance(v, np.ndarray) or v.dtype == object or draw.randrange(2)]
    for i, v in enumerate(values):
        if i not in keep:
            model.graph.initializer.append(numpy_helper.from_array(v, model.graph.input[i].name))
    infos = [copy.deepcopy(model.graph.input[i]) for i in keep]
    del model.graph.input[:]
    model.graph.input.extend(infos)
    return [values[i] for i in keep]


def mutate(model, values, draw):
    way = draw.randrange(8)
    if way < 3:
        what = an_attribute(model, draw)
    elif way < 7:
        what = an_input(model, values, draw)
    else:
        what = an_end(model, draw)
    if what is None:
        return None, None
    # Declared results no longer hold.
    for o in model.graph.output:
        if o.type.WhichOneof("value") == "tensor_type":
            o.type.tensor_type.ClearField("shape")
    if draw.randrange(2):
        values = to_constants(model, values, draw)
    return what, values


# --- the peer ---

def peer_worker(tasks, answers):
    import onnxruntime
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for model, feed in iter(tasks.get, None):
        try:
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            answers.put(session.run(None, feed))
        except Exception as e:  # what it says is of no interest here
            answers.put(str(e)[:200])


class Peer:
    def __init__(self, seconds=5):
        self.seconds, self.process = seconds, None

    def start(self):
        self.tasks, self.answers = multiprocessing.Queue(), multiprocessing.Queue()
        self.process = multiprocessing.Process(target=peer_worker, args=(self.tasks, self.answers), daemon=True)
        self.process.start()

    def run(self, model, feed):
        """Results, or a text."""
        if not self.process or not self.process.is_alive():
            self.start()
        self.tasks.put((model, feed))
        for _ in range(self.seconds * 20):
            try:
                return self.answers.get(timeout=0.05)
            except multiprocessing.queues.Empty:
                if not self.process.is_alive():
                    break
        self.process.kill()
        self.process = None
        return "crashed or took too long"


def store_results(folder, model, results):
    for i, r in enumerate(results):
        info = model.graph.output[i]
        if r is None or isinstance(r, dict):
            continue
        if isinstance(r, list):
            info = helper.make_tensor_sequence_value_info(info.name, T.FLOAT, None)
        elif isinstance(r, np.ndarray):
            kind = T.STRING if r.dtype == object else helper.np_dtype_to_tensor_dtype(r.dtype)
            info = helper.make_tensor_value_info(info.name, kind, r.shape)
        make_suite.write(os.path.join(folder, f"output_{i}.pb"), make_suite.to_proto(r, info))


# --- writing ---

def leave_out(place):
    """Gives a change: input number `place` of all nodes, counted through, becomes absent."""
    def change(model, values):
        names = [(n, i) for n in nodes_of(model.graph) for i, name in enumerate(n.input) if name]
        if place >= len(names):
            return None, None
        node, i = names[place]
        node.input[i] = ""
        return f"input {i} of {node.op_type} is absent", values
    return change


def read_case(folder):
    """The model and its inputs; None for what is no case of small tensors."""
    data = os.path.join(folder, "test_data_set_0")
    if not os.path.isdir(data) or os.path.getsize(os.path.join(folder, "model.onnx")) > 1 << 20:
        return None
    model, values = onnx.load(os.path.join(folder, "model.onnx")), []
    for i, info in enumerate(model.graph.input):
        path = os.path.join(data, f"input_{i}.pb")
        if not os.path.exists(path):
            return None
        with open(path, "rb") as f:
            text = f.read()
        if info.type.WhichOneof("value") == "tensor_type":
            values.append(numpy_helper.to_array(onnx.TensorProto.FromString(text)))
        else:
            values.append(text)
    return model, values


def write_input(path, value, info):
    if isinstance(value, bytes):  # a sequence or an optional, as it was
        with open(path, "wb") as f:
            f.write(value)
    else:
        make_suite.write(path, make_suite.to_proto(value, info))


def write_changed(case, name, change, args, peer):
    model, values = copy.deepcopy(case[0]), list(case[1])
    what, values = change(model, values)
    if what is None:
        return False
    folder = os.path.join(args.out, "extreme", name)
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    try:
        make_suite.write(os.path.join(folder, "model.onnx"), model)
        for i, (value, info) in enumerate(zip(values, model.graph.input)):
            write_input(os.path.join(data, f"input_{i}.pb"), value, info)
        with open(os.path.join(folder, "tolerance.txt"), "w", encoding="utf-8") as f:
            f.write("1e-3 1e-5\n")
        with open(os.path.join(folder, "what.txt"), "w", encoding="utf-8") as f:
            f.write(what + "\n")
        if peer and not any(isinstance(v, bytes) for v in values):
            answer = peer.run(model.SerializeToString(), {i.name: v for i, v in zip(model.graph.input, values)})
            if isinstance(answer, str):
                with open(os.path.join(folder, "peer.txt"), "w", encoding="utf-8") as f:
                    f.write(answer + "\n")
            else:
                store_results(data, model, answer)
    except Exception as e:  # a value that the package cannot write
        if args.verbose:
            print(f"not written {name}: {e}")
        shutil.rmtree(folder)
        return False
    return True


def cases(roots, only):
    for root in roots:
        for folder, _, files in sorted(os.walk(root)):
            if "model.onnx" in files and re.search(only, folder):
                yield folder


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", nargs="*", default=["build/suite"])
    parser.add_argument("--out", default="build/extreme")
    parser.add_argument("--each", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--absent", action="store_true", help="leave out each input")
    parser.add_argument("--reference", action="store_true", help="store onnxruntime's results")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    shutil.rmtree(args.out, ignore_errors=True)
    peer = Peer() if args.reference else None
    written = 0
    for folder in cases(args.cases, args.only):
        name = os.path.basename(folder)
        case = read_case(folder)
        if case is None or "image_decoder" in name:
            continue
        for i in range(MOST_PLACES if args.absent else 0):
            written += write_changed(case, f"{name}_absent_{i}", leave_out(i), args, None)
        for i in range(args.each):
            draw = random.Random(f"{args.seed} {i} {name}")
            written += write_changed(case, f"{name}_{args.seed}_{i}", lambda m, v, d=draw: mutate(m, v, d), args, peer)
    print(f"{written} cases in {args.out}")
    return 0 if written else 1


if __name__ == "__main__":
    sys.exit(main())
