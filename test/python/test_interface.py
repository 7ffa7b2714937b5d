# SPDX-License-Identifier: MIT
"""The names, methods and keyword defaults that MIGraphX's module has, and how everything presents itself."""
import contextlib
import inspect
import io
import pydoc
import sys
import threading
import time

import migraphx
import numpy as np
import pytest

NONE = inspect.Parameter.empty
OPTIONS = dict(skip_unknown_operators=False, print_program_on_error=False)

# Parameters in order, with their defaults.
FUNCTIONS = {
    "parse_onnx": dict(filename=NONE, default_dim_value=0, default_dyn_dim_value=None, dim_params={}, map_input_dims={},
                       map_dyn_input_dims={}, **OPTIONS, max_loop_iterations=10, limit_max_iterations=65535,
                       use_debug_symbols=False),
    "parse_onnx_buffer": dict(filename=NONE, default_dim_value=0, default_dyn_dim_value=None, map_input_dims={},
                              map_dyn_input_dims={}, **OPTIONS, external_data_path="", use_debug_symbols=False),
    "parse_tf": dict(filename=NONE, is_nhwc=True, batch_size=1, map_input_dims={}, output_names=[]),
    "get_onnx_operators": {},
    "load": dict(filename=NONE, format="msgpack"),
    "save": dict(p=NONE, filename=NONE, format="msgpack"),
    "save_buffer": dict(p=NONE),
    "load_buffer": dict(b=NONE),
    "get_target": dict(name=NONE),
    "create_argument": dict(s=NONE, values=NONE),
    "generate_argument": dict(s=NONE, seed=0),
    "fill_argument": dict(s=NONE, value=NONE),
    "argument_from_pointer": dict(shape=NONE, address=NONE),
    "quantize_fp16": dict(prog=NONE, ins_names=["all"]),
    "quantize_bf16": dict(prog=NONE, ins_names=["all"]),
    "quantize_int8": dict(prog=NONE, t=NONE, calibration=[], ins_names={"dot", "convolution"}),
    "quantize_fp8": dict(prog=NONE, t=NONE, calibration=[]),
    "autocast_fp8": dict(prog=NONE),
    "allocate_gpu": dict(s=NONE, host=False),
    "to_gpu": dict(arg=NONE, host=False),
    "from_gpu": dict(arg=NONE),
    "gpu_sync": {},
}
METHODS = {
    "shape": {n: {} for n in ("type lens strides ndim elements bytes type_string type_size dyn_dims packed transposed "
                              "broadcasted standard scalar dynamic").split()},
    "dynamic_dimension": {"is_fixed": {}},
    "argument": {"get_shape": {}, "data_ptr": {}, "tolist": {}, "save": dict(argument=NONE, filename=NONE), "load": dict(filename=NONE)},
    "target": {},
    "instruction_ref": {n: {} for n in ("shape", "op", "inputs", "outputs", "name", "get_literal")},
    "macro": {"name": {}, "options": {}},
    "module": {"print": {}, "add_instruction": dict(op=NONE, args=NONE, mod_args=[]),
               "add_macro": dict(macro=NONE, args=NONE, mod_args=[]), "insert_macro": dict(ins=NONE, macro=NONE, args=NONE, mod_args=[]), "add_literal": dict(data=NONE),
               "add_parameter": dict(name=NONE, shape=NONE), "add_return": dict(args=NONE), "replace_return": dict(args=NONE)},
    "program": {"get_parameter_names": {}, "get_parameter_shapes": {}, "get_output_shapes": {}, "is_compiled": {},
                "compile": dict(t=NONE, offload_copy=True, fast_math=True, exhaustive_tune=False), "get_main_module": {},
                "create_module": dict(name=NONE), "run": dict(params=NONE),
                "run_async": dict(params=NONE, stream=NONE, stream_name=NONE), "to_py": {}, "sort": {}, "print": {}},
    "op": {"name": {}, "values": {}},
}


def parameters(function):
    """Names and defaults; that of *more is (), that of **more {}."""
    several = {inspect.Parameter.VAR_POSITIONAL: (), inspect.Parameter.VAR_KEYWORD: {}}
    return {p.name: several.get(p.kind, p.default) for p in inspect.signature(function).parameters.values() if p.name != "self"}


def begins_with(got, want):
    """The wanted parameters are there in their order; what is ours comes behind them."""
    return list(got.items())[:len(want)] == list(want.items()) and all(d is not NONE for d in list(got.values())[len(want):])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    assert begins_with(parameters(getattr(migraphx, name)), FUNCTIONS[name])


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    for method, want in METHODS[name].items():
        assert begins_with(parameters(getattr(getattr(migraphx, name), method)), want), method


@pytest.mark.skipif(sys.version_info < (3, 10), reason="classes of the stable ABI have no signatures in 3.9")
def test_constructors():
    assert parameters(migraphx.shape) == dict(type="float", lens=[1], strides=None, permutation=None, dyn_dims=None, sub_shapes=None)
    assert parameters(migraphx.argument) == dict(buffer=NONE) and not parameters(migraphx.program)
    assert list(parameters(migraphx.op)) == list(parameters(migraphx.macro)) == ["name", "kwargs"]
    assert migraphx.shape.dynamic_dimension is migraphx.dynamic_dimension
    assert all(isinstance(getattr(migraphx.dynamic_dimension, n), object) for n in ("min", "max", "optimals"))
    for name in ("instruction_ref", "module"):
        with pytest.raises(TypeError, match="is not made by calling it"):
            getattr(migraphx, name)()


