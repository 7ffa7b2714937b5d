// SPDX-License-Identifier: MIT
// Emitting instructions for a node; see node.h. Everything is sticky: NULL in gives NULL out, and
// the walk looks at the program's status after each rule.
#include <assert.h>
#include <string.h>

#include "import/build.h"

static const char *origin_of(struct mgx_node *n)
{
    assert(n->name && n->op_type);
    if (!n->origin)
        n->origin = *n->name ? mgx_arena_printf(n->scratch, "%s (%s)", n->name, n->op_type)
                             : mgx_arena_printf(n->scratch, "(%s)", n->op_type);
    return n->origin;
}

struct mgx_ins *mgx_build_emit_body(struct mgx_node *n, const struct mgx_op *op,
                                    const struct mgx_attr *attrs, struct mgx_ins *const *in,
                                    int count, struct mgx_module *const *mod, int mod_count)
{
    struct mgx_program *p = n->module->program;
    assert(count >= 0 && mod_count >= 0 && (!n->before || n->before->owner));
    for (int i = 0; i < count; i++)
        if (!in[i])
            return NULL;
    void *attr = NULL;
    if (mgx_attr_make(op, attrs, &p->arena, &attr, &p->diag) != MGX_OK)
        return NULL;
    struct mgx_ins *before = n->before;
    if (before && before->owner != n->module)
        before = NULL; // inside a body
    struct mgx_ins *ins = mgx_insert(n->module, before, op, attr, in, count, mod, mod_count);
    mgx_add_origin(ins, origin_of(n));
    assert(!ins || (ins->owner == n->module && ins->in_count == count && ins->next != ins));
    return ins;
}

struct mgx_ins *mgx_build_emit_n(struct mgx_node *n, const struct mgx_op *op,
                                 const struct mgx_attr *attrs, struct mgx_ins *const *in, int count)
{
    return mgx_build_emit_body(n, op, attrs, in, count, NULL, 0);
}

struct mgx_ins *mgx_build_emit(struct mgx_node *n, const struct mgx_op *op,
                               const struct mgx_attr *attrs, struct mgx_ins_list in)
{
    return mgx_build_emit_n(n, op, attrs, in.v, in.count);
}

struct mgx_ins *mgx_build_scalar(struct mgx_node *n, enum mgx_type type, double value)
{
    assert(n->module);
    if (!mgx_type_is_number(type)) {
        mgx_fail(n->diag, MGX_INVALID, "%s where a number belongs", mgx_type_name(type));
        return NULL;
    }
    return mgx_literal_double(n->module, type, value);
}

struct mgx_ins *mgx_build_literal_ints(struct mgx_node *n, const int64_t *values, int count)
{
    return mgx_literal_ints(n->module, values, count);
}

enum mgx_status mgx_build_create(struct mgx_node *n, const struct mgx_shape *shape,
                                 struct mgx_tensor *out)
{
    if (!mgx_type_is_number(shape->type))
        return mgx_fail(n->diag, MGX_INVALID, "%s where a number belongs",
                        mgx_type_name(shape->type));
    TRY(mgx_shape_check(shape, n->diag));
    assert(mgx_shape_is_static(shape));
    TRY(mgx_fold_spend(n->fold, mgx_shape_bytes(shape), "a literal", n->diag));
    return mgx_tensor_create(out, shape, n->diag);
}

struct mgx_ins *mgx_build_undefined(struct mgx_node *n)
{
    return mgx_build_emit_n(n, &mgx_op_undefined, NULL, NULL, 0);
}

struct mgx_ins *mgx_build_convert(struct mgx_node *n, struct mgx_ins *x, enum mgx_type type)
{
    if (!x || x->shape.type == type)
        return x;
    return mgx_build_emit(n, &mgx_op_convert, MGX_ATTRS(mgx_int("target_type", type)), MGX_IN(x));
}

struct mgx_ins *mgx_build_reshape(struct mgx_node *n, struct mgx_ins *x, const int64_t *dims,
                                  int rank)
{
    return mgx_build_emit(n, &mgx_op_reshape, MGX_ATTRS(mgx_ints("dims", dims, rank)), MGX_IN(x));
}

struct mgx_ins *mgx_build_transpose(struct mgx_node *n, struct mgx_ins *x, const int64_t *perm,
                                    int rank)
{
    assert(!x || x->shape.unranked || x->shape.rank == rank);
    return mgx_build_emit(n, &mgx_op_transpose, MGX_ATTRS(mgx_ints("permutation", perm, rank)),
                          MGX_IN(x));
}

struct mgx_ins *mgx_build_member(struct mgx_node *n, struct mgx_ins *tuple, int64_t i)
{
    assert(i >= 0 && (!tuple || tuple->shape.type == MGX_TUPLE));
    return mgx_build_emit(n, &mgx_op_get_tuple_elem, MGX_ATTRS(mgx_int("index", i)), MGX_IN(tuple));
}

// --- broadcasting ---

// One length against another; false if they cannot be broadcast together.
static bool join_length(int64_t a, int64_t *common)
{
    assert(a >= 0 && *common >= 0);
    if (a == *common || a == 1)
        return true;
    if (*common != 1)
        return false;
    *common = a;
    return true;
}

static void print_lens(struct mgx_str *text, const struct mgx_shape *s)
{
    for (int i = 0; i < s->rank; i++) {
        const struct mgx_dim d = mgx_shape_dim(s, i);
        mgx_str_put(text, i ? ", " : "{");
        if (mgx_dim_is_fixed(&d))
            mgx_str_printf(text, "%lld", (long long)d.min);
        else
            mgx_str_put(text, "?");
    }
    mgx_str_put(text, s->rank ? "}" : "{}");
}

