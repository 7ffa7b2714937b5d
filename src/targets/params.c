// SPDX-License-Identifier: MIT
// Parameters of runs; see params.h.
#include "targets/params.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct mgx_params {
    struct mgx_ins **ins; // in order of creation
    int count;
    struct mgx_map by_name; // name -> its entry in ins
    pthread_mutex_t lock;   // of the list
    struct mgx_params_room *rooms;
};

struct mgx_params_room {
    struct mgx_params_room *next;
    int count;
    const struct mgx_tensor **given;  // what the run gives
    struct mgx_named_tensor *tensors; // what the target gets
};

// --- checks ---

// Sizes that axes of one name turned out to have.
struct named_sizes {
    const char *name[MGX_MAX_RANK];
    int64_t size[MGX_MAX_RANK];
    int count;
};

// The axes that are out of their ranges, by name where they have one.
static void say_ranges(struct mgx_str *out, const struct mgx_shape *got,
                       const struct mgx_shape *want)
{
    for (int axis = 0; want->dims && got->rank == want->rank && axis < want->rank; axis++) {
        const struct mgx_dim d = mgx_shape_dim(want, axis);
        const int64_t is = got->lens[axis];
        if (is >= d.min && is <= d.max)
            continue;
        mgx_str_printf(out, "; axis %d", axis);
        if (d.name)
            mgx_str_printf(out, " (%s)", d.name);
        mgx_str_printf(out, " has length %lld, allowed are %lld..%lld", (long long)is,
                       (long long)d.min, (long long)d.max);
    }
}

static enum mgx_status mismatch(const struct mgx_ins *param, const struct mgx_shape *got,
                                struct mgx_diag *diag)
{
    const struct mgx_shape *want = &param->shape;
    const char *name = mgx_parameter_name(param);
    const char *hint = mgx_program_find_hint(param->owner->program, name);
    struct mgx_str text = {0};
    mgx_str_put(&text, "Incorrect shape {");
    mgx_shape_print(&text, got);
    mgx_str_printf(&text, "} for parameter: %s should be: ", name);
    mgx_shape_print(&text, want);
    say_ranges(&text, got, want);
    if (mgx_type_is_number(got->type) && mgx_type_is_number(want->type) && got->type != want->type)
        mgx_str_printf(&text,
                       "; its values are of type %s and %s is wanted: convert them before the run",
                       mgx_type_name(got->type), mgx_type_name(want->type));
    if (hint && got->type == want->type)
        mgx_str_printf(&text, "\n  %s", hint);
    mgx_fail(diag, MGX_INVALID, "%s", mgx_str_text(&text));
    mgx_str_fini(&text);
    return MGX_INVALID;
}

// A named dimension has one size in the whole run. Beyond MGX_MAX_RANK names nothing is checked.
static bool name_agrees(struct named_sizes *sizes, const char *name, int64_t size)
{
    for (int i = 0; i < sizes->count; i++)
        if (strcmp(sizes->name[i], name) == 0)
            return sizes->size[i] == size;
    if (sizes->count < MGX_MAX_RANK) {
        sizes->name[sizes->count] = name;
        sizes->size[sizes->count++] = size;
    }
    return true;
}

static bool lens_fit(const struct mgx_shape *got, const struct mgx_shape *want)
{
    if (got->type != want->type)
        return false;
    if (want->unranked)
        return true;
    if (mgx_shape_is_static(want))
        return mgx_shape_same_lens(got, want);
    if (got->rank != want->rank)
        return false;
    for (int axis = 0; axis < want->rank; axis++) {
        const struct mgx_dim range = mgx_shape_dim(want, axis);
        if (got->lens[axis] < range.min || got->lens[axis] > range.max)
            return false;
    }
    return true;
}

// Every member of a sequence fits its element shape; a tuple's members fit one by one, and an
// absent optional is a tuple without members. Recursion follows the nesting of the declared type.
static bool tensor_fits(const struct mgx_tensor *got, const struct mgx_shape *want)
{
    const bool sequence = want->type == MGX_SEQUENCE;
    if (!sequence && want->type != MGX_TUPLE)
        return lens_fit(&got->shape, want);
    if (got->shape.type != want->type || !want->sub_count)
        return got->shape.type == want->type;
    if (!sequence && got->sub_count && got->sub_count != want->sub_count)
        return false;
    for (int i = 0; i < got->sub_count; i++)
        if (!tensor_fits(&got->sub[i], &want->sub[sequence ? 0 : i]))
            return false;
    return true;
}

