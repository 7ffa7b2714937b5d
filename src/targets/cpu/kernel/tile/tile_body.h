// SPDX-License-Identifier: MIT
// Body of the micro-kernels, compiled once per instruction set and type; see tile.h for the
// contract. Operands of any type are moved as vectors of 32-bit groups; only `mac` knows what is in
// them.
//
// Every function here is inlined into one instance per number of rows and vectors, in which all
// loops over rows are unrolled and the accumulators are registers. What is not a multiplication
// counts too: a core issues four instructions a cycle, of which 14 x 32 takes three, and where
// another process shares the core, every second cycle is that one's. So addresses are few and
// cheap (a base for every fourth row, one and three times a_row for the rows between), lines are
// prefetched once for four k, and some rows are read within the multiplication.
//
// The including file defines ROWS, HALF and NV (vectors in a full panel). Unless it multiplies
// floats it also defines what its instruction is: MAC(c, a, b), a statement that adds to c, and
// INTEGER as 1 where the sums are integers, NARROWS as 1 with load_bf16 and store_bf16 where c and
// the residual may be bf16.
#include "targets/cpu/kernel/tile/tile.h"

#include <assert.h>
#include <stddef.h>

#include "targets/cpu/kernel/tile/tile_pack.h"
#include "targets/cpu/kernel/vector/simd.h"

#ifndef INTEGER
#define INTEGER 0
#endif

#ifndef NARROWS
#define NARROWS 0
#endif

// c + a * b, over the lanes' groups. Sums are added to where they are: left to choose, the compiler
// moves them about until registers run out.
SIMD vf mac(vf a, vf b, vf c)
{
#if defined(MAC)
    MAC(c, a, b);
    return c;
#elif defined(__AVX2__)
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
#else
    return vf_fma(a, b, c);
#endif
}

#if defined(__AVX512F__) && !defined(MAC)
#define READS_IN_PLACE (NV == 2)
#else
#define READS_IN_PLACE 0
#endif

// The same with a group that is read within the multiplication. For two vectors that is one
// instruction less to issue than with a load before, and one load more; for four, three loads more.
SIMD vf mac_in_place(const group *a, vf b, vf c)
{
#if READS_IN_PLACE
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
    return c;
#else
    return mac(vf_set(*a), b, c);
#endif
}

// Rows of A: a base every fourth row of a half, so that few registers hold all addresses.
enum { BASE_ROWS = 4, HALF_BASES = (HALF + BASE_ROWS - 1) / BASE_ROWS };

struct rows {
    const char *base[2 * HALF_BASES];
    int64_t one, three;
};

// The empty asm hides how a base was computed: a compiler that knows keeps the parts in registers
// of their own, which the accumulators need.
SIMD void start_rows(struct rows *r, const struct mgx_tile_args *args, int64_t tap)
{
    UNROLL
    for (int i = 0; i < 2 * HALF_BASES; i++) {
        r->base[i] = args->a[i / HALF_BASES] + i % HALF_BASES * BASE_ROWS * r->one + tap;
        __asm__("" : "+r"(r->base[i]));
    }
}

SIMD void advance_rows(struct rows *r, int64_t bytes)
{
    UNROLL
    for (int i = 0; i < 2 * HALF_BASES; i++)
        r->base[i] += bytes;
}

SIMD const group *at_row(const struct rows *r, int i, int k)
{
    const int in_half = i < HALF ? i : i - HALF, from = in_half % BASE_ROWS;
    const char *base =
        r->base[(i < HALF ? 0 : HALF_BASES) + in_half / BASE_ROWS] + k * (int64_t)sizeof(float);
    return (const group *)(from == 3 ? base + r->three : base + from * r->one);
}

// Only an address without an index is as cheap within a multiplication as before it.
SIMD bool lies_at_base(int i)
{
    return (i < HALF ? i : i - HALF) % BASE_ROWS == 0;
}

// One k: c[i][v] += a[i][k] * b[v].
SIMD void step(int count, int nv, const struct rows *r, int k, const char *b, vf c[][NV])
{
    vf bv[NV];
    UNROLL
    for (int v = 0; v < nv; v++)
        bv[v] = vf_load((const float *)(const void *)b + v * VL);
    UNROLL
    for (int i = 0; i < count; i++) {
        const group *from = at_row(r, i, k);
        const bool in_place = READS_IN_PLACE && lies_at_base(i);
        const vf a = in_place ? vf_zero() : vf_set(*from);
        UNROLL
        for (int v = 0; v < nv; v++)
            c[i][v] = in_place ? mac_in_place(from, bv[v], c[i][v]) : mac(a, bv[v], c[i][v]);
    }
}

