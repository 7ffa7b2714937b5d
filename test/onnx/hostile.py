#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hostile models as a stranger would write them, through the front door.

    hostile.py [--build build] [--only REGEX] [--targets ref cpu] [--seconds 30] [--keep DIR] [--verbose]

Each case is a file (some with files beside it) that no honest exporter writes. The driver compiles
and runs it on every target, in a process of its own with a limit of time and memory. A case holds
when the driver ends by itself with 0, or with 1 and one line that says why; cases marked REFUSE must
end with 1, cases marked RUN with 0. Groups bear the numbers of the checklist in docs/onnx.md.
Needs numpy and onnx.
"""
import argparse
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

REFUSE, RUN, EITHER = "refuse", "run", "either"
BIG, MIN = 2**63 - 1, -(2**63)
CASES = []  # (group, name, verdict, maker); a maker gets the folder and returns the model's bytes


def case(group, verdict=REFUSE, name=None):
    def add(maker):
        CASES.append((group, name or maker.__name__, verdict, maker))
        return maker
    return add


def row(group, name, verdict, maker):
    CASES.append((group, name, verdict, maker))


# --- building ---

def model(nodes, inputs=(), outputs=("y",), init=(), opset=17, functions=(), extra_opsets=(), sparse=()):
    graph = h.make_graph(
        list(nodes), "g",
        [i if isinstance(i, onnx.ValueInfoProto) else h.make_tensor_value_info(*i) for i in inputs],
        [onnx.ValueInfoProto(name=o) for o in outputs], list(init))
    graph.sparse_initializer.extend(sparse)
    m = h.make_model(graph, opset_imports=[h.make_opsetid("", opset), *[h.make_opsetid(d, 1) for d in extra_opsets]],
                     functions=list(functions))
    m.ir_version = 10
    return m.SerializeToString()


def node(op, ins, outs, **attrs):
    return h.make_node(op, ins.split(",") if ins else [], outs.split(",") if outs else [], **attrs)


def ints(name, values, kind=np.int64):
    return numpy_helper.from_array(np.array(values, kind), name)


def scalar(name, value, kind=np.int64):
    return numpy_helper.from_array(np.array(value, kind), name)


def x_input(*lens, kind=T.FLOAT, name="x"):
    return (name, kind, list(lens))


def varint(v):
    v &= 2**64 - 1
    out = b""
    while v >= 0x80:
        out += bytes([v & 0x7F | 0x80])
        v >>= 7
    return out + bytes([v])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def number(n, value):
    return varint(n << 3) + varint(value)


def small():
    return model([node("LeakyRelu", "x", "a", alpha=0.5), node("Add", "a,w", "y")], [x_input(2, 3)],
                 init=[numpy_helper.from_array(np.arange(3, dtype=np.float32), "w")])


def after_constants(op, init, ins, item, verdict=REFUSE, opset=17, x=None, outs="y", tag="", **attrs):
    """One node over constants and, perhaps, an input."""
    name = op + (f"_{tag}" if tag else "")
    row(item, name, verdict, lambda folder: model([node(op, ins, outs, **attrs)], [x] if x else [], outs.split(","), init, opset))


# --- 1 to 5: container and wire format ---

def raw(group, name, data, verdict=REFUSE):
    row(group, name, verdict, lambda folder: data)


raw(1, "empty", b"")
raw(1, "one_byte", b"\x08")
raw(1, "zeros", b"\0" * 4096)
raw(1, "ones", b"\xff" * 4096)
raw(1, "length_prefix_of_2_gib", b"\x3a\xff\xff\xff\xff\x07" + b"a" * 100)
raw(1, "length_prefix_of_2_pow_63", b"\x3a" + varint(2**63) + b"a" * 100)
raw(1, "length_prefix_of_2_pow_64", b"\x3a" + varint(2**64 - 1) + b"a" * 100)
raw(1, "varint_of_11_bytes", b"\x08" + b"\x80" * 10 + b"\x01" + small())
raw(1, "varint_of_1000_bytes", b"\x08" + b"\x80" * 1000 + b"\x01" + small())
raw(1, "field_number_0", b"\x02\x00" + small())
raw(1, "field_number_2_pow_29", varint(2**29 << 3) + b"\x00" + small(), EITHER)
raw(1, "unknown_field", small() + field(1000, b"x" * 100), RUN)
raw(1, "group", b"\x0b\x08\x01\x0c" + small(), EITHER)
raw(1, "group_never_closed", b"\x0b\x08\x01" + small(), REFUSE)
raw(1, "group_closed_by_another", b"\x0b\x08\x01\x14" + small(), REFUSE)
raw(1, "group_end_alone", b"\x0c" + small())
raw(1, "groups_nested_100000_deep", b"\x0b" * 100000 + b"\x0c" * 100000 + small(), EITHER)
raw(1, "wire_type_6", b"\x0e" + small())
raw(1, "wire_type_7", b"\x0f" + small())
raw(1, "ir_version_as_text", field(1, b"8") + small())
raw(1, "graph_as_number", number(7, 5))
raw(5, "trailing_zeros", small() + b"\0" * 16)
raw(5, "trailing_text", small() + b"hello world")
raw(5, "two_models", small() + small())
raw(5, "text_file", b"ir_version: 8\ngraph { name: \"g\" }\n")
raw(5, "json_file", b'{"irVersion": 8}')
raw(5, "gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + b"K" * 50)
raw(5, "html", b"<!DOCTYPE html><html><body>404 Not Found</body></html>")
raw(5, "lfs_pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 12345\n")
for cut in range(1, len(small())):
    raw(1, f"cut_at_{cut}", small()[:cut], EITHER if cut > 40 else REFUSE)


def nest(depth, attribute=6):
    """graph { node { attribute { graph ... } } }, from the inside out."""
    parts, size = [], 0
    for _ in range(depth):
        for number_, head in ((attribute, number(20, 5)), (5, field(4, b"If")), (1, b"")):
            whole = varint(number_ << 3 | 2) + varint(size)
            parts.append((whole, head))
            size += len(whole) + len(head)
    return b"".join(w for w, _ in reversed(parts)) + b"".join(t for _, t in parts)


raw(2, "graphs_100000_deep", number(1, 8) + field(8, number(2, 17)) + field(7, nest(100000)))
raw(2, "graph_lists_10000_deep", number(1, 8) + field(8, number(2, 17)) + field(7, nest(10000, 11)), EITHER)
raw(2, "types_100000_deep", number(1, 8) + field(8, number(2, 17)) + field(
    7, field(11, field(1, b"x") + field(2, (lambda d: d)(b"".join([])) or b""))))


@case(2, EITHER)
def sequence_types_5000_deep(folder):
    t = field(1, number(1, 1))
    for _ in range(5000):
        t = field(4, field(1, t))
    return number(1, 8) + field(8, number(2, 17)) + field(
        7, field(11, field(1, b"x") + field(2, t)) + field(12, field(1, b"x")))


@case(3, RUN)
def dims_packed_and_not(folder):
    t = field(1, varint(2)) + number(1, 1) + number(2, 1) + field(8, b"w") + field(9, b"\0" * 8)
    return number(1, 8) + field(8, number(2, 17)) + field(7, field(5, t) + field(12, field(1, b"w")))


@case(3, EITHER)
def name_of_a_tensor_given_twice(folder):
    t = number(1, 2) + number(2, 1) + field(8, b"v") + field(8, b"w") + field(9, b"\0" * 8)
    return number(1, 8) + field(8, number(2, 17)) + field(7, field(5, t) + field(12, field(1, b"w")))


for name_, text in {"invalid_utf8": b"\xff\xfe", "overlong": b"\xc0\x80", "surrogate": b"\xed\xa0\x80",
                    "nul": b"a\0b", "64_mib": b"n" * (64 << 20), "1_mib": b"n" * (1 << 20),
                    "newlines": b"a\nb\x1b[31m", "format": b"%s%n%99999d"}.items():
    verdict_ = EITHER if name_ in ("1_mib", "newlines", "format") else REFUSE
    raw(4, f"name_{name_}", number(1, 8) + field(8, number(2, 17)) + field(
        7, field(1, field(1, b"x") + field(2, text) + field(4, b"Neg")) +
        field(1, field(1, text) + field(2, b"y") + field(4, b"Abs")) +
        field(11, field(1, b"x") + field(2, field(1, number(1, 1) + field(2, b"")))) + field(12, field(1, b"y"))), verdict_)
    raw(4, f"op_type_{name_}", number(1, 8) + field(8, number(2, 17)) + field(
        7, field(1, field(1, b"x") + field(2, b"y") + field(4, text)) +
        field(11, field(1, b"x") + field(2, field(1, number(1, 1) + field(2, b"")))) + field(12, field(1, b"y"))))
    raw(4, f"input_{name_}", number(1, 8) + field(8, number(2, 17)) + field(
        7, field(11, field(1, text) + field(2, field(1, number(1, 1) + field(2, b"")))) + field(12, field(1, text))),
        verdict_)


# --- 6 to 9: graph structure ---

F1 = ("x", T.FLOAT, [2])

row(6, "input_is_initialiser_of_another_shape", EITHER, lambda f: model(
    [node("Neg", "x", "y")], [F1], init=[numpy_helper.from_array(np.zeros((5, 5), np.float32), "x")]))
row(6, "two_inputs_of_one_name", REFUSE, lambda f: model([node("Neg", "x", "y")], [F1, F1]))
row(6, "two_initialisers_of_one_name", REFUSE, lambda f: model(
    [node("Neg", "w", "y")], init=[ints("w", [1]), ints("w", [1, 2])]))
row(6, "result_of_two_nodes", REFUSE, lambda f: model([node("Neg", "x", "y"), node("Abs", "x", "y")], [F1]))
row(6, "result_twice_in_one_node", REFUSE, lambda f: model([node("Split", "x", "y,y")], [F1]))
row(6, "result_is_input", REFUSE, lambda f: model([node("Neg", "x", "x")], [F1], ["x"]))
row(6, "missing_producer", REFUSE, lambda f: model([node("Neg", "nowhere", "y")], [F1]))
row(6, "output_that_nothing_makes", REFUSE, lambda f: model([node("Neg", "x", "y")], [F1], ["z"]))
row(6, "self_loop", REFUSE, lambda f: model([node("Add", "x,y", "y")], [F1]))
row(6, "cycle_of_two", REFUSE, lambda f: model([node("Add", "x,b", "a"), node("Neg", "a", "b"), node("Abs", "b", "y")], [F1]))
row(6, "cycle_of_10000", REFUSE, lambda f: model(
    [node("Neg", f"v{i}", f"v{(i + 1) % 10000}") for i in range(10000)], [F1], ["v0"]))
row(6, "no_outputs", EITHER, lambda f: model([node("Neg", "x", "y")], [F1], []))
row(6, "no_nodes", RUN, lambda f: model([], [F1], ["x"]))
row(6, "no_graph", REFUSE, lambda f: number(1, 8) + field(8, number(2, 17)))
row(6, "same_output_1000_times", EITHER, lambda f: model([node("Neg", "x", "y")], [F1], ["y"] * 1000))
row(6, "output_of_another_type", EITHER, lambda f: (lambda m: (
    m.graph.output[0].CopyFrom(h.make_tensor_value_info("y", T.STRING, [7, 7, 7])), m.SerializeToString())[1])(
        onnx.ModelProto.FromString(model([node("Neg", "x", "y")], [F1]))))


def chain(count, op="Neg"):
    return model([node(op, f"v{i}", f"v{i + 1}") for i in range(count)], [("v0", T.FLOAT, [2])], [f"v{count}"])


def raw_chain(count, op, backwards=False):
    nodes = [field(1, field(1, b"v%d" % i) + field(2, b"v%d" % (i + 1)) + field(4, op)) for i in range(count)]
    if backwards:
        nodes.reverse()
    value = field(1, b"v0") + field(2, field(1, number(1, 1) + field(2, field(1, number(1, 2)))))
    return number(1, 8) + field(8, number(2, 17)) + field(
        7, b"".join(nodes) + field(11, value) + field(12, field(1, b"v%d" % count)))


row(7, "chain_of_100000_relu", EITHER, lambda f: raw_chain(100000, b"Relu"))
row(7, "chain_of_20000_softmax", EITHER, lambda f: raw_chain(20000, b"Softmax"))
row(7, "chain_of_1000000_identity", EITHER, lambda f: raw_chain(1000000, b"Identity"))
row(7, "chain_of_1000000_identity_backwards", EITHER, lambda f: raw_chain(1000000, b"Identity", True))
row(7, "a_million_nodes_nobody_reads", EITHER, lambda f: number(1, 8) + field(8, number(2, 17)) + field(
    7, b"".join(field(1, field(1, b"x") + field(2, b"v%d" % i) + field(4, b"Exp")) for i in range(1000000)) +
    field(11, field(1, b"x") + field(2, field(1, number(1, 1) + field(2, field(1, number(1, 2)))))) + field(12, field(1, b"v7"))))
row(7, "node_with_a_million_inputs", EITHER, lambda f: model([node("Concat", ",".join(["x"] * 1000000), "y", axis=0)], [F1]))
row(7, "node_with_100000_outputs", EITHER, lambda f: model(
    [node("Split", "x", ",".join(f"o{i}" for i in range(100000)))], [("x", T.FLOAT, [100000])], ["o5"]))
row(7, "a_million_attributes", REFUSE, lambda f: number(1, 8) + field(8, number(2, 17)) + field(7, field(
    1, field(2, b"y") + field(4, b"Constant") + b"".join(
        field(5, field(1, b"a%d" % i) + number(3, i) + number(20, 2)) for i in range(1000000))) + field(12, field(1, b"y"))))
row(7, "a_million_initialisers", EITHER, lambda f: number(1, 8) + field(8, number(2, 17)) + field(
    7, b"".join(field(5, number(2, 1) + field(8, b"w%d" % i) + field(9, b"\0\0\0\0")) for i in range(1000000)) +
    field(12, field(1, b"w3"))))
row(7, "a_million_inputs", EITHER, lambda f: number(1, 8) + field(8, number(2, 17)) + field(
    7, b"".join(field(11, field(1, b"i%d" % i) + field(2, field(1, number(1, 1) + field(2, b"")))) for i in range(1000000)) +
    field(12, field(1, b"i3"))))
row(7, "a_million_outputs", EITHER, lambda f: number(1, 8) + field(8, number(2, 17)) + field(
    7, field(11, field(1, b"x") + field(2, field(1, number(1, 1) + field(2, b"")))) + field(12, field(1, b"x")) * 1000000))
row(7, "a_million_value_infos", EITHER, lambda f: number(1, 8) + field(8, number(2, 17)) + field(
    7, field(13, field(1, b"q")) * 1000000 + field(11, field(1, b"x") + field(2, field(1, number(1, 1) + field(2, b"")))) +
    field(12, field(1, b"x"))))
row(7, "a_million_opsets", EITHER, lambda f: number(1, 8) + b"".join(
    field(8, field(1, b"d%d" % i) + number(2, 1)) for i in range(1000000)) + small()[2:])
row(7, "a_million_functions", EITHER, lambda f: b"".join(
    field(25, field(1, b"f%d" % i) + field(10, b"d")) for i in range(1000000)) + small())
row(7, "identifiers_that_collide", EITHER, lambda f: model(
    [node("Neg", "x", "a" * i) for i in range(1, 3000)] + [node("Abs", "aaa", "y")], [F1]))


# bodies and functions

def subgraph(nodes, outputs, inputs=(), init=()):
    return h.make_graph(list(nodes), "b", [h.make_tensor_value_info(*i) for i in inputs],
                        [onnx.ValueInfoProto(name=o) for o in outputs], list(init))


def loop_body(nodes, carried, scans=(), cond="cond"):
    return h.make_graph(
        [node("Identity", "c", "cond")] + list(nodes), "b",
        [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("c", T.BOOL, []),
         *[onnx.ValueInfoProto(name=n) for n, _ in carried]],
        [onnx.ValueInfoProto(name=o) for o in (cond, *[o for _, o in carried], *scans)])


def loop_model(trip, body, state="x", outs="y", inputs=(F1,), cond=True, init=()):
    constants = [scalar("c0", cond, bool), *init]
    if trip is not None:
        constants.append(scalar("m", trip))
    return model([node("Loop", f"{'m' if trip is not None else ''},c0,{state}", outs, body=body)], inputs,
                 outs.split(","), constants)


for trip_ in (BIG, 2**62, 2**40, 10**6):
    row(8, f"loop_of_{trip_}", EITHER, lambda f, t=trip_: loop_model(t, loop_body([node("Neg", "s", "t")], [("s", "t")])))
    row(8, f"loop_of_{trip_}_with_scans", EITHER, lambda f, t=trip_: loop_model(
        t, loop_body([node("Neg", "s", "t"), node("Abs", "s", "q")], [("s", "t")], ["q"]), outs="y,z"))
row(8, "loop_of_minus_1", EITHER, lambda f: loop_model(-1, loop_body([node("Neg", "s", "t")], [("s", "t")])))
row(8, "loop_of_min", EITHER, lambda f: loop_model(MIN, loop_body([node("Neg", "s", "t")], [("s", "t")])))
row(8, "loop_without_end", EITHER, lambda f: loop_model(None, loop_body([node("Neg", "s", "t")], [("s", "t")])))
row(8, "loop_that_doubles", EITHER, lambda f: loop_model(200, loop_body([node("Concat", "s,s", "t", axis=0)], [("s", "t")])))
row(8, "loop_that_doubles_rank", EITHER, lambda f: loop_model(200, loop_body([node("Unsqueeze", "s,ax", "t")], [("s", "t")]),
                                                             init=[ints("ax", [0])]))
row(8, "loop_that_changes_type", EITHER, lambda f: loop_model(3, loop_body([node("Cast", "s", "t", to=T.INT64)], [("s", "t")])))
row(8, "loop_body_without_outputs", REFUSE, lambda f: loop_model(3, subgraph([], [])))
row(8, "loop_body_with_too_few_outputs", REFUSE, lambda f: loop_model(
    3, h.make_graph([], "b", [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("c", T.BOOL, []),
                              onnx.ValueInfoProto(name="s")], [onnx.ValueInfoProto(name="c")])))
row(8, "loop_body_with_too_few_inputs", REFUSE, lambda f: loop_model(
    3, h.make_graph([], "b", [h.make_tensor_value_info("i", T.INT64, [])],
                    [onnx.ValueInfoProto(name="i"), onnx.ValueInfoProto(name="i")])))
row(8, "loop_condition_is_float", EITHER, lambda f: loop_model(
    3, loop_body([node("Neg", "s", "t"), node("Cast", "c", "d", to=T.FLOAT)], [("s", "t")], cond="d")))


def nested_loops(depth, trip):
    body = loop_body([node("Neg", "s0", "t0")], [("s0", "t0")])
    for d in range(1, depth):
        inner = node("Loop", f"m,c0,s{d}", f"t{d}", body=body)
        body = loop_body([inner], [(f"s{d}", f"t{d}")])
    return loop_model(trip, body)


row(8, "loops_8_deep_of_1000", EITHER, lambda f: nested_loops(8, 1000))
row(8, "loops_30_deep_of_2", EITHER, lambda f: nested_loops(30, 2))
row(8, "loops_63_deep_of_10", EITHER, lambda f: nested_loops(63, 10))


def nested_ifs(depth, both):
    g = subgraph([node("Neg", "x", "r")], ["r"])
    for d in range(depth):
        other = g if both else subgraph([node("Abs", "x", "r")], ["r"])
        g = subgraph([node("If", "c", "r", then_branch=g, else_branch=other)], ["r"])
    return model(list(g.node), [F1, ("c", T.BOOL, [])], ["r"])


row(8, "ifs_16_deep_in_both_branches", EITHER, lambda f: nested_ifs(16, True))
row(8, "ifs_60_deep", EITHER, lambda f: nested_ifs(60, False))
row(8, "ifs_300_deep", REFUSE, lambda f: nested_ifs(300, False))


def if_model(yes, no, outs="y"):
    return model([node("If", "c", outs, then_branch=yes, else_branch=no)], [F1, ("c", T.BOOL, [])], outs.split(","))


row(8, "branches_of_other_rank", EITHER, lambda f: if_model(
    subgraph([node("Neg", "x", "r")], ["r"]),
    subgraph([node("Reshape", "x,s", "r")], ["r"], init=[ints("s", [1, 2, 1])])))
row(8, "branches_of_other_type", REFUSE, lambda f: if_model(
    subgraph([node("Neg", "x", "r")], ["r"]), subgraph([node("Cast", "x", "r", to=T.INT64)], ["r"])))
row(8, "branches_of_other_count", REFUSE, lambda f: if_model(
    subgraph([node("Neg", "x", "r")], ["r", "r"]), subgraph([node("Neg", "x", "r")], ["r"])))
row(8, "branch_with_inputs", REFUSE, lambda f: if_model(
    subgraph([node("Neg", "q", "r")], ["r"], [("q", T.FLOAT, [2])]), subgraph([node("Neg", "x", "r")], ["r"])))
row(8, "branch_captures_its_own_if", REFUSE, lambda f: if_model(
    subgraph([node("Neg", "y", "r")], ["r"]), subgraph([node("Neg", "x", "r")], ["r"])))
row(8, "if_without_branches", REFUSE, lambda f: model([node("If", "c", "y")], [("c", T.BOOL, [])]))
row(8, "if_on_a_float", REFUSE, lambda f: model([node(
    "If", "x", "y", then_branch=subgraph([node("Neg", "x", "r")], ["r"]),
    else_branch=subgraph([node("Neg", "x", "r")], ["r"]))], [F1]))
for count_ in (0, -1, 7, BIG, MIN):
    row(8, f"scan_of_{count_}_inputs", REFUSE, lambda f, c=count_: model([node(
        "Scan", "x,x", "y,z", num_scan_inputs=c,
        body=subgraph([node("Add", "s,q", "t"), node("Neg", "q", "u")], ["t", "u"],
                      [("s", T.FLOAT, [2]), ("q", T.FLOAT, [2])]))], [F1], ["y", "z"]))
row(8, "scan_of_zero_length", EITHER, lambda f: model([node(
    "Scan", "s0,x", "y,z", num_scan_inputs=1,
    body=subgraph([node("Add", "s,q", "t"), node("Neg", "q", "u")], ["t", "u"],
                  [("s", T.FLOAT, [2]), ("q", T.FLOAT, [2])]))],
    [("x", T.FLOAT, [0, 2]), ("s0", T.FLOAT, [2])], ["y", "z"]))
for axis_ in (BIG, MIN, 5, -5):
    row(8, f"scan_axis_{axis_}", REFUSE, lambda f, a=axis_: model([node(
        "Scan", "s0,x", "y,z", num_scan_inputs=1, scan_input_axes=[a], scan_output_axes=[a],
        body=subgraph([node("Add", "s,q", "t"), node("Neg", "q", "u")], ["t", "u"],
                      [("s", T.FLOAT, [2]), ("q", T.FLOAT, [2])]))],
        [("x", T.FLOAT, [3, 2]), ("s0", T.FLOAT, [2])], ["y", "z"]))
row(8, "scan_direction_odd", REFUSE, lambda f: model([node(
    "Scan", "s0,x", "y,z", num_scan_inputs=1, scan_input_directions=[77],
    body=subgraph([node("Add", "s,q", "t"), node("Neg", "q", "u")], ["t", "u"],
                  [("s", T.FLOAT, [2]), ("q", T.FLOAT, [2])]))],
    [("x", T.FLOAT, [3, 2]), ("s0", T.FLOAT, [2])], ["y", "z"]))
row(8, "sequence_map_bomb", EITHER, lambda f: model(
    [node("SequenceConstruct", ",".join(["x"] * 1000), "s0")] +
    [node("SequenceMap", f"s{i}", f"s{i + 1}", body=subgraph([node("Concat", "q,q", "r", axis=0)], ["r"], [("q", T.FLOAT, None)]))
     for i in range(40)] + [node("SequenceAt", "s40,k", "y")], [F1], init=[scalar("k", 0)]))


def function(name, nodes, ins=("a",), outs=("r",), domain="d", **kw):
    return h.make_function(domain, name, list(ins), list(outs), list(nodes),
                           [h.make_opsetid("", 17), h.make_opsetid("d", 1)], **kw)


def call(name, ins, outs, **attrs):
    return h.make_node(name, ins.split(","), outs.split(","), domain="d", **attrs)


def fmodel(functions, first="f0"):
    return model([call(first, "x", "y")], [F1], functions=functions, extra_opsets=["d"])


row(8, "function_calls_itself", REFUSE, lambda f: fmodel([function("f0", [call("f0", "a", "r")])]))
row(8, "functions_call_each_other", REFUSE, lambda f: fmodel(
    [function("f0", [call("f1", "a", "r")]), function("f1", [call("f0", "a", "r")])]))
row(8, "function_calls_itself_in_a_branch", REFUSE, lambda f: fmodel([function("f0", [
    node("Cast", "a", "c", to=T.BOOL),
    node("If", "c", "r", then_branch=subgraph([call("f0", "a", "q")], ["q"]),
         else_branch=subgraph([node("Neg", "a", "q")], ["q"]))])]))
row(21, "functions_30_levels_of_two_calls", REFUSE, lambda f: fmodel(
    [function(f"f{i}", [call(f"f{i + 1}", "a", "b"), call(f"f{i + 1}", "b", "r")]) for i in range(30)] +
    [function("f30", [node("Neg", "a", "r")])]))
row(21, "functions_18_levels_of_two_calls", EITHER, lambda f: fmodel(
    [function(f"f{i}", [call(f"f{i + 1}", "a", "b"), call(f"f{i + 1}", "b", "r")]) for i in range(18)] +
    [function("f18", [node("Neg", "a", "r")])]))
row(21, "functions_1000_deep", REFUSE, lambda f: fmodel(
    [function(f"f{i}", [call(f"f{i + 1}", "a", "r")]) for i in range(1000)] + [function("f1000", [node("Neg", "a", "r")])]))
row(8, "function_of_other_arity", REFUSE, lambda f: model(
    [call("f0", "x,x,x", "y,z")], [F1], ["y", "z"], functions=[function("f0", [node("Neg", "a", "r")])], extra_opsets=["d"]))
row(8, "function_given_too_little", REFUSE, lambda f: model(
    [call("f0", "x", "y")], [F1], functions=[function("f0", [node("Add", "a,b", "r")], ("a", "b"))], extra_opsets=["d"]))
row(8, "function_result_missing", REFUSE, lambda f: fmodel([function("f0", [node("Neg", "a", "q")])]))
row(8, "function_defined_twice", EITHER, lambda f: fmodel([function("f0", [node("Neg", "a", "r")])] * 2))
row(8, "function_captures_outside", REFUSE, lambda f: fmodel([function("f0", [node("Add", "a,x", "r")])]))
row(8, "function_without_nodes", EITHER, lambda f: fmodel([function("f0", [], ("a",), ("a",))]))
row(8, "attribute_reference_outside_functions", EITHER, lambda f: (lambda n: (
    n.attribute.add(name="alpha", ref_attr_name="alpha", type=1), model([n], [F1]))[1])(node("LeakyRelu", "x", "y")))

for version in (0, -1, MIN, BIG, 10**9, 29, 100):
    row(9, f"opset_{version}", REFUSE, lambda f, v=version: model([node("Neg", "x", "y")], [F1], opset=v))
    row(9, f"ir_version_{version}", EITHER, lambda f, v=version: number(1, v) + model([node("Neg", "x", "y")], [F1])[2:])
row(9, "opset_missing", EITHER, lambda f: (lambda m: (m.ClearField("opset_import"), m.SerializeToString())[1])(
    onnx.ModelProto.FromString(small())))
row(9, "opset_twice", EITHER, lambda f: small() + field(8, number(2, 9)))
row(9, "opset_of_unknown_domain", RUN, lambda f: small() + field(8, field(1, b"com.nobody") + number(2, 9)))
row(9, "unknown_op", REFUSE, lambda f: model([node("Frobnicate", "x", "y")], [F1]))
row(9, "unknown_domain", REFUSE, lambda f: model([h.make_node("Frob", ["x"], ["y"], domain="com.nobody")], [F1]))
row(9, "op_type_empty", REFUSE, lambda f: model([node("", "x", "y")], [F1]))
row(9, "required_input_empty", REFUSE, lambda f: model([node("Add", "x,", "y")], [F1]))
row(9, "trailing_empty_inputs", EITHER, lambda f: model([node("Clip", "x,,,,,", "y")], [F1]))
row(9, "node_without_outputs", EITHER, lambda f: model([node("Neg", "x", ""), node("Abs", "x", "y")], [F1]))
row(9, "node_without_inputs", REFUSE, lambda f: model([node("Neg", "", "y")], [F1]))
row(9, "every_output_empty", EITHER, lambda f: model([node("Split", "x", ",,"), node("Abs", "x", "y")], [F1]))
row(9, "outputs_beyond_the_operator", REFUSE, lambda f: model([node("Neg", "x", "y,z")], [F1], ["y", "z"]))


# --- 10 to 13: tensors ---

def tensor(dims, kind=T.FLOAT, data=b"", field_number=9, name=b"w"):
    t = b"".join(number(1, d) for d in dims) + number(2, kind) + field(8, name)
    if data is not None:
        t += field(field_number, data)
    return number(1, 8) + field(8, number(2, 21)) + field(
        7, field(5, t) + field(1, field(1, b"w") + field(2, b"y") + field(4, b"Identity")) + field(12, field(1, b"y")))


for dims_ in ([-1], [2**31], [2**32 + 1], [2**62], [2**63 - 1], [MIN], [2**32, 2**32], [2**21, 2**21, 2**22],
              [2**33, 2**31], [0, 2**63 - 1, 2**63 - 1], [1] * 1000, [65536] * 4, [2**63 - 1, 2]):
    tag_ = "x".join(map(str, dims_))[:60]
    raw(10, f"dims_{tag_}", tensor(dims_, data=b"\0" * 4), REFUSE)
    raw(10, f"dims_{tag_}_no_data", tensor(dims_, data=None), EITHER)
raw(10, "scalar_with_much_data", tensor([], data=b"\0" * 400))
raw(10, "empty_with_data", tensor([0], data=b"\0" * 4))
for size_ in (0, 1, 7, 9, 12):
    raw(11, f"raw_of_{size_}_for_8", tensor([2], data=b"\0" * size_))
raw(11, "typed_field_of_the_wrong_type", tensor([2], data=struct.pack("<2q", 1, 2), field_number=7))
raw(11, "raw_and_typed", number(1, 8) + field(8, number(2, 17)) + field(7, field(5, number(1, 1) + number(2, 1) + field(
    8, b"w") + field(9, b"\0" * 4) + field(4, b"\0" * 4)) + field(12, field(1, b"w"))))
for kind_ in range(-1, 40):
    raw(11, f"type_{kind_}", tensor([3], kind=kind_, data=b"\0" * 3), EITHER)
    raw(12, f"type_{kind_}_odd_bytes", tensor([5], kind=kind_, data=b"\xff\x7f\x80"), EITHER)
raw(12, "bool_bytes", tensor([4], kind=9, data=b"\0\1\2\xff"), EITHER)
raw(12, "bool_words", tensor([4], kind=9, data=b"\xff\xff\x7f\1\0\2", field_number=5), EITHER)
raw(12, "nan_inf_denormal", tensor([4], data=struct.pack("<4I", 0x7FC00000, 0xFF800000, 1, 0x7F800001)), RUN)
raw(12, "string_tensor_short", number(1, 8) + field(8, number(2, 17)) + field(7, field(5, number(1, 3) + number(
    2, 8) + field(8, b"w") + field(6, b"a")) + field(12, field(1, b"w"))))
row(12, "string_where_numbers_belong", REFUSE, lambda f: model(
    [node("Add", "w,w", "y")], init=[h.make_tensor("w", T.STRING, [2], [b"a", b"b"])]))
row(12, "string_input_bomb", EITHER, lambda f: model([node("StringConcat", "x,x", "v0")] + [
    node("StringConcat", f"v{i},v{i}", f"v{i + 1}") for i in range(40)], [], ["v40"], [
        h.make_tensor("x", T.STRING, [2], [b"a" * 1000, b"b" * 1000])], opset=20))


def sparse_model(dims, indices, values, index_dims=None):
    s = onnx.SparseTensorProto()
    s.values.CopyFrom(numpy_helper.from_array(np.array(values, np.float32), "w"))
    s.indices.CopyFrom(numpy_helper.from_array(np.array(indices, np.int64), ""))
    if index_dims is not None:
        del s.indices.dims[:]
        s.indices.dims.extend(index_dims)
    s.dims.extend(dims)
    return model([node("Identity", "w", "y")], sparse=[s])


row(13, "sparse_index_beyond", REFUSE, lambda f: sparse_model([4], [4], [1]))
row(13, "sparse_index_negative", REFUSE, lambda f: sparse_model([4], [-1], [1]))
row(13, "sparse_index_min", REFUSE, lambda f: sparse_model([4], [MIN], [1]))
row(13, "sparse_unsorted", EITHER, lambda f: sparse_model([4], [3, 1], [1, 2]))
row(13, "sparse_duplicate", EITHER, lambda f: sparse_model([4], [1, 1], [1, 2]))
row(13, "sparse_indices_of_rank_3", REFUSE, lambda f: sparse_model([4], [1, 1], [1, 2], [1, 2, 1]))
row(13, "sparse_pairs_of_the_wrong_width", REFUSE, lambda f: sparse_model([4, 4], [1, 1, 1], [1], [1, 3]))
row(13, "sparse_of_2_pow_50", REFUSE, lambda f: sparse_model([2**50], [1], [1]))
row(13, "sparse_dims_that_wrap", REFUSE, lambda f: sparse_model([2**32, 2**32], [1], [1]))
row(13, "sparse_dims_negative", REFUSE, lambda f: sparse_model([-4], [1], [1]))
row(13, "sparse_more_indices_than_values", REFUSE, lambda f: sparse_model([4], [0, 1, 2], [1]))


# --- 14 and 15: external data ---

def external(entries, dims=(8,), kind=T.FLOAT):
    t = b"".join(number(1, d) for d in dims) + number(2, kind) + field(8, b"w") + number(14, 1)
    for k, v in entries:
        t += field(13, field(1, k.encode()) + field(2, v if isinstance(v, bytes) else v.encode()))
    return number(1, 8) + field(8, number(2, 17)) + field(
        7, field(5, t) + field(1, field(1, b"w") + field(2, b"y") + field(4, b"Neg")) + field(12, field(1, b"y")))


def with_files(entries, prepare=None, **kw):
    def make(folder):
        with open(os.path.join(folder, "data"), "wb") as f:
            f.write(np.arange(8, dtype=np.float32).tobytes())
        os.makedirs(os.path.join(folder, "sub"), exist_ok=True)
        if prepare:
            prepare(folder)
        return external(entries, **kw)
    return make


def secret(folder):
    path = os.path.join(os.path.dirname(folder), "secret")
    with open(path, "wb") as f:
        f.write(b"\0" * 32)
    return path


row(14, "in_order", RUN, with_files([("location", "data")]))
for name_, place in {"parent": "../secret", "twice": "sub/../../secret", "absolute": "/etc/passwd", "proc": "/proc/self/environ",
                     "backslash": "..\\secret", "drive": "C:\\secret", "drive_2": "C:data", "dot": "data.", "space": "data ",
                     "double_slash": "sub//data", "empty": "", "dot_only": ".", "dots": "..", "slash": "/", "case": "DATA",
                     "url": "http://localhost/data", "folder": "sub", "self": "model.onnx/", "long": "a" * 100000,
                     "percent": "%2e%2e/secret", "tilde": "~/secret", "newline": "data\n"}.items():
    row(14, f"location_{name_}", REFUSE, with_files([("location", place)], secret))
row(14, "location_nul", REFUSE, with_files([("location", b"data\0/../../secret")], secret))
row(14, "location_not_utf8", REFUSE, with_files([("location", b"\xff\xfe")]))
row(14, "location_dot_slash", EITHER, with_files([("location", "./data")]))
row(14, "location_own_model", EITHER, with_files([("location", "model.onnx")]))
row(14, "symlink_last", REFUSE, with_files([("location", "link")], lambda d: os.symlink(secret(d), os.path.join(d, "link"))))
row(14, "symlink_inside", RUN, with_files([("location", "link")], lambda d: os.symlink("data", os.path.join(d, "link"))))
row(14, "symlink_middle", REFUSE, with_files([("location", "up/secret")], lambda d: (secret(d), os.symlink("..", os.path.join(d, "up")))))
row(14, "hard_link", RUN, with_files([("location", "hard")], lambda d: os.link(secret(d), os.path.join(d, "hard"))))  # as stores of models do
row(14, "fifo", REFUSE, with_files([("location", "pipe")], lambda d: os.mkfifo(os.path.join(d, "pipe"))))
for name_, more in {"offset_negative": [("offset", "-8")], "offset_beyond": [("offset", "32")], "offset_wraps": [
        ("offset", str(2**64 - 4)), ("length", "32")], "offset_2_pow_63": [("offset", str(2**63))], "offset_text": [("offset", "abc")],
        "length_negative": [("length", "-1")], "length_short": [("length", "16")], "length_long": [("length", "64")],
        "length_wraps": [("length", str(2**64 + 32))], "offset_hex": [("offset", "0x0")], "unknown_key": [("basepath", "/etc")],
        "location_twice": [("location", "data")], "offset_float": [("offset", "0.0")], "offset_plus": [("offset", "+0")]}.items():
    row(15, name_, REFUSE, with_files([("location", "data"), *more]))
row(15, "keys_in_any_order", RUN, with_files([("length", "8"), ("offset", "3"), ("location", "data")], dims=(2,)))
row(15, "no_location", REFUSE, with_files([("offset", "0")]))
row(15, "tensor_of_2_pow_40", REFUSE, with_files([("location", "data")], dims=(2**40,)))


@case(15, EITHER)
def one_file_for_100000_tensors(folder):
    with open(os.path.join(folder, "data"), "wb") as f:
        f.write(b"\0" * 4096)
    parts = []
    for i in range(100000):
        parts.append(field(5, number(1, 2) + number(2, 1) + field(8, b"w%d" % i) + number(14, 1) + field(
            13, field(1, b"location") + field(2, b"data")) + field(13, field(1, b"offset") + field(2, b"%d" % (i % 1000 * 4)))))
    return number(1, 8) + field(8, number(2, 17)) + field(7, b"".join(parts) + field(12, field(1, b"w5")))


@case(15, EITHER)
def a_thousand_files(folder):
    parts = []
    for i in range(1000):
        with open(os.path.join(folder, f"data{i}"), "wb") as f:
            f.write(b"\0" * 8)
        parts.append(field(5, number(1, 2) + number(2, 1) + field(8, b"w%d" % i) + number(14, 1) + field(
            13, field(1, b"location") + field(2, b"data%d" % i))))
    return number(1, 8) + field(8, number(2, 17)) + field(7, b"".join(parts) + field(12, field(1, b"w5")))


# --- 16 to 20: operators ---

X4 = x_input(1, 4, 9, 9)
W = numpy_helper.from_array(np.ones((4, 4, 3, 3), np.float32), "w")
ODD = [0, -1, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, BIG, MIN, -(2**31)]

for v in ODD:
    for op_, ins_, init_ in (("Conv", "x,w", [W]), ("ConvTranspose", "x,w", [W]), ("MaxPool", "x", []),
                             ("AveragePool", "x", []), ("LpPool", "x", [])):
        for attr in ("strides", "dilations", "kernel_shape", "pads", "output_padding", "output_shape"):
            if attr.startswith("output") and op_ != "ConvTranspose" or attr == "dilations" and op_ == "AveragePool":
                continue
            values = [v, v] * (2 if attr == "pads" else 1)
            attrs = {"kernel_shape": [3, 3], attr: values}
            after_constants(op_, init_, ins_, 16, EITHER, x=X4, tag=f"{attr}_{v}", opset=21, **attrs)
            if op_ == "MaxPool" and attr != "kernel_shape":
                after_constants(op_, init_, ins_, 16, EITHER, x=X4, tag=f"{attr}_{v}_ceil", opset=21, ceil_mode=1, **attrs)
    after_constants("Conv", [W], "x,w", 16, REFUSE, x=X4, tag=f"group_{v}", group=v)
    after_constants("ConvTranspose", [W], "x,w", 16, REFUSE, x=X4, tag=f"group_{v}", group=v)
    after_constants("LRN", [], "x", 16, EITHER, x=X4, tag=f"size_{v}", size=v)
    after_constants("DepthToSpace", [], "x", 16, EITHER, x=X4, tag=f"{v}", blocksize=v)
    after_constants("SpaceToDepth", [], "x", 16, EITHER, x=X4, tag=f"{v}", blocksize=v)
    after_constants("Concat", [], "x,x", 16, EITHER, x=X4, tag=f"axis_{v}", axis=v)
    for op_ in ("Softmax", "Flatten", "ArgMax", "LogSoftmax", "Hardmax", "LayerNormalization"):
        after_constants(op_, [numpy_helper.from_array(np.ones(9, np.float32), "s")],
                        "x,s" if op_[0:2] == "La" else "x", 16, EITHER, x=X4, tag=f"axis_{v}", axis=v)
    for op_ in ("ReduceSum", "Squeeze", "Unsqueeze"):
        after_constants(op_, [ints("a", [v])], "x,a", 16, EITHER, x=X4, tag=f"axes_{v}")
    after_constants("CumSum", [scalar("a", v)], "x,a", 16, EITHER, x=X4, tag=f"axis_{v}")
    after_constants("Transpose", [], "x", 16, EITHER, x=x_input(2), tag=f"{v}", perm=[v])
    after_constants("Reshape", [ints("s", [v, v])], "x,s", 17, EITHER, x=F1, tag=f"{v}")
    after_constants("Reshape", [ints("s", [v])], "x,s", 17, EITHER, x=F1, tag=f"one_{v}", allowzero=1)
    after_constants("Expand", [ints("s", [v, 2])], "x,s", 17, EITHER, x=F1, tag=f"{v}")
    after_constants("Tile", [ints("s", [v])], "x,s", 17, EITHER, x=F1, tag=f"{v}")
    after_constants("Split", [ints("s", [v, 2])], "x,s", 17, EITHER, x=F1, outs="y,z", tag=f"{v}")
    after_constants("Split", [], "x", 17, EITHER, x=F1, outs="y,z", tag=f"num_{v}", opset=18, num_outputs=v)
    after_constants("Pad", [ints("s", [v, v])], "x,s", 17, EITHER, x=F1, tag=f"{v}")
    for mode in ("reflect", "edge", "wrap"):
        after_constants("Pad", [ints("s", [v, 1])], "x,s", 17, EITHER, x=F1, tag=f"{mode}_{v}", mode=mode, opset=19)
    for at in range(4):
        parts = [[0], [2], [0], [1]]
        parts[at] = [v]
        after_constants("Slice", [ints("abcd"[i], parts[i]) for i in range(4)], "x,a,b,c,d", 17, EITHER, x=F1, tag=f"{at}_{v}")
    after_constants("ConstantOfShape", [ints("s", [v])], "s", 17, EITHER, tag=f"{v}")
    after_constants("ConstantOfShape", [ints("s", [v, v])], "s", 17, EITHER, tag=f"two_{v}")
    after_constants("Range", [scalar("a", 0), scalar("b", v), scalar("c", 1)], "a,b,c", 17, EITHER, tag=f"to_{v}")
    after_constants("Range", [scalar("a", MIN), scalar("b", BIG), scalar("c", v)], "a,b,c", 17, EITHER, tag=f"by_{v}")
    after_constants("OneHot", [scalar("d", v), ints("v", [0, 1])], "x,d,v", 17, EITHER, x=x_input(3, kind=T.INT64), tag=f"{v}")
    after_constants("OneHot", [scalar("d", 3), ints("v", [0, 1])], "x,d,v", 17, EITHER, x=x_input(3, kind=T.INT64), tag=f"axis_{v}", axis=v)
    after_constants("TopK", [ints("k", [v])], "x,k", 18, EITHER, x=F1, outs="y,z", tag=f"{v}")
    after_constants("Gather", [ints("i", [v])], "x,i", 18, EITHER, x=F1, tag=f"{v}")
    after_constants("Gather", [ints("i", [0])], "x,i", 18, EITHER, x=F1, tag=f"axis_{v}", axis=v)
    after_constants("GatherElements", [ints("i", [v])], "x,i", 18, EITHER, x=F1, tag=f"{v}")
    after_constants("GatherND", [ints("i", [[v]])], "x,i", 18, EITHER, x=F1, tag=f"{v}")
    after_constants("GatherND", [ints("i", [[0]])], "x,i", 18, EITHER, x=F1, tag=f"batch_{v}", batch_dims=v)
    after_constants("ScatterElements", [ints("i", [v]), numpy_helper.from_array(np.ones(1, np.float32), "u")], "x,i,u", 18, EITHER, x=F1, tag=f"{v}")
    after_constants("ScatterND", [ints("i", [[v]]), numpy_helper.from_array(np.ones(1, np.float32), "u")], "x,i,u", 18, EITHER, x=F1, tag=f"{v}")
    after_constants("RoiAlign", [numpy_helper.from_array(np.ones((1, 4), np.float32), "r"), ints("b", [0])], "x,r,b", 18, EITHER,
                    x=X4, tag=f"out_{v}", output_height=v, output_width=v)
    after_constants("RoiAlign", [numpy_helper.from_array(np.ones((1, 4), np.float32), "r"), ints("b", [v])], "x,r,b", 18, EITHER, x=X4, tag=f"batch_{v}")
    after_constants("RoiAlign", [numpy_helper.from_array(np.ones((1, 4), np.float32), "r"), ints("b", [0])], "x,r,b", 18, EITHER,
                    x=X4, tag=f"ratio_{v}", sampling_ratio=v)
    after_constants("MaxRoiPool", [numpy_helper.from_array(np.zeros((1, 5), np.float32), "r")], "x,r", 18, EITHER, x=X4, tag=f"{v}", pooled_shape=[v, v])
    after_constants("NonMaxSuppression", [numpy_helper.from_array(np.ones((1, 9, 4), np.float32), "b"), numpy_helper.from_array(
        np.ones((1, 1, 9), np.float32), "s"), scalar("m", v)], "b,s,m", 18, EITHER, tag=f"{v}")
    after_constants("Trilu", [scalar("k", v)], "x,k", 17, EITHER, x=x_input(3, 3), tag=f"{v}")
    after_constants("EyeLike", [], "x", 17, EITHER, x=x_input(3, 3), tag=f"{v}", k=v)
    after_constants("Shape", [], "x", 17, EITHER, x=x_input(3, 3), tag=f"{v}", start=v, end=v)
    after_constants("Cast", [], "x", 17, EITHER, x=F1, tag=f"{v}", to=v)
    after_constants("RandomNormal", [], "", 17, EITHER, tag=f"{v}", shape=[v])
    after_constants("Multinomial", [], "x", 17, EITHER, x=x_input(1, 4), tag=f"{v}", sample_size=v)
    after_constants("HannWindow", [scalar("n", v)], "n", 17, EITHER, tag=f"{v}")
    after_constants("DFT", [scalar("n", v)], "x,n", 17, EITHER, x=x_input(1, 8, 1), tag=f"{v}")
    after_constants("DFT", [], "x", 17, EITHER, x=x_input(1, 8, 1), tag=f"axis_{v}", axis=v)
    after_constants("STFT", [scalar("s", v), scalar("n", 4)], "x,s,,n", 17, EITHER, x=x_input(1, 8, 1), tag=f"step_{v}")
    after_constants("STFT", [scalar("s", 2), scalar("n", v)], "x,s,,n", 17, EITHER, x=x_input(1, 8, 1), tag=f"frame_{v}")
    after_constants("MelWeightMatrix", [scalar("a", v), scalar("b", v), scalar("c", 8000), scalar("d", 0., np.float32), scalar("e", 4000., np.float32)],
                    "a,b,c,d,e", 17, EITHER, tag=f"{v}")
    after_constants("Col2Im", [ints("i", [v, v]), ints("b", [1, 5])], "x,i,b", 18, EITHER, x=x_input(1, 5, 5), tag=f"{v}", opset=18)
    after_constants("Col2Im", [ints("i", [5, 5]), ints("b", [v, v])], "x,i,b", 18, EITHER, x=x_input(1, 5, 5), tag=f"block_{v}", opset=18)
    after_constants("CenterCropPad", [ints("s", [v])], "x,s", 18, EITHER, x=F1, tag=f"{v}", opset=18)
    after_constants("AffineGrid", [ints("s", [1, 1, v, v])], "x,s", 18, EITHER, x=x_input(1, 2, 3), tag=f"{v}", opset=20)
    after_constants("GroupNormalization", [numpy_helper.from_array(np.ones(4, np.float32), "s")], "x,s,s", 20, EITHER, x=X4, tag=f"{v}", num_groups=v, opset=21)
    after_constants("QuantizeLinear", [numpy_helper.from_array(np.ones(9, np.float32), "s")], "x,s", 20, EITHER, x=X4, tag=f"axis_{v}", axis=v)
    after_constants("QuantizeLinear", [numpy_helper.from_array(np.ones((1, 4, 9, 3), np.float32), "s")], "x,s", 20, EITHER, x=X4, tag=f"block_{v}", axis=3, block_size=v, opset=21)
    after_constants("BitShift", [ints("a", [5], np.uint8), ints("b", [200], np.uint8)], "a,b", 20, EITHER, tag=f"{v}", direction="LEFT")
    after_constants("SequenceAt", [scalar("k", v)], "s,k", 18, EITHER, tag=f"{v}")
    for op_, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        after_constants(op_, [numpy_helper.from_array(np.ones((1, gates * 2, 3), np.float32), "w"), numpy_helper.from_array(
            np.ones((1, gates * 2, 2), np.float32), "r")], "x,w,r", 20, EITHER, x=x_input(2, 1, 3), tag=f"hidden_{v}", hidden_size=v)
        after_constants(op_, [numpy_helper.from_array(np.ones((1, gates * 2, 3), np.float32), "w"), numpy_helper.from_array(
            np.ones((1, gates * 2, 2), np.float32), "r"), ints("l", [max(min(v, 2**31 - 1), -(2**31))], np.int32)], "x,w,r,,l", 20, EITHER,
            x=x_input(2, 1, 3), tag=f"length_{v}", hidden_size=2)

for f_ in (0.0, -1.0, float("nan"), float("inf"), float("-inf"), 1e30, 1e-30, 1e9, -0.0):
    for mode in ("nearest", "linear", "cubic"):
        after_constants("Resize", [numpy_helper.from_array(np.array([1, 1, f_, f_], np.float32), "s")], "x,,s", 16, EITHER, x=X4, tag=f"{mode}_{f_}", mode=mode)
    after_constants("Upsample", [numpy_helper.from_array(np.array([1, 1, f_, f_], np.float32), "s")], "x,s", 16, EITHER, x=X4, tag=f"{f_}", opset=9)
    after_constants("Range", [scalar("a", 0, np.float32), scalar("b", 1e6, np.float32), scalar("c", f_, np.float32)], "a,b,c", 17, EITHER, tag=f"float_by_{f_}")
    after_constants("Range", [scalar("a", 0, np.float32), scalar("b", f_, np.float32), scalar("c", 1, np.float32)], "a,b,c", 17, EITHER, tag=f"float_to_{f_}")
    after_constants("Clip", [scalar("a", f_, np.float32), scalar("b", -f_, np.float32)], "x,a,b", 17, EITHER, x=F1, tag=f"{f_}")
    after_constants("QuantizeLinear", [scalar("s", f_, np.float32), scalar("z", 0, np.uint8)], "x,s,z", 20, EITHER, x=X4, tag=f"scale_{f_}")
    after_constants("DequantizeLinear", [scalar("s", f_, np.float32), ints("q", [1, 2], np.uint8)], "q,s", 20, EITHER, tag=f"scale_{f_}")
    after_constants("RoiAlign", [numpy_helper.from_array(np.full((1, 4), f_, np.float32), "r"), ints("b", [0])], "x,r,b", 18, EITHER, x=X4, tag=f"roi_{f_}")
    after_constants("RoiAlign", [numpy_helper.from_array(np.array([[0, 0, 1e9, 1e9]], np.float32), "r"), ints("b", [0])], "x,r,b", 18, EITHER,
                    x=X4, tag=f"scale_{f_}", spatial_scale=f_, mode="max")
    after_constants("MaxRoiPool", [numpy_helper.from_array(np.array([[0, 0, f_, f_, f_]], np.float32), "r")], "x,r", 18, EITHER, x=X4, tag=f"roi_{f_}", pooled_shape=[2, 2])
    after_constants("MaxRoiPool", [numpy_helper.from_array(np.array([[f_, 0, 0, 1, 1]], np.float32), "r")], "x,r", 18, EITHER, x=X4, tag=f"batch_{f_}", pooled_shape=[2, 2])
    for mode in ("linear", "nearest", "cubic"):
        after_constants("GridSample", [numpy_helper.from_array(np.full((1, 2, 2, 2), f_, np.float32), "g")], "x,g", 18, EITHER, x=X4, tag=f"{mode}_{f_}", mode=mode, opset=20)
        after_constants("GridSample", [numpy_helper.from_array(np.full((1, 2, 2, 2), f_, np.float32), "g")], "x,g", 18, EITHER, x=X4, tag=f"reflect_{mode}_{f_}", mode=mode, padding_mode="reflection", opset=20)
    after_constants("NonMaxSuppression", [numpy_helper.from_array(np.full((1, 9, 4), f_, np.float32), "b"), numpy_helper.from_array(
        np.full((1, 1, 9), f_, np.float32), "s"), scalar("m", 9), scalar("i", f_, np.float32)], "b,s,m,i", 18, EITHER, tag=f"{f_}")
    after_constants("Dropout", [scalar("r", f_, np.float32), scalar("t", True, bool)], "x,r,t", 17, EITHER, x=F1, tag=f"{f_}", seed=3)
    after_constants("RandomUniform", [], "", 17, EITHER, tag=f"{f_}", shape=[3], low=f_, high=-f_)
    after_constants("RandomUniform", [], "", 17, EITHER, tag=f"seed_{f_}", shape=[3], seed=f_)
    after_constants("MelWeightMatrix", [scalar("a", 4), scalar("b", 16), scalar("c", 8000), scalar("d", f_, np.float32), scalar("e", f_, np.float32)], "a,b,c,d,e", 17, EITHER, tag=f"edge_{f_}")
    after_constants("DeformConv", [W, numpy_helper.from_array(np.full((1, 18, 7, 7), f_, np.float32), "o")], "x,w,o", 18, EITHER, x=X4, tag=f"offset_{f_}", opset=19)
    after_constants("AffineGrid", [ints("s", [1, 1, 3, 3]), numpy_helper.from_array(np.full((1, 2, 3), f_, np.float32), "t")], "t,s", 18, EITHER, tag=f"theta_{f_}", opset=20)
    after_constants("Cast", [scalar("a", f_, np.float32)], "a", 17, EITHER, tag=f"from_{f_}", to=T.INT32)
    for kind_ in (T.UINT8, T.INT8, T.BOOL, T.FLOAT16, T.BFLOAT16, T.FLOAT8E4M3FN, T.FLOAT8E5M2, T.UINT4, T.INT4, T.STRING):
        after_constants("Cast", [scalar("a", f_, np.float32)], "a", 17, EITHER, tag=f"from_{f_}_to_{kind_}", to=kind_, opset=21)

after_constants("Reshape", [ints("s", [-1, -1])], "x,s", 17, x=F1, tag="two_unknown")
after_constants("Reshape", [ints("s", [2, 0, 0])], "x,s", 17, x=F1, tag="zero_past_rank")
after_constants("Reshape", [ints("s", [-1, 0])], "x,s", 17, x=F1, tag="unknown_over_nothing", allowzero=1)
after_constants("Reshape", [ints("s", [1] * 100 + [2])], "x,s", 17, EITHER, x=F1, tag="rank_101")
after_constants("Unsqueeze", [ints("a", list(range(100)))], "x,a", 17, EITHER, x=F1, tag="rank_101")
after_constants("Pad", [ints("s", [-1, -1])], "x,s", 17, EITHER, x=F1, tag="to_nothing")
after_constants("Einsum", [], "x,x", 19, x=X4, tag="53_labels", equation="".join(map(chr, range(97, 123))) + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + ",a->b")
for i_, eq in enumerate(["", "->", ",", ",,,,", "...", "...,...->", "ij...k...", "i->...", "ii->ii", "abcd,efgh->abcdefgh", "i" * 1000, "....", "a.b",
                         "->" * 100, "abcd,abcd->dcbaabcd", "abcd->" + "a" * 500, "\u00e9\u00e9,a->b", "abcd,ABCD,efgh,EFGH->aAeE"]):
    after_constants("Einsum", [], "x,x" if i_ not in (9, 17) else ("x,x" if i_ == 9 else "x,x,x,x"), 19, EITHER, x=X4, tag=f"{i_}", equation=eq)
after_constants("Einsum", [], ",".join("x" * 20), 19, EITHER, x=x_input(9, 9), tag="twenty_operands",
                equation=",".join(chr(97 + i) + chr(98 + i) for i in range(20)) + "->" + "".join(chr(97 + i) for i in range(21)))
after_constants("Einsum", [], ",".join("x" * 16), 19, EITHER, x=x_input(9, 9), tag="sixteen_outer",
                equation=",".join(chr(97 + 2 * (i % 8)) + chr(98 + 2 * (i % 8)) for i in range(16)) + "->")
for text in ("nonsense", "", "%s%s%n", "x" * 10000):
    after_constants("Conv", [W], "x,w", 16, EITHER, x=X4, tag=f"auto_pad_{text[:9]}", auto_pad=text)
    after_constants("Resize", [ints("s", [1, 4, 5, 5])], "x,,,s", 16, EITHER, x=X4, tag=f"mode_{text[:9]}", mode=text)
    after_constants("ScatterElements", [ints("i", [0]), numpy_helper.from_array(np.ones(1, np.float32), "u")], "x,i,u", 18, EITHER, x=F1, tag=f"reduction_{text[:9]}", reduction=text, opset=18)
    after_constants("LSTM", [numpy_helper.from_array(np.ones((1, 8, 3), np.float32), "w"), numpy_helper.from_array(np.ones((1, 8, 2), np.float32), "r")],
                    "x,w,r", 20, EITHER, x=x_input(2, 1, 3), tag=f"direction_{text[:9]}", direction=text, hidden_size=2)
    after_constants("LSTM", [numpy_helper.from_array(np.ones((1, 8, 3), np.float32), "w"), numpy_helper.from_array(np.ones((1, 8, 2), np.float32), "r")],
                    "x,w,r", 20, EITHER, x=x_input(2, 1, 3), tag=f"activation_{text[:9]}", activations=[text] * 3, hidden_size=2)
    after_constants("StringSplit", [h.make_tensor("s", T.STRING, [1], [b"a b c"])], "s", 20, EITHER, outs="y,z", tag=f"{text[:9]}", delimiter=text, opset=20)
    after_constants("RegexFullMatch", [h.make_tensor("s", T.STRING, [1], [b"a" * 50])], "s", 20, EITHER, tag=f"{text[:9]}", pattern=text, opset=20)
for pattern in ("(a+)+$b", "(a|aa)+$b", "((((((((((", "[", "a{1000000000}", "(a{1,1000}){1,1000}", "\\", "(?:" * 10000, "a" * 100000, "(a*)*b", "[z-a]", "(.*)(.*)(.*)(.*)(.*)(.*)(.*)x"):
    after_constants("RegexFullMatch", [h.make_tensor("s", T.STRING, [1], [b"a" * 5000])], "s", 20, EITHER, tag=f"pattern_{pattern[:9]}".replace("/", "_"), pattern=pattern, opset=20)


def reinterpret(op, attr_name, kind, group=16):
    """An attribute of every type but the right one."""
    values = {"int": 3, "float": 3.5, "string": "abc", "ints": [1, 2], "floats": [1.5], "strings": ["a"],
              "tensor": ints("t", [1, 2]), "graph": subgraph([node("Neg", "x", "r")], ["r"])}
    for k, v in values.items():
        if k != kind:
            after_constants(op, [W], "x,w" if op == "Conv" else "x", group, EITHER, x=X4, tag=f"{attr_name}_as_{k}", **{attr_name: v})


reinterpret("Conv", "strides", "ints")
reinterpret("Conv", "auto_pad", "string")
reinterpret("Conv", "group", "int")
reinterpret("Softmax", "axis", "int")
reinterpret("LeakyRelu", "alpha", "float")
reinterpret("Transpose", "perm", "ints")
reinterpret("MaxPool", "kernel_shape", "ints")
reinterpret("Constant", "value", "tensor")
for v in (float("nan"), float("inf"), -1e38, 0.0):
    for op_, attr in (("LeakyRelu", "alpha"), ("Elu", "alpha"), ("Selu", "gamma"), ("HardSigmoid", "beta"), ("ThresholdedRelu", "alpha"), ("Shrink", "lambd"),
                      ("LRN", "alpha"), ("Celu", "alpha")):
        after_constants(op_, [], "x", 16, EITHER, x=X4, tag=f"{attr}_{v}", opset=12, **({"size": 3} if op_ == "LRN" else {}), **{attr: v})
for a_, b_ in ((MIN, -1), (1, 0), (MIN, 0), (BIG, 2)):
    for op_ in ("Div", "Mod", "Pow", "Mul", "Add", "Sub"):
        after_constants(op_, [ints("a", [a_]), ints("b", [b_])], "a,b", 20, EITHER, tag=f"{a_}_{b_}")
        after_constants(op_, [ints("a", [max(a_, -(2**31)) if a_ < 0 else 1], np.int32), ints("b", [b_], np.int32)], "a,b", 20, EITHER, tag=f"int32_{a_}_{b_}")
        row(20, f"{op_}_at_run_{a_}_{b_}", EITHER, lambda f, o=op_, a=a_, b=b_: model(
            [node("Mul", "x,a", "p"), node("Mul", "x,b", "q"), node(o, "p,q", "y")], [x_input(1, kind=T.INT64)], init=[ints("a", [a]), ints("b", [b])]))
    after_constants("Abs", [ints("a", [a_])], "a", 20, EITHER, tag=f"{a_}")
    after_constants("Neg", [ints("a", [a_])], "a", 20, EITHER, tag=f"{a_}")


# run-time values: inputs are all ones times a hostile constant, so that folding does not see them

def at_run(op, lens, kind, ins, init, tag, value, outs="y", group=18, opset=17, x=None, verdict=EITHER, **attrs):
    """Input `p` (filled with 1 by the driver) times `value` becomes `q`."""
    t = {T.INT64: np.int64, T.FLOAT: np.float32, T.INT32: np.int32}[kind]
    row(group, f"{op}_at_run_{tag}", verdict, lambda f: model(
        [node("Mul", "p,k", "q"), node(op, ins, outs, **attrs)], [("p", kind, lens), *([x] if x else [])], outs.split(","),
        [scalar("k", value, t), *init], opset))


ONE_F = numpy_helper.from_array(np.ones(1, np.float32), "u")
for v in ODD + [3, -3]:
    at_run("Gather", [2], T.INT64, "x,q", [], f"{v}", v, x=F1)
    at_run("GatherElements", [1], T.INT64, "x,q", [], f"{v}", v, x=F1)
    at_run("GatherND", [1, 1], T.INT64, "x,q", [], f"{v}", v, x=F1)
    at_run("ScatterElements", [1], T.INT64, "x,q,u", [ONE_F], f"{v}", v, x=F1)
    at_run("ScatterND", [1, 1], T.INT64, "x,q,u", [ONE_F], f"{v}", v, x=F1)
    at_run("TopK", [1], T.INT64, "x,q", [], f"{v}", v, x=F1, outs="y,z")
    at_run("Reshape", [2], T.INT64, "x,q", [], f"{v}", v, x=F1)
    at_run("Expand", [3], T.INT64, "x,q", [], f"{v}", v, x=F1)
    at_run("Tile", [1], T.INT64, "x,q", [], f"{v}", v, x=F1)
    at_run("Pad", [2], T.INT64, "x,q", [], f"{v}", v, x=F1)
    at_run("ConstantOfShape", [2], T.INT64, "q", [], f"{v}", v)
    at_run("ConstantOfShape", [1], T.INT64, "q", [], f"one_{v}", v)
    at_run("Split", [2], T.INT64, "x,q", [], f"{v}", v, x=F1, outs="y,z")
    at_run("Slice", [1], T.INT64, "x,z0,q", [ints("z0", [0])], f"end_{v}", v, x=F1)
    at_run("Slice", [1], T.INT64, "x,z0,o0,z0,q", [ints("z0", [0]), ints("o0", [9])], f"step_{v}", v, x=F1)
    at_run("Slice", [1], T.INT64, "x,z0,o0,q", [ints("z0", [0]), ints("o0", [9])], f"axis_{v}", v, x=F1)
    at_run("Squeeze", [1], T.INT64, "x,q", [], f"{v}", v, x=F1)
    at_run("Unsqueeze", [1], T.INT64, "x,q", [], f"{v}", v, x=F1)
    at_run("ReduceSum", [1], T.INT64, "x,q", [], f"{v}", v, x=F1)
    at_run("CumSum", [], T.INT64, "x,q", [], f"{v}", v, x=F1)
    at_run("OneHot", [], T.INT64, "x,q,b", [ints("b", [0, 1])], f"{v}", v, x=x_input(3, kind=T.INT64))
    at_run("OneHot", [2], T.INT64, "q,d,b", [ints("b", [0, 1]), scalar("d", 4)], f"index_{v}", v)
    at_run("Range", [], T.INT64, "z0,q,o0", [scalar("z0", 0), scalar("o0", 1)], f"to_{v}", v)
    at_run("Range", [], T.INT64, "z0,o0,q", [scalar("z0", 0), scalar("o0", 10)], f"by_{v}", v)
    at_run("EyeLike", [2, 2], T.INT64, "q", [], f"{v}", v)
    at_run("Trilu", [], T.INT64, "x,q", [], f"{v}", v, x=x_input(3, 3))
    at_run("ReverseSequence", [2], T.INT64, "x,q", [], f"{v}", v, x=x_input(4, 2))
    at_run("RoiAlign", [2], T.INT64, "x,r,q", [numpy_helper.from_array(np.ones((2, 4), np.float32), "r")], f"{v}", v, x=X4)
    at_run("NonMaxSuppression", [], T.INT64, "b,s,q", [numpy_helper.from_array(np.ones((1, 9, 4), np.float32), "b"), numpy_helper.from_array(
        np.ones((1, 1, 9), np.float32), "s")], f"{v}", v)
    at_run("MaxUnpool", [1, 1, 2, 2], T.INT64, "x,q", [], f"{v}", v, x=x_input(1, 1, 2, 2), kernel_shape=[2, 2], strides=[2, 2])
    at_run("MaxUnpool", [4], T.INT64, "x,i,q", [numpy_helper.from_array(np.zeros((1, 1, 2, 2), np.int64), "i")], f"shape_{v}", v, x=x_input(1, 1, 2, 2), kernel_shape=[2, 2])
    at_run("HannWindow", [], T.INT64, "q", [], f"{v}", v)
    at_run("DFT", [], T.INT64, "x,q", [], f"{v}", v, x=x_input(1, 8, 1))
    at_run("STFT", [], T.INT64, "x,q,,n", [scalar("n", 4)], f"step_{v}", v, x=x_input(1, 8, 1))
    at_run("Col2Im", [2], T.INT64, "x,q,b", [ints("b", [1, 5])], f"{v}", v, x=x_input(1, 5, 5), opset=18)
    at_run("CenterCropPad", [1], T.INT64, "x,q", [], f"{v}", v, x=F1, opset=18)
    at_run("AffineGrid", [4], T.INT64, "x,q", [], f"{v}", v, x=x_input(1, 2, 3), opset=20)
    at_run("Resize", [4], T.INT64, "x,,,q", [], f"sizes_{v}", v, x=X4)
    at_run("SequenceAt", [], T.INT64, "s,q", [], f"{v}", v)
    at_run("SplitToSequence", [], T.INT64, "x,q", [], f"{v}", v, x=F1)
    at_run("TensorScatter", [1], T.INT64, "x,x,q", [], f"{v}", v, x=x_input(1, 4, 2), opset=24)
    at_run("Loop", [], T.INT64, "q,,x", [], f"{v}", v, x=F1, body=loop_body([node("Neg", "s", "t")], [("s", "t")]))
    at_run("Compress", [2], T.INT64, "x,q", [], f"{v}", v, x=F1)
    for op_, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        at_run(op_, [1], T.INT32, "x,w,r,,q", [numpy_helper.from_array(np.ones((1, gates * 2, 3), np.float32), "w"), numpy_helper.from_array(
            np.ones((1, gates * 2, 2), np.float32), "r")], f"{v}", max(min(v, 2**31 - 1), -(2**31)), x=x_input(2, 1, 3), hidden_size=2)
    row(18, f"sequence_{v}", EITHER, lambda f, k=v: model(
        [node("SequenceConstruct", "x,x", "s"), node("Mul", "p,k", "q"), node("SequenceAt", "s,q", "y")], [F1, ("p", T.INT64, [])], init=[scalar("k", k)]))
    row(18, f"sequence_insert_{v}", EITHER, lambda f, k=v: model(
        [node("SequenceConstruct", "x,x", "s"), node("Mul", "p,k", "q"), node("SequenceInsert", "s,x,q", "t"), node("SequenceAt", "t,z", "y")],
        [F1, ("p", T.INT64, [])], init=[scalar("k", k), scalar("z", 0)]))
for f_ in (0.0, -1.0, float("nan"), float("inf"), 1e30, 1e9, 3e7):
    at_run("Resize", [4], T.FLOAT, "x,,q", [], f"{f_}", f_, x=X4)
    at_run("Range", [], T.FLOAT, "z0,q,o0", [scalar("z0", 0, np.float32), scalar("o0", 1, np.float32)], f"float_to_{f_}", f_)
    at_run("Range", [], T.FLOAT, "z0,o0,q", [scalar("z0", 0, np.float32), scalar("o0", 1, np.float32)], f"float_by_{f_}", f_)
    at_run("RoiAlign", [1, 4], T.FLOAT, "x,q,b", [ints("b", [0])], f"roi_{f_}", f_, x=X4)
    at_run("MaxRoiPool", [1, 5], T.FLOAT, "x,q", [], f"roi_{f_}", f_, x=X4, pooled_shape=[2, 2])
    at_run("GridSample", [1, 2, 2, 2], T.FLOAT, "x,q", [], f"{f_}", f_, x=X4, opset=20)
    at_run("QuantizeLinear", [], T.FLOAT, "x,q", [], f"scale_{f_}", f_, x=X4)
    at_run("Dropout", [], T.FLOAT, "x,q,t", [scalar("t", True, bool)], f"{f_}", f_, x=F1)
    at_run("Cast", [2], T.FLOAT, "q", [], f"{f_}_to_int", f_, to=T.INT32)
    at_run("Cast", [2], T.FLOAT, "q", [], f"{f_}_to_uint8", f_, to=T.UINT8)
    at_run("DeformConv", [1, 18, 7, 7], T.FLOAT, "x,w,q", [W], f"{f_}", f_, x=X4, opset=19)
    at_run("Multinomial", [1, 4], T.FLOAT, "q", [], f"{f_}", f_, sample_size=5)
    at_run("Bernoulli", [4], T.FLOAT, "q", [], f"{f_}", f_)


# contrib

def contrib(op, x, ins, init, tag, outs="y", **attrs):
    def make(folder):
        n = h.make_node(op, ins.split(","), outs.split(","), domain="com.microsoft", **attrs)
        return model([n], [x], outs.split(","), init, extra_opsets=["com.microsoft"])
    row(20, f"{op}_{tag}", EITHER, make)


B_ = numpy_helper.from_array(np.zeros((4, 1, 16), np.uint8), "b")
S_ = numpy_helper.from_array(np.ones(4, np.float32), "s")
for v in ODD + [1, 3, 16, 33]:
    for attr in ("K", "N", "bits", "block_size"):
        contrib("MatMulNBits", x_input(1, 32), "x,b,s", [B_, S_], f"{attr}_{v}", **{**{"K": 32, "N": 4, "bits": 4, "block_size": 32}, attr: v})
    contrib("Attention", x_input(2, 4, 8), "x,w", [numpy_helper.from_array(np.ones((8, 24), np.float32), "w")], f"heads_{v}", num_heads=v)
    contrib("MultiHeadAttention", x_input(2, 4, 8), "x,x,x", [], f"heads_{v}", num_heads=v)
    contrib("RotaryEmbedding", x_input(2, 5, 24), "x,p,c,c", [ints("p", [[v] * 5] * 2), numpy_helper.from_array(np.ones((20, 4), np.float32), "c")], f"position_{v}", num_heads=3)
    contrib("GroupQueryAttention", x_input(2, 1, 64), "x,k,k,,,l,t", [numpy_helper.from_array(np.ones((2, 1, 32), np.float32), "k"),
            ints("l", [max(min(v, 2**31 - 1), -(2**31))] * 2, np.int32), scalar("t", max(min(v, 2**31 - 1), -(2**31)), np.int32)], f"lengths_{v}",
            outs="y,pk,pv", num_heads=4, kv_num_heads=2)
    contrib("GatherBlockQuantized", x_input(2, kind=T.INT64), "b,x,s", [numpy_helper.from_array(np.ones((7, 32), np.uint8), "b"), numpy_helper.from_array(
        np.ones((7, 2), np.float32), "s")], f"{v}", block_size=v, quantize_axis=1)
for op_ in ("Attention",):
    for v in ODD:
        row(20, f"attention_heads_{v}", EITHER, lambda f, k=v: model([node("Attention", "x,x,x", "y", q_num_heads=k, kv_num_heads=k)], [x_input(1, 2, 8)], opset=23))
        row(20, f"rotary_{v}", EITHER, lambda f, k=v: model([node("RotaryEmbedding", "x,c,c,p", "y", num_heads=2)], [x_input(1, 2, 8)], init=[
            numpy_helper.from_array(np.ones((20, 2), np.float32), "c"), ints("p", [[k, k]])], opset=23))


# --- 21 and 22: resources and time ---

row(21, "identity_between_shapes_of_2_pow_60", EITHER, lambda f: model(
    [node("ConstantOfShape", "s", "a"), node("ReduceSum", "a", "y", keepdims=0)], init=[ints("s", [2**60])]))
row(21, "constant_tile_tile", EITHER, lambda f: model(
    [node("ConstantOfShape", "s", "a"), node("Tile", "a,t", "b"), node("Tile", "b,t", "c"), node("Tile", "c,t", "d"), node("ReduceSum", "d", "y", keepdims=0)],
    init=[ints("s", [1000]), ints("t", [10000])]))
for op_ in ("ConstantOfShape", "Expand"):
    row(21, f"{op_}_just_below_the_limit", EITHER, lambda f, o=op_: model(
        [node(o, "s" if o[0] == "C" else "x,s", "a"), node("Exp", "a", "b"), node("Log", "b", "c"), node("Sqrt", "c", "y")],
        [] if o[0] == "C" else [("x", T.FLOAT, [1])], init=[ints("s", [2**28])]))
row(21, "expand_of_an_input_to_2_pow_50", REFUSE, lambda f: model([node("Expand", "x,s", "a"), node("Exp", "a", "y")], [("x", T.FLOAT, [1])], init=[ints("s", [2**50])]))
row(21, "range_of_2_pow_40", REFUSE, lambda f: model([node("Range", "a,b,c", "r"), node("Cast", "r", "q", to=1), node("ReduceSum", "q", "y", keepdims=0)],
                                                    init=[scalar("a", 0), scalar("b", 2**40), scalar("c", 1)]))
row(21, "input_of_2_pow_60", REFUSE, lambda f: model([node("Neg", "x", "y")], [("x", T.FLOAT, [2**30, 2**30])]))
row(21, "input_of_2_pow_50_to_shape", EITHER, lambda f: model([node("Shape", "x", "y")], [("x", T.FLOAT, [2**25, 2**25])]))
row(21, "input_dims_that_wrap", REFUSE, lambda f: model([node("Neg", "x", "y")], [("x", T.FLOAT, [2**32, 2**32])]))
for d_ in (-5, MIN, BIG, 2**62):
    row(21, f"input_dim_{d_}", REFUSE if d_ > 0 else EITHER,  # exporters write open ones so
        lambda f, d=d_: model([node("Neg", "x", "y")], [("x", T.FLOAT, [d])]))
row(21, "input_of_rank_1000", REFUSE, lambda f: model([node("Neg", "x", "y")], [("x", T.FLOAT, [1] * 1000)]))
row(21, "outer_product_of_2_pow_40", REFUSE, lambda f: model([node("Unsqueeze", "x,z", "a"), node("Unsqueeze", "x,o", "b"), node("Mul", "a,b", "y")],
                                                            [("x", T.FLOAT, [2**20])], init=[ints("z", [0]), ints("o", [1])]))
row(21, "matmul_of_2_pow_40", REFUSE, lambda f: model([node("Unsqueeze", "x,z", "a"), node("Unsqueeze", "x,o", "b"), node("MatMul", "b,a", "y")],
                                                     [("x", T.FLOAT, [2**20])], init=[ints("z", [0]), ints("o", [1])]))


def double(op, count, **attrs):
    return model([node(op, f"v{i},v{i}", f"v{i + 1}", **attrs) for i in range(count)], [("v0", T.FLOAT, [2])], [f"v{count}"])


def double_constant(op, count, **attrs):
    return model([node(op, f"v{i},v{i}", f"v{i + 1}", **attrs) for i in range(count)], [], [f"v{count}"], [
        numpy_helper.from_array(np.ones(2, np.float32), "v0")])


for n_ in (24, 30, 60, 100):
    row(21, f"concat_doubles_{n_}", EITHER if n_ < 40 else REFUSE, lambda f, n=n_: double("Concat", n, axis=0))
    row(21, f"constant_doubles_{n_}", EITHER if n_ < 40 else REFUSE, lambda f, n=n_: double_constant("Concat", n, axis=0))
row(21, "shared_adds_1000", RUN, lambda f: double("Add", 1000))
row(21, "shared_adds_of_a_constant_1000", EITHER, lambda f: double_constant("Add", 1000))
row(21, "shared_where_200", EITHER, lambda f: model(
    [node("Greater", "v0,v0", "c")] + [node("Where", f"c,v{i},v{i}", f"v{i + 1}") for i in range(200)], [("v0", T.FLOAT, [2])], ["v200"]))
row(21, "shared_pointwise_tree_40", RUN, lambda f: model(
    [n for i in range(40) for n in (node("Exp", f"v{i}", f"a{i}"), node("Neg", f"v{i}", f"b{i}"), node("Mul", f"a{i},b{i}", f"v{i + 1}"))],
    [("v0", T.FLOAT, [2])], ["v40"]))
row(21, "shared_max_of_ranges_100", EITHER, lambda f: model(
    [n for i in range(100) for n in (node("Shape", f"v{i}", f"s{i}"), node("Reshape", f"v{i},s{i}", f"r{i}"), node("Concat", f"r{i},v{i}", f"v{i + 1}", axis=0))][:60],
    [("v0", T.FLOAT, ["n"])], ["v20"]))
row(21, "wide_concat_of_20000_slices", EITHER, lambda f: model(
    [node("Split", "x", ",".join(f"o{i}" for i in range(20000))), node("Concat", ",".join(f"o{i}" for i in range(20000)), "y", axis=0)], [("x", T.FLOAT, [20000])]))
row(21, "100000_consumers", EITHER, lambda f: number(1, 8) + field(8, number(2, 17)) + field(
    7, b"".join(field(1, field(1, b"x") + field(2, b"v%d" % i) + field(4, b"Exp")) for i in range(100000)) + field(
        1, b"".join(field(1, b"v%d" % i) for i in range(100000)) + field(2, b"y") + field(4, b"Sum")) +
    field(11, field(1, b"x") + field(2, field(1, number(1, 1) + field(2, field(1, number(1, 2)))))) + field(12, field(1, b"y"))))
row(21, "ladder_of_5000_convolutions", EITHER, lambda f: model(
    [node("Conv", f"v{i},w", f"v{i + 1}", pads=[1, 1, 1, 1]) for i in range(5000)], [("v0", T.FLOAT, [1, 4, 4, 4])], ["v5000"], [W]))
row(21, "3000_matmuls_of_other_sizes", EITHER, lambda f: model(
    [node("Slice", f"x,s{i},e,a", f"p{i}") for i in range(3000)] + [node("MatMul", f"w,p{i}", f"q{i}") for i in range(3000)] +
    [node("Concat", ",".join(f"q{i}" for i in range(3000)), "y", axis=1)], [("x", T.FLOAT, [4, 3001])], init=[
        *[ints(f"s{i}", [i]) for i in range(3000)], ints("e", [3001]), ints("a", [1]), numpy_helper.from_array(np.ones((2, 4), np.float32), "w")]))
row(21, "transposes_5000", EITHER, lambda f: model([node("Transpose", f"v{i}", f"v{i + 1}", perm=[1, 2, 0]) for i in range(5000)], [("v0", T.FLOAT, [2, 3, 4])], ["v5000"]))
row(21, "reshapes_5000", EITHER, lambda f: model(
    [node("Reshape", f"v{i},s{i % 2}", f"v{i + 1}") for i in range(5000)], [("v0", T.FLOAT, [2, 3, 4])], ["v5000"], [ints("s0", [6, 4]), ints("s1", [4, 3, 2])]))
row(21, "sequence_doubling", EITHER, lambda f: model(
    [node("SequenceConstruct", "x,x", "s0")] + [n for i in range(30) for n in (
        node("ConcatFromSequence", f"s{i}", f"c{i}", axis=0), node("SequenceConstruct", f"c{i},c{i}", f"s{i + 1}"))] +
    [node("SequenceLength", "s30", "y")], [F1]))
row(21, "big_gemm", EITHER, lambda f: model(
    [node("MatMul", "x,x", "a"), node("ReduceSum", "a", "y", keepdims=0)], [("x", T.FLOAT, [1536, 1536])]))
row(21, "convolution_with_huge_window", EITHER, lambda f: model(
    [node("Conv", "x,w", "y")], [("x", T.FLOAT, [1, 1, 256, 256])], init=[numpy_helper.from_array(np.ones((1, 1, 128, 128), np.float32), "w")]))
row(21, "rnn_of_2_pow_30_steps", EITHER, lambda f: model([node("Expand", "x,s", "e"), node("RNN", "e,w,r", "y", hidden_size=2)], [x_input(1, 1, 3)], init=[
    ints("s", [2**30, 1, 3]), numpy_helper.from_array(np.ones((1, 2, 3), np.float32), "w"), numpy_helper.from_array(np.ones((1, 2, 2), np.float32), "r")]))
row(21, "det_of_3000", EITHER, lambda f: model([node("Det", "x", "y")], [("x", T.FLOAT, [1500, 1500])]))
row(21, "tfidf_bomb", EITHER, lambda f: model([node("TfIdfVectorizer", "x", "y", max_gram_length=BIG, max_skip_count=BIG, min_gram_length=1, mode="TF",
                                                  ngram_counts=[0, BIG], ngram_indexes=[0, BIG], pool_int64s=[1, 2])], [("x", T.INT64, [100])]))
row(21, "tfidf_skips", EITHER, lambda f: model([node("TfIdfVectorizer", "x", "y", max_gram_length=5, max_skip_count=10**9, min_gram_length=1, mode="TF",
                                                   ngram_counts=[0], ngram_indexes=[0, 1], pool_int64s=[1, 2])], [("x", T.INT64, [10000])]))
row(21, "cost_of_indices", EITHER, lambda f: model([node("ScatterND", "x,i,u", "y", reduction="add")], [("x", T.FLOAT, [10])], opset=18, init=[
    numpy_helper.from_array(np.zeros((100000, 1), np.int64), "i"), numpy_helper.from_array(np.ones(100000, np.float32), "u")]))
row(21, "nms_of_30000_boxes", EITHER, lambda f: model([node("NonMaxSuppression", "b,s,m,t", "y")], [("s", T.FLOAT, [1, 1, 30000])], init=[
    numpy_helper.from_array(np.arange(120000).reshape(1, 30000, 4).astype(np.float32), "b"), scalar("m", BIG), scalar("t", 0.5, np.float32)]))


# --- running ---

def limits(seconds, gigabytes):
    def apply():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if gigabytes:
            resource.setrlimit(resource.RLIMIT_AS, (gigabytes << 30,) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (2 * seconds, 2 * seconds + 1))
    return apply


def attempt(driver, path, target, at_run, seconds, gigabytes):
    """(exit status or a word, seconds, what it said)

    Two threads' processor time is what counts: a machine may be busy with other things."""
    start = time.time()
    fill = ["--fill1", "p"] if at_run else []
    try:
        done = subprocess.run([driver, "run", f"--{target}", *fill, "--onnx", path], capture_output=True, timeout=6 * seconds,
                              preexec_fn=limits(seconds, gigabytes), check=False)
        text = (done.stderr or b"").decode("utf-8", "replace").strip()
        status = "took too long" if done.returncode == -signal.SIGXCPU else done.returncode
    except subprocess.TimeoutExpired:
        status, text = "took too long", ""
    return status, time.time() - start, text


