# SPDX-License-Identifier: MIT
"""What a service is made of: models by their files, batches that form by themselves, the Open Inference Protocol.

    from migraphx.serving import Model, Service

    model = Model("model.onnx", threads=2)
    model = Model("model.onnx", cards=[0, 1], fp16=True)  # a program and its weights on each; a run goes to the one with least to do
    outputs = model.run({"image": images})              # dicts of arrays, in and out
    outputs, reasons = model.run_rows({"image": images})  # a row that fails fails alone

    service = Service({"resnet": "resnet.onnx", "writer": "folder_of_a_decoder"})
    outputs = await service.infer("resnet", {"image": image})
    async for token in service.generate("writer", [1, 2, 3], max_tokens=20): ...
    status, headers, body = await service.answer("POST", "/v2/models/resnet/infer", headers, body)

A service runs a model's requests one batch at a time, on a thread of its own, on cards two for each, so that the copies of one are
under way while the other computes: what arrives meanwhile is the next batch, up to `most` rows. So a lone request waits for nobody, and
batches grow as load does. migraphx.ray puts both into Ray. Needs numpy.
"""
import asyncio
import collections
import concurrent.futures
import hashlib
import os
import tempfile
import threading

import migraphx
import numpy as np

__all__ = ["Model", "Service", "Texts", "images", "kept"]

_COMPILE = {"threads", "exhaustive_tune", "fast_math", "isa", "tf32", "tf32_convolutions", "gemm_provider", "device_id", "tuning_seconds", "plan_bytes"}
_KNOWN = _COMPILE | {"target", "cards", "fp16", "bf16", "int4_weights", "specialise", "run_memory", "bytes"}
_AT_ONCE = 2  # runs on a card: the copies of one beside the kernels of the other


def _check(options):
    for name in options:
        if name not in _KNOWN:
            raise TypeError(f"there is no option {name}; there are {', '.join(sorted(_KNOWN))}")
    cards = options.get("cards")
    if cards is None:
        return
    if not cards or len(set(cards)) != len(cards):
        raise ValueError(f"cards is {cards!r}: numbers of cards, each once")
    if "device_id" in options or options.get("target", "gpu") != "gpu":
        raise ValueError("cards are of target gpu and take the place of device_id")


def _read(path):
    """A program that is not compiled, unless the file's is."""
    if str(path).endswith(".mxr"):
        return migraphx.load(path)
    if str(path).endswith(".onnx"):
        return migraphx.parse_onnx(path, dynamic_dims=True)
    return migraphx.parse_tf(path, is_nhwc=False)


def _compiled(path, options):
    program = _read(path)
    if program.is_compiled():
        return program
    for name, how in (options.get("bytes") or {}).items():
        migraphx.take_bytes(program, name, **how)
    if options.get("fp16"):
        migraphx.quantize_fp16(program)
    if options.get("bf16"):
        migraphx.quantize_bf16(program)
    if options.get("int4_weights"):
        migraphx.quantize_int4_weights(program, options["int4_weights"])
    # No run waits for a plan, and none is made of sizes that come once.
    program.compile(options.get("target", "cpu"), specialise=options.get("specialise", "background"),
                    **{name: value for name, value in options.items() if name in _COMPILE})
    return program


