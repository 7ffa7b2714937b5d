// SPDX-License-Identifier: MIT
// Constant weights of a product of a few rows, packed when a plan is complete.
//
//     as they are   columns x depth, a column's depth filled up with zeros to blocks of 64 values, columns
//                   to groups of 8
//     numbers       as the model has them: columns x blocks; matrix units have them in steps of 16
//                   bytes a lane (kernel/few_units.gpu):
//
//     w      groups of 8 columns x steps x lane 4 g + t x 16 bytes: column g, spans of 32 deep, of which
//            a lane has 8 numbers as 4 pairs, 16 bits apart: 8 t + 2 p and the next one. Scales of 16:
//            pairs 0 and 2 are of the first 16, 1 and 3 of the others: 4 t + p and 16 + 4 t + p - 1
//     scale  groups x steps x g x blocks of the step
//     zero   groups x steps x g x blocks of the step, filled up to 4 bytes
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "targets/gpu/lower/few.h"

enum { STEP_BYTES = 512, GROUP = 8, SPAN = 32, DENSE_BLOCK = 64 };

// --- sizes ---

static int64_t step_depth(const struct gpu_few_weights *w)
{
    assert(w->blocks);
    return STEP_BYTES * 8 / w->bits / GROUP;
}

int64_t gpu_few_scaled(const struct gpu_few_weights *w)
{
    const int64_t step = w->blocks ? step_depth(w) : SPAN;
    return !w->blocks || w->block >= w->k ? step : mgx_min_i64(w->block, step);
}

static int64_t steps_of(const struct gpu_few_weights *w)
{
    return mgx_ceil_div(w->k, step_depth(w));
}

static int64_t blocks_of_step(const struct gpu_few_weights *w)
{
    return step_depth(w) / gpu_few_scaled(w);
}

static int64_t zero_bytes(const struct gpu_few_weights *w) // of a column in a step
{
    return (blocks_of_step(w) + 3) / 4 * 4;
}

static size_t bytes_of(const struct mgx_tensor *t)
{
    return t ? (size_t)mgx_shape_elements(&t->shape) * mgx_type_size(t->shape.type) : 0;
}

void gpu_few_size(struct gpu_few_weights *w)
{
    assert(w->n > 0 && w->k > 0 && w->bits > 0);
    const int64_t columns = mgx_ceil_div(w->n, GROUP) * GROUP;
    memset(w->bytes, 0, sizeof w->bytes);
    w->row = mgx_ceil_div(w->k, DENSE_BLOCK) * DENSE_BLOCK;
    if (!w->blocks) {
        w->bytes[GPU_FEW_W] = (size_t)(columns * w->row) * (size_t)w->bits / 8;
        return;
    }
    for (int part = 0; part < GPU_FEW_PARTS; part++)
        w->bytes[part] = bytes_of(w->source[part]);
    if (!w->units)
        return;
    const int64_t places = columns / GROUP * steps_of(w);
    const size_t scale = mgx_type_size(w->source[GPU_FEW_SCALE]->shape.type);
    w->bytes[GPU_FEW_W] = (size_t)(places * STEP_BYTES);
    w->bytes[GPU_FEW_SCALE] = (size_t)(places * GROUP * blocks_of_step(w)) * scale;
    w->bytes[GPU_FEW_ZERO] = w->zeros ? (size_t)(places * GROUP * zero_bytes(w)) : 0;
}

bool gpu_few_zeros_are_numbers(const struct gpu_few_weights *w)
{
    assert(w->source[GPU_FEW_ZERO] && w->source[GPU_FEW_ZERO]->data);
    const struct mgx_tensor *zero = w->source[GPU_FEW_ZERO];
    const int64_t count = mgx_shape_elements(&zero->shape);
    for (int64_t i = 0; i < count; i++) {
        const double z =
            mgx_load_double(zero->shape.type, zero->data, mgx_shape_index(&zero->shape, i));
        if (!(z >= 0 && z < (double)(1 << w->bits)) || z != (double)(int)z)
            return false;
    }
    return true;
}

// --- weights as they are ---

static void copy_values(const char *from, int64_t stride, char *to, int64_t count, size_t size)
{
    if (stride == 1)
        memcpy(to, from, (size_t)count * size);
    else if (size == 2)
        for (int64_t k = 0; k < count; k++)
            memcpy(to + 2 * k, from + 2 * k * stride, 2);
    else
        for (int64_t k = 0; k < count; k++)
            memcpy(to + 4 * k, from + 4 * k * stride, 4);
}

// Where columns are neighbours, pieces of a few of them at a time, so that lines of memory are used up.
static void pack_dense(const struct gpu_few_weights *w, int64_t group, char *to)
{
    enum { PIECE = 256 };
    const struct mgx_shape *s = &w->values.shape;
    const size_t size = (size_t)w->bits / 8;
    const int64_t down = s->strides[s->rank - 2], across = s->strides[s->rank - 1];
    const char *from = w->values.data;
    to += (size_t)(group * GROUP * w->row) * size;
    memset(to, 0, (size_t)(GROUP * w->row) * size);
    for (int64_t k = 0; k < w->k; k += PIECE)
        for (int64_t i = 0; i < GROUP && group * GROUP + i < w->n; i++)
            copy_values(from + (k * down + (group * GROUP + i) * across) * (int64_t)size, down,
                        to + (i * w->row + k) * (int64_t)size, mgx_min_i64(PIECE, w->k - k), size);
}

// --- numbers ---

