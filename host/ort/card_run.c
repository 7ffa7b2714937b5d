// SPDX-License-Identifier: MIT
// Runs over a card's memory.
//
//     a program of fixed sizes     takes the host's addresses for what goes in and comes out
//     one with open sizes          makes such a program for every set of lengths that comes, which
//                                  shares its weights; 32 of them, the ones used last
//     lengths that it cannot fix   go through the host's memory and the steps for any size
//
// A result whose size only the run knows is brought to the place that the host then makes for it.
// Cost of a run: a look-up under a lock, and the engine's run. Nothing is copied where sizes are fixed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "card.h"
#include "fused.h"

enum { MOST_PLANS = 32, FEW = 32, PLACE_NAME = 40 };

struct result {
    bool sized; // before the run
    size_t rank;
    size_t lens[MOST_RANK];
    char name[PLACE_NAME]; // of the parameter that says where it goes
};

struct plan {
    struct plan *next;
    migraphx_program_t program; // NULL: these lengths cannot be fixed
    bool lent;                  // the program is the fused one's
    size_t *lens;               // of all inputs, one after the other
    struct result *results;
    int users;
};

struct card_plans {
    const struct fused *fused;
    struct card *card;
    bool open, makes;
    pthread_mutex_t lock, making; // of the list; of who makes one
    struct plan *first;
};

static void plan_destroy(struct plan *p)
{
    if (!p)
        return;
    if (!p->lent)
        migraphx_program_destroy(p->program);
    free(p->lens);
    free(p->results);
    free(p);
}

// --- where results go ---

static OrtStatus *read_place(const struct fused *f, struct result *r, size_t index,
                             const_migraphx_shape_t shape)
{
    const size_t *lens = NULL;
    size_t size = 0;
    migraphx_shape_datatype_t type;
    ENGINE_TRY(f->host, f->name, migraphx_shape_type(&type, shape));
    ENGINE_TRY(f->host, f->name, migraphx_shape_rank(&r->rank, shape));
    ENGINE_TRY(f->host, f->name, migraphx_shape_lengths(&lens, &size, shape));
    if (type != f->types[f->out_elements[index]])
        return host_fail(f->host, ORT_FAIL,
                         "MIGraphX: result %zu of %s is of another type than the model says", index,
                         f->name);
    r->sized = r->rank <= MOST_RANK;
    for (size_t i = 0; i < r->rank && r->sized; i++)
        r->lens[i] = lens[i];
    return NULL;
}

static OrtStatus *read_places(const struct fused *f, struct plan *p)
{
    migraphx_program_parameter_shapes_t shapes = NULL;
    OrtStatus *status = NULL;
    p->results = calloc(f->out_count + 1, sizeof *p->results);
    if (!p->results)
        return host_no_memory(f->host);
    ENGINE_TRY(f->host, f->name, migraphx_program_get_parameter_shapes(&shapes, p->program));
    for (size_t i = 0; i < f->out_count && !status; i++) {
        const_migraphx_shape_t shape = NULL;
        struct result *r = &p->results[i];
        snprintf(r->name, sizeof r->name, "main:#output_%zu", i);
        if (!migraphx_program_parameter_shapes_get(&shape, shapes, r->name) && shape)
            status = read_place(f, r, i, shape);
    }
    migraphx_program_parameter_shapes_destroy(shapes);
    return status;
}

// --- plans ---

static bool has_lens(const struct plan *p, const migraphx_buffer *in, size_t count)
{
    const size_t *at = p->lens;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < in[i].rank; k++)
            if (*at++ != in[i].lens[k])
                return false;
    return true;
}

static struct plan *find(struct card_plans *c, const migraphx_buffer *in, size_t count)
{
    struct plan *found = NULL;
    pthread_mutex_lock(&c->lock);
    for (struct plan **at = &c->first, *p; (p = *at) != NULL && !found; at = &p->next)
        if (!c->open || has_lens(p, in, count)) {
            *at = p->next; // to the front
            p->next = c->first;
            c->first = found = p;
            p->users++;
            break;
        }
    pthread_mutex_unlock(&c->lock);
    return found;
}

