# SPDX-License-Identifier: MIT
"""The provider on a card inside ONNX Runtime: placement, results, memory of the card, threads.

MGX_TEST_DEVICE names the card's driver, OpenCL by default. Every session forbids the host's own processor
unless it says so; results are compared with the host's own processor or with numpy.
"""
import os
import sys
import threading

os.environ["MIGRAPHX_GPU_DEVICE"] = os.environ.get("MGX_TEST_DEVICE", "opencl")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import pytest  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

ort = pytest.importorskip("onnxruntime")

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import provider  # noqa: E402
from provider import AMD, LIBRARY, MIGRAPHX, OWN, B, F, I, S, expect, model_of, placed  # noqa: E402

rng = np.random.default_rng(7)
ort.register_execution_provider_library("mgx", LIBRARY)


def device(name=OWN, kind="GPU"):
    return [d for d in ort.get_ep_devices()
            if d.ep_name == name and d.device.type == getattr(ort.OrtHardwareDeviceType, kind)]


pytestmark = pytest.mark.skipif(not device(), reason="there is no card, and no OpenCL")


def session(model, options=(), name=OWN, devices=None, **how):
    return provider.session(model, devices or device(name), options, **how)


def check(model, feed, **how):
    s = session(model, **how)
    if not how.get("fallback"):
        assert set(placed(s)) == {how.get("name", OWN)}
    provider.compare(s, feed, expect(model, feed), 1e-4, 1e-5)
    return s


def array(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def mlp(n="N"):
    return model_of([helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["s"]),
                     helper.make_node("Relu", ["s"], ["y"])], [("x", F, [n, 3])], [("y", F, [n, 4])],
                    {"w": array(3, 4), "b": array(4)})


def room_on_card(shape, dtype):
    """An OrtValue in the memory of the first card."""
    if not hasattr(ort.OrtValue, "ortvalue_from_shape_and_type") or not hasattr(ort, "copy_tensors"):
        pytest.skip("this version has no values on cards")
    memory = device()[0].memory_info(ort.OrtDeviceMemoryType.DEFAULT)
    try:
        return ort.OrtValue.ortvalue_from_shape_and_type(list(shape), dtype, memory_info=memory)
    except TypeError:
        pytest.skip("this version has no values of a provider's memory")


def on_card(value):
    room = room_on_card(value.shape, value.dtype.type)
    ort.copy_tensors([ort.OrtValue.ortvalue_from_numpy(value)], [room])
    return room


def from_card(value, dtype=np.float32):
    room = ort.OrtValue.ortvalue_from_numpy(np.zeros(value.shape(), dtype))
    ort.copy_tensors([value], [room])
    return room.numpy().copy()


# --- devices and names ---


def test_a_card_and_the_processor_are_offered():
    for name in (OWN, MIGRAPHX):
        assert len(device(name, "GPU")) >= 1 and len(device(name, "CPU")) == 1
        check(mlp(), {"x": array(2, 3)}, name=name)
        check(mlp(), {"x": array(2, 3)}, name=name, devices=device(name, "CPU"))


@pytest.mark.skipif(tuple(map(int, ort.__version__.split(".")[:2])) < (1, 27), reason="needs the provider's own word")
def test_of_both_the_card_is_taken():
    check(mlp(), {"x": array(2, 3)}, devices=device(OWN, "CPU") + device(OWN, "GPU"))
    s = ort.InferenceSession(mlp().SerializeToString(), providers=[OWN])
    assert s.get_providers()[0] == OWN
    assert s.run(None, {"x": array(5, 3)})[0].shape == (5, 4)


def test_another_target_is_refused(capfd):
    said = ""
    try:
        session(mlp(), {"target": "cpu"})
    except Exception as e:  # some versions go on to the host's processor, which the session forbids, and print it
        said = str(e)
    assert 'option target is "cpu", but the session\'s device is card' in said + capfd.readouterr().out
    check(mlp(), {"x": array(2, 3)}, options={"target": "gpu"})


# --- what runs ---


def test_fixed_sizes():
    check(mlp(2), {"x": array(2, 3)})


def test_convolutions():
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("GlobalAveragePool", ["r"], ["y"])]
    check(model_of(nodes, [("x", F, [1, 3, 8, 8])], [("y", F, [1, 5, 1, 1])], {"w": array(5, 3, 3, 3)}),
          {"x": array(1, 3, 8, 8)})


@pytest.mark.parametrize("specialise", ["0", "1"])
def test_open_sizes(specialise):
    m = mlp()
    s = check(m, {"x": array(2, 3)}, options={"specialise": specialise})
    for n in (1, 7, 2, 0, 7, *range(1, 35)):  # more than plans are kept
        x = array(n, 3)
        np.testing.assert_allclose(s.run(None, {"x": x})[0], expect(m, {"x": x})[0], rtol=1e-4, atol=1e-5)


def test_half_precision():
    m, x = mlp(4), array(4, 3)
    y, = session(m, {"fp16_enable": "1"}).run(None, {"x": x})
    want, = expect(m, {"x": x})
    assert y.dtype == np.float32 and not np.array_equal(y, want)
    np.testing.assert_allclose(y, want, rtol=1e-2, atol=1e-2)


