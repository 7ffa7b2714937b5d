# SPDX-License-Identifier: MIT
"""Texts that are about something: models of an encoder and a decoder, against ONNX Runtime over whole texts, without caches."""
import json
import os
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

sys.path.insert(0, os.path.dirname(__file__))
import migraphx
import translators
from migraphx import speech
from migraphx.generate import Model

TARGET = os.environ.get("MGX_SOURCE_TARGET", "cpu")


class Reference:
    def __init__(self, encoder, decoder):
        self.encoder, self.decoder = (onnxruntime.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"])
                                      for m in (encoder, decoder))

    def scores(self, source, tokens):
        given = dict(source)
        if "input_ids" in given:
            given.setdefault("attention_mask", np.ones_like(given["input_ids"]))
        feed = {"encoder_hidden_states": self.encoder.run(None, given)[0], "input_ids": np.array([tokens], np.int64)}
        if "encoder_attention_mask" in [i.name for i in self.decoder.get_inputs()]:
            feed["encoder_attention_mask"] = given["attention_mask"]
        return self.decoder.run(None, feed)[0][0, -1]


def source_of(rng, heard, length):
    if heard:
        return {"input_features": rng.standard_normal((1, 8, length)).astype(np.float32)}
    return {"input_ids": rng.integers(0, translators.WORDS, (1, length))}


def check(generator, text, reference, source, tokens, count):
    for _ in range(count):
        want = reference.scores(source, tokens)
        assert np.abs(np.asarray(generator.logits(text)) - want).max() < 2e-5 * max(1, np.abs(want).max())
        token, = generator.next([text])
        assert token == want.argmax()
        tokens.append(token)


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("layout", translators.LAYOUTS)
def test_scores(tmp_path, layout, heard):
    reference = Reference(*translators.save(str(tmp_path), layout, heard))
    generator = migraphx.generator(str(tmp_path), TARGET)
    assert generator.start == 2 and generator.context == translators.POSITIONS and generator.is_end(1)
    rng = np.random.default_rng(7)
    for length in (5, 11, 5):
        source, tokens = source_of(rng, heard, length), [2, 7, 9, 4]
        text = generator.add()
        generator.set_source(text, source)
        generator.append(text, tokens)
        check(generator, text, reference, source, tokens, 6)
        generator.rewind(text, 3)  # goes back behind what it was told
        tokens = tokens[:3] + [8]
        generator.append(text, [8])
        check(generator, text, reference, source, tokens, 3)
        other = generator.fork(text, 5)  # the same source
        check(generator, other, reference, source, tokens[:5], 3)
        fresh = source_of(rng, heard, length + 2)
        generator.set_source(text, fresh)  # the same tokens about something else
        check(generator, text, reference, fresh, tokens, 3)
        generator.remove(other)


@pytest.mark.parametrize("layout", ["merged", "pair"])
def test_a_hidden_part(tmp_path, layout):
    reference = Reference(*translators.save(str(tmp_path), layout))
    generator = migraphx.generator(str(tmp_path), TARGET)
    source = source_of(np.random.default_rng(1), False, 9)
    source["attention_mask"] = np.array([[1, 1, 0, 1, 1, 1, 0, 0, 0]])
    text = generator.add()
    generator.set_source(text, source)
    source["input_ids"][0, 7] = 5  # the caller's array is his again
    source["attention_mask"][0, 0] = 1
    generator.append(text, [2])
    check(generator, text, reference, source, [2], 4)


class Passing:
    """An encoder that hands its inputs on: what it gives lies where they do."""

    def __init__(self, folder):
        g = translators.Graph()
        names = [f"{what}_cross_{layer}" for layer in range(translators.LAYERS) for what in translators.BOTH]
        for name in names:
            g.node("Identity", name, name="present_" + name)
        cache = translators.cache
        onnx.save(g.model([cache(n, "source") for n in names], [cache("present_" + n, "source") for n in names]), folder / "encoder.onnx")
        self.names = names
        self.decoder = onnxruntime.InferenceSession(str(folder / "decoder.onnx"), providers=["CPUExecutionProvider"])

    def scores(self, source, tokens):
        feed = {i.name: np.zeros((1, translators.HEADS, 0, translators.SIZE), np.float32) for i in self.decoder.get_inputs()}
        feed.update({"past_" + n: source[n] for n in self.names}, input_ids=np.array([tokens], np.int64))
        return self.decoder.run(None, feed)[0][0, -1]


