// SPDX-License-Identifier: MIT
// Files; see file.h.
//
//   open -> fstat (regular? links?) -> mmap -> slot in the table -> ... -> slot freed -> munmap
//
// The table is the only thing the signal handler reads. A slot is filled back to front (end, then
// begin) and emptied front to back, so a handler on another thread sees a whole range or none; that
// a thread faults in a range while it is being unmapped is a use after release.
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"

// --- mappings and the bus error ---

enum { SLOTS = 1024 }; // files beyond that are read into memory instead

struct slot {
    atomic_uintptr_t begin, end; // begin 0: free; 1: being filled
    atomic_bool lost;
};

static struct slot table[SLOTS];
static atomic_int ever_taken; // slots from here on were never used
static atomic_int lost_count;
static struct sigaction previous;
static long page_size;

static struct slot *slot_at(uintptr_t at)
{
    const int count = atomic_load(&ever_taken);
    for (int i = 0; i < count; i++) {
        const uintptr_t begin = atomic_load(&table[i].begin);
        if (begin > 1 && at >= begin && at < atomic_load(&table[i].end))
            return &table[i];
    }
    return NULL;
}

static void pass_on(int signal, siginfo_t *info, void *context)
{
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(signal, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(signal);
    } else { // nobody wants it: the instruction faults again and the process ends as it would have
        struct sigaction usual = {.sa_handler = SIG_DFL};
        sigaction(SIGBUS, &usual, NULL);
    }
}

// Only mmap, sigaction and atomics: all of them may be used in a handler.
static void on_bus_error(int signal, siginfo_t *info, void *context)
{
    const int saved = errno;
    const uintptr_t at = (uintptr_t)info->si_addr;
    struct slot *slot = info->si_code > 0 ? slot_at(at) : NULL;
    const uintptr_t page = at & ~(uintptr_t)(page_size - 1);
    // Everything from here on is gone as well: one mapping instead of one fault per page.
    if (slot && mmap((void *)page, atomic_load(&slot->end) - page, PROT_READ,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
        if (!atomic_exchange(&slot->lost, true))
            atomic_fetch_add(&lost_count, 1);
    } else {
        pass_on(signal, info, context);
    }
    errno = saved;
}

static void install(void)
{
    page_size = sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous);
}

static int take_slot(const void *data, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    for (int i = 0; i < SLOTS; i++) {
        uintptr_t expected = 0;
        if (!atomic_compare_exchange_strong(&table[i].begin, &expected, 1))
            continue;
        for (int last = atomic_load(&ever_taken);
             last <= i && !atomic_compare_exchange_weak(&ever_taken, &last, i + 1);)
            continue;
        const uintptr_t begin = (uintptr_t)data, mask = (uintptr_t)(page_size - 1);
        atomic_store(&table[i].lost, false);
        atomic_store(&table[i].end, (begin + size + mask) & ~mask);
        atomic_store(&table[i].begin, begin);
        return i;
    }
    return -1;
}

static void free_slot(int slot)
{
    if (slot >= 0)
        atomic_store(&table[slot].begin, 0);
}

bool mgx_file_any_lost(void)
{
    return atomic_load_explicit(&lost_count, memory_order_relaxed) != 0;
}

bool mgx_file_lost_at(const void *data)
{
    const struct slot *slot = mgx_file_any_lost() ? slot_at((uintptr_t)data) : NULL;
    return slot && atomic_load(&slot->lost);
}

// --- reading a descriptor ---

