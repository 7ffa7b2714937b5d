// SPDX-License-Identifier: MIT
// Slice and StridedSlice with its five masks.
//
// A strided slice is: positions per axis (an ellipsis stands for whole axes), of negative steps
// reversed, then every step-th, then axes taken out (shrink) and put in (new_axis).
#include <string.h>

#include "base/size.h"
#include "tf/node.h"

#define ANY (MGX_TF_TEXTS | MGX_TF_COMPLEX)

// Begins known at run time only, axis by axis: so many positions from there on are gathered, so
// that the result's length is known; -1 is all that is left.
static enum mgx_status slice_from(struct mgx_node *n, struct mgx_ins *x, const int64_t *size)
{
    struct mgx_ins *begin = mgx_build_convert(n, n->in[1], MGX_INT64);
    for (int i = 0; x && i < x->shape.rank; i++) {
        struct mgx_ins *from = mgx_build_slice(n, begin, 0, i, i + 1);
        const struct mgx_dim d = mgx_shape_dim(&x->shape, i);
        if (size[i] < -1 || size[i] > d.max)
            return mgx_node_invalid(n, "%lld positions of axis %d, which has %lld",
                                    (long long)size[i], i, (long long)d.max);
        if (size[i] == d.max && d.min == d.max)
            continue; // all of it
        if (size[i] >= 0) {
            struct mgx_ins *line = mgx_build_iota(n, MGX_INT64, size[i]);
            x = mgx_build_gather(n, x, mgx_build_add(n, line, from), i);
        } else {
            x = mgx_build_emit(n, &mgx_op_slice, MGX_ATTRS(mgx_ints("axes", (int64_t[]){i}, 1)),
                               MGX_IN(x, from, mgx_build_dim(n, x, i)));
        }
    }
    n->out[0] = x;
    return MGX_OK;
}

static enum mgx_status require_range(struct mgx_node *n, int axis, int64_t begin, int64_t size)
{
    const struct mgx_dim d = mgx_shape_dim(&n->in[0]->shape, axis);
    if (begin < 0 || begin > d.max || size < -1 || (size >= 0 && size > d.max - begin))
        return mgx_node_invalid(n, "%lld positions from %lld on of axis %d, which has %lld",
                                (long long)size, (long long)begin, axis, (long long)d.max);
    return MGX_OK;
}

