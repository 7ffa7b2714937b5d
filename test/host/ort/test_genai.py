# SPDX-License-Identifier: MIT
"""ONNX Runtime GenAI with the provider: the same 200 tokens as with the host's own processor.

The models are the generator's small decoders: caches with room that are shared between past and present,
the same without sharing, and caches that grow by concat.
"""
import json
import os
import sys

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
genai = pytest.importorskip("onnxruntime_genai")
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
import decoders  # noqa: E402

LIBRARY = os.environ["MGX_ORT_LIBRARY"]
OWN = "MgxExecutionProvider"
LENGTH = 204  # the prompt's four and 200 more


@pytest.fixture(scope="module", autouse=True)
def registered():
    genai.register_execution_provider_library("mgx-genai", LIBRARY)


def folder_of(path, kind, provider, share, options=None):
    decoders.save(path, kind, context=512, ends=(49,))
    name = os.path.join(path, "genai_config.json")
    with open(name) as f:
        config = json.load(f)
    config["model"].update(type="llama", bos_token_id=0, eos_token_id=[49], pad_token_id=0)
    config["model"]["decoder"].update(
        head_size=16, hidden_size=64, num_attention_heads=4, num_hidden_layers=2,
        num_key_value_heads=2 if kind == "room" else 4,
        session_options={"provider_options": [{provider: options or {}}] if provider else [],
                         "session.disable_cpu_ep_fallback": "1" if provider else "0"})
    config["search"].update(do_sample=False, past_present_share_buffer=share, max_length=256)
    with open(name, "w") as f:
        json.dump(config, f)
    return path


def tokens_of(folder):
    model = genai.Model(folder)
    params = genai.GeneratorParams(model)
    params.set_search_options(max_length=LENGTH, min_length=LENGTH, do_sample=False)
    generator = genai.Generator(model, params)
    generator.append_tokens(np.array([[5, 7, 9, 11]], np.int32))
    while not generator.is_done():
        generator.generate_next_token()
    return list(generator.get_sequence(0))


@pytest.mark.parametrize("kind,share", [("room", True), ("room", False), ("growing", False)])
def test_the_same_tokens(tmp_path, kind, share):
    want = tokens_of(folder_of(str(tmp_path / "host"), kind, None, share))
    got = tokens_of(folder_of(str(tmp_path / "ours"), kind, OWN, share))
    assert len(want) == LENGTH and got == want


def test_a_bad_option_is_said(tmp_path):
    with pytest.raises(Exception, match="unknown option nonsense"):
        tokens_of(folder_of(str(tmp_path / "bad"), "room", OWN, True, {"nonsense": "1"}))
