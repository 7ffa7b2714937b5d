// SPDX-License-Identifier: MIT
// Inputs by role, and what each of their elements is.
#include "generate/feed.h"

#include "base/size.h"

int64_t mgx_feed_length(const struct mgx_feed *f, int64_t i)
{
    const int64_t track = f->rows->track[i];
    return track < 0 ? 0 : mgx_track_length(f->run->tracks[track]) + f->from;
}

static int64_t token_at(const struct mgx_feed *f, int64_t i, int64_t j)
{
    const int64_t track = f->rows->track[i];
    return track >= 0 && j < f->given ? f->run->tokens[track * f->run->each + f->from + j] : 0;
}

// Of held caches the new tokens stand behind all rows; those that fill up are hidden there.
static int64_t is_token(const struct mgx_feed *f, int64_t i, int64_t j)
{
    if (f->roles->held && j >= f->columns)
        return j - f->columns < f->given;
    return j < mgx_feed_length(f, i) + (f->roles->held ? 0 : f->each);
}

static int64_t position_at(const struct mgx_feed *f, int64_t i, int64_t j)
{
    return mgx_feed_length(f, i) + mgx_min_i64(j, f->given - 1);
}

static int64_t last_of(const struct mgx_feed *f, int64_t i, int64_t j)
{
    (void)j;
    return mgx_feed_length(f, i) + f->each - !f->roles->held;
}

static int64_t total_of(const struct mgx_feed *f, int64_t i, int64_t j)
{
    (void)i, (void)j;
    return f->columns;
}

static int64_t is_later(const struct mgx_feed *f, int64_t i, int64_t j)
{
    (void)i, (void)j;
    return f->columns > f->each;
}

int mgx_feed_inputs(const struct mgx_feed *f, struct mgx_feed_input list[MGX_FEED_MOST])
{
    const struct mgx_roles *r = f->roles;
    const int64_t rows = f->rows->count;
    const struct mgx_feed_input all[MGX_FEED_MOST] = {
        {&r->tokens, rows, f->each, token_at, {0}},
        {&r->mask, rows, f->columns + (r->held ? f->each : 0), is_token, {0}},
        {&r->positions, rows, f->each, position_at, {0}},
        {&r->lengths, rows, 1, last_of, {0}},
        {&r->total, 1, 1, total_of, {0}},
        {&r->branch, 1, 1, is_later, {0}}};
    int count = 0;
    for (int i = 0; i < MGX_FEED_MOST; i++) {
        const struct mgx_role *role = all[i].role;
        const int64_t lens[2] = {role->rank == 1 ? all[i].rows * all[i].columns : all[i].rows,
                                 all[i].columns};
        if (!role->name)
            continue;
        list[count] = all[i];
        list[count++].shape = mgx_shape_make(role->type, role->rank, lens);
    }
    return count;
}

void mgx_feed_write(const struct mgx_feed *f, const struct mgx_feed_input *input, void *to)
{
    for (int64_t i = 0; i < input->rows; i++)
        for (int64_t j = 0; j < input->columns; j++)
            mgx_store_int(input->role->type, to, i * input->columns + j, input->value(f, i, j));
}
