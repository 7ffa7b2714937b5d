// SPDX-License-Identifier: MIT
// Growing; see array.h.
#include "base/array.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 128, FIRST_COUNT = 4 };

// The capacity that has room for `need` elements; 0 when no capacity has.
static int64_t grown_capacity(const struct mgx_array *a, int64_t need, size_t size)
{
    const int64_t first =
        size * FIRST_COUNT < FIRST_BYTES ? (int64_t)(FIRST_BYTES / size) : (int64_t)FIRST_COUNT;
    int64_t capacity = a->capacity ? a->capacity : first;
    while (capacity < need)
        if (__builtin_mul_overflow(capacity, 2, &capacity))
            return 0;
    size_t bytes;
    return __builtin_mul_overflow((size_t)capacity, size, &bytes) || bytes > PTRDIFF_MAX ? 0
                                                                                         : capacity;
}

static void *grow(const struct mgx_array *a, int64_t capacity, size_t size, struct mgx_arena *arena)
{
    if (!arena)
        return realloc(a->v, (size_t)capacity * size);
    void *grown = mgx_arena_array(arena, (size_t)capacity, size);
    if (grown && a->count)
        memcpy(grown, a->v, (size_t)a->count * size);
    return grown;
}

bool mgx_array_reserve(struct mgx_array *a, int64_t more, size_t size, struct mgx_arena *arena)
{
    assert(size > 0 && more >= 0);
    assert(0 <= a->count && a->count <= a->capacity && (a->v || !a->capacity));
    int64_t need;
    if (__builtin_add_overflow(a->count, more, &need))
        return false;
    if (need <= a->capacity)
        return true;
    const int64_t capacity = grown_capacity(a, need, size);
    void *grown = capacity ? grow(a, capacity, size, arena) : NULL;
    if (!grown)
        return false;
    a->v = grown;
    a->capacity = capacity;
    return true;
}

void *mgx_array_add(struct mgx_array *a, size_t size, struct mgx_arena *arena)
{
    if (!mgx_array_reserve(a, 1, size, arena))
        return NULL;
    return (char *)a->v + (size_t)a->count++ * size;
}
