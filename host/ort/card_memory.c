// SPDX-License-Identifier: MIT
// A card's memory as the host wants it: an allocator, and copies between it and the host's.
//
// An allocation of the driver's takes as long as a small run, so blocks that were freed are kept by
// size. Every run and copy is done when the host's call returns, so a block that is freed is in
// nobody's use. Cost: a lock, and a walk over the blocks of the card.
#include <stdlib.h>

#include "card.h"

struct block {
    struct block *next;
    void *address;
    size_t size;
};

// --- blocks ---

// So that sizes that are near each other serve each other: eight steps to the next power of two.
static size_t round_up(size_t size)
{
    size_t step = 256;
    while (size / 8 > step)
        step *= 2;
    return (size + step - 1) / step * step;
}

static struct block *take(struct block **list, const void *address, size_t size)
{
    for (struct block **at = list, *b; (b = *at) != NULL; at = &b->next)
        if (address ? b->address == address : b->size == size) {
            *at = b->next;
            return b;
        }
    return NULL;
}

static void drop_kept(struct card *c, size_t most)
{
    while (c->kept_bytes > most) {
        struct block **last = &c->kept; // the one that was freed longest ago
        while ((*last)->next)
            last = &(*last)->next;
        struct block *b = *last;
        *last = NULL;
        c->kept_bytes -= b->size;
        migraphx_device_memory_free(b->address, c->name);
        free(b);
    }
}

static struct block *make(struct card *c, size_t size)
{
    struct block *b = NEWLY(struct block);
    if (!b)
        return NULL;
    b->size = size;
    migraphx_status status = migraphx_device_memory_allocate(&b->address, size, c->name);
    if (status && c->kept) { // what is kept may be what is lacking
        drop_kept(c, 0);
        status = migraphx_device_memory_allocate(&b->address, size, c->name);
    }
    if (!status)
        return b;
    free(b);
    return NULL;
}

static void *allocate(OrtAllocator *base, size_t size)
{
    struct card *c = (struct card *)base;
    if (!size || size > SIZE_MAX / 2)
        return NULL;
    const size_t rounded = round_up(size);
    pthread_mutex_lock(&c->lock);
    struct block *b = take(&c->kept, NULL, rounded);
    if (b)
        c->kept_bytes -= b->size;
    else
        b = make(c, rounded);
    if (b) {
        b->next = c->used;
        c->used = b;
        c->used_bytes += b->size;
        c->most_bytes = c->used_bytes > c->most_bytes ? c->used_bytes : c->most_bytes;
    }
    pthread_mutex_unlock(&c->lock);
    return b ? b->address : NULL;
}

static void release(OrtAllocator *base, void *address)
{
    struct card *c = (struct card *)base;
    if (!address)
        return;
    pthread_mutex_lock(&c->lock);
    struct block *b = take(&c->used, address, 0);
    if (b) {
        c->used_bytes -= b->size;
        b->next = c->kept;
        c->kept = b;
        c->kept_bytes += b->size;
        drop_kept(c, c->most_bytes);
    }
    pthread_mutex_unlock(&c->lock);
}

static const OrtMemoryInfo *get_info(const OrtAllocator *base)
{
    return ((const struct card *)base)->memory;
}

