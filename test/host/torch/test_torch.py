# SPDX-License-Identifier: MIT
"""torch.compile with backend "migraphx", where torch and its ONNX exporter are installed."""
import threading
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
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        check(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), (torch.randn(2, 7, 32),), (torch.randn(3, 9, 32),), dynamic=True)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


@pytest.mark.parametrize("how", [{}, {"norm_first": True}, {"activation": "gelu"}])
def test_torchs_own_operator_of_a_layer_is_spelled_out(how):
    check(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, **how), (torch.randn(2, 7, 32),))


@pytest.mark.parametrize("shape", [(3, 6, 8), (2, 3, 6, 8), (2, 3, 4, 6, 8)])
@pytest.mark.parametrize("mask", [False, True])
def test_attention_of_any_rank(shape, mask):
    class Attends(nn.Module):
        def forward(self, x, *more):
            return nn.functional.scaled_dot_product_attention(x, x * 2, x - 1, *more)

    check(Attends(), (torch.randn(shape), *([torch.randn(*shape[:-1], shape[-2])] if mask else [])))


@pytest.mark.parametrize("kind", ["none", "keys", "pairs", "floats"])
@pytest.mark.parametrize("weights", [False, True])
def test_torchs_own_operator_of_attention_is_spelled_out(kind, weights):
    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.MultiheadAttention(32, 4, batch_first=True)

        def forward(self, x, *mask):
            how = {"keys": "key_padding_mask", "pairs": "attn_mask", "floats": "attn_mask"}
            got = self.inner(x, x, x, need_weights=weights, **({how[kind]: mask[0]} if mask else {}))
            return got if weights else got[0]

    masks = {"none": (), "keys": (torch.arange(7)[None] >= torch.tensor([[7], [4]]),), "pairs": (torch.ones(7, 7).triu(1).bool(),),
             "floats": (torch.randn(7, 7),)}
    check(Attends(), (torch.randn(2, 7, 32), *masks[kind]))


def test_a_weight_that_has_the_type_already():
    class Shifts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.randn(3))

        def forward(self, x):
            return x - self.mean.type_as(x)

    check(Shifts(), (torch.randn(2, 3),))


def test_several_results_and_strides():
    class Two(nn.Module):
        def forward(self, x, y):
            return x.t() @ y, (x > 0), y.sum(-1)

    check(Two(), (torch.randn(4, 3), torch.randn(6, 4).t()))


def test_strides_that_change():
    class Multiplies(nn.Module):
        def forward(self, x, y):
            return x @ y

    base = torch.randn(100)
    check(Multiplies(), (torch.randn(4, 6).t(), torch.randn(4, 3)), (base[1:25].view(6, 4), torch.randn(4, 3)), (base[:72].view(6, 12)[:, ::3], torch.randn(4, 3)))


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


@pytest.mark.parametrize("how", ["a parameter", "its data", "a module", "twice"])
def test_weights_that_are_replaced(how):
    """What comes instead has the version and the shape of what it replaces, and may come to lie where that lay."""
    module = nn.Sequential(nn.Linear(3, 2), nn.ReLU()).eval()
    compiled, x = torch.compile(module, backend="migraphx"), torch.randn(4, 3)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), module(x))
        if how == "a parameter":
            module[0].weight = nn.Parameter(torch.randn(2, 3))
        elif how == "a module":
            module[0] = nn.Linear(3, 2)
        else:
            module[0].weight.data = torch.randn(2, 3)
        if how == "twice":
            module[0].weight.data = torch.randn(2, 3)
        torch.testing.assert_close(compiled(x), module(x))
        torch.testing.assert_close(compiled(x), module(x))


def test_weights_that_count_no_changes():
    with torch.inference_mode():
        check(nn.Linear(3, 2), (torch.randn(4, 3),))


