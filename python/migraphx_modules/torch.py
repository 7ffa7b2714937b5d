# SPDX-License-Identifier: MIT
"""torch.compile with this engine.

    model = torch.compile(model.eval(), backend="migraphx")
    with torch.no_grad():
        y = model(x)

The backend is found by its entry point where the engine's wheel is installed; elsewhere `import migraphx.torch` registers it, or
`backend=migraphx.torch.backend` names it. Each graph that dynamo gives is exported to ONNX when it first runs, with the lengths open
that dynamo leaves open, and compiled: for target cpu, or for the card that its tensors lie on, where runs read and write torch's memory
on torch's stream and there is a program for each set of lengths. Parameters become weights; when one of them was changed meanwhile, the
graph is compiled anew. A graph that cannot be taken (an operator without ONNX, gradients, values that are written in place) runs in
torch, and a warning says why.
"""
import collections
import logging
import operator
import os
import tempfile
import threading
import warnings

import migraphx
import torch
import torch._dynamo.convert_frame
from torch._dynamo import register_backend

__all__ = ["backend"]

_OPTIONS = {"fp16": False, "bf16": False, "exhaustive_tune": False, "threads": 0, "fast_math": True, "verbose": False}


# Export changes what all threads see of torch: one at a time, and none while dynamo compiles.
_exporting = getattr(torch._dynamo.convert_frame, "compile_lock", None) or threading.RLock()


class _NotTaken(Exception):
    """Why a graph runs in torch."""


def backend(module, example_inputs, *, options=None, **others):
    """What torch.compile calls with a graph. Options: fp16, bf16, exhaustive_tune, threads, fast_math, verbose."""
    unknown = set(options or {}) - set(_OPTIONS)
    if unknown:
        raise ValueError(f"backend migraphx has no option {sorted(unknown)[0]}; it has {', '.join(_OPTIONS)}")
    return _Graph(module, example_inputs, {**_OPTIONS, **(options or {})})


for _name in ("migraphx", "migraphx_pretraced", "migraphx_aot"):  # torch_migraphx's names
    register_backend(backend, name=_name)


class _Graph:
    """A graph of dynamo's: a program once it has run."""

    def __init__(self, module, example_inputs, options):
        self._module, self._options = module, options
        self._places = [n for n in module.graph.nodes if n.op == "placeholder"]
        self._kinds = _kinds_of(example_inputs, self._places)
        self._given = [i for i, kind in enumerate(self._kinds) if kind == "input"]
        self._ready, self._reason, self._values_change = None, None, False

    def __call__(self, *args):
        if not self._given or self._reason is not None or _wants_gradients(args):
            return self._module(*args)
        try:
            return self._run(args)
        except _NotTaken as e:
            self._reason = str(e)
            warnings.warn(f"migraphx: a graph of {len(self._module.graph.nodes)} nodes runs in torch: {e}", stacklevel=2)
            return self._module(*args)

    def _run(self, args):
        """A model has hundreds of weights, so they are looked at behind the run, when a card is already at work; it is made again if
        one was changed."""
        results = self._run_ready(self._ready, args)
        if results is None:
            with _exporting:
                results = self._run_ready(self._ready, args)  # another thread may have made it
                if results is None:
                    before, self._ready = self._ready, None  # its memory goes before the next ones take theirs
                    self._values_change = self._values_change or (before is not None and before[1].values_differ(args))
                    del before
                    self._ready = self._compile(args)
                    results = self._run_ready(self._ready, args)
        if results is None:
            raise _NotTaken("export fixes a length that changes")
        return results

    def _run_ready(self, ready, args):
        """None: it is not made, or of other lengths, weights or values."""
        if ready is None:
            return None
        runner, held = ready
        inputs = [args[i].detach() for i in self._given]
        if held.open:
            inputs += runner.values_of(held.values(args))
        results = runner.run(inputs) if runner.fits(inputs) else None
        return results if results is not None and held.same(args) else None

    def _compile(self, args):
        card = _card_of(args)
        wanted = _results_of(self._module, self._places, self._kinds, card)
        held = _Held(args, self._kinds, self._values_change)
        try:
            frozen = _Frozen(self._module, self._places, self._kinds, args, self._values_change)
            model = _Model(_export(frozen, frozen.examples(args)), self._options, wanted)
            if self._options["verbose"]:
                print(f"migraphx: a graph of {len(self._module.graph.nodes)} nodes, inputs {', '.join(model.names)}")
            return (_OnProcessor(model) if card is None else _OnCard(model, card)), held
        except _NotTaken as e:
            raise _NotTaken(f"{e} (where its numbers are inputs, for they change)" if held.open and held.values(args) else str(e)) from None


