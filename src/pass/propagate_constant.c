// SPDX-License-Identifier: MIT
// Folds what depends on constants only.
//
//     op(literals)  =>  literal
//     a value without elements  =>  literal
//
// First pointwise work moves before broadcasts, so that no literal repeats what a shorter one says.
// Then three sweeps: forwards, which instructions can be folded; backwards, which of them are worth
// it, because something that is not folded reads them; forwards again, evaluating by each
// operator's reference compute, or as the target that compiles offers to. Values in between are
// dropped after their last reader. Kept as instructions, because the program would grow or later
// passes want to see them: broadcasts (their input becomes the literal), large concats,
// dequantization and unpacking of weights, conversions of 16-bit weights to float and views of
// these.
//
// Holds: literals made here stay within the options' bounds in bytes, not counting what they
// replace, and so do the values in between; the work is bounded too, so that a hostile model cannot
// keep the compiler busy. What fails to evaluate stays as it is and fails when it runs.
#include <assert.h>
#include <string.h>

#include "op/eval/eval.h"
#include "pass/engine/walk.h"
#include "pass/rules/rules.h"

#define WORK_LIMIT ((int64_t)1 << 32) // elementary steps per pipeline

struct state {
    bool foldable;  // its value can be computed now
    bool wanted;    // becomes a literal
    bool needed;    // is evaluated: wanted, or read by one that is evaluated
    int readers;    // that are evaluated and have not been yet
    size_t counted; // bytes of `value` in fold.live
    // NULL until it is evaluated: few are, and a tensor is twenty times as large as the rest.
    struct mgx_tensor *value;
};

struct fold {
    struct mgx_pass_call *call;
    struct mgx_module *module;
    struct mgx_eval eval;
    struct state *state; // by ins->index
    size_t live;         // bytes of values in between
};

static struct state *state_of(const struct fold *f, const struct mgx_ins *ins)
{
    return &f->state[ins->index];
}

// --- what can be folded ---

static bool stays_compact(const struct mgx_op *op) // the small form is the one to keep
{
    return strcmp(op->name, "dequantizelinear") == 0 || op == &mgx_op_unpack_int4 ||
           op == &mgx_op_unpack_fp4;
}

static bool is_broadcast(const struct mgx_op *op)
{
    return op == &mgx_op_multibroadcast || op == &mgx_op_broadcast;
}

// Constant, but not made a literal.
static bool stays(const struct mgx_ins *ins)
{
    const bool view = (ins->op->flags & MGX_OP_VIEW) && ins->in_count == 1;
    return is_broadcast(ins->op) || mgx_is_joined(ins) || mgx_is_widened(ins) ||
           (view && mgx_is_widened(ins->in[0]));
}

static size_t static_bytes(const struct mgx_ins *ins)
{
    return mgx_shape_is_static(&ins->shape) ? mgx_shape_bytes(&ins->shape) : 0;
}

// Multiplications per element of the result. What comes behind the second operand are zero points.
static int64_t steps_of(const struct mgx_ins *ins)
{
    const struct mgx_shape *second = ins->in_count > 1 ? &ins->in[1]->shape : NULL;
    if (ins->op == &mgx_op_dot || strcmp(ins->op->name, "quant_dot") == 0)
        return second->lens[second->rank - 2];
    if (ins->op == &mgx_op_convolution || ins->op == &mgx_op_quant_convolution ||
        ins->op == &mgx_op_convolution_backwards || ins->op == &mgx_op_quant_convolution_backwards)
        return mgx_shape_elements(second) / mgx_max_i64(1, second->lens[0]);
    return 1;
}

static bool spend_work(struct mgx_pass_call *c, const struct mgx_ins *ins)
{
    if (!mgx_shape_is_static(&ins->shape))
        return true; // sized by its values: the evaluator's limit guards it
    int64_t steps = 0;
    if (!mgx_mul_i64(mgx_shape_elements(&ins->shape), steps_of(ins), &steps))
        return false;
    for (int i = 0; i < ins->in_count; i++)
        if (mgx_shape_is_static(&ins->in[i]->shape))
            steps = mgx_max_i64(steps, mgx_shape_elements(&ins->in[i]->shape));
    if (steps > WORK_LIMIT - c->folded_work)
        return false;
    c->folded_work += steps;
    return true;
}

