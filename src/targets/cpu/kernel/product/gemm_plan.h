// SPDX-License-Identifier: MIT
// What the planning and the running of products share; see gemm.h. Private to gemm*.c.
#pragma once

#include "base/size.h"
#include "targets/cpu/kernel/product/gemm.h"
#include "targets/cpu/kernel/tile/chunk.h"

static const int64_t GROUP_BYTES = 4;

// Packed batches: one matrix per combination of the batch dimensions B really has.
static inline int64_t mgx_gemm_packed_index(const struct mgx_gemm_desc *d,
                                            const int64_t at[MGX_GEMM_BATCH])
{
    int64_t index = 0;
    for (int i = 0; i < MGX_GEMM_BATCH; i++)
        if (d->b_batch[i] && d->batch[i] > 1)
            index = index * d->batch[i] + at[i];
    return index;
}

// Rows of 32 bits of a whole panel: what sums start with, then the depth.
static inline int64_t mgx_gemm_panel_rows(const struct mgx_gemm_plan *plan)
{
    return plan->groups + plan->kernel->starts;
}

static inline bool mgx_gemm_is_narrow(const struct mgx_gemm_plan *plan)
{
    return plan->desc.narrow.kind != MGX_NARROW_NONE;
}

// Whether panels are made in scratch as they come.
static inline bool mgx_gemm_makes_panels(const struct mgx_gemm_plan *plan)
{
    return !plan->desc.packed || mgx_gemm_is_narrow(plan);
}

// Whether rows of A become bytes for narrow panels.
static inline bool mgx_gemm_takes_bytes(const struct mgx_gemm_plan *plan)
{
    return plan->many && plan->desc.narrow.bytes;
}

// Room of a thread for a panel, or in its place for rows of A as narrow panels are multiplied by.
static inline size_t mgx_gemm_narrow_room(const struct mgx_gemm_plan *plan, size_t panel)
{
    if (plan->method != MGX_GEMM_NARROW)
        return panel;
    const int64_t rows = mgx_min_i64(plan->block_rows, plan->desc.m);
    const int64_t all = plan->many ? mgx_ceil_div(rows, plan->many) * plan->many : rows;
    const size_t own = mgx_narrow_scratch(&plan->desc.narrow, all, mgx_gemm_takes_bytes(plan));
    return own > panel ? own : panel;
}

// From one panel of packed B to the next, in bytes; the last may be narrower.
static inline int64_t mgx_gemm_panel_step(const struct mgx_gemm_plan *plan)
{
    if (mgx_gemm_in_chunks(plan->kernel))
        return mgx_chunk_panel_bytes(plan->panel_chunks);
    return plan->kernel->cols * mgx_gemm_panel_rows(plan) * GROUP_BYTES;
}

// What a thread's copy of A holds: several parts in a row read the same rows of A, and the second
// finds them copied.
struct held {
    _Alignas(64) const char *a;
    int64_t row, rows, depth; // `depth` groups of these rows, from the first
};

// Matrices follow each other 64 bytes aligned.
size_t mgx_gemm_packed_step(const struct mgx_gemm_plan *plan);
// Whether blocks of A are copied before they are multiplied.
bool mgx_gemm_copies_a(const struct mgx_gemm_plan *plan);
// Packs `depth` of one panel from `b`, its starts first when it has such; not chunks.
void mgx_gemm_pack_panel(const struct mgx_gemm_plan *plan, const char *b, int64_t depth, int64_t p,
                         char *panel);