// What comes next: one line, two, four or eight.
SIMD void prefetch_ahead(const char *p, int64_t step)
{
    __builtin_prefetch(p, 0, 2);
    if (step <= 64)
        return;
    __builtin_prefetch(p + 64, 0, 2);
    if (step <= 128)
        return;
    __builtin_prefetch(p + 128, 0, 2);
    __builtin_prefetch(p + 192, 0, 2);
    if (step <= 256)
        return;
    for (int at = 256; at < 512; at += 64)
        __builtin_prefetch(p + at, 0, 2);
}

// --- the tile's own lines ---

// Row i of c or of the residual.
SIMD float *out_row(char *const half[2], int64_t stride, int i)
{
    return (float *)(void *)(i < HALF ? half[0] + stride * i : half[1] + stride * (i - HALF));
}

SIMD const float *in_row(const char *const half[2], int64_t stride, int i)
{
    return (const float *)(const void *)(i < HALF ? half[0] + stride * i
                                                  : half[1] + stride * (i - HALF));
}

// Bytes of a value of c and of the residual.
SIMD int64_t out_size(const struct mgx_tile_args *args)
{
    return NARROWS && args->c_bf16 ? 2 : (int64_t)sizeof(float);
}

SIMD int64_t residual_size(const struct mgx_tile_args *args)
{
    return NARROWS && args->residual_bf16 ? 2 : (int64_t)sizeof(float);
}

// Lines of C, and of what is added to it, are fetched while the sums are made: a store to a line
// that is not there waits for all of it. A row at a time: all at once they keep everything waiting
// that comes behind them, until memory has brought all but the last dozen.
struct fetch {
    const char *c, *residual;        // of the next row; NULL: nothing is added
    int64_t c_bytes, residual_bytes; // of a row
    int left;                        // rows
};

SIMD void fetch_lines(const char *p, int64_t bytes, bool write)
{
    for (int64_t at = 0; at < bytes; at += 64) {
        if (write)
            __builtin_prefetch(p + at, 1, 3);
        else
            __builtin_prefetch(p + at, 0, 3);
    }
}

SIMD void fetch_row(struct fetch *f, int count, const struct mgx_tile_args *args)
{
    if (count > HALF && f->left == count - HALF) {
        f->c = args->c[1];
        f->residual = f->residual ? args->residual[1] : NULL;
    }
    fetch_lines(f->c, f->c_bytes, true);
    f->c += args->c_row;
    if (f->residual) {
        fetch_lines(f->residual, f->residual_bytes, false);
        f->residual += args->residual_row;
    }
    f->left--;
}

// Few lines are fetched at once, and those of shallow sums, which are over before the last row's
// turn.
SIMD struct fetch start_fetch(int count, int nv, const struct mgx_tile_args *args)
{
    enum { AT_ONCE = 11 }; // lines that a core waits for without stopping
    const bool adds = args->residual[0] && args->residual[0] != args->c[0];
    const int64_t c_bytes = nv * VL * out_size(args), bytes = nv * VL * residual_size(args);
    const int64_t lines = count * ((c_bytes + (adds ? bytes : 0)) / 64);
    struct fetch f = {args->c[0], adds ? args->residual[0] : NULL, c_bytes, bytes, count};
    if (lines > AT_ONCE && (uint64_t)args->depth / 4 * (uint64_t)args->tap_count >= (uint64_t)count)
        return f;
    UNROLL
    for (int i = 0; i < count; i++)
        fetch_lines((const char *)out_row(args->c, args->c_row, i), c_bytes, true);
    if (f.residual) {
        UNROLL
        for (int i = 0; i < count; i++)
            fetch_lines((const char *)in_row(args->residual, args->residual_row, i), bytes, false);
    }
    f.left = 0;
    return f;
}

// What the loops over k go along.
struct sums {
    struct rows a;
    const char *b, *ahead;
    int64_t b_row, ahead_step, k; // k: left of this tap
};

