// SPDX-License-Identifier: MIT
// Pieces in order of address, gaps among them in a list of their own; see gaps.h.
#include "plan/gaps.h"

#include <assert.h>
#include <stdlib.h>

struct mgx_gap_piece {
    size_t offset, bytes;
    int below, above; // neighbours
    int before, next; // of a gap: in the list of gaps
    bool free;
};

bool mgx_gaps_init(struct mgx_gaps *g, int most)
{
    *g = (struct mgx_gaps){.spare = -1, .free = -1, .highest = -1};
    g->pieces = calloc(2 * (size_t)most + 1, sizeof *g->pieces); // a gap below every piece
    return g->pieces != NULL;
}

void mgx_gaps_fini(struct mgx_gaps *g)
{
    free(g->pieces);
}

static int make(struct mgx_gaps *g, size_t offset, size_t bytes)
{
    int made = g->spare;
    if (made < 0)
        made = g->count++;
    else
        g->spare = g->pieces[made].next;
    g->pieces[made] = (struct mgx_gap_piece){offset, bytes, -1, -1, -1, -1, false};
    return made;
}

static void drop(struct mgx_gaps *g, int piece)
{
    g->pieces[piece].next = g->spare;
    g->spare = piece;
}

// `low` is what lies right below `high`; either may be -1.
static void join(struct mgx_gaps *g, int low, int high)
{
    if (low >= 0)
        g->pieces[low].above = high;
    if (high >= 0)
        g->pieces[high].below = low;
    else
        g->highest = low;
}

static void list(struct mgx_gaps *g, int gap)
{
    struct mgx_gap_piece *x = &g->pieces[gap];
    x->free = true;
    x->before = -1;
    x->next = g->free;
    if (g->free >= 0)
        g->pieces[g->free].before = gap;
    g->free = gap;
}

static void unlist(struct mgx_gaps *g, int gap)
{
    struct mgx_gap_piece *x = &g->pieces[gap];
    assert(x->free);
    x->free = false;
    if (x->next >= 0)
        g->pieces[x->next].before = x->before;
    if (x->before >= 0)
        g->pieces[x->before].next = x->next;
    else
        g->free = x->next;
}

static int narrowest(const struct mgx_gaps *g, size_t bytes)
{
    int best = -1;
    for (int i = g->free; i >= 0; i = g->pieces[i].next) {
        const struct mgx_gap_piece *x = &g->pieces[i], *y = &g->pieces[best < 0 ? i : best];
        if (x->bytes >= bytes &&
            (best < 0 || x->bytes < y->bytes || (x->bytes == y->bytes && x->offset < y->offset)))
            best = i;
    }
    return best;
}

int mgx_gaps_take(struct mgx_gaps *g, size_t bytes, size_t *offset)
{
    const int gap = narrowest(g, bytes), top = g->highest;
    int taken = gap;
    if (gap < 0) {
        taken = make(g, top < 0 ? 0 : g->pieces[top].offset + g->pieces[top].bytes, bytes);
        join(g, top, taken);
        join(g, taken, -1);
    } else if (g->pieces[gap].bytes == bytes)
        unlist(g, gap);
    else {
        struct mgx_gap_piece *x = &g->pieces[gap];
        taken = make(g, x->offset, bytes);
        join(g, x->below, taken);
        join(g, taken, gap);
        x->offset += bytes;
        x->bytes -= bytes;
    }
    *offset = g->pieces[taken].offset;
    return taken;
}

// The gap right below or above, if there is one, becomes part of `piece`.
static void swallow(struct mgx_gaps *g, int piece, int gap)
{
    if (gap < 0 || !g->pieces[gap].free)
        return;
    struct mgx_gap_piece *x = &g->pieces[piece], *y = &g->pieces[gap];
    unlist(g, gap);
    if (y->offset < x->offset) {
        x->offset = y->offset;
        join(g, y->below, piece);
    } else
        join(g, piece, y->above);
    x->bytes += y->bytes;
    drop(g, gap);
}

void mgx_gaps_give(struct mgx_gaps *g, int piece)
{
    struct mgx_gap_piece *x = &g->pieces[piece];
    assert(!x->free);
    swallow(g, piece, x->below);
    swallow(g, piece, x->above);
    if (x->above >= 0) {
        list(g, piece);
        return;
    }
    join(g, x->below, -1);
    drop(g, piece);
}
