#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs stored ONNX cases through ONNX Runtime with this engine as its provider.

    suite.py [--build build] [--cases BUILD/suite/node ...] [--only REGEX] [--optimise] [--card] [--verbose]

The cases are those that test/onnx/make_suite.py wrote. Of each the host's own account of where its nodes
were placed is asked for: all on the provider, with the processor of the host as no way out, or the case
counts as not placed, unless the host refuses the model by itself, or something that goes in or out is of a
kind that a host's provider cannot hand over: a sequence, an optional; with --card (the first one,
MIGRAPHX_GPU_DEVICE) strings and numbers of less than 8 bits. Results must be those stored, within
the case's tolerances. Cases that the engine's own list of expected failures names are forgiven. A crash is one failed case. Needs onnx, numpy and the onnxruntime that is to be tested.
"""
import argparse
import collections
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ENGINE = os.path.join(HERE, "..", "..", "onnx")
PROVIDER = "MgxExecutionProvider"
SECONDS = 120
CARD = False


def expected():
    """Names of cases that may fail on target cpu, or on a card."""
    names = set()
    with open(os.path.join(ENGINE, "expected_failures.txt")) as f:
        for line in f:
            words = line.split(":", 1)[0].split()
            if words and not line.startswith("#") and (len(words) == 1 or words[0] in (("gpu", "ref") if CARD else ("cpu",))):
                names.add(words[-1])
    return names


# --- one case, in a process of its own kind ---


def session(ort, path, optimise, fallback):
    options = ort.SessionOptions()
    if not optimise:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if fallback:
        return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    kind = ort.OrtHardwareDeviceType.GPU if CARD else ort.OrtHardwareDeviceType.CPU
    devices = [d for d in ort.get_ep_devices() if d.ep_name == PROVIDER and d.device.type == kind]
    options.add_provider_for_devices(devices[:1], {})
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    return ort.InferenceSession(path, options)


def feed_of(model, data, load):
    """Values by name; None stays out: an optional input that is absent."""
    initial = {t.name for t in model.graph.initializer}
    infos = [i for i in model.graph.input if i.name not in initial]
    feed = {}
    for i, info in enumerate(infos):
        path = os.path.join(data, f"input_{i}.pb")
        if os.path.exists(path):
            feed[info.name] = load(path, info)
    return feed


NARROW = {"bfloat16": 16, "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19, "float8_e5m2fnuz": 20,
          "float8_e8m0fnu": 24, "uint4": 21, "int4": 22, "float4_e2m1fn": 23, "uint2": 25, "int2": 26}
# numpy's names of types that the host's Python has no arrays of, and its numbers
HOSTS_ALONE = (8, 21, 22, 23, 25, 26)  # strings, and what BITS has, by the standard's numbers
BITS = {"uint4": 4, "int4": 4, "float4_e2m1fn": 4, "uint2": 2, "int2": 2}  # packed, low bits first


def to_host(ort, np, value):
    if value.dtype.name not in NARROW:
        return ort.OrtValue.ortvalue_from_numpy(value)
    bits = np.ascontiguousarray(value).view(np.uint16 if value.dtype.itemsize == 2 else np.uint8)
    width = BITS.get(value.dtype.name)
    if width:  # in the first bytes of an array of the whole shape
        each, flat = 8 // width, bits.reshape(-1) & ((1 << width) - 1)
        flat = np.concatenate([flat, np.zeros(-flat.size % each, np.uint8)]).reshape(-1, each)
        packed = np.bitwise_or.reduce(flat << (np.arange(each, dtype=np.uint8) * width), axis=1).astype(np.uint8)
        bits = np.concatenate([packed, np.zeros(bits.size - packed.size, np.uint8)]).reshape(bits.shape)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, NARROW[value.dtype.name])


def from_host(np, value, dtype):
    if dtype.name not in NARROW:
        return value.numpy()
    import ctypes
    shape, width = value.shape(), BITS.get(dtype.name)
    count = int(np.prod(shape))
    if width:
        packed = np.frombuffer(ctypes.string_at(value.data_ptr(), -(-count * width // 8)), np.uint8)
        flat = (packed[:, None] >> (np.arange(8 // width, dtype=np.uint8) * width)).reshape(-1)[:count]
        flat = flat & np.uint8((1 << width) - 1)
        if dtype.name.startswith("int"):  # the sign fills the byte
            flat = np.where(flat >> (width - 1), flat | np.uint8(256 - (1 << width)), flat).astype(np.uint8)
        return flat.view(dtype).reshape(shape)
    size = count * dtype.itemsize
    return np.frombuffer(ctypes.string_at(value.data_ptr(), size), dtype).reshape(shape)


def run(ort, s, feed, want):
    """As s.run, for types that the host's Python has no arrays of, too."""
    import numpy as np
    values = [*feed.values(), *want]
    if not any(isinstance(v, np.ndarray) and v.dtype.name in NARROW for v in values):
        return s.run(None, feed)
    names = [o.name for o in s.get_outputs()]
    got = s.run_with_ort_values(names, {k: to_host(ort, np, v) for k, v in feed.items()})
    return [from_host(np, g, np.asarray(w).dtype) for g, w in zip(got, want)]


