# SPDX-License-Identifier: MIT
"""The guide's way to 8 bits with a card as target: ranges measured on it, a budget kept by what was timed on it, all from Python and
from the driver, against numpy."""
import json
import os
import subprocess

import card  # noqa: F401
import migraphx
import numpy as np
import pytest
from card import needs_card, repeated

pytestmark = needs_card

SEED = int(os.environ.get("MGX_SEED", "1"))
ROWS, WIDTH, LAYERS = 24, 48, 3
WEIGHTS = [np.random.default_rng([SEED, 31, i]).standard_normal((WIDTH, WIDTH)).astype(np.float32) / np.sqrt(WIDTH).astype(np.float32) for i in range(LAYERS)]
SAMPLES = [np.random.default_rng([SEED, 32, i]).standard_normal((ROWS, WIDTH)).astype(np.float32) for i in range(3)]


def layers():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[ROWS, WIDTH]))
    for i, w in enumerate(WEIGHTS):
        x = m.add_instruction(migraphx.op("dot"), [x, m.add_literal(w)])
        x = m.add_instruction(migraphx.op("relu"), [x]) if i + 1 < LAYERS else x
    m.add_return([x])
    return p


def inputs_of(x):
    """What each layer reads, in float."""
    found = [x.astype(np.float64)]
    for w in WEIGHTS[:-1]:
        found.append(np.maximum(found[-1] @ w, 0))
    return found


def exact(x):
    return inputs_of(x)[-1] @ WEIGHTS[-1]


def error(program, samples=SAMPLES):
    """The norm of what is off by the norm of the results, over all samples."""
    program.compile(migraphx.get_target("gpu"), offload_copy=True)
    off = size = 0
    for x in samples:
        def check(got, want=exact(x)):
            nonlocal off, size
            off, size = off + np.sum((got[0] - want) ** 2), size + np.sum(want**2)
        repeated(lambda x=x: [np.array(program.run({"x": x})[0])], check)
    return np.sqrt(off / size)


def entries(text):
    """What the ranges say of each product: its type, input 0, cost and why."""
    found = []
    for line in text.splitlines():
        word = line.split(maxsplit=2)
        if word and word[0] == "instruction":
            found.append({"type": word[2]})
        elif word and word[0] == "input":
            found[-1]["input"] = [float(v) for v in word[2].split()]
        elif word and word[0] == "cost":
            found[-1]["error"], found[-1]["gain"] = float(word[1]), float(word[2])
        elif word and word[0] == "why":
            found[-1]["why"] = line.split(maxsplit=1)[1].strip('"')
    return found


def test_ranges_are_those_of_the_samples():
    text = migraphx.quantize(layers(), migraphx.get_target("gpu"), [{"x": x} for x in SAMPLES])
    seen = [inputs_of(x) for x in SAMPLES]
    for i, entry in enumerate(entries(text)):
        low, high = min(s[i].min() for s in seen), max(s[i].max() for s in seen)
        np.testing.assert_allclose(entry["input"], [min(low, 0), max(high, 0)], rtol=1e-4)


@pytest.mark.parametrize("kind", ["int8", "fp8e4m3fn", "fp8e5m2"])
def test_every_product_is_narrow_where_nobody_minds(kind):
    p = layers()
    text = migraphx.quantize(p, migraphx.get_target("gpu"), [{"x": x} for x in SAMPLES], type=kind)
    assert [e["type"] for e in entries(text)] == [f"{kind}_type"] * LAYERS, text
    assert 1e-3 < error(p) < {"int8": 0.03, "fp8e4m3fn": 0.1, "fp8e5m2": 0.2}[kind]


@pytest.mark.parametrize("budget", [0, 0.004, 0.01, 1])
def test_budgets(budget):
    """Kept on the card; what does not fit in bytes is half there where that fits, for floats are no rival of bytes on a card."""
    p = layers()
    text = migraphx.quantize(p, migraphx.get_target("gpu"), [{"x": x} for x in SAMPLES], budget=budget)
    found = entries(text)
    assert all(0 < e["error"] < 0.03 and abs(e["gain"]) < 1e6 for e in found), text
    for e in found:
        assert ("why" in e) == (e["type"] != "int8_type"), text
        assert e["gain"] > 0 or e["why"] == "it would not be faster", text
    assert found[1]["gain"] == found[2]["gain"], text  # one problem, timed once
    types = {e["type"] for e in found}
    assert types == {"float_type"} if budget == 0 else "float_type" not in types, text
    assert budget != 0.004 or types == {"half_type"}, text
    off = error(p)
    assert off <= budget + 1e-6  # numpy's is no float
    np.testing.assert_allclose(off, float(text.split("budget relative ")[1].split()[1]), rtol=0.1, atol=1e-6)


