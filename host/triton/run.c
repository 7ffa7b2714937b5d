// SPDX-License-Identifier: MIT
// An execution: requests that the server hands over together become as few runs as their lengths
// allow.
//
// A run of one request reads its bytes where they lie and writes results where the response wants
// them; one of several copies both once. A run that fails is made again for each of its requests
// alone, so that the one to blame fails alone. Nothing is allocated per element, and no lock taken.
#include <string.h>

#include "run.h"

enum { FEW = 16 };

// --- one run ---

struct inputs {
    migraphx_buffer *buffers;
    migraphx_argument_t *made; // texts
    size_t (*lens)[MOST_RANK];
};

// The lengths that all requests have together.
static void join_lengths(const struct group *g, size_t input, size_t rows, size_t *lens,
                         size_t *rank)
{
    const struct value *v = &g->instance->model->inputs[input];
    const struct part *p = &g->items[0]->parts[input];
    *rank = p->rank;
    for (uint32_t i = 0; i < p->rank; i++)
        lens[i] = (size_t)p->lens[i];
    if (value_is_joined(v)) {
        lens[0] = ragged_elements(g, input);
        *rank = 1;
    } else if (g->instance->model->most && p->rank) {
        lens[0] = rows;
    } else if (!v->rank && p->rank == 1 && p->lens[0] == 1) { // shown as one of one
        *rank = 0;
    }
}

static TritonError *take_input(struct group *g, size_t input, size_t rows, struct inputs *in)
{
    const struct value *v = &g->instance->model->inputs[input];
    migraphx_buffer *b = &in->buffers[input];
    *b = (migraphx_buffer){.name = v->name, .lens = in->lens[input]};
    type_engine(v->type, &b->type);
    if (v->batch_kind)
        return ragged_input(g, input, in->lens[input], &b->rank, &b->data);
    join_lengths(g, input, rows, in->lens[input], &b->rank);
    if (v->type != TRITON_BYTES)
        return gather(g, input, rows, &b->data);
    TRY(gather_texts(g, input, b->lens, b->rank, &in->made[input]));
    b->argument = in->made[input];
    return NULL;
}

static bool has_texts(const struct model *m)
{
    for (size_t i = 0; i < m->result_count; i++)
        if (m->results[i].type == TRITON_BYTES)
            return true;
    return false;
}

static TritonError *run_with(struct group *g, const struct plan *plan, struct inputs *in,
                             uint64_t *begin, uint64_t *end)
{
    struct model *m = g->instance->model;
    migraphx_arguments_t results = NULL;
    const size_t rows = plan->rows && m->most ? plan->rows : g->rows;
    for (size_t i = 0; i < m->input_count; i++)
        TRY(take_input(g, i, rows, in));
    *begin = now();
    const migraphx_status status = migraphx_program_run_buffers(
        has_texts(m) ? &results : NULL, plan->program, in->buffers, m->input_count, group_place, g);
    *end = now();
    TritonError *error = status ? pass_on(m->name, status) : NULL;
    if (g->error) {
        if (error)
            TRITONSERVER_ErrorDelete(error);
        error = g->error;
        g->error = NULL;
    }
    if (!error)
        error = group_scatter(g, results);
    migraphx_arguments_destroy(results);
    return error;
}

static TritonError *run_group(struct group *g, uint64_t *begin, uint64_t *end)
{
    const struct model *m = g->instance->model;
    const size_t ins = m->input_count + 1, outs = m->result_count + 1;
    const struct plan *plan = engine_plan(g->instance->engine, m->most ? g->rows : 0);
    if (!plan)
        return fail(TRITON_INVALID_ARGUMENT, "migraphx: a batch of %zu is more than %zu", g->rows,
                    m->most);
    struct inputs in = {.buffers = calloc(ins, sizeof *in.buffers),
                        .made = calloc(ins, sizeof *in.made),
                        .lens = calloc(ins, sizeof *in.lens)};
    g->placed = calloc(2 * outs, sizeof *g->placed);
    g->numbers = g->placed ? g->placed + outs : NULL;
    g->lens = calloc(outs, sizeof *g->lens);
    g->ranks = calloc(outs, sizeof *g->ranks);
    TritonError *error = NULL;
    if (in.buffers && in.made && in.lens && g->placed && g->lens && g->ranks)
        error = run_with(g, plan, &in, begin, end);
    else
        error = no_memory();
    for (size_t i = 0; in.made && i < m->input_count; i++)
        migraphx_argument_destroy(in.made[i]);
    free(in.buffers);
    free(in.made);
    free(in.lens);
    free(g->placed);
    free(g->lens);
    free(g->ranks);
    return error;
}