def can_cross(model):
    """Can a provider be handed and hand out all that goes in and out?"""
    types = [v.type for v in [*model.graph.input, *model.graph.output]]
    if any(t.WhichOneof("value") != "tensor_type" for t in types):
        return False
    return not CARD or not any(t.tensor_type.elem_type in HOSTS_ALONE for t in types)


def run_case(ort, onnx, support, folder, optimise):
    path = os.path.join(folder, "model.onnx")
    try:
        s = session(ort, path, optimise, False)
    except Exception as e:
        try:
            session(ort, path, optimise, True)
        except Exception:
            return "refused by the host", str(e)
        crosses = can_cross(onnx.load(path, load_external_data=False))
        return "not placed" if crosses else "of kinds that cannot cross", str(e)
    parts = s.get_provider_graph_assignment_info()
    others = [n.op_type for p in parts if p.ep_name != PROVIDER for n in p.get_nodes()]
    if others:
        return "not placed", ", ".join(others)
    model = onnx.load(path, load_external_data=False)
    with open(os.path.join(folder, "tolerance.txt")) as f:
        rtol, atol = map(float, f.read().split()[:2])
    for data in sorted(glob.glob(os.path.join(folder, "test_data_set_*"))):
        want = support.load_all(data, "output", model.graph.output)
        got = run(ort, s, feed_of(model, data, support.load), want)
        support.compare(got, want, rtol, atol)
    return ("right" if parts else "no nodes"), ""


def work(args):
    """Cases from standard input, a line of answer each."""
    sys.path.insert(0, ENGINE)
    import onnx
    import onnxruntime as ort
    import suite as support

    ort.register_execution_provider_library("mgx", os.path.join(args.build, "lib", "libmigraphx_ort.so"))
    for folder in sys.stdin.read().split("\n"):
        if not folder:
            continue
        print("begin", folder, flush=True)
        try:
            what, why = run_case(ort, onnx, support, folder, args.optimise)
        except Exception as e:
            what, why = "wrong", f"{type(e).__name__}: {e}"
        print("end", what, "|", " ".join(why.split())[:2000], flush=True)


# --- all of them ---


def run_all(args, folders):
    """(what, why) of each; who ends the worker is a crash, and the next one goes on behind it."""
    results = {}
    command = [sys.executable, os.path.abspath(__file__), "--work", "--build", args.build]
    command += ["--optimise"] if args.optimise else []
    command += ["--card"] if args.card else []
    while len(results) < len(folders):
        rest = [f for f in folders if f not in results]
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            out, _ = worker.communicate("\n".join(rest), timeout=SECONDS + 2 * len(rest))
        except subprocess.TimeoutExpired:
            worker.kill()
            out, _ = worker.communicate()
        begun = None
        for line in out.split("\n"):
            if line.startswith("begin "):
                begun = line[6:]
            elif line.startswith("end ") and begun:
                what, why = line[4:].split(" | ", 1) if " | " in line else (line[4:].rstrip(" |"), "")
                results[begun], begun = (what, why), None
        if begun:
            results[begun] = ("crash", f"status {worker.returncode}")
        elif len(rest) == len([f for f in folders if f not in results]):
            raise SystemExit(f"the worker does not begin: {out[-2000:]}")
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--cases", nargs="*")
    parser.add_argument("--only", default="")
    parser.add_argument("--optimise", action="store_true", help="the host's own graph optimisations on")
    parser.add_argument("--card", action="store_true", help="the first card instead of the processor")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    global CARD
    CARD = args.card
    if args.work:
        return work(args)
    roots = args.cases or sorted(glob.glob(os.path.join(args.build, "suite", "*")))
    folders = [f for root in roots for f in sorted(glob.glob(os.path.join(os.path.abspath(root), "*")))
               if os.path.exists(os.path.join(f, "model.onnx")) and re.search(args.only, f)]
    results = run_all(args, folders)
    known, failed, counts = expected(), 0, collections.Counter()
    for folder, (what, why) in results.items():
        name = "/".join(folder.split(os.sep)[-2:])
        bad = what in ("wrong", "crash", "not placed")
        counts["forgiven" if bad and name in known else what] += 1
        if args.verbose or bad and name not in known:
            print(f"{name}: {what}: {why[:400]}")
        failed += bad and name not in known
    print(f"{len(results)} cases: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
