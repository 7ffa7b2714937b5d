# SPDX-License-Identifier: MIT
"""Memory of a card and runs on it, on MIGRAPHX_GPU_DEVICE or whatever OpenCL has; without any there is nothing to test."""
import concurrent.futures
import os
import re
import subprocess
import sys

from card import needs_card  # first: it says which card
import migraphx
import numpy as np
import pytest

pytestmark = needs_card
RNG = np.random.default_rng(7)
FLOATS = {"type": "float_type", "lens": [5, 7]}


def program(**options):
    """tanh(x) w, compiled; and the same by numpy."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(**FLOATS))
    weights = RNG.standard_normal((7, 3)).astype(np.float32)
    w = m.add_literal(weights)
    m.add_return([m.add_instruction(migraphx.op("dot"), [m.add_instruction(migraphx.op("tanh"), [x]), w])])
    p.compile(migraphx.get_target("gpu"), **options)
    return p, lambda x: np.tanh(x) @ weights


def values():
    return RNG.standard_normal((5, 7)).astype(np.float32)


def test_there_and_back():
    for dtype in ("f4", "f2", "i8", "u1", "?"):
        x = (RNG.standard_normal((3, 4, 5)) * 50).astype(dtype)
        there = migraphx.to_gpu(x.transpose(2, 0, 1))
        assert np.array_equal(np.array(migraphx.from_gpu(there)), x.transpose(2, 0, 1))
    again = migraphx.to_gpu(there)  # of a card's memory too
    assert again.data_ptr() != there.data_ptr() and np.array_equal(np.array(migraphx.from_gpu(again)), x.transpose(2, 0, 1))
    assert np.array_equal(np.array(migraphx.to_gpu(x, host=True)), x)


def test_the_host_does_not_look():
    x = migraphx.to_gpu(values())
    for look in (np.array, memoryview):
        with pytest.raises(BufferError, match="from_gpu copies it"):
            look(x)
    for look in (str, lambda a: a.tolist(), lambda a: a == a):
        with pytest.raises(RuntimeError, match="which the host cannot read"):
            look(x)


def test_parameters_and_results_on_the_host():
    p, formula = program()
    x = values()
    assert list(p.get_parameter_shapes()) == ["x"]
    assert np.allclose(p.run({"x": x})[0], formula(x), atol=1e-5)


def test_parameters_and_results_on_the_card():
    p, formula = program(offload_copy=False)
    shapes = p.get_parameter_shapes()
    assert sorted(shapes) == ["main:#output_0", "x"] and shapes["main:#output_0"].lens() == [5, 3]
    x, out = values(), migraphx.allocate_gpu(shapes["main:#output_0"])
    results = p.run({"x": migraphx.to_gpu(x), "main:#output_0": out})
    assert results[0].data_ptr() == out.data_ptr()
    assert np.allclose(migraphx.from_gpu(results[0]), formula(x), atol=1e-5)


def test_bare_addresses():
    p, formula = program(offload_copy=False)
    shapes = p.get_parameter_shapes()
    x, out = values(), migraphx.allocate_gpu(shapes["main:#output_0"])
    there = migraphx.to_gpu(x)
    results = p.run({"x": migraphx.argument_from_pointer(shapes["x"], there.data_ptr()),
                     "main:#output_0": migraphx.gpudata_to_argument(shapes["main:#output_0"], out.data_ptr())})
    assert np.allclose(migraphx.from_gpu(results[0]), formula(x), atol=1e-5)
    lent = migraphx.argument_from_pointer(shapes["main:#output_0"], out.data_ptr())
    assert np.allclose(migraphx.from_gpu(lent), formula(x), atol=1e-5)


def test_runs_that_are_not_waited_for():
    p, formula = program(offload_copy=False)
    shape = p.get_parameter_shapes()["main:#output_0"]
    inputs = [values() for _ in range(20)]
    outs = [migraphx.allocate_gpu(shape) for _ in inputs]
    there = [migraphx.to_gpu(x) for x in inputs]
    for x, out in zip(there, outs):
        p.run_async({"x": x, "main:#output_0": out}, 0, "ihipStream_t")
    migraphx.gpu_sync()
    for x, out in zip(inputs, outs):
        assert np.allclose(migraphx.from_gpu(out), formula(x), atol=1e-5)


def test_wrong_sides_are_named():
    p, _ = program(offload_copy=False)
    out = migraphx.allocate_gpu(p.get_parameter_shapes()["main:#output_0"])
    with pytest.raises(RuntimeError, match="parameter x lies in memory of the host, not of"):
        p.run({"x": values(), "main:#output_0": out})
    with pytest.raises(RuntimeError, match="Parameter not found: main:#output_0"):
        p.run({"x": migraphx.to_gpu(values())})
    p, _ = program()
    with pytest.raises(RuntimeError, match="parameter x lies in memory of .*, not of the host"):
        p.run({"x": migraphx.to_gpu(values())})


def test_results_outlive_their_program():
    p, formula = program(offload_copy=False)
    x, out = values(), migraphx.allocate_gpu(p.get_parameter_shapes()["main:#output_0"])
    results = p.run_async({"x": migraphx.to_gpu(x), "main:#output_0": out}, 0, "ihipStream_t")
    del p, out
    assert np.allclose(migraphx.from_gpu(results[0]), formula(x), atol=1e-5)


def test_card_numbers():
    p = migraphx.program()
    m = p.get_main_module()
    m.add_return([m.add_parameter("x", migraphx.shape(**FLOATS))])
    with pytest.raises(RuntimeError, match="there is no number 77"):
        p.compile("gpu", device_id=77)
    with pytest.raises(RuntimeError, match="there is no device 1"):
        p.compile("cpu", device_id=1)


class Lender:
    """An array of somebody else's on a card: what torch.Tensor is to DLPack."""

    def __init__(self, argument, version=None):
        self.argument, self.version = argument, version

    def __dlpack__(self, *, stream=None, max_version=None):
        return self.argument.__dlpack__(max_version=self.version and max_version)

    def __dlpack_device__(self):
        return self.argument.__dlpack_device__()


