// SPDX-License-Identifier: MIT
// Selected boxes by where they lie; nms_grid.c.
#pragma once

#include "targets/cpu/kernel/image/boxes.h"

struct cpu_nms_grid;

// For `count` boxes of MGX_BOX_FIELDS floats each. NULL: not for such boxes, such a threshold, or
// out of memory; then all of them are asked.
struct cpu_nms_grid *cpu_nms_grid_create(mgx_box_overlaps overlaps, const float *boxes,
                                         int64_t count, float iou);
void cpu_nms_grid_destroy(struct cpu_nms_grid *g);
// False when out of memory.
bool cpu_nms_grid_add(struct cpu_nms_grid *g, const float *box);
// Is any box that was added overlapped by more than the threshold?
bool cpu_nms_grid_overlaps(const struct cpu_nms_grid *g, const float *box);
