# SPDX-License-Identifier: MIT
"""The provider's wheel: what is in it, that it asks for nothing, and that it works where it is unpacked."""
import os
import subprocess
import sys
import zipfile

import pytest

pytest.importorskip("onnxruntime")
SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
BUILD = os.path.dirname(os.path.dirname(os.environ["MGX_ORT_LIBRARY"]))
PROGRAM = """
import os, numpy as np, onnxruntime as ort, onnxruntime_ep_mgx as mgx
from onnx import TensorProto as T, helper as h
assert os.path.dirname(mgx.get_library_path()) == os.path.dirname(mgx.__file__)
ort.register_execution_provider_library("mgx", mgx.get_library_path())
names = [d.ep_name for d in ort.get_ep_devices()]
assert set(mgx.get_ep_names()) <= set(names) and mgx.get_ep_name() in names
value = h.make_tensor_value_info
m = h.make_model(h.make_graph([h.make_node("Neg", ["x"], ["y"])], "g", [value("x", T.FLOAT, [2])], [value("y", T.FLOAT, [2])]),
                 opset_imports=[h.make_opsetid("", 17)], ir_version=9)
o = ort.SessionOptions()
o.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == mgx.get_ep_name()], {})
o.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
s = ort.InferenceSession(m.SerializeToString(), o)
assert s.run(None, {"x": np.array([1, 2], np.float32)})[0].tolist() == [-1, -2]
maps = open("/proc/self/maps").read()
assert os.path.join(os.path.dirname(mgx.__file__), "libmigraphx_c.so.3") in maps
"""


def test_the_wheel(tmp_path):
    tool = os.path.join(SOURCE, "tool", "ort_wheel.py")
    path = subprocess.run([sys.executable, tool, BUILD, str(tmp_path / "out")], check=True, capture_output=True, text=True).stdout.strip()
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "in")
        names = set(archive.namelist())
        metadata = archive.read([n for n in names if n.endswith("METADATA")][0]).decode()
    assert {"onnxruntime_ep_mgx/__init__.py", "onnxruntime_ep_mgx/libmigraphx_ort.so", "onnxruntime_ep_mgx/libmigraphx_c.so.3"} < names
    assert "Requires-Dist" not in metadata and len(names) == 7
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path / "in"), os.environ.get("PYTHONPATH", "")]))
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, env=environment)
