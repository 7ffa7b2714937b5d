# SPDX-License-Identifier: MIT
"""ONNX backend: prepare a model once, run it often.

    rep = MIGraphXBackend.prepare(model, "CPU")
    outputs = rep.run([x])

A device is a target's name in any case ("CPU", "REF"); the part after a colon is ignored.
Needs numpy and onnx.
"""
import migraphx
import onnx
from onnx import helper
from onnx.backend.base import Backend

from onnx_migraphx.backend_rep import MIGraphXBackendRep


def _target_of(device):
    return device.split(":")[0].lower()


class MIGraphXBackend(Backend):
    _device = "ref"
    _program = None

    @classmethod
    def set_device(cls, device):
        """The target that is used when a call names none."""
        cls._device = _target_of(device)

    @classmethod
    def get_program(cls):
        """The program of the last prepare()."""
        return cls._program

    @classmethod
    def supports_device(cls, device):
        return _target_of(device) in migraphx.get_targets()

    @classmethod
    def is_compatible(cls, model, device=None, **kwargs):
        try:
            cls._parse(model, kwargs)
        except RuntimeError:
            return False
        return True

    @staticmethod
    def _parse(model, options):
        if isinstance(model, str):
            return migraphx.parse_onnx(model, **options)
        if hasattr(model, "SerializeToString"):
            model = model.SerializeToString()
        return migraphx.parse_onnx_buffer(model, **options)

    @classmethod
    def prepare(cls, model, device=None, **kwargs):
        """Import and compile. `kwargs` go to parse_onnx; dimensions that the model leaves open stay open."""
        kwargs.setdefault("dynamic_dims", True)
        outputs = list(model.graph.output) if hasattr(model, "graph") else None
        inputs = [i.name for i in model.graph.input] if outputs is not None else None
        program = cls._parse(model, kwargs)
        program.compile(migraphx.get_target(_target_of(device) if device else cls._device))
        cls._program = program
        return MIGraphXBackendRep(program, inputs, outputs)

    @classmethod
    def run_model(cls, model, inputs, device=None, **kwargs):
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device=None, outputs_info=None, **kwargs):
        """One node as a model of its own; outputs_info: [(dtype, shape), ...]."""
        names = [name for name in node.input if name]
        graph_inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in zip(names, inputs)
        ]
        kinds = outputs_info or [None] * len(node.output)
        graph_outputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(kind[0]), kind[1])
            if kind else helper.make_empty_tensor_value_info(name)
            for name, kind in zip(node.output, kinds)
        ]
        graph = helper.make_graph([node], "node", graph_inputs, graph_outputs)
        version = kwargs.pop("opset_version", None)
        opsets = [helper.make_opsetid(node.domain, version)] if version else None
        model = helper.make_model(graph, **({"opset_imports": opsets} if opsets else {}))
        return cls.prepare(model, device, **kwargs).run(inputs)


is_compatible = MIGraphXBackend.is_compatible
prepare = MIGraphXBackend.prepare
run = MIGraphXBackend.run_model
run_model = MIGraphXBackend.run_model
run_node = MIGraphXBackend.run_node
supports_device = MIGraphXBackend.supports_device
set_device = MIGraphXBackend.set_device
get_program = MIGraphXBackend.get_program
