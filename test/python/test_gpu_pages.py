# SPDX-License-Identifier: MIT
"""PagedAttention on a card: drawn sizes against the reference target, caches in place, and no step of the host's."""
from card import needs_card, some  # first: it says which card

import migraphx
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytestmark = needs_card
TYPES = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16}


def draw(case):
    """What a server hands over: texts that share blocks' memory, some of them long, tables with holes behind their ends."""
    rng = np.random.default_rng(case)
    pick = rng.choice
    shared, size, texts = int(pick([1, 2, 3])), int(pick([8, 16, 24, 64])), int(pick([1, 2, 5]))
    heads, block = shared * int(pick([1, 2, 4, 7])), int(pick([1, 4, 16, 32]))
    new = np.ones(texts, int) if case % 2 else rng.integers(0, 40, texts) + (np.arange(texts) == 0)
    past = rng.integers(0, 90, texts)
    pages = int((new + past).max() + block - 1) // block + int(pick([0, 1]))
    blocks = texts * pages + 3
    table = rng.permutation(blocks)[:texts * pages].reshape(texts, pages).astype(np.int32)
    for row, count in zip(table, new + past):
        row[(count + block - 1) // block:] = pick([-1, blocks + 5])
    type_ = np.float32 if case // 2 % 2 else np.float16
    attributes = {"num_heads": heads, "kv_num_heads": shared, "do_rotary": int(pick([0, 1])), "local_window_size": int(pick([-1, -1, 17])),
                  "softcap": float(pick([0.0, 0.0, 5.0])), "is_causal": int(pick([1, 1, 1, 0]))}
    some_of = lambda *shape: rng.standard_normal(shape).astype(type_)
    tokens, room = int(new.sum()), pages * block
    angle = np.outer(np.arange(room), 1e4 ** (-np.arange(size // 2) / (size // 2)))
    turns = attributes["do_rotary"]
    feed = {"q": some_of(tokens, heads * size), "k": some_of(tokens, shared * size), "v": some_of(tokens, shared * size),
            "keys": some_of(blocks, block, shared, size), "values": some_of(blocks, block, shared, size),
            "sums": np.concatenate([[0], np.cumsum(new)]).astype(np.int32), "past": past.astype(np.int32), "table": table,
            "cos": np.cos(angle).astype(type_) if turns else None, "sin": np.sin(angle).astype(type_) if turns else None,
            "slots": None, "sink": some_of(heads) if rng.random() < 0.3 else None}
    return feed, attributes, type_


def model(feed, attributes, type_):
    fixed = ("cos", "sin", "sink")
    names = [n if x is not None else "" for n, x in feed.items()]
    while not names[-1]:
        names.pop()
    values = [helper.make_tensor_value_info(n, TYPES[type_] if x.dtype == type_ else TensorProto.INT32, x.shape)
              for n, x in feed.items() if x is not None and n not in fixed]
    out = [helper.make_tensor_value_info(n, TYPES[type_], feed[like].shape) for n, like in (("y", "q"), ("new_keys", "keys"), ("new_values", "values"))]
    node = helper.make_node("PagedAttention", names, ["y", "new_keys", "new_values"], domain="com.microsoft", **attributes)
    constants = [numpy_helper.from_array(feed[n], n) for n in fixed if feed[n] is not None]
    graph = helper.make_graph([node], "pages", values, out, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8).SerializeToString()


def compiled(data, target, **how):
    p = migraphx.parse_onnx_buffer(data)
    p.compile(migraphx.get_target(target), **how)
    return p


@pytest.mark.parametrize("case", some(range(12)))
def test_pages(case):
    feed, attributes, type_ = draw(case)
    data = model(feed, attributes, type_)
    p = compiled(data, "gpu", offload_copy=False)
    assert "(reference)" not in p.explain() and " ref " not in p.explain()
    given = {n: feed[n] for n in p.get_parameter_names() if "#output_" not in n}
    wanted = [np.array(x) for x in compiled(data, "ref").run(given)]
    args = {n: migraphx.to_gpu(x) for n, x in given.items()}
    shapes = p.get_parameter_shapes()
    args["main:#output_0"] = migraphx.allocate_gpu(shapes["main:#output_0"])
    args["main:#output_1"], args["main:#output_2"] = args["keys"], args["values"]  # in place
    for _ in range(3):  # step by step in a debug build, then recorded, then played
        p.run(args)
        got = [np.array(migraphx.from_gpu(args[f"main:#output_{i}"])).astype(np.float64) for i in range(3)]
        near = 4e-2 if type_ == np.float16 else 2e-4
        for x, y in zip(got, wanted):
            np.testing.assert_allclose(x, y.astype(np.float64), near, near)
    apart = [migraphx.allocate_gpu(shapes[f"main:#output_{i}"]) for i in range(3)]
    args["keys"], args["values"] = migraphx.to_gpu(feed["keys"]), migraphx.to_gpu(feed["values"])
    args.update({f"main:#output_{i}": x for i, x in enumerate(apart)})
    p.run(args)  # caches that are copied
    for x, y in zip(apart, got):
        np.testing.assert_array_equal(np.array(migraphx.from_gpu(x)).astype(np.float64), y)
