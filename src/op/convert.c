// SPDX-License-Identifier: MIT
// convert: values in another type.
//   numbers    as mgx_store_double/_int do: floats round to nearest even, integers wrap, floats
//              beyond an integer's range saturate, NaN becomes 0; anything but 0 is true
//   strings    parsed as numbers ("inf" and "nan" too), or printed with the fewest digits that read
//              back as the same value
//   complex    a real number gets imaginary part 0, a complex one loses it
// bit_cast: the same bytes as another type of the same size, a view.
// convert_e8m0: to powers of two, with a rounding of choice.
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/number.h"
#include "base/size.h"
#include "op/rule/rule.h"

struct convert {
    int64_t target_type;
};

static const struct mgx_field convert_fields[] = {MGX_TYPE(struct convert, target_type), {0}};
static const struct convert convert_defaults = {.target_type = MGX_HALF};

static bool is_convertible(enum mgx_type type)
{
    return mgx_type_is_number(type) || mgx_type_is_complex(type) || type == MGX_STRING;
}

static enum mgx_type target_of(const struct mgx_shape_call *c)
{
    const struct convert *a = c->attr;
    return (enum mgx_type)a->target_type;
}

static enum mgx_status convert_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const enum mgx_type from = c->in[0]->type, to = target_of(c);
    if ((unsigned)to >= MGX_TYPE_COUNT || !is_convertible(to) || !is_convertible(from))
        return mgx_fail(c->diag, MGX_INVALID, "convert: no conversion from %s to type %d",
                        mgx_type_name(from), (int)to);
    *out = mgx_pointwise_shape(c, to);
    return MGX_OK;
}

// --- strings ---

static enum mgx_status parse(struct mgx_compute_call *c, const struct mgx_string *s, double *real,
                             int64_t *integer)
{
    char text[512];
    const enum mgx_type to = c->out->shape.type;
    if (s->size < sizeof text) {
        if (s->size)
            memcpy(text, s->text, s->size);
        text[s->size] = 0;
        char *end;
        *real = mgx_number_read(text, &end);
        const bool digits = strspn(text, "+-0123456789") == s->size;
        *integer = text[0] == '-' ? strtoll(text, NULL, 10) : (int64_t)strtoull(text, NULL, 10);
        if (!digits) { // an integer written as a float
            mgx_store_double(to == MGX_UINT64 ? MGX_UINT64 : MGX_INT64, integer, 0, *real);
        }
        while (isspace((unsigned char)*end))
            end++;
        if (end != text && !*end)
            return MGX_OK;
    }
    return mgx_fail(c->diag, MGX_INVALID, "convert: \"%.*s\" is not a number of %s",
                    (int)(s->size < 40 ? s->size : 40), s->text ? s->text : "", mgx_type_name(to));
}

// The fewest digits that read back as the same value of the type.
static int print_real(char *text, size_t size, enum mgx_type type, double value)
{
    assert(size > 0);
    if (isnan(value))
        return snprintf(text, size, "NaN");
    if (isinf(value))
        return snprintf(text, size, value < 0 ? "-INF" : "INF");
    int n = 0;
    for (int digits = 1; digits <= 17; digits++) {
        n = mgx_number_format(text, size, "%.*g", digits, value);
        union {
            double room;
            char bytes[8];
        } cell = {0};
        mgx_store_double(type, &cell, 0, mgx_number_read(text, NULL));
        if (mgx_load_double(type, &cell, 0) == value)
            break;
    }
    return n;
}

static enum mgx_status from_string(struct mgx_compute_call *c, int64_t from, int64_t to)
{
    assert(from >= 0 && to >= 0 && c->in[0]->shape.type == MGX_STRING);
    const enum mgx_type type = c->out->shape.type;
    double real;
    int64_t integer;
    TRY(parse(c, (const struct mgx_string *)c->in[0]->data + from, &real, &integer));
    if (mgx_type_is_float(type))
        mgx_store_double(type, c->out->data, to, real);
    else
        mgx_store_int(type, c->out->data, to, integer);
    return MGX_OK;
}

