// SPDX-License-Identifier: MIT
// Values of tensors: comparing, printing, converting, generating. Everything walks the elements in
// row-major order through mgx_load/mgx_store, one pass, O(elements); only generating fills memory
// in its own order, as MIGraphX does.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "ir/tensor.h"
#include "ir/text.h"

// A walk over the elements in row-major order: `offset` is where element `element` lies.
struct walk {
    const struct mgx_shape *shape;
    int64_t count, element, offset;
    int64_t at[MGX_MAX_RANK];
};

static struct walk walk_start(const struct mgx_shape *shape)
{
    assert(mgx_shape_is_static(shape) || shape->sub_count || shape->type >= MGX_TUPLE);
    return (struct walk){.shape = shape, .count = mgx_shape_elements(shape)};
}

static void walk_next(struct walk *w)
{
    assert(w->element < w->count);
    w->element++;
    for (int i = w->shape->rank - 1; i >= 0; i--) {
        w->offset += w->shape->strides[i];
        if (++w->at[i] < w->shape->lens[i])
            return;
        w->offset -= w->shape->strides[i] * w->shape->lens[i];
        w->at[i] = 0;
    }
}

// --- comparing ---

// Bits of a float as an integer that ascends with the value; both zeros are 0.
static int64_t ordered_bits(enum mgx_type type, const void *data, int64_t index)
{
    const int width = (int)mgx_type_size(type) * 8;
    const int used = type == MGX_FP4 ? 4 : width;
    uint64_t bits = 0;
    memcpy(&bits, (const char *)data + index * (width / 8), (size_t)width / 8); // little endian
    const uint64_t sign = (uint64_t)1 << (used - 1);
    const int64_t magnitude = (int64_t)(bits & (sign - 1));
    return bits & sign ? -magnitude : magnitude;
}

// The value, or a neighbour of it in its own type; nothing is near a NaN, only itself an infinity.
static bool near(enum mgx_type type, const void *a, int64_t i, const void *b, int64_t j)
{
    const double x = mgx_load_double(type, a, i), y = mgx_load_double(type, b, j);
    if (x == y)
        return true;
    if (!isfinite(x) || !isfinite(y))
        return false;
    if (type == MGX_FP8E8M0) // no sign bit
        return fabs(log2(x) - log2(y)) <= 1;
    const int64_t p = ordered_bits(type, a, i), q = ordered_bits(type, b, j);
    return (p < q ? (uint64_t)q - (uint64_t)p : (uint64_t)p - (uint64_t)q) <= 1;
}

static bool same_double(double x, double y)
{
    return x == y || (isnan(x) && isnan(y));
}

static bool element_equal(const struct mgx_tensor *a, int64_t i, const struct mgx_tensor *b,
                          int64_t j, bool exact)
{
    const enum mgx_type type = a->shape.type;
    if (mgx_type_is_float(type))
        return exact ? same_double(mgx_load_double(type, a->data, i),
                                   mgx_load_double(type, b->data, j))
                     : near(type, a->data, i, b->data, j);
    if (mgx_type_is_number(type))
        return mgx_load_int(type, a->data, i) == mgx_load_int(type, b->data, j);
    if (mgx_type_is_complex(type)) {
        const enum mgx_type part = type == MGX_COMPLEX64 ? MGX_FLOAT : MGX_DOUBLE;
        const struct mgx_shape pair = mgx_shape_vector(part, 2);
        const size_t size = mgx_type_size(type);
        const struct mgx_tensor x = mgx_tensor_borrow(&pair, (char *)a->data + (size_t)i * size);
        const struct mgx_tensor y = mgx_tensor_borrow(&pair, (char *)b->data + (size_t)j * size);
        return element_equal(&x, 0, &y, 0, exact) && element_equal(&x, 1, &y, 1, exact);
    }
    if (type == MGX_STRING) {
        const struct mgx_string x = ((const struct mgx_string *)a->data)[i];
        const struct mgx_string y = ((const struct mgx_string *)b->data)[j];
        return x.size == y.size && (x.size == 0 || memcmp(x.text, y.text, x.size) == 0);
    }
    assert(type == MGX_FP4X2);
    return ((const uint8_t *)a->data)[i] == ((const uint8_t *)b->data)[j];
}

bool mgx_tensor_equal(const struct mgx_tensor *a, const struct mgx_tensor *b, bool exact)
{
    assert(!mgx_tensor_memory(a) && !mgx_tensor_memory(b));
    if (a->shape.type != b->shape.type || a->sub_count != b->sub_count)
        return false;
    for (int i = 0; i < a->sub_count; i++)
        if (!mgx_tensor_equal(&a->sub[i], &b->sub[i], exact))
            return false;
    if (a->shape.type == MGX_TUPLE || a->shape.type == MGX_SEQUENCE)
        return true;
    if (!mgx_shape_same_lens(&a->shape, &b->shape))
        return false;
    struct walk x = walk_start(&a->shape), y = walk_start(&b->shape);
    for (; x.element < x.count; walk_next(&x), walk_next(&y))
        if (!element_equal(a, x.offset, b, y.offset, exact))
            return false;
    return true;
}

