// SPDX-License-Identifier: MIT
#include "targets/gpu/lower/row_divide.h"

#include <assert.h>
#include <string.h>

enum { SPREAD_ROWS = 1024 };

// Words that a thread keeps of its lane at most: large blocks have fewer registers for each.
static int most_cached(int threads)
{
    return threads > 512 ? 24 : threads > GPU_ROW_BLOCK ? 40 : 64;
}

static const struct mgx_shape *lead_of(const struct mgx_plan_offer *c, const struct gpu_row *row)
{
    if (row->nodes[row->result].full)
        return c->out;
    const struct mgx_shape *lead = NULL;
    for (int i = 0; i < row->count; i++) {
        const struct gpu_node *n = &row->nodes[i];
        if (n->kind == GPU_NODE_INPUT && n->full &&
            (!lead || mgx_shape_space(&c->in[n->input]) > mgx_shape_space(lead)))
            lead = &c->in[n->input];
    }
    return lead;
}

// One loop over the axes inside, or outside, of lanes; arrays that have no such axis stand still.
static void make_loop(struct gpu_loop *loop, const struct mgx_plan_offer *c,
                      const struct gpu_row *row, const struct mgx_shape *lead, bool inside)
{
    struct mgx_shape shapes[GPU_CALL_INPUTS + 2];
    const struct mgx_shape *list[GPU_CALL_INPUTS + 2];
    for (int k = 0; k < c->in_count + 2; k++) {
        shapes[k] = k == 0 ? *lead : k == 1 ? *c->out : c->in[k - 2];
        for (int axis = 0; axis < lead->rank; axis++) {
            const bool here = row->in_lane[axis] == inside;
            if (shapes[k].lens[axis] != row->lens[axis])
                shapes[k].strides[axis] = 0;
            shapes[k].lens[axis] = here ? row->lens[axis] : 1;
        }
        list[k] = &shapes[k];
    }
    gpu_loop_make(loop, list, c->in_count + 2);
}

static bool starts_at_multiples(const struct gpu_row_division *d, int v)
{
    for (int k = 0; k < d->outer.count; k++)
        for (int axis = 0; axis < d->outer.rank; axis++)
            if (d->inner.strides[k][d->inner.rank - 1] == 1 && d->outer.strides[k][axis] % v != 0)
                return false;
    return true;
}

static int vector_of(const struct gpu_row_division *d, const struct mgx_plan_offer *c)
{
    size_t sizes[GPU_CALL_INPUTS + 2] = {1, mgx_type_size(c->out->type)};
    for (int i = 0; i < c->in_count; i++)
        sizes[i + 2] = mgx_type_size(c->in[i].type);
    if (d->columns || d->inner.rank == 0)
        return 1;
    int v = gpu_loop_vector(&d->inner, sizes, 8);
    while (v > 1 && !starts_at_multiples(d, v))
        v /= 2;
    return v;
}

static void need(const struct gpu_row *row, int k, bool *needed)
{
    if (needed[k])
        return;
    needed[k] = true;
    for (int i = 0; row->nodes[k].kind == GPU_NODE_SCALAR && i < row->nodes[k].in_count; i++)
        need(row, row->nodes[k].in[i], needed);
}

void gpu_row_need(const struct gpu_row_division *d, int stage, bool *needed)
{
    assert(stage >= 0 && stage <= d->stages);
    const struct gpu_row *row = d->row;
    memset(needed, 0, GPU_ROW_NODES * sizeof *needed);
    if (stage == d->stages)
        need(row, row->result, needed);
    for (int k = 0; k < row->count; k++)
        if (row->nodes[k].kind == GPU_NODE_FOLD && row->nodes[k].stage == stage)
            need(row, row->nodes[k].in[0], needed);
}

bool gpu_row_is_input(const struct gpu_row_division *d, int k)
{
    assert(k >= 0 && k < d->row->count);
    return d->row->nodes[k].kind == GPU_NODE_INPUT && d->row->nodes[k].full;
}

// Does the lane have fewer values of this input than elements (a scale of channels, say)?
static bool repeats(const struct gpu_row_division *d, int k)
{
    bool repeated = false;
    for (int axis = 0; axis < d->inner.rank; axis++)
        repeated |= d->inner.strides[d->row->nodes[k].input + 2][axis] == 0;
    return repeated;
}

// Is this input one that stays in registers, if any do? Not if only the last stage reads it and it is
// near: all lanes have the same one and there are lanes enough to wait for each other, or it repeats.
static bool stays(const struct gpu_row_division *d, int k)
{
    const int64_t *steps = d->outer.strides[d->row->nodes[k].input + 2];
    bool moves = d->lanes < SPREAD_ROWS, needed[GPU_ROW_NODES];
    for (int axis = 0; axis < d->outer.rank; axis++)
        moves = moves || steps[axis] != 0;
    moves = moves && !repeats(d, k);
    for (int stage = 0; stage < d->stages && !moves; stage++) {
        gpu_row_need(d, stage, needed);
        moves = needed[k];
    }
    return moves;
}

