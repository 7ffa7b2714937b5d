# SPDX-License-Identifier: MIT
"""The operators as graphs, one or more each, with their attributes. See case.py."""
import numpy as np
import tensorflow as tf

from case import CASES, LOWERED, R, b, case, f, given, i, internal, weights  # noqa: F401

# --- element-wise ---
for op in "Abs Atan Ceil Cos Erf Erfc Exp Expm1 Floor Neg Relu Relu6 Elu Selu Sigmoid Sign Sin Sinh Cosh Softplus Softsign Square Tan Tanh Rint Round Asinh".split():
    field = {k: "features" for k in "Relu Relu6 Elu Selu Softplus Softsign".split()}.get(op, "x")
    case(f"unary_{op}", lambda x, op=op, field=field: getattr(R, op)(**{field: x}), f(3, 5), quick=op in ("Relu6", "Selu", "Round"))
for op in "Log Log1p Sqrt Rsqrt Reciprocal Inv".split():
    case(f"positive_{op}", lambda x, op=op: getattr(R, op)(x=x), f(3, 5, low=0.1), quick=op == "Rsqrt")
for op in "Acos Asin Atanh".split():
    case(f"unit_{op}", lambda x, op=op: getattr(R, op)(x=x), f(3, 5, low=-0.9, high=0.9))
case("acosh", lambda x: R.Acosh(x=x), f(3, 5, low=1.1, high=4))
case("leaky_relu", lambda x: R.LeakyRelu(features=x, alpha=0.3), f(3, 5), quick=True)
for op in "Add AddV2 Sub Mul RealDiv Maximum Minimum SquaredDifference FloorDiv FloorMod DivNoNan Atan2".split():
    if op != "Add":
        case(f"broadcast_{op}", lambda x, y, op=op: getattr(R, op)(x=x, y=y), f(2, 3, 1), f(3, 4, low=0.5), quick=op in ("AddV2", "FloorMod"))
    if op not in ("RealDiv", "Atan2", "DivNoNan"):
        case(f"ints_{op}", lambda x, y, op=op: getattr(R, op)(x=x, y=y), i(3, 4, low=-20, high=20), i(4, low=1, high=6))
case("negative_floor_div", lambda x, y: [R.FloorDiv(x=x, y=y), R.FloorMod(x=x, y=y), R.TruncateDiv(x=x, y=y), R.TruncateMod(x=x, y=y)],
     i(6, low=-20, high=20), given(-3, 3, -4, 4, -5, 5, dtype=np.int32), quick=True)
case("pow", lambda x, y: R.Pow(x=x, y=y), f(3, 4, low=0.1), f(4))
case("div_ints", lambda x, y: R.Div(x=x, y=y), i(6, low=-20, high=20), given(-3, 3, -4, 4, -5, 5, dtype=np.int32))
case("div_no_nan_zero", lambda x, y: R.DivNoNan(x=x, y=y), f(4), given(0, 1, 0, 2))
case("mul_no_nan", lambda x, y: R.MulNoNan(x=x, y=y), given(np.inf, 1, np.nan, 2), given(0, 1, 0, 2))
case("xlogy", lambda x, y: [R.Xlogy(x=x, y=y), R.Xdivy(x=x, y=y)], given(0, 1, 2, 3), given(0, 1, 3, 2))
case("add_n", lambda x, y, z: R.AddN(inputs=[x, y, z]), f(3, 4), f(3, 4), f(3, 4), quick=True)
for op in "Less LessEqual Greater GreaterEqual Equal NotEqual".split():
    case(f"compare_{op}", lambda x, y, op=op: getattr(R, op)(x=x, y=y), i(4, 5, low=0, high=3), i(5, low=0, high=3), quick=op == "LessEqual")
case("compare_nan", lambda x, y: [R.LessEqual(x=x, y=y), R.NotEqual(x=x, y=y), R.GreaterEqual(x=x, y=y)], given(1, np.nan, 3), given(np.nan, 2, 3))
for op in "LogicalAnd LogicalOr".split():
    case(f"logic_{op}", lambda x, y, op=op: getattr(R, op)(x=x, y=y), b(4, 5), b(5))
