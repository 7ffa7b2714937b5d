// SPDX-License-Identifier: MIT
// See spans.h. Follows the operators that importers make of what is written with shapes. Cost: some
// instructions for each number, and no more than VISITS in all, whatever a model is made of.
#include "import/spans.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "import/build.h"
#include "op/op.h"

enum { VISITS = 128 };

struct spans {
    struct mgx_dim v[MGX_MAX_RANK];
    int count;
};

static bool add(struct spans *s, struct mgx_dim d)
{
    if (s->count == MGX_MAX_RANK)
        return false;
    s->v[s->count++] = d;
    return true;
}

// --- where numbers come from ---

static bool of_literal(const struct mgx_tensor *t, struct spans *s)
{
    int64_t v[MGX_MAX_RANK];
    const int64_t count = mgx_shape_elements(&t->shape);
    if (count > MGX_MAX_RANK)
        return false;
    mgx_tensor_to_ints(t, v);
    for (int i = 0; i < count; i++)
        s->v[i] = (struct mgx_dim){.min = v[i], .max = v[i]};
    s->count = (int)count;
    return true;
}

static int clip(int64_t at, int count)
{
    return (int)mgx_min_i64(mgx_max_i64(at < 0 ? at + count : at, 0), count);
}

static bool of_lengths(const struct mgx_ins *ins, struct spans *s)
{
    const struct mgx_shape *x = &ins->in[0]->shape;
    if (x->unranked)
        return false;
    const int64_t end = mgx_ins_int(ins, "end");
    const int last = end == 0 ? x->rank : clip(end, x->rank);
    for (int i = clip(mgx_ins_int(ins, "start"), x->rank); i < last; i++)
        if (!add(s, mgx_shape_dim(x, i)))
            return false;
    return true;
}

static bool read(const struct mgx_ins *ins, int *visits, struct spans *s);

static bool of_concat(const struct mgx_ins *ins, int *visits, struct spans *s)
{
    for (int i = 0; i < ins->in_count; i++) {
        struct spans part = {.count = 0};
        if (!read(ins->in[i], visits, &part))
            return false;
        for (int k = 0; k < part.count; k++)
            if (!add(s, part.v[k]))
                return false;
    }
    return true;
}

static bool of_slice(const struct mgx_ins *ins, int *visits, struct spans *s)
{
    struct spans whole = {.count = 0};
    const struct mgx_ints starts = mgx_ins_ints(ins, "starts"), ends = mgx_ins_ints(ins, "ends");
    if (ins->in_count != 1 || starts.count != 1 || ends.count != 1 ||
        !read(ins->in[0], visits, &whole))
        return false;
    for (int i = clip(starts.v[0], whole.count); i < clip(ends.v[0], whole.count); i++)
        (void)add(s, whole.v[i]);
    return true;
}

// Numbers at known places.
static bool of_gather(const struct mgx_ins *ins, int *visits, struct spans *s)
{
    struct spans whole = {.count = 0}, at = {.count = 0};
    if (ins->in[0]->shape.rank != 1 || !ins->in[1]->literal || !read(ins->in[0], visits, &whole) ||
        !read(ins->in[1], visits, &at))
        return false;
    for (int i = 0; i < at.count; i++) {
        const int64_t k = at.v[i].min < 0 ? at.v[i].min + whole.count : at.v[i].min;
        if (k < 0 || k >= whole.count || !add(s, whole.v[k]))
            return false;
    }
    return true;
}

static struct mgx_dim sum(struct mgx_dim a, struct mgx_dim b)
{
    if (b.min == 0 && b.max == 0)
        return a;
    if (a.min == 0 && a.max == 0)
        return b;
    return (struct mgx_dim){.min = mgx_min_i64(a.min + b.min, MGX_DIM_ANY),
                            .max = mgx_min_i64(a.max + b.max, MGX_DIM_ANY)};
}

// Numbers beyond any length say nothing.
static bool is_length(struct mgx_dim d)
{
    return d.min >= 0 && d.max <= MGX_DIM_ANY;
}

