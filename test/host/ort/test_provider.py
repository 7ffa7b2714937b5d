# SPDX-License-Identifier: MIT
"""The provider inside ONNX Runtime: small models of every kind, options, refusals, threads, memory.

Every session forbids the host's own processor as a way out, and asks the host where the nodes went.
Results are compared with numpy, or with the host's own processor.
"""
import gc
import json
import os
import subprocess
import sys
import threading

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

ort = pytest.importorskip("onnxruntime")

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "..", "..", "python")]
import decoders  # noqa: E402
import provider  # noqa: E402
from provider import LIBRARY, MIGRAPHX, OWN, B, F, I, S, expect, model_of, placed  # noqa: E402

rng = np.random.default_rng(5)


@pytest.fixture(scope="module", autouse=True)
def registered():
    provider.register()
    yield


def version():
    return tuple(int(n) for n in ort.__version__.split(".")[:2])


def device(name=OWN):
    return [d for d in ort.get_ep_devices() if d.ep_name == name]


def session(model, options=(), name=OWN, **how):
    return provider.session(model, device(name), options, **how)


def check(model, feed, options=(), tolerance=1e-5, **how):
    """All on the provider, and equal to the host's own processor."""
    s = session(model, options, **how)
    assert set(placed(s)) == {how.get("name", OWN)}
    provider.compare(s, feed, expect(model, feed), tolerance, tolerance)
    return s


def array(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def mlp():
    return model_of([helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["s"]),
                     helper.make_node("Relu", ["s"], ["y"])], [("x", F, ["N", 3])], [("y", F, ["N", 4])],
                    {"w": array(3, 4), "b": array(4)})


# --- what is taken ---


@pytest.mark.parametrize("optimise", [True, False])
def test_open_sizes(optimise):
    s = check(mlp(), {"x": array(2, 3)}, optimise=optimise)
    for n in (1, 7, 2, 0, 7):
        assert s.run(None, {"x": array(n, 3)})[0].shape == (n, 4)


def test_axes_that_share_a_placeholder_for_a_name():
    """As PaddlePaddle's exporter writes them: the host does not take them for equal either."""
    m = model_of([helper.make_node("Relu", ["x"], ["y"])], [("x", F, ["?", 3, "?", "?"])], [("y", F, ["?", 3, "?", "?"])])
    s = check(m, {"x": array(2, 3, 5, 7)})
    assert s.run(None, {"x": array(1, 3, 4, 4)})[0].shape == (1, 3, 4, 4)


def test_convolutions():
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("GlobalAveragePool", ["r"], ["y"])]
    check(model_of(nodes, [("x", F, [1, 3, 8, 8])], [("y", F, [1, 5, 1, 1])], {"w": array(5, 3, 3, 3)}),
          {"x": array(1, 3, 8, 8)})


def branches(weight):
    value = helper.make_tensor_value_info
    then = helper.make_graph([helper.make_node("Add", ["x", "w"], ["t"])], "then", [], [value("t", F, [weight.size])],
                             [numpy_helper.from_array(weight, "w")])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "else", [], [value("e", F, [weight.size])])
    return helper.make_node("If", ["c"], ["z"], then_branch=then, else_branch=other)


@pytest.mark.parametrize("size", [2, 5000])
def test_if_with_values_and_weights_of_its_own(size):
    nodes = [branches(array(size)), helper.make_node("Add", ["z", "x"], ["y"])]
    m = model_of(nodes, [("c", B, []), ("x", F, [size])], [("y", F, [size])])
    for c in (True, False):
        s = check(m, {"c": np.asarray(c), "x": array(size)})
    assert "If" in placed(s)[OWN]


def test_if_alone_with_values_from_around():
    m = model_of([branches(array(2))], [("c", B, []), ("x", F, [2])], [("z", F, [2])])
    feed = {"c": np.asarray(True), "x": array(2)}
    if version() >= (1, 27):
        check(m, feed)
    else:  # which does not hand x over
        s = session(m, fallback=True)
        assert "If" not in placed(s).get(OWN, [])
        want = ort.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feed)
        np.testing.assert_allclose(s.run(None, feed)[0], want[0])


