# SPDX-License-Identifier: MIT
"""The ONNX backend interface over migraphx."""
