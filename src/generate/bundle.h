// SPDX-License-Identifier: MIT
// The values that one run left for the next: caches and states, a row for each track of the run.
//
// Holds: a bundle does not change while it has several holders, and lives until the last one lets
// go. Caches with room have `room` rows for tokens, growing ones as many as the track has tokens;
// bundles of models with growing caches have one row. Cost: sharing O(1), making one from rows of
// others O(bytes).
#pragma once

#include "generate/roles.h"

struct mgx_bundle {
    int holders;
    int64_t rows, room;
    struct mgx_bundle **all; // the list of those that live, for counting bytes
    struct mgx_bundle *next, *prev;
    int64_t *lengths; // tokens of each row, as the run left them
    int count;
    struct mgx_tensor values[]; // in the order of roles->carried
};

// Where a row of a track lies; bundle NULL: nowhere, the track has no tokens.
struct mgx_place {
    struct mgx_bundle *bundle;
    int64_t row, length;
};

// Empty, to be filled by the caller.
struct mgx_bundle *mgx_bundle_create(struct mgx_bundle **all, int count, int64_t rows,
                                     int64_t room);            // NULL when out of memory
struct mgx_bundle *mgx_bundle_hold(struct mgx_bundle *bundle); // NULL is allowed in both
void mgx_bundle_release(struct mgx_bundle *bundle);

// Rows of several places, copied into one bundle with this room; a place without tokens gives
// zeros.
enum mgx_status mgx_bundle_gather(struct mgx_bundle **out, struct mgx_bundle **all,
                                  const struct mgx_roles *roles, const struct mgx_place *places,
                                  int64_t count, int64_t room, struct mgx_diag *diag) MGX_NODISCARD;
// The first `length` tokens of a bundle of one row, whose growing caches become shorter views. Of a
// bundle whose only holder the caller is, they are the same bytes, and go on in place.
enum mgx_status mgx_bundle_shorten(struct mgx_bundle **out, const struct mgx_bundle *bundle,
                                   const struct mgx_roles *roles, int64_t length,
                                   struct mgx_diag *diag) MGX_NODISCARD;
// Rows now have `lengths` tokens, whatever the run left: whoever alone holds the bundle says so
// before a run, whose caches with room then go on in place.
void mgx_bundle_tell_lengths(struct mgx_bundle *bundle, const struct mgx_roles *roles);
// Does nobody but this bundle have its values? Then its rows may be written.
bool mgx_bundle_is_own(const struct mgx_bundle *bundle);
// The row becomes a copy of a place, or empty.
void mgx_bundle_put_row(struct mgx_bundle *bundle, const struct mgx_roles *roles, int64_t row,
                        const struct mgx_place *place);
// Is the first axis of a state that of texts? Else its bundles have one row.
bool mgx_carried_has_rows(const struct mgx_carried *c);
// Lengths of a state for so many rows and tokens.
struct mgx_shape mgx_bundle_shape(const struct mgx_carried *c, int64_t rows, int64_t tokens);
size_t mgx_bundles_bytes(const struct mgx_bundle *all);
