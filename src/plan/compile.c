// SPDX-License-Identifier: MIT
// From a program that a target's passes have rewritten to a plan: docs/plan.md goes through it.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "op/op.h"
#include "pass/engine/constant.h"
#include "plan/blocks.h"
#include "plan/body.h"
#include "plan/build.h"
#include "plan/carried.h"
#include "plan/certify.h"
#include "plan/choice.h"
#include "plan/context.h"
#include "plan/join.h"
#include "plan/layout.h"
#include "plan/record.h"
#include "plan/reference.h"
#include "plan/shared.h"

// --- the program's last changes ---

bool mgx_is_row_major(const struct mgx_shape *s)
{
    return s->type == MGX_TUPLE || s->type == MGX_SEQUENCE || mgx_shape_is_standard(s);
}

enum mgx_status mgx_program_pack_results(struct mgx_program *p, struct mgx_diag *diag)
{
    struct mgx_ins *ret = mgx_module_return(mgx_program_main(p));
    if (!ret && mgx_program_main(p)->last && !mgx_is_row_major(&mgx_program_main(p)->last->shape))
        ret = mgx_add_return(mgx_program_main(p), &mgx_program_main(p)->last, 1);
    for (int i = 0; ret && i < ret->in_count; i++) {
        struct mgx_ins *ins = ret->in[i];
        if (mgx_shape_is_static(&ins->shape) && !mgx_is_row_major(&ins->shape))
            mgx_set_input(ret, i, mgx_emit_before(ret, &mgx_op_contiguous, NULL, MGX_IN(ins)));
    }
    return mgx_program_status(p, diag);
}

// Weights of the main module are read where they lie in the model's file; what steps with sizes
// known only at run time read, and what bodies hold, is not.
static bool is_planned(const struct mgx_program *p, const struct mgx_ins *ins)
{
    bool planned = ins->owner == mgx_program_main(p) && mgx_shape_is_static(&ins->shape);
    for (int i = 0; i < ins->in_count; i++)
        planned = planned && mgx_shape_is_static(&ins->in[i]->shape);
    return planned;
}

static enum mgx_status align_literals(struct mgx_program *p, struct mgx_diag *diag)
{
    enum { LARGE = 1 << 20 }; // from there on whoever takes it packs or aligns it (choice.c)
    for (int m = 0; m < p->module_count; m++)
        for (struct mgx_ins *ins = p->modules[m]->first; ins; ins = ins->next)
            for (int i = 0; !is_planned(p, ins) && i < ins->in_count; i++) {
                const struct mgx_ins *from = mgx_strip_views(ins->in[i]);
                if (from->literal && mgx_shape_bytes(&from->shape) < LARGE)
                    TRY(mgx_literal_align((struct mgx_ins *)from, diag));
            }
    return MGX_OK;
}

// What the passes looked at of the model's file: packing reads it once more, piece by piece. Of a
// small one it may stay until then: packing gives its pages back as it goes.
static void forget_files(const struct mgx_program *p)
{
    enum { LARGE = 16 << 20 };
    const struct mgx_storage *last = NULL; // literals of a file follow each other, or nearly so
    for (int64_t i = 0; i < p->literals.count; i++) {
        const struct mgx_storage *s = p->literals.v[i];
        if (s->bytes < LARGE || (last && s->data == last->data))
            continue;
        mgx_file_forget_at(s->data, s->bytes);
        last = s;
    }
}

// One parameter more for every result whose size is known.
static enum mgx_status add_outputs(struct mgx_program *p, struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(p);
    for (int k = 0; k < mgx_module_result_count(m); k++) {
        const struct mgx_shape s = mgx_module_result(m, k)->shape;
        char name[32];
        snprintf(name, sizeof name, "main:#output_%d", k);
        if (!mgx_shape_is_static(&s) || !mgx_type_is_number(s.type) || mgx_find_parameter(m, name))
            continue;
        const struct mgx_shape packed = mgx_shape_make(s.type, s.rank, s.lens);
        mgx_add_parameter(m, name, &packed);
    }
    return mgx_program_status(p, diag);
}

