# SPDX-License-Identifier: MIT
"""opencl.py FOLDER | --found: what the environment of the tests needs for OpenCL, as NAME=VALUE words for env.

The tests of the GPU target run on OpenCL. A machine with a loader (libOpenCL.so.1) has what they need. (--found: exits with 0 there.) Elsewhere the loader and PoCL, OpenCL on the processor, come from two wheels of the tests' environment (tool/opencl.txt):
FOLDER gets a link of the name that the engine opens. Where there are no such wheels either, standard error has one
sentence, and those tests say that they are skipped.

PoCL compiles without optimisation: a test's kernels run for milliseconds, and to optimise them takes seconds, two thirds of all the time that
these tests take. What is checked is the engine's text, which no other OpenCL compiles by this word.
"""
import ctypes
import glob
import importlib.util
import os
import sys


def has_loader():
    try:
        ctypes.CDLL("libOpenCL.so.1")
    except OSError:
        return False
    return True


def bring(folder):
    spec = importlib.util.find_spec("pyopencl")
    package = os.path.dirname(spec.origin) if spec and spec.origin else ""
    libraries = os.path.join(package, ".libs")
    loaders = glob.glob(os.path.join(libraries, "libOpenCL-*.so*"))
    if not loaders or not glob.glob(os.path.join(libraries, "libpocl*.so*")):
        print("== no OpenCL: neither a loader here nor wheels of it; what needs a card is skipped", file=sys.stderr)
        return []
    os.makedirs(folder, exist_ok=True)
    link = os.path.join(folder, "libOpenCL.so.1")
    if os.path.lexists(link):
        os.unlink(link)
    os.symlink(loaders[0], link)
    path = os.pathsep.join(filter(None, [os.path.abspath(folder), libraries, os.environ.get("LD_LIBRARY_PATH")]))
    return ["LD_LIBRARY_PATH=" + path, "PYOPENCL_HOME=" + package]


if __name__ == "__main__":
    if sys.argv[1] == "--found":
        sys.exit(not has_loader())
    print(" ".join(["POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable", *([] if has_loader() else bring(sys.argv[1]))]))
