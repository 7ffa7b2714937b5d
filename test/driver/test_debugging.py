# SPDX-License-Identifier: MIT
"""What one looks at a model with: verify against files and to the first wrong node, perf's page and timeline, plan,
diff, and Ctrl-C. Run with the driver's path in DRIVER, and in PLANTED a library with a wrong kernel in it."""
import json
import os
import re
import resource
import signal
import subprocess
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

DRIVER = os.environ["DRIVER"]
HERE = os.path.dirname(os.path.abspath(__file__))


def drive(*words, code=0, **environment):
    done = subprocess.run([DRIVER, *map(str, words)], capture_output=True, text=True, check=False, timeout=120,
                          env=dict(os.environ, **environment))
    assert done.returncode == code, done.stderr
    return done


def relu(x):
    return np.maximum(x, 0)


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@pytest.fixture(name="folder")
def make_folder(tmp_path):
    """y = softmax(relu(x . w)) + b, in the layout of the ONNX zoo; numpy gives the results."""
    rng = np.random.default_rng(7)
    w = rng.standard_normal((8, 5)).astype("f4")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], name="product"), helper.make_node("Relu", ["m"], ["r"], name="clip"),
             helper.make_node("Softmax", ["r"], ["s"], name="normal", axis=1), helper.make_node("Add", ["s", "b"], ["y"], name="shift")]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("b", [3, 5]), ("x", [3, 8]), ("y", [3, 5]))]
    graph = helper.make_graph(nodes, "g", ends[:2], ends[2:], [numpy_helper.from_array(w, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "model.onnx")
    for i in range(2):
        data = tmp_path / f"test_data_set_{i}"
        data.mkdir()
        x, b = (rng.standard_normal(s).astype("f4") for s in ((3, 8), (3, 5)))
        y = softmax(relu(x @ w), 1) + b
        for name, value, label in (("input_0", b, "b"), ("input_1", x, "x"), ("output_0", y, "y")):
            (data / f"{name}.pb").write_bytes(numpy_helper.from_array(value.astype("f4"), label).SerializeToString())
        np.save(tmp_path / f"x{i}.npy", x)
        np.save(tmp_path / f"y{i}.npy", y.astype("f4"))
        np.savez(tmp_path / f"in{i}.npz", x=x, b=b)
    return tmp_path


def test_a_zoo_folder_verifies_in_one_command(folder):
    done = drive("verify", folder)
    assert "test_data_set_0: passed" in done.stderr and "test_data_set_1: passed" in done.stderr
    (folder / "test_data_set_1" / "output_0.pb").write_bytes((folder / "test_data_set_0" / "output_0.pb").read_bytes())
    done = drive("verify", folder, code=1)
    assert "test_data_set_1: FAILED" in done.stderr and "output_0.pb" in done.stderr


def test_inputs_in_any_order_and_by_position(folder):
    data = folder / "test_data_set_0"
    for name in ("input_0", "input_1"): # without names: in the model's order
        t = TensorProto.FromString((data / f"{name}.pb").read_bytes())
        t.name = ""
        (data / f"{name}.pb").write_bytes(t.SerializeToString())
    drive("verify", folder)
    a, b = ((data / f"{n}.pb").read_bytes() for n in ("input_0", "input_1"))
    other = folder / "test_data_set_1"
    one, two = (other / "input_0.pb").read_bytes(), (other / "input_1.pb").read_bytes()
    (other / "input_0.pb").write_bytes(two) # with names: by name
    (other / "input_1.pb").write_bytes(one)
    drive("verify", folder)
    assert a != b


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_expected_results(folder, kind):
    given = {"npy": ["@x", folder / "x0.npy", "@b", folder / "in0.npz"], "npz": ["@x", folder / "in0.npz", "@b", folder / "in0.npz"]}
    words = ["verify", folder / "model.onnx", "--load-arg", *given[kind], "--json", "--expect"]
    assert json.loads(drive(*words, folder / "y0.npy").stdout)["passed"] is True
    report = json.loads(drive(*words, folder / "y1.npy", code=1).stdout)
    want = np.abs(np.load(folder / "y0.npy") - np.load(folder / "y1.npy")).max()
    assert report["passed"] is False and abs(report["max_diff"] - want) < 1e-5


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"])
def test_every_type_of_file(tmp_path, dtype):
    """Identity of an input of the type, from .npy and from TensorProto, raw and typed."""
    x = (np.arange(24).reshape(2, 3, 4) % 2 if dtype == "?" else np.arange(24).reshape(2, 3, 4)).astype(dtype)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    info = [helper.make_tensor_value_info(n, kind, [2, 3, 4]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", info[:1], info[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", x)
    files = [tmp_path / "x.npy", tmp_path / "raw.pb"]
    files[1].write_bytes(numpy_helper.from_array(x).SerializeToString())
    if dtype != "f2":
        files.append(tmp_path / "typed.pb")
        files[2].write_bytes(helper.make_tensor("x", kind, [2, 3, 4], x.flatten().tolist()).SerializeToString())
    for source in files:
        for expected in files:
            drive("verify", tmp_path / "m.onnx", "--ref", "--load-arg", "@x", source, "--expect", expected)


def test_damaged_tensors_are_refused(folder):
    good = (folder / "x0.npy").read_bytes()
    for cut in (0, 5, 11, 40, len(good) - 1):
        (folder / "bad.npy").write_bytes(good[:cut])
        drive("verify", folder / "model.onnx", "--load-arg", "@x", folder / "bad.npy", "--expect", folder / "y0.npy", code=1)
    proto = (folder / "test_data_set_0" / "input_0.pb").read_bytes()
    for cut in range(1, len(proto)):
        (folder / "bad.pb").write_bytes(proto[:cut])
        drive("verify", folder / "model.onnx", "--load-arg", "@b", folder / "bad.pb", "--expect", folder / "y0.npy", code=1)
        if cut > 20:
            break


@pytest.mark.skipif(not os.environ.get("PLANTED"), reason="no library with a wrong kernel")
def test_bisect_finds_a_wrong_kernel(tmp_path):
    """Two branches; the wrong pooling is in one of them, and what is last in the order is in the other."""
    rng = np.random.default_rng(3)
    nodes, last = [], "x"
    weights = []
    for i in range(6):
        weights.append(numpy_helper.from_array(rng.standard_normal((16, 16 if i else 3, 1, 1)).astype("f4") / 4, f"w{i}"))
        nodes += [helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], name=f"conv{i}"), helper.make_node("Relu", [f"c{i}"], [f"r{i}"], name=f"relu{i}")]
        last = f"r{i}"
        if i == 2:
            nodes.append(helper.make_node("MaxPool", [last], ["pooled"], name="the_pool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
            nodes.append(helper.make_node("Sigmoid", [last], ["side"], name="beside"))
            last = "pooled"
    nodes.append(helper.make_node("Add", [last, "side"], ["y"], name="join"))
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, c, 12, 12]) for n, c in (("x", 3), ("y", 16))]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "m.onnx")
    drive("verify", tmp_path / "m.onnx", "--bisect", "--isa", "generic")
    done = drive("verify", tmp_path / "m.onnx", "--bisect", "--isa", "generic", "--json", code=1, LD_PRELOAD=os.environ["PLANTED"])
    report = json.loads(done.stdout)
    assert report["nodes"] == "the_pool (MaxPool)" and "pooling" in report["instruction"]
    if report["max_diff"] is None:  # with assertions every step is compared with its operator as it runs
        assert "step of pooling by kernel pooling" in done.stderr and "does not run to its end" in done.stderr
    else:
        assert report["max_diff"] > 0.01


