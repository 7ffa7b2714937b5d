// SPDX-License-Identifier: MIT
// One allocation, cut into caches; rows are copied within the card's memory.
#include "generate/slab.h"

#include <assert.h>

#include "base/size.h"

size_t mgx_slab_align(size_t at)
{
    enum { ALIGN = 256 };
    return (at + ALIGN - 1) / ALIGN * ALIGN;
}

enum mgx_status mgx_slab_bytes(struct mgx_tensor *out, const struct mgx_memory *memory,
                               size_t bytes, struct mgx_diag *diag)
{
    const int64_t lens[1] = {(int64_t)bytes};
    const struct mgx_shape shape = mgx_shape_make(MGX_UINT8, 1, lens);
    if (bytes > INT64_MAX)
        return mgx_fail_memory(diag);
    return mgx_tensor_create_on(out, &shape, memory, diag);
}

// The states of a kind, one behind the other from `at` on; cut out of `bytes` where that is there.
static enum mgx_status place(struct mgx_bundle *b, const struct mgx_slab *s, bool fixed, size_t *at,
                             const struct mgx_tensor *bytes, struct mgx_diag *diag)
{
    for (int i = 0; i < b->count; i++) {
        const struct mgx_carried *c = &s->roles->carried[i];
        if ((c->kind == MGX_CARRIED_FIXED) != fixed)
            continue;
        const struct mgx_shape shape = mgx_bundle_shape(c, b->rows, b->room);
        TRY(mgx_shape_check(&shape, diag));
        *at = mgx_slab_align(*at);
        if (bytes)
            b->values[i] = mgx_tensor_view(bytes, &shape, (int64_t)*at);
        if (!mgx_add_size(*at, mgx_shape_bytes(&shape), at))
            return mgx_fail_memory(diag);
    }
    return MGX_OK;
}

// All states as views of one allocation.
static enum mgx_status cut(struct mgx_bundle *b, const struct mgx_slab *s, struct mgx_tensor *bytes,
                           struct mgx_diag *diag)
{
    size_t total = 0, at = 0;
    TRY(place(b, s, true, &total, NULL, diag));
    TRY(place(b, s, false, &total, NULL, diag));
    TRY(mgx_slab_bytes(bytes, s->memory, mgx_max_i64((int64_t)total, 1), diag));
    TRY(place(b, s, true, &at, bytes, diag));
    return place(b, s, false, &at, bytes, diag);
}

void *mgx_slab_fixed(const struct mgx_slab *s, const struct mgx_bundle *b, size_t *bytes)
{
    char *first = NULL, *end = NULL;
    for (int i = 0; i < b->count; i++) {
        if (s->roles->carried[i].kind != MGX_CARRIED_FIXED)
            continue;
        first = first ? first : b->values[i].data;
        end = (char *)b->values[i].data + mgx_shape_bytes(&b->values[i].shape);
    }
    *bytes = (size_t)(end - first);
    return first;
}

// The first `tokens` of a row, head by head.
static enum mgx_status copy_row(const struct mgx_slab *s, const struct mgx_tensor *from,
                                int64_t from_row, const struct mgx_tensor *to, int64_t to_row,
                                int64_t tokens, struct mgx_diag *diag)
{
    const struct mgx_shape *a = &from->shape, *b = &to->shape;
    const int64_t size = (int64_t)mgx_type_size(a->type);
    assert(a->rank == 4 && a->lens[1] == b->lens[1] && a->lens[3] == b->lens[3]);
    assert(tokens <= a->lens[2] && tokens <= b->lens[2]);
    for (int64_t h = 0; h < a->lens[1]; h++) {
        const char *x =
            (const char *)from->data + (from_row * a->strides[0] + h * a->strides[1]) * size;
        char *y = (char *)to->data + (to_row * b->strides[0] + h * b->strides[1]) * size;
        TRY(s->memory->copy(s->queue, y, x, (size_t)(tokens * a->lens[3] * size), diag));
    }
    return MGX_OK;
}

