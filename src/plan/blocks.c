// SPDX-License-Identifier: MIT
// See blocks.h.
#include "plan/blocks.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/memory.h"
#include "base/size.h"

static const size_t kept_bytes = (size_t)256 << 20;
enum { LINE = 64, BEHIND = 256 }; // kernels may read (never write) beyond the end
// A slab is mostly addresses: only what was in use at some time has memory behind it.
enum { SLAB = 240 << 20, LEAST = MGX_PLAN_BLOCK_BYTES };

struct block {
    struct mgx_storage storage; // first: a storage of ours is a block
    struct mgx_plan_blocks *home;
    struct block *before, *after; // neighbours in the slab
    struct block *next_slab;      // of a slab's first block, where the slab begins
    size_t room;                  // from here to the neighbour, this header included
    size_t capacity;
    size_t line;         // bytes from a line to the next, of a tensor that grows in lines; or 0
    _Atomic size_t used; // of all, or of every line
    _Atomic uint64_t mark;
    bool free;
};

struct mgx_plan_blocks {
    pthread_mutex_t lock;
    struct block *slabs;
    size_t idle_bytes; // of slabs that nobody uses
    int plans;         // that use them
    int users;         // plans, and blocks that are out
    bool closed;       // no plan is left
};

static const size_t header = (sizeof(struct block) + LINE - 1) / LINE * LINE;

struct mgx_plan_blocks *mgx_plan_blocks_create(void)
{
    struct mgx_plan_blocks *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    pthread_mutex_init(&b->lock, NULL);
    b->users = b->plans = 1;
    return b;
}

struct mgx_plan_blocks *mgx_plan_blocks_join(struct mgx_plan_blocks *b)
{
    pthread_mutex_lock(&b->lock);
    assert(b->plans > 0 && !b->closed);
    b->users++;
    b->plans++;
    pthread_mutex_unlock(&b->lock);
    return b;
}

// Do its neighbours in the slab know it, and lie where it ends and begins?
__attribute__((unused)) static bool is_linked(const struct block *block)
{
    const struct block *before = block->before, *after = block->after;
    const char *at = (const char *)block;
    return block->room >= header && block->room % LINE == 0 &&
           (!before || (before->after == block && (const char *)before + before->room == at)) &&
           (!after || (after->before == block && at + block->room == (const char *)after));
}

static bool is_idle(const struct block *slab)
{
    return slab->free && !slab->after;
}

// Takes idle slabs off the list until at most `keep` bytes of them are left.
static struct block *take_idle(struct mgx_plan_blocks *b, size_t keep)
{
    struct block *taken = NULL;
    for (struct block **at = &b->slabs; *at && b->idle_bytes > keep;) {
        struct block *slab = *at;
        if (!is_idle(slab)) {
            at = &slab->next_slab;
            continue;
        }
        *at = slab->next_slab;
        slab->next_slab = taken;
        taken = slab;
        assert(b->idle_bytes >= slab->room);
        b->idle_bytes -= slab->room;
    }
    return taken;
}

static void free_slabs(struct block *slab)
{
    for (struct block *next; slab; slab = next) {
        next = slab->next_slab;
        free(slab);
    }
}

// Gives up a share; frees what nobody uses when the plan is gone, all of it with the last share.
static void leave(struct mgx_plan_blocks *b, bool close)
{
    pthread_mutex_lock(&b->lock);
    b->closed |= close;
    struct block *unwanted = take_idle(b, b->closed ? 0 : kept_bytes);
    const bool last = --b->users == 0;
    assert(b->users >= 0 && (!last || (b->closed && !b->slabs && !b->idle_bytes)));
    pthread_mutex_unlock(&b->lock);
    free_slabs(unwanted);
    if (last) {
        pthread_mutex_destroy(&b->lock);
        free(b);
    }
}

// Of a free block nobody will ask for: whoever holds its neighbour holds the slab.
static void give_pages(struct block *block)
{
    const uintptr_t page = 4096, from = (uintptr_t)block;
    const uintptr_t begin = (from + header + page - 1) & ~(page - 1);
    const uintptr_t end = (from + block->room) & ~(page - 1);
    if (begin < end)
        mgx_memory_forget((void *)begin, end - begin);
}

void mgx_plan_blocks_close(struct mgx_plan_blocks *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    const bool last = --b->plans == 0;
    for (struct block *slab = last ? b->slabs : NULL; slab; slab = slab->next_slab)
        for (struct block *at = slab; at; at = at->after)
            if (at->free)
                give_pages(at);
    pthread_mutex_unlock(&b->lock);
    leave(b, last);
}

