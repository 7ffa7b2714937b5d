// SPDX-License-Identifier: MIT
// Rotations of heads by positions that are known, written out by exporters, become the operator
// again.
//
//     x cos# + turned(x) sin#      =>  rotary_embedding(x, cos, sin, ends)
//
//     turned(x): concat(-x[.., half..], x[.., ..half])                        halves, or
//                reshape(concat(-x[.., 1::2], x[.., ::2], on an axis more))   neighbours
//
// Written out that is five steps and more that each read or write all heads; the operator is
// one. Which places of x are turned by each other is not matched form by form, since views move
// between these steps: places of the result are followed up to the values that they are made of.
// (find_rotary reads halves by tables that the run computes, before attention to caches is
// looked for; this one what is left when conversions are gone.)
//
// Tokens in front that are not turned, as a class's is, and lie in front of the others where
// those come from, are turned by nothing along with them, instead of being put in front
// afterwards:
//
//     concat(x, rotary_embedding(y, cos, sin, ends))   =>  rotary_embedding(xy, cos, sin, ends)
//
// (an infinity there makes NaN of what it is paired with).
//
// Holds: heads lie along axis 1 or 2 and tokens along the other; cos and sin are constants that
// vary along tokens and within a head, and have one value for both places of a pair. Every step
// that is followed takes each axis to one axis (a reshape may part the last one), and one concat
// is followed, of the last axis. So places that agree along every axis, all of a head at each,
// agree everywhere. Cost: a head times the sum of the other lengths, times the steps in between.
#include <string.h>

#include "base/size.h"
#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"
#include "pass/engine/view.h"

enum { RANK = 4, BATCH = 0, SIZE = 3, MOST_SIZE = 512, CHAIN = 16 };

// --- places ---

struct place {
    const struct mgx_ins *ins;
    int64_t at[MGX_MAX_RANK];
    bool negative;
    int concats;      // that may still be followed
    unsigned rounded; // to which types it is on the way, a bit each
};

// Do lengths other than 1 stay, but for a last axis that is parted in two or made of two?
static bool keeps_axes(const struct mgx_shape *a, const struct mgx_shape *b)
{
    int i, k;
    mgx_shapes_agree(a, b, &i, &k);
    if (i == a->rank || k == b->rank)
        return i == a->rank && k == b->rank;
    return i >= a->rank - 2 && k >= b->rank - 2 &&
           mgx_product(a->lens + i, a->rank - i) == mgx_product(b->lens + k, b->rank - k);
}

static void follow_reshape(struct place *p, const struct mgx_shape *from,
                           const struct mgx_shape *to)
{
    int64_t number = 0;
    for (int i = 0; i < from->rank; i++)
        number = number * from->lens[i] + p->at[i];
    for (int i = to->rank - 1; i >= 0; i--) {
        p->at[i] = number % to->lens[i];
        number /= to->lens[i];
    }
}

static void follow_axes(struct place *p, const char *name, int64_t by)
{
    const struct mgx_ints axes = mgx_ins_ints(p->ins, "axes"), v = mgx_ins_ints(p->ins, name);
    for (int i = 0; i < axes.count; i++) {
        int64_t *at = &p->at[mgx_wrap_axis(axes.v[i], p->ins->shape.rank)];
        *at = by ? *at * v.v[i] : *at + v.v[i];
    }
}

static void follow_transpose(struct place *p)
{
    const struct mgx_ints permutation = mgx_ins_ints(p->ins, "permutation");
    int64_t at[MGX_MAX_RANK];
    for (int i = 0; i < permutation.count; i++)
        at[permutation.v[i]] = p->at[i];
    memcpy(p->at, at, (size_t)permutation.count * sizeof *at);
}

static void follow_broadcast(struct place *p, const struct mgx_spread *s)
{
    int64_t at[MGX_MAX_RANK] = {0};
    for (int i = 0; i < p->ins->shape.rank; i++)
        if (s->axis[i] >= 0 && s->core->shape.lens[s->axis[i]] > 1)
            at[s->axis[i]] = p->at[i];
    memcpy(p->at, at, sizeof at);
    p->ins = s->core;
}

