#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a token costs by ONNX Runtime GenAI with this engine's provider, beside migraphx.generator and beside GenAI's own processor.

    genai.py [--build build] [--kinds room growing] [--sizes 2x64 4x256 6x768] [--prompt 64] [--steps 200] [--texts 5] [--threads 1] [--card]

Writes decoders of test/python/decoders.py (layers x width); all three write the same text, a step of each in turns, and must choose the
same tokens. The first text warms up. Printed are medians over texts of the median step and the prompt's time, by the clock and by
processor time (all threads of the process, of which only the one that is asked has something to do). With --card the generator and
GenAI, by its door for AMD's provider, are both on the first card, and GenAI's own processor stays out.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
DOOR = "AMDGPU"


def configure(folder, kind, sizes, threads, provider):
    """GenAI's words of a folder that decoders.save wrote."""
    name = os.path.join(folder, "genai_config.json")
    with open(name, encoding="utf-8") as file:
        config = json.load(file)
    given = {} if provider == DOOR else {"threads": str(threads)}
    options = {"intra_op_num_threads": threads, "provider_options": [{provider: given}] if provider else [],
               "session.disable_cpu_ep_fallback": "1" if provider else "0"}
    config["model"].update(type="llama", bos_token_id=0, eos_token_id=[1], pad_token_id=0)
    config["model"]["decoder"].update(head_size=sizes["width"] // sizes["heads"], hidden_size=sizes["width"],
                                      num_attention_heads=sizes["heads"], num_hidden_layers=sizes["layers"],
                                      num_key_value_heads=sizes["shared"] if kind == "room" else sizes["heads"], session_options=options)
    config["search"].update(do_sample=False, past_present_share_buffer=kind == "room", max_length=2000)
    with open(name, "w", encoding="utf-8") as file:
        json.dump(config, file)


class Theirs:
    def __init__(self, genai, model, length):
        params = genai.GeneratorParams(model)
        params.set_search_options(max_length=length, min_length=length, do_sample=False)
        self.generator = genai.Generator(model, params)

    def step(self, prompt):
        if prompt:
            self.generator.append_tokens(np.array([prompt], np.int32))
        self.generator.generate_next_token()
        return int(self.generator.get_next_tokens()[0])

    def end(self):
        del self.generator


class Ours:
    def __init__(self, generator, ends):
        self.generator, self.text = generator, generator.add()
        bias = np.zeros(1000, np.float32)
        bias[ends] = -np.inf  # as min_length does
        generator.set_bias(self.text, bias)

    def step(self, prompt):
        if prompt:
            self.generator.append(self.text, prompt)
        return self.generator.next([self.text])[0]

    def end(self):
        self.generator.remove(self.text)


def write(engines, prompt, steps):
    """[(prompt, step) by the clock and by processor time, ms] of each engine."""
    times = [([], []) for _ in engines]
    for step in range(steps + 1):
        chosen = []
        for engine, (clock, used) in zip(engines, times):
            start = time.perf_counter(), time.process_time()
            chosen.append(engine.step(prompt if step == 0 else None))
            clock.append(1e3 * (time.perf_counter() - start[0]))
            used.append(1e3 * (time.process_time() - start[1]))
        assert len(set(chosen)) == 1, f"step {step}: the engines choose {chosen}"
    return [[(row[0], statistics.median(row[1:])) for row in both] for both in times]


def measure(args, migraphx, genai, decoders, kind, layers, width):
    sizes = {"layers": layers, "width": width, "heads": max(width // 64, 4), "shared": max(width // 192, 2)}
    with tempfile.TemporaryDirectory() as folder:
        models = []
        for provider in (DOOR,) if args.card else ("MgxExecutionProvider", None):
            decoders.save(folder, kind, words=1000, context=2000, positions=2048, **sizes)
            configure(folder, kind, sizes, args.threads, provider)
            models.append(genai.Model(folder))
        generator = migraphx.generator(folder, threads=args.threads, target="gpu" if args.card else "cpu")
    prompt, rows = np.random.default_rng(1).integers(2, 1000, args.prompt).tolist(), []
    for text in range(args.texts + 1):
        engines = [Ours(generator, [1]), *(Theirs(genai, model, args.prompt + args.steps + 1) for model in models)]
        row = write(engines, prompt, args.steps)
        for engine in engines:
            engine.end()
        if text:
            rows.append(row)
    names = ["ours", "GenAI with the provider", "GenAI alone"]
    for how, by in enumerate(("clock", "processor")):
        of = [[statistics.median(r[i][how][k] for r in rows) for k in (0, 1)] for i in range(len(engines))]
        steps = ", ".join(f"{name} {step:.3f} ms ({step / of[0][1]:.3f})" for name, (_, step) in zip(names, of))
        prompts = ", ".join(f"{first:.2f} ({first / of[0][0]:.3f})" for first, _ in of)
        print(f"{kind:8} {layers}x{width:<4} {by:9} step: {steps}; prompt of {args.prompt}: {prompts}", flush=True)


def open_door(folder, library):
    """A name that GenAI loads, with the engine's library beside it."""
    for name in (n for n in os.listdir(os.path.dirname(library)) if n.startswith("libmigraphx_c.so")):
        os.symlink(os.path.join(os.path.dirname(library), name), os.path.join(folder, name))
    os.environ["AMDGPU_EP_PATH"] = os.path.join(folder, "libamdgpu-ep.so")
    os.symlink(library, os.environ["AMDGPU_EP_PATH"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--kinds", nargs="+", default=["room", "growing"])
    parser.add_argument("--sizes", nargs="+", default=["2x64", "4x256", "6x768"])
    for name, default in (("prompt", 64), ("steps", 200), ("texts", 5), ("threads", 1)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--card", action="store_true")
    args = parser.parse_args()
    sys.path[:0] = [os.path.join(args.build, "python"), os.path.join(HERE, "..", "test", "python")]
    import decoders
    import migraphx
    import onnxruntime_genai as genai
    library = os.path.realpath(os.path.join(args.build, "lib", "libmigraphx_ort.so"))
    with tempfile.TemporaryDirectory() as door:
        if args.card:
            open_door(door, library)
        else:
            genai.register_execution_provider_library("mgx", library)
        for kind in args.kinds:
            for size in args.sizes:
                measure(args, migraphx, genai, decoders, kind, *map(int, size.split("x")))


if __name__ == "__main__":
    main()
