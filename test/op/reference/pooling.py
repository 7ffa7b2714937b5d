# SPDX-License-Identifier: MIT
"""Poolings and lrn against windows cut out in numpy."""
import itertools
import math

import numpy as np
from make_cases import D, DTYPES, FLOATS, T, Tuple

from reference.convolution import braces, pads_of, same_pads


def out_length(n, k, s, d, begin, end, ceil):
    room = n + begin + end - ((k - 1) * d + 1)
    out = (-(-room // s) if ceil else room // s) + 1
    if ceil and out > 1 and (out - 1) * s >= n + begin:
        out -= 1
    return out


def windows(x, lengths, padding, stride, dilation, ceil):
    """(place, list of (index or None, value)) per window; None is padding that counts."""
    rank = len(lengths)
    pads = pads_of(padding, rank)
    lens = [out_length(x.shape[i + 2], lengths[i], stride[i], dilation[i], pads[i], pads[rank + i], ceil)
            for i in range(rank)]
    for place in itertools.product(*[range(n) for n in x.shape[:2] + tuple(lens)]):
        seen, padded = [], 0
        for tap in itertools.product(*map(range, lengths)):
            at = [p * s + t * d - b for p, s, t, d, b in zip(place[2:], stride, tap, dilation, pads)]
            if all(0 <= v < n for v, n in zip(at, x.shape[2:])):
                seen.append(place[:2] + tuple(at))
            if all(v < n + e for v, n, e in zip(at, x.shape[2:], pads[rank:])):
                padded += 1
        yield place, tuple(x.shape[:2]) + tuple(lens), seen, padded


def pool(x, mode, lengths, padding, stride, dilation, ceil=False, include=False, p=2, empty=0):
    y = None
    for place, lens, seen, padded in windows(x, lengths, padding, stride, dilation, ceil):
        if y is None:
            y = np.zeros(lens, dtype=object if x.dtype.kind in "iu" else float)
        v = [x[i] for i in seen]
        if mode == "max":
            y[place] = max(v, key=lambda e: (e != e, e)) if v else empty
        elif mode == "average":
            count = padded if include else len(v)
            y[place] = sum(v) / count if count else 0
        else:
            y[place] = 1 if p == 0 else sum(abs(e) ** p for e in v) ** (1 / p)
    return y


CASES = [
    ((1, 2, 7), [3], [0], [2], [1]),
    ((2, 1, 6), [2], [1, 0], [1], [2]),
    ((1, 2, 5, 6), [2, 3], [0, 0], [1, 2], [1, 1]),
    ((2, 2, 5, 5), [3, 2], [1, 1, 1, 0], [2, 2], [1, 2]),
    ((1, 1, 3, 4, 3), [2, 2, 1], [1, 0, 0], [1, 2, 1], [1, 1, 1]),
    ((1, 1, 2, 2), [1, 1], [0, 0], [1, 1], [1, 1]),
    ((1, 1, 1, 2, 3, 2), [1, 2, 2, 1], [0] * 4, [1] * 4, [1] * 4),
    ((1, 1, 8, 8), [3, 3], [1, 1], [4, 3], [1, 1]),
]


def attr(mode, lengths, padding, stride, dilation, **more):
    text = (f"mode={mode},padding={braces(padding)},stride={braces(stride)},"
            f"lengths={braces(lengths)},dilations={braces(dilation)}")
    return text + "".join(f",{k}={v}" for k, v in more.items())


def poolings(w):
    for xs, *rest in CASES:
        for ceil in (0, 1):
            x = w.random("float", xs)
            w.case(f"pooling[{attr('max', *rest, ceil_mode=ceil)}]", [x], pool(x.a, "max", *rest, ceil=ceil))
            for include in (0, 1):
                w.case(f"pooling[{attr('average', *rest, ceil_mode=ceil, count_include_pad=include)}]",
                       [x], pool(x.a, "average", *rest, ceil=ceil, include=include))
            for p in (1, 2, 3, 0):
                w.case(f"pooling[{attr('lpnorm', *rest, ceil_mode=ceil, lp_order=p)}]", [x],
                       pool(x.a, "lpnorm", *rest, ceil=ceil, p=p))
    for type in FLOATS + ["fp8e4m3fn"]:
        x = w.random(type, CASES[3][0])
        for mode in ("max", "average", "lpnorm"):
            w.case(f"pooling[{attr(mode, *CASES[3][1:])}]", [x], pool(x.a, mode, *CASES[3][1:]),
                   tol=(0.02, 0.14) if type.startswith("fp8") else None)
    for type in ["int8", "uint8", "int32", "int64", "bool"]:
        x = w.random(type, CASES[3][0], -100, 100)
        w.case(f"pooling[{attr('max', *CASES[3][1:])}]", [x], pool(x.a.astype(int), "max", *CASES[3][1:]))
    x = T("uint64", np.array([[[2**63 + 1, 1, 2**64 - 1, 5]]], dtype=np.uint64))
    w.case("pooling[mode=max,padding={0},stride={1},lengths={2},dilations={1}]", [x],
           [[[2**63 + 1, 2**64 - 1, 2**64 - 1]]])
    x = T("int64", [[[-2**63, -2**63 + 1, 2**62 + 1, 2**62]]])
    w.case("pooling[mode=max,padding={0},stride={1},lengths={2},dilations={1}]", [x],
           [[[-2**63 + 1, 2**62 + 1, 2**62 + 1]]])
    x = T("float", [[[1, math.nan, 3, -math.inf, -math.inf, math.inf]]])
    w.case("pooling[mode=max,padding={0},stride={1},lengths={2},dilations={1}]", [x],
           [[[math.nan, math.nan, 3, -math.inf, math.inf]]])
    for mode, upper in [(1, False), (2, True)]:
        x = w.random("float", (1, 2, 5, 4))
        lengths, stride, dilation = [2, 3], [2, 1], [1, 1]
        pads = same_pads(x.shape, (0, 0, *lengths), stride, dilation, upper)
        for kind in ("max", "average"):
            w.case(f"pooling[{attr(kind, lengths, [], stride, dilation, padding_mode=mode)}]", [x],
                   pool(x.a, kind, lengths, pads, stride, dilation))
    x = w.random("float", (2, 3, 4, 5))
    w.case("pooling[mode=average,dyn_global=1]", [x], x.a.mean((2, 3), keepdims=True))
    w.case("pooling[mode=max,dyn_global=1,lengths={}]", [x], x.a.max((2, 3), keepdims=True))
    w.case("pooling[mode=lpnorm,dyn_global=1]", [x], np.sqrt((x.a**2).sum((2, 3), keepdims=True)))
    x = w.random("float", (2, 3, 4, 5), strides=(60, 1, 15, 3))
    w.case("pooling[mode=max,lengths={2, 2}]", [x], pool(x.a, "max", [2, 2], [0, 0], [1, 1], [1, 1]),
           strides=(36, 1, 12, 3))
    # a window of nothing but padding
    x = T("float", [[[1, 2]]])
    rest = ([2], [3, 0], [1], [1])
    w.case(f"pooling[{attr('average', *rest)}]", [x], [[[0, 0, 1, 1.5]]])
    w.case(f"pooling[{attr('max', *rest)}]", [x], [[[-3.4028235e38, -3.4028235e38, 1, 2]]])
    w.case(f"pooling[{attr('max', *rest)}]", [T("int8", x.a)], [[[-128, -128, 1, 2]]])
    w.case(f"pooling[{attr('max', *rest)}]", [T("int64", x.a)], [[[-2**63, -2**63, 1, 2]]])
    w.case(f"pooling[{attr('lpnorm', *rest)}]", [x], [[[0, 0, 1, 5**0.5]]])
    w.case(f"pooling[{attr('average', *rest, count_include_pad=1)}]", [x], [[[0, 0, 0.5, 1.5]]])
    w.case("pooling[mode=max,lengths={2, 2}]", [T("float", np.zeros((0, 2, 3, 3)))], np.zeros((0, 2, 2, 2)))
    w.case("pooling[mode=average,dyn_global=1]", [T("float", np.zeros((1, 2, 0, 3)))], np.zeros((1, 2, 1, 1)))


def pooling_shapes(w):
    x = D("float", 1, 3, 8, 8)
    w.case("pooling[mode=max,lengths={3, 3},stride={2, 2}]", [x], shape="float_type, {1, 3, 3, 3}, {27, 9, 3, 1}")
    w.case("pooling[mode=max,lengths={3, 3},stride={2, 2},ceil_mode=1]", [D("float", (1, 4, "n"), 3, (8, 16), 8)],
           shape="dynamic, float_type, {n[1..4], 3, [4..8], 4}")
    w.case("pooling[mode=max,dyn_global=1]", [D("float", (1, 4), 3, (8, 16), (8, 9))],
           shape="dynamic, float_type, {[1..4], 3, 1, 1}")
    w.case("pooling", [x], shape="float_type, {1, 3, 8, 8}, {192, 64, 8, 1}")
    w.case("pooling[mode=max,lengths={3}]", [x], fails="inconsistent attribute sizes: lengths (1) for 2 spatial axes")
    w.case("pooling[mode=max,stride={0, 1}]", [x], fails="stride 0 is out of range")
    w.case("pooling[mode=max,lengths={0, 1}]", [x], fails="kernel length 0")
    w.case("pooling[mode=max,lengths={-3, 1}]", [x], fails="kernel length 0")
    w.case("pooling[mode=max,dilations={0, 1}]", [x], fails="dilation 0 is out of range")
    w.case("pooling[mode=max,lengths={9, 1}]", [x], fails="not enough padding for the given kernel size")
    w.case("pooling[mode=max,padding={-1, 0}]", [x], fails="negative padding")
    w.case("pooling[mode=lpnorm,lp_order=-1]", [x], fails="lp_order -1 is out of range")
    w.case("pooling[mode=3]", [x], fails="mode")
    w.case("pooling", [D("float", 1, 3)], fails="at least 3 dimensions")
    w.case("pooling", [D("string", 1, 3, 2, 2)], fails="must be of numbers")


def positions(x, lengths, padding, stride, dilation, ceil, order):
    values = indices = None
    for place, lens, seen, _ in windows(x, lengths, padding, stride, dilation, ceil):
        if values is None:
            values, indices = np.zeros(lens, dtype=x.dtype), np.zeros(lens, dtype=np.int64)
        best = max(seen, key=lambda i: x[i])
        values[place] = x[best]
        flat = np.ravel_multi_index(best, x.shape)
        if order:
            plane = np.ravel_multi_index(best[:1:-1], x.shape[:1:-1])
            flat = np.ravel_multi_index(best[:2], x.shape[:2]) * np.prod(x.shape[2:]) + plane
        indices[place] = flat
    return values, indices


def indices(w):
    for xs, *rest in CASES[:5]:
        for type in ["float", "int8"]:
            for ceil, order in [(0, 0), (1, 0), (0, 1)]:
                x = w.random(type, xs)
                v, i = positions(x.a, *rest, ceil, order)
                text = attr("max", *rest, ceil_mode=ceil, storage_order=order)[len("mode=max,"):]
                w.case(f"max_pool_indices[{text}]", [x], Tuple(T(type, v), T("int64", i)))
    x = T("float", [[[1, 1, math.nan, 2, math.nan]]])
    w.case("max_pool_indices[padding={0},stride={1},lengths={3},dilations={1}]", [x],
           Tuple(T("float", np.full((1, 1, 3), math.nan)), T("int64", [[[2, 2, 2]]])))
    x = T("float", [[[1, 2]]])
    w.case("max_pool_indices[padding={3, 0},stride={3},lengths={2},dilations={1}]", [x],
           Tuple(T("float", [[[-3.4028235e38, 2]]]), T("int64", [[[-1, 1]]])))
    w.case("max_pool_indices[lengths={2, 2}]", [D("float", (1, 2), 3, 4, 4)],
           shape="[dynamic, float_type, {[1..2], 3, 3, 3}, dynamic, int64_type, {[1..2], 3, 3, 3}]")
    w.case("max_pool_indices[lengths={5, 2}]", [D("float", 1, 3, 4, 4)], fails="not enough padding")
    w.case("max_pool_indices[lengths={2, 2}]", [T("float", np.zeros((0, 1, 2, 2)))],
           Tuple(T("float", np.zeros((0, 1, 1, 1))), T("int64", np.zeros((0, 1, 1, 1)))))


def unpool(w):
    for xs, lengths, stride, padding in [((1, 2, 6), [2], [2], [0]), ((2, 1, 6, 4), [2, 2], [2, 2], [0, 0]),
                                         ((1, 1, 7, 7), [3, 2], [2, 2], [1, 0, 0, 1])]:
        for type in ["float", "int32", "half"]:
            x = w.random(type, xs)
            v, i = positions(x.a, lengths, padding, stride, [1] * len(lengths), False, False)
            text = f"lengths={braces(lengths)},stride={braces(stride)},padding={braces(padding)}"
            rank = len(lengths)
            pads = pads_of(padding, rank)
            plain = list(xs[:2]) + [(n - 1) * s + k - pads[a] - pads[rank + a] for a, (n, s, k) in
                                    enumerate(zip(v.shape[2:], stride, lengths))]
            y = np.zeros(np.prod(plain))
            good = i.reshape(-1) < len(y)
            if not good.all():
                continue
            y[i.reshape(-1)] = v.reshape(-1)
            y = y.reshape(plain)
            w.case(f"max_unpool[{text}]", [T(type, v), T("int64", i)], y)
            large = [n + (a > 1) for a, n in enumerate(plain)]
            w.case(f"max_unpool[{text}]", [T(type, v), T("int64", i), T("int64", large, known=True)],
                   np.pad(y, [(0, b - a) for a, b in zip(plain, large)]))
    x, i = T("float", [[[1, 2]]]), T("int64", [[[0, 3]]])
    op = "max_unpool[lengths={2},stride={2},padding={0}]"
    w.case(op, [x, i], [[[1, 0, 0, 2]]])
    w.case(op, [x, T("int32", [[[1, 1]]])], [[[0, 2, 0, 0]]])
    w.case(op, [x, T("int64", [[[0, 4]]])], aborts="index 4 is out of range for 4 elements")
    w.case(op, [x, T("int64", [[[0, -1]]])], aborts="index -1 is out of range for 4 elements")
    w.case(op, [D("float", 1, 1, 2), D("int64", 1, 1, 3)], fails="Dimensions do not match")
    w.case(op, [D("float", 1, 1, 2), D("float", 1, 1, 2)], fails="must be of an integral type")
    w.case(op, [D("float", 1, 1, 2), D("int64", 1, 1, 2), T("int64", [1, 1, 3], known=True)],
           fails="output length 3 along axis 2 is less than 4")
    w.case(op, [D("float", 1, 1, 2), D("int64", 1, 1, 2), T("int64", [1, 3], known=True)],
           fails="2 output lengths for rank 3")
    w.case(op, [D("float", 1, 1, 2), D("int64", 1, 1, 2), D("int64", 3)], shape="dynamic, float_type, {1, 1, [4..]}")
    w.case("max_unpool[lengths={2, 2},stride={2},padding={0}]", [D("float", 1, 1, 2), D("int64", 1, 1, 2)],
           fails="lengths (2) for 1 spatial axes")
    w.case(op, [D("float", 1, 1, (2, 4)), D("int64", 1, 1, (1, 4))], shape="dynamic, float_type, {1, 1, [4..8]}")
    w.case("max_unpool[lengths={2},stride={2},padding={5}]", [D("float", 1, 1, 2), D("int64", 1, 1, 2)],
           fails="padding leaves an output of length -6")


def lrn(w):
    for size in (1, 2, 3, 5):
        for type in FLOATS:
            x = w.random(type, (2, 4, 3))
            y = np.zeros(x.shape)
            for c in range(4):
                low, high = max(0, c - (size - 1) // 2), min(3, c + math.ceil((size - 1) / 2))
                total = (x.a[:, low:high + 1] ** 2).sum(1)
                y[:, c] = x.a[:, c] / (1.5 + 0.5 / size * total) ** 0.75
            w.case(f"lrn[alpha=0.5,beta=0.75,bias=1.5,size={size}]", [x], y)
    x = w.random("float", (1, 3, 2, 2))
    w.case("lrn", [x], x.a / (1 + 1e-4 * x.a**2) ** 0.75)
    w.case("lrn[size=3]", [T("float", np.zeros((1, 0, 2)))], np.zeros((1, 0, 2)))
    w.case("lrn[size=0]", [D("float", 1, 2, 3)], fails="size 0 is out of range")
    w.case("lrn[size=2147483647]", [T("float", [[3]])], [[3 / (1 + 9e-4 / 2147483647 / 9) ** 0.75]])
    w.case("lrn", [D("float", 3)], fails="at least 2 dimensions")
    w.case("lrn", [D("int32", 1, 2, 3)], fails="must be of a float type")


def cases(w):
    poolings(w)
    pooling_shapes(w)
    indices(w)
    unpool(w)
    lrn(w)
