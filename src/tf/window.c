// SPDX-License-Identifier: MIT
// Reading the sliding window of a node; see window.h.
#include "tf/window.h"

#include <assert.h>
#include <string.h>

// The spatial entries of a list over all axes; batch and channels must say 1.
static enum mgx_status read_list(struct mgx_node *n, const char *name,
                                 const struct mgx_import_window *w, int64_t *out)
{
    const struct mgx_ints list = mgx_tf_ints(n, name);
    const int first = w->channels_last ? 1 : 2, channel = w->channels_last ? w->spatial + 1 : 1;
    for (int i = 0; i < w->spatial; i++)
        out[i] = 1;
    if (!list.count)
        return n->diag->status;
    if (list.count == 1 || list.count == w->spatial) { // of older graphs
        for (int i = 0; i < w->spatial; i++)
            out[i] = list.v[list.count == 1 ? 0 : i];
    } else if (list.count == w->spatial + 2) {
        memcpy(out, list.v + first, (size_t)w->spatial * sizeof *out);
        if (list.v[0] != 1 || list.v[channel] != 1)
            return mgx_node_unsupported(n, "%s over batch or channels", name);
    } else {
        return mgx_node_invalid(n, "%s has %d entries for rank %d", name, list.count,
                                w->spatial + 2);
    }
    return mgx_import_window_check(n, name, out, w->spatial, 1);
}

enum mgx_status mgx_tf_window_read(struct mgx_node *n, int rank, bool last, const int64_t *kernel,
                                   struct mgx_import_window *w)
{
    assert(rank >= 2 && rank <= MGX_MAX_RANK);
    *w = (struct mgx_import_window){.spatial = rank - 2, .channels_last = last};
    if (rank < 3)
        return mgx_node_invalid(n, "input has rank %d, below 3", rank);
    if (kernel)
        memcpy(w->kernel, kernel, (size_t)w->spatial * sizeof *kernel);
    else
        TRY(read_list(n, "ksize", w, w->kernel));
    if (kernel)
        TRY(mgx_import_window_check(n, "the filter's length", kernel, w->spatial, 1));
    TRY(read_list(n, "strides", w, w->strides));
    return read_list(n, "dilations", w, w->dilations);
}

static enum mgx_status explicit_pads(struct mgx_node *n, struct mgx_import_window *w)
{
    const struct mgx_ints pads = mgx_tf_ints(n, "explicit_paddings");
    const int first = w->channels_last ? 1 : 2;
    if (pads.count != 2 * (w->spatial + 2))
        return mgx_node_invalid(n, "explicit_paddings has %d entries, expected %d", pads.count,
                                2 * (w->spatial + 2));
    for (int i = 0; i < w->spatial; i++) {
        w->pads[i] = pads.v[2 * (first + i)];
        w->pads[i + w->spatial] = pads.v[2 * (first + i) + 1];
        if (w->pads[i] < 0 || w->pads[i] > INT32_MAX || w->pads[i + w->spatial] < 0 ||
            w->pads[i + w->spatial] > INT32_MAX)
            return mgx_node_invalid(n, "explicit_paddings has %lld and %lld", (long long)w->pads[i],
                                    (long long)w->pads[i + w->spatial]);
    }
    return MGX_OK;
}

enum mgx_status mgx_tf_window_pad(struct mgx_node *n, const int64_t *lens,
                                  struct mgx_import_window *w)
{
    assert(lens && w->spatial > 0);
    const char *mode = mgx_tf_text(n, "padding", "");
    if (strcmp(mode, "EXPLICIT") == 0)
        return explicit_pads(n, w);
    memset(w->pads, 0, sizeof w->pads);
    if (strcmp(mode, "VALID") == 0)
        return MGX_OK;
    if (strcmp(mode, "SAME") != 0)
        return mgx_node_invalid(n, "padding is \"%.40s\", not SAME, VALID or EXPLICIT", mode);
    for (int i = 0; i < w->spatial; i++)
        mgx_import_window_same(w, i, lens[i], false);
    return MGX_OK;
}
