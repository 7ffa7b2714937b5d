#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whole models on a card, against PyTorch on the same card.

    PYTHONPATH=build/python python3 bench/gpu.py [--models resnet50 bert] [--batches 1 32] [--types fp16 fp32 bf16]

Makes each model with random weights, exports it by torch.onnx.export to --folder (kept for the next time) once, with
its batch left free, and runs the .onnx file: sizes set, compiled, converted by quantize_fp16 or quantize_bf16, inputs
and results in the card's memory, run_async on PyTorch's stream. PyTorch runs the same weights eagerly, as a CUDA graph
and through torch.compile, in half precision and channels last where that is its best; the fastest of the three counts.
fp32 is strict on both sides, tf32 is fp32 with TF32 allowed on both. With --warm processes export, and compile for
PyTorch's cache on disk, all models side by side before anything is timed.

Results are compared first: relative RMS of each against PyTorch in strict fp32, on the same inputs. Only then is
anything timed. The two then take turns in one process: a group is as many back-to-back runs as fill --seconds, its
time the host's clock around all of them and one wait at the end, divided by their number; the figure is the median of
--groups groups. A second figure is the latency of a single run with the wait after it. --draw takes architectures by a
seed instead (bench/drawing.py); --wave makes so many models ready at a time, each in a process of its own, and times
one after the other when all are: of forty architectures most of the time is PyTorch's compiling.

Without a CUDA card PyTorch runs on the CPU and this engine on whatever MIGRAPHX_GPU_DEVICE names: that checks the
script, not the engine's speed. Prints a table and writes it as JSON, anew after every line, so that a run that is cut
off keeps what it has. Ratios above 1: this engine is the faster one. --record FILE puts the lines of --json's files into
a file of figures like gpu-h200.json, each in the place of the one it repeats; a line without PyTorch leaves the one
that was timed beside it and becomes its "alone_ms".
"""
import argparse
import copy
import json
import math
import multiprocessing
import os
import platform
import queue
import sys
import threading
import time
import traceback
import warnings
import zlib

import numpy as np
import torch

import drawing

HERE = os.path.dirname(os.path.abspath(__file__))
LIMITS = {"fp32": 1e-4, "tf32": 1e-2, "fp16": 2e-2, "bf16": 8e-2}  # relative RMS
# What an H200 was seen to do at its best: products of 16 bits a second in a burst, bytes a second. TF32 takes twice as
# long; a strict float is six products.
OPERATIONS, BYTES = 765e12, 4.4e12
COST = {"fp16": 1, "bf16": 1, "tf32": 2, "fp32": 6}
CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}  # by rank
TORCH_TYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


# --- models: a function of (tiny, purpose) gives (module, function of a batch to named inputs) ---


class Pick(torch.nn.Module):
    """A model whose outputs are a tuple of tensors, whatever it gives by itself; with `names` its arguments go by them."""

    def __init__(self, inner, pick, names=None):
        super().__init__()
        self.inner, self.pick, self.names = inner, pick, names

    def forward(self, *args):
        return self.pick(self.inner(**dict(zip(self.names, args))) if self.names else self.inner(*args))


class Named(torch.nn.Module):
    """A language model whose arguments go by their names."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, input_ids, attention_mask):
        return (self.inner(input_ids=input_ids, attention_mask=attention_mask)[0],)


def image(size):
    return lambda batch: {"image": torch.randn(batch, 3, size, size)}


def settle(model, size, batch=4):
    """What training does for numerics: branches that add little to what they pass by, and normalisations that have seen
    data. Without it a deep random network blows up any rounding, in every engine alike."""
    ends = {"Bottleneck": lambda m: m.bn3, "BasicBlock": lambda m: m.bn2, "InvertedResidual": lambda m: getattr(m, "conv", m)[-1] if hasattr(m, "conv") else None,
            "MBConv": lambda m: m.block[-1][1]}
    for m in model.modules():
        if type(m).__name__ in ends and ends[type(m).__name__](m) is not None:
            torch.nn.init.constant_(ends[type(m).__name__](m).weight, 0.2)
        if type(m).__name__ == "CNBlock":
            torch.nn.init.constant_(m.layer_scale, 0.2)
    return see_data(model, lambda: [torch.randn(batch, 3, size, size)])


def see_data(model, inputs):
    """Normalisations over the batch get the statistics of random inputs."""
    normal = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    for m in normal:
        m.momentum = None
    model.train()
    with torch.no_grad():
        for _ in range(2 if normal else 0):
            model(*inputs())
    return model


