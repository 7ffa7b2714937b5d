# SPDX-License-Identifier: MIT
"""Decoders of attention nodes whose batch, tokens and caches are open, run as a text is generated: a prompt, then one token after the
other, against ONNX Runtime and a few lines of numpy."""
import migraphx
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

FLOAT, BOOL, INT32, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT32, TensorProto.INT64
HEADS, SIZE = 4, 16
WIDTH = HEADS * SIZE


def weight(rng, kind, name, *shape):
    return numpy_helper.from_array((rng.standard_normal(shape) / np.sqrt(shape[0])).astype(kind), name)


class Decoder:
    """One layer: x times weights, the node, its result times weights plus x. Every length that can be open is open."""

    def __init__(self, node, shared=HEADS, whole=False, extra=(), one_token=False, kind=np.float32, **options):
        rng, n, element = np.random.default_rng(5), helper.make_node, helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        tokens = 1 if one_token else "s"
        self.shared, self.packed, self.kind, self.exact = shared, "past" in node.input, kind, 2e-5 if kind == np.float32 else 2e-2
        nodes, initial = [], [weight(rng, kind, "wo", WIDTH, WIDTH)]
        for name, heads in (("q", HEADS), ("k", shared), ("v", shared)):
            if name not in node.input:
                continue
            initial.append(weight(rng, kind, "w" + name, WIDTH, heads * SIZE))
            nodes.append(n("MatMul", ["x", "w" + name], [name + "3" if whole else name]))
            if whole:
                initial.append(numpy_helper.from_array(np.int64([0, 0, heads, SIZE]), "split" + name))
                nodes += [n("Reshape", [name + "3", "split" + name], [name + "4"]), n("Transpose", [name + "4"], [name], perm=[0, 2, 1, 3])]
        initial += [weight(rng, kind, name, *shape) for name, shape in (("wqkv", (WIDTH, 3 * WIDTH)), ("bias", (3 * WIDTH,))) if name in node.input]
        nodes.append(node)
        last = "a"
        if whole:
            initial.append(numpy_helper.from_array(np.int64([0, 0, WIDTH]), "whole"))
            nodes += [n("Transpose", ["a"], ["a4"], perm=[0, 2, 1, 3]), n("Reshape", ["a4", "whole"], ["a3"])]
            last = "a3"
        nodes += [n("MatMul", [last, "wo"], ["o"]), n("Add", ["x", "o"], ["y"])]
        value = helper.make_tensor_value_info
        lens = [2, "b", HEADS, "p", SIZE] if self.packed else ["b", shared, "p", SIZE]
        self.caches = [name for name in ("past", "past_k", "past_v") if name in node.input]
        inputs = [value("x", element, ["b", tokens, WIDTH])] + [value(name, element, lens) for name in self.caches]
        inputs += [value(*e) for e in extra]
        outputs = [value("y", element, None)] + [value(name.replace("past", "now"), element, None) for name in self.caches]
        domains = [helper.make_opsetid("", 24), helper.make_opsetid("com.microsoft", 1)]
        self.data = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, initial), opset_imports=domains, ir_version=10).SerializeToString()
        self.weights = {w.name: numpy_helper.to_array(w).astype(np.float64) for w in initial}
        self.p = migraphx.parse_onnx_buffer(self.data, dynamic_dims=True)
        assert "deferred" not in str(self.p)  # else it is read and compiled again at every length
        self.p.compile("cpu", threads=1, **options)

    def empty(self, batch, length=0, rng=None):
        shape = (2, batch, HEADS, length, SIZE) if self.packed else (batch, self.shared, length, SIZE)
        return {name: (rng.standard_normal(shape) if rng else np.zeros(shape)).astype(self.kind) for name in self.caches}

    def generate(self, batch, expected, more=None, lengths=(5, 1, 1, 1, 3, 1, 1)):
        """expected(feed) gives y and the caches; more(batch, tokens, past) what else the node reads."""
        rng = np.random.default_rng(batch)
        ours, theirs, past = self.empty(batch), self.empty(batch), 0
        for tokens in lengths:
            feed = {"x": rng.standard_normal((batch, tokens, WIDTH)).astype(self.kind)} | (more(rng, batch, tokens, past) if more else {})
            got, right = self.p.run(feed | ours), expected(feed | theirs)
            np.testing.assert_allclose(np.asarray(got["y"]), right[0], rtol=0, atol=self.exact)
            ours = {name: got[name.replace("past", "now")] for name in self.caches}
            theirs = dict(zip(self.caches, (np.asarray(r, self.kind) for r in right[1:])))
            past += tokens
            for name in self.caches:
                assert ours[name].get_shape().lens() == list(theirs[name].shape)
        for name in self.caches:
            np.testing.assert_allclose(np.asarray(ours[name]), theirs[name], rtol=0, atol=self.exact)

    def runtime(self):
        session = onnxruntime.InferenceSession(self.data, providers=["CPUExecutionProvider"])
        return lambda feed: session.run(None, feed)

    def numpy(self, causal=False, cap=0, scale=None, left=-1):
        """What opset 24 says of Attention, in double precision."""
        def run(feed):
            x, w = feed["x"].astype(np.float64), self.weights
            batch, tokens, _ = x.shape
            q, k, v = ((x @ w["w" + i]).reshape(batch, tokens, -1, SIZE).swapaxes(1, 2) for i in "qkv")
            past = feed["past_k"].shape[2] if self.caches else 0
            if self.caches:
                k, v = np.concatenate([feed["past_k"], k], 2), np.concatenate([feed["past_v"], v], 2)
            group, keys = HEADS // self.shared, past + tokens
            scores = (scale or SIZE**-0.5) * q @ np.repeat(k, group, 1).swapaxes(2, 3)
            scores = cap * np.tanh(scores / cap) if cap else scores
            first = past if "valid" not in feed else feed["valid"].reshape(batch, 1, 1, 1) - tokens
            distance = first + np.arange(tokens)[:, None] - np.arange(keys)
            hidden = (distance < 0) & causal | (distance > left) & (left >= 0)
            if "valid" in feed:
                hidden = hidden | (np.arange(keys) >= feed["valid"].reshape(batch, 1, 1, 1))
            mask = feed.get("mask", np.zeros(()))
            scores = scores + (np.where(mask, 0, -np.inf) if mask.dtype == bool else mask) + np.where(hidden, -np.inf, 0)
            power = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e30))
            a = power / np.maximum(power.sum(-1, keepdims=True), 1e-30) @ np.repeat(v, group, 1)
            return x + a.swapaxes(1, 2).reshape(batch, tokens, WIDTH) @ w["wo"], *((k, v) if self.caches else ())
        return run


