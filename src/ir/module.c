// SPDX-License-Identifier: MIT
// Instructions: adding, linking, editing; see module.h.
#include "ir/module.h"

#include <assert.h>
#include <string.h>

#include "ir/inside.h"
#include "ir/link.h"

bool mgx_link_inputs(struct mgx_ins *ins, struct mgx_ins *const *in, int count)
{
    struct mgx_arena *arena = &ins->owner->program->arena;
    assert(count >= 0);
    struct mgx_ins **list = MGX_NEW_ARRAY(arena, struct mgx_ins *, count);
    struct mgx_use *uses = MGX_NEW_ARRAY(arena, struct mgx_use, count);
    if (!list || !uses)
        return false;
    if (count)
        memcpy(list, in, (size_t)count * sizeof *list);
    ins->in = list;
    ins->in_uses = uses;
    ins->in_count = count;
    for (int i = 0; i < count; i++) {
        assert(in[i] && in[i]->owner->program == ins->owner->program);
        mgx_link_use(ins, i);
    }
    return true;
}

// --- shapes ---

enum { INLINE_INPUTS = 32 };

// Literals are known values for shape rules.
static const struct mgx_tensor *known_value(const struct mgx_ins *ins)
{
    assert(!ins->literal || ins->op == &mgx_op_literal);
    assert(!ins->literal || mgx_shape_equal(&ins->literal->shape, &ins->shape));
    return ins->literal;
}

static enum mgx_status apply_rule(struct mgx_arena *arena, const struct mgx_op *op,
                                  const void *attr, struct mgx_ins *const *in, int in_count,
                                  struct mgx_module *const *mod, int mod_count,
                                  struct mgx_shape *out, struct mgx_diag *diag)
{
    assert(in_count >= 0 && mod_count >= 0);
    const struct mgx_shape *shape_room[INLINE_INPUTS];
    const struct mgx_tensor *value_room[INLINE_INPUTS];
    const struct mgx_shape **shapes = shape_room;
    const struct mgx_tensor **values = value_room;
    if (in_count > INLINE_INPUTS) {
        shapes = MGX_NEW_ARRAY(arena, const struct mgx_shape *, in_count);
        values = MGX_NEW_ARRAY(arena, const struct mgx_tensor *, in_count);
        if (!shapes || !values)
            return mgx_fail_memory(diag);
    }
    for (int i = 0; i < in_count; i++) {
        shapes[i] = &in[i]->shape;
        values[i] = known_value(in[i]);
    }
    struct mgx_shape_call call = {.op = op,
                                  .attr = attr,
                                  .in = shapes,
                                  .in_count = in_count,
                                  .values = values,
                                  .mod = mod,
                                  .mod_count = mod_count,
                                  .arena = arena,
                                  .diag = diag};
    return mgx_op_shape(&call, out);
}

// A shape that points to nothing needs nothing of what its rule wrote down on the way; rules are
// asked again after every pass.
enum mgx_status mgx_infer(struct mgx_arena *arena, const struct mgx_op *op, const void *attr,
                          struct mgx_ins *const *in, int in_count, struct mgx_module *const *mod,
                          int mod_count, struct mgx_shape *out, struct mgx_diag *diag)
{
    const struct mgx_arena_mark mark = mgx_arena_mark(arena);
    const enum mgx_status status =
        apply_rule(arena, op, attr, in, in_count, mod, mod_count, out, diag);
    assert(status != MGX_OK || mgx_shape_check(out, NULL) == MGX_OK);
    if (status == MGX_OK && !out->dims && !out->sub)
        mgx_arena_rewind(arena, mark);
    return status;
}

void mgx_remove(struct mgx_ins *ins)
{
    assert(!ins->uses && mgx_is_linked(ins));
    for (int i = 0; i < ins->in_count; i++)
        mgx_unlink_use(ins, i);
    ins->in_count = 0;
    mgx_unlink_ins(ins);
}

struct mgx_ins *mgx_module_return(const struct mgx_module *m)
{
    return m->last && m->last->op == &mgx_op_return ? m->last : NULL;
}

bool mgx_keep(struct mgx_kept *kept, struct mgx_storage *retain)
{
    assert(!retain || atomic_load(&retain->refs) > 0); // who hands it over has a share himself
    if (!retain || (kept->count && kept->v[kept->count - 1] == retain))
        return true; // a mapped file comes thousands of times in a row
    if (!MGX_PUSH(kept, NULL, retain))
        return false;
    mgx_storage_retain(retain);
    return true;
}

