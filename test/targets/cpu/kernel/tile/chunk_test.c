// SPDX-License-Identifier: MIT
// Strips of bytes, in chunks and widened to 16 bits, against plain sums: weights of every size up to
// those that fill a sum of 16 bits alone, zero points at both ends, activations that are all 255,
// sizes around the tile, taps that lie apart, runs that are no whole groups, steps to bytes with
// residuals and tables; whole panels of many rows, one or two at once.
#include "targets/cpu/kernel/product/gemm.h"
#include "targets/cpu/kernel/tile/chunk.h"

#include "targets/cpu/kernel/ends.h"

enum { MOST_TAPS = 4, MOST_COLUMNS = 96 };

struct problem {
    struct mgx_chunk_matrix matrix;
    int64_t offset[MOST_TAPS], rows, a_row, depth;
    int32_t zero[MOST_COLUMNS];
    struct buffer a, b;
    int64_t *expected; // [rows][columns]
};

// Weights up to `size`; some zero, some problems whole rows of them.
static int weight(struct rng *r, int size, bool is_signed)
{
    const int kind = rng_below(r, 8);
    const int v = kind == 0   ? 0
                  : kind == 1 ? size
                  : kind == 2 ? -size
                              : rng_below(r, 2 * size + 1) - size;
    const int low = is_signed ? -128 : 0, at = is_signed ? v : v + 128;
    return at < low ? low : at > low + 255 ? low + 255 : at;
}

static uint8_t activation(struct rng *r, int kind)
{
    return kind == 0 ? 255 : (uint8_t)(rng_below(r, 4) ? rng_below(r, 256) : 255);
}

static void problem_init(struct problem *p, struct rng *r, int size)
{
    static const int zeros[] = {0, 128, 255, 3};
    const bool whole = rng_below(r, 3) == 0; // deep, whole panels, several tiles
    *p = (struct problem){.rows = whole ? 9 + rng_below(r, 70) : 1 + rng_below(r, 20)};
    struct mgx_chunk_matrix *m = &p->matrix;
    const bool is_signed = rng_below(r, 2);
    m->type = is_signed ? MGX_KERNEL_S8 : MGX_KERNEL_U8;
    m->columns = whole ? 32 * (1 + rng_below(r, 3)) : 1 + rng_below(r, 40);
    m->valid = (whole ? 16 : 1) + rng_below(r, 30);
    m->inner = (m->valid + 3) & ~INT64_C(3);
    const int elements = 1 + rng_below(r, 3);
    m->taps = whole ? 1 : 1 + rng_below(r, MOST_TAPS);
    m->run = m->inner * elements;
    m->kernel[0] = 1;
    m->kernel[1] = m->taps;
    m->kernel[2] = elements;
    p->depth = m->taps * elements * m->valid;
    if (rng_below(r, 3)) { // as ONNX has them: [columns][channels][taps]
        m->row = elements * m->taps;
        m->col = m->row * m->valid;
        m->space[1] = elements;
        m->space[2] = 1;
    } else { // [taps][channels][columns], as products have them
        m->col = 1;
        m->row = m->columns;
        m->space[2] = m->row * m->valid;
        m->space[1] = m->space[2] * elements;
    }
    m->shift = rng_below(r, 2) ? 0 : rng_below(r, 256);
    for (int t = 0; t < m->taps; t++)
        p->offset[t] = (m->taps - 1 - t) * (m->run + 5);
    m->offset = p->offset;
    p->a_row = m->taps * (m->run + 5);
    for (int j = 0; j < m->columns; j++)
        p->zero[j] = is_signed ? rng_below(r, 3) - 1 : zeros[rng_below(r, 4)];
    m->zero = rng_below(r, 2) ? p->zero : NULL;
    p->a = buffer_new((p->rows * p->a_row + 3) / 4);
    const int64_t weights = m->columns * m->valid * m->taps * elements;
    p->b = buffer_new((weights + 3) / 4);
    const int kind = rng_below(r, 3);
    for (int64_t i = 0; i < p->rows * p->a_row; i++)
        ((uint8_t *)p->a.data)[i] = activation(r, kind);
    for (int64_t i = 0; i < weights; i++)
        ((uint8_t *)p->b.data)[i] = (uint8_t)weight(r, size, is_signed);
    m->b = p->b.data;
}

