// SPDX-License-Identifier: MIT
// Reader of the protobuf wire format over bytes that stay where they are: nothing is copied.
//
// A message is a slice; reading it is a loop over its fields:
//
//     struct mgx_wire w = message;
//     struct mgx_wire_field f;
//     while (mgx_wire_next(&w, &f)) switch (f.number) { ... }
//     if (w.bad) return mgx_wire_fail(...);
//
// Holds: every read is checked against the slice's end when it happens, so bytes that change or
// turn to zeros underneath (a mapped file may shrink) give other values or an error, never a read
// outside. Nested messages are slices too and are read by whoever wants them, so there is no
// recursion here. Groups, field number 0 and numbers beyond 2^29 are errors; unknown fields are the
// reader's to ignore. Cost: one pass, no memory.
#pragma once

#include "base/status.h"

#include <stdint.h>

struct mgx_wire { // a message not read yet, or the rest of one
    const uint8_t *p, *end;
    const char *bad; // why reading stopped early; NULL while all is well
    bool cut;        // because bytes are missing that a field promised
};

enum mgx_wire_type { MGX_WIRE_VARINT = 0, MGX_WIRE_64 = 1, MGX_WIRE_BYTES = 2, MGX_WIRE_32 = 5 };

struct mgx_wire_field {
    uint32_t number;
    enum mgx_wire_type type;
    uint64_t value;      // of a varint or a fixed number: its bits
    const uint8_t *data; // of a length-delimited field; else where the value lies
    size_t size;         // of data
};

// A name or any other bytes inside the file; not NUL-terminated.
struct mgx_slice {
    const char *text;
    size_t size;
};

static inline struct mgx_wire mgx_wire_of(const void *data, size_t size)
{
    const uint8_t *p = data;
    return (struct mgx_wire){p, p ? p + size : p, NULL, false};
}

static inline struct mgx_wire mgx_wire_sub(const struct mgx_wire_field *f)
{
    return mgx_wire_of(f->data, f->size);
}

// False at the end and on a malformed field (w->bad says which).
bool mgx_wire_next(struct mgx_wire *w, struct mgx_wire_field *f);
bool mgx_wire_varint(struct mgx_wire *w, uint64_t *out);

// Takes a field as what it must be; false, with w->bad set, when its wire type is another one.
bool mgx_wire_int(struct mgx_wire *w, const struct mgx_wire_field *f, int64_t *out);
bool mgx_wire_float(struct mgx_wire *w, const struct mgx_wire_field *f, float *out);
bool mgx_wire_bytes(struct mgx_wire *w, const struct mgx_wire_field *f, struct mgx_slice *out);
bool mgx_wire_message(struct mgx_wire *w, const struct mgx_wire_field *f, struct mgx_wire *out);
// A singular message: a second occurrence is an error (protobuf would merge them silently).
bool mgx_wire_once(struct mgx_wire *w, const struct mgx_wire_field *f, struct mgx_wire *out);
// The numbers of one occurrence of a repeated field, packed or not, as a message of bare values;
// `width` is 0 for varints, else 4 or 8 bytes. Read them with mgx_wire_varint / memcpy.
bool mgx_wire_packed(struct mgx_wire *w, const struct mgx_wire_field *f, int width,
                     struct mgx_wire *out);

// MGX_INVALID with w->bad, the message's kind and the offset from `base` when that is known.
enum mgx_status mgx_wire_fail(const struct mgx_wire *w, const char *message, struct mgx_diag *diag);

// Is this valid UTF-8 without NUL?
bool mgx_utf8_valid(const char *text, size_t size);

static inline bool mgx_slice_is(struct mgx_slice s, const char *text)
{
    return s.size == __builtin_strlen(text) && __builtin_memcmp(s.text, text, s.size) == 0;
}
