// SPDX-License-Identifier: MIT
// What descriptions of convolutions in tests begin with.
#pragma once

#include "targets/cpu/kernel/image/conv.h"

// One group, one tap, a single pixel; channels last.
static inline struct mgx_conv_desc conv_plain(mgx_isa isa, int64_t batch)
{
    return (struct mgx_conv_desc){.isa = isa,
                                  .batch = batch,
                                  .groups = 1,
                                  .in = {1, 1, 1},
                                  .out = {1, 1, 1},
                                  .kernel = {1, 1, 1},
                                  .stride = {1, 1, 1},
                                  .dilation = {1, 1, 1},
                                  .x_channel = 1};
}
