// SPDX-License-Identifier: MIT
// The container that compiled programs are kept in: a file of named sections, checked before use.
// docs/mxr.md is the specification.
//
//     header | data: literals, packed constants | sections ... | table | trailer
//
// The data is made to be mapped: 64-byte aligned, large pieces on pages of their own, and summed
// chunk by chunk, so that a reader checks what it uses and leaves the rest on the disk. It is
// written in one go, from front to back, and can be written to a pipe.
//
// Holds: a reader believes nothing. The trailer's sum covers the table, the table's sums cover the
// sections, each checked when it is asked for.
#pragma once

#include "base/array.h"
#include "format/tree.h"
#include "ir/carry.h"

enum { MGX_CONTAINER_VERSION = 3, MGX_CONTAINER_SECTIONS = 64, MGX_CONTAINER_NAME = 16 };

// The section of form `i` of a compiled program: "info", "info.1", ...
struct mgx_container_name {
    char text[MGX_CONTAINER_NAME];
};
struct mgx_container_name mgx_container_name(int i, const char *name);

// --- writing ---

struct mgx_container_section {
    char name[MGX_CONTAINER_NAME]; // zeros behind it
    uint64_t at, size, sum;
};

struct mgx_container_sums {
    MGX_ARRAY(uint64_t);
};

struct mgx_container_writer {
    struct mgx_sink *sink;
    struct mgx_arena *arena;
    struct mgx_diag *diag;
    struct mgx_container_section sections[MGX_CONTAINER_SECTIONS];
    int count;
    uint8_t *chunk; // what the next sum will be of, and how much of it there is
    size_t fill;
    struct mgx_container_sums sums;
};

// Where the data begins in a file.
enum { MGX_CONTAINER_DATA = 4096 };

enum mgx_status mgx_container_begin(struct mgx_container_writer *w) MGX_NODISCARD;
// Zeros up to this offset in the data, which is not behind the end, then bytes.
enum mgx_status mgx_container_data(struct mgx_container_writer *w, uint64_t at, const void *data,
                                   size_t size) MGX_NODISCARD;
enum mgx_status mgx_container_end_data(struct mgx_container_writer *w) MGX_NODISCARD;
enum mgx_status mgx_container_section(struct mgx_container_writer *w, const char *name,
                                      const void *data, size_t size) MGX_NODISCARD;
enum mgx_status mgx_container_end(struct mgx_container_writer *w) MGX_NODISCARD;

// --- reading ---

struct mgx_container {
    const uint8_t *bytes;
    size_t size;
    mgx_carry_sum *sum;                        // of files of its version
    const struct mgx_container_section *table; // aligned
    int count;
};

bool mgx_container_is(const void *data, size_t size); // by its first bytes
enum mgx_status mgx_container_open(struct mgx_container *c, struct mgx_arena *arena,
                                   const void *bytes, size_t size,
                                   struct mgx_diag *diag) MGX_NODISCARD;
// A section whose sum is right; *data is NULL if there is none of that name.
enum mgx_status mgx_container_find(const struct mgx_container *c, const char *name,
                                   const uint8_t **data, size_t *size,
                                   struct mgx_diag *diag) MGX_NODISCARD;
// Whether there is a section of that name.
bool mgx_container_has(const struct mgx_container *c, const char *name);
// The data and the sums of its chunks, into the carry.
enum mgx_status mgx_container_take_data(const struct mgx_container *c, struct mgx_carry *out,
                                        struct mgx_diag *diag) MGX_NODISCARD;
