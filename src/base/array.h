// SPDX-License-Identifier: MIT
// The growing array. A struct becomes one by naming its elements:
//
//     struct needs {
//         MGX_ARRAY(struct mgx_ins *); // v, count, capacity
//     };
//     struct needs needs = {0};
//     if (!MGX_PUSH(&needs, arena, ins))
//         return mgx_fail_memory(diag);
//
// Memory comes from an arena, or from the heap where the arena is NULL; then free(needs.v) ends it.
//
// Holds: 0 <= count <= capacity; all zero is an empty array; growing moves the elements, so
// pointers into the array last until the next push. When memory is refused the array stays as it
// was. Cost: capacities double, so a push is O(1) on average, and what an arena cannot take back of
// the smaller ones is less than the array itself.
#pragma once

#include "base/arena.h"

#include <stdint.h>

struct mgx_array { // any array, seen without the type of its elements
    void *v;
    int64_t count, capacity;
};

#define MGX_ARRAY(type)                                                                            \
    union {                                                                                        \
        struct mgx_array array;                                                                    \
        struct {                                                                                   \
            type *v;                                                                               \
            int64_t count, capacity;                                                               \
        };                                                                                         \
    }

// Makes sure of room for `more` elements of `size` bytes behind the last one. False when out of
// memory.
bool mgx_array_reserve(struct mgx_array *a, int64_t more, size_t size, struct mgx_arena *arena);
// Counts one more element and gives its place, unset; NULL when out of memory.
void *mgx_array_add(struct mgx_array *a, size_t size, struct mgx_arena *arena);

// Appends a value; false when out of memory. Looks at `a` more than once.
#define MGX_PUSH(a, arena, ...)                                                                    \
    (mgx_array_reserve(&(a)->array, 1, sizeof *(a)->v, (arena)) &&                                 \
     ((a)->v[(a)->count++] = (__VA_ARGS__), true))
// Room for one more element, as its address; NULL when out of memory.
#define MGX_ADD(a, arena) (mgx_array_add(&(a)->array, sizeof *(a)->v, (arena)))