@pytest.mark.skipif(not os.environ.get("PLANTED"), reason="no library with a wrong kernel")
def test_bisect_finds_a_wrong_normalisation(tmp_path):
    """As exporters write it, in nine nodes: the last of them is the first whose group is wrong."""
    rng = np.random.default_rng(5)
    weights = [numpy_helper.from_array(rng.standard_normal(s).astype("f4") / 8, n) for n, s in (("w", (64, 96)), ("v", (96, 8)), ("g", (96,)), ("h", (96,)))]
    weights += [numpy_helper.from_array(np.array(v, "f4"), n) for n, v in (("two", 2), ("tiny", 1e-5))]
    steps = [("MatMul", "x w", "a", "first"), ("ReduceMean", "a", "m", "mean"), ("Sub", "a m", "d", "centre"), ("Pow", "d two", "q", "square"),
             ("ReduceMean", "q", "s", "variance"), ("Add", "s tiny", "e", "epsilon"), ("Sqrt", "e", "r", "root"), ("Div", "d r", "n", "divide"),
             ("Mul", "n g", "k", "scale"), ("Add", "k h", "o", "shift"), ("MatMul", "o v", "y", "last")]
    nodes = [helper.make_node(op, i.split(), [o], name=n, **({"axes": [-1]} if op == "ReduceMean" else {})) for op, i, o, n in steps]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [4, 64]), ("y", [4, 8]))]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "m.onnx")
    drive("verify", tmp_path / "m.onnx", "--isa", "generic")
    done = drive("verify", tmp_path / "m.onnx", "--bisect", "--isa", "generic", "--json", code=1, LD_PRELOAD=os.environ["PLANTED"])
    assert json.loads(done.stdout)["nodes"] in ("divide (Div)", "scale (Mul)", "shift (Add)")


