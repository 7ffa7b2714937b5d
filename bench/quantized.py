#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Quantised models beside ONNX Runtime and OpenVINO, or beside other builds of this engine.

    quantized.py make DIR [--zoo DIR] [--models NAME ...]        models of the zoo through ONNX Runtime's quantizer
    quantized.py draw DIR [--count 20] [--seed 45] [--most 6e7]  architectures that nobody chose, each in one of its kinds
    quantized.py time DIR [--build [NAME=]DIR ...] [--peers ort openvino] [--models FILE ...] [--threads 1] [--seconds 8]
    quantized.py first DIR ...                                   from the file to the first answer, and peak memory
    quantized.py check DIR [--build DIR] [--models NAME ...]     how far results are from ONNX Runtime's

`make` writes NAME_qdq.onnx (static, per channel), NAME_tensor.onnx (static, per tensor), NAME_qop.onnx (QLinear operators) and
NAME_dyn.onnx (dynamic), calibrated on one random input; with --batch from models whose batch is free, as a card is
timed with. `draw` takes architectures of timm, torchvision and transformers by a seed
(bench/drawing.py) and gives each the next of DRAWN, the kinds of file that the quantizer makes, in an order of the seed:
NAME_float.onnx and NAME_KIND.onnx, with the batch left free. `time` and `first` run every engine in a process of its own. For `time`
these wait for their turns and take them in another order every round: three runs, of which the fastest counts, in CPU time with
one thread and wall time with more. Printed are minimum, median, and the median over rounds of the first engine's ratio to each:
above 1 the first build is faster. `first` prints CPU time, the least of several processes.

The error is the root mean square of the difference to ONNX Runtime's outputs by that of the outputs.

`check` takes every kind of every model of the zoo, makes those that are not in DIR and deletes them again. Weights have 7 bits,
with which ONNX Runtime's products do not saturate on AVX2 either. Results are compared with what ONNX Runtime makes of the file
without optimisations, which is what the file says, in float between quantize and dequantize. The yardstick beside it is ONNX
Runtime with all of them, as integers. Differences are in steps of the output: its own scale where it is dequantized, else a 255th of its
range. Printed are the root mean square and the largest; they agree where the largest is one step, or the root mean square no
more than ONNX Runtime's own and half of that again. Elsewhere the tensors of bytes on the way are compared: where the first that
is not the same differs by one step in one of a thousand bytes at most, what a product rounded the other way has grown from layer
to layer.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "zoo"))
KINDS = ("qdq", "tensor", "qop", "dyn")
# Kinds that are drawn: format, activations (of dynamic ones: none), weights, a scale for each channel.
DRAWN = ("qdq-u8-s8-channel", "qdq-s8-s8-channel", "qdq-u8-s8", "qdq-s8-s8", "qdq-u8-u8", "qop-u8-s8-channel", "qop-u8-s8", "qop-u8-u8",
         "qop-s8-s8-channel", "dyn-s8", "dyn-u8", "dyn-s8-channel")


def zoo_name(path):
    stem = os.path.basename(path)[:-len(".onnx")]
    return stem.rpartition("_")[0] if stem.rpartition("_")[2] in (*KINDS, *DRAWN, "float", "pre") else stem


def inputs_of(path):
    """Inputs by name: those of the zoo for its models, with TOKENS in the environment as the length of a text. Of others random
    ones, free sizes 1, those of a second axis of integers 128."""
    import onnx
    import onnxruntime
    import zoo
    tokens, skeletons = int(os.environ.get("TOKENS", "0")), zoo.skeletons()
    graph = onnx.load(path, load_external_data=False).graph
    feed = zoo.inputs(zoo_name(path), onnx.ModelProto.FromString(skeletons[zoo_name(path)]), {}) if zoo_name(path) in skeletons else {}
    if {i.name for i in graph.input} - {i.name for i in graph.initializer} == feed.keys():
        return {k: v[:, :tokens] if tokens and v.ndim == 2 and v.dtype.kind == "i" else v for k, v in feed.items()}
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    rng, feed = np.random.default_rng(1), {}
    for i in session.get_inputs():
        integers = "int" in i.type
        shape = [d if isinstance(d, int) else 128 if integers and axis == 1 else 1 for axis, d in enumerate(i.shape)]
        most = 2 if "mask" in i.name or "type" in i.name else 100
        feed[i.name] = rng.integers(0, most, shape) if integers else rng.standard_normal(shape).astype(np.float32)
        if "int32" in i.type:
            feed[i.name] = feed[i.name].astype(np.int32)
    return feed