@pytest.mark.parametrize("version", [None, 1])
def test_arrays_of_others(version):
    p, formula = program(offload_copy=False)
    x, out = values(), migraphx.allocate_gpu(p.get_parameter_shapes()["main:#output_0"])
    there = migraphx.to_gpu(x)
    assert there.__dlpack_device__()[0] in (2, 4, 10) and migraphx.argument(x).__dlpack_device__() == (1, 0)
    seen = migraphx.argument(Lender(there, version))
    assert seen.data_ptr() == there.data_ptr() and np.array_equal(migraphx.from_gpu(seen), x)
    for run in (p.run, lambda feed: p.run_async(feed, 0, "ihipStream_t")):
        results = run({"x": Lender(there, version), "main:#output_0": Lender(out, version)})
        assert results[0].data_ptr() == out.data_ptr()
        assert np.allclose(migraphx.from_gpu(results[0]), formula(x), atol=1e-5)
    with pytest.raises(BufferError, match="lent where it lies"):
        there.__dlpack__(dl_device=(1, 0))


def test_a_lender_keeps_the_bytes():
    x = values()
    there = migraphx.to_gpu(x)
    seen = migraphx.argument(Lender(there))
    del there
    migraphx.to_gpu(values())
    assert np.array_equal(migraphx.from_gpu(seen), x)