// The weight of element e's channel c of a tap, less its zero point.
static int weight_at(const struct mgx_chunk_matrix *m, int64_t j, int64_t t, int64_t e, int64_t c)
{
    const int64_t k = j * m->col + c * m->row + t * m->space[1] + e * m->space[2];
    const int w = m->type == MGX_KERNEL_S8 ? ((const int8_t *)m->b)[k] : ((const uint8_t *)m->b)[k];
    return w - (m->zero ? m->zero[j] : 0);
}

// sum (a - shift)(b - zero) over what has weights.
static void solve(struct problem *p)
{
    const struct mgx_chunk_matrix *m = &p->matrix;
    p->expected = calloc((size_t)(p->rows * m->columns), sizeof *p->expected);
    for (int64_t at = 0; at < p->rows * m->columns; at++) {
        const int64_t i = at / m->columns, j = at % m->columns;
        for (int64_t t = 0; t < m->taps; t++)
            for (int64_t e = 0; e < m->kernel[2]; e++)
                for (int64_t c = 0; c < m->valid; c++) {
                    const int a =
                        ((uint8_t *)p->a.data)[i * p->a_row + p->offset[t] + e * m->inner + c];
                    p->expected[at] += (a - m->shift) * weight_at(m, j, t, e, c);
                }
    }
}

static void problem_free(struct problem *p)
{
    buffer_free(p->a);
    buffer_free(p->b);
    free(p->expected);
}

// What a strip needs of a panel that begins at column `col`; `a` is of 16 bits where that is widened.
static void set_chunks(const struct problem *p, int64_t col, int64_t most, char *panel,
                       struct mgx_tile_args *args)
{
    mgx_chunk_pack(&p->matrix, col / MGX_CHUNK_COLS, most, NULL, panel);
    mgx_chunk_set(panel, most, args);
    args->a[0] = (const char *)p->a.data;
    args->a_row = p->a_row;
}

static void set_widened(const struct mgx_gemm_kernel *kernel, const struct problem *p, int64_t col,
                        const uint16_t *a, char *panel, struct mgx_tile_args *args)
{
    static int64_t taps[MOST_TAPS];
    const struct mgx_chunk_matrix *m = &p->matrix;
    const int group = kernel->group, size = 4 / group; // k in 32 bits, bytes of a value
    const int width = mgx_panel_width(kernel, m->columns, col / kernel->cols);
    int32_t *starts = (int32_t *)(void *)panel;
    int16_t *pair = (int16_t *)(void *)(starts + width);
    memset(panel, 0, (size_t)(width * (4 + m->taps * m->run * size)));
    for (int64_t j = 0; j < width && col + j < m->columns; j++)
        for (int64_t k = 0; k < m->taps * m->run; k++) {
            const int64_t t = k / m->run, e = k % m->run / m->inner, c = k % m->inner;
            const int w = c < m->valid ? weight_at(m, col + j, t, e, c) : 0;
            const int64_t at = (k / group * width + j) * group + k % group;
            if (size == 2)
                pair[at] = (int16_t)w;
            else
                ((int8_t *)pair)[at] = (int8_t)w;
            starts[j] -= m->shift * w;
        }
    for (int64_t t = 0; t < m->taps; t++)
        taps[t] = size * p->offset[t];
    args->taps = taps;
    args->tap_count = m->taps;
    args->depth = m->run / group;
    args->start = starts;
    args->b = (const char *)pair;
    args->b_row = width * 4;
    args->a[0] = size == 2 ? (const char *)a : (const char *)p->a.data;
    args->a_row = size * p->a_row;
}

// The panel at `col` and the one behind it.
static void set_panels(const struct mgx_gemm_kernel *kernel, const struct problem *p, int64_t col,
                       const uint16_t *a, float *panel, int64_t step, struct mgx_tile_args *args)
{
    float *at = panel + col / kernel->cols * step;
    if (col + kernel->cols < p->matrix.columns)
        set_widened(kernel, p, col + kernel->cols, a, (char *)(at + step), args);
    set_widened(kernel, p, col, a, (char *)at, args);
    args->b_panel = args->start_panel = 4 * step;
}

