// SPDX-License-Identifier: MIT
// Watching values; see capture.h.
//
//     dot(x, w)   =>   watch[k](x), dot(x, w)
//
// The clone gets a watch beside every site: an operator that reads the value, gives nothing that
// anybody reads, and may not be removed. It is an operator object of this one calibration, so any
// target runs it as it runs what it has no kernel for, in bodies of loops and branches too.
#include "quant/capture.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct watcher {
    struct mgx_op op;
    pthread_mutex_t lock; // runs of a target may have several threads
    struct mgx_stats **stats;
    int *axes;
};

struct watched { // a value, and along which axis its channels lie
    const struct mgx_ins *ins;
    int axis;
};

static enum mgx_status watch_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    (void)c;
    *out = mgx_shape_scalar(MGX_BOOL);
    return MGX_OK;
}

static enum mgx_status watch_compute(struct mgx_compute_call *c)
{
    struct watcher *w = (struct watcher *)c->op->user;
    const int64_t k = mgx_attr_int(c->op, c->attr, "ins_index");
    *(bool *)c->out->data = false;
    pthread_mutex_lock(&w->lock);
    const enum mgx_status status = mgx_stats_add(w->stats[k], c->in[0], w->axes[k], c->diag);
    pthread_mutex_unlock(&w->lock);
    return status;
}

static void init_watcher(struct watcher *w)
{
    *w = (struct watcher){.op = {.name = "capture",
                                 .meaning = "sees x",
                                 .fields = mgx_op_capture.fields,
                                 .attr_size = mgx_op_capture.attr_size,
                                 .in_min = 1,
                                 .in_max = 1,
                                 .flags = MGX_OP_EFFECT | MGX_OP_IMPURE,
                                 .shape = watch_shape,
                                 .compute = watch_compute,
                                 .user = w}};
    pthread_mutex_init(&w->lock, NULL);
}

// --- the clone ---

static int find_watched(const struct watched *list, int count, const struct mgx_ins *ins, int axis)
{
    for (int i = count - 1; i >= 0; i--) // a neighbour, mostly
        if (list[i].ins == ins && list[i].axis == axis)
            return i;
    return -1;
}

static enum mgx_status add_watch(struct watcher *w, const struct mgx_site *site, int input, int k,
                                 struct mgx_diag *diag)
{
    void *attr = NULL;
    struct mgx_ins *in[1] = {site->ins->in[input]};
    TRY(mgx_attr_make(&w->op, MGX_ATTRS(mgx_int("ins_index", k)), &site->ins->owner->program->arena,
                      &attr, diag));
    mgx_insert(site->ins->owner, site->ins, &w->op, attr, in, 1, NULL, 0);
    return mgx_program_status(site->ins->owner->program, diag);
}

// By channel only where the number of channels is known.
static int64_t channels_of(const struct mgx_site *site, int input, bool by_channel)
{
    const struct mgx_shape *s = &site->ins->in[input]->shape;
    const int axis = site->axis[0];
    return by_channel && input == 0 && axis < s->rank && mgx_shape_is_static(s) ? s->lens[axis] : 0;
}

static enum mgx_status instrument(struct watcher *w, const struct mgx_sites *sites, bool by_channel,
                                  struct mgx_arena *arena, struct mgx_stats **seen,
                                  struct mgx_diag *diag)
{
    int count = 0;
    struct watched *list = MGX_NEW_ARRAY(arena, struct watched, 2 * sites->count);
    w->stats = MGX_NEW_ARRAY(arena, struct mgx_stats *, 2 * sites->count);
    w->axes = MGX_NEW_ARRAY(arena, int, 2 * sites->count);
    if (!list || !w->stats || !w->axes)
        return mgx_fail_memory(diag);
    for (int64_t i = 0; i < 2 * sites->count; i++) {
        const struct mgx_site *site = &sites->v[i / 2];
        const int input = (int)(i % 2), axis = input ? -1 : site->axis[0];
        const struct mgx_ins *x = site->ins->in[input];
        if (site->constant[input])
            continue;
        int k = find_watched(list, count, x, axis);
        if (k < 0) {
            k = count++;
            list[k] = (struct watched){x, axis};
            w->axes[k] = axis < 0 ? 0 : axis;
            w->stats[k] = MGX_NEW(arena, struct mgx_stats);
            if (!w->stats[k])
                return mgx_fail_memory(diag);
            TRY(mgx_stats_init(w->stats[k], arena, channels_of(site, input, by_channel), diag));
            TRY(add_watch(w, site, input, k, diag));
        }
        seen[i] = w->stats[k];
    }
    return MGX_OK;
}

static enum mgx_status run_all(struct mgx_program *p, const struct mgx_quant_runner *runner,
                               struct mgx_diag *diag)
{
    const int count = mgx_module_result_count(mgx_program_main(p));
    TRY(runner->compile(runner->user, p, diag));
    for (int i = 0; i < runner->samples; i++) {
        struct mgx_tensor *results = calloc((size_t)count + 1, sizeof *results);
        if (!results)
            return mgx_fail_memory(diag);
        if (runner->progress)
            runner->progress(runner->user, "calibrating", i, runner->samples);
        const enum mgx_status status = runner->run(runner->user, p, i, results, count, diag);
        for (int k = 0; status == MGX_OK && k < count; k++)
            mgx_tensor_release(&results[k]);
        free(results);
        if (status != MGX_OK) {
            mgx_where(diag, "calibration sample %d", i);
            return status;
        }
    }
    if (runner->progress && runner->samples)
        runner->progress(runner->user, "calibrating", runner->samples, runner->samples);
    return MGX_OK;
}

enum mgx_status mgx_capture(const struct mgx_program *p, const struct mgx_sites *sites,
                            const struct mgx_quant_options *options,
                            const struct mgx_quant_runner *runner, bool by_channel,
                            struct mgx_arena *arena, struct mgx_stats ***out, struct mgx_diag *diag)
{
    assert(runner->run && runner->compile && runner->samples >= 0);
    struct watcher w;
    struct mgx_sites own = {0};
    struct mgx_program *clone = NULL;
    *out = MGX_NEW_ARRAY(arena, struct mgx_stats *, 2 * sites->count);
    if (!*out)
        return mgx_fail_memory(diag);
    init_watcher(&w);
    enum mgx_status status = mgx_program_clone(&clone, p, diag);
    if (status == MGX_OK)
        status = mgx_sites_find(clone, options->names, options->name_count, arena, &own, diag);
    assert(status != MGX_OK || own.count == sites->count);
    if (status == MGX_OK)
        status = instrument(&w, &own, by_channel, arena, *out, diag);
    if (status == MGX_OK && runner->samples)
        status = run_all(clone, runner, diag);
    mgx_program_destroy(clone);
    pthread_mutex_destroy(&w.lock);
    return status;
}
