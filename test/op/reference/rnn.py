# SPDX-License-Identifier: MIT
"""Recurrent layers, gate by gate and row by row in numpy."""
import numpy as np
from make_cases import D, FLOATS, T

from reference.convolution import braces


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


FUNCS = {  # name: (formula, takes alpha, takes beta, default alpha, default beta)
    "relu": (lambda x, a, b: np.maximum(x, 0), 0, 0, 0, 0),
    "tanh": (lambda x, a, b: np.tanh(x), 0, 0, 0, 0),
    "sigmoid": (lambda x, a, b: sigmoid(x), 0, 0, 0, 0),
    "affine": (lambda x, a, b: a * x + b, 1, 1, 1, 0),
    "leaky_relu": (lambda x, a, b: np.where(x < 0, a * x, x), 1, 0, 0.01, 0),
    "thresholded_relu": (lambda x, a, b: np.where(x > a, x, 0), 1, 0, 1, 0),
    "scaled_tanh": (lambda x, a, b: a * np.tanh(b * x), 1, 1, 1, 1),
    "hard_sigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 1, 1, 0.2, 0.5),
    "elu": (lambda x, a, b: np.where(x < 0, a * np.expm1(x), x), 1, 0, 1, 0),
    "softsign": (lambda x, a, b: x / (1 + np.abs(x)), 0, 0, 0, 0),
    "softplus": (lambda x, a, b: np.log1p(np.exp(x)), 0, 0, 0, 0),
}
DEFAULT = {"rnn": ["tanh"], "gru": ["sigmoid", "tanh"], "lstm": ["sigmoid", "tanh", "tanh"]}
GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def bind(names, alphas, betas):
    alphas, betas, out = list(alphas), list(betas), []
    for n in names:
        f, ta, tb, a, b = FUNCS[n]
        a = alphas.pop(0) if ta and alphas else a
        b = betas.pop(0) if tb and betas else b
        out.append(lambda x, f=f, a=a, b=b: f(x, a, b))
    return out


def one_direction(kind, x, w, r, bias, h, c, peep, funcs, clip, flag):
    """x: steps of one sequence. All states after each step."""
    hid = r.shape[1]
    wb, rb = np.split(bias, 2)
    cut = (lambda v: np.clip(v, -clip, clip)) if clip else (lambda v: v)
    part = lambda m, i: m[i * hid:(i + 1) * hid]
    hs, cs = [], []
    for v in x:
        gate = lambda i: part(w, i) @ v + part(r, i) @ h + part(wb, i) + part(rb, i)
        if kind == "rnn":
            h = funcs[0](cut(gate(0)))
        elif kind == "gru":
            z, reset = funcs[0](cut(gate(0))), funcs[0](cut(gate(1)))
            if flag:
                s = part(w, 2) @ v + part(wb, 2) + reset * (part(r, 2) @ h + part(rb, 2))
            else:
                s = part(w, 2) @ v + part(wb, 2) + part(r, 2) @ (reset * h) + part(rb, 2)
            h = (1 - z) * funcs[1](cut(s)) + z * h
        else:
            pi, po, pf = np.split(peep, 3)
            i = funcs[0](cut(gate(0) + pi * c))
            f = 1 - i if flag else funcs[0](cut(gate(2) + pf * c))
            c = f * c + i * funcs[1](cut(gate(3)))
            o = funcs[0](cut(gate(1) + po * c))
            h = o * funcs[2](c)
        hs.append(h)
        cs.append(c)
    return hs, cs


def run(kind, x, w, r, bias, lengths, h0, c0, peep, funcs, direction, clip, flag):
    steps, batch, _ = x.shape
    dirs, hid, n = w.shape[0], r.shape[2], len(DEFAULT[kind])
    y, last, cell = np.zeros((steps, dirs, batch, hid)), np.zeros((dirs, batch, hid)), np.zeros((dirs, batch, hid))
    for d in range(dirs):
        for b in range(batch):
            seq = x[:lengths[b], b]
            back = direction == "reverse" or d == 1
            hs, cs = one_direction(kind, seq[::-1] if back else seq, w[d], r[d], bias[d], h0[d, b], c0[d, b],
                                   peep[d], funcs[d * n:d * n + n], clip, flag)
            if hs:
                last[d, b], cell[d, b] = hs[-1], cs[-1]
                y[:lengths[b], d, b] = hs[::-1] if back else hs
    return y, last, cell


