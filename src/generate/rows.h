// SPDX-License-Identifier: MIT
// Which row of which bundle each track of a run takes.
//
//     as they stand      the tracks are all rows of one bundle
//     one is host        most tracks are rows of a bundle that nobody else holds: the others take rows
//                        that are free there, and rows left over run along with nothing in them
//     anew               a bundle of their own, rows copied together
//
// So texts that come and go among others cost a copy of their own rows, not of all. A host has at most
// twice as many rows as there are tracks, and runs one token at a time: else the rows that run for
// nobody cost more than the copy.
//
// Holds: places are not changed; on success the bundle is held for the caller.
#pragma once

#include "generate/bundle.h"

struct mgx_rows {
    struct mgx_bundle *bundle;
    int64_t count;   // rows of it
    int64_t *track;  // of each row; -1: nobody's
    int64_t *row_of; // of each track
};

enum mgx_status mgx_rows_find(struct mgx_rows *out, struct mgx_bundle **all,
                              const struct mgx_roles *roles, const struct mgx_place *places,
                              int64_t count, int64_t each, struct mgx_diag *diag) MGX_NODISCARD;
// Lets go of the bundle.
void mgx_rows_fini(struct mgx_rows *rows);
