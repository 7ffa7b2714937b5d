# SPDX-License-Identifier: MIT
"""Each family of operators in each type that TensorFlow computes it in, and at its edges: no elements, no axes,
negative axes, the ends of a type. See case.py.

Inputs of a type that files of numpy have not come as floats and are cast in the graph. Where TensorFlow has no kernel
for a type, make.py leaves the case out."""
import numpy as np
import tensorflow as tf

from case import OPTIONAL, QUICK, R, b, case, f, given, i, weights

HALVES, REALS = ("float16", "bfloat16"), ("float16", "bfloat16", "float64")
INTS = ("int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64")
ALL = REALS + INTS


def values(shape, dtype, low=None, high=None):
    """Fractions for floats, whole numbers for integers, as an input that the graph casts where it must."""
    if dtype in HALVES:
        return f(*shape, low=-2 if low is None else low, high=2 if high is None else high)
    if dtype == "float64":
        return f(*shape, low=-2 if low is None else low, high=2 if high is None else high, dtype=dtype)
    return i(*shape, low=int(0 if low is None else low) if dtype[0] == "u" else int(-9 if low is None else np.floor(low)), high=10 if high is None else int(high) + 1, dtype=dtype)


def sweep(name, function, types, *shapes, low=None, high=None, lows=None):
    for dtype in types:
        makers = [values(s, dtype, low if lows is None else lows[k], high) for k, s in enumerate(shapes)]
        key = f"sweep_{name}_{dtype}"
        case(key, lambda *x, dtype=dtype: function(*[tf.cast(v, dtype) for v in x]), *makers)
        OPTIONAL.add(key)


# --- element-wise ---
NAMED = {k: "features" for k in "Relu Relu6 Elu Selu Softplus Softsign LeakyRelu".split()}
for op in "Abs Ceil Floor Neg Relu Relu6 Rint Sign Square".split():
    sweep(op, lambda x, op=op: getattr(R, op)(**{NAMED.get(op, "x"): x}), ALL, (3, 5))
sweep("Round", lambda x: R.Round(x=x), REALS, (3, 5))  # of int64 TensorFlow 2.21 returns zeros
sweep("Tan", lambda x: R.Tan(x=x), REALS, (3, 5), low=-1.2, high=1.2)  # nearer to a pole halves do not say where it is
for op in "Atan Asinh Cos Cosh Elu Erf Erfc Exp Expm1 LeakyRelu Selu Sigmoid Sin Sinh Softplus Softsign Tanh".split():
    sweep(op, lambda x, op=op: getattr(R, op)(**{NAMED.get(op, "x"): x}), REALS, (3, 5))
for op in "Inv Log Log1p Reciprocal Rsqrt Sqrt".split():
    sweep(op, lambda x, op=op: getattr(R, op)(x=x), REALS, (3, 5), low=0.1)
for op in "Acos Asin Atanh".split():
    sweep(op, lambda x, op=op: getattr(R, op)(x=x), REALS, (3, 5), low=-0.9, high=0.9)
sweep("Acosh", lambda x: R.Acosh(x=x), REALS, (3, 5), low=1.1, high=4)
sweep("IsNan", lambda x: [R.IsNan(x=x), R.IsInf(x=x), R.IsFinite(x=x)], REALS, (3, 5))
for op in "Add AddV2 Sub Mul Maximum Minimum SquaredDifference".split():
    sweep(op, lambda x, y, op=op: getattr(R, op)(x=x, y=y), ALL, (2, 3, 1), (3, 4))
for op in "Div DivNoNan FloorDiv FloorMod Mod Pow RealDiv TruncateDiv TruncateMod Xdivy Xlogy".split():
    sweep(op, lambda x, y, op=op: getattr(R, op)(x=x, y=y), ALL, (3, 4), (4,), lows=(None if op not in ("Pow", "Xlogy") else 0.5, 0.5))
for op in "Atan2 MulNoNan".split():
    sweep(op, lambda x, y, op=op: getattr(R, op)(x=x, y=y), REALS, (3, 4), (4,))
for op in "Less LessEqual Greater GreaterEqual Equal NotEqual".split():
    sweep(op, lambda x, y, op=op: getattr(R, op)(x=x, y=y), ALL, (4, 5), (5,))
