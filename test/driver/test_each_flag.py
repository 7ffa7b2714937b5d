# SPDX-License-Identifier: MIT
"""What each flag of the driver changes, seen from outside: in the text it prints, the files it leaves, the numbers that
numpy expects, or the error it gives. covered.py holds that no flag is without such a test."""
import json
import os
import re
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from test_debugging import DRIVER, drive, make_folder, relu, softmax  # noqa: F401

ROWS, DEPTH, COLUMNS = 3, 64, 32


def save_model(path, nodes, inputs, outputs, weights=()):
    infos = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in ends] for ends in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *infos, [numpy_helper.from_array(w, n) for n, w in weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


@pytest.fixture(name="layers")
def make_layers(tmp_path):
    """Two products with weights and a bias, whose first input has an outlier column."""
    rng = np.random.default_rng(5)
    w, v = rng.standard_normal((DEPTH, COLUMNS)).astype("f4"), rng.standard_normal((COLUMNS, 4)).astype("f4")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], name="first"), helper.make_node("Add", ["m", "b"], ["s"]),
             helper.make_node("Relu", ["s"], ["r"]), helper.make_node("MatMul", ["r", "v"], ["y"], name="second")]
    path = save_model(tmp_path / "layers.onnx", nodes, [("x", [ROWS, DEPTH])], [("y", [ROWS, 4])],
                      [("w", w), ("v", v), ("b", np.ones(COLUMNS, "f4"))])
    samples = tmp_path / "samples"
    samples.mkdir()
    for i in range(32):
        x = rng.standard_normal((ROWS, DEPTH)).astype("f4") + 2
        x[:, 3] *= 50
        np.savez(samples / f"{i}.npz", x=x)
    return path


def compiled(*words, **more):
    return drive("compile", "--ref", *words, **more).stdout


# --- what to load ---

def test_the_kind_of_file_can_be_said(folder):
    program = drive("read", folder / "model.onnx").stdout
    (folder / "a.bin").write_bytes((folder / "model.onnx").read_bytes())
    assert drive("read", "--onnx", folder / "a.bin").stdout == program
    assert drive("read", folder / "a.bin").stdout == program # begins like one
    (folder / "b.bin").write_bytes(b"\xd9\x00\xff")
    assert "not a saved program: msgpack" in drive("read", folder / "b.bin", code=1).stderr
    for flag, form in ("--migraphx", "--binary"), ("--migraphx-json", "--json"), ("--migraphx-text", "--text"):
        drive("read", folder / "model.onnx", form, "-o", folder / "b.onnx")
        assert drive("read", flag, folder / "b.onnx").stdout == program
    assert drive("read", folder / "model.onnx", "--text").stdout == program
    assert drive("params", "--tf", "../tf/saved/v2", "--nhwc", "--input-dim", "@image", "3", "4", "4", "2").stdout.startswith("image: float_type, {3, 2, 4, 4}")


def test_unknown_operators_can_be_skipped(tmp_path):
    path = save_model(tmp_path / "m.onnx", [helper.make_node("Abacus", ["x"], ["y"])], [("x", [2])], [("y", [2])])
    assert "Abacus" in drive("read", path, code=1).stderr
    assert re.search(r"unknown.*Abacus.*\(x\)", drive("read", path, "--skip-unknown-operators").stdout)


def test_node_names_are_printed_when_asked_for(folder):
    assert "product" not in drive("read", folder / "model.onnx").stdout
    assert re.search(r"= dot\(.*# .*product", drive("read", folder / "model.onnx", "--debug-symbols").stdout)


