// SPDX-License-Identifier: MIT
// Where the samples of a region of interest lie; see roialign.c for what becomes of them.
//
// Places are computed in the precision of the regions, in the definition's order of operations: a
// place 200 elements from the origin that was rounded to a float is 1e-5 of a step off, and all
// implementations are off alike.
#pragma once

#include "op/rule/rule.h"

enum mgx_roi_mode { MGX_ROI_AVERAGE, MGX_ROI_MAX };
enum { MGX_ROI_SAMPLES_MAX = 1 << 24 }; // of one bin

struct mgx_roialign {
    const char *coordinate_transformation_mode;
    int64_t mode, output_height, output_width, sampling_ratio;
    double spatial_scale;
};

// One axis of a region.
struct mgx_roi_span {
    bool single; // of float regions
    double start, bin;
    int64_t grid, length; // samples per bin; elements of the axis
};

// A sample's neighbours along one axis; weight 0 on both outside of -1 .. length.
struct mgx_roi_pair {
    int64_t low, high;
    double low_weight, high_weight;
};

// The span from `from` to `to` over `bins` bins and an axis of `length`. False if it is not finite
// or asks for too many samples.
bool mgx_roi_span_init(struct mgx_roi_span *s, const struct mgx_roialign *a, bool single,
                       double from, double to, int64_t bins, int64_t length);
struct mgx_roi_pair mgx_roi_sample(const struct mgx_roi_span *s, int64_t bin, int64_t i);