for op in "BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift".split():
    sweep(op, lambda x, y, op=op: getattr(R, op)(x=x, y=y), INTS + ("int32",), (4, 5), (5,), lows=(None, 0), high=6)
sweep("Invert", lambda x: R.Invert(x=x), INTS + ("int32",), (4, 5))
sweep("AddN", lambda x, y, z: R.AddN(inputs=[x, y, z]), ALL, (3, 4), (3, 4), (3, 4))
sweep("ClipByValue", lambda x: R.ClipByValue(t=x, clip_value_min=tf.cast(1, x.dtype), clip_value_max=tf.cast(3, x.dtype)), ALL, (3, 4))
WIDE = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
for src in WIDE:
    maker = b(3, 4) if src == "bool" else values((3, 4), src, 0, 3) if src not in ("float32", "int32") else (f(3, 4, low=0, high=3) if src == "float32" else i(3, 4, low=0, high=4))
    case(f"sweep_Cast_{src}", lambda x, src=src: [R.Cast(x=tf.cast(x, src), DstT=dst) for dst in WIDE], maker)

# --- movement ---
MOVED = ALL + ("bool",)


def moved(name, function, *shapes):
    for dtype in MOVED:
        makers = [b(*s) if dtype == "bool" else values(s, dtype) for s in shapes]
        key = f"sweep_{name}_{dtype}"
        case(key, lambda *x, dtype=dtype: function(*[tf.cast(v, dtype) for v in x]), *makers)
        OPTIONAL.add(key)


moved("join", lambda x, y: [R.ConcatV2(values=[x, y, x], axis=-1), R.Pack(values=[x, x], axis=-1)] + list(R.Split(axis=-1, value=y, num_split=2)) + list(R.Unpack(value=x, num=2, axis=-2)), (2, 3), (2, 4))
moved("slice", lambda x: [x[1:, ::2], x[::-1, 1], R.Slice(input=x, begin=[1, 0], size=[-1, 2]), R.ReverseV2(tensor=x, axis=[-1])], (3, 5))
moved("view", lambda x: [R.Reshape(tensor=x, shape=[3, -1]), R.Transpose(x=x, perm=[1, 0]), R.ExpandDims(input=x, axis=-2), R.Tile(input=x, multiples=[2, 2]), R.BroadcastTo(input=x, shape=[2, 4, 3])], (4, 3))
moved("gather", lambda x: [R.GatherV2(params=x, indices=[2, 0], axis=-1), R.GatherNd(params=x, indices=[[1, 2], [0, 1]]), R.GatherV2(params=x, indices=np.int64([1]), axis=0)], (2, 3))
moved("Select", lambda x, y: [R.SelectV2(condition=[True, False, True], t=x, e=y), R.Select(condition=[True, False], x=x, y=y)], (2, 3), (2, 3))
moved("OneHot", lambda x: R.OneHot(indices=[0, 2, -1], depth=3, on_value=x[0], off_value=x[1]), (2,))
moved("like", lambda x: [R.ZerosLike(x=x), R.Fill(dims=[2, 2], value=x[0])], (3,))
sweep("OnesLike", lambda x: R.OnesLike(x=x), REALS + ("int8", "int16", "int64", "uint8", "uint16"), (3,))  # of the wider unsigned ones TensorFlow 2.21 returns zeros
moved("band", lambda x: R.MatrixBandPart(input=x, num_lower=1, num_upper=0), (3, 4))
moved("blocks", lambda x: [R.SpaceToBatchND(input=x, block_shape=[2, 2], paddings=[[0, 0], [1, 1]]), R.BatchToSpaceND(input=x, block_shape=[2, 2], crops=[[0, 1], [0, 0]]), R.SpaceToDepth(input=x, block_size=2), R.DepthToSpace(input=x, block_size=2)], (4, 2, 2, 4))
sweep("Pad", lambda x: [R.Pad(input=x, paddings=[[1, 0], [0, 2]]), R.PadV2(input=x, paddings=[[1, 0], [0, 2]], constant_values=tf.cast(3, x.dtype)), R.MirrorPad(input=x, paddings=[[1, 0], [0, 1]], mode="REFLECT")], ALL, (3, 4))
sweep("ScatterNd", lambda x: [R.ScatterNd(indices=[[1], [0], [1]], updates=x, shape=[4, 2])], ALL, (3, 2))
sweep("TensorScatter", lambda x, y: [getattr(R, "TensorScatter" + k)(tensor=x, indices=[[1], [3]], updates=y) for k in ("Update", "Add", "Max", "Min")], ALL, (5, 2), (2, 2))

