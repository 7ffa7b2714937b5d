# SPDX-License-Identifier: MIT
"""Operators that change shapes and move no bytes (or, reshaping, may have to)."""
import numpy as np
from make_cases import ANY, D, T

ALL = ANY + ["fp8e8m0", "int4", "uint4", "string", "complex64", "complex128"]


def every_type(w, op, shape, f):
    for type in ALL:
        if type.startswith("complex"):
            x = T(type, (np.arange(np.prod(shape)) - 1j).reshape(shape))
        else:
            x = w.random(type, shape, 1, 7)
        w.case(op, [x], T(type, f(x.raw)))


def simple(w):
    every_type(w, "identity", (2, 3), lambda x: x)
    every_type(w, "contiguous", (2, 3), lambda x: x)
    every_type(w, "transpose[permutation={1, 0}]", (2, 3), lambda x: x.T)
    x = w.random("float", (2, 3, 4), strides=(12, 1, 3))
    w.case("contiguous", [x], x.a, strides=(12, 4, 1))
    w.case("identity", [x], x.a, strides=(12, 1, 3))
    w.case("contiguous", [w.random("float", (2, 0))], np.zeros((2, 0)))
    w.case("contiguous", [D("float", (1, 4), 3)], shape="dynamic, float_type, {[1..4], 3}")
    x = w.random("float", (2, 3, 4, 5))
    w.case("layout[permutation={0, 2, 3, 1}]", [x], x.a, strides=(60, 1, 15, 3))
    w.case("layout[permutation={0, 2, 2, 1}]", [x], fails="layout: Invalid permutation: entry 2 is 2")
    w.case("transpose[permutation={0, 2, 3, 1}]", [x], x.a.transpose(0, 2, 3, 1), strides=(60, 5, 1, 20))
    w.case("transpose[permutation={0, 1}]", [x], fails="transpose: Permutation has wrong number of axes")
    w.case("transpose[permutation={0, 1, 2, 4}]", [x], fails="transpose: Invalid permutation")
    w.case("transpose[permutation={0, -1, 2, 3}]", [x], fails="transpose: Invalid permutation")
    w.case("transpose[permutation={1, 0}]", [D("half", (1, 4), 3)], shape="dynamic, half_type, {3, [1..4]}")
    w.case("transpose[permutation={}]", [T("float", 5)], np.array(5.0))