// Bytes that folding adds: not what takes the place of an input that nobody else reads.
static size_t growth(const struct mgx_ins *ins, size_t bytes)
{
    size_t replaced = 0;
    for (int i = 0; i < ins->in_count; i++)
        if (mgx_used_once(ins->in[i]))
            replaced += static_bytes(ins->in[i]);
    return bytes > replaced ? bytes - replaced : 0;
}

static bool can_fold(struct fold *f, struct mgx_ins *ins)
{
    if (ins->literal)
        return mgx_shape_is_number(&ins->shape);
    if (!mgx_is_constant(f->module, ins) || stays_compact(ins->op) || !ins->op->compute ||
        !mgx_shape_is_number(&ins->shape))
        return false;
    for (int i = 0; i < ins->in_count; i++)
        if (ins->in[i]->owner != f->module || !state_of(f, ins->in[i])->foldable)
            return false;
    return is_broadcast(ins->op) ||
           growth(ins, static_bytes(ins)) <= f->call->options->fold_limit_bytes;
}

// --- what is worth it ---

static void judge(struct fold *f, const struct mgx_ins *ins)
{
    struct state *s = state_of(f, ins);
    if (!s->foldable || ins->literal)
        return;
    s->wanted = ins == f->module->last;
    for (const struct mgx_use *use = ins->uses; use; use = use->next) {
        const bool inside = use->user->owner == f->module;
        const struct state *user = inside ? state_of(f, use->user) : NULL;
        s->readers += user && user->needed;
        // What is wanted and stays an instruction is a reader like any other.
        s->wanted |= !user || !user->foldable || (user->wanted && stays(use->user));
    }
    s->needed = s->readers || (s->wanted && !stays(ins));
}

// --- folding ---

static void drop(struct fold *f, struct state *s)
{
    assert(s);
    f->live -= s->counted;
    s->counted = 0;
    if (s->value)
        mgx_tensor_release(s->value);
}

// What is known of an instruction's value: its literal, or what was evaluated; NULL if nothing.
static const struct mgx_tensor *value_of(const struct fold *f, const struct mgx_ins *ins)
{
    return ins->literal ? ins->literal : state_of(f, ins)->value;
}

static enum mgx_status evaluate(struct fold *f, const struct mgx_ins *ins, struct mgx_tensor *out)
{
    const struct mgx_arena_mark mark = mgx_arena_mark(f->call->scratch);
    const struct mgx_tensor **in =
        MGX_NEW_ARRAY(f->call->scratch, const struct mgx_tensor *, ins->in_count);
    if (!in)
        return mgx_fail_memory(f->call->diag);
    bool ready = spend_work(f->call, ins);
    for (int i = 0; i < ins->in_count; i++) {
        in[i] = value_of(f, ins->in[i]);
        ready = ready && in[i] && (in[i]->storage || ins->in[i]->literal);
    }
    struct mgx_diag why = {0}; // a fold that fails is no failure of the program's
    enum mgx_status status = MGX_OK;
    if (ready)
        status = mgx_eval_op(&f->eval, ins->op, ins->attr, in, ins->in_count, NULL, 0, &ins->shape,
                             out, &why);
    mgx_arena_rewind(f->call->scratch, mark);
    return mgx_status_is_final(status) ? mgx_fail(f->call->diag, status, "%s", why.text) : MGX_OK;
}

enum { SMALL = 1 << 20 };

// A small view must not keep a large buffer alive, and a broadcast one is worth packing.
static enum mgx_status compact(struct mgx_tensor *t, struct mgx_diag *diag)
{
    const size_t bytes = mgx_shape_bytes(&t->shape);
    if (!t->storage || bytes > t->storage->bytes / 4 || bytes > SMALL)
        return MGX_OK;
    struct mgx_tensor copy = {0};
    TRY(mgx_tensor_clone(&copy, t, diag));
    mgx_tensor_release(t);
    *t = copy;
    return MGX_OK;
}

static enum mgx_status make_literal(struct fold *f, struct mgx_ins *ins, struct state *s)
{
    struct mgx_pass_call *c = f->call;
    const size_t added = growth(ins, mgx_shape_bytes(&s->value->shape));
    if (added > c->options->fold_total_bytes - c->folded_bytes)
        return MGX_OK; // stays an instruction
    TRY(compact(s->value, c->diag));
    struct mgx_ins *literal = mgx_add_literal(f->module, s->value);
    if (!literal)
        return mgx_program_status(c->program, c->diag);
    c->folded_bytes += added;
    literal->index = ins->index; // readers still to come find the same state
    if (ins == f->module->last)
        mgx_add_return(f->module, &literal, 1);
    mgx_replace_uses(ins, literal);
    c->changed = true;
    return MGX_OK;
}