enum mgx_status mgx_update_shape(struct mgx_ins *ins, struct mgx_diag *diag)
{
    assert(mgx_is_linked(ins));
    if (ins->op->flags & MGX_OP_BUILTIN)
        return MGX_OK; // parameters and literals are given; @return has none
    const struct mgx_shape before = ins->shape;
    TRY(mgx_infer(&ins->owner->program->arena, ins->op, ins->attr, ins->in, ins->in_count, ins->mod,
                  ins->mod_count, &ins->shape, diag));
    ins->stale = false;
    if (mgx_shape_equal(&before, &ins->shape))
        return MGX_OK;
    for (struct mgx_use *use = ins->uses; use; use = use->next)
        use->user->stale = true;
    return MGX_OK;
}

// --- adding ---

static struct mgx_ins *new_ins(struct mgx_module *m, const struct mgx_op *op, void *attr)
{
    assert(m->program && m->program->module_count);
    struct mgx_ins *ins = MGX_NEW(&m->program->arena, struct mgx_ins);
    if (ins)
        *ins = (struct mgx_ins){.op = op, .attr = attr, .owner = m};
    return ins;
}

// The failure names the instruction's origin when the first input has one: that is where to look.
static void blame(const struct mgx_op *op, struct mgx_ins *const *in, int count,
                  struct mgx_diag *diag)
{
    for (int i = 0; i < count; i++)
        if (in[i]->origin.count) {
            mgx_where(diag, "%s reading the result of %s", op->name, in[i]->origin.v[0]);
            return;
        }
}

// Builders are sticky: what is missing was refused before.
static bool all_there(struct mgx_ins *const *in, int count)
{
    for (int i = 0; i < count; i++)
        if (!in[i])
            return false;
    return true;
}

static bool link_modules(struct mgx_ins *ins, struct mgx_module *const *mod, int mod_count)
{
    struct mgx_program *p = ins->owner->program;
    if (!mod_count)
        return true;
    assert(mod[0]->program == p);
    ins->mod = mgx_arena_memdup(&p->arena, mod, (size_t)mod_count * sizeof(struct mgx_module *));
    ins->mod_count = mod_count;
    return ins->mod != NULL;
}

struct mgx_ins *mgx_insert(struct mgx_module *m, struct mgx_ins *before, const struct mgx_op *op,
                           void *keep_attr, struct mgx_ins *const *in, int in_count,
                           struct mgx_module *const *mod, int mod_count)
{
    struct mgx_program *p = m->program;
    assert(op && (!before || before->owner == m));
    if (!all_there(in, in_count))
        return NULL;
    for (int i = 0; i < mod_count; i++)
        if (!mod[i])
            return NULL;
    struct mgx_shape shape = {0};
    if (mgx_infer(&p->arena, op, keep_attr, in, in_count, mod, mod_count, &shape, &p->diag) !=
        MGX_OK) {
        blame(op, in, in_count, &p->diag);
        return NULL;
    }
    struct mgx_ins *ins = new_ins(m, op, keep_attr);
    if (!ins || !link_modules(ins, mod, mod_count) || !mgx_link_inputs(ins, in, in_count)) {
        mgx_fail_memory(&p->diag);
        return NULL;
    }
    ins->shape = shape;
    if (!before && m->last && m->last->op == &mgx_op_return)
        before = m->last;
    assert(!before || mgx_is_linked(before)); // not one that was removed
    mgx_link_ins(m, ins, before);
    return ins;
}

static struct mgx_ins *emit(struct mgx_module *m, struct mgx_ins *before, const struct mgx_op *op,
                            const struct mgx_attr *attrs, struct mgx_ins_list in)
{
    void *attr = NULL;
    if (!all_there(in.v, in.count) ||
        mgx_attr_make(op, attrs, &m->program->arena, &attr, &m->program->diag) != MGX_OK)
        return NULL;
    return mgx_insert(m, before, op, attr, in.v, in.count, NULL, 0);
}

struct mgx_ins *mgx_emit(struct mgx_module *m, const struct mgx_op *op,
                         const struct mgx_attr *attrs, struct mgx_ins_list in)
{
    return emit(m, NULL, op, attrs, in);
}

struct mgx_ins *mgx_emit_before(struct mgx_ins *before, const struct mgx_op *op,
                                const struct mgx_attr *attrs, struct mgx_ins_list in)
{
    return emit(before->owner, before, op, attrs, in);
}

