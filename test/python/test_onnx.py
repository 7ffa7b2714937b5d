# SPDX-License-Identifier: MIT
"""Importing models, and the ONNX backend interface."""
import os
import time

import migraphx
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from onnx_migraphx import backend  # noqa: E402


def model(shape=("batch", 3), op="Relu", opset=17, **attributes):
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["a"], name="first", **attributes), helper.make_node("Neg", ["a"], ["y"], name="last")],
        "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]).SerializeToString()


def lens(**options):
    return migraphx.parse_onnx_buffer(model(), **options).get_parameter_shapes()["x"].lens()


def test_dimensions():
    assert lens() == [1, 3]
    assert lens(default_dim_value=4) == [4, 3]
    assert lens(map_input_dims={"x": [5, 3]}) == [5, 3]
    assert lens(dim_params={"batch": 6}) == [6, 3]
    dim = migraphx.shape.dynamic_dimension
    for options in ({"map_dyn_input_dims": {"x": [dim(1, 4), dim(3, 3)]}}, {"default_dyn_dim_value": dim(1, 4)},
                    {"dim_params": {"batch": dim(1, 4)}}):
        p = migraphx.parse_onnx_buffer(model(), **options)
        shape = p.get_parameter_shapes()["x"]
        assert shape.dynamic() and shape.dyn_dims()[0].min == 1 and shape.dyn_dims()[0].max == 4
        p.compile(migraphx.get_target("ref"))
        x = np.float32([[1, -2, 3]] * 3)
        assert np.array_equal(np.asarray(p.run({"x": x})[0]), -np.maximum(x, 0))
        with pytest.raises(RuntimeError, match="Incorrect shape"):
            p.run({"x": np.zeros((5, 3), np.float32)})
    assert migraphx.parse_onnx_buffer(model(), dynamic_dims=True).get_parameter_shapes()["x"].dyn_dims()[0].name == "batch"
    with pytest.raises(RuntimeError, match="both a default dimension value"):
        lens(default_dim_value=4, default_dyn_dim_value=dim(1, 4))
    with pytest.raises(RuntimeError, match="both static and dynamic"):
        lens(map_input_dims={"x": [5, 3]}, map_dyn_input_dims={"x": [dim(1, 4), 3]})
    with pytest.warns(UserWarning, match=r"map_input_dims: the model has no input 'X'; it has \['x'\]"):
        assert lens(map_input_dims={"X": [5, 3]}) == [1, 3]


def test_files_and_names(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(model())
    p = migraphx.parse_onnx(path, default_dim_value=2)
    assert p.get_parameter_names() == ["x"] and p.get_output_names() == ["y"]
    assert migraphx.parse_onnx(str(path), default_dim_value=2) == p
    assert "last" not in str(p) and "last" in str(migraphx.parse_onnx(path, use_debug_symbols=True))
    with pytest.raises(RuntimeError, match="no_such.onnx"):
        migraphx.parse_onnx(tmp_path / "no_such.onnx")
    with pytest.raises(RuntimeError):
        migraphx.parse_onnx_buffer(b"not a model")


def test_unknown_operators():
    with pytest.raises(RuntimeError, match="Bake"):
        migraphx.parse_onnx_buffer(model(op="Bake"))
    p = migraphx.parse_onnx_buffer(model(op="Bake"), skip_unknown_operators=True)
    assert "Bake" in str(p)
    operators = migraphx.get_onnx_operators()
    assert "Conv" in operators and operators == sorted(set(operators))


def test_backend():
    proto = onnx.ModelProto.FromString(model())
    x = np.float32([[1, -2, 3], [4, 5, -6]])
    assert backend.supports_device("REF") and not backend.supports_device("TPU:0")
    rep = backend.prepare(proto, "REF")
    for inputs in ([x], {"x": x}):
        assert np.array_equal(rep.run(inputs)[0], -np.maximum(x, 0))
    assert np.array_equal(backend.run_model(proto, [x], "REF:0")[0], -np.maximum(x, 0))
    assert backend.get_program().is_compiled()
    node = helper.make_node("Add", ["a", "b"], ["c"])
    assert np.array_equal(backend.run_node(node, [x, x], "REF")[0], 2 * x)


def test_backend_keeps_rank_and_lists():
    total = helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)
    result = backend.run_node(total, [np.ones((2, 3), np.float32)], "REF")[0]
    assert result.shape == () and result == 6
    graph = helper.make_graph(
        [helper.make_node("SplitToSequence", ["x"], ["s"], axis=0)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 2])],
        [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)])
    parts = backend.run_model(helper.make_model(graph), [np.arange(6, dtype=np.float32).reshape(3, 2)], "REF")[0]
    assert [part.tolist() for part in parts] == [[[0, 1]], [[2, 3]], [[4, 5]]]


