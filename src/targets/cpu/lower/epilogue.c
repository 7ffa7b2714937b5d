// SPDX-License-Identifier: MIT
// Matching epilogues; see epilogue.h.
//
// The body is a tree over the sums. From its root constant factors and terms per column and an
// activation are peeled off, then additions of a bias (one value per column) and of a residual (a
// tensor like the result), until the sums themselves remain. What resists runs as a block program.
#include "targets/cpu/lower/epilogue_match.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "op/pointwise.h"

// --- the tree: nodes of the element-wise body; leaves are inputs of the group, the sums, or
// constants ---

const struct mgx_ins *cpu_match_leaf(const struct cpu_match *m, const struct mgx_ins *node)
{
    if (!m->last->mod_count)
        return node == m->last ? NULL : node;
    if (node->op != &mgx_op_param)
        return NULL;
    struct mgx_ins *params[CPU_EPILOGUE_INPUTS + 4];
    const int count = mgx_module_parameters(m->last->mod[0], params, CPU_EPILOGUE_INPUTS + 4);
    for (int i = 0; i < count && i < m->last->in_count; i++)
        if (params[i] == node)
            return m->last->in[i];
    return NULL;
}

int cpu_match_input(const struct cpu_match *m, const struct mgx_ins *leaf)
{
    for (int i = 0; i < m->param_count; i++)
        if (m->params[i] == leaf)
            return i;
    return -1;
}

bool cpu_match_constant(const struct cpu_match *m, const struct mgx_ins *node, double *value)
{
    const struct mgx_ins *leaf = cpu_match_leaf(m, node);
    const struct mgx_tensor *t = node->literal;
    if (!t && leaf && cpu_match_input(m, leaf) >= 0)
        t = m->c->constant[cpu_match_input(m, leaf)];
    if (!t || mgx_shape_space(&t->shape) != 1 || t->shape.type != MGX_FLOAT)
        return false;
    *value = *(const float *)t->data;
    return true;
}

// --- activations ---

static void set_act(struct cpu_match *m, enum mgx_act act, double a, double b)
{
    m->out->kernel.act = act;
    m->out->kernel.a = (float)a;
    m->out->kernel.b = (float)b;
}

// Constant slopes of prelu, one per column.
static bool peel_slopes(struct cpu_match *m, const struct mgx_ins *node)
{
    const struct mgx_ins *leaf = cpu_match_leaf(m, node);
    const int input = leaf ? cpu_match_input(m, leaf) : -1;
    if (input < 0 || !m->c->constant[input] || !cpu_match_bias(m, input))
        return false;
    m->out->kernel.a_column = m->c->constant[input]->data;
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
static int row_axes(const struct cpu_match *m, int *order)
{
    const struct mgx_shape *y = m->c->out;
    int count = 0;
    for (int i = 0; i < y->rank; i++)
        if (i != m->column && y->lens[i] != 1)
            order[count++] = i;
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && y->strides[order[j - 1]] < y->strides[order[j]]; j--) {
            const int t = order[j];
            order[j] = order[j - 1];
            order[j - 1] = t;
        }
    return count;
}

