// SPDX-License-Identifier: MIT
// Convolutions of one input whose results are added become one: networks that were trained with
// several branches to a layer (RepVGG, MobileOne, RepGhost) and exported with them.
//
//     conv(x, w) + ... + conv(x, v)  =>  conv(x, w + v) + ...
//     conv(x, w) + ... + x * a       =>  conv(x, w + a in the middle) + ...    a per channel
//
// The smaller kernel is padded with zeros to where the larger one has it; an image times a factor
// is a kernel of 1 x 1.
//
// Holds: w, v and a are constants and finite; the same groups and stride; one of the kernels
// reaches as far as the other on all sides (results of one size leave no choice at the far end), so
// that what is infinite stays where it was. In float and double: sums of narrow weights would lose
// more than rounding. Cost: sums of up to MAX_TERMS terms are looked at, in pairs.
#include "base/size.h"

#include <assert.h>

#include "op/reference/window.h"
#include "pass/engine/emit.h"
#include "pass/rules/rules.h"

enum { MAX_TERMS = 8, MAX_SPATIAL = MGX_MAX_RANK - 2 };

// A term that is a convolution, or an image times a factor per channel.
struct branch {
    struct mgx_ins *x, *w;
    struct mgx_ins *factor;     // of an image; NULL: a convolution
    struct mgx_ins *shift;      // added to or subtracted from the image before, or NULL
    const struct mgx_op *how;   // add or sub
    const struct mgx_ins *conv; // or NULL
    int64_t taps[MAX_SPATIAL], before[MAX_SPATIAL];
};

static bool is_wide(const struct mgx_ins *ins)
{
    return (ins->shape.type == MGX_FLOAT || ins->shape.type == MGX_DOUBLE) &&
           mgx_shape_is_static(&ins->shape) && mgx_shape_elements(&ins->shape) > 0;
}

static bool read_convolution(struct mgx_ins *ins, struct branch *b)
{
    const int spatial = ins->shape.rank - 2;
    *b = (struct branch){.x = ins->in[0], .w = ins->in[1], .conv = ins};
    const struct mgx_window_attr window = mgx_window_of(ins);
    if (!is_wide(b->w) || !is_wide(b->x) || !mgx_window_is_explicit(&window, spatial))
        return false;
    for (int i = 0; i < spatial; i++) {
        b->taps[i] = b->w->shape.lens[i + 2];
        b->before[i] = window.padding.v[i];
    }
    return true;
}

static bool read_image(struct mgx_ins *ins, struct branch *b)
{
    struct mgx_ins *x = ins->in[0];
    *b = (struct branch){.x = x, .factor = ins->in[1]};
    for (int i = 0; i < ins->shape.rank - 2; i++)
        b->taps[i] = 1;
    if ((mgx_is(x, &mgx_op_sub) || mgx_is(x, &mgx_op_add)) && mgx_used_once(x) &&
        mgx_is_along(x->in[1], 1) && mgx_product_is_safe(ins->shape.type, x->in[1], b->factor)) {
        b->x = x->in[0];
        b->shift = x->in[1];
        b->how = x->op;
    }
    return mgx_is_along(b->factor, 1);
}

static bool read_branch(struct mgx_ins *ins, struct branch *b)
{
    if (!mgx_used_once(ins) || ins->in_count != 2 || !is_wide(ins) || ins->shape.rank < 3)
        return false;
    if (mgx_is(ins, &mgx_op_convolution))
        return read_convolution(ins, b);
    return mgx_is(ins, &mgx_op_mul) && read_image(ins, b);
}

static bool equal_ints(struct mgx_ints a, struct mgx_ints b)
{
    assert(a.count >= 0 && b.count >= 0);
    bool equal = a.count == b.count;
    for (int i = 0; equal && i < a.count; i++)
        equal = a.v[i] == b.v[i];
    return equal;
}

// Where the kernel of `b` begins within that of `a`, if it lies within it.
static bool find_place(const struct branch *a, const struct branch *b, int64_t *at)
{
    assert(at);
    const struct mgx_window_attr ours = mgx_window_of(a->conv);
    const int spatial = a->conv->shape.rank - 2;
    const struct mgx_ints dilation = ours.dilation;
    const struct mgx_ints theirs = b->conv ? mgx_window_of(b->conv).dilation : (struct mgx_ints){0};
    for (int i = 0; i < spatial; i++) {
        const int64_t shift = a->before[i] - b->before[i];
        at[i] = shift / dilation.v[i];
        if (shift < 0 || shift % dilation.v[i] || at[i] + b->taps[i] > a->taps[i] ||
            (b->taps[i] > 1 && theirs.v[i] != dilation.v[i]) || (!b->conv && ours.stride.v[i] != 1))
            return false;
    }
    return true;
}

static bool fits_into(const struct branch *a, const struct branch *b, int64_t *at)
{
    if (!a->conv || a->x != b->x || !find_place(a, b, at))
        return false;
    const struct mgx_shape *w = &a->w->shape;
    if (!b->conv)
        return mgx_shape_same_lens(&a->x->shape, &a->conv->shape) &&
               mgx_sum_is_safe(w->type, a->w, b->factor);
    const struct mgx_shape *v = &b->w->shape;
    const struct mgx_window_attr ours = mgx_window_of(a->conv), theirs = mgx_window_of(b->conv);
    return ours.group == theirs.group && equal_ints(ours.stride, theirs.stride) &&
           w->lens[0] == v->lens[0] && w->lens[1] == v->lens[1] &&
           mgx_sum_is_safe(w->type, a->w, b->w);
}

