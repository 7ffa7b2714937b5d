# SPDX-License-Identifier: MIT
"""Matrix products and convolutions against direct sums in numpy."""
import itertools

import numpy as np
from make_cases import D, FLOATS, FP8, INTS, T

from reference.reduce import wrap


def braces(values):
    return "{" + ", ".join(map(str, values)) + "}"


# --- products ---


def dots(w):
    for type in FLOATS + ["fp8e5m2"]:
        a, b = w.random(type, (3, 5)), w.random(type, (5, 2))
        w.case("dot", [a, b], a.a @ b.a, tol=(2, 0.3) if type in FP8 else None)
    for type in INTS:
        a, b = w.random(type, (3, 5), -100, 100), w.random(type, (5, 2), -100, 100)
        w.case("dot", [a, b], wrap(a.raw.astype(object) @ b.raw.astype(object), type))
    a, b = w.random("float", (2, 3, 4, 5)), w.random("float", (2, 3, 5, 6))
    w.case("dot", [a, b], a.a @ b.a)
    b = w.broadcast("float", (2, 3, 5, 6), (0, 1))
    w.case("dot", [a, b], a.a @ b.a)
    a, b = w.random("double", (17, 203), -1, 1), w.random("double", (203, 19), -1, 1)
    w.case("dot", [a, b], a.a @ b.a, tol=(1e-12, 1e-12))
    for m, k, n in [(0, 3, 2), (2, 0, 3), (2, 3, 0)]:
        w.case("dot", [T("float", np.zeros((m, k))), T("float", np.zeros((k, n)))], np.zeros((m, n)))
    w.case("dot", [T("float", np.zeros((0, 2, 3))), T("float", np.zeros((0, 3, 2)))], np.zeros((0, 2, 2)))
    x = D("float", 2, 3)
    w.case("dot", [x, D("float", 2, 3)], fails="dot: Dimensions do not match: input 0 is {2, 3}, input 1 is {2, 3}")
    w.case("dot", [D("float", 2, 3, 4), D("float", 3, 4, 5)], fails="dot: Dimensions do not match")
    w.case("dot", [x, D("double", 3, 2)], fails="dot: Types do not match")
    w.case("dot", [x, D("float", 1, 3, 2)], fails="dot: Only 2d supported")
    w.case("dot", [D("float", 3), D("float", 3)], fails="at least 2 dimensions")
    w.case("dot", [D("string", 3, 3), D("string", 3, 3)], fails="must be of numbers")
    w.case("dot", [D("float", (1, 4, "b"), 2, (3, 8)), D("float", (2, 9), (5, 9), 7)],
           shape="dynamic, float_type, {b[2..4], 2, 7}")
    w.case("dot", [D("float", 2, (3, 8)), D("float", (9, 12), 7)], fails="dot: Dimensions do not match")

    for a_type, b_type in [("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8"),
                           ("int16", "int16"), ("int32", "int32"), ("uint16", "int8")]:
        a, b = w.random(a_type, (2, 70), -128, 127), w.random(b_type, (70, 3), -128, 127)
        w.case("quant_dot", [a, b], a.a @ b.a, "int32")
    for a_type, b_type, columns in [("uint8", "int8", 1), ("int8", "uint8", 3), ("uint8", "uint8", 3)]:
        a, b = w.random(a_type, (2, 4, 5), -128, 127), w.random(b_type, (2, 5, 3), -128, 127)
        p, q = w.random(a_type, (1,), -128, 127), w.random(b_type, (columns,), -128, 127)
        w.case("quant_dot", [a, b, p], (a.a - p.a) @ b.a, "int32")
        w.case("quant_dot", [a, b, p, q], (a.a - p.a) @ (b.a - q.a), "int32")
    w.case("quant_dot", [D("uint8", 2, 4), D("int8", 4, 3), D("int8", 1)], fails="zero point 0 is of type int8_type")
    w.case("quant_dot", [D("int8", 2, 4), D("int8", 4, 3), D("int8", 2)], fails="zero point 0 has 2 values")
    w.case("quant_dot", [D("int8", 2, 4), D("int8", 4, 3), D("int8", 1), D("int8", 2)],
           fails="zero point 1 has 2 values")
    a = T("int32", [[2**30, 2**30, 7]])
    b = T("int32", [[2], [2], [1]])
    w.case("quant_dot", [a, b], [[7]], "int32")
    for type in FP8:
        a, b = w.random(type, (2, 3, 4)), w.random(type, (2, 4, 2))
        w.case("quant_dot", [a, b], a.a @ b.a, "float")
    w.case("quant_dot", [x, D("float", 3, 2)], fails="two integers of up to 32 bits or two of fp8")
    w.case("quant_dot", [D("int64", 2, 2), D("int8", 2, 2)], fails="not int64_type and int8_type")


