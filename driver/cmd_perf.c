// SPDX-License-Identifier: MIT
// perf: where the time goes.
//
// One untimed run, n timed ones and n with a clock around every instruction: a few of the ones and a
// few of the others in turns, so that what disturbs the machine for a while disturbs both alike.
// "Average" is the mean of the middle half, so that a hiccup does not count. The overhead is what a
// run spends outside its instructions: in the profiled runs, and as the difference between the two
// measurements. Ctrl-C ends the rounds; what they gave until then is reported.
#include <math.h>
#include <time.h>

#include "profile.h"
#include "verbs.h"

enum { BLOCK = 5 };

static const double BUSY = 0.95; // else it is worth a word

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
}

// --- measuring ---

static double processor_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

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

struct rounds {
    migraphx_program_t program;
    migraphx_program_parameters_t params;
    struct measurement *m;
    double *microseconds; // of the instructions in one run
};

static bool is_going_on(const struct measurement *m)
{
    return work_step(m->timed + m->profiles);
}

static bool time_runs(const struct rounds *r, int until)
{
    struct measurement *m = r->m;
    bool good = true;
    double ms, start = processor_ms();
    while (m->timed < until && good && is_going_on(m)) {
        if (!run_once(r->program, r->params, NULL, 0, &ms, &good) && good)
            m->total[m->timed++] = ms;
        m->processor += processor_ms() - start;
        start = processor_ms();
    }
    return good;
}

static bool profile_run(const struct rounds *r)
{
    struct measurement *m = r->m;
    bool good = true;
    double ms;
    if (run_once(r->program, r->params, r->microseconds, m->count, &ms, &good) || !good)
        return good;
    for (size_t k = 0; k < m->count; k++) {
        m->instructions[k * (size_t)m->runs + (size_t)m->profiles] = r->microseconds[k] / 1000;
        ms -= r->microseconds[k] / 1000;
    }
    m->profiled[m->profiles++] = ms;
    return true;
}

static bool profile_runs(const struct rounds *r, int until)
{
    bool good = true;
    while (r->m->profiles < until && good && is_going_on(r->m))
        good = profile_run(r);
    return good;
}

// Of rounds that Ctrl-C has shortened, one is profiled all the same: what was slow is known then.
static bool finish_rounds(const struct rounds *r)
{
    if (work_stopped() && r->m->timed)
        work_finish(); // the report goes on
    return !r->m->timed || r->m->profiles || profile_run(r);
}

static bool run_rounds(const struct rounds *r)
{
    struct measurement *m = r->m;
    bool good = true;
    double ms;
    work_begin("timing and profiling", 2 * m->runs);
    run_once(r->program, r->params, NULL, 0, &ms, &good);
    for (int until = 0; until < m->runs && good && !work_stopped();) {
        until = m->runs - until > BLOCK ? until + BLOCK : m->runs;
        good = time_runs(r, until) && profile_runs(r, until);
    }
    good = good && finish_rounds(r);
    work_end();
    return good;
}

static void sum_up(struct measurement *m)
{
    sort(m->total, m->timed);
    sort(m->profiled, m->profiles);
    for (size_t k = 0; k < m->count; k++) {
        double *times = &m->instructions[k * (size_t)m->runs];
        sort(times, m->profiles);
        m->average[k] = middle_mean(times, m->profiles);
        m->sum += m->average[k];
    }
}

// --- the report ---

static bool raise_all(struct report *r)
{
    int count;
    struct hot *list = find_hot(r, &count);
    for (int i = 0; list && i < count; i++)
        raise_limits(&r->limits, &list[i].load);
    free(list);
    return list != NULL;
}

