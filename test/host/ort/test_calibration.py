# SPDX-License-Identifier: MIT
"""int8 by a calibration table: tables as ONNX Runtime's own writer makes them, TensorRT's, and broken ones."""
import os
import struct
import sys

import numpy as np
import pytest
from onnx import helper

ort = pytest.importorskip("onnxruntime")
quantization = pytest.importorskip("onnxruntime.quantization")
pytest.importorskip("flatbuffers")

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import provider  # noqa: E402
from provider import OWN, F, expect, model_of, placed  # noqa: E402

rng = np.random.default_rng(11)
FILES = ["calibration.flatbuffers", "calibration.json", "calibration.cache"]


@pytest.fixture(scope="module", autouse=True)
def registered():
    provider.register()
    yield


def array(*shape):
    return (rng.standard_normal(shape) * 0.2).astype(np.float32)


def network():
    nodes = [helper.make_node("Conv", ["x", "w1", "b1"], ["c"], pads=[1] * 4), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("Conv", ["r", "w2"], ["d"]), helper.make_node("GlobalAveragePool", ["d"], ["p"]),
             helper.make_node("Flatten", ["p"], ["f"]), helper.make_node("Gemm", ["f", "w3", "b3"], ["g"], transB=1),
             helper.make_node("MatMul", ["g", "w4"], ["y"])]
    return model_of(nodes, [("x", F, ["N", 3, 12, 12])], [("y", F, ["N", 10])],
                    {"w1": array(16, 3, 3, 3), "b1": array(16), "w2": array(8, 16, 3, 3), "w3": array(32, 8), "b3": array(32),
                     "w4": array(32, 10)})


class Samples(quantization.CalibrationDataReader):
    def __init__(self, count=4):
        self.rest = iter([{"x": array(4, 3, 12, 12) * 5} for _ in range(count)])

    def get_next(self):
        return next(self.rest, None)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with the model, and its tables as ONNX Runtime writes them."""
    import onnx
    from onnxruntime.quantization.quant_utils import write_calibration_table
    folder = str(tmp_path_factory.mktemp("tables"))
    path = os.path.join(folder, "model.onnx")
    onnx.save(network(), path)
    calibrator = quantization.create_calibrator(path, augmented_model_path=os.path.join(folder, "more.onnx"), extra_options={"symmetric": True})
    calibrator.collect_data(Samples())
    write_calibration_table(calibrator.compute_data().data, folder)
    return folder


def processor():
    return [d for d in ort.get_ep_devices() if d.ep_name == OWN and d.device.type == ort.OrtHardwareDeviceType.CPU]


def session(model, table, **options):
    return provider.session(model, processor(), {"migraphx_int8_enable": "1", "migraphx_int8_calibration_table_name": table, **options})


def error(got, want):
    return np.linalg.norm(got - want) / np.linalg.norm(want)


@pytest.mark.parametrize("name", FILES)
def test_tables_of_onnx_runtime(tables, name):
    path = os.path.join(tables, "model.onnx")
    s, x = session(path, os.path.join(tables, name)), array(4, 3, 12, 12) * 5
    want, = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    assert set(placed(s)) == {OWN}
    assert 1e-4 < error(s.run(None, {"x": x})[0], want) < 0.03  # in bytes, and near


@pytest.mark.parametrize("native", [False, True])
def test_bytes_are_those_of_the_table(tmp_path, native):
    """A value of the table has one scale, weights have one for each column; what is not in the table stays wide."""
    w, v, x = array(16, 8), array(8, 4), array(5, 16) * 4
    m = model_of([helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("MatMul", ["h", "v"], ["y"])], [("x", F, [5, 16])],
                 [("y", F, [5, 4])], {"w": w, "v": v})
    table = str(tmp_path / "table")
    with open(table, "w") as f:
        f.write("TRT-8001-EntropyCalibration2\nx: %08x\n" % struct.unpack("<I", struct.pack("<f", 1.5 / 127)) if native else "x 1.5\n")
    scale, scales = np.float32(1.5 / 127), np.abs(w).max(0) / np.float32(127)
    want = (np.clip(np.rint(x / scale), -128, 127) * scale) @ (np.rint(w / scales) * scales) @ v
    np.testing.assert_allclose(session(m, table).run(None, {"x": x})[0], want, rtol=1e-4, atol=1e-5)


def test_values_that_begin_at_zero_have_all_steps(tmp_path):
    w, x = array(16, 8), np.abs(array(5, 16))
    m = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", F, [5, 16])], [("y", F, [5, 8])], {"w": w})
    table = str(tmp_path / "table.json")
    with open(table, "w") as f:
        f.write('{"x": {"CLS": "TensorData", "lowest": {"data": [0.0]}, "highest": {"data": 0.5}}}')
    scale, scales = np.float32(0.5 / 255), np.abs(w).max(0) / np.float32(127)
    want = (np.clip(np.rint(x / scale), 0, 255) * scale) @ (np.rint(w / scales) * scales)
    np.testing.assert_allclose(session(m, table).run(None, {"x": x})[0], want, rtol=1e-4, atol=1e-5)


def test_two_products_of_one_value_and_of_one_weight(tmp_path):
    w, x = array(8, 8), array(5, 8)
    m = model_of([helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Gemm", ["x", "w"], ["b"], transB=1),
                  helper.make_node("Add", ["a", "b"], ["y"])], [("x", F, [5, 8])], [("y", F, [5, 8])], {"w": w})
    table = str(tmp_path / "table")
    with open(table, "w") as f:
        f.write(f"x {np.abs(x).max()}\n")
    assert 1e-4 < error(session(m, table).run(None, {"x": x})[0], expect(m, {"x": x})[0]) < 0.03


def refusal(capfd, table):
    """What is said of a table; "" where it is taken. Some versions go on to the host's processor, which the session forbids, and print it."""
    try:
        session(network(), table)
    except Exception as e:
        return str(e) + capfd.readouterr().out
    return ""


def test_broken_tables_are_errors_in_the_hosts_form(tables, tmp_path, capfd):
    table, refused = str(tmp_path / "table"), 0
    chance = np.random.default_rng(1)
    for name in FILES:
        with open(os.path.join(tables, name), "rb") as f:
            good = f.read()
        for i in range(40):
            bad = bytearray(good[:chance.integers(len(good))] if i % 2 else good)
            for at in chance.integers(0, max(len(bad), 1), 3 if bad and not i % 2 else 0):
                bad[at] = chance.integers(256)
            with open(table, "wb") as f:
                f.write(bad)
            said = refusal(capfd, table)
            refused += bool(said)
            assert not said or "calibration table" in said
    assert refused > 40


def test_tables_that_are_not_there(tmp_path, capfd):
    assert "nowhere cannot be read" in refusal(capfd, str(tmp_path / "nowhere"))
    assert "int8_enable needs int8_calibration_table_name" in refusal(capfd, "")
