// SPDX-License-Identifier: MIT
// AvgPool, MaxPool and their forms of three spatial axes. Padding counts in no average.
#include "tf/window.h"

static enum mgx_status pool(struct mgx_node *n, const char *mode)
{
    struct mgx_import_window w;
    bool last = true;
    TRY(mgx_node_need(n, 1, 1));
    TRY(mgx_tf_need_static(n));
    struct mgx_ins *x = n->in[0];
    TRY(mgx_tf_channels_last(n, &last));
    TRY(mgx_tf_window_read(n, x->shape.rank, last, NULL, &w));
    TRY(mgx_tf_window_pad(n, x->shape.lens + (last ? 1 : 2), &w));
    struct mgx_ins *y =
        mgx_build_emit(n, &mgx_op_pooling,
                       MGX_ATTRS(mgx_text("mode", mode), mgx_ints("padding", w.pads, 2 * w.spatial),
                                 mgx_ints("stride", w.strides, w.spatial),
                                 mgx_ints("lengths", w.kernel, w.spatial),
                                 mgx_ints("dilations", w.dilations, w.spatial)),
                       MGX_IN(mgx_tf_to_channels_first(n, x, last)));
    n->out[0] = mgx_tf_from_channels_first(n, y, last);
    return MGX_OK;
}

static enum mgx_status average(struct mgx_node *n)
{
    return pool(n, "average");
}
const struct mgx_tf_op mgx_tf_avg_pool = {.name = "AvgPool", .import = average};
const struct mgx_tf_op mgx_tf_avg_pool3d = {.name = "AvgPool3D", .import = average};

static enum mgx_status maximum(struct mgx_node *n)
{
    return pool(n, "max");
}
const struct mgx_tf_op mgx_tf_max_pool = {.name = "MaxPool", .import = maximum};
const struct mgx_tf_op mgx_tf_max_pool3d = {.name = "MaxPool3D", .import = maximum};
