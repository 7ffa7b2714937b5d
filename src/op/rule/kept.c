// SPDX-License-Identifier: MIT
// See kept.h.
#include "op/rule/kept.h"

#include <assert.h>
#include <inttypes.h>

// --- shapes ---

static enum mgx_status require_scales(struct mgx_shape_call *c, int in, int scale, int heads,
                                      struct mgx_dim size)
{
    const struct mgx_shape *s = c->in[scale];
    if (s->type != MGX_FLOAT)
        return mgx_fail(c->diag, MGX_INVALID, "%s: scales of a cache are float_type, not %s",
                        c->op->name, mgx_type_name(s->type));
    TRY(mgx_require_rank(c, scale, 1, 2));
    if (s->rank == 1)
        return mgx_require_fixed(c, scale, 0, 1);
    struct mgx_dim head = mgx_shape_dim(c->in[in], heads);
    TRY(mgx_require_length(c, scale, 0, &head));
    return mgx_require_length(c, scale, 1, &size);
}

enum mgx_status mgx_require_kept(struct mgx_shape_call *c, int64_t kept, int in, int scale,
                                 int heads, struct mgx_dim size)
{
    const enum mgx_type type = kept == 4 ? MGX_UINT8 : MGX_INT8;
    if (kept != 4 && kept != 8)
        return mgx_fail(c->diag, MGX_INVALID, "%s: kept is %" PRId64 ", not 0, 4 or 8", c->op->name,
                        kept);
    if (c->in[in]->type != type)
        return mgx_fail(c->diag, MGX_INVALID, "%s: a cache of %" PRId64 " bits is %s, not %s",
                        c->op->name, kept, mgx_type_name(type), mgx_type_name(c->in[in]->type));
    struct mgx_dim bytes = {.min = mgx_kept_bytes(kept, size.min),
                            .max = size.max >= MGX_DIM_ANY ? MGX_DIM_ANY
                                                           : mgx_kept_bytes(kept, size.max)};
    TRY(mgx_require_length(c, in, 3, &bytes));
    return require_scales(c, in, scale, heads, size);
}

// --- values ---

static double rounded(enum mgx_type type, double x)
{
    double cell;
    mgx_store_double(type, &cell, 0, x);
    return mgx_load_double(type, &cell, 0);
}

static double number_at(int64_t kept, const int64_t *row, int64_t i)
{
    return kept == 4 ? (double)(row[i / 2] >> i % 2 * 4 & 15) - 8 : (double)row[i];
}

static const double *widened(struct mgx_compute_call *c, int64_t kept, int in, int scale, int heads,
                             int64_t size, enum mgx_type type)
{
    const struct mgx_shape *s = &c->in[in]->shape;
    const int64_t bytes = s->lens[3], rows = s->lens[0] * s->lens[1] * s->lens[2];
    const bool each = c->in[scale]->shape.rank == 2;
    const int64_t *x = mgx_scratch_ints(c, c->in[in]);
    const double *scales = mgx_scratch_doubles(c, c->in[scale]);
    double *y = mgx_arena_array(c->scratch, (size_t)(rows * size) + 1, sizeof *y);
    assert(s->rank == 4 && bytes == mgx_kept_bytes(kept, size));
    if (!x || !scales || !y)
        return NULL;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t head = heads == 1 ? r / s->lens[2] % s->lens[1] : r % s->lens[2];
        for (int64_t i = 0; i < size; i++) {
            const double by = scales[each ? head * size + i : 0];
            y[r * size + i] = rounded(type, (float)(number_at(kept, x + r * bytes, i) * by));
        }
    }
    return y;
}

// The scales are the last two inputs.
const double *mgx_kept_cache(struct mgx_compute_call *c, int64_t kept, int in, int heads)
{
    const struct mgx_shape *q = &c->in[0]->shape;
    assert(in == 1 || in == 2);
    return kept ? widened(c, kept, in, c->in_count - 3 + in, heads, q->lens[3], q->type)
                : mgx_scratch_doubles(c, c->in[in]);
}