def both(y, cell):
    """All hidden states, and the last cell states as one step more."""
    return np.concatenate([y, np.asarray(cell)[None]])


def layer(w, kind, type="float", steps=3, batch=2, inp=3, hid=2, direction="forward", names=None, alphas=(),
          betas=(), clip=0, flag=0, with_bias=True, lengths=None, states=False, peepholes=False,
          lengths_type="int32"):
    dirs = 2 if direction == "bidirectional" else 1
    g = GATES[kind] * hid
    x = w.random(type, (steps, batch, inp), -1, 1)
    wt, rt = w.random(type, (dirs, g, inp), -1, 1), w.random(type, (dirs, g, hid), -1, 1)
    zeros = lambda *s: T(type, np.zeros(s))
    bias = w.random(type, (dirs, 2 * g), -1, 1) if with_bias else zeros(dirs, 2 * g)
    h0, c0 = [w.random(type, (dirs, batch, hid), -1, 1) if states else zeros(dirs, batch, hid) for _ in "hc"]
    peep = w.random(type, (dirs, 3 * hid), -1, 1) if peepholes else zeros(dirs, 3 * hid)
    inputs = [x, wt, rt, bias if with_bias else None, None if lengths is None else T(lengths_type, lengths),
              h0 if states else None]
    if kind == "lstm":
        inputs += [c0 if states else None, peep if peepholes else None]
    while inputs[-1] is None:
        inputs.pop()
    names = names or DEFAULT[kind]
    bound = bind(names, alphas, betas)
    if len(bound) < dirs * len(DEFAULT[kind]):
        bound = bound * 2
    y, last, cell = run(kind, x.a, wt.a, rt.a, bias.a, [steps] * batch if lengths is None else lengths, h0.a,
                        c0.a, peep.a, bound, direction, clip, flag)
    text = f"hidden_size={hid},actv_func={braces(names)},direction={direction},clip={clip:g}"
    text += {"rnn": "", "gru": f",linear_before_reset={flag}", "lstm": f",input_forget={flag}"}[kind]
    if alphas:
        text += f",actv_alpha={braces(alphas)}"
    if betas:
        text += f",actv_beta={braces(betas)}"
    tol = {"half": (2e-3, 2e-3), "bf16": (2e-2, 2e-2), "float": (1e-6, 1e-5)}.get(type)
    w.case(f"{kind}[{text}]", inputs, y, tol=tol)
    if kind == "lstm":
        w.case(f"lstm_last_cell[{text}]", inputs, cell, tol=tol)
        w.case(f"lstm_states[{text}]", inputs, both(y, cell), tol=tol)
    if lengths is not None:
        w.case(f"rnn_var_sl_last_output[direction={direction}]", [T(type, y), T("int32", lengths)], last)
    return y, last


def snapped(values, seen):
    """Values as DynamicQuantizeLinear's bytes stand for them, by the range of those in `seen`."""
    f = np.float32
    low, high = min(f(0), f(seen.min(initial=0))), max(f(0), f(seen.max(initial=0)))
    step = f(1) if low == high else f((high - low) / f(255))
    zero = np.clip(np.rint(-low / step), 0, 255)
    return np.clip(np.rint(values.astype(f) / step), -zero, 255 - zero).astype(np.float64) * float(step)


