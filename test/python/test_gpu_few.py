# SPDX-License-Identifier: MIT
"""Products of 16 rows at most by constant weights on a card, of floats and of numbers of 2, 4 and 8 bits with scales, against numpy's double.

The card is MGX_TEST_DEVICE, else whatever OpenCL has; without one the tests are skipped. MGX_CASES says how many of each.
"""
import os

import card  # first: it says which card
import migraphx
import numpy as np
import pytest
from test_gpu_matrix import Builder, rounded, tail

onnx = pytest.importorskip("onnx")
P = onnx.TensorProto
pytestmark = card.needs_card
CASES = int(os.environ.get("MGX_CASES", "1"))
SEED = int(os.environ.get("MGX_SEED", "1"))
KINDS = ["half_type", "bf16_type", "float_type"]
# Rounding of a result and of a tail's constants, relative to its size.
LIMIT = {"half_type": 1e-3, "bf16_type": 8e-3, "float_type": 1e-6}


def draw(rng):
    """Batch entries, rows, columns, depth: small ones, such as no tile divides, and some larger than a round of the kernel."""
    batch = [[], [1], [2], [1, 3], [4, 1]][rng.integers(5)]
    rows = int(rng.integers(1, 16 // max(1, int(np.prod(batch))) + 1))
    depth = int(rng.choice([8 * rng.integers(1, 400), rng.integers(1, 300), 64 * rng.integers(1, 40), 9216]))
    columns = int(rng.choice([rng.integers(1, 300), 8 * rng.integers(1, 200), 1, 2500]))
    return batch, rows, columns, depth


def is_few(program):
    return "gpu::few" in program.explain()


@pytest.mark.parametrize("case", range(3 * CASES))
def test_floats(case):
    rng = np.random.default_rng([SEED, 1, case])
    kind = KINDS[case % 3]
    b = Builder(kind)
    batch, rows, columns, depth = draw(rng)
    x, w = rng.standard_normal(batch + [rows, depth]), rng.standard_normal([depth, columns]) / np.sqrt(depth)
    weights = b.op("transpose", [b.constant(w.T.copy())], permutation=[1, 0]) if rng.integers(2) else b.constant(w)
    if batch:
        weights = b.op("multibroadcast", [weights], out_lens=batch + [depth, columns])
    y = b.op("dot", [b.param(x), weights])
    want = rounded(x, kind).astype(np.float64) @ rounded(w, kind)
    y, want = tail(b, rng, y, want, columns, len(batch) + 1)
    got = b.run(y)
    error = np.sqrt(np.mean((got - want) ** 2) / max(np.mean(want**2), 1e-30))
    assert is_few(b.program), b.program.explain()
    assert error < LIMIT[kind], f"{kind} {batch} {rows} x {depth} x {columns}: relative error {error:.2e}"


def packed(q, bits):
    """Numbers {..., n} as bytes {..., n * bits / 8}, low bits first."""
    per = 8 // bits
    parts = q.reshape(q.shape[:-1] + (-1, per)).astype(np.uint16)
    return sum(parts[..., i] << (bits * i) for i in range(per)).astype(np.uint8)


TYPES = {"half_type": (P.FLOAT16, np.float16), "float_type": (P.FLOAT, np.float32)}


def nbits(rng, kind, rows, columns, depth, bits, block, zeros):
    """A model of one MatMulNBits with a bias, what comes in, and what is to come out, in double."""
    code, numpy_type = TYPES[kind]
    blocks = -(-depth // block)
    q = rng.integers(0, 1 << bits, (columns, blocks, block))
    scale = rng.uniform(0.5, 1.5, (columns, blocks)).astype(numpy_type) / np.float32(np.sqrt(depth) * (1 << (bits - 1)))
    scale = scale.astype(numpy_type)
    x, bias = (rng.standard_normal(shape).astype(numpy_type) for shape in ((rows, depth), (columns,)))
    init = [onnx.numpy_helper.from_array(packed(q, bits), "q"), onnx.numpy_helper.from_array(scale.reshape(-1), "s"), onnx.numpy_helper.from_array(bias, "b")]
    zero = np.full((columns, blocks), float(1 << (bits - 1)))
    if zeros == "packed":
        whole = -(-blocks * bits // 8) * 8 // bits
        points = rng.integers(0, 1 << bits, (columns, whole))
        init.append(onnx.numpy_helper.from_array(packed(points, bits).reshape(-1), "z"))
        zero = points[:, :blocks].astype(np.float64)
    elif zeros == "float":
        zero = rng.uniform(0, 1 << bits, (columns, blocks)).astype(numpy_type)
        init.append(onnx.numpy_helper.from_array(zero.reshape(-1), "z"))
        zero = zero.astype(np.float64)
    node = onnx.helper.make_node("MatMulNBits", ["x", "q", "s", "z" if zeros else "", "", "b"], ["y"], domain="com.microsoft", K=depth, N=columns, bits=bits,
                                 block_size=block)
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([node], "m", [value("x", code, [rows, depth])], [value("y", code, [rows, columns])], init)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    w = ((q - zero[..., None]) * scale.astype(np.float64)[..., None]).reshape(columns, -1)[:, :depth]
    return model, x, x.astype(np.float64) @ w.T + bias


@pytest.mark.parametrize("case", range(6 * CASES))
def test_numbers(case):
    rng = np.random.default_rng([SEED, 2, case])
    kind = KINDS[2 * (case % 3 == 2)]
    bits = [4, 8, 4, 2][case % 4]
    _, rows, columns, depth = draw(rng)
    rows, columns, depth = rows if case % 2 else 1, columns + 400, depth + 180  # large enough to stay packed
    block, zeros = int(rng.choice([16, 32, 64, 128, 256])), [None, "packed", "float"][rng.integers(3)]
    model, x, want = nbits(rng, kind, rows, columns, depth, bits, block, zeros)
    program = migraphx.parse_onnx_buffer(model.SerializeToString())
    program.compile(migraphx.get_target("gpu"))
    runs = [np.array(program.run({"x": x})[0]).astype(np.float64) for _ in range(3)]
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])
    error = np.sqrt(np.mean((runs[0] - want) ** 2) / np.mean(want**2))
    assert f"weights of {bits} bits" in program.explain(), program.explain()
    assert error < LIMIT[kind], f"{kind} {rows} x {depth} x {columns}, {bits} bits, blocks of {block}, zeros {zeros}: relative error {error:.2e}"


# Many units of a block, whose sums do not fit at once.
@pytest.mark.parametrize("rows, zeros, block", [(1, None, 32), (3, "packed", 128), (16, None, 64)])
def test_long_units(rows, zeros, block):
    rng = np.random.default_rng([SEED, 7, rows])
    model, x, want = nbits(rng, "half_type", rows, 9 * 1056 + 3, 2500, 8, block, zeros)
    program = migraphx.parse_onnx_buffer(model.SerializeToString())
    program.compile(migraphx.get_target("gpu"))
    runs = [np.array(program.run({"x": x})[0]).astype(np.float64) for _ in range(3)]
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])
    assert np.sqrt(np.mean((runs[0] - want) ** 2) / np.mean(want**2)) < LIMIT["half_type"]


