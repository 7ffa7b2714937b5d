// SPDX-License-Identifier: MIT
// What the small inputs of a run say: tokens, mask, positions, lengths, total.
//
//     text i has n tokens, `given` come, `each` rows run      t t t 0      rows that fill up come last
//     tokens      t t t 0        mask      1 for n + each of `columns`
//     positions   n, n + 1, ...  lengths   n + each - 1
//
// Held caches (hold.h): the mask has the new tokens behind all rows, lengths are n + each.
//
// Rows that fill up stand behind the text: no token of it looks at them, and later ones take their
// places. Their positions repeat the last token's, which every table of positions has.
#pragma once

#include "generate/rows.h"
#include "generate/state.h"

struct mgx_feed {
    const struct mgx_roles *roles;
    const struct mgx_track_run *run;
    const struct mgx_rows *rows; // a row that is nobody's runs with token 0 behind nothing
    int64_t from, given;         // of each text's tokens in the run: the first, and how many
    int64_t each;                // rows of each text: given, or more
    int64_t columns; // of the mask, which is as long as the caches will be; said as the total
};

enum { MGX_FEED_MOST = 6 };

// One input: element (i, j) of so many rows and columns, as far as its rank goes.
struct mgx_feed_input {
    const struct mgx_role *role;
    int64_t rows, columns;
    int64_t (*value)(const struct mgx_feed *f, int64_t i, int64_t j);
    struct mgx_shape shape;
};

// Those that the model has; returns how many. Of what `f` points at only the number of rows is
// read.
int mgx_feed_inputs(const struct mgx_feed *f, struct mgx_feed_input list[MGX_FEED_MOST]);
// The elements of one, in order, as their type has them.
void mgx_feed_write(const struct mgx_feed *f, const struct mgx_feed_input *input, void *to);
// Tokens that row i has before the run.
int64_t mgx_feed_length(const struct mgx_feed *f, int64_t i);
