// SPDX-License-Identifier: MIT
// perf's timeline for chrome://tracing and Perfetto: a process with a line for every thread, and the
// scratch memory in use.
//
// It shows one run, the fastest of a few: the calling thread from instruction to instruction, and
// each worker while it helps. Where a card computes, threads of the host say nothing; then the
// instructions stand one after the other, each as long as it takes on the average by the card's
// clock.
#include "profile.h"

enum { MOST_RUNS = 5, PROCESS = 1 };

// --- taking it ---

static void add_span(void *data, size_t instruction, size_t thread, double begin, double end)
{
    struct timeline *t = data;
    if (t->count == t->room) {
        const size_t room = 2 * t->room + 256;
        struct span *larger = realloc(t->spans, room * sizeof *larger);
        if (!larger) {
            t->failed = true;
            return;
        }
        t->spans = larger;
        t->room = room;
    }
    t->spans[t->count++] = (struct span){instruction, thread, begin, end};
}

// Instructions one after the other, each as long as it takes on the average.
static void add_averages(const struct report *r, struct timeline *t)
{
    double at = 0;
    for (size_t i = 0; i < r->m->count; i++) {
        const double us = r->m->average[i] * 1000;
        if (us > 0)
            add_span(t, i, 0, at, at + us);
        at += us;
    }
}

static double length_of(const struct timeline *t)
{
    double end = 0;
    for (size_t i = 0; i < t->count; i++)
        end = t->spans[i].end > end ? t->spans[i].end : end;
    return end;
}

// True if the run was ended by Ctrl-C, which is no failure.
static bool watch_run(migraphx_program_t program, migraphx_program_parameters_t params,
                      struct timeline *t, bool *good)
{
    migraphx_arguments_t results = NULL;
    const migraphx_status status =
        migraphx_program_run_spans(&results, program, params, add_span, t);
    migraphx_arguments_destroy(results);
    if (status == migraphx_status_cancelled && work_stopped())
        return true;
    if (t->failed)
        log_error("out of memory");
    *good = OK(status) && !t->failed;
    return false;
}

bool take_timeline(migraphx_program_t program, migraphx_program_parameters_t params, int runs,
                   struct timeline *out)
{
    bool good = true, stopped = false;
    for (int i = 0; i < runs && i < MOST_RUNS && good && !stopped; i++) {
        struct timeline t = {0};
        stopped = watch_run(program, params, &t, &good);
        if (good && !stopped && (!i || length_of(&t) < length_of(out))) {
            free_timeline(out);
            *out = t;
        } else
            free_timeline(&t);
    }
    if (stopped)
        work_finish(); // the report goes on
    return good;
}

void free_timeline(struct timeline *t)
{
    free(t->spans);
    *t = (struct timeline){0};
}

// --- names ---

static void put_name_of(FILE *f, const char *kind, size_t thread, const char *name)
{
    fprintf(f, " {\"ph\": \"M\", \"pid\": %d, \"tid\": %zu, \"name\": \"%s\", \"args\": {", PROCESS,
            thread + 1, kind);
    put_member(f, "name", name);
    fprintf(f, "}},\n");
}

static size_t most_thread(const struct timeline *t)
{
    size_t most = 0;
    for (size_t i = 0; i < t->count; i++)
        most = t->spans[i].thread > most ? t->spans[i].thread : most;
    return most;
}

static void put_all_names(FILE *f, const struct report *r, const struct timeline *t)
{
    char name[32];
    put_name_of(f, "process_name", 0, report_model(r));
    put_name_of(f, "thread_name", 0, t == &r->m->timeline ? "calling thread" : "averages");
    for (size_t i = 1; i <= most_thread(t); i++) {
        snprintf(name, sizeof name, "worker %zu", i);
        put_name_of(f, "thread_name", i, name);
    }
    for (size_t i = 0; i <= most_thread(t); i++)
        fprintf(f,
                " {\"ph\": \"M\", \"pid\": %d, \"tid\": %zu, \"name\": \"thread_sort_index\", "
                "\"args\": {\"sort_index\": %zu}},\n",
                PROCESS, i + 1, i);
}

// --- instructions ---

static void put_step_of(FILE *f, const struct report *r, size_t instruction)
{
    for (int k = 0; k < r->plan.count; k++)
        if (r->plan.rows[k].instruction == (int)instruction) {
            fprintf(f, ", \"step\": ");
            put_plan_row(f, &r->plan.rows[k]);
            return;
        }
}

