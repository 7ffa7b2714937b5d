// SPDX-License-Identifier: MIT
// dynamic_range: start, start + delta, ... as long as below limit (above it, when delta is
// negative). How many there are depends on the three values; max_output bounds it.
#include <inttypes.h>
#include <math.h>

#include "base/size.h"
#include "op/rule/rule.h"

struct dynamic_range {
    int64_t max_output;
};

static const struct mgx_field fields[] = {MGX_INT(struct dynamic_range, max_output), {0}};
static const struct dynamic_range defaults = {.max_output = INT32_MAX};

// How many values; -1 when delta is 0 or one of them is no number.
static int64_t count_ints(const struct mgx_tensor *const *v)
{
    int64_t start, limit, delta;
    mgx_tensor_to_ints(v[0], &start);
    mgx_tensor_to_ints(v[1], &limit);
    mgx_tensor_to_ints(v[2], &delta);
    if (delta == 0)
        return -1;
    if (delta > 0 ? start >= limit : start <= limit)
        return 0;
    // Distances of 64-bit numbers need 65 bits; as unsigned their absolute value fits.
    const uint64_t way =
        delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    const uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
    const uint64_t count = way / step + (way % step != 0);
    return count > INT64_MAX ? INT64_MAX : (int64_t)count;
}

static int64_t count_reals(const struct mgx_tensor *const *v)
{
    double start, limit, delta;
    mgx_tensor_to_doubles(v[0], &start);
    mgx_tensor_to_doubles(v[1], &limit);
    mgx_tensor_to_doubles(v[2], &delta);
    const double count = ceil((limit - start) / delta);
    if (delta == 0 || isnan(count))
        return -1;
    return count < 0 ? 0 : count > 0x1p62 ? INT64_MAX : (int64_t)count;
}

// Three numbers of one type; *known: their values are.
static enum mgx_status require_operands(struct mgx_shape_call *c, bool *known)
{
    TRY(mgx_require_same_type(c));
    if (!mgx_type_is_number(c->in[0]->type))
        return mgx_fail(c->diag, MGX_INVALID, "dynamic_range: type %s is not a number",
                        mgx_type_name(c->in[0]->type));
    *known = c->values != NULL;
    for (int i = 0; i < 3; i++) {
        if (mgx_shape_is_static(c->in[i]) && mgx_shape_elements(c->in[i]) != 1)
            return mgx_fail(c->diag, MGX_INVALID, "dynamic_range: input %d has %" PRId64 " values",
                            i, mgx_shape_elements(c->in[i]));
        *known = *known && c->values[i];
    }
    return MGX_OK;
}

static enum mgx_status count_known(struct mgx_shape_call *c, struct mgx_dim *length)
{
    const int64_t count =
        mgx_computes_as_int(c->in[0]->type) ? count_ints(c->values) : count_reals(c->values);
    if (count < 0)
        return mgx_fail(c->diag, MGX_INVALID, "dynamic_range: delta is 0, or not a number");
    if (count > length->max)
        return mgx_fail(c->diag, MGX_LIMIT,
                        "dynamic_range: %" PRId64 " values are above max_output %" PRId64, count,
                        length->max);
    length->min = length->max = count;
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct dynamic_range *a = c->attr;
    bool known = false;
    TRY(require_operands(c, &known));
    if (a->max_output < 0)
        return mgx_fail(c->diag, MGX_INVALID, "dynamic_range: max_output %" PRId64 " is negative",
                        a->max_output);
    struct mgx_dim *dims = mgx_edit_dims(c, NULL, 1);
    if (!dims)
        return MGX_NO_MEMORY;
    dims[0] = (struct mgx_dim){.min = 0, .max = mgx_min_i64(a->max_output, MGX_DIM_ANY)};
    if (known)
        TRY(count_known(c, &dims[0]));
    *out = mgx_shape_from_dims(c->in[0]->type, 1, dims);
    return MGX_OK;
}

static void fill_ints(const struct mgx_compute_call *c, enum mgx_type type, int64_t count)
{
    int64_t start, delta;
    mgx_tensor_to_ints(c->in[0], &start);
    mgx_tensor_to_ints(c->in[2], &delta);
    for (int64_t i = 0; i < count; i++)
        mgx_store_int(type, c->out->data, i,
                      (int64_t)((uint64_t)start + (uint64_t)i * (uint64_t)delta));
}

static void fill_reals(const struct mgx_compute_call *c, enum mgx_type type, int64_t count)
{
    double start, delta;
    mgx_tensor_to_doubles(c->in[0], &start);
    mgx_tensor_to_doubles(c->in[2], &delta);
    for (int64_t i = 0; i < count; i++)
        mgx_store_double(type, c->out->data, i, start + (double)i * delta);
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const enum mgx_type type = c->out->shape.type;
    const int64_t count = mgx_shape_elements(&c->out->shape);
    if (mgx_computes_as_int(type))
        fill_ints(c, type, count);
    else
        fill_reals(c, type, count);
    return MGX_OK;
}

const struct mgx_op mgx_op_dynamic_range = {
    .name = "dynamic_range",
    .meaning = "start, start + delta, ... below limit",
    .fields = fields,
    .attr_size = sizeof(struct dynamic_range),
    .defaults = &defaults,
    .in_min = 3,
    .in_max = 3,
    .shape = shape,
    .compute = compute,
    .sized_by = mgx_sized_by_all,
};
