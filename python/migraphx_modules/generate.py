# SPDX-License-Identifier: MIT
"""Text from a generative model's folder.

    from migraphx.generate import Model

    model = Model("folder")
    for piece in model.generate("Once upon a time", max_tokens=100):
        print(piece, end="", flush=True)
    print(model.generate([{"role": "user", "content": "Which colours has a rainbow?"}], stream=False))

The folder is one that ONNX Runtime GenAI's builder, Optimum or mobius writes: the model, genai_config.json or config.json,
tokenizer.json and, for chats, a chat template. Text needs the packages tokenizers and jinja2 (pip install tokenizers jinja2);
lists of tokens need neither. From a shell:

    python3 -m migraphx.generate FOLDER --prompt "Once upon a time"

A model with an encoder (T5, BART, Marian, Whisper, TrOCR) writes about what it is given instead of going on with it:

    Model("t5").generate("translate English to German: How old are you?", stream=False)
    Model("whisper").generate(samples, language="en", stream=False)      # 16 kHz, an array of numbers from -1 to 1
    Model("trocr").generate({"pixel_values": array}, stream=False)

Threads may share a model; their calls take turns. migraphx.generator is what lies beneath, docs/generation.md the whole story.
"""
import argparse
import json
import os
import subprocess
import sys
import threading
import time

import migraphx

__all__ = ["Answer", "Model"]

CONFIG_BYTES = 1 << 26  # of a tokenizer's configuration
KEPT = 4                # texts whose caches later prompts may go on from


def _missing(package, error):
    return RuntimeError(f"text needs the package {package} ({error}): pip install {package}, or give tokens")


def _read(folder, name):
    """A small text file of the folder, or None."""
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        return None
    if os.path.getsize(path) > CONFIG_BYTES:
        raise RuntimeError(f"{path}: more than {CONFIG_BYTES} bytes")
    with open(path, encoding="utf-8") as file:
        return file.read()


def _read_json(folder, name):
    text = _read(folder, name)
    try:
        data = json.loads(text) if text is not None else {}
    except (ValueError, RecursionError) as e:
        raise RuntimeError(f"{os.path.join(folder, name)}: {e}") from None
    return data if isinstance(data, dict) else {}


class _Tokenizer:
    """Text to tokens and back, and chats to text."""

    def __init__(self, folder):
        path = os.path.join(folder, "tokenizer.json")
        if not os.path.isfile(path):
            raise RuntimeError(f"{folder}: there is no tokenizer.json; give tokens instead of text")
        try:
            import tokenizers
        except ImportError as e:
            raise _missing("tokenizers", e) from None
        try:
            self.inner = tokenizers.Tokenizer.from_file(path)
        except Exception as e:  # its errors are plain Exceptions
            raise RuntimeError(f"{path}: {e}") from None
        self.config = _read_json(folder, "tokenizer_config.json")
        self.folder, self.renderer = folder, None

    def special(self, name):
        value = self.config.get(name)
        return value.get("content", "") if isinstance(value, dict) else value if isinstance(value, str) else ""

    def template(self):
        """The chat template, as text."""
        for name in ("chat_template.jinja", "chat_template.json"):
            text = _read(self.folder, name)
            if text is not None:
                return text if name.endswith(".jinja") else _read_json(self.folder, name).get("chat_template")
        found = self.config.get("chat_template")
        if isinstance(found, list):  # several, by name
            named = {t.get("name"): t.get("template") for t in found if isinstance(t, dict)}
            found = named.get("default")
        return found

    def chat(self, messages, **more):
        template = self.template()
        if not isinstance(template, str):
            raise RuntimeError(f"{self.folder}: there is no chat template; give text instead of messages")
        if not self.renderer:
            self.renderer = _Renderer()
        values = {"messages": messages, "add_generation_prompt": True, "bos_token": self.special("bos_token"),
                  "eos_token": self.special("eos_token"), "unk_token": self.special("unk_token"),
                  "pad_token": self.special("pad_token"), **more}
        return self.renderer.render(template, values)