def judge(verdict, status, text):
    if status not in (0, 1) or "ERROR: " in text and "Sanitizer" in text or ": runtime error: " in text:
        return False
    if status == 1 and not text:
        return False
    return verdict == EITHER or (status == 0) == (verdict == RUN)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", default="")
    parser.add_argument("--targets", nargs="*", default=["ref", "cpu"])
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--gigabytes", type=int, default=16, help="address space; 0 for sanitizers")
    parser.add_argument("--keep", help="leave the files of failed cases in this folder")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    driver = os.path.abspath(os.path.join(args.build, "bin", "migraphx-driver"))
    failed = count = 0
    for group, name, verdict, maker in CASES:
        title = f"{group}/{name}"
        if not re.search(args.only, title):
            continue
        count += 1
        root = tempfile.mkdtemp(prefix="mgx_hostile_")
        folder = os.path.join(root, "model")
        os.mkdir(folder)
        try:
            data = maker(folder)
        except Exception as e:  # a value that the package itself cannot write
            shutil.rmtree(root)
            if args.verbose:
                print(f"not written {title}: {e}")
            continue
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as f:
            f.write(data)
        bad = False
        for target in args.targets:
            status, took, text = attempt(driver, path, target, "at_run" in name, args.seconds, args.gigabytes)
            good = judge(verdict, status, text)
            bad |= not good
            if not good or args.verbose or took > args.seconds / 3:
                print(f"{'' if good else 'FAILED '}{title} on {target}: {status} in {took:.1f} s: {text[:600]}", flush=True)
        failed += bad
        if bad and args.keep:
            shutil.copytree(folder, os.path.join(args.keep, f"{group}_{name}"[:80].replace("/", "_")), dirs_exist_ok=True, symlinks=True)
        shutil.rmtree(root)
    print(f"{count - failed} of {count} hostile models hold")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
