// SPDX-License-Identifier: MIT
// Merged loops and the text of their offsets; loop.h says what for.
#include "targets/gpu/emit/loop.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

// Whether axis a comes before axis b in the result's memory: the larger stride first.
static bool before(const struct gpu_loop *loop, int a, int b)
{
    return loop->strides[0][a] > loop->strides[0][b];
}

static void swap_axes(struct gpu_loop *loop, int a, int b)
{
    const int64_t len = loop->lens[a];
    loop->lens[a] = loop->lens[b];
    loop->lens[b] = len;
    for (int k = 0; k < loop->count; k++) {
        const int64_t stride = loop->strides[k][a];
        loop->strides[k][a] = loop->strides[k][b];
        loop->strides[k][b] = stride;
    }
}

static void sort_axes(struct gpu_loop *loop)
{
    for (int i = 1; i < loop->rank; i++)
        for (int k = i; k > 0 && before(loop, k, k - 1); k--)
            swap_axes(loop, k, k - 1);
}

static bool follows(const struct gpu_loop *loop, int outer, int inner)
{
    for (int k = 0; k < loop->count; k++)
        if (loop->strides[k][outer] != loop->strides[k][inner] * loop->lens[inner])
            return false;
    return true;
}

static void merge_axes(struct gpu_loop *loop)
{
    int kept = 0;
    for (int i = 1; i < loop->rank; i++) {
        if (follows(loop, kept, i)) {
            loop->lens[kept] *= loop->lens[i];
            for (int k = 0; k < loop->count; k++)
                loop->strides[k][kept] = loop->strides[k][i];
            continue;
        }
        kept++;
        loop->lens[kept] = loop->lens[i];
        for (int k = 0; k < loop->count; k++)
            loop->strides[k][kept] = loop->strides[k][i];
    }
    loop->rank = loop->rank ? kept + 1 : 0;
}

void gpu_loop_make(struct gpu_loop *loop, const struct mgx_shape *const *shapes, int count)
{
    assert(count > 0 && count <= GPU_LOOP_ARRAYS);
    memset(loop, 0, sizeof *loop);
    loop->count = count;
    loop->elements = mgx_shape_elements(shapes[0]);
    for (int axis = 0; axis < shapes[0]->rank; axis++) {
        if (shapes[0]->lens[axis] == 1)
            continue;
        loop->lens[loop->rank] = shapes[0]->lens[axis];
        for (int k = 0; k < count; k++) {
            assert(shapes[k]->rank == shapes[0]->rank &&
                   shapes[k]->lens[axis] == shapes[0]->lens[axis]);
            loop->strides[k][loop->rank] = shapes[k]->strides[axis];
        }
        loop->rank++;
    }
    sort_axes(loop);
    merge_axes(loop);
}

int gpu_loop_vector(const struct gpu_loop *loop, const size_t *sizes, int64_t most)
{
    enum { WIDEST = 16 };
    const int last = loop->rank - 1;
    size_t largest = 1;
    if (last < 0 || loop->strides[0][last] != 1)
        return 1;
    for (int k = 0; k < loop->count; k++) {
        if (loop->strides[k][last] > 1)
            return 1;
        largest = sizes[k] > largest ? sizes[k] : largest;
    }
    int64_t v = WIDEST / (int64_t)largest;
    v = v < most ? v : most;
    for (; v > 1; v /= 2) {
        bool good = loop->lens[last] % v == 0;
        for (int k = 0; k < loop->count; k++)
            for (int axis = 0; axis < last && loop->strides[k][last]; axis++)
                good &= loop->strides[k][axis] % v == 0;
        if (good)
            return (int)v;
    }
    return 1;
}

static void emit_sum(struct mgx_str *out, const struct gpu_loop *loop, int array, const char *index,
                     const char *at)
{
    bool any = false;
    mgx_str_printf(out, "    const i64 %s%d = ", at, array);
    for (int axis = 0; axis < loop->rank; axis++) {
        const int64_t stride = loop->strides[array][axis];
        if (!stride)
            continue;
        mgx_str_printf(out, "%s(i64)%s%d", any ? " + " : "", index, axis);
        if (stride != 1)
            mgx_str_printf(out, " * %" PRId64, stride);
        any = true;
    }
    mgx_str_put(out, any ? ";\n" : "0;\n");
}

void gpu_emit_offsets_of(struct mgx_str *out, const struct gpu_loop *loop, const char *index,
                         const char *at)
{
    const char *word = loop->elements < INT32_MAX ? "int" : "i64";
    if (loop->rank > 1)
        mgx_str_printf(out, "    %s rest_%s = (%s)%s;\n", word, index, word, index);
    for (int axis = loop->rank - 1; axis >= 0; axis--) {
        if (axis == 0) {
            mgx_str_printf(out, "    const %s %s0 = (%s)%s%s;\n", word, index, word,
                           loop->rank > 1 ? "rest_" : "", index);
            break;
        }
        mgx_str_printf(out, "    const %s %s%d = rest_%s %% %" PRId64 ";\n", word, index, axis,
                       index, loop->lens[axis]);
        mgx_str_printf(out, "    rest_%s /= %" PRId64 ";\n", index, loop->lens[axis]);
    }
    for (int k = 0; k < loop->count; k++)
        emit_sum(out, loop, k, index, at);
}

void gpu_emit_offsets(struct mgx_str *out, const struct gpu_loop *loop)
{
    gpu_emit_offsets_of(out, loop, "i", "at");
}
