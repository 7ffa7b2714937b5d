// SPDX-License-Identifier: MIT
// A small tree of values: what msgpack and JSON both say, between a program and a file.
//
// Holds: values lie in an arena; texts and bytes may point outside it, into a tensor when writing
// and into the file when reading. Making is sticky: NULL in gives NULL out, and arena->failed says
// so at the end. Entries of a map are kept sorted by name, so equal programs give equal files. A
// file that is read is bounded: 64 levels, MGX_TREE_MAX values.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

enum mgx_value_kind {
    MGX_VALUE_NIL,
    MGX_VALUE_BOOL,
    MGX_VALUE_INT,
    MGX_VALUE_REAL,
    MGX_VALUE_TEXT,
    MGX_VALUE_BYTES,
    MGX_VALUE_LIST,
    MGX_VALUE_MAP,
};

enum { MGX_TREE_DEPTH = 64, MGX_TREE_MAX = 1 << 24 };

struct mgx_value {
    enum mgx_value_kind kind;
    const char *key;  // in a map
    int64_t i;        // of INT and BOOL
    double f;         // of REAL
    const void *data; // of TEXT (NUL-terminated) and BYTES
    size_t size;      // of them
    struct mgx_value *first, *last, *next;
    size_t count; // of children
};

struct mgx_value *mgx_value_new(struct mgx_arena *arena, enum mgx_value_kind kind);
struct mgx_value *mgx_value_int(struct mgx_arena *arena, int64_t i);
struct mgx_value *mgx_value_real(struct mgx_arena *arena, double f);
struct mgx_value *mgx_value_text(struct mgx_arena *arena, const char *text); // borrowed
struct mgx_value *mgx_value_bytes(struct mgx_arena *arena, const void *data, size_t size);
struct mgx_value *mgx_value_ints(struct mgx_arena *arena, const int64_t *v, int count);
// Appends to a list; puts into a map in order of names (a name given twice keeps both).
void mgx_value_add(struct mgx_value *list, struct mgx_value *item);
void mgx_value_put(struct mgx_value *map, const char *key, struct mgx_value *item);

// NULL if `map` is no map or has no such entry.
const struct mgx_value *mgx_value_find(const struct mgx_value *map, const char *key);
bool mgx_value_is(const struct mgx_value *v, enum mgx_value_kind kind); // NULL is nothing

// --- files ---

// Where writers put bytes; `at` is how many there are already.
struct mgx_sink {
    enum mgx_status (*write)(struct mgx_sink *sink, const void *data, size_t size,
                             struct mgx_diag *diag);
    void *user;
    uint64_t at;
};

// Bytes become lists of chunks, the last of which begins at a multiple of 64 in the sink.
enum mgx_status mgx_msgpack_write(struct mgx_sink *sink, const struct mgx_value *v,
                                  struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_msgpack_read(struct mgx_arena *arena, const void *data, size_t size,
                                 struct mgx_value **out, struct mgx_diag *diag) MGX_NODISCARD;
// Bytes become {"bytes":[...]}.
enum mgx_status mgx_json_write(struct mgx_sink *sink, const struct mgx_value *v,
                               struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_json_read(struct mgx_arena *arena, const char *text, size_t size,
                              struct mgx_value **out, struct mgx_diag *diag) MGX_NODISCARD;