def attention(mask=False, **attributes):
    inputs = ["q", "k", "v", "mask" if mask else "", "past_k", "past_v"]
    return helper.make_node("Attention", inputs, ["a", "now_k", "now_v"], **attributes)


def counts(shared):
    return {"q_num_heads": HEADS, "kv_num_heads": shared}


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("shared", [1, 2, 4])
def test_attention(shared, causal, batch):
    d = Decoder(attention(is_causal=causal, **counts(shared)), shared)
    d.generate(batch, d.numpy(causal))


@pytest.mark.parametrize("shared", [2, 4])
def test_attention_of_heads_that_are_split_already(shared):
    d = Decoder(attention(is_causal=1), shared, whole=True)
    d.generate(2, d.numpy(True))


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("shared", [1, 2, 4])
def test_attention_of_one_token(shared, whole):
    d = Decoder(attention(is_causal=1, **({} if whole else counts(shared))), shared, whole, one_token=True)
    for batch in (1, 3):
        d.generate(batch, d.numpy(True), lengths=[1] * 6)


@pytest.mark.parametrize("one_token", [False, True])
def test_attention_of_halves(one_token):
    d = Decoder(attention(is_causal=1, **counts(2)), 2, one_token=one_token, kind=np.float16)
    d.generate(2, d.numpy(True), lengths=[1] * 4 if one_token else (5, 1, 1))


@pytest.mark.parametrize("one_token", [False, True])
def test_attention_with_a_plan_for_every_length(one_token):
    d = Decoder(attention(is_causal=1, **counts(2)), 2, one_token=one_token, specialise="in_call")
    for _ in range(4):
        d.generate(2, d.numpy(True), lengths=[1] * 4 if one_token else (12, 1, 1, 9))
    assert " 0 with a plan of their own" not in d.p.explain()


def test_attention_of_a_window_and_a_cap():
    d = Decoder(attention(is_causal=1, left_window_size=3, softcap=2.0, scale=0.5, **counts(2)), 2)
    d.generate(2, d.numpy(True, 2.0, 0.5, 3))


@pytest.mark.parametrize("one_token", [False, True])
def test_attention_of_padded_keys_without_a_cache(one_token):
    """Who sees no key gives zeros: its position, counted from the last valid key, may lie before the first."""
    def more(rng, batch, tokens, _):
        return {"valid": rng.integers(1, tokens + 1, batch)}
    node = helper.make_node("Attention", ["q", "k", "v", "", "", "", "valid"], ["a"], is_causal=1, **counts(2))
    d = Decoder(node, 2, extra=[("valid", INT64, ["b"])], one_token=one_token)
    d.generate(3, d.numpy(True), more, lengths=[1, 1] if one_token else (5, 1, 9))


def masks(kind, heads):
    def more(rng, batch, tokens, past):
        shape = {"table": (tokens, past + tokens), "batch": (batch, 1, tokens, past + tokens), "heads": (1, HEADS, tokens, past + tokens)}[heads]
        if kind == FLOAT:
            return {"mask": rng.standard_normal(shape).astype(np.float32)}
        shown = rng.random(shape) < 0.7
        shown[..., 0] = True
        return {"mask": shown}
    return more


