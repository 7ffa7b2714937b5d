# SPDX-License-Identifier: MIT
"""Sessions as ONNX Runtime has them, for programs that were written for it.

    import migraphx.session as ort

    session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    logits, = session.run(["logits"], {"image": image})

Names, arguments, values and kinds of errors are ONNX Runtime's; what runs is this engine, and ONNX Runtime need not be
installed. Lengths that the model leaves open stay open. What this module has not raises an AttributeError that says so,
instead of doing something else. Needs numpy.
"""
import enum
import mmap
import os
import threading
import warnings

import migraphx
import numpy as np

__all__ = ["ExecutionMode", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata", "NodeArg", "OrtValue", "RunOptions",
           "SessionOptions", "get_all_providers", "get_available_providers", "get_device", "preload_dlls", "set_default_logger_severity",
           "set_default_logger_verbosity"]

__version__ = migraphx.__version__

CPU, CARD = "CPUExecutionProvider", "MIGraphXExecutionProvider"
# Which target a provider's name asks for; those of other makers' cards are served by this one too.
_TARGETS = {CPU: "cpu", CARD: "gpu", "MgxExecutionProvider": "cpu", "AMDGPUExecutionProvider": "gpu", "ROCMExecutionProvider": "gpu",
            "CUDAExecutionProvider": "gpu"}
_TYPES = {"float_type": "float", "half_type": "float16", "double_type": "double", "bool_type": "bool", "bf16_type": "bfloat16",
          "string_type": "string", "fp8e4m3fn_type": "float8e4m3fn", "fp8e5m2_type": "float8e5m2",
          "fp8e4m3fnuz_type": "float8e4m3fnuz", "fp8e5m2fnuz_type": "float8e5m2fnuz"}


class Fail(RuntimeError):
    """What went wrong in loading, compiling or running."""


class InvalidArgument(Fail):
    """A name, type or length that the model does not have."""


class NoSuchFile(Fail):
    """A model that is not there."""


def __getattr__(name):
    raise AttributeError(f"migraphx.session has no {name}: it has sessions, their options, values and bindings "
                         "(docs/hosts.md); what else ONNX Runtime offers is not there")


class _Strict:
    """Settings that are misspelt, or that nobody here would read, are refused."""

    def __setattr__(self, name, value):
        if name not in type(self)._known:
            raise AttributeError(f"{type(self).__name__} has no {name} in migraphx.session; it has "
                                 + ", ".join(sorted(n for n in type(self)._known if n[0] != "_")))
        object.__setattr__(self, name, value)


