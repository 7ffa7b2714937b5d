// SPDX-License-Identifier: MIT
// A program with free sizes becomes one with given sizes: what a fixed model would have been.
//
//     free, simplified  --clone, lengths and values set, shapes again-->  fixed  --target-->  compiled
//
// The clone shares the literals, so nothing is folded or copied that the free program had already.
// Cost: of ResNet50 some milliseconds, of BERT some ten, without packing, which is shared
// (plan/shared.h).
#pragma once

#include "targets/values.h"

// Does a run bring sizes that the program leaves open? Ranges of numbers with a known rank; where
// any parameter's rank is open too the program stays as it is.
bool mgx_has_free_sizes(const struct mgx_program *p);

// An axis that is left open: of which of main's parameters, in order of creation.
struct mgx_free_axis {
    int param, axis;
};

// All of them; NULL when out of memory.
struct mgx_free_axis *mgx_free_axes(const struct mgx_program *p, struct mgx_arena *arena,
                                    int *count);

// `lens` are the lengths of the free axes, in their order, MGX_LENGTH_OPEN of what stays free;
// behind them the bytes of `values`, unless that is NULL and they stay open. `options` as in
// mgx_program_compile.
enum { MGX_LENGTH_OPEN = -1 };
enum mgx_status mgx_specialise(struct mgx_program **out, const struct mgx_program *simplified,
                               const struct mgx_target *target,
                               const struct mgx_compile_options *options,
                               const struct mgx_values *values, const int64_t *lens,
                               struct mgx_diag *diag) MGX_NODISCARD;

// The same of lengths alone, in place: a program that is not compiled stays so.
enum mgx_status mgx_narrow(struct mgx_program *p, const int64_t *lens,
                           struct mgx_diag *diag) MGX_NODISCARD;
