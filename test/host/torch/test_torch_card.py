# SPDX-License-Identifier: MIT
"""torch.compile with backend "migraphx" for tensors on a card of torch's, where there is one.

Where there is none, a process of its own has an emulated card of AMD's (MGX_EMULATED_HIP names the stand-in's folder), whose memory is
the processor's: there torch's tensors on the processor count as the card's.
"""
import ctypes
import os
import subprocess
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
import migraphx.torch  # noqa: E402

nn = torch.nn
EMULATED = bool(os.environ.get("MGX_EMULATED_ARCH"))
STANDIN = os.environ.get("MGX_EMULATED_HIP", "")
on_card = pytest.mark.skipif(not EMULATED and not torch.cuda.is_available(), reason="torch has no card")
on_true_card = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch has no card")


class EmulatedCard:
    device, index, name = torch.device("cpu"), 0, "hip:0"

    def __init__(self):
        self._stream = ctypes.c_void_p()
        assert ctypes.CDLL("libamdhip64.so.7").hipStreamCreateWithFlags(ctypes.byref(self._stream), 1) == 0

    def stream(self):
        return self._stream.value


if EMULATED:
    emulated = EmulatedCard()
    migraphx.torch._card_of = lambda args: emulated


def test_on_an_emulated_card():
    if EMULATED or torch.cuda.is_available() or not os.path.exists(os.path.join(STANDIN, "libamdhip64.so.7")):
        pytest.skip("torch has a card, or there is no emulated one")
    environment = dict(os.environ, MIGRAPHX_GPU_DEVICE="hip", MGX_EMULATED_ARCH="gfx90a", LD_LIBRARY_PATH=STANDIN,
                       MIGRAPHX_KERNEL_CACHE=os.path.join(STANDIN, "kernels"))
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", os.path.abspath(__file__)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout[-3000:] + done.stderr[-1000:]


def there(x):
    """A tensor or a module on the card."""
    return x if EMULATED else x.cuda()


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(1)
    yield


def check(module, *inputs, tolerance=1e-4, **how):
    """Right for all inputs, by the engine, and on the card without a wait: nothing goes through the processor."""
    module = there(module.eval())
    compiled = torch.compile(module, backend="migraphx", **how)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="migraphx: a graph")
        for x in inputs:
            x = tuple(there(v) for v in x)
            for _ in range(3):
                got = compiled(*x)
                assert got.device == x[0].device
                torch.testing.assert_close(got, module(*x), rtol=tolerance, atol=tolerance)
    return compiled


def images():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))


@on_card
def test_images():
    check(images(), (torch.randn(2, 3, 16, 16),))


@on_card
@pytest.mark.parametrize("dynamic", [None, True])
def test_lengths_that_change(dynamic):
    check(nn.Sequential(nn.Linear(3, 4), nn.GELU()), *[(torch.randn(n, 3),) for n in (5, 7, 1, 2, 7)], dynamic=dynamic)


@on_card
def test_more_lengths_than_programs_are_kept():
    check(nn.Sequential(nn.Linear(3, 4), nn.GELU()), *[(torch.randn(n, 3),) for n in range(2, 24)], dynamic=True)


@on_card
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_attention_in_16_bits(kind):
    check(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).to(kind), (torch.randn(2, 7, 64, dtype=kind),), tolerance=3e-2)


@on_card
def test_strides_and_places():
    class Adds(nn.Module):
        def forward(self, x, y):
            return x @ y

    base = there(torch.randn(100))
    check(Adds(), (there(torch.randn(4, 6)).t(), torch.randn(4, 3)), (base[1:25].view(6, 4), torch.randn(4, 3)))


@on_true_card
def test_streams_of_the_caller():
    model, x = images().eval().cuda(), torch.randn(2, 3, 16, 16).cuda()
    compiled = torch.compile(model, backend="migraphx")
    with torch.no_grad():
        want = model(x)
        compiled(x)
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            y = x
            for _ in range(20):
                y = compiled(x + 0 * y.sum())
        stream.synchronize()
        torch.testing.assert_close(y, want, rtol=1e-4, atol=1e-4)


@on_card
def test_what_has_no_onnx_stays_torchs():
    class Finds(nn.Module):
        def forward(self, x):
            return torch.linalg.eigvalsh(x)

    x = there(torch.eye(3))
    with torch.no_grad(), pytest.warns(UserWarning, match="runs in torch: .*eig"):
        torch.testing.assert_close(torch.compile(Finds(), backend="migraphx")(x), Finds()(x))


@on_true_card
def test_tensors_of_two_devices_stay_torchs():
    class Mixes(nn.Module):
        def forward(self, x, y):
            return x.cpu() + y

    x, y = torch.randn(3).cuda(), torch.randn(3)
    with torch.no_grad(), pytest.warns(UserWarning, match="its tensors lie on cpu, cuda:0"):
        torch.testing.assert_close(torch.compile(Mixes(), backend="migraphx")(x, y), x.cpu() + y)
