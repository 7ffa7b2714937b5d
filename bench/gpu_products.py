#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Products of transformers on a card: our tiles beside the library of the card's vendor, by the tuner's own contest.

    PYTHONPATH=build/python python3 bench/gpu_products.py [--types half float tf32] [--seconds 120] [--json products.json]

Every line is a program of one product with what follows it in BERT-base (128 tokens, batch 1, 32 and 128) and ViT-B/16 (batch 1 and
32), compiled with exhaustive_tune; the times are those that the plan tells, a launch's share of a graph of twenty with weights in turn. The
result is compared with numpy in double precision: relative RMS. Nothing is begun after --seconds. The library is found as any other
is (LD_LIBRARY_PATH); without one there are no times to show.
"""
import argparse
import json
import math
import re
import time

import migraphx
import numpy as np

LAYERS = [(768, 2304, ["bias"]), (768, 768, ["bias", "add"]), (768, 3072, ["bias", "gelu"]), (3072, 768, ["bias", "add"])]
ROWS = [128, 197, 128 * 32, 197 * 32, 128 * 128]
CASES = [(rows, k, n, tail) for rows in ROWS for k, n, tail in LAYERS] + [(4096, 768, 3072, ["bias", "gelu_tanh"]), (4096, 768, 3072, []), (128, 768, 768, [])]
SHOWN = 64  # rows that are compared


def follow(m, name, y, lens, rng, dtype):
    """One more instruction, its operand for the rows that are compared, and what it does to them."""
    if name == "bias":
        x = rng.standard_normal(lens[1], np.float32).astype(dtype)
        return m.add_instruction(migraphx.op("add"), [y, m.add_instruction(migraphx.op("multibroadcast", out_lens=lens), [m.add_literal(x)])]), None, lambda z: z + x
    if name == "add":
        x = rng.standard_normal(lens, np.float32).astype(dtype)
        return m.add_instruction(migraphx.op("add"), [y, m.add_parameter("r", migraphx.shape(type="half_type" if dtype is np.float16 else "float_type", lens=lens))]), x, lambda z: z + x[:SHOWN]
    fn = {"gelu": np.vectorize(lambda z: 0.5 * z * (1 + math.erf(z / math.sqrt(2)))),
          "gelu_tanh": lambda z: 0.5 * z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))}[name]
    return m.add_instruction(migraphx.op(name), [y]), None, fn


def measure(rows, k, n, tail, kind):
    rng = np.random.default_rng([rows, k, n])
    dtype = np.float16 if kind == "half" else np.float32
    p = migraphx.program()
    m = p.get_main_module()
    x = rng.standard_normal((rows, k), np.float32).astype(dtype)
    w = (rng.standard_normal((k, n), np.float32) / np.sqrt(k)).astype(dtype)
    feeds = {"x": x}
    y = m.add_instruction(migraphx.op("dot"), [m.add_parameter("x", migraphx.shape(type="half_type" if kind == "half" else "float_type", lens=[rows, k])), m.add_literal(w)])
    want = x[:SHOWN].astype(np.float64) @ w.astype(np.float64)
    for name in tail:
        y, more, fn = follow(m, name, y, [rows, n], rng, dtype)
        want = fn(want)
        if more is not None:
            feeds["r"] = more
    m.add_return([y])
    p.compile(migraphx.get_target("gpu"), offload_copy=True, exhaustive_tune=True, tf32=kind == "tf32")
    text = p.explain()
    step = next(line for line in text.splitlines() if ": gpu::" in line and ("dot" in line or "group" in line))
    got = np.array(p.run(feeds)[0])[:SHOWN].astype(np.float64)
    row = {"card": re.search(r"device: \w+ ([^,]*)", text)[1], "rows": rows, "k": k, "n": n, "tail": tail, "type": kind,
           "error": float(np.sqrt(np.mean((got - want) ** 2) / np.mean(want**2))), "taken": re.search(r": (gpu::\w+)", step)[1]}
    found = re.search(r"own (.*?) ([\d.]+) us, ((?:cublaslt|hipblaslt|rocblas) .*?) ([\d.]+) us", step)
    if found:
        row |= {"own": found[1], "own_us": float(found[2]), "library": found[3], "library_us": float(found[4])}
    else:
        row["step"] = step
    return row


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--types", nargs="+", default=["half"], choices=["half", "float", "tf32"])
    a.add_argument("--seconds", type=float, default=300)
    a.add_argument("--json")
    o = a.parse_args()
    begin, rows = time.time(), []
    for kind in o.types:
        for case in CASES:
            if time.time() - begin > o.seconds:
                break
            r = measure(*case, kind)
            rows.append(r)
            times = f"{r['own_us']:8.2f} {r['library_us']:8.2f} {r['library_us'] / r['own_us']:5.2f}" if "own" in r else r["step"]
            print(f"{kind:5} {r['rows']:6} x {r['k']:4} x {r['n']:4} {' '.join(r['tail']):12} {times} {r['taken']} {r['error']:.1e}", flush=True)
            if o.json:
                json.dump(rows, open(o.json, "w"), indent=1)


if __name__ == "__main__":
    main()