static bool show(const struct options *o, migraphx_program_t program, struct report *r)
{
    const bool on_host = strcmp(target_name(o), "gpu") != 0; // there the thread waits for the card
    log_info("Timed %d runs, profiled %d", r->m->timed, r->m->profiles);
    if (on_host && busy_share(r->m) < BUSY)
        log_warn("Other work had the processor for %.0f%% of the time of the timed runs",
                 100 - 100 * busy_share(r->m));
    if (r->m->timed < r->m->runs || r->m->profiles < r->m->runs)
        log_warn("Interrupted: %d of %d timed runs, %d profiled", r->m->timed, r->m->runs,
                 r->m->profiles);
    bool good = load_plan(program, &r->plan);
    work_begin("measuring the machine's limits", 0);
    if (good && r->plan.count && !(o->totals && !o->format && !o->html))
        measure_limits(o, &r->plan, &r->limits);
    work_end();
    good = good && raise_all(r);
    good = good && (o->format ? print_json_report(r) : print_report(r)) &&
           (!o->trace || write_trace(r, o->trace)) && (!o->html || write_page(r, o->html));
    free_plan(&r->plan);
    return good;
}

static bool measure(const struct options *o, migraphx_program_t program,
                    migraphx_instructions_t list, size_t count, const struct cards *cards)
{
    struct measurement m = {.runs = o->iterations,
                            .count = count,
                            .cards = *cards,
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
    good = good && run_rounds(&(struct rounds){program, params, &m, microseconds}) && m.timed;
    if (good && m.cards.count && !work_stopped())
        good = time_cards(o, &m.cards);
    if (good && o->trace)
        good = take_timeline(program, params, m.timed, &m.timeline);
    if (good)
        sum_up(&m);
    else if (work_stopped())
        log_error("Interrupted before the first run had ended");
    good = good && show(o, program, &r);
    migraphx_program_parameters_destroy(params);
    free_timeline(&m.timeline);
    free(microseconds);
    free(m.average);
    free(m.instructions);
    free(m.profiled);
    free(m.total);
    return good;
}

// Cards are of target gpu; the report is of the first of them.
static bool choose_cards(struct options *o, struct cards *cards)
{
    if (!read_cards(o, cards))
        return false;
    if (cards->count && o->target && strcmp(o->target, "gpu") != 0) {
        log_error("--cards are of target gpu, not of %s", o->target);
        return false;
    }
    o->target = cards->count ? "gpu" : o->target;
    o->card = cards->count ? (int)cards->numbers[0] : 0;
    return true;
}

static int run(struct options *o)
{
    migraphx_program_t program;
    migraphx_module_t main_module;
    migraphx_instructions_t list = NULL;
    struct cards cards;
    size_t count = 0;
    o->on_card = true;
    if (!choose_cards(o, &cards))
        return EXIT_USAGE;
    if (!load_model(o, &program))
        return EXIT_FAILURE;
    const bool good =
        quantize_model(o, program) && compile_model(o, program, target_name(o), false) &&
        fix_sizes(o, &program) && OK(migraphx_program_get_main_module(&main_module, program)) &&
        OK(migraphx_module_instructions(&list, main_module)) &&
        OK(migraphx_instructions_size(&count, list)) && measure(o, program, list, count, &cards);
    migraphx_instructions_destroy(list);
    migraphx_program_destroy(program);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct flag own[] = {
    {FLAG_HEADING, NULL, NULL, 0, NULL, "perf", 0, NULL},
    {FLAG_INT, "--iterations", "-n", OFFSET(iterations), "N", "number of runs [100]", 0, NULL, 1},
    {FLAG_SET, "--detailed", "-d", OFFSET(detailed), NULL, "group by shapes too", 0, NULL},
    {FLAG_WORD, "--cards", NULL, OFFSET(cards), "0,1",
     "of the GPU target: the report is of the first, then all run alone and together", 0, NULL},
    {FLAG_SET, "--totals", NULL, OFFSET(totals), NULL, "print the totals alone", 0, NULL},
    {FLAG_WORD, "--trace", NULL, OFFSET(trace), "<file>",
     "write the timeline for chrome://tracing and Perfetto", 0, NULL},
    {FLAG_WORD, "--html", NULL, OFFSET(html), "<file>", "write a page to look at", 0, NULL},
    {FLAG_END, NULL, NULL, 0, NULL, NULL, 0, NULL}};
static const struct flag *const flags[] = {loader_flags, compile_flags, own,
                                           json_flags,   common_flags,  NULL};
const struct verb verb_perf = {
    "perf", "Prints where the time of a run goes.", "[flags] <file>", flags, run, true};
