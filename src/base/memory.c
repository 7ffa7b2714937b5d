// SPDX-License-Identifier: MIT
// Large blocks of memory; see memory.h.
//
// Available is what the kernel estimates for the machine (free, and caches it can drop), and no
// more than the limit of the control group less the anonymous memory that its processes hold. Both
// kinds of control groups are asked at the places where a container sees its own.
#include "base/memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LARGE = 256 << 20, HUGE_PAGE = 2 << 20 };

// The number behind `key` in a small file of lines "key number ..."; without key, the first number.
static bool read_number(const char *path, const char *key, uint64_t *out)
{
    char text[4096];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    text[size > 0 ? size : 0] = '\0';
    const char *at = key ? strstr(text, key) : text;
    unsigned long long value;
    if (!at || sscanf(at + (key ? strlen(key) : 0), "%llu", &value) != 1)
        return false;
    *out = value;
    return true;
}

static uint64_t left(uint64_t limit, uint64_t used)
{
    return limit > used ? limit - used : 0;
}

static uint64_t group_available(void)
{
    uint64_t limit, used;
    if (read_number("/sys/fs/cgroup/memory.max", NULL, &limit) &&
        read_number("/sys/fs/cgroup/memory.stat", "anon ", &used))
        return left(limit, used);
    if (read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", NULL, &limit) &&
        read_number("/sys/fs/cgroup/memory/memory.stat", "\ntotal_rss ", &used))
        return left(limit, used);
    return UINT64_MAX;
}

uint64_t mgx_memory_available(void)
{
    uint64_t machine, swap = 0;
    const uint64_t group = group_available();
    if (!read_number("/proc/meminfo", "MemAvailable:", &machine))
        return group;
    read_number("/proc/meminfo", "SwapFree:", &swap);
    machine = (machine + swap) * 1024;
    return machine < group ? machine : group;
}

bool mgx_memory_is_short(void)
{
    uint64_t total;
    if (!read_number("/proc/meminfo", "MemTotal:", &total))
        return false;
    const uint64_t floor = total * 1024 / 16;
    return mgx_memory_available() < (floor < LARGE ? floor : LARGE);
}

// A sixteenth stays for everyone else.
static bool has_room(size_t bytes)
{
    if (bytes < LARGE)
        return true;
    const uint64_t available = mgx_memory_available();
    return bytes <= available - available / 16;
}

void *mgx_memory_reserve(size_t bytes)
{
    if (!has_room(bytes))
        return NULL;
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
#ifdef MADV_HUGEPAGE
    (void)madvise(data, bytes, MADV_HUGEPAGE);
#endif
    return data;
}

void mgx_memory_forget(void *data, size_t bytes)
{
    (void)madvise(data, bytes, MADV_DONTNEED);
}

void mgx_memory_unreserve(void *data, size_t bytes)
{
    munmap(data, bytes);
}

void mgx_memory_trim(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

void *mgx_memory_aligned(size_t align, size_t bytes)
{
    void *block = NULL;
    if (!has_room(bytes))
        return NULL;
    const bool pages = bytes >= 2 * (size_t)HUGE_PAGE;
    if (posix_memalign(&block, pages ? HUGE_PAGE : align, bytes) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (pages) // whole ones only, so that a block's tail does not grow to one; a refusal costs
               // speed
        (void)madvise(block, bytes & ~(size_t)(HUGE_PAGE - 1), MADV_HUGEPAGE);
#endif
    return block;
}
