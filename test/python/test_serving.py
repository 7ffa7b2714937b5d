# SPDX-License-Identifier: MIT
"""migraphx.serving and what migraphx.ray does in a worker, without Ray: rows that fail, batches that form, the protocol."""
import asyncio
import itertools
import json
import os
import struct
import subprocess
import sys

import numpy as np
import onnx
import pytest

onnx = pytest.importorskip("onnx")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "test", "host", "triton"))
import models  # noqa: E402

import migraphx  # noqa: E402
import migraphx.ray as mray  # noqa: E402
from migraphx import serving  # noqa: E402

W = models.WEIGHT
rng = np.random.default_rng(11)


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in ("product", "texts", "picks", "lengths"):
        onnx.save(getattr(models, name)(), str(folder / f"{name}.onnx"))
    (folder / "graph.pb").write_bytes(models.tensorflow())
    (folder / "decoder").mkdir()
    models.decoder(str(folder / "decoder"))
    return folder


def rows(count):
    return rng.standard_normal((count, 8)).astype(np.float32)


# --- a model ---

def test_arrays_are_taken_as_they_lie(at):
    model = serving.Model(at / "product.onnx", threads=1)
    x = rows(6)
    x.flags.writeable = False
    assert model.convert({"x": x})["x"] is x  # not even a copy of what may not be written
    for feed in (x, x[::2], np.asfortranarray(x), x.astype(np.float64)):
        np.testing.assert_allclose(model.run({"x": feed})["y"], feed.astype(np.float32) @ W, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="type complex128, and the model takes float32"):
        model.run({"x": x.astype(complex)})
    with pytest.raises(ValueError, match="there is no input x; the model takes x"):
        model.run({})


def test_rows_that_fail_fail_alone(at):
    model = serving.Model(at / "picks.onnx")
    numbers = np.int64([[0], [99], [3], [-77], [7]])
    outputs, reasons = model.run_rows({"i": numbers})
    good = [0, 2, 4]
    np.testing.assert_array_equal(outputs["row"][good, 0], W[[0, 3, 7]])
    assert [bool(r) for r in reasons] == [False, True, False, True, False] and (outputs["row"][[1, 3]] == 0).all()
    assert "99" in reasons[1]


def test_rows_of_other_lengths(at):
    model = serving.Model(at / "lengths.onnx")
    column = np.empty(5, object)
    column[:] = [rng.standard_normal(n).astype(np.float32) for n in (3, 5, 3, 1, 5)]
    outputs, reasons = model.run_rows({"x": column})
    np.testing.assert_allclose(outputs["y"], [x.mean() for x in column], rtol=1e-5, atol=1e-6)
    assert not any(reasons)


def test_compiled_programs_are_kept_and_shared(at, tmp_path):
    path = serving.kept(at / "product.onnx", folder=str(tmp_path), threads=1)
    assert serving.kept(at / "product.onnx", folder=str(tmp_path), threads=1) == path
    assert serving.kept(at / "product.onnx", folder=str(tmp_path), threads=2) != path
    assert serving.kept(path) == path
    x = rows(3)
    np.testing.assert_allclose(serving.Model(path).run({"x": x})["y"], x @ W, rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError, match="no option treads"):
        serving.kept(at / "product.onnx", treads=1)


# --- what a worker of Ray Data does ---

def test_predict_over_columns(at):
    x = rows(4)
    table = {f"c{i}": x[:, i].astype(np.float64) for i in range(8)} | {"id": np.arange(4)}
    out = mray.Predict(at / "product.onnx", columns={"x": [f"c{i}" for i in range(8)]}, outputs={"y": "score"})(table)
    assert list(out) == ["id", "score", "error"]
    np.testing.assert_allclose(out["score"], x @ W, rtol=1e-4, atol=1e-5)
    assert set(mray.Predict(at / "product.onnx", errors="raise")({"anything": x})) == {"y"}
    with pytest.raises(KeyError, match="input x has no column z; there are a, b"):
        mray.Predict(at / "product.onnx", columns={"x": "z"})({"a": x, "b": x})
    with pytest.raises(ValueError, match="no input q; it has x"):
        mray.Predict(at / "product.onnx", columns={"q": "z"})