static enum mgx_status to_string(struct mgx_compute_call *c, int64_t from, int64_t to)
{
    assert(from >= 0 && to >= 0 && c->out->shape.type == MGX_STRING);
    const struct mgx_tensor *in = c->in[0];
    const enum mgx_type type = in->shape.type;
    char text[64];
    int n;
    if (mgx_type_is_float(type))
        n = print_real(text, sizeof text, type, mgx_load_double(type, in->data, from));
    else if (mgx_type_is_unsigned(type))
        n = snprintf(text, sizeof text, "%llu",
                     (unsigned long long)mgx_load_int(type, in->data, from));
    else
        n = snprintf(text, sizeof text, "%lld", (long long)mgx_load_int(type, in->data, from));
    return mgx_eval_string(c, text, (size_t)n, (struct mgx_string *)c->out->data + to);
}

// --- numbers ---

static enum mgx_status integer(struct mgx_compute_call *c, int64_t from, int64_t to)
{
    const struct mgx_tensor *in = c->in[0];
    mgx_store_int(c->out->shape.type, c->out->data, to,
                  mgx_load_int(in->shape.type, in->data, from));
    return MGX_OK;
}

static enum mgx_type part_of(enum mgx_type type)
{
    return type == MGX_COMPLEX64 ? MGX_FLOAT : type == MGX_COMPLEX128 ? MGX_DOUBLE : type;
}

static enum mgx_status complex_number(struct mgx_compute_call *c, int64_t from, int64_t to)
{
    const enum mgx_type a = c->in[0]->shape.type, b = c->out->shape.type;
    const bool wide_a = mgx_type_is_complex(a), wide_b = mgx_type_is_complex(b);
    const double re = mgx_load_double(part_of(a), c->in[0]->data, wide_a ? 2 * from : from);
    const double im = wide_a ? mgx_load_double(part_of(a), c->in[0]->data, 2 * from + 1) : 0;
    mgx_store_double(part_of(b), c->out->data, wide_b ? 2 * to : to, re);
    if (wide_b)
        mgx_store_double(part_of(b), c->out->data, 2 * to + 1, im);
    return MGX_OK;
}

enum { SOME = 512 };

// A run of a walk over numbers, through doubles, some at a time.
static void run_of_numbers(const struct mgx_walk *w, const struct mgx_tensor *from,
                           struct mgx_tensor *to)
{
    double values[SOME];
    for (int64_t done = 0; done < w->run; done += SOME) {
        const int64_t count = mgx_min_i64(SOME, w->run - done);
        mgx_load_doubles(from->shape.type, from->data, w->offset[0] + done * w->step[0], w->step[0],
                         count, values);
        mgx_store_doubles(to->shape.type, to->data, w->offset[1] + done * w->step[1], w->step[1],
                          count, values);
    }
}

// ... over floats and the halves they become.
static void run_to_halves(const struct mgx_walk *w, const float *from, uint16_t *to)
{
    float floats[SOME];
    uint16_t halves[SOME];
    from += w->offset[0];
    to += w->offset[1];
    if (w->step[0] == 1 && w->step[1] == 1) {
        mgx_half_from_floats(from, w->run, to);
        return;
    }
    for (int64_t done = 0; done < w->run; done += SOME) {
        const int64_t count = mgx_min_i64(SOME, w->run - done);
        for (int64_t i = 0; i < count; i++)
            floats[i] = from[(done + i) * w->step[0]];
        mgx_half_from_floats(floats, count, halves);
        for (int64_t i = 0; i < count; i++)
            to[(done + i) * w->step[1]] = halves[i];
    }
}

