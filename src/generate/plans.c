// SPDX-License-Identifier: MIT
// A short list under one lock, most recently used first.
#include "generate/plans.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/cancel.h"
#include "generate/bundle.h"
#include "generate/choice.h"
#include "generate/feed.h"
#include "generate/heard.h"
#include "generate/lengths.h"
#include "targets/sizes.h"
#include "targets/target.h"

enum { MOST = 32 };

struct entry {
    struct mgx_fixed_plan base; // first
    struct entry *next;
    struct mgx_program *program;
    struct mgx_arena arena;
    int users;
};

struct mgx_plans {
    const struct mgx_program *program;
    const struct mgx_roles *roles;
    const struct mgx_memory *memory;
    pthread_mutex_t lock; // of everything below
    struct entry *first;
    int count;
};

static void destroy(struct entry *e)
{
    if (!e)
        return;
    mgx_program_destroy(e->program);
    mgx_arena_fini(&e->arena);
    free(e);
}

// --- making one ---

static int list_choice(const struct mgx_plans *s, const struct mgx_fixed_plan *plan,
                       struct mgx_shape *shapes, struct mgx_named_lens *lens, int count)
{
    static const char *const names[MGX_CHOICE_INPUTS] = {
        MGX_CHOICE_KNOBS_NAME, MGX_CHOICE_SEEN_NAME, MGX_CHOICE_BIAS_NAME};
    static const enum mgx_type types[MGX_CHOICE_INPUTS] = {MGX_DOUBLE, MGX_INT32, MGX_FLOAT};
    const int64_t columns[MGX_CHOICE_INPUTS] = {MGX_CHOICE_KNOBS, plan->room, s->roles->words};
    for (int i = 0; i < MGX_CHOICE_INPUTS; i++) {
        const int64_t dims[2] = {plan->rows, columns[i]};
        lens[count].name = names[i];
        shapes[count++] = mgx_shape_make(types[i], 2, dims);
    }
    return count;
}

// What all inputs are long; those that are said have no lengths yet, and come last.
static int list_lens(const struct mgx_plans *s, const struct mgx_fixed_plan *plan,
                     struct mgx_shape *shapes, struct mgx_named_lens *lens)
{
    const struct mgx_rows rows = {.count = plan->rows};
    const struct mgx_feed feed = {
        .roles = s->roles, .rows = &rows, .each = plan->tokens, .columns = plan->room};
    struct mgx_feed_input inputs[MGX_FEED_MOST];
    const int input_count = mgx_feed_inputs(&feed, inputs);
    int count = 0;
    for (int i = 0; i < input_count; i++) {
        lens[count].name = inputs[i].role->name;
        shapes[count++] = inputs[i].shape;
    }
    for (int i = 0; i < s->roles->carried_count; i++) {
        lens[count].name = s->roles->carried[i].past;
        shapes[count++] = mgx_bundle_shape(&s->roles->carried[i], plan->rows, plan->room);
    }
    for (int i = 0; i < s->roles->given_count; i++) {
        lens[count].name = s->roles->given[i];
        shapes[count++] = mgx_heard_shape(s->roles, i, plan->heard);
    }
    if (s->roles->chooses)
        count = list_choice(s, plan, shapes, lens, count);
    for (int i = 0; i < s->roles->said_count; i++)
        lens[count++].name = s->roles->said[i];
    return count;
}

static enum mgx_status fix(const struct mgx_plans *s, struct entry *e, struct mgx_diag *diag)
{
    const struct mgx_roles *r = s->roles;
    const int most =
        r->carried_count + MGX_FEED_MOST + MGX_CHOICE_INPUTS + r->given_count + r->said_count;
    struct mgx_shape *shapes = MGX_NEW_ARRAY(&e->arena, struct mgx_shape, most);
    struct mgx_named_lens *lens = MGX_NEW_ARRAY(&e->arena, struct mgx_named_lens, most);
    if (!shapes || !lens)
        return mgx_fail_memory(diag);
    const int count = list_lens(s, &e->base, shapes, lens);
    if (r->of_lengths)
        mgx_lengths_shapes(r->of_lengths, e->base.room, shapes + count - r->said_count);
    for (int i = 0; i < count; i++) {
        lens[i].lens = shapes[i].lens;
        lens[i].rank = shapes[i].rank;
    }
    mgx_cancel_enter();
    enum mgx_status status = mgx_program_fix(&e->program, s->program, lens, count, false, diag);
    if (status == MGX_OK)
        status = mgx_cancel_check(diag);
    mgx_cancel_leave();
    return status;
}

