# SPDX-License-Identifier: MIT
"""The module as one lives in it at a prompt: what is shown, the forms of a call, and what is said of mistakes."""
import io
import subprocess
import sys
import warnings

import migraphx
import numpy as np
import pytest

FLOAT = migraphx.shape(type="float_type", lens=[2, 3])
X, Y = np.arange(6, dtype="f4").reshape(2, 3), np.ones((2, 3), "f4")


def sub(*names, type="float_type", target="cpu"):
    """The first parameter less the others."""
    p = migraphx.program()
    m = p.get_main_module()
    xs = [m.add_parameter(n, migraphx.shape(type=type, lens=[2, 3])) for n in names]
    y = xs[0]
    for x in xs[1:]:
        y = m.add_instruction(migraphx.op("sub"), [y, x])
    m.add_return([m.add_instruction(migraphx.op("identity"), [y])])
    if target:
        p.compile(target)
    return p


# --- what is shown ---

def test_arguments_show_few_values():
    x = np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype("f4")
    text = repr(migraphx.argument(x))
    assert len(text) < 1000 and text.count("\n") < 12
    assert text.startswith("argument([[[[") and text.endswith("]]]], shape=(1, 3, 224, 224), dtype=float32)")
    for shown in (x[0, 0, 0, 0], x[0, 0, 0, 2], x[0, 0, 0, -1], x[0, 2, -1, -1]):
        assert f"{shown:.6g}" in text
    assert f"{x[0, 1, 0, 0]:.6g}" not in text and f"{x[0, 0, 0, 3]:.6g}" not in text
    assert len(str(migraphx.argument(x))) > 1000000  # all of them, as MIGraphX prints


@pytest.mark.parametrize("value, text", [
    (X, "argument([[0, 1, 2],\n          [3, 4, 5]], shape=(2, 3), dtype=float32)"),
    (X.T, "argument([[0, 3],\n          [1, 4],\n          [2, 5]], shape=(3, 2), dtype=float32)"),
    (np.array(0.1), "argument(0.1, shape=(), dtype=float64)"),
    (np.zeros((0, 3), "i4"), "argument([], shape=(0, 3), dtype=int32)"),
    (np.array([True, False]), "argument([True, False], shape=(2,), dtype=bool)"),
    (np.array([2**63], "u8"), "argument([9223372036854775808], shape=(1,), dtype=uint64)"),
    (np.arange(100), "argument([0, 1, 2, ..., 97, 98, 99], shape=(100,), dtype=int64)"),
    (["<b>", "x" * 99], "argument(['<b>', 'xxxxxxxxxxxxxxxxxxxxxxxx'...], shape=(2,), dtype=object)"),
    ([X[:1], X[1]], "argument([argument([[0, 1, 2]], shape=(1, 3), dtype=float32), argument([3, 4, 5], shape=(3,), dtype=float32)])"),
])
def test_arguments_show_themselves(value, text):
    assert repr(migraphx.argument(value)) == text


@pytest.mark.parametrize("rank", range(1, 15))
def test_any_rank_is_short(rank):
    assert len(repr(migraphx.argument(np.ones((3,) * min(rank, 9) + (1,) * (rank - min(rank, 9)), "i1")))) < 2500


def test_shapes_can_be_evaluated():
    dim = migraphx.dynamic_dimension
    for s in (FLOAT, migraphx.shape(type="half", lens=[2, 3], strides=[1, 2]), migraphx.shape(lens=[]), migraphx.shape(dyn_dims=[dim(1, 4, {2}), dim(3)]),
              migraphx.shape(dyn_dims=[dim(1, 4, name="a'b")]), migraphx.shape(sub_shapes=[FLOAT, migraphx.shape(lens=[4])]), dim(1, 4, {2, 3}, "N"), dim(2)):
        assert eval(repr(s)) == s
    assert repr(FLOAT) == "migraphx.shape(type='float_type', lens=[2, 3])" and str(FLOAT) == "float_type, {2, 3}, {3, 1}"
    assert str(dim(1, 4)) == "[1..4]"


def test_programs_show_counts():
    p = sub("x", "y")
    assert repr(p) == "<migraphx.program: 4 instructions, compiled, x: float_type, {2, 3}; y: float_type, {2, 3} -> float_type, {2, 3}>"
    assert "not compiled" in repr(sub("x", target=None)) and repr(migraphx.program()) == "<migraphx.program: 0 instructions, not compiled>"
    assert str(p).startswith('module: "main"\n') and repr(p.clone().get_main_module()) == '<migraphx.module "main": 4 instructions>'
    many = sub(*[f"input_number_{i}" for i in range(300)])
    assert len(repr(many)) < 400 and "... (300)" in repr(many)
    assert len(many._repr_html_()) < 15000 and len(str(many)) > 15000


