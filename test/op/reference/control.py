# SPDX-License-Identifier: MIT
"""Operators with bodies, as whole programs: if, loop, scan_slice, pointwise, group, select_module."""
import numpy as np
from make_cases import T, Tuple

F = "float_type, "
CAPTURE = '''
module: "main"
c = @param:c -> bool_type, {1}, {1}
x = @param:x -> float_type, {2, 3}, {3, 1}
@2 = if(c), [yes, no]
@3 = get_tuple_elem[index=0](@2)
@4 = get_tuple_elem[index=1](@2)
@5 = @return(@3,@4)

module: "yes"
yes:@0 = add(x,x)
yes:@1 = slice[axes={1},starts={1},ends={3}](x)
yes:@2 = @return(yes:@0,yes:@1)

module: "no"
no:@0 = mul(x,x)
no:@1 = @return(no:@0,x)
'''


def branches(w):
    x = w.random("float", (2, 3))
    w.program(CAPTURE, [x, T("bool", [1])], [T("float", x.a + x.a), T("float", x.a[:, 1:])])
    w.program(CAPTURE, [x, T("bool", [0])], [T("float", x.a * x.a), x])
    w.program(CAPTURE.replace("bool_type, {1}, {1}", "bool_type, {2}, {1}"), [x, T("bool", [1, 1])], aborts="if: condition has 2 elements")
    w.program(CAPTURE.replace("@return(no:@0,x)", "@return(no:@0)"), [], fails="if: one branch has 2 results, the other 1")
    w.program(CAPTURE.replace("no:@0 = mul(x,x)", "no:@0 = isnan(x)"), [], fails="if: result 0 is float_type in one branch, bool_type in the other")
    # ranks that differ: nothing but the type is known before the run
    ranks = CAPTURE.replace("no:@0 = mul(x,x)", "no:@0 = reshape[dims={6}](x)")
    w.program(ranks, [x, T("bool", [0])], [T("float", x.a.reshape(6)), x])


LOOP = '''
module: "main"
x = @param:x -> float_type, {2}, {1}
c = @param:c -> bool_type, {1}, {1}
n = @param:n -> int64_type, {1}, {1}
@3 = loop[max_iterations=0,scan_output_directions={DIR}](n,c,x), [body]
@4 = get_tuple_elem[index=0](@3)
@5 = get_tuple_elem[index=1](@3)
@6 = @return(@4,@5)

module: "body"
body:v = @param:v -> float_type, {2}, {1}
body:k = @param:k -> bool_type, {1}, {0}
body:i = @param:i -> int64_type, {1}, {0}
body:@3 = convert[target_type=2](body:i)
body:@4 = multibroadcast[out_lens={2}](body:@3)
body:@5 = add(body:v,body:@4)
body:@6 = mul(body:@5,body:v)
body:@7 = COND
body:@8 = @return(body:@7,body:@5,body:@6)
'''


