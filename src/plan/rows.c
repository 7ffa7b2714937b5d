// SPDX-License-Identifier: MIT
// See rows.h.
#include "plan/rows.h"

#include <assert.h>
#include <stdlib.h>

enum {
    FEWEST = 64,   // buckets
    RECENT = 4096, // look-ups after which a row is moved to the front again
};

// --- in buckets ---

static struct mgx_plan_row **bucket_of(const struct mgx_plan_rows *t, uint64_t hash)
{
    return &t->bucket[hash % t->bucket_count];
}

// The first of a chain that has this hash.
static struct mgx_plan_row *skip(struct mgx_plan_row *row, uint64_t hash)
{
    while (row && row->hash != hash)
        row = row->next;
    return row;
}

struct mgx_plan_row *mgx_plan_rows_first(const struct mgx_plan_rows *t, uint64_t hash)
{
    return t->bucket ? skip(*bucket_of(t, hash), hash) : NULL;
}

struct mgx_plan_row *mgx_plan_rows_next(const struct mgx_plan_row *row)
{
    return skip(row->next, row->hash);
}

// Twice as many buckets, or the first ones; without memory for them the chains grow longer.
static bool grow(struct mgx_plan_rows *t)
{
    const uint32_t count = t->bucket ? 2 * t->bucket_count : FEWEST;
    struct mgx_plan_row **bucket = count > t->bucket_count ? calloc(count, sizeof *bucket) : NULL;
    if (!bucket)
        return t->bucket != NULL;
    for (struct mgx_plan_row *row = t->newest; row; row = row->older) {
        row->next = bucket[row->hash % count];
        bucket[row->hash % count] = row;
    }
    free(t->bucket);
    t->bucket = bucket;
    t->bucket_count = count;
    return true;
}

// --- by use ---

static void unlink_use(struct mgx_plan_rows *t, struct mgx_plan_row *row)
{
    *(row->newer ? &row->newer->older : &t->newest) = row->older;
    *(row->older ? &row->older->newer : &t->oldest) = row->newer;
}

static void link_newest(struct mgx_plan_rows *t, struct mgx_plan_row *row)
{
    assert(!t->newest == !t->oldest && (!t->newest || !t->newest->newer));
    row->newer = NULL;
    row->older = t->newest;
    *(t->newest ? &t->newest->newer : &t->oldest) = row;
    t->newest = row;
    row->used = t->now;
}

void mgx_plan_rows_hold(struct mgx_plan_rows *t, struct mgx_plan_row *row)
{
    if (++t->now - row->used > RECENT) {
        unlink_use(t, row);
        link_newest(t, row);
    }
    row->users++;
}

// --- in and out ---

static void take_out(struct mgx_plan_rows *t, struct mgx_plan_row *row)
{
    struct mgx_plan_row **at = bucket_of(t, row->hash);
    while (*at != row)
        at = &(*at)->next;
    *at = row->next;
    unlink_use(t, row);
    assert(!row->users && t->bytes >= row->bytes && t->count);
    t->bytes -= row->bytes;
    t->count--;
}

static struct mgx_plan_row *make_room(struct mgx_plan_rows *t)
{
    struct mgx_plan_row *gone = NULL;
    for (struct mgx_plan_row *row = t->oldest, *newer; row && t->bytes > t->limit; row = newer) {
        newer = row->newer;
        if (row->users)
            continue;
        take_out(t, row);
        row->next = gone;
        gone = row;
    }
    return gone;
}

bool mgx_plan_rows_add(struct mgx_plan_rows *t, struct mgx_plan_row *row,
                       struct mgx_plan_row **gone)
{
    *gone = NULL;
    if (t->count >= t->bucket_count && !grow(t))
        return false;
    struct mgx_plan_row **at = bucket_of(t, row->hash);
    row->next = *at;
    *at = row;
    t->bytes += row->bytes;
    t->count++;
    link_newest(t, row);
    row->users++;
    *gone = make_room(t);
    return true;
}

struct mgx_plan_row *mgx_plan_rows_fini(struct mgx_plan_rows *t)
{
    struct mgx_plan_row *all = NULL;
    for (struct mgx_plan_row *row = t->newest; row; row = row->older) {
        assert(!row->users && (!row->older || row->older->newer == row));
        row->next = all;
        all = row;
    }
    free(t->bucket);
    *t = (struct mgx_plan_rows){.limit = t->limit};
    return all;
}
