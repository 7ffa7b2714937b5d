// SPDX-License-Identifier: MIT
// See sizes.h. A table of chains under one lock. A row is what is known of one size: its lengths
// never change, everything else does under the lock only. Rows are in order of use as well.
#include "targets/sizes.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/thread.h"
#include "op/op.h"
#include "pass/engine/history.h"
#include "plan/plan.h"
#include "plan/shared.h"
#include "targets/specialise.h"

enum { BUCKETS = 256, MEETINGS = 2, MOST_LENS = 512, HISTORIES = 16 };
static const size_t default_bytes = (size_t)256 << 20;

enum state { SEEN, WAITING, MAKING, READY, FAILED };

struct mgx_size {
    struct mgx_size *next;          // in its bucket
    struct mgx_size *newer, *older; // by use
    struct mgx_size *waiting;       // behind this one, for the thread
    uint64_t hash;
    int64_t meetings; // how often it came; less when it kept others out (has_room)
    int users;        // runs that hold it, and whoever makes its plan
    enum state state;
    struct mgx_program *program;         // READY
    struct mgx_plan_makeshift makeshift; // what it does without
    size_t plan_bytes;                   // of the program, of bytes
    double seconds;                      // that making it took
    size_t bytes;
    int64_t lens[]; // and the bytes of values
};

// What the passes did to a program of some kind: nearly the same to all of that kind.
struct known {
    uint64_t kind;
    struct mgx_pass_history *history; // complete
};

struct mgx_sizes {
    struct mgx_program *simplified;
    const struct mgx_target *target;
    struct mgx_compile_options options; // texts and lists in the arena
    struct mgx_arena arena;
    struct mgx_free_axis *axes;
    bool *follows;            // by axis: one before it has its name, and so its length
    int len_count;            // of them
    struct mgx_values values; // their bytes are the rest of the key
    bool only_beside;         // no run makes a plan, whatever it would save
    bool leaves_open;         // plans do not fix the lengths that are marked in `open`
    pthread_mutex_t lock;     // of everything below
    struct mgx_size *bucket[BUCKETS];
    struct mgx_size *newest, *oldest;
    size_t bytes, limit;
    double plan_seconds; // that making a plan is expected to take
    double unit_seconds; // of a run of any size by the product of its lengths; 0: not known
    double own_seconds;  // the same of runs by plans
    double lost_seconds; // of runs through hasty plans since one was last made anew
    bool *open;          // by axis; with leaves_open
    int64_t *most;       // the largest length so far
    int *steps;          // how often that was one more than before
    struct known known[HISTORIES]; // first come
    int known_count;
    int64_t met, plans, made, dropped; // sizes and plans there are, and for the explanation
    struct mgx_size *first_waiting, *last_waiting;
    pthread_t thread;
    pid_t process; // whose thread it is; 0: none was started, or it was joined
    bool at_work;  // the thread will look at the queue again
    bool stop;
};

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

static size_t key_bytes(const struct mgx_sizes *s)
{
    return (size_t)s->len_count * sizeof(int64_t) + s->values.bytes;
}

// --- rows ---

static void unlink_use(struct mgx_sizes *s, struct mgx_size *k)
{
    *(k->newer ? &k->newer->older : &s->newest) = k->older;
    *(k->older ? &k->older->newer : &s->oldest) = k->newer;
}

static void link_newest(struct mgx_sizes *s, struct mgx_size *k)
{
    k->newer = NULL;
    k->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = k;
    s->newest = k;
}

static struct mgx_size *find(struct mgx_sizes *s, const int64_t *lens, uint64_t hash)
{
    struct mgx_size *k = s->bucket[hash % BUCKETS];
    while (k && !(k->hash == hash && memcmp(k->lens, lens, key_bytes(s)) == 0))
        k = k->next;
    return k;
}

