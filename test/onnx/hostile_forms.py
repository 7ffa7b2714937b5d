#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""More hostile models: forms that a message, a body, a function, a sequence or a string may take.

    hostile_forms.py [options of hostile.py]

Same groups, verdicts and options as hostile.py, which also runs these.
"""
import os

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

from hostile import (BIG, CASES, EITHER, F1, MIN, REFUSE, RUN, call, field, fmodel, function, if_model, ints, loop_body, loop_model, model, node,
                     number, raw, row, scalar, small, subgraph, varint, x_input)

FIRST = len(CASES)
HEAD = number(1, 8) + field(8, number(2, 21))
SEQ = h.make_tensor_sequence_value_info


def value(name, kind=1, dims=()):
    return field(1, name) + field(2, field(1, number(1, kind) + field(2, b"".join(field(1, number(1, d)) for d in dims))))


def one(op, ins=(b"x",), more=b"", outs=(b"y",), dims=(2,), extra=b"", kind=1):
    """A model of one node over x, written by hand."""
    n = b"".join(field(1, i) for i in ins) + b"".join(field(2, o) for o in outs) + field(4, op) + more
    return HEAD + field(7, field(1, n) + extra + field(11, value(b"x", kind, dims)) + b"".join(field(12, field(1, o)) for o in outs))


def attribute(name, kind, body):
    return field(5, field(1, name) + number(20, kind) + body)


# --- 1 to 4: messages ---

CUT = b"\x80\x80\x80"
raw(3, "packed_ints_cut_in_a_varint", one(b"Transpose", more=attribute(b"perm", 7, field(8, b"\x00" + CUT))))
raw(3, "packed_ints_with_an_endless_varint", one(b"Transpose", more=attribute(b"perm", 7, field(8, b"\xff" * 11))))
raw(3, "packed_floats_of_7_bytes", one(b"Upsample", more=attribute(b"scales", 6, field(7, b"\0" * 7))))
raw(3, "ints_packed_and_not", one(b"Transpose", more=attribute(b"perm", 7, field(8, b"\x01") + number(8, 0)), dims=(2, 3)), RUN)
raw(3, "ints_in_ten_thousand_pieces", one(b"Transpose", more=attribute(b"perm", 7, number(8, 0) * 10000)))
raw(3, "dims_cut_in_a_varint", HEAD + field(7, field(5, field(1, CUT) + number(2, 1) + field(8, b"w")) + field(12, field(1, b"w"))))
raw(3, "float_data_packed_and_not", HEAD + field(7, field(5, number(1, 2) + number(2, 1) + field(8, b"w") + field(4, b"\0" * 4) + varint(
    4 << 3 | 5) + b"\0\0\x80\x3f") + field(12, field(1, b"w"))), RUN)
raw(3, "int64_data_cut_in_a_varint", HEAD + field(7, field(5, number(1, 2) + number(2, 7) + field(8, b"w") + field(7, b"\x01" + CUT)) + field(12, field(1, b"w"))))
raw(3, "attribute_of_two_kinds", one(b"Flatten", more=attribute(b"axis", 2, number(3, 1) + field(8, b"\1\2") + field(4, b"text"))), EITHER)
raw(3, "attribute_of_no_kind", one(b"Flatten", more=field(5, field(1, b"axis") + number(3, 1))), EITHER)
raw(3, "attribute_of_kind_99", one(b"Flatten", more=attribute(b"axis", 99, number(3, 1))), EITHER)
raw(3, "attribute_without_name", one(b"Flatten", more=field(5, number(20, 2) + number(3, 1))), EITHER)
raw(3, "attribute_twice", one(b"Flatten", more=attribute(b"axis", 2, number(3, 1)) + attribute(b"axis", 2, number(3, 0))), EITHER)
raw(3, "op_type_twice", one(b"Neg", more=field(4, b"Abs")), EITHER)
raw(3, "graph_twice", small() + field(7, field(1, field(1, b"x") + field(2, b"y") + field(4, b"Neg"))), EITHER)
raw(3, "type_twice", HEAD + field(7, field(11, value(b"x", 1, (2,)) + field(2, field(4, field(1, field(1, number(1, 1)))))) + field(12, field(1, b"x"))), EITHER)
raw(3, "shape_twice", HEAD + field(7, field(11, field(1, b"x") + field(2, field(1, number(1, 1) + field(2, field(1, number(1, 2))) * 2))) + field(12, field(1, b"x"))), EITHER)
raw(3, "dim_value_and_dim_param", HEAD + field(7, field(11, field(1, b"x") + field(2, field(1, number(1, 1) + field(2, field(1, number(1, 2) + field(
    2, b"n")))))) + field(12, field(1, b"x"))), EITHER)
raw(3, "negative_varint_of_5_bytes", one(b"Flatten", more=attribute(b"axis", 2, varint(3 << 3) + b"\xff\xff\xff\xff\x0f")), EITHER)
raw(4, "dim_param_is_no_text", HEAD + field(7, field(11, field(1, b"x") + field(2, field(1, number(1, 1) + field(2, field(1, field(2, b"\xff\0")))))) + field(
    12, field(1, b"x"))), EITHER)
raw(4, "attribute_name_is_no_text", one(b"Neg", more=field(5, field(1, b"\xff\0") + number(20, 2) + number(3, 1))), EITHER)
raw(4, "node_name_is_no_text", one(b"Neg", more=field(3, b"\xff\0\x1b[2J")), EITHER)
raw(4, "producer_is_no_text", small() + field(2, b"\xff\0") + field(6, b"\xff" * 1000), EITHER)
raw(4, "text_attribute_is_no_text", one(b"Conv", more=attribute(b"auto_pad", 3, field(4, b"\xff\0SAME"))), REFUSE)
raw(6, "initialiser_without_name", HEAD + field(7, field(5, number(1, 1) + number(2, 1) + field(9, b"\0" * 4)) + field(11, value(b"x", 1, (2,))) + field(12, field(1, b"x"))), EITHER)
raw(6, "input_without_name", HEAD + field(7, field(11, value(b"", 1, (2,))) + field(11, value(b"x", 1, (2,))) + field(12, field(1, b"x"))), EITHER)
raw(6, "output_without_name", HEAD + field(7, field(11, value(b"x", 1, (2,))) + field(12, field(1, b""))), REFUSE)
raw(6, "input_without_type", HEAD + field(7, field(11, field(1, b"x")) + field(12, field(1, b"x"))), EITHER)
for kind_ in (0, -1, 99, BIG):
    raw(6, f"input_of_type_{kind_}", HEAD + field(7, field(11, value(b"x", kind_, (2,))) + field(12, field(1, b"x"))))
for t_, what in ((field(4, b""), "sequence_of_nothing"), (field(9, b""), "optional_of_nothing"), (field(5, b""), "map_of_nothing"), (b"", "nothing"),
                 (field(8, number(1, 1)), "sparse"), (field(5, number(1, 7) + field(2, field(1, number(1, 1)))), "map"),
                 (field(9, field(1, field(9, field(1, field(1, number(1, 1)))))), "optional_of_optional"),
                 (field(4, field(1, field(9, field(1, field(1, number(1, 1)))))), "sequence_of_optional")):
    for op_ in (b"Neg", b"Identity", b"SequenceLength", b"OptionalGetElement", b"Shape", b"Cast", b"SequenceAt", b"ConcatFromSequence"):
        raw(6, f"{op_.decode()}_of_{what}", HEAD + field(7, field(1, field(1, b"x") + (field(1, b"k") if op_ == b"SequenceAt" else b"") + field(2, b"y") + field(4, op_) + (
            attribute(b"to", 2, number(3, 7)) if op_ == b"Cast" else b"")) + field(5, number(2, 7) + field(8, b"k") + field(9, b"\0" * 8)) + field(
                11, field(1, b"x") + field(2, t_)) + field(12, field(1, b"y"))), EITHER)

# --- 6 and 8: bodies and functions ---

row(6, "sparse_and_dense_of_one_name", REFUSE, lambda f: (lambda m: (m.graph.sparse_initializer.append(h.make_sparse_tensor(
    numpy_helper.from_array(np.ones(1, np.float32), "w"), ints("", [1]), [4])), m.SerializeToString())[1])(onnx.ModelProto.FromString(model(
        [node("Neg", "w", "y")], init=[numpy_helper.from_array(np.ones(4, np.float32), "w")]))))
row(6, "cycle_through_a_branch_of_two", REFUSE, lambda f: model([
    node("If", "c", "a", then_branch=subgraph([node("Neg", "b", "r")], ["r"]), else_branch=subgraph([node("Neg", "x", "r")], ["r"])),
    node("If", "c", "b", then_branch=subgraph([node("Neg", "a", "r")], ["r"]), else_branch=subgraph([node("Neg", "x", "r")], ["r"]))],
    [F1, ("c", T.BOOL, [])], ["a"]))
row(6, "cycle_inside_a_body", REFUSE, lambda f: loop_model(3, loop_body([node("Add", "s,q", "t"), node("Neg", "t", "q")], [("s", "t")])))
row(6, "body_names_itself_twice", REFUSE, lambda f: loop_model(3, loop_body([node("Neg", "s", "t"), node("Abs", "s", "t")], [("s", "t")])))
row(6, "body_hides_an_outer_name", EITHER, lambda f: loop_model(3, loop_body([node("Neg", "s", "x"), node("Abs", "x", "t")], [("s", "t")])))
row(8, "branch_returns_the_condition", EITHER, lambda f: if_model(subgraph([], ["c"]), subgraph([node("Not", "c", "r")], ["r"])))
row(8, "branch_returns_a_capture", EITHER, lambda f: if_model(subgraph([], ["x"]), subgraph([node("Neg", "x", "r")], ["r"])))
row(8, "branches_without_outputs", REFUSE, lambda f: if_model(subgraph([], []), subgraph([], [])))
row(8, "if_with_two_inputs", REFUSE, lambda f: model([node("If", "c,c", "y", then_branch=subgraph([], ["x"]), else_branch=subgraph([], ["x"]))], [F1, ("c", T.BOOL, [])]))
row(8, "if_on_many_conditions", REFUSE, lambda f: model([node("If", "c", "y", then_branch=subgraph([], ["x"]), else_branch=subgraph([], ["x"]))], [F1, ("c", T.BOOL, [2, 2])]))
row(8, "if_on_no_condition", EITHER, lambda f: model([node("If", "c", "y", then_branch=subgraph([], ["x"]), else_branch=subgraph([], ["x"]))], [F1, ("c", T.BOOL, [0])]))
row(8, "branches_sequence_and_tensor", REFUSE, lambda f: if_model(subgraph([node("SequenceConstruct", "x", "r")], ["r"]), subgraph([], ["x"])))
row(8, "branches_of_other_sequences", EITHER, lambda f: if_model(
    subgraph([node("SequenceConstruct", "x", "r")], ["r"]), subgraph([node("Cast", "x", "q", to=T.INT64), node("SequenceConstruct", "q", "r")], ["r"])))
row(8, "loop_of_sequences_that_change_type", EITHER, lambda f: model([
    node("SequenceConstruct", "x", "s0"), node("Loop", "m,,s0", "s1", body=loop_body(
        [node("Cast", "x", "q", to=T.INT64), node("SequenceInsert", "s,q", "t")], [("s", "t")])), node("SequenceLength", "s1", "y")], [F1], init=[scalar("m", 3)]))
row(8, "loop_sequence_becomes_tensor", REFUSE, lambda f: model([
    node("SequenceConstruct", "x", "s0"), node("Loop", "m,,s0", "y", body=loop_body([node("SequenceAt", "s,i", "t")], [("s", "t")]))], [F1], init=[scalar("m", 3)]))
row(8, "loop_sequence_doubles", EITHER, lambda f: model([
    node("SequenceConstruct", "x", "s0"), node("Loop", "m,,s0", "s1", body=loop_body(
        [node("ConcatFromSequence", "s", "q", axis=0), node("SequenceInsert", "s,q", "t")], [("s", "t")])), node("SequenceLength", "s1", "y")], [F1], init=[scalar("m", 200)]))
row(8, "loop_sequence_grows_without_end", EITHER, lambda f: model([
    node("SequenceConstruct", "x", "s0"), node("Loop", ",,s0", "s1", body=loop_body(
        [node("SequenceInsert", "s,x", "t")], [("s", "t")])), node("SequenceLength", "s1", "y")], [F1]))
row(8, "loop_scans_of_other_shapes", EITHER, lambda f: loop_model(3, loop_body(
    [node("Neg", "s", "t"), node("Unsqueeze", "i,z", "j"), node("ConstantOfShape", "j", "q")], [("s", "t")], ["q"]), outs="y,w", init=[ints("z", [0])]))
row(8, "loop_scans_a_sequence", EITHER, lambda f: loop_model(3, loop_body([node("Neg", "s", "t"), node("SequenceConstruct", "s", "q")], [("s", "t")], ["q"]), outs="y,w"))
row(8, "loop_trip_count_of_rank_2", EITHER, lambda f: model([node("Loop", "m,,x", "y", body=loop_body([node("Neg", "s", "t")], [("s", "t")]))], [F1], init=[ints("m", [[3, 4]])]))
row(8, "loop_trip_count_is_float", REFUSE, lambda f: model([node("Loop", "m,,x", "y", body=loop_body([node("Neg", "s", "t")], [("s", "t")]))], [F1], init=[scalar("m", 3, np.float32)]))
row(8, "loop_condition_of_many", EITHER, lambda f: loop_model(3, loop_body([node("Neg", "s", "t"), node("Greater", "s,t", "d")], [("s", "t")], cond="d")))
row(8, "loop_more_outputs_than_results", REFUSE, lambda f: loop_model(3, loop_body([node("Neg", "s", "t")], [("s", "t")]), outs="y,z,w"))
row(8, "loop_fewer_outputs_than_results", EITHER, lambda f: model([node("Loop", "m,,x,x", "y", body=loop_body([node("Neg", "s", "t"), node("Abs", "u", "v")], [(
    "s", "t"), ("u", "v")]))], [F1], init=[scalar("m", 3)]))
row(8, "loop_carried_value_absent", REFUSE, lambda f: model([node("Loop", "m,,x,", "y,z", body=loop_body([node("Neg", "s", "t"), node("Abs", "u", "v")], [(
    "s", "t"), ("u", "v")]))], [F1], ["y", "z"], init=[scalar("m", 3)]))


def growing_loops(depth, axes):
    """Each level's carried value grows, so that every level is widened again inside every round of the next."""
    body = loop_body([node("Concat", "s0,s0", "t0", axis=0)], [("s0", "t0")])
    for d in range(1, depth):
        inner = node("Loop", f"m,c0,s{d}", f"q{d}", body=body)
        body = loop_body([inner, node("Concat", f"q{d},s{d}", f"t{d}", axis=d % axes)], [(f"s{d}", f"t{d}")])
    return loop_model(1, body, inputs=(("x", T.FLOAT, [1] * axes),))