// Into the operand of the last axis's concat that has it.
static bool follow_concat(struct place *p)
{
    const int axis = p->ins->shape.rank - 1;
    if (p->concats == 0 || mgx_wrap_axis(mgx_ins_int(p->ins, "axis"), axis + 1) != axis)
        return false;
    int i = 0;
    for (; p->at[axis] >= p->ins->in[i]->shape.lens[axis]; i++)
        p->at[axis] -= p->ins->in[i]->shape.lens[axis];
    p->concats--;
    p->ins = p->ins->in[i];
    return true;
}

// A value that was rounded to a type stays what it is when it is rounded there again.
static void follow_convert(struct place *p)
{
    const enum mgx_type from = p->ins->in[0]->shape.type, to = p->ins->shape.type;
    if (from != to && mgx_type_size(to) <= mgx_type_size(from))
        p->rounded |= 1u << to;
}

static bool is_plain(const struct mgx_ins *ins)
{
    return ins->in_count == 1 && mgx_shape_is_static(&ins->in[0]->shape);
}

// One instruction further up; false: that is as far as it goes.
static bool follow(struct place *p)
{
    const struct mgx_ins *ins = p->ins;
    struct mgx_spread spread;
    if (ins->op == &mgx_op_concat)
        return follow_concat(p);
    if (!is_plain(ins))
        return false;
    if (mgx_spread_of((struct mgx_ins *)ins, &spread)) {
        follow_broadcast(p, &spread);
        return true;
    }
    if (ins->op == &mgx_op_slice)
        follow_axes(p, "starts", 0);
    else if (ins->op == &mgx_op_step)
        follow_axes(p, "steps", 1);
    else if (ins->op == &mgx_op_transpose)
        follow_transpose(p);
    else if (ins->op == &mgx_op_neg)
        p->negative = !p->negative;
    else if (ins->op == &mgx_op_convert && mgx_type_is_float(ins->in[0]->shape.type))
        follow_convert(p);
    else if (mgx_is_reshaper(ins) && keeps_axes(&ins->shape, &ins->in[0]->shape))
        follow_reshape(p, &ins->shape, &ins->in[0]->shape);
    else if (ins->op != &mgx_op_contiguous && ins->op != &mgx_op_identity)
        return false;
    p->ins = ins->in[0];
    return true;
}

// Up to `end`, or, NULL, as far as it goes.
static bool follow_to(struct place *p, const struct mgx_ins *end)
{
    while (p->ins != end)
        if (!follow(p))
            return !end;
    return true;
}

static bool same_place(const struct place *a, const struct place *b)
{
    return a->ins == b->ins && a->rounded == b->rounded &&
           memcmp(a->at, b->at, (size_t)a->ins->shape.rank * sizeof *a->at) == 0;
}

// --- a rotation ---

struct head { // of one place: what it is made of, what it is turned with
    struct place x, turned;
    double cosine, sine;
};

struct rotation {
    struct mgx_ins *ins;              // the sum
    struct mgx_ins *product[2];       // x cos, turned(x) sin
    struct mgx_ins *value[2], *by[2]; // what each multiplies, and by what
    struct mgx_ins *views[CHAIN];     // between the sum and x cos
    int view_count;
    bool interleaved;
    int tokens; // axis
    struct mgx_arena *scratch;
    struct head *head;
    double *table[2]; // the constants' values
    double *turn[2];  // {tokens, size / 2}, cosines and sines; of one head more behind them
};

static int64_t half_of(const struct rotation *r)
{
    return r->ins->shape.lens[SIZE] / 2;
}

// The product behind an operand of the sum; views between them come into `views`.
static struct mgx_ins *product_behind(struct mgx_ins *ins, struct mgx_ins **views, int *count)
{
    for (*count = 0; ins->op != &mgx_op_mul; ins = ins->in[0]) {
        if (*count == CHAIN || !is_plain(ins) || !mgx_is_reshaper(ins))
            return NULL;
        views[(*count)++] = ins;
    }
    return mgx_used_once(ins) ? ins : NULL;
}

