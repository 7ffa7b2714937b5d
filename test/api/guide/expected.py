#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""expected.py MODELS: writes what the guides' programs must print, computed by ONNX Runtime, beside this file.

MODELS is where models.c has written them. The picture and the arithmetic on it are those of opencv2/opencv.hpp.
"""
import os
import sys

import numpy as np
import onnxruntime

HERE = os.path.dirname(os.path.abspath(__file__))


def blob(count, height, width):
    picture = (np.arange(48 * 64 * 3) * 7 % 251).astype(np.float64).reshape(48, 64, 3)
    rows, columns = np.arange(height) * 48 // height, np.arange(width) * 64 // width
    image = (picture[rows][:, columns].transpose(2, 0, 1) - 127.5) * 0.0078125
    return np.stack([image.astype(np.float32)] * count)


def run(models, name, shape):
    session = onnxruntime.InferenceSession(os.path.join(models, name))
    return session.run(None, {"input": blob(shape[0], *shape[2:])})[0]


def numbers(row):
    return "".join(f"{x:.6f}," for x in row)


def head(shape):
    return ["input name:input", "input shape:" + ",".join(map(str, shape))]


def images(models, name, softmax):
    logits = run(models, name, [2, 3, 32, 32])
    lines = head([2, 3, 32, 32]) + [f"output size:{logits.shape[1]}"]
    for i, row in enumerate(logits):
        lines += [f"=========={i} image output=============", numbers(row)]
        if softmax:
            powers = np.exp(row - row.max())
            lines.append(f"========== {i} result ==========")
            lines += [f"label:{j},confidence:{x:.6f}" for j, x in enumerate(powers / powers.sum())]
    return lines


def reshaped(models):
    lines = head([2, 3, 512, 512])
    for side in 16, 32:
        output = run(models, "Test.onnx", [2, 3, side, side]).ravel()
        lines += [f"output size:{output.size}", numbers(output)]
    return lines


def main():
    models = sys.argv[1]
    for name, lines in {"classification": images(models, "resnet50.onnx", True),
                        "load": images(models, "ResNet50.onnx", False),
                        "dynamic_shape": reshaped(models)}.items():
        with open(os.path.join(HERE, name + ".expected"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
