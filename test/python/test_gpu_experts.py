# SPDX-License-Identifier: MIT
"""Rows by one of several matrices each on a card, floats and numbers of 2, 4 and 8 bits with scales, against numpy's double.

The card is MGX_TEST_DEVICE, else whatever OpenCL has; without one the tests are skipped. MGX_CASES says how many of each.
"""
import os

import card  # first: it says which card
import migraphx
import numpy as np
import pytest
from test_gpu_few import packed
from test_gpu_matrix import Builder, rounded

pytestmark = card.needs_card
CASES = int(os.environ.get("MGX_CASES", "1"))
LIMIT = {"half_type": 1e-3, "bf16_type": 8e-3, "float_type": 1e-6}


def numbers(rng, experts, columns, depth, bits, block, zeros):
    """Packed matrices with scales and zero points, as operands, and what they stand for."""
    blocks = depth // block
    q = rng.integers(0, 1 << bits, (experts, columns, blocks, block))
    scale = (rng.random((experts, columns, blocks)) / (1 << bits)).astype(np.float32)
    zero = rng.integers(0, 1 << bits, scale.shape) if zeros else np.full(scale.shape, 1 << (bits - 1))
    values = (q - zero[..., None]) * scale[..., None].astype(np.float64)
    return [packed(q, bits), scale] + ([zero.astype(np.uint8)] if zeros else []), values.reshape(experts, columns, depth)


def multiplied(b, x, which, operands, per, bits):
    """The program's rows, and whether they are the kernel's."""
    x = b.param(x)
    b.feeds["which"] = which
    kind = "int32_type" if which.dtype == np.int32 else "int64_type"
    at = b.main.add_parameter("which", migraphx.shape(type=kind, lens=list(which.shape)))
    operands = [b.main.add_literal(v) if isinstance(v, np.ndarray) else v for v in operands]
    got = b.run(b.op("expert_dot", [x, at, *operands], bits=bits, per=per))
    return got, "gpu::expert_dot" in b.program.explain()


def expected(x, which, w, per):
    return np.stack([w[e] @ x[r // per] for r, e in enumerate(which)])


# Rows, how many share one of x, matrices: fewer rows than matrices, more of them than a pass takes, and rows of one matrix alone.
SIZES = [(4, 4, 9), (1, 1, 2), (6, 2, 8), (40, 2, 5), (33, 1, 1)]


@pytest.mark.parametrize("kind", list(LIMIT))
@pytest.mark.parametrize("bits, block, zeros", card.some([(2, 16, False), (4, 32, True), (8, 8, True), (4, 64, False)]))
@pytest.mark.parametrize("rows, per, experts", card.some(SIZES))
def test_numbers(rows, per, experts, bits, block, zeros, kind):
    rng = np.random.default_rng([rows, bits, block])
    depth, columns = block * int(rng.integers(1, 9)), int(rng.integers(1, 70))
    operands, w = numbers(rng, experts, columns, depth, bits, block, zeros)
    x = rng.standard_normal((rows // per, depth))
    which = rng.integers(0, experts, rows)
    got, own = multiplied(Builder(kind), x, which, operands, per, bits)
    want = expected(rounded(x, kind).astype(np.float64), which, w, per)
    assert own
    assert np.sqrt(np.mean((got - want) ** 2) / np.mean(want**2)) < LIMIT[kind]


@pytest.mark.parametrize("kind", list(LIMIT))
@pytest.mark.parametrize("rows, per, experts", card.some([(4, 4, 9), (6, 3, 7), (2, 1, 3)]))
def test_floats(rows, per, experts, kind):
    rng = np.random.default_rng([rows, experts])
    depth, columns = 8 * int(rng.integers(1, 80)), int(rng.integers(1, 70))
    x, w = rng.standard_normal((rows // per, depth)), rng.standard_normal((experts, columns, depth))
    which = rng.integers(0, experts, rows).astype(np.int32)
    b = Builder(kind)
    got, own = multiplied(b, x, which, [b.constant(w)], per, 0)
    want = expected(rounded(x, kind).astype(np.float64), which, rounded(w, kind).astype(np.float64), per)
    assert own
    assert np.sqrt(np.mean((got - want) ** 2) / np.mean(want**2)) < LIMIT[kind]


def test_a_row_that_asks_for_none_is_zero():
    """The host, which could complain, does not see the index."""
    rng = np.random.default_rng(1)
    operands, w = numbers(rng, 3, 5, 32, 4, 32, False)
    x, which = rng.standard_normal((4, 32)), np.int64([2, 7, 0, -1])
    got, own = multiplied(Builder("float_type"), x, which, operands, 1, 4)
    assert own and not got[1].any() and not got[3].any()
    np.testing.assert_allclose(got[[0, 2]], expected(x[[0, 2]], [2, 0], w, 1), rtol=1e-5, atol=1e-6)
