# SPDX-License-Identifier: MIT
"""A compiled program behind the ONNX backend interface."""
import migraphx
import numpy as np
from onnx.backend.base import BackendRep

# Types whose bits an argument shows as integers; ml_dtypes knows them by name.
_NARROW = {
    "bf16_type": "bfloat16",
    "fp8e4m3fn_type": "float8_e4m3fn",
    "fp8e4m3fnuz_type": "float8_e4m3fnuz",
    "fp8e5m2_type": "float8_e5m2",
    "fp8e5m2fnuz_type": "float8_e5m2fnuz",
    "fp8e8m0_type": "float8_e8m0fnu",
    "fp4e2m1_type": "float4_e2m1fn",
    "int4_type": "int4",
    "uint4_type": "uint4",
    "int2_type": "int2",
    "uint2_type": "uint2",
}


def to_numpy(argument):
    """The value of an argument, sharing its bytes: rank 0 stays rank 0, sequences become lists.

    A tuple is an optional: its only member, or None.
    """
    shape = argument.get_shape()
    kind = shape.type_string()
    if kind == "sequence_type":
        return [to_numpy(member) for member in argument.members()]
    if kind == "tuple_type":
        members = argument.members()
        return to_numpy(members[0]) if members else None
    dims = shape.lens() if shape.rank() else []
    if kind == "string_type":
        return np.array(argument.tolist(), dtype=object).reshape(dims)
    array = np.asarray(argument).reshape(dims)
    if kind in _NARROW:
        import ml_dtypes

        array = array.view(getattr(ml_dtypes, _NARROW[kind]))
    return array


def to_argument(value, shape=None):
    """The other way round: lists become sequences, and what `shape` says is a tuple becomes an optional."""
    if isinstance(value, migraphx.argument):
        return value
    if shape is not None and shape.type_string() == "tuple_type":
        member = shape.sub_shapes()[0] if shape.sub_shapes() else None
        return migraphx.argument(() if value is None else (to_argument(value, member),))
    if isinstance(value, (list, tuple)):
        return migraphx.argument([to_argument(item) for item in value])
    return migraphx.argument(np.asarray(value))


class MIGraphXBackendRep(BackendRep):
    def __init__(self, program, inputs=None, outputs=None):
        self._program = program
        known = set(program.get_parameter_names())
        # Initialisers that are also inputs are constants: they take no value.
        self._inputs = [n for n in inputs if n in known] if inputs else list(known)
        self._all_inputs = inputs or self._inputs
        self._output_count = len(outputs) if outputs else None

    def run(self, inputs, **kwargs):
        """`inputs`: one value per model input in order, or a dict; gives a list of arrays."""
        if isinstance(inputs, dict):
            params = inputs
        else:
            names = self._inputs if len(inputs) == len(self._inputs) else self._all_inputs
            params = dict(zip(names, inputs))
        shapes = self._program.get_parameter_shapes()
        params = {name: to_argument(v, shapes[name]) for name, v in params.items() if name in shapes}
        return [to_numpy(result) for result in self._program.run(params)]
