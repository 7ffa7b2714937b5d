# SPDX-License-Identifier: MIT
"""GroupQueryAttention with caches that grow and caches with room, step by step beside ONNX Runtime: prompts, then a token at a time."""
import re

import migraphx
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32
SIZE, LAYERS, WORDS = 16, 2, 400

KINDS = {
    "plain": {},
    "turned": {"do_rotary": 1},
    "neighbours": {"do_rotary": 1, "rotary_interleaved": 1},
    "window": {"do_rotary": 1, "local_window_size": 5},
    "capped": {"softcap": 2.0, "scale": 0.7},
    "smooth": {"smooth_softmax": 1},
}


def decoder(heads, shared, packed, bits=32, head=SIZE, **attributes):
    """Two layers of attention over caches: batch, tokens and the caches' lengths are free. Caches may be in 8 or 4 bits."""
    rng, nodes, value = np.random.default_rng(3), [], helper.make_tensor_value_info
    initial = [numpy_helper.from_array(np.cos(np.outer(np.arange(WORDS), rng.random(head // 2))).astype(np.float32), "cos"),
               numpy_helper.from_array(np.sin(np.outer(np.arange(WORDS), rng.random(head // 2))).astype(np.float32), "sin")]
    inputs = [value("x", FLOAT, ["B", "T", heads * head]), value("lengths", INT32, ["B"]), value("total", INT32, [1])]
    outputs, x, kept, size = [], "x", [], head // 2 if bits == 4 else head
    cache = {32: FLOAT, 8: TensorProto.INT8, 4: TensorProto.UINT8}[bits]
    if bits < 32:
        shape = (1, shared, 1, head) if attributes["k_quant_type"] == "PER_CHANNEL" else (1,)
        initial += [numpy_helper.from_array(((rng.random(shape) + 1) * 4 / 2 ** bits).astype(np.float32), f"{k}scale") for k in "kv"]
        kept = [""] * (3 if attributes.get("do_rotary") else 5) + ["kscale", "vscale"]
    for i in range(LAYERS):
        wide = {"qkv": heads + 2 * shared} if packed else {"q": heads, "k": shared, "v": shared}
        for name, count in wide.items():
            w = rng.standard_normal((heads * head, count * head)) / np.sqrt(heads * head)
            initial.append(numpy_helper.from_array(w.astype(np.float32), f"w{name}{i}"))
            nodes.append(helper.make_node("MatMul", [x, f"w{name}{i}"], [f"{name}{i}"]))
        operands = [f"qkv{i}", "", ""] if packed else [f"q{i}", f"k{i}", f"v{i}"]
        tables = ["cos", "sin"] if attributes.get("do_rotary") else []
        nodes.append(helper.make_node("GroupQueryAttention", operands + [f"past_k{i}", f"past_v{i}", "lengths", "total"] + tables + kept,
                                      [f"y{i}", f"k{i}_", f"v{i}_"], domain="com.microsoft", num_heads=heads, kv_num_heads=shared, **attributes))
        nodes.append(helper.make_node("Add", [x, f"y{i}"], [f"x{i}"]))
        x = f"x{i}"
        inputs += [value(f"past_{k}{i}", cache, ["B", shared, f"P{k}{i}", size]) for k in "kv"]
        outputs += [value(f"{k}{i}_", cache, ["B", shared, None, size]) for k in "kv"]
    graph = helper.make_graph(nodes, "g", inputs, [value(x, FLOAT, ["B", "T", heads * head])] + outputs, initial)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


class Text:
    """One text, or a batch of texts of one length, that goes on in both engines. Caches are (ours, theirs)."""

    def __init__(self, heads=4, shared=2, packed=False, threads=1, target="cpu", **attributes):
        self.heads, self.shared, self.bits = heads, shared, attributes.get("bits", 32)
        self.data = decoder(heads, shared, packed, **attributes)
        self.session = onnxruntime.InferenceSession(self.data, providers=["CPUExecutionProvider"])
        self.p = migraphx.parse_onnx_buffer(self.data, dynamic_dims=True)
        self.p.compile(target, threads=threads)
        self.rng = np.random.default_rng(1)

    def start(self, batch, room):
        size, kind = SIZE // 2 if self.bits == 4 else SIZE, {32: np.float32, 8: np.int8, 4: np.uint8}[self.bits]
        empty = {f"past_{k}{i}": np.zeros((batch, self.shared, room, size), kind) for i in range(LAYERS) for k in "kv"}
        return np.zeros(batch, np.int32), empty, empty

    def step(self, text, tokens, program=None):
        done, ours, theirs = text
        done = done + tokens
        feed = {"x": self.rng.standard_normal((len(done), tokens, self.heads * SIZE)).astype(np.float32),
                "lengths": (done - 1).astype(np.int32), "total": np.array([done.max()], np.int32)}
        results, expected = (program or self.p).run(feed | ours), self.session.run(None, feed | theirs)
        last = f"x{LAYERS - 1}"
        np.testing.assert_allclose(np.asarray(results[last]), expected[0], rtol=0, atol=2e-5 * np.abs(expected[0]).max())
        names = [f"{k}{i}" for i in range(LAYERS) for k in "kv"]
        return (done, {f"past_{n}": results[n + "_"] for n in names},
                {f"past_{n}": expected[1 + i] for i, n in enumerate(names)})

    def check(self, text):
        """Caches as far as there are tokens; behind these a later step may have written."""
        done, ours, theirs = text
        for name, value in theirs.items():
            mine = np.asarray(ours[name])
            assert mine.shape == value.shape
            for b, n in enumerate(done):
                np.testing.assert_allclose(mine[b, :, :n], value[b, :, :n], rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("room", [0, 80])
def test_a_prompt_and_then_a_token_at_a_time(kind, room):
    t = Text(**KINDS[kind])
    for batch in (1, 2):
        text, kept = t.step(t.start(batch, room), 12), []
        for step in range(30):
            text = t.step(text, 1)
            if step % 10 == 9:
                kept.append(text)
        for old in kept:
            t.check(old)
        for name, value in text[2].items():  # the last one has zeros behind its tokens, too
            np.testing.assert_allclose(np.asarray(text[1][name]), value, rtol=0, atol=1e-5)


@pytest.mark.parametrize("heads, shared", [(1, 1), (3, 3), (6, 1), (10, 2)])
@pytest.mark.parametrize("packed", [False, True])
def test_heads_share_keys(heads, shared, packed):
    t = Text(heads, shared, packed, threads=2, do_rotary=1)
    for batch in (1, 3):
        text = t.step(t.start(batch, 64), 3)
        for _ in range(4):
            text = t.step(text, 1)
        t.check(t.step(text, 7 if batch == 1 else 1))  # ONNX Runtime takes pieces of one text alone


@pytest.mark.parametrize("room", [0, 20])
@pytest.mark.parametrize("how", ["PER_TENSOR", "PER_CHANNEL"])
@pytest.mark.parametrize("bits", [8, 4])
def test_caches_in_few_bits(bits, how, room):
    text = Text(bits=bits, k_quant_type=how, v_quant_type=how, kv_cache_bit_width=bits, do_rotary=1)
    assert "deferred" not in str(text.p)
    state = text.start(1, room)
    for tokens in (5, 1, 1, 3, 1, 1):
        state = text.step(state, tokens)
    text.check(state)


def test_a_long_prompt_comes_in_pieces():
    t = Text(do_rotary=1, threads=2)
    for room in (0, 350):
        text = t.step(t.start(1, room), 290)
        t.check(t.step(t.step(text, 20), 9))


@pytest.mark.parametrize("room", [0, 64])
def test_a_cache_goes_on_in_two_ways(room):
    t = Text(do_rotary=1)
    text = t.step(t.step(t.start(1, room), 30), 1)
    one, two = t.step(text, 1), t.step(text, 1)
    for _ in range(5):
        one, two = t.step(one, 1), t.step(two, 1)
    t.check(one)
    t.check(two)
    t.check(text)


def test_a_text_is_taken_back():
    """Tokens that were tried and dropped: the next step says a shorter length of the same cache."""
    t = Text(do_rotary=1)
    text = t.step(t.start(1, 64), 20)
    tried = t.step(text, 4)
    back = (tried[0] - 3, tried[1], tried[2])
    for _ in range(3):
        back = t.step(back, 1)
    t.check(back)
    t.check(tried)


@pytest.mark.parametrize("room", [0, 64])
def test_texts_of_different_lengths_share_a_batch(room):
    t = Text(do_rotary=1)
    whole = t.step(t.start(3, room), 20)
    text = (np.array([4, 20, 7], np.int32), *whole[1:])
    for _ in range(5):
        text = t.step(text, 1)
    t.check(text)
    t.check(whole)


def test_fixed_sizes_and_the_reference_do_the_same():
    t = Text(do_rotary=1, local_window_size=6)
    text = t.step(t.start(2, 64), 20)
    dims = {name: list(value.shape) for name, value in text[2].items()} | {"x": [2, 1, 64], "lengths": [2], "total": [1]}
    fixed = migraphx.parse_onnx_buffer(t.data, map_input_dims=dims)
    fixed.compile("cpu", threads=1)
    reference = migraphx.parse_onnx_buffer(t.data, dynamic_dims=True)
    reference.compile("ref")
    for program in (fixed, reference):
        t.check(t.step(text, 1, program))


@pytest.mark.parametrize("narrow", ["quantize_fp16", "quantize_bf16"])
def test_sixteen_bits(narrow):
    t = Text(do_rotary=1)
    p = migraphx.parse_onnx_buffer(t.data, dynamic_dims=True)
    getattr(migraphx, narrow)(p)
    p.compile("cpu", threads=1)
    text = t.step(t.start(1, 32), 9)
    feed = {"x": t.rng.standard_normal((1, 1, 64)).astype(np.float32), "lengths": np.array([9], np.int32), "total": np.array([10], np.int32)}
    ours, exact = p.run(feed | text[1])["x1"], t.p.run(feed | text[2])["x1"]
    np.testing.assert_allclose(np.asarray(ours), np.asarray(exact), rtol=0, atol=(0.01 if narrow == "quantize_fp16" else 0.08))


def test_what_does_not_fit_is_said():
    t = Text(do_rotary=1)
    done, past, _ = t.start(1, 16)
    feed = {"x": np.zeros((1, 1, 64), np.float32), "lengths": np.array([WORDS + 5], np.int32), "total": np.array([WORDS + 6], np.int32)}
    with pytest.raises(Exception, match="position"):
        t.p.run(feed | past)
    with pytest.raises(Exception, match="1 new tokens, but input 2 says 0 in total"):
        t.p.run(feed | past | {"lengths": np.array([3], np.int32), "total": np.array([0], np.int32)})


def test_plans_leave_open_what_changes_with_every_step():
    """A cache along axis 1 and a mask that is as long: the plans are for batches alone."""
    n, value = helper.make_node, helper.make_tensor_value_info
    nodes = [n("Concat", ["past", "x"], ["present"], axis=1), n("MatMul", ["x", "w"], ["h"]), n("ReduceSum", ["mask", "one"], ["m"]),
             n("Unsqueeze", ["m", "one"], ["m1"]), n("ReduceSum", ["present", "one"], ["s"]), n("Mul", ["h", "m1"], ["a"]), n("Add", ["a", "s"], ["y"])]
    w = np.random.default_rng(2).standard_normal((64, 64)).astype(np.float32)
    initial = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.array([1]), "one")]
    inputs = [value("x", FLOAT, ["B", 1, 64]), value("past", FLOAT, ["B", "P", 64]), value("mask", FLOAT, ["B", "M"])]
    outputs = [value("y", FLOAT, None), value("present", FLOAT, ["B", None, 64])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initial)
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    p, rng = migraphx.parse_onnx_buffer(data, dynamic_dims=True), np.random.default_rng(3)
    p.compile("cpu", threads=1)
    for text in range(6):
        batch = 1 + text % 2
        ours = theirs = np.zeros((batch, 0, 64), np.float32)
        for length in range(1, 40):
            feed = {"x": rng.standard_normal((batch, 1, 64)).astype(np.float32), "mask": np.ones((batch, length), np.float32)}
            results, expected = p.run(feed | {"past": ours}), session.run(None, feed | {"past": theirs})
            ours, theirs = results["present"], expected[1]
            np.testing.assert_allclose(np.asarray(results["y"]), expected[0], rtol=0, atol=2e-5 * np.abs(expected[0]).max())
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=0, atol=1e-5)
    said = p.explain()
    assert "size {2, 2, any, 2, any}: a plan of its own" in said, said
    assert int(re.search(r"(\d+) made", said)[1]) <= 8, said


def test_sizes_that_are_named_have_plans():
    t = Text(do_rotary=1)
    named = {"B": migraphx.shape.dynamic_dimension(1, 2, {1}), "T": migraphx.shape.dynamic_dimension(1, 8, {1})}
    named |= {f"P{k}{i}": migraphx.shape.dynamic_dimension(0, 300, {16}) for i in range(LAYERS) for k in "kv"}
    p = migraphx.parse_onnx_buffer(t.data, dim_params=named)
    p.compile("cpu", threads=1)
    text = t.step(t.step(t.start(1, 16), 4), 1, p)
    t.check(text)
    size = re.search(r"size {[^}]*16[^}]*}: a plan of its own, met (\d+) times", p.explain())
    assert size and int(size[1]) == 1, p.explain()


def test_batches_that_take_turns_keep_their_plans():
    t = Text(do_rotary=1)
    texts = [t.step(t.start(batch, 64), 3) for batch in (1, 2, 3)]
    for step in range(30):
        texts[step % 3] = t.step(texts[step % 3], 1)
    for text in texts:
        t.check(text)
    assert not re.search(r"size {any", t.p.explain()), t.p.explain()