static struct mgx_size *add(struct mgx_sizes *s, const int64_t *lens, uint64_t hash)
{
    struct mgx_size *k = calloc(1, sizeof *k + key_bytes(s));
    if (!k)
        return NULL;
    memcpy(k->lens, lens, key_bytes(s));
    k->hash = hash;
    k->bytes = sizeof *k + key_bytes(s);
    k->next = s->bucket[hash % BUCKETS];
    s->bucket[hash % BUCKETS] = k;
    s->bytes += k->bytes;
    s->met++;
    link_newest(s, k);
    return k;
}

static void unlink_row(struct mgx_sizes *s, struct mgx_size *k)
{
    struct mgx_size **at = &s->bucket[k->hash % BUCKETS];
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    unlink_use(s, k);
    s->bytes -= k->bytes;
    s->met--;
    s->plans -= k->state == READY;
    s->dropped += k->state == READY;
}

static void destroy_row(struct mgx_size *k)
{
    mgx_program_destroy(k->program);
    free(k);
}

// Takes the oldest rows out until the rest fits; they go when the lock is not held.
static struct mgx_size *shrink(struct mgx_sizes *s)
{
    struct mgx_size *gone = NULL;
    for (struct mgx_size *k = s->oldest, *newer; k && s->bytes > s->limit; k = newer) {
        newer = k->newer;
        if (k->users)
            continue;
        unlink_row(s, k);
        k->next = gone;
        gone = k;
    }
    return gone;
}

static void destroy_rows(struct mgx_size *k)
{
    for (struct mgx_size *next; k; k = next) {
        next = k->next;
        destroy_row(k);
    }
}

// --- what things cost ---

// Of the lengths, each name once.
static double volume(const struct mgx_sizes *s, const struct mgx_size *k)
{
    double product = 1;
    for (int i = 0; i < s->len_count; i++)
        product *= (double)(k->lens[i] > 0 && !s->follows[i] ? k->lens[i] : 1);
    return product;
}

// Follows what is measured: down at once, since packing and other work slow some runs, up slowly.
static double follow(double was, double is)
{
    return was > 0 && is > was ? 0.9 * was + 0.1 * is : is;
}

// Does a plan save its run as much as making it takes? The steps for any size take half as long
// again as a plan, so a plan saves a third of their time. The first run of all packs the weights,
// which the steps for any size do in a form of their own: a plan from the start packs them once,
// and so do more plans behind it, until a run has been by these steps. Till then one may take twice
// what its run takes; more than that it takes where texts grow by a token.
static bool pays(const struct mgx_sizes *s, const struct mgx_size *k)
{
    if (s->unit_seconds > 0)
        return 3 * s->plan_seconds <= s->unit_seconds * volume(s, k);
    return s->own_seconds == 0 || s->plan_seconds <= 2 * s->own_seconds * volume(s, k);
}

// --- making a plan ---

// Would a plan stay? While there is room, yes. Else it takes the place of the least recently used
// one if its size came more often; that one has less to say against the next.
static bool has_room(struct mgx_sizes *s, const struct mgx_size *k)
{
    const size_t each = s->plans ? s->bytes / (size_t)s->plans : 0;
    struct mgx_size *victim = s->oldest;
    if (s->bytes + each <= s->limit)
        return true;
    while (victim && (victim->state != READY || victim->users))
        victim = victim->newer;
    return !victim || k->meetings > victim->meetings--;
}

// What makes sizes alike: which lengths are 0 and 1, since axes of these come and go, and values.
static uint64_t kind_of(const struct mgx_sizes *s, const struct mgx_size *k)
{
    int64_t like[MOST_LENS];
    memcpy(like, k->lens, key_bytes(s));
    for (int i = 0; i < s->len_count; i++)
        like[i] = like[i] < 2 ? like[i] : 2;
    return mgx_hash_bytes(like, key_bytes(s), 0);
}