static bool of_sum(const struct mgx_ins *ins, int *visits, struct spans *s)
{
    struct spans b = {.count = 0};
    if (!read(ins->in[0], visits, s) || !read(ins->in[1], visits, &b) || s->count != b.count)
        return false;
    for (int i = 0; i < s->count; i++) {
        if (!is_length(s->v[i]) || !is_length(b.v[i]))
            return false;
        s->v[i] = sum(s->v[i], b.v[i]);
    }
    return true;
}

// Axes alone change, if anything does.
static bool keeps_numbers(const struct mgx_ins *ins)
{
    const struct mgx_op *op = ins->op;
    if (!ins->in_count || !mgx_shape_is_static(&ins->in[0]->shape))
        return false;
    return op == &mgx_op_squeeze || op == &mgx_op_unsqueeze || op == &mgx_op_reshape ||
           op == &mgx_op_identity || op == &mgx_op_contiguous ||
           (op == &mgx_op_multibroadcast &&
            mgx_shape_elements(&ins->shape) == mgx_shape_elements(&ins->in[0]->shape)) ||
           (op == &mgx_op_convert && ins->shape.type == MGX_INT64 &&
            mgx_type_is_integral(ins->in[0]->shape.type));
}

static bool read(const struct mgx_ins *ins, int *visits, struct spans *s)
{
    if (!mgx_shape_is_static(&ins->shape) || !mgx_type_is_integral(ins->shape.type) ||
        --*visits < 0)
        return false;
    if (ins->literal)
        return of_literal(ins->literal, s);
    if (ins->op == &mgx_op_dimensions_of)
        return of_lengths(ins, s);
    if (keeps_numbers(ins))
        return read(ins->in[0], visits, s);
    if (ins->shape.rank > 1)
        return false;
    if (ins->op == &mgx_op_concat)
        return of_concat(ins, visits, s);
    if (ins->op == &mgx_op_gather)
        return of_gather(ins, visits, s);
    if (ins->op == &mgx_op_slice)
        return of_slice(ins, visits, s);
    return ins->op == &mgx_op_add && of_sum(ins, visits, s);
}

bool mgx_build_spans(const struct mgx_ins *vector, struct mgx_dim *spans, int *count)
{
    struct spans s = {.count = 0};
    int visits = VISITS;
    if (!vector || !read(vector, &visits, &s) || s.count != mgx_shape_elements(&vector->shape))
        return false;
    memcpy(spans, s.v, (size_t)s.count * sizeof *s.v);
    *count = s.count;
    return true;
}

// --- ranges ---

static struct mgx_ins *strip(struct mgx_ins *ins)
{
    for (int i = 0; i < VISITS && ins->op != &mgx_op_convert && keeps_numbers(ins) &&
                    mgx_shape_elements(&ins->shape) == 1;
         i++)
        ins = ins->in[0];
    return ins;
}

// Is it the same number? Exporters write what they mean twice.
static bool is_same(struct mgx_ins *a, struct mgx_ins *b, int *visits)
{
    a = strip(a);
    b = strip(b);
    if (a == b)
        return true;
    if (--*visits < 0 || a->op != b->op || a->in_count != b->in_count || a->literal || b->literal ||
        a->mod_count || !a->in_count || (a->op->flags & (MGX_OP_IMPURE | MGX_OP_EFFECT)) ||
        !mgx_attr_equal(a->op, a->attr, b->attr))
        return a->literal && b->literal && mgx_shape_equal(&a->shape, &b->shape) &&
               mgx_shape_elements(&a->shape) == 1 && a->shape.type == MGX_INT64 &&
               mgx_load_int(MGX_INT64, a->literal->data, 0) ==
                   mgx_load_int(MGX_INT64, b->literal->data, 0);
    for (int i = 0; i < a->in_count; i++)
        if (!is_same(a->in[i], b->in[i], visits))
            return false;
    return true;
}

