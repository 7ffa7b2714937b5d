// SPDX-License-Identifier: MIT
// What a product gains in 8 bits (gain.c), for budget.c.
#pragma once

#include "base/map.h"
#include "quant/apply.h"

struct mgx_quant_clock {
    const struct mgx_recipe *recipe;
    const struct mgx_quant_runner *runner;
    struct mgx_arena *arena;
    struct mgx_map times; // what decides the time of a product, as text -> its gain
    struct mgx_diag *diag;
};

// Microseconds that the site saves as its entry says.
enum mgx_status mgx_quant_gain(struct mgx_quant_clock *c, const struct mgx_site *site,
                               const struct mgx_recipe_entry *e, double *gain) MGX_NODISCARD;
