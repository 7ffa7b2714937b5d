// SPDX-License-Identifier: MIT
// Products and convolutions of 16-bit floats on Hopper's matrix units: kernel/wgmma.gpu with sizes,
// tile and epilogue written for the instruction.
//
//     dot           a: rows (all batches together) x depth, depth innermost; b: constant
//     convolution   a: channels last; 1 x 1 without steps is a dot, the rest is gathered by the copy
//                   engine; few channels are first packed so that a tap's row is one block of 64
//
// b is packed once (a dot of 16 bits shares it with gpu::few), columns x depth with every tap filled up to blocks of 64, and lies on the card.
// Results lie as they like; whole lines are written at once where columns are innermost.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "op/op.h"
#include "plan/join.h"
#include "targets/gpu/lower/few.h"
#include "targets/gpu/lower/ranged.h"
#include "targets/gpu/lower/wgmma.h"

static enum mgx_status bring_b(struct mgx_plan *plan, const struct gpu_wgmma_call *k,
                               struct mgx_diag *diag)
{
    const struct mgx_memory *memory = plan->machine->memory;
    const size_t packed_bytes = gpu_wgmma_packed_bytes(&k->g);
    const size_t bytes = packed_bytes + gpu_wgmma_border_bytes(&k->g);
    struct mgx_queue *queue = memory->queue_create(memory);
    void *host = malloc(bytes);
    enum mgx_status status = MGX_OK;
    if (!queue || !host)
        status = mgx_fail_memory(diag);
    if (status == MGX_OK) {
        mgx_plan_join_fill(&plan->store, k->weights.data, false);
        const bool packed = gpu_wgmma_pack(plan->machine, &k->g, &k->weights, host);
        if (k->g.border.kinds)
            gpu_wgmma_put_border(&k->g, &k->weights, (char *)host + packed_bytes);
        mgx_plan_join_drop(&plan->store, k->weights.data);
        status =
            packed ? memory->copy_in(queue, k->packed, host, bytes, diag) : mgx_fail_memory(diag);
        const enum mgx_status done = memory->wait(queue, diag);
        status = status == MGX_OK ? done : status;
    }
    memory->queue_destroy(queue);
    free(host);
    return status;
}

enum mgx_status gpu_wgmma_finish(struct mgx_plan *plan, struct gpu_wgmma_call *k,
                                 struct mgx_diag *diag)
{
    struct gpu_device *d = gpu_machine(plan->machine)->device;
    const struct gpu_tensor_map b = gpu_wgmma_map(&k->g, k->packed, k->tile_columns);
    _Alignas(64) unsigned char map[GPU_TENSOR_MAP_BYTES];
    if (!k->shared)
        TRY(bring_b(plan, k, diag));
    TRY(gpu_unit_kernel(k->base.unit, "run", k->base.how.shared, &k->base.kernel, diag));
    if (k->g.fold.bytes)
        TRY(gpu_unit_kernel(k->base.unit, "fold", 0, &k->fold, diag));
    TRY(d->api->tensor_map(d, &b, map, diag));
    memcpy(k->b, map, sizeof map);
    return MGX_OK;
}

static enum mgx_status finish(struct mgx_plan *plan, const struct mgx_plan_step *step,
                              struct mgx_diag *diag)
{
    return gpu_wgmma_finish(plan, step->state, diag);
}

// --- the step ---

// Packs a, where it must be; its address as the copy engine reads it.
static enum mgx_status place_a(const struct gpu_wgmma_call *k, const struct mgx_plan_args *args,
                               void **a, struct mgx_diag *diag)
{
    struct gpu_device *d = gpu_machine(args->machine)->device;
    *a = args->in[k->g.p.operand[0]];
    if (k->g.fold.bytes) {
        const struct gpu_arg list[] = {{&args->workspace, sizeof(void *), true},
                                       {a, sizeof(void *), true}};
        TRY(d->api->launch(d, gpu_queue_stream(args->queue), k->fold, &k->fold_how, list, 2, diag));
        *a = args->workspace;
    }
    if ((uintptr_t)*a % 16)
        return mgx_fail(diag, MGX_INVALID,
                        "the left operand lies at %p: this card wants multiples of 16 bytes", *a);
    return MGX_OK;
}

