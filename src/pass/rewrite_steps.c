// SPDX-License-Identifier: MIT
// A recurrent layer of a single step, as decoders run it, is two products and element-wise work.
//
//     rnn   ~>  f(a)                                       a = x W' + wb + h R' + rb, in gates
//     gru   ~>  (1 - z) n + z h                            z, r = f(a),  n = g(x Wn' + r (h Rn' + rb))
//     lstm  ~>  o t(c'),  c' = f c + i g                   i, o, f = f(a),  g = g(a)
//
// A kernel that walks in time reads W and R with the few blocks that can wait for each other;
// products read them with the whole card. Holds: one direction, a state that is given, activations
// without parameters, no clipping, no peepholes, no lengths. Runs only where it is named.
#include <strings.h>

#include "op/lstm.h"
#include "op/op.h"
#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

enum { X, W, R, BIAS, LENGTHS, H0, C0, PEEPHOLES };
enum { MOST_FUNCS = 3 };

struct step {
    struct mgx_ins *at;
    int gates;
    int64_t batch, hidden;
    struct mgx_ins *from, *back, *h, *c; // {batch, gates * hidden}, {batch, hidden}
    const struct mgx_op *func[MOST_FUNCS];
};

// --- what is taken ---

static bool given(const struct mgx_ins *ins, int input)
{
    return input < ins->in_count && !mgx_shape_is_absent(&ins->in[input]->shape);
}

static const struct mgx_op *find_func(const char *name)
{
    static const struct mgx_op *const known[] = {&mgx_op_sigmoid, &mgx_op_tanh, &mgx_op_relu};
    for (int i = 0; i < MGX_COUNT(known); i++)
        if (strcasecmp(known[i]->name, name) == 0)
            return known[i];
    return NULL;
}

static bool find_funcs(const struct mgx_rnn_attr *a, int count, const struct mgx_op **out)
{
    for (int i = 0; i < count; i++) {
        const int at = i < a->actv_func.count ? i : mgx_rnn_func_at(a->actv_func.count, count, i);
        out[i] = find_func(a->actv_func.v[at]);
        if (!out[i])
            return false;
    }
    return true;
}

// The activations of a layer that holds to what the file's head says.
static bool takes(const struct mgx_ins *ins, int count, const struct mgx_op **func)
{
    const struct mgx_rnn_attr *a = ins->attr;
    return ins->in[X]->shape.lens[0] == 1 && mgx_shape_elements(&ins->shape) > 0 &&
           a->direction != MGX_RNN_BIDIRECTIONAL && !(a->clip > 0) && given(ins, H0) &&
           !given(ins, LENGTHS) && !given(ins, PEEPHOLES) && a->actv_func.count > 0 &&
           find_funcs(a, count, func);
}

static int gates_of(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_rnn ? 1 : ins->op == &mgx_op_gru ? 3 : 4;
}

static bool is_one_step(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)r, (void)m;
    for (int i = 0; i < ins->in_count; i++)
        if (!mgx_shape_is_static(&ins->in[i]->shape))
            return false;
    const struct mgx_op *func[MOST_FUNCS];
    const int gates = gates_of(ins);
    return takes(ins, gates == 4 ? 3 : gates == 3 ? 2 : 1, func) && (gates < 4 || given(ins, C0));
}

// --- the products ---

// x {batch, n} by the gates [first, end) of weights {1, gates * hidden, n}, with their biases,
// which lie behind those of W where the weights are R.
static struct mgx_ins *emit_sums(const struct step *s, struct mgx_ins *x, int weights, int first,
                                 int end)
{
    struct mgx_ins *at = s->at, *w = at->in[weights];
    const int64_t n = s->hidden, lens[2] = {(end - first) * n, w->shape.lens[2]};
    w = end - first < s->gates ? mgx_emit_slice(at, w, 1, first * n, end * n) : w;
    w = mgx_emit_transpose(at, mgx_emit_reshape(at, w, lens, 2), (const int[]){1, 0}, 2);
    struct mgx_ins *y = mgx_emit_binary(at, &mgx_op_dot, x, w);
    if (!given(at, BIAS) || !y)
        return y;
    const int64_t before = (weights == R ? s->gates : 0) * n;
    struct mgx_ins *bias =
        mgx_emit_slice(at, at->in[BIAS], 1, before + first * n, before + end * n);
    return mgx_emit_binary(at, &mgx_op_add, y, mgx_emit_multibroadcast(at, bias, y->shape.lens, 2));
}

static struct mgx_ins *emit_state(const struct step *s, struct mgx_ins *given_state)
{
    return mgx_emit_reshape(s->at, given_state, (int64_t[]){s->batch, s->hidden}, 2);
}

// A gru whose last gate multiplies r * h, not h.
static bool resets_first(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_gru && !mgx_ins_int(ins, "linear_before_reset");
}

static bool begin(struct step *s, struct mgx_ins *ins)
{
    const struct mgx_shape *x = &ins->in[X]->shape;
    const int gates = gates_of(ins);
    *s = (struct step){
        .at = ins, .gates = gates, .batch = x->lens[1], .hidden = mgx_ins_int(ins, "hidden_size")};
    if (!find_funcs(ins->attr, gates == 4 ? 3 : gates == 3 ? 2 : 1, s->func))
        return false;
    struct mgx_ins *now = mgx_emit_reshape(ins, ins->in[X], x->lens + 1, 2);
    s->h = emit_state(s, ins->in[H0]);
    s->from = emit_sums(s, now, W, 0, gates);
    s->back = emit_sums(s, s->h, R, 0, resets_first(ins) ? gates - 1 : gates);
    return s->from && s->back;
}

