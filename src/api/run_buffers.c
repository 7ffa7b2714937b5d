// SPDX-License-Identifier: MIT
// Runs in a host's memory: parameters by address, results where the host wants them.
//
// A plan whose sizes are known before it runs writes there itself; other results are copied there
// after the run. Either way the host is asked once for each.
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

struct placing {
    migraphx_place_callback_t place;
    void *data;
    bool *asked; // per result
    void **at;   // what the answers were
};

static void *ask(void *user, int k, const struct mgx_shape *shape)
{
    struct placing *p = user;
    if (p->asked[k])
        return p->at[k];
    size_t lens[MGX_MAX_RANK];
    for (int i = 0; i < shape->rank; i++)
        lens[i] = (size_t)shape->lens[i];
    p->asked[k] = true;
    return p->at[k] = p->place(p->data, (size_t)k, mgx_api_type_out(shape->type), lens,
                               (size_t)shape->rank);
}

static bool is_plain(const struct mgx_tensor *t)
{
    return t->shape.type != MGX_STRING && t->shape.type != MGX_TUPLE &&
           t->shape.type != MGX_SEQUENCE && !mgx_tensor_memory(t);
}

// What the plan did not write there itself.
static void place_rest(struct placing *p, struct mgx_tensor *results, int count)
{
    for (int k = 0; k < count; k++) {
        struct mgx_tensor *t = &results[k];
        if (p->asked[k] || !is_plain(t))
            continue;
        const struct mgx_shape shape = mgx_shape_make(t->shape.type, t->shape.rank, t->shape.lens);
        void *at = ask(p, k, &shape);
        struct mgx_tensor to = mgx_tensor_borrow(&shape, at);
        if (at && mgx_shape_elements(&shape))
            mgx_tensor_copy(t, &to);
    }
}

static enum mgx_status take_buffer(const migraphx_buffer *b, struct mgx_named_tensor *out,
                                   struct mgx_diag *diag)
{
    enum mgx_type type;
    int64_t lens[MGX_MAX_RANK];
    if (!b->name)
        return mgx_fail(diag, MGX_INVALID, "a parameter has no name");
    out->name = b->name;
    if (b->argument) {
        out->tensor = *mgx_api_argument_value(b->argument); // lent, as the bytes of the others are
        return MGX_OK;
    }
    if (!mgx_api_type_in(b->type, &type) || type == MGX_STRING || type == MGX_TUPLE ||
        type == MGX_SEQUENCE)
        return mgx_fail(diag, MGX_INVALID, "parameter %s: type %d is of no buffer", b->name,
                        (int)b->type);
    if (b->rank > MGX_MAX_RANK)
        return mgx_fail(diag, MGX_INVALID, "parameter %s: rank %zu is above %d", b->name, b->rank,
                        MGX_MAX_RANK);
    for (size_t i = 0; i < b->rank; i++) {
        if (b->lens[i] > MGX_DIM_ANY)
            return mgx_fail(diag, MGX_INVALID, "parameter %s: length %zu is too large", b->name,
                            b->lens[i]);
        lens[i] = (int64_t)b->lens[i];
    }
    const struct mgx_shape shape = mgx_shape_make(type, (int)b->rank, lens);
    TRY(mgx_shape_check(&shape, diag));
    if (!b->data && mgx_shape_elements(&shape))
        return mgx_fail(diag, MGX_INVALID, "parameter %s has no bytes", b->name);
    out->tensor = mgx_tensor_borrow(&shape, b->data);
    return MGX_OK;
}

enum { FEW = 8 };

struct room { // of one run
    struct mgx_named_tensor *params;
    struct mgx_tensor *results;
    struct placing placing;
    void **placed;
    migraphx_span_callback_t tell;
    void *tell_data;
    void *const *stream; // NULL: none of the caller's
    int count;           // of results
    void *on_heap;       // what they lie in where they are many
    struct few {
        struct mgx_named_tensor params[FEW];
        struct mgx_tensor results[FEW];
        void *placed[2 * FEW];
        bool asked[FEW];
    } few; // uninitialised
};

static enum mgx_status make_large_room(struct room *r, size_t params, size_t results,
                                       struct mgx_diag *diag)
{
    const size_t named = (params + 1) * sizeof *r->params, given = results * sizeof *r->results;
    const size_t places = 2 * results * sizeof *r->placed;
    char *at = r->on_heap = calloc(1, named + given + places + results);
    if (!at)
        return mgx_fail_memory(diag);
    r->params = (void *)at;
    r->results = (void *)(at + named);
    r->placed = (void *)(at + named + given);
    r->placing.asked = (bool *)(at + named + given + places);
    return MGX_OK;
}