// The distance from row to row of `x`, rows taken in the order in which the result's lie in memory
// (all axes but the column). False if they do not lie at one distance.
static bool row_step(const struct cpu_match *m, const struct mgx_shape *x, int64_t *step)
{
    const struct mgx_shape *y = m->c->out;
    int order[MGX_MAX_RANK];
    const int count = row_axes(m, order);
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
static bool steps_of(const struct cpu_match *m, int input, int64_t *row, int64_t *col)
{
    const struct mgx_shape *x = &m->c->in[input], *y = m->c->out;
    if (!mgx_shape_same_lens(x, y))
        return false;
    *col = y->lens[m->column] == 1 ? 1 : x->strides[m->column];
    return (*col == 0 || *col == 1) && row_step(m, x, row);
}

bool cpu_match_bias(const struct cpu_match *m, int input)
{
    int64_t row, col;
    return m->c->in[input].type == MGX_FLOAT && steps_of(m, input, &row, &col) && row == 0 &&
           col == 1;
}

// A tensor of the result's lengths whose columns are contiguous; its rows may lie anywhere.
bool cpu_match_residual(const struct cpu_match *m, int input, enum mgx_type type)
{
    const struct mgx_shape *x = &m->c->in[input];
    return x->type == type && mgx_shape_same_lens(x, m->c->out) && !mgx_shape_is_broadcasted(x) &&
           (x->strides[m->column] == 1 || x->lens[m->column] == 1);
}

// --- sum + bias + residual ---

static bool is_sums(struct cpu_match *m, const struct mgx_ins *node)
{
    if (m->out->integer)
        return cpu_match_integer_sums(m, node);
    return cpu_match_leaf(m, node) == m->main;
}

static bool peel_sums(struct cpu_match *m, const struct mgx_ins *node)
{
    while (!is_sums(m, node)) {
        if (node->op != &mgx_op_add)
            return false;
        const struct mgx_ins *next = NULL;
        for (int i = 0; i < 2 && !next; i++) {
            const struct mgx_ins *leaf = cpu_match_leaf(m, node->in[i]);
            const int input = leaf ? cpu_match_input(m, leaf) : -1;
            if (input < 0)
                continue;
            if (m->out->bias < 0 && cpu_match_bias(m, input)) {
                m->out->bias = input;
                next = node->in[1 - i];
            } else if (m->out->residual < 0 && cpu_match_residual(m, input, MGX_FLOAT)) {
                m->out->residual = input;
                m->out->kernel.residual = MGX_RESIDUAL_BEFORE;
                next = node->in[1 - i];
            }
        }
        if (!next)
            return false;
        node = next;
    }
    return true;
}

// --- what follows the activation: factors and terms per column ---

// A constant that is one value, or one per column: adds up (term) or multiplies (factor).
static bool read_column(const struct cpu_match *m, const struct mgx_ins *node, double *out)
{
    const int64_t columns = m->c->out->lens[m->column];
    const struct mgx_ins *leaf = cpu_match_leaf(m, node);
    const int input = leaf ? cpu_match_input(m, leaf) : -1;
    double value;
    if (!cpu_match_constant(m, node, &value)) {
        if (input < 0 || !m->c->constant[input] || !cpu_match_bias(m, input))
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
        if (read_column(m, node->in[1 - i], column)) {
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
        m->out->kernel.factor = kept;
        m->out->kernel.term = kept + c->count;
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
    e->kernel = (struct mgx_epilogue){.act = MGX_ACT_NONE};
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

static bool match_simple(struct cpu_match *m)
{
    const struct mgx_ins *root = cpu_match_root(m);
    if (cpu_match_value(m, root))
        return true;
    cpu_match_reset(m->out);
    // act(sum + bias) + residual
    for (int i = 0; root->op == &mgx_op_add && i < 2; i++) {
        const struct mgx_ins *leaf = cpu_match_leaf(m, root->in[i]);
        const int input = leaf ? cpu_match_input(m, leaf) : -1;
        if (input < 0 || !cpu_match_residual(m, input, MGX_FLOAT))
            continue;
        if (cpu_match_value(m, root->in[1 - i]) && m->out->residual < 0) {
            m->out->residual = input;
            m->out->kernel.residual = MGX_RESIDUAL_AFTER;
            return true;
        }
        cpu_match_reset(m->out);
    }
    return false;
}

// --- the general way ---

static int64_t row_offset(const struct cpu_epilogue_operand *o, int64_t row)
{
    int64_t offset = o->rank ? 0 : row * o->row;
    for (int k = 0; k < o->rank; k++) {
        offset += row % o->len[k] * o->stride[k];
        row /= o->len[k];
    }
    return offset;
}

// n columns of an operand in one row; in `room` where they do not lie side by side.
static struct mgx_block_operand load(const struct cpu_epilogue_run *run,
                                     const struct cpu_epilogue_operand *o, int64_t row,
                                     int64_t column, int n, float *room)
{
    return cpu_body_load(run->epilogue->body->block.isa, run->args->in[o->input], o->type,
                         row_offset(o, row) + column * o->col, o->col, n, room);
}

static void run_tile(void *user, const struct mgx_tile *tile)
{
    const struct cpu_epilogue_run *run = user;
    const struct cpu_epilogue *e = run->epilogue;
    float *scratch = (float *)(void *)((char *)run->args->workspace + e->scratch_offset) +
                     (size_t)tile->thread * e->scratch_floats;
    float *room = scratch + mgx_block_scratch(&e->body->block);
    for (int r = 0; r < tile->rows; r++) {
        float *row = tile->data + r * tile->stride;
        const int64_t y = tile->row + r * tile->row_step;
        for (int first = 0; first < tile->cols; first += MGX_BLOCK) {
            const int n = tile->cols - first < MGX_BLOCK ? tile->cols - first : MGX_BLOCK;
            struct mgx_block_operand in[CPU_EPILOGUE_INPUTS];
            float *out = row + first;
            for (int i = 0; i < e->operand_count; i++)
                in[i] = e->operand[i].input < 0 ? (struct mgx_block_operand){out, false}
                                                : load(run, &e->operand[i], y, tile->col + first, n,
                                                       room + (size_t)i * MGX_BLOCK);
            mgx_block_run(&e->body->block, in, &out, n, scratch);
        }
    }
}

// A broadcast of any kind is read where it lies: its rows by their axes, its columns one by one.
static bool place_broadcast(const struct cpu_match *m, int input, struct cpu_epilogue_operand *o)
{
    const struct mgx_shape *x = &m->c->in[input], *y = m->c->out;
    int order[MGX_MAX_RANK];
    if (!mgx_shape_same_lens(x, y) || !mgx_shape_is_broadcasted(x))
        return false;
    o->col = x->strides[m->column];
    o->rank = 0;
    for (int i = row_axes(m, order) - 1; i >= 0; i--) {
        const int64_t len = y->lens[order[i]], stride = x->strides[order[i]];
        const int k = o->rank - 1;
        if (k >= 0 && stride == o->stride[k] * o->len[k]) {
            o->len[k] *= len;
            continue;
        }
        if (o->rank == CPU_EPILOGUE_AXES)
            return false;
        o->len[o->rank] = len;
        o->stride[o->rank++] = stride;
    }
    return true;
}

static bool place_operand(const struct cpu_match *m, int input, struct cpu_epilogue_operand *o)
{
    o->input = input;
    o->type = input >= 0 ? m->c->in[input].type : MGX_FLOAT;
    o->rank = 0;
    return input >= 0 && (steps_of(m, input, &o->row, &o->col) || place_broadcast(m, input, o));
}

static bool match_general(struct cpu_match *m)
{
    struct cpu_epilogue *e = m->out;
    e->body = cpu_body_compile(m->c, m->last);
    if (!e->body || e->body->out_count != 1 || e->body->out_type[0] != m->c->out->type ||
        m->c->out->type == MGX_BOOL)
        return false;
    if (m->last->in_count > CPU_EPILOGUE_INPUTS) {
        m->c->why = "the epilogue's operands have no simple form";
        return false;
    }
    e->operand_count = m->last->in_count;
    for (int i = 0; i < m->last->in_count; i++) {
        e->operand[i].input = -1;
        if (m->last->in[i] == m->main)
            continue;
        if (!place_operand(m, cpu_match_input(m, m->last->in[i]), &e->operand[i])) {
            if (e->operand[i].input >= 0)
                m->c->want_in[e->operand[i].input] = MGX_PLAN_LIKE_RESULT;
            m->c->why = "the epilogue's operands have no simple form";
            return false;
        }
    }
    e->kernel.hook = run_tile;
    return m->c->out->type == MGX_FLOAT || cpu_match_plain_bytes(m);
}

// The same of integers counts as the operator.
static bool is_main(const struct mgx_op *op, const struct mgx_op *wanted)
{
    return op == wanted || (wanted == &mgx_op_dot && op == &mgx_op_quant_dot) ||
           (wanted == &mgx_op_convolution && op == &mgx_op_quant_convolution);
}

static bool find_parts(struct cpu_match *m, const struct mgx_op *op)
{
    const struct mgx_ins *ins = m->c->ins;
    if (is_main(ins->op, op)) {
        m->main = m->last = ins;
        m->param_count = ins->in_count;
        for (int i = 0; i < ins->in_count; i++)
            m->params[i] = ins->in[i];
        return true;
    }
    if (ins->op != &mgx_op_group || ins->mod_count != 1 || ins->in_count > CPU_EPILOGUE_INPUTS)
        return false;
    const struct mgx_module *body = ins->mod[0];
    m->param_count = mgx_module_parameters(body, m->params, CPU_EPILOGUE_INPUTS + 4);
    for (const struct mgx_ins *i = body->first; i; i = i->next) {
        if (is_main(i->op, op) && !m->main)
            m->main = i;
        else if (i->op == &mgx_op_mul && !m->main && !m->before)
            m->before = i;
        else if (!(i->op->flags & MGX_OP_BUILTIN) && (m->last || is_main(i->op, op)))
            return false; // more than one instruction after it
        else if (!(i->op->flags & MGX_OP_BUILTIN))
            m->last = i;
    }
    if (!m->main || mgx_module_result_count(body) != 1 ||
        (m->before && (m->main->in[0] != m->before || op != &mgx_op_convolution)))
        return false;
    m->last = m->last ? m->last : m->main;
    return mgx_module_result(body, 0) == m->last;
}

bool cpu_epilogue_match(struct mgx_plan_offer *c, const struct mgx_op *op, struct cpu_epilogue *out,
                        const struct mgx_ins **main)
{
    struct cpu_match m = {.c = c, .out = out, .column = op == &mgx_op_dot ? c->out->rank - 1 : 1};
    *out = (struct cpu_epilogue){.bias = -1, .residual = -1, .factor = -1, .scale = -1};
    if (!find_parts(&m, op))
        return false;
    *main = m.main;
    out->integer = m.main->op == &mgx_op_quant_dot || m.main->op == &mgx_op_quant_convolution;
    out->scale_value = 1;
    out->main_count = m.main->in_count;
    const struct mgx_ins *first = m.main->in[0];
    if (m.before) { // the factor is the broadcast one
        const int a = cpu_match_input(&m, m.before->in[0]),
                  b = cpu_match_input(&m, m.before->in[1]);
        if (a < 0 || b < 0)
            return false;
        const bool swapped = mgx_shape_is_broadcasted(&c->in[a]);
        out->factor = swapped ? a : b;
        first = m.before->in[swapped ? 1 : 0];
    }
    for (int i = 0; i < m.main->in_count; i++) {
        out->main_in[i] = cpu_match_input(&m, i ? m.main->in[i] : first);
        if (out->main_in[i] < 0 || i >= 4)
            return false;
    }
    if (m.last == m.main)
        return true;
    const bool bytes = c->out->type == MGX_INT8 || c->out->type == MGX_UINT8;
    if (bytes ? out->integer && cpu_match_bytes(&m) : match_simple(&m))
        return true;
    cpu_match_reset(out);
    return match_general(&m);
}

void cpu_epilogue_finish(struct mgx_plan_offer *c, struct cpu_epilogue *e)
{
    if (!e->body)
        return;
    e->scratch_floats = (size_t)mgx_block_scratch(&e->body->block);
    for (int i = 0; i < e->operand_count; i++)
        if (e->operand[i].input >= 0 &&
            (e->operand[i].type != MGX_FLOAT || e->operand[i].col > 1 || e->operand[i].col < 0))
            e->scratch_floats =
                (size_t)mgx_block_scratch(&e->body->block) + (size_t)e->operand_count * MGX_BLOCK;
    e->scratch_offset = (c->workspace + 63) / 64 * 64;
    c->workspace =
        e->scratch_offset + e->scratch_floats * sizeof(float) * (size_t)c->machine->threads;
}

void cpu_epilogue_start(const struct cpu_epilogue *e, const struct mgx_plan_args *args,
                        struct cpu_epilogue_run *run)
{
    run->epilogue = e;
    run->args = args;
    run->bias = e->bias >= 0 ? args->in[e->bias] : NULL;
    run->residual = e->residual >= 0 ? args->in[e->residual] : NULL;
}
