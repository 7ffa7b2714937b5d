# SPDX-License-Identifier: MIT
"""What goes into run and comes out: lists, strings, sequences, optionals, other packages' arrays."""
import copy
import pickle
import subprocess
import sys

import migraphx
import numpy as np
import pytest

FLOAT = migraphx.shape(type="float_type", lens=[2, 3])


def identity(shape, *names):
    """A compiled program that returns its parameters, each through an operator."""
    p = migraphx.program()
    m = p.get_main_module()
    xs = [m.add_parameter(name, shape) for name in names or ("x",)]
    m.add_return([m.add_instruction(migraphx.op("identity"), [x]) for x in xs])
    p.compile("ref")
    return p


def test_lists_and_numbers_take_the_wanted_type():
    p = identity(FLOAT)
    for value in ([[1, 2, 3], [4, 5, 6]], ((1, 2.0, 3), [4, 5, np.float32(6)])):
        result = np.asarray(p.run({"x": value})[0])
        assert result.dtype == np.float32 and result.tolist() == [[1, 2, 3], [4, 5, 6]]
    half = identity(migraphx.shape(type="half_type", lens=[2]))
    assert np.asarray(half.run({"x": [0.5, 2]})[0]).tolist() == [0.5, 2]
    big = identity(migraphx.shape(type="int64_type", lens=[2]))
    assert big.run({"x": [2**62 + 1, -3]})[0].tolist() == [2**62 + 1, -3]
    scalar = identity(migraphx.shape(type="float_type", lens=[]))
    assert np.asarray(scalar.run({"x": 2.5})[0]).shape == () and scalar.run({"x": 2.5})[0].tolist() == [2.5]


@pytest.mark.parametrize("value, kind, text", [
    ([[1, 2, 3], [4, 5]], ValueError, 'parameter "x": lists of one depth have lengths 3 and 2'),
    ([[1, 2, 3], 4], ValueError, 'parameter "x": values lie 2 and 1 lists deep'),
    ([[1, 2, "a"]], TypeError, 'parameter "x": a list holds numbers or strings alone'),
    ([[1, 2, object()]], TypeError, 'parameter "x": a list for a tensor holds numbers or strings'),
    ([["a"]], TypeError, 'parameter "x": numbers are wanted, not strings'),
    (object(), TypeError, 'parameter "x": an argument is made of an array'),
    (None, TypeError, 'parameter "x": an argument is made of an array'),
])
def test_messages_name_the_parameter(value, kind, text):
    with pytest.raises(kind, match=text):
        identity(FLOAT).run({"x": value})


def test_wrong_dicts():
    p = identity(FLOAT, "x", "y")
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(RuntimeError, match='Parameter not found: y; given: "x", "z"$'):
        p.run({"x": x, "z": x})
    with pytest.raises(RuntimeError, match="Parameter not found: x; none was given$"):
        p.run({})
    with pytest.raises(TypeError, match="takes a dict from the parameters' names"):
        p.run([x, x, x])
    with pytest.raises(TypeError, match="parameter names must be str"):
        p.run({1: x})
    for call in (lambda: p.run(), lambda: p.run({}, {}), lambda: p.run(inputs={})):
        with pytest.raises(TypeError):
            call()
    assert len(p.run(params={"x": x, "y": x})) == 2


def test_lists_without_a_wanted_type():
    for value, kind in ((1.5, "float_type"), ([1, 2], "int64_type"), ([True, False], "bool_type"),
                        ([[1, 2.5]], "float_type"), ("text", "string_type"), (["a", "b"], "string_type")):
        argument = migraphx.argument(value)
        assert argument.get_shape().type_string() == kind
        assert argument.tolist() == np.ravel(value).tolist()
    assert migraphx.argument([[1, 2], [3, 4]]).get_shape().lens() == [2, 2]
    sequence = migraphx.argument([np.zeros(2), np.ones(3)])
    assert sequence.get_shape().type_string() == "sequence_type" and len(sequence) == 2
    assert [len(member) for member in sequence] == [2, 3] and sequence[1].tolist() == [1, 1, 1]


def onnx_program(node, inputs, outputs):
    onnx = pytest.importorskip("onnx")
    graph = onnx.helper.make_graph([node], "g", inputs, outputs)
    p = migraphx.parse_onnx_buffer(onnx.helper.make_model(graph).SerializeToString())
    p.compile("ref")
    return p


def test_strings():
    onnx = pytest.importorskip("onnx")
    string = onnx.TensorProto.STRING
    p = onnx_program(onnx.helper.make_node("StringConcat", ["a", "b"], ["c"]),
                     [onnx.helper.make_tensor_value_info(n, string, [2]) for n in "ab"],
                     [onnx.helper.make_tensor_value_info("c", string, [2])])
    for a in (np.array(["x", "ö"], object), np.array(["x", "ö"]), ["x", "ö"], [b"x", "ö".encode()]):
        result = p.run({"a": a, "b": np.array(["1", ""])})[0]
        array = np.asarray(result)
        assert array.dtype == object and array.tolist() == ["x1", "ö"] == result.tolist()