class Once:
    """Calibration data: one random input."""

    def __init__(self, path):
        self.left = [inputs_of(path)]

    def get_next(self):
        return self.left.pop() if self.left else None


def make_one(name, source, folder, reduced, kinds):
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    ready = os.path.join(folder, name + "_float.onnx")
    quant_pre_process(source, ready, skip_symbolic_shape=True)
    static = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8, "reduce_range": reduced}
    to = {kind: os.path.join(folder, f"{name}_{kind}.onnx") for kind in KINDS}
    for kind, call in (
            ("qdq", lambda: quantize_static(ready, to["qdq"], Once(ready), quant_format=QuantFormat.QDQ, per_channel=True, **static)),
            ("tensor", lambda: quantize_static(ready, to["tensor"], Once(ready), quant_format=QuantFormat.QDQ, per_channel=False, **static)),
            ("qop", lambda: quantize_static(ready, to["qop"], Once(ready), quant_format=QuantFormat.QOperator, per_channel=True, **static)),
            ("dyn", lambda: quantize_dynamic(ready, to["dyn"], weight_type=QuantType.QInt8, reduce_range=reduced))):
        try:
            if kind in kinds:
                call()
        except Exception as error:  # a model that the quantizer cannot take is a row of the table
            print(f"{name} {kind}: {str(error).splitlines()[0][:120]}", flush=True)


def make_free(folder, names):
    """The zoo's models with the batch left free; of a detector its convolutions."""
    import free_batch
    import onnx
    import zoo
    for name in names:
        model = free_batch.ready(name, zoo.skeletons()[name])
        onnx.save(zoo.fill(model.SerializeToString()), os.path.join(folder, name + ".onnx"))


def make(args):
    import zoo
    os.makedirs(args.folder, exist_ok=True)
    where = args.zoo or args.folder
    names = args.models or sorted(zoo.skeletons())
    missing = [n for n in names if not os.path.exists(os.path.join(where, n + ".onnx"))]
    if args.batch:
        make_free(where, missing)
    elif missing:
        zoo.main(["make", where, *missing])
    for name in names:
        make_one(name, os.path.join(where, name + ".onnx"), args.folder, args.reduced, args.kinds or KINDS)


