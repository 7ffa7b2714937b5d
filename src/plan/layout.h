// SPDX-License-Identifier: MIT
// Physical shapes: in which order of memory every value lies, and which values are views.
#pragma once

#include "plan/plan.h"

// Physical shapes of all values; view values get root and offset.
enum mgx_status mgx_plan_choose_layouts(struct mgx_plan *plan, struct mgx_diag *diag) MGX_NODISCARD;
// The order of memory an instruction's result has by nature, given its lengths and its inputs'
// shapes: channels last for convolutions and their kind, that of the largest input for what follows
// its inputs, else row-major.
struct mgx_shape mgx_plan_natural_layout(const struct mgx_ins *ins, const struct mgx_shape *lens,
                                         const struct mgx_shape *in, int in_count);
// Strides for the lengths of *to over the bytes of `from`, in the same row-major order of elements;
// false where an axis would have to jump.
bool mgx_plan_reshape_view(const struct mgx_shape *from, struct mgx_shape *to);
