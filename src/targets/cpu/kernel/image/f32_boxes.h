// SPDX-License-Identifier: MIT
// The loop of boxes.h, compiled once per instruction set. Four vectors of boxes at a time, so that
// whether to stop is asked once per four divisions.
#include "targets/cpu/kernel/image/boxes.h"

#include "targets/cpu/kernel/vector/simd.h"

KERNEL_FOR(GENERIC, AVX2, AVX512)

struct one {
    vf low_x, low_y, high_x, high_y, area, iou, zero, yes;
};

// 1 in the lanes whose boxes overlap.
SIMD vf overlap(const struct one *b, vf low_x, vf low_y, vf high_x, vf high_y, vf area)
{
    const vf width = vf_sub(vf_min(high_x, b->high_x), vf_max(low_x, b->low_x));
    const vf height = vf_sub(vf_min(high_y, b->high_y), vf_max(low_y, b->low_y));
    const vf both = vf_mul(width, height);
    const vf ratio = vf_div(both, vf_sub(vf_add(area, b->area), both));
    const vf much = vf_below(b->iou, ratio, b->yes, b->zero);
    return vf_below(b->zero, width, vf_below(b->zero, height, much, b->zero), b->zero);
}

SIMD vf at(const struct one *b, float *const *side, int64_t i)
{
    return overlap(b, vf_load(side[MGX_BOX_LOW_X] + i), vf_load(side[MGX_BOX_LOW_Y] + i),
                   vf_load(side[MGX_BOX_HIGH_X] + i), vf_load(side[MGX_BOX_HIGH_Y] + i),
                   vf_load(side[MGX_BOX_AREA] + i));
}

static bool overlaps(float *const side[MGX_BOX_FIELDS], int64_t count,
                     const float box[MGX_BOX_FIELDS], float iou)
{
    const struct one b = {vf_set(box[MGX_BOX_LOW_X]),
                          vf_set(box[MGX_BOX_LOW_Y]),
                          vf_set(box[MGX_BOX_HIGH_X]),
                          vf_set(box[MGX_BOX_HIGH_Y]),
                          vf_set(box[MGX_BOX_AREA]),
                          vf_set(iou),
                          vf_zero(),
                          vf_set(1)};
    int64_t i = 0;
    for (; i + 4 * VL <= count; i += 4 * VL) {
        const vf any = vf_max(vf_max(at(&b, side, i), at(&b, side, i + VL)),
                              vf_max(at(&b, side, i + 2 * VL), at(&b, side, i + 3 * VL)));
        if (vf_sum(any) > 0)
            return true;
    }
    for (; i < count; i += VL) { // lanes beyond the end are empty boxes
        const int n = count - i < VL ? (int)(count - i) : VL;
        const vf any = overlap(
            &b, vf_load_some(side[MGX_BOX_LOW_X] + i, n), vf_load_some(side[MGX_BOX_LOW_Y] + i, n),
            vf_load_some(side[MGX_BOX_HIGH_X] + i, n), vf_load_some(side[MGX_BOX_HIGH_Y] + i, n),
            vf_load_some(side[MGX_BOX_AREA] + i, n));
        vf room[1] = {vf_zero()};
        vf_store_some((float *)room, any, n);
        if (vf_sum(room[0]) > 0)
            return true;
    }
    return false;
}

const struct mgx_box_kernel NAME(mgx_f32_boxes) = {KERNEL_BASE("f32_boxes"), overlaps};