// Have the passes left more in the program's memory than it needs, or does a caller hold
// instructions, which must not outlive compiling? Copying what is alive takes as long as a pass or
// two, a fifth of a plan for one more size: as much again and some hundred kilobytes are not worth
// it.
static bool is_worn(const struct mgx_program *p)
{
    enum { EACH = 640, LITTLE = 512 << 10 }; // bytes of an instruction and what belongs to it
    int64_t count = 0;
    for (int i = 0; i < p->module_count; i++)
        count += p->modules[i]->count;
    return p->handed_out || p->by_hand || p->arena.bytes > 2 * (size_t)count * EACH + LITTLE;
}

static enum mgx_status settle(struct mgx_program *p, const struct mgx_plan_settings *settings,
                              bool late, struct mgx_diag *diag)
{
    TRY(mgx_program_pack_results(p, diag));
    if (settings->output_params)
        TRY(add_outputs(p, diag));
    TRY(mgx_plan_settle_joins(p, late, diag));
    if (!mgx_program_is_settled(p) && is_worn(p))
        TRY(mgx_program_compact(p, diag));
    TRY(align_literals(p, diag));
    if (!mgx_program_is_settled(p))
        forget_files(p);
    for (int i = 0; i < p->module_count; i++)
        mgx_module_number(p->modules[i]);
    return MGX_OK;
}

// --- the plan ---

// Literals of all modules by address: at run time a tensor that lies there is a constant.
static bool note_literals(struct mgx_plan *plan)
{
    const struct mgx_program *p = plan->program;
    for (int i = 0; i < p->module_count; i++)
        for (const struct mgx_ins *ins = p->modules[i]->first; ins; ins = ins->next)
            if (ins->literal && mgx_shape_elements(&ins->shape) > 0 &&
                !mgx_map_put_pointer(&plan->late.literals, ins->literal->data, ins->literal->data))
                return false;
    return true;
}

// Where literals lie, so that what is packed of them has a name (store.h).
static bool note_source(struct mgx_plan *plan, int64_t number, struct mgx_storage *s)
{
    const struct mgx_carry_source source = {number, 0};
    return mgx_plan_note_source(&plan->store, s->data, s->bytes, source) &&
           mgx_plan_shared_name_storage(&plan->store, number, s) &&
           (plan->late.store == &plan->store ||
            mgx_plan_note_source(plan->late.store, s->data, s->bytes, source));
}

static bool note_sources(struct mgx_plan *plan)
{
    const struct mgx_kept *literals = &plan->program->literals;
    const struct mgx_carry *carry = plan->program->carry;
    for (int64_t i = 0; i < literals->count; i++) {
        struct mgx_storage *s = literals->v[i];
        const int64_t number = carry && carry->file == s ? MGX_CARRY_FILE : 1 + i;
        if (s->data && !note_source(plan, number, s))
            return false;
    }
    return true;
}

// Does the name of every literal of main lead back to its bytes?
__attribute__((unused)) static bool names_lead_back(const struct mgx_plan *plan)
{
    const struct mgx_program *p = plan->program;
    for (const struct mgx_ins *ins = mgx_program_main(p)->first; ins; ins = ins->next) {
        if (!ins->literal || !ins->literal->storage || !mgx_shape_elements(&ins->shape))
            continue;
        const struct mgx_carry_source source = mgx_plan_source_of(&plan->store, ins->literal->data);
        if (mgx_plan_source_at(p, &source) != ins->literal->data)
            return false;
    }
    return true;
}

// Where the planned values are, as the steps need it.
static void resolve(struct mgx_plan *plan)
{
    for (int s = 0; s < plan->step_count; s++) {
        struct mgx_plan_step *step = &plan->steps[s];
        for (int i = 0; i <= step->in_count; i++) {
            struct mgx_plan_value *v = i < step->in_count ? step->in_value[i] : step->out_value;
            struct mgx_plan_ref *ref = i < step->in_count ? &step->in[i] : &step->out;
            int64_t offset;
            const struct mgx_plan_value *root = mgx_plan_root(v, &offset);
            *ref = (struct mgx_plan_ref){root->place, root->side, root->index, offset, root->data};
            assert(root->place != MGX_PLAN_CONST || root->dynamic || mgx_plan_is_there(root));
            if (root->place == MGX_PLAN_SCRATCH)
                ref->offset += (int64_t)root->scratch;
        }
    }
}

static bool is_device_step(const struct mgx_plan_step *step)
{
    bool device = step->side == MGX_PLAN_DEVICE && step->out.side == MGX_PLAN_DEVICE;
    for (int i = 0; i < step->in_count && device; i++)
        device = step->skip[i] || step->in[i].side == MGX_PLAN_DEVICE;
    return device;
}