def _wants_gradients(args):
    return torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and a.requires_grad for a in args)


def _picks(indices):
    """A function that takes these of a tuple, soon where they are hundreds."""
    indices = list(indices)
    return operator.itemgetter(*indices) if len(indices) > 1 else lambda args: tuple(args[i] for i in indices)


_place_of, _version_of = torch.Tensor.data_ptr, operator.attrgetter("_version")


class _Held:
    """The weights and numbers that a program was made of. Aliases of the weights keep their memory, so that no others come to lie there.
    Where the values are open, they are inputs and may change."""

    def __init__(self, args, kinds, values_are_open):
        weights = [i for i, kind in enumerate(kinds) if kind == "weight"]
        self.open, self._weights = values_are_open, _picks(weights)
        self._numbers = [i for i, kind in enumerate(kinds) if kind in ("number", "count")]
        self._counting = _picks(i for i in weights if not args[i].is_inference())  # those of inference_mode have no versions
        self._aliases = [w.detach() for w in self._weights(args)]
        self._places = list(map(_place_of, self._weights(args)))
        self._versions = list(map(_version_of, self._counting(args)))
        self._values = self.values(args)

    def values(self, args):
        return [a.item() if isinstance(a, torch.Tensor) else int(a) for a in (args[i] for i in self._numbers)]

    def values_differ(self, args):
        return self.values(args) != self._values

    def same(self, args):
        return (list(map(_place_of, self._weights(args))) == self._places and list(map(_version_of, self._counting(args))) == self._versions
                and (self.open or not self.values_differ(args)))


class _Card:
    """A device of torch's, by the engine's name for it."""

    def __init__(self, device):
        self.device, self.index = device, device.index
        self.name = f"{'hip' if torch.version.hip else 'cuda'}:{device.index}"

    def stream(self):
        return torch.cuda.current_stream(self.device).cuda_stream


def _card_of(args):
    """Where a graph's tensors lie; None: on the processor."""
    devices = {a.device for a in args if isinstance(a, torch.Tensor) and (a.device.type != "cpu" or a.dim())}
    if not any(d.type != "cpu" for d in devices):
        return None
    if len(devices) > 1 or next(iter(devices)).type != "cuda":
        raise _NotTaken(f"its tensors lie on {', '.join(sorted(map(str, devices)))}")
    return _Card(next(iter(devices)))


def _results_of(module, places, kinds, card):
    """The types of the graph's results, None where dynamo does not say; refuses what the engine has no tensors of, and what lies elsewhere
    than the runs."""
    device = torch.device("cpu") if card is None else card.device
    results = next(n for n in module.graph.nodes if n.op == "output").args[0]
    wanted = [n.meta.get("example_value", _UNKNOWN) if isinstance(n, torch.fx.Node) else n for n in results]
    for fake in [*(n.meta.get("example_value") for n, kind in zip(places, kinds) if kind == "input"), *wanted]:
        if fake is not _UNKNOWN and not isinstance(fake, torch.Tensor):
            raise _NotTaken("a result of it is no tensor")
        if fake is not _UNKNOWN and fake.is_complex():
            raise _NotTaken("it has complex numbers going in or out")
    for fake in wanted:
        if fake is not _UNKNOWN and fake.device != device:
            raise _NotTaken(f"a result of it lies on {fake.device}, its tensors on {device}")
    return [None if fake is _UNKNOWN else fake.dtype for fake in wanted]


_UNKNOWN = object()


# --- programs ---


_TYPES = {"float_type": torch.float32, "half_type": torch.float16, "bf16_type": torch.bfloat16, "double_type": torch.float64,
          "int8_type": torch.int8, "uint8_type": torch.uint8, "int16_type": torch.int16, "int32_type": torch.int32,
          "int64_type": torch.int64, "bool_type": torch.bool}


