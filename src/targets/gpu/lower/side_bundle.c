// SPDX-License-Identifier: MIT
// Element-wise steps side by side, in one launch:
//
//     p = pointwise(a)             blocks 0 .. m          |p p p p|q q|r r r|
//     q = pointwise(b)       =>    blocks m .. n          each block does what one step's would
//     r = pointwise(c, d)          ...
//
// as the parts of a concat that were quantized each by its own scale (DenseNet's, Res2Net's). A launch costs
// more than many of them take.
//
// Holds: no step of a bundle reads or writes an array that another one writes. What a block computes is what the
// step's own kernel does, bit for bit. Steps that make a part of a concat go as far behind as their readers
// allow, if they meet others there.
#include "targets/gpu/lower/side.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "op/op.h"
#include "pass/engine/constant.h"
#include "plan/context.h"

enum { ARGS = 60 }; // of a launch

struct sides {
    struct gpu_call base;
    const struct mgx_plan *plan;
    int first, count;
};

// --- which steps ---

static const struct mgx_plan_value *root_of(const struct mgx_plan_value *v)
{
    return mgx_plan_root((struct mgx_plan_value *)(uintptr_t)v, NULL);
}

static bool skips(const struct mgx_plan_step *step)
{
    for (int i = 0; i < step->in_count; i++)
        if (step->skip[i])
            return true;
    return false;
}

// Element-wise work that leaves no range.
static bool is_side(const struct mgx_plan_step *step)
{
    if (step->kernel != &gpu_kernel_pointwise || !gpu_step_is_plain(step) || skips(step))
        return false;
    const struct gpu_call *call = step->state;
    return !call->ranges && call->how.grid[0] > 0;
}

// Texts of 16 bits have some functions of their own.
static bool is_narrow(const struct mgx_plan_step *step)
{
    return mgx_type_is_half_or_bf16(step->out_value->shape.type);
}

static bool is_free(const struct mgx_plan *plan, int s)
{
    return !plan->steps[s].bundle && mgx_plan_bundle_first(plan, s) == s;
}

static bool reads(const struct mgx_plan_step *step, const struct mgx_plan_value *root)
{
    for (int i = 0; i < step->in_count; i++)
        if (root_of(step->in_value[i]) == root)
            return true;
    return false;
}

static bool are_apart(const struct mgx_plan_step *a, const struct mgx_plan_step *b)
{
    return is_narrow(a) == is_narrow(b) && !reads(b, root_of(a->out_value)) &&
           !reads(a, root_of(b->out_value));
}

// --- order ---

// A part of a larger array.
static bool is_part(const struct mgx_plan_step *step)
{
    return is_side(step) && root_of(step->out_value) != step->out_value;
}

static bool writes_what_it_reads(const struct mgx_plan_step *writer, const struct mgx_plan_step *of)
{
    return reads(of, root_of(writer->out_value));
}

// The first step behind s that reads what it writes to, or writes to what it reads.
static int reader_of(const struct mgx_plan *plan, int s)
{
    enum { FAR = 32 };
    const struct mgx_plan_value *root = root_of(plan->steps[s].out_value);
    int r = s + 1;
    while (r < plan->step_count && r < s + FAR && !reads(&plan->steps[r], root) &&
           !writes_what_it_reads(&plan->steps[r], &plan->steps[s]))
        r++;
    return r;
}

static void put_behind(struct mgx_plan *plan, int from, int to)
{
    assert(from <= to && to < plan->step_count);
    const struct mgx_plan_step step = plan->steps[from];
    memmove(&plan->steps[from], &plan->steps[from + 1], (size_t)(to - from) * sizeof *plan->steps);
    plan->steps[to] = step;
}

// Sums of windows or rows times one byte, which their reader may do itself (range_sums.c), or what puts bytes
// around the image of those alone.
static bool is_sums(const struct mgx_ins *ins)
{
    double byte;
    return (ins->op == &mgx_op_quant_convolution || ins->op == &mgx_op_quant_dot) &&
           mgx_splat_value(ins->in[1], &byte);
}

