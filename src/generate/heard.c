// SPDX-License-Identifier: MIT
// Lengths of sources, and the way to the card.
#include "generate/heard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

enum { FIRST = 64 };  // places that a source is filled up to, and doubles of it
enum { MADE_UP = 8 }; // of a source for asking

// --- lengths ---

// The open axis; -1: none, -2: several.
static int open_axis(const struct mgx_shape *s)
{
    int axis = -1;
    for (int i = 0; i < s->rank && !mgx_shape_is_static(s); i++)
        if (s->dims[i].min != s->dims[i].max)
            axis = axis == -1 ? i : -2;
    return axis;
}

bool mgx_heard_fits(const struct mgx_roles *roles)
{
    bool fits = true;
    for (int k = 0; k < roles->given_count && fits; k++) {
        const struct mgx_shape *s = &roles->given_shapes[k];
        fits = !s->unranked && mgx_type_is_number(s->type) && open_axis(s) != -2;
    }
    return fits;
}

struct mgx_shape mgx_heard_shape(const struct mgx_roles *roles, int k, int64_t heard)
{
    const struct mgx_shape *s = &roles->given_shapes[k];
    int64_t lens[MGX_MAX_RANK];
    for (int i = 0; i < s->rank; i++) {
        const struct mgx_dim d = mgx_shape_dim(s, i);
        lens[i] = d.min == d.max ? d.min : heard;
    }
    return mgx_shape_make(s->type, s->rank, lens);
}

// Is the decoder told which places count? Then the others may be anything.
static bool is_masked(const struct mgx_roles *r)
{
    bool masked = false;
    for (int k = 0; k < r->given_count; k++)
        masked |= mgx_type_is_integral(r->given_shapes[k].type) && r->given_shapes[k].rank == 2 &&
                  open_axis(&r->given_shapes[k]) == 1;
    return masked;
}

int64_t mgx_heard_first(const struct mgx_roles *roles)
{
    return is_masked(roles) ? FIRST : MADE_UP;
}

// How long it is, and how long it will be on the card.
static enum mgx_status find_lengths(struct mgx_source *s, const struct mgx_roles *r,
                                    struct mgx_diag *diag)
{
    int64_t length = -1;
    for (int k = 0; k < s->count; k++) {
        const int axis = open_axis(&r->given_shapes[k]);
        const int64_t own = axis < 0 ? -1 : s->values[k].shape.lens[axis];
        if (own >= 0 && length >= 0 && own != length)
            return mgx_fail(diag, MGX_UNSUPPORTED,
                            "input \"%.80s\" is of %lld places, another one of %lld", r->given[k],
                            (long long)own, (long long)length);
        length = own >= 0 ? own : length;
    }
    s->heard = length < 0 ? 0 : length;
    if (s->heard && !s->exact && is_masked(r))
        for (s->heard = FIRST; s->heard < length;)
            s->heard *= 2;
    return MGX_OK;
}

// --- bringing ---

// Zeros behind what there is along the open axis.
static void fill_up(const struct mgx_tensor *from, const struct mgx_shape *to, char *bytes)
{
    const struct mgx_shape *s = &from->shape;
    int axis = 0;
    int64_t before = 1;
    while (axis < s->rank && s->lens[axis] == to->lens[axis])
        before *= s->lens[axis++];
    const size_t own = mgx_shape_bytes(s) / (size_t)mgx_max_i64(before, 1),
                 all = mgx_shape_bytes(to) / (size_t)mgx_max_i64(before, 1);
    assert(own <= all);
    for (int64_t i = 0; i < before; i++) {
        memcpy(bytes, (const char *)from->data + (size_t)i * own, own);
        memset(bytes + own, 0, all - own);
        bytes += all;
    }
}

// Bytes to a new value on the card, all there when this returns.
static enum mgx_status send(struct mgx_tensor *out, const struct mgx_shape *shape, const void *from,
                            const struct mgx_memory *memory, struct mgx_queue *queue,
                            struct mgx_diag *diag)
{
    TRY(mgx_tensor_create_on(out, shape, memory, diag));
    const enum mgx_status status =
        memory->copy_in(queue, out->data, from, mgx_shape_bytes(shape), diag);
    const enum mgx_status done = memory->wait(queue, status == MGX_OK ? diag : NULL);
    return status == MGX_OK ? done : status;
}

// One that does not lie as it will: in order, and filled up.
static enum mgx_status lay_out(const struct mgx_tensor *from, const struct mgx_shape *shape,
                               char *to, struct mgx_diag *diag)
{
    struct mgx_tensor lines;
    const struct mgx_shape own =
        mgx_shape_make(from->shape.type, from->shape.rank, from->shape.lens);
    TRY(mgx_tensor_create(&lines, &own, diag));
    mgx_tensor_copy(from, &lines);
    fill_up(&lines, shape, to);
    mgx_tensor_release(&lines);
    return MGX_OK;
}

static enum mgx_status bring_one(struct mgx_source *s, int k, const struct mgx_shape *shape,
                                 const struct mgx_memory *memory, struct mgx_queue *queue,
                                 struct mgx_diag *diag)
{
    const struct mgx_tensor *from = &s->values[k];
    if (mgx_shape_equal(&from->shape, shape))
        return send(&s->held[k], shape, from->data, memory, queue, diag);
    char *host = malloc(mgx_shape_bytes(shape) + 1);
    enum mgx_status status = host ? lay_out(from, shape, host, diag) : mgx_fail_memory(diag);
    if (status == MGX_OK)
        status = send(&s->held[k], shape, host, memory, queue, diag);
    free(host);
    return status;
}

enum mgx_status mgx_heard_bring(struct mgx_source *s, const struct mgx_roles *r,
                                const struct mgx_memory *memory, struct mgx_queue *queue,
                                struct mgx_diag *diag)
{
    assert(s->count == r->given_count);
    if (s->held)
        return MGX_OK;
    TRY(find_lengths(s, r, diag));
    s->held = calloc((size_t)s->count + 1, sizeof *s->held);
    enum mgx_status status = s->held ? MGX_OK : mgx_fail_memory(diag);
    for (int k = 0; k < s->count && status == MGX_OK; k++) {
        const struct mgx_shape shape = mgx_heard_shape(r, k, s->heard);
        status = bring_one(s, k, &shape, memory, queue, diag);
    }
    if (status != MGX_OK)
        mgx_source_leave(s);
    return status;
}

enum mgx_status mgx_heard_make_up(struct mgx_source **out, const struct mgx_roles *r, bool exact,
                                  struct mgx_diag *diag)
{
    struct mgx_source *s = calloc(1, sizeof *s + (size_t)r->given_count * sizeof s->values[0]);
    if (!s)
        return mgx_fail_memory(diag);
    *s = (struct mgx_source){.holders = 1, .count = r->given_count, .exact = exact};
    for (int k = 0; k < s->count; k++) {
        const struct mgx_shape shape = mgx_heard_shape(r, k, MADE_UP);
        if (mgx_tensor_create(&s->values[k], &shape, diag) != MGX_OK) {
            mgx_source_release(s);
            return MGX_NO_MEMORY;
        }
        for (int64_t i = 0; i < mgx_shape_elements(&shape); i++) {
            const uint32_t mixed = (uint32_t)(k * 7919 + i + 1) * UINT32_C(2654435761);
            const double value =
                mgx_type_is_float(shape.type) ? (double)(mixed >> 8) * 0x1p-23 - 1 : 1;
            mgx_store_double(shape.type, s->values[k].data, i, value);
        }
    }
    *out = s;
    return MGX_OK;
}