class _Model:
    """An exported graph as a file, with its weights beside it."""

    def __init__(self, exported, options, wanted):
        self.options, self._wanted = options, wanted
        self.names = [v.name for v in exported.model.graph.inputs]
        self._folder = tempfile.TemporaryDirectory()
        self._path = os.path.join(self._folder.name, "model.onnx")
        exported.save(self._path, external_data=True)

    def parse(self, **how):
        try:
            program = migraphx.parse_onnx(self._path, **how)
        except RuntimeError as e:
            raise _NotTaken(str(e).replace("\n", "; ")) from None
        self._check_results(program)
        if self.options["fp16"]:
            migraphx.quantize_fp16(program)
        if self.options["bf16"]:
            migraphx.quantize_bf16(program)
        return program

    def _check_results(self, program):
        got = [_TYPES.get(s.type_string()) for s in program.get_output_shapes()]
        if len(got) != len(self._wanted) or any(w not in (None, g) for g, w in zip(got, self._wanted)):
            raise _NotTaken(f"export gives results of {', '.join(map(str, got))}, torch of {', '.join(map(str, self._wanted))}")

    def chosen(self, *names):
        return {name: self.options[name] for name in names}


def _fixed_lengths(program, names):
    """For each input (axis, length) of those that are not open: export may fix what dynamo leaves open, as those that meet a weight's."""
    shapes = program.get_parameter_shapes()
    return [_fixed_of(shapes[n]) if n in shapes else [] for n in names]


def _fixed_of(shape):
    if shape.dynamic():
        return [(i, d.min) for i, d in enumerate(shape.dyn_dims()) if d.is_fixed()]
    return list(enumerate(shape.lens()[:shape.rank()]))


class _Runner:
    """Programs of a model, which take inputs of some lengths."""

    device = torch.device("cpu")

    def values_of(self, values):
        """Numbers as inputs, where they are some."""
        return [torch.full((), v, dtype=torch.int64 if isinstance(v, int) else torch.get_default_dtype(), device=self.device) for v in values]

    def fits(self, inputs):
        return all(x.shape[axis] == size for x, fixed in zip(inputs, self._fixed) for axis, size in fixed)


class _OnProcessor(_Runner):
    """One program for all lengths; its weights stay mapped when the file is gone."""

    def __init__(self, model):
        self._names = model.names
        self._program = model.parse(dynamic_dims=True)
        self._fixed = _fixed_lengths(self._program, model.names)
        self._program.compile("cpu", **model.chosen("threads", "exhaustive_tune", "fast_math"))

    def run(self, inputs):
        results = self._program.run(dict(zip(self._names, inputs)))
        return tuple(torch.from_dlpack(r) for r in results)


def _rounds(place):
    """May what floats multiply be rounded (TF32) there, as the program has set it? torch refuses its older word where the newer was said."""
    try:
        return bool(place.allow_tf32)
    except RuntimeError:
        return getattr(place, "conv", place).fp32_precision == "tf32"