def liven(model):
    """Biases and normalisations that are all 0 or all 1 get values, as training gives them: a compiler leaves out what
    adds nothing, and a trained model has nothing of the kind."""
    for name, p in model.named_parameters():
        if p.numel() > 1 and p.min() == p.max():
            noise = torch.randn(p.shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
            p.data += 0.02 * noise.to(p.dtype)


def vision(name, size, tiny_size=64, **kwargs):
    def make(tiny, purpose):
        import torchvision
        pixels = tiny_size if tiny else size
        more = {k: (v(pixels) if callable(v) else v) for k, v in kwargs.items()}
        model = getattr(torchvision.models, name)(weights=None, **more)
        return Pick(settle(model, pixels), lambda out: (out,)), image(pixels)
    return make


def segmentation(tiny, purpose):
    import torchvision
    pixels = 64 if tiny else 224
    model = torchvision.models.segmentation.fcn_resnet50(weights=None, weights_backbone=None)
    return Pick(settle(model, pixels), lambda out: (out["out"],)), image(pixels)


# The exporter's tracing follows the plain attention; PyTorch itself is given its best one.
def attention(purpose):
    return "eager" if purpose == "export" else "sdpa"


def bert(tiny, purpose):
    import transformers
    small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128} if tiny else {}
    config = transformers.BertConfig(attn_implementation=attention(purpose), **small)
    tokens = 16 if tiny else 128

    def inputs(batch):
        return {"input_ids": torch.randint(0, 30000, (batch, tokens)), "attention_mask": torch.ones(batch, tokens, dtype=torch.int64)}
    return Pick(transformers.BertModel(config), lambda out: (out[0], out[1])), inputs


def gpt2(tiny, purpose):
    import transformers
    small = {"n_embd": 64, "n_layer": 2, "n_head": 4} if tiny else {}
    config = transformers.GPT2Config(use_cache=False, attn_implementation=attention(purpose), **small)
    tokens = 16 if tiny else 128

    def inputs(batch):
        return {"input_ids": torch.randint(0, 50000, (batch, tokens)), "attention_mask": torch.ones(batch, tokens, dtype=torch.int64)}
    return Named(transformers.GPT2LMHeadModel(config)), inputs


class Recurrent(torch.nn.Module):
    def __init__(self, features, hidden, layers, classes):
        super().__init__()
        self.rnn = torch.nn.LSTM(features, hidden, layers, batch_first=True, bidirectional=True)
        self.head = torch.nn.Linear(2 * hidden, classes)

    def forward(self, x):
        return (self.head(self.rnn(x)[0]),)


def lstm(tiny, purpose):
    features, hidden, steps = (16, 16, 8) if tiny else (80, 256, 64)
    return Recurrent(features, hidden, 2, 100), lambda batch: {"frames": torch.randn(batch, steps, features)}


class Reader(torch.nn.Module):
    """Lines of text: convolutions that leave one row, a recurrent layer along it, letters."""

    def __init__(self, width, hidden, letters):
        super().__init__()
        sizes = [(1, width, 2, 2), (width, 2 * width, 2, 2), (2 * width, 4 * width, 1, 1), (4 * width, 4 * width, 2, 1), (4 * width, 8 * width, 1, 1), (8 * width, 8 * width, 2, 1)]
        parts = [torch.nn.Sequential(torch.nn.Conv2d(a, b, 3, padding=1), torch.nn.BatchNorm2d(b), torch.nn.ReLU(), torch.nn.MaxPool2d((h, w)) if h > 1 else torch.nn.Identity()) for a, b, h, w in sizes]
        self.look = torch.nn.Sequential(*parts, torch.nn.Conv2d(8 * width, 8 * width, (2, 1)), torch.nn.ReLU())
        self.read = Recurrent(8 * width, hidden, 2, letters)

    def forward(self, x):
        return self.read(self.look(x).squeeze(2).transpose(1, 2))


def crnn(tiny, purpose):
    width, hidden = (8, 16) if tiny else (64, 256)
    model = Reader(width, hidden, 37)
    model.train()
    with torch.no_grad():
        model(torch.randn(4, 1, 32, 100))
    return model, lambda batch: {"line": torch.randn(batch, 1, 32, 100)}


class Detector(torch.nn.Module):
    """What a detector says of every place, before boxes are chosen."""

    def __init__(self, model):
        super().__init__()
        self.backbone, self.head = model.backbone, model.head

    def forward(self, x):
        found = self.head(list(self.backbone(x).values()))
        return found["bbox_regression"], found["cls_logits"]


def ssd300(tiny, purpose):
    import torchvision
    model = torchvision.models.detection.ssd300_vgg16(weights=None, weights_backbone=None)
    return Detector(model), image(300)


def mlp(tiny, purpose):
    width = 32 if tiny else 1024
    layers = [m for _ in range(4) for m in (torch.nn.Linear(width, width), torch.nn.GELU())]
    return Pick(torch.nn.Sequential(*layers, torch.nn.LayerNorm(width)), lambda out: (out,)), lambda batch: {"x": torch.randn(batch, width)}


