// SPDX-License-Identifier: MIT
// Constants of an import; see fold.h.
//
// Holds: results are bounded one by one and together, inputs too, and the clock is looked at after
// each, so that a small model cannot make a large import. What is above a bound simply is not
// constant. Chains of any length are walked with a stack of our own.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "import/node.h"
#include "op/eval/eval.h"

// One folded value, or all inputs of one evaluation, is at most this large: shapes, scales and
// tables are, weights are left to the passes.
#define FOLD_BYTES ((size_t)64 << 20)
#define DEFAULT_BYTES ((size_t)256 << 20)
enum { DEFAULT_SECONDS = 60 };

// --- strings of folded values ---

struct mgx_fold_strings {
    struct mgx_storage storage;
    struct mgx_arena arena;
};

static void release_strings(struct mgx_storage *storage)
{
    struct mgx_fold_strings *s = (struct mgx_fold_strings *)storage;
    mgx_arena_fini(&s->arena);
    free(s);
}

static bool need_strings(struct mgx_fold *fold)
{
    assert(fold->limit);
    if (fold->strings)
        return true;
    struct mgx_fold_strings *s = calloc(1, sizeof *s);
    if (!s)
        return false;
    atomic_init(&s->storage.refs, 1);
    s->storage.release = release_strings;
    mgx_arena_init(&s->arena);
    fold->strings = s;
    return true;
}

// --- begin, budget, end ---

void mgx_fold_init(struct mgx_fold *fold, size_t limit_bytes, double limit_seconds)
{
    *fold = (struct mgx_fold){.limit = limit_bytes ? limit_bytes : DEFAULT_BYTES,
                              .start = mgx_clock_seconds(),
                              .seconds = limit_seconds > 0 ? limit_seconds : DEFAULT_SECONDS};
    mgx_arena_init(&fold->arena);
}

void mgx_fold_fini(struct mgx_fold *fold, struct mgx_program *program)
{
    assert(fold->bytes <= fold->limit);
    for (uint32_t i = 0; i < fold->values.count; i++)
        if (fold->values.entries[i].value)
            mgx_tensor_release(fold->values.entries[i].value);
    mgx_map_fini(&fold->values);
    mgx_arena_fini(&fold->arena);
    if (!fold->strings)
        return;
    if (fold->strings->arena.bytes && program) // a literal may show them
        mgx_program_pin(program, &fold->strings->storage);
    mgx_storage_release(&fold->strings->storage);
}

enum mgx_status mgx_fold_spend(struct mgx_fold *fold, size_t bytes, const char *what,
                               struct mgx_diag *diag)
{
    if (bytes > fold->limit || fold->bytes > fold->limit - bytes)
        return mgx_fail(diag, MGX_LIMIT,
                        "%s of %zu bytes after %zu is above the limit of %zu bytes", what, bytes,
                        fold->bytes, fold->limit);
    fold->bytes += bytes;
    return MGX_OK;
}

enum mgx_status mgx_fold_check_time(const struct mgx_fold *fold, struct mgx_diag *diag)
{
    TRY(mgx_cancel_check(diag));
    if (mgx_clock_seconds() - fold->start > fold->seconds)
        return mgx_fail(diag, MGX_LIMIT, "import takes longer than %g seconds", fold->seconds);
    return MGX_OK;
}

// --- one evaluation ---

static const struct mgx_tensor *value_of(const struct mgx_fold *fold, const struct mgx_ins *ins)
{
    return ins->literal ? ins->literal : mgx_map_find_pointer(&fold->values, ins);
}

static bool may_fold(const struct mgx_ins *ins)
{
    return !(ins->op->flags & (MGX_OP_BUILTIN | MGX_OP_IMPURE | MGX_OP_EFFECT)) &&
           ins->op->compute && !ins->mod_count;
}

static size_t bytes_of(const struct mgx_tensor *t)
{
    size_t bytes = t->storage || t->data ? t->sub ? 0 : mgx_shape_bytes(&t->shape) : 0;
    for (int i = 0; i < t->sub_count; i++)
        bytes += bytes_of(&t->sub[i]);
    return bytes;
}

