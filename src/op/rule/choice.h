// SPDX-License-Identifier: MIT
// What choose_token is told of every text, a double each; reference/draw.h says what they mean.
#pragma once

enum mgx_choice_knob {
    MGX_CHOICE_TEMPERATURE,
    MGX_CHOICE_TOP_K,
    MGX_CHOICE_TOP_P,
    MGX_CHOICE_MIN_P,
    MGX_CHOICE_REPETITION,
    MGX_CHOICE_DRAW,   // mgx_draw_at of seed and position
    MGX_CHOICE_SEEN,   // tokens that the text has, each counted once
    MGX_CHOICE_BIASED, // 0: the bias is not read
    MGX_CHOICE_KNOBS
};