def video(tiny, purpose):
    import torchvision
    frames, pixels = (4, 32) if tiny else (16, 112)
    model = torchvision.models.video.r3d_18(weights=None)

    def inputs(batch):
        return {"frames": torch.randn(batch, 3, frames, pixels, pixels)}
    return Pick(see_data(model, lambda: inputs(4).values()), lambda out: (out,)), inputs


class Block(torch.nn.Module):
    """Of a denoiser: two convolutions behind normalisations of groups, the time between them."""

    def __init__(self, width, out, time):
        super().__init__()
        self.enter = torch.nn.Sequential(torch.nn.GroupNorm(min(32, width), width), torch.nn.SiLU(), torch.nn.Conv2d(width, out, 3, padding=1))
        self.time = torch.nn.Linear(time, out)
        self.leave = torch.nn.Sequential(torch.nn.GroupNorm(min(32, out), out), torch.nn.SiLU(), torch.nn.Conv2d(out, out, 3, padding=1))
        self.past = torch.nn.Conv2d(width, out, 1) if width != out else torch.nn.Identity()

    def forward(self, x, time):
        return self.past(x) + self.leave(self.enter(x) + self.time(time)[:, :, None, None])


class Look(torch.nn.Module):
    """Attention of an image's places to each other."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm = heads, torch.nn.GroupNorm(min(32, width), width)
        self.enter, self.leave = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.enter(self.norm(x).flatten(2).transpose(1, 2)).reshape(n, h * w, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return x + self.leave(y.transpose(1, 2).reshape(n, h * w, c)).transpose(1, 2).reshape(n, c, h, w)


class Denoiser(torch.nn.Module):
    """A U-Net over a latent image: normalisations of groups, SiLU, attention below, nearest upsampling and concatenation."""

    def __init__(self, width, steps=(1, 2, 4), channels=4):
        super().__init__()
        sizes, time = [width * s for s in steps], 4 * width
        self.time = torch.nn.Sequential(torch.nn.Linear(width, time), torch.nn.SiLU(), torch.nn.Linear(time, time), torch.nn.SiLU())
        self.first = torch.nn.Conv2d(channels, width, 3, padding=1)
        self.down = torch.nn.ModuleList(torch.nn.ModuleList([Block(a, b, time), Block(b, b, time), torch.nn.Conv2d(b, b, 3, stride=2, padding=1)]) for a, b in zip([width] + sizes, sizes))
        self.middle = torch.nn.ModuleList([Block(sizes[-1], sizes[-1], time), Look(sizes[-1], 8), Block(sizes[-1], sizes[-1], time)])
        self.up = torch.nn.ModuleList(torch.nn.ModuleList([torch.nn.Conv2d(a, b, 3, padding=1), Block(2 * b, b, time), Block(b, b, time)]) for a, b in zip([sizes[-1], *sizes[:0:-1]], sizes[::-1]))
        self.last = torch.nn.Sequential(torch.nn.GroupNorm(min(32, width), width), torch.nn.SiLU(), torch.nn.Conv2d(width, channels, 3, padding=1))

    def forward(self, x, time):
        time, x, kept = self.time(time), self.first(x), []
        for one, two, less in self.down:
            x = two(one(x, time), time)
            kept.append(x)
            x = less(x)
        x = self.middle[2](self.middle[1](self.middle[0](x, time)), time)
        for widen, one, two in self.up:
            x = widen(torch.nn.functional.interpolate(x, scale_factor=2.0, mode="nearest"))
            x = two(one(torch.cat([x, kept.pop()], 1), time), time)
        return (self.last(x),)


def denoiser(tiny, purpose):
    width, pixels = (16, 16) if tiny else (160, 64)
    return Denoiser(width), lambda batch: {"image": torch.randn(batch, 4, pixels, pixels), "time": torch.randn(batch, width)}


def drawn(name, purpose):
    model = drawing.build(name, attention(purpose))
    inputs = drawing.inputs_of(name, model)
    feed = list(inputs(2))
    return Pick(see_data(model, lambda: inputs(2).values()), lambda out: (drawing.first(out),), feed if len(feed) > 1 else None), inputs


# name: (maker, batches)
MODELS = {
    "resnet50": (vision("resnet50", 224), [1, 32, 256]),
    "vit_b_16": (vision("vit_b_16", 224, image_size=lambda pixels: pixels), [1, 32]),
    "bert": (bert, [1, 32, 128]),
    "mobilenet_v2": (vision("mobilenet_v2", 224), [1, 16]),
    "efficientnet_b0": (vision("efficientnet_b0", 224), [1, 16]),
    "densenet121": (vision("densenet121", 224), [1, 16]),
    "swin_t": (vision("swin_t", 224), [1, 16]),
    "fcn_resnet50": (segmentation, [1, 16]),
    "gpt2": (gpt2, [1, 16]),
    "lstm": (lstm, [1, 16]),
    "crnn": (crnn, [1, 16]),
    "ssd300": (ssd300, [1, 16]),
    "convnext_tiny": (vision("convnext_tiny", 224), [1, 16]),
    "vgg16": (vision("vgg16", 224, tiny_size=224), [1, 16]),
    "shufflenet_v2": (vision("shufflenet_v2_x1_0", 224), [1, 16]),
    "mlp": (mlp, [1, 256]),
    "resnext50": (vision("resnext50_32x4d", 224), [1, 8]),
    "r3d_18": (video, [1, 8]),
    "denoiser": (denoiser, [1, 8]),
}


made = {}  # the last model: making one takes longer than anything else here


def make(name, tiny, purpose):
    """A copy of the model, on the CPU, and what makes its inputs."""
    if (name, tiny, purpose) not in made:
        made.clear()
        torch.manual_seed(0)
        module, inputs = drawn(name, purpose) if drawing.is_drawn(name) else MODELS[name][0](tiny, purpose)
        liven(module)
        made[name, tiny, purpose] = module.eval(), inputs
    module, inputs = made[name, tiny, purpose]
    return copy.deepcopy(module), inputs


def make_inputs(inputs, batch):
    torch.manual_seed(batch)
    return inputs(batch)


# --- files ---


def export(job):
    """Writes one model, its batch free; None, or why not. The two makers of a model share weights by their seed."""
    name, path, tiny, threads = job[:4]
    try:
        torch.set_num_threads(threads)
        warnings.simplefilter("ignore")
        torch.backends.mha.set_fastpath_enabled(False)  # one operator that ONNX has not
        model, inputs = make(name, tiny, "export")
        feed = make_inputs(inputs, 2)
        with torch.no_grad():
            outputs = [f"output{i}" for i in range(len(model(*feed.values())))]
            torch.onnx.export(model, tuple(feed.values()), path + ".part", input_names=list(feed), opset_version=17, dynamo=False,
                              output_names=outputs, dynamic_axes={n: {0: "batch"} for n in [*feed, *outputs]})
        os.replace(path + ".part", path)
    except Exception:
        return traceback.format_exc(limit=-2)
    return None


def warm(job):
    """Fills the caches that torch.compile keeps on disk with one model, batch and type."""
    name, _, tiny, threads, batch, kind = job
    try:
        torch.set_num_threads(threads)
        warnings.simplefilter("ignore")
        allow_tf32(kind == "tf32")
        model, inputs = make(name, tiny, "run")
        feed = make_inputs(inputs, batch)
        with torch.cuda.stream(torch.cuda.Stream()):
            Torch(model, feed, "cuda", kind, "compile", any(v.dim() in CHANNELS_LAST for v in feed.values()))
    except Exception:
        return traceback.format_exc(limit=-2)
    return None


def path_of(args, name):
    return os.path.join(args.folder, f"{name.replace(':', '-')}{'_tiny' if args.tiny else ''}.onnx")


def side_by_side(args, what, work, jobs):
    """Each job in a process of its own, --jobs at a time."""
    print(f"{what}: {len(jobs)} with {args.jobs} processes", flush=True)
    start = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(min(args.jobs, len(jobs)), maxtasksperchild=1) as pool:
        for job, problem in zip(jobs, pool.imap(work, jobs, chunksize=1)):
            if problem:
                print(f"  {job[0]}: {problem}", flush=True)
    print(f"  {time.perf_counter() - start:.0f} s", flush=True)


def make_files(args, cases):
    threads = max(2, (os.cpu_count() or 2) // args.jobs)
    names = list(dict.fromkeys(name for name, _ in cases))
    exports = [(n, path_of(args, n), args.tiny, threads) for n in names if not os.path.exists(path_of(args, n))]
    warms = [(n, path_of(args, n), args.tiny, threads, b, kind) for n, b in cases for kind in args.types]
    os.makedirs(args.folder, exist_ok=True)
    if exports:
        side_by_side(args, "exporting", export, exports)
    if args.warm and torch.cuda.is_available():
        side_by_side(args, "compiling by PyTorch", warm, warms)


# --- runners: call() enqueues one run, results() gives float64 arrays of the last one ---


def compiled(path, shapes, kind, tune):
    import migraphx
    program = migraphx.parse_onnx(path, map_input_dims=shapes)
    if kind == "fp16":
        migraphx.quantize_fp16(program)
    elif kind == "bf16":
        migraphx.quantize_bf16(program)
    program.compile(migraphx.get_target("gpu"), offload_copy=False, exhaustive_tune=tune, tf32=kind == "tf32")
    return program


class Ours:
    """The engine, with everything in the card's memory."""

    def __init__(self, path, feed, kind, stream, tune):
        import migraphx
        self.mgx = migraphx
        start = time.perf_counter()
        program = compiled(path, {k: list(v.shape) for k, v in feed.items()}, kind, tune)
        self.compile_seconds = time.perf_counter() - start
        self.program, self.stream, self.params, self.outputs = program, stream, {}, []
        for name, shape in program.get_parameter_shapes().items():
            if "#output_" in name:
                self.params[name] = migraphx.allocate_gpu(shape)
                self.outputs.append(name)
            else:
                self.params[name] = migraphx.to_gpu(migraphx.argument(feed[name].numpy()))
        self.outputs.sort(key=lambda name: int(name.rpartition("_")[2].lstrip(":")))

    def __call__(self):
        self.program.run_async(self.params, self.stream, "ihipStream_t")

    def results(self):
        return [np.array(self.mgx.from_gpu(self.params[name]), dtype=np.float64) for name in self.outputs]

    def wait(self):
        self.mgx.gpu_sync()


