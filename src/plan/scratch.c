// SPDX-License-Identifier: MIT
// See scratch.h. A block begins with its size; contexts see the bytes behind that. A block that was
// too small is replaced by one a quarter larger than needed, so that sizes that grow step by step
// do not ask for memory at every step.
#include "plan/scratch.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/size.h"

enum { HEAD = 64 };

struct mgx_plan_scratch_block {
    struct mgx_plan_scratch_block *next;
    size_t bytes; // behind the head
};

static_assert(sizeof(struct mgx_plan_scratch_block) <= HEAD, "the head has room");

void mgx_plan_scratch_init(struct mgx_plan_scratch *s)
{
    pthread_mutex_init(&s->lock, NULL);
    s->free = NULL;
}

void mgx_plan_scratch_fini(struct mgx_plan_scratch *s)
{
    for (struct mgx_plan_scratch_block *b = s->free, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    pthread_mutex_destroy(&s->lock);
}

// The smallest free block that is large enough, or else the largest of all; unlinked.
static struct mgx_plan_scratch_block *best(struct mgx_plan_scratch *s, size_t bytes)
{
    struct mgx_plan_scratch_block **found = NULL;
    for (struct mgx_plan_scratch_block **at = &s->free; *at; at = &(*at)->next) {
        const size_t is = (*at)->bytes, was = found ? (*found)->bytes : 0;
        if (!found || (was < bytes ? is > was : is >= bytes && is < was))
            found = at;
    }
    struct mgx_plan_scratch_block *block = found ? *found : NULL;
    if (block)
        *found = block->next;
    return block;
}

void *mgx_plan_scratch_take(struct mgx_plan_scratch *s, size_t bytes)
{
    pthread_mutex_lock(&s->lock);
    struct mgx_plan_scratch_block *block = best(s, bytes);
    pthread_mutex_unlock(&s->lock);
    if (block && block->bytes < bytes) { // one that is too small makes room for its successor
        bytes = bytes > block->bytes + block->bytes / 4 ? bytes : block->bytes + block->bytes / 4;
        free(block);
        block = NULL;
    }
    if (!block && bytes <= SIZE_MAX - HEAD) {
        const size_t whole = mgx_memory_rounded(HEAD + bytes);
        if ((block = mgx_memory_aligned(64, whole)))
            block->bytes = whole - HEAD;
    }
    return block ? (char *)block + HEAD : NULL;
}

void mgx_plan_scratch_give(struct mgx_plan_scratch *s, void *data)
{
    if (!data)
        return;
    struct mgx_plan_scratch_block *block = (void *)((char *)data - HEAD);
    assert((uintptr_t)block % HEAD == 0);
    pthread_mutex_lock(&s->lock);
    assert(s->free != block); // given back once
    block->next = s->free;
    s->free = block;
    pthread_mutex_unlock(&s->lock);
}
