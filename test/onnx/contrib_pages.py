# SPDX-License-Identifier: MIT
"""Cases of SparseAttention and PagedAttention for make_contrib.py.

The formula in numpy is the judge: ONNX Runtime has PagedAttention for CUDA alone, and its SparseAttention wants caches
that are written in place, which a plain run does not give it.
"""
import numpy as np

GROUPS = []
HEADS, SHARED, SIZE, BLOCK = 4, 2, 8, 16


def group(function):
    GROUPS.append(function)
    return function


def turn(x, at, tables):
    """Heads {tokens, heads, size} by the positions of their tokens."""
    if tables is None:
        return x
    a, b = np.split(x.astype(np.float64), 2, -1)
    cos, sin = (t[at][:, None].astype(np.float64) for t in tables)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def attend(q, k, v, seen, cap=0, sink=None):
    """q {tokens, heads, size}, k and v {keys, shared, size}, seen {heads or 1, tokens, keys}."""
    k, v = (np.repeat(x.astype(np.float64), q.shape[1] // x.shape[1], 1).swapaxes(0, 1) for x in (k, v))
    scores = q.astype(np.float64).swapaxes(0, 1) @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])
    scores = cap * np.tanh(scores / cap) if cap else scores
    scores = np.where(seen, scores, -np.inf)
    if sink is not None:
        scores = np.concatenate([scores, np.broadcast_to(sink[:, None, None], (*scores.shape[:2], 1))], -1)
    high = np.maximum(scores.max(-1, keepdims=True), -1e30)
    power = np.exp(scores - high)
    power = (power / np.maximum(power.sum(-1, keepdims=True), 1e-30))[..., :k.shape[1]]
    return (power @ v).swapaxes(0, 1).reshape(len(q), -1)


# --- SparseAttention ---


def sparse_blocks(layouts, count, rng):
    mask = np.tril(rng.random((layouts, count, count)) < 0.6) | np.eye(count, dtype=bool)
    rows = np.zeros((layouts, count + 1), np.int32)
    columns = np.full((layouts, mask.sum((1, 2)).max()), -1, np.int32)
    for i, layout in enumerate(mask):
        rows[i, 1:] = np.cumsum(layout.sum(1))
        columns[i, :rows[i, -1]] = np.nonzero(layout)[1]
    return mask, rows, columns


