// SPDX-License-Identifier: MIT
// Packed constants that several plans of one model read: the plan for any size and those for sizes
// of their own (targets/sizes.h), a program and what it is reshaped to.
//
//     kernel, literals, description  ->  packed bytes, once
//
// The plans also take turns with scratch blocks (scratch.h), and cut what they make at run time
// from the same slabs (blocks.h). A literal is known by its storage, which the programs share,
// joined weights by what they are joined from. So a key means the same in every plan, whatever its
// program calls its literals.
//
// Holds: what is found here is complete: a constant is listed when it is packed. Two plans that
// pack the same at the same moment keep one each. A constant lives as long as a plan that reads it,
// and with it the chunk it lies in. One lock, held for look-ups alone.
#pragma once

#include "plan/blocks.h"
#include "plan/scratch.h"
#include "plan/store.h"

struct mgx_plan_shared;

struct mgx_plan_shared *mgx_plan_shared_create(void); // NULL when out of memory
struct mgx_plan_shared *mgx_plan_shared_retain(struct mgx_plan_shared *s); // NULL is allowed
void mgx_plan_shared_release(struct mgx_plan_shared *s);                   // in both

// The store's plan takes part from now on, until mgx_plan_shared_leave.
void mgx_plan_shared_join(struct mgx_plan_store *store, struct mgx_plan_shared *s);
void mgx_plan_shared_leave(struct mgx_plan_store *store);

// What a source's number (store.h) stands for: a storage of literals; joined weights in a physical
// shape. False when out of memory. Nothing happens where nothing is shared.
bool mgx_plan_shared_name_storage(struct mgx_plan_store *store, int64_t number,
                                  struct mgx_storage *storage);
bool mgx_plan_shared_name_join(struct mgx_plan_store *store, int64_t number,
                               const struct mgx_ins *ins, const struct mgx_shape *shape);

// Has another plan packed something under this key?
bool mgx_plan_shared_has(struct mgx_plan_store *store, const struct mgx_plan_key *key);
// What another plan has packed under this key, kept for this one; or NULL.
void *mgx_plan_shared_find(struct mgx_plan_store *store, const struct mgx_plan_key *key,
                           size_t bytes);
// Packed bytes of a chunk that become known to others at the next publishing. What cannot be noted
// is not shared.
void mgx_plan_shared_add(struct mgx_plan_store *store, const struct mgx_plan_key *key, void *data,
                         size_t bytes, struct mgx_storage *chunk);
// All that was added is complete.
void mgx_plan_shared_publish(struct mgx_plan_store *store);

// Scratch of the plans' runs; NULL where nothing is shared.
struct mgx_plan_scratch *mgx_plan_shared_scratch(const struct mgx_plan_store *store);
// Blocks for the store's plan to close: those that all share, or its own; NULL when out of memory.
struct mgx_plan_blocks *mgx_plan_shared_blocks(const struct mgx_plan_store *store);

// Bytes of all constants that the store's plan and others share, and how many these are.
size_t mgx_plan_shared_total(const struct mgx_plan_store *store, int64_t *count);