# --- convolutions ---


def pads_of(padding, rank):
    return list(padding) * 2 if len(padding) == rank else list(padding)


def convolve(x, w, padding, stride, dilation, group, out=None):
    """The sum of the definition, tap by tap."""
    rank = x.ndim - 2
    pads = pads_of(padding, rank)
    x = np.pad(x, [(0, 0), (0, 0)] + [(pads[i], pads[rank + i]) for i in range(rank)])
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation)]
    lens = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, stride)]
    y = np.zeros((x.shape[0], w.shape[0], *lens), dtype=x.dtype)
    m, c = w.shape[0] // group, w.shape[1]
    for g in range(group):
        for tap in itertools.product(*map(range, w.shape[2:])):
            at = tuple(slice(t * d, t * d + (n - 1) * s + 1, s)
                       for t, d, n, s in zip(tap, dilation, lens, stride))
            part = x[(slice(None), slice(g * c, (g + 1) * c)) + at]
            weights = w[(slice(g * m, (g + 1) * m), slice(None)) + tap]
            y[:, g * m:(g + 1) * m] += np.einsum("nc...,mc->nm...", part, weights)
    return y


def convolve_back(x, w, padding, stride, dilation, group):
    rank = x.ndim - 2
    pads = pads_of(padding, rank)
    whole = [(n - 1) * s + (k - 1) * d + 1
             for n, s, k, d in zip(x.shape[2:], stride, w.shape[2:], dilation)]
    end = [max(0, -pads[rank + i]) for i in range(rank)]
    m, c = w.shape[1], w.shape[0] // group
    y = np.zeros((x.shape[0], m * group, *[n + e for n, e in zip(whole, end)]), dtype=x.dtype)
    for g in range(group):
        for tap in itertools.product(*map(range, w.shape[2:])):
            at = tuple(slice(t * d, t * d + (n - 1) * s + 1, s)
                       for t, d, n, s in zip(tap, dilation, x.shape[2:], stride))
            weights = w[(slice(g * c, (g + 1) * c), slice(None)) + tap]
            y[(slice(None), slice(g * m, (g + 1) * m)) + at] += np.einsum(
                "nc...,cm->nm...", x[:, g * c:(g + 1) * c], weights)
    cut = tuple(slice(pads[i], pads[i] + whole[i] - pads[i] - pads[rank + i]) for i in range(rank))
    return y[(slice(None), slice(None)) + cut]


# x lengths, w lengths, padding, stride, dilation, group
FORWARD = [
    ((1, 2, 5), (3, 2, 3), [1], [1], [1], 1),
    ((2, 3, 7), (4, 3, 2), [0, 3], [2], [3], 1),
    ((1, 1, 4, 4), (1, 1, 3, 3), [0, 0], [1, 1], [1, 1], 1),
    ((2, 3, 6, 5), (4, 3, 3, 2), [1, 0], [2, 1], [1, 2], 1),
    ((1, 4, 7, 6), (6, 2, 3, 3), [2, 1, 0, 1], [2, 3], [2, 1], 2),
    ((2, 3, 5, 5), (6, 1, 3, 3), [1, 1, 1, 1], [1, 1], [1, 1], 3),
    ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), [0, 1, 0, 1, 0, 1], [1, 2, 1], [1, 1, 2], 1),
    ((1, 1, 2, 2, 2, 3), (1, 1, 1, 2, 1, 2), [0] * 4, [1] * 4, [1] * 4, 1),
    ((1, 5, 1, 1), (2, 5, 1, 1), [0, 0], [1, 1], [1, 1], 1),
    ((1, 1, 2, 2), (1, 1, 3, 3), [5, 4], [3, 2], [2, 2], 1),
]


