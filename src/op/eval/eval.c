// SPDX-License-Identifier: MIT
// Evaluation by reference compute; see eval.h.
//
// A module runs in order; a value is dropped after its last reader in the module, so memory follows
// liveness. Values that bodies capture stay until the end of their module.
#include "op/eval/eval.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "ir/inside.h"

enum { INLINE_INPUTS = 16 };

// --- scratch ---

// One arena for an evaluation and all within it: each gives back its part at its end, so that
// bodies of a few small operators, run many times, ask for no memory.
struct part {
    struct mgx_arena own; // of the outermost
    struct mgx_arena_mark mark;
    bool outermost;
};

static struct mgx_arena *begin_part(struct mgx_eval *e, struct part *p)
{
    p->outermost = !e->scratch;
    if (p->outermost) {
        mgx_arena_init(&p->own);
        e->scratch = &p->own;
        return e->scratch; // it ends altogether
    }
    (void)!mgx_arena_alloc(e->scratch, 1); // a block that stays when this part ends
    p->mark = mgx_arena_mark(e->scratch);
    return e->scratch;
}

static void end_part(struct mgx_eval *e, struct part *p)
{
    assert(e->scratch && (p->outermost == (e->scratch == &p->own)));
    if (!p->outermost) {
        mgx_arena_rewind(e->scratch, p->mark);
        return;
    }
    mgx_arena_fini(&p->own);
    e->scratch = NULL;
}

// --- one operator ---

static enum mgx_status check_limit(const struct mgx_eval *e, const struct mgx_shape *shape,
                                   const char *who, struct mgx_diag *diag)
{
    TRY(mgx_shape_check(shape, diag));
    const size_t bytes = mgx_shape_bytes(shape);
    if (e->limit_bytes && bytes > e->limit_bytes)
        return mgx_fail(diag, MGX_LIMIT, "%s: result of %zu bytes is above the limit of %zu bytes",
                        who, bytes, e->limit_bytes);
    return MGX_OK;
}

enum mgx_status mgx_eval_count(struct mgx_compute_call *c, size_t bytes)
{
    enum { LOOK_EVERY = 256 << 20 };
    struct mgx_eval *e = c->eval;
    e->created += bytes;
    if (e->created < LOOK_EVERY)
        return MGX_OK;
    e->created = 0;
    return mgx_memory_is_short()
               ? mgx_fail(c->diag, MGX_NO_MEMORY, "out of memory: %s: the machine has none left",
                          c->op->name)
               : MGX_OK;
}

enum mgx_status mgx_eval_create(struct mgx_compute_call *c, const struct mgx_shape *shape)
{
    assert(mgx_shape_is_static(shape) || shape->type == MGX_SEQUENCE);
    struct mgx_eval *e = c->eval;
    TRY(check_limit(e, shape, c->op->name, c->diag));
    TRY(mgx_eval_count(c, mgx_shape_bytes(shape)));
    if (e->create && mgx_type_is_number(shape->type))
        return e->create(e->offer_user, shape, c->out, c->diag);
    return mgx_tensor_create(c->out, shape, c->diag);
}

enum mgx_status mgx_eval_round(struct mgx_compute_call *c)
{
    assert(c->eval->rounds >= 0);
    TRY(mgx_cancel_check(c->diag));
    if (++c->eval->rounds <= MGX_EVAL_MAX_ROUNDS)
        return MGX_OK;
    return mgx_fail(c->diag, MGX_LIMIT, "%s: still running after %d rounds", c->op->name,
                    MGX_EVAL_MAX_ROUNDS);
}

enum mgx_status mgx_eval_text(struct mgx_compute_call *c, size_t size, char **out)
{
    assert(c->eval->strings && out);
    struct mgx_arena *strings = c->eval->strings;
    if (size > MGX_EVAL_MAX_STRING_BYTES || strings->bytes > MGX_EVAL_MAX_STRING_BYTES - size)
        return mgx_fail(c->diag, MGX_LIMIT, "%s: strings of this run are longer than %d bytes",
                        c->op->name, MGX_EVAL_MAX_STRING_BYTES);
    *out = mgx_arena_alloc(strings, size);
    return *out ? MGX_OK : mgx_fail_memory(c->diag);
}

