// SPDX-License-Identifier: MIT
// Attribute accessors of a node; see node.h. A value is read from the file when a rule asks for it:
// lists go to the node's scratch, scalars nowhere. References to attributes of an enclosing
// function are followed here, so rules never see them.
#include <assert.h>
#include <limits.h>
#include <string.h>

#include "onnx/graph.h"

static const char *kind_name(enum mgx_onnx_kind kind)
{
    static const char *const names[] = {
        "UNDEFINED",      "FLOAT",      "INT",        "STRING",  "TENSOR", "GRAPH",
        "FLOATS",         "INTS",       "STRINGS",    "TENSORS", "GRAPHS", "SPARSE_TENSOR",
        "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

const struct mgx_onnx_attribute *mgx_onnx_resolve(const struct mgx_onnx_graph *g,
                                                  const struct mgx_onnx_attribute *a)
{
    assert(a);
    if (!a->reference.size)
        return a;
    const struct mgx_onnx_call *call = g->call;
    for (int i = 0; call && i < call->attribute_count; i++)
        if (mgx_slice_equal(call->attributes[i].name, a->reference))
            return &call->attributes[i];
    return NULL;
}

const struct mgx_onnx_attribute *mgx_onnx_attribute(const struct mgx_node *n, const char *name)
{
    assert(n->wire && name);
    const struct mgx_onnx_node_proto *proto = n->wire;
    for (int i = 0; i < proto->attribute_count; i++)
        if (mgx_slice_is(proto->attributes[i].name, name))
            return mgx_onnx_resolve(n->graph, &proto->attributes[i]);
    return NULL;
}

// The attribute if it is there and of this kind.
static const struct mgx_onnx_attribute *of_kind(const struct mgx_node *n, const char *name,
                                                enum mgx_onnx_kind kind)
{
    assert(kind != MGX_ONNX_UNDEFINED);
    const struct mgx_onnx_attribute *a = mgx_onnx_attribute(n, name);
    if (!a || a->kind == kind)
        return a;
    // An empty list written by an old exporter has no type of its own.
    if (a->kind == MGX_ONNX_UNDEFINED)
        return NULL;
    mgx_fail(n->diag, MGX_INVALID, "attribute \"%s\" is of type %s, not %s", name,
             kind_name(a->kind), kind_name(kind));
    return NULL;
}

bool mgx_onnx_has(const struct mgx_node *n, const char *name)
{
    return mgx_onnx_attribute(n, name) != NULL;
}

// The last occurrence of a field counts, as protobuf has it.
static bool last_field(const struct mgx_node *n, const struct mgx_onnx_attribute *a,
                       uint32_t number, struct mgx_wire_field *out, struct mgx_wire *at)
{
    assert(number > 0);
    struct mgx_wire w = a->body;
    struct mgx_wire_field f;
    bool found = false;
    while (mgx_wire_next(&w, &f))
        if (f.number == number) {
            *out = f;
            found = true;
        }
    if (w.bad)
        (void)!mgx_wire_fail(&w, "AttributeProto", n->diag);
    *at = w;
    return found && !w.bad;
}

// The number of an attribute of kind INT. Present without a value it is the wire format's default.
static int64_t one_int(const struct mgx_node *n, const struct mgx_onnx_attribute *a)
{
    assert(a->kind == MGX_ONNX_INT);
    struct mgx_wire_field f;
    struct mgx_wire w;
    int64_t value = 0;
    if (last_field(n, a, 3, &f, &w) && !mgx_wire_int(&w, &f, &value))
        (void)!mgx_wire_fail(&w, "AttributeProto", n->diag);
    return value;
}

// The number of an attribute of kind FLOAT.
static double one_real(const struct mgx_node *n, const struct mgx_onnx_attribute *a)
{
    assert(a->kind == MGX_ONNX_FLOAT);
    struct mgx_wire_field f;
    struct mgx_wire w;
    float value = 0;
    if (last_field(n, a, 2, &f, &w) && !mgx_wire_float(&w, &f, &value))
        (void)!mgx_wire_fail(&w, "AttributeProto", n->diag);
    return value;
}

// Text with a terminator; a NUL inside is refused, for nobody could see what follows it.
static const char *copy_text(const struct mgx_node *n, const char *name, struct mgx_slice s)
{
    assert(s.text || !s.size);
    if (memchr(s.text, '\0', s.size)) {
        mgx_fail(n->diag, MGX_INVALID, "attribute \"%s\" contains a NUL", name);
        return "";
    }
    const char *text = mgx_arena_strndup(n->scratch, s.text, s.size);
    if (!text)
        mgx_fail_memory(n->diag);
    return text ? text : "";
}

const char *mgx_onnx_text(const struct mgx_node *n, const char *name, const char *fallback)
{
    const struct mgx_onnx_attribute *a = of_kind(n, name, MGX_ONNX_STRING);
    struct mgx_wire_field f;
    struct mgx_wire w;
    struct mgx_slice s;
    if (!a)
        return fallback;
    if (!last_field(n, a, 4, &f, &w))
        return "";
    if (mgx_wire_bytes(&w, &f, &s))
        return copy_text(n, name, s);
    (void)!mgx_wire_fail(&w, "AttributeProto", n->diag);
    return fallback;
}

// --- lists ---

// How many numbers the field holds in all its occurrences; -1 on a malformed one.
static int64_t count_numbers(const struct mgx_onnx_attribute *a, uint32_t number, int width)
{
    assert(width == 0 || width == 4);
    struct mgx_wire w = a->body, list;
    struct mgx_wire_field f;
    int64_t count = 0;
    while (mgx_wire_next(&w, &f)) {
        if (f.number != number)
            continue;
        if (!mgx_wire_packed(&w, &f, width, &list))
            return -1;
        if (width) {
            count += (list.end - list.p) / width;
            continue;
        }
        for (uint64_t value; list.p < list.end; count++)
            if (!mgx_wire_varint(&list, &value))
                return -1;
    }
    return w.bad || count > INT_MAX ? -1 : count;
}

// Scratch for so many numbers of 8 bytes; NULL: none are wanted, or a failure was recorded.
static void *room_for(const struct mgx_node *n, const struct mgx_onnx_attribute *a, int64_t count)
{
    int64_t *room = count > 0 ? MGX_NEW_ARRAY(n->scratch, int64_t, count) : NULL;
    static_assert(sizeof(double) == sizeof *room, "a list is of either");
    if (count < 0)
        mgx_fail(n->diag, MGX_INVALID, "attribute \"%.*s\" is a malformed list",
                 MGX_SLICE(a->name));
    else if (count > 0 && !room)
        mgx_fail_memory(n->diag);
    return room;
}

static struct mgx_ints all_ints(const struct mgx_node *n, const struct mgx_onnx_attribute *a)
{
    assert(a->kind == MGX_ONNX_INTS);
    const int64_t count = count_numbers(a, 8, 0);
    int64_t *v = room_for(n, a, count);
    int at = 0;
    struct mgx_wire w = a->body, list;
    struct mgx_wire_field f;
    while (v && mgx_wire_next(&w, &f))
        if (f.number == 8 && mgx_wire_packed(&w, &f, 0, &list))
            for (uint64_t value; at < count && list.p < list.end && mgx_wire_varint(&list, &value);)
                v[at++] = (int64_t)value;
    return (struct mgx_ints){v, at};
}

static struct mgx_doubles all_reals(const struct mgx_node *n, const struct mgx_onnx_attribute *a)
{
    assert(a->kind == MGX_ONNX_FLOATS);
    const int64_t count = count_numbers(a, 7, 4);
    double *v = room_for(n, a, count);
    int at = 0;
    struct mgx_wire w = a->body, list;
    struct mgx_wire_field f;
    while (v && mgx_wire_next(&w, &f))
        if (f.number == 7 && mgx_wire_packed(&w, &f, 4, &list))
            for (; at < count && list.p < list.end; list.p += 4) {
                float value;
                memcpy(&value, list.p, 4);
                v[at++] = value;
            }
    return (struct mgx_doubles){v, at};
}

// --- numbers of another kind than the operator's: 0 for 0.0, 1.0 for 1, [1] for 1, 1 for [1] ---
//
// Exporters write them, and there is one thing that they can mean. A list of several where one
// number is meant, and a fraction where an integer is, are refused.

static struct mgx_ints as_ints(const struct mgx_node *n, const struct mgx_onnx_attribute *a)
{
    assert(a->kind == MGX_ONNX_INT || a->kind == MGX_ONNX_INTS);
    if (a->kind == MGX_ONNX_INTS)
        return all_ints(n, a);
    int64_t *v = MGX_NEW(n->scratch, int64_t);
    if (v)
        *v = one_int(n, a);
    else
        mgx_fail_memory(n->diag);
    return (struct mgx_ints){v, v ? 1 : 0};
}

static struct mgx_doubles as_reals(const struct mgx_node *n, const struct mgx_onnx_attribute *a)
{
    const bool whole = a->kind == MGX_ONNX_INT || a->kind == MGX_ONNX_INTS;
    if (a->kind == MGX_ONNX_FLOATS)
        return all_reals(n, a);
    const struct mgx_ints ints = whole ? as_ints(n, a) : (struct mgx_ints){.count = 1};
    double *v = ints.count ? MGX_NEW_ARRAY(n->scratch, double, ints.count) : NULL;
    if (ints.count && !v)
        mgx_fail_memory(n->diag);
    for (int i = 0; v && i < ints.count; i++)
        v[i] = whole ? (double)ints.v[i] : one_real(n, a);
    return (struct mgx_doubles){v, v ? ints.count : 0};
}

static bool is_one(const struct mgx_node *n, const char *name, int count)
{
    if (count != 1)
        mgx_fail(n->diag, MGX_INVALID, "attribute \"%s\" has %d numbers, not 1", name, count);
    return count == 1;
}

int64_t mgx_onnx_int(const struct mgx_node *n, const char *name, int64_t fallback)
{
    const struct mgx_onnx_attribute *a = mgx_onnx_attribute(n, name);
    if (a && a->kind == MGX_ONNX_INTS) {
        const struct mgx_ints v = all_ints(n, a);
        return is_one(n, name, v.count) ? v.v[0] : fallback;
    }
    if (a && a->kind == MGX_ONNX_FLOAT) {
        const double value = one_real(n, a);
        if (value >= -0x1p53 && value <= 0x1p53 && value == (double)(int64_t)value)
            return (int64_t)value;
    }
    a = of_kind(n, name, MGX_ONNX_INT);
    return a ? one_int(n, a) : fallback;
}

double mgx_onnx_real(const struct mgx_node *n, const char *name, double fallback)
{
    const struct mgx_onnx_attribute *a = mgx_onnx_attribute(n, name);
    if (a && a->kind == MGX_ONNX_INT)
        return (double)one_int(n, a);
    if (a && (a->kind == MGX_ONNX_INTS || a->kind == MGX_ONNX_FLOATS)) {
        const struct mgx_doubles v = as_reals(n, a);
        return is_one(n, name, v.count) ? v.v[0] : fallback;
    }
    a = of_kind(n, name, MGX_ONNX_FLOAT);
    return a ? one_real(n, a) : fallback;
}

struct mgx_ints mgx_onnx_ints(const struct mgx_node *n, const char *name)
{
    const struct mgx_onnx_attribute *a = mgx_onnx_attribute(n, name);
    if (!a || a->kind != MGX_ONNX_INT)
        a = of_kind(n, name, MGX_ONNX_INTS);
    return a ? as_ints(n, a) : (struct mgx_ints){0};
}

struct mgx_doubles mgx_onnx_reals(const struct mgx_node *n, const char *name)
{
    const struct mgx_onnx_attribute *a = mgx_onnx_attribute(n, name);
    if (!a || (a->kind != MGX_ONNX_FLOAT && a->kind != MGX_ONNX_INT && a->kind != MGX_ONNX_INTS))
        a = of_kind(n, name, MGX_ONNX_FLOATS);
    return a ? as_reals(n, a) : (struct mgx_doubles){0};
}

struct mgx_strings mgx_onnx_texts(const struct mgx_node *n, const char *name)
{
    const struct mgx_onnx_attribute *a = of_kind(n, name, MGX_ONNX_STRINGS);
    if (!a)
        return (struct mgx_strings){0};
    int count = 0, at = 0;
    struct mgx_wire_field f;
    for (struct mgx_wire w = a->body; mgx_wire_next(&w, &f);)
        count += f.number == 9 && f.type == MGX_WIRE_BYTES;
    const char **v = MGX_NEW_ARRAY(n->scratch, const char *, count);
    if (!v) {
        mgx_fail_memory(n->diag);
        return (struct mgx_strings){0};
    }
    for (struct mgx_wire w = a->body; at < count && mgx_wire_next(&w, &f);)
        if (f.number == 9 && f.type == MGX_WIRE_BYTES)
            v[at++] = copy_text(n, name, (struct mgx_slice){(const char *)f.data, f.size});
    return (struct mgx_strings){v, at};
}

// --- tensors, types ---

struct mgx_ins *mgx_onnx_tensor(const struct mgx_node *n, const char *name)
{
    const struct mgx_onnx_attribute *a = mgx_onnx_attribute(n, name);
    struct mgx_wire_field f;
    struct mgx_wire w;
    struct mgx_tensor t = {0};
    if (!a)
        return NULL;
    const bool sparse = a->kind == MGX_ONNX_SPARSE;
    if (!sparse && !(a = of_kind(n, name, MGX_ONNX_TENSOR)))
        return NULL;
    if (!last_field(n, a, sparse ? 22 : 5, &f, &w) || f.type != MGX_WIRE_BYTES) {
        mgx_fail(n->diag, MGX_INVALID, "attribute \"%s\" has no tensor", name);
        return NULL;
    }
    struct mgx_onnx_import *import = n->graph->import;
    const enum mgx_status status =
        (sparse ? mgx_onnx_read_sparse : mgx_onnx_read_tensor)(import, mgx_wire_sub(&f), NULL, &t);
    if (status != MGX_OK)
        return NULL;
    struct mgx_ins *ins = mgx_add_literal(n->module, &t);
    mgx_tensor_release(&t);
    return ins;
}

enum mgx_status mgx_onnx_type(const struct mgx_node *n, int64_t number, enum mgx_type *out)
{
    return mgx_onnx_type_of(number, out, n->diag);
}

// --- what moved between attributes and inputs over the versions ---

enum mgx_status mgx_onnx_ints_or_input(struct mgx_node *n, const char *name, int i, bool *given,
                                       bool *known, struct mgx_ints *out)
{
    assert(i >= 0);
    *out = (struct mgx_ints){0};
    *given = *known = true;
    if (mgx_onnx_has(n, name)) {
        *out = mgx_onnx_ints(n, name);
        return n->diag->status;
    }
    if (!mgx_node_in(n, i)) {
        *given = false;
        return MGX_OK;
    }
    *known = mgx_node_constant_ints(n, i, out);
    return n->diag->status;
}

enum mgx_status mgx_onnx_align(struct mgx_node *n, struct mgx_ins **b)
{
    if (!mgx_onnx_int(n, "broadcast", 0) || !mgx_onnx_has(n, "axis"))
        return MGX_OK;
    int axis = 0;
    const int rank = mgx_build_rank(n->in[0]);
    TRY(mgx_build_axis(n, mgx_onnx_int(n, "axis", 0), rank, &axis));
    const int missing = rank - axis - mgx_build_rank(*b);
    assert(axis >= 0 && axis < rank);
    int64_t axes[MGX_MAX_RANK];
    for (int i = 0; i < missing; i++)
        axes[i] = mgx_build_rank(*b) + i;
    if (missing > 0)
        *b = mgx_build_unsqueeze(n, *b, axes, missing);
    return MGX_OK;
}
