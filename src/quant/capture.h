// SPDX-License-Identifier: MIT
// Watching the values that sites read, on a clone of the program, while it runs on samples.
#pragma once

#include "quant/site.h"
#include "quant/stats.h"

// What was seen of every input of every site: (*out)[2 * site + input], NULL for a constant. Sites
// that read one value see the same. With `by_channel` also by channel of input 0. All in the arena.
enum mgx_status mgx_capture(const struct mgx_program *p, const struct mgx_sites *sites,
                            const struct mgx_quant_options *options,
                            const struct mgx_quant_runner *runner, bool by_channel,
                            struct mgx_arena *arena, struct mgx_stats ***out,
                            struct mgx_diag *diag) MGX_NODISCARD;
