// SPDX-License-Identifier: MIT
// External data: which bytes of which file beside the model the entries of a tensor name.
#include <string.h>

#include "base/size.h"
#include "onnx/graph.h"

static enum mgx_status read_entry(struct mgx_wire w, struct mgx_slice *key, struct mgx_slice *value,
                                  struct mgx_diag *diag)
{
    struct mgx_wire_field f;
    *key = *value = (struct mgx_slice){"", 0};
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 1)
            mgx_wire_bytes(&w, &f, key);
        else if (f.number == 2)
            mgx_wire_bytes(&w, &f, value);
    }
    return w.bad ? mgx_wire_fail(&w, "StringStringEntryProto", diag) : MGX_OK;
}

// Decimal digits and nothing else; no sign, no space, no wrap.
static bool read_size(struct mgx_slice text, size_t *out)
{
    size_t value = 0;
    for (size_t i = 0; i < text.size; i++) {
        const char c = text.text[i];
        if (c < '0' || c > '9' || !mgx_mul_size(value, 10, &value) ||
            !mgx_add_size(value, (size_t)(c - '0'), &value))
            return false;
    }
    *out = value;
    return text.size > 0;
}

struct place { // what the entries say
    struct mgx_slice location, offset, length, checksum;
};

static enum mgx_status read_place(const struct mgx_messages *entries, struct place *out,
                                  struct mgx_diag *diag)
{
    *out = (struct place){0};
    for (int i = 0; i < entries->count; i++) {
        struct mgx_slice key, value;
        TRY(read_entry(entries->v[i], &key, &value, diag));
        struct mgx_slice *at = mgx_slice_is(key, "location")   ? &out->location
                               : mgx_slice_is(key, "offset")   ? &out->offset
                               : mgx_slice_is(key, "length")   ? &out->length
                               : mgx_slice_is(key, "checksum") ? &out->checksum
                                                               : NULL;
        if (!at)
            return mgx_fail(diag, MGX_INVALID, "external data has an unknown key \"%.*s\"",
                            MGX_SLICE(key));
        if (at->text)
            return mgx_fail(diag, MGX_INVALID, "external data has the key \"%.*s\" twice",
                            MGX_SLICE(key));
        *at = value;
    }
    return MGX_OK;
}

enum mgx_status mgx_onnx_external(struct mgx_onnx_import *import,
                                  const struct mgx_messages *entries, size_t need,
                                  struct mgx_region *out)
{
    struct place place;
    size_t offset = 0, length = need, end;
    TRY(read_place(entries, &place, import->diag));
    if (!place.location.text)
        return mgx_fail(import->diag, MGX_INVALID, "external data has no location");
    if (place.offset.text && !read_size(place.offset, &offset))
        return mgx_fail(import->diag, MGX_INVALID, "external data offset \"%.*s\" is not a size",
                        MGX_SLICE(place.offset));
    if (place.length.text && !read_size(place.length, &length))
        return mgx_fail(import->diag, MGX_INVALID, "external data length \"%.*s\" is not a size",
                        MGX_SLICE(place.length));
    if (length != need)
        return mgx_fail(import->diag, MGX_INVALID,
                        "external data of %zu bytes for a tensor of %zu bytes", length, need);
    struct mgx_source_file *external;
    TRY(mgx_source_beside(&import->source, import->options.external_data_path, place.location,
                          &import->arena, &external, import->diag));
    if (!mgx_add_size(offset, length, &end) || end > external->file->size)
        return mgx_fail(import->diag, MGX_INVALID,
                        "external data at offset %zu, %zu bytes long, is beyond the %zu bytes of "
                        "\"%.*s\"",
                        offset, length, external->file->size, MGX_SLICE(place.location));
    *out = (struct mgx_region){external->file->data ? external->file->data + offset : NULL, length,
                               external->file, external->storage};
    return MGX_OK;
}
