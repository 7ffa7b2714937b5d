# SPDX-License-Identifier: MIT
"""Which products stay in 16 bits on a Hopper card, by the model of its time: on a stand-in for one, that computes nothing."""
import os
import re
import subprocess
import sys

import pytest

STANDIN = os.path.join(os.path.dirname(os.environ.get("MGX_EMULATED_HIP", "")), "idle_hopper")
pytestmark = pytest.mark.skipif(not os.path.isdir(STANDIN), reason="no stand-in for a Hopper card was built")

# 40 values are no lines of 16 bytes: of halves they need nothing before their product, of bytes a launch.
PROGRAM = """
import sys
import migraphx
import numpy as np

def has(word):
    return word in sys.argv

p = migraphx.program()
m = p.get_main_module()
x = m.add_parameter("x", migraphx.shape(type="half_type" if has("half") else "float_type", lens=[1024, 40]))
rng = np.random.default_rng(1)

def dot(x, k, n):
    w = m.add_literal((rng.standard_normal((k, n)) / 8).astype(np.float16 if has("half") else np.float32))
    return m.add_instruction(migraphx.op("dot"), [x, w])

if has("ready"):  # lines of bytes, and deep
    x = m.add_parameter("y", migraphx.shape(type="half_type" if has("half") else "float_type", lens=[8192, 1024]))
    first = dot(dot(x, 1024, 4096), 4096, 64)
else:
    first = dot(x, 40, 64)
m.add_return([dot(m.add_instruction(migraphx.op("relu"), [first]), 64, 4096)])
target = migraphx.get_target("cpu" if has("cpu") else "gpu")
if has("reckon"):
    print(migraphx.quantize(p, target, reckon_time=True))
elif has("options"):
    print(migraphx.quantize(p, target))
elif has("fp8"):
    migraphx.quantize_fp8(p, target)
else:
    migraphx.quantize_int8(p, target)
print("kept", migraphx.quantization(p) if "quantization|" in str(p) else "")
if not has("cpu"):
    p.compile(target, offload_copy=True)
    print("explained", p.explain())
"""


def said(*words):
    env = dict(os.environ, MIGRAPHX_GPU_DEVICE="cuda", MIGRAPHX_KERNEL_CACHE="none", LD_LIBRARY_PATH=STANDIN)
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=False, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def types(text):
    return re.findall(r"^instruction \S+ (\w+)_type", text, re.M)


def test_what_bytes_do_not_pay_for_stays():
    """The first product would want a launch of its own for its bytes. It says so and by how much, in the ranges, which quantize_int8
    keeps here too, and behind the plan; and it leaves the other's bytes itself."""
    text = said("half")
    assert types(text) == ["half", "int8"], text
    slower = -float(re.search(r"cost - (-[0-9.]+)", text)[1])
    assert 0.3 < slower < 3 and 'why "it would not be faster"' in text, text
    told = re.search(r"^main:dot:0: not in int8_type, it would not be faster: ([0-9.]+) us slower$", text, re.M)
    assert abs(float(told[1]) - slower) <= 0.051, text
    steps = re.findall(r"^main:@\d+ \w+: (gpu::\w+) .*?-> (\w+)_type", text.split("explained")[1], re.M)
    assert steps == [("gpu::wgmma", "int8"), ("gpu::wgmma", "half")], steps


def test_what_pays_becomes_bytes():
    text = said("half", "ready", "options")
    assert set(types(text)) == {"int8"} and "slower" not in text, text


def test_floats_are_made_bytes_or_halves_by_a_launch_either_way():
    text = said("options")
    assert set(types(text)) == {"int8"}, text


@pytest.mark.parametrize("words", [("half", "reckon"), ("half", "cpu", "options")])
def test_nothing_is_weighed(words):
    """For another machine's card, and on the CPU."""
    text = said(*words)
    assert set(types(text)) == {"int8"} and "slower" not in text, text


def test_fp8():
    """A short product's sums take longer in fp8 than in half; the first one's bytes need no lines."""
    text = said("fp8")
    assert types(text) == ["fp8e4m3fn", "half"], text
    assert re.search(r"main:dot:1: not in fp8e4m3fn_type, it would not be faster: 0\.\d us slower", text), text
