// SPDX-License-Identifier: MIT
// Steps of the engine in the host's profile: an event for every instruction and every thread that was
// at it.
//
// The host tells which of its events begin and end on a thread; what runs between belongs to that
// profiler, so runs that are profiled and others may go on side by side. Events are kept until the
// host asks for them. Runs that nobody profiles pay one look at a variable of their thread.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fused.h"

struct event {
    const char *name, *op; // of a table
    int64_t begin, end;    // nanoseconds of the clock
    int32_t thread;
};

struct table { // texts of a program's instructions; they outlive it
    struct table *next;
    const struct fused *of;
    size_t count;
    char **names, **ops;
};

struct profiler {
    OrtEpProfilerImpl base;
    const struct host *host;
    const char *provider;
    pthread_mutex_t lock;
    int64_t start, offset; // of the clock, and of the host's beside it
    struct event *events;
    size_t count, room;
    struct table *tables;
};

struct current { // of a thread: the profiler of the host's events that it is in
    struct profiler *profiler;
    int depth;
};

static _Thread_local struct current current;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// --- names ---

static void table_destroy(struct table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->names ? t->names[i] : NULL);
        free(t->ops ? t->ops[i] : NULL);
    }
    free(t->names);
    free(t->ops);
    free(t);
}

// The nodes of the model that it came from, and its operator.
static void name_one(struct table *t, size_t i, migraphx_instructions_t list)
{
    migraphx_instruction_t instruction = NULL;
    const char *op = NULL;
    char *nodes = NULL;
    if (migraphx_instructions_get(&instruction, list, i))
        return;
    if (!migraphx_instruction_name(&op, instruction))
        t->ops[i] = strdup(op);
    if (!migraphx_instruction_nodes(&nodes, instruction))
        t->names[i] = strdup(*nodes || !op ? nodes : op);
    migraphx_string_destroy(nodes);
    migraphx_instruction_destroy(instruction);
}

static struct table *table_create(const struct fused *f)
{
    struct table *t = NEWLY(struct table);
    migraphx_module_t main = NULL;
    migraphx_instructions_t list = NULL;
    size_t count = 0;
    if (!t || migraphx_program_get_main_module(&main, f->program) ||
        migraphx_module_instructions(&list, main) || migraphx_instructions_size(&count, list)) {
        free(t);
        return NULL;
    }
    t->of = f;
    t->names = calloc(count + 1, sizeof *t->names);
    t->ops = calloc(count + 1, sizeof *t->ops);
    t->count = t->names && t->ops ? count : 0;
    for (size_t i = 0; i < t->count; i++)
        name_one(t, i, list);
    migraphx_instructions_destroy(list);
    return t;
}

static const struct table *table_of(struct profiler *p, const struct fused *f)
{
    pthread_mutex_lock(&p->lock);
    struct table *t = p->tables;
    while (t && t->of != f)
        t = t->next;
    if (!t && (t = table_create(f))) {
        t->next = p->tables;
        p->tables = t;
    }
    pthread_mutex_unlock(&p->lock);
    return t;
}

// --- a run ---

struct telling {
    struct profiler *profiler;
    const struct table *table;
    int64_t begin;
    int32_t thread;
};

static void add_event(struct profiler *p, const struct event *e)
{
    pthread_mutex_lock(&p->lock);
    if (p->count == p->room) {
        const size_t more = p->room ? 2 * p->room : 256;
        struct event *grown = realloc(p->events, more * sizeof *grown);
        p->room = grown ? more : p->room;
        p->events = grown ? grown : p->events;
    }
    if (p->count < p->room) // else it is lost
        p->events[p->count++] = *e;
    pthread_mutex_unlock(&p->lock);
}

