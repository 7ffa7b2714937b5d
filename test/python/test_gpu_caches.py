# SPDX-License-Identifier: MIT
"""A decoder's caches in a card's memory, past and present the same: a prompt, pieces and tokens beside ONNX Runtime, step by step."""
from card import needs_card, repeated, some  # first: it says which card
import os
import re

import migraphx
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from test_caches import KINDS, LAYERS, SIZE, Text, decoder

pytestmark = needs_card
NAMES = [f"{k}{i}" for i in range(LAYERS) for k in "kv"]
LAST = f"x{LAYERS - 1}"


def halves(data):
    """The same model in half: what is float there, weights and values, but for lengths."""
    m = onnx.ModelProto.FromString(data)
    for t in m.graph.initializer:
        if t.data_type == onnx.TensorProto.FLOAT:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float16), t.name))
    for v in [*m.graph.input, *m.graph.output]:
        if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            v.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    return m.SerializeToString()


class Card:
    """A program of every (batch, tokens), all over the same caches."""

    def __init__(self, batch, room, heads=4, shared=2, packed=False, half=False, apart=False, size=SIZE, **attributes):
        self.batch, self.room, self.heads, self.shared, self.apart, self.size = batch, room, heads, shared, apart, size
        self.type = np.float16 if half else np.float32
        data = decoder(heads, shared, packed, head=size, **attributes)
        self.session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        self.data = halves(data) if half else data
        self.programs, self.rng = {}, np.random.default_rng(7)
        shape = (batch, shared, room, size)
        garbage = self.rng.standard_normal(shape).astype(self.type)  # behind the tokens lies anything
        self.ours = {n: migraphx.to_gpu(garbage) for n in NAMES}
        self.theirs = {f"past_{n}": np.zeros(shape, np.float32) for n in NAMES}
        self.done = np.zeros(batch, np.int32)

    def program(self, tokens):
        if tokens not in self.programs:
            dims = {"x": [self.batch, tokens, self.heads * self.size], "lengths": [self.batch],
                    **{f"past_{n}": [self.batch, self.shared, self.room, self.size] for n in NAMES}}
            p = migraphx.parse_onnx_buffer(self.data, map_input_dims=dims)
            p.compile(migraphx.get_target("gpu"), offload_copy=False)
            assert "(reference)" not in p.explain() and " ref " not in p.explain()
            self.programs[tokens] = p
        return self.programs[tokens]

    def run(self, feed, tokens, check):
        p = self.program(tokens)
        args, shapes, fresh = {}, p.get_parameter_shapes(), {}
        for name, shape in shapes.items():
            if "#output_" in name:
                out = int(name.rpartition("_")[2])
                cache = NAMES[out - 1] if out else None
                if cache and not self.apart:
                    args[name] = self.ours[cache]
                else:
                    args[name] = fresh[cache] = migraphx.allocate_gpu(shape)
            elif name.startswith("past_"):
                args[name] = self.ours[name[5:]]
            else:
                args[name] = migraphx.to_gpu(feed[name])
        results = [fresh[None], *(args[f"main:#output_{1 + i}"] for i in range(len(NAMES)))]

        def run():
            p.run(args)
            return [np.array(migraphx.from_gpu(a)) for a in results]

        repeated(run, lambda got: check(got[0].astype(np.float64)))
        if self.apart:
            self.ours.update({k: v for k, v in fresh.items() if k})

    def step(self, tokens, done=None):
        done = self.done + tokens if done is None else done
        x = self.rng.standard_normal((self.batch, tokens, self.heads * self.size)).astype(self.type)
        lengths = {"lengths": (done - 1).astype(np.int32), "total": np.array([done.max()], np.int32)}
        expected = self.session.run(None, {"x": x.astype(np.float32)} | lengths | self.theirs)
        limit = (2e-5 if self.type == np.float32 else 6e-3) * np.abs(expected[0]).max()
        self.run({"x": x} | lengths, tokens, lambda got: np.testing.assert_allclose(got, expected[0], rtol=0, atol=limit))
        self.theirs = {f"past_{n}": expected[1 + i] for i, n in enumerate(NAMES)}
        self.done = done

    def check(self):
        limit = 1e-5 if self.type == np.float32 else 2e-2
        for n in NAMES:
            mine = np.asarray(migraphx.from_gpu(self.ours[n])).astype(np.float64)
            for b, count in enumerate(self.done):
                np.testing.assert_allclose(mine[b, :, :count], self.theirs[f"past_{n}"][b, :, :count], rtol=0, atol=limit)


@pytest.mark.parametrize("kind, apart", [*((k, False) for k in some(KINDS)), ("turned", True)])
def test_a_prompt_then_tokens(kind, apart):
    c = Card(1, 40, apart=apart, packed=kind in ("turned", "capped"), **KINDS[kind])
    for tokens in (7, 1, 1, 1):
        c.step(tokens)
    c.check()


