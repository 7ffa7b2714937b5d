// SPDX-License-Identifier: MIT
// softmax, logsoftmax and reductions on the row kernels of kernel/rows/rows.h.
//
// softmax runs along its axis where that is contiguous in memory, whichever axis that is. A
// reduction over axes that lie innermost folds rows; one over axes that lie outside a contiguous
// rest (global average pooling of channels-last images) folds across rows.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "targets/cpu/kernel/rows/rows.h"
#include "targets/cpu/lower/lower.h"

enum { PARALLEL = 1 << 14 };

// Outer positions: lengths and strides of both operands.
struct outer {
    int rank;
    int64_t lens[MGX_MAX_RANK], x[MGX_MAX_RANK], y[MGX_MAX_RANK], count;
};

static void add_outer(struct outer *o, int64_t len, int64_t x, int64_t y)
{
    assert(o->rank < MGX_MAX_RANK && len > 0);
    if (len == 1)
        return;
    o->lens[o->rank] = len;
    o->x[o->rank] = x;
    o->y[o->rank++] = y;
    o->count *= len;
}

static void locate(const struct outer *o, int64_t index, int64_t *x, int64_t *y)
{
    assert(index >= 0 && index < o->count);
    *x = *y = 0;
    for (int k = o->rank - 1; k >= 0; k--) {
        *x += index % o->lens[k] * o->x[k];
        *y += index % o->lens[k] * o->y[k];
        index /= o->lens[k];
    }
}

struct rows {
    const struct mgx_rows_kernel *kernels;
    void (*map)(const float *x, float *y, int64_t n); // softmax and its logarithm
    enum mgx_fold kind;
    bool across;
    struct outer outer;
    int64_t n, stride, count, y_stride; // a row, or `count` rows of n
    int tasks;
};

static struct rows *new_rows(struct mgx_plan_offer *c)
{
    struct rows *r = MGX_NEW(c->arena, struct rows);
    if (!r)
        return NULL;
    r->kernels = mgx_rows_kernel(cpu_offered(c)->isa);
    r->outer.count = 1;
    return r;
}

static void choose_tasks(struct mgx_plan_offer *c, struct rows *r)
{
    const int64_t elements = mgx_shape_elements(&c->in[0]);
    assert(r->outer.count * r->n * (r->across ? r->count : 1) == elements);
    assert(cpu_reaches(&c->in[0], cpu_reach(r->outer.lens, r->outer.x, r->outer.rank) +
                                      (r->across ? (r->count - 1) * r->stride : 0) +
                                      (mgx_shape_is_broadcasted(&c->in[0]) && !r->across
                                           ? mgx_shape_space(&c->in[0]) - 1 -
                                                 cpu_reach(r->outer.lens, r->outer.x, r->outer.rank)
                                           : r->n - 1)));
    r->tasks = cpu_tasks(c, elements, PARALLEL, r->outer.count);
}

// The kept axis that is contiguous in both operands, or -1.
static int contiguous_axis(const struct mgx_shape *x, const struct mgx_shape *y, const bool *folded)
{
    assert(x->rank == y->rank);
    for (int i = 0; i < x->rank; i++)
        if (!folded[i] && x->lens[i] > 1 && x->strides[i] == 1 && y->strides[i] == 1)
            return i;
    return -1;
}

// --- softmax ---

// Softmax runs along its axis where that is contiguous, else across rows of another axis that is.
struct softmax_way {
    int axis, inner;
    bool along, log;
};

static bool choose_way(struct mgx_plan_offer *c, struct softmax_way *w)
{
    const struct mgx_shape *x = &c->in[0], *y = c->out;
    if (x->type != MGX_FLOAT || !mgx_shape_elements(x))
        return mgx_plan_unfit(c, "not float, or empty");
    bool itself[MGX_MAX_RANK] = {false};
    itself[w->axis] = true;
    w->inner = contiguous_axis(x, y, itself);
    w->along = (x->strides[w->axis] == 1 && y->strides[w->axis] == 1) || x->lens[w->axis] == 1;
    if (!w->along && (w->inner < 0 || w->log))
        return mgx_plan_wish(c, 0, MGX_PLAN_LIKE_RESULT,
                             "neither the axis nor another one is contiguous");
    return true;
}

static void lay_out_softmax(const struct mgx_plan_offer *c, const struct softmax_way *w,
                            struct rows *r)
{
    const struct mgx_shape *x = &c->in[0], *y = c->out;
    r->map = w->log ? r->kernels->logsoftmax : r->kernels->softmax;
    r->n = x->lens[w->along ? w->axis : w->inner];
    r->across = !w->along;
    r->count = x->lens[w->axis];
    r->stride = x->strides[w->axis];
    r->y_stride = y->strides[w->axis];
    for (int i = 0; i < x->rank; i++)
        if (i != w->axis && (w->along || i != w->inner))
            add_outer(&r->outer, x->lens[i], x->strides[i], y->strides[i]);
}

static bool same_strides(const struct mgx_shape *x, const struct mgx_shape *y)
{
    bool same = true;
    for (int i = 0; i < x->rank; i++)
        same &= x->lens[i] == 1 || x->strides[i] == y->strides[i];
    return same;
}

static enum mgx_plan_answer prepare_softmax(struct mgx_plan_offer *c)
{
    struct softmax_way way = {.log = c->ins->op == &mgx_op_logsoftmax};
    if (c->ins->op != &mgx_op_softmax && !way.log)
        return mgx_plan_refuse(c);
    way.axis = mgx_wrap_axis(mgx_ins_int(c->ins, "axis"), c->in[0].rank);
    if (!choose_way(c, &way))
        return mgx_plan_refuse(c);
    struct rows *r = new_rows(c);
    if (!r)
        return mgx_plan_no_memory(c);
    lay_out_softmax(c, &way, r);
    choose_tasks(c, r);
    // logsoftmax reads x again after writing y
    c->in_place = same_strides(&c->in[0], c->out) && !way.log ? 0 : -1;
    c->state = r;
    return MGX_PLAN_TAKEN;
}

