#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles the kernels that models make for cards that are not there, and counts what the card is not given.

    gpu_compile.py --build build [--models resnet50 ...] [--zoo DIR] [--texts DIR] [--each N]

Some models of the zoo, and one of what it lacks, are compiled by the driver for OpenCL's device (PoCL will do), which leaves the
texts of its kernels in a folder, and for a stand-in for each of AMD's architectures (build/test/emulated)
and for three of NVIDIA's (build/test/idle_cuda, idle_ada, idle_hopper), whose texts use its matrix units. No step of a plan may be the reference's. OpenCL's texts go through
NVRTC for sm_75 to sm_90a, with those of NVIDIA's stand-ins for their kind, each of AMD's through hiprtc, or, of cards that Debian's does not know, through
clang 18 (gfx950: 20) or newer with HIP's headers; and where an architecture has matrix units, the code of every product
that the plan gives them must hold their instructions, as llvm-objdump shows it. A compiler that is not there is said to be absent; that
no kernel was compiled by any is a failure. --each takes every N-th text.

The compilers: libnvrtc.so.13 or .12 (also of the wheel nvidia-cuda-nvrtc-cu12 in the running Python),
libhiprtc or libamdhip64 with rocm-device-libs, clang-18 or newer with libamdhip64-dev. No card is needed.
"""
import argparse
import ctypes
import glob
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

CUDA = ["sm_75", "sm_80", "sm_89", "sm_90a"]
STANDINS = {"sm_80": "idle_cuda", "sm_89": "idle_ada", "sm_90a": "idle_hopper"}  # cards that NVIDIA's texts are made for
HIP = ["gfx906", "gfx908", "gfx90a", "gfx1030"]  # what Debian's hiprtc knows; it ends the process for others
NEW = ["gfx942", "gfx1100", "gfx1200"]
NEWER = ["gfx950"]  # from clang 20 on
UNITS = b"#define UNITS_MULTIPLY"  # of a text for AMD's matrix units
INSTRUCTION = re.compile(r"\bv_(mfma|wmma)_")
HEAD = struct.Struct("<8sQQQQ")  # magic; sizes of card, text and binary; checksum


def texts_in(folder):
    """The distinct sources of a folder of compiled kernels."""
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.kernel"))):
        with open(path, "rb") as f:
            data = f.read()
        magic, card, text, _, _ = HEAD.unpack_from(data)
        if magic.rstrip(b"\0") == b"MGXKRN1":
            found[data[HEAD.size + card:HEAD.size + card + text]] = os.path.basename(path)
    return found


def load(names):
    for name in names:
        for path in glob.glob(name) if "*" in name else [name]:
            try:
                return ctypes.CDLL(path)
            except OSError:
                continue
    return None


class Compiler:
    def __init__(self, what, prefix, names, option):
        self.what, self.prefix, self.option = what, prefix, option
        self.there = self.library = load(names)

    def call(self, name, *args):
        return getattr(self.library, self.prefix + name)(*args)

    def compile(self, text, arch):
        """What the compiler has against the text, or None; and the code of HIP's as assembly."""
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        if self.call("CreateProgram", ctypes.byref(program), text, b"kernel", 0, None, None) != 0:
            return "no program", ""
        options = (ctypes.c_char_p * 1)(f"{self.option}={arch}".encode())
        status = self.call("CompileProgram", program, 1, options)
        log, code = None, ""
        if status != 0:
            self.call("GetProgramLogSize", program, ctypes.byref(size))
            room = ctypes.create_string_buffer(max(size.value, 1))
            self.call("GetProgramLog", program, room)
            log = room.value.decode(errors="replace")[:1500] or f"status {status}"
        elif UNITS in text:
            self.call("GetCodeSize", program, ctypes.byref(size))
            room = ctypes.create_string_buffer(size.value)
            self.call("GetCode", program, room)
            code = disassembled(room.raw)
        self.call("DestroyProgram", ctypes.byref(program))
        return log, code


def disassembled(code):
    with tempfile.NamedTemporaryFile(suffix=".co") as f:
        f.write(code)
        f.flush()
        return subprocess.run([objdump(), "-d", f.name], capture_output=True, text=True).stdout if objdump() else ""


