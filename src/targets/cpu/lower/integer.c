// SPDX-License-Identifier: MIT
// Products of bytes; see integer.h.
#include "targets/cpu/lower/integer.h"

#include <math.h>
#include <string.h>

#include "base/size.h"
#include "plan/join.h"
#include "targets/cpu/kernel/move/convert.h"
#include "targets/cpu/kernel/rows/byte_range.h"
#include "targets/cpu/lower/lower.h"

enum {
    ROOM = MGX_TILE_MAX_COLS * MGX_TILE_MAX_PANELS
}; // columns that kernels may read behind the last

// --- zero points ---

static bool read_left(struct mgx_plan_offer *c, const struct cpu_epilogue *e, struct cpu_integer *x)
{
    const int input = e->main_count > 2 ? e->main_in[2] : -1;
    x->zero_in = -1;
    if (input < 0)
        return true;
    const struct mgx_tensor *t = c->constant[input];
    if (t)
        x->zero = (int)mgx_load_int(t->shape.type, t->data, 0);
    else
        x->zero_in = input;
    x->zero_signed = c->in[input].type == MGX_INT8;
    return t || mgx_shape_elements(&c->in[input]) == 1;
}

static bool read_right(struct mgx_plan_offer *c, const struct cpu_epilogue *e,
                       struct cpu_integer *x)
{
    const int input = e->main_count > 3 ? e->main_in[3] : -1;
    if (input < 0)
        return true;
    const struct mgx_tensor *t = c->constant[input];
    const int64_t count = t ? mgx_shape_elements(&t->shape) : 0;
    if (!t || (count != 1 && count != x->columns))
        return false;
    int32_t *zero = MGX_NEW_ARRAY(c->arena, int32_t, x->columns);
    const int64_t step = t->shape.rank ? t->shape.strides[t->shape.rank - 1] : 0;
    bool any = false;
    for (int64_t i = 0; zero && i < x->columns; i++) {
        zero[i] = (int32_t)mgx_load_int(t->shape.type, t->data, count == 1 ? 0 : i * step);
        any |= zero[i] != 0;
    }
    x->b_zero = any ? zero : NULL;
    x->b_zero_source = any ? t->data : NULL;
    return zero != NULL;
}

bool cpu_integer_takes(struct mgx_bytes_known known)
{
    return known.right_zero && (known.left_zero || known.right);
}

static bool read_zeros(struct mgx_plan_offer *c, const struct cpu_epilogue *e,
                       const struct mgx_ins *main, struct cpu_integer *x)
{
    if (!mgx_type_is_byte(c->in[e->main_in[0]].type) ||
        !mgx_type_is_byte(c->in[e->main_in[1]].type) || main->shape.type != MGX_INT32)
        return mgx_plan_unfit(c, "not of bytes");
    if (!read_left(c, e, x) || !read_right(c, e, x))
        return mgx_plan_unfit(c, "a zero point is not constant, nor one value");
    const struct mgx_bytes_known known = {
        .left_zero = x->zero_in < 0, .right = c->constant[e->main_in[1]], .right_zero = true};
    if (!cpu_integer_takes(known))
        return mgx_plan_unfit(c, "neither a zero point nor the other operand is constant");
    return true;
}

// --- constants ---

// Column i of a constant that is one value or one per column.
static double at_column(const struct mgx_tensor *t, int64_t columns, int64_t i)
{
    const bool one = mgx_shape_space(&t->shape) == 1 || columns == 1;
    return ((const float *)t->data)[one ? 0 : i];
}

// The clamp of an activation goes into the step to bytes, which has no residual then.
static void fold_clamp(struct cpu_epilogue *e, struct cpu_bytes_end *q)
{
    const struct cpu_floats_end *k = &e->floats;
    if (k->act == MGX_ACT_RELU)
        q->low = fmaxf(q->low, 0);
    if (k->act == MGX_ACT_CLIP) {
        q->low = fminf(fmaxf(q->low, k->a / q->divisor), q->high);
        q->high = fmaxf(fminf(q->high, k->b / q->divisor), q->low);
    }
    e->floats.act = MGX_ACT_NONE;
}

// Whether every |scale| * 2^31 + |bias| fits 32 bits.
static bool stays_small(const float *scale, const float *bias, int64_t columns)
{
    bool fits = true;
    for (int64_t i = 0; i < columns && fits; i++)
        fits = fabsf(scale[i]) < 0.25F && (!bias || fabsf(bias[i]) < 0x1p30F);
    return fits;
}