def test_plan_and_perf_name_the_nodes(folder):
    plan = json.loads(drive("plan", folder / "model.onnx", "--cpu", "--json").stdout)
    nodes = "; ".join(s["nodes"] for s in plan["steps"])
    for name in ("product", "clip", "normal", "shift"):
        assert name in nodes
    product = [s for s in plan["steps"] if "product" in s["nodes"]][0]
    assert product["kernel"] == "gemm" and product["flops"] == 2 * 3 * 8 * 5
    text = drive("perf", folder / "model.onnx", "--cpu", "-n", "3").stdout
    assert "of the limit" in text and "product (MatMul)" in text
    parts = [text.index(word) for word in ("main:@", "\nSlowest first", "\nSummary:", "\nBatch size:")]
    assert parts == sorted(parts) and text.rstrip().splitlines()[-1].startswith("Overhead: ")
    brief = drive("perf", folder / "model.onnx", "--cpu", "-n", "3", "--totals").stdout
    assert brief.startswith("Batch size: 3\nRate: ") and len(brief.splitlines()) == 7


@pytest.mark.parametrize("how", [[], ["--fp16"], ["--bf16"], ["--int8"], ["--int4-weights"]])
def test_nothing_is_beyond_the_limits(tmp_path, how):
    """Weights of two megabytes, which stay in caches, and convolutions by Winograd's method."""
    rng = np.random.default_rng(3)
    w, c = rng.standard_normal((512, 1024)).astype("f4"), rng.standard_normal((32, 32, 3, 3)).astype("f4")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Conv", ["i", "c"], ["o"], pads=[1, 1, 1, 1])]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [1, 512]), ("i", [1, 32, 28, 28]), ("y", [1, 1024]), ("o", [1, 32, 28, 28]))]
    graph = helper.make_graph(nodes, "g", ends[:2], ends[2:], [numpy_helper.from_array(w, "w"), numpy_helper.from_array(c, "c")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "m.onnx")
    text = drive("perf", tmp_path / "m.onnx", "--cpu", "-n", "20", *how).stdout
    shares = [int(n) for n in re.findall(r"(\d+)% of the limit", text)]
    assert len(shares) >= 2 and max(shares) <= 100, text
    steps = json.loads(drive("plan", tmp_path / "m.onnx", "--cpu", "--json", *how).stdout)["steps"]
    product = [s for s in steps if s["kernel"] == "gemm"][0]
    bytes_each = {(): 4, ("--fp16",): 2, ("--bf16",): 2, ("--int8",): 1, ("--int4-weights",): 0.65}[tuple(how)]
    assert 0.9 < product["moved"] / (512 * 1024 * bytes_each) < 1.3


def test_perf_in_numbers(folder):
    report = json.loads(drive("perf", folder / "model.onnx", "--cpu", "-n", "9", "--json").stdout)
    assert report["runs"] == 9 and report["batch"] == 3 and report["limits"]["gflops"] > 0.1
    assert abs(sum(i["ms"] for i in report["instructions"]) - report["instructions_ms"]) < 1e-6
    assert report["total_ms"]["min"] <= report["total_ms"]["median"] <= report["total_ms"]["max"]


def test_perf_of_open_sizes_is_of_those_fed(folder, tmp_path):
    weights = numpy_helper.from_array(np.ones((8, 5), "f4"), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "open.onnx")
    words = ["perf", tmp_path / "open.onnx", "--dynamic-dims", "--batch", "6", "-n", "3", "--json"]
    report = json.loads(drive(*words, "--cpu").stdout)
    assert [s["flops"] for s in report["steps"] if s["kernel"] == "gemm"] == [2 * 6 * 8 * 5]
    assert "{6, 5}" in report["instructions"][-2]["text"]
    assert json.loads(drive(*words, "--ref").stdout)["instructions_ms"] > 0 # has no plans for single sizes


def test_netron_gets_an_onnx_model(folder):
    for words in (["read", folder / "model.onnx"], ["compile", folder / "model.onnx", "--cpu"]):
        drive(*words, "--netron", "-o", folder / "graph.onnx")
        model = onnx.load(folder / "graph.onnx")
        graph = model.graph
        assert model.producer_name == "AMDMIGraphX" and [o.domain for o in model.opset_import] == ["migraphx"]
        assert {v.name for v in graph.input} == {"x", "b"}
        assert [d.dim_value for d in graph.output[0].type.tensor_type.shape.dim] == [3, 5]
        known = {v.name for v in graph.input} | {t.name for t in graph.initializer}
        for node in graph.node: # an order in which everything is there
            assert set(node.input) <= known and node.op_type
            known |= set(node.output)
        assert graph.output[0].name in known and all(not t.raw_data and not t.float_data for t in graph.initializer)
        assert "product (MatMul)" in "; ".join(n.doc_string for n in graph.node)
    softmax_node = [n for n in onnx.load(folder / "graph.onnx").graph.node if n.op_type.startswith("softmax")]
    assert not softmax_node or softmax_node[0].attribute[0].name == "axis"


def test_a_python_program_is_read(tmp_path):
    if not os.environ.get("MODULE"):
        pytest.skip("the Python module is not built")
    (tmp_path / "build.py").write_text("""
import migraphx
p = migraphx.program()
m = p.get_main_module()
x = m.add_parameter("x", migraphx.shape(type="float", lens=[2, 3]))
m.add_return([m.add_instruction(migraphx.op("relu"), [x])])
""")
    search = {"PYTHONPATH": os.environ["MODULE"], "PATH": os.path.dirname(os.environ["PYTHON"]) + ":" + os.environ["PATH"]}
    text = drive("read", tmp_path / "build.py", **search).stdout
    assert "relu(x)" in text
    (tmp_path / "broken.py").write_text("raise ValueError('no such thing')")
    assert "no such thing" in drive("read", tmp_path / "broken.py", code=1, **search).stderr
    (tmp_path / "empty.py").write_text("x = 1")
    assert "builds no program" in drive("read", tmp_path / "empty.py", code=1, **search).stderr


def test_a_compiled_file_says_when_it_is_for_another_machine(folder):
    drive("compile", folder / "model.onnx", "--cpu", "--binary", "-o", folder / "m.mxr", MIGRAPHX_CPU_ISA="")
    given = ["--load-arg", "@x", folder / "in0.npz", "@b", folder / "in0.npz", "--expect", folder / "y0.npy"]
    assert "compiled for" not in drive("verify", folder / "m.mxr", *given, MIGRAPHX_CPU_ISA="").stderr
    plan = drive("plan", folder / "m.mxr", MIGRAPHX_CPU_ISA="generic")
    if "isa: generic" in drive("plan", folder / "m.mxr", MIGRAPHX_CPU_ISA="").stdout:
        pytest.skip("this machine has no other instruction set")
    assert "this is cpu generic: it is compiled anew" in plan.stderr and "isa: generic" in plan.stdout
    drive("verify", folder / "m.mxr", *given, MIGRAPHX_CPU_ISA="generic")


def test_one_file_for_several_machines(folder):
    given = ["--load-arg", "@x", folder / "in0.npz", "@b", folder / "in0.npz", "--expect", folder / "y0.npy"]
    drive("compile", folder / "model.onnx", "--for", "cpu:generic", "cpu", "ref", "-o", folder / "forms.mxr", MIGRAPHX_CPU_ISA="")
    plan = drive("plan", folder / "forms.mxr", MIGRAPHX_CPU_ISA="")
    assert "form: cpu" in drive("compile", "--explain", folder / "forms.mxr", MIGRAPHX_CPU_ISA="").stdout
    assert "anew" not in plan.stderr
    for target in "--cpu", "--ref":
        drive("verify", folder / "forms.mxr", target, *given, MIGRAPHX_CPU_ISA="")
    assert "form: cpu generic, of" in drive("compile", "--explain", folder / "forms.mxr", MIGRAPHX_CPU_ISA="generic").stdout
    drive("run", folder / "forms.mxr", "--trust-kernels")
    portable = drive("read", folder / "forms.mxr", "--strip-context").stdout
    assert portable == drive("read", folder / "model.onnx").stdout


def test_for_needs_a_file(folder):
    refused = drive("compile", folder / "model.onnx", "--for", "cpu", code=1).stderr
    assert "--for needs --output" in refused
    assert "abacus" in drive("compile", folder / "model.onnx", "--for", "abacus", "-o", folder / "no.mxr", code=1).stderr
    drive("compile", folder / "model.onnx", "--cpu", "-o", folder / "m.mxr")
    done = drive("compile", folder / "m.mxr", "--for", "cpu", "-o", folder / "no.mxr", code=1)
    assert "compiled already" in done.stderr and not (folder / "no.mxr").exists()


def test_each_instruction_of_a_loop(tmp_path):
    """What follows a loop takes a part of its tuple, which is made by running the loop."""
    body = helper.make_graph([helper.make_node("Add", ["v", "v"], ["w"]), helper.make_node("Identity", ["c"], ["d"])], "b",
                             [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("c", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("v", TensorProto.FLOAT, [3])],
                             [helper.make_tensor_value_info("d", TensorProto.BOOL, []), helper.make_tensor_value_info("w", TensorProto.FLOAT, [3])])
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body), helper.make_node("Relu", ["y"], ["z"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]), helper.make_tensor_value_info("n", TensorProto.INT64, [])],
                              [helper.make_tensor_value_info("z", TensorProto.FLOAT, [3])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "loop.onnx")
    done = drive("verify", tmp_path / "loop.onnx", "--cpu", "--per-instruction", "--fill1", "n", "--json")
    assert json.loads(done.stdout)["passed"] and "Failed instruction" not in done.stderr


