// SPDX-License-Identifier: MIT
// scatter_none and scatternd_none: x copied, then runs of the updates put in place.
//
//     scatter     y[.., index[i], ..] = updates[i]: for every position along the axis, in order,
//                 the other axes in y's order of memory, merged where y, updates and index allow; an
//                 index that is the same for a whole run (an expanded one) makes the run one copy
//     scatternd   y[index[i]...] = updates[i]: contiguous slabs
//
// Of several updates of one place the last one counts, as the reference has it: they differ in
// their position along the axis, which is the outermost loop. Combining scatters stay with the
// reference, whose sums round once. Cost: one copy of x and one of the updates.
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "targets/cpu/lower/lower.h"

struct scatter {
    void *copy; // of x: a state of the copy kernel
    bool skip;  // indices out of range are passed over
    bool wide;  // indices are int64
    size_t size;
    // scatter: the axis, then the others, outermost first; strides in elements
    int64_t count, length, y_step, u_step, at_step;
    int rank;
    int64_t lens[MGX_MAX_RANK], y[MGX_MAX_RANK], u[MGX_MAX_RANK], at[MGX_MAX_RANK];
    // scatternd
    bool slabs;
    int depth;
};

// --- scatter: planning ---

static void sort_axes(const struct mgx_shape *at, const struct mgx_shape *y, int axis, int *order,
                      int *count)
{
    *count = 0;
    for (int i = 0; i < at->rank; i++)
        if (i != axis && at->lens[i] != 1)
            order[(*count)++] = i;
    cpu_sort_axes(y, order, *count);
}

static void plan_axes(struct scatter *s, const struct mgx_plan_offer *c, int axis)
{
    const struct mgx_shape *at = &c->in[1], *u = &c->in[2], *y = c->out;
    int order[MGX_MAX_RANK], count;
    sort_axes(at, y, axis, order, &count);
    for (int i = 0; i < count; i++) {
        const int a = order[i], last = s->rank - 1;
        const int64_t n = at->lens[a];
        int to = s->rank;
        if (last >= 0 && s->y[last] == y->strides[a] * n && s->u[last] == u->strides[a] * n &&
            s->at[last] == at->strides[a] * n)
            to = last;
        s->lens[to] = to == last ? s->lens[to] * n : n;
        s->y[to] = y->strides[a];
        s->u[to] = u->strides[a];
        s->at[to] = at->strides[a];
        s->rank = to + 1;
    }
    s->count = at->lens[axis];
    s->length = y->lens[axis];
    s->y_step = y->strides[axis];
    s->u_step = u->strides[axis];
    s->at_step = at->strides[axis];
}

static void prepare_axis(const struct mgx_plan_offer *c, struct scatter *s)
{
    s->skip = mgx_ins_int(c->ins, "skip_out_of_bounds") != 0;
    plan_axes(s, c, mgx_wrap_axis(mgx_ins_int(c->ins, "axis"), c->in[1].rank));
}

static bool prepare_nd(struct mgx_plan_offer *c, struct scatter *s)
{
    const struct mgx_shape *at = &c->in[1], *y = c->out;
    if (!mgx_shape_is_standard(at) || !mgx_shape_is_standard(&c->in[2]) ||
        !mgx_shape_is_standard(y)) {
        c->want_in[2] = MGX_PLAN_ROW_MAJOR;
        return mgx_plan_wish(c, 1, MGX_PLAN_ROW_MAJOR, "operands are not row-major");
    }
    s->slabs = true;
    s->depth = (int)at->lens[at->rank - 1];
    s->count = mgx_product(at->lens, at->rank - 1);
    for (int i = 0; i < s->depth; i++) {
        s->lens[i] = y->lens[i];
        s->y[i] = y->strides[i];
    }
    s->size *= (size_t)mgx_product(y->lens + s->depth, y->rank - s->depth);
    return true;
}

// x is copied by the kernel of copies.
static bool prepare_copy(const struct mgx_plan_offer *c, struct scatter *s)
{
    struct mgx_plan_offer copy = *c;
    copy.copy_only = true;
    copy.in_count = 1;
    if (!cpu_kernel_copy.prepare(&copy))
        return false;
    s->copy = copy.state;
    return true;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    const bool nd = c->ins->op == &mgx_op_scatternd_none;
    if (!nd && c->ins->op != &mgx_op_scatter_none)
        return mgx_plan_refuse(c);
    const struct mgx_shape *at = &c->in[1];
    if ((at->type != MGX_INT64 && at->type != MGX_INT32) || !mgx_shape_elements(at) ||
        !mgx_shape_elements(&c->in[2]) || !mgx_shape_elements(c->out))
        return mgx_plan_decline(c, "empty, or indices of another type");
    struct scatter *s = MGX_NEW(c->arena, struct scatter);
    if (!s)
        return mgx_plan_no_memory(c);
    s->wide = at->type == MGX_INT64;
    s->size = mgx_type_size(c->out->type);
    if (!nd)
        prepare_axis(c, s);
    if ((nd && !prepare_nd(c, s)) || !prepare_copy(c, s))
        return mgx_plan_refuse(c);
    if (mgx_shape_equal(&c->in[0], c->out))
        c->in_place = 0;
    c->state = s;
    return MGX_PLAN_TAKEN;
}