static OrtStatus *shrink(OrtAllocator *base)
{
    struct card *c = (struct card *)base;
    pthread_mutex_lock(&c->lock);
    drop_kept(c, 0);
    c->most_bytes = c->used_bytes;
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

OrtStatus *card_memory_init(struct card *c, const struct host *h)
{
    c->host = h;
    c->allocator = (OrtAllocator){.version = h->version,
                                  .Alloc = allocate,
                                  .Free = release,
                                  .Info = get_info,
                                  .Reserve = allocate,
                                  .Shrink = shrink};
    pthread_mutex_init(&c->lock, NULL);
    return NULL;
}

void card_memory_fini(struct card *c)
{
    drop_kept(c, 0);
    for (size_t i = 0; i < c->queue_count; i++)
        migraphx_device_queue_destroy(c->queues[i]);
    free(c->queues);
    for (struct block *b = c->used, *next; b; b = next) { // the host's fault, not the card's
        next = b->next;
        migraphx_device_memory_free(b->address, c->name);
        free(b);
    }
    pthread_mutex_destroy(&c->lock);
}

// --- queues ---

static migraphx_status take_queue(struct card *c, migraphx_device_queue_t *out)
{
    *out = NULL;
    pthread_mutex_lock(&c->lock);
    if (c->queue_count)
        *out = c->queues[--c->queue_count];
    pthread_mutex_unlock(&c->lock);
    return *out ? migraphx_status_success : migraphx_device_queue_create(out, c->name);
}

static void give_queue(struct card *c, migraphx_device_queue_t queue)
{
    pthread_mutex_lock(&c->lock);
    if (c->queue_count == c->queue_room) {
        const size_t room = c->queue_room ? 2 * c->queue_room : 4;
        void *grown = realloc(c->queues, room * sizeof(migraphx_device_queue_t));
        if (grown) {
            c->queues = grown;
            c->queue_room = room;
        }
    }
    const bool kept = c->queue_count < c->queue_room;
    if (kept)
        c->queues[c->queue_count++] = queue;
    pthread_mutex_unlock(&c->lock);
    if (!kept)
        migraphx_device_queue_destroy(queue);
}

OrtStatus *card_copy(struct card *c, const struct copy *copies, size_t count)
{
    migraphx_device_queue_t queue;
    OrtStatus *failed = NULL;
    ENGINE_TRY(c->host, "a copy", take_queue(c, &queue));
    for (size_t i = 0; i < count && !failed; i++)
        if (migraphx_device_queue_copy(queue, copies[i].to, copies[i].from, copies[i].size,
                                       copies[i].way))
            failed = host_pass_on(c->host, "a copy");
    if (migraphx_device_queue_wait(queue) && !failed) // what was given is done, whatever failed
        failed = host_pass_on(c->host, "a copy");
    give_queue(c, queue);
    return failed;
}

// --- copies of the host's ---

struct transfer {
    OrtDataTransferImpl base;
    struct cards *cards;
    const struct host *host;
};

// NULL: not of a card here.
static struct card *card_of(const struct transfer *t, const OrtMemoryDevice *device)
{
    for (size_t i = 0; device && i < t->cards->count; i++)
        if (t->host->MemoryDevice_AreEqual(
                device, t->host->MemoryInfo_GetMemoryDevice(t->cards->list[i].memory)))
            return &t->cards->list[i];
    return NULL;
}

static bool can_copy(const OrtDataTransferImpl *base, const OrtMemoryDevice *from,
                     const OrtMemoryDevice *to)
{
    const struct transfer *t = (const struct transfer *)base;
    const struct card *a = card_of(t, from), *b = card_of(t, to);
    if (a && b)
        return a == b;
    const OrtMemoryDevice *other = a ? to : from;
    return (a || b) && t->host->MemoryDevice_GetDeviceType(other) == ORT_DEVICE_CPU;
}

static OrtStatus *read_copy(const struct transfer *t, const OrtValue *from, OrtValue *to,
                            struct copy *out, struct card **card)
{
    const struct host *h = t->host;
    struct card *a = card_of(t, h->Value_GetMemoryDevice(from));
    struct card *b = card_of(t, h->Value_GetMemoryDevice(to));
    *card = a ? a : b;
    if (!*card || (a && b && a != b))
        return host_fail(h, ORT_FAIL, "MIGraphX: a copy between memories of no one card");
    out->way = a && b ? migraphx_copy_within : a ? migraphx_copy_out : migraphx_copy_in;
    HOST_TRY(h->GetTensorSizeInBytes(from, &out->size));
    HOST_TRY(h->GetTensorData(from, &out->from));
    return h->GetTensorMutableData(to, &out->to);
}

// Those of one card together.
static OrtStatus *copy_all(const struct transfer *t, const OrtValue **from, OrtValue **to,
                           struct copy *copies, size_t count)
{
    struct card *card = NULL;
    size_t held = 0;
    for (size_t i = 0; i < count; i++) {
        struct card *of;
        struct copy one;
        HOST_TRY(read_copy(t, from[i], to[i], &one, &of));
        if (held && of != card) {
            HOST_TRY(card_copy(card, copies, held));
            held = 0;
        }
        card = of;
        copies[held++] = one;
    }
    return held ? card_copy(card, copies, held) : NULL;
}

static OrtStatus *copy_tensors(OrtDataTransferImpl *base, const OrtValue **from, OrtValue **to,
                               OrtSyncStream **streams, size_t count)
{
    enum { FEW = 16 };
    const struct transfer *t = (const struct transfer *)base;
    struct copy few[FEW], *copies = count > FEW ? calloc(count, sizeof *copies) : few;
    (void)streams; // there are none
    OrtStatus *status = copies ? copy_all(t, from, to, copies, count) : host_no_memory(t->host);
    if (copies != few)
        free(copies);
    return status;
}

static void release_transfer(OrtDataTransferImpl *base)
{
    free(base);
}

OrtStatus *card_transfer_create(struct cards *cards, OrtDataTransferImpl **out)
{
    const struct host *h = &cards->host;
    *out = NULL;
    if (!cards->count)
        return NULL;
    struct transfer *t = NEWLY(struct transfer);
    if (!t)
        return host_no_memory(h);
    t->base = (OrtDataTransferImpl){.ort_version_supported = h->version,
                                    .Release = release_transfer,
                                    .CanCopy = can_copy,
                                    .CopyTensors = copy_tensors};
    t->cards = cards;
    t->host = h;
    *out = &t->base;
    return NULL;
}
