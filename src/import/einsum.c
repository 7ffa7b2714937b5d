// SPDX-License-Identifier: MIT
// Einsum for any number of operands, as transposes, sums and products of matrices.
//
// Every axis has a label: its letter, or a number above all letters for the axes of an ellipsis,
// counted from the right. Operands are first reduced to distinct labels (a repeated one takes the
// diagonal) and lose by summing what neither the result nor another operand has; then the first two
// are multiplied until one is left:
//
//     (batch, left..., inner...) x (batch, inner..., right...)  ->  (batch, left..., right...)
//
// with batch: in both and still needed, inner: in both and needed no more. Without inner labels the
// product is a broadcast `mul`. An axis of length 1 where another operand's is longer is dropped.
// Axes are merged by reshape only where a group has several, so the usual attention forms work on
// ranges of lengths too.
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "import/build.h"

enum { ELLIPSIS = 256, ELLIPSIS_MARK = 1 }; // labels from 256 on; 1 stands for "..." while parsing

struct term {
    struct mgx_ins *x;
    int labels[MGX_MAX_RANK];
    int rank;
};

struct equation {
    struct mgx_node *n;
    struct term *terms;
    int count;
    struct term out; // its x is unused
    int ellipsis;    // axes of the longest ellipsis
    bool later;      // a merge needs lengths that are not known yet
};

static int find_label(const int *labels, int rank, int label)
{
    for (int i = 0; i < rank; i++)
        if (labels[i] == label)
            return i;
    return -1;
}

static bool has(const struct term *t, int label)
{
    return find_label(t->labels, t->rank, label) >= 0;
}

// --- parsing ---

// Reads labels up to ',', '-' or the end; "..." gives one ELLIPSIS_MARK.
static enum mgx_status parse_term(struct mgx_node *n, const char **at, struct term *t)
{
    t->rank = 0;
    for (; **at && **at != ',' && **at != '-'; (*at)++) {
        if (**at == ' ')
            continue;
        const bool dots = strncmp(*at, "...", 3) == 0;
        if (!dots && !isalpha((unsigned char)**at))
            return mgx_node_invalid(n, "unexpected '%c' in the equation", **at);
        if (t->rank == MGX_MAX_RANK)
            return mgx_node_unsupported(n, "a term has more than %d labels", MGX_MAX_RANK);
        if (dots && has(t, ELLIPSIS_MARK))
            return mgx_node_invalid(n, "a term has two ellipses");
        t->labels[t->rank++] = dots ? ELLIPSIS_MARK : (unsigned char)**at;
        if (dots)
            *at += 2;
    }
    return MGX_OK;
}

// Replaces the mark by `count` labels, those nearest the right end of the longest ellipsis.
static enum mgx_status expand_ellipsis(struct equation *e, struct term *t, int count)
{
    const int at = find_label(t->labels, t->rank, ELLIPSIS_MARK);
    if (at < 0)
        return MGX_OK;
    assert(count >= 0 && count <= e->ellipsis);
    if (t->rank - 1 + count > MGX_MAX_RANK)
        return mgx_node_unsupported(e->n, "a term has more than %d axes", MGX_MAX_RANK);
    memmove(t->labels + at + count, t->labels + at + 1,
            (size_t)(t->rank - at - 1) * sizeof *t->labels);
    for (int i = 0; i < count; i++)
        t->labels[at + i] = ELLIPSIS + e->ellipsis - count + i;
    t->rank += count - 1;
    return MGX_OK;
}

static enum mgx_status parse_operands(struct equation *e, const char **at)
{
    struct mgx_node *n = e->n;
    int wide[2] = {0, 0};
    for (int i = 0; i < e->count; i++) {
        struct term *t = &e->terms[i];
        TRY(parse_term(n, at, t));
        t->x = n->in[i];
        if ((**at == ',') != (i + 1 < e->count))
            return mgx_node_invalid(n, "the equation does not have %d terms", e->count);
        *at += **at == ',';
        const int rank = mgx_build_rank(t->x);
        const bool dots = has(t, ELLIPSIS_MARK);
        wide[1] = dots ? rank - (t->rank - 1) : 0;
        if (dots ? wide[1] < 0 : rank != t->rank)
            return mgx_node_invalid(n, "operand %d has rank %d, its term %d labels", i, rank,
                                    t->rank - dots);
        e->ellipsis = wide[1] > e->ellipsis ? wide[1] : e->ellipsis;
    }
    for (int i = 0; i < e->count; i++)
        TRY(expand_ellipsis(e, &e->terms[i], mgx_build_rank(n->in[i]) - e->terms[i].rank + 1));
    return MGX_OK;
}