struct mgx_ins *mgx_add_parameter(struct mgx_module *m, const char *name,
                                  const struct mgx_shape *shape)
{
    struct mgx_program *p = m->program;
    if (!shape->dims && !shape->unranked && shape->type != MGX_TUPLE &&
        shape->type != MGX_SEQUENCE && mgx_shape_check(shape, &p->diag) != MGX_OK)
        return NULL;
    struct mgx_param_attr *attr = MGX_NEW(&p->arena, struct mgx_param_attr);
    struct mgx_ins *ins = attr ? new_ins(m, &mgx_op_param, attr) : NULL;
    if (!ins || !(attr->parameter = mgx_arena_strdup(&p->arena, name)) ||
        !mgx_shape_copy(&p->arena, shape, &ins->shape) ||
        !mgx_map_put(&p->parameter_names, attr->parameter, p)) {
        mgx_fail_memory(&p->diag);
        return NULL;
    }
    attr->order = p->parameter_count++;
    mgx_link_ins(m, ins, m->first);
    return ins;
}

struct mgx_ins *mgx_add_literal(struct mgx_module *m, const struct mgx_tensor *share)
{
    struct mgx_program *p = m->program;
    struct mgx_ins *ins = new_ins(m, &mgx_op_literal, NULL);
    struct mgx_tensor *value = MGX_NEW(&p->arena, struct mgx_tensor);
    if (!ins || !value || !mgx_shape_copy(&p->arena, &share->shape, &ins->shape)) {
        mgx_fail_memory(&p->diag);
        return NULL;
    }
    assert(share->storage ||
           !mgx_shape_elements(&share->shape)); // a literal owns a share in its bytes
    assert(mgx_tensor_lies_inside(share));
    *value = *share;
    value->shape = ins->shape;
    if (!mgx_keep(&p->literals, share->storage)) {
        mgx_fail_memory(&p->diag);
        return NULL;
    }
    ins->literal = value;
    mgx_link_ins(m, ins, m->first);
    return ins;
}

enum mgx_status mgx_literal_align(struct mgx_ins *literal, struct mgx_diag *diag)
{
    assert(literal->op == &mgx_op_literal && literal->literal);
    struct mgx_tensor *t = literal->literal;
    if (mgx_tensor_is_aligned(t))
        return MGX_OK;
    struct mgx_tensor aligned;
    TRY(mgx_tensor_align(&aligned, t, diag));
    if (!mgx_keep(&literal->owner->program->literals, aligned.storage)) {
        mgx_tensor_release(&aligned);
        return mgx_fail_memory(diag);
    }
    *t = aligned;
    t->shape = literal->shape;
    assert(mgx_tensor_is_aligned(t) && mgx_tensor_lies_inside(t));
    mgx_storage_release(aligned.storage); // the program keeps a share
    return MGX_OK;
}

enum mgx_status mgx_program_align(struct mgx_program *p, struct mgx_diag *diag)
{
    for (int i = 0; i < p->module_count; i++)
        for (struct mgx_ins *ins = p->modules[i]->first; ins; ins = ins->next)
            if (ins->literal)
                TRY(mgx_literal_align(ins, diag));
    return MGX_OK;
}

struct mgx_ins *mgx_add_return(struct mgx_module *m, struct mgx_ins *const *in, int count)
{
    struct mgx_program *p = m->program;
    for (int i = 0; i < count; i++)
        if (!in[i])
            return NULL;
    struct mgx_ins *old = mgx_module_return(m);
    struct mgx_ins *ins = new_ins(m, &mgx_op_return, NULL);
    if (!ins || !mgx_link_inputs(ins, in, count)) {
        mgx_fail_memory(&p->diag);
        return NULL;
    }
    if (old)
        mgx_remove(old);
    ins->shape = mgx_shape_tuple(NULL, 0);
    assert(!mgx_module_return(m)); // a module has one
    mgx_link_ins(m, ins, NULL);
    return ins;
}

static struct mgx_ins *small_literal(struct mgx_module *m, const struct mgx_shape *shape,
                                     double value, const int64_t *ints)
{
    assert(shape->rank <= 1 && (!ints || shape->type == MGX_INT64));
    struct mgx_tensor t = {0};
    if (mgx_tensor_create(&t, shape, &m->program->diag) != MGX_OK)
        return NULL;
    const int64_t count = mgx_shape_elements(shape);
    for (int64_t i = 0; i < count; i++) {
        if (ints)
            mgx_store_int(shape->type, t.data, i, ints[i]);
        else
            mgx_store_double(shape->type, t.data, i, value);
    }
    struct mgx_ins *ins = mgx_add_literal(m, &t);
    mgx_tensor_release(&t);
    return ins;
}

struct mgx_ins *mgx_literal_double(struct mgx_module *m, enum mgx_type type, double value)
{
    const struct mgx_shape shape = mgx_shape_scalar(type);
    return small_literal(m, &shape, value, NULL);
}

struct mgx_ins *mgx_literal_ints(struct mgx_module *m, const int64_t *values, int count)
{
    assert(count >= 0 && (values || !count));
    const struct mgx_shape shape = mgx_shape_vector(MGX_INT64, count);
    return small_literal(m, &shape, 0, values);
}
