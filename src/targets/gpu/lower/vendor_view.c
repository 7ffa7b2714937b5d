// SPDX-License-Identifier: MIT
// A product as a library sees it: matrices whose lines lie at one distance, and what follows it as far
// as libraries do that themselves.
//
//     dot           all batches together are rows where b is the same for all, else batch entries
//     convolution   a window over an image; 1 x 1 without steps, channels last: a dot besides
#include <assert.h>
#include <string.h>

#include "op/op.h"
#include "op/reference/window.h"
#include "targets/gpu/lower/vendor.h"
#include "targets/gpu/lower/wgmma.h"

// --- matrices ---

static bool read_matrix(const struct mgx_shape *s, const int *row_axes, int row_axis_count,
                        int column_axis, int64_t rows, int64_t columns, struct gpu_vendor_matrix *m)
{
    const int64_t across = columns == 1 ? 1 : s->strides[column_axis];
    int64_t down;
    if (!gpu_wgmma_merge(s, row_axes, row_axis_count, &down))
        return false;
    m->by_column = across != 1;
    m->line = rows == 1 ? columns : down;
    if (across == 1)
        return m->line >= columns;
    m->line = across;
    return (rows == 1 || down == 1) && across >= rows;
}

// The first axes count batch entries.
static bool read_operand(const struct gpu_vendor_view *v, const struct mgx_shape *s, int64_t rows,
                         int64_t columns, struct gpu_vendor_matrix *m)
{
    return gpu_wgmma_merge(s, v->row_axes, v->batch_axis_count, &m->batch) &&
           read_matrix(s, v->row_axes + v->batch_axis_count,
                       v->row_axis_count - v->batch_axis_count, v->column_axis, rows, columns, m);
}

static bool is_shared(const struct mgx_shape *s, int axes)
{
    for (int i = 0; i < axes; i++)
        if (s->lens[i] > 1 && s->strides[i] != 0)
            return false;
    return true;
}

static void count_axes(struct gpu_vendor_view *v, int rank)
{
    const bool dot = v->p.ins->op == &mgx_op_dot;
    v->column_axis = dot ? rank - 1 : 1;
    for (int i = 0; i < rank; i++)
        if (i != v->column_axis)
            v->row_axes[v->row_axis_count++] = i;
}

static bool set_rows(struct gpu_vendor_view *v, bool together)
{
    const struct gpu_product *p = &v->p;
    v->batch_axis_count = together ? 0 : v->row_axis_count - 1;
    v->whole.batches = together ? 1 : p->batches;
    v->whole.rows = together ? p->rows * p->batches : p->rows;
    v->whole.columns = p->columns;
    v->whole.depth = p->depth;
    return v->whole.rows < INT32_MAX && v->whole.batches < INT32_MAX;
}

static const char *see_dot(const struct mgx_plan_offer *c, struct gpu_vendor_view *v)
{
    const struct mgx_shape *a = &c->in[v->p.operand[0]], *b = &c->in[v->p.operand[1]];
    const int rank = c->out->rank;
    const int depth_axis = rank - 2;
    struct gpu_vendor_product *w = &v->whole;
    if (a->rank != rank || b->rank != rank)
        return "operands of several ranks";
    bool good =
        is_shared(b, rank - 2) && set_rows(v, true) && read_operand(v, a, w->rows, w->depth, &w->a);
    if (!good)
        good = set_rows(v, false) && read_operand(v, a, w->rows, w->depth, &w->a);
    if (!good || !gpu_wgmma_merge(b, v->row_axes, v->batch_axis_count, &w->b.batch) ||
        !read_matrix(b, &depth_axis, 1, rank - 1, w->depth, w->columns, &w->b))
        return "an operand whose lines, or batch entries, do not lie at one distance";
    w->matrices = true;
    return NULL;
}

static bool is_point(const struct gpu_vendor_window *w, const struct gpu_product *p)
{
    bool point = p->batches == 1 && p->depth == w->weights.lens[1];
    for (int i = 0; i < w->axes; i++)
        point = point && w->step[i] == 1 && w->before[i] == 0 && w->after[i] == 0;
    return point;
}

static struct gpu_vendor_tensor tensor_of(const struct mgx_shape *s)
{
    struct gpu_vendor_tensor t = {0};
    for (int i = 0; i < s->rank; i++) {
        t.lens[i] = s->lens[i];
        t.strides[i] = s->lens[i] == 1 && s->strides[i] == 0 ? 1 : s->strides[i];
    }
    return t;
}

