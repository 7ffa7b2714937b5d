# SPDX-License-Identifier: MIT
"""The stub says of every class, method, function and default what the module does."""
import ast
import inspect
import os
import subprocess
import sys

import migraphx
import pytest

PATH = os.path.join(os.path.dirname(migraphx.__file__), "migraphx.pyi")
with open(PATH, encoding="utf-8") as f:
    TREE = ast.parse(f.read())
CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")}
FUNCTIONS = {node.name: node for node in TREE.body if isinstance(node, ast.FunctionDef)}


def described(node):
    """Names, kinds and defaults of a function of the stub."""
    a = node.args
    named = [*a.posonlyargs, *a.args]
    defaults = [inspect.Parameter.empty] * (len(named) - len(a.defaults)) + [ast.literal_eval(d) for d in a.defaults]
    found = [(arg.arg, default) for arg, default in zip(named, defaults)]
    found += [(a.vararg.arg, inspect.Parameter.empty)] if a.vararg else []
    found += [(arg.arg, ast.literal_eval(d)) for arg, d in zip(a.kwonlyargs, a.kw_defaults)]
    found += [(a.kwarg.arg, inspect.Parameter.empty)] if a.kwarg else []
    return [pair for pair in found if pair[0] not in ("self", "cls")]


def real(function):
    return [(p.name, p.default) for p in inspect.signature(function).parameters.values() if p.name != "self"]


def test_names():
    public = {name for name, thing in vars(migraphx).items() if callable(thing) and not name.startswith("_")}
    assert public == set(CLASSES) | set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    assert described(FUNCTIONS[name]) == real(getattr(migraphx, name))


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name):
    cls, node = getattr(migraphx, name), CLASSES[name]
    methods = {m.name: m for m in node.body if isinstance(m, ast.FunctionDef)}
    members = {m for m in vars(cls) if not m.startswith("_")}
    stated = {m for m in methods if not m.startswith("_")} | {t.id for a in node.body if isinstance(a, ast.Assign) for t in a.targets}
    stated |= {a.target.id for a in node.body if isinstance(a, ast.AnnAssign)}
    assert members == stated
    for method, described_as in methods.items():
        if any(isinstance(d, ast.Name) and d.id == "property" for d in described_as.decorator_list):
            continue
        if method in ("__len__", "__getitem__", "__iter__", "__call__"):
            assert hasattr(cls, method)
            continue
        if method == "__new__" and sys.version_info < (3, 10):
            continue  # classes of the stable ABI have no signatures there
        got = real(cls if method == "__new__" else getattr(cls, method))
        assert [p if p != ("name", "") else p for p in described(described_as)] == got, method


@pytest.mark.parametrize("name", [n for n in dir(migraphx.shape.type_t) if n.endswith("_type")])
def test_types(name):
    enumeration = next(node for node in TREE.body if isinstance(node, ast.ClassDef) and node.name == "_type_t")
    assert name in {t.id for a in enumeration.body for t in a.targets}


USE = """
import migraphx
p = migraphx.parse_onnx(b"")
r = p.run({})
a: migraphx.argument = r[0]
b: migraphx.argument = r["y"]
c: list[migraphx.argument] = p(1, x=2)[:1]
d: tuple[int, ...] = a.shape
e: migraphx.shape = a.get_shape()
"""


def test_type_checker(tmp_path):
    pytest.importorskip("mypy")
    check = [sys.executable, "-m", "mypy", "--no-incremental", "--cache-dir", os.devnull]
    subprocess.run([*check, PATH], check=True)
    (tmp_path / "use.py").write_text(USE)
    subprocess.run([*check, "--strict", tmp_path / "use.py"], check=True, env=dict(os.environ, MYPYPATH=os.path.dirname(PATH)))