def test_what_an_encoder_hands_on_is_kept(tmp_path):
    translators.save(str(tmp_path), "crossed")
    passing = Passing(tmp_path)
    generator = migraphx.generator(str(tmp_path), TARGET)
    rng = np.random.default_rng(2)
    for _ in range(3):
        source = {n: rng.standard_normal((1, translators.HEADS, 6, translators.SIZE)).astype(np.float32) for n in passing.names}
        given = {n: x.copy() for n, x in source.items()}
        text = generator.add()
        generator.set_source(text, given)
        for x in given.values():  # the caller's again
            x[:] = np.nan
        del given
        generator.append(text, [2])
        check(generator, text, passing, source, [2], 3)


def test_two_texts_take_turns(tmp_path):
    reference = Reference(*translators.save(str(tmp_path), "merged"))
    generator = migraphx.generator(str(tmp_path), TARGET)
    rng = np.random.default_rng(3)
    texts = [(generator.add(), source_of(rng, False, n), [2]) for n in (4, 8)]
    for text, source, tokens in texts:
        generator.set_source(text, source)
        generator.append(text, tokens)
    for _ in range(5):
        got = generator.next([text for text, _, _ in texts])
        for token, (_, source, tokens) in zip(got, texts):
            assert token == reference.scores(source, tokens).argmax()
            tokens.append(token)


def test_what_is_wrong_is_named(tmp_path):
    translators.save(str(tmp_path), "merged")
    generator = migraphx.generator(str(tmp_path), TARGET)
    assert sorted(generator.source_shapes()) == ["attention_mask", "input_ids"]
    text = generator.add()
    generator.append(text, [2])
    with pytest.raises(RuntimeError, match="text 0 is about nothing yet"):
        generator.next([text])
    with pytest.raises(RuntimeError, match='no input "words": it takes "input_ids", "attention_mask"'):
        generator.set_source(text, {"words": np.zeros((1, 3), np.int64)})
    with pytest.raises(RuntimeError, match='"input_ids" is not given'):
        generator.set_source(text, {"attention_mask": np.ones((1, 3), np.int64)})
    with pytest.raises(TypeError, match="names of inputs must be str"):
        generator.set_source(text, {3: np.ones((1, 3), np.int64)})
    if TARGET == "cpu":  # a card does not see it, and reads zeros (docs/answers.md)
        with pytest.raises(RuntimeError):
            generator.set_source(text, {"input_ids": np.full((1, 3), 10**6)})
    with pytest.raises(RuntimeError, match="there is no text 5"):
        generator.set_source(5, {"input_ids": np.ones((1, 3), np.int64)})
    generator.set_source(text, {"input_ids": np.ones((1, 3), np.int64)})
    generator.next([text])


@pytest.mark.parametrize("layout, gone", [("merged", "encoder_model"), ("pair", "encoder_model"), ("pair", "decoder_model")])
def test_a_file_that_is_missing_is_named(tmp_path, layout, gone):
    translators.save(str(tmp_path), layout)
    os.remove(tmp_path / (gone + ".onnx"))
    with pytest.raises(RuntimeError, match=f"the model has an encoder, and there is no .*{gone}.onnx"):
        migraphx.generator(str(tmp_path))


def test_a_model_without_an_encoder(tmp_path):
    import decoders
    decoders.save(str(tmp_path), "growing")
    generator = migraphx.generator(str(tmp_path))
    assert generator.start is None and not generator.source_shapes()
    with pytest.raises(RuntimeError, match="no encoder"):
        generator.set_source(generator.add(), {})


def test_several_sources_in_one_are_refused(tmp_path):
    translators.save(str(tmp_path), "merged")
    generator = migraphx.generator(str(tmp_path), TARGET)
    text = generator.add()
    generator.append(text, [2])
    with pytest.raises(RuntimeError, match="one thing.* of 2 of them"):
        generator.set_source(text, {"input_ids": np.ones((2, 3), np.int64)})


# --- migraphx.generate ---