static const char *see_window(const struct mgx_plan_offer *c, struct gpu_vendor_view *v)
{
    const struct mgx_shape *x = &c->in[v->p.operand[0]], *weights = &c->in[v->p.operand[1]];
    const struct mgx_window_attr a = mgx_window_of(v->p.ins);
    struct gpu_vendor_window *w = &v->whole.window;
    const int axes = x->rank - 2;
    if (axes < 1 || axes > GPU_VENDOR_AXES || a.stride.count < axes || a.dilation.count < axes ||
        a.padding.count < axes)
        return "an image of more than three axes";
    w->axes = axes;
    for (int i = 0; i < axes; i++) {
        w->step[i] = a.stride.v[i];
        w->far[i] = a.dilation.v[i];
        w->before[i] = a.padding.v[i];
        w->after[i] = a.padding.v[a.padding.count == 2 * axes ? axes + i : i];
    }
    w->image = tensor_of(x);
    w->weights = tensor_of(weights);
    w->result = tensor_of(c->out);
    return NULL;
}

static const char *see_convolution(const struct mgx_plan_offer *c, struct gpu_vendor_view *v)
{
    const struct mgx_shape *x = &c->in[v->p.operand[0]], *w = &c->in[v->p.operand[1]];
    const int depth_axis = 1;
    const char *why = see_window(c, v);
    if (why)
        return why;
    if (!set_rows(v, true))
        return "more rows than libraries count";
    v->whole.matrices =
        is_point(&v->whole.window, &v->p) &&
        read_operand(v, x, v->whole.rows, v->whole.depth, &v->whole.a) &&
        read_matrix(w, &depth_axis, 1, 0, v->whole.depth, v->whole.columns, &v->whole.b);
    return NULL;
}

// --- what follows ---

struct walk {
    const struct mgx_plan_offer *c;
    struct gpu_vendor_view *v;
    const struct mgx_ins *product;                  // as the body calls it
    const struct mgx_ins *operand[GPU_CALL_INPUTS]; // the tail's others, as it calls them
};

static bool take_operand(struct walk *k, const struct mgx_ins *ins)
{
    struct gpu_vendor_view *v = k->v;
    int e = 0;
    while (e < v->p.extra_count && k->operand[e] != ins)
        e++;
    if (e == v->p.extra_count)
        return false;
    const int input = v->p.extra[e];
    const struct mgx_shape *s = &k->c->in[input];
    const bool line = s->strides[v->column_axis] == 1 || v->p.columns == 1;
    bool same = true; // for all rows
    for (int i = 0; i < v->row_axis_count; i++)
        same = same && (s->lens[v->row_axes[i]] == 1 || s->strides[v->row_axes[i]] == 0);
    if (s->type != v->whole.type)
        return false;
    if (same && line && v->bias < 0) {
        v->bias = input;
        v->whole.last |= GPU_VENDOR_BIAS;
        return true;
    }
    if (v->add >= 0 || !read_operand(v, s, v->whole.rows, v->whole.columns, &v->whole.add))
        return false;
    v->add = input;
    v->whole.last |= GPU_VENDOR_ADD;
    return !v->whole.add.by_column;
}

// The body from its result back to the product: an activation, and sums before it. A library's gelu
// is not exact to float (cuBLASLt 13.1 on an H200: 2.6e-6 where the sums were 1e-7): of floats it is
// ours to compute.
static bool walk_back(struct walk *k, const struct mgx_ins *x)
{
    if (x->op == &mgx_op_gelu_tanh && k->v->whole.type == MGX_FLOAT)
        return false;
    if (x->op == &mgx_op_relu || x->op == &mgx_op_gelu_tanh) {
        k->v->whole.last |= x->op == &mgx_op_relu ? GPU_VENDOR_RELU : GPU_VENDOR_GELU;
        x = x->in[0];
    }
    while (x != k->product && x->op == &mgx_op_add) {
        const bool right = x->in[0] == k->product || x->in[0]->op == &mgx_op_add;
        if (!take_operand(k, x->in[right]))
            return false;
        x = x->in[!right];
    }
    return x == k->product;
}

static bool see_tail(const struct mgx_plan_offer *c, struct gpu_vendor_view *v)
{
    const struct mgx_ins *tail = v->p.tail;
    const struct mgx_module *body = tail->op == &mgx_op_pointwise ? tail->mod[0] : NULL;
    struct walk k = {.c = c, .v = v};
    struct mgx_ins *params[GPU_CALL_INPUTS];
    if (tail->in_count > GPU_CALL_INPUTS ||
        (body && (mgx_module_parameters(body, params, GPU_CALL_INPUTS) != tail->in_count)))
        return false;
    for (int i = 0, e = 0; i < tail->in_count; i++) {
        const struct mgx_ins *here = body ? params[i] : tail->in[i];
        if (i == v->p.place)
            k.product = here;
        else
            k.operand[e++] = here;
    }
    return walk_back(&k, body ? mgx_module_result(body, 0) : tail);
}