// A state of fixed lengths, of a row.
static char *state_of(const struct mgx_carried *c, const struct mgx_tensor *t, int64_t row,
                      size_t *bytes)
{
    *bytes = mgx_shape_bytes(&t->shape);
    if (!mgx_carried_has_rows(c))
        return t->data;
    *bytes /= (size_t)t->shape.lens[0];
    return (char *)t->data + (size_t)row * *bytes;
}

static enum mgx_status copy_state(const struct mgx_slab *s, const struct mgx_carried *c,
                                  const struct mgx_tensor *from, int64_t from_row,
                                  const struct mgx_tensor *to, int64_t to_row,
                                  struct mgx_diag *diag)
{
    size_t bytes;
    const char *x = state_of(c, from, from_row, &bytes);
    return s->memory->copy(s->queue, state_of(c, to, to_row, &bytes), x, bytes, diag);
}

static enum mgx_status copy_place(const struct mgx_slab *s, struct mgx_bundle *b, int64_t row,
                                  const struct mgx_place *place, struct mgx_diag *diag)
{
    for (int k = 0; k < b->count && place->bundle && place->length; k++) {
        const struct mgx_carried *c = &s->roles->carried[k];
        const struct mgx_tensor *from = &place->bundle->values[k];
        if (c->kind == MGX_CARRIED_FIXED)
            TRY(copy_state(s, c, from, place->row, &b->values[k], row, diag));
        else
            TRY(copy_row(s, from, place->row, &b->values[k], row, place->length, diag));
    }
    return MGX_OK;
}

// States that go on are zeros before the first token.
static enum mgx_status clear_states(const struct mgx_slab *s, const struct mgx_bundle *b,
                                    int64_t row, struct mgx_diag *diag)
{
    for (int k = 0; k < b->count; k++) {
        const struct mgx_carried *c = &s->roles->carried[k];
        size_t bytes;
        char *state = state_of(c, &b->values[k], row, &bytes);
        if (c->kind == MGX_CARRIED_FIXED)
            TRY(s->memory->fill(s->queue, state, 0, bytes, diag));
    }
    return MGX_OK;
}

// Also on failure nothing may stay on its way.
static enum mgx_status settle(const struct mgx_slab *s, enum mgx_status status,
                              struct mgx_diag *diag)
{
    struct mgx_diag own = {.status = MGX_OK};
    const enum mgx_status done = s->memory->wait(s->queue, status == MGX_OK ? diag : &own);
    return status == MGX_OK ? done : status;
}

enum mgx_status mgx_slab_put_row(const struct mgx_slab *s, struct mgx_bundle *bundle, int64_t row,
                                 const struct mgx_place *place, struct mgx_diag *diag)
{
    return settle(s,
                  place->bundle && place->length ? copy_place(s, bundle, row, place, diag)
                                                 : clear_states(s, bundle, row, diag),
                  diag);
}

static enum mgx_status fill(struct mgx_bundle *b, const struct mgx_slab *s,
                            const struct mgx_tensor *bytes, const struct mgx_place *places,
                            struct mgx_diag *diag)
{
    TRY(s->memory->fill(s->queue, bytes->data, 0, mgx_shape_bytes(&bytes->shape), diag));
    for (int64_t i = 0; i < b->rows; i++) {
        b->lengths[i] = places[i].length;
        TRY(copy_place(s, b, i, &places[i], diag));
    }
    return MGX_OK;
}

enum mgx_status mgx_slab_gather(struct mgx_bundle **out, struct mgx_bundle **all,
                                const struct mgx_slab *s, const struct mgx_place *places,
                                int64_t count, int64_t room, struct mgx_diag *diag)
{
    struct mgx_tensor bytes = {0};
    struct mgx_bundle *b = mgx_bundle_create(all, s->roles->carried_count, count, room);
    if (!b)
        return mgx_fail_memory(diag);
    enum mgx_status status = cut(b, s, &bytes, diag);
    if (status == MGX_OK)
        status = settle(s, fill(b, s, &bytes, places, diag), diag);
    mgx_tensor_release(&bytes);
    if (status == MGX_OK)
        *out = b;
    else
        mgx_bundle_release(b);
    mgx_where(diag, "caches of %lld texts with room for %lld tokens", (long long)count,
              (long long)room);
    return status;
}
