#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models as the passes for a Hopper card plan them, run on the CPU beside the models themselves: without a card, all but its kernels.

    PYTHONPATH=build/python python3 bench/gpu_planned.py FILE.onnx ... [--fp16] [--batch 1] [--tokens 32]

Each model is compiled for the card's stand-in in a process of its own (build/test/idle_hopper, made by the tests), saved as JSON, read without
its target and run by target("cpu") on inputs drawn by a seed, as the model is. Printed are the root mean square of the difference by that of the
results and, of models that are not fp16, the difference in steps (gpu_quantized.py). Of models of random weights that are rounded behind every
operator some hundredths are what one rounding does: compare with what ONNX Runtime and the CPU are apart.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import migraphx
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "test", "python")]
import gpu_quantized  # noqa: E402


def read(path, args):
    shapes = migraphx.parse_onnx(path).get_parameter_shapes()
    dims = {name: gpu_quantized.sizes_of(shape, args.batch, args.tokens) for name, shape in shapes.items()}
    return migraphx.parse_onnx(path, map_input_dims=dims)


def plan(path, args):
    """In the stand-in's process."""
    import planned
    program = read(path, args)
    if args.fp16:
        migraphx.quantize_fp16(program)
    planned.compile_for(program, migraphx.get_target("gpu"))
    migraphx.save(planned.portable(program), args.plan, format="json")


def results(program, feed):
    program.compile(migraphx.get_target("cpu"))
    names = program.get_parameter_names()
    return [np.array(r).astype(np.float64) for r in program.run({k: v for k, v in feed.items() if k in names})]


def compare(path, args):
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "plan.json")
        environment = dict(os.environ, LD_LIBRARY_PATH=os.path.join(HERE, "..", "build", "test", "idle_hopper"), MIGRAPHX_GPU_DEVICE="cuda", MIGRAPHX_KERNEL_CACHE="none")
        words = ["--batch", str(args.batch), "--tokens", str(args.tokens)] + ["--fp16"] * args.fp16
        done = subprocess.run([sys.executable, __file__, path, "--plan", made, *words], env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            return (done.stderr.strip().splitlines() or [f"ended by {done.returncode}"])[-1]
        planned = migraphx.load(made, format="json")
    program, rng = read(path, args), np.random.default_rng(1)
    feed = {name: gpu_quantized.values_of(rng, name, shape) for name, shape in program.get_parameter_shapes().items()}
    mine, theirs = results(planned, feed), results(program, feed)
    relative = max(np.sqrt(np.mean((a - b) ** 2) / max(np.mean(b**2), 1e-30)) for a, b in zip(mine, theirs))
    return f"relative {relative:.2e}" + ("" if args.fp16 else "  steps {:.2f} rms, {:.2f} at most".format(*gpu_quantized.apart(mine, theirs)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=32, help="of a text")
    parser.add_argument("--plan", help=argparse.SUPPRESS)
    args = parser.parse_args()
    for path in args.files:
        if args.plan:
            plan(path, args)
        else:
            print(f"{os.path.basename(path):60} {compare(path, args)}", flush=True)


if __name__ == "__main__":
    main()
