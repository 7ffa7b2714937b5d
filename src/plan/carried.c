// SPDX-License-Identifier: MIT
// See carried.h.
//
// Of a file that fits this machine, only the bytes that runs will read are checked: packed
// constants that a kernel asked for, and literals that steps read as they are. A literal that every
// step skips, because it was packed, is not read from the disk. If a constant had to be packed here
// after all, every literal counts as read.
#include "plan/carried.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "pass/engine/constant.h"
#include "plan/kernel_set.h"

enum mgx_status mgx_plan_carried_begin(struct mgx_build *b, struct mgx_diag *diag)
{
    struct mgx_carry *carry = b->plan->program->carry;
    if (!carry)
        return MGX_OK;
    if (!carry->fits)
        return MGX_OK;
    b->plan->store.carry = carry;
    if (!carry->tuning_size)
        return MGX_OK;
    return mgx_tuning_read(&b->tuner.carried, carry->tuning, carry->tuning_size, diag);
}

// --- what is read ---

struct reads {
    struct mgx_map read, skipped; // addresses of constant roots
};

static bool note_reads(struct reads *r, const struct mgx_plan *plan)
{
    bool good = true;
    for (int s = 0; s < plan->step_count && good; s++) {
        const struct mgx_plan_step *step = &plan->steps[s];
        for (int i = 0; i < step->in_count && good; i++) {
            const struct mgx_plan_value *root = mgx_plan_root(step->in_value[i], NULL);
            if (root->place == MGX_PLAN_CONST && root->data)
                good = mgx_map_put_pointer(step->skip[i] ? &r->skipped : &r->read, root->data,
                                           (void *)root->data);
        }
    }
    return good;
}

static bool is_skipped(const struct reads *r, const void *data)
{
    return mgx_map_find_pointer(&r->skipped, data) && !mgx_map_find_pointer(&r->read, data);
}

// Packed in pieces only: every user is a joined constant that all steps skip.
static bool is_joined_away(const struct mgx_plan *plan, const struct reads *r,
                           const struct mgx_ins *literal)
{
    for (const struct mgx_use *use = literal->uses; use; use = use->next) {
        const struct mgx_plan_value *v = mgx_plan_value_of(plan, use->user);
        if (!v || !mgx_is_joined_weights(use->user) || !v->data || !is_skipped(r, v->data))
            return false;
    }
    return literal->uses != NULL;
}

static void mark_literals(const struct mgx_plan *plan, const struct reads *r)
{
    const struct mgx_program *p = plan->program;
    for (int m = 0; m < p->module_count; m++)
        for (const struct mgx_ins *ins = p->modules[m]->first; ins; ins = ins->next) {
            const struct mgx_tensor *t = ins->literal;
            if (!t || !t->data || !mgx_type_is_number(t->shape.type))
                continue;
            if (m > 0 || !(is_skipped(r, t->data) || is_joined_away(plan, r, ins)))
                mgx_carry_mark(p->carry, t->data,
                               (size_t)mgx_shape_space(&t->shape) * mgx_type_size(t->shape.type));
        }
}

// --- checking ---

struct check {
    struct mgx_carry *carry;
    int parts;
    atomic_bool bad;
};

static void check_part(void *user, int task, int thread)
{
    struct check *c = user;
    (void)thread;
    if (!mgx_carry_check_part(c->carry, task, c->parts))
        atomic_store(&c->bad, true);
}

static enum mgx_status check(const struct mgx_plan_machine *machine, struct mgx_carry *carry,
                             struct mgx_diag *diag)
{
    enum { PARTS = 64 };
    struct check c = {.carry = carry, .parts = PARTS};
    mgx_plan_spread(machine, PARTS, check_part, &c);
    return atomic_load(&c.bad) ? mgx_carry_damaged(diag) : MGX_OK;
}

enum mgx_status mgx_plan_carried_check(struct mgx_build *b, struct mgx_diag *diag)
{
    struct mgx_plan *plan = b->plan;
    struct mgx_carry *carry = plan->program->carry;
    struct reads r = {0};
    if (!carry || !carry->file)
        return MGX_OK;
    mgx_carry_end_ahead(carry); // all threads do the rest
    bool good = true;
    if (!plan->store.carry || plan->store.first_fill || plan->machine->memory)
        mgx_carry_mark_literals(carry);
    else if ((good = note_reads(&r, plan)))
        mark_literals(plan, &r);
    mgx_map_fini(&r.read);
    mgx_map_fini(&r.skipped);
    return good ? check(plan->machine, carry, diag) : mgx_fail_memory(diag);
}

// --- saving ---

static bool take_pack(const struct mgx_plan *plan, const struct mgx_map_entry *entry,
                      struct mgx_carry *out)
{
    const struct mgx_plan_packed *packed = entry->value;
    struct mgx_carry_pack pack = {.key = entry->key,
                                  .key_size = entry->key_size,
                                  .data = packed->data,
                                  .bytes = packed->bytes};
    struct mgx_carry_source source[MGX_CARRY_SOURCES];
    memcpy(source, entry->key + strlen(entry->key) + 1, sizeof source);
    for (int i = 0; i < MGX_CARRY_SOURCES; i++)
        pack.source[i] = mgx_plan_source_at(plan->program, &source[i]);
    return MGX_PUSH(&out->packs, &out->arena, pack);
}

enum mgx_status mgx_plan_carry(const struct mgx_program *p, struct mgx_carry *out,
                               struct mgx_diag *diag)
{
    struct mgx_plan *plan = (struct mgx_plan *)p->executable;
    bool good = true;
    out->kernels = mgx_kernel_set();
    pthread_mutex_lock(&plan->late.lock);
    for (uint32_t i = 0; i < plan->store.packs.count && good; i++)
        good = take_pack(plan, &plan->store.packs.entries[i], out);
    pthread_mutex_unlock(&plan->late.lock);
    out->tuning = plan->tuning;
    out->tuning_size = plan->tuning ? strlen(plan->tuning) : 0;
    return good ? MGX_OK : mgx_fail_memory(diag);
}
