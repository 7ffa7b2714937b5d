// SPDX-License-Identifier: MIT
// rotary_embedding on the card (kernel/rotary.gpu), a thread a pair, or 16 bytes of pairs where rows and
// tables lie so. Positions are values that only the card reads; one beyond the tables turns to zero.
#include <inttypes.h>

#include "op/op.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/cache.h"

enum { X, COS, SIN, AT };

static const char *refuses(const struct mgx_plan_offer *c)
{
    if (!mgx_shape_is_static(c->out) || !mgx_shape_elements(c->out) || !c->in[COS].lens[1])
        return "heads whose number only the run says, or none";
    if (!gpu_cache_computes(c->out->type))
        return "values that are not computed in float";
    return gpu_cache_reads_ends(&c->in[AT]) ? NULL : "positions of another type";
}

static bool steps_by(const struct mgx_shape *s, int64_t n)
{
    for (int i = 0; i + 1 < s->rank; i++)
        if (s->lens[i] > 1 && s->strides[i] % n)
            return false;
    return s->strides[s->rank - 1] == 1 && s->lens[s->rank - 1] % n == 0;
}

// Pairs that a thread takes: of neighbours half of what 16 bytes have, where a head is nothing else.
static int pairs_of(const struct mgx_plan_offer *c)
{
    const int n = 16 / (int)mgx_type_size(c->out->type);
    if (!steps_by(&c->in[X], n) || !steps_by(c->out, n))
        return 1;
    if (mgx_ins_int(c->ins, "interleaved"))
        return 2 * c->in[COS].lens[1] == c->out->lens[3] ? n / 2 : 1;
    return steps_by(&c->in[COS], n) && steps_by(&c->in[SIN], n) ? n : 1;
}

static void emit(struct mgx_str *out, const struct mgx_plan_offer *c, int pairs, int64_t threads)
{
    const struct mgx_shape *x = &c->in[X];
    gpu_emit_cache_type(out, x->type);
    gpu_emit_cache_turn(out, &c->in[COS], &c->in[SIN], &c->in[AT], x->lens[2],
                        mgx_ins_int(c->ins, "interleaved") != 0);
    gpu_emit_cache_row(out, "X", x);
    gpu_emit_cache_row(out, "Y", c->out);
    mgx_str_printf(out,
                   "#define BATCH %" PRId64 "\n#define HEADS %" PRId64 "\n#define TOKENS %" PRId64
                   "\n#define SIZE %" PRId64 "\n#define PAIRS %d\n#define A_BYTES %d\n"
                   "#define INDEX %s\n",
                   x->lens[0], x->lens[1], x->lens[2], x->lens[3], pairs,
                   (int)mgx_type_size(x->type), threads < INT32_MAX - 1024 ? "int" : "i64");
    GPU_PUT(out, rotary);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_rotary_embedding)
        return gpu_decline(c, "not a rotation by positions");
    const char *why = refuses(c);
    if (why)
        return gpu_decline(c, why);
    if (gpu_cache_wishes(c, 1u << X | 1u << COS | 1u << SIN))
        return mgx_plan_refuse(c);
    if (c->out->strides[3] != 1 && c->out->lens[3] > 1)
        return gpu_decline(c, "rows of the result are in pieces");
    struct mgx_str text = {0};
    const int64_t half = c->in[COS].lens[1], size = c->out->lens[3];
    const int pairs = pairs_of(c);
    const int64_t count = mgx_shape_elements(c->out) / size * ((size - half) / pairs);
    const struct gpu_launch how = gpu_launch_for(count);
    emit(&text, c, pairs, count);
    c->detail = pairs > 1 ? "some pairs a thread" : "a pair a thread";
    return gpu_take(c, &text, &how, NULL, c->in_count);
}

const struct mgx_plan_kernel gpu_kernel_rotary = {
    .name = "gpu::rotary_embedding", .prepare = prepare, .run = gpu_run_call};