static bool serves_sums(const struct mgx_ins *ins)
{
    return is_sums(ins) ||
           (ins->op == &mgx_op_pad && mgx_used_once(ins) && is_sums(ins->uses->user));
}

// Sums stand beside their reader, so that what both are one call with is no more than they.
static void settle_sums(struct mgx_plan *plan)
{
    for (int s = plan->step_count - 2; s >= 0; s--) {
        const struct mgx_plan_step *step = &plan->steps[s];
        if (serves_sums(step->ins) && root_of(step->out_value) == step->out_value)
            put_behind(plan, s, reader_of(plan, s) - 1);
    }
}

void gpu_side_settle(struct mgx_plan *plan)
{
    settle_sums(plan);
    for (int s = plan->step_count - 2; s >= 0; s--) {
        if (!is_part(&plan->steps[s]))
            continue;
        int to = reader_of(plan, s) - 1;
        if (to == s || !is_part(&plan->steps[to]))
            continue;
        while (to > s && is_part(&plan->steps[to]))
            to--;
        put_behind(plan, s, to);
    }
}

// --- the text ---

// A step as its kernel was offered it.
struct part {
    struct mgx_plan_offer offer;
    struct mgx_shape in[GPU_CALL_INPUTS];
    struct gpu_share share;
    char name[16];
};

static bool read_parts(struct mgx_plan *plan, int first, int count, struct part *part)
{
    for (int k = 0; k < count; k++) {
        struct part *p = &part[k];
        p->offer = gpu_offer_of(plan, &plan->steps[first + k], p->in);
        p->offer.arena = &plan->store.arena;
        snprintf(p->name, sizeof p->name, "body%d", k);
        if (gpu_pointwise_share(&p->offer, &p->share))
            return false;
    }
    return true;
}

static void emit_parameters(struct mgx_str *out, const struct part *part, int count)
{
    const char *comma = "";
    mgx_str_put(out, "KERNEL void run(");
    for (int k = 0; k < count; k++) {
        const struct mgx_plan_offer *c = &part[k].offer;
        mgx_str_printf(out, "%sGLOBAL %s *out%d", comma, gpu_type_memory(c->out->type), k);
        for (int i = 0; i < c->in_count; i++)
            mgx_str_printf(out, ", const GLOBAL %s *in%d_%d", gpu_type_memory(c->in[i].type), k, i);
        comma = ", ";
    }
    mgx_str_put(out, ")\n");
}

static void emit_call(struct mgx_str *out, const struct part *p, int k, int64_t before, int64_t end)
{
    mgx_str_printf(out, "    %sif (BLOCK < %d)\n        part%d(out%d", k ? "else " : "", (int)end,
                   k, k);
    for (int i = 0; i < p->offer.in_count; i++)
        mgx_str_printf(out, ", in%d_%d", k, i);
    mgx_str_printf(out, ", BLOCK - %d);\n", (int)before);
}

static const char *emit(struct mgx_str *out, const struct part *part, int count, int64_t *blocks)
{
    struct gpu_function f[MGX_PLAN_BUNDLE_MOST];
    for (int k = 0; k < count; k++)
        f[k] = (struct gpu_function){
            .name = part[k].name, .ins = part[k].offer.ins, .looks_up = true, .stored = true};
    const char *why = gpu_emit_functions(out, &part[0].offer, f, count);
    for (int k = 0; k < count && !why; k++)
        gpu_pointwise_emit_part(out, &part[k].offer, &part[k].share, k);
    emit_parameters(out, part, count);
    mgx_str_put(out, "{\n");
    *blocks = 0;
    for (int k = 0; k < count; k++) {
        const int64_t before = *blocks;
        *blocks += gpu_launch_for(part[k].share.loop.elements / part[k].share.v).grid[0];
        emit_call(out, &part[k], k, before, *blocks);
    }
    mgx_str_put(out, "}\n");
    return why;
}