SIMD void four_steps(int count, int nv, struct sums *s, vf c[][NV])
{
    prefetch_ahead(s->ahead, s->ahead_step);
    s->ahead += s->ahead_step;
    UNROLL
    for (int u = 0; u < 4; u++)
        step(count, nv, &s->a, u, s->b + u * s->b_row, c);
    s->b += 4 * s->b_row;
    advance_rows(&s->a, 4 * sizeof(float));
    s->k -= 4;
}

SIMD void sum_taps(int count, int nv, const struct mgx_tile_args *args, struct fetch own,
                   vf c[][NV])
{
    const int64_t panel_row = nv * VL * (int64_t)sizeof(float);
    struct sums s = {
        .a = {.one = args->a_row, .three = args->a_row * 3},
        .b = args->b,
        .ahead = args->ahead,
        .b_row = count > MGX_TILE_RAW_ROWS ? panel_row : args->b_row,
        .ahead_step = args->ahead_step,
    };
    assert(s.b_row == args->b_row);
    for (int64_t t = 0; t < args->tap_count; t++) {
        start_rows(&s.a, args, args->taps[t]);
        s.k = args->depth;
        while (s.k >= 4) {
            if (own.left > 0)
                fetch_row(&own, count, args);
            four_steps(count, nv, &s, c);
        }
        for (; s.k > 0; s.k--) {
            step(count, nv, &s.a, 0, s.b, c);
            s.b += s.b_row;
            advance_rows(&s.a, sizeof(float));
        }
    }
}

// --- before and after the sum ---

SIMD vf load_left(const float *p, int left)
{
    if (!p || left <= 0)
        return vf_zero();
    return left >= VL ? vf_load(p) : vf_load_some(p, left);
}

// Vector v of what the sums begin with.
SIMD vf first_sum(const struct mgx_tile_args *args, int v)
{
    if (INTEGER)
        return args->start ? vf_load((const float *)(const void *)args->start + v * VL) : vf_zero();
    return load_left(args->bias ? args->bias + v * VL : NULL, args->cols - v * VL);
}

SIMD void start(int count, int nv, const struct mgx_tile_args *args, vf c[][NV])
{
    vf first[NV];
    UNROLL
    for (int v = 0; v < nv; v++)
        first[v] = first_sum(args, v);
    UNROLL
    for (int i = 0; i < count; i++) {
        UNROLL
        for (int v = 0; v < nv; v++)
            c[i][v] = first[v];
    }
}

// Integer sums to floats.
SIMD void rescale(int count, int nv, const struct mgx_tile_args *args, vf c[][NV])
{
    if (!INTEGER || !args->scale)
        return;
    UNROLL
    for (int v = 0; v < nv; v++) {
        const int left = args->cols - v * VL;
        const vf scale = load_left(args->scale + v * VL, left);
        const vf bias = load_left(args->bias ? args->bias + v * VL : NULL, left);
        UNROLL
        for (int i = 0; i < count; i++)
            c[i][v] = vf_fma(vf_from_int(c[i][v]), scale, bias);
    }
}

// Adds a residual of bf16; `last` lanes of the last vector.
SIMD void add_narrow(int count, int nv, int last, const struct mgx_tile_args *args, vf c[][NV])
{
#if NARROWS
    UNROLL
    for (int i = 0; i < count; i++) {
        const uint16_t *from =
            (const uint16_t *)(const void *)in_row(args->residual, args->residual_row, i);
        UNROLL
        for (int v = 0; v < nv; v++)
            c[i][v] = vf_add(c[i][v], load_bf16(from + v * VL, v + 1 < nv ? VL : last));
    }
#else
    (void)count, (void)nv, (void)last, (void)args, (void)c;
#endif
}

SIMD void store_narrow(int count, int nv, int last, const struct mgx_tile_args *args, vf c[][NV])
{
#if NARROWS
    UNROLL
    for (int i = 0; i < count; i++) {
        uint16_t *to = (uint16_t *)(void *)out_row(args->c, args->c_row, i);
        UNROLL
        for (int v = 0; v < nv; v++)
            store_bf16(to + v * VL, c[i][v], v + 1 < nv ? VL : last);
    }
#else
    (void)count, (void)nv, (void)last, (void)args, (void)c;
#endif
}

