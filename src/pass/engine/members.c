// SPDX-License-Identifier: MIT
// Members of sequences and optionals, where they are known; see members.h.
#include "pass/engine/members.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "pass/engine/emit.h"

enum { MOST = 4096, MOVES = 1 << 20 }; // members of a list, edits of it; members that edits move

struct member {
    struct mgx_ins *x;
    int axis; // the part from .. to along it; -1: all of x
    int64_t from, to;
    bool drops; // the axis, whose length is 1
};

struct list {
    struct member *v;
    int count, room;
    struct mgx_arena *scratch;
};

static struct member whole(struct mgx_ins *x)
{
    return (struct member){.x = x, .axis = -1};
}

// Room for a list of `count` and as many more as are inserted; false where that is too long, or
// when out of memory, which scratch notes.
static bool start(struct list *list, int64_t count)
{
    assert(count >= 0 && list->room >= 0);
    if (count > MOST ||
        !(list->v = MGX_NEW_ARRAY(list->scratch, struct member, count + list->room)))
        return false;
    list->count = (int)count;
    return true;
}

// The integers of input i; false unless it is a literal of few.
static bool known(struct mgx_arena *scratch, const struct mgx_ins *ins, int i, struct mgx_ints *out)
{
    const struct mgx_tensor *t = i < ins->in_count ? ins->in[i]->literal : NULL;
    const int64_t count = t ? mgx_shape_elements(&t->shape) : 0;
    int64_t *v = count > 0 && count <= MOST && mgx_type_is_integral(t->shape.type)
                     ? MGX_NEW_ARRAY(scratch, int64_t, count)
                     : NULL;
    if (!v)
        return false;
    mgx_tensor_to_ints(t, v);
    *out = (struct mgx_ints){v, (int)count};
    return true;
}

// The place that input i names in a list; `otherwise` where it is not given, -1 where it is not
// known.
static int place(const struct list *list, const struct mgx_ins *ins, int i, int otherwise)
{
    struct mgx_ints at;
    if (i >= ins->in_count)
        return otherwise;
    if (!known(list->scratch, ins, i, &at) || at.count != 1)
        return -1;
    const int64_t wrapped = at.v[0] < 0 ? at.v[0] + list->count : at.v[0];
    return wrapped >= 0 && wrapped < list->count + mgx_is(ins, &mgx_op_sequence_insert)
               ? (int)wrapped
               : -1;
}

// --- what makes sequences ---

static bool construct(struct list *list, const struct mgx_ins *ins)
{
    if (!start(list, ins->in_count))
        return false;
    for (int i = 0; i < ins->in_count; i++)
        list->v[i] = whole(ins->in[i]);
    return true;
}

// Parts of a size, the last one shorter, or of sizes; false unless these fill the length.
static bool part_sizes(const struct list *list, const struct mgx_ins *ins, int64_t length,
                       struct mgx_ints *sizes)
{
    struct mgx_ints given = {(const int64_t[]){1}, 1};
    if (ins->in_count == 2 && !known(list->scratch, ins, 1, &given))
        return false;
    if (ins->in_count == 2 && ins->in[1]->shape.rank > 0) {
        int64_t sum = 0;
        for (int i = 0; i < given.count && sum >= 0; i++)
            sum = given.v[i] < 0 || given.v[i] > length ? -1 : sum + given.v[i];
        *sizes = given;
        return sum == length;
    }
    const int64_t step = given.v[0], count = step > 0 ? (length + step - 1) / step : MOST + 1;
    int64_t *v = count <= MOST ? MGX_NEW_ARRAY(list->scratch, int64_t, count) : NULL;
    for (int64_t i = 0; v && i < count; i++)
        v[i] = mgx_min_i64(step, length - i * step);
    *sizes = (struct mgx_ints){v, (int)count};
    return v != NULL;
}

