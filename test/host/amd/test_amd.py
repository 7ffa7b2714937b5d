# SPDX-License-Identifier: MIT
"""AMD's own build of ONNX Runtime, whose provider was built for MIGraphX, over this engine's library.

Its package lies unpacked in MGX_AMD_PACKAGES; the engine's card is OpenCL on a processor, and HIP's calls are stand-ins
(hip.c) in MGX_AMD_HIP. Each session is a process of its own, which has those on its path of libraries. Results are those of the package's
own processor.
"""
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

PACKAGES, HIP, LIBRARY = (os.environ.get(name, "") for name in ("MGX_AMD_PACKAGES", "MGX_AMD_HIP", "MGX_LIBRARY"))
NAME = "libonnxruntime_providers_migraphx.so"
rng = np.random.default_rng(9)
F = TensorProto.FLOAT

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.log_severity_level = 3
session = ort.InferenceSession(sys.argv[2], options, providers=[("MIGraphXExecutionProvider", eval(sys.argv[3]))])
assert session.get_providers()[0] == "MIGraphXExecutionProvider", session.get_providers()
plain = ort.InferenceSession(sys.argv[2], providers=["CPUExecutionProvider"])
for feed in np.load(sys.argv[4], allow_pickle=True):
    for _ in range(3):
        for got, want in zip(session.run(None, feed), plain.run(None, feed)):
            np.testing.assert_allclose(got, want, rtol=float(sys.argv[5]), atol=float(sys.argv[5]))
libraries = open("/proc/self/maps").read()
assert sys.argv[6] in libraries
print("right")
"""


def loads():
    return os.path.exists(os.path.join(PACKAGES, "onnxruntime", "capi", NAME)) and os.path.exists(os.path.join(HIP, "libamdhip64.so.7"))


def has_card():
    """Asked in a process of its own, for the driver's name is the engine's environment."""
    program = "import ctypes, sys; t = ctypes.c_void_p(); sys.exit(ctypes.CDLL(sys.argv[1]).migraphx_target_create(ctypes.byref(t), b'gpu'))"
    environment = dict(os.environ, MIGRAPHX_GPU_DEVICE="opencl")
    return subprocess.run([sys.executable, "-c", program, LIBRARY], env=environment, capture_output=True).returncode == 0


pytestmark = [pytest.mark.skipif(not loads(), reason="AMD's package is not there (make venv brings it)"),
              pytest.mark.skipif(loads() and not has_card(), reason="there is no OpenCL")]


def array(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def check(folder, model, feeds, options=None, tolerance=1e-4):
    path, data = str(folder / "m.onnx"), str(folder / "feeds.npy")
    onnx.save(model, path)
    np.save(data, np.array(feeds, object), allow_pickle=True)
    paths = [HIP, os.path.dirname(LIBRARY), *os.environ.get("LD_LIBRARY_PATH", "").split(":")]
    environment = dict(os.environ, MIGRAPHX_GPU_DEVICE="opencl", LD_LIBRARY_PATH=":".join(p for p in paths if p))
    done = subprocess.run([sys.executable, "-B", "-c", PROGRAM, PACKAGES, path, repr(options or {}), data, str(tolerance), os.path.realpath(LIBRARY)],
                          env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "right" in done.stdout, done.stderr[-2000:]


def model_of(nodes, inputs, outputs, weights):
    value = helper.make_tensor_value_info
    return helper.make_model(helper.make_graph(nodes, "g", [value(*i) for i in inputs], [value(*o) for o in outputs],
                                               [numpy_helper.from_array(w, n) for n, w in weights.items()]),
                             opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def mlp(n=4):
    return model_of([helper.make_node("Gemm", ["x", "w", "b"], ["s"]), helper.make_node("Relu", ["s"], ["y"])], [("x", F, [n, 16])],
                    [("y", F, [n, 8])], {"w": array(16, 8), "b": array(8)})


def images():
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1] * 4), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("GlobalAveragePool", ["r"], ["p"]), helper.make_node("Flatten", ["p"], ["f"]),
             helper.make_node("MatMul", ["f", "v"], ["s"]), helper.make_node("Softmax", ["s"], ["y"])]
    return model_of(nodes, [("x", F, [2, 3, 16, 16])], [("y", F, [2, 10]), ("f", F, [2, 8])],
                    {"w": array(8, 3, 3, 3), "b": array(8), "v": array(8, 10)})


def test_products(tmp_path):
    check(tmp_path, mlp(), [{"x": array(4, 16)} for _ in range(3)])


def test_images_and_two_results(tmp_path):
    check(tmp_path, images(), [{"x": array(2, 3, 16, 16)}])


def test_sizes_that_change(tmp_path):
    check(tmp_path, mlp("N"), [{"x": array(n, 16)} for n in (1, 5, 2, 5)])


def test_half_precision(tmp_path):
    check(tmp_path, mlp(), [{"x": array(4, 16)}], {"migraphx_fp16_enable": "1"}, 3e-2)


def test_compiled_models_are_kept(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    model = images()  # one: the provider's key for what it kept does not look at weights
    for _ in range(2):
        check(tmp_path, model, [{"x": array(2, 3, 16, 16)}], {"migraphx_model_cache_dir": str(kept)})
    assert any(name.endswith(".mxr") for name in os.listdir(kept))
