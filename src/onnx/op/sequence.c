// SPDX-License-Identifier: MIT
// Sequences and optionals: a row each over the IR's operators, and SequenceMap as a loop.
//
// Members that are known are taken at once, so that what follows knows their lengths: an exporter
// writes a split by a constant and a SequenceAt where the model has x.chunk(2)[0].
#include "onnx/build.h"
#include "onnx/graph.h"
#include "pass/engine/members.h"

// --- what is known ---

// Input i, a position or sizes, as a literal where it is known; NULL where it is absent.
static struct mgx_ins *settled(struct mgx_node *n, int i)
{
    struct mgx_ins *in = mgx_node_in(n, i);
    const struct mgx_tensor *t = in ? mgx_node_constant(n, i) : NULL;
    const bool computed = t && !in->literal && mgx_type_is_integral(t->shape.type);
    return computed ? mgx_add_literal(n->module, t) : in;
}

// What a reader gives, where that is known: itself, or what stands for it.
static struct mgx_ins *resolved(struct mgx_node *n, struct mgx_ins *read)
{
    struct mgx_ins *by = read ? mgx_known_member(read, n->scratch) : NULL;
    if (!by)
        return read;
    if (by != read)
        mgx_remove(read);
    return by;
}

// --- sequences ---

static enum mgx_status sequence_empty(struct mgx_node *n)
{
    enum mgx_type type = MGX_FLOAT;
    if (mgx_onnx_has(n, "dtype"))
        TRY(mgx_onnx_type(n, mgx_onnx_int(n, "dtype", 1), &type));
    n->out[0] =
        mgx_build_emit_n(n, &mgx_op_sequence_construct, MGX_ATTRS(mgx_int("dtype", type)), NULL, 0);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_sequence_empty = {.name = "SequenceEmpty",
                                                    .import = sequence_empty};

static enum mgx_status sequence_construct(struct mgx_node *n)
{
    TRY(mgx_node_need_all(n));
    n->out[0] = mgx_build_emit_n(n, &mgx_op_sequence_construct, NULL, n->in, n->in_count);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_sequence_construct = {.name = "SequenceConstruct",
                                                        .import = sequence_construct,
                                                        .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX,
                                                        .result = "s"};

// One IR operator on the inputs that are present.
static enum mgx_status on_sequence(struct mgx_node *n)
{
    TRY(mgx_node_need(n, n->rule->op->in_min, n->rule->op->in_max));
    const int count = mgx_node_in(n, n->in_count - 1) ? n->in_count : n->in_count - 1;
    const int position = n->rule->op->in_max - 1;
    struct mgx_ins *in[] = {n->in[0], mgx_node_in(n, 1), mgx_node_in(n, 2)};
    if (position > 0)
        in[position] = settled(n, position);
    n->out[0] = resolved(n, mgx_build_emit_n(n, n->rule->op, NULL, in, count));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_sequence_at = {.name = "SequenceAt",
                                                 .import = on_sequence,
                                                 .op = &mgx_op_sequence_at,
                                                 .takes = MGX_ONNX_SEQUENCE,
                                                 .result = "e"};
const struct mgx_onnx_op mgx_onnx_sequence_insert = {.name = "SequenceInsert",
                                                     .import = on_sequence,
                                                     .op = &mgx_op_sequence_insert,
                                                     .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX |
                                                              MGX_ONNX_SEQUENCE,
                                                     .result = "q"};
const struct mgx_onnx_op mgx_onnx_sequence_erase = {.name = "SequenceErase",
                                                    .import = on_sequence,
                                                    .op = &mgx_op_sequence_erase,
                                                    .takes = MGX_ONNX_SEQUENCE,
                                                    .result = "q"};
const struct mgx_onnx_op mgx_onnx_sequence_length = {.name = "SequenceLength",
                                                     .import = on_sequence,
                                                     .op = &mgx_op_sequence_length,
                                                     .takes = MGX_ONNX_SEQUENCE,
                                                     .result = "l"};

static enum mgx_status split_to_sequence(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 2));
    struct mgx_ins *const in[] = {n->in[0], settled(n, 1)};
    n->out[0] = mgx_build_emit_n(n, &mgx_op_split_to_sequence,
                                 MGX_ATTRS(mgx_int("axis", mgx_onnx_int(n, "axis", 0)),
                                           mgx_int("keepdims", mgx_onnx_int(n, "keepdims", 1))),
                                 in, mgx_node_in(n, 1) ? 2 : 1);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_split_to_sequence = {.name = "SplitToSequence",
                                                       .import = split_to_sequence,
                                                       .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX,
                                                       .result = "s"};

static enum mgx_status concat_from_sequence(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *whole =
        mgx_build_emit_n(n, &mgx_op_concat_from_sequence,
                         MGX_ATTRS(mgx_int("axis", mgx_onnx_int(n, "axis", 0)),
                                   mgx_int("new_axis", mgx_onnx_int(n, "new_axis", 0))),
                         n->in, 1);
    n->out[0] = resolved(n, whole);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_concat_from_sequence = {.name = "ConcatFromSequence",
                                                          .import = concat_from_sequence,
                                                          .takes = MGX_ONNX_SEQUENCE,
                                                          .result = "e"};

// --- SequenceMap ---
// for i in 0 .. length: every result sequence gets the body's result for the i-th members

// The members of round i; inputs that are tensors are the same in every round.
static void members(struct mgx_node *inner, struct mgx_ins *i, struct mgx_ins **in)
{
    for (int k = 0; k < inner->in_count; k++)
        in[k] = k == 0 || inner->in[k]->shape.type == MGX_SEQUENCE
                    ? mgx_build_emit(inner, &mgx_op_sequence_at, NULL, MGX_IN(inner->in[k], i))
                    : inner->in[k];
}

// Loop body: (i, condition, sequences...) to (condition, longer sequences...).
static enum mgx_status map_body(struct mgx_node *n, struct mgx_module *m,
                                struct mgx_ins *const *empty)
{
    struct mgx_node inner = *n;
    inner.module = m;
    const struct mgx_shape number = mgx_shape_scalar(MGX_INT64), flag = mgx_shape_scalar(MGX_BOOL);
    struct mgx_ins *i =
        mgx_add_parameter(m, mgx_arena_printf(n->scratch, "%s_position", m->name), &number);
    struct mgx_ins *go =
        mgx_add_parameter(m, mgx_arena_printf(n->scratch, "%s_condition", m->name), &flag);
    struct mgx_ins **in = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, n->in_count);
    struct mgx_ins **out = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, n->out_count + 1);
    struct mgx_ins **made = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, n->out_count);
    if (!in || !out || !made)
        return mgx_fail_memory(n->diag);
    out[0] = go;
    for (int k = 0; k < n->out_count; k++)
        out[k + 1] = mgx_add_parameter(m, mgx_arena_printf(n->scratch, "%s_made_%d", m->name, k),
                                       &empty[k]->shape);
    members(&inner, i, in);
    for (int k = 0; k < n->in_count; k++)
        if (!in[k])
            return mgx_program_status(n->module->program, n->diag);
    TRY(mgx_onnx_inline(&inner, "body", in, n->in_count, made, n->out_count));
    for (int k = 0; k < n->out_count; k++)
        out[k + 1] =
            mgx_build_emit(&inner, &mgx_op_sequence_insert, NULL, MGX_IN(out[k + 1], made[k]));
    mgx_add_return(m, out, n->out_count + 1);
    return MGX_OK;
}

