// SPDX-License-Identifier: MIT
// Lanes and their text; lanes.h draws them.
#include "targets/gpu/lower/lanes.h"

#include <inttypes.h>
#include <string.h>

void gpu_lanes_find(struct gpu_lanes *l, const struct mgx_shape *result,
                    const struct mgx_shape *input, const bool *in_lane)
{
    struct mgx_shape out = *result, in = *input;
    memset(l, 0, sizeof *l);
    l->length = 1;
    for (int axis = 0; axis < in.rank; axis++) {
        if (!in_lane[axis])
            continue;
        l->lens[l->rank] = in.lens[axis];
        l->strides[l->rank] = in.strides[axis];
        l->out_strides[l->rank] = out.lens[axis] == in.lens[axis] ? out.strides[axis] : 0;
        l->length *= in.lens[axis];
        l->rank++;
        out.lens[axis] = in.lens[axis] = 1;
    }
    const struct mgx_shape *shapes[] = {&out, &in};
    gpu_loop_make(&l->outer, shapes, 2);
}

bool gpu_lanes_fit(const struct gpu_lanes *l)
{
    return l->length > 0 && l->length < INT32_MAX && l->outer.elements < INT32_MAX;
}

struct gpu_launch gpu_lanes_launch(const struct gpu_lanes *l)
{
    return (struct gpu_launch){.grid = {(unsigned)l->outer.elements, 1, 1},
                               .block = {GPU_LANE_THREADS, 1, 1}};
}

void gpu_emit_lane_begin(struct mgx_str *out, const struct mgx_plan_offer *c,
                         const struct gpu_lanes *l, const char *type, const enum mgx_type *in,
                         int in_count)
{
    gpu_emit_head(out, c->out->type, in, in_count);
    mgx_str_printf(out, "{\n    SHARED %s part[%d];\n    const int i = BLOCK;\n", type,
                   GPU_LANE_THREADS);
    gpu_emit_offsets(out, &l->outer);
}

void gpu_emit_lane_loop(struct mgx_str *out, const struct gpu_lanes *l)
{
    mgx_str_printf(out, "    for (int j = THREAD; j < %" PRId64 "; j += THREADS) {\n", l->length);
    mgx_str_put(out, "        int r = j;\n        i64 from = at1, to = at0;\n");
    for (int axis = l->rank - 1; axis >= 0; axis--) {
        mgx_str_printf(out, "        const int x%d = r", axis);
        if (axis)
            mgx_str_printf(out, " %% %" PRId64 ";\n        r /= %" PRId64, l->lens[axis],
                           l->lens[axis]);
        mgx_str_printf(out,
                       ";\n        from += (i64)x%d * %" PRId64
                       ";\n        to += (i64)x%d * %" PRId64 ";\n",
                       axis, l->strides[axis], axis, l->out_strides[axis]);
    }
    mgx_str_put(out, "        (void)to;\n        (void)r;\n");
}

void gpu_emit_lane_fold(struct mgx_str *out, const char *fold)
{
    mgx_str_put(out, "    part[THREAD] = acc;\n"
                     "    for (int step = THREADS / 2; step > 0; step /= 2) {\n"
                     "        BARRIER();\n"
                     "        if (THREAD < step)\n");
    mgx_str_printf(out, "            part[THREAD] = %s(part[THREAD], part[THREAD + step]);\n",
                   fold);
    mgx_str_put(out, "    }\n    BARRIER();\n");
}
