// SPDX-License-Identifier: MIT
// perf: where the time goes.
//
// One untimed run, n timed ones, then n with a clock around every instruction. "Average" is the
// mean of the middle half, so that a hiccup of the machine does not count. The overhead is what a
// run spends outside its instructions: in the profiled runs, and as the difference between the two
// measurements.
#include <math.h>

#include "verbs.h"

struct measurement {
    double *total;        // milliseconds of each timed run, sorted
    double *profiled;     // of each profiled run less its instructions
    double *instructions; // [instruction][run]
    double *average;      // of each instruction
    int runs, batch;
    size_t count; // instructions of the main module
};

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
}

// Of sorted values: the mean without the lowest and the highest quarter.
static double middle_mean(const double *values, int count)
{
    const int drop = count / 4;
    double sum = 0;
    for (int i = drop; i < count - drop; i++)
        sum += values[i];
    return sum / (count - 2 * drop);
}

static double percentile(const double *values, int count, double p)
{
    return values[(int)(p * (count - 1))];
}

// --- measuring ---

static bool timed_runs(migraphx_program_t program, migraphx_program_parameters_t params,
                       struct measurement *m)
{
    for (int i = -1; i < m->runs; i++) {
        migraphx_arguments_t results = NULL;
        const double start = now_ms();
        const bool good = OK(migraphx_program_run(&results, program, params));
        if (i >= 0)
            m->total[i] = now_ms() - start;
        migraphx_arguments_destroy(results);
        if (!good)
            return false;
    }
    sort(m->total, m->runs);
    return true;
}

static bool profiled_runs(migraphx_program_t program, migraphx_program_parameters_t params,
                          struct measurement *m, double *microseconds)
{
    for (int i = 0; i < m->runs; i++) {
        migraphx_arguments_t results = NULL;
        const double start = now_ms();
        const bool good =
            OK(migraphx_program_run_profile(&results, program, params, microseconds, m->count));
        m->profiled[i] = now_ms() - start;
        migraphx_arguments_destroy(results);
        if (!good)
            return false;
        for (size_t k = 0; k < m->count; k++) {
            m->instructions[k * (size_t)m->runs + (size_t)i] = microseconds[k] / 1000;
            m->profiled[i] -= microseconds[k] / 1000;
        }
    }
    sort(m->profiled, m->runs);
    for (size_t k = 0; k < m->count; k++) {
        double *times = &m->instructions[k * (size_t)m->runs];
        sort(times, m->runs);
        m->average[k] = middle_mean(times, m->runs);
    }
    return true;
}

// --- the report ---

struct group {
    char *name;
    double sum;
    int count;
};

static int slowest_first(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    const int order = (x->sum < y->sum) - (x->sum > y->sum);
    return order ? order : strcmp(x->name, y->name);
}

static double percent(double part, double whole)
{
    return whole > 0 ? ceil(100 * part / whole) : 0;
}

// What a fused group is called: the name of its body ("dot_gelu:3"), counted without the number.
static char *body_name(const_migraphx_instruction_t ins)
{
    migraphx_modules_t modules = NULL;
    migraphx_module_t body = NULL;
    const char *name = "";
    const bool good = OK(migraphx_instruction_modules(&modules, ins)) &&
                      OK(migraphx_modules_get(&body, modules, 0)) &&
                      OK(migraphx_module_name(&name, body));
    char *copy = good ? strndup(name, strcspn(name, ":")) : NULL;
    migraphx_modules_destroy(modules);
    return copy;
}

// The group of an instruction: its operator or what was fused, with --detailed also what goes in
// and out.
static char *group_name(const_migraphx_instruction_t ins, bool detailed)
{
    const char *op = "";
    char *line = NULL, *result = NULL;
    migraphx_instruction_name(&op, ins);
    char *name = strcmp(op, "group") == 0 ? body_name(ins) : strdup(op);
    if (!name || !detailed || !OK(migraphx_instruction_to_string(&line, ins)))
        return name;
    const char *arrow = strstr(line, " -> ");
    const size_t size = strlen(name) + strlen(arrow ? arrow : "") + 4;
    result = malloc(size);
    if (result)
        snprintf(result, size, "%s<%s>", name, arrow ? arrow + 4 : "");
    migraphx_string_destroy(line);
    free(name);
    return result;
}

