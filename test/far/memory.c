// SPDX-License-Identifier: MIT
// The memory that the host cannot touch; see far.h.
#include "far/far.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"

enum { PAGE = 4096, TAIL = 0xA5 };
static const size_t span = (size_t)1 << 34;

struct extent {
    size_t offset, pages, bytes; // of what is allocated, by offset
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char *given, *secret; // the two mappings
static int file = -1;
static struct {
    MGX_ARRAY(struct extent);
} extents;
static size_t live, limit = SIZE_MAX;

static void map(void)
{
    file = memfd_create("far", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)span) != 0)
        abort();
    given = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    secret = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (given == MAP_FAILED || secret == MAP_FAILED)
        abort();
}

void *far_look(const void *address)
{
    const size_t offset = (size_t)((const char *)address - given);
    if (offset >= span)
        abort(); // an address of the host was given to a kernel
    return secret + offset;
}

size_t far_memory_live(void)
{
    pthread_mutex_lock(&lock);
    const size_t bytes = live;
    pthread_mutex_unlock(&lock);
    return bytes;
}

void far_memory_limit(size_t bytes)
{
    pthread_mutex_lock(&lock);
    limit = bytes;
    pthread_mutex_unlock(&lock);
}

// The first gap that is wide enough, and its place in the list; false when there is none.
static bool find_gap(size_t pages, size_t *offset, int64_t *place)
{
    *offset = 0;
    for (*place = 0; *place < extents.count; (*place)++) {
        const struct extent *e = &extents.v[*place];
        if (e->offset - *offset >= pages * PAGE)
            break;
        *offset = e->offset + e->pages * PAGE;
    }
    return span - *offset >= pages * PAGE &&
           mgx_array_reserve(&extents.array, 1, sizeof *extents.v, NULL);
}

static void *take(size_t bytes)
{
    const size_t pages = bytes / PAGE + 1; // at least a byte behind the end
    size_t offset;
    int64_t place;
    if (bytes > limit || live > limit - bytes || !find_gap(pages, &offset, &place))
        return NULL;
    memmove(&extents.v[place + 1], &extents.v[place],
            (size_t)(extents.count++ - place) * sizeof *extents.v);
    extents.v[place] = (struct extent){offset, pages, bytes};
    live += bytes;
    memset(secret + offset, 0xff, bytes);
    memset(secret + offset + bytes, TAIL, pages * PAGE - bytes);
    return given + offset;
}

static void *allocate(const struct mgx_memory *m, size_t bytes)
{
    (void)m;
    pthread_once(&once, map);
    pthread_mutex_lock(&lock);
    void *address = take(bytes);
    pthread_mutex_unlock(&lock);
    return address;
}

static void give(size_t offset)
{
    int64_t i = 0;
    while (i < extents.count && extents.v[i].offset != offset)
        i++;
    if (i == extents.count)
        abort(); // freed twice, or never allocated
    const struct extent e = extents.v[i];
    for (size_t at = e.bytes; at < e.pages * PAGE; at++)
        if ((unsigned char)secret[offset + at] != TAIL)
            abort(); // something was written behind the end
    memset(secret + offset, 0xff, e.pages * PAGE);
    memmove(&extents.v[i], &extents.v[i + 1], (size_t)(--extents.count - i) * sizeof *extents.v);
    live -= e.bytes;
    if (!extents.count) { // so that nothing is left when a test ends
        free(extents.v);
        memset(&extents, 0, sizeof extents);
    }
}

static void release(const struct mgx_memory *m, void *address)
{
    (void)m;
    if (!address)
        return;
    pthread_mutex_lock(&lock);
    give((size_t)((char *)address - given));
    pthread_mutex_unlock(&lock);
}

// --- copies ---

struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

static enum mgx_status run_in(void *arguments, struct mgx_diag *diag)
{
    (void)diag;
    const struct copy *c = arguments;
    if (c->bytes) // nothing may come from nowhere
        memcpy(far_look(c->to), c->from, c->bytes);
    return MGX_OK;
}

static enum mgx_status run_out(void *arguments, struct mgx_diag *diag)
{
    (void)diag;
    const struct copy *c = arguments;
    if (c->bytes)
        memcpy(c->to, far_look(c->from), c->bytes);
    return MGX_OK;
}

static enum mgx_status copy_in(struct mgx_queue *queue, void *to, const void *from, size_t bytes,
                               struct mgx_diag *diag)
{
    const struct copy c = {to, from, bytes};
    return far_submit(queue, run_in, &c, sizeof c, diag);
}

static enum mgx_status copy_out(struct mgx_queue *queue, void *to, const void *from, size_t bytes,
                                struct mgx_diag *diag)
{
    const struct copy c = {to, from, bytes};
    return far_submit(queue, run_out, &c, sizeof c, diag);
}

static enum mgx_status run_copy(void *arguments, struct mgx_diag *diag)
{
    (void)diag;
    const struct copy *c = arguments;
    if (c->bytes)
        memcpy(far_look(c->to), far_look(c->from), c->bytes);
    return MGX_OK;
}

static enum mgx_status copy(struct mgx_queue *queue, void *to, const void *from, size_t bytes,
                            struct mgx_diag *diag)
{
    const struct copy c = {to, from, bytes};
    return far_submit(queue, run_copy, &c, sizeof c, diag);
}

struct fill {
    void *to;
    unsigned char byte;
    size_t bytes;
};

static enum mgx_status run_fill(void *arguments, struct mgx_diag *diag)
{
    (void)diag;
    const struct fill *f = arguments;
    if (f->bytes)
        memset(far_look(f->to), f->byte, f->bytes);
    return MGX_OK;
}

static enum mgx_status fill(struct mgx_queue *queue, void *to, unsigned char byte, size_t bytes,
                            struct mgx_diag *diag)
{
    const struct fill f = {to, byte, bytes};
    return far_submit(queue, run_fill, &f, sizeof f, diag);
}

const struct mgx_memory far_memory = {.name = "far",
                                      .allocate = allocate,
                                      .free = release,
                                      .queue_create = far_queue_create,
                                      .queue_destroy = far_queue_destroy,
                                      .copy_in = copy_in,
                                      .copy_out = copy_out,
                                      .copy = copy,
                                      .fill = fill,
                                      .wait = far_queue_wait};
