# SPDX-License-Identifier: MIT
"""Writes small SavedModels with what TensorFlow makes of them: make_saved.py --out DIR

DIR/v2 is a module with variables, a function that calls another, and a signature; DIR/v1 is of a session, with
reference variables and a Saver; DIR/refs hands such variables through control flow; DIR/kinds has variables of other
types and signatures of other names; DIR/sharded has a Saver of one file a device. DIR/results.npz holds
<model>/<input or output>, DIR/operators.txt what stands in the graphs."""
import argparse
import os
import shutil

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

R = np.random.default_rng(7)


def values(*shape):
    return R.uniform(-1, 1, shape).astype(np.float32)


class Net(tf.Module):
    def __init__(self):
        self.filter = tf.Variable(values(3, 3, 2, 4), name="filter")
        self.table = tf.Variable(values(6, 4), name="table")
        self.scale = tf.Variable(np.float32(1.5), name="scale")

    @tf.function
    def conv(self, x):
        return tf.nn.relu(tf.nn.conv2d(x, self.filter, 1, "SAME"))

    @tf.function(input_signature=[tf.TensorSpec((None, 4, 4, 2), name="image"), tf.TensorSpec((None,), tf.int32, name="label")])
    def __call__(self, image, label):
        y = tf.reduce_mean(self.conv(image), [1, 2]) * self.scale
        return {"score": tf.reduce_sum(y * tf.gather(self.table, label), -1), "mean": y}


def save_v2(path, results):
    net = Net()
    tf.saved_model.save(net, path)
    image, label = values(1, 4, 4, 2), np.array([3], np.int32)
    results.update({"v2/image": image, "v2/label": label})
    results.update({f"v2/{k}": v.numpy() for k, v in net(tf.constant(image), tf.constant(label)).items()})


def save_v1(path, results):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (2, 3), name="x")
        w = v1.get_variable("w", initializer=values(3, 4), use_resource=False)
        b = v1.get_variable("b", initializer=values(4), use_resource=False)
        y = tf.nn.softmax(tf.matmul(x, w) + b, name="y")
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, path, {"x": x}, {"probabilities": y})
        given = values(2, 3)
        results.update({"v1/x": given, "v1/probabilities": session.run(y, {x: given})})


def read(file):
    from tensorflow.core.protobuf import saved_model_pb2
    with open(file, "rb") as data:
        return saved_model_pb2.SavedModel.FromString(data.read())


def rename(file, old, new):
    model = read(file)
    for node in model.meta_graphs[0].graph_def.node:
        node.op = new if node.op == old else node.op
    with open(file, "wb") as data:
        data.write(model.SerializeToString())


def save_refs(path, results):
    """Variables of the first version that are handed through a condition and a loop as what they are."""
    v1 = tf.compat.v1
    from tensorflow.python.ops import gen_control_flow_ops as flow
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (3,), name="x")
        w = v1.get_variable("w", initializer=values(3), use_resource=False)
        no, yes = flow.ref_switch(w._ref(), tf.reduce_sum(x) > 0)
        either, _ = flow.ref_merge([no, yes])
        entered = flow.ref_enter(w._ref(), frame_name="frame")
        start = flow.enter(0, frame_name="frame")
        kept, _ = flow.ref_merge([entered, entered])
        count, _ = flow.merge([start, start])
        going = flow.loop_cond(count < flow.enter(3, frame_name="frame", is_constant=True))
        left, inside = flow.ref_switch(kept, going)
        done, again = flow.switch(count, going)
        kept.op._update_input(1, flow.ref_next_iteration(inside))
        with tf.control_dependencies([again]):
            one = tf.constant(1)
        count.op._update_input(1, flow.next_iteration(again + one))
        y = tf.identity(flow.ref_exit(left) * x + either + tf.cast(flow._exit(done), tf.float32), name="y")
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, path, {"x": x}, {"y": y})
        given = values(3)
        results.update({"refs/x": given, "refs/y": session.run(y, {x: given})})
    rename(os.path.join(path, "saved_model.pb"), "VariableV2", "Variable")  # its older name


class Kinds(tf.Module):
    """Variables of several types and one that no graph reads; two signatures, neither of the usual name."""
    def __init__(self):
        self.brain = tf.Variable(tf.cast(R.integers(-8, 9, (4, 3)) / 8, tf.bfloat16), name="brain")
        self.bytes = tf.Variable(R.integers(-128, 128, (4,)).astype(np.int8), name="bytes")
        self.wide = tf.Variable(R.integers(-9, 9, (2, 4)), name="wide")
        self.flags = tf.Variable([True, False, True, True], name="flags")
        self.label = tf.Variable(["cat", "dog"], name="label")
        self.none = tf.Variable(np.zeros((0, 4), np.float32), name="none")

    @tf.function(input_signature=[tf.TensorSpec((2, 4), name="x")])
    def first(self, x):
        y = tf.cast(tf.matmul(tf.cast(x, tf.bfloat16), self.brain), tf.float32)
        kept = tf.where(self.flags, tf.cast(self.bytes, tf.float32), tf.cast(self.wide, tf.float32))
        made = tf.cast(tf.raw_ops.VarIsInitializedOp(resource=self.wide.handle), tf.float32)
        return {"y": y, "kept": tf.concat([kept * made, self.none], 0)}

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.int32, name="k")])
    def second(self, k):
        return {"row": tf.gather(self.wide, k)}


def save_kinds(path, results):
    net = Kinds()
    tf.saved_model.save(net, path, {"a_first": net.first, "b_second": net.second})
    x = R.integers(-3, 4, (2, 4)).astype(np.float32)
    results["kinds/x"] = x
    results.update({f"kinds/{k}": v.numpy() for k, v in net.first(tf.constant(x)).items()})


def save_sharded(path, results):
    """Variables in several files."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (2, 3), name="x")
        parts = []
        for k in range(2):
            with tf.device(f"/CPU:{k}"):
                parts.append(v1.get_variable(f"w{k}", initializer=values(3, 4), use_resource=True))
        y = tf.identity(tf.matmul(x, parts[0]) - tf.matmul(x, parts[1]), name="y")
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(path)
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature}, saver=v1.train.Saver(sharded=True))
        builder.save()
        given = values(2, 3)
        results.update({"sharded/x": given, "sharded/y": session.run(y, {x: given})})


MODELS = {"v2": save_v2, "v1": save_v1, "refs": save_refs, "kinds": save_kinds, "sharded": save_sharded}


def operators(path):
    """What stands in the graphs of a SavedModel."""
    graphs = [m.graph_def for m in read(os.path.join(path, "saved_model.pb")).meta_graphs]
    return {n.op for g in graphs for nodes in [g.node, *[f.node_def for f in g.library.function]] for n in nodes}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], two)
    results, found = {}, set()
    for name, save in MODELS.items():
        path = os.path.join(args.out, name)
        shutil.rmtree(path, ignore_errors=True)
        save(path, results)
        found |= operators(path)
        for extra in ("assets", "fingerprint.pb"):
            whole = os.path.join(path, extra)
            shutil.rmtree(whole) if os.path.isdir(whole) else os.path.exists(whole) and os.remove(whole)
    np.savez_compressed(os.path.join(args.out, "results.npz"), **results)
    with open(os.path.join(args.out, "operators.txt"), "w") as file:
        file.write("".join(f"{op}\n" for op in sorted(found)))


if __name__ == "__main__":
    main()
