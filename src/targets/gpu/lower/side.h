// SPDX-License-Identifier: MIT
// Element-wise steps that have nothing to do with each other, one behind the other, are one launch:
// side_bundle.c says when.
#pragma once

#include "targets/gpu/emit/loop.h"
#include "targets/gpu/lower/lower.h"

// How a step's threads share its elements: `v` neighbours each.
struct gpu_share {
    struct gpu_loop loop;
    int v;
};

// Why element-wise work is none of gpu::pointwise's; NULL: *out is how it is shared.
const char *gpu_pointwise_share(const struct mgx_plan_offer *c, struct gpu_share *out);
// "FUNCTION void part<number>(out, in0, ..., int block)", which calls the function `body<number>`.
void gpu_pointwise_emit_part(struct mgx_str *out, const struct mgx_plan_offer *c,
                             const struct gpu_share *share, int number);

// Parts of a concat are made side by side, where nobody reads them sooner, and sums that a product may
// do itself stand beside it; to be said before other bundles are made, as steps change places.
void gpu_side_settle(struct mgx_plan *plan);
// Makes bundles of what no other one has; their kernels.
enum mgx_status gpu_side_bundles(struct mgx_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status gpu_side_bundles_finish(struct mgx_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;