// --- both ---

// What every address is a multiple of: values begin at lines of memory, and slices of them inside.
static unsigned common_alignment(const struct mgx_plan_offer *c, const struct gpu_vendor_view *v)
{
    enum { MOST = 16 };
    const size_t size = mgx_type_size(v->whole.type);
    uint64_t bits = MOST;
    for (int i = 0; i < c->in_count && c->in_offset; i++)
        bits |= (uint64_t)c->in_offset[i];
    if (!v->why) { // a part of a wider result may begin at any of its columns
        const struct gpu_vendor_window *w = &v->whole.window;
        const int64_t line = v->whole.matrices ? v->whole.out.line : w->result.strides[w->axes + 1];
        bits |= (uint64_t)line * size | (line == c->out->lens[v->column_axis] ? 0 : size);
    }
    const unsigned lowest = (unsigned)(bits & -bits);
    return lowest < size ? (unsigned)size : lowest;
}

struct mgx_shape gpu_vendor_packed(const struct mgx_plan_offer *c, const struct gpu_vendor_view *v)
{
    assert(v->column_axis >= 0 && v->column_axis < c->out->rank);
    struct mgx_shape s = mgx_shape_make(v->whole.type, c->out->rank, c->out->lens);
    int64_t stride = s.lens[v->column_axis];
    s.strides[v->column_axis] = 1;
    for (int i = v->row_axis_count - 1; i >= 0; i--) {
        s.strides[v->row_axes[i]] = stride;
        stride *= s.lens[v->row_axes[i]];
    }
    return s;
}

static void set_bare(const struct mgx_plan_offer *c, struct gpu_vendor_view *v)
{
    const struct mgx_shape packed = gpu_vendor_packed(c, v);
    v->bare = v->whole;
    v->bare.last = 0;
    v->bare.out = (struct gpu_vendor_matrix){.line = v->whole.columns,
                                             .batch = v->whole.columns * v->whole.rows};
    if (v->whole.window.axes)
        v->bare.window.result = tensor_of(&packed);
}

static const char *see_whole(const struct mgx_plan_offer *c, struct gpu_vendor_view *v)
{
    struct gpu_vendor_product *w = &v->whole;
    if (c->out->type != w->type)
        return "a result of another type";
    if (!w->matrices)
        return v->p.tail ? "what follows is no library's" : NULL;
    if (!read_operand(v, c->out, w->rows, w->columns, &w->out) || w->out.by_column)
        return "a result whose rows are not lines at one distance";
    return !v->p.tail || see_tail(c, v) ? NULL : "what follows is no library's";
}

const char *gpu_vendor_see(const struct mgx_plan_offer *c, struct gpu_vendor_view *v)
{
    memset(v, 0, sizeof *v);
    v->add = v->bias = -1;
    const char *why = gpu_product_read(c, &v->p);
    if (why)
        return why;
    const enum mgx_type type = v->p.ins->shape.type;
    const bool dot = v->p.ins->op == &mgx_op_dot;
    if (v->p.make || (!dot && v->p.ins->op != &mgx_op_convolution) ||
        (!mgx_type_is_half_or_bf16(type) && type != MGX_FLOAT) ||
        c->in[v->p.operand[0]].type != type || c->in[v->p.operand[1]].type != type)
        return "operands that are not all half, bf16 or float";
    if (mgx_shape_elements(c->out) == 0 || v->p.depth == 0)
        return "no results, or no depth";
    v->whole.type = type;
    v->whole.tf32 = gpu_machine_rounds(c->machine, dot);
    count_axes(v, c->out->rank);
    why = dot ? see_dot(c, v) : see_convolution(c, v);
    if (why)
        return why;
    v->why = see_whole(c, v);
    if (v->why && !v->p.tail)
        return v->why;
    v->whole.alignment = common_alignment(c, v);
    set_bare(c, v);
    return NULL;
}

// --- scratch ---

size_t gpu_vendor_product_bytes(const struct gpu_vendor_view *v, const struct gpu_vendor_entry *e)
{
    const struct gpu_vendor_product *p = &v->bare;
    const int64_t elements = p->rows * p->columns * p->batches;
    return e->whole ? 0 : gpu_vendor_rounded((size_t)elements * mgx_type_size(p->type));
}

size_t gpu_vendor_workspace(const struct gpu_vendor_view *v, const struct gpu_vendor_entry *e)
{
    const size_t bytes = gpu_vendor_product_bytes(v, e) + gpu_vendor_rounded(e->choice.workspace);
    return bytes ? bytes + GPU_VENDOR_ALIGNMENT : 0;
}
