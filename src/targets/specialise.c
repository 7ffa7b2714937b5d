// SPDX-License-Identifier: MIT
// See specialise.h.
//
// Shapes are found anew by the operators' own rules, bodies before what they are bodies of. What a
// body brings along as its own parameters (the state of a loop) keeps its declared shape.
#include "targets/specialise.h"

#include "op/rule/rule.h"

bool mgx_has_free_sizes(const struct mgx_program *p)
{
    bool found = false;
    for (const struct mgx_ins *ins = mgx_program_main(p)->first; ins; ins = ins->next) {
        if (ins->op != &mgx_op_param || mgx_shape_is_static(&ins->shape))
            continue;
        if (!mgx_shape_is_number(&ins->shape))
            return false;
        found = true;
    }
    return found;
}

static bool is_free(const struct mgx_shape *s, int axis)
{
    const struct mgx_dim d = mgx_shape_dim(s, axis);
    return !mgx_dim_is_fixed(&d);
}

struct mgx_free_axis *mgx_free_axes(const struct mgx_program *p, struct mgx_arena *arena,
                                    int *count)
{
    int param_count, axes = 0;
    struct mgx_ins **params = mgx_module_parameter_list(mgx_program_main(p), arena, &param_count);
    for (int i = 0; params && i < param_count; i++)
        axes += params[i]->shape.dims ? params[i]->shape.rank : 0;
    struct mgx_free_axis *list = MGX_NEW_ARRAY(arena, struct mgx_free_axis, axes);
    *count = 0;
    for (int i = 0; params && list && i < param_count; i++)
        for (int axis = 0; params[i]->shape.dims && axis < params[i]->shape.rank; axis++)
            if (is_free(&params[i]->shape, axis))
                list[(*count)++] = (struct mgx_free_axis){i, axis};
    return params ? list : NULL;
}

static enum mgx_status set_lens(struct mgx_program *p, const int64_t **at, struct mgx_diag *diag)
{
    const int64_t *lens = *at;
    int count;
    struct mgx_ins **params = mgx_module_parameter_list(mgx_program_main(p), &p->arena, &count);
    if (!params)
        return mgx_fail_memory(diag);
    for (int i = 0; i < count; i++) {
        struct mgx_shape *s = &params[i]->shape;
        struct mgx_dim *now = s->dims ? MGX_NEW_ARRAY(&p->arena, struct mgx_dim, s->rank) : NULL;
        for (int axis = 0; now && axis < s->rank; axis++) {
            now[axis] = mgx_shape_dim(s, axis);
            if (is_free(s, axis) && *lens++ != MGX_LENGTH_OPEN)
                now[axis] = (struct mgx_dim){.min = lens[-1], .max = lens[-1]};
        }
        if (now)
            *s = mgx_shape_from_dims(s->type, s->rank, now);
        else if (s->dims)
            return mgx_fail_memory(diag);
    }
    *at = lens;
    return MGX_OK;
}

// --- shapes and sizes ---

struct update {
    struct mgx_map seen;      // modules that are done: a body may belong to several instructions
    struct mgx_arena scratch; // of expansions
    struct mgx_eval eval;
    struct mgx_diag *diag;
};

enum { SMALL = 1024 }; // elements of what sizes are computed with, positions among them

static bool is_known(const struct mgx_ins *ins, const struct mgx_ins *in)
{
    return in->literal ? mgx_shape_elements(&in->shape) <= SMALL
                       : ins->op == &mgx_op_dimensions_of && mgx_shape_is_static(&in->shape);
}

// Sizes that follow from sizes: what later shapes depend on.
static bool is_size(const struct mgx_ins *ins)
{
    bool known = ins->in_count > 0 && !ins->mod_count && ins->op->compute && ins->uses &&
                 !(ins->op->flags & (MGX_OP_IMPURE | MGX_OP_EFFECT | MGX_OP_BUILTIN)) &&
                 mgx_shape_is_number(&ins->shape) && mgx_shape_is_static(&ins->shape) &&
                 mgx_shape_elements(&ins->shape) <= SMALL;
    for (int i = 0; i < ins->in_count && known; i++)
        known = is_known(ins, ins->in[i]);
    return known;
}

