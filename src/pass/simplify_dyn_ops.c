// SPDX-License-Identifier: MIT
// Operands that turn out to be known become attributes, and with them shapes become static.
//
//     reshape(x, {2, 3})                   =>  reshape[dims={2, 3}](x)
//     reshape_within(x, {2, 3})            =>  reshape[dims={2, 3}](x)
//     slice(x, starts, ends, axes)         =>  slice[starts, ends, axes](x)
//     pad(x, pads, value)                  =>  pad[pads, value](x)
//     topk(x, k), onehot(i, depth, v)      =>  topk[k](x), onehot[depth](i, v)
//     reduce(x, axes)                      =>  reduce[axes](x)
//     resize(x, sizes)                     =>  resize[sizes](x)
//     broadcast(x, y), multibroadcast(...) =>  the same to known lengths
//     broadcast_with_dims(x, {2, 3})       =>  multibroadcast[out_lens={2, 3}](x)
//     multibroadcast(x, y)                 =>  x, where y's axes are 1 or as long as those of x
//     broadcast_for_dot(x, y)              =>  x, where the same holds for all axes but the last two
//     [multi]broadcast(x, add(y, z))       =>  the same (x, y): only the lengths are read, and
//                                              whatever makes the sum may become one with its user
//     dimensions_of(x)                     =>  literal, where those lengths are fixed
//     dimensions_of(x)                     =>  that of a parameter, whose axis has the same name
//     random_uniform(seed, x)              =>  random_uniform(seed, multibroadcast(0)): only the
//                                              lengths are read, so a given seed makes a constant
//     fixed_pad(x)                         =>  fixed_pad[output_lens](x), for x of open lengths
//     select_module with one body          is left to inline_module
//
// Holds: the operand is a literal; the result's lengths stay what they are, or become fixed.
#include <string.h>

#include "pass/engine/emit.h"
#include "pass/engine/rewrite.h"

// The integers of a literal, in scratch memory; false if it is no literal of integers.
static bool read_ints(struct mgx_rewriter *r, const struct mgx_ins *ins, struct mgx_ints *out)
{
    if (!ins->literal || !mgx_type_is_integral(ins->shape.type) || ins->shape.rank > 1)
        return false;
    const int64_t count = mgx_shape_elements(&ins->shape);
    int64_t *v = count <= 4 * MGX_MAX_RANK ? MGX_NEW_ARRAY(r->call->scratch, int64_t, count) : NULL;
    if (!v)
        return false;
    mgx_tensor_to_ints(ins->literal, v);
    *out = (struct mgx_ints){v, (int)count};
    return true;
}

static struct mgx_program *program(const struct mgx_rewriter *r)
{
    return r->call->program;
}

// `ins` without its inputs from the second on, one list of its attributes being set.
static struct mgx_ins *with_ints(struct mgx_rewriter *r, struct mgx_ins *ins, const char *name,
                                 struct mgx_ints v)
{
    void *attr = mgx_edit_attr(program(r), ins);
    if (!mgx_edit_ints(program(r), ins->op, attr, name, v.v, v.count))
        return NULL;
    return mgx_emit_edited(ins, ins->op, attr, ins->in, 1);
}

static struct mgx_ins *reshape(struct mgx_rewriter *r, struct mgx_ins *ins,
                               const struct mgx_match *m)
{
    (void)m;
    struct mgx_ints dims;
    if (ins->in_count != 2 || !read_ints(r, ins->in[1], &dims))
        return NULL;
    return with_ints(r, ins, "dims", dims);
}

static struct mgx_ins *reshape_within(struct mgx_rewriter *r, struct mgx_ins *ins,
                                      const struct mgx_match *m)
{
    (void)m;
    struct mgx_ints dims;
    if (!read_ints(r, ins->in[1], &dims))
        return NULL;
    return mgx_emit_before(ins, &mgx_op_reshape, MGX_ATTRS(mgx_ints("dims", dims.v, dims.count)),
                           MGX_IN(ins->in[0]));
}

static struct mgx_ins *reduce(struct mgx_rewriter *r, struct mgx_ins *ins,
                              const struct mgx_match *m)
{
    (void)m;
    struct mgx_ints axes;
    // No axes in the input means none; no axes in the attribute means all.
    if (ins->in_count != 2 || !read_ints(r, ins->in[1], &axes) || !axes.count)
        return NULL;
    return with_ints(r, ins, "axes", axes);
}

