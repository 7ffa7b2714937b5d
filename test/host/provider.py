# SPDX-License-Identifier: MIT
"""What the tests of the ONNX Runtime provider share: sessions that forbid the host's own processor, where nodes went, small models."""
import os

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

LIBRARY = os.environ["MGX_ORT_LIBRARY"]
OWN, MIGRAPHX, AMD = "MgxExecutionProvider", "MIGraphXExecutionProvider", "AMDGPUExecutionProvider"
F, I, B, S = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING


def register():
    """Once, whichever file of tests comes first: the host has the devices of every name that a library is registered under."""
    if not any(d.ep_name == OWN for d in ort.get_ep_devices()):
        ort.register_execution_provider_library("mgx", LIBRARY)


def session(model, devices, options=(), fallback=False, optimise=True, **entries):
    """A path, or a model; on these devices alone unless the host may fall back."""
    o = ort.SessionOptions()
    o.log_severity_level = 4
    o.intra_op_num_threads = 1
    if not optimise:
        o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.add_provider_for_devices(devices, dict(options))
    o.add_session_config_entry("session.disable_cpu_ep_fallback", str(int(not fallback)))
    o.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    for key, value in entries.items():
        o.add_session_config_entry(key, value)
    return ort.InferenceSession(model if isinstance(model, str) else model.SerializeToString(), o)


def placed(s):
    """Names of operators by the provider that has them."""
    where = {}
    for part in s.get_provider_graph_assignment_info():
        where.setdefault(part.ep_name, []).extend(n.op_type for n in part.get_nodes())
    return where


def model_of(nodes, inputs, outputs, weights=(), opset=17, domains=()):
    """Domains with their version: {"com.microsoft": 1}."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value(*i) for i in inputs], [value(*o) for o in outputs],
                              [numpy_helper.from_array(np.asarray(a), n) for n, a in dict(weights).items()])
    opsets = [helper.make_opsetid("", opset), *[helper.make_opsetid(d, v) for d, v in dict(domains).items()]]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def expect(model, feed):
    """What the host's own processor says."""
    data = model if isinstance(model, str) else model.SerializeToString()
    return ort.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feed)


def compare(s, feed, want, rtol, atol):
    """Three runs, each of them equal to that."""
    for _ in range(3):
        for g, w in zip(s.run(None, feed), want):
            assert g.dtype == w.dtype and g.shape == w.shape
            if w.dtype == object:
                assert (g == w).all()
            else:
                np.testing.assert_allclose(g, w, rtol=rtol, atol=atol)
