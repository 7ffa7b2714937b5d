# SPDX-License-Identifier: MIT
"""Names are data in every text that is written: of a model's inputs in generated code, of files in log lines, of modules
that lie in the working folder."""
import os
import re
import subprocess

import onnx
import pytest
from onnx import TensorProto, helper

from test_debugging import DRIVER, drive

SENTINEL = '__import__("os").open("sentinel", 65)'
NAMES = ["x", 'x", migraphx.shape(type="float_type", lens=[2])); ' + SENTINEL + '; m.add_parameter("x', "a\nb", "a\\", "a\\\"", "'''",
         "a.b", "a_b", "a:b", "a_b_2", "héé", "\x1b[2J", "??/", "\"); system(\"touch sentinel\"); (\"", "\u202e", "%s%n"]


@pytest.fixture(name="model")
def make_model(tmp_path):
    """The sum of an input of each name."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in NAMES]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph([helper.make_node("Sum", NAMES, ["y"])], "g", ends, [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


class Recorder:
    """Stands for the module and all that it makes; remembers the names of inputs and the order of their uses."""

    def __init__(self):
        self.names = []

    def __getattr__(self, name):
        if name == "add_parameter":
            return lambda text, shape: self.names.append(text) or text
        if name == "add_instruction":
            return lambda op, args, modules=(): args
        return lambda *args, **kwargs: self


def leaves(value):
    return [value] if isinstance(value, str) else [x for item in value for x in leaves(item)]


def test_generated_python_calls_every_input_by_its_name(model):
    text = drive("read", model, "--py").stdout
    recorder, result = Recorder(), []
    scope = {"migraphx": recorder}
    os.chdir(model.parent)
    exec(re.sub(r"m\.add_return\((.*)\)", r"result.append(\1)", text), scope | {"result": result})
    assert sorted(recorder.names) == sorted(NAMES)
    assert sorted(leaves(result)) == sorted(NAMES)  # each variable is one input
    assert not os.path.exists("sentinel")


def test_generated_cpp_holds_names_in_strings(model, tmp_path):
    """A compiler reads the strings; each variable is declared once."""
    text = drive("read", model, "--cpp").stdout
    literals = re.findall(r'add_parameter\(("(?:[^"\\\n]|\\.)*"), migraphx', text)
    assert len(literals) == len(NAMES)
    variables = re.findall(r"^auto (\w+) = ", text, re.MULTILINE)
    assert len(set(variables)) == len(variables)
    assert all(re.match(r"(auto|migraphx|mmain)\b", line) for line in text.splitlines() if line)
    program = "#include <stdio.h>\nint main(void) {\n" + "\n".join(f"fwrite({x}, sizeof {x}, 1, stdout);" for x in literals) + "}\n"
    (tmp_path / "names.c").write_text(program)
    try:
        subprocess.run(["cc", "-std=c17", "-o", tmp_path / "names", tmp_path / "names.c"], check=True)
    except FileNotFoundError:
        pytest.skip("no compiler")
    said = subprocess.run([tmp_path / "names"], capture_output=True, check=True).stdout.split(b"\0")[:-1]
    assert sorted(said) == sorted(name.encode() for name in NAMES)


@pytest.mark.parametrize("name", ["a\nb [ERROR] forged.onnx", "\x1b[31mred.onnx", "\u009b31m.onnx"])
def test_a_file_named_oddly_is_one_line_of_the_log(name, tmp_path):
    said = subprocess.run([DRIVER, "read", tmp_path / name], capture_output=True, text=True, check=False).stderr
    lines = said.split("\n")[:-1]
    assert lines and all(re.match(r"(\d{4}-\d\d-\d\d .*)?\[[A-Z]+\] |  in ", line) for line in lines), said
    assert not any(line.startswith("b [ERROR]") for line in lines), said
    assert "\x1b" not in said and "\u009b" not in said


def test_reading_a_script_runs_nothing_of_the_working_folder(tmp_path):
    module = os.environ.get("MODULE")
    if not module:
        pytest.skip("no Python module")
    work, scripts, bin_ = tmp_path / "work", tmp_path / "scripts", tmp_path / "bin"
    for folder in (work, scripts, bin_):
        folder.mkdir()
    for name in ("migraphx", "runpy", "os", "helper"):
        (work / f"{name}.py").write_text("open('sentinel', 'w')\n")
    (scripts / "helper.py").write_text("import migraphx\np = migraphx.program()\n")
    (scripts / "x.py").write_text("from helper import p\nm = p.get_main_module()\n"
                                  "m.add_return([m.add_parameter('x', __import__('migraphx').shape(lens=[2], type='float'))])\n")
    (bin_ / "python3").symlink_to(os.environ["PYTHON"])
    done = subprocess.run([DRIVER, "read", scripts / "x.py"], cwd=work, capture_output=True, text=True, check=False,
                          env=dict(os.environ, PYTHONPATH=module, PATH=f"{bin_}:{os.environ['PATH']}"))
    assert done.returncode == 0 and "@param:x" in done.stdout, done.stderr
    assert not (work / "sentinel").exists()
