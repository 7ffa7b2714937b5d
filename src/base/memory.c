// SPDX-License-Identifier: MIT
// Large blocks of memory; see memory.h.
//
// Available is what the kernel estimates for the machine (free, and caches it can drop), and no
// more than the limit of the control group less the anonymous memory that its processes hold. Both
// kinds of control groups are asked at the places where a container sees its own.
#include "base/memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

#if defined(MADV_HUGEPAGE) && !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif
#if defined(MADV_HUGEPAGE) && !defined(MADV_COLLAPSE)
#define MADV_COLLAPSE 25
#endif

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

// --- huge pages ---

#ifdef MADV_HUGEPAGE
static _Atomic bool grows;

static bool can_collapse(void)
{
    return madvise(NULL, 0, MADV_COLLAPSE) == 0;
}

// Whether a page takes a millisecond to come, some four times what the machine itself needs. It
// comes without a write: another thread may have been there. Not known on systems before Linux
// 5.14, which could not make small pages huge either.
static bool is_slow(void *page)
{
    enum { SMALL_PAGE = 4096 };
    const double start = mgx_clock_seconds();
    if (madvise(page, SMALL_PAGE, MADV_POPULATE_WRITE) != 0)
        return false;
    return mgx_clock_seconds() - start > 0.001;
}

// Says whether pages shall be small from this one on: when two of them were slow to come. A single
// slow page may be an accident.
static bool turns_small(void *page)
{
    static _Atomic int slow;
    if (!atomic_load_explicit(&grows, memory_order_relaxed)) {
        if (!is_slow(page) || atomic_fetch_add(&slow, 1) == 0 || !can_collapse())
            return false;
        atomic_store(&grows, true);
    }
    return true;
}

// Whole ones only, so that a block's tail does not grow to one. A refusal costs speed.
static void choose_pages(char *block, size_t bytes)
{
    const size_t whole = bytes & ~(size_t)(HUGE_PAGE - 1);
    (void)madvise(block, whole, MADV_HUGEPAGE);
    if (turns_small(block))
        (void)madvise(block, whole, MADV_NOHUGEPAGE);
}

void mgx_memory_begin(void *part, size_t bytes)
{
    const uintptr_t round = ~(uintptr_t)(HUGE_PAGE - 1), end = (uintptr_t)part + bytes;
    for (uintptr_t page = ((uintptr_t)part + HUGE_PAGE - 1) & round; page < end; page += HUGE_PAGE)
        if (turns_small((void *)page)) {
            const size_t rest = ((end - page) + HUGE_PAGE - 1) & round;
            (void)madvise((void *)page, rest, MADV_NOHUGEPAGE);
            return;
        }
}

bool mgx_memory_grows(void)
{
    return atomic_load_explicit(&grows, memory_order_relaxed);
}

void mgx_memory_grows_from_now(void)
{
    atomic_store(&grows, can_collapse());
}

bool mgx_memory_grow(void *block, size_t bytes, size_t *done)
{
    const uintptr_t first = ((uintptr_t)block + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    const uintptr_t page = first + *done, end = (uintptr_t)block + bytes;
    if (page > end || end - page < HUGE_PAGE)
        return false;
    (void)madvise((void *)page, HUGE_PAGE, MADV_HUGEPAGE);
    (void)madvise((void *)page, HUGE_PAGE, MADV_COLLAPSE);
    *done += HUGE_PAGE;
    return true;
}
#else
static void choose_pages(char *block, size_t bytes)
{
    (void)block, (void)bytes;
}

bool mgx_memory_grows(void)
{
    return false;
}

void mgx_memory_begin(void *part, size_t bytes)
{
    (void)part, (void)bytes;
}

void mgx_memory_grows_from_now(void)
{
}

bool mgx_memory_grow(void *block, size_t bytes, size_t *done)
{
    (void)block, (void)bytes, (void)done;
    return false;
}
#endif

size_t mgx_memory_rounded(size_t bytes)
{
    return bytes > HUGE_PAGE / 2 && bytes < HUGE_PAGE ? HUGE_PAGE : bytes;
}

void *mgx_memory_aligned(size_t align, size_t bytes)
{
    void *block = NULL;
    if (!has_room(bytes))
        return NULL;
    const bool pages = bytes >= (size_t)HUGE_PAGE;
    if (posix_memalign(&block, pages ? HUGE_PAGE : align, bytes) != 0)
        return NULL;
    if (pages)
        choose_pages(block, bytes);
    return block;
}
