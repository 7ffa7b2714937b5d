// SPDX-License-Identifier: MIT
// The rotation of heads by their tokens' positions, written out by exporters, becomes the operator.
//
//     x cos + concat(-x[h:], x[:h]) sin    =>  rotary_embedding(x, cos[:h], sin[:h], rows)
//
// cos and sin have 2 h numbers for every token, whose first half comes twice, and are repeated over
// heads; `rows` says which token of the tables a row is, and is known. Where the rest of a head is
// joined to it unchanged, as models do that turn a part of it, the operator takes the head whole.
//
// Holds: views in between are read with their algebra (engine/view.h). Runs only where it is named,
// for a target that says it has a kernel (tag "cache").
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "pass/engine/constant.h"
#include "pass/engine/emit.h"
#include "pass/engine/region.h"
#include "pass/engine/view.h"
#include "pass/pass.h"

enum { TEXT, HEAD, TOKEN, SIZE }; // axes of what is turned
enum { DEEP = 8 };

struct rotation {
    struct mgx_ins *sum;   // what the operator replaces; or `whole`, where the rest is joined to it
    struct mgx_ins *whole; // NULL: nothing is
    struct mgx_ins *from;  // of which the rows are a part
    int64_t start[4], end[4], half;
    struct mgx_ins *cosines, *sines;
    struct mgx_view rows; // of the tables, for the lengths of the sum
};

// --- parts of a value ---

// What a slice takes of what; of another instruction, all of it.
static struct mgx_ins *part_of(struct mgx_ins *ins, int64_t *start, int64_t *end)
{
    struct mgx_ins *from = ins->op == &mgx_op_slice && ins->in_count == 1 ? ins->in[0] : ins;
    if (from->shape.rank != 4 || !mgx_shape_is_static(&from->shape))
        return NULL;
    for (int d = 0; d < 4; d++) {
        start[d] = 0;
        end[d] = from->shape.lens[d];
    }
    if (from == ins)
        return from;
    const struct mgx_ints axes = mgx_ins_ints(ins, "axes"), starts = mgx_ins_ints(ins, "starts");
    for (int i = 0; i < axes.count; i++) {
        if (axes.v[i] < 0 || axes.v[i] > 3 || starts.v[i] < 0)
            return NULL;
        start[axes.v[i]] = starts.v[i];
        end[axes.v[i]] = starts.v[i] + ins->shape.lens[axes.v[i]];
    }
    return from;
}

// Does the second part follow the first one along the last axis?
static bool follows(const int64_t *start, const int64_t *end, const int64_t *next_start,
                    const int64_t *next_end)
{
    return !memcmp(start, next_start, 3 * sizeof *start) &&
           !memcmp(end, next_end, 3 * sizeof *end) && next_start[SIZE] == end[SIZE];
}

// concat(-second, first): the parts that make x.
static bool read_turned(const struct mgx_ins *turned, struct rotation *r)
{
    int64_t start[4], end[4];
    if (turned->op != &mgx_op_concat || turned->in_count != 2 || turned->shape.rank != 4 ||
        turned->in[0]->op != &mgx_op_neg || mgx_ins_int(turned, "axis") != SIZE)
        return false;
    struct mgx_ins *second = turned->in[0]->in[0];
    r->from = part_of(turned->in[1], r->start, r->end);
    if (!r->from || part_of(second, start, end) != r->from ||
        !follows(r->start, r->end, start, end))
        return false;
    r->half = r->end[SIZE] - r->start[SIZE];
    r->end[SIZE] = end[SIZE];
    return end[SIZE] - start[SIZE] == r->half;
}

static bool is_part(struct mgx_ins *x, const struct rotation *r)
{
    int64_t start[4], end[4];
    return part_of(x, start, end) == r->from && !memcmp(start, r->start, sizeof start) &&
           !memcmp(end, r->end, sizeof end);
}

static bool is_all(const struct rotation *r)
{
    for (int d = 0; d < 4; d++)
        if (r->start[d] != 0 || r->end[d] != r->from->shape.lens[d])
            return false;
    return true;
}

// Is `from` the value in other lengths, in the same order?
static bool is_reshaped(const struct mgx_ins *value, const struct mgx_ins *from)
{
    struct mgx_view got, want;
    const struct mgx_ins *step[DEEP], *at = from;
    int count = 0;
    for (; at != value && mgx_is_reshaper(at) && count < DEEP; at = at->in[0])
        step[count++] = at;
    if (at != value || !mgx_view_start(&got, &value->shape) ||
        !mgx_view_start(&want, &value->shape) ||
        !mgx_view_reshape(&want, from->shape.lens, from->shape.rank))
        return false;
    while (count)
        if (!mgx_view_apply(&got, step[--count]))
            return false;
    return mgx_view_equal(&got, &want);
}

// --- the tables ---

