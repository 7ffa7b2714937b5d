# SPDX-License-Identifier: MIT
"""The server as it is started, loaded anew, killed and configured: what a fleet does to it."""
import os
import subprocess
import time
import urllib.request

import numpy as np
import pytest

import models
import server as triton
from server import Server, compiled_files, write_model

pytestmark = pytest.mark.skipif(triton.missing() is not None, reason=str(triton.missing()))
W = models.WEIGHT
EXPLICIT = ["--model-control-mode", "explicit"]


def parameter(**values):
    return "".join(f'parameters [{{key: "{name}" value: {{string_value: "{value}"}}}}]\n' for name, value in values.items())


def check(one, name="m", width=W):
    x = np.random.default_rng(3).standard_normal((2, width.shape[0])).astype(np.float32)
    np.testing.assert_allclose(one.infer(name, x=x)["y"], x @ width, rtol=1e-3, atol=1e-3)


def load_often(repository, weight):
    """Resident bytes now and then; None where the server ended in its own code: on a busy machine it may look up a model that it has
    just forgotten, when the model's last thread says that it is done."""
    sizes = []
    with Server(repository, EXPLICIT) as one:
        try:
            for turn in range(40):
                for name in ("m", "text"):
                    one.post(f"/v2/repository/models/{name}/load", {})
                if turn % 10 == 9:
                    check(one, width=weight)
                    sizes.append(one.resident())
                for name in ("m", "text"):
                    one.post(f"/v2/repository/models/{name}/unload", {})
        except OSError:
            frames = one.frames_of_end()
            assert frames and not any("migraphx" in os.path.basename(frame) for frame in frames), one.said()[-3000:]
            return None
    return sizes


def test_loading_again_and_again_leaves_nothing_behind(tmp_path):
    weight = np.random.default_rng(4).standard_normal((1024, 1024)).astype(np.float32)  # 4 MiB
    write_model(str(tmp_path), "m", models.product(weight=weight), 'backend: "migraphx"')
    os.makedirs(tmp_path / "text" / "1")
    models.decoder(str(tmp_path / "text" / "1"))
    (tmp_path / "text" / "config.pbtxt").write_text('backend: "migraphx"')
    attempts = (load_often(str(tmp_path), weight) for _ in range(5))
    sizes = next(sizes for sizes in attempts if sizes)
    assert sizes[-1] - sizes[1] < 6 << 20, sizes  # a model that stays is 4 MiB or 8 each time


def test_killed_server_reads_what_was_compiled(tmp_path):
    path = write_model(str(tmp_path), "m", models.product(), 'backend: "migraphx"\n' + parameter(cache_dir="."))
    with Server(str(tmp_path)) as one:
        check(one)
        assert "is compiled in" in one.said() and len(compiled_files(str(tmp_path))) == 1
        took = []
        while not took or (min(took) >= 1 and len(took) < 5):  # other work on the machine makes it longer, nothing makes it shorter
            one.stop(kill=True)
            begin = time.monotonic()
            one.start()
            check(one)
            took.append(time.monotonic() - begin)
        assert min(took) < 1 and one.said().count("read as it was compiled before") == len(took)
        one.stop(kill=True)
        with open(compiled_files(str(tmp_path))[0], "r+b") as file:  # a file that was cut is compiled anew
            file.truncate(5000)
        one.start()
        check(one)
        assert one.said().count("is compiled in") == 2
        one.stop(kill=True)
        os.utime(path, (1, 1))  # so is another model
        one.start()
        check(one)
        assert one.said().count("is compiled in") == 3


