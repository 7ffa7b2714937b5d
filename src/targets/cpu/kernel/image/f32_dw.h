// SPDX-License-Identifier: MIT
// Body of the depthwise kernels, compiled once per instruction set; see dw.h. The usual kernels are
// unrolled (KINDS), others loop over taps.
//
// Where there are 32 registers two rows of outputs are summed at once: 14 accumulators, the weights
// of an input line's two kernel rows, one input. 3 x 3, stride 1: 36 loads of input and 12 of
// weights for 126 products, so the multipliers are the bound as long as the input comes from L2.
#include "targets/cpu/kernel/image/dw.h"

#include <stddef.h>

#include "targets/cpu/kernel/vector/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

enum {
    PIXELS = 7, // divides the widths of image networks
    MAX_TAPS = 9,
    ROWS = 2,
};

// One step: up to 7 output pixels of one or two rows, one vector of channels.
struct step {
    const struct mgx_dw_args *args;
    const float *weights; // of the vector
    int64_t x;            // position of the first pixel's first tap
    int64_t at;           // the first pixel
    int64_t channel;      // the vector's first, counted as args->offset is
    int pixels, lanes;    // stored
    bool at_edge;         // positions may be outside, or pixels fewer than a step
    bool partial;         // channels are fewer than a vector; then at_edge is set, too
    uint32_t inside;      // bit j: position x + j is inside
};

SIMD bool is_inside(const struct step *s, int64_t x)
{
    return !s->at_edge || (uint64_t)x < (uint64_t)s->args->width;
}

SIMD vf load_pixel(const struct step *s, const float *line, int64_t x)
{
    const float *p = line + x * s->args->pixel;
    return s->partial ? vf_load_some(p, s->lanes) : vf_load(p);
}

SIMD vf spread(vf v, int members, int m)
{
    return members == 1 ? v : vf_spread(v, members, m);
}

// What a kind of kernel is known by when it is compiled; taps 0: any kernel, stride and dilation.
struct kind {
    int taps, stride, dilation, members;
};

// Adds one line to rows first, ... < first + count: every input pixel goes to the outputs it is a
// tap of. w[r]: weights of the kernel row that the line is to row r.
SIMD void add_line(const struct step *s, const float *line, const float *const w[ROWS], int first,
                   int count, struct kind kind, int m, vf acc[ROWS][PIXELS])
{
    vf wv[ROWS][MAX_TAPS];
    UNROLL
    for (int r = first; r < first + count; r++) {
        UNROLL
        for (int k = 0; k < kind.taps; k++)
            wv[r][k] = vf_load(w[r] + k * VL);
    }
    UNROLL
    for (int j = 0; j <= (PIXELS - 1) * kind.stride + (kind.taps - 1) * kind.dilation; j++) {
        if (s->at_edge && !(s->inside & 1u << j))
            continue;
        vf v = spread(load_pixel(s, line, s->x + j), kind.members, m);
        IN_REGISTER(v);
        UNROLL
        for (int k = 0; k < kind.taps; k++) {
            const int i = j - k * kind.dilation;
            if (i < 0 || i % kind.stride || i / kind.stride >= PIXELS)
                continue;
            UNROLL
            for (int r = first; r < first + count; r++)
                acc[r][i / kind.stride] = vf_fma(v, wv[r][k], acc[r][i / kind.stride]);
        }
    }
}

// The same for any kernel: a tap at a time, whose weights stay in registers.
SIMD void add_line_any(const struct step *s, const float *line, const float *const w[ROWS],
                       int first, int count, int members, int m, vf acc[ROWS][PIXELS])
{
    const struct mgx_dw_args *a = s->args;
    for (int64_t k = 0; k < a->kernel; k++) {
        vf wv[ROWS];
        UNROLL
        for (int r = first; r < first + count; r++)
            wv[r] = vf_load(w[r] + k * VL);
        UNROLL
        for (int i = 0; i < PIXELS; i++) {
            const int64_t x = s->x + i * a->stride + k * a->dilation;
            if (!is_inside(s, x))
                continue;
            vf v = spread(load_pixel(s, line, x), members, m);
            IN_REGISTER(v);
            UNROLL
            for (int r = first; r < first + count; r++)
                acc[r][i] = vf_fma(v, wv[r], acc[r][i]);
        }
    }
}

