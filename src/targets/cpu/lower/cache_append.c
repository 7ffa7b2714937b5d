// SPDX-License-Identifier: MIT
// cache_append where the caches lie, as far as that goes.
//
//     past grows, all entries full      its lines are continued (plan/blocks.h): new rows alone
//     past has room, and is as the      the result is past with the new rows in it: new rows alone
//       last step left it
//     past has room, and the caller     the same
//       wants the result over it
//     anything else                     a new cache: rows of past, new rows, zeros
//
// What a step writes into a cache with room lies behind the tokens of whoever has an earlier one,
// and two steps from the same cache do not both get it: the block's mark says which tokens are in
// it.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "op/rule/cache.h"
#include "op/rule/rule.h"
#include "plan/blocks.h"
#include "targets/cpu/lower/lower.h"

enum { NOW, ENDS, TOTAL, PAST, SMALL = 4096 };

// Bytes from one entry, head and row to the next.
struct lines {
    char *data;
    int64_t entry, head, row, rows;
};

struct append {
    int64_t batch, heads, tokens, keys, room;
    size_t row;              // bytes
    struct lines x, past, y; // past.data NULL: none
    const int64_t *ends;
};

static bool rows_are_whole(const struct mgx_shape *s)
{
    return s->strides[3] == 1 || s->lens[3] <= 1;
}

static struct lines lines_of(const struct mgx_shape *s, void *data)
{
    const int64_t size = (int64_t)mgx_type_size(s->type);
    return (struct lines){data, s->strides[0] * size, s->strides[1] * size, s->strides[2] * size,
                          s->lens[2]};
}

static struct append append_of(const struct mgx_shape *now, const struct mgx_shape *past,
                               const struct mgx_shape *out)
{
    return (struct append){.batch = out->lens[0],
                           .heads = out->lens[1],
                           .tokens = now->lens[2],
                           .keys = out->lens[2],
                           .room = past ? past->lens[2] : 0,
                           .row = (size_t)out->lens[3] * mgx_type_size(out->type)};
}

// --- rows ---

static char *row_of(const struct lines *l, int64_t b, int64_t h, int64_t i)
{
    return l->data + b * l->entry + h * l->head + i * l->row;
}