# --- matrices and windows ---
sweep("MatMul", lambda x, y: R.MatMul(a=x, b=y, transpose_b=True), REALS + ("int64", "int32"), (3, 4), (5, 4))
sweep("BatchMatMulV2", lambda x, y: R.BatchMatMulV2(x=x, y=y), REALS + ("int64", "int32"), (2, 3, 4), (1, 4, 5))
sweep("Einsum", lambda x, y: R.Einsum(inputs=[x, y], equation="abc,cd->bad"), REALS, (2, 3, 4), (4, 5))
sweep("BiasAdd", lambda x, y: R.BiasAdd(value=x, bias=y), ALL, (2, 4, 3), (3,))
sweep("Conv2D", lambda x, y: R.Conv2D(input=x, filter=y, strides=[1, 2, 1, 1], padding="SAME"), REALS, (1, 5, 6, 2), (3, 3, 2, 4))
sweep("Depthwise", lambda x, y: R.DepthwiseConv2dNative(input=x, filter=y, strides=[1, 1, 1, 1], padding="SAME"), REALS, (1, 5, 6, 2), (3, 3, 2, 2))
sweep("Conv3D", lambda x, y: R.Conv3D(input=x, filter=y, strides=[1, 1, 1, 1, 1], padding="VALID"), REALS, (1, 4, 5, 6, 2), (2, 2, 2, 2, 3))
sweep("Transposed", lambda x, y: [R.Conv2DBackpropInput(input_sizes=[1, 6, 8, 3], filter=y, out_backprop=x, strides=[1, 2, 2, 1], padding="SAME")], REALS, (1, 3, 4, 2), (3, 3, 3, 2))
sweep("MaxPool", lambda x: R.MaxPool(input=x, ksize=[1, 2, 3, 1], strides=[1, 2, 1, 1], padding="SAME"), ALL, (1, 5, 6, 2))
sweep("AvgPool", lambda x: R.AvgPool(value=x, ksize=[1, 2, 3, 1], strides=[1, 2, 1, 1], padding="SAME"), REALS, (1, 5, 6, 2))
sweep("Pool3D", lambda x: [R.MaxPool3D(input=x, ksize=[1, 2, 2, 2, 1], strides=[1, 1, 2, 1, 1], padding="SAME"), R.AvgPool3D(input=x, ksize=[1, 2, 2, 2, 1], strides=[1, 1, 2, 1, 1], padding="VALID")], REALS, (1, 3, 4, 5, 2))
sweep("FusedBatchNormV3", lambda x: R.FusedBatchNormV3(x=x, scale=weights(3), offset=weights(3, seed=1), mean=weights(3, seed=2), variance=tf.abs(weights(3, seed=3)) + 0.1, is_training=False)[0], HALVES, (2, 4, 5, 3))
sweep("LRN", lambda x: R.LRN(input=x, depth_radius=2, bias=1.5, alpha=0.3, beta=0.7), HALVES, (1, 3, 4, 9))
sweep("L2Loss", lambda x: R.L2Loss(t=x), REALS, (3, 4))
sweep("resize", lambda x: [R.ResizeBilinear(images=x, size=[6, 4], half_pixel_centers=True), R.ResizeNearestNeighbor(images=x, size=[6, 4], half_pixel_centers=True), R.ResizeBicubic(images=x, size=[6, 8], half_pixel_centers=True)], ("float16", "float64", "int8", "int16", "uint8", "uint16"), (1, 3, 4, 2))
sweep("CropAndResize", lambda x: [R.CropAndResize(image=x, boxes=[[0.1, 0.2, 0.8, 0.9]], box_ind=[0], crop_size=[3, 4], method=m) for m in ("bilinear", "nearest")], ("float16", "float64", "uint8", "int16", "int64"), (1, 5, 6, 2))

