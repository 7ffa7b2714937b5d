// SPDX-License-Identifier: MIT
// act(sums + bias + residual), factors and terms per column behind it; see epilogue_match.h.
//
// The body is a tree over the sums. From its root constant factors and terms per column and an
// activation are peeled off, then additions of a bias (one value per column) and of a residual (a
// tensor like the result), until the sums themselves remain: floats, or integers that were
// converted.
#include "targets/cpu/lower/epilogue_match.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "op/op.h"
#include "op/pointwise.h"

// --- the tree: nodes of the element-wise body; leaves are inputs of the group, the sums, or
// constants ---

const struct mgx_ins *cpu_match_leaf(const struct cpu_match *m, const struct mgx_ins *node)
{
    assert(node && m->last);
    if (!m->last->mod_count)
        return node == m->last ? NULL : node;
    const int i = mgx_parameter_index(node);
    return i >= 0 && i < m->last->in_count ? m->last->in[i] : NULL;
}

int cpu_match_input(const struct cpu_match *m, const struct mgx_ins *leaf)
{
    return m->roles.body ? mgx_parameter_index(leaf) : -1;
}

// An input of 16 bits is meant where the body makes floats of it.
int cpu_match_operand(const struct cpu_match *m, const struct mgx_ins *node)
{
    const bool widens = node->op == &mgx_op_convert && node->shape.type == MGX_FLOAT &&
                        mgx_type_is_half_or_bf16(node->in[0]->shape.type);
    const struct mgx_ins *leaf = cpu_match_leaf(m, widens ? node->in[0] : node);
    return leaf ? cpu_match_input(m, leaf) : -1;
}

const struct mgx_tensor *cpu_match_value_of(const struct cpu_match *m, const struct mgx_ins *node)
{
    const int input = cpu_match_operand(m, node);
    const struct mgx_tensor *t = node->literal || input < 0 ? node->literal : m->c->constant[input];
    return t && mgx_shape_space(&t->shape) == 1 ? t : NULL;
}

bool cpu_match_constant(const struct cpu_match *m, const struct mgx_ins *node, double *value)
{
    const struct mgx_tensor *t = cpu_match_value_of(m, node);
    if (!t || t->shape.type != MGX_FLOAT)
        return false;
    *value = *(const float *)t->data;
    return true;
}

// --- activations ---

static void set_act(struct cpu_match *m, enum mgx_act act, double a, double b)
{
    m->out->floats.act = act;
    m->out->floats.a = (float)a;
    m->out->floats.b = (float)b;
}

// One float per column, the same for all rows.
static bool is_bias(const struct cpu_match *m, int input)
{
    int64_t row, col;
    return m->c->in[input].type == MGX_FLOAT && cpu_match_steps(m, input, &row, &col) && row == 0 &&
           col == 1;
}

// Constant slopes of prelu, one per column.
static bool peel_slopes(struct cpu_match *m, const struct mgx_ins *node)
{
    assert(m->out);
    const int input = cpu_match_operand(m, node);
    if (input < 0 || !m->c->constant[input] || !is_bias(m, input))
        return false;
    m->out->floats.a_column = m->c->constant[input]->data;
    return true;
}

const struct mgx_ins *cpu_match_act(struct cpu_match *m, const struct mgx_ins *node)
{
    static const struct {
        const struct mgx_op *op;
        enum mgx_act act;
    } acts[] = {{&mgx_op_relu, MGX_ACT_RELU},
                {&mgx_op_sigmoid, MGX_ACT_SIGMOID},
                {&mgx_op_tanh, MGX_ACT_TANH},
                {&mgx_op_silu, MGX_ACT_SILU},
                {&mgx_op_gelu, MGX_ACT_GELU},
                {&mgx_op_gelu_tanh, MGX_ACT_GELU_TANH},
                {&mgx_op_softplus, MGX_ACT_SOFTPLUS},
                {&mgx_op_mish, MGX_ACT_MISH},
                {&mgx_op_elu, MGX_ACT_ELU},
                {&mgx_op_leaky_relu, MGX_ACT_LEAKY_RELU},
                {&mgx_op_hard_sigmoid, MGX_ACT_HARD_SIGMOID},
                {&mgx_op_hard_swish, MGX_ACT_HARD_SWISH}};
    static const struct mgx_line_attr none;
    const struct mgx_pointwise *row = mgx_pointwise_find(node->op);
    const struct mgx_line_attr *attr = row && row->attrs ? node->attr : &none;
    for (int i = 0; i < MGX_COUNT(acts); i++)
        if (node->op == acts[i].op)
            return set_act(m, acts[i].act, attr->alpha, attr->beta), node->in[0];
    if (node->op == &mgx_op_prelu && peel_slopes(m, node->in[1]))
        return set_act(m, MGX_ACT_LEAKY_RELU, 0, 0), node->in[0];
    double low, high;
    if (node->op == &mgx_op_clip && cpu_match_constant(m, node->in[1], &low) &&
        cpu_match_constant(m, node->in[2], &high))
        return set_act(m, MGX_ACT_CLIP, low, high), node->in[0];
    return node;
}