// --- groups ---

struct times {
    uint64_t start, compute_start, compute_end;
    size_t rows;
};

static void run_items(struct instance *n, struct item **items, size_t count, size_t rows,
                      struct times *times)
{
    struct group g = {.instance = n, .items = items, .count = count, .rows = rows};
    uint64_t begin = now(), end = begin;
    n->group = &g;
    TritonError *error = run_group(&g, &begin, &end);
    n->group = NULL;
    if (!times->compute_start)
        times->compute_start = begin;
    times->compute_end = end;
    if (!error) {
        times->rows += rows;
        return;
    }
    migraphx_cancellation_reset(n->cancellation);
    if (count == 1) {
        item_fail(items[0], error);
        return;
    }
    TRITONSERVER_ErrorDelete(error); // one of them is to blame
    for (size_t i = 0; i < count; i++)
        run_items(n, &items[i], 1, items[i]->rows, times);
}

// All items from `first` on that agree with it; they are marked.
static size_t collect(const struct model *m, struct item *items, size_t first, size_t count,
                      struct item **out, size_t *rows)
{
    size_t taken = 0;
    *rows = 0;
    for (size_t i = first; i < count; i++) {
        struct item *t = &items[i];
        if (t->done ||
            (taken && (!m->most || *rows + t->rows > m->most || !item_agrees(m, &items[first], t))))
            continue;
        t->done = true;
        *rows += t->rows;
        out[taken++] = t;
    }
    return taken;
}

static void run_all(struct instance *n, struct item *items, size_t count, struct item **scratch,
                    struct times *times)
{
    for (size_t i = 0; i < count; i++)
        items[i].done = items[i].error;
    for (size_t i = 0; i < count; i++) {
        size_t rows;
        if (items[i].done)
            continue;
        const size_t taken = collect(n->model, items, i, count, scratch, &rows);
        run_items(n, scratch, taken, rows, times);
    }
}

// --- an execution ---

// A response that could not be completed is sent all the same: with what went wrong.
static void finish(struct instance *n, struct item *t, const struct times *times)
{
    const bool good = !t->error;
    if (t->response)
        drop(TRITONBACKEND_ResponseSend(t->response, TRITON_FINAL, t->error));
    if (t->error)
        TRITONSERVER_ErrorDelete(t->error);
    drop(TRITONBACKEND_ModelInstanceReportStatistics(n->handle, t->request, good, times->start,
                                                     times->compute_start, times->compute_end,
                                                     now()));
    drop(TRITONBACKEND_RequestRelease(t->request, TRITON_RELEASE_ALL));
}

static TritonError *make_items(const struct model *m, struct item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        items[i].parts = calloc(m->input_count + 1, sizeof *items[i].parts);
        items[i].wanted = calloc(m->result_count + 1, sizeof *items[i].wanted);
        if (!items[i].parts || !items[i].wanted)
            return no_memory();
    }
    return NULL;
}

static void free_items(struct item *items, size_t count)
{
    for (size_t i = 0; items && i < count; i++) {
        free(items[i].parts);
        free(items[i].wanted);
    }
    free(items);
}

// From here on each request is answered here.
static void execute(struct instance *n, struct item *items, TritonRequest **requests, size_t count,
                    struct item **scratch)
{
    struct times times = {.start = now()};
    for (size_t i = 0; i < count; i++) {
        items[i].request = requests[i];
        item_read(n->model, &items[i]);
    }
    migraphx_cancellation_attach(n->cancellation);
    run_all(n, items, count, scratch, &times);
    migraphx_cancellation_detach(n->cancellation);
    if (!times.compute_start)
        times.compute_start = times.compute_end = now();
    for (size_t i = 0; i < count; i++)
        finish(n, &items[i], &times);
    if (times.rows)
        drop(TRITONBACKEND_ModelInstanceReportBatchStatistics(
            n->handle, times.rows, times.start, times.compute_start, times.compute_end, now()));
}

TritonError *instance_execute(struct instance *n, TritonRequest **requests, uint32_t count)
{
    struct item *items = calloc(count, sizeof *items);
    struct item **scratch = calloc(count, sizeof(struct item *));
    TritonError *error = items && scratch ? make_items(n->model, items, count) : no_memory();
    if (!error)
        execute(n, items, requests, count, scratch);
    free_items(items, count);
    free(scratch);
    return error;
}