def attrs(padding, stride, dilation, group):
    return (f"padding={braces(padding)},stride={braces(stride)},dilation={braces(dilation)},"
            f"group={group}")


def same_pads(x, w, stride, dilation, upper):
    total = [max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
             for n, s, k, d in zip(x[2:], stride, w[2:], dilation)]
    begin = [t // 2 if upper else -(-t // 2) for t in total]
    return begin + [t - b for t, b in zip(total, begin)]


def forward(w):
    for xs, ws, *rest in FORWARD:
        for type in ["float", "int32"]:
            x, k = w.random(type, xs), w.random(type, ws)
            w.case(f"convolution[{attrs(*rest)}]", [x, k], convolve(x.a, k.a, *rest))
    xs, ws, *rest = FORWARD[3]
    for type in FLOATS + ["fp8e5m2"]:
        x, k = w.random(type, xs, -1, 1), w.random(type, ws, -1, 1)
        w.case(f"convolution[{attrs(*rest)}]", [x, k], convolve(x.a, k.a, *rest),
               tol=(0.5, 0.3) if type in FP8 else None)
    for type in ["int8", "uint8", "int16", "int64", "uint64"]:
        x, k = w.random(type, xs), w.random(type, ws)
        w.case(f"convolution[{attrs(*rest)}]", [x, k],
               wrap(convolve(x.raw.astype(np.int64), k.raw.astype(np.int64), *rest), type))
    for mode, upper in [(1, False), (2, True)]:
        for xs, ws, stride, dilation in [((1, 2, 6, 5), (2, 2, 3, 2), [2, 1], [1, 2]),
                                         ((1, 1, 7), (1, 1, 4), [3], [1]),
                                         ((1, 1, 4), (1, 1, 1), [3], [1])]:
            x, k = w.random("float", xs), w.random("float", ws)
            pads = same_pads(xs, ws, stride, dilation, upper)
            zeros = [0] * len(stride)
            w.case(f"convolution[{attrs(zeros, stride, dilation, 1)},padding_mode={mode}]", [x, k],
                   convolve(x.a, k.a, pads, stride, dilation, 1))
    # NHWC in, NHWC out
    x = w.random("float", (2, 3, 4, 5), strides=(60, 1, 15, 3))
    k = w.random("float", (4, 3, 3, 3))
    w.case("convolution", [x, k], convolve(x.a, k.a, [0, 0], [1, 1], [1, 1], 1), strides=(24, 1, 12, 4))
    x, k = w.broadcast("float", (2, 3, 4, 5), (1,)), w.broadcast("float", (2, 3, 2, 2), (0, 3))
    w.case("convolution", [x, k], convolve(x.a, k.a, [0, 0], [1, 1], [1, 1], 1))
    for xs, ws in [((0, 2, 4, 4), (3, 2, 3, 3)), ((1, 2, 4, 4), (0, 2, 3, 3)),
                   ((1, 0, 4, 4), (2, 0, 3, 3)), ((1, 2, 0, 4), (2, 2, 1, 1))]:
        x, k = T("float", np.zeros(xs)), T("float", np.zeros(ws))
        w.case("convolution", [x, k], convolve(x.a, k.a, [0, 0], [1, 1], [1, 1], 1))
    # several runs of places
    x, k = w.random("float", (1, 2, 40, 33), -1, 1), w.random("float", (1, 2, 3, 3), -1, 1)
    w.case("convolution[padding={1, 1}]", [x, k], convolve(x.a, k.a, [1, 1], [1, 1], [1, 1], 1),
           tol=(1e-5, 1e-5))

    for a, b in [("int8", "int8"), ("uint8", "int8"), ("int16", "int8"), ("int32", "int32")]:
        x, k = w.random(a, (1, 2, 4, 3), -128, 127), w.random(b, (2, 2, 2, 2), -128, 127)
        w.case("quant_convolution[padding={1, 0}]", [x, k],
               convolve(x.a, k.a, [1, 0], [1, 1], [1, 1], 1), "int32")
    for channels in (1, 4):
        x, k = w.random("uint8", (2, 4, 4, 3), 0, 255), w.random("int8", (4, 2, 2, 2), -128, 127)
        p, q = w.random("uint8", (1,), 0, 255), w.random("int8", (channels,), -128, 127)
        w.case("quant_convolution[padding={1, 0},group=2]", [x, k, p, q],
               convolve(x.a - p.a, k.a - q.a.reshape(-1, 1, 1, 1), [1, 0], [1, 1], [1, 1], 2), "int32")
    x, k = w.random("fp8e4m3fn", (1, 2, 4, 3)), w.random("fp8e4m3fn", (2, 2, 2, 2))
    w.case("quant_convolution", [x, k], convolve(x.a, k.a, [0, 0], [1, 1], [1, 1], 1), "float")
    w.case("quant_convolution", [D("float", 1, 2, 4, 4), D("float", 2, 2, 2, 2)],
           fails="two integers of up to 32 bits")


def forward_shapes(w):
    op, x, k = "convolution", D("float", 1, 4, 8, 8), D("float", 6, 4, 3, 3)
    w.case(op, [x, k], shape="float_type, {1, 6, 6, 6}, {216, 36, 6, 1}")
    w.case(op, [D("float", (1, 8, "batch"), 4, (8, 16), (3, 5)), k],
           shape="dynamic, float_type, {batch[1..8], 6, [6..14], [1..3]}")
    w.case(f"{op}[padding={{1, 1}}]", [D("float", 1, 4, (8, 16, "h"), 8), k],
           shape="dynamic, float_type, {1, 6, h[8..16], 8}")
    w.case(f"{op}[stride={{2, 2}},padding_mode=2]", [D("float", 1, 4, (7, 16), 8), k],
           shape="dynamic, float_type, {1, 6, [4..8], 4}")
    w.case(f"{op}[padding={{0, 0, 2}}]", [x, k], fails="inconsistent attribute sizes: padding (3), stride (2), dilation (2)")
    w.case(op, [D("float", 1, 4, 8), D("float", 6, 4, 3)], fails="inconsistent attribute sizes")
    w.case(f"{op}[stride={{0, 1}}]", [x, k], fails="stride 0 is out of range 1..2147483647")
    w.case(f"{op}[stride={{1, -1}}]", [x, k], fails="stride -1 is out of range")
    w.case(f"{op}[dilation={{2147483648, 1}}]", [x, k], fails="dilation 2147483648 is out of range")
    w.case(f"{op}[dilation={{2147483647, 1}}]", [x, k], fails="not enough padding for the given kernel size")
    w.case(f"{op}[padding={{-1, 0}}]", [x, k], fails="negative padding along spatial axis 0")
    w.case(f"{op}[padding={{9223372036854775807, 0}}]", [x, k], fails="is out of range")
    w.case(f"{op}[padding_mode=3]", [x, k], fails="padding_mode 3 is not 0, 1 or 2")
    w.case(f"{op}[group=0]", [x, k], fails="group 0 is out of range")
    w.case(f"{op}[group=2]", [x, k], fails="mismatched channel numbers: input channels (4) != weights channels (4) * group (2)")
    w.case(f"{op}[group=4]", [x, D("float", 6, 1, 3, 3)], fails="6 output channels do not divide into 4 groups")
    w.case(op, [x, D("float", 6, 4, 9, 3)], fails="not enough padding for the given kernel size")
    w.case(op, [x, D("float", 6, 4, 0, 3)], fails="kernel length 0")
    w.case(op, [x, D("double", 6, 4, 3, 3)], fails="Types do not match")
    w.case(op, [x, D("float", 6, 4, 3)], fails="Only 4d supported")
    w.case(op, [D("float", 1, 4), D("float", 6, 4)], fails="at least 3 dimensions")
    w.case(op, [x, D("float", (1, 6), 4, (1, 3), (9, 12))], fails="not enough padding")
    w.case(op, [D("float", 1, (3, 5), 8, 8), D("float", 6, 6, 3, 3)], fails="mismatched channel numbers")
    w.case(op, [D("float", 1, 4, (0, None), 8), k], shape="dynamic, float_type, {1, 6, [0..1099511627774], 6}")


def backward(w):
    op = "convolution_backwards"
    cases = [
        ((1, 2, 4), (2, 3, 3), [0], [1], [1], 1),
        ((2, 2, 3), (2, 1, 4), [1, 2], [3], [2], 1),
        ((1, 3, 4, 3), (3, 2, 3, 2), [1, 0], [2, 1], [1, 2], 1),
        ((2, 4, 3, 3), (4, 2, 3, 3), [1, 1, 0, -1], [2, 2], [1, 1], 2),
        ((1, 3, 3, 3), (3, 1, 2, 2), [0, 0, -1, -2], [1, 3], [1, 1], 3),
        ((1, 1, 2, 3, 2), (1, 2, 2, 2, 2), [0, 0, 0], [2, 1, 2], [1, 2, 1], 1),
    ]
    for xs, ws, *rest in cases:
        for type in ["float", "int32"]:
            x, k = w.random(type, xs), w.random(type, ws)
            w.case(f"{op}[{attrs(*rest)}]", [x, k], convolve_back(x.a, k.a, *rest))
    for type in ["half", "double", "bf16", "int8"]:
        xs, ws, *rest = cases[2]
        x, k = w.random(type, xs, -2, 2), w.random(type, ws, -2, 2)
        w.case(f"{op}[{attrs(*rest)}]", [x, k], convolve_back(x.a, k.a, *rest))
    for mode, begin, end in [(1, 1, 0), (2, 0, 1)]:
        x, k = w.random("float", (1, 2, 4)), w.random("float", (2, 2, 3))
        w.case(f"{op}[padding={{0}},stride={{2}},dilation={{1}},padding_mode={mode}]", [x, k],
               convolve_back(x.a, k.a, [begin, end], [2], [1], 1))
    for xs, ws in [((0, 2, 4, 4), (2, 3, 3, 3)), ((1, 2, 4, 4), (2, 0, 3, 3)), ((1, 0, 3, 3), (0, 2, 2, 2))]:
        x, k = T("float", np.zeros(xs)), T("float", np.zeros(ws))
        w.case(op, [x, k], convolve_back(x.a, k.a, [0, 0], [1, 1], [1, 1], 1))
    w.case(op, [T("float", np.zeros((1, 2, 0, 3))), T("float", np.zeros((2, 1, 2, 2)))], np.zeros((1, 1, 0, 4)))
    x, k = D("float", 1, 4, 8, 8), D("float", 4, 3, 3, 3)
    w.case(f"{op}[group=2]", [x, k], shape="float_type, {1, 6, 10, 10}, {600, 100, 10, 1}")
    w.case(op, [D("float", (1, 2), 4, (1, 8), 8), k], shape="dynamic, float_type, {[1..2], 3, [3..10], 10}")
    w.case(op, [x, D("float", 5, 3, 3, 3)], fails="input channels (4) != weights channels (5)")
    w.case(f"{op}[group=0]", [x, k], fails="group 0 is out of range")
    w.case(f"{op}[group=2147483647]", [D("float", 1, 0, 8, 8), D("float", 0, 2**40, 3, 3)],
           fails="channels is too many")
    w.case(f"{op}[group=2]", [D("float", 1, 4, 8, 8), D("float", 4, (1, None), 3, 3)],
           shape="dynamic, float_type, {1, [2..], 10, 10}")
    w.case(f"{op}[group=3]", [x, k], fails="4 input channels do not divide into 3 groups")
    w.case(f"{op}[padding={{6, 0}}]", [x, k], fails="padding leaves an output of length -2")
    w.case(f"{op}[stride={{0, 1}}]", [x, k], fails="stride 0 is out of range")
    w.case(f"{op}[stride={{2147483647, 1}}]", [D("float", 1, 4, 2**40, 0), D("float", 4, 1, 1, 1)],
           fails="make an output that is too long")


def im2col_reference(x, kernel, padding, stride, dilation):
    rank = x.ndim - 2
    pads = pads_of(padding, rank)
    x = np.pad(x, [(0, 0), (0, 0)] + [(pads[i], pads[rank + i]) for i in range(rank)])
    lens = [(n - (k - 1) * d - 1) // s + 1
            for n, k, d, s in zip(x.shape[2:], kernel, dilation, stride)]
    rows = []
    for n in range(x.shape[0]):
        for place in itertools.product(*map(range, lens)):
            at = tuple(slice(p * s, p * s + (k - 1) * d + 1, d)
                       for p, s, k, d in zip(place, stride, kernel, dilation))
            rows.append(x[(n, slice(None)) + at].reshape(-1))
    return np.array(rows)


def columns(w):
    for xs, kernel, padding, stride, dilation in [
            ((1, 3, 5, 4), (3, 2), [1, 0], [2, 1], [1, 2]), ((2, 2, 6), (3,), [1, 2], [2], [1]),
            ((1, 2, 2, 3, 2), (1, 2, 2), [0, 0, 1], [1, 1, 1], [1, 1, 1])]:
        for type in ["float", "int64"]:
            x, k = w.random(type, xs), T(type, np.zeros((1, xs[1], *kernel)))
            attr = f"padding={braces(padding)},stride={braces(stride)},dilation={braces(dilation)}"
            r = im2col_reference(x.a, kernel, padding, stride, dilation)
            w.case(f"im2col[{attr}]", [x, k], r)
            # the way back adds up what each place took
            if len(padding) == len(stride) and xs[0] == 1:
                c = w.random(type, (1, *r.T.shape))
                y = np.zeros(xs)
                for i, v in enumerate(c.a[0].T):
                    unit = np.zeros(r.shape)
                    unit[i] = v
                    y += fold(unit, xs, kernel, padding, stride, dilation)
                w.case(f"col2im[sizes={braces(xs[2:])},lengths={braces(kernel)},{attr}]", [c], y)
    x = D("float", 1, 2, 5, 5)
    w.case("im2col", [x, D("float", 1, 2, 2, 2)], shape="float_type, {16, 8}, {8, 1}")
    w.case("im2col", [D("float", (1, 2), 2, (5, 6), 5), D("float", 1, 2, 2, 2)],
           shape="dynamic, float_type, {[16..40], 8}")
    w.case("im2col[padding={2147483647, 2147483647}]", [x, D("float", 1, 2, 2, 2)], fails="too large")
    w.case("im2col", [x, D("float", 1, 3, 2, 2)], fails="axis 1 of input 1 has length 3, expected 2")
    w.case("im2col", [x, D("float", 1, 2, 6, 2)], fails="not enough padding")
    w.case("im2col", [T("float", np.zeros((0, 2, 3, 3))), T("float", np.zeros((1, 2, 2, 2)))], np.zeros((0, 8)))
    op = "col2im[sizes={5, 5},lengths={2, 2}"
    w.case(op + "]", [D("float", (1, 4), 8, 16)], shape="dynamic, float_type, {[1..4], 2, 5, 5}")
    w.case(op + "]", [D("float", 1, 7, 16)], fails="7 rows do not divide into windows of 4")
    w.case(op + "]", [D("float", 1, 8, 15)], fails="15 columns for 16 places")
    w.case(op + ",stride={0, 1}]", [D("float", 1, 8, 16)], fails="stride 0 is out of range")
    w.case("col2im[sizes={5, -5},lengths={2, 2}]", [D("float", 1, 8, 16)], fails="must be at least 1")
    w.case("col2im[sizes={5},lengths={2, 2}]", [D("float", 1, 8, 16)], fails="inconsistent attribute sizes")
    w.case(op + "]", [T("float", np.zeros((0, 4, 16)))], np.zeros((0, 1, 5, 5)))


def fold(rows, xs, kernel, padding, stride, dilation):
    """The transpose of im2col_reference, found by asking it where every element goes."""
    numbers = np.arange(1, np.prod(xs) + 1).reshape(xs).astype(float)
    where = im2col_reference(numbers, kernel, padding, stride, dilation).astype(int)
    y = np.zeros(np.prod(xs) + 1)
    np.add.at(y, where, rows)
    return y[1:].reshape(xs)


def deform_reference(x, k, offset, mask, padding, stride, dilation, group, offset_group):
    pads = pads_of(padding, 2)
    kh, kw = k.shape[2:]
    oh, ow = offset.shape[2:]
    y = np.zeros((x.shape[0], k.shape[0], oh, ow))
    per, m = x.shape[1] // offset_group, k.shape[0] // group
    offset = offset.reshape(x.shape[0], offset_group, kh, kw, 2, oh, ow)
    mask = np.ones((x.shape[0], offset_group, kh, kw, oh, ow)) if mask is None else mask.reshape(
        x.shape[0], offset_group, kh, kw, oh, ow)

    def read(plane, v, h):
        total = 0.0
        for i in (int(np.floor(v)), int(np.floor(v)) + 1):
            for j in (int(np.floor(h)), int(np.floor(h)) + 1):
                if 0 <= i < plane.shape[0] and 0 <= j < plane.shape[1]:
                    total += plane[i, j] * (1 - abs(v - i)) * (1 - abs(h - j))
        return total

    for n, o, i, j in np.ndindex(*y.shape):
        for c, a, b in np.ndindex(k.shape[1], kh, kw):
            channel = o // m * k.shape[1] + c
            g = channel // per
            v = i * stride[0] + a * dilation[0] - pads[0] + offset[n, g, a, b, 0, i, j]
            h = j * stride[1] + b * dilation[1] - pads[1] + offset[n, g, a, b, 1, i, j]
            y[n, o, i, j] += k[o, c, a, b] * mask[n, g, a, b, i, j] * read(x[n, channel], v, h)
    return y


def deform(w):
    for xs, ks, padding, stride, dilation, group, og, masked in [
            ((1, 1, 3, 3), (1, 1, 2, 2), [0, 0], [1, 1], [1, 1], 1, 1, False),
            ((2, 4, 4, 5), (2, 2, 2, 3), [1, 0, 0, 1], [2, 1], [1, 1], 2, 2, True),
            ((1, 2, 5, 5), (2, 2, 2, 2), [1, 1], [1, 2], [2, 1], 1, 2, True)]:
        pads = pads_of(padding, 2)
        lens = [(n + pads[i] + pads[i + 2] - (k - 1) * d - 1) // s + 1
                for i, (n, k, d, s) in enumerate(zip(xs[2:], ks[2:], dilation, stride))]
        taps = ks[2] * ks[3]
        for type in ["float", "double"]:
            x, k = w.random(type, xs), w.random(type, ks)
            offset = w.random(type, (xs[0], og * taps * 2, *lens), -2, 2)
            inputs = [x, k, offset]
            if masked:
                inputs.append(w.random(type, (xs[0], og * taps, *lens), 0, 1))
            r = deform_reference(x.a, k.a, offset.a, inputs[3].a if masked else None, padding,
                                 stride, dilation, group, og)
            w.case(f"deform_conv[{attrs(padding, stride, dilation, group)},offset_group={og}]",
                   inputs, r, tol=(1e-5, 1e-5) if type == "float" else None)
    wild = T("float", np.resize([np.nan, np.inf, -np.inf, 1e30, -1e30, -0.5, 2.5, 0], (1, 8, 2, 2)))
    x, k = T("float", np.ones((1, 1, 3, 3))), T("float", np.ones((1, 1, 2, 2)))
    tame = T("float", np.where(np.isfinite(wild.a), wild.a, 1e9))
    w.case("deform_conv", [x, k, wild], deform_reference(x.a, k.a, tame.a, None, [0, 0], [1, 1], [1, 1], 1, 1))
    w.case("deform_conv", [T("float", np.zeros((0, 1, 3, 3))), k, T("float", np.zeros((0, 8, 2, 2)))],
           np.zeros((0, 1, 2, 2)))
    x, k = D("float", 1, 4, 5, 5), D("float", 2, 4, 3, 3)
    w.case("deform_conv", [x, k, D("float", 1, 18, 3, 3)], shape="float_type, {1, 2, 3, 3}, {18, 9, 3, 1}")
    w.case("deform_conv", [D("float", (1, 4), 4, 5, (3, 5)), k, D("float", (1, 4), 18, 3, (1, 3))],
           shape="dynamic, float_type, {[1..4], 2, 3, [1..3]}")
    w.case("deform_conv", [x, k, D("float", 1, 17, 3, 3)], fails="axis 1 of input 2 has length 17, expected 18")
    w.case("deform_conv", [x, k, D("float", 1, 18, 3, 4)], fails="axis 3 of input 2 has length 4, expected 3")
    w.case("deform_conv", [x, k, D("float", 1, 18, 3, 3), D("float", 1, 8, 3, 3)], fails="axis 1 of input 3")
    w.case("deform_conv[offset_group=3]", [x, k, D("float", 1, 54, 3, 3)], fails="4 channels do not divide into offset_group 3")
    w.case("deform_conv", [x, D("float", 2, 3, 3, 3), D("float", 1, 18, 3, 3)], fails="mismatched channel numbers")
    w.case("deform_conv[offset_group=0]", [x, k, D("float", 1, 54, 3, 3)], fails="offset_group 0 is out of range")


def bfloats(w):
    a, b = w.random("bf16", (2, 3, 4)), w.random("bf16", (2, 4, 2))
    w.case("quant_dot", [a, b], a.a @ b.a, "float")
    x, k = w.random("bf16", (1, 4, 4, 3)), w.random("bf16", (4, 2, 2, 2))
    w.case("quant_convolution[group=2]", [x, k], convolve(x.a, k.a, [0, 0], [1, 1], [1, 1], 2), "float")
    w.case("quant_dot", [D("bf16", 2, 4), D("float", 4, 3)], fails="or two of fp8 or bf16, not bf16_type and float_type")
    w.case("quant_dot", [D("bf16", 2, 4), D("bf16", 4, 3), D("bf16", 1)], fails="zero point 0 is of type bf16_type")


def quant_backward(w):
    op = "quant_convolution_backwards"
    for xs, ws, *rest in [((1, 3, 4, 3), (3, 2, 3, 2), [1, 0], [2, 1], [1, 2], 1),
                          ((2, 4, 3, 3), (4, 2, 3, 3), [1, 1, 0, -1], [2, 2], [1, 1], 2)]:
        for channels in (0, 1, 2):
            x, k = w.random("uint8", xs, 0, 255), w.random("int8", ws, -128, 127)
            zeros = [w.random("uint8", (1,), 0, 255), w.random("int8", (channels,), -128, 127)] if channels else []
            p, q = (zeros[0].a, zeros[1].a.reshape(1, -1, 1, 1)) if channels else (0, 0)
            w.case(f"{op}[{attrs(*rest)}]", [x, k, *zeros], convolve_back(x.a - p, k.a - q, *rest), "int32")
    x, k = D("uint8", 1, 4, 3, 3), D("int8", 4, 2, 2, 2)
    w.case(op, [x, k, D("uint8", 1), D("int8", 3)], fails="zero point 1 has 3 values")
    w.case(op, [x, D("float", 4, 2, 2, 2)], fails="takes two integers of up to 32 bits")


def cases(w):
    dots(w)
    forward(w)
    forward_shapes(w)
    backward(w)
    columns(w)
    deform(w)
    bfloats(w)
    quant_backward(w)