def test_it_prints_as_the_guides_show():
    """What a compiled program looks like in MIGraphX's own words; the text to read back is the plain graph's."""
    def text(offload_copy):
        p, _ = program(offload_copy=offload_copy)
        code = "import migraphx, sys; p = migraphx.load_buffer(sys.stdin.buffer.read()); p.print()"
        return subprocess.run([sys.executable, "-c", code], input=migraphx.save_buffer(p), capture_output=True, check=True).stdout.decode()
    shown = text(False)
    for line in (r"check_context::migraphx::gpu::context -> float_type, \{\}, \{\}", r"hip::hip_allocate_memory\[shape=int8_type, \{\d+\}, \{1\},id=main:scratch\]",
                 r"hip::hip_copy_literal\[id=main:@literal:0\] -> float_type, \{7, 3\}", r"load\[offset=\d+,end=\d+\]\(main:@1\) -> float_type, \{5, 7\}",
                 r"gpu::code_object\[code_object=\d+,symbol_name=tanh_kernel,global=\d+,local=\d+,\]\(x,main:@\d+\)", r"gpu::gemm\(main:@\d+,main:@\d+,main:#output_0\)",
                 r"x = @param:x -> float_type", r"@return\(main:@\d+\)"):
        assert re.search(line, shown), (line, shown)
    shown = text(True)
    for line in (r"hip::copy_to_gpu\(x,main:@\d+\)", r"(main:@\d+) = hip::copy_from_gpu\(main:@\d+\) -> float_type, \{5, 3\}, \{3, 1\}\n.*hip::sync_stream\(\1\)"):
        assert re.search(line, shown), (line, shown)


@pytest.mark.parametrize("offload_copy", [True, False])
def test_a_result_in_another_shape_is_not_copied(offload_copy):
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[4, 6]))
    m.add_return([m.add_instruction(migraphx.op("reshape", dims=[2, 12]), [m.add_instruction(migraphx.op("tanh"), [x])])])
    p.compile(migraphx.get_target("gpu"), offload_copy=offload_copy)
    assert "gpu::copy (" not in p.explain()
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    feeds = {"x": x} if offload_copy else {"x": migraphx.to_gpu(x), "main:#output_0": migraphx.allocate_gpu(migraphx.shape(type="float_type", lens=[2, 12]))}
    y = p.run(feeds)[0]
    y = np.array(y) if offload_copy else np.array(migraphx.from_gpu(feeds["main:#output_0"]))
    assert np.allclose(y, np.tanh(x).reshape(2, 12), atol=1e-6)


def test_two_cards_at_once():
    """One program on each of two cards, by threads side by side; neither takes the other's memory."""
    try:
        on = [program(device_id=i) for i in range(2)]
    except RuntimeError as e:
        pytest.skip(str(e))
    inputs = [values() for _ in range(20)]

    def work(p, expect):
        return all(np.abs(np.array(p.run({"x": x})[0]) - expect(x)).max() < 1e-5 for x in inputs)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(f.result() for f in [pool.submit(work, *on[i % 2]) for i in range(8)])
    p, expect = program(offload_copy=False, device_id=0)
    q, _ = program(offload_copy=False, device_id=1)
    here = {name: migraphx.to_gpu(inputs[0]) if name == "x" else migraphx.allocate_gpu(s) for name, s in p.get_parameter_shapes().items()}
    assert np.abs(np.array(migraphx.from_gpu(p.run(here)[0])) - expect(inputs[0])).max() < 1e-5
    with pytest.raises(RuntimeError, match=r"lies in memory of .*\(.*:0\), not of .*\(.*:1\)"):
        q.run(here)