// How many there are of a kind; as many are put into `out`.
static int find_histories(const struct mgx_sizes *s, uint64_t kind,
                          const struct mgx_pass_history **out)
{
    int count = 0;
    for (int i = 0; i < s->known_count; i++)
        if (s->known[i].kind == kind)
            out[count++] = s->known[i].history;
    return count;
}

// Takes the history, and keeps it if it led to a plan on a way of its own.
static void keep_history(struct mgx_sizes *s, uint64_t kind, struct mgx_pass_history *history,
                         bool good)
{
    if (history && good && s->known_count < HISTORIES)
        s->known[s->known_count++] = (struct known){kind, history};
    else
        free(history);
}

// With a makeshift a run waits for it, and what others packed is there to be taken.
static struct mgx_program *make(const struct mgx_sizes *s, struct mgx_size *k,
                                struct mgx_plan_makeshift *makeshift, struct mgx_pass_trail *trail)
{
    struct mgx_compile_options options = s->options;
    struct mgx_diag quiet = {.status = MGX_OK};
    struct mgx_program *p = NULL;
    const double start = mgx_clock_seconds();
    options.makeshift = makeshift;
    options.pass.trail = trail;
    mgx_cancel_pause(); // it serves later runs too
    const enum mgx_status status =
        mgx_specialise(&p, s->simplified, s->target, &options, &s->values, k->lens, &quiet);
    mgx_cancel_resume();
    k->seconds = mgx_clock_seconds() - start;
    return status == MGX_OK ? p : NULL; // what is wrong, the run will say
}

static void weigh(struct mgx_sizes *s, struct mgx_size *k, size_t bytes)
{
    k->bytes += bytes - k->plan_bytes;
    s->bytes += bytes - k->plan_bytes;
    k->plan_bytes = bytes;
}

// Hangs a new plan, or none, on a row; the old one is handed back.
static struct mgx_program *replace(struct mgx_sizes *s, struct mgx_size *k, struct mgx_program *p,
                                   size_t bytes)
{
    struct mgx_program *old = k->program;
    if (!p && old) { // it stays as it is
        k->state = READY;
        return NULL;
    }
    k->program = p;
    k->state = p ? READY : FAILED;
    weigh(s, k, bytes);
    s->plans += (p != NULL) - (old != NULL);
    s->made += p != NULL;
    return old;
}

// The best kernels of one size are packed: what the hasty plans of others would have to pack is
// mostly there now.
static void settle(struct mgx_sizes *s, double packed_seconds)
{
    s->lost_seconds = 0;
    for (struct mgx_size *k = s->newest; k; k = k->older)
        k->makeshift.saved_seconds = fmax(0, k->makeshift.saved_seconds - packed_seconds);
}

// Makes the plan of a row that its caller holds, and nobody else's run if it has one already. The
// lock is held before and after.
static void fill(struct mgx_sizes *s, struct mgx_size *k, bool soon)
{
    assert(k->users && k->state != MAKING && (k->state != READY || k->users == 1));
    struct mgx_plan_makeshift makeshift = {0};
    const uint64_t kind = kind_of(s, k);
    const struct mgx_pass_history *known[HISTORIES];
    struct mgx_pass_trail trail = {.known = known, .known_count = find_histories(s, kind, known)};
    k->state = MAKING;
    pthread_mutex_unlock(&s->lock);
    trail.made = calloc(1, sizeof *trail.made); // without it all passes run
    struct mgx_program *p = make(s, k, soon ? &makeshift : NULL, &trail);
    const size_t bytes = p ? s->target->bytes(p) : 0;
    pthread_mutex_lock(&s->lock);
    keep_history(s, kind, trail.made, p && trail.lost);
    k->makeshift = makeshift;
    if (p)
        s->plan_seconds = follow(s->plan_seconds, k->seconds);
    struct mgx_program *old = replace(s, k, p, bytes);
    struct mgx_size *gone = shrink(s);
    if (!gone && !old)
        return;
    pthread_mutex_unlock(&s->lock);
    destroy_rows(gone);
    mgx_program_destroy(old);
    pthread_mutex_lock(&s->lock);
}

