// SPDX-License-Identifier: MIT
// What candidates for one product are timed on: buffers, and a graph of launches one after the other,
// with weights that differ from launch to launch as those of layers do.
#pragma once

#include "ir/shape.h"
#include "targets/gpu/device/device.h"

enum { GPU_RACE_WEIGHTS = 8, GPU_RACE_LAUNCHES = 20 };

struct
    gpu_race_bytes { // of operands, of the result, of another operand of the epilogue, of scratch
    size_t a, b, out, extra, work;
    bool turns; // b is a constant: many of them
};

struct gpu_race {
    struct gpu_device *device;
    bool made;
    void *a, *b, *out, *extra, *work; // on the card
    int weights;                      // that lie one behind the other at b
    size_t weight_bytes;
    void *stream, *graph;
};

// One launch of a candidate, `turn` after others.
typedef bool (*gpu_race_launch)(void *user, const struct gpu_race *race, int turn,
                                struct mgx_diag *diag);

// Bytes for a value of this shape, and room behind it.
static inline size_t gpu_race_span(const struct mgx_shape *s)
{
    return (size_t)mgx_shape_space(s) * mgx_type_size(s->type) + 256;
}
// Once; false when there is no room, now and from then on.
bool gpu_race_make(struct gpu_race *race, struct gpu_device *device,
                   const struct gpu_race_bytes *bytes, struct mgx_diag *diag);
void gpu_race_fini(struct gpu_race *race); // also of one that was never made
// The b of a launch.
void *gpu_race_weights(const struct gpu_race *race, int turn);
// Launches once, for what is loaded then, and keeps a graph of launches; false: that failed.
bool gpu_race_begin(struct gpu_race *race, gpu_race_launch launch, void *user,
                    struct mgx_diag *diag);
void gpu_race_run(struct gpu_race *race);
void gpu_race_end(struct gpu_race *race);