static int pairs_made;

static bool makes_pair(const struct mgx_gemm_kernel *kernel, const struct problem *p, int64_t col,
                       const struct mgx_tile_args *args)
{
    const bool is = kernel->pair && col + 2 * kernel->cols <= p->matrix.columns &&
                    kernel->suits_pair(args, p->rows);
    pairs_made += is;
    return is;
}

// All panels of the packed matrix, one or two in a strip. `end` NULL: the sums.
static bool run(const struct mgx_gemm_kernel *kernel, const struct problem *p,
                const struct mgx_end *end, const uint8_t *residual, float factor, char *c)
{
    const struct mgx_chunk_matrix *m = &p->matrix;
    const bool chunks = mgx_gemm_in_chunks(kernel);
    const int64_t most = mgx_chunk_count(m), bytes = mgx_chunk_panel_bytes(most);
    const int64_t size = end && mgx_end_makes_bytes(end) ? 1 : 4;
    const int64_t panels = (m->columns + kernel->cols - 1) / kernel->cols,
                  step = kernel->cols * (1 + m->taps * m->run / kernel->group);
    struct buffer panel = buffer_new(chunks ? bytes / 4 : panels * step);
    struct buffer wide = buffer_new((p->rows * p->a_row + 1) / 2);
    float scale[MOST_COLUMNS];
    for (int j = 0; j < MOST_COLUMNS; j++)
        scale[j] = factor;
    for (int64_t i = 0; i < p->rows * p->a_row; i++)
        ((uint16_t *)wide.data)[i] = ((const uint8_t *)p->a.data)[i];
    bool intact = mgx_chunk_fits(m);
    for (int64_t col = 0; intact && col < m->columns; col += kernel->cols) {
        struct mgx_tile_args args = {
            .scale = end ? scale : NULL,
            .residual = {residual ? (const char *)residual + col : NULL},
            .residual_row = m->columns,
            .end = end ? mgx_end_whole(end) : (struct mgx_end_list){.step = NULL},
            .c = {c + col * size},
            .c_row = m->columns * size,
            .cols = (int)(m->columns - col < kernel->cols ? m->columns - col : kernel->cols)};
        if (chunks)
            set_chunks(p, col, most, (char *)panel.data, &args);
        else
            set_panels(kernel, p, col, (const uint16_t *)wide.data, panel.data, step, &args);
        if (makes_pair(kernel, p, col, &args)) {
            kernel->pair(&args, p->rows);
            col += kernel->cols;
        } else {
            kernel->strip(&args, p->rows);
        }
        intact = buffer_intact(panel);
    }
    buffer_free(panel);
    buffer_free(wide);
    return intact;
}

static void check_sums(const struct mgx_gemm_kernel *kernel, const struct problem *p)
{
    const int64_t count = p->rows * p->matrix.columns;
    struct buffer c = buffer_new(count);
    CHECK(run(kernel, p, NULL, NULL, 1, (char *)c.data) && buffer_intact(c));
    for (int64_t i = 0; i < count && !check_failures; i++)
        CHECK_INT(((const int32_t *)(const void *)c.data)[i], p->expected[i]);
    buffer_free(c);
}