struct mgx_ins *mgx_build_way(struct mgx_node *n, struct mgx_ins *start, struct mgx_ins *limit)
{
    if (!start || !limit || start->shape.type != MGX_INT64 || limit->shape.type != MGX_INT64)
        return NULL;
    int visits = VISITS;
    limit = strip(limit);
    for (int i = 0; limit->op == &mgx_op_add && i < 2; i++)
        if (is_same(limit->in[i], start, &visits) &&
            mgx_shape_elements(&limit->in[1 - i]->shape) == 1)
            return mgx_build_reshape(n, limit->in[1 - i], (int64_t[]){1}, 1);
    return NULL;
}

// --- reshaping ---

static bool is_fixed(struct mgx_dim d)
{
    return d.min == d.max;
}

static bool same_name(struct mgx_dim a, struct mgx_dim b)
{
    return a.name && b.name && strcmp(a.name, b.name) == 0;
}

// The one length that is left over, where all others are of x too: its axis, or fixed axes of which
// a multiple is left.
static struct mgx_dim left_over(const struct mgx_shape *x, const struct mgx_dim *spans, int count,
                                int hole)
{
    static const struct mgx_dim any = {.min = 0, .max = MGX_DIM_ANY};
    bool taken[MGX_MAX_RANK] = {false};
    struct mgx_dim rest = {.min = 1, .max = 1};
    int64_t have = 1, want = 1;
    for (int i = 0; i < count; i++) {
        int k = 0;
        while (k < x->rank && (taken[k] || !same_name(mgx_shape_dim(x, k), spans[i])))
            k++;
        if (i == hole)
            continue;
        if (!is_fixed(spans[i]) && k == x->rank)
            return any;
        if (!is_fixed(spans[i]))
            taken[k] = true;
        else if (!mgx_mul_i64(want, spans[i].min, &want))
            return any;
    }
    for (int k = 0, open = 0; k < x->rank; k++) {
        const struct mgx_dim d = mgx_shape_dim(x, k);
        if (taken[k])
            continue;
        if (!is_fixed(d) && open++)
            return any;
        if (!is_fixed(d))
            rest = d;
        else if (!mgx_mul_i64(have, d.min, &have))
            return any;
    }
    if (!want || have % want || (have != want && !is_fixed(rest)))
        return any;
    return have == want ? rest : (struct mgx_dim){.min = have / want, .max = have / want};
}

// What reshape makes of the numbers; false where that is not known.
static bool declare(const struct mgx_shape *x, struct mgx_dim *spans, int count)
{
    int hole = -1;
    for (int i = 0; i < count; i++) {
        if (is_fixed(spans[i]) && spans[i].min == 0) { // copied
            if (i >= x->rank)
                return false;
            spans[i] = mgx_shape_dim(x, i);
        } else if (is_fixed(spans[i]) && spans[i].min == -1 && hole < 0) {
            hole = i;
        } else if (!is_length(spans[i])) {
            return false;
        } else if (!is_fixed(spans[i]) && spans[i].min == 0 && i < x->rank) {
            // A length that comes as 0 copies another.
            spans[i].max = mgx_max_i64(spans[i].max, mgx_shape_dim(x, i).max);
        }
    }
    if (hole >= 0)
        spans[hole] = left_over(x, spans, count, hole);
    return true;
}

struct mgx_ins *mgx_build_reshape_by(struct mgx_node *n, struct mgx_ins *x, struct mgx_ins *vector)
{
    struct mgx_dim spans[MGX_MAX_RANK];
    int count;
    if (!x || x->shape.unranked || !mgx_build_spans(vector, spans, &count) ||
        !declare(&x->shape, spans, count))
        return mgx_build_emit(n, &mgx_op_reshape, NULL, MGX_IN(x, vector));
    return mgx_build_emit(n, &mgx_op_reshape_within,
                          MGX_ATTRS(mgx_dims_attr("out_dyn_dims", spans, count)),
                          MGX_IN(x, vector));
}
