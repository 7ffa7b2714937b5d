// SPDX-License-Identifier: MIT
#include "import/window.h"

#include <assert.h>

#include "base/size.h"

enum mgx_status mgx_import_window_check(struct mgx_node *n, const char *name, const int64_t *v,
                                        int count, int64_t low)
{
    assert(name && count > 0);
    for (int i = 0; i < count; i++)
        if (v[i] < low || v[i] > INT32_MAX)
            return mgx_node_invalid(n, "%s[%d] is %lld, outside %lld..%d", name, i, (long long)v[i],
                                    (long long)low, INT32_MAX);
    return MGX_OK;
}

void mgx_import_window_same(struct mgx_import_window *w, int i, int64_t length, bool lower)
{
    assert(w->strides[i] > 0 && w->dilations[i] > 0 && w->kernel[i] > 0 && length >= 0);
    const int64_t out = (length + w->strides[i] - 1) / w->strides[i];
    const int64_t reach = (w->kernel[i] - 1) * w->dilations[i] + 1;
    const int64_t total = mgx_max_i64((out - 1) * w->strides[i] + reach - length, 0);
    w->pads[i] = lower ? total - total / 2 : total / 2;
    w->pads[i + w->spatial] = total - w->pads[i];
    assert(total == 0 ||
           (length + w->pads[i] + w->pads[i + w->spatial] - reach) / w->strides[i] + 1 == out);
    assert(w->pads[i] >= 0 && w->pads[i + w->spatial] >= 0);
}
