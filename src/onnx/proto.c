// SPDX-License-Identifier: MIT
// Messages; see proto.h. Field numbers are those of the public schema, named where they are read.
#include "onnx/proto.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "base/sniff.h"

bool mgx_onnx_is_standard(struct mgx_slice domain)
{
    return !domain.size || mgx_slice_is(domain, "ai.onnx");
}

bool mgx_onnx_same_domain(struct mgx_slice a, struct mgx_slice b)
{
    return mgx_slice_equal(a, b) || (mgx_onnx_is_standard(a) && mgx_onnx_is_standard(b));
}

// --- model ---

static enum mgx_status read_opset(struct mgx_wire w, struct mgx_onnx_opset *out,
                                  struct mgx_diag *diag)
{
    struct mgx_wire_field f;
    *out = (struct mgx_onnx_opset){{"", 0}, 0};
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 1)
            mgx_wire_bytes(&w, &f, &out->domain);
        else if (f.number == 2)
            mgx_wire_int(&w, &f, &out->version);
    }
    if (w.bad)
        return mgx_wire_fail(&w, "OperatorSetIdProto", diag);
    TRY(mgx_name_check(out->domain, "a domain name", diag));
    const bool standard = mgx_onnx_is_standard(out->domain);
    if (out->version < 1 || out->version > INT32_MAX)
        return mgx_fail(diag, MGX_INVALID, "opset version %lld of domain \"%.*s\" is not valid",
                        (long long)out->version, MGX_SLICE(out->domain));
    if (standard && out->version > MGX_ONNX_OPSET_MAX)
        return mgx_fail(diag, MGX_UNSUPPORTED,
                        "opset version %lld is newer than %d, the newest known; convert the model "
                        "to an older opset",
                        (long long)out->version, MGX_ONNX_OPSET_MAX);
    return MGX_OK;
}

static enum mgx_status read_opsets(struct mgx_messages messages, struct mgx_arena *arena,
                                   struct mgx_onnx_opsets *out, struct mgx_diag *diag)
{
    assert(messages.count >= 0);
    enum { MANY = 1000 };
    if (messages.count > MANY)
        return mgx_fail(diag, MGX_LIMIT, "%d opset imports, %d are allowed", messages.count, MANY);
    struct mgx_onnx_opset *list = MGX_NEW_ARRAY(arena, struct mgx_onnx_opset, messages.count);
    if (!list)
        return mgx_fail_memory(diag);
    for (int i = 0; i < messages.count; i++) {
        TRY(read_opset(messages.v[i], &list[i], diag));
        for (int k = 0; k < i; k++)
            if (mgx_onnx_same_domain(list[i].domain, list[k].domain) &&
                list[i].version != list[k].version)
                return mgx_fail(diag, MGX_INVALID,
                                "domain \"%.*s\" is imported in versions %lld and %lld",
                                MGX_SLICE(list[i].domain), (long long)list[k].version,
                                (long long)list[i].version);
    }
    *out = (struct mgx_onnx_opsets){list, messages.count};
    return MGX_OK;
}

static enum mgx_status check_versions(const struct mgx_onnx_model *model, struct mgx_diag *diag)
{
    if (!model->graph.p)
        return mgx_fail(diag, MGX_INVALID, "not an ONNX model: it has no graph");
    if (model->ir_version < 0 || model->ir_version > MGX_ONNX_IR_MAX)
        return mgx_fail(diag, model->ir_version < 0 ? MGX_INVALID : MGX_UNSUPPORTED,
                        "ir_version %lld is not in the known range 0 to %d",
                        (long long)model->ir_version, MGX_ONNX_IR_MAX);
    return MGX_OK;
}

// Why it is no model. A version and then a field that is cut off: it was one, and is not all there.
static enum mgx_status fail_model(struct mgx_wire message, const struct mgx_wire *w,
                                  const struct mgx_onnx_model *model, struct mgx_diag *diag)
{
    assert(w->bad && w->p >= message.p && w->p <= message.end);
    const size_t size = (size_t)(message.end - message.p), at = (size_t)(w->p - message.p);
    const char *what = mgx_sniff(message.p, size);
    if (w->cut && model->ir_version > 0 && model->ir_version <= MGX_ONNX_IR_MAX)
        return mgx_fail(diag, MGX_INVALID, "the file ends early: at byte %zu of %zu, %s", at, size,
                        w->bad);
    return mgx_fail(diag, MGX_INVALID, "not an ONNX model%s%s: at byte %zu of %zu, %s",
                    what ? " but " : "", what ? what : "", at, size, w->bad);
}