class Torch:
    """PyTorch, one way of running it."""

    def __init__(self, model, feed, device, kind, way, channels_last):
        self.device, self.last = device, None
        dtype = TORCH_TYPES[kind]
        self.model = model.to(device=device, dtype=dtype)
        self.feed = [v.to(device=device, dtype=dtype if v.is_floating_point() else None) for v in feed.values()]
        if channels_last:
            rank = max(v.dim() for v in self.feed)
            self.model = self.model.to(memory_format=CHANNELS_LAST[rank])
            self.feed = [v.to(memory_format=CHANNELS_LAST[rank]) if v.dim() == rank else v for v in self.feed]
        self.run = self.model
        if way == "compile":
            torch._dynamo.reset()
            self.run = torch.compile(self.model, mode="reduce-overhead", dynamic=False)
        for _ in range(3):
            self()
        self.wait()
        if way == "graph":
            self.capture()

    def capture(self):
        eager, graph, stream = self.run, torch.cuda.CUDAGraph(), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.inference_mode():
            with torch.cuda.stream(stream):
                for _ in range(3):
                    eager(*self.feed)
            torch.cuda.current_stream().wait_stream(stream)
            with torch.cuda.graph(graph):
                outputs = eager(*self.feed)

        def replay(*_):
            graph.replay()
            return outputs
        self.run = replay

    def __call__(self):
        with torch.inference_mode():
            self.last = self.run(*self.feed)

    def results(self):
        return [t.float().cpu().double().numpy() for t in self.last]

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()


