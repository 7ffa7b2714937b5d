// SPDX-License-Identifier: MIT
// fused_reduce: reductions along `axes` with the element-wise work before, between and after them;
// what fusion makes of softmax, normalisations and their like.
//
// Body parameters, in order of creation, are the inputs. Body instructions are declared in full:
// element-wise operators on the lengths of the inputs or on the reduced ones, reductions along
// `axes`, and multibroadcasts from reduced to full. One result gives a tensor, several a tuple. The
// reference runs the body as it stands.
#include "op/rule/body.h"

struct fused_reduce {
    struct mgx_ints axes;
};

static const struct mgx_field fields[] = {MGX_INTS(struct fused_reduce, axes), {0}};

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    if (c->mod_count != 1)
        return mgx_fail(c->diag, MGX_INVALID, "fused_reduce: should have one submodule, given %d",
                        c->mod_count);
    const int count = mgx_module_result_count(c->mod[0]);
    if (count < 1)
        return mgx_fail(c->diag, MGX_INVALID, "fused_reduce: submodule \"%s\" has no result",
                        c->mod[0]->name);
    TRY(mgx_body_takes(c, c->mod[0], c->in, c->in_count));
    TRY(mgx_body_closed(c, c->mod[0]));
    if (count > 1)
        return mgx_body_tuple(c, c->mod[0], out);
    *out = *mgx_body_result(c->mod[0], 0);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    struct mgx_tensor *args = mgx_body_args(c, 0), *results;
    int count;
    if (!args)
        return MGX_NO_MEMORY;
    TRY(mgx_body_run(c, 0, args, c->in_count, &results, &count));
    if (count > 1)
        return mgx_body_give(c, results, count);
    if (!mgx_shape_is_static(c->out_shape)) { // nothing was made for it
        *c->out = results[0];
        return MGX_OK;
    }
    mgx_tensor_copy(&results[0], c->out);
    mgx_tensors_release(results, count);
    return MGX_OK;
}

const struct mgx_op mgx_op_fused_reduce = {
    .name = "fused_reduce",
    .meaning = "a body of reductions along axes and element-wise work around them",
    .fields = fields,
    .attr_size = sizeof(struct fused_reduce),
    .in_min = 1,
    .in_max = -1,
    .shape = shape,
    .compute = compute,
};
