# SPDX-License-Identifier: MIT
"""LinearAttention on the CPU against its recurrence in numpy: one token, a prompt, a prompt in two pieces, in float and half."""
import migraphx
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

HEADS, KEY, VALUE = 3, 20, 40
TYPES = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16}


def write(rule, kind, queries):
    """A node alone, tokens open."""
    t, value = TYPES[kind], helper.make_tensor_value_info
    lens = {"q": queries * KEY, "k": HEADS * KEY, "v": HEADS * VALUE}
    inputs = [value(n, t, ["batch", "tokens", w]) for n, w in lens.items()] + [value("s", t, ["batch", HEADS, KEY, VALUE])]
    names = ["q", "k", "v", "s"]
    for name, there in (("g", "gated" in rule), ("b", "delta" in rule)):
        names.append(name if there else "")
        if there:
            inputs.append(value(name, t, ["batch", "tokens", HEADS]))
    node = helper.make_node("LinearAttention", names, ["y", "state"], domain="com.microsoft", q_num_heads=queries, kv_num_heads=HEADS, update_rule=rule)
    outputs = [value("y", t, ["batch", "tokens", queries * VALUE]), value("state", t, ["batch", HEADS, KEY, VALUE])]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "linear", inputs, outputs), opset_imports=opsets, ir_version=9).SerializeToString()


def draw(rule, kind, tokens, queries):
    rng = np.random.default_rng(tokens)
    feed = {"q": rng.standard_normal((2, tokens, queries * KEY)), "k": rng.standard_normal((2, tokens, HEADS * KEY)) / KEY**0.5,
            "v": rng.standard_normal((2, tokens, HEADS * VALUE)), "s": rng.standard_normal((2, HEADS, KEY, VALUE))}
    if "gated" in rule:
        feed["g"] = -np.abs(rng.standard_normal((2, tokens, HEADS)))
    if "delta" in rule:
        feed["b"] = rng.random((2, tokens, HEADS))
    return {name: x.astype(kind) for name, x in feed.items()}


def meaning(feed, queries):
    f = {name: x.astype(np.float64) for name, x in feed.items()}
    batch, tokens = f["q"].shape[:2]
    q, k, v = f["q"].reshape(batch, tokens, queries, KEY), f["k"].reshape(batch, tokens, HEADS, KEY), f["v"].reshape(batch, tokens, HEADS, VALUE)
    state, rows = f["s"], []
    for t in range(tokens):
        if "g" in f:
            state = state * np.exp(f["g"][:, t])[..., None, None]
        d = v[:, t]
        if "b" in f:
            d = f["b"][:, t][..., None] * (d - np.einsum("bhij,bhi->bhj", state, k[:, t]))
        state = state + k[:, t][..., None] * d[:, :, None]
        rows.append(np.einsum("bhij,bhi->bhj", np.repeat(state, queries // HEADS, 1), q[:, t]) / KEY**0.5)
    return np.stack(rows, 1).reshape(batch, tokens, -1), state


def close(got, want, kind):
    scale = np.abs(want).max()
    assert np.abs(np.asarray(got).astype(np.float64) - want).max() <= scale * (1e-5 if kind == np.float32 else 2**-10)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("rule", ("linear", "gated", "delta", "gated_delta"))
def test_tokens_prompts_and_pieces(rule, kind):
    for queries in (HEADS, 2 * HEADS):
        p = migraphx.parse_onnx(write(rule, kind, queries), dynamic_dims=True)
        p.compile("cpu")
        for tokens in (1, 2, 33):
            feed = draw(rule, kind, tokens, queries)
            y, state = meaning(feed, queries)
            got = p.run(feed)
            close(got[0], y, kind)
            close(got[1], state, kind)
        first = {name: x if name == "s" else x[:, :20] for name, x in feed.items()}
        rest = {name: x if name == "s" else x[:, 20:] for name, x in feed.items()}
        y, rest["s"] = (np.array(x) for x in p.run({name: np.ascontiguousarray(x) for name, x in first.items()}))
        pieces = p.run({name: np.ascontiguousarray(x) for name, x in rest.items()})
        if kind == np.float32:  # half is rounded between the two
            assert np.array_equal(np.concatenate([y, np.array(pieces[0])], 1), np.array(got[0]))
            assert np.array_equal(np.array(pieces[1]), np.array(got[1]))
