# SPDX-License-Identifier: MIT
"""Reads one handwritten digit: load a model, compile it, run it, print the answer.

From the root of the sources, after make, with numpy installed:

    PYTHONPATH=build/python python3 examples/hello.py examples/digits/digits.onnx
"""
import sys

import migraphx
import numpy as np

# A four; draw another one. The darker a character, the nearer its pixel is to 1.
PICTURE = ("   .#   "
           "   =+   "
           "   %-:. "
           "  =% ++ "
           " -@* @- "
           " :%@#@. "
           "   :%*  "
           "   .@:  ")
INK = " .:-=+*#%@"


def read_digit(path):
    program = migraphx.parse_onnx(path)
    program.compile(migraphx.get_target("cpu"))

    pixels = np.array([INK.index(c) / 9 for c in PICTURE], np.float32)
    results = program.run({"image": pixels.reshape(1, 1, 8, 8)})
    return int(np.array(results[0]).argmax())


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "examples/digits/digits.onnx"
    try:
        print("this is a", read_digit(path))
    except (RuntimeError, OSError) as error:  # the text says what, where and why
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
