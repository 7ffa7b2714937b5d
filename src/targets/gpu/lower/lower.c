// SPDX-License-Identifier: MIT
// Source text to steps; lower.h says how.
#include "targets/gpu/lower/lower.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "op/op.h"
#include "op/source.h"
#include "plan/context.h"
#include "plan/table.h"
#include "targets/gpu/emit/move.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"

struct mgx_plan_offer gpu_offer_of(const struct mgx_plan *plan, const struct mgx_plan_step *step,
                                   struct mgx_shape in[GPU_CALL_INPUTS])
{
    assert(step->in_count <= GPU_CALL_INPUTS);
    for (int i = 0; i < step->in_count; i++)
        in[i] = step->in_value[i]->shape;
    return (struct mgx_plan_offer){.ins = step->ins,
                                   .in = in,
                                   .in_count = step->in_count,
                                   .out = &step->out_value->shape,
                                   .machine = plan->machine};
}

enum mgx_plan_answer gpu_decline(struct mgx_plan_offer *c, const char *why)
{
    assert(!why || *why); // NULL: there is nothing to say
    c->why = why;
    return MGX_PLAN_DECLINED;
}

static bool note_unit(struct gpu_machine *m, struct gpu_unit *unit)
{
    if (m->unit_count == m->unit_capacity) {
        const int capacity = m->unit_capacity ? 2 * m->unit_capacity : 64;
        struct gpu_unit **grown = realloc(m->units, (size_t)capacity * sizeof *grown);
        if (!grown)
            return false;
        m->units = grown;
        m->unit_capacity = capacity;
    }
    m->units[m->unit_count++] = unit;
    return true;
}

// A kernel that does not say where it waits for the one before does so first of all.
static void put_with_waits(struct mgx_str *out, const char *text)
{
    const char *kernel = strstr(text, "GRID_WAIT") ? NULL : strstr(text, "KERNEL void");
    for (; kernel; kernel = strstr(text, "KERNEL void")) {
        const char *brace = strchr(kernel, '{');
        if (!brace)
            break;
        mgx_str_putn(out, text, (size_t)(brace + 1 - text));
        mgx_str_put(out, "\n    GRID_LAUNCH();\n    GRID_WAIT();");
        text = brace + 1;
    }
    mgx_str_put(out, text);
}

// The machine keeps the unit's share and drops it when the plan goes.
struct gpu_unit *gpu_unit_of(struct gpu_machine *m, const char *name, const struct mgx_str *text)
{
    assert(m->device && name && text);
    struct mgx_str whole = {0};
    mgx_str_put(&whole, gpu_text_prelude);
    put_with_waits(&whole, mgx_str_text(text));
    struct gpu_unit *unit = NULL;
    if (!whole.failed && !text->failed)
        unit = gpu_unit_share(m->device, name, mgx_str_text(&whole));
    mgx_str_fini(&whole);
    if (unit && !note_unit(m, unit)) {
        gpu_unit_drop(unit);
        return NULL;
    }
    return unit;
}

// convert_e8m0 is no row of the table: its rounding is an attribute.
static bool has_e8m0(struct mgx_source *s, const char *name, const struct mgx_ins *ins)
{
    const char *from = mgx_source_type(ins->in[0]->shape.type);
    if (!from || ins->in[0]->shape.type == MGX_DOUBLE) // a float has not its range
        return false;
    mgx_str_printf(s->out,
                   "PW_FN void %s(%s x, pw_real *y)\n{\n"
                   "    *y = of_e8m0(to_e8m0_by((pw_real)x, %d, %d));\n}\n",
                   name, from, (int)mgx_ins_int(ins, "rounding"),
                   (int)mgx_ins_int(ins, "saturate"));
    return true;
}