static void give(struct card_plans *c, struct plan *p)
{
    pthread_mutex_lock(&c->lock);
    p->users--;
    pthread_mutex_unlock(&c->lock);
}

// The last ones that nobody runs.
static void drop(struct card_plans *c)
{
    struct plan **last = NULL;
    size_t count = 0;
    for (struct plan **at = &c->first; *at; at = &(*at)->next, count++)
        if (!(*at)->users)
            last = at;
    if (count <= MOST_PLANS || !last)
        return;
    struct plan *gone = *last;
    *last = gone->next;
    plan_destroy(gone);
}

// Lengths that the engine cannot fix are no failure: such runs go another way.
static OrtStatus *specialise(const struct card_plans *c, struct plan *p, const migraphx_buffer *in,
                             size_t count)
{
    const struct fused *f = c->fused;
    const char **names = calloc(count + 1, sizeof *names);
    size_t *ranks = calloc(count + 1, sizeof *ranks);
    OrtStatus *status = names && ranks ? NULL : host_no_memory(f->host);
    for (size_t i = 0; i < count && !status; i++) {
        names[i] = in[i].name;
        ranks[i] = in[i].rank;
    }
    if (!status &&
        migraphx_program_specialise_on_card(&p->program, f->program, names, p->lens, ranks, count))
        p->program = NULL;
    free(names);
    free(ranks);
    return status;
}

static OrtStatus *copy_lens(const struct host *h, struct plan *p, const migraphx_buffer *in,
                            size_t count)
{
    size_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += in[i].rank;
    p->lens = calloc(all + 1, sizeof *p->lens);
    if (!p->lens)
        return host_no_memory(h);
    for (size_t i = 0, at = 0; i < count; at += in[i++].rank)
        if (in[i].rank)
            memcpy(p->lens + at, in[i].lens, in[i].rank * sizeof *p->lens);
    return NULL;
}

static OrtStatus *make(struct card_plans *c, const migraphx_buffer *in, size_t count,
                       struct plan **out)
{
    struct plan *p = NEWLY(struct plan);
    if (!p)
        return host_no_memory(c->fused->host);
    OrtStatus *status = copy_lens(c->fused->host, p, in, count);
    if (!status && c->makes)
        status = specialise(c, p, in, count);
    if (!status && p->program)
        status = read_places(c->fused, p);
    if (status) {
        plan_destroy(p);
        return status;
    }
    p->users = 1;
    pthread_mutex_lock(&c->lock);
    p->next = c->first;
    c->first = p;
    drop(c);
    pthread_mutex_unlock(&c->lock);
    *out = p;
    return NULL;
}

static OrtStatus *get_plan(struct card_plans *c, const migraphx_buffer *in, size_t count,
                           struct plan **out)
{
    OrtStatus *status = NULL;
    if ((*out = find(c, in, count)) != NULL)
        return NULL;
    pthread_mutex_lock(&c->making);
    if ((*out = find(c, in, count)) == NULL) // another one may have made it meanwhile
        status = make(c, in, count, out);
    pthread_mutex_unlock(&c->making);
    return status;
}

// --- results whose size the run told ---

static OrtStatus *give_result(const struct card_plans *c, OrtKernelContext *context, size_t index,
                              const_migraphx_argument_t result)
{
    const struct fused *f = c->fused;
    const struct host *h = f->host;
    const_migraphx_shape_t shape = NULL;
    const size_t *lens = NULL;
    const char *where = "";
    char *bytes = NULL;
    void *to = NULL;
    size_t rank = 0, axes = 0;
    OrtValue *value = NULL;
    migraphx_shape_datatype_t type;
    struct copy copy = {0};
    ENGINE_TRY(h, f->name, migraphx_argument_shape(&shape, result));
    ENGINE_TRY(h, f->name, migraphx_shape_type(&type, shape));
    ENGINE_TRY(h, f->name, migraphx_shape_lengths(&lens, &rank, shape));
    ENGINE_TRY(h, f->name, migraphx_shape_rank(&axes, shape)); // 0 of a scalar
    ENGINE_TRY(h, f->name, migraphx_argument_device(&where, result));
    if (type != f->types[f->out_elements[index]])
        return host_fail(h, ORT_FAIL,
                         "MIGraphX: result %zu of %s is of another type than the model says", index,
                         f->name);
    HOST_TRY(
        h->KernelContext_GetOutput(context, index, (const int64_t *)lens, axes ? rank : 0, &value));
    if (!value)
        return NULL;
    ENGINE_TRY(h, f->name, migraphx_argument_buffer(&bytes, result));
    HOST_TRY(h->GetTensorSizeInBytes(value, &copy.size));
    HOST_TRY(h->GetTensorMutableData(value, &to));
    copy.to = to;
    copy.from = bytes;
    copy.way = strcmp(where, "host") == 0 ? migraphx_copy_in : migraphx_copy_within;
    return copy.size ? card_copy(c->card, &copy, 1) : NULL;
}

