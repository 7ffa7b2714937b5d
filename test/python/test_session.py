# SPDX-License-Identifier: MIT
"""migraphx.session: one program for it and for ONNX Runtime, and what it says of what it has not."""
import subprocess
import sys
import threading

import migraphx.session as ours
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

F, I, S = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
rng = np.random.default_rng(3)
X = rng.standard_normal((5, 3)).astype(np.float32)


def model():
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"]),
             helper.make_node("ArgMax", ["a"], ["top"], axis=1)]
    graph = helper.make_graph(nodes, "g", [value("x", F, ["N", 3])], [value("y", F, ["N", 4]), value("top", I, ["N", 1])],
                              [numpy_helper.from_array(rng.standard_normal((3, 4)).astype(np.float32), "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def program(ort, data):
    """What somebody wrote for ONNX Runtime."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_session_config_entry("session.use_env_allocators", "0")
    session = ort.InferenceSession(data, sess_options=options, providers=["CPUExecutionProvider"])
    seen = [[(i.name, i.type, i.shape) for i in session.get_inputs()], [(o.name, o.type, o.shape) for o in session.get_outputs()]]
    seen += session.run(None, {"x": X}) + session.run(["top"], {"x": X[:2]}, None)
    binding = session.io_binding()
    place = ort.OrtValue.ortvalue_from_shape_and_type([5, 4], np.float32)
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_output("y", place)
    binding.bind_output("top")
    session.run_with_iobinding(binding)
    seen += [place.numpy(), binding.copy_outputs_to_cpu()[1], [v.shape() for v in binding.get_outputs()]]
    memory = np.zeros((5, 4), np.float32)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, X.shape, X.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, memory.shape, memory.ctypes.data)
    session.run_with_iobinding(binding)
    value = ort.OrtValue.ortvalue_from_numpy(X)
    seen += [memory, session.run_with_ort_values(["y"], {"x": value})[0].numpy(), value.data_type(), value.shape(), value.device_name()]
    return seen + [session.get_providers()]


def same(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and np.allclose(a, b, atol=1e-5)
    return a == b


def test_the_same_program():
    theirs = pytest.importorskip("onnxruntime")
    data = model()
    got, want = program(ours, data), program(theirs, data)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert same(g, w), (g, w)


def test_open_sizes_and_fixed_ones():
    session = ours.InferenceSession(model())
    for n in (1, 4, 0):
        assert session.run(["y"], {"x": X[:n]})[0].shape == (n, 4)
    options = ours.SessionOptions()
    options.add_free_dimension_override_by_name("N", 2)
    session = ours.InferenceSession(model(), options)
    assert session.get_inputs()[0].shape == [2, 3]
    with pytest.raises(ours.InvalidArgument, match="Incorrect shape"):
        session.run(None, {"x": X})


@pytest.mark.parametrize("call,kind,said", [
    (lambda s: s.run(None, {}), ours.InvalidArgument, "input 'x' is not given"),
    (lambda s: s.run(["z"], {"x": X}), ours.InvalidArgument, "no output 'z'; it has 'y', 'top'"),
    (lambda s: s.run(None, {"x": X, "q": X}), ours.InvalidArgument, "no input 'q'"),
    (lambda s: s.run(None, {"x": X.astype(np.float64)}), ours.InvalidArgument, "values are of type double_type"),
    (lambda s: s.end_profiling(), AttributeError, "InferenceSession has no end_profiling"),
    (lambda s: ours.set_seed(1), AttributeError, "migraphx.session has no set_seed"),
    (lambda s: setattr(ours.SessionOptions(), "threads", 2), AttributeError, "SessionOptions has no threads"),
    (lambda s: ours.InferenceSession("/nowhere.onnx"), ours.NoSuchFile, "/nowhere.onnx"),
    (lambda s: ours.InferenceSession(b"nonsense"), ours.Fail, "not an ONNX model"),
    (lambda s: ours.InferenceSession(7), ours.InvalidArgument, "not int"),
    (lambda s: ours.InferenceSession(model(), providers=[("CPUExecutionProvider", {"arena": 1})]), ours.InvalidArgument, "arena is not there"),
    (lambda s: ours.OrtValue.ortvalue_from_numpy(X, "cuda", 0), ours.Fail, "not on cuda"),
])
def test_refusals(call, kind, said):
    with pytest.raises(kind, match=said):
        call(ours.InferenceSession(model()))


def test_unknown_providers_are_passed_over_with_a_warning():
    with pytest.warns(UserWarning, match="XnnpackExecutionProvider is not known"):
        session = ours.InferenceSession(model(), providers=["XnnpackExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_what_a_model_says_of_itself(tmp_path):
    m = onnx.ModelProto.FromString(model())
    m.producer_name, m.domain, m.model_version, m.doc_string, m.graph.doc_string = "me", "here", -3, "what it is", "of the graph"
    helper.set_model_props(m, {"character": "a\nb\n\u00e9", "empty": ""})
    path = str(tmp_path / "m.onnx")
    onnx.save(m, path)
    for given in (path, m, m.SerializeToString()):
        meta = ours.InferenceSession(given).get_modelmeta()
        assert (meta.producer_name, meta.domain, meta.version, meta.description) == ("me", "here", -3, "what it is")
        assert (meta.graph_name, meta.graph_description) == ("g", "of the graph")
        assert meta.custom_metadata_map == {"character": "a\nb\n\u00e9", "empty": ""}


def test_options_of_onnx_runtimes_own_provider_are_taken():
    options = [("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})]
    assert ours.InferenceSession(model(), providers=options).run(None, {"x": X})[0].shape == (5, 4)


def test_runs_in_a_thread_of_their_own():
    session, answers, done = ours.InferenceSession(model()), [], threading.Semaphore(0)

    def called(*answer):
        answers.append(answer)
        done.release()

    session.run_async(["y"], {"x": X}, called, "mine")
    assert done.acquire(timeout=60)
    session.run_async(["y"], {"x": X[:, :2]}, called, None)
    assert done.acquire(timeout=60)
    (results, mine, error), (none, _, why) = answers
    assert mine == "mine" and error == "" and np.array_equal(results[0], session.run(["y"], {"x": X})[0])
    assert none is None and "Incorrect shape" in why


def test_calls_that_programs_begin_with():
    ours.preload_dlls()
    ours.set_default_logger_severity(3)
    ours.set_default_logger_verbosity(0)
    session = ours.InferenceSession(model(), providers=[("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})])
    session.disable_fallback()
    session.enable_fallback()
    session.set_providers(["CPUExecutionProvider"])
    assert session.get_provider_options() == {"CPUExecutionProvider": {"arena_extend_strategy": "kSameAsRequested"}}
    if ours.get_device() == "GPU":
        with pytest.raises(ours.Fail, match="is made anew"):
            session.set_providers(["CUDAExecutionProvider"])


def test_values_of_unknown_rank_have_no_lengths():
    m = onnx.ModelProto.FromString(model())
    m.graph.input[0].type.tensor_type.ClearField("shape")
    assert ours.InferenceSession(m).get_inputs()[0].shape == []


def test_damaged_models_are_errors_or_run():
    chance, whole, ran = np.random.default_rng(46), model(), 0
    for _ in range(300):
        data = bytearray(whole)
        at, how = int(chance.integers(len(data))), chance.integers(3)
        data[at:at + (how != 1)] = bytes([int(chance.integers(256))]) if how else b""
        try:
            ours.InferenceSession(bytes(data)).run(None, {"x": X})
            ran += 1
        except (ours.Fail, AttributeError) as e:
            assert str(e)
    assert 0 < ran < 300


def test_importing_the_engine_imports_no_session():
    code = "import sys, migraphx; assert not any(m in sys.modules for m in ('numpy', 'migraphx.session')), sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
