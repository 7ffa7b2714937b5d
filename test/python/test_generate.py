# SPDX-License-Identifier: MIT
"""migraphx.generate: text, chats, streams and what a shell sees, on a small decoder with a tokenizer that is made here.

What needs the packages tokenizers or jinja2 is skipped by name where they are not installed.
"""
import ast
import inspect
import json
import os
import subprocess
import sys
import threading
import time

import migraphx
import pytest
from migraphx import generate
from migraphx.generate import Model

import decoders

WORDS = 300


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A folder without a tokenizer."""
    folder = str(tmp_path_factory.mktemp("plain"))
    decoders.save(folder, "room", words=WORDS, ends=(2,))
    return folder


def tokenizer(folder, template=None):
    """Bytes as tokens: 0 to 4 are special, then each of the 256 bytes."""
    tokenizers = pytest.importorskip("tokenizers")
    from tokenizers import decoders as parts, models, pre_tokenizers
    special = ["<pad>", "<s>", "</s>", "<user>", "<model>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {word: i for i, word in enumerate(special + alphabet)}
    t = tokenizers.Tokenizer(models.BPE(vocabulary, []))
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), parts.ByteLevel()
    t.add_special_tokens(special)
    t.save(os.path.join(folder, "tokenizer.json"))
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template": template}, file)
    return t


CHAT = "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}<model>{% endif %}"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("text"))
    tokenizer(folder, CHAT)
    decoders.save(folder, "room", words=WORDS, ends=(2,), context=400)
    return Model(folder)


# --- tokens: nothing beyond the engine is needed ---

def test_tokens_in_tokens_out(plain):
    model = Model(plain)
    pieces = list(model.generate([5, 6, 7], max_tokens=6))
    assert len(pieces) == 6 and all(len(piece) == 1 for piece in pieces)
    assert model.generate([5, 6, 7], max_tokens=6, stream=False) == [piece[0] for piece in pieces]


def test_an_answer_says_why_it_ended(plain):
    model = Model(plain, context=12)
    answer = model.generate([5] * 8)
    list(answer)
    assert (answer.ended, len(answer.tokens)) == ("context", 4)
    answer = model.generate([5] * 8, max_tokens=2)
    list(answer)
    assert (answer.ended, len(answer.tokens)) == ("length", 2)
    answer = model.generate([5] * 8, bias={2: 1e9})
    assert list(answer) == [] and answer.ended == "end"


def test_a_second_turn_goes_on_from_the_cache(plain):
    model = Model(plain)
    prompt = list(range(5, 45))
    answer = model.generate(prompt, max_tokens=5, stream=False)
    before = model.statistics()["prompt_tokens"]
    assert before == 40
    model.generate(prompt + answer + [7, 8, 9], max_tokens=1, stream=False)
    assert model.statistics()["prompt_tokens"] <= before + 4  # its own tokens, and the last chosen one
    model.generate(prompt, max_tokens=1, stream=False)  # the same again: its last token alone
    assert model.statistics()["prompt_tokens"] <= before + 5


def test_who_stops_iterating_stops_the_work(plain):
    model = Model(plain)
    answer = model.generate([5, 6], max_tokens=100)
    next(answer)
    done = model.statistics()["runs"]
    answer.close()
    assert list(answer) == [] and model.statistics()["runs"] == done
    with model.generate([5, 6], max_tokens=100) as answer:
        next(answer)
    assert answer.ended is None and next(answer, None) is None


def test_settings_reach_the_sampling(plain):
    model = Model(plain)
    drawn = {tuple(model.generate([5, 6, 7], max_tokens=4, temperature=2, seed=s, stream=False)) for s in range(8)}
    assert len(drawn) > 4
    again = [model.generate([5, 6, 7], max_tokens=4, temperature=2, top_k=50, seed=3, stream=False) for _ in range(2)]
    assert again[0] == again[1]
    assert model.generate([5], max_tokens=2, bias={9: 1e9}, stream=False) == [9, 9]
    with pytest.raises(RuntimeError, match="temperature"):
        model.generate([5], temperature=-1)
    with pytest.raises(ValueError, match="bias of token 300, which is none of the model's 300"):
        model.generate([5], bias={300: 1})


def test_many_prompts_in_one_run(plain):
    model, alone = Model(plain), Model(plain)
    prompts = [[5 + i] * (1 + i) for i in range(6)]
    answers = model.generate_many(prompts, max_tokens=12, temperature=1, seed=4, stream=False)
    assert answers == [alone.generate(p, max_tokens=12, temperature=1, seed=4, stream=False) for p in prompts]
    assert model.statistics()["runs"] == 5 + 12  # prompts, but for the one of one token; then all together
    got = [[] for _ in prompts]
    for number, piece in model.generate_many(prompts, max_tokens=12, temperature=1, seed=4):
        got[number] += piece
    assert got == answers
    pieces = model.generate_many(prompts, max_tokens=12)
    next(pieces)
    done = model.statistics()["runs"]
    pieces.close()
    assert model.statistics()["runs"] == done
    with pytest.raises(RuntimeError, match="none of the model's 300"):
        model.generate_many([[5], [300]])
    assert model.generate_many([]) and model.generate_many([], stream=False) == []


def test_threads_share_a_model(plain):
    model, results = Model(plain), {}

    def work(i):
        results[i] = model.generate([5 + i, 6, 7], max_tokens=15, stream=False)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    alone = Model(plain)
    assert results == {i: alone.generate([5 + i, 6, 7], max_tokens=15, stream=False) for i in range(8)}


def test_text_without_a_tokenizer(plain):
    with pytest.raises(RuntimeError, match="there is no tokenizer.json; give tokens instead of text"):
        Model(plain).generate("x")


def test_ctrl_c_ends_a_prompt(tmp_path):
    """The main thread's signal handler runs while a long prompt does."""
    decoders.save(str(tmp_path), "growing", words=WORDS, width=256, layers=4, positions=20000, context=20000)
    script = ("import migraphx.generate as g, sys, time\n"
              "m = g.Model(sys.argv[1])\n"
              "print('ready', flush=True)\n"
              "try:\n    m.generate([5] * 19000, stream=False)\n"
              "except KeyboardInterrupt:\n    print('interrupted', len(m.generate([5], max_tokens=2, stream=False)))\n")
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(2)
    assert process.communicate(timeout=60)[0] == "interrupted 2\n"


