// SPDX-License-Identifier: MIT
// Scratch blocks that contexts of several plans take in turns: a program with free sizes needs one
// for every run at a time, as large as the largest size that came, however many sizes there are.
//
// Holds: a block belongs to one context at a time and comes back when its run ends. Cost: a lock
// per run; memory is asked for when more runs go on at once, or a size comes that needs more.
#pragma once

#include <pthread.h>
#include <stddef.h>

struct mgx_plan_scratch {
    pthread_mutex_t lock; // of the list
    struct mgx_plan_scratch_block *free;
};

void mgx_plan_scratch_init(struct mgx_plan_scratch *s);
void mgx_plan_scratch_fini(struct mgx_plan_scratch *s); // all blocks are back
// At least `bytes`, 64-byte aligned; NULL when there is no room.
void *mgx_plan_scratch_take(struct mgx_plan_scratch *s, size_t bytes);
void mgx_plan_scratch_give(struct mgx_plan_scratch *s, void *block); // NULL is allowed
