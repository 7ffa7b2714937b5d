#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the cases of the ONNX backend test suite as folders, for mgx-run-onnx and judge.py.

    make_suite.py [--out build/suite] [--only REGEX] [--shapes declared|free|unranked]

The installed `onnx` package generates the node cases and brings the others along. A case becomes

    OUT/<kind>/<case>/model.onnx
                      tolerance.txt                    "rtol atol"
                      test_data_set_0/input_0.pb ...   TensorProto, SequenceProto or OptionalProto
                      test_data_set_0/output_0.pb ...

Kinds: node, simple, pytorch-converted, pytorch-operator, light (real architectures without weights;
their input is the ramp that the suite's own runner feeds them). With --shapes the inputs of the
generated models lose their lengths or their ranks too; results stay the same. Needs numpy and onnx.
"""
import argparse
import os
import re
import shutil
import sys
import warnings

import numpy as np
import onnx
import onnx.backend.test.case.model as model_cases
from onnx import numpy_helper
from onnx.backend.test.loader import DATA_DIR, load_model_tests, load_node_model_tests

SHAPES = "declared"  # or "free", "unranked": what is left of the inputs' shapes
STORED_KINDS = ("simple", "pytorch-converted", "pytorch-operator")


def to_proto(value, info):
    """A value as the message that its declared type asks for."""
    if isinstance(value, onnx.TensorProto):
        return value
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    if kind == "map_type":
        return numpy_helper.from_dict(value, info.name)
    return numpy_helper.from_array(np.asarray(value), info.name)


def write(path, message):
    with open(path, "wb") as f:
        f.write(message.SerializeToString())


def write_values(folder, stem, values, infos):
    for i, value in enumerate(values):
        write(os.path.join(folder, f"{stem}_{i}.pb"), to_proto(value, infos[i]))


def forget_shapes(model, shapes):
    """Names instead of lengths, or no shape at all, for every tensor that goes in or out."""
    count = 0
    for info in [*model.graph.input, *model.graph.output]:
        if info.type.WhichOneof("value") != "tensor_type":
            continue
        tensor = info.type.tensor_type
        if shapes == "unranked":
            tensor.ClearField("shape")
            continue
        for dim in tensor.shape.dim:
            dim.dim_param = f"d{count}"
            count += 1


def write_generated(case, folder):
    if SHAPES != "declared":
        forget_shapes(case.model, SHAPES)
    write(os.path.join(folder, "model.onnx"), case.model)
    for i, (inputs, outputs) in enumerate(case.data_sets):
        data = os.path.join(folder, f"test_data_set_{i}")
        os.makedirs(data)
        write_values(data, "input", inputs, case.model.graph.input)
        write_values(data, "output", outputs, case.model.graph.output)


def write_stored(case, folder):
    shutil.copytree(case.model_dir, folder, dirs_exist_ok=True)


def write_light(case, folder):
    stem = os.path.join(DATA_DIR, "light", "light_" + case.model_name)
    shutil.copy(stem + ".onnx", os.path.join(folder, "model.onnx"))
    model = onnx.load(stem + ".onnx")
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    constants = {t.name for t in model.graph.initializer}
    infos = [i for i in model.graph.input if i.name not in constants]
    for i, info in enumerate(infos):
        shape = tuple(d.dim_value if d.HasField("dim_value") else 1 for d in info.type.tensor_type.shape.dim)
        count = int(np.prod(shape))
        ramp = (np.arange(count).reshape(shape) / count).astype(np.float32)
        write(os.path.join(data, f"input_{i}.pb"), numpy_helper.from_array(ramp, info.name))
    shutil.copy(stem + "_output_0.pb", os.path.join(data, "output_0.pb"))


def cases():
    """(kind, case, writer) of everything."""
    for case in load_node_model_tests():
        yield "node", case, write_generated
    for case in model_cases.collect_testcases():
        yield ("light", case, write_light) if case.kind == "real" else ("simple", case, write_generated)
    for kind in STORED_KINDS:
        for case in load_model_tests(kind=kind):
            if case.model_dir:
                yield kind, case, write_stored


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="build/suite")
    parser.add_argument("--only", default="", help="regular expression on case names")
    parser.add_argument("--shapes", choices=["declared", "free", "unranked"], default="declared")
    args = parser.parse_args()
    global SHAPES
    SHAPES = args.shapes
    warnings.simplefilter("ignore")
    written, failed = set(), []
    for kind, case, writer in cases():
        if not re.search(args.only, case.name) or (kind, case.name) in written:
            continue
        if SHAPES != "declared" and writer is not write_generated:
            continue
        folder = os.path.join(args.out, kind, case.name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        try:
            writer(case, folder)
        except Exception as e:  # a case the package itself cannot serialise is reported, not lost
            failed.append(f"{kind}/{case.name}: {e}")
            shutil.rmtree(folder)
            continue
        with open(os.path.join(folder, "tolerance.txt"), "w") as f:
            f.write(f"{case.rtol:g} {case.atol:g}\n")
        written.add((kind, case.name))
    print(f"{len(written)} cases in {args.out}")
    for line in failed:
        print("not written:", line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