@pytest.mark.parametrize("kind", [float, int])
def test_numbers_that_change_are_inputs(kind, monkeypatch):
    """They are constants once, inputs from the second change on: a loop over steps must not be exported at every step."""
    class Steps(nn.Module):
        def forward(self, x, step):
            return torch.sin(x * step) + step

    if kind is int and tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
        pytest.skip("torch.export has no open counts")
    exports, export = [], torch.export.export
    monkeypatch.setattr(torch.export, "export", lambda *args, **how: exports.append(1) or export(*args, **how))
    check(Steps(), *[(torch.randn(3, 4), kind(2 + n) + (0.5 if kind is float else 0)) for n in range(7)])
    assert len(exports) <= 3


def test_a_count_is_a_length_too():
    class Repeats(nn.Module):
        def forward(self, x, count):
            return x.repeat(count, 1), torch.arange(count)

    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
        pytest.skip("torch.export has no open counts")
    check(Repeats(), *[(torch.randn(3, 4), n) for n in (2, 5, 7, 3)])


def test_complex_numbers_stay_torchs():
    class Squares(nn.Module):
        def forward(self, x):
            return (x * x.conj()).real

    class Transforms(nn.Module):
        def forward(self, x):
            return torch.fft.rfft(x)

    with torch.no_grad():
        for module, x in ((Squares(), torch.randn(3, 4, dtype=torch.complex64)), (Transforms(), torch.randn(3, 4))):
            with pytest.warns(UserWarning, match="complex numbers"):
                torch.testing.assert_close(torch.compile(module, backend="migraphx")(x), module(x))


def test_graphs_that_read_nothing_stay_torchs_without_a_word():
    class Counts(nn.Module):
        def forward(self, x):
            y = torch.arange(5) * 2
            torch._dynamo.graph_break()
            return x + y

    check(Counts(), (torch.randn(3, 5),))


def test_threads():
    """One exports while others compile and run."""
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU()).eval()
    compiled, failures = torch.compile(model, backend="migraphx"), []
    inputs = [torch.randn(n + 2, 16) for n in range(6)]

    def work(first):
        try:
            with torch.no_grad():
                for i in range(20):
                    x = inputs[(first + i) % len(inputs)]
                    torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


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


@pytest.mark.parametrize("how", ["computed", "a view of what is computed", "an input", "a view of an input", "a weight", "a piece"])
def test_writes_to_what_is_given_alone_stay_torchs(how):
    class Writes(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", torch.ones(4))

        def forward(self, x):
            y = {"computed": x * 2, "a view of what is computed": (x * 2).t()[1:], "an input": x, "a view of an input": x[1:].view(-1),
                 "a weight": self.b, "a piece": x.split(1)[1]}[how]
            y.relu_()
            return x + self.b

    module, x = Writes(), torch.randn(3, 4)
    compiled, ours, theirs = torch.compile(module, backend="migraphx"), x.clone(), x.clone()
    with torch.no_grad(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        torch.testing.assert_close(compiled(ours), module(theirs))
        torch.testing.assert_close(ours, theirs)
    assert any("in place" in str(w.message) for w in said) == ("computed" not in how)


def test_gradients_are_torchs():
    module = nn.Linear(3, 2)
    y = torch.compile(module, backend="migraphx")(torch.randn(4, 3))
    y.sum().backward()
    assert module.weight.grad is not None


def test_options():
    check(nn.Linear(8, 8), (torch.randn(2, 8),), tolerance=1e-1, options={"fp16": True, "threads": 1})
    with pytest.raises(Exception, match="no option nonsense; it has fp16"):
        torch.compile(nn.Linear(3, 3), backend="migraphx", options={"nonsense": 1})(torch.randn(2, 3))


def test_the_exporter_folds_constants(monkeypatch):
    """Without, pieces of a tensor come as sequences, whose shapes the importer does not know, and what reads them takes half again as long."""
    class Pieces(nn.Module):
        def forward(self, x):
            a, b, c = x.split([2, 3, 3], dim=1)
            return a.sum(1) + (b * c).sum(1)

    exported, export = [], torch.onnx.export
    monkeypatch.setattr(torch.onnx, "export", lambda *args, **how: exported.append(export(*args, **how)) or exported[-1])
    check(Pieces(), (torch.randn(4, 8, 5),))
    model, = exported
    assert not any("Sequence" in node.op_type for node in model.model.graph)
