// SPDX-License-Identifier: MIT
// Operators with bodies; see body.h.
#include "op/rule/body.h"

#include "op/eval/eval.h"

const struct mgx_shape *mgx_body_result(const struct mgx_module *m, int i)
{
    return &mgx_module_result(m, i)->shape;
}

enum mgx_status mgx_body_tuple(struct mgx_shape_call *c, const struct mgx_module *m,
                               struct mgx_shape *out)
{
    const int count = mgx_module_result_count(m);
    struct mgx_shape *sub = MGX_NEW_ARRAY(c->arena, struct mgx_shape, count);
    if (!sub)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < count; i++)
        sub[i] = *mgx_body_result(m, i);
    *out = mgx_shape_tuple(sub, count);
    return MGX_OK;
}

static enum mgx_status misfit(struct mgx_shape_call *c, const struct mgx_ins *param,
                              const struct mgx_shape *given)
{
    struct mgx_str want = {0}, got = {0};
    mgx_shape_print(&want, &param->shape);
    mgx_shape_print(&got, given);
    mgx_fail(c->diag, MGX_INVALID, "%s: module \"%.80s\" takes %.80s as %.160s, given %.160s",
             c->op->name, param->owner->name, mgx_parameter_name(param), mgx_str_text(&want),
             mgx_str_text(&got));
    mgx_str_fini(&want);
    mgx_str_fini(&got);
    return MGX_INVALID;
}

enum mgx_status mgx_body_takes(struct mgx_shape_call *c, const struct mgx_module *m,
                               const struct mgx_shape *const *given, int count)
{
    const int takes = mgx_module_parameters(m, NULL, 0);
    if (takes != count)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: Wrong number of arguments: expected %d but given %d, of module \"%s\"",
                        c->op->name, takes, count, m->name);
    struct mgx_ins **params = MGX_NEW_ARRAY(c->arena, struct mgx_ins *, count);
    if (!params)
        return mgx_fail_memory(c->diag);
    mgx_module_parameters(m, params, count);
    for (int i = 0; i < count; i++)
        if (!mgx_shape_may_be(&params[i]->shape, given[i]))
            return misfit(c, params[i], given[i]);
    return MGX_OK;
}

enum mgx_status mgx_body_closed(struct mgx_shape_call *c, const struct mgx_module *m)
{
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next)
        for (int i = 0; i < ins->in_count; i++)
            if (ins->in[i]->owner != m)
                return mgx_fail(c->diag, MGX_INVALID,
                                "%s: module \"%s\" reads a value of module \"%s\"; it may read "
                                "its parameters and literals only",
                                c->op->name, m->name, ins->in[i]->owner->name);
    return MGX_OK;
}

// Shapes of instructions, in order of the module up to some place, and the values around it.
struct known {
    const struct mgx_ins **ins;
    struct mgx_shape *shape;
    int count;
    const struct mgx_frame *around; // NULL: not known
};

static const struct mgx_tensor *value_of(const struct known *k, const struct mgx_ins *ins)
{
    if (ins->literal)
        return ins->literal;
    const struct mgx_frame *frame = k->around;
    while (frame && frame->module != ins->owner)
        frame = frame->up;
    return frame ? &frame->values[ins->index] : NULL;
}

static const struct mgx_shape *shape_of(const struct known *k, const struct mgx_ins *ins)
{
    for (int i = k->count - 1; i >= 0; i--)
        if (k->ins[i] == ins)
            return &k->shape[i];
    const struct mgx_tensor *value = value_of(k, ins);
    return value ? &value->shape : &ins->shape;
}

static enum mgx_status infer(struct mgx_shape_call *c, const struct known *k,
                             const struct mgx_ins *ins, struct mgx_shape *out)
{
    const struct mgx_shape **in = MGX_NEW_ARRAY(c->arena, const struct mgx_shape *, ins->in_count);
    const struct mgx_tensor **values =
        MGX_NEW_ARRAY(c->arena, const struct mgx_tensor *, ins->in_count);
    if (!in || !values)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < ins->in_count; i++) {
        in[i] = shape_of(k, ins->in[i]);
        values[i] = value_of(k, ins->in[i]);
    }
    struct mgx_shape_call call = {.op = ins->op,
                                  .attr = ins->attr,
                                  .in = in,
                                  .values = k->around ? values : NULL,
                                  .in_count = ins->in_count,
                                  .mod = ins->mod,
                                  .mod_count = ins->mod_count,
                                  .arena = c->arena,
                                  .diag = c->diag};
    return mgx_op_shape(&call, out);
}

