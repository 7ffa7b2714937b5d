// SPDX-License-Identifier: MIT
// Running a compiled program: plainly, with a callback per instruction, with times per instruction,
// with the times of each thread.
//
// All of them are one run with an observer. The observer sees an instruction after it has been
// executed; what MIGRAPHX_TRACE_EVAL asks for is printed by it as well. Without callbacks and
// environment the run has no observer and costs nothing beyond the target's own work.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/api.h"
#include "base/watch.h"

enum { SPANS = 4096 }; // of the threads that help with one instruction

struct observer {
    migraphx_trace_callback_t callback;
    void *data;
    migraphx_status callback_status; // what a failing callback returned
    double *microseconds;            // per instruction of the main module
    size_t size;
    migraphx_span_callback_t tell; // who worked when
    void *tell_data;
    struct mgx_watch watch; // helpers, since the previous instruction ended
    int trace_level;
    double begin, last; // when the run began, and when the previous instruction ended
};

// --- trace information ---

static void trace_info_fini(struct migraphx_trace_info *info)
{
    free(info->name);
    mgx_api_argument_fini(&info->result);
}

static enum mgx_status trace_info_fill(struct migraphx_trace_info *out, size_t index,
                                       const char *name, struct mgx_tensor *take,
                                       struct mgx_diag *diag)
{
    *out = (struct migraphx_trace_info){.index = index};
    TRY(mgx_api_argument_init(&out->result, take, diag));
    out->name = strdup(name);
    if (out->name)
        return MGX_OK;
    trace_info_fini(out);
    return mgx_fail_memory(diag);
}

static enum mgx_status trace_info_copy(struct migraphx_trace_info *out,
                                       const struct migraphx_trace_info *in, struct mgx_diag *diag)
{
    *out = (struct migraphx_trace_info){.index = in->index};
    if (!in->name) // of no instruction yet
        return MGX_OK;
    struct mgx_tensor share = mgx_tensor_share(&in->result.value);
    return trace_info_fill(out, in->index, in->name, &share, diag);
}

API_HANDLE(trace_info)

migraphx_status migraphx_trace_info_create(migraphx_trace_info_t *out)
{
    API_NEED(out);
    API_DIAG(diag);
    struct migraphx_trace_info *info = API_NEW(struct migraphx_trace_info);
    if (!info)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    *out = info;
    return migraphx_status_success;
}

migraphx_status migraphx_trace_info_get_index(size_t *out, const_migraphx_trace_info_t trace_info)
{
    API_NEED(out);
    API_NEED(trace_info);
    *out = trace_info->index;
    return migraphx_status_success;
}

migraphx_status migraphx_trace_info_get_name(const char **out,
                                             const_migraphx_trace_info_t trace_info)
{
    API_NEED(out);
    API_NEED(trace_info);
    *out = trace_info->name ? trace_info->name : "";
    return migraphx_status_success;
}

migraphx_status migraphx_trace_info_get_result(const_migraphx_argument_t *out,
                                               const_migraphx_trace_info_t trace_info)
{
    API_NEED(out);
    API_NEED(trace_info);
    if (!trace_info->name)
        return mgx_api_bad("%s: the information is of no instruction yet", __func__);
    *out = &trace_info->result;
    return migraphx_status_success;
}

// --- the observer ---

static enum mgx_status call_back(struct observer *o, const struct mgx_ins *ins,
                                 const struct mgx_tensor *value, struct mgx_diag *diag)
{
    if (ins->op->name[0] == '@' || strcmp(ins->op->name, "load") == 0 ||
        (!value->data && !value->sub))
        return MGX_OK;
    struct mgx_str name = {0};
    mgx_op_print(&name, ins->op, ins->attr);
    struct mgx_tensor own = {0};
    struct migraphx_trace_info info = {0};
    enum mgx_status status = mgx_tensor_clone(&own, value, diag);
    if (status == MGX_OK)
        status = trace_info_fill(&info, (size_t)ins->index, mgx_str_text(&name), &own, diag);
    mgx_str_fini(&name);
    if (status != MGX_OK)
        return status;
    o->callback_status = o->callback(&info, o->data);
    trace_info_fini(&info);
    if (o->callback_status == migraphx_status_success)
        return MGX_OK;
    return mgx_fail(diag, MGX_INVALID, "the trace callback returned status %d",
                    (int)o->callback_status);
}

