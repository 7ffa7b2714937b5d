#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch.compile with this engine and with inductor, on models that nobody chose.

    torch_drawn.py --build build [--draw 30] [--seed 46] [--most 40e6] [--threads 1] [--rounds 0] [--device cpu] [--only REGEX] [--json FILE]

Draws architectures by the seed, a third each of timm, torchvision and transformers (which must be installed, with torch and
onnxscript), with random weights and at most so many parameters. Each runs in a process of its own: results of backend "migraphx" are
compared with torch's in strict floats, and what ran in torch after all is named. With --rounds both backends run in turns as often,
torch itself too, and the ratio of the medians of their times is printed: above 1 this engine is faster. Some models (--batch) are made
ready first, so many (--beside) at a time, and timed one after the other then, so that nothing compiles meanwhile; --quiet FILE is there
as long as that takes, for others on the machine to wait. On a card:

    torch_drawn.py --device cuda --kind float16 --modes default reduce-overhead --rounds 30 --warm 1 --batch 30 --beside 15 --seconds 200
"""
import argparse
import concurrent.futures
import contextlib
import inspect
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings

LIBRARIES = ("timm", "torchvision", "transformers")
TEXT = 64  # tokens


# --- drawing ---


def names_of(library):
    if library == "timm":
        import timm
        return timm.list_models()
    if library == "torchvision":
        import torchvision
        return torchvision.models.list_models(module=torchvision.models)
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES
    return sorted(MODEL_MAPPING_NAMES)


def make(library, name):
    """The model and its inputs; weights and inputs are random. Weights that begin as zeros would hide what is before them."""
    import torch
    model, args, kwargs = make_as_it_begins(library, name)
    with torch.no_grad():
        for p in model.parameters():
            if p.device.type != "meta" and p.is_floating_point() and not p.any():
                p.normal_(std=0.02)
    return model, args, kwargs


def make_as_it_begins(library, name):
    import torch
    if library == "timm":
        import timm
        model = timm.create_model(name, pretrained=False)
        return model, (torch.randn(1, *model.default_cfg["input_size"]),), {}
    if library == "torchvision":
        import torchvision
        model = torchvision.models.get_model(name, weights=None, **({"init_weights": False} if "inception" in name or "googlenet" in name else {}))
        return model, (torch.randn(1, 3, 224, 224) if "inception" not in name else torch.randn(1, 3, 299, 299),), {}
    import transformers
    config = transformers.AutoConfig.for_model(name)
    for attribute in ("num_hidden_layers", "n_layer", "n_layers", "num_layers"):
        if isinstance(getattr(config, attribute, None), int):
            setattr(config, attribute, min(4, getattr(config, attribute)))
            break
    config.use_cache = False
    model = transformers.AutoModel.from_config(config)
    if model.main_input_name == "input_ids":
        words = min(getattr(config, "vocab_size", 1000), 1000)
        return model, (), {"input_ids": torch.randint(3, words, (1, TEXT))}
    if model.main_input_name == "pixel_values":
        side = getattr(config, "image_size", 224)
        side = side if isinstance(side, int) else side[0]
        noise = {}  # of masked autoencoders, which else draw which patches they see
        if "noise" in inspect.signature(model.forward).parameters:
            noise["noise"] = torch.rand(1, (side // config.patch_size) ** 2)
        return model, (), {"pixel_values": torch.randn(1, getattr(config, "num_channels", 3), side, side), **noise}
    raise ValueError(f"its input is {model.main_input_name}")


def fits(library, name, most):
    """Does torch itself run it, within the parameters? Asked in a process of its own."""
    import torch
    import torch._dynamo  # here: not for the first time under another device
    with torch.device("meta"):
        try:
            count = sum(p.numel() for p in make(library, name)[0].parameters())
        except Exception:
            return None
    if count > most:
        return None
    model, args, kwargs = make(library, name)
    with torch.no_grad():
        tensors(model.eval()(*args, **kwargs))
    return count


def draw(options):
    names = {library: names_of(library) for library in LIBRARIES}
    chance = random.Random(options.seed)
    for library in LIBRARIES:
        chance.shuffle(names[library])
    have = []
    for k, library in enumerate(LIBRARIES):
        want = options.draw * (k + 1) // len(LIBRARIES) - options.draw * k // len(LIBRARIES)
        for name in names[library]:
            if want == 0:
                break
            done = ask(options, "--fits", library, name)
            if done and done.get("parameters"):
                have.append((library, name))
                want -= 1
                print(f"{library} {name}: {done['parameters'] / 1e6:.1f} million", file=sys.stderr, flush=True)
    return have


# --- one model ---


def tensors(value):
    import torch
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    return [t for v in value if v is not None and not isinstance(v, (int, float, str, bool)) for t in tensors(v)]


def difference(got, want):
    """The largest relative RMS; infinity where shapes or integers differ, or a number is finite on one side alone."""
    import torch
    worst = 0.0 if len(got) == len(want) else math.inf
    for a, b in zip(got, want):
        if a.shape != b.shape:
            return math.inf
        if not b.is_floating_point():
            worst = max(worst, 0.0 if torch.equal(a, b) else math.inf)
        elif b.numel():
            a, b = a.double(), b.double()
            if not torch.equal(a.isfinite(), b.isfinite()):
                return math.inf
            a, b = a[a.isfinite()], b[b.isfinite()]
            worst = max(worst, float((a - b).norm() / max(float(b.norm()), 1e-30)))
    return worst


def times_of(calls, rounds, synchronize, clock):
    """Milliseconds of each call, the median of so many in turns."""
    times = {key: [] for key in calls}
    for _ in range(rounds):
        for key, call in calls.items():
            start = clock()
            call()
            synchronize()
            times[key].append((clock() - start) * 1e3)
    return {key: statistics.median(have) for key, have in times.items()}


@contextlib.contextmanager
def strict():
    """Floats are multiplied as they are, also where torch would round them for a card's matrix units."""
    import torch
    places = (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [place.allow_tf32 for place in places]
    try:
        for place in places:
            place.allow_tf32 = False
        yield
    finally:
        for place, was in zip(places, before):
            place.allow_tf32 = was


def placed(value, device, kind):
    return value.to(device, kind) if value.is_floating_point() else value.to(device)


class Measured:
    """A model and its inputs in one type, and the row that says how it runs."""

    def __init__(self, options, library, name):
        import torch
        self.options, self.kind = options, getattr(torch, options.kind)
        self.model, self.args, self.kwargs = make(library, name)
        self.row = {"parameters": sum(p.numel() for p in self.model.parameters())}
        self.calls = {}
        with strict():
            self.want = self.run(self.model.eval(), torch.float32)

    def run(self, model, kind=None):
        args = [placed(a, self.options.device, kind or self.kind) for a in self.args]
        kwargs = {k: placed(v, self.options.device, kind or self.kind) for k, v in self.kwargs.items()}
        return tensors(model.to(self.options.device, kind or self.kind)(*args, **kwargs))

    def prepare(self, key, compiled, *, times=3):
        """Notes the error of some runs, and the call to be timed."""
        self.model.to(self.options.device, self.kind)
        args = [placed(a, self.options.device, self.kind) for a in self.args]
        kwargs = {k: placed(v, self.options.device, self.kind) for k, v in self.kwargs.items()}
        start, worst = time.perf_counter(), 0
        for i in range(times):
            worst = max(worst, difference([t.clone() for t in tensors(compiled(*args, **kwargs))], self.want))
            if i == 0:
                self.row[f"first {key}"] = time.perf_counter() - start
        self.row[f"error of {key}"] = worst
        self.calls[key] = lambda: compiled(*args, **kwargs)

    def compile_theirs(self, mode):
        import torch
        key = "inductor" if mode == "default" else f"inductor {mode}"
        try:
            self.prepare(key, torch.compile(self.model, mode=None if mode == "default" else mode))
        except Exception as e:
            self.row[f"failure of {key}"] = f"{type(e).__name__}: {e}"[:200]

    def time(self):
        import torch
        print("ready", flush=True)
        sys.stdin.readline()
        synchronize = torch.cuda.synchronize if self.options.device == "cuda" else lambda: None
        clock = time.process_time if self.options.processor else time.perf_counter
        times_of(self.calls, 3, synchronize, clock)
        until = time.perf_counter() + self.options.warm
        while time.perf_counter() < until:  # a card's clocks rise by and by
            times_of(self.calls, 1, synchronize, clock)
        self.row["times"] = times_of(self.calls, self.options.rounds, synchronize, clock)


def measure(options, library, name):
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    import migraphx.torch
    with torch.no_grad(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        m = Measured(options, library, name)
        m.prepare("eager", m.model, times=1)
        how = {"threads": options.threads, **({"exhaustive_tune": True} if options.tune else {})}
        m.prepare("ours", torch.compile(m.model, backend=migraphx.torch.backend, options=how))
        m.row["in torch"] = [str(w.message) for w in said if "migraphx: a graph" in str(w.message)]
        if options.rounds:
            for mode in options.modes:
                m.compile_theirs(mode)
            m.time()
    return m.row


def is_right(row):
    """As near to strict floats as torch itself gets in this type, or nearly."""
    return row["error of ours"] <= max(1e-3, 1.5 * row["error of eager"])


class Asked:
    """A process of its own that answers something."""

    def __init__(self, options, *what):
        command = [sys.executable, "-W", "ignore", os.path.abspath(__file__), "--build", options.build, "--threads", str(options.threads),
                   "--rounds", str(options.rounds), "--most", str(options.most), "--device", options.device, "--kind", options.kind, "--warm", str(options.warm),
                   "--modes", *options.modes, *["--processor"] * options.processor, *["--tune"] * options.tune, *what]
        self._said = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True,
                                         env={"TORCHINDUCTOR_COMPILE_THREADS": "1", **os.environ,  # no processes of its own
                                              "OMP_NUM_THREADS": str(options.threads)})
        self._late = threading.Timer(options.seconds, self._process.kill)
        self._late.start()
        self._answer, self._ready = None, False

    def wait_until_ready(self):
        """Or until it ended without having anything to time."""
        for line in () if self._ready else self._process.stdout:
            if line.startswith("{"):
                self._answer = json.loads(line)
            if line.strip() == "ready":
                break
        self._late.cancel()
        self._ready = True
        return self

    def answer(self):
        """What it answers, which names its failure if it failed."""
        self.wait_until_ready()
        self._late = threading.Timer(self.MOST_TIMED, self._process.kill)
        self._late.start()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("go\n")
            self._process.stdin.close()
        for line in self._process.stdout:
            if line.startswith("{"):
                self._answer = json.loads(line)
        self._process.wait()
        self._late.cancel()
        return self._answer or {"failed": self._failure()}

    MOST_TIMED = 600  # seconds, once it is ready

    def _failure(self):
        if self._process.returncode == -9:
            return "not done in time"
        self._said.seek(0)
        return (self._said.read().strip().splitlines() or [f"status {self._process.returncode}"])[-1][:300]


def ask(options, *what):
    return Asked(options, *what).answer()


@contextlib.contextmanager
def announced(path, seconds):
    """The file is there meanwhile; what began before has some seconds to end."""
    if path:
        open(path, "w").close()
        time.sleep(seconds)
    try:
        yield
    finally:
        if path:
            os.remove(path)


def ask_all(options, drawn):
    """A row for each model, some of them ready at a time."""
    for first in range(0, len(drawn), options.batch):
        batch = drawn[first:first + options.batch]
        with concurrent.futures.ThreadPoolExecutor(options.beside) as pool:
            asked = list(pool.map(lambda what: Asked(options, "--one", *what).wait_until_ready(), batch))
        with announced(options.quiet if options.rounds else None, options.settle):
            for what, process in zip(batch, asked):
                yield {"model": "/".join(what), **process.answer()}


def best_of_inductor(row):
    return min((t for key, t in row.get("times", {}).items() if key.startswith("inductor")), default=None)


def line_of(row):
    if row.get("failed"):
        return f"{row['model']:44}{row['failed']}"
    said = f"{row['error of ours']:.1e}" + ("" if is_right(row) else f" WRONG (eager {row['error of eager']:.1e})")
    said += "".join(f"; {t}"[:400] for t in row["in torch"])
    said += "".join(f"; {key}: {why}" for key, why in row.items() if key.startswith("failure of"))
    if best_of_inductor(row):
        said += f" {best_of_inductor(row) / row['times']['ours']:.2f}:"
        said += "".join(f" {key} {t:.3f}" for key, t in row["times"].items())
    return f"{row['model']:44}{said}"


def show(rows):
    ratios = [best_of_inductor(r) / r["times"]["ours"] for r in rows if best_of_inductor(r)]
    bad = [r for r in rows if r.get("failed") or not is_right(r) or r["in torch"]]
    print(f"{len(rows)} models, {len(rows) - len(bad)} right and wholly by the engine" +
          (f", geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}" if ratios else ""))
    return bool(bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--draw", type=int, default=30)
    parser.add_argument("--seed", type=int, default=46)
    parser.add_argument("--most", type=float, default=40e6)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--warm", type=float, default=0, help="seconds of runs before those that count")
    parser.add_argument("--processor", action="store_true", help="processor time, of one thread, where others use the machine")
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--batch", type=int, default=5)
    parser.add_argument("--beside", type=int, default=1, help="so many models of a batch are made ready beside each other")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--kind", default="float32", help="type of the weights and images")
    parser.add_argument("--modes", nargs="*", default=["default"], help="inductor's; the ratio is that of the fastest")
    parser.add_argument("--tune", action="store_true", help="this engine measures its kernels (exhaustive_tune)")
    parser.add_argument("--quiet")
    parser.add_argument("--settle", type=float, default=20, help="seconds that others have to end, once the file of --quiet is there")
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    parser.add_argument("--list", help="file of the draw: read where it is there, else written")
    parser.add_argument("--fits", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    sys.path[0] = os.path.join(options.build, "python")
    warnings.filterwarnings("ignore")
    if options.fits:
        return print(json.dumps({"parameters": fits(*options.fits, options.most)}))
    if options.one:
        return print(json.dumps(measure(options, *options.one)))
    if options.list and os.path.exists(options.list):
        drawn = [tuple(line.split()) for line in open(options.list)]
    else:
        drawn = draw(options)
        if options.list:
            with open(options.list, "w") as f:
                f.writelines(f"{a} {b}\n" for a, b in drawn)
    rows = []
    for row in ask_all(options, [d for d in drawn if re.search(options.only, "/".join(d))]):
        rows.append(row)
        print(line_of(row), flush=True)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(rows, f, indent=1)
    return show(rows)


if __name__ == "__main__":
    sys.exit(main())
