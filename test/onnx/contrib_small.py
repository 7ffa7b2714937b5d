# SPDX-License-Identifier: MIT
"""Cases of small operators of com.microsoft, and of ONNX before 1.0, for make_contrib.py."""
import numpy as np

GROUPS = []


def group(function):
    GROUPS.append(function)
    return function


@group
def movements(c):
    for axis in (-2, 0, 2):
        c.case(f"expand_dims_{axis % 3}", "ExpandDims", [c.rand(2, 3), np.array(axis, np.int32)], constants=(1,))
    c.case("expand_dims_late", "ExpandDims", [c.rand(2, 3), np.array([1], np.int32)])
    c.case("sample", "SampleOp", [c.rand(2, 3)])
    c.case("unfold_last", "UnfoldTensor", [c.rand(2, 7)], size=3, step=2)
    c.case("unfold_first", "UnfoldTensor", [c.rand(5, 2, 3)], size=2, dim=0)
    x, old = c.rand(2, 3, 5, 6), {"domain": ":9"}
    c.case("affine", "Affine", [x], alpha=2.0, beta=-0.5, expect=[x * 2 - np.float32(0.5)], **old)
    c.case("scale", "Scale", [x], scale=0.5, expect=[x * np.float32(0.5)], **old)
    c.case("crop", "Crop", [x], border=[1, 0, 2, 1], expect=[x[:, :, 0:4, 1:4]], **old)
    c.case("crop_scale", "Crop", [x], border=[1, 2, 0, 0], scale=[2, 3], expect=[x[:, :, 2:4, 1:4]], **old)
    c.case("dynamic_slice", "DynamicSlice", [x, np.array([1, -4], np.int64), np.array([9, 5], np.int64),
                                             np.array([1, 3], np.int64)], expect=[x[:, 1:, :, 2:5]], **old)
    y = c.ints(0, 256, 2, 6, 7, 3, dtype=np.uint8)
    for name, more in {"": {}, "_pads": {"pads": [1, 0, 1, 1], "strides": [2, 1]}, "_dilated": {"dilations": [2, 2]},
                       "_same": {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, "_ceil": {"ceil_mode": 1, "strides": [2, 2]}}.items():
        c.case("nhwc_max_pool" + name, "NhwcMaxPool", [y], kernel_shape=[3, 2], **more)
    c.case("nhwc_max_pool_line", "NhwcMaxPool", [c.ints(-128, 128, 2, 9, 3, dtype=np.int8)], kernel_shape=[3])


@group
def products(c):
    for metric in ("euclidean", "sqeuclidean"):
        c.case(f"cdist_{metric}", "CDist", [c.rand(5, 3), c.rand(4, 3)], metric=metric)
    wide = [c.ints(-3000, 3000, 2, 3, 4, dtype=np.int16), c.ints(-3000, 3000, 4, 5, dtype=np.int16)]
    c.case("matmul_integer16", "MatMulInteger16", wide)
    a, b = c.rand(4, 3), c.rand(4, 5)
    c.case("sparse_to_dense", "SparseToDenseMatMul", [a, b], transA=1, alpha=0.5, expect=[0.5 * a.T @ b])


@group
def bytes_and_tables(c):
    u8, f = (lambda *s: c.ints(0, 256, *s, dtype=np.uint8)), np.float32
    choice = c.ints(0, 2, 2, 3, 4).astype(bool)
    c.case("qlinear_where", "QLinearWhere", [choice, u8(3, 4), f(0.05), np.uint8(100), u8(2, 1, 4), f(0.03), np.uint8(130),
                                             f(0.1), np.uint8(90)], tolerance="0 1.001", constants=(2, 3, 5, 6, 7, 8))
    ids, segments = c.ints(0, 11, 2, 5), c.ints(0, 2, 2, 5)
    tables = [u8(11, 8), u8(6, 8), u8(2, 8), u8(8), u8(8)]
    scales, zeros = [f(0.01), f(0.02), f(0.03), f(0.01), f(0.02)], [np.uint8(v) for v in (120, 130, 125, 90, 110)]
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    held = tuple(i for i in range(2, 18) if i != 7)
    c.case("embed_bytes", "QEmbedLayerNormalization", [ids, segments, *tables, mask, *scales, *zeros], outputs=2,
           constants=held)
    for parts in (tables, scales, zeros):
        parts[2] = None
    c.case("embed_bytes_no_segment", "QEmbedLayerNormalization", [ids, None, *tables, None, *scales, *zeros], outputs=2,
           constants=tuple(i for i in held if i not in (4, 10, 15)))


@group
def regions(c):
    x = c.rand(2, 3, 5, 6)
    boxes = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 1.3], [0.8, 0.9, 0.15, 0.05], [0.33, 0.2, 0.33, 0.6]], np.float32)
    which = np.array([0, 1, 1, 0], np.int32)
    for mode in ("bilinear", "nearest"):
        for size in ((4, 3), (1, 5), (7, 1)):
            c.case(f"crop_resize_{mode}_{size[0]}", "CropAndResize", [x, boxes, which, np.array(size, np.int32)],
                   constants=(3,), mode=mode, extrapolation_value=2.5)
    ids = np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4]], np.int64)
    for size in (2, 3, 4):
        c.case(f"ngram_repeat_{size}", "NGramRepeatBlock", [ids, c.rand(2, 6)], ngram_size=size)


