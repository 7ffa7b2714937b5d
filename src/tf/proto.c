// SPDX-License-Identifier: MIT
// Messages; see proto.h. Field numbers are those of the public schema, named where they are read.
#include "tf/proto.h"

#include <string.h>

#include "base/size.h"

// --- graphs and nodes ---

enum mgx_status mgx_tf_read_graph(struct mgx_wire w, struct mgx_arena *arena,
                                  struct mgx_tf_graph_def *out, struct mgx_diag *diag)
{
    struct mgx_messages libraries;
    struct mgx_want wants[] = {{.number = 1, .messages = &out->nodes},
                               {.number = 2, .messages = &libraries}};
    *out = (struct mgx_tf_graph_def){0};
    TRY(mgx_message_collect(w, wants, MGX_COUNT(wants), "GraphDef", arena, diag));
    if (libraries.count > 1)
        return mgx_fail(diag, MGX_INVALID, "GraphDef has %d libraries of functions",
                        libraries.count);
    if (!libraries.count)
        return MGX_OK;
    struct mgx_want functions = {.number = 1, .messages = &out->functions};
    return mgx_message_collect(libraries.v[0], &functions, 1, "FunctionDefLibrary", arena, diag);
}

static enum mgx_status last_text(struct mgx_names names, const char *what, struct mgx_slice *out,
                                 struct mgx_diag *diag)
{
    *out = names.count ? names.v[names.count - 1] : (struct mgx_slice){"", 0};
    return mgx_name_check(*out, what, diag);
}

enum mgx_status mgx_tf_read_node(struct mgx_wire w, struct mgx_arena *arena,
                                 struct mgx_tf_node_def *out, struct mgx_diag *diag)
{
    struct mgx_names names, ops;
    struct mgx_want wants[] = {{.number = 1, .names = &names},
                               {.number = 2, .names = &ops},
                               {.number = 3, .names = &out->in},
                               {.number = 5, .messages = &out->attributes}};
    *out = (struct mgx_tf_node_def){.name = {"", 0}, .op = {"", 0}};
    TRY(mgx_message_collect(w, wants, MGX_COUNT(wants), "NodeDef", arena, diag));
    TRY(last_text(names, "the name of a node", &out->name, diag));
    for (int i = 0; i < out->in.count; i++)
        TRY(mgx_name_check(out->in.v[i], "the name of an input", diag));
    return last_text(ops, "the operator of a node", &out->op, diag);
}

enum mgx_status mgx_tf_read_node_name(struct mgx_wire w, struct mgx_slice *name,
                                      struct mgx_slice *op, struct mgx_diag *diag)
{
    struct mgx_wire_field f;
    *name = *op = (struct mgx_slice){"", 0};
    while (mgx_wire_next(&w, &f))
        if (f.number == 1 || f.number == 2)
            mgx_wire_bytes(&w, &f, f.number == 1 ? name : op);
    return w.bad ? mgx_wire_fail(&w, "NodeDef", diag)
                 : mgx_name_check(*name, "the name of a node", diag);
}

enum mgx_status mgx_tf_read_function(struct mgx_wire w, struct mgx_arena *arena,
                                     struct mgx_tf_function_def *out, struct mgx_diag *diag)
{
    struct mgx_messages signatures;
    struct mgx_want wants[] = {{.number = 1, .messages = &signatures},
                               {.number = 3, .messages = &out->nodes},
                               {.number = 4, .messages = &out->results},
                               {.number = 5, .messages = &out->attributes},
                               {.number = 6, .messages = &out->control_results}};
    *out = (struct mgx_tf_function_def){.name = {"", 0}};
    TRY(mgx_message_collect(w, wants, MGX_COUNT(wants), "FunctionDef", arena, diag));
    if (signatures.count != 1)
        return mgx_fail(diag, MGX_INVALID, "a function has %d signatures", signatures.count);
    struct mgx_names names;
    struct mgx_want parts[] = {{.number = 1, .names = &names},
                               {.number = 2, .messages = &out->inputs},
                               {.number = 3, .messages = &out->outputs}};
    TRY(mgx_message_collect(signatures.v[0], parts, MGX_COUNT(parts), "OpDef", arena, diag));
    return last_text(names, "the name of a function", &out->name, diag);
}

// --- attributes ---

enum mgx_status mgx_tf_read_entry(struct mgx_wire w, struct mgx_slice *key, struct mgx_wire *value,
                                  struct mgx_diag *diag)
{
    struct mgx_wire_field f;
    *key = (struct mgx_slice){"", 0};
    *value = mgx_wire_of("", 0);
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 1)
            mgx_wire_bytes(&w, &f, key);
        else if (f.number == 2)
            mgx_wire_message(&w, &f, value);
    }
    return w.bad ? mgx_wire_fail(&w, "an entry of a map", diag) : MGX_OK;
}