// The function "body" of an element-wise instruction: v0, v1, ... by value, the result by pointer.
static bool has_source(struct mgx_source *s, const char *name, const struct mgx_ins *ins)
{
    struct mgx_diag quiet = {.status = MGX_OK};
    if (!ins)
        return true;
    if (ins->op == &mgx_op_convert_e8m0)
        return has_e8m0(s, name, ins);
    return (ins->op == &mgx_op_pointwise ? mgx_source_body(s, name, ins->mod[0], &quiet)
                                         : mgx_source_ins(s, name, ins, &quiet)) == MGX_OK;
}

// How many instructions a byte passes before it is `to`, at most; NULL: the body's result.
static int lines_behind(const struct mgx_ins *byte, const struct mgx_ins *to)
{
    int count = 0;
    for (const struct mgx_ins *ins = byte->next; ins && ins != to; ins = ins->next)
        count += !(ins->op->flags & MGX_OP_BUILTIN);
    return count + (to != NULL);
}

// The same of bytes on the way: the longest function from the first byte that has one to another.
static void find_table_on_the_way(const struct mgx_plan_offer *c, const struct mgx_module *body,
                                  int least, struct mgx_source *s)
{
    for (const struct mgx_ins *from = body->first; from && !s->table; from = from->next)
        for (const struct mgx_ins *to = body->last; to != from && !s->table; to = to->prev)
            if (from->op == &mgx_op_quantizelinear && to->op == &mgx_op_quantizelinear &&
                lines_behind(from, to) >= least) {
                s->table = mgx_plan_table_between(c->arena, body, from, to);
                s->byte = from;
                s->found = to;
            }
}

// Is the result a function of one byte on its way, the first such one? Where that is long, it is
// looked up.
static void find_table(const struct mgx_plan_offer *c, const struct mgx_ins *last,
                       struct mgx_source *s)
{
    enum { LONG = 5, MOST = 64 };
    struct mgx_ins *params[MOST];
    if (!last || last->op != &mgx_op_pointwise)
        return;
    const struct mgx_module *body = last->mod[0];
    const int count = mgx_module_parameters(body, params, MOST);
    s->found = NULL;
    if (count == 1 && lines_behind(params[0], NULL) >= LONG)
        s->table = mgx_plan_table_of(c->arena, body, s->byte = params[0]);
    for (const struct mgx_ins *ins = body->first; ins && !s->table; ins = ins->next)
        if (ins->op == &mgx_op_quantizelinear && lines_behind(ins, NULL) >= LONG)
            s->table = mgx_plan_table_of(c->arena, body, s->byte = ins);
    if (!s->table)
        find_table_on_the_way(c, body, LONG, s);
}

static const char quick[] =
    "#define pw_rounded(q, low, high) quick_rounded(q, low, high)\n"
    "#define pw_quantized(q, zero, low, high) quick_quantized(q, zero, low, high)\n"
    "#define pw_rounded_share(q, scale, low, high, zero) quick_rounded_share(q, low, high, zero)\n"
    "#define pw_quantized_share(q, scale, low, high) quick_quantized_share(q, low, high)\n"
    "#define pw_last_share(q, scale, low, high) quick_last_share(q, low, high)\n"
    "#define pw_steps_share(q, scale, low, high, zero) quick_steps_share(q, low, high, zero)\n";

const char *gpu_emit_functions(struct mgx_str *out, const struct mgx_plan_offer *c,
                               const struct gpu_function *f, int count)
{
    struct mgx_source s;
    struct mgx_str body = {0};
    bool written = true, quickly = false;
    mgx_source_begin(&s, &body);
    for (int i = 0; i < count; i++) {
        s.real = f[i].real;
        s.table = NULL;
        s.leaves = f[i].stored;
        s.leaves_cut = f[i].cut;
        s.leaves_step = f[i].steps;
        if (f[i].looks_up)
            find_table(c, f[i].ins, &s);
        quickly = quickly || f[i].real;
        written = written && has_source(&s, f[i].name, f[i].ins);
        if (s.table)
            mgx_str_printf(&body, "%s#define LOOKED_UP %s_table\n", i ? "#undef LOOKED_UP\n" : "",
                           f[i].name);
    }
    if (quickly)
        mgx_str_put(out, quick);
    const bool narrow = mgx_type_is_half_or_bf16(c->out->type);
    if (narrow && !s.doubles && gpu_machine(c->machine)->device->properties.version)
        mgx_str_put(out, GPU_NARROW_RESULTS "#define exp(x) narrow_exp(x)\n");
    mgx_str_put(out, mgx_str_text(&body));
    mgx_str_fini(&body);
    if (!written)
        return "an operator or a type that has no scalar code";
    return s.doubles && !gpu_has_double(c) ? "the card has no double" : NULL;
}