enum mgx_status mgx_onnx_read_model(struct mgx_wire message, struct mgx_arena *arena,
                                    struct mgx_onnx_model *out, struct mgx_diag *diag)
{
    *out = (struct mgx_onnx_model){0};
    if (message.p == message.end)
        return mgx_fail(diag, MGX_INVALID, "not an ONNX model: it is empty");
    struct mgx_wire w = message;
    struct mgx_wire_field f;
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 1) // ir_version
            mgx_wire_int(&w, &f, &out->ir_version);
        else if (f.number == 7) // graph
            mgx_wire_once(&w, &f, &out->graph);
    }
    if (w.bad)
        return fail_model(message, &w, out, diag);
    TRY(check_versions(out, diag));
    struct mgx_messages opsets;
    struct mgx_want wants[] = {{.number = 8, .messages = &opsets},
                               {.number = 25, .messages = &out->functions}};
    TRY(mgx_message_collect(message, wants, 2, "ModelProto", arena, diag));
    return read_opsets(opsets, arena, &out->opsets, diag);
}

// --- graph ---

enum mgx_status mgx_onnx_read_graph(struct mgx_wire w, struct mgx_arena *arena,
                                    struct mgx_onnx_graph_proto *out, struct mgx_diag *diag)
{
    struct mgx_want wants[] = {{.number = 1, .messages = &out->nodes},
                               {.number = 5, .messages = &out->initializers},
                               {.number = 15, .messages = &out->sparse},
                               {.number = 11, .messages = &out->inputs},
                               {.number = 12, .messages = &out->outputs}};
    return mgx_message_collect(w, wants, 5, "GraphProto", arena, diag);
}

enum mgx_status mgx_onnx_read_value(struct mgx_wire w, struct mgx_slice *name,
                                    struct mgx_wire *type, struct mgx_diag *diag)
{
    struct mgx_wire_field f;
    *name = (struct mgx_slice){"", 0};
    *type = (struct mgx_wire){0};
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 1)
            mgx_wire_bytes(&w, &f, name);
        else if (f.number == 2)
            mgx_wire_once(&w, &f, type);
    }
    return w.bad ? mgx_wire_fail(&w, "ValueInfoProto", diag)
                 : mgx_name_check(*name, "the name of an input or output", diag);
}

// --- function ---

enum mgx_status mgx_onnx_read_function(struct mgx_wire message, struct mgx_arena *arena,
                                       struct mgx_onnx_function_proto *out, struct mgx_diag *diag)
{
    *out =
        (struct mgx_onnx_function_proto){.name = {"", 0}, .domain = {"", 0}, .overload = {"", 0}};
    struct mgx_wire w = message;
    struct mgx_wire_field f;
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 1)
            mgx_wire_bytes(&w, &f, &out->name);
        else if (f.number == 10)
            mgx_wire_bytes(&w, &f, &out->domain);
        else if (f.number == 13)
            mgx_wire_bytes(&w, &f, &out->overload);
    }
    if (w.bad)
        return mgx_wire_fail(&w, "FunctionProto", diag);
    TRY(mgx_name_check(out->name, "the name of a function", diag));
    TRY(mgx_name_check(out->domain, "the domain of a function", diag));
    TRY(mgx_name_check(out->overload, "the overload of a function", diag));
    struct mgx_messages opsets;
    struct mgx_want wants[] = {
        {.number = 4, .names = &out->inputs},       {.number = 5, .names = &out->outputs},
        {.number = 6, .names = &out->attributes},   {.number = 7, .messages = &out->nodes},
        {.number = 11, .messages = &out->defaults}, {.number = 9, .messages = &opsets}};
    TRY(mgx_message_collect(message, wants, 6, "FunctionProto", arena, diag));
    return read_opsets(opsets, arena, &out->opsets, diag);
}

// --- node ---

enum mgx_status mgx_onnx_read_attribute(struct mgx_wire w, struct mgx_onnx_attribute *out,
                                        struct mgx_diag *diag)
{
    *out = (struct mgx_onnx_attribute){.name = {"", 0}, .reference = {"", 0}, .body = w};
    // What the value's own field says, for old files without a type: index is the field number.
    static const uint8_t kinds[24] = {
        [2] = MGX_ONNX_FLOAT,   [3] = MGX_ONNX_INT,     [4] = MGX_ONNX_STRING,
        [5] = MGX_ONNX_TENSOR,  [6] = MGX_ONNX_GRAPH,   [7] = MGX_ONNX_FLOATS,
        [8] = MGX_ONNX_INTS,    [9] = MGX_ONNX_STRINGS, [10] = MGX_ONNX_TENSORS,
        [11] = MGX_ONNX_GRAPHS, [14] = MGX_ONNX_TYPE,   [15] = MGX_ONNX_TYPES,
        [22] = MGX_ONNX_SPARSE, [23] = MGX_ONNX_SPARSES};
    struct mgx_wire_field f;
    int64_t kind = 0, seen = 0;
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 1)
            mgx_wire_bytes(&w, &f, &out->name);
        else if (f.number == 20)
            mgx_wire_int(&w, &f, &kind);
        else if (f.number == 21)
            mgx_wire_bytes(&w, &f, &out->reference);
        else if (f.number < 24 && kinds[f.number])
            seen = kinds[f.number];
    }
    if (w.bad)
        return mgx_wire_fail(&w, "AttributeProto", diag);
    TRY(mgx_name_check(out->name, "the name of an attribute", diag));
    TRY(mgx_name_check(out->reference, "the name of a referenced attribute", diag));
    if (kind < 0 || kind > MGX_ONNX_TYPES)
        return mgx_fail(diag, MGX_INVALID, "attribute \"%.*s\" has unknown type %lld",
                        MGX_SLICE(out->name), (long long)kind);
    out->kind = (enum mgx_onnx_kind)(kind ? kind : seen);
    return MGX_OK;
}