@pytest.mark.parametrize("config, words", [
    (parameter(fp61=1), "has no parameter fp61; there are target, threads, fp16"),
    (parameter(threads="many"), 'parameter threads is \\"many\\", not a number'),
    (parameter(fp16=1, bf16=1), "fp16 and bf16 are both set"),
    (parameter(int8="absent"), "names a file of ranges"),
    (parameter(target="vax"), "vax"),
    ('input [{name: "z" data_type: TYPE_FP32 dims: [8]}]', "has no input z; it has x"),
    ('input [{name: "x" data_type: TYPE_FP16 dims: [8]}]', "is TYPE_FP16 in the configuration, TYPE_FP32 in the model"),
    ('max_batch_size: 2\noutput [{name: "q" data_type: TYPE_FP32 dims: [4]}]', "has no output q; it has y"),
])
def test_wrong_configurations_are_told(shared, config, words):
    write_model(shared.repository, "bad", models.product(), 'backend: "migraphx"\n' + config)
    with pytest.raises(RuntimeError) as caught:
        shared.post("/v2/repository/models/bad/load", {})
    assert words in str(caught.value)


@pytest.mark.parametrize("content, words", [
    (b"not a model", "model.onnx"), (models.product().SerializeToString()[:60], "model.onnx")])
def test_wrong_models_are_told(shared, content, words):
    write_model(shared.repository, "bad", content, 'backend: "migraphx"')
    with pytest.raises(RuntimeError) as caught:
        shared.post("/v2/repository/models/bad/load", {})
    assert words in str(caught.value)


def test_no_model_in_the_folder(shared):
    write_model(shared.repository, "none", b"x", 'backend: "migraphx"', file="readme.txt")
    with pytest.raises(RuntimeError, match="has no model; wanted is one of"):
        shared.post("/v2/repository/models/none/load", {})


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with Server(str(tmp_path_factory.mktemp("models")), [*EXPLICIT, "--backend-config=migraphx,default-max-batch-size=16",
                                                         "--backend-config=migraphx,threads=1"]) as one:
        yield one


def test_options_of_the_backend_and_of_a_model(shared):
    write_model(shared.repository, "half", models.product(), 'backend: "migraphx"\n' + parameter(fp16=1, batches="1,2,5", THREADS=1))
    shared.post("/v2/repository/models/half/load", {})
    assert shared.get("/v2/models/half/config")["max_batch_size"] == 16
    x = np.random.default_rng(3).standard_normal((5, 8)).astype(np.float32)
    got = shared.infer("half", x=x)["y"]
    np.testing.assert_allclose(got, x @ W, rtol=2e-2, atol=2e-2)
    assert np.abs(got - x @ W).max() > 1e-6  # computed in half


def test_a_new_version_takes_over(shared):
    write_model(shared.repository, "grows", models.product(), 'backend: "migraphx"')
    shared.post("/v2/repository/models/grows/load", {})
    check(shared, "grows")
    write_model(shared.repository, "grows", models.product(weight=2 * W), version=2)
    shared.post("/v2/repository/models/grows/load", {})
    check(shared, "grows", 2 * W)


def test_the_example_serves(tmp_path):
    """examples/serving/triton.sh, as docs/serving.md has it."""
    write_model(str(tmp_path / "models"), "m", models.product())
    http, grpc, metrics = triton.free_ports(3)
    script = os.path.join(triton.HERE, "..", "..", "..", "examples", "serving", "triton.sh")
    places = {"PACKAGES": os.path.abspath(triton.PACKAGES), "LIBRARIES": os.path.dirname(os.path.abspath(triton.LIBRARY)),
              "BACKENDS": str(tmp_path / "backends")}
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen([script, str(tmp_path / "models"), "--http-port", str(http), "--grpc-port", str(grpc),
                                    "--metrics-port", str(metrics)], env={**os.environ, **places}, stdout=log, stderr=log)
    try:
        for _ in range(1000):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{http}/v2/models/m", timeout=5) as reply:
                    assert b'"shape":[-1,8]' in reply.read()
                break
            except OSError:
                assert process.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.01)
        else:
            pytest.fail((tmp_path / "log").read_text())
    finally:
        process.kill()
        process.wait()