const char *gpu_emit_bodies(struct mgx_str *out, const struct mgx_plan_offer *c,
                            const struct mgx_ins *last, const struct mgx_ins *make, uint64_t real)
{
    const struct gpu_function both[] = {
        {.name = "body", .ins = last, .real = real, .looks_up = true, .stored = true},
        {.name = "make", .ins = make},
    };
    return last || make ? gpu_emit_functions(out, c, both, 2) : NULL;
}

uint64_t gpu_real_operands(const struct mgx_ins *ins, int place)
{
    assert(ins->in_count <= 64 && place < ins->in_count);
    uint64_t real = 0;
    for (int i = 0; i < ins->in_count; i++) {
        const enum mgx_type type = ins->in[i]->shape.type;
        const bool fits = i == place ? type == MGX_INT32 : mgx_type_is_byte(type);
        if (fits && mgx_source_takes_real(ins, i))
            real |= (uint64_t)1 << i;
    }
    return real;
}

const char *gpu_emit_body(struct mgx_str *out, const struct mgx_plan_offer *c,
                          const struct mgx_ins *ins)
{
    return gpu_emit_bodies(out, c, ins, NULL, 0);
}

void gpu_emit_body_call(struct mgx_str *out, enum mgx_type result, int operands)
{
    gpu_emit_call(out, "body", result, operands);
}

void gpu_emit_call(struct mgx_str *out, const char *name, enum mgx_type result, int operands)
{
    mgx_str_printf(out, "    %s y;\n    %s(", gpu_type_value(result), name);
    for (int i = 0; i < operands; i++)
        mgx_str_printf(out, "v%d, ", i);
    mgx_str_put(out, "&y);\n");
}

enum mgx_plan_answer gpu_take_call(struct mgx_plan_offer *c, struct gpu_call *call,
                                   struct mgx_str *text, const struct gpu_launch *how,
                                   const int *in, int in_count)
{
    struct gpu_machine *m = gpu_machine(c->machine);
    assert(in_count <= GPU_CALL_INPUTS);
    call->how = *how;
    call->how.dependent = m->device->properties.features & GPU_DEPENDENT;
    call->in_count = in_count;
    for (int i = 0; i < in_count; i++)
        call->in[i] = (unsigned char)(in ? in[i] : i);
    call->unit = gpu_unit_of(m, c->ins->op->name, text);
    mgx_str_fini(text);
    if (!call->unit)
        return mgx_plan_no_memory(c);
    c->state = call;
    return MGX_PLAN_TAKEN;
}

enum mgx_plan_answer gpu_take(struct mgx_plan_offer *c, struct mgx_str *text,
                              const struct gpu_launch *how, const int *in, int in_count)
{
    assert(c->state == NULL);
    struct gpu_call *call = MGX_NEW(c->arena, struct gpu_call);
    if (call)
        return gpu_take_call(c, call, text, how, in, in_count);
    mgx_str_fini(text);
    return mgx_plan_no_memory(c);
}

int gpu_vector_for(int64_t elements)
{
    assert(elements >= 0);
    enum { ENOUGH = 1 << 14 };
    int v = 16;
    while (v > 1 && elements / v < ENOUGH)
        v /= 2;
    return v;
}

struct gpu_launch gpu_launch_for(int64_t count)
{
    const int64_t blocks = (count + GPU_THREADS - 1) / GPU_THREADS;
    return (struct gpu_launch){.grid = {(unsigned)blocks, 1, 1}, .block = {GPU_THREADS, 1, 1}};
}

