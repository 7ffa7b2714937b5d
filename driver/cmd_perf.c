// SPDX-License-Identifier: MIT
// perf: where the time goes.
//
// One untimed run, n timed ones, then n with a clock around every instruction. "Average" is the
// mean of the middle half, so that a hiccup of the machine does not count. The overhead is what a
// run spends outside its instructions: in the profiled runs, and as the difference between the two
// measurements. Ctrl-C ends the rounds; what they gave until then is reported.
#include "profile.h"
#include "verbs.h"

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
}

double middle_mean(const double *values, int count)
{
    const int drop = count / 4;
    double sum = 0;
    for (int i = drop; i < count - drop; i++)
        sum += values[i];
    return count ? sum / (count - 2 * drop) : 0;
}

double percentile(const double *values, int count, double p)
{
    return count ? values[(int)(p * (count - 1))] : 0;
}

// --- measuring ---

// True if the run was ended by Ctrl-C, which is no failure.
static bool run_once(migraphx_program_t program, migraphx_program_parameters_t params,
                     double *microseconds, size_t count, double *ms, bool *good)
{
    migraphx_arguments_t results = NULL;
    const double start = now_ms();
    const migraphx_status status =
        microseconds ? migraphx_program_run_profile(&results, program, params, microseconds, count)
                     : migraphx_program_run(&results, program, params);
    *ms = now_ms() - start;
    migraphx_arguments_destroy(results);
    if (status == migraphx_status_cancelled && work_stopped())
        return true;
    *good = OK(status);
    return false;
}

static bool timed_runs(migraphx_program_t program, migraphx_program_parameters_t params,
                       struct measurement *m)
{
    bool good = true;
    double ms;
    work_begin("timing", m->runs);
    for (int i = -1; i < m->runs && good && work_step(i); i++)
        if (!run_once(program, params, NULL, 0, &ms, &good) && good && i >= 0)
            m->total[m->timed++] = ms;
    work_end();
    sort(m->total, m->timed);
    return good;
}

static bool profiled_runs(migraphx_program_t program, migraphx_program_parameters_t params,
                          struct measurement *m, double *microseconds)
{
    bool good = true;
    double ms;
    work_begin("profiling", m->runs);
    // Of runs that Ctrl-C has shortened, one profile all the same: what was slow is known then.
    for (int i = 0; i < m->runs && good && (work_step(i) || !m->profiles); i++) {
        if (work_stopped())
            work_finish();
        if (run_once(program, params, microseconds, m->count, &ms, &good) || !good)
            break;
        for (size_t k = 0; k < m->count; k++) {
            m->instructions[k * (size_t)m->runs + (size_t)m->profiles] = microseconds[k] / 1000;
            ms -= microseconds[k] / 1000;
        }
        m->profiled[m->profiles++] = ms;
        if (m->timed < m->runs)
            break;
    }
    work_end();
    sort(m->profiled, m->profiles);
    for (size_t k = 0; k < m->count; k++) {
        double *times = &m->instructions[k * (size_t)m->runs];
        sort(times, m->profiles);
        m->average[k] = middle_mean(times, m->profiles);
        m->sum += m->average[k];
    }
    return good;
}

// --- the report ---

static bool show(const struct options *o, migraphx_program_t program, struct report *r)
{
    if (r->m->timed < r->m->runs || r->m->profiles < r->m->runs)
        log_warn("Interrupted: %d of %d timed runs, %d profiled", r->m->timed, r->m->runs,
                 r->m->profiles);
    bool good = load_plan(program, &r->plan);
    if (good && r->plan.count)
        measure_limits(o, &r->limits);
    good = good && (o->format ? print_json_report(r) : print_report(r)) &&
           (!o->trace || write_trace(r, o->trace)) && (!o->html || write_page(r, o->html));
    free_plan(&r->plan);
    return good;
}

static bool measure(const struct options *o, migraphx_program_t program,
                    migraphx_instructions_t list, size_t count)
{
    struct measurement m = {.runs = o->iterations,
                            .count = count,
                            .batch = o->batch ? o->batch : model_batch(o, program)};
    struct report r = {.o = o, .m = &m, .list = list};
    migraphx_program_parameters_t params = NULL;
    m.total = calloc((size_t)m.runs, sizeof(double));
    m.profiled = calloc((size_t)m.runs, sizeof(double));
    m.instructions = calloc(count * (size_t)m.runs + 1, sizeof(double));
    m.average = calloc(count + 1, sizeof(double));
    double *microseconds = calloc(count + 1, sizeof(double));
    bool good = m.total && m.profiled && m.instructions && m.average && microseconds;
    if (!good)
        log_error("out of memory");
    log_info("Allocating params ...");
    good = good && make_inputs(o, program, &params);
    log_info("Running performance report ...");
    good = good && timed_runs(program, params, &m) && (m.timed || !work_stopped()) &&
           profiled_runs(program, params, &m, microseconds) && show(o, program, &r);
    migraphx_program_parameters_destroy(params);
    free(microseconds);
    free(m.average);
    free(m.instructions);
    free(m.profiled);
    free(m.total);
    return good;
}

static int run(struct options *o)
{
    migraphx_program_t program;
    migraphx_module_t main_module;
    migraphx_instructions_t list = NULL;
    size_t count = 0;
    o->on_card = true;
    if (!load_model(o, &program))
        return EXIT_FAILURE;
    const bool good =
        quantize_model(o, program) && compile_model(o, program, target_name(o), false) &&
        OK(migraphx_program_get_main_module(&main_module, program)) &&
        OK(migraphx_module_instructions(&list, main_module)) &&
        OK(migraphx_instructions_size(&count, list)) && measure(o, program, list, count);
    migraphx_instructions_destroy(list);
    migraphx_program_destroy(program);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct flag own[] = {
    {FLAG_HEADING, NULL, NULL, 0, NULL, "perf", 0, NULL},
    {FLAG_INT, "--iterations", "-n", OFFSET(iterations), "N", "number of runs [100]", 0, NULL, 1},
    {FLAG_SET, "--detailed", "-d", OFFSET(detailed), NULL, "group by shapes too", 0, NULL},
    {FLAG_WORD, "--trace", NULL, OFFSET(trace), "<file>",
     "write the timeline for chrome://tracing and Perfetto", 0, NULL},
    {FLAG_WORD, "--html", NULL, OFFSET(html), "<file>", "write a page to look at", 0, NULL},
    {FLAG_END, NULL, NULL, 0, NULL, NULL, 0, NULL}};
static const struct flag *const flags[] = {loader_flags, compile_flags, own,
                                           json_flags,   common_flags,  NULL};
const struct verb verb_perf = {
    "perf", "Prints where the time of a run goes.", "[flags] <file>", flags, run, true};
