# SPDX-License-Identifier: MIT
"""torch.compile with backend "migraphx", where torch and its ONNX exporter are installed."""
import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
import migraphx.torch  # noqa: E402

nn = torch.nn


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(1)
    yield


def check(module, *inputs, tolerance=1e-4, **how):
    """Right for all inputs, and by the engine: nothing is said to run in torch."""
    module = module.eval()
    compiled = torch.compile(module, backend="migraphx", **how)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="migraphx: a graph")
        for x in inputs:
            torch.testing.assert_close(compiled(*x), module(*x), rtol=tolerance, atol=tolerance)
    return compiled


def test_lengths_that_change():
    for how in ({}, {"dynamic": True}):
        torch._dynamo.reset()
        check(nn.Sequential(nn.Linear(3, 4), nn.GELU()), *[(torch.randn(n, 3),) for n in (5, 7, 1, 2)], **how)


def test_images():
    check(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)),
          (torch.randn(2, 3, 16, 16),))


def test_attention():
    torch.backends.mha.set_fastpath_enabled(False)  # one operator of torch's own, which has no ONNX
    check(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), (torch.randn(2, 7, 32),), (torch.randn(3, 9, 32),), dynamic=True)


def test_several_results_and_strides():
    class Two(nn.Module):
        def forward(self, x, y):
            return x.t() @ y, (x > 0), y.sum(-1)

    check(Two(), (torch.randn(4, 3), torch.randn(6, 4).t()))


def test_graph_breaks():
    class Breaks(nn.Module):
        def forward(self, x):
            y = torch.relu(x)
            torch._dynamo.graph_break()
            return y * 2

    check(Breaks(), (torch.randn(3, 3),))


def test_weights_that_change():
    module = nn.Linear(3, 2).eval()
    compiled, x = torch.compile(module, backend="migraphx"), torch.randn(4, 3)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), module(x))
        module.weight.mul_(2)
        torch.testing.assert_close(compiled(x), module(x))


def test_what_is_not_taken_runs_in_torch_and_is_named():
    class Odd(nn.Module):
        def forward(self, x):
            return torch.linalg.eigvals(x).real

    compiled, x = torch.compile(Odd(), backend="migraphx"), torch.randn(3, 3)
    with torch.no_grad(), pytest.warns(UserWarning, match="runs in torch: .*linalg_eig"):
        torch.testing.assert_close(compiled(x), Odd()(x))


def test_what_is_written_in_place_stays_torchs():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(1))

        def forward(self, x):
            self.n.add_(1)
            return x + self.n

    module = Counts()
    compiled, x = torch.compile(module, backend="migraphx"), torch.zeros(3)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [float(compiled(x)[0]) for _ in range(3)] == [1, 2, 3]


def test_gradients_are_torchs():
    module = nn.Linear(3, 2)
    y = torch.compile(module, backend="migraphx")(torch.randn(4, 3))
    y.sum().backward()
    assert module.weight.grad is not None


def test_options():
    check(nn.Linear(8, 8), (torch.randn(2, 8),), tolerance=1e-1, options={"fp16": True, "threads": 1})
    with pytest.raises(Exception, match="no option nonsense; it has fp16"):
        torch.compile(nn.Linear(3, 3), backend="migraphx", options={"nonsense": 1})(torch.randn(2, 3))
