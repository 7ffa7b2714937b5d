#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a case for every version of every ONNX operator, for mgx-run-onnx and judge.py.

    make_versions.py [--out build/versions] [--only REGEX] [--each N]

The backend suite knows the newest form of an operator only. Here each older form gets cases of its
own, in two ways:

  adapted   cases of the suite, rewritten for the older version: opset set back, inputs turned into
            the attributes they once were, types and attributes checked against the old schema. What
            is expected is what onnxruntime or onnx.reference makes of the model; if neither runs it,
            the suite's own result, unless the meaning changed between the versions.
  written   cases by hand (old_forms.py) with results from numpy, where the meaning changed.

Prints the versions that neither way covers. Needs numpy, onnx and onnxruntime.
"""
import argparse
import collections
import os
import re
import shutil
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import AttributeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import make_suite
import old_forms

# Results are not determined, or differ between versions for one and the same node.
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial",
          "Bernoulli"}
CHANGED = {("Softmax", 13), ("LogSoftmax", 13), ("Hardmax", 13), ("BatchNormalization", 14),
           ("Resize", 11), ("RoiAlign", 16), ("GroupNormalization", 21), ("Scan", 9), ("Dropout", 12),
           ("PRelu", 7), ("Upsample", 9), ("Cast", 6), ("TopK", 10), ("Tile", 6), ("LpPool", 2)}
# Inputs that were attributes before: operator -> (input, attribute, last version with the attribute).
MOVED = {
    "Squeeze": [(1, "axes", 11)], "Unsqueeze": [(1, "axes", 11)], "Clip": [(1, "min", 6), (2, "max", 6)],
    "Slice": [(1, "starts", 1), (2, "ends", 1), (3, "axes", 1)], "Reshape": [(1, "shape", 1)],
    "Pad": [(1, "pads", 2), (2, "value", 2)], "Split": [(1, "split", 11)], "TopK": [(1, "k", 1)],
    "Upsample": [(1, "scales", 7)], "Dropout": [(1, "ratio", 10)],
}
for _name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare"):
    MOVED["Reduce" + _name] = [(1, "axes", 13)]
MOVED["ReduceSum"] = [(1, "axes", 11)]
LEGACY_BROADCAST = {"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"}
TOLERANCE = (1e-3, 1e-5)

Template = collections.namedtuple("Template", "name node opset inputs outputs in_infos out_infos")


def templates():
    """Cases of the suite that are one node: operator -> list, in order of name."""
    found = collections.defaultdict(list)
    for kind, case, _ in make_suite.cases():
        if kind != "node" or len(case.model.graph.node) != 1 or case.model.functions:
            continue
        model, node = case.model, case.model.graph.node[0]
        if node.domain or model.graph.initializer or node.op_type in RANDOM:
            continue
        opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        inputs, outputs = case.data_sets[0]
        found[node.op_type].append(Template(case.name, node, opset, list(inputs), list(outputs),
                                            list(model.graph.input), list(model.graph.output)))
    return found


def is_array(value):
    return isinstance(value, (np.ndarray, np.generic))


# --- rewriting a case for an older version ---

def type_text(info):
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        return kind
    name = onnx.TensorProto.DataType.Name(info.type.tensor_type.elem_type).lower()
    return f"tensor({name})"


def types_fit(schema, node, infos):
    by_name = {i.name: type_text(i) for i in infos}
    for i, name in enumerate(node.input):
        formal = schema.inputs[min(i, len(schema.inputs) - 1)] if schema.inputs else None
        if formal is None or (name and by_name[name].startswith("tensor") and
                              by_name[name] not in formal.types):
            return False
    return True


def move_inputs(node, version, values, infos):
    """Inputs to attributes; the values and infos that stay, or None."""
    gone = set()
    for i, attribute, last in MOVED.get(node.op_type, []):
        if version > last or i >= len(node.input) or not node.input[i]:
            continue
        at = next(k for k, info in enumerate(infos) if info.name == node.input[i])
        value = values[at].tolist() if is_array(values[at]) else None
        if value is None:
            return None
        if value == []:
            return None
        if attribute in ("min", "max", "value", "ratio"):
            value = float(np.asarray(value).reshape(-1)[0])
        elif attribute == "k":
            value = int(np.asarray(value).reshape(-1)[0])
        elif node.op_type == "Pad" and version == 1:
            attribute = "paddings"
        node.attribute.append(helper.make_attribute(attribute, value))
        gone.add(node.input[i])
        node.input[i] = ""
    while node.input and not node.input[-1]:
        node.input.pop()
    keep = [k for k, info in enumerate(infos) if info.name not in gone]
    return [values[k] for k in keep], [infos[k] for k in keep]


def drop_attributes(node, schema):
    """Attributes the old schema lacks may go where they say what was always so."""
    for a in list(node.attribute):
        if a.name in schema.attributes:
            continue
        newest = onnx.defs.get_schema(node.op_type)
        default = newest.attributes[a.name].default_value if a.name in newest.attributes else None
        same = default is not None and default.type != AttributeProto.UNDEFINED and \
            helper.get_attribute_value(default) == helper.get_attribute_value(a)
        if not same:
            return False
        node.attribute.remove(a)
    return all(not s.required or any(a.name == s.name for a in node.attribute)
               for s in schema.attributes.values())


def legacy_broadcast(node, values):
    """Before opset 7 only the second operand is repeated, along the last axes of the first."""
    a, b = (np.shape(v) for v in values[:2])
    if a == b:
        return True
    if a[len(a) - len(b):] != b:
        return False
    node.attribute.append(helper.make_attribute("broadcast", 1))
    return True


def adapt(t, version):
    schema = onnx.defs.get_schema(t.node.op_type, version)
    node = onnx.NodeProto()
    node.CopyFrom(t.node)
    moved = move_inputs(node, version, t.inputs, t.in_infos)
    if moved is None or not drop_attributes(node, schema):
        return None
    values, infos = moved
    if version < 7 and node.op_type in LEGACY_BROADCAST and not legacy_broadcast(node, values):
        return None
    if version < 8 and node.op_type in {"Sum", "Max", "Min", "Mean"} and \
            len({np.shape(v) for v in values}) > 1:
        return None
    if not schema.min_input <= len(node.input) <= schema.max_input or \
            len(node.output) > schema.max_output or not types_fit(schema, node, infos):
        return None
    graph = helper.make_graph([node], t.name, infos, t.out_infos)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)
    try:
        onnx.checker.check_model(model)  # bodies too may hold what that version did not know
    except onnx.checker.ValidationError:
        return None
    return model, values


# --- what to expect ---

def by_onnxruntime(model, values):
    names = [i.name for i in model.graph.input]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, values)))


def by_reference(model, values):
    names = [i.name for i in model.graph.input]
    return ReferenceEvaluator(model).run(None, dict(zip(names, values)))


def agree(a, b):
    if isinstance(a, list) != isinstance(b, list):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(agree(x, y) for x, y in zip(a, b))
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind in "OUSb":
        return a.tolist() == b.tolist()
    return np.allclose(a.astype(np.float64) if a.dtype.kind != "c" else a,
                       b.astype(np.float64) if b.dtype.kind != "c" else b,
                       rtol=TOLERANCE[0], atol=TOLERANCE[1], equal_nan=True)


def expect(t, model, values, changed):
    """The result to store, or None if nothing is sure."""
    for oracle in (by_onnxruntime, by_reference) if not changed else (by_onnxruntime,):
        try:
            got = oracle(model, values)
        except Exception:  # an oracle that does not know this form has no say
            continue
        if agree(list(got), list(t.outputs)) or changed:
            return got
    return None if changed else t.outputs


# --- all versions ---

def history():
    """(operator, version, is it deprecated) of ai.onnx."""
    rows = sorted({(s.name, s.since_version, s.deprecated) for s in onnx.defs.get_all_schemas_with_history()
                   if not s.domain})
    return [r for r in rows if not r[2]]


def has_changed(op, version):
    return any(name == op and version < since for name, since in CHANGED)


def write_case(out, name, model, inputs, outputs, tolerance=TOLERANCE):
    folder = os.path.join(out, "versions", name)
    data = os.path.join(folder, "test_data_set_0")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(data)
    make_suite.write(os.path.join(folder, "model.onnx"), model)
    make_suite.write_values(data, "input", inputs, model.graph.input)
    make_suite.write_values(data, "output", outputs, model.graph.output)
    with open(os.path.join(folder, "tolerance.txt"), "w", encoding="utf-8") as f:
        f.write(f"{tolerance[0]:g} {tolerance[1]:g}\n")


def covered_by_suite(found):
    covered = set()
    for op, list_ in found.items():
        for t in list_:
            covered.add((op, onnx.defs.get_schema(op, t.opset).since_version))
    return covered


def write_adapted(args, found, op, version):
    written = 0
    for t in sorted(found.get(op, []), key=lambda t: -t.opset):
        if written == args.each:
            break
        try:
            adapted = adapt(t, version)
            outputs = adapted and expect(t, *adapted, has_changed(op, version))
            if outputs is None or adapted is None:
                continue
            write_case(args.out, f"{op}_{version}_{t.name.removeprefix('test_')}", *adapted, outputs)
        except Exception as e:  # a value that cannot be written down: say so and go on
            print(f"{op} {version} from {t.name}: {e}")
            continue
        written += 1
    return written


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="build/versions")
    parser.add_argument("--only", default="", help="regular expression on operator names")
    parser.add_argument("--each", type=int, default=3, help="adapted cases of a version")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    shutil.rmtree(os.path.join(args.out, "versions"), ignore_errors=True)
    found = templates()
    covered = covered_by_suite(found)
    by_hand = set()
    for case in old_forms.cases():
        if re.search(args.only, case.op):
            by_hand.add((case.op, onnx.defs.get_schema(case.op, case.opset).since_version))
            write_case(args.out, case.name, case.model, case.inputs, case.outputs, case.tolerance)
    missing = []
    for op, version, _ in history():
        if not re.search(args.only, op) or (op, version) in covered:
            continue
        if not write_adapted(args, found, op, version) and (op, version) not in by_hand:
            missing.append(f"{op} {version}")
    count = len(os.listdir(os.path.join(args.out, "versions")))
    print(f"{count} cases in {args.out}; versions without a case: {', '.join(missing) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
