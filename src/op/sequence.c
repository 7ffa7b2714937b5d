// SPDX-License-Identifier: MIT
// Sequences: sequence_construct, sequence_at, sequence_insert, sequence_erase, sequence_length, and
// optionals: optional_construct, optional_has_element, optional_get_element. An optional is a tuple
// that is declared with one member and holds one or none at run time.
//
// A sequence's members share a type; their shapes are known only at run time, so what is taken out
// is unranked. Members are shared, never copied: an edit costs O(number of members), one at the end
// O(1) as long as the result alone is extended further.
#include "op/op.h"

#include <assert.h>

#include "op/rule/rule.h"

// --- shapes ---

static enum mgx_status require_sequence(struct mgx_shape_call *c, int i)
{
    if (c->in[i]->type == MGX_SEQUENCE)
        return MGX_OK;
    return mgx_fail(c->diag, MGX_INVALID, "%s: input %d is %s, not a sequence", c->op->name, i,
                    mgx_type_name(c->in[i]->type));
}

// A sequence of members like `member`: of its type if it is a tensor, of its kind if it is a
// sequence.
static enum mgx_status sequence_of(struct mgx_shape_call *c, const struct mgx_shape *member,
                                   struct mgx_shape *out)
{
    struct mgx_shape *kept = MGX_NEW(c->arena, struct mgx_shape);
    if (!kept)
        return mgx_fail_memory(c->diag);
    *kept = member->type == MGX_SEQUENCE ? *member : mgx_shape_unranked(member->type);
    *out = mgx_shape_sequence(kept);
    return MGX_OK;
}

static enum mgx_status member_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *s = c->in[0];
    if (!s->sub_count)
        return mgx_fail(c->diag, MGX_INVALID, "%s: the type of the sequence's members is unknown",
                        c->op->name);
    *out = s->sub[0].type == MGX_SEQUENCE ? s->sub[0] : mgx_shape_unranked(s->sub[0].type);
    return MGX_OK;
}

struct construct {
    int64_t dtype; // of an empty sequence or optional
    bool sequence; // an optional sequence, of that type
};

static const struct mgx_field construct_fields[] = {MGX_TYPE(struct construct, dtype), {0}};
static const struct mgx_field optional_fields[] = {
    MGX_TYPE(struct construct, dtype), MGX_FLAG(struct construct, sequence), {0}};
static const struct construct construct_defaults = {.dtype = MGX_FLOAT};

static enum mgx_status construct_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    for (int i = 1; i < c->in_count; i++)
        if (c->in[i]->type != c->in[0]->type)
            return mgx_fail(c->diag, MGX_INVALID, "%s: member 0 is %s, member %d is %s",
                            c->op->name, mgx_type_name(c->in[0]->type), i,
                            mgx_type_name(c->in[i]->type));
    const struct mgx_shape empty =
        mgx_shape_unranked((enum mgx_type)((const struct construct *)c->attr)->dtype);
    return sequence_of(c, c->in_count ? c->in[0] : &empty, out);
}

static enum mgx_status optional_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct construct *a = c->attr;
    struct mgx_shape *member = MGX_NEW(c->arena, struct mgx_shape);
    const struct mgx_shape empty = mgx_shape_unranked((enum mgx_type)a->dtype);
    if (!member)
        return mgx_fail_memory(c->diag);
    *member = c->in_count ? *c->in[0] : empty;
    if (!c->in_count && a->sequence)
        TRY(sequence_of(c, &empty, member));
    *out = mgx_shape_tuple(member, 1);
    return MGX_OK;
}

static enum mgx_status at_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(require_sequence(c, 0));
    return member_shape(c, out);
}

static enum mgx_status edit_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(require_sequence(c, 0));
    if (c->op == &mgx_op_sequence_insert) {
        const struct mgx_shape *s = c->in[0]; // an empty one, at run time, says nothing
        if (s->sub_count && s->sub[0].type != c->in[1]->type)
            return mgx_fail(c->diag, MGX_INVALID, "sequence_insert: members are %s, the new one %s",
                            mgx_type_name(s->sub[0].type), mgx_type_name(c->in[1]->type));
        return sequence_of(c, c->in[1], out);
    }
    *out = *c->in[0];
    return MGX_OK;
}

