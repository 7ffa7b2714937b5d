// SPDX-License-Identifier: MIT
// How much work is divided among threads, and along which side. Private to the kernels built on
// tile.h.
#pragma once

#include "base/size.h"

// Operations a byte read from L3 or memory is worth.
enum { MGX_WORK_PER_BYTE = 4 };

// Tasks for `work` operations: 1 when dividing does not pay (10 us of work or so), else a
// multiple of the threads, with slack for threads that lose their CPU for a while.
int64_t mgx_split_tasks(double work, int threads);

// Cuts an output of rows x panels into about `parts` rectangles so that the least is read: each
// reads its rows' share of a_size and its panels' share of b_size.
void mgx_split_output(int64_t rows, int64_t panels, double a_size, double b_size, int64_t parts,
                      int *row_parts, int *panel_parts);
