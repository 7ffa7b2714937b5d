# SPDX-License-Identifier: MIT
"""Importing TensorFlow graphs: what test/tf/make.py wrote, and the options of parse_tf."""
import os
import resource
import sys

import migraphx
import numpy as np
import pytest

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tf")
sys.path.insert(0, FOLDER)
import judge  # noqa: E402

CASES = judge.load([os.path.join(FOLDER, "quick.npz")])
OPEN = CASES.pop("open_batch")["graph"].tobytes()


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_results_are_those_of_tensorflow(name, target, tmp_path):
    assert judge.judge(migraphx, CASES[name], target, str(tmp_path)) is None


@pytest.fixture
def open_batch(tmp_path):
    path = tmp_path / "open.pb"
    path.write_bytes(OPEN)
    return str(path)


def lens(path, **options):
    return migraphx.parse_tf(path, **options).get_parameter_shapes()["x"].lens()


def test_inputs_of_rank_4_are_parameters_in_the_other_order(open_batch):
    assert lens(open_batch) == [1, 3, 4, 5]
    assert lens(open_batch, is_nhwc=False) == [1, 4, 5, 3]


def test_open_lengths_are_the_batch(open_batch):
    assert lens(open_batch, batch_size=7) == [7, 3, 4, 5]


def test_sizes_of_inputs_by_name(open_batch):
    assert lens(open_batch, map_input_dims={"x": [2, 3, 4, 5]}) == [2, 3, 4, 5]
    assert lens(open_batch, map_input_dims={"x": [2, 4, 5, 3]}) == [2, 3, 4, 5]  # fits in TensorFlow's order alone
    assert lens(open_batch, is_nhwc=False, map_input_dims={"x": [2, 4, 5, 3]}) == [2, 4, 5, 3]
    assert lens(open_batch, map_input_dims={"x": [2, 3, 9, 8]}) == [2, 3, 9, 8]  # instead of what is declared
    assert lens(open_batch, is_nhwc=False, map_input_dims={"x": [2, 9, 8, 3]}) == [2, 9, 8, 3]
    with pytest.raises(RuntimeError, match="filter has rank 4, the input 2"):
        lens(open_batch, map_input_dims={"x": [2, 3]})


def test_results_by_name(open_batch):
    p = migraphx.parse_tf(open_batch, output_names=["y", "Conv2D:0"])
    assert p.get_output_names() == ["y", "Conv2D:0"] and len(p.get_output_shapes()) == 2
    assert migraphx.parse_tf(open_batch).get_output_names() == ["Identity"]
    with pytest.raises(RuntimeError, match="nobody.*is produced by no node"):
        migraphx.parse_tf(open_batch, output_names=["nobody"])


def test_both_orders_give_the_same_in_their_order(open_batch):
    x = np.random.default_rng(1).uniform(-1, 1, (1, 4, 5, 3)).astype(np.float32)
    results = []
    for nhwc, value in ((True, x.transpose(0, 3, 1, 2)), (False, x)):
        p = migraphx.parse_tf(open_batch, is_nhwc=nhwc)
        p.compile(migraphx.get_target("ref"))
        results.append(np.array(p.run({"x": migraphx.argument(np.ascontiguousarray(value))})[0]))
    assert results[0].shape == (1, 2, 4, 5) and np.array_equal(results[0], results[1].transpose(0, 3, 1, 2))


@pytest.mark.parametrize("name", ["net_blocks", "conv_block", "conv2d_SAME_2", "max_pool2d_SAME_2", "batch_normV3"])
def test_what_lies_channels_last_stays_so(name, tmp_path):
    """A compiled program has no transpose."""
    path = tmp_path / "graph.pb"
    path.write_bytes(CASES[name]["graph"].tobytes())
    p = migraphx.parse_tf(str(path), is_nhwc=True, output_names=[str(k) for k in CASES[name]["outputs"]])
    p.compile(migraphx.get_target("cpu"))
    assert "= transpose[" not in str(p)


def test_operators_are_listed():
    names = migraphx.get_tf_operators()
    assert names == sorted(names) and {"Conv2D", "Relu6", "FusedBatchNormV3"} <= set(names)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "no.pb"
    for data, why in ((b"", "an empty file"), (b"PK\3\4 something", "zip archive.*Keras.*export"), (b"\x89HDF\r\n\x1a\n", "HDF5 file.*export"),
                      (b"\x1c\0\0\0TFL3\0\0\0\0", "TensorFlow Lite"), (b'node {\n  name: "x"\n}\n', "as text"), (OPEN[:-7], "not a TensorFlow graph")):
        path.write_bytes(data)
        with pytest.raises(RuntimeError, match=why):
            migraphx.parse_tf(str(path))


def test_upstreams_operators_are_all_there():
    upstream = """Add AddN AddV2 All ArgMax ArgMin AvgPool BatchMatMul BatchMatMulV2 BiasAdd Cast ConcatV2 Const Conv2D
        DepthwiseConv2dNative ExpandDims FusedBatchNorm FusedBatchNormV3 GatherV2 Identity LessEqual MatMul MaxPool Mean Mul
        OneHot Pack Pad Pow Relu Relu6 Reshape Rsqrt Shape Sigmoid Slice Softmax Split SplitV SquaredDifference Squeeze
        StopGradient StridedSlice Sub Tanh Transpose Placeholder NoOp Assert"""
    assert set(upstream.split()) <= set(migraphx.get_tf_operators())