// The free block behind `block` becomes part of it.
static void absorb_after(struct block *block)
{
    struct block *next = block->after;
    assert(next->free && is_linked(block) && is_linked(next));
    block->room += next->room;
    block->after = next->after;
    if (block->after)
        block->after->before = block;
}

static void release(struct mgx_storage *storage)
{
    struct block *block = (struct block *)storage;
    struct mgx_plan_blocks *home = block->home;
    mgx_budget_give(block->capacity);
    pthread_mutex_lock(&home->lock);
    assert(!block->free && is_linked(block) && atomic_load(&block->used) <= block->capacity);
    block->free = true;
    if (block->after && block->after->free)
        absorb_after(block);
    if (block->before && block->before->free) {
        block = block->before;
        absorb_after(block);
    }
    if (!block->before && is_idle(block))
        home->idle_bytes += block->room;
    if (home->closed)
        give_pages(block);
    pthread_mutex_unlock(&home->lock);
    leave(home, false);
}

// The narrowest free block that is wide enough; NULL if there is none.
static struct block *find_free(const struct mgx_plan_blocks *b, size_t need)
{
    struct block *best = NULL;
    for (struct block *slab = b->slabs; slab; slab = slab->next_slab)
        for (struct block *at = slab; at; at = at->after)
            if (at->free && at->room >= need && (!best || at->room < best->room))
                best = at;
    return best;
}

// The front of a free block; what is left stays free, unless it is too little for anything.
static void occupy(struct mgx_plan_blocks *b, struct block *block, size_t need)
{
    assert(block->free && block->room >= need && need % LINE == 0);
    if (!block->before && is_idle(block))
        b->idle_bytes -= block->room;
    block->free = false;
    if (block->room - need < header + LEAST)
        return;
    struct block *rest = (struct block *)((char *)block + need);
    *rest = (struct block){
        .before = block, .after = block->after, .room = block->room - need, .free = true};
    if (rest->after)
        rest->after->before = rest;
    block->after = rest;
    block->room = need;
    assert(is_linked(block) && is_linked(rest));
}

static struct block *add_slab(struct mgx_plan_blocks *b, size_t need)
{
    size_t bytes = need > SLAB ? need : SLAB;
    struct block *slab = mgx_memory_aligned(LINE, bytes);
    if (!slab) // no room for more than this
        slab = mgx_memory_aligned(LINE, bytes = need);
    if (!slab)
        return NULL;
    *slab = (struct block){.room = bytes, .free = true};
    pthread_mutex_lock(&b->lock);
    slab->next_slab = b->slabs;
    b->slabs = slab;
    b->idle_bytes += slab->room;
    occupy(b, slab, need);
    b->users++;
    pthread_mutex_unlock(&b->lock);
    return slab;
}

// NULL when out of memory.
static struct block *take_block(struct mgx_plan_blocks *b, size_t capacity)
{
    size_t need;
    if (!mgx_add_size(capacity, header + BEHIND + LINE, &need) || !mgx_budget_take(capacity))
        return NULL;
    need = need / LINE * LINE;
    pthread_mutex_lock(&b->lock);
    struct block *block = find_free(b, need);
    if (block) {
        occupy(b, block, need);
        b->users++;
    }
    pthread_mutex_unlock(&b->lock);
    if (!block)
        block = add_slab(b, need);
    if (block)
        block->capacity = capacity;
    else
        mgx_budget_give(capacity);
    return block;
}

static enum mgx_status make(struct mgx_plan_blocks *b, const struct mgx_shape *shape,
                            size_t capacity, struct mgx_tensor *out, struct mgx_diag *diag)
{
    struct block *block = take_block(b, capacity);
    if (!block)
        return mgx_fail(diag, MGX_NO_MEMORY, "out of memory: a tensor of %zu bytes",
                        mgx_shape_bytes(shape));
    block->storage = (struct mgx_storage){
        .data = (char *)block + header, .bytes = block->capacity, .release = release};
    atomic_init(&block->storage.refs, 1);
    atomic_init(&block->used, mgx_shape_bytes(shape));
    atomic_init(&block->mark, 0);
    block->line = 0;
    block->home = b;
    assert(header + block->capacity + BEHIND <= block->room);
    *out = (struct mgx_tensor){
        .shape = *shape, .data = block->storage.data, .storage = &block->storage};
    return MGX_OK;
}

enum mgx_status mgx_plan_block_tensor(struct mgx_plan_blocks *b, const struct mgx_shape *shape,
                                      struct mgx_tensor *out, struct mgx_diag *diag)
{
    TRY(mgx_shape_check(shape, diag));
    return make(b, shape, mgx_shape_bytes(shape), out, diag);
}