def test_initialisers_that_are_inputs_are_constants():
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("w", TensorProto.FLOAT, [1]), helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])], [numpy_helper.from_array(np.float32([3]), "w")])
    rep = backend.prepare(helper.make_model(graph), "REF")
    assert rep.run([np.float32([1, 2])])[0].tolist() == [3, 6]


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_reshape(tmp_path, target):
    path = tmp_path / "m.onnx"
    path.write_bytes(model(shape=("batch", "width")))
    for p in (migraphx.parse_onnx(path, map_input_dims={"x": [4, 8]}),
              migraphx.parse_onnx_buffer(model(shape=("batch", "width")), map_input_dims={"x": [4, 8]})):
        p.compile(migraphx.get_target(target), fast_math=False)
        module = p.get_main_module()
        for shape in ([2, 3], [4, 8], [2, 3], [7, 1], [4, 8]):
            p.reshape(inputs={"x": shape})
            assert p.is_compiled() and p.get_parameter_shapes()["x"].lens() == shape
            x = np.arange(-5, np.prod(shape) - 5, dtype=np.float32).reshape(shape)
            assert np.array_equal(np.asarray(p.run({"x": x})[0]), -np.maximum(x, 0))
        assert "@param:x" in str(module)


@pytest.mark.parametrize("before", [False, True])
def test_reshape_quantizes_again(before):
    p = migraphx.parse_onnx_buffer(model(shape=("batch", "width")), map_input_dims={"x": [4, 8]})
    if before:
        p.reshape({"x": [1, 3]})
    migraphx.quantize_fp16(p, ins_names=["all"])
    p.compile(migraphx.get_target("ref"))
    x = np.float32([[1 + 2**-12]])  # 1, as half
    for shape in ([2, 3], [4, 8], [1, 3]):
        p.reshape({"x": shape})
        assert p.is_compiled() and p.get_parameter_shapes()["x"].lens() == shape
        result = np.asarray(p.run({"x": np.full(shape, -x[0, 0], np.float32)})[0])
        half = np.asarray(p.run({"x": np.full(shape, x[0, 0], np.float32)})[0])
        assert "half_type" in str(p) and np.all(result == 0) and np.all(half == -1)