def test_open_dimensions(tmp_path):
    path = save_model(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", ["N", 8])], [("y", ["N", 8])])

    def shape(*words):
        return drive("params", path, *words).stdout.strip()
    assert shape() == "x: float_type, {1, 8}, {8, 1}"
    assert re.match(r"x: dynamic, float_type, \{.*\.\..*, 8\}", shape("--dynamic-dims"))
    assert shape("--default-dyn-dim", "{min:2,max:5}") == "x: dynamic, float_type, {[2..5], 8}"
    assert shape("--dyn-input-dim", "@x", "[{min:1,max:4,optimals:[2]},8]") == "x: dynamic, float_type, {[1..4], 8}"


def test_programs_are_simplified_when_asked_for(tmp_path):
    nodes = [helper.make_node("Transpose", ["x"], ["a"], perm=[1, 0]), helper.make_node("Transpose", ["a"], ["b"], perm=[1, 0]),
             helper.make_node("Relu", ["b"], ["y"])]
    path = save_model(tmp_path / "m.onnx", nodes, [("x", [2, 3])], [("y", [2, 3])])
    assert drive("read", path).stdout.count("transpose") == 2
    for flag in "-O", "--optimize":
        assert "transpose" not in drive("read", path, flag).stdout
    assert "changes nothing" in drive("read", path, "--mlir").stderr


# --- how to compile ---

def test_filled_inputs(folder):
    x, b = np.zeros((3, 8), "f4"), np.ones((3, 5), "f4")
    np.save(folder / "y.npy", softmax(relu(x @ np.zeros((8, 5), "f4")), 1) + b)
    words = ["verify", folder / "model.onnx", "--expect", folder / "y.npy"]
    drive(*words, "--fill0", "x", "--fill1", "b")
    drive(*words, "--fill0", "x", "b", code=1)


@pytest.mark.parametrize("flag", ["--enable-offload-copy", "--disable-fast-math", "--tf32"])
def test_the_answer_stays(folder, flag):
    drive("verify", folder / "model.onnx", flag, "--load-arg", "@x", folder / "in0.npz", "@b", folder / "in0.npz", "--expect", folder / "y0.npy")


def test_what_a_run_may_hold(tmp_path):
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["x", "t"], ["y"])]
    path = save_model(tmp_path / "m.onnx", nodes, [("x", [900, 4])], [("y", [900, 900])])
    assert "may hold 1048576 bytes" in drive("run", path, "--run-memory", 1, code=1).stderr
    drive("run", path, "--run-memory", 64)


def test_a_library_for_products(folder):
    words = ["verify", folder / "model.onnx", "--load-arg", "@x", folder / "in0.npz", "@b", folder / "in0.npz", "--expect", folder / "y0.npy"]
    drive(*words, "--gemm-provider", "own")


def test_tuning(layers, tmp_path):
    cache = tmp_path / "cache"
    words = ["compile", "--cpu", "--explain", "--tuning-cache", cache, layers]
    assert "tuning" in drive(*words, "--tuning-strict", code=1).stderr
    tuned = drive(*words, "--exhaustive-tune").stdout
    assert int(re.search(r"tuned: (\d+) steps", tuned).group(1)) > 0 and cache.exists()
    assert re.search(r"tuned: \d+ steps, 0 problems measured", drive(*words, "--tuning-strict").stdout)
    late = drive("compile", "--cpu", "--exhaustive-tune", "--tuning-seconds", "0.000001", layers)
    assert "the time for tuning was spent" in late.stderr


@pytest.mark.parametrize("flag, kind", [("--fp16", "half_type"), ("--bf16", "bf16_type"), ("--int8", "int8_type"), ("--fp8", "fp8e4m3fn_type"),
                                        ("--int4-weights", "int4")])
def test_narrow_types(layers, flag, kind):
    assert kind not in compiled(layers)
    assert kind in compiled(layers, flag)


def test_blocks_of_4_bits(layers):
    """Scales for blocks of rows: 64 rows of 32 columns have 4 by 32, or 2 by 32."""
    assert "{4, 32}" in compiled(layers, "--int4-weights", "--int4-block", 16)
    assert "{4, 32}" not in compiled(layers, "--int4-weights", "--int4-block", 32)


