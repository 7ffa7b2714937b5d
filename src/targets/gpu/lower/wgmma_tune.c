// SPDX-License-Identifier: MIT
// Tiles of the Hopper kernel by measuring: the model's best ones, each as a graph of launches one
// after the other, with weights that differ from launch to launch as those of layers do.
//
// The first one that is measured compiles them all, side by side.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "plan/contest.h"
#include "targets/gpu/lower/wgmma.h"

enum { MEASURED = 20 };

struct contest {
    struct mgx_plan_offer *c;
    const struct gpu_wgmma_product *g;
    const struct gpu_wgmma_tile *tiles;
    int count;
    struct mgx_str names[GPU_WGMMA_TILES];
    struct gpu_unit *units[GPU_WGMMA_TILES];
    bool compiled;
    struct gpu_race race;
    struct gpu_wgmma_entry entry;
};

static struct gpu_device *device_of(const struct mgx_plan_offer *c)
{
    return gpu_machine(c->machine)->device;
}

static const char *name(void *user, int number)
{
    return mgx_str_text(&((struct contest *)user)->names[number]);
}

// --- a tile, ready to be launched ---

struct gpu_race_bytes gpu_wgmma_race_bytes(const struct mgx_plan_offer *c,
                                           const struct gpu_wgmma_product *g)
{
    struct gpu_race_bytes bytes = {.b = gpu_wgmma_packed_bytes(g),
                                   .out = gpu_race_span(c->out),
                                   .extra = 256,
                                   .a = gpu_race_span(&c->in[g->p.operand[0]]),
                                   .turns = true};
    for (int e = 0; e < g->p.extra_count; e++) {
        const size_t extra = gpu_race_span(&c->in[g->p.extra[e]]);
        bytes.extra = extra > bytes.extra ? extra : bytes.extra;
    }
    if (gpu_wgmma_border_bytes(g) > bytes.extra)
        bytes.extra = gpu_wgmma_border_bytes(g);
    if (g->fold.bytes > bytes.a)
        bytes.a = g->fold.bytes;
    return bytes;
}

static struct gpu_unit *unit_of(const struct mgx_plan_offer *c, const struct gpu_wgmma_product *g,
                                const struct gpu_wgmma_tile *tile)
{
    struct mgx_str text = {0};
    struct gpu_unit *unit = NULL;
    if (!gpu_wgmma_emit(&text, c, g, tile))
        unit = gpu_unit_of(gpu_machine(c->machine), "candidate", &text);
    mgx_str_fini(&text);
    return unit;
}

static bool describe(struct gpu_wgmma_entry *e, const struct gpu_wgmma_tile *tile,
                     const struct gpu_race *race, struct mgx_diag *diag)
{
    struct gpu_device *d = race->device;
    struct gpu_tensor_map map = e->g->map;
    map.address = race->a;
    map.box = (unsigned)tile->rows;
    bool good = d->api->tensor_map(d, &map, e->a, diag) == MGX_OK;
    for (int i = 0; i < race->weights && good; i++) {
        map = gpu_wgmma_map(e->g, gpu_race_weights(race, i), tile->columns);
        good = d->api->tensor_map(d, &map, e->b[i], diag) == MGX_OK;
    }
    return good;
}

static bool make_ready(struct gpu_wgmma_entry *e, const struct gpu_wgmma_product *g,
                       const struct gpu_wgmma_tile *tile, struct gpu_unit *unit,
                       const struct gpu_race *race, struct mgx_diag *diag)
{
    e->g = g;
    e->how = gpu_wgmma_launch(g, tile, race->device->properties.units);
    e->how.dependent = true;
    return describe(e, tile, race, diag) &&
           gpu_unit_kernel(unit, "run", e->how.shared, &e->kernel, diag) == MGX_OK;
}

bool gpu_wgmma_enter(struct gpu_wgmma_entry *e, const struct mgx_plan_offer *c,
                     const struct gpu_wgmma_product *g, const struct gpu_wgmma_tile *tile,
                     const struct gpu_race *race, struct mgx_diag *diag)
{
    struct gpu_unit *unit = unit_of(c, g, tile);
    e->fold = NULL;
    e->fold_how = gpu_launch_for((int64_t)(g->fold.bytes / 16));
    return unit && gpu_units_make(&gpu_machine(c->machine)->code, &unit, 1, diag) == MGX_OK &&
           make_ready(e, g, tile, unit, race, diag) &&
           (!g->fold.bytes || gpu_unit_kernel(unit, "fold", 0, &e->fold, diag) == MGX_OK);
}