// cos(concat(a, a)) and the like: the axis whose first half comes twice; -1.
static int doubled_axis(const struct mgx_ins *ins)
{
    double value;
    for (int i = 0; i < DEEP; i++) {
        if (ins->op == &mgx_op_concat) {
            const int64_t axis = mgx_ins_int(ins, "axis");
            const bool twice = ins->in_count == 2 && ins->in[0] == ins->in[1];
            return !twice ? -1 : (int)(axis < 0 ? axis + ins->shape.rank : axis);
        }
        const bool scaled = ins->op == &mgx_op_mul && mgx_splat_value(ins->in[1], &value);
        if (!scaled && !(mgx_is_elementwise(ins) && ins->in_count == 1))
            return -1;
        ins = ins->in[0];
    }
    return -1;
}

// A table behind its views, which `reshaped` follow: what it is for each place of x.
static struct mgx_ins *read_table(struct mgx_ins *ins, const struct mgx_ins *reshaped,
                                  struct mgx_view *view)
{
    const struct mgx_ins *step[DEEP];
    int count = 0;
    if (reshaped)
        step[count++] = reshaped;
    for (; mgx_is_reshaper(ins) && count < DEEP; ins = ins->in[0])
        step[count++] = ins;
    if (doubled_axis(ins) < 0 || !mgx_view_start(view, &ins->shape))
        return NULL;
    while (count)
        if (!mgx_view_apply(view, step[--count]))
            return NULL;
    return view->rank == 4 ? ins : NULL;
}

// Where the tables have what is for place `at` of an axis.
static int64_t offset_along(const struct mgx_view *v, int axis, int64_t at)
{
    int64_t offset = 0;
    for (int f = v->begin[axis + 1] - 1; f >= v->begin[axis]; f--) {
        offset += at % v->factor[f].length * v->factor[f].stride;
        at /= v->factor[f].length;
    }
    return offset;
}

// The place of an offset on all axes of a table but one, counted row-major; -1 if it is not the
// first one there.
static int64_t row_of(const struct mgx_shape *table, int axis, int64_t offset)
{
    int64_t row = 0, factor = 1;
    for (int d = table->rank - 1; d >= 0; d--) {
        const int64_t at = offset % table->lens[d];
        offset /= table->lens[d];
        if (d == axis && at != 0)
            return -1;
        row += d == axis ? 0 : at * factor;
        factor *= d == axis ? 1 : table->lens[d];
    }
    return row;
}

static int64_t row_at(const struct rotation *r, int64_t text, int64_t token)
{
    const int64_t offset =
        offset_along(&r->rows, TEXT, text) + offset_along(&r->rows, TOKEN, token);
    return row_of(&r->sines->shape, doubled_axis(r->sines), offset);
}

// Heads have the same rows of the tables, and a head its elements along the doubled axis.
static bool has_rows(const struct rotation *r)
{
    const struct mgx_view *v = &r->rows;
    const int axis = doubled_axis(r->sines);
    int64_t stride = 1;
    for (int d = axis + 1; d < r->sines->shape.rank; d++)
        stride *= r->sines->shape.lens[d];
    for (int f = v->begin[HEAD]; f < v->begin[HEAD + 1]; f++)
        if (v->factor[f].stride != 0)
            return false;
    const int f = v->begin[SIZE];
    return r->sines->shape.lens[axis] == 2 * r->half && v->lens[SIZE] == 2 * r->half &&
           v->begin[SIZE + 1] == f + 1 && v->factor[f].stride == stride &&
           doubled_axis(r->cosines) == axis && row_at(r, 0, 0) == 0 &&
           row_at(r, v->lens[TEXT] - 1, v->lens[TOKEN] - 1) >= 0;
}

// --- all of it ---

// The factors of a product, `side` first.
static bool read_product(struct mgx_ins *ins, struct mgx_ins **x, struct mgx_ins **table, int side)
{
    if (ins->op != &mgx_op_mul)
        return false;
    *x = ins->in[side];
    *table = ins->in[1 - side];
    return true;
}

static bool read_straight(struct mgx_ins *ins, struct rotation *r, struct mgx_view *view)
{
    struct mgx_ins *product = mgx_is_reshaper(ins) ? ins->in[0] : ins, *x, *table;
    const struct mgx_ins *reshaped = product == ins ? NULL : ins;
    for (int side = 0; side < 2 && read_product(product, &x, &table, side); side++) {
        const bool is = reshaped ? is_all(r) && is_reshaped(x, r->from) : is_part(x, r);
        if (is && (r->cosines = read_table(table, reshaped, view)))
            return true;
    }
    return false;
}