def test_diff(folder):
    drive("diff", folder / "model.onnx", folder / "model.onnx")
    model = onnx.load(folder / "model.onnx")
    model.graph.node[1].op_type = "Sigmoid"
    onnx.save(model, folder / "other.onnx")
    done = drive("diff", folder / "model.onnx", folder / "other.onnx", "--json", code=1)
    found = json.loads(done.stdout)["differences"]
    assert len(found) == 2 and "relu" in found[0]["removed"] and "sigmoid" in found[1]["added"]


def wait_for(child, words):
    """Until the child has said so; a busy machine may take its time."""
    for line in child.stderr:
        if words in line:
            break
    time.sleep(1)


def processor_seconds():
    """Of children that have ended: what other work the machine has does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_ctrl_c_reports_what_there_is(folder):
    words = [DRIVER, "perf", folder / "model.onnx", "--cpu", "--threads", "1", "-n", "100000000", "--json", "--log-level", "info"]
    before = processor_seconds()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        wait_for(child, "Running performance report")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130 and "Interrupted" in err
    report = json.loads(out)
    assert 0 < report["runs"] < 100000000 and report["instructions_ms"] > 0
    assert processor_seconds() - before < 6  # it does not go through the rounds that are left


def test_ctrl_c_tells_the_time_so_far(folder):
    words = [DRIVER, "time", folder / "model.onnx", "--cpu", "-n", "1000000000", "--log-level", "info"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        wait_for(child, "Compilation time")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130 and re.search(r"Interrupted: \d+ of 1000000000 runs", err)
    assert 0 < float(re.match(r"Total time: ([\d.e-]+)ms", out)[1]) < 1000


def test_nothing_half_written_after_ctrl_c(tmp_path):
    target = tmp_path / "out.mxr"
    target.write_text("old")
    words = [DRIVER, "compile", "--model", "mlp", "--cpu", "--binary", "--output", target]
    for delay in (0.0, 0.005, 0.01, 0.02, 0.04):
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            time.sleep(delay)
            child.send_signal(signal.SIGINT)
            child.wait(timeout=60)
        assert target.read_bytes()[:3] in (b"old", b"\xc1MX")
        assert [p.name for p in tmp_path.iterdir()] == ["out.mxr"]


def on_terminal(words, pattern):
    """What a terminal shows of a command until a pattern has come, which ends it."""
    import pty
    try:
        here, there = pty.openpty()
    except OSError as e:
        pytest.skip(f"no pseudo terminal can be opened here: {e}")
    with subprocess.Popen([DRIVER, *map(str, words)], stdout=subprocess.DEVNULL, stderr=there) as child:
        os.close(there)
        shown = ""
        try:
            while not re.search(pattern, shown):
                shown += os.read(here, 4096).decode()
        except OSError: # the command ended
            pass
        child.kill()
    os.close(here)
    return shown


def test_long_work_says_how_far_it_is(tmp_path):
    rng = np.random.default_rng(3)
    widths = [256, 256, 192, 256, 128]
    nodes = [helper.make_node("Conv", [f"t{i}", f"w{i}"], [f"t{i + 1}"], pads=[1, 1, 1, 1]) for i in range(4)]
    weights = [numpy_helper.from_array(rng.standard_normal((o, i, 3, 3)).astype("f4"), f"w{k}") for k, (i, o) in enumerate(zip(widths, widths[1:]))]
    ends = [helper.make_tensor_value_info(f"t{k}", TensorProto.FLOAT, [1, widths[k], 112, 112]) for k in (0, 4)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "m.onnx")
    pattern = r"running the reference: \d+ s"
    assert re.search(pattern, on_terminal(["verify", "--cpu", tmp_path / "m.onnx"], pattern))
    pattern = r"compiling and tuning: (1 problem|\d+ problems), \d+ s, about \d+ s left of 100 s at most"
    assert re.search(pattern, on_terminal(["compile", "--cpu", "--exhaustive-tune", "--tuning-seconds", 100, tmp_path / "m.onnx"], pattern))
