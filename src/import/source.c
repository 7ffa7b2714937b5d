// SPDX-License-Identifier: MIT
// The bytes of a model, and of the files beside it; see source.h.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "import/source.h"
#include "ir/inside.h"

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
    assert(release && (data || !size));
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
    assert(file->data || !file->size);
    struct mgx_storage *storage = new_storage(file->data, file->size, file, release_file);
    if (storage)
        mgx_file_retain(file);
    return storage;
}

enum mgx_status mgx_source_file_open(struct mgx_source_file *out, const char *path,
                                     struct mgx_diag *diag)
{
    *out = (struct mgx_source_file){0};
    TRY(mgx_file_open(&out->file, path, diag));
    out->storage = storage_of_file(out->file);
    if (out->storage)
        return MGX_OK;
    mgx_source_file_release(out);
    return mgx_fail_memory(diag);
}

void mgx_source_file_release(struct mgx_source_file *file)
{
    mgx_storage_release(file->storage);
    mgx_file_release(file->file);
    *file = (struct mgx_source_file){0};
}

enum mgx_status mgx_source_open(struct mgx_source *s, const char *path, struct mgx_diag *diag)
{
    assert(path && !s->file && !s->storage);
    s->path = path;
    TRY(mgx_file_open(&s->file, path, diag));
    s->bytes = mgx_wire_of(s->file->data, s->file->size);
    s->storage = storage_of_file(s->file);
    return s->storage ? MGX_OK : mgx_fail_memory(diag);
}

enum mgx_status mgx_source_open_buffer(struct mgx_source *s, const void *data, size_t size,
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

void mgx_source_fini(struct mgx_source *s)
{
    assert(!s->storage || atomic_load(&s->storage->refs) > 0);
    for (uint32_t i = 0; i < s->files.count; i++)
        mgx_source_file_release(s->files.entries[i].value);
    mgx_map_fini(&s->files);
    mgx_storage_release(s->storage);
    mgx_file_release(s->file);
    mgx_dirs_close(&s->dirs);
}

enum mgx_status mgx_source_check(const struct mgx_source *s, struct mgx_diag *diag)
{
    if (s->file)
        TRY(mgx_file_check(s->file, diag));
    for (uint32_t i = 0; i < s->files.count; i++) {
        const struct mgx_source_file *external = s->files.entries[i].value;
        TRY(mgx_file_check(external->file, diag));
    }
    return MGX_OK;
}

// --- files beside it ---

static enum mgx_status open_dirs(struct mgx_source *s, const char *named, struct mgx_diag *diag)
{
    if (s->dirs.count)
        return MGX_OK;
    if (!named && !s->path)
        return mgx_fail(diag, MGX_INVALID,
                        "external data needs external_data_path when a model comes from memory");
    if (named)
        TRY(mgx_dirs_add(&s->dirs, named, true, diag));
    return s->path ? mgx_dirs_add_file(&s->dirs, s->path, !named, diag) : MGX_OK;
}

enum mgx_status mgx_source_beside(struct mgx_source *s, const char *named,
                                  struct mgx_slice location, struct mgx_arena *arena,
                                  struct mgx_source_file **out, struct mgx_diag *diag)
{
    *out = mgx_map_findn(&s->files, location.text, location.size);
    if (*out)
        return MGX_OK;
    TRY(open_dirs(s, named, diag));
    struct mgx_source_file *beside = MGX_NEW(arena, struct mgx_source_file);
    if (!beside)
        return mgx_fail_memory(diag);
    const enum mgx_status status =
        mgx_dirs_open(&s->dirs, location.text, location.size, &beside->file, diag);
    if (status == MGX_NOT_FOUND)
        mgx_where(diag, "the directory of external data, %s", named ? named : "that of the model");
    TRY(status);
    beside->storage = storage_of_file(beside->file);
    if (beside->storage && mgx_map_putn(&s->files, location.text, location.size, beside)) {
        *out = beside;
        return MGX_OK;
    }
    mgx_source_file_release(beside);
    return mgx_fail_memory(diag);
}

// --- bytes as tensors ---

static size_t alignment_of(enum mgx_type type)
{
    assert(type != MGX_TUPLE && type != MGX_SEQUENCE);
    const size_t size = type == MGX_COMPLEX64    ? 4
                        : type == MGX_COMPLEX128 ? 8
                                                 : mgx_type_size(type);
    return size ? size : 1;
}

static bool only_zeros_and_ones(const uint8_t *p, size_t size)
{
    uint8_t seen = 0;
    for (size_t i = 0; i < size; i++)
        seen |= p[i];
    return seen <= 1;
}

bool mgx_region_is_usable(const struct mgx_region *r, const struct mgx_shape *shape)
{
    assert(r->data || !r->size);
    enum { WEIGHT = 16 << 10 }; // bytes of floats that may stay misaligned
    const bool weight =
        (shape->type == MGX_FLOAT || mgx_type_is_half_or_bf16(shape->type)) && r->size >= WEIGHT;
    return (weight || (uintptr_t)r->data % alignment_of(shape->type) == 0) &&
           (shape->type != MGX_BOOL || only_zeros_and_ones(r->data, r->size));
}

struct mgx_tensor mgx_region_show(const struct mgx_region *r, const struct mgx_shape *shape)
{
    const struct mgx_tensor t = {
        .shape = *shape, .data = (void *)r->data, .storage = mgx_storage_retain(r->storage)};
    assert(mgx_shape_bytes(shape) == r->size && mgx_tensor_lies_inside(&t));
    return t;
}

void mgx_region_copy(const struct mgx_region *r, void *to)
{
    enum { PIECE = 4 << 20 };
    uint8_t *out = to;
    for (size_t done = 0; done < r->size;) { // piece by piece: memory holds one piece twice
        const size_t size = r->size - done < PIECE ? r->size - done : PIECE;
        memcpy(out + done, r->data + done, size);
        if (r->file)
            mgx_file_forget(r->file, r->data + done, size);
        done += size;
    }
}

static void release_strings(struct mgx_storage *storage)
{
    mgx_storage_release(storage->owner);
    free(storage);
}

enum mgx_status mgx_strings_create(const struct mgx_shape *shape, struct mgx_storage *keep,
                                   struct mgx_tensor *out, struct mgx_diag *diag)
{
    const size_t bytes = (size_t)mgx_shape_elements(shape) * sizeof(struct mgx_string);
    const size_t head = (sizeof(struct mgx_storage) + 15) & ~(size_t)15;
    struct mgx_storage *storage = calloc(1, head + bytes);
    if (!storage)
        return mgx_fail_memory(diag);
    atomic_init(&storage->refs, 1);
    storage->data = (char *)storage + head;
    storage->bytes = bytes;
    storage->owner = mgx_storage_retain(keep);
    storage->release = release_strings;
    *out = (struct mgx_tensor){.shape = *shape, .data = storage->data, .storage = storage};
    return MGX_OK;
}