def quantize(ready, path, kind):
    """One of DRAWN."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
    of, types = {"u8": QuantType.QUInt8, "s8": QuantType.QInt8}, [w for w in kind.split("-")[1:] if w != "channel"]
    more = {"weight_type": of[types[-1]], "per_channel": kind.endswith("channel")}
    if kind.startswith("dyn"):
        return quantize_dynamic(ready, path, **more)
    form = QuantFormat.QDQ if kind.startswith("qdq") else QuantFormat.QOperator
    return quantize_static(ready, path, Once(ready), quant_format=form, activation_type=of[types[0]], **more)


def draw_one(args, name, kind):
    """Whether there are its files now; what torch, the exporter or the quantizer cannot do is said and passed over."""
    import drawing
    import gpu
    from onnxruntime.quantization.shape_inference import quant_pre_process
    stem = os.path.join(args.folder, name.replace(":", "-"))
    source, ready, path = stem + ".onnx", stem + "_float.onnx", f"{stem}_{kind}.onnx"
    try:
        if not os.path.exists(path):
            if drawing.parameters(name) > args.most:
                return False
            problem = gpu.export((name, source, False, args.threads))
            if problem:
                raise RuntimeError(problem.strip().splitlines()[-1])
            quant_pre_process(source, ready, skip_symbolic_shape=True)
            quantize(ready, path, kind)
            os.remove(source)
    except Exception as error:
        print(f"{name} {kind}: {type(error).__name__} {(str(error).splitlines() or [''])[0][:150]}", flush=True)
        return False
    print(f"{name} {kind}", flush=True)
    return True


def draw(args):
    import random

    import drawing
    os.makedirs(args.folder, exist_ok=True)
    kinds, there = list(DRAWN), 0
    random.Random(args.seed).shuffle(kinds)
    for name in drawing.names(args.seed, drawing.SOURCES):
        if there == args.count:
            return 0
        there += draw_one(args, name, kinds[there % len(kinds)])
    return 1


# --- how far results are from ONNX Runtime's ---

MOVES = {"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Slice", "Gather"}


def scales_of(path):
    """The scale of every output that is dequantized, but for moves; None of others."""
    import onnx
    graph = onnx.load(path).graph
    made = {o: n for n in graph.node for o in n.output}
    values = {i.name: onnx.numpy_helper.to_array(i) for i in graph.initializer}
    scales = []
    for output in graph.output:
        node = made.get(output.name)
        while node is not None and node.op_type in MOVES:
            node = made.get(node.input[0])
        dequantized = node is not None and node.op_type == "DequantizeLinear" and node.input[1] in values
        scales.append(float(np.max(values[node.input[1]])) if dequantized else None)
    return scales


def session_of(path, optimised):
    """ONNX Runtime on what the file says, or with all optimisations."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimised else level.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def steps_apart(scales, mine, theirs):
    """Root mean square and largest difference over all outputs, in steps; None where sizes differ."""
    squares, count, most = 0.0, 0, 0.0
    for scale, a, b in zip(scales, mine, theirs):
        a, b = np.asarray(a), np.asarray(b)
        if a.size != b.size:
            return None
        b = b.astype(np.float64).reshape(-1)
        if not b.size:
            continue
        step = scale or max(float(b.max() - b.min()) / 255, 1e-30)
        off = np.abs(a.astype(np.float64).reshape(-1) - b) / step
        squares, count, most = squares + float((off ** 2).sum()), count + off.size, max(most, float(off.max()))
    return (squares / max(count, 1)) ** 0.5, most


def makes_bytes(node):
    return node.op_type in ("QuantizeLinear", "DynamicQuantizeLinear", "QGemm") or node.op_type.startswith("QLinear")


def seen_bytes(model, names, path, run):
    """What `run` makes of the model whose outputs are these tensors."""
    import onnx
    del model.graph.output[:]
    model.graph.output.extend([onnx.helper.make_empty_tensor_value_info(n) for n in names])
    seen = path[:-len(".onnx")] + ".seen.onnx"
    onnx.save(model, seen)
    try:
        return run(seen)
    finally:
        os.remove(seen)


def first_apart(build, path, feed):
    """How many bytes differ, of how many, and by how much, where the first of the tensors of bytes on the way does: with all of
    them seen, or else one by one, since what is seen is not fused with what follows."""
    import onnx
    model = onnx.load(path)
    names = [n.output[0] for n in model.graph.node if makes_bytes(n)]
    theirs = seen_bytes(model, names, path, lambda seen: session_of(seen, False).run(None, feed))

    def ours(wanted):
        return seen_bytes(model, wanted, path, lambda seen: runner_of(os.path.abspath(build), seen, feed, 1)())

    def apart(a, b):  # of lists of detections the lengths may differ
        a = np.asarray(a).reshape(-1)
        off = np.abs(a.astype(int) - b.reshape(-1).astype(int)) if a.size == b.size else np.zeros(1)
        return (int((off > 0).sum()), off.size, int(off.max())) if off.any() else None

    found = [apart(a, b) for a, b in zip(ours(names), theirs)]
    if not any(found):
        found = (apart(ours([name])[0], b) for name, b in zip(names, theirs))
    return next((f for f in found if f), (0, 1, 0))


def check_file(build, path):
    """One row of the table."""
    feed = inputs_of(path)
    try:
        says = session_of(path, False).run(None, feed)
    except Exception as error:
        return "ONNX Runtime does not run it: " + str(error).splitlines()[0][:90]
    ours = steps_apart(scales_of(path), runner_of(os.path.abspath(build), path, feed, 1)(), says)
    try:
        own = steps_apart(scales_of(path), session_of(path, True).run(None, feed), says)
    except Exception as error:
        own = None
    if not ours:
        return "other sizes than ONNX Runtime's" + (", as its own with optimisations" if not own else "")
    agree = ours[1] <= 1.01 or (own and ours[0] <= 1.5 * own[0])
    text = f"{ours[0]:.3f}, {ours[1]:.1f} | " + (f"{own[0]:.3f}, {own[1]:.1f}" if own else "does not run")
    if agree:
        return text + " | agrees"
    count, size, most = first_apart(build, path, feed)
    grown = most == 1 and count * 1000 <= size
    return f"{text} | {'grown' if grown else 'DIFFERS'}: first {count} of {size:,} by {most}"


