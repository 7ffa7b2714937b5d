// SPDX-License-Identifier: MIT
// Element-wise instructions: a fused body, or a single scalar operator as its own body.
//
//     v0 = in0[at1(i)], v1 = in1[at2(i)], ...;  body;  out[at0(i)] = v<result>
//
// Where all lie alike along the last axis, or are one element there, a thread takes neighbours, up
// to 16 bytes of each at once.
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/size.h"
#include "op/op.h"
#include "op/pointwise.h"
#include "targets/gpu/emit/loop.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/emit/wide.h"
#include "targets/gpu/lower/ranged.h"
#include "targets/gpu/lower/side.h"

static bool is_elementwise(const struct mgx_ins *ins)
{
    return ins->op == &mgx_op_pointwise || mgx_pointwise_find(ins->op) ||
           ins->op == &mgx_op_convert || ins->op == &mgx_op_convert_e8m0 ||
           ins->op == &mgx_op_quantizelinear || ins->op == &mgx_op_dequantizelinear;
}

static const char *refuses(const struct mgx_plan_offer *c)
{
    if (c->copy_only || c->dynamic || !is_elementwise(c->ins))
        return "not element-wise";
    if (c->in_count > GPU_CALL_INPUTS || c->in_count + 1 > GPU_LOOP_ARRAYS)
        return "too many inputs";
    for (int i = 0; i <= c->in_count; i++)
        if (!gpu_type_is_elementwise((i < c->in_count ? &c->in[i] : c->out)->type))
            return "a type that kernels do not compute";
    if (c->ins->op == &mgx_op_pointwise && mgx_module_result_count(c->ins->mod[0]) != 1)
        return "several results";
    return NULL;
}

// The chunk of operand i, 0: the result; one element where the loop stands still.
static struct gpu_chunk chunk_of(const struct gpu_loop *loop, enum mgx_type type, const char *name,
                                 int i, int v)
{
    const bool moves = loop->rank && loop->strides[i][loop->rank - 1] != 0;
    return (struct gpu_chunk){name, gpu_type_memory(type), moves ? v : 1, (int)mgx_type_size(type)};
}

static void emit_loads(struct mgx_str *out, const struct mgx_plan_offer *c,
                       const struct gpu_loop *loop, int v)
{
    for (int i = 0; i < c->in_count; i++) {
        char array[16], at[16], name[16];
        snprintf(array, sizeof array, "in%d", i);
        snprintf(at, sizeof at, "at%d", i + 1);
        snprintf(name, sizeof name, "c%d", i);
        const struct gpu_chunk chunk = chunk_of(loop, c->in[i].type, name, i + 1, v);
        gpu_emit_chunk(out, &chunk);
        gpu_emit_chunk_load(out, &chunk, array, at);
    }
}

static void emit_element(struct mgx_str *out, const struct mgx_plan_offer *c,
                         const struct gpu_loop *loop, int v, int ranged, const char *body)
{
    if (v > 1)
        mgx_str_printf(out, "#pragma unroll\n    for (int k = 0; k < %d; k++) {\n", v);
    for (int i = 0; i < c->in_count; i++) {
        char element[32];
        const bool moves = v > 1 && loop->strides[i + 1][loop->rank - 1] != 0;
        snprintf(element, sizeof element, "c%d.v[%s]", i, moves ? "k" : "0");
        mgx_str_printf(out, "    const %s v%d = ", gpu_type_value(c->in[i].type), i);
        gpu_emit_widened(out, c->in[i].type, element);
        mgx_str_put(out, ";\n");
    }
    gpu_emit_call(out, body, c->out->type, c->in_count);
    mgx_str_printf(out, "    c.v[%s] = ", v > 1 ? "k" : "0");
    gpu_emit_narrowed(out, c->out->type, "y");
    mgx_str_put(out, ";\n");
    gpu_emit_range_value(out, ranged, "y");
    mgx_str_put(out, v > 1 ? "    }\n" : "");
}

// Of the thread whose first element is `i`.
static void emit_elements(struct mgx_str *out, const struct mgx_plan_offer *c,
                          const struct gpu_share *share, int ranged, const char *body)
{
    const struct gpu_loop *loop = &share->loop;
    gpu_emit_offsets(out, loop);
    emit_loads(out, c, loop, share->v);
    const struct gpu_chunk chunk = chunk_of(loop, c->out->type, "c", 0, share->v);
    gpu_emit_chunk(out, &chunk);
    emit_element(out, c, loop, share->v, ranged, body);
    gpu_emit_chunk_store(out, &chunk, "out", "at0");
}

static const char *emit(struct mgx_str *out, const struct mgx_plan_offer *c,
                        const struct gpu_share *share, int ranged)
{
    enum mgx_type types[GPU_CALL_INPUTS];
    for (int i = 0; i < c->in_count; i++)
        types[i] = c->in[i].type;
    const char *why = gpu_emit_body(out, c, c->ins);
    if (why)
        return why;
    gpu_emit_range_head(out, ranged, c->out->type, types, c->in_count);
    gpu_emit_range_threads(out, ranged, share->v, share->loop.elements);
    emit_elements(out, c, share, ranged, "body");
    mgx_str_put(out, ranged ? "    }\n" : "");
    gpu_emit_range_end(out, ranged);
    mgx_str_put(out, "}\n");
    return NULL;
}

