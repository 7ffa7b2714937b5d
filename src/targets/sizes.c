// SPDX-License-Identifier: MIT
// Runs of a program with free sizes; see sizes.h, and sizes_own.h for where the rest is.
#include "targets/sizes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "op/op.h"
#include "targets/sizes_own.h"

static const size_t default_bytes = (size_t)256 << 20;

// --- the key ---

static bool gather(const struct mgx_sizes *s, const struct mgx_named_tensor *params, int64_t *lens)
{
    for (int i = 0; i < s->len_count; i++)
        lens[i] = params[s->axes[i].param].tensor.shape.lens[s->axes[i].axis];
    return mgx_values_gather(&s->values, params, lens + s->len_count);
}

// Lengths that go on by one as the state does stay open, too; those that take turns, as batches of
// several texts at once, do not. The lock is held.
static void leave_open(struct mgx_sizes *s, int64_t *lens)
{
    enum { OFTEN = 4 };
    for (int i = 0; i < s->len_count; i++) {
        s->steps[i] += s->most[i] && lens[i] == s->most[i] + 1;
        s->most[i] = lens[i] > s->most[i] ? lens[i] : s->most[i];
        s->open[i] |= s->steps[i] >= OFTEN;
        lens[i] = s->open[i] ? MGX_LENGTH_OPEN : lens[i];
    }
}

// --- runs ---

// Does a plan that was made in haste get its best kernels now? When such plans, of whatever sizes,
// have lost half of what making this one anew takes: sizes that came so often come on. Its row is
// held by this run alone.
static bool is_due(struct mgx_sizes *s, const struct mgx_size *k)
{
    const struct mgx_plan_makeshift *m = &k->makeshift;
    if (k->state != MGX_SIZE_READY || m->lost_seconds == 0)
        return false;
    s->lost_seconds += m->lost_seconds;
    return k->users == 1 && 2 * s->lost_seconds >= m->saved_seconds + s->plan_seconds;
}

static void meet(struct mgx_sizes *s, struct mgx_size *k)
{
    if (is_due(s, k)) {
        const double packed_seconds = k->makeshift.saved_seconds;
        mgx_sizes_fill(s, k, false);
        mgx_sizes_settle(s, packed_seconds);
        return;
    }
    const enum mgx_specialise_mode mode = s->options.specialise;
    const bool now = !s->only_beside && mgx_sizes_pays(s, k);
    if (k->state != MGX_SIZE_SEEN || (k->meetings < MGX_SIZES_MEETINGS && !now) ||
        mode == MGX_SPECIALISE_NEVER || !mgx_sizes_has_room(s, k))
        return;
    if (mode == MGX_SPECIALISE_BACKGROUND && !now) {
        mgx_sizes_put_off(s, k);
        return;
    }
    k->users++;
    mgx_sizes_fill(s, k, s->made > 0);
    k->users--;
}

// The entry of these lengths, as the newest; NULL where there is none and no memory for one.
static struct mgx_size *find_or_add(struct mgx_sizes *s, const int64_t *lens, uint64_t hash)
{
    struct mgx_size *k = mgx_sizes_find(s, lens, hash);
    if (!k)
        return mgx_sizes_add(s, lens, hash);
    mgx_sizes_unlink_use(s, k);
    mgx_sizes_link_newest(s, k);
    return k;
}

const struct mgx_program *mgx_sizes_take(struct mgx_sizes *s, const struct mgx_named_tensor *params,
                                         struct mgx_size **held)
{
    int64_t lens[MGX_SIZES_MOST_LENS];
    const struct mgx_program *p = NULL;
    *held = NULL;
    assert(s->len_count <= MGX_SIZES_MOST_LENS);
    if (!gather(s, params, lens))
        return NULL;
    pthread_mutex_lock(&s->lock);
    if (s->leaves_open)
        leave_open(s, lens);
    struct mgx_size *k = find_or_add(s, lens, mgx_hash_bytes(lens, mgx_sizes_key_bytes(s), 0));
    if (k) {
        k->meetings++;
        k->users++; // while a plan is made
        meet(s, k);
        k->users--;
        p = k->state == MGX_SIZE_READY ? k->program : NULL;
        k->users++;
        *held = k;
    }
    struct mgx_size *gone = mgx_sizes_shrink(s);
    pthread_mutex_unlock(&s->lock);
    mgx_sizes_destroy_rows(gone);
    return p;
}

