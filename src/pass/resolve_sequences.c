// SPDX-License-Identifier: MIT
// Sequences and optionals whose members are known, followed to those members.
//
//     sequence_at(sequence_construct(a, b), 1)            =>  b
//     sequence_at(sequence_insert(s, x, 0), 0)            =>  x
//     sequence_at(split_to_sequence[axis](x, sizes), i)   =>  slice(x)
//     sequence_length(sequence_erase(s))                  =>  literal
//     concat_from_sequence[axis](sequence_construct(..))  =>  concat(..), of unsqueezes where it stacks
//     optional_get_element(optional_construct(x))         =>  x
//     optional_has_element(optional_construct(x))         =>  literal
//
// A sequence is a list on the side: which instructions, or which parts of one. What nobody reads
// any more is dead code. Holds: positions and sizes are literals within their sequence, parts are
// of tensors of fixed shape, and what is joined has fixed shapes that go together; all else stays
// and fails, or not, when it runs. O(instructions x members).
#include <string.h>

#include "base/size.h"
#include "op/op.h"
#include "pass/engine/emit.h"
#include "pass/pass.h"

enum { MOST = 4096 }; // members of a list

struct member {
    struct mgx_ins *x;
    int axis; // the part from .. to along it; -1: all of x
    int64_t from, to;
    bool drops; // the axis, whose length is 1
};

struct list {
    struct member *v;
    int count;
};

struct follow {
    struct mgx_pass_call *call;
    struct mgx_map lists; // instruction -> struct list
};

static const struct list *list_of(const struct follow *f, const struct mgx_ins *ins)
{
    return mgx_map_find_pointer(&f->lists, ins);
}

static struct member whole(struct mgx_ins *x)
{
    return (struct member){.x = x, .axis = -1};
}

// Room for a list of `ins`; NULL where it is too long, or when out of memory, which scratch notes.
static struct list *start(struct follow *f, const struct mgx_ins *ins, int64_t count)
{
    struct mgx_arena *scratch = f->call->scratch;
    struct list *list = count <= MOST ? MGX_NEW(scratch, struct list) : NULL;
    if (!list || !(list->v = MGX_NEW_ARRAY(scratch, struct member, count)) ||
        !mgx_map_put_pointer(&f->lists, ins, list))
        return NULL;
    list->count = (int)count;
    return list;
}

// The integers of input i; false unless it is a literal of few.
static bool known(const struct follow *f, const struct mgx_ins *ins, int i, struct mgx_ints *out)
{
    const struct mgx_tensor *t = i < ins->in_count ? ins->in[i]->literal : NULL;
    const int64_t count = t ? mgx_shape_elements(&t->shape) : 0;
    int64_t *v = count > 0 && count <= MOST && mgx_type_is_integral(t->shape.type)
                     ? MGX_NEW_ARRAY(f->call->scratch, int64_t, count)
                     : NULL;
    if (!v)
        return false;
    mgx_tensor_to_ints(t, v);
    *out = (struct mgx_ints){v, (int)count};
    return true;
}

// The place that input i names among `count`; `otherwise` where it is not given, -1 where it is not
// known.
static int place(const struct follow *f, const struct mgx_ins *ins, int i, int count, int otherwise)
{
    struct mgx_ints at;
    if (i >= ins->in_count)
        return otherwise;
    if (!known(f, ins, i, &at) || at.count != 1)
        return -1;
    const int64_t wrapped = at.v[0] < 0 ? at.v[0] + count : at.v[0];
    return wrapped >= 0 && wrapped < count + mgx_is(ins, &mgx_op_sequence_insert) ? (int)wrapped
                                                                                  : -1;
}

// --- what makes sequences ---

static void construct(struct follow *f, const struct mgx_ins *ins)
{
    struct list *list = start(f, ins, ins->in_count);
    for (int i = 0; list && i < ins->in_count; i++)
        list->v[i] = whole(ins->in[i]);
}

