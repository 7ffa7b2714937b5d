// SPDX-License-Identifier: MIT
// Small parameters whose values decide sizes: the lengths that a reshape is given, the end of a
// slice, the factors of a resize, the condition of a branch.
//
// Until the run such a program is one of unknown sizes. Once the values are there it is one of
// fixed sizes, which a target that has no kernels for sizes known late can plan (specialise.h).
// Which inputs decide, operators say themselves (mgx_op.sized_by); a parameter counts if such an
// input follows from it, literals and lengths alone, through any operators without an effect.
//
// How many tokens there are in total decides how long a cache becomes (cache_append) only where it
// has no room for them. As long as all caches that a value is for have room, it counts as the least
// room of these: one size, and one plan, for every token.
//
// Holds: a value is at most 64 numbers of a parameter of fixed shape, or a vector of open length,
// all together at most 4 KiB. What sizes follow from that came out of data (NonZero of an image) is
// no such value. Cost: a walk back from every input that decides.
#pragma once

#include "targets/target.h"

struct mgx_value {
    int param;       // number of the parameter, in order of creation
    size_t at, room; // its place among the bytes of all, multiples of 8
    // Parameters that are caches, {batch, heads, room, size}, where the value says how many tokens
    // they are to hold and nothing else; 0: it says more.
    const int *caches;
    int cache_count;
};

struct mgx_values {
    struct mgx_value *list; // in the arena
    int count;
    size_t bytes;
};

// Those of a program; empty where there are none. False when out of memory.
bool mgx_values_find(struct mgx_values *out, const struct mgx_program *p, struct mgx_arena *arena);
bool mgx_values_any(const struct mgx_program *p);
// The bytes that a run brings; what lies between them is zero. False when a vector is too long.
bool mgx_values_gather(const struct mgx_values *v, const struct mgx_named_tensor *params,
                       void *bytes);
// All lengths are fixed. Parameters stay, but nothing reads those any more: literals take their
// place.
enum mgx_status mgx_values_set(const struct mgx_values *v, struct mgx_program *p, const void *bytes,
                               struct mgx_diag *diag) MGX_NODISCARD;