// --- reductions ---

static bool find_kind(const struct mgx_op *op, enum mgx_fold *kind)
{
    static const struct {
        const struct mgx_op *op;
        enum mgx_fold kind;
    } kinds[] = {{&mgx_op_reduce_sum, MGX_FOLD_SUM},
                 {&mgx_op_reduce_mean, MGX_FOLD_MEAN},
                 {&mgx_op_reduce_max, MGX_FOLD_MAX},
                 {&mgx_op_reduce_min, MGX_FOLD_MIN},
                 {&mgx_op_reduce_prod, MGX_FOLD_PROD}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].op == op) {
            *kind = kinds[i].kind;
            return true;
        }
    return false;
}

// The folded axes as one: length and stride. False if they do not lie at one distance.
static bool merge_folded(const struct mgx_shape *x, const bool *folded, int64_t *count,
                         int64_t *stride)
{
    assert(x->rank <= MGX_MAX_RANK);
    int order[MGX_MAX_RANK], n = 0;
    for (int i = 0; i < x->rank; i++)
        if (folded[i] && x->lens[i] != 1)
            order[n++] = i;
    cpu_sort_axes(x, order, n);
    *count = *stride = 1;
    for (int i = n - 1; i >= 0; i--) {
        if (i == n - 1)
            *stride = x->strides[order[i]];
        else if (x->strides[order[i]] != *stride * *count)
            return false;
        *count *= x->lens[order[i]];
    }
    return true;
}

// The kept axis that rows lie along; false if there is none.
static bool find_inner(struct mgx_plan_offer *c, struct rows *r, const bool *folded, int *inner)
{
    *inner = contiguous_axis(&c->in[0], c->out, folded);
    if (*inner < 0)
        return mgx_plan_wish(c, 0, MGX_PLAN_ROW_MAJOR,
                             "neither the reduced axes nor the others are contiguous");
    r->across = true;
    r->n = c->in[0].lens[*inner];
    return true;
}

static bool lay_out(struct mgx_plan_offer *c, struct rows *r, const bool *folded)
{
    assert(c->in[0].rank == c->out->rank);
    const struct mgx_shape *x = &c->in[0];
    int inner = -1;
    if (!merge_folded(x, folded, &r->count, &r->stride))
        return mgx_plan_wish(c, 0, MGX_PLAN_ROW_MAJOR,
                             "the reduced axes do not lie at one distance");
    if (r->count == 1 || r->stride == 1)
        r->n = r->count;
    else if (!find_inner(c, r, folded, &inner))
        return false;
    for (int i = 0; i < x->rank; i++)
        if (!folded[i] && i != inner)
            add_outer(&r->outer, x->lens[i], x->strides[i], c->out->strides[i]);
    return true;
}

static void mark_folded(const struct mgx_ins *ins, int rank, bool *folded)
{
    const struct mgx_ints axes = mgx_ins_ints(ins, "axes");
    for (int i = 0; i < axes.count; i++)
        folded[mgx_wrap_axis(axes.v[i], rank)] = true;
    for (int i = 0; i < rank && !axes.count; i++)
        folded[i] = true;
}

static enum mgx_plan_answer prepare_reduce(struct mgx_plan_offer *c)
{
    enum mgx_fold kind;
    bool folded[MGX_MAX_RANK] = {false};
    if (!find_kind(c->ins->op, &kind))
        return mgx_plan_refuse(c);
    if (c->in[0].type != MGX_FLOAT || !mgx_shape_elements(&c->in[0]) || c->in_count != 1)
        return mgx_plan_decline(c, "not float, empty, or axes from an input");
    mark_folded(c->ins, c->in[0].rank, folded);
    struct rows *r = new_rows(c);
    if (!r)
        return mgx_plan_no_memory(c);
    r->kind = kind;
    if (!lay_out(c, r, folded))
        return mgx_plan_refuse(c);
    choose_tasks(c, r);
    c->detail = r->across ? "across rows" : "along rows";
    c->state = r;
    return MGX_PLAN_TAKEN;
}

// --- running ---

struct job {
    const struct rows *r;
    const struct mgx_plan_args *args;
};

static void run_part(void *user, int task, int thread)
{
    (void)thread;
    const struct job *job = user;
    const struct rows *r = job->r;
    const float *x = job->args->in[0];
    float *y = job->args->out;
    const int64_t end = r->outer.count * (task + 1) / r->tasks;
    for (int64_t i = r->outer.count * task / r->tasks; i < end; i++) {
        int64_t from, to;
        locate(&r->outer, i, &from, &to);
        if (r->map && r->across)
            r->kernels->softmax_across(x + from, r->stride, y + to, r->y_stride, r->count, r->n);
        else if (r->map)
            r->map(x + from, y + to, r->n);
        else if (r->across)
            r->kernels->fold_across(r->kind, x + from, r->stride, r->count, y + to, r->n);
        else
            y[to] = r->kernels->fold(r->kind, x + from, r->n);
    }
}

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    (void)diag;
    struct job job = {step->state, args};
    mgx_pool_run(cpu_pool(args), job.r->tasks, run_part, &job);
    return MGX_OK;
}

CPU_KERNEL(softmax, 60)
const struct mgx_plan_kernel cpu_kernel_softmax = {
    .name = "softmax", .prepare = prepare_softmax, .run = run};
CPU_KERNEL(reduce, 70)
const struct mgx_plan_kernel cpu_kernel_reduce = {
    .name = "reduce", .prepare = prepare_reduce, .run = run};
