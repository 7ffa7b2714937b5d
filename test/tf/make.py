# SPDX-License-Identifier: MIT
"""Writes graphs, inputs and TensorFlow's results as .npz files, one a case. Needs TensorFlow.

    make.py --out DIR            all cases of cases.py
    make.py --quick FILE.npz     those that the repository keeps, in one file

An entry is called <case>/graph (the bytes of a frozen GraphDef), <case>/x<i> (inputs), <case>/outputs (names of
nodes), <case>/y<i> (results)."""
import argparse
import os
import sys

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2 as freeze  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def numbers(x):
    """numpy's files know no bfloat16."""
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


def trace(function, inputs, lower=False):
    specs = [tf.TensorSpec(x.shape, x.dtype, name=f"x{i}") for i, x in enumerate(inputs)]
    concrete = tf.function(function, autograph=False).get_concrete_function(*specs)
    frozen = freeze(concrete, lower_control_flow=lower)
    return frozen, [t.name for t in frozen.outputs]


def entries(name, function, makers, lower=False):
    import cases
    r = cases.rng(name)
    inputs = [make(r) for make in makers]
    frozen, outputs = trace(function, inputs, lower)
    results = frozen(*[tf.constant(x) for x in inputs])
    results = results if isinstance(results, (list, tuple)) else [results]
    out = {"graph": np.frombuffer(frozen.graph.as_graph_def().SerializeToString(), np.uint8), "outputs": np.array(outputs)}
    out.update({f"x{i}": x for i, x in enumerate(inputs)})
    out.update({f"y{i}": numbers(y.numpy()) for i, y in enumerate(results)})
    return {f"{name}/{k}": v for k, v in out.items()}


def open_batch():
    """A graph whose batch is not known, for the options of parse_tf."""
    spec = tf.TensorSpec((None, 4, 5, 3), tf.float32, name="x")
    function = tf.function(lambda x: tf.nn.relu(tf.nn.conv2d(x, tf.ones((3, 3, 3, 2)), 1, "SAME"), name="y"))
    graph = freeze(function.get_concrete_function(spec)).graph.as_graph_def()
    return {"open_batch/graph": np.frombuffer(graph.SerializeToString(), np.uint8)}


def main():
    import cases
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    parser.add_argument("--quick")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    kept = open_batch() if args.quick else {}
    if args.out:
        os.makedirs(args.out, exist_ok=True)
    for name, (function, makers) in cases.CASES.items():
        if args.only not in name or (args.quick and name not in cases.QUICK):
            continue
        try:
            made = entries(name, function, makers, name in cases.LOWERED)
        except Exception as error:  # TensorFlow's own refusal: say which case, go on
            print(f"make: {name}: {(str(error) or repr(error)).splitlines()[0][:200]}")
            continue
        if args.out:
            np.savez(os.path.join(args.out, name + ".npz"), **made)
        kept.update(made if args.quick else {})
    if args.quick:
        np.savez_compressed(args.quick, **kept)


if __name__ == "__main__":
    main()
