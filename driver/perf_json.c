// SPDX-License-Identifier: MIT
// perf's report as JSON, and as a page to look at, which is the JSON and what draws it (page/). Both
// have the shares of the limits as perf's text has them: nothing is reckoned twice.
#include "profile.h"

static const char page[] =
#include "page.inc"
    ;

// The line of the page that the data takes the place of.
static const char mark[] = "/* data */";

// --- the parts ---

static void put_number(FILE *f, const char *name, double value)
{
    fprintf(f, "\"%s\": ", name);
    put_json_number(f, value);
}

static void put_totals(FILE *f, const struct measurement *m)
{
    const double *t = m->total;
    const int n = m->timed;
    const double average = middle_mean(t, n);
    put_number(f, "batch", m->batch);
    fprintf(f, ", \"runs\": %d, ", n);
    put_number(f, "rate", n ? 1000 / average * m->batch : 0);
    fprintf(f, ",\n \"total_ms\": {");
    put_number(f, "average", average);
    fprintf(f, ", ");
    put_number(f, "min", n ? t[0] : 0);
    fprintf(f, ", ");
    put_number(f, "max", n ? t[n - 1] : 0);
    fprintf(f, ", ");
    put_number(f, "mean", mean(t, n));
    fprintf(f, ", ");
    put_number(f, "median", n ? t[n / 2] : 0);
    static const int percents[] = {90, 95, 99};
    for (int i = 0; i < 3; i++)
        fprintf(f, ", \"p%d\": %.10g", percents[i], percentile(t, n, percents[i] / 100.0));
    fprintf(f, "},\n ");
    put_number(f, "instructions_ms", m->sum);
    fprintf(f, ", ");
    put_number(f, "busy", busy_share(m));
    fprintf(f, ", \"overhead_ms\": [%.10g, %.10g]", middle_mean(m->profiled, m->profiles),
            average - m->sum);
}

static const char *const kinds[] = {
    [OF_FLOATS] = "floats", [OF_BYTES] = "bytes", [OF_BF16] = "bf16"};

// How near it comes to the limits, and the operations that are really done: by Winograd's method
// they are fewer than the model says.
static void put_share(FILE *f, const struct report *r, const struct hot *h)
{
    double done = 0;
    int kind = OF_FLOATS;
    for (int i = 0; h && i < ARITHMETICS; i++) {
        done += h->load.flops[i];
        kind = h->load.flops[i] > h->load.flops[kind] ? i : kind;
    }
    put_number(f, "share", h ? share_of_limit(&r->limits, &h->load) : 0);
    fprintf(f, ", \"done\": %.0f, \"kind\": \"%s\", ", done, kinds[kind]);
}

static bool put_instruction(FILE *f, const struct report *r, size_t i, const struct hot *h)
{
    migraphx_instruction_t ins = NULL;
    char *text = NULL, *group = NULL;
    const bool good = OK(migraphx_instructions_get(&ins, r->list, i)) &&
                      OK(migraphx_instruction_to_string(&text, ins)) &&
                      (group = group_name(ins, r->o->detailed)) != NULL;
    if (good) {
        fprintf(f, "%s\n  {\"index\": %zu, ", i ? "," : "", i);
        put_member(f, "group", group);
        fprintf(f, ", ");
        put_number(f, "ms", r->m->average[i]);
        fprintf(f, ", ");
        put_share(f, r, h);
        put_member(f, "text", text);
        fprintf(f, "}");
    }
    free(group);
    migraphx_string_destroy(text);
    migraphx_instruction_destroy(ins);
    return good;
}

void put_plan_row(FILE *f, const struct plan_row *row)
{
    fprintf(f, "{\"instruction\": %d, ", row->instruction);
    const struct {
        const char *name, *text;
    } texts[] = {{"operator", row->op},  {"kernel", row->kernel}, {"detail", row->detail},
                 {"device", row->where}, {"type", row->type},     {"place", row->place},
                 {"why_not", row->why},  {"nodes", row->nodes}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put_member(f, texts[i].name, texts[i].text);
        fprintf(f, ", ");
    }
    fprintf(f,
            "\"offset\": %.0f, \"bytes\": %.0f, \"first\": %d, \"last\": %d, \"flops\": %.0f, "
            "\"moved\": %.0f, ",
            row->offset, row->bytes, row->first, row->last, row->flops, row->moved);
    put_member(f, "reads", row->reads);
    fprintf(f, "}");
}

static bool put_instructions(FILE *f, const struct report *r)
{
    int count;
    struct hot *list = find_hot(r, &count);
    const struct hot **of = calloc(r->m->count + 1, sizeof(struct hot *));
    bool good = list && of;
    for (int i = 0; i < count && good; i++)
        if (list[i].instruction >= 0 && (size_t)list[i].instruction < r->m->count)
            of[list[i].instruction] = &list[i];
    for (size_t i = 0; i < r->m->count && good; i++)
        good = put_instruction(f, r, i, of[i]);
    free(of);
    free(list);
    return good;
}

static void put_limits(FILE *f, const struct limits *l)
{
    fprintf(f,
            "\"limits\": {\"gflops\": %.6g, \"gbytes\": %.6g, \"cache_gbytes\": %.6g, "
            "\"cache_bytes\": %.0f, \"middle_gbytes\": %.6g, \"middle_bytes\": %.0f, "
            "\"bytes_gflops\": %.6g, \"bf16_gflops\": %.6g}",
            l->gflops, l->gbytes, l->cache_gbytes, l->cache_bytes, l->middle_gbytes,
            l->middle_bytes, l->of_kind[OF_BYTES], l->of_kind[OF_BF16]);
}

// Inferences a second of each of --cards alone, and of all together.
static void put_cards(FILE *f, const struct measurement *m)
{
    if (!m->cards.count)
        return;
    fprintf(f, "\"cards\": [");
    for (int i = 0; i < m->cards.count; i++) {
        fprintf(f, "%s{\"card\": %zu, ", i ? ", " : "", m->cards.numbers[i]);
        put_number(f, "rate_alone", m->cards.alone[i] * m->batch);
        fprintf(f, "}");
    }
    fprintf(f, "], ");
    put_number(f, "rate_together", m->cards.together * m->batch);
    fprintf(f, ",\n ");
}

static bool put_report(FILE *f, const struct report *r)
{
    fprintf(f, "{");
    put_member(f, "model", report_model(r));
    fprintf(f, ",\n ");
    put_conditions(f, r);
    fprintf(f, ",\n ");
    put_totals(f, r->m);
    fprintf(f, ",\n ");
    put_cards(f, r->m);
    put_limits(f, &r->limits);
    fprintf(f, ",\n \"instructions\": [");
    const bool good = put_instructions(f, r);
    fprintf(f, "],\n \"steps\": [");
    for (int i = 0; i < r->plan.count; i++) {
        fprintf(f, "%s\n  ", i ? "," : "");
        put_plan_row(f, &r->plan.rows[i]);
    }
    fprintf(f, "],\n ");
    put_member(f, "summary", r->plan.summary);
    fprintf(f, "}\n");
    return good;
}

bool print_json_report(const struct report *r)
{
    return put_report(stdout, r);
}

// --- the page ---

bool write_page(const struct report *r, const char *path)
{
    char *temporary;
    FILE *f = open_new(path, &temporary);
    const char *at = strstr(page, mark);
    bool good = f && at;
    if (good) {
        fwrite(page, 1, (size_t)(at - page), f);
        good = put_report(f, r);
        fputs(at + sizeof mark - 1, f);
    }
    return close_new(f, path, temporary, good);
}