bool gpu_row_is_kept(const struct gpu_row_division *d, int k)
{
    assert(k >= 0 && k < d->row->count);
    return d->cached && stays(d, k);
}

static int full_inputs(const struct gpu_row_division *d)
{
    int count = 0;
    for (int k = 0; k < d->row->count; k++)
        count += gpu_row_is_input(d, k) && stays(d, k);
    return count;
}

// Words of all values that a thread keeps when `threads` share a lane.
static int64_t kept_words(const struct gpu_row_division *d, const struct mgx_plan_offer *c,
                          int threads)
{
    const int64_t step = (int64_t)threads * d->v, shares = (d->length + step - 1) / step;
    const int64_t size = (int64_t)mgx_type_size(lead_of(c, d->row)->type);
    return shares * d->v * full_inputs(d) * (size > 4 ? size / 4 : 1) / (size < 4 ? 2 : 1);
}

// Threads of the largest block: more where lanes are long, and too few to fill the card otherwise.
static int most_threads(const struct gpu_row_division *d, const struct mgx_plan_offer *c)
{
    enum { MOST = 1024, LONG = 8 }; // elements of a thread
    const struct gpu_properties *card = &gpu_machine(c->machine)->device->properties;
    int most = GPU_ROW_BLOCK;
    while (most < MOST && 2 * most <= card->max_threads &&
           d->lanes * most < (int64_t)card->units * MOST && d->length >= 2 * most * LONG)
        most *= 2;
    return most;
}

// Few threads a lane where there are many lanes, but as many as keep its values in registers.
static int threads_of(const struct gpu_row_division *d, const struct mgx_plan_offer *c)
{
    const int64_t share = (int64_t)d->v * (d->lanes < SPREAD_ROWS ? 2 : 4);
    const int most = most_threads(d, c);
    int threads = 1;
    while (threads < most &&
           (threads * share < d->length || (kept_words(d, c, threads) > most_cached(threads) &&
                                            kept_words(d, c, most) <= most_cached(most))))
        threads *= 2;
    return threads;
}

// Threads down each of the lanes side by side: more where blocks are too few to fill the card.
static int threads_down(const struct gpu_row_division *d, const struct mgx_plan_offer *c)
{
    enum { MOST = 1024, LONG = 8 }; // elements of a thread
    const struct gpu_properties *card = &gpu_machine(c->machine)->device->properties;
    int threads = GPU_ROW_BLOCK / GPU_ROW_COLUMNS;
    while (2 * threads * GPU_ROW_COLUMNS <= MOST &&
           2 * threads * GPU_ROW_COLUMNS <= card->max_threads &&
           d->lanes * threads < (int64_t)card->units * MOST && d->length >= 2 * threads * LONG)
        threads *= 2;
    return threads;
}

void gpu_row_divide(struct gpu_row_division *d, const struct mgx_plan_offer *c,
                    const struct gpu_row *row)
{
    const struct mgx_shape *lead = lead_of(c, row);
    *d = (struct gpu_row_division){.row = row};
    make_loop(&d->outer, c, row, lead, false);
    make_loop(&d->inner, c, row, lead, true);
    d->lanes = d->outer.elements;
    d->length = d->inner.elements;
    d->stages = row->nodes[row->result].stage;
    for (int i = 0; i < row->count; i++)
        if (row->nodes[i].kind == GPU_NODE_FOLD && row->nodes[i].stage + 1 > d->stages)
            d->stages = row->nodes[i].stage + 1;
    const int out_last = d->outer.rank - 1, in_last = d->inner.rank - 1;
    d->columns = out_last >= 0 && in_last >= 0 && d->outer.strides[0][out_last] == 1 &&
                 d->inner.strides[0][in_last] > 1 && d->outer.lens[out_last] >= GPU_ROW_COLUMNS / 4;
    d->v = vector_of(d, c);
    if (d->columns) {
        d->per_block = GPU_ROW_COLUMNS;
        d->threads = threads_down(d, c);
    } else {
        d->threads = threads_of(d, c);
        d->per_block = d->threads > GPU_ROW_BLOCK || (d->lanes < SPREAD_ROWS && d->threads >= 32)
                           ? 1
                           : GPU_ROW_BLOCK / d->threads;
    }
    const int64_t step = (int64_t)d->threads * d->v;
    const int64_t shares = (d->length + step - 1) / step;
    d->shares = shares < INT32_MAX ? (int)shares : INT32_MAX;
    d->cached = kept_words(d, c, d->threads) <=
                most_cached(d->columns ? d->threads * d->per_block : d->threads);
}