@pytest.mark.skipif("MGX_DRIVER" not in os.environ, reason="no driver here")
def test_the_driver(tmp_path):
    """quantize with a budget on the card, the table, and the check of the file that it wrote."""
    migraphx.save(layers(), str(tmp_path / "layers.mxr"))
    (tmp_path / "samples").mkdir()
    for i, x in enumerate(SAMPLES):
        np.save(tmp_path / "samples" / f"{i}.npy", x)

    def drive(*words):
        done = subprocess.run([os.environ["MGX_DRIVER"], "quantize", "--gpu", str(tmp_path / "layers.mxr"), "--calibration", str(tmp_path / "samples"), *words],
                              capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    table = json.loads(drive("--budget", "0.01", "--json"))
    assert len(table["products"]) == LAYERS and "of 0.01 allowed" in table["summary"], table
    assert all(abs(row["gain_us"]) < 1e6 and row["type"] in ("int8_type", "half_type") for row in table["products"]), table
    drive("--budget", "0.01", "-o", str(tmp_path / "q.mxr"))
    judged = json.loads(drive("--check", str(tmp_path / "q.mxr"), "--json"))
    assert judged["budget"]["within"] and judged["relative_error"] <= 0.01, judged
    p = migraphx.load(str(tmp_path / "q.mxr"))
    np.testing.assert_allclose(error(p), judged["relative_error"], rtol=0.1)


# Of halves x and w: what each is, what the product is told, what comes of it.
HALVES = {
    "rows": ([37, 72], [72, 40], {}, [37, 40]),
    "a row": ([1, 64], [64, 96], {}, [1, 96]),
    "computed": ([2, 3, 40, 64], [2, 3, 64, 40], {}, [2, 3, 40, 40]),
    "image": ([2, 24, 9, 9], [65, 24, 3, 3], {"padding": [1, 1]}, [2, 65, 9, 9]),
    "first image": ([2, 3, 28, 28], [32, 3, 3, 3], {"padding": [1, 1], "stride": [2, 2]}, [2, 32, 14, 14]),
    "depthwise": ([2, 32, 14, 14], [32, 1, 3, 3], {"padding": [1, 1], "group": 32}, [2, 32, 14, 14]),
    "groups": ([2, 64, 14, 14], [32, 16, 3, 3], {"padding": [1, 1], "group": 4}, [2, 32, 14, 14]),
}


@pytest.mark.parametrize("kind", ["int8", "uint8", "fp8e4m3fn"])
@pytest.mark.parametrize("what", HALVES)
def test_halves_leave_bytes(what, kind):
    """A product of halves between products of bytes makes them in its end, as the reference does of its rounded result."""
    rng = np.random.default_rng([SEED, 33, len(what), len(kind)])
    p = migraphx.program()
    m = p.get_main_module()
    op = lambda name, inputs, **attributes: m.add_instruction(migraphx.op(name, **attributes), inputs)
    lens, weights, how, out = HALVES[what]
    x, w = (rng.standard_normal(lens).astype(np.float16), (rng.standard_normal(weights) / 8).astype(np.float16))
    given = m.add_parameter("x", migraphx.shape(type="half_type", lens=lens))
    factor = m.add_parameter("w", migraphx.shape(type="half_type", lens=weights)) if what == "computed" else m.add_literal(w)
    y = op("dot" if out[-1] == weights[-1] and not how else "convolution", [given, factor], **how)
    y = op("convert", [op("relu", [y])], target_type="float_type")
    q = op("quantizelinear", [y, op("multibroadcast", [m.add_literal(np.array([0.03], np.float32))], out_lens=out)], out_type=f"{kind}_type")
    m.add_return([op("convert", [q], target_type="float_type") if kind[0] == "f" else q])
    exact, feed = p.clone(), {"x": x, "w": w} if what == "computed" else {"x": x}
    exact.compile(migraphx.get_target("ref"))
    p.compile(migraphx.get_target("gpu"), offload_copy=True)
    said, want = p.explain(), np.array(exact.run(feed)[0]).astype(np.float64)
    assert kind[0] == "f" or "pointwise" not in said, said

    def check(got):
        off = np.abs(got[0].astype(np.float64) - want)
        step = np.maximum(np.abs(want) / 8, 2**-6) if kind[0] == "f" else 1  # where half's last place decides
        assert np.all(off <= step) and np.mean(off > 0) < 0.03, (off.max(), np.mean(off > 0))
    repeated(lambda: [np.array(p.run(feed)[0])], check)
