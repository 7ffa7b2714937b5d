// SPDX-License-Identifier: MIT
// What a decoder computes of its given inputs alone, taken out of it: that is done once for a text
// instead of once for every token.
//
//     decoder(tokens, given) = rest(tokens, given, told)         told = before(given)
//
// Such are keys and values where a decoder makes them of hidden states.
//
// Holds: a product is among what is taken out. Less is cheap where it is: a scaled copy of
// Whisper's keys was read more slowly than they are scaled anew. What says lengths stays, since
// passes read it. Cost: O(instructions), and a copy of the program's instructions.
#pragma once

#include "ir/module.h"

// *before: a program of the told values, or NULL where there are none; *count of them, which the
// decoder takes as inputs "told:0", "told:1", ... from now on. Inputs that nothing reads are left.
enum mgx_status mgx_take_beforehand(struct mgx_program *decoder, const char *const *given,
                                    int given_count, struct mgx_program **before, int *count,
                                    struct mgx_diag *diag) MGX_NODISCARD;