for depth_ in (4, 8, 16, 40):
    for axes_ in (1, 3):
        row(8, f"growing_loops_{depth_}_deep_over_{axes_}_axes", EITHER, lambda f, d=depth_, a=axes_: growing_loops(d, a))
row(8, "sequence_map_with_an_absent_input", EITHER, lambda f: model([node("SequenceConstruct", "x,x", "s"), node("SequenceMap", "s,,x", "t", body=subgraph(
    [node("Add", "q,r", "p")], ["p"], [("q", T.FLOAT, None), ("w", T.FLOAT, None), ("r", T.FLOAT, None)])), node("SequenceAt", "t,k", "y")], [F1], init=[scalar("k", 0)]))
row(8, "sequence_map_of_a_tensor", REFUSE, lambda f: model([node("SequenceMap", "x", "t", body=subgraph(
    [node("Neg", "q", "p")], ["p"], [("q", T.FLOAT, None)])), node("SequenceAt", "t,k", "y")], [F1], init=[scalar("k", 0)]))
row(8, "sequence_map_of_two_lengths", EITHER, lambda f: model([node("SequenceConstruct", "x,x", "s"), node("SequenceConstruct", "x", "u"), node(
    "SequenceMap", "s,u", "t", body=subgraph([node("Add", "q,r", "p")], ["p"], [("q", T.FLOAT, None), ("r", T.FLOAT, None)])), node("SequenceAt", "t,k", "y")],
    [F1], init=[scalar("k", 0)]))
