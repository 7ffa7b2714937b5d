# SPDX-License-Identifier: MIT
"""migraphx.generator on decoders of every kind: what it remembers of texts, beside ONNX Runtime, which is given each text whole."""
import json
import os
import threading

import migraphx
import numpy as np
import onnx
import onnxruntime
import pytest

import decoders

WORDS = 50


class Reference:
    """The scores behind a text, without any cache kept."""

    def __init__(self, model, one_by_one):
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        self.inputs = self.session.get_inputs()
        self.names = [o.name for o in self.session.get_outputs()]
        self.one_by_one = one_by_one

    def feed(self, tokens, done, states):
        n, end = len(tokens), done + len(tokens)
        known = {"input_ids": np.array([tokens], np.int64), "attention_mask": np.ones((1, end), np.int64),
                 "position_ids": np.arange(done, end, dtype=np.int64)[None], "seqlens_k": np.array([end - 1], np.int32),
                 "total_sequence_length": np.array(end, np.int32)}
        assert n
        return {i.name: states[i.name] if i.name.startswith("past") else known[i.name] for i in self.inputs}

    def empty(self):
        return {i.name: np.zeros([{"batch": 1, "past": 0}.get(d, d) for d in i.shape], np.float32)
                for i in self.inputs if i.name.startswith("past")}

    def __call__(self, tokens):
        states = self.empty()
        pieces = [[t] for t in tokens] if self.one_by_one else [list(tokens)]
        for at, piece in enumerate(pieces):
            results = dict(zip(self.names, self.session.run(None, self.feed(piece, at if self.one_by_one else 0, states))))
            states = {n: results[n.replace("past_key_values", "present").replace("past_", "present_")] for n in states}
        return results["logits"][0, -1]


@pytest.fixture(scope="module", params=decoders.KINDS)
def made(request, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp(request.param))
    model = decoders.save(folder, request.param)
    return folder, Reference(model, request.param in ("single", "stepwise"))


def some(count, seed=0):
    return np.random.default_rng(seed).integers(0, WORDS, count).tolist()


def check(g, text, reference):
    expected = reference(g.tokens(text))
    found = np.asarray(g.logits(text))
    assert np.abs(found - expected).max() <= 2e-5 * np.abs(expected).max()


def test_prompts_pieces_and_rewinds(made):
    folder, reference = made
    g = migraphx.generator(folder)
    text = g.add()
    for size in (7, 1, 5, 140):  # beyond the room that caches begin with
        g.append(text, some(size, size))
        check(g, text, reference)
    for _ in range(6):
        g.next([text])
    check(g, text, reference)
    before = g.tokens(text)
    for size in (len(before) - 1, 100, 9, 9):
        g.rewind(text, size)
        assert g.tokens(text) == before[:size]
        check(g, text, reference)
    g.append(text, some(3, 3))
    check(g, text, reference)
    g.rewind(text, 0)
    g.append(text, some(4, 4))
    check(g, text, reference)


def test_the_best_token_is_chosen(made):
    folder, reference = made
    g = migraphx.generator(folder)
    text = g.add()
    g.append(text, some(5))
    for _ in range(4):
        best = int(reference(g.tokens(text)).argmax())
        assert g.next([text]) == [best]
        assert g.tokens(text)[-1] == best


def test_a_rewound_text_goes_on_as_before(made):
    folder, _ = made
    g = migraphx.generator(folder)
    text = g.add()
    g.append(text, some(12))
    g.set_sampling(text, temperature=1, seed=5)
    first = [g.next([text])[0] for _ in range(10)]
    g.rewind(text, 14)
    assert [g.next([text])[0] for _ in range(8)] == first[2:]


