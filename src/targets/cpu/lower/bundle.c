// SPDX-License-Identifier: MIT
// Steps side by side that are one call: a dynamic quantization and what multiplies its scale.
//
//     scale   total            zero    total, of scale
//     y       quantizelinear   factor  scale * by, any number of them, one value each
//
// What such a step reads and is read by lies in the caches of nobody when weights have gone through
// them since the last run, so that each costs half a microsecond, however little it does. Together
// they cost that once.
#include <assert.h>

#include "op/op.h"
#include "plan/context.h"
#include "targets/cpu/kernel/rows/byte_range.h"
#include "targets/cpu/lower/total.h"

struct factor {
    struct mgx_plan_ref by, out;
};

struct quantization {
    struct mgx_plan_ref x, scale, zero, y;
    int64_t elements;
    mgx_isa isa;
    int factor_count;
    struct factor factors[];
};

// --- running ---

static enum mgx_status run(const void *state, const struct mgx_context *context, bool *done,
                           struct mgx_diag *diag)
{
    const struct quantization *k = state;
    (void)diag;
    const float *x = mgx_context_address(context, &k->x);
    struct mgx_byte_range range = {0, 0};
    mgx_byte_range_widen(k->isa, x, k->elements, &range);
    const struct mgx_range_bytes how = mgx_byte_range_bytes(&range);
    *(float *)mgx_context_address(context, &k->scale) = how.scale;
    *(uint8_t *)mgx_context_address(context, &k->zero) = (uint8_t)how.zero;
    mgx_byte_range_run(k->isa, &how, x, k->elements, mgx_context_address(context, &k->y));
    for (int i = 0; i < k->factor_count; i++)
        *(float *)mgx_context_address(context, &k->factors[i].out) =
            how.scale * *(const float *)mgx_context_address(context, &k->factors[i].by);
    *done = true;
    return MGX_OK;
}

// --- finding them ---

static bool same_place(const struct mgx_plan_ref *a, const struct mgx_plan_ref *b)
{
    return a->place == b->place && a->side == b->side && a->index == b->index &&
           a->offset == b->offset && a->data == b->data;
}

static bool is_one_float(const struct mgx_plan_value *v)
{
    return !v->dynamic && v->shape.type == MGX_FLOAT && mgx_shape_space(&v->shape) == 1;
}

// Element i of the one where element i of the other lies, without gaps.
static bool lie_alike(const struct mgx_shape *a, const struct mgx_shape *b)
{
    if (!mgx_shape_is_packed(a) || !mgx_shape_is_packed(b) || !mgx_shape_same_lens(a, b))
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->lens[i] != 1 && a->strides[i] != b->strides[i])
            return false;
    return true;
}

static bool is_pointwise(const struct mgx_plan_step *step, const struct mgx_op *op, int inputs)
{
    return step->kernel == &cpu_kernel_pointwise && step->ins->op == op &&
           step->in_count == inputs && !step->copies && !step->drop_count;
}

// Steps `s` and the two behind it: scale, zero point and bytes of the same floats.
static bool is_quantization(const struct mgx_plan_step *s)
{
    const struct cpu_total scale = cpu_total_of(&s[0]), zero = cpu_total_of(&s[1]);
    if (scale.form != CPU_TOTAL_SCALE || zero.form != CPU_TOTAL_ZERO || s[0].drop_count ||
        s[1].drop_count || !is_pointwise(&s[2], &mgx_op_quantizelinear, 3))
        return false;
    const struct mgx_plan_ref *x = &s[0].in[scale.x];
    const struct mgx_plan_value *from = s[2].in_value[0], *to = s[2].out_value;
    return same_place(x, &s[1].in[zero.x]) && same_place(x, &s[2].in[0]) &&
           same_place(&s[0].out, &s[1].in[zero.scale]) && same_place(&s[0].out, &s[2].in[1]) &&
           same_place(&s[1].out, &s[2].in[2]) && is_one_float(s[2].in_value[1]) &&
           mgx_shape_space(&s[2].in_value[2]->shape) == 1 && to->shape.type == MGX_UINT8 &&
           from->shape.type == MGX_FLOAT && lie_alike(&from->shape, &to->shape);
}

// The input that multiplies the scale, which lies at `scale`; -1: the step is none of that kind.
static int factor_in(const struct mgx_plan_step *step, const struct mgx_plan_ref *scale)
{
    if (!is_pointwise(step, &mgx_op_mul, 2) || !is_one_float(step->out_value))
        return -1;
    for (int i = 0; i < 2; i++)
        if (same_place(&step->in[i], scale) && is_one_float(step->in_value[i]) &&
            is_one_float(step->in_value[1 - i]) && !same_place(&step->in[1 - i], scale))
            return 1 - i;
    return -1;
}

// How many steps from `s` on multiply the scale, until one of them takes its place.
static int count_factors(const struct mgx_plan_step *s, int left, const struct mgx_plan_ref *scale)
{
    int count = 0;
    for (bool there = true; there && count < left && factor_in(&s[count], scale) >= 0; count++)
        there = !same_place(&s[count].out, scale);
    return count;
}

static struct mgx_plan_bundle *bundle(struct mgx_plan *plan, int first)
{
    enum { QUANTIZED = 3 };
    const struct mgx_plan_step *s = &plan->steps[first];
    const int left = plan->step_count - first - QUANTIZED,
              factors = count_factors(s + QUANTIZED, left, &s->out);
    struct mgx_arena *arena = &plan->store.arena;
    struct mgx_plan_bundle *made = MGX_NEW(arena, struct mgx_plan_bundle);
    struct quantization *k =
        mgx_arena_alloc(arena, sizeof *k + (size_t)factors * sizeof *k->factors);
    if (!made || !k)
        return NULL;
    const mgx_isa isa = cpu_machine(plan->machine)->isa;
    *k = (struct quantization){.x = s[2].in[0],
                               .scale = s[0].out,
                               .zero = s[1].out,
                               .y = s[2].out,
                               .elements = mgx_shape_elements(&s[2].out_value->shape),
                               .isa = isa,
                               .factor_count = factors};
    for (int i = 0; i < factors; i++) {
        const struct mgx_plan_step *step = &s[QUANTIZED + i];
        k->factors[i] = (struct factor){step->in[factor_in(step, &s->out)], step->out};
    }
    *made = (struct mgx_plan_bundle){QUANTIZED + factors, run, k};
    return made;
}

enum mgx_status cpu_bundle(struct mgx_plan *plan, struct mgx_diag *diag)
{
    for (int s = 0; s + 2 < plan->step_count; s++) {
        struct mgx_plan_step *step = &plan->steps[s];
        if (!is_quantization(step))
            continue;
        step->bundle = bundle(plan, s);
        if (!step->bundle)
            return mgx_fail_memory(diag);
        step->detail =
            mgx_arena_printf(&plan->store.arena, "with the next %d", step->bundle->count - 1);
        s += step->bundle->count - 1;
    }
    return MGX_OK;
}
