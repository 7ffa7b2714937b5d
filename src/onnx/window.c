// SPDX-License-Identifier: MIT
// Reading the sliding window of a node; see window.h.
#include "onnx/window.h"

#include <assert.h>
#include <string.h>

#include "onnx/build.h"

// Values of one attribute, or `fallback` for each axis; all within [low, 2^31).
static enum mgx_status read_list(struct mgx_node *n, const char *name, int count, int64_t low,
                                 int64_t fallback, int64_t *out)
{
    assert(count > 0 && count <= 2 * MGX_MAX_RANK);
    const struct mgx_ints list = mgx_onnx_ints(n, name);
    if (list.count && list.count != count)
        return mgx_node_invalid(n, "%s has %d entries, expected %d", name, list.count, count);
    for (int i = 0; i < count; i++)
        out[i] = list.count ? list.v[i] : fallback;
    return mgx_import_window_check(n, name, out, count, low);
}

static enum mgx_status read_pads(struct mgx_node *n, const struct mgx_ins *x,
                                 struct mgx_import_window *w)
{
    const char *mode = mgx_onnx_text(n, "auto_pad", "NOTSET");
    const int given = mgx_onnx_ints(n, "pads").count;
    if (given && given != 2 * w->spatial) // also where auto_pad overrules them
        return mgx_node_invalid(n, "pads has %d entries, expected %d", given, 2 * w->spatial);
    if (strcmp(mode, "NOTSET") == 0 || mode[0] == '\0')
        return read_list(n, "pads", 2 * w->spatial, 0, 0, w->pads);
    if (strcmp(mode, "VALID") == 0)
        return MGX_OK;
    const bool lower = strcmp(mode, "SAME_LOWER") == 0;
    if (!lower && strcmp(mode, "SAME_UPPER") != 0 && strcmp(mode, "SAME") != 0)
        return mgx_node_invalid(
            n, "auto_pad is \"%.40s\", not NOTSET, SAME_UPPER, SAME_LOWER or VALID", mode);
    for (int i = 0; i < w->spatial; i++)
        if (!mgx_build_fixed_dim(x, i + 2))
            w->padding_mode = lower ? 1 : 2;
    for (int i = 0; i < w->spatial && !w->padding_mode; i++)
        mgx_import_window_same(w, i, x->shape.lens[i + 2], lower);
    return MGX_OK;
}

enum mgx_status mgx_onnx_window_read(struct mgx_node *n, const struct mgx_ins *x,
                                     const int64_t *kernel, struct mgx_import_window *w)
{
    *w = (struct mgx_import_window){.spatial = mgx_build_rank(x) - 2};
    assert(w->spatial <= MGX_MAX_RANK);
    if (w->spatial < 1)
        return mgx_node_invalid(n, "input has rank %d, below 3", mgx_build_rank(x));
    if (!kernel && !mgx_onnx_has(n, "kernel_shape"))
        return mgx_node_invalid(n, "no kernel_shape given");
    TRY(read_list(n, "kernel_shape", w->spatial, 1, 1, w->kernel));
    for (int i = 0; kernel && mgx_onnx_has(n, "kernel_shape") && i < w->spatial; i++)
        if (w->kernel[i] != kernel[i])
            return mgx_node_invalid(n, "kernel_shape[%d] is %lld, the weights have %lld", i,
                                    (long long)w->kernel[i], (long long)kernel[i]);
    if (kernel)
        memcpy(w->kernel, kernel, (size_t)w->spatial * sizeof *kernel);
    TRY(read_list(n, "strides", w->spatial, 1, 1, w->strides));
    TRY(read_list(n, "dilations", w->spatial, 1, 1, w->dilations));
    return read_pads(n, x, w);
}

void mgx_onnx_window_global(const struct mgx_ins *x, struct mgx_import_window *w)
{
    assert(mgx_build_rank(x) > 2);
    *w = (struct mgx_import_window){.spatial = mgx_build_rank(x) - 2};
    for (int i = 0; i < w->spatial; i++) {
        w->kernel[i] = mgx_build_fixed_dim(x, i + 2) ? x->shape.lens[i + 2] : 0;
        w->strides[i] = w->dilations[i] = 1;
    }
}
