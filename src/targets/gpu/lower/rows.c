// SPDX-License-Identifier: MIT
// Reductions, softmax and logsoftmax, and fused_reduce (normalisations with the element-wise work
// around them): one value, or one row, from every lane of the input. rows.h says how.
//
// Sums are float where the values are 16 or 32 bits, double for doubles, 64-bit integers otherwise;
// inside a fused body nothing is rounded to 16 bits. A NaN wins every maximum and minimum, as in the
// reference.
#include "targets/gpu/lower/row_also.h"

#include <string.h>

#include "op/op.h"
#include "targets/gpu/emit/type.h"

// --- reductions ---

static void mark_axes(const struct mgx_plan_offer *c, struct gpu_row *row)
{
    const struct mgx_ints axes = mgx_ins_ints(c->ins, "axes");
    const int rank = c->in[0].rank;
    for (int i = 0; i < rank; i++)
        row->in_lane[i] = axes.count == 0;
    for (int i = 0; i < axes.count; i++)
        row->in_lane[axes.v[i] < 0 ? axes.v[i] + rank : axes.v[i]] = true;
}

static enum mgx_plan_answer prepare_reduce(struct mgx_plan_offer *c)
{
    const struct gpu_fold *fold = c->copy_only || c->dynamic ? NULL : gpu_fold_find(c->ins->op);
    if (!fold)
        return gpu_decline(c, "not a reduction");
    if (c->in_count != 1)
        return gpu_decline(c, "axes that are known only at run time");
    const enum mgx_type type = c->in[0].type;
    struct gpu_row *row = MGX_NEW(c->arena, struct gpu_row);
    if (!row)
        return mgx_plan_no_memory(c);
    mark_axes(c, row);
    memcpy(row->lens, c->in[0].lens, sizeof row->lens);
    const struct gpu_node x = {.kind = GPU_NODE_INPUT, .type = type, .full = true};
    const struct gpu_node y = {.kind = GPU_NODE_FOLD,
                               .type = type,
                               .in_count = 1,
                               .fold = fold,
                               .mean = c->ins->op == &mgx_op_reduce_mean};
    gpu_row_add(row, &x);
    row->result = gpu_row_add(row, &y);
    return gpu_row_take(c, row);
}

const struct mgx_plan_kernel gpu_kernel_reduce = {
    .name = "gpu::reduce", .prepare = prepare_reduce, .run = gpu_run_call};

// --- softmax ---

static const char real_softmax[] =
    "FUNCTION void row_exp(pw_real x, pw_real m, pw_real *y) { *y = exp(x - m); }\n"
    "FUNCTION void row_part(pw_real x, pw_real s, pw_real *y) { *y = x / s; }\n"
    "FUNCTION void row_log(pw_real x, pw_real m, pw_real s, pw_real *y) { *y = x - m - log(s); }\n";
static const char double_softmax[] =
    "FUNCTION void row_exp(double x, double m, double *y) { *y = exp(x - m); }\n"
    "FUNCTION void row_part(double x, double s, double *y) { *y = x / s; }\n"
    "FUNCTION void row_log(double x, double m, double s, double *y) { *y = x - m - log(s); }\n";

static void fill_softmax(struct gpu_row *row, enum mgx_type type, bool logarithm)
{
    const struct gpu_node x = {.kind = GPU_NODE_INPUT, .type = type, .full = true};
    const int from = gpu_row_add(row, &x);
    const struct gpu_node most = {.kind = GPU_NODE_FOLD,
                                  .type = type,
                                  .in = {from},
                                  .in_count = 1,
                                  .fold = gpu_fold_find(&mgx_op_reduce_max)};
    const int m = gpu_row_add(row, &most);
    const struct gpu_node power = {.kind = GPU_NODE_SCALAR,
                                   .type = type,
                                   .full = true,
                                   .in = {from, m},
                                   .in_count = 2,
                                   .function = "row_exp"};
    const int e = gpu_row_add(row, &power);
    const struct gpu_node total = {.kind = GPU_NODE_FOLD,
                                   .type = type,
                                   .in = {e},
                                   .in_count = 1,
                                   .fold = gpu_fold_find(&mgx_op_reduce_sum)};
    const int s = gpu_row_add(row, &total);
    const struct gpu_node part = {.kind = GPU_NODE_SCALAR,
                                  .type = type,
                                  .full = true,
                                  .in = {e, s},
                                  .in_count = 2,
                                  .function = "row_part"};
    const struct gpu_node difference = {.kind = GPU_NODE_SCALAR,
                                        .type = type,
                                        .full = true,
                                        .in = {from, m, s},
                                        .in_count = 3,
                                        .function = "row_log"};
    row->result = gpu_row_add(row, logarithm ? &difference : &part);
    row->functions = type == MGX_DOUBLE ? double_softmax : real_softmax;
}

static enum mgx_plan_answer prepare_softmax(struct mgx_plan_offer *c)
{
    const struct mgx_op *op = c->ins->op;
    if ((op != &mgx_op_softmax && op != &mgx_op_logsoftmax) || c->copy_only || c->dynamic)
        return gpu_decline(c, "not a softmax");
    const enum mgx_type type = c->in[0].type;
    if (gpu_type_class(type) != GPU_REAL || c->out->type != type)
        return gpu_decline(c, "a type that kernels do not compute");
    struct gpu_row *row = MGX_NEW(c->arena, struct gpu_row);
    if (!row)
        return mgx_plan_no_memory(c);
    const int64_t axis = mgx_ins_int(c->ins, "axis");
    row->in_lane[axis < 0 ? axis + c->in[0].rank : axis] = true;
    memcpy(row->lens, c->in[0].lens, sizeof row->lens);
    fill_softmax(row, type, op == &mgx_op_logsoftmax);
    return gpu_row_take(c, row);
}