// --- operands ---

// The axes of the result that count its rows, all but the column, outermost in memory first.
int cpu_match_row_axes(const struct cpu_match *m, int *order)
{
    const struct mgx_shape *y = m->c->out;
    int count = 0;
    for (int i = 0; i < y->rank; i++)
        if (i != m->column && y->lens[i] != 1)
            order[count++] = i;
    cpu_sort_axes(y, order, count);
    return count;
}

// The distance from row to row of `x`, rows taken in the order in which the result's lie in memory
// (all axes but the column). False if they do not lie at one distance.
static bool row_step(const struct cpu_match *m, const struct mgx_shape *x, int64_t *step)
{
    assert(x->rank == m->c->out->rank);
    const struct mgx_shape *y = m->c->out;
    int order[MGX_MAX_RANK];
    const int count = cpu_match_row_axes(m, order);
    *step = count ? x->strides[order[count - 1]] : 1;
    int64_t rows = 1;
    for (int i = count - 1; i >= 0; i--) {
        if (x->strides[order[i]] != *step * rows)
            return false;
        rows *= y->lens[order[i]];
    }
    return true;
}

// Steps of an operand over rows and columns; false if it has no such form.
bool cpu_match_steps(const struct cpu_match *m, int input, int64_t *row, int64_t *col)
{
    assert(input >= 0 && input < m->c->in_count);
    const struct mgx_shape *x = &m->c->in[input], *y = m->c->out;
    if (!mgx_shape_same_lens(x, y))
        return false;
    *col = y->lens[m->column] == 1 ? 1 : x->strides[m->column];
    return (*col == 0 || *col == 1) && row_step(m, x, row);
}

// A tensor of the result's lengths whose columns are contiguous; its rows may lie anywhere.
bool cpu_match_residual(const struct cpu_match *m, int input, enum mgx_type type)
{
    assert(input >= 0 && input < m->c->in_count);
    const struct mgx_shape *x = &m->c->in[input];
    const bool widens = type == MGX_FLOAT && mgx_type_is_half_or_bf16(x->type) && !m->out->integer;
    return (x->type == type || widens) && mgx_shape_same_lens(x, m->c->out) &&
           !mgx_shape_is_broadcasted(x) && (x->strides[m->column] == 1 || x->lens[m->column] == 1);
}

void cpu_match_add(struct cpu_match *m, int input, enum cpu_operand_place where)
{
    const enum mgx_type type = m->c->in[input].type;
    m->out->residual = input;
    m->out->floats.place = where;
    m->out->floats.operand = type == MGX_BF16   ? MGX_KERNEL_BF16
                             : type == MGX_HALF ? MGX_KERNEL_F16
                                                : MGX_KERNEL_F32;
}

// --- sums of integers ---

// Is it the int32 result of the main instruction?
static bool is_raw(const struct cpu_match *m, const struct mgx_ins *node)
{
    return cpu_match_leaf(m, node) == m->main;
}

// A factor of the sums: one constant, or an input that is one value or one per column.
static bool note_scale(struct cpu_match *m, const struct mgx_ins *node)
{
    assert(m->out->integer);
    double value;
    if (cpu_match_constant(m, node, &value)) {
        m->out->scale_value = (float)value;
        return true;
    }
    const int input = cpu_match_operand(m, node);
    if (input < 0 || m->c->in[input].type != MGX_FLOAT)
        return false;
    const struct mgx_shape *s = &m->c->in[input];
    const bool one = mgx_shape_space(s) == 1;
    if (!one && !is_bias(m, input))
        return false;
    m->out->scale = input;
    m->out->scale_step = !one;
    return true;
}

static bool is_converted(const struct cpu_match *m, const struct mgx_ins *node)
{
    return node->op == &mgx_op_convert && node->shape.type == MGX_FLOAT && is_raw(m, node->in[0]);
}

static bool is_integer_sums(struct cpu_match *m, const struct mgx_ins *node)
{
    if (is_converted(m, node))
        return true;
    if (node->op == &mgx_op_dequantizelinear)
        return node->in_count == 2 && is_raw(m, node->in[0]) && note_scale(m, node->in[1]);
    for (int i = 0; i < 2 && node->op == &mgx_op_mul; i++)
        if (is_converted(m, node->in[i]) && note_scale(m, node->in[1 - i]))
            return true;
    return false;
}

// --- sum + bias + residual ---

static bool is_sums(struct cpu_match *m, const struct mgx_ins *node)
{
    if (m->out->integer)
        return is_integer_sums(m, node);
    return cpu_match_leaf(m, node) == m->main;
}

static bool note_term(struct cpu_match *m, int input)
{
    if (input < 0)
        return false;
    if (m->out->bias < 0 && is_bias(m, input)) {
        m->out->bias = input;
        return true;
    }
    if (m->out->residual >= 0 || !cpu_match_residual(m, input, MGX_FLOAT))
        return false;
    cpu_match_add(m, input, CPU_OPERAND_FIRST);
    return true;
}