def bytes_run(x, w, r, bias, lengths, h0, c0, peep, funcs, direction, clip, flag):
    """All sequences of a direction side by side, since their states share a scale."""
    steps, batch, _ = x.shape
    dirs, hid = w.shape[0], r.shape[2]
    y, cell = np.zeros((steps, dirs, batch, hid)), np.zeros((dirs, batch, hid))
    x = snapped(x, x[:max(lengths)])
    for d in range(dirs):
        h, c, bound = h0[d].copy(), c0[d].copy(), funcs[3 * d:3 * d + 3]
        for s in range(steps):
            live = [b for b in range(batch) if s < lengths[b]]
            if not live:
                break
            seen = snapped(h, h[live])
            for b in live:
                t = lengths[b] - 1 - s if direction == "reverse" or d == 1 else s
                # The state's part is a bias, so that the cell itself sees no state.
                whole = bias[d] + np.concatenate([r[d] @ seen[b], np.zeros(4 * hid)])
                hs, cs = one_direction("lstm", x[t:t + 1, b], w[d], np.zeros_like(r[d]), whole, h[b], c[b], peep[d],
                                       bound, clip, flag)
                h[b], c[b] = hs[0], cs[0]
                y[t, d, b] = hs[0]
        for b in range(batch):
            cell[d, b] = c[b] if lengths[b] else 0
    return y, cell


def byte_layer(w, steps=4, batch=3, inp=5, hid=3, direction="forward", unsigned=False, columns=False, zeros=True,
               lengths=None, states=False, peepholes=False, clip=0, flag=0):
    dirs = 2 if direction == "bidirectional" else 1
    g, type = 4 * hid, "uint8" if unsigned else "int8"
    low = 0 if unsigned else -128
    x = w.random("float", (steps, batch, inp), -1, 1.5)
    wt, rt = [T(type, w.rng.integers(low, low + 256, (dirs, g, n))) for n in (inp, hid)]
    each = (dirs, g if columns else 1)
    scales = [w.random("float", each, 0.003, 0.01) for _ in "wr"]
    points = [T(type, w.rng.integers(low, low + 256, each) if zeros else np.zeros(each)) for _ in "wr"]
    bias = w.random("float", (dirs, 2 * g), -1, 1)
    given = lambda on, *s: w.random("float", s, -1, 1) if on else T("float", np.zeros(s))
    h0, c0 = given(states, dirs, batch, hid), given(states, dirs, batch, hid)
    peep = given(peepholes, dirs, 3 * hid)
    inputs = [x, wt, rt, bias, None if lengths is None else T("int32", lengths), h0 if states else None,
              c0 if states else None, peep if peepholes else None, scales[0], points[0] if zeros else None, scales[1],
              points[1]]
    real = [(v.a - z.a.reshape(dirs, -1, 1)) * s.a.reshape(dirs, -1, 1) for v, z, s in zip((wt, rt), points, scales)]
    y, cell = bytes_run(x.a, *real, bias.a, [steps] * batch if lengths is None else lengths, h0.a, c0.a, peep.a,
                        bind(DEFAULT["lstm"] * dirs, (), ()), direction, clip, flag)
    text = f"hidden_size={hid},direction={direction},clip={clip:g},input_forget={flag}"
    w.case(f"quant_lstm[{text}]", inputs, y, tol=(1e-6, 1e-5))
    w.case(f"quant_lstm_last_cell[{text}]", inputs, cell, tol=(1e-6, 1e-5))
    w.case(f"quant_lstm_states[{text}]", inputs, both(y, cell), tol=(1e-6, 1e-5))


def byte_layers(w):
    for direction in ("forward", "reverse", "bidirectional"):
        byte_layer(w, direction=direction)
        byte_layer(w, direction=direction, unsigned=True, columns=True, states=True, lengths=[4, 1, 2], peepholes=True)
        byte_layer(w, direction=direction, columns=True, zeros=False, lengths=[0, 2, 3])
    byte_layer(w, steps=1, batch=1, inp=1, hid=1, zeros=False)
    byte_layer(w, clip=0.5, flag=1, states=True)
    byte_layer(w, steps=2, batch=5, inp=9, hid=7, unsigned=True)


