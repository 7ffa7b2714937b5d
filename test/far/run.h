// SPDX-License-Identifier: MIT
// Runs of programs that were compiled for far, with tensors of the host on both ends: where the
// program takes and leaves them in far memory, they are carried there and back.
#pragma once

#include "far/far.h"

// The same values in far memory. Numbers alone; others are shared.
enum mgx_status far_upload(const struct mgx_tensor *t, struct mgx_tensor *out,
                           struct mgx_diag *diag) MGX_NODISCARD;
// The same values on the host.
enum mgx_status far_fetch(const struct mgx_tensor *t, struct mgx_tensor *out,
                          struct mgx_diag *diag) MGX_NODISCARD;

enum { FAR_MAX_ENDS = 32 };

// `args` in order of creation; `results` has room for all of them. `offload` as it was compiled.
enum mgx_status far_run(const struct mgx_program *p, bool offload, const struct mgx_tensor *args,
                        int count, struct mgx_tensor *results, struct mgx_diag *diag) MGX_NODISCARD;
// Compiles a clone of a program and runs it once.
enum mgx_status far_try(const struct mgx_program *p, bool offload, const struct mgx_tensor *args,
                        int count, struct mgx_tensor *results, struct mgx_diag *diag) MGX_NODISCARD;