// --- the thread ---

static void *work(void *user)
{
    struct mgx_sizes *s = user;
    enum { POLITE = 10 };
    setpriority(PRIO_PROCESS, 0, POLITE); // of this thread alone, on Linux
    pthread_mutex_lock(&s->lock);
    while (s->first_waiting && !s->stop) {
        struct mgx_size *k = s->first_waiting;
        s->first_waiting = k->waiting;
        if (!s->first_waiting)
            s->last_waiting = NULL;
        fill(s, k, false);
        k->users--;
    }
    s->at_work = false;
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void join(struct mgx_sizes *s)
{
    if (s->process && s->process == getpid()) // a forked child has no such thread
        pthread_join(s->thread, NULL);
    s->process = 0;
}

// The lock is held.
static bool start(struct mgx_sizes *s)
{
    if (s->at_work && s->process == getpid())
        return true;
    join(s); // it has ended but for its last step
    s->at_work = mgx_thread_start(&s->thread, work, s);
    s->process = s->at_work ? getpid() : 0;
    return s->at_work;
}

static void put_off(struct mgx_sizes *s, struct mgx_size *k)
{
    k->state = WAITING;
    k->waiting = NULL;
    k->users++;
    *(s->last_waiting ? &s->last_waiting->waiting : &s->first_waiting) = k;
    s->last_waiting = k;
    if (start(s))
        return;
    s->first_waiting = s->last_waiting = NULL; // no thread: nothing waits, the next meeting tries
    k->state = SEEN;
    k->users--;
}

// --- runs ---

// Does a plan that was made in haste get its best kernels now? When such plans, of whatever sizes,
// have lost half of what making this one anew takes: sizes that came so often come on. Its row is
// held by this run alone.
static bool is_due(struct mgx_sizes *s, const struct mgx_size *k)
{
    const struct mgx_plan_makeshift *m = &k->makeshift;
    if (k->state != READY || m->lost_seconds == 0)
        return false;
    s->lost_seconds += m->lost_seconds;
    return k->users == 1 && 2 * s->lost_seconds >= m->saved_seconds + s->plan_seconds;
}

static void meet(struct mgx_sizes *s, struct mgx_size *k)
{
    if (is_due(s, k)) {
        const double packed_seconds = k->makeshift.saved_seconds;
        fill(s, k, false);
        settle(s, packed_seconds);
        return;
    }
    const enum mgx_specialise_mode mode = s->options.specialise;
    const bool now = !s->only_beside && pays(s, k);
    if (k->state != SEEN || (k->meetings < MEETINGS && !now) || mode == MGX_SPECIALISE_NEVER ||
        !has_room(s, k))
        return;
    if (mode == MGX_SPECIALISE_BACKGROUND && !now) {
        put_off(s, k);
        return;
    }
    k->users++;
    fill(s, k, s->made > 0);
    k->users--;
}

// The entry of these lengths, as the newest; NULL where there is none and no memory for one.
static struct mgx_size *find_or_add(struct mgx_sizes *s, const int64_t *lens, uint64_t hash)
{
    struct mgx_size *k = find(s, lens, hash);
    if (!k)
        return add(s, lens, hash);
    unlink_use(s, k);
    link_newest(s, k);
    return k;
}

const struct mgx_program *mgx_sizes_take(struct mgx_sizes *s, const struct mgx_named_tensor *params,
                                         struct mgx_size **held)
{
    int64_t lens[MOST_LENS];
    const struct mgx_program *p = NULL;
    *held = NULL;
    assert(s->len_count <= MOST_LENS);
    if (!gather(s, params, lens))
        return NULL;
    pthread_mutex_lock(&s->lock);
    if (s->leaves_open)
        leave_open(s, lens);
    struct mgx_size *k = find_or_add(s, lens, mgx_hash_bytes(lens, key_bytes(s), 0));
    if (k) {
        k->meetings++;
        k->users++; // while a plan is made
        meet(s, k);
        k->users--;
        p = k->state == READY ? k->program : NULL;
        k->users++;
        *held = k;
    }
    struct mgx_size *gone = shrink(s);
    pthread_mutex_unlock(&s->lock);
    destroy_rows(gone);
    return p;
}

void mgx_sizes_give(struct mgx_sizes *s, struct mgx_size *held, bool own, double seconds)
{
    if (!held)
        return;
    pthread_mutex_lock(&s->lock);
    const struct mgx_program *p = held->state == READY ? held->program : NULL; // nobody replaces it
    pthread_mutex_unlock(&s->lock);
    const size_t bytes = p ? s->target->bytes(p) : 0; // what a run has chosen is the plan's too
    pthread_mutex_lock(&s->lock);
    held->users--;
    if (p)
        weigh(s, held, bytes);
    double *unit = own ? &s->own_seconds : &s->unit_seconds;
    if (seconds >= 0)
        *unit = follow(*unit, seconds / volume(s, held));
    struct mgx_size *gone = shrink(s);
    pthread_mutex_unlock(&s->lock);
    destroy_rows(gone);
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
    return s->newest && s->newest->state == READY ? s->newest->program : NULL;
}

// --- a size that is asked for by name ---

int mgx_sizes_axes(const struct mgx_sizes *s)
{
    return s->len_count;
}

static const struct mgx_named_lens *find_lens(const struct mgx_named_lens *given, int count,
                                              const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(given[i].name, name) == 0)
            return &given[i];
    return NULL;
}