// `plan` NULL: all of them.
static OrtStatus *give_results(const struct card_plans *c, OrtKernelContext *context,
                               const struct plan *plan, migraphx_arguments_t results)
{
    for (size_t i = 0; i < c->fused->out_count; i++) {
        const_migraphx_argument_t result = NULL;
        if (plan && plan->results[i].sized)
            continue;
        ENGINE_TRY(c->fused->host, c->fused->name, migraphx_arguments_get(&result, results, i));
        HOST_TRY(give_result(c, context, i, result));
    }
    return NULL;
}

// --- runs by addresses ---

static OrtStatus *place_results(const struct fused *f, OrtKernelContext *context,
                                const struct plan *plan, migraphx_buffer *buffers, size_t *count,
                                bool *rest)
{
    const struct host *h = f->host;
    for (size_t i = 0; i < f->out_count; i++) {
        const struct result *r = &plan->results[i];
        OrtValue *value = NULL;
        void *at = NULL;
        *rest |= !r->sized;
        if (!r->sized)
            continue;
        HOST_TRY(h->KernelContext_GetOutput(context, i, (const int64_t *)r->lens, r->rank, &value));
        if (!value)
            continue;
        HOST_TRY(h->GetTensorMutableData(value, &at));
        buffers[(*count)++] = (migraphx_buffer){.name = r->name,
                                                .type = f->types[f->out_elements[i]],
                                                .lens = r->lens,
                                                .rank = r->rank,
                                                .data = at};
    }
    return NULL;
}

static OrtStatus *run_plan(const struct card_plans *c, OrtKernelContext *context,
                           const struct plan *plan, migraphx_buffer *buffers, size_t count)
{
    const struct fused *f = c->fused;
    migraphx_arguments_t results = NULL;
    bool rest = false;
    HOST_TRY(place_results(f, context, plan, buffers, &count, &rest));
    ENGINE_TRY(f->host, f->name,
               migraphx_program_run_buffers(rest ? &results : NULL, plan->program, buffers, count,
                                            NULL, NULL));
    OrtStatus *status = rest ? give_results(c, context, plan, results) : NULL;
    migraphx_arguments_destroy(results);
    return status;
}

static OrtStatus *run_in_room(const struct card_plans *c, OrtKernelContext *context,
                              const struct plan *plan, const migraphx_buffer *in, size_t count)
{
    migraphx_buffer few[FEW], *buffers = few;
    const size_t all = count + c->fused->out_count;
    if (all > FEW && !(buffers = calloc(all, sizeof *buffers)))
        return host_no_memory(c->fused->host);
    for (size_t i = 0; i < count; i++)
        buffers[i] = in[i];
    OrtStatus *status = run_plan(c, context, plan, buffers, count);
    if (buffers != few)
        free(buffers);
    return status;
}

// --- runs through the host's memory ---

// Bytes of every input, side by side.
static OrtStatus *measure(const struct fused *f, const OrtKernelContext *context, struct copy *out,
                          size_t *bytes)
{
    enum { APART = 64 };
    size_t count = 0;
    *bytes = 0;
    for (size_t i = 0; i < f->in_count; i++) {
        const OrtValue *value = NULL;
        if (!f->in_names[i])
            continue;
        HOST_TRY(f->host->KernelContext_GetInput(context, i, &value));
        HOST_TRY(f->host->GetTensorSizeInBytes(value, &out[count].size));
        out[count].way = migraphx_copy_out;
        *bytes += (out[count++].size + APART - 1) / APART * APART;
    }
    return NULL;
}