// May a run end before its work does?
static bool is_device_only(const struct mgx_plan *plan)
{
    bool device = plan->machine->memory != NULL;
    for (int s = 0; s < plan->step_count && device; s++)
        device = is_device_step(&plan->steps[s]);
    for (int k = 0; k < plan->result_count && device; k++)
        device =
            !plan->results[k].value->dynamic && plan->results[k].value->side == MGX_PLAN_DEVICE;
    return device;
}

static bool has_reference(const struct mgx_plan *plan)
{
    for (int s = 0; s < plan->step_count; s++)
        if (plan->steps[s].kernel == &mgx_plan_reference)
            return true;
    return false;
}

static enum mgx_status begin(struct mgx_plan *plan, struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(plan->program);
    plan->value_count = m->count;
    plan->values = MGX_NEW_ARRAY(&plan->store.arena, struct mgx_plan_value, m->count);
    plan->late.blocks = mgx_plan_shared_blocks(&plan->store);
    if (!plan->values || !plan->late.blocks || !note_literals(plan) || !note_sources(plan))
        return mgx_fail_memory(diag);
    for (struct mgx_ins *ins = m->first; ins; ins = ins->next)
        plan->values[ins->index].ins = ins;
    assert(names_lead_back(plan));
    assert(m->count == 0 || m->last->index == m->count - 1); // numbered
    return MGX_OK;
}

static enum mgx_status build(struct mgx_build *b, struct mgx_diag *diag)
{
    struct mgx_plan *plan = b->plan;
    TRY(begin(plan, diag));
    TRY(mgx_plan_choose_layouts(plan, diag));
    plan->store.fill_later = true;
    TRY(mgx_plan_carried_begin(b, diag));
    TRY(mgx_plan_build_steps(b, diag));
    mgx_plan_build_unread(b);
    if (b->only_steps)
        return MGX_OK;
    TRY(mgx_plan_build_schedule(b, diag));
    TRY(mgx_plan_build_live(b, diag));
    TRY(mgx_plan_build_constants(b, diag));
    TRY(mgx_plan_carried_check(b, diag));
    TRY(mgx_plan_fill_all(&plan->store, diag));
    plan->store.fill_later = false;
    TRY(mgx_plan_build_memory(b, diag));
    resolve(plan);
    if (plan->machine->target->finish)
        TRY(plan->machine->target->finish(plan, diag));
    plan->device_only = is_device_only(plan);
    plan->on_host = plan->machine->host && has_reference(plan);
#ifndef NDEBUG
    TRY(mgx_plan_certify(b, diag));
#endif
    return mgx_plan_build_stretches(plan, diag);
}

static enum mgx_status keep_tuning(struct mgx_build *b, struct mgx_diag *diag)
{
    struct mgx_str text = {0};
    mgx_tuning_print(&b->tuner.used, &text);
    b->plan->tuning =
        text.failed ? NULL : mgx_arena_strdup(&b->plan->store.arena, mgx_str_text(&text));
    mgx_str_fini(&text);
    return b->plan->tuning ? MGX_OK : mgx_fail_memory(diag);
}

// A cache that cannot be written is no reason to fail: explain says so.
static enum mgx_status build_tuned(struct mgx_build *b, const char *cache, struct mgx_diag *diag)
{
    if (cache)
        TRY(mgx_tuning_load(&b->tuner.tuning, cache, diag));
    const enum mgx_status status = build(b, diag);
    if (status != MGX_OK &&
        status != MGX_CANCELLED) // whoever loses patience keeps what he waited for
        return status;
    if (status == MGX_OK && b->tuner.used.map.count)
        TRY(keep_tuning(b, diag));
    struct mgx_diag quiet = {.status = MGX_OK};
    b->plan->tuned_count = b->tuner.tuned_count;
    b->plan->measured_count = b->tuner.measured_count;
    b->plan->skipped_count = b->tuner.skipped_count;
    if (cache && mgx_tuning_save(&b->tuner.tuning, cache, &quiet) != MGX_OK)
        b->plan->tuning_lost = mgx_arena_strdup(&b->plan->store.arena, quiet.text);
    return quiet.status == MGX_NO_MEMORY ? mgx_fail_memory(diag) : status;
}

