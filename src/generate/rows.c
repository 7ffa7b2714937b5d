// SPDX-License-Identifier: MIT
// Rows for tracks: a host among their bundles, or a bundle anew.
#include "generate/rows.h"

#include <assert.h>
#include <stdlib.h>

#include "base/size.h"

struct search {
    struct mgx_rows_wanted wanted;
    struct mgx_rows *out;
};

static int64_t members_of(const struct search *s, const struct mgx_bundle *b)
{
    int64_t members = 0;
    for (int64_t i = 0; i < s->wanted.count; i++)
        members += s->wanted.places[i].bundle == b;
    return members;
}

// All its rows, each once and in order?
static bool is_whole(const struct search *s, const struct mgx_bundle *b)
{
    for (int64_t i = 0; i < s->wanted.count; i++)
        if (s->wanted.places[i].bundle != b || s->wanted.places[i].row != i)
            return false;
    return b->rows == s->wanted.count;
}

// Does each track stand at the end of what its row has?
static bool is_at_end(const struct search *s, const struct mgx_bundle *b)
{
    for (int64_t i = 0; i < s->wanted.count; i++)
        if (s->wanted.places[i].length != b->lengths[s->wanted.places[i].row])
            return false;
    return true;
}

// May the other tracks take rows of it that are free?
static bool may_host(const struct search *s, const struct mgx_bundle *b)
{
    const bool own = b->holders == members_of(s, b);
    if (is_whole(s, b))
        return !s->wanted.slab || own ||
               (is_at_end(s, b) && !s->wanted.roles->has_kind[MGX_CARRIED_FIXED]);
    return own && s->wanted.roles->takes_many && s->wanted.each == 1 &&
           b->rows >= s->wanted.count && b->rows <= 2 * s->wanted.count &&
           (s->wanted.slab || mgx_bundle_is_own(b));
}

// The bundle of most tracks that may; NULL: none.
static struct mgx_bundle *find_host(const struct search *s)
{
    struct mgx_bundle *best = NULL;
    int64_t most = 0;
    for (int64_t i = 0; i < s->wanted.count; i++) {
        struct mgx_bundle *b = s->wanted.places[i].bundle;
        if (!b || b == best ||
            (s->wanted.roles->has_kind[MGX_CARRIED_ROOM] && b->room < s->wanted.needed))
            continue;
        const int64_t members = members_of(s, b);
        if (members > most && may_host(s, b)) {
            best = b;
            most = members;
        }
    }
    return best;
}

// False where two tracks are the same row: one went out of the other.
static bool seat_members(const struct search *s, const struct mgx_bundle *host)
{
    struct mgx_rows *r = s->out;
    for (int64_t i = 0; i < s->wanted.count; i++) {
        const struct mgx_place *p = &s->wanted.places[i];
        if (p->bundle != host)
            continue;
        if (r->track[p->row] >= 0)
            return false;
        r->track[p->row] = i;
        r->row_of[i] = p->row;
    }
    return true;
}

static enum mgx_status put_row(const struct search *s, struct mgx_bundle *host, int64_t row,
                               const struct mgx_place *place, struct mgx_diag *diag)
{
    if (s->wanted.slab)
        return mgx_slab_put_row(s->wanted.slab, host, row, place, diag);
    mgx_bundle_put_row(host, s->wanted.roles, row, place);
    return MGX_OK;
}

static enum mgx_status seat_others(const struct search *s, struct mgx_bundle *host,
                                   struct mgx_diag *diag)
{
    struct mgx_rows *r = s->out;
    int64_t row = 0;
    for (int64_t i = 0; i < s->wanted.count; i++) {
        if (s->wanted.places[i].bundle == host)
            continue;
        while (r->track[row] >= 0)
            row++;
        assert(row < host->rows);
        r->track[row] = i;
        r->row_of[i] = row;
        TRY(put_row(s, host, row, &s->wanted.places[i], diag));
    }
    return MGX_OK;
}

// Tracks that went back, came or left: the caches go on behind the tokens that each row has now,
// where nobody else holds them; the run copies else.
static void tell_lengths(const struct search *s, struct mgx_bundle *b)
{
    const struct mgx_rows *r = s->out;
    bool changed = false;
    if (b->holders != members_of(s, b))
        return;
    for (int64_t i = 0; i < r->count; i++) {
        const int64_t length = r->track[i] < 0 ? 0 : s->wanted.places[r->track[i]].length;
        changed |= b->lengths[i] != length;
        b->lengths[i] = length;
    }
    if (changed && !s->wanted.slab)
        mgx_bundle_tell_lengths(b, s->wanted.roles);
}

static bool make_lists(struct mgx_rows *r, int64_t rows, int64_t tracks)
{
    free(r->track);
    free(r->row_of);
    r->count = rows;
    r->track = malloc((size_t)rows * sizeof *r->track);
    r->row_of = malloc((size_t)tracks * sizeof *r->row_of);
    for (int64_t i = 0; r->track && i < rows; i++)
        r->track[i] = -1;
    return r->track && r->row_of;
}

static int64_t room_for(const struct search *s)
{
    // Copies to go back to have as much room as their text is long: no length for a plan.
    const bool doubled = !s->wanted.roles->has_kind[MGX_CARRIED_FIXED];
    int64_t room = s->wanted.roles->first_room;
    for (int64_t i = 0; i < s->wanted.count && doubled; i++)
        if (s->wanted.places[i].bundle)
            room = mgx_max_i64(room, s->wanted.places[i].bundle->room);
    while (room < s->wanted.needed)
        room *= 2;
    return room;
}

static enum mgx_status gather(const struct search *s, struct mgx_bundle **all,
                              struct mgx_diag *diag)
{
    struct mgx_rows *r = s->out;
    if (!make_lists(r, s->wanted.count, s->wanted.count))
        return mgx_fail_memory(diag);
    for (int64_t i = 0; i < s->wanted.count; i++)
        r->track[i] = r->row_of[i] = i;
    const struct mgx_rows_wanted *w = &s->wanted;
    return w->slab
               ? mgx_slab_gather(&r->bundle, all, w->slab, w->places, w->count, room_for(s), diag)
               : mgx_bundle_gather(&r->bundle, all, w->roles, w->places, w->count, room_for(s),
                                   diag);
}

enum mgx_status mgx_rows_find(struct mgx_rows *out, struct mgx_bundle **all,
                              const struct mgx_rows_wanted *wanted, struct mgx_diag *diag)
{
    const struct search s = {*wanted, out};
    *out = (struct mgx_rows){.bundle = NULL};
    struct mgx_bundle *host = find_host(&s);
    if (host && !make_lists(out, host->rows, wanted->count))
        return mgx_fail_memory(diag);
    if (!host || !seat_members(&s, host))
        return gather(&s, all, diag);
    TRY(seat_others(&s, host, diag));
    tell_lengths(&s, host);
    out->bundle = mgx_bundle_hold(host);
    return MGX_OK;
}

void mgx_rows_fini(struct mgx_rows *rows)
{
    mgx_bundle_release(rows->bundle);
    free(rows->track);
    free(rows->row_of);
    *rows = (struct mgx_rows){.bundle = NULL};
}
