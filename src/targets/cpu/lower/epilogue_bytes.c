// SPDX-License-Identifier: MIT
// Epilogues of integer products that end in bytes, or were bytes on their way; see epilogue.h and
// kernel/end/end.h.
//
//     q(value)                                       one step to bytes
//     q(act(dq(f(q(value))) + dq(residual)))         the same with a residual of bytes
//     q(act(dq(f(q(value))) + bias))                 with a constant for every column
//     act(dq(f(q(value))) + dq(residual))            floats, with or without either
//     f(any of the bytes above)                      f of one byte, whatever it is: a table
//
// with q quantizelinear and dq dequantizelinear by one constant scale and zero point.
#include <math.h>

#include "op/op.h"
#include "plan/table.h"
#include "targets/cpu/lower/epilogue_match.h"

// --- steps ---

// A quantization or dequantization by one constant positive scale and zero point.
struct step {
    double scale;
    int zero;
    bool is_signed;
};

static bool zero_of(const struct cpu_match *m, const struct mgx_ins *node, int *zero)
{
    const struct mgx_tensor *t = cpu_match_value_of(m, node);
    if (t)
        *zero = (int)mgx_load_int(t->shape.type, t->data, 0);
    return t != NULL;
}

static bool read_step(const struct cpu_match *m, const struct mgx_ins *node,
                      const struct mgx_op *op, struct step *s)
{
    if (node->op != op)
        return false;
    const enum mgx_type type =
        op == &mgx_op_quantizelinear ? node->shape.type : node->in[0]->shape.type;
    *s = (struct step){.is_signed = type == MGX_INT8};
    return mgx_type_is_byte(type) && cpu_match_constant(m, node->in[1], &s->scale) &&
           s->scale > 1e-30 && s->scale < 1e30 &&
           (node->in_count == 2 || zero_of(m, node->in[2], &s->zero));
}

static float lowest(const struct step *s)
{
    return (float)((s->is_signed ? -128 : 0) - s->zero);
}

static float highest(const struct step *s)
{
    return (float)((s->is_signed ? 127 : 255) - s->zero);
}

static bool keep(struct cpu_match *m, const struct cpu_bytes_end *q)
{
    struct cpu_bytes_end *kept = MGX_NEW(m->c->arena, struct cpu_bytes_end);
    if (kept) {
        *kept = *q;
        m->out->bytes = kept;
    }
    return kept != NULL;
}

static struct cpu_bytes_end bytes_of(const struct step *s)
{
    return (struct cpu_bytes_end){.is_signed = s->is_signed,
                                  .divisor = (float)s->scale,
                                  .low = lowest(s),
                                  .high = highest(s),
                                  .zero = s->zero};
}

bool cpu_match_plain_bytes(struct cpu_match *m)
{
    const struct step plain = {.scale = 1, .is_signed = m->c->out->type == MGX_INT8};
    const struct cpu_bytes_end q = bytes_of(&plain);
    return keep(m, &q);
}

// --- with a residual ---

// What `low` and `high` an activation is, in steps of the result; false for one that is no clamp.
static bool clamp_of(const struct cpu_floats_end *e, double scale, float *low, float *high)
{
    if (e->act > MGX_ACT_CLIP || e->factor)
        return false;
    if (e->act == MGX_ACT_RELU)
        *low = fmaxf(*low, 0);
    if (e->act == MGX_ACT_CLIP) {
        *low = fmaxf(*low, (float)(e->a / scale));
        *high = fminf(*high, (float)(e->b / scale));
    }
    return *low <= *high;
}

// dq of an input of the group that is a residual of bytes.
static bool read_residual(const struct cpu_match *m, const struct mgx_ins *node, struct step *s,
                          int *input)
{
    if (!read_step(m, node, &mgx_op_dequantizelinear, s))
        return false;
    *input = cpu_match_operand(m, node->in[0]);
    return *input >= 0 && cpu_match_residual(m, *input, node->in[0]->shape.type);
}

