// SPDX-License-Identifier: MIT
// grid_sample: an image read at the places that a grid names.
//
//     x {n, c, d1 ... dk}, grid {n, o1 ... ok, k}  ->  y {n, c, o1 ... ok}
//
// A thread takes one place for some channels: where the place is, it finds once. Places are worked
// out in double where the card has it, as the reference does, so that a nearest element on the border
// between two is the same one; what is read and summed is float.
#include <inttypes.h>
#include <stdio.h>

#include "op/op.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/lower.h"

enum { MOST_CHANNELS = 8, ENOUGH = 1 << 14 }; // channels of a thread; threads that fill a card

static const char *refuses(const struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0], *grid = &c->in[1];
    if (gpu_type_class(x->type) != GPU_REAL || x->type == MGX_DOUBLE ||
        gpu_type_class(grid->type) != GPU_REAL || (grid->type == MGX_DOUBLE && !gpu_has_double(c)))
        return "values that are not read as float";
    if (!mgx_shape_elements(c->out) || !mgx_shape_elements(x))
        return "empty";
    for (int i = 0; i < x->rank; i++)
        if (x->lens[i] >= INT32_MAX / 2 || c->out->lens[i] >= INT32_MAX / 2)
            return "an axis too long";
    return NULL;
}

static void emit_modes(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    static const int taps[] = {2, 1, 4};
    const int64_t mode = mgx_ins_int(c->ins, "mode");
    mgx_str_printf(out,
                   "#define PLACE %s\n#define MODE %d\n#define PADDING %d\n#define CORNERS %d\n"
                   "#define TAPS %d\n",
                   gpu_has_double(c) ? "double" : "float", (int)mode,
                   (int)mgx_ins_int(c->ins, "padding_mode"),
                   (int)mgx_ins_int(c->ins, "align_corners"), taps[mode]);
    GPU_PUT(out, grid_sample);
}

// o2 ... of the place, c0 the thread's first channel, n the image: from the number i.
static void emit_numbers(struct mgx_str *out, const struct mgx_plan_offer *c, int channels)
{
    const struct mgx_shape *y = c->out;
    mgx_str_put(out, "    i64 rest = i;\n");
    for (int k = y->rank - 1; k >= 2; k--)
        mgx_str_printf(
            out, "    const int o%d = (int)(rest %% %" PRId64 ");\n    rest /= %" PRId64 ";\n", k,
            y->lens[k], y->lens[k]);
    const int64_t chunks = (y->lens[1] + channels - 1) / channels;
    mgx_str_printf(out,
                   "    const int c0 = (int)(rest %% %" PRId64
                   ") * %d;\n    const int n = (int)(rest / "
                   "%" PRId64 ");\n",
                   chunks, channels, chunks);
}

static void emit_taps(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0], *grid = &c->in[1];
    mgx_str_printf(out, "    const i64 place = (i64)n * %" PRId64, grid->strides[0]);
    for (int k = 2; k < x->rank; k++)
        mgx_str_printf(out, " + (i64)o%d * %" PRId64, k, grid->strides[k - 1]);
    mgx_str_put(out, ";\n");
    for (int k = 2; k < x->rank; k++) {
        struct mgx_str at = {0};
        mgx_str_printf(&at, "place + %" PRId64, (x->rank - 1 - k) * grid->strides[x->rank - 1]);
        mgx_str_printf(out, "    int at%d[TAPS];\n    float w%d[TAPS];\n    find_taps((PLACE)", k,
                       k);
        gpu_emit_load(out, grid->type, "in1", mgx_str_text(&at));
        mgx_str_printf(out, ", %" PRId64 ", at%d, w%d);\n", x->lens[k], k, k);
        mgx_str_fini(&at);
    }
}

// All combinations of taps of one channel.
static void emit_sum(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[0];
    mgx_str_printf(out,
                   "        const i64 from1 = (i64)n * %" PRId64 " + (i64)(c0 + k) * %" PRId64
                   ";\n        const float weight1 = 1;\n        float sum = 0;\n",
                   x->strides[0], x->strides[1]);
    for (int k = 2; k < x->rank; k++)
        mgx_str_printf(out,
                       "        for (int t%d = 0; t%d < TAPS; t%d++) {\n"
                       "        if (at%d[t%d] < 0)\n            continue;\n"
                       "        const i64 from%d = from%d + (i64)at%d[t%d] * %" PRId64 ";\n"
                       "        const float weight%d = weight%d * w%d[t%d];\n",
                       k, k, k, k, k, k, k - 1, k, k, x->strides[k], k, k - 1, k, k);
    char from[16];
    snprintf(from, sizeof from, "from%d", x->rank - 1);
    mgx_str_printf(out, "        sum += weight%d * ", x->rank - 1);
    gpu_emit_load(out, x->type, "in0", from);
    mgx_str_put(out, ";\n");
    for (int k = 2; k < x->rank; k++)
        mgx_str_put(out, "        }\n");
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, int channels, int64_t threads)
{
    const struct mgx_shape *y = c->out;
    const enum mgx_type types[] = {c->in[0].type, c->in[1].type};
    emit_modes(out, c);
    gpu_emit_head(out, y->type, types, 2);
    mgx_str_printf(out,
                   "{\n    const i64 i = (i64)BLOCK * THREADS + THREAD;\n    if (i >= %" PRId64
                   ")\n        return;\n",
                   threads);
    emit_numbers(out, c, channels);
    emit_taps(out, c);
    mgx_str_printf(out, "    for (int k = 0; k < %d && c0 + k < %" PRId64 "; k++) {\n", channels,
                   y->lens[1]);
    emit_sum(out, c);
    mgx_str_printf(out, "        const i64 to = (i64)n * %" PRId64 " + (i64)(c0 + k) * %" PRId64,
                   y->strides[0], y->strides[1]);
    for (int k = 2; k < y->rank; k++)
        mgx_str_printf(out, " + (i64)o%d * %" PRId64, k, y->strides[k]);
    mgx_str_put(out, ";\n        ");
    gpu_emit_store(out, y->type, "out", "to", "sum");
    mgx_str_put(out, "\n    }\n}\n");
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_str text = {0};
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_grid_sample)
        return gpu_decline(c, "not a sampling by a grid");
    const char *why = refuses(c);
    if (why)
        return gpu_decline(c, why);
    const int64_t all = mgx_shape_elements(c->out), places = all / c->out->lens[1];
    int channels = 1;
    while (channels < MOST_CHANNELS && channels < c->out->lens[1] && all / channels > ENOUGH)
        channels *= 2;
    const int64_t threads = places * ((c->out->lens[1] + channels - 1) / channels);
    emit(&text, c, channels, threads);
    const struct gpu_launch how = gpu_launch_for(threads);
    c->detail = "a place and some channels a thread";
    return gpu_take(c, &text, &how, NULL, 2);
}

const struct mgx_plan_kernel gpu_kernel_grid_sample = {
    .name = "gpu::grid_sample", .prepare = prepare, .run = gpu_run_call};
