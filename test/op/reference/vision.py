# SPDX-License-Identifier: MIT
"""Resizing, sampling and regions, against the definitions and onnx's reference evaluator."""
import math

import numpy as np
import onnx
from make_cases import D, FLOATS, T
from onnx.helper import make_node
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_grid_sample import GridSample
from onnx.reference.ops.op_non_max_suppression import NonMaxSuppression
from onnx.reference.ops.op_resize import Resize
from onnx.reference.ops.op_roi_align import RoiAlign

from reference.convolution import braces


def evaluate(kind, inputs, **attributes):
    """One onnx operator on arrays."""
    names = [f"x{i}" if v is not None else "" for i, v in enumerate(inputs)]
    node = make_node(kind.__name__, names, ["y"], **attributes)
    op = kind(node, {"log": lambda *a: None, "opsets": {"": 20}, "verbose": 0, "new_ops": None})
    return op.run(*inputs)[0]


# --- resize ---


def resize(w, x, attr, scales=None, sizes=None, roi=None, tol=None, **onnx_attr):
    onnx_scales = None if scales is None else np.array(scales, dtype=np.float32).astype(np.float64)
    r = evaluate(Resize, [x.a, roi, onnx_scales, None if sizes is None else np.array(sizes)], **onnx_attr)
    text = f"scales={braces(scales)}" if scales is not None else f"sizes={braces(sizes)}"
    text += "".join(f",{k}={v}" for k, v in attr.items())
    w.case(f"resize[{text}]", [x], r, tol=tol)
    return r


MODES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]


