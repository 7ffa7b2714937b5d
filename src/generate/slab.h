// SPDX-License-Identifier: MIT
// Bundles of caches with room, and of states of fixed lengths, that lie in a card's memory.
//
//     slab    states of fixed lengths, side by side; {rows, heads, room, size} of every cache
//     rows    t t t t t . . .      lengths[i] is the frontier: whatever lies behind it is nobody's
//               ^ another track may end earlier in the same row
//
// A run writes its rows where they belong. So a bundle here does change, but only behind the tokens
// of whoever holds it: it goes on in place at the frontier, or anywhere for those who hold it
// alone. States of fixed lengths change as a whole: a bundle that has some goes on in place only
// for those who hold it alone, and a way back to it is a copy.
//
// Holds: bytes behind the frontier are finite numbers. Cost of gathering: a fill of the slab, and a
// copy for every head of every row.
#pragma once

#include "generate/bundle.h"

// Rows of several places in one new bundle, done when this returns.
struct mgx_slab {
    const struct mgx_memory *memory;
    struct mgx_queue *queue;
    const struct mgx_roles *roles;
};
enum mgx_status mgx_slab_gather(struct mgx_bundle **out, struct mgx_bundle **all,
                                const struct mgx_slab *slab, const struct mgx_place *places,
                                int64_t count, int64_t room, struct mgx_diag *diag) MGX_NODISCARD;

// A row becomes a copy of a place, behind whose tokens it has what it had; done when this returns.
enum mgx_status mgx_slab_put_row(const struct mgx_slab *slab, struct mgx_bundle *bundle,
                                 int64_t row, const struct mgx_place *place,
                                 struct mgx_diag *diag) MGX_NODISCARD;

// The states of fixed lengths of a bundle: where they begin, and how many bytes they are.
void *mgx_slab_fixed(const struct mgx_slab *slab, const struct mgx_bundle *bundle, size_t *bytes);
// So many bytes of a memory, as a tensor to cut views from.
enum mgx_status mgx_slab_bytes(struct mgx_tensor *out, const struct mgx_memory *memory,
                               size_t bytes, struct mgx_diag *diag) MGX_NODISCARD;
size_t mgx_slab_align(size_t at); // where the next view may begin