def loop():
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "x"], ["w"]), helper.make_node("Identity", ["c"], ["d"]),
         helper.make_node("Identity", ["w"], ["row"])], "body",
        [value("i", I, []), value("c", B, []), value("v", F, ["n"])],
        [value("d", B, []), value("w", F, ["n"]), value("row", F, ["n"])])
    return helper.make_node("Loop", ["m", "", "x"], ["last", "rows"], body=body)


def test_loop():
    m = model_of([loop()], [("m", I, []), ("x", F, ["n"])], [("last", F, ["n"]), ("rows", F, ["k", "n"])])
    for rounds in (3, 1):
        s = check(m, {"m": np.asarray(rounds), "x": array(4)})
    for _ in range(3):  # a row is as long as a round would make it; the host itself says 0
        assert s.run(None, {"m": np.asarray(0), "x": array(4)})[1].shape == (0, 4)


def test_results_whose_sizes_only_values_say():
    m = model_of([helper.make_node("NonZero", ["x"], ["y"])], [("x", F, ["a", "b"])], [("y", I, [2, "n"])])
    for x in (np.eye(3), np.zeros((2, 2)), np.ones((1, 4))):
        check(m, {"x": x.astype(np.float32)})


def test_strings():
    nodes = [helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_int64s=[1, 2],
                              values_strings=["one", "two"], default_string="?"),
             helper.make_node("LabelEncoder", ["z"], ["n"], domain="ai.onnx.ml", keys_strings=["one", "naïve", ""],
                              values_int64s=[1, 2, 3], default_int64=-1)]
    m = model_of(nodes, [("x", I, ["n"]), ("z", S, ["m"])], [("y", S, ["n"]), ("n", I, ["m"])], domains={"ai.onnx.ml": 3})
    check(m, {"x": np.array([2, 1, 7]), "z": np.array(["naïve", "", "one", "x"], dtype=object)})


@pytest.mark.parametrize("kind", [np.float64, np.float16, np.int32, np.int8, np.uint8, np.uint64, np.bool_])
def test_types(kind):
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    m = model_of([helper.make_node("Concat", ["x", "x"], ["y"], axis=0)], [("x", element, [3])], [("y", element, [6])])
    check(m, {"x": np.array([0, 1, 1]).astype(kind)})


def test_outputs_that_are_inputs_or_constants_or_shared():
    nodes = [helper.make_node("Identity", ["x"], ["same"]), helper.make_node("Neg", ["x"], ["n"]),
             helper.make_node("Identity", ["n"], ["m"]), helper.make_node("Constant", [], ["k"], value_floats=[1.0, 2.0])]
    check(model_of(nodes, [("x", F, [2])], [(n, F, [2]) for n in ("same", "n", "m", "k")]), {"x": array(2)},
          optimise=False)


def test_weights_beside_the_model(tmp_path):
    m = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", F, ["N", 64])], [("y", F, ["N", 64])],
                 {"w": array(64, 64)})
    path = str(tmp_path / "m.onnx")
    onnx.save_model(m, path, save_as_external_data=True, location="m.data", size_threshold=0)
    check(path, {"x": array(3, 64)})


def test_results_in_the_callers_memory():
    s = session(mlp())
    x, y = array(5, 3), np.zeros((5, 4), np.float32)
    x.flags.writeable = False
    binding = s.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    s.run_with_iobinding(binding)
    np.testing.assert_allclose(y, s.run(None, {"x": x})[0])
    assert y.any()


def test_weights_that_a_caller_may_replace():
    # An initialiser that is an input too, and is not given.
    m = mlp()
    m.graph.input.append(helper.make_tensor_value_info("b", F, [4]))
    s, x, b = session(m), array(2, 3), array(4)
    want = ort.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"])
    for feed in ({"x": x}, {"x": x, "b": b}):
        np.testing.assert_allclose(s.run(None, feed)[0], want.run(None, feed)[0], rtol=1e-5, atol=1e-6)


# --- what is not ---