// Integers are sizes; scales, which are floats, stay an input.
static struct mgx_ins *resize(struct mgx_rewriter *r, struct mgx_ins *ins,
                              const struct mgx_match *m)
{
    (void)m;
    struct mgx_ints sizes;
    if (ins->in_count != 2 || !read_ints(r, ins->in[1], &sizes) ||
        sizes.count != ins->in[0]->shape.rank)
        return NULL;
    return with_ints(r, ins, "sizes", sizes);
}

// What the attributes leave open is read from the inputs in the order starts, ends, axes.
static struct mgx_ins *slice(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)m;
    static const char *const names[] = {"starts", "ends", "axes"};
    struct mgx_ints lists[3];
    int input = 1;
    if (ins->in_count < 2)
        return NULL;
    for (int i = 0; i < 3; i++) {
        lists[i] = mgx_ins_ints(ins, names[i]);
        if (!lists[i].count && input < ins->in_count && !read_ints(r, ins->in[input++], &lists[i]))
            return NULL;
    }
    if (input != ins->in_count || lists[0].count != lists[1].count)
        return NULL;
    int64_t axes[MGX_MAX_RANK];
    if (!lists[2].count) { // the first ones
        for (int i = 0; i < lists[0].count && i < MGX_MAX_RANK; i++)
            axes[i] = i;
        lists[2] = (struct mgx_ints){axes, (int)mgx_min_i64(lists[0].count, MGX_MAX_RANK)};
    }
    void *attr = mgx_edit_attr(program(r), ins);
    for (int i = 0; i < 3; i++)
        if (!mgx_edit_ints(program(r), ins->op, attr, names[i], lists[i].v, lists[i].count))
            return NULL;
    return mgx_emit_edited(ins, ins->op, attr, ins->in, 1);
}

static struct mgx_ins *pad(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)m;
    struct mgx_ints pads;
    double value = 0;
    if (ins->in_count < 2 || !read_ints(r, ins->in[1], &pads))
        return NULL;
    const bool has_value = ins->in_count == 3;
    if (has_value && !mgx_splat_value(ins->in[2], &value))
        return NULL;
    void *attr = mgx_edit_attr(program(r), ins);
    if (!mgx_edit_ints(program(r), ins->op, attr, "pads", pads.v, pads.count))
        return NULL;
    if (has_value)
        mgx_edit_real(ins->op, attr, "value", value);
    return mgx_emit_edited(ins, ins->op, attr, ins->in, 1);
}

static struct mgx_ins *topk(struct mgx_rewriter *r, struct mgx_ins *ins, const struct mgx_match *m)
{
    (void)m;
    struct mgx_ints k;
    if (ins->in_count != 2 || !read_ints(r, ins->in[1], &k) || k.count != 1)
        return NULL;
    void *attr = mgx_edit_attr(program(r), ins);
    mgx_edit_int(ins->op, attr, "k", k.v[0]);
    return mgx_emit_edited(ins, ins->op, attr, ins->in, 1);
}

static struct mgx_ins *onehot(struct mgx_rewriter *r, struct mgx_ins *ins,
                              const struct mgx_match *m)
{
    (void)m;
    struct mgx_ints depth;
    if (ins->in_count != 3 || !read_ints(r, ins->in[1], &depth) || depth.count != 1)
        return NULL;
    void *attr = mgx_edit_attr(program(r), ins);
    mgx_edit_int(ins->op, attr, "depth", depth.v[0]);
    struct mgx_ins *const in[] = {ins->in[0], ins->in[2]};
    return mgx_emit_edited(ins, ins->op, attr, in, 2);
}

static struct mgx_ins *broadcast(struct mgx_rewriter *r, struct mgx_ins *ins,
                                 const struct mgx_match *m)
{
    (void)r, (void)m;
    const struct mgx_shape *s = &ins->shape;
    if (ins->in_count < 2 || !mgx_shape_is_static(s) || !mgx_shape_is_static(&ins->in[0]->shape))
        return NULL;
    if (!mgx_is(ins, &mgx_op_broadcast))
        return mgx_emit_multibroadcast(ins, ins->in[0], s->lens, s->rank);
    return mgx_emit_before(ins, &mgx_op_broadcast,
                           MGX_ATTRS(mgx_int("axis", mgx_ins_int(ins, "axis")),
                                     mgx_ints("out_lens", s->lens, s->rank)),
                           MGX_IN(ins->in[0]));
}