static enum mgx_status slice(struct mgx_node *n)
{
    struct mgx_ints begin, size;
    int64_t axes[MGX_MAX_RANK], ends[MGX_MAX_RANK];
    TRY(mgx_node_need(n, 3, 3));
    struct mgx_ins *x = n->in[0];
    TRY(mgx_tf_need_ints(n, 2, "size", &size));
    const int rank = mgx_build_rank(x);
    if (rank < 0)
        return mgx_node_unsupported(n, "the rank is known at run time only");
    if (size.count != rank)
        return mgx_node_invalid(n, "%d sizes for rank %d", size.count, rank);
    if (!mgx_node_constant_ints(n, 1, &begin))
        return slice_from(n, x, size.v);
    if (begin.count != rank)
        return mgx_node_invalid(n, "%d begins for rank %d", begin.count, rank);
    for (int i = 0; i < rank; i++) {
        TRY(require_range(n, i, begin.v[i], size.v[i]));
        axes[i] = i;
        ends[i] = size.v[i] == -1 ? MGX_DIM_ANY : begin.v[i] + size.v[i];
    }
    n->out[0] =
        mgx_build_emit(n, &mgx_op_slice,
                       MGX_ATTRS(mgx_ints("axes", axes, rank), mgx_ints("starts", begin.v, rank),
                                 mgx_ints("ends", ends, rank)),
                       MGX_IN(x));
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_slice = {.name = "Slice", .import = slice, .takes = ANY};

// --- StridedSlice ---

struct plan {
    int64_t starts[MGX_MAX_RANK], ends[MGX_MAX_RANK], steps[MGX_MAX_RANK]; // per axis of x
    bool shrink[MGX_MAX_RANK];
    int spec[MGX_MAX_RANK];      // entry of the lists that speaks of the axis, -1: none
    int64_t added[MGX_MAX_RANK]; // places of new axes in the result
    int added_count;
};

struct masks {
    int64_t begin, end, ellipsis, new_axis, shrink;
};

static bool bit(int64_t mask, int i)
{
    return i < 63 && (mask >> i & 1);
}

// Which entry of the lists speaks of which axis.
static enum mgx_status match_axes(struct mgx_node *n, int rank, int entries, const struct masks *m,
                                  struct plan *p)
{
    int axis = 0, result = 0, spoken = 0;
    bool open = true; // no ellipsis yet
    for (int i = 0; i < entries; i++)
        spoken += !bit(m->new_axis, i) && !bit(m->ellipsis, i);
    for (int i = 0; i < MGX_MAX_RANK; i++)
        p->spec[i] = -1;
    if (spoken > rank)
        return mgx_node_invalid(n, "%d positions for rank %d", spoken, rank);
    for (int i = 0; i < entries; i++) {
        if (bit(m->ellipsis, i)) {
            if (!open)
                return mgx_node_invalid(n, "two ellipses");
            open = false;
            axis += rank - spoken;
            result += rank - spoken;
        } else if (bit(m->new_axis, i)) {
            if (p->added_count == MGX_MAX_RANK || result >= MGX_MAX_RANK)
                return mgx_node_unsupported(n, "the result has more than %d axes", MGX_MAX_RANK);
            p->added[p->added_count++] = result++;
        } else {
            p->spec[axis] = i;
            p->shrink[axis] = bit(m->shrink, i);
            result += !p->shrink[axis++];
        }
    }
    return MGX_OK;
}

// numpy's clipping of a position; `low` and `high` are what it is clipped to.
static int64_t clip(int64_t at, int64_t length, int64_t low, int64_t high)
{
    at = at < 0 ? mgx_max_i64(at, -length - 1) + length : at;
    return mgx_max_i64(low, mgx_min_i64(at, high));
}

// One position of an axis, which goes.
static enum mgx_status single_position(struct mgx_node *n, int axis, int64_t length, int64_t at,
                                       struct plan *p)
{
    if (at < -length || at >= length)
        return mgx_node_invalid(n, "position %lld of axis %d, which has %lld", (long long)at, axis,
                                (long long)length);
    p->starts[axis] = at < 0 ? at + length : at;
    p->ends[axis] = p->starts[axis] + 1;
    p->steps[axis] = 1;
    return MGX_OK;
}

// Entry i of the lists, or -1, says of an axis where it starts and ends.
static enum mgx_status position(struct mgx_node *n, int axis, int64_t length, int i,
                                const struct mgx_ints *lists, const struct masks *m, struct plan *p)
{
    const int64_t step = i < 0 ? 1 : lists[2].v[i];
    const bool back = step < 0;
    const int64_t low = back ? -1 : 0, high = back ? length - 1 : length;
    p->steps[axis] = step;
    p->starts[axis] = back ? high : low;
    p->ends[axis] = back ? low : high;
    if (i < 0)
        return MGX_OK;
    if (step == 0)
        return mgx_node_invalid(n, "stride 0 of axis %d", axis);
    if (p->shrink[axis])
        return single_position(n, axis, length, bit(m->begin, i) ? 0 : lists[0].v[i], p);
    if (!bit(m->begin, i))
        p->starts[axis] = clip(lists[0].v[i], length, low, high);
    if (!bit(m->end, i))
        p->ends[axis] = clip(lists[1].v[i], length, low, high);
    return MGX_OK;
}

static enum mgx_status positions(struct mgx_node *n, const struct mgx_ins *x,
                                 const struct mgx_ints *lists, const struct masks *m,
                                 struct plan *p)
{
    for (int axis = 0; axis < x->shape.rank; axis++)
        TRY(position(n, axis, x->shape.lens[axis], p->spec[axis], lists, m, p));
    return MGX_OK;
}

// start, start + step, ... before end as a slice, a reversal and every step-th of it.
static struct mgx_ins *take_axes(struct mgx_node *n, struct mgx_ins *x, const struct plan *p)
{
    int64_t steps[MGX_MAX_RANK], stepped[MGX_MAX_RANK], turned[MGX_MAX_RANK];
    int step_count = 0, turn_count = 0;
    const int rank = x->shape.rank;
    for (int i = 0; x && i < rank; i++) {
        const bool back = p->steps[i] < 0;
        int64_t start = back ? p->ends[i] + 1 : p->starts[i];
        int64_t end = back ? p->starts[i] + 1 : p->ends[i];
        end = mgx_max_i64(start, end);
        if (start > 0 || end < x->shape.lens[i])
            x = mgx_build_slice(n, x, i, start, end);
        if (back)
            turned[turn_count++] = i;
        if (p->steps[i] != 1 && p->steps[i] != -1) {
            steps[step_count] = back ? -mgx_max_i64(p->steps[i], -MGX_DIM_ANY)
                                     : mgx_min_i64(p->steps[i], MGX_DIM_ANY);
            stepped[step_count++] = i;
        }
    }
    if (turn_count)
        x = mgx_build_emit(n, &mgx_op_reverse, MGX_ATTRS(mgx_ints("axes", turned, turn_count)),
                           MGX_IN(x));
    if (step_count)
        x = mgx_build_emit(
            n, &mgx_op_step,
            MGX_ATTRS(mgx_ints("axes", stepped, step_count), mgx_ints("steps", steps, step_count)),
            MGX_IN(x));
    return x;
}

static struct mgx_ins *change_axes(struct mgx_node *n, struct mgx_ins *x, const struct plan *p,
                                   int rank)
{
    int64_t gone[MGX_MAX_RANK];
    int count = 0;
    for (int i = 0; i < rank; i++)
        if (p->shrink[i])
            gone[count++] = i;
    if (count)
        x = mgx_build_squeeze(n, x, gone, count);
    return p->added_count ? mgx_build_unsqueeze(n, x, p->added, p->added_count) : x;
}

// Positions known at run time only: single ones are gathered, ranges sliced by operands.
static enum mgx_status at_run_time(struct mgx_node *n, const struct masks *m, struct plan *p)
{
    struct mgx_ins *x = n->in[0], *begin = mgx_build_convert(n, n->in[1], MGX_INT64);
    struct mgx_ins *end = mgx_build_convert(n, n->in[2], MGX_INT64);
    const int rank = x->shape.rank;
    for (int axis = rank - 1; x && axis >= 0; axis--) {
        const int i = p->spec[axis];
        if (i < 0 || (!p->shrink[axis] && bit(m->begin, i) && bit(m->end, i)))
            continue;
        struct mgx_ins *from = bit(m->begin, i) ? mgx_build_literal_ints(n, (int64_t[]){0}, 1)
                                                : mgx_build_slice(n, begin, 0, i, i + 1);
        if (p->shrink[axis]) {
            x = mgx_build_gather(n, x, mgx_build_squeeze(n, from, (int64_t[]){0}, 1), axis);
            continue;
        }
        struct mgx_ins *to =
            bit(m->end, i) ? mgx_build_dim(n, x, axis) : mgx_build_slice(n, end, 0, i, i + 1);
        x = mgx_build_emit(n, &mgx_op_slice, MGX_ATTRS(mgx_ints("axes", (int64_t[]){axis}, 1)),
                           MGX_IN(x, from, to));
    }
    n->out[0] = p->added_count ? mgx_build_unsqueeze(n, x, p->added, p->added_count) : x;
    return MGX_OK;
}

static struct masks read_masks(const struct mgx_node *n)
{
    return (struct masks){mgx_tf_int(n, "begin_mask", 0), mgx_tf_int(n, "end_mask", 0),
                          mgx_tf_int(n, "ellipsis_mask", 0), mgx_tf_int(n, "new_axis_mask", 0),
                          mgx_tf_int(n, "shrink_axis_mask", 0)};
}

static enum mgx_status strided_slice(struct mgx_node *n)
{
    struct mgx_ints lists[3];
    struct plan p = {.added_count = 0};
    TRY(mgx_node_need(n, 4, 4));
    struct mgx_ins *x = n->in[0];
    const struct masks m = read_masks(n);
    TRY(mgx_tf_need_ints(n, 3, "strides", &lists[2]));
    if (mgx_build_rank(x) < 0)
        return mgx_node_unsupported(n, "the rank is known at run time only");
    TRY(match_axes(n, x->shape.rank, lists[2].count, &m, &p));
    const bool known = mgx_node_constant_ints(n, 1, &lists[0]) &&
                       mgx_node_constant_ints(n, 2, &lists[1]) && mgx_build_is_static(x);
    if (!known && !mgx_ints_all(lists[2], 1))
        return mgx_node_unsupported(n, "positions known at run time only, with strides");
    if (!known)
        return at_run_time(n, &m, &p);
    if (lists[0].count != lists[2].count || lists[1].count != lists[2].count)
        return mgx_node_invalid(n, "%d begins, %d ends, %d strides", lists[0].count, lists[1].count,
                                lists[2].count);
    TRY(positions(n, x, lists, &m, &p));
    n->out[0] = change_axes(n, take_axes(n, x, &p), &p, x->shape.rank);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_strided_slice = {
    .name = "StridedSlice", .import = strided_slice, .takes = ANY};

static enum mgx_status reverse(struct mgx_node *n)
{
    struct mgx_ints list;
    int64_t axes[MGX_MAX_RANK];
    TRY(mgx_node_need(n, 2, 2));
    TRY(mgx_tf_need_ints(n, 1, "axis", &list));
    TRY(mgx_build_axes(n, list, mgx_build_rank(n->in[0]), axes));
    n->out[0] =
        list.count ? mgx_build_emit(n, &mgx_op_reverse,
                                    MGX_ATTRS(mgx_ints("axes", axes, list.count)), MGX_IN(n->in[0]))
                   : n->in[0];
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_reverse_v2 = {.name = "ReverseV2", .import = reverse};