def check_kind(args, name, kind):
    path = os.path.join(args.folder, f"{name}_{kind}.onnx")
    if not os.path.exists(path):
        return "the quantizer does not take it"
    command = [sys.executable, os.path.abspath(__file__), "check-file", args.build[0], path]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout, check=False)
    except subprocess.TimeoutExpired:
        return f"took more than {args.timeout} s"
    rows = [line[4:] for line in done.stdout.splitlines() if line.startswith("ROW ")]
    return rows[0] if rows else "FAILS: " + (done.stderr.strip().splitlines() or ["no message"])[-1][:100]


def check(args):
    import zoo
    bad = 0
    print("| model | kind | ours: rms, largest | ONNX Runtime, optimised | |")
    print("|---|---|---|---|---|", flush=True)
    for name in args.models or sorted(zoo.skeletons()):
        made = not any(os.path.exists(os.path.join(args.folder, f"{name}_{kind}.onnx")) for kind in KINDS)
        if made:
            command = [sys.executable, os.path.abspath(__file__), "make", args.folder, "--reduced", "--models", name]
            subprocess.run(command + (["--zoo", args.zoo] if args.zoo else []), capture_output=True, check=False)
        for kind in KINDS:
            row = check_kind(args, name, kind)
            bad += "DIFFERS" in row or "FAILS" in row
            print(f"| {name} | {kind} | {row} |", flush=True)
        for left in glob.glob(os.path.join(args.folder, f"{name}[_.]*")) if made else []:
            os.remove(left)
    print(f"{bad} of them differ by more than ONNX Runtime does from itself")
    return 1 if bad else 0


# --- one engine in a process of its own ---

def runner_of(engine, path, feed, threads):
    if engine == "ort":
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0" if threads == 1 else "1")
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, feed)
    if engine == "openvino":
        import openvino
        core = openvino.Core()
        model = core.read_model(path)
        model.reshape({k: list(v.shape) for k, v in feed.items()})
        request = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}).create_infer_request()
        return lambda: list(request.infer(feed).values())
    sys.path.insert(0, os.path.join(engine, "python"))
    import migraphx
    program = migraphx.parse_onnx(path, map_input_dims={k: list(v.shape) for k, v in feed.items()})
    program.compile(migraphx.get_target("cpu"), threads=threads)
    used = {k: v for k, v in feed.items() if k in program.get_parameter_names()}
    return lambda: program.run(used)


def work(engine, path, feed_file, threads):
    """Answers lines of standard input: a number of runs by the least seconds of one, `save FILE` by the outputs."""
    clock = time.process_time if threads == 1 else time.perf_counter
    feed = dict(np.load(feed_file))
    if engine not in ("ort", "openvino"):  # before the clock starts
        sys.path.insert(0, os.path.join(engine, "python"))
    __import__({"ort": "onnxruntime", "openvino": "openvino"}.get(engine, "migraphx"))
    start = time.process_time()
    run = runner_of(engine, path, feed, threads)
    run()
    first = time.process_time() - start
    with open("/proc/self/status", encoding="ascii") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print("RESULT", json.dumps([first, peak / 1024]), flush=True)
    run()
    for line in sys.stdin:
        if line.startswith("save"):
            np.savez(line.split()[1], *[np.asarray(x) for x in run()])
            print("RESULT 0", flush=True)
            continue
        times = []
        for _ in range(int(line)):
            start = clock()
            run()
            times.append(clock() - start)
        print("RESULT", min(times), flush=True)


