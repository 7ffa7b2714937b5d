# SPDX-License-Identifier: MIT
"""The Open Inference Protocol (version 2) over HTTP, for migraphx.serving.Service: requests in, replies out, no server of its own.

Tensors come as JSON (nested or flat) or as bytes behind it (header Inference-Header-Content-Length), as the client asks. Beside
the protocol's paths there are `generate` and `generate_stream` of a decoder: {"prompt": text or tokens, "max_tokens": ..., "temperature":
...}. Every error is {"error": words}, with 404 for what is not there, 400 for what is wrong, 500 for what failed.
"""
import json
import struct

import migraphx
import numpy as np

__all__ = ["answer"]

_TYPES = {"BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "INT8": "int8", "INT16": "int16",
          "INT32": "int32", "INT64": "int64", "FP16": "float16", "FP32": "float32", "FP64": "float64", "BYTES": "object"}
_NAMES = {np.dtype(dtype): name for name, dtype in _TYPES.items()}
_HEADER = "inference-header-content-length"


class _Wrong(Exception):
    """Status and words."""

    def __init__(self, status, words):
        super().__init__(words)
        self.status = status


async def answer(service, method, path, headers, body):
    try:
        return await _route(service, method, [p for p in path.split("/") if p], {k.lower(): v for k, v in headers.items()}, body)
    except _Wrong as error:
        return _json(error.status, {"error": str(error)})
    except KeyError as error:
        return _json(404, {"error": str(error.args[0]) if error.args else "not found"})
    except (ValueError, TypeError) as error:
        return _json(400, {"error": str(error)})
    except FileNotFoundError as error:
        return _json(404, {"error": str(error)})
    except RuntimeError as error:  # what the engine says of a request
        return _json(400 if "parameter" in str(error) else 500, {"error": str(error)})


def _json(status, value):
    return status, {"Content-Type": "application/json"}, json.dumps(value).encode()


async def _route(service, method, parts, headers, body):
    if parts[:1] != ["v2"]:
        raise _Wrong(404, "paths begin with /v2")
    if len(parts) == 1:
        return _json(200, {"name": "migraphx", "version": migraphx.__version__, "extensions": ["binary_tensor_data", "generate"]})
    if parts[1:] in (["health", "live"], ["health", "ready"]):
        service.check_health()
        return _json(200, {parts[2]: True})
    if parts[1] != "models" or len(parts) < 3:
        raise _Wrong(404, f"there is no {'/'.join(parts)}")
    name, rest = parts[2], parts[3:]
    if rest[:1] == ["versions"]:
        if rest[1:2] != ["1"]:
            raise _Wrong(404, f"model {name} has version 1 alone")
        rest = rest[2:]
    if name not in service.models:
        raise _Wrong(404, f"there is no model {name}")
    if rest == ["ready"]:
        return _json(200, {"name": name, "ready": True})
    if not rest:
        return _json(200, _metadata(name, await service.find(name)))
    if rest[0] not in ("infer", "generate", "generate_stream") or len(rest) > 1:
        raise _Wrong(404, f"there is no {'/'.join(parts)}")
    if method != "POST":
        raise _Wrong(405, f"{rest[0]} is asked for by POST")
    if rest[0] == "infer":
        return await _infer(service, name, headers, body)
    return await _generate(service, name, body, rest[0] == "generate_stream")


def _metadata(name, one):
    model = getattr(one, "model", None)
    if model is None:
        return {"name": name, "versions": ["1"], "platform": "migraphx_decoder", "inputs": [], "outputs": []}

    def tensors(kinds):
        return [{"name": n, "datatype": _NAMES.get(dtype, str(dtype)), "shape": [-1 if x is None else x for x in lens]}
                for n, (dtype, lens) in kinds.items()]
    form = model.path.rsplit(".", 1)[-1]
    return {"name": name, "versions": ["1"], "platform": {"onnx": "migraphx_onnxv1", "mxr": "migraphx_mxr"}.get(form, "migraphx_tensorflow"),
            "inputs": tensors(model.inputs), "outputs": tensors(model.outputs)}


# --- tensors ---

def _object(text):
    try:
        value = json.loads(text)
    except ValueError as error:
        raise _Wrong(400, f"the request is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise _Wrong(400, "the request is no JSON object")
    return value


def _split_texts(data, count):
    texts, at = [], 0
    while at + 4 <= len(data):
        size = struct.unpack_from("<I", data, at)[0]
        if at + 4 + size > len(data):
            break
        texts.append(data[at + 4:at + 4 + size])
        at += 4 + size
    if at != len(data) or len(texts) != count:
        raise _Wrong(400, f"{len(data)} bytes are not {count} texts behind their lengths")
    return texts


def _array(tensor, data):
    """An input; `data` are its bytes, or None where JSON has its values."""
    name, kind, shape = tensor.get("name"), tensor.get("datatype"), tensor.get("shape")
    if not isinstance(name, str) or kind not in _TYPES or not isinstance(shape, list):
        raise _Wrong(400, f"an input has a name, a datatype ({', '.join(_TYPES)}) and a shape")
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape):
        raise _Wrong(400, f"input {name}: the shape {shape} is none")
    count = int(np.prod(shape, dtype=object)) if shape else 1
    dtype = np.dtype(_TYPES[kind])
    if data is not None and kind != "BYTES":
        if len(data) != count * dtype.itemsize:
            raise _Wrong(400, f"input {name} has {len(data)} bytes, and its shape makes {count * dtype.itemsize}")
        return np.frombuffer(data, dtype).reshape(shape)
    if data is None and kind == "FP16":
        raise _Wrong(400, f"input {name}: FP16 comes as bytes, not as JSON")
    try:
        values = _split_texts(data, count) if data is not None else np.asarray(tensor.get("data"), dtype).reshape(-1)
        if len(values) != count:
            raise _Wrong(400, f"input {name} has {len(values)} values, and its shape makes {count}")
    except (ValueError, TypeError, OverflowError) as error:
        raise _Wrong(400, f"input {name}: {error}") from None
    out = np.empty(count, dtype)
    out[:] = [v.decode() if isinstance(v, bytes) else v for v in values] if kind == "BYTES" else values
    return out.reshape(shape)