def test_how_integers_are_found(layers, tmp_path):
    """Every way gives another program, and none an answer that is far off."""
    samples = ["--int8", "--calibration", tmp_path / "samples"]
    ways = [[], ["--asymmetric"], ["--per-tensor"], ["--smooth"], ["--correct-bias"], ["--calibration-method", "entropy"],
            ["--calibration-method", "percentile", "--percentile", "90"], ["--calibration-method", "percentile", "--percentile", "99.9"]]
    texts = [compiled(layers, *samples, *way) for way in ways]
    for i, text in enumerate(texts):
        assert text not in texts[:i], f"{ways[i]} gives what another way gives"
    # What enters the first layer has both signs, what enters the second went through ReLU.
    kinds = [re.findall(r"= quantizelinear\[[^]]*\]\([^)]*\) -> (u?int8)_type", text) for text in texts[:2]]
    assert kinds == [["int8", "uint8"], ["uint8", "uint8"]]


PILLOW = """
class Image:
    BILINEAR = 2

    def __init__(self, rows):
        self.rows = rows
    __enter__ = lambda self: self
    __exit__ = lambda self, *error: None

    @staticmethod
    def open(name):
        with open(name) as f:
            return Image([[int(v) for v in line.split()] for line in f])

    def convert(self, mode):
        assert mode == "RGB"
        return self

    def resize(self, size, way):
        assert size == (3, 2) and way == Image.BILINEAR
        return self

    def tobytes(self):
        return bytes(v for row in self.rows for v in row)


class ImageOps:
    exif_transpose = staticmethod(lambda image: image)
"""


