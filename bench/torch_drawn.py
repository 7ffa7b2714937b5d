#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch.compile with this engine and with inductor, on models that nobody chose.

    torch_drawn.py --build build [--draw 30] [--seed 46] [--most 40e6] [--threads 1] [--rounds 0] [--device cpu] [--only REGEX] [--json FILE]

Draws architectures by the seed, a third each of timm, torchvision and transformers (which must be installed, with torch and
onnxscript), with random weights and at most so many parameters. Each runs in a process of its own: results of backend "migraphx" are
compared with torch's, and what ran in torch after all is named. With --rounds both backends run in turns as often, and the ratio of
the medians of their times is printed: above 1 this engine is faster. Some models (--batch) are made ready first and timed one after the
other then, so that nothing compiles meanwhile; --quiet FILE is there as long as that takes, for others on the machine to wait.
"""
import argparse
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
    config.return_dict = False
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
    """The largest relative RMS; infinity where shapes or integers differ."""
    import torch
    worst = 0.0 if len(got) == len(want) else math.inf
    for a, b in zip(got, want):
        if a.shape != b.shape:
            return math.inf
        if not b.is_floating_point():
            worst = max(worst, 0.0 if torch.equal(a, b) else math.inf)
        elif b.numel():
            a, b = a.double(), b.double()
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


def to_device(device, model, args, kwargs):
    return model.to(device), [a.to(device) for a in args], {k: v.to(device) for k, v in kwargs.items()}


def measure(options, library, name):
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    import migraphx.torch
    model, args, kwargs = to_device(options.device, *make(library, name))
    model.eval()
    out = {}
    with torch.no_grad(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        want = tensors(model(*args, **kwargs))
        ours = torch.compile(model, backend=migraphx.torch.backend, options={"threads": options.threads})
        for _ in range(3):
            out["error"] = max(out.get("error", 0), difference(tensors(ours(*args, **kwargs)), want))
        out["in torch"] = [str(w.message) for w in said if "migraphx: a graph" in str(w.message)]
        if options.rounds:
            theirs = torch.compile(model)
            for _ in range(3):
                out["error of inductor"] = difference(tensors(theirs(*args, **kwargs)), want)
            print("ready", flush=True)
            sys.stdin.readline()
            synchronize = torch.cuda.synchronize if options.device == "cuda" else lambda: None
            calls = {"ours": lambda: ours(*args, **kwargs), "inductor": lambda: theirs(*args, **kwargs)}
            clock = time.process_time if options.processor else time.perf_counter
            times_of(calls, 2, synchronize, clock)
            out.update(times_of(calls, options.rounds, synchronize, clock))
    return out


class Asked:
    """A process of its own that answers something."""

    def __init__(self, options, *what):
        command = [sys.executable, "-W", "ignore", os.path.abspath(__file__), "--build", options.build, "--threads", str(options.threads),
                   "--rounds", str(options.rounds), "--most", str(options.most), "--device", options.device,
                   *["--processor"] * options.processor, *what]
        self._seconds = options.seconds
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                         env={**os.environ, "OMP_NUM_THREADS": str(options.threads),
                                              "TORCHINDUCTOR_COMPILE_THREADS": "1"})  # no processes of its own

    def wait_until_ready(self):
        """Or until it ended without having anything to time."""
        for line in () if self._ready else self._process.stdout:
            self._ready = True
            if line.strip() == "ready":
                return
            if line.startswith("{"):
                self._answer = json.loads(line)
                return

    _answer, _ready = None, False

    def answer(self):
        """What it answers within the seconds from now on, which names its failure if it failed."""
        try:
            out, err = self._process.communicate("go\n", timeout=self._seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return {"failed": "not done in time"}
        except BrokenPipeError:
            out, err = "", self._process.stderr.read()
        found = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        return self._answer or (found or [{"failed": (err.strip().splitlines() or [f"status {self._process.returncode}"])[-1][:300]}])[0]


def ask(options, *what):
    return Asked(options, *what).answer()


@contextlib.contextmanager
def announced(path):
    """The file is there meanwhile; what began before has some seconds to end."""
    if path:
        open(path, "w").close()
        time.sleep(20)
    try:
        yield
    finally:
        if path:
            os.remove(path)


def ask_all(options, drawn):
    """A row for each model, some of them ready at a time."""
    for first in range(0, len(drawn), options.batch):
        asked = []
        for library, name in drawn[first:first + options.batch]:
            asked.append((f"{library}/{name}", Asked(options, "--one", library, name)))
            if not options.beside:
                asked[-1][1].wait_until_ready()
        for _, process in asked:
            process.wait_until_ready()
        with announced(options.quiet if options.rounds else None):
            rows = [{"model": name, **process.answer()} for name, process in asked]
        yield from rows


def show(rows):
    ratios = [r["inductor"] / r["ours"] for r in rows if r.get("inductor")]
    bad = [r for r in rows if r.get("failed") or r["error"] > 1e-3 or r["in torch"]]
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
    parser.add_argument("--processor", action="store_true", help="processor time, of one thread, where others use the machine")
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--batch", type=int, default=5)
    parser.add_argument("--beside", action="store_true", help="the models of a batch are made ready beside each other")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quiet")
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
        said = row.get("failed") or f"{row['error']:.1e}" + "".join(f"; {t}" for t in row["in torch"])
        ratio = f" {row['ours']:.2f} ms, inductor {row['inductor']:.2f}: {row['inductor'] / row['ours']:.2f}" if row.get("inductor") else ""
        print(f"{row['model']:44}{said[:500]}{ratio}", flush=True)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(rows, f, indent=1)
    return show(rows)


if __name__ == "__main__":
    sys.exit(main())