def test_texts_come_and_go(made):
    folder, reference = made
    g = migraphx.generator(folder)
    a, b = g.add(), g.add()
    g.append(a, some(9, 1))
    g.append(b, some(4, 2))
    for _ in range(5):
        g.next([a, b])
    c = g.add()
    g.append(c, some(1, 3))
    for _ in range(3):
        g.next([c, a, b])
    check(g, b, reference)
    g.rewind(a, 10)  # in the middle of a batch
    for _ in range(3):
        g.next([a, b, c])
    g.remove(b)
    with pytest.raises(RuntimeError, match="there is no text 1: it was removed"):
        g.next([b])
    for _ in range(130):  # past the room, together
        g.next([a, c])
    check(g, a, reference)
    check(g, c, reference)
    again = g.add()
    assert again == b and g.tokens(again) == []
    g.append(again, some(3, 7))
    g.next([again, c, a])
    for text in (a, c, again):
        check(g, text, reference)


@pytest.mark.parametrize("seed", range(4))
def test_random_comings_and_goings(made, seed):
    """Whatever happens to texts, each has the scores of its own tokens."""
    folder, reference = made
    g, rng, texts = migraphx.generator(folder), np.random.default_rng(seed), []
    for _ in range(120):
        what = rng.random()
        if what < 0.15 or not texts:
            texts.append(g.add())
            g.append(texts[-1], rng.integers(0, WORDS, rng.integers(1, 6)))
        elif what < 0.22:
            g.remove(texts.pop(rng.integers(len(texts))))
        elif what < 0.3:
            text = texts[rng.integers(len(texts))]
            g.rewind(text, int(rng.integers(1, len(g.tokens(text)) + 1)))
        elif what < 0.37:
            text = texts[rng.integers(len(texts))]
            texts.append(g.fork(text, int(rng.integers(1, len(g.tokens(text)) + 1))))
        elif what < 0.45:
            g.append(texts[rng.integers(len(texts))], rng.integers(0, WORDS, rng.integers(1, 4)))
        else:
            some_of_them = [t for t in texts if rng.random() < 0.8]
            full = max((len(g.tokens(t)) for t in some_of_them), default=0)
            if some_of_them and full < 250:
                g.next(some_of_them)
    for text in texts:
        check(g, text, reference)


def test_forks_share_a_beginning(made):
    folder, reference = made
    g = migraphx.generator(folder)
    text = g.add()
    g.append(text, some(20))
    g.next([text])
    forks = [g.fork(text, size) for size in (21, 20, 11, 0)]
    assert [len(g.tokens(f)) for f in forks] == [21, 20, 11, 0]
    for i, fork in enumerate(forks):
        g.append(fork, some(2, 30 + i))
    g.next([*forks, text])
    for fork in (*forks, text):
        check(g, fork, reference)


def test_texts_together_are_as_they_are_alone(made):
    folder, _ = made
    g, alone = migraphx.generator(folder), migraphx.generator(folder)
    texts = [g.add() for _ in range(8)]
    for i, text in enumerate(texts):
        g.append(text, some(1 + 3 * i, i))
        g.set_sampling(text, temperature=0.8, top_k=20, seed=i)
    together = [g.next(texts) for _ in range(6)]
    for i in range(8):
        text = alone.add()
        alone.append(text, some(1 + 3 * i, i))
        alone.set_sampling(text, temperature=0.8, top_k=20, seed=i)
        assert [alone.next([text])[0] for _ in range(6)] == [step[i] for step in together]


def test_runs_are_few(tmp_path):
    decoders.save(str(tmp_path), "room")
    g = migraphx.generator(str(tmp_path))
    texts = [g.add() for _ in range(8)]
    for text in texts:
        g.append(text, [1 + text])
    for _ in range(5):
        g.next(texts)
    assert g.statistics()["runs"] == 5