// What fails to evaluate stays, and fails when it runs.
static enum mgx_status fold(struct update *u, struct mgx_ins *ins)
{
    struct mgx_tensor out = {0}, *in = MGX_NEW_ARRAY(&u->scratch, struct mgx_tensor, ins->in_count);
    const struct mgx_tensor **list =
        MGX_NEW_ARRAY(&u->scratch, const struct mgx_tensor *, ins->in_count);
    struct mgx_diag quiet = {.status = MGX_OK};
    if (!in || !list)
        return mgx_fail_memory(u->diag);
    for (int i = 0; i < ins->in_count; i++) {
        in[i] = ins->in[i]->literal ? *ins->in[i]->literal
                                    : mgx_tensor_borrow(&ins->in[i]->shape, NULL);
        list[i] = &in[i];
    }
    if (mgx_eval_op(&u->eval, ins->op, ins->attr, list, ins->in_count, NULL, 0, &ins->shape, &out,
                    &quiet) != MGX_OK)
        return MGX_OK;
    struct mgx_program *p = ins->owner->program;
    struct mgx_ins *literal = mgx_add_literal(ins->owner, &out);
    mgx_tensor_release(&out);
    if (literal) {
        mgx_replace_uses(ins, literal);
        mgx_remove(ins);
    }
    return mgx_program_status(p, u->diag);
}

// What an operator left when it was expanded: itself, and the members of its tuple. False if
// somebody reads it still.
static bool drop(struct mgx_ins *ins)
{
    for (struct mgx_use *use = ins->uses, *next; use; use = next) {
        next = use->next;
        if (!use->user->uses)
            mgx_remove(use->user);
    }
    if (ins->uses)
        return false;
    mgx_remove(ins);
    return true;
}

static enum mgx_status update(struct update *u, struct mgx_module *m);

static enum mgx_status update_ins(struct update *u, struct mgx_ins *ins)
{
    for (int i = 0; i < ins->mod_count; i++)
        TRY(update(u, ins->mod[i]));
    TRY(mgx_update_shape(ins, u->diag));
    return is_size(ins) ? fold(u, ins) : MGX_OK;
}

// In order, so that everything an instruction depends on is known before it. What an operator that
// waited for its sizes expands to stands where it stood, and is looked at in turn.
static enum mgx_status update(struct update *u, struct mgx_module *m)
{
    if (mgx_map_find_pointer(&u->seen, m))
        return MGX_OK;
    if (!mgx_map_put_pointer(&u->seen, m, m))
        return mgx_fail_memory(u->diag);
    for (struct mgx_ins *ins = m->first, *next; ins; ins = next) {
        struct mgx_ins *const before = ins->prev;
        bool expanded = false;
        if (ins->op->expand)
            TRY(ins->op->expand(ins, &u->scratch, &expanded, u->diag));
        if (expanded && drop(ins)) {
            next = before ? before->next : m->first;
            continue;
        }
        next = ins->next; // updating it may remove it
        TRY(update_ins(u, ins));
    }
    return mgx_program_status(m->program, u->diag);
}

static enum mgx_status update_all(struct mgx_program *p, struct mgx_diag *diag)
{
    struct update u = {.diag = diag};
    mgx_arena_init(&u.scratch);
    u.eval.strings = &u.scratch;
    const enum mgx_status status = update(&u, mgx_program_main(p));
    mgx_map_fini(&u.seen);
    mgx_arena_fini(&u.scratch);
    return status;
}

enum mgx_status mgx_narrow(struct mgx_program *p, const int64_t *lens, struct mgx_diag *diag)
{
    TRY(set_lens(p, &lens, diag));
    TRY(update_all(p, diag));
    return mgx_program_status(p, diag);
}

enum mgx_status mgx_specialise(struct mgx_program **out, const struct mgx_program *simplified,
                               const struct mgx_target *target,
                               const struct mgx_compile_options *options,
                               const struct mgx_values *values, const int64_t *lens,
                               struct mgx_diag *diag)
{
    struct mgx_program *p;
    TRY(mgx_program_clone(&p, simplified, diag));
    enum mgx_status status = set_lens(p, &lens, diag);
    if (status == MGX_OK && values)
        status = mgx_values_set(values, p, lens, diag);
    if (status == MGX_OK)
        status = update_all(p, diag);
    if (status == MGX_OK)
        status = target->compile(p, options, diag);
    if (status == MGX_OK)
        status = mgx_program_status(p, diag);
    if (status != MGX_OK) {
        mgx_program_destroy(p);
        return status;
    }
    *out = p;
    return MGX_OK;
}