case("logical_not", lambda x: R.LogicalNot(x=x), b(4, 5))
case("bits", lambda x, y: [R.BitwiseAnd(x=x, y=y), R.BitwiseOr(x=x, y=y), R.BitwiseXor(x=x, y=y), R.Invert(x=x)], i(8, low=-100, high=100), i(8, low=-100, high=100))
case("shifts", lambda x, y: [R.LeftShift(x=x, y=y), R.RightShift(x=x, y=y)], i(8, low=0, high=100), i(8, low=0, high=4))
case("classes", lambda x: [R.IsNan(x=x), R.IsInf(x=x), R.IsFinite(x=x)], given(1, np.nan, np.inf, -np.inf), quick=True)
case("clip", lambda x: R.ClipByValue(t=x, clip_value_min=-0.5, clip_value_max=0.7), f(3, 4), quick=True)
for src, dst in (("float32", "int32"), ("int32", "float32"), ("float32", "float16"), ("int32", "bool"), ("bool", "float32"), ("int64", "int32"), ("float64", "float32"), ("uint8", "float32")):
    gen = {"f": f(3, 4, dtype=src), "i": i(3, 4, dtype=src), "u": i(3, 4, low=0, high=200, dtype=src), "b": b(3, 4)}[src[0]]
    case(f"cast_{src}_{dst}", lambda x, dst=dst: R.Cast(x=x, DstT=dst), gen, quick=(src, dst) == ("float32", "int32"))
for dtype in ("float64", "float16", "int64", "int8", "uint8", "bfloat16"):
    # Whole numbers in narrow types: an engine may compute there in float and round once.
    gen = f(3, 4, dtype=dtype) if dtype == "float64" else i(3, 4, low=0, high=9, dtype="float32" if dtype == "bfloat16" else dtype)
    case(f"type_{dtype}", lambda x, dtype=dtype: tf.cast(tf.cast(x, dtype) * tf.cast(3, dtype) + tf.cast([1, 2, 3, 4], dtype), "float32"), gen)

# --- constants in every packing ---
for dtype in "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split():
    case(f"const_{dtype}", lambda x, dtype=dtype: [tf.constant(np.arange(6).reshape(2, 3).astype("float32") if dtype == "bfloat16" else np.arange(6).reshape(2, 3).astype(dtype), dtype),
                                                   tf.fill([2, 2], tf.constant(1, dtype) if dtype != "bool" else tf.constant(True)), tf.zeros([3], dtype), tf.constant(1, dtype, shape=[4, 5]) if dtype != "bool" else tf.constant(True, shape=[4, 5])], f(1),
         quick=dtype in ("float32", "float16", "int64", "bool"))

# --- convolutions ---
for padding in ("SAME", "VALID"):
    for stride in (1, 2):
        case(f"conv2d_{padding}_{stride}", lambda x, padding=padding, stride=stride: tf.nn.conv2d(x, weights(3, 3, 3, 4), stride, padding), f(2, 7, 8, 3), quick=(padding, stride) in (("SAME", 2), ("VALID", 1)))
        case(f"depthwise_{padding}_{stride}", lambda x, padding=padding, stride=stride: tf.nn.depthwise_conv2d(x, weights(3, 3, 3, 2), [1, stride, stride, 1], padding), f(2, 7, 8, 3), quick=(padding, stride) == ("SAME", 2))
        case(f"transposed_{padding}_{stride}", lambda x, padding=padding, stride=stride: tf.nn.conv2d_transpose(x, weights(3, 3, 5, 3), [1, 7 * stride if padding == "SAME" else 6 * stride + 3, 8 * stride if padding == "SAME" else 7 * stride + 3, 5], stride, padding), f(1, 7, 8, 3), quick=(padding, stride) == ("SAME", 2))
        for pool in ("max_pool2d", "avg_pool2d"):
            case(f"{pool}_{padding}_{stride}", lambda x, padding=padding, stride=stride, pool=pool: getattr(tf.nn, pool)(x, 3, stride, padding), f(2, 7, 8, 3), quick=(padding, stride) == ("SAME", 2))
