// SPDX-License-Identifier: MIT
// Removes what nobody reads; engine/dead.c does it, also after every pass that changed something.
#include "pass/engine/walk.h"

const struct mgx_pass mgx_pass_dead_code_elimination = {
    .name = "dead_code_elimination",
    .meaning = "removes instructions without readers and modules without users",
    .program = mgx_remove_dead,
};
