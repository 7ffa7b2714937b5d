// SPDX-License-Identifier: MIT
// Rows that are found by a hash and go by use: a table of what was chosen at run time (choice.h).
//
//     bucket   hash % bucket_count  ->  chain of rows
//     use      newest .. oldest, roughly
//
// A table is small while it has few rows, as a program with a thousand sizes has a thousand of
// them, and is bounded in bytes: the least recently used rows go first, never one that somebody
// holds.
//
// Holds: a row is the first member of what it stands for; its owner makes and destroys it. There is
// no lock here. Cost: look-ups and moves O(1), growing O(rows).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mgx_plan_row {
    struct mgx_plan_row *next; // in its bucket
    uint64_t hash;
    int users;                          // who hold it
    uint64_t used;                      // when it was moved to the front
    size_t bytes;                       // with all that belongs to it
    struct mgx_plan_row *newer, *older; // by use
};

struct mgx_plan_rows {
    struct mgx_plan_row **bucket; // NULL before the first row
    uint32_t bucket_count, count;
    struct mgx_plan_row *newest, *oldest;
    size_t bytes, limit; // of all rows
    uint64_t now;        // look-ups so far
};

// The first row of a hash, and the next one; NULL: there is none.
struct mgx_plan_row *mgx_plan_rows_first(const struct mgx_plan_rows *t, uint64_t hash);
struct mgx_plan_row *mgx_plan_rows_next(const struct mgx_plan_row *row);
// Somebody holds it from now on. A row that was moved to the front not long ago stays where it is:
// its neighbours are not in the caches.
void mgx_plan_rows_hold(struct mgx_plan_rows *t, struct mgx_plan_row *row);
// Lists a row, its hash and bytes filled, that is held by the caller. False when out of memory. The
// rows that have to go for it come out as a chain by `next`.
bool mgx_plan_rows_add(struct mgx_plan_rows *t, struct mgx_plan_row *row,
                       struct mgx_plan_row **gone);
// Empties the table; its rows come out as a chain by `next`. Nobody holds one.
struct mgx_plan_row *mgx_plan_rows_fini(struct mgx_plan_rows *t);
