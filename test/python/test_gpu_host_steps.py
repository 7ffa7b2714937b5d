# SPDX-License-Identifier: MIT
"""No step of a decoder's operators is the host's on a card: cases of them, with ONNX Runtime's results, on an emulated card.

The cases are those of test/onnx/make_contrib.py; the runner says of each what was left to the host in its last run. MGX_CASES set: all of
them, else some of every operator.
"""
import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("onnxruntime")
HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.environ.get("MGX_EMULATED_HIP", "")
RUNNER = os.path.join(os.path.dirname(os.environ.get("MGX_DRIVER", "")), "mgx-run-onnx")
SOME = ("gqa_(kept._tensor|chunk|decode_rotary|packed|sink|bias|placeholders)|q?moe(4_block_zero.*|_step|_swiglu)$|masked_|"
        "sparse_chunk_1|linear_attention_gated_delta$|causal_conv_1_silu$|gated_delta$|paged_bytes$|nbits4_32|rotary_0$|skip_rms$")
ALL = "moe|sparse_|linear_att|causal_conv|masked|paged|nbits|gqa|rotary|delta|skip_|simplified"
# Caches that grow from no row at all: run by hand they are appended to by the steps for any size (targets/sizes.h).
GROWING = {"gqa_placeholders", "gqa_kept4_tensor_prompt", "gqa_kept8_tensor_prompt", "gqa_kept4_channel_prompt", "gqa_kept8_channel_prompt"}


def test_nothing_is_left_to_the_host(tmp_path):
    if not os.path.exists(os.path.join(FOLDER, "libamdhip64.so.7")) or not os.path.exists(RUNNER):
        pytest.skip("no emulated card, or no runner of models")
    only = ALL if os.environ.get("MGX_CASES") else SOME
    make = [sys.executable, "-B", os.path.join(HERE, "..", "onnx", "make_contrib.py"), "--out", str(tmp_path), "--only", only]
    subprocess.run(make, check=True, capture_output=True)
    environment = dict(os.environ, MIGRAPHX_GPU_DEVICE="hip", MGX_TEST_DEVICE="hip", MGX_EMULATED_ARCH="gfx90a", LD_LIBRARY_PATH=FOLDER)
    done = subprocess.run([RUNNER, "--target", "gpu", "--verbose", "--batch", "30", str(tmp_path)], env=environment, capture_output=True, text=True)
    said = re.findall(r"^passed (\S+), (.*)$", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and len(said) > 20, done.stdout[-3000:] + done.stderr[-1000:]
    left = {os.path.basename(case): what for case, what in said if what != "whole"}
    assert set(left) <= GROWING, left
