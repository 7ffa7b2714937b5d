# SPDX-License-Identifier: MIT
"""Heads turned by their positions, written out as exporters do, on a card: one kernel for each of queries and keys, compared with numpy."""
from card import needs_card, some  # first: it says which card
import migraphx
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytestmark = needs_card
BATCH, TOKENS, HEADS, WIDTH = 2, 6, 3, 8


def tables(size, neighbours, tokens):
    angles = np.outer(np.arange(tokens) + 1, 1 / 100 ** (np.arange(size // 2) / (size // 2)))
    whole = np.repeat(angles, 2, axis=1) if neighbours else np.concatenate([angles, angles], axis=1)
    return np.cos(whole).astype(np.float32), np.sin(whole).astype(np.float32)


class Graph:
    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, value):
        self.constants.append(numpy_helper.from_array(value, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def __call__(self, op, *inputs, **attributes):
        self.nodes.append(helper.make_node(op, list(inputs), [f"v{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def slice(self, x, axis, start, end, step=1):
        return self("Slice", x, *(self.constant(np.array([v])) for v in (start, end, axis, step)))


def turned(g, x, size, neighbours, cos, sin):
    """x cos + turned(x) sin"""
    if neighbours:
        odd, even = g.slice(x, 3, 1, size, 2), g.slice(x, 3, 0, size, 2)
        last = g.constant(np.array([-1]))
        pair = g("Concat", g("Unsqueeze", g("Neg", odd), last), g("Unsqueeze", even, last), axis=-1)
        other = g("Reshape", pair, g.constant(np.array([BATCH, HEADS, -1, size])))
    else:
        other = g("Concat", g("Neg", g.slice(x, 3, size // 2, size)), g.slice(x, 3, 0, size // 2), axis=-1)
    return g("Add", g("Mul", x, g.constant(cos)), g("Mul", other, g.constant(sin)))


def model(weights, size, neighbours, front):
    """Of queries, keys and values side by side the first two, heads in front of tokens; the first `front` tokens as they are."""
    g = Graph()
    cos, sin = tables(size, neighbours, TOKENS - front)
    sides = g("Reshape", g("MatMul", "x", g.constant(weights)), g.constant(np.array([BATCH, TOKENS, 3, HEADS, size])))
    parts = g("Transpose", sides, perm=[2, 0, 3, 1, 4])
    results = []
    for which in range(2):
        q = g("Squeeze", g.slice(parts, 0, which, which + 1), g.constant(np.array([0])))
        y = turned(g, g.slice(q, 2, front, TOKENS), size, neighbours, cos, sin)
        results.append(g("Concat", g.slice(q, 2, 0, front), y, axis=2) if front else g("Identity", y))
    shape = [BATCH, TOKENS, WIDTH]
    graph = helper.make_graph(g.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(r, TensorProto.FLOAT, None) for r in results], g.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def expected(x, size, neighbours, front):
    cos, sin = tables(size, neighbours, TOKENS - front)
    for which in range(2):
        q = x[:, :, which].transpose(0, 2, 1, 3).astype(np.float64)
        y = q[:, :, front:]
        if neighbours:
            other = np.stack([-y[..., 1::2], y[..., ::2]], axis=-1).reshape(y.shape)
        else:
            other = np.concatenate([-y[..., size // 2:], y[..., :size // 2]], axis=-1)
        yield np.concatenate([q[:, :, :front], y * cos + other * sin], axis=2)


@pytest.mark.parametrize("size,neighbours,front,half", some([(16, True, 1, True), (12, False, 0, False), (16, False, 2, True), (16, True, 0, False),
                                                             (6, True, 0, False), (16, False, 0, True), (16, True, 0, True)]))
def test_written_out(size, neighbours, front, half):
    rng = np.random.default_rng(size + front)
    weights = (rng.standard_normal((WIDTH, 3 * HEADS * size)) / 3).astype(np.float32)
    text = model(weights, size, neighbours, front)
    p = migraphx.parse_onnx_buffer(text)
    if half:
        migraphx.quantize_fp16(p)
    p.compile(migraphx.get_target("gpu"))
    steps = [line for line in p.explain().splitlines() if line.startswith("main:")]
    assert sum("gpu::rotary_embedding (" in line for line in steps) == 2 and not any(" concat:" in line for line in steps), steps
    assert len({line.split()[0] for line in steps if " pointwise:" in line}) == half, steps  # what comes in becomes half
    x = rng.standard_normal((BATCH, TOKENS, WIDTH)).astype(np.float32)
    sides = (x @ weights).reshape(BATCH, TOKENS, 3, HEADS, size)
    for mine, theirs in zip(p.run({"x": x}), expected(sides, size, neighbours, front), strict=True):
        assert np.abs(np.array(mine) - theirs).max() < (8e-3 if half else 4e-6)