case("conv2d_dilated", lambda x: tf.nn.conv2d(x, weights(3, 3, 3, 4), 1, "SAME", dilations=2), f(1, 9, 9, 3))
case("conv2d_explicit", lambda x: tf.nn.conv2d(x, weights(3, 3, 3, 4), [1, 2, 1, 1], [[0, 0], [1, 0], [2, 1], [0, 0]]), f(1, 9, 9, 3), quick=True)
case("conv2d_grouped", lambda x: tf.nn.conv2d(x, weights(3, 3, 2, 6), 1, "SAME"), f(1, 5, 5, 4))
case("conv2d_odd_transposed", lambda x: tf.nn.conv2d_transpose(x, weights(2, 2, 5, 3), [1, 9, 10, 5], 3, "SAME"), f(1, 3, 4, 3))
case("conv1d", lambda x: tf.nn.conv1d(x, weights(3, 3, 4), 1, "SAME"), f(1, 9, 3))
case("conv3d", lambda x: tf.nn.conv3d(x, weights(2, 3, 3, 2, 4), [1, 1, 2, 1, 1], "SAME"), f(1, 4, 5, 6, 2))
case("conv3d_transposed", lambda x: tf.nn.conv3d_transpose(x, weights(2, 2, 2, 3, 2), [1, 6, 6, 6, 3], 2, "SAME"), f(1, 3, 3, 3, 2))
case("pool3d", lambda x: [tf.nn.max_pool3d(x, 2, 2, "SAME"), tf.nn.avg_pool3d(x, 3, 2, "SAME")], f(1, 5, 6, 7, 2))
case("atrous_blocks", lambda x: tf.batch_to_space(tf.nn.conv2d(tf.space_to_batch(x, [2, 2], [[2, 3], [2, 3]]), weights(3, 3, 2, 2), 1, "VALID"), [2, 2], [[0, 1], [0, 1]]), f(1, 9, 9, 2))
case("bias_add", lambda x: tf.nn.bias_add(x, weights(3)), f(2, 4, 3), quick=True)
case("bias_add_nchw", lambda x: R.BiasAdd(value=x, bias=weights(3), data_format="NCHW"), f(2, 3, 4, 5))
for version in ("", "V2", "V3"):
    case(f"batch_norm{version}", lambda x, v=version: getattr(R, "FusedBatchNorm" + v)(x=x, scale=weights(3), offset=weights(3, seed=1), mean=weights(3, seed=2), variance=tf.abs(weights(3, seed=3)) + 0.1, is_training=False, epsilon=0.01)[0], f(2, 4, 5, 3), quick=version == "V3")
case("batch_norm_training", lambda x: list(R.FusedBatchNormV3(x=x, scale=weights(3), offset=weights(3, seed=1), mean=tf.zeros([0]), variance=tf.zeros([0]), is_training=True, epsilon=0.01))[:3], f(2, 4, 5, 3))
case("batch_norm_nchw", lambda x: R.FusedBatchNormV3(x=x, scale=weights(3), offset=weights(3, seed=1), mean=weights(3, seed=2), variance=tf.abs(weights(3, seed=3)) + 0.1, is_training=False, data_format="NCHW")[0], f(2, 3, 4, 5))
case("lrn", lambda x: tf.nn.lrn(x, 2, 1.5, 0.3, 0.7), f(1, 3, 4, 9))
case("l2_loss", lambda x: tf.nn.l2_loss(x), f(3, 4))
case("conv_block", lambda x: tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(tf.nn.max_pool2d(tf.nn.relu6(tf.nn.conv2d(x, weights(3, 3, 3, 8), 2, "SAME")), 2, 2, "VALID"), weights(1, 1, 8, 4), 1, "SAME"), weights(4, seed=5))), f(1, 8, 8, 3), quick=True)