def story(g, guesses, **settings):
    """Tokens of a text that goes on, goes back and goes on with other settings."""
    text = g.add()
    g.append(text, some(8))
    g.set_sampling(text, **settings)
    g.set_guesses(text, guesses)
    for _ in range(40):
        g.next([text])
    g.rewind(text, 30)
    g.append(text, some(2, 5))
    first = [g.next([text])[0] for _ in range(15)]
    g.set_sampling(text, temperature=0.7, seed=3)
    np.asarray(g.logits(text))
    other = g.fork(text, 20)
    g.append(other, some(1))
    both = [g.next([text, other]) for _ in range(15)]
    return g.tokens(text), g.tokens(other), first, both


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.3, "seed": 1}, {"repetition_penalty": 1.5}], ids=str)
def test_guesses_change_nothing_but_time(made, settings):
    folder, _ = made
    plain, guessing, drafted = (migraphx.generator(folder) for _ in range(3))
    drafted.set_draft(plain.share())
    expected = story(plain, 0, **settings)
    assert story(guessing, 5, **settings) == expected
    assert story(drafted, 4, **settings) == expected
    for g in (guessing, drafted):
        s = g.statistics()
        assert s["right_tokens"] <= s["guessed_tokens"]
        assert s["answer_tokens"] + s["prompt_tokens"] < 250


def test_guesses_save_runs(tmp_path):
    """A draft that is the model itself is always right; a text that repeats itself is looked up."""
    decoders.save(str(tmp_path), "room")
    g = migraphx.generator(str(tmp_path))
    g.set_draft(g)
    text = g.add()
    g.append(text, some(5))
    g.set_guesses(text, 4)
    for _ in range(51):
        g.next([text])
    s = g.statistics()
    assert s["right_tokens"] == s["guessed_tokens"] == 40 and s["runs"] == 11
    g = migraphx.generator(str(tmp_path))
    text = g.add()
    g.append(text, some(4) * 5)
    g.set_bias(text, [1e9 if t == 7 else 0 for t in range(WORDS)])  # 7 for ever
    g.set_guesses(text, 15)
    for _ in range(60):
        g.next([text])
    assert g.statistics()["runs"] < 15
    with pytest.raises(RuntimeError, match="16 guesses at a time are more than 15"):
        g.set_guesses(text, 16)
    decoders.save(str(tmp_path / "other"), "room", words=60)
    with pytest.raises(RuntimeError, match="a draft of 60 tokens for a model of 50"):
        g.set_draft(migraphx.generator(str(tmp_path / "other")))


