// SPDX-License-Identifier: MIT
// nonzero of row-major tensors: counted first, then written, in two looks at the elements.
//
// Elements are compared in their own type; what has a sign bit alone (-0) is a zero.
#include <stdlib.h>

#include "op/op.h"
#include "op/rule/rule.h"
#include "targets/cpu/lower/lower.h"

// The positions of a line of n elements that are not 0; at most n.
#define LINE(name, type)                                                                           \
    static int64_t name(const void *data, int64_t from, int64_t n, int64_t *at)                    \
    {                                                                                              \
        const type *x = (const type *)data + from;                                                 \
        int64_t count = 0;                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                          \
            at[count] = i;                                                                         \
            count += x[i] != 0;                                                                    \
        }                                                                                          \
        return count;                                                                              \
    }                                                                                              \
    static int64_t name##_count(const void *data, int64_t n)                                       \
    {                                                                                              \
        const type *x = data;                                                                      \
        int64_t count = 0;                                                                         \
        for (int64_t i = 0; i < n; i++)                                                            \
            count += x[i] != 0;                                                                    \
        return count;                                                                              \
    }
LINE(bytes, uint8_t)
LINE(floats, float)
LINE(doubles, double)
LINE(words, uint32_t)
LINE(longs, uint64_t)
#undef LINE

static const struct kind {
    int64_t (*line)(const void *data, int64_t from, int64_t n, int64_t *at);
    int64_t (*count)(const void *data, int64_t n);
} kinds[MGX_TYPE_COUNT] = {
    [MGX_BOOL] = {bytes, bytes_count},       [MGX_UINT8] = {bytes, bytes_count},
    [MGX_INT8] = {bytes, bytes_count},       [MGX_FLOAT] = {floats, floats_count},
    [MGX_DOUBLE] = {doubles, doubles_count}, [MGX_INT32] = {words, words_count},
    [MGX_UINT32] = {words, words_count},     [MGX_INT64] = {longs, longs_count},
    [MGX_UINT64] = {longs, longs_count},
};

enum { PIECE = 512 };

// Positions along the last axis that is not 1 run; all others stand still meanwhile.
static void write(const struct kind *kind, const struct mgx_tensor *x, int64_t *out, int64_t total)
{
    const struct mgx_shape *s = &x->shape;
    int64_t found[PIECE], at[MGX_MAX_RANK], k = 0;
    int run = s->rank - 1;
    while (run > 0 && s->lens[run] == 1)
        run--;
    const int64_t n = s->rank ? s->lens[run] : 1, elements = mgx_shape_elements(s);
    for (int64_t from = 0; from < elements; from += n) {
        mgx_shape_multi(s, from, at);
        for (int64_t first = 0; first < n; first += PIECE) {
            const int64_t piece = n - first < PIECE ? n - first : PIECE;
            const int64_t count = kind->line(x->data, from + first, piece, found);
            for (int axis = 0; axis < s->rank && count; axis++)
                for (int64_t i = 0; i < count; i++)
                    out[axis * total + k + i] = axis == run ? first + found[i] : at[axis];
            k += count;
        }
    }
}

enum mgx_status cpu_nonzero(struct mgx_compute_call *c, bool *done)
{
    const struct mgx_tensor *x = c->in[0];
    const struct kind *kind = x->shape.type < MGX_TYPE_COUNT ? &kinds[x->shape.type] : NULL;
    if (!kind || !kind->line || !mgx_shape_is_standard(&x->shape) || !mgx_shape_elements(&x->shape))
        return MGX_OK;
    const int64_t total = kind->count(x->data, mgx_shape_elements(&x->shape));
    const struct mgx_shape result = mgx_shape_make(MGX_INT64, 2, (int64_t[]){x->shape.rank, total});
    TRY(mgx_eval_create(c, &result));
    if (total)
        write(kind, x, c->out->data, total);
    *done = true;
    return MGX_OK;
}