def test_sequences():
    onnx = pytest.importorskip("onnx")
    h, number = onnx.helper, onnx.TensorProto.FLOAT
    p = onnx_program(h.make_node("SequenceInsert", ["s", "x"], ["r"]),
                     [h.make_tensor_sequence_value_info("s", number, None), h.make_tensor_value_info("x", number, [2])],
                     [h.make_tensor_sequence_value_info("r", number, None)])
    x = np.float32([5, 6])
    for s in ([], [np.float32([1, 2, 3])], [[1, 2, 3]], (np.float32([1]), np.float32([[2]]))):
        result = p.run({"s": s, "x": x})["r"]
        assert isinstance(result, list) and len(result) == len(s) + 1
        for got, want in zip(result, [*s, x]):
            assert np.array_equal(np.asarray(got), np.float32(want))
    with pytest.raises(TypeError, match='parameter "s": a sequence is given as a list'):
        p.run({"s": x, "x": x})
    with pytest.raises(TypeError, match='parameter "s": member 1: '):
        p.run({"s": [x, object()], "x": x})


def test_optionals():
    onnx = pytest.importorskip("onnx")
    h = onnx.helper
    kind = h.make_optional_type_proto(h.make_tensor_type_proto(onnx.TensorProto.FLOAT, [2]))
    p = onnx_program(h.make_node("Identity", ["o"], ["r"]), [h.make_value_info("o", kind)], [h.make_value_info("r", kind)])
    assert p.run({"o": None})[0] is None
    for value in (np.float32([1, 2]), [1, 2], migraphx.argument(np.float32([1, 2]))):
        assert p.run({"o": value})[0].tolist() == [1, 2]


def test_results_by_name():
    onnx = pytest.importorskip("onnx")
    h = onnx.helper
    p = onnx_program(h.make_node("Split", ["x"], ["left", "right"], axis=0, num_outputs=2),
                     [h.make_tensor_value_info("x", 1, [4])], [h.make_tensor_value_info(n, 1, [2]) for n in ("left", "right")])
    results = p.run({"x": np.float32([1, 2, 3, 4])})
    assert isinstance(results, list) and results.names == ("left", "right") == tuple(p.get_output_names())
    assert results["right"].tolist() == results[1].tolist() == results[-1].tolist() == [3, 4]
    assert [r.tolist() for r in results[:1]] == [[1, 2]]
    with pytest.raises(KeyError, match="'up'; the names are .*'left', 'right'"):
        results["up"]
    with pytest.raises(IndexError):
        results[2]


@pytest.mark.parametrize("name, bits", [("bfloat16", 16), ("float8_e4m3fn", 8), ("int4", 4), ("uint4", 4), ("float4_e2m1fn", 4)])
def test_narrow_results(name, bits):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = getattr(ml_dtypes, name)
    x = np.array([[0, 1, 2], [1, 3, 2]], dtype=dtype)
    p = identity(migraphx.argument(x).get_shape())
    result = np.asarray(p.run({"x": x})[0])
    assert result.dtype == dtype and np.array_equal(result, x)
    with pytest.raises(BufferError, match="numpy.asarray takes it"):
        memoryview(p.run({"x": x})[0])


class Lent:
    """What torch and jax look like from here: DLPack and nothing else."""

    def __init__(self, array, versions=True):
        self.array, self.versions = array, versions

    def __dlpack__(self, **options):
        if not self.versions and options:
            raise TypeError("unexpected keyword")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64"])
def test_dlpack(dtype):
    x = np.arange(24).reshape(2, 3, 4).astype(dtype)
    for source in (x, x.transpose(2, 0, 1), x[:, 1:], np.array(3, dtype)):
        for versions in (True, False):
            argument = migraphx.argument(Lent(source, versions))
            assert argument.data_ptr() == source.ctypes.data and np.array_equal(np.asarray(argument), source)
        back = np.from_dlpack(argument)
        assert back.ctypes.data == source.ctypes.data and np.array_equal(back, source) and back.shape == source.shape
    before = sys.getrefcount(x)
    argument = migraphx.argument(Lent(x))
    back = np.from_dlpack(argument)
    del argument
    assert sys.getrefcount(x) > before and back[1, 2, 3] == x[1, 2, 3]
    del back
    assert sys.getrefcount(x) == before
    migraphx.argument(x).__dlpack__()  # a capsule that nobody takes
    assert sys.getrefcount(x) == before