// A length that is known; -1: it is not.
static int64_t length_of(const struct mgx_shape *x, int axis)
{
    assert(axis >= 0 && axis < x->rank);
    const struct mgx_dim length = mgx_shape_dim(x, axis);
    return mgx_dim_is_fixed(&length) ? length.min : -1;
}

// The length of the axis that is split must be known; the others may be open.
static bool split(struct list *list, const struct mgx_ins *ins)
{
    const struct mgx_shape *x = &ins->in[0]->shape;
    struct mgx_ints sizes;
    if (x->unranked || !mgx_type_is_number(x->type))
        return false;
    const int axis = mgx_wrap_axis(mgx_ins_int(ins, "axis"), x->rank);
    const int64_t length = length_of(x, axis);
    if (length < 0 || !part_sizes(list, ins, length, &sizes) || !start(list, sizes.count))
        return false;
    const bool drops = !mgx_ins_int(ins, "keepdims") && ins->in_count == 1;
    int64_t at = 0;
    for (int i = 0; i < sizes.count; at += sizes.v[i++])
        list->v[i] = (struct member){ins->in[0], axis, at, at + sizes.v[i], drops};
    return true;
}

// --- what edits them ---

// One more member, or one less; false where the place is not known or all edits move too many.
static bool edit(struct list *list, const struct mgx_ins *ins, int64_t *moved)
{
    const bool adds = mgx_is(ins, &mgx_op_sequence_insert);
    const int at = place(list, ins, 1 + adds, list->count - !adds);
    if (at < 0)
        return false;
    struct member *v = list->v + at;
    const int behind = list->count - at - !adds;
    if ((*moved += behind) > MOVES)
        return false;
    assert(behind >= 0);
    memmove(v + adds, v + !adds, sizeof *v * (size_t)behind);
    if (adds)
        *v = whole(ins->in[1]);
    list->count += adds ? 1 : -1;
    return true;
}

static bool is_edit(const struct mgx_ins *ins)
{
    return mgx_is(ins, &mgx_op_sequence_insert) || mgx_is(ins, &mgx_op_sequence_erase);
}

// Members of what makes a sequence or an optional; edits are followed back to where it begins.
static bool list_of(struct mgx_arena *scratch, const struct mgx_ins *ins, struct list *list)
{
    int edits = 0;
    int64_t moved = 0;
    const struct mgx_ins *first = ins;
    for (; is_edit(first) && edits <= MOST; edits++)
        first = first->in[0];
    const struct mgx_ins **in_order = MGX_NEW_ARRAY(scratch, const struct mgx_ins *, edits);
    *list = (struct list){.room = edits, .scratch = scratch};
    if (edits > MOST || !in_order)
        return false;
    for (int i = edits; i-- > 0; ins = ins->in[0])
        in_order[i] = ins;
    const bool constructs =
        mgx_is(first, &mgx_op_sequence_construct) || mgx_is(first, &mgx_op_optional_construct);
    bool good = constructs ? construct(list, first)
                           : mgx_is(first, &mgx_op_split_to_sequence) && split(list, first);
    for (int i = 0; i < edits && good; i++)
        good = edit(list, in_order[i], &moved);
    return good;
}

// --- who reads them ---

static struct mgx_ins *take_member(struct mgx_ins *before, const struct member *m)
{
    const int64_t axis = m->axis;
    if (m->axis < 0)
        return m->x;
    struct mgx_ins *part = mgx_emit_slice(before, m->x, m->axis, m->from, m->to);
    return m->drops ? mgx_emit_before(before, &mgx_op_squeeze,
                                      MGX_ATTRS(mgx_ints("axes", &axis, 1)), MGX_IN(part))
                    : part;
}

static struct mgx_ins *at(struct mgx_ins *ins, const struct list *list)
{
    const int i = place(list, ins, 1, -1);
    return i >= 0 ? take_member(ins, &list->v[i]) : NULL;
}

static struct mgx_ins *length(struct mgx_ins *ins, const struct list *list)
{
    return mgx_literal_double(ins->owner, MGX_INT64, list->count);
}

