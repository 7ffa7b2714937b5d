#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs and commands that documents show do run: documents.py SOURCE BUILD PAGE ...

Blocks marked sh, python and cpp run in the order of the page, in a folder with a small model.onnx, four pictures where
Pillow can make some, and what examples/ has in C. A block that needs a package or a C++ compiler that is not installed is
said and left out; so is one with `make` or with the prefix of a real installation in it.
"""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

NEEDS = {"pictures": "PIL", "import onnxruntime": "onnxruntime"}
ELSEWHERE = re.compile(r"^ *(make|pip|git|export|sudo) |/opt/", re.M)


def write_model(path):
    """An image of any batch to ten numbers: convolution, mean, product."""
    rng = np.random.default_rng(1)
    weights = {"filter": (8, 3, 7, 7), "matrix": (8, 10)}
    nodes = [helper.make_node("Conv", ["image", "filter"], ["a"], name="conv", strides=[4, 4]),
             helper.make_node("Relu", ["a"], ["b"], name="relu"),
             helper.make_node("GlobalAveragePool", ["b"], ["c"], name="mean"),
             helper.make_node("Flatten", ["c"], ["d"], name="flatten"),
             helper.make_node("MatMul", ["d", "matrix"], ["logits"], name="classes")]
    graph = helper.make_graph(
        nodes, "small", [helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, ["N", 3, 224, 224])],
        [helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) / 8, name)
         for name, shape in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_pictures(folder):
    from PIL import Image
    folder.mkdir()
    for i in range(4):
        pixels = np.random.default_rng(i).integers(0, 256, (60, 80, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{i}.jpg")


def prepare(work, source):
    write_model(work / "model.onnx")
    if importlib.util.find_spec("PIL"):
        write_pictures(work / "pictures")
    for file in ("custom_op.c", "example.h", "hello.c", "hello.cpp"):
        shutil.copy(source / "examples" / file, work)
    shutil.copytree(source / "examples" / "digits", work / "examples" / "digits")


def blocks(page):
    for match in re.finditer(r"^```(sh|python|cpp)\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
        yield match.group(1), match.group(2)


def command(kind, text, source, build):
    """The words that run a block, or None of one that is only a piece."""
    flags = f"-I{source}/include -L{build}/lib -Wl,-rpath,{build}/lib"
    if kind == "sh":
        text = text.replace("-IP/include -LP/lib -Wl,-rpath,P/lib", flags)
        return ["sh", "-euc", text]
    if kind == "python":
        return [sys.executable, "-B", "-W", "error", "-c", text]
    pathlib.Path("block.cpp").write_text(text, encoding="utf-8")
    return ["sh", "-euc", f"c++ -std=c++17 block.cpp {flags} -lmigraphx_c -o block; ./block"] if "int main" in text else None


def run(page, source, build):
    bad = count = 0
    for kind, text in blocks(page):
        missing = [name for word, name in NEEDS.items() if word in text and not importlib.util.find_spec(name)]
        if (kind == "cpp" or "c++ " in text) and not shutil.which("c++"):
            missing.append("c++")
        words = command(kind, text, source, build)
        if missing or words is None or ELSEWHERE.search(text):
            print(f"{page.name}: left out, {missing or 'not to be run here'}: {text.splitlines()[0]}")
            continue
        count += 1
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            bad += 1
            print(f"{page.name}: ended with {done.returncode}:\n{text}\n{done.stdout}")
    print(f"{page.name}: {count} blocks ran, {bad} failed")
    return bad or not count


def main():
    source, build = (pathlib.Path(arg).resolve() for arg in sys.argv[1:3])
    pages = [pathlib.Path(arg).resolve() for arg in sys.argv[3:]]
    os.environ["PATH"] = f"{build / 'bin'}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    os.environ["PYTHONPATH"] = str(build / "python")
    bad = False
    for page in pages:
        with tempfile.TemporaryDirectory() as work:
            os.chdir(work)
            prepare(pathlib.Path(work), source)
            bad |= bool(run(page, source, build))
            os.chdir(source)
    return bad


if __name__ == "__main__":
    sys.exit(main())
