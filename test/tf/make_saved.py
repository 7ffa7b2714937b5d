# SPDX-License-Identifier: MIT
"""Writes small SavedModels with what TensorFlow makes of them: make_saved.py --out DIR

DIR/v2 is a module with variables, a function that calls another, and a signature; DIR/v1 is of a session, with
reference variables and a Saver. DIR/results.npz holds <model>/<input or output>."""
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    out = parser.parse_args().out
    results = {}
    for name, save in (("v2", save_v2), ("v1", save_v1)):
        path = os.path.join(out, name)
        shutil.rmtree(path, ignore_errors=True)
        save(path, results)
        for extra in ("assets", "fingerprint.pb"):
            whole = os.path.join(path, extra)
            shutil.rmtree(whole) if os.path.isdir(whole) else os.path.exists(whole) and os.remove(whole)
    np.savez_compressed(os.path.join(out, "results.npz"), **results)


if __name__ == "__main__":
    main()
