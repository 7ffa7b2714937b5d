// SPDX-License-Identifier: MIT
// An input of floats that comes as bytes: what makes floats of them is part of the program.
//
//     x {n, c, ...} floats      ->      scale x + offset, of x {n, c, ...} or {n, ..., c} bytes
//
// An image then crosses the way to a card as a quarter of its bytes, or half of a half's, and the
// host converts nothing.
#pragma once

#include "ir/module.h"

struct mgx_bytes_input {
    const char *name;
    const double *scale, *offset; // of each channel, or one for all; NULL: 1 and 0
    int64_t count;                // of each of them
    bool channels_last;           // bytes come as {n, ..., c}
};

// Of a program that is not compiled.
enum mgx_status mgx_take_bytes(struct mgx_program *p, const struct mgx_bytes_input *input,
                               struct mgx_diag *diag) MGX_NODISCARD;