row(8, "sequence_map_gives_a_sequence", EITHER, lambda f: model([node("SequenceConstruct", "x,x", "s"), node("SequenceMap", "s", "t", body=subgraph(
    [node("SequenceConstruct", "q", "p")], ["p"], [("q", T.FLOAT, None)])), node("SequenceLength", "t", "y")], [F1]))
row(8, "scan_body_reads_what_comes_later", EITHER, lambda f: model([node("Scan", "s0,x", "y,z", num_scan_inputs=1, body=subgraph(
    [node("Add", "s,later", "t"), node("Neg", "q", "u")], ["t", "u"], [("s", T.FLOAT, [2]), ("q", T.FLOAT, [2])])), node("Neg", "s0", "later")],
    [("x", T.FLOAT, [3, 2]), ("s0", T.FLOAT, [2])], ["y", "z"]))
row(8, "scan_state_grows", EITHER, lambda f: model([node("Scan", "s0,x", "y,z", num_scan_inputs=1, body=subgraph(
    [node("Concat", "s,s", "t", axis=0), node("Neg", "q", "u")], ["t", "u"], [("s", T.FLOAT, None), ("q", T.FLOAT, [2])]))],
    [("x", T.FLOAT, [60, 2]), ("s0", T.FLOAT, [2])], ["y", "z"]))