def test_a_graph_that_is_not_understood_stays_the_hosts(capfd):
    # A rank beyond what the engine has.
    shape = [1] * 20
    m = model_of([helper.make_node("Neg", ["x"], ["y"])], [("x", F, shape)], [("y", F, shape)])
    o = ort.SessionOptions()
    o.add_provider_for_devices(device(), {})
    s = ort.InferenceSession(m.SerializeToString(), o)
    assert s.run(None, {"x": np.ones(shape, np.float32)})[0].shape == tuple(shape)
    assert "MgxExecutionProvider" in capfd.readouterr().err


def test_a_node_that_is_not_taken_is_said_to_be(capfd):
    sequence = [helper.make_node("SplitToSequence", ["a"], ["q"], axis=0), helper.make_node("Relu", ["x"], ["a"])]
    m = model_of(sequence, [("x", F, [2, 3])], [])
    m.graph.output.append(helper.make_tensor_sequence_value_info("q", F, None))
    with pytest.raises(Exception, match="fallback to CPU EP has been explicitly disabled"):
        session(m)
    o = ort.SessionOptions()
    o.add_provider_for_devices(device(), {})
    o.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    s = ort.InferenceSession(m.SerializeToString(), o)
    assert placed(s) == {OWN: ["Relu"], "CPUExecutionProvider": ["SplitToSequence"]}
    x = array(2, 3)
    assert len(s.run(None, {"x": x})[0]) == 2
    said = capfd.readouterr().err
    assert 'does not take node "" (SplitToSequence): its operands or results' in said


def test_sequences_inside_a_group_are_taken():
    nodes = [helper.make_node("SplitToSequence", ["x"], ["q"], axis=0),
             helper.make_node("SequenceAt", ["q", "i"], ["y"])]
    check(model_of(nodes, [("x", F, [2, 3])], [("y", F, None)], {"i": np.asarray(1)}), {"x": array(2, 3)})


def test_groups_around_refused_nodes_do_not_wait_for_themselves():
    # a -> refused -> b, and a -> b: two groups, not one that needs its own result.
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("SplitToSequence", ["a"], ["q"], axis=0),
             helper.make_node("Neg", ["a"], ["c"]), helper.make_node("SequenceLength", ["q"], ["n"]),
             helper.make_node("Cast", ["n"], ["f"], to=F), helper.make_node("Mul", ["c", "f"], ["y"])]
    m = model_of(nodes, [("x", F, [2, 3])], [("y", F, [2, 3])])
    m.graph.output.append(helper.make_tensor_sequence_value_info("q", F, None))
    s = session(m, fallback=True)
    x = array(2, 3)
    np.testing.assert_allclose(s.run(["y"], {"x": x})[0], -np.maximum(x, 0) * 2)
    assert sorted(placed(s)["CPUExecutionProvider"]) == ["SequenceLength", "SplitToSequence"]


def test_errors_of_a_run_come_in_the_hosts_form():
    m = model_of([helper.make_node("Reshape", ["x", "s"], ["y"])], [("x", F, ["n"]), ("s", I, [2])], [("y", F, None)])
    s = session(m)
    with pytest.raises(Exception, match="MIGraphX: .*") as e:
        s.run(None, {"x": array(5), "s": np.array([2, 3])})
    assert "5" in str(e.value) and "6" in str(e.value)
    assert s.run(None, {"x": array(6), "s": np.array([2, 3])})[0].shape == (2, 3)


# --- names and options ---


def test_damaged_models_are_errors_of_the_hosts_or_run():
    """Bytes changed, left out and put in: whatever the host lets through, the provider survives."""
    chance, whole = np.random.default_rng(46), model_of([branches(array(4)), helper.make_node("Conv", ["i", "k"], ["o"])],
                                                       [("c", B, []), ("x", F, [4]), ("i", F, [1, 2, 4, 4])],
                                                       [("z", F, [4]), ("o", F, [1, 3, 2, 2])], {"k": array(3, 2, 3, 3)}).SerializeToString()
    feed = {"c": np.asarray(True), "x": array(4), "i": array(1, 2, 4, 4)}
    ran = 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(chance.integers(1, 4)):
            at = int(chance.integers(len(data)))
            how = chance.integers(3)
            data[at:at + (how != 1)] = bytes([int(chance.integers(256))]) if how else b""
        try:
            o = ort.SessionOptions()
            o.log_severity_level = 4
            o.add_provider_for_devices(device(), {})
            ort.InferenceSession(bytes(data), o).run(None, feed)
            ran += 1
        except Exception as e:
            assert str(e)
    assert 0 < ran < 300


