# SPDX-License-Identifier: MIT
"""Generates text with a decoder that keeps a key/value cache, and says how many tokens per second that gives.

    python examples/generate/decoder.py decoder.onnx
    PYTHONPATH=build/python python examples/generate/generate.py decoder.onnx [steps]

The cache grows by one row in every step: a size that no run before had. What a run gives is handed to the next one as it is.
The first text also pays for what is made when a size is met for the first time; time a second one (docs/sizes.md).
"""
import sys
import time

import migraphx
import numpy as np


def main(path, steps=200):
    program = migraphx.parse_onnx(path, dynamic_dims=True)
    program.compile("cpu")
    # "past_key_0" becomes "key_0": no tokens yet, so the axis that is free has length 0.
    past = {name: np.zeros([0 if d.max != d.min else d.max for d in shape.dyn_dims()], np.float32)
            for name, shape in program.get_parameter_shapes().items() if name != "id"}
    token, text, start = 1, [], time.perf_counter()
    for _ in range(steps):
        results = program.run({"id": np.array([[token]]), **past})
        token = int(np.asarray(results["logits"]).argmax())
        text.append(token)
        past = {name: results[name.removeprefix("past_")] for name in past}
    seconds = time.perf_counter() - start
    print(*text)
    print(f"{steps / seconds:.1f} tokens per second", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]))
