// SPDX-License-Identifier: MIT
// Slice: attributes before opset 10, inputs since. Bounds are clamped here where the lengths are
// known; a step other than 1 becomes `step`, a negative one `reverse` before it. Bounds that are
// not constant stay operands of the IR's slice.
#include "base/size.h"

#include <assert.h>

#include "onnx/build.h"

struct bounds {
    bool known;
    bool forward; // all steps are 1
    struct mgx_ints starts, ends, axes, steps;
    bool has_steps;
};

static enum mgx_status need_integers(struct mgx_node *n)
{
    static const char *const names[] = {"starts", "ends", "axes", "steps"};
    for (int i = 1; i < n->in_count && i <= 4; i++)
        if (n->in[i] && !mgx_type_is_integral(n->in[i]->shape.type))
            return mgx_node_invalid(n, "%s are of type %s, not of integers", names[i - 1],
                                    mgx_type_name(n->in[i]->shape.type));
    return MGX_OK;
}

static enum mgx_status read(struct mgx_node *n, struct bounds *b)
{
    bool given[4], known[4];
    TRY(need_integers(n));
    TRY(mgx_onnx_ints_or_input(n, "starts", 1, &given[0], &known[0], &b->starts));
    TRY(mgx_onnx_ints_or_input(n, "ends", 2, &given[1], &known[1], &b->ends));
    TRY(mgx_onnx_ints_or_input(n, "axes", 3, &given[2], &known[2], &b->axes));
    TRY(mgx_onnx_ints_or_input(n, "steps", 4, &given[3], &known[3], &b->steps));
    if (!given[0] || !given[1])
        return mgx_node_invalid(n, "starts and ends are required");
    b->known = known[0] && known[1] && known[2] && known[3];
    b->has_steps = given[3];
    b->forward = known[3];
    for (int i = 0; i < b->steps.count; i++)
        b->forward &= b->steps.v[i] == 1;
    if (!b->known)
        return MGX_OK;
    const int count = b->starts.count;
    if (b->ends.count != count || (given[2] && b->axes.count != count) ||
        (given[3] && b->steps.count != count))
        return mgx_node_invalid(n, "%d starts, %d ends, %d axes, %d steps", count, b->ends.count,
                                b->axes.count, b->steps.count);
    return MGX_OK;
}

// One axis: [*start, *end) in ascending order and its step; a negative step asks for reversal.
static void normalise(int64_t length, int64_t step, int64_t *start, int64_t *end)
{
    assert(step != 0 && length >= 0);
    int64_t from = *start < 0 ? *start + length : *start;
    int64_t to = *end < 0 ? *end + length : *end;
    if (step > 0) {
        *start = mgx_min_i64(mgx_max_i64(from, 0), length);
        *end = mgx_max_i64(mgx_min_i64(to, length), *start);
        return;
    }
    from = mgx_min_i64(mgx_max_i64(from, 0), length - 1); // into the axis, unlike Python
    // The largest end stands for "to the end" in either direction.
    to = *end == INT32_MAX || *end == INT64_MAX ? -1 : mgx_max_i64(to, -1);
    const int64_t stride = step == INT64_MIN ? INT64_MAX : -step;
    const int64_t count = from > to && from >= 0 ? (from - to - 1) / stride + 1 : 0;
    *start = count ? from - (count - 1) * stride : 0;
    *end = count ? from + 1 : 0;
}

// What an axis of unknown length allows: bounds as they are, forwards.
static bool plain(struct bounds *b, int i, int64_t step)
{
    return step == 1 && b->starts.v[i] >= INT32_MIN;
}

struct plan {
    int64_t axes[MGX_MAX_RANK], starts[MGX_MAX_RANK], ends[MGX_MAX_RANK];
    int64_t step_axes[MGX_MAX_RANK], steps[MGX_MAX_RANK], reversed[MGX_MAX_RANK];
    int count, step_count, reversed_count;
};

