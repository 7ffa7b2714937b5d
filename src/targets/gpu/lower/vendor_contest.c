// SPDX-License-Identifier: MIT
// Which of the libraries' algorithms computes a product, or our own kernel.
//
//     asked for by name    its best guess, or with exhaustive_tune its fastest
//     exhaustive_tune      the fastest; candidate 0 is our own kernel, with the tile that won before
//     a word kept          that algorithm, if the library still has it
//
// What is taken has run here once: a library without code for the card says so only then.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "plan/contest.h"
#include "targets/gpu/lower/vendor.h"
#include "targets/gpu/lower/wgmma.h"

struct own { // our kernel
    bool hopper;
    struct gpu_wgmma_product g;
    struct gpu_wgmma_tile tile;
    struct gpu_wgmma_entry entry;
    void *kernel;
    struct gpu_launch how;
};

struct contest {
    struct mgx_plan_offer *c;
    const struct gpu_vendor_view *v;
    const struct gpu_vendor_entry *entries;
    int count;
    struct own *own; // candidate 0; NULL: it takes no part
    struct gpu_race race;
    const struct gpu_vendor_entry *entry; // at work
    struct gpu_vendor_call *call;
    void *tail; // kernel, once it is made
    struct gpu_launch tail_how;
    double own_seconds, best_seconds;
    int best;
};

static const struct gpu_vendor_entry *entry_of(const struct contest *t, int number)
{
    const int i = number - (t->own != NULL);
    return i < 0 ? NULL : &t->entries[i];
}

static const char *name(void *user, int number)
{
    const struct gpu_vendor_entry *e = entry_of(user, number);
    return e ? e->choice.name : "own";
}

static const char *letter_of(const struct gpu_vendor_matrix *m)
{
    return m->by_column ? "t" : "n";
}

static void describe_window(const struct gpu_vendor_window *w, bool matrices, struct mgx_str *out)
{
    for (int i = 0; i < w->axes && !matrices; i++)
        mgx_str_printf(out, " taps%lld step%lld far%lld pad%lld,%lld of%lld",
                       (long long)w->weights.lens[i + 2], (long long)w->step[i],
                       (long long)w->far[i], (long long)w->before[i], (long long)w->after[i],
                       (long long)w->image.lens[i + 2]);
    if (w->axes)
        mgx_str_printf(out, " lies%lld,%lld,%lld", (long long)w->image.strides[1],
                       (long long)w->weights.strides[1], (long long)w->result.strides[1]);
}

// What decides the time: sizes, how operands lie, what follows.
static void describe(void *user, struct mgx_str *out)
{
    const struct gpu_vendor_view *v = ((struct contest *)user)->v;
    const struct gpu_vendor_product *w = &v->whole;
    static const char *const lasts[] = {"add", "bias", "relu", "gelu"};
    mgx_str_printf(out, "product %s%s m%lld n%lld k%lld b%lld %s%s%lld,%lld",
                   mgx_type_name(w->type), w->tf32 && w->type == MGX_FLOAT ? " tf32" : "",
                   (long long)w->rows, (long long)w->columns, (long long)w->depth,
                   (long long)w->batches, letter_of(&w->a), letter_of(&w->b), (long long)w->a.line,
                   (long long)w->b.line);
    describe_window(&w->window, w->matrices, out);
    for (int i = 0; i < MGX_COUNT(lasts) && !v->why; i++)
        if (w->last & 1u << i)
            mgx_str_printf(out, " %s", lasts[i]);
    if (v->why)
        mgx_str_printf(out, " then%d",
                       (int)mgx_type_size(((struct contest *)user)->c->out->type) *
                           (v->p.extra_count + 1));
    mgx_str_printf(out, " at%u", w->alignment);
}

// --- candidates ---

