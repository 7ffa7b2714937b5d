# SPDX-License-Identifier: MIT
"""Writes graphs, inputs and TensorFlow's results as .npz files, one a case. Needs TensorFlow.

    make.py --out DIR            all cases of cases.py, sweep.py and nodes.py; DIR/operators.txt says what is in them
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
import case  # noqa: E402
import cases  # noqa: E402, F401
import nodes  # noqa: E402, F401
import sweep  # noqa: E402, F401


def numbers(x):
    """numpy's files know no bfloat16."""
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


def trace(name, function, inputs):
    specs = [tf.TensorSpec(x.shape, x.dtype, name=f"x{i}") for i, x in enumerate(inputs)]
    concrete = tf.function(function, autograph=False).get_concrete_function(*specs)
    return concrete if name in case.CALLS else freeze(concrete, lower_control_flow=name in case.LOWERED)


def entries(name, function, makers):
    r = case.rng(name)
    inputs = [make(r) for make in makers]
    frozen = trace(name, function, inputs)
    graph, outputs = frozen.graph.as_graph_def(), [t.name for t in frozen.outputs]
    results = [y.numpy() for y in tf.nest.flatten(frozen(*[tf.constant(x) for x in inputs]))]
    graph = case.EDITED.get(name, lambda same: same)(graph)
    out = {"graph": np.frombuffer(graph.SerializeToString(), np.uint8), "outputs": np.array(outputs)}
    out.update({f"x{i}": x for i, x in enumerate(inputs)})
    out.update({f"y{i}": numbers(y) for i, y in enumerate(results)})
    return {f"{name}/{k}": v for k, v in out.items()}, operators(graph)


def operators(graph):
    return {n.op for n in graph.node} | {n.op for f in graph.library.function for n in f.node_def}


def open_batch():
    """A graph whose batch is not known, for the options of parse_tf."""
    spec = tf.TensorSpec((None, 4, 5, 3), tf.float32, name="x")
    function = tf.function(lambda x: tf.nn.relu(tf.nn.conv2d(x, tf.ones((3, 3, 3, 2)), 1, "SAME"), name="y"))
    graph = freeze(function.get_concrete_function(spec)).graph.as_graph_def()
    return {"open_batch/graph": np.frombuffer(graph.SerializeToString(), np.uint8)}


def make(name):
    """The entries of a case and its operators; nothing where TensorFlow has no kernel for the type."""
    try:
        return entries(name, *case.CASES[name])
    except Exception as error:
        why = (str(error) or repr(error)).splitlines()[0][:200]
        if name not in case.OPTIONAL:
            print(f"make: {name}: {why}")
        return ({}, set())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    parser.add_argument("--quick")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    kept, found, count = open_batch() if args.quick else {}, set(), 0
    if args.out:
        os.makedirs(args.out, exist_ok=True)
    for name in case.CASES:
        if args.only not in name or (args.quick and name not in case.QUICK):
            continue
        made, ops = make(name)
        found |= ops
        count += bool(made)
        if args.out and made:
            np.savez(os.path.join(args.out, name + ".npz"), **made)
        kept.update(made if args.quick else {})
    if args.out:
        with open(os.path.join(args.out, "operators.txt"), "w") as file:
            file.write("".join(f"{op}\n" for op in sorted(found)))
    if args.quick:
        np.savez_compressed(args.quick, **kept)
    print(f"{count} of {len(case.CASES)} cases made")


if __name__ == "__main__":
    main()
