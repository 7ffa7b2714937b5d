// SPDX-License-Identifier: MIT
// Which row of which bundle each track of a run takes.
//
//     as they stand      the tracks are all rows of one bundle
//     one is host        most tracks are rows of a bundle that nobody else holds: the others take rows
//                        that are free there, and rows left over run along with nothing in them
//     anew               a bundle of their own, rows copied together
//
// So texts that come and go among others cost a copy of their own rows, not of all. A host has at
// most twice as many rows as there are tracks, and runs one token at a time: else the rows that run
// for nobody cost more than the copy.
//
// On a card (slab.h) a bundle is written behind the tokens of all who hold it: tracks may stand
// where they are when each is at its row's end, or when nobody else holds the bundle; where states
// of fixed lengths are in it, only then.
//
// Holds: places are not changed; on success the bundle is held for the caller.
#pragma once

#include "generate/slab.h"

struct mgx_rows {
    struct mgx_bundle *bundle;
    int64_t count;   // rows of it
    int64_t *track;  // of each row; -1: nobody's
    int64_t *row_of; // of each track
};

struct mgx_rows_wanted {
    const struct mgx_roles *roles;
    const struct mgx_slab *slab; // where bundles lie in a card's memory; else NULL
    const struct mgx_place *places;
    int64_t count, each; // tracks, and tokens by which they go on
    int64_t needed;      // rows for tokens that caches with room should have
};
enum mgx_status mgx_rows_find(struct mgx_rows *out, struct mgx_bundle **all,
                              const struct mgx_rows_wanted *wanted,
                              struct mgx_diag *diag) MGX_NODISCARD;
// Lets go of the bundle.
void mgx_rows_fini(struct mgx_rows *rows);
