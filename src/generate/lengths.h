// SPDX-License-Identifier: MIT
// What a decoder computes of how long its caches are, and of nothing else, taken out of it:
// positions, masks, distances.
//
//     decoder(tokens, past {.., n, ..}) = rest(tokens, past, said)        said = of_lengths(past)
//
// So the rest may have caches with rows that nobody has (hold.h): what depends on how many tokens
// there are it is told, by a program that sees caches as long as they are. Along the axis of keys,
// where one has that, what is said of a cache of n rows is spread over one with room:
//
//     of n + 1 columns      s s s s           room 6, n = 3
//     over room + 1         s s s h h h s     h hides: minus infinity
//
// Holds: a run takes one text and one token. Whether the rest is right is asked as of held caches
// (mgx_hold_check). Cost of a token: a look-up; of a length that is new, the small program on the
// host's reference of meaning.
#pragma once

#include "generate/roles.h"

enum { MGX_LENGTHS_MOST = 64 };

struct mgx_lengths;

// Texts and tokens become one, in place, where they are open: what stays so are the lengths of
// caches, and of what an encoder gave.
enum mgx_status mgx_narrow_to_one(struct mgx_program *decoder, const char *tokens,
                                  struct mgx_diag *diag) MGX_NODISCARD;

// The decoder takes what is said as inputs "said:0", ... from now on; *out is NULL where nothing is
// said, or something that cannot be spread. `roles` are those of the narrowed decoder.
enum mgx_status mgx_lengths_take(struct mgx_lengths **out, struct mgx_program *decoder,
                                 const struct mgx_roles *roles,
                                 struct mgx_diag *diag) MGX_NODISCARD;
void mgx_lengths_destroy(struct mgx_lengths *l); // NULL is allowed

int mgx_lengths_count(const struct mgx_lengths *l);
// Shapes of all that is said of caches of so many rows.
void mgx_lengths_shapes(const struct mgx_lengths *l, int64_t rows, struct mgx_shape *out);
// Number k for `rows` rows of a cache with room, to the bytes of its shape there.
enum mgx_status mgx_lengths_write(struct mgx_lengths *l, int k, int64_t rows, int64_t room,
                                  void *to, struct mgx_diag *diag) MGX_NODISCARD;