class GraphOptimizationLevel(enum.IntEnum):
    """Taken and without effect: there is one level."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Taken and without effect: steps run one after the other, each on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions(_Strict):
    """intra_op_num_threads sets the threads of a run (0: as many as the process may use); enable_cpu_mem_arena, enable_mem_pattern,
    the level of optimisation and the rest of what is listed have no effect."""

    _known = {"intra_op_num_threads", "inter_op_num_threads", "graph_optimization_level", "execution_mode", "enable_cpu_mem_arena",
              "enable_mem_pattern", "enable_mem_reuse", "enable_profiling", "log_severity_level", "log_verbosity_level", "logid",
              "use_deterministic_compute", "_sizes", "_entries"}

    def __init__(self):
        self.intra_op_num_threads = self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.enable_cpu_mem_arena = self.enable_mem_pattern = self.enable_mem_reuse = True
        self.enable_profiling = self.use_deterministic_compute = False
        self.log_severity_level, self.log_verbosity_level, self.logid = -1, 0, ""
        self._sizes, self._entries = {}, {}

    def add_free_dimension_override_by_name(self, name, size):
        """Fixes the length of a dimension that the model has this name for."""
        self._sizes[name] = int(size)

    def add_session_config_entry(self, key, value):
        """Kept, for get_session_config_entry; none has an effect here."""
        self._entries[key] = str(value)

    def get_session_config_entry(self, key):
        if key not in self._entries:
            raise Fail(f"there is no entry {key}")
        return self._entries[key]


class RunOptions(_Strict):
    """Taken and without effect."""

    _known = {"log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches", "terminate", "_entries"}

    def __init__(self):
        self.log_severity_level, self.log_verbosity_level, self.logid = -1, 0, ""
        self.only_execute_path_to_fetches = self.terminate = False
        self._entries = {}

    def add_run_config_entry(self, key, value):
        self._entries[key] = str(value)


class NodeArg:
    """An input or output: `name`, `type` as "tensor(float)", `shape` with a number, a name or None for each axis."""

    def __init__(self, name, shape):
        self.name, self.type, self.shape = name, _type_text(shape), _lengths(shape)

    def __repr__(self):
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


def _type_text(shape):
    kind = shape.type_string()
    if kind in ("sequence_type", "tuple_type"):
        members = shape.sub_shapes()
        inner = _type_text(members[0]) if members else "tensor(float)"
        return f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})"
    return f"tensor({_TYPES.get(kind, kind.replace('_type', ''))})"


def _lengths(shape):
    if shape.type_string() in ("sequence_type", "tuple_type"):
        return []
    if not shape.dynamic():
        return shape.lens()[:shape.rank()]
    try:
        return [d.min if d.is_fixed() else d.name or None for d in shape.dyn_dims()]
    except RuntimeError:  # not even how many there are is known; ONNX Runtime gives an empty list too
        return []


def get_device():
    """ "GPU" where target gpu has a card, else "CPU"."""
    return "GPU" if "gpu" in migraphx.get_targets() else "CPU"


def get_available_providers():
    """What sessions can run on, the fastest first."""
    return [CARD, CPU] if get_device() == "GPU" else [CPU]


def get_all_providers():
    return [CARD, CPU]


def set_default_logger_severity(severity):
    """Without use: nothing is logged, errors are raised."""


def set_default_logger_verbosity(verbosity):
    """Without use, as the severity."""


def preload_dlls(cuda=True, cudnn=True, msvc=True, directory=None):
    """Without use: what a card needs is found when it is used."""


class OrtValue:
    """A value in host memory, which a session takes and gives."""

    def __init__(self, value):
        self._value = value

    @staticmethod
    def ortvalue_from_numpy(array, device_type="cpu", device_id=0):
        _need_host(device_type)
        return OrtValue(np.asarray(array))

    @staticmethod
    def ortvalue_from_shape_and_type(shape, element_type, device_type="cpu", device_id=0):
        _need_host(device_type)
        return OrtValue(np.zeros(shape, element_type))

    def numpy(self):
        return self._value

    def shape(self):
        return list(self._value.shape)

    def data_type(self):
        return "tensor(string)" if self._value.dtype == object else f"tensor({_numpy_name(self._value.dtype)})"

    def data_ptr(self):
        return self._value.ctypes.data

    def device_name(self):
        return "cpu"

    def is_tensor(self):
        return isinstance(self._value, np.ndarray)

    def has_value(self):
        return self._value is not None

    def update_inplace(self, array):
        self._value[...] = array

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._value, dtype)


def _numpy_name(dtype):
    return {"float32": "float", "float64": "double"}.get(dtype.name, dtype.name)


def _need_host(device_type):
    if device_type != "cpu":
        raise Fail(f"values of migraphx.session lie in host memory, not on {device_type}; migraphx.to_gpu has those of cards")


class IOBinding:
    """Values for the inputs of a session and places for its outputs."""

    def __init__(self, session):
        self._session, self._inputs, self._places, self._got = session, {}, {}, []

    def bind_cpu_input(self, name, array):
        self._inputs[name] = np.asarray(array)

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr):
        """Reads `shape` values of numpy's type at the address when it is run."""
        _need_host(device_type)
        self._inputs[name] = _at(buffer_ptr, element_type, shape)

    def bind_ortvalue_input(self, name, value):
        self._inputs[name] = value.numpy()

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        """Writes to the address, where one is given; else the run makes the value."""
        _need_host(device_type)
        self._places[name] = _at(buffer_ptr, element_type, shape) if buffer_ptr else None

    def bind_ortvalue_output(self, name, value):
        self._places[name] = value.numpy()

    def clear_binding_inputs(self):
        self._inputs.clear()

    def clear_binding_outputs(self):
        self._places.clear()

    def synchronize_inputs(self):
        """Nothing is on its way: values lie in host memory."""

    def synchronize_outputs(self):
        """Nothing is on its way."""

    def get_outputs(self):
        return [OrtValue(v) for v in self._got]

    def copy_outputs_to_cpu(self):
        return list(self._got)

    def _run(self):
        names = list(self._places)
        self._got = self._session.run(names, self._inputs)
        for i, name in enumerate(names):
            place = self._places[name]
            if place is None:
                continue
            if place.shape != self._got[i].shape or place.dtype != self._got[i].dtype:
                raise InvalidArgument(f"output {name} is {self._got[i].dtype} {self._got[i].shape}, its place {place.dtype} {place.shape}")
            place[...] = self._got[i]
            self._got[i] = place


