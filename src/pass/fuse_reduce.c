// SPDX-License-Identifier: MIT
// Reductions and the element-wise work around them become one `fused_reduce` with a body.
//
//     m = reduce_max[a](x);  e = exp(x - broadcast(m));  y = e / broadcast(reduce_sum[a](e))
//         =>   y = fused_reduce[axes=a](x), [the same]
//
// From its last instruction, the root, a group grows upwards: a producer joins when it is read
// inside the group only and is one of
//
//     element-wise work on the full lengths F, or on the reduced ones R
//     a reduction from F to R along the group's axes
//     a multibroadcast from R to F
//
// A byte that a product's end makes is read as a byte, where the target multiplies bytes: the end
// stays the product's. A float that is made half there likewise.
//
// F, R and the axes follow from the first reduction or broadcast that is met. Nothing is computed
// twice and nothing leaves but the root. Operands that are one constant everywhere become literals
// of the body. Static shapes only. A group takes at most MAX_BODY, so the cost is linear.
//
// fuse_pointwise_reduce runs it; no pipeline of ours does.
#include <assert.h>
#include <string.h>

#include "pass/engine/body.h"
#include "pass/engine/constant.h"
#include "pass/engine/region.h"
#include "pass/engine/walk.h"

enum { MAX_BODY = 64, MAX_INPUTS = 16 };

struct group {
    struct mgx_ins *ins[MAX_BODY]; // root first, then in the order of joining
    int count;
    struct mgx_ins *in[MAX_INPUTS];
    int in_count;
    bool bytes; // of products stay what they are
    bool known; // the lengths below
    int rank;
    int64_t full[MGX_MAX_RANK], reduced[MGX_MAX_RANK];
};

static bool has_lens(const struct mgx_ins *ins, const int64_t *lens, int rank)
{
    assert(rank >= 0 && rank <= MGX_MAX_RANK);
    return ins->shape.rank == rank &&
           memcmp(ins->shape.lens, lens, (size_t)rank * sizeof *lens) == 0;
}

// --- what may be in a group ---

static bool is_plain(const struct mgx_ins *ins)
{
    return mgx_shape_is_static(&ins->shape) && mgx_type_is_number(ins->shape.type) &&
           mgx_is_pure(ins) && mgx_shape_elements(&ins->shape) > 0;
}

static bool is_elementwise(const struct mgx_ins *ins)
{
    return is_plain(ins) && (ins->op->flags & MGX_OP_POINTWISE) &&
           !mgx_is(ins, &mgx_op_contiguous) && !mgx_is(ins, &mgx_op_layout);
}

static bool is_reduction(const struct mgx_ins *ins)
{
    return is_plain(ins) && (ins->op->flags & MGX_OP_REDUCE) && ins->in_count == 1 &&
           mgx_shape_is_static(&ins->in[0]->shape) &&
           mgx_shape_elements(&ins->in[0]->shape) != mgx_shape_elements(&ins->shape);
}

// From R to F: of equal rank, and of what varies at all (one value alone is a constant's business).
static bool is_spread(const struct mgx_ins *ins)
{
    return is_plain(ins) && mgx_is(ins, &mgx_op_multibroadcast) && ins->in_count == 1 &&
           mgx_shape_is_static(&ins->in[0]->shape) && ins->in[0]->shape.rank == ins->shape.rank &&
           mgx_shape_elements(&ins->in[0]->shape) != mgx_shape_elements(&ins->shape);
}

static bool fits_lens(struct group *g, const struct mgx_ins *full, const struct mgx_ins *reduced)
{
    if (g->known)
        return has_lens(full, g->full, g->rank) && has_lens(reduced, g->reduced, g->rank);
    g->known = true;
    g->rank = full->shape.rank;
    memcpy(g->full, full->shape.lens, sizeof g->full);
    memcpy(g->reduced, reduced->shape.lens, sizeof g->reduced);
    return true;
}

// `lens_of` is who gives the lengths while the group has no reduction: the root.
static bool group_fits(struct group *g, const struct mgx_ins *ins)
{
    if (is_reduction(ins))
        return fits_lens(g, ins->in[0], ins);
    if (is_spread(ins)) // of what no reduction gave it says nothing about the reduced lengths
        return (g->known || ins->in[0]->mark < MAX_BODY) && fits_lens(g, ins, ins->in[0]);
    if (!is_elementwise(ins))
        return false;
    const struct mgx_ins *root = g->ins[0];
    if (!g->known)
        return has_lens(ins, root->shape.lens, root->shape.rank);
    return has_lens(ins, g->full, g->rank) || has_lens(ins, g->reduced, g->rank);
}

