# SPDX-License-Identifier: MIT
"""Compares a model that decides (sorts, thresholds, rounds, suppresses boxes) where a tie cannot decide the comparison.

A detector's last numbers hang on comparisons of scores. Two engines whose scores agree to the last bit but one may order two boxes
differently, or keep one where the other does not, and from there on their results have nothing in common; with half precision,
or random weights, such near ties are everywhere. So the comparison is made in two parts, which together say as much as equality
of all results would:

    1. each decision by itself: what the engine decided is what ONNX Runtime decides on the engine's own numbers. In fp32 exactly;
       in 16 bits comparisons and orders may differ where the two numbers are one rounding apart, since constants are rounded too,
       and what is not stored between two steps is not
    2. all that is not a decision: ONNX Runtime computes the model in fp32 with the engine's decisions in the place of its own;
       the numbers that go into every decision, and the results, then agree to the tolerance of the type

A decision is a node that makes whole numbers or truth values of floats that hang on the model's inputs, or rounds them: Greater,
TopK, NonMaxSuppression, Cast to an integer, Floor, an If whose branches do that. TopK's values are not a decision but a gather.
Boxes that RoiAlign reads at are taken from the engine too, once they have been compared: neighbouring features of a model with
random weights have nothing in common, so a twentieth of a pixel is a twentieth of a feature; and a box that is clipped to nothing in
one engine and to a hair in the other has a logarithm of its area in one alone.
"""
import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)
ROUNDS = ("Floor", "Ceil", "Round", "Sign")
SIZES = ("Shape", "Size")
MOVES = ("Gather", "Concat", "Slice", "Unsqueeze", "Squeeze", "Reshape", "Split", "Identity", "Cast", "Flatten", "GatherND")
GIVEN = ".given"


def type_map(graph, types):
    """{name: element type} of everything that inference found, bodies included."""
    for value in list(graph.input) + list(graph.output) + list(graph.value_info):
        types.setdefault(value.name, value.type.tensor_type.elem_type)
    for tensor in graph.initializer:
        types[tensor.name] = tensor.data_type
    for node in graph.node:
        for body in bodies(node):
            type_map(body, types)
    return types


def bodies(node):
    return [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]


def reads(node):
    """What a node reads, the captures of its bodies among it, in order and once."""
    names = [name for name in node.input if name]
    for body in bodies(node):
        inside = {v.name for v in body.input} | {t.name for t in body.initializer} | {o for n in body.node for o in n.output}
        names += [name for n in body.node for name in reads(n) if name not in inside]
        names += [o.name for o in body.output if o.name not in inside]
    return list(dict.fromkeys(names))


def decides(node, types):
    """Does a node that reads floats which hang on the inputs make anything but floats of them?"""
    whole = [types.get(name) not in FLOATS for name in node.output if name]
    return node.op_type == "TopK" or node.op_type in ROUNDS or all(whole)


def decisions(model):
    """(decisions in order, names of floats that hang on the inputs and not on a decision)."""
    types = type_map(model.graph, {})
    fixed = {t.name for t in model.graph.initializer}
    hang = {v.name for v in model.graph.input if v.name not in fixed and types[v.name] in FLOATS}
    found = []
    for node in model.graph.node:
        if not hang.intersection(reads(node)) or node.op_type in SIZES:
            continue
        if decides(node, types):
            found.append(node)
            hang |= {node.output[0]} if node.op_type == "TopK" else set()
        else:
            for body in bodies(node):
                if any(decides(n, types) and n.op_type not in SIZES and hang.intersection(reads(n)) for n in body.node):
                    raise ValueError(f"{node.op_type} {node.name}: a decision inside a body that makes floats")
            hang |= set(node.output)
    return found, hang, types


def constants(model):
    found = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return found


def value_info(name, types, suffix=""):
    info = onnx.ValueInfoProto(name=name + suffix)
    info.type.tensor_type.elem_type = types[name]
    return info


