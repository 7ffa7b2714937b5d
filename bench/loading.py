# SPDX-License-Identifier: MIT
"""From a file to the first answer: this engine from a compiled .mxr, ONNX Runtime from the .onnx file.

    loading.py [--threads N] [--rounds N] [--module DIR] MODEL.onnx

Compiles the model for the CPU into a temporary file, then starts one process after the other, the
engines in turns, and prints the least and the median over the rounds of each of them: milliseconds
of the load and of load and first run together, by the processor's clock and by the wall's, and MiB
resident before, after the load and after the run. The file is in the system's cache; importing the
module is not counted.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time


def resident():
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


def clocks():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, time.perf_counter()


def measure(load, run):
    """One process's numbers."""
    before, start = resident(), clocks()
    loaded = load()
    middle, with_weights = clocks(), resident()
    run(loaded)
    end = clocks()
    ms = [(b - a) * 1e3 for a, b in ((start[0], middle[0]), (start[0], end[0]), (start[1], middle[1]), (start[1], end[1]))]
    return dict(zip(NAMES, ms + [before, with_weights, resident()]))


NAMES = ("load cpu", "all cpu", "load wall", "all wall", "MiB before", "MiB loaded", "MiB run")


def ours(path, _):
    import migraphx

    def run(p):
        inputs = {name: migraphx.generate_argument(shape) for name, shape in p.get_parameter_shapes().items()}
        return p.run(inputs)

    return measure(lambda: migraphx.load(path), run)


def onnxruntime(path, threads):
    import numpy as np
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads

    def run(session):
        inputs = {i.name: np.zeros([d if isinstance(d, int) else 1 for d in i.shape], np.float32) for i in session.get_inputs()}
        return session.run(None, inputs)
    return measure(lambda: ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]), run)


def child(engine, path, options):
    command = [sys.executable, __file__, "--child", engine, "--threads", str(options.threads), "--module", options.module, path]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compiled(options, folder):
    sys.path.insert(0, options.module)
    import migraphx
    path = os.path.join(folder, "model.mxr")
    program = migraphx.parse_onnx(options.model)
    program.compile(migraphx.get_target("cpu"), threads=options.threads)
    migraphx.save(program, path)
    return path


def report(engine, rows):
    for name in NAMES:
        values = [row[name] for row in rows]
        print(f"{engine:12} {name:11} {min(values):8.1f} {statistics.median(values):8.1f}")


def compare(options):
    engines = {"ours": None, "onnxruntime": options.model}
    rows = {engine: [] for engine in engines}
    with tempfile.TemporaryDirectory() as folder:
        engines["ours"] = compiled(options, folder)
        for _ in range(options.rounds):
            for engine, path in engines.items():
                rows[engine].append(child(engine, path, options))
    print(f"{'':12} {'':11} {'least':>8} {'median':>8}")
    for engine, found in rows.items():
        report(engine, found)
    for name in ("all cpu", "all wall"):
        ratio = min(row[name] for row in rows["onnxruntime"]) / min(row[name] for row in rows["ours"])
        print(f"{name}: ONNX Runtime takes {ratio:.1f} times as long")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--module", default=os.path.join(os.path.dirname(__file__), "../build/python"))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.child:
        return compare(options)
    sys.path.insert(0, options.module)
    print(json.dumps({"ours": ours, "onnxruntime": onnxruntime}[options.child](options.model, options.threads)))


if __name__ == "__main__":
    main()
