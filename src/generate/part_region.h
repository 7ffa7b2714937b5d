// SPDX-License-Identifier: MIT
// The region between two products of a pair, and what one card keeps of everything in it (part.h).
//
// From the second product a region grows backwards, latest instruction first, so that all that
// reads one has said what it keeps of it. It ends at products by constants, at parameters that are
// caches, and at constants. A region that somebody outside reads, or that an operator in it mixes,
// is none.
#pragma once

#include "generate/part_constant.h"

enum { MGX_PART_REGION = 512 };

struct mgx_part_member {
    struct mgx_ins *ins;
    struct mgx_cut cut;
};

struct mgx_part_region {
    struct mgx_module *m;
    int card, cards;
    struct mgx_ins *product; // the second one
    struct mgx_ins *sum;     // the last sum of all, so far
    struct mgx_part_member member[MGX_PART_REGION];
    int count, products;
    bool fails;
};

// The region that ends at `product`, of which this card keeps an equal share of the rows of its
// weights; members are in the order of the program, from the last. False: there is none.
bool mgx_part_grow(struct mgx_part_region *r, struct mgx_ins *product);

struct mgx_part_member *mgx_part_find(struct mgx_part_region *r, const struct mgx_ins *ins);
int mgx_part_last_axis(const struct mgx_ins *ins);
// The length of an axis, if it is known.
bool mgx_part_length(const struct mgx_ins *ins, int axis, int64_t *length);
// The weights of a product, before they were broadcast for it.
struct mgx_ins *mgx_part_weights(const struct mgx_ins *product);
bool mgx_part_is_elementwise(const struct mgx_ins *ins);
// Is the axis among these, and where?
bool mgx_part_lists(struct mgx_ints axes, int rank, int axis, int *at);