// What is left of node without the bias or residual that it adds; NULL where it adds neither.
static const struct mgx_ins *peel_term(struct cpu_match *m, const struct mgx_ins *node)
{
    for (int i = 0; node->op == &mgx_op_add && i < 2; i++)
        if (note_term(m, cpu_match_operand(m, node->in[i])))
            return node->in[1 - i];
    return NULL;
}

static bool peel_sums(struct cpu_match *m, const struct mgx_ins *node)
{
    while (node && !is_sums(m, node))
        node = peel_term(m, node);
    return node != NULL;
}

// --- what follows the activation: factors and terms per column ---

bool cpu_match_column(const struct cpu_match *m, const struct mgx_ins *node, double *out)
{
    const int64_t columns = m->c->out->lens[m->column];
    const int input = cpu_match_operand(m, node);
    double value;
    if (!cpu_match_constant(m, node, &value)) {
        if (input < 0 || !m->c->constant[input] || !is_bias(m, input))
            return false;
        for (int64_t i = 0; i < columns; i++)
            out[i] = ((const float *)m->c->constant[input]->data)[i];
        return true;
    }
    for (int64_t i = 0; i < columns; i++)
        out[i] = value;
    return true;
}

// node = x * a, x + a, x - a or a - x with a constant `a` per column, read into `column`; NULL if
// it is none.
static const struct mgx_ins *peel_column(const struct cpu_match *m, const struct mgx_ins *node,
                                         double *column, bool *swapped)
{
    if (node->op != &mgx_op_mul && node->op != &mgx_op_add && node->op != &mgx_op_sub)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (cpu_match_column(m, node->in[1 - i], column)) {
            *swapped = i == 1;
            return node->in[i];
        }
    return NULL;
}

// Value inner * factor + term per column, and room for a constant.
struct columns {
    int64_t count;
    double *factor, *term, *read;
};

// From the root down: what the value is in terms of `node`'s operand, which is returned; NULL when
// node is none of the kind.
static const struct mgx_ins *apply_column(const struct cpu_match *m, const struct mgx_ins *node,
                                          struct columns *c)
{
    bool swapped;
    const struct mgx_ins *next = peel_column(m, node, c->read, &swapped);
    const bool sub = node->op == &mgx_op_sub;
    for (int64_t i = 0; next && i < c->count; i++) {
        if (node->op == &mgx_op_mul)
            c->factor[i] *= c->read[i];
        else
            c->term[i] += c->factor[i] * (sub && !swapped ? -c->read[i] : c->read[i]);
        c->factor[i] *= sub && swapped ? -1 : 1;
    }
    return next;
}

// The columns as the kernels read them; false where infinities would go elsewhere.
static bool keep_columns(struct cpu_match *m, const struct columns *c)
{
    float *kept = MGX_NEW_ARRAY(m->c->arena, float, 2 * c->count);
    bool good = kept != NULL;
    for (int64_t i = 0; good && i < c->count; i++) {
        kept[i] = (float)c->factor[i];
        kept[c->count + i] = (float)c->term[i];
        good = isfinite(kept[i]) && isfinite(kept[c->count + i]);
    }
    if (good) {
        m->out->floats.factor = kept;
        m->out->floats.term = kept + c->count;
    }
    return good;
}

// What is left below factors and terms; NULL if there are none.
static const struct mgx_ins *peel_columns(struct cpu_match *m, const struct mgx_ins *node)
{
    enum { MAX_COLUMNS = 4 };
    struct columns c = {.count = m->c->out->lens[m->column]};
    double *all = malloc((size_t)c.count * 3 * sizeof *all);
    if (!all)
        return NULL;
    c.factor = all;
    c.term = all + c.count;
    c.read = c.term + c.count;
    for (int64_t i = 0; i < c.count; i++) {
        c.factor[i] = 1;
        c.term[i] = 0;
    }
    int count = 0;
    for (const struct mgx_ins *next; count < MAX_COLUMNS; count++, node = next) {
        next = apply_column(m, node, &c);
        if (!next)
            break;
    }
    const bool good = count > 0 && keep_columns(m, &c);
    free(all);
    return good ? node : NULL;
}

const struct mgx_ins *cpu_match_root(const struct cpu_match *m)
{
    return m->last->mod_count ? mgx_module_result(m->last->mod[0], 0) : m->last;
}

void cpu_match_reset(struct cpu_epilogue *e)
{
    e->floats = (struct cpu_floats_end){.act = MGX_ACT_NONE};
    e->bias = e->residual = e->scale = -1;
    e->scale_value = 1;
}

// act(sum + bias), also with factors and terms behind it.
bool cpu_match_value(struct cpu_match *m, const struct mgx_ins *node)
{
    if (peel_sums(m, cpu_match_act(m, node)))
        return true;
    cpu_match_reset(m->out);
    node = peel_columns(m, node);
    return node && peel_sums(m, cpu_match_act(m, node));
}