static enum mgx_status convert_compute(struct mgx_compute_call *c)
{
    const enum mgx_type a = c->in[0]->shape.type, b = c->out->shape.type;
    enum mgx_status (*one)(struct mgx_compute_call *, int64_t, int64_t) = NULL;
    if (a == b) {
        mgx_tensor_copy(c->in[0], c->out);
        return MGX_OK;
    }
    if ((a == MGX_STRING && mgx_type_is_complex(b)) || (b == MGX_STRING && mgx_type_is_complex(a)))
        return mgx_fail(c->diag, MGX_UNSUPPORTED, "convert: from %s to %s", mgx_type_name(a),
                        mgx_type_name(b));
    if (a == MGX_STRING || b == MGX_STRING)
        one = a == MGX_STRING ? from_string : to_string;
    else if (mgx_type_is_complex(a) || mgx_type_is_complex(b))
        one = complex_number;
    else if (mgx_computes_as_int(a) && !mgx_type_is_float(b))
        one = integer;
    const struct mgx_shape *shapes[] = {&c->in[0]->shape, &c->out->shape};
    struct mgx_walk w;
    for (mgx_walk_start(&w, shapes, 2); !w.done; mgx_walk_next(&w)) {
        if (a == MGX_FLOAT && b == MGX_HALF) // weights
            run_to_halves(&w, c->in[0]->data, c->out->data);
        else if (!one)
            run_of_numbers(&w, c->in[0], c->out);
        for (int64_t i = 0; one && i < w.run; i++)
            TRY(one(c, w.offset[0] + i * w.step[0], w.offset[1] + i * w.step[1]));
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_convert = {
    .name = "convert",
    .meaning = "x in another type",
    .fields = convert_fields,
    .attr_size = sizeof(struct convert),
    .defaults = &convert_defaults,
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_POINTWISE,
    .shape = convert_shape,
    .unranked_type = target_of,
    .compute = convert_compute,
};

// --- the same bytes ---

static enum mgx_status cast_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const enum mgx_type from = c->in[0]->type, to = target_of(c);
    if ((unsigned)to >= MGX_TYPE_COUNT || mgx_type_size(to) != mgx_type_size(from) ||
        to == MGX_STRING || from == MGX_STRING || mgx_type_size(from) == 0)
        return mgx_fail(c->diag, MGX_INVALID, "bit_cast: %s of %zu bytes to type %d",
                        mgx_type_name(from), mgx_type_size(from), (int)to);
    *out = *c->in[0];
    out->type = to;
    return MGX_OK;
}

const struct mgx_op mgx_op_bit_cast = {
    .name = "bit_cast",
    .meaning = "the bytes of x as another type of the same size",
    .fields = convert_fields,
    .attr_size = sizeof(struct convert),
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_VIEW,
    .shape = cast_shape,
    .unranked_type = target_of,
    .compute = mgx_compute_view,
};

// --- powers of two ---

struct convert_e8m0 {
    int64_t rounding;
    bool saturate;
};

static const char *const roundings[] = {"up", "down", "nearest", NULL};
static const struct mgx_field e8m0_fields[] = {
    MGX_ENUM(struct convert_e8m0, rounding, roundings),
    MGX_FLAG(struct convert_e8m0, saturate),
    {0},
};
static const struct convert_e8m0 e8m0_defaults = {.saturate = true};

static enum mgx_type e8m0_type(const struct mgx_shape_call *c)
{
    (void)c;
    return MGX_FP8E8M0;
}

static enum mgx_status e8m0_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    if (!mgx_type_is_number(c->in[0]->type))
        return mgx_fail(c->diag, MGX_INVALID, "convert_e8m0: type %s is not a number",
                        mgx_type_name(c->in[0]->type));
    *out = mgx_pointwise_shape(c, MGX_FP8E8M0);
    return MGX_OK;
}

static enum mgx_status e8m0_compute(struct mgx_compute_call *c)
{
    const struct convert_e8m0 *a = c->attr;
    const struct mgx_shape *shapes[] = {&c->in[0]->shape, &c->out->shape};
    struct mgx_walk w;
    for (mgx_walk_start(&w, shapes, 2); !w.done; mgx_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            const double x =
                mgx_load_double(shapes[0]->type, c->in[0]->data, w.offset[0] + i * w.step[0]);
            ((uint8_t *)c->out->data)[w.offset[1] + i * w.step[1]] =
                mgx_e8m0_from_double(x, "udn"[a->rounding], a -> saturate);
        }
    return MGX_OK;
}

const struct mgx_op mgx_op_convert_e8m0 = {
    .name = "convert_e8m0",
    .meaning = "x as a power of two, rounded up, down or to nearest",
    .fields = e8m0_fields,
    .attr_size = sizeof(struct convert_e8m0),
    .defaults = &e8m0_defaults,
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_POINTWISE,
    .shape = e8m0_shape,
    .unranked_type = e8m0_type,
    .compute = e8m0_compute,
};