// --- the call ---

static enum mgx_status run(const void *state, const struct mgx_context *x, bool *done,
                           struct mgx_diag *diag)
{
    const struct sides *k = state;
    struct gpu_device *d = gpu_machine(k->plan->machine)->device;
    struct gpu_arg list[ARGS];
    void *at[ARGS];
    int count = 0;
    *done = true;
    for (int s = k->first; s < k->first + k->count; s++) {
        const struct mgx_plan_step *step = &k->plan->steps[s];
        at[count++] = mgx_context_address(x, &step->out);
        for (int i = 0; i < step->in_count; i++)
            at[count++] = mgx_context_address(x, &step->in[i]);
    }
    assert(count <= ARGS);
    for (int i = 0; i < count; i++)
        list[i] = (struct gpu_arg){&at[i], sizeof at[i], true};
    return d->api->launch(d, gpu_queue_stream(x->queue), k->base.kernel, &k->base.how, list, count,
                          diag);
}

// How many steps from s on are one launch.
static int sides_from(const struct mgx_plan *plan, int s)
{
    int count = 0, args = 0;
    for (; s + count < plan->step_count && count < MGX_PLAN_BUNDLE_MOST; count++) {
        const struct mgx_plan_step *step = &plan->steps[s + count];
        args += 1 + step->in_count;
        if (!is_side(step) || !is_free(plan, s + count) || args > ARGS)
            break;
        for (int k = 0; k < count; k++)
            if (!are_apart(&plan->steps[s + k], step))
                return count;
    }
    return count;
}

static enum mgx_status say(struct mgx_plan *plan, int s, int count, struct mgx_diag *diag)
{
    struct mgx_plan_step *step = &plan->steps[s];
    step->detail = mgx_arena_printf(&plan->store.arena, "%s; one call with the next %d",
                                    step->detail, count - 1);
    return step->detail ? MGX_OK : mgx_fail_memory(diag);
}

static enum mgx_status bundle(struct mgx_plan *plan, int s, int count, struct mgx_diag *diag)
{
    struct gpu_machine *m = gpu_machine(plan->machine);
    struct mgx_arena *arena = &plan->store.arena;
    struct part *part = MGX_NEW_ARRAY(arena, struct part, count);
    struct sides *k = MGX_NEW(arena, struct sides);
    struct mgx_plan_bundle *bundle = MGX_NEW(arena, struct mgx_plan_bundle);
    struct mgx_str text = {0};
    int64_t blocks;
    if (!part || !k || !bundle)
        return mgx_fail_memory(diag);
    if (!read_parts(plan, s, count, part) || emit(&text, part, count, &blocks)) {
        mgx_str_fini(&text);
        return MGX_OK; // each by itself
    }
    *k = (struct sides){.plan = plan, .first = s, .count = count};
    k->base.how = gpu_launch_for(blocks * GPU_THREADS);
    k->base.how.dependent = m->device->properties.features & GPU_DEPENDENT;
    k->base.unit = gpu_unit_of(m, "sides", &text);
    mgx_str_fini(&text);
    *bundle = (struct mgx_plan_bundle){count, run, k};
    plan->steps[s].bundle = bundle;
    return k->base.unit ? say(plan, s, count, diag) : mgx_fail_memory(diag);
}

enum mgx_status gpu_side_bundles(struct mgx_plan *plan, struct mgx_diag *diag)
{
    for (int s = 0; s + 1 < plan->step_count; s++) {
        const int count = sides_from(plan, s);
        if (count < 2)
            continue;
        TRY(bundle(plan, s, count, diag));
        s += count - 1;
    }
    return MGX_OK;
}

enum mgx_status gpu_side_bundles_finish(struct mgx_plan *plan, struct mgx_diag *diag)
{
    return gpu_bundles_find(plan, run, diag);
}