class _OnCard(_Runner):
    """A program for each set of lengths, the ones used last; it is handed torch's addresses and its stream, so nothing is copied."""

    _MOST, _ALIGNED = 16, 16

    def __init__(self, model, card):
        self._model, self._card, self.device = model, card, card.device
        self._fixed = _fixed_lengths(model.parse(dynamic_dims=True), model.names)
        self._programs, self._lock = collections.OrderedDict(), threading.Lock()

    def run(self, inputs):
        key = tuple(x.shape for x in inputs)
        program, takes, gives = self._program_for(key, inputs)
        inputs = [self._as_read(x) for x in inputs]
        results = tuple(torch.empty(lens, dtype=kind, device=self.device) for _, _, lens, kind in gives)
        params = {name: self._lend(shape, inputs[i]) for i, name, shape in takes}
        params.update({name: self._lend(shape, y) for (name, shape, _, _), y in zip(gives, results)})
        program.run_async(params, self._card.stream(), "cudaStream_t")
        return results

    def _program_for(self, key, inputs):
        with self._lock:
            if key not in self._programs:
                self._programs[key] = self._compile(inputs)
            self._programs.move_to_end(key)
            while len(self._programs) > self._MOST:
                self._programs.popitem(last=False)
            return self._programs[key]

    def _compile(self, inputs):
        if any(x.numel() == 0 for x in inputs):
            raise _NotTaken("an input without elements lies on a card")
        dims = {name: list(x.shape) for name, x in zip(self._model.names, inputs) if x.dim()}
        program = self._model.parse(map_input_dims=dims)
        program.compile("gpu", offload_copy=False, device_id=self._card.index, tf32=_rounds(torch.backends.cuda.matmul),
                        tf32_convolutions=_rounds(torch.backends.cudnn), **self._model.chosen("exhaustive_tune", "fast_math"))
        shapes = program.get_parameter_shapes()
        takes = [(i, name, shapes[name]) for i, name in enumerate(self._model.names) if name in shapes]
        return program, takes, [self._result(shapes, i) for i in range(len(program.get_output_shapes()))]

    @staticmethod
    def _result(shapes, i):
        """Name, shape, lengths and type of a result that torch makes room for."""
        name = f"main:#output_{i}"
        if name not in shapes or shapes[name].type_string() not in _TYPES:
            raise _NotTaken(f"the size of result {i} is known only after a run")
        shape = shapes[name]
        return name, shape, shape.lens()[:shape.rank()], _TYPES[shape.type_string()]

    def _as_read(self, x):
        """Row-major and aligned, on the card: as it is, mostly."""
        x = x.to(self.device).contiguous()
        return x if x.data_ptr() % self._ALIGNED == 0 else x.clone()

    def _lend(self, shape, x):
        return migraphx.gpudata_to_argument(shape, x.data_ptr(), self._card.name)


# --- graphs as the exporter takes them ---


def _is_number(place):
    """A number of Python's that dynamo hands over as a tensor, for the graph to ask its value."""
    return bool(place.users) and all(user.target == "item" for user in place.users)


def _kinds_of(examples, places):
    """What each argument is: an input, a weight, a number of Python's, a length that inputs have too, a count that none has."""
    kinds = [_kind(example, place) for example, place in zip(examples, places)]
    known = {_symbol(size) for place, kind in zip(places, kinds) if kind == "input" for size in place.meta["example_value"].shape}
    for i, (place, kind) in enumerate(zip(places, kinds)):
        symbol = _symbol(place.meta.get("example_value"))
        if kind == "length" and symbol is not None and symbol not in known and place.users:  # nobody reads what is a stride alone
            kinds[i] = "count"
    return kinds


def _kind(example, place):
    if isinstance(example, (int, torch.SymInt)):
        return "length"
    if isinstance(example, torch.nn.Parameter) or getattr(example, "_dynamo_static_input_type", None):
        return "weight"
    if isinstance(example, torch.Tensor):
        return "number" if _is_number(place) else "input"
    return "other"


