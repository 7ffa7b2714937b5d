// SPDX-License-Identifier: MIT
// Copies across memories for whoever has no queue of his own: blocking, on a queue made for the
// call. From one memory to another they pass through the host. See memory.h.
#include "ir/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static enum mgx_status copy_with_host(const struct mgx_memory *memory, bool in, void *to,
                                      const void *from, size_t bytes, struct mgx_diag *diag)
{
    assert(memory->queue_create && memory->wait && bytes);
    if (memory->settle) // whatever writes or reads there is done
        TRY(memory->settle(memory, diag));
    struct mgx_queue *queue = memory->queue_create(memory);
    if (!queue)
        return mgx_fail(diag, MGX_NO_MEMORY, "out of memory: a queue of %s", memory->name);
    enum mgx_status status = in ? memory->copy_in(queue, to, from, bytes, diag)
                                : memory->copy_out(queue, to, from, bytes, diag);
    if (status == MGX_OK)
        status = memory->wait(queue, diag);
    memory->queue_destroy(queue);
    return status;
}

enum mgx_status mgx_memory_copy(const struct mgx_memory *to_memory, void *to,
                                const struct mgx_memory *from_memory, const void *from,
                                size_t bytes, struct mgx_diag *diag)
{
    if (!bytes)
        return MGX_OK;
    if (!to_memory && !from_memory) {
        memmove(to, from, bytes);
        return MGX_OK;
    }
    if (!from_memory)
        return copy_with_host(to_memory, true, to, from, bytes, diag);
    if (!to_memory)
        return copy_with_host(from_memory, false, to, from, bytes, diag);
    assert(to && from);
    void *between = malloc(bytes);
    if (!between)
        return mgx_fail_memory(diag);
    enum mgx_status status = copy_with_host(from_memory, false, between, from, bytes, diag);
    if (status == MGX_OK)
        status = copy_with_host(to_memory, true, to, between, bytes, diag);
    free(between);
    return status;
}
