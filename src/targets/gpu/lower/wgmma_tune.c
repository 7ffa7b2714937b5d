// SPDX-License-Identifier: MIT
// Tiles of the Hopper kernel by measuring: the model's best ones, each as a graph of launches one
// after the other, with weights that differ from launch to launch as those of layers do.
//
// The first one that is measured compiles them all, side by side.
#include <stdlib.h>
#include <string.h>

#include "plan/contest.h"
#include "targets/gpu/lower/wgmma.h"

enum { MEASURED = 20, LAUNCHES = 20, MAPS = 8 };
#define WEIGHT_BYTES ((size_t)64 << 20) // of all weights together, beyond the level-2 cache

struct contest {
    struct mgx_plan_offer *c;
    const struct gpu_wgmma_product *g;
    const struct gpu_wgmma_tile *tiles;
    int count;
    struct mgx_str names[GPU_WGMMA_TILES];
    struct gpu_unit *units[GPU_WGMMA_TILES];
    bool made;
    void *a, *b, *out, *extra; // on the card
    int weights;               // that lie one behind the other at b
    size_t weight_bytes;
    void *stream, *graph;
};

static struct gpu_device *device_of(const struct contest *t)
{
    return gpu_machine(t->c->machine)->device;
}

static const char *name(void *user, int number)
{
    return mgx_str_text(&((struct contest *)user)->names[number]);
}

static size_t span(const struct mgx_shape *s)
{
    return (size_t)mgx_shape_space(s) * mgx_type_size(s->type) + 256;
}

static bool allocate(struct contest *t, void **out, size_t bytes, struct mgx_diag *diag)
{
    struct gpu_device *d = device_of(t);
    return d->api->alloc(d, bytes, out, diag) == MGX_OK &&
           d->api->fill(d, t->stream, *out, 0x2d, bytes, diag) == MGX_OK; // 0.08 as a half
}

// Buffers and code, once for all candidates.
static bool make(struct contest *t, struct mgx_diag *diag)
{
    struct gpu_device *d = device_of(t);
    const struct gpu_wgmma_product *g = t->g;
    size_t extra = 256;
    if (t->made)
        return t->a != NULL;
    t->made = true;
    for (int e = 0; e < g->p.extra_count; e++) {
        const size_t bytes = span(&t->c->in[g->p.extra[e]]);
        extra = bytes > extra ? bytes : extra;
    }
    t->weight_bytes = (gpu_wgmma_packed_bytes(g) + 255) / 256 * 256;
    t->weights = (int)(WEIGHT_BYTES / t->weight_bytes);
    t->weights = t->weights < 1 ? 1 : t->weights > MAPS ? MAPS : t->weights;
    const size_t image = span(&t->c->in[g->p.operand[0]]);
    struct mgx_str text = {0};
    for (int i = 0; i < t->count && i < MEASURED; i++) {
        if (!gpu_wgmma_emit(&text, t->c, g, &t->tiles[i]))
            t->units[i] = gpu_unit_of(gpu_machine(t->c->machine), "candidate", &text);
        mgx_str_fini(&text);
        if (!t->units[i])
            return false;
    }
    const int units = t->count < MEASURED ? t->count : MEASURED;
    return gpu_units_make(&gpu_machine(t->c->machine)->code, t->units, units, diag) == MGX_OK &&
           d->api->stream_create(d, &t->stream, diag) == MGX_OK &&
           allocate(t, &t->b, t->weight_bytes * (size_t)t->weights, diag) &&
           allocate(t, &t->out, span(t->c->out), diag) && allocate(t, &t->extra, extra, diag) &&
           allocate(t, &t->a, g->fold.bytes > image ? g->fold.bytes : image, diag);
}

static bool describe(const struct contest *t, const struct gpu_wgmma_tile *tile, void *a,
                     unsigned char (*b)[GPU_TENSOR_MAP_BYTES], struct mgx_diag *diag)
{
    struct gpu_device *d = device_of(t);
    struct gpu_tensor_map map = t->g->map;
    map.address = t->a;
    map.box = (unsigned)tile->rows;
    bool good = d->api->tensor_map(d, &map, a, diag) == MGX_OK;
    for (int i = 0; i < t->weights && good; i++) {
        map = gpu_wgmma_map(t->g, (char *)t->b + t->weight_bytes * (size_t)i, tile->columns);
        good = d->api->tensor_map(d, &map, b[i], diag) == MGX_OK;
    }
    return good;
}