class _Renderer:
    """Renders chat templates in a process of its own, with limits: a template is code out of a stranger's folder."""

    SECONDS = 5

    def __init__(self):
        self.process, self.lock = None, threading.Lock()

    def start(self):
        if not sys.executable:
            raise RuntimeError("chat templates are rendered by a Python process, and there is no interpreter to start")
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "render.py")
        self.process = subprocess.Popen([sys.executable, "-B", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        encoding="utf-8")
        self.ask({"path": sys.path})

    def ask(self, request):
        """One line there, one line back; the process is killed when it takes too long."""
        process = self.process
        timer = threading.Timer(self.SECONDS, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        finally:
            timer.cancel()
        if line.endswith("\n"):
            return json.loads(line)
        self.close()
        raise RuntimeError(f"the chat template took more than {self.SECONDS} seconds, or more memory than it may have")

    def render(self, template, values):
        with self.lock:
            if not self.process:
                self.start()
            try:
                reply = self.ask({"template": template, "values": values})
            except TypeError as e:
                raise RuntimeError(f"messages for a chat template are lists, dicts, texts and numbers: {e}") from None
        if reply.get("missing"):
            raise _missing("jinja2", reply["missing"])
        if "text" not in reply:
            raise RuntimeError(f"chat template: {reply.get('error')}")
        return reply["text"]

    def close(self):
        process, self.process = self.process, None
        if process:
            process.kill()
            process.stdin.close()
            process.stdout.close()
            process.wait()

    def __del__(self):
        try:
            self.close()
        except Exception:  # the interpreter may be ending
            pass


class _Decoder:
    """Text of tokens as they come: what may still change is held back."""

    def __init__(self, tokenizer):
        self.tokenizer, self.tokens, self.begin, self.done = tokenizer, [], 0, 0

    def push(self, token):
        self.tokens.append(token)
        before = self.tokenizer.decode(self.tokens[self.begin:self.done])
        after = self.tokenizer.decode(self.tokens[self.begin:])
        if len(after) <= len(before) or after.endswith("\ufffd"):  # a character is not complete yet
            return ""
        self.begin, self.done = self.done, len(self.tokens)
        return after[len(before):]

    def rest(self):
        before = self.tokenizer.decode(self.tokens[self.begin:self.done])
        self.done = len(self.tokens)
        return self.tokenizer.decode(self.tokens[self.begin:])[len(before):]


class Answer:
    """What a model writes, piece by piece: an iterator.

    Nothing runs between two pieces, so whoever stops iterating stops the work; close() gives the text's place back at once, and
    so does the end of a `with` block. `tokens` are those so far, `text` is their text, `ended` says why there are no more:
    "end" (the model's token for it), "stop" (a text to stop at), "length", "context", or None.
    """

    def __init__(self, model, tokens, decoder, max_tokens, stop, source=None):
        self.tokens, self.text, self.ended = [], "" if decoder else None, None
        self._model, self._decoder, self._left, self._stop = model, decoder, max_tokens, [s for s in stop if s]
        self._held, self._prompt, self._number = "", list(tokens), None
        self._later = None  # the bias of all tokens but the first
        self._number = model._take(self._prompt) if source is None else model._tell(source, self._prompt)

    def __iter__(self):
        return self

    def __next__(self):
        while self._wants_more():
            token, = self._model.generator.next([self._number])
            piece = self._got(token)
            if piece:
                return piece
        piece = self._last()
        if piece:
            return piece
        raise StopIteration

    def _wants_more(self):
        """Whether there is to be another token."""
        context = self._model.generator.context
        if self._number is not None and self._left == 0:
            self._finish("length")
        elif self._number is not None and context and len(self._prompt) + len(self.tokens) >= context:
            self._finish("context")
        return self._number is not None

    def _last(self):
        """What was held back until the end."""
        piece, self._held = self._held, ""
        return piece

    def _got(self, token):
        if self._model.generator.is_end(token):
            return self._finish("end")
        self.tokens.append(token)
        if self._later is not None:
            later, self._later = self._later, None
            self._model.generator.set_bias(self._number, *later)
        self._left -= 1
        if not self._decoder:
            return [token]
        return self._show(self._decoder.push(token))

    def _show(self, piece):
        self._held += piece
        at = min((i for i in (self._held.find(s) for s in self._stop) if i >= 0), default=-1)
        if at >= 0:
            self._held = self._held[:at]
            return self._finish("stop", False)
        kept = max((n for s in self._stop for n in range(1, len(s)) if self._held.endswith(s[:n])), default=0)
        shown, self._held = self._held[:len(self._held) - kept], self._held[len(self._held) - kept:]
        self.text += shown
        return shown

    def _finish(self, why, rest=True):
        self.ended = why
        if self._decoder:
            shown = self._held + (self._decoder.rest() if rest else "")
            self._held = shown
            self.text += shown
        self.close()
        return None

    def close(self):
        """Ends it. The model keeps the cache for a prompt that goes on from here."""
        number, self._number = self._number, None
        if number is not None:
            self._model._give(number)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
        return False

    def __del__(self):
        try:
            self.close()
        except Exception:  # of a model that is gone
            pass


class Model:
    """A folder's model, ready to write.

    target is "cpu" or "gpu"; threads is how many a run uses, 0 for all there are; context the most tokens of a text, 0 for what
    the folder says. draft is the folder of a smaller model of the same tokens, which guesses (generate's `guesses`). names and states say what the model's inputs and results are for where they have unusual names
    (migraphx.generator). cards=[0, 1], with target "gpu": these compute the model together, each with its part of the weights.
    """

    def __init__(self, folder, target="cpu", *, threads=0, context=0, names=None, states=None, isa=None, draft=None,
                 cards=None):
        self.folder = os.fspath(folder)
        self.generator = migraphx.generator(self.folder, target, threads=threads, context=context, names=names, states=states, isa=isa,
                                            cards=cards)
        if draft is not None:
            self.generator.set_draft(migraphx.generator(os.fspath(draft), target, threads=threads, context=context, isa=isa))
        self._tokenizer, self._kept, self._lock = None, [], threading.Lock()
        self._source = sorted(self.generator.source_shapes())  # what the encoder takes
        self._makers = _read_json(self.folder, "generation_config.json") if self._source else {}

    @property
    def tokenizer(self):
        if not self._tokenizer:
            self._tokenizer = _Tokenizer(self.folder)
        return self._tokenizer

    def encode(self, text):
        """Tokens of a text, those included that the tokenizer puts around it."""
        return self.tokenizer.inner.encode(text).ids

    def decode(self, tokens):
        """Text of tokens, without those that are no text."""
        return self.tokenizer.inner.decode(list(tokens))

    def chat(self, messages, **values):
        """Messages as the text that the folder's chat template makes of them; `values` are further variables of it."""
        return self.tokenizer.chat(messages, **values)

    def generate(self, prompt, *, stream=True, max_tokens=None, temperature=None, top_k=None, top_p=None, min_p=None,
                 repetition_penalty=None, seed=None, stop=(), bias=None, guesses=0, begin=None, language=None, task="transcribe"):
        """Writes on from a prompt: a text, a list of messages ({"role": ..., "content": ...}), or a list of tokens.

        A model with an encoder writes about the prompt: a text or tokens where it reads, samples of sound (an array; 16 kHz, -1 to
        1, 30 seconds at most) where it hears, or a dict of arrays by the names of the encoder's inputs. begin is what the answer
        begins with, a text or tokens, where its makers do not say it; Whisper's follows from language ("en"; None: it finds out)
        and task ("transcribe", or "translate", into English).

        With stream, gives an iterator of pieces of text (of lists of tokens where the prompt is one), an Answer; else all of it.
        max_tokens None writes until the model ends or its context is full. Settings that are None are as the folder says.
        guesses are tokens that a run takes beside the one it needs, from where the text had its last ones before or from the
        draft: the text stays what it is, and comes sooner where many are right.
        stop are texts at which to end, bias a dict from tokens to what is added to their scores, or a list for all tokens.
        """
        source = None
        if self._source:
            source, is_text = self._source_of(prompt)
            tokens = self._begin(begin, language, task)
        else:
            tokens, is_text = self._tokens_of(prompt)
        decoder = _Decoder(self.tokenizer.inner) if is_text else None
        most = self.generator.context or len(tokens) + 4096
        answer = Answer(self, tokens, decoder, most if max_tokens is None else max_tokens, (stop,) if isinstance(stop, str) else stop,
                        source)
        try:
            self.generator.set_sampling(answer._number, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
                                        repetition_penalty=repetition_penalty, seed=seed)
            first, later = self._biases(self._bias_of(bias))
            self.generator.set_bias(answer._number, first)
            answer._later = None if first is later else (later,)
            self.generator.set_guesses(answer._number, guesses)
        except BaseException:
            answer.close()
            raise
        if stream:
            return answer
        for _ in answer:
            pass
        return answer.text if is_text else answer.tokens

    def generate_many(self, prompts, *, stream=True, **settings):
        """Writes on from several prompts at a time, each a text, messages or tokens; `settings` are generate's, the same for all.

        The model takes a token of each in one run where it can. With stream, an iterator of (number of the prompt, piece) as they
        come; else a list of the whole answers.
        """
        answers = []
        try:
            for prompt in prompts:
                answers.append(self.generate(prompt, **settings))
        except BaseException:
            for answer in answers:
                answer.close()
            raise
        pieces = self._together(answers)
        if stream:
            return pieces
        for _ in pieces:
            pass
        return [answer.tokens if answer.text is None else answer.text for answer in answers]

    def _together(self, answers):
        active = dict(enumerate(answers))
        try:
            while active:
                for number in [n for n, answer in active.items() if not answer._wants_more()]:
                    piece = active.pop(number)._last()
                    if piece:
                        yield number, piece
                tokens = self.generator.next([answer._number for answer in active.values()])
                for (number, answer), token in zip(active.items(), tokens):
                    piece = answer._got(token)
                    if piece:
                        yield number, piece
        finally:
            for answer in answers:
                answer.close()

    def statistics(self):
        """Tokens, seconds and runs so far, and the bytes of weights and caches."""
        return self.generator.statistics()

    # --- inside ---

    def _tokens_of(self, prompt):
        """Tokens, and whether text is wanted back."""
        if isinstance(prompt, str):
            return self.encode(prompt), True
        prompt = list(prompt)
        if prompt and isinstance(prompt[0], dict):
            return self.tokenizer.inner.encode(self.chat(prompt), add_special_tokens=False).ids, True
        return prompt, False

    # --- of models with an encoder ---

    def _source_of(self, prompt):
        """Inputs of the encoder, and whether text is wanted back."""
        has_text = os.path.isfile(os.path.join(self.folder, "tokenizer.json"))
        if isinstance(prompt, dict):
            return prompt, has_text
        reads = "input_ids" in self._source
        if isinstance(prompt, str) and reads:
            return {"input_ids": _row_of(self.encode(prompt))}, True
        if hasattr(prompt, "ndim") and not reads:
            from migraphx import speech
            settings = _read_json(self.folder, "preprocessor_config.json") or _read_json(self.folder, "audio_processor_config.json")
            name = next((n for n in ("input_features", "audio_features") if n in self._source), None)
            if name:
                return {name: speech.features(prompt, settings)}, has_text
        if reads and not isinstance(prompt, str):
            return {"input_ids": _row_of(prompt)}, False
        raise TypeError(f"the model's encoder takes {', '.join(self._source)}: give a dict of arrays by these names" +
                        ("" if reads else ", or an array of samples" if any("features" in n for n in self._source) else ""))

    def _begin(self, begin, language, task):
        """The tokens that an answer begins with; None among them is the language, to be found out."""
        if isinstance(begin, str):
            return self.tokenizer.inner.encode(begin, add_special_tokens=False).ids
        if begin is not None:
            return list(begin)
        if self.generator.start is None:
            raise RuntimeError(f"{self.folder}: no file says which token an answer begins with: give begin")
        tokens, makers = [self.generator.start], self._makers
        if isinstance(makers.get("lang_to_id"), dict) and makers.get("is_multilingual", True):
            tokens.append(None if language is None else self._known("lang_to_id", f"<|{language.strip('<|>')}|>", "language"))
            if isinstance(makers.get("task_to_id"), dict):
                tokens.append(self._known("task_to_id", task, "task"))
        elif isinstance(makers.get("forced_bos_token_id"), int):
            tokens.append(makers["forced_bos_token_id"])
        if isinstance(makers.get("no_timestamps_token_id"), int):
            tokens.append(makers["no_timestamps_token_id"])
        return tokens

    def _known(self, table, name, what):
        found = self._makers[table].get(name)
        if not isinstance(found, int):
            raise ValueError(f"the model knows no {what} {name!r}: it knows {', '.join(sorted(map(str, self._makers[table])))}")
        return found

    def _biases(self, bias):
        """What is added to the scores of the first token, and of the later ones: tokens that the makers never want are out."""
        never, first = (_tokens_in(self._makers.get(name)) for name in ("suppress_tokens", "begin_suppress_tokens"))
        if not never and not first:
            return bias, bias
        later = [0.0] * self.generator.vocabulary if bias is None else [float(x) for x in bias]
        for token in never:
            later[token:token + 1] = [float("-inf")] * (token < len(later))
        both = list(later)
        for token in first:
            both[token:token + 1] = [float("-inf")] * (token < len(both))
        return both, later

    def _tell(self, source, tokens):
        """The number of a new text about a source; a language that is not known comes into `tokens`."""
        number = self.generator.add()
        try:
            self.generator.set_source(number, source)
            if None in tokens:
                at = tokens.index(None)
                self.generator.append(number, tokens[:at])
                scores = self.generator.logits(number)
                tokens[at] = max(_tokens_in(list(self._makers["lang_to_id"].values())), key=lambda token: scores[token])
                self.generator.append(number, tokens[at:])
            else:
                self.generator.append(number, tokens)
        except BaseException:
            self.generator.remove(number)
            raise
        return number

    def _bias_of(self, bias):
        if not isinstance(bias, dict):
            return bias
        values = [0.0] * self.generator.vocabulary
        for token, value in bias.items():
            if not 0 <= token < len(values):
                raise ValueError(f"bias of token {token}, which is none of the model's {len(values)}")
            values[token] = value
        return values

    def _take(self, tokens):
        """The number of a text with these tokens: one that is kept and begins alike goes on, else a new one."""
        with self._lock:
            best, shared = None, 0
            for number in self._kept:
                count = _common(self.generator.tokens(number), tokens)
                if count > shared:
                    best, shared = number, count
            if best is not None:
                self._kept.remove(best)
                self.generator.rewind(best, shared)
            number = self.generator.add() if best is None else best
        try:
            self.generator.append(number, tokens[shared:])
        except BaseException:
            self.generator.remove(number)
            raise
        return number

    def _give(self, number):
        if self._source:
            self.generator.remove(number)
            return
        with self._lock:
            self._kept.append(number)
            if len(self._kept) > KEPT:
                self.generator.remove(self._kept.pop(0))


def _row_of(tokens):
    import numpy
    return numpy.array([list(tokens)], numpy.int64)


def _tokens_in(found):
    return [t for t in found if isinstance(t, int) and t >= 0] if isinstance(found, list) else []


def _common(a, b):
    count = min(len(a), len(b))
    return next((i for i in range(count) if a[i] != b[i]), count)


# --- from a shell ---

def _numbers(text):
    return [int(n) for n in text.split(",")]


def _parser():
    parser = argparse.ArgumentParser(prog="python3 -m migraphx.generate", description="Writes on from a prompt with the model in a folder.")
    parser.add_argument("folder")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--prompt", metavar="TEXT", help="what the text begins with")
    what.add_argument("--sound", metavar="FILE.wav", help="what a model of speech hears: 16 kHz, 16 bits, 30 seconds at most")
    what.add_argument("--tokens", metavar="N,N,...", help="the same as tokens; tokens are written too")
    parser.add_argument("--chat", action="store_true", help="the prompt is a message, put through the folder's chat template")
    parser.add_argument("--language", metavar="NAME", help="of the sound: en, de ... [the model finds out]")
    parser.add_argument("--task", default="transcribe", metavar="NAME", help="transcribe, or translate: into English [transcribe]")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="the most tokens to write")
    for name in ("temperature", "top-p", "min-p", "repetition-penalty"):
        parser.add_argument(f"--{name}", type=float, metavar="X")
    parser.add_argument("--top-k", type=int, metavar="N")
    parser.add_argument("--seed", type=int, metavar="N")
    parser.add_argument("--stop", action="append", default=[], metavar="TEXT", help="where to end; may be given several times")
    parser.add_argument("--guesses", type=int, default=0, metavar="N", help="tokens that a run takes beside the one it needs")
    parser.add_argument("--draft", metavar="FOLDER", help="a smaller model of the same tokens, which guesses them")
    parser.add_argument("--target", help="cpu (the default) or gpu")
    parser.add_argument("--gpu", dest="target", action="store_const", const="gpu", help="the same as --target gpu")
    parser.add_argument("--cards", type=_numbers, metavar="N,N,...", help="of target gpu: these compute the model together")
    parser.add_argument("--threads", type=int, default=0, metavar="N")
    parser.add_argument("--isa", metavar="NAME", help="the set of instructions: generic, avx2, avx512 ...")
    return parser


def _samples(path):
    """The samples of a WAV file, of its first channel."""
    import wave

    import numpy
    try:
        with wave.open(path, "rb") as file:
            rate, width, channels = file.getframerate(), file.getsampwidth(), file.getnchannels()
            data = file.readframes(min(file.getnframes(), 1 << 26))
    except (wave.Error, EOFError) as e:
        raise RuntimeError(f"{path}: {e}") from None
    if rate != 16000 or width != 2:
        raise RuntimeError(f"{path}: {rate} Hz and {8 * width} bits, where 16000 Hz and 16 bits are wanted: "
                           f"ffmpeg -i {path} -ar 16000 -ac 1 -sample_fmt s16 OUT.wav")
    return numpy.frombuffer(data, "<i2")[::channels].astype(numpy.float32) / 32768


def _resident():
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))
    except (OSError, StopIteration):
        return 0