// Where results go, and that caches come back as long as they went in.
static enum mgx_status read_results(const struct mgx_plans *s, struct entry *e,
                                    struct mgx_diag *diag)
{
    const struct mgx_roles *r = s->roles;
    const struct mgx_module *main = mgx_program_main(e->program);
    e->base.places = MGX_NEW_ARRAY(&e->arena, const char *, r->result_count + 1);
    for (int i = 0; e->base.places && i < r->result_count; i++)
        e->base.places[i] = mgx_arena_printf(&e->arena, "main:#output_%d", i);
    if (e->arena.failed)
        return mgx_fail_memory(diag);
    e->base.logits = mgx_module_result(main, r->logits)->shape;
    e->base.program = e->program;
    for (int i = 0; i < r->carried_count; i++) {
        const struct mgx_carried *c = &r->carried[i];
        const struct mgx_shape want = mgx_bundle_shape(c, e->base.rows, e->base.room),
                               *got = &mgx_module_result(main, c->result)->shape;
        if (!mgx_shape_is_static(got) || !mgx_shape_equal(&want, got))
            return mgx_fail(diag, MGX_UNSUPPORTED,
                            "cache \"%s\" does not come back from a run as it went in", c->past);
    }
    return mgx_shape_is_static(&e->base.logits)
               ? MGX_OK
               : mgx_fail(diag, MGX_UNSUPPORTED, "scores have no size before the run");
}

static enum mgx_status make(const struct mgx_plans *s, const struct mgx_fixed_plan *sizes,
                            struct entry **out, struct mgx_diag *diag)
{
    struct entry *e = calloc(1, sizeof *e);
    if (!e)
        return mgx_fail_memory(diag);
    mgx_arena_init(&e->arena);
    e->base = *sizes;
    enum mgx_status status = fix(s, e, diag);
    if (status == MGX_OK)
        status = read_results(s, e, diag);
    if (status == MGX_OK) {
        *out = e;
        return MGX_OK;
    }
    destroy(e);
    mgx_where(diag, "a plan of %lld texts, %lld tokens and room for %lld", (long long)sizes->rows,
              (long long)sizes->tokens, (long long)sizes->room);
    return status;
}

// --- the list ---

// Drops what nobody holds, the last ones first, until `most` remain. The lock is held.
static bool drop(struct mgx_plans *s, int most)
{
    bool dropped = false;
    while (s->count > most) {
        struct entry **last = NULL;
        for (struct entry **at = &s->first; *at; at = &(*at)->next)
            if (!(*at)->users)
                last = at;
        if (!last)
            break;
        struct entry *gone = *last;
        *last = gone->next;
        destroy(gone);
        s->count--;
        dropped = true;
    }
    return dropped;
}

static struct entry *find(struct mgx_plans *s, const struct mgx_fixed_plan *sizes)
{
    for (struct entry **at = &s->first, *e; (e = *at) != NULL; at = &e->next)
        if (e->base.rows == sizes->rows && e->base.tokens == sizes->tokens &&
            e->base.room == sizes->room && e->base.heard == sizes->heard) {
            *at = e->next;
            return e;
        }
    return NULL;
}