@pytest.mark.parametrize("feed,said", [
    ({"x": np.zeros((2, 4), np.float32)}, "MIGraphX|Got invalid dimensions"), ({"x": np.zeros((2, 3), np.float64)}, "nexpected input data type"),
    ({"x": np.zeros(3, np.float32)}, "Invalid rank"), ({}, "missing|Missing"), ({"q": np.zeros((2, 3), np.float32)}, "nvalid|missing"),
])
def test_tensors_that_do_not_fit(feed, said):
    s = session(mlp())
    with pytest.raises(Exception, match=said):
        s.run(None, feed)
    assert s.run(None, {"x": array(2, 3)})[0].shape == (2, 4)  # and nothing is lost


def test_names():
    assert device() and device(MIGRAPHX)
    check(mlp(), {"x": array(2, 3)}, name=MIGRAPHX)


@pytest.mark.skipif(version() < (1, 28), reason="this version of ONNX Runtime finds no plugin by its name")
def test_by_name():
    o = ort.SessionOptions()
    o.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    s = ort.InferenceSession(mlp().SerializeToString(), o, providers=[(OWN, {"threads": "1"}), "CPUExecutionProvider"])
    assert set(placed(s)) == {OWN}


def test_as_amds_provider():
    ort.register_execution_provider_library("AMDGPUExecutionProvider", LIBRARY)
    try:
        check(mlp(), {"x": array(2, 3)}, name="AMDGPUExecutionProvider")
        gc.collect()
    finally:
        ort.unregister_execution_provider_library("AMDGPUExecutionProvider")


def test_without_plans_for_sizes_every_run_gives_the_same_bits():
    nodes, init, x = [], {}, "x"
    for i in range(3):
        init[f"w{i}"], init[f"g{i}"] = array(96, 96), array(96)
        nodes += [helper.make_node("LayerNormalization", [x, f"g{i}"], [f"n{i}"]), helper.make_node("MatMul", [f"n{i}", f"w{i}"], [f"m{i}"]),
                  helper.make_node("Softmax", [f"m{i}"], [f"s{i}"]), helper.make_node("Add", [f"s{i}", x], [f"y{i}"])]
        x = f"y{i}"
    model = model_of(nodes, [("x", F, ["N", 96])], [(x, F, ["N", 96])], init)
    s = session(model, {"specialise": "0", "threads": "1"})
    for n in (7, 61):
        feed = {"x": array(n, 96)}
        first = s.run(None, feed)[0]
        for _ in range(40):
            assert np.array_equal(s.run(None, feed)[0], first)


def test_options_in_both_spellings():
    options = {"migraphx_fp16_enable": "0", "exhaustive_tune": "False", "threads": "1", "device_id": "0",
               "migraphx_mem_limit": "18446744073709551615", "migraphx_arena_extend_strategy": "kNextPowerOfTwo"}
    check(mlp(), {"x": array(2, 3)}, options)
    check(mlp(), {"x": array(2, 3)}, {"fp16_enable": "1"}, tolerance=2e-2)
    check(mlp(), {"x": array(2, 3)}, {"migraphx_bf16_enable": "true"}, tolerance=1e-1)


@pytest.mark.parametrize("option,value,said", [
    ("nonsense", "1", "unknown option nonsense; there are fp16_enable"),
    ("fp16_enable", "maybe", 'option fp16_enable is "maybe", not 0 or 1'),
    ("mem_limit", "-1", 'option mem_limit is "-1", not a size'),
    ("migraphx_int8_enable", "1", "was quantized before"),
    ("isa", "z80", "z80"),
])
def test_bad_options(option, value, said):
    code = f"""
import onnxruntime as ort, sys
ort.register_execution_provider_library("mgx", {LIBRARY!r})
o = ort.SessionOptions()
o.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == {OWN!r}], {{{option!r}: {value!r}}})
try:
    ort.InferenceSession(sys.stdin.buffer.read(), o)
except Exception as e:
    print(e)
"""
    done = subprocess.run([sys.executable, "-c", code], input=mlp().SerializeToString(), capture_output=True)
    assert done.returncode == 0 and said in (done.stdout + done.stderr).decode()