static enum mgx_status read_all(int fd, struct mgx_file *file, struct mgx_diag *diag)
{
    uint8_t *bytes = malloc(file->size);
    if (!bytes)
        return mgx_fail_memory(diag);
    file->data = bytes;
    for (size_t done = 0; done < file->size;) {
        const ssize_t got = read(fd, bytes + done, file->size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return mgx_fail(diag, MGX_IO, "%s: read %zu of %zu bytes", file->path, done,
                            file->size);
        done += (size_t)got;
    }
    return MGX_OK;
}

enum { HUGE_PAGE = 2 << 20 };

static enum mgx_status map_or_read(int fd, struct mgx_file *file, struct mgx_diag *diag)
{
    if (!file->size)
        return MGX_OK;
    void *data = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return read_all(fd, file, diag); // file systems without mmap; also no address space left
    // What is not in memory yet is read in huge pages, which take one fault each.
    if (file->size >= HUGE_PAGE)
        madvise(data, file->size, MADV_HUGEPAGE);
    file->slot = take_slot(data, file->size);
    if (file->slot >= 0) {
        file->data = data;
        return MGX_OK;
    }
    munmap(data, file->size);
    return read_all(fd, file, diag);
}

static enum mgx_status check_kind(int fd, const char *path, size_t *size, struct mgx_diag *diag)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return mgx_fail_os(diag, errno, path);
    if (!S_ISREG(st.st_mode))
        return mgx_fail(diag, MGX_IO, "%s: is %s, not a regular file", path,
                        S_ISDIR(st.st_mode)    ? "a directory"
                        : S_ISFIFO(st.st_mode) ? "a pipe"
                                               : "a device or socket");
    *size = (size_t)st.st_size;
    return MGX_OK;
}

enum mgx_status mgx_file_adopt(struct mgx_file **out, int fd, const char *path,
                               struct mgx_diag *diag)
{
    *out = NULL;
    struct mgx_file *file = calloc(1, sizeof *file);
    enum mgx_status status = MGX_NO_MEMORY;
    if (file) {
        atomic_init(&file->refs, 1);
        file->slot = -1;
        file->path = strdup(path);
    }
    if (!file || !file->path)
        status = mgx_fail_memory(diag);
    else
        status = check_kind(fd, path, &file->size, diag);
    if (status == MGX_OK)
        status = map_or_read(fd, file, diag);
    close(fd);
    if (status == MGX_OK)
        *out = file;
    else
        mgx_file_release(file);
    return status;
}

enum mgx_status mgx_file_open(struct mgx_file **out, const char *path, struct mgx_diag *diag)
{
    *out = NULL;
    const int fd = open(path, MGX_FILE_FLAGS);
    if (fd < 0)
        return mgx_fail_os(diag, errno, path);
    return mgx_file_adopt(out, fd, path, diag);
}

// --- sharing ---

struct mgx_file *mgx_file_retain(struct mgx_file *file)
{
    if (file)
        atomic_fetch_add_explicit(&file->refs, 1, memory_order_relaxed);
    return file;
}

void mgx_file_release(struct mgx_file *file)
{
    if (!file || atomic_fetch_sub_explicit(&file->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (file->slot >= 0) {
        free_slot(file->slot);
        munmap((void *)file->data, file->size);
    } else {
        free((void *)file->data);
    }
    free(file->path);
    free(file);
}

enum mgx_status mgx_file_check(const struct mgx_file *file, struct mgx_diag *diag)
{
    if (file->slot >= 0 && atomic_load(&table[file->slot].lost))
        return mgx_fail(diag, MGX_IO, "%s: became shorter than its %zu bytes while in use",
                        file->path, file->size);
    return MGX_OK;
}

void mgx_file_forget_at(const void *data, size_t size)
{
    const struct slot *slot = slot_at((uintptr_t)data);
    if (!slot || size > atomic_load(&slot->end) - (uintptr_t)data)
        return;
    const uintptr_t mask = (uintptr_t)(page_size - 1);
    const uintptr_t begin = ((uintptr_t)data + mask) & ~mask;
    const uintptr_t end = ((uintptr_t)data + size) & ~mask;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void mgx_file_forget(const struct mgx_file *file, const void *data, size_t size)
{
    if (file->slot >= 0)
        mgx_file_forget_at(data, size);
}