static const struct mgx_ins *source_of(const struct mgx_ins *ins)
{
    struct place p = {.ins = ins};
    follow_to(&p, NULL);
    return p.ins;
}

// A product's operand that is a literal behind views, and the other one.
static bool part_product(struct rotation *r, int i)
{
    struct mgx_ins *const *in = r->product[i]->in;
    const int constant = source_of(in[1])->literal ? 1 : 0;
    r->by[i] = in[constant];
    r->value[i] = in[1 - constant];
    return source_of(r->by[i])->literal && !source_of(r->value[i])->literal;
}

// `first`: the operand of the sum that is x cos.
static bool read_sum(struct rotation *r, int first)
{
    struct mgx_ins *other[CHAIN];
    int count;
    r->product[0] = product_behind(r->ins->in[first], r->views, &r->view_count);
    r->product[1] = product_behind(r->ins->in[1 - first], other, &count);
    return r->product[0] && r->product[1] && part_product(r, 0) && part_product(r, 1) &&
           source_of(r->value[1])->op == &mgx_op_concat;
}

static bool make_room(struct rotation *r)
{
    r->head = MGX_NEW_ARRAY(r->scratch, struct head, 2 * half_of(r));
    for (int i = 0; i < 2; i++) {
        const struct mgx_tensor *t = source_of(r->by[i])->literal;
        const int64_t turned = (r->ins->shape.lens[r->tokens] + 1) * half_of(r);
        r->table[i] = MGX_NEW_ARRAY(r->scratch, double, mgx_shape_elements(&t->shape));
        r->turn[i] = MGX_NEW_ARRAY(r->scratch, double, turned);
        if (!r->head || !r->table[i] || !r->turn[i])
            return false;
        mgx_tensor_to_doubles(t, r->table[i]);
    }
    return true;
}

// --- what it turns ---

// The source of a place of the sum through one of its products, and what that is multiplied by.
static bool find_source(const struct rotation *r, int side, const int64_t *at, struct place *value,
                        double *factor)
{
    struct place p = {.ins = r->ins->in[0]};
    memcpy(p.at, at, RANK * sizeof *at);
    if (!follow_to(&p, r->product[side])) {
        p = (struct place){.ins = r->ins->in[1]};
        memcpy(p.at, at, RANK * sizeof *at);
        if (!follow_to(&p, r->product[side]))
            return false;
    }
    *value = p;
    value->ins = r->value[side];
    value->concats = side;
    p.ins = r->by[side];
    follow_to(value, NULL);
    follow_to(&p, NULL);
    if (p.rounded)
        return false;
    int64_t number = 0;
    for (int i = 0; i < p.ins->shape.rank; i++)
        number = number * p.ins->shape.lens[i] + p.at[i];
    *factor = p.negative ? -r->table[side][number] : r->table[side][number];
    return true;
}

// Is x at this place turned by its partner's, with one cosine and sine for both?
static bool is_turned(const struct rotation *r, int64_t d)
{
    const int64_t half = half_of(r), other = r->interleaved ? d ^ 1 : (d + half) % (2 * half);
    const struct head *a = &r->head[d], *b = &r->head[other];
    return same_place(&a->turned, &b->x) && a->cosine == b->cosine && a->sine == b->sine;
}

// The head at one place of the other axes: its cosines and sines.
static bool read_head(const struct rotation *r, const int64_t *place, double *cosines,
                      double *sines)
{
    const int64_t half = half_of(r);
    int64_t at[RANK];
    memcpy(at, place, sizeof at);
    for (int64_t d = 0; d < 2 * half; d++) {
        struct head *h = &r->head[d];
        at[SIZE] = d;
        if (!find_source(r, 0, at, &h->x, &h->cosine) ||
            !find_source(r, 1, at, &h->turned, &h->sine) || h->x.negative)
            return false;
        const bool second = r->interleaved ? d & 1 : d >= half; // y cos + x sin; x cos - y sin
        h->sine *= h->turned.negative == second ? -1 : 1;
        cosines[r->interleaved ? d / 2 : d % half] = h->cosine;
        sines[r->interleaved ? d / 2 : d % half] = h->sine;
    }
    for (int64_t d = 0; d < 2 * half; d++)
        if (!is_turned(r, d))
            return false;
    return true;
}

