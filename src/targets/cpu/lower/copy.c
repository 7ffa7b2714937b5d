// SPDX-License-Identifier: MIT
// Copies between layouts: contiguous, layout, reshapes that are no views, pieces of a concat,
// results; and reverse, which reads its axes from the end with strides below 0.
//
// Axes that are contiguous on both sides are merged first, so a slice of a concat becomes a few
// long memcpys. What remains is either runs (both sides step 1), or a transposition of two axes,
// done in blocks so that both sides are read and written a cache line at a time: 32-bit elements in
// registers (kernel/move/transpose.h), others 16 x 16.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "plan/layout.h"
#include "targets/cpu/kernel/move/transpose.h"
#include "targets/cpu/lower/lower.h"

enum { TILE = 16, PARALLEL_BYTES = 1 << 16 };

struct copy {
    int rank;
    int64_t lens[MGX_MAX_RANK], from[MGX_MAX_RANK], to[MGX_MAX_RANK]; // strides in bytes
    int64_t start; // bytes from the source's first element to the one that is read first
    size_t size;   // of an element
    int64_t outer; // product of all lengths but the last two
    mgx_transpose_fn transpose; // of 32-bit elements whose last two axes change places; or NULL
};

static bool is_reshape(const struct mgx_shape *in, const struct mgx_shape *out)
{
    assert(mgx_shape_elements(in) == mgx_shape_elements(out));
    if (in->rank != out->rank)
        return true;
    for (int i = 0; i < in->rank; i++)
        if (in->lens[i] != out->lens[i])
            return true;
    return false;
}

static void add_axis(struct copy *k, int64_t len, int64_t from, int64_t to)
{
    const int last = k->rank - 1;
    if (last >= 0 && k->from[last] == from * len && k->to[last] == to * len)
        k->lens[last] *= len;
    else
        k->lens[k->rank++] = len;
    k->from[k->rank - 1] = from;
    k->to[k->rank - 1] = to;
}

// Sorts axes by the destination's stride, drops lengths of 1, merges what is contiguous on both
// sides.
static void plan_axes(struct copy *k, const struct mgx_shape *in, const struct mgx_shape *out)
{
    assert(in->rank == out->rank && k->size);
    int order[MGX_MAX_RANK], count = 0;
    for (int i = 0; i < out->rank; i++)
        if (out->lens[i] != 1)
            order[count++] = i;
    cpu_sort_axes(out, order, count);
    k->rank = 0;
    for (int i = 0; i < count; i++)
        add_axis(k, out->lens[order[i]], in->strides[order[i]] * (int64_t)k->size,
                 out->strides[order[i]] * (int64_t)k->size);
}

// Puts the source's fastest axis next to last if it is not the destination's.
static void rotate_fastest_source(struct copy *k)
{
    assert(k->rank >= 0 && k->rank <= MGX_MAX_RANK);
    int best = k->rank - 1;
    for (int i = 0; i < k->rank - 1; i++)
        if (k->from[i] > 0 && (k->from[best] == 0 || k->from[i] < k->from[best]))
            best = i;
    if (best >= k->rank - 2)
        return;
    const int64_t len = k->lens[best], from = k->from[best], to = k->to[best];
    for (int i = best; i < k->rank - 2; i++) {
        k->lens[i] = k->lens[i + 1];
        k->from[i] = k->from[i + 1];
        k->to[i] = k->to[i + 1];
    }
    k->lens[k->rank - 2] = len;
    k->from[k->rank - 2] = from;
    k->to[k->rank - 2] = to;
}

// Do the axes that are left go over all elements of both sides, from the first to the last?
__attribute__((unused)) static bool covers(const struct copy *k, const struct mgx_shape *in,
                                           const struct mgx_shape *out)
{
    const int64_t size = (int64_t)k->size;
    return mgx_product(k->lens, k->rank) == mgx_shape_elements(out) &&
           cpu_reach(k->lens, k->from, k->rank) == (mgx_shape_space(in) - 1) * size &&
           cpu_reach(k->lens, k->to, k->rank) == (mgx_shape_space(out) - 1) * size;
}