def test_dlpack_refusals():
    locked = np.zeros(3, np.float32)
    locked.flags.writeable = False
    with pytest.raises(BufferError, match="read-only"):
        migraphx.argument(locked).__dlpack__()
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":  # which asks for version 1
        assert not np.from_dlpack(migraphx.argument(locked)).flags.writeable
    with pytest.raises(BufferError, match="no DLPack form"):
        migraphx.argument(["a"]).__dlpack__()
    assert migraphx.argument(locked).__dlpack_device__() == (1, 0)


def test_torch():
    torch = pytest.importorskip("torch")
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    result = identity(FLOAT).run({"x": x})[0]
    assert torch.equal(torch.from_dlpack(result), x)
    bits = torch.ones(2, 3, dtype=torch.bfloat16)
    assert migraphx.argument(bits).get_shape().type_string() == "bf16_type"


def test_other_arrays():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.float32([[1, 2, 3], [4, 5, 6]])

    assert identity(FLOAT).run({"x": Wrapped()})[0].tolist() == [1, 2, 3, 4, 5, 6]
    argument = migraphx.argument(np.float32([[1, 2], [3, 4]]))
    assert np.asarray(argument, dtype=np.int64).dtype == np.int64
    assert argument[1].tolist() == [3, 4] and argument[0, 1] == 2 and len(argument) == 2
    assert [row.tolist() for row in argument] == [[1, 2], [3, 4]]
    assert np.array(argument).ctypes.data != argument.data_ptr()
    with pytest.raises(TypeError, match="no length"):
        len(migraphx.argument(1.5))


def test_without_numpy():
    code = """
import sys
sys.modules["numpy"] = None
import migraphx
p = migraphx.program(); m = p.get_main_module()
x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[2, 2]))
w = m.add_literal([[1.0, 2.0], [3.0, 4.0]])
m.add_return([m.add_instruction(migraphx.op("dot"), [x, w])]); p.compile("cpu")
r = p.run({"x": [[1, 0], [0, 2]]})[0]
assert r.tolist() == [1, 2, 6, 8] and memoryview(r).tolist() == [[1, 2], [6, 8]] and r[1, 0] == 6
"""
    subprocess.run([sys.executable, "-c", code], check=True)


ARGUMENTS = [np.float32([[1, 2], [3, 4]]), np.arange(12).reshape(3, 4).T, np.array(["a", "ö"], object), [np.zeros(2), np.ones((1, 1))],
             (np.zeros(2), np.ones(3, np.int8)), np.array(2.5), np.zeros((0, 3)), ()]


@pytest.mark.parametrize("value", ARGUMENTS, ids=range(len(ARGUMENTS)))
def test_arguments_pickle_and_copy(value):
    argument = migraphx.argument(value)
    for again in (pickle.loads(pickle.dumps(argument)), copy.copy(argument), copy.deepcopy(argument)):
        assert again == argument and repr(again) == repr(argument)
        assert again.get_shape().type_string() == argument.get_shape().type_string()


def test_narrow_arguments_pickle():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e5m2", "int4"):
        argument = migraphx.argument(np.array([1, 2, -3], getattr(ml_dtypes, name)))
        assert pickle.loads(pickle.dumps(argument)) == argument


def test_everything_else_pickles():
    dim = migraphx.shape.dynamic_dimension
    things = [migraphx.shape(type="half", lens=[2, 3], strides=[1, 2]), migraphx.shape(lens=[]), migraphx.shape(dyn_dims=[dim(1, 4, {2}, "n"), dim(3)]),
              migraphx.shape(sub_shapes=[FLOAT, migraphx.shape(type="int64")]), dim(1, 8, {2, 4}, "batch"), migraphx.op("concat", axis=2),
              migraphx.op("pooling", mode="max", lengths=[2, 2], stride=[1, 1], padding=[0, 0]), migraphx.get_target("cpu"),
              migraphx.shape.type_t.half_type, migraphx.op.pooling_mode.max]
    for thing in things:
        for again in (pickle.loads(pickle.dumps(thing)), copy.deepcopy(thing), copy.copy(thing)):
            assert again == thing and repr(again) == repr(thing) and hash(again) == hash(thing)
    assert len({migraphx.shape(lens=[2]), migraphx.shape(lens=[2]), migraphx.shape(lens=[3])}) == 2
    assert migraphx.op("relu") != migraphx.op("tanh") and migraphx.op("relu") == migraphx.op("relu")


def test_programs_pickle_and_copy():
    p = identity(FLOAT)
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    for again in (pickle.loads(pickle.dumps(p)), copy.deepcopy(p), copy.copy(p)):
        assert again.is_compiled() and again == p and np.array_equal(np.asarray(again.run({"x": x})[0]), x)
    q = migraphx.program()
    q.get_main_module().add_parameter("x", FLOAT)
    twin = copy.deepcopy(q)
    assert twin == q and not twin.is_compiled()
    twin.get_main_module().add_parameter("y", FLOAT)
    assert twin != q
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(q.get_main_module())
