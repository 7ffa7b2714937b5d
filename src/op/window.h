// SPDX-License-Identifier: MIT
// The window of a convolution or of its transpose as it is written: the attributes that all of them
// have, read by name in one place. Lists belong to the instruction; `padding` has one value for
// each axis, or one for each of its sides.
#pragma once

#include "ir/module.h"

struct mgx_window {
    struct mgx_ints padding, stride, dilation;
    int64_t group, padding_mode; // 0: as `padding` says
};

static inline struct mgx_window mgx_window_of(const struct mgx_ins *ins)
{
    return (struct mgx_window){.padding = mgx_ins_ints(ins, "padding"),
                               .stride = mgx_ins_ints(ins, "stride"),
                               .dilation = mgx_ins_ints(ins, "dilation"),
                               .group = mgx_ins_int(ins, "group"),
                               .padding_mode = mgx_ins_int(ins, "padding_mode")};
}

// Are all values there for so many axes, and is the padding the written one?
static inline bool mgx_window_is_explicit(const struct mgx_window *w, int spatial)
{
    return w->padding_mode == 0 && w->stride.count == spatial && w->dilation.count == spatial &&
           (w->padding.count == spatial || w->padding.count == 2 * spatial);
}