// --- tensors that grow ---

static int64_t lines_of(const struct mgx_shape *s, int axis)
{
    int64_t lines = 1;
    for (int i = 0; i < axis; i++)
        lines *= s->lens[i];
    return lines;
}

enum mgx_status mgx_plan_block_growing(struct mgx_plan_blocks *b, const struct mgx_shape *shape,
                                       int axis, int64_t most, struct mgx_tensor *out,
                                       struct mgx_diag *diag)
{
    assert(mgx_shape_is_standard(shape) && axis >= 0 && axis < shape->rank);
    TRY(mgx_shape_check(shape, diag));
    struct mgx_shape room = *shape;
    room.lens[axis] = mgx_max_i64(most, shape->lens[axis]);
    room = mgx_shape_make(shape->type, shape->rank, room.lens);
    struct mgx_diag quiet = {.status = MGX_OK};
    if (mgx_shape_check(&room, &quiet) != MGX_OK || // as much as that nobody has
        make(b, shape, mgx_shape_bytes(&room), out, &quiet) != MGX_OK)
        return mgx_plan_block_tensor(b, shape, out, diag);
    if (lines_of(shape, axis) == 1)
        return MGX_OK;
    struct block *block = (struct block *)out->storage;
    memcpy(out->shape.strides, room.strides, sizeof room.strides);
    block->line = mgx_shape_row_bytes(shape, axis) * (size_t)room.lens[axis];
    block->storage.grows = true;
    atomic_init(&block->used, mgx_shape_row_bytes(shape, axis) * (size_t)shape->lens[axis]);
    return MGX_OK;
}

static struct block *block_of(const struct mgx_tensor *t)
{
    return t->storage && t->storage->release == release ? (struct block *)t->storage : NULL;
}

// Does the tensor lie in lines of that many bytes, row-major but for what is behind them?
static bool is_in_lines(const struct mgx_shape *s, int axis, size_t line)
{
    const int64_t size = (int64_t)mgx_type_size(s->type);
    int64_t stride = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        if (s->lens[i] != 1 && s->strides[i] != stride)
            return false;
        stride *= s->lens[i];
        if (i == axis && line)
            stride = (int64_t)line / size;
    }
    return true;
}

// Where the tensor ends in its block, or in each of its lines; NULL: it lies in none, or otherwise.
static struct block *end_of(const struct mgx_tensor *t, int axis, size_t *end)
{
    struct block *block = block_of(t);
    if (!block)
        return NULL;
    const size_t start = (size_t)((const char *)t->data - (const char *)t->storage->data);
    if ((block->line && start) || !is_in_lines(&t->shape, axis, block->line) ||
        (!block->line && lines_of(&t->shape, axis) != 1))
        return NULL;
    *end = start + mgx_shape_row_bytes(&t->shape, axis) * (size_t)t->shape.lens[axis];
    return block;
}

bool mgx_plan_block_extend(const struct mgx_tensor *t, int axis, int64_t more)
{
    size_t end;
    struct block *block = end_of(t, axis, &end);
    if (!block)
        return false;
    const size_t limit = block->line ? block->line : block->capacity;
    const size_t taken = mgx_shape_row_bytes(&t->shape, axis) * (size_t)more;
    if (taken > limit || end > limit - taken)
        return false;
    return atomic_compare_exchange_strong(&block->used, &end, end + taken);
}

bool mgx_plan_block_shorten(const struct mgx_tensor *t, int axis, int64_t fewer)
{
    size_t end;
    struct block *block = end_of(t, axis, &end);
    if (!block || atomic_load(&t->storage->refs) != 1)
        return false;
    assert(fewer >= 0 && fewer <= t->shape.lens[axis]);
    const size_t less = mgx_shape_row_bytes(&t->shape, axis) * (size_t)fewer;
    return atomic_compare_exchange_strong(&block->used, &end, end - less);
}

// --- tensors that are filled by and by ---

void mgx_plan_block_mark(const struct mgx_tensor *t, uint64_t mark)
{
    struct block *block = block_of(t);
    assert(mark);
    if (block)
        atomic_store(&block->mark, mark);
}

bool mgx_plan_block_advance(const struct mgx_tensor *t, uint64_t from, uint64_t to)
{
    struct block *block = block_of(t);
    assert(from && to);
    return block && t->data == t->storage->data &&
           atomic_compare_exchange_strong(&block->mark, &from, to);
}
