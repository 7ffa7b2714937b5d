// SPDX-License-Identifier: MIT
// The question of what a model looks at: one token behind made-up caches (hold.h).
#include <assert.h>

#include "generate/card.h"
#include "generate/heard.h"
#include "generate/state_card.h"

// Row `row` of all heads of a cache: numbers between -1 and 1 without a pattern.
static enum mgx_status make_up_row(struct mgx_states *s, const struct mgx_tensor *cache, int k,
                                   int64_t row, struct mgx_diag *diag)
{
    const struct mgx_shape *shape = &cache->shape;
    const size_t size = mgx_type_size(shape->type), bytes = (size_t)shape->lens[3] * size;
    TRY(mgx_card_reserve_host(s->card, bytes, diag));
    for (int64_t h = 0; h < shape->lens[1]; h++) {
        for (int64_t i = 0; i < shape->lens[3]; i++) {
            const uint32_t mixed =
                (uint32_t)(k * 7919 + h * 613 + row * 101 + i + 1) * UINT32_C(2654435761);
            mgx_store_double(shape->type, s->card->host, i, (double)(mixed >> 8) * 0x1p-23 - 1);
        }
        char *to =
            (char *)cache->data + (size_t)(h * shape->strides[1] + row * shape->strides[2]) * size;
        TRY(s->card->memory->copy_in(s->card->queue, to, s->card->host, bytes, diag));
        TRY(s->card->memory->wait(s->card->queue, diag));
    }
    return MGX_OK;
}

// States of fixed lengths stay zeros, as before a text.
static enum mgx_status make_up(struct mgx_states *s, const struct mgx_bundle *b, int64_t rows,
                               struct mgx_diag *diag)
{
    enum { SOMETHING = 0x3f }; // 0.75 as float, 1.8 as half
    for (int k = 0; k < b->count; k++) {
        const struct mgx_tensor *cache = &b->values[k];
        if (s->source.roles->carried[k].kind == MGX_CARRIED_FIXED)
            continue;
        TRY(s->card->memory->fill(s->card->queue, cache->data, SOMETHING,
                                  mgx_shape_bytes(&cache->shape), diag));
        for (int64_t row = 0; row < rows; row++)
            TRY(make_up_row(s, cache, k, row, diag));
    }
    return MGX_OK;
}

static enum mgx_status try_bundle(struct mgx_states *s, struct mgx_bundle *b,
                                  struct mgx_source *about, int64_t length, float *scores,
                                  struct mgx_diag *diag)
{
    int64_t first = 0;
    const struct mgx_rows rows = {.bundle = b, .count = 1, .track = &first, .row_of = &first};
    struct mgx_track *track;
    TRY(mgx_track_create(&track, s, diag));
    track->about = mgx_source_hold(about);
    mgx_place_set(&track->at, (struct mgx_place){b, 0, length});
    const struct mgx_track_run run = {
        &track, 1, 1, &(int64_t){s->source.roles->words - 1}, &scores, 1, s->source.roles->words};
    const enum mgx_status status = mgx_card_run_rows(s, &run, &rows, diag);
    mgx_track_destroy(track);
    return status;
}

enum mgx_status mgx_card_try(struct mgx_states *s, int64_t rows, int64_t room, float *scores,
                             struct mgx_diag *diag)
{
    const struct mgx_roles *r = s->source.roles;
    struct mgx_source *about = NULL;
    const struct mgx_slab slab = {s->card->memory, s->card->queue, s->source.roles};
    const struct mgx_place nowhere = {0};
    struct mgx_bundle *b;
    assert(rows > 0 && rows <= room);
    TRY(mgx_slab_gather(&b, &s->bundles, &slab, &nowhere, 1, room, diag));
    enum mgx_status status = make_up(s, b, rows, diag);
    status = mgx_card_settle(s->card, status, diag);
    if (status == MGX_OK && r->given_count)
        status = mgx_heard_make_up(&about, r, room == rows, diag);
    if (status == MGX_OK)
        status = try_bundle(s, b, about, rows, scores, diag);
    mgx_source_release(about);
    mgx_bundle_release(b);
    return status;
}
