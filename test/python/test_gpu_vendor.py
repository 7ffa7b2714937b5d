# SPDX-License-Identifier: MIT
"""Products by a card's vendor's library, from the program to the result.

Without a card they run on stand-ins for the driver and the library (test/targets/gpu), which multiply in the host's
memory; kernels of ours write nothing there, so only products that the library does as a whole are compared. On a card
(MGX_TEST_DEVICE=cuda or hip), and on the stand-in for HIP's runtime that runs kernels (MGX_RUNS_KERNELS=1), all of them
are, with numpy. MGX_LIBRARY names the library, MGX_CASES says how many.
"""
import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

CARD = os.environ.get("MGX_TEST_DEVICE")
STANDIN = not CARD
RUNS = bool(CARD or os.environ.get("MGX_RUNS_KERNELS"))
LIBRARY = os.environ.get("MGX_LIBRARY", "rocblas" if CARD == "hip" else "cublaslt")
DEVICE = os.environ["MIGRAPHX_GPU_DEVICE"] = "cuda" if LIBRARY == "cublaslt" else "hip"
CONVOLVES = "cudnn" if DEVICE == "cuda" else "miopen"
TITLE = {"cublaslt": "cuBLASLt", "hipblaslt": "hipBLASLt", "rocblas": "rocBLAS"}[LIBRARY]
FILE = {"cublaslt": "libcublasLt", "hipblaslt": "libhipblaslt", "rocblas": "librocblas"}[LIBRARY]
CASES = int(os.environ.get("MGX_CASES", "12"))
SEED = int(os.environ.get("MGX_SEED", "1"))
FUSED = {"cublaslt": {"bias", "relu", "gelu_tanh", "add"}, "hipblaslt": {"bias", "relu", "gelu_tanh", "add"}, "rocblas": {"add"}}[LIBRARY]
LIMIT = {"half_type": 2e-3, "bf16_type": 1.6e-2, "float_type": 1e-6}
NUMPY = {"half_type": np.float16, "float_type": np.float32}
if STANDIN:
    runtime = ctypes.CDLL({"cuda": "libcuda.so.1", "hip": "libamdhip64.so.7"}[DEVICE])
    if not RUNS:
        runtime.standin_slow(1)

import migraphx  # noqa: E402  the environment comes first
from test_gpu_matrix import Builder, rounded  # noqa: E402  sets the device anew

os.environ["MIGRAPHX_GPU_DEVICE"] = DEVICE


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