static bool launch_all(struct contest *t, const struct gpu_launch *how, void *kernel, void *a,
                       unsigned char (*b)[GPU_TENSOR_MAP_BYTES], struct mgx_diag *diag)
{
    struct gpu_device *d = device_of(t);
    struct gpu_arg list[GPU_CALL_INPUTS + GPU_WGMMA_ARGS];
    bool good = true;
    for (int i = 0; i < LAUNCHES && good; i++) {
        int count = gpu_wgmma_args(t->g, a, b[i % t->weights], &t->a, &t->b, &t->out, list);
        for (int e = 0; e < t->g->p.extra_count; e++)
            list[count++] = (struct gpu_arg){&t->extra, sizeof(void *), true};
        good = d->api->launch(d, t->stream, kernel, how, list, count, diag) == MGX_OK;
    }
    return good;
}

static bool begin(void *user, int number, struct mgx_diag *diag)
{
    struct contest *t = user;
    struct gpu_device *d = device_of(t);
    const struct gpu_wgmma_tile *tile = &t->tiles[number];
    struct gpu_launch how = gpu_wgmma_launch(t->g, tile, d->properties.units);
    _Alignas(64) unsigned char a[GPU_TENSOR_MAP_BYTES], b[MAPS][GPU_TENSOR_MAP_BYTES];
    void *kernel;
    how.dependent = true;
    if (number >= MEASURED || !make(t, diag) || !describe(t, tile, a, b, diag) ||
        gpu_unit_kernel(t->units[number], "run", how.shared, &kernel, diag) != MGX_OK ||
        d->api->capture_begin(d, t->stream, diag) != MGX_OK)
        return false;
    const bool good = launch_all(t, &how, kernel, a, b, diag);
    return d->api->capture_end(d, t->stream, &t->graph, diag) == MGX_OK && good;
}

static void run(void *user)
{
    struct contest *t = user;
    struct gpu_device *d = device_of(t);
    struct mgx_diag quiet = {.status = MGX_OK};
    if (d->api->graph_launch(d, t->graph, t->stream, &quiet) == MGX_OK)
        (void)!d->api->stream_wait(d, t->stream, &quiet);
}

static void end(void *user)
{
    struct contest *t = user;
    struct gpu_device *d = device_of(t);
    d->api->graph_destroy(d, t->graph);
    t->graph = NULL;
}

// What decides the time besides the tile: sizes, and what the epilogue reads.
static void describe_problem(void *user, struct mgx_str *out)
{
    const struct contest *t = user;
    const struct gpu_wgmma_product *g = t->g;
    static const char *const types[] = {"half", "bf16", "float", "tf32"};
    mgx_str_printf(out, "wgmma %s m%lld n%lld k%d", types[g->map.type], (long long)g->rows,
                   (long long)g->p.columns, g->blocks);
    if (g->image)
        mgx_str_printf(out, " taps%dx%d step%dx%d c%d", g->taps_h, g->taps_w, g->step[0],
                       g->step[1], g->channel_blocks);
    mgx_str_printf(out, " bytes%d", gpu_wgmma_result_bytes(t->c, g));
}

static void release(struct contest *t)
{
    struct gpu_device *d = device_of(t);
    d->api->free(d, t->a);
    d->api->free(d, t->b);
    d->api->free(d, t->out);
    d->api->free(d, t->extra);
    d->api->stream_destroy(d, t->stream);
    for (int i = 0; i < t->count; i++)
        mgx_str_fini(&t->names[i]);
}

enum mgx_status gpu_wgmma_tune(struct mgx_plan_offer *c, const struct gpu_wgmma_product *g,
                               const struct gpu_wgmma_tile *tiles, int count, int *choice)
{
    struct contest t = {.c = c, .g = g, .tiles = tiles, .count = count};
    const struct mgx_plan_contest contest = {.describe = describe_problem,
                                             .name = name,
                                             .count = count,
                                             .begin = begin,
                                             .run = run,
                                             .end = end,
                                             .user = &t};
    for (int i = 0; i < count; i++)
        gpu_wgmma_name(&tiles[i], &t.names[i]);
    const enum mgx_status status = mgx_plan_tune(c->tuner, &contest, choice, c->diag);
    *choice = *choice < 0 ? 0 : *choice;
    release(&t);
    return status;
}
