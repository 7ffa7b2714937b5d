// SPDX-License-Identifier: MIT
// What a run of a compiled program takes, on inputs made up where it reads them.
//
//     on the host    the least of a few runs
//     on a card      groups of runs in a row on one queue, by the card's clock, and one wait; the
//                    median of the groups. The queue has copies to do first, which take the card
//                    longer than the host takes for the launches behind them: so the time between
//                    the two marks is the card's alone, and a launch costs nobody anything.
//
// Cost: some milliseconds, and on a card 64 MiB of it meanwhile.
#include <stdlib.h>

#include "api/quantize.h"
#include "base/clock.h"

enum { PARAMS = 8, RESULTS = 2 };

struct timed {
    const struct mgx_program *program;
    struct mgx_named_tensor params[PARAMS];
    struct mgx_tensor results[RESULTS];
    struct mgx_run run;
};

static enum mgx_status run_once(struct timed *t, struct mgx_diag *diag)
{
    TRY(mgx_program_run(t->program, &t->run, diag));
    for (int k = 0; k < t->run.result_count; k++)
        mgx_tensor_release(&t->results[k]);
    return MGX_OK;
}

// --- on the host ---

static enum mgx_status least_of_runs(struct timed *t, double *seconds, struct mgx_diag *diag)
{
    enum { LEAST = 4, MOST = 100 };
    const double budget = 0.01, begin = mgx_clock_seconds();
    *seconds = 1e30;
    for (int i = 0; i < MOST && (i < LEAST || mgx_clock_seconds() - begin < budget); i++) {
        const double start = mgx_clock_seconds();
        TRY(run_once(t, diag));
        const double took = mgx_clock_seconds() - start;
        *seconds = took < *seconds ? took : *seconds;
    }
    return MGX_OK;
}

// --- on a card ---

enum { GROUPS = 5, WARM = 3, ROUNDS = 20, COPIES = 8 };
static const size_t copied = (size_t)32 << 20; // some 20 us of a card with 3 TB/s

struct card {
    const struct mgx_memory *memory;
    struct mgx_queue *queue;
    void *from, *to; // what is copied; NULL: the card has no room for it
    void *marks[2];
};

static enum mgx_status hold_up(const struct card *c, struct mgx_diag *diag)
{
    for (int i = 0; i < COPIES && c->from && c->to; i++)
        TRY(c->memory->copy(c->queue, c->to, c->from, copied, diag));
    return MGX_OK;
}

static enum mgx_status time_group(struct timed *t, struct card *c, double *seconds,
                                  struct mgx_diag *diag)
{
    double microseconds;
    TRY(hold_up(c, diag));
    TRY(c->memory->mark(c->queue, &c->marks[0], diag));
    for (int i = 0; i < ROUNDS; i++)
        TRY(run_once(t, diag));
    TRY(c->memory->mark(c->queue, &c->marks[1], diag));
    TRY(c->memory->wait(c->queue, diag));
    TRY(c->memory->elapsed(c->queue, c->marks[0], c->marks[1], &microseconds, diag));
    *seconds = microseconds * 1e-6 / ROUNDS;
    return MGX_OK;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static enum mgx_status median_of_groups(struct timed *t, struct card *c, double *seconds,
                                        struct mgx_diag *diag)
{
    double times[GROUPS];
    for (int i = 0; i < WARM; i++) // calls, records and plays
        TRY(run_once(t, diag));
    TRY(c->memory->wait(c->queue, diag));
    for (int i = 0; i < GROUPS; i++)
        TRY(time_group(t, c, &times[i], diag));
    qsort(times, GROUPS, sizeof *times, by_size);
    *seconds = times[GROUPS / 2];
    return MGX_OK;
}

static enum mgx_status time_on_card(struct timed *t, const struct mgx_memory *memory,
                                    double *seconds, struct mgx_diag *diag)
{
    struct card c = {.memory = memory, .queue = memory->queue_create(memory)};
    if (!c.queue)
        return mgx_fail_memory(diag);
    c.from = memory->allocate(memory, copied);
    c.to = memory->allocate(memory, copied);
    t->run.on_stream = true;
    t->run.stream = memory->stream(c.queue);
    const enum mgx_status status = median_of_groups(t, &c, seconds, diag);
    for (int i = 0; i < 2; i++)
        memory->unmark(c.queue, c.marks[i]);
    memory->queue_destroy(c.queue);
    memory->free(memory, c.from);
    memory->free(memory, c.to);
    return status;
}

// --- either ---

static enum mgx_status make_param(const struct mgx_ins *ins, const struct mgx_memory *memory,
                                  struct mgx_named_tensor *out, struct mgx_diag *diag)
{
    struct mgx_tensor host = {0};
    out->name = mgx_parameter_name(ins);
    TRY(mgx_tensor_create(&host, &ins->shape, diag));
    mgx_tensor_generate(&host, (uint64_t)(ins->index + 1));
    if (!memory) {
        out->tensor = host;
        return MGX_OK;
    }
    enum mgx_status status = mgx_tensor_create_on(&out->tensor, &ins->shape, memory, diag);
    if (status == MGX_OK)
        status = mgx_memory_copy(memory, out->tensor.data, NULL, host.data,
                                 mgx_shape_bytes(&ins->shape), diag);
    mgx_tensor_release(&host);
    return status;
}

enum mgx_status mgx_api_time(const struct mgx_program *p, double *seconds, struct mgx_diag *diag)
{
    const struct mgx_memory *memory = p->executable->memory;
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *ins[PARAMS];
    struct timed t = {.program = p};
    t.run = (struct mgx_run){.params = t.params,
                             .param_count = mgx_module_parameters(m, ins, PARAMS),
                             .results = t.results,
                             .result_count = mgx_module_result_count(m)};
    if (t.run.param_count > PARAMS || t.run.result_count > RESULTS)
        return mgx_fail(diag, MGX_LIMIT, "a program of %d parameters and %d results is not timed",
                        t.run.param_count, t.run.result_count);
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < t.run.param_count && status == MGX_OK; i++)
        status = make_param(ins[i], memory, &t.params[i], diag);
    if (status == MGX_OK)
        status = memory && memory->mark && memory->enter ? time_on_card(&t, memory, seconds, diag)
                                                         : least_of_runs(&t, seconds, diag);
    for (int i = 0; i < PARAMS; i++)
        mgx_tensor_release(&t.params[i].tensor);
    return status;
}