static struct gpu_race_bytes bytes_of(const struct contest *t)
{
    const struct mgx_plan_offer *c = t->c;
    const struct gpu_product *p = &t->v->p;
    struct gpu_race_bytes bytes = {.a = gpu_race_span(&c->in[p->operand[0]]),
                                   .b = gpu_race_span(&c->in[p->operand[1]]),
                                   .out = gpu_race_span(c->out),
                                   .extra = 256,
                                   .turns = c->constant[p->operand[1]] != NULL};
    for (int e = 0; e < p->extra_count; e++) {
        const size_t extra = gpu_race_span(&c->in[p->extra[e]]);
        bytes.extra = extra > bytes.extra ? extra : bytes.extra;
    }
    if (t->own && t->own->hopper) {
        const struct gpu_race_bytes wide = gpu_wgmma_race_bytes(c, &t->own->g);
        bytes.a = wide.a > bytes.a ? wide.a : bytes.a;
        bytes.b = wide.b > bytes.b ? wide.b : bytes.b;
        bytes.work = t->own->g.fold.bytes;
    }
    for (int i = 0; i < t->count; i++) {
        const size_t work = gpu_vendor_workspace(t->v, &t->entries[i]);
        bytes.work = work > bytes.work ? work : bytes.work;
    }
    return bytes;
}

static bool launch_product(void *user, const struct gpu_race *race, int turn, struct mgx_diag *diag)
{
    const struct contest *t = user;
    struct gpu_device *d = race->device;
    void *b = gpu_race_weights(race, turn);
    struct gpu_arg list[GPU_CALL_INPUTS + 1] = {{&race->out, sizeof(void *), true},
                                                {&race->a, sizeof(void *), true},
                                                {&b, sizeof(void *), true}};
    int count = 3;
    for (int e = 0; e < t->v->p.extra_count; e++)
        list[count++] = (struct gpu_arg){&race->extra, sizeof(void *), true};
    return d->api->launch(d, race->stream, t->own->kernel, &t->own->how, list, count, diag) ==
           MGX_OK;
}

static bool launch_tail(const struct contest *t, const struct gpu_race *race, const void *product,
                        struct mgx_diag *diag)
{
    struct gpu_device *d = race->device;
    struct gpu_arg list[GPU_CALL_INPUTS + 2] = {{&race->out, sizeof(void *), true},
                                                {&product, sizeof(void *), true}};
    int count = 2;
    for (int e = 0; e < t->v->p.extra_count; e++)
        list[count++] = (struct gpu_arg){&race->extra, sizeof(void *), true};
    return d->api->launch(d, race->stream, t->tail, &t->tail_how, list, count, diag) == MGX_OK;
}

static bool launch_vendor(void *user, const struct gpu_race *race, int turn, struct mgx_diag *diag)
{
    const struct contest *t = user;
    const size_t product = gpu_vendor_product_bytes(t->v, t->entry);
    const struct gpu_vendor_args args = {.a = race->a,
                                         .b = gpu_race_weights(race, turn),
                                         .add = race->extra,
                                         .bias = race->extra,
                                         .out = t->entry->whole ? race->out : race->work,
                                         .workspace = (char *)race->work + product,
                                         .stream = race->stream};
    return gpu_vendor_run(t->call, &args, diag) == MGX_OK &&
           (t->entry->whole || launch_tail(t, race, race->work, diag));
}

static bool find_kernel(const struct contest *t, struct mgx_str *text, size_t shared, void **out,
                        struct mgx_diag *diag)
{
    struct gpu_machine *m = gpu_machine(t->c->machine);
    struct gpu_unit *unit = gpu_unit_of(m, "candidate", text);
    return unit && gpu_units_make(&m->code, &unit, 1, diag) == MGX_OK &&
           gpu_unit_kernel(unit, "run", shared, out, diag) == MGX_OK;
}

static bool begin_own(struct contest *t, struct mgx_diag *diag)
{
    struct own *o = t->own;
    struct mgx_str text = {0};
    const char *detail;
    if (o->hopper)
        return gpu_wgmma_enter(&o->entry, t->c, &o->g, &o->tile, &t->race, diag) &&
               gpu_race_begin(&t->race, gpu_wgmma_turn, &o->entry, diag);
    const bool good = !gpu_product_emit(&text, t->c, &t->v->p, &o->how, &detail) &&
                      find_kernel(t, &text, o->how.shared, &o->kernel, diag);
    mgx_str_fini(&text);
    return good && gpu_race_begin(&t->race, launch_product, t, diag);
}

