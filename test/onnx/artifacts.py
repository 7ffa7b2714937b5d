#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes cases for mgx-run-onnx of models with data that others took from ONNX Runtime's own tests.

    artifacts.py FOLDER --out build/artifacts        then: build/bin/mgx-run-onnx --target cpu build/artifacts

FOLDER is a tree like that of emmtrix/emx-ort-test-artifacts, with its data (Git LFS): each case a folder of model.onnx,
validation.json and test_data_set_*. A case of --out is links to these and the tolerance that validation.json names, or
ONNX Runtime's usual one for the type of its results. Cases that ONNX Runtime expects to fail, and those whose data are
not there, are counted and left out. Needs onnx.
"""
import argparse
import json
import pathlib
import shutil
import sys
from collections import Counter

import onnx
from onnx import TensorProto

# Absolute and relative, of ONNX Runtime's checks; a number of eight bits between two others may be either.
USUAL = {TensorProto.FLOAT: (1e-5, 1e-4), TensorProto.DOUBLE: (1e-5, 1e-5), TensorProto.FLOAT16: (2.5e-3, 1e-3),
         TensorProto.BFLOAT16: (0.02, 0.01), TensorProto.UINT8: (1, 0), TensorProto.INT8: (1, 0)}


def type_of(path):
    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(path.read_bytes())
    except Exception:  # a sequence, a map
        return 0
    return tensor.data_type


def tolerance(case, told):
    """The largest of its results."""
    most = (0.0, 0.0)
    for i, output in enumerate(told["outputs"]):
        usual = USUAL.get(type_of(case / "test_data_set_0" / f"output_{i}.pb"), (0, 0))
        given = output["absolute_error"], output["relative_error"]
        if given != (None, None):
            usual = tuple(v or 0 for v in given)
        most = tuple(map(max, most, usual))
    return most


def left_out(case, told):
    if told["expects_failure"]:
        return "expected to fail"
    files = [case / "model.onnx", *case.glob("test_data_set_*/*.pb")]
    if any(f.read_bytes()[:40].startswith(b"version https://git-lfs") for f in files):
        return "data not there (Git LFS)"
    return "results in any order" if any(o["sort_output"] for o in told["outputs"]) else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/artifacts"))
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    counts = Counter()
    for path in sorted(args.folder.rglob("validation.json")):
        case, told = path.parent.resolve(), json.loads(path.read_text())
        why = left_out(case, told)
        counts[why or "written"] += 1
        if why:
            continue
        to = args.out / case.parent.name / case.name
        to.mkdir(parents=True)
        for name in ["model.onnx", *(d.name for d in case.glob("test_data_set_*"))]:
            (to / name).symlink_to(case / name)
        absolute, relative = tolerance(case, told)
        (to / "tolerance.txt").write_text(f"{relative:g} {absolute:g}\n")
    for why, count in counts.most_common():
        print(f"{count:6d} {why}")
    return 0 if counts["written"] else 1


if __name__ == "__main__":
    sys.exit(main())