def test_predict_keeps_bad_rows_aside(at):
    def number(column):
        return np.stack([[int(text)] for text in column])
    texts = np.array(["1", "two", "99", "3"], object)
    out = mray.Predict(at / "picks.onnx", columns={"i": "text"}, convert={"i": number}, keep=["text"])({"text": texts})
    assert [bool(e) for e in out["error"]] == [False, True, True, False] and "invalid literal" in out["error"][1]
    np.testing.assert_array_equal(out["row"][[0, 3], 0], W[[1, 3]])
    with pytest.raises(RuntimeError, match="row 2 of a batch"):
        mray.Predict(at / "picks.onnx", errors="raise")({"i": np.int64([[1], [2], [99]])})


def test_images_are_normalised():
    x = rng.integers(0, 256, (2, 5, 6, 3), np.uint8)
    want = ((x / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(mray.images()(x), want, rtol=1e-5, atol=1e-6)


# --- a service ---

def run(coroutine):
    return asyncio.run(coroutine)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A convolution over images of any size, and what it gives."""
    weight = np.random.default_rng(1).standard_normal((8, 3, 3, 3)).astype(np.float32)
    node, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node("Conv", ["x", "w"], ["c"]), node("GlobalAveragePool", ["c"], ["y"])], "pictures",
        [value("x", onnx.TensorProto.FLOAT, ["N", 3, "H", "W"])], [value("y", onnx.TensorProto.FLOAT, ["N", 8, 1, 1])],
        [onnx.numpy_helper.from_array(weight, "w")])
    path = tmp_path_factory.mktemp("pictures") / "model.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)

    def want(x):
        x = x.astype(np.float64)
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
        return np.einsum("nchwij,kcij->nkhw", windows, weight).mean((2, 3), keepdims=True)
    return str(path), want


@pytest.mark.parametrize("options", [{}, {"fp16": True}])
def test_bytes_are_normalised_by_the_model(pictures, options):
    path, want = pictures
    model = serving.Model(path, bytes={"x": serving.images()}, **options)
    assert model.inputs == {"x": (np.dtype("uint8"), (None, None, None, 3))}
    x = np.random.default_rng(2).integers(0, 256, (4, 9, 7, 3), np.uint8)
    floats = mray.images()(x)
    np.testing.assert_allclose(model.run({"x": x})["y"], want(floats), atol=2e-2 if "fp16" in options else 1e-5)


def test_bytes_as_the_model_has_them(pictures):
    path, want = pictures
    x = np.random.default_rng(2).integers(0, 256, (1, 3, 9, 7), np.uint8)
    for how, floats in (({}, x), ({"scale": [0.5]}, x * 0.5), ({"offset": [1, 2, 3]}, x + np.array([1, 2, 3.0])[:, None, None])):
        program = migraphx.parse_onnx(path, map_input_dims={"x": [1, 3, 9, 7]})
        migraphx.take_bytes(program, "x", **how)
        program.compile(migraphx.get_target("ref"))
        np.testing.assert_allclose(np.array(program.run({"x": x})[0]), want(floats), rtol=1e-4)


def test_what_cannot_come_as_bytes(pictures):
    path = pictures[0]
    program = migraphx.parse_onnx(path, map_input_dims={"x": [1, 3, 9, 7]})
    for name, how, said in (("z", {}, 'no input "z"'), ("x", {"scale": [1, 2]}, "2 factors"), ("x", {"scale": [float("nan")]}, "not finite"),
                            ("x", {"scale": [1, 2, 3], "offset": [1]}, "not as long")):
        with pytest.raises((RuntimeError, ValueError), match=said):
            migraphx.take_bytes(program, name, **how)
    migraphx.take_bytes(program, "x")
    with pytest.raises(RuntimeError, match="not one of floats"):
        migraphx.take_bytes(program, "x")
    program.compile(migraphx.get_target("ref"))
    with pytest.raises(RuntimeError, match="compiled already"):
        migraphx.take_bytes(program, "x")


def test_requests_that_wait_are_the_next_batch(at):
    async def all_of():
        service = serving.Service({"m": str(at / "product.onnx")}, most=8)
        xs = [rows(1 + i % 3) for i in range(30)]
        outs = await asyncio.gather(*[service.infer("m", {"x": x}) for x in xs])
        for x, out in zip(xs, outs):
            np.testing.assert_allclose(out["y"], x @ W, rtol=1e-4, atol=1e-5)
        one = service.live["m"]
        assert one.rows == 60 and one.runs < 15
        service.close()
    run(all_of())


def test_an_error_hits_its_request_alone(at):
    async def all_of():
        service = serving.Service({"m": str(at / "picks.onnx")})
        outs = await asyncio.gather(*[service.infer("m", {"i": np.int64([[i]])}) for i in (1, 99, 3, 5)], return_exceptions=True)
        assert [isinstance(o, Exception) for o in outs] == [False, True, False, False]
        np.testing.assert_array_equal(outs[3]["row"][0, 0], W[5])
        waiting = asyncio.ensure_future(service.infer("m", {"i": np.int64([[1]])}))
        await asyncio.sleep(0)
        waiting.cancel()
        assert (await service.infer("m", {"i": np.int64([[2]])}))["row"].shape == (1, 1, 4)
    run(all_of())


def test_models_come_and_go(at):
    async def all_of():
        service = serving.Service({n: str(at / f"{n}.onnx") for n in ("product", "picks", "lengths")}, loaded=2)
        for name, feed in (("product", {"x": rows(1)}), ("picks", {"i": np.int64([[1]])}), ("lengths", {"x": rows(1)})):
            await service.infer(name, feed)
        assert list(service.live) == ["picks", "lengths"]
        service.reconfigure({"models": {"picks": str(at / "picks.onnx")}, "most": 2})
        assert list(service.live) == ["picks"] and service.live["picks"].most == 2
        with pytest.raises(KeyError, match="no model product"):
            await service.infer("product", {"x": rows(1)})
        with pytest.raises(ValueError, match="no setting replicas"):
            service.reconfigure({"replicas": 2})
        service.check_health()
    run(all_of())


def test_texts_run_together(at):
    own = migraphx.generator(str(at / "decoder"))

    def alone(prompt, count):
        text = own.add()
        own.append(text, prompt)
        tokens = [own.next([text])[0] for _ in range(count)]
        return list(itertools.takewhile(lambda t: not own.is_end(t), tokens))

    async def all_of():
        service = serving.Service({"d": str(at / "decoder")})

        async def tokens(prompt, count):
            return [t async for t in service.generate("d", prompt, max_tokens=count)]
        got = await asyncio.gather(*[tokens([i + 1, 7], 5 + i) for i in range(5)], tokens([5000], 3), return_exceptions=True)
        assert got[:5] == [alone([i + 1, 7], 5 + i) for i in range(5)] and isinstance(got[5], Exception)
        pieces = service.generate("d", [1], max_tokens=1000)
        async for _ in pieces:
            break
        await pieces.aclose()
        assert not service.live["d"].streams
    run(all_of())


# --- the protocol ---

def ask(service, method, path, body=b"", **headers):
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    status, given, reply = run(service.answer(method, path, headers, body))
    return status, given, reply


@pytest.fixture
def service(at):
    return serving.Service({"product": str(at / "product.onnx"), "texts": str(at / "texts.onnx"), "decoder": str(at / "decoder"),
                            "graph": str(at / "graph.pb")})


def test_metadata_and_health(service):
    for path in ("/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/product/ready", "/v2/models/product/versions/1/ready"):
        assert ask(service, "GET", path)[0] == 200
    reply = json.loads(ask(service, "GET", "/v2/models/product")[2])
    assert reply == {"name": "product", "versions": ["1"], "platform": "migraphx_onnxv1",
                     "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 8]}],
                     "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 4]}]}


@pytest.mark.parametrize("nested", [False, True])
def test_values_as_json(service, nested):
    x = rows(2)
    data = x.tolist() if nested else x.reshape(-1).tolist()
    body = {"id": "7", "inputs": [{"name": "x", "shape": [2, 8], "datatype": "FP32", "data": data}], "outputs": [{"name": "y"}]}
    status, _, reply = ask(service, "POST", "/v2/models/product/infer", body)
    reply = json.loads(reply)
    assert status == 200 and reply["id"] == "7" and reply["outputs"][0]["shape"] == [2, 4]
    np.testing.assert_allclose(np.reshape(reply["outputs"][0]["data"], (2, 4)), x @ W, rtol=1e-4, atol=1e-5)


def test_values_as_bytes(service):
    x = rows(3)
    head = json.dumps({"inputs": [{"name": "x", "shape": [3, 8], "datatype": "FP32", "parameters": {"binary_data_size": x.nbytes}}],
                       "parameters": {"binary_data_output": True}}).encode()
    status, headers, reply = ask(service, "POST", "/v2/models/product/infer", head + x.tobytes(),
                                 **{"Inference-Header-Content-Length": str(len(head))})
    size = int(headers["Inference-Header-Content-Length"])
    assert status == 200 and json.loads(reply[:size])["outputs"][0]["parameters"] == {"binary_data_size": 48}
    np.testing.assert_allclose(np.frombuffer(reply[size:], np.float32).reshape(3, 4), x @ W, rtol=1e-4, atol=1e-5)


def test_texts_both_ways(service):
    data = b"".join(struct.pack("<I", len(t)) + t for t in ("ü".encode(), b""))
    head = json.dumps({"inputs": [{"name": "s", "shape": [1, 2], "datatype": "BYTES", "parameters": {"binary_data_size": len(data)}},
                                  {"name": "n", "shape": [1], "datatype": "INT64", "data": [4]}]}).encode()
    _, _, reply = ask(service, "POST", "/v2/models/texts/infer", head + data, **{"inference-header-content-length": str(len(head))})
    reply = {o["name"]: o["data"] for o in json.loads(reply)["outputs"]}
    assert reply == {"t": ["ü", ""], "m": [8]}


def with_input(**changes):
    return {"inputs": [{"name": "x", "shape": [1, 8], "datatype": "FP32", "data": [0] * 8, **changes}]}


@pytest.mark.parametrize("method, path, body, status, words", [
    ("GET", "/v1", b"", 404, "begin with /v2"), ("GET", "/v2/models/nobody", b"", 404, "no model nobody"),
    ("GET", "/v2/models/product/infer", b"", 405, "by POST"), ("GET", "/v2/models/product/versions/2", b"", 404, "version 1 alone"),
    ("POST", "/v2/models/product/infer", b"{", 400, "no JSON"), ("POST", "/v2/models/product/infer", b"[]", 400, "no JSON object"),
    ("POST", "/v2/models/product/infer", {}, 400, "no inputs"), ("POST", "/v2/models/product/infer", with_input(name="z"), 400, "no input x"),
    ("POST", "/v2/models/product/infer", with_input(shape=[1, 7]), 400, "8 values, and its shape makes 7"),
    ("POST", "/v2/models/product/infer", with_input(shape=[-1, 8]), 400, "is none"),
    ("POST", "/v2/models/product/infer", with_input(shape=[1 << 40, 1 << 40]), 400, "values, and its shape makes"),
    ("POST", "/v2/models/product/infer", with_input(data=["a"] * 8), 400, "input x"),
    ("POST", "/v2/models/product/infer", with_input(datatype="FP99"), 400, "a datatype"),
    ("POST", "/v2/models/product/infer", with_input(parameters={"binary_data_size": 99}), 400, "wants 99 bytes, and 0 are there"),
    ("POST", "/v2/models/product/infer", {**with_input(), "outputs": [{"name": "q"}]}, 400, "there are y"),
    ("POST", "/v2/models/product/infer", with_input(shape=[2, 4]), 400, "shape"),
    ("POST", "/v2/models/decoder/infer", with_input(), 400, "it generates"),
    ("POST", "/v2/models/product/generate", {"prompt": [1]}, 400, "no decoder"),
    ("POST", "/v2/models/decoder/generate", {"prompt": "text"}, 400, "no tokenizer.json"),
    ("POST", "/v2/models/decoder/generate", {"prompt": []}, 400, "no prompt"),
    ("POST", "/v2/models/decoder/generate_stream", {"prompt": [5000]}, 500, "token"),
])
def test_what_is_wrong_is_said(service, method, path, body, status, words):
    got, headers, reply = ask(service, method, path, body)
    assert (got, headers["Content-Type"]) == (status, "application/json") and words in json.loads(reply)["error"], (got, reply)


def test_tokens_as_events(service):
    async def events():
        status, headers, body = await service.answer("POST", "/v2/models/decoder/generate_stream", {},
                                                     b'{"prompt": [1, 2], "max_tokens": 5}')
        return status, headers, [json.loads(e[6:])["output"] async for e in body]
    status, headers, tokens = run(events())
    assert status == 200 and headers["Content-Type"] == "text/event-stream" and len(tokens) == 5
    service.close()
    reply = json.loads(ask(service, "POST", "/v2/models/decoder/generate", {"prompt": [1, 2], "max_tokens": 5})[2])
    assert reply["output"] == tokens


def test_importing_needs_no_ray():
    code = "import sys, migraphx.ray; assert 'ray' not in sys.modules and not any(m.startswith('starlette') for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