static enum mgx_status sequence_map(struct mgx_node *n)
{
    TRY(mgx_node_need_all(n));
    const int count = n->out_count + 2;
    struct mgx_ins **in = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, count);
    if (!in)
        return mgx_fail_memory(n->diag);
    in[0] = mgx_build_emit(n, &mgx_op_sequence_length, NULL, MGX_IN(n->in[0]));
    in[1] = mgx_build_scalar(n, MGX_BOOL, 1);
    for (int k = 0; k < n->out_count; k++) {
        enum mgx_type type = MGX_FLOAT;
        bool nested = false;
        mgx_onnx_declared_type(n, "body", k, &type, &nested);
        in[k + 2] = mgx_build_emit_n(n, &mgx_op_sequence_construct,
                                     MGX_ATTRS(mgx_int("dtype", type)), NULL, 0);
        if (!in[k + 2])
            return MGX_OK;
    }
    struct mgx_module *m = mgx_program_add_module(
        n->module->program, mgx_arena_printf(n->scratch, "%s_map", n->graph->label));
    if (!m)
        return mgx_fail_memory(n->diag);
    TRY(map_body(n, m, in + 2));
    struct mgx_ins *y = mgx_build_emit_body(n, &mgx_op_loop, NULL, in, count, &m, 1);
    for (int k = 0; k < n->out_count; k++)
        n->out[k] = mgx_build_member(n, y, k);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_sequence_map = {.name = "SequenceMap",
                                                  .import = sequence_map,
                                                  .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX |
                                                           MGX_ONNX_SEQUENCE};

