// SPDX-License-Identifier: MIT
// Lanes; see lanes.h.
#include "op/reference/lanes.h"

#include <assert.h>

struct mgx_shape mgx_lanes_shape(const struct mgx_shape *s, const bool *along,
                                 struct mgx_lanes *lanes)
{
    struct mgx_shape out = {.type = s->type, .rank = s->rank};
    uint64_t product[2] = {1, 1}; // unsigned: beside a length of 0 the others may be anything
    int n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < s->rank; i++) {
            if (along[i] != (pass == 1))
                continue;
            out.lens[n] = s->lens[i];
            out.strides[n++] = s->strides[i];
            product[pass] *= (uint64_t)s->lens[i];
        }
    assert(n == s->rank);
    *lanes = (struct mgx_lanes){(int64_t)product[0], (int64_t)product[1]};
    return out;
}

static struct mgx_tensor turn(const struct mgx_tensor *t, const bool *along,
                              struct mgx_lanes *lanes)
{
    assert(mgx_shape_is_static(&t->shape));
    return (struct mgx_tensor){.shape = mgx_lanes_shape(&t->shape, along, lanes), .data = t->data};
}

double *mgx_lanes_doubles(struct mgx_compute_call *c, const struct mgx_tensor *t, const bool *along,
                          struct mgx_lanes *lanes)
{
    const struct mgx_tensor turned = turn(t, along, lanes);
    return mgx_scratch_doubles(c, &turned);
}

int64_t *mgx_lanes_ints(struct mgx_compute_call *c, const struct mgx_tensor *t, const bool *along,
                        struct mgx_lanes *lanes)
{
    const struct mgx_tensor turned = turn(t, along, lanes);
    return mgx_scratch_ints(c, &turned);
}

void mgx_lanes_write_doubles(struct mgx_tensor *t, const bool *along, const double *values)
{
    struct mgx_lanes lanes;
    struct mgx_tensor turned = turn(t, along, &lanes);
    mgx_write_doubles(&turned, values);
}

void mgx_lanes_write_ints(struct mgx_tensor *t, const bool *along, const int64_t *values)
{
    struct mgx_lanes lanes;
    struct mgx_tensor turned = turn(t, along, &lanes);
    mgx_write_ints(&turned, values);
}
