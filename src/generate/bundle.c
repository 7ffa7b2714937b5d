// SPDX-License-Identifier: MIT
// Bundles: making, sharing, gathering rows of several into one.
#include "generate/bundle.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "op/rule/cache.h"
#include "plan/blocks.h"

struct mgx_bundle *mgx_bundle_create(struct mgx_bundle **all, int count, int64_t rows, int64_t room)
{
    struct mgx_bundle *b = calloc(1, sizeof *b + (size_t)count * sizeof b->values[0]);
    int64_t *lengths = calloc((size_t)rows, sizeof *lengths);
    if (!b || !lengths) {
        free(b);
        free(lengths);
        return NULL;
    }
    *b = (struct mgx_bundle){.holders = 1,
                             .rows = rows,
                             .room = room,
                             .all = all,
                             .next = *all,
                             .lengths = lengths,
                             .count = count};
    if (b->next)
        b->next->prev = b;
    *all = b;
    return b;
}

struct mgx_bundle *mgx_bundle_hold(struct mgx_bundle *bundle)
{
    if (bundle)
        bundle->holders++;
    return bundle;
}

void mgx_bundle_release(struct mgx_bundle *bundle)
{
    if (!bundle || --bundle->holders)
        return;
    for (int i = 0; i < bundle->count; i++)
        mgx_tensor_release(&bundle->values[i]);
    if (bundle->next)
        bundle->next->prev = bundle->prev;
    if (bundle->prev)
        bundle->prev->next = bundle->next;
    else
        *bundle->all = bundle->next;
    free(bundle->lengths);
    free(bundle);
}

// --- gathering ---

// It is left open then.
bool mgx_carried_has_rows(const struct mgx_carried *c)
{
    const struct mgx_dim first = mgx_shape_dim(&c->shape, 0);
    return first.min != first.max;
}

struct mgx_shape mgx_bundle_shape(const struct mgx_carried *c, int64_t rows, int64_t tokens)
{
    int64_t lens[MGX_MAX_RANK];
    for (int i = 0; i < c->shape.rank; i++)
        lens[i] = c->shape.lens[i];
    if (mgx_carried_has_rows(c))
        lens[0] = rows;
    if (c->axis >= 0)
        lens[c->axis] = tokens;
    return mgx_shape_make(c->shape.type, c->shape.rank, lens);
}

// The first `tokens` of one row, lent.
static struct mgx_tensor row_of(const struct mgx_carried *c, const struct mgx_tensor *t,
                                int64_t row, int64_t tokens)
{
    struct mgx_shape shape = t->shape;
    const int64_t size = (int64_t)mgx_type_size(shape.type);
    char *data = (char *)t->data + row * shape.strides[0] * size;
    assert(mgx_carried_has_rows(c) ? row < shape.lens[0] : row == 0);
    if (mgx_carried_has_rows(c))
        shape.lens[0] = 1;
    if (c->axis >= 0)
        shape.lens[c->axis] = tokens;
    return mgx_tensor_borrow(&shape, data);
}

static void copy_row(const struct mgx_carried *c, const struct mgx_tensor *from, int64_t from_row,
                     struct mgx_tensor *to, int64_t to_row, int64_t tokens)
{
    const struct mgx_tensor x = row_of(c, from, from_row, tokens);
    struct mgx_tensor y = row_of(c, to, to_row, tokens);
    mgx_tensor_copy(&x, &y);
}

static enum mgx_status gather(struct mgx_tensor *out, const struct mgx_carried *c, int at,
                              const struct mgx_place *places, int64_t count, int64_t room,
                              struct mgx_diag *diag)
{
    const bool grows = c->kind == MGX_CARRIED_GROWING;
    const struct mgx_shape shape = mgx_bundle_shape(c, count, grows ? places[0].length : room);
    TRY(mgx_shape_check(&shape, diag));
    TRY(mgx_tensor_create(out, &shape, diag));
    memset(out->data, 0, mgx_shape_bytes(&shape));
    for (int64_t i = 0; i < count; i++)
        if (places[i].bundle && places[i].length)
            copy_row(c, &places[i].bundle->values[at], places[i].row, out, i, places[i].length);
    return MGX_OK;
}