static int count_instructions(const struct mgx_module *m)
{
    int count = 0;
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next)
        count++;
    return count;
}

// *k: what every instruction is, parameters being `given`.
static enum mgx_status infer_all(struct mgx_shape_call *c, const struct mgx_module *m,
                                 const struct mgx_shape *const *given, struct known *k)
{
    const int count = count_instructions(m);
    k->ins = MGX_NEW_ARRAY(c->arena, const struct mgx_ins *, count);
    k->shape = MGX_NEW_ARRAY(c->arena, struct mgx_shape, count);
    if (!k->ins || !k->shape)
        return mgx_fail_memory(c->diag);
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next) {
        const int parameter = mgx_parameter_index(ins);
        if (ins->op == &mgx_op_return)
            continue;
        if (parameter >= 0)
            k->shape[k->count] = *given[parameter];
        else if (ins->literal)
            k->shape[k->count] = ins->shape;
        else
            TRY(infer(c, k, ins, &k->shape[k->count]));
        k->ins[k->count++] = ins;
    }
    return MGX_OK;
}

enum mgx_status mgx_body_agrees(struct mgx_shape_call *c, const struct mgx_module *m,
                                const struct mgx_shape *const *given, struct mgx_shape *result)
{
    struct known k = {0};
    TRY(infer_all(c, m, given, &k));
    *result = *shape_of(&k, mgx_module_result(m, 0));
    return MGX_OK;
}

enum mgx_status mgx_body_foresee(struct mgx_compute_call *c, int which,
                                 const struct mgx_shape *const *given,
                                 const struct mgx_shape **results)
{
    const struct mgx_module *m = c->mod[which];
    struct mgx_diag unsaid = {0};
    struct mgx_shape_call call = {.op = c->op, .arena = c->scratch, .diag = &unsaid};
    struct known k = {.around = c->eval->frame};
    const enum mgx_status status = infer_all(&call, m, given, &k);
    if (status == MGX_NO_MEMORY)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < mgx_module_result_count(m); i++) {
        const struct mgx_ins *result = mgx_module_result(m, i);
        results[i] = status == MGX_OK ? shape_of(&k, result) : &result->shape;
    }
    return MGX_OK;
}

enum mgx_status mgx_body_run(struct mgx_compute_call *c, int which, const struct mgx_tensor *args,
                             int arg_count, struct mgx_tensor **results, int *count)
{
    const struct mgx_module *m = c->mod[which];
    *count = mgx_module_result_count(m);
    *results = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, *count);
    if (!*results) {
        *count = 0;
        return mgx_fail_memory(c->diag);
    }
    const enum mgx_status status = mgx_eval_module(c->eval, m, args, arg_count, *results, c->diag);
    if (status != MGX_OK)
        mgx_tensors_release(*results, *count);
    return status;
}

enum mgx_status mgx_body_give(struct mgx_compute_call *c, struct mgx_tensor *take_results,
                              int count)
{
    const struct mgx_shape *want = c->declared;
    const bool declared = want && want->type == MGX_TUPLE && want->sub_count == count;
    for (int i = 0; declared && i < count; i++) {
        const enum mgx_status status = mgx_eval_as_declared(c, &take_results[i], &want->sub[i]);
        if (status != MGX_OK) {
            mgx_tensors_release(take_results, count);
            return status;
        }
    }
    return mgx_tensor_group(c->out, take_results, count, false, c->diag);
}

void mgx_tensors_release(struct mgx_tensor *t, int count)
{
    for (int i = 0; i < count; i++)
        mgx_tensor_release(&t[i]);
}

struct mgx_tensor *mgx_body_args(struct mgx_compute_call *c, int first)
{
    struct mgx_tensor *args = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, c->in_count - first);
    if (!args)
        mgx_fail_memory(c->diag);
    for (int i = first; args && i < c->in_count; i++)
        args[i - first] = *c->in[i];
    return args;
}