def net(x):
    """What convolutional networks are made of, from an image to a row of numbers."""
    x = tf.nn.relu6(tf.nn.bias_add(tf.nn.conv2d(tf.pad(x, [[0, 0], [0, 1], [0, 1], [0, 0]]), weights(3, 3, 3, 8), 2, "VALID"), weights(8, seed=1)))
    y = tf.nn.depthwise_conv2d(x, weights(3, 3, 8, 1, seed=2), [1, 1, 1, 1], "SAME")
    y = R.FusedBatchNormV3(x=y, scale=weights(8, seed=3), offset=weights(8, seed=4), mean=weights(8, seed=5), variance=tf.abs(weights(8, seed=6)) + 0.1, is_training=False)[0]
    gate = tf.sigmoid(tf.nn.conv2d(tf.reduce_mean(y, [1, 2], keepdims=True), weights(1, 1, 8, 8, seed=7), 1, "SAME"))
    x = x + tf.nn.swish(y) * gate
    x = tf.concat([tf.nn.max_pool2d(x, 2, 2, "SAME"), tf.nn.avg_pool2d(x, 3, 2, "SAME"), tf.nn.conv2d(x, weights(5, 1, 8, 4, seed=8), 2, "SAME")], -1)
    x = R.ResizeNearestNeighbor(images=x, size=[8, 8], half_pixel_centers=True)
    x = tf.nn.leaky_relu(tf.nn.conv2d_transpose(x[:, 1:, :, 2:], weights(2, 2, 6, 18, seed=9), [1, 14, 16, 6], 2, "SAME"))
    return tf.nn.softmax(tf.matmul(tf.reduce_mean(x, [1, 2]), weights(6, 5, seed=10)))


case("net_blocks", net, f(1, 15, 15, 3), quick=True)

# --- matrices ---
case("matmul", lambda x: tf.matmul(x, weights(4, 5)), f(3, 4), quick=True)
case("matmul_turned", lambda x, y: tf.matmul(x, y, transpose_a=True, transpose_b=True), f(4, 3), f(5, 4))
case("batch_matmul", lambda x, y: R.BatchMatMul(x=x, y=y, adj_x=True), f(2, 4, 3), f(2, 4, 5))
case("batch_matmul_v2", lambda x, y: R.BatchMatMulV2(x=x, y=y, adj_y=True), f(2, 1, 3, 4), f(3, 5, 4), quick=True)
for equation in ("abc,cd->abd", "bqhd,bkhd->bhqk", "...ij,jk->...ik", "ii->i", "ab->ba"):
    shapes = {"abc,cd->abd": [(2, 3, 4), (4, 5)], "bqhd,bkhd->bhqk": [(2, 3, 2, 4), (2, 5, 2, 4)], "...ij,jk->...ik": [(2, 2, 3, 4), (4, 5)], "ii->i": [(3, 3)], "ab->ba": [(3, 4)]}[equation]
    case("einsum_" + "".join(c if c.isalpha() else "_" for c in equation), lambda *x, equation=equation: R.Einsum(inputs=list(x), equation=equation), *[f(*s) for s in shapes], quick=equation.startswith("bqhd"))
case("band", lambda x: [R.MatrixBandPart(input=x, num_lower=-1, num_upper=0), R.MatrixBandPart(input=x, num_lower=1, num_upper=2)], f(2, 4, 5))

# --- reductions ---
for op in "Sum Mean Max Min Prod EuclideanNorm".split():
    case(f"reduce_{op}", lambda x, op=op: [getattr(R, op)(input=x, axis=[0, -1], keep_dims=False), getattr(R, op)(input=x, axis=1, keep_dims=True)], f(3, 4, 5), quick=op in ("Mean", "Max"))
    case(f"reduce_all_{op}", lambda x, op=op: getattr(R, op)(input=x, axis=[0, 1, 2], keep_dims=False), f(3, 4, 5))
