#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""From a decoder on the disk to its first token: a generator of a folder, and a program that was kept compiled as .mxr.

    first_token.py [--module build/python] [--threads 1] [--rounds 7] [--prompt 16] [--size 12x768] [--words 32000] [FOLDER]

Without FOLDER writes a decoder of test/python/decoders.py (GroupQueryAttention; layers x width) into a temporary one. Each measurement
is a process of its own, the three in turns, files in the system's cache: a generator of the folder until its first token; parsing
and compiling with open sizes, and a run over the prompt; the same program from a .mxr. The token must be the same. Printed are the
least and the median, in ms: until the model is ready, until its first token, and the processor's time until then, of which importing
the module is no part; and MiB resident then.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = ("folder", "compiled", "kept")


def resident():
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


def feed(program, tokens):
    """The first run's inputs: the prompt, and states without tokens."""
    n = len(tokens)
    known = {"input_ids": [tokens], "ids": [tokens], "attention_mask": np.ones((1, n)), "position_ids": np.arange(n)[None],
             "seqlens_k": [n - 1], "lengths": [n - 1], "total_sequence_length": n, "total": n}
    types = {"float_type": np.float32, "half_type": np.float16, "int64_type": np.int64, "int32_type": np.int32}
    given = {}
    for name, shape in program.get_parameter_shapes().items():
        if name in known:
            given[name] = np.array(known[name], types[shape.type_string()])
        else:
            lens = [d.min for d in shape.dyn_dims()] if shape.dynamic() else shape.lens()
            lens = [1 if i == 0 else n for i, n in enumerate(lens)]
            given[name] = np.zeros(lens, types[shape.type_string()])
    return given


def measure(way, folder, kept, threads, prompt):
    import migraphx  # noqa: PLC0415

    tokens = [3 + i % 40 for i in range(prompt)]
    start, busy = time.perf_counter(), time.process_time()
    if way == "folder":
        g = migraphx.generator(folder, threads=threads)
        ready = time.perf_counter()
        text = g.add()
        g.append(text, tokens)
        token = int(np.asarray(g.logits(text)).argmax())
    else:
        if way == "compiled":
            p = migraphx.parse_onnx(os.path.join(folder, "model.onnx"), dynamic_dims=True)
            p.compile("cpu", threads=threads)
        else:
            p = migraphx.load(kept)
        ready = time.perf_counter()
        token = int(np.asarray(p.run(feed(p, tokens))["logits"])[0, -1].argmax())
    end, busy = time.perf_counter(), time.process_time() - busy
    print(json.dumps([1e3 * (ready - start), 1e3 * (end - start), 1e3 * busy, resident(), token]))


def make(folder, size, words):
    sys.path.insert(0, os.path.join(HERE, "..", "test", "python"))
    import decoders  # noqa: PLC0415

    layers, width = map(int, size.split("x"))
    decoders.save(folder, "room", layers=layers, width=width, heads=width // 64, shared=max(width // 256, 1), words=words, context=512)


def keep(folder, path, threads):
    import migraphx  # noqa: PLC0415

    p = migraphx.parse_onnx(os.path.join(folder, "model.onnx"), dynamic_dims=True)
    p.compile("cpu", threads=threads)
    migraphx.save(p, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default=os.path.join(HERE, "..", "build", "python"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--prompt", type=int, default=16)
    parser.add_argument("--size", default="12x768")
    parser.add_argument("--words", type=int, default=32000)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("folder", nargs="?")
    a = parser.parse_args()
    sys.path.insert(0, os.path.abspath(a.module))
    if a.measure:
        measure(a.measure[0], a.folder, a.measure[1], a.threads, a.prompt)
        return
    with tempfile.TemporaryDirectory() as work:
        folder, kept = a.folder or os.path.join(work, "decoder"), os.path.join(work, "kept.mxr")
        if not a.folder:
            make(folder, a.size, a.words)
        keep(folder, kept, a.threads)
        rows = {way: [] for way in WAYS}
        for _ in range(a.rounds):
            for way in WAYS:
                words = [sys.executable, os.path.abspath(__file__), "--module", a.module, "--threads", str(a.threads), "--prompt", str(a.prompt),
                         "--measure", way, kept, folder]
                rows[way].append(json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout))
        tokens = {row[4] for way in WAYS for row in rows[way]}
        assert len(tokens) == 1, tokens
        print(f"kept: {os.path.getsize(kept) >> 20} MiB; {a.threads} threads, a prompt of {a.prompt} tokens")
        for way in WAYS:
            ready, first, busy, size = ([row[i] for row in rows[way]] for i in range(4))
            times = "   ".join(f"{name} {min(v):7.1f} {statistics.median(v):7.1f}" for name, v in (("ready", ready), ("first token", first), ("processor", busy)))
            print(f"{way:9} {times}   {statistics.median(size):5.0f} MiB")


if __name__ == "__main__":
    main()
