# SPDX-License-Identifier: MIT
"""One model in a process of its own: what the record holds of it, as JSON on the last line.

    worker.py BUILD MODEL INPUTS OPTIONS    OPTIONS: {"free", "quantize", "target", "isa", "seconds", "times"} as JSON

In this order: this engine alone, whose memory shows in what the process grows by; the reference target; ONNX Runtime, which says
what the file means without optimisations; then both in turns with all of them. One thread each, processor time, since other
work on the machine is no concern of the record.
"""
import hashlib
import json
import os
import statistics
import sys
import time

import numpy as np

MOST_GFLOP = 3.0  # of products that the reference computes: it takes seconds for one
CALL, ROUNDS = 0.002, 200  # seconds that a turn takes at least, rounds at most
CLOCK = time.process_time


def grown():
    """MiB that this process had at most."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def digest(arrays):
    h = hashlib.sha256()
    for a in arrays:
        h.update(f"{a.dtype}{a.shape}".encode())
        h.update(np.ascontiguousarray(a).tobytes())
    return h.hexdigest()[:16]


def error_of(results, truth):
    """[relative RMS, largest by the largest value] over all results; infinity where sizes, integers or what is no number differ."""
    worst = [0.0, 0.0]
    for a, b in zip(results, truth):
        if a.size != b.size:
            return [float("inf")] * 2
        a, b = a.reshape(-1).astype(np.float64), b.reshape(-1).astype(np.float64)
        ordinary = np.isfinite(b)
        if not np.array_equal(a[~ordinary], b[~ordinary], equal_nan=True) or not np.isfinite(a[ordinary]).all():
            return [float("inf")] * 2
        a, b = a[ordinary], b[ordinary]
        if b.size:
            off, most = np.abs(a - b), max(float(np.abs(b).max()), 1e-30)
            worst[0] = max(worst[0], float(np.sqrt((off ** 2).mean())) / max(float(np.sqrt((b ** 2).mean())), 1e-30))
            worst[1] = max(worst[1], float(off.max()) / most)
    return worst


# --- this engine ---

class Ours:
    def __init__(self, path, feed, options, target):
        import migraphx
        sizes = {} if options.get("free") else {k: list(v.shape) for k, v in feed.items()}
        self.program = migraphx.parse_onnx(path, dynamic_dims=True) if options.get("free") else migraphx.parse_onnx(path, map_input_dims=sizes)
        quantize(migraphx, self.program, feed, options.get("quantize"))
        own = {"isa": options["isa"]} if options.get("isa") and target == "cpu" else {}
        self.program.compile(target, **({} if target == "ref" else {"threads": 1, **own}))
        wanted = set(self.program.get_parameter_names())
        self.feed = {k: v for k, v in feed.items() if k in wanted}

    def __call__(self):
        return self.program.run(self.feed)


def quantize(migraphx, program, feed, kind):
    if kind == "int8":
        migraphx.quantize_int8(program, migraphx.get_target("cpu"), [feed])
    elif kind:
        {"fp16": migraphx.quantize_fp16, "bf16": migraphx.quantize_bf16, "int4": migraphx.quantize_int4_weights}[kind](program)


def model_operators(nodes):
    """`/a/Conv (Conv); /b/Clip (Clip)` as `Clip Conv`: names are the file's, operators last longer."""
    found = {part[part.rfind("(") + 1:].rstrip(")") for part in nodes.split("; ") if "(" in part}
    return " ".join(sorted(found))


def steps_of(text):
    """The steps of a plan as (operator, the model's operators, kernel, precision, device), and the nodes of each."""
    steps = []
    for line in text.splitlines():
        f = line.split("\t")
        detail = f" ({f[3]})" if f[3] else ""
        reads = f"{f[15]} > " if len(f) > 15 and f[15] and f[15] != f[5] else ""
        steps.append(([f[1], model_operators(f[14]), f[2] + detail, reads + f[5], f[4]], f[14]))
    return steps


def bytes_named(explained, name):
    return sum(int(line.split()[name.count(" ") + 1]) for line in explained.splitlines() if line.startswith(name + ": "))


def plan_of(path, feed, options, program):
    """Steps of the program, and where sizes are free also those of the plan for the sizes of the inputs."""
    steps = steps_of(program.plan())
    if options.get("free"):
        steps += steps_of(Ours(path, feed, {**options, "free": False}, options["target"]).program.plan())
    return steps


# --- ONNX Runtime ---

def session_of(path, optimised):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimised else level.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


# --- in turns ---

def took(call, count=1):
    start = CLOCK()
    for _ in range(count):
        call()
    return (CLOCK() - start) / count


def spread_of(ratios):
    """How far the median of these may be off, relative: from the median deviation."""
    middle = statistics.median(ratios)
    off = statistics.median(abs(r - middle) for r in ratios) / middle
    return 1.86 * off / len(ratios) ** 0.5


def in_turns(first, second, seconds, least, most):
    """(median, spread) of the ratio of a call of `first` to one of `second`, and how many rounds."""
    until = CLOCK() + seconds
    once = [took(first), took(second)]
    counts = [max(1, min(1000, int(CALL / max(t, 1e-6)))) for t in once]
    ratios = [once[0] / once[1]] if min(once) > seconds / 10 else []  # what takes long has no need of a warm start
    while len(ratios) < least or (CLOCK() < until and len(ratios) < most):
        a, b = took(first, counts[0]), took(second, counts[1])
        ratios.append(a / max(b, 1e-9))
    return statistics.median(ratios), spread_of(ratios), len(ratios)


def beside_ort(path, feed, options, ours, results):
    row = {}
    plain = session_of(path, False)
    row["apart"] = error_of(results, [np.asarray(r) for r in plain.run(None, feed)])
    del plain
    if not options["times"]:
        return row
    session = session_of(path, True)
    row["run"] = in_turns(ours, lambda: session.run(None, feed), options["seconds"], 4, ROUNDS)
    del session
    row["compile"] = in_turns(lambda: Ours(path, feed, options, options["target"]), lambda: session_of(path, True), options["seconds"] / 2, 2, 15)
    return row


def measure(build, path, inputs, options):
    sys.path.insert(0, os.path.join(build, "python"))
    import migraphx  # noqa: F401
    feed, before = dict(np.load(inputs)), grown()
    ours = Ours(path, feed, options, options["target"])
    results = [np.array(r) for r in ours()]
    row = {"status": "runs", "peak": grown() - before, "bits": digest(results)}
    explained = ours.program.explain()
    row["class"] = next((line.rpartition("isa: ")[2] for line in explained.splitlines() if "isa: " in line), options["target"])
    row["scratch"], row["packed"] = bytes_named(explained, "scratch"), bytes_named(explained, "packed constants")
    row["steps"] = plan_of(path, feed, options, ours.program)
    products = [float(line.split()[1]) for line in explained.splitlines() if line.startswith("products:")]
    if not products or products[0] <= MOST_GFLOP:
        truth = [np.array(r) for r in Ours(path, feed, options, "ref")()]
        row["meaning"], row["error"] = digest(truth), error_of(results, truth)
    try:
        row.update(beside_ort(path, feed, options, ours, results))
    except Exception as error:
        row["without"] = f"ONNX Runtime: {str(error).splitlines()[0][:120]}"
    return row


def main():
    build, path, inputs, options = sys.argv[1:5]
    try:
        row = measure(os.path.abspath(build), path, inputs, json.loads(options))
    except Exception as error:
        row = {"status": f"fails: {type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"}
    print("ROW", json.dumps(row), flush=True)
    os._exit(0)  # nothing is left to do; large models take long to let go


if __name__ == "__main__":
    main()