// May y make x longer? Not if each of its axes is 1, or as long as that of x in every run.
static bool widens(const struct mgx_shape *y, const struct mgx_shape *x)
{
    const int before = x->rank - y->rank;
    for (int i = 0; i < y->rank && before >= 0; i++) {
        const struct mgx_dim d = mgx_shape_dim(y, i), own = mgx_shape_dim(x, before + i);
        const bool is_one = d.min == 1 && d.max == 1;
        if (!is_one && !mgx_dim_same(&d, &own))
            return true;
    }
    return before < 0;
}

// The same of the operands of a product, of which the last two axes are not asked.
static struct mgx_ins *batch_widened_by_none(struct mgx_rewriter *r, struct mgx_ins *ins,
                                             const struct mgx_match *m)
{
    (void)r, (void)m;
    struct mgx_shape x = ins->in[0]->shape, y = ins->in[1]->shape;
    if (mgx_shape_is_static(&x) || x.unranked || y.unranked)
        return NULL;
    x.rank -= 2;
    y.rank -= 2;
    return widens(&y, &x) ? NULL : ins->in[0];
}

static struct mgx_ins *widened_by_none(struct mgx_rewriter *r, struct mgx_ins *ins,
                                       const struct mgx_match *m)
{
    (void)r, (void)m;
    const struct mgx_shape *x = &ins->in[0]->shape;
    if (ins->in_count < 2 || mgx_shape_is_static(x) || x->unranked)
        return NULL;
    for (int i = 1; i < ins->in_count; i++)
        if (ins->in[i]->shape.unranked || widens(&ins->in[i]->shape, x))
            return NULL;
    return ins->in[0];
}

// Whose lengths an element-wise instruction has, as far up as there are such.
static struct mgx_ins *source_of_lens(struct mgx_ins *ins)
{
    while ((ins->op->flags & MGX_OP_POINTWISE) && ins->in_count && ins->mod_count == 0 &&
           mgx_shape_same_lens(&ins->in[0]->shape, &ins->shape))
        ins = ins->in[0];
    return ins;
}

// The input behind the first whose lengths are those of all of these together; NULL if none has
// them.
static struct mgx_ins *widest(const struct mgx_ins *ins)
{
    for (int i = 1; i < ins->in_count; i++) {
        bool all = !ins->in[i]->shape.unranked;
        for (int k = 1; k < ins->in_count && all; k++)
            all = k == i ||
                  (!ins->in[k]->shape.unranked && !widens(&ins->in[k]->shape, &ins->in[i]->shape));
        if (all)
            return ins->in[i];
    }
    return NULL;
}

static struct mgx_ins *lens_of_source(struct mgx_rewriter *r, struct mgx_ins *ins,
                                      const struct mgx_match *m)
{
    (void)m;
    struct mgx_ins *widest_in = widest(ins);
    struct mgx_ins *in[] = {ins->in[0], widest_in ? source_of_lens(widest_in) : NULL};
    if (!widest_in || (ins->in_count == 2 && in[1] == ins->in[1]))
        return NULL;
    return mgx_emit_edited(ins, ins->op, mgx_edit_attr(program(r), ins), in, 2);
}

static struct mgx_ins *dimensions(struct mgx_rewriter *r, struct mgx_ins *ins,
                                  const struct mgx_match *m)
{
    (void)r;
    const struct mgx_shape *x = &mgx_var(m, 'x')->shape;
    int64_t lens[MGX_MAX_RANK], start = mgx_ins_int(ins, "start"), end = mgx_ins_int(ins, "end");
    if (x->unranked || x->type == MGX_TUPLE || x->type == MGX_SEQUENCE)
        return NULL;
    start = mgx_max_i64(0, mgx_min_i64(start < 0 ? start + x->rank : start, x->rank));
    end = end == 0 ? x->rank : mgx_min_i64(end < 0 ? end + x->rank : end, x->rank);
    for (int64_t d = start; d < end; d++) {
        const struct mgx_dim dim = mgx_shape_dim(x, (int)d);
        if (!mgx_dim_is_fixed(&dim))
            return NULL;
        lens[d - start] = dim.max;
    }
    return end > start ? mgx_literal_ints(ins->owner, lens, (int)(end - start)) : NULL;
}