// --- running ---

static int64_t load(const struct scatter *s, const void *index, int64_t i)
{
    return cpu_integer(index, s->wide, i);
}

static enum mgx_status out_of_range(int64_t at, int64_t length, struct mgx_diag *diag)
{
    return mgx_fail(diag, MGX_INVALID,
                    "scatter: index %" PRId64 " is out of range for an axis of length %" PRId64, at,
                    length);
}

// One index for a whole run of y and updates that both step by y_run and u_run.
static void put_run(const struct scatter *s, unsigned char *y, const unsigned char *u, int64_t n,
                    int64_t y_run, int64_t u_run)
{
    if (y_run == 1 && u_run == 1) {
        memcpy(y, u, (size_t)n * s->size);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(y + (size_t)(i * y_run) * s->size, u + (size_t)(i * u_run) * s->size, s->size);
}

// The run at offsets y, u and at, whose own position along the axis is `p` steps in.
static enum mgx_status put_line(const struct scatter *s, const struct mgx_plan_args *args,
                                int64_t y, int64_t u, int64_t at, struct mgx_diag *diag)
{
    const int in = s->rank - 1;
    const int64_t n = s->rank ? s->lens[in] : 1, y_run = s->rank ? s->y[in] : 0,
                  u_run = s->rank ? s->u[in] : 0, at_run = s->rank ? s->at[in] : 0;
    const int64_t same = at_run == 0 ? n : 1; // elements that share an index
    unsigned char *to = args->out;
    const unsigned char *from = args->in[2];
    for (int64_t i = 0; i < n; i += same) {
        int64_t index = load(s, args->in[1], at + i * at_run);
        if (index < -s->length || index >= s->length) {
            if (s->skip)
                continue;
            return out_of_range(index, s->length, diag);
        }
        index += index < 0 ? s->length : 0;
        put_run(s, to + (size_t)(y + index * s->y_step + i * y_run) * s->size,
                from + (size_t)(u + i * u_run) * s->size, same, y_run, u_run);
    }
    return MGX_OK;
}

static enum mgx_status put_all(const struct scatter *s, const struct mgx_plan_args *args,
                               struct mgx_diag *diag)
{
    const int64_t lines = mgx_product(s->lens, s->rank - 1);
    for (int64_t p = 0; p < s->count; p++)
        for (int64_t line = 0; line < lines; line++) {
            int64_t rest = line, y = 0, u = p * s->u_step, at = p * s->at_step;
            for (int k = s->rank - 2; k >= 0; k--) {
                const int64_t i = rest % s->lens[k];
                rest /= s->lens[k];
                y += i * s->y[k];
                u += i * s->u[k];
                at += i * s->at[k];
            }
            TRY(put_line(s, args, y, u, at, diag));
        }
    return MGX_OK;
}

static enum mgx_status put_slabs(const struct scatter *s, const struct mgx_plan_args *args,
                                 size_t element, struct mgx_diag *diag)
{
    for (int64_t i = 0; i < s->count; i++) {
        int64_t offset = 0;
        for (int k = 0; k < s->depth; k++) {
            int64_t index = load(s, args->in[1], i * s->depth + k);
            if (index < -s->lens[k] || index >= s->lens[k])
                return out_of_range(index, s->lens[k], diag);
            offset += (index + (index < 0 ? s->lens[k] : 0)) * s->y[k];
        }
        memcpy((unsigned char *)args->out + (size_t)offset * element,
               (const unsigned char *)args->in[2] + (size_t)i * s->size, s->size);
    }
    return MGX_OK;
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    const struct scatter *s = step->state;
    const struct mgx_plan_step copy = {.kernel = &cpu_kernel_copy, .state = s->copy};
    if (args->in[0] != args->out)
        TRY(cpu_kernel_copy.run(&copy, args, diag));
    return s->slabs ? put_slabs(s, args, mgx_type_size(step->ins->shape.type), diag)
                    : put_all(s, args, diag);
}

CPU_KERNEL(scatter, 120)
const struct mgx_plan_kernel cpu_kernel_scatter = {
    .name = "scatter", .prepare = prepare, .run = run};
