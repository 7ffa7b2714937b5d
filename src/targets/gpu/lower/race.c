// SPDX-License-Identifier: MIT
// See race.h.
#include <assert.h>

#include "targets/gpu/lower/race.h"

#define WEIGHT_BYTES ((size_t)64 << 20) // of all weights together, beyond the level-2 cache

static bool allocate(struct gpu_race *r, void **out, size_t bytes, struct mgx_diag *diag)
{
    struct gpu_device *d = r->device;
    return d->api->alloc(d, bytes, out, diag) == MGX_OK &&
           d->api->fill(d, r->stream, *out, 0x2d, bytes, diag) == MGX_OK; // 0.08 as a half
}

bool gpu_race_make(struct gpu_race *r, struct gpu_device *d, const struct gpu_race_bytes *bytes,
                   struct mgx_diag *diag)
{
    if (r->made)
        return r->work != NULL;
    r->made = true;
    r->device = d;
    r->weight_bytes = (bytes->b + 255) / 256 * 256;
    r->weights = bytes->turns ? (int)(WEIGHT_BYTES / r->weight_bytes) : 1;
    r->weights = r->weights < 1 ? 1 : r->weights > GPU_RACE_WEIGHTS ? GPU_RACE_WEIGHTS : r->weights;
    return d->api->stream_create(d, &r->stream, diag) == MGX_OK &&
           allocate(r, &r->b, r->weight_bytes * (size_t)r->weights, diag) &&
           allocate(r, &r->out, bytes->out, diag) && allocate(r, &r->extra, bytes->extra, diag) &&
           allocate(r, &r->a, bytes->a, diag) && allocate(r, &r->work, bytes->work + 256, diag);
}

void gpu_race_fini(struct gpu_race *r)
{
    struct gpu_device *d = r->device;
    if (!r->made)
        return;
    d->api->free(d, r->a);
    d->api->free(d, r->b);
    d->api->free(d, r->out);
    d->api->free(d, r->extra);
    d->api->free(d, r->work);
    d->api->stream_destroy(d, r->stream);
}

void *gpu_race_weights(const struct gpu_race *r, int turn)
{
    assert(r->weights > 0 && turn >= 0);
    return (char *)r->b + r->weight_bytes * (size_t)(turn % r->weights);
}

bool gpu_race_begin(struct gpu_race *r, gpu_race_launch launch, void *user, struct mgx_diag *diag)
{
    assert(r->made && r->work);
    struct gpu_device *d = r->device;
    if (!launch(user, r, 0, diag) || d->api->stream_wait(d, r->stream, diag) != MGX_OK ||
        d->api->capture_begin(d, r->stream, diag) != MGX_OK)
        return false;
    bool good = true;
    for (int i = 0; i < GPU_RACE_LAUNCHES && good; i++)
        good = launch(user, r, i, diag);
    return d->api->capture_end(d, r->stream, &r->graph, diag) == MGX_OK && good;
}

void gpu_race_run(struct gpu_race *r)
{
    assert(r->graph);
    struct gpu_device *d = r->device;
    struct mgx_diag quiet = {.status = MGX_OK};
    if (d->api->graph_launch(d, r->graph, r->stream, &quiet) == MGX_OK)
        (void)!d->api->stream_wait(d, r->stream, &quiet);
}

void gpu_race_end(struct gpu_race *r)
{
    if (!r->made)
        return;
    r->device->api->graph_destroy(r->device, r->graph);
    r->graph = NULL;
}