def loops(w):
    def run(x, n, until=None, backwards=False):
        v, rows = x.a, []
        for i in range(n):
            u = v + i
            rows.append(u * v)
            v = u
            if until and i >= until:
                break
        rows = rows[::-1] if backwards else rows
        return [T("float", v), T("float", np.array(rows).reshape(-1, 2))]

    plain = LOOP.replace("DIR", "").replace("COND", "identity(body:k)")
    x = w.random("float", (2,))
    one = lambda n, c=1: [T("int64", [n]), T("bool", [c]), x]
    for n in (0, 1, 4):
        w.program(plain, one(n), run(x, n))
    w.program(plain, one(-5), run(x, 0))
    w.program(plain, one(4, 0), run(x, 0))
    w.program(LOOP.replace("DIR", "1").replace("COND", "identity(body:k)"), one(4), run(x, 4, backwards=True))
    # the condition ends it: i < 2 holds in rounds 0 and 1
    text = LOOP.replace("DIR", "").replace("body:@7 = COND", "body:two = @literal{2} -> int64_type, {1}, {0}\nbody:@7 = less(body:i,body:two)")
    w.program(text, one(10), run(x, 10, until=2))
    w.program(plain.replace("max_iterations=0", "max_iterations=3"), one(9223372036854775807), aborts="loop: still running after 3 iterations")
    w.program(plain.replace("max_iterations=0", "max_iterations=3"), one(9), run(x, 3))
    w.program(plain.replace("@return(body:@7,body:@5,body:@6)", "@return(body:@7)"), [], fails="loop: body has 1 results, needs at least 2")
    w.program(plain.replace("(n,c,x), [body]", "(n,c,x)"), [], fails="loop: takes one module, given 0")
    # a carried value that grows
    grows = '''
module: "main"
x = @param:x -> float_type, {2}, {1}
t = @literal{1} -> bool_type, {1}, {1}
n = @literal{3} -> int64_type, {1}, {1}
@3 = loop[max_iterations=0,scan_output_directions={}](n,t,x), [body]
@4 = get_tuple_elem[index=0](@3)
@5 = @return(@4)

module: "body"
body:v = @param:v -> dynamic, float_type, {[0..1000]}
body:k = @param:k -> bool_type, {1}, {0}
body:i = @param:i -> int64_type, {1}, {0}
body:@3 = concat[axis=0](body:v,x)
body:@4 = @return(body:k,body:@3)
'''
    w.program(grows, [x], [T("float", np.tile(x.a, 4))])
    # a row is as long as a round would make it, where no round says so
    rows = grows.replace("x = @param:x -> float_type, {2}, {1}", "x = @param:x -> dynamic, float_type, {[0..9]}")
    rows = rows.replace("n = @literal{3} -> int64_type, {1}, {1}", "n = @param:n -> int64_type, {1}, {1}").replace("body:@4 = @return(body:k,body:@3)", "body:@4 = @return(body:k,body:v,body:@3)")
    rows = rows.replace("@5 = @return(@4)", "@5 = get_tuple_elem[index=1](@3)\n@6 = @return(@4,@5)")
    for n in (0, 2):
        w.program(rows, [T("int64", [n]), x], [x, T("float", np.tile(x.a, (n, 2)))])
    # rows cut from an outer tensor: what Scan becomes
    scan = '''
module: "main"
x = @param:x -> float_type, {2, 3}, {3, 1}
t = @literal{1} -> bool_type, {1}, {1}
n = @literal{3} -> int64_type, {1}, {1}
@3 = loop[max_iterations=0,scan_output_directions={0, 1}](n,t), [body]
@4 = get_tuple_elem[index=0](@3)
@5 = get_tuple_elem[index=1](@3)
@6 = @return(@4,@5)

module: "body"
body:k = @param:k -> bool_type, {1}, {0}
body:i = @param:i -> int64_type, {1}, {0}
body:@2 = scan_slice[axis=1,direction=0](x,body:i)
body:@3 = squeeze[axes={1}](body:@2)
body:@4 = scan_slice[axis=1,direction=1](x,body:i)
body:@5 = squeeze[axes={1}](body:@4)
body:@6 = @return(body:k,body:@3,body:@5)
'''
    x = w.random("float", (2, 3))
    w.program(scan, [x], [T("float", x.a.T), T("float", x.a.T)])


def slices(w):
    x = w.random("float", (3, 4))
    w.case("scan_slice[axis=0,direction=0]", [x, T("int64", 1)], x.a[1:2], strides=(4, 1))
    w.case("scan_slice[axis=1,direction=1]", [x, T("int64", [0])], x.a[:, 3:4])
    w.case("scan_slice[axis=0,direction=0]", [x, T("int64", 3)], aborts="scan_slice: index 3 is out of range for axis 0 of length 3")
    w.case("scan_slice[axis=2,direction=0]", [x, T("int64", 1)], fails="scan_slice: axis 2 is out of range for rank 2")


POINTWISE = '''
module: "main"
b = @param:b -> float_type, {2, 3}, {0, 1}
a = @param:a -> float_type, {2, 3}, {3, 1}
@2 = pointwise(a,b), [body]
RETURN

module: "body"
x1 = @param:x1 -> float_type, {1}, {0}
x0 = @param:x0 -> float_type, {1}, {0}
two = @literal{2} -> float_type, {1}, {0}
body:@3 = mul(x0,two)
body:@4 = add(body:@3,x1)
body:@5 = relu(body:@4)
BODY
'''