@pytest.mark.parametrize("kind", [FLOAT, BOOL])
@pytest.mark.parametrize("form", ["table", "batch", "heads"])
@pytest.mark.parametrize("one_token", [False, True])
def test_attention_with_a_mask(kind, form, one_token):
    tokens = 1 if one_token else "s"
    lens = {"table": [tokens, "t"], "batch": ["b", 1, tokens, "t"], "heads": [1, HEADS, tokens, "t"]}[form]
    d = Decoder(attention(True, **counts(2)), 2, extra=[("mask", kind, lens)], one_token=one_token)
    d.generate(2, d.numpy(), masks(kind, form), lengths=[1] * 4 if one_token else (5, 1, 1, 3, 1))


def test_attention_with_a_mask_over_one_head_of_keys():
    """The mask's lengths are open, and tell nothing of the heads in the result."""
    d = Decoder(attention(True, is_causal=1, **counts(1)), 1, extra=[("mask", BOOL, ["b", 1, "s", "t"])])
    d.generate(2, d.numpy(True), masks(BOOL, "batch"), lengths=(5, 1, 1, 3, 1))


def test_a_cache_that_heads_share_is_continued():
    """With one head of keys it lies in one piece; copies of it for every head of queries would lie elsewhere, and so would a new cache."""
    d = Decoder(attention(is_causal=1, **counts(1)), 1)
    assert "cache_attention" in str(d.p)
    rng, expected = np.random.default_rng(3), d.numpy(True)
    ours = theirs = d.empty(1, 300, rng)
    places = []
    for _ in range(40):
        feed = {"x": rng.standard_normal((1, 1, WIDTH)).astype(np.float32)}
        got, right = d.p.run(feed | ours), expected(feed | theirs)
        np.testing.assert_allclose(np.asarray(got["y"]), right[0], rtol=0, atol=2e-5)
        ours = {name: got[name.replace("past", "now")] for name in d.caches}
        theirs = dict(zip(d.caches, right[1:]))
        places.append(np.asarray(got["now_k"]).ctypes.data)
    assert len(set(places)) <= 2


def multi_head(mask="", table="", bias="", **attributes):
    inputs = ["q", "k", "v", bias, mask, table, "past_k", "past_v"]
    return helper.make_node("MultiHeadAttention", inputs, ["a", "now_k", "now_v"], domain="com.microsoft", num_heads=HEADS, **attributes)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("one_token", [False, True])
def test_multi_head_attention(one_token, causal, batch):
    d = Decoder(multi_head(bias="bias", unidirectional=causal), one_token=one_token)
    d.generate(batch, d.runtime(), lengths=[1] * 5 if one_token else (5, 1, 1, 1, 3, 1, 1))


def test_multi_head_attention_means_what_the_standards_means():
    d = Decoder(multi_head(unidirectional=1, scale=0.3))
    d.generate(2, d.numpy(True, scale=0.3))


@pytest.mark.parametrize("heads", [1, HEADS])
def test_multi_head_attention_with_a_table(heads):
    def more(rng, _, tokens, past):
        return {"table": rng.standard_normal((1, heads, tokens, past + tokens)).astype(np.float32)}
    d = Decoder(multi_head(table="table"), extra=[("table", FLOAT, [1, heads, "s", "t"])])
    d.generate(2, d.runtime(), more)


def padding(rng, batch, tokens, past):
    shown = rng.random((batch, past + tokens)) < 0.8
    shown[:, 0] = True
    return {"mask": shown.astype(np.int32)}


def test_multi_head_attention_with_padding():
    d = Decoder(multi_head(mask="mask"), extra=[("mask", INT32, ["b", "t"])])
    d.generate(2, d.runtime(), padding)


def projecting(mask="", **attributes):
    return helper.make_node("Attention", ["x", "wqkv", "bias", mask, "past"], ["a", "now"], domain="com.microsoft", num_heads=HEADS, **attributes)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("one_token", [False, True])
def test_attention_that_projects(one_token, causal, batch):
    d = Decoder(projecting(unidirectional=causal), one_token=one_token)
    d.generate(batch, d.runtime(), lengths=[1] * 5 if one_token else (5, 1, 1, 1, 3, 1, 1))


def test_attention_that_projects_with_padding():
    d = Decoder(projecting("mask", unidirectional=1), extra=[("mask", INT32, ["b", "t"])])
    d.generate(2, d.runtime(), padding)


def test_attention_that_projects_with_ends():
    def more(rng, batch, tokens, past):
        return {"mask": rng.integers(1, past + tokens + 1, batch).astype(np.int32)}
    d = Decoder(projecting("mask"), extra=[("mask", INT32, ["b"])])
    d.generate(3, d.runtime(), more)
