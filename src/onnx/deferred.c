// SPDX-License-Identifier: MIT
// onnx::deferred: a node that is imported when its inputs are known.
//
//   run       the node's model is imported with the actual inputs as literals and evaluated by the
//             reference; nothing is kept afterwards
//   shape     with static inputs of which a value is open, a trial import may tell the result
//   expand    when a pass finds that the inputs are known well enough, the node is imported in
//             place and the instruction goes
//
// Cost: an import of one node per evaluation or trial.
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "onnx/deferred.h"

static const struct mgx_field fields[] = {MGX_TEXT(struct deferred, op_type),
                                          MGX_TEXT(struct deferred, node),
                                          MGX_INT(struct deferred, opset),
                                          MGX_INTS(struct deferred, types),
                                          MGX_INT(struct deferred, max_loop),
                                          MGX_INT(struct deferred, limit_loop),
                                          MGX_TEXT(struct deferred, model),
                                          MGX_INT(struct deferred, asks),
                                          {0}};

// --- the operator ---

static enum mgx_status read_model(const struct deferred *d, struct mgx_arena *arena, void **data,
                                  size_t *size, struct mgx_diag *diag)
{
    if (mgx_base64_decode(arena, d->model ? d->model : "", data, size))
        return MGX_OK;
    return mgx_fail(diag, arena->failed ? MGX_NO_MEMORY : MGX_INVALID,
                    "onnx::deferred: attribute \"model\" is not base64");
}

static struct mgx_onnx_options options_of(const struct deferred *d)
{
    return (struct mgx_onnx_options){.max_loop_iterations = d->max_loop,
                                     .limit_loop_iterations = d->limit_loop,
                                     .quick_reject = true};
}

static enum mgx_status import(const struct deferred *d, const struct mgx_onnx_bound *bound,
                              int count, struct mgx_arena *arena, bool *gave_up,
                              struct mgx_program **out, struct mgx_diag *diag)
{
    void *data;
    size_t size;
    *gave_up = false;
    TRY(read_model(d, arena, &data, &size, diag));
    const struct mgx_onnx_options options = options_of(d);
    return mgx_onnx_import_bound(out, data, size, &options, bound, count, gave_up, diag);
}

// All that is known without inputs: the types.
static enum mgx_status only_types(struct mgx_shape_call *c, const struct deferred *d,
                                  struct mgx_shape *out)
{
    struct mgx_shape *sub = MGX_NEW_ARRAY(c->arena, struct mgx_shape, d->types.count);
    struct mgx_shape *members = MGX_NEW_ARRAY(c->arena, struct mgx_shape, d->types.count);
    if (!sub || !members)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < d->types.count; i++) {
        const int64_t code = d->types.v[i], type = code < 0 ? -1 - code : code;
        if (type >= MGX_TYPE_COUNT)
            return mgx_fail(c->diag, MGX_INVALID, "onnx::deferred: type %lld is not known",
                            (long long)type);
        members[i] = mgx_shape_unranked((enum mgx_type)type);
        sub[i] = code < 0 ? mgx_shape_sequence(&members[i]) : members[i];
    }
    *out = d->types.count == 1 ? sub[0] : mgx_shape_tuple(sub, d->types.count);
    return MGX_OK;
}

static bool is_tensor(const struct mgx_shape *s)
{
    return mgx_shape_is_static(s) && s->type != MGX_TUPLE && s->type != MGX_SEQUENCE;
}

// Shapes of an imported program's results.
static enum mgx_status result_shapes(struct mgx_shape_call *c, const struct mgx_program *p,
                                     struct mgx_shape *out)
{
    const struct mgx_module *m = mgx_program_main(p);
    const int count = mgx_module_result_count(m);
    struct mgx_shape *sub = MGX_NEW_ARRAY(c->arena, struct mgx_shape, count);
    if (!sub)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < count; i++)
        if (!mgx_shape_copy(c->arena, &mgx_module_result(m, i)->shape, &sub[i]))
            return mgx_fail_memory(c->diag);
    *out = count == 1 ? sub[0] : mgx_shape_tuple(sub, count);
    return MGX_OK;
}

// Inputs as an import is bound to them: by their shape, by their value where that is known.
static void bind_inputs(const struct mgx_shape_call *c, struct mgx_onnx_bound *bound,
                        bool *is_static, bool *all_known)
{
    *is_static = *all_known = true;
    for (int i = 0; i < c->in_count; i++) {
        const struct mgx_tensor *value = c->values ? c->values[i] : NULL;
        *all_known &= value != NULL;
        *is_static &= is_tensor(c->in[i]);
        bound[i].shape = c->in[i];
        bound[i].value = value && value->storage ? value : NULL;
    }
}

// With static inputs of which some value is open, a trial import may tell the result's shape. With
// all values known (at run time) it would be done twice.
static enum mgx_status deferred_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct deferred *d = c->attr;
    bool is_static, all_known;
    struct mgx_onnx_bound *bound = MGX_NEW_ARRAY(c->arena, struct mgx_onnx_bound, c->in_count);
    if (!bound)
        return mgx_fail_memory(c->diag);
    bind_inputs(c, bound, &is_static, &all_known);
    if (!is_static || all_known)
        return only_types(c, d, out);
    struct mgx_program *p = NULL;
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    bool gave_up;
    enum mgx_status status = import(d, bound, c->in_count, c->arena, &gave_up, &p, &diag);
    if (status == MGX_OK) {
        status = result_shapes(c, p, out);
        mgx_program_destroy(p);
        return status;
    }
    if (!mgx_status_is_final(status) && (gave_up || status == MGX_UNSUPPORTED))
        return only_types(c, d, out);
    return mgx_fail(c->diag, status, "%s", diag.text);
}