def layers(w):
    for kind in GATES:
        for direction in ("forward", "reverse", "bidirectional"):
            layer(w, kind, direction=direction)
            layer(w, kind, direction=direction, states=True, lengths=[3, 1], peepholes=True)
            layer(w, kind, direction=direction, states=True, lengths=[0, 2], with_bias=False)
        for type in FLOATS:
            layer(w, kind, type=type, states=True)
        layer(w, kind, clip=0.5, states=True, peepholes=True)
        layer(w, kind, flag=1, states=True)
        layer(w, kind, flag=1, direction="bidirectional", lengths=[2, 3])
        layer(w, kind, steps=1, batch=1, inp=1, hid=1, with_bias=False)
        layer(w, kind, steps=2, batch=9, inp=5, hid=7)
        layer(w, kind, hid=3, names=(["elu"] + DEFAULT[kind] * 2)[:2 * len(DEFAULT[kind])],
              direction="bidirectional", alphas=[0.5])
        y, last = layer(w, kind, direction="bidirectional")
        w.case("rnn_last_hs_output", [T("float", y)], last)
        w.case("rnn_var_sl_last_output[direction=bidirectional]", [T("float", y)], last)
    for name, (_, ta, tb, *_) in FUNCS.items():
        layer(w, "rnn", names=[name])
        if ta:
            layer(w, "rnn", names=[name], alphas=[0.75], betas=[0.25] if tb else [])
    layer(w, "gru", names=["hard_sigmoid", "leaky_relu"], alphas=[0.3, 0.1], betas=[0.4])
    layer(w, "lstm", names=["sigmoid", "scaled_tanh", "relu"], alphas=[0.9], betas=[1.5])
    y, last = layer(w, "rnn", direction="reverse")
    w.case("rnn_var_sl_last_output[direction=reverse]", [T("float", y)], last)


def layer_shapes(w):
    x, k, r = D("float", (1, 9, "s"), (1, 4), 3), D("float", 1, 8, 3), D("float", 1, 8, 2)
    op = "lstm[hidden_size=2]"
    w.case(op, [x, k, r], shape="dynamic, float_type, {s[1..9], 1, [1..4], 2}")
    w.case("lstm_last_cell[hidden_size=2]", [x, k, r], shape="dynamic, float_type, {1, [1..4], 2}")
    w.case("lstm_states[hidden_size=2]", [x, k, r], shape="dynamic, float_type, {[2..10], 1, [1..4], 2}")
    w.case("lstm_states[hidden_size=2]", [D("float", 5, 4, 3), k, r], shape="float_type, {6, 1, 4, 2}, {8, 8, 2, 1}")
    w.case(op, [D("float", 5, 4, 3), k, r], shape="float_type, {5, 1, 4, 2}, {8, 8, 2, 1}")
    w.case(op, [x, k, r, None, D("int32", 3)], shape="dynamic, float_type, {s[1..9], 1, 3, 2}")
    w.case("lstm[hidden_size=3]", [x, k, r], fails="hidden size mismatch in attribute (3) and input (2)")
    w.case("lstm[hidden_size=2]", [x, k, w.random("float", (1, 8, 3))], fails="hidden size mismatch in attribute (2) and input (3)")
    w.case("lstm[hidden_size=2]", [x, k, w.random("float", (1, 8, 1))], fails="hidden size mismatch in attribute (2) and input (1)")
    w.case("lstm[hidden_size=2,direction=bidirectional]", [x, k, r], fails="num_direction does not match the direction attribute: 1 in the weights, 2 by the attribute")
    w.case("gru[hidden_size=2]", [x, k, r], fails="axis 1 of input 1 has length 8, expected 6")
    w.case(op, [x, D("float", 1, 8, 4), r], fails="axis 2 of input 1 has length 4, expected 3")
    w.case(op, [x, k, D("double", 1, 8, 2)], fails="Types do not match")
    w.case(op, [x, k, r, D("float", 1, 8)], fails="axis 1 of input 3 has length 8, expected 16")
    w.case(op, [x, k, r, None, D("string", 2)], fails="must be of numbers")
    w.case(op, [x, k, r, None, D("int32", 7)], fails="axis 0 of input 4 has length 7, expected 4")
    w.case(op, [x, k, r, None, None, D("float", 1, 2, 3)], fails="axis 2 of input 5 has length 3, expected 2")
    w.case(op, [x, k, r, None, None, None, None, D("float", 1, 7)], fails="axis 1 of input 7 has length 7, expected 6")
    w.case("lstm[hidden_size=2,actv_func={}]", [x, k, r], fails="0 activation functions where 3 are needed")
    w.case("lstm[hidden_size=2,actv_func={tanh, nope, tanh}]", [x, k, r], fails='activation function "nope" is unknown')
    w.case("lstm[hidden_size=2,clip=-1]", [x, k, r], fails="clip -1 is negative")
    w.case("lstm[hidden_size=-2]", [x, k, r], fails="hidden_size -2 is out of range")
    w.case("rnn[hidden_size=2]", [D("int32", 2, 2, 3), D("int32", 1, 2, 3), D("int32", 1, 2, 2)], fails="must be of a float type")
    z = lambda *s: T("float", np.zeros(s))
    w.case("rnn[hidden_size=2]", [z(0, 2, 3), z(1, 2, 3), z(1, 2, 2)], np.zeros((0, 1, 2, 2)))
    w.case("lstm_last_cell[hidden_size=1]", [z(0, 2, 3), z(1, 4, 3), z(1, 4, 1)], np.zeros((1, 2, 1)))
    w.case("lstm_states[hidden_size=1]", [z(0, 2, 3), z(1, 4, 3), z(1, 4, 1)], np.zeros((1, 1, 2, 1)))
    w.case("rnn[hidden_size=2]", [z(2, 0, 3), z(1, 2, 3), z(1, 2, 2)], np.zeros((2, 1, 0, 2)))
    w.case("rnn[hidden_size=2]", [z(1, 1, 0), z(1, 2, 0), z(1, 2, 2)], np.zeros((1, 1, 1, 2)))
    for bad in (4, -1):
        w.case("rnn[hidden_size=2]", [z(3, 1, 3), z(1, 2, 3), z(1, 2, 2), None, T("int32", [bad])],
               aborts=f"sequence length {bad} is out of range 0..3")


