#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a key/value cache that grows costs: a step of a decoder whose cache has any length beside one made for that length.

    decoding.py [--module build/python] [--layers 4] [--width 256] [--heads 4] [--steps 200] [--texts 9] [--threads 1]

Writes the decoder of examples/generate and generates the same text again and again with free sizes, the results of a step handed
to the next one as they are. In turns with it, programs with some of its lengths fixed run on what the steps of these lengths got,
with the same work between runs. Both first run for the caches, of which they push each other out: the text once, then once for the
clock; the fixed programs ten times, then five times for the clock, since those steps follow their like too. Results are compared
first. Printed are, for every such length, the least and the median over texts of both, and the ratios of growing to fixed over all
lengths.
"""
import argparse
import math
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))


def step(program, names, token, past):
    """One step, its time, and what a generator does behind it: the next token, and the caches to hand on."""
    feed = {"id": np.array([[token]]), **past}
    start = time.perf_counter()
    results = program.run(feed)
    took = 1e3 * (time.perf_counter() - start)
    logits = np.asarray(results["logits"])
    return took, logits, int(logits.argmax()), {name: results[name.removeprefix("past_")] for name in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default=os.path.join(HERE, "..", "build", "python"))
    for name, default in (("layers", 4), ("width", 256), ("heads", 4), ("steps", 200), ("texts", 9), ("threads", 1)):
        parser.add_argument("--" + name, type=int, default=default)
    args = parser.parse_args()
    sys.path[:0] = [args.module, os.path.join(HERE, "..", "examples", "generate")]
    import decoder
    import migraphx
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "decoder.onnx")
        onnx.save(decoder.build(args.layers, args.width, args.heads, 1000), path)
        growing = migraphx.parse_onnx(path, dynamic_dims=True)
        growing.compile("cpu", threads=args.threads)
        names = [n for n in growing.get_parameter_names() if n != "id"]
        empty = {n: np.zeros([1, args.heads, 0, args.width // args.heads], np.float32) for n in names}
        fixed = {}
        for length in (10, *range(20, args.steps, 20)):
            lengths = {n: [1, args.heads, length, args.width // args.heads] for n in names}
            fixed[length] = migraphx.parse_onnx(path, map_input_dims={"id": [1, 1], **lengths})
            fixed[length].compile("cpu", threads=args.threads)
    times = {length: ([], []) for length in fixed}
    for text in range(2 * args.texts + 2):
        token, past, kept = 1, empty, {}
        is_timed = text % 2 and text > 1
        for length in range(args.steps):
            before = token, past
            took, logits, token, past = step(growing, names, *before)
            if length in fixed:
                kept[length] = before[0], {name: np.array(value) for name, value in before[1].items()}, logits.copy()
            if length in fixed and is_timed:
                times[length][0].append(took)
        if text % 2 == 0:  # for the caches
            continue
        for length, (token, past, logits) in kept.items():
            runs = [step(fixed[length], names, token, past) for _ in range(15)]
            other = runs[0][1]
            assert np.abs(other - logits).max() <= 1e-4 * np.abs(other).max(), f"results differ at length {length}"
            if is_timed:
                times[length][1].extend(took for took, *_ in runs[10:])
    for length, (mine, other) in times.items():
        print(f"{length:5} tokens: growing {min(mine):.3f} {statistics.median(mine):.3f} ms, fixed {min(other):.3f} {statistics.median(other):.3f} ms, "
              f"{min(mine) / min(other):.3f} {statistics.median(mine) / statistics.median(other):.3f}")
    for what, of in (("least", min), ("median", statistics.median)):
        ratio = math.exp(statistics.mean(math.log(of(a) / of(b)) for a, b in times.values()))
        print(f"growing / fixed, geometric mean of the {what}s: {ratio:.3f}")


if __name__ == "__main__":
    main()