def bodies(w):
    a, b = w.random("float", (2, 3)), w.broadcast("float", (2, 3), (0,))
    one = POINTWISE.replace("RETURN", "@3 = @return(@2)").replace("BODY", "body:@6 = @return(body:@5)")
    y = np.maximum(2 * a.a + b.a, 0)
    w.program(one, [a, b], [T("float", y)])
    text = POINTWISE.replace("RETURN", "@3 = get_tuple_elem[index=0](@2)\n@4 = get_tuple_elem[index=1](@2)\n@5 = @return(@3,@4)")
    text = text.replace("BODY", "body:@6 = greater(x0,x1)\nbody:@7 = convert[target_type=0](body:@6)\nbody:@8 = @return(body:@5,body:@7)")
    w.program(text, [a, b], [T("float", y), T("bool", a.a > b.a)])
    w.program(one.replace("pointwise(a,b)", "pointwise(a)"), [], fails="pointwise: Wrong number of arguments: expected 2 but given 1")
    w.program(one.replace("{2, 3}, {0, 1}", "{2, 4}, {0, 1}"), [], fails="pointwise: Dimensions do not match")
    w.program(one.replace("pointwise(a,b), [body]", "pointwise(a,b)"), [], fails="pointwise: should have one submodule, given 0")
    for op in ("group[tag=attention]", "run_on_target[target_id=1]"):
        inner = f'''
module: "main"
b = @param:b -> float_type, {{3}}, {{1}}
a = @param:a -> float_type, {{3}}, {{1}}
@2 = {op}(a,b), [body]
@3 = @return(@2)

module: "body"
y = @param:y -> float_type, {{3}}, {{1}}
x = @param:x -> float_type, {{3}}, {{1}}
body:@2 = sub(x,y)
body:@3 = @return(body:@2)
'''
        p, q = w.random("float", (3,)), w.random("float", (3,))
        w.program(inner, [p, q], [T("float", p.a - q.a)])
    select = '''
module: "main"
x = @param:x -> dynamic, float_type, {[1..3]}
@1 = select_module[output_dyn_shapes={[1..3]}](x), [dim_1, dim_2]
@2 = get_tuple_elem[index=0](@1)
@3 = @return(@2)

module: "dim_1"
dim_1:x = @param:x -> float_type, {1}, {1}
dim_1:@1 = add(dim_1:x,dim_1:x)
dim_1:@2 = @return(dim_1:@1)

module: "dim_2"
dim_2:x = @param:x -> float_type, {2}, {1}
dim_2:@1 = mul(dim_2:x,dim_2:x)
dim_2:@2 = @return(dim_2:@1)
'''.replace("[output_dyn_shapes={[1..3]}]", "[output_dyn_shapes={dynamic, float_type, {[1..3]}}]")
    for n, f in [(1, lambda v: v + v), (2, lambda v: v * v)]:
        x = w.random("float", (n,))
        w.program(select, [x], [T("float", f(x.a))])
    w.program(select, [w.random("float", (3,))], aborts="SELECT_MODULE: no compatible submodules found for given input shapes")


SCAN = """
module: "main"
q = @param:q -> float_type, {3, 2}, {2, 1}
p = @param:p -> float_type, {2, 3}, {3, 1}
s = @param:s -> float_type, {2}, {1}
@3 = scan[ATTRS](s,p,q), [body]
@4 = get_tuple_elem[index=0](@3)
@5 = get_tuple_elem[index=1](@3)
@6 = @return(@4,@5)

module: "body"
body:b = @param:b -> float_type, {2}, {1}
body:a = @param:a -> float_type, {2}, {1}
body:s = @param:s -> float_type, {2}, {1}
body:@3 = mul(body:a,body:b)
body:@4 = add(body:s,body:@3)
body:@5 = sub(body:@4,body:a)
body:@6 = @return(body:@4,body:@5)
"""
SCAN_ATTRS = "num_scan_inputs=2,scan_input_axes={1, 0},scan_input_directions={%d, 0},scan_output_axes={%d},scan_output_directions={%d}"


