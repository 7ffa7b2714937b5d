// SPDX-License-Identifier: MIT
// The arithmetic of resize: places, taps and the passes along the axes.
#pragma once

#include "op/reference/gemm.h"

struct mgx_resize {
    struct mgx_doubles scales;
    struct mgx_ints sizes;
    const char *nearest_mode, *mode, *coordinate_transformation_mode;
    double cubic_coeff_a;
    struct mgx_doubles roi;
    bool antialias, exclude_outside;
    double extrapolation_value;
};

enum mgx_resize_mode { MGX_RESIZE_NEAREST, MGX_RESIZE_LINEAR, MGX_RESIZE_CUBIC };

struct mgx_resize_axis {
    int64_t in, out;
    double up, down;   // the scale as a ratio: out elements for in elements
    double start, end; // of roi
};

// The attributes with their names resolved.
struct mgx_resize_how {
    const struct mgx_resize *attr;
    enum mgx_resize_mode mode;
    double (*place)(const struct mgx_resize_axis *a, int64_t o); // of output o in the input
    double (*round)(double x);                                   // nearest
    bool crops;                                                  // tf_crop_and_resize
};

// Inputs first .. first + count, clamped when they are read, and their weights.
struct mgx_resize_taps {
    int64_t first, count;
    double *weights;
};

// False, and the offending name, if a mode is unknown.
bool mgx_resize_how_find(const struct mgx_resize *a, enum mgx_type type, struct mgx_resize_how *out,
                         const char **wrong);
// How many taps every output of an axis has, and those of output o; nearest has none.
int64_t mgx_resize_tap_count(const struct mgx_resize_how *how, const struct mgx_resize_axis *a);
void mgx_resize_weigh(const struct mgx_resize_how *how, const struct mgx_resize_axis *a, int64_t o,
                      struct mgx_resize_taps *t);
// Is an output's place outside of the input? (crops)
bool mgx_resize_is_outside(const struct mgx_resize_how *how, const struct mgx_resize_axis *a,
                           int64_t o);
// Fills c->out from c->in[0]; neither is empty.
enum mgx_status mgx_resize_run(struct mgx_compute_call *c, const struct mgx_resize_how *how,
                               const struct mgx_resize_axis *axes) MGX_NODISCARD;
