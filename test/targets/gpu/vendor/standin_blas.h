// SPDX-License-Identifier: MIT
// What the stand-ins for the makers' libraries share: matrices that lie column by column, in the
// host's memory, multiplied in double; and the calls of a runtime's stand-in.
//
//     d = last(op(a) op(b) + beta c + bias)      m x n, for every batch entry
#pragma once

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define USER(name, ...)                                                                            \
    API int name(__VA_ARGS__);                                                                     \
    API int name(__VA_ARGS__)

enum { BLAS_FLOAT, BLAS_HALF, BLAS_BF16 };
enum { BLAS_BIAS = 4, BLAS_RELU = 2, BLAS_GELU = 32 };

struct blas_matrix {
    void *data;
    int64_t rows, columns, line, batch;
};

struct blas {
    int type, last, batches;
    bool transposed[2];
    double beta;
    int64_t m, n, k;
    struct blas_matrix a, b, c, d;
    const void *bias;
    unsigned char *workspace; // written from end to end, as a library may
    size_t workspace_bytes;
};

static inline double blas_of_half(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const double x = exponent == 0    ? ldexp(fraction, -24)
                     : exponent == 31 ? fraction ? NAN : INFINITY
                                      : ldexp(1024 + fraction, exponent - 25);
    return h >> 15 ? -x : x;
}

static inline uint16_t blas_to_half(double x) // to nearest, ties to even, by halving an interval
{
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    x = fabs(x);
    if (isnan(x))
        return 0x7e00;
    uint16_t low = 0, high = 0x7c00;
    if (x >= 65520)
        return sign | high;
    while (high - low > 1) {
        const uint16_t middle = (uint16_t)((low + high) / 2);
        if (blas_of_half(middle) <= x)
            low = middle;
        else
            high = middle;
    }
    const double up = high == 0x7c00 ? 65536 : blas_of_half(high);
    const double below = x - blas_of_half(low), above = up - x;
    return sign | (below < above || (below == above && !(low & 1)) ? low : high);
}

static inline double blas_load(int type, const void *data, int64_t at)
{
    if (type == BLAS_FLOAT)
        return (double)((const float *)data)[at];
    if (type == BLAS_HALF)
        return blas_of_half(((const uint16_t *)data)[at]);
    const uint32_t bits = (uint32_t)((const uint16_t *)data)[at] << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

static inline void blas_store(int type, void *data, int64_t at, double value)
{
    const float x = (float)value;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (type == BLAS_FLOAT)
        ((float *)data)[at] = x;
    else if (type == BLAS_HALF)
        ((uint16_t *)data)[at] = blas_to_half(value);
    else
        ((uint16_t *)data)[at] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline double blas_last(const struct blas *p, double x, int64_t i)
{
    if (p->last & BLAS_BIAS)
        x += blas_load(p->type, p->bias, i);
    if (p->last & BLAS_RELU)
        x = x > 0 ? x : 0;
    if (p->last & BLAS_GELU)
        x *= 0.5 * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
    return x;
}

static inline void blas_multiply(void *data)
{
    const struct blas *p = data;
    if (p->workspace_bytes)
        memset(p->workspace, 0xcd, p->workspace_bytes);
    for (int64_t e = 0; e < p->batches * p->m * p->n; e++) {
        const int64_t i = e % p->m, j = e / p->m % p->n, batch = e / p->m / p->n;
        double sum = 0;
        for (int64_t k = 0; k < p->k; k++) {
            const int64_t a = p->transposed[0] ? i * p->a.line + k : k * p->a.line + i;
            const int64_t b = p->transposed[1] ? k * p->b.line + j : j * p->b.line + k;
            sum += blas_load(p->type, p->a.data, batch * p->a.batch + a) *
                   blas_load(p->type, p->b.data, batch * p->b.batch + b);
        }
        if (p->beta != 0)
            sum += p->beta * blas_load(p->type, p->c.data, batch * p->c.batch + j * p->c.line + i);
        blas_store(p->type, p->d.data, batch * p->d.batch + j * p->d.line + i,
                   blas_last(p, sum, i));
    }
}

// Are the matrices what the product needs, each line as long as its matrix at least?
static inline bool blas_is_sound(const struct blas *p)
{
    const struct blas_matrix *const all[] = {&p->a, &p->b, &p->c, &p->d};
    for (int i = 0; i < 4; i++)
        if (all[i]->rows < 1 || all[i]->columns < 1 || all[i]->line < all[i]->rows)
            return false;
    return p->c.rows == p->m && p->c.columns == p->n && p->d.rows == p->m && p->d.columns == p->n &&
           (p->transposed[0] ? p->a.columns : p->a.rows) == p->m &&
           (p->transposed[0] ? p->a.rows : p->a.columns) == p->k &&
           (p->transposed[1] ? p->b.columns : p->b.rows) == p->k &&
           (p->transposed[1] ? p->b.rows : p->b.columns) == p->n;
}

// --- errors on demand, and the runtime's stand-in ---

static char blas_failing[64];
static int blas_fail_after;

API void standin_vendor_fail(const char *call, int after);
API void standin_vendor_fail(const char *call, int after)
{
    snprintf(blas_failing, sizeof blas_failing, "%s", call ? call : "");
    blas_fail_after = after;
}

static _Atomic int blas_live; // objects not given back

API int standin_vendor_live(void);
API int standin_vendor_live(void)
{
    return blas_live;
}

static inline bool blas_fails(const char *call)
{
    return strcmp(call, blas_failing) == 0 && blas_fail_after-- <= 0;
}

typedef int (*blas_enqueue)(void *stream, void (*fn)(void *data), const void *data, size_t bytes);

static inline int blas_give(const char *runtime, void *stream, void (*work)(void *data),
                            const void *data, size_t bytes)
{
    void *library = dlopen(runtime, RTLD_NOW | RTLD_NOLOAD);
    blas_enqueue enqueue = NULL;
    if (library) {
        *(void **)&enqueue = dlsym(library, "standin_enqueue");
        dlclose(library);
    }
    return enqueue ? enqueue(stream, work, data, bytes) : 1;
}

static inline int blas_launch(const char *runtime, void *stream, const struct blas *p)
{
    return blas_give(runtime, stream, blas_multiply, p, sizeof *p);
}