// An axis of that name, of a parameter.
static struct mgx_ins *find_named(const struct mgx_module *m, const char *name, int *axis)
{
    for (struct mgx_ins *p = m->first; p; p = p->next)
        for (int i = 0; p->op == &mgx_op_param && !p->shape.unranked && i < p->shape.rank; i++) {
            const struct mgx_dim d = mgx_shape_dim(&p->shape, i);
            *axis = i;
            if (d.name && strcmp(d.name, name) == 0)
                return p;
        }
    return NULL;
}

static struct mgx_ins *dimension_by_name(struct mgx_rewriter *r, struct mgx_ins *ins,
                                         const struct mgx_match *m)
{
    (void)r;
    struct mgx_ins *x = mgx_var(m, 'x');
    const int64_t start = mgx_ins_int(ins, "start");
    if (x->shape.unranked || start < 0 || start >= x->shape.rank ||
        mgx_ins_int(ins, "end") != start + 1)
        return NULL;
    const struct mgx_dim d = mgx_shape_dim(&x->shape, (int)start);
    int axis;
    struct mgx_ins *from = d.name ? find_named(ins->owner, d.name, &axis) : NULL;
    if (!from || (from == x && axis == start))
        return NULL;
    return mgx_emit_before(
        ins, ins->op, MGX_ATTRS(mgx_int("start", axis), mgx_int("end", axis + 1)), MGX_IN(from));
}

static struct mgx_ins *numbers(struct mgx_rewriter *r, struct mgx_ins *ins,
                               const struct mgx_match *m)
{
    (void)r, (void)m;
    const struct mgx_shape like = ins->in[1]->shape;
    if (mgx_strip_views(ins->in[1])->literal || !mgx_shape_is_static(&like))
        return NULL;
    struct mgx_ins *in[] = {ins->in[0], mgx_emit_splat(ins, &like, 0)};
    return mgx_emit_again(ins, ins, in, 2);
}

static struct mgx_ins *pad_to(struct mgx_rewriter *r, struct mgx_ins *ins,
                              const struct mgx_match *m)
{
    const struct mgx_shape *x = &mgx_var(m, 'x')->shape;
    if (x->unranked || mgx_shape_is_static(x) || mgx_ins_ints(ins, "output_lens").count)
        return NULL;
    for (int i = 0; i < x->rank; i++)
        if (mgx_shape_dim(x, i).max >= MGX_DIM_ANY)
            return NULL;
    return with_ints(r, ins, "output_lens", (struct mgx_ints){x->lens, x->rank});
}

static const struct mgx_rule rules[] = {
    {"reshape ~> reshape[dims](x) for reshape(x, dims)", .rewrite = reshape},
    {"reshape_within ~> reshape[dims](x) for reshape_within(x, dims)", .rewrite = reshape_within},
    {"slice ~> slice[starts, ends, axes](x)", .rewrite = slice},
    {"pad ~> pad[pads, value](x)", .rewrite = pad},
    {"topk ~> topk[k](x)", .rewrite = topk},
    {"onehot ~> onehot[depth](i, v)", .rewrite = onehot},
    {"resize ~> resize[sizes](x) for resize(x, sizes)", .rewrite = resize},
    {"%reduce ~> reduce[axes](x)", .rewrite = reduce},
    {"broadcast|multibroadcast|broadcast_with_dims|broadcast_for_dot ~> broadcast[out_lens](x)",
     .rewrite = broadcast},
    {"multibroadcast ~> x", .rewrite = widened_by_none},
    {"broadcast_for_dot ~> x", .rewrite = batch_widened_by_none},
    {"multibroadcast|broadcast ~> the same (x, y)", .rewrite = lens_of_source},
    {"dimensions_of(x) ~> literal", .rewrite = dimensions},
    {"dimensions_of(x) ~> dimensions_of(parameter)", .rewrite = dimension_by_name},
    {"random_uniform|random_mersenne|random_normal ~> the same like zeros", .rewrite = numbers},
    {"fixed_pad(x) ~> fixed_pad[output_lens](x)", .rewrite = pad_to},
};

const struct mgx_pass mgx_pass_simplify_dyn_ops = {
    .name = "simplify_dyn_ops",
    .meaning = "makes known operands attributes and fixed shapes literals",
    .rules = {rules, MGX_COUNT(rules)},
};