// A power of two as the factor, so that every step is exact.
static void check_bytes(struct rng *r, const struct mgx_gemm_kernel *kernel,
                        const struct problem *p)
{
    const int64_t count = p->rows * p->matrix.columns;
    uint8_t tables[2][256];
    struct buffer c = buffer_new(count), residual = buffer_new((count + 3) / 4);
    uint8_t *added = (uint8_t *)residual.data;
    for (int i = 0; i < 512; i++)
        tables[i / 256][i % 256] = (uint8_t)rng_below(r, 256);
    for (int64_t i = 0; i < count; i++)
        added[i] = (uint8_t)rng_below(r, 256);
    struct end_bytes q = end_bytes_random(r, (const uint8_t(*)[256])tables);
    struct mgx_end end = {.count = 0};
    q.rounds = true;
    q.spare = !end_has_second(&q);
    q.spare_last = !q.floats;
    end_bytes_then(&end, &q);
    CHECK(run(kernel, p, &end, q.adds ? added : NULL, 0x1p-9f, (char *)c.data) && buffer_intact(c));
    for (int64_t i = 0; i < count && !check_failures; i++) {
        const int other = q.from_signed ? (int8_t)added[i] : added[i];
        const double y = end_meaning(&end, (double)p->expected[i] * 0x1p-9, 0, other, 0);
        if (q.floats)
            CHECK(c.data[i] == (float)y);
        else
            CHECK_INT(((const uint8_t *)c.data)[i], (uint8_t)(int)y);
    }
    const bool floats = q.floats;
    for (int64_t i = (count + 3) / 4; i < count && !floats; i++)
        CHECK(is_guard(c.data + i)); // nothing is stored behind the last row
    buffer_free(c);
    buffer_free(residual);
}

static void check_kernel(struct rng *r, const struct mgx_gemm_kernel *kernel)
{
    static const int sizes[] = {1, 8, 30, 64, 100, 127, 128};
    for (int i = 0; kernel && kernel->strip && i < 400 && !check_failures; i++) {
        struct problem p;
        problem_init(&p, r, sizes[i % 7]);
        const bool fits = kernel->b_type != MGX_KERNEL_S8 || mgx_gemm_in_chunks(kernel) ||
                          (p.matrix.type == MGX_KERNEL_S8 && !p.matrix.zero);
        if (p.matrix.run >= MGX_CHUNK_VALUES && fits) {
            solve(&p);
            check_sums(kernel, &p);
            check_bytes(r, kernel, &p);
        }
        problem_free(&p);
    }
}

CASE(sums_are_exact)
{
    struct rng r = {11};
    EACH_ISA(isa)
    {
        check_kernel(&r, mgx_gemm_kernel(MGX_KERNEL_U8, isa));
        check_kernel(&r,
                     mgx_integer_kernel(MGX_KERNEL_S8, isa, MGX_KERNEL_U8, MGX_KERNEL_U8, true));
        check_kernel(&r,
                     mgx_integer_kernel(MGX_KERNEL_S8, isa, MGX_KERNEL_U8, MGX_KERNEL_S8, false));
        const struct mgx_gemm_kernel *bytes = mgx_gemm_kernel(MGX_KERNEL_S8, isa);
        CHECK(!bytes || !bytes->pair || pairs_made >= 20);
    }
}

// `rows` of bytes `a` by `depth` x `columns` weights `b`.
static struct problem uniform(int rows, int depth, int columns, int a, int b)
{
    struct problem p = {.rows = rows, .a_row = depth, .depth = depth};
    p.matrix = (struct mgx_chunk_matrix){.type = MGX_KERNEL_S8,
                                         .columns = columns,
                                         .taps = 1,
                                         .run = depth,
                                         .inner = depth,
                                         .valid = depth,
                                         .row = columns,
                                         .col = 1,
                                         .kernel = {1, 1, 1}};
    p.a = buffer_new((rows * depth + 3) / 4);
    p.b = buffer_new((depth * columns + 3) / 4);
    memset(p.a.data, a, (size_t)(rows * depth));
    memset(p.b.data, b, (size_t)(depth * columns));
    p.matrix.b = p.b.data;
    return p;
}

static void check_and_free(struct problem *p)
{
    const struct mgx_gemm_kernel *kernel = mgx_gemm_kernel(MGX_KERNEL_U8, mgx_cpu()->isa);
    solve(p);
    if (kernel)
        check_sums(kernel, p);
    problem_free(p);
}

// The largest weight everywhere: a sum has room for one alone, so there are too many chunks to pay,
// and they still add up.
CASE(the_largest_weights_wait_for_their_turn)
{
    struct problem p = uniform(9, 64, 8, 255, 127);
    CHECK(!mgx_chunk_pays(&p.matrix, mgx_chunk_count(&p.matrix), false));
    check_and_free(&p);
}