static bool takes(const struct mgx_op *op)
{
    return op == &mgx_op_contiguous || op == &mgx_op_layout || (op->flags & MGX_OP_REGROUP);
}

// The source as it is read backwards; returns the element it begins with.
static int64_t turn_back(const struct mgx_ins *ins, struct mgx_shape *in)
{
    assert(!mgx_shape_is_broadcasted(in) || in->rank > 0);
    const struct mgx_ints axes = mgx_ins_ints(ins, "axes");
    int64_t start = 0;
    for (int i = 0; i < axes.count; i++) {
        const int axis = mgx_wrap_axis(axes.v[i], in->rank);
        assert(axis >= 0 && axis < in->rank); // the shape rule looked
        start += (in->lens[axis] - 1) * in->strides[axis];
        in->strides[axis] = -in->strides[axis];
    }
    return start;
}

// Gives the result the source's axes, where they lie in it; false where they do not.
static bool reshape_result(const struct mgx_shape *in, struct mgx_shape *out)
{
    if (!is_reshape(in, out))
        return true;
    struct mgx_shape pieces = mgx_shape_make(in->type, in->rank, in->lens);
    if (!mgx_plan_reshape_view(out, &pieces))
        return false;
    *out = pieces;
    return true;
}

// Words whose last two axes change places.
static bool is_transpose(const struct copy *k)
{
    if (k->rank < 2 || k->size != 4)
        return false;
    const int64_t *from = k->from + k->rank - 2, *to = k->to + k->rank - 2;
    return from[0] == 4 && to[1] == 4 && from[1] % 4 == 0 && to[0] % 4 == 0;
}

static void plan_copy(struct copy *k, const struct mgx_shape *in, const struct mgx_shape *out)
{
    plan_axes(k, in, out);
    rotate_fastest_source(k);
    if (!mgx_shape_elements(out))
        k->rank = -1;
    assert(k->rank < 0 || covers(k, in, out));
    k->outer = mgx_product(k->lens, k->rank - 2);
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    const bool back = !c->copy_only && c->ins->op == &mgx_op_reverse;
    if (!c->copy_only && !back && !takes(c->ins->op))
        return mgx_plan_refuse(c);
    struct mgx_shape in = c->in[0], out = *c->out;
    const int64_t start = back ? turn_back(c->ins, &in) : 0;
    if (!reshape_result(&in, &out))
        return mgx_plan_decline(c, "the result's axes have no pieces of the source's");
    struct copy *k = MGX_NEW(c->arena, struct copy);
    if (!k)
        return mgx_plan_no_memory(c);
    k->size = mgx_type_size(in.type);
    k->start = start * (int64_t)k->size;
    plan_copy(k, &in, &out);
    if (is_transpose(k))
        k->transpose = mgx_transpose_kernel(cpu_offered(c)->isa)->run;
    c->state = k;
    c->detail = k->transpose ? "transposed" : k->rank >= 0 && k->rank <= 1 ? "memcpy" : "strided";
    return MGX_PLAN_TAKEN;
}

#define BLOCK(type)                                                                                \
    for (int64_t i = 0; i < rows; i++) {                                                           \
        const unsigned char *s = from + i * k->from[k->rank - 2];                                  \
        unsigned char *d = to + i * k->to[k->rank - 2];                                            \
        for (int64_t j = 0; j < cols; j++)                                                         \
            *(type *)(d + j * td) = *(const type *)(s + j * fd);                                   \
    }

// rows x cols elements of the last two axes.
static void block(const struct copy *k, const unsigned char *from, unsigned char *to, int64_t rows,
                  int64_t cols)
{
    assert(k->rank >= 2 && rows > 0 && cols > 0);
    const int64_t fd = k->from[k->rank - 1], td = k->to[k->rank - 1];
    switch (k->size) {
    case 1:
        BLOCK(uint8_t) break;
    case 2:
        BLOCK(uint16_t) break;
    case 4:
        BLOCK(uint32_t) break;
    case 8:
        BLOCK(uint64_t) break;
    default:
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++)
                memcpy(to + i * k->to[k->rank - 2] + j * td,
                       from + i * k->from[k->rank - 2] + j * fd, k->size);
    }
}

