// SPDX-License-Identifier: MIT
// Gaps against a plain search among what is taken: every piece lies where the narrowest gap that is
// wide enough begins, the lowest of equal ones, else above all.
#include "plan/gaps.h"

#include "check.h"

enum { MOST = 60, TURNS = 200000 };

struct taken {
    size_t offset, bytes;
    int piece;
};

static uint64_t state = 88172645463325252u;

static int below(int bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)bound);
}

static int by_offset(const void *a, const void *b)
{
    const struct taken *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static size_t expected(const struct taken *v, int count, size_t bytes)
{
    struct taken sorted[MOST];
    size_t end = 0, best = SIZE_MAX, width = SIZE_MAX;
    if (count)
        memcpy(sorted, v, (size_t)count * sizeof *v);
    qsort(sorted, (size_t)count, sizeof *sorted, by_offset);
    for (int i = 0; i < count; i++) {
        const size_t gap = sorted[i].offset - end;
        if (gap >= bytes && gap < width) {
            best = end;
            width = gap;
        }
        end = sorted[i].offset + sorted[i].bytes;
    }
    return best == SIZE_MAX ? end : best;
}

CASE(pieces_lie_in_the_narrowest_gap)
{
    struct mgx_gaps gaps;
    struct taken v[MOST];
    int count = 0;
    CHECK(mgx_gaps_init(&gaps, MOST));
    for (int turn = 0; turn < TURNS; turn++) {
        // Now mostly taken, now mostly given back, down to nothing.
        const bool fills = turn / 100 % 2 == 0;
        if (count == MOST || (count && below(10) < (fills ? 3 : 7))) {
            const int gone = below(count);
            mgx_gaps_give(&gaps, v[gone].piece);
            v[gone] = v[--count];
            continue;
        }
        struct taken x = {.bytes = (size_t)(1 + below(6))};
        const size_t want = expected(v, count, x.bytes);
        x.piece = mgx_gaps_take(&gaps, x.bytes, &x.offset);
        CHECK_INT(x.offset, want);
        v[count++] = x;
    }
    mgx_gaps_fini(&gaps);
}

TEST_MAIN(ROW(pieces_lie_in_the_narrowest_gap))
