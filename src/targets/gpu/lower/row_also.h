// SPDX-License-Identifier: MIT
// A row's kernel that leaves its results once more, narrow: row_bundle.c says when.
#pragma once

#include "targets/gpu/lower/rows.h"

struct mgx_source;

// Parts of the text of a row whose `also` is this, an element-wise instruction of one operand: the function
// also_body (or why there is none), the kernel's head, and d.v[k], made of what c.v[k] stores.
const char *gpu_row_also_body(struct mgx_source *s, const struct mgx_ins *also);
void gpu_row_also_head(struct mgx_str *out, const struct mgx_ins *also, enum mgx_type result,
                       const enum mgx_type *in, int in_count);
void gpu_row_also_value(struct mgx_str *out, const struct mgx_ins *also, enum mgx_type result);

// Takes the offer of a fused reduction with a kernel that has one more parameter: where `also` of its results goes.
enum mgx_plan_answer gpu_row_take_twice(struct mgx_plan_offer *c, const struct mgx_ins *also);

// Makes bundles of rows and what makes their results narrow; their kernels.
enum mgx_status gpu_row_bundles(struct mgx_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status gpu_row_bundles_finish(struct mgx_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;