enum mgx_status mgx_bundle_gather(struct mgx_bundle **out, struct mgx_bundle **all,
                                  const struct mgx_roles *roles, const struct mgx_place *places,
                                  int64_t count, int64_t room, struct mgx_diag *diag)
{
    assert(count > 0 && (count == 1 || roles->takes_many));
    struct mgx_bundle *b = mgx_bundle_create(all, roles->carried_count, count, room);
    enum mgx_status status = b ? MGX_OK : mgx_fail_memory(diag);
    for (int i = 0; i < roles->carried_count && status == MGX_OK; i++) {
        const struct mgx_carried *c = &roles->carried[i];
        status = gather(&b->values[i], c, i, places, count, room, diag);
        if (status != MGX_OK)
            mgx_where(diag, "state \"%s\" of %lld texts", c->past, (long long)count);
    }
    if (status != MGX_OK)
        mgx_bundle_release(b);
    else
        *out = b;
    for (int64_t i = 0; i < count && status == MGX_OK; i++)
        b->lengths[i] = places[i].length;
    return status;
}

// --- going back ---

enum mgx_status mgx_bundle_shorten(struct mgx_bundle **out, const struct mgx_bundle *bundle,
                                   const struct mgx_roles *roles, int64_t length,
                                   struct mgx_diag *diag)
{
    assert(bundle->rows == 1 && !roles->has_kind[MGX_CARRIED_FIXED]);
    struct mgx_bundle *b = mgx_bundle_create(bundle->all, bundle->count, 1, bundle->room);
    if (!b)
        return mgx_fail_memory(diag);
    for (int i = 0; i < b->count; i++) {
        const struct mgx_carried *c = &roles->carried[i];
        const struct mgx_tensor *t = &bundle->values[i];
        struct mgx_shape shape = t->shape;
        if (c->kind == MGX_CARRIED_GROWING) {
            if (bundle->holders == 1)
                (void)mgx_plan_block_shorten(t, c->axis, shape.lens[c->axis] - length);
            shape.lens[c->axis] = length;
        }
        b->values[i] = mgx_tensor_view(t, &shape, 0);
    }
    b->lengths[0] = length;
    *out = b;
    return MGX_OK;
}

void mgx_bundle_tell_lengths(struct mgx_bundle *bundle, const struct mgx_roles *roles)
{
    for (int i = 0; i < bundle->count; i++) {
        const struct mgx_tensor *t = &bundle->values[i];
        if (roles->carried[i].kind != MGX_CARRIED_ROOM || !t->storage ||
            atomic_load(&t->storage->refs) != 1)
            continue;
        uint64_t mark = mgx_cache_mark(t->shape.lens);
        for (int64_t b = 0; b < bundle->rows; b++)
            mark = mgx_cache_mark_entry(mark, bundle->lengths[b]);
        mgx_plan_block_mark(t, mark);
    }
}

// --- rows that are written ---

bool mgx_bundle_is_own(const struct mgx_bundle *bundle)
{
    for (int i = 0; i < bundle->count; i++)
        if (!bundle->values[i].storage || atomic_load(&bundle->values[i].storage->refs) != 1)
            return false;
    return true;
}

static void clear_row(const struct mgx_carried *c, const struct mgx_tensor *t, int64_t row)
{
    static const double zero; // of any type
    struct mgx_tensor to = row_of(c, t, row, 0);
    struct mgx_shape nothing = to.shape;
    memset(nothing.strides, 0, sizeof nothing.strides); // one zero, seen from everywhere
    const struct mgx_tensor from = mgx_tensor_borrow(&nothing, &zero);
    mgx_tensor_copy(&from, &to);
}

void mgx_bundle_put_row(struct mgx_bundle *bundle, const struct mgx_roles *roles, int64_t row,
                        const struct mgx_place *place)
{
    for (int i = 0; i < bundle->count; i++) {
        const struct mgx_carried *c = &roles->carried[i];
        if (place->bundle)
            copy_row(c, &place->bundle->values[i], place->row, &bundle->values[i], row,
                     place->length);
        else if (c->kind == MGX_CARRIED_FIXED)
            clear_row(c, &bundle->values[i], row);
    }
}

size_t mgx_bundles_bytes(const struct mgx_bundle *all)
{
    size_t bytes = 0;
    for (const struct mgx_bundle *b = all; b; b = b->next)
        for (int i = 0; i < b->count; i++)
            bytes += mgx_shape_bytes(&b->values[i].shape);
    return bytes;
}