// Without "->": the ellipsis, then the letters that occur once, in order of the alphabet.
static enum mgx_status implicit_output(struct equation *e)
{
    if (e->ellipsis)
        e->out.labels[e->out.rank++] = ELLIPSIS_MARK;
    for (int label = 'A'; label <= 'z'; label++) {
        int seen = 0;
        for (int i = 0; i < e->count; i++)
            for (int k = 0; k < e->terms[i].rank; k++)
                seen += e->terms[i].labels[k] == label;
        if (seen == 1 && e->out.rank == MGX_MAX_RANK)
            return mgx_node_unsupported(e->n, "the result has more than %d axes", MGX_MAX_RANK);
        if (seen == 1)
            e->out.labels[e->out.rank++] = label;
    }
    return MGX_OK;
}

static enum mgx_status parse(struct equation *e, const char *text)
{
    TRY(parse_operands(e, &text));
    if (*text == '-') {
        if (text[1] != '>')
            return mgx_node_invalid(e->n, "'-' without '>' in the equation");
        text += 2;
        TRY(parse_term(e->n, &text, &e->out));
        if (*text)
            return mgx_node_invalid(e->n, "text after the result's term");
        if (e->ellipsis && !has(&e->out, ELLIPSIS_MARK))
            return mgx_node_invalid(e->n, "the ellipsis stands for %d axes, the result has none",
                                    e->ellipsis);
    } else {
        TRY(implicit_output(e));
    }
    TRY(expand_ellipsis(e, &e->out, e->ellipsis));
    for (int i = 0; i < e->out.rank; i++) {
        bool found = false;
        for (int k = 0; k < e->count && !found; k++)
            found = has(&e->terms[k], e->out.labels[i]);
        if (!found || find_label(e->out.labels, i, e->out.labels[i]) >= 0)
            return mgx_node_invalid(e->n, "label %d of the result is %s", i,
                                    found ? "repeated" : "in no operand");
    }
    return MGX_OK;
}

// --- one operand ---

static void permute(struct equation *e, struct term *t, const int *order)
{
    assert(t->rank >= 0 && t->rank <= MGX_MAX_RANK);
    int64_t perm[MGX_MAX_RANK];
    bool same = true;
    for (int i = 0; i < t->rank; i++) {
        perm[i] = find_label(t->labels, t->rank, order[i]);
        assert(perm[i] >= 0); // the order names the term's own labels
        same &= perm[i] == i;
    }
    if (!same)
        t->x = mgx_build_transpose(e->n, t->x, perm, t->rank);
    memmove(t->labels, order, (size_t)t->rank * sizeof *order);
}

// Axes i < k with one label become one: brought to the front, merged, and every (length + 1)-th
// taken.
static void diagonal(struct equation *e, struct term *t, int i, int k)
{
    assert(i >= 0 && i < k && k < t->rank && t->labels[i] == t->labels[k]);
    struct mgx_node *n = e->n;
    if (!t->x || !mgx_build_is_static(t->x)) {
        e->later = true;
        return;
    }
    const int label = t->labels[i];
    const int64_t length = t->x->shape.lens[i];
    int64_t perm[MGX_MAX_RANK] = {i, k}, lens[MGX_MAX_RANK] = {length * length};
    int at = 1;
    for (int a = 0; a < t->rank; a++)
        if (a != i && a != k) {
            perm[at + 1] = a;
            lens[at] = t->x->shape.lens[a];
            t->labels[at++] = t->labels[a]; // at <= a always: labels move left
        }
    t->labels[0] = label;
    struct mgx_ins *x = mgx_build_transpose(n, t->x, perm, t->rank);
    x = mgx_build_reshape(n, x, lens, --t->rank);
    t->x = mgx_build_emit(n, &mgx_op_step,
                          MGX_ATTRS(mgx_ints("axes", (int64_t[]){0}, 1),
                                    mgx_ints("steps", (int64_t[]){length + 1}, 1)),
                          MGX_IN(x));
}

