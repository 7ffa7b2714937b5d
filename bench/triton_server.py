#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What Triton Inference Server costs around this engine, how long requests wait, and what a hundred thousand of them do.

    triton_server.py load    [--model resnet50] [--rows 1] [--clients 8] [--seconds 20]
    triton_server.py latency [--model resnet50] [--seconds 20]
    triton_server.py many    [--requests 100000]
    triton_server.py restart [--model resnet50]

The server and its client are those of the tests (test/host/triton, `make venv`), on loopback; models are the zoo's.

load     keeps so many requests waiting, and prints what share of the wall's time the engine was at work by the server's own
         statistics, and processor time for each row: of the server, and of a plain loop over the same program in batches of the
         same size, in processes of their own, in turns. The client's processor time is not the server's, but it is on the same cores.
latency  sends requests at random times (an exponential distribution) at 50, 80 and 95 % of what `load` reached, and prints the
         median and the 99th of a hundred; beside it ONNX Runtime in the same server, through the server's backend for Python.
many     small requests, some of them wrong in one of four ways; every answer is compared, and memory told before and after.
restart  kills a server and starts it anew: from the start to the first answer, with a compiled program on disk and without.
"""
import argparse
import concurrent.futures
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(np.__file__)))  # of this interpreter, for the server's own
sys.path[:0] = [os.path.join(HERE, "..", "test", "host", "triton"), os.path.join(HERE, "zoo")]
import server as triton  # noqa: E402
import zoo  # noqa: E402

PYTHON_MODEL = '''
import sys

sys.path.insert(0, WHERE)
import numpy as np
import onnxruntime
import triton_python_backend_utils as utils


class TritonPythonModel:
    def initialize(self, args):
        options = onnxruntime.SessionOptions()
        self.session = onnxruntime.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])
        self.names = [i.name for i in self.session.get_inputs()]
        self.outputs = [o.name for o in self.session.get_outputs()]

    def execute(self, requests):
        parts = [[utils.get_input_tensor_by_name(r, n).as_numpy() for n in self.names] for r in requests]
        counts = np.cumsum([p[0].shape[0] for p in parts])[:-1]
        feed = {n: np.concatenate([p[i] for p in parts]) for i, n in enumerate(self.names)}
        results = [np.split(r, counts) for r in self.session.run(self.outputs, feed)]
        return [utils.InferenceResponse([utils.Tensor(n, r[k]) for n, r in zip(self.outputs, results)])
                for k in range(len(requests))]
'''


def with_rows(name):
    """The zoo's model with any number of rows: some are of one."""
    model = zoo.fill(zoo.skeletons()[name])
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    del model.graph.value_info[:]
    return model


def make(options, at, most=8):
    """The zoo's model, as this engine's and as ONNX Runtime's; and the inputs of one row."""
    model = with_rows(options.model)
    path = triton.write_model(at, "ours", model, f'backend: "migraphx"\nmax_batch_size: {most}\ndynamic_batching {{}}\n'
                              'parameters [{key: "cache_dir" value: {string_value: "."}}]\n' + options.config)
    feed = {name: array[:1] for name, array in zoo.inputs(options.model, model, {"N": 1}).items()}
    return path, feed


def add_onnxruntime(at, path, config, most=8):
    def tensors(list_name):
        return "".join(f'{list_name} [{{name: "{t["name"]}" data_type: {t["data_type"]} dims: {json.dumps(t["dims"])}}}]\n'
                       for t in config[list_name])
    triton.write_model(at, "onnxruntime", PYTHON_MODEL.replace("MODEL", repr(path)).replace("WHERE", repr(PACKAGES)).encode(), 'backend: "python"\n'
                       f"max_batch_size: {most}\ndynamic_batching {{}}\n" + tensors("input") + tensors("output"), file="model.py")


