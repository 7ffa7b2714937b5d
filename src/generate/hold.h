// SPDX-License-Identifier: MIT
// Caches that grow become caches with room, for a target with memory of its own.
//
//     before   present {b, h, past + n, d} = concat(past {b, h, past, d}, new {b, h, n, d})
//     after    present {b, h, past, d}     = cache_append(new, ends, past, past)
//
// Attention goes on reading concat(past, new), in which the new tokens stand behind all the room
// that past has (a target may see that it is the same as reading present: pass/attend_in_place.c).
// What lies between a text's last token and them, the mask hides:
//
//     past of room 8, 3 tokens, 2 new     p p p . . . . . n n      mask 1 1 1 0 0 0 0 0 1 1
//
// A decoder that writes about something (encoder.h) has no mask; it takes one token at a time, and
// is told what it computed of how long its caches are (lengths.h).
//
// So a plan of fixed sizes serves every token (plans.h), and a run writes its own rows. That is
// right for models that know where a token stands by its position and by the mask, and wrong for
// those that count the rows of their caches: windows, distances, positions that are no input. Which
// kind a model is, it is asked: a token behind the same few rows gives the same scores with and
// without rows that are hidden, up to the largest room that the context asks for. Without them
// attention is computed as the model has it.
//
// Holds: the program is not compiled yet. Cost of asking: two plans of one token, and two runs.
#pragma once

#include "generate/state.h"

#define MGX_HELD_ENDS "tokens_with_the_new_ones" // the parameter that says where new rows go

// Rewrites; *done is false, and nothing has changed, where caches do not come about as above, or
// nothing says which rows there are. The roles are to be found anew then.
enum mgx_status mgx_hold_caches(struct mgx_program *p, const struct mgx_roles *roles, bool *done,
                                struct mgx_diag *diag) MGX_NODISCARD;

// What is found in a program that was rewritten, for texts of `context` tokens (0: any number).
void mgx_hold_roles(struct mgx_roles *roles, int64_t context);

// Does the model, rewritten and compiled, look at the mask alone? `source` has plans.
enum mgx_status mgx_hold_check(bool *good, const struct mgx_states_source *source,
                               struct mgx_diag *diag) MGX_NODISCARD;
