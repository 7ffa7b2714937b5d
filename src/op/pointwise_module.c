// SPDX-License-Identifier: MIT
// pointwise: a body of scalar operators applied element by element; what fusion makes of chains of
// element-wise instructions. Body parameters, in order of creation, are the inputs; one result
// gives a tensor, several a tuple.
//
// Body instructions are declared for scalars, are element-wise themselves, and read nothing from
// outside the body: every target may take each of them for one line over all elements. The
// reference runs each of them over whole tensors (the body's literals repeated), so that every
// intermediate value is rounded to its declared type, as it would be without fusion.
#include "op/rule/body.h"

#include <assert.h>

static enum mgx_status find_body(struct mgx_module *const *mod, int mod_count,
                                 const struct mgx_module **body, struct mgx_diag *diag)
{
    assert(mod_count >= 0);
    if (mod_count != 1)
        return mgx_fail(diag, MGX_INVALID, "pointwise: should have one submodule, given %d",
                        mod_count);
    *body = mod[0];
    if (mgx_module_result_count(*body) < 1)
        return mgx_fail(diag, MGX_INVALID, "pointwise: submodule \"%s\" has no result",
                        (*body)->name);
    return MGX_OK;
}

static enum mgx_type body_type(const struct mgx_shape_call *c)
{
    if (c->mod_count != 1 || mgx_module_result_count(c->mod[0]) < 1)
        return c->in[0]->type;
    return mgx_module_result_count(c->mod[0]) == 1 ? mgx_module_result(c->mod[0], 0)->shape.type
                                                   : MGX_TUPLE;
}

// Parameters are scalars of the inputs' types.
static enum mgx_status check_parameters(struct mgx_shape_call *c, const struct mgx_module *body)
{
    struct mgx_shape *elements = MGX_NEW_ARRAY(c->arena, struct mgx_shape, c->in_count);
    const struct mgx_shape **given = MGX_NEW_ARRAY(c->arena, const struct mgx_shape *, c->in_count);
    if (!elements || !given)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < c->in_count; i++) {
        elements[i] = mgx_shape_scalar(c->in[i]->type);
        given[i] = &elements[i];
    }
    return mgx_body_takes(c, body, given, c->in_count);
}

static enum mgx_status check_body(struct mgx_shape_call *c, const struct mgx_module *body)
{
    TRY(check_parameters(c, body));
    TRY(mgx_body_closed(c, body));
    for (const struct mgx_ins *ins = body->first; ins; ins = ins->next) {
        if (!(ins->op->flags & (MGX_OP_BUILTIN | MGX_OP_POINTWISE)))
            return mgx_fail(c->diag, MGX_INVALID,
                            "pointwise: submodule \"%s\" holds %s, which is not element-wise",
                            body->name, ins->op->name);
        const bool has_value = ins->op != &mgx_op_return && ins->op != &mgx_op_comment;
        if (has_value &&
            (!mgx_shape_is_static(&ins->shape) || mgx_shape_elements(&ins->shape) != 1))
            return mgx_fail(c->diag, MGX_INVALID,
                            "pointwise: submodule \"%s\" holds a value of %s that is no scalar",
                            body->name, ins->op->name);
    }
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_module *body = NULL;
    TRY(find_body(c->mod, c->mod_count, &body, c->diag));
    TRY(mgx_require_same_lens(c));
    TRY(check_body(c, body));
    const int count = mgx_module_result_count(body);
    if (count == 1) {
        *out = mgx_pointwise_shape(c, mgx_module_result(body, 0)->shape.type);
        return MGX_OK;
    }
    struct mgx_shape *sub = MGX_NEW_ARRAY(c->arena, struct mgx_shape, count);
    if (!sub)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < count; i++)
        sub[i] = mgx_pointwise_shape(c, mgx_module_result(body, i)->shape.type);
    *out = mgx_shape_tuple(sub, count);
    return MGX_OK;
}

// --- reference ---

struct run {
    struct mgx_compute_call *c;
    const struct mgx_module *body;
    struct mgx_tensor *values; // by position in the body
    const struct mgx_shape *like;
};