enum mgx_status mgx_tf_find_entry(const struct mgx_messages *map, struct mgx_slice key,
                                  struct mgx_wire *value, struct mgx_diag *diag)
{
    *value = (struct mgx_wire){0};
    for (int i = 0; i < map->count; i++) {
        struct mgx_slice name;
        struct mgx_wire found;
        TRY(mgx_tf_read_entry(map->v[i], &name, &found, diag));
        if (mgx_slice_equal(name, key))
            *value = found;
    }
    return MGX_OK;
}

enum mgx_status mgx_tf_read_attribute(struct mgx_wire w, struct mgx_tf_attribute *out,
                                      struct mgx_diag *diag)
{
    struct mgx_wire_field f;
    *out = (struct mgx_tf_attribute){0};
    while (mgx_wire_next(&w, &f)) {
        if (f.number < MGX_TF_LIST || f.number > MGX_TF_FUNCTION)
            continue;
        out->kind = (enum mgx_tf_kind)f.number;
        if (f.number == MGX_TF_FLOAT)
            mgx_wire_float(&w, &f, &out->real);
        else if (f.number == MGX_TF_INT || f.number == MGX_TF_BOOL || f.number == MGX_TF_TYPE)
            mgx_wire_int(&w, &f, &out->number);
        else
            mgx_wire_message(&w, &f, &out->body);
    }
    return w.bad ? mgx_wire_fail(&w, "AttrValue", diag) : MGX_OK;
}

struct mgx_slice mgx_tf_text_field(struct mgx_wire w, uint32_t number)
{
    struct mgx_slice text = {"", 0};
    struct mgx_wire_field f;
    while (mgx_wire_next(&w, &f))
        if (f.number == number && f.type == MGX_WIRE_BYTES)
            text = (struct mgx_slice){(const char *)f.data, f.size};
    return text;
}

// --- shapes and types ---

static enum mgx_status read_length(struct mgx_wire w, int64_t *out, struct mgx_diag *diag)
{
    struct mgx_wire_field f;
    *out = 0;
    while (mgx_wire_next(&w, &f))
        if (f.number == 1)
            mgx_wire_int(&w, &f, out);
    if (w.bad)
        return mgx_wire_fail(&w, "TensorShapeProto.Dim", diag);
    if (*out < -1)
        return mgx_fail(diag, MGX_INVALID, "a dimension is %lld", (long long)*out);
    return MGX_OK;
}

enum mgx_status mgx_tf_read_shape(struct mgx_wire w, int *rank, int64_t lens[MGX_MAX_RANK],
                                  struct mgx_diag *diag)
{
    struct mgx_wire_field f;
    int64_t unknown = 0;
    *rank = 0;
    while (mgx_wire_next(&w, &f)) {
        struct mgx_wire dim;
        if (f.number == 3)
            mgx_wire_int(&w, &f, &unknown);
        if (f.number != 2 || !mgx_wire_message(&w, &f, &dim))
            continue;
        if (*rank == MGX_MAX_RANK)
            return mgx_fail(diag, MGX_LIMIT, "a rank is above %d", MGX_MAX_RANK);
        TRY(read_length(dim, &lens[(*rank)++], diag));
    }
    if (w.bad)
        return mgx_wire_fail(&w, "TensorShapeProto", diag);
    if (unknown)
        *rank = -1;
    return MGX_OK;
}

enum { REFERENCE = 100 };

enum mgx_status mgx_tf_type_of(int64_t number, enum mgx_type *out, struct mgx_diag *diag)
{
    static const int16_t types[] = {
        -1,         MGX_FLOAT,     MGX_DOUBLE, MGX_INT32,   MGX_UINT8,      MGX_INT16, MGX_INT8,
        MGX_STRING, MGX_COMPLEX64, MGX_INT64,  MGX_BOOL,    MGX_INT8,       MGX_UINT8, MGX_INT32,
        MGX_BF16,   MGX_INT16,     MGX_UINT16, MGX_UINT16,  MGX_COMPLEX128, MGX_HALF,  -1,
        -1,         MGX_UINT32,    MGX_UINT64, MGX_FP8E5M2, MGX_FP8E4M3FN};
    const int64_t plain = number > REFERENCE ? number - REFERENCE : number; // of a V1 variable
    const bool known = plain >= 0 && plain < (int64_t)MGX_COUNT(types) && types[plain] >= 0;
    if (!known)
        return mgx_fail(diag, MGX_UNSUPPORTED, "data type number %lld is not supported",
                        (long long)number);
    *out = (enum mgx_type)types[plain];
    return MGX_OK;
}
