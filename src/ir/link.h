// SPDX-License-Identifier: MIT
// Private to src/ir: the two linked structures of a module, edges (uses) and the instruction list.
//
//   producer.uses -> [use] <-> [use] <-> ...      one use per input slot that reads the producer;
//   user.in_uses[slot] is that use                the array lies in the user, the list in the
//                                                 producer
//
// So adding, replacing and removing an edge is O(1), whatever the number of other users.
//
// Holds: an edge that is in no list has no `user`.
#pragma once

#include <assert.h>

#include "ir/module.h"

static inline void mgx_link_use(struct mgx_ins *user, int slot)
{
    struct mgx_use *use = &user->in_uses[slot];
    struct mgx_ins *producer = user->in[slot];
    assert(slot >= 0 && slot < user->in_count && !use->user);
    assert(!producer->uses || !producer->uses->prev);
    *use = (struct mgx_use){.user = user, .slot = slot, .next = producer->uses};
    if (use->next)
        use->next->prev = use;
    producer->uses = use;
}

static inline void mgx_unlink_use(struct mgx_ins *user, int slot)
{
    struct mgx_use *use = &user->in_uses[slot];
    assert(use->user == user && use->slot == slot);
    assert((use->prev ? use->prev->next : user->in[slot]->uses) == use);
    *(use->prev ? &use->prev->next : &user->in[slot]->uses) = use->next;
    if (use->next)
        use->next->prev = use->prev;
    use->user = NULL;
}

// `before` NULL appends.
static inline void mgx_link_ins(struct mgx_module *m, struct mgx_ins *ins, struct mgx_ins *before)
{
    assert(!before || before->owner == m);
    assert(!m->first == !m->count && !m->last == !m->count);
    ins->owner = m;
    ins->next = before;
    ins->prev = before ? before->prev : m->last;
    *(ins->prev ? &ins->prev->next : &m->first) = ins;
    *(ins->next ? &ins->next->prev : &m->last) = ins;
    m->count++;
}

static inline void mgx_unlink_ins(struct mgx_ins *ins)
{
    struct mgx_module *m = ins->owner;
    assert(m->count > 0 && (ins->prev ? ins->prev->next : m->first) == ins);
    assert((ins->next ? ins->next->prev : m->last) == ins);
    *(ins->prev ? &ins->prev->next : &m->first) = ins->next;
    *(ins->next ? &ins->next->prev : &m->last) = ins->prev;
    ins->prev = ins->next = NULL;
    m->count--;
    assert(!m->first == !m->count);
}

static inline bool mgx_is_linked(const struct mgx_ins *ins)
{
    return (ins->prev ? ins->prev->next : ins->owner->first) == ins;
}

// Fresh input and use arrays in the program's arena, all edges linked. False when out of memory.
bool mgx_link_inputs(struct mgx_ins *ins, struct mgx_ins *const *in, int count);

// Takes a share, unless it is the one taken last. False when out of memory.
bool mgx_keep(struct mgx_kept *kept, struct mgx_storage *retain);

// What the shape rule says of these inputs; literals among them are known values. The result's
// ranges lie in `arena`.
enum mgx_status mgx_infer(struct mgx_arena *arena, const struct mgx_op *op, const void *attr,
                          struct mgx_ins *const *in, int in_count, struct mgx_module *const *mod,
                          int mod_count, struct mgx_shape *out,
                          struct mgx_diag *diag) MGX_NODISCARD;

// May an instruction be declared with this shape when its rule finds that one? Equal, but for
// strides along axes of length 1, or ranges that contain what the rule, knowing more, finds.
bool mgx_shape_admits(const struct mgx_shape *declared, const struct mgx_shape *found);