static enum mgx_status check_axis(const struct mgx_ins *param, int axis, int64_t length,
                                  struct mgx_diag *diag)
{
    const struct mgx_dim d = mgx_shape_dim(&param->shape, axis);
    if (length >= d.min && length <= d.max)
        return MGX_OK;
    return mgx_fail(
        diag, MGX_INVALID, "axis %d of parameter %s: length %lld, allowed are %lld..%lld", axis,
        mgx_parameter_name(param), (long long)length, (long long)d.min, (long long)d.max);
}

static enum mgx_status check_given(const struct mgx_ins *param, const struct mgx_named_lens *given,
                                   struct mgx_diag *diag)
{
    if (given && given->rank != param->shape.rank)
        return mgx_fail(diag, MGX_INVALID, "parameter %s has %d axes, but %d lengths are given",
                        mgx_parameter_name(param), param->shape.rank, given->rank);
    for (int axis = 0; given && axis < given->rank; axis++)
        TRY(check_axis(param, axis, given->lens[axis], diag));
    return MGX_OK;
}

// The length that is given for an axis of this name; -1 if none is.
static int64_t length_of_name(struct mgx_ins *const *params, int param_count, const char *name,
                              const struct mgx_named_lens *given, int count)
{
    for (int i = 0; name && i < param_count; i++) {
        const struct mgx_named_lens *g = find_lens(given, count, mgx_parameter_name(params[i]));
        for (int axis = 0; g && axis < g->rank; axis++) {
            const char *own = mgx_shape_dim(&params[i]->shape, axis).name;
            if (own && strcmp(own, name) == 0)
                return g->lens[axis];
        }
    }
    return -1;
}