def _feed(request, binary):
    feed, at = {}, 0
    if not isinstance(request.get("inputs"), list):
        raise _Wrong(400, "the request has no inputs")
    for tensor in request["inputs"]:
        if not isinstance(tensor, dict):
            raise _Wrong(400, "an input is no object")
        parameters = tensor.get("parameters")
        size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
        data = None
        if size is not None:
            if not isinstance(size, int) or size < 0 or at + size > len(binary):
                raise _Wrong(400, f"input {tensor.get('name')} wants {size} bytes, and {len(binary) - at} are there")
            data, at = binary[at:at + size], at + size
        feed[tensor.get("name")] = _array(tensor, data)
    if at != len(binary):
        raise _Wrong(400, f"{len(binary) - at} bytes belong to no input")
    return feed


def _bytes(array):
    if array.dtype != object:
        return np.ascontiguousarray(array).tobytes()
    texts = [t.encode() if isinstance(t, str) else bytes(t) for t in array.reshape(-1)]
    return b"".join(struct.pack("<I", len(t)) + t for t in texts)


def _reply(name, request, outputs):
    parameters = request.get("parameters") if isinstance(request.get("parameters"), dict) else {}
    wanted = request.get("outputs") or [{"name": n} for n in outputs]
    tensors, tail = [], []
    for want in wanted:
        if not isinstance(want, dict) or want.get("name") not in outputs:
            raise _Wrong(400, f"there is no such output as {want.get('name') if isinstance(want, dict) else want}; there are "
                              + ", ".join(outputs))
        array = outputs[want["name"]]
        kind = _NAMES.get(array.dtype)
        if kind is None:
            raise _Wrong(400, f"output {want['name']} is of type {array.dtype}, which the protocol has not")
        tensor = {"name": want["name"], "datatype": kind, "shape": list(array.shape)}
        own = want.get("parameters") if isinstance(want.get("parameters"), dict) else {}
        if own.get("binary_data", parameters.get("binary_data_output", False)) or kind == "FP16":
            tail.append(_bytes(array))
            tensor["parameters"] = {"binary_data_size": len(tail[-1])}
        else:
            tensor["data"] = array.reshape(-1).tolist()
        tensors.append(tensor)
    head = {"model_name": name, "model_version": "1", "outputs": tensors}
    if "id" in request:
        head["id"] = request["id"]
    return json.dumps(head).encode(), b"".join(tail)


async def _infer(service, name, headers, body):
    try:
        size = int(headers.get(_HEADER, len(body)))
    except ValueError:
        size = -1
    if not 0 <= size <= len(body):
        raise _Wrong(400, f"{_HEADER} is {headers.get(_HEADER)}, and the request has {len(body)} bytes")
    request = _object(body[:size])
    outputs = await service.infer(name, _feed(request, body[size:]))
    head, tail = _reply(name, request, outputs)
    if not tail:
        return 200, {"Content-Type": "application/json"}, head
    return 200, {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(head))}, head + tail


# --- decoders ---

_SETTINGS = ("max_tokens", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")


def _event(value):
    return b"data: " + json.dumps(value).encode() + b"\n\n"


async def _pieces(pieces, first):
    try:
        if first is not None:
            yield _event({"output": first})
        async for piece in pieces:
            yield _event({"output": piece})
    except Exception as error:  # the status is out already
        yield _event({"error": str(error)})
    finally:  # whoever stopped listening wants no more tokens
        await pieces.aclose()


async def _generate(service, name, body, stream):
    request = _object(body)
    prompt = request.get("prompt", request.get("text_input", request.get("input_ids")))
    if not isinstance(prompt, (str, list)) or not prompt:
        raise _Wrong(400, "the request has no prompt: a text, or a list of tokens")
    pieces = service.generate(name, prompt, **{s: request[s] for s in _SETTINGS if s in request})
    if stream:
        first = await anext_or_none(pieces)  # what is wrong is told by the status
        return 200, {"Content-Type": "text/event-stream"}, _pieces(pieces, first)
    said = [piece async for piece in pieces]
    return _json(200, {"model_name": name, "output": "".join(said) if isinstance(prompt, str) else said})


async def anext_or_none(pieces):
    async for piece in pieces:
        return piece
    return None
