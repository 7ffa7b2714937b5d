// SPDX-License-Identifier: MIT
// Where a model's bytes come from: a mapped file or the caller's buffer, and the files beside it
// that hold external data. Each file is mapped once however many tensors lie in it; tensors share
// the mapping and keep it alive beyond the import.
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "onnx/graph.h"

// --- storages ---

static void release_file(struct mgx_storage *storage)
{
    mgx_file_release(storage->owner);
    free(storage);
}

static void release_bytes(struct mgx_storage *storage)
{
    free(storage->owner); // NULL when the caller keeps the bytes
    free(storage);
}

static struct mgx_storage *new_storage(const void *data, size_t size, void *owner,
                                       void (*release)(struct mgx_storage *))
{
    struct mgx_storage *storage = calloc(1, sizeof *storage);
    if (!storage)
        return NULL;
    atomic_init(&storage->refs, 1);
    storage->data = (void *)data;
    storage->bytes = size;
    storage->owner = owner;
    storage->release = release;
    return storage;
}

// Takes over nothing: the storage gets a share of its own in the file.
static struct mgx_storage *storage_of_file(struct mgx_file *file)
{
    struct mgx_storage *storage = new_storage(file->data, file->size, file, release_file);
    if (storage)
        mgx_file_retain(file);
    return storage;
}

enum mgx_status mgx_onnx_source_file(struct mgx_onnx_source *s, const char *path,
                                     struct mgx_diag *diag)
{
    s->path = path;
    TRY(mgx_file_open(&s->file, path, diag));
    s->bytes = mgx_wire_of(s->file->data, s->file->size);
    s->storage = storage_of_file(s->file);
    return s->storage ? MGX_OK : mgx_fail_memory(diag);
}

enum mgx_status mgx_onnx_source_buffer(struct mgx_onnx_source *s, const void *data, size_t size,
                                       bool copy, struct mgx_diag *diag)
{
    void *own = NULL;
    if (copy && size) {
        if (!(own = malloc(size)))
            return mgx_fail_memory(diag);
        memcpy(own, data, size);
        data = own;
    }
    s->bytes = mgx_wire_of(data, size);
    s->storage = new_storage(data, size, own, release_bytes);
    if (s->storage)
        return MGX_OK;
    free(own);
    return mgx_fail_memory(diag);
}

void mgx_onnx_source_fini(struct mgx_onnx_source *s)
{
    for (uint32_t i = 0; i < s->files.count; i++) {
        struct mgx_onnx_external *external = s->files.entries[i].value;
        mgx_storage_release(external->storage);
        mgx_file_release(external->file);
    }
    mgx_map_fini(&s->files);
    mgx_storage_release(s->storage);
    mgx_file_release(s->file);
    mgx_dirs_close(&s->dirs);
}

enum mgx_status mgx_onnx_source_check(const struct mgx_onnx_source *s, struct mgx_diag *diag)
{
    if (s->file)
        TRY(mgx_file_check(s->file, diag));
    for (uint32_t i = 0; i < s->files.count; i++) {
        const struct mgx_onnx_external *external = s->files.entries[i].value;
        TRY(mgx_file_check(external->file, diag));
    }
    return MGX_OK;
}

// --- external data ---

// Names are looked up in external_data_path if given, else beside the model's path and then beside
// its real file; links may lead from there to any of these.
static enum mgx_status open_dirs(struct mgx_onnx_import *import)
{
    struct mgx_onnx_source *s = &import->source;
    const char *named = import->options.external_data_path;
    if (s->dirs.count)
        return MGX_OK;
    if (!named && !s->path)
        return mgx_fail(import->diag, MGX_INVALID,
                        "external data needs external_data_path when a model comes from memory");
    if (named)
        TRY(mgx_dirs_add(&s->dirs, named, true, import->diag));
    return s->path ? mgx_dirs_add_file(&s->dirs, s->path, !named, import->diag) : MGX_OK;
}

static enum mgx_status open_external(struct mgx_onnx_import *import, struct mgx_slice location,
                                     struct mgx_onnx_external **out)
{
    struct mgx_onnx_source *s = &import->source;
    *out = mgx_map_findn(&s->files, location.text, location.size);
    if (*out)
        return MGX_OK;
    TRY(open_dirs(import));
    struct mgx_onnx_external *external = MGX_NEW(&import->arena, struct mgx_onnx_external);
    if (!external)
        return mgx_fail_memory(import->diag);
    const enum mgx_status status =
        mgx_dirs_open(&s->dirs, location.text, location.size, &external->file, import->diag);
    if (status == MGX_NOT_FOUND)
        mgx_where(import->diag, "the directory of external data, %s",
                  import->options.external_data_path ? import->options.external_data_path
                                                     : "that of the model");
    TRY(status);
    external->storage = storage_of_file(external->file);
    if (external->storage && mgx_map_putn(&s->files, location.text, location.size, external)) {
        *out = external;
        return MGX_OK;
    }
    mgx_storage_release(external->storage);
    mgx_file_release(external->file);
    return mgx_fail_memory(import->diag);
}

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

static enum mgx_status read_place(const struct mgx_onnx_messages *entries, struct place *out,
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
                                  const struct mgx_onnx_messages *entries, size_t need,
                                  struct mgx_onnx_region *out)
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
    struct mgx_onnx_external *external;
    TRY(open_external(import, place.location, &external));
    if (!mgx_add_size(offset, length, &end) || end > external->file->size)
        return mgx_fail(import->diag, MGX_INVALID,
                        "external data at offset %zu, %zu bytes long, is beyond the %zu bytes of "
                        "\"%.*s\"",
                        offset, length, external->file->size, MGX_SLICE(place.location));
    *out = (struct mgx_onnx_region){external->file->data ? external->file->data + offset : NULL,
                                    length, external->file, external->storage};
    return MGX_OK;
}