void gpu_emit_parameters(struct mgx_str *out, enum mgx_type result, const enum mgx_type *in,
                         int in_count)
{
    mgx_str_printf(out, "KERNEL void run(GLOBAL %s *out", gpu_type_memory(result));
    for (int i = 0; i < in_count; i++)
        mgx_str_printf(out, ", const GLOBAL %s *in%d", gpu_type_memory(in[i]), i);
}

void gpu_emit_head(struct mgx_str *out, enum mgx_type result, const enum mgx_type *in, int in_count)
{
    gpu_emit_parameters(out, result, in, in_count);
    mgx_str_put(out, ")\n");
}

void gpu_emit_start(struct mgx_str *out, const struct mgx_shape *result, const enum mgx_type *in,
                    int in_count)
{
    gpu_emit_head(out, result->type, in, in_count);
    mgx_str_printf(out,
                   "{\n    const i64 i = (i64)BLOCK * THREADS + THREAD;\n    if (i >= %" PRId64
                   ")\n        return;\n",
                   mgx_shape_elements(result));
    gpu_emit_place(out, result);
}

void *gpu_ranges_place(const struct gpu_call *call, const struct mgx_plan_args *args)
{
    assert(call->ranges > 0);
    if (call->kept && args->context)
        return args->context->scratch[MGX_PLAN_DEVICE] + call->kept_at;
    return (unsigned char *)args->workspace + call->ranges_at;
}

enum mgx_status gpu_run_call(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                             struct mgx_diag *diag)
{
    const struct gpu_call *call = step->state;
    struct gpu_device *d = gpu_machine(args->machine)->device;
    struct gpu_arg list[GPU_CALL_INPUTS + 2];
    int count = call->in_count + 1;
    if (call->how.grid[0] == 0)
        return MGX_OK;
    list[0] = (struct gpu_arg){&args->out, sizeof args->out, true};
    for (int i = 0; i < call->in_count; i++)
        list[i + 1] = (struct gpu_arg){&args->in[call->in[i]], sizeof(void *), true};
    void *ranges = call->ranges ? gpu_ranges_place(call, args) : NULL;
    if (call->ranges)
        list[count++] = (struct gpu_arg){&ranges, sizeof ranges, true};
    return d->api->launch(d, gpu_queue_stream(args->queue), call->kernel, &call->how, list, count,
                          diag);
}

enum mgx_status gpu_finish(struct mgx_plan *plan, struct mgx_diag *diag)
{
    struct gpu_machine *m = gpu_machine(plan->machine);
    const struct mgx_carry *carry = plan->program->carry;
    if (carry && carry->trusted) {
        m->code.carried = carry->code;
        m->code.carried_size = carry->code_size;
    }
    TRY(gpu_units_make(&m->code, m->units, m->unit_count, diag));
    for (int i = 0; i < plan->step_count; i++) {
        const struct mgx_plan_step *step = &plan->steps[i];
        const struct gpu_family *family = step->kernel->more;
        struct gpu_call *call = step->state;
        if (family)
            TRY(family->finish(plan, step, diag));
        else if (step->kernel->run == gpu_run_call)
            TRY(gpu_unit_kernel(call->unit, "run", call->how.shared, &call->kernel, diag));
    }
    return MGX_OK;
}

enum mgx_status gpu_bundles_find(struct mgx_plan *plan, gpu_bundle_run *run, struct mgx_diag *diag)
{
    for (int s = 0; s < plan->step_count; s++) {
        const struct mgx_plan_bundle *bundle = plan->steps[s].bundle;
        if (!bundle || bundle->run != run)
            continue;
        struct gpu_call *call = (struct gpu_call *)(uintptr_t)bundle->state;
        TRY(gpu_unit_kernel(call->unit, "run", call->how.shared, &call->kernel, diag));
    }
    return MGX_OK;
}
