// SPDX-License-Identifier: MIT
// A card's memory and queues as ir/memory.h wants them. A queue is a stream of its own, which gives
// its work to a caller's stream for the length of a run where that is asked for. What a run leaves
// there unfinished is marked by an event, and all that the queue does later follows the event: so
// bytes that belong to the queue are never in use twice, whatever streams they come by.
//
// The object is made once per card and kept to the end of the process, with its share in the card:
// a result may outlive the program, and its storage points here.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "targets/gpu/machine/machine.h"
#include "targets/gpu/machine/stage.h"

struct mgx_queue {
    struct gpu_device *device;
    void *stream; // where work goes: its own, or a caller's
    void *own;
    void *playing; // what `stream` is, while work is recorded on its own
    void *mark;    // event behind what was left on a caller's stream; NULL before the first
    bool left;     // mark is recorded, and nothing has followed it on the queue's own stream
    struct gpu_stage stage;
};

static void *allocate(const struct mgx_memory *m, size_t bytes)
{
    struct gpu_device *d = ((const struct gpu_memory *)m)->device;
    struct mgx_diag quiet = {.status = MGX_OK};
    void *address;
    return d->api->alloc(d, bytes, &address, &quiet) == MGX_OK ? address : NULL;
}

static void release(const struct mgx_memory *m, void *address)
{
    struct gpu_device *d = ((const struct gpu_memory *)m)->device;
    d->api->free(d, address);
}

static struct mgx_queue *queue_create(const struct mgx_memory *m)
{
    struct mgx_queue *q = calloc(1, sizeof *q);
    struct mgx_diag quiet = {.status = MGX_OK};
    if (!q)
        return NULL;
    q->device = ((const struct gpu_memory *)m)->device;
    if (q->device->api->stream_create(q->device, &q->own, &quiet) == MGX_OK) {
        q->stream = q->own;
        return q;
    }
    free(q);
    return NULL;
}

static enum mgx_status enter(struct mgx_queue *q, bool own, void *stream, struct mgx_diag *diag)
{
    const struct gpu_api *api = q->device->api;
    q->stream = own || (!stream && !api->default_stream) ? q->own : stream;
    if (!q->left)
        return MGX_OK;
    TRY(api->event_follow(q->device, q->stream, q->mark, diag));
    q->left = q->stream != q->own; // another stream may still be at it
    return MGX_OK;
}

static enum mgx_status put_mark(struct mgx_queue *q, void **mark, struct mgx_diag *diag)
{
    const struct gpu_api *api = q->device->api;
    if (!*mark)
        TRY(api->event_create(q->device, mark, diag));
    return api->event_record(q->device, *mark, q->stream, diag);
}

static enum mgx_status leave(struct mgx_queue *q, struct mgx_diag *diag)
{
    TRY(gpu_stage_settle(&q->stage, q->device, diag));
    TRY(put_mark(q, &q->mark, diag));
    q->left = true;
    return MGX_OK;
}

static void queue_destroy(struct mgx_queue *q)
{
    struct mgx_diag quiet = {.status = MGX_OK};
    if (!q)
        return;
    const struct gpu_api *api = q->device->api;
    if (enter(q, true, NULL, &quiet) == MGX_OK)
        (void)!api->stream_wait(q->device, q->own, &quiet);
    gpu_stage_fini(&q->stage, q->device);
    api->event_destroy(q->device, q->mark);
    api->stream_destroy(q->device, q->own);
    free(q);
}

static enum mgx_status elapsed(struct mgx_queue *q, void *from, void *to, double *microseconds,
                               struct mgx_diag *diag)
{
    float ms = 0;
    TRY(q->device->api->event_elapsed(q->device, from, to, &ms, diag));
    *microseconds = 1e3 * (double)ms;
    return MGX_OK;
}

static void unmark(struct mgx_queue *q, void *mark)
{
    if (mark)
        q->device->api->event_destroy(q->device, mark);
}

static bool holds(const struct mgx_memory *m, const void *address)
{
    struct gpu_device *d = ((const struct gpu_memory *)m)->device;
    return d->api->holds(d, address);
}

static enum mgx_status settle(const struct mgx_memory *m, struct mgx_diag *diag)
{
    struct gpu_device *d = ((const struct gpu_memory *)m)->device;
    return d->api->settle(d, diag);
}

