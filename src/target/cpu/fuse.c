// SPDX-License-Identifier: MIT
// What the CPU target runs after the shared simplification: element-wise fusion, then products and
// convolutions take the element-wise instruction that reads them as their epilogue.
//
//     pointwise(convolution(x, w), r...)  =>  group[tag=epilogue](x, w, r...), [body]
//
// The group's body holds the two instructions as they were, so the reference can run it, and so
// does every kernel that declines. An epilogue is taken when nobody else reads the sums and the
// result has their lengths.
#include <string.h>

#include "op/op.h"
#include "target/cpu/cpu.h"

static bool has_epilogue(const struct mgx_op *op)
{
    return op == &mgx_op_dot || op == &mgx_op_convolution || op == &mgx_op_convolution_backwards;
}

static bool is_elementwise(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_pointwise || (ins->op->flags & MGX_OP_POINTWISE);
}

enum { MAX_INPUTS = 12 };

// Parameters of the body for the inputs of both instructions, each once.
struct fold {
    struct mgx_module *body;
    struct mgx_ins *in[MAX_INPUTS], *param[MAX_INPUTS];
    int count;
};

static struct mgx_ins *param_for(struct fold *f, struct mgx_ins *in)
{
    for (int i = 0; i < f->count; i++)
        if (f->in[i] == in)
            return f->param[i];
    if (f->count == MAX_INPUTS)
        return NULL;
    char name[16] = "x0";
    name[1] = (char)('0' + f->count % 10);
    if (f->count >= 10)
        strcpy(name, f->count == 10 ? "x10" : "x11");
    f->in[f->count] = in;
    f->param[f->count] = mgx_add_parameter(f->body, name, &in->shape);
    return f->param[f->count++];
}

static struct mgx_ins *copy_into(struct fold *f, const struct mgx_ins *ins,
                                 const struct mgx_ins *known, struct mgx_ins *known_copy)
{
    struct mgx_ins *in[MAX_INPUTS];
    for (int i = 0; i < ins->in_count; i++) {
        in[i] = ins->in[i] == known ? known_copy : param_for(f, ins->in[i]);
        if (!in[i])
            return NULL;
    }
    return mgx_insert(f->body, NULL, ins->op, ins->attr, in, ins->in_count, ins->mod,
                      ins->mod_count);
}

static enum mgx_status fold(struct mgx_pass_call *c, struct mgx_ins *main, struct mgx_ins *last)
{
    struct fold f = {.body = mgx_program_add_module(c->program, "epilogue")};
    if (!f.body)
        return mgx_fail_memory(c->diag);
    f.body->bypass = true;
    struct mgx_ins *sums = copy_into(&f, main, NULL, NULL);
    struct mgx_ins *result = sums ? copy_into(&f, last, main, sums) : NULL;
    TRY(mgx_program_status(c->program, c->diag));
    if (!result || !mgx_add_return(f.body, &result, 1))
        return mgx_fail_memory(c->diag);
    const struct mgx_attr attrs[] = {mgx_text("tag", "epilogue"), {0}};
    void *attr;
    TRY(mgx_attr_make(&mgx_op_group, attrs, &c->program->arena, &attr, c->diag));
    struct mgx_ins *group =
        mgx_insert(last->owner, last, &mgx_op_group, attr, f.in, f.count, &f.body, 1);
    TRY(mgx_program_status(c->program, c->diag));
    mgx_copy_origin(group, main);
    mgx_replace_uses(last, group);
    mgx_remove(last);
    mgx_remove(main);
    c->changed = true;
    return MGX_OK;
}

static enum mgx_status fuse_epilogue(struct mgx_pass_call *c, struct mgx_module *m)
{
    if (m->bypass)
        return MGX_OK;
    for (struct mgx_ins *ins = m->first, *next; ins; ins = next) {
        next = ins->next;
        if (!has_epilogue(ins->op) || !mgx_used_once(ins) || !mgx_shape_is_static(&ins->shape))
            continue;
        struct mgx_ins *user = ins->uses->user;
        if (user->owner != m || !is_elementwise(user) ||
            user->in_count + ins->in_count > MAX_INPUTS || user->shape.type != MGX_FLOAT ||
            !mgx_shape_same_lens(&user->shape, &ins->shape))
            continue;
        if (next == user)
            next = user->next;
        TRY(fold(c, ins, user));
    }
    return MGX_OK;
}

static const struct mgx_pass pass_fuse_epilogue = {
    .name = "fuse_epilogue",
    .meaning = "products and convolutions take the element-wise instruction that reads them",
    .module = fuse_epilogue,
};

const struct mgx_pass *const cpu_pipeline[] = {&pass_fuse_epilogue, NULL};