# --- comparing and timing ---


def difference(results, reference):
    """The largest relative RMS; infinity where a shape differs or a number is not finite."""
    worst = 0.0
    if len(results) != len(reference):
        return math.inf
    for a, b in zip(results, reference):
        if a.shape != b.shape or not np.isfinite(a).all() or not np.isfinite(b).all():
            return math.inf
        worst = max(worst, float(np.sqrt(((a - b) ** 2).sum()) / max(np.sqrt((b ** 2).sum()), 1e-30)))
    return worst


def time_group(runner, runs):
    """Milliseconds of a run, of `runs` in a row."""
    runner.wait()
    start = time.perf_counter()
    for _ in range(runs):
        runner()
    runner.wait()
    return 1e3 * (time.perf_counter() - start) / runs


def runs_for(runner, seconds):
    time_group(runner, 3)
    each = time_group(runner, 5)
    return max(3, min(5000, int(1e3 * seconds / each)))


def measure(runners, args):
    """{name: (median of groups, quartiles, median latency)}; the runners take turns."""
    runs = {name: runs_for(r, args.seconds) for name, r in runners.items()}
    groups = {name: [] for name in runners}
    single = {name: [] for name in runners}
    for _ in range(args.groups):
        for name, runner in runners.items():
            groups[name].append(time_group(runner, runs[name]))
    for _ in range(args.groups * 5):
        for name, runner in runners.items():
            single[name].append(time_group(runner, 1))
    return {name: {"ms": float(np.median(g)), "low": float(np.percentile(g, 25)), "high": float(np.percentile(g, 75)),
                   "latency": float(np.median(single[name])), "runs": runs[name]} for name, g in groups.items()}


def attempt(what, make_runner):
    """A runner, or None and a line."""
    try:
        return make_runner()
    except Exception as problem:
        lines = str(problem).strip().splitlines() or [type(problem).__name__]
        print(f"  {what}: {lines[0][:300]}", flush=True)
        if os.environ.get("BENCH_TRACE"):
            traceback.print_exc()
        return None


def torch_runners(args, name, feed, kind, device):
    ways = [w for w in args.torch if device == "cuda" or w == "eager"]
    found = {}
    for way in ways:
        def build(way=way):
            model, _ = make(name, args.tiny, "run")
            return Torch(model, feed, device, kind, way, any(v.dim() in CHANNELS_LAST for v in feed.values()))
        runner = attempt(f"torch {way}", build)
        if runner:
            found[way] = runner
    return found


def reference_of(args, name, feed, device):
    model, _ = make(name, args.tiny, "run")
    runner = Torch(model, feed, device, "fp32", "eager", False)
    return runner.results()