// Packs the image into scratch: what is multiplied lies elsewhere, but takes as long.
static bool launch_fold(const struct gpu_wgmma_entry *e, const struct gpu_race *race,
                        struct mgx_diag *diag)
{
    struct gpu_device *d = race->device;
    const struct gpu_arg list[] = {{&race->work, sizeof(void *), true},
                                   {&race->a, sizeof(void *), true}};
    return !e->fold ||
           d->api->launch(d, race->stream, e->fold, &e->fold_how, list, 2, diag) == MGX_OK;
}

bool gpu_wgmma_turn(void *user, const struct gpu_race *race, int turn, struct mgx_diag *diag)
{
    assert(race->weights > 0 && turn >= 0);
    struct gpu_wgmma_entry *e = user;
    struct gpu_device *d = race->device;
    struct gpu_arg list[GPU_CALL_INPUTS + GPU_WGMMA_ARGS + 1];
    void *b = gpu_race_weights(race, turn);
    int count =
        gpu_wgmma_args(e->g, e->a, e->b[turn % race->weights], &race->a, &b, &race->out, list);
    for (int i = 0; i < e->g->p.extra_count + (e->g->border.kinds > 0); i++)
        list[count++] = (struct gpu_arg){&race->extra, sizeof(void *), true};
    return launch_fold(e, race, diag) &&
           d->api->launch(d, race->stream, e->kernel, &e->how, list, count, diag) == MGX_OK;
}

// --- the contest ---

// Code of all candidates, side by side.
static bool compile(struct contest *t, struct mgx_diag *diag)
{
    const int units = t->count < MEASURED ? t->count : MEASURED;
    if (t->compiled)
        return true;
    for (int i = 0; i < units; i++)
        if (!(t->units[i] = unit_of(t->c, t->g, &t->tiles[i])))
            return false;
    t->compiled =
        gpu_units_make(&gpu_machine(t->c->machine)->code, t->units, units, diag) == MGX_OK;
    return t->compiled;
}

static bool begin(void *user, int number, struct mgx_diag *diag)
{
    struct contest *t = user;
    const struct gpu_race_bytes bytes = gpu_wgmma_race_bytes(t->c, t->g);
    return number < MEASURED && gpu_race_make(&t->race, device_of(t->c), &bytes, diag) &&
           compile(t, diag) &&
           make_ready(&t->entry, t->g, &t->tiles[number], t->units[number], &t->race, diag) &&
           gpu_race_begin(&t->race, gpu_wgmma_turn, &t->entry, diag);
}

static void run(void *user)
{
    gpu_race_run(&((struct contest *)user)->race);
}

static void end(void *user)
{
    gpu_race_end(&((struct contest *)user)->race);
}

static void put_window(struct mgx_str *out, const struct gpu_wgmma_product *g)
{
    enum { D = GPU_WGMMA_DEPTH, H = GPU_WGMMA_HEIGHT, W = GPU_WGMMA_WIDTH };
    mgx_str_printf(out, " taps%dx%d step%dx%d c%d", g->taps[H], g->taps[W], g->step[H], g->step[W],
                   g->channel_blocks);
    if (g->map.rank > 4)
        mgx_str_printf(out, " deep%d step%d", g->taps[D], g->step[D]);
}

// What decides the time besides the tile: sizes, and what the epilogue reads.
static void describe_problem(void *user, struct mgx_str *out)
{
    const struct contest *t = user;
    const struct gpu_wgmma_product *g = t->g;
    static const char *const types[] = {[GPU_MAP_HALF] = "half",
                                        [GPU_MAP_BF16] = "bf16",
                                        [GPU_MAP_BYTE] = "byte",
                                        [GPU_MAP_FLOAT] = "float",
                                        [GPU_MAP_TF32] = "tf32"};
    mgx_str_printf(out, "wgmma %s%s m%lld n%lld k%d", types[g->map.type],
                   gpu_wgmma_is_short(g->units) ? "64" : "", (long long)g->rows,
                   (long long)g->p.columns, g->blocks);
    if (g->image)
        put_window(out, g);
    if (g->unit < g->p.columns)
        mgx_str_printf(out, " unit%lld", (long long)g->unit);
    mgx_str_printf(out, " bytes%d", gpu_wgmma_result_bytes(t->c, g));
}

static void release(struct contest *t)
{
    gpu_race_fini(&t->race);
    for (int i = 0; i < t->count; i++)
        mgx_str_fini(&t->names[i]);
}

enum mgx_status gpu_wgmma_tune(struct mgx_plan_offer *c, const struct gpu_wgmma_product *g,
                               const struct gpu_wgmma_tile *tiles, int count, int *choice)
{
    assert(count > 0 && count <= GPU_WGMMA_TILES);
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
