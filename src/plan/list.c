// SPDX-License-Identifier: MIT
// The plan as a table for programs to read: a line per step, fields separated by tabs, as
// include/migraphx/extensions.h lists them (migraphx_program_plan).
#include "plan/plan.h"

#include <string.h>

static void put_text(struct mgx_str *out, const char *text)
{
    for (; text && *text; text++)
        mgx_str_putc(out, (unsigned char)*text < ' ' ? ' ' : *text);
}

static const char *place_of(const struct mgx_plan_value *root)
{
    static const char *const names[] = {[MGX_PLAN_SCRATCH] = "scratch",
                                        [MGX_PLAN_CONST] = "constant",
                                        [MGX_PLAN_PARAM] = "parameter",
                                        [MGX_PLAN_RESULT] = "result",
                                        [MGX_PLAN_DYNAMIC] = "run"};
    return names[root->place];
}

static double bytes_of(const struct mgx_shape *s)
{
    if (!mgx_shape_is_static(s) || !mgx_type_is_number(s->type))
        return 0;
    return (double)mgx_shape_space(s) * (double)mgx_type_size(s->type);
}

static bool is_skipped(const struct mgx_plan_step *step, int i)
{
    return step->skip && step->skip[i];
}

// Operators that read of their first input what they give, wherever it lies there.
static bool picks(const struct mgx_plan_step *step)
{
    const char *name = step->ins->op->name;
    return strncmp(name, "gather", 6) == 0 || strcmp(name, "slice") == 0 ||
           strcmp(name, "step") == 0;
}

// Packed constants count as the kernel says, or as what they were packed from.
static double moved_by(const struct mgx_plan_step *step)
{
    const double out = bytes_of(&step->out_value->shape);
    double bytes = out + (double)step->packed_bytes;
    for (int i = 0; i < step->own_count; i++) {
        const double in = bytes_of(&step->in_value[i]->shape);
        if (is_skipped(step, i) && step->packed_bytes)
            continue;
        bytes += i == 0 && picks(step) && in > out ? out : in;
    }
    return bytes;
}

// The narrowest of the types that are read, of more than single values.
static const char *read_by(const struct mgx_plan_step *step)
{
    const struct mgx_shape *narrow = NULL;
    for (int i = 0; i < step->own_count; i++) {
        const struct mgx_shape *s = &step->in_value[i]->shape;
        const bool single = mgx_shape_is_static(s) && mgx_shape_elements(s) == 1;
        if (mgx_type_is_number(s->type) && !single && !is_skipped(step, i) &&
            (!narrow || mgx_type_size(s->type) < mgx_type_size(narrow->type)))
            narrow = s;
    }
    return narrow ? mgx_type_name(narrow->type) : "";
}

static void put_nodes(struct mgx_str *out, const struct mgx_ins *ins)
{
    for (int i = 0; i < ins->origin.count; i++) {
        mgx_str_put(out, i ? "; " : "");
        put_text(out, ins->origin.v[i]);
    }
}

static void put_step(const struct mgx_plan *plan, const struct mgx_plan_step *step,
                     struct mgx_str *out)
{
    int64_t offset;
    const struct mgx_plan_value *root = mgx_plan_root(step->out_value, &offset);
    const struct mgx_memory *memory = plan->machine->memory;
    if (root->place == MGX_PLAN_SCRATCH)
        offset += (int64_t)root->scratch;
    mgx_str_printf(out, "%d\t%s\t%s\t", step->ins->index, step->ins->op->name, step->kernel->name);
    put_text(out, step->detail);
    mgx_str_printf(out, "\t%s\t%s\t%s\t%lld\t%.0f\t%d\t%d\t%.0f\t%.0f\t",
                   step->side == MGX_PLAN_DEVICE && memory ? memory->name : "host",
                   mgx_type_name(step->out_value->shape.type), place_of(root), (long long)offset,
                   bytes_of(&step->out_value->shape), root->first, root->last, step->flops,
                   moved_by(step));
    put_text(out, step->why);
    mgx_str_putc(out, '\t');
    put_nodes(out, step->ins);
    mgx_str_printf(out, "\t%s\n", read_by(step));
}

void mgx_plan_weigh(const struct mgx_program *p, mgx_weight_told *tell, void *to)
{
    const struct mgx_plan *plan = (const struct mgx_plan *)p->executable;
    for (int i = 0; i < plan->step_count; i++) {
        const struct mgx_plan_step *step = &plan->steps[i];
        if (step->weight.narrow > 0 || step->weight.wide > 0)
            tell(to, &step->ins->origin, step->weight.narrow, step->weight.wide);
    }
}

void mgx_plan_list(const struct mgx_program *p, struct mgx_str *out)
{
    const struct mgx_plan *plan = (const struct mgx_plan *)p->executable;
    for (int i = 0; i < plan->step_count; i++)
        put_step(plan, &plan->steps[i], out);
}
