// SPDX-License-Identifier: MIT
// Stages of passes, and compiling to a plan; see stages.h.
#include "targets/stages.h"

#include <assert.h>

#include "base/size.h"
#include "plan/plan.h"

// --- facts ---

static const struct {
    enum mgx_fact fact;
    const char *word;
} words[] = {{MGX_QUANTIZED, "quantized values"},
             {MGX_INTEGER, "products of integers"},
             {MGX_HALVES, "half"},
             {MGX_BRAINS, "bfloat16"},
             {MGX_ROUNDS, "loops"},
             {MGX_RESULTS_PLACED, "results in the caller's memory"},
             {MGX_MULTIPLIES_BF16, "a machine that multiplies bfloat16"}};

static unsigned facts_of_type(enum mgx_type type)
{
    return type == MGX_HALF ? MGX_HALVES : type == MGX_BF16 ? MGX_BRAINS : 0;
}

static unsigned facts_of_op(const struct mgx_op *op)
{
    return op == &mgx_op_dequantizelinear                               ? MGX_QUANTIZED
           : op == &mgx_op_quant_dot || op == &mgx_op_quant_convolution ? MGX_INTEGER
                                                                        : 0;
}

unsigned mgx_facts_of(const struct mgx_program *p)
{
    unsigned facts = 0;
    for (int m = 0; m < p->module_count; m++)
        for (const struct mgx_ins *ins = p->modules[m]->first; ins; ins = ins->next)
            facts |= facts_of_type(ins->shape.type) | facts_of_op(ins->op);
    for (const struct mgx_ins *ins = mgx_program_main(p)->first; ins; ins = ins->next)
        if (ins->op == &mgx_op_scan || ins->op == &mgx_op_loop)
            facts |= MGX_ROUNDS;
    return facts;
}

static bool holds(const struct mgx_stage *s, unsigned facts)
{
    return (facts & s->all) == s->all && (!s->any || facts & s->any) && !(facts & s->none);
}

// --- running ---

static int64_t count_all(const struct mgx_program *p)
{
    int64_t count = 0;
    for (int i = 0; i < p->module_count; i++)
        count += p->modules[i]->count;
    return count;
}

static enum mgx_status run_rounds(struct mgx_program *p, const struct mgx_stage *s,
                                  const struct mgx_pass_options *pass, struct mgx_diag *diag)
{
    for (int i = 0; i < s->rounds && (!i || holds(s, mgx_facts_of(p))); i++) {
        const int64_t before = count_all(p);
        TRY(mgx_run_passes(p, s->passes, pass, diag));
        if (count_all(p) == before)
            break;
        TRY(mgx_run_passes(p, s->between, pass, diag));
    }
    return MGX_OK;
}

static enum mgx_status run_stage(struct mgx_program *p, const struct mgx_stage *s,
                                 const struct mgx_pass_options *pass, struct mgx_diag *diag)
{
    struct mgx_pass_options own = *pass;
    assert(!s->rounds || s->between);
    if (s->early)
        own.target.floats_pay = NULL;
    return s->rounds ? run_rounds(p, s, &own, diag) : mgx_run_passes(p, s->passes, &own, diag);
}

enum mgx_status mgx_run_stages(struct mgx_program *p, const struct mgx_stage *stages,
                               unsigned facts, const struct mgx_pass_options *pass,
                               const struct mgx_compile_options *options, struct mgx_diag *diag)
{
    const unsigned stay = facts & ~(unsigned)(MGX_HALVES | MGX_BRAINS | MGX_ROUNDS);
    const unsigned change = MGX_HALVES | MGX_BRAINS | MGX_ROUNDS;
    struct mgx_pass_options own = *pass;
    for (const struct mgx_stage *s = stages; s->passes; s++) {
        if (s->fold_limit_bytes)
            own.fold_limit_bytes = s->fold_limit_bytes;
        if (holds(s, facts))
            TRY(run_stage(p, s, &own, diag));
        if (s->shared && options->simplified)
            TRY(mgx_program_clone(options->simplified, p, diag));
        facts = stay | (mgx_facts_of(p) & change);
    }
    return MGX_OK;
}

// --- printing ---

static int print_facts(struct mgx_str *out, unsigned facts, const char *between)
{
    int count = 0;
    for (int i = 0; i < MGX_COUNT(words); i++)
        if (facts & words[i].fact)
            mgx_str_printf(out, "%s%s", count++ ? between : "", words[i].word);
    return count;
}

static void print_condition(struct mgx_str *out, const struct mgx_stage *s)
{
    const bool both = s->all && s->any && (s->any & (s->any - 1));
    int count = print_facts(out, s->all, " and ");
    if (s->any)
        mgx_str_printf(out, "%s%s", count ? " and " : "", both ? "(" : "");
    count += print_facts(out, s->any, " or ");
    mgx_str_put(out, both ? ")" : "");
    if (s->none)
        mgx_str_put(out, count ? " and no " : "no ");
    print_facts(out, s->none, " and no ");
}

void mgx_stages_print(struct mgx_str *out, const struct mgx_stage *stages)
{
    for (const struct mgx_stage *s = stages; s && s->passes; s++) {
        mgx_str_printf(out, "%s\t", s->name);
        print_condition(out, s);
        for (const struct mgx_pass *const *pass = s->passes; *pass; pass++)
            mgx_str_printf(out, "%s%s", pass == s->passes ? "\t" : " ", (*pass)->name);
        mgx_str_putc(out, '\n');
    }
}

// --- compiling to a plan ---

enum mgx_status mgx_compile_planned(struct mgx_program *p, const struct mgx_planned_target *t,
                                    const struct mgx_compile_options *options,
                                    struct mgx_diag *diag)
{
    struct mgx_plan_machine *machine = NULL;
    TRY(t->create(options, &machine, diag));
    const bool host = options->offload_copy || !machine->memory;
    const struct mgx_plan_settings settings = {.offload_copy = host,
                                               .output_params = !host,
                                               .exhaustive_tune = options->exhaustive_tune,
                                               .only_steps = options->only_steps,
                                               .tune = options->tune,
                                               .shared = options->shared,
                                               .makeshift = options->makeshift};
    const bool done = p->carry && p->carry->fits; // a saved program, as the passes left it
    const enum mgx_status status = done ? MGX_OK : t->passes(p, machine, options, diag);
    if (status != MGX_OK) {
        machine->target->release(machine);
        return status;
    }
    return mgx_plan_compile(p, machine, &settings, diag);
}