static void plane(const struct copy *k, const unsigned char *from, unsigned char *to, int64_t row0,
                  int64_t row1)
{
    assert(row0 >= 0 && row0 < row1 && row1 <= k->lens[k->rank - 2]);
    const int64_t cols = k->lens[k->rank - 1];
    from += row0 * k->from[k->rank - 2];
    to += row0 * k->to[k->rank - 2];
    if (k->from[k->rank - 1] == (int64_t)k->size && k->to[k->rank - 1] == (int64_t)k->size) {
        for (int64_t i = row0; i < row1; i++) {
            memcpy(to, from, (size_t)cols * k->size);
            from += k->from[k->rank - 2];
            to += k->to[k->rank - 2];
        }
        return;
    }
    if (k->transpose) {
        k->transpose((const float *)(const void *)from, k->from[k->rank - 1] / 4,
                     (float *)(void *)to, k->to[k->rank - 2] / 4, row1 - row0, cols);
        return;
    }
    for (int64_t i = row0; i < row1; i += TILE)
        for (int64_t j = 0; j < cols; j += TILE)
            block(k, from + (i - row0) * k->from[k->rank - 2] + j * k->from[k->rank - 1],
                  to + (i - row0) * k->to[k->rank - 2] + j * k->to[k->rank - 1],
                  mgx_min_i64(TILE, row1 - i), mgx_min_i64(TILE, cols - j));
}

struct job {
    const struct copy *k;
    const unsigned char *from;
    unsigned char *to;
    int tasks;
};

static void copy_part(void *user, int task, int thread)
{
    assert(task >= 0 && task < ((const struct job *)user)->tasks &&
           ((const struct job *)user)->k->rank >= 2);
    (void)thread;
    const struct job *job = user;
    const struct copy *k = job->k;
    const int64_t rows = k->lens[k->rank - 2], total = k->outer * rows;
    int64_t at = total * task / job->tasks;
    const int64_t end = total * (task + 1) / job->tasks;
    while (at < end) { // planes of the last two axes, cut at the task's borders
        int64_t index = at / rows, from = 0, to = 0;
        const int64_t row0 = at % rows, row1 = mgx_min_i64(rows, row0 + end - at);
        for (int i = k->rank - 3; i >= 0; i--) {
            from += index % k->lens[i] * k->from[i];
            to += index % k->lens[i] * k->to[i];
            index /= k->lens[i];
        }
        plane(k, job->from + from, job->to + to, row0, row1);
        at += row1 - row0;
    }
}

static void copy_line(const struct copy *k, const unsigned char *from, unsigned char *to)
{
    assert(k->rank == 0 || k->rank == 1);
    if (k->rank == 0) {
        memcpy(to, from, k->size);
        return;
    }
    struct copy two = *k; // one row
    two.rank = 2;
    two.lens[1] = k->lens[0];
    two.from[1] = k->from[0];
    two.to[1] = k->to[0];
    two.lens[0] = 1;
    two.from[0] = two.to[0] = 0;
    plane(&two, from, to, 0, 1);
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    (void)diag;
    const struct copy *k = step->state;
    if (k->rank < 0)
        return MGX_OK;
    const unsigned char *from = (const unsigned char *)args->in[0] + k->start;
    if (k->rank < 2) {
        copy_line(k, from, args->out);
        return MGX_OK;
    }
    const int64_t rows = k->outer * k->lens[k->rank - 2];
    assert(rows > 0 && k->lens[k->rank - 1] > 0);
    const size_t bytes = (size_t)(rows * k->lens[k->rank - 1]) * k->size;
    struct job job = {k, from, args->out, 1};
    if (bytes >= PARALLEL_BYTES)
        job.tasks = (int)mgx_min_i64(rows, args->machine->threads);
    mgx_pool_run(cpu_pool(args), job.tasks, copy_part, &job);
    return MGX_OK;
}

CPU_KERNEL(copy, 10)
const struct mgx_plan_kernel cpu_kernel_copy = {.name = "copy", .prepare = prepare, .run = run};