def show_steps(args, ours, title):
    print(f"--- {title}")
    print(ours.program.explain())
    if hasattr(ours.program, "profile"):
        host = {k: v for k, v in ours.params.items()}
        for line, ms in ours.program.profile(host):
            print(f"{ms * 1e3:9.1f} us  {line}")


def allow_tf32(allowed):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed


def prepare_case(args, name, batch, kind, device, references):
    """The line of one case and what runs it: made, compiled, warm, and compared."""
    row = {"model": name, "batch": batch, "type": kind, "tiles": "tuned" if args.tune else "untuned"}
    _, inputs = make(name, args.tiny, "run")
    feed = make_inputs(inputs, batch)
    if (name, batch) not in references:
        allow_tf32(False)
        references.clear()
        references[name, batch] = reference_of(args, name, feed, device)
    reference = references[name, batch]
    allow_tf32(kind == "tf32")
    stream = torch.cuda.current_stream().cuda_stream if device == "cuda" else 0
    ours = attempt("ours", lambda: Ours(path_of(args, name), feed, kind, stream, args.tune))
    runners = {"ours": ours} if ours else {}
    if ours:
        row["compile_s"] = ours.compile_seconds
        row["limit_ms"] = limit_of(ours.program, kind)
        if args.trace_steps:
            show_steps(args, ours, f"{name} b{batch} {kind}")
    if not args.skip_torch:
        runners.update(torch_runners(args, name, feed, kind, device))
    row["errors"] = {}
    for who, runner in list(runners.items()):
        try:
            runner()
            runner.wait()
            row["errors"][who] = difference(runner.results(), reference)
        except Exception as problem:
            print(f"  {name} {who}: {str(problem).splitlines()[0][:300]}", flush=True)
            del runners[who]
            continue
        if not row["errors"][who] <= LIMITS[kind]:
            print(f"  {name} {who}: relative RMS {row['errors'][who]:.2e} is above {LIMITS[kind]:.0e}", flush=True)
    row["right"] = bool(row["errors"].get("ours", math.inf) <= LIMITS[kind])
    return row, runners


def time_case(args, row, runners):
    ways = {who: r for who, r in runners.items() if who != "ours"}
    if len(ways) > 1:
        first = {who: min(time_group(r, runs_for(r, args.seconds / 4)) for _ in range(3)) for who, r in ways.items()}
        row["torch_ways"] = first
        best = min(first, key=first.get)
        runners = {who: r for who, r in runners.items() if who in ("ours", best)}
    row["times"] = measure(runners, args) if runners else {}
    row["torch_best"] = next((who for who in row["times"] if who != "ours"), None)
    if row["torch_best"] and "ours" in row["times"]:
        row["ratio"] = row["times"][row["torch_best"]]["ms"] / row["times"]["ours"]["ms"]
    return row


def measure_case(args, name, batch, kind, device, references):
    return time_case(args, *prepare_case(args, name, batch, kind, device, references))


# --- many architectures: made ready side by side, timed one after the other ---


def share_of(args, name, batches, ready, turn, rows):
    """One process: all lines of one model. Nothing is timed before every process of the wave is ready, and then by one at a time."""
    torch.set_num_threads(2)
    warnings.simplefilter("ignore")
    torch.backends.cudnn.benchmark = True
    device, references, cases = "cuda" if torch.cuda.is_available() else "cpu", {}, []
    with torch.cuda.stream(torch.cuda.Stream() if device == "cuda" else None):
        for batch in batches:
            for kind in args.types:
                cases.append(attempt(f"{name} b{batch} {kind}", lambda: prepare_case(args, name, batch, kind, device, references)))  # noqa: B023
        try:
            ready.wait(args.ready)
        except threading.BrokenBarrierError:
            print(f"{name}: others of its wave are not ready in time", flush=True)
        for case in filter(None, cases):
            with turn:
                row = attempt(f"{name} b{case[0]['batch']}", lambda: time_case(args, *case))  # noqa: B023
            if row:
                rows.put(row)


def in_waves(args, cases):
    """Lines as they come; --wave models at a time."""
    names = [n for n in dict.fromkeys(name for name, _ in cases) if os.path.exists(path_of(args, n))]
    context = multiprocessing.get_context("spawn")
    for start in range(0, len(names), args.wave):
        wave, begun = names[start:start + args.wave], time.monotonic()
        ready, turn, rows = context.Barrier(len(wave)), context.Lock(), context.Queue()
        processes = [context.Process(target=share_of, args=(args, n, [b for m, b in cases if m == n], ready, turn, rows)) for n in wave]
        for p in processes:
            p.start()
        while any(p.is_alive() for p in processes) or not rows.empty():
            for p in processes:
                if p.exitcode:
                    ready.abort()
            try:
                yield rows.get(timeout=1)
            except queue.Empty:
                continue
        print(f"wave of {len(wave)}: {time.monotonic() - begun:.0f} s", flush=True)


