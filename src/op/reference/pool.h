// SPDX-License-Identifier: MIT
// What the poolings share: attributes, shape rule, walking all places of all planes.
#pragma once

#include "op/reference/region.h"

struct mgx_pool_attr {
    struct mgx_ints padding, stride, lengths, dilations;
    int64_t padding_mode;
    bool ceil_mode, global; // global: the window is the whole plane
};

// Of an instruction: the attributes that its operator has, by name.
struct mgx_pool_attr mgx_pool_of(const struct mgx_ins *ins);
// Is there one window for each plane, the whole of it?
bool mgx_pool_sees_all(const struct mgx_ins *ins);
enum mgx_status mgx_pool_shape(struct mgx_shape_call *c, const struct mgx_pool_attr *a,
                               struct mgx_shape *out) MGX_NODISCARD;

// Walks planes (batch and channel) and places in row-major order of the result.
struct mgx_pool_walk {
    int rank; // spatial
    struct mgx_window axis[MGX_MAX_RANK];
    int64_t planes, places, plane; // plane: elements of one input plane
};

void mgx_pool_walk_init(struct mgx_pool_walk *w, const struct mgx_pool_attr *a,
                        const struct mgx_shape *in, const struct mgx_shape *out);
// Next place in row-major order; at[] starts as zeros.
void mgx_pool_step(const struct mgx_pool_walk *w, int64_t *at);