enum mgx_status mgx_eval_string(struct mgx_compute_call *c, const char *text, size_t size,
                                struct mgx_string *out)
{
    char *copy;
    TRY(mgx_eval_text(c, size + 1, &copy));
    if (size)
        memcpy(copy, text, size);
    *out = (struct mgx_string){copy, size};
    return MGX_OK;
}

static bool lies_as(const struct mgx_shape *s, const struct mgx_shape *want)
{
    assert(s->rank == want->rank);
    for (int i = 0; i < s->rank; i++)
        if (s->lens[i] > 1 && s->strides[i] != want->strides[i])
            return false;
    return true;
}

enum mgx_status mgx_eval_as_declared(struct mgx_compute_call *c, struct mgx_tensor *t,
                                     const struct mgx_shape *want)
{
    const bool comparable = want && !t->sub && t->shape.type == want->type &&
                            mgx_shape_is_static(want) && t->shape.rank == want->rank &&
                            mgx_shape_same_lens(&t->shape, want);
    if (!comparable)
        return MGX_OK;
    if (mgx_shape_elements(want) == 0 || lies_as(&t->shape, want)) {
        t->shape = *want;
        return MGX_OK;
    }
    struct mgx_tensor copy;
    struct mgx_compute_call part = *c;
    part.out = &copy;
    TRY(mgx_eval_create(&part, want));
    mgx_tensor_copy(t, &copy);
    mgx_tensor_release(t);
    *t = copy;
    return MGX_OK;
}

static bool creates_itself(const struct mgx_op *op, const struct mgx_shape *shape)
{
    return (op->flags & (MGX_OP_VIEW | MGX_OP_RESHAPE)) || !mgx_shape_is_static(shape) ||
           shape->type == MGX_TUPLE || shape->type == MGX_SEQUENCE;
}

// The true shape of the result, from the actual inputs and their values.
static enum mgx_status actual_shape(struct mgx_compute_call *c, struct mgx_shape *out)
{
    assert(c->in_count >= 0 && (c->in || !c->in_count));
    const struct mgx_shape **shapes =
        MGX_NEW_ARRAY(c->scratch, const struct mgx_shape *, c->in_count);
    if (!shapes)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < c->in_count; i++)
        shapes[i] = &c->in[i]->shape;
    struct mgx_shape_call call = {.op = c->op,
                                  .attr = c->attr,
                                  .in = shapes,
                                  .in_count = c->in_count,
                                  .values = c->in,
                                  .mod = c->mod,
                                  .mod_count = c->mod_count,
                                  .arena = c->scratch,
                                  .diag = c->diag};
    return mgx_op_shape(&call, out);
}

// Inputs that are weights as they lie in a file, in aligned copies; those the target knows only
// when it is about the reference. Views only look at shapes.
static bool must_align(const struct mgx_compute_call *c, const struct mgx_tensor *t, bool all)
{
    assert(c->eval);
    const struct mgx_eval *e = c->eval;
    if (mgx_tensor_is_aligned(t) || (c->op->flags & (MGX_OP_VIEW | MGX_OP_RESHAPE | MGX_OP_MOVE)))
        return false;
    return all || !e->knows || !e->knows(e->offer_user, t);
}

// `copies` grows by what is copied now.
static enum mgx_status align_inputs(struct mgx_compute_call *c, struct mgx_tensor **copies,
                                    bool all)
{
    int first = 0;
    while (first < c->in_count && !must_align(c, c->in[first], all))
        first++;
    if (first == c->in_count)
        return MGX_OK;
    const struct mgx_tensor **in =
        MGX_NEW_ARRAY(c->scratch, const struct mgx_tensor *, c->in_count);
    if (!*copies)
        *copies = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, c->in_count);
    if (!in || !*copies)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < c->in_count; i++) {
        in[i] = c->in[i]; // what is borrowed stays so
        if (!must_align(c, c->in[i], all))
            continue;
        TRY(mgx_tensor_align(&(*copies)[i], c->in[i], c->diag));
        in[i] = &(*copies)[i];
    }
    c->in = in;
    return MGX_OK;
}