// The calling thread's has all there is to know, a worker's the name.
static bool put_span(FILE *f, const struct report *r, const struct span *s)
{
    migraphx_instruction_t ins = NULL;
    char *text = NULL, *group = NULL;
    const bool good = OK(migraphx_instructions_get(&ins, r->list, s->instruction)) &&
                      OK(migraphx_instruction_to_string(&text, ins)) &&
                      (group = group_name(ins, r->o->detailed)) != NULL;
    if (good) {
        fprintf(f, " {\"ph\": \"X\", \"pid\": %d, \"tid\": %zu, \"cat\": \"%s\", ", PROCESS,
                s->thread + 1, s->thread ? "help" : "run");
        put_member(f, "name", group);
        fprintf(f, ", \"ts\": %.3f, \"dur\": %.3f, \"args\": {", s->begin, s->end - s->begin);
        put_member(f, "instruction", text);
        if (!s->thread) {
            fprintf(f, ", \"average_us\": %.3f", r->m->average[s->instruction] * 1000);
            put_step_of(f, r, s->instruction);
        }
        fprintf(f, "}},\n");
    }
    free(group);
    migraphx_string_destroy(text);
    migraphx_instruction_destroy(ins);
    return good;
}

static bool put_spans(FILE *f, const struct report *r, const struct timeline *t)
{
    bool good = true;
    for (size_t i = 0; i < t->count && good; i++)
        if (t->spans[i].instruction < r->m->count)
            good = put_span(f, r, &t->spans[i]);
    return good;
}

// --- memory ---

// Views lie where what they view lies, for as long.
static bool is_told(const struct plan *plan, int k)
{
    const struct plan_row *row = &plan->rows[k];
    for (int i = 0; i < k; i++)
        if (strcmp(plan->rows[i].place, "scratch") == 0 && plan->rows[i].offset == row->offset &&
            plan->rows[i].first == row->first && plan->rows[i].last == row->last)
            return true;
    return false;
}

// Bytes in use at every step; to be freed.
static double *find_bytes(const struct plan *plan)
{
    double *bytes = calloc((size_t)plan->count + 2, sizeof *bytes);
    for (int i = 0; bytes && i < plan->count; i++) {
        const struct plan_row *row = &plan->rows[i];
        if (strcmp(row->place, "scratch") != 0 || row->first < 0 || row->last < row->first ||
            row->last >= plan->count || is_told(plan, i))
            continue;
        bytes[row->first] += row->bytes;
        bytes[row->last + 1] -= row->bytes;
    }
    for (int i = 1; bytes && i < plan->count; i++)
        bytes[i] += bytes[i - 1];
    return bytes;
}

static int step_of(const struct plan *plan, size_t instruction)
{
    for (int k = 0; k < plan->count; k++)
        if (plan->rows[k].instruction == (int)instruction)
            return k;
    return -1;
}

static void put_counter(FILE *f, double at, double bytes)
{
    fprintf(f,
            " {\"ph\": \"C\", \"pid\": %d, \"tid\": 1, \"name\": \"scratch memory\", \"ts\": %.3f, "
            "\"args\": {\"bytes\": %.0f}},\n",
            PROCESS, at, bytes);
}

static bool put_counters(FILE *f, const struct report *r, const struct timeline *t)
{
    double *bytes = find_bytes(&r->plan);
    const bool good = bytes != NULL;
    for (size_t i = 0; bytes && i < t->count; i++) {
        const int step = t->spans[i].thread ? -1 : step_of(&r->plan, t->spans[i].instruction);
        if (step >= 0)
            put_counter(f, t->spans[i].begin, bytes[step]);
    }
    free(bytes);
    return good;
}

// --- the file ---

// The run itself comes last, around all of them: no comma behind it.
static bool put_events(FILE *f, const struct report *r, const struct timeline *t)
{
    fprintf(f, "{\"displayTimeUnit\": \"ms\", \"otherData\": {");
    put_conditions(f, r);
    fprintf(f, "},\n\"traceEvents\": [\n");
    put_all_names(f, r, t);
    const bool good = put_spans(f, r, t) && put_counters(f, r, t);
    fprintf(f,
            " {\"ph\": \"X\", \"pid\": %d, \"tid\": 1, \"cat\": \"run\", \"name\": \"run\", "
            "\"ts\": 0, \"dur\": %.3f}\n]}\n",
            PROCESS, length_of(t));
    return good;
}

bool write_trace(const struct report *r, const char *path)
{
    struct timeline averages = {0};
    const struct timeline *t = &r->m->timeline;
    char *temporary;
    if (!t->count) {
        add_averages(r, &averages);
        t = &averages;
    }
    FILE *f = open_new(path, &temporary);
    if (averages.failed)
        log_error("out of memory");
    const bool good = f && !averages.failed && put_events(f, r, t);
    free_timeline(&averages);
    return close_new(f, path, temporary, good);
}
