# SPDX-License-Identifier: MIT
"""Nodes that tracing alone does not write: those of old graphs, of TensorFlow's optimiser, and those that hand a value on
and check or print something beside it; calls, branches and loops with effects, lists of tensors. See case.py."""
import numpy as np
import tensorflow as tf

from case import CALLS, EDITED, LOWERED, QUICK, R, case, f, given, i, internal, weights


def edited(name, edit):
    """`edit` changes nodes in place, each given with all of them by name."""
    def all_nodes(graph):
        by_name = {node.name: node for node in graph.node}
        for node in list(graph.node):
            edit(node, by_name, graph)
        return graph
    EDITED[name] = all_nodes


# --- values handed on ---
def beside(make):
    """x * 2 behind a node without results."""
    def function(x):
        with tf.control_dependencies([make(x)]):
            return x * 2.0
    return function


for op, field in (("StopGradient", "input"), ("PreventGradient", "input"), ("Snapshot", "input")):
    case(f"same_{op}", lambda x, op=op, field=field: getattr(R, op)(**{field: x}) + 1.0, f(2, 3))
case("same_CheckNumerics", lambda x: R.CheckNumerics(tensor=x, message="no") + 1.0, f(2, 3))
case("same_EnsureShape", lambda x: R.EnsureShape(input=x, shape=[None, 3]) + 1.0, f(2, 3))
case("same_IdentityN", lambda x, k: [y + tf.cast(1, y.dtype) for y in R.IdentityN(input=[x, k])], f(2, 3), i(4))
case("same_PlaceholderWithDefault", lambda x: R.PlaceholderWithDefault(input=[1.0, 2.0, 3.0], shape=[3]) * x, f(3))
case("same_Print", lambda x: R.Print(input=x, data=[x], message="m", first_n=0) + 1.0, f(2, 3))
case("beside_PrintV2", beside(lambda x: R.PrintV2(input=R.StringFormat(inputs=[x], template="%s"), output_stream="log(info)")), f(2, 3))
case("beside_Assert", beside(lambda x: R.Assert(condition=R.All(input=x < 9.0, axis=[0, 1]), data=["too large", x])), f(2, 3))
case("beside_ControlTrigger", beside(lambda x: R.ControlTrigger()), f(2, 3))
case("beside_NoOp", beside(lambda x: R.NoOp()), f(2, 3))

# --- of other writers ---
case("old_PlaceholderV2", lambda x: R.Relu(features=x), f(2, 3))


def older_placeholder(node, by_name, graph):
    if node.op == "Placeholder":
        node.op = "PlaceholderV2"


def older_top_k(node, by_name, graph):
    """Its k is an attribute."""
    if node.op == "TopKV2":
        k = tf.make_ndarray(by_name[node.input[1]].attr["value"].tensor)
        node.op = "TopK"
        node.attr["k"].i = int(k)
        del node.input[1], node.attr["Tk"]


def fused_depthwise(node, by_name, graph):
    """A depthwise convolution, its bias and the activation on top as the optimiser's one node."""
    if node.op in ("Relu6", "Elu", "LeakyRelu") and by_name[node.input[0]].op == "BiasAdd":
        bias = by_name[node.input[0]]
        conv = by_name[bias.input[0]]
        steps, alpha = [b"BiasAdd", node.op.encode()], node.attr["alpha"].f
        name, inputs = node.name, [*conv.input, bias.input[1]]
        node.CopyFrom(conv)
        node.op, node.name = "_FusedDepthwiseConv2dNative", name
        node.input[:] = inputs
        node.attr["num_args"].i = 1
        node.attr["fused_ops"].list.s.extend(steps)
        node.attr["leakyrelu_alpha"].f = alpha


edited("old_PlaceholderV2", older_placeholder)
case("old_TopK", lambda x: list(R.TopKV2(input=x, k=3)), f(3, 7))
edited("old_TopK", older_top_k)
case("old_Mod", lambda x, y: R.Mod(x=x, y=y), i(6, low=-20, high=20), given(-3, 3, -4, 4, -5, 5, dtype=np.int32))
BOXES = lambda r: np.sort(r.uniform(0, 1, (12, 2, 2)), 1).reshape(12, 4).astype(np.float32)
case("old_NonMaxSuppression", lambda x, s: R.NonMaxSuppression(boxes=x, scores=s, max_output_size=5, iou_threshold=0.3), BOXES, f(12, low=0, high=1))
case("unique_counts", lambda x: list(R.UniqueWithCounts(x=x)), i(9, low=0, high=4))
case("scatter_extremes", lambda x, u: [R.TensorScatterMax(tensor=x, indices=[[1], [3], [1]], updates=u), R.TensorScatterMin(tensor=x, indices=[[1], [3], [1]], updates=u)], f(5, 2), f(3, 2))
case("batch_matmul_v3", lambda x, y: R.BatchMatMulV3(x=x, y=y, adj_y=True, Tout=tf.float32), f(2, 3, 4), f(2, 5, 4))
case("batch_matmul_v3_bytes", lambda x, y: R.BatchMatMulV3(x=x, y=y, Tout=tf.int32), i(2, 3, 40, low=-128, high=128, dtype=np.int8), i(2, 40, 5, low=-128, high=128, dtype=np.int8))
for op, field in (("Relu6", {}), ("Elu", {}), ("LeakyRelu", {"alpha": 0.3})):
    case("fused_depthwise_" + op, lambda x, op=op, field=field: getattr(R, op)(features=R.BiasAdd(value=R.DepthwiseConv2dNative(input=x, filter=weights(3, 3, 3, 2), strides=[1, 2, 2, 1], padding="SAME"), bias=weights(6)), **field), f(1, 5, 5, 3))
    edited("fused_depthwise_" + op, fused_depthwise)
