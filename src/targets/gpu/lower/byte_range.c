// SPDX-License-Identifier: MIT
// byte_range: one reading of x by as many blocks as it is worth, and one that joins what they found
// (kernel/byte_range.gpu).
#include <inttypes.h>

#include "op/op.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/chain.h"

enum { SHARE = 1 << 13, MOST_PARTS = 512, WIDEST = 1024 };
enum {
    ALONE = 1 << 14,
    RANKS = 8,
    CLUSTERED = 1 << 20
}; // elements that one block reads, or a cluster

struct parts {
    int blocks, width;
    bool cluster;
};

static struct parts divide(const struct mgx_plan_offer *c, int64_t elements)
{
    const struct gpu_properties *card = &gpu_machine(c->machine)->device->properties;
    const int64_t wanted = (elements + SHARE - 1) / SHARE;
    const bool alone = elements <= ALONE;
    if (alone || (card->features & GPU_CLUSTERS && elements <= CLUSTERED))
        return (struct parts){alone ? 1 : RANKS, card->max_threads >= WIDEST ? WIDEST : GPU_THREADS,
                              !alone};
    return (struct parts){(int)(wanted < MOST_PARTS ? wanted : MOST_PARTS), GPU_THREADS, false};
}

static void emit(struct mgx_str *out, int64_t elements, const struct parts *p)
{
    mgx_str_printf(out,
                   "#define E %" PRId64 "\n#define PARTS %d\n#define FIRST_PARTS PARTS\n"
                   "#define WIDTH %d\n#define CLUSTER %d\n",
                   elements, p->blocks, p->width, p->cluster);
    if (p->cluster) {
        GPU_PUT(out, tiles);
        GPU_PUT(out, cluster);
    }
    GPU_PUT(out, ordered_bits);
    GPU_PUT(out, extremes);
    GPU_PUT(out, range_scale);
    GPU_PUT(out, byte_range_join);
    GPU_PUT(out, byte_range);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct mgx_str text = {0};
    if (c->copy_only || c->dynamic || c->ins->op != &mgx_op_byte_range)
        return gpu_decline(c, "not a range of what becomes bytes");
    const int64_t elements = mgx_shape_elements(&c->in[0]);
    if (!elements || elements > INT32_MAX - MOST_PARTS * WIDEST)
        return gpu_decline(c, "too many elements, or none");
    if (!mgx_shape_is_packed(&c->in[0])) {
        (void)mgx_plan_wish(c, 0, MGX_PLAN_ROW_MAJOR, "values with gaps between them");
        return MGX_PLAN_DECLINED;
    }
    const struct parts p = divide(c, elements);
    const bool joined = p.blocks > 1 && !p.cluster;
    emit(&text, elements, &p);
    const unsigned width = (unsigned)p.width;
    const struct gpu_launch how[] = {{.grid = {(unsigned)p.blocks, 1, 1},
                                      .block = {width, 1, 1},
                                      .cluster = p.cluster ? RANKS : 0},
                                     {.grid = {1, 1, 1}, .block = {width, 1, 1}}};
    c->workspace = (size_t)p.blocks * 2 * sizeof(float);
    c->detail = p.cluster ? "a cluster" : joined ? "shares, joined" : "one block";
    return gpu_take_chain(c, &text, how, joined ? 2 : 1, NULL, 1);
}

const struct mgx_plan_kernel gpu_kernel_byte_range = {
    .name = "gpu::byte_range", .prepare = prepare, .run = gpu_run_chain, .more = &gpu_chain_family};
