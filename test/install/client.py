# SPDX-License-Identifier: MIT
"""What a Python program needs of an installation, numpy apart. Prints relu(-1 2) = 0 2."""
import array

import migraphx
import onnx_migraphx
from migraphx import generate

program = migraphx.program()
main_module = program.get_main_module()
x = main_module.add_parameter("x", migraphx.shape(type="float_type", lens=[2]))
main_module.add_instruction(migraphx.op("relu"), [x])
program.compile(migraphx.get_target("cpu"))
result = program.run({"x": array.array("f", [-1, 2])})[0]
assert onnx_migraphx.__doc__ and generate.__doc__
print(*("%g" % value for value in result.tolist()))
