# SPDX-License-Identifier: MIT
"""Arrays in and out: types, strides, lifetimes, no copies."""
import gc
import sys

import migraphx
import numpy as np
import pytest

TYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
         "float32", "float64"]


def sample(dtype, shape):
    rng = np.random.default_rng(7)
    return (rng.integers(0, 2, shape) if dtype == "bool" else rng.integers(0, 100, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_round_trip_shares_bytes(dtype):
    source = sample(dtype, (3, 4, 5))
    argument = migraphx.argument(source)
    back = np.asarray(argument)
    assert back.dtype == source.dtype and back.shape == source.shape
    assert np.array_equal(back, source)
    assert argument.data_ptr() == source.ctypes.data == back.ctypes.data
    assert argument.get_shape().lens() == [3, 4, 5]
    assert argument.tolist() == source.ravel().tolist()


def test_strides_are_taken_over():
    source = sample("float32", (6, 8))
    for view in (source.T, source[::2], source[:, 1:5], np.broadcast_to(source[0], (3, 8))):
        argument = migraphx.argument(view)
        assert argument.data_ptr() == view.ctypes.data
        assert np.array_equal(np.asarray(argument), view)
        assert argument.get_shape().strides() == [s // 4 for s in view.strides]


def test_negative_strides_are_copied():
    source = sample("int32", (4, 5))
    argument = migraphx.argument(source[::-1, ::-2])
    assert np.array_equal(np.asarray(argument), source[::-1, ::-2])


def test_scalars_and_empty_arrays():
    scalar = migraphx.argument(np.array(2.5, np.float32))
    assert scalar.get_shape().lens() == [1] and scalar.get_shape().strides() == [0]
    assert scalar.get_shape().rank() == 0 and scalar.get_shape().scalar()
    assert scalar.tolist() == [2.5]
    empty = migraphx.argument(np.zeros((0, 3), np.int64))
    assert empty.get_shape().elements() == 0 and empty.tolist() == []
    assert np.asarray(empty).shape == (0, 3)


def test_other_exporters():
    assert migraphx.argument(b"\x01\x02").tolist() == [1, 2]
    assert migraphx.argument(memoryview(bytearray(3))).tolist() == [0, 0, 0]
    with pytest.raises(TypeError, match="an argument is made of an array .*, not of <class 'object'>"):
        migraphx.argument(object())
    for stamp in (np.datetime64("2020"), np.timedelta64(3)):  # whose buffer lacks its strides
        with pytest.raises((TypeError, ValueError)):
            migraphx.argument(stamp)
    with pytest.raises(RuntimeError, match="format"):
        migraphx.argument(np.zeros(2, [("a", "i4"), ("b", "f4")]))


def test_read_only_sources_stay_read_only():
    argument = migraphx.argument(b"abcd")
    assert memoryview(argument).readonly
    assert not memoryview(migraphx.argument(bytearray(b"abcd"))).readonly


def test_the_source_lives_as_long_as_it_is_needed():
    source = np.arange(1000, dtype=np.float32)
    before = sys.getrefcount(source)
    argument = migraphx.argument(source)
    view = np.asarray(argument)
    assert sys.getrefcount(source) > before
    del argument
    gc.collect()
    assert sys.getrefcount(source) > before and view[999] == 999
    del view
    gc.collect()
    assert sys.getrefcount(source) == before


def test_results_that_share_an_input_keep_it():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[2, 3]))
    m.add_return([m.add_instruction(migraphx.op("transpose", permutation=[1, 0]), [x])])
    p.compile(migraphx.get_target("ref"))
    result = p.run({"x": np.arange(6, dtype=np.float32).reshape(2, 3)})[0]
    gc.collect()
    assert np.array_equal(np.asarray(result), [[0, 3], [1, 4], [2, 5]])


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
                                  "float8_e5m2fnuz"])
def test_narrow_floats(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = getattr(ml_dtypes, name)
    source = np.array([0.5, -1, 2, 0], dtype=dtype)
    argument = migraphx.argument(source)
    assert argument.tolist() == [0.5, -1, 2, 0]
    assert np.asarray(argument).dtype == dtype and np.array_equal(np.asarray(argument), source)
    assert np.asarray(argument).ctypes.data == source.ctypes.data
    assert np.asarray(argument, np.float64).tolist() == [0.5, -1, 2, 0]


def test_strings():
    argument = migraphx.argument(np.array([["a", "öl"], ["", "long text"]], dtype=object))
    assert argument.get_shape().type_string() == "string_type"
    assert argument.get_shape().lens() == [2, 2]
    assert argument.tolist() == ["a", "öl", "", "long text"]


def test_makers():
    s = migraphx.shape(type="half", lens=[2, 2])
    assert migraphx.create_argument(s, [1, 2, 3, 4]).tolist() == [1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="Values and shape elements do not match"):
        migraphx.create_argument(s, [1])
    assert migraphx.fill_argument(s, 3).tolist() == [3] * 4
    assert migraphx.generate_argument(s, 4) == migraphx.generate_argument(s, seed=4)
    assert migraphx.generate_argument(s, 4) != migraphx.generate_argument(s, 5)
    source = np.arange(4, dtype=np.float16)
    assert migraphx.argument_from_pointer(s, source.ctypes.data).tolist() == [0, 1, 2, 3]


def test_shapes():
    s = migraphx.shape(lens=[2, 3, 4], type="int64_t", permutation=[0, 2, 1])
    assert s.strides() == [12, 1, 3] and s.transposed() and s.packed() and not s.standard()
    assert s.type() == migraphx.shape.type_t.int64_type and s.type_size() == 8
    assert str(s) == "int64_type, {2, 3, 4}, {12, 1, 3}"
    assert int(migraphx.shape.type_t.float_type) == 2 and int(migraphx.shape.type_t.bool_type) == 0
    assert migraphx.shape() == migraphx.shape(type="float", lens=[1])
    assert migraphx.shape(type="float", lens=[1], strides=[0]).scalar()
    d = migraphx.shape.dynamic_dimension(1, 4, {2, 4})
    dynamic = migraphx.shape(type="float", dyn_dims=[d, migraphx.shape.dynamic_dimension(3)])
    assert dynamic.dynamic() and dynamic.dyn_dims()[0] == d and d.optimals == {2, 4}
    assert str(dynamic) == "dynamic, float_type, {[1..4], 3}"
    assert migraphx.shape.dynamic_dimension().is_fixed() and migraphx.shape.dynamic_dimension().min == 0
    assert dynamic.lens() == [4, 3]  # the most there may be
    with pytest.raises(RuntimeError, match="unknown type"):
        migraphx.shape(type="quaternion")