for attr_ in ("scan_input_axes", "scan_output_axes", "scan_input_directions", "scan_output_directions"):
    for n_ in (0, 5, 1000):
        row(8, f"{attr_}_of_{n_}", EITHER, lambda f, a=attr_, n=n_: model([node("Scan", "s0,x", "y,z", num_scan_inputs=1, body=subgraph(
            [node("Add", "s,q", "t"), node("Neg", "q", "u")], ["t", "u"], [("s", T.FLOAT, [2]), ("q", T.FLOAT, [2])]), **{a: [0] * n})],
            [("x", T.FLOAT, [3, 2]), ("s0", T.FLOAT, [2])], ["y", "z"]))
row(8, "scan_of_other_lengths", REFUSE, lambda f: model([node("Scan", "x,w", "y", num_scan_inputs=2, body=subgraph(
    [node("Add", "q,r", "u")], ["u"], [("q", T.FLOAT, [2]), ("r", T.FLOAT, [2])]))], [("x", T.FLOAT, [3, 2]), ("w", T.FLOAT, [4, 2])]))


def refer(op, ins, outs, kind, name="a", to="p"):
    n = node(op, ins, outs)
    n.attribute.add(name=name, ref_attr_name=to, type=kind)
    return n


row(8, "reference_to_an_attribute_of_another_type", REFUSE, lambda f: model([call("f0", "x", "y", p="text")], [F1], extra_opsets=["d"], functions=[
    function("f0", [refer("LeakyRelu", "a", "r", 1, "alpha")], attributes=["p"])]))
row(8, "reference_to_what_nobody_gives", EITHER, lambda f: model([call("f0", "x", "y")], [F1], extra_opsets=["d"], functions=[
    function("f0", [refer("Flatten", "a", "r", 2, "axis")], attributes=["p"])]))
row(8, "reference_to_itself", EITHER, lambda f: model([call("f0", "x", "y")], [F1], extra_opsets=["d"], functions=[
    function("f0", [refer("f1", "a", "r", 1, "p")], attributes=["p"]), function("f1", [refer("LeakyRelu", "a", "r", 1, "alpha")], attributes=["p"])]))
row(8, "default_that_refers", EITHER, lambda f: model([call("f0", "x", "y")], [F1], extra_opsets=["d"], functions=[
    function("f0", [refer("LeakyRelu", "a", "r", 1, "alpha")], attribute_protos=[onnx.AttributeProto(name="p", ref_attr_name="p", type=1)])]))
