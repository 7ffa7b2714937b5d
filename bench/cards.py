#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Throughput from host memory to host memory: runs in flight on a card, and several cards in one process.

    PYTHONPATH=build/python python3 bench/cards.py [--models resnet50 bert] [--batch 32] [--cards 1] [--flights 1 2 3]
                                                   [--seconds 3] [--bytes] [--flight FILE] [--record FILE]

For each model (made by bench/gpu.py, half, random weights), rows a second:

    card       inputs and results on the card, runs given to its stream back to back: what the card allows
    link       what the link allows: bytes of a batch by the pace of 64 MiB out of pinned memory, both ways at once
    python n   n threads that run one program with offload_copy on arrays of their own
    c n        the same from C (bench/flight.c), with --flight build/bin/mgx-flight
    cards      a program on each of --cards cards in this process, as many threads each as did best on one
    processes  a process for each card, as Ray's workers are (it shows each its card by CUDA_VISIBLE_DEVICES)

The share is of the lesser of card and link. Results of all ways are compared with the first one's.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def lens_of(array):
    return [array.shape[0], array.shape[3], *array.shape[1:3]] if array.dtype == np.uint8 else list(array.shape)


def compiled(path, feed, offload_copy, card=0):
    import migraphx
    from migraphx import serving
    program = migraphx.parse_onnx(path, map_input_dims={k: lens_of(v) for k, v in feed.items()})
    for name, array in feed.items():
        if array.dtype == np.uint8:
            migraphx.take_bytes(program, name, **serving.images())
    migraphx.quantize_fp16(program)
    program.compile(migraphx.get_target("gpu"), offload_copy=offload_copy, device_id=card)
    return program


def together(work, seconds):
    """Calls a second of several functions, each in a thread of its own, after a second to warm up."""
    counts, stop, failed = [0] * len(work), threading.Event(), []

    def loop(i):
        try:
            while not stop.is_set():
                work[i]()
                counts[i] += 1
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=loop, args=(i,)) for i in range(len(work))]
    for t in threads:
        t.start()
    time.sleep(1)
    before, start = sum(counts), time.perf_counter()
    time.sleep(seconds)
    after, end = sum(counts), time.perf_counter()
    stop.set()
    for t in threads:
        t.join()
    if failed:
        raise failed[0]
    return (after - before) / (end - start)


def on_card(path, feed, seconds):
    """Runs a second with everything in the card's memory."""
    import migraphx
    program, params = compiled(path, feed, False), {}
    for name, shape in program.get_parameter_shapes().items():
        params[name] = migraphx.allocate_gpu(shape) if "#output_" in name else migraphx.to_gpu(migraphx.argument(feed[name]))

    def some():
        for _ in range(20):
            program.run_async(params, 0, "ihipStream_t")
        migraphx.gpu_sync()
    return 20 * together([some], seconds)