// Evaluates; false when it cannot be or should not be done. Only a lack of memory is a failure.
static bool evaluate(const struct mgx_node *n, const struct mgx_ins *ins, struct mgx_tensor *out)
{
    struct mgx_fold *fold = n->fold;
    const size_t left = fold->limit - fold->bytes;
    const bool known = mgx_shape_is_static(&ins->shape) && ins->shape.type != MGX_SEQUENCE &&
                       ins->shape.type != MGX_TUPLE;
    if (!left || (known && mgx_shape_bytes(&ins->shape) > (left < FOLD_BYTES ? left : FOLD_BYTES)))
        return false;
    const struct mgx_arena_mark mark = mgx_arena_mark(n->scratch);
    const struct mgx_tensor **in =
        MGX_NEW_ARRAY(n->scratch, const struct mgx_tensor *, ins->in_count);
    size_t bytes = 0;
    for (int i = 0; in && i < ins->in_count; i++) {
        in[i] = value_of(n->fold, ins->in[i]);
        bytes += bytes_of(in[i]);
    }
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    enum mgx_status status = MGX_LIMIT;
    if (!in || !need_strings(fold)) {
        status = mgx_fail_memory(&diag);
    } else if (bytes <= FOLD_BYTES) {
        struct mgx_eval e = {.strings = &fold->strings->arena,
                             .limit_bytes = left < FOLD_BYTES ? left : FOLD_BYTES};
        status = mgx_eval_op(&e, ins->op, ins->attr, in, ins->in_count, NULL, 0, &ins->shape, out,
                             &diag);
    }
    mgx_arena_rewind(n->scratch, mark);
    if (mgx_status_is_final(status))
        mgx_fail(n->diag, status, "%s", diag.text);
    return status == MGX_OK;
}

// Remembers what became of an instruction.
static void conclude(const struct mgx_node *n, const struct mgx_ins *ins, bool constant)
{
    assert(!ins->literal); // a literal is its own value
    struct mgx_fold *fold = n->fold;
    struct mgx_tensor *kept = NULL;
    struct mgx_tensor t;
    if (constant && evaluate(n, ins, &t)) {
        kept = MGX_NEW(&fold->arena, struct mgx_tensor);
        fold->bytes += bytes_of(&t);
        if (fold->bytes > fold->limit)
            fold->bytes = fold->limit;
        if (kept)
            *kept = t;
        else
            mgx_tensor_release(&t);
        (void)!mgx_fold_check_time(fold, n->diag); // recorded; the walk stops after this node
    }
    if (!mgx_map_put_pointer(&fold->values, ins, kept)) {
        if (kept)
            mgx_tensor_release(kept);
        mgx_fail_memory(n->diag);
    }
}

// --- the walk over inputs ---

static bool is_decided(const struct mgx_fold *fold, const struct mgx_ins *ins)
{
    return ins->literal || mgx_map_find_entry(&fold->values, (const char *)ins, SIZE_MAX);
}

struct frame {
    const struct mgx_ins *ins;
    int next;
};

struct stack {
    MGX_ARRAY(struct frame);
};

static bool push(const struct mgx_node *n, struct stack *s, const struct mgx_ins *ins)
{
    assert(ins && !is_decided(n->fold, ins));
    if (MGX_PUSH(s, NULL, (struct frame){ins, 0}))
        return true;
    mgx_fail_memory(n->diag);
    return false;
}

// One step for the instruction on top: another input first, or its own end.
static bool step(const struct mgx_node *n, struct stack *s)
{
    struct frame *top = &s->v[s->count - 1];
    const struct mgx_ins *ins = top->ins;
    assert(top->next >= 0 && top->next <= ins->in_count);
    bool constant = may_fold(ins);
    for (; constant && top->next < ins->in_count; top->next++) {
        const struct mgx_ins *in = ins->in[top->next];
        if (!is_decided(n->fold, in))
            return push(n, s, in);
        constant = value_of(n->fold, in) != NULL;
    }
    s->count--;
    conclude(n, ins, constant);
    return n->diag->status == MGX_OK;
}

static const struct mgx_tensor *fold_value(const struct mgx_node *n, const struct mgx_ins *ins)
{
    struct stack s = {0};
    bool ok = is_decided(n->fold, ins) || push(n, &s, ins);
    while (ok && s.count)
        ok = step(n, &s);
    free(s.v);
    return ok ? value_of(n->fold, ins) : NULL;
}

// --- for rules ---

const struct mgx_tensor *mgx_node_constant(const struct mgx_node *n, int i)
{
    const struct mgx_ins *ins = mgx_node_in(n, i);
    const struct mgx_tensor *value = ins ? fold_value(n, ins) : NULL;
    if (ins && !value && n->asked && i < 32)
        *n->asked |= UINT32_C(1) << i;
    return value;
}

void mgx_node_ask(const struct mgx_node *n, int first, int count)
{
    for (int i = first; i < first + count; i++)
        (void)!mgx_node_constant(n, i);
}

bool mgx_node_constant_ints(const struct mgx_node *n, int i, struct mgx_ints *out)
{
    assert(out);
    enum { MANY = 1 << 24 };
    const struct mgx_tensor *t = mgx_node_constant(n, i);
    if (!t || !(mgx_type_is_integral(t->shape.type) || t->shape.type == MGX_BOOL))
        return false;
    const int64_t count = mgx_shape_elements(&t->shape);
    if (count > MANY)
        return false;
    int64_t *v = MGX_NEW_ARRAY(n->scratch, int64_t, count);
    if (!v) {
        mgx_fail_memory(n->diag);
        return false;
    }
    mgx_tensor_to_ints(t, v);
    *out = (struct mgx_ints){v, (int)count};
    return true;
}
