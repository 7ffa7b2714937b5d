// SPDX-License-Identifier: MIT
// Loops; see loop.h. The body is imported for the shapes that the values start with, and again with
// wider ones where a result does not fit.
#include "tf/loop.h"

#include <assert.h>
#include <string.h>

enum { DEEPEST = 32 }; // of loops in loops, also those that one needs before it can begin

struct mgx_ins *mgx_tf_condition(struct mgx_node *n, struct mgx_ins *x)
{
    if (!x)
        return NULL;
    struct mgx_ins *y = mgx_build_convert(n, x, MGX_BOOL);
    return x->shape.rank ? mgx_build_reshape(n, y, NULL, 0) : y;
}

// Why an instruction is not there.
static enum mgx_status lost(struct mgx_node *n)
{
    TRY(mgx_program_status(n->module->program, n->diag));
    return n->diag->status != MGX_OK ? n->diag->status : mgx_fail_memory(n->diag);
}

// Emits into another module for a while.
static struct mgx_node in_module(const struct mgx_node *n, struct mgx_module *m)
{
    struct mgx_node inner = *n;
    inner.module = m;
    return inner;
}

static enum mgx_status test(struct mgx_tf_loop *l, struct mgx_module *m,
                            struct mgx_ins *const *values, struct mgx_ins **out)
{
    struct mgx_node inner = in_module(l->n, m);
    struct mgx_ins *x = NULL;
    TRY(l->test(l, m, values, &x));
    if (mgx_tf_handle_of(l->n, x) || !mgx_type_is_number(x->shape.type))
        return mgx_node_invalid(l->n, "the condition is not a number");
    *out = mgx_tf_condition(&inner, x);
    return mgx_program_status(m->program, l->n->diag);
}

struct mgx_module *mgx_tf_add_module(struct mgx_node *n, const char *what)
{
    assert(what && *what);
    enum { MOST_BODIES = 1 << 15 }; // every pass meets each of them
    if (n->module->program->module_count > MOST_BODIES) {
        (void)!mgx_fail(n->diag, MGX_LIMIT, "more than %d bodies of loops and branches",
                        MOST_BODIES);
        return NULL;
    }
    const char *name = mgx_arena_printf(n->scratch, "%s_%s", n->op_type, what);
    struct mgx_module *m = name ? mgx_program_add_module(n->module->program, name) : NULL;
    if (!m)
        mgx_fail_memory(n->diag);
    return m;
}

static struct mgx_ins *add_parameter(struct mgx_node *n, struct mgx_module *m, int i,
                                     const struct mgx_shape *shape)
{
    const char *name = mgx_arena_printf(n->scratch, "%s_x%d", m->name, i);
    struct mgx_ins *x = name ? mgx_add_parameter(m, name, shape) : NULL;
    if (!x)
        mgx_fail_memory(n->diag);
    return x;
}

// --- the body ---

struct body {
    struct mgx_module *module;
    struct mgx_ins **in, **next; // per value; fixed ones are those outside
};

static enum mgx_status new_body(struct mgx_tf_loop *l, const struct mgx_shape *shapes,
                                struct body *b)
{
    const struct mgx_shape counter = mgx_shape_scalar(MGX_INT64), flag = mgx_shape_scalar(MGX_BOOL);
    struct mgx_arena *arena = &l->n->tf->import->arena;
    *b = (struct body){.module = mgx_tf_add_module(l->n, "loop")};
    b->in = MGX_NEW_ARRAY(arena, struct mgx_ins *, l->count);
    b->next = MGX_NEW_ARRAY(arena, struct mgx_ins *, l->count);
    if (!b->module)
        return l->n->diag->status;
    if (!b->in || !b->next || !add_parameter(l->n, b->module, 0, &counter) ||
        !add_parameter(l->n, b->module, 1, &flag))
        return mgx_fail_memory(l->n->diag);
    for (int i = 0; i < l->count; i++) {
        b->in[i] = l->fixed[i] ? l->values[i] : add_parameter(l->n, b->module, i + 2, &shapes[i]);
        if (!b->in[i])
            return lost(l->n);
    }
    return l->step(l, b->module, b->in, b->next);
}

static enum mgx_status close_body(struct mgx_tf_loop *l, struct body *b)
{
    struct mgx_ins **out = MGX_NEW_ARRAY(l->n->scratch, struct mgx_ins *, l->count + 1);
    int count = 1;
    if (!out)
        return mgx_fail_memory(l->n->diag);
    TRY(test(l, b->module, b->next, &out[0]));
    for (int i = 0; i < l->count; i++)
        if (!l->fixed[i])
            out[count++] = b->next[i];
    mgx_add_return(b->module, out, count);
    return mgx_program_status(b->module->program, l->n->diag);
}

static void remove_modules(struct mgx_program *p, int down_to)
{
    while (p->module_count > down_to)
        mgx_program_remove_module(p, p->modules[p->module_count - 1]);
}

// --- what goes round ---

static bool is_list(const struct mgx_node *n, const struct mgx_ins *x)
{
    const struct mgx_tf_handle *handle = mgx_tf_handle_of(n, x);
    return handle && handle->kind == MGX_TF_LIST_OF_TENSORS;
}