SIMD void add_residual(const struct step *s, int row, vf acc[PIXELS])
{
    const struct mgx_dw_args *a = s->args;
    const int64_t pixel = a->residual_pixel;
    const float *from = a->residual + row * a->residual_row + s->at * pixel + s->channel;
    UNROLL
    for (int i = 0; i < PIXELS; i++) {
        if (s->at_edge && i >= s->pixels)
            continue;
        const float *r = from + i * pixel;
        acc[i] = vf_add(acc[i], s->partial ? vf_load_some(r, s->lanes) : vf_load(r));
    }
}

SIMD void store_pixels(const struct step *s, int row, vf acc[PIXELS])
{
    const struct mgx_dw_args *a = s->args;
    const int64_t pixel = a->y_pixel;
    float *y = a->y + row * a->y_row + s->at * pixel + s->channel;
    if (a->residual)
        add_residual(s, row, acc);
    if (a->clamp) {
        const vf low = vf_set(a->low), high = vf_set(a->high);
        UNROLL
        for (int i = 0; i < PIXELS; i++)
            acc[i] = vf_min(high, vf_max(low, acc[i]));
    }
    UNROLL
    for (int i = 0; i < PIXELS; i++) {
        if (s->at_edge && i >= s->pixels)
            continue;
        if (s->partial)
            vf_store_some(y + i * pixel, acc[i], s->lanes);
        else
            vf_store(y + i * pixel, acc[i]);
    }
}

// Adds line l, which is kernel row kernel_row[r] to row r, to rows first, ... < first + count.
SIMD void add_to(const struct step *s, int l, const int *kernel_row, int first, int count,
                 struct kind kind, vf acc[ROWS][PIXELS])
{
    const struct mgx_dw_args *a = s->args;
    const int64_t kernel = kind.taps ? kind.taps : a->kernel;
    const float *line = a->lines[l] + a->offset + s->channel, *w[ROWS] = {NULL};
    UNROLL
    for (int r = first; r < first + count; r++)
        w[r] = s->weights + kernel_row[r] * kind.members * kernel * VL;
    UNROLL
    for (int m = 0; m < kind.members; m++) {
        if (kind.taps)
            add_line(s, line, w, first, count, kind, m, acc);
        else
            add_line_any(s, line, w, first, count, kind.members, m, acc);
        UNROLL
        for (int r = first; r < first + count; r++)
            w[r] += kernel * VL;
    }
}

// Adds all lines to output row `row`, or to both with rows = 2.
SIMD void add_lines(const struct step *s, int row, int rows, struct kind kind, vf acc[ROWS][PIXELS])
{
    for (int l = 0; l < s->args->line_count; l++) {
        const int *at = &s->args->kernel_rows[ROWS * l];
        if (rows == 1 && at[row] >= 0)
            add_to(s, l, at + row, 0, 1, kind, acc);
        else if (rows == 2 && at[1] < 0)
            add_to(s, l, at, 0, 1, kind, acc);
        else if (rows == 2 && at[0] < 0)
            add_to(s, l, at, 1, 1, kind, acc);
        else if (rows == 2)
            add_to(s, l, at, 0, 2, kind, acc);
    }
}

// Integer sums become floats.
SIMD void rescale(const struct step *s, vf acc[PIXELS])
{
    const struct mgx_dw_args *a = s->args;
    const vf scale = vf_load_some(a->scale + s->channel, s->lanes);
    const vf added = a->bias ? vf_load_some(a->bias + s->channel, s->lanes) : vf_zero();
    UNROLL
    for (int i = 0; i < PIXELS; i++)
        acc[i] = vf_fma(acc[i], scale, added);
}