class Worker:
    def __init__(self, engine, path, feed_file, threads):
        command = [sys.executable, os.path.abspath(__file__), "work", engine, path, feed_file, str(threads)]
        quiet = dict(os.environ, OPENBLAS_NUM_THREADS="1")  # numpy's own threads spin for a while: CPU time of nobody asked for
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=quiet)
        self.first = self.read()

    def read(self):
        for line in self.process.stdout:
            if line.startswith("RESULT"):
                return json.loads(line[7:])
        return None

    def ask(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.read()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def error_of(folder, a, b):
    """The relative error of the outputs of a against those of b."""
    files = []
    for i, worker in enumerate((a, b)):
        files.append(os.path.join(folder, f"outputs{i}.npz"))
        worker.ask("save " + files[-1])
    mine, other = ([v.astype(np.float64) for v in np.load(f).values()] for f in files)
    if [v.size for v in mine] != [v.size for v in other]:
        return float("inf")
    worst = 0.0
    for x, y in zip(mine, other):
        worst = max(worst, float(np.sqrt(((x.reshape(y.shape) - y) ** 2).sum() / max((y ** 2).sum(), 1e-30))))
    return worst


def engines_of(args):
    """{name: build folder or peer}"""
    engines = {}
    for build in args.build:
        name, _, folder = build.rpartition("=")
        engines[name or "ours"] = os.path.abspath(folder)
    return {**engines, **{peer: peer for peer in args.peers}}


def models_of(args):
    return args.models or sorted(f for kind in KINDS for f in glob.glob(os.path.join(args.folder, f"*_{kind}.onnx")))


def start_all(args, path):
    feed_file = os.path.join(args.folder, "feed.npz")
    np.savez(feed_file, **inputs_of(path))
    return {name: Worker(engine, path, feed_file, args.threads) for name, engine in engines_of(args).items()}


def time_one(args, path):
    workers = start_all(args, path)
    running = {name: w for name, w in workers.items() if w.first}
    for name in sorted(workers.keys() - running.keys()):
        print(f"{os.path.basename(path)}: {name} does not run it", flush=True)
    names = list(running)
    text = ""
    if len(names) > 1 and "ort" in running and names[0] != "ort":
        text = f" error {error_of(args.folder, running[names[0]], running['ort']):.1e}"
    times, until, turn = {n: [] for n in names}, time.perf_counter() + args.seconds, 0
    while names and (time.perf_counter() < until or turn < 5):
        at = turn % len(names)
        for name in names[at:] + names[:at]:
            times[name].append(1e3 * running[name].ask("3"))
        turn += 1
    for worker in workers.values():
        worker.end()
    for name, t in times.items():
        text += f" | {name} {min(t):.2f} {statistics.median(t):.2f} ms"
        if name != names[0]:
            text += f" {statistics.median(b / a for a, b in zip(times[names[0]], t)):.2f}"
    print(f"{os.path.basename(path)[:-5]:28}{text} | {turn} rounds", flush=True)


def first_one(args, path):
    found = {}
    for _ in range(args.processes):
        for name, worker in start_all(args, path).items():
            worker.end()
            if worker.first:
                found.setdefault(name, []).append(worker.first)
    text = " | ".join(f"{name} {1e3 * min(f[0] for f in all_):.1f} ms {min(f[1] for f in all_):.0f} MB" for name, all_ in found.items())
    print(f"{os.path.basename(path)[:-5]:28} {text}", flush=True)


def main():
    if sys.argv[1:2] == ["work"]:
        return work(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    if sys.argv[1:2] == ["check-file"]:
        return print("ROW " + check_file(*sys.argv[2:]))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("verb", choices=("make", "draw", "time", "first", "check"))
    parser.add_argument("folder")
    parser.add_argument("--zoo", help="folder of the float models; made there if missing")
    parser.add_argument("--models", nargs="*", help="names for make and check, files else")
    parser.add_argument("--build", nargs="*", default=["build"])
    parser.add_argument("--peers", nargs="*", default=["ort"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--count", type=int, default=20, help="draw: so many files")
    parser.add_argument("--seed", type=int, default=45, help="of the draw")
    parser.add_argument("--most", type=float, default=6e7, help="parameters of one that is drawn")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, help="make: those alone")
    parser.add_argument("--batch", action="store_true", help="make: leave the batch free (bench/free_batch.py)")
    parser.add_argument("--reduced", action="store_true", help="make: weights of 7 bits")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one file of check")
    args = parser.parse_args()
    if args.verb in ("make", "draw", "check"):
        return {"make": make, "draw": draw, "check": check}[args.verb](args)
    for path in models_of(args):
        (time_one if args.verb == "time" else first_one)(args, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