// Members of input 0 with one more, or without one.
static void edit(struct follow *f, const struct mgx_ins *ins)
{
    const struct list *from = list_of(f, ins->in[0]);
    const bool adds = mgx_is(ins, &mgx_op_sequence_insert);
    const int at = from ? place(f, ins, 1 + adds, from->count, from->count - !adds) : -1;
    struct list *list = at >= 0 ? start(f, ins, from->count + (adds ? 1 : -1)) : NULL;
    for (int i = 0; list && i < list->count; i++)
        list->v[i] = i < at ? from->v[i]
                     : adds ? (i == at ? whole(ins->in[1]) : from->v[i - 1])
                            : from->v[i + 1];
}

// Parts of a size, the last one shorter, or of sizes; false unless these fill the length.
static bool part_sizes(const struct follow *f, const struct mgx_ins *ins, int64_t length,
                       struct mgx_ints *sizes)
{
    struct mgx_ints given = {(const int64_t[]){1}, 1};
    if (ins->in_count == 2 && !known(f, ins, 1, &given))
        return false;
    if (ins->in_count == 2 && ins->in[1]->shape.rank > 0) {
        int64_t sum = 0;
        for (int i = 0; i < given.count && sum >= 0; i++)
            sum = given.v[i] < 0 || given.v[i] > length ? -1 : sum + given.v[i];
        *sizes = given;
        return sum == length;
    }
    const int64_t step = given.v[0], count = step > 0 ? (length + step - 1) / step : MOST + 1;
    int64_t *v = count <= MOST ? MGX_NEW_ARRAY(f->call->scratch, int64_t, count) : NULL;
    for (int64_t i = 0; v && i < count; i++)
        v[i] = mgx_min_i64(step, length - i * step);
    *sizes = (struct mgx_ints){v, (int)count};
    return v != NULL;
}

static void split(struct follow *f, const struct mgx_ins *ins)
{
    const struct mgx_shape *x = &ins->in[0]->shape;
    struct mgx_ints sizes;
    if (!mgx_shape_is_static(x) || !mgx_type_is_number(x->type))
        return;
    const int axis = mgx_wrap_axis(mgx_ins_int(ins, "axis"), x->rank);
    if (!part_sizes(f, ins, x->lens[axis], &sizes))
        return;
    const bool drops = !mgx_ins_int(ins, "keepdims") && ins->in_count == 1;
    struct list *list = start(f, ins, sizes.count);
    int64_t at = 0;
    for (int i = 0; list && i < sizes.count; at += sizes.v[i++])
        list->v[i] = (struct member){ins->in[0], axis, at, at + sizes.v[i], drops};
}

// --- who reads them ---

static struct mgx_ins *take_member(struct mgx_ins *before, const struct member *m)
{
    const struct mgx_shape *x = &m->x->shape;
    int64_t lens[MGX_MAX_RANK];
    int rank = 0;
    if (m->axis < 0)
        return m->x;
    struct mgx_ins *part = mgx_emit_slice(before, m->x, m->axis, m->from, m->to);
    for (int k = 0; k < x->rank; k++)
        if (k != m->axis)
            lens[rank++] = x->lens[k];
    return m->drops ? mgx_emit_reshape(before, part, lens, rank) : part;
}

static struct mgx_ins *at(struct follow *f, struct mgx_ins *ins)
{
    const struct list *list = list_of(f, ins->in[0]);
    const int i = list ? place(f, ins, 1, list->count, -1) : -1;
    return i >= 0 ? take_member(ins, &list->v[i]) : NULL;
}

static struct mgx_ins *length(struct follow *f, struct mgx_ins *ins)
{
    const struct list *list = list_of(f, ins->in[0]);
    return list ? mgx_literal_double(ins->owner, MGX_INT64, list->count) : NULL;
}

// Do shapes go together along an axis of the first one's, or as they are?
static bool goes_with(const struct mgx_shape *x, const struct mgx_shape *first, int axis,
                      bool stacks)
{
    bool good = mgx_shape_is_static(x) && mgx_type_is_number(x->type) && x->type == first->type &&
                x->rank == first->rank;
    for (int k = 0; k < x->rank && good; k++)
        good = x->lens[k] == first->lens[k] || (k == axis && !stacks);
    return good;
}

