#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The gate for what must have a test of its own: every pass, every kind of kernel, every function of the C interface, every
operator of TensorFlow and every file of the quantizer.

A pass has cases of text (test/pass/<pass>/*.txt), or a test in C that runs it by its name (mgx_pass_<pass>). A kind of kernel
(MGX_KERNEL_KIND) is called by a test of test/targets/cpu: by its own finder (mgx_<kind>_kernel), or through what alone runs
it, which is named here. A function of the interface is called by a test, or by what has tests of its own: the Python module,
the driver, a host. An operator of TensorFlow stands in a case of test/tf, in a saved model there, or is made by what stands in one. A file of
src/quant has a function that a test calls, or one that is named here does. What has nothing of the kind is listed and fails.
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


# Files of src/quant whose functions no test calls, and what tests them instead: results of whole quantizations.
BY_QUANTIZING = {
    "apply": "mgx_quantize(", "budget": "mgx_quantize(", "capture": "mgx_quantize(", "compare": "migraphx_quantize_compare(",
    "residual": "mgx_quantize(", "site": "mgx_quantize(", "smooth": "mgx_quantize(", "take_bytes": "migraphx_take_bytes(",
    "weights": "mgx_quantize_weights4(",
}
# Operators that a function of TensorFlow makes, as a case calls it; of two names for one rule the other.
MADE_BY = {
    "If": "tf.cond(", "StatelessIf": "tf.cond(", "Case": "tf.switch_case(", "StatelessWhile": "tf.while_loop(", "Bitcast": "tf.bitcast(",
    "Conv3DBackpropInputV2": "tf.nn.conv3d_transpose(", "TensorListGather": "TensorListGetItem", "FusedBatchNormV2": "FusedBatchNormV3",
}
NOT_CALLED = {"migraphx_test_private_disable_exception_catch"}  # of MIGraphX's own tests


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


def functions():
    declared = set(re.findall(r"\b(migraphx_\w+)\(", text_of(listed("include/migraphx/*.h"))))
    callers = text_of(listed("test/*.c", "test/*.h", "test/*.cpp", "include/migraphx/*.hpp", "python/*.c", "driver/*.c", "host/*.c"))
    for name in sorted(declared - NOT_CALLED - set(re.findall(r"\bmigraphx_\w+", callers))):
        yield f"the function {name} is called by no test, nor by the Python module, the driver or a host"


def operators():
    tests = text_of(listed("test/tf/*.py", "test/tf/*.c", "test/tf/*.h"))
    saved = b"".join(open(path, "rb").read() for path in listed("test/tf/saved/*.pb"))
    source = text_of(listed("src/tf/*.c"))
    for name in sorted(set(re.findall(r'\.name = "([A-Z]\w+)"', source) + re.findall(r'^\s*\{"([A-Z]\w+)",', source, re.M))):
        named = re.search(rf"\b{name}\b", tests) or re.search(rb"\b%s\b" % name.encode(), saved)
        if not named and MADE_BY.get(name, "\0") not in tests:
            yield f"the operator {name} of TensorFlow stands in no case of test/tf/ and in no saved model there"


def quantizers():
    tests = text_of(listed("test/*.c", "test/*.h", "test/python/*.py"))
    for path in listed("src/quant/*.c"):
        own = set(re.findall(r"^(?!static)[\w *]+?\b(mgx_\w+)\(", text_of([path]), re.M))
        name = os.path.basename(path)[:-2]
        if not own & set(re.findall(r"\bmgx_\w+", tests)) and BY_QUANTIZING.get(name, "\0") not in tests:
            yield f"no function of {path} is called by a test, and nothing says what tests it"


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    bad = [*passes(), *kinds(), *functions(), *operators(), *quantizers()]
    for line in bad:
        print("tested:", line)
    if not bad:
        print("tested: every pass, kind of kernel, function of the interface, operator of TensorFlow and file of the quantizer has a test")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