static bool make_call(struct contest *t, const struct gpu_vendor_entry *e, struct mgx_diag *diag)
{
    struct mgx_str text = {0};
    t->entry = e;
    bool good = true;
    if (!e->whole && !t->tail)
        good = !gpu_vendor_emit_tail(&text, t->c, t->v, &t->tail_how) &&
               find_kernel(t, &text, 0, &t->tail, diag);
    mgx_str_fini(&text);
    return good && gpu_vendor_make(e->library, e->whole ? &t->v->whole : &t->v->bare, &e->choice,
                                   &t->call, diag) == MGX_OK;
}

static bool begin(void *user, int number, struct mgx_diag *diag)
{
    struct contest *t = user;
    const struct gpu_vendor_entry *e = entry_of(t, number);
    const struct gpu_race_bytes bytes = bytes_of(t);
    if (!gpu_race_make(&t->race, gpu_machine(t->c->machine)->device, &bytes, diag))
        return false;
    return e ? make_call(t, e, diag) && gpu_race_begin(&t->race, launch_vendor, t, diag)
             : begin_own(t, diag);
}

static void run(void *user)
{
    gpu_race_run(&((struct contest *)user)->race);
}

static void end(void *user)
{
    struct contest *t = user;
    gpu_race_end(&t->race);
    gpu_vendor_destroy(t->call);
    t->call = NULL;
}

static void note_time(void *user, int number, double seconds)
{
    struct contest *t = user;
    if (!entry_of(t, number)) {
        t->own_seconds = seconds;
    } else if (t->best_seconds == 0 || seconds < t->best_seconds) {
        t->best_seconds = seconds;
        t->best = number;
    }
}

// --- the choice ---

// The first entry from `from` on that runs, once; -1 when none does, with the first reason.
static int try_entries(struct contest *t, int from, int count, const char **said)
{
    const struct gpu_race_bytes bytes = bytes_of(t);
    struct gpu_device *d = gpu_machine(t->c->machine)->device;
    int found = -1;
    for (int i = from; i < from + count && found < 0; i++) {
        struct mgx_diag quiet = {.status = MGX_OK};
        const bool good = gpu_race_make(&t->race, d, &bytes, &quiet) &&
                          make_call(t, &t->entries[i], &quiet) &&
                          launch_vendor(t, &t->race, 0, &quiet) &&
                          d->api->stream_wait(d, t->race.stream, &quiet) == MGX_OK;
        if (good)
            found = i;
        else if (!*said)
            *said = mgx_arena_strdup(t->c->arena, quiet.text);
        end(t);
    }
    return found;
}

static struct mgx_plan_contest contest_of(struct contest *t)
{
    return (struct mgx_plan_contest){.describe = describe,
                                     .name = name,
                                     .count = t->count + (t->own != NULL),
                                     .begin = begin,
                                     .run = run,
                                     .end = end,
                                     .timed = note_time,
                                     .user = t};
}

static const char *kept_name(struct contest *t)
{
    const struct mgx_plan_contest contest = contest_of(t);
    return mgx_plan_tuned(t->c->tuner, &contest);
}

static bool names_library(const char *name)
{
    for (int i = 0; name && gpu_vendors[i]; i++) {
        const size_t size = strlen(gpu_vendors[i]->name);
        if (strncmp(name, gpu_vendors[i]->name, size) == 0 && name[size] == ' ')
            return true;
    }
    return false;
}

bool gpu_vendor_is_kept(const struct mgx_plan_offer *c, const struct gpu_vendor_view *v)
{
    struct contest t = {.c = (struct mgx_plan_offer *)c, .v = v};
    return names_library(kept_name(&t));
}