# --- steps around them that are one call ---


class Layer:
    """y = x + (act(n gate) * (n up)) down, n = x normalised by its root mean square; with what it is in double."""

    def __init__(self, rng, kind, rows, width, inner, bits):
        self.rng, self.bits, self.nodes, self.init = rng, bits, [], []
        self.code, self.type = TYPES[kind]
        self.x = (rng.standard_normal((1, rows, width)) * rng.choice([0.01, 1, 200])).astype(self.type)
        gain = self.put("gain", rng.uniform(0.5, 1.5, width).astype(self.type)).astype(np.float64)
        x = self.x.astype(np.float64)
        norm = x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-5) * gain
        self.node("SimplifiedLayerNormalization", ["x", "gain"], "n", epsilon=1e-5)
        gate, up = norm @ self.product("n", "gate", width, inner), norm @ self.product("n", "up", width, inner)
        self.within = {"n": norm, "gate.y": gate}
        act = rng.integers(3)
        if act == 0:  # silu
            self.node("Sigmoid", ["gate.y"], "s"), self.node("Mul", ["gate.y", "s"], "a")
            gate = gate / (1 + np.exp(-gate))
        elif act == 1:
            self.node("Relu", ["gate.y"], "a")
            gate = np.maximum(gate, 0)
        else:
            self.node("Tanh", ["gate.y"], "a")
            gate = np.tanh(gate)
        self.node("Mul", ["a", "up.y"] if rng.integers(2) else ["up.y", "a"], "t")
        self.want = x + (gate * up) @ self.product("t", "down", inner, width)
        self.node("Add", ["x", "down.y"], "y")

    def put(self, name, value):
        self.init.append(onnx.numpy_helper.from_array(value, name))
        return value

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(onnx.helper.make_node(op, inputs, [output], **attributes))

    def product(self, x, name, depth, columns):
        if self.bits == 16:
            w = self.put(name, (self.rng.standard_normal((depth, columns)) / np.sqrt(depth)).astype(self.type))
            self.node("MatMul", [x, name], name + ".y")
            return w.astype(np.float64)
        blocks = -(-depth // 32)
        q = self.rng.integers(0, 1 << self.bits, (columns, blocks, 32))
        scale = (self.rng.uniform(0.5, 1.5, (columns, blocks)) / np.sqrt(depth) / (1 << (self.bits - 2))).astype(self.type)
        self.put(name + ".q", packed(q, self.bits)), self.put(name + ".s", scale.reshape(-1))
        self.node("MatMulNBits", [x, name + ".q", name + ".s"], name + ".y", domain="com.microsoft", K=depth, N=columns, bits=self.bits, block_size=32)
        w = (q - (1 << (self.bits - 1))) * scale.astype(np.float64)[..., None]
        return w.reshape(columns, -1)[:, :depth].T

    def model(self, *outputs):
        """With these results besides."""
        value = onnx.helper.make_tensor_value_info
        shape = list(self.x.shape)
        results = [value("y", self.code, shape)] + [value(name, self.code, list(self.within[name].shape)) for name in outputs]
        graph = onnx.helper.make_graph(self.nodes, "m", [value("x", self.code, shape)], results, self.init)
        return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)], ir_version=8)