static void tell(void *data, size_t instruction, size_t thread, double begin, double end)
{
    const struct telling *t = data;
    if (instruction >= t->table->count || !t->table->names[instruction])
        return;
    const struct event e = {.name = t->table->names[instruction],
                            .op = t->table->ops[instruction],
                            .begin = t->begin + (int64_t)(begin * 1e3),
                            .end = t->begin + (int64_t)(end * 1e3),
                            .thread = thread ? (int32_t)thread : t->thread};
    add_event(t->profiler, &e);
}

bool profiler_run(const struct fused *f, migraphx_arguments_t *out, const migraphx_buffer *params,
                  size_t count, migraphx_place_callback_t place, void *data,
                  migraphx_status *status)
{
    struct profiler *p = current.profiler;
    const struct table *table = p ? table_of(p, f) : NULL;
    if (!table)
        return false;
    struct telling t = {p, table, now(), (int32_t)syscall(SYS_gettid)};
    *status =
        migraphx_program_run_buffers_spans(out, f->program, params, count, place, data, tell, &t);
    return true;
}

// --- the host's calls ---

static OrtStatus *start_profiling(OrtEpProfilerImpl *base, int64_t offset_ns)
{
    struct profiler *p = (struct profiler *)base;
    p->start = now();
    p->offset = offset_ns;
    return NULL;
}

static OrtStatus *start_event(OrtEpProfilerImpl *base, uint64_t id)
{
    (void)id;
    struct profiler *p = (struct profiler *)base;
    current.depth = current.profiler == p ? current.depth + 1 : 1;
    current.profiler = p;
    return NULL;
}

static OrtStatus *stop_event(OrtEpProfilerImpl *base, uint64_t id, const OrtProfilingEvent *event)
{
    (void)id;
    (void)event;
    if (current.profiler == (struct profiler *)base && --current.depth == 0)
        current.profiler = NULL;
    return NULL;
}

static OrtStatus *hand_out(struct profiler *p, const struct event *e,
                           OrtProfilingEventsContainer *to)
{
    static const char *const keys[] = {"op_name", "provider"};
    const char *const values[] = {e->op ? e->op : "", p->provider};
    OrtProfilingEvent *event = NULL;
    HOST_TRY(p->host->CreateProfilingEvent(ORT_EVENT_KERNEL, (int32_t)getpid(), e->thread, e->name,
                                           (p->offset + (e->begin - p->start)) / 1000,
                                           (e->end - e->begin) / 1000, keys, values, 2, &event));
    const OrtProfilingEvent *const list[] = {event};
    OrtStatus *status = p->host->ProfilingEventsContainer_AddEvents(to, list, 1);
    p->host->ReleaseProfilingEvent(event);
    return status;
}

static OrtStatus *end_profiling(OrtEpProfilerImpl *base, OrtProfilingEventsContainer *to)
{
    struct profiler *p = (struct profiler *)base;
    OrtStatus *status = NULL;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->count && !status; i++)
        status = hand_out(p, &p->events[i], to);
    p->count = 0;
    pthread_mutex_unlock(&p->lock);
    return status;
}

static void release(OrtEpProfilerImpl *base)
{
    struct profiler *p = (struct profiler *)base;
    if (current.profiler == p)
        current = (struct current){0};
    for (struct table *t = p->tables, *next; t; t = next) {
        next = t->next;
        table_destroy(t);
    }
    pthread_mutex_destroy(&p->lock);
    free(p->events);
    free(p);
}

OrtStatus *profiler_create(OrtEp *base, OrtEpProfilerImpl **out)
{
    const struct provider *ep = (const struct provider *)base;
    struct profiler *p = NEWLY(struct profiler);
    if (!p)
        return host_no_memory(ep->host);
    p->base = (OrtEpProfilerImpl){.ort_version_supported = ep->host->version,
                                  .Release = release,
                                  .StartProfiling = start_profiling,
                                  .StartEvent = start_event,
                                  .StopEvent = stop_event,
                                  .EndProfiling = end_profiling};
    p->host = ep->host;
    p->provider = ep->name;
    pthread_mutex_init(&p->lock, NULL);
    *out = &p->base;
    return NULL;
}
