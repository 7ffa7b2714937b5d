# SPDX-License-Identifier: MIT
"""Operators of classic machine learning and of language models, by their definitions."""
import math

import numpy as np
from make_cases import D, FLOATS, T

from reference.convolution import braces

# --- label_encoder ---


def labels(w):
    x = T("int64", [[1, 5], [-3, 7]])
    w.case("label_encoder[keys_int64s={1, -3, 5},values_strings={one, minus, five},default_string=none]", [x],
           [["one", "five"], ["minus", "none"]], "string")
    w.case("label_encoder[keys_int64s={1, -3},values_floats={0.5, 1.5}]", [x], [[0.5, -0.0], [1.5, -0.0]], "float")
    w.case("label_encoder[keys_int64s={1, 1},values_int64s={4, 9}]", [x], [[9, -1], [-1, -1]], "int64")
    w.case("label_encoder[keys_int64s={1, 7},values_int64s={4, 9},default_int64=-7]", [T("int32", x.a)],
           [[4, -7], [-7, 9]], "int64")
    s = T("string", ["a", "", "bc", "zz"])
    w.case("label_encoder[keys_strings={bc, a},values_int64s={7, 8}]", [s], [8, -1, 7, -1], "int64")
    w.case("label_encoder[keys_strings={bc, a},values_strings={x, y}]", [s], ["y", "_Unused", "x", "_Unused"], "string")
    w.case("label_encoder[keys_strings={bc, a},values_int64s={7, 8},out_type=7]", [s], [8, -1, 7, -1], "int16")
    f = T("float", [0.1, math.nan, -0.0, 2.5])
    w.case("label_encoder[keys_floats={0.1, nan, 0},values_int64s={1, 2, 3}]", [f], [1, 2, 3, -1], "int64")
    w.case("label_encoder[keys_floats={0.1, nan, 0},values_floats={1, 2, 3},default_float=9,out_type=3]",
           [T("double", f.raw.astype(float))], [9, 2, 3, 9], "double")
    w.case("label_encoder", [f], [-0.0] * 4, "float")
    w.case("label_encoder[keys_strings={a},values_int64s={1}]", [D("float", 2)], fails="keys do not go with an input of float_type")
    w.case("label_encoder[keys_strings={a, b},values_int64s={1}]", [D("string", 2)], fails="2 keys for 1 values")
    w.case("label_encoder[keys_strings={a},keys_int64s={1},values_int64s={1, 2}]", [D("string", 2)], fails="2 lists of keys and 1 of values")
    w.case("label_encoder[keys_strings={a},values_int64s={1},out_type=25]", [D("string", 2)], fails="values do not go with a result of string_type")
    w.case("label_encoder[keys_strings={a},values_int64s={1}]", [D("string", (1, 3))], shape="dynamic, int64_type, {[1..3]}")


# --- tfidf_vectorizer ---


def tfidf_reference(rows, mode, low, high, skip, counts, indexes, pool, weights):
    grams, at = [], 0
    for n, begin in enumerate(counts, 1):
        end = counts[n] if n < len(counts) else len(pool)
        grams += [tuple(pool[i:i + n]) for i in range(begin, end, n)]
    y = np.zeros((len(rows), max(indexes) + 1))
    for row, out in zip(rows, y):
        for n in range(low, high + 1):
            for step in range(1, (1 if n == 1 else skip + 1) + 1):
                for i in range(len(row) - (n - 1) * step):
                    gram = tuple(row[i:i + n * step:step])
                    for k, known in enumerate(grams):
                        if gram == known:
                            weight = weights[k] if weights else 1
                            out[indexes[k]] = (out[indexes[k]] + 1 if mode == "TF" else weight if mode == "IDF"
                                               else out[indexes[k]] + weight)
    return y


