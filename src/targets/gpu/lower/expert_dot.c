// SPDX-License-Identifier: MIT
// expert_dot (kernel/expert_dot.gpu): every row by the matrix that it asks for, which is read where the
// model has it, floats or numbers of 8, 4 and 2 bits.
//
// Floats of no fewer rows than there are matrices are products of all rows by all of them instead, on
// units that multiply (pass/rewrite_experts.c); numbers are not, since all of them as floats are eight
// times as many bytes. Holds: depth and blocks are multiples of 8; weights begin at multiples of 16 bytes.
#include <inttypes.h>

#include "op/op.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/few.h"

enum { X, WHICH, W, SCALE, ZERO };
enum { WARPS = 4, MOST_ROWS = 8, EIGHT = 8, ALIGNED = 16 };

static bool is_read(enum mgx_type type)
{
    return mgx_type_is_half_or_bf16(type) || type == MGX_FLOAT;
}

static bool reads_numbers(const struct mgx_ins *ins)
{
    const struct mgx_shape *w = &ins->in[W]->shape;
    const int64_t per = 8 / mgx_ins_int(ins, "bits");
    return w->lens[3] * per % EIGHT == 0 && is_read(ins->in[SCALE]->shape.type);
}

// Whether the kernel takes it, wherever its operands lie.
bool gpu_experts_supports(const struct mgx_ins *ins)
{
    const struct mgx_shape *x = &ins->in[X]->shape, *w = &ins->in[W]->shape, *y = &ins->shape;
    const enum mgx_type which = ins->in[WHICH]->shape.type;
    for (int i = 0; i < ins->in_count; i++)
        if (!mgx_shape_is_static(&ins->in[i]->shape))
            return false;
    if (!mgx_shape_elements(y) || !mgx_shape_elements(w) || !is_read(x->type) ||
        x->lens[1] % EIGHT || (which != MGX_INT64 && which != MGX_INT32) || w->lens[0] > 65535 ||
        y->lens[0] > INT32_MAX || w->lens[0] * w->lens[1] > INT32_MAX)
        return false;
    if (mgx_ins_int(ins, "bits"))
        return reads_numbers(ins);
    return is_read(w->type) && y->lens[0] < w->lens[0];
}

// --- text ---

static int rows_of(const struct mgx_plan_offer *c) // that a pass over a matrix serves
{
    const int64_t rows = c->out->lens[0];
    return rows < MOST_ROWS ? (int)rows : MOST_ROWS;
}

static int columns_of(const struct mgx_plan_offer *c) // of a warp
{
    return rows_of(c) <= MOST_ROWS / 2 ? 4 : 2;
}

static void emit_sizes(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_shape *x = &c->in[X], *w = &c->in[W];
    gpu_define(out, "M", rows_of(c));
    gpu_define(out, "N", c->out->lens[1]);
    gpu_define(out, "K", x->lens[1]);
    gpu_define(out, "ROW", x->lens[1]);
    gpu_define(out, "RESULT_ROWS", c->out->lens[0]);
    gpu_define(out, "PER", mgx_ins_int(c->ins, "per"));
    gpu_define(out, "EXPERTS", w->lens[0]);
    gpu_define(out, "COLUMNS", columns_of(c));
    gpu_define(out, "WARPS", WARPS);
    gpu_define(out, "X_PITCH", x->lens[1]);
    gpu_define(out, "X_WIDE", 1);
    gpu_define(out, "X_BYTES", (int64_t)mgx_type_size(x->type));
    mgx_str_printf(out,
                   "#define X_TYPE %s\n#define X_OF(x) %s\n#define I_TYPE %s\n#define C_TYPE %s\n"
                   "#define STORE(at, x) ",
                   gpu_type_memory(x->type), gpu_few_reader(x->type),
                   gpu_type_memory(c->in[WHICH].type), gpu_type_memory(c->out->type));
    gpu_emit_store(out, c->out->type, "out", "at", "(x)");
    mgx_str_put(out, "\n");
}

static void emit_weights(struct mgx_str *out, const struct mgx_plan_offer *c)
{
    const struct mgx_shape *w = &c->in[W];
    const int64_t bits = mgx_ins_int(c->ins, "bits");
    gpu_define(out, "BITS", bits ? bits : 8 * (int64_t)mgx_type_size(w->type));
    gpu_define(out, "ZEROS", c->in_count > ZERO);
    if (bits)
        gpu_few_emit_scales(out, w->lens[3] * 8 / bits, w->lens[2], c->in[SCALE].type,
                            c->in_count > ZERO ? c->in[ZERO].type : MGX_UINT8);
    else
        mgx_str_printf(out, "#define W_OF(x) %s\n", gpu_few_reader(w->type));
}

// --- the offer ---

static const char *refuses(const struct mgx_plan_offer *c)
{
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_expert_dot)
        return "no product by experts";
    if (!gpu_experts_supports(c->ins) || !mgx_shape_is_standard(c->out))
        return "types or lengths that the kernel does not read";
    for (int i = W; i < c->in_count; i++)
        if (c->in_offset && c->in_offset[i] % ALIGNED)
            return "weights that begin at no multiple of 16 bytes";
    return NULL;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    const char *why = refuses(c);
    struct mgx_str text = {0};
    if (why)
        return gpu_decline(c, why);
    for (int i = X; i < c->in_count; i++)
        if (!mgx_shape_is_standard(&c->in[i])) {
            (void)mgx_plan_wish(c, i, MGX_PLAN_ROW_MAJOR, "an operand does not lie in order");
            return mgx_plan_refuse(c);
        }
    emit_sizes(&text, c);
    emit_weights(&text, c);
    GPU_PUT(&text, few_rows);
    GPU_PUT(&text, expert_dot);
    const int64_t rows = c->out->lens[0], experts = c->in[W].lens[0];
    const int64_t each = (int64_t)WARPS * columns_of(c);
    c->flops = 2.0 * (double)mgx_shape_elements(c->out) * (double)c->in[X].lens[1];
    c->detail = "a matrix read once for a few rows";
    const struct gpu_launch how = {.grid = {(unsigned)((c->out->lens[1] + each - 1) / each),
                                            (unsigned)(rows < experts ? rows : experts), 1},
                                   .block = {WARPS * 32, 1, 1}};
    const bool packed = c->in_count > SCALE; // a part that is not there is another's address
    return gpu_take(c, &text, &how,
                    (const int[]){X, WHICH, W, SCALE, c->in_count > ZERO ? ZERO : SCALE},
                    packed ? 5 : 3);
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    for (int i = W; i < step->in_count; i++)
        if ((uintptr_t)args->in[i] % ALIGNED)
            return mgx_fail(diag, MGX_INVALID,
                            "expert_dot: weights lie at %p: this card wants multiples of 16 bytes",
                            args->in[i]);
    return gpu_run_call(step, args, diag);
}

static enum mgx_status finish(struct mgx_plan *plan, const struct mgx_plan_step *step,
                              struct mgx_diag *diag)
{
    struct gpu_call *call = step->state;
    (void)plan;
    return gpu_unit_kernel(call->unit, "run", 0, &call->kernel, diag);
}

static const struct gpu_family family = {finish};
const struct mgx_plan_kernel gpu_kernel_expert_dot = {
    .name = "gpu::expert_dot", .prepare = prepare, .run = run, .more = &family};