static enum mgx_status copy_in(struct mgx_queue *q, void *to, const void *from, size_t bytes,
                               struct mgx_diag *diag)
{
    if (gpu_stage_takes(&q->stage, q->device, from, bytes))
        return gpu_stage_in(&q->stage, q->device, q->stream, to, from, bytes, diag);
    return q->device->api->copy_in(q->device, q->stream, to, from, bytes, diag);
}

static enum mgx_status copy_out(struct mgx_queue *q, void *to, const void *from, size_t bytes,
                                struct mgx_diag *diag)
{
    if (gpu_stage_takes(&q->stage, q->device, to, bytes))
        return gpu_stage_out(&q->stage, q->device, q->stream, to, from, bytes, diag);
    return q->device->api->copy_out(q->device, q->stream, to, from, bytes, diag);
}

static enum mgx_status copy(struct mgx_queue *q, void *to, const void *from, size_t bytes,
                            struct mgx_diag *diag)
{
    return q->device->api->copy(q->device, q->stream, to, from, bytes, diag);
}

static enum mgx_status fill(struct mgx_queue *q, void *to, unsigned char byte, size_t bytes,
                            struct mgx_diag *diag)
{
    return q->device->api->fill(q->device, q->stream, to, byte, bytes, diag);
}

static enum mgx_status wait(struct mgx_queue *q, struct mgx_diag *diag)
{
    struct mgx_diag quiet = {.status = MGX_OK};
    const enum mgx_status status = gpu_stage_settle(&q->stage, q->device, diag);
    // Nothing is under way afterwards, whatever went wrong.
    const enum mgx_status waited =
        q->device->api->stream_wait(q->device, q->stream, status == MGX_OK ? diag : &quiet);
    return status == MGX_OK ? waited : status;
}

static void help(struct mgx_queue *q, const struct mgx_memory_help *by)
{
    q->stage.help = *by;
}

void *gpu_queue_stream(struct mgx_queue *q)
{
    return q->stream;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpu_memory *memories[64];

struct gpu_memory *gpu_memory_of(struct gpu_device *device)
{
    struct gpu_memory *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 64 && !found; i++) {
        if (!memories[i] && (memories[i] = calloc(1, sizeof *memories[i]))) {
            device->users++; // for good
            *memories[i] = (struct gpu_memory){.base = {.name = device->properties.name,
                                                        .allocate = allocate,
                                                        .free = release,
                                                        .queue_create = queue_create,
                                                        .queue_destroy = queue_destroy,
                                                        .copy_in = copy_in,
                                                        .copy_out = copy_out,
                                                        .copy = copy,
                                                        .fill = fill,
                                                        .wait = wait,
                                                        .enter = enter,
                                                        .leave = leave,
                                                        .stream = gpu_queue_stream,
                                                        .holds = holds,
                                                        .mark = put_mark,
                                                        .elapsed = elapsed,
                                                        .unmark = unmark,
                                                        .help = help,
                                                        .settle = settle},
                                               .device = device};
            snprintf(memories[i]->name, sizeof memories[i]->name, "%s:%d", device->api->name,
                     device->index);
            memories[i]->base.device = memories[i]->name;
        }
        if (memories[i] && memories[i]->device == device)
            found = memories[i];
        else if (!memories[i])
            break;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

// --- recordings ---

// On the queue's own stream: a driver's default one cannot be recorded.
static enum mgx_status record_begin(struct mgx_queue *q, struct mgx_diag *diag)
{
    q->playing = q->stream;
    q->stream = q->own;
    const enum mgx_status status = q->device->api->capture_begin(q->device, q->own, diag);
    if (status != MGX_OK)
        q->stream = q->playing;
    return status;
}

static enum mgx_status record_end(struct mgx_queue *q, void **graph, struct mgx_diag *diag)
{
    q->stream = q->playing;
    return q->device->api->capture_end(q->device, q->own, graph, diag);
}

static enum mgx_status record_play(struct mgx_queue *q, void *graph, struct mgx_diag *diag)
{
    return q->device->api->graph_launch(q->device, graph, q->stream, diag);
}

static void record_drop(const struct mgx_plan_machine *machine, void *graph)
{
    struct gpu_device *d = gpu_machine(machine)->device;
    d->api->graph_destroy(d, graph);
}

const struct mgx_plan_recorder gpu_recorder = {record_begin, record_end, record_play, record_drop};