static enum mgx_status take_diagonals(struct equation *e, struct term *t)
{
    for (int k = 1; k < t->rank && !e->later; k++) {
        const int i = find_label(t->labels, k, t->labels[k]);
        if (i < 0)
            continue;
        if (t->x && mgx_build_is_static(t->x) && t->x->shape.lens[i] != t->x->shape.lens[k])
            return mgx_node_invalid(e->n, "a repeated label has lengths %lld and %lld",
                                    (long long)t->x->shape.lens[i], (long long)t->x->shape.lens[k]);
        diagonal(e, t, i, k);
        k = 0;
    }
    return MGX_OK;
}

// Does the result or a term after `done` need this label?
static bool needed(const struct equation *e, int label, int done)
{
    assert(done <= e->count);
    bool yes = has(&e->out, label);
    for (int i = done; i < e->count && !yes; i++)
        yes = has(&e->terms[i], label);
    return yes;
}

// Does another term have this label with a length that may be other than 1?
static bool longer_elsewhere(const struct equation *e, const struct term *t, int label)
{
    for (int i = 0; i < e->count; i++) {
        const struct term *other = &e->terms[i];
        const int at = other == t || !other->x ? -1 : find_label(other->labels, other->rank, label);
        if (at >= 0 &&
            (!mgx_build_fixed_dim(other->x, at) || mgx_shape_dim(&other->x->shape, at).min != 1))
            return true;
    }
    return false;
}

// Axes of length 1 broadcast: a term without the label is multiplied with all of another's.
static void drop_ones(struct equation *e, struct term *t)
{
    int64_t axes[MGX_MAX_RANK];
    int count = 0, kept = 0;
    for (int i = 0; t->x && i < t->rank; i++) {
        const bool one = mgx_build_fixed_dim(t->x, i) && mgx_shape_dim(&t->x->shape, i).min == 1;
        if (one && longer_elsewhere(e, t, t->labels[i]))
            axes[count++] = i;
        else
            t->labels[kept++] = t->labels[i];
    }
    if (!count)
        return;
    t->rank = kept;
    t->x = mgx_build_squeeze(e->n, t->x, axes, count);
}

// Sums over the labels that neither the other operand nor what comes later has.
static void sum_out(struct equation *e, struct term *t, const struct term *other, int done)
{
    int64_t axes[MGX_MAX_RANK];
    int count = 0, kept = 0;
    for (int i = 0; i < t->rank; i++) {
        const int label = t->labels[i];
        if (needed(e, label, done) || (other && has(other, label)))
            t->labels[kept++] = label;
        else
            axes[count++] = i;
    }
    t->rank = kept;
    if (count)
        t->x = mgx_build_reduce(e->n, &mgx_op_reduce_sum, t->x, axes, count, false);
}

// --- two operands ---

struct groups {
    int batch[MGX_MAX_RANK], left[MGX_MAX_RANK], inner[MGX_MAX_RANK], right[MGX_MAX_RANK];
    int batch_count, left_count, inner_count, right_count;
};

static void group(const struct equation *e, const struct term *a, const struct term *b, int done,
                  struct groups *g)
{
    assert(a != b && done >= 1);
    *g = (struct groups){.batch_count = 0};
    for (int i = 0; i < a->rank; i++) {
        const int label = a->labels[i];
        if (!has(b, label))
            g->left[g->left_count++] = label;
        else if (needed(e, label, done))
            g->batch[g->batch_count++] = label;
        else
            g->inner[g->inner_count++] = label;
    }
    for (int i = 0; i < b->rank; i++)
        if (!has(a, b->labels[i]))
            g->right[g->right_count++] = b->labels[i];
}

// t in the order batch, first, second, each of the last two merged to one axis; returns NULL and
// sets `later` where that needs unknown lengths.
static struct mgx_ins *as_matrices(struct equation *e, struct term *t, const int *batch, int b,
                                   const int *first, int f, const int *second, int s)
{
    assert(b + f + s == t->rank);
    int order[3 * MGX_MAX_RANK];
    memcpy(order, batch, (size_t)b * sizeof *order);
    memcpy(order + b, first, (size_t)f * sizeof *order);
    memcpy(order + b + f, second, (size_t)s * sizeof *order);
    permute(e, t, order);
    struct mgx_ins *x = t->x;
    if (!x || (f == 1 && s == 1))
        return x;
    if (f <= 1 && s <= 1) { // a missing group is an axis of length 1
        const int64_t axes[2] = {b, b + 1};
        return f ? mgx_build_unsqueeze(e->n, x, axes + 1, 1)
                 : mgx_build_unsqueeze(e->n, x, axes, s ? 1 : 2);
    }
    if (!mgx_build_is_static(x) || mgx_shape_elements(&x->shape) == 0) {
        e->later = !mgx_build_is_static(x);
        if (e->later)
            return NULL;
    }
    struct mgx_shape merged = mgx_shape_make(x->shape.type, b + 2, x->shape.lens);
    merged.lens[b] = merged.lens[b + 1] = 1;
    for (int i = 0; i < f + s; i++)
        merged.lens[b + (i >= f)] *= x->shape.lens[b + i];
    return mgx_build_reshape_like(e->n, x, &merged);
}

