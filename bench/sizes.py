#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models with free sizes: right at random sizes, as fast as with fixed ones, and over a stream of sizes beside ONNX Runtime.

    sizes.py --build build [--zoo DIR] [--models NAME ...] [--count 20] [--seconds 0.3] [--stream 60] [--reshape]

Batch, image size or token count are free. For `count` random sizes of each model: `error`, the largest difference from ONNX
Runtime in units of the largest value; `steady`, the time of our fixed model by that of the free one once the size has its
plan (geometric mean, and the worst); `first`, the time of the first run of a size by a steady one of the fixed model, and
how much the worst one is above twice that, in ms; `stream`, ONNX Runtime's time by ours over random sizes in turns, first
meetings included: both begin with one run of the first size, in which ours packs the weights as ONNX Runtime does when it
makes a session; `file`, the same with that run, reading and compiling. One thread, CPU time, fixed and free model in turns,
minima. --reshape measures program.reshape instead: ms a call, ms of the run after it, and how much the process grows from
shape to shape.
"""
import argparse
import gc
import math
import os
import sys
import time

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "zoo"))
import zoo  # noqa: E402

# Axes that are free, as ranges: by their name in the model, or the input's axes where it has fixed ones.
IMAGE = {0: (1, 2), 2: (64, 256), 3: (64, 256)}
NAMED = {"N": (1, 3), "T": (4, 160), "H": (64, 320), "W": (64, 320)}
SPECIAL = {"crnn_lstm": {"W": (40, 200)}}
FIXED = {"mobilenet_v2": IMAGE, "mobilenet_v3_large": IMAGE, "efficientnet_b0": IMAGE, "squeezenet1_1": IMAGE, "googlenet": IMAGE,
         "densenet121": IMAGE, "resnet50": {0: (1, 4)}, "vgg16": {0: (1, 2)}, "alexnet": {0: (1, 4)}}
STEP = {"H": 32, "W": 32, 2: 32, 3: 32}  # sizes that detectors and strided networks expect
DEFAULT = ["mobilenet_v2", "resnet50", "resnet18_dynhw", "efficientnet_b0", "mobilenet_v3_large", "squeezenet1_1", "dbnet_resnet18",
           "retinaface_mobile", "mtcnn_pnet", "crnn_lstm", "minilm_l6", "bert_base", "gru_tagger"]


def set_free(model, name):
    """The ranges of the free axes by symbol; fixed axes that are to be free get a symbol."""
    symbols = {}
    for value in zoo_inputs(model):
        for axis, d in enumerate(value.type.tensor_type.shape.dim):
            if axis in FIXED.get(name, {}) and d.HasField("dim_value"):
                symbols[f"axis{axis}"] = (*FIXED[name][axis], STEP.get(axis, 1))
                d.dim_param = f"axis{axis}"
            elif d.HasField("dim_param"):
                symbols[d.dim_param] = (*SPECIAL.get(name, NAMED).get(d.dim_param, NAMED.get(d.dim_param, (1, 4))), STEP.get(d.dim_param, 1))
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return symbols


def zoo_inputs(model):
    initial = {t.name for t in model.graph.initializer}
    return [v for v in model.graph.input if v.name not in initial]


def draw(symbols, rng):
    return {k: int(rng.integers(low // step or 1, high // step + 1) * step) for k, (low, high, step) in symbols.items()}


def dims_of(model, sizes):
    return {v.name: [d.dim_value or sizes[d.dim_param] for d in v.type.tensor_type.shape.dim] for v in zoo_inputs(model)}


def seconds_of(call):
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def in_turns(calls, budget):
    """The minimum of each over some rounds, at least three."""
    best, start, rounds = [math.inf] * len(calls), time.process_time(), 0
    while rounds < 3 or time.process_time() - start < budget:
        for i, call in enumerate(calls):
            best[i] = min(best[i], seconds_of(call)[0])
        rounds += 1
    return best


def error_of(results, expected):
    return max(float(np.abs(np.asarray(a, np.float64) - b).max(initial=0) / max(1e-30, np.abs(b).max(initial=0)))
               if np.asarray(a).shape == b.shape else math.inf for a, b in zip(results, expected))


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


class Model:
    def __init__(self, args, name):
        import migraphx
        import onnxruntime
        self.engine, self.name, self.path = migraphx, name, os.path.join(args.zoo, name + ".free.onnx")
        model = zoo.fill(zoo.skeletons()[name])
        self.symbols = set_free(model, name)
        onnx.save(model, self.path)
        del model.graph.initializer[:]
        self.model = model
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = self.options.inter_op_num_threads = 1
        self.options.log_severity_level = 3
        self.ort = self.session()
        self.free = self.free_program()

    def session(self):
        import onnxruntime
        return onnxruntime.InferenceSession(self.path, self.options, providers=["CPUExecutionProvider"])

    def free_program(self):
        p = self.engine.parse_onnx(self.path, dynamic_dims=True)
        p.compile("cpu", threads=1, specialise="in_call")
        return p

    def fixed_program(self, sizes):
        p = self.engine.parse_onnx(self.path, map_input_dims=self.dims(sizes))
        p.compile("cpu", threads=1)
        return p

    def dims(self, sizes):
        names = {i.name for i in self.ort.get_inputs()}
        return {k: v for k, v in dims_of(self.model, sizes).items() if k in names}

    def feed(self, sizes):
        rng, feed = np.random.default_rng(1), {}
        kinds = {i.name: i.type for i in self.ort.get_inputs()}
        for k, lens in self.dims(sizes).items():
            if "float" in kinds[k]:
                feed[k] = rng.standard_normal(lens).astype(np.float32)
            elif k in zoo.VOCABULARY:
                feed[k] = rng.integers(0, zoo.VOCABULARY[k], lens)
            else:
                feed[k] = np.full(lens, "mask" in k, np.int64)
        return feed


def measure(args, name):
    m, rng, steady, first, above, error = Model(args, name), np.random.default_rng(7), [], [], [], 0
    sizes = [draw(m.symbols, rng) for _ in range(args.count)]
    m.free.run(m.feed(sizes[0]))  # whatever weights the first size of all packs
    met = set()
    for s in sizes:
        if tuple(s.values()) in met or s == sizes[0] and met:
            continue
        fresh = s != sizes[0]
        met.add(tuple(s.values()))
        feed, fixed = m.feed(s), m.fixed_program(s)
        once, results = seconds_of(lambda: m.free.run(feed))
        error = max(error, error_of(results, m.ort.run(None, feed)))
        for _ in range(3):
            error = max(error, error_of(m.free.run(feed), m.ort.run(None, feed)))
        ours, theirs = in_turns([lambda: m.free.run(feed), lambda: fixed.run(feed)], args.seconds)
        steady.append(theirs / ours)
        if fresh:
            first.append(once / theirs)
            above.append((once - 2 * theirs) * 1e3)
    del fixed
    gc.collect()
    return m, sizes, error, steady, first, above


def stream(args, m, sizes):
    """ONNX Runtime's time by ours over sizes in turns, and the same with what came before the first of them."""
    feeds, rng = [m.feed(s) for s in sizes], np.random.default_rng(8)
    m.free = m.ort = None
    gc.collect()
    made = [seconds_of(m.free_program), seconds_of(m.session)]
    m.free, m.ort = made[0][1], made[1][1]
    before = [made[0][0] + seconds_of(lambda: m.free.run(feeds[0]))[0], made[1][0] + seconds_of(lambda: m.ort.run(None, feeds[0]))[0]]
    total = [0, 0]
    for i in rng.integers(0, len(feeds), args.stream):
        total[0] += seconds_of(lambda: m.free.run(feeds[i]))[0]
        total[1] += seconds_of(lambda: m.ort.run(None, feeds[i]))[0]
    return total[1] / total[0], (total[1] + before[1]) / (total[0] + before[0])