static struct mgx_ins *gate_of(const struct step *s, struct mgx_ins *sums, int gate)
{
    return mgx_emit_slice(s->at, sums, 1, gate * s->hidden, (gate + 1) * s->hidden);
}

static struct mgx_ins *both_of(const struct step *s, int gate)
{
    return mgx_emit_binary(s->at, &mgx_op_add, gate_of(s, s->from, gate),
                           gate_of(s, s->back, gate));
}

static struct mgx_ins *open_of(const struct step *s, int gate, int func)
{
    return mgx_emit_unary(s->at, s->func[func], both_of(s, gate));
}

static struct mgx_ins *times(const struct step *s, struct mgx_ins *x, struct mgx_ins *y)
{
    return mgx_emit_binary(s->at, &mgx_op_mul, x, y);
}

static struct mgx_ins *one_less(const struct step *s, struct mgx_ins *x)
{
    struct mgx_ins *one = x ? mgx_emit_splat(s->at, &x->shape, 1) : NULL;
    return mgx_emit_binary(s->at, &mgx_op_sub, one, x);
}

// --- cells ---

static struct mgx_ins *spell_rnn(struct mgx_rewriter *r, struct mgx_ins *ins,
                                 const struct mgx_match *m)
{
    struct step s;
    (void)r, (void)m;
    return begin(&s, ins) ? mgx_emit_reshape(ins, open_of(&s, 0, 0), ins->shape.lens, 4) : NULL;
}

// r (h R'), or (r h) R', of the gate n.
static struct mgx_ins *emit_reset(const struct step *s)
{
    struct mgx_ins *reset = open_of(s, 1, 0);
    return resets_first(s->at) ? emit_sums(s, times(s, reset, s->h), R, 2, 3)
                               : times(s, reset, gate_of(s, s->back, 2));
}

static struct mgx_ins *spell_gru(struct mgx_rewriter *r, struct mgx_ins *ins,
                                 const struct mgx_match *m)
{
    struct step s;
    (void)r, (void)m;
    if (!begin(&s, ins))
        return NULL;
    struct mgx_ins *update = open_of(&s, 0, 0);
    struct mgx_ins *next =
        mgx_emit_binary(ins, &mgx_op_add, gate_of(&s, s.from, 2), emit_reset(&s));
    next = mgx_emit_unary(ins, s.func[1], next);
    struct mgx_ins *y = mgx_emit_binary(ins, &mgx_op_add, times(&s, one_less(&s, update), next),
                                        times(&s, update, s.h));
    return mgx_emit_reshape(ins, y, ins->shape.lens, 4);
}

// Its hidden state, its cell state, or both, one behind the other.
static struct mgx_ins *spell_lstm(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    struct step s;
    (void)r, (void)m;
    if (!begin(&s, ins))
        return NULL;
    const enum mgx_rnn_gives gives = mgx_rnn_gives(ins->op);
    struct mgx_ins *in = open_of(&s, 0, 0), *new = open_of(&s, 3, 1);
    struct mgx_ins *keep = mgx_ins_int(ins, "input_forget") ? one_less(&s, in) : open_of(&s, 2, 0);
    struct mgx_ins *c = mgx_emit_binary(
        ins, &mgx_op_add, times(&s, keep, emit_state(&s, ins->in[C0])), times(&s, in, new));
    if (gives == MGX_RNN_LAST_CELL)
        return mgx_emit_reshape(ins, c, ins->shape.lens, 3);
    struct mgx_ins *h = times(&s, open_of(&s, 1, 0), mgx_emit_unary(ins, s.func[2], c));
    const int64_t lens[4] = {1, 1, s.batch, s.hidden};
    h = mgx_emit_reshape(ins, h, lens, 4);
    if (gives == MGX_RNN_HIDDEN)
        return h;
    struct mgx_ins *const both[] = {h, mgx_emit_reshape(ins, c, lens, 4)};
    return both[0] && both[1] ? mgx_emit_concat(ins, both, 2, 0) : NULL;
}

static const struct mgx_rule rules[] = {
    {"rnn ~> f(x W' + h R')", MGX_IF_STATIC, .guard = is_one_step, .rewrite = spell_rnn},
    {"gru ~> (1 - z) n + z h", MGX_IF_STATIC, .guard = is_one_step, .rewrite = spell_gru},
    {"lstm ~> o t(c')", MGX_IF_STATIC, .guard = is_one_step, .rewrite = spell_lstm},
    {"lstm_last_cell ~> f c + i g", MGX_IF_STATIC, .guard = is_one_step, .rewrite = spell_lstm},
    {"lstm_states ~> o t(c'), c'", MGX_IF_STATIC, .guard = is_one_step, .rewrite = spell_lstm},
};

const struct mgx_pass mgx_pass_rewrite_steps = {
    .name = "rewrite_steps",
    .meaning = "recurrent layers of a single step become two products and element-wise work",
    .rules = {rules, MGX_COUNT(rules)},
    .by_size = true,
};
