// SPDX-License-Identifier: MIT
// Inputs of a node, and constants among them.
//
// A rule that needs a value (axes, sizes, a scalar bound) asks for it here. Instructions whose
// inputs are all literals are evaluated by the reference, each at most once; "not a constant" is
// remembered as well, so all questions of an import together cost O(instructions).
//
// Holds: results are bounded one by one and together, inputs too, and the clock is looked at after
// each, so that a small model cannot make a large import. What is above a bound simply is not
// constant. Chains of any length are walked with a stack of our own.
#include <stdlib.h>
#include <string.h>

#include "onnx/graph.h"

// One folded value, or all inputs of one evaluation, is at most this large: shapes, scales and
// tables are, weights are left to the passes.
#define FOLD_BYTES ((size_t)64 << 20)

// --- strings of folded values ---

struct mgx_onnx_strings {
    struct mgx_storage storage;
    struct mgx_arena arena;
};

static void release_strings(struct mgx_storage *storage)
{
    struct mgx_onnx_strings *s = (struct mgx_onnx_strings *)storage;
    mgx_arena_fini(&s->arena);
    free(s);
}

static bool need_strings(struct mgx_onnx_import *import)
{
    if (import->strings)
        return true;
    struct mgx_onnx_strings *s = calloc(1, sizeof *s);
    if (!s)
        return false;
    atomic_init(&s->storage.refs, 1);
    s->storage.release = release_strings;
    mgx_arena_init(&s->arena);
    import->strings = s;
    return true;
}

void mgx_onnx_folded_fini(struct mgx_onnx_import *import)
{
    for (uint32_t i = 0; i < import->folded.count; i++)
        if (import->folded.entries[i].value)
            mgx_tensor_release(import->folded.entries[i].value);
    mgx_map_fini(&import->folded);
    if (!import->strings)
        return;
    if (import->strings->arena.bytes && import->program) // a literal may show them
        mgx_program_pin(import->program, &import->strings->storage);
    mgx_storage_release(&import->strings->storage);
}

// --- one evaluation ---

