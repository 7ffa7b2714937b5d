#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The gate for what must have a test of its own: every pass and every kind of kernel.

A pass has cases of text (test/pass/<pass>/*.txt), or a test in C that runs it by its name (mgx_pass_<pass>). A kind of kernel
(MGX_KERNEL_KIND) is called by a test of test/targets/cpu: by its own finder (mgx_<kind>_kernel), or through what alone runs
it, which is named here. What has neither is listed and fails.
"""
import glob
import os
import re
import subprocess
import sys

# Kinds that a test reaches through the function that runs nothing else: (a call, the test that makes it).
THROUGH = {
    "attention": "mgx_attention_run(",  # the loop around scores and weighted sums
    "byte_dw": "mgx_conv_run(",  # conv_bytes_test.c has depthwise problems
    "byte_winograd": "mgx_conv_run(",
    "convert": "mgx_convert(",
    "dw": "mgx_conv_run(",
    "gates": "mgx_rnn_run(",
    "linear": "mgx_linear_run(",
    "winograd": "mgx_conv_run(",
}


# Passes whose cases no text can say, and what runs them.
BY_PIPELINE = {"expand": "test/onnx/defer_test.c"}  # text holds no nodes that wait for their inputs


def listed(*patterns):
    return subprocess.run(["git", "ls-files", *patterns], capture_output=True, text=True, check=True).stdout.split()


def text_of(paths):
    return "\n".join(open(path, encoding="utf-8").read() for path in paths if os.path.exists(path))


def passes():
    found = re.findall(r"^const struct mgx_pass mgx_pass_(\w+) =", text_of(listed("src/pass/*.c")), re.M)
    tests = text_of(listed("test/*.c"))
    for name in found:
        cases = glob.glob(f"test/pass/{name}/*.txt")
        if not cases and name not in BY_PIPELINE and not re.search(rf"\bmgx_pass_{name}\b", tests):
            yield f"the pass {name} has no case in test/pass/{name}/ and no test in C"


def kinds():
    tests = text_of(listed("test/targets/cpu/*.c", "test/targets/cpu/*.h"))
    for kind in sorted(set(re.findall(r"^MGX_KERNEL_KIND\((\w+)\)", text_of(listed("src/targets/cpu/kernel/*.h")), re.M))):
        if not re.search(rf"\bmgx_{kind}_kernels?\b", tests) and THROUGH.get(kind, "\0") not in tests:
            yield f"the kernels mgx_{kind}_kernel are called by no test in test/targets/cpu/"


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    bad = [*passes(), *kinds()]
    for line in bad:
        print("tested:", line)
    if not bad:
        print("tested: every pass and every kind of kernel has a test of its own")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