class Decided:
    """A model, what it decides, and what has to be seen of a run to judge it."""

    def __init__(self, path):
        self.model = shape_inference.infer_shapes(onnx.load(path))
        self.found, self.hang, self.types = decisions(self.model)
        self.constants = constants(self.model)
        self.outputs = [o.name for o in self.model.graph.output]
        given = {v.name for v in self.model.graph.input}
        seen = [name for node in self.found for name in reads(node) + list(node.output) if name]
        self.places = [name for name in self.origins() if name in self.hang]
        seen += self.places
        self.extra = [n for n in dict.fromkeys(seen) if n not in self.constants and n not in given and n not in self.outputs]

    def origins(self):
        """What the boxes of RoiAlign are gathered from."""
        makers = {o: n for n in self.model.graph.node for o in n.output}
        look, found = [n.input[1] for n in self.model.graph.node if n.op_type == "RoiAlign"], {}
        for name in look:  # grows
            node = makers.get(name)
            if node is not None and node.op_type in MOVES:
                look += [i for i in node.input if i in self.hang and i not in look]
            elif node is not None:
                found[name] = True
        return list(found)

    def write_open(self, path):
        """The model with everything to be seen as further results."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        del model.graph.value_info[:]
        model.graph.output.extend(value_info(name, self.types) for name in self.extra)
        onnx.save(model, path)

    def forced(self):
        """The model with decisions as inputs; its results are what hangs on the inputs and is to be compared."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        graph = model.graph
        names = {id_of(node) for node in self.found}
        kept, inputs = [], []
        for node in graph.node:
            for i, name in enumerate(node.input):
                if name in self.places:
                    node.input[i] += GIVEN
            if id_of(node) not in names:
                kept.append(node)
                continue
            if node.op_type == "TopK":
                axis = next((a.i for a in node.attribute if a.name == "axis"), -1)
                kept.append(helper.make_node("GatherElements", [node.input[0], node.output[1]], [node.output[0]], axis=axis))
                inputs.append(node.output[1])
            else:
                inputs += [o for o in node.output if o]
        compared = [n for n in self.extra if n in self.hang] + [o for o in self.outputs if o in self.hang]
        del graph.node[:], graph.output[:], graph.value_info[:]
        graph.node.extend(kept)
        graph.input.extend(value_info(name, self.types) for name in inputs)
        graph.input.extend(value_info(name, self.types, GIVEN) for name in self.places)
        graph.output.extend(value_info(name, self.types) for name in compared)
        return model, inputs, compared

    def judge(self, feed, results, rounding=0.0):
        """(decisions that are not what their own numbers say, worst relative RMS of all else and where) of an engine's
        {name: array} on the inputs `feed`; `rounding` is that of the type, 0 of fp32."""
        known = {**self.constants, **feed, **results}
        wrong = [f"{n.op_type} {n.output[0]}" for n in self.found if not self.agrees(n, known, rounding)]
        if wrong:  # then all else may not even fit together
            return wrong, float("inf"), ""
        model, inputs, compared = self.forced()
        session = ort_session(model)
        wanted = {i.name for i in session.get_inputs()}
        given = {**feed, **{n: results[n] for n in inputs}, **{n + GIVEN: results[n] for n in self.places}}
        values = session.run(compared, {k: np.asarray(v) for k, v in given.items() if k in wanted})
        errors = {name: relative_rms(results[name], value) for name, value in zip(compared, values)}
        worst = max(errors, key=errors.get)
        self.errors = errors
        return wrong, errors[worst], worst

    def agrees(self, node, known, rounding):
        graph = helper.make_graph([node], "decision", [], [])
        names = [n for n in reads(node) if n not in self.constants]
        graph.initializer.extend(numpy_helper.from_array(self.constants[n], n) for n in reads(node) if n in self.constants)
        graph.input.extend(value_info(n, self.types) for n in names)
        outputs = [o for o in node.output if o]
        graph.output.extend(value_info(o, self.types) for o in outputs)
        model = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version)
        values = ort_session(model).run(outputs, {n: np.asarray(known[n]) for n in names})
        if all(np.array_equal(np.asarray(known[o]), v) for o, v in zip(outputs, values)):
            return True
        return rounding > 0 and agrees_nearly(node, known, values, rounding)


def agrees_nearly(node, known, values, rounding):
    """Of a comparison or an order: are the numbers near, wherever it is not what was decided?"""
    first = np.asarray(known[node.input[0]])
    mine = np.asarray(known[node.output[-1]])
    if mine.shape != values[-1].shape:
        return False
    if node.op_type == "TopK":
        axis = next((a.i for a in node.attribute if a.name == "axis"), -1)
        return bool(near(np.take_along_axis(first, mine, axis), values[0], rounding).all())
    if len(node.input) != 2 or mine.dtype != bool:
        return False
    return bool(near(first, np.asarray(known[node.input[1]]), rounding)[mine != values[0]].all())


def id_of(node):
    return tuple(node.output)


def ort_session(model):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def relative_rms(a, b):
    """Infinite where shapes, infinities or NaN are not the same."""
    a, b = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
    finite = np.isfinite(b)
    if a.shape != b.shape or not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return float("inf")
    a, b = a[finite], b[finite]
    return float(np.sqrt(((a - b) ** 2).sum()) / max(np.sqrt((b ** 2).sum()), 1e-30)) if a.size else 0.0


def near(a, b, roundings):
    """Numbers that a rounding or two of the type tells apart."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return np.abs(a - b) <= roundings * np.maximum(np.abs(a), np.abs(b))
