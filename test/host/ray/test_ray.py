# SPDX-License-Identifier: MIT
"""migraphx.ray inside Ray itself: data over workers, one of which dies; a service over HTTP and through handles.

`make serving` runs it, in an environment of its own: Ray is three quarters of a GiB.
"""
import json
import os
import signal
import socket
import sys
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest

ray = pytest.importorskip("ray")
onnx = pytest.importorskip("onnx")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "triton"))
import models  # noqa: E402

import migraphx.ray as mray  # noqa: E402
from migraphx import serving  # noqa: E402

W = models.WEIGHT


@pytest.fixture(scope="module", autouse=True)
def cluster():
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    for what in ("READY", "HEALTH"):  # on a busy machine a proxy takes longer than 5 s to start, and would be killed for it
        os.environ[f"RAY_SERVE_PROXY_{what}_CHECK_TIMEOUT_S"] = "60"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1",
             object_store_memory=200 << 20, runtime_env={"env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}})
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in ("product", "picks"):
        onnx.save(getattr(models, name)(), str(folder / f"{name}.onnx"))
    (folder / "decoder").mkdir()
    models.decoder(str(folder / "decoder"))
    return folder


# --- data ---

def test_columns_come_back_with_results(at):
    x = np.random.default_rng(0).standard_normal((1000, 8)).astype(np.float32)
    data = ray.data.from_numpy(x).rename_columns({"data": "x"}).repartition(7)
    rows = mray.predict(data, str(at / "product.onnx"), keep=["x"], errors="raise").take_all()
    assert len(rows) == 1000
    for row in rows:
        np.testing.assert_allclose(row["y"], row["x"] @ W, rtol=1e-3, atol=1e-4)


def test_rows_that_fail_are_set_aside(at):
    data = ray.data.from_items([{"i": np.int64([i % 10]), "id": i} for i in range(200)])  # 8 and 9 are no rows of the table
    good, bad = mray.split(mray.predict(data, str(at / "picks.onnx"), batch_size=16).materialize())
    good, bad = good.take_all(), bad.take_all()
    assert sorted(r["id"] % 10 for r in bad) == [8] * 20 + [9] * 20 and all("picks" in r["error"] or "index" in r["error"] for r in bad)
    assert len(good) == 160 and "error" not in good[0]
    for row in good:
        np.testing.assert_array_equal(row["row"][0], W[row["id"] % 10])


ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not have this file


class Dies(mray.Predict):
    """The first worker that meets row 500 is killed there."""

    def __init__(self, model, flag, **how):
        super().__init__(model, **how)
        self.flag = flag

    def __call__(self, batch):
        if 500 in batch["id"] and not os.path.exists(self.flag):
            open(self.flag, "w", encoding="ascii").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(batch)


def test_a_killed_worker_loses_nothing_and_doubles_nothing(at, tmp_path):
    flag = str(tmp_path / "died")
    data = ray.data.range(1000, override_num_blocks=10).map_batches(
        lambda b: {"id": b["id"], "x": np.repeat(b["id"][:, None], 8, 1).astype(np.float32)})
    out = data.map_batches(Dies, fn_constructor_args=(serving.kept(str(at / "product.onnx")), flag), batch_size=50, num_cpus=0.5,
                           compute=ray.data.ActorPoolStrategy(size=2), max_restarts=2, max_task_retries=2)
    rows = out.take_all()
    assert os.path.exists(flag) and sorted(r["id"] for r in rows) == list(range(1000))
    for row in rows:
        np.testing.assert_allclose(row["y"], row["id"] * W.sum(0), rtol=1e-3, atol=1e-2)


def test_what_travels_is_small(at):
    kept = mray._prepare(str(at / "product.onnx"), {"threads": 1})
    assert kept.bytes_of is None and len(ray.cloudpickle.dumps(kept)) < 1000
    with open(kept.path, "rb") as file:
        moved = mray._Kept("/nowhere/far-" + os.path.basename(kept.path), ray.put(file.read()))
    here = mray._local(moved)  # as on a machine that has no such file
    assert os.path.exists(here) and serving.Model(here).inputs.keys() == {"x"}
    os.unlink(here)


# --- a service ---

@pytest.fixture(scope="module")
def served(at):
    serve = pytest.importorskip("ray.serve")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    app = mray.deployment({"product": str(at / "product.onnx"), "picks": str(at / "picks.onnx"), "decoder": str(at / "decoder")},
                          loaded=2, options={"ray_actor_options": {"num_cpus": 1}})
    yield serve.run(app, name="m", route_prefix="/m"), f"http://127.0.0.1:{port}/m"
    serve.shutdown()


def get(url, body=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, None if body is None else json.dumps(body).encode()), timeout=60) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_open_inference_protocol_over_http(served):
    _, url = served
    assert get(url + "/v2/health/ready")[0] == 200
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    status, reply = get(url + "/v2/models/product/infer",
                        {"inputs": [{"name": "x", "shape": [2, 8], "datatype": "FP32", "data": x.tolist()}]})
    assert status == 200
    np.testing.assert_allclose(np.reshape(json.loads(reply)["outputs"][0]["data"], (2, 4)), x @ W, rtol=1e-3)
    assert get(url + "/v2/models/nobody")[0] == 404
    status, reply = get(url + "/v2/models/picks/infer", {"inputs": [{"name": "i", "shape": [1, 1], "datatype": "INT64", "data": [99]}]})
    assert status >= 400 and "error" in json.loads(reply)


def test_handles_batches_and_models(served):
    handle, _ = served
    xs = [np.full((1, 8), i, np.float32) for i in range(64)]
    replies = [handle.infer.remote("product", {"x": x}) for x in xs]
    for x, reply in zip(xs, replies):
        np.testing.assert_allclose(reply.result(timeout_s=60)["y"], x @ W, rtol=1e-3, atol=1e-3)
    numbers = handle.statistics.remote().result()["product"]
    assert numbers["rows"] >= 64 and numbers["runs"] < numbers["rows"]
    handle.infer.remote("picks", {"i": np.int64([[1]])}).result()


def test_tokens_stream(served):
    handle, url = served
    tokens = list(handle.options(stream=True).generate.remote("decoder", [1, 2, 3], max_tokens=6))
    status, reply = get(url + "/v2/models/decoder/generate_stream", {"prompt": [1, 2, 3], "max_tokens": 6})
    assert status == 200 and [json.loads(line[6:])["output"] for line in reply.decode().splitlines() if line] == tokens
    stream = handle.options(stream=True).generate.remote("decoder", [1, 2], max_tokens=100000)
    got = threading.Event()
    for _ in stream:
        got.set()
        break
    stream.cancel()
    assert got.is_set()
    assert list(handle.options(stream=True).generate.remote("decoder", [1, 2, 3], max_tokens=6)) == tokens


def test_reconfigured_while_it_runs(served, at):
    from ray import serve
    handle, _ = served
    app = mray.deployment({"product": str(at / "product.onnx")}, options={"ray_actor_options": {"num_cpus": 1}, "user_config": {
        "models": {"product": str(at / "product.onnx")}, "most": 4}})
    handle = serve.run(app, name="m", route_prefix="/m")
    x = np.ones((1, 8), np.float32)
    np.testing.assert_allclose(handle.infer.remote("product", {"x": x}).result()["y"], x @ W, rtol=1e-3)
    with pytest.raises(Exception, match="no model picks"):
        handle.infer.remote("picks", {"i": np.int64([[1]])}).result()