// "own 128x192 g2: 14.02 us, cublaslt 130401 a66: 12.31 us"
static const char *tell_times(const struct contest *t)
{
    struct mgx_str text = {0};
    if (t->own_seconds > 0) {
        mgx_str_put(&text, "own ");
        if (t->own->hopper)
            gpu_wgmma_name(&t->own->tile, &text);
        else
            mgx_str_put(&text, "gpu::product");
        mgx_str_printf(&text, " %.2f us", t->own_seconds * 1e6 / GPU_RACE_LAUNCHES);
    }
    if (t->best_seconds > 0)
        mgx_str_printf(&text, "%s%s %.2f us", text.size ? ", " : "", name((void *)t, t->best),
                       t->best_seconds * 1e6 / GPU_RACE_LAUNCHES);
    const char *said = text.size ? mgx_arena_strdup(t->c->arena, mgx_str_text(&text)) : NULL;
    mgx_str_fini(&text);
    return said;
}

// The tile that our kernel would take is found first, by a contest of its own.
static enum mgx_status find_own(struct contest *t, struct own *own)
{
    struct mgx_plan_offer *c = t->c;
    const int tuned = c->tuner->tuned_count;
    memset(own, 0, sizeof *own);
    own->hopper = !gpu_wgmma_read(c, &own->g) && gpu_wgmma_choose(c, &own->g, &own->tile);
    c->tuner->tuned_count = tuned; // it counts when it is taken
    t->own = own;
    return c->diag->status;
}

static enum mgx_status measure(struct contest *t, struct own *own, int *choice, const char **said)
{
    struct mgx_plan_offer *c = t->c;
    if (own)
        TRY(find_own(t, own));
    const struct mgx_plan_contest contest = contest_of(t);
    const int tuned = c->tuner->tuned_count;
    TRY(mgx_plan_tune(c->tuner, &contest, choice, c->diag));
    *said = tell_times(t);
    if (own && *choice == 0 && own->hopper) // counted where it is taken
        c->tuner->tuned_count = tuned;
    if (own && *choice >= 0)
        --*choice;
    return MGX_OK;
}

static int find_kept(struct contest *t, const char **said)
{
    const char *kept = kept_name(t);
    for (int i = 0; kept && i < t->count; i++)
        if (strcmp(t->entries[i].choice.name, kept) == 0)
            return i;
    if (names_library(kept)) {
        struct mgx_str text = {0};
        mgx_str_printf(&text, "\"%s\", which was chosen before, is not offered here", kept);
        *said = mgx_arena_strdup(t->c->arena, mgx_str_text(&text));
        mgx_str_fini(&text);
    }
    return -1;
}

// A kept word counts as any answer of the tuner's does.
static enum mgx_status take_kept(struct contest *t, struct own *own, int *choice)
{
    t->own = own; // only to be counted
    const struct mgx_plan_contest contest = contest_of(t);
    TRY(mgx_plan_tune(t->c->tuner, &contest, choice, t->c->diag));
    t->own = NULL;
    --*choice;
    return MGX_OK;
}

enum mgx_status gpu_vendor_choose(struct mgx_plan_offer *c, const struct gpu_vendor_view *v,
                                  const struct gpu_vendor_entry *entries, int count, int *choice,
                                  const char **said)
{
    assert(count >= 0 && (entries || !count));
    struct contest t = {.c = c, .v = v, .entries = entries, .count = count};
    const bool named = gpu_machine(c->machine)->provider != NULL;
    struct own own;
    enum mgx_status status = MGX_OK;
    *said = NULL;
    *choice = find_kept(&t, said);
    if (*choice >= 0 && !named)
        status = take_kept(&t, &own, choice);
    else if (*choice < 0 && c->tuner && c->tuner->exhaustive && !c->tuner->strict && count)
        status = measure(&t, named ? NULL : &own, choice, said);
    t.own = NULL;
    if (status == MGX_OK && (*choice >= 0 || named)) {
        const int from = *choice < 0 ? 0 : *choice;
        *choice = try_entries(&t, from, named ? count - from : 1, said);
    }
    gpu_race_fini(&t.race);
    return status;
}