def test_html_is_small_and_escaped():
    p = sub("<script>alert('x')</script>", "b&")
    text = p._repr_html_()
    assert "<script>" not in text and "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in text and "b&amp;" in text
    assert text.count("<tr>") == 3 and text.count("<") == text.count(">")
    text = migraphx.argument(["</pre><script>"])._repr_html_()
    assert "<script>" not in text and "&lt;/pre&gt;&lt;script&gt;" in text and "shape=(1,)" in text
    assert len(migraphx.argument(np.ones((100, 100)))._repr_html_()) < 1000


def test_as_numpy():
    a = sub("x")(X)[0]
    assert a.shape == (2, 3) and a.dtype == np.float32 and a.numpy().tolist() == X.tolist()
    assert a.numpy().ctypes.data == a.data_ptr()  # the same bytes
    scalar = migraphx.argument(2.5)
    assert scalar.shape == () and scalar.numpy().shape == ()
    assert migraphx.argument(["a"]).dtype == object
    for name in ("shape", "dtype"):
        with pytest.raises(AttributeError):
            getattr(migraphx.argument([X, Y]), name)
    with pytest.raises(TypeError, match="its members are"):
        migraphx.argument([X, Y]).numpy()


def test_as_numpy_narrow():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4"):
        a = migraphx.argument(np.array([1, 2, -3], getattr(ml_dtypes, name)))
        assert a.dtype == a.numpy().dtype == getattr(ml_dtypes, name) and repr(a) == f"argument([1, 2, -3], shape=(3,), dtype={name})"


def test_narrow_types_without_ml_dtypes():
    code = ("import sys; sys.modules['ml_dtypes'] = None\nimport migraphx\n"
            "for kind in ('bf16_type', 'fp8e5m2_type'):\n"
            "    a = migraphx.fill_argument(migraphx.shape(type=kind, lens=[2]), 1)\n"
            "    print(a.dtype, a.numpy(), a)\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "uint16 [16256 16256] 1, 1\nuint8 [60 60] 1, 1\n"


def test_without_numpy():
    code = ("import sys; sys.modules['numpy'] = None\nimport migraphx\na = migraphx.argument([1.5, 2])\nprint(repr(a), a.shape, a)\n"
            "try:\n    a.numpy()\nexcept ImportError:\n    print('no numpy')\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "argument([1.5, 2], shape=(2,), dtype=float32) (2,) 1.5, 2\nno numpy\n"


# --- forms of a call ---

def test_forms_of_inputs():
    p = sub("x", "y")
    for call in (lambda: p.run({"x": X, "y": Y}), lambda: p.run(params={"x": X, "y": Y}), lambda: p.run(X, Y), lambda: p.run([X, Y]), lambda: p.run((X, Y)),
                 lambda: p.run(x=X, y=Y), lambda: p.run(X, y=Y), lambda: p(X, Y), lambda: p({"x": X, "y": Y}), lambda: p(y=Y, x=X), lambda: p([X, Y])):
        assert call()[0].numpy().tolist() == (X - Y).tolist()
    one = sub("x")
    for value in (X, [X], (X,), X.tolist(), {"x": X}, migraphx.argument(X), [migraphx.argument(X)]):
        assert one(value)[0].numpy().tolist() == X.tolist()
    named = sub("params")
    assert named.run(params=X)[0].numpy().tolist() == named.run(params={"params": X})[0].numpy().tolist() == X.tolist()


def test_the_order_is_the_models(tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in ("z", "a", "m", "y")]
    nodes = [helper.make_node("Sub", ["z", "a"], ["t"]), helper.make_node("Mul", ["t", "m"], ["y"])]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:3], ends[3:]), opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    p = migraphx.parse_onnx(tmp_path / "m.onnx")
    p.compile("cpu")
    assert p.get_parameter_names() == ["z", "a", "m"]
    assert p(X, Y, X)["y"].numpy().tolist() == ((X - Y) * X).tolist()
    for source in (model, model.SerializeToString(), bytearray(model.SerializeToString()), memoryview(model.SerializeToString()),
                   io.BytesIO(model.SerializeToString()), str(tmp_path / "m.onnx"), bytes(tmp_path / "m.onnx"), open(tmp_path / "m.onnx", "rb")):
        for parse in (migraphx.parse_onnx, *([] if isinstance(source, str) or source == bytes(tmp_path / "m.onnx") else [migraphx.parse_onnx_buffer])):
            if hasattr(source, "seek"):
                source.seek(0)
            for again in (parse(source), parse(filename=source) if not hasattr(source, "seek") else None):
                if again is not None:
                    again.reshape({"z": [4, 3], "a": [4, 3], "m": [4, 3]})  # reads it once more
                    assert again.get_parameter_shapes()["z"].lens() == [4, 3] and str(parse(source) if not hasattr(source, "seek") else p.clone())