// Lists that hold nothing yet: a first import of the body, which is taken back, shows their
// members' shape.
static enum mgx_status make_lists(struct mgx_tf_loop *l, struct mgx_shape *shapes)
{
    const int modules = l->n->module->program->module_count;
    bool *fixed = l->fixed, any = false;
    struct body b;
    bool *trial = MGX_NEW_ARRAY(l->n->scratch, bool, l->count);
    if (!trial)
        return mgx_fail_memory(l->n->diag);
    for (int i = 0; i < l->count; i++) {
        trial[i] = fixed[i] || mgx_tf_handle_of(l->n, l->values[i]);
        any |= !fixed[i] && is_list(l->n, l->values[i]);
    }
    if (!any)
        return MGX_OK;
    l->fixed = trial;
    const enum mgx_status status = new_body(l, shapes, &b);
    l->fixed = fixed;
    TRY(status);
    for (int i = 0; i < l->count; i++) {
        if (fixed[i] || !is_list(l->n, l->values[i]) || mgx_tf_handle_of(l->n, b.next[i]))
            continue;
        const struct mgx_shape made = mgx_build_plain(&b.next[i]->shape);
        if (!mgx_shape_is_static(&made))
            return mgx_node_unsupported(l->n, "a list of members whose lengths differ");
        l->values[i] = mgx_build_filled(l->n, made.type, made.rank, made.lens, 0);
        if (!l->values[i])
            return lost(l->n);
        shapes[i] = made;
    }
    remove_modules(l->n->module->program, modules);
    return MGX_OK;
}

static enum mgx_status start_shapes(struct mgx_tf_loop *l, struct mgx_shape *shapes)
{
    for (int i = 0; i < l->count; i++)
        if (!l->fixed[i] && !mgx_tf_handle_of(l->n, l->values[i]))
            shapes[i] = mgx_build_plain(&l->values[i]->shape);
    TRY(make_lists(l, shapes));
    for (int i = 0; i < l->count; i++)
        l->fixed[i] |= mgx_tf_handle_of(l->n, l->values[i]) != NULL;
    return MGX_OK;
}

// A handle must come out as it went in; a tensor in a shape that the next round can take.
static enum mgx_status compare(struct mgx_tf_loop *l, const struct body *b, bool last,
                               struct mgx_shape *shapes, bool *changed)
{
    for (int i = 0; i < l->count; i++) {
        const bool handle = mgx_tf_handle_of(l->n, b->next[i]) != NULL;
        if (handle && b->next[i] != l->values[i])
            return mgx_node_unsupported(l->n, "value %d of the loop changes what it stands for", i);
        if (!l->fixed[i] && !handle)
            TRY(mgx_build_widen(l->n, &b->next[i]->shape, last, &shapes[i], changed));
    }
    return MGX_OK;
}

static enum mgx_status import_body(struct mgx_tf_loop *l, struct mgx_shape *shapes,
                                   struct mgx_module **out)
{
    const int modules = l->n->module->program->module_count;
    for (int round = 0; round <= MGX_WIDENINGS; round++) {
        struct body b;
        bool changed = false;
        remove_modules(l->n->module->program, modules);
        TRY(new_body(l, shapes, &b));
        TRY(compare(l, &b, round + 1 >= MGX_WIDENINGS, shapes, &changed));
        *out = b.module;
        if (!changed)
            return close_body(l, &b);
    }
    return mgx_node_invalid(l->n, "the loop's values find no common shape");
}

static enum mgx_status emit(struct mgx_tf_loop *l, struct mgx_module *body, struct mgx_ins *first)
{
    struct mgx_node *n = l->n;
    struct mgx_ins **in = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, l->count + 2);
    const struct mgx_shape number = mgx_shape_scalar(MGX_INT64);
    int count = 2;
    if (!in)
        return mgx_fail_memory(n->diag);
    in[0] = mgx_build_ints(n, &number, (const int64_t[]){INT64_MAX});
    in[1] = first;
    for (int i = 0; i < l->count; i++)
        if (!l->fixed[i])
            in[count++] = l->values[i];
    struct mgx_ins *y = mgx_build_emit_body(
        n, &mgx_op_loop,
        MGX_ATTRS(mgx_int("max_iterations", n->tf->import->options.limit_loop_iterations)), in,
        count, &body, 1);
    for (int i = 0, k = 0; i < l->count; i++)
        if (!l->fixed[i])
            l->values[i] = mgx_build_member(n, y, k++);
    return MGX_OK;
}

static enum mgx_status import_loop(struct mgx_tf_loop *l)
{
    struct mgx_shape *shapes = MGX_NEW_ARRAY(l->n->scratch, struct mgx_shape, l->count);
    struct mgx_module *body = NULL;
    struct mgx_ins *first = NULL;
    if (!shapes)
        return mgx_fail_memory(l->n->diag);
    TRY(start_shapes(l, shapes));
    TRY(test(l, l->n->module, l->values, &first));
    TRY(import_body(l, shapes, &body));
    return emit(l, body, first);
}

enum mgx_status mgx_tf_loop_import(struct mgx_tf_loop *l)
{
    assert(l->test && l->step && l->count >= 0);
    struct mgx_tf_import *import = l->n->tf->import;
    if (import->loops >= DEEPEST)
        return mgx_fail(l->n->diag, MGX_LIMIT, "loops are nested deeper than %d", DEEPEST);
    import->loops++;
    const enum mgx_status status = import_loop(l);
    import->loops--;
    return status;
}
