// SPDX-License-Identifier: MIT
// What kernels keep: their states in an arena, packed constants found again by key, and what they
// want done in the end. A plan has a store; so has every kernel chosen at run time, with the plan's
// as its parent, and folding.
//
// A key is bytes that mean the same in another process: which literal, at which offset, packed by
// which kernel, described how. Equal keys pack to equal bytes, so equal weights are packed once,
// and a saved program brings them packed (ir/carry.h).
//
// Constants lie one behind the other in chunks that grow with what is there already, up to 32 MiB,
// so that even small ones share large pages. Packing may be put off (fill_later) and is then done
// by all threads; what it has read of a mapped model leaves memory behind it.
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "ir/carry.h"
#include "ir/module.h"
#include "plan/machine.h"

struct mgx_plan_end {
    struct mgx_plan_end *next;
    void (*fn)(void *user);
    void *user;
};

// How a constant is packed: `fill` writes its share of the packed bytes from the source, the shares
// in any order and by any thread. `kernel` is what the kernel family needs to know for it.
struct mgx_plan_fill {
    void (*fill)(const struct mgx_plan_fill *f, int part, int parts);
    const void *kernel;
    const void *source[4]; // [0] is what counts: its pages may leave memory behind the packer
    size_t source_bytes;   // of [0]
    void *packed;
    size_t packed_bytes;
    struct mgx_plan_fill *next;
};

// Where sources lie in memory.
struct mgx_plan_range {
    uintptr_t begin, end;
    struct mgx_carry_source source; // of its first byte
};

struct mgx_plan_ranges {
    MGX_ARRAY(struct mgx_plan_range);
};

struct mgx_plan_join;
struct mgx_plan_sharing; // shared.c

struct mgx_plan_packed {
    void *data;
    size_t bytes;
};

struct mgx_plan_store {
    struct mgx_plan_store *parent; // of a kernel chosen at run time: the plan's
    const struct mgx_plan_machine *machine;
    struct mgx_arena arena;
    struct mgx_kept packed; // storages that packed constants lie in
    size_t packed_bytes;
    size_t device_bytes;  // of constants in the machine's own memory that no other plan reads
    unsigned char *chunk; // where the next packed constant goes, and the room there
    size_t chunk_left;
    struct mgx_map packs;    // key -> struct mgx_plan_packed
    struct mgx_carry *carry; // what a saved program brought; NULL: nothing
    int carried_count;       // packed constants found there
    size_t carried_bytes;
    struct mgx_plan_ranges ranges; // where constants lie, by address; of a late one copies of some
    struct mgx_plan_fill *first_fill, *last_fill; // not done yet
    bool fill_later;                              // by mgx_plan_fill_all, all together
    struct mgx_plan_join *joins;                  // joined weights that have addresses
    int join_count;
    struct mgx_plan_sharing *sharing; // with other plans of the model (shared.h); NULL: with none
    struct mgx_plan_makeshift *makeshift; // see struct mgx_plan_settings; NULL once it is made
    size_t late_bytes;                    // packed for kernels chosen at run time, of packed_bytes
    struct mgx_plan_end *ends;
};

void mgx_plan_store_init(struct mgx_plan_store *store, const struct mgx_plan_machine *machine,
                         struct mgx_plan_store *parent);
void mgx_plan_store_fini(struct mgx_plan_store *store);

// Says where a constant lies. False when out of memory.
bool mgx_plan_note_source(struct mgx_plan_store *store, const void *data, size_t bytes,
                          struct mgx_carry_source source);
// Bytes at `copy` are those of a constant at `data`.
bool mgx_plan_note_copy(struct mgx_plan_store *store, const void *copy, size_t bytes,
                        const void *data);
// What lies at `data`; asserted to be known.
struct mgx_carry_source mgx_plan_source_of(const struct mgx_plan_store *store, const void *data);
// Where a source lies; NULL for joined weights and for none.
const void *mgx_plan_source_at(const struct mgx_program *p, const struct mgx_carry_source *source);

// What a packed constant is found by.
struct mgx_plan_key {
    const char *kernel;                    // name of the kernel that reads it
    const void *source[MGX_CARRY_SOURCES]; // addresses of constants, NULL for none
    const void *desc; // what else decides the packed bytes: no address, padding zeroed
    size_t desc_bytes;
};

// Where a constant is packed, 64-byte aligned, kept by the store (of a late one: by its parent,
// while there is room); the bytes are there before the first run, not at once. NULL on failure.
void *mgx_plan_pack(struct mgx_plan_store *store, const struct mgx_plan_key *key, size_t bytes,
                    const struct mgx_plan_fill *how, struct mgx_diag *diag);
// Is it packed already, here or by another plan of the model? False when out of memory, too.
bool mgx_plan_is_packed(struct mgx_plan_store *store, const struct mgx_plan_key *key, size_t bytes);
// Room of this kind without a key.
void *mgx_plan_take(struct mgx_plan_store *store, size_t bytes, struct mgx_diag *diag);
// Room in the machine's own memory, for a constant that kernels there read. NULL on failure.
void *mgx_plan_device_take(struct mgx_plan_store *store, size_t bytes, struct mgx_diag *diag);
// The same for what `key` names: where another plan of the model has put those bytes already they
// are taken from there, and *fresh is false.
void *mgx_plan_device_share(struct mgx_plan_store *store, const struct mgx_plan_key *key,
                            size_t bytes, bool *fresh, struct mgx_diag *diag);
// Fills all that was put off.
enum mgx_status mgx_plan_fill_all(struct mgx_plan_store *store,
                                  struct mgx_diag *diag) MGX_NODISCARD;

// fn(user) when the store goes; at once, with a failure, when that cannot be noted.
bool mgx_plan_at_end(struct mgx_plan_store *store, void (*fn)(void *user), void *user,
                     struct mgx_diag *diag);
