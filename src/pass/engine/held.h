// SPDX-License-Identifier: MIT
// Attention of new tokens to a cache that was joined with them, where the rows of the cache that
// nobody has are masked (op/cache_append.c, `masked`):
//
//     K = concat(past, k), V = concat(past, v)                       along the tokens
//     y = dot(softmax(f(dot(q, K'))), V)      f: times a number, then values added, or places hidden
//     cache_append[masked](k, ends, room, past), and of v            what the next run gets
//
// The same without a cache: keys and values that are there, all of which every query may see.
//
// Heads may be repeated for groups of queries, axes joined or left out, types wider in between; all
// of that is read with the algebra of views, so nothing is taken for what it only resembles.
#pragma once

#include "pass/engine/pass.h"

enum { MGX_HELD_TERMS = 4 };

// What is added to scores; or, with `low`, where they are that instead: where `hides` is the
// condition's value there.
struct mgx_held_term {
    struct mgx_ins *value; // of the scores' lengths; a condition with `low`
    struct mgx_ins *low;
    bool hides;
};

struct mgx_held {
    struct mgx_ins *append[2]; // of keys, of values
    struct mgx_ins *still[2];  // or, without a cache, keys and values as the products have them
    struct mgx_ins *q, *weigh; // the products' own operand and the second product
    int64_t batch, heads, tokens, room, keys; // keys: columns of the scores
    double scale;
    int term_count;
    struct mgx_held_term term[MGX_HELD_TERMS];
};

// Of the instruction that may be the second product.
bool mgx_held_find(struct mgx_ins *weigh, struct mgx_held *out);
bool mgx_still_find(struct mgx_ins *weigh, struct mgx_held *out); // without a cache