def broadcasts(w):
    x = w.random("float", (3,))
    w.case("broadcast[axis=1,out_lens={2, 3, 2}]", [x], np.broadcast_to(x.a[:, None], (2, 3, 2)), strides=(0, 1, 0))
    w.case("broadcast[axis=-2,out_lens={2, 3, 2}]", [x], np.broadcast_to(x.a[:, None], (2, 3, 2)))
    y = w.random("int8", (2, 3, 2))
    w.case("broadcast[axis=1]", [x, y], np.broadcast_to(x.a[:, None], (2, 3, 2)))
    w.case("broadcast[axis=0,out_lens={2, 3}]", [x], fails="broadcast: when broadcasting, succeeding sizes must match: axis 0 is 2")
    w.case("broadcast[axis=2,out_lens={2, 3}]", [x], fails="broadcast: axis 2 is out of range for rank 2")
    w.case("broadcast[axis=1,out_lens={2, 3}]", [w.random("float", (3, 1))], fails="broadcast: (broadcast ndims - axis)")
    w.case("broadcast[axis=0]", [D("float", (1, 4)), D("float", (2, 9), 3)], shape="dynamic, float_type, {[2..4], 3}")
    w.case("broadcast[axis=0,out_dyn_dims={[1..4], 3}]", [D("float", 2)], shape="float_type, {2, 3}, {1, 0}")
    w.case("broadcast[axis=0,out_lens={2, -3}]", [T("float", 1.0)], fails="broadcast: length -3")
    w.case("broadcast[axis=0,out_lens={2, 3}]", [T("float", 1.5)], np.full((2, 3), 1.5), strides=(0, 0))
    x = w.random("float", (2, 1, 3))
    w.case("multibroadcast[out_lens={4, 2, 5, 3}]", [x], np.broadcast_to(x.a, (4, 2, 5, 3)), strides=(0, 3, 0, 1))
    w.case("multibroadcast[out_lens={2, 0, 3}]", [x], np.broadcast_to(x.a, (2, 0, 3)))
    w.case("multibroadcast[out_lens={2, 3}]", [x], fails="multibroadcast: input dimensions should <= output size")
    w.case("multibroadcast[out_lens={3, 1, 3}]", [x], fails="multibroadcast: input shape cannot be broadcasted")
    for a, b in [((2, 1, 3), (4, 1)), ((1,), (2, 3)), ((), (2, 2)), ((3, 1), (0,)), ((2, 3), ())]:
        x, y = w.random("float", a), w.random("int32", b)
        shape = np.broadcast_shapes(a, b)
        w.case("multibroadcast", [x, y], np.broadcast_to(x.a, shape))
    x, y, z = w.random("half", (2, 1)), w.random("half", (3,)), w.random("half", (4, 1, 1))
    w.case("multibroadcast", [x, y, z], np.broadcast_to(x.a, (4, 2, 3)))
    w.case("multibroadcast", [D("float", 2), D("float", 3)], fails="multibroadcast: Dimensions do not match: 2 and 3")
    # ranges: an open length meets 1, itself by name, or a fixed one
    b = ("dynamic, float_type, ", "multibroadcast")
    w.case(b[1], [D("float", (1, 4, "n"), 3), D("float", (1, 4, "n"), 1)], shape=b[0] + "{n[1..4], 3}")
    w.case(b[1], [D("float", (1, 4)), D("float", 7)], shape="float_type, {7}, {1}")
    w.case(b[1], [D("float", (2, 4)), D("float", 1)], shape=b[0] + "{[2..4]}")
    w.case(b[1], [D("float", (2, 4)), D("float", (3, 9))], shape=b[0] + "{[3..4]}")
    w.case(b[1], [D("float", (0, 4)), D("float", (1, 9))], shape=b[0] + "{[0..9]}")
    w.case(b[1], [D("float", (2, 4)), D("float", (5, 9))], fails="multibroadcast: Dimensions do not match")
    w.case("multibroadcast[out_dyn_dims={[1..4], 3}]", [D("float", 1, 3)], shape=b[0] + "{[1..4], 3}")
    # lengths from a tensor
    x, n = w.random("float", (3, 1)), T("int64", [2, 1, 6])
    w.case("broadcast_with_dims", [x, n], np.broadcast_to(x.a, (2, 3, 6)))
    w.case("broadcast_with_dims", [x, T("int64", [1])], x.a)
    w.case("broadcast_with_dims", [x, T("int64", [2, 1, 6], known=True)], np.broadcast_to(x.a, (2, 3, 6)), strides=(0, 1, 0))
    w.case("broadcast_with_dims", [x, T("int64", [2, 4])], aborts="broadcast_with_dims: Dimensions do not match: 2 and 3")
    w.case("broadcast_with_dims", [x, T("int64", [2, -4], known=True)], fails="broadcast_with_dims: length -4 of axis 1")
    w.case("broadcast_with_dims", [x, D("float", 2)], fails="broadcast_with_dims: input 1 must be of an integral type")
    w.case("broadcast_with_dims", [D("float", 2), D("int64", 2)], shape="dynamic, float_type, {[0..1099511627776], [0..1099511627776]}")
    x, y = w.random("float", (2, 3)), w.random("float", (4, 5, 3, 6))
    w.case("broadcast_for_dot", [x, y], np.broadcast_to(x.a, (4, 5, 2, 3)))
    w.case("broadcast_for_dot", [y, x], y.a)
    w.case("broadcast_for_dot", [D("float", 2, 3, 4), D("float", 3, 4, 5)], fails="broadcast_for_dot: Dimensions do not match")
    w.case("scalar[scalar_bcst_dims={2, 3}]", [T("float", [2.5])], np.full((2, 3), 2.5), strides=(0, 0), skip=["dynamic"])
    w.case("scalar[scalar_bcst_dims={2, 3}]", [T("float", [1, 2])], fails="scalar: the input has 2 elements")


