// SPDX-License-Identifier: MIT
// An arena in which every allocation is a malloc of its own. Include this in one file of a test
// program, next to test_malloc.h: it takes the place of base/arena.c, so that each allocation from
// an arena can fail by itself and a sanitizer sees its exact bounds.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"

struct mgx_arena_block {
    struct mgx_arena_block *next;
    size_t size; // of data
    unsigned char data[];
};

void mgx_arena_init(struct mgx_arena *arena)
{
    *arena = (struct mgx_arena){0};
}

static void test_arena_drop(struct mgx_arena *arena, const struct mgx_arena_block *until)
{
    while (arena->blocks != until) {
        struct mgx_arena_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
}

void mgx_arena_fini(struct mgx_arena *arena)
{
    test_arena_drop(arena, NULL);
    mgx_arena_init(arena);
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
    while (block && (uintptr_t)p - (uintptr_t)block->data >= block->size)
        block = block->next;
    return block != NULL;
}

void *mgx_arena_alloc(struct mgx_arena *arena, size_t size)
{
    size_t total;
    struct mgx_arena_block *block = NULL;
    if (mgx_add_size(size, sizeof *block, &total))
        block = calloc(1, total);
    if (!block) {
        arena->failed = true;
        return NULL;
    }
    block->size = size ? size : 1;
    block->next = arena->blocks;
    arena->blocks = block;
    arena->bytes += size ? size : 1;
    return block->data;
}

void *mgx_arena_array(struct mgx_arena *arena, size_t count, size_t size)
{
    size_t total;
    if (mgx_mul_size(count, size, &total))
        return mgx_arena_alloc(arena, total);
    arena->failed = true;
    return NULL;
}

void *mgx_arena_memdup(struct mgx_arena *arena, const void *data, size_t size)
{
    void *copy = data ? mgx_arena_alloc(arena, size) : NULL;
    return copy && size ? memcpy(copy, data, size) : copy;
}

char *mgx_arena_strndup(struct mgx_arena *arena, const char *text, size_t size)
{
    char *copy = text ? mgx_arena_alloc(arena, size + 1) : NULL;
    return copy && size ? memcpy(copy, text, size) : copy;
}

char *mgx_arena_strdup(struct mgx_arena *arena, const char *text)
{
    return text ? mgx_arena_strndup(arena, text, strlen(text)) : NULL;
}

char *mgx_arena_printf(struct mgx_arena *arena, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int size = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = mgx_arena_alloc(arena, (size_t)size + 1);
    va_start(args, fmt);
    if (text)
        vsnprintf(text, (size_t)size + 1, fmt, args);
    va_end(args);
    return text;
}

struct mgx_arena_mark mgx_arena_mark(const struct mgx_arena *arena)
{
    return (struct mgx_arena_mark){.block = arena->blocks, .bytes = arena->bytes};
}

void mgx_arena_rewind(struct mgx_arena *arena, struct mgx_arena_mark mark)
{
    test_arena_drop(arena, mark.block);
    arena->bytes = mark.bytes;
}