static bool is_constant_everywhere(const struct mgx_ins *ins)
{
    double value;
    return mgx_splat_value(ins, &value);
}

// What the group reads from outside.
static bool is_operand(const struct group *g, const struct mgx_ins *in)
{
    return !mgx_body_has(g->ins, g->count, in) && !is_constant_everywhere(in);
}

static bool add_operands(struct group *g, const struct mgx_ins *ins)
{
    for (int k = 0; k < ins->in_count; k++) {
        struct mgx_ins *in = ins->in[k];
        if (!is_operand(g, in) || mgx_body_has(g->in, g->in_count, in))
            continue;
        if (g->in_count == MAX_INPUTS || in->shape.type == MGX_TUPLE)
            return false;
        g->in[g->in_count++] = in;
    }
    return true;
}

static bool find_inputs(struct group *g)
{
    g->in_count = 0;
    for (int i = 0; i < g->count; i++)
        if (!add_operands(g, g->ins[i]))
            return false;
    return true;
}

// Instead of `in` the group then reads what `in` reads.
static bool replace_input(struct group *g, struct mgx_ins *in)
{
    struct mgx_ins *const last = g->in_count ? g->in[g->in_count - 1] : NULL;
    const int before = g->in_count;
    int at = 0;
    while (at < before && g->in[at] != in)
        at++;
    if (at < before)
        g->in[at] = g->in[--g->in_count];
    if (add_operands(g, in))
        return true;
    g->in_count = before; // as it was: what was added stands behind
    if (at < before) {
        g->in[before - 1] = last;
        g->in[at] = in;
    }
    return false;
}

// Is it a product, or element-wise work of one that nobody else reads?
static bool is_of_product(const struct mgx_ins *ins, int depth)
{
    if (mgx_is_product(ins))
        return mgx_used_once(ins);
    bool is = false;
    for (int i = 0; i < ins->in_count && depth > 0 && is_elementwise(ins) && !is; i++)
        is = mgx_used_once(ins->in[i]) && is_of_product(ins->in[i], depth - 1);
    return is;
}

static bool is_end_of_product(const struct mgx_ins *ins)
{
    enum { DEEPEST = 16 };
    const enum mgx_type type = ins->shape.type;
    const bool byte = ins->op == &mgx_op_quantizelinear && mgx_type_is_byte(type);
    const bool half = ins->op == &mgx_op_convert && mgx_type_is_half_or_bf16(type) &&
                      ins->in[0]->shape.type == MGX_FLOAT;
    return (byte || half) && is_of_product(ins, DEEPEST);
}

static bool try_join(struct group *g, struct mgx_ins *in)
{
    const bool known = g->known;
    if (g->count == MAX_BODY || in->owner != g->ins[0]->owner ||
        mgx_body_has(g->ins, g->count, in) || is_constant_everywhere(in) ||
        !mgx_body_keeps(g->ins, g->count, in) || (g->bytes && is_end_of_product(in)) ||
        !group_fits(g, in))
        return false;
    g->ins[g->count++] = in;
    if (replace_input(g, in))
        return true;
    g->count--;
    g->known = known;
    return false;
}

// A broadcast on top of everything else is a view of an input, not work.
static void drop_leading_broadcasts(struct group *g)
{
    for (int i = g->count - 1; i > 0; i--) {
        if (!is_spread(g->ins[i]) || mgx_body_has(g->ins, g->count, g->ins[i]->in[0]))
            continue;
        memmove(g->ins + i, g->ins + i + 1, (size_t)(g->count - i - 1) * sizeof *g->ins);
        g->count--;
    }
}