@pytest.mark.parametrize("last", [False, True])
def test_images_are_samples(tmp_path, last):
    """Text files in the place of images, read by a stand-in for Pillow, and the same as arrays."""
    rng = np.random.default_rng(2)
    (tmp_path / "PIL.py").write_text(PILLOW)
    shape = [2, 2, 3, 3] if last else [2, 3, 2, 3]
    nodes = [helper.make_node("Reshape", ["x", "to"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["y"])]
    path = save_model(tmp_path / "m.onnx", nodes, [("x", shape)], [("y", [2, 4])],
                      [("w", rng.standard_normal((18, 4)).astype("f4")), ("to", np.array([2, 18]))])
    ways = {"plain": ([], 1 / 255, 0, 1), "imagenet": (["--image-mean", ".485", ".456", ".406", "--image-std", ".229", ".224", ".225"],
                                                      1 / 255, [.485, .456, .406], [.229, .224, .225]),
            "scaled": (["--image-scale", "2", "--image-mean", "7", "--image-std", "4"], 2, 7, 4), "bgr": (["--image-bgr", "--image-mean", "0", "1", "2"], 1 / 255, [0, 1, 2], 1)}
    images, arrays = tmp_path / "images", tmp_path / "arrays"
    (images / "class").mkdir(parents=True)
    pixels = rng.integers(0, 256, (5, 2, 3, 3))
    for i, image in enumerate(pixels):
        np.savetxt(images / ("class" if i % 2 else ".") / f"{i}.JPG", image.reshape(2, 9), "%d")
    for name, (words, scale, mean, deviation) in ways.items():
        (arrays / name).mkdir(parents=True)
        for i, image in enumerate(pixels):
            x = ((image[..., ::-1] if name == "bgr" else image) * scale - mean) / deviation
            np.savez(arrays / name / f"{i}.npz", x=np.stack([x if last else x.transpose(2, 0, 1)] * 2).astype("f4"))
        ranges = []
        for folder, more in (images, words), (arrays / name, []):
            drive("quantize", path, "--reckon-time", "--calibration", folder, *more, "--save-ranges", tmp_path / "ranges", PYTHONPATH=str(tmp_path))
            ranges.append((tmp_path / "ranges").read_text())
        assert ranges[0] == ranges[1], name
    (images / "6.png").write_text("not numbers")
    done = drive("quantize", path, "--calibration", images, code=1, PYTHONPATH=str(tmp_path))
    assert "6.png: no image that Pillow reads" in done.stderr and "could not be read" in done.stderr
    for words, text in ((["--image-mean", "1", "2"], "one number or 3"), (["--image-std", "0"], "above 0, not '0'"), (["--image-mean", "x"], "not 'x'")):
        assert text in drive("quantize", path, "--calibration", images, *words, code=1, PYTHONPATH=str(tmp_path)).stderr
    (tmp_path / "PIL.py").write_text("raise ImportError('none here')")
    assert "pip install pillow" in drive("quantize", path, "--calibration", images, code=1, PYTHONPATH=str(tmp_path)).stderr


def test_what_is_no_sample_is_said(layers, tmp_path):
    (tmp_path / "empty").mkdir()
    done = drive("quantize", layers, "--calibration", tmp_path / "empty", code=1)
    assert "there is no sample in" in done.stderr and ".npz, .npy or .pb, images (.jpg, .png, ...)" in done.stderr
    (tmp_path / "a.jpg").write_bytes(b"")
    assert "1, 3 or 4 channels, and 'x' is none" in drive("quantize", layers, "--calibration", tmp_path / "a.jpg", code=1).stderr
    (tmp_path / "notes.txt").write_text("")
    assert "samples are folders, or files" in drive("quantize", layers, "--calibration", tmp_path / "notes.txt", code=1).stderr


def test_budgets(layers, tmp_path):
    words = ["quantize", layers, "--calibration", tmp_path / "samples", "--reckon-time", "--budget"]
    assert "2 of 2 products" in drive(*words, "0.9").stdout
    assert "0 of 2 products" in drive(*words, "1e-9").stdout
    assert "top error" in drive(*words, "0.9", "--metric", "top").stdout


def test_quantize_for_scripts(layers, tmp_path):
    words = ["quantize", layers, "--calibration", tmp_path / "samples", "--reckon-time", "--budget", "0.9"]
    found = json.loads(drive(*words, "--json").stdout)
    assert [row["instruction"] for row in found["products"]] == ["main:dot:0", "main:dot:1"]
    assert all(row["type"] == "int8_type" and row["error"] > 0 and row["gain_us"] >= 0 for row in found["products"])
    assert "first (MatMul)" in found["products"][0]["note"] and found["summary"].startswith("2 of 2 products in int8_type")
    drive(*words, "--output", tmp_path / "q.mxr")
    found = json.loads(drive(*words[:4], "--check", tmp_path / "q.mxr", "--json").stdout)
    assert found["budget"] == {"metric": "relative", "allowed": 0.9, "within": True} and 0 < found["relative_error"] < 0.9
    saved = drive(*words, "--json", "--output", tmp_path / "q.json").stdout # the form of the file
    assert saved.startswith("instruction") and "modules" in json.loads((tmp_path / "q.json").read_text())


# --- what is printed ---

def test_logs_and_traces(folder, tmp_path):
    drive("run", "--cpu", folder / "model.onnx", "--log-file", tmp_path / "a", tmp_path / "b")
    assert "Running [" in (tmp_path / "a").read_text() and (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    words = ["compile", "--cpu", folder / "model.onnx", "-o", tmp_path / "m.mxr"]
    said = {flag: (lambda done: done.stdout + done.stderr)(drive(*words, flag)) for flag in ("--time-passes", "--trace-passes", "--trace-compile")}
    assert re.search(r"^find_softmax: [\d.e-]+ms$", said["--time-passes"], re.M)
    assert "Pass: dead_code_elimination" in said["--trace-passes"]
    assert said["--trace-compile"].count('module: "main"') == 2


def test_ways_to_verify(folder):
    words = ["verify", "--cpu", folder / "model.onnx"]
    for flag in "-r", "--reduce":
        assert "Trimmed by 3: passed" in drive(*words, flag).stderr
    drive(*words, "--ref-use-double")
    assert "rtol: 0.25" in drive(*words, "--rtol", "0.25", "--log-level", "info").stderr
    assert re.search(r"^RMS Error: [\d.e-]+ of 0.001 allowed, Max diff: [\d.e-]+\nMIGraphX verification passed successfully.$", drive(*words).stderr)
    assert drive(*words).stdout == "" and drive(*words, "--print").stdout.startswith('module: "main"')


def test_tolerance_of_bytes(tmp_path):
    """Where values become bytes on their way, half a step decides which one, and its step is seen in the results."""
    nodes = [onnx.helper.make_node("QuantizeLinear", ["x", "s"], ["q"]), onnx.helper.make_node("DequantizeLinear", ["q", "s"], ["y"])]
    x, y = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2, 3]) for n in "xy")
    graph = onnx.helper.make_graph(nodes, "bytes", [x], [y], [onnx.helper.make_tensor("s", onnx.TensorProto.FLOAT, [], [0.1])])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), tmp_path / "q.onnx")
    assert "of 0.08 allowed" in drive("verify", "--cpu", tmp_path / "q.onnx").stderr


