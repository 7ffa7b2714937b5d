// SPDX-License-Identifier: MIT
// Cards that compute one program together, each its part, and add what each has: sum_over_cards.
//
//     card 0   ... product --> sum_over_cards --> ...        each has its own program, weights, caches
//                                  ||   peers' memory        and thread of the host
//     card 1   ... product --> sum_over_cards --> ...
//
// A target makes one object for the cards that go together; programs are compiled with it
// (mgx_compile_options.exchange).
//
// Holds: it outlives the programs compiled with it. All cards run the same sums in the same order,
// one run at a time; what a card waits for comes, or somebody says `stop`.
#pragma once

#include "base/status.h"

enum { MGX_EXCHANGE_CARDS = 8 };

struct mgx_exchange {
    int count;
    // Who waits for another card waits no longer, now and later: sums are NaN from now on.
    void (*stop)(struct mgx_exchange *x);
    // As it was when it was made; nothing is under way.
    enum mgx_status (*restart)(struct mgx_exchange *x, struct mgx_diag *diag) MGX_NODISCARD;
    void (*destroy)(struct mgx_exchange *x);
};