static enum mgx_status plan_axis(struct mgx_node *n, struct bounds *b, int i, struct plan *p,
                                 bool *ok)
{
    const struct mgx_ins *x = n->in[0];
    int axis = 0;
    TRY(mgx_build_axis(n, b->axes.count ? b->axes.v[i] : i, x->shape.rank, &axis));
    const int64_t step = b->has_steps ? b->steps.v[i] : 1;
    if (step == 0)
        return mgx_node_invalid(n, "step of axis %d is 0", axis);
    int64_t start = b->starts.v[i], end = b->ends.v[i];
    if (mgx_build_fixed_dim(x, axis)) {
        normalise(x->shape.lens[axis], step, &start, &end);
        if (start == 0 && end == x->shape.lens[axis] && step == 1)
            return MGX_OK; // all of it
    } else if (!plain(b, i, step)) {
        *ok = false;
    }
    p->axes[p->count] = axis;
    p->starts[p->count] = start;
    p->ends[p->count++] = end;
    if (step < 0)
        p->reversed[p->reversed_count++] = axis;
    if (step != 1 && step != -1) {
        p->step_axes[p->step_count] = axis;
        p->steps[p->step_count++] = step == INT64_MIN ? INT64_MAX : step < 0 ? -step : step;
    }
    return MGX_OK;
}

static struct mgx_ins *emit(struct mgx_node *n, const struct plan *p)
{
    struct mgx_ins *y = n->in[0];
    if (!p->count)
        return mgx_build_unary(n, &mgx_op_identity, y);
    y = mgx_build_emit(n, &mgx_op_slice,
                       MGX_ATTRS(mgx_ints("axes", p->axes, p->count),
                                 mgx_ints("starts", p->starts, p->count),
                                 mgx_ints("ends", p->ends, p->count)),
                       MGX_IN(y));
    if (p->reversed_count)
        y = mgx_build_emit(n, &mgx_op_reverse,
                           MGX_ATTRS(mgx_ints("axes", p->reversed, p->reversed_count)), MGX_IN(y));
    if (p->step_count)
        y = mgx_build_emit(n, &mgx_op_step,
                           MGX_ATTRS(mgx_ints("axes", p->step_axes, p->step_count),
                                     mgx_ints("steps", p->steps, p->step_count)),
                           MGX_IN(y));
    return y;
}

// Bounds known at run time only: what is constant becomes an attribute, the rest an operand.
static enum mgx_status slice_later(struct mgx_node *n, const struct bounds *b)
{
    if (!b->forward || n->opset < 10)
        return mgx_onnx_defer(n);
    struct mgx_attr attrs[4] = {{0}};
    struct mgx_ins *in[4] = {n->in[0]};
    int attr_count = 0, count = 1;
    const struct {
        const char *name;
        struct mgx_ints list;
    } parts[3] = {{"starts", b->starts}, {"ends", b->ends}, {"axes", b->axes}};
    for (int i = 0; i < 3; i++) {
        if (parts[i].list.count)
            attrs[attr_count++] = mgx_ints(parts[i].name, parts[i].list.v, parts[i].list.count);
        else if (mgx_node_in(n, i + 1))
            in[count++] = n->in[i + 1];
    }
    n->out[0] = mgx_build_emit_n(n, &mgx_op_slice, attr_count ? attrs : NULL, in, count);
    return MGX_OK;
}

static enum mgx_status import(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, n->opset < 10 ? 1 : 5));
    const int rank = mgx_build_rank(n->in[0]);
    struct bounds b = {0};
    TRY(read(n, &b));
    if (rank < 0)
        return mgx_onnx_defer(n);
    if (!b.known)
        return slice_later(n, &b);
    if (b.starts.count > rank)
        return mgx_node_invalid(n, "%d axes sliced of rank %d", b.starts.count, rank);
    struct plan p = {.count = 0};
    bool ok = true;
    for (int i = 0; i < b.starts.count; i++)
        TRY(plan_axis(n, &b, i, &p, &ok));
    if (!ok)
        return mgx_onnx_defer(n);
    n->out[0] = emit(n, &p);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_slice = {
    .name = "Slice", .import = import, .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX};
