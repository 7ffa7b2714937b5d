// SPDX-License-Identifier: MIT
// See stage.h. Slots are used in turn, so the next one is always the oldest.
#include "targets/gpu/machine/stage.h"

#include <assert.h>
#include <string.h>

enum { TASK = 256 << 10 }; // bytes that a thread copies at a time

static bool make_room(struct gpu_stage *stage, struct gpu_device *d)
{
    struct mgx_diag quiet = {.status = MGX_OK};
    void *room = NULL;
    if (!stage->room && !stage->refused) {
        const size_t bytes = (size_t)GPU_STAGE_SLOTS * GPU_STAGE_PIECE;
        stage->refused = d->api->alloc_host(d, bytes, &room, &quiet) != MGX_OK;
        stage->room = room;
    }
    return stage->room;
}

bool gpu_stage_takes(struct gpu_stage *stage, struct gpu_device *d, const void *host, size_t bytes)
{
    return stage->help.spread && d->api->pinned && bytes >= GPU_STAGE_LEAST &&
           !d->api->pinned(d, host) && make_room(stage, d);
}

struct bytes {
    unsigned char *to;
    const unsigned char *from;
    size_t count;
};

static void copy_task(void *user, int task, int thread)
{
    const struct bytes *b = user;
    const size_t first = (size_t)task * TASK, rest = b->count - first;
    (void)thread;
    memcpy(b->to + first, b->from + first, rest < TASK ? rest : TASK);
}

static void copy(const struct gpu_stage *stage, void *to, const void *from, size_t count)
{
    struct bytes b = {to, from, count};
    const int tasks = (int)((count + TASK - 1) / TASK);
    if (tasks > 1)
        stage->help.spread(stage->help.who, tasks, copy_task, &b);
    else
        memcpy(to, from, count);
}

static unsigned char *place(const struct gpu_stage *stage, const struct gpu_stage_slot *slot)
{
    return stage->room + (size_t)(slot - stage->slots) * GPU_STAGE_PIECE;
}

// The card is done with the slot, and what it brought is where it goes.
static enum mgx_status empty(struct gpu_stage *stage, struct gpu_device *d,
                             struct gpu_stage_slot *slot, struct mgx_diag *diag)
{
    void *const to = slot->to;
    slot->to = NULL;
    if (slot->busy)
        TRY(d->api->event_wait(d, slot->event, diag));
    slot->busy = false;
    if (to)
        copy(stage, to, place(stage, slot), slot->bytes);
    return MGX_OK;
}

static enum mgx_status take(struct gpu_stage *stage, struct gpu_device *d,
                            struct gpu_stage_slot **out, struct mgx_diag *diag)
{
    struct gpu_stage_slot *slot = &stage->slots[stage->next];
    TRY(empty(stage, d, slot, diag));
    if (!slot->event)
        TRY(d->api->event_create(d, &slot->event, diag));
    stage->next = (stage->next + 1) % GPU_STAGE_SLOTS;
    *out = slot;
    return MGX_OK;
}

static size_t piece(size_t done, size_t bytes)
{
    return bytes - done < GPU_STAGE_PIECE ? bytes - done : GPU_STAGE_PIECE;
}

enum mgx_status gpu_stage_in(struct gpu_stage *stage, struct gpu_device *d, void *stream, void *to,
                             const void *host, size_t bytes, struct mgx_diag *diag)
{
    struct gpu_stage_slot *slot;
    for (size_t done = 0; done < bytes; done += GPU_STAGE_PIECE) {
        const size_t count = piece(done, bytes);
        TRY(take(stage, d, &slot, diag));
        copy(stage, place(stage, slot), (const char *)host + done, count);
        slot->busy = true; // also when the record fails: nobody knows then
        TRY(d->api->copy_in(d, stream, (char *)to + done, place(stage, slot), count, diag));
        TRY(d->api->event_record(d, slot->event, stream, diag));
    }
    return MGX_OK;
}

enum mgx_status gpu_stage_out(struct gpu_stage *stage, struct gpu_device *d, void *stream,
                              void *host, const void *from, size_t bytes, struct mgx_diag *diag)
{
    struct gpu_stage_slot *slot;
    for (size_t done = 0; done < bytes; done += GPU_STAGE_PIECE) {
        TRY(take(stage, d, &slot, diag));
        slot->bytes = piece(done, bytes);
        slot->busy = true;
        TRY(d->api->copy_out(d, stream, place(stage, slot), (const char *)from + done, slot->bytes,
                             diag));
        TRY(d->api->event_record(d, slot->event, stream, diag));
        slot->to = (char *)host + done;
    }
    return MGX_OK;
}

enum mgx_status gpu_stage_settle(struct gpu_stage *stage, struct gpu_device *d,
                                 struct mgx_diag *diag)
{
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < GPU_STAGE_SLOTS; i++) {
        struct gpu_stage_slot *slot = &stage->slots[(stage->next + i) % GPU_STAGE_SLOTS];
        if (slot->to && status == MGX_OK)
            status = empty(stage, d, slot, diag);
        slot->to = NULL;
    }
    return status;
}

void gpu_stage_fini(struct gpu_stage *stage, struct gpu_device *d)
{
    for (int i = 0; i < GPU_STAGE_SLOTS; i++)
        if (stage->slots[i].event)
            d->api->event_destroy(d, stage->slots[i].event);
    if (stage->room)
        d->api->free_host(d, stage->room);
}
