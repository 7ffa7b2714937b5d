// SPDX-License-Identifier: MIT
// Offering an instruction to a kernel, ahead of time or at run time; see kernel.h.
#include <assert.h>
#include <string.h>

#include "plan/join.h"
#include "plan/kernel.h"

enum mgx_plan_answer mgx_plan_refuse(const struct mgx_plan_offer *c)
{
    return c->diag->status == MGX_OK ? MGX_PLAN_DECLINED : MGX_PLAN_FAILED;
}

enum mgx_plan_answer mgx_plan_no_memory(const struct mgx_plan_offer *c)
{
    mgx_fail_memory(c->diag);
    return MGX_PLAN_FAILED;
}

enum mgx_plan_answer mgx_plan_decline(struct mgx_plan_offer *c, const char *why)
{
    c->why = why;
    return mgx_plan_refuse(c);
}

bool mgx_plan_unfit(struct mgx_plan_offer *c, const char *why)
{
    c->why = why;
    return false;
}

bool mgx_plan_wish(struct mgx_plan_offer *c, int input, enum mgx_plan_want want, const char *why)
{
    assert(input >= 0 && input < c->in_count);
    c->want_in[input] = (unsigned char)want;
    return mgx_plan_unfit(c, why);
}

enum mgx_plan_answer mgx_plan_ask(const struct mgx_plan_kernel *kernel, struct mgx_plan_offer *c)
{
    assert(c->diag->status == MGX_OK && c->arena && c->machine);
    c->state = NULL;
    c->workspace = 0;
    c->in_place = -1;
    c->flops = 0;
    c->weight = (struct mgx_plan_weight){0, 0};
    c->packed_bytes = 0;
    c->why = c->detail = NULL;
    memset(c->skip_in, 0, (size_t)c->in_count);
    memset(c->want_in, 0, (size_t)c->in_count);
    const enum mgx_plan_answer answer = kernel->prepare(c);
    assert((answer == MGX_PLAN_FAILED) == (c->diag->status != MGX_OK));
    assert(c->in_place >= -1 && c->in_place < c->in_count);
    assert(answer != MGX_PLAN_TAKEN || c->in_place < 0 ||
           (!c->skip_in[c->in_place] &&
            mgx_shape_bytes(&c->in[c->in_place]) >= mgx_shape_bytes(c->out)));
    return answer;
}

bool mgx_plan_wanted(const struct mgx_plan_offer *c, int i, struct mgx_shape *shape)
{
    const struct mgx_shape *in = &c->in[i];
    if (c->want_in[i] == MGX_PLAN_AS_IT_IS)
        return false;
    *shape = mgx_shape_make(in->type, in->rank, in->lens);
    assert(c->want_in[i] <= MGX_PLAN_LIKE_RESULT);
    assert(c->want_in[i] != MGX_PLAN_LIKE_RESULT || in->rank == c->out->rank);
    if (c->want_in[i] == MGX_PLAN_LIKE_RESULT)
        *shape = mgx_shape_like_order(shape, c->out);
    return !mgx_shape_equal(in, shape);
}

bool mgx_plan_repack_constant(struct mgx_plan_store *store, const struct mgx_shape *shape,
                              const struct mgx_tensor **constant, struct mgx_diag *diag)
{
    const struct mgx_tensor *given = *constant;
    struct mgx_tensor *t = MGX_NEW(&store->arena, struct mgx_tensor);
    const size_t bytes = (size_t)mgx_shape_space(shape) * mgx_type_size(shape->type);
    void *data = t ? mgx_arena_alloc(&store->arena, bytes) : NULL;
    if (!data || !mgx_plan_note_copy(store, data, bytes, given->data)) {
        mgx_fail_memory(diag);
        return false;
    }
    mgx_plan_join_fill(store, given->data, true);
    *t = mgx_tensor_borrow(shape, data);
    mgx_tensor_copy(given, t);
    *constant = t;
    return true;
}