static OrtStatus *bring(const struct card_plans *c, struct copy *copies, migraphx_buffer *buffers,
                        size_t count, char *room)
{
    enum { APART = 64 };
    for (size_t i = 0; i < count; i++) {
        copies[i].from = buffers[i].data;
        copies[i].to = room;
        buffers[i].data = room;
        room += (copies[i].size + APART - 1) / APART * APART;
    }
    return card_copy(c->card, copies, count);
}

static OrtStatus *run_brought(const struct card_plans *c, OrtKernelContext *context,
                              struct copy *copies, migraphx_buffer *buffers, size_t count)
{
    const struct fused *f = c->fused;
    migraphx_arguments_t results = NULL;
    size_t bytes = 0;
    HOST_TRY(measure(f, context, copies, &bytes));
    char *room = malloc(bytes + 1);
    OrtStatus *status = room ? bring(c, copies, buffers, count, room) : host_no_memory(f->host);
    if (!status && migraphx_program_run_buffers(&results, f->program, buffers, count, NULL, NULL))
        status = host_pass_on(f->host, f->name);
    if (!status)
        status = give_results(c, context, NULL, results);
    migraphx_arguments_destroy(results);
    free(room);
    return status;
}

static OrtStatus *run_through_host(const struct card_plans *c, OrtKernelContext *context,
                                   const migraphx_buffer *in, size_t count)
{
    struct copy *copies = calloc(count + 1, sizeof *copies);
    migraphx_buffer *buffers = calloc(count + 1, sizeof *buffers);
    if (buffers && count)
        memcpy(buffers, in, count * sizeof *buffers);
    OrtStatus *status = copies && buffers ? run_brought(c, context, copies, buffers, count)
                                          : host_no_memory(c->fused->host);
    free(copies);
    free(buffers);
    return status;
}

static OrtStatus *compute(struct card_plans *c, OrtKernelContext *context,
                          const migraphx_buffer *buffers, size_t count)
{
    struct plan *plan = NULL;
    HOST_TRY(get_plan(c, buffers, count, &plan));
    OrtStatus *status = plan->program ? run_in_room(c, context, plan, buffers, count)
                                      : run_through_host(c, context, buffers, count);
    give(c, plan);
    return status;
}

OrtStatus *card_compute(struct card_plans *c, OrtKernelContext *context, migraphx_buffer *buffers,
                        size_t count)
{
    struct filled filled = {{0}};
    if (c->fused->fill.there && c->open && c->makes)
        HOST_TRY(card_fill_run(c->card, c->fused, buffers, &filled));
    OrtStatus *status = compute(c, context, buffers, count);
    card_fill_end(c->card, &filled);
    return status;
}

// --- the whole ---

// A program that takes the card's addresses as it is.
static OrtStatus *lend_program(struct card_plans *c)
{
    struct plan *p = c->first = NEWLY(struct plan);
    if (!p)
        return host_no_memory(c->fused->host);
    p->program = c->fused->program;
    p->lent = true;
    return read_places(c->fused, p);
}

OrtStatus *card_plans_create(struct card_plans **out, const struct fused *f, struct card *card,
                             bool make_plans)
{
    bool fixed = false;
    ENGINE_TRY(f->host, f->name, migraphx_program_takes_device_data(&fixed, f->program));
    struct card_plans *c = NEWLY(struct card_plans);
    if (!c)
        return host_no_memory(f->host);
    *c = (struct card_plans){.fused = f, .card = card, .open = !fixed, .makes = make_plans};
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->making, NULL);
    OrtStatus *status = fixed ? lend_program(c) : NULL;
    if (status)
        card_plans_destroy(c);
    else
        *out = c;
    return status;
}

void card_plans_destroy(struct card_plans *c)
{
    if (!c)
        return;
    for (struct plan *p = c->first, *next; p; p = next) {
        next = p->next;
        plan_destroy(p);
    }
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->making);
    free(c);
}