// Restores the merged axes of a product: batch, left..., right....
static struct mgx_ins *split_axes(struct equation *e, struct mgx_ins *y, const struct groups *g,
                                  const struct mgx_shape *left, const struct mgx_shape *right)
{
    const int b = g->batch_count;
    if (!y || (g->left_count == 1 && g->right_count == 1))
        return y;
    if (g->left_count <= 1 && g->right_count <= 1) {
        const int64_t axes[2] = {b, b + 1};
        if (g->left_count)
            return mgx_build_squeeze(e->n, y, axes + 1, 1);
        return mgx_build_squeeze(e->n, y, axes, g->right_count ? 1 : 2);
    }
    if (!mgx_build_is_static(y)) {
        e->later = true;
        return NULL;
    }
    struct mgx_shape full = mgx_shape_make(y->shape.type, b, y->shape.lens);
    full.rank = b + g->left_count + g->right_count;
    assert(full.rank <= MGX_MAX_RANK); // multiply looked
    for (int i = 0; i < g->left_count; i++)
        full.lens[b + i] = left->lens[b + i];
    for (int i = 0; i < g->right_count; i++)
        full.lens[b + g->left_count + i] = right->lens[b + g->inner_count + i];
    return mgx_build_reshape_like(e->n, y, &full);
}

// *a becomes the product of *a and *b.
static enum mgx_status multiply(struct equation *e, struct term *a, struct term *b, int done)
{
    sum_out(e, a, b, done);
    sum_out(e, b, a, done);
    struct groups g;
    group(e, a, b, done, &g);
    if (g.batch_count + g.left_count + g.right_count > MGX_MAX_RANK)
        return mgx_node_unsupported(e->n, "a product has more than %d axes", MGX_MAX_RANK);
    const int n = g.batch_count;
    struct mgx_ins *x = as_matrices(e, a, g.batch, n, g.left, g.left_count, g.inner, g.inner_count);
    struct mgx_ins *y =
        as_matrices(e, b, g.batch, n, g.inner, g.inner_count, g.right, g.right_count);
    if (!x || !y || !a->x || !b->x)
        return MGX_OK;
    struct mgx_ins *product =
        g.inner_count ? mgx_build_matmul(e->n, &mgx_op_dot, x, y) : mgx_build_mul(e->n, x, y);
    a->x = split_axes(e, product, &g, &a->x->shape, &b->x->shape);
    a->rank = n + g.left_count + g.right_count;
    memcpy(a->labels, g.batch, (size_t)n * sizeof *a->labels);
    memcpy(a->labels + n, g.left, (size_t)g.left_count * sizeof *a->labels);
    memcpy(a->labels + n + g.left_count, g.right, (size_t)g.right_count * sizeof *a->labels);
    return MGX_OK;
}

enum mgx_status mgx_build_einsum(struct mgx_node *n, const char *equation, bool *later)
{
    struct equation e = {.n = n, .count = n->in_count};
    *later = false;
    e.terms = MGX_NEW_ARRAY(n->scratch, struct term, n->in_count);
    if (!e.terms)
        return mgx_fail_memory(n->diag);
    TRY(parse(&e, equation));
    for (int i = 0; i < e.count; i++)
        TRY(take_diagonals(&e, &e.terms[i]));
    for (int i = 0; i < e.count && !e.later; i++)
        drop_ones(&e, &e.terms[i]);
    struct term *first = &e.terms[0];
    for (int i = 1; i < e.count && !e.later; i++)
        TRY(multiply(&e, first, &e.terms[i], i + 1));
    *later = e.later;
    if (e.later)
        return MGX_OK;
    assert(first->rank <= MGX_MAX_RANK);
    sum_out(&e, first, NULL, e.count);
    assert(first->rank == e.out.rank); // what is left are the result's
    permute(&e, first, e.out.labels);
    n->out[0] = first->x;
    return MGX_OK;
}