// Whether the step to bytes needs no clamp of its own: its numbers stay small, and rounding makes
// the byte's limits of the step's.
static bool saturates(const struct cpu_bytes_end *q, const float *scale, const float *bias,
                      int64_t columns)
{
    const float low = (float)((q->is_signed ? -128 : 0) - q->zero), high = low + 255;
    return nearbyintf(q->low) == low && nearbyintf(q->high) == high && !cpu_bytes_has_second(q) &&
           stays_small(scale, bias, columns);
}

// Whether the second step needs none, of a residual that is added to what was not rounded: the
// first step's numbers are within 2^31 likewise, and the residual's within 2^28.
static bool saturates_sum(const struct cpu_bytes_end *q, const float *scale, const float *bias,
                          int64_t columns)
{
    const float low = (float)((q->is_signed ? -128 : 0) - q->zero), high = low + 255;
    return q->residual && !q->rounds && !q->middle && !q->floats && q->keep == 1 &&
           q->share < 0x1p20F && nearbyintf(q->low2) == low && nearbyintf(q->high2) == high &&
           stays_small(scale, bias, columns);
}

// Does the step to bytes take factor and bias in, both constant or not there?
static bool folds(const struct cpu_epilogue *e, const struct mgx_tensor *scale,
                  const struct mgx_tensor *bias)
{
    return e->bytes && (e->scale < 0 || scale) && (e->bias < 0 || bias) &&
           e->floats.act <= MGX_ACT_CLIP && !e->floats.factor && !e->floats.block;
}

static void fold_bytes(struct cpu_epilogue *e, struct cpu_integer *x, const float *bias)
{
    x->bias = bias;
    fold_clamp(e, e->bytes);
    e->bytes->divisor = 1;
    e->bytes->saturates = saturates(e->bytes, x->scale, bias, x->columns);
    if (saturates_sum(e->bytes, x->scale, bias, x->columns))
        e->bytes->saturates_last = true;
}

// Makes constants of what is constant, folded into the step to bytes where that can be.
static bool fold(struct mgx_plan_offer *c, struct cpu_epilogue *e, struct cpu_integer *x)
{
    const struct mgx_tensor *scale = e->scale >= 0 ? c->constant[e->scale] : NULL;
    const struct mgx_tensor *bias = e->bias >= 0 ? c->constant[e->bias] : NULL;
    const bool folded = folds(e, scale, bias);
    if (e->scale >= 0 && !scale)
        return true;
    float *values = MGX_NEW_ARRAY(c->arena, float, 2 * (x->columns + ROOM));
    if (!values)
        return false;
    float *terms = values + x->columns + ROOM;
    const double divisor = folded ? e->bytes->divisor : 1;
    for (int64_t i = 0; i < x->columns; i++) {
        values[i] = (float)((scale ? at_column(scale, x->columns, i) : e->scale_value) / divisor);
        if (bias)
            terms[i] = (float)(at_column(bias, x->columns, i) / divisor);
    }
    x->scale = values;
    if (folded)
        fold_bytes(e, x, bias ? terms : NULL);
    return true;
}

bool cpu_integer_prepare(struct mgx_plan_offer *c, struct cpu_epilogue *e,
                         const struct mgx_ins *main, int64_t columns, struct cpu_integer *out)
{
    *out = (struct cpu_integer){
        .columns = columns, .zero_in = -1, .kernel = mgx_byte_range_kernel(cpu_offered(c)->isa)};
    return !e->integer || (read_zeros(c, e, main, out) && fold(c, e, out));
}

const void *cpu_integer_weights(struct mgx_plan_offer *c, int input)
{
    if (!c->constant[input])
        return NULL;
    mgx_plan_join_fill(c->store, c->constant[input]->data, false);
    return c->constant[input]->data;
}

// --- before each run ---

static size_t take_room(struct mgx_plan_offer *c, size_t bytes)
{
    const size_t at = mgx_align64(c->workspace);
    c->workspace = at + bytes;
    return at;
}

// Sums of the columns of a constant B.
struct sums {
    int64_t depth, columns, row, col;
    bool is_signed;
    const int32_t *zero;
};

static void fill_sums(const struct mgx_plan_fill *f, int part, int parts)
{
    const struct sums *s = f->kernel;
    int32_t *to = f->packed;
    const int64_t end = mgx_part_begin(s->columns, part + 1, parts);
    for (int64_t j = mgx_part_begin(s->columns, part, parts); j < end; j++) {
        int64_t sum = 0;
        for (int64_t k = 0; k < s->depth; k++) {
            const unsigned char v = ((const unsigned char *)f->source[0])[k * s->row + j * s->col];
            sum += (s->is_signed ? (int8_t)v : v) - (s->zero ? s->zero[j] : 0);
        }
        to[j] = (int32_t)sum;
    }
}