static enum mgx_status check_names(const struct mgx_ins *param, const struct mgx_shape *got,
                                   struct named_sizes *sizes, struct mgx_diag *diag)
{
    const struct mgx_shape *want = &param->shape;
    if (want->unranked || !want->dims)
        return MGX_OK;
    for (int axis = 0; axis < want->rank; axis++) {
        const char *name = mgx_shape_dim(want, axis).name;
        if (name && !name_agrees(sizes, name, got->lens[axis]))
            return mgx_fail(diag, MGX_INVALID,
                            "axis %d of parameter %s has length %lld, but dimension \"%s\" has "
                            "another length in an earlier parameter",
                            axis, mgx_parameter_name(param), (long long)got->lens[axis], name);
    }
    return MGX_OK;
}

// Strides of axes of length 1 mean nothing.
static bool same_layout(const struct mgx_shape *got, const struct mgx_shape *want)
{
    if (got->rank != want->rank)
        return got->rank + want->rank == 1; // rank 0 and {1}
    for (int axis = 0; axis < got->rank; axis++)
        if (got->lens[axis] != 1 && got->strides[axis] != want->strides[axis])
            return false;
    return true;
}

// `got` seen with exactly the shape the program declares; a copy where the layout differs.
static enum mgx_status lay_out(const struct mgx_tensor *got, const struct mgx_shape *want,
                               struct mgx_tensor *out, struct mgx_diag *diag)
{
    if (got->shape.type == MGX_TUPLE || got->shape.type == MGX_SEQUENCE) {
        *out = mgx_tensor_share(got);
        return MGX_OK;
    }
    const bool any = want->unranked || !mgx_shape_is_static(want);
    if (any && got->storage && got->storage->grows) { // whoever reads it here takes any strides
        *out = mgx_tensor_share(got);
        return MGX_OK;
    }
    if (any)
        return mgx_tensor_pack(out, got, diag);
    if (same_layout(&got->shape, want) || mgx_shape_elements(want) == 0) {
        *out = mgx_tensor_view(got, want, 0);
        return MGX_OK;
    }
    struct mgx_tensor same_rank = *got; // rank 0 copies as {1} and the other way round
    if (same_rank.shape.rank != want->rank)
        same_rank.shape = *want;
    TRY(mgx_tensor_create(out, want, diag));
    mgx_tensor_copy(&same_rank, out);
    return MGX_OK;
}

// A name in MIGraphX's words, and those that were given: a misspelt one is seen at once.
static enum mgx_status missing(const char *name, const struct mgx_run *run, struct mgx_diag *diag)
{
    enum { SHOWN = 8 };
    struct mgx_str text = {0};
    mgx_str_printf(&text, "Parameter not found: %s", name);
    mgx_str_put(&text, run->param_count ? "; given: " : "; none was given");
    for (int i = 0; i < run->param_count && i < SHOWN; i++)
        mgx_str_printf(&text, "%s\"%s\"", i ? ", " : "", run->params[i].name);
    if (run->param_count > SHOWN)
        mgx_str_printf(&text, " and %d more", run->param_count - SHOWN);
    mgx_fail(diag, MGX_NOT_FOUND, "%s", mgx_str_text(&text));
    mgx_str_fini(&text);
    return MGX_NOT_FOUND;
}

// Of bytes that are the caller's alone nobody can tell where they lie: where the program wants
// them.
static const struct mgx_memory *memory_of(const struct mgx_tensor *got, const struct mgx_ins *param)
{
    const bool known = got->storage || !mgx_shape_is_static(&param->shape);
    return known ? mgx_tensor_memory(got) : param->owner->program->executable->memory;
}

// Bytes that the host cannot touch are taken as they are, or not at all.
static enum mgx_status lay_out_elsewhere(const char *name, const struct mgx_tensor *got,
                                         const struct mgx_memory *memory,
                                         const struct mgx_shape *want, struct mgx_tensor *out,
                                         struct mgx_diag *diag)
{
    if (want->unranked || !mgx_shape_is_static(want))
        return mgx_fail(diag, MGX_INVALID,
                        "parameter %s has sizes of its own in every run and lies in memory of %s, "
                        "not of the host",
                        name, memory->name);
    if (!same_layout(&got->shape, want) && mgx_shape_elements(want) != 0)
        return mgx_fail(diag, MGX_INVALID,
                        "parameter %s lies in memory of %s with other strides than the program's",
                        name, memory->name);
    *out = mgx_tensor_view(got, want, 0);
    return MGX_OK;
}

