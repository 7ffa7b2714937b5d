# SPDX-License-Identifier: MIT
"""This engine inside Ray: batches over much data, and services.

    import migraphx.ray

    results = migraphx.ray.predict(dataset, "model.onnx", columns={"image": "image"})    # Ray Data
    good, bad = migraphx.ray.split(results)                       # rows, and rows that failed with their reasons

    serve.run(migraphx.ray.deployment({"resnet": "resnet.onnx"}))  # Ray Serve: the Open Inference Protocol over HTTP

What travels to a worker is the path of a compiled program, which every worker of a machine maps, so that its weights are there once;
on a machine where there is no such file it is written first, from the bytes that Ray's store has. No worker compiles anything.
`Predict` is the class that `Dataset.map_batches` takes, for those who call that themselves. Needs numpy and ray[data] or ray[serve].
"""
import os
import tempfile

import numpy as np
from migraphx import serving

__all__ = ["Predict", "deployment", "images", "predict", "split"]


class images:
    """A function that makes float32 in N, C, H, W of bytes in N, H, W, C: (x / 255 - mean) / std."""

    def __init__(self, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)):
        self.scale = (1 / (255 * np.asarray(std, np.float32))).astype(np.float32)
        self.shift = (-np.asarray(mean, np.float32) / np.asarray(std, np.float32)).astype(np.float32)

    def __call__(self, batch):
        out = np.empty((batch.shape[0], batch.shape[3], *batch.shape[1:3]), np.float32)
        for c in range(batch.shape[3]):
            np.multiply(batch[..., c], self.scale[c], out=out[:, c])
            out[:, c] += self.shift[c]
        return out


class Predict:
    """A class for `Dataset.map_batches`: batches of numpy columns in, those and the model's outputs out.

    model     a path, or what `kept` gave (predict() does that)
    columns   which column an input is: {"input": "column"}; a list of columns makes rows of them. Inputs that have a column of their
              name need no word, and neither does the only input beside the only column
    convert   {"input": function} of what a model takes otherwise: images(), a tokenizer
    outputs   which outputs are wanted, and what they are called: {"output": "column"}
    keep      columns that stay; None: all but those that were read
    errors    "column": a row that fails has zeros, and its reason in the column "error"; "raise": the first one ends the batch
    """

    def __init__(self, model, columns=None, convert=None, outputs=None, keep=None, errors="column", **options):
        if errors not in ("column", "raise"):
            raise ValueError(f'errors is {errors!r}, neither "column" nor "raise"')
        self.model = serving.Model(_local(model), **options)
        self.columns, self.convert, self.outputs, self.keep, self.errors = columns or {}, convert or {}, outputs, keep, errors
        for name in [*self.columns, *self.convert]:
            if name not in self.model.inputs:
                raise ValueError(f"the model has no input {name}; it has {', '.join(self.model.inputs)}")
        for name in outputs or ():
            if name not in self.model.outputs:
                raise ValueError(f"the model has no output {name}; it has {', '.join(self.model.outputs)}")

    def _column(self, name, batch):
        wanted = self.columns.get(name, name)
        if name not in self.columns and name not in batch and len(self.model.inputs) == 1 and len(batch) == 1:
            wanted = next(iter(batch))
        several = [wanted] if isinstance(wanted, str) else list(wanted)
        for one in several:
            if one not in batch:
                raise KeyError(f"input {name} has no column {one}; there are {', '.join(batch)}")
        if isinstance(wanted, str):
            return batch[wanted], several
        dtype = self.model.inputs[name][0]
        return np.stack([np.asarray(batch[one], dtype) for one in several], axis=1), several

    def __call__(self, batch):
        feed, read = {}, []
        for name in self.model.inputs:
            feed[name], used = self._column(name, batch)
            read += used
        count = len(next(iter(feed.values())))
        feed, early = self._converted(feed, count)
        outputs, reasons = self.model.run_rows(feed)
        reasons = np.where(early != "", early, reasons)
        if self.errors == "raise" and (reasons != "").any():
            row = int(np.argmax(reasons != ""))
            raise RuntimeError(f"row {row} of a batch: {reasons[row]}")
        keep = self.keep if self.keep is not None else [name for name in batch if name not in read]
        result = {name: batch[name] for name in keep}
        for name, out in outputs.items():
            if self.outputs is None or name in self.outputs:
                result[self.outputs.get(name, name) if isinstance(self.outputs, dict) else name] = out
        if self.errors == "column":
            result["error"] = reasons
        return result

    def _converted(self, feed, count):
        """What a function makes of a batch; where it fails, of each row, and a row that it fails on has its reason."""
        early = np.full(count, "", object)
        for name, function in self.convert.items():
            try:
                feed[name] = np.asarray(function(feed[name]))
            except Exception:
                rows = [self._convert_row(function, feed[name][i:i + 1], early, i) for i in range(count)]
                like = next((row for row in rows if row is not None), None)
                if like is None:
                    raise
                feed[name] = np.concatenate([np.zeros_like(like) if row is None else row for row in rows])
        return feed, early

    @staticmethod
    def _convert_row(function, row, early, number):
        try:
            return np.asarray(function(row))
        except Exception as error:
            early[number] = f"{type(error).__name__}: {error}"
            return None


