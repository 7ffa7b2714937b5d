#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the models of the zoo on a target and compares with ONNX Runtime.

    verify.py --build build [--target ref | --host [--card]] [--models NAME ...] [--limit 1e-5]

Each model runs on the zoo's inputs and, where it has free dimensions, on a second set of sizes. Relative RMS of every float
result must be below the limit; integers must be equal. Rows of detections whose scores tie may come in another order (see
bench.untie). With --host it is ONNX Runtime itself that runs them, with the engine as its provider: every node must be placed
there, and three runs of each size must be right, of which the last ones may have plans of their own. With --card that is its first card, where
three more runs have inputs and results in the card's memory. Exit status 1 if any model is off.
"""
import argparse
import os
import sys
import time

import numpy as np
import onnx

import bench
import zoo

# A second value for each free dimension.
OTHER = {"N": 2, "T": 48, "H": 160, "W": 192}
# Where the graph ties a size down, or the model is made for one orientation.
OTHER_OF = {"crnn_lstm": {"W": 132}, "dbnet_resnet18": {"H": 256, "W": 192}, "retinaface_mobile": {"H": 256, "W": 192}, "mtcnn_pnet": {"H": 96, "W": 128}}


def free_symbols(model):
    initial = {t.name for t in model.graph.initializer}
    return {d.dim_param for v in model.graph.input if v.name not in initial for d in v.type.tensor_type.shape.dim if d.dim_param}


def check(args, name, path, symbols):
    import migraphx
    model = onnx.ModelProto.FromString(zoo.skeletons()[name])
    feed = zoo.inputs(name, model, symbols)
    reference = bench.Ort(path, feed, 1)()
    program = migraphx.parse_onnx(path, map_input_dims={k: list(v.shape) for k, v in feed.items()})
    program.compile(migraphx.get_target(args.target))
    start = time.perf_counter()
    results = program.run({k: v for k, v in feed.items() if k in program.get_parameter_names()})
    return bench.difference(results, reference), time.perf_counter() - start


PROVIDER = "MgxExecutionProvider"


def device_of(args):
    """The provider's card or its processor."""
    import onnxruntime as ort
    kind = ort.OrtHardwareDeviceType.GPU if args.card else ort.OrtHardwareDeviceType.CPU
    return [d for d in ort.get_ep_devices() if d.ep_name == PROVIDER and d.device.type == kind][:1]


def host_session(path, devices):
    """A session on that device, all of whose nodes are there."""
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.add_provider_for_devices(devices, {})
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = ort.InferenceSession(path, options)
    others = [n.op_type for p in session.get_provider_graph_assignment_info() if p.ep_name != PROVIDER for n in p.get_nodes()]
    if others:
        raise RuntimeError(f"the host keeps {', '.join(sorted(set(others)))}")
    return session


def room_on(device, value):
    import onnxruntime as ort
    memory = device.memory_info(ort.OrtDeviceMemoryType.DEFAULT)
    return ort.OrtValue.ortvalue_from_shape_and_type(list(value.shape), value.dtype.type, memory_info=memory)


def run_on_card(session, feed, like, device):
    """As session.run, with what goes in and out in the card's memory; results have the shapes and types of these."""
    import onnxruntime as ort
    binding = session.io_binding()
    for name, value in feed.items():
        room = room_on(device, value)
        ort.copy_tensors([ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value))], [room])
        binding.bind_ortvalue_input(name, room)
    rooms = [room_on(device, value) for value in like]
    for result, room in zip(session.get_outputs(), rooms):
        binding.bind_ortvalue_output(result.name, room)
    session.run_with_iobinding(binding)
    results = [ort.OrtValue.ortvalue_from_numpy(np.empty_like(value)) for value in like]
    ort.copy_tensors(rooms, results)
    return [r.numpy().copy() for r in results]  # which else are views of what goes


def check_in_host(args, name, path, symbols):
    feed = zoo.inputs(name, onnx.ModelProto.FromString(zoo.skeletons()[name]), symbols)
    reference, devices = bench.Ort(path, feed, 1)(), device_of(args)
    session, start = host_session(path, devices), time.perf_counter()
    worst = max(bench.difference(session.run(None, feed), reference) for _ in range(3))
    seconds = time.perf_counter() - start
    for _ in range(3 if args.card else 0):
        worst = max(worst, bench.difference(run_on_card(session, feed, reference, devices[0]), reference))
    return worst, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--target", default="ref")
    parser.add_argument("--host", action="store_true", help="ONNX Runtime with the provider of the build")
    parser.add_argument("--card", action="store_true", help="with --host: its first card, and tensors there")
    parser.add_argument("--zoo")
    parser.add_argument("--models", nargs="*")
    parser.add_argument("--limit", type=float, default=1e-5)
    args = parser.parse_args()
    sys.path.insert(0, os.path.join(args.build, "python"))
    args.zoo = args.zoo or os.path.join(args.build, "zoo")
    passed = failed = 0
    if args.host:
        import onnxruntime
        onnxruntime.register_execution_provider_library("mgx", os.path.abspath(os.path.join(args.build, "lib", "libmigraphx_ort.so")))
    for name in args.models or sorted(zoo.skeletons()):
        path = os.path.join(args.zoo, name + ".onnx")
        if not os.path.exists(path):
            zoo.main(["make", args.zoo, name])
        symbols = free_symbols(onnx.ModelProto.FromString(zoo.skeletons()[name]))
        sets = [None] + ([{s: {**OTHER, **OTHER_OF.get(name, {})}.get(s, 2) for s in symbols}] if symbols else [])
        for sizes in sets:
            try:
                error, seconds = (check_in_host if args.host else check)(args, name, path, sizes)
                text = f"{error:.2e} in {seconds:.2f} s"
                good = error <= args.limit
            except Exception as problem:  # the table goes on
                text, good = str(problem)[:300], False
            passed, failed = passed + good, failed + (not good)
            print(f"{'ok    ' if good else 'FAILED'} {name:26} {'' if sizes is None else sizes} {text}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
