# SPDX-License-Identifier: MIT
"""A compiled program behind the ONNX backend interface."""
import migraphx
import numpy as np
from onnx.backend.base import BackendRep


def to_numpy(value):
    """A result as ONNX has it: arrays, lists of them for sequences, None for an absent optional."""
    if isinstance(value, (list, tuple)):
        return type(value)(to_numpy(member) for member in value)
    return None if value is None else np.asarray(value)


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
        return [to_numpy(result) for result in self._program.run(params)]