// Stores the tile; `last` lanes of the last vector.
SIMD void store_rows(int count, int nv, int last, const struct mgx_tile_args *args, vf c[][NV])
{
    if (NARROWS && args->residual[0] && args->residual_bf16) {
        add_narrow(count, nv, last, args, c);
    } else if (args->residual[0]) {
        UNROLL
        for (int i = 0; i < count; i++) {
            const float *from = in_row(args->residual, args->residual_row, i);
            UNROLL
            for (int v = 0; v < nv; v++)
                c[i][v] =
                    vf_add(c[i][v], last == VL || v + 1 < nv ? vf_load(from + v * VL)
                                                             : vf_load_some(from + v * VL, last));
        }
    }
    if (args->clamp) {
        const vf low = vf_set(args->low), high = vf_set(args->high);
        UNROLL
        for (int i = 0; i < count; i++) {
            UNROLL
            for (int v = 0; v < nv; v++)
                c[i][v] = vf_min(high, vf_max(low, c[i][v]));
        }
    }
    if (NARROWS && args->c_bf16) {
        store_narrow(count, nv, last, args, c);
        return;
    }
    UNROLL
    for (int i = 0; i < count; i++) {
        float *to = out_row(args->c, args->c_row, i);
        UNROLL
        for (int v = 0; v < nv; v++) {
            if (last == VL || v + 1 < nv)
                vf_store(to + v * VL, c[i][v]);
            else
                vf_store_some(to + v * VL, c[i][v], last);
        }
    }
}

SIMD void store_full(int count, int nv, const struct mgx_tile_args *args, vf c[][NV])
{
    store_rows(count, nv, VL, args, c);
}

// The same for a tile that ends within a vector where masked stores are slow: sums[i][v] lie in
// memory, nv * VL to a row.
static __attribute__((noinline)) void
store_part(int count, int nv, const struct mgx_tile_args *args, const float *sums)
{
    for (int i = 0; i < count; i++)
        for (int v = 0; v * VL < args->cols; v++) {
            const int left = args->cols - v * VL, n = left < VL ? left : VL;
            vf x = vf_load(sums + (i * nv + v) * VL);
            if (args->residual[0])
                x = vf_add(x,
                           vf_load_some(in_row(args->residual, args->residual_row, i) + v * VL, n));
            if (args->clamp)
                x = vf_min(vf_set(args->high), vf_max(vf_set(args->low), x));
            vf_store_some(out_row(args->c, args->c_row, i) + v * VL, x, n);
        }
}

SIMD void end_in_memory(int count, int nv, const struct mgx_tile_args *args, vf c[][NV])
{
    float sums[ROWS * NV * VL];
    UNROLL
    for (int i = 0; i < count; i++) {
        UNROLL
        for (int v = 0; v < nv; v++)
            vf_store(sums + (i * nv + v) * VL, c[i][v]);
    }
    store_part(count, nv, args, sums);
}

// Integer sums, and floats of them. What is more than a store of whole vectors ends in memory:
// strips are fast at that, and without it the code of all tiles compiles in half the time.
SIMD void end_integers(int count, int nv, const struct mgx_tile_args *args, vf c[][NV])
{
    rescale(count, nv, args, c);
    if (args->residual[0] || args->clamp || args->cols != nv * VL) {
        end_in_memory(count, nv, args, c);
        return;
    }
    UNROLL
    for (int i = 0; i < count; i++) {
        UNROLL
        for (int v = 0; v < nv; v++)
            vf_store(out_row(args->c, args->c_row, i) + v * VL, c[i][v]);
    }
}

SIMD void tile(int count, int nv, const struct mgx_tile_args *args)
{
    assert(args->cols >= 1 && args->cols <= nv * VL);
    vf c[ROWS][NV];
    const struct fetch own = start_fetch(count, nv, args);
    const int last = args->cols - (nv - 1) * VL;
    start(count, nv, args, c);
    sum_taps(count, nv, args, own, c);
    if (INTEGER)
        end_integers(count, nv, args, c);
    else if (args->cols == nv * VL)
        store_full(count, nv, args, c);
    else if (VL == 16 && last > 0 && last < VL)
        store_rows(count, nv, last, args, c);
    else
        end_in_memory(count, nv, args, c);
}