static const struct mgx_tensor *value_of(const struct mgx_onnx_import *import,
                                         const struct mgx_ins *ins)
{
    return ins->literal ? ins->literal : mgx_map_find_pointer(&import->folded, ins);
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
static bool evaluate(struct mgx_onnx_import *import, const struct mgx_ins *ins,
                     struct mgx_tensor *out)
{
    const size_t left = import->fold_limit - import->folded_bytes;
    const bool known = mgx_shape_is_static(&ins->shape) && ins->shape.type != MGX_SEQUENCE &&
                       ins->shape.type != MGX_TUPLE;
    if (!left || (known && mgx_shape_bytes(&ins->shape) > (left < FOLD_BYTES ? left : FOLD_BYTES)))
        return false;
    const struct mgx_arena_mark mark = mgx_arena_mark(&import->scratch);
    const struct mgx_tensor **in =
        MGX_NEW_ARRAY(&import->scratch, const struct mgx_tensor *, ins->in_count);
    size_t bytes = 0;
    for (int i = 0; in && i < ins->in_count; i++) {
        in[i] = value_of(import, ins->in[i]);
        bytes += bytes_of(in[i]);
    }
    struct mgx_diag diag;
    mgx_diag_clear(&diag);
    enum mgx_status status = MGX_LIMIT;
    if (!in || !need_strings(import)) {
        status = mgx_fail_memory(&diag);
    } else if (bytes <= FOLD_BYTES) {
        struct mgx_eval e = {.strings = &import->strings->arena,
                             .limit_bytes = left < FOLD_BYTES ? left : FOLD_BYTES};
        status = mgx_eval_op(&e, ins->op, ins->attr, in, ins->in_count, NULL, 0, &ins->shape, out,
                             &diag);
    }
    mgx_arena_rewind(&import->scratch, mark);
    if (mgx_status_is_final(status))
        mgx_fail(import->diag, status, "%s", diag.text);
    return status == MGX_OK;
}

// Remembers what became of an instruction.
static void conclude(struct mgx_onnx_import *import, const struct mgx_ins *ins, bool constant)
{
    struct mgx_tensor *kept = NULL;
    struct mgx_tensor t;
    if (constant && evaluate(import, ins, &t)) {
        kept = MGX_NEW(&import->arena, struct mgx_tensor);
        import->folded_bytes += bytes_of(&t);
        if (import->folded_bytes > import->fold_limit)
            import->folded_bytes = import->fold_limit;
        if (kept)
            *kept = t;
        else
            mgx_tensor_release(&t);
        (void)!mgx_onnx_check_time(import); // recorded; the walk stops after this node
    }
    if (!mgx_map_put_pointer(&import->folded, ins, kept)) {
        if (kept)
            mgx_tensor_release(kept);
        mgx_fail_memory(import->diag);
    }
}

// --- the walk over inputs ---

static bool is_decided(const struct mgx_onnx_import *import, const struct mgx_ins *ins)
{
    return ins->literal || mgx_map_find_entry(&import->folded, (const char *)ins, SIZE_MAX);
}

struct frame {
    const struct mgx_ins *ins;
    int next;
};

struct stack {
    MGX_ARRAY(struct frame);
};

static bool push(struct mgx_onnx_import *import, struct stack *s, const struct mgx_ins *ins)
{
    if (MGX_PUSH(s, NULL, (struct frame){ins, 0}))
        return true;
    mgx_fail_memory(import->diag);
    return false;
}

// One step for the instruction on top: another input first, or its own end.
static bool step(struct mgx_onnx_import *import, struct stack *s)
{
    struct frame *top = &s->v[s->count - 1];
    const struct mgx_ins *ins = top->ins;
    bool constant = may_fold(ins);
    for (; constant && top->next < ins->in_count; top->next++) {
        const struct mgx_ins *in = ins->in[top->next];
        if (!is_decided(import, in))
            return push(import, s, in);
        constant = value_of(import, in) != NULL;
    }
    s->count--;
    conclude(import, ins, constant);
    return import->diag->status == MGX_OK;
}

static const struct mgx_tensor *fold(struct mgx_onnx_import *import, const struct mgx_ins *ins)
{
    struct stack s = {0};
    bool ok = is_decided(import, ins) || push(import, &s, ins);
    while (ok && s.count)
        ok = step(import, &s);
    free(s.v);
    return ok ? value_of(import, ins) : NULL;
}

// --- for rules ---

struct mgx_ins *mgx_onnx_in(const struct mgx_onnx_node *n, int i)
{
    return i >= 0 && i < n->in_count ? n->in[i] : NULL;
}

enum mgx_status mgx_onnx_need(struct mgx_onnx_node *n, int min_in, int max_in)
{
    int count = n->in_count;
    while (count > min_in && !n->in[count - 1])
        count--; // absent ones at the end are as good as none
    if (max_in < 0 && count < min_in)
        return mgx_fail(n->diag, MGX_INVALID, "takes %d inputs or more, given %d", min_in, count);
    if (min_in == max_in && count != min_in)
        return mgx_fail(n->diag, MGX_INVALID, "takes %d input%s, given %d", min_in,
                        min_in == 1 ? "" : "s", count);
    if (count < min_in || (max_in >= 0 && count > max_in))
        return mgx_fail(n->diag, MGX_INVALID, "takes %d to %d inputs, given %d", min_in, max_in,
                        count);
    for (int i = 0; i < min_in; i++)
        if (!n->in[i])
            return mgx_fail(n->diag, MGX_INVALID, "required input %d is absent", i);
    return MGX_OK;
}

enum mgx_status mgx_onnx_need_floats(struct mgx_onnx_node *n, int count)
{
    for (int i = 0; i < count && i < n->in_count; i++)
        if (n->in[i] && !mgx_type_is_float(n->in[i]->shape.type))
            return mgx_onnx_invalid(n, "input %d is of type %s, not of floats", i,
                                    mgx_type_name(n->in[i]->shape.type));
    return MGX_OK;
}

enum mgx_status mgx_onnx_need_all(struct mgx_onnx_node *n)
{
    return mgx_onnx_need(n, n->in_count ? n->in_count : 1, -1);
}

const struct mgx_tensor *mgx_onnx_constant(const struct mgx_onnx_node *n, int i)
{
    const struct mgx_ins *ins = mgx_onnx_in(n, i);
    return ins ? fold(n->graph->import, ins) : NULL;
}

bool mgx_onnx_constant_ints(const struct mgx_onnx_node *n, int i, struct mgx_ints *out)
{
    enum { MANY = 1 << 24 };
    const struct mgx_tensor *t = mgx_onnx_constant(n, i);
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

enum mgx_status mgx_onnx_ints_or_input(struct mgx_onnx_node *n, const char *name, int i,
                                       bool *given, bool *known, struct mgx_ints *out)
{
    *out = (struct mgx_ints){0};
    *given = *known = true;
    if (mgx_onnx_has(n, name)) {
        *out = mgx_onnx_ints(n, name);
        return n->diag->status;
    }
    if (!mgx_onnx_in(n, i)) {
        *given = false;
        return MGX_OK;
    }
    *known = mgx_onnx_constant_ints(n, i, out);
    return n->diag->status;
}

bool mgx_onnx_is_static(const struct mgx_ins *ins)
{
    return mgx_shape_is_static(&ins->shape) && ins->shape.type != MGX_SEQUENCE;
}

int mgx_onnx_rank(const struct mgx_ins *ins)
{
    return ins->shape.unranked ? -1 : ins->shape.rank;
}

// Both return the first failure: an attribute that could not be read looks like a wrong one.
enum mgx_status mgx_onnx_unsupported(struct mgx_onnx_node *n, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mgx_vfail(n->diag, MGX_UNSUPPORTED, fmt, args);
    va_end(args);
    return n->diag->status;
}

enum mgx_status mgx_onnx_invalid(struct mgx_onnx_node *n, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mgx_vfail(n->diag, MGX_INVALID, fmt, args);
    va_end(args);
    return n->diag->status;
}