class Client:
    """Inputs that are made once, and a connection."""

    def __init__(self, one, feed, rows=1):
        import tritonclient.grpc as grpc
        from tritonclient.utils import np_to_triton_dtype
        self.client = one.client()
        self.inputs = []
        for name, array in feed.items():
            array = np.repeat(array, rows, 0)
            value = grpc.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
            value.set_data_from_numpy(array)
            self.inputs.append(value)

    def infer(self, model):
        return self.client.infer(model, self.inputs)

    def send(self, model, done):
        self.client.async_infer(model, self.inputs, done)


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def computed(one, model):
    """Nanoseconds of runs, runs, rows."""
    stats = one.statistics(model)
    return (sum(b["compute_infer"]["ns"] for b in stats.get("batch_stats", [])), stats["execution_count"], stats["inference_count"])


def saturate(one, model, feed, options, seconds):
    """Rows a second, the engine's share, milliseconds of processor time for a row, rows of a run."""
    end = [time.monotonic() + min(2, seconds / 4)]

    def work(client):
        while time.monotonic() < end[0]:
            client.infer(model)
    clients = [Client(one, feed, options.rows) for _ in range(options.clients)]
    with concurrent.futures.ThreadPoolExecutor(options.clients) as pool:
        list(pool.map(work, clients))  # sizes are met, plans made
        before, used, begin = computed(one, model), processor_seconds(one.process.pid), time.monotonic()
        end[0] = begin + seconds
        list(pool.map(work, clients))
        after, used, wall = computed(one, model), processor_seconds(one.process.pid) - used, time.monotonic() - begin
    nanoseconds, runs, rows = (b - a for a, b in zip(before, after))
    return {"rows_a_second": rows / wall, "engine_share": nanoseconds / 1e9 / wall, "ms_processor": used / rows * 1e3,
            "rows_a_run": rows / runs}


def plain(options):
    """A child: a loop over the same program, batches of one size."""
    import migraphx
    model = with_rows(options.model)
    program = migraphx.parse_onnx_buffer(model.SerializeToString(), dynamic_dims=True)
    program.compile(migraphx.get_target("cpu"))
    feed = {name: np.repeat(array[:1], options.rows, 0) for name, array in zoo.inputs(options.model, model, {"N": 1}).items()}
    for _ in range(20):
        program.run(feed)
    time.sleep(1)  # a plan of its own is made beside the runs
    for _ in range(5):
        program.run(feed)
    used, begin, count = resource.getrusage(resource.RUSAGE_SELF), time.monotonic(), 0
    while time.monotonic() < begin + options.seconds:
        program.run(feed)
        count += 1
    now, wall = resource.getrusage(resource.RUSAGE_SELF), time.monotonic() - begin
    seconds = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    print(json.dumps({"rows_a_second": count * options.rows / wall, "ms_processor": seconds / count / options.rows * 1e3}))