// The calling thread was at it from the end of the previous instruction on.
static void tell_spans(struct observer *o, size_t index, double now)
{
    const double begin = o->begin * 1e3;
    o->tell(o->tell_data, index, 0, o->last * 1e3 - begin, now * 1e3 - begin);
    const int count = mgx_watch_count(&o->watch);
    for (int i = 0; i < count; i++) {
        const struct mgx_span *s = &o->watch.spans[i];
        o->tell(o->tell_data, index, (size_t)s->thread, s->begin * 1e6 - begin,
                s->end * 1e6 - begin);
    }
    o->watch.count = 0;
}

static enum mgx_status observe(void *user, const struct mgx_ins *ins,
                               const struct mgx_tensor *value, struct mgx_diag *diag)
{
    struct observer *o = user;
    const double now = mgx_api_milliseconds(), took = now - o->last;
    if (o->microseconds && (size_t)ins->index < o->size)
        o->microseconds[ins->index] +=
            took * 1000; // of all its steps: a result may be copied after
    if (o->tell)
        tell_spans(o, (size_t)ins->index, now);
    if (o->trace_level)
        mgx_api_trace_eval(o->trace_level, ins, value, took);
    const enum mgx_status status = o->callback ? call_back(o, ins, value, diag) : MGX_OK;
    o->last = mgx_api_milliseconds();
    return status;
}

// A device's own clock, instead of the observer's.
static void add_time(void *user, const struct mgx_ins *ins, double microseconds)
{
    struct observer *o = user;
    if (o->microseconds && (size_t)ins->index < o->size)
        o->microseconds[ins->index] += microseconds;
}

// --- runs ---

migraphx_status migraphx_program_set_seed(migraphx_program_t program, uint64_t seed)
{
    API_NEED(program);
    program->manner.seeded = true;
    program->manner.seed = seed;
    return migraphx_status_success;
}

migraphx_status migraphx_program_set_run_memory(migraphx_program_t program, size_t bytes)
{
    API_NEED(program);
    program->manner.limit_bytes = bytes;
    return migraphx_status_success;
}

// Another one for every run: the time, and for runs at the same time the place of the stack.
uint64_t mgx_api_seed(const struct mgx_api_manner *manner)
{
    struct timespec now = {0};
    if (manner->seeded)
        return manner->seed;
    timespec_get(&now, TIME_UTC);
    const uint64_t time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return time ^ ((uint64_t)(uintptr_t)&now << 32);
}

static void watch(struct mgx_run *r, struct observer *o)
{
    o->trace_level = mgx_api_environment()->trace_eval;
    if (o->callback || o->microseconds || o->tell || o->trace_level) {
        r->trace = observe;
        r->trace_user = o;
        o->begin = o->last = mgx_api_milliseconds();
    }
    if ((o->microseconds || o->tell) && !o->trace_level) {
        r->time = add_time;
        r->time_user = o;
    }
}

static enum mgx_status run_proved(const struct mgx_program *p, struct mgx_run *r,
                                  struct mgx_diag *diag)
{
    if (!p->executable)
        TRY(mgx_api_prove(p, diag));
    return mgx_program_run(p, r, diag);
}

static enum mgx_status run(migraphx_arguments_t *out, const struct migraphx_program *program,
                           const struct migraphx_program_parameters *params, void *const *stream,
                           struct observer *o, struct mgx_diag *diag)
{
    const struct mgx_program *p = program->p;
    const int count = mgx_module_result_count(mgx_program_main(p));
    struct mgx_tensor *results = calloc((size_t)count + 1, sizeof *results);
    if (!results)
        return mgx_fail_memory(diag);
    struct mgx_run r = {.params = params->v,
                        .param_count = (int)params->count,
                        .results = results,
                        .result_count = count,
                        .takes_growing = true,
                        .on_stream = stream != NULL,
                        .stream = stream ? *stream : NULL,
                        .seed = mgx_api_seed(&program->manner),
                        .limit_bytes = program->manner.limit_bytes};
    watch(&r, o);
    enum mgx_status status = run_proved(p, &r, diag);
    if (status == MGX_OK)
        status = mgx_api_arguments_new(out, results, (size_t)count, diag);
    free(results);
    return status;
}

migraphx_status migraphx_program_run(migraphx_arguments_t *out, migraphx_program_t program,
                                     migraphx_program_parameters_t params)
{
    API_NEED(out);
    API_NEED(program);
    API_NEED(params);
    API_DIAG(diag);
    struct observer nobody = {0};
    return mgx_api_leave(run(out, program, params, NULL, &nobody, &diag), &diag);
}