# --- text ---

def test_text_in_text_out(model):
    pieces = list(model.generate("Hello", max_tokens=40, temperature=1, seed=1))
    whole = model.generate("Hello", max_tokens=40, temperature=1, seed=1, stream=False)
    assert "".join(pieces) == whole
    answer = model.generate("Hello", max_tokens=40, temperature=1, seed=1)
    assert "".join(answer) == answer.text == model.decode(answer.tokens)


def test_a_character_comes_whole(model):
    """Its bytes are four tokens: nothing is shown before the last one."""
    decoder = generate._Decoder(model.tokenizer.inner)
    tokens = model.encode("a\N{GRINNING FACE}\N{EURO SIGN}b")
    shown = [decoder.push(token) for token in tokens]
    assert "".join(shown) == "a\N{GRINNING FACE}\N{EURO SIGN}b"
    assert [bool(piece) for piece in shown] == [True, False, False, False, True, False, False, True, True]
    assert decoder.rest() == ""


def test_stop_texts(model):
    whole = model.generate("Hello", max_tokens=60, temperature=1, seed=2, stream=False)
    for stop in (whole[3:6], whole[10], [whole[20:24], whole[8:12]]):
        texts = [stop] if isinstance(stop, str) else stop
        expected = whole[:min(whole.find(s) for s in texts)]
        answer = model.generate("Hello", max_tokens=60, temperature=1, seed=2, stop=stop)
        assert "".join(answer) == expected == answer.text and answer.ended == "stop"


def test_chat(model):
    pytest.importorskip("jinja2")
    messages = [{"role": "user", "content": "Hi"}]
    assert model.chat(messages) == "<s><user>Hi<model>"
    text = model.generate(messages, max_tokens=5, stream=False)
    assert isinstance(text, str)
    answer = model.generate(messages, max_tokens=5)
    assert answer._prompt[:2] == [1, 3] and answer._prompt[-1] == 4  # special tokens are tokens
    answer.close()


