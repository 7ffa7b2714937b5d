// SPDX-License-Identifier: MIT
// Does a box overlap any of a list of others by more than a threshold? Boxes lie coordinate by
// coordinate, a vector of them at a time.
//
//     both = max(0, width of the common part) * max(0, its height)
//     both / (area + area of the other - both) > iou, in floats, in this order
//
// Only boxes with an area above 0 overlap anything: the caller keeps others out.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"

enum mgx_box_side { MGX_BOX_LOW_X, MGX_BOX_LOW_Y, MGX_BOX_HIGH_X, MGX_BOX_HIGH_Y, MGX_BOX_AREA };
enum { MGX_BOX_FIELDS = 5 };

// `side` has a list of `count` floats per field.
typedef bool (*mgx_box_overlaps)(float *const side[MGX_BOX_FIELDS], int64_t count,
                                 const float box[MGX_BOX_FIELDS], float iou);

struct mgx_box_kernel {
    struct mgx_kernel base;
    mgx_box_overlaps run;
};

MGX_KERNEL_KIND(box)
