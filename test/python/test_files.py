# SPDX-License-Identifier: MIT
"""Saved programs, read back by the module and by a decoder written here."""
import json
import os
import random
import re
import struct
import subprocess
import sys

import migraphx
import numpy as np
import onnx
import pytest


def make():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[2, 3]))
    w = m.add_literal(np.arange(300, dtype=np.float32).reshape(3, 100))
    b = m.add_literal(np.array(2, np.float32))
    y = m.add_instruction(migraphx.op("dot"), [x, w])
    b = m.add_instruction(migraphx.op("multibroadcast", out_lens=[2, 100]), [b])
    m.add_return([m.add_instruction(migraphx.op("add"), [y, b])])
    return p


def decode(data, at=0):
    """msgpack as its specification has it; gives the value and where it ends, bytes with their offset."""
    t = data[at]
    at += 1

    def sized(width):
        return int.from_bytes(data[at:at + width], "big"), at + width

    def children(count, at, pairs):
        items = []
        for _ in range(count * (2 if pairs else 1)):
            item, at = decode(data, at)
            items.append(item)
        return (dict(zip(items[::2], items[1::2])) if pairs else items), at

    if t < 0x80:
        return t, at
    if t < 0x90:
        return children(t & 15, at, True)
    if t < 0xa0:
        return children(t & 15, at, False)
    if t < 0xc0:
        return data[at:at + (t & 31)].decode(), at + (t & 31)
    if t >= 0xe0:
        return t - 256, at
    if t in (0xc0, 0xc2, 0xc3):
        return {0xc0: None, 0xc2: False, 0xc3: True}[t], at
    if 0xc4 <= t <= 0xc6:
        n, at = sized(1 << (t - 0xc4))
        return (at, data[at:at + n]), at + n
    if t == 0xcb:
        return struct.unpack(">d", data[at:at + 8])[0], at + 8
    if 0xcc <= t <= 0xd3:
        width = 1 << ((t - 0xcc) % 4)
        return int.from_bytes(data[at:at + width], "big", signed=t >= 0xd0), at + width
    if 0xd9 <= t <= 0xdb:
        n, at = sized(1 << (t - 0xd9))
        return data[at:at + n].decode(), at + n
    n, at = sized(4 if t & 1 else 2)
    return children(n, at, t >= 0xde)


def test_msgpack_is_what_the_specification_says():
    data = migraphx.save_buffer(make())
    tree, end = decode(data)
    assert end == len(data)
    assert tree["version"] == 8 and tree["migraphx_version"].startswith("2.16") and tree["contexts"] == []
    nodes = {node["output"]: node for node in tree["modules"]["main"]["nodes"]}
    dot = next(node for node in nodes.values() if node["name"] == "dot")
    assert [nodes[i]["name"] for i in dot["inputs"]] == ["@param", "@literal"]
    assert dot["shape"]["lens"] == [2, 100] and dot["shape"]["type"] == "float_type"
    literal = nodes[dot["inputs"][1]]["literal"]
    chunks = literal["data"]
    assert b"".join(c[1] for c in chunks) == np.arange(300, dtype=np.float32).tobytes()
    assert chunks[-1][0] % 64 == 0  # a reader that maps the file uses the weights in place
    broadcast = next(node for node in nodes.values() if node["name"] == "multibroadcast")
    assert broadcast["operator"]["out_lens"] == [2, 100]


@pytest.mark.parametrize("form", ["msgpack", "json"])
def test_files(tmp_path, form):
    p = make()
    path = tmp_path / "model"
    migraphx.save(p, path, format=form)
    if form == "json":
        assert json.loads(path.read_text())["version"] == 8
    assert migraphx.load(str(path), format=form) == p
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(RuntimeError, match="Unknown format: xml"):
        migraphx.save(p, path, format="xml")
    with pytest.raises(RuntimeError):
        migraphx.load(path, format="json" if form == "msgpack" else "msgpack")


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_compiled_programs(tmp_path, target):
    p = make()
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    expected = x @ np.arange(300, dtype=np.float32).reshape(3, 100) + 2
    p.compile(migraphx.get_target(target))
    migraphx.save(p, tmp_path / "c.mxr")
    for q in (migraphx.load(tmp_path / "c.mxr"), migraphx.load_buffer(migraphx.save_buffer(p))):
        assert q.is_compiled()
        assert np.allclose(np.asarray(q.run({"x": x})[0]), expected)


def test_arguments(tmp_path):
    a = migraphx.argument(np.arange(6, dtype=np.int16).reshape(2, 3).T)
    migraphx.argument.save(a, tmp_path / "a")
    assert migraphx.argument.load(tmp_path / "a") == a
    with pytest.raises(RuntimeError, match="no_such"):
        migraphx.argument.load(tmp_path / "no_such")


def test_one_file_for_several_machines(tmp_path):
    p, x = make(), np.arange(6, dtype=np.float32).reshape(2, 3) - 3
    forms = [p.clone(), p.clone()]
    forms[0].compile("cpu", isa="generic")
    forms[1].compile("ref")
    path = tmp_path / "forms.mxr"
    migraphx.save(p, path, forms=forms)
    want = x @ np.arange(300, dtype=np.float32).reshape(3, 100) + 2
    for target in None, "cpu", "ref":
        q = migraphx.load(path, target=target)
        assert q.is_compiled()
        np.testing.assert_array_equal(np.array(q.run({"x": x})[0]), want) # whole numbers
    portable = migraphx.load(path, portable=True)
    assert not portable.is_compiled() and portable == p
    with pytest.raises(TypeError, match="list of programs"):
        migraphx.save(p, path, forms=[1])
    with pytest.raises(RuntimeError, match="not compiled"):
        migraphx.save(p, path, forms=[p])
    with pytest.raises(RuntimeError, match="abacus"):
        migraphx.load(path, target="abacus")