HOSTILE = {
    "a loop without end": ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "took more than"),
    "far too much text": ("{% for i in range(99999) %}{{ 'x' * 10000 }}{% endfor %}", "writes more than"),
    "far too much memory": ("{% set x = 'x' * 10000000000 %}{{ x|length }}", "memory"),
    "a power without end": ("{{ 9 ** (9 ** (9 ** 9)) }}", "took more than"),
    "another file": ("{% include '/etc/passwd' %}", "TypeError|no loader"),
    "out of the sandbox": ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "SecurityError"),
    "an import": ("{{ cycler.__init__.__globals__.os.system('true') }}", "SecurityError"),
    "endless recursion": ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "without end|took more"),
    "an error of its own": ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
    "bad syntax": ("{% for", "TemplateSyntaxError"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_templates(plain, name):
    pytest.importorskip("jinja2")
    template, message = HOSTILE[name]
    renderer = generate._Renderer()
    with pytest.raises(RuntimeError, match=message):
        renderer.render(template, {"messages": []})
    assert renderer.render("{{ messages[0] }}", {"messages": ["still there"]}) == "still there"


def test_templates_of_every_place(tmp_path):
    pytest.importorskip("jinja2")
    decoders.save(str(tmp_path), "room", words=WORDS)
    tokenizer(str(tmp_path), [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "list {{ messages[0].content }}"}])
    messages = [{"role": "user", "content": "x"}]
    assert Model(str(tmp_path)).chat(messages) == "list x"
    (tmp_path / "chat_template.jinja").write_text("file {{ messages | tojson }}", encoding="utf-8")
    assert Model(str(tmp_path)).chat(messages) == 'file [{"role": "user", "content": "x"}]'


def test_no_template(tmp_path):
    decoders.save(str(tmp_path), "room", words=WORDS)
    tokenizer(str(tmp_path))
    with pytest.raises(RuntimeError, match="there is no chat template; give text instead of messages"):
        Model(str(tmp_path)).generate([{"role": "user", "content": "x"}])


def test_hostile_tokenizer(tmp_path):
    pytest.importorskip("tokenizers")
    decoders.save(str(tmp_path), "room", words=WORDS)
    for text in ("", "{", "[1]", '{"version": "1.0"}'):
        (tmp_path / "tokenizer.json").write_text(text, encoding="utf-8")
        with pytest.raises(RuntimeError, match="tokenizer.json: "):
            Model(str(tmp_path)).generate("x")
    tokenizer(str(tmp_path))
    (tmp_path / "tokenizer_config.json").write_text("[" * 100000, encoding="utf-8")
    with pytest.raises(RuntimeError, match="tokenizer_config.json: "):
        Model(str(tmp_path)).generate("x")


# --- from a shell ---

def shell(*words):
    return subprocess.run([sys.executable, "-m", "migraphx.generate", *words], capture_output=True, text=True, check=False)


def test_shell_with_tokens(plain):
    done = shell(plain, "--tokens", "5,6,7", "--max-tokens", "6")
    assert done.returncode == 0, done.stderr
    assert [int(t) for t in done.stdout.split()] == Model(plain).generate([5, 6, 7], max_tokens=6, stream=False)
    assert "prompt: 3 tokens" in done.stderr and "answer: 5 tokens" in done.stderr and "MiB resident" in done.stderr


def test_shell_says_what_is_wrong(plain):
    done = shell(plain, "--prompt", "x")
    assert (done.returncode, done.stdout) == (1, "") and "there is no tokenizer.json" in done.stderr
    assert shell(plain).returncode == 2
    done = shell(os.path.join(plain, "absent"), "--tokens", "1")
    assert done.returncode == 1 and "No such file" in done.stderr


def test_shell_with_text(model):
    pytest.importorskip("jinja2")
    done = shell(model.folder, "--prompt", "Hello", "--max-tokens", "9", "--temperature", "0.5", "--seed", "4")
    assert done.returncode == 0, done.stderr
    assert done.stdout == model.generate("Hello", max_tokens=9, temperature=0.5, seed=4, stream=False) + "\n"
    done = shell(model.folder, "--chat", "--prompt", "Hello", "--max-tokens", "3")
    assert done.returncode == 0 and done.stdout == model.generate([{"role": "user", "content": "Hello"}], max_tokens=3, stream=False) + "\n"


def test_the_stub_says_what_the_module_does():
    with open(generate.__file__ + "i", encoding="utf-8") as file:
        tree = ast.parse(file.read())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert set(classes) == set(generate.__all__)
    for name, node in classes.items():
        real = getattr(generate, name)
        stated = {m.name: m for m in node.body if isinstance(m, ast.FunctionDef)}
        assert {n for n in vars(real) if not n.startswith("_")} <= set(stated)
        for method, said in stated.items():
            if method.startswith("__") or isinstance(inspect.getattr_static(real, method), property):
                continue
            a = said.args
            names = [arg.arg for arg in [*a.args, *a.kwonlyargs] + ([a.kwarg] if a.kwarg else [])]
            assert names == list(inspect.signature(getattr(real, method)).parameters)


def test_module_is_part_of_a_package():
    assert migraphx.generate is generate and generate.__name__ == "migraphx.generate"