static enum mgx_status add(struct mgx_plans *s, const struct mgx_fixed_plan *sizes,
                           struct entry **out, struct mgx_diag *diag)
{
    struct mgx_diag first;
    mgx_diag_clear(&first);
    enum mgx_status status = make(s, sizes, out, &first);
    if (status == MGX_NO_MEMORY && drop(s, 0))
        status = make(s, sizes, out, diag);
    else if (status != MGX_OK && diag)
        *diag = first;
    s->count += status == MGX_OK;
    return status;
}

enum mgx_status mgx_plans_take(struct mgx_plans *s, const struct mgx_fixed_plan *sizes,
                               const struct mgx_fixed_plan **out, struct mgx_diag *diag)
{
    pthread_mutex_lock(&s->lock);
    struct entry *e = find(s, sizes);
    const enum mgx_status status = e ? MGX_OK : add(s, sizes, &e, diag);
    if (status == MGX_OK) {
        e->next = s->first;
        s->first = e;
        e->users++;
        drop(s, MOST);
        *out = &e->base;
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

void mgx_plans_give(struct mgx_plans *s, const struct mgx_fixed_plan *plan)
{
    if (!plan)
        return;
    pthread_mutex_lock(&s->lock);
    struct entry *e = (struct entry *)(uintptr_t)plan;
    assert(e->users > 0);
    e->users--;
    pthread_mutex_unlock(&s->lock);
}

// --- the table ---

// Nothing that plans cannot say before a run: without a cache nothing says how long a mask is. What
// an encoder gave has lengths of its own, for which decoders with held caches have plans.
bool mgx_plans_take_roles(const struct mgx_roles *r)
{
    const bool fixed = r->has_kind[MGX_CARRIED_FIXED] && !r->mask.name && !r->total.name;
    return !r->branch.name && (!r->given_count || r->held) && !r->has_kind[MGX_CARRIED_GROWING] &&
           (r->has_kind[MGX_CARRIED_ROOM] || fixed);
}

static bool takes(const struct mgx_program *program, const struct mgx_roles *r)
{
    const struct mgx_executable *e = program->executable;
    return e->target->memory && e->sizes && mgx_plans_take_roles(r);
}

// A plan that says which memory it is. Where caches do not come back as they went in, the table is
// of no use; the program's steps for any size take such a model.
static enum mgx_status probe(struct mgx_plans *s, bool *good, struct mgx_diag *diag)
{
    const struct mgx_fixed_plan *plan = NULL;
    struct mgx_diag own;
    mgx_diag_clear(&own);
    const struct mgx_fixed_plan sizes = {.rows = 1,
                                         .tokens = 1,
                                         .room = s->roles->first_room,
                                         .heard =
                                             s->roles->given_count ? mgx_heard_first(s->roles) : 0};
    const enum mgx_status status = mgx_plans_take(s, &sizes, &plan, &own);
    *good = status == MGX_OK;
    if (status == MGX_UNSUPPORTED)
        return MGX_OK;
    if (status != MGX_OK) {
        if (diag)
            *diag = own;
        return status;
    }
    s->memory = plan->program->executable->memory;
    *good = s->memory != NULL;
    mgx_plans_give(s, plan);
    return MGX_OK;
}

enum mgx_status mgx_plans_create(struct mgx_plans **out, const struct mgx_program *program,
                                 const struct mgx_roles *roles, struct mgx_diag *diag)
{
    *out = NULL;
    if (!takes(program, roles))
        return MGX_OK;
    struct mgx_plans *s = calloc(1, sizeof *s);
    bool good = false;
    if (!s)
        return mgx_fail_memory(diag);
    s->program = program;
    s->roles = roles;
    pthread_mutex_init(&s->lock, NULL);
    const enum mgx_status status = probe(s, &good, diag);
    if (good)
        *out = s;
    else
        mgx_plans_destroy(s);
    return status;
}

void mgx_plans_destroy(struct mgx_plans *s)
{
    if (!s)
        return;
    for (struct entry *e = s->first, *next; e; e = next) {
        next = e->next;
        assert(!e->users);
        destroy(e);
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
}

const struct mgx_memory *mgx_plans_memory(const struct mgx_plans *s)
{
    return s->memory;
}