def test_a_model_writes_about_its_prompt(tmp_path):
    reference = Reference(*translators.save(str(tmp_path), "merged"))
    model = Model(str(tmp_path))
    tokens = [2]
    for _ in range(6):
        tokens.append(int(reference.scores({"input_ids": np.array([[5, 9, 30]])}, tokens).argmax()))
    want = tokens[1:tokens.index(1)] if 1 in tokens else tokens[1:]
    for _ in range(3):
        assert model.generate([5, 9, 30], max_tokens=6, stream=False) == want
    assert model.generate({"input_ids": [[5, 9, 30]]}, max_tokens=6, stream=False) == want
    assert model.generate_many([[5, 9, 30], [7]], max_tokens=6, stream=False)[0] == want
    assert model.generate([5, 9, 30], max_tokens=2, begin=tokens[:3], stream=False) == tokens[3:5]


def makers(folder, **said):
    with open(folder / "generation_config.json", "w", encoding="utf-8") as file:
        json.dump(said, file)


def test_what_makers_say_of_the_beginning(tmp_path):
    translators.save(str(tmp_path), "pair", heard=True)
    source = {"input_features": np.ones((1, 8, 6), np.float32)}
    makers(tmp_path, lang_to_id={"<|en|>": 10, "<|de|>": 11}, task_to_id={"transcribe": 12, "translate": 13}, no_timestamps_token_id=14,
           suppress_tokens=list(range(40)), begin_suppress_tokens=list(range(50, 60)))
    model = Model(str(tmp_path))
    answer = model.generate(source, max_tokens=8, language="de", task="translate")
    assert answer._prompt == [2, 11, 13, 14]
    tokens = [token for piece in answer for token in piece]
    assert 40 <= tokens[0] < 50 and all(token >= 40 for token in tokens)
    assert model.generate(source, max_tokens=1)._prompt[1] in (10, 11)
    with pytest.raises(ValueError, match="no language '<|fr|>'.*<|de|>, <|en|>"):
        model.generate(source, language="fr")
    makers(tmp_path, forced_bos_token_id=33)
    assert Model(str(tmp_path)).generate(source, max_tokens=1)._prompt == [2, 33]


def test_a_prompt_that_an_encoder_does_not_take(tmp_path):
    translators.save(str(tmp_path), "pair", heard=True)
    model = Model(str(tmp_path))
    with pytest.raises(TypeError, match="encoder takes input_features"):
        model.generate("text")
    with pytest.raises(ValueError, match="62.5 s of sound"):
        model.generate(np.zeros(1000000, np.float32))
    with pytest.raises(ValueError, match="one channel"):
        model.generate(np.zeros((2, 3)))


def slow_features(samples, mels):
    """The definition, one frame after the other, by a table of cosines and sines."""
    x = np.pad(np.concatenate([samples, np.zeros(480000 - samples.size)]), 200, mode="reflect")
    turn = np.exp(-2j * np.pi * np.outer(np.arange(201), np.arange(400)) / 400)
    window = np.sin(np.pi * np.arange(400) / 400) ** 2
    rows = {t: np.abs(turn @ (x[160 * t:160 * t + 400] * window)) ** 2 for t in (0, 1, 7, 100, 2999)}
    return {t: np.log10(np.maximum(row @ speech.filters(mels, 400, 16000), 1e-10)) for t, row in rows.items()}


@pytest.mark.parametrize("mels", [80, 128])
def test_sound(mels):
    samples = np.sin(np.arange(40000) * 0.3) + 0.01 * np.random.default_rng(0).standard_normal(40000)
    got = speech.features(samples, {"feature_size": mels})
    assert got.shape == (1, mels, 3000) and got.dtype == np.float32
    top = got.max() * 4 - 4  # log10 of the largest
    for t, row in slow_features(samples, mels).items():
        assert np.abs((np.maximum(row, top - 8) + 4) / 4 - got[0, :, t]).max() < 1e-4
    bank = speech.filters(mels, 400, 16000)
    loudest = got[0, :, 100].argmax()  # 0.3 radians a sample are 764 Hz
    assert bank[:, loudest].argmax() in (19, 20) and np.count_nonzero(bank[:, loudest])


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-p", "no:cacheprovider"]))