row(8, "graph_as_an_attribute_of_a_function", EITHER, lambda f: model([call("f0", "x", "y", p=subgraph([node("Neg", "x", "r")], ["r"]))], [F1], extra_opsets=["d"], functions=[
    function("f0", [node("Cast", "a", "c", to=T.BOOL), (lambda n: (n.attribute.add(name="then_branch", ref_attr_name="p", type=5), n.attribute.add(
        name="else_branch", ref_attr_name="p", type=5), n)[2])(node("If", "c", "r"))], attributes=["p"])]))
row(8, "graph_that_calls_the_function_it_is_given_to", REFUSE, lambda f: model([call("f0", "x", "y", p=subgraph([call(
    "f0", "x", "r", p=subgraph([node("Neg", "x", "r")], ["r"]))], ["r"]))], [F1], extra_opsets=["d"], functions=[
        function("f0", [node("Cast", "a", "c", to=T.BOOL), (lambda n: (n.attribute.add(name="then_branch", ref_attr_name="q", type=5), n.attribute.add(
            name="else_branch", ref_attr_name="q", type=5), n)[2])(node("If", "c", "r"))], attributes=["p"])]))
row(8, "function_named_as_an_operator", EITHER, lambda f: model([node("Neg", "x", "y")], [F1], functions=[h.make_function(
    "", "Neg", ["a"], ["r"], [node("Neg", "a", "r")], [h.make_opsetid("", 17)])]))
row(8, "function_without_opsets", EITHER, lambda f: model([call("f0", "x", "y")], [F1], extra_opsets=["d"], functions=[h.make_function(
    "d", "f0", ["a"], ["r"], [node("Neg", "a", "r")], [])]))
row(8, "function_of_opset_minus_1", EITHER, lambda f: model([call("f0", "x", "y")], [F1], extra_opsets=["d"], functions=[h.make_function(
    "d", "f0", ["a"], ["r"], [node("Neg", "a", "r")], [h.make_opsetid("", -1)])]))
row(8, "function_inputs_of_one_name", REFUSE, lambda f: model([call("f0", "x,x", "y")], [F1], extra_opsets=["d"], functions=[function(
    "f0", [node("Neg", "a", "r")], ("a", "a"))]))
row(8, "function_makes_its_input", REFUSE, lambda f: fmodel([function("f0", [node("Neg", "a", "a")], ("a",), ("a",))]))
row(8, "function_gives_one_value_twice", EITHER, lambda f: model([call("f0", "x", "y,z")], [F1], ["y", "z"], extra_opsets=["d"], functions=[function(
    "f0", [node("Neg", "a", "r")], ("a",), ("r", "r"))]))
row(21, "functions_in_branches_20_deep", EITHER, lambda f: fmodel([function(f"f{i}", [node("Cast", "a", "c", to=T.BOOL), node(
    "If", "c", "r", then_branch=subgraph([call(f"f{i + 1}", "a", "q")], ["q"]), else_branch=subgraph([call(f"f{i + 1}", "a", "q")], ["q"]))]) for i in range(20)] + [
        function("f20", [node("Neg", "a", "r")])]))
row(21, "functions_in_loops_12_deep", EITHER, lambda f: fmodel([function(f"f{i}", [node("Loop", ",,a", "r", body=loop_body(
    [call(f"f{i + 1}", "s", "t")], [("s", "t")]))]) for i in range(12)] + [function("f12", [node("Concat", "a,a", "r", axis=0)])]))

# --- 9 and 18: sequences, optionals and strings where they do not belong ---