# --- profiles ---


@pytest.mark.skipif(version() < (1, 25), reason="this version of ONNX Runtime does not ask providers for events")
def test_events_in_the_hosts_profile(tmp_path):
    o = ort.SessionOptions()
    o.enable_profiling = True
    o.profile_file_prefix = str(tmp_path / "profile")
    o.add_provider_for_devices(device(), {"threads": "1"})
    s = ort.InferenceSession(mlp().SerializeToString(), o)
    for _ in range(3):
        s.run(None, {"x": array(2, 3)})
    with open(s.end_profiling()) as f:
        events = json.load(f)
    ours = [e for e in events if e.get("args", {}).get("provider") == OWN and e["args"].get("op_name") and e["cat"] == "Kernel"]
    runs = [e for e in events if e["name"] == "model_run"]
    assert len(runs) == 3 and len(ours) >= 3 and any("MatMul" in e["name"] for e in ours)
    for e in ours:
        assert any(r["ts"] - 50 <= e["ts"] <= r["ts"] + r["dur"] + 50 for r in runs)


# --- compiled models ---


def kept_model(folder, inside):
    onnx.save(mlp(), str(folder / "m.onnx"))
    out = str(folder / f"kept{inside}.onnx")
    session(str(folder / "m.onnx"), **{"ep.context_enable": "1", "ep.context_file_path": out,
                                       "ep.context_embed_mode": str(inside)})
    return out


@pytest.mark.parametrize("inside", [1, 0])
def test_compiled_models(tmp_path, inside):
    out = kept_model(tmp_path, inside)
    kept = onnx.load(out)
    assert [n.op_type for n in kept.graph.node] == ["EPContext"] and not kept.graph.initializer
    assert len(list(tmp_path.glob("*.mxr"))) == 1 - inside
    s, x = session(out), array(3, 3)
    assert placed(s) == {OWN: ["EPContext"]}
    want = ort.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    for n in (3, 1, 3):
        np.testing.assert_allclose(s.run(None, {"x": x[:n]})[0], want.run(None, {"x": x[:n]})[0], rtol=1e-5, atol=1e-6)
    placed_by_other = session(out, name=MIGRAPHX)
    np.testing.assert_allclose(placed_by_other.run(None, {"x": x})[0], s.run(None, {"x": x})[0])


def test_compiled_models_in_memory():
    o = ort.SessionOptions()
    o.add_provider_for_devices(device(), {})
    made = ort.ModelCompiler(o, mlp().SerializeToString(), embed_compiled_data_into_model=True).compile_to_bytes()
    s = session(onnx.ModelProto.FromString(made))
    assert s.run(None, {"x": array(2, 3)})[0].shape == (2, 4)


@pytest.mark.parametrize("inside,content,said", [
    (1, b"nonsense", "MIGraphX"), (1, b"", "MIGraphX"), (0, b"/etc/passwd", "is no file beside the model"),
    (0, b"../kept.mxr", "is no file beside the model"), (0, b"absent.mxr", "absent.mxr"),
])
def test_compiled_models_that_are_none(tmp_path, inside, content, said):
    kept = onnx.load(kept_model(tmp_path, 1))
    for a in kept.graph.node[0].attribute:
        if a.name == "ep_cache_context":
            a.s = content
        if a.name == "embed_mode":
            a.i = inside
    onnx.save(kept, str(tmp_path / "bad.onnx"))
    with pytest.raises(Exception, match=said):
        session(str(tmp_path / "bad.onnx"))


# --- threads and memory ---


