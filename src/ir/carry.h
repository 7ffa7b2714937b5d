// SPDX-License-Identifier: MIT
// What a saved program carries beside its instructions: for which target, machine and options it
// was compiled, constants as its kernels packed them, and what tuning found.
//
//     compiled program --> carry --> file --> carry --> the same program, compiled again at once
//
// It stands between who writes files and who plans programs, which do not know each other. Packed
// constants and literals of a loaded program are views of the mapped file. The file is hostile: the
// bytes are checked by chunks, and only those that somebody marks as used; what nobody reads stays
// on the disk. A packed constant is only bytes that a kernel reads, as many as it asks for.
//
// Holds: any number of threads may mark and check.
#pragma once

#include "base/arena.h"
#include "base/array.h"
#include "base/map.h"
#include "base/settings.h"
#include "ir/tensor.h"

enum { MGX_CARRY_CHUNK = 1 << 16, MGX_CARRY_SOURCES = 4, MGX_CARRY_NAME = 64 };

// What a constant is packed from, by name.
struct mgx_carry_source {
    int64_t number; // 0: nothing; 1 + n: storage n of literals; -1 - n: joined weights n
    int64_t offset; // there
};

// The storage that is the loaded file itself, in whatever place it is among the others.
enum { MGX_CARRY_NONE = 0 };
#define MGX_CARRY_FILE INT64_MAX

// A packed constant. Its key begins with the name of a kernel, ended by a zero byte, and
// MGX_CARRY_SOURCES sources.
struct mgx_carry_pack {
    const char *key;
    size_t key_size;
    const void *data;
    size_t bytes;
    const void *source[MGX_CARRY_SOURCES]; // when saving: where sources lie; NULL for other names
};

struct mgx_carry_packs {
    MGX_ARRAY(struct mgx_carry_pack);
};

// Of compiling, as far as loading needs them.
struct mgx_carry_options {
    bool offload_copy, fast_math;
    int threads;             // 0: as many as there are
    struct mgx_settings own; // the target's
};

typedef uint64_t mgx_carry_sum(const void *data, size_t size);

struct mgx_carry {
    struct mgx_arena arena;
    char target[MGX_CARRY_NAME];
    struct mgx_carry_options options;
    const char *kind;    // of machine: "cpu avx2"; NULL: not said
    const char *kernels; // which set of kernels packed; NULL: not said
    const char *tuning;  // as in a tuning cache, tuning_size bytes
    size_t tuning_size;
    const void *code; // kernels that a device's compiler made, code_size bytes; NULL: none
    size_t code_size;
    struct mgx_carry_packs packs;
    struct mgx_map by_key; // of a loaded one: key -> pack
    // Of a loaded one:
    struct mgx_storage *file;         // a share; NULL: bytes were copied, nothing is to be checked
    const uint8_t *data;              // what the sums are of, chunk by chunk
    size_t data_bytes, literal_bytes; // the first of them are literals
    const uint64_t *sums;
    mgx_carry_sum *sum;
    atomic_uchar *state;           // of every chunk: 0, MARKED, CHECKED
    struct mgx_carry_ahead *ahead; // NULL: nobody checks ahead
    bool fits;        // this machine and these kernels: neither passes nor packing are needed
    const char *why;  // why it does not
    bool judged;      // whether it fits is known
    bool trusted;     // its kernels may be run; set by who chooses the form
    bool has_code;    // there are some, trusted or not
    const char *form; // of several in the file: which, of which
};

// Decides which form of a container is read: *out is its number, or -1 for the portable program.
// A form's carry has target, kind, kernels and options. What the loaded program is to remember goes
// into the carry of that form (or of the first one, which the portable program gets).
struct mgx_carry_chooser {
    enum mgx_status (*choose)(void *user, struct mgx_carry *const *forms, int count, bool portable,
                              int *out, struct mgx_diag *diag);
    void *user;
};

struct mgx_carry *mgx_carry_create(void);    // NULL when out of memory
void mgx_carry_destroy(struct mgx_carry *c); // NULL is allowed

// The packed constant of this key and size, marked; NULL if there is none.
const void *mgx_carry_find(struct mgx_carry *c, const void *key, size_t size, size_t bytes);
// These bytes are going to be read; bytes outside the file are none of its business.
void mgx_carry_mark(struct mgx_carry *c, const void *data, size_t bytes);
// All but packed constants, which lie behind the literals.
void mgx_carry_mark_literals(struct mgx_carry *c);
// Begins to check packed constants before anyone has marked them, in a thread of its own, so that
// it reads them from memory while the caller builds the program. Where it cannot, nothing happens.
void mgx_carry_check_ahead(struct mgx_carry *c);
// Ends that; what it has not come to, or found damaged, is checked when it is marked.
void mgx_carry_end_ahead(struct mgx_carry *c);
// Checks a share of what is marked; shares may be checked by several threads at once.
bool mgx_carry_check_part(struct mgx_carry *c, int part, int parts);
// Everything marked, by one thread.
enum mgx_status mgx_carry_check(struct mgx_carry *c, struct mgx_diag *diag) MGX_NODISCARD;
// The same, of these bytes alone.
enum mgx_status mgx_carry_check_now(struct mgx_carry *c, const void *data, size_t bytes,
                                    struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_carry_damaged(struct mgx_diag *diag); // how a failed check is told