// Do shapes go together along an axis of the first one's, or as they are? Open lengths that differ
// after all are found by what joins them.
static bool goes_with(const struct mgx_shape *x, const struct mgx_shape *first, int axis,
                      bool stacks)
{
    bool good = !x->unranked && mgx_type_is_number(x->type) && x->type == first->type &&
                x->rank == first->rank;
    for (int k = 0; good && k < x->rank; k++) {
        const int64_t a = length_of(x, k), b = length_of(first, k);
        good = a == b || a < 0 || b < 0 || (k == axis && !stacks);
    }
    return good;
}

static struct mgx_ins *join(struct mgx_ins *ins, const struct list *list)
{
    const bool stacks = mgx_ins_int(ins, "new_axis") != 0;
    const int count = list->count;
    struct mgx_ins **in = MGX_NEW_ARRAY(list->scratch, struct mgx_ins *, count);
    if (!count || !in || !(in[0] = take_member(ins, &list->v[0])))
        return NULL;
    const struct mgx_shape first = in[0]->shape;
    const int rank = first.rank + stacks;
    const int64_t axis = mgx_ins_int(ins, "axis") + (mgx_ins_int(ins, "axis") < 0 ? rank : 0);
    if (first.unranked || axis < 0 || axis >= rank || rank > MGX_MAX_RANK)
        return NULL;
    for (int i = 0; i < count; i++) {
        in[i] = i ? take_member(ins, &list->v[i]) : in[0];
        if (!in[i] || !goes_with(&in[i]->shape, &first, (int)axis, stacks))
            return NULL;
    }
    for (int i = 0; i < count && stacks; i++)
        in[i] = mgx_emit_before(ins, &mgx_op_unsqueeze, MGX_ATTRS(mgx_ints("axes", &axis, 1)),
                                MGX_IN(in[i]));
    return mgx_emit_concat(ins, in, count, (int)axis);
}

static struct mgx_ins *has_element(struct mgx_ins *ins, const struct list *list)
{
    return mgx_literal_double(ins->owner, MGX_BOOL, list->count > 0);
}

static struct mgx_ins *get_element(struct mgx_ins *ins, const struct list *list)
{
    (void)ins;
    return list->count ? list->v[0].x : NULL;
}

// --- all of it ---

static const struct {
    const struct mgx_op *op;
    struct mgx_ins *(*read)(struct mgx_ins *ins, const struct list *list);
} rows[] = {
    {&mgx_op_sequence_at, at},
    {&mgx_op_sequence_length, length},
    {&mgx_op_concat_from_sequence, join},
    {&mgx_op_optional_has_element, has_element},
    {&mgx_op_optional_get_element, get_element},
};

// An optional's readers take what is none as one that has an element, and nothing as an empty one.
static bool takes_plain(const struct mgx_ins *ins, struct mgx_ins **out)
{
    const bool asks = mgx_is(ins, &mgx_op_optional_has_element);
    if ((!asks && !mgx_is(ins, &mgx_op_optional_get_element)) ||
        (ins->in_count && ins->in[0]->shape.type == MGX_TUPLE))
        return false;
    *out = asks            ? mgx_literal_double(ins->owner, MGX_BOOL, ins->in_count > 0)
           : ins->in_count ? ins->in[0]
                           : NULL;
    return true;
}

struct mgx_ins *mgx_known_member(struct mgx_ins *read, struct mgx_arena *scratch)
{
    struct mgx_ins *by = NULL;
    struct list list;
    const struct mgx_arena_mark mark = mgx_arena_mark(scratch);
    for (int i = 0; i < MGX_COUNT(rows); i++)
        if (rows[i].op == read->op && !takes_plain(read, &by) &&
            list_of(scratch, read->in[0], &list))
            by = rows[i].read(read, &list);
    mgx_arena_rewind(scratch, mark);
    return by;
}