def test_what_the_host_computes_is_lent_by_the_cpu():
    """Rows that a mask picks, known in number at run time only, times a constant, twice with other numbers of them."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[60, 40]))
    mask = m.add_parameter("mask", migraphx.shape(type="bool_type", lens=[60]))
    weights = RNG.standard_normal((40, 30)).astype(np.float32)
    rows = m.add_instruction(migraphx.op("nonzero"), [mask])
    rows = m.add_instruction(migraphx.op("squeeze", axes=[0]), [rows])
    picked = m.add_instruction(migraphx.op("gather", axis=0), [x, rows])
    m.add_return([m.add_instruction(migraphx.op("dot"), [picked, m.add_literal(weights)])])
    p.compile(migraphx.get_target("gpu"))
    assert re.search(r"on the host: cpu [\w+]+ \d+", p.explain())
    for share in (0.5, 0.9, 0.5):
        values, here = RNG.standard_normal((60, 40)).astype(np.float32), RNG.random(60) < share
        result = np.array(p.run({"x": values, "mask": here})[0])
        want = values[here].astype(np.float64) @ weights
        assert result.shape == want.shape
        assert np.abs(result - want).max() < 40 * 6e-8 * np.abs(want).max()
    assert int(re.search(r"packed constants: (\d+) bytes", p.explain())[1]) >= weights.nbytes


def test_quantised_models_run_on_the_card():
    """x and weights as bytes with scales beside them, as QDQ files have it; nothing of it falls to the host."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[6, 16]))
    weights = RNG.integers(-127, 128, (16, 5)).astype(np.int8)
    scales, zero = RNG.random(5).astype(np.float32) / 64, np.uint8(117)

    def spread(value, axis, lens):
        return m.add_instruction(migraphx.op("broadcast", axis=axis, out_lens=lens), [m.add_literal(np.atleast_1d(value))])

    step = np.float32(0.03125)
    bytes_of = [spread(step, 0, [1]), spread(zero, 0, [1])]
    bytes_of = [m.add_instruction(migraphx.op("multibroadcast", out_lens=[6, 16]), [v]) for v in bytes_of]
    q = m.add_instruction(migraphx.op("quantizelinear"), [x, *bytes_of])
    dq = m.add_instruction(migraphx.op("dequantizelinear"), [q, *bytes_of])
    w = m.add_instruction(migraphx.op("dequantizelinear"), [m.add_literal(weights), spread(scales, 1, [16, 5])])
    m.add_return([m.add_instruction(migraphx.op("dot"), [dq, w])])
    p.compile(migraphx.get_target("gpu"))
    assert ": ref (" not in p.explain()
    value = RNG.standard_normal((6, 16)).astype(np.float32)
    seen = (np.clip(np.rint(value / step) + zero, 0, 255) - zero) * step
    want = seen.astype(np.float64) @ (weights * scales).astype(np.float64)
    assert np.abs(np.array(p.run({"x": value})[0]) - want).max() < 16 * 6e-8 * np.abs(seen).max() * np.abs(weights * scales).max() * 16


NARROW = ["fp8e4m3fn_type", "fp8e4m3fnuz_type", "fp8e5m2_type", "fp8e5m2fnuz_type", "fp4e2m1_type", "int4_type", "uint4_type", "int2_type", "uint2_type"]


@pytest.mark.parametrize("kind", NARROW)
def test_narrow_types_are_as_the_reference_has_them(kind):
    """Every half, infinities and NaN among them, and floats beside them, to the type and back, bit by bit."""
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    x = np.concatenate([halves, halves * np.float32(1 + 2**-12), np.float32([1e30, -1e30, 1e-30, 3e38])])
    results = []
    for target in ("gpu", "ref"):
        p = migraphx.program()
        m = p.get_main_module()
        there = m.add_instruction(migraphx.op("convert", target_type=kind), [m.add_parameter("x", migraphx.shape(type="float_type", lens=[x.size]))])
        m.add_return([m.add_instruction(migraphx.op("convert", target_type="float_type"), [there])])
        p.compile(migraphx.get_target(target))
        assert target == "ref" or ": ref (" not in p.explain()
        results.append(np.array(p.run({"x": x})[0]))
    assert np.array_equal(results[0], results[1], equal_nan=True)
    numbers = ~np.isnan(results[1])
    assert np.array_equal(np.signbit(results[0][numbers]), np.signbit(results[1][numbers]))


def test_a_product_read_twice_stays_on_the_card():
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[6, 16]))
    w = RNG.standard_normal((16, 5)).astype(np.float32)
    y = m.add_instruction(migraphx.op("dot"), [x, m.add_literal(w)])
    m.add_return([m.add_instruction(migraphx.op("mul"), [y, y])])
    p.compile(migraphx.get_target("gpu"))
    assert ": ref (" not in p.explain()
    value = RNG.standard_normal((6, 16)).astype(np.float32)
    want = (value.astype(np.float64) @ w) ** 2
    assert np.abs(np.array(p.run({"x": value})[0]) - want).max() < 1e-5 * want.max()