static const struct mgx_module *body_of(const struct cpu_match *m)
{
    return m->last->mod_count ? m->last->mod[0] : NULL;
}

// `node` is q(value) of the sums' value.
static bool is_first(struct cpu_match *m, const struct mgx_ins *node, struct step *s)
{
    cpu_match_reset(m->out);
    return read_step(m, node, &mgx_op_quantizelinear, s) && cpu_match_value(m, node->in[0]) &&
           m->out->residual < 0;
}

static void set_first(struct cpu_bytes_end *q, const struct step *s)
{
    q->divisor = (float)s->scale;
    q->low = lowest(s);
    q->high = highest(s);
}

// A byte that depends on the value's byte alone: f(q(value)), `back` its way to floats.
static bool match_middle(struct cpu_match *m, const struct mgx_ins *byte, const struct step *back,
                         struct cpu_bytes_end *q)
{
    const struct mgx_module *body = body_of(m);
    for (const struct mgx_ins *node = body ? body->first : NULL; node; node = node->next) {
        struct step s;
        if (!is_first(m, node, &s))
            continue;
        const uint8_t *table = mgx_plan_table_between(m->c->arena, body, node, byte);
        uint8_t *middle = table ? MGX_NEW_ARRAY(m->c->arena, uint8_t, 256) : NULL;
        if (!middle)
            continue;
        for (int i = 0; i < 256; i++)
            middle[i] = table[s.is_signed ? i ^ 128 : i] ^ (back->is_signed ? 128 : 0);
        set_first(q, &s);
        q->middle = middle;
        q->middle_low = (int)lowest(&s);
        q->middle_zero = back->zero + (back->is_signed ? 128 : 0);
        return true;
    }
    return false;
}

// dq(q(v)), dq(f(q(v))) or v itself, in steps of `scale`.
static bool match_first(struct cpu_match *m, const struct mgx_ins *node, double scale,
                        struct cpu_bytes_end *q)
{
    struct step s, back;
    if (!read_step(m, node, &mgx_op_dequantizelinear, &back)) {
        q->divisor = (float)scale;
        q->low = -1e30f;
        q->high = 1e30f;
        q->keep = 1;
        cpu_match_reset(m->out);
        return cpu_match_value(m, node) && m->out->residual < 0;
    }
    q->keep = (float)(back.scale / scale);
    q->rounds = is_first(m, node->in[0], &s) && s.scale == back.scale && s.zero == back.zero;
    if (!q->rounds)
        return match_middle(m, node->in[0], &back, q);
    set_first(q, &s);
    return true;
}

// What is added for every column, in steps of `scale`; NULL where it is no constant.
static const float *read_term(struct cpu_match *m, const struct mgx_ins *node, double scale)
{
    const int64_t columns = m->c->out->lens[m->column];
    double *read = MGX_NEW_ARRAY(m->c->arena, double, columns);
    float *term = MGX_NEW_ARRAY(m->c->arena, float, columns);
    if (!read || !term || !cpu_match_column(m, node, read))
        return NULL;
    for (int64_t i = 0; i < columns; i++) {
        term[i] = (float)(read[i] / scale);
        if (!(fabsf(term[i]) < 0x1p20F))
            return NULL;
    }
    return term;
}

// dq(f(q(value))) + bias. (The bias of what was not quantized is the value's own.)
static bool match_term(struct cpu_match *m, const struct mgx_ins *sum, double scale,
                       struct cpu_bytes_end *q)
{
    for (int i = 0; i < 2; i++) {
        const struct cpu_bytes_end before = *q;
        if (sum->in[i]->op == &mgx_op_dequantizelinear && match_first(m, sum->in[i], scale, q) &&
            (q->rounds || q->middle)) {
            q->term = read_term(m, sum->in[1 - i], scale);
            if (q->term)
                return true;
        }
        *q = before;
        cpu_match_reset(m->out);
    }
    return false;
}