static struct mgx_ins *join(struct follow *f, struct mgx_ins *ins)
{
    const struct list *list = list_of(f, ins->in[0]);
    const bool stacks = mgx_ins_int(ins, "new_axis") != 0;
    const int count = list ? list->count : 0;
    struct mgx_ins **in = MGX_NEW_ARRAY(f->call->scratch, struct mgx_ins *, count);
    if (!count || !in || !(in[0] = take_member(ins, &list->v[0])))
        return NULL;
    const struct mgx_shape first = in[0]->shape;
    const int rank = first.rank + stacks;
    const int64_t axis = mgx_ins_int(ins, "axis") + (mgx_ins_int(ins, "axis") < 0 ? rank : 0);
    if (axis < 0 || axis >= rank || rank > MGX_MAX_RANK)
        return NULL;
    for (int i = 0; i < count; i++) {
        in[i] = i ? take_member(ins, &list->v[i]) : in[0];
        if (!in[i] || !goes_with(&in[i]->shape, &first, (int)axis, stacks))
            return NULL;
    }
    for (int i = 0; i < count && stacks; i++)
        in[i] = mgx_emit_before(ins, &mgx_op_unsqueeze, MGX_ATTRS(mgx_ints("axes", &axis, 1)),
                                MGX_IN(in[i]));
    return count == 1 ? in[0] : mgx_emit_concat(ins, in, count, (int)axis);
}

static struct mgx_ins *has_element(struct follow *f, struct mgx_ins *ins)
{
    const struct list *list = ins->in_count ? list_of(f, ins->in[0]) : NULL;
    const bool plain = ins->in_count && ins->in[0]->shape.type != MGX_TUPLE;
    if (ins->in_count && !plain && !list)
        return NULL;
    return mgx_literal_double(ins->owner, MGX_BOOL, plain || (list && list->count));
}

static struct mgx_ins *get_element(struct follow *f, struct mgx_ins *ins)
{
    const struct list *list = list_of(f, ins->in[0]);
    if (ins->in[0]->shape.type != MGX_TUPLE)
        return ins->in[0];
    return list && list->count ? list->v[0].x : NULL;
}

// --- the pass ---

static const struct {
    const struct mgx_op *op;
    void (*make)(struct follow *f, const struct mgx_ins *ins);
    struct mgx_ins *(*read)(struct follow *f, struct mgx_ins *ins);
} rows[] = {
    {&mgx_op_sequence_construct, construct, NULL},
    {&mgx_op_optional_construct, construct, NULL},
    {&mgx_op_sequence_insert, edit, NULL},
    {&mgx_op_sequence_erase, edit, NULL},
    {&mgx_op_split_to_sequence, split, NULL},
    {&mgx_op_sequence_at, NULL, at},
    {&mgx_op_sequence_length, NULL, length},
    {&mgx_op_concat_from_sequence, NULL, join},
    {&mgx_op_optional_has_element, NULL, has_element},
    {&mgx_op_optional_get_element, NULL, get_element},
};

static void look_at(struct follow *f, struct mgx_ins *ins)
{
    for (int i = 0; i < MGX_COUNT(rows); i++) {
        if (rows[i].op != ins->op)
            continue;
        struct mgx_ins *by = NULL;
        if (rows[i].make)
            rows[i].make(f, ins);
        else
            by = rows[i].read(f, ins);
        if (by && by != ins) {
            mgx_replace_uses(ins, by);
            f->call->changed = true;
        }
    }
}

static enum mgx_status run(struct mgx_pass_call *c, struct mgx_module *m)
{
    struct follow f = {.call = c};
    MGX_EACH (ins, m)
        if (ins->uses)
            look_at(&f, ins);
    mgx_map_fini(&f.lists);
    TRY(mgx_program_status(c->program, c->diag));
    return c->scratch->failed ? mgx_fail_memory(c->diag) : MGX_OK;
}

const struct mgx_pass mgx_pass_resolve_sequences = {
    .name = "resolve_sequences",
    .meaning = "follows sequences and optionals whose members are known to those members",
    .module = run,
};
