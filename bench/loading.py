# SPDX-License-Identifier: MIT
"""From a file to the first answer: this engine from a compiled .mxr, ONNX Runtime from the .onnx file.

    loading.py [--threads N] [--rounds N] [--module DIR] [--json] MODEL.onnx

Compiles the model for the CPU into a temporary file, then starts one process after the other, the
engines in turns, on the same inputs and with the same number of threads. Each process measures its
load, load and first run together, and the median of five runs after that: by the wall's clock and
by the processor's, and MiB resident before the load, after it and after the first run. The file is in
the system's cache, importing the module is not counted, and neither is making the inputs; nor are
threads that an import began and that still spin (numpy's product library has one that does so for
some 25 ms, on one of two cores): each process waits first until it is at rest.

A round counts if the operating system let neither process wait for a core longer than --waiting of
its time (other work on the machine makes it wait); the least and the median of those rounds are
printed, how many there were, and the load average. Without any such round all count, which is said.
"""
import argparse
import glob
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

NAMES = ("load wall", "all wall", "again wall", "load cpu", "all cpu", "again cpu", "MiB before", "MiB loaded", "MiB run")
AGAIN = 5


def resident():
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


def waited():
    """Milliseconds that the threads of this process were ready and had no core."""
    total = 0
    for path in glob.glob("/proc/self/task/*/schedstat"):
        with open(path, encoding="ascii") as f:
            total += int(f.read().split()[1])
    return total * 1e-6


def rest():
    """Waits until no thread of this process works, for a second at most."""
    for _ in range(50):
        start = time.process_time()
        time.sleep(0.02)
        if time.process_time() - start < 0.001:
            return


def clocks():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"wall": time.perf_counter() * 1e3, "cpu": (used.ru_utime + used.ru_stime) * 1e3}


def measure(load, run):
    """One process's numbers."""
    rest()
    lost, memory, start = waited(), [resident()], clocks()
    loaded = load()
    middle = clocks()
    memory.append(resident())
    pause = clocks()
    run(loaded)
    end = clocks()
    memory.append(resident())
    lost = waited() - lost
    times = [clocks()]
    for _ in range(AGAIN):
        run(loaded)
        times.append(clocks())
    row = {"waited": lost / (end["wall"] - start["wall"])}
    for clock in ("wall", "cpu"):
        row[f"load {clock}"] = middle[clock] - start[clock]
        row[f"all {clock}"] = row[f"load {clock}"] + end[clock] - pause[clock]
        row[f"again {clock}"] = statistics.median(b[clock] - a[clock] for a, b in zip(times, times[1:]))
    row.update(zip(("MiB before", "MiB loaded", "MiB run"), memory))
    return row


def inputs_of(options):
    import numpy as np
    rng = np.random.default_rng(0)
    return {name: rng.random(lens).astype(kind) if kind.startswith("float") else np.ones(lens, kind)
            for name, (kind, lens) in json.loads(options.inputs).items()}


def ours(options):
    import migraphx
    inputs = inputs_of(options)
    return measure(lambda: migraphx.load(options.model), lambda p: p.run(inputs))


def onnxruntime(options):
    import onnxruntime as ort
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = options.threads
    inputs = inputs_of(options)
    return measure(lambda: ort.InferenceSession(options.model, settings, providers=["CPUExecutionProvider"]),
                   lambda session: session.run(None, inputs))


def child(engine, path, inputs, options):
    command = [sys.executable, __file__, "--child", engine, "--threads", str(options.threads), "--module", options.module,
               "--inputs", json.dumps(inputs), path]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compiled(options, folder):
    """The path of the file, and the inputs: name -> (type, lengths)."""
    sys.path.insert(0, options.module)
    import migraphx
    path = os.path.join(folder, "model.mxr")
    program = migraphx.parse_onnx(options.model)
    shapes = program.get_parameter_shapes()
    program.compile(migraphx.get_target("cpu"), threads=options.threads)
    migraphx.save(program, path)
    kinds = {"float_type": "float32", "double_type": "float64", "half_type": "float16", "int64_type": "int64",
             "int32_type": "int32", "bool_type": "bool", "uint8_type": "uint8", "int8_type": "int8"}
    return path, {name: (kinds[s.type_string()], s.lens()) for name, s in shapes.items()}


def collect(options):
    rows = {"ours": [], "onnxruntime": []}
    with tempfile.TemporaryDirectory() as folder:
        path, inputs = compiled(options, folder)
        for _ in range(options.rounds):
            rows["ours"].append(child("ours", path, inputs, options))
            rows["onnxruntime"].append(child("onnxruntime", options.model, inputs, options))
    quiet = [i for i in range(options.rounds) if all(found[i]["waited"] <= options.waiting for found in rows.values())]
    return rows, quiet


def report(options, rows, quiet, load):
    counted = {engine: [found[i] for i in quiet or range(options.rounds)] for engine, found in rows.items()}
    print(f"{options.threads} threads, {len(quiet)} of {options.rounds} rounds without waiting{'' if quiet else ': all count'}, "
          f"load average {load[0]:.1f} before, {os.getloadavg()[0]:.1f} after")
    print(f"{'':12}" + "".join(f"{engine:>12} {'':>8}" for engine in counted))
    print(f"{'':12}" + f"{'least':>12} {'median':>8}" * len(counted))
    for name in NAMES:
        print(f"{name:12}" + "".join(f"{min(r[name] for r in found):12.1f} {statistics.median(r[name] for r in found):8.1f}"
                                     for found in counted.values()))
    for name in ("all wall", "all cpu"):
        ratios = [least(r[name] for r in counted["onnxruntime"]) / least(r[name] for r in counted["ours"])
                  for least in (min, statistics.median)]
        print(f"{name}: ONNX Runtime takes {ratios[0]:.1f} times as long by the least, {ratios[1]:.1f} by the medians")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--waiting", type=float, default=0.02)
    parser.add_argument("--module", default=os.path.join(os.path.dirname(__file__), "../build/python"))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--inputs", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        sys.path.insert(0, options.module)
        print(json.dumps({"ours": ours, "onnxruntime": onnxruntime}[options.child](options)))
        return
    load = os.getloadavg()
    rows, quiet = collect(options)
    if options.json:
        print(json.dumps({"threads": options.threads, "quiet": quiet, "rounds": rows}))
    else:
        report(options, rows, quiet, load)


if __name__ == "__main__":
    main()
