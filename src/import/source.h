// SPDX-License-Identifier: MIT
// Where a model's bytes come from: a mapped file or the caller's buffer, and the files beside it
// that hold its weights. Each file is mapped once however many tensors lie in it; tensors share the
// mapping and keep it alive beyond the import.
//
// Holds: a file beside the model is opened by descriptor inside the model's directories
// (base/dirs.h), whatever its name says. Cost: O(1) per file, no bytes are read.
#pragma once

#include "base/dirs.h"
#include "base/map.h"
#include "import/wire.h"
#include "ir/tensor.h"

struct mgx_source {
    const char *path; // for messages; NULL for a buffer
    struct mgx_file *file;
    struct mgx_storage *storage; // keeps the model's bytes
    struct mgx_wire bytes;
    struct mgx_dirs dirs; // of the files beside it; opened when first needed
    struct mgx_map files; // location -> struct mgx_source_file *
};

struct mgx_source_file {
    struct mgx_file *file;
    struct mgx_storage *storage;
};

// The file of that path, wherever it is: whoever named it is trusted. And the end of either kind.
enum mgx_status mgx_source_file_open(struct mgx_source_file *out, const char *path,
                                     struct mgx_diag *diag) MGX_NODISCARD;
void mgx_source_file_release(struct mgx_source_file *file);

// Bytes of a file, and what keeps them.
struct mgx_region {
    const uint8_t *data;
    size_t size;
    struct mgx_file *file;       // NULL: not of a file
    struct mgx_storage *storage; // borrowed
};

enum mgx_status mgx_source_open(struct mgx_source *s, const char *keep_path,
                                struct mgx_diag *diag) MGX_NODISCARD;
// The bytes must outlive every share in them unless `copy`.
enum mgx_status mgx_source_open_buffer(struct mgx_source *s, const void *data, size_t size,
                                       bool copy, struct mgx_diag *diag) MGX_NODISCARD;
void mgx_source_fini(struct mgx_source *s);
// Was any of its files lost meanwhile?
enum mgx_status mgx_source_check(const struct mgx_source *s, struct mgx_diag *diag) MGX_NODISCARD;

// A file beside the model: looked up in the directory `named` if given, else beside the model's
// path and then beside its real file; links may lead from there to any of these.
enum mgx_status mgx_source_beside(struct mgx_source *s, const char *named,
                                  struct mgx_slice location, struct mgx_arena *arena,
                                  struct mgx_source_file **out,
                                  struct mgx_diag *diag) MGX_NODISCARD;

// Whether these bytes can stand for a tensor of that type as they lie. Large floats may lie
// misaligned: whoever packs them reads them once.
bool mgx_region_is_usable(const struct mgx_region *r, const struct mgx_shape *shape);
// A tensor that shows the bytes.
struct mgx_tensor mgx_region_show(const struct mgx_region *r, const struct mgx_shape *shape);
// Copies them piece by piece; the file's pages may leave memory again after each.
void mgx_region_copy(const struct mgx_region *r, void *to);
// Room for strings whose bytes lie in `keep`.
enum mgx_status mgx_strings_create(const struct mgx_shape *shape, struct mgx_storage *keep,
                                   struct mgx_tensor *out, struct mgx_diag *diag) MGX_NODISCARD;