def one_by_one(args, cases, device):
    """Lines as they come, each made and timed before the next."""
    references, begun = {}, time.monotonic()
    for name, batch in cases:
        for kind in args.types if os.path.exists(path_of(args, name)) else []:
            if args.limit and time.monotonic() - begun > args.limit:
                print(f"{name} b{batch} {kind}: left out, the time is over", flush=True)
                continue
            row = attempt(f"{name} b{batch} {kind}", lambda: measure_case(args, name, batch, kind, device, references))  # noqa: B023
            if row:
                yield row


def limit_of(program, kind):
    """Milliseconds below which this card cannot take the plan's steps one after the other: each its operations or its
    bytes, every input read once and every result written once, whichever takes longer."""
    seconds = 0.0
    for line in program.plan().splitlines():
        fields = line.split("\t")
        result, operations, moved = (float(fields[i]) for i in (8, 11, 12))
        if fields[2] == "gpu::gather":  # reads what it picks, not the whole table
            moved = 2 * result
        seconds += max(operations * COST[kind] / OPERATIONS, moved / BYTES)
    return 1e3 * seconds


# --- the table ---


def show(row):
    def cell(value, form):
        return format(value, form) if value is not None else "-".rjust(int(form.split(".")[0]))
    ours, best = row["times"].get("ours", {}), row["times"].get(row["torch_best"], {})
    print(f"{row['model']:16} {row['batch']:4} {row['type']:5} {cell(ours.get('ms'), '9.3f')} {cell(ours.get('latency'), '9.3f')} "
          f"{cell(best.get('ms'), '9.3f')} {cell(best.get('latency'), '9.3f')} {row['torch_best'] or '-':8} {cell(row.get('ratio'), '6.2f')} "
          f"{cell(row['errors'].get('ours'), '8.1e')} {cell(row['errors'].get(row['torch_best']), '8.1e')} {cell(row.get('compile_s'), '7.2f')} "
          f"{'' if row['right'] else 'WRONG'}", flush=True)


def geometric_mean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def describe(device):
    import migraphx
    return {"device": torch.cuda.get_device_name() if device == "cuda" else platform.processor(), "torch": torch.__version__, "ours": migraphx.__version__,
            "target": os.environ.get("MIGRAPHX_GPU_DEVICE", "cuda" if device == "cuda" else ""), "python": platform.python_version(), "time": time.strftime("%Y-%m-%d %H:%M:%S")}


# --- a file of figures ---


def figure_of(row):
    """A line as the file of figures has it."""
    ours, best = row["times"]["ours"], row["torch_best"]
    figure = {"model": row["model"], "batch": row["batch"], "type": row["type"], "tiles": row["tiles"], "ms": round(ours["ms"], 4),
              "latency_ms": round(ours["latency"], 4), "limit_ms": round(row["limit_ms"], 4), "compile_s": round(row["compile_s"], 2),
              "error": float(f"{row['errors']['ours']:.2e}")}
    if best:
        figure["torch"] = {"as": best, "ms": round(row["times"][best]["ms"], 4), "error": float(f"{row['errors'][best]:.2e}")}
    return figure


def key_of(figure):
    return tuple(figure[k] for k in ("model", "batch", "type", "tiles"))


def record(args):
    """Every line that was measured takes the place of the one it repeats; what is new goes to the end."""
    with open(args.record, encoding="ascii") as f:
        known = json.load(f)
    figures = {key_of(figure): figure for figure in known["rows"]}
    for path in args.json:
        with open(path, encoding="ascii") as f:
            measured = json.load(f)
        if measured["about"]["device"] != known["about"]["device"]:
            sys.exit(f"{path} is of {measured['about']['device']}, {args.record} of {known['about']['device']}")
        for row in measured["rows"]:
            if row["right"] and "ours" in row["times"]:
                figures[key_of(row)] = joined(figures.get(key_of(row), {}), figure_of(row))
    write_figures(args.record, known["about"], figures.values())


def joined(old, new):
    """What PyTorch was timed beside stays; a later run without it is the time alone, where the card is hotter."""
    return {**old, "alone_ms": new["ms"]} if "torch" in old and "torch" not in new else new


def write_figures(path, about, figures):
    with open(path, "w", encoding="ascii") as f:
        lines = ",\n  ".join(json.dumps(figure) for figure in figures)
        f.write(f'{{"about": {json.dumps(about)},\n "rows": [\n  {lines}\n]}}\n')


def put_limits(args):
    """The limit of every line that has none, from its plan: times nothing."""
    with open(args.limits, encoding="ascii") as f:
        known = json.load(f)
    rows = [row for row in known["rows"] if "limit_ms" not in row and (not args.models or row["model"] in args.models)]
    make_files(args, sorted({(row["model"], row["batch"]) for row in rows}))
    for row in sorted(rows, key=lambda row: row["model"]):
        _, inputs = make(row["model"], args.tiny, "run")
        shapes = {name: list(value.shape) for name, value in make_inputs(inputs, row["batch"]).items()}
        program = compiled(path_of(args, row["model"]), shapes, row["type"], False)
        row["limit_ms"] = round(limit_of(program, row["type"]), 4)
    write_figures(args.limits, known["about"], known["rows"])