// Along an axis that is not the tokens', heads are turned alike.
static bool is_alike(const struct rotation *r, int axis)
{
    const size_t bytes = (size_t)half_of(r) * sizeof(double);
    const int64_t last = r->ins->shape.lens[r->tokens] * half_of(r);
    int64_t at[RANK] = {0};
    for (; at[axis] < r->ins->shape.lens[axis]; at[axis]++)
        if (!read_head(r, at, r->turn[0] + last, r->turn[1] + last) ||
            memcmp(r->turn[0] + last, r->turn[0], bytes) != 0 ||
            memcmp(r->turn[1] + last, r->turn[1], bytes) != 0)
            return false;
    return true;
}

static bool is_rotation(struct rotation *r, int first, int tokens, bool interleaved)
{
    int64_t at[RANK] = {0};
    r->tokens = tokens;
    r->interleaved = interleaved;
    if (!read_sum(r, first) || !make_room(r))
        return false;
    for (int64_t *t = &at[tokens]; *t < r->ins->shape.lens[tokens]; ++*t)
        if (!read_head(r, at, r->turn[0] + *t * half_of(r), r->turn[1] + *t * half_of(r)))
            return false;
    return is_alike(r, BATCH) && is_alike(r, 3 - tokens);
}

static bool find(struct rotation *r)
{
    for (int way = 0; way < 8; way++)
        if (is_rotation(r, way & 1, way & 2 ? 1 : 2, way & 4))
            return true;
    return false;
}

// --- the operator ---

static struct mgx_ins *add_table(const struct rotation *r, const double *values)
{
    const struct mgx_shape *s = &r->ins->shape;
    const int64_t lens[] = {s->lens[r->tokens], half_of(r)};
    const struct mgx_shape shape = mgx_shape_make(s->type, 2, lens);
    struct mgx_tensor table;
    if (mgx_tensor_create(&table, &shape, &r->ins->owner->program->diag) != MGX_OK)
        return NULL;
    for (int64_t i = 0; i < lens[0] * lens[1]; i++)
        mgx_store_double(s->type, table.data, i, values[i]);
    struct mgx_ins *literal = mgx_add_literal(r->ins->owner, &table);
    mgx_tensor_release(&table);
    return literal;
}

// One for each entry of the batch: its tokens are those from the first on.
static struct mgx_ins *add_ends(const struct rotation *r)
{
    const struct mgx_shape *s = &r->ins->shape;
    int64_t *ends = MGX_NEW_ARRAY(r->scratch, int64_t, s->lens[BATCH]);
    for (int64_t i = 0; ends && i < s->lens[BATCH]; i++)
        ends[i] = s->lens[r->tokens];
    return ends ? mgx_literal_ints(r->ins->owner, ends, (int)s->lens[BATCH]) : NULL;
}

// With heads in front of tokens, or the other way about.
static struct mgx_ins *swap_axes(const struct rotation *r, struct mgx_ins *x)
{
    static const int permutation[] = {0, 2, 1, 3};
    return r->tokens == 1 && x ? mgx_emit_transpose(r->ins, x, permutation, RANK) : x;
}