void gpu_pointwise_emit_part(struct mgx_str *out, const struct mgx_plan_offer *c,
                             const struct gpu_share *share, int number)
{
    char body[16];
    assert(number >= 0 && share->v > 0);
    snprintf(body, sizeof body, "body%d", number);
    mgx_str_printf(out, "FUNCTION void part%d(GLOBAL %s *out", number,
                   gpu_type_memory(c->out->type));
    for (int i = 0; i < c->in_count; i++)
        mgx_str_printf(out, ", const GLOBAL %s *in%d", gpu_type_memory(c->in[i].type), i);
    mgx_str_printf(out,
                   ", int block)\n{\n    const i64 i = ((i64)block * THREADS + THREAD) * %d;\n"
                   "    if (i >= %" PRId64 ")\n        return;\n",
                   share->v, share->loop.elements);
    emit_elements(out, c, share, 0, body);
    mgx_str_put(out, "}\n");
}

// An input that lies as the result does may give up its bytes: each element is read before it is
// written, by the same thread.
static int in_place(const struct mgx_plan_offer *c)
{
    for (int i = 0; i < c->in_count; i++)
        if (mgx_type_size(c->in[i].type) == mgx_type_size(c->out->type) &&
            mgx_shape_same_lens(&c->in[i], c->out) && c->in[i].type == c->out->type &&
            mgx_shape_equal(&c->in[i], c->out))
            return i;
    return -1;
}

const char *gpu_pointwise_share(const struct mgx_plan_offer *c, struct gpu_share *out)
{
    const struct mgx_shape *shapes[GPU_LOOP_ARRAYS] = {c->out};
    size_t sizes[GPU_LOOP_ARRAYS] = {mgx_type_size(c->out->type)};
    const char *why = refuses(c);
    if (why)
        return why;
    for (int i = 0; i < c->in_count; i++) {
        if (!mgx_shape_same_lens(&c->in[i], c->out))
            return "an operand of other lengths";
        shapes[i + 1] = &c->in[i];
        sizes[i + 1] = mgx_type_size(c->in[i].type);
    }
    gpu_loop_make(&out->loop, shapes, c->in_count + 1);
    out->v = gpu_loop_vector(&out->loop, sizes, gpu_vector_for(out->loop.elements));
    return NULL;
}

// --- rounding ---

// Does it nothing but make bytes of one value?
static bool only_rounds(const struct mgx_plan_offer *c)
{
    static const struct mgx_op *const rounding[] = {&mgx_op_quantizelinear,
                                                    &mgx_op_convert,
                                                    &mgx_op_nearbyint,
                                                    &mgx_op_mul,
                                                    &mgx_op_div,
                                                    &mgx_op_add,
                                                    &mgx_op_clip,
                                                    &mgx_op_max,
                                                    &mgx_op_min,
                                                    &mgx_op_param,
                                                    &mgx_op_multibroadcast,
                                                    &mgx_op_literal,
                                                    &mgx_op_return};
    bool only = mgx_type_bits(c->out->type) == 8 && c->in_count >= 1 &&
                (c->ins->mod_count == 1 || c->ins->op == &mgx_op_quantizelinear);
    const struct mgx_ins *ins = only && c->ins->mod_count ? c->ins->mod[0]->first : NULL;
    for (; ins; ins = ins->next) {
        bool known = false;
        for (int i = 0; i < MGX_COUNT(rounding); i++)
            known |= ins->op == rounding[i];
        only = only && known;
    }
    for (int i = 1; i < c->in_count; i++)
        only = only && c->constant[i];
    return only;
}

// Of such a step, which 16 bits do without; but floats are made halves by one.
static struct mgx_plan_weight weight_of(const struct mgx_plan_offer *c)
{
    const double count = (double)mgx_shape_elements(c->out);
    const double in = (double)mgx_type_size(c->in[0].type);
    return (struct mgx_plan_weight){gpu_moving(count * (in + 1)),
                                    in > 2 ? gpu_moving(count * (in + 2)) : 0};
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct gpu_share share;
    struct mgx_str text = {0};
    const char *why = gpu_pointwise_share(c, &share);
    if (why)
        return gpu_decline(c, why);
    const struct gpu_launch how = gpu_launch_for(share.loop.elements / share.v);
    const bool ranged = gpu_is_ranged(c) && how.grid[0] && how.grid[0] <= GPU_RANGES_MOST;
    why = emit(&text, c, &share, ranged ? GPU_THREADS : 0);
    if (why) {
        mgx_str_fini(&text);
        return gpu_decline(c, why);
    }
    c->in_place = in_place(c);
    if (only_rounds(c))
        c->weight = weight_of(c);
    c->detail = share.v > 1 ? "neighbours at once" : "one element a thread";
    const enum mgx_plan_answer answer = gpu_take(c, &text, &how, NULL, c->in_count);
    if (answer == MGX_PLAN_TAKEN && ranged)
        gpu_leave_ranges(c, how.grid[0]);
    return answer;
}

const struct mgx_plan_kernel gpu_kernel_pointwise = {
    .name = "gpu::pointwise", .prepare = prepare, .run = gpu_run_call};