def _folder():
    """Where compiled programs are kept: the user's own, whom nobody else can hand one."""
    folder = os.path.join(tempfile.gettempdir(), f"migraphx-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.stat(folder).st_uid != os.getuid():
        raise RuntimeError(f"{folder} belongs to somebody else")
    return folder


def kept(path, folder=None, **options):
    """The path of the model's compiled program, made where there is none: processes that load it share its weights, which are
    mapped. Another model, other options or another version are another file."""
    _check(options)
    path = os.path.abspath(path)
    if path.endswith(".mxr") and migraphx.load(path).is_compiled():
        return path
    engine = os.stat(migraphx.__file__)
    facts = [migraphx.__version__, engine.st_size, engine.st_mtime_ns, sorted(options.items())]
    folders = [path] if os.path.isdir(path) else []
    for name in [path, *sorted(os.path.join(at, n) for top in folders for at, _, names in os.walk(top) for n in names)]:
        stat = os.stat(name)
        facts.append((name, stat.st_size, stat.st_mtime_ns))
    key = hashlib.sha256(repr(facts).encode()).hexdigest()[:24]
    out = os.path.join(folder or _folder(), f"{os.path.splitext(os.path.basename(path))[0]}-{key}.mxr")
    if not os.path.exists(out):
        migraphx.save(_compiled(path, options), out)  # takes its place whole
    return out


def images(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)):
    """What makes (x / 255 - mean) / std in N, C, H, W of bytes in N, H, W, C, for `bytes`: the model does it, on a card the card."""
    return {"scale": [1 / (255 * s) for s in std], "offset": [-m / s for m, s in zip(mean, std)], "channels_last": True}


