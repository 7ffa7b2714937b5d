# SPDX-License-Identifier: MIT
"""The backend inside Triton Inference Server: models of each kind without a configuration, batches, wrong requests, sequences,
streams, reloading. Results are numpy's."""
import concurrent.futures
import itertools
import os
import queue
import threading
import time

import numpy as np
import pytest

import models
import server as triton
from server import Server, write_model

pytestmark = pytest.mark.skipif(triton.missing() is not None, reason=str(triton.missing()))
W = models.WEIGHT
rng = np.random.default_rng(7)
SEQUENCE = """
backend: "migraphx"
max_batch_size: 4
sequence_batching {
  control_input [{ name: "start" control [{ kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] }] }]
  state [{ input_name: "past" output_name: "present" data_type: TYPE_FP32 dims: [2] }]
}
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """One server with all that needs no server of its own."""
    at = str(tmp_path_factory.mktemp("models"))
    backend = 'backend: "migraphx"\n'
    write_model(at, "product", models.product())  # model.onnx alone: the server takes it for onnxruntime's
    write_model(at, "named.migraphx", models.product(), file="other.onnx")
    write_model(at, "tensorflow", models.tensorflow(), backend, file="model.graphdef")
    write_model(at, "texts", models.texts(), backend + "dynamic_batching {max_queue_delay_microseconds: 100000}\nmax_batch_size: 8")
    write_model(at, "picks", models.picks(), backend)
    write_model(at, "lengths", models.lengths(), backend + 'input [{name: "x" data_type: TYPE_FP32 dims: [-1] '
                'allow_ragged_batch: true}]\noutput [{name: "y" data_type: TYPE_FP32 dims: [1] reshape {shape: []}}]\n'
                "max_batch_size: 8\ndynamic_batching {max_queue_delay_microseconds: 100000}")
    write_model(at, "joined", models.joined(), backend + 'max_batch_size: 8\ninput [{name: "x" data_type: TYPE_FP32 dims: [-1] '
                'allow_ragged_batch: true}]\noutput [{name: "y" data_type: TYPE_FP32 dims: [1] reshape {shape: []}}, '
                '{name: "twice" data_type: TYPE_FP32 dims: [-1]}]\n'
                'batch_input [{kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ends" data_type: TYPE_INT32 source_input: "x"}]\n'
                'batch_output [{kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "twice" source_input: "x"}]\n'
                "dynamic_batching {max_queue_delay_microseconds: 100000}")
    write_model(at, "scalar", models.scalar(), backend)
    write_model(at, "fixed", models.product(batch=2), backend)
    write_model(at, "sums", models.sums(), SEQUENCE)
    write_model(at, "slow", models.product(), backend + "max_batch_size: 8\ndynamic_batching {preferred_batch_size: [4] "
                "max_queue_delay_microseconds: 200000}\ninstance_group [{count: 2 kind: KIND_CPU}]\n"
                'parameters [{key: "threads" value: {string_value: "1"}}]\n'
                'model_warmup [{name: "w" batch_size: 4 inputs {key: "x" value: {data_type: TYPE_FP32 dims: [8] zero_data: true}}}]')
    write_model(at, "cached", models.product(), backend + "response_cache {enable: true}")
    write_model(at, "long", models.heavy(), backend + "max_batch_size: 4")
    os.makedirs(os.path.join(at, "decoder", "1"))
    models.decoder(os.path.join(at, "decoder", "1"))
    with open(os.path.join(at, "decoder", "config.pbtxt"), "w", encoding="utf-8") as file:
        file.write(backend)
    with Server(at, ["--cache-config", "local,size=1048576"], names=("migraphx", "onnxruntime")) as one:
        yield one
        if os.environ.get("MGX_TRITON_LOG"):
            print(one.said())


def rows(count):
    return rng.standard_normal((count, 8)).astype(np.float32)


def check_product(served, name, count):
    x = rows(count)
    np.testing.assert_allclose(served.infer(name, x=x)["y"], x @ W, rtol=1e-4, atol=1e-5)


# --- models of each kind, without a configuration ---

@pytest.mark.parametrize("name", ["product", "named.migraphx"])
def test_onnx_needs_no_configuration(served, name):
    config = served.get(f"/v2/models/{name}/config")
    assert config["max_batch_size"] == 4 and "dynamic_batching" in config
    assert [(i["name"], i["data_type"], i["dims"]) for i in config["input"] + config["output"]] == [
        ("x", "TYPE_FP32", [8]), ("y", "TYPE_FP32", [4])]
    for count in (1, 3, 4):
        check_product(served, name, count)


def test_tensorflow_graph_has_a_batch(served):
    assert served.get("/v2/models/tensorflow/config")["max_batch_size"] == 4
    for count in (1, 2, 3, 4):
        x = rng.standard_normal((count, 3)).astype(np.float32)
        np.testing.assert_array_equal(served.infer("tensorflow", x=x)["y"], x + x)


def test_fixed_lengths_have_no_batch(served):
    config = served.get("/v2/models/fixed/config")
    assert config["max_batch_size"] == 0 and config["input"][0]["dims"] == [2, 8] and "dynamic_batching" not in config
    check_product(served, "fixed", 2)


def test_values_without_axes(served):
    out = served.infer("scalar", a=np.float32([3]), b=np.float32([1, 2]))
    np.testing.assert_array_equal(out["c"], [4, 5])


def test_texts(served):
    s = np.array([["", "Zürich"], ["a" * 300, "b"], ["\0", "c"]], object)
    s = np.vectorize(lambda text: text.encode(), otypes=[object])(s)
    out = served.infer("texts", s=s, n=np.int64([[1], [2], [3]]))
    assert out["t"].tolist() == s.tolist()
    np.testing.assert_array_equal(out["m"].reshape(-1), [2, 4, 6])


def test_texts_of_several_requests(served):
    texts = [np.array([[b"x" * i, b"y" * (7 - i)]], object) for i in range(7)]
    with concurrent.futures.ThreadPoolExecutor(7) as pool:
        outs = list(pool.map(lambda i: served.infer("texts", s=texts[i], n=np.int64([[i]])), range(7)))
    for i, out in enumerate(outs):
        assert out["t"].tolist() == texts[i].tolist() and out["m"].reshape(-1).tolist() == [2 * i]
    assert any(b["batch_size"] > 1 for b in served.statistics("texts")["batch_stats"])


def test_compiled_and_portable_files(tmp_path, served):
    import migraphx
    program = migraphx.parse_onnx_buffer(models.product(batch=3).SerializeToString())
    migraphx.save(program, str(tmp_path / "portable.mxr"))
    program.compile(migraphx.get_target("cpu"))
    migraphx.save(program, str(tmp_path / "compiled.mxr"))
    at = str(tmp_path / "models")
    for name in ("portable", "compiled"):
        write_model(at, name, (tmp_path / f"{name}.mxr").read_bytes(), 'backend: "migraphx"', file="model.mxr")
    with Server(at) as one:
        for name in ("portable", "compiled"):
            check_product(one, name, 3)
        assert "is read as it is compiled" in one.said()


# --- batches ---

def test_requests_run_together(served):
    before = served.statistics("slow")
    xs = [rows(1) for _ in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        outs = list(pool.map(lambda x: served.infer("slow", x=x)["y"], xs))
    for x, y in zip(xs, outs):
        np.testing.assert_allclose(y, x @ W, rtol=1e-4, atol=1e-5)
    after = served.statistics("slow")
    assert after["inference_count"] - before["inference_count"] == 8
    assert after["execution_count"] - before["execution_count"] < 8
    assert {b["batch_size"] for b in after["batch_stats"]} & {4, 8}
    assert after["inference_stats"]["compute_infer"]["ns"] > 0


def test_lengths_of_one_execution_may_differ(served):
    xs = [rng.standard_normal((1, n)).astype(np.float32) for n in (3, 5, 3, 1, 5, 3)]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        outs = list(pool.map(lambda x: served.infer("lengths", x=x)["y"], xs))
    for x, y in zip(xs, outs):
        np.testing.assert_allclose(y.reshape(-1), x.mean(1), rtol=1e-5, atol=1e-6)


def test_ragged_requests_are_joined(served):
    xs = [rng.standard_normal((1, n)).astype(np.float32) for n in (3, 5, 1, 7, 2, 4)]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        outs = list(pool.map(lambda x: served.infer("joined", x=x), xs))
    for x, out in zip(xs, outs):
        np.testing.assert_allclose(out["y"].reshape(-1), x.sum(1), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(out["twice"], x + x)
    assert served.statistics("joined")["execution_count"] < 6


def test_only_what_was_asked_for_comes_back(served):
    s = np.array([[b"a"]], object)
    assert set(served.infer("texts", outputs=["m"], s=s, n=np.int64([[1]]))) == {"m"}


def test_equal_requests_come_from_the_cache(served):
    x = rows(1)
    outs = [served.infer("cached", x=x)["y"] for _ in range(3)]
    assert all((out == outs[0]).all() for out in outs) and len(outs) == 3
    stats = served.statistics("cached")
    assert stats["execution_count"] == 1 and stats["inference_stats"]["cache_hit"]["count"] == 2


# --- wrong requests ---

@pytest.mark.parametrize("arrays, words", [
    ({"x": np.zeros((1, 7), np.float32)}, "shape"), ({"x": np.zeros((1, 8), np.float64)}, "data-type"),
    ({"x": np.zeros((5, 8), np.float32)}, "batch"), ({}, "expected 1 input"),
    ({"x": np.zeros((0, 8), np.float32)}, "")])
def test_wrong_request(served, arrays, words):
    with pytest.raises(Exception) as caught:
        served.infer("product", **arrays)
    assert words in str(caught.value)
    check_product(served, "product", 2)


def test_an_error_hits_its_request_alone(served):
    """Rows that exist and rows that do not, in one batch."""
    numbers = [0, 99, 3, 7, -100, 5]
    def one(i):
        try:
            return served.infer("picks", i=np.int64([[i]]))["row"]
        except Exception as error:
            return str(error)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for _ in range(10):
            for i, out in zip(numbers, pool.map(one, numbers)):
                if 0 <= i < 8:
                    np.testing.assert_array_equal(out.reshape(-1), W[i])
                else:
                    assert isinstance(out, str) and "picks" in out
    assert served.statistics("picks")["inference_stats"]["fail"]["count"] == 20


def test_cancelled_run_ends_early(served):
    import tritonclient.grpc as grpc
    client = served.client()
    x = grpc.InferInput("x", [4, 512, 512], "FP32")
    x.set_data_from_numpy(rng.standard_normal((4, 512, 512)).astype(np.float32))
    done = threading.Event()
    begin = time.monotonic()
    client.infer("long", [x])
    whole = time.monotonic() - begin
    call = client.async_infer("long", [x], lambda result, error: done.set())
    time.sleep(whole / 4)
    call.cancel()
    assert done.wait(10)
    end = time.monotonic() + 10
    while served.statistics("long")["inference_stats"]["fail"]["count"] < 1:
        assert time.monotonic() < end
        time.sleep(0.01)


# --- sequences ---

def test_sequences_keep_their_state(served):
    client = served.client()
    import tritonclient.grpc as grpc
    want = {1: np.zeros(2), 2: np.zeros(2), 3: np.zeros(2)}
    for step in range(5):
        for number in want:
            value = rng.standard_normal((1, 2)).astype(np.float32)
            x = grpc.InferInput("x", [1, 2], "FP32")
            x.set_data_from_numpy(value)
            out = client.infer("sums", [x], sequence_id=number, sequence_start=step == 0, sequence_end=step == 4)
            want[number] = want[number] + value
            np.testing.assert_allclose(out.as_numpy("total"), want[number], rtol=1e-5)


# --- decoders ---

def generate(served, prompt, client=None, **numbers):
    """Tokens one by one over one stream."""
    import tritonclient.grpc as grpc
    own = client or served.client()
    replies = queue.Queue()
    own.start_stream(lambda result, error: replies.put((result, error)))
    inputs = []
    for name, value in {"input_ids": np.int64(prompt), **numbers}.items():
        array = np.atleast_1d(value)
        one = grpc.InferInput(name, list(array.shape), {"i": "INT64", "f": "FP32"}[array.dtype.kind])
        one.set_data_from_numpy(array)
        inputs.append(one)
    own.async_stream_infer("decoder", inputs, enable_empty_final_response=True)
    tokens = []
    while True:
        result, error = replies.get(timeout=30)
        if error:
            own.stop_stream()
            raise error
        if result.get_response().outputs:
            tokens += result.as_numpy("output_ids").tolist()
        if result.get_response().parameters["triton_final_response"].bool_param:
            own.stop_stream()
            return tokens


def answers(served, prompt, count):
    from migraphx import generator
    with open(os.path.join(served.repository, "decoder", "1", "genai_config.json"), encoding="utf-8") as file:
        assert "model" in file.read()
    own = generator(os.path.join(served.repository, "decoder", "1"))
    text = own.add()
    own.append(text, prompt)
    tokens = [own.next([text])[0] for _ in range(count)]
    return list(itertools.takewhile(lambda token: not own.is_end(token), tokens))


def test_decoder_streams_its_tokens(served):
    assert served.get("/v2/models/decoder/config")["model_transaction_policy"] == {"decoupled": True}
    want = answers(served, [1, 2, 3], 12)
    assert generate(served, [1, 2, 3], max_tokens=np.int64(12)) == want
    end = time.monotonic() + 10
    while served.statistics("decoder")["inference_stats"]["success"]["count"] != 1:  # told behind the last response
        assert time.monotonic() < end
    assert served.statistics("decoder")["execution_count"] == 12


def test_texts_run_beside_each_other(served):
    prompts = [[i + 1, 2 * i + 1] for i in range(6)]
    want = [answers(served, p, 8 + i) for i, p in enumerate(prompts)]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        got = list(pool.map(lambda i: generate(served, prompts[i], max_tokens=np.int64(8 + i)), range(6)))
    assert got == want


def test_wrong_prompt_hits_itself_alone(served):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        good = pool.submit(generate, served, [5, 6], max_tokens=np.int64(40))
        with pytest.raises(Exception, match="token"):
            generate(served, [5000], max_tokens=np.int64(4))
        assert good.result() == answers(served, [5, 6], 40)
    with pytest.raises(Exception, match="temperature"):
        generate(served, [5], temperature=np.float32(-1))


def test_tokens_over_http(served):
    reply = served.post("/v2/models/decoder/generate_stream", {"input_ids": [1, 2, 3], "max_tokens": 4})
    tokens = [int(line.split('"output_ids":')[1].split(",")[0].strip("}]["))
              for line in reply.splitlines() if '"output_ids"' in line]
    assert tokens == answers(served, [1, 2, 3], 4)
