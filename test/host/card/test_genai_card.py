# SPDX-License-Identifier: MIT
"""ONNX Runtime GenAI by its door for cards: its provider AMDGPU loads a library of that provider's name.

Caches lie in the card's memory, past and present one. The same 200 tokens as with the host's own processor.
"""
import os
import sys

os.environ["MIGRAPHX_GPU_DEVICE"] = os.environ.get("MGX_TEST_DEVICE", "opencl")

import pytest  # noqa: E402

ort = pytest.importorskip("onnxruntime")
genai = pytest.importorskip("onnxruntime_genai")
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "ort"))
import test_genai  # noqa: E402

LIBRARY = os.environ["MGX_ORT_LIBRARY"]


@pytest.fixture(scope="module", autouse=True)
def door(tmp_path_factory):
    """A link of the name that GenAI loads; the engine's library lies beside the provider's."""
    folder = str(tmp_path_factory.mktemp("door"))
    for name, target in (("libamdgpu-ep.so", LIBRARY), *((n, os.path.join(os.path.dirname(LIBRARY), n))
                         for n in os.listdir(os.path.dirname(LIBRARY)) if n.startswith("libmigraphx_c.so"))):
        os.symlink(os.path.realpath(target), os.path.join(folder, name))
    os.environ["AMDGPU_EP_PATH"] = os.path.join(folder, "libamdgpu-ep.so")


def has_card():
    def found():
        return any(d.device.type == ort.OrtHardwareDeviceType.GPU for d in ort.get_ep_devices())
    if not found():  # the other tests here may have registered it
        ort.register_execution_provider_library("probe", LIBRARY)
    return found()


pytestmark = pytest.mark.skipif(not has_card(), reason="there is no card, and no OpenCL")


def test_the_same_tokens(tmp_path):
    want = test_genai.tokens_of(test_genai.folder_of(str(tmp_path / "host"), "room", None, True))
    got = test_genai.tokens_of(test_genai.folder_of(str(tmp_path / "card"), "room", "AMDGPU", True))
    assert len(want) == test_genai.LENGTH and got == want