# --- a compiled program on each machine ---

class _Kept:
    """A compiled program: its path, and where that is not, its bytes in Ray's store."""

    def __init__(self, path, bytes_of=None):
        self.path, self.bytes_of = path, bytes_of


def _local(model):
    if not isinstance(model, _Kept):
        return model
    if os.path.exists(model.path) or model.bytes_of is None:
        return model.path
    import ray
    here = os.path.join(serving._folder(), os.path.basename(model.path))
    if not os.path.exists(here):
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(here), delete=False) as file:
            file.write(ray.get(model.bytes_of))
        os.replace(file.name, here)  # whole, whoever else does the same
    return here


def _prepare(model, options):
    """The compiled program of this machine, for all."""
    import ray
    path = serving.kept(model, **options)
    if sum(node["Alive"] for node in ray.nodes()) == 1:
        return _Kept(path)
    with open(path, "rb") as file:
        return _Kept(path, ray.put(file.read()))


# --- Ray Data ---

def predict(dataset, model, *, batch_size=32, workers=None, threads=1, columns=None, convert=None, outputs=None, keep=None,
            errors="column", ray_options=None, **options):
    """The dataset with the model's outputs.

    Workers are processes with `threads` threads each, as many as the machines have processors for; one asks Ray for half of that, so
    that what reads and writes data runs beside it. `ray_options` go to map_batches as they are; options are those of serving.Model."""
    import ray
    from ray.data import ActorPoolStrategy
    if not ray.is_initialized():
        ray.init()
    most = max(1, int(ray.cluster_resources().get("CPU", 1)) // threads)
    workers = workers or most
    compiled = _prepare(model, {**options, "threads": threads})
    how = {"batch_format": "numpy", "batch_size": batch_size, "zero_copy_batch": True, "num_cpus": threads / 2,
           "compute": ActorPoolStrategy(size=workers), "udf_modifying_row_count": False, **(ray_options or {})}
    return dataset.map_batches(Predict, fn_constructor_args=(compiled,), fn_constructor_kwargs={
        "columns": columns, "convert": convert, "outputs": outputs, "keep": keep, "errors": errors}, **how)


def split(dataset):
    """(rows that went well, without the column "error"; rows that failed)."""
    from ray.data.expressions import col
    return dataset.filter(expr=col("error") == "").drop_columns(["error"]), dataset.filter(expr=col("error") != "")


# --- Ray Serve ---

def deployment(models, *, name="migraphx", loaded=3, most=32, replicas=1, options=None, **settings):
    """An application for `serve.run`: models by name, over HTTP by the Open Inference Protocol, and through handles:

        handle = serve.run(migraphx.ray.deployment({"resnet": "resnet.onnx"}))
        outputs = handle.infer.remote("resnet", {"image": image}).result()
        for token in handle.options(stream=True).generate.remote("writer", [1, 2, 3]): ...

    Requests that wait are the next batch, up to `most` rows. A replica has so many models `loaded`, and the handle's
    multiplexed_model_id finds one that has it. `options` are Ray's for the replica, settings those of serving.Model.
    user_config may change models, loaded and most while it runs."""
    from ray import serve
    from starlette.responses import Response, StreamingResponse

    class Migraphx:
        def __init__(self, models, loaded, most, settings):
            self.service = serving.Service(models, loaded=loaded, most=most, **settings)

        def reconfigure(self, config):
            if config:
                self.service.reconfigure(config)

        def check_health(self):
            self.service.check_health()

        async def infer(self, model, feed):
            return await self.service.infer(model or serve.get_multiplexed_model_id(), feed)

        async def generate(self, model, prompt, **how):
            pieces = self.service.generate(model, prompt, **how)
            try:
                async for piece in pieces:
                    yield piece
            finally:
                await pieces.aclose()

        async def statistics(self):
            """Runs and rows of each model that is loaded."""
            return {n: {"runs": one.runs, "rows": one.rows} for n, one in self.service.live.items() if hasattr(one, "runs")}

        async def __call__(self, request):
            path = request.scope["path"]
            root = request.scope.get("root_path", "").rstrip("/")
            if root and path.startswith(root):
                path = path[len(root):]
            status, headers, body = await self.service.answer(request.method, path, dict(request.headers), await request.body())
            if isinstance(body, bytes):
                return Response(body, status, headers)
            return StreamingResponse(body, status, headers)

        def __del__(self):
            service = getattr(self, "service", None)
            if service is not None:
                service.close()

    how = {"name": name, "num_replicas": replicas, "max_ongoing_requests": 4 * most, **(options or {})}
    here = {n: os.path.abspath(path) for n, path in models.items()}
    return serve.deployment(Migraphx).options(**how).bind(here, loaded, most, settings)