class Model:
    """A model that is compiled here, or was: a path to ONNX, .mxr, a TensorFlow graph or a SavedModel.

    Options: target, threads, cards (numbers: the model is on each of them), fp16, bf16, int4_weights, exhaustive_tune, and what else
    compile has; bytes, inputs of floats that come as bytes and what migraphx.take_bytes is told of each, as
    {"image": images()}. `inputs` and `outputs` say by name the type and the lengths, None where they are open."""

    def __init__(self, path, **options):
        _check(options)
        self.path = str(path)
        self.programs = self._on_each(path, options)
        self.program = self.programs[0]
        if options.get("run_memory"):
            for program in self.programs:
                program.set_run_memory(options["run_memory"])
        on_card = "cards" in options or options.get("target") == "gpu"
        self.at_once = _AT_ONCE * len(self.programs) if on_card else 1  # runs that pay
        self._lock, self._busy = threading.Lock(), [0] * len(self.programs)
        shapes = self.program.get_output_shapes()
        names = self.program.get_output_names() or [f"output_{i}" for i in range(len(shapes))]
        self.inputs = {name: self._kind(shape) for name, shape in self.program.get_parameter_shapes().items()}
        self.outputs = {name: self._kind(shape) for name, shape in zip(names, shapes)}
        every = [*self.inputs.values(), *self.outputs.values()]
        self.batched = bool(self.inputs) and all(lens and lens[0] is None for _, lens in every)

    @staticmethod
    def _on_each(path, options):
        if "cards" not in options:
            return [_compiled(path, options)]
        each = [_compiled(path, {**options, "target": "gpu", "device_id": card}) for card in options["cards"]]
        if len(each) > 1 and _read(path).is_compiled():
            raise ValueError(f"{path} is compiled, and lies on the card that it is loaded for: several cards take the model")
        return each

    def _run(self, feed):
        """By the program whose card has the fewest runs."""
        with self._lock:
            i = self._busy.index(min(self._busy))
            self._busy[i] += 1
        try:
            return self.programs[i].run(feed)
        finally:
            with self._lock:
                self._busy[i] -= 1

    @staticmethod
    def _kind(shape):
        kind = shape.type_string()[:-5]
        dtype = {"half": "float16", "float": "float32", "double": "float64", "string": "object", "bf16": "uint16"}.get(kind, kind)
        if not shape.dynamic():
            return np.dtype(dtype), tuple(shape.lens()) if shape.rank() else ()
        return np.dtype(dtype), tuple(d.min if d.min == d.max else None for d in shape.dyn_dims())

    def convert(self, feed):
        """Arrays as the model takes them. What has the right type and lies in rows is not copied, and none is ever written."""
        missing = [name for name in self.inputs if name not in feed]
        unknown = [name for name in feed if name not in self.inputs]
        if missing or unknown:
            raise ValueError(f"there is no {'input' if missing else 'such input as'} {(missing or unknown)[0]}; "
                             f"the model takes {', '.join(self.inputs)}")
        return {name: self._convert(name, np.asarray(feed[name]), dtype) for name, (dtype, _) in self.inputs.items()}

    @staticmethod
    def _convert(name, array, dtype):
        if array.dtype != dtype and not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ValueError(f"input {name} has values of type {array.dtype}, and the model takes {dtype}")
        return np.asarray(array, dtype=dtype, order="C")

    def run(self, feed):
        """Arrays by name, of one run. RuntimeError where it fails."""
        feed = self.convert(feed)
        results = self._run(feed)
        return {name: np.array(r.tolist(), object) if dtype == object else r.numpy()
                for (name, (dtype, _)), r in zip(self.outputs.items(), results)}

    def run_rows(self, feed):
        """(outputs, reasons): each row's results, and why it has none, "" where it has. Rows of other lengths run apart, in arrays of
        objects; those that fail do so alone, and have zeros."""
        if not self.batched:
            raise ValueError(f"{self.path}: not every input and output has an open first axis, so there are no rows")
        count = len(next(iter(feed.values())))
        if any(len(column) != count for column in feed.values()):
            raise ValueError("columns have " + ", ".join(f"{name} {len(c)}" for name, c in feed.items()) + " rows")
        reasons = np.full(count, "", object)
        if not any(self._is_ragged(name, column) for name, column in feed.items()):
            outputs = self._run_some(feed, np.arange(count), reasons)
            if len(outputs) == 1 and len(outputs[0][0]) == count:
                return outputs[0][1], reasons
        else:
            outputs = [part for rows in self._alike(feed, count)
                       for part in self._run_some({n: self._stack(n, c, rows) for n, c in feed.items()}, rows, reasons)]
        return self._join(outputs, count), reasons

    def _is_ragged(self, name, column):
        return isinstance(column, np.ndarray) and column.dtype == object and self.inputs.get(name, (object,))[0] != object

    def _stack(self, name, column, rows):
        return np.stack([np.asarray(column[i]) for i in rows]) if self._is_ragged(name, column) else column[rows]

    def _alike(self, feed, count):
        """Numbers of the rows that have the same lengths."""
        groups = collections.defaultdict(list)
        for i in range(count):
            groups[tuple(np.shape(column[i]) for column in feed.values())].append(i)
        return [np.asarray(rows) for rows in groups.values()]

    def _run_some(self, feed, rows, reasons):
        """[(rows, outputs)]; a half that fails is halved until the row to blame is alone."""
        try:
            outputs = self.run(feed)
            for name, out in outputs.items():
                if len(out) != len(rows):
                    raise ValueError(f"output {name} has {len(out)} rows, not {len(rows)}: the model cannot be batched")
            return [(rows, outputs)]
        except (RuntimeError, ValueError, TypeError) as error:
            if len(rows) == 1:
                reasons[rows[0]] = str(error) or type(error).__name__
                return []
        half = len(rows) // 2
        return [part for cut in (slice(None, half), slice(half, None))
                for part in self._run_some({name: column[cut] for name, column in feed.items()}, rows[cut], reasons)]

    def _join(self, parts, count):
        joined = {}
        for name, (dtype, lens) in self.outputs.items():
            shapes = {out[name].shape[1:] for _, out in parts} or {tuple(n or 0 for n in lens[1:])}
            if len(shapes) == 1:
                joined[name] = np.zeros((count, *shapes.pop()), dtype)
                for rows, out in parts:
                    joined[name][rows] = out[name]
                continue
            joined[name] = np.empty(count, object)
            joined[name][:] = [np.zeros(0, dtype)] * count
            for rows, out in parts:
                for i, row in zip(rows, out[name]):
                    joined[name][i] = row
        return joined


# --- batches that form by themselves ---

