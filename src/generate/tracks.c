// SPDX-License-Identifier: MIT
// Tracks: where their rows lie, copies, ways back; and the rows of a run's tracks.
#include "generate/tracks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

// --- tracks ---

void mgx_place_set(struct mgx_place *place, struct mgx_place by)
{
    mgx_bundle_hold(by.bundle);
    mgx_bundle_release(place->bundle);
    *place = by;
}

enum mgx_status mgx_track_create(struct mgx_track **out, struct mgx_states *states,
                                 struct mgx_diag *diag)
{
    struct mgx_track *track = calloc(1, sizeof *track);
    if (!track)
        return mgx_fail_memory(diag);
    track->states = states;
    *out = track;
    return MGX_OK;
}

void mgx_track_destroy(struct mgx_track *track)
{
    if (!track)
        return;
    mgx_place_set(&track->at, (struct mgx_place){0});
    for (int i = 0; i < track->mark_count; i++)
        mgx_place_set(&track->marks[i], (struct mgx_place){0});
    mgx_source_release(track->about);
    free(track);
}

enum mgx_status mgx_track_copy(struct mgx_track **out, const struct mgx_track *track,
                               struct mgx_diag *diag)
{
    TRY(mgx_track_create(out, track->states, diag));
    (*out)->about = mgx_source_hold(track->about);
    mgx_place_set(&(*out)->at, track->at);
    for (int i = 0; i < track->mark_count; i++)
        mgx_place_set(&(*out)->marks[i], track->marks[i]);
    (*out)->mark_count = track->mark_count;
    return MGX_OK;
}

int64_t mgx_track_length(const struct mgx_track *track)
{
    return track->at.length;
}

// --- what it is about ---

bool mgx_track_is_about(const struct mgx_track *track)
{
    return track->about;
}

enum mgx_status mgx_track_set_about(struct mgx_track *track, struct mgx_source *source,
                                    struct mgx_diag *diag)
{
    TRY(mgx_track_rewind(track, 0, diag));
    mgx_source_hold(source);
    mgx_source_release(track->about);
    track->about = source;
    return MGX_OK;
}

// --- going back ---

static void forget_marks_after(struct mgx_track *track, int64_t length)
{
    while (track->mark_count && track->marks[track->mark_count - 1].length > length)
        mgx_place_set(&track->marks[--track->mark_count], (struct mgx_place){0});
}

bool mgx_track_is_marked(const struct mgx_track *track)
{
    return track->mark_count && track->marks[track->mark_count - 1].length >= track->at.length;
}

void mgx_track_mark(struct mgx_track *track, struct mgx_place place)
{
    if (!place.length ||
        (track->mark_count && track->marks[track->mark_count - 1].length >= place.length))
        return;
    if (track->mark_count == MGX_TRACK_MARKS) {
        mgx_place_set(&track->marks[0], (struct mgx_place){0});
        memmove(&track->marks[0], &track->marks[1], (MGX_TRACK_MARKS - 1) * sizeof track->marks[0]);
        track->marks[--track->mark_count] = (struct mgx_place){0};
    }
    mgx_place_set(&track->marks[track->mark_count++], place);
}

enum mgx_status mgx_track_rewind(struct mgx_track *track, int64_t length, struct mgx_diag *diag)
{
    const struct mgx_roles *r = track->states->source.roles;
    assert(length >= 0);
    if (length >= track->at.length)
        return MGX_OK;
    if (length == 0 || r->has_kind[MGX_CARRIED_FIXED]) {
        forget_marks_after(track, length);
        mgx_place_set(&track->at, track->mark_count ? track->marks[track->mark_count - 1]
                                                    : (struct mgx_place){0});
        return MGX_OK;
    }
    if (r->has_kind[MGX_CARRIED_GROWING]) {
        struct mgx_bundle *shorter = NULL;
        TRY(mgx_bundle_shorten(&shorter, track->at.bundle, r, length, diag));
        mgx_bundle_release(track->at.bundle);
        track->at.bundle = shorter;
    }
    track->at.length = length;
    return MGX_OK;
}

// --- the tracks of a run ---

int64_t mgx_run_longest(const struct mgx_track_run *run)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < run->count; i++)
        longest = mgx_max_i64(longest, run->tracks[i]->at.length);
    return longest;
}

enum mgx_status mgx_run_rows(struct mgx_states *s, const struct mgx_track_run *run,
                             const struct mgx_slab *slab, int64_t needed, struct mgx_rows *out,
                             struct mgx_diag *diag)
{
    struct mgx_place *places = calloc((size_t)run->count, sizeof *places);
    *out = (struct mgx_rows){.bundle = NULL};
    if (!places)
        return mgx_fail_memory(diag);
    for (int64_t i = 0; i < run->count; i++)
        places[i] = run->tracks[i]->at;
    const struct mgx_rows_wanted wanted = {.roles = s->source.roles,
                                           .slab = slab,
                                           .places = places,
                                           .count = run->count,
                                           .each = run->each,
                                           .needed = needed};
    const enum mgx_status status = mgx_rows_find(out, &s->bundles, &wanted, diag);
    free(places);
    return status;
}