static bool pack_sums(struct mgx_plan_offer *c, const struct mgx_tensor *b, const struct sums *sums,
                      struct cpu_integer *x)
{
    struct sums *kept = MGX_NEW(c->arena, struct sums);
    const int64_t desc[] = {sums->depth, sums->columns, sums->row, sums->col};
    if (!kept)
        return false;
    *kept = *sums;
    const struct mgx_plan_key key = {.kernel = "sums of columns",
                                     .source = {b->data, x->b_zero_source},
                                     .desc = desc,
                                     .desc_bytes = sizeof desc};
    const struct mgx_plan_fill how = {.fill = fill_sums,
                                      .kernel = kept,
                                      .source = {b->data},
                                      .source_bytes = mgx_shape_bytes(&b->shape)};
    x->sums = mgx_plan_pack(c->store, &key, (size_t)sums->columns * sizeof(int32_t), &how, c->diag);
    return x->sums != NULL;
}

static bool find_shift(struct mgx_plan_offer *c, const struct cpu_epilogue *e,
                       const struct mgx_gemm_kernel *kernel, struct cpu_integer *x)
{
    enum mgx_kernel_type a;
    if (!cpu_kernel_type(c->in[e->main_in[0]].type, &a))
        return false;
    x->shift = mgx_kernel_shift(kernel, a);
    return true;
}

bool cpu_integer_finish(struct mgx_plan_offer *c, const struct cpu_epilogue *e,
                        const struct mgx_gemm_kernel *kernel, int64_t depth, int64_t b_row,
                        int64_t b_col, struct cpu_integer *x)
{
    const size_t room = (size_t)(x->columns + ROOM) * 4;
    if (!e->integer)
        return true;
    if (!find_shift(c, e, kernel, x))
        return false;
    if (!x->scale)
        x->scale_at = take_room(c, room);
    if (x->zero_in < 0)
        return true;
    x->start_at = take_room(c, room);
    const struct mgx_tensor *b = c->constant[e->main_in[1]];
    if (mgx_shape_space(&b->shape) > depth * x->columns)
        return mgx_plan_unfit(c, "a matrix for every batch, and a zero point that is not constant");
    const struct sums sums = {.depth = depth,
                              .columns = x->columns,
                              .row = b_row,
                              .col = b_col,
                              .is_signed = b->shape.type == MGX_INT8,
                              .zero = x->b_zero};
    return pack_sums(c, b, &sums, x);
}

static const float *fill_scale(const struct cpu_integer *x, const struct cpu_epilogue_run *run)
{
    const struct cpu_epilogue *e = run->epilogue;
    float *to = (float *)(void *)((char *)run->args->workspace + x->scale_at);
    const float *from = run->args->in[e->scale];
    if (!e->scale_step)
        x->kernel->repeat(*from, x->columns, to);
    for (int64_t i = 0; e->scale_step && i < x->columns; i++)
        to[i] = from[e->scale_step * i];
    return to;
}

static int zero_of(const struct cpu_integer *x, const struct cpu_epilogue_run *run)
{
    const void *zero = run->args->in[x->zero_in];
    return x->zero_signed ? *(const int8_t *)zero : *(const uint8_t *)zero;
}

// All lines of a row of numbers at once: what is read once in a run comes from memory. (Inlined:
// gcc takes a function with nothing but hints in it for one without effect.)
static inline __attribute__((always_inline)) void fetch(const void *from, int64_t count)
{
    for (int64_t i = 0; from && i < count; i += 16)
        __builtin_prefetch((const int32_t *)from + i);
}

static const int32_t *fill_start(const struct cpu_integer *x, const struct cpu_epilogue_run *run)
{
    int32_t *to = (int32_t *)(void *)((char *)run->args->workspace + x->start_at);
    fetch(x->sums, x->columns);
    fetch(run->bias, x->columns);
    x->kernel->start(x->sums, zero_of(x, run) + x->shift, x->columns, to);
    return to;
}

void cpu_integer_start(const struct cpu_integer *x, const struct cpu_epilogue_run *run, bool raw,
                       struct cpu_integer_run *out)
{
    out->scale = raw ? NULL : x->scale ? x->scale : fill_scale(x, run);
    out->bias = x->bias ? x->bias : run->bias;
    out->start = x->zero_in >= 0 ? fill_start(x, run) : NULL;
    out->zero = x->zero_in >= 0 ? zero_of(x, run) : x->zero;
}