enum mgx_status gpu_wgmma_run(const struct gpu_wgmma_call *k, const struct mgx_plan_args *args,
                              void *const *more, int more_count, struct mgx_diag *diag)
{
    struct gpu_device *d = gpu_machine(args->machine)->device;
    struct gpu_arg list[GPU_CALL_INPUTS + GPU_WGMMA_ARGS + 2 + GPU_WGMMA_MORE];
    void *ranges = k->base.ranges ? gpu_ranges_place(&k->base, args) : NULL;
    _Alignas(64) unsigned char a[GPU_TENSOR_MAP_BYTES];
    struct gpu_tensor_map map = k->g.map;
    void *b = k->packed, *border = (char *)b + gpu_wgmma_packed_bytes(&k->g);
    assert(more_count <= GPU_WGMMA_MORE);
    TRY(place_a(k, args, &map.address, diag));
    TRY(d->api->tensor_map(d, &map, a, diag));
    int count = gpu_wgmma_args(&k->g, a, k->b, &map.address, &b, &args->out, list);
    for (int i = 0; i < k->base.in_count; i++)
        list[count++] = (struct gpu_arg){&args->in[k->base.in[i]], sizeof(void *), true};
    if (k->g.border.kinds)
        list[count++] = (struct gpu_arg){&border, sizeof border, true};
    if (k->base.ranges)
        list[count++] = (struct gpu_arg){&ranges, sizeof ranges, true};
    for (int i = 0; i < more_count; i++)
        list[count++] = (struct gpu_arg){&more[i], sizeof more[i], true};
    return d->api->launch(d, gpu_queue_stream(args->queue), k->base.kernel, &k->base.how, list,
                          count, diag);
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    return gpu_wgmma_run(step->state, args, NULL, 0, diag);
}

struct gpu_wgmma_size gpu_wgmma_size_of(const struct mgx_plan_offer *c,
                                        const struct gpu_wgmma_product *g)
{
    enum { TABLE = 256, MORE = 1024 }; // of what an end looks up; of ones and of ranges besides
    const struct gpu_properties *card = &gpu_machine(c->machine)->device->properties;
    const size_t more = g->summed || g->units == GPU_WGMMA_QUANTIZED ? MORE : TABLE;
    return (struct gpu_wgmma_size){.rows = g->rows,
                                   .columns = g->p.columns,
                                   .unit = g->unit,
                                   .blocks = g->blocks,
                                   .units = g->units,
                                   .multiprocessors = card->units,
                                   .shared_bytes = card->shared_bytes - more,
                                   .image = g->image,
                                   .result_bytes = g->alone ? 0 : gpu_wgmma_result_bytes(c, g),
                                   .pairs = gpu_wgmma_pairs(c, g)};
}

// What bytes bring, by the model of the card: the same product of 16 bits beside it, whose block of
// the depth has 64 values, and whose lines of 8 channels need no packing. If it had 16 bits whoever
// makes its input would leave a byte more of each value.
static void put_times(struct mgx_str *out, struct mgx_plan_offer *c,
                      const struct gpu_wgmma_product *g)
{
    struct gpu_wgmma_size size = gpu_wgmma_size_of(c, g);
    const struct gpu_wgmma_fold *f = &g->fold;
    if (!gpu_wgmma_is_narrow(g->units))
        return;
    const bool lies = f->down == 1 && f->across == 1 && c->in[g->p.operand[0]].lens[1] % 8 == 0;
    const double bytes = gpu_wgmma_microseconds(&size) + gpu_wgmma_packing(g, 1);
    size.blocks *= gpu_wgmma_is_short(g->units) ? 1 : 2;
    size.units = GPU_WGMMA_NARROW;
    size.result_bytes *= mgx_type_size(c->out->type) == 1 ? 2 : 1;
    const double wide = gpu_wgmma_microseconds(&size) + (lies ? 0 : gpu_wgmma_packing(g, 2));
    const double border = (double)mgx_shape_elements(&c->in[g->p.operand[0]]);
    mgx_str_printf(out, ", by the model %.1f us, %.1f in 16 bits", bytes, wide);
    c->weight = (struct mgx_plan_weight){bytes, wide + border / GPU_BYTES_A_MICROSECOND};
}

