# SPDX-License-Identifier: MIT
"""The gate (bench/gate.py): what is planted in a record is named when the build is compared with it, and a note explains it."""
import os
import subprocess
import sys

import migraphx
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")
BUILD = os.path.abspath(os.path.join(os.path.dirname(migraphx.__file__), ".."))
sys.path[:0] = [os.path.join(BENCH, "gate")]

import compare  # noqa: E402
import models  # noqa: E402
import record  # noqa: E402

MODELS = ["draw/mixer_01", "draw/conv_07", "int8/own_conv_2"]


def gate(folder, *words):
    command = [sys.executable, os.path.join(BENCH, "gate.py"), "--build", BUILD, "--record", str(folder), "--seconds", "0.05", "--models", *MODELS, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def moved(printed):
    """{(model, figure)} of what the gate named. Compile time and memory are left out: under a sanitizer they are what they are."""
    found = {tuple(line.split()[:2]) for line in printed.splitlines() if line.startswith(tuple(MODELS))}
    return {f for f in found if f[1] not in ("compile", "peak")}


def planted(rows):
    """The record of a build that was three times as fast, had other results, and a kernel where this one has not."""
    rows[MODELS[0]]["run"] = [rows[MODELS[0]]["run"][0] / 9, 0.01]
    rows[MODELS[1]].update(bits="0123456789abcdef", error=[3e-9, 4e-9], apart=[1e-3, 1e-3])
    plan = rows[MODELS[2]]["plan"]
    kind = next(k for k in sorted(plan["kinds"]) if k.startswith("conv"))
    plan["kinds"]["ref (reference)" + kind[kind.index(" | "):]] = plan["kinds"].pop(kind)
    plan["digest"] = "0123456789abcdef"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("record")
    code, printed = gate(where, "--write", "--processes", "1")
    assert code == 0 and "3 models in" in printed, printed
    return where


def test_an_equal_build_passes(folder):
    code, printed = gate(folder, "--no-times")
    assert code == 0 and not moved(printed), printed


def test_three_plants_are_named_and_a_note_explains(folder, tmp_path):
    path = next(folder.glob("*.txt"))
    head, rows = record.read(path)
    planted(rows)
    record.write(tmp_path / path.name, head, rows)
    code, printed = gate(tmp_path, "--again", "1")
    named = {(MODELS[0], "run"), (MODELS[1], "bits"), (MODELS[1], "apart"), (MODELS[2], "plan")}
    assert code == 1 and named <= moved(printed), printed
    assert "+ 1 conv" in printed.replace("+ 2", "+ 1") and "ref (reference)" in printed, printed
    (tmp_path / "notes.md").write_text("- `draw/* int8/*` `*`: planted by a test\n", encoding="utf-8")
    code, printed = gate(tmp_path, "--again", "1")
    assert code == 0 and named <= moved(printed) and "explained: planted by a test" in printed, printed


def test_another_machine_compares_results_and_precision(folder, tmp_path):
    path = next(folder.glob("*.txt"))
    head, rows = record.read(path)
    planted(rows)
    head["processor"] = "another"
    record.write(tmp_path / path.name, head, rows)
    code, printed = gate(tmp_path)
    assert code == 1 and moved(printed) == {(MODELS[1], "apart"), (MODELS[2], "plan")}, printed


def test_a_record_is_read_as_written(folder, tmp_path):
    path = next(folder.glob("*.txt"))
    record.write(tmp_path / "again.txt", *record.read(path))
    assert (tmp_path / "again.txt").read_text("utf-8") == path.read_text("utf-8")


def test_noise_is_no_move():
    assert compare.measured("run", [1.0, 0.05], [1.25, 0.05]) is None
    assert compare.measured("run", [1.0, 0.01], [1.25, 0.01])
    assert compare.measured("run", [1.0, 0.0], [1.05, 0.0]) is None
    assert compare.measured("peak", [3.0, 0.0], [4.0, 0.0]) is None
    assert compare.error([1e-8, 1e-8], [9e-8, 9e-8]) is None
    assert compare.error([1e-7, 1e-7], [float("inf")] * 2)


def test_a_name_is_a_model():
    made = [models.drawn("draw/conv_00", models.FAMILIES["conv"][0]).model().SerializeToString() for _ in range(2)]
    assert made[0] == made[1] and len(models.names()) >= 120
