// SPDX-License-Identifier: MIT
// deform_conv: columns of taps that were moved and scaled go to the workspace, then the weights
// multiply them (kernel/deform.gpu).
//
//     run0   work[n, c, t, o] = mask[n, G, t, o] * in0[n, c, o * stride + t * dilation - begin + offset]
//     run1   out[n, m, o] = sum over c, t of in1[m, c, t] * work[n, c, t, o]
//
// Workspace: the columns of all images as floats, taps times what x has for every place.
#include <inttypes.h>

#include "base/size.h"
#include "op/op.h"
#include "op/reference/window.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/chain.h"

enum { X, W, MOVED, MASK, TILE = 64, MOST_AXES = 4 };

struct sizes {
    int rank; // spatial
    struct mgx_window axis[MGX_MAX_RANK];
    int64_t images, channels, taps, places, groups, moves, out_channels;
};

static struct sizes sizes_of(const struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[X], *w = &c->in[W], *y = c->out;
    const struct mgx_window_attr a = mgx_window_of(c->ins);
    struct sizes s = {.rank = x->rank - 2,
                      .images = x->lens[0],
                      .channels = x->lens[1],
                      .taps = 1,
                      .places = 1,
                      .groups = a.group,
                      .moves = mgx_ins_int(c->ins, "offset_group"),
                      .out_channels = w->lens[0]};
    for (int i = 0; i < s.rank; i++) {
        s.axis[i] = mgx_window_at(&a, i, x->lens[i + 2], w->lens[i + 2], y->lens[i + 2]);
        s.taps *= w->lens[i + 2];
        s.places *= y->lens[i + 2];
    }
    return s;
}

static const char *refuses(const struct mgx_plan_offer *c, const struct sizes *s)
{
    if (gpu_type_class(c->out->type) != GPU_REAL || c->out->type == MGX_DOUBLE)
        return "values that are not summed in float";
    if (s->rank > MOST_AXES)
        return "too many axes";
    const int64_t columns = mgx_shape_elements(&c->in[MOVED]);
    return !mgx_shape_elements(c->out) || !mgx_shape_elements(&c->in[X]) ||
                   !mgx_shape_elements(&c->in[W]) || columns > INT32_MAX ||
                   s->channels * s->taps > INT32_MAX / mgx_max_i64(s->places, 1) ||
                   s->images * s->groups > UINT16_MAX || s->out_channels > INT32_MAX / 64
               ? "no columns, or too many"
               : NULL;
}

// --- the text ---

enum field { OUT_LEN, KERNEL_LEN, IN_LEN, STEP, APART, BEGIN };

static int64_t field_of(const struct mgx_window *w, enum field f)
{
    const int64_t all[] = {w->out, w->kernel, w->in, w->stride, w->dilation, w->begin};
    return all[f];
}

static void put_windows(struct mgx_str *out, const struct sizes *s)
{
    static const char *const names[] = {"out_len", "kernel_len", "in_len",
                                        "stride",  "apart",      "begin"};
    for (int f = OUT_LEN; f <= BEGIN; f++) {
        mgx_str_printf(out, "CONSTANT int %s[RANK] = {", names[f]);
        for (int i = 0; i < s->rank; i++)
            mgx_str_printf(out, "%s%" PRId64, i ? ", " : "", field_of(&s->axis[i], (enum field)f));
        mgx_str_put(out, "};\n");
    }
}

static void put_strides(struct mgx_str *out, const char *name, const struct mgx_shape *s)
{
    mgx_str_printf(out, "CONSTANT i64 %s[%d] = {", name, s->rank);
    for (int i = 0; i < s->rank; i++)
        mgx_str_printf(out, "%s%" PRId64, i ? ", " : "", s->strides[i]);
    mgx_str_put(out, "};\n");
}

static void put_load(struct mgx_str *out, const char *name, enum mgx_type type, const char *array)
{
    mgx_str_printf(out, "#define %s(at) (float)", name);
    gpu_emit_load(out, type, array, "at");
    mgx_str_put(out, "\n");
}

static void put_parameters(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    mgx_str_printf(out, "#define PARAMETERS GLOBAL %s *out, GLOBAL u8 *work",
                   gpu_type_memory(c->out->type));
    for (int i = 0; i < c->in_count; i++)
        mgx_str_printf(out, ", const GLOBAL %s *in%d", gpu_type_memory(c->in[i].type), i);
    mgx_str_put(out, "\n");
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, const struct sizes *s)
{
    const bool masked = c->in_count > MASK;
    mgx_str_printf(out,
                   "#define RANK %d\n#define IMAGES %" PRId64 "\n#define CHANNELS %" PRId64
                   "\n#define TAPS %" PRId64 "\n#define PLACES %" PRId64 "\n#define GROUPS %" PRId64
                   "\n#define OFFSET_GROUPS %" PRId64 "\n#define M %" PRId64 "\n#define K %" PRId64
                   "\n#define PLACE %s\n",
                   s->rank, s->images, s->channels, s->taps, s->places, s->groups, s->moves,
                   s->out_channels / s->groups, s->channels / s->groups * s->taps,
                   gpu_has_double(c) ? "double" : "float");
    put_windows(out, s);
    put_strides(out, "x_stride", &c->in[X]);
    put_strides(out, "w_stride", &c->in[W]);
    put_strides(out, "moved_stride", &c->in[MOVED]);
    put_strides(out, "mask_stride", &c->in[masked ? MASK : MOVED]);
    put_strides(out, "y_stride", c->out);
    put_load(out, "X_AT", c->in[X].type, "in0");
    put_load(out, "W_AT", c->in[W].type, "in1");
    put_load(out, "MOVED_AT", c->in[MOVED].type, "in2");
    if (masked)
        put_load(out, "MASK_AT", c->in[MASK].type, "in3");
    else
        mgx_str_put(out, "#define MASK_AT(at) 1.0f\n");
    mgx_str_put(out, "#define STORE(at, x) ");
    gpu_emit_store(out, c->out->type, "out", "at", "x");
    mgx_str_put(out, "\n");
    put_parameters(out, c);
    GPU_PUT(out, deform);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_str text = {0};
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_deform_conv)
        return gpu_decline(c, "no convolution of moved taps");
    const struct sizes s = sizes_of(c);
    const char *why = refuses(c, &s);
    if (why)
        return gpu_decline(c, why);
    emit(&text, c, &s);
    const int64_t m = s.out_channels / s.groups;
    const struct gpu_launch how[] = {
        gpu_launch_for(s.images * s.moves * s.taps * s.places),
        {.grid = {(unsigned)((s.places + TILE - 1) / TILE), (unsigned)((m + TILE - 1) / TILE),
                  (unsigned)(s.images * s.groups)},
         .block = {GPU_THREADS, 1, 1}}};
    c->workspace = (size_t)s.images * (size_t)(s.channels * s.taps * s.places) * sizeof(float);
    c->detail = "columns, then their product";
    return gpu_take_chain(c, &text, how, 2, NULL, c->in_count);
}

const struct mgx_plan_kernel gpu_kernel_deform = {.name = "gpu::deform_conv",
                                                  .prepare = prepare,
                                                  .run = gpu_run_chain,
                                                  .more = &gpu_chain_family};