def scans(w):
    s, p, q = w.random("float", (2,)), w.random("float", (2, 3)), w.random("float", (3, 2))
    for back, axis, out_back in [(0, 0, 0), (1, 1, 0), (0, -1, 1), (1, 0, 1)]:
        state, rows = s.a, []
        for t in range(3):
            a = p.a[:, 2 - t if back else t]
            state = state + a * q.a[t]
            rows.append(state - a)
        rows = np.stack(rows[::-1] if out_back else rows, axis)
        text = SCAN.replace("ATTRS", SCAN_ATTRS % (back, axis, out_back))
        w.program(text, [s, p, q], [T("float", state), T("float", rows)])
    empty = SCAN.replace("ATTRS", SCAN_ATTRS % (0, 0, 0)).replace("{3, 2}, {2, 1}", "{0, 2}, {2, 1}").replace("{2, 3}, {3, 1}", "{2, 0}, {0, 1}")
    w.program(empty, [s, T("float", np.zeros((2, 0))), T("float", np.zeros((0, 2)))], [s, T("float", np.zeros((0, 2)))])
    for axis, lens in ((0, (0, 2)), (-1, (2, 0))):  # lengths that only a round would show
        text = empty.replace(SCAN_ATTRS % (0, 0, 0), SCAN_ATTRS % (0, axis, 0)).replace("float_type, {2}, {1}", "dynamic, float_type, {[0..9]}")
        for fixed in ("{2, 0}, {0, 1}", "{0, 2}, {2, 1}"):
            text = text.replace("float_type, " + fixed, "dynamic, float_type, {[0..9], [0..9]}")
        w.program(text, [s, T("float", np.zeros((2, 0))), T("float", np.zeros((0, 2)))], [s, T("float", np.zeros(lens))])
    bad = SCAN.replace("ATTRS", SCAN_ATTRS % (0, 0, 0))
    w.program(bad.replace("{3, 2}, {2, 1}", "{4, 2}, {2, 1}"), [], fails="scan: sequences have lengths 3 and 4")
    w.program(bad.replace("num_scan_inputs=2", "num_scan_inputs=4"), [], fails="scan: num_scan_inputs is 4, there are 3 inputs")
    w.program(bad.replace("(s,p,q), [body]", "(s,p,q)"), [], fails="scan: takes one module, given 0")
    w.program(bad.replace("scan_output_axes={0}", "scan_output_axes={2}"), [], fails="scan: axis 2 is out of range for rank 2")
    w.program(bad.replace("@return(body:@4,body:@5)", "@return(body:@4,body:@5)").replace("body:@4 = add(body:s,body:@3)", "body:@4 = greater(body:s,body:@3)").replace("sub(body:@4,body:a)", "sub(body:b,body:a)").replace("@return(body:@4,", "@return(body:k,").replace("body:@6", "body:k = isnan(body:a)\nbody:@6"), [], fails="scan: state 0 is float_type, the body makes it bool_type")


def joins(w):
    # tuples and sequences through branches: what is declared holds for both
    text = CAPTURE.replace("@3 = get_tuple_elem[index=0](@2)\n@4 = get_tuple_elem[index=1](@2)", "@3 = get_tuple_elem[index=0](@2)\n@s = get_tuple_elem[index=1](@2)\n@4 = sequence_length(@s)")
    text = text.replace("yes:@2 = @return(yes:@0,yes:@1)", "yes:@2 = sequence_construct(x,yes:@1)\nyes:@3 = @return(yes:@0,yes:@2)")
    text = text.replace("no:@1 = @return(no:@0,x)", "no:@1 = sequence_construct[dtype=2]()\nno:@2 = @return(no:@0,no:@1)")
    x = w.random("float", (2, 3))
    w.program(text, [x, T("bool", [1])], [T("float", x.a + x.a), T("int64", 2)])
    w.program(text, [x, T("bool", [0])], [T("float", x.a * x.a), T("int64", 0)])
    # the pad to the largest lengths knows them from its declaration
    pads = """
module: "main"
x = @param:x -> dynamic, float_type, {[1..3], 2}
@1 = fixed_pad(x) -> float_type, {3, 2}, {2, 1}
@2 = @return(@1)
"""
    for n in (1, 3):
        x = w.random("float", (n, 2))
        w.program(pads, [x], [T("float", np.pad(x.a, [(0, 3 - n), (0, 0)]))])
    w.program(pads, [w.random("float", (4, 2))], aborts='module "main" takes x as dynamic, float_type, {[1..3], 2}, given float_type, {4, 2}, {2, 1}')


