#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models of the zoo whose batch is a constant, with the batch left free.

    free_batch.py check [NAME ...]      that two images give what each gives alone, by ONNX Runtime on the CPU

Exporters write the batch that they saw into constants of Reshape, and constants of one image go into a Concat. `free` lets
the number in a Reshape's constant that holds the batch be inferred and repeats such constants for every image. Where the
batch goes is found by sizes: those of one image and those of two differ in one axis.

`convolutions` cuts a detector, which takes images one by one, to what lies between the image as its first convolution reads
it and the last convolutions, those of its heads: no choice of boxes, and nothing around it.
"""
import os
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "zoo"))
CUT = {"retinanet_resnet50": (3, 320, 320)}  # detectors, and the image that the first convolution is given


def inputs_of(model):
    initial = {t.name for t in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in initial]


def first_sizes(values):
    return [v.type.tensor_type.shape.dim[0] for v in values if v.type.tensor_type.shape.dim]


def shapes_of(model, batch):
    """Sizes by name, of a batch of so many; None where they are not known."""
    for size in first_sizes(inputs_of(model)):
        size.dim_value = batch
    of = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    known = {t.name: list(t.dims) for t in of.initializer}
    for v in [*of.value_info, *of.input]:
        sizes = [d.dim_value if d.HasField("dim_value") else None for d in v.type.tensor_type.shape.dim]
        known[v.name] = None if None in sizes else sizes
    return known


def batch_place(one, two):
    """The axis of the batch, or None."""
    apart = [i for i, (a, b) in enumerate(zip(one, two)) if a != b]
    return apart[0] if len(apart) == 1 else None


def freed(sizes, before):
    """A Reshape's sizes with the batch inferred: where there is a 1, else behind the `before` elements that a step of the
    batch lies inside of; of a matrix its rows are more."""
    inside = [i for i in range(len(sizes)) if int(np.prod(sizes[:i])) >= before]
    at = sizes.index(1) if 1 in sizes else 0 if len(sizes) == 2 else inside[0]
    return [-1 if i == at else s for i, s in enumerate(sizes)]


def constants_of(graph):
    """Those that sizes may be."""
    made = {n.output[0]: n.attribute[0].t for n in graph.node if n.op_type == "Constant" and n.attribute[0].name == "value"}
    there = {**{t.name: t for t in graph.initializer}, **made}
    return {name: numpy_helper.to_array(t) for name, t in there.items() if t.data_type == onnx.TensorProto.INT64}


def free_reshape(graph, node, number, sizes, one, two):
    """Is it changed? Where sizes are not known (None) a 1 in front is the batch."""
    known = one is not None and two is not None
    axis = batch_place(one, two) if known else 0
    if axis is None or min(sizes, default=0) < 1 or (not known and (sizes[0] != 1 or len(sizes) < 2)):
        return False
    name = f"free_batch_{number}"
    graph.initializer.append(numpy_helper.from_array(np.array(freed(sizes, int(np.prod(one[:axis])) if known else 1), np.int64), name))
    node.input[1] = name
    return True


def repeat(graph, node, index, like):
    """Input `index` of a Concat, of one image, for every image of `like`."""
    name = node.input[index]
    stem = f"free_{name}".replace("/", "_")
    for text, value in (("zero", [0]), ("end", [1]), ("rest", [1] * 2)):
        graph.initializer.append(numpy_helper.from_array(np.array(value, np.int64), f"{stem}_{text}"))
    new = [helper.make_node("Shape", [like], [f"{stem}_sizes"]),
           helper.make_node("Slice", [f"{stem}_sizes", f"{stem}_zero", f"{stem}_end"], [f"{stem}_count"]),
           helper.make_node("Concat", [f"{stem}_count", f"{stem}_rest"], [f"{stem}_to"], axis=0),
           helper.make_node("Expand", [name, f"{stem}_to"], [f"{stem}_all"])]
    node.input[index] = f"{stem}_all"
    at = list(graph.node).index(node)
    for i, n in enumerate(new):
        graph.node.insert(at + i, n)


def free_concat(graph, node, one, two):
    """Are constants of one image among its inputs?"""
    initial = {t.name for t in graph.initializer}
    grows = [i for i in node.input if one.get(i) and two.get(i) and one[i][0] != two[i][0]]
    fixed = [i for i, name in enumerate(node.input) if grows and name in initial and one[name][0] == 1 and len(one[name]) == 3]
    for index in fixed:
        repeat(graph, node, index, grows[0])
    return bool(fixed)


def forget_sizes(graph):
    """Those that are told of one image."""
    del graph.value_info[:]
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")


def free(model):
    """The model, changed in place: the first size of its inputs is N."""
    graph, changed, number = model.graph, True, 0
    forget_sizes(graph)
    one, constants = shapes_of(model, 1), constants_of(graph)
    for node in [n for n in graph.node if n.op_type in ("Reshape", "Concat")]:
        two = shapes_of(model, 2) if changed else two
        if node.op_type == "Concat":
            changed = node.attribute[0].i != 0 and free_concat(graph, node, one, two)
            continue
        before, after = (s.get(node.input[0]) for s in (one, two))
        sizes = constants[node.input[1]].tolist() if node.input[1] in constants else []
        changed = free_reshape(graph, node, number, sizes, before, after)
        number += changed
    for size in first_sizes(inputs_of(model)):
        size.dim_param = "N"
    return model


def convolutions(model, image):
    """From the first convolution's image to the last ones, in each order of a batch."""
    graph = model.graph
    made = {o: n for n in graph.node for o in n.output}
    behind = set()  # names that some convolution is made of
    for node in reversed(graph.node):
        if node.op_type == "Conv" or behind & set(node.output):
            behind.update(node.input)
    convs = [n for n in graph.node if n.op_type == "Conv"]
    ends = [n.output[0] for n in convs if n.output[0] not in behind]
    start = convs[0].input[0]
    for name in {start, *ends} - {v.name for v in graph.value_info}:
        graph.value_info.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None if name != start else ["N", *image]))
    assert start in made and ends
    return onnx.utils.Extractor(model).extract_model([start], ends)