def _at(address, element_type, shape):
    import ctypes

    dtype = np.dtype(element_type)
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer((ctypes.c_char * max(size, 1)).from_address(address), dtype, count=size // dtype.itemsize).reshape(shape)


def _varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def _fields(data, begin, end):
    """(number, begin, end) of texts and messages, (number, value, None) of numbers; nothing inside them is read."""
    at = begin
    while at < end:
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value, None
            continue
        size, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
        if at + size > end:
            return
        yield key >> 3, at, at + size
        at += size


class ModelMetadata:
    """What a model says of itself."""

    def __init__(self, model):
        self.producer_name = self.domain = self.description = self.graph_name = self.graph_description = ""
        self.version, self.custom_metadata_map = 0, {}
        if hasattr(model, "SerializeToString"):
            model = model.SerializeToString()
        if isinstance(model, (str, os.PathLike)):
            with open(model, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return self._read(data)
        self._read(bytes(model))

    def _read(self, data):
        """A ModelProto, field by field; weights are stepped over."""
        def text(begin, end):
            return data[begin:end].decode(errors="replace")

        names = {2: "producer_name", 4: "domain", 6: "description"}
        for number, begin, end in _fields(data, 0, len(data)):
            if number in names:
                setattr(self, names[number], text(begin, end))
            elif number == 5:
                self.version = begin - (1 << 64 if begin >> 63 else 0)
            elif number == 14:
                entry = {n: text(a, b) for n, a, b in _fields(data, begin, end)}
                self.custom_metadata_map[entry.get(1, "")] = entry.get(2, "")
            elif number == 7:
                inner = {n: (a, b) for n, a, b in _fields(data, begin, end) if n in (2, 10)}
                self.graph_name = text(*inner[2]) if 2 in inner else ""
                self.graph_description = text(*inner[10]) if 10 in inner else ""


class InferenceSession:
    """A model, compiled for the first of `providers` that this machine has: a path, bytes or an onnx.ModelProto."""

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **ignored):
        known = {"disabled_optimizers", "enable_fallback", "read_config_from_model"}
        if set(ignored) - known:
            raise TypeError(f"InferenceSession has no argument {sorted(set(ignored) - known)[0]} in migraphx.session")
        self._options = sess_options or SessionOptions()
        self._provider, self._settings = _choose(providers, provider_options)
        self._program = _parse(path_or_bytes, self._options)
        self._metadata = ModelMetadata(path_or_bytes)
        _compile(self._program, _TARGETS[self._provider], self._options, self._settings)
        shapes = self._program.get_parameter_shapes()
        self._inputs = [NodeArg(n, shapes[n]) for n in self._program.get_parameter_names()]
        self._outputs = [NodeArg(n, s) for n, s in zip(self._program.get_output_names(), self._program.get_output_shapes())]

    def get_inputs(self):
        return list(self._inputs)

    def get_outputs(self):
        return list(self._outputs)

    def get_providers(self):
        return [self._provider] + ([CPU] if self._provider != CPU else [])

    def get_provider_options(self):
        """Of each provider, as texts, those that were given."""
        return {name: {k: str(v) for k, v in self._settings.items()} if name == self._provider else {} for name in self.get_providers()}

    def set_providers(self, providers=None, provider_options=None):
        """The model is compiled: what it runs on may be named again, and nothing else."""
        chosen, _ = _choose(providers, provider_options)
        if chosen != self._provider:
            raise Fail(f"the session runs on {self._provider}; one on {chosen} is made anew")

    def disable_fallback(self):
        """Without use: nothing falls back."""

    def enable_fallback(self):
        """Without use: nothing falls back."""

    def get_modelmeta(self):
        return self._metadata

    def get_session_options(self):
        return self._options

    def run(self, output_names, input_feed, run_options=None):
        """A list of numpy's arrays, for the outputs named or all of them."""
        _check_names(input_feed, [i.name for i in self._inputs], "input")
        for i in self._inputs:
            if i.name not in input_feed and not i.type.startswith("optional"):
                raise InvalidArgument(f"input {i.name!r} is not given")
        names = [o.name for o in self._outputs]
        _check_names(output_names or [], names, "output")
        feed = dict.fromkeys((i.name for i in self._inputs), None)
        feed.update({k: v.numpy() if isinstance(v, OrtValue) else v for k, v in input_feed.items()})
        with _Errors():
            got = [_plain(v) for v in self._program.run(feed)]
        return [got[names.index(n)] for n in output_names] if output_names else got

    def run_async(self, output_names, input_feed, callback, user_data=None, run_options=None):
        """run in a thread of its own, then callback(results, user_data, error): a text, empty where all went well, else results are None."""
        def work():
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as e:
                results, error = None, str(e) or type(e).__name__
            callback(results, user_data, error)

        threading.Thread(target=work, daemon=True).start()

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None):
        return [OrtValue(v) for v in self.run(output_names, input_dict_ort_values)]

    def io_binding(self):
        return IOBinding(self)

    def run_with_iobinding(self, iobinding, run_options=None):
        iobinding._run()

    def __getattr__(self, name):
        raise AttributeError(f"InferenceSession has no {name} in migraphx.session")


