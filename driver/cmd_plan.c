// SPDX-License-Identifier: MIT
// plan: what a compiled program will do. A line for every step: which instruction, by which kernel,
// where and in which precision, where its result lies and how long, why no faster kernel, and which
// nodes of the model it came from.
#include "profile.h"
#include "verbs.h"

static void print_row(const struct plan_row *row, int number)
{
    printf("%4d  main:@%-5d %-22s %s%s%s%s  %s %s  %s", number, row->instruction, row->op,
           row->kernel, *row->detail ? " (" : "", row->detail, *row->detail ? ")" : "", row->where,
           row->type, row->place);
    if (strcmp(row->place, "scratch") == 0)
        printf(" %.0f..%.0f, steps %d to %d", row->offset, row->offset + row->bytes, row->first,
               row->last);
    if (row->flops > 0)
        printf("  %.3g MFLOP", row->flops * 1e-6);
    if (*row->why)
        printf("  not %s", row->why);
    printf("%s%s\n", *row->nodes ? "  # " : "", row->nodes);
}

static void print_json(const struct plan *plan)
{
    printf("{\"steps\": [");
    for (int i = 0; i < plan->count; i++) {
        printf("%s\n  ", i ? "," : "");
        put_plan_row(stdout, &plan->rows[i]);
    }
    printf("],\n \"summary\": ");
    put_json_text(stdout, plan->summary);
    printf("}\n");
}

static bool show(const struct options *o, migraphx_program_t program)
{
    struct plan plan;
    if (!load_plan(program, &plan))
        return false;
    if (!plan.count)
        log_warn("target '%s' has no plan: it computes one operator after the other",
                 target_name(o));
    if (o->format)
        print_json(&plan);
    for (int i = 0; !o->format && i < plan.count; i++)
        print_row(&plan.rows[i], i);
    if (!o->format)
        fputs(plan.summary, stdout);
    free_plan(&plan);
    return true;
}

static int run(struct options *o)
{
    migraphx_program_t program;
    if (!load_model(o, &program))
        return EXIT_FAILURE;
    const bool good = quantize_model(o, program) &&
                      compile_model(o, program, target_name(o), false) && show(o, program);
    migraphx_program_destroy(program);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct flag *const flags[] = {loader_flags, compile_flags, json_flags, common_flags,
                                           NULL};
const struct verb verb_plan = {
    "plan", "Prints kernel, place and cost of every step.", "[flags] <file>", flags, run, true};
