// SPDX-License-Identifier: MIT
// Allocation faults for tests: include this in one file of a test program and its malloc can be
// told to fail. Counts live blocks, so that leaks show too. Works with glibc (the program's own
// malloc wins over the library's); under a sanitizer, which has its own, nothing ever fails.
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

static _Thread_local long test_malloc_left = -1; // allocations until one fails; -1: never
static _Thread_local bool test_malloc_has_failed;
static _Thread_local long test_malloc_blocks;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_MALLOC_OFF
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define TEST_MALLOC_OFF
#endif

// The n-th allocation from now fails (once); -1 switches faults off.
static inline void test_malloc_fail_after(long n)
{
    test_malloc_left = n;
    test_malloc_has_failed = false;
}

static inline bool test_malloc_failed(void)
{
    return test_malloc_has_failed;
}

static inline long test_malloc_live(void)
{
    return test_malloc_blocks;
}

#ifndef TEST_MALLOC_OFF
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

static bool test_malloc_refuses(void)
{
    if (test_malloc_left < 0 || test_malloc_left-- > 0)
        return false;
    test_malloc_has_failed = true;
    errno = ENOMEM;
    return true;
}

static void *test_malloc_count(void *block)
{
    test_malloc_blocks += block != NULL;
    return block;
}

void *malloc(size_t size)
{
    return test_malloc_refuses() ? NULL : test_malloc_count(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return test_malloc_refuses() ? NULL : test_malloc_count(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size)
{
    if (test_malloc_refuses())
        return NULL;
    return block ? __libc_realloc(block, size) : test_malloc_count(__libc_malloc(size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return test_malloc_refuses() ? NULL : test_malloc_count(__libc_memalign(alignment, size));
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    *out = test_malloc_refuses() ? NULL : test_malloc_count(__libc_memalign(alignment, size));
    return *out ? 0 : ENOMEM;
}

void free(void *block)
{
    test_malloc_blocks -= block != NULL;
    __libc_free(block);
}
#endif