class _Errors:
    """The engine's failures as ONNX Runtime's kinds."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None or not isinstance(error, Exception) or isinstance(error, Fail):
            return False
        if isinstance(error, FileNotFoundError):
            raise NoSuchFile(str(error)) from None
        text = str(error)
        wrong = isinstance(error, (TypeError, ValueError)) or "Incorrect shape" in text or "Parameter not found" in text
        if isinstance(error, (RuntimeError, TypeError, ValueError)):
            raise (InvalidArgument if wrong else Fail)(text) from None
        return False


def _plain(value):
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return None if value is None else np.asarray(value)


def _check_names(given, known, what):
    for name in given:
        if name not in known:
            raise InvalidArgument(f"the model has no {what} {name!r}; it has {', '.join(map(repr, known))}")


def _choose(providers, provider_options):
    """The first provider that is there, with its options."""
    wanted = list(providers or get_available_providers())
    settings = list(provider_options or [{}] * len(wanted))
    if len(settings) != len(wanted):
        raise ValueError(f"{len(settings)} sets of provider_options for {len(wanted)} providers")
    for entry, options in zip(wanted, settings):
        name, options = (entry[0], entry[1]) if isinstance(entry, (tuple, list)) else (entry, options)
        target = _TARGETS.get(name)
        if target is None:
            warnings.warn(f"provider {name} is not known to migraphx.session; known are {', '.join(_TARGETS)}", stacklevel=3)
        elif target in migraphx.get_targets():
            return name, dict(options or {})
        else:
            warnings.warn(f"provider {name}: there is no card that target gpu can use", stacklevel=3)
    return CPU, {}


def _parse(model, options):
    sizes = {name: migraphx.shape.dynamic_dimension(size, size) for name, size in options._sizes.items()}
    with _Errors():
        if not isinstance(model, (str, os.PathLike, bytes, bytearray, memoryview)) and not hasattr(model, "SerializeToString"):
            raise TypeError(f"a model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}")
        if isinstance(model, (bytes, bytearray, memoryview)):
            return migraphx.parse_onnx_buffer(bytes(model), dynamic_dims=True, dim_params=sizes)
        return migraphx.parse_onnx(model, dynamic_dims=True, dim_params=sizes)


# Of ONNX Runtime's providers, about memory and searches that are otherwise here; results are the same.
_WITHOUT_USE = ("arena_extend_strategy", "use_arena", "gpu_mem_limit", "cudnn_conv_algo_search", "cudnn_conv_use_max_workspace",
                "do_copy_in_default_stream", "migraphx_arena_extend_strategy")


def _on(settings, name):
    """A switch of the provider's, in either spelling."""
    value = settings.pop(name, settings.pop("migraphx_" + name, False))
    return str(value).lower() in ("1", "true")


def _compile(program, target, options, settings):
    settings = dict(settings)
    half, bf16, tune = (_on(settings, n) for n in ("fp16_enable", "bf16_enable", "exhaustive_tune"))
    device = int(settings.pop("device_id", 0))
    for name in _WITHOUT_USE:
        settings.pop(name, None)
    if settings:
        raise InvalidArgument(f"provider option {sorted(settings)[0]} is not there in migraphx.session; there are fp16_enable, "
                              "bf16_enable, exhaustive_tune and device_id")
    with _Errors():
        if half:
            migraphx.quantize_fp16(program)
        if bf16:
            migraphx.quantize_bf16(program)
        program.compile(target, threads=options.intra_op_num_threads, exhaustive_tune=tune, device_id=device)