def test_scalars_and_empty_tensors():
    m = model_of([helper.make_node("Mul", ["x", "k"], ["y"]), helper.make_node("ReduceSum", ["x"], ["z"], keepdims=0)],
                 [("x", F, ["N"]), ("k", F, [])], [("y", F, ["N"]), ("z", F, [])])
    for n in (3, 0, 1):
        check(m, {"x": array(n), "k": np.array(2, np.float32)})


def test_results_whose_sizes_only_values_say():
    m = model_of([helper.make_node("NonZero", ["x"], ["i"]), helper.make_node("Neg", ["x"], ["y"])],
                 [("x", F, [3, 4])], [("i", I, [2, "N"]), ("y", F, [3, 4])])
    check(m, {"x": np.where(array(3, 4) > 0, array(3, 4), 0).astype(np.float32)})


def test_sizes_that_values_decide():
    m = model_of([helper.make_node("Reshape", ["x", "s"], ["r"]), helper.make_node("Neg", ["r"], ["y"])],
                 [("x", F, [2, 6]), ("s", I, [2])], [("y", F, ["A", "B"])])
    s = check(m, {"x": array(2, 6), "s": np.array([3, 4], np.int64)})
    assert s.run(None, {"x": array(2, 6), "s": np.array([12, 1], np.int64)})[0].shape == (12, 1)


def test_outputs_that_are_constants_or_shared():
    m = model_of([helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Identity", ["w"], ["c"]),
                  helper.make_node("Neg", ["x"], ["z"])],
                 [("x", F, [3])], [("y", F, [3]), ("c", F, [2]), ("z", F, [3])], {"w": array(2)})
    check(m, {"x": array(3)})


def test_many_inputs():
    names = [f"x{i}" for i in range(50)]
    m = model_of([helper.make_node("Sum", names, ["y"])], [(n, F, [3]) for n in names], [("y", F, [3])])
    check(m, {n: array(3) for n in names})


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int32, np.int64, np.bool_])
def test_types(kind):
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    m = model_of([helper.make_node("Transpose", ["x"], ["y"])], [("x", element, [2, 3])], [("y", element, [3, 2])])
    check(m, {"x": (array(2, 3) * 3).astype(kind)})


def test_strings_stay_the_hosts_and_the_rest_is_the_cards():
    m = model_of([helper.make_node("Concat", ["s", "s"], ["t"], axis=0), helper.make_node("Neg", ["x"], ["y"])],
                 [("s", S, [2]), ("x", F, [3])], [("t", S, [4]), ("y", F, [3])])
    s = session(m, fallback=True)
    assert placed(s)[OWN] == ["Neg"]
    x = array(3)
    t, y = s.run(None, {"s": np.array(["a", "b"], object), "x": x})
    assert list(t) == ["a", "b", "a", "b"] and np.array_equal(y, -x)


def test_values_go_to_the_hosts_nodes_and_back():
    """What a sequence is made of is the card's, what is done with it the host's, then the card goes on."""
    nodes = [helper.make_node("Exp", ["x"], ["e"]), helper.make_node("Identity", ["s"], ["n"]),
             helper.make_node("SequenceConstruct", ["e", "x"], ["q"]),
             helper.make_node("ConcatFromSequence", ["q"], ["c"], axis=0), helper.make_node("Abs", ["c"], ["y"])]
    m = model_of(nodes, [("x", F, [3]), ("s", S, [2])], [("y", F, [6]), ("n", S, [2]), ("q", F, [])])
    m.graph.output[2].CopyFrom(helper.make_tensor_sequence_value_info("q", F, None))
    s = session(m, fallback=True)
    assert "Exp" in placed(s)[OWN] and "SequenceConstruct" not in placed(s)[OWN]
    x = array(3)
    y, _, _ = s.run(None, {"x": x, "s": np.array(["a", "b"], object)})
    np.testing.assert_allclose(y, np.abs(np.concatenate([np.exp(x), x])), rtol=1e-5)


def test_errors_of_a_run_come_in_the_hosts_form():
    m = model_of([helper.make_node("Reshape", ["x", "s"], ["y"])], [("x", F, [2, 6]), ("s", I, [2])],
                 [("y", F, ["A", "B"])])
    s = session(m)
    with pytest.raises(Exception, match="MIGraphX"):
        s.run(None, {"x": array(2, 6), "s": np.array([5, 4], np.int64)})
    assert s.run(None, {"x": array(2, 6), "s": np.array([4, 3], np.int64)})[0].shape == (4, 3)


# --- the card's memory ---


@pytest.mark.parametrize("n", [4, "N"])
def test_values_that_stay_on_the_card(n):
    m = mlp(n)
    s = session(m)
    x = array(4, 3)
    given, room = on_card(x), room_on_card((4, 4), np.float32)
    np.testing.assert_array_equal(from_card(given), x)
    binding = s.io_binding()
    binding.bind_ortvalue_input("x", given)
    binding.bind_ortvalue_output("y", room)
    for _ in range(3):
        s.run_with_iobinding(binding)
        np.testing.assert_allclose(from_card(room), expect(m, {"x": x})[0], rtol=1e-4, atol=1e-5)
    assert room.data_ptr() == binding.get_outputs()[0].data_ptr()  # where it was to go