const struct mgx_plan_kernel gpu_kernel_softmax = {
    .name = "gpu::softmax", .prepare = prepare_softmax, .run = gpu_run_call};

// --- fused_reduce ---

struct reading { // of a body
    struct mgx_plan_offer *c;
    struct gpu_row *row;
    struct mgx_map to; // instruction -> node + 1
    struct mgx_ins *params[GPU_CALL_INPUTS];
};

static int node_of(const struct reading *r, const struct mgx_ins *ins)
{
    return (int)(intptr_t)mgx_map_find_pointer(&r->to, ins) - 1;
}

static bool has_full_lens(const struct reading *r, const struct mgx_shape *s)
{
    for (int i = 0; i < s->rank; i++)
        if (s->lens[i] != r->row->lens[i])
            return false;
    return true;
}

static int read_scalar(struct reading *r, const struct mgx_ins *ins, struct gpu_node *node)
{
    node->kind = GPU_NODE_SCALAR;
    node->full = has_full_lens(r, &ins->shape);
    if (ins->in_count > GPU_ROW_OPERANDS || ins->op == &mgx_op_pointwise)
        return -1;
    for (int i = 0; i < ins->in_count; i++) {
        const int in = node_of(r, ins->in[i]);
        if (in < 0)
            return -1;
        node->in[node->in_count++] = in;
    }
    return gpu_row_add(r->row, node);
}

// The input of the offer that a parameter stands for: its number in order of creation.
static int input_of(const struct reading *r, const struct mgx_ins *param)
{
    for (int i = 0; i < r->c->in_count; i++)
        if (r->params[i] == param)
            return i;
    return -1;
}

// The node of an instruction; -1 for what a row cannot hold.
static int read_ins(struct reading *r, const struct mgx_ins *ins)
{
    struct gpu_node node = {.type = ins->shape.type, .ins = ins};
    if (ins->op == &mgx_op_param) {
        node.kind = GPU_NODE_INPUT;
        node.input = input_of(r, ins);
        node.full = has_full_lens(r, &ins->shape);
        return node.input < 0 ? -1 : gpu_row_add(r->row, &node);
    }
    if (ins->literal) {
        node.kind = GPU_NODE_CONSTANT;
        return mgx_shape_space(&ins->shape) == 1 ? gpu_row_add(r->row, &node) : -1;
    }
    if (ins->op == &mgx_op_multibroadcast)
        return node_of(r, ins->in[0]);
    node.fold = gpu_fold_find(ins->op);
    if (!node.fold)
        return read_scalar(r, ins, &node);
    node.kind = GPU_NODE_FOLD;
    node.mean = ins->op == &mgx_op_reduce_mean;
    node.in[0] = node_of(r, ins->in[0]);
    node.in_count = 1;
    const bool good = ins->in_count == 1 && node.in[0] >= 0 && r->row->nodes[node.in[0]].full;
    return good ? gpu_row_add(r->row, &node) : -1;
}

// The lengths that the axes are reduced from: those of what any fold reads.
static bool find_lens(const struct mgx_plan_offer *c, struct gpu_row *row)
{
    const struct mgx_module *body = c->ins->mod[0];
    const struct mgx_ints axes = mgx_ins_ints(c->ins, "axes");
    for (const struct mgx_ins *ins = body->first; ins; ins = ins->next) {
        if (!gpu_fold_find(ins->op))
            continue;
        const struct mgx_shape *s = &ins->in[0]->shape;
        memcpy(row->lens, s->lens, sizeof row->lens);
        for (int i = 0; i < axes.count; i++)
            row->in_lane[axes.v[i] < 0 ? axes.v[i] + s->rank : axes.v[i]] = true;
        return s->rank == c->out->rank;
    }
    return false;
}

static const char *read_body(struct reading *r)
{
    const struct mgx_module *body = r->c->ins->mod[0];
    if (r->c->in_count > GPU_CALL_INPUTS ||
        mgx_module_parameters(body, r->params, GPU_CALL_INPUTS) != r->c->in_count)
        return "parameters that are not the inputs";
    if (!find_lens(r->c, r->row) || mgx_module_result_count(body) != 1)
        return "a body of several results, or of several ranks";
    for (const struct mgx_ins *ins = body->first; ins; ins = ins->next) {
        if (ins->op == &mgx_op_return)
            continue;
        const int node = read_ins(r, ins);
        if (node < 0)
            return "a body that is not element-wise work around reductions";
        if (!mgx_map_put_pointer(&r->to, ins, (void *)(intptr_t)(node + 1)))
            return "no memory";
    }
    r->row->result = node_of(r, mgx_module_result(body, 0));
    return NULL;
}

enum mgx_plan_answer gpu_row_take_twice(struct mgx_plan_offer *c, const struct mgx_ins *also)
{
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_fused_reduce)
        return gpu_decline(c, "not a fused reduction");
    struct reading r = {.c = c, .row = MGX_NEW(c->arena, struct gpu_row)};
    if (!r.row)
        return mgx_plan_no_memory(c);
    r.row->also = also;
    const char *why = read_body(&r);
    mgx_map_fini(&r.to);
    return why ? gpu_decline(c, why) : gpu_row_take(c, r.row);
}

static enum mgx_plan_answer prepare_fused(struct mgx_plan_offer *c)
{
    return gpu_row_take_twice(c, NULL);
}

const struct mgx_plan_kernel gpu_kernel_fused_reduce = {
    .name = "gpu::fused_reduce", .prepare = prepare_fused, .run = gpu_run_call};