static struct mgx_ins *emit(const struct rotation *r)
{
    struct mgx_ins *at = r->ins, *x = r->value[0];
    for (int i = r->view_count - 1; i >= 0 && x; i--)
        x = mgx_emit_again(at, r->views[i], &x, 1);
    x = swap_axes(r, x);
    struct mgx_ins *ends = add_ends(r), *cosines = add_table(r, r->turn[0]),
                   *sines = add_table(r, r->turn[1]);
    if (!x || !ends || !cosines || !sines)
        return NULL;
    return swap_axes(r, mgx_emit_before(at, &mgx_op_rotary_embedding,
                                        MGX_ATTRS(mgx_int("interleaved", r->interleaved)),
                                        MGX_IN(x, cosines, sines, ends)));
}

static struct mgx_ins *rotate(struct mgx_rewriter *r, struct mgx_ins *ins,
                              const struct mgx_match *m)
{
    const struct mgx_shape *s = &ins->shape;
    struct rotation rotation = {.ins = ins, .scratch = r->call->scratch};
    (void)m;
    if (s->rank != RANK || mgx_shape_elements(s) == 0 || s->lens[SIZE] % 2 != 0 ||
        s->lens[SIZE] > MOST_SIZE || s->type == MGX_DOUBLE || s->lens[BATCH] > INT32_MAX)
        return NULL;
    return find(&rotation) ? emit(&rotation) : NULL;
}

// --- tokens in front that are not turned ---

struct ahead {
    struct mgx_ins *concat, *turned, *slice;
    struct mgx_ins *views[CHAIN]; // from the operator up to the slice, without it
    int view_count;
    int axis;       // of what is sliced: the tokens'
    int64_t tokens; // in front
};

// The slice that x is of, behind views that have no lengths of their own.
static bool find_slice(struct ahead *a)
{
    struct mgx_ins *x = a->turned->in[0];
    for (; x->op != &mgx_op_slice; x = x->in[0]) {
        const bool moves =
            x->op == &mgx_op_transpose || x->op == &mgx_op_squeeze || x->op == &mgx_op_unsqueeze;
        if (!moves || !is_plain(x) || a->view_count == CHAIN)
            return false;
        a->views[a->view_count++] = x;
    }
    a->slice = x;
    return is_plain(x);
}

static bool find_at(const struct ahead *a, const struct mgx_ins *ins, const int64_t *at,
                    struct place *p)
{
    *p = (struct place){.ins = ins};
    memcpy(p->at, at, RANK * sizeof *at);
    return follow_to(p, a->slice->in[0]) && !p->negative && !p->rounded;
}

// The axis along which the second token lies behind the first one.
static bool find_axis(struct ahead *a)
{
    struct place first, second;
    if (a->turned->shape.lens[2] < 2 || !find_at(a, a->turned->in[0], (int64_t[RANK]){0}, &first) ||
        !find_at(a, a->turned->in[0], (int64_t[RANK]){0, 0, 1, 0}, &second))
        return false;
    a->axis = 0;
    while (a->axis < first.ins->shape.rank && first.at[a->axis] == second.at[a->axis])
        a->axis++;
    if (a->axis == first.ins->shape.rank)
        return false;
    first.at[a->axis]++;
    return same_place(&first, &second);
}

// Does what stands in front lie in front, along every axis?
static bool lies_ahead(const struct ahead *a)
{
    const struct mgx_ins *front = a->concat->in[0];
    for (int axis = 0; axis < RANK; axis++) {
        int64_t at[RANK] = {0};
        for (; at[axis] < front->shape.lens[axis]; at[axis]++) {
            struct place p, q;
            const int64_t first[RANK] = {at[0], at[1], 0, at[3]};
            if (!find_at(a, front, at, &p) || !find_at(a, a->turned->in[0], first, &q))
                return false;
            q.at[a->axis] += at[2] - a->tokens;
            if (!same_place(&p, &q))
                return false;
        }
    }
    return true;
}

