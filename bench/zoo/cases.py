#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models of the zoo as cases for mgx-run-onnx and mgx-soak, which run them again and again under sanitizers: make soak.

    cases.py DIR [--sets 1] [NAME ...]     DIR/NAME/model.onnx, DIR/NAME/test_data_set_<k>/input_<i>.pb

The first set of inputs is the zoo's; the others are of the same lengths and kinds, drawn anew. There are no results to
compare with: whoever runs a case compares its runs.
"""
import argparse
import os

import numpy as np
import onnx
from onnx import numpy_helper

import zoo

# What sizes its own results in the middle, by what the run finds.
DETECTORS = ("maskrcnn_resnet50", "retinanet_resnet50", "ssd300_vgg16", "retinaface_mobile", "yolov8n")


def draw(name, model, k):
    """Inputs of the zoo; from the second set on those of another draw, integers of as many kinds."""
    feed = zoo.inputs(name, model)
    rng = np.random.RandomState(k)
    for key, array in feed.items() if k else ():
        if array.dtype.kind == "f":
            feed[key] = (rng.permutation(array.ravel()).reshape(array.shape) * rng.uniform(0.5, 1.5)).astype(array.dtype)
        elif key in zoo.VOCABULARY:
            feed[key] = rng.randint(0, zoo.VOCABULARY[key], array.shape).astype(array.dtype)
    return feed


def write(folder, name, sets):
    skeleton = zoo.skeletons()[name]
    os.makedirs(folder, exist_ok=True)
    model = zoo.fill(skeleton)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for k in range(sets):
        data = os.path.join(folder, f"test_data_set_{k}")
        os.makedirs(data, exist_ok=True)
        for i, (key, array) in enumerate(draw(name, model, k).items()):
            with open(os.path.join(data, f"input_{i}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(array, key).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("names", nargs="*", help="models; 'detectors' for those whose sizes the run finds; all without one")
    parser.add_argument("--sets", type=int, default=1)
    args = parser.parse_intermixed_args()
    names = [n for name in args.names or sorted(zoo.skeletons()) for n in (DETECTORS if name == "detectors" else (name,))]
    for name in names:
        write(os.path.join(args.out, name), name, args.sets)
        print(name, flush=True)


if __name__ == "__main__":
    main()