for step in ("Sigmoid", "Tanh", "Elu"):
    case("fused_matmul_BiasAdd_" + step, lambda x, step=step: internal("_FusedMatMul", [x, weights(3, 4), weights(4)], fused_ops=["BiasAdd", step], num_args=1, T=tf.float32), f(5, 3))


# --- calls, branches and loops ---
@tf.function
def twice(x):
    return x * 2.0, x + 1.0


def called(name, function, *inputs):
    case(name, function, *inputs)
    CALLS.add(name)


def said(x):
    tf.print(x, output_stream=tf.compat.v1.logging.info)
    return x


called("call_partitioned", lambda x: [y - 1.0 for y in twice(twice(x)[0])], f(2, 3))
called("call_stateful", lambda x: tf.function(lambda y: said(y) * 3.0)(x) + 1.0, f(2, 3))
called("call_by_attribute", lambda x, k: [twice(x)[1], tf.function(lambda y: tf.cast(y, tf.float32) + 1.0)(k)], f(2, 3), i(4))
called("call_if", lambda x: tf.cond(x[0] > 0, lambda: said(x) * 2.0, lambda: x - 1.0), f(3, low=0.1))
called("call_while", lambda x: tf.while_loop(lambda k, y: k < 3, lambda k, y: (k + 1, said(y) * 0.5), (0, x))[1], f(3))
case("frame_printing", lambda x: tf.while_loop(lambda k, y: k < 3, lambda k, y: (k + 1, said(y) * 0.5), (0, x))[1], f(3))
case("frame_of_branches", lambda x: tf.while_loop(lambda k, y: k < 4, lambda k, y: (k + 1, tf.cond(k % 2 > 0, lambda: y * 2.0, lambda: y + 1.0)), (0, x))[1], f(3))
LOWERED.update(("frame_printing", "frame_of_branches"))
for key, index in (("first", 0), ("middle", 1), ("last", 2), ("beyond", 7), ("below", -1)):
    called("call_case_" + key, lambda x, k: tf.switch_case(k[0], [lambda: said(x), lambda: x * 2.0, lambda: x - 1.0]), f(3), given(index, dtype=np.int32))
called("call_case_known", lambda x: R.StatelessCase(branch_index=1, input=[x], Tout=[tf.float32], branches=[tf.function(lambda x, k=k: x + k).get_concrete_function(tf.TensorSpec(3)) for k in (1.0, 2.0)]), f(3))


# --- lists of tensors ---
def listed(x):
    """Each row of x through a list, and rows picked from one."""
    rows = tf.TensorArray(tf.float32, size=4).unstack(x)
    out = tf.TensorArray(tf.float32, size=4)
    k, out = tf.while_loop(lambda k, out: k < rows.size(), lambda k, out: (k + 1, out.write(k, rows.read(k) * 2.0)), (0, out))
    return [out.stack(), rows.gather([2, 0]), tf.cast(rows.size(), tf.float32), rows.read(1)]


case("list_of_rows", listed, f(4, 3))
case("list_raw", lambda x: [R.TensorListGetItem(input_handle=R.TensorListFromTensor(tensor=x, element_shape=[3]), index=2, element_shape=[3], element_dtype=tf.float32),
                            R.TensorListLength(input_handle=R.TensorListFromTensor(tensor=x, element_shape=[3])),
                            R.TensorListStack(input_handle=R.TensorListSetItem(input_handle=R.TensorListReserve(element_shape=[3], num_elements=2, element_dtype=tf.float32), index=1, item=x[0]), element_shape=[3], element_dtype=tf.float32)], f(4, 3))

QUICK.update("batch_matmul_v3_bytes frame_printing call_case_middle call_if call_while call_partitioned old_PlaceholderV2 old_TopK list_of_rows same_IdentityN same_PlaceholderWithDefault beside_Assert fused_depthwise_LeakyRelu".split())
