# SPDX-License-Identifier: MIT
"""Operators of attention without softmax."""
import numpy as np
from make_cases import T, Tuple

ABSENT = None


def attend(q, k, v, state, decay, beta, scale, delta):
    b, hq, steps, dk = q.shape
    h, dv = k.shape[1], v.shape[3]
    s = np.zeros((b, h, dk, dv)) if state is None else state.copy()
    y = np.zeros((b, hq, steps, dv))
    for t in range(steps):
        if decay is not None:
            s = s * np.exp(decay[:, :, t])[..., None]
        d = v[:, :, t]
        if delta:
            d = beta[:, :, t] * (d - np.einsum("bhkv,bhk->bhv", s, k[:, :, t]))
        s = s + np.einsum("bhk,bhv->bhkv", k[:, :, t], d)
        y[:, :, t] = scale * np.einsum("bhk,bhkv->bhv", q[:, :, t], np.repeat(s, hq // h, axis=1))
    return y, s


def cases(w):
    for type in ["float", "double", "half"]:
        for hq, h, steps, gate, delta, past in [(2, 2, 3, 0, False, False), (4, 2, 5, 1, False, True),
                                                (3, 1, 4, 3, True, False), (2, 2, 1, 3, True, True)]:
            q = w.random(type, (2, hq, steps, 3), -1, 1)
            k = w.random(type, (2, h, steps, 3), -1, 1)
            v = w.random(type, (2, h, steps, 2), -1, 1)
            s = w.random("float", (2, h, 3, 2), -1, 1) if past else ABSENT
            g = w.random(type, (2, h, steps, gate), -1, 0) if gate else ABSENT
            r = w.random(type, (2, 1, steps, 1), 0, 1) if delta else ABSENT
            y, state = attend(q.a, k.a, v.a, s.a if past else None, g.a if gate else None,
                              r.a if delta else None, 0.5, delta)
            w.case(f"linear_attention[scale=0.5,delta={int(delta)}]", [q, k, v, s, g, r],
                   Tuple(T(type, y), T("float" if past else type, state)))
    x = w.random("float", (1, 2, 3, 4))
    w.case("linear_attention[delta=1]", [x, x, x], fails="linear_attention: delta needs input 5")
    w.case("linear_attention", [x, w.random("float", (1, 2, 3, 5)), x],
           fails="linear_attention: axis 3 of input 1 has length 5, expected 4")
    w.case("linear_attention", [x, w.random("float", (1, 3, 3, 4)), w.random("float", (1, 3, 3, 4))],
           fails="linear_attention: 2 query heads do not share 3 states")
    w.case("linear_attention", [x, w.random("float", (2, 2, 3, 4)), x],
           fails="linear_attention: axis 0 of input 1 has length 2, expected 1")