// An image is its own convolution by one kernel of 1 x 1 per channel: channel o reads o alone.
static struct mgx_ins *emit_diagonal(struct mgx_ins *at, const struct branch *a,
                                     struct mgx_ins *factor)
{
    struct mgx_shape shape = mgx_shape_make(a->w->shape.type, a->w->shape.rank, a->w->shape.lens);
    const int64_t outputs = shape.lens[0], inputs = shape.lens[1];
    for (int i = 2; i < shape.rank; i++)
        shape.lens[i] = 1;
    shape = mgx_shape_make(shape.type, shape.rank, shape.lens);
    struct mgx_tensor ones = {0};
    if (mgx_tensor_create(&ones, &shape, &at->owner->program->diag) != MGX_OK)
        return NULL;
    for (int64_t o = 0; o < outputs; o++)
        for (int64_t i = 0; i < inputs; i++) {
            const double one = o % inputs == i;
            if (shape.type == MGX_FLOAT)
                ((float *)ones.data)[o * inputs + i] = (float)one;
            else
                ((double *)ones.data)[o * inputs + i] = one;
        }
    struct mgx_ins *diagonal = mgx_add_literal(at->owner, &ones);
    mgx_tensor_release(&ones);
    struct mgx_ins *vector = mgx_emit_along(at, factor, 1);
    return mgx_emit_binary(at, &mgx_op_mul, diagonal, mgx_emit_spread(at, vector, 0, &shape));
}

// Zeros around the smaller kernel.
static struct mgx_ins *emit_padded(struct mgx_ins *at, const struct branch *a, struct mgx_ins *w,
                                   const int64_t *place)
{
    int64_t pads[2 * MGX_MAX_RANK] = {0};
    const int rank = a->w->shape.rank;
    bool any = false;
    for (int i = 2; w && i < rank; i++) {
        pads[i] = place[i - 2];
        pads[i + rank] = a->w->shape.lens[i] - w->shape.lens[i] - pads[i];
        any |= pads[i] || pads[i + rank];
    }
    if (!any)
        return w;
    return mgx_emit_before(at, &mgx_op_pad, MGX_ATTRS(mgx_ints("pads", pads, 2 * rank)), MGX_IN(w));
}

// One convolution, and a constant, in the place of both terms; NULL if they do not fit.
static struct mgx_ins *merge(struct mgx_ins *at, struct mgx_ins *first, struct mgx_ins *second)
{
    struct branch a, b;
    int64_t place[MAX_SPATIAL];
    if (!read_branch(first, &a) || !read_branch(second, &b))
        return NULL;
    if (!fits_into(&a, &b, place)) {
        const struct branch other = a;
        a = b;
        b = other;
        if (!fits_into(&a, &b, place))
            return NULL;
    }
    struct mgx_ins *v = b.conv ? b.w : emit_diagonal(at, &a, b.factor);
    v = emit_padded(at, &a, v, place);
    struct mgx_ins *w = mgx_emit_binary(at, &mgx_op_add, a.w, v);
    struct mgx_ins *y = mgx_emit_again(at, a.conv, (struct mgx_ins *const[]){a.x, w}, 2);
    if (!b.shift)
        return y;
    return mgx_emit_binary(at, b.how, y, mgx_emit_binary(at, &mgx_op_mul, b.shift, b.factor));
}

struct sum {
    struct mgx_ins *term[MAX_TERMS];
    int count;
};

// The terms of a sum that nobody reads half-way.
static void find_terms(struct mgx_ins *ins, struct sum *s)
{
    s->count = 0;
    s->term[s->count++] = ins->in[0];
    s->term[s->count++] = ins->in[1];
    for (int i = 0; i < s->count && s->count < MAX_TERMS;) {
        struct mgx_ins *t = s->term[i];
        if (!mgx_is(t, &mgx_op_add) || !mgx_used_once(t) || t->owner != ins->owner) {
            i++;
            continue;
        }
        s->term[i] = t->in[0];
        for (int k = s->count++; k > i + 1; k--)
            s->term[k] = s->term[k - 1];
        s->term[i + 1] = t->in[1];
    }
}

static struct mgx_ins *merge_branches(struct mgx_rewriter *r, struct mgx_ins *ins,
                                      const struct mgx_match *m)
{
    struct sum s;
    struct mgx_ins *merged = NULL;
    int i, j = 0;
    (void)r, (void)m;
    if (!is_wide(ins) || ins->shape.rank < 3)
        return NULL;
    find_terms(ins, &s);
    for (i = 0; i < s.count && !merged; i++)
        for (j = i + 1; j < s.count && !merged; j++)
            merged = merge(ins, s.term[i], s.term[j]);
    if (!merged)
        return NULL;
    for (int k = 0; k < s.count; k++) // i and j have gone one too far
        if (k != i - 1 && k != j - 1)
            merged = mgx_emit_binary(ins, &mgx_op_add, merged, s.term[k]);
    return merged;
}

static const struct mgx_rule rules[] = {
    {"add(x, y) ~> conv(x, w + v)", MGX_IF_FLOAT | MGX_IF_STATIC, .rewrite = merge_branches},
};

const struct mgx_rules mgx_rules_branches = {rules, MGX_COUNT(rules)};
