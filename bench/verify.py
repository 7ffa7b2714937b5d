#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the models of the zoo on a target and compares with ONNX Runtime.

    verify.py --build build [--target ref] [--models NAME ...] [--limit 1e-5]

Each model runs on the zoo's inputs and, where it has free dimensions, on a second set of sizes. Relative RMS of every float
result must be below the limit; integers must be equal. Rows of detections whose scores tie may come in another order (see
bench.untie). Exit status 1 if any model is off.
"""
import argparse
import os
import sys
import time

import onnx

import bench
import zoo

# A second value for each free dimension.
OTHER = {"N": 2, "T": 48, "H": 160, "W": 192}
# Where the graph ties a size down, or the model is made for one orientation.
OTHER_OF = {"crnn_lstm": {"W": 132}, "dbnet_resnet18": {"H": 256, "W": 192}, "retinaface_mobile": {"H": 256, "W": 192}, "mtcnn_pnet": {"H": 96, "W": 128}}


def free_symbols(model):
    initial = {t.name for t in model.graph.initializer}
    return {d.dim_param for v in model.graph.input if v.name not in initial for d in v.type.tensor_type.shape.dim if d.dim_param}


def check(args, name, path, symbols):
    import migraphx
    model = onnx.ModelProto.FromString(zoo.skeletons()[name])
    feed = zoo.inputs(name, model, symbols)
    reference = bench.Ort(path, feed, 1)()
    program = migraphx.parse_onnx(path, map_input_dims={k: list(v.shape) for k, v in feed.items()})
    program.compile(migraphx.get_target(args.target))
    start = time.perf_counter()
    results = program.run({k: v for k, v in feed.items() if k in program.get_parameter_names()})
    return bench.difference(results, reference), time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--target", default="ref")
    parser.add_argument("--zoo")
    parser.add_argument("--models", nargs="*")
    parser.add_argument("--limit", type=float, default=1e-5)
    args = parser.parse_args()
    sys.path.insert(0, os.path.join(args.build, "python"))
    args.zoo = args.zoo or os.path.join(args.build, "zoo")
    passed = failed = 0
    for name in args.models or sorted(zoo.skeletons()):
        path = os.path.join(args.zoo, name + ".onnx")
        if not os.path.exists(path):
            zoo.main(["make", args.zoo, name])
        symbols = free_symbols(onnx.ModelProto.FromString(zoo.skeletons()[name]))
        sets = [None] + ([{s: {**OTHER, **OTHER_OF.get(name, {})}.get(s, 2) for s in symbols}] if symbols else [])
        for sizes in sets:
            try:
                error, seconds = check(args, name, path, sizes)
                text = f"{error:.2e} in {seconds:.2f} s"
                good = error <= args.limit
            except Exception as problem:  # the table goes on
                text, good = str(problem)[:300], False
            passed, failed = passed + good, failed + (not good)
            print(f"{'ok    ' if good else 'FAILED'} {name:26} {'' if sizes is None else sizes} {text}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