class _Batches:
    """The requests of one model. Belongs to one event loop."""

    def __init__(self, model, most):
        self.model, self.most, self.waiting, self.tasks = model, most, collections.deque(), set()
        self.pool = concurrent.futures.ThreadPoolExecutor(model.at_once, "migraphx")
        self.runs = self.rows = 0

    async def infer(self, feed):
        feed = self.model.convert(feed)
        future = asyncio.get_running_loop().create_future()
        self.waiting.append((feed, future))
        self.tasks = {task for task in self.tasks if not task.done()}
        if len(self.tasks) < self.model.at_once:
            self.tasks.add(asyncio.ensure_future(self._work()))
        return await future

    @staticmethod
    def _alike(a, b):
        return all(x.shape[1:] == b[name].shape[1:] for name, x in a.items())

    def _take(self):
        """Requests of the same lengths that fit together, and their rows. A cancelled one is left out."""
        taken, rows, rest = [], 0, collections.deque()
        while self.waiting:
            feed, future = self.waiting.popleft()
            if future.done():
                continue
            count = len(next(iter(feed.values()))) if self.model.batched else 1
            if not taken or (self.model.batched and rows + count <= self.most and self._alike(taken[0][0], feed)):
                taken.append((feed, future, count))
                rows += count
            else:
                rest.append((feed, future))
        self.waiting = rest
        return taken, rows

    def _run(self, taken):
        """On the thread: a result or an error for each."""
        feeds = [feed for feed, _, _ in taken]
        if len(feeds) == 1:
            return [self._one(feeds[0])]
        try:
            whole = self.model.run({name: np.concatenate([f[name] for f in feeds]) for name in feeds[0]})
        except Exception:  # one of them is to blame
            return [self._one(feed) for feed in feeds]
        ends = np.cumsum([count for _, _, count in taken])[:-1]
        parts = {name: np.split(array, ends) for name, array in whole.items()}
        return [{name: part[i] for name, part in parts.items()} for i in range(len(taken))]

    def _one(self, feed):
        try:
            return self.model.run(feed)
        except Exception as error:
            return error

    async def _work(self):
        while self.waiting:
            taken, rows = self._take()
            if not taken:
                return
            results = await asyncio.get_running_loop().run_in_executor(self.pool, self._run, taken)
            self.runs, self.rows = self.runs + 1, self.rows + rows
            for (_, future, _), result in zip(taken, results):
                if future.done():
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    def close(self):
        self.pool.shutdown(wait=False)


class Texts:
    """A decoder's folder: texts that run together, a token of each at a time. Belongs to one event loop.

    `tokenizer.json` in the folder, and the package tokenizers, make texts of prompts and answers; without them both are tokens."""

    def __init__(self, folder, most=16, **options):
        if "cards" in options:
            raise ValueError(f"{folder} is a decoder, which is on one card: target is gpu, and no cards are named")
        self.generator = migraphx.generator(folder, options.get("target", "cpu"), threads=options.get("threads", 0))
        self.most, self.streams, self.task = most, {}, None
        self.pool = concurrent.futures.ThreadPoolExecutor(1, "migraphx")
        path = os.path.join(folder, "tokenizer.json")
        self.tokenizer = None
        if os.path.exists(path):
            import tokenizers
            self.tokenizer = tokenizers.Tokenizer.from_file(path)

    def _call(self, function, *args):
        return asyncio.get_running_loop().run_in_executor(self.pool, function, *args)

    def _begin(self, tokens, sampling):
        text = self.generator.add()
        try:
            self.generator.append(text, tokens)
            if sampling:
                self.generator.set_sampling(text, **sampling)
        except BaseException:
            self.generator.remove(text)
            raise
        return text

    async def generate(self, prompt, max_tokens=128, **sampling):
        """Tokens, or pieces of text where the prompt is text, as they come."""
        as_text = isinstance(prompt, str)
        if as_text and self.tokenizer is None:
            raise ValueError("the folder has no tokenizer.json: give tokens instead of text")
        tokens = self.tokenizer.encode(prompt).ids if as_text else [int(t) for t in prompt]
        text = await self._call(self._begin, tokens, sampling)
        said, shown = [], ""
        try:
            for _ in range(max_tokens):
                token = await self._next(text)
                if self.generator.is_end(token):
                    return
                said.append(token)
                if not as_text:
                    yield token
                    continue
                whole = self.tokenizer.decode(said)
                if not whole.endswith("\ufffd"):  # a letter may take several tokens
                    yield whole[len(shown):]
                    shown = whole
        finally:
            self.streams.pop(text, None)
            self.pool.submit(self.generator.remove, text)

    def _next(self, text):
        future = asyncio.get_running_loop().create_future()
        self.streams[text] = future
        if self.task is None or self.task.done():
            self.task = asyncio.ensure_future(self._work())
        return future

    def _step(self, texts):
        try:
            return self.generator.next(texts)
        except Exception:
            return [self._alone(text) for text in texts]

    def _alone(self, text):
        try:
            return self.generator.next([text])[0]
        except Exception as error:
            return error

    async def _work(self):
        while self.streams:
            await asyncio.sleep(0)  # those that were answered ask for more
            wait = dict(list(self.streams.items())[:self.most])
            for text in wait:
                del self.streams[text]
            for (_, future), got in zip(wait.items(), await self._call(self._step, list(wait)) if wait else ()):
                if future.done():
                    continue
                if isinstance(got, Exception):
                    future.set_exception(got)
                else:
                    future.set_result(got)

    def close(self):
        self.pool.shutdown(wait=False)