def objdump():
    return next(filter(None, map(shutil.which, ["llvm-objdump-19", "llvm-objdump-18", "llvm-objdump-15", "llvm-objdump"])), None)


class Clang:
    """clang itself, for cards newer than Debian's hiprtc; device libraries of theirs are not needed for assembly."""

    what = "clang"

    def __init__(self, oldest):
        names = [f"clang-{n}" for n in range(oldest, 24)]
        # What HIP's headers of Debian ask an older clang for.
        self.more = ["-D__AMDGCN_WAVEFRONT_SIZE=64"] if oldest >= 20 else []
        self.there = os.path.exists("/usr/include/hip/hip_runtime.h") and next(filter(None, map(shutil.which, names)), None)

    def compile(self, text, arch):
        command = [self.there, *self.more, "-x", "hip", "--cuda-device-only", f"--offload-arch={arch}", "-nogpulib", "-D__HIP_PLATFORM_AMD__", "-O3", "-S", "-w", "-include", "hip/hip_runtime.h", "-o", "-", "-"]
        done = subprocess.run(command, input=text, capture_output=True)
        return (done.stderr.decode(errors="replace")[:1500] if done.returncode else None), done.stdout.decode(errors="replace")


def compilers():
    wheel = os.path.join(sys.prefix, "lib", "python*", "site-packages", "nvidia", "*", "lib", "libnvrtc.so.1[0-9]")
    nvrtc = Compiler("NVRTC", "nvrtc", ["libnvrtc.so.13", "libnvrtc.so.12", wheel], "--gpu-architecture")
    hiprtc = Compiler("hiprtc", "hiprtc", ["libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libamdhip64.so.5"], "--offload-arch")
    return [(nvrtc, CUDA), (hiprtc, HIP), (Clang(18), NEW), (Clang(20), NEWER)]


def make_kinds(path):
    """A small model of what the zoo has none of: narrow groups, one axis and three, a normalisation of groups."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper, save
    nodes, constants = [], []

    def constant(value):
        constants.append(numpy_helper.from_array(np.asarray(value), f"c{len(constants)}"))
        return constants[-1].name

    def node(kind, inputs, **attributes):
        nodes.append(helper.make_node(kind, inputs, [f"v{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    def weights(*lens):
        return constant(np.random.default_rng(len(constants)).standard_normal(lens).astype(np.float32) / 8)

    image = node("Conv", ["image", weights(128, 3, 3, 3)], pads=[1] * 4)
    image = node("Relu", [node("Conv", [image, weights(128, 4, 3, 3), weights(128)], pads=[1] * 4, group=32)])
    rows = node("Reshape", [image, constant(np.array([0, 32, -1]))])
    rows = node("InstanceNormalization", [rows, constant(np.ones(32, np.float32)), constant(np.zeros(32, np.float32))])
    image = node("Mul", [node("Reshape", [rows, constant(np.array([1, 128, 56, 56]))]), weights(128, 1, 1)])
    image = node("Conv", [image, weights(64, 128, 3, 3)], strides=[2, 2])
    video = node("Relu", [node("Conv", ["video", weights(64, 3, 3, 7, 7)], strides=[1, 2, 2], pads=[1, 3, 3] * 2)])
    video = node("Conv", [video, weights(64, 64, 3, 3, 3), weights(64)], pads=[1] * 6)
    sound = node("Relu", [node("Conv", ["sound", weights(64, 1, 10)], strides=[5])])
    sound = node("Conv", [sound, weights(64, 64, 3), weights(64)], dilations=[2])
    value = lambda name, lens: helper.make_tensor_value_info(name, TensorProto.FLOAT, lens)
    inputs = [value("image", [1, 3, 56, 56]), value("video", [1, 3, 8, 56, 56]), value("sound", [1, 1, 4000])]
    graph = helper.make_graph(nodes, "kinds", inputs, [value(name, None) for name in (image, video, sound)], constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def make_texts(args, folder, card):
    """The kernels of all models for a card, an environment; whether all was well."""
    good = True
    environment = dict(os.environ, MIGRAPHX_KERNEL_CACHE=folder, **card)
    driver = os.path.join(args.build, "bin", "migraphx-driver")
    for name in args.models:
        path = os.path.join(args.zoo, name + ".onnx")
        if name == "kinds":
            os.makedirs(args.zoo, exist_ok=True)
            make_kinds(path)
        elif not os.path.exists(path):
            subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__), "..", "bench", "zoo", "zoo.py"), "make", args.zoo, name], check=True)
        for flags in [], ["--fp16"], ["--int8"], ["--fp8"]:
            done = subprocess.run([driver, "compile", "--gpu", "--explain", path, *flags], env=environment, capture_output=True, text=True)
            steps = [line.split(":", 2)[1] for line in done.stdout.splitlines() if ": ref (" in line]
            print(f"{name} {' '.join(flags)}: {len(steps)} steps of the reference {' '.join(steps)}", flush=True)
            if done.returncode != 0:
                print(done.stdout[-300:] + done.stderr[-300:])
            good = good and done.returncode == 0 and not steps
    return good


def emulated(args, arch):
    """The environment of a stand-in for a card of AMD's; None where it was not built."""
    folder = os.path.abspath(os.path.join(args.build, "test", "emulated"))
    if not os.path.exists(os.path.join(folder, "libamdhip64.so.7")):
        return None
    return {"MIGRAPHX_GPU_DEVICE": "hip", "LD_LIBRARY_PATH": folder, "MGX_EMULATED_ARCH": arch, "MGX_EMULATED_RUN": "0"}