static enum mgx_status length_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(require_sequence(c, 0));
    *out = mgx_shape_scalar(MGX_INT64);
    return MGX_OK;
}

static enum mgx_status has_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    (void)c;
    *out = mgx_shape_scalar(MGX_BOOL);
    return MGX_OK;
}

// optional_get_element of what is no optional hands it through, as ONNX allows.
static enum mgx_status get_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_shape *x = c->in[0];
    if (x->type == MGX_TUPLE && x->sub_count != 1)
        return mgx_fail(c->diag, MGX_INVALID, "optional_get_element: the optional is empty");
    *out = x->type == MGX_TUPLE ? x->sub[0] : *x;
    return MGX_OK;
}

// --- computes ---

// Position input `i` of a sequence of `count`, negative from the end; `open` allows the place after
// the last.
static enum mgx_status position(struct mgx_compute_call *c, int i, int count, bool open, int *out)
{
    assert(count >= 0 && out);
    int64_t at;
    TRY(mgx_scalar_int(c, i, &at));
    const int64_t wrapped = at < 0 ? at + count : at;
    if (wrapped < 0 || wrapped >= count + open)
        return mgx_fail(c->diag, MGX_INVALID,
                        "%s: position %lld is out of range for a sequence of %d", c->op->name,
                        (long long)at, count);
    *out = (int)wrapped;
    return MGX_OK;
}

static enum mgx_status count_copied(struct mgx_compute_call *c, int members)
{
    assert(members >= 0);
    if ((c->eval->members += members) <= MGX_EVAL_MAX_MEMBERS)
        return MGX_OK;
    return mgx_fail(c->diag, MGX_LIMIT,
                    "%s: edits of sequences in this run have copied more than %d members",
                    c->op->name, MGX_EVAL_MAX_MEMBERS);
}

// Members of input 0 without `skip` and with `add` at position `at` (either may be absent: -1,
// NULL).
static enum mgx_status rebuild(struct mgx_compute_call *c, int skip, int at,
                               const struct mgx_tensor *add)
{
    const struct mgx_tensor *s = c->in[0];
    TRY(count_copied(c, s->sub_count));
    struct mgx_tensor *members = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, s->sub_count + 1);
    if (!members)
        return mgx_fail_memory(c->diag);
    int count = 0;
    for (int i = 0; i <= s->sub_count; i++) {
        if (add && i == at)
            members[count++] = mgx_tensor_share(add);
        if (i < s->sub_count && i != skip)
            members[count++] = mgx_tensor_share(&s->sub[i]);
    }
    return mgx_tensor_group(c->out, members, count, true, c->diag);
}

static enum mgx_status append(struct mgx_compute_call *c)
{
    const struct mgx_tensor *s = c->in[0];
    TRY(mgx_tensor_append(c->out, s, c->in[1], c->diag));
    return count_copied(c, c->out->storage == s->storage ? 1 : s->sub_count + 1);
}

static enum mgx_status construct(struct mgx_compute_call *c)
{
    struct mgx_tensor *members = MGX_NEW_ARRAY(c->scratch, struct mgx_tensor, c->in_count);
    if (!members)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < c->in_count; i++)
        members[i] = mgx_tensor_share(c->in[i]);
    return mgx_tensor_group(c->out, members, c->in_count, true, c->diag);
}

static enum mgx_status at(struct mgx_compute_call *c)
{
    int i = 0;
    TRY(position(c, 1, c->in[0]->sub_count, false, &i));
    *c->out = mgx_tensor_share(&c->in[0]->sub[i]);
    return MGX_OK;
}

static enum mgx_status insert(struct mgx_compute_call *c)
{
    int i = c->in[0]->sub_count;
    if (c->in_count == 3)
        TRY(position(c, 2, c->in[0]->sub_count, true, &i));
    return i == c->in[0]->sub_count ? append(c) : rebuild(c, -1, i, c->in[1]);
}

static enum mgx_status erase(struct mgx_compute_call *c)
{
    int i = c->in[0]->sub_count - 1;
    if (i < 0)
        return mgx_fail(c->diag, MGX_INVALID, "sequence_erase: the sequence is empty");
    if (c->in_count == 2)
        TRY(position(c, 1, c->in[0]->sub_count, false, &i));
    return rebuild(c, i, -1, NULL);
}