def squeezes(w):
    x = w.random("float", (1, 2, 1, 3, 1))
    w.case("squeeze[axes={0, 2}]", [x], x.a.reshape(2, 3, 1))
    w.case("squeeze[axes={-1}]", [x], x.a.reshape(1, 2, 1, 3))
    w.case("squeeze[axes={}]", [x], x.a.reshape(2, 3))
    w.case("squeeze[axes={}]", [w.random("float", (1, 1))], shape="float_type, {1}, {0}")
    w.case("squeeze[axes={1}]", [x], fails="squeeze: squeeze axis dimension should be equal to 1: axis 1 is 2")
    w.case("squeeze[axes={0, 0}]", [x], fails="squeeze: axis 0 is given twice")
    w.case("squeeze[axes={5}]", [x], fails="squeeze: axis 5 is out of range for rank 5")
    w.case("squeeze[axes={0}]", [T("int32", 7)], np.array(7))
    w.case("squeeze[axes={0}]", [D("float", (1, 4), (2, 3, "t"))], shape="dynamic, float_type, {t[2..3]}")
    w.case("squeeze[axes={}]", [D("float", (1, 4), 3)], shape="unranked, float_type")
    w.case("squeeze[axes={}]", [D("float", (2, 4), 1)], shape="dynamic, float_type, {[2..4]}")
    x = w.random("float", (2, 1, 3), strides=(8, 5, 2))
    w.case("squeeze[axes={1}]", [x], x.a[:, 0], strides=(8, 2))
    x = w.random("float", (2, 3))
    w.case("unsqueeze[axes={1}]", [x], x.a[:, None], strides=(3, 3, 1))
    w.case("unsqueeze[axes={-1, 0}]", [x], x.a[None, :, :, None], strides=(6, 3, 1, 1))
    w.case("unsqueeze[axes={0}]", [T("float", 4.0)], np.array([4.0]), strides=(1,))
    w.case("unsqueeze[axes={0, 1}]", [T("float", 4.0)], np.array([[4.0]]))
    w.case("unsqueeze[axes={3}]", [x], fails="unsqueeze: axis 3 is out of range for rank 3")
    w.case("unsqueeze[axes={1, 1}]", [x], fails="unsqueeze: axis 1 is given twice")
    w.case("unsqueeze[axes={1}]", [D("float", (1, 4), 3)], shape="dynamic, float_type, {[1..4], 1, 3}")
    x = w.random("float", (2, 12))
    w.case("unsqueeze[axes={1},steps={4}]", [x], x.a.reshape(2, 4, 3), skip=["dynamic"])
    w.case("unsqueeze[axes={1},steps={5}]", [x], fails="unsqueeze: step 5 of axis 1")
    w.case("unsqueeze[axes={1},steps={0}]", [x], fails="unsqueeze: step 0 of axis 1")
    x = w.random("float", (5, 6))
    w.case("step[axes={0, 1},steps={2, 3}]", [x], x.a[::2, ::3], strides=(12, 3))
    w.case("step[axes={-1},steps={7}]", [x], x.a[:, ::7])
    w.case("step[axes={0},steps={0}]", [x], fails="step: step 0 of axis 0")
    w.case("step[axes={0},steps={1, 2}]", [x], fails="step: 2 steps for 1 axes")
    w.case("step[axes={0},steps={2}]", [D("float", (1, 5), 6)], shape="dynamic, float_type, {[1..3], 6}")
    w.case("step[axes={0},steps={9223372036854775807}]", [x], x.a[:1])