void mgx_sizes_give(struct mgx_sizes *s, struct mgx_size *held, bool own, double seconds)
{
    if (!held)
        return;
    pthread_mutex_lock(&s->lock);
    const struct mgx_program *p =
        held->state == MGX_SIZE_READY ? held->program : NULL; // nobody replaces it
    pthread_mutex_unlock(&s->lock);
    const size_t bytes = p ? s->target->bytes(p) : 0; // what a run has chosen is the plan's too
    pthread_mutex_lock(&s->lock);
    held->users--;
    if (p)
        mgx_sizes_weigh(s, held, bytes);
    double *unit = own ? &s->own_seconds : &s->unit_seconds;
    if (seconds >= 0)
        *unit = mgx_sizes_follow(*unit, seconds / mgx_sizes_volume(s, held));
    struct mgx_size *gone = mgx_sizes_shrink(s);
    pthread_mutex_unlock(&s->lock);
    mgx_sizes_destroy_rows(gone);
}

bool mgx_sizes_fix_input(const struct mgx_sizes *s, const struct mgx_size *held, int param)
{
    for (int i = 0; i < s->len_count; i++)
        if (s->axes[i].param == param && held->lens[i] == MGX_LENGTH_OPEN)
            return false;
    return true;
}

const struct mgx_program *mgx_sizes_last(const struct mgx_sizes *s)
{
    return s->newest && s->newest->state == MGX_SIZE_READY ? s->newest->program : NULL;
}

// --- what there is ---

static void explain_row(const struct mgx_sizes *s, const struct mgx_size *k, struct mgx_str *out)
{
    static const char *const names[] = {[MGX_SIZE_SEEN] = "any size",
                                        [MGX_SIZE_WAITING] = "any size, a plan is to be made",
                                        [MGX_SIZE_MAKING] = "any size, a plan is being made",
                                        [MGX_SIZE_READY] = "a plan of its own",
                                        [MGX_SIZE_FAILED] = "any size, it cannot have a plan"};
    mgx_str_put(out, "size {");
    for (int i = 0; i < s->len_count; i++)
        if (k->lens[i] == MGX_LENGTH_OPEN)
            mgx_str_printf(out, "%sany", i ? ", " : "");
        else
            mgx_str_printf(out, "%s%lld", i ? ", " : "", (long long)k->lens[i]);
    mgx_str_printf(out, "}: %s, met %lld times", names[k->state], (long long)k->meetings);
    if (k->state == MGX_SIZE_READY)
        mgx_str_printf(
            out, ", %zu bytes, made in %.1f ms%s", k->bytes, k->seconds * 1e3,
            k->makeshift.lost_seconds > 0 ? ", in haste: with weights as they were packed" : "");
    mgx_str_putc(out, '\n');
}

void mgx_sizes_explain(struct mgx_sizes *s, struct mgx_str *out)
{
    enum { MOST_ROWS = 100 };
    int rows = 0;
    pthread_mutex_lock(&s->lock);
    mgx_str_printf(out,
                   "sizes: %lld met, %lld with a plan of their own (%lld made, %lld dropped), %zu "
                   "of %zu bytes\n",
                   (long long)s->met, (long long)s->plans, (long long)s->made,
                   (long long)s->dropped, s->bytes, s->limit);
    for (const struct mgx_size *k = s->newest; k && rows < MOST_ROWS; k = k->older, rows++)
        explain_row(s, k, out);
    pthread_mutex_unlock(&s->lock);
}

// --- a program's ---

// The axis along which an operator appends to an input; -1: it does not.
static int64_t appends_along(const struct mgx_ins *ins)
{
    if (ins->op == &mgx_op_concat)
        return mgx_wrap_axis(mgx_ins_int(ins, "axis"), ins->shape.rank);
    return ins->op == &mgx_op_cache_append || strcmp(ins->op->name, "concat_past_present") == 0
               ? 2
               : -1;
}

