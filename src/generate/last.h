// SPDX-License-Identifier: MIT
// Scores of the last tokens alone.
//
// A decoder multiplies what it made of every token by the vocabulary; of a prompt the scores behind
// its last token are wanted. So the program is rewritten before it is compiled:
//
//     scores = f(dot(x, w))   ->   scores = f(dot(slice(x, the last `count` tokens), w))
//
// where f is element-wise (scale, cap, bias, conversion). Cost: of 512 tokens of a vocabulary of
// 128,000 the scores are 262 MB; of 16 of them 8 MB.
#pragma once

#include "ir/module.h"

// Result number `result` gives the scores of at most `count` tokens from now on; *done is false,
// and the program is as it was, where it does not look so.
enum mgx_status mgx_keep_last_scores(struct mgx_program *p, int result, int64_t count, bool *done,
                                     struct mgx_diag *diag) MGX_NODISCARD;
