// SPDX-License-Identifier: MIT
// Values made of totals, as other files see them: total.c runs them, total_form.c knows the two of
// a dynamic quantization, bundle.c runs those with what follows.
#pragma once

#include "targets/cpu/lower/lower.h"

enum cpu_total_form {
    CPU_TOTAL_ANY,
    CPU_TOTAL_SCALE, // of bytes from x's range with 0 in it: mgx_byte_range_scale
    CPU_TOTAL_ZERO,  // their zero point, where `scale` is that: mgx_byte_range_zero
};

// The group's inputs that a form reads.
struct cpu_total {
    enum cpu_total_form form;
    int x, scale;
};

// Which one the body `f` of reductions of input `x` is.
struct cpu_total cpu_total_form(const struct mgx_ins *f, int x);
// The same of a step, ANY where that is no such one or too much for one thread.
struct cpu_total cpu_total_of(const struct mgx_plan_step *step);
