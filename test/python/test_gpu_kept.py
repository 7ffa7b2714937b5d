# SPDX-License-Identifier: MIT
"""Attention to caches of 8 and 4 bits as they lie, and to blocks of them, against numpy's double: the reference, and a card's kernels.

The card is MGX_TEST_DEVICE, else whatever OpenCL has; without one its tests are skipped.
"""
import card  # first: it says which card
import migraphx
import numpy as np
import pytest

targets = pytest.mark.parametrize("target", ["ref", pytest.param("gpu", marks=card.needs_card)])
NEAR = {"float_type": 2e-5, "half_type": 4e-3, "bf16_type": 3e-2}
CODES = {"half_type": 1, "float_type": 2, "bf16_type": 15}


def packed(q):
    """Numbers of 4 bits, 8 more than what they stand for, two in a byte, the first one in the lower half."""
    q = np.concatenate([q + 8, np.full(q.shape[:-1] + (q.shape[-1] % 2,), 8)], -1).astype(np.uint8)
    return q[..., 0::2] | q[..., 1::2] << 4


def cache(rng, lens, heads, bits, each):
    """What it keeps, its scales, and what they stand for."""
    q = rng.integers(-8 if bits == 4 else -128, 8 if bits == 4 else 128, lens)
    scale = (rng.random((lens[heads], lens[3]) if each else (1,)) / (4 if bits == 4 else 64)).astype(np.float32)
    spread = scale.reshape((1, lens[1], 1, lens[3]) if heads == 1 else (1, 1, lens[2], lens[3])) if each else scale
    return packed(q) if bits == 4 else q.astype(np.int8), scale, q * spread.astype(np.float64)


def attended(q, k, v, seen, scale):
    """q {tokens, size} before k and v, of which each token sees some."""
    s = np.where(seen, q @ k.T * scale, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v


def run(target, kind, op, attributes, q, rest):
    p = migraphx.program()
    main = p.get_main_module()
    feed = {f"p{i}": x for i, x in enumerate([q, *rest])}
    shape = lambda x: migraphx.shape(type=migraphx.argument(x).get_shape().type_string(), lens=list(x.shape))
    given = [main.add_parameter(n, shape(x)) for n, x in feed.items()]
    given[0] = main.add_instruction(migraphx.op("convert", target_type=CODES[kind]), [given[0]])
    y = main.add_instruction(migraphx.op(op, **attributes), given)
    main.add_return([main.add_instruction(migraphx.op("convert", target_type=2), [y])])
    p.compile(migraphx.get_target(target), offload_copy=True)
    assert target == "ref" or "gpu::cache_attention" in p.explain()
    runs = [np.array(p.run(feed)[0]) for _ in range(3)]
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])
    return runs[0]


def narrow(x, kind):
    """As the type has it; bf16 is left to the tolerance."""
    return x.astype(np.float16).astype(np.float64) if kind == "half_type" else x


# Heads of keys, queries for each, tokens, keys, size: odd ones, some that matrix units take, and more keys than a block has.
SIZES = [(2, 2, 1, 300, 64), (1, 4, 3, 70, 24), (3, 1, 1, 9, 7), (2, 1, 2, 130, 128), (1, 3, 1, 65, 5)]


@targets
@pytest.mark.parametrize("kind", list(NEAR))
@pytest.mark.parametrize("bits, each", [(8, False), (8, True), (4, False), (4, True)])
@pytest.mark.parametrize("shared, group, tokens, keys, size", card.some(SIZES))
def test_caches(shared, group, tokens, keys, size, bits, each, kind, target):
    rng = np.random.default_rng([keys, size, bits])
    ends, batch, heads = np.int64([keys - 3, tokens + 2]), 2, shared * group
    q = rng.standard_normal((batch, heads, tokens, size)).astype(np.float32)
    (kc, ks, k), (vc, vs, v) = (cache(rng, (batch, shared, keys, size), 1, bits, each) for _ in range(2))
    got = run(target, kind, "cache_attention", {"scale": size**-0.5, "kept": bits}, q, [kc, vc, ends, ks, vs])
    want, places = np.zeros(got.shape), np.arange(keys)
    for b in range(batch):
        at = ends[b] - tokens + np.arange(tokens)
        for h in range(heads):
            want[b, h] = attended(narrow(q, kind)[b, h], narrow(k, kind)[b, h // group], narrow(v, kind)[b, h // group],
                                  places <= at[:, None], size**-0.5)
    assert np.abs(got - want).max() < NEAR[kind] * np.abs(want).max()


@targets
@pytest.mark.parametrize("kind", list(NEAR))
@pytest.mark.parametrize("bits, each", [(8, True), (4, False)])
@pytest.mark.parametrize("shared, group, size, block", card.some([(2, 2, 64, 16), (1, 3, 7, 4), (2, 1, 24, 32)]))
def test_blocks(shared, group, size, block, bits, each, kind, target):
    """Two texts, of one new token and of three, whose blocks lie among others."""
    rng = np.random.default_rng([block, size, bits])
    heads, new, past, pages = shared * group, [1, 3], np.int32([37, 20]), -(-60 // block)
    table = rng.permutation(2 * pages + 2)[:2 * pages].reshape(2, pages).astype(np.int32)
    q = rng.standard_normal((1, heads, sum(new), size)).astype(np.float32)
    (kc, ks, k), (vc, vs, v) = (cache(rng, (2 * pages + 2, block, shared, size), 2, bits, each) for _ in range(2))
    sums = np.int32([0, 1, 4])
    got = run(target, kind, "paged_attention", {"scale": size**-0.5, "kept": bits}, q, [kc, vc, sums, past, table, ks, vs])
    want, places = np.zeros(got.shape), np.arange(pages * block)
    k, v = (narrow(x, kind)[table].reshape(2, pages * block, shared, size) for x in (k, v))
    for s, count in enumerate(new):
        at, own = past[s] + np.arange(count), slice(sums[s], sums[s] + count)
        for h in range(heads):
            want[0, h, own] = attended(narrow(q, kind)[0, h, own], k[s, :, h // group], v[s, :, h // group], places <= at[:, None], size**-0.5)
    assert np.abs(got - want).max() < NEAR[kind] * np.abs(want).max()
