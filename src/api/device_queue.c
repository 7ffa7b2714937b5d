// SPDX-License-Identifier: MIT
// A card's memory by address, and queues: what a host needs whose allocators and streams are its
// own (migraphx/host.h).
//
// Holds: bytes of a card are never touched here but through their memory's own functions.
#include <stdlib.h>

#include "api/api.h"

struct migraphx_device_queue {
    const struct mgx_memory *memory;
    struct mgx_queue *queue;
};

// The processor's memory needs none of this.
static enum mgx_status require_card(const char *device, const struct mgx_memory **out,
                                    struct mgx_diag *diag)
{
    TRY(mgx_api_find_memory(device, out, diag));
    return *out ? MGX_OK : mgx_fail(diag, MGX_INVALID, "\"%s\" is no card", device);
}

migraphx_status migraphx_device_memory_allocate(void **out, size_t size, const char *device)
{
    API_NEED(out);
    API_DIAG(diag);
    const struct mgx_memory *memory = NULL;
    enum mgx_status status = require_card(device, &memory, &diag);
    if (status == MGX_OK && !(*out = memory->allocate(memory, size ? size : 1)))
        status =
            mgx_fail(&diag, MGX_NO_MEMORY, "out of memory: %zu bytes of %s", size, memory->name);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_device_memory_free(void *address, const char *device)
{
    API_NEED(address);
    API_DIAG(diag);
    const struct mgx_memory *memory = NULL;
    const enum mgx_status status = require_card(device, &memory, &diag);
    if (status == MGX_OK)
        memory->free(memory, address);
    return mgx_api_leave(status, &diag);
}

static enum mgx_status create(struct migraphx_device_queue *q, const char *device,
                              struct mgx_diag *diag)
{
    TRY(require_card(device, &q->memory, diag));
    q->queue = q->memory->queue_create(q->memory);
    return q->queue
               ? MGX_OK
               : mgx_fail(diag, MGX_NO_MEMORY, "out of memory: a queue of %s", q->memory->name);
}

migraphx_status migraphx_device_queue_create(migraphx_device_queue_t *out, const char *device)
{
    API_NEED(out);
    API_DIAG(diag);
    struct migraphx_device_queue *q = API_NEW(struct migraphx_device_queue);
    const enum mgx_status status = q ? create(q, device, &diag) : mgx_fail_memory(&diag);
    if (status == MGX_OK)
        *out = q;
    else
        free(q);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_device_queue_destroy(migraphx_device_queue_t queue)
{
    if (queue)
        queue->memory->queue_destroy(queue->queue);
    free(queue);
    return migraphx_status_success;
}

migraphx_status migraphx_device_queue_stream(void **out, migraphx_device_queue_t queue)
{
    API_NEED(out);
    API_NEED(queue);
    *out = queue->memory->stream(queue->queue);
    return migraphx_status_success;
}

static enum mgx_status copy(const struct migraphx_device_queue *q, void *to, const void *from,
                            size_t size, migraphx_copy_t way, struct mgx_diag *diag)
{
    switch (way) {
    case migraphx_copy_within:
        return q->memory->copy(q->queue, to, from, size, diag);
    case migraphx_copy_in:
        return q->memory->copy_in(q->queue, to, from, size, diag);
    case migraphx_copy_out:
        return q->memory->copy_out(q->queue, to, from, size, diag);
    }
    return mgx_fail(diag, MGX_INVALID, "%d is no way of a copy", (int)way);
}

migraphx_status migraphx_device_queue_copy(migraphx_device_queue_t queue, void *to,
                                           const void *from, size_t size, migraphx_copy_t way)
{
    API_NEED(queue);
    if (!size)
        return migraphx_status_success;
    API_NEED(to);
    API_NEED(from);
    API_DIAG(diag);
    return mgx_api_leave(copy(queue, to, from, size, way, &diag), &diag);
}

migraphx_status migraphx_device_queue_wait(migraphx_device_queue_t queue)
{
    API_NEED(queue);
    API_DIAG(diag);
    return mgx_api_leave(queue->memory->wait(queue->queue, &diag), &diag);
}