def resizing(w):
    for mode in ("nearest", "linear", "cubic"):
        for how in MODES:
            attr = {"mode": mode, "coordinate_transformation_mode": how}
            for scales in ([1, 1, 2, 2], [1, 1, 0.6, 0.8], [1, 1, 1.75, 0.5], [1, 1, 3, 1]):
                if mode == "nearest":
                    attr["nearest_mode"] = "round_prefer_floor"
                x = w.random("float", (1, 1, 4, 5))
                resize(w, x, attr, scales=scales, **attr, tol=(1e-5, 1e-5))
            for sizes in ([2, 1, 7, 8], [2, 1, 3, 2], [1, 2, 1, 5], [2, 1, 4, 5]):
                if how == "pytorch_half_pixel" and 1 in sizes[2:] and mode == "cubic":
                    continue  # there the reference leaves the specification
                x = w.random("float", (2, 1, 4, 5))
                resize(w, x, attr, sizes=sizes, **attr, tol=(1e-5, 1e-5))
    for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        for how in MODES[:1] + MODES[3:]:
            attr = {"nearest_mode": nearest, "mode": "nearest", "coordinate_transformation_mode": how}
            for type in ("float", "int64", "uint8"):
                x = w.random(type, (7, 4))
                resize(w, x, attr, sizes=[10, 9], **attr)
                resize(w, x, attr, scales=[0.5, 2.5], **attr)
    for mode in ("linear", "cubic"):
        for extra in ({"antialias": 1}, {"exclude_outside": 1}, {"antialias": 1, "exclude_outside": 1}):
            attr = {"mode": mode, "coordinate_transformation_mode": "half_pixel", **extra}
            for scales in ([1, 0.6, 0.3], [1, 2, 0.75], [1, 1.5, 1]):
                x = w.random("float", (2, 7, 9))
                resize(w, x, attr, scales=scales, **attr, tol=(1e-5, 1e-5))
    attr = {"mode": "cubic", "coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.5}
    resize(w, w.random("float", (5, 4)), attr, scales=[2, 0.75], **attr, tol=(1e-5, 1e-5))
    roi = [0, 0.2, 0.1, 1, 0.9, 1.3]
    for mode in ("linear", "cubic", "nearest"):
        for target in ({"sizes": [1, 4, 6]}, {"sizes": [1, 1, 3]}):
            attr = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize",
                    "extrapolation_value": 10}
            more = {"nearest_mode": "round_prefer_floor"} if mode == "nearest" else {}
            x = w.random("float", (1, 5, 4))
            resize(w, x, {**attr, **more, "roi": braces(roi)}, **target, roi=np.array(roi), **attr, **more,
                   tol=(1e-5, 1e-5))
    for type in FLOATS:
        attr = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
        resize(w, w.random(type, (3, 4)), attr, sizes=[5, 2], **attr,
               tol=None if type == "double" else (2e-2, 1e-2) if type in ("half", "bf16") else (1e-5, 1e-5))
    # a scale that float cannot hold exactly: 10 * 0.7 are 7, and places by sizes are exact
    x = T("float", np.arange(10))
    w.case("resize[scales={0.7},mode=nearest]", [D("float", 10)], shape="float_type, {7}, {1}")
    w.case("resize[sizes={15},mode=nearest,nearest_mode=floor,coordinate_transformation_mode=asymmetric]",
           [x], np.arange(15) * 10 // 15)
    w.case("resize[sizes={21},mode=nearest,nearest_mode=floor,coordinate_transformation_mode=asymmetric]",
           [T("int32", np.arange(6))], np.arange(21) * 6 // 21)
    w.case("resize[scales={3},mode=nearest,nearest_mode=floor,coordinate_transformation_mode=tf_half_pixel_for_nn]",
           [T("int32", [5, 6])], [5, 5, 5, 6, 6, 6])


def resize_inputs(w):
    x = T("float", [[1, 2], [3, 4]])
    y = [[1, 1, 2, 2]] * 2 + [[3, 3, 4, 4]] * 2
    op = "resize[mode=nearest,nearest_mode=floor,coordinate_transformation_mode=asymmetric]"
    w.case(op, [x, T("int64", [4, 4])], y)
    w.case(op, [x, T("float", [2, 2])], y)
    w.case(op, [x, T("int64", [4, 4], known=True)], shape="float_type, {4, 4}, {4, 1}")
    w.case(op, [x, T("half", [2, 1.5], known=True)], shape="float_type, {4, 3}, {3, 1}")
    w.case(op, [x, D("int64", 2)], shape="dynamic, float_type, {[0..], [0..]}")
    crop = "resize[mode=linear,coordinate_transformation_mode=tf_crop_and_resize,extrapolation_value=9]"
    w.case(crop, [x, T("int64", [3, 2]), T("float", [0, 0, 1, 1])], [[1, 2], [2, 3], [3, 4]])
    w.case(crop, [x, T("float", [2, 2]), T("float", [0, 0, 1, 0.5])], [[1 + 2 * i / 3, 1.5 + 2 * i / 3] for i in range(4)], tol=(1e-6, 1e-6))
    w.case(crop, [x, T("int64", [1, 3]), T("float", [0.5, 0.5, 0.5, 2])], [[2.5, 9, 9]])
    w.case(crop, [x, T("int64", [3, 2])], fails="0 numbers of roi for an input of rank 2")
    w.case(op, [x], fails="one and only one of sizes (0) or scales (0) must be given")
    w.case("resize[sizes={2, 2},scales={1, 1}]", [x], fails="one and only one of sizes (2) or scales (2)")
    w.case("resize[sizes={2, 2, 2}]", [x], fails="3 sizes for an input of rank 2")
    w.case("resize[scales={2}]", [x], fails="1 scales for an input of rank 2")
    w.case("resize[sizes={-1, 2}]", [x], fails="cannot make size -1")
    for scale in (0, -1, "nan", "inf"):
        w.case(f"resize[scales={{{scale}, 1}}]", [x], fails="is out of range")
    w.case("resize[scales={2e9, 1}]", [D("float", 2**40, 0)], fails="makes length 1099511627776 too long")
    w.case("resize[sizes={2, 2},mode=area]", [x], fails='mode "area" is unknown')
    w.case("resize[sizes={2, 2},nearest_mode=up]", [x], fails='mode "up" is unknown')
    w.case("resize[sizes={2, 2},coordinate_transformation_mode=no]", [x], fails='mode "no" is unknown')
    w.case("resize[sizes={2}]", [D("float", 0)], fails="cannot make size 2 of length 0")
    w.case("resize[scales={2, 2}]", [T("float", np.zeros((0, 2)))], np.zeros((0, 4)))
    w.case("resize[scales={2, 0.5}]", [D("float", (1, 4, "a"), (3, 9))], shape="dynamic, float_type, {[2..8], [1..4]}")
    w.case("resize[scales={2, 1}]", [D("float", (1, 4, "a"), (3, 9, "b"))], shape="dynamic, float_type, {[2..8], b[3..9]}")
    w.case(op, [x, T("float", [1e30, 1])], aborts="is out of range")
    w.case(op, [x, T("int64", [2, -1])], aborts="cannot make size -1")
    wild = "resize[sizes={3},mode=linear,coordinate_transformation_mode=tf_crop_and_resize,roi={%s},extrapolation_value=7]"
    w.case(wild % "-1e300, 1e300", [T("float", [1, 2, 3])], [7, 1, 7])
    w.case(wild % "nan, 1", [T("float", [1, 2, 3])], [7, 7, 7])


# --- grid_sample ---


def grids(w):
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (0, 1):
                for xs, gs in [((2, 2, 3, 4), (2, 3, 2, 2)), ((1, 1, 5), (1, 6, 1)), ((1, 1, 2, 3, 3), (1, 2, 2, 1, 3))]:
                    x, g = w.random("double", xs), w.random("double", gs, -1.6, 1.6)
                    # the reference keeps coordinates as float32
                    r = evaluate(GridSample, [x.a, g.a], mode=mode, padding_mode=padding, align_corners=align)
                    w.case(f"grid_sample[mode={mode},padding_mode={padding},align_corners={align}]", [x, g], r,
                           tol=(2e-5, 2e-5))
    x = T("float", [[[1, 2, 4]]])
    for type in ("half", "float", "bf16"):
        g = T(type, [[[-1], [0], [0.5], [1]]])
        w.case("grid_sample[align_corners=1]", [T(type, x.a), g], [[[1, 2, 3, 4]]])
    g = T("float", [[[math.nan], [math.inf], [-math.inf], [1e30], [-1e30]]])
    w.case("grid_sample", [x, g], np.zeros((1, 1, 5)))
    w.case("grid_sample[padding_mode=border]", [x, g], [[[1, 1, 1, 4, 1]]])
    w.case("grid_sample[mode=nearest]", [T("int32", x.a), T("float", [[[0], [1], [1.1]]])], [[[2, 4, 0]]])
    w.case("grid_sample[padding_mode=reflection,align_corners=1]",
           [T("float", [[[3]]]), T("float", [[[0.3], [5]]])], [[[3, 3]]])
    w.case("grid_sample", [T("float", np.zeros((0, 2, 3, 3))), T("float", np.zeros((0, 2, 2, 2)))], np.zeros((0, 2, 2, 2)))
    x = D("float", (1, 4, "n"), 3, (5, 9), 7)
    w.case("grid_sample", [x, D("float", 2, (3, 6, "h"), 4, 2)], shape="dynamic, float_type, {2, 3, h[3..6], 4}")
    w.case("grid_sample", [x, D("float", 2, 3, 4, 3)], fails="axis 3 of input 1 has length 3, expected 2")
    w.case("grid_sample", [x, D("float", 5, 3, 4, 2)], fails="axis 0 of input 1 has length 5, expected 4")
    w.case("grid_sample", [x, D("float", 2, 3, 2)], fails="Only 4d supported")
    w.case("grid_sample", [x, D("int32", 2, 3, 4, 2)], fails="must be of a float type")
    w.case("grid_sample", [D("float", 1, 1, 0), D("float", 1, 2, 1)], fails="there is nothing to sample along axis 2")
    w.case("grid_sample[mode=7]", [x, D("float", 2, 3, 4, 2)], fails="mode")


# --- regions ---


def rois(w):
    for how in ("half_pixel", "output_half_pixel"):
        for mode in ("average", "max"):
            for ratio, scale in [(0, 1), (2, 0.5), (3, 1.5)]:
                x = w.random("double", (2, 3, 6, 7))
                r = T("double", [[0, 0, 4, 4], [1.5, 2.25, 6, 5.5], [-3, -2, 9, 8], [2, 2, 2, 2], [4, 3, 1, 1]])
                b = T("int64", [0, 1, 1, 0, 1])
                y = evaluate(RoiAlign, [x.a, r.a, b.a], mode={"average": "avg"}.get(mode, mode), output_height=2,
                             output_width=3, sampling_ratio=ratio, spatial_scale=scale,
                             coordinate_transformation_mode=how)
                w.case(f"roialign[coordinate_transformation_mode={how},mode={mode},output_height=2,output_width=3,"
                       f"sampling_ratio={ratio},spatial_scale={scale}]", [x, r, b], y, tol=(1e-6, 1e-6))
    for type in FLOATS:
        x, r = T(type, np.arange(16).reshape(1, 1, 4, 4)), T(type, [[0, 0, 4, 4]])
        w.case("roialign[output_height=2,output_width=2]", [x, r, T("int32", [0])], [[[[2.5, 4.5], [10.5, 12.5]]]],
               tol=(1e-6, 1e-6))
    x, one = T("float", np.ones((1, 1, 3, 3))), T("int64", [0])
    for bad in (1, -1):
        w.case("roialign", [x, T("float", [[0, 0, 1, 1]]), T("int64", [bad])], aborts=f"batch index {bad} is out of range for 1 images")
    w.case("roialign", [x, T("float", [[0, 0, math.inf, 1]]), one], aborts="roi from 0 to inf is out of range")
    w.case("roialign", [x, T("float", [[0, math.nan, 1, 1]]), one], aborts="is out of range")
    w.case("roialign", [x, T("float", [[0, 0, 1e9, 1e9]]), one], aborts="is out of range")
    w.case("roialign", [x, T("float", [[0, 0, 1e6, 1e6]]), one], aborts="samples a bin")
    w.case("roialign[sampling_ratio=1]", [x, T("float", [[1e6, 0, 1e9, 1e9]]), one], [[[[0]]]])
    w.case("roialign", [x, T("float", np.zeros((0, 4))), T("int64", np.zeros(0))], np.zeros((0, 1, 1, 1)))
    x, r, b = D("float", 2, 3, (4, 8), 8), D("float", (0, 9), 4), D("int64", (1, None))
    w.case("roialign[output_height=7,output_width=5]", [x, r, b], shape="dynamic, float_type, {[1..9], 3, 7, 5}")
    w.case("roialign", [x, D("float", 2, 5), b], fails="axis 1 of input 1 has length 5, expected 4")
    w.case("roialign", [x, D("float", 2, 4), D("int64", 3)], fails="axis 0 of input 2 has length 3, expected 2")
    w.case("roialign[output_height=0]", [x, r, b], fails="output of 0 by 1 with sampling_ratio 0 is out of range")
    w.case("roialign[sampling_ratio=-1]", [x, r, b], fails="sampling_ratio -1 is out of range")
    w.case("roialign[coordinate_transformation_mode=x]", [x, r, b], fails='"x" is unknown')
    w.case("roialign", [x, r, D("float", 9)], fails="must be of an integral type")

    def pooled(x, roi, oh, ow, scale):
        y = np.zeros((len(roi), x.shape[1], oh, ow))
        rounded = lambda v: math.floor(abs(v) + 0.5) * (1 if v >= 0 else -1)
        for n, (b, *c) in enumerate(roi):
            x1, y1, x2, y2 = [rounded(v * scale) for v in c]
            bh, bw = max(y2 - y1 + 1, 1) / oh, max(x2 - x1 + 1, 1) / ow
            for i, j in np.ndindex(oh, ow):
                rows = range(max(y1 + math.floor(i * bh), 0), min(y1 + math.ceil((i + 1) * bh), x.shape[2]))
                cols = range(max(x1 + math.floor(j * bw), 0), min(x1 + math.ceil((j + 1) * bw), x.shape[3]))
                if len(rows) and len(cols):
                    y[n, :, i, j] = x[int(b)][:, rows][:, :, cols].max((1, 2))
        return y

    for type in ("float", "half", "double"):
        x = w.random(type, (2, 2, 5, 6))
        r = T(type, [[0, 0, 0, 3, 3], [1, 1.5, 2, 8, 7], [1, -4, -3, 2, 1], [0, 20, 20, 30, 30], [1, 4, 4, 2, 2]])
        for scale in (1, 0.5):
            w.case(f"max_roi_pool[output_height=2,output_width=3,spatial_scale={scale}]", [x, r],
                   pooled(x.a, r.a, 2, 3, scale))
    x = T("float", np.ones((1, 1, 3, 3)))
    for bad in (1, -1, math.nan):
        w.case("max_roi_pool", [x, T("float", [[bad, 0, 0, 1, 1]])], aborts="is out of range for 1 images")
    w.case("max_roi_pool", [x, T("float", [[0, math.nan, 0, math.inf, 1e30]])], [[[[0]]]])
    w.case("max_roi_pool[output_width=0]", [D("float", 1, 2, 3, 3), D("float", 1, 5)], fails="output of 1 by 0 is out of range")
    w.case("max_roi_pool", [T("float", np.ones((1, 2, 3, 3))), T("float", np.zeros((0, 5)))], np.zeros((0, 2, 1, 1)))
    w.case("max_roi_pool", [D("float", 1, 2, 3, 3), D("float", (1, 5), 5)], shape="dynamic, float_type, {[1..5], 2, 1, 1}")
    w.case("max_roi_pool", [D("float", 1, 2, 3, 3), D("float", 1, 4)], fails="axis 1 of input 1 has length 4, expected 5")


def suppression(w):
    for center in (0, 1):
        for iou, least in [(0.5, 0.0), (0.2, 0.4), (0.0, -1.0), (1.0, 0.1)]:
            boxes = np.round(w.rng.uniform(0, 1, (2, 12, 4)), 2)
            if center:
                boxes[..., 2:] *= 0.5
            b, s = T("float", boxes), T("float", np.round(w.rng.uniform(0, 1, (2, 3, 12)), 1))
            scalars = [T("int64", [4]), T("float", [iou]), T("float", [least])]
            r = evaluate(NonMaxSuppression, [b.raw, s.raw] + [v.raw for v in scalars], center_point_box=center)
            w.case(f"nonmaxsuppression[center_point_box={center},use_dyn_output=1]", [b, s] + scalars, r, "int64")
    b = T("double", [[[0, 0, 1, 1], [1, 1, 0, 0], [0, 2, 1, 3], [0, 0, 0, 5]]])
    s = T("double", [[[0.5, 0.75, 0.75, math.nan]]])
    op = "nonmaxsuppression[use_dyn_output=1]"
    all_, three = T("int64", [9]), [[0, 0, 1], [0, 0, 2]]
    w.case(op, [b, s, all_, T("float", [0.5])], three + [[0, 0, 3]], "int64")
    w.case(op, [b, s, all_, T("float", [0.5]), T("float", [0.1])], three, "int64")
    w.case(op, [b, s, all_, T("float", [0.5]), T("float", [0.75])], np.zeros((0, 3)), "int64")
    w.case(op, [b, s, T("int64", [1])], [[0, 0, 1]], "int64")
    w.case(op, [b, s], np.zeros((0, 3)), "int64")
    w.case(op, [b, s, None, None, T("float", [0.1])], np.zeros((0, 3)), "int64")
    w.case(op, [b, s, T("int64", [-5])], np.zeros((0, 3)), "int64")
    w.case(op, [T("float", np.zeros((1, 0, 4))), T("float", np.zeros((1, 2, 0))), all_], np.zeros((0, 3)), "int64")
    fixed = "nonmaxsuppression"
    w.case(fixed, [b, s, all_, T("float", [0.5]), T("float", [0.1])], three + [[0, 0, 0]] * 2, "int64")
    same = T("float", np.tile([[0, 0, 1, 1], [5, 5, 6, 6]], (1, 1, 1)))
    scores = T("float", np.ones((1, 2, 2)))
    w.case(fixed, [same, scores, all_], aborts="4 boxes selected, room for 2 without use_dyn_output")
    w.case(fixed, [D("float", 2, 7, 4), D("float", 2, 3, 7)], shape="int64_type, {14, 3}, {3, 1}")
    w.case(op, [D("float", 2, 7, 4), D("float", 2, 3, 7)], shape="dynamic, int64_type, {[0..42], 3}")
    w.case(op, [D("float", (1, 2), 7, 4), D("float", 2, (1, 3), 7)], shape="dynamic, int64_type, {[0..42], 3}")
    w.case(op, [D("float", 2, 7, 4), D("float", 2, 3, 8)], fails="axis 2 of input 1 has length 8, expected 7")
    w.case(op, [D("float", 2, 7, 5), D("float", 2, 3, 7)], fails="axis 2 of input 0 has length 5, expected 4")
    w.case(op, [D("float", 2, 7, 4), D("float", 2, 3, 7), D("int64", 2)], fails="input 2 has 2 values, not 1")
    w.case(op, [D("float", 2, 7, 4), D("float", 2, 7)], fails="Only 3d supported")
    w.case(op, [D("int32", 2, 7, 4), D("float", 2, 3, 7)], fails="must be of a float type")


def determinants(w):
    for type in ("float", "double", "half"):
        for shape in [(2, 2), (3, 4, 4), (2, 1, 3, 3), (1, 1)]:
            x = w.random(type, shape, -2, 2)
            w.case("det", [x], np.linalg.det(x.a), tol=(1e-2, 1e-3) if type == "half" else (1e-5, 1e-5))
    w.case("det", [T("float", [[0, 1], [1, 0]])], -1)
    w.case("det", [T("float", [[1, 2], [2, 4]])], 0)
    w.case("det", [T("float", np.zeros((2, 0, 0)))], [1, 1])
    w.case("det", [T("float", np.zeros((0, 3, 3)))], np.zeros(0))
    w.case("det", [D("float", (1, 4), 3, 3)], shape="dynamic, float_type, {[1..4]}")
    w.case("det", [D("float", 3, 2)], fails="matrices of 3 by 2 are not square")
    w.case("det", [D("float", 3)], fails="at least 2 dimensions")
    w.case("det", [D("int32", 3, 3)], fails="must be of a float type")


def inverses(w):
    for type in ("float", "double", "half"):
        for n in (1, 2, 5):
            x = T(type, w.random(type, (2, n, n), -1, 1).a + 3 * np.eye(n))
            w.case("inverse", [x], np.linalg.inv(x.a), tol=(1e-2, 1e-3) if type == "half" else (1e-5, 1e-5))
    w.case("inverse", [T("float", [[0, 2], [4, 0]])], [[0, 0.25], [0.5, 0]])
    w.case("inverse", [T("float", np.zeros((2, 0, 0)))], np.zeros((2, 0, 0)))
    w.case("inverse", [D("float", (1, 4), 3, 3)], shape="dynamic, float_type, {[1..4], 3, 3}")
    w.case("inverse", [D("float", 3, 2)], fails="matrices of 3 by 2 are not square")
    w.case("inverse", [D("int32", 3, 3)], fails="must be of a float type")


def cases(w):
    inverses(w)
    resizing(w)
    resize_inputs(w)
    grids(w)
    rois(w)
    suppression(w)
    determinants(w)
