// SPDX-License-Identifier: MIT
// A preloaded shim that lets the N-th allocation fail: LD_PRELOAD=libfail_alloc.so MGX_FAIL_ALLOC=N
// program.
//
// N counts calls of malloc, calloc, realloc and posix_memalign from 1; MGX_FAIL_ALLOC_ALWAYS=1 lets
// all later ones fail too. On exit it writes "fail_alloc: <allocations> allocations" to the file
// named by MGX_FAIL_ALLOC_LOG, so that a driver knows when N has passed the end.
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_long count;
static long fail_at = -1;
static bool always;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);

__attribute__((constructor)) static void start(void)
{
    const char *at = getenv("MGX_FAIL_ALLOC");
    fail_at = at ? atol(at) : 0;
    always = getenv("MGX_FAIL_ALLOC_ALWAYS") != NULL;
    atomic_store(&count, 0);
}

__attribute__((destructor)) static void finish(void)
{
    const char *log = getenv("MGX_FAIL_ALLOC_LOG");
    const long n = atomic_load(&count);
    fail_at = 0;
    FILE *f = log ? fopen(log, "w") : NULL;
    if (f) {
        fprintf(f, "%ld\n", n);
        fclose(f);
    }
}

static bool fails(void)
{
    if (fail_at <= 0)
        return false;
    const long n = atomic_fetch_add(&count, 1) + 1;
    return n == fail_at || (always && n > fail_at);
}

void *malloc(size_t size)
{
    return fails() ? (errno = ENOMEM, NULL) : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? (errno = ENOMEM, NULL) : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return fails() ? (errno = ENOMEM, NULL) : __libc_realloc(p, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
    if (fails())
        return ENOMEM;
    *out = __libc_memalign(align, size);
    return *out ? 0 : ENOMEM;
}

void *aligned_alloc(size_t align, size_t size)
{
    return fails() ? (errno = ENOMEM, NULL) : __libc_memalign(align, size);
}
