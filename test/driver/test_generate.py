# SPDX-License-Identifier: MIT
"""generate: tokens by the engine, text by python3, and what is said where either is missing."""
import json
import os
import re
import sys
import wave

import pytest

from test_debugging import drive

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import decoders  # noqa: E402
import translators  # noqa: E402

PROMPT = "5,6,7"


@pytest.fixture(name="decoder", scope="module")
def make_decoder(tmp_path_factory):
    path = tmp_path_factory.mktemp("decoder")
    decoders.save(str(path), "room", words=300, ends=(2,), context=60)
    return path


def write(decoder, *words, **more):
    return [int(t) for t in drive("generate", decoder, "--tokens", PROMPT, *words, **more).stdout.split()]


def test_tokens(decoder):
    done = drive("generate", decoder, "--tokens", PROMPT, "--max-tokens", "9")
    tokens = [int(t) for t in done.stdout.split()]
    assert len(tokens) == 9
    report = r"prompt: 3 tokens, [\d.]+ a second; answer: 8 tokens, [\d.]+ a second; ready after [\d.]+ s; \d+ MiB resident"
    assert re.search(report, done.stderr), done.stderr
    whole = write(decoder)
    assert whole[:9] == tokens and len(whole) == 57  # up to the context
    for flags in (["--cpu"], ["--ref"], ["--threads", "1"], ["--isa", "generic"], ["--guesses", "4"], ["--guesses", "4", "--draft", decoder], ["--top-k", "1", "--temperature", "1"],
                  ["--top-p", "0", "--temperature", "1"], ["--min-p", "1", "--temperature", "1"]):
        assert write(decoder, "--max-tokens", "9", *flags) == tokens


def test_chance(decoder):
    def draw(*words):
        return tuple(write(decoder, "--max-tokens", "9", "--temperature", "3", *words))

    assert draw("--seed", "1") == draw("--seed", "1") != draw("--seed", "2")
    assert len({write(decoder, "--max-tokens", "30", "--repetition-penalty", x)[-1] for x in ("1", "1000")}) == 2


def test_what_is_wrong(decoder, tmp_path):
    for words in ([], [decoder], [decoder, "--tokens", "1", "--prompt", "x"], ["--tokens", "1"]):
        assert "generate needs a folder, and --prompt, --sound or --tokens" in drive("generate", *words, code=2).stderr
    for tokens, message in (("1,x", "numbers with commas"), ("", "numbers with commas"), ("1,,2", "numbers with commas"),
                            ("1,300", "token 300, number 1 of 2, is none of the model's 300")):
        assert message in drive("generate", decoder, "--tokens", tokens, code=1).stderr
    assert "16 guesses at a time are more than 15" in drive("generate", decoder, "--tokens", "1", "--guesses", "16", code=1).stderr
    assert "there is no model" in drive("generate", tmp_path, "--tokens", "1", code=1).stderr
    assert "No such file" in drive("generate", tmp_path / "absent", "--tokens", "1", code=1).stderr
    assert "-1 is not 0 or more" in drive("generate", decoder, "--tokens", "1", "--temperature", "-1", code=1).stderr


def test_the_card_is_missing_in_words(decoder):
    done = drive("generate", decoder, "--tokens", PROMPT, "--gpu", "--max-tokens", "2", code=1, MIGRAPHX_GPU_DEVICE="cuda:77")
    assert "gpu" in done.stderr


def test_tokens_that_an_encoder_reads(tmp_path):
    translators.save(str(tmp_path), "merged")
    written = drive("generate", tmp_path, "--tokens", "5,9,30", "--max-tokens", "6").stdout.split()
    assert 1 <= len(written) <= 6 and written != drive("generate", tmp_path, "--tokens", "7", "--max-tokens", "6").stdout.split()
    translators.save(str(tmp_path / "heard"), "merged", heard=True)
    assert 'it takes "input_features"' in drive("generate", tmp_path / "heard", "--tokens", "5", code=1).stderr


@pytest.mark.skipif("MODULE" not in os.environ, reason="the Python module is not built")
def test_sound(tmp_path):
    place = {"PYTHONPATH": os.environ["MODULE"], "PATH": os.path.dirname(os.environ["PYTHON"]) + ":" + os.environ["PATH"]}
    translators.save(str(tmp_path), "pair", heard=True)
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(32000))
    with open(tmp_path / "preprocessor_config.json", "w", encoding="utf-8") as file:
        json.dump({"feature_size": 8, "chunk_length": 1}, file)
    words = ["generate", tmp_path, "--sound", tmp_path / "a.wav", "--max-tokens", "3"]
    assert 1 <= len(drive(*words, **place).stdout.split()) <= 3
    with open(tmp_path / "generation_config.json", "w", encoding="utf-8") as file:
        json.dump({"lang_to_id": {"<|en|>": 10}, "task_to_id": {"translate": 12}}, file)
    assert drive(*words, "--language", "en", "--task", "translate", **place).stdout.split()
    assert "knows no language '<|de|>': it knows <|en|>" in drive(*words, "--language", "de", code=1, **place).stderr
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((2, 1, 44100, 0, "NONE", ""))
        file.writeframes(bytes(100))
    assert "44100 Hz and 8 bits, where 16000 Hz and 16 bits are wanted" in drive(*words, code=1, **place).stderr


@pytest.mark.skipif("MODULE" not in os.environ, reason="the Python module is not built")
def test_text(decoder, tmp_path):
    place = {"PYTHONPATH": os.environ["MODULE"], "PATH": os.path.dirname(os.environ["PYTHON"]) + ":" + os.environ["PATH"]}
    words = ["generate", decoder, "--prompt", "Hello", "--chat", "--stop", "a", "b", "--max-tokens", "3"]
    done = drive(*words, code=1, **place)
    assert "there is no tokenizer.json; give tokens instead of text" in done.stderr
    done = drive(*words, code=1, PATH=place["PATH"], PYTHONPATH=str(tmp_path))
    assert "pip install .[text]" in done.stderr
    done = drive(*words, code=1, PATH=str(tmp_path))
    assert "--tokens needs no Python" in done.stderr