@pytest.mark.parametrize("case", range(4 * CASES))
def test_layers(case):
    rng = np.random.default_rng([SEED, 3, case])
    kind, bits = KINDS[2 * (case % 4 == 3)], [16, 4, 16, 8][case % 4]
    rows, width, inner = (int(n) for n in (rng.choice([1, 1, 3, 8, 11, 16]), 8 * rng.integers(24, 90), 16 * rng.integers(20, 80)))
    layer = Layer(rng, kind, rows, width, inner, bits)
    program = migraphx.parse_onnx_buffer(layer.model().SerializeToString())
    program.compile(migraphx.get_target("gpu"))
    assert "one call with the next 2" in program.explain(), program.explain()
    # The result is rounded to x's size, which may be much larger than what is added to it.
    room = np.sqrt(np.mean(layer.want**2) / np.mean((layer.want - layer.x) ** 2))

    def check(got):
        error = np.sqrt(np.mean((got[0] - layer.want) ** 2) / np.mean((layer.want - layer.x) ** 2))
        assert error < LIMIT[kind] * (2 + room), f"{kind} {bits} bits, {rows} x {width}, {inner} inner: relative error {error:.2e}"

    card.repeated(lambda: [np.array(program.run({"x": layer.x})[0]).astype(np.float64)], check)