static void add_to_group(struct group *groups, int *count, char *name, double ms)
{
    for (int i = 0; i < *count; i++)
        if (strcmp(groups[i].name, name) == 0) {
            groups[i].sum += ms;
            groups[i].count++;
            free(name);
            return;
        }
    groups[(*count)++] = (struct group){name, ms, 1};
}

static void print_summary(struct group *groups, int count, double sum)
{
    qsort(groups, (size_t)count, sizeof *groups, slowest_first);
    printf("\nSummary:\n");
    for (int i = 0; i < count; i++)
        printf("%s: %gms / %d = %gms, %g%%\n", groups[i].name, groups[i].sum, groups[i].count,
               groups[i].sum / groups[i].count, percent(groups[i].sum, sum));
}

static bool print_line(const struct measurement *m, const_migraphx_instruction_t ins, size_t index,
                       double sum)
{
    char *text = NULL;
    const char *name = "";
    if (!OK(migraphx_instruction_to_string(&text, ins)) ||
        !OK(migraphx_instruction_name(&name, ins)))
        return false;
    if (strcmp(name, "@return") == 0)
        printf("%s\n", text);
    else
        printf("%s: %gms, %g%%\n", text, m->average[index], percent(m->average[index], sum));
    migraphx_string_destroy(text);
    return true;
}

static bool print_instructions(const struct options *o, const struct measurement *m,
                               migraphx_instructions_t list, double sum)
{
    struct group *groups = calloc(m->count + 1, sizeof *groups);
    int count = 0;
    bool good = groups != NULL;
    for (size_t i = 0; good && i < m->count; i++) {
        migraphx_instruction_t ins = NULL;
        const char *name = "";
        good = OK(migraphx_instructions_get(&ins, list, i)) && print_line(m, ins, i, sum) &&
               OK(migraphx_instruction_name(&name, ins));
        char *group = good && strcmp(name, "@return") != 0 ? group_name(ins, o->detailed) : NULL;
        if (group)
            add_to_group(groups, &count, group, m->average[i]);
        migraphx_instruction_destroy(ins);
    }
    if (good)
        print_summary(groups, count, sum);
    for (int i = 0; i < count; i++)
        free(groups[i].name);
    free(groups);
    return good;
}

static void print_totals(const struct measurement *m, double sum)
{
    const double *t = m->total;
    const int n = m->runs;
    const double average = middle_mean(t, n), overhead = middle_mean(m->profiled, n);
    double mean = 0;
    for (int i = 0; i < n; i++)
        mean += t[i] / n;
    printf("\nBatch size: %d\n", m->batch);
    printf("Rate: %g inferences/sec\n", 1000 / average * m->batch);
    printf("Total time: %gms (Min: %gms, Max: %gms, Mean: %gms, Median: %gms)\n", average, t[0],
           t[n - 1], mean, t[n / 2]);
    printf("Percentiles (90%%, 95%%, 99%%): (%gms, %gms, %gms)\n", percentile(t, n, 0.90),
           percentile(t, n, 0.95), percentile(t, n, 0.99));
    printf("Total instructions time: %gms\n", sum);
    printf("Overhead time: %gms, %gms\n", overhead, average - sum);
    printf("Overhead: %g%%, %g%%\n", round(100 * overhead / average),
           round(100 * (average - sum) / average));
}

static bool report(const struct options *o, const struct measurement *m,
                   migraphx_instructions_t list)
{
    double sum = 0;
    for (size_t i = 0; i < m->count; i++)
        sum += m->average[i];
    if (!print_instructions(o, m, list, sum))
        return false;
    print_totals(m, sum);
    return true;
}

static bool measure(const struct options *o, migraphx_program_t program,
                    migraphx_instructions_t list, size_t count)
{
    struct measurement m = {.runs = o->iterations,
                            .count = count,
                            .batch = o->batch ? o->batch : model_batch(o, program)};
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
    good = good && timed_runs(program, params, &m) &&
           profiled_runs(program, params, &m, microseconds) && report(o, &m, list);
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
    {FLAG_END, NULL, NULL, 0, NULL, NULL, 0, NULL}};
static const struct flag *const flags[] = {loader_flags, compile_flags, own, common_flags, NULL};
const struct verb verb_perf = {
    "perf", "Prints where the time of a run goes.", "[flags] <file>", flags, run, true};