def test_sources_that_are_no_model():
    with pytest.raises(FileNotFoundError):
        migraphx.parse_onnx(b"/no/such/model.onnx")
    with pytest.raises(RuntimeError):
        migraphx.parse_onnx(b"\x08\x07nonsense\x00")
    with pytest.raises(TypeError, match="by its path, as bytes, as an onnx.ModelProto"):
        migraphx.parse_onnx(3)
    with pytest.raises(TypeError, match="by its path, as bytes"):
        migraphx.parse_onnx(io.StringIO("text"))
    with pytest.raises(TypeError, match="parse_onnx reads the file 'm.onnx'"):
        migraphx.parse_onnx_buffer("m.onnx")


# --- mistakes ---

@pytest.mark.parametrize("call, kind, text", [
    (lambda p: p.run(X), TypeError, r"its 2 inputs in this order: \['input', 'mask'\]; 1 given"),
    (lambda p: p.run(X, X, X), TypeError, "3 given"),
    (lambda p: p.run(), TypeError, "0 given"),
    (lambda p: p.run([X]), TypeError, "1 given"),
    (lambda p: p.run(X, maks=X), TypeError, r"\"maks\", and the program has no such input; it has \['input', 'mask'\]; did you mean \"mask\"\?"),
    (lambda p: p.run(X, zzz=X), TypeError, r"no such input; it has \['input', 'mask'\]$"),
    (lambda p: p.run(X, X, mask=X), TypeError, '"mask" twice, by position and by name'),
    (lambda p: p.run(input=X), RuntimeError, "Parameter not found: mask"),
    (lambda p: p.run({"input": X, "mask": X.astype("f8")}), RuntimeError, r'double_type and float_type is wanted: .*, as in mask.astype\("float32"\)$'),
    (lambda p: p.run(migraphx.argument(X.astype("i8")), X), RuntimeError, r'as in input.numpy\(\).astype\("float32"\)$'),
])
def test_wrong_calls(call, kind, text):
    p = sub("input", "mask")
    with pytest.raises(kind, match=text):
        call(p)
    assert p(X, Y)[0].numpy().tolist() == (X - Y).tolist()


class TorchLike:
    """What torch's tensors look like from outside."""
    __module__ = "torch"

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


def test_advice_is_that_of_the_package():
    with pytest.raises(RuntimeError, match=r"as in x.to\(torch.float32\)$"):
        sub("x").run(x=TorchLike(X.astype("f8")))
    with pytest.raises(RuntimeError, match=r"as in x.astype\(ml_dtypes.bfloat16\)$"):
        sub("x", type="bf16_type").run(X)


def test_extra_inputs_bring_a_warning():
    p = sub("input")
    with pytest.warns(UserWarning, match='no input "inptu": it is ignored; did you mean "input"') as seen:
        for _ in range(3):
            assert p.run({"input": X, "inptu": Y})[0].numpy().tolist() == X.tolist()
    assert len(seen) == 1 and seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sub("input").run({"input": X})
        with pytest.raises(UserWarning):
            sub("input").run({"input": X, "other": X})


def test_runs_without_compiling_bring_a_warning():
    p = sub("x", target=None)
    with pytest.warns(UserWarning, match="not compiled: the reference runs it") as seen:
        for _ in range(3):
            assert p(X)[0].numpy().tolist() == X.tolist()
    assert len(seen) == 1 and seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p.compile("ref")
        p(X)


@pytest.mark.parametrize("name, near", [("cuda", "gpu"), ("cuda:1", "gpu"), ("ROCm", "gpu"), ("CPU", "cpu"), ("Ref", "ref")])
def test_targets_have_near_names(name, near):
    with pytest.raises(RuntimeError, match=f"did you mean '{near}'"):
        sub("x", target=name)
    with pytest.raises(RuntimeError) as caught:
        sub("x", target="abacus")
    assert "did you mean" not in str(caught.value)
