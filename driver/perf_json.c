// SPDX-License-Identifier: MIT
// perf's report as JSON, as a timeline for chrome://tracing and Perfetto, and as a page to look at,
// which is the JSON and what draws it (page.html).
#include "profile.h"

static const char page[] =
#include "page.inc"
    ;

// The line of the page that the data takes the place of.
static const char mark[] = "/* data */";

// --- the parts ---

static void put_text(FILE *f, const char *name, const char *text)
{
    fprintf(f, "\"%s\": ", name);
    put_json_text(f, text);
}

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

static bool put_instruction(FILE *f, const struct report *r, size_t i)
{
    migraphx_instruction_t ins = NULL;
    char *text = NULL, *group = NULL;
    const bool good = OK(migraphx_instructions_get(&ins, r->list, i)) &&
                      OK(migraphx_instruction_to_string(&text, ins)) &&
                      (group = group_name(ins, r->o->detailed)) != NULL;
    if (good) {
        fprintf(f, "%s\n  {\"index\": %zu, ", i ? "," : "", i);
        put_text(f, "group", group);
        fprintf(f, ", ");
        put_number(f, "ms", r->m->average[i]);
        fprintf(f, ", ");
        put_text(f, "text", text);
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
        put_text(f, texts[i].name, texts[i].text);
        fprintf(f, ", ");
    }
    fprintf(f,
            "\"offset\": %.0f, \"bytes\": %.0f, \"first\": %d, \"last\": %d, \"flops\": %.0f, "
            "\"moved\": %.0f, ",
            row->offset, row->bytes, row->first, row->last, row->flops, row->moved);
    put_text(f, "reads", row->reads);
    fprintf(f, "}");
}

static bool put_report(FILE *f, const struct report *r)
{
    bool good = true;
    fprintf(f, "{");
    put_text(f, "model", r->o->file ? r->o->file : r->o->model ? r->o->model : "gemm");
    fprintf(f, ",\n ");
    put_totals(f, r->m);
    fprintf(f,
            ",\n \"limits\": {\"gflops\": %.6g, \"gbytes\": %.6g, \"cache_gbytes\": %.6g, "
            "\"cache_bytes\": %.0f, \"bytes_gflops\": %.6g, \"bf16_gflops\": %.6g},\n "
            "\"instructions\": [",
            r->limits.gflops, r->limits.gbytes, r->limits.cache_gbytes, r->limits.cache_bytes,
            r->limits.of_kind[OF_BYTES], r->limits.of_kind[OF_BF16]);
    for (size_t i = 0; i < r->m->count && good; i++)
        good = put_instruction(f, r, i);
    fprintf(f, "],\n \"steps\": [");
    for (int i = 0; i < r->plan.count; i++) {
        fprintf(f, "%s\n  ", i ? "," : "");
        put_plan_row(f, &r->plan.rows[i]);
    }
    fprintf(f, "],\n ");
    put_text(f, "summary", r->plan.summary);
    fprintf(f, "}\n");
    return good;
}

bool print_json_report(const struct report *r)
{
    return put_report(stdout, r);
}

// --- the timeline ---

// Instructions one after the other, each as long as it takes on the average.
static bool put_events(FILE *f, const struct report *r)
{
    double at = 0;
    bool good = true, first = true;
    fprintf(f, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
    for (size_t i = 0; i < r->m->count && good; i++) {
        migraphx_instruction_t ins = NULL;
        char *text = NULL, *group = NULL;
        const double us = r->m->average[i] * 1000;
        good = OK(migraphx_instructions_get(&ins, r->list, i)) &&
               OK(migraphx_instruction_to_string(&text, ins)) &&
               (group = group_name(ins, r->o->detailed)) != NULL;
        if (good && us > 0) {
            fprintf(f, "%s\n {\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"cat\": \"run\", ",
                    first ? "" : ",");
            put_text(f, "name", group);
            fprintf(f, ", \"ts\": %.3f, \"dur\": %.3f, \"args\": {", at, us);
            put_text(f, "instruction", text);
            for (int k = 0; k < r->plan.count; k++)
                if (r->plan.rows[k].instruction == (int)i) {
                    fprintf(f, ", \"step\": ");
                    put_plan_row(f, &r->plan.rows[k]);
                    break;
                }
            fprintf(f, "}}");
            first = false;
            at += us;
        }
        free(group);
        migraphx_string_destroy(text);
        migraphx_instruction_destroy(ins);
    }
    fprintf(f, "\n]}\n");
    return good;
}

bool write_trace(const struct report *r, const char *path)
{
    char *temporary;
    FILE *f = open_new(path, &temporary);
    const bool good = f && put_events(f, r);
    return close_new(f, path, temporary, good);
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