@group
def taken_over(c):
    """Operators that the standard has since."""
    c.case("ms_trilu", "Trilu", [c.rand(2, 3, 4)], upper=0)
    c.case("ms_trilu_k", "Trilu", [c.rand(3, 4), np.array(-1, np.int64)], constants=(1,))
    c.case("ms_unique", "Unique", [np.array([3, 1, 3, 2, 1], np.float32)], outputs=3)
    for mode in ("bilinear", "nearest", "bicubic"):
        c.case(f"ms_grid_{mode}", "GridSample", [c.rand(1, 2, 4, 5), c.rand(1, 3, 3, 2)], mode=mode)
    c.case("ms_gather_nd", "GatherND", [c.rand(3, 4, 2), c.ints(0, 3, 5, 2, dtype=np.int64)])
    c.case("ms_range", "Range", [np.float32(1), np.float32(4), np.float32(0.5)], constants=(0, 1, 2))
    c.case("ms_pad", "Pad", [c.rand(3, 4), np.array([1, 0, 0, 2], np.int64), np.array([2.5], np.float32)],
           constants=(1,))
    table, scales = c.ints(0, 256, 7, 16, dtype=np.uint8), c.rand(7, 4)
    places = c.ints(0, 7, 2, 3, dtype=np.int64)
    c.case("gather2_zero", "GatherBlockQuantized", [table, places, scales, c.ints(0, 256, 7, 1, dtype=np.uint8)],
           constants=[0, 2, 3], gather_axis=0, quantize_axis=1, block_size=16, bits=2)
    c.case("gather2_few_zeros", "GatherBlockQuantized",
           [table[:, :4], places, scales[:, :1], c.ints(0, 256, 7, 1, dtype=np.uint8)], constants=[0, 2, 3],
           gather_axis=0, quantize_axis=1, block_size=16, bits=2)


@group
def hashes_and_words(c):
    for name, value in {"int": c.ints(-9, 9, 3), "long": c.ints(-9, 9, 3, dtype=np.int64), "float": c.rand(3),
                        "text": np.array(["", "a", "abcd", "hello"], object)}.items():
        c.case(f"murmur_{name}", "MurmurHash3", [value], seed=42)
        c.case(f"murmur_{name}_signed", "MurmurHash3", [value], positive=0)
    c.case("inverse", "Inverse", [c.rand(2, 3, 3) + 3 * np.eye(3, dtype=np.float32)])
    words = np.array([["Hello World", " ab  cd "], ["", "中文 字"]], object)
    for i, how in enumerate(({"separators": [" "]}, {"separators": [""]}, {"separators": ["o", " +"]}, {"tokenexp": "[a-zA-Z]+"},
                             {"tokenexp": "."}, {"separators": [" "], "mark": 1})):
        c.case(f"tokenizer_{i}", "Tokenizer", [words], mincharnum=1, pad_value="##", **{"mark": 0, **how})
    c.case("tokenizer_long", "Tokenizer", [words[0]], mincharnum=3, pad_value="", mark=1, separators=[" "])
    c.case("tokenizer_none", "Tokenizer", [np.array(["", ""], object)], mincharnum=1, pad_value="#", mark=1, separators=[" "])