static enum mgx_status check_elements(const struct mgx_compute_call *c)
{
    for (int i = 0; i < c->in_count && !(c->op->flags & (MGX_OP_VIEW | MGX_OP_RESHAPE)); i++)
        if (!c->in[i]->sub && mgx_shape_elements(&c->in[i]->shape) > MGX_EVAL_MAX_ELEMENTS)
            return mgx_fail(c->diag, MGX_LIMIT,
                            "%s: an input of %" PRId64 " elements, above the limit of %" PRId64,
                            c->op->name, mgx_shape_elements(&c->in[i]->shape),
                            MGX_EVAL_MAX_ELEMENTS);
    return MGX_OK;
}

// Is what was made what its readers were told to expect? They may have been compiled for that.
static enum mgx_status check_result(const struct mgx_compute_call *c)
{
    if (!c->declared || mgx_shape_may_be(c->declared, &c->out->shape))
        return MGX_OK;
    struct mgx_str want = {0}, got = {0};
    mgx_shape_print(&want, c->declared);
    mgx_shape_print(&got, &c->out->shape);
    mgx_fail(c->diag, MGX_INVALID, "%s: its result is %.200s, declared as %.200s", c->op->name,
             mgx_str_text(&got), mgx_str_text(&want));
    mgx_str_fini(&want);
    mgx_str_fini(&got);
    mgx_tensor_release(c->out);
    return MGX_INVALID;
}

static enum mgx_status compute(struct mgx_compute_call *c, struct mgx_tensor **copies)
{
    struct mgx_shape shape;
    TRY(check_elements(c));
    TRY(align_inputs(c, copies, false));
    TRY(actual_shape(c, &shape));
    assert(mgx_shape_is_static(&shape) || creates_itself(c->op, &shape));
    c->out_shape = &shape;
    if (c->eval->offer) {
        bool done = false;
        TRY(c->eval->offer(c->eval->offer_user, c, &done));
        if (done)
            return MGX_OK;
        TRY(align_inputs(c, copies, true));
    }
    if (!creates_itself(c->op, &shape))
        TRY(mgx_eval_create(c, &shape));
    enum mgx_status status = c->op->compute(c);
    assert(status != MGX_OK || mgx_tensor_lies_inside(c->out));
    if (status == MGX_OK)
        status = mgx_cancel_check(c->diag); // loops end early then
    if (status == MGX_OK)
        status = mgx_eval_as_declared(c, c->out, c->declared);
    if (status != MGX_OK)
        mgx_tensor_release(c->out);
    // A sequence says of members that differ only their type.
    assert(status != MGX_OK || c->out->sub || mgx_shape_is_static(&c->out->shape));
    return status;
}

enum mgx_status mgx_eval_op(struct mgx_eval *e, const struct mgx_op *op, const void *attr,
                            const struct mgx_tensor *const *in, int in_count,
                            struct mgx_module *const *mod, int mod_count,
                            const struct mgx_shape *declared, struct mgx_tensor *out,
                            struct mgx_diag *diag)
{
    if (!op->compute)
        return mgx_fail(diag, MGX_UNSUPPORTED, "%s: has no reference compute", op->name);
    struct part part;
    struct mgx_arena *scratch = begin_part(e, &part);
    *out = (struct mgx_tensor){0};
    struct mgx_compute_call call = {.op = op,
                                    .attr = attr,
                                    .in = in,
                                    .in_count = in_count,
                                    .out = out,
                                    .declared = declared,
                                    .mod = mod,
                                    .mod_count = mod_count,
                                    .eval = e,
                                    .scratch = scratch,
                                    .diag = diag};
    struct mgx_tensor *copies = NULL;
    enum mgx_status status = compute(&call, &copies);
    if (status == MGX_OK)
        status = check_result(&call);
    for (int i = 0; copies && i < in_count; i++)
        mgx_tensor_release(&copies[i]);
    end_part(e, &part);
    return status;
}