@group
def sparse(c):
    room = 4 * BLOCK
    angles = c.rand(room, SIZE // 2)
    for name, tokens, totals in (("prompt", 40, (40, 40)), ("step", 1, (20, 33)), ("chunk", 5, (21,))):
        for layouts, tables, packed in ((1, None, False), (2, (np.cos(angles), np.sin(angles)), True)):
            batch = len(totals)
            mask, rows, columns = sparse_blocks(layouts, room // BLOCK, c.GENERATOR)
            new = [c.rand(batch, tokens, h * SIZE) for h in (HEADS, SHARED, SHARED)]
            past = [c.rand(batch, SHARED, room, SIZE) for _ in range(2)]
            y = np.zeros((batch, tokens, HEADS * SIZE))
            present = [np.zeros_like(p) for p in past]
            for b, total in enumerate(totals):
                at = total - tokens + np.arange(tokens)
                q, k, v = (x[b].reshape(tokens, -1, SIZE) for x in new)
                q, k = turn(q, at, tables), turn(k, at, tables)
                both = [np.concatenate([p[b, :, :at[0]].swapaxes(0, 1), x]) for p, x in zip(past, (k, v))]
                for p, x in zip(present, both):
                    p[b, :, :total] = x.swapaxes(0, 1)
                blocks = mask[np.arange(HEADS) % layouts][:, at // BLOCK][:, :, np.arange(total) // BLOCK]
                y[b] = attend(q, *both, blocks & (np.arange(total) <= at[:, None]))
            first = [np.concatenate(new, -1), None, None] if packed else new
            c.case(f"sparse_{name}_{layouts}", "SparseAttention",
                   [*first, *past, rows, columns, np.array([max(totals)], np.int32), np.array(totals, np.int32),
                    *(tables or [])], constants=(5, 6, 7), expect=[y, *present], num_heads=HEADS, kv_num_heads=SHARED,
                   sparse_block_size=BLOCK, do_rotary=int(tables is not None))


# --- PagedAttention ---


def paged_case(c, name, new, past, tables=None, packed=False, window=-1, cap=0.0, sink=None, skip=False, norm=None,
               causal=True, kept=None):
    """new, past: tokens of each text. skip: the last token is not stored. kept: scales of caches of 8 bits."""
    texts, tokens, block, pages = len(new), sum(new), 4, 4
    table = c.GENERATOR.permutation(texts * pages).reshape(texts, pages).astype(np.int32)
    given = [c.rand(tokens, h * SIZE) for h in (HEADS, SHARED, SHARED)]
    store = [c.rand(texts * pages, block, SHARED, SIZE) for _ in range(2)]
    if kept is not None:
        store = [c.ints(-100, 100, *s.shape, dtype=np.int8) for s in store]
    out, y, slots, at = [s.copy() for s in store], np.zeros((tokens, HEADS * SIZE)), [], 0
    for s, (count, before) in enumerate(zip(new, past)):
        place = before + np.arange(count)
        q, k, v = (x[at:at + count].reshape(count, -1, SIZE).astype(np.float64) for x in given)
        if norm is not None:
            q, k = (x / np.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6) * w for x, w in zip((q, k), norm))
        q, k = turn(q, place, tables), turn(k, place, tables)
        row = table[s, place // block] * block + place % block
        if skip and s == texts - 1:
            row[-1] = -1
        slots += row.tolist()
        for cache, x in zip(out, (k, v)):
            x = x if kept is None else np.clip(np.rint(x / kept), -128, 127)
            cache.reshape(-1, SHARED, SIZE)[row[row >= 0]] = x[row >= 0]
        every = np.arange(before + count)
        where = table[s, every // block] * block + every % block
        k, v = (cache.reshape(-1, SHARED, SIZE)[where] * (1 if kept is None else np.float64(kept)) for cache in out)
        seen = every <= (place[:, None] if causal else every[-1])
        seen = seen & (every > place[:, None] - window) if window > 0 else seen
        y[at:at + count] = attend(q, k, v, seen[None], cap, sink)
        at += count
    first = [np.concatenate(given, -1), None, None] if packed else given
    sums = np.concatenate([[0], np.cumsum(new)]).astype(np.int32)
    inputs = [*first, *store, sums, np.array(past, np.int32), table, *(tables or [None, None]),
              np.array(slots, np.int32) if skip else None, sink, *(norm or [None, None]),
              *([np.array([kept], np.float32)] * 2 if kept is not None else [])]
    while inputs[-1] is None:
        inputs.pop()
    more = {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR"} if kept is not None else {}
    c.case(f"paged_{name}", "PagedAttention", inputs, expect=[y, *out], num_heads=HEADS, kv_num_heads=SHARED,
           local_window_size=window, softcap=cap, do_rotary=int(tables is not None), is_causal=int(causal), **more)


@group
def pages(c):
    angles = c.rand(16, SIZE // 2)
    tables = [np.cos(angles), np.sin(angles)]
    paged_case(c, "step", (1, 1, 1), (5, 0, 9))
    paged_case(c, "prompt", (7, 9, 12), (0, 0, 0), tables)
    paged_case(c, "mixed", (1, 6, 1), (7, 3, 0), tables, packed=True)
    paged_case(c, "window", (3, 8), (6, 0), tables, window=4, cap=2.0)
    paged_case(c, "sink", (1, 1), (6, 3), sink=c.rand(HEADS))
    paged_case(c, "sink_prompt", (6, 5), (2, 3), sink=c.rand(HEADS))
    paged_case(c, "skipped", (2, 6), (3, 2), skip=True)
    paged_case(c, "normed", (2, 4), (3, 0), tables, norm=[c.rand(SIZE), c.rand(SIZE)])
    paged_case(c, "both_ways", (3, 5), (2, 1), causal=False)
    paged_case(c, "bytes", (1, 1), (6, 3), kept=0.02)
    paged_case(c, "bytes_prompt", (5, 6), (0, 3), kept=0.02)