@pytest.mark.parametrize("kind", some(["turned", "window"]))
def test_halves(kind):
    c = Card(1, 200, half=True, packed=kind == "turned", **KINDS[kind])
    for tokens in (150, 1, 1, 1):
        c.step(tokens)
    c.check()


def test_texts_of_several_lengths():
    """A batch whose entries end at different places goes on a token at a time."""
    c = Card(3, 64, do_rotary=1)
    c.step(5)
    c.done = np.int32([5, 2, 4])  # the rest is taken back
    for n in range(3):
        c.step(1)
    c.check()


def test_a_token_goes_back():
    c = Card(1, 32, packed=True, do_rotary=1)
    c.step(9)
    c.step(1)
    c.done = np.int32([4])
    c.step(1)
    c.check()


def test_no_room():
    """Rows that find no place are left out, and nothing else is touched."""
    c = Card(1, 8, do_rotary=1)
    c.step(8)
    before = {n: np.asarray(migraphx.from_gpu(c.ours[n])) for n in NAMES}
    c.run({"x": np.ones((1, 1, c.heads * c.size), np.float32), "lengths": np.int32([8]), "total": np.int32([9])}, 1, lambda got: None)
    for n in NAMES:
        assert np.array_equal(before[n], np.asarray(migraphx.from_gpu(c.ours[n])))


@pytest.mark.parametrize("seed", range(int(os.environ.get("MGX_DRAWS", "1"))))
def test_drawn(seed):
    """Heads, lengths and what is done with them by chance; MGX_DRAWS says how many. Caches go back and on as well."""
    r = np.random.default_rng([11, seed])
    shared, half = int(r.integers(1, 5)), bool(r.integers(4) > 0)
    kind = {k: v for k, v in KINDS[str(r.choice(list(KINDS)))].items() if k != "scale"}
    c = Card(int(r.choice([1, 1, 3])), int(r.integers(40, 400)), shared * int(r.integers(1, 6)), shared, packed=bool(r.integers(2)), half=half,
             size=int(r.choice([16, 32, 48, 64, 80, 96, 128])), **kind)
    for _ in range(5):
        tokens = int(min(r.choice([1, 1, 2, 5, 17, 64, 130]), c.room - c.done.max()))
        tokens = min(tokens, 1) if c.batch > 1 and c.done.any() else tokens  # ONNX Runtime takes no more
        if tokens:
            c.step(tokens)
        if r.integers(3) == 0:
            c.done = np.maximum(c.done - r.integers(0, 6, c.batch), 1).astype(np.int32)
    c.check()


def test_sizes_left_open():
    """Caches with room that the caller hands back: a plan for the prompt, one for a token, whatever the total is."""
    t = Text(target="gpu", do_rotary=1)
    text = t.step(t.start(1, 48), 5)
    for _ in range(5):
        text = t.step(text, 1)
    t.check(text)
    met, plans = (int(n) for n in re.search(r"sizes: (\d+) met, (\d+) with a plan", t.p.explain()).groups())
    assert met == 2 and plans >= 1


@pytest.mark.parametrize("kind", ["float_type", "half_type"])
@pytest.mark.parametrize("batch, tokens, keys", [(2, 1, 300), (3, 2, 257), (1, 4, 600)])
def test_few_queries_before_many_keys_that_are_no_cache(batch, tokens, keys, kind):
    heads, size = 2, 16
    p = migraphx.program()
    main, rng = p.get_main_module(), np.random.default_rng(keys)
    lens = {"q": [batch, heads, tokens, size], "k": [batch, heads, keys, size], "v": [batch, heads, keys, size], "mask": [batch, 1, 1, keys]}
    type_ = np.float32 if kind == "float_type" else np.float16
    feed = {n: rng.standard_normal(l).astype(type_) for n, l in lens.items()}
    feed["mask"][:, :, :, ::3] = -60000  # hidden
    given = {n: main.add_parameter(n, migraphx.shape(type=kind, lens=l)) for n, l in lens.items()}
    op = lambda name, inputs, **how: main.add_instruction(migraphx.op(name, **how), inputs)
    scores = op("dot", [given["q"], op("transpose", [given["k"]], permutation=[0, 1, 3, 2])])
    scores = op("add", [scores, op("multibroadcast", [given["mask"]], out_lens=[batch, heads, tokens, keys])])
    main.add_return([op("dot", [op("softmax", [scores], axis=3), given["v"]])])
    p.compile(migraphx.get_target("gpu"), offload_copy=True)
    assert "gpu::cache_attention" in p.explain() and "(reference)" not in p.explain()
    got = np.array(p.run(feed)[0]).astype(np.float64)
    q, k, v, mask = (feed[n].astype(np.float64) for n in lens)
    s = q @ k.transpose(0, 1, 3, 2) + mask
    w = np.exp(s - s.max(-1, keepdims=True))
    want = w / w.sum(-1, keepdims=True) @ v
    assert np.abs(got - want).max() < (2e-5 if kind == "float_type" else 4e-3) * np.abs(want).max()