// Output row `row`, or both with rows = 2.
SIMD void run_step(const struct step *s, int row, int rows, struct kind kind)
{
    const struct mgx_dw_args *a = s->args;
    vf acc[ROWS][PIXELS];
    const vf bias = a->bias && !a->scale ? vf_load_some(a->bias + s->channel, s->lanes) : vf_zero();
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int i = 0; i < PIXELS; i++)
            acc[r][i] = bias;
    }
    add_lines(s, row, rows, kind, acc);
    UNROLL
    for (int r = 0; r < rows; r++) {
        if (a->scale)
            rescale(s, acc[r]);
        store_pixels(s, row + r, acc[r]);
    }
}

// A kind's steps, each in a function of its own, which compiles in half the time that all of them
// take in one: inside the image, at its edge, and there with channels fewer than a vector.
struct steps {
    void (*inside)(const struct step *s, int row);
    void (*at_edge)(const struct step *s, int row);
    void (*partial)(const struct step *s, int row);
};

// The step's pixels, all vectors of channels.
static void run_vectors(const struct steps *steps, struct step *s, bool at_edge, int row)
{
    const struct mgx_dw_args *a = s->args;
    s->weights = a->weights;
    for (s->channel = 0; s->channel < a->channels; s->channel += VL) {
        const int64_t left = a->channels - s->channel;
        s->lanes = left < VL ? (int)left : VL;
        if (left < VL)
            steps->partial(s, row);
        else if (at_edge)
            steps->at_edge(s, row);
        else
            steps->inside(s, row);
        s->weights += a->vector_weights;
    }
}

static uint32_t inside_of(const struct mgx_dw_args *a, int64_t x)
{
    uint32_t bits = 0;
    for (int j = 0; j < 32; j++)
        bits |= (uint32_t)((uint64_t)(x + j) < (uint64_t)a->width) << j;
    return bits;
}

static void run_any(const struct mgx_dw_args *a, const struct steps *one, const struct steps *two)
{
    const int64_t reach = (PIXELS - 1) * a->stride + (a->kernel - 1) * a->dilation;
    struct step s = {.args = a, .x = a->first};
    for (; s.at < a->count; s.at += PIXELS, s.x += PIXELS * a->stride) {
        const int64_t left = a->count - s.at;
        const bool at_edge = left < PIXELS || s.x < 0 || s.x + reach >= a->width;
        s.pixels = left < PIXELS ? (int)left : PIXELS;
        s.inside = at_edge ? inside_of(a, s.x) : ~0u;
        if (two->inside && a->rows == 2)
            run_vectors(two, &s, at_edge, 0);
        else
            for (int r = 0; r < a->rows; r++)
                run_vectors(one, &s, at_edge, r);
        if (a->finish)
            a->finish(a->user, a, s.at, s.pixels);
    }
}

// X(taps, stride, dilation, members); a step's positions are fewer than 32.
#if defined(FEWER_FORMS)
#define KINDS_OF_1(X) X(3, 1, 1, 1) X(0, 0, 0, 1)
#define KINDS_OF_MORE(X) X(0, 0, 0, 2) X(0, 0, 0, 4)
#else
#define KINDS_OF_1(X)                                                                              \
    X(3, 1, 1, 1)                                                                                  \
    X(3, 2, 1, 1)                                                                                  \
    X(5, 1, 1, 1)                                                                                  \
    X(5, 2, 1, 1) X(7, 1, 1, 1) X(9, 1, 1, 1) X(3, 1, 2, 1) X(5, 1, 2, 1) X(0, 0, 0, 1)
