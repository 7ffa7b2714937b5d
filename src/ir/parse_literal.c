// SPDX-License-Identifier: MIT
// Values of @literal{...}: listed ones one by one, "..." as zeros.
//
// Large zeros are pages that nobody has touched, so a text that claims a large elided literal costs
// address space and no memory. Cost: linear in the values.
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ir/scan.h"
#include "ir/tensor.h"

#define ELIDED_BYTES ((size_t)1 << 36) // of one literal
enum { LARGE = 1 << 20 };

static void *zero_bytes(size_t bytes)
{
    if (bytes < LARGE)
        return calloc(1, bytes ? bytes : 1);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

static void free_zeros(struct mgx_storage *storage)
{
    if (storage->bytes < LARGE)
        free(storage->data);
    else
        munmap(storage->data, storage->bytes);
    free(storage);
}

static enum mgx_status zeros(struct mgx_tensor *out, const struct mgx_shape *shape,
                             struct mgx_diag *diag);

static enum mgx_status zero_tuple(struct mgx_tensor *out, const struct mgx_shape *shape,
                                  struct mgx_diag *diag)
{
    assert(shape->sub_count >= 0);
    const bool sequence = shape->type == MGX_SEQUENCE;
    const int count = sequence ? 0 : shape->sub_count;
    struct mgx_tensor *members = calloc((size_t)count + 1, sizeof *members);
    if (!members)
        return mgx_fail_memory(diag);
    enum mgx_status status = MGX_OK;
    for (int i = 0; i < count && status == MGX_OK; i++)
        status = zeros(&members[i], &shape->sub[i], diag);
    if (status == MGX_OK)
        status = mgx_tensor_group(out, members, count, sequence, diag);
    for (int i = 0; i < count; i++)
        mgx_tensor_release(&members[i]);
    free(members);
    return status;
}

// Depth of tuples is bounded by mgx_shape_check, which every scanned shape has passed.
static enum mgx_status zeros(struct mgx_tensor *out, const struct mgx_shape *shape,
                             struct mgx_diag *diag)
{
    assert(mgx_shape_is_static(shape) || shape->type == MGX_SEQUENCE);
    if (shape->type == MGX_TUPLE || shape->type == MGX_SEQUENCE)
        return zero_tuple(out, shape, diag);
    const size_t bytes = mgx_shape_bytes(shape);
    if (bytes > ELIDED_BYTES)
        return mgx_fail(diag, MGX_LIMIT, "a literal of %zu bytes is above the limit of %zu", bytes,
                        ELIDED_BYTES);
    struct mgx_storage *storage = malloc(sizeof *storage);
    void *data = storage ? zero_bytes(bytes) : NULL;
    if (!data) {
        free(storage);
        return mgx_fail_memory(diag);
    }
    *storage = (struct mgx_storage){.data = data, .bytes = bytes, .release = free_zeros};
    atomic_init(&storage->refs, 1);
    *out = (struct mgx_tensor){.shape = *shape, .data = data, .storage = storage};
    return MGX_OK;
}

static enum mgx_status scan_uint(struct mgx_scan *s, int64_t *out)
{
    uint64_t value = 0;
    const char *start = s->at;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (unsigned)(*s->at - '0'), &value)) {
            s->at = start;
            return mgx_scan_expected(s, "an unsigned integer of 64 bits");
        }
    if (s->at == start)
        return mgx_scan_expected(s, "an unsigned integer");
    *out = (int64_t)value;
    return MGX_OK;
}

static enum mgx_status scan_complex(struct mgx_scan *s, enum mgx_type part, void *data, int64_t i)
{
    assert(part == MGX_FLOAT || part == MGX_DOUBLE);
    double real, imaginary;
    TRY(mgx_scan_expect(s, '('));
    TRY(mgx_scan_double(s, &real));
    TRY(mgx_scan_expect(s, ','));
    TRY(mgx_scan_double(s, &imaginary));
    mgx_store_double(part, data, 2 * i, real);
    mgx_store_double(part, data, 2 * i + 1, imaginary);
    return mgx_scan_expect(s, ')');
}

static enum mgx_status scan_element(struct mgx_scan *s, enum mgx_type type, void *data, int64_t i)
{
    if (type == MGX_COMPLEX64 || type == MGX_COMPLEX128)
        return scan_complex(s, type == MGX_COMPLEX64 ? MGX_FLOAT : MGX_DOUBLE, data, i);
    if (type == MGX_STRING) {
        struct mgx_string *element = &((struct mgx_string *)data)[i];
        TRY(mgx_scan_string(s, ",}", &element->text));
        element->size = strlen(element->text);
        return MGX_OK;
    }
    if (mgx_type_is_float(type)) {
        double value;
        TRY(mgx_scan_double(s, &value));
        mgx_store_double(type, data, i, value);
        return MGX_OK;
    }
    int64_t value;
    if (mgx_scan_peek(s), type == MGX_UINT64)
        TRY(scan_uint(s, &value));
    else
        TRY(mgx_scan_int(s, &value));
    mgx_store_int(type == MGX_FP4X2 ? MGX_UINT8 : type, data, i, value);
    return MGX_OK;
}

static enum mgx_status scan_values(struct mgx_scan *s, struct mgx_tensor *t)
{
    const int64_t count = mgx_shape_elements(&t->shape);
    for (int64_t i = 0; i < count; i++) {
        if (i)
            TRY(mgx_scan_expect(s, ','));
        TRY(scan_element(s, t->shape.type, t->data, mgx_shape_index(&t->shape, i)));
    }
    return mgx_scan_expect(s, '}');
}

// A literal of strings owns their bytes: they are read into the scanner's arena first.
static enum mgx_status own_strings(struct mgx_tensor *t, struct mgx_diag *diag)
{
    assert(t->shape.type == MGX_STRING);
    struct mgx_tensor own;
    TRY(mgx_tensor_clone(&own, t, diag));
    mgx_tensor_release(t);
    *t = own;
    return MGX_OK;
}

enum mgx_status mgx_scan_literal(struct mgx_scan *s, const struct mgx_shape *shape,
                                 struct mgx_tensor *out)
{
    *out = (struct mgx_tensor){0};
    if (!mgx_shape_is_static(shape) && shape->type != MGX_SEQUENCE)
        return mgx_scan_fail(s, s->at, MGX_INVALID, "a literal cannot have a dynamic shape");
    const bool elided = mgx_scan_peek(s) == '.' && s->end - s->at >= 3 && !memcmp(s->at, "...", 3);
    const bool dense = shape->type != MGX_TUPLE && shape->type != MGX_SEQUENCE;
    // Each listed value takes a byte of text at least, so memory is bounded by the text.
    if (!elided && dense && mgx_shape_elements(shape) > s->end - s->at)
        return mgx_scan_fail(s, s->at, MGX_INVALID, "the literal lists fewer than %lld values",
                             (long long)mgx_shape_elements(shape));
    TRY(zeros(out, shape, s->diag));
    enum mgx_status status = MGX_OK;
    if (elided) {
        s->at += 3;
        status = mgx_scan_expect(s, '}');
    } else if (dense)
        status = scan_values(s, out);
    else
        status = mgx_scan_expected(s, "'...'");
    if (status == MGX_OK && shape->type == MGX_STRING)
        status = own_strings(out, s->diag);
    if (status != MGX_OK)
        mgx_tensor_release(out);
    return status;
}