# --- several models ---

class Service:
    """Models by name, of which so many are loaded at a time; the one that was not used for longest goes.

    `models` maps names to paths; a folder with genai_config.json is a decoder. Options are those of Model, `most` the rows of a batch or
    the texts at a time."""

    def __init__(self, models, *, loaded=3, most=32, **options):
        _check(options)
        self.options, self.loaded, self.most, self.models = options, loaded, most, dict(models)
        self.live, self.lock = collections.OrderedDict(), None

    def reconfigure(self, config):
        """What may change while it runs: models, loaded, most."""
        unknown = set(config) - {"models", "loaded", "most"}
        if unknown:
            raise ValueError(f"there is no setting {sorted(unknown)[0]}; there are models, loaded, most")
        self.loaded, self.most = config.get("loaded", self.loaded), config.get("most", self.most)
        models = config.get("models", self.models)
        for name in [n for n in self.live if models.get(n) != self.models.get(n)]:
            self.live.pop(name).close()
        self.models = dict(models)
        for one in self.live.values():
            one.most = self.most

    def make(self, name):
        """Loads a model; takes as long as compiling does."""
        if name not in self.models:
            raise KeyError(f"there is no model {name}")
        path = self.models[name]
        if os.path.exists(os.path.join(path, "genai_config.json")):
            return Texts(path, self.most, **self.options)
        return _Batches(Model(path, **self.options), self.most)

    async def find(self, name):
        """The model, loaded where it is not."""
        if name in self.live:
            self.live.move_to_end(name)
            return self.live[name]
        if name not in self.models:
            raise KeyError(f"there is no model {name}")
        if self.lock is None:
            self.lock = asyncio.Lock()
        async with self.lock:
            if name not in self.live:
                self.live[name] = await asyncio.get_running_loop().run_in_executor(None, self.make, name)
                while len(self.live) > max(1, self.loaded):
                    self.live.popitem(last=False)[1].close()
        return self.live[name]

    async def infer(self, name, feed):
        """Arrays by name, of a run that may have other requests in it."""
        one = await self.find(name)
        if not isinstance(one, _Batches):
            raise ValueError(f"model {name} is a decoder: it generates")
        return await one.infer(feed)

    async def generate(self, name, prompt, **how):
        """Tokens or pieces of text as they come."""
        one = await self.find(name)
        if not isinstance(one, Texts):
            raise ValueError(f"model {name} is no decoder")
        pieces = one.generate(prompt, **how)
        try:
            async for piece in pieces:
                yield piece
        finally:
            await pieces.aclose()

    async def answer(self, method, path, headers, body):
        """(status, headers, bytes or an asynchronous iterator of them) by the Open Inference Protocol."""
        from migraphx.protocol import answer
        return await answer(self, method, path, headers, body)

    def check_health(self):
        """Raises where no thread can be had any more."""
        alive = threading.Event()
        thread = threading.Thread(target=alive.set)
        thread.start()
        if not alive.wait(10):
            raise RuntimeError("no thread ran for ten seconds")

    def close(self):
        while self.live:
            self.live.popitem()[1].close()
