# SPDX-License-Identifier: MIT
"""Building, printing, compiling and running programs."""
import threading

import migraphx
import numpy as np
import pytest

GRAPH = '''module: "main"
main:@0 = @literal{1} -> float_type, {1, 1, 1, 1}, {1, 1, 1, 1}
input = @param:input -> float_type, {1, 1, 4, 6}, {24, 24, 6, 1}
main:@2 = convolution[padding={0, 0},stride={1, 1},dilation={1, 1},group=1,padding_mode=0,use_dynamic_same_auto_pad=0]\
(input,main:@0) -> float_type, {1, 1, 4, 6}, {24, 24, 6, 1}
main:@3 = slice[axes={2, 3},starts={0, 2},ends={4, 5}](main:@2) -> float_type, {1, 1, 4, 3}, {24, 24, 6, 1}
main:@4 = contiguous(main:@3) -> float_type, {1, 1, 4, 3}, {12, 12, 3, 1}
main:@5 = flatten[axis=1](main:@4) -> float_type, {1, 12}, {12, 1}
main:@6 = @return(main:@5)

'''


def guide():
    """The hand-built network of the user's guide."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("input", migraphx.shape(type="float_type", lens=[1, 1, 4, 6]))
    w = m.add_literal(np.ones((1, 1, 1, 1), np.float32))
    y = m.add_instruction(
        migraphx.op("convolution", padding=[0, 0], stride=[1, 1], dilation=[1, 1], group=1, padding_mode=0), [x, w])
    y = m.add_instruction(migraphx.op("slice", axes=[2, 3], starts=[0, 2], ends=[4, 5]), [y])
    y = m.add_instruction(migraphx.op("contiguous"), [y])
    y = m.add_instruction(migraphx.op("flatten"), [y])
    m.add_return([y])
    return p


def test_guide_prints_to_the_letter(capfd):
    p = guide()
    assert str(p) == GRAPH
    p.print()
    assert capfd.readouterr().out == GRAPH + "\n"


def test_guide_gives_its_twelve_numbers():
    p = guide()
    p.compile(migraphx.get_target("ref"), offload_copy=True, device_id=0)
    assert p.is_compiled()
    data = np.arange(24, dtype=np.float32).reshape(1, 1, 4, 6)
    for value in (data, migraphx.argument(data), memoryview(data)):
        result = p.run({"input": value, "unused": data})[0]
        assert result.tolist() == [2, 3, 4, 8, 9, 10, 14, 15, 16, 20, 21, 22]
        assert np.asarray(result).shape == (1, 12)


def test_inputs_in_other_layouts():
    p = guide()
    p.compile(migraphx.get_target("ref"))
    data = np.arange(24, dtype=np.float32).reshape(1, 1, 6, 4).transpose(0, 1, 3, 2)
    assert p.run({"input": data})[0].tolist() == data[:, :, 0:4, 2:5].ravel().tolist()


def test_errors_carry_the_real_message():
    p = guide()
    p.compile(t=migraphx.get_target("ref"))
    with pytest.raises(RuntimeError, match="Parameter not found: input"):
        p.run({})
    with pytest.raises(RuntimeError, match=r"Incorrect shape \{float_type, \{24\}, \{1\}\} for parameter: input"):
        p.run({"input": np.zeros(24, np.float32)})
    with pytest.raises(RuntimeError, match="Operator not found: nonsense"):
        migraphx.op("nonsense")
    with pytest.raises(RuntimeError, match="No key 'nonsense' in concat"):
        migraphx.op("concat", nonsense=1)
    with pytest.raises(RuntimeError, match="Requested target 'tpu' is not loaded or not supported"):
        migraphx.get_target("tpu")
    with pytest.raises(RuntimeError, match="compiled already"):
        p.compile(migraphx.get_target("ref"))


def test_to_py_builds_an_equal_program():
    p = guide()
    scope = {"migraphx": migraphx}
    exec(p.to_py(), scope)
    assert scope["p"] == p
    assert p.clone() == p and not p.clone().is_compiled()


def test_submodules():
    p = migraphx.program()
    m = p.get_main_module()
    then, other = p.create_module("then"), p.create_module("other")
    condition = m.add_parameter("c", migraphx.shape(type="bool", lens=[1]))
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[3]))
    y = m.add_parameter("y", migraphx.shape(type="float", lens=[3]))
    then.add_return([then.add_instruction(migraphx.op("add"), [x, y])])
    other.add_return([other.add_instruction(migraphx.op("mul"), [x, y])])
    both = m.add_instruction(migraphx.op("if"), [condition], [then, other])
    m.add_return([m.add_instruction(migraphx.op("get_tuple_elem", index=0), [both])])
    scope = {"migraphx": migraphx}
    exec(p.to_py(), scope)
    p.sort()
    again = scope["p"]
    again.sort()
    assert again == p
    p.compile(migraphx.get_target("ref"))
    a, b = np.float32([1, 2, 3]), np.float32([4, 5, 6])
    assert p.run({"c": np.array([True]), "x": a, "y": b})[0].tolist() == [5, 7, 9]
    assert p.run({"c": np.array([False]), "x": a, "y": b})[0].tolist() == [4, 10, 18]


def test_walking():
    p = guide()
    m = p.get_main_module()
    names = [ins.name() for ins in m]
    assert names == ["@literal", "@param", "convolution", "slice", "contiguous", "flatten", "@return"]
    literal, param, conv = list(m)[:3]
    assert conv.inputs() == [param, literal] and param.outputs() == [conv]
    assert conv != param and len({conv, param, literal, list(m)[2]}) == 3
    assert literal.get_literal().tolist() == [1] and conv.shape().lens() == [1, 1, 4, 6]
    assert conv.op().name() == "convolution" and conv.op().values()["group"] == 1
    with pytest.raises(RuntimeError, match="not a literal"):
        conv.get_literal()
    del p, m  # instructions keep their program
    assert conv.outputs()[0].name() == "slice"


def test_attributes():
    op = migraphx.op("pooling", mode=migraphx.op.pooling_mode.max, lengths=(2, 2), stride=np.array([2, 2]),
                     padding=[0, 0])
    assert op.name() == "pooling" and op.values()["mode"] == "max" and op.values()["lengths"] == [2, 2]
    convert = migraphx.op("convert", target_type=migraphx.shape.type_t.half_type)
    assert repr(convert) == "convert[target_type=1]"
    assert migraphx.op("leaky_relu", alpha=0.5).values() == {"alpha": 0.5}
    assert [m.name for m in migraphx.op.pooling_mode] == ["average", "max", "lpnorm"]
    assert [m.name for m in migraphx.op.rnn_direction] == ["forward", "reverse", "bidirectional"]


def test_threads_share_a_program():
    p = guide()
    p.compile(migraphx.get_target("ref"))
    wrong = []

    def work(offset):
        data = np.arange(24, dtype=np.float32).reshape(1, 1, 4, 6) + offset
        for _ in range(20):
            if p.run({"input": data})[0].tolist() != data[:, :, 0:4, 2:5].ravel().tolist():
                wrong.append(offset)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_parameters_and_outputs():
    p = migraphx.program()
    m = p.get_main_module()
    shape = migraphx.shape(type="float", lens=[2])
    a, b = m.add_parameter("zeta", shape), m.add_parameter("alpha", shape)
    m.add_return([m.add_instruction(migraphx.op("sub"), [a, b]), a])
    assert p.get_parameter_names() == ["zeta", "alpha"]
    assert list(p.get_parameter_shapes()) == ["zeta", "alpha"] and p.get_parameter_shapes()["zeta"] == shape
    assert p.get_output_shapes() == [shape, shape]
    m.replace_return([b])
    assert p.get_output_shapes() == [shape]


def test_modules_outlive_compiling():
    program = migraphx.program()
    module = program.get_main_module()
    x = module.add_parameter("x", migraphx.shape(type="float_type", lens=[2, 3]))
    y = module.add_instruction(migraphx.op("exp"), [module.add_instruction(migraphx.op("relu"), [x])])
    module.add_return([y])
    program.compile(migraphx.get_target("cpu"))
    assert "@param:x" in str(module)
    assert [i.name() for i in module][-1] == "@return"
    with pytest.raises(RuntimeError, match="before its program was compiled"):
        y.shape()
    assert y == y and hash(y) == hash(y)


@pytest.mark.parametrize("kind, digits", [("fp16", 2e-3), ("bf16", 2e-2)])
def test_quantize_float(kind, digits):
    def build():
        p = migraphx.program()
        m = p.get_main_module()
        x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[3, 8]))
        w = m.add_literal(np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4))
        y = m.add_instruction(migraphx.op("dot"), [x, w])
        m.add_return([m.add_instruction(migraphx.op("tanh"), [y])])
        return p

    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(3, 8)
    expected = np.tanh(x @ np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4))
    quantize = getattr(migraphx, "quantize_" + kind)
    for names, narrow in ((["all"], True), (["dot"], True), (["tanh"], True), (["relu"], False)):
        program = build()
        quantize(program, names)
        assert (kind.replace("fp16", "half") + "_type" in str(program)) == narrow
        program.compile(migraphx.get_target("ref"))
        result = np.array(program.run({"x": x})[0])
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, expected, atol=digits)
    with pytest.raises(RuntimeError, match="is compiled"):
        quantize(program)


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("kind, digits", [("fp16", 2e-3), ("bf16", 2e-2)])
def test_masks_survive_quantize_float(kind, digits, target):
    """A mask of the lowest float stays a number: a row that is masked out is uniform, not NaN."""
    lowest = np.finfo(np.float32).min
    scores = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    keep = np.array([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]], bool)
    mask = np.where(keep, np.float32(0), lowest)
    exact = np.exp(scores + mask - (scores + mask).max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    shape = migraphx.shape(type="float_type", lens=[3, 4])
    for form in ("parameter", "literal", "where", "sliced"):
        p = migraphx.program()
        m = p.get_main_module()
        x = m.add_parameter("x", shape)
        given = {"x": scores}
        if form == "parameter":
            masked = m.add_instruction(migraphx.op("add"), [x, m.add_parameter("mask", shape)])
            given["mask"] = mask
        elif form == "literal":
            masked = m.add_instruction(migraphx.op("add"), [x, m.add_literal(mask)])
        elif form == "where":
            low = m.add_literal(np.full((3, 4), lowest, np.float32))
            masked = m.add_instruction(migraphx.op("where"), [m.add_literal(keep), x, low])
        else:
            wide = m.add_parameter("mask", migraphx.shape(type="float_type", lens=[3, 6]))
            given["mask"] = np.pad(mask, [(0, 0), (0, 2)])
            cut = m.add_instruction(migraphx.op("slice", axes=[1], starts=[0], ends=[4]), [wide])
            masked = m.add_instruction(migraphx.op("add"), [x, cut])
        m.add_return([m.add_instruction(migraphx.op("softmax", axis=1), [masked])])
        getattr(migraphx, "quantize_" + kind)(p)
        p.compile(migraphx.get_target(target))
        np.testing.assert_allclose(np.array(p.run(given)[0]), exact, atol=digits, err_msg=form)


def test_infinities_are_found_after_quantize_float():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[4]))
    m.add_return([m.add_instruction(migraphx.op("isinf"), [x])])
    migraphx.quantize_fp16(p)
    p.compile(migraphx.get_target("ref"))
    assert np.array(p.run({"x": np.float32([1, 1e6, np.inf, -np.inf])})[0]).tolist() == [False, False, True, True]


def test_autocast_fp8():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="fp8e4m3fn_type", lens=[2, 3]))
    y = m.add_parameter("y", migraphx.shape(type="fp8e4m3fn_type", lens=[2, 3]))
    m.add_return([m.add_instruction(migraphx.op("add"), [x, y])])
    migraphx.autocast_fp8(p)
    assert [s.type_string() for s in p.get_parameter_shapes().values()] == ["float_type"] * 2
    assert p.get_output_shapes()[0].type_string() == "float_type"
    p.compile(migraphx.get_target("ref"))
    one = np.full((2, 3), 1.25, np.float32)
    np.testing.assert_array_equal(np.array(p.run({"x": one, "y": one})[0]), 2.5)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_a_loop_that_doubles_meets_the_limit_of_its_run(target):
    onnx = pytest.importorskip("onnx")
    f, h = onnx.TensorProto.FLOAT, onnx.helper
    body = h.make_graph(
        [h.make_node("Concat", ["v", "v"], ["w"], axis=0), h.make_node("Identity", ["c"], ["d"])], "body",
        [h.make_tensor_value_info("i", onnx.TensorProto.INT64, []), h.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
         h.make_tensor_value_info("v", f, ["n"])],
        [h.make_tensor_value_info("d", onnx.TensorProto.BOOL, []), h.make_tensor_value_info("w", f, ["m"])])
    graph = h.make_graph([h.make_node("Loop", ["rounds", "", "x"], ["y"], body=body)], "g",
                         [h.make_tensor_value_info("rounds", onnx.TensorProto.INT64, []), h.make_tensor_value_info("x", f, [1])],
                         [h.make_tensor_value_info("y", f, ["k"])])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=8)
    p = migraphx.parse_onnx_buffer(model.SerializeToString())
    p.compile(target)
    p.set_run_memory(16 << 20)
    x = np.ones(1, np.float32)
    assert np.array(p.run({"rounds": np.int64(18), "x": x})[0]).size == 1 << 18  # 1 MiB, beside the half before it
    with pytest.raises(MemoryError, match="in a run that may hold 16777216 bytes"):
        p.run({"rounds": np.int64(40), "x": x})
    assert np.array(p.run({"rounds": np.int64(2), "x": x})[0]).size == 4
    with pytest.raises(ValueError, match="-1 bytes"):
        p.set_run_memory(-1)


def test_seeds():
    p = migraphx.program()
    m = p.get_main_module()
    like = m.add_literal(np.zeros(4, np.float32))
    m.add_return([m.add_instruction(migraphx.op("random_uniform"), [m.add_instruction(migraphx.op("random_seed"), []), like])])
    p.compile("cpu")
    a, b = (np.array(p.run({})[0]) for _ in range(2))
    p.set_seed(3)
    c, d = (np.array(p.run({})[0]) for _ in range(2))
    assert (a != b).any() and (c == d).all()


def test_tuning_ends_with_its_time():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[20, 300]))
    for width in (280, 260, 240):
        w = np.random.default_rng(width).standard_normal((x.shape().lens()[1], width)).astype(np.float32)
        x = m.add_instruction(migraphx.op("dot"), [x, m.add_literal(w)])
    m.add_return([x])
    q = p.clone()
    p.compile("cpu", exhaustive_tune=True, tuning_seconds=1e-9)
    q.compile("cpu", exhaustive_tune=True)
    assert "the time for tuning was spent, 2 problems are not measured" in p.explain()
    assert "3 problems measured" in q.explain()
    with pytest.raises(RuntimeError, match="-1 seconds"):
        migraphx.program().compile("cpu", tuning_seconds=-1)


def recurrent(convert):
    """A gru whose bias and lengths are left out, its operands converted to half or not."""
    r = np.random.default_rng(3)
    p = migraphx.program()
    m = p.get_main_module()
    x, w, back = (m.add_literal(r.uniform(-1, 1, lens).astype(np.float16 if convert else np.float32))
                  for lens in ((3, 2, 4), (1, 9, 4), (1, 9, 3)))
    absent = m.add_instruction(migraphx.op("undefined"), [])
    if convert:
        absent = m.add_instruction(migraphx.op("convert", target_type=1), [absent])
    m.add_return([m.add_instruction(migraphx.op("gru", hidden_size=3), [x, w, back, absent, absent])])
    p.compile(migraphx.get_target("ref"))
    return np.array(p.run({})[0])


def test_an_operand_that_is_not_there_stays_so_when_converted():
    np.testing.assert_allclose(recurrent(True), recurrent(False), atol=5e-3)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_identity_gives_its_first_operand(target):
    p = migraphx.program()
    m = p.get_main_module()
    x, y = (m.add_parameter(name, migraphx.shape(type="float", lens=[3])) for name in "xy")
    m.add_return([m.add_instruction(migraphx.op("identity"), [x, y])])
    p.compile(migraphx.get_target(target))
    given = {"x": np.float32([1, 2, 3]), "y": np.float32([4, 5, 6])}
    assert np.array_equal(np.array(p.run({k: migraphx.argument(v) for k, v in given.items()})[0]), given["x"])
