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


def repeated(run, check):
    """What run() gives, by check(); three times to the bit: as it is called, recorded and played. In the first run of a build with assertions steps
    that are one call are done one by one, each beside its witness (docs/gpu.md), and round what lies between: it is checked, and three more follow."""
    if os.environ.get("MGX_WITNESS") == "1":
        check(run())
    runs = [run() for _ in range(3)]
    for again in runs[1:]:
        assert len(again) == len(runs[0]) and all(a.tobytes() == b.tobytes() for a, b in zip(runs[0], again))
    check(runs[0])
    return runs[0]


needs_card = pytest.mark.skipif(why_none() is not None, reason=str(why_none()))