enum mgx_status mgx_build_misfit(struct mgx_node *n, const char *what, const struct mgx_ins *a,
                                 const char *other, const struct mgx_ins *b)
{
    struct mgx_str text = {0};
    print_lens(&text, &a->shape);
    mgx_str_printf(&text, " do not fit %s ", other);
    print_lens(&text, &b->shape);
    mgx_node_invalid(n, "%s %s", what, mgx_str_text(&text));
    mgx_str_fini(&text);
    return MGX_INVALID;
}

bool mgx_build_may_agree(const struct mgx_ins *a, int i, const struct mgx_ins *b, int j)
{
    const struct mgx_dim x = mgx_shape_dim(&a->shape, i), y = mgx_shape_dim(&b->shape, j);
    return x.min <= y.max && y.min <= x.max;
}

static enum mgx_status no_broadcast(struct mgx_node *n, const struct mgx_shape *a,
                                    const struct mgx_shape *b)
{
    struct mgx_str text = {0};
    print_lens(&text, a);
    mgx_str_put(&text, " and ");
    print_lens(&text, b);
    mgx_node_invalid(n, "shapes %s do not broadcast", mgx_str_text(&text));
    mgx_str_fini(&text);
    return MGX_INVALID;
}

// The common lengths of static shapes, numpy's rule: axes are matched from the last.
static enum mgx_status common_lens(struct mgx_node *n, struct mgx_ins *const *v, int count,
                                   int64_t *lens, int *rank)
{
    *rank = 0;
    for (int i = 0; i < count; i++)
        *rank = v[i]->shape.rank > *rank ? v[i]->shape.rank : *rank;
    for (int axis = 0; axis < *rank; axis++)
        lens[axis] = 1;
    for (int i = 0; i < count; i++) {
        const struct mgx_shape *s = &v[i]->shape;
        for (int axis = 0; axis < s->rank; axis++)
            if (!join_length(s->lens[axis], &lens[*rank - s->rank + axis]))
                return no_broadcast(n, &v[0]->shape, s);
    }
    return MGX_OK;
}

// Has x, beyond doubt, the lengths that all of them together broadcast to? True if each of its axes
// is of the others' length by name, or the others have length 1 there or nothing.
static bool is_widest(const struct mgx_ins *x, struct mgx_ins *const *v, int count)
{
    assert(count > 0);
    for (int i = 0; i < count; i++) {
        const struct mgx_shape *s = &v[i]->shape;
        const int lead = x->shape.rank - s->rank;
        if (s->unranked || x->shape.unranked || lead < 0)
            return false;
        for (int axis = 0; axis < s->rank; axis++) {
            const struct mgx_dim a = mgx_shape_dim(&x->shape, lead + axis);
            const struct mgx_dim b = mgx_shape_dim(s, axis);
            const bool same_name = a.name && b.name && strcmp(a.name, b.name) == 0;
            const bool same_size = mgx_dim_is_fixed(&a) && mgx_dim_is_fixed(&b) && a.min == b.min;
            if (!same_name && !same_size && !(mgx_dim_is_fixed(&b) && b.max == 1))
                return false;
        }
    }
    return true;
}

// Lengths known only at run time: the operator takes the others as further inputs.
static struct mgx_ins *broadcast_dynamic(struct mgx_node *n, struct mgx_ins *x,
                                         struct mgx_ins *const *v, int count)
{
    assert(x && count > 0);
    if (is_widest(x, v, count))
        return x;
    struct mgx_ins **in = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, count + 1);
    if (!in)
        return NULL;
    int used = 0;
    in[used++] = x;
    for (int i = 0; i < count; i++)
        if (v[i] != x)
            in[used++] = v[i];
    return used == 1 ? x : mgx_build_emit_n(n, &mgx_op_multibroadcast, NULL, in, used);
}

enum mgx_status mgx_build_broadcast(struct mgx_node *n, struct mgx_ins **v, int count)
{
    bool all_static = true;
    for (int i = 0; i < count; i++) {
        if (!v[i])
            return MGX_OK; // the failure that made it NULL is recorded
        all_static &= mgx_build_is_static(v[i]);
    }
    if (!all_static) {
        struct mgx_ins **old = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, count);
        if (!old)
            return mgx_fail_memory(n->diag);
        if (count)
            memcpy(old, v, (size_t)count * sizeof *old);
        for (int i = 0; i < count; i++)
            v[i] = broadcast_dynamic(n, old[i], old, count);
        return MGX_OK;
    }
    int64_t lens[MGX_MAX_RANK];
    int rank;
    TRY(common_lens(n, v, count, lens, &rank));
    assert(rank <= MGX_MAX_RANK);
    for (int i = 0; i < count; i++)
        if (v[i]->shape.rank != rank ||
            memcmp(v[i]->shape.lens, lens, (size_t)rank * sizeof *lens) != 0)
            v[i] = mgx_build_emit(n, &mgx_op_multibroadcast,
                                  MGX_ATTRS(mgx_ints("out_lens", lens, rank)), MGX_IN(v[i]));
    return MGX_OK;
}

struct mgx_ins *mgx_build_binary(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *a,
                                 struct mgx_ins *b)
{
    struct mgx_ins *v[] = {a, b};
    if (mgx_build_broadcast(n, v, 2) != MGX_OK)
        return NULL;
    return mgx_build_emit(n, op, NULL, MGX_IN(v[0], v[1]));
}

struct mgx_ins *mgx_build_unary(struct mgx_node *n, const struct mgx_op *op, struct mgx_ins *x)
{
    return mgx_build_emit(n, op, NULL, MGX_IN(x));
}

bool mgx_build_is_static(const struct mgx_ins *ins)
{
    return mgx_shape_is_static(&ins->shape) && ins->shape.type != MGX_SEQUENCE;
}