case("reduce_none", lambda x: R.Sum(input=x, axis=tf.zeros([0], tf.int32)), f(3, 4))
case("all_any", lambda x: [R.All(input=x, axis=[1]), R.Any(input=x, axis=[1], keep_dims=True)], b(6, 2), quick=True)
case("sum_ints", lambda x: [R.Sum(input=x, axis=[0]), R.Mean(input=x, axis=[0]), R.Max(input=x, axis=[0])], i(4, 5, low=0, high=50))
case("arg", lambda x: [R.ArgMax(input=x, dimension=1), R.ArgMin(input=x, dimension=-1, output_type=tf.int32)], f(4, 5), quick=True)
case("cumsum", lambda x: [R.Cumsum(x=x, axis=1), R.Cumsum(x=x, axis=0, exclusive=True), R.Cumsum(x=x, axis=1, reverse=True), R.Cumprod(x=x, axis=1)], f(3, 4), quick=True)
case("softmax", lambda x: [R.Softmax(logits=x), R.LogSoftmax(logits=x)], f(3, 5), quick=True)

# --- shapes ---
case("shape", lambda x: [R.Shape(input=x), R.Shape(input=x, out_type=tf.int64), R.Size(input=x), R.Rank(input=x)], f(3, 1, 5), quick=True)
case("shape_n", lambda x, y: R.ShapeN(input=[x, y]), f(3, 1, 5), f(2))
case("reshape", lambda x: [R.Reshape(tensor=x, shape=[-1, 6]), R.Reshape(tensor=x, shape=[24])], f(2, 3, 4), quick=True)
case("reshape_by_shape", lambda x: R.Reshape(tensor=x, shape=R.Pack(values=[R.Shape(input=x)[0], -1])), f(2, 3, 4))
case("expand_squeeze", lambda x: [R.ExpandDims(input=x, axis=-1), R.ExpandDims(input=x, axis=0), R.Squeeze(input=x), R.Squeeze(input=x, axis=[1])], f(3, 1, 4, 1), quick=True)
case("transpose", lambda x: R.Transpose(x=x, perm=[2, 0, 1]), f(2, 3, 4), quick=True)
case("broadcast_to", lambda x: R.BroadcastTo(input=x, shape=[2, 3, 4]), f(3, 1))
case("broadcast_args", lambda x: R.BroadcastTo(input=x, shape=R.BroadcastArgs(s0=[3, 1], s1=[2, 1, 4])), f(3, 1))
case("tile", lambda x: R.Tile(input=x, multiples=[2, 1, 3]), f(2, 3, 2), quick=True)
case("invert_permutation", lambda x: R.Transpose(x=x, perm=R.InvertPermutation(x=[2, 0, 1])), f(2, 3, 4))
case("concat", lambda x, y: [R.ConcatV2(values=[x, y, x], axis=-1), R.Concat(concat_dim=1, values=[x, y])], f(2, 3), f(2, 4), quick=True)
case("pack_unpack", lambda x, y: [R.Pack(values=[x, y], axis=1)] + list(R.Unpack(value=x, num=3, axis=1)), f(2, 3), f(2, 3), quick=True)
case("split", lambda x: list(R.Split(axis=1, value=x, num_split=3)) + list(R.SplitV(value=x, size_splits=[1, -1, 2], axis=1, num_split=3)), f(2, 6), quick=True)
case("zeros_ones", lambda x: [R.ZerosLike(x=x), R.OnesLike(x=x), R.Fill(dims=[2, 3], value=x[0, 0])], f(2, 3))
case("range", lambda x: [R.Range(start=2, limit=11, delta=3), R.Range(start=1.0, limit=0.0, delta=-0.25), R.LinSpace(start=0.0, stop=1.0, num=5)], f(1))