STRINGS = h.make_tensor("t", T.STRING, [2], [b"a", b"b"])
for op_, more_ in (("Add", 2), ("Concat", 2), ("Reshape", 2), ("Gather", 2), ("Neg", 1), ("Cast", 1), ("MatMul", 2), ("Where", 3), ("Slice", 3), ("Pad", 2), ("Expand", 2),
                   ("Transpose", 1), ("Shape", 1), ("Size", 1), ("ReduceSum", 1), ("Softmax", 1), ("Conv", 2), ("TopK", 2), ("NonZero", 1), ("Unique", 1), ("Tile", 2),
                   ("Equal", 2), ("Squeeze", 1), ("Unsqueeze", 2), ("ConstantOfShape", 1), ("Range", 3), ("OneHot", 3), ("ScatterND", 3), ("Identity", 1), ("Split", 1),
                   ("Flatten", 1), ("Compress", 2), ("EyeLike", 1), ("IsNaN", 1), ("Max", 2), ("Sum", 2), ("Clip", 3), ("LSTM", 3), ("Resize", 4), ("Einsum", 2),
                   ("Loop", 3), ("If", 1), ("SequenceAt", 2), ("SequenceInsert", 3), ("SequenceErase", 2), ("SequenceLength", 1), ("SplitToSequence", 2),
                   ("ConcatFromSequence", 1), ("SequenceConstruct", 2), ("StringNormalizer", 1), ("StringSplit", 1), ("StringConcat", 2), ("RegexFullMatch", 1),
                   ("LabelEncoder", 1), ("TfIdfVectorizer", 1), ("CumSum", 2), ("GridSample", 2), ("RoiAlign", 3), ("QuantizeLinear", 2), ("Attention", 3),
                   ("Optional", 1), ("OptionalHasElement", 1), ("OptionalGetElement", 1), ("ReverseSequence", 2), ("ImageDecoder", 1), ("DFT", 2), ("Trilu", 2)):
    attrs_ = {"Cast": {"to": T.INT64}, "Concat": {"axis": 0}, "ConcatFromSequence": {"axis": 0}, "StringConcat": {}, "RegexFullMatch": {"pattern": "a*"}, "Einsum": {
        "equation": "i,i->i"}, "LSTM": {"hidden_size": 2}, "TfIdfVectorizer": {"max_gram_length": 1, "max_skip_count": 0, "min_gram_length": 1, "mode": "TF", "ngram_counts": [
            0], "ngram_indexes": [0], "pool_strings": ["a"]}, "LabelEncoder": {"keys_strings": ["a"], "values_int64s": [4]}}.get(op_, {})
    if op_ == "Loop":
        attrs_ = {"body": loop_body([node("Identity", "s", "t")], [("s", "t")])}
    if op_ == "If":
        attrs_ = {"then_branch": subgraph([], ["x"]), "else_branch": subgraph([], ["x"])}
    domain_ = "ai.onnx.ml" if op_ == "LabelEncoder" else ""
    for form in ("sequence", "optional", "strings", "sequence_of_strings", "empty_sequence", "tensor_among"):
        def make(f, op=op_, count=more_, attrs=attrs_, form=form, domain=domain_):
            before = {"sequence": [node("SequenceConstruct", "x,x", "q")], "optional": [node("Optional", "x", "q")], "strings": [node("Identity", "t", "q")],
                      "sequence_of_strings": [node("SequenceConstruct", "t,t", "q")], "empty_sequence": [node("SequenceEmpty", "", "q")],
                      "tensor_among": [node("SequenceConstruct", "x,x", "q")]}[form]
            ins = ["q"] * count if form != "tensor_among" else (["x"] + ["q"] * (count - 1) if count > 1 else ["q"])
            return model([*before, h.make_node(op, ins, ["y"], domain=domain, **attrs)], [F1], init=[STRINGS], opset=21, extra_opsets=["ai.onnx.ml"] if domain else [])
        row(9, f"{op_}_of_{form}", EITHER, make)
row(18, "sequence_of_mixed_types", REFUSE, lambda f: model([node("Cast", "x", "i", to=T.INT64), node("SequenceConstruct", "x,i", "s"), node("SequenceLength", "s", "y")], [F1]))
row(18, "concat_of_mixed_ranks", REFUSE, lambda f: model([node("Unsqueeze", "x,z", "u"), node("SequenceConstruct", "x,u", "s"), node(
    "ConcatFromSequence", "s", "y", axis=0)], [F1], init=[ints("z", [0])]))
row(18, "concat_of_no_members", EITHER, lambda f: model([node("SequenceEmpty", "", "s"), node("ConcatFromSequence", "s", "y", axis=0)], [F1]))
for axis_ in (BIG, MIN, -5, 5, -2, 1):
    row(18, f"concat_from_sequence_axis_{axis_}", EITHER, lambda f, a=axis_: model([node("SequenceConstruct", "x,x", "s"), node(
        "ConcatFromSequence", "s", "y", axis=a, new_axis=1)], [F1]))
    row(18, f"split_to_sequence_axis_{axis_}", EITHER, lambda f, a=axis_: model([node("SplitToSequence", "x", "s", axis=a), node("SequenceLength", "s", "y")], [F1]))
for parts_ in ([0], 0, -1, BIG, MIN, [1, -1, 2], [BIG, BIG], [3, -1], [], [[1, 1]]):
    row(18, f"split_to_sequence_of_{parts_}", EITHER, lambda f, p=parts_: model([node("SplitToSequence", "x,p", "s"), node("SequenceLength", "s", "y")], [F1], init=[ints("p", p)]))

# --- 10 to 13: tensors ---


def sparse_value(dims, values, indices, index_type=np.int64, value_dims=None, index_dims=None):
    """A Constant with a sparse tensor."""
    s = onnx.SparseTensorProto(dims=dims)
    s.values.CopyFrom(values if isinstance(values, onnx.TensorProto) else numpy_helper.from_array(np.array(values, np.float32), "v"))
    s.indices.CopyFrom(numpy_helper.from_array(np.array(indices, index_type), "i"))
    if value_dims is not None:
        del s.values.dims[:]
        s.values.dims.extend(value_dims)
    if index_dims is not None:
        del s.indices.dims[:]
        s.indices.dims.extend(index_dims)
    n = node("Constant", "", "c")
    n.attribute.add(name="sparse_value", type=11).sparse_tensor.CopyFrom(s)
    return model([n, node("Identity", "c", "y")], [])


row(13, "constant_sparse_fine", RUN, lambda f: sparse_value([4], [1, 2], [0, 3]))
for bad in ([4], [-1], [BIG], [MIN], [2**32]):
    row(13, f"constant_sparse_index_{bad[0]}", REFUSE, lambda f, b=bad: sparse_value([4], [1], b))
    row(13, f"constant_sparse_pair_{bad[0]}", REFUSE, lambda f, b=bad: sparse_value([4, 4], [1], [[0, *b]]))