static enum mgx_status settle(const struct mgx_tensor *got, const struct mgx_ins *param,
                              struct named_sizes *sizes, struct mgx_named_tensor *out,
                              struct mgx_diag *diag)
{
    const char *name = mgx_parameter_name(param);
    if (!tensor_fits(got, &param->shape))
        return mismatch(param, &got->shape, diag);
    TRY(check_names(param, &got->shape, sizes, diag));
    out->name = name;
    if (memory_of(got, param))
        return lay_out_elsewhere(name, got, memory_of(got, param), &param->shape, &out->tensor,
                                 diag);
    struct mgx_tensor aligned; // callers' bytes may lie anywhere
    TRY(mgx_tensor_align(&aligned, got, diag));
    const enum mgx_status status = lay_out(&aligned, &param->shape, &out->tensor, diag);
    mgx_tensor_release(&aligned);
    return status;
}

// --- rooms ---

static void destroy_room(struct mgx_params_room *room)
{
    if (room) {
        free(room->given);
        free(room->tensors);
    }
    free(room);
}

static struct mgx_params_room *create_room(int count)
{
    struct mgx_params_room *room = calloc(1, sizeof *room);
    if (!room)
        return NULL;
    room->count = count;
    room->given = calloc((size_t)count + 1, sizeof *room->given);
    room->tensors = calloc((size_t)count + 1, sizeof *room->tensors);
    if (room->given && room->tensors)
        return room;
    destroy_room(room);
    return NULL;
}

static struct mgx_params_room *find_room(struct mgx_params *params)
{
    pthread_mutex_lock(&params->lock);
    struct mgx_params_room *room = params->rooms;
    if (room)
        params->rooms = room->next;
    pthread_mutex_unlock(&params->lock);
    return room ? room : create_room(params->count);
}

void mgx_params_give(struct mgx_params *params, struct mgx_params_room *room)
{
    for (int i = 0; i < room->count; i++) {
        room->given[i] = NULL;
        mgx_tensor_release(&room->tensors[i].tensor);
    }
    pthread_mutex_lock(&params->lock);
    room->next = params->rooms;
    params->rooms = room;
    pthread_mutex_unlock(&params->lock);
}

const struct mgx_named_tensor *mgx_params_list(const struct mgx_params_room *room, int *count)
{
    *count = room->count;
    return room->tensors;
}

enum mgx_status mgx_params_pack(struct mgx_params_room *room, int param, struct mgx_diag *diag)
{
    struct mgx_tensor *t = &room->tensors[param].tensor, packed;
    assert(param >= 0 && param < room->count);
    if (!t->storage || !t->storage->grows)
        return MGX_OK;
    TRY(mgx_tensor_pack(&packed, t, diag));
    mgx_tensor_release(t);
    *t = packed;
    return MGX_OK;
}

enum mgx_status mgx_params_take(struct mgx_params *params, const struct mgx_run *run,
                                struct mgx_params_room **out, struct mgx_diag *diag)
{
    struct mgx_params_room *room = find_room(params);
    if (!room)
        return mgx_fail_memory(diag);
    for (int i = 0; i < run->param_count; i++) {
        struct mgx_ins **const at = mgx_map_find(&params->by_name, run->params[i].name);
        if (at && !room->given[at - params->ins])
            room->given[at - params->ins] = &run->params[i].tensor;
    }
    struct named_sizes sizes = {.count = 0};
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < room->count && status == MGX_OK; i++)
        status = room->given[i]
                     ? settle(room->given[i], params->ins[i], &sizes, &room->tensors[i], diag)
                     : missing(mgx_parameter_name(params->ins[i]), run, diag);
    if (status == MGX_OK)
        *out = room;
    else
        mgx_params_give(params, room);
    return status;
}

// --- of a program ---

void mgx_params_destroy(struct mgx_params *params)
{
    if (!params)
        return;
    for (struct mgx_params_room *room = params->rooms, *next; room; room = next) {
        next = room->next;
        destroy_room(room);
    }
    mgx_map_fini(&params->by_name);
    pthread_mutex_destroy(&params->lock);
    free(params->ins);
    free(params);
}

struct mgx_params *mgx_params_create(const struct mgx_program *p)
{
    const struct mgx_module *main = mgx_program_main(p);
    struct mgx_params *params = calloc(1, sizeof *params);
    if (!params)
        return NULL;
    pthread_mutex_init(&params->lock, NULL);
    params->count = mgx_module_parameters(main, NULL, 0);
    params->ins = calloc((size_t)params->count + 1, sizeof *params->ins);
    bool good = params->ins != NULL;
    if (good)
        mgx_module_parameters(main, params->ins, params->count);
    for (int i = 0; i < params->count && good; i++)
        good = mgx_map_put(&params->by_name, mgx_parameter_name(params->ins[i]), &params->ins[i]);
    if (good)
        return params;
    mgx_params_destroy(params);
    return NULL;
}