def test_lists():
    for flag in "-l", "--list":
        assert "relu" in drive("op", flag).stdout.split()
        assert "Relu" in drive("onnx", flag).stdout.split() and "Relu" in drive("tf", flag).stdout.split()


def test_detailed_groups(folder):
    for flag in "-d", "--detailed":
        assert re.search(r"^softmax.*<float_type, \{3, 5\}", drive("perf", "--ref", "-n", 2, folder / "model.onnx", flag).stdout, re.M)


# --- the command lines that MIGraphX's guides print, and what they show ---

@pytest.fixture(name="guide")
def make_guide(tmp_path):
    """A network in a file of the guides' name, with an input of theirs."""
    rng = np.random.default_rng(9)
    nodes = [helper.make_node("Conv", ["input", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("GlobalAveragePool", ["r"], ["p"]), helper.make_node("Flatten", ["p"], ["y"])]
    save_model(tmp_path / "resnet50.onnx", nodes, [("input", ["N", 3, "H", "W"])], [("y", ["N", 4])],
               [("w", rng.standard_normal((4, 3, 3, 3)).astype("f4"))])
    return tmp_path


NUMBER = r"-?[\d.]+(?:e[+-]?\d+)?"
REPORT = rf"""Batch size: (\d+)
Rate: {NUMBER} inferences/sec
Total time: {NUMBER}ms \(Min: {NUMBER}ms, Max: {NUMBER}ms, Mean: {NUMBER}ms, Median: {NUMBER}ms\)
Percentiles \(90%, 95%, 99%\): \({NUMBER}ms, {NUMBER}ms, {NUMBER}ms\)
Total instructions time: {NUMBER}ms
Overhead time: {NUMBER}ms, {NUMBER}ms
Overhead: -?\d+%, -?\d+%
"""


def in_folder(folder, line, code=0):
    """A command line as it is printed."""
    done = subprocess.run(line.split(), executable=DRIVER, cwd=folder, env=dict(os.environ, MIGRAPHX_LOG_LEVEL="info"), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == code, done.stderr
    return done


def test_perf_as_the_guide_shows_it(guide):
    for line, batch in ("migraphx-driver perf --enable-offload-copy --fp16 --onnx ./resnet50.onnx --batch 2 --input-dim @input 2 3 8 8", 2), \
            ("migraphx-driver perf --enable-offload-copy --input-dim @input 64 3 224 224 --fp16 --onnx ./resnet50.onnx -n 2", 64):
        done = in_folder(guide, line)
        assert "Allocating params ..." in done.stderr and "Running performance report ..." in done.stderr
        graph, summary = done.stdout.split("Summary:\n")
        assert re.search(rf"^main:@\d+ = .* -> .*: {NUMBER}ms, \d+%$", graph, re.M)
        assert re.search(rf"^convolution\S*: {NUMBER}ms / 1 = {NUMBER}ms, \d+%$", summary, re.M)
        found = re.search(REPORT, summary)
        assert found and int(found.group(1)) == batch


def test_other_lines_of_the_guides(guide):
    assert {"Conv", "Relu", "Gemm"} <= set(in_folder(guide, "migraphx-driver onnx -l").stdout.split())
    done = in_folder(guide, "migraphx-driver --version")
    assert re.search(r"MIGraphX Version: \d+\.\d+\.\d+", done.stdout + done.stderr)
    in_folder(guide, "migraphx-driver compile --onnx resnet50.onnx --enable-offload-copy --binary --output resnet50.mxr")
    text = in_folder(guide, "migraphx-driver run --migraphx resnet50.mxr --enable-offload-copy").stdout
    assert 'module: "main"' in text and "input = @param:input" in text
