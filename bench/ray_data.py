#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What Ray costs around this engine: a dataset of generated images beside a plain loop, and a service with batches and without.

    ray_data.py data  [--model mobilenet_v2] [--images 20000] [--batch 32] [--turns 3]
    ray_data.py serve [--model resnet50] [--seconds 20] [--clients 16] [--length 128]

Run by an environment that has Ray (`make serving` makes one, build/venv-ray) with PYTHONPATH=build/python; models are the zoo's.

data   every image is drawn as bytes, normalised by migraphx.ray.images() and classified. The plain loops do the same without Ray, in one
       process with all threads and in as many processes of one thread as there are processors. Printed are images a second, start
       of workers and compilation not counted for the loops and counted for Ray, too, from its first output on; the largest of the classes' sums
       are compared.
serve  the same replica with batches of up to 32 and of one row; so many requests wait at any time. Rows a second, median and 99th of a
       hundred in milliseconds.
"""
import argparse
import multiprocessing
import os
import sys
import tempfile
import threading
import time

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "zoo"))
import zoo  # noqa: E402

import migraphx.ray as mray  # noqa: E402
from migraphx import serving  # noqa: E402

SIZE = (224, 224, 3)


def draw(ids):
    """Images that depend on their numbers alone."""
    return np.stack([np.frombuffer(np.random.Generator(np.random.SFC64(int(i))).bytes(int(np.prod(SIZE))), np.uint8).reshape(SIZE)
                     for i in ids])


def make(name, folder):
    path = os.path.join(folder, name + ".onnx")
    model = zoo.fill(zoo.skeletons()[name])
    for value in [*model.graph.input, *model.graph.output]:  # some are of one row
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    del model.graph.value_info[:]
    onnx.save(model, path)
    return path, model


def loop(path, threads, ids, batch, ready, go, out):
    model, convert = serving.Model(serving.kept(path, threads=threads), threads=threads), mray.images()
    name, = model.inputs
    for _ in range(3):
        model.run({name: convert(draw(ids[:batch]))})
    ready.set()
    go.wait()
    total = 0.0
    for at in range(0, len(ids), batch):
        result, = model.run({name: convert(draw(ids[at:at + batch]))}).values()
        total += float(result.max(1).sum())
    out.put(total)


def plain(path, processes, threads, images, batch):
    """Images a second, and the sum of each image's largest class."""
    context = multiprocessing.get_context("spawn")
    go, out, ready = context.Event(), context.Queue(), [context.Event() for _ in range(processes)]
    parts = np.array_split(np.arange(images), processes)
    workers = [context.Process(target=loop, args=(path, threads, part, batch, one, go, out)) for part, one in zip(parts, ready)]
    for worker in workers:
        worker.start()
    for one in ready:
        one.wait()
    begin = time.monotonic()
    go.set()
    total = sum(out.get() for _ in workers)
    took = time.monotonic() - begin
    for worker in workers:
        worker.join()
    return images / took, total


def with_ray(path, images, batch, workers, threads):
    import ray
    name, = serving.Model(path).inputs
    begin = time.monotonic()
    data = ray.data.range(images, override_num_blocks=max(20, images // 250)).map_batches(
        lambda rows: {"image": draw(rows["id"])}, batch_size=batch)
    out = mray.predict(data, path, batch_size=batch, columns={name: "image"}, convert={name: mray.images()}, workers=workers, threads=threads)
    first, count, total = None, 0, 0.0
    for rows in out.iter_batches(batch_size=None, batch_format="numpy"):
        first = first or (time.monotonic(), len(rows["error"]))
        count += len(rows["error"])
        output = next(n for n in rows if n != "error")
        total += float(rows[output].max(1).sum())
        assert not (rows["error"] != "").any()
    end = time.monotonic()
    assert count == images
    return (images - first[1]) / (end - first[0]), images / (end - begin), total


def data(options, folder):
    import ray
    path, _ = make(options.model, folder)
    cores = len(os.sched_getaffinity(0))
    ray.init(num_cpus=cores, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}})
    ray.data.DataContext.get_current().enable_progress_bars = False
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    for turn in range(options.turns):
        one, want = plain(path, 1, 0, options.images, options.batch)
        each, same = (one, want) if options.one_loop else plain(path, cores, 1, options.images, options.batch)
        steady, whole, got = with_ray(path, options.images, options.batch, options.workers, options.threads)
        assert abs(got - want) < 1e-3 * abs(want) and abs(same - want) < 1e-3 * abs(want), (want, same, got)
        print(f"turn {turn}: loop, {cores} threads {one:.1f}/s, {cores} loops of one {each:.1f}/s, Ray {steady:.1f}/s ({whole:.1f} with "
              f"its start): {steady / one:.3f} and {steady / each:.3f} of the loops", flush=True)


def serve(options, folder):
    import ray
    from ray import serve as ray_serve
    path, model = make(options.model, folder)
    feed = {n: a[:1] for n, a in zoo.inputs(options.model, model, {"N": 1, "T": options.length}).items()}
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}})
    for turn in range(options.turns):
        for most in (1, 32):
            app = mray.deployment({"m": path}, most=most, options={"ray_actor_options": {"num_cpus": 2}, "max_ongoing_requests": 256})
            handle = ray_serve.run(app)
            took = ask(handle, feed, options.clients, 3)
            before = handle.statistics.remote().result()["m"]
            begin = time.monotonic()
            took = ask(handle, feed, options.clients, options.seconds)
            wall = time.monotonic() - begin
            after = handle.statistics.remote().result()["m"]
            took.sort()
            print(f"turn {turn}: up to {most} rows: {len(took) / wall:.1f}/s, p50 {took[len(took) // 2] * 1e3:.1f} ms, p99 "
                  f"{took[int(len(took) * 0.99)] * 1e3:.1f} ms, {(after['rows'] - before['rows']) / (after['runs'] - before['runs']):.2f} "
                  "rows a run", flush=True)
    ray_serve.shutdown()


def ask(handle, feed, clients, seconds):
    took, end = [], time.monotonic() + seconds

    def client():
        while time.monotonic() < end:
            begin = time.monotonic()
            handle.infer.remote("m", feed).result(timeout_s=60)
            took.append(time.monotonic() - begin)
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("data", "serve"))
    parser.add_argument("--model")
    parser.add_argument("--images", type=int, default=20000)
    parser.add_argument("--one-loop", action="store_true", help="leave out the loops of one thread")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    options.model = options.model or {"data": "mobilenet_v2", "serve": "resnet50"}[options.what]
    with tempfile.TemporaryDirectory(prefix="mgx-bench-ray-") as folder:
        globals()[options.what](options, folder)


if __name__ == "__main__":
    main()
