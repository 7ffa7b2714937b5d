// SPDX-License-Identifier: MIT
// perf's report as MIGraphX prints it, with one more list between its instructions and its summary:
// how near each instruction is to what the machine can do, and which nodes of the model it came
// from. The totals come last, where one looks.
#include <math.h>

#include "profile.h"

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

char *group_name(const_migraphx_instruction_t ins, bool detailed)
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

static bool print_line(const struct measurement *m, const_migraphx_instruction_t ins, size_t index)
{
    char *text = NULL;
    const char *name = "";
    if (!OK(migraphx_instruction_to_string(&text, ins)) ||
        !OK(migraphx_instruction_name(&name, ins)))
        return false;
    if (strcmp(name, "@return") == 0)
        printf("%s\n", text);
    else
        printf("%s: %gms, %g%%\n", text, m->average[index], percent(m->average[index], m->sum));
    migraphx_string_destroy(text);
    return true;
}

static bool print_instructions(const struct report *r)
{
    bool good = true;
    for (size_t i = 0; good && i < r->m->count; i++) {
        migraphx_instruction_t ins = NULL;
        good = OK(migraphx_instructions_get(&ins, r->list, i)) && print_line(r->m, ins, i);
        migraphx_instruction_destroy(ins);
    }
    return good;
}

static bool print_groups(const struct report *r)
{
    const struct measurement *m = r->m;
    struct group *groups = calloc(m->count + 1, sizeof *groups);
    int count = 0;
    bool good = groups != NULL;
    for (size_t i = 0; good && i < m->count; i++) {
        migraphx_instruction_t ins = NULL;
        const char *name = "";
        good = OK(migraphx_instructions_get(&ins, r->list, i)) &&
               OK(migraphx_instruction_name(&name, ins));
        char *group = good && strcmp(name, "@return") != 0 ? group_name(ins, r->o->detailed) : NULL;
        if (group)
            add_to_group(groups, &count, group, m->average[i]);
        migraphx_instruction_destroy(ins);
    }
    if (good)
        print_summary(groups, count, m->sum);
    for (int i = 0; i < count; i++)
        free(groups[i].name);
    free(groups);
    return good;
}

static void print_totals(const struct measurement *m, bool totals)
{
    const double *t = m->total;
    const int n = m->timed;
    const double average = middle_mean(t, n), overhead = middle_mean(m->profiled, m->profiles);
    printf("%sBatch size: %d\n", totals ? "" : "\n", m->batch);
    printf("Rate: %g inferences/sec\n", 1000 / average * m->batch);
    printf("Total time: %gms (Min: %gms, Max: %gms, Mean: %gms, Median: %gms)\n", average, t[0],
           t[n - 1], mean(t, n), t[n / 2]);
    printf("Percentiles (90%%, 95%%, 99%%): (%gms, %gms, %gms)\n", percentile(t, n, 0.90),
           percentile(t, n, 0.95), percentile(t, n, 0.99));
    printf("Total instructions time: %gms\n", m->sum);
    printf("Overhead time: %gms, %gms\n", overhead, average - m->sum);
    printf("Overhead: %g%%, %g%%\n", round(100 * overhead / average),
           round(100 * (average - m->sum) / average));
}

// Of --cards.
static void print_cards(const struct measurement *m)
{
    const struct cards *c = &m->cards;
    for (int i = 0; i < c->count; i++)
        printf("Card %zu alone: %g inferences/sec\n", c->numbers[i], c->alone[i] * m->batch);
    if (c->count > 1)
        printf("%d cards together: %g inferences/sec, %.2f times the first alone\n", c->count,
               c->together * m->batch, c->together / c->alone[0]);
}

// --- against the limits of the machine ---

static int hottest_first(const void *a, const void *b)
{
    const struct hot *x = a, *y = b;
    const int order = (x->ms < y->ms) - (x->ms > y->ms);
    return order ? order : (x->instruction > y->instruction) - (x->instruction < y->instruction);
}

// Copies in front of a kernel belong to its instruction.
static void add_row(const struct report *r, struct hot *list, int *count,
                    const struct plan_row *row)
{
    struct hot *h = *count ? &list[*count - 1] : NULL;
    for (int i = 0; i < *count; i++)
        if (list[i].instruction == row->instruction)
            h = &list[i];
    if (!h || h->instruction != row->instruction) {
        h = &list[(*count)++];
        *h = (struct hot){.instruction = row->instruction, .row = row};
        if (row->instruction >= 0 && (size_t)row->instruction < r->m->count)
            h->load.ms = h->ms = r->m->average[row->instruction];
    }
    add_load(&h->load, row);
    h->flops += row->flops;
    h->moved += row->moved;
    if (row->flops > h->row->flops || strcmp(h->row->kernel, "copy") == 0)
        h->row = row;
}

struct hot *find_hot(const struct report *r, int *count)
{
    struct hot *list = calloc((size_t)r->plan.count + 1, sizeof *list);
    *count = 0;
    for (int i = 0; list && i < r->plan.count; i++)
        add_row(r, list, count, &r->plan.rows[i]);
    if (list)
        qsort(list, (size_t)*count, sizeof *list, hottest_first);
    return list;
}

static void print_hot(const struct report *r, const struct hot *h)
{
    const double seconds = h->ms * 1e-3;
    printf("main:@%d: %gms, %g%%", h->instruction, h->ms, percent(h->ms, r->m->sum));
    if (h->flops > 0 && seconds > 0)
        printf(", %.3g GFLOP/s", h->flops * 1e-9 / seconds);
    if (seconds > 0)
        printf(", %.3g GB/s", h->moved * 1e-9 / seconds);
    if (r->limits.gflops > 0)
        printf(", %.0f%% of the limit", share_of_limit(&r->limits, &h->load));
    printf(", %s%s%s%s%s%s\n", h->row->kernel, *h->row->detail ? " (" : "", h->row->detail,
           *h->row->detail ? ")" : "", *h->row->nodes ? ", " : "", h->row->nodes);
}

static bool print_hottest(const struct report *r)
{
    int count;
    struct hot *list = find_hot(r, &count);
    if (!list)
        return false;
    if (count)
        printf("\nSlowest first (limits: %.3g GFLOP/s, %.3g GB/s", r->limits.gflops,
               r->limits.gbytes);
    if (count && r->limits.cache_bytes > 0)
        printf(", %.3g GB/s in the cache", r->limits.cache_gbytes);
    if (count && r->limits.of_kind[OF_BYTES] != r->limits.gflops)
        printf(", %.3g GFLOP/s of bytes", r->limits.of_kind[OF_BYTES]);
    if (count && r->limits.of_kind[OF_BF16] != r->limits.gflops)
        printf(", %.3g GFLOP/s of bfloat16", r->limits.of_kind[OF_BF16]);
    if (count)
        printf("):\n");
    for (int i = 0; i < count; i++)
        print_hot(r, &list[i]);
    free(list);
    return true;
}

bool print_report(const struct report *r)
{
    if (!r->o->totals && (!print_instructions(r) || !print_hottest(r) || !print_groups(r)))
        return false;
    print_totals(r->m, r->o->totals);
    print_cards(r->m);
    return true;
}
