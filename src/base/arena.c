// SPDX-License-Identifier: MIT
// Arena; see arena.h.
//
//   block: [ header | used ............ | free ... ]   blocks are chained newest first
//
// Under AddressSanitizer each allocation is followed by a red zone, so an overrun into the
// neighbour is seen even though both live in one malloc block.
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/memory.h"
#include "base/size.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
enum { RED_ZONE = 16 };
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
enum { RED_ZONE = 0 };
#endif

enum { ALIGN = 16, FIRST_BLOCK = 4096, LAST_BLOCK = 1 << 20 };
enum { MANY = 16 << 20, HUGE_BLOCK = 4 << 20 }; // an arena of many bytes grows by huge pages

struct mgx_arena_block {
    struct mgx_arena_block *next;
    size_t size; // of data
    size_t used;
    size_t pad; // keeps data 16-aligned
    unsigned char data[];
};

void mgx_arena_init(struct mgx_arena *arena)
{
    *arena = (struct mgx_arena){0};
}

static void drop_block(struct mgx_arena *arena)
{
    struct mgx_arena_block *block = arena->blocks;
    arena->blocks = block->next;
    ASAN_UNPOISON_MEMORY_REGION(block->data, block->size);
    mgx_budget_give(sizeof *block + block->size);
    free(block);
}

void mgx_arena_fini(struct mgx_arena *arena)
{
    while (arena->blocks)
        drop_block(arena);
    *arena = (struct mgx_arena){0};
}

size_t mgx_arena_room(const struct mgx_arena *arena)
{
    size_t bytes = 0;
    for (const struct mgx_arena_block *block = arena->blocks; block; block = block->next)
        bytes += sizeof *block + block->size;
    return bytes;
}

bool mgx_arena_holds(const struct mgx_arena *arena, const void *p)
{
    const struct mgx_arena_block *block = arena->blocks;
    while (block && (uintptr_t)p - (uintptr_t)block->data >= block->used)
        block = block->next;
    return block != NULL;
}

static struct mgx_arena_block *add_block(struct mgx_arena *arena, size_t need)
{
    size_t size = FIRST_BLOCK;
    if (arena->blocks)
        size = arena->blocks->size >= LAST_BLOCK / 2 ? LAST_BLOCK : arena->blocks->size * 2;
    if (arena->bytes >= MANY)
        size = HUGE_BLOCK - sizeof(struct mgx_arena_block);
    if (size < need)
        size = need;
    size_t total;
    if (!mgx_add_size(size, sizeof(struct mgx_arena_block), &total) || !mgx_budget_take(total))
        return NULL;
    // What is handed out is zeroed, so a block larger than memory would end the process.
    struct mgx_arena_block *block =
        total < HUGE_BLOCK ? malloc(total) : mgx_memory_aligned(64, total);
    if (!block) {
        mgx_budget_give(total);
        return NULL;
    }
    block->next = arena->blocks;
    block->size = size;
    block->used = 0;
    ASAN_POISON_MEMORY_REGION(block->data, block->size);
    arena->blocks = block;
    return block;
}

void *mgx_arena_alloc(struct mgx_arena *arena, size_t size)
{
    size_t need;
    if (!mgx_add_size(size ? size : 1, ALIGN - 1 + RED_ZONE, &need)) {
        arena->failed = true;
        return NULL;
    }
    need &= ~(size_t)(ALIGN - 1);
    if (arena->limit && (need > arena->limit || arena->bytes > arena->limit - need)) {
        arena->failed = true;
        return NULL;
    }
    struct mgx_arena_block *block = arena->blocks;
    if (!block || block->size - block->used < need)
        block = add_block(arena, need);
    if (!block) {
        arena->failed = true;
        return NULL;
    }
    unsigned char *p = block->data + block->used;
    block->used += need;
    arena->bytes += need;
    ASAN_UNPOISON_MEMORY_REGION(p, need - RED_ZONE);
    memset(p, 0, need - RED_ZONE);
    return p;
}

void *mgx_arena_array(struct mgx_arena *arena, size_t count, size_t size)
{
    size_t total;
    if (!mgx_mul_size(count, size, &total)) {
        arena->failed = true;
        return NULL;
    }
    return mgx_arena_alloc(arena, total);
}

void *mgx_arena_memdup(struct mgx_arena *arena, const void *data, size_t size)
{
    void *copy = data ? mgx_arena_alloc(arena, size) : NULL;
    if (copy && size)
        memcpy(copy, data, size);
    return copy;
}

char *mgx_arena_strndup(struct mgx_arena *arena, const char *text, size_t size)
{
    char *copy = text && size < SIZE_MAX ? mgx_arena_alloc(arena, size + 1) : NULL;
    if (copy && size)
        memcpy(copy, text, size);
    return copy;
}

char *mgx_arena_strdup(struct mgx_arena *arena, const char *text)
{
    return text ? mgx_arena_strndup(arena, text, strlen(text)) : NULL;
}

char *mgx_arena_printf(struct mgx_arena *arena, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, fmt, args);
    char *text = length < 0 ? NULL : mgx_arena_alloc(arena, (size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, fmt, again);
    va_end(again);
    va_end(args);
    return text;
}

struct mgx_arena_mark mgx_arena_mark(const struct mgx_arena *arena)
{
    return (struct mgx_arena_mark){.block = arena->blocks,
                                   .used = arena->blocks ? arena->blocks->used : 0,
                                   .bytes = arena->bytes};
}

void mgx_arena_rewind(struct mgx_arena *arena, struct mgx_arena_mark mark)
{
    while (arena->blocks != mark.block)
        drop_block(arena);
    struct mgx_arena_block *block = arena->blocks;
    if (block) {
#ifndef NDEBUG
        ASAN_UNPOISON_MEMORY_REGION(block->data, block->used);
        memset(block->data + mark.used, 0xA5, block->used - mark.used);
#endif
        ASAN_POISON_MEMORY_REGION(block->data + mark.used, block->size - mark.used);
        block->used = mark.used;
    }
    arena->bytes = mark.bytes;
}
