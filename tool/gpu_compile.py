#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles the kernels that models make for cards that are not there, and counts what the card is not given.

    gpu_compile.py --build build [--models resnet50 ...] [--zoo DIR] [--texts DIR] [--each N]

Every model of the zoo is compiled by the driver for OpenCL's device (PoCL will do), which leaves the
texts of its kernels in a folder. No step of its plan may be the reference's. Each text then goes through NVRTC for sm_75 to sm_90a and through
hiprtc for gfx906 to gfx1030. A library that is not there is said to be absent; that no kernel was
compiled by any is a failure. --each takes every N-th text.

The libraries: libnvrtc.so.13 or .12 (also of the wheel nvidia-cuda-nvrtc-cu12 in the running Python),
libhiprtc or libamdhip64 with rocm-device-libs. No card is needed.
"""
import argparse
import ctypes
import glob
import os
import struct
import subprocess
import sys

CUDA = ["sm_75", "sm_80", "sm_89", "sm_90a"]
HIP = ["gfx906", "gfx908", "gfx90a", "gfx1030"]
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
        self.library = load(names)

    def call(self, name, *args):
        return getattr(self.library, self.prefix + name)(*args)

    def compile(self, text, arch):
        """None, or what the compiler says."""
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        if self.call("CreateProgram", ctypes.byref(program), text, b"kernel", 0, None, None) != 0:
            return "no program"
        options = (ctypes.c_char_p * 1)(f"{self.option}={arch}".encode())
        status = self.call("CompileProgram", program, 1, options)
        log = None
        if status != 0:
            self.call("GetProgramLogSize", program, ctypes.byref(size))
            room = ctypes.create_string_buffer(max(size.value, 1))
            self.call("GetProgramLog", program, room)
            log = room.value.decode(errors="replace")[:1500] or f"status {status}"
        self.call("DestroyProgram", ctypes.byref(program))
        return log


def compilers():
    wheel = os.path.join(sys.prefix, "lib", "python*", "site-packages", "nvidia", "*", "lib", "libnvrtc.so.1[0-9]")
    nvrtc = Compiler("NVRTC", "nvrtc", ["libnvrtc.so.13", "libnvrtc.so.12", wheel], "--gpu-architecture")
    hiprtc = Compiler("hiprtc", "hiprtc", ["libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libamdhip64.so.5"], "--offload-arch")
    return [(nvrtc, CUDA), (hiprtc, HIP)]


def make_texts(args, folder):
    good = True
    environment = dict(os.environ, MIGRAPHX_GPU_DEVICE="opencl", MIGRAPHX_KERNEL_CACHE=folder)
    driver = os.path.join(args.build, "bin", "migraphx-driver")
    for name in args.models:
        path = os.path.join(args.zoo, name + ".onnx")
        if not os.path.exists(path):
            subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__), "..", "bench", "zoo", "zoo.py"), "make", args.zoo, name], check=True)
        for flags in [], ["--fp16"]:
            done = subprocess.run([driver, "compile", "--gpu", "--explain", path, *flags], env=environment, capture_output=True, text=True)
            steps = [line.split(":", 2)[1] for line in done.stdout.splitlines() if ": ref (" in line]
            print(f"{name} {' '.join(flags)}: {len(steps)} steps of the reference {' '.join(steps)}", flush=True)
            if done.returncode != 0:
                print(done.stdout[-300:] + done.stderr[-300:])
            good = good and done.returncode == 0 and not steps
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--zoo")
    parser.add_argument("--texts", help="a folder of compiled kernels that is there already")
    parser.add_argument("--models", nargs="*", default=["resnet50", "mobilenet_v3_small_dynamo", "minilm_l6", "gru_tagger", "unet", "yolov8n"])
    parser.add_argument("--each", type=int, default=1)
    args = parser.parse_args()
    args.zoo = args.zoo or os.path.join(args.build, "zoo")
    folder = args.texts or os.path.join(os.path.abspath(args.build), "gpu-kernels")
    there = [(c, archs) for c, archs in compilers() if c.library]
    for c, _ in compilers():
        if not c.library:
            print(f"skipped: {c.what} is not installed")
    failed = 0 if args.texts or make_texts(args, folder) else 1
    texts = list(texts_in(folder).items())[::args.each]
    for c, archs in there:
        for arch in archs:
            bad = 0
            for text, name in texts:
                said = c.compile(text, arch)
                if said is not None:
                    bad += 1
                    print(f"{c.what} {arch}: {name}: {said}")
            print(f"{c.what} {arch}: {len(texts) - bad} of {len(texts)} kernels compile", flush=True)
            failed += bad
    return 1 if failed or not texts else 0


if __name__ == "__main__":
    sys.exit(main())
