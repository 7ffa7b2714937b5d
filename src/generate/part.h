// SPDX-License-Identifier: MIT
// One card's part of a decoder that several cards compute together.
//
//     y = dot(f(dot(x, A), ...), B)    ->    y = sum_over_cards(dot(f(dot(x, A'), ...), B'))
//
// A' are columns of A, B' the rows of B that they meet, and f is whatever keeps columns apart:
// gates and activations, or attention, whose heads go with the columns of queries, keys and values;
// so caches are a part too. What is added to y (a bias, the residual) the first card adds before
// the sum. Products of which no rest fits such a pair, and all between pairs, every card computes
// whole.
//
//     scores = dot(x, A)                     ->    scores = sum_over_cards(0 .. 0 dot(x, A') 0 .. 0)
//
// Weights may be floats, or blocks of few bits, whose parts are whole blocks.
//
// Holds: the program is not compiled yet. All cards' parts come to the same sums in the same order.
// Cost: O(products * instructions); parts of weights that are not rows of them are copied.
#pragma once

#include "ir/module.h"

// Leaves card number `card` of `cards` its part. *sums: how many there are; where there are none
// the program is as it was.
enum mgx_status mgx_part_take(struct mgx_program *p, int card, int cards, int *sums,
                              struct mgx_diag *diag) MGX_NODISCARD;
// The same of the product that makes result number `result`, its last reader but for conversions;
// *sums is 1, or 0 where there is none.
enum mgx_status mgx_part_take_scores(struct mgx_program *p, int result, int card, int cards,
                                     int *sums, struct mgx_diag *diag) MGX_NODISCARD;
