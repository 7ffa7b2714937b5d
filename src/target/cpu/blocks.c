// SPDX-License-Identifier: MIT
// See blocks.h.
#include "target/cpu/blocks.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/size.h"

static const size_t kept_bytes = (size_t)256 << 20;
enum { LINE = 64, BEHIND = 256 }; // kernels may read (never write) beyond the end

struct block {
    struct mgx_storage storage; // first: a storage of ours is a block
    struct cpu_blocks *home;
    struct block *next; // while free
    size_t capacity;
    _Atomic size_t used;
};

struct cpu_blocks {
    pthread_mutex_t lock;
    struct block *free;
    size_t free_bytes;
    int users; // the plan, and blocks that are out
    bool closed;
};

static const size_t header = (sizeof(struct block) + LINE - 1) / LINE * LINE;

struct cpu_blocks *cpu_blocks_create(void)
{
    struct cpu_blocks *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    pthread_mutex_init(&b->lock, NULL);
    b->users = 1;
    return b;
}

// Gives up a share; frees the list of blocks when the plan is gone, all of it with the last share.
static void leave(struct cpu_blocks *b, bool close)
{
    pthread_mutex_lock(&b->lock);
    b->closed |= close;
    struct block *unwanted = b->closed ? b->free : NULL;
    if (b->closed)
        b->free = NULL;
    const bool last = --b->users == 0;
    pthread_mutex_unlock(&b->lock);
    while (unwanted) {
        struct block *next = unwanted->next;
        free(unwanted);
        unwanted = next;
    }
    if (last) {
        pthread_mutex_destroy(&b->lock);
        free(b);
    }
}

void cpu_blocks_close(struct cpu_blocks *b)
{
    if (b)
        leave(b, true);
}

static void release(struct mgx_storage *storage)
{
    struct block *block = (struct block *)storage;
    struct cpu_blocks *home = block->home;
    pthread_mutex_lock(&home->lock);
    const bool keep = !home->closed && block->capacity <= kept_bytes &&
                      home->free_bytes <= kept_bytes - block->capacity;
    if (keep) {
        block->next = home->free;
        home->free = block;
        home->free_bytes += block->capacity;
    }
    pthread_mutex_unlock(&home->lock);
    if (!keep)
        free(block);
    leave(home, false);
}

// The smallest free block that fits and is not much too large; NULL if there is none.
static struct block *take_free(struct cpu_blocks *b, size_t capacity)
{
    struct block **best = NULL;
    pthread_mutex_lock(&b->lock);
    for (struct block **at = &b->free; *at; at = &(*at)->next)
        if ((*at)->capacity >= capacity && (*at)->capacity / 2 <= capacity &&
            (!best || (*at)->capacity < (*best)->capacity))
            best = at;
    struct block *block = best ? *best : NULL;
    if (block) {
        *best = block->next;
        b->free_bytes -= block->capacity;
    }
    b->users++;
    pthread_mutex_unlock(&b->lock);
    return block;
}

static struct block *make(size_t capacity)
{
    size_t bytes;
    if (!mgx_add_size(capacity, header + BEHIND + LINE, &bytes))
        return NULL;
    struct block *block = mgx_memory_aligned(LINE, bytes / LINE * LINE);
    if (block)
        block->capacity = capacity;
    return block;
}

enum mgx_status cpu_block_tensor(struct cpu_blocks *b, const struct mgx_shape *shape,
                                 size_t capacity, struct mgx_tensor *out, struct mgx_diag *diag)
{
    TRY(mgx_shape_check(shape, diag));
    const size_t bytes = mgx_shape_bytes(shape);
    capacity = capacity < bytes ? bytes : capacity;
    struct block *block = take_free(b, capacity);
    if (!block && !(block = make(capacity))) {
        leave(b, false);
        return mgx_fail(diag, MGX_NO_MEMORY, "out of memory: a tensor of %zu bytes", bytes);
    }
    block->storage = (struct mgx_storage){
        .data = (char *)block + header, .bytes = block->capacity, .release = release};
    atomic_init(&block->storage.refs, 1);
    atomic_init(&block->used, bytes);
    block->home = b;
    *out = (struct mgx_tensor){
        .shape = *shape, .data = block->storage.data, .storage = &block->storage};
    return MGX_OK;
}

bool cpu_block_extend(const struct mgx_tensor *t, size_t more)
{
    if (!t->storage || t->storage->release != release)
        return false;
    struct block *block = (struct block *)t->storage;
    const size_t start = (size_t)((const char *)t->data - (const char *)t->storage->data);
    size_t end = start + mgx_shape_bytes(&t->shape);
    if (more > block->capacity || end > block->capacity - more)
        return false;
    return atomic_compare_exchange_strong(&block->used, &end, end + more);
}