enum mgx_status mgx_sizes_lens(const struct mgx_sizes *s, const struct mgx_named_lens *given,
                               int count, int64_t *lens, struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(s->simplified);
    const int param_count = mgx_module_parameters(m, NULL, 0);
    struct mgx_ins **params = calloc((size_t)param_count + 1, sizeof(struct mgx_ins *));
    if (!params)
        return mgx_fail_memory(diag);
    mgx_module_parameters(m, params, param_count);
    for (int i = 0; i < param_count && diag->status == MGX_OK; i++)
        (void)!check_given(params[i], find_lens(given, count, mgx_parameter_name(params[i])), diag);
    for (int i = 0; i < s->len_count && diag->status == MGX_OK; i++) {
        const struct mgx_ins *param = params[s->axes[i].param];
        const int axis = s->axes[i].axis;
        const struct mgx_named_lens *g = find_lens(given, count, mgx_parameter_name(param));
        lens[i] = g ? g->lens[axis]
                    : length_of_name(params, param_count, mgx_shape_dim(&param->shape, axis).name,
                                     given, count);
        if (lens[i] < 0)
            mgx_fail(diag, MGX_INVALID, "axis %d of parameter %s has no length", axis,
                     mgx_parameter_name(param));
        else
            (void)!check_axis(param, axis, lens[i], diag);
    }
    free(params);
    return diag->status;
}

enum mgx_status mgx_sizes_fix(const struct mgx_sizes *s, const int64_t *lens, bool offload_copy,
                              struct mgx_program **out, struct mgx_diag *diag)
{
    struct mgx_compile_options options = s->options;
    options.offload_copy = offload_copy;
    return mgx_specialise(out, s->simplified, s->target, &options, NULL, lens, diag);
}

// --- what there is ---

static void explain_row(const struct mgx_sizes *s, const struct mgx_size *k, struct mgx_str *out)
{
    static const char *const names[] = {[SEEN] = "any size",
                                        [WAITING] = "any size, a plan is to be made",
                                        [MAKING] = "any size, a plan is being made",
                                        [READY] = "a plan of its own",
                                        [FAILED] = "any size, it cannot have a plan"};
    mgx_str_put(out, "size {");
    for (int i = 0; i < s->len_count; i++)
        if (k->lens[i] == MGX_LENGTH_OPEN)
            mgx_str_printf(out, "%sany", i ? ", " : "");
        else
            mgx_str_printf(out, "%s%lld", i ? ", " : "", (long long)k->lens[i]);
    mgx_str_printf(out, "}: %s, met %lld times", names[k->state], (long long)k->meetings);
    if (k->state == READY)
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
    const int count = mgx_module_parameters(m, NULL, 0);
    struct mgx_ins **params = MGX_NEW_ARRAY(&s->arena, struct mgx_ins *, count);
    if (!params || s->len_count > MOST_LENS) // sticky in the arena; more than is looked at
        return;
    mgx_module_parameters(m, params, count);
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
    const uint64_t hash = mgx_hash_bytes(lens, key_bytes(s), 0);
    pthread_mutex_lock(&s->lock);
    struct mgx_size *k = find(s, lens, hash) ? NULL : add(s, lens, hash);
    if (k) {
        k->users++;
        fill(s, k, false);
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
    int at[MOST_LENS] = {0}, rounds = 0;
    int64_t lens[MOST_LENS];
    struct mgx_dim *dims = MGX_NEW_ARRAY(&s->arena, struct mgx_dim, s->len_count);
    struct mgx_ins **params =
        MGX_NEW_ARRAY(&s->arena, struct mgx_ins *, mgx_module_parameters(m, NULL, 0));
    if (!dims || !params || s->values.count)
        return;
    mgx_module_parameters(m, params, mgx_module_parameters(m, NULL, 0));
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
    if (key_bytes(s) >
        MOST_LENS * sizeof(int64_t)) { // more than any model has: taken by the steps for any size
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
    join(s);
    for (struct mgx_size *k = s->newest, *older; k; k = older) {
        older = k->older;
        destroy_row(k);
    }
    for (int i = 0; i < s->known_count; i++)
        free(s->known[i].history);
    mgx_program_destroy(s->simplified);
    mgx_plan_shared_release(s->options.shared);
    pthread_mutex_destroy(&s->lock);
    mgx_arena_fini(&s->arena);
    free(s);
}
