// SPDX-License-Identifier: MIT
// murmur_hash: MurmurHash3 of 32 bits over the bytes of every element, a number's or a string's.
// Results are uint32, or int32 with the same bits.
#include <string.h>

#include "op/rule/rule.h"

struct murmur_hash {
    int64_t seed;
    bool positive;
};

static const struct mgx_field fields[] = {
    MGX_INT(struct murmur_hash, seed), MGX_FLAG(struct murmur_hash, positive), {0}};
static const struct murmur_hash defaults = {.positive = true};

static enum mgx_type type_of(const struct mgx_shape_call *c)
{
    return ((const struct murmur_hash *)c->attr)->positive ? MGX_UINT32 : MGX_INT32;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const enum mgx_type type = c->in[0]->type;
    if (type != MGX_STRING && type != MGX_FLOAT && type != MGX_DOUBLE &&
        !mgx_type_is_integral(type)) // bytes of narrow floats depend on how they are kept
        return mgx_fail(c->diag, MGX_INVALID, "%s: takes integers, floats and strings, not %s",
                        c->op->name, mgx_type_name(type));
    *out = mgx_shape_retype(c->in[0], type_of(c));
    return MGX_OK;
}

static uint32_t turn(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

// Up to four bytes as a number, the first lowest.
static uint32_t word_of(const unsigned char *p, size_t count)
{
    uint32_t w = 0;
    for (size_t i = 0; i < count; i++)
        w |= (uint32_t)p[i] << 8 * i;
    return w;
}

static uint32_t mix(uint32_t w)
{
    return turn(w * 0xcc9e2d51u, 15) * 0x1b873593u;
}

static uint32_t hash(const unsigned char *p, size_t size, uint32_t h)
{
    size_t at = 0;
    for (; size - at >= 4; at += 4)
        h = turn(h ^ mix(word_of(p + at, 4)), 13) * 5 + 0xe6546b64u;
    if (at < size)
        h ^= mix(word_of(p + at, size - at));
    h ^= (uint32_t)size;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct murmur_hash *a = c->attr;
    const struct mgx_tensor *x = c->in[0];
    const int64_t count = mgx_shape_elements(&x->shape);
    const size_t size = x->shape.type == MGX_STRING ? 0 : mgx_type_size(x->shape.type);
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = mgx_shape_index(&x->shape, i);
        struct mgx_string s = {(const char *)x->data + (size_t)at * size, size};
        if (x->shape.type == MGX_STRING)
            s = ((const struct mgx_string *)x->data)[at];
        const uint32_t h = hash((const unsigned char *)s.text, s.size, (uint32_t)a->seed);
        memcpy((char *)c->out->data + mgx_shape_index(&c->out->shape, i) * (int64_t)sizeof h, &h,
               sizeof h);
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_murmur_hash = {
    .name = "murmur_hash",
    .meaning = "y = MurmurHash3 of each element's bytes",
    .fields = fields,
    .attr_size = sizeof(struct murmur_hash),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 1,
    .shape = shape,
    .unranked_type = type_of,
    .compute = compute,
};