#define TILE(count)                                                                                \
    static void wide_##count(const struct mgx_tile_args *args)                                     \
    {                                                                                              \
        tile(count, NV, args);                                                                     \
    }                                                                                              \
    static void narrow_##count(const struct mgx_tile_args *args)                                   \
    {                                                                                              \
        tile(count, NV / 2, args);                                                                 \
    }

// --- one and two rows: several panels side by side ---

// The arguments of one panel of several.
SIMD struct mgx_tile_args panel_args(const struct mgx_tile_args *args, int p)
{
    struct mgx_tile_args one = *args;
    const int64_t values = p * NV * VL;
    one.cols = NV * VL;
    one.bias += args->bias ? p * NV * VL : 0;
    one.scale += args->scale ? p * NV * VL : 0;
    if (args->start)
        one.start =
            (const int32_t *)(const void *)((const char *)args->start + p * args->start_panel);
    one.c[0] += values * out_size(args);
    one.residual[0] += args->residual[0] ? values * residual_size(args) : 0;
    return one;
}

// Weights come from L2 or beyond at one row of them per multiplication or two: the hardware's own
// prefetching keeps up only when the loads do not wait for arithmetic as well. Bytes of each panel
// of several, and of one that is read alone: at 50 GB/s and 100 ns 5 KB are on their way.
enum { FEW_AHEAD = 2048, STREAM_AHEAD = 6144 };

SIMD void prefetch_row(const char *p)
{
    UNROLL
    for (int i = 0; i < NV * VL * (int)sizeof(float); i += 64)
        __builtin_prefetch(p + i, 0, 3);
}

SIMD void few_rows(int count, int panels, int ahead, const struct mgx_tile_args *args)
{
    vf c[MGX_TILE_MAX_PANELS * 2][NV];
    UNROLL
    for (int p = 0; p < panels; p++) {
        const struct mgx_tile_args one = panel_args(args, p);
        start(count, NV, &one, c + p * count);
    }
    const char *b = args->b;
    for (int64_t t = 0; t < args->tap_count; t++) {
        const char *a = args->a[0] + args->taps[t];
        for (int64_t k = 0; k < args->depth; k++, b += args->b_row, a += sizeof(float)) {
            UNROLL
            for (int i = 0; i < count; i++) {
                const vf x = vf_set(*(const group *)(a + i * args->a_row));
                UNROLL
                for (int p = 0; p < panels; p++) {
                    const float *bp = (const float *)(const void *)(b + p * args->b_panel);
                    if (i == 0)
                        prefetch_row(b + p * args->b_panel + ahead);
                    UNROLL
                    for (int v = 0; v < NV; v++)
                        c[p * count + i][v] = mac(x, vf_load(bp + v * VL), c[p * count + i][v]);
                }
            }
        }
    }
    UNROLL
    for (int p = 0; p < panels; p++) {
        const struct mgx_tile_args one = panel_args(args, p);
        rescale(count, NV, &one, c + p * count);
        store_full(count, NV, &one, c + p * count);
    }
}

static void few_1(const struct mgx_tile_args *args)
{
    few_rows(1, 4, FEW_AHEAD, args);
}

static void few_2(const struct mgx_tile_args *args)
{
    few_rows(2, 2, FEW_AHEAD, args);
}

// A sum of one panel waits for its own last step: 128 bytes in four cycles with AVX-512, more than
// memory gives; half of that with AVX2, where several panels stay the better way from L3.
#ifdef __AVX512F__
static void stream_1(const struct mgx_tile_args *args)
{
    few_rows(1, 1, STREAM_AHEAD, args);
}

static void stream_2(const struct mgx_tile_args *args)
{
    few_rows(2, 1, STREAM_AHEAD, args);
}
#define STREAMS .stream = {NULL, stream_1, stream_2}
#else
#define STREAMS .stream = {NULL}
#endif

#define OF_FEW .few = {NULL, few_1, few_2}, .few_panels = {0, 4, 2}, STREAMS

#ifndef MAC
// --- both operands with contiguous depth ---

static __attribute__((noinline)) void store_dots(int count, const struct mgx_tile_args *args,
                                                 const float sums[16])
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < args->cols; j++) {
            float x = sums[i * 4 + j] + (args->bias ? args->bias[j] : 0.0f);
            if (args->residual[0])
                x += in_row(args->residual, args->residual_row, i)[j];
            x = args->clamp && x < args->low ? args->low : x;
            x = args->clamp && x > args->high ? args->high : x;
            out_row(args->c, args->c_row, i)[j] = x;
        }
}