// --- optionals ---

// The type of an empty optional, from the attribute `type`.
static enum mgx_status empty_type(struct mgx_node *n, enum mgx_type *type, bool *sequence)
{
    enum { TYPE_PROTO = 14 }; // field of AttributeProto
    const struct mgx_onnx_attribute *a = mgx_onnx_attribute(n, "type");
    struct mgx_shape shape = mgx_shape_unranked(MGX_FLOAT);
    struct mgx_wire w = a ? a->body : (struct mgx_wire){0}, proto;
    struct mgx_wire_field f;
    while (a && mgx_wire_next(&w, &f))
        if (f.number == TYPE_PROTO && mgx_wire_message(&w, &f, &proto))
            TRY(mgx_onnx_read_type(n->graph->import, proto, NULL, &shape));
    *sequence = shape.type == MGX_SEQUENCE;
    *type = *sequence ? shape.sub[0].type : shape.type;
    return MGX_OK;
}

static enum mgx_status optional(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 0, 1));
    struct mgx_ins *x = mgx_node_in(n, 0);
    enum mgx_type type = MGX_FLOAT;
    bool sequence = false;
    if (!x)
        TRY(empty_type(n, &type, &sequence));
    n->out[0] = mgx_build_emit_n(n, &mgx_op_optional_construct,
                                 MGX_ATTRS(mgx_int("dtype", type), mgx_int("sequence", sequence)),
                                 &x, x ? 1 : 0);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_optional = {.name = "Optional",
                                              .import = optional,
                                              .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX |
                                                       MGX_ONNX_SEQUENCE};

static enum mgx_status optional_has_element(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 0, 1));
    struct mgx_ins *x = mgx_node_in(n, 0);
    if (!x || x->shape.type != MGX_TUPLE)
        n->out[0] = mgx_build_scalar(n, MGX_BOOL, x != NULL);
    else
        n->out[0] = resolved(n, mgx_build_unary(n, &mgx_op_optional_has_element, x));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_optional_has_element = {
    .name = "OptionalHasElement",
    .import = optional_has_element,
    .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX | MGX_ONNX_SEQUENCE | MGX_ONNX_OPTIONAL,
    .result = "b"};

static enum mgx_status optional_get_element(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0];
    n->out[0] = resolved(n, mgx_build_unary(n, &mgx_op_optional_get_element, x));
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_optional_get_element = {
    .name = "OptionalGetElement",
    .import = optional_get_element,
    .takes = MGX_ONNX_TEXT | MGX_ONNX_COMPLEX | MGX_ONNX_SEQUENCE | MGX_ONNX_OPTIONAL,
    .result = "e"};