def ready(name, skeleton):
    """The skeleton's model as it can be timed at every batch."""
    model = onnx.ModelProto.FromString(skeleton)
    if name in CUT:
        model = convolutions(model, CUT[name])
    fixed = any(size.dim_value == 1 for size in first_sizes(inputs_of(model)))
    return free(model) if fixed or name in CUT else model


def check(name):
    """How far two images together are from each alone, by the largest of the results."""
    import onnxruntime
    import zoo
    skeleton = zoo.skeletons()[name]
    model = onnx.ModelProto.FromString(skeleton)
    run = []
    for m in (convolutions(model, CUT[name]) if name in CUT else model, ready(name, skeleton)):
        m = zoo.fill(m.SerializeToString())
        run.append(onnxruntime.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]))
    rng = np.random.default_rng(5)
    feed = {i.name: rng.standard_normal([2, *i.shape[1:]]).astype(np.float32) for i in run[1].get_inputs()}
    both = run[1].run(None, feed)
    each = [run[0].run(None, {k: v[i:i + 1] for k, v in feed.items()}) for i in range(2)]
    return max(float(np.abs(b - np.concatenate(a)).max() / np.abs(b).max()) for b, a in zip(both, zip(*each)))


def main(argv):
    names = argv[1:] or ["vit_b_16", "yolov8s", "unet", "mobilenet_v2", "efficientnet_b0", *CUT]
    apart = {name: check(name) for name in names}
    print("\n".join(f"{name:24}{far:.1e}" for name, far in apart.items()))
    return any(far > 1e-4 for far in apart.values())


if __name__ == "__main__":
    sys.exit(__doc__ if sys.argv[1:2] != ["check"] else main(sys.argv[1:]))