class Product:
    """A random product with what follows; values come and go as floats of the product's own type."""

    def __init__(self, case):
        rng = np.random.default_rng([SEED, 21, case])
        self.rng, self.feeds, self.p = rng, {}, migraphx.program()
        self.main = self.p.get_main_module()
        self.kind = str(rng.choice(["half_type", "float_type"] if STANDIN else ["half_type", "bf16_type", "float_type"]))
        most = 40 if STANDIN else 300
        rows, depth, columns = int(rng.integers(1, most)), 8 * int(rng.integers(1, most // 8)), 8 * int(rng.integers(1, most // 8))
        batch = [int(n) for n in rng.integers(1, 4, rng.integers(0, 3))]
        shared = bool(rng.integers(2)) or not batch
        x, a = self.operand(batch, rows, depth, False)
        w, b = self.operand([] if shared else batch, depth, columns, shared and rng.integers(2))
        b = b / np.float64(1)
        if shared and batch:
            w = self.op("multibroadcast", [w], out_lens=batch + [depth, columns])
        self.want = a @ b
        self.result = self.op("dot", [x, w])
        self.follow(batch, rows, columns)
        self.size = f"{self.kind} {batch}x{rows}x{depth}x{columns}, shared {shared}, {self.tail}"

    def op(self, name, inputs, **attributes):
        return self.main.add_instruction(migraphx.op(name, **attributes), inputs)

    def value(self, lens, constant, scale=1.0):
        x = rounded(scale * self.rng.standard_normal(lens), self.kind)
        if constant and self.kind in NUMPY:
            return self.main.add_literal(x.astype(NUMPY[self.kind])), x.astype(np.float64)
        name = f"p{len(self.feeds)}"
        self.feeds[name] = (x.view(np.uint32) >> 16).astype(np.uint16) if self.kind == "bf16_type" else x.astype(NUMPY[self.kind])
        return self.main.add_parameter(name, migraphx.shape(type=self.kind, lens=list(lens))), x.astype(np.float64)

    def operand(self, batch, rows, columns, constant):
        """As it is, or a transposed view."""
        if self.rng.integers(2):
            return self.value(batch + [rows, columns], constant, columns**-0.5)
        ins, x = self.value(batch + [columns, rows], constant, columns**-0.5)
        rank = len(batch) + 2
        order = list(range(rank - 2)) + [rank - 1, rank - 2]
        return self.op("transpose", [ins], permutation=order), np.swapaxes(x, -1, -2)

    def follow(self, batch, rows, columns):
        choices = [[], ["bias"], ["add"], ["bias", "relu"], ["bias", "gelu_tanh"], ["add", "bias"], ["add", "relu"]]
        if not RUNS:
            fused = FUSED - {"gelu_tanh"} if self.kind == "float_type" else FUSED  # a float's gelu is not the library's
            choices = [c for c in choices if set(c) <= fused]
        else:
            choices += [["bias", "gelu"], ["tanh"], ["bias", "bias", "add", "add"]]
        self.tail = choices[int(self.rng.integers(len(choices)))]
        lens = batch + [rows, columns]
        for name in self.tail:
            if name == "bias":
                ins, x = self.value([columns], True)
                ins = self.op("multibroadcast", [ins], out_lens=lens)
                self.result, self.want = self.op("add", [self.result, ins]), self.want + x
            elif name == "add":
                ins, x = self.value(lens, False)
                pair = [ins, self.result] if self.rng.integers(2) else [self.result, ins]
                self.result, self.want = self.op("add", pair), self.want + x
            elif name == "gelu":
                erf = np.vectorize(__import__("math").erf)
                self.result, self.want = self.op("gelu", [self.result]), 0.5 * self.want * (1 + erf(self.want / np.sqrt(2)))
            else:
                fn = {"relu": lambda v: np.maximum(v, 0), "gelu_tanh": gelu, "tanh": np.tanh}[name]
                self.result, self.want = self.op(name, [self.result]), fn(self.want)

    def compile(self, **options):
        self.main.add_return([self.result])
        self.p.compile(migraphx.get_target("gpu"), offload_copy=True, **options)
        return self.p

    def run(self):
        shapes = self.p.get_parameter_shapes()
        feeds = {k: migraphx.argument_from_pointer(shapes[k], v.ctypes.data) if self.kind == "bf16_type" else v for k, v in self.feeds.items()}
        y = self.p.run(feeds)[0]
        if self.kind == "bf16_type":
            raw = (ctypes.c_uint16 * int(np.prod(self.want.shape))).from_address(y.data_ptr())
            return (np.array(raw).astype(np.uint32) << 16).view(np.float32).reshape(self.want.shape)
        return np.array(y).astype(np.float64)

    def check(self, y):
        error = np.sqrt(np.mean((y - self.want) ** 2) / np.mean(self.want**2))
        assert error < LIMIT[self.kind], f"{self.size}: {error:.2e}"


def step_of(p):
    """What the plan says of the product."""
    lines = [line for line in p.explain().splitlines() if ": gpu::" in line and ("dot" in line or "group" in line)]
    assert len(lines) == 1, p.explain()
    return lines[0]


@pytest.mark.parametrize("case", range(CASES))
def test_products(case):
    b = Product(case)
    p = b.compile(gemm_provider=LIBRARY)
    assert f": gpu::vendor ({LIBRARY} " in step_of(p), step_of(p)
    for _ in range(3):  # the third one plays a recording
        b.check(b.run())


def convolution(case):
    """A program of a random convolution, with what follows it on a card, its inputs and its result."""
    rng = np.random.default_rng([SEED, 22, case])
    kind = "half_type" if rng.integers(2) else "bf16_type"
    b = Builder(kind, gemm_provider=CONVOLVES)
    groups, taps, step, far = int(rng.choice([1, 1, 2])), int(rng.choice([1, 3])), int(rng.integers(1, 3)), int(rng.integers(1, 3))
    channels, columns = 16 * groups * int(rng.integers(1, 4)), 16 * groups * int(rng.integers(1, 4))
    pad, side = int(rng.integers(0, 2)) * far * (taps // 2), int(rng.integers(8, 20))
    x = rng.standard_normal([int(rng.integers(1, 4)), channels, side, side + 3])
    w = rng.standard_normal([columns, channels // groups, taps, taps]) / (channels * taps * taps / groups) ** 0.5
    y = b.op("convolution", [b.param(x), b.constant(w)], padding=[pad, pad, pad, pad], stride=[step, step], dilation=[far, far], group=groups)
    x, w = rounded(x, kind).astype(np.float64), rounded(w, kind).astype(np.float64)
    x = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    high, wide = ((x.shape[i] - (taps - 1) * far - 1) // step + 1 for i in (2, 3))
    want = np.zeros([x.shape[0], columns, high, wide])
    per_in, per_out = channels // groups, columns // groups
    for g in range(groups):
        for i in range(taps):
            for k in range(taps):
                part = x[:, g * per_in:(g + 1) * per_in, i * far:i * far + (high - 1) * step + 1:step, k * far:k * far + (wide - 1) * step + 1:step]
                want[:, g * per_out:(g + 1) * per_out] += np.einsum("ncij,oc->noij", part, w[g * per_out:(g + 1) * per_out, :, i, k])
    if RUNS and rng.integers(2):
        bias = rng.standard_normal([1, columns, 1, 1])
        y = b.op("relu", [b.op("add", [y, b.op("multibroadcast", [b.constant(bias)], out_lens=list(want.shape))])])
        want = np.maximum(want + rounded(bias, kind), 0)
    return b, y, want, f"{kind} {x.shape} by {w.shape}, step {step}, far {far}, pad {pad}, groups {groups}"


@pytest.mark.parametrize("case", range(CASES))
def test_convolutions(case):
    if LIBRARY == "hipblaslt":
        pytest.skip("its stand-in's folder has no other library")
    b, y, want, size = convolution(case)
    if RUNS:
        error = np.sqrt(np.mean((b.run(y) - want) ** 2) / np.mean(want**2))
        assert error < LIMIT[b.kind], f"{size}: {error:.2e}"
    else:
        b.main.add_return([b.op("convert", [y], target_type=2)])
        b.program.compile(migraphx.get_target("gpu"), offload_copy=True, gemm_provider=CONVOLVES)
    assert f": gpu::vendor ({CONVOLVES} " in b.program.explain(), size + "\n" + b.program.explain()


def test_it_prints_as_a_product(capfd):
    p = Product(1).compile(gemm_provider=LIBRARY)
    p.print()
    assert " = gpu::gemm(" in capfd.readouterr().out


def test_threads_share_a_program():
    b = Product(3)
    p = b.compile(gemm_provider=LIBRARY)
    assert "gpu::vendor" in step_of(p)
    wrong = []

    def work():
        try:
            for _ in range(5):
                b.check(b.run())
        except BaseException as e:
            wrong.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong[0]


def test_a_provider_must_be_known():
    with pytest.raises(RuntimeError, match='"blas" provides no products: auto, own, cublaslt, hipblaslt, rocblas, cudnn, miopen do'):
        Product(0).compile(gemm_provider="blas")
    other = "cublaslt" if DEVICE == "hip" else "rocblas"
    step = step_of(Product(0).compile(gemm_provider=other))
    assert "gpu::vendor (" not in step and f"the card is {DEVICE}'s" in step


# --- what a process does that others have not prepared ---

BEGIN = """
import os, sys, ctypes
sys.path.insert(0, {folder!r})
import numpy as np
import migraphx
import test_gpu_vendor as t
def loaded():
    return {file!r} in open("/proc/self/maps").read()
"""


def python(code, folder=None, **env):
    full = dict(os.environ, **env)
    if folder:
        full["LD_LIBRARY_PATH"] = str(folder)
    begin = BEGIN.format(folder=os.path.dirname(__file__), file=FILE)
    done = subprocess.run([sys.executable, "-B", "-c", begin + code], env=full, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def bare(tmp_path):
    """A folder of the stand-ins, without the libraries. Real ones that there are find no card of theirs."""
    if not STANDIN:
        pytest.skip("stand-ins only")
    folder = tmp_path / "bare"
    folder.mkdir()
    for path in os.environ["LD_LIBRARY_PATH"].split(":"):
        for name in os.listdir(path):
            if "blas" not in name:
                (folder / name).symlink_to(os.path.realpath(os.path.join(path, name)))
    return folder


def test_nothing_is_opened_unless_asked_for():
    code = "".join(f"t.Product(0).compile({how})\nprint(loaded())\n" for how in ["", "exhaustive_tune=True, gemm_provider='own'", "gemm_provider=t.LIBRARY"])
    assert python(code) == "False\nFalse\nTrue\n"
    assert python("t.Product(0).compile()\nprint(loaded())", MIGRAPHX_SET_GEMM_PROVIDER=LIBRARY) == "True\n"


def test_without_the_library_our_kernel_stays(bare):
    for said in python("for how in [{'gemm_provider': t.LIBRARY}, {'exhaustive_tune': True}]:\n    print(t.step_of(t.Product(0).compile(**how)))", bare).splitlines():
        assert "gpu::product (" in said and TITLE in said


TUNE = """
t.runtime.standin_slow({slow})
b = t.Product(0)
p = b.compile(exhaustive_tune={tune})
y = b.run()
if "gpu::vendor (" in p.explain():
    b.check(y)
print(t.step_of(p), "|", loaded())
"""


def test_the_winner_is_kept(bare, tmp_path):
    cache = str(tmp_path / "cache")
    own = python(TUNE.format(slow=0, tune=True), MIGRAPHX_PROBLEM_CACHE=str(tmp_path / "own"))
    assert "gpu::product (" in own and "gpu::vendor: own gpu::product" in own and f", {LIBRARY} " in own
    assert python(TUNE.format(slow=300, tune=False), MIGRAPHX_PROBLEM_CACHE=str(tmp_path / "own")).endswith("False\n")
    first = python(TUNE.format(slow=300, tune=True), MIGRAPHX_PROBLEM_CACHE=cache)
    assert f"gpu::vendor ({LIBRARY} " in first and "; own gpu::product " in first
    assert f"\t{LIBRARY} " in open(cache).read()
    again = python(TUNE.format(slow=0, tune=False), MIGRAPHX_PROBLEM_CACHE=cache)
    assert f"gpu::vendor ({LIBRARY} " in again and again.endswith("True\n")
    said = f'"{LIBRARY} '
    gone = python(TUNE.format(slow=0, tune=False), bare, MIGRAPHX_PROBLEM_CACHE=cache)
    assert "gpu::product (" in gone and f"gpu::vendor: {said}" in gone and TITLE in gone
    newer = python(TUNE.format(slow=0, tune=False), MIGRAPHX_PROBLEM_CACHE=cache, STANDIN_VENDOR_VERSION="990000")
    assert "gpu::product (" in newer and "which was chosen before, is not offered here" in newer


SAVE = """
t.runtime.standin_slow(300)
for how in [{'exhaustive_tune': True}, {'gemm_provider': t.LIBRARY}]:
    p = t.Product(0).compile(**how)
    migraphx.save(p, os.environ["FOLDER"] + "/" + "".join(how))
    print(t.step_of(p))
"""
LOAD = """
for how in ["exhaustive_tune", "gemm_provider"]:
    print(t.step_of(migraphx.load(os.environ["FOLDER"] + "/" + how)))
"""


def test_a_saved_program_names_the_library(bare, tmp_path):
    folder = str(tmp_path)
    saved = python(SAVE, FOLDER=folder).splitlines() + python(LOAD, FOLDER=folder).splitlines()
    assert len(saved) == 4 and all(f"gpu::vendor ({LIBRARY} " in line for line in saved), saved
    tuned, named = python(LOAD, bare, FOLDER=folder).splitlines()
    assert "gpu::product (" in tuned and f'gpu::vendor: "{LIBRARY} ' in tuned and TITLE in tuned
    assert "gpu::product (" in named and f"gpu::vendor: {TITLE}" in named


def test_every_call_may_fail():
    if not STANDIN:
        pytest.skip("stand-ins only")
    code = """
library = ctypes.CDLL({so!r})
for call in {calls}:
    library.standin_vendor_fail(call.encode(), 0)
    step = t.step_of(t.Product(0).compile(gemm_provider=t.LIBRARY))
    assert "gpu::product (" in step and {title!r} in step, call + ": " + step
    library.standin_vendor_fail(b"", 0)
    assert "gpu::vendor (" in t.step_of(t.Product(0).compile(gemm_provider=t.LIBRARY)), call
b = t.Product(0)
b.compile(gemm_provider=t.LIBRARY)
library.standin_vendor_fail({run!r}.encode(), 0)
for _ in range(2):
    try:
        b.run()
        assert False, "the run did not fail"
    except RuntimeError as e:
        assert {title!r} in str(e), e
library.standin_vendor_fail(b"", 0)
b.check(b.run())
"""
    so, title, run, calls = {
        "cublaslt": ("libcublasLt.so.13", "cuBLASLt", "cublasLtMatmul", ["cublasLtCreate", "cublasLtMatmulDescInit_internal", "cublasLtMatrixLayoutInit_internal", "cublasLtMatmulPreferenceInit_internal", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"]),
        "hipblaslt": ("libhipblaslt.so.1", "hipBLASLt", "hipblasLtMatmul", ["hipblasLtCreate", "hipblasLtMatmulDescCreate", "hipblasLtMatrixLayoutCreate", "hipblasLtMatmulPreferenceCreate", "hipblasLtMatmulAlgoGetHeuristic", "hipblasLtMatmul"]),
        "rocblas": ("librocblas.so.5", "rocBLAS", "rocblas_gemm_strided_batched_ex", ["rocblas_create_handle", "rocblas_set_stream", "rocblas_set_workspace", "rocblas_gemm_strided_batched_ex"]),
    }[LIBRARY]
    python(code.format(so=so, title=title, run=run, calls=calls))


def test_no_algorithm_for_the_product():
    if not STANDIN or LIBRARY == "rocblas":
        pytest.skip("stand-ins only, and rocBLAS takes any product")
    said = python("print(t.step_of(t.Product(0).compile(gemm_provider=t.LIBRARY)))", STANDIN_NO_ALGORITHM="1")
    assert "gpu::product (" in said and f"{TITLE} has no algorithm for this product" in said
