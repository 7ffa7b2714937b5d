// SPDX-License-Identifier: MIT
// Body of the gate arithmetic, compiled once per instruction set; see rnn.h. The usual activations
// are expanded in place, any others called through one function per vector.
#include "targets/cpu/kernel/product/rnn.h"

#include <math.h>

#include "targets/cpu/kernel/vector/simd.h"
#include "targets/cpu/kernel/vector/vmath.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

static __attribute__((noinline)) vf any_act(const struct mgx_rnn_act *act, vf x)
{
    const vf a = vf_set(act->a), b = vf_set(act->b);
    switch (act->act) {
#define X(name, text, meaning)                                                                     \
    case name:                                                                                     \
        return vf_act(name, x, a, b);
        MGX_ACT_LIST(X)
#undef X
    case MGX_ACT_COUNT:
        break;
    }
    return x;
}

// What a step knows beforehand.
struct step {
    const struct mgx_gates_args *args;
    const struct mgx_rnn_act *f, *g, *h;
    int64_t hidden;
    vf low, high;
    bool usual; // sigmoid, tanh, tanh
};

SIMD struct step step_of(const struct mgx_gates_args *args)
{
    const struct mgx_rnn_desc *d = args->desc;
    const float clip = d->clip > 0 ? d->clip : INFINITY;
    struct step s = {
        .args = args,
        .f = &d->f[args->direction],
        .g = &d->g[args->direction],
        .h = &d->h[args->direction],
        .hidden = d->hidden,
        .low = vf_set(-clip),
        .high = vf_set(clip),
    };
    s.usual = s.f->act == MGX_ACT_SIGMOID && s.g->act == MGX_ACT_TANH &&
              (s.h->act == MGX_ACT_TANH || d->kind != MGX_RNN_LSTM);
    return s;
}

SIMD vf act_f(const struct step *s, bool usual, vf x)
{
    x = vf_min(s->high, vf_max(s->low, x));
    return usual ? vf_sigmoid(x) : any_act(s->f, x);
}

SIMD vf act_g(const struct step *s, bool usual, vf x)
{
    x = vf_min(s->high, vf_max(s->low, x));
    return usual ? vf_tanh(x) : any_act(s->g, x);
}

SIMD vf load(const float *p, int n)
{
    return n == VL ? vf_load(p) : vf_load_some(p, n);
}

SIMD void store(float *p, vf v, int n)
{
    if (n == VL)
        vf_store(p, v);
    else
        vf_store_some(p, v, n);
}

// Both parts of gate k, at units j and on.
SIMD vf gate(const struct step *s, int k, int64_t j, int n)
{
    return vf_add(load(s->args->x + k * s->hidden + j, n), load(s->args->r + k * s->hidden + j, n));
}

SIMD void put_state(const struct step *s, int64_t j, vf h, int n)
{
    store(s->args->h + j, h, n);
    if (s->args->y)
        store(s->args->y + j, h, n);
}

SIMD int lanes_at(const struct step *s, int64_t j)
{
    return s->hidden - j < VL ? (int)(s->hidden - j) : VL;
}

SIMD void lstm_units(const struct step *s, bool usual)
{
    const struct mgx_gates_args *a = s->args;
    const float *p = a->extra;
    for (int64_t j = 0; j < s->hidden; j += VL) {
        const int n = lanes_at(s, j);
        vf c = load(a->c + j, n), i = gate(s, 0, j, n), o = gate(s, 1, j, n), f = gate(s, 2, j, n);
        if (p) {
            i = vf_fma(load(p + j, n), c, i);
            f = vf_fma(load(p + 2 * s->hidden + j, n), c, f);
        }
        i = act_f(s, usual, i);
        f = a->desc->input_forget ? vf_sub(vf_set(1), i) : act_f(s, usual, f);
        c = vf_fma(f, c, vf_mul(i, act_g(s, usual, gate(s, 3, j, n))));
        if (p)
            o = vf_fma(load(p + s->hidden + j, n), c, o);
        store(a->c + j, c, n);
        o = act_f(s, usual, o);
        put_state(s, j, vf_mul(o, usual ? vf_tanh(c) : any_act(s->h, c)), n);
    }
}

static void lstm(const struct mgx_gates_args *args)
{
    const struct step s = step_of(args);
    if (s.usual)
        lstm_units(&s, true);
    else
        lstm_units(&s, false);
}

// h' = (1 - z) * n + z * h
SIMD vf mix(vf z, vf n, vf h)
{
    return vf_fma(z, vf_sub(h, n), n);
}

SIMD void gru_units(const struct step *s, bool usual)
{
    const struct mgx_gates_args *a = s->args;
    const int64_t last = 2 * s->hidden;
    for (int64_t j = 0; j < s->hidden; j += VL) {
        const int n = lanes_at(s, j);
        const vf z = act_f(s, usual, gate(s, 0, j, n)), r = act_f(s, usual, gate(s, 1, j, n));
        vf part = load(a->r + last + j, n);
        if (a->extra)
            part = vf_add(part, load(a->extra + j, n));
        const vf m = act_g(s, usual, vf_fma(r, part, load(a->x + last + j, n)));
        put_state(s, j, mix(z, m, load(a->h + j, n)), n);
    }
}

static void gru(const struct mgx_gates_args *args)
{
    const struct step s = step_of(args);
    if (s.usual)
        gru_units(&s, true);
    else
        gru_units(&s, false);
}

static void gru_reset(const struct mgx_gates_args *args)
{
    const struct step s = step_of(args);
    for (int64_t j = 0; j < s.hidden; j += VL) {
        const int n = lanes_at(&s, j);
        const vf gated = gate(&s, 1, j, n);
        const vf r = s.usual ? act_f(&s, true, gated) : act_f(&s, false, gated);
        store(args->reset + j, vf_mul(r, load(args->h + j, n)), n);
    }
}

static void gru_last(const struct mgx_gates_args *args)
{
    const struct step s = step_of(args);
    for (int64_t j = 0; j < s.hidden; j += VL) {
        const int n = lanes_at(&s, j);
        const vf z0 = gate(&s, 0, j, n), n0 = gate(&s, 2, j, n);
        const vf z = s.usual ? act_f(&s, true, z0) : act_f(&s, false, z0);
        const vf m = s.usual ? act_g(&s, true, n0) : act_g(&s, false, n0);
        put_state(&s, j, mix(z, m, load(args->h + j, n)), n);
    }
}

static void plain(const struct mgx_gates_args *args)
{
    const struct step s = step_of(args);
    const bool is_tanh = s.f->act == MGX_ACT_TANH;
    for (int64_t j = 0; j < s.hidden; j += VL) {
        const int n = lanes_at(&s, j);
        const vf x = vf_min(s.high, vf_max(s.low, gate(&s, 0, j, n)));
        put_state(&s, j, is_tanh ? vf_tanh(x) : any_act(s.f, x), n);
    }
}

const struct mgx_gates_kernel NAME(mgx_f32_gates) = {
    KERNEL_BASE("f32_gates"), .plain = plain,       .lstm = lstm, .gru = gru,
    .gru_reset = gru_reset,   .gru_last = gru_last,
};