// Bytes that `value` keeps alive and nothing before it did: none for a view of an input.
static size_t own_bytes(const struct fold *f, const struct mgx_ins *ins,
                        const struct mgx_tensor *value)
{
    for (int i = 0; i < ins->in_count; i++) {
        const struct mgx_tensor *in = value_of(f, ins->in[i]);
        if (in && in->storage == value->storage)
            return 0;
    }
    return value->storage->bytes;
}

static enum mgx_status fold(struct fold *f, struct mgx_ins *ins)
{
    struct state *s = state_of(f, ins);
    struct mgx_ins *const *in = ins->in;
    if (!s->value && !(s->value = MGX_NEW(f->call->scratch, struct mgx_tensor)))
        return mgx_fail_memory(f->call->diag);
    TRY(evaluate(f, ins, s->value));
    if (s->value->storage && s->wanted && !stays(ins))
        TRY(make_literal(f, ins, s));
    else if (s->value->storage)
        f->live += s->counted = own_bytes(f, ins, s->value);
    for (int i = 0; i < ins->in_count; i++)
        if (--state_of(f, in[i])->readers == 0 && !in[i]->literal)
            drop(f, state_of(f, in[i]));
    if (!s->readers || f->live > f->call->options->fold_total_bytes)
        drop(f, s);
    return MGX_OK;
}

static enum mgx_status fold_all(struct fold *f)
{
    for (struct mgx_ins *ins = f->module->first; ins; ins = ins->next) {
        if (ins->owner == f->module && !ins->literal && ins->op != &mgx_op_return &&
            state_of(f, ins)->needed)
            TRY(fold(f, ins));
    }
    return MGX_OK;
}

// Is anything constant but literals, their broadcasts and joins? The usual answer after the first
// time.
static bool has_work(struct mgx_module *m)
{
    mgx_mark_constants(m);
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next)
        if (ins->mark == MGX_MARK_CONSTANT && !stays(ins) && !stays_compact(ins->op))
            return true;
    return false;
}

// A value without elements is known: what is reduced over none of them is a constant. An operand
// that is left out has none either, and stays what it says.
static enum mgx_status know_empty(struct mgx_pass_call *c, struct mgx_module *m)
{
    MGX_EACH (ins, m) {
        const bool empty = !ins->literal && ins->uses && mgx_shape_is_number(&ins->shape) &&
                           ins->op != &mgx_op_return && ins->op != &mgx_op_undefined &&
                           mgx_shape_is_static(&ins->shape) && mgx_shape_elements(&ins->shape) == 0;
        if (!empty)
            continue;
        const struct mgx_shape packed =
            mgx_shape_make(ins->shape.type, ins->shape.rank, ins->shape.lens);
        const struct mgx_tensor nothing = {.shape = packed};
        struct mgx_ins *literal = mgx_add_literal(m, &nothing);
        if (literal)
            mgx_replace_uses(ins, literal);
        c->changed = true;
        TRY(mgx_program_status(c->program, c->diag));
    }
    return MGX_OK;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    TRY(know_empty(c, m));
    if (!has_work(m))
        return MGX_OK;
    struct mgx_arena strings;
    struct fold f = {.call = c,
                     .module = m,
                     .eval = {.strings = &strings,
                              .offer = c->options->offer,
                              .offer_user = c->options->offer_user}};
    TRY(mgx_apply_tables(c, m, (const struct mgx_rules *const[]){&mgx_rules_hoist_constants}, 1));
    const int count = m->count;
    f.eval.limit_bytes = c->options->fold_limit_bytes;
    f.state = MGX_NEW_ARRAY(c->scratch, struct state, count + 1);
    if (!f.state)
        return mgx_fail_memory(c->diag);
    mgx_arena_init(&strings);
    mgx_module_number(m);
    mgx_mark_constants(m); // once more: the rules before made new ones
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next)
        state_of(&f, ins)->foldable = can_fold(&f, ins);
    for (struct mgx_ins *ins = m->last; ins; ins = ins->prev)
        judge(&f, ins);
    const enum mgx_status status = fold_all(&f);
    for (int i = 0; i < count; i++)
        if (f.state[i].value)
            mgx_tensor_release(f.state[i].value);
    mgx_arena_fini(&strings);
    return status;
}

const struct mgx_pass mgx_pass_propagate_constant = {
    .name = "propagate_constant",
    .meaning = "evaluates what depends on literals only",
    .module = run,
};