def test_the_table_of_operators_is_what_the_code_says():
    import subprocess
    subprocess.run([sys.executable, os.path.join(FOLDER, "..", "..", "tool", "tables.py"), "--tf", "--check"], check=True)


# --- SavedModels ---

SAVED = os.path.join(FOLDER, "saved")


@pytest.fixture(scope="module")
def saved():
    with np.load(os.path.join(SAVED, "results.npz")) as data:
        return {key: data[key] for key in data.files}


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_saved_models_give_what_tensorflow_gives(target):
    whys = judge.judge_saved(migraphx, SAVED, target)
    assert len(whys) == 5 and not any(whys.values()), whys


@pytest.mark.parametrize("model", ["v1", "v2"])
@pytest.mark.parametrize("path", ["", "/saved_model.pb"])
def test_a_saved_model_with_its_variables(saved, model, path):
    p = migraphx.parse_tf(os.path.join(SAVED, model) + path, is_nhwc=False)
    given = {k: saved[f"{model}/{k}"] for k in p.get_parameter_names()}
    assert given
    p.compile(migraphx.get_target("cpu"))
    results = p.run({k: migraphx.argument(v) for k, v in given.items()})
    names = p.get_output_names()
    assert names == sorted(k.split("/")[1] for k in saved if k.startswith(model) and k.split("/")[1] not in given)
    for name, y in zip(names, results):
        np.testing.assert_allclose(np.array(y), saved[f"{model}/{name}"], rtol=1e-5, atol=1e-6)


def test_results_of_a_signature_by_name():
    assert migraphx.parse_tf(os.path.join(SAVED, "v2"), output_names=["score"]).get_output_names() == ["score"]


def copy_saved(folder):
    import shutil
    return shutil.copytree(os.path.join(SAVED, "v2"), folder / "model")


@pytest.mark.parametrize("name,at,why", [("variables.index", -1, "not a table"), ("variables.index", 20, "checksum"),
                                         ("variables.data-00000-of-00001", None, "beyond"), ("variables.index", None, "")])
def test_damaged_variables_are_refused(tmp_path, name, at, why):
    path = copy_saved(tmp_path)
    file = os.path.join(path, "variables", name)
    data = bytearray(open(file, "rb").read())
    if at is None:
        data = data[:len(data) // 2]
    else:
        data[at] ^= 255
    open(file, "wb").write(data)
    with pytest.raises(RuntimeError, match=why):
        migraphx.parse_tf(str(path))


def test_missing_variables_are_refused(tmp_path):
    path = copy_saved(tmp_path)
    os.remove(os.path.join(path, "variables", "variables.data-00000-of-00001"))
    with pytest.raises((RuntimeError, FileNotFoundError), match="variables.data-00000-of-00001"):
        migraphx.parse_tf(str(path))


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def table_block(entries):
    """A block of a table of variables and its length: (key shares so many bytes, its own, value) each."""
    data = b"".join(varint(shared) + varint(len(own)) + varint(len(value)) + own + value for shared, own, value in entries)
    data += bytes(4)
    crc = 0xFFFFFFFF
    for byte in data + b"\0":
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return data + b"\0" + masked.to_bytes(4, "little"), len(data)


def test_keys_of_variables_that_share_too_much_are_refused(tmp_path):
    """A key of 20,000 bytes and 5,000 that repeat it: 50 KB of a file that would take 100 MB."""
    path = copy_saved(tmp_path)
    length, count = 20000, 5000
    entries = [(0, b"", b"\x08\x01"), (0, b"k" * length, b"")]
    entries += [(length, bytes([k & 255, k >> 8]), b"") for k in range(count)]
    block, size = table_block(entries)
    index, index_size = table_block([(0, b"z", varint(0) + varint(size))])
    footer = varint(0) * 2 + varint(len(block)) + varint(index_size)
    with open(os.path.join(path, "variables", "variables.index"), "wb") as f:
        f.write(block + index + footer.ljust(40, b"\0") + 0xDB4775248B80FB57.to_bytes(8, "little"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RuntimeError, match="share more"):
        migraphx.parse_tf(str(path))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20000  # KiB


# --- hostile graphs ---

def damaged(graph, r):
    """One to four bytes changed, a piece cut out or doubled."""
    data = bytearray(graph)
    way = r.integers(0, 4)
    if way < 2:
        for _ in range(r.integers(1, 5)):
            data[r.integers(0, len(data))] = r.integers(0, 256)
    else:
        start = int(r.integers(0, len(data)))
        end = start + int(r.integers(1, 40))
        data[start:end] = b"" if way == 2 else data[start:end] * 2
    return bytes(data)


@pytest.mark.parametrize("name", sorted(CASES))
def test_damaged_graphs_import_or_say_why(name, tmp_path):
    r = np.random.default_rng(len(name))
    path = tmp_path / "damaged.pb"
    graph = CASES[name]["graph"].tobytes()
    for _ in range(10):
        path.write_bytes(damaged(graph, r))
        try:
            migraphx.parse_tf(str(path))
        except RuntimeError as error:
            assert str(error)