static enum mgx_status make_room(struct room *r, int params, int results, struct mgx_diag *diag)
{
    r->count = results;
    r->on_heap = NULL;
    if (params > FEW || results > FEW) {
        TRY(make_large_room(r, (size_t)params, (size_t)results, diag));
    } else {
        r->params = r->few.params;
        r->results = r->few.results;
        r->placed = r->few.placed;
        r->placing.asked = r->few.asked;
        memset(r->results, 0, (size_t)results * sizeof *r->results);
        memset(r->placed, 0, sizeof r->few.placed);
        memset(r->placing.asked, 0, sizeof r->few.asked);
    }
    r->placing.at = r->placed + results;
    return MGX_OK;
}

static enum mgx_status run(migraphx_arguments_t *out, const struct migraphx_program *program,
                           const migraphx_buffer *params, size_t params_size, struct room *room,
                           struct mgx_diag *diag)
{
    const struct mgx_program *p = program->p;
    TRY(make_room(room, (int)params_size, mgx_module_result_count(mgx_program_main(p)), diag));
    for (size_t i = 0; i < params_size; i++)
        TRY(take_buffer(&params[i], &room->params[i], diag));
    struct mgx_run r = {.params = room->params,
                        .param_count = (int)params_size,
                        .results = room->results,
                        .result_count = room->count,
                        .place = room->placing.place ? ask : NULL,
                        .place_user = &room->placing,
                        .placed = room->placed,
                        .on_stream = room->stream != NULL,
                        .stream = room->stream ? *room->stream : NULL,
                        .seed = mgx_api_seed(&program->manner),
                        .limit_bytes = program->manner.limit_bytes};
    TRY(mgx_api_run_told(p, &r, room->tell, room->tell_data, diag));
    if (room->placing.place)
        place_rest(&room->placing, room->results, room->count);
    if (out)
        return mgx_api_arguments_new(out, room->results, (size_t)room->count, diag);
    for (int k = 0; k < room->count; k++)
        mgx_tensor_release(&room->results[k]);
    return MGX_OK;
}

static migraphx_status run_buffers(migraphx_arguments_t *out, migraphx_program_t program,
                                   const migraphx_buffer *params, size_t params_size,
                                   struct room *room)
{
    API_DIAG(diag);
    const enum mgx_status status = run(out, program, params, params_size, room, &diag);
    free(room->on_heap);
    return mgx_api_leave(status, &diag);
}

// Its arrays for a few values stay as they are: they are filled as far as they are used.
static void prepare(struct room *room, migraphx_place_callback_t place, void *data,
                    void *const *stream)
{
    room->on_heap = NULL;
    room->placing.place = place;
    room->placing.data = data;
    room->tell = NULL;
    room->stream = stream;
}

#define NEED_PARAMS(program, params, size)                                                         \
    do {                                                                                           \
        API_NEED(program);                                                                         \
        if (size)                                                                                  \
            API_NEED(params);                                                                      \
        if ((size) > INT32_MAX / 2)                                                                \
            return mgx_api_bad("%s: %zu parameters are too many", __func__, (size_t)(size));       \
    } while (0)

migraphx_status migraphx_program_run_buffers(migraphx_arguments_t *out, migraphx_program_t program,
                                             const migraphx_buffer *params, size_t params_size,
                                             migraphx_place_callback_t place, void *data)
{
    NEED_PARAMS(program, params, params_size);
    struct room room;
    prepare(&room, place, data, NULL);
    return run_buffers(out, program, params, params_size, &room);
}

migraphx_status
migraphx_program_run_buffers_async(migraphx_arguments_t *out, migraphx_program_t program,
                                   const migraphx_buffer *params, size_t params_size,
                                   migraphx_place_callback_t place, void *data, void *stream)
{
    NEED_PARAMS(program, params, params_size);
    struct room room;
    prepare(&room, place, data, &stream);
    return run_buffers(out, program, params, params_size, &room);
}

migraphx_status
migraphx_program_run_buffers_spans(migraphx_arguments_t *out, migraphx_program_t program,
                                   const migraphx_buffer *params, size_t params_size,
                                   migraphx_place_callback_t place, void *data,
                                   migraphx_span_callback_t callback, void *callback_data)
{
    NEED_PARAMS(program, params, params_size);
    API_NEED(callback);
    struct room room;
    prepare(&room, place, data, NULL);
    room.tell = callback;
    room.tell_data = callback_data;
    return run_buffers(out, program, params, params_size, &room);
}
