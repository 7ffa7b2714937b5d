// SPDX-License-Identifier: MIT
// Operators that run one body as it is: group (instructions fused together, `tag` says why),
// run_on_target, and select_module, which picks the body whose parameters have the shapes of the
// inputs.
//
// One result comes as it is, several as a tuple.
#include "op/rule/body.h"

#include <assert.h>
#include <string.h>

#include "op/op.h"

struct group {
    const char *tag;
};

static const struct mgx_field group_fields[] = {MGX_TEXT(struct group, tag), {0}};

bool mgx_is_group(const struct mgx_ins *ins, const char *tag)
{
    return ins->op == &mgx_op_group && strcmp(mgx_attr_text(ins->op, ins->attr, "tag"), tag) == 0;
}

static enum mgx_status one_body(struct mgx_shape_call *c, struct mgx_shape *out)
{
    if (c->mod_count != 1)
        return mgx_fail(c->diag, MGX_INVALID, "%s: takes one module, given %d", c->op->name,
                        c->mod_count);
    TRY(mgx_body_takes(c, c->mod[0], c->in, c->in_count));
    if (mgx_module_result_count(c->mod[0]) == 1) {
        *out = *mgx_body_result(c->mod[0], 0);
        return MGX_OK;
    }
    return mgx_body_tuple(c, c->mod[0], out);
}

// Were lengths open when the body was made that are known now?
static bool knows_more(const struct mgx_shape_call *c)
{
    bool open = false;
    for (const struct mgx_ins *ins = c->mod[0]->first; ins; ins = ins->next)
        open |= mgx_parameter_index(ins) >= 0 && !mgx_shape_is_static(&ins->shape);
    for (int i = 0; open && i < c->in_count; i++)
        open = mgx_shape_is_static(c->in[i]);
    return open;
}

static enum mgx_status group_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    struct mgx_shape now;
    TRY(one_body(c, out));
    TRY(mgx_body_closed(c, c->mod[0]));
    if (!knows_more(c))
        return MGX_OK;
    TRY(mgx_body_agrees(c, c->mod[0], c->in, &now));
    if (out->type == MGX_TUPLE || mgx_shape_may_be(&now, out))
        return MGX_OK;
    return mgx_fail(c->diag, MGX_INVALID, "%s: the body's result is not as long as it was to be",
                    c->op->name);
}

static enum mgx_status give(struct mgx_compute_call *c, struct mgx_tensor *results, int count,
                            bool single)
{
    assert(count > 0);
    if (!single || count != 1)
        return mgx_body_give(c, results, count);
    mgx_tensor_release(c->out); // what was made for it is not needed
    *c->out = results[0];
    return MGX_OK;
}

static enum mgx_status run(struct mgx_compute_call *c, int which, bool single)
{
    assert(which >= 0 && which < c->mod_count);
    struct mgx_tensor *args = mgx_body_args(c, 0), *results;
    int count;
    if (!args)
        return MGX_NO_MEMORY;
    TRY(mgx_body_run(c, which, args, c->in_count, &results, &count));
    return give(c, results, count, single);
}

static enum mgx_status compute_one(struct mgx_compute_call *c)
{
    return run(c, 0, true);
}

static const struct group group_defaults = {.tag = ""};

const struct mgx_op mgx_op_group = {
    .name = "group",
    .meaning = "results of the body",
    .fields = group_fields,
    .attr_size = sizeof(struct group),
    .defaults = &group_defaults,
    .in_max = -1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED,
    .shape = group_shape,
    .compute = compute_one,
};

struct run_on_target {
    int64_t target_id;
};

static const struct mgx_field run_on_target_fields[] = {MGX_INT(struct run_on_target, target_id),
                                                        {0}};

const struct mgx_op mgx_op_run_on_target = {
    .name = "run_on_target",
    .meaning = "results of the body, compiled for a target of its own",
    .fields = run_on_target_fields,
    .attr_size = sizeof(struct run_on_target),
    .in_max = -1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED,
    .shape = one_body,
    .compute = compute_one,
};

// --- select_module ---

struct select_module {
    struct mgx_shapes output_dyn_shapes;
};

static const struct mgx_field select_module_fields[] = {
    MGX_SHAPES(struct select_module, output_dyn_shapes), {0}};

static enum mgx_status select_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct select_module *a = c->attr;
    if (c->mod_count < 1)
        return mgx_fail(c->diag, MGX_INVALID, "select_module: takes at least one module");
    if (a->output_dyn_shapes.count) {
        *out = mgx_shape_tuple(a->output_dyn_shapes.v, a->output_dyn_shapes.count);
        return MGX_OK;
    }
    return mgx_body_tuple(c, c->mod[0], out);
}

static enum mgx_status body_fits(struct mgx_compute_call *c, const struct mgx_module *m, bool *yes)
{
    struct mgx_ins **params = MGX_NEW_ARRAY(c->scratch, struct mgx_ins *, c->in_count);
    if (!params)
        return mgx_fail_memory(c->diag);
    *yes = mgx_module_parameters(m, params, c->in_count) == c->in_count;
    for (int i = 0; *yes && i < c->in_count; i++)
        *yes = mgx_shape_may_be(&params[i]->shape, &c->in[i]->shape);
    return MGX_OK;
}

static enum mgx_status select_compute(struct mgx_compute_call *c)
{
    for (int i = 0; i < c->mod_count; i++) {
        bool yes = false;
        TRY(body_fits(c, c->mod[i], &yes));
        if (yes)
            return run(c, i, false);
    }
    return mgx_fail(c->diag, MGX_INVALID,
                    "SELECT_MODULE: no compatible submodules found for given input shapes");
}

const struct mgx_op mgx_op_select_module = {
    .name = "select_module",
    .meaning = "results of the first body whose parameters fit the inputs",
    .fields = select_module_fields,
    .attr_size = sizeof(struct select_module),
    .in_max = -1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED,
    .shape = select_shape,
    .compute = select_compute,
};
