// SPDX-License-Identifier: MIT
// A card's memory and queues as ir/memory.h wants them. A queue is a stream of its own.
//
// The object is made once per card and kept to the end of the process, with its share in the card:
// a result may outlive the program, and its storage points here.
#include <pthread.h>
#include <stdlib.h>

#include "targets/gpu/machine/machine.h"

struct mgx_queue {
    struct gpu_device *device;
    void *stream;
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
    if (q->device->api->stream_create(q->device, &q->stream, &quiet) == MGX_OK)
        return q;
    free(q);
    return NULL;
}

static void queue_destroy(struct mgx_queue *q)
{
    struct mgx_diag quiet = {.status = MGX_OK};
    if (!q)
        return;
    (void)!q->device->api->stream_wait(q->device, q->stream, &quiet);
    q->device->api->stream_destroy(q->device, q->stream);
    free(q);
}

static enum mgx_status copy_in(struct mgx_queue *q, void *to, const void *from, size_t bytes,
                               struct mgx_diag *diag)
{
    return q->device->api->copy_in(q->device, q->stream, to, from, bytes, diag);
}

static enum mgx_status copy_out(struct mgx_queue *q, void *to, const void *from, size_t bytes,
                                struct mgx_diag *diag)
{
    return q->device->api->copy_out(q->device, q->stream, to, from, bytes, diag);
}

static enum mgx_status wait(struct mgx_queue *q, struct mgx_diag *diag)
{
    return q->device->api->stream_wait(q->device, q->stream, diag);
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
                                                        .wait = wait},
                                               .device = device};
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

static enum mgx_status record_begin(struct mgx_queue *q, struct mgx_diag *diag)
{
    return q->device->api->capture_begin(q->device, q->stream, diag);
}

static enum mgx_status record_end(struct mgx_queue *q, void **graph, struct mgx_diag *diag)
{
    return q->device->api->capture_end(q->device, q->stream, graph, diag);
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