bool mgx_onnx_attribute_graph(const struct mgx_onnx_attribute *a, int i, struct mgx_wire *out)
{
    const uint32_t number = a->kind == MGX_ONNX_GRAPH ? 6 : a->kind == MGX_ONNX_GRAPHS ? 11 : 0;
    struct mgx_wire w = a->body;
    struct mgx_wire_field f;
    while (number && mgx_wire_next(&w, &f))
        if (f.number == number && f.type == MGX_WIRE_BYTES && i-- == 0) {
            *out = mgx_wire_sub(&f);
            return true;
        }
    return false;
}

// A look at each pair: nodes have a handful of attributes.
static enum mgx_status refuse_duplicates(const struct mgx_onnx_attribute *list, int count,
                                         struct mgx_diag *diag)
{
    enum { MANY = 1024 };
    if (count > MANY)
        return mgx_fail(diag, MGX_LIMIT, "a node has %d attributes, %d are allowed", count, MANY);
    for (int i = 1; i < count; i++)
        for (int k = 0; k < i; k++)
            if (mgx_slice_equal(list[i].name, list[k].name))
                return mgx_fail(diag, MGX_INVALID, "attribute \"%.*s\" is given twice",
                                MGX_SLICE(list[i].name));
    return MGX_OK;
}

static enum mgx_status read_attributes(struct mgx_messages messages, struct mgx_arena *arena,
                                       struct mgx_onnx_node_proto *out, struct mgx_diag *diag)
{
    struct mgx_onnx_attribute *list =
        MGX_NEW_ARRAY(arena, struct mgx_onnx_attribute, messages.count);
    if (!list)
        return mgx_fail_memory(diag);
    for (int i = 0; i < messages.count; i++) {
        TRY(mgx_onnx_read_attribute(messages.v[i], &list[i], diag));
        out->has_graphs |= list[i].kind == MGX_ONNX_GRAPH || list[i].kind == MGX_ONNX_GRAPHS;
    }
    out->attributes = list;
    out->attribute_count = messages.count;
    return refuse_duplicates(list, messages.count, diag);
}

static enum mgx_status check_names(const struct mgx_onnx_node_proto *p, struct mgx_diag *diag)
{
    TRY(mgx_name_check(p->name, "the name of a node", diag));
    TRY(mgx_name_check(p->op_type, "an operator's name", diag));
    TRY(mgx_name_check(p->domain, "a domain name", diag));
    return mgx_name_check(p->overload, "an overload name", diag);
}

static enum mgx_status read_names(struct mgx_wire w, struct mgx_onnx_node_proto *out,
                                  struct mgx_diag *diag)
{
    struct mgx_wire_field f;
    while (mgx_wire_next(&w, &f)) {
        struct mgx_slice *text = f.number == 3   ? &out->name
                                 : f.number == 4 ? &out->op_type
                                 : f.number == 7 ? &out->domain
                                 : f.number == 8 ? &out->overload
                                                 : NULL;
        if (text)
            mgx_wire_bytes(&w, &f, text);
    }
    return w.bad ? mgx_wire_fail(&w, "NodeProto", diag) : check_names(out, diag);
}

enum mgx_status mgx_onnx_read_node(struct mgx_wire message, struct mgx_arena *arena,
                                   struct mgx_onnx_node_proto *out, struct mgx_diag *diag)
{
    *out = (struct mgx_onnx_node_proto){.name = {"", 0},
                                        .op_type = {"", 0},
                                        .domain = {"", 0},
                                        .overload = {"", 0},
                                        .body = message};
    TRY(read_names(message, out, diag));
    struct mgx_messages attributes;
    struct mgx_want wants[] = {{.number = 1, .names = &out->in},
                               {.number = 2, .names = &out->out},
                               {.number = 5, .messages = &attributes}};
    TRY(mgx_message_collect(message, wants, 3, "NodeProto", arena, diag));
    return attributes.count ? read_attributes(attributes, arena, out, diag) : MGX_OK;
}
