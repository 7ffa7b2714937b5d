# SPDX-License-Identifier: MIT
"""Decoders that write about something, on an emulated card: the same scores, and caches, keys and values that stay in its memory.

The cases are test_source.py's, in a process of its own that has the card.
"""
import os
import subprocess
import sys

import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.environ.get("MGX_EMULATED_HIP", "")
ON_CARD = os.environ.get("MGX_SOURCE_TARGET") == "gpu"
if ON_CARD:
    import migraphx
    import numpy as np
    import translators
    from onnx import TensorProto, helper, numpy_helper

on_card = pytest.mark.skipif(not ON_CARD, reason="of an emulated card's own process")


def test_on_an_emulated_card():
    if ON_CARD or not os.path.exists(os.path.join(FOLDER, "libamdhip64.so.7")):
        pytest.skip("no emulated card")
    environment = dict(os.environ, MGX_SOURCE_TARGET="gpu", MIGRAPHX_GPU_DEVICE="hip", MGX_TEST_DEVICE="hip", MGX_EMULATED_ARCH="gfx90a",
                       LD_LIBRARY_PATH=FOLDER, MIGRAPHX_KERNEL_CACHE=os.path.join(FOLDER, "kernels"))
    cases = "" if os.environ.get("MGX_CASES") else "stay or count or hidden or keeps or (scores and not heard and not True) or (scores and pair)"
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", cases, "test_gpu_source.py", "test_source.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout[-3000:] + done.stderr[-1000:]


def source(rng, length):
    return {"input_ids": rng.integers(0, translators.WORDS, (1, length))}


def write(generator, about, tokens, count):
    text = generator.add()
    generator.set_source(text, about)
    generator.append(text, tokens)
    scores = [np.asarray(generator.logits(text))]
    for _ in range(count):
        generator.next([text])
        scores.append(np.asarray(generator.logits(text)))
    return text, np.array(scores)


def room_bytes():
    """Of the caches of a text, which have room for as many tokens as there are positions, or for 128 (generate/roles.c)."""
    return 2 * translators.LAYERS * translators.HEADS * translators.SIZE * 4 * max(128, translators.POSITIONS)


@on_card
@pytest.mark.parametrize("layout", ["merged", "pair", "crossed", "whole"])
def test_caches_stay_in_the_cards_memory(tmp_path, layout):
    translators.save(str(tmp_path), layout)
    rng = np.random.default_rng(3)
    cpu, gpu = (migraphx.generator(str(tmp_path), target) for target in ("cpu", "gpu"))
    for length in (3, 200, 9):  # two lengths that sources are filled up to, and one of them again
        about = source(rng, length)
        (_, want), (text, got) = write(cpu, about, [2, 5, 7], 5), write(gpu, about, [2, 5, 7], 5)
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * np.abs(want).max())
        assert gpu.statistics()["state_bytes"] == room_bytes()
        gpu.remove(text)


def changed(path, change):
    model = onnx.load(path)
    change(model.graph)
    onnx.save(model, path)


def state_bytes_of(folder, change, seed):
    """Of a text on the card, whose scores are the processor's, three times."""
    translators.save(str(folder), "pair")
    changed(str(folder / "decoder_with_past_model.onnx"), change)
    about = source(np.random.default_rng(seed), 6)
    cpu, gpu = (migraphx.generator(str(folder), target) for target in ("cpu", "gpu"))
    _, want = write(cpu, about, [2, 5, 7], 4)
    for _ in range(3):
        text, got = write(gpu, about, [2, 5, 7], 4)
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * np.abs(want).max())
        size = gpu.statistics()["state_bytes"]
        gpu.remove(text)
    return size


def add_sum_of_rows(graph):
    """Scores that look at all rows that a cache has, whoever's they are."""
    cache = next(o.name for o in graph.output if o.name.startswith("present") and "decoder" in o.name)
    made = next(n for n in graph.node if "logits" in n.output)
    made.output[list(made.output).index("logits")] = "bare"
    graph.initializer.extend([numpy_helper.from_array(np.int64([0, 1, 2, 3]), "all axes")])
    graph.node.extend([helper.make_node("ReduceSum", [cache, "all axes"], ["sum of rows"], keepdims=0),
                       helper.make_node("Tanh", ["sum of rows"], ["little"]), helper.make_node("Add", ["bare", "little"], ["logits"])])


@on_card
def test_a_decoder_that_looks_at_all_rows_keeps_its_caches_as_they_are(tmp_path):
    assert state_bytes_of(tmp_path, add_sum_of_rows, 5) < room_bytes()


def add_count(graph):
    """Scores that have how many tokens there are added, as a number and spread over the words."""
    cache = next(o.name for o in graph.output if o.name.startswith("present") and "decoder" in o.name)
    made = next(n for n in graph.node if "logits" in n.output)
    made.output[list(made.output).index("logits")] = "bare"
    graph.initializer.extend([numpy_helper.from_array(np.int64(2), "two")])
    graph.node.extend([helper.make_node("Shape", [cache], ["lengths of it"]), helper.make_node("Gather", ["lengths of it", "two"], ["tokens"]),
                       helper.make_node("Cast", ["tokens"], ["number"], to=TensorProto.FLOAT),
                       helper.make_node("Add", ["bare", "number"], ["logits"])])


@on_card
def test_how_many_tokens_there_are_is_a_count_of_them_and_not_of_rows(tmp_path):
    assert state_bytes_of(tmp_path, add_count, 6) == room_bytes()