def vectorizers(w):
    pool = [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]
    for mode in ("TF", "IDF", "TFIDF"):
        for low, high, skip in [(1, 1, 0), (2, 2, 0), (1, 2, 0), (2, 2, 5), (1, 2, 2)]:
            for weights in ([], [0.5, 2, 3, 1, 4, 0.25, 7]):
                text = (f"mode={mode},min_gram_length={low},max_gram_length={high},max_skip_count={skip},"
                        f"ngram_counts={{0, 4}},ngram_indexes={{0, 6, 2, 3, 4, 5, 1}}")
                text += f",weights={braces(weights)}" if weights else ""
                rest = (mode, low, high, skip, [0, 4], [0, 6, 2, 3, 4, 5, 1], pool, weights)
                x = w.random("int64", (2, 12), 2, 8)
                w.case(f"tfidf_vectorizer[{text},pool_int64s={braces(pool)}]", [x],
                       tfidf_reference(x.a.tolist(), *rest), "float")
    x = T("int32", [5, 6, 7, 8, 6, 7])
    text = "mode=TF,min_gram_length=3,max_gram_length=3,max_skip_count=1,ngram_counts={0, 0, 0},ngram_indexes={0, 1}"
    w.case(f"tfidf_vectorizer[{text},pool_int64s={{5, 6, 7, 6, 8, 7}}]", [x],
           tfidf_reference([x.a.tolist()], "TF", 3, 3, 1, [0, 0, 0], [0, 1], [5, 6, 7, 6, 8, 7], [])[0], "float")
    s = T("string", [["a", "b", "a", "c"]])
    text = "min_gram_length=1,max_gram_length=2,ngram_counts={0, 2},ngram_indexes={0, 1, 2}"
    w.case(f"tfidf_vectorizer[{text},pool_strings={{a, c, a, b}}]", [s], [[2, 1, 1]], "float")
    w.case(f"tfidf_vectorizer[{text},pool_strings={{a, c, a, b}}]", [T("string", np.zeros((2, 0), dtype=object))], np.zeros((2, 3)), "float")
    op, x = "tfidf_vectorizer[%s]", D("int64", (1, 4), 5)
    good = "ngram_counts={0},ngram_indexes={0, 4},pool_int64s={7, 8}"
    w.case(op % good, [x], shape="dynamic, float_type, {[1..4], 5}")
    w.case(op % "ngram_counts={1},ngram_indexes={0},pool_int64s={7, 8}", [x], fails="ngram_counts must begin with 0")
    w.case(op % "ngram_counts={0, 1},ngram_indexes={0},pool_int64s={7, 8}", [x], fails="2-grams from 1 to 2 in a pool of 2")
    w.case(op % "ngram_counts={0, 9},ngram_indexes={0},pool_int64s={7, 8}", [x], fails="1-grams from 0 to 9 in a pool of 2")
    w.case(op % "ngram_counts={0},ngram_indexes={0},pool_int64s={7, 8}", [x], fails="2 n-grams, 1 indexes, 0 weights")
    w.case(op % "ngram_counts={0},ngram_indexes={0, -1},pool_int64s={7, 8}", [x], fails="index -1 is out of range")
    w.case(op % (good + ",weights={1}"), [x], fails="2 n-grams, 2 indexes, 1 weights")
    w.case(op % (good + ",max_gram_length=2"), [x], fails="with 1 lengths in the pool")
    w.case(op % (good + ",max_skip_count=-1"), [x], fails="skipping up to -1")
    w.case(op % good, [D("string", 3)], fails="the pool does not go with an input of string_type")


# --- tree_ensemble ---