def slices(w):
    every_type(w, "slice[axes={1},starts={1},ends={3}]", (2, 4), lambda x: x[:, 1:3])
    x = w.random("float", (1, 1, 4, 6))
    w.case("slice[axes={2, 3},starts={0, 2},ends={4, 5}]", [x], x.a[:, :, 0:4, 2:5], strides=(24, 24, 6, 1))
    x = w.random("float", (6, 5))
    big = 9223372036854775807
    for s, e in [(1, 4), (-3, -1), (0, big), (-big - 1, big), (4, 2), (2, 2), (-2, 3), (9, 12), (-9, 3)]:
        w.case(f"slice[axes={{0}},starts={{{s}}},ends={{{e}}}]", [x], x.a[s:e])
    w.case("slice[axes={1, 0},starts={1, 2},ends={3, 9}]", [x], x.a[2:9, 1:3])
    w.case("slice[axes={-1},starts={1},ends={-1}]", [x], x.a[:, 1:-1])
    w.case("slice[axes={0},starts={1},ends={3}]", [w.random("int8", (4,), strides=(3,))], shape="int8_type, {2}, {3}")
    w.case("slice[axes={2},starts={1},ends={3}]", [x], fails="slice: axis 2 is out of range for rank 2")
    w.case("slice[axes={0, 0},starts={1, 1},ends={3, 3}]", [x], fails="slice: axis 0 is given twice")
    w.case("slice[axes={0},starts={1, 2},ends={3}]", [x], fails="slice: inconsistent sizes: 2 starts, 1 ends, 1 axes")
    i = lambda *v: T("int64", v)
    w.case("slice[axes={0},ends={4}]", [x, i(1)], x.a[1:4])
    w.case("slice[axes={1},starts={1}]", [x, i(-1)], x.a[:, 1:-1])
    w.case("slice[starts={1},ends={4}]", [x, i(1)], x.a[:, 1:4])
    w.case("slice[axes={0, 1}]", [x, i(1, 2), i(5, 4)], x.a[1:5, 2:4])
    w.case("slice[ends={5, 4}]", [x, i(1, 2), i(0, 1)], x.a[1:5, 2:4])
    w.case("slice", [x, i(1, -3), i(5, big), i(1, 0)], x.a[-3:, 1:5])
    w.case("slice", [x, T("int32", [2]), T("int32", [4]), T("int32", [-1])], x.a[:, 2:4])
    w.case("slice", [x, T("int64", [1], known=True), T("int64", [3], known=True), T("int64", [0], known=True)], x.a[1:3], strides=(5, 1))
    w.case("slice", [x, i(1), i(3), i(7)], aborts="slice: axis 7 is out of range for rank 2")
    w.case("slice", [x, i(1), i(3, 4), i(0)], aborts="slice: inconsistent sizes")
    w.case("slice[axes={0},starts={1},ends={2}]", [x, i(1)], fails="slice: Wrong number of arguments")
    # ranges of the result
    b = "slice[axes={0},starts=%s,ends=%s]"
    for s, e, r in [("{1}", "{3}", "[0..2]"), ("{0}", "{100}", "[1..9]"), ("{-3}", "{9223372036854775807}", "[1..3]"), ("{0}", "{-1}", "[0..8]"), ("{-5}", "{4}", "[0..4]")]:
        w.case(b % (s, e), [D("float", (1, 9), 2)], shape="dynamic, float_type, {%s, 2}" % r)
    w.case("slice[axes={1}]", [D("float", (1, 9), 5), D("int64", 1), D("int64", 1)], shape="dynamic, float_type, {[1..9], [0..5]}")
    w.case("slice", [D("float", (1, 9), 5), D("int64", 1), D("int64", 1), D("int64", 1)], shape="dynamic, float_type, {[0..9], [0..5]}")


