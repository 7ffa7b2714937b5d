// SPDX-License-Identifier: MIT
// Matrix products of the reference; see gemm.h.
//
//            COLUMNS                 A panel of b (DEPTH x COLUMNS, 6 KiB) is packed once and stays
//          +---------+               in the first-level cache while all rows of a run over it, two
//    DEPTH |  panel  |               at a time; the sums of a tile live in registers.
//          +---------+
//    a0 -> [ s0 ...  ]
//    a1 -> [ s1 ...  ]
#include "op/reference/gemm.h"

#include <assert.h>
#include <inttypes.h>

#include "base/cancel.h"

enum { COLUMNS = 8, DEPTH = 96 };

#define T double
#define FN(name) name##_doubles
#include "op/reference/gemm_body.inc"
#undef T
#undef FN
#define T uint64_t
#define FN(name) name##_ints
#include "op/reference/gemm_body.inc"

void mgx_gemm_doubles(int64_t m, int64_t n, int64_t k, const double *a, int64_t lda,
                      const double *b, int64_t ldb, double *c, int64_t ldc)
{
    assert(m >= 0 && n >= 0 && k >= 0);
    gemm_doubles(m, n, k, a, lda, b, ldb, c, ldc);
}

void mgx_gemm_ints(int64_t m, int64_t n, int64_t k, const int64_t *a, int64_t lda, const int64_t *b,
                   int64_t ldb, int64_t *c, int64_t ldc)
{
    assert(m >= 0 && n >= 0 && k >= 0);
    gemm_ints(m, n, k, (const uint64_t *)a, lda, (const uint64_t *)b, ldb, (uint64_t *)c, ldc);
}

// --- words ---

static_assert(sizeof(union mgx_word) == 8, "words are used as arrays of either member");

union mgx_word *mgx_scratch_words(struct mgx_compute_call *c, const struct mgx_tensor *t, bool ints)
{
    return ints ? (union mgx_word *)mgx_scratch_ints(c, t)
                : (union mgx_word *)mgx_scratch_doubles(c, t);
}

union mgx_word *mgx_zero_words(struct mgx_compute_call *c, int64_t count)
{
    assert(count >= 0);
    union mgx_word *w = MGX_NEW_ARRAY(c->scratch, union mgx_word, count);
    if (!w)
        mgx_fail_memory(c->diag);
    return w;
}

void mgx_write_words(struct mgx_tensor *t, const union mgx_word *values, bool ints)
{
    if (ints)
        mgx_write_ints(t, &values->i);
    else
        mgx_write_doubles(t, &values->f);
}

void mgx_gemm_words(bool ints, int64_t m, int64_t n, int64_t k, const union mgx_word *a,
                    int64_t lda, const union mgx_word *b, int64_t ldb, union mgx_word *c,
                    int64_t ldc)
{
    if (ints)
        mgx_gemm_ints(m, n, k, &a->i, lda, &b->i, ldb, &c->i, ldc);
    else
        mgx_gemm_doubles(m, n, k, &a->f, lda, &b->f, ldb, &c->f, ldc);
}

struct mgx_tensor mgx_borrow_entry(const struct mgx_tensor *t, int64_t index)
{
    assert(t->shape.rank > 0 && index >= 0 && index < t->shape.lens[0]);
    struct mgx_tensor entry = {.shape = t->shape};
    entry.shape.lens[0] = 1;
    const int64_t offset = index * t->shape.strides[0] * (int64_t)mgx_type_size(t->shape.type);
    entry.data = (char *)t->data + offset;
    return entry;
}

static bool is_narrow(enum mgx_type type)
{
    const bool fp8 = mgx_type_is_float(type) && mgx_type_size(type) == 1 && type != MGX_FP4 &&
                     type != MGX_FP8E8M0;
    return fp8 || type == MGX_BF16;
}

enum mgx_status mgx_quant_result(struct mgx_shape_call *c, enum mgx_type *out)
{
    const enum mgx_type a = c->in[0]->type, b = c->in[1]->type;
    *out = MGX_INT32;
    if (mgx_type_is_integral(a) && mgx_type_is_integral(b) && mgx_type_size(a) <= 4 &&
        mgx_type_size(b) <= 4)
        return MGX_OK;
    *out = MGX_FLOAT;
    if (is_narrow(a) && is_narrow(b))
        return MGX_OK;
    return mgx_fail(c->diag, MGX_INVALID,
                    "%s: takes two integers of up to 32 bits or two of fp8 or bf16, not %s and %s",
                    c->op->name, mgx_type_name(a), mgx_type_name(b));
}

enum mgx_type mgx_quant_unranked(const struct mgx_shape_call *c)
{
    return mgx_type_is_float(c->in[0]->type) ? MGX_FLOAT : MGX_INT32;
}

enum mgx_status mgx_quant_zeros(struct mgx_shape_call *c, const struct mgx_dim *columns)
{
    for (int i = 2; i < c->in_count; i++) {
        const struct mgx_shape *zero = c->in[i], *of = c->in[i - 2];
        if (zero->type != of->type || !mgx_type_is_integral(of->type))
            return mgx_fail(c->diag, MGX_INVALID, "%s: zero point %d is of type %s, its operand %s",
                            c->op->name, i - 2, mgx_type_name(zero->type), mgx_type_name(of->type));
        if (!mgx_shape_is_static(zero) || mgx_shape_elements(zero) == 1)
            continue;
        const int64_t count = mgx_shape_elements(zero);
        if (i == 2 || zero->rank != 1 || count < columns->min || count > columns->max)
            return mgx_fail(c->diag, MGX_INVALID, "%s: zero point %d has %" PRId64 " values",
                            c->op->name, i - 2, count);
    }
    return MGX_OK;
}

bool mgx_quant_shift(struct mgx_compute_call *c, int input, union mgx_word *values, int64_t count,
                     int64_t each)
{
    assert(count >= 0 && each > 0);
    if (c->in_count <= input)
        return true;
    const int64_t *zero = mgx_scratch_ints(c, c->in[input]);
    const int64_t zeros = mgx_shape_elements(&c->in[input]->shape);
    assert(zeros > 0 && c->in[input]->shape.type == c->in[input - 2]->shape.type);
    for (int64_t i = 0; zero && i < count; i++)
        values[i].i -= zero[i / each % zeros];
    return zero != NULL;
}