def trees(w):
    #      0: f0 <= 1 ? node 1 : leaf 0         3: f1 > 0 ? leaf 3 : leaf 1
    #      1: f1 <  2 ? leaf 1 : node 2         4: f0 == 2 ? leaf 2 : leaf 4
    #      2: f0 >= 0 ? leaf 2 : leaf 3
    nodes = ("nodes_modes={0, 1, 2, 3, 4},nodes_features={0, 1, 0, 1, 0},nodes_splits={1, 2, 0, 0, 2},"
             "nodes_true={1, -2, -3, -4, -3},nodes_false={-1, 2, -4, -2, -5},nodes_missing={1, 0, 0, 1, 0},"
             "roots={0, 3, 4},leaf_begin={0, 1, 2, 4, 5, 5},leaf_targets={0, 1, 0, 1, 1},"
             "leaf_weights={1.5, 2, -1, 4, 0.5},targets=2")
    weights = {0: [(0, 1.5)], 1: [(1, 2)], 2: [(0, -1), (1, 4)], 3: [(1, 0.5)], 4: []}

    def leaves(a, b):
        nan = math.nan
        first = 0 if not (a <= 1 or a != a) else 1 if b < 2 else 2 if a >= 0 else 3
        return [first, 3 if b > 0 or b != b else 1, 2 if a == 2 else 4]

    def gather(x, aggregate, base=(0, 0)):
        y = []
        for a, b in x:
            found = [[v for leaf in leaves(a, b) for t, v in weights[leaf] if t == target] for target in (0, 1)]
            pick = {"sum": sum, "average": lambda v: sum(v) / 3, "min": lambda v: min(v, default=0),
                    "max": lambda v: max(v, default=0)}[aggregate]
            y.append([pick(v) + c for v, c in zip(found, base)])
        return np.array(y)

    for type in ("float", "double"):
        x = T(type, [[0, 0], [1, 3], [2, 1], [-1, 5], [2, -1], [math.nan, 3], [0, math.nan], [1.5, 2]])
        for aggregate in ("sum", "average", "min", "max"):
            w.case(f"tree_ensemble[{nodes},aggregate={aggregate}]", [x], gather(x.a, aggregate))
        y = gather(x.a, "sum", (0.25, -1))
        base = f"tree_ensemble[{nodes},aggregate=sum,base_values={{0.25, -1}},post_transform="
        e = np.exp(y - y.max(1, keepdims=True))
        w.case(base + "logistic]", [x], 1 / (1 + np.exp(-y)))
        w.case(base + "softmax]", [x], e / e.sum(1, keepdims=True))
        zero = np.where(y == 0, 0, e)
        w.case(base + "softmax_zero]", [x], zero / zero.sum(1, keepdims=True))
    w.case(f"tree_ensemble[{nodes}]", [T("int32", [[0, 0], [2, 3]])], gather([[0, 0], [2, 3]], "sum"), "float")
    one = ("nodes_modes={},nodes_features={},nodes_splits={},nodes_true={},nodes_false={},roots={-1},"
           "leaf_begin={0, 1},leaf_targets={0},leaf_weights={%s},post_transform=probit")
    for p, z in [(0.5, 0), (0.975, 1.959963984540054), (0.001, -3.090232306167813), (1e-9, -5.997807015008182),
                 (1, math.inf), (0, -math.inf), (2, math.nan)]:
        w.case(f"tree_ensemble[{one % p}]", [T("double", [[1]])], [[z]], tol=(1e-9, 1e-9))
    member = ("nodes_modes={6, 6},nodes_features={0, 0},nodes_splits={0, 3},nodes_true={-1, -2},nodes_false={1, -3},"
              "roots={0},leaf_begin={0, 1, 2, 3},leaf_targets={0, 0, 0},leaf_weights={10, 20, 30},"
              "members={1.5, 4, nan, 12, 7}")
    w.case(f"tree_ensemble[{member}]", [T("float", [[1.5], [4], [12], [7], [5], [math.nan]])],
           [[10], [10], [20], [20], [30], [30]])
    w.case(f"tree_ensemble[{nodes}]", [T("float", np.zeros((0, 2)))], np.zeros((0, 2)))
    w.case(f"tree_ensemble[{nodes}]", [D("half", (1, 9), 2)], shape="dynamic, half_type, {[1..9], 2}")
    tiny = ("nodes_modes={%s},nodes_features={%s},nodes_splits={0},nodes_true={%s},nodes_false={-1},roots={%s},"
            "leaf_begin={0, %s},leaf_targets={%s},leaf_weights={1},targets=%s")
    x = D("float", 3, 2)
    for values, text in [((7, 0, -1, 0, 1, 0, 1), "mode of node 0 is 7"), ((0, 2, -1, 0, 1, 0, 1), "feature of node 0 is 2"),
                         ((0, -1, -1, 0, 1, 0, 1), "feature of node 0 is -1"), ((0, 0, 0, 0, 1, 0, 1), "child of node 0 is 0"),
                         ((0, 0, -3, 0, 1, 0, 1), "child of node 0 is -3"), ((0, 0, -1, 1, 1, 0, 1), "root 0 is 1"),
                         ((0, 0, -1, 0, 2, 0, 1), "leaf_begin 1 is 2"), ((0, 0, -1, 0, 1, 1, 1), "leaf target 0 is 1"),
                         ((0, 0, -1, 0, 1, 0, 0), "0 targets"), ((6, 0, -1, 0, 1, 0, 1), "begins its members at 0 of 0")]:
        w.case(f"tree_ensemble[{tiny % values}]", [x], fails=text)
    w.case("tree_ensemble[leaf_begin={0},leaf_targets={0}]", [x], fails="1 leaf targets, 0 weights, 1 begins")
    unequal = ("nodes_modes={5},nodes_features={1},nodes_splits={3},nodes_true={-1},nodes_false={-2},roots={0},"
               "leaf_begin={0, 1, 2},leaf_targets={0, 0},leaf_weights={1, 2}")
    w.case(f"tree_ensemble[{unequal}]", [T("float", [[0, 3], [0, 4]])], [[2], [1]])
    w.case(f"tree_ensemble[{unequal.replace('{-2}', '{-9}')}]", [x], fails="child of node 0 is -9")
    w.case("tree_ensemble[nodes_modes={0},leaf_begin={0}]", [x], fails="1 modes, 0 features")


