// SPDX-License-Identifier: MIT
// Regions; see region.h.
#include "op/reference/region.h"

#include <assert.h>

void mgx_region_at(struct mgx_region *r, const struct mgx_window *axis, int rank, const int64_t *at)
{
    assert(rank > 0 && rank <= MGX_MAX_RANK);
    *r = (struct mgx_region){.rank = rank, .padded = 1, .seen = 1};
    int64_t size = 1;
    for (int i = rank - 1; i >= 0; i--) {
        const struct mgx_window *w = &axis[i];
        int64_t first, last;
        const int64_t x = mgx_window_clip(w, at[i], &first, &last);
        r->count[i] = last - first;
        assert(r->count[i] >= 0 && (!r->count[i] || (x >= 0 && x < w->in)));
        r->step[i] = w->dilation * size;
        r->start += last > first ? x * size : 0;
        r->seen *= r->count[i];
        r->padded *= mgx_window_padded(w, at[i]);
        size *= w->in;
    }
}

bool mgx_region_next(const struct mgx_region *r, int64_t *at, int64_t *offset)
{
    assert(r->rank > 0);
    for (int i = r->rank - 2; i >= 0; i--) {
        *offset += r->step[i];
        if (++at[i] < r->count[i])
            return true;
        *offset -= r->count[i] * r->step[i];
        at[i] = 0;
    }
    return false;
}