def test_reshape_of_what_cannot_be_read_again():
    p = migraphx.parse_onnx_buffer(model())
    with pytest.raises((TypeError, ValueError)):
        p.reshape({"x": "wide"})
    assert p.get_parameter_shapes()["x"].lens() == [1, 3]
    p.reshape({"x": [2, 3]})
    assert p.get_parameter_shapes()["x"].lens() == [2, 3] and not p.is_compiled()
    p.get_main_module()
    for program in (p, migraphx.program()):
        with pytest.raises(RuntimeError, match="reshape: only what parse_onnx gave"):
            program.reshape({"x": [3, 3]})


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("kind, digits", [("fp16", 5e-3), ("bf16", 5e-2)])
def test_quantized_nodes_that_wait_for_the_run(kind, digits, target):
    """Axes that only the run knows: what the node gives is what was said of it, and read as that."""
    graph = helper.make_graph(
        [helper.make_node("ReduceMean", ["x", "axes"], ["m"], keepdims=1), helper.make_node("Exp", ["m"], ["e"]),
         helper.make_node("Mul", ["x", "e"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [100, 4, 5]),
         helper.make_tensor_value_info("axes", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    p = migraphx.parse_onnx_buffer(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    getattr(migraphx, "quantize_" + kind)(p)
    p.compile(migraphx.get_target(target))
    x = np.linspace(-1, 1, 2000, dtype=np.float32).reshape(100, 4, 5)
    for axis in (1, 0, 2):
        y = np.array(p.run({"x": x, "axes": np.int64([axis])})[0])
        assert y.dtype == np.float32
        np.testing.assert_allclose(y, x * np.exp(x.mean(axis, keepdims=True)), atol=digits)


def scan_without_types():
    """The body says nothing of its results' types: the state is double, the rows are bool."""
    inputs = [helper.make_empty_tensor_value_info(name) for name in ("state", "t")]
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("next", "row")]
    body = helper.make_graph([helper.make_node("Cast", ["t"], ["d"], to=TensorProto.DOUBLE), helper.make_node("Add", ["state", "d"], ["next"]),
                              helper.make_node("Greater", ["next", "state"], ["row"])], "body", inputs, outputs)
    return helper.make_node("Scan", ["x", "z"], ["y", "y1"], body=body, num_scan_inputs=1)


@pytest.mark.parametrize("node, x, expected", [
    (helper.make_node("ConstantOfShape", ["x"], ["y"], value=numpy_helper.from_array(np.int32([7]))), np.int64([2, 3]),
     [np.full((2, 3), 7, np.int32)]),
    (helper.make_node("ConstantOfShape", ["x"], ["y"]), np.int64([2]), [np.float32([0, 0])]),
    (helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[1.0], scale=[0.5]), np.int64([[3], [5]]),
     [np.float32([[1], [2]])]),
    (helper.make_node("Normalizer", ["x"], ["y"], domain="ai.onnx.ml", norm="L1"), np.int64([[1, 3]]), [np.float32([[0.25, 0.75]])]),
    (helper.make_node("OneHotEncoder", ["x"], ["y"], domain="ai.onnx.ml", cats_int64s=[4, 6]), np.int64([6, 4]),
     [np.float32([[0, 1], [1, 0]])]),
    (helper.make_node("LinearRegressor", ["x"], ["y"], domain="ai.onnx.ml", coefficients=[2.0, 1.0], intercepts=[1.0]),
     np.int64([[1, 2]]), [np.float32([[5]])]),
    (helper.make_node("LinearClassifier", ["x"], ["y", "y1"], domain="ai.onnx.ml", coefficients=[1.0, 0.0, 0.0, 1.0],
                      intercepts=[0.0, 0.0], classlabels_ints=[10, 20]), np.float32([[1, 2], [3, 1]]),
     [np.int64([20, 10]), np.float32([[1, 2], [3, 1]])]),
    (scan_without_types(), np.float64([1, 2]), [np.float64([4, 2]), np.array([[True, False], [True, True]])]),
], ids=["int", "float", "scaler", "normalizer", "one hot", "regressor", "classifier", "scan"])
def test_types_of_nodes_that_wait_for_the_run(node, x, expected):
    """What is said of a node before its sizes are known is what it gives: readers rely on it."""
    types = {np.int64: TensorProto.INT64, np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE}
    inputs = [helper.make_tensor_value_info("x", types[x.dtype.type], None)]
    given = {"x": x}
    if "z" in node.input:
        inputs.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, None))
        given["z"] = np.float32([[1, -1], [2, 1]])
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info(name) for name in node.output])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    p = migraphx.parse_onnx_buffer(helper.make_model(graph, opset_imports=opsets).SerializeToString())
    assert "onnx::deferred" in str(p)
    p.compile(migraphx.get_target("ref"))
    for y, e in zip(p.run(given), expected):
        y = np.array(y)
        assert y.dtype == e.dtype
        np.testing.assert_allclose(y, e)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("node, opset, x, types", [
    (helper.make_node("Dropout", ["x"], ["y", "y1"]), 7, np.float64([[1, 2]]), [np.float64, np.float64]),
    (helper.make_node("Dropout", ["x"], ["y", "y1"]), 10, np.float64([[1, 2]]), [np.float64, np.bool_]),
    (helper.make_node("QuantizeLinear", ["x", "s"], ["y"]), 13, np.float32([[1, 2]]), [np.uint8]),
    (helper.make_node("LayerNormalization", ["x", "s"], ["y", "y1", "y2"]), 17, np.float64([[1, 2]]),
     [np.float64, np.float32, np.float32]),
    (helper.make_node("RandomNormalLike", ["x"], ["y"], dtype=TensorProto.DOUBLE), 1, np.int64([[1, 2]]), [np.float64]),
], ids=["dropout 7", "dropout 10", "quantize", "layer norm", "random"])
def test_types_of_results(node, opset, x, types, late):
    """By the standard, whether the node is imported with the model or when it runs."""
    names = {np.int64: TensorProto.INT64, np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE}
    inputs = [helper.make_tensor_value_info("x", names[x.dtype.type], None if late else x.shape)]
    scale = numpy_helper.from_array(np.array(0.5 if node.op_type == "QuantizeLinear" else [1, 1], x.dtype), "s")
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info(name) for name in node.output], [scale])
    p = migraphx.parse_onnx_buffer(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]).SerializeToString())
    assert ("onnx::deferred" in str(p)) == late
    p.compile(migraphx.get_target("ref"))
    assert [np.array(y).dtype.type for y in p.run({"x": x})] == types