def reshapes(w):
    every_type(w, "reshape[dims={3, 2}]", (2, 3), lambda x: x.reshape(3, 2))
    x = w.random("float", (2, 3, 4))
    r = lambda d: "reshape[dims={%s}]" % d
    for d, shape in [("6, 4", (6, 4)), ("-1", (24,)), ("0, -1", (2, 12)), ("4, -1, 1", (4, 6, 1)), ("0, 0, 2, 2", (2, 3, 2, 2))]:
        w.case(r(d), [x], x.a.reshape(shape))
    w.case(r("-1, -1"), [x], fails="reshape: Dimensions for reshape can only have one -1 dim")
    w.case(r("5, 5"), [x], fails="reshape: Wrong number of elements for reshape: reshape has 25 elements whereas the input has 24")
    w.case(r("5, -1"), [x], fails="reshape: Wrong number of elements for reshape: 24 elements cannot be divided by 5")
    w.case(r("-2, 3"), [x], fails="reshape: length -2 of axis 0")
    w.case(r("2, 3, 4, 0"), [x], fails="reshape: length 0 copies axis 3 of an input of 3 dimensions")
    w.case(r("4611686018427387904, 4611686018427387904, -1"), [x], fails="reshape: the lengths overflow")
    w.case(r("2, 3"), [w.random("float", (0, 3))], fails="reshape: Wrong number of elements")
    w.case(r("0, 7, 3"), [w.random("float", (0, 3))], np.zeros((0, 7, 3)))
    w.case(r("3, -1"), [w.random("float", (0, 3))], np.zeros((3, 0)))
    w.case(r("-1, 3"), [w.random("float", (0, 3))], np.zeros((0, 3)))
    w.case(r(""), [T("float", [3.0])], np.array(3.0))
    w.case(r("1, 1"), [T("float", 3.0)], np.array([[3.0]]))
    # ranges
    d = "dynamic, float_type, "
    w.case(r("0, -1"), [D("float", (1, 4), 3, 5)], shape=d + "{[1..4], 15}")
    w.case(r("-1, 15"), [D("float", (1, 4), 3, 5)], shape=d + "{[1..4], 15}")
    w.case(r("-1, 5"), [D("float", (1, 4), 3, 5)], shape=d + "{[3..12], 5}")
    w.case(r("-1, 30"), [D("float", (1, 4), 3, 5)], shape=d + "{[0..2], 30}")
    w.case(r("-1"), [D("float", (1, 4), (2, 3))], shape=d + "{[2..12]}")
    w.case(r("0, -1"), [D("float", (1, 4), (2, 3), 2)], shape=d + "{[1..4], [4..6]}")
    w.case(r("3, 5"), [D("float", (1, 4), 3, 5)], shape="float_type, {3, 5}, {5, 1}")
    w.case(r("7, 11"), [D("float", (1, 4), 3, 5)], fails="reshape: Wrong number of elements")
    w.case(r(""), [x, T("int64", [4, -1])], x.a.reshape(4, 6))
    w.case(r(""), [x, T("int64", [4, -1], known=True)], x.a.reshape(4, 6), strides=(6, 1))
    w.case(r(""), [x, T("int64", [0, 5])], aborts="reshape: Wrong number of elements")
    w.case(r(""), [x, T("int64", [2] * 17)], fails="reshape: a result of 17 dimensions")
    w.case(r("2, -1"), [D("int8", 2**42)], shape="int8_type, {2, %d}, {%d, 1}" % (2**41, 2**41))
    # lazy: as a view or not at all
    w.case("reshape_lazy[dims={6, 4}]", [x], x.a.reshape(6, 4), skip=["stride", "dynamic"])
    y = w.random("float", (2, 3, 4), strides=(24, 8, 2))
    w.case("reshape_lazy[dims={6, 2, 2}]", [y], y.a.reshape(6, 2, 2), strides=(8, 4, 2), skip=["stride"])
    y = w.random("float", (3, 2, 4), strides=(4, 12, 1))
    w.case("reshape_lazy[dims={3, 2, 2, 2}]", [y], y.a.reshape(3, 2, 2, 2), strides=(4, 12, 2, 1), skip=["stride"])
    w.case("reshape_lazy[dims={6, 4}]", [y], fails="reshape_lazy: the input's strides allow no view")
    y = w.broadcast("float", (2, 3, 4), (0,))
    w.case("reshape_lazy[dims={2, 12}]", [y], y.a.reshape(2, 12), strides=(0, 1), skip=["stride", "dynamic"])
    y = w.broadcast("float", (2, 3, 4), (0, 1))
    w.case("reshape_lazy[dims={6, 1, 4}]", [y], y.a.reshape(6, 1, 4), skip=["stride", "dynamic"])
    for axis, shape in [(0, (1, 24)), (1, (2, 12)), (2, (6, 4)), (3, (24, 1)), (-1, (6, 4)), (-3, (1, 24))]:
        w.case(f"flatten[axis={axis}]", [x], x.a.reshape(shape))
    w.case("flatten[axis=4]", [x], fails="flatten: axis for flatten must be less than tensor rank: axis 4 of 3 dimensions")
    w.case("flatten[axis=0]", [T("float", 2.0)], np.array([[2.0]]))
    w.case("flatten[axis=1]", [D("float", (1, 4), 3, (2, 5))], shape=d + "{[1..4], [6..15]}")
    w.case("flatten", [w.random("float", (1, 1, 4, 3))], shape="float_type, {1, 12}, {12, 1}")
    w.case("as_shape[shape=float_type, {4, 6}, {1, 4}]", [x], x.a.reshape(6, 4).T, skip=["stride", "dynamic"])
    w.case("as_shape[shape=float_type, {5, 5}, {5, 1}]", [x], fails="as_shape: Wrong number of elements")
    w.case("as_shape[shape=float_type, {4, 6}, {1, 400}]", [x], fails="as_shape: Wrong number of elements")
    w.case("as_shape[shape=half_type, {4, 6}, {6, 1}]", [x], fails="as_shape: Types do not match")


def cases(w):
    simple(w)
    broadcasts(w)
    squeezes(w)
    slices(w)
    reshapes(w)
