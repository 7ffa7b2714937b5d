// SPDX-License-Identifier: MIT
// nonmaxsuppression_list: boxes suppressed by better ones, a class of an image a block
// (kernel/suppression.gpu).
//
// The arithmetic is that of the boxes' type, worked out in double where the card has it, so that no
// compiler fuses what the definition rounds. Cost: all boxes for every one that is taken.
#include <inttypes.h>
#include <stdio.h>

#include "base/size.h"
#include "op/op.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/chain.h"

enum { BOXES, SCORES, MOST, IOU, LEAST };

static bool given(const struct mgx_plan_offer *c, int i)
{
    return i < c->in_count && mgx_shape_elements(&c->in[i]) == 1;
}

static const char *refuses(const struct mgx_plan_offer *c)
{
    for (int i = 0; i < c->in_count; i++)
        if ((i <= SCORES || given(c, i)) && !gpu_computes(c, c->in[i].type))
            return "a type that kernels do not compute";
    if (gpu_type_class(c->in[BOXES].type) != GPU_REAL ||
        gpu_type_class(c->in[SCORES].type) != GPU_REAL)
        return "boxes or scores that are no floats";
    if (mgx_shape_elements(c->out) <= 1 || !mgx_shape_elements(&c->in[SCORES]) ||
        mgx_shape_elements(&c->in[SCORES]) > INT32_MAX)
        return "no boxes, or too many";
    return NULL;
}

// A scalar that may be left out.
static void put_scalar(struct mgx_str *out, const struct mgx_plan_offer *c, const char *name, int i)
{
    char array[8];
    snprintf(array, sizeof array, "in%d", i);
    mgx_str_printf(out, "#define %s ", name);
    if (given(c, i))
        gpu_emit_load(out, c->in[i].type, array, "0");
    else
        mgx_str_put(out, "0");
    mgx_str_put(out, "\n");
}

static void put_types(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const bool wide = gpu_has_double(c);
    mgx_str_printf(out, "#define CENTERED %d\n#define SCORE_TYPE %s\n#define PLACE %s\n",
                   (int)mgx_ins_int(c->ins, "center_point_box"), gpu_type_value(c->in[SCORES].type),
                   wide ? "double" : "float");
    mgx_str_printf(out, "#define ROUND(x) %s\n",
                   wide && c->in[BOXES].type != MGX_DOUBLE ? "((double)(float)(x))" : "(x)");
    mgx_str_put(out, "#define PARAMETERS GLOBAL i64 *out, GLOBAL u8 *work");
    for (int i = 0; i < c->in_count; i++)
        if (i <= SCORES || given(c, i))
            mgx_str_printf(out, ", const GLOBAL %s *in%d", gpu_type_memory(c->in[i].type), i);
    mgx_str_put(out, "\n");
}

static void put_loads(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    char at[128];
    const int64_t *box = c->in[BOXES].strides, *score = c->in[SCORES].strides;
    snprintf(at, sizeof at, "(i64)(image) * %" PRId64 " + (i64)(b) * %" PRId64 " + (k) * %" PRId64,
             box[0], box[1], box[2]);
    mgx_str_put(out, "#define BOX(image, b, k) (PLACE)");
    gpu_emit_load(out, c->in[BOXES].type, "in0", at);
    snprintf(at, sizeof at,
             "(i64)((pair) / CLASSES) * %" PRId64 " + (i64)((pair) %% CLASSES) * %" PRId64
             " + (i64)(b) * %" PRId64,
             score[0], score[1], score[2]);
    mgx_str_put(out, "\n#define SCORE(pair, b) ");
    gpu_emit_load(out, c->in[SCORES].type, "in1", at);
    mgx_str_put(out, "\n");
    put_scalar(out, c, "MOST", MOST);
    put_scalar(out, c, "IOU", IOU);
    put_scalar(out, c, "THRESHOLD", LEAST);
    mgx_str_printf(out, "#define LEAST(x) %s\n", given(c, LEAST) ? "((x) > THRESHOLD)" : "1");
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_str text = {0};
    int in[LEAST + 1], count = 0;
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_nonmaxsuppression_list)
        return gpu_decline(c, "no boxes to suppress");
    const char *why = refuses(c);
    if (why)
        return gpu_decline(c, why);
    const int64_t *lens = c->in[SCORES].lens, pairs = lens[0] * lens[1];
    const int64_t cap = (mgx_shape_elements(c->out) - 1) / (3 * pairs);
    const size_t taken = mgx_align64((size_t)(pairs * lens[2]));
    const size_t counts = taken + mgx_align64((size_t)(pairs * cap) * sizeof(int32_t));
    for (int i = 0; i < c->in_count; i++) {
        c->skip_in[i] = i > SCORES && !given(c, i);
        if (!c->skip_in[i])
            in[count++] = i;
    }
    mgx_str_printf(&text,
                   "#define CLASSES %" PRId64 "\n#define PAIRS %" PRId64 "\n#define B %" PRId64
                   "\n#define CAP %" PRId64 "\n#define TAKEN %zu\n#define COUNTS %zu\n",
                   lens[1], pairs, lens[2], cap, taken, counts);
    put_types(&text, c);
    put_loads(&text, c);
    GPU_PUT(&text, suppression);
    const struct gpu_launch each = {.grid = {(unsigned)pairs, 1, 1}, .block = {GPU_THREADS, 1, 1}};
    const struct gpu_launch how[] = {each, each};
    c->workspace = counts + (size_t)pairs * sizeof(int32_t);
    c->detail = "a class of an image a block";
    return gpu_take_chain(c, &text, how, 2, in, count);
}

const struct mgx_plan_kernel gpu_kernel_suppression = {.name = "gpu::suppression",
                                                       .prepare = prepare,
                                                       .run = gpu_run_chain,
                                                       .more = &gpu_chain_family};