def test_random_numbers_of_the_lengths_of_strings():
    """What the Like forms read of their input is its lengths."""
    words = helper.make_tensor("w", TensorProto.STRING, [2, 3], [b"a"] * 6)
    graph = helper.make_graph([helper.make_node("RandomUniformLike", ["w"], ["y"], dtype=1)], "g", [],
                              [helper.make_empty_tensor_value_info("y")], [words])
    p = migraphx.parse_onnx_buffer(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    p.compile(migraphx.get_target("cpu"))
    y = np.array(p.run({})[0])
    assert y.shape == (2, 3) and y.dtype == np.float32 and (0 <= y).all() and (y < 1).all() and len(set(y.ravel())) > 1


@pytest.mark.parametrize("use", [
    lambda p, path: migraphx.save(p, path),
    lambda p, path: migraphx.save(p, path, format="json"),
    lambda p, path: migraphx.quantize_fp16(p),
    lambda p, path: migraphx.quantize_bf16(p),
    lambda p, path: p.compile(migraphx.get_target("ref")) or p.run({"x": np.zeros((1, 1000), np.float32)}),
], ids=["msgpack", "json", "fp16", "bf16", "run"])
def test_a_model_cut_short_after_it_was_read(use, tmp_path):
    """Weights are read from the file when they are needed: zeros in their place are no weights."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1000])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones((1000, 1000), np.float32), "w")])
    path = tmp_path / "model.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    p = migraphx.parse_onnx(str(path))
    os.truncate(path, 8192)
    saved = tmp_path / "model.mxr"
    saved.write_bytes(b"what was there")
    with pytest.raises(RuntimeError, match="became shorter"):
        use(p, str(saved))
    assert saved.read_bytes() == b"what was there" and sorted(f.name for f in tmp_path.iterdir()) == ["model.mxr", "model.onnx"]


def relu_of(domain, opsets):
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], domain=domain)], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets]).SerializeToString()


def test_operators_under_other_domains():
    """A known operator under a domain that nobody knows, and one of com.microsoft without its domain."""
    x = np.float32([-1, 0, 2])
    p = migraphx.parse_onnx_buffer(relu_of("my.company", [("", 17), ("my.company", 1)]))
    p.compile(migraphx.get_target("ref"))
    np.testing.assert_array_equal(np.array(p.run({"x": x})[0]), np.maximum(x, 0))
    with pytest.raises(RuntimeError, match="Relu"):
        migraphx.parse_onnx_buffer(relu_of("ai.onnx.ml", [("", 17), ("ai.onnx.ml", 3)]))  # a domain that is known, without it
    graph = helper.make_graph([helper.make_node("QuickGelu", ["x"], ["y"], alpha=1.0)], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    p = migraphx.parse_onnx_buffer(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    p.compile(migraphx.get_target("ref"))
    np.testing.assert_allclose(np.array(p.run({"x": x})[0]), x / (1 + np.exp(-x)), rtol=1e-6)


def test_a_tower_of_functions_in_the_first_body():
    """40 functions that each call the next twice make 2^40 nodes: refused before any is made."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("tower", 1)]
    functions = []
    for i in range(40):
        op, domain = ("Relu", "") if i == 39 else (f"F{i + 1}", "tower")
        nodes = [helper.make_node(op, ["a"], ["b"], domain=domain), helper.make_node(op, ["b"], ["c"], domain=domain)]
        functions.append(helper.make_function("tower", f"F{i}", ["a"], ["c"], nodes, opsets))
    out = [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)]
    branch = helper.make_graph([helper.make_node("F0", ["x"], ["t"], domain="tower")], "then", [], out)
    other = helper.make_graph([helper.make_node("Relu", ["x"], ["t"])], "else", [], out)
    graph = helper.make_graph([helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other)], "g",
                              [helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, functions=functions, opset_imports=opsets).SerializeToString()
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="nodes"):
        migraphx.parse_onnx_buffer(model)
    assert time.monotonic() - start < 1  # counted, not made: making ten million nodes takes longer


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("name, alpha", [("Celu", 1.0), ("Celu", 0.7), ("Selu", 1.5)])
def test_bfloat16_is_rounded_once(target, name, alpha):
    bf16 = pytest.importorskip("ml_dtypes").bfloat16
    x = np.linspace(-3, 3, 2001).astype(bf16)
    graph = helper.make_graph(
        [helper.make_node(name, ["x"], ["y"], alpha=alpha, **({"gamma": 1.25} if name == "Selu" else {}))], "g",
        [helper.make_tensor_value_info("x", TensorProto.BFLOAT16, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, x.shape)])
    p = migraphx.parse_onnx_buffer(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)]).SerializeToString())
    p.compile(target)
    v = x.astype(np.float64)
    want = np.maximum(v, 0) + np.minimum(0, alpha * np.expm1(v / (alpha if name == "Celu" else 1)))
    got = np.asarray(p.run({"x": x})[0]).astype(np.float64)
    want *= 1.25 if name == "Selu" else 1
    half_a_unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(want), 1e-30))) - 8)
    assert np.all(np.abs(got - want) <= half_a_unit * 1.001)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_a_quotient_that_is_rounded_is_a_quotient(target):
    """Values near ties, as quantizing meets them: a product with the reciprocal rounds some the other way."""
    scale = np.float32(0.07)
    graph = helper.make_graph([helper.make_node("Div", ["x", "s"], ["q"]), helper.make_node("Round", ["q"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2000])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(scale, "s")])
    p = migraphx.parse_onnx_buffer(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    p.compile(migraphx.get_target(target))
    x = (np.arange(-1000, 1000) + np.float32(0.5)).astype(np.float32) * scale
    assert np.array_equal(np.array(p.run({"x": migraphx.argument(x)})[0]), np.round(x / scale))


@pytest.mark.parametrize("name", ["scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions"])
def test_lists_of_scan_have_an_entry_for_each(name):
    body = helper.make_graph([helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Identity", ["c"], ["d"])], "body",
                             [helper.make_tensor_value_info(k, TensorProto.FLOAT, [2]) for k in "ab"],
                             [helper.make_tensor_value_info(k, TensorProto.FLOAT, [2]) for k in "cd"])

    def parse(**lists):
        node = helper.make_node("Scan", ["x", "z"], ["y", "y1"], body=body, num_scan_inputs=1, **lists)
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
                                                helper.make_tensor_value_info("z", TensorProto.FLOAT, [3, 2])],
                                  [helper.make_tensor_value_info(k, TensorProto.FLOAT, None) for k in ("y", "y1")])
        return migraphx.parse_onnx_buffer(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    parse(**{name: [0]})
    with pytest.raises(RuntimeError, match=f"{name} has 2 entries for 1"):
        parse(**{name: [0, 0]})


def test_a_condition_is_one_value():
    branch = helper.make_graph([helper.make_node("Neg", ["x"], ["z"])], "b", [], [helper.make_tensor_value_info("z", TensorProto.FLOAT, [3])])
    graph = helper.make_graph([helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)], "g",
                              [helper.make_tensor_value_info("c", TensorProto.BOOL, [2]), helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])])
    with pytest.raises(RuntimeError, match="the condition has 2 elements, not 1"):
        migraphx.parse_onnx_buffer(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