// The second step, clamped to `q`'s second limits.
static bool match_sum(struct cpu_match *m, const struct mgx_ins *sum, double scale,
                      struct cpu_bytes_end *q)
{
    struct step residual;
    int input;
    for (int i = 0; i < 2 && sum->op == &mgx_op_add; i++) {
        if (!read_residual(m, sum->in[i], &residual, &input) ||
            !match_first(m, sum->in[1 - i], scale, q))
            continue;
        q->residual = true;
        q->residual_signed = residual.is_signed;
        q->residual_zero = residual.zero;
        q->share = (float)(residual.scale / scale);
        m->out->residual = input;
        return true;
    }
    cpu_match_reset(m->out);
    return sum->op == &mgx_op_add && match_term(m, sum, scale, q);
}

// Peels the second step's clamp off `node` into `q`; NULL: it is another activation.
static const struct mgx_ins *peel_clamp(struct cpu_match *m, const struct mgx_ins *node,
                                        double scale, struct cpu_bytes_end *q)
{
    const struct mgx_ins *inner = cpu_match_act(m, node);
    const bool clamps = clamp_of(&m->out->floats, scale, &q->low2, &q->high2);
    cpu_match_reset(m->out);
    return clamps ? inner : NULL;
}

// A byte, q of a value or of one and a residual: `byte` itself, not a function of it.
static bool match_byte(struct cpu_match *m, const struct mgx_ins *byte, struct cpu_bytes_end *q)
{
    struct step last;
    if (is_first(m, byte, &last)) {
        *q = bytes_of(&last);
        return true;
    }
    cpu_match_reset(m->out);
    if (!read_step(m, byte, &mgx_op_quantizelinear, &last))
        return false;
    *q = bytes_of(&last);
    q->low2 = q->low;
    q->high2 = q->high;
    const struct mgx_ins *sum = peel_clamp(m, byte->in[0], last.scale, q);
    if (!sum || !match_sum(m, sum, last.scale, q))
        return false;
    q->saturates_last = (q->rounds || q->middle) && q->keep < 0x1p20F && q->share < 0x1p20F &&
                        nearbyintf(q->low2) == lowest(&last) &&
                        nearbyintf(q->high2) == highest(&last);
    return true;
}

// dq of a byte of a value and a residual or term.
static bool match_dequantized(struct cpu_match *m, const struct mgx_ins *node,
                              struct cpu_bytes_end *q)
{
    struct step last, back;
    if (!read_step(m, node, &mgx_op_dequantizelinear, &back) || !match_byte(m, node->in[0], q) ||
        !(q->residual || q->term) || !read_step(m, node->in[0], &mgx_op_quantizelinear, &last) ||
        last.scale != back.scale || last.zero != back.zero)
        return false;
    q->floats = q->rounds_last = true;
    q->saturates_last = false;
    q->unit = (float)last.scale;
    return true;
}

bool cpu_match_floats(struct cpu_match *m)
{
    struct cpu_bytes_end q = {.floats = true, .low2 = -INFINITY, .high2 = INFINITY, .unit = 1};
    const struct mgx_ins *root = cpu_match_root(m), *node = peel_clamp(m, root, 1, &q);
    const bool found = node && (match_sum(m, node, 1, &q) || match_first(m, node, 1, &q));
    if (found && (q.rounds || q.middle)) // else a sum that is no number could not stay one
        return keep(m, &q);
    return match_dequantized(m, root, &q) && keep(m, &q);
}

// --- functions of a byte ---

bool cpu_match_bytes(struct cpu_match *m)
{
    const struct mgx_module *body = body_of(m);
    struct cpu_bytes_end q;
    if (match_byte(m, cpu_match_root(m), &q))
        return keep(m, &q);
    for (const struct mgx_ins *node = body ? body->first : NULL; node; node = node->next) {
        if (node->op != &mgx_op_quantizelinear || !match_byte(m, node, &q))
            continue;
        q.table = mgx_plan_table_of(m->c->arena, body, node);
        if (q.table)
            return keep(m, &q);
    }
    cpu_match_reset(m->out);
    return false;
}