@pytest.mark.parametrize("case", range(2 * CASES))
def test_layers_seen_within(case):
    """What lies between is a result as well: it is there, and right."""
    rng = np.random.default_rng([SEED, 5, case])
    layer = Layer(rng, "half_type", int(rng.choice([1, 5])), 8 * int(rng.integers(24, 90)), 16 * int(rng.integers(20, 80)), [16, 4][case % 2])
    seen = [["n"], ["gate.y"], ["n", "gate.y"]][rng.integers(3)]
    program = migraphx.parse_onnx_buffer(layer.model(*seen).SerializeToString())
    program.compile(migraphx.get_target("gpu"))
    got = [np.array(r).astype(np.float64) for r in program.run({"x": layer.x})]
    for name, y, want in zip(["y"] + seen, got, [layer.want] + [layer.within[name] for name in seen]):
        error = np.sqrt(np.mean((y - want) ** 2) / np.mean(want**2))
        assert error < 3e-3, f"{name}: relative error {error:.2e}"


# --- weights that come dequantized ---


def dequantized(rng, kind, rows, columns, depth, type_, block):
    """MatMul by the DequantizeLinear of a constant, per column or by blocks of depth."""
    code, numpy_type = TYPES[kind]
    low, high = {"int8": (-128, 128), "uint8": (0, 256), "int4": (-8, 8), "uint4": (0, 16)}[type_]
    blocks = -(-depth // block) if block else 1
    q = rng.integers(low, high, (depth, columns))
    scale = (rng.uniform(0.5, 1.5, (blocks, columns)) / np.sqrt(depth) / high).astype(numpy_type)
    zero = rng.integers(low, high, (blocks, columns))
    where = np.arange(depth) // (block or depth)
    w = (q - zero[where]) * scale.astype(np.float64)[where]
    tensor_type = {"int8": P.INT8, "uint8": P.UINT8, "int4": P.INT4, "uint4": P.UINT4}[type_]
    x = rng.standard_normal((rows, depth)).astype(numpy_type)
    pack = lambda name, value: onnx.helper.make_tensor(name, tensor_type, value.shape, value.reshape(-1).tolist())
    init = [pack("q", q), pack("z", zero if block else zero[0]), onnx.numpy_helper.from_array(scale if block else scale[0], "s")]
    how = {"axis": 0, "block_size": block} if block else {"axis": 1}
    nodes = [onnx.helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], **how), onnx.helper.make_node("MatMul", ["x", "w"], ["y"])]
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(nodes, "m", [value("x", code, [rows, depth])], [value("y", code, [rows, columns])], init)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10), x, x.astype(np.float64) @ w


@pytest.mark.parametrize("case", range(3 * CASES))
def test_dequantized(case):
    rng = np.random.default_rng([SEED, 4, case])
    kind, type_ = KINDS[2 * (case % 2)], ["int8", "uint4", "int4", "uint8"][rng.integers(4)]
    rows, columns, depth = int(rng.integers(1, 17)), int(rng.integers(200, 600)), int(rng.integers(100, 900))
    block = int(rng.choice([0, 16, 32, 64, 128]))
    model, x, want = dequantized(rng, kind, rows, columns, depth, type_, block)
    program = migraphx.parse_onnx_buffer(model.SerializeToString())
    program.compile(migraphx.get_target("gpu"))
    got = np.array(program.run({"x": x})[0]).astype(np.float64)
    error = np.sqrt(np.mean((got - want) ** 2) / np.mean(want**2))
    bits = 8 if "8" in type_ else 4
    if bits * (block or depth) % 8 == 0:  # a block of 4 bits that ends within a byte is made half
        assert f"weights of {bits} bits" in program.explain(), program.explain()
    assert error < LIMIT[kind], f"{kind} {type_} {rows} x {depth} x {columns}, blocks of {block}: relative error {error:.2e}"