// --- a module ---

struct run {
    struct mgx_eval *e;
    const struct mgx_module *m;
    struct mgx_frame frame;
    const struct mgx_tensor *args;
    int arg_count;
    struct mgx_diag *diag;
};

static const struct mgx_tensor *value_of(const struct run *r, const struct mgx_ins *ins)
{
    assert(ins->index >= 0 && ins->index < ins->owner->count);
    const struct mgx_frame *frame = &r->frame;
    while (frame && frame->module != ins->owner)
        frame = frame->up;
    return frame ? &frame->values[ins->index] : NULL;
}

static enum mgx_status gather_inputs(const struct run *r, const struct mgx_ins *ins,
                                     const struct mgx_tensor **in)
{
    assert(r->m == ins->owner);
    for (int i = 0; i < ins->in_count; i++) {
        in[i] = value_of(r, ins->in[i]);
        if (!in[i])
            return mgx_fail(r->diag, MGX_INTERNAL,
                            "input %d is of module \"%s\", which is not running", i,
                            ins->in[i]->owner->name);
    }
    return MGX_OK;
}

static enum mgx_status run_operator(struct run *r, const struct mgx_ins *ins,
                                    struct mgx_tensor *out)
{
    assert(!(ins->op->flags & MGX_OP_BUILTIN));
    const struct mgx_tensor *room[INLINE_INPUTS];
    const struct mgx_tensor **in = room;
    if (ins->in_count > INLINE_INPUTS) // goes with the module's part
        in = MGX_NEW_ARRAY(r->e->scratch, const struct mgx_tensor *, ins->in_count);
    enum mgx_status status = in ? gather_inputs(r, ins, in) : mgx_fail_memory(r->diag);
    if (status == MGX_OK)
        status = mgx_eval_op(r->e, ins->op, ins->attr, in, ins->in_count, ins->mod, ins->mod_count,
                             &ins->shape, out, r->diag);
    return status;
}

static enum mgx_status run_ins(struct run *r, const struct mgx_ins *ins, struct mgx_tensor *out)
{
    if (ins->op == &mgx_op_literal) {
        *out = mgx_tensor_share(ins->literal);
        return MGX_OK;
    }
    if (ins->op == &mgx_op_param || ins->op == &mgx_op_return || ins->op == &mgx_op_comment)
        return MGX_OK; // parameters are placed before the walk
    TRY(run_operator(r, ins, out));
    if (r->e->trace && r->e->depth == 1)
        return r->e->trace(r->e->trace_user, ins, out, r->diag);
    return MGX_OK;
}

static enum mgx_status check_argument(const struct run *r, const struct mgx_ins *param,
                                      const struct mgx_tensor *arg)
{
    assert(param->op == &mgx_op_param);
    if (mgx_shape_may_be(&param->shape, &arg->shape))
        return MGX_OK;
    struct mgx_str want = {0}, got = {0};
    mgx_shape_print(&want, &param->shape);
    mgx_shape_print(&got, &arg->shape);
    mgx_fail(r->diag, MGX_INVALID, "module \"%.80s\" takes %.80s as %.160s, given %.160s",
             r->m->name, mgx_parameter_name(param), mgx_str_text(&want), mgx_str_text(&got));
    mgx_str_fini(&want);
    mgx_str_fini(&got);
    return MGX_INVALID;
}

static enum mgx_status place_parameters(struct run *r)
{
    int count = 0;
    for (const struct mgx_ins *ins = r->m->first; ins; ins = ins->next)
        count += ins->op == &mgx_op_param;
    if (count != r->arg_count)
        return mgx_fail(r->diag, MGX_INVALID, "module \"%s\" takes %d arguments, given %d",
                        r->m->name, count, r->arg_count);
    struct mgx_ins **params = MGX_NEW_ARRAY(r->e->scratch, struct mgx_ins *, count);
    enum mgx_status status = params ? MGX_OK : mgx_fail_memory(r->diag);
    if (params)
        mgx_module_parameters(r->m, params, count);
    for (int i = 0; status == MGX_OK && i < count; i++) {
        status = check_argument(r, params[i], &r->args[i]);
        r->frame.values[params[i]->index] = mgx_tensor_share(&r->args[i]);
    }
    return status;
}

