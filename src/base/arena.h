// SPDX-License-Identifier: MIT
// A bump allocator: many small objects, one lifetime, freed whole.
//
// Holds: blocks double from 4 KiB to 1 MiB, and are of 4 MiB on huge pages once there are many; a
// request larger than a block gets a block of its own. Every allocation is zeroed and aligned to 16
// bytes. Failure is sticky (`failed`), so a builder may carry on with NULLs and check once. An
// arena is used by one thread at a time. Cost: O(1) per allocation, O(blocks) to free.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct mgx_arena_block;

struct mgx_arena {
    struct mgx_arena_block *blocks; // newest first
    size_t bytes;                   // handed out so far, for limits and reports
    size_t limit;                   // of bytes: beyond it an allocation is refused; 0 = none
    bool failed;                    // an allocation was refused; stays set until fini/reset
};

// A place to come back to; see mgx_arena_rewind.
struct mgx_arena_mark {
    struct mgx_arena_block *block;
    size_t used;
    size_t bytes;
};

void mgx_arena_init(struct mgx_arena *arena);
void mgx_arena_fini(struct mgx_arena *arena);

// Bytes of the blocks, free room among them: what the arena takes of the machine. Cost: O(blocks).
size_t mgx_arena_room(const struct mgx_arena *arena);
// Does p point into what the arena has handed out? For assertions. Cost: O(blocks).
bool mgx_arena_holds(const struct mgx_arena *arena, const void *p);

// NULL when out of memory. A size of 0 gives a valid unique pointer.
void *mgx_arena_alloc(struct mgx_arena *arena, size_t size);
void *mgx_arena_array(struct mgx_arena *arena, size_t count, size_t size);

// Copies; NULL in gives NULL out (and a sticky NULL stays one).
char *mgx_arena_strdup(struct mgx_arena *arena, const char *text);
char *mgx_arena_strndup(struct mgx_arena *arena, const char *text, size_t size);
void *mgx_arena_memdup(struct mgx_arena *arena, const void *data, size_t size);
char *mgx_arena_printf(struct mgx_arena *arena, const char *fmt, ...) MGX_PRINTF(2, 3);

// Frees everything allocated after the mark was taken. Debug builds poison it first.
struct mgx_arena_mark mgx_arena_mark(const struct mgx_arena *arena);
void mgx_arena_rewind(struct mgx_arena *arena, struct mgx_arena_mark mark);

#define MGX_NEW(arena, type) ((type *)mgx_arena_alloc((arena), sizeof(type)))
#define MGX_NEW_ARRAY(arena, type, count)                                                          \
    ((type *)mgx_arena_array((arena), (size_t)(count), sizeof(type)))