migraphx_status migraphx_program_run_async(migraphx_arguments_t *out, migraphx_program_t program,
                                           migraphx_program_parameters_t params, void *s,
                                           const char *name)
{
    API_NEED(out);
    API_NEED(program);
    API_NEED(params);
    API_NEED(name);
    API_DIAG(diag);
    struct observer nobody = {0};
    return mgx_api_leave(run(out, program, params, &s, &nobody, &diag), &diag);
}

migraphx_status migraphx_program_run_trace(migraphx_arguments_t *out, migraphx_program_t program,
                                           migraphx_program_parameters_t params,
                                           migraphx_trace_callback_t callback, void *data)
{
    API_NEED(out);
    API_NEED(program);
    API_NEED(params);
    API_NEED(callback);
    API_DIAG(diag);
    struct observer o = {.callback = callback, .data = data};
    const migraphx_status status = mgx_api_leave(run(out, program, params, NULL, &o, &diag), &diag);
    return o.callback_status != migraphx_status_success ? o.callback_status : status;
}

migraphx_status migraphx_program_run_profile(migraphx_arguments_t *out, migraphx_program_t program,
                                             migraphx_program_parameters_t params,
                                             double *microseconds, size_t size)
{
    API_NEED(out);
    API_NEED(program);
    API_NEED(params);
    API_NEED(microseconds);
    API_DIAG(diag);
    memset(microseconds, 0, size * sizeof *microseconds);
    struct observer o = {.microseconds = microseconds, .size = size};
    return mgx_api_leave(run(out, program, params, NULL, &o, &diag), &diag);
}

enum mgx_status mgx_api_run_told(const struct mgx_program *p, struct mgx_run *r,
                                 migraphx_span_callback_t tell, void *data, struct mgx_diag *diag)
{
    struct observer o = {.tell = tell, .tell_data = data};
    if (!tell)
        return run_proved(p, r, diag);
    struct mgx_span *spans = calloc(SPANS, sizeof *spans);
    if (!spans)
        return mgx_fail_memory(diag);
    o.watch = (struct mgx_watch){.spans = spans, .room = SPANS};
    struct mgx_watch *outer = mgx_watch_attached(); // of a run that this is a callback of
    mgx_watch_attach(&o.watch);
    watch(r, &o);
    const enum mgx_status status = run_proved(p, r, diag);
    mgx_watch_attach(outer);
    free(spans);
    return status;
}

migraphx_status migraphx_program_run_spans(migraphx_arguments_t *out, migraphx_program_t program,
                                           migraphx_program_parameters_t params,
                                           migraphx_span_callback_t callback, void *data)
{
    API_NEED(out);
    API_NEED(program);
    API_NEED(params);
    API_NEED(callback);
    API_DIAG(diag);
    struct mgx_span *spans = calloc(SPANS, sizeof *spans);
    if (!spans)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    struct observer o = {
        .tell = callback, .tell_data = data, .watch = {.spans = spans, .room = SPANS}};
    struct mgx_watch *outer = mgx_watch_attached(); // of a run that this is a callback of
    mgx_watch_attach(&o.watch);
    const enum mgx_status status = run(out, program, params, NULL, &o, &diag);
    mgx_watch_attach(outer);
    free(spans);
    return mgx_api_leave(status, &diag);
}

// --- the context of a compiled program ---

// A host has nothing to wait for and no queue: one context serves all.
struct migraphx_context {
    void *queue;
};

static const struct migraphx_context host = {NULL};

migraphx_context_t mgx_api_host_context(void)
{
    return (migraphx_context_t)&host;
}

migraphx_status migraphx_program_experimental_get_context(migraphx_context_t *out,
                                                          const_migraphx_program_t program)
{
    API_NEED(out);
    API_NEED(program);
    if (!program->p->executable)
        return mgx_api_bad("%s: the program is not compiled", __func__);
    *out = mgx_api_host_context();
    return migraphx_status_success;
}

migraphx_status migraphx_context_finish(const_migraphx_context_t context)
{
    API_NEED(context);
    return migraphx_status_success;
}

migraphx_status migraphx_context_get_queue(void **out, migraphx_context_t context)
{
    API_NEED(out);
    API_NEED(context);
    *out = context->queue;
    return migraphx_status_success;
}