# --- slices ---
case("slice", lambda x: R.Slice(input=x, begin=[0, 1, 2], size=[-1, 2, 1]), f(2, 4, 5), quick=True)
SPECS = {"plain": np.s_[1:3, 0:2], "steps": np.s_[::2, 1::3], "back": np.s_[::-1, ::-2], "negative": np.s_[-3:-1, -2:], "shrink": np.s_[1, :, 2], "new": np.s_[:, tf.newaxis, 1:3],
         "ellipsis": np.s_[..., 1], "ellipsis_middle": np.s_[0, ..., tf.newaxis, 1:], "out_of_range": np.s_[-100:100, 2:100], "empty": np.s_[3:1], "back_range": np.s_[3:0:-1, 4:1:-2], "new_ends": np.s_[tf.newaxis, ..., tf.newaxis]}
for key, spec in SPECS.items():
    case(f"strided_{key}", (lambda spec: lambda x: x[spec])(spec), f(4, 5, 6), quick=key in ("plain", "back", "shrink", "ellipsis_middle", "back_range"))
case("reverse", lambda x: R.ReverseV2(tensor=x, axis=[0, -1]), f(2, 3, 4))

# --- indices ---
case("gather", lambda x, k: [R.GatherV2(params=x, indices=k, axis=0), R.GatherV2(params=x, indices=k, axis=1), R.Gather(params=x, indices=k)], f(4, 5, 2), i(2, 3, low=0, high=4), quick=True)
case("gather_batch", lambda x, k: R.GatherV2(params=x, indices=k, axis=2, batch_dims=1), f(2, 3, 5, 2), i(2, 4, low=0, high=5), quick=True)
case("gather_batch_front", lambda x, k: R.GatherV2(params=x, indices=k, axis=1, batch_dims=1), f(2, 5, 3), i(2, 4, low=0, high=5))
case("gather_nd", lambda x, k: R.GatherNd(params=x, indices=k), f(4, 5, 2), i(3, 2, low=0, high=4), quick=True)
case("scatter_nd", lambda k, u: R.ScatterNd(indices=k, updates=u, shape=[6, 2]), i(4, 1, low=0, high=6), f(4, 2))
case("tensor_scatter", lambda x, u: [R.TensorScatterUpdate(tensor=x, indices=[[1], [3]], updates=u), R.TensorScatterAdd(tensor=x, indices=[[1], [1]], updates=u)], f(5, 2), f(2, 2))
case("one_hot", lambda k: [R.OneHot(indices=k, depth=4, on_value=2.0, off_value=-1.0), R.OneHot(indices=k, depth=3, on_value=1, off_value=0, axis=0)], i(2, 5, low=-2, high=5), quick=True)
case("select", lambda c, x, y: [R.SelectV2(condition=c, t=x, e=y), R.Select(condition=c, x=x, y=y)], b(3, 4), f(3, 4), f(3, 4), quick=True)
case("select_rows", lambda c, x, y: R.Select(condition=c, x=x, y=y), b(3), f(3, 4), f(3, 4))
case("select_broadcast", lambda c, x, y: R.SelectV2(condition=c, t=x, e=y), b(3, 1), f(4), f(2, 3, 4))
case("top_k", lambda x: list(R.TopKV2(input=x, k=3)), f(3, 7), quick=True)
case("where", lambda c: R.Where(condition=c), b(4, 5))
case("unique", lambda x: list(R.Unique(x=x)), i(9, low=0, high=4))
BOXES = lambda r: np.sort(r.uniform(0, 1, (12, 2, 2)), 1).reshape(12, 4).astype(np.float32)
case("nms_v3", lambda x, s: R.NonMaxSuppressionV3(boxes=x, scores=s, max_output_size=5, iou_threshold=0.4, score_threshold=0.2), BOXES, f(12, low=0, high=1), quick=True)
case("nms_v2", lambda x, s: R.NonMaxSuppressionV2(boxes=x, scores=s, max_output_size=20, iou_threshold=0.3), BOXES, f(12, low=0, high=1))
case("nms_gather", lambda x, s: tf.gather(x, R.NonMaxSuppressionV3(boxes=x, scores=s, max_output_size=5, iou_threshold=0.4, score_threshold=0.2)), BOXES, f(12, low=0, high=1))