def resident():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon")) / 1024


def reshapes(args, name):
    m, rng = Model(args, name), np.random.default_rng(7)
    sizes = [draw(m.symbols, rng) for _ in range(args.count)]
    m.free, calls, runs, memory = None, [], [], []
    p = m.fixed_program(sizes[0])
    p.run(m.feed(sizes[0]))
    for s in sizes[1:]:
        calls.append(seconds_of(lambda: p.reshape(m.dims(s)))[0])
        once, results = seconds_of(lambda: p.run(m.feed(s)))
        runs.append(once)
        assert error_of(results, m.ort.run(None, m.feed(s))) < args.error
        memory.append(resident())
    print(f"{name:20} reshape {1e3 * max(calls):8.3f} ms at most, the run after it {1e3 * min(runs):7.1f} to {1e3 * max(runs):7.1f} ms, "
          f"anonymous memory {memory[0]:6.0f} MB after the first, {memory[-1]:6.0f} MB after {len(memory)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--zoo", default="zoo-sizes")
    parser.add_argument("--models", nargs="*", default=DEFAULT)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--stream", type=int, default=60)
    parser.add_argument("--error", type=float, default=1e-3)
    parser.add_argument("--reshape", action="store_true")
    args = parser.parse_args()
    sys.path.insert(0, os.path.join(args.build, "python"))
    os.makedirs(args.zoo, exist_ok=True)
    ratios, streams, bad = [], [], []
    for name in args.models:
        if args.reshape:
            reshapes(args, name)
            continue
        m, sizes, error, steady, first, above = measure(args, name)
        streams.append(stream(args, m, sizes))
        ratios.append(geometric_mean(steady))
        bad += [name] if error > args.error else []
        print(f"{name:20} sizes {len(steady):3}  error {error:8.1e}  steady {ratios[-1]:5.2f} (worst {min(steady):4.2f})  "
              f"first {geometric_mean(first):5.2f} (worst {max(first, default=math.nan):5.2f}, {max(above, default=math.nan):+6.1f} ms)  "
              f"stream {streams[-1][0]:5.2f}  file {streams[-1][1]:5.2f}", flush=True)
    if ratios:
        of_streams, of_files = map(geometric_mean, zip(*streams))
        print(f"geometric means: steady {geometric_mean(ratios):.3f}, stream {of_streams:.3f}, file {of_files:.3f}")
    if bad:
        sys.exit(f"wrong: {' '.join(bad)}")


if __name__ == "__main__":
    main()
