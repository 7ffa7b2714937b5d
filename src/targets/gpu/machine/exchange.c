// SPDX-License-Identifier: MIT
// See exchange.h.
#include "targets/gpu/machine/exchange.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

static size_t box_bytes(int cards)
{
    return (size_t)cards * 2 * GPU_BOX_WORDS * sizeof(uint64_t);
}

static void destroy(struct mgx_exchange *exchange)
{
    struct gpu_exchange *x = (struct gpu_exchange *)exchange;
    for (int i = 0; x && i < MGX_EXCHANGE_CARDS; i++) {
        struct gpu_device *d = x->card[i].device;
        if (!d)
            continue;
        d->api->free(d, x->card[i].box);
        d->api->free(d, x->card[i].boxes);
        d->api->free(d, x->card[i].state);
        gpu_device_close(d);
    }
    free(x);
}

// By a stream of its own: that of a program may be waiting.
static enum mgx_status put(struct gpu_device *d, void *to, const void *from, unsigned char byte,
                           size_t bytes, struct mgx_diag *diag)
{
    void *stream = NULL;
    TRY(d->api->stream_create(d, &stream, diag));
    enum mgx_status status = from ? d->api->copy_in(d, stream, to, from, bytes, diag)
                                  : d->api->fill(d, stream, to, byte, bytes, diag);
    if (status == MGX_OK)
        status = d->api->stream_wait(d, stream, diag);
    d->api->stream_destroy(d, stream);
    return status;
}

static void stop(struct mgx_exchange *exchange)
{
    struct gpu_exchange *x = (struct gpu_exchange *)exchange;
    struct mgx_diag quiet = {.status = MGX_OK}; // a card that cannot be told has failed by itself
    for (int i = 0; i < x->base.count; i++)
        (void)!put(x->card[i].device, (uint32_t *)x->card[i].state + GPU_EXCHANGE_STOPPED, NULL, 1,
                   1, &quiet);
}

static enum mgx_status clear(const struct gpu_exchange_card *card, int count, struct mgx_diag *diag)
{
    struct gpu_device *d = card->device;
    TRY(put(d, card->box, NULL, 0, box_bytes(count), diag));
    return put(d, card->state, NULL, 0, GPU_EXCHANGE_STATE * sizeof(uint32_t), diag);
}

static enum mgx_status restart(struct mgx_exchange *exchange, struct mgx_diag *diag)
{
    const struct gpu_exchange *x = (const struct gpu_exchange *)exchange;
    for (int i = 0; i < x->base.count; i++)
        TRY(clear(&x->card[i], x->base.count, diag));
    return MGX_OK;
}

static enum mgx_status open_card(struct gpu_exchange_card *card, const char *choice, int number,
                                 int count, struct mgx_diag *diag)
{
    TRY(gpu_device_open(choice, number, &card->device, diag));
    struct gpu_device *d = card->device;
    if (!d->api->reach || !d->api->alloc_reached)
        return mgx_fail(diag, MGX_UNSUPPORTED, "%s: no card reaches another one's memory",
                        d->api->name);
    TRY(d->api->alloc_reached(d, box_bytes(count), &card->box, diag));
    TRY(d->api->alloc(d, (size_t)count * sizeof(uint64_t), &card->boxes, diag));
    TRY(d->api->alloc(d, GPU_EXCHANGE_STATE * sizeof(uint32_t), &card->state, diag));
    return clear(card, count, diag);
}

static enum mgx_status connect(struct gpu_exchange *x, int i, struct mgx_diag *diag)
{
    struct gpu_device *d = x->card[i].device;
    uint64_t boxes[MGX_EXCHANGE_CARDS] = {0};
    for (int k = 0; k < x->base.count; k++) {
        boxes[k] = (uint64_t)(uintptr_t)x->card[k].box;
        if (k == i)
            continue;
        if (x->card[k].device == d || x->card[k].device->api != d->api)
            return mgx_fail(diag, MGX_INVALID, "cards %d and %d of an exchange are %s", i, k,
                            x->card[k].device == d ? "the same" : "of different drivers");
        TRY(d->api->reach(d, x->card[k].device, diag));
    }
    return put(d, x->card[i].boxes, boxes, 0, (size_t)x->base.count * sizeof *boxes, diag);
}

enum mgx_status gpu_exchange_create(const char *choice, const int *cards, int count,
                                    struct mgx_exchange **out, struct mgx_diag *diag)
{
    if (count < 1 || count > MGX_EXCHANGE_CARDS)
        return mgx_fail(diag, MGX_INVALID, "%d cards, where 1 to %d go together", count,
                        MGX_EXCHANGE_CARDS);
    struct gpu_exchange *x = calloc(1, sizeof *x);
    if (!x)
        return mgx_fail_memory(diag);
    x->base =
        (struct mgx_exchange){.count = count, .stop = stop, .restart = restart, .destroy = destroy};
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < count && status == MGX_OK; i++)
        status = open_card(&x->card[i], choice, cards[i], count, diag);
    for (int i = 0; i < count && status == MGX_OK; i++)
        status = connect(x, i, diag);
    if (status == MGX_OK)
        *out = &x->base;
    else
        destroy(&x->base);
    return status;
}