def shifts(w):
    y = w.random("float", (4, 2, 3, 2))
    lengths = [4, 2, 0]
    for direction in ("forward", "reverse", "bidirectional"):
        r = np.zeros(y.shape)
        for t, d, b in np.ndindex(*y.shape[:3]):
            if t < lengths[b]:
                r[t, d, b] = y.a[t + (4 - lengths[b] if direction == "reverse" or d == 1 else 0), d, b]
        w.case(f"rnn_var_sl_shift_output[output_name=hidden_states,direction={direction}]",
               [y, T("int64", lengths)], r)
    for type in ("double", "int32"):
        x = w.random(type, (4, 3, 2))
        r = np.zeros(x.shape)
        for t, b in np.ndindex(4, 3):
            if t >= 4 - lengths[b]:
                r[t, b] = x.a[t - (4 - lengths[b]), b]
        w.case("rnn_var_sl_shift_sequence", [x, T("int32", lengths)], r)
    for op in ("rnn_var_sl_last_output", "rnn_var_sl_shift_output"):
        w.case(op, [y, T("int32", [1, 2, 5])], aborts="sequence length 5 is out of range 0..4")
        w.case(op, [D("float", 4, 2, 3, 2), D("int32", 2)], fails="axis 0 of input 1 has length 2, expected 3")
        w.case(op, [D("float", 4, 2, 3), D("int32", 3)], fails="Only 4d supported")
    z = lambda *s: T("float", np.zeros(s))
    w.case("rnn_var_sl_last_output", [z(0, 1, 0, 2), T("int32", np.zeros(0))], np.zeros((1, 0, 2)))
    w.case("rnn_var_sl_shift_output", [z(3, 1, 0, 2), T("int32", np.zeros(0))], np.zeros((3, 1, 0, 2)))
    w.case("rnn_var_sl_shift_sequence", [z(0, 2, 2), T("int32", [0, 0])], np.zeros((0, 2, 2)))
    w.case("rnn_last_hs_output", [D("float", (1, 9), 1, (2, 3), 4)], shape="dynamic, float_type, {1, [2..3], 4}")
    w.case("rnn_last_hs_output", [D("float", 0, 1, 2, 4)], fails="there are no steps")
    w.case("rnn_last_cell_output", [D("float", 3, 1, 2, 4)], shape="float_type, {1, 2, 4}, {8, 4, 1}")


def cases(w):
    layers(w)
    layer_shapes(w)
    shifts(w)
    for kind in GATES:  # lengths that are floats
        layer(w, kind, lengths=[3, 1], lengths_type="half")
    byte_layers(w)
