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

// All caches as views of one allocation.
static enum mgx_status cut(struct mgx_bundle *b, const struct mgx_slab *s, struct mgx_tensor *bytes,
                           struct mgx_diag *diag)
{
    size_t total = 0;
    for (int i = 0; i < b->count; i++) {
        const struct mgx_shape shape = mgx_bundle_shape(&s->roles->carried[i], b->rows, b->room);
        TRY(mgx_shape_check(&shape, diag));
        if (!mgx_add_size(mgx_slab_align(total), mgx_shape_bytes(&shape), &total))
            return mgx_fail_memory(diag);
    }
    TRY(mgx_slab_bytes(bytes, s->memory, total, diag));
    size_t at = 0;
    for (int i = 0; i < b->count; i++) {
        const struct mgx_shape shape = mgx_bundle_shape(&s->roles->carried[i], b->rows, b->room);
        at = mgx_slab_align(at);
        b->values[i] = mgx_tensor_view(bytes, &shape, (int64_t)at);
        at += mgx_shape_bytes(&shape);
    }
    return MGX_OK;
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

static enum mgx_status copy_place(const struct mgx_slab *s, struct mgx_bundle *b, int64_t row,
                                  const struct mgx_place *place, struct mgx_diag *diag)
{
    for (int k = 0; k < b->count && place->bundle && place->length; k++)
        TRY(copy_row(s, &place->bundle->values[k], place->row, &b->values[k], row, place->length,
                     diag));
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
    return settle(s, copy_place(s, bundle, row, place, diag), diag);
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