def test_everything_has_a_signature_and_a_text():
    for name, thing in vars(migraphx).items():
        if name.startswith("__") or not callable(thing):
            continue
        assert sys.version_info < (3, 10) and inspect.isclass(thing) or inspect.signature(thing) is not None, name
        assert thing.__doc__ and "--" not in thing.__doc__, name
        for method, member in vars(thing).items() if inspect.isclass(thing) else ():
            if callable(member) and not inspect.isclass(member) and not method.startswith("__"):
                assert inspect.signature(getattr(thing, method)) is not None and member.__doc__, method


def test_help_teaches():
    text = pydoc.plain(pydoc.render_doc(migraphx))
    assert "compile(" in text and "offload_copy=True" in text
    lines = migraphx.__doc__.split("\n")
    code = "\n".join(line[4:] for line in lines if line.startswith("    "))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {})
    assert out.getvalue().endswith("[[1.5 1.5 1.5 1.5]\n [1.5 1.5 1.5 1.5]]\n")


def test_enumerations_print_alike_everywhere():
    kinds = migraphx.shape.type_t
    names = ("bool half float double uint8 int8 uint16 int16 int32 int64 uint32 uint64 fp8e4m3fnuz fp8e4m3fn fp8e5m2 "
             "bf16 fp8e5m2fnuz").split()
    assert sorted(k.name for k in kinds) == sorted(n + "_type" for n in names)
    assert str(kinds.float_type) == f"{kinds.float_type}" == "type_t.float_type" and int(kinds.float_type) == 2
    assert f"{migraphx.op.pooling_mode.max:>18}" == "  pooling_mode.max" and repr(kinds.half_type) == "<type_t.half_type: 1>"
    assert str(migraphx.op.rnn_direction.reverse) == "rnn_direction.reverse"


@pytest.mark.parametrize("call", [lambda: migraphx.to_gpu(1, device="far"), lambda: migraphx.gpu_sync("far"),
                                  lambda: migraphx.allocate_gpu(migraphx.shape(), device="far"),
                                  lambda: migraphx.gpudata_to_argument(migraphx.shape(), 64, device="far")])
def test_devices_are_refused_kindly(call):
    with pytest.raises(RuntimeError, match="'far' names no device: cuda, hip or opencl"):
        call()


def test_files_that_are_not_there(tmp_path):
    readers = (migraphx.parse_onnx, migraphx.load, migraphx.argument.load)
    for read in readers:
        with pytest.raises(FileNotFoundError) as caught:
            read(tmp_path / "none.onnx")
        assert isinstance(caught.value, RuntimeError) and caught.value.filename == str(tmp_path / "none.onnx")
        assert str(caught.value) == f"[Errno 2] No such file or directory: '{tmp_path / 'none.onnx'}'"
        with pytest.raises(IsADirectoryError):
            read(tmp_path)
    for write in (lambda path: migraphx.save(migraphx.program(), path), lambda path: migraphx.argument.save(migraphx.argument([1]), path)):
        with pytest.raises(FileNotFoundError):
            write(tmp_path / "none" / "x.mxr")


def test_targets():
    cpu = migraphx.get_target("cpu")
    assert cpu == migraphx.target("cpu") != migraphx.get_target("ref") and repr(cpu) == "cpu" and hash(cpu) == hash(migraphx.target("cpu"))
    for target in ("cpu", cpu):
        p = migraphx.program()
        p.compile(target)
        assert p.is_compiled()
    with pytest.raises(RuntimeError, match="'tpu' is not loaded or not supported; there are: cpu"):
        migraphx.program().compile("tpu")
    with pytest.raises(TypeError, match="a target or the name of one is wanted, not <class 'int'>"):
        migraphx.program().compile(3)


def test_modules_are_sequences():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape())
    m.add_return([x])
    assert len(m) == len(list(m)) == 2 and m == p.get_main_module() != p.create_module("other")
    assert len({m, p.get_main_module()}) == 1


def test_long_attributes_are_refused():
    with pytest.raises(ValueError, match="an attribute of 1000000000000 values is too long"):
        migraphx.op("pad", pads=range(10**12))
    with pytest.raises(RuntimeError, match="do not match: 1000000000000 and 1"):
        migraphx.create_argument(migraphx.shape(), range(10**12))


def test_saving_and_loading_let_other_threads_run(tmp_path):
    p = migraphx.program()
    m = p.get_main_module()
    m.add_return([m.add_literal(np.ones(24 << 20, np.float32))])
    done = threading.Event()

    def work():
        migraphx.save(p, tmp_path / "large.mxr")
        assert len(migraphx.save_buffer(p)) > 96 << 20
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    steps = 0
    while not done.is_set():
        time.sleep(0)
        steps += 1
    thread.join()
    assert steps > 50


def test_names_that_are_nearly_right():
    for name, meant in (("convo", "convolution or convolution_backwards"), ("Relu", "relu"), ("concatt", "concat"), ("reduce_summ", "reduce_sum")):
        with pytest.raises(RuntimeError, match=f"Operator not found: {name}; is it {meant}"):
            migraphx.op(name)
    with pytest.raises(RuntimeError, match="^Operator not found: no_such$"):
        migraphx.op("no_such")
    with pytest.raises(RuntimeError, match="^No key 'pad' in convolution; it has padding, stride, dilation, group, padding_mode"):
        migraphx.op("convolution", pad=[1, 1])
    p = migraphx.program()
    p.compile("ref")
    with pytest.raises(RuntimeError, match="is compiled already: quantize it first"):
        migraphx.quantize_fp16(p)
