// SPDX-License-Identifier: MIT
// Unfolding; see unfold.h. Places are walked line by line along the innermost axis, where all that
// is inside the input is one strided run.
#include "op/reference/unfold.h"

#include <assert.h>
#include <string.h>

void mgx_unfold_count(struct mgx_unfold *u)
{
    assert(u->rank >= 1);
    uint64_t plane = 1, places = 1, taps = 1; // unsigned: beside 0 channels they may be anything
    for (int i = 0; i < u->rank; i++) {
        plane *= (uint64_t)u->axis[i].in;
        places *= (uint64_t)u->axis[i].out;
        taps *= (uint64_t)u->axis[i].kernel;
    }
    u->plane = (int64_t)plane;
    u->places = (int64_t)places;
    u->taps = (int64_t)taps;
}

void mgx_unfold_tap(const struct mgx_unfold *u, int64_t t, int64_t *tap)
{
    for (int i = u->rank - 1; i >= 0; i--) {
        tap[i] = t % u->axis[i].kernel;
        t /= u->axis[i].kernel;
    }
}

// One stretch of a line: `count` places from the innermost coordinate `place`, of which
// [first, last) see the input, the first of them at element `at`.
struct stretch {
    int64_t count, first, last, at;
};

static struct stretch find_stretch(const struct mgx_unfold *u, const int64_t *tap, int64_t from,
                                   int64_t to)
{
    const struct mgx_window *w = &u->axis[u->rank - 1];
    const int64_t place = from % w->out;
    struct stretch s = {.count = mgx_min_i64(w->out - place, to - from)};
    int64_t line = from / w->out, base = 0, size = w->in;
    for (int i = u->rank - 2; i >= 0; i--) {
        const struct mgx_window *v = &u->axis[i];
        const int64_t x = line % v->out * v->stride - v->begin + tap[i] * v->dilation;
        if (x < 0 || x >= v->in)
            return s;
        line /= v->out;
        base += x * size;
        size *= v->in;
    }
    const int64_t x = place * w->stride - w->begin + tap[u->rank - 1] * w->dilation;
    const int64_t room = w->in - x;
    if (room <= 0)
        return s;
    s.first = x >= 0 ? 0 : mgx_min_i64(s.count, (w->stride - 1 - x) / w->stride);
    s.last = mgx_max_i64(s.first, mgx_min_i64(s.count, (room - 1) / w->stride + 1));
    s.at = base + x + s.first * w->stride;
    return s;
}

void mgx_unfold_row(const struct mgx_unfold *u, const int64_t *tap, const union mgx_word *plane,
                    int64_t from, int64_t to, union mgx_word *row)
{
    const int64_t stride = u->axis[u->rank - 1].stride;
    while (from < to) {
        const struct stretch s = find_stretch(u, tap, from, to);
        memset(row, 0, (size_t)s.count * sizeof *row);
        for (int64_t i = s.first; i < s.last; i++)
            row[i] = plane[s.at + (i - s.first) * stride];
        row += s.count;
        from += s.count;
    }
}

void mgx_fold_row(const struct mgx_unfold *u, const int64_t *tap, const union mgx_word *row,
                  int64_t from, int64_t to, bool ints, union mgx_word *plane)
{
    const int64_t stride = u->axis[u->rank - 1].stride;
    while (from < to) {
        const struct stretch s = find_stretch(u, tap, from, to);
        union mgx_word *x = plane + s.at;
        for (int64_t i = s.first; i < s.last; i++, x += stride) {
            if (ints)
                x->i = (int64_t)((uint64_t)x->i + (uint64_t)row[i].i);
            else
                x->f += row[i].f;
        }
        row += s.count;
        from += s.count;
    }
}