// --- running it ---

static void release_borrowed(struct mgx_storage *storage)
{
    mgx_storage_release(storage->owner);
    free(storage);
}

// A literal owns a share in its bytes; an input may be borrowed. The wrapper owns nothing but lets
// it be shared for as long as the input is there.
static enum mgx_status as_literal(const struct mgx_tensor *in, struct mgx_tensor *out,
                                  struct mgx_diag *diag)
{
    if (in->storage || mgx_shape_elements(&in->shape) == 0 || in->sub) {
        *out = mgx_tensor_share(in);
        return MGX_OK;
    }
    struct mgx_storage *storage = calloc(1, sizeof *storage);
    if (!storage)
        return mgx_fail_memory(diag);
    atomic_init(&storage->refs, 1);
    storage->data = in->data;
    storage->bytes = mgx_shape_bytes(&in->shape);
    storage->release = release_borrowed;
    *out = *in;
    out->storage = storage;
    return MGX_OK;
}

static enum mgx_status run(struct mgx_compute_call *c, struct mgx_program *p)
{
    struct mgx_module *m = mgx_program_main(p);
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    const int count = mgx_module_result_count(m);
    struct mgx_tensor *results = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, count);
    if (!results)
        return mgx_fail_memory(c->diag);
    TRY(mgx_eval_module(c->eval, m, NULL, 0, results, c->diag));
    if (count != 1)
        return mgx_tensor_group(c->out, results, count, false, c->diag);
    *c->out = results[0];
    return MGX_OK;
}

static enum mgx_status deferred_compute(struct mgx_compute_call *c)
{
    const struct deferred *d = c->attr;
    struct mgx_tensor *in = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, c->in_count);
    struct mgx_onnx_bound *bound = MGX_NEW_ARRAY(c->scratch, struct mgx_onnx_bound, c->in_count);
    if (!in || !bound)
        return mgx_fail_memory(c->diag);
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < c->in_count && status == MGX_OK; i++) {
        status = as_literal(c->in[i], &in[i], c->diag);
        bound[i] = (struct mgx_onnx_bound){.value = &in[i], .shape = &in[i].shape};
    }
    struct mgx_program *p = NULL;
    bool gave_up;
    if (status == MGX_OK)
        status = import(d, bound, c->in_count, c->scratch, &gave_up, &p, c->diag);
    if (status == MGX_OK)
        status = run(c, p);
    mgx_program_destroy(p);
    for (int i = 0; i < c->in_count; i++)
        mgx_tensor_release(&in[i]);
    return status;
}

// --- expanding it ---

static void take_over(struct mgx_ins *ins, struct mgx_ins *const *results)
{
    const struct deferred *d = ins->attr;
    if (d->types.count == 1) {
        mgx_replace_uses(ins, results[0]);
        return;
    }
    for (struct mgx_use *use = ins->uses, *next; use; use = next) {
        next = use->next;
        if (use->user->op == &mgx_op_get_tuple_elem)
            mgx_replace_uses(use->user, results[mgx_ins_int(use->user, "index")]);
    }
}

static bool only_members_are_read(const struct mgx_ins *ins)
{
    for (const struct mgx_use *use = ins->uses; use; use = use->next)
        if (use->user->op != &mgx_op_get_tuple_elem)
            return false;
    return true;
}

// What the node becomes replaces it; what a refused attempt leaves behind is dead code.
static enum mgx_status expand(struct mgx_ins *ins, struct mgx_arena *scratch, bool *done,
                              struct mgx_diag *diag)
{
    const struct deferred *d = ins->attr;
    struct mgx_ins **results = MGX_NEW_ARRAY(scratch, struct mgx_ins *, d->types.count);
    void *data;
    size_t size;
    *done = false;
    if (!results)
        return mgx_fail_memory(diag);
    for (int i = 0; i < ins->in_count; i++)
        if (!is_tensor(&ins->in[i]->shape))
            return MGX_OK;
    if (d->types.count != 1 && !only_members_are_read(ins))
        return MGX_OK;
    TRY(read_model(d, scratch, &data, &size, diag));
    const struct mgx_onnx_options options = options_of(d);
    struct mgx_diag why;
    bool gave_up = false;
    mgx_diag_clear(&why);
    const enum mgx_status status = mgx_onnx_import_at(ins, data, size, &options, ins->in,
                                                      ins->in_count, results, &gave_up, &why);
    if (status == MGX_OK)
        take_over(ins, results);
    *done = status == MGX_OK;
    if (status == MGX_OK || gave_up || status == MGX_UNSUPPORTED)
        return MGX_OK; // it stays as it is
    return mgx_fail(diag, status, "%s", why.text);
}

static enum mgx_type unranked_type(const struct mgx_shape_call *c)
{
    const struct deferred *d = c->attr;
    return d->types.count == 1 && d->types.v[0] >= 0 ? (enum mgx_type)d->types.v[0] : MGX_TUPLE;
}

static uint32_t sized_by(const struct mgx_ins *ins)
{
    const struct deferred *d = ins->attr;
    return (uint32_t)d->asks;
}

const struct mgx_op mgx_onnx_deferred = {
    .name = "onnx::deferred",
    .meaning = "an ONNX node that is imported when its inputs are known",
    .fields = fields,
    .attr_size = sizeof(struct deferred),
    .in_min = 0,
    .in_max = -1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_IMPURE | MGX_OP_UNRANKED | MGX_OP_ANY_STRIDE,
    .shape = deferred_shape,
    .unranked_type = unranked_type,
    .compute = deferred_compute,
    .expand = expand,
    .sized_by = sized_by,
};