BODY = '''
module: "main"
c = @param:c -> bool_type, {1}, {0}
x = @param:x -> float_type, {4}, {1}
@2 = CALL, [body] -> SHAPE
@3 = @return(@2)

module: "body"
body:PARAM = @param:x0 -> TAKES
body:@1 = relu(body:PARAM)
body:@2 = @return(body:@1)
'''


def misfits(w):
    # a body is handed what its parameters say, and one that is fused reads nothing from outside
    def one(call, takes, says, given=F + "{4}, {1}", shape=None):
        text = BODY.replace("CALL", call).replace(" -> SHAPE", " -> " + shape if shape else "")
        name = call.split("[")[0].split("(")[0]
        w.program(text.replace("TAKES", takes).replace("PARAM", "x0"), [],
                  fails=f'{name}: module "body" takes x0 as {says or takes}, given {given}')
    for call in ("group[tag=epilogue](x)", "run_on_target[target_id=0](x)", "fused_reduce[axes={0}](x)"):
        one(call, F + "{50000000}, {1}", None)
        one(call, F + "{2, 2}, {2, 1}", None)
        one(call, "half_type, {4}, {1}", None)
        one(call, "dynamic, float_type, {[1..3]}", None)
    one("pointwise(x)", "half_type, {1}, {0}", None, F + "{1}, {0}")
    one("pointwise(x)", F + "{4}, {1}", None, F + "{1}, {0}")
    closed = BODY.replace(" -> SHAPE", "").replace("PARAM", "x0")
    for call, takes in (("group[tag=epilogue](x)", "{4}, {1}"), ("fused_reduce[axes={0}](x)", "{4}, {1}"), ("pointwise(x)", "{1}, {0}")):
        name = call.split("[")[0].split("(")[0]
        text = closed.replace("CALL", call).replace("TAKES", F + takes)
        why = f'{name}: module "body" reads a value of module "main"'
        w.program(text.replace("@return(body:@1)", "@return(x)"), [], fails=why)
        w.program(text.replace("relu(body:x0)", "relu(x)"), [], fails=why)
    lines = closed.replace("CALL", "pointwise(x)").replace("TAKES", F + "{1}, {1}")
    w.program(lines.replace("relu(body:x0)", "reduce_sum[axes={0}](body:x0)"), [],
              fails='pointwise: submodule "body" holds reduce_sum, which is not element-wise')
    w.program(lines.replace("body:@1 = relu(body:x0)", "body:two = @literal{1, 2} -> float_type, {2}, {1}\nbody:@1 = relu(body:x0)"), [],
              fails='pointwise: submodule "body" holds a value of @literal that is no scalar')
    taken = BODY.replace(" -> SHAPE", "").replace("CALL, [body]", "if(c,x), [body, body]").replace("PARAM", "x0")
    w.program(taken.replace("TAKES", F + "{5}, {1}"), [], fails='if: module "body" takes x0 as float_type, {5}, {1}, given float_type, {4}, {1}')
    w.program(taken.replace("TAKES", F + "{4}, {1}").replace("if(c,x)", "if(c)"), [], fails="if: Wrong number of arguments: expected 1 but given 0")
    branches_by_name(w)
    plain = LOOP.replace("DIR", "0").replace("COND", "identity(body:k)")
    w.program(plain.replace("body:v = @param:v -> float_type, {2}, {1}", "body:v = @param:v -> float_type, {1}, {1}").replace("out_lens={2}", "out_lens={1}"), [],
              fails='loop: module "body" takes v as float_type, {1}, {1}, given float_type, {2}, {1}')
    w.program(plain.replace("body:i = @param:i -> int64_type", "body:i = @param:i -> int32_type"), [],
              fails='loop: module "body" takes i as int32_type, {1}, {0}, given int64_type, {1}, {0}')
    scan = SCAN.replace("ATTRS", SCAN_ATTRS % (0, 0, 0))
    w.program(scan.replace("body:b = @param:b -> float_type, {2}, {1}", "body:b = @param:b -> float_type, {3}, {1}").replace("mul(body:a,body:b)", "mul(body:a,body:a)"), [],
              fails='scan: module "body" takes b as float_type, {3}, {1}, given float_type, {2}, {1}')
    # what only the run shows: a value that outgrows the parameter it is handed on to
    grows = plain.replace("@return(body:@7,body:@5,body:@6)", "@return(body:@7,body:@8,body:@6)").replace("body:@8 =", "body:@8 = concat[axis=0](body:@5,body:@6)\nbody:@9 =")
    w.program(grows, [w.random("float", (2,)), T("bool", [1]), T("int64", [2])][::-1], aborts='module "body" takes v as float_type, {2}, {1}, given float_type, {4}, {1}')
    # and a body chosen at run time that makes other than was declared
    select = BODY.replace("CALL", "select_module[output_dyn_shapes={float_type, {4}, {1}}](x)").replace(" -> SHAPE", "")
    select = select.replace("PARAM", "x0").replace("TAKES", F + "{4}, {1}").replace("relu(body:x0)", "concat[axis=0](body:x0,body:x0)")
    w.program(select, [w.random("float", (4,)), T("bool", 1)], aborts="select_module: its result is [float_type, {8}, {1}], declared as [float_type, {4}, {1}]")
    # reductions of a length that only the run shows, none among them
    reduce = """
module: "main"
x = @param:x -> dynamic, float_type, {[0..3], 2}
@1 = fused_reduce[axes={1}](x), [body]
@2 = @return(@1)

module: "body"
body:x0 = @param:x0 -> dynamic, float_type, {[0..3], 2}
body:@1 = reduce_sum[axes={1}](body:x0)
body:@2 = @return(body:@1)
"""
    for n in (3, 0):
        x = w.random("float", (n, 2))
        w.program(reduce, [x], [T("float", x.a.sum(1, keepdims=True))])


