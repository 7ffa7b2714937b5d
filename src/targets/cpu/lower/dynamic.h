// SPDX-License-Identifier: MIT
// Kernels for operators whose sizes are known only at run time.
#pragma once

#include "targets/cpu/cpu.h"

// mgx_eval.offer of a context: computes the operator by a kernel if one takes these shapes.
enum mgx_status cpu_dynamic_offer(void *context, struct mgx_compute_call *c,
                                  bool *done) MGX_NODISCARD;

// mgx_eval.create of a context: large tensors share the plan's slabs (blocks.h).
enum mgx_status cpu_dynamic_create(void *context, const struct mgx_shape *shape,
                                   struct mgx_tensor *out, struct mgx_diag *diag) MGX_NODISCARD;
// mgx_eval.knows of a context: a literal, which a kernel packs, or which is aligned once for it.
bool cpu_dynamic_knows(void *context, const struct mgx_tensor *t);

// Kernels that size their result themselves; *done stays false for what they do not take.
enum mgx_status cpu_concat_append(const struct cpu_plan *plan, struct mgx_compute_call *c,
                                  bool *done);
enum mgx_status cpu_topk(const struct cpu_plan *plan, struct mgx_compute_call *c, bool *done);
enum mgx_status cpu_nonzero(const struct cpu_plan *plan, struct mgx_compute_call *c, bool *done);
enum mgx_status cpu_nonmaxsuppression(const struct cpu_plan *plan, struct mgx_compute_call *c,
                                      bool *done);