// Marks the free axes of inputs that are results with something appended. False if there are none.
static bool find_state(struct mgx_sizes *s)
{
    const struct mgx_module *m = mgx_program_main(s->simplified);
    bool found = false;
    for (int k = 0; k < mgx_module_result_count(m); k++) {
        const struct mgx_ins *ins = mgx_module_result(m, k);
        while ((ins->op == &mgx_op_contiguous || ins->op == &mgx_op_identity) && ins->in_count)
            ins = ins->in[0];
        const int64_t along = appends_along(ins);
        for (int i = 0; i < ins->in_count && along >= 0; i++) {
            const int param =
                ins->in[i]->op == &mgx_op_param ? mgx_parameter_index(ins->in[i]) : -1;
            for (int a = 0; a < s->len_count && param >= 0; a++)
                if (s->axes[a].param == param && s->axes[a].axis == along)
                    found = s->open[a] = true;
        }
    }
    return found;
}

static void find_followers(struct mgx_sizes *s)
{
    const struct mgx_module *m = mgx_program_main(s->simplified);
    int count;
    struct mgx_ins **params = mgx_module_parameter_list(m, &s->arena, &count);
    if (!params ||
        s->len_count > MGX_SIZES_MOST_LENS) // sticky in the arena; more than is looked at
        return;
    for (int i = 0; i < s->len_count; i++)
        for (int k = 0; k < i && !s->follows[i]; k++) {
            const char *a = mgx_shape_dim(&params[s->axes[i].param]->shape, s->axes[i].axis).name,
                       *b = mgx_shape_dim(&params[s->axes[k].param]->shape, s->axes[k].axis).name;
            s->follows[i] = a && b && strcmp(a, b) == 0;
        }
}

static bool all_open(const struct mgx_sizes *s)
{
    for (int i = 0; i < s->len_count; i++)
        if (!s->open[i])
            return false;
    return true;
}

// Are the sizes that states grow by those of caches, which may have room and stay as long as they
// are?
static bool may_have_room(const struct mgx_sizes *s)
{
    for (int i = 0; i < s->values.count; i++)
        if (s->values.list[i].cache_count)
            return true;
    return false;
}

// Where the program hands its state round, plans are for the other lengths; where there are none,
// or plans see values, it has none. Caches with room, of which such a target's plans know, are no
// state that grows.
static enum mgx_specialise_mode choose_mode(struct mgx_sizes *s, int threads)
{
    const bool has_state = find_state(s);
    if (has_state && s->target->sees_values && may_have_room(s))
        return threads == 1 ? MGX_SPECIALISE_IN_CALL : MGX_SPECIALISE_BACKGROUND;
    if (has_state && (s->target->sees_values || all_open(s)))
        return MGX_SPECIALISE_NEVER;
    s->leaves_open = has_state;
    return threads == 1 ? MGX_SPECIALISE_IN_CALL : MGX_SPECIALISE_BACKGROUND;
}

// The caller's texts and lists are his.
static bool keep_options(struct mgx_sizes *s, const struct mgx_compile_options *o)
{
    struct mgx_arena *arena = &s->arena;
    const char **disabled = MGX_NEW_ARRAY(arena, const char *, o->pass.disabled_count);
    s->open = MGX_NEW_ARRAY(arena, bool, s->len_count);
    s->most = MGX_NEW_ARRAY(arena, int64_t, s->len_count);
    s->steps = MGX_NEW_ARRAY(arena, int, s->len_count);
    s->follows = MGX_NEW_ARRAY(arena, bool, s->len_count);
    if (!s->open || !s->most || !s->steps || !s->follows)
        return false;
    find_followers(s);
    s->options = *o;
    s->options.tune.cache = mgx_arena_strdup(arena, o->tune.cache);
    for (int i = 0; disabled && i < o->pass.disabled_count; i++)
        disabled[i] = mgx_arena_strdup(arena, o->pass.disabled[i]);
    s->options.pass.disabled = disabled;
    s->options.pass.trace = NULL; // of the compilation that was asked for
    s->options.exhaustive_tune = s->options.tune.strict = false; // nothing is measured in a run
    s->options.simplified = NULL;
    s->options.shared = mgx_plan_shared_retain(o->shared);
    s->only_beside = o->specialise == MGX_SPECIALISE_BACKGROUND;
    if (o->specialise == MGX_SPECIALISE_AUTO)
        s->options.specialise = choose_mode(s, o->threads);
    s->limit = o->plan_bytes ? o->plan_bytes : default_bytes;
    return mgx_settings_copy(&s->options.own, arena, &o->own) && !arena->failed;
}