# --- language models ---


def rotary(x, positions, cos, sin, heads, interleaved):
    y, half = x.copy(), cos.shape[1]
    for b, h, s in np.ndindex(x.shape[0], heads, x.shape[2]):
        for i in range(half):
            p, q = (2 * i, 2 * i + 1) if interleaved else (i, half + i)
            c, d = cos[positions[b][s], i], sin[positions[b][s], i]
            y[b, h, s, p] = x[b, h, s, p] * c - x[b, h, s, q] * d
            y[b, h, s, q] = x[b, h, s, q] * c + x[b, h, s, p] * d
    return y


def attention(w):
    for type in FLOATS:
        for interleaved in (0, 1):
            for steps, turned in [(3, 4), (1, 4), (1, 2), (2, 0)]:
                x = w.random(type, (2, 2 + 2, steps, 4))
                cos, sin = w.random(type, (6, turned // 2), -1, 1), w.random(type, (6, turned // 2), -1, 1)
                lens = T("int32", [[4], [2]])
                positions = lens.a.tolist() if steps == 1 else [list(range(steps))] * 2
                w.case(f"gqa_rotary_embedding[num_heads=2,kv_num_heads=1,interleaved={interleaved}]", [x, lens, cos, sin],
                       rotary(x.a, positions, cos.a, sin.a, 3, interleaved))
    op = "gqa_rotary_embedding[num_heads=1,kv_num_heads=1]"
    x, table = T("float", np.ones((1, 3, 1, 4))), T("float", np.ones((2, 2)))
    for bad in (2, -1):
        w.case(op, [x, T("int64", [bad]), table, table], aborts=f"position {bad} is out of range for a table of 2")
    w.case("gqa_rotary_embedding[num_heads=-1]", [D("float", 1, 1, 1, 4), D("int64", 1), D("float", 2, 2), D("float", 2, 2)], fails="-1 and 1 heads")
    w.case(op, [D("half", 1, 3, 1, 4), D("int64", 1), D("float", 2, 2), D("float", 2, 2)], fails="Types do not match")
    w.case(op, [T("float", np.zeros((0, 3, 1, 4))), T("int64", np.zeros(0)), table, table], np.zeros((0, 3, 1, 4)))
    w.case(op, [D("float", 1, 4, 1, 4), D("int64", 1), D("float", 2, 2), D("float", 2, 2)], fails="axis 1 of input 0 has length 4, expected 3")
    w.case(op, [D("float", 1, 3, 1, 4), D("int64", 1), D("float", 2, 3), D("float", 2, 3)], fails="axis 1 of input 2 has length 3, expected 2")
    w.case(op, [D("float", 1, 3, 1, 4), D("int64", 2), D("float", 2, 2), D("float", 2, 2)], fails="axis 0 of input 1 has length 2")
    w.case(op, [D("float", 1, 3, 1, 4), D("int64", 1), D("float", 2, 2), D("float", 3, 2)], fails="Dimensions do not match")
    w.case(op, [D("float", (1, 4), 3, (1, 8), 4), D("int64", (1, 4)), D("float", 9, 2), D("float", 9, 2)],
           shape="dynamic, float_type, {[1..4], 3, [1..8], 4}")

    for type in ("float", "half", "int8"):
        past = w.random(type, (3, 2, 5, 3))
        one, many = w.random(type, (3, 2, 1, 3)), w.random(type, (3, 2, 4, 3))
        y = past.a.copy()
        y[0, :, 4], y[2, :, 0] = one.a[0, :, 0], one.a[2, :, 0]
        w.case("concat_past_present[kv_num_heads=2]", [one, T("int32", [4, -1, 0]), past], y)
        y = past.a.copy()
        y[0, :, 2] = one.a[0, :, 0]
        w.case("concat_past_present[kv_num_heads=2]", [one, T("int64", [[2], [5], [7]]), past], y)
        y = past.a.copy()
        y[:, :, :4] = many.a
        w.case("concat_past_present[kv_num_heads=2]", [many, T("int32", [4, 4, 4]), past], y)
    op = "concat_past_present"
    w.case(op, [D("float", 1, 2, 6, 3), D("int32", 1), D("float", 1, 2, 5, 3)], fails="Dimensions do not match")
    w.case(op, [D("float", 1, 2, 1, 3), D("int32", 1, 2), D("float", 1, 2, 5, 3)], fails="Dimensions do not match")
    w.case(op, [D("float", 1, 2, 1, 3), D("int32", 2), D("float", 1, 2, 5, 3)], fails="Dimensions do not match")
    w.case(op, [D("half", 1, 2, 1, 3), D("int32", 1), D("float", 1, 2, 5, 3)], fails="Types do not match")
    w.case(op, [D("float", 1, 2, (1, 8), 3), D("int32", 1), D("float", 1, 2, 5, 3)], shape="float_type, {1, 2, 5, 3}, {30, 15, 3, 1}")


# --- rotary_embedding, cache_append, cache_attention ---


def turned(x, cos, sin, at, interleaved):
    y, half = x.copy(), cos.shape[1]
    c, s = cos[at][:, None], sin[at][:, None]
    first, second = (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (slice(0, half), slice(half, 2 * half))
    a, b = x[..., first], x[..., second]
    y[..., first], y[..., second] = a * c - b * s, b * c + a * s
    return y


def appended(now, ends, total, past):
    batch, heads, tokens, size = now.shape
    room = past.shape[2] if past is not None else 0
    y = np.zeros((batch, heads, max(room, total), size))
    for b in range(batch):
        before = max(ends[b] - tokens, 0)
        kept = min(before, room)
        if kept:
            y[b, :, :kept] = past[b, :, :kept]
        fits = max(min(tokens, y.shape[2] - before), 0)
        y[b, :, before:before + fits] = now[b, :, :fits]
    return y


def attended(q, k, v, ends, scale=1.0, cap=0.0, window=0, bias=None, sink=None):
    batch, heads, tokens, _ = q.shape
    y = np.zeros((batch, heads, tokens, v.shape[3]))
    for b in range(batch):
        for h in range(heads):
            shared = h * k.shape[1] // heads
            for i in range(tokens):
                at = max(ends[b] - tokens, 0) + i
                seen = [j for j in range(k.shape[2]) if j <= at and (not window or at - j < window)]
                s = np.array([scale * q[b, h, i] @ k[b, shared, j] for j in seen])
                s = cap * np.tanh(s / cap) if cap else s
                if bias is not None:
                    s = s + np.broadcast_to(bias, (batch, heads, tokens, bias.shape[3]))[b, h, i, seen]
                p = np.exp(s)
                total = p.sum() + (np.exp(sink[h]) if sink is not None else 0)
                y[b, h, i] = (p @ v[b, shared, seen]) / total if total else 0
    return y


def caches(w):
    op = "rotary_embedding"
    for name in FLOATS:
        x, cos, sin = (w.random(name, s) for s in ((2, 3, 2, 5), (9, 2), (9, 2)))
        y = turned(x.a, cos.a, sin.a, np.array([[0, 1], [5, 6]]), False)
        w.case(op, [x, cos, sin, T("int64", [1, 7])], y)
        y = turned(x.a, cos.a, sin.a, np.array([[3, 0], [0, 8]]), True)
        w.case(op + "[interleaved=1]", [x, cos, sin, T("int32", [[3, -1], [0, 8]])], y)
    w.case(op, [D("float", 2, 3, 2, 5), D("float", 9, 3), D("float", 9, 3), D("int64", 2)], fails="axis 1 of input 1 has length 3, expected 2")
    w.case(op, [D("float", 2, 3, 2, 5), D("float", 9, 2), D("half", 9, 2), D("int64", 2)], fails="Types do not match")
    w.case(op, [D("float", 2, 3, 2, 5), D("float", 9, 2), D("float", 9, 2), D("int64", 3)], fails="axis 0 of input 3 has length 3, expected 2")
    w.case(op, [w.random("float", (1, 1, 2, 4)), w.random("float", (3, 2)), w.random("float", (3, 2)), T("int64", [4])], aborts="position 3 is out of range")
    op = "cache_append"
    for name in FLOATS + ["int8"]:
        now, past = w.random(name, (3, 2, 2, 3)), w.random(name, (3, 2, 4, 3))
        for ends, total in (([2, 6, 4], 6), ([2, 4, 3], 4), ([0, 9, 6], 5)):
            ends = [min(e, 2 + total) for e in ends]
            y = appended(now.a, ends, total, past.a)
            w.case(op, [now, T("int32", ends), T("int32", [total]), past], y, name)
        w.case(op, [now, T("int64", [2, 3, 1]), T("int64", 3)], appended(now.a, [2, 3, 1], 3, None), name)
    w.case(op, [D("float", 3, 2, 2, 3), D("int32", 3), T("int32", [1], known=True)], fails="2 new tokens, but input 2 says 1 in total")
    w.case(op, [D("float", 3, 2, 2, 3), D("int32", 2), D("int32", 1)], fails="axis 0 of input 1 has length 2, expected 3")
    w.case(op, [D("float", 3, 2, 2, 3), D("int32", 3), D("int32", 1), D("half", 3, 2, 4, 3)], fails="Types do not match")
    w.case(op, [D("float", 3, 2, 2, 3), D("int32", 3), D("int32", 1), D("float", 3, 2, 4, 3)],
           shape="dynamic, float_type, {3, 2, [4..], 3}")
    op = "cache_attention"
    for name in FLOATS:
        q, k, v = (w.random(name, s) for s in ((2, 4, 2, 3), (2, 2, 6, 3), (2, 2, 6, 5)))
        sink, bias = w.random(name, (4,)), w.random(name, (1, 4, 1, 7))
        tol = {"tol": (0.02, 0.02)} if name in ("half", "bf16") else {}
        for ends in ([3, 6], [1, 9]):
            w.case(op + "[scale=0.5]", [q, k, v, T("int64", ends)], attended(q.a, k.a, v.a, ends, 0.5), name, **tol)
            w.case(op + "[scale=0.5,cap=2,window=2,sink=1]", [q, k, v, T("int32", ends), sink],
                   attended(q.a, k.a, v.a, ends, 0.5, 2.0, 2, None, sink.a), name, **tol)
            w.case(op + "[bias=1]", [q, k, v, T("int32", ends), bias], attended(q.a, k.a, v.a, ends, 1.0, 0.0, 0, bias.a), name, **tol)
    q, k = D("float", 2, 4, 2, 3), D("float", 2, 2, 6, 3)
    w.case(op, [q, k, k, D("int32", 3)], fails="axis 0 of input 3 has length 3, expected 2")
    w.case(op, [q, D("float", 2, 3, 6, 3), D("float", 2, 3, 6, 3), D("int32", 2)], fails="4 query heads do not share 3 key heads")
    w.case(op + "[bias=1]", [q, k, k, D("int32", 2)], fails="Wrong number of arguments")
    w.case(op, [D("float", 2, 4, (1, 2), 3), D("float", 2, 2, (1, 9), 3), D("float", 2, 2, (1, 9), 5), D("int32", 2)],
           shape="dynamic, float_type, {2, 4, [1..2], 5}")


# --- paged_append, paged_attention ---


def attended_pages(q, k, v, counts, past, table, scale=1.0, cap=0.0, window=0, sink=None, whole=False):
    """Each text's rows are gathered by its table; `counts` has its new tokens."""
    block, at, out = k.shape[1], 0, np.zeros((1, *q.shape[1:3], v.shape[3]))
    for s, count in enumerate(counts):
        keys = [(j, table[s][j // block], j % block) for j in range(len(table[s]) * block)]
        for i in range(count):
            place = past[s] + i
            last = past[s] + count - 1 if whole else place
            seen = [(b, r) for j, b, r in keys if j <= last and (not window or place - j < window) and 0 <= b < len(k)]
            for h in range(q.shape[1]):
                head = h * k.shape[2] // q.shape[1]
                f = np.array([scale * q[0, h, at + i] @ k[b, r, head] for b, r in seen])
                p = np.exp(cap * np.tanh(f / cap) if cap else f)
                total = p.sum() + (np.exp(sink[h]) if sink is not None else 0)
                values = np.array([v[b, r, head] for b, r in seen]).reshape(-1, v.shape[3])
                out[0, h, at + i] = p @ values / total if total else 0
        at += count
    return out


def pages(w):
    op = "paged_append"
    for name in FLOATS + ["int8"]:
        now, past = w.random(name, (1, 2, 4, 3)), w.random(name, (3, 2, 2, 3))
        y = past.a.copy().reshape(6, 2, 3)
        for t, row in enumerate([5, -1, 0, 6]):
            if 0 <= row < 6:
                y[row] = now.a[0, :, t]
        w.case(op, [now, T("int64", [5, -1, 0, 6]), past], y.reshape(3, 2, 2, 3), name)
    w.case(op, [D("float", 2, 2, 4, 3), D("int64", 4), D("float", 3, 2, 2, 3)], fails="axis 0 of input 0 has length 2, expected 1")
    w.case(op, [D("float", 1, 3, 4, 3), D("int64", 4), D("float", 3, 2, 2, 3)], fails="axis 1 of input 0 has length 3, expected 2")
    w.case(op, [D("float", 1, 2, 4, 3), D("int64", 5), D("float", 3, 2, 2, 3)], fails="axis 0 of input 1 has length 5, expected 4")
    w.case(op, [D("half", 1, 2, 4, 3), D("int64", 4), D("float", 3, 2, 2, 3)], fails="Types do not match")
    w.case(op, [D("float", 1, 2, (1, 9), 3), D("int64", (1, 9)), D("float", 3, 2, 2, 3)], shape="float_type, {3, 2, 2, 3}, {12, 6, 3, 1}")
    op = "paged_attention"
    table = [[4, 2, 9], [-1, 1, 0], [3, 5, 1]]
    for name in FLOATS:
        k, v, sink = w.random(name, (6, 2, 2, 3)), w.random(name, (6, 2, 2, 5)), w.random(name, (4,))
        tol = {"tol": (0.02, 0.02)} if name in ("half", "bf16") else {}
        for counts, past in (([1, 1, 1], [2, 4, 0]), ([5, 0, 3], [0, 6, 1]), ([2, 4, 1], [3, 1, 9])):
            q, kind = w.random(name, (1, 4, sum(counts), 3)), "int32" if counts[0] == 1 else "int64"
            lists = [T(kind, np.cumsum([0, *counts])), T(kind, past), T(kind, table)]
            w.case(op + "[scale=0.5]", [q, k, v, *lists], attended_pages(q.a, k.a, v.a, counts, past, table, 0.5), name, **tol)
            w.case(op + "[scale=0.5,cap=2,window=2,sink=1]", [q, k, v, *lists, sink],
                   attended_pages(q.a, k.a, v.a, counts, past, table, 0.5, 2.0, 2, sink.a), name, **tol)
            w.case(op + "[whole=1]", [q, k, v, *lists], attended_pages(q.a, k.a, v.a, counts, past, table, whole=True), name, **tol)
    q, k, n = D("float", 1, 4, 7, 3), D("float", 6, 2, 2, 3), [D("int32", 4), D("int32", 3), D("int32", 3, 2)]
    w.case(op, [q, k, k, D("int32", 3), *n[1:]], fails="axis 0 of input 3 has length 3, expected 4")
    w.case(op, [q, k, k, *n[:2], D("int32", 2, 2)], fails="axis 0 of input 5 has length 2, expected 3")
    w.case(op, [q, D("float", 6, 2, 3, 3), D("float", 6, 2, 3, 3), *n], fails="4 query heads do not share 3 key heads")
    w.case(op, [q, k, D("float", 6, 3, 2, 3), *n], fails="axis 1 of input 2 has length 3, expected 2")
    w.case(op, [q, k, D("half", 6, 2, 2, 3), *n], fails="Types do not match")
    w.case(op + "[sink=1]", [q, k, k, *n], fails="Wrong number of arguments")
    w.case(op, [D("float", 1, 4, (1, 8), 3), k, D("float", 6, 2, 2, 5), *n], shape="dynamic, float_type, {1, 4, [1..8], 5}")


def cases(w):
    labels(w)
    vectorizers(w)
    trees(w)
    attention(w)
    caches(w)
    pages(w)