row(13, "constant_sparse_int32_indices", EITHER, lambda f: sparse_value([4], [1], [0], np.int32))
row(13, "constant_sparse_float_indices", REFUSE, lambda f: sparse_value([4], [1], [0], np.float32))
row(13, "constant_sparse_strings", EITHER, lambda f: sparse_value([4], STRINGS, [0, 1]))
row(13, "constant_sparse_scalar", EITHER, lambda f: sparse_value([], [1], [0]))
row(13, "constant_sparse_of_rank_1000", REFUSE, lambda f: sparse_value([1] * 1000, [1], [0]))
row(13, "constant_sparse_of_nothing", EITHER, lambda f: sparse_value([0, 2**40], np.zeros(0), np.zeros(0, np.int64)))
row(13, "constant_sparse_values_of_rank_2", REFUSE, lambda f: sparse_value([4], [1, 2], [0, 1], value_dims=[2, 1]))
row(13, "constant_sparse_indices_empty_but_wide", REFUSE, lambda f: sparse_value([4, 4], [1], [[0, 0]], index_dims=[1, 1, 2]))
for attr_, v_ in (("value_int", MIN), ("value_ints", []), ("value_float", float("nan")), ("value_floats", []), ("value_string", b"\xff\0"), ("value_strings", [])):
    row(11, f"constant_{attr_}", EITHER, lambda f, a=attr_, v=v_: (lambda n: (n.attribute.add(name=a, type={"value_int": 2, "value_ints": 7, "value_float": 1, "value_floats": 6,
        "value_string": 3, "value_strings": 8}[a], **({"i": v} if a == "value_int" else {"f": v} if a == "value_float" else {"s": v} if a == "value_string" else {})),
        model([n], []))[1])(node("Constant", "", "y")))
row(11, "constant_of_two_values", REFUSE, lambda f: model([node("Constant", "", "y", value_int=1, value_float=2.0)], []))
row(11, "constant_of_no_value", REFUSE, lambda f: model([node("Constant", "", "y")], []))
row(10, "constant_of_shape_with_two_values", EITHER, lambda f: model([node("ConstantOfShape", "s", "y", value=ints("v", [1, 2]))], [], init=[ints("s", [3])]))
row(10, "constant_of_shape_of_strings", EITHER, lambda f: model([node("ConstantOfShape", "s", "y", value=STRINGS)], [], init=[ints("s", [3])]))
raw(10, "dims_in_a_segment", HEAD + field(7, field(5, number(1, 2) + number(2, 1) + field(3, number(1, 0) + number(2, 1)) + field(8, b"w") + field(9, b"\0" * 8)) + field(12, field(1, b"w"))), EITHER)
raw(15, "external_and_raw", HEAD + field(7, field(5, number(1, 2) + number(2, 1) + field(8, b"w") + field(9, b"\0" * 8) + number(14, 1) + field(13, field(1, b"location") + field(
    2, b"model.onnx"))) + field(12, field(1, b"w"))), EITHER)
raw(15, "external_strings", HEAD + field(7, field(5, number(1, 2) + number(2, 8) + field(8, b"w") + number(14, 1) + field(13, field(1, b"location") + field(
    2, b"model.onnx"))) + field(12, field(1, b"w"))))
raw(15, "data_location_99", HEAD + field(7, field(5, number(1, 2) + number(2, 1) + field(8, b"w") + field(9, b"\0" * 8) + number(14, 99)) + field(12, field(1, b"w"))), EITHER)


def overlapping(folder):
    with open(os.path.join(folder, "data"), "wb") as f:
        f.write(np.arange(64, dtype=np.float32).tobytes())
    parts = b"".join(field(5, number(1, 16) + number(2, 1) + field(8, b"w%d" % i) + number(14, 1) + field(13, field(1, b"location") + field(2, b"data")) + field(
        13, field(1, b"offset") + field(2, b"%d" % (i * 3)))) for i in range(32))
    nodes = b"".join(field(1, field(1, b"w%d" % i) + field(1, b"x") + field(2, b"y%d" % i) + field(4, b"Add")) for i in range(32))
    outs = b"".join(field(12, field(1, b"y%d" % i)) for i in range(32))
    return HEAD + field(7, nodes + parts + field(11, value(b"x", 1, (16,))) + outs)


row(15, "overlapping_and_not_aligned", RUN, overlapping)

# --- 17, 19 and 21: strings and texts that grow ---

row(21, "string_of_a_float_by_the_million", EITHER, lambda f: model([node("Expand", "x,s", "e"), node("Cast", "e", "t", to=T.STRING), node("StringConcat", "t,t", "u"), node(
    "Shape", "u", "y")], [F1], opset=21, init=[ints("s", [1000000, 2])]))
row(21, "string_split_to_many", EITHER, lambda f: model([node("StringSplit", "t", "y,z", delimiter="a")], [], ["y", "z"], [h.make_tensor("t", T.STRING, [1], [b"a" * 3000000])], opset=20))
row(21, "string_split_wide_and_long", EITHER, lambda f: model([node("StringSplit", "t", "y,z", delimiter="a")], [], ["y", "z"], [h.make_tensor(
    "t", T.STRING, [20001], [b"a" * 200000] + [b""] * 20000)], opset=20))