def test_eight_threads_on_one_session():
    m = mlp()
    s = session(m, {"threads": "2"})
    reference = ort.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"])
    wrong = []

    def work(seed):
        r = np.random.default_rng(seed)
        for _ in range(50):
            x = r.standard_normal((int(r.integers(1, 9)), 3)).astype(np.float32)
            if not np.allclose(s.run(None, {"x": x})[0], reference.run(None, {"x": x})[0], atol=1e-5):
                wrong.append(x.shape)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("specialise", ["0", "1"])
def test_shared_caches_are_written_in_place(tmp_path, specialise):
    """Past and present are one buffer: rows behind the tokens stay what they were, in every plan, and a mask as long as the tokens will do."""
    room, prompt = 32, [5, 7, 9]
    model = decoders.save(str(tmp_path), "room", context=64)
    path = str(tmp_path / "model.onnx")
    sessions = [session(path, {"specialise": specialise}), ort.InferenceSession(path, providers=["CPUExecutionProvider"])]
    shapes = {i.name: [{"batch": 1, "past": room}.get(d.dim_param, d.dim_value) for d in i.type.tensor_type.shape.dim]
              for i in model.graph.input if i.name.startswith("past")}
    caches = [{n: ort.OrtValue.ortvalue_from_numpy(np.full(s, 7, np.float32)) for n, s in shapes.items()} for _ in sessions]
    done, tokens = 0, prompt
    for _ in range(6):
        logits = []
        for one, mine in zip(sessions, caches):
            binding = one.io_binding()
            binding.bind_cpu_input("input_ids", np.int64([tokens]))
            binding.bind_cpu_input("attention_mask", np.ones((1, done + len(tokens)), np.int64))
            for name, value in mine.items():
                binding.bind_ortvalue_input(name, value)
                binding.bind_ortvalue_output(name.replace("past_key_values", "present"), value)
            binding.bind_output("logits")
            one.run_with_iobinding(binding)
            logits.append(binding.get_outputs()[-1].numpy()[0, -1])
        done += len(tokens)
        np.testing.assert_allclose(logits[0], logits[1], rtol=1e-3, atol=1e-4)
        tokens = [int(logits[1].argmax())]
    for name in shapes:
        ours, theirs = (c[name].numpy() for c in caches)
        np.testing.assert_allclose(ours[:, :, :done], theirs[:, :, :done], rtol=1e-3, atol=1e-5)
        assert (ours[:, :, done:] == 7).all()


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


MEMORY = """
import sys, numpy as np, onnxruntime as ort
def anonymous():
    return [int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("RssAnon")][0] * 1024
ort.register_execution_provider_library("mgx", sys.argv[1])
o = ort.SessionOptions()
o.intra_op_num_threads = 1
o.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == "MgxExecutionProvider"], {"threads": "1"})
x = np.ones((2, 1024), np.float32)
before = anonymous()
s = ort.InferenceSession(sys.argv[2], o)
s.run(None, {"x": x})
print(anonymous() - before)
"""


@pytest.mark.parametrize("beside", [False, True])
def test_weights_are_held_once(tmp_path, beside):
    # Packed for the kernels; the host's own are dropped, and none is copied on the way.
    count, path = 16, str(tmp_path / "m.onnx")
    nodes = [helper.make_node("MatMul", [f"a{i}" if i else "x", f"w{i}"], [f"a{i + 1}"]) for i in range(count)]
    weights = {f"w{i}": array(1024, 1024) for i in range(count)}
    m = model_of(nodes, [("x", F, ["N", 1024])], [(f"a{count}", F, ["N", 1024])], weights)
    onnx.save_model(m, path, save_as_external_data=beside, location="m.data")
    held = int(subprocess.run([sys.executable, "-c", MEMORY, LIBRARY, path], check=True, capture_output=True).stdout)
    size = count * 4 << 20
    # Of a model in one piece the host keeps a part, half of it at most; with a copy it would be twice the size and that.
    assert size * 0.9 < held < size * (1.2 if beside else 2)


def test_sessions_come_and_go():
    m, feed, seen = mlp(), {"x": array(2, 3)}, []
    for rounds in (50, 100):
        for _ in range(rounds):
            session(m).run(None, feed)
        gc.collect()
        seen.append(resident())
    assert seen[1] - seen[0] < 4 << 20