// `count` rows of one head, from the front of one to row `at` of the other.
static void copy_rows(const struct append *a, const struct lines *from, int64_t b, int64_t h,
                      int64_t at, int64_t count)
{
    if (count <= 0 || !a->row)
        return;
    if (from->row == (int64_t)a->row && a->y.row == (int64_t)a->row) {
        memcpy(row_of(&a->y, b, h, at), row_of(from, b, h, 0), a->row * (size_t)count);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        memcpy(row_of(&a->y, b, h, at + i), row_of(from, b, h, i), a->row);
}

static void clear_rows(const struct append *a, int64_t b, int64_t h, int64_t at)
{
    for (; at < a->keys; at++)
        memset(row_of(&a->y, b, h, at), 0, a->row);
}

static void put_new(const struct append *a, int64_t b, int64_t h)
{
    const int64_t before = mgx_cache_before(a->ends[b], a->tokens);
    copy_rows(a, &a->x, b, h, before, mgx_min_i64(a->tokens, a->keys - before));
}

static void put_all(const struct append *a, int64_t b, int64_t h)
{
    const int64_t before = mgx_cache_before(a->ends[b], a->tokens);
    if (a->past.data)
        copy_rows(a, &a->past, b, h, 0, mgx_min_i64(before, a->room));
    // What past does not have of them.
    for (int64_t i = a->past.data ? a->room : 0; i < mgx_min_i64(before, a->keys); i++)
        memset(row_of(&a->y, b, h, i), 0, a->row);
    put_new(a, b, h);
    clear_rows(a, b, h, mgx_min_i64(before + a->tokens, a->keys));
}

static void put(const struct append *a, void (*each)(const struct append *, int64_t, int64_t))
{
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            each(a, b, h);
}

// --- where sizes are known ---

struct planned {
    struct append a;
    bool wide; // ends are int64
};

static bool suits(struct mgx_plan_offer *c)
{
    const struct mgx_shape *ends = &c->in[ENDS];
    if (!mgx_type_is_number(c->out->type) || (ends->type != MGX_INT64 && ends->type != MGX_INT32) ||
        !mgx_shape_is_static(c->out) || !rows_are_whole(c->out))
        return mgx_plan_unfit(c, "ends of another type, or rows of the result in pieces");
    for (int i = 0; i < c->in_count; i++)
        if (i != TOTAL && (i == ENDS ? !mgx_shape_is_standard(ends) : !rows_are_whole(&c->in[i])))
            return mgx_plan_wish(c, i, MGX_PLAN_ROW_MAJOR, "rows are in pieces");
    return true;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    if (c->ins->op != &mgx_op_cache_append || !suits(c))
        return mgx_plan_refuse(c);
    struct planned *p = MGX_NEW(c->arena, struct planned);
    if (!p)
        return mgx_plan_no_memory(c);
    const struct mgx_shape *past = c->in_count > PAST ? &c->in[PAST] : NULL;
    p->a = append_of(&c->in[NOW], past, c->out);
    p->a.x = lines_of(&c->in[NOW], NULL);
    p->a.y = lines_of(c->out, NULL);
    if (past)
        p->a.past = lines_of(past, NULL);
    p->wide = c->in[ENDS].type == MGX_INT64;
    c->workspace = mgx_align64((size_t)p->a.batch * sizeof(int64_t));
    c->skip_in[TOTAL] = true; // the lengths say it
    c->state = p;
    return MGX_PLAN_TAKEN;
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    (void)diag;
    const struct planned *p = step->state;
    struct append a = p->a;
    int64_t *ends = args->workspace;
    for (int64_t b = 0; b < a.batch; b++)
        ends[b] = cpu_integer(args->in[ENDS], p->wide, b);
    a.ends = ends;
    a.x.data = args->in[NOW];
    a.y.data = args->out;
    a.past.data = a.past.rows ? args->in[PAST] : NULL;
    // The caller gave one buffer for both: what lies behind the tokens stays.
    put(&a, a.past.data == a.y.data && a.room == a.keys ? put_new : put_all);
    return MGX_OK;
}

CPU_KERNEL(cache_append, 102)
const struct mgx_plan_kernel cpu_kernel_cache_append = {
    .name = "cache_append", .any_address = ~0u & ~(1u << ENDS), .prepare = prepare, .run = run};

// --- where they come with the run ---

// What is in a cache with room, as a mark.
static uint64_t mark_of(const struct mgx_compute_call *c, const struct append *a, int64_t more)
{
    uint64_t mark = mgx_cache_mark(c->out_shape->lens);
    for (int64_t b = 0; b < a->batch; b++)
        mark = mgx_cache_mark_entry(mark, mgx_cache_before(a->ends[b], a->tokens) + more);
    return mark;
}

// Do all entries have as many tokens as past has rows?
static bool is_full(const struct append *a)
{
    for (int64_t b = 0; b < a->batch; b++)
        if (mgx_cache_before(a->ends[b], a->tokens) != a->room)
            return false;
    return true;
}

// Past with the new rows, which are the caller's to fill.
static bool extend(struct mgx_compute_call *c, const struct append *a)
{
    const struct mgx_tensor *past = c->in_count > PAST ? c->in[PAST] : NULL;
    if (!past || !a->room)
        return false;
    if (a->keys == a->room) {
        if (!mgx_shape_is_standard(&past->shape) ||
            !mgx_plan_block_advance(past, mark_of(c, a, 0), mark_of(c, a, a->tokens)))
            return false;
        *c->out = mgx_tensor_share(past);
        return true;
    }
    if (a->keys != a->room + a->tokens || !is_full(a) || !mgx_plan_block_extend(past, 2, a->tokens))
        return false;
    *c->out = mgx_tensor_share(past);
    c->out->shape.lens[2] = a->keys;
    return true;
}

// Memory of its own: marked where it has room, else with room behind its lines.
static enum mgx_status make(struct mgx_plan_blocks *blocks, struct mgx_compute_call *c,
                            const struct append *a)
{
    const struct mgx_shape *out = c->out_shape;
    if (!blocks || mgx_shape_bytes(out) < SMALL)
        return mgx_eval_create(c, out);
    TRY(mgx_eval_count(c, mgx_shape_bytes(out)));
    if (a->keys == a->room) {
        TRY(mgx_plan_block_tensor(blocks, out, c->out, c->diag));
        mgx_plan_block_mark(c->out, mark_of(c, a, a->tokens));
        return MGX_OK;
    }
    const int64_t row = (int64_t)mgx_shape_bytes(out) / a->keys; // of all lines
    return mgx_plan_block_growing(
        blocks, out, 2, mgx_max_i64(2 * a->keys, MGX_PLAN_BLOCK_BYTES / row), c->out, c->diag);
}

static bool suits_late(const struct mgx_compute_call *c)
{
    if (!mgx_type_is_number(c->out_shape->type) || !mgx_shape_is_static(c->out_shape) ||
        !mgx_shape_is_standard(c->out_shape) || !mgx_shape_elements(c->out_shape))
        return false;
    for (int i = 0; i < c->in_count; i++)
        if (i != ENDS && i != TOTAL && !rows_are_whole(&c->in[i]->shape))
            return false;
    return true;
}

// Where the caller wants it. *over: that is past, where one buffer is both.
static bool take_wanted(struct mgx_compute_call *c, const struct append *a, bool *over)
{
    const struct mgx_tensor *past = c->in_count > PAST ? c->in[PAST] : NULL;
    void *at = mgx_eval_wanted(c);
    *over = past && at == past->data && a->keys == a->room &&
            mgx_shape_equal(&past->shape, c->out_shape);
    if (at)
        *c->out = mgx_tensor_borrow(c->out_shape, at);
    return at != NULL;
}

enum mgx_status cpu_cache_append(struct mgx_plan_blocks *blocks, struct mgx_compute_call *c,
                                 bool *done)
{
    const struct mgx_tensor *past = c->in_count > PAST ? c->in[PAST] : NULL;
    if (!suits_late(c))
        return MGX_OK;
    struct append a = append_of(&c->in[NOW]->shape, past ? &past->shape : NULL, c->out_shape);
    if (!(a.ends = mgx_scratch_ints(c, c->in[ENDS])))
        return mgx_fail_memory(c->diag);
    bool extended;
    if (!take_wanted(c, &a, &extended) && !(extended = extend(c, &a)))
        TRY(make(blocks, c, &a));
    a.x = lines_of(&c->in[NOW]->shape, c->in[NOW]->data);
    a.y = lines_of(&c->out->shape, c->out->data);
    if (past && a.room)
        a.past = lines_of(&past->shape, past->data);
    put(&a, extended ? put_new : put_all);
    *done = true;
    return MGX_OK;
}