SIMD void dot_rows(int count, const struct mgx_tile_args *args)
{
    vf c[4][4];
    UNROLL
    for (int i = 0; i < count; i++) {
        UNROLL
        for (int j = 0; j < 4; j++)
            c[i][j] = vf_zero();
    }
    const float *a[4], *b[4];
    UNROLL
    for (int i = 0; i < 4; i++) { // columns that do not exist repeat the first
        a[i] = (const float *)(const void *)(args->a[0] + (i < count ? i : 0) * args->a_row);
        b[i] = (const float *)(const void *)(args->b + (i < args->cols ? i : 0) * args->b_row);
    }
    for (int64_t k = 0; k < args->depth; k += VL) {
        const int64_t left = args->depth - k;
        const int n = left < VL ? (int)left : VL;
        vf bv[4];
        UNROLL
        for (int j = 0; j < 4; j++)
            bv[j] = n == VL ? vf_load(b[j] + k) : vf_load_some(b[j] + k, n);
        UNROLL
        for (int i = 0; i < count; i++) {
            const vf av = n == VL ? vf_load(a[i] + k) : vf_load_some(a[i] + k, n);
            UNROLL
            for (int j = 0; j < 4; j++)
                c[i][j] = vf_fma(av, bv[j], c[i][j]);
        }
    }
    float sums[16] = {0};
    UNROLL
    for (int i = 0; i < count; i++) {
        UNROLL
        for (int j = 0; j < 4; j++)
            sums[i * 4 + j] = vf_sum(c[i][j]);
    }
    store_dots(count, args, sums);
}

static void dot(const struct mgx_tile_args *args, int rows)
{
    assert(args->cols >= 1 && args->cols <= 4 && args->tap_count == 1);
    switch (rows) {
    case 1:
        dot_rows(1, args);
        break;
    case 2:
        dot_rows(2, args);
        break;
    case 3:
        dot_rows(3, args);
        break;
    default:
        dot_rows(4, args);
    }
}

#endif

// --- tiles of up to 14 rows, as AVX-512 has them ---

#define TILES_14                                                                                   \
    TILE(1)                                                                                        \
    TILE(2)                                                                                        \
    TILE(3)                                                                                        \
    TILE(4)                                                                                        \
    TILE(5)                                                                                        \
    TILE(6)                                                                                        \
    TILE(7)                                                                                        \
    TILE(8)                                                                                        \
    TILE(9)                                                                                        \
    TILE(10)                                                                                       \
    TILE(11)                                                                                       \
    TILE(12)                                                                                       \
    TILE(13)                                                                                       \
    TILE(14)

#define TILES_6                                                                                    \
    TILE(1)                                                                                        \
    TILE(2)                                                                                        \
    TILE(3)                                                                                        \
    TILE(4)                                                                                        \
    TILE(5)                                                                                        \
    TILE(6)

// What a kernel of them is but for its types.
#define OF_TILES_6                                                                                 \
    .rows = ROWS, .half = HALF, .cols = NV * VL, .vector = VL,                                     \
    .wide = {NULL, wide_1, wide_2, wide_3, wide_4, wide_5, wide_6},                                \
    .narrow = {NULL, narrow_1, narrow_2, narrow_3, narrow_4, narrow_5, narrow_6}, OF_FEW,          \
    .pack_transposed = pack_transposed

#define OF_TILES_14                                                                                \
    .rows = ROWS, .half = HALF, .cols = NV * VL, .vector = VL,                                     \
    .wide = {NULL,   wide_1, wide_2,  wide_3,  wide_4,  wide_5,  wide_6, wide_7,                   \
             wide_8, wide_9, wide_10, wide_11, wide_12, wide_13, wide_14},                         \
    .narrow = {NULL,     narrow_1, narrow_2,  narrow_3,  narrow_4,  narrow_5,  narrow_6, narrow_7, \
               narrow_8, narrow_9, narrow_10, narrow_11, narrow_12, narrow_13, narrow_14},         \
    OF_FEW, .pack_transposed = pack_transposed