case("nms_v4", lambda x, s: list(R.NonMaxSuppressionV4(boxes=x, scores=s, max_output_size=5, iou_threshold=0.4, score_threshold=0.2)), BOXES, f(12, low=0, high=1))
case("nms_v5", lambda x, s: list(R.NonMaxSuppressionV5(boxes=x, scores=s, max_output_size=5, iou_threshold=0.4, score_threshold=0.2, soft_nms_sigma=0.0)), BOXES, f(12, low=0, high=1))

MANY = lambda q: lambda r: np.sort(r.uniform(-0.1, 1.1, (2, 9, q, 2, 2)), 3).reshape(2, 9, q, 4).astype(np.float32)
for q, each, total, more in ((1, 4, 6, {}), (3, 4, 6, {}), (1, 2, 30, {"pad_per_class": True}), (3, 20, 40, {"clip_boxes": False}), (1, 1, 5, {"pad_per_class": True, "clip_boxes": False})):
    case(f"nms_combined_{q}_{each}_{total}", lambda x, s, each=each, total=total, more=more: list(R.CombinedNonMaxSuppression(boxes=x, scores=s, max_output_size_per_class=each, max_total_size=total, iou_threshold=0.4, score_threshold=0.3, **more)),
         MANY(q), f(2, 9, 3, low=0, high=1), quick=(q, each) == (3, 4))
case("nms_combined_none", lambda x, s: list(R.CombinedNonMaxSuppression(boxes=x, scores=s, max_output_size_per_class=3, max_total_size=5, iou_threshold=0.4, score_threshold=0.99)), MANY(1), f(2, 9, 3, low=0, high=0.9))

# --- quantisation ---
case("fake_quant_args", lambda x: [R.FakeQuantWithMinMaxArgs(inputs=x, min=-1.3, max=1.1, num_bits=b, narrow_range=n) for b, n in ((8, False), (8, True), (4, False))], f(4, 5), quick=True)
case("fake_quant_vars", lambda x: R.FakeQuantWithMinMaxVars(inputs=x, min=0.0, max=1.9), f(4, 5))
case("fake_quant_channels", lambda x: R.FakeQuantWithMinMaxVarsPerChannel(inputs=x, min=[-1.0, -0.1, -2.0], max=[1.5, 0.7, 0.2], num_bits=6), f(4, 3))
for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
    for dtype in (tf.quint8, tf.qint8):
        case(f"dequantize_{mode}_{dtype.name}", lambda x, mode=mode, dtype=dtype: R.Dequantize(input=tf.bitcast(x, dtype), min_range=-1.5, max_range=2.0, mode=mode),
             i(4, 5, low=0 if dtype == tf.quint8 else -128, high=256 if dtype == tf.quint8 else 128, dtype=np.uint8 if dtype == tf.quint8 else np.int8))

# --- images ---
for align, half in ((False, False), (True, False), (False, True)):
    mark = f"{'c' if align else ''}{'h' if half else ''}"
    case(f"bilinear_{mark}", lambda x, a=align, h=half: [R.ResizeBilinear(images=x, size=[7, 9], align_corners=a, half_pixel_centers=h), R.ResizeBilinear(images=x, size=[2, 3], align_corners=a, half_pixel_centers=h)], f(1, 4, 5, 2), quick=half)
    case(f"nearest_{mark}", lambda x, a=align, h=half: [R.ResizeNearestNeighbor(images=x, size=[7, 9], align_corners=a, half_pixel_centers=h), R.ResizeNearestNeighbor(images=x, size=[2, 3], align_corners=a, half_pixel_centers=h)], f(1, 4, 5, 2), quick=half)
    # TensorFlow rounds places to 1/1024 here: these sizes need no more.
    case(f"bicubic_{mark}", lambda x, a=align, h=half: R.ResizeBicubic(images=x, size=[7, 9] if a else [8, 10], align_corners=a, half_pixel_centers=h), f(1, 4, 5, 2))