bool gpu_wgmma_choose(struct mgx_plan_offer *c, const struct gpu_wgmma_product *g,
                      struct gpu_wgmma_tile *t)
{
    assert(g->rows > 0 && g->p.columns > 0 && g->blocks > 0);
    const struct gpu_wgmma_size size = gpu_wgmma_size_of(c, g);
    struct gpu_wgmma_tile tiles[GPU_WGMMA_TILES];
    const int count = gpu_wgmma_rank(&size, tiles, GPU_WGMMA_TILES);
    int choice = 0;
    if (count == 0 || gpu_wgmma_tune(c, g, tiles, count, &choice) != MGX_OK)
        return false;
    *t = tiles[choice];
    return true;
}

// Do products of a few rows have b in the same form?
static bool is_shared(const struct gpu_wgmma_product *g)
{
    return gpu_product_is_dot(&g->p) && g->units == GPU_WGMMA_NARROW;
}

static enum mgx_plan_answer take(struct mgx_plan_offer *c, const struct gpu_wgmma_product *g,
                                 const struct gpu_wgmma_tile *t, struct mgx_str *text)
{
    struct gpu_wgmma_call *k = MGX_NEW(c->arena, struct gpu_wgmma_call);
    void *packed =
        is_shared(g)
            ? gpu_few_place_rows(c, c->constant[g->p.operand[1]], g->p.columns, g->p.depth)
            : mgx_plan_device_take(c->store, gpu_wgmma_packed_bytes(g) + gpu_wgmma_border_bytes(g),
                                   c->diag);
    if (!k || !packed) {
        mgx_str_fini(text);
        return packed ? mgx_plan_no_memory(c) : MGX_PLAN_FAILED;
    }
    *k = (struct gpu_wgmma_call){.g = *g,
                                 .weights = *c->constant[g->p.operand[1]],
                                 .packed = packed,
                                 .shared = is_shared(g),
                                 .tile_columns = t->columns};
    k->g.map.box = (unsigned)t->rows;
    const struct gpu_launch how =
        gpu_wgmma_launch(g, t, gpu_machine(c->machine)->device->properties.units);
    const enum mgx_plan_answer answer =
        gpu_take_call(c, &k->base, text, &how, g->p.extra, g->p.extra_count);
    if (answer == MGX_PLAN_TAKEN) {
        k->fold_how = gpu_launch_for((int64_t)(g->fold.bytes / 16));
        k->fold_how.dependent = k->base.how.dependent;
        c->workspace = g->fold.bytes;
        c->skip_in[g->p.operand[1]] = true;
        if (g->ranged)
            gpu_leave_ranges(c, how.grid[0]);
    }
    return answer;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct gpu_wgmma_product g;
    struct mgx_str text = {0}, detail = {0};
    const char *why = gpu_wgmma_read(c, &g);
    if (why)
        return gpu_decline(c, why);
    struct gpu_wgmma_tile t;
    g.alone = gpu_is_range_alone(c);
    if (!gpu_wgmma_choose(c, &g, &t))
        return c->diag->status == MGX_OK ? gpu_decline(c, "no tile fits the card")
                                         : MGX_PLAN_FAILED;
    const struct gpu_launch how =
        gpu_wgmma_launch(&g, &t, gpu_machine(c->machine)->device->properties.units);
    g.ranged = gpu_is_ranged(c) && how.grid[0] <= GPU_RANGES_MOST;
    g.alone = g.ranged && g.alone;
    why = gpu_wgmma_emit(&text, c, &g, &t);
    if (why) {
        mgx_str_fini(&text);
        return gpu_decline(c, why);
    }
    c->flops = 2.0 * (double)g.rows * (double)g.p.columns * (double)g.p.depth;
    gpu_wgmma_name(&t, &detail);
    mgx_str_printf(&detail, "%s%s%s", g.units == GPU_WGMMA_TF32 ? ", TF32" : "",
                   g.fold.bytes     ? ", packed"
                   : g.border.kinds ? ", gathered, its border by a table"
                   : g.image        ? ", gathered"
                                    : "",
                   g.p.tail ? ", element-wise tail" : "");
    if (g.p.batches > 1 && !gpu_product_is_dot(&g.p))
        mgx_str_printf(&detail, ", %d of %d groups in a tile", g.groups_of_unit, (int)g.p.batches);
    put_times(&detail, c, &g);
    c->detail = mgx_arena_strdup(c->arena, mgx_str_text(&detail));
    mgx_str_fini(&detail);
    return take(c, &g, &t, &text);
}

static const struct gpu_family family = {finish};

const struct mgx_plan_kernel gpu_kernel_wgmma = {
    .name = "gpu::wgmma", .prepare = prepare, .run = run, .more = &family};