def stand_in(args, arch):
    """The environment of a stand-in for a card of NVIDIA's; None where there is none for the architecture."""
    folder = os.path.abspath(os.path.join(args.build, "test", STANDINS.get(arch, "none")))
    if args.texts or not os.path.exists(os.path.join(folder, "libcuda.so.1")):
        return None
    return {"MIGRAPHX_GPU_DEVICE": "cuda", "LD_LIBRARY_PATH": folder}


def compile_all(compiler, arch, texts):
    """How many of the texts did not compile, or are for matrix units and their code has no such instruction."""
    bad = units = 0
    for text, name in texts:
        said, code = compiler.compile(text, arch)
        wanted = UNITS in text
        if said is None and wanted and code and not INSTRUCTION.search(code):
            said = "no matrix instruction in its code"
        units += said is None and wanted and bool(code)
        bad += said is not None
        if said is not None:
            print(f"{compiler.what} {arch}: {name}: {said}")
    print(f"{compiler.what} {arch}: {len(texts) - bad} of {len(texts)} kernels compile, {units} have matrix instructions", flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--zoo")
    parser.add_argument("--texts", help="a folder of compiled kernels that is there already")
    parser.add_argument("--models", nargs="*", default=["resnet50", "mobilenet_v3_small_dynamo", "minilm_l6", "gru_tagger", "unet", "yolov8n", "kinds"])
    parser.add_argument("--each", type=int, default=1)
    args = parser.parse_args()
    args.zoo = args.zoo or os.path.join(args.build, "zoo")
    folder = args.texts or os.path.join(os.path.abspath(args.build), "gpu-kernels")
    failed = 0 if args.texts or make_texts(args, folder, {"MIGRAPHX_GPU_DEVICE": "opencl"}) else 1
    total = 0
    for compiler, archs in compilers():
        if not compiler.there:
            print(f"skipped: {compiler.what} is not installed")
            continue
        for arch in archs:
            ours = stand_in(args, arch) if archs is CUDA else None if args.texts else emulated(args, arch)
            here = f"{folder}-{STANDINS.get(arch, arch)}" if ours else folder
            failed += 0 if not ours or make_texts(args, here, ours) else 1
            texts = {**(texts_in(folder) if archs is CUDA else {}), **texts_in(here)}
            texts = list(texts.items())[:: args.each]
            total += len(texts)
            failed += compile_all(compiler, arch, texts)
    return 1 if failed or not total else 0


if __name__ == "__main__":
    sys.exit(main())