static unsigned number_at(const struct gpu_few_weights *w, int64_t n, int64_t k)
{
    const uint8_t *q = w->source[GPU_FEW_W]->data;
    const int64_t row = w->blocks_of_row * w->block * w->bits / 8, bit = k * w->bits;
    return n < w->n && k < w->k ? q[n * row + bit / 8] >> bit % 8 & ((1u << w->bits) - 1) : 0;
}

// How deep in its span the number h of pair p lies.
static int depth_of(bool halves, int t, int p, int h)
{
    return halves ? p % 2 * 16 + 4 * t + p / 2 * 2 + h : 8 * t + 2 * p + h;
}

// Bit of the lane's 16 bytes where it begins.
static int bit_of(int bits, int span, int p, int h)
{
    switch (bits) {
    case 8:
        return span * 64 + p / 2 * 32 + (p % 2 * 2 + h) * 8;
    case 4:
        return span * 32 + p * 4 + h * 16;
    default:
        return span / 2 * 32 + span % 2 * 8 + p * 2 + h * 16;
    }
}

static void pack_lane(const struct gpu_few_weights *w, int64_t n, int64_t first, int t, uint8_t *to)
{
    const bool halves = gpu_few_scaled(w) == 16;
    for (int span = 0; span < 16 / w->bits; span++)
        for (int i = 0; i < 8; i++) {
            const int p = i / 2, h = i % 2, bit = bit_of(w->bits, span, p, h);
            const int64_t k = first + span * SPAN + depth_of(halves, t, p, h);
            to[bit / 8] |= (uint8_t)(number_at(w, n, k) << bit % 8);
        }
}

// Scale or zero point of column n for the numbers from k on; zeros beside the matrix.
static double part_at(const struct gpu_few_weights *w, int part, int64_t n, int64_t k)
{
    const struct mgx_tensor *t = w->source[part];
    const int64_t *stride = t->shape.strides;
    return n < w->n && k < w->k
               ? mgx_load_double(t->shape.type, t->data, n * stride[0] + k / w->block * stride[1])
               : 0;
}

static void pack_scales(const struct gpu_few_weights *w, int64_t place, int64_t column,
                        int64_t first, void *to)
{
    const enum mgx_type type = w->source[GPU_FEW_SCALE]->shape.type;
    const int64_t count = blocks_of_step(w);
    for (int g = 0; g < GROUP; g++)
        for (int64_t b = 0; b < count; b++)
            mgx_store_double(type, to, (place * GROUP + g) * count + b,
                             part_at(w, GPU_FEW_SCALE, column + g, first + b * gpu_few_scaled(w)));
}

static void pack_zeros(const struct gpu_few_weights *w, int64_t place, int64_t column,
                       int64_t first, uint8_t *to)
{
    for (int g = 0; g < GROUP; g++)
        for (int64_t b = 0; b < blocks_of_step(w); b++)
            to[(place * GROUP + g) * zero_bytes(w) + b] =
                (uint8_t)part_at(w, GPU_FEW_ZERO, column + g, first + b * gpu_few_scaled(w));
}

static void pack_numbers(const struct gpu_few_weights *w, int part, int64_t group, void *to)
{
    for (int64_t step = 0; step < steps_of(w); step++) {
        const int64_t place = group * steps_of(w) + step, first = step * step_depth(w);
        if (part == GPU_FEW_SCALE)
            pack_scales(w, place, group * GROUP, first, to);
        else if (part == GPU_FEW_ZERO)
            pack_zeros(w, place, group * GROUP, first, to);
        for (int lane = 0; lane < 32 && part == GPU_FEW_W; lane++)
            pack_lane(w, group * GROUP + lane / 4, first, lane % 4,
                      (uint8_t *)to + place * STEP_BYTES + lane * 16);
    }
}

// As the model has it, without gaps.
static void copy_part(const struct mgx_tensor *t, char *to)
{
    const size_t size = mgx_type_size(t->shape.type);
    const int64_t count = mgx_shape_elements(&t->shape);
    if (mgx_shape_is_standard(&t->shape))
        memcpy(to, t->data, (size_t)count * size);
    else
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * size,
                   (const char *)t->data + (size_t)mgx_shape_index(&t->shape, i) * size, size);
}

// --- all of it ---

struct packing {
    const struct gpu_few_weights *w;
    int part, tasks;
    void *to;
};

static void pack_groups(void *user, int task, int thread)
{
    const struct packing *p = user;
    const int64_t groups = mgx_ceil_div(p->w->n, GROUP);
    (void)thread;
    for (int64_t g = mgx_part_begin(groups, task, p->tasks),
                 end = mgx_part_begin(groups, task + 1, p->tasks);
         g < end; g++)
        if (p->w->blocks)
            pack_numbers(p->w, p->part, g, p->to);
        else
            pack_dense(p->w, g, p->to);
}

void gpu_few_pack(const struct mgx_plan_machine *machine, const struct gpu_few_weights *w, int part,
                  void *to)
{
    assert(part >= 0 && part < GPU_FEW_PARTS && to);
    enum { SMALL = 64 << 10 };
    if (w->blocks && !w->units) {
        copy_part(w->source[part], to);
        return;
    }
    const bool alone = w->bytes[part] < SMALL;
    struct packing p = {.w = w, .part = part, .to = to, .tasks = alone ? 1 : 4 * machine->threads};
    if (w->blocks)
        memset(to, 0, w->bytes[part]);
    mgx_plan_spread(machine, p.tasks, pack_groups, &p);
}