def decoder():
    """A layer of attention whose caches have room, as exporters for GenAI write it."""
    heads, kv, size, room = 4, 2, 16, 32
    hidden = heads * size
    nodes = [helper.make_node("MatMul", ["x", "wq"], ["q"]), helper.make_node("MatMul", ["x", "wk"], ["k"]),
             helper.make_node("MatMul", ["x", "wv"], ["v"]),
             helper.make_node("GroupQueryAttention", ["q", "k", "v", "past_k", "past_v", "lens", "total", "cos", "sin"],
                              ["a", "present_k", "present_v"], domain="com.microsoft", num_heads=heads,
                              kv_num_heads=kv, do_rotary=1), helper.make_node("MatMul", ["a", "wo"], ["y"])]
    caches = [("past_k", F, [1, kv, room, size]), ("past_v", F, [1, kv, room, size])]
    angles = np.outer(np.arange(room), 10000.0 ** (-np.arange(size // 2) / (size // 2)))
    weights = {"wq": array(hidden, hidden), "wk": array(hidden, kv * size), "wv": array(hidden, kv * size),
               "wo": array(hidden, hidden), "cos": np.cos(angles).astype(np.float32),
               "sin": np.sin(angles).astype(np.float32)}
    inputs = [("x", F, [1, "S", hidden]), *caches, ("lens", TensorProto.INT32, [1]), ("total", TensorProto.INT32, [])]
    outputs = [("y", F, [1, "S", hidden]), ("present_k", F, caches[0][2]), ("present_v", F, caches[1][2])]
    return model_of(nodes, inputs, outputs, weights, domains={"com.microsoft": 1}), hidden, caches[0][2]


def test_caches_are_written_in_place():
    m, hidden, shape = decoder()
    s = session(m)
    plain = ort.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"])
    k, v = (on_card(np.zeros(shape, np.float32)) for _ in range(2))
    want_k, want_v = (np.zeros(shape, np.float32) for _ in range(2))
    done = 0
    for step in (5, 1, 1, 1):
        x = array(1, step, hidden)
        done += step
        lens, total = np.array([done - 1], np.int32), np.array(done, np.int32)
        binding = s.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_cpu_input("lens", lens)
        binding.bind_cpu_input("total", total)
        for name, value in (("past_k", k), ("past_v", v)):
            binding.bind_ortvalue_input(name, value)
        for name, value in (("present_k", k), ("present_v", v)):
            binding.bind_ortvalue_output(name, value)
        binding.bind_output("y")
        s.run_with_iobinding(binding)
        y, want_k, want_v = plain.run(None, {"x": x, "past_k": want_k, "past_v": want_v, "lens": lens, "total": total})
        np.testing.assert_allclose(binding.get_outputs()[-1].numpy(), y, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(from_card(k)[:, :, :done], want_k[:, :, :done], rtol=1e-4, atol=1e-4)


def test_copies_within_the_card():
    a, b = on_card(array(1000)), room_on_card((1000,), np.float32)
    ort.copy_tensors([a], [b])
    np.testing.assert_array_equal(from_card(a), from_card(b))


# --- threads, sessions, compiled models ---


def test_four_threads_on_one_session():
    m = mlp()
    s = session(m)
    xs = [array(1 + i % 3, 3) for i in range(12)]
    want = [expect(m, {"x": x})[0] for x in xs]
    failures = []

    def work(first):
        for i in range(100):
            k = (first + i) % len(xs)
            if not np.allclose(s.run(None, {"x": xs[k]})[0], want[k], rtol=1e-4, atol=1e-5):
                failures.append(k)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_sessions_come_and_go():
    for _ in range(20):
        check(mlp(2), {"x": array(2, 3)})


@pytest.mark.parametrize("n", [2, "N"])
def test_compiled_models(tmp_path, n):
    path, kept = str(tmp_path / "m.onnx"), str(tmp_path / "kept.onnx")
    m = mlp(n)
    onnx.save(m, path)
    session(path, **{"ep.context_enable": "1", "ep.context_file_path": kept, "ep.context_embed_mode": "1"})
    assert [x.op_type for x in onnx.load(kept).graph.node] == ["EPContext"]
    x = array(2, 3)
    s = session(kept)
    np.testing.assert_allclose(s.run(None, {"x": x})[0], expect(m, {"x": x})[0], rtol=1e-4, atol=1e-5)


def test_as_amds_provider_there_is_the_card_alone():
    """The last test: with its library the host forgets the memory, which both have."""
    ort.register_execution_provider_library(AMD, LIBRARY)
    try:
        assert device(AMD, "GPU") and not device(AMD, "CPU")
        s = check(mlp(), {"x": array(2, 3)}, name=AMD,
                  **{"ep.amdgpuexecutionprovider.model_arch": "llama", "ep.migraphx.hip_graph_enable": "1"})
        del s
    finally:
        ort.unregister_execution_provider_library(AMD)
