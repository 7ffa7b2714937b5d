# SPDX-License-Identifier: MIT
"""MatMulNBits with many rows on the CPU, beside what the numbers say: rows as they are, as whole numbers, and as the bytes that
accuracy_level 4 allows, which are made here as well."""
import migraphx
import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h

DEPTH, COLUMNS = 300, 70


def weights(rng, bits, block, zeros):
    """Bytes as files have them, scales, zero points or None, and what they stand for, in double."""
    blocks, per = -(-DEPTH // block), 8 // bits
    q = rng.integers(0, 1 << bits, (COLUMNS, blocks, block), dtype=np.uint8)
    packed = sum(q[:, :, i::per] << i * bits for i in range(per)).astype(np.uint8)
    scale = rng.uniform(0.5, 1.5, (COLUMNS, blocks)).astype(np.float32)
    zero = rng.integers(0, 1 << bits, (COLUMNS, blocks)).astype(np.float32) if zeros else None
    less = 1 << bits - 1 if zero is None else zero[:, :, None]
    return packed, scale, zero, ((q - np.float64(less)) * scale[:, :, None]).reshape(COLUMNS, -1)[:, :DEPTH]


def model(bits, block, level, packed, scale, zero):
    inits = [h.make_tensor("q", T.UINT8, packed.shape, packed.tobytes(), raw=True), h.make_tensor("s", T.FLOAT, [scale.size], scale.ravel())]
    if zero is not None:
        inits.append(h.make_tensor("z", T.FLOAT, [zero.size], zero.ravel()))
    node = h.make_node("MatMulNBits", ["x", "q", "s"] + ["z"] * (zero is not None), ["y"], domain="com.microsoft", K=DEPTH, N=COLUMNS, bits=bits,
                       block_size=block, accuracy_level=level)
    graph = h.make_graph([node], "g", [h.make_tensor_value_info("x", T.FLOAT, ["rows", DEPTH])], [h.make_tensor_value_info("y", T.FLOAT, None)], inits)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 21), h.make_opsetid("com.microsoft", 1)], ir_version=10).SerializeToString()


def as_bytes(x, block):
    """x as whole numbers of 7 bits and a sign, times a factor for every block; the first rounding is that of floats."""
    padded = np.pad(x, ((0, 0), (0, -x.shape[1] % block))).reshape(len(x), -1, block)
    most = np.abs(padded).max(2, keepdims=True)
    whole = np.rint(padded * (np.float32(127) / most)).astype(np.float64)
    return (whole * (most / 127)).reshape(len(x), -1)[:, : x.shape[1]]


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("block", [16, 32, 128, 512])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_rows(bits, block, zeros):
    rng = np.random.default_rng([bits, block, zeros])
    packed, scale, zero, w = weights(rng, bits, block, zeros)
    size = None
    for level in (0, 4):
        p = migraphx.parse_onnx_buffer(model(bits, block, level, packed, scale, zero), dim_params={"rows": migraphx.shape.dynamic_dimension(1, 64)})
        p.compile(migraphx.get_target("cpu"))
        for rows in (1, 4, 5, 8, 13, 64):
            x = rng.standard_normal((rows, DEPTH)).astype(np.float32)
            runs = [np.array(p.run({"x": x})[0]) for _ in range(3)]
            assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2]), rows
            y, exact = runs[0], x @ w.T
            size = np.abs(x.astype(np.float64)) @ np.abs(w).T
            error = np.abs(y - exact).max() / size.max()
            assert error < (2e-2 if level == 4 and rows > 4 else 2e-5), (level, rows, error)
            if error > 2e-5:  # bytes were used: those of the definition
                assert np.abs(y - as_bytes(x, block) @ w.T).max() / size.max() < 1e-6, rows


def test_a_row_that_is_not_finite_stays_what_it_is():
    rng = np.random.default_rng(9)
    packed, scale, zero, w = weights(rng, 4, 32, False)
    p = migraphx.parse_onnx_buffer(model(4, 32, 4, packed, scale, zero), map_input_dims={"x": [9, DEPTH]})
    p.compile(migraphx.get_target("cpu"))
    x = rng.standard_normal((9, DEPTH)).astype(np.float32)
    x[3, 7], x[5, 299] = np.inf, np.nan
    y = np.array(p.run({"x": x})[0])
    assert not np.isfinite(y[3]).any() and np.isnan(y[5]).all()
    good = [0, 1, 2, 4, 6, 7, 8]
    assert np.abs(y[good] - x[good] @ w.T).max() < 2e-4 * np.abs(x[good] @ w.T).max()