// --- printing ---

static void print_element(struct mgx_str *out, enum mgx_type type, const void *data, int64_t i)
{
    if (mgx_type_is_float(type))
        mgx_text_print_double(out, mgx_load_double(type, data, i));
    else if (type == MGX_UINT64)
        mgx_str_printf(out, "%llu", (unsigned long long)mgx_load_int(type, data, i));
    else if (mgx_type_is_number(type))
        mgx_str_printf(out, "%lld", (long long)mgx_load_int(type, data, i));
    else if (type == MGX_STRING)
        mgx_text_quote(out, ((const struct mgx_string *)data)[i].text,
                       ((const struct mgx_string *)data)[i].size);
    else if (mgx_type_is_complex(type)) {
        const enum mgx_type part = type == MGX_COMPLEX64 ? MGX_FLOAT : MGX_DOUBLE;
        mgx_str_putc(out, '(');
        mgx_text_print_double(out, mgx_load_double(part, data, 2 * i));
        mgx_str_putc(out, ',');
        mgx_text_print_double(out, mgx_load_double(part, data, 2 * i + 1));
        mgx_str_putc(out, ')');
    } else
        mgx_str_printf(out, "%u", ((const uint8_t *)data)[i]);
}

void mgx_tensor_print(struct mgx_str *out, const struct mgx_tensor *t)
{
    assert(!mgx_tensor_memory(t));
    for (int i = 0; i < t->sub_count; i++) {
        mgx_str_put(out, i ? ", [" : "[");
        mgx_tensor_print(out, &t->sub[i]);
        mgx_str_putc(out, ']');
    }
    for (struct walk w = walk_start(&t->shape); w.element < w.count; walk_next(&w)) {
        if (w.element)
            mgx_str_put(out, ", ");
        print_element(out, t->shape.type, t->data, w.offset);
    }
}

// --- converting ---

void mgx_tensor_to_doubles(const struct mgx_tensor *t, double *out)
{
    assert(!mgx_tensor_memory(t) && !t->sub);
    for (struct walk w = walk_start(&t->shape); w.element < w.count; walk_next(&w))
        out[w.element] = mgx_load_double(t->shape.type, t->data, w.offset);
}

void mgx_tensor_to_ints(const struct mgx_tensor *t, int64_t *out)
{
    assert(!mgx_tensor_memory(t) && !t->sub);
    for (struct walk w = walk_start(&t->shape); w.element < w.count; walk_next(&w))
        out[w.element] = mgx_load_int(t->shape.type, t->data, w.offset);
}

// --- generating ---

struct xorshf96 {
    uint64_t x, y, z;
};

static uint64_t xorshf96_next(struct xorshf96 *g)
{
    g->x ^= g->x << 16;
    g->x ^= g->x >> 5;
    g->x ^= g->x << 1;
    const uint64_t t = g->x;
    g->x = g->y;
    g->y = g->z;
    g->z = t ^ g->x ^ g->y;
    return g->z;
}

// Floats are multiples of 1/16 in [-1, 1), signed integers in (-h, h] with h = 2^(5 bytes - 1),
// unsigned ones in [0, 2h), bool the lowest bit.
static void generate_element(enum mgx_type type, void *data, int64_t i, uint64_t z)
{
    const uint64_t range = (uint64_t)1 << (5 * mgx_type_size(type));
    if (mgx_type_is_float(type))
        mgx_store_double(type, data, i, z == 0 ? 0 : (double)(z % 32) / 16 - 1);
    else if (type == MGX_BOOL)
        mgx_store_int(type, data, i, (int64_t)(z & 1));
    else if (mgx_type_is_unsigned(type))
        mgx_store_int(type, data, i, (int64_t)(z % range));
    else if (mgx_type_is_integral(type))
        mgx_store_int(type, data, i, (int64_t)(range / 2) - (int64_t)(z % range));
    else
        ((uint8_t *)data)[i] = (uint8_t)z;
}

void mgx_tensor_generate(struct mgx_tensor *t, uint64_t seed)
{
    assert(!mgx_tensor_memory(t));
    for (int i = 0; i < t->sub_count; i++)
        mgx_tensor_generate(&t->sub[i], seed);
    if (t->shape.type == MGX_STRING || t->sub_count)
        return;
    struct xorshf96 g = {123456789, 362436069, 521288629 ^ seed};
    int64_t count = mgx_shape_space(&t->shape);
    enum mgx_type type = t->shape.type;
    if (mgx_type_is_complex(type)) { // real and imaginary parts in turn
        type = type == MGX_COMPLEX64 ? MGX_FLOAT : MGX_DOUBLE;
        count *= 2;
    }
    for (int64_t i = 0; i < count; i++)
        generate_element(type, t->data, i, xorshf96_next(&g));
}
