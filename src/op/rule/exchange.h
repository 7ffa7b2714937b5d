// SPDX-License-Identifier: MIT
// What sum_over_cards says of itself to passes and targets.
#pragma once

#include <stdint.h>

struct mgx_sum_over_cards {
    int64_t cards; // that go together
    int64_t card;  // which one of them this program is for
};