GUIDE = '''
module: "main"
main:@0 = @literal{1} -> float_type, {1, 1, 1, 1}, {1, 1, 1, 1}
input = @param:input -> float_type, {1, 1, 4, 6}, {24, 24, 6, 1}
main:@2 = convolution[padding={0, 0},stride={1, 1},dilation={1, 1},group=1,padding_mode=0](input,main:@0) -> float_type, {1, 1, 4, 6}, {24, 24, 6, 1}
main:@3 = slice[axes={2, 3},starts={0, 2},ends={4, 5}](main:@2) -> float_type, {1, 1, 4, 3}, {24, 24, 6, 1}
main:@4 = contiguous(main:@3) -> float_type, {1, 1, 4, 3}, {12, 12, 3, 1}
main:@5 = flatten[axis=1](main:@4) -> float_type, {1, 12}, {12, 1}
main:@6 = @return(main:@5)
'''


def cases(w):
    w.comment("The shapes of a first example, to the letter: parsing checks them against the rules.")
    x = w.random("float", (1, 1, 4, 6))
    w.program(GUIDE, [x], [T("float", x.a[0, 0, :, 2:5].reshape(1, 12))])
    branches(w)
    loops(w)
    slices(w)
    bodies(w)
    scans(w)
    joins(w)
    misfits(w)


# The arguments of an if go to the bodies by the sorted names of all their parameters.
NAMED = """module: "main"
c = @param:c -> bool_type, {1}, {1}
p = @param:p -> float_type, {2}, {1}
q = @param:q -> float_type, {3}, {1}
@3 = if(c,p,q), [yes, no]
@4 = get_tuple_elem[index=0](@3)
@5 = @return(@4)

module: "yes"
yes:b = @param:b -> float_type, {3}, {1}
yes:@1 = neg(yes:b)
yes:@2 = @return(yes:@1)

module: "no"
no:a = @param:a -> float_type, {2}, {1}
no:@1 = abs(no:a)
no:@2 = @return(no:@1)
"""


def branches_by_name(w):
    p, q = T("float", [0.5, -1.5]), T("float", [2, -3, 4])
    for c in (1, 0):
        w.program(NAMED, [q, p, T("bool", [c])], [T("float", -q.a if c else np.abs(p.a))])
    w.program(NAMED.replace("(c,p,q)", "(c,q,p)"), [], fails='if: module "yes" takes b as float_type, {3}, {1}, given float_type, {2}, {1}')
