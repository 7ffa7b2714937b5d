// SPDX-License-Identifier: MIT
// Operators for tests of the IR: what the real ones are like, without depending on any of them.
//
//     join[weight=1,label=,axes={},kind=plain](a, b, ...)   the shape of its first input
//     sum(a, b)                                             equal shapes
//     call(a, ...), [body, ...]                             the shape of the first body's result
//     open(a)                                               anything up to the length of its input
#pragma once

#include <string.h>

#include "ir/module.h"

struct join {
    int64_t weight;
    const char *label;
    struct mgx_ints axes;
    int64_t kind;
};

static const char *const join_kinds[] = {"plain", "fancy", NULL};
static const struct mgx_field join_fields[] = {MGX_INT(struct join, weight),
                                               MGX_TEXT(struct join, label),
                                               MGX_INTS(struct join, axes),
                                               MGX_ENUM(struct join, kind, join_kinds),
                                               {0}};
static const struct join join_defaults = {.weight = 1};

static enum mgx_status first_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    *out = *c->in[0];
    return MGX_OK;
}

static enum mgx_status sum_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    if (!mgx_shape_same_lens(c->in[0], c->in[1]))
        return mgx_fail(c->diag, MGX_INVALID, "sum: Dimensions do not match");
    return first_shape(c, out);
}

static enum mgx_status call_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    if (!c->mod_count || !mgx_module_result_count(c->mod[0]))
        return mgx_fail(c->diag, MGX_INVALID, "call: its module has no result");
    *out = mgx_module_result(c->mod[0], 0)->shape;
    return MGX_OK;
}

static enum mgx_status open_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    struct mgx_dim *dim = MGX_NEW(c->arena, struct mgx_dim);
    if (!dim)
        return mgx_fail_memory(c->diag);
    dim->max = mgx_shape_dim(c->in[0], 0).max + 1;
    *out = mgx_shape_dynamic(c->in[0]->type, 1, dim);
    return MGX_OK;
}

static const struct mgx_op op_join = {.name = "join",
                                      .fields = join_fields,
                                      .attr_size = sizeof(struct join),
                                      .defaults = &join_defaults,
                                      .in_min = 1,
                                      .in_max = -1,
                                      .shape = first_shape};
static const struct mgx_op op_sum = {.name = "sum", .in_min = 2, .in_max = 2, .shape = sum_shape};
static const struct mgx_op op_call = {.name = "call", .in_max = -1, .shape = call_shape};
static const struct mgx_op op_open = {
    .name = "test::open", .in_min = 1, .in_max = 1, .shape = open_shape};

static const struct mgx_op *find_op(const struct mgx_op_set *set, const char *name, size_t size)
{
    static const struct mgx_op *const all[] = {&op_join, &op_sum, &op_call, &op_open,
                                               &mgx_op_return};
    (void)set;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i]->name) == size && memcmp(all[i]->name, name, size) == 0)
            return all[i];
    return NULL;
}

static const struct mgx_op_set test_ops = {.find = find_op};