// Index of the last reader in the same module; results and captured values are never dropped early.
static void find_last_readers(const struct mgx_module *m, int *last)
{
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next) {
        last[ins->index] = ins->index;
        for (const struct mgx_use *use = ins->uses; use; use = use->next) {
            const bool inside = use->user->owner == m && use->user->op != &mgx_op_return;
            if (!inside || use->user->index > last[ins->index])
                last[ins->index] = inside ? use->user->index : m->count;
            if (!inside)
                break;
        }
    }
    if (m->last)
        last[m->last->index] = m->count; // the result of a module without @return
}

static enum mgx_status walk(struct run *r, const int *last)
{
    for (const struct mgx_ins *ins = r->m->first; ins; ins = ins->next) {
        const enum mgx_status status = run_ins(r, ins, &r->frame.values[ins->index]);
        if (status != MGX_OK) {
            mgx_ins_blame(ins, r->diag);
            return status;
        }
        if (last[ins->index] == ins->index && ins->op != &mgx_op_return)
            mgx_tensor_release(&r->frame.values[ins->index]);
        for (int i = 0; i < ins->in_count; i++)
            if (ins->in[i]->owner == r->m && last[ins->in[i]->index] == ins->index)
                mgx_tensor_release(&r->frame.values[ins->in[i]->index]);
    }
    return MGX_OK;
}

static enum mgx_status run_module(struct run *r, const int *last, struct mgx_tensor *results)
{
    TRY(place_parameters(r));
    TRY(walk(r, last));
    const int count = mgx_module_result_count(r->m);
    for (int i = 0; i < count; i++) {
        const struct mgx_tensor *value = value_of(r, mgx_module_result(r->m, i));
        if (!value)
            return mgx_fail(r->diag, MGX_INTERNAL,
                            "result %d of module \"%s\" is of a module that is not running", i,
                            r->m->name);
        results[i] = mgx_tensor_share(value);
    }
    return MGX_OK;
}

static enum mgx_status evaluate(struct mgx_eval *e, const struct mgx_module *m,
                                const struct mgx_tensor *args, int arg_count,
                                struct mgx_tensor *results, struct mgx_diag *diag)
{
    if (e->depth >= MGX_EVAL_MAX_DEPTH)
        return mgx_fail(diag, MGX_LIMIT, "modules are nested deeper than %d", MGX_EVAL_MAX_DEPTH);
    const struct mgx_frame *const outer = e->frame;
    struct part part; // the frame: one allocation for values, one for last readers
    struct mgx_arena *arena = begin_part(e, &part);
    struct run r = {.e = e, .m = m, .args = args, .arg_count = arg_count, .diag = diag};
    r.frame = (struct mgx_frame){m, MGX_NEW_ARRAY(arena, struct mgx_tensor, m->count), outer};
    int *last = MGX_NEW_ARRAY(arena, int, m->count);
    enum mgx_status status = MGX_NO_MEMORY;
    e->frame = &r.frame;
    e->depth++;
    if (r.frame.values && last) {
        find_last_readers(m, last);
        status = run_module(&r, last, results);
        for (int i = 0; i < m->count; i++)
            mgx_tensor_release(&r.frame.values[i]);
    } else {
        mgx_fail_memory(diag);
    }
    e->depth--;
    e->frame = outer;
    end_part(e, &part);
    return status;
}

enum mgx_status mgx_eval_module(struct mgx_eval *e, const struct mgx_module *m,
                                const struct mgx_tensor *args, int arg_count,
                                struct mgx_tensor *results, struct mgx_diag *diag)
{
    bool done = false;
    if (e->body)
        TRY(e->body(e->body_user, m, args, arg_count, results, &done, diag));
    return done ? MGX_OK : evaluate(e, m, args, arg_count, results, diag);
}
