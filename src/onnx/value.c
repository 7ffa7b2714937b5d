// SPDX-License-Identifier: MIT
// Values in files of their own: the TensorProto, SequenceProto and OptionalProto files that test
// data comes in. What the file holds is not written in it; the caller says what it expects.
#include <assert.h>
#include <string.h>

#include "onnx/graph.h"

enum { MOST_MEMBERS = 1 << 16, DEEPEST = 8 };

// Members are fields 3 (tensors) and 5 (sequences) of both messages, field 7 is an optional.
static enum mgx_status read_message(struct mgx_onnx_import *import, struct mgx_wire w,
                                    const struct mgx_shape *like, int depth,
                                    struct mgx_tensor *out);

static enum mgx_status read_member(struct mgx_onnx_import *import, const struct mgx_wire_field *f,
                                   const struct mgx_shape *like, int depth, struct mgx_tensor *out)
{
    if (f->number == 3)
        return mgx_onnx_read_tensor(import, mgx_wire_sub(f), NULL, out);
    const struct mgx_shape any = {.type = f->number == 5 ? MGX_SEQUENCE : MGX_TUPLE};
    const bool fits = like->sub_count && like->sub[0].type == any.type;
    return read_message(import, mgx_wire_sub(f), fits ? &like->sub[0] : &any, depth + 1, out);
}

static bool is_member(const struct mgx_wire_field *f)
{
    return f->type == MGX_WIRE_BYTES && (f->number == 3 || f->number == 5 || f->number == 7);
}

static enum mgx_status read_group(struct mgx_onnx_import *import, struct mgx_wire message,
                                  const struct mgx_shape *like, int depth, struct mgx_tensor *out)
{
    assert(like->type == MGX_SEQUENCE || like->type == MGX_TUPLE);
    struct mgx_wire_field f;
    int room = 0, count = 0;
    for (struct mgx_wire w = message; mgx_wire_next(&w, &f);)
        room += is_member(&f);
    if (room > MOST_MEMBERS || depth > DEEPEST)
        return mgx_fail(import->diag, MGX_LIMIT, "a value of %d members at depth %d", room, depth);
    struct mgx_tensor *members = MGX_NEW_ARRAY(&import->arena, struct mgx_tensor, room);
    if (!members)
        return mgx_fail_memory(import->diag);
    enum mgx_status status = MGX_OK;
    struct mgx_wire w = message;
    while (status == MGX_OK && count < room && mgx_wire_next(&w, &f)) {
        if (!is_member(&f))
            continue;
        status = read_member(import, &f, like, depth, &members[count]);
        count += status == MGX_OK;
    }
    if (status == MGX_OK && w.bad)
        status = mgx_wire_fail(&w, "SequenceProto or OptionalProto", import->diag);
    if (status == MGX_OK)
        return mgx_tensor_group(out, members, count, like->type == MGX_SEQUENCE, import->diag);
    for (int i = 0; i < count; i++)
        mgx_tensor_release(&members[i]);
    return status;
}

static enum mgx_status read_message(struct mgx_onnx_import *import, struct mgx_wire w,
                                    const struct mgx_shape *like, int depth, struct mgx_tensor *out)
{
    if (like->type == MGX_SEQUENCE || like->type == MGX_TUPLE)
        return read_group(import, w, like, depth, out);
    struct mgx_tensor t;
    TRY(mgx_onnx_read_tensor(import, w, NULL, &t));
    const enum mgx_status status = mgx_tensor_align(out, &t, import->diag);
    mgx_tensor_release(&t);
    return status;
}

enum mgx_status mgx_onnx_load_value(struct mgx_tensor *out, const char *path,
                                    const struct mgx_shape *like, struct mgx_diag *diag)
{
    struct mgx_onnx_import import;
    *out = (struct mgx_tensor){0};
    enum mgx_status status = mgx_onnx_begin(&import, NULL, diag);
    if (status == MGX_OK)
        status = mgx_source_open(&import.source, path, import.diag);
    if (status == MGX_OK)
        status = read_message(&import, import.source.bytes, like, 0, out);
    if (status == MGX_OK)
        status = mgx_source_check(&import.source, import.diag);
    if (status != MGX_OK) {
        mgx_tensor_release(out);
        if (import.source.storage) // else the text begins with it
            mgx_where(import.diag, "%s", path);
    }
    mgx_onnx_end(&import);
    return status;
}