# --- reductions ---
for op in "Sum Mean Max Min Prod EuclideanNorm".split():
    sweep("reduce_" + op, lambda x, op=op: [getattr(R, op)(input=x, axis=[-1]), getattr(R, op)(input=x, axis=[0, 1], keep_dims=True)], ALL + ("int32",), (3, 4), low=1 if op == "Prod" else None, high=2 if op == "Prod" else None)
sweep("arg", lambda x: [R.ArgMax(input=x, dimension=-1), R.ArgMin(input=x, dimension=0, output_type=tf.int32)], ALL, (4, 5))
sweep("scan", lambda x: [R.Cumsum(x=x, axis=-1, exclusive=True, reverse=True), R.Cumsum(x=x, axis=0)], ALL, (3, 4))
sweep("Cumprod", lambda x: R.Cumprod(x=x, axis=-1, reverse=True), ALL, (2, 3), low=1, high=3)
sweep("softmax", lambda x: [R.Softmax(logits=x), R.LogSoftmax(logits=x)], REALS, (3, 5))
sweep("TopKV2", lambda x: list(R.TopKV2(input=x, k=3)), ALL, (3, 7))
sweep("Where", lambda x: R.Where(condition=x), ALL, (3, 4))
sweep("Unique", lambda x: list(R.Unique(x=x)) + list(R.UniqueWithCounts(x=x, out_idx=tf.int64)), ALL, (9,))
sweep("range", lambda x: R.Range(start=tf.cast(1, x.dtype), limit=tf.cast(9, x.dtype), delta=tf.cast(2, x.dtype)) + x[0], REALS[:2] + ("float64", "int64", "int32"), (1,))
sweep("LinSpace", lambda x: R.LinSpace(start=tf.cast(1, x.dtype), stop=tf.cast(2, x.dtype), num=7) + x[0], REALS, (1,))

# --- edges ---
for op in "Sum Mean Max Min Prod".split():
    case(f"edge_{op}_nothing", lambda x, op=op: [getattr(R, op)(input=x[:, :0], axis=[1]), getattr(R, op)(input=x[:0], axis=[-1], keep_dims=True)], f(3, 4))
    case(f"edge_{op}_scalar", lambda x, op=op: [getattr(R, op)(input=x[0, 0], axis=tf.zeros([0], tf.int32)), getattr(R, op)(input=x, axis=-2), getattr(R, op)(input=x, axis=np.int64([0, -1]), keep_dims=True)], f(3, 4))