def _heads(x, count):
    batch, length, width = x.shape
    return x.reshape(batch, length, count, width // count).transpose(1, 2)


def _mask(mask, kind):
    """What scaled_dot_product_attention takes: torch's fused operators forbid where a mask of flags is set. Kind 0 is of queries
    and keys, 1 of keys alone for each text, 2 of all."""
    if mask is None:
        return None
    if kind == 1:
        mask = mask[:, None, None, :]
    return ~mask if mask.dtype == torch.bool else mask


def _native_attention(query, key, value, width, heads, weight, bias, out_weight, out_bias, mask=None, need_weights=True,
                      average_attn_weights=True, mask_type=None):
    linear = torch.nn.functional.linear
    parts = [linear(x, w, b) for x, w, b in zip((query, key, value), weight.chunk(3), bias.chunk(3))]
    q, k, v = (_heads(x, heads) for x in parts)
    mask = _mask(mask, mask_type)
    if not need_weights:
        y, chances = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask), None
    else:
        scores = q @ k.transpose(-2, -1) / (width // heads) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
        chances = torch.softmax(scores, -1)
        y, chances = chances @ v, chances.mean(1) if average_attn_weights else chances
    return linear(y.transpose(1, 2).reshape(query.shape), out_weight, out_bias), chances


def _encoder_layer(x, width, heads, weight, bias, out_weight, out_bias, use_gelu, norm_first, eps, norm_weight_1, norm_bias_1,
                   norm_weight_2, norm_bias_2, weight_1, bias_1, weight_2, bias_2, mask=None, mask_type=None):
    functional = torch.nn.functional
    norms = [lambda y: functional.layer_norm(y, (width,), norm_weight_1, norm_bias_1, eps),
             lambda y: functional.layer_norm(y, (width,), norm_weight_2, norm_bias_2, eps)]

    def attend(y):
        return _native_attention(y, y, y, width, heads, weight, bias, out_weight, out_bias, mask, False, True, mask_type)[0]

    def feed(y):
        y = functional.linear(y, weight_1, bias_1)
        return functional.linear(functional.gelu(y) if use_gelu else functional.relu(y), weight_2, bias_2)

    for work, norm in zip((attend, feed), norms):
        x = x + work(norm(x)) if norm_first else norm(x + work(x))
    return x


_attention = torch.nn.functional.scaled_dot_product_attention


def _attention_of_any_rank(query, key, value, attn_mask=None, *more, **named):
    """Export takes four axes alone; others in front are texts or heads to it."""
    rank = query.dim()
    if rank == 4:
        return _attention(query, key, value, attn_mask, *more, **named)

    def four(x):
        return x[None] if rank == 3 else x.reshape(x.shape[0], -1, *x.shape[-2:])

    if attn_mask is not None and attn_mask.dim() > 2:
        attn_mask = four(attn_mask.expand(*query.shape[:-1], key.shape[-2]))
    got = _attention(four(query), four(key), four(value), attn_mask, *more, **named)
    return got.reshape(*query.shape[:-1], value.shape[-1])


# What export knows no ONNX for, in operators that it does: torch's own ones of several others, attention of other ranks.
_SPELLED = {_attention: _attention_of_any_rank,
            getattr(torch, "_native_multi_head_attention", None): _native_attention,
            getattr(torch, "_transformer_encoder_layer_fwd", None): _encoder_layer,
            "type_as": lambda x, like: x.to(like.dtype)}  # export fails at a weight that has the type already


def _is_spelled(node):
    return node.op in ("call_function", "call_method") and node.target in _SPELLED


def _spelled(module):
    """The module's graph, copied where it has such operators."""
    if not any(_is_spelled(n) for n in module.graph.nodes):
        return module
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    for n in graph.nodes:
        if _is_spelled(n):
            n.op, n.target = "call_function", _SPELLED[n.target]
    return torch.fx.GraphModule(module, graph)


def _with_numbers(module, kinds, args, are_open):
    """The graph with numbers in the place of tensors that only hold one, or with the tensors themselves where they are inputs."""
    module = _spelled(module)
    if "number" not in kinds:
        return module
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    for place, kind, a in zip([n for n in graph.nodes if n.op == "placeholder"], kinds, args):
        for user in list(place.users) if kind == "number" else ():
            user.replace_all_uses_with(place if are_open else a.item())
            graph.erase_node(user)
    return torch.fx.GraphModule(module, graph)


def _symbol(size):
    """The name of a length that is open, else None."""
    return str(size.node.expr) if isinstance(size, torch.SymInt) else None


class _Frozen(torch.nn.Module):
    """The graph as a module of its tensor inputs alone: weights are its buffers, lengths come from where inputs have them. Numbers and
    counts are constants, or behind the tensors where they are open."""

    def __init__(self, module, places, kinds, args, values_are_open):
        super().__init__()
        self.module, self.kinds, self.values_are_open = _with_numbers(module, kinds, args, values_are_open), kinds, values_are_open
        self.fakes = [n.meta.get("example_value") for n, kind in zip(places, kinds) if kind == "input"]
        where = {}
        for i, fake in enumerate(self.fakes):
            for axis, size in enumerate(fake.shape):
                where.setdefault(_symbol(size), (i, axis))
        self.lengths = {}
        for i, (place, kind) in enumerate(zip(places, kinds)):
            if kind == "weight":
                self.register_buffer(f"weight{i}", args[i].detach())
            elif kind in ("length", "count"):
                symbol = _symbol(place.meta.get("example_value"))
                self.lengths[i] = where.get(symbol, args[i]) if symbol is not None else args[i]
            elif kind == "other":
                raise _NotTaken(f"input {place.name} is no tensor")

    def forward(self, *tensors):
        args, rest, values = [], iter(tensors), iter(tensors[len(self.fakes):])
        for i, kind in enumerate(self.kinds):
            if kind == "weight":
                args.append(getattr(self, f"weight{i}"))
            elif kind in ("number", "count") and self.values_are_open:
                args.append(next(values))
            elif kind == "number":
                args.append(None)  # nobody reads it any more
            elif kind in ("length", "count"):
                at = self.lengths[i]
                args.append(tensors[at[0]].shape[at[1]] if isinstance(at, tuple) else at)
            else:
                args.append(next(rest))
        return tuple(self.module(*args))

    def open_axes(self):
        """Of all that forward takes: the open axes of tensors, and the counts."""
        axes = [{axis: torch.export.Dim.AUTO for axis, size in enumerate(fake.shape) if _symbol(size)} for fake in self.fakes]
        of = {"number": {}, "count": torch.export.Dim.AUTO}
        return (*axes, *(of[kind] for kind in self.kinds if self.values_are_open and kind in of))

    def examples(self, args):
        """The inputs, where an open length is 2 at least: export takes 0 and 1 for fixed ones."""
        given = [a for a, kind in zip(args, self.kinds) if kind == "input"]
        values = [a.to(torch.get_default_dtype()) if kind == "number" else max(int(a), 2) for a, kind in zip(args, self.kinds)
                  if self.values_are_open and kind in ("number", "count")]
        if all(size >= 2 for a, axes in zip(given, self.open_axes()) for axis, size in enumerate(a.shape) if axis in axes):
            return [*(a.detach() for a in given), *values]
        sizes = {}
        for fake, a in zip(self.fakes, given):
            for size, real in zip(fake.shape, a.shape):
                if _symbol(size):
                    sizes[_symbol(size)] = max(int(real), 2)
        return [*(torch.zeros([sizes.get(_symbol(s), r) for s, r in zip(fake.shape, a.shape)], dtype=a.dtype, device=a.device)
                  for fake, a in zip(self.fakes, given)), *values]


def _export(frozen, inputs):
    try:
        with torch._dynamo.config.patch(error_on_nested_fx_trace=False):  # what others' threads compiled runs as it is meanwhile
            return _exported(frozen, inputs)
    except _NotTaken:
        raise
    except Exception as e:  # whatever the exporter says
        raise _NotTaken(f"export: {_first_line(e)}") from None


def _exported(frozen, inputs):
    program = torch.export.export(frozen, tuple(inputs), dynamic_shapes=(frozen.open_axes(),), strict=False)
    if _may_write(program.graph):
        signature = program.run_decompositions({}).graph_signature  # which has writes as results, and takes its time
        written = {*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()}
        if written:
            raise _NotTaken(f"{', '.join(sorted(written))} is written in place")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # which packages it does without is no news
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.onnx.export(program, dynamo=True, verbose=False)


def _may_write(graph):
    """May an operator write where an input or a weight lies? Most that write, as activations in place, do so where the graph computed."""
    for n in graph.nodes:
        if n.op != "call_function" or n.target is operator.getitem:
            continue
        schema = getattr(n.target, "_schema", None)
        if schema is None and not isinstance(n.meta.get("val"), (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)):
            return True  # an operator with graphs in it
        if schema is not None and schema.is_mutable and (n.kwargs or any(
                a.alias_info is not None and a.alias_info.is_write and _is_given(x) for a, x in zip(schema.arguments, n.args))):
            return True
    return False


def _is_given(value):
    """Is it an input, a weight, or a view of one?"""
    while isinstance(value, torch.fx.Node) and value.op == "call_function":
        schema = getattr(value.target, "_schema", None)
        if schema is not None and not any(r.alias_info for r in schema.returns):
            return False
        value = value.args[0] if value.args else None
    return True


def _first_line(error):
    """What names an operator, else what the innermost of the exporter's failures says first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if "No ONNX function" in line or "Unsupported" in line]
    if named:
        return named[-1]
    while error.__cause__ is not None:
        error = error.__cause__
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