case("crop_and_resize", lambda x, y: [R.CropAndResize(image=x, boxes=y, box_ind=[0, 1, 1], crop_size=[3, 4]), R.CropAndResize(image=x, boxes=y, box_ind=[1, 0, 1], crop_size=[1, 2], extrapolation_value=7.0)],
     f(2, 6, 7, 2), f(3, 4, low=-0.1, high=1.1))
for steps in (["BiasAdd"], ["BiasAdd", "Relu"], ["BiasAdd", "LeakyRelu"]):
    more = dict(fused_ops=steps, num_args=1, leakyrelu_alpha=0.3, T=tf.float32)
    case("fused_conv_" + "_".join(steps), lambda x, more=more: internal("_FusedConv2D", [x, weights(3, 3, 3, 4), weights(4)], strides=[1, 1, 1, 1], padding="SAME", TArgs=[tf.float32], num_host_args=0, **more), f(1, 5, 5, 3))
    case("fused_matmul_" + "_".join(steps), lambda x, more=more: internal("_FusedMatMul", [x, weights(3, 4), weights(4)], **more), f(5, 3))
case("pad", lambda x: [R.Pad(input=x, paddings=[[1, 2], [0, 3]]), R.PadV2(input=x, paddings=[[1, 0], [2, 1]], constant_values=1.5)], f(3, 4), quick=True)
for mode in ("REFLECT", "SYMMETRIC"):
    case(f"mirror_{mode}", lambda x, mode=mode: R.MirrorPad(input=x, paddings=[[1, 2], [2, 0]], mode=mode), f(3, 4), quick=mode == "SYMMETRIC")
case("space_to_depth", lambda x: R.SpaceToDepth(input=x, block_size=2), f(1, 4, 6, 3), quick=True)
case("depth_to_space", lambda x: R.DepthToSpace(input=x, block_size=2), f(1, 2, 3, 12), quick=True)
case("space_to_batch", lambda x: R.SpaceToBatchND(input=x, block_shape=[2, 3], paddings=[[1, 1], [0, 2]]), f(2, 4, 4, 3))
case("batch_to_space", lambda x: R.BatchToSpaceND(input=x, block_shape=[2, 3], crops=[[1, 0], [0, 2]]), f(12, 3, 2, 3))

# --- control flow ---
def loop(x, n):
    return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 0.5 + tf.cast(i, tf.float32)), (0, x))[1]


def fibonacci(n):
    return tf.while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, b, a + b), (0, tf.constant(0), tf.constant(1)))[1]


def nested(x):
    def inner(y):
        return tf.while_loop(lambda j, y: j < 3, lambda j, y: (j + 1, y + tf.cast(j, tf.float32)), (0, y))[1]
    return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, inner(y) * 0.5), (0, x))[1]


def branch(x):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: x - 1.0)


def collect(x):
    """Fills a list in a loop, as recurrent layers do."""
    out = tf.TensorArray(tf.float32, size=4)
    i, h, out = tf.while_loop(lambda i, h, out: i < 4, lambda i, h, out: (i + 1, tf.tanh(tf.matmul(h, weights(3, 3)) + x[:, i]), out.write(i, h)), (0, tf.zeros([2, 3]), out))
    return [h, out.stack()]


FLOW = {"loop": (loop, (f(3), given(5, dtype=np.int32))), "loop_never": (loop, (f(3), given(0, dtype=np.int32))), "fibonacci": (lambda x: fibonacci(10) + x, (i(2),)),
        "nested": (nested, (f(3),)), "branch_yes": (branch, (f(3, low=0.1),)), "branch_no": (branch, (f(3, high=-0.1),)), "collect": (collect, (f(2, 4, 3),))}
for key, (function, inputs) in FLOW.items():
    inputs = [(lambda g: lambda r: g(r).reshape(()))(g) if key.startswith("loop") and n == 1 else g for n, g in enumerate(inputs)]
    case(f"flow_{key}", function, *inputs, quick=key in ("loop", "branch_no", "collect"))
    case(f"frame_{key}", function, *inputs, quick=key in ("loop", "branch_no"))
    LOWERED.add(f"frame_{key}")
