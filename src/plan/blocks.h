// SPDX-License-Identifier: MIT
// Memory of large tensors that are made while a plan runs: blocks that come back, and grow.
//
// A fresh block of some megabytes costs more in page faults than most kernels need to fill it, so
// what is released serves again: blocks are cut from slabs, the narrowest free one that is wide
// enough, and free neighbours grow together, so that tensors of all sizes share the same pages. A
// block also knows how far it is taken; a tensor that ends there may be continued behind itself
// without a copy, which is what a loop that collects its results needs, and a decoder with its
// cache.
//
// Plans of one model share them (plan/shared.h): a thousand sizes would have a thousand slabs else.
// Blocks may outlive the plans (a result in the caller's hands): whoever goes last frees. Slabs
// that nobody uses are kept up to 256 MiB; once the last plan is gone, free bytes of the others
// have no memory behind them.
#pragma once

#include "ir/tensor.h"

enum { MGX_PLAN_BLOCK_BYTES = 1 << 16 }; // smaller tensors are the heap's business

struct mgx_plan_blocks;

struct mgx_plan_blocks *mgx_plan_blocks_create(void);                    // NULL when out of memory
struct mgx_plan_blocks *mgx_plan_blocks_join(struct mgx_plan_blocks *b); // for another plan: b
void mgx_plan_blocks_close(struct mgx_plan_blocks *b); // of each that created or joined; NULL: none

// A packed tensor of uninitialised bytes.
enum mgx_status mgx_plan_block_tensor(struct mgx_plan_blocks *b, const struct mgx_shape *shape,
                                      struct mgx_tensor *out, struct mgx_diag *diag) MGX_NODISCARD;
// The same of a row-major shape, with room for `most` rows along an axis. Where other axes come
// before it, every line of the tensor (what lies under one index of theirs) has that room behind
// it:
//
//     row-major, 2 x 3         0 1 2 3 4 5
//     with room for 5 rows     0 1 2 . . 3 4 5 . .       lines of 5, storage->grows
enum mgx_status mgx_plan_block_growing(struct mgx_plan_blocks *b, const struct mgx_shape *shape,
                                       int axis, int64_t most, struct mgx_tensor *out,
                                       struct mgx_diag *diag) MGX_NODISCARD;
// Takes the next `more` rows along the axis, behind every line, for the caller: who has the tensor
// with them is the caller alone, other owners see nothing of it. False if they are another's, there
// is no room, or the tensor is none that grows along that axis.
bool mgx_plan_block_extend(const struct mgx_tensor *t, int axis, int64_t more);
// Gives the last `fewer` rows back, behind every line: whoever alone has the tensor, which is as
// the last extension left it. False, and nothing happens, where it is not so or does not grow.
bool mgx_plan_block_shorten(const struct mgx_tensor *t, int axis, int64_t fewer);
// A tensor that has room inside its own lengths: `mark`, not 0, says up to where it is filled, in
// the maker's way. Who moves the mark on has what lies behind it; false if another did so before,
// or t lies in no block. One that grows by extending has none.
void mgx_plan_block_mark(const struct mgx_tensor *t, uint64_t mark);
bool mgx_plan_block_advance(const struct mgx_tensor *t, uint64_t from, uint64_t to);
