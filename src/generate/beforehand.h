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

// --- what this and lengths.h share ---
// A copy of a program that has these values as its results; they may be any of its own.
enum mgx_status mgx_copy_for(struct mgx_program *p, struct mgx_ins *const *results, int count,
                             struct mgx_program **out, struct mgx_diag *diag) MGX_NODISCARD;
// Values become inputs "<prefix>:0", "<prefix>:1", ...
enum mgx_status mgx_make_inputs(struct mgx_program *p, const char *prefix,
                                struct mgx_ins *const *values, int count,
                                struct mgx_diag *diag) MGX_NODISCARD;
void mgx_drop_unread(struct mgx_module *m); // inputs
// What neither results nor anything else reads goes, inputs too.
enum mgx_status mgx_tidy(struct mgx_program *p, struct mgx_diag *diag) MGX_NODISCARD;