// Zeros take no chunks; a panel of nothing else has sums of 0.
CASE(zeros_are_left_out)
{
    struct problem p = uniform(3, 32, 11, 200, 0);
    ((int8_t *)p.b.data)[20 * 11] = -5;
    CHECK_INT(mgx_chunk_count(&p.matrix), 1);
    check_and_free(&p);
}

// Signed bytes have a walk of their own; zero points that are all 0 take them the other way.
CASE(both_walks_make_the_same_panels)
{
    static const int32_t zeros[MOST_COLUMNS];
    static const int sizes[] = {8, 64, 100, 127, 128};
    struct rng r = {17};
    for (int i = 0; i < 400 && !check_failures; i++) {
        struct problem p;
        problem_init(&p, &r, sizes[i % 5]);
        struct mgx_chunk_matrix *m = &p.matrix, other;
        m->type = MGX_KERNEL_S8;
        m->zero = NULL;
        other = *m;
        other.zero = zeros;
        if (m->run >= MGX_CHUNK_VALUES) {
            const int64_t most = mgx_chunk_count(m), bytes = mgx_chunk_panel_bytes(most);
            CHECK_INT(mgx_chunk_count(&other), most);
            struct buffer a = buffer_new(bytes / 4), b = buffer_new(bytes / 4);
            for (int64_t at = 0; at * MGX_CHUNK_COLS < m->columns && !check_failures; at++) {
                mgx_chunk_pack(m, at, most, NULL, a.data);
                mgx_chunk_pack(&other, at, most, NULL, b.data);
                CHECK(memcmp(a.data, b.data, (size_t)bytes) == 0);
            }
            CHECK(buffer_intact(a) && buffer_intact(b));
            buffer_free(a);
            buffer_free(b);
        }
        problem_free(&p);
    }
}

static void compare_orders(const struct mgx_chunk_matrix *m)
{
    struct mgx_chunk_stripe stripe = {.of = NULL};
    const int64_t most = mgx_chunk_count(m), bytes = mgx_chunk_panel_bytes(most);
    struct buffer a = buffer_new(bytes / 4), b = buffer_new(bytes / 4);
    for (int64_t at = 0; at * MGX_CHUNK_COLS < m->columns && !check_failures; at++) {
        mgx_chunk_pack(m, at, most, NULL, a.data);
        mgx_chunk_pack(m, at, most, &stripe, b.data);
        CHECK(memcmp(a.data, b.data, (size_t)bytes) == 0);
    }
    CHECK(buffer_intact(a) && buffer_intact(b));
    mgx_chunk_stripe_free(&stripe);
    buffer_free(a);
    buffer_free(b);
}

// Panels that were put in order first are those of weights as they lie, in any order of memory.
CASE(order_in_memory_does_not_matter)
{
    struct rng r = {29};
    for (int i = 0; i < 300 && !check_failures; i++) {
        struct problem p;
        problem_init(&p, &r, 100);
        if (p.matrix.run >= MGX_CHUNK_VALUES)
            compare_orders(&p.matrix);
        problem_free(&p);
    }
    for (int i = 0; i < 60 && !check_failures; i++) { // a product's: more than eight panels
        struct problem p = uniform(1, 4 + rng_below(&r, 100), 40 + rng_below(&r, 150), 255, 1);
        const bool columns = rng_below(&r, 2);
        for (int64_t k = 0; k < p.matrix.valid * p.matrix.columns; k++)
            ((int8_t *)p.b.data)[k] = (int8_t)weight(&r, 90, true);
        p.matrix.row = columns ? 1 : p.matrix.columns;
        p.matrix.col = columns ? p.matrix.valid : 1;
        compare_orders(&p.matrix);
        problem_free(&p);
    }
}

int main(void)
{
    static const struct check_case cases[] = {
        ROW(sums_are_exact) ROW(the_largest_weights_wait_for_their_turn) ROW(zeros_are_left_out)
            ROW(both_walks_make_the_same_panels) ROW(order_in_memory_does_not_matter){NULL, NULL}};
    return check_run(cases, 0, NULL);
}