row(21, "unique_of_a_million_strings", EITHER, lambda f: model([node("Tile", "t,r", "u"), node("Unique", "u", "y")], [], init=[STRINGS, ints("r", [1000000])]))
row(19, "einsum_of_no_operands", REFUSE, lambda f: model([node("Einsum", "", "y", equation="->")], []))
row(19, "einsum_of_absent_operands", REFUSE, lambda f: model([node("Einsum", "x,,x", "y", equation="i,i,i->i")], [F1]))
for v_ in (0, -1, 2, 7, 2**31, 2**62, BIG, MIN):
    row(16, f"deform_groups_{v_}", EITHER, lambda f, v=v_: model([node("DeformConv", "x,w,o", "y", offset_group=v)], [x_input(1, 2, 5, 5)], opset=19, init=[
        numpy_helper.from_array(np.ones((2, 2, 3, 3), np.float32), "w"), numpy_helper.from_array(np.ones((1, 18, 3, 3), np.float32), "o")]))
    row(16, f"lp_pool_p_{v_}", EITHER, lambda f, v=v_: model([node("LpPool", "x", "y", kernel_shape=[2, 2], p=v)], [x_input(1, 2, 5, 5)]))
    row(16, f"split_axis_{v_}", EITHER, lambda f, v=v_: model([node("Split", "x", "y,z", axis=v)], [x_input(2, 4)], ["y", "z"]))
    row(16, f"top_k_axis_{v_}", EITHER, lambda f, v=v_: model([node("TopK", "x,k", "y,z", axis=v)], [x_input(2, 4)], ["y", "z"], [ints("k", [1])]))
    row(16, f"reverse_sequence_axis_{v_}", EITHER, lambda f, v=v_: model([node("ReverseSequence", "x,k", "y", time_axis=v, batch_axis=1)], [x_input(2, 4)], init=[ints("k", [1] * 4)]))
    row(16, f"unique_axis_{v_}", EITHER, lambda f, v=v_: model([node("Unique", "x", "y", axis=v)], [x_input(2, 4)]))
    row(16, f"compress_axis_{v_}", EITHER, lambda f, v=v_: model([node("Compress", "x,k", "y", axis=v)], [x_input(2, 4)], init=[ints("k", [1, 0], bool)]))
    row(16, f"dequantize_axis_{v_}", EITHER, lambda f, v=v_: model([node("DequantizeLinear", "q,s", "y", axis=v)], [("q", T.INT8, [2, 4])], init=[
        numpy_helper.from_array(np.ones(4, np.float32), "s")]))
    row(16, f"lp_normalization_{v_}", EITHER, lambda f, v=v_: model([node("LpNormalization", "x", "y", axis=v, p=2)], [x_input(2, 4)]))
    row(16, f"lp_normalization_p_{v_}", EITHER, lambda f, v=v_: model([node("LpNormalization", "x", "y", p=v)], [x_input(2, 4)]))
    row(16, f"one_hot_encoder_{v_}", EITHER, lambda f, v=v_: model([h.make_node("OneHotEncoder", ["x"], ["y"], domain="ai.onnx.ml", cats_int64s=[v, v])], [
        ("x", T.INT64, [2])], extra_opsets=["ai.onnx.ml"]))
    for op_ in ("BlackmanWindow", "HammingWindow"):
        row(16, f"{op_}_{v_}", EITHER, lambda f, v=v_, o=op_: model([node(o, "n", "y", periodic=v, output_datatype=v)], [], init=[scalar("n", 5)]))
    row(16, f"random_normal_like_{v_}", EITHER, lambda f, v=v_: model([node("RandomNormalLike", "x", "y", dtype=v)], [F1]))
    row(16, f"max_unpool_strides_{v_}", EITHER, lambda f, v=v_: model([node("MaxUnpool", "x,i", "y", kernel_shape=[2, 2], strides=[v, v])], [x_input(1, 1, 2, 2)], init=[
        ints("i", [[[[0, 1], [2, 3]]]])]))
    row(16, f"center_crop_axes_{v_}", EITHER, lambda f, v=v_: model([node("CenterCropPad", "x,s", "y", axes=[v])], [x_input(2, 4)], opset=18, init=[ints("s", [3])]))
    row(16, f"resize_axes_{v_}", EITHER, lambda f, v=v_: model([node("Resize", "x,,,s", "y", axes=[v])], [x_input(2, 4)], opset=18, init=[ints("s", [3])]))
    row(16, f"pad_axes_{v_}", EITHER, lambda f, v=v_: model([node("Pad", "x,p,,a", "y")], [x_input(2, 4)], opset=18, init=[ints("p", [1, 1]), ints("a", [v])]))
    row(16, f"bit_cast_{v_}", EITHER, lambda f, v=v_: model([node("BitCast", "x", "y", to=v)], [F1], opset=26))


def main():
    import sys

    import hostile
    hostile.CASES = CASES[FIRST:]
    return hostile.main() if len(CASES) > FIRST else sys.exit("no cases")


if __name__ == "__main__":
    import sys
    sys.exit(main())