def test_eight_threads(made):
    folder, reference = made
    first, failed = migraphx.generator(folder), []

    def work(number, g):
        try:
            text = g.add()
            g.append(text, some(5 + number, number))
            for _ in range(20):
                g.next([text])
            check(g, text, reference)
        except Exception as e:  # noqa: BLE001
            failed.append(e)

    for shared in (True, False):  # a generator for each, and one for all
        threads = [threading.Thread(target=work, args=(i, first.share() if shared else first)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not failed


def test_settings_while_the_main_thread_runs(tmp_path):
    """Who waits for the generator does not hold the interpreter, which the main thread's run asks for to look for signals."""
    decoders.save(str(tmp_path), "growing", width=256, layers=4, positions=9000, context=9000)
    g = migraphx.generator(str(tmp_path))
    text, other = g.add(), g.add()
    g.append(text, some(6000))
    started, count = threading.Event(), [0]

    def settle():
        started.wait()
        for _ in range(20):
            g.set_sampling(other, temperature=1)
            g.set_bias(other, None)
            g.set_guesses(other, 2)
            g.remove(g.add())
            assert g.tokens(other) == []
            count[0] += 1

    thread = threading.Thread(target=settle, daemon=True)
    thread.start()
    started.set()
    g.next([text])
    thread.join(60)
    assert count[0] == 20


def test_made_of_a_program():
    model = decoders.build("lengths")
    program = migraphx.parse_onnx_buffer(model.SerializeToString(), dynamic_dims=True)
    g = migraphx.generator(program, context=12, ends=[3], names={"tokens": "input_ids"},
                           states={"past_key_values.%d.key": "present.%d.key", "past_key_values.%d.value": "present.%d.value"})
    assert (g.vocabulary, g.context, g.is_end(3), g.is_end(4)) == (WORDS, 12, True, False)
    text = g.add()
    g.append(text, some(11))
    g.next([text])
    with pytest.raises(RuntimeError, match="text 0 of 12 tokens cannot take 1 more: the model's context is 12"):
        g.next([text])
    assert len(g.tokens(text)) == 12
    program.compile("cpu")  # as it was: the generator has a copy
    with pytest.raises(RuntimeError, match="the program is compiled"):
        migraphx.generator(program)


def test_what_is_wrong_is_said(tmp_path):
    decoders.save(str(tmp_path), "growing", context=20)
    g = migraphx.generator(str(tmp_path))
    text = g.add()
    with pytest.raises(RuntimeError, match="text 0 is empty"):
        g.next([text])
    with pytest.raises(RuntimeError, match="token 50, number 1 of 2, is none of the model's 50"):
        g.append(text, [3, 50])
    with pytest.raises(RuntimeError, match="token -1, number 0 of 1"):
        g.append(text, [-1])
    with pytest.raises(RuntimeError, match="text 0 of 0 tokens cannot take 21 more: the model's context is 20"):
        g.append(text, [1] * 21)
    with pytest.raises(RuntimeError, match="there is no text 7: none was added so"):
        g.append(7, [1])
    with pytest.raises(RuntimeError, match="text 0 has 0 tokens, not 1"):
        g.rewind(text, 1)
    with pytest.raises(RuntimeError, match="a bias of 3 tokens, but the model has 50"):
        g.set_bias(text, [0, 0, 0])
    g.append(text, [1])
    with pytest.raises(RuntimeError, match="text 0 is named twice"):
        g.next([text, text])
    g.set_bias(text, [-np.inf] * WORDS)
    with pytest.raises(RuntimeError, match="each of 50 tokens is forbidden"):
        g.next([text])
    assert g.tokens(text) == [1]
    g.set_bias(text, [-np.inf] * 7 + [0] + [-np.inf] * 42)
    assert g.next([text]) == [7]
    for setting in ({"temperature": -1}, {"top_p": 1.5}, {"min_p": float("nan")}, {"repetition_penalty": 0}):
        with pytest.raises(RuntimeError, match=next(iter(setting))):
            g.set_sampling(text, **setting)


def test_states_that_do_not_fit(tmp_path):
    model = decoders.build("growing")
    program = migraphx.parse_onnx_buffer(model.SerializeToString())
    with pytest.raises(RuntimeError, match="the model should be read with its sizes left open"):
        migraphx.generator(program)
    program = migraphx.parse_onnx_buffer(model.SerializeToString(), dynamic_dims=True)
    with pytest.raises(RuntimeError, match='the model has no input "ids", named as its tokens'):
        migraphx.generator(program, names={"tokens": "ids"})
    with pytest.raises(RuntimeError, match='there is no role "token"'):
        migraphx.generator(program, names={"token": "input_ids"})
    del model.graph.output[1:]
    program = migraphx.parse_onnx_buffer(model.SerializeToString(), dynamic_dims=True)
    with pytest.raises(RuntimeError, match='input "past_key_values.0.key" is none that a generator knows'):
        migraphx.generator(program)


# --- folders ---

def test_folder_of_transformers(tmp_path):
    decoders.save(str(tmp_path), "growing", config="transformers", context=100, ends=(9,))
    g = migraphx.generator(str(tmp_path))
    assert (g.context, g.is_end(9), g.is_end(1)) == (100, True, False)
    text = g.add()
    g.append(text, some(3))
    drawn = set()
    for seed in range(30):  # do_sample
        g.set_sampling(text, seed=seed)
        drawn.add(g.next([text])[0])
        g.rewind(text, 3)
    assert len(drawn) > 3


def test_folder_without_any_config(tmp_path):
    decoders.save(str(tmp_path), "growing", config=None)
    g = migraphx.generator(str(tmp_path))
    assert g.context == 0


def test_folder_of_links(tmp_path):
    """As package caches keep models: every file is a link into a store."""
    store, folder = tmp_path / "blobs", tmp_path / "snapshot"
    decoders.save(str(store), "room")
    folder.mkdir()
    for name in os.listdir(store):
        os.symlink(os.path.join("..", "blobs", name), folder / name)
    g = migraphx.generator(str(folder))
    assert g.context == 256


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text if isinstance(text, str) else json.dumps(text))


GENAI = {"model": {"context_length": 16, "vocab_size": 50, "decoder": {"filename": "model.onnx"}}}


def changed(**changes):
    data = json.loads(json.dumps(GENAI))
    data["model"].update(changes)
    return data


HOSTILE = {
    "cut": (json.dumps(GENAI)[:40], "json: "),
    "no object": ("[1, 2]", "json: an object was expected"),
    "deep": ("[" * 100000, "values nested too deeply"),
    "deep object": ('{"model":' * 70 + "1" + "}" * 70, "values nested too deeply"),
    "no model": ("{}", '"model" should be an object'),
    "context below 0": (changed(context_length=-1), '"context_length" should be a number from 0 to 2147483647'),
    "context far too large": (changed(context_length=2**40), '"context_length" should be a number from 0 to 2147483647'),
    "context beyond any integer": ('{"model": {"context_length": 99999999999999999999999}}', "json: "),
    "context is a text": (changed(context_length="16"), '"context_length" should be a number'),
    "too many ends": (changed(eos_token_id=list(range(300))), '"eos_token_id" should be a token, or a list of 256'),
    "end of another type": (changed(eos_token_id=[1, "2"]), '"eos_token_id" should be a token'),
    "leaves the folder": (changed(decoder={"filename": "../other/model.onnx"}), 'leaves its directory by ".."'),
    "absolute": (changed(decoder={"filename": "/etc/passwd"}), "is not a relative path"),
    "absent": (changed(decoder={"filename": "absent.onnx"}), "absent.onnx: No such file"),
    "a long name": (changed(decoder={"filename": "x" * 5000}), '"filename" should be a name of 1 to 256 bytes'),
    "no name": (changed(decoder={"filename": ""}), '"filename" should be a name of 1 to 256 bytes'),
    "names an input that is not there": (changed(decoder={"filename": "model.onnx", "inputs": {"input_ids": "ids"}}),
                                         'the model has no input "ids"'),
    "pipeline": (changed(decoder={"pipeline": [{}]}), "a decoder of several models"),
    "temperature": ({**GENAI, "search": {"do_sample": True, "temperature": -3}}, '"temperature" should be a number from 0'),
    "binary": ("\x00\x01\x02", "json: "),
    "empty": ("", "json: "),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_config(tmp_path, name):
    text, message = HOSTILE[name]
    decoders.save(str(tmp_path), "growing")
    write(str(tmp_path), "genai_config.json", text)
    with pytest.raises(RuntimeError) as error:
        migraphx.generator(str(tmp_path))
    assert message in str(error.value)


def test_hostile_folders(tmp_path):
    with pytest.raises(RuntimeError, match="No such file"):
        migraphx.generator(str(tmp_path / "absent"))
    with pytest.raises(RuntimeError, match="there is no model"):
        migraphx.generator(str(tmp_path))
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    decoders.save(str(outside), "room")
    folder.mkdir()
    write(str(folder), "genai_config.json", GENAI)
    os.symlink(outside / "model.onnx", folder / "model.onnx")
    with pytest.raises(RuntimeError, match="outside the directories that the model may read"):
        migraphx.generator(str(folder))
    os.remove(folder / "model.onnx")
    os.mkfifo(folder / "model.onnx")
    with pytest.raises(RuntimeError, match="regular file|directory|pipe"):
        migraphx.generator(str(folder))
    with open(outside / "config.json", "wb") as file:
        file.write(b"[" + b"0," * (9 << 20))
    with pytest.raises(RuntimeError, match="more than 16777216"):
        migraphx.generator(str(outside))


def test_external_data_that_leaves_the_folder(tmp_path):
    decoders.save(str(tmp_path), "room")
    model = onnx.load(str(tmp_path / "model.onnx"), load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../model.onnx.data"
    with open(tmp_path / "model.onnx", "wb") as file:
        file.write(model.SerializeToString())
    with pytest.raises(RuntimeError, match='leaves its directory by ".."'):
        migraphx.generator(str(tmp_path))