def test_files_hold_nothing_of_the_memory_before(tmp_path):
    """Two processes whose fresh memory holds other bytes write the same file."""
    build = """
import sys, migraphx, numpy as np
p = migraphx.program()
m = p.get_main_module()
x = m.add_parameter("x", migraphx.shape(type="float", lens=[1, 2, 5, 5]))
w = m.add_literal(np.arange(72, dtype=np.float32).reshape(4, 2, 3, 3))
m.add_return([m.add_instruction(migraphx.op("convolution", padding=[0, 0], stride=[1, 1], dilation=[1, 1]), [x, w])])
p.compile("cpu", threads=1, isa="generic")
migraphx.save(p, sys.argv[1])
"""
    for perturb in "11", "99":
        environment = dict(os.environ, MALLOC_PERTURB_=perturb, PYTHONPATH=os.pathsep.join(sys.path))
        subprocess.run([sys.executable, "-c", build, tmp_path / perturb], check=True, env=environment)
    assert (tmp_path / "11").read_bytes() == (tmp_path / "99").read_bytes()


def ranges(draw):
    """A model with a free size whose ranges multiply: what an operator may find, in rows, columns and copies of them."""
    node, number, const = onnx.helper.make_node, onnx.TensorProto, onnx.numpy_helper.from_array
    nodes, weights, names = [], [], ["x"]
    for i in range(6):
        x, y = draw.choice(names), f"v{i}"
        kind = draw.choice(["nonzero", "concat", "tile", "flat", "expand", "pad", "unique", "compress"])
        if kind == "nonzero":
            nodes += [node("NonZero", [x], [f"n{i}"]), node("Cast", [f"n{i}"], [y], to=number.FLOAT)]
        elif kind == "concat":
            nodes += [node("Flatten", [x], [f"f{i}"], axis=1), node("Concat", [f"f{i}"] * 24, [y], axis=1)]
        elif kind == "tile":
            weights.append(const(np.array([7, 24]), f"r{i}"))
            nodes += [node("Flatten", [x], [f"f{i}"], axis=1), node("Tile", [f"f{i}", f"r{i}"], [y])]
        elif kind == "flat":
            weights.append(const(np.array([-1, 1]), f"r{i}"))
            nodes.append(node("Reshape", [x, f"r{i}"], [y]))
        elif kind == "expand":
            weights.append(const(np.array([24, 1, 1]), f"r{i}"))
            nodes += [node("Flatten", [x], [f"f{i}"], axis=0), node("Expand", [f"f{i}", f"r{i}"], [y])]
        elif kind == "pad":
            weights.append(const(np.array([1 << 20, 0, 0, 3]), f"r{i}"))
            nodes += [node("Flatten", [x], [f"f{i}"], axis=1), node("Pad", [f"f{i}", f"r{i}"], [y])]
        elif kind == "unique":
            nodes.append(node("Unique", [x], [y]))
        else:
            weights.append(const(np.array([True]), f"r{i}"))
            nodes.append(node("Compress", [x, f"r{i}"], [y], axis=0))
        names.append(y)
    ends = [onnx.helper.make_tensor_value_info(n, number.FLOAT, s) for n, s in (("x", ["N", 24]), (names[-1], None))]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("form", ["msgpack", "json"])
@pytest.mark.parametrize("compiled", [False, True])
def test_what_has_ranges_is_saved_and_loaded(tmp_path, form, compiled):
    """Ranges end where any length does, whatever they are multiplied by; what is saved can be loaded."""
    for seed in range(40):
        p = migraphx.parse_onnx_buffer(ranges(random.Random(seed)), dynamic_dims=True)
        assert all(int(end) <= 1 << 40 for end in re.findall(r"\.\.(\d+)\]", str(p))), f"{seed}: {p}"
        if compiled:
            p.compile(migraphx.get_target("cpu"))
        path = tmp_path / f"{seed}.{form}"
        migraphx.save(p, path, format=form)
        again = migraphx.load(path, format=form)
        assert str(again) == str(p), seed


@pytest.mark.parametrize("order,good", [(0, True), (100, True), (-1, False), (1 << 40, False), (None, True)])
def test_the_number_of_a_parameter_is_one(tmp_path, order, good):
    """Files say when each parameter was created, among all that there ever were; older ones do not."""
    p = migraphx.program()
    m = p.get_main_module()
    shape = migraphx.shape(type="float", lens=[2])
    m.add_return([m.add_instruction(migraphx.op("sub"), [m.add_parameter("b", shape), m.add_parameter("a", shape)])])
    path = tmp_path / "p.json"
    migraphx.save(p, path, format="json")
    text, count = re.subn(r'"order":\s*1\b,?', "" if order is None else f'"order":{order},', path.read_text())
    assert count == 1
    path.write_text(text.replace(",}", "}"))
    if not good:
        with pytest.raises(RuntimeError, match="is number"):
            migraphx.load(path, format="json")
        return
    q = migraphx.load(path, format="json")
    assert sorted(q.get_parameter_names()) == ["a", "b"]
    q.compile(migraphx.get_target("cpu"))
    two, one = np.array([2, 2], np.float32), np.array([1, 1], np.float32)
    assert np.array(q.run({"b": two, "a": one})[0]).tolist() == [1, 1]