static bool read_ahead(struct ahead *a)
{
    struct mgx_ins *const *in = a->concat->in;
    if (a->concat->in_count != 2 || a->concat->shape.rank != RANK ||
        mgx_wrap_axis(mgx_ins_int(a->concat, "axis"), RANK) != 2 ||
        in[1]->op != &mgx_op_rotary_embedding || !mgx_used_once(in[1]) ||
        !mgx_shape_is_static(&in[0]->shape) || mgx_shape_elements(&in[0]->shape) == 0)
        return false;
    double end;
    a->turned = in[1];
    a->tokens = in[0]->shape.lens[2];
    return a->turned->in[1]->literal && a->turned->in[2]->literal &&
           mgx_splat_value(a->turned->in[3], &end) && (int64_t)end == a->turned->shape.lens[2] &&
           find_slice(a) && find_axis(a) && lies_ahead(a);
}

// A table with rows in front that turn by nothing.
static struct mgx_ins *longer_table(const struct ahead *a, const struct mgx_ins *table,
                                    double value)
{
    const struct mgx_tensor *old = table->literal;
    struct mgx_shape shape = old->shape;
    struct mgx_tensor made;
    const int64_t width = shape.lens[1], before = a->tokens * width;
    shape = mgx_shape_make(shape.type, 2, (int64_t[]){shape.lens[0] + a->tokens, width});
    if (mgx_tensor_create(&made, &shape, &table->owner->program->diag) != MGX_OK)
        return NULL;
    for (int64_t i = 0; i < before; i++)
        mgx_store_double(shape.type, made.data, i, value);
    struct mgx_tensor rest =
        mgx_tensor_view(&made, &old->shape, (size_t)before * mgx_type_size(shape.type));
    mgx_tensor_copy(old, &rest);
    mgx_tensor_release(&rest);
    struct mgx_ins *literal = mgx_add_literal(table->owner, &made);
    mgx_tensor_release(&made);
    return literal;
}

// x with the tokens in front.
static struct mgx_ins *longer_slice(struct mgx_rewriter *r, const struct ahead *a)
{
    const struct mgx_ints axes = mgx_ins_ints(a->slice, "axes");
    const struct mgx_ints starts = mgx_ins_ints(a->slice, "starts");
    void *attr = mgx_edit_attr(r->call->program, a->slice);
    int64_t edited[MGX_MAX_RANK];
    for (int i = 0; i < starts.count; i++) {
        const int axis = mgx_wrap_axis(axes.v[i], a->slice->in[0]->shape.rank);
        edited[i] = starts.v[i] - (axis == a->axis ? a->tokens : 0);
    }
    if (!attr ||
        !mgx_edit_ints(r->call->program, a->slice->op, attr, "starts", edited, starts.count))
        return NULL;
    struct mgx_ins *x = mgx_emit_edited(a->concat, a->slice->op, attr, a->slice->in, 1);
    for (int i = a->view_count - 1; i >= 0 && x; i--)
        x = mgx_emit_again(a->concat, a->views[i], &x, 1);
    return x;
}

static struct mgx_ins *take_ahead(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    struct ahead a = {.concat = ins};
    (void)m;
    if (!read_ahead(&a))
        return NULL;
    const struct rotation whole = {.ins = ins, .tokens = 2, .scratch = r->call->scratch};
    struct mgx_ins *x = longer_slice(r, &a), *ends = add_ends(&whole);
    struct mgx_ins *cosines = longer_table(&a, a.turned->in[1], 1),
                   *sines = longer_table(&a, a.turned->in[2], 0);
    struct mgx_ins *in[] = {x, cosines, sines, ends};
    return x && cosines && sines && ends ? mgx_emit_again(ins, a.turned, in, 4) : NULL;
}

static const struct mgx_rule rules[] = {
    {"add(x, y) ~> rotary_embedding(x, cos, sin, ends)", MGX_IF_FLOAT | MGX_IF_STATIC,
     .rewrite = rotate},
    {"concat(x, rotary_embedding) ~> rotary_embedding", MGX_IF_FLOAT | MGX_IF_STATIC,
     .rewrite = take_ahead},
};

const struct mgx_pass mgx_pass_find_known_rotary = {
    .name = "find_known_rotary",
    .meaning = "heads turned by known positions, neighbours too, written out, become the operator",
    .rules = {rules, MGX_COUNT(rules)},
};