static bool grow(struct group *g, struct mgx_ins *root, bool bytes)
{
    *g = (struct group){.ins = {root}, .count = 1, .bytes = bytes};
    if (is_reduction(root) ? !fits_lens(g, root->in[0], root) : !is_elementwise(root))
        return false;
    if (!find_inputs(g))
        return false;
    for (bool grew = true; grew;) {
        grew = false;
        for (int i = 0; i < g->count; i++)
            for (int k = 0; k < g->ins[i]->in_count; k++)
                grew |= try_join(g, g->ins[i]->in[k]);
    }
    drop_leading_broadcasts(g);
    bool reduces = false;
    for (int i = 0; i < g->count; i++)
        reduces |= is_reduction(g->ins[i]);
    return reduces && g->count > 1 && find_inputs(g) && g->in_count > 0;
}

// --- the body ---

// A constant that is one value everywhere, repeated.
static struct mgx_ins *make_constant(struct mgx_body *b, struct mgx_ins *in)
{
    if (!is_constant_everywhere(in))
        return NULL;
    struct mgx_ins *literal = mgx_body_scalar(b, mgx_strip_views(in)->literal);
    return mgx_body_note(b, in,
                         mgx_emit(b->module, &mgx_op_multibroadcast,
                                  MGX_ATTRS(mgx_ints("out_lens", in->shape.lens, in->shape.rank)),
                                  MGX_IN(literal)));
}

static void fill_body(struct mgx_body *b, struct group *g)
{
    struct mgx_ins *last = NULL;
    for (int i = 0; i < g->in_count; i++) {
        const struct mgx_shape s = mgx_shape_retype(&g->in[i]->shape, g->in[i]->shape.type);
        mgx_body_param(b, g->in[i], &s);
    }
    mgx_body_sort(g->ins, g->count);
    for (int i = 0; i < g->count; i++)
        last = mgx_body_copy(b, g->ins[i]);
    mgx_add_return(b->module, &last, 1);
}

static struct mgx_ins *emit(struct mgx_pass_call *c, const struct group *g, struct mgx_ins *root,
                            struct mgx_module *body)
{
    int64_t axes[MGX_MAX_RANK];
    int count = 0;
    void *attr = NULL;
    for (int d = 0; d < g->rank; d++)
        if (g->full[d] != g->reduced[d])
            axes[count++] = d;
    if (mgx_attr_make(&mgx_op_fused_reduce, MGX_ATTRS(mgx_ints("axes", axes, count)),
                      &c->program->arena, &attr, &c->program->diag) != MGX_OK)
        return NULL;
    return mgx_insert(root->owner, root, &mgx_op_fused_reduce, attr, g->in, g->in_count, &body, 1);
}

static enum mgx_status fuse(struct mgx_pass_call *c, struct group *g, struct mgx_ins *root)
{
    struct mgx_body b = {.make = make_constant};
    if (!mgx_body_begin(&b, c->program, "fused_reduce"))
        return mgx_program_status(c->program, c->diag);
    fill_body(&b, g);
    mgx_body_end(&b);
    TRY(mgx_program_status(c->program, c->diag));
    struct mgx_ins *fused = emit(c, g, root, b.module);
    if (!fused)
        return mgx_program_status(c->program, c->diag);
    for (int i = 0; i < g->count; i++)
        mgx_copy_origin(fused, g->ins[i]);
    mgx_replace(root, fused); // takes the group along
    c->changed = true;
    return MGX_OK;
}

// `mark`: how many instructions of a group at least lie between this one and a reduction before it.
static void measure_distances(struct mgx_module *m)
{
    MGX_EACH (ins, m) {
        ins->index = 0;
        ins->mark = is_reduction(ins) ? 0 : MAX_BODY;
        const bool passes_on = is_elementwise(ins) || is_spread(ins);
        for (int i = 0; passes_on && i < ins->in_count; i++)
            if (ins->in[i]->owner == m)
                ins->mark = mgx_min_i64(ins->mark, ins->in[i]->mark + 1);
    }
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    measure_distances(m);
    for (struct mgx_ins *ins = m->last; ins;) {
        struct group g;
        if (ins->mark < MAX_BODY && (ins->uses || ins == m->last) &&
            grow(&g, ins, c->options->target.multiplies_bytes)) {
            struct mgx_ins *after = ins->next;
            TRY(fuse(c, &g, ins));
            ins = after ? after->prev : m->last; // the fused instruction: go on above it
        }
        ins = ins->prev;
    }
    return MGX_OK;
}

const struct mgx_pass mgx_pass_fuse_reduce = {
    .name = "fuse_reduce",
    .meaning = "reductions and the element-wise work around them become one with a body",
    .module = run,
    .by_size = true,
};
