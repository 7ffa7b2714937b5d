// SPDX-License-Identifier: MIT
// Average and maximum of whole planes: a block folds the planes of a few neighbouring channels, its
// threads side by side along the channels where images lie channels last, and down the pixels.
//
//     out[n, c] = fold over all pixels of in0[n, c, ...]
//
// Sums are float. Cost: each pixel is read once, whole lines at a time where channels neighbour.
#include <inttypes.h>
#include <stdio.h>

#include "op/op.h"
#include "op/reference/pool.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/emit/wide.h"
#include "targets/gpu/lower/lower.h"

enum { AVERAGE, MAXIMUM, MOST_LANES = 16, LONG_PLANE = 1024, MANY_BLOCKS = 264 };

struct plane {
    int64_t pixels, step; // of the input, from pixel to pixel
    int64_t chunks;       // of v channels that an image has
    int v, lanes, slices; // lanes side by side, slices of the pixels
    bool average;
};

// One step from pixel to pixel through all of a plane.
static bool read_pixels(const struct mgx_shape *s, struct plane *p)
{
    p->pixels = 1;
    p->step = 0;
    for (int axis = s->rank - 1; axis >= 2; axis--) {
        if (s->lens[axis] == 1)
            continue;
        if (p->pixels == 1)
            p->step = s->strides[axis];
        else if (s->strides[axis] != p->step * p->pixels)
            return false;
        p->pixels *= s->lens[axis];
    }
    return true;
}

static const char *read(const struct mgx_plan_offer *c, struct plane *p)
{
    if (c->ins->op != &mgx_op_pooling || c->copy_only || c->dynamic || c->in_count != 1)
        return "not a pooling";
    const int64_t mode = mgx_ins_int(c->ins, "mode");
    const struct mgx_shape *in = &c->in[0];
    if (mode > MAXIMUM || gpu_type_class(in->type) != GPU_REAL || in->type == MGX_DOUBLE ||
        c->out->type != in->type)
        return "values that are not folded in float";
    if (c->out->rank < 3 || mgx_shape_elements(in) == 0 || !mgx_pool_sees_all(c->ins))
        return "windows that are not whole planes";
    p->average = mode == AVERAGE;
    if (!read_pixels(in, p) || p->pixels >= INT32_MAX || in->lens[0] > 65535)
        return "pixels that do not follow each other";
    return NULL;
}

static void divide(const struct mgx_plan_offer *c, struct plane *p)
{
    const struct gpu_properties *card = &gpu_machine(c->machine)->device->properties;
    const bool many = card->version >= 70 && p->pixels >= LONG_PLANE; // CUDA's blocks may be large
    p->v = gpu_move_vector(c->out, 1, &c->in[0], 1, 16 / (int64_t)mgx_type_size(c->out->type));
    p->chunks = c->in[0].lens[1] / p->v;
    const int threads = many ? 4 * GPU_THREADS : GPU_THREADS;
    for (p->slices = threads; p->slices > threads / MOST_LANES && p->slices > 4; p->slices /= 2) {
        const int64_t lanes = 2 * threads / p->slices;
        if (c->in[0].strides[1] != 1 || lanes > p->chunks || p->slices * 4 < p->pixels ||
            (p->chunks + lanes - 1) / lanes * c->in[0].lens[0] < MANY_BLOCKS / 2)
            break;
    }
    p->lanes = threads / p->slices;
}

static void emit_fold(struct mgx_str *out, const struct plane *p)
{
    mgx_str_printf(
        out,
        "#pragma unroll\n    for (int k = 0; k < %d; k++)\n"
        "        part[k][THREAD] = acc[k];\n"
        "    for (int s = %d; s > 0; s /= 2) {\n        BARRIER();\n"
        "        if (slice < s)\n#pragma unroll\n            for (int k = 0; k < %d; k++)\n"
        "                JOIN(part[k][THREAD], part[k][THREAD + s * %d]);\n"
        "    }\n    if (slice > 0 || chunk >= %" PRId64 ")\n        return;\n",
        p->v, p->slices / 2, p->v, p->lanes, p->chunks);
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, const struct plane *p)
{
    const struct mgx_shape *in = &c->in[0];
    const struct gpu_chunk chunk = {"c", gpu_type_memory(in->type), p->v,
                                    (int)mgx_type_size(in->type)};
    mgx_str_printf(out, "#define JOIN(acc, x) (acc %s)\n",
                   p->average ? "+= x" : "= x > acc || x != x ? x : acc");
    gpu_emit_head(out, c->out->type, &in->type, 1);
    mgx_str_printf(out,
                   "{\n    SHARED float part[%d][%d];\n"
                   "    const int slice = THREAD / %d, chunk = BLOCK * %d + THREAD %% %d;\n"
                   "    const i64 base = (i64)BLOCK_Y * %" PRId64 " + (i64)chunk * %" PRId64 ";\n"
                   "    float acc[%d];\n    for (int k = 0; k < %d; k++)\n        acc[k] = ",
                   p->v, p->lanes * p->slices, p->lanes, p->lanes, p->lanes, in->strides[0],
                   p->v * in->strides[1], p->v, p->v);
    mgx_str_put(out, p->average ? "0" : "FLOAT_OF_BITS(0xff800000u)");
    mgx_str_printf(out,
                   ";\n#pragma unroll 4\n    for (int i = chunk < %" PRId64 " ? slice : %" PRId64
                   "; i < %" PRId64 "; i += %d) {\n",
                   p->chunks, p->pixels, p->pixels, p->slices);
    mgx_str_printf(out, "    const i64 from = base + (i64)i * %" PRId64 ";\n", p->step);
    gpu_emit_chunk(out, &chunk);
    gpu_emit_chunk_load(out, &chunk, "in0", "from");
    mgx_str_printf(
        out, "#pragma unroll\n    for (int k = 0; k < %d; k++) {\n    const float x = ", p->v);
    gpu_emit_widened(out, in->type, "c.v[k]");
    mgx_str_put(out, ";\n    JOIN(acc[k], x);\n    }\n    }\n");
    emit_fold(out, p);
    mgx_str_printf(out,
                   "    const i64 to = (i64)BLOCK_Y * %" PRId64 " + (i64)chunk * %" PRId64 ";\n",
                   c->out->strides[0], p->v * c->out->strides[1]);
    gpu_emit_chunk(out, &chunk);
    mgx_str_printf(out, "    for (int k = 0; k < %d; k++)\n        c.v[k] = ", p->v);
    char value[64];
    snprintf(value, sizeof value,
             p->average ? "part[k][THREAD] / %" PRId64 ".0f" : "part[k][THREAD]", p->pixels);
    gpu_emit_narrowed(out, c->out->type, value);
    mgx_str_put(out, ";\n");
    gpu_emit_chunk_store(out, &chunk, "out", "to");
    mgx_str_put(out, "}\n");
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct plane p;
    struct mgx_str text = {0};
    const char *why = read(c, &p);
    if (why)
        return gpu_decline(c, why);
    divide(c, &p);
    emit(&text, c, &p);
    const struct gpu_launch how = {
        .grid = {(unsigned)((p.chunks + p.lanes - 1) / p.lanes), (unsigned)c->in[0].lens[0], 1},
        .block = {(unsigned)(p.lanes * p.slices), 1, 1}};
    c->detail = "planes by the block";
    return gpu_take(c, &text, &how, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_pool_plane = {
    .name = "gpu::pool_plane", .prepare = prepare, .run = gpu_run_call};
