// SPDX-License-Identifier: MIT
// Memory of large tensors that are made while a plan runs: blocks that come back, and grow.
//
// A fresh block of some megabytes costs more in page faults than most kernels need to fill it, so
// what is released serves again: blocks are cut from slabs, the narrowest free one that is wide
// enough, and free neighbours grow together, so that tensors of all sizes share the same pages. A
// block also knows how many of its bytes are taken; a tensor that ends there may be continued
// behind itself without a copy, which is what a loop that collects its results needs.
//
// Blocks may outlive the plan (a result in the caller's hands): whoever goes last frees. Slabs that
// nobody uses are kept up to 256 MiB; once the plan is gone, free bytes of the others have no
// memory behind them.
#pragma once

#include "ir/tensor.h"

enum { MGX_PLAN_BLOCK_BYTES = 1 << 19 }; // smaller tensors are the heap's business

struct mgx_plan_blocks;

struct mgx_plan_blocks *mgx_plan_blocks_create(void); // NULL when out of memory
void mgx_plan_blocks_close(struct mgx_plan_blocks *b);

// A tensor of uninitialised bytes with room for `capacity` bytes in all.
enum mgx_status mgx_plan_block_tensor(struct mgx_plan_blocks *b, const struct mgx_shape *shape,
                                      size_t capacity, struct mgx_tensor *out,
                                      struct mgx_diag *diag) MGX_NODISCARD;
// Takes `more` bytes behind the packed tensor for the caller; false if they are another's, or there
// is no room.
bool mgx_plan_block_extend(const struct mgx_tensor *t, size_t more);