case("edge_logic_nothing", lambda x: [R.All(input=x[:, :0], axis=[1]), R.Any(input=x[:, :0], axis=[1])], b(3, 4))
case("edge_mean_negative", lambda x: [R.Mean(input=x, axis=[0]), R.Mean(input=x, axis=[0, 1])], i(3, 4, low=-50, high=10))
case("edge_join_nothing", lambda x: [R.ConcatV2(values=[x, x[:0]], axis=0), R.ConcatV2(values=[x[:0], x[:0]], axis=0), R.Pack(values=[x[0, 0], x[1, 1]], axis=-1), R.Pack(values=[x], axis=-3)], f(3, 4))
case("edge_parts_nothing", lambda x: list(R.SplitV(value=x, size_splits=[0, 4, -1], axis=-1, num_split=3)) + list(R.Unpack(value=x[:1], num=1, axis=0)), f(3, 4))
case("edge_slice_nothing", lambda x: [R.Slice(input=x, begin=[3, 0], size=[-1, 4]), R.Slice(input=x, begin=[0, 4], size=[3, 0]), x[5:], x[-1:-9:-1], x[..., 2], x[-9:9:3]], f(3, 4))
case("edge_int_ends", lambda x: [x[-2**31:2**31 - 1], x[2**31 - 1:-2**31:-1], x[::2**31 - 1]], f(5))
case("edge_gather_nothing", lambda x: [R.GatherV2(params=x, indices=tf.zeros([0], tf.int32), axis=1), R.GatherV2(params=x, indices=1, axis=-1), R.GatherNd(params=x, indices=tf.zeros([2, 0], tf.int32))], f(3, 4))
case("edge_gather_batch", lambda x, k: [R.GatherV2(params=x, indices=k, axis=-1, batch_dims=-1), R.GatherV2(params=x, indices=k, axis=1, batch_dims=1)], f(2, 5), i(2, 3, low=0, high=5))
case("edge_one_hot_axis", lambda k: [R.OneHot(indices=k, depth=3, on_value=1.0, off_value=0.0, axis=a) for a in (-1, 0, 1, 2)] + [R.OneHot(indices=k, depth=0, on_value=1.0, off_value=0.0), R.OneHot(indices=k[0, 0], depth=3, on_value=True, off_value=False)], i(2, 5, low=0, high=3))
case("edge_reshape_nothing", lambda x: [R.Reshape(tensor=x[:0], shape=[0, 7]), R.Reshape(tensor=x[:1, :1], shape=tf.zeros([0], tf.int32)), R.Reshape(tensor=x[:0], shape=[-1, 4])], f(3, 4))
case("edge_squeeze", lambda x: [R.Squeeze(input=x, axis=[-1]), R.Squeeze(input=x, axis=[0, -1]), R.Squeeze(input=x[:, :1])], f(1, 4, 1))
case("edge_tile_nothing", lambda x: [R.Tile(input=x, multiples=[0, 2]), R.Tile(input=x[0, 0], multiples=tf.zeros([0], tf.int32)), R.BroadcastTo(input=x[:, :1], shape=[2, 3, 5])], f(3, 4))
case("edge_pad_nothing", lambda x: [R.Pad(input=x, paddings=[[0, 0], [0, 0]]), R.Pad(input=x[:0], paddings=[[1, 1], [0, 0]]), R.PadV2(input=x, paddings=np.int64([[0, 1], [0, 0]]), constant_values=np.float32(np.inf))], f(3, 4))
case("edge_range", lambda x: [R.Range(start=5, limit=5, delta=1), R.Range(start=10, limit=0, delta=-3), R.Range(start=np.int64(2**60), limit=np.int64(2**60 + 5), delta=np.int64(2)), R.Range(start=0.0, limit=1.0, delta=0.1), R.LinSpace(start=3.0, stop=1.0, num=1)], f(1))
case("edge_arg_first", lambda x: [R.ArgMax(input=x, dimension=-1), R.ArgMin(input=x, dimension=-2)], i(4, 5, low=0, high=2))
case("edge_scan_axis", lambda x: [R.Cumsum(x=x, axis=-2), R.Cumsum(x=x, axis=np.int64(0), exclusive=True), R.Cumprod(x=x, axis=-1, exclusive=True), R.Cumsum(x=x[:0], axis=0)], f(3, 4))
case("edge_matmul_nothing", lambda x: [R.MatMul(a=x[:, :0], b=x[:0]), R.MatMul(a=x[:0], b=x, transpose_b=True), R.BatchMatMulV2(x=x, y=R.ExpandDims(input=x, axis=0), adj_x=True)], f(3, 4))
case("edge_where_nothing", lambda x: R.Where(condition=x > 9), f(3, 4))
case("edge_top_k", lambda x: list(R.TopKV2(input=x, k=1)) + list(R.TopKV2(input=x, k=0)) + list(R.TopKV2(input=x, k=5, sorted=False))[:0], i(3, 5, low=0, high=3))
case("edge_shape_scalar", lambda x: [R.Shape(input=x[0, 0]), R.Size(input=x[0, 0]), R.Rank(input=x[0, 0]), R.Size(input=x[:0], out_type=tf.int64), R.ExpandDims(input=x[0, 0], axis=0)], f(3, 4))
case("edge_small", lambda x: [R.Log1p(x=x) * 1e6, R.Expm1(x=x) * 1e6], given(1e-7, -3e-8, 2e-6, 1e-5))
case("edge_large", lambda x: [R.Softplus(features=x), R.Sigmoid(x=x), R.Expm1(x=x), R.Log1p(x=R.Abs(x=x)), R.Tanh(x=x), R.Softmax(logits=x), R.LogSoftmax(logits=x)], given(-200, -20, 0, 20, 60, np.inf))
case("edge_nan", lambda x: [R.Relu(features=x), R.Relu6(features=x), R.Sign(x=x), R.Maximum(x=x, y=x[::-1]), R.Minimum(x=x, y=x[::-1]), R.Max(input=x, axis=[0]), R.ClipByValue(t=x, clip_value_min=-1.0, clip_value_max=1.0), R.Round(x=x)], given(np.nan, 2.5, -1.5, np.inf, -np.inf))
case("edge_signs", lambda x, y: [R.Atan2(y=x, x=y), R.FloorDiv(x=x, y=y), R.FloorMod(x=x, y=y), R.Mod(x=x, y=y), R.TruncateMod(x=x, y=y)], given(1, -1, 3, -3, 5.5, -5.5), given(2, 2, -2, -2, -1.5, 1.5))
case("edge_atan2_axes", lambda x, y: R.Atan2(y=x, x=y), given(0, 0, 1, -1, 0, -2), given(1, -1, 0, 0, 0, -2))
case("edge_shift_negative", lambda x: [R.RightShift(x=x, y=1), R.RightShift(x=x, y=31), R.LeftShift(x=x, y=3)], i(8, low=-100, high=100))
case("edge_equal_shapes", lambda x: [R.Equal(x=x, y=x[:, :2], incompatible_shape_error=False), R.NotEqual(x=x, y=x[:, :2], incompatible_shape_error=False)], f(3, 4))
case("edge_slice_moving", lambda x, k: [R.Slice(input=x, begin=R.Pack(values=[k[0], 0]), size=[1, -1]), R.Slice(input=x, begin=R.Pack(values=[0, k[0]]), size=[2, 2]), R.Slice(input=x, begin=R.Pack(values=[k[0], k[0]]), size=[-1, 1])], f(4, 5), given(2, dtype=np.int32))
case("edge_strided_moving", lambda x, k: [x[k[0]], x[k[0]:], x[:, k[0]], x[k[0]:k[0] + 1, -1], x[:k[0]]], f(4, 5), given(2, dtype=np.int32))
case("edge_if_number", lambda x: [tf.cond(x[0] > 0, lambda: x, lambda: -x), R.Select(condition=x[0] > 0, x=x, y=-x)], f(3))
case("edge_conv_shapes", lambda x: [R.Conv2D(input=x, filter=weights(1, 1, 3, 2), strides=[1, 3, 3, 1], padding="SAME"), R.Conv2D(input=x, filter=weights(4, 5, 3, 2), strides=[1, 1, 1, 1], padding="VALID"), R.Conv2D(input=x[:0], filter=weights(1, 1, 3, 2), strides=[1, 1, 1, 1], padding="SAME")], f(1, 4, 5, 3))
case("edge_pool_explicit", lambda x: [R.MaxPool(input=x, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 1, 1, 0, 0]), R.MaxPool(input=x, ksize=[1, 1, 1, 1], strides=[1, 2, 2, 1], padding="SAME")], f(1, 6, 7, 2))
case("edge_norm_factor", lambda x: list(R.FusedBatchNormV3(x=x, scale=weights(3), offset=weights(3, seed=1), mean=weights(3, seed=2), variance=tf.abs(weights(3, seed=3)) + 0.1, is_training=True, exponential_avg_factor=0.25))[:3], f(2, 4, 5, 3))
case("edge_nearest_halves", lambda x: [R.CropAndResize(image=x, boxes=[[0, 0, 1, 1], [-0.2, 0.1, 1.3, 0.9]], box_ind=[0, 0], crop_size=[7, 9], method="nearest", extrapolation_value=-2.0), R.ResizeNearestNeighbor(images=x, size=[7, 3], align_corners=True)], f(1, 4, 5, 2))

QUICK.update("edge_" + k for k in "gather_batch logic_nothing nearest_halves norm_factor range slice_moving small equal_shapes int_ends join_nothing".split())
QUICK.update(("sweep_TruncateDiv_float16", "sweep_resize_float16", "sweep_Softplus_float16", "sweep_Cast_bfloat16"))