def child(options, rows, seconds):
    command = [sys.executable, os.path.abspath(__file__), "plain", "--model", options.model, "--rows", str(rows), "--seconds", str(seconds)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def load(options, at):
    _, feed = make(options, at)
    with triton.Server(at) as one:
        for turn in range(options.turns):
            got = saturate(one, "ours", feed, options, options.seconds)
            beside = child(options, max(1, round(got["rows_a_run"])), options.seconds)
            print(f"turn {turn}: server {got['rows_a_second']:.1f} rows/s in runs of {got['rows_a_run']:.2f}, engine at work "
                  f"{got['engine_share']:.3f} of the time, {got['ms_processor']:.3f} ms of processor for a row; plain loop "
                  f"{beside['rows_a_second']:.1f} rows/s, {beside['ms_processor']:.3f} ms; processor "
                  f"{got['ms_processor'] / beside['ms_processor']:.3f}, rows {got['rows_a_second'] / beside['rows_a_second']:.3f} of it",
                  flush=True)


def arrivals(one, model, feed, rate, seconds):
    """Milliseconds of each request, sent at random times."""
    clients = [Client(one, feed) for _ in range(4)]
    took, left, lock, rng = [], threading.Semaphore(0), threading.Lock(), random.Random(1)
    begin, at, sent = time.monotonic(), 0.0, 0
    while at < seconds:
        at += rng.expovariate(rate)
        time.sleep(max(0, begin + at - time.monotonic()))

        def done(result, error, due=begin + at):
            with lock:
                took.append((time.monotonic() - due) * 1e3 if error is None else float("inf"))
            left.release()
        clients[sent % 4].send(model, done)
        sent += 1
    for _ in range(sent):
        left.acquire()
    return sorted(took)


def latency(options, at):
    path, feed = make(options, at)
    with triton.Server(at) as one:
        add_onnxruntime(at, path, one.get("/v2/models/ours/config"))
    with triton.Server(at, python=True) as one:
        end = time.monotonic() + 60
        while not one.answers("/v2/models/onnxruntime/ready"):
            if time.monotonic() > end:
                sys.exit(one.said()[-4000:])
            time.sleep(0.1)
        for turn in range(options.turns):
            for model in ("ours", "onnxruntime"):
                full = saturate(one, model, feed, options, options.seconds / 2)["rows_a_second"]
                for share in (0.5, 0.8, 0.95):
                    took = arrivals(one, model, feed, full * share, options.seconds)
                    print(f"turn {turn}: {model:11} full {full:7.1f}/s, at {share:.2f}: p50 {took[len(took) // 2]:8.2f} ms, "
                          f"p99 {took[int(len(took) * 0.99)]:8.2f} ms, {len(took)} requests", flush=True)


def many(options, at):
    import models
    triton.write_model(at, "m", models.picks(), 'backend: "migraphx"\nmax_batch_size: 8\ndynamic_batching {}')
    table, sizes, threads = models.WEIGHT, [], 8

    def one_of(one, client, number, counts):
        kind = number % 10
        try:
            if kind == 9:
                wrong = number // 10 % 4
                value = [np.int64([[99]]), np.int64([[1, 2]]), np.int32([[1]]), np.int64([[[1]]])][wrong]
                one.infer("m", client=client, i=value)
                counts["wrong answered"] += 1
            else:
                got = one.infer("m", client=client, i=np.int64([[number % 8]]))["row"]
                counts["right" if (got.reshape(-1) == table[number % 8]).all() else "false"] += 1
        except Exception:
            counts["refused" if kind == 9 else "lost"] += 1

    def work(one, first, counts):
        client = one.client()
        for number in range(first, options.requests, threads):
            one_of(one, client, number, counts)
            if number % (options.requests // 10) == 0:
                sizes.append(one.resident() >> 10)
    with triton.Server(at) as one:
        counts = [dict.fromkeys(("right", "false", "lost", "refused", "wrong answered"), 0) for _ in range(threads)]
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda i: work(one, i, counts[i]), range(threads)))
        wall = time.monotonic() - begin
        print({name: sum(c[name] for c in counts) for name in counts[0]}, f"{options.requests / wall:.0f} requests/s")
        print("KiB resident, every tenth:", *sizes)


def first_answer(one, client_of):
    begin = time.monotonic()
    one.start()
    while not one.answers("/v2/models/ours/ready"):
        time.sleep(0.005)
    client_of(one).infer("ours")
    return time.monotonic() - begin


def restart(options, at):
    _, feed = make(options, at)
    with triton.Server(at) as one:
        for turn in range(options.turns):
            one.stop(kill=True)
            kept = first_answer(one, lambda s: Client(s, feed))
            one.stop(kill=True)
            for path in triton.compiled_files(at):
                os.unlink(path)
            anew = first_answer(one, lambda s: Client(s, feed))
            print(f"turn {turn}: {kept:.3f} s to the first answer with a compiled program, {anew:.3f} s without", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("load", "latency", "many", "restart", "plain"))
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--config", default="", help="further lines of the configuration")
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--requests", type=int, default=100000)
    options = parser.parse_args()
    if options.what == "plain":
        return plain(options)
    if triton.missing():
        sys.exit(triton.missing())
    at = tempfile.mkdtemp(prefix="mgx-bench-triton-")
    try:
        globals()[options.what](options, at)
    finally:
        shutil.rmtree(at)


if __name__ == "__main__":
    main()