static enum mgx_status length(struct mgx_compute_call *c)
{
    mgx_store_int(MGX_INT64, c->out->data, 0, c->in[0]->sub_count);
    return MGX_OK;
}

static enum mgx_status optional(struct mgx_compute_call *c)
{
    struct mgx_tensor member = {0};
    if (c->in_count)
        member = mgx_tensor_share(c->in[0]);
    return mgx_tensor_group(c->out, &member, c->in_count, false, c->diag);
}

static enum mgx_status has_element(struct mgx_compute_call *c)
{
    const bool tuple = c->in_count && c->in[0]->shape.type == MGX_TUPLE;
    mgx_store_int(MGX_BOOL, c->out->data, 0, c->in_count && (!tuple || c->in[0]->sub_count > 0));
    return MGX_OK;
}

static enum mgx_status get_element(struct mgx_compute_call *c)
{
    const struct mgx_tensor *x = c->in[0];
    const bool tuple = x->shape.type == MGX_TUPLE;
    if (tuple && x->sub_count == 0)
        return mgx_fail(c->diag, MGX_INVALID, "optional_get_element: the optional is empty");
    mgx_tensor_release(c->out);
    *c->out = mgx_tensor_share(tuple ? &x->sub[0] : x);
    return MGX_OK;
}

// The new member says nothing of sizes, where it goes does.
static uint32_t sized_by_position(const struct mgx_ins *ins)
{
    return ins->in_count == 3 ? UINT32_C(1) << 2 : 0;
}

// --- the operators ---

const struct mgx_op mgx_op_sequence_construct = {
    .name = "sequence_construct",
    .meaning = "a sequence of the inputs",
    .fields = construct_fields,
    .attr_size = sizeof(struct construct),
    .defaults = &construct_defaults,
    .in_max = -1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED | MGX_OP_HANDS_ON,
    .shape = construct_shape,
    .compute = construct,
};

const struct mgx_op mgx_op_sequence_at = {
    .name = "sequence_at",
    .meaning = "member `position` of a sequence",
    .in_min = 2,
    .in_max = 2,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED | MGX_OP_HANDS_ON,
    .shape = at_shape,
    .compute = at,
    .sized_by = mgx_sized_by_rest,
};

const struct mgx_op mgx_op_sequence_insert = {
    .name = "sequence_insert",
    .meaning = "a sequence with one more member, at `position` or at the end",
    .in_min = 2,
    .in_max = 3,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED | MGX_OP_HANDS_ON,
    .shape = edit_shape,
    .compute = insert,
    .sized_by = sized_by_position,
};

const struct mgx_op mgx_op_sequence_erase = {
    .name = "sequence_erase",
    .meaning = "a sequence without member `position` or without its last",
    .in_min = 1,
    .in_max = 2,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED | MGX_OP_HANDS_ON,
    .shape = edit_shape,
    .compute = erase,
    .sized_by = mgx_sized_by_rest,
};

const struct mgx_op mgx_op_sequence_length = {
    .name = "sequence_length",
    .meaning = "number of members",
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED | MGX_OP_HANDS_ON,
    .shape = length_shape,
    .compute = length,
};

const struct mgx_op mgx_op_optional_construct = {
    .name = "optional_construct",
    .meaning = "an optional of the input, or an empty one",
    .fields = optional_fields,
    .attr_size = sizeof(struct construct),
    .defaults = &construct_defaults,
    .in_max = 1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED | MGX_OP_HANDS_ON,
    .shape = optional_shape,
    .compute = optional,
};

const struct mgx_op mgx_op_optional_has_element = {
    .name = "optional_has_element",
    .meaning = "whether an optional has a value",
    .in_max = 1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED | MGX_OP_HANDS_ON,
    .shape = has_shape,
    .compute = has_element,
};

const struct mgx_op mgx_op_optional_get_element = {
    .name = "optional_get_element",
    .meaning = "the value of an optional",
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_AGGREGATE | MGX_OP_UNRANKED | MGX_OP_HANDS_ON,
    .shape = get_shape,
    .compute = get_element,
};
