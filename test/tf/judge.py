# SPDX-License-Identifier: MIT
"""Runs cases that make.py wrote and compares with TensorFlow's results.

    judge.py --build BUILD --target cpu [--saved DIR] FILE.npz|DIR ...

DIR of --saved is what make_saved.py wrote. An operators.txt in a folder says which operators its graphs hold; where
there are any, each operator that is supported must be in one.

The tolerance is that of float arithmetic over a few hundred terms; halves have theirs; integers, truth and lengths
must be equal."""
import argparse
import ctypes
import glob
import os
import sys

import numpy as np

LIBC, M_PERTURB = ctypes.CDLL(None), -6
TOLERANCE = {"bfloat16": 2e-2, "float16": 4e-3, "float32": 3e-5, "float64": 3e-5}


def load(paths):
    """{case: {entry: array}}"""
    cases = {}
    for path in paths:
        for file in sorted(glob.glob(os.path.join(path, "*.npz"))) if os.path.isdir(path) else [path]:
            with np.load(file) as data:
                for key in data.files:
                    name, entry = key.rsplit("/", 1)
                    cases.setdefault(name, {})[entry] = data[key]
    return cases


def disagreement(got, want):
    """None, or what differs. Files hold bfloat16 as float32."""
    if got.shape != want.shape:
        return f"lengths {got.shape}, expected {want.shape}"
    kind = got.dtype.name
    got = numbers(got)
    if got.dtype != want.dtype:
        return f"type {got.dtype}, expected {want.dtype}"
    if want.dtype.kind != "f":
        return None if np.array_equal(got, want) else f"{got.ravel()[:8]}, expected {want.ravel()[:8]}"
    tolerance = TOLERANCE[kind]
    got, want = got.astype(np.float64), want.astype(np.float64)
    scale = max(1.0, np.abs(want[np.isfinite(want)]).max(initial=0))
    if np.allclose(got, want, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
        return None
    return f"largest difference {np.nanmax(np.abs(got - want)):g} at a scale of {scale:g}"


def numbers(x):
    """numpy's files know no bfloat16."""
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


def run_again(p, inputs):
    """Results of a run, which two more give to the bit, with other bytes in freed memory each time: no operator here is random."""
    rounds = []
    for byte in (0x5A, 0xA5, 0x7F):
        disturb(byte)
        rounds.append([np.array(y) for y in p.run(inputs)])
    for k, again in enumerate(rounds[1:], 2):
        if [y.tobytes() for y in again] != [y.tobytes() for y in rounds[0]]:
            raise RuntimeError(f"run {k} gives another result than the first")
    return rounds[0]


def disturb(byte):
    """glibc writes a byte over what is freed, and another over what is handed out."""
    if hasattr(LIBC, "mallopt"):
        LIBC.mallopt(M_PERTURB, byte)


def run(migraphx, case, target, folder):
    path = os.path.join(folder, "case.pb")
    with open(path, "wb") as file:
        file.write(case["graph"].tobytes())
    outputs = [str(name) for name in case["outputs"]]
    p = migraphx.parse_tf(path, is_nhwc=False, output_names=outputs)
    p.compile(migraphx.get_target(target))
    shapes = p.get_parameter_shapes()
    inputs = {name: case[name] for name in shapes}
    given = {k: np.ascontiguousarray(v) for k, v in inputs.items()}
    return run_again(p, {k: migraphx.argument(v) for k, v in given.items()})


def judge(migraphx, case, target, folder):
    """None, or why the case fails."""
    try:
        got = run(migraphx, case, target, folder)
    except RuntimeError as error:
        return str(error).replace("\n", " ")[:300]
    for i, y in enumerate(got):
        why = disagreement(y, case[f"y{i}"])
        if why:
            return f"result {i}: {why}"
    return None if f"y{len(got)}" not in case else f"{len(got)} results are too few"


def judge_saved(migraphx, folder, target):
    """{model: None, or why it fails}"""
    with np.load(os.path.join(folder, "results.npz")) as data:
        results = {key: data[key] for key in data.files}
    whys = {}
    for model in sorted({key.split("/")[0] for key in results}):
        want = {k.split("/")[1]: v for k, v in results.items() if k.startswith(model + "/")}
        try:
            p = migraphx.parse_tf(os.path.join(folder, model), is_nhwc=False)
            p.compile(migraphx.get_target(target))
            got = run_again(p, {k: migraphx.argument(want.pop(k)) for k in p.get_parameter_names()})
        except RuntimeError as error:
            whys[model] = str(error).replace("\n", " ")[:300]
            continue
        got = dict(zip(p.get_output_names(), [np.array(y) for y in got]))
        wrong = [f"{k}: {disagreement(got[k], want[k])}" for k in got if disagreement(got[k], want[k])]
        whys[model] = "; ".join(wrong) if set(got) == set(want) else f"results {sorted(got)}, expected {sorted(want)}"
    return {model: why or None for model, why in whys.items()}


def uncovered(migraphx, folders):
    """Operators that no graph of these folders holds."""
    lists = [os.path.join(folder, "operators.txt") for folder in folders]
    found = [set(open(path).read().split()) for path in lists if os.path.exists(path)]
    return sorted(set(migraphx.get_tf_operators()) - set().union(*found)) if found else []


def main():
    import tempfile
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--only", default="")
    parser.add_argument("--saved", default="")
    parser.add_argument("paths", nargs="+")
    args = parser.parse_args()
    sys.path.insert(0, os.path.join(args.build, "python"))
    import migraphx
    cases = {k: v for k, v in load(args.paths).items() if args.only in k}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, case in sorted(cases.items()):
            why = judge(migraphx, case, args.target, folder)
            failed += why is not None
            if why:
                print(f"{name}: {why}")
    saved = judge_saved(migraphx, args.saved, args.target) if args.saved else {}
    for name, why in saved.items():
        failed += why is not None
        if why:
            print(f"SavedModel {name}: {why}")
    total = len(cases) + len(saved)
    print(f"all {total} cases on {args.target}: {total - failed} right, {failed} wrong")
    missing = uncovered(migraphx, args.paths + [args.saved])
    if missing:
        print(f"{len(missing)} operators are in no case: {' '.join(missing)}")
    return 1 if failed or missing or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
