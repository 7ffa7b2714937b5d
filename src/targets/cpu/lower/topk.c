// SPDX-License-Identifier: MIT
// topk of floats and 32-bit integers: the k-th key is found by counting, what lies before it is
// collected in order of position and sorted by radix.
//
//     keys ascend where the result does: count by the highest digit, then by the next one within the
//     bucket of the k-th; below the k-th key everything is in, of equal ones the first few
//
// Equal values keep the order of their positions, NaN is the largest. Cost: linear, three looks at
// the keys, and four at those of lines that are shorter than what larger digits have of buckets;
// short lines are sorted whole.
#include <assert.h>
#include <stdlib.h>

#include "op/op.h"
#include "op/rule/rule.h"
#include "targets/cpu/lower/lower.h"
#include "targets/cpu/lower/order.h"

enum { RADIX = 256, SHORT = 1 << 11, LONG = 1 << 16, SMALL_DIGIT = 11, LARGE_DIGIT = 16 };

void cpu_order_sort(uint64_t *entries, uint64_t *room, int64_t count)
{
    uint64_t *from = entries, *to = room;
    for (int shift = 32; shift < 64; shift += 8) {
        int64_t start[RADIX] = {0}, sum = 0;
        for (int64_t i = 0; i < count; i++)
            start[from[i] >> shift & (RADIX - 1)]++;
        for (int b = 0; b < RADIX; b++) {
            const int64_t n = start[b];
            start[b] = sum;
            sum += n;
        }
        for (int64_t i = 0; i < count; i++)
            to[start[from[i] >> shift & (RADIX - 1)]++] = from[i];
        uint64_t *const swap = from;
        from = to;
        to = swap;
    }
}

struct line {
    const struct mgx_tensor *x;
    int64_t from, step, length, k; // of x, in elements
    bool largest;
    uint32_t *keys;
    uint64_t *entries, *room;
    int digit;        // bits that are counted by at a time
    int32_t *buckets; // one for each value of a digit
};

static void make_keys(const struct line *l)
{
    const uint32_t flip = l->largest ? UINT32_MAX : 0;
    if (l->x->shape.type == MGX_FLOAT) {
        const float *x = (const float *)l->x->data + l->from;
        for (int64_t i = 0; i < l->length; i++)
            l->keys[i] = cpu_order_key(x[i * l->step]) ^ flip;
    } else {
        const int32_t *x = (const int32_t *)l->x->data + l->from;
        for (int64_t i = 0; i < l->length; i++)
            l->keys[i] = ((uint32_t)x[i * l->step] ^ 0x80000000u) ^ flip;
    }
}

// The bucket that holds entry number `rank` of those counted; *rank becomes its number in there.
static uint32_t bucket_of(const struct line *l, int64_t *rank)
{
    uint32_t b = 0;
    for (; *rank >= l->buckets[b]; b++)
        *rank -= l->buckets[b];
    return b;
}

// The k-th smallest key, digit by digit; *equal is how many keys equal to it are in.
static uint32_t last_key(const struct line *l, int64_t *equal)
{
    int64_t rank = l->k - 1;
    uint32_t key = 0, known = 0; // bits of it that are found
    for (int shift = 32; shift > 0;) {
        const int bits = shift < l->digit ? shift : l->digit;
        const uint32_t digit = (1u << bits) - 1;
        shift -= bits;
        memset(l->buckets, 0, sizeof *l->buckets << bits);
        for (int64_t i = 0; i < l->length; i++)
            if ((l->keys[i] & known) == key)
                l->buckets[l->keys[i] >> shift & digit]++;
        key |= bucket_of(l, &rank) << shift;
        known |= digit << shift;
    }
    *equal = rank + 1;
    return key;
}

