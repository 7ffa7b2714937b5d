// SPDX-License-Identifier: MIT
// The gaps of a block of bytes that fills and empties as time goes on.
//
//     0        take      end of the highest taken piece
//     +----+...+------+..+---+
//     |    |gap|      |  |   |      pieces and gaps alternate; no two gaps touch,
//     +----+...+------+..+---+      and none lies above the highest piece
//
// Cost: a take looks at every gap, a give at its two neighbours.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct mgx_gap_piece;

struct mgx_gaps {
    struct mgx_gap_piece *pieces;
    int count, spare, free, highest; // pieces made; heads of two lists; the highest; -1: none
};

// Room for so many pieces that are taken at a time. False when out of memory.
bool mgx_gaps_init(struct mgx_gaps *g, int most);
void mgx_gaps_fini(struct mgx_gaps *g);
// Takes the lowest of the narrowest gaps that are wide enough, else what lies above all. Returns
// the piece, whose offset is told.
int mgx_gaps_take(struct mgx_gaps *g, size_t bytes, size_t *offset);
void mgx_gaps_give(struct mgx_gaps *g, int piece);
