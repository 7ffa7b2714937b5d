// SPDX-License-Identifier: MIT
// Epilogues of integer products that end in bytes; see epilogue.h and kernel/requant.h.
//
//     q(value)                                       one step to bytes
//     q(act(dq(q(value)) + dq(residual)))            the same with a residual of bytes
//     f(q(value))                                    f of one byte, whatever it is: a table
//
// with q quantizelinear and dq dequantizelinear by one constant scale and zero point.
#include <math.h>

#include "op/op.h"
#include "targets/cpu/lower/epilogue_match.h"
#include "targets/cpu/lower/table.h"

// --- steps ---

// A quantization or dequantization by one constant positive scale and zero point.
struct step {
    double scale;
    int zero;
    bool is_signed;
};

static bool zero_of(const struct cpu_match *m, const struct mgx_ins *node, int *zero)
{
    const struct mgx_ins *leaf = cpu_match_leaf(m, node);
    const struct mgx_tensor *t = node->literal;
    if (!t && leaf && cpu_match_input(m, leaf) >= 0)
        t = m->c->constant[cpu_match_input(m, leaf)];
    if (!t || mgx_shape_space(&t->shape) != 1)
        return false;
    *zero = (int)mgx_load_int(t->shape.type, t->data, 0);
    return true;
}

static bool read_step(const struct cpu_match *m, const struct mgx_ins *node,
                      const struct mgx_op *op, struct step *s)
{
    if (node->op != op)
        return false;
    const enum mgx_type type =
        op == &mgx_op_quantizelinear ? node->shape.type : node->in[0]->shape.type;
    *s = (struct step){.is_signed = type == MGX_INT8};
    return (type == MGX_INT8 || type == MGX_UINT8) &&
           cpu_match_constant(m, node->in[1], &s->scale) && s->scale > 1e-30 && s->scale < 1e30 &&
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

static bool keep(struct cpu_match *m, const struct mgx_requant *q)
{
    struct mgx_requant *kept = MGX_NEW(m->c->arena, struct mgx_requant);
    if (kept) {
        *kept = *q;
        m->out->requant = kept;
        m->out->kernel.requant = kept;
    }
    return kept != NULL;
}

static struct mgx_requant requant_of(const struct step *s)
{
    return (struct mgx_requant){.is_signed = s->is_signed,
                                .divisor = (float)s->scale,
                                .low = lowest(s),
                                .high = highest(s),
                                .zero = s->zero};
}

bool cpu_match_plain_bytes(struct cpu_match *m)
{
    const struct step plain = {.scale = 1, .is_signed = m->c->out->type == MGX_INT8};
    const struct mgx_requant q = requant_of(&plain);
    return keep(m, &q);
}

// --- with a residual ---

// What `low` and `high` an activation is, in steps of the result; false for one that is no clamp.
static bool clamp_of(const struct mgx_epilogue *e, double scale, float *low, float *high)
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
    const struct mgx_ins *leaf = cpu_match_leaf(m, node->in[0]);
    *input = leaf ? cpu_match_input(m, leaf) : -1;
    return *input >= 0 && cpu_match_residual(m, *input, node->in[0]->shape.type);
}

// `value` + residual, quantized by `last` after a clamp: value is dq(q(v)), or v itself.
static bool match_sum(struct cpu_match *m, const struct mgx_ins *value, const struct step *last,
                      const struct step *residual, float low, float high)
{
    struct step first = *last, back;
    struct mgx_requant q = requant_of(last);
    q.rounds = value->op == &mgx_op_dequantizelinear &&
               read_step(m, value, &mgx_op_dequantizelinear, &back) &&
               read_step(m, value->in[0], &mgx_op_quantizelinear, &first);
    if (q.rounds) {
        if (first.scale != back.scale || first.zero != back.zero)
            return false;
        q.low = lowest(&first);
        q.high = highest(&first);
        value = value->in[0]->in[0];
    } else {
        q.low = -1e30f;
        q.high = 1e30f;
    }
    q.divisor = (float)first.scale;
    q.keep = (float)(first.scale / last->scale);
    q.residual = true;
    q.residual_signed = residual->is_signed;
    q.residual_zero = residual->zero;
    q.share = (float)(residual->scale / last->scale);
    q.low2 = low;
    q.high2 = high;
    return cpu_match_value(m, value) && m->out->residual < 0 && keep(m, &q);
}

static bool match_residual(struct cpu_match *m, const struct mgx_ins *node, const struct step *last)
{
    float low = lowest(last), high = highest(last);
    const struct mgx_ins *sum = cpu_match_act(m, node);
    const bool clamps = clamp_of(&m->out->kernel, last->scale, &low, &high);
    cpu_match_reset(m->out);
    for (int i = 0; i < 2 && clamps && sum->op == &mgx_op_add; i++) {
        struct step s;
        int input;
        if (!read_residual(m, sum->in[i], &s, &input))
            continue;
        if (match_sum(m, sum->in[1 - i], last, &s, low, high)) {
            m->out->residual = input;
            m->out->kernel.residual = MGX_RESIDUAL_BYTES;
            return true;
        }
        cpu_match_reset(m->out);
    }
    return false;
}

// --- functions of a byte ---

static bool match_table(struct cpu_match *m)
{
    const struct mgx_module *body = m->last->mod_count ? m->last->mod[0] : NULL;
    for (const struct mgx_ins *node = body ? body->first : NULL; node; node = node->next) {
        struct step s;
        if (node == cpu_match_root(m) || !read_step(m, node, &mgx_op_quantizelinear, &s) ||
            !cpu_match_value(m, node->in[0]) || m->out->residual >= 0) {
            cpu_match_reset(m->out);
            continue;
        }
        struct mgx_requant q = requant_of(&s);
        q.table = cpu_table_of(m->c, body, node);
        if (q.table && keep(m, &q))
            return true;
        cpu_match_reset(m->out);
    }
    return false;
}

bool cpu_match_bytes(struct cpu_match *m)
{
    const struct mgx_ins *root = cpu_match_root(m);
    struct step last;
    if (!read_step(m, root, &mgx_op_quantizelinear, &last))
        return match_table(m);
    const struct mgx_requant q = requant_of(&last);
    if (cpu_match_value(m, root->in[0]) && m->out->residual < 0 && keep(m, &q))
        return true;
    cpu_match_reset(m->out);
    if (match_residual(m, root->in[0], &last))
        return true;
    cpu_match_reset(m->out);
    return match_table(m);
}