static void make_now(struct mgx_sizes *s, const int64_t *lens)
{
    const uint64_t hash = mgx_hash_bytes(lens, mgx_sizes_key_bytes(s), 0);
    pthread_mutex_lock(&s->lock);
    struct mgx_size *k = mgx_sizes_find(s, lens, hash) ? NULL : mgx_sizes_add(s, lens, hash);
    if (k) {
        k->users++;
        mgx_sizes_fill(s, k, false);
        k->users--;
    }
    pthread_mutex_unlock(&s->lock);
}

// Steps to the next combination; axes of one name go together. False after the last.
static bool next_optimal(const struct mgx_dim *dims, int count, int *at)
{
    for (int i = 0; i < count; i++) {
        bool led = false; // by an earlier axis
        for (int k = 0; k < i && !led; k++)
            led = dims[i].name && dims[k].name && strcmp(dims[i].name, dims[k].name) == 0;
        if (led)
            continue;
        at[i] = at[i] + 1 < dims[i].optimal_count ? at[i] + 1 : 0;
        for (int k = i + 1; k < count; k++)
            if (dims[i].name && dims[k].name && strcmp(dims[i].name, dims[k].name) == 0)
                at[k] = at[i];
        if (at[i])
            return true;
    }
    return false;
}

// All combinations of the sizes that are named as optimal, if every free axis names some.
static void make_optimals(struct mgx_sizes *s)
{
    enum { MOST_PLANS = 64 };
    const struct mgx_module *m = mgx_program_main(s->simplified);
    int at[MGX_SIZES_MOST_LENS] = {0}, rounds = 0;
    int64_t lens[MGX_SIZES_MOST_LENS];
    struct mgx_dim *dims = MGX_NEW_ARRAY(&s->arena, struct mgx_dim, s->len_count);
    struct mgx_ins **params = mgx_module_parameter_list(m, &s->arena, &(int){0});
    if (!dims || !params || s->values.count)
        return;
    for (int i = 0; i < s->len_count; i++) {
        dims[i] = mgx_shape_dim(&params[s->axes[i].param]->shape, s->axes[i].axis);
        if (!dims[i].optimal_count)
            return;
    }
    if (s->leaves_open) { // what is named is fixed, and nothing else has a plan
        s->leaves_open = false;
        s->options.specialise = MGX_SPECIALISE_NEVER;
    }
    do {
        for (int i = 0; i < s->len_count; i++)
            lens[i] = dims[i].optimals[at[i] < dims[i].optimal_count ? at[i] : 0];
        make_now(s, lens);
    } while (++rounds < MOST_PLANS && next_optimal(dims, s->len_count, at));
}

enum mgx_status mgx_sizes_create(struct mgx_sizes **out, struct mgx_program *take_simplified,
                                 const struct mgx_target *target,
                                 const struct mgx_compile_options *options, double seconds,
                                 struct mgx_diag *diag)
{
    *out = NULL;
    struct mgx_sizes *s = calloc(1, sizeof *s);
    if (!s) {
        mgx_program_destroy(take_simplified);
        return mgx_fail_memory(diag);
    }
    s->simplified = take_simplified;
    s->target = target;
    s->plan_seconds = seconds;
    mgx_arena_init(&s->arena);
    pthread_mutex_init(&s->lock, NULL);
    s->axes = mgx_free_axes(s->simplified, &s->arena, &s->len_count);
    const bool good = !target->sees_values || mgx_values_find(&s->values, s->simplified, &s->arena);
    if (!s->axes || !keep_options(s, options) || !good) {
        mgx_sizes_destroy(s);
        return mgx_fail_memory(diag);
    }
    if (mgx_sizes_key_bytes(s) >
        MGX_SIZES_MOST_LENS *
            sizeof(int64_t)) { // more than any model has: taken by the steps for any size
        mgx_sizes_destroy(s);
        return MGX_OK;
    }
    make_optimals(s);
    *out = s;
    return MGX_OK;
}

void mgx_sizes_destroy(struct mgx_sizes *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_mutex_unlock(&s->lock);
    mgx_sizes_join(s);
    for (struct mgx_size *k = s->newest, *older; k; k = older) {
        older = k->older;
        mgx_sizes_destroy_row(k);
    }
    for (int i = 0; i < s->known_count; i++)
        free(s->known[i].history);
    mgx_program_destroy(s->simplified);
    mgx_plan_shared_release(s->options.shared);
    pthread_mutex_destroy(&s->lock);
    mgx_arena_fini(&s->arena);
    free(s);
}