// Positions in the body: its instructions may carry marks of others in `index`.
static int position(const struct mgx_module *body, const struct mgx_ins *ins)
{
    assert(ins->owner == body);
    int at = 0;
    for (const struct mgx_ins *i = body->first; i && i != ins; i = i->next)
        at++;
    return at;
}

static struct mgx_tensor repeat(const struct run *r, const struct mgx_tensor *scalar)
{
    assert(mgx_shape_elements(&scalar->shape) == 1);
    struct mgx_shape s = *r->like;
    s.type = scalar->shape.type;
    for (int i = 0; i < s.rank; i++)
        s.strides[i] = 0;
    return mgx_tensor_view(scalar, &s, 0);
}

static enum mgx_status run_ins(struct run *r, const struct mgx_ins *ins, struct mgx_tensor *out)
{
    const struct mgx_tensor **in =
        MGX_NEW_ARRAY(r->c->scratch, const struct mgx_tensor *, ins->in_count);
    if (!in)
        return mgx_fail_memory(r->c->diag);
    for (int i = 0; i < ins->in_count; i++) {
        assert(ins->in[i]->owner == r->body);
        in[i] = &r->values[position(r->body, ins->in[i])];
    }
    return mgx_eval_op(r->c->eval, ins->op, ins->attr, in, ins->in_count, ins->mod, ins->mod_count,
                       NULL, out, r->c->diag);
}

static enum mgx_status run_body(struct run *r)
{
    struct mgx_ins **params = MGX_NEW_ARRAY(r->c->scratch, struct mgx_ins *, r->c->in_count);
    if (!params)
        return mgx_fail_memory(r->c->diag);
    mgx_module_parameters(r->body, params, r->c->in_count);
    for (int i = 0; i < r->c->in_count; i++)
        r->values[position(r->body, params[i])] = mgx_tensor_share(r->c->in[i]);
    int at = 0;
    for (const struct mgx_ins *ins = r->body->first; ins; ins = ins->next, at++) {
        if (ins->op == &mgx_op_literal)
            r->values[at] = repeat(r, ins->literal);
        else if (!(ins->op->flags & MGX_OP_BUILTIN))
            TRY(run_ins(r, ins, &r->values[at]));
    }
    return MGX_OK;
}

// Result i of the body in the layout that the shape rule promised.
static enum mgx_status take_result(struct run *r, int i, const struct mgx_shape *want,
                                   struct mgx_tensor *out)
{
    assert(i >= 0 && want);
    const struct mgx_ins *ins = mgx_module_result(r->body, i);
    struct mgx_compute_call part = *r->c;
    part.out = out;
    if (!out->data)
        TRY(mgx_eval_create(&part, want));
    mgx_tensor_copy(&r->values[position(r->body, ins)], out);
    return MGX_OK;
}

static enum mgx_status take_results(struct run *r)
{
    const int count = mgx_module_result_count(r->body);
    if (count == 1)
        return take_result(r, 0, r->c->out_shape, r->c->out);
    struct mgx_tensor *out = MGX_NEW_ARRAY(r->c->scratch, struct mgx_tensor, count);
    if (!out)
        return mgx_fail_memory(r->c->diag);
    for (int i = 0; i < count; i++) {
        const enum mgx_status status = take_result(r, i, &r->c->out_shape->sub[i], &out[i]);
        if (status != MGX_OK) {
            for (int k = 0; k < i; k++)
                mgx_tensor_release(&out[k]);
            return status;
        }
    }
    return mgx_tensor_group(r->c->out, out, count, false, r->c->diag);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    struct run r = {.c = c, .like = &c->in[0]->shape};
    TRY(find_body(c->mod, c->mod_count, &r.body, c->diag));
    r.values = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, r.body->count);
    if (!r.values)
        return mgx_fail_memory(c->diag);
    enum mgx_status status = run_body(&r);
    if (status == MGX_OK)
        status = take_results(&r);
    for (int i = 0; i < r.body->count; i++)
        mgx_tensor_release(&r.values[i]);
    return status;
}

const struct mgx_op mgx_op_pointwise = {
    .name = "pointwise",
    .meaning = "a body of scalar operators, element by element",
    .in_min = 1,
    .in_max = -1,
    .flags = MGX_OP_POINTWISE,
    .shape = shape,
    .unranked_type = body_type,
    .compute = compute,
};