def draw(args):
    """The first --draw of the seed's order that are small enough, behind --skip of them; what cannot be made is named."""
    found, names = [], drawing.names(args.seed, args.sources)
    while len(found) < args.skip + args.draw and (name := next(names, None)):
        try:
            if drawing.parameters(name) <= args.most:
                found.append(name)
        except Exception as why:
            print(f"{name}: {type(why).__name__}", flush=True)
    return found[args.skip:]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="*", metavar="NAME", help=" ".join(MODELS) + ", or of those that may be drawn, as timm:resnet50 (bench/drawing.py)")
    parser.add_argument("--draw", type=int, default=0, help="so many architectures that nobody chose")
    parser.add_argument("--skip", type=int, default=0, help="so many of the draw's first, which were run before")
    parser.add_argument("--seed", type=int, default=7, help="of the draw")
    parser.add_argument("--sources", nargs="*", default=drawing.SOURCES, choices=drawing.SOURCES, help="of the draw")
    parser.add_argument("--most", type=float, default=1e8, help="parameters of one that is drawn")
    parser.add_argument("--batches", nargs="*", type=int, help="instead of each model's own")
    parser.add_argument("--types", nargs="*", default=["fp16", "fp32"], choices=list(LIMITS))
    parser.add_argument("--groups", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a group")
    parser.add_argument("--torch", nargs="*", default=["eager", "graph", "compile"], choices=["eager", "graph", "compile"])
    parser.add_argument("--skip-torch", action="store_true", help="PyTorch gives the reference alone")
    parser.add_argument("--trace-steps", action="store_true", help="print what the program consists of, and the time of each step")
    parser.add_argument("--tune", action="store_true", help="compile with exhaustive_tune")
    parser.add_argument("--folder", default=os.path.join("build", "bench-gpu"), help="of the .onnx files")
    parser.add_argument("--jobs", type=int, default=max(1, min(8, (os.cpu_count() or 2) // 2)), help="processes that export")
    parser.add_argument("--export-only", action="store_true")
    parser.add_argument("--warm", action="store_true", help="fill torch.compile's cache first, all models side by side")
    parser.add_argument("--wave", type=int, default=0, help="make so many models ready side by side, each in a process of its own, then time one at a time")
    parser.add_argument("--ready", type=float, default=400, help="seconds that a wave's models wait for the last of them")
    parser.add_argument("--limit", type=float, default=0, help="seconds after which no further line is begun")
    parser.add_argument("--record", metavar="FILE", help="no run: put the lines of --json's files into this one")
    parser.add_argument("--limits", metavar="FILE", help="no run: put into this file the limit of lines that have none")
    parser.add_argument("--json", nargs="+", default=["gpu.json"], help="where lines go; with --record, where they come from")
    parser.add_argument("--build", default="build", help="whose python/ is used if PYTHONPATH has none")
    parser.add_argument("--tiny", action="store_true", help="small models, to try the script")
    return parser.parse_args()


def main():
    args = parse_arguments()
    if args.record:
        record(args)
        return 0
    sys.path.append(os.path.join(args.build, "python"))
    if args.limits:
        put_limits(args)
        return 0
    models = args.models if args.models is not None else [] if args.draw else list(MODELS)
    models += draw(args)
    cases = [(n, b) for n in models for b in (args.batches or ([1, 8] if drawing.is_drawn(n) else MODELS[n][1]))]
    make_files(args, cases)
    if args.export_only:
        return 0
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    about, rows = describe(device), []
    print(", ".join(f"{k}: {v}" for k, v in about.items()))
    print(f"{'model':16} {'b':>4} {'type':5} {'ours ms':>9} {'latency':>9} {'torch ms':>9} {'latency':>9} {'as':8} {'ratio':>6} {'error':>8} {'torch':>8} {'compile':>7}", flush=True)
    stream = torch.cuda.Stream() if device == "cuda" else None
    with torch.cuda.stream(stream):
        for row in in_waves(args, cases) if args.wave else one_by_one(args, cases, device):
            rows.append(row)
            show(row)
            with open(args.json[0], "w", encoding="ascii") as f:
                json.dump({"about": about, "rows": rows}, f, indent=1)
    for kind in args.types:
        ratios = [r.get("ratio") for r in rows if r["type"] == kind]
        print(f"geometric mean, {kind}: {geometric_mean(ratios) or 0:.3f} over PyTorch's best, lowest {min([r for r in ratios if r] or [0]):.3f}")
    return 0 if rows and all(r["right"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
