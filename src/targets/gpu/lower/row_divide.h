// SPDX-License-Identifier: MIT
// How the work of a row kernel is divided among threads, and what each of its stages wants.
#pragma once

#include "targets/gpu/lower/rows.h"

enum { GPU_ROW_COLUMNS = 32, GPU_ROW_BLOCK = 256 };

struct gpu_row_division {
    const struct gpu_row *row;
    struct gpu_loop outer, inner; // arrays: lead, result, inputs of the offer
    int64_t lanes, length;
    bool columns;
    int threads, per_block; // threads of a lane, lanes of a block
    int v, shares;          // neighbours at once, groups of them that a thread has
    bool cached;            // full inputs are kept in registers
    int stages;
    int ranged; // threads of a block that leaves the range of its results; 0: it does not
};

void gpu_row_divide(struct gpu_row_division *d, const struct mgx_plan_offer *c,
                    const struct gpu_row *row);
// What stage `stage` computes for every element: the operands of its folds, or the result.
void gpu_row_need(const struct gpu_row_division *d, int stage, bool *needed);
bool gpu_row_is_input(const struct gpu_row_division *d, int k); // of an element each
bool gpu_row_is_kept(const struct gpu_row_division *d, int k);  // in registers from stage to stage