static bool read_sum(struct mgx_ins *sum, int side, struct rotation *r)
{
    struct mgx_ins *turned, *table;
    struct mgx_view view;
    for (int i = 0; i < 2; i++) {
        if (!read_product(sum->in[1 - side], &turned, &table, i) || !read_turned(turned, r) ||
            !(r->sines = read_table(table, NULL, &r->rows)))
            continue;
        return read_straight(sum->in[side], r, &view) && mgx_view_equal(&view, &r->rows) &&
               mgx_shape_same_lens(&r->cosines->shape, &r->sines->shape) && has_rows(r);
    }
    return false;
}

// concat(sum, rest), where that is how a head goes on.
static void read_rest(struct rotation *r)
{
    int64_t start[4], end[4];
    struct mgx_ins *user = mgx_used_once(r->sum) ? r->sum->uses->user : NULL;
    if (!user || user->op != &mgx_op_concat || user->in_count != 2 || user->in[0] != r->sum ||
        mgx_ins_int(user, "axis") != SIZE || part_of(user->in[1], start, end) != r->from ||
        !follows(r->start, r->end, start, end))
        return;
    r->whole = user;
    r->end[SIZE] = end[SIZE];
}

static bool find(struct mgx_ins *sum, struct rotation *r)
{
    if (sum->op != &mgx_op_add || sum->shape.rank != 4 || !mgx_shape_is_static(&sum->shape) ||
        mgx_shape_elements(&sum->shape) == 0)
        return false;
    for (int side = 0; side < 2; side++) {
        *r = (struct rotation){.sum = sum};
        if (read_sum(sum, side, r)) {
            read_rest(r);
            return true;
        }
    }
    return false;
}

// {rows, half}: the first half of the doubled axis, which comes last.
static struct mgx_ins *emit_table(struct mgx_ins *at, struct mgx_ins *table, int64_t half)
{
    const int axis = doubled_axis(table), rank = table->shape.rank;
    const int64_t lens[2] = {mgx_shape_elements(&table->shape) / (2 * half), half};
    int order[MGX_MAX_RANK], count = 0;
    for (int d = 0; d < rank; d++)
        if (d != axis)
            order[count++] = d;
    order[count] = axis;
    struct mgx_ins *x = mgx_emit_slice(at, table, axis, 0, half);
    return mgx_emit_reshape(at, mgx_emit_transpose(at, x, order, rank), lens, 2);
}

static struct mgx_ins *emit_rows(struct mgx_ins *at, const struct rotation *r)
{
    const int64_t lens[2] = {r->rows.lens[TEXT], r->rows.lens[TOKEN]}, count = lens[0] * lens[1];
    struct mgx_arena *arena = &at->owner->program->arena;
    int64_t *v = count <= INT32_MAX ? mgx_arena_array(arena, (size_t)count, sizeof *v) : NULL;
    for (int64_t i = 0; v && i < count; i++)
        v[i] = row_at(r, i / lens[1], i % lens[1]);
    return v ? mgx_emit_reshape(at, mgx_literal_ints(at->owner, v, (int)count), lens, 2) : NULL;
}

// The heads that are turned, whole.
static struct mgx_ins *emit_heads(struct mgx_ins *at, const struct rotation *r)
{
    int64_t axes[4], starts[4], ends[4];
    int count = 0;
    for (int d = 0; d < 4; d++)
        if (r->end[d] - r->start[d] < r->from->shape.lens[d]) {
            axes[count] = d;
            starts[count] = r->start[d];
            ends[count++] = r->end[d];
        }
    return count ? mgx_emit_before(at, &mgx_op_slice,
                                   MGX_ATTRS(mgx_ints("axes", axes, count),
                                             mgx_ints("starts", starts, count),
                                             mgx_ints("ends", ends, count)),
                                   MGX_IN(r->from))
                 : r->from;
}

static struct mgx_ins *emit(struct mgx_ins *at, const struct rotation *r)
{
    struct mgx_ins *x = emit_heads(at, r);
    struct mgx_ins *cosines = emit_table(at, r->cosines, r->half),
                   *sines = emit_table(at, r->sines, r->half), *rows = emit_rows(at, r);
    if (!x || !cosines || !sines || !rows)
        return NULL;
    return mgx_emit_before(at, &mgx_op_rotary_embedding, NULL, MGX_IN(x, cosines, sines, rows));
}

static enum mgx_status turn(struct mgx_pass_call *c, const struct rotation *r)
{
    struct mgx_ins *at = r->whole ? r->whole : r->sum, *y = emit(at, r);
    TRY(mgx_program_status(c->program, c->diag));
    if (!mgx_region_keeps(c, y, "cache"))
        return MGX_OK;
    mgx_replace_uses(at, y);
    c->changed = true;
    return MGX_OK;
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    struct rotation r;
    MGX_EACH (ins, m)
        if (find(ins, &r))
            TRY(turn(c, &r));
    return mgx_program_status(c->program, c->diag);
}

const struct mgx_pass mgx_pass_find_rotary = {
    .name = "find_rotary",
    .meaning = "heads turned by positions, written out, become the operator",
    .module = run,
    .by_size = true,
};