def link_pace():
    """Bytes a second into the card and out of it, both ways at once, from pinned memory."""
    import torch
    size = 64 << 20
    host = [torch.empty(size, dtype=torch.uint8).pin_memory() for _ in range(2)]
    card = [torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2)]
    streams = [torch.cuda.Stream() for _ in range(2)]
    for round in range(2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(20):
            with torch.cuda.stream(streams[0]):
                card[0].copy_(host[0], non_blocking=True)
            with torch.cuda.stream(streams[1]):
                host[1].copy_(card[1], non_blocking=True)
        torch.cuda.synchronize()
        pace = 20 * size / (time.perf_counter() - start)
    return pace


def copies(feed):
    return {k: v.copy() for k, v in feed.items()}


def runs_of(program, feed):
    mine = copies(feed)
    return lambda: program.run(mine)


def from_c(flight, program, n, seconds):
    import migraphx
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.mxr")
        migraphx.save(program, path)
        return float(subprocess.run([flight, path, str(n), str(seconds)], check=True, capture_output=True, text=True).stdout)


def processes(path, feed, args, flights):
    """Runs a second of a process for each card, which begin to count together."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(os.path.join(folder, "feed.npz"), **feed)
        at = time.time() + args.start
        words = [sys.executable, os.path.abspath(__file__), "--worker", path, os.path.join(folder, "feed.npz"), str(flights), str(at),
                 str(args.seconds)]
        some = [subprocess.Popen(words, env=dict(os.environ, CUDA_VISIBLE_DEVICES=str(i)), stdout=subprocess.PIPE, text=True)
                for i in range(args.cards)]
        return sum(float(p.communicate()[0]) for p in some)


def worker(path, feed, flights, at, seconds):
    feed = dict(np.load(feed))
    program = compiled(path, feed, True)
    runs = [runs_of(program, feed) for _ in range(int(flights))]
    runs[0]()
    late = time.time() - float(at)
    if late > 0:
        sys.exit(f"a worker was ready {late:.1f} s late: a larger --start")
    time.sleep(-late)
    print(together(runs, float(seconds)))


def same(a, b):
    return all(np.array_equal(np.array(x), np.array(y)) for x, y in zip(a, b))


def measure(name, path, feed, args, pace):
    row, say = {"model": name, "batch": args.batch}, lambda k, v: (row.__setitem__(k, v), print(f"  {k:14} {v:12.1f}", flush=True))
    program = compiled(path, feed, True)
    want = [np.array(r) for r in program.run(feed)]
    bytes_in, bytes_out = sum(v.nbytes for v in feed.values()), sum(r.nbytes for r in want)
    print(f"{name}: {bytes_in / 1e6:.1f} MB in, {bytes_out / 1e6:.1f} MB out a batch", flush=True)
    say("card", args.batch * on_card(path, feed, args.seconds))
    say("link", args.batch * pace / max(bytes_in, bytes_out))
    best = (0, 1)
    for n in args.flights:
        rate = args.batch * together([runs_of(program, feed) for _ in range(n)], args.seconds)
        say(f"python {n}", rate)
        best = max(best, (rate, n))
        if args.flight:
            say(f"c {n}", args.batch * from_c(args.flight, program, n, args.seconds))
    row["share"] = max(v for k, v in row.items() if k[:2] in ("py", "c ")) / min(row["card"], row["link"])
    assert same(program.run(feed), want), "runs in flight changed the results"
    if args.cards > 1:
        programs = [program] + [compiled(path, feed, True, i) for i in range(1, args.cards)]
        assert all(same(p.run(feed), want) for p in programs), "cards disagree"
        say("one card", args.batch * together([runs_of(program, feed) for _ in range(best[1])], args.seconds))
        say("cards", args.batch * together([runs_of(p, feed) for p in programs for _ in range(best[1])], args.seconds))
        say("processes", args.batch * processes(path, feed, args, best[1]))
        row["times one"] = row["cards"] / row["one card"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["resnet50", "bert"])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--cards", type=int, default=1)
    parser.add_argument("--flights", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--bytes", action="store_true", help="images as bytes instead of floats")
    parser.add_argument("--start", type=float, default=20, help="seconds that a process of a card may take to be ready")
    parser.add_argument("--flight", help="build/bin/mgx-flight")
    parser.add_argument("--folder", default="/tmp/mgx-gpu", help="where the models are kept")
    parser.add_argument("--record", help="a JSON file for the rows")
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(*args.worker)
    import gpu
    os.makedirs(args.folder, exist_ok=True)
    rows, pace = [], link_pace()
    print(f"link: {pace / 1e9:.1f} GB/s each way", flush=True)
    for name in args.models:
        path = os.path.join(args.folder, f"{name}.onnx")
        if not os.path.exists(path):
            gpu.export((name, path, False, os.cpu_count()))
        feed = {k: v.numpy() for k, v in gpu.make_inputs(gpu.make(name, False, "export")[1], args.batch).items()}
        if args.bytes:  # images come as bytes, N H W C, and the card makes floats of them
            feed = {k: np.random.default_rng(0).integers(0, 256, v.transpose(0, 2, 3, 1).shape, np.uint8) if v.ndim == 4 else v for k, v in feed.items()}
        rows.append(measure(name, path, feed, args, pace))
        print(f"  share {rows[-1]['share']:.3f}" + (f", cards {rows[-1]['times one']:.3f}" if args.cards > 1 else ""), flush=True)
    if args.record:
        with open(args.record, "w") as f:
            json.dump({"link": pace, "rows": rows}, f, indent=1)


if __name__ == "__main__":
    sys.exit(main())