def _report(statistics, began):
    def rate(what):
        tokens, seconds = statistics[f"{what}_tokens"], statistics[f"{what}_seconds"]
        return f"{tokens:.0f} tokens" + (f", {tokens / seconds:.1f} a second" if seconds else "")

    print(f"prompt: {rate('prompt')}; answer: {rate('answer')}; ready after {began:.2f} s; {_resident():.0f} MiB resident", file=sys.stderr)


def _run(args):
    start = time.perf_counter()
    model = Model(args.folder, args.target or ("gpu" if args.cards else "cpu"), threads=args.threads, isa=args.isa, draft=args.draft, cards=args.cards)
    began = time.perf_counter() - start
    prompt = [int(t) for t in args.tokens.split(",")] if args.tokens else _samples(args.sound) if args.sound else args.prompt
    if args.chat and args.prompt is not None:
        prompt = [{"role": "user", "content": prompt}]
    settings = {name: getattr(args, name) for name in ("max_tokens", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed", "stop", "guesses", "language", "task")}
    with model.generate(prompt, **settings) as answer:
        for piece in answer:
            print(piece if isinstance(piece, str) else "".join(f"{t} " for t in piece), end="", flush=True)
    print()
    _report(model.statistics(), began)


def main(words=None):
    args = _parser().parse_args(words)
    try:
        _run(args)
    except (RuntimeError, TypeError, ValueError, OSError) as e:
        sys.exit(f"error: {e}")
    except KeyboardInterrupt:
        print()
        sys.exit(130)


if __name__ == "__main__":
    main()