#define KINDS_OF_MORE(X) X(0, 0, 0, 2) X(3, 1, 1, 4) X(3, 2, 1, 4) X(0, 0, 0, 4)
#endif
#if defined(VECTOR_OF_4) // too short for groups of 8
#define KINDS_OF_8(X)
#else
#define KINDS_OF_8(X) X(3, 1, 1, 8) X(3, 2, 1, 8) X(0, 0, 0, 8)
#endif

#define STEP(name, place_at_edge, place_partial, rows, ...)                                        \
    static void name(const struct step *place, int row)                                            \
    {                                                                                              \
        struct step s = *place;                                                                    \
        s.at_edge = place_at_edge;                                                                 \
        s.partial = place_partial;                                                                 \
        run_step(&s, row, rows, (struct kind){__VA_ARGS__});                                       \
    }
#define ONE(t, s, d, m)                                                                            \
    STEP(edge_##t##_##s##_##d##_##m, true, MASKS, 1, t, s, d, m)                                   \
    MORE(t, s, d, m)
#if defined(__AVX512F__) // a masked vector costs as much as a whole one; single rows are odd ones
#define MASKS true
#define MORE(t, s, d, m) STEP(inside_##t##_##s##_##d##_##m, false, false, 1, t, s, d, m)
#define PART(t, s, d, m) edge_##t##_##s##_##d##_##m
#define STEPS_1(t, s, d, m)                                                                        \
    STEP(edge_##t##_##s##_##d##_##m, true, true, 1, t, s, d, m)                                    \
    STEP(inside_2_##t##_##s##_##d##_##m, false, false, 2, t, s, d, m)                              \
    STEP(edge_2_##t##_##s##_##d##_##m, true, true, 2, t, s, d, m)
#define OF_1(t, s, d, m)                                                                           \
    {edge_##t##_##s##_##d##_##m, edge_##t##_##s##_##d##_##m, edge_##t##_##s##_##d##_##m},          \
        {inside_2_##t##_##s##_##d##_##m, edge_2_##t##_##s##_##d##_##m,                             \
         edge_2_##t##_##s##_##d##_##m},
#else
#define MASKS false
#define MORE(t, s, d, m)                                                                           \
    STEP(inside_##t##_##s##_##d##_##m, false, false, 1, t, s, d, m)                                \
    STEP(part_##t##_##s##_##d##_##m, true, true, 1, t, s, d, m)
#define PART(t, s, d, m) part_##t##_##s##_##d##_##m
#define STEPS_1(t, s, d, m) ONE(t, s, d, m)
#define OF_1(t, s, d, m) OF_MORE(t, s, d, m)
#endif
#define OF_MORE(t, s, d, m)                                                                        \
    {inside_##t##_##s##_##d##_##m, edge_##t##_##s##_##d##_##m, PART(t, s, d, m)},                  \
        {NULL, NULL, NULL},

KINDS_OF_1(STEPS_1)
KINDS_OF_MORE(ONE)
KINDS_OF_8(ONE)

static const struct {
    struct kind kind;
    struct steps one, two; // rows at once
} kinds[] = {
#define ROW_1(t, s, d, m) {{t, s, d, m}, OF_1(t, s, d, m)},
#define ROW(t, s, d, m) {{t, s, d, m}, OF_MORE(t, s, d, m)},
    KINDS_OF_1(ROW_1) KINDS_OF_MORE(ROW) KINDS_OF_8(ROW)};

static bool is_of(const struct mgx_dw_args *a, struct kind kind)
{
    return kind.members == a->members &&
           (!kind.taps ||
            (kind.taps == a->kernel && kind.stride == a->stride && kind.dilation == a->dilation));
}

static void rows_of_any(const struct mgx_dw_args *a)
{
    size_t i = 0;
    while (!is_of(a, kinds[i].kind))
        i++;
    run_any(a, &kinds[i].one, &kinds[i].two);
}

const struct mgx_dw_kernel NAME(mgx_f32_dw) = {KERNEL_BASE("f32_dw"), VL, rows_of_any};