void mgx_plan_destroy(struct mgx_executable *executable)
{
    struct mgx_plan *plan = (struct mgx_plan *)executable;
    if (!plan)
        return;
    struct mgx_plan_machine *machine = plan->machine;
    const bool whole = !plan->around;
    if (whole && machine->target->stop)
        machine->target->stop(machine);
    for (struct mgx_context *x = plan->contexts, *next; x; x = next) {
        next = x->next;
        mgx_context_destroy(x);
    }
    mgx_plan_drop_bodies(plan);
    mgx_plan_late_fini(&plan->late);
    if (machine->host)
        mgx_plan_store_fini(&plan->host_store);
    mgx_plan_store_fini(&plan->store);
    pthread_mutex_destroy(&plan->lock);
    free(plan);
    if (whole)
        machine->target->release(machine);
}

static struct mgx_plan *create(const struct mgx_program *p, struct mgx_plan_machine *machine)
{
    struct mgx_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return NULL;
    plan->base.target = machine->target->target;
    plan->machine = machine;
    plan->program = p;
    mgx_plan_store_init(&plan->store, machine, NULL);
    if (machine->host)
        mgx_plan_store_init(&plan->host_store, machine->host, NULL);
    mgx_plan_late_init(&plan->late, p, machine->host ? &plan->host_store : &plan->store);
    pthread_mutex_init(&plan->lock, NULL);
    return plan;
}

static enum mgx_status plan_program(struct mgx_program *p, struct mgx_plan *plan,
                                    const struct mgx_plan_settings *settings, struct mgx_diag *diag)
{
    struct mgx_build b = {.plan = plan,
                          .only_steps = settings->only_steps,
                          .host_ends = settings->offload_copy || !plan->machine->memory};
    plan->base.memory = b.host_ends ? NULL : plan->machine->memory;
    b.tuner.machine = plan->machine;
    b.tuner.exhaustive = settings->exhaustive_tune;
    b.tuner.strict = settings->tune.strict;
    b.tuner.budget = settings->tune.seconds;
    b.tuner.progress = settings->tune.progress;
    mgx_tuning_init(&b.tuner.tuning);
    mgx_tuning_init(&b.tuner.carried);
    mgx_tuning_init(&b.tuner.used);
    // Only such a machine's late kernels read constants of the plan's own store.
    const bool late = plan->late.store == &plan->store && plan->machine->target->late_kernels;
    enum mgx_status status = settle(p, settings, late, diag);
    if (status == MGX_OK)
        status = build_tuned(&b, settings->tune.cache, diag);
    if (status == MGX_OK && !settings->only_steps)
        status = mgx_plan_build_bodies(plan, settings, mgx_plan_compile, diag);
    mgx_tuning_fini(&b.tuner.used);
    mgx_tuning_fini(&b.tuner.carried);
    mgx_tuning_fini(&b.tuner.tuning);
    return status;
}

static enum mgx_status compile(struct mgx_program *p, struct mgx_plan_machine *machine,
                               const struct mgx_plan_settings *settings, struct mgx_diag *diag)
{
    struct mgx_plan *plan = create(p, machine);
    if (!plan) {
        if (!settings->around)
            machine->target->release(machine);
        return mgx_fail_memory(diag);
    }
    plan->around = settings->around;
    mgx_plan_shared_join(&plan->store, settings->shared);
    plan->store.makeshift = settings->makeshift;
    const enum mgx_status status = plan_program(p, plan, settings, diag);
    plan->store.makeshift = NULL; // its caller's
    if (status != MGX_OK) {
        mgx_plan_destroy(&plan->base);
        return status;
    }
    p->executable = &plan->base;
    p->destroy_executable = mgx_plan_destroy;
    return MGX_OK;
}

enum mgx_status mgx_plan_compile(struct mgx_program *p, struct mgx_plan_machine *machine,
                                 const struct mgx_plan_settings *settings, struct mgx_diag *diag)
{
    assert(machine->target->kernels && machine->target->copy && machine->target->release);
    struct mgx_plan_settings all = *settings;
    struct mgx_plan_shared *own = NULL; // a plan and those of its bodies share what they pack
    if (!all.shared && !machine->memory && mgx_plan_has_bodies(p))
        all.shared = own = mgx_plan_shared_create(); // without it each packs for itself
    const enum mgx_status status = compile(p, machine, &all, diag);
    mgx_plan_shared_release(own);
    return status;
}
