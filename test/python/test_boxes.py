# SPDX-License-Identifier: MIT
"""Suppression of many boxes on the CPU against the reference: sizes, thresholds and classes pushed aside, drawn by chance."""
import migraphx
import numpy as np
import pytest


def kept(target, boxes, scores, iou, centered):
    p = migraphx.program()
    m = p.get_main_module()
    inputs = [m.add_parameter(name, migraphx.shape(type="float_type", lens=list(v.shape))) for name, v in (("boxes", boxes), ("scores", scores))]
    limits = [m.add_literal(np.array([v], t)) for v, t in ((boxes.shape[1], np.int64), (iou, np.float32), (0.05, np.float32))]
    m.add_return([m.add_instruction(migraphx.op("nonmaxsuppression", use_dyn_output=True, center_point_box=centered), inputs + limits)])
    p.compile(target)
    return np.array(p.run({"boxes": boxes, "scores": scores})[0])


@pytest.mark.parametrize("case", range(24))
def test_many_boxes(case):
    rng = np.random.default_rng(case)
    n, size = int(rng.integers(1200, 2500)), rng.choice([1e-3, 1, 50, 400])
    low = rng.random((n, 2)) * rng.choice([1, 300, 2000]) * max(size / 50, 1e-3)
    width = rng.random((n, 2)) * size * rng.choice([1, 0.2])
    if case % 5 == 0:  # without an area
        width *= rng.random((n, 1)) > 0.3
    if case % 4 == 0:  # edges and ratios that are equal
        low, width = np.rint(low * 4) / 4, np.rint(width * 4) / 4
    aside = rng.integers(0, rng.integers(1, 90), (n, 1)) * (low.max() + size)
    boxes = np.concatenate([low + aside, (low + aside) + width], 1).astype(np.float32)[None]
    scores = rng.random((1, 1, n)).astype(np.float32)
    for iou in (rng.choice([0.1, 0.25, 0.3]), rng.choice([0.45, 0.5, 0.6]), rng.choice([0.7, 0.9, 0.99])):
        assert np.array_equal(kept("cpu", boxes, scores, iou, case % 3 == 0), kept("ref", boxes, scores, iou, case % 3 == 0))


def test_boxes_beyond_all_bounds():
    rng = np.random.default_rng(1)
    boxes = rng.random((1, 1500, 4)).astype(np.float32) * 100
    scores = rng.random((1, 1, 1500)).astype(np.float32)
    for value in (np.inf, -np.inf, np.nan, 3e38):
        odd = boxes.copy()
        odd[0, ::7, 2] = value
        assert np.array_equal(kept("cpu", odd, scores, 0.5, False), kept("ref", odd, scores, 0.5, False))
