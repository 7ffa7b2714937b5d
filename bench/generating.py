#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a token costs: migraphx.generator beside runs by hand (caches handed back as they come) and beside ONNX Runtime.

    generating.py [--module build/python] [--kinds room growing fixed] [--sizes 2x64 4x256 6x768] [--prompt 64] [--steps 200] [--texts 5]
                  [--threads 1] [--many 8]

Writes decoders of test/python/decoders.py (layers x width) and lets all three write the same text, a step of each in turns; ONNX
Runtime is bound to its caches as ONNX Runtime GenAI binds them, past and present one buffer where the model has room, else results
handed on as OrtValues. The first text warms up. Printed are medians over texts of the median step, the prompt's time, and `many`
texts that the generator steps together, per token.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import onnxruntime

HERE = os.path.dirname(os.path.abspath(__file__))
ROOM = 512


def named(kind, tokens, done):
    """The inputs of a run that are no states."""
    end = done + len(tokens)
    known = {"input_ids": np.array([tokens], np.int64)}
    if kind in ("room", "growing"):
        known["attention_mask"] = np.ones((1, end), np.int64)
    if kind == "growing":
        known["position_ids"] = np.arange(done, end, dtype=np.int64)[None]
    return known


def present(name):
    return name.replace("past_key_values", "present").replace("past_", "present_")


class Hand:
    """program.run, results handed back."""

    def __init__(self, kind, program, empty):
        self.kind, self.program, self.states, self.done = kind, program, dict(empty), 0

    def step(self, tokens):
        results = self.program.run({**named(self.kind, tokens, self.done), **self.states})
        self.done += len(tokens)
        self.states = {n: results[present(n)] for n in self.states}
        return int(np.asarray(results["logits"])[0, -1].argmax())


class Other:
    """ONNX Runtime, bound."""

    def __init__(self, kind, session, empty):
        self.kind, self.session, self.done = kind, session, 0
        self.states = {n: onnxruntime.OrtValue.ortvalue_from_numpy(v) for n, v in empty.items()}

    def step(self, tokens):
        bind = self.session.io_binding()
        for name, value in named(self.kind, tokens, self.done).items():
            bind.bind_cpu_input(name, value)
        for name, value in self.states.items():
            bind.bind_ortvalue_input(name, value)
        for output in self.session.get_outputs():
            shared = self.kind == "room" and output.name != "logits"
            if shared:
                bind.bind_ortvalue_output(output.name, self.states[output.name.replace("present", "past_key_values")])
            else:
                bind.bind_output(output.name)
        self.session.run_with_iobinding(bind)
        results = dict(zip((o.name for o in self.session.get_outputs()), bind.get_outputs()))
        if self.kind != "room":
            self.states = {n: results[present(n)] for n in self.states}
        self.done += len(tokens)
        return int(results["logits"].numpy()[0, -1].argmax())


class Ours:
    def __init__(self, generator):
        self.generator, self.text = generator, generator.add()

    def step(self, tokens):
        """Scores come with the next token, so the last one given is chosen already but for the first step."""
        if len(tokens) > 1 or not self.generator.tokens(self.text):
            self.generator.append(self.text, tokens)
        return self.generator.next([self.text])[0]

    def end(self):
        self.generator.remove(self.text)


def write(engines, prompt, steps):
    """The text in all engines, a step of each in turns: times of the prompt and of the steps."""
    times, tokens = [[] for _ in engines], prompt
    for _ in range(steps + 1):
        chosen = []
        for engine, row in zip(engines, times):
            start = time.perf_counter()
            chosen.append(engine.step(tokens))
            row.append(1e3 * (time.perf_counter() - start))
        assert len(set(chosen)) == 1, f"the engines choose {chosen}"
        tokens = chosen[:1]
    return [(row[0], statistics.median(row[1:])) for row in times]


def together(generator, count, prompt, steps):
    texts = [generator.add() for _ in range(count)]
    for i, text in enumerate(texts):
        generator.append(text, prompt[:len(prompt) - i])
    generator.next(texts)
    generator.next(texts)
    start = time.perf_counter()
    for _ in range(steps):
        generator.next(texts)
    took = 1e3 * (time.perf_counter() - start) / steps / count
    for text in texts:
        generator.remove(text)
    return took


def measure(args, migraphx, decoders, kind, layers, width):
    with tempfile.TemporaryDirectory() as folder:
        model = decoders.save(folder, kind, layers=layers, width=width, heads=max(width // 64, 4), shared=max(width // 192, 2), words=1000,
                              context=2000, positions=2048)
        path = os.path.join(folder, "model.onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        program = migraphx.parse_onnx(path, dynamic_dims=True)
        program.compile("cpu", threads=args.threads)
        generator = migraphx.generator(folder, threads=args.threads)
    lengths = {"batch": 1, "past": ROOM if kind == "room" else 0}
    empty = {i.name: np.zeros([lengths.get(d.dim_param, d.dim_value) for d in i.type.tensor_type.shape.dim], np.float32)
             for i in model.graph.input if i.name.startswith("past")}
    prompt, rows, many = np.random.default_rng(1).integers(0, 1000, args.prompt).tolist(), [], []
    for text in range(args.texts + 1):
        ours = Ours(generator)
        row = write([ours, Hand(kind, program, empty), Other(kind, session, empty)], prompt, args.steps)
        ours.end()
        if text:
            rows.append(row)
            many.append(together(generator, args.many, prompt, args.steps // 4))
    (p0, s0), (p1, s1), (p2, s2) = ([statistics.median(r[i][k] for r in rows) for k in (0, 1)] for i in range(3))
    print(f"{kind:8} {layers}x{width:<4} step: ours {s0:.3f} ms ({1e3 / s0:.0f} tokens/s), by hand {s1:.3f} ({s1 / s0:.2f}), ONNX Runtime {s2:.3f} "
          f"({s2 / s0:.2f}); prompt of {args.prompt}: {p0:.2f} ms, {p1:.2f} ({p1 / p0:.2f}), {p2:.2f} ({p2 / p0:.2f}); "
          f"{args.many} together {statistics.median(many):.3f} ms a token", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default=os.path.join(HERE, "..", "build", "python"))
    parser.add_argument("--kinds", nargs="+", default=["room", "growing", "fixed"])
    parser.add_argument("--sizes", nargs="+", default=["2x64", "4x256", "6x768"])
    for name, default in (("prompt", 64), ("steps", 200), ("texts", 5), ("threads", 1), ("many", 8)):
        parser.add_argument("--" + name, type=int, default=default)
    args = parser.parse_args()
    sys.path[:0] = [args.module, os.path.join(HERE, "..", "test", "python")]
    import decoders
    import migraphx
    for kind in args.kinds:
        for size in args.sizes:
            measure(args, migraphx, decoders, kind, *map(int, size.split("x")))


if __name__ == "__main__":
    main()