// The entries that are in, by position. All of a short line.
static int64_t collect(const struct line *l)
{
    int64_t n = 0, equal = 0;
    if (l->length <= SHORT || l->k == l->length) {
        for (; n < l->length; n++)
            l->entries[n] = cpu_order_make(l->keys[n], (uint32_t)n);
        return n;
    }
    const uint32_t last = last_key(l, &equal);
    for (int64_t i = 0; i < l->length && n < l->k; i++) {
        const uint32_t key = l->keys[i];
        if (key > last || (key == last && equal-- <= 0))
            continue;
        l->entries[n++] = cpu_order_make(key, (uint32_t)i);
    }
    return n;
}

static void sort_line(const struct line *l, uint32_t *values, int64_t *positions, int64_t step)
{
    const uint32_t *x = (const uint32_t *)l->x->data + l->from;
    assert(l->k <= l->length);
    make_keys(l);
    cpu_order_sort(l->entries, l->room, collect(l));
    for (int64_t i = 0; i < l->k; i++) {
        const int64_t at = (int64_t)(l->entries[i] & UINT32_MAX);
        assert(at < l->length && (i == 0 || l->entries[i - 1] < l->entries[i]));
        values[i * step] = x[at * l->step];
        positions[i * step] = at;
    }
}

static void sort_lines(struct line *l, const struct mgx_tensor *out, int axis)
{
    struct mgx_shape lines = l->x->shape, slots = out[0].shape;
    lines.lens[axis] = slots.lens[axis] = 1;
    const int64_t count = mgx_shape_elements(&lines);
    for (int64_t i = 0; i < count && l->k > 0; i++) {
        const int64_t to = mgx_shape_index(&slots, i);
        l->from = mgx_shape_index(&lines, i);
        sort_line(l, (uint32_t *)out[0].data + to, (int64_t *)out[1].data + to,
                  out[0].shape.strides[axis]);
    }
}

static bool takes(const struct mgx_compute_call *c, const struct mgx_shape *want)
{
    const struct mgx_shape *s = &c->in[0]->shape;
    return (s->type == MGX_FLOAT || s->type == MGX_INT32) && want && mgx_shape_is_static(want) &&
           mgx_shape_elements(s) && (c->in_count != 2 || mgx_shape_elements(&c->in[1]->shape) == 1);
}

// Room for a line's keys and entries; false when out of memory, with some of it taken.
static bool take_room(struct line *l)
{
    const int64_t most = l->length <= SHORT ? l->length : l->k;
    l->keys = malloc((size_t)l->length * sizeof *l->keys);
    l->entries = malloc((size_t)(most + 1) * 2 * sizeof *l->entries);
    l->digit = l->length < LONG ? SMALL_DIGIT : LARGE_DIGIT;
    l->buckets = l->length > SHORT ? malloc(sizeof *l->buckets << l->digit) : NULL;
    l->room = l->entries ? l->entries + most + 1 : NULL;
    return l->keys && l->entries && (l->buckets || l->length <= SHORT);
}

static enum mgx_status sort_call(struct mgx_compute_call *c, struct line *l, int axis)
{
    struct mgx_tensor out[2];
    TRY(mgx_eval_members(c, out, 2));
    sort_lines(l, out, axis);
    return mgx_tensor_group(c->out, out, 2, false, c->diag);
}

enum mgx_status cpu_topk(struct mgx_compute_call *c, bool *done)
{
    const struct mgx_shape *s = &c->in[0]->shape;
    const struct mgx_shape *want = c->out_shape->type == MGX_TUPLE ? c->out_shape->sub : NULL;
    if (!takes(c, want))
        return MGX_OK;
    const int axis = mgx_wrap_axis(mgx_attr_int(c->op, c->attr, "axis"), s->rank);
    if (s->lens[axis] > INT32_MAX)
        return MGX_OK;
    struct line l = {.x = c->in[0],
                     .step = s->strides[axis],
                     .length = s->lens[axis],
                     .k = want->lens[axis],
                     .largest = mgx_attr_int(c->op, c->attr, "largest") != 0};
    const enum mgx_status status =
        take_room(&l) ? sort_call(c, &l, axis) : mgx_fail_memory(c->diag);
    *done = status == MGX_OK;
    free(l.keys);
    free(l.entries);
    free(l.buckets);
    return status;
}
