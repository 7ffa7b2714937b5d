# SPDX-License-Identifier: MIT
"""Whether there is a card to test on: MGX_TEST_DEVICE, else MIGRAPHX_GPU_DEVICE, else whatever OpenCL has. Imported before migraphx reads
the environment."""
import os

os.environ["MIGRAPHX_GPU_DEVICE"] = os.environ.get("MGX_TEST_DEVICE") or os.environ.get("MIGRAPHX_GPU_DEVICE") or "opencl"

import migraphx  # noqa: E402
import pytest  # noqa: E402


def why_none():
    """None where there is a card, else the engine's own sentence."""
    try:
        migraphx.gpu_sync()
    except RuntimeError as e:
        return str(e)
    return None


def some(cases):
    """All of them on a card that was named, or where MGX_CASES is set; else every third. Kernels of a card that is OpenCL on the processor
    take seconds to compile, and a merge waits for them."""
    cases = list(cases)
    return cases if os.environ.get("MGX_TEST_DEVICE") or os.environ.get("MGX_CASES") else cases[::3]


needs_card = pytest.mark.skipif(why_none() is not None, reason=str(why_none()))
