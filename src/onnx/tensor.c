// SPDX-License-Identifier: MIT
// TensorProto to a tensor.
//
// Raw bytes, and packed typed fields that look like raw bytes, become views of the file. They are
// copied only when that cannot be: misaligned for their type, types narrower than a byte (one byte
// per element here), booleans other than 0 and 1, varints. Large floats stay views wherever they
// lie: three weights of four are misaligned, and whoever packs them reads them once. After a copy
// the file's pages may leave memory again.
//
// Holds: dims, type and size are compared here, once, for every tensor, wherever it stands.
// Cost: a view O(1), a copy O(bytes).
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "ir/inside.h"
#include "onnx/graph.h"
#include "onnx/handed.h"

// --- types ---

// Is this the type that the standard calls so? Said a second time, by name.
__attribute__((unused)) static bool is_called(int64_t number, enum mgx_type type)
{
    static const char *const names[] = {"",
                                        "float",
                                        "uint8",
                                        "int8",
                                        "uint16",
                                        "int16",
                                        "int32",
                                        "int64",
                                        "string",
                                        "bool",
                                        "float16",
                                        "double",
                                        "uint32",
                                        "uint64",
                                        "complex64",
                                        "complex128",
                                        "bfloat16",
                                        "float8e4m3fn",
                                        "float8e4m3fnuz",
                                        "float8e5m2",
                                        "float8e5m2fnuz",
                                        "uint4",
                                        "int4",
                                        "float4e2m1",
                                        "float8e8m0",
                                        "uint2",
                                        "int2"};
    enum mgx_type found;
    return number < MGX_COUNT(names) &&
           mgx_type_find(names[number], strlen(names[number]), &found) && found == type;
}

// By the standard's numbers.
static const int16_t types[] = {-1,
                                MGX_FLOAT,
                                MGX_UINT8,
                                MGX_INT8,
                                MGX_UINT16,
                                MGX_INT16,
                                MGX_INT32,
                                MGX_INT64,
                                MGX_STRING,
                                MGX_BOOL,
                                MGX_HALF,
                                MGX_DOUBLE,
                                MGX_UINT32,
                                MGX_UINT64,
                                MGX_COMPLEX64,
                                MGX_COMPLEX128,
                                MGX_BF16,
                                MGX_FP8E4M3FN,
                                MGX_FP8E4M3FNUZ,
                                MGX_FP8E5M2,
                                MGX_FP8E5M2FNUZ,
                                MGX_UINT4,
                                MGX_INT4,
                                MGX_FP4,
                                MGX_FP8E8M0,
                                MGX_UINT2,
                                MGX_INT2};

enum mgx_status mgx_onnx_type_of(int64_t number, enum mgx_type *out, struct mgx_diag *diag)
{
    if (number < 1 || number >= MGX_COUNT(types))
        return mgx_fail(diag, number == 27 || number == 28 ? MGX_UNSUPPORTED : MGX_INVALID,
                        "element type %lld is not known", (long long)number);
    *out = (enum mgx_type)types[number];
    assert(is_called(number, *out));
    return MGX_OK;
}

// Bits of an element in the file.
static size_t bits_of(enum mgx_type type)
{
    switch (type) {
    case MGX_INT4:
    case MGX_UINT4:
    case MGX_FP4:
        return 4;
    case MGX_INT2:
    case MGX_UINT2:
        return 2;
    default:
        return 8 * mgx_type_size(type);
    }
}

// --- the message ---

enum field {
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    STRING_DATA = 6,
    INT64_DATA = 7,
    RAW_DATA = 9,
    DOUBLE_DATA = 10,
    UINT64_DATA = 11,
    EXTERNAL_DATA = 13
};

struct header {
    int64_t dims[MGX_MAX_RANK];
    int64_t rank; // as many as there are, also beyond the room
    int64_t type_number, location;
    struct mgx_slice name;
    bool segment, has_raw;
    struct mgx_slice raw;
    uint32_t typed; // field number of typed data; 0 if none
    bool mixed;     // two kinds of typed data
    struct mgx_wire message;
};

static bool read_dims(struct mgx_wire *w, const struct mgx_wire_field *f, struct header *h)
{
    struct mgx_wire list;
    if (!mgx_wire_packed(w, f, 0, &list))
        return false;
    for (uint64_t value; list.p < list.end; h->rank++) {
        if (!mgx_wire_varint(&list, &value)) {
            w->bad = list.bad;
            return false;
        }
        if (h->rank < MGX_MAX_RANK)
            h->dims[h->rank] = (int64_t)value;
    }
    return true;
}

static bool is_typed(uint32_t number)
{
    return (number >= FLOAT_DATA && number <= INT64_DATA) || number == DOUBLE_DATA ||
           number == UINT64_DATA;
}

static enum mgx_status read_header(struct mgx_wire w, struct header *h, struct mgx_diag *diag)
{
    *h = (struct header){.name = {"", 0}, .message = w};
    struct mgx_wire_field f;
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 1)
            read_dims(&w, &f, h);
        else if (f.number == 2)
            mgx_wire_int(&w, &f, &h->type_number);
        else if (f.number == 3)
            h->segment = true;
        else if (f.number == 8)
            mgx_wire_bytes(&w, &f, &h->name);
        else if (f.number == RAW_DATA)
            h->has_raw = mgx_wire_bytes(&w, &f, &h->raw);
        else if (f.number == 14)
            mgx_wire_int(&w, &f, &h->location);
        else if (is_typed(f.number) && !(f.type == MGX_WIRE_BYTES && !f.size &&
                                         f.number != STRING_DATA)) { // an empty list is none
            h->mixed |= h->typed && h->typed != f.number;
            h->typed = f.number;
        }
    }
    return w.bad ? mgx_wire_fail(&w, "TensorProto", diag)
                 : mgx_name_check(h->name, "the name of a tensor", diag);
}

static enum mgx_status check_header(const struct header *h, struct mgx_shape *shape,
                                    struct mgx_onnx_import *import)
{
    struct mgx_diag *diag = import->diag;
    enum mgx_type type = MGX_FLOAT;
    TRY(mgx_onnx_type_of(h->type_number, &type, diag));
    if (h->segment)
        return mgx_fail(diag, MGX_UNSUPPORTED, "tensors in segments are not supported");
    if (h->rank > MGX_MAX_RANK)
        return mgx_fail(diag, MGX_LIMIT, "rank %lld is above %d", (long long)h->rank, MGX_MAX_RANK);
    if (h->has_raw && h->typed)
        return mgx_fail(diag, MGX_INVALID, "raw_data and a typed field are both present");
    if (h->mixed)
        return mgx_fail(diag, MGX_INVALID, "two typed fields are both present");
    *shape = mgx_shape_make(type, (int)h->rank, h->dims);
    TRY(mgx_shape_check(shape, diag));
    if (mgx_shape_bytes(shape) > import->options.limit_bytes)
        return mgx_fail(diag, MGX_LIMIT, "tensor of %zu bytes is above the limit of %zu bytes",
                        mgx_shape_bytes(shape), import->options.limit_bytes);
    return MGX_OK;
}

// --- raw bytes ---

// Elements narrower than a byte, low bits first, one byte each; signed ones sign-extended.
static void unpack_bits(const uint8_t *from, uint8_t *to, int64_t count, int bits, bool is_signed)
{
    const int per_byte = 8 / bits, mask = (1 << bits) - 1;
    assert(bits == 2 || bits == 4);
    for (int64_t i = 0; i < count; i++) {
        int value = from[i / per_byte] >> (i % per_byte * bits) & mask;
        if (is_signed && value >> (bits - 1))
            value -= 1 << bits;
        to[i] = (uint8_t)value;
    }
}

// Few bytes are not left in the file: sizes, axes and scales are read in every run, and whoever
// writes the model anew in its place meanwhile (as onnx.save does) would change them.
enum { FEW_BYTES = 4096 };

static bool needs_copy(const struct mgx_shape *shape, const struct mgx_region *raw)
{
    return bits_of(shape->type) < 8 || !mgx_region_is_usable(raw, shape) ||
           (raw->file && raw->size <= FEW_BYTES);
}

static void copy_raw(const struct mgx_region *raw, struct mgx_tensor *to)
{
    assert(raw->data || !raw->size);
    const int bits = (int)bits_of(to->shape.type);
    const int64_t count = mgx_shape_elements(&to->shape);
    uint8_t *out = to->data;
    if (bits < 8) {
        unpack_bits(raw->data, out, count, bits,
                    to->shape.type == MGX_INT4 || to->shape.type == MGX_INT2);
        return;
    }
    mgx_region_copy(raw, out);
    for (int64_t i = 0; to->shape.type == MGX_BOOL && i < count; i++)
        out[i] = out[i] != 0;
}

static size_t raw_size(const struct mgx_shape *shape)
{
    const size_t bits = bits_of(shape->type);
    const size_t count = (size_t)mgx_shape_elements(shape);
    return bits < 8 ? count / (8 / bits) + (count % (8 / bits) != 0) : count * (bits / 8);
}

static enum mgx_status from_raw(const struct mgx_region *raw, const struct mgx_shape *shape,
                                struct mgx_tensor *out, struct mgx_diag *diag)
{
    assert(raw->size == raw_size(shape));
    if (!needs_copy(shape, raw)) {
        *out = mgx_region_show(raw, shape);
        return MGX_OK;
    }
    TRY(mgx_tensor_create(out, shape, diag));
    copy_raw(raw, out);
    return MGX_OK;
}

static enum mgx_status external(struct mgx_onnx_import *import, const struct header *h,
                                const struct mgx_shape *shape, struct mgx_region *raw)
{
    if (h->has_raw || h->typed)
        return mgx_fail(import->diag, MGX_INVALID,
                        "data both inside the model and in an external file");
    if (shape->type == MGX_STRING)
        return mgx_fail(import->diag, MGX_INVALID, "strings cannot be external data");
    enum { MANY = 16 };
    struct mgx_wire entries[MANY];
    int count = 0;
    struct mgx_wire_field f;
    for (struct mgx_wire w = h->message; mgx_wire_next(&w, &f);) {
        if (f.number != EXTERNAL_DATA || f.type != MGX_WIRE_BYTES)
            continue;
        if (count == MANY)
            return mgx_fail(import->diag, MGX_INVALID, "more than %d external data entries", MANY);
        entries[count++] = mgx_wire_sub(&f);
    }
    const struct mgx_messages list = {entries, count};
    return mgx_onnx_external(import, &list, raw_size(shape), raw);
}

// --- typed fields ---

// Which field holds a type's elements, and how many numbers one element takes (in halves: 1 stands
// for two 4-bit elements per number).
static uint32_t field_of(enum mgx_type type)
{
    switch (type) {
    case MGX_FLOAT:
    case MGX_COMPLEX64:
        return FLOAT_DATA;
    case MGX_DOUBLE:
    case MGX_COMPLEX128:
        return DOUBLE_DATA;
    case MGX_INT64:
        return INT64_DATA;
    case MGX_UINT32:
    case MGX_UINT64:
        return UINT64_DATA;
    case MGX_STRING:
        return STRING_DATA;
    default:
        return INT32_DATA;
    }
}

// A packed list of floats or doubles in one piece is as good as raw bytes.
static bool as_raw(const struct header *h, struct mgx_region *raw)
{
    assert(h->typed == FLOAT_DATA || h->typed == DOUBLE_DATA);
    struct mgx_wire_field f;
    int pieces = 0;
    for (struct mgx_wire w = h->message; mgx_wire_next(&w, &f);)
        if (f.number == h->typed) {
            if (pieces++ || f.type != MGX_WIRE_BYTES)
                return false;
            raw->data = f.data;
            raw->size = f.size;
        }
    return pieces == 1;
}

// Numbers of a typed field one after the other, packed or not.
struct numbers {
    struct mgx_wire message, list;
    uint32_t field;
    int width;
};

static bool next_number(struct numbers *s, uint64_t *out)
{
    assert(s->width == 0 || s->width == 4 || s->width == 8);
    struct mgx_wire_field f;
    while (s->list.p == s->list.end) {
        if (!mgx_wire_next(&s->message, &f))
            return false;
        if (f.number == s->field && !mgx_wire_packed(&s->message, &f, s->width, &s->list))
            return false;
    }
    if (!s->width)
        return mgx_wire_varint(&s->list, out);
    *out = 0;
    assert(s->list.end - s->list.p >= s->width); // packed lists hold whole numbers
    memcpy(out, s->list.p, (size_t)s->width);
    s->list.p += s->width;
    return true;
}

// One number of the field into the tensor's memory; `i` counts numbers.
static void store_number(enum mgx_type type, uint8_t *data, int64_t i, int64_t total,
                         uint64_t value)
{
    const int bits = (int)bits_of(type);
    if (bits < 8) {
        const int per_byte = 8 / bits;
        const uint8_t byte = (uint8_t)value;
        const int64_t first = i * per_byte;
        const int64_t count = total - first < per_byte ? total - first : per_byte;
        assert(first >= 0 && count > 0);
        unpack_bits(&byte, data + first, count, bits, type == MGX_INT4 || type == MGX_INT2);
        return;
    }
    const size_t width = type == MGX_COMPLEX64    ? 4
                         : type == MGX_COMPLEX128 ? 8
                                                  : mgx_type_size(type);
    if (type == MGX_BOOL)
        value = value != 0;
    assert(i >= 0 && i * (int64_t)width < total * (int64_t)mgx_type_size(type));
    memcpy(data + (size_t)i * width, &value, width); // the low bytes: little endian
}

static enum mgx_status from_numbers(const struct header *h, const struct mgx_shape *shape,
                                    struct mgx_tensor *out, struct mgx_diag *diag)
{
    assert(h->typed && shape->type != MGX_STRING);
    const int64_t total = mgx_shape_elements(shape);
    const size_t bits = bits_of(shape->type);
    const int64_t expected = bits < 8                           ? (int64_t)raw_size(shape)
                             : mgx_type_is_complex(shape->type) ? 2 * total
                                                                : total;
    struct numbers numbers = {.message = h->message, .field = h->typed};
    numbers.width = h->typed == FLOAT_DATA ? 4 : h->typed == DOUBLE_DATA ? 8 : 0;
    // Every number takes a byte at least: what cannot be there is not allocated for.
    if (expected > h->message.end - h->message.p)
        return mgx_fail(diag, MGX_INVALID,
                        "%lld numbers expected, the tensor's message has %td "
                        "bytes",
                        (long long)expected, h->message.end - h->message.p);
    TRY(mgx_tensor_create(out, shape, diag));
    int64_t i = 0;
    uint64_t value;
    for (; next_number(&numbers, &value); i++)
        if (i < expected)
            store_number(shape->type, out->data, i, total, value);
    if (numbers.message.bad || numbers.list.bad)
        return mgx_wire_fail(numbers.list.bad ? &numbers.list : &numbers.message, "TensorProto",
                             diag);
    if (i != expected)
        return mgx_fail(diag, MGX_INVALID, "data of %lld numbers where its dimensions need %lld",
                        (long long)i, (long long)expected);
    return MGX_OK;
}

// --- strings ---

// The elements point into the file; the storage keeps the file's.
static enum mgx_status from_strings(const struct header *h, const struct mgx_shape *shape,
                                    struct mgx_storage *keep, struct mgx_tensor *out,
                                    struct mgx_diag *diag)
{
    assert(shape->type == MGX_STRING);
    const int64_t expected = mgx_shape_elements(shape);
    int64_t count = 0;
    struct mgx_wire_field f;
    for (struct mgx_wire w = h->message; mgx_wire_next(&w, &f);)
        count += f.number == STRING_DATA;
    if (count != expected)
        return mgx_fail(diag, MGX_INVALID, "%lld strings where its dimensions need %lld",
                        (long long)count, (long long)expected);
    TRY(mgx_strings_create(shape, keep, out, diag));
    struct mgx_string *strings = out->data;
    int64_t i = 0;
    for (struct mgx_wire w = h->message; i < count && mgx_wire_next(&w, &f);)
        if (f.number == STRING_DATA && f.type == MGX_WIRE_BYTES)
            strings[i++] = (struct mgx_string){(const char *)f.data, f.size};
    if (i != count)
        return mgx_fail(diag, MGX_INVALID, "string_data holds something else than strings");
    return MGX_OK;
}

// --- together ---

static enum mgx_status read_inside(struct mgx_onnx_import *import, const struct header *h,
                                   const struct mgx_shape *shape, struct mgx_tensor *out)
{
    struct mgx_diag *diag = import->diag;
    struct mgx_region raw = {.data = (const uint8_t *)h->raw.text,
                             .size = h->raw.size,
                             .file = import->source.file,
                             .storage = import->source.storage};
    if (shape->type == MGX_STRING && h->has_raw)
        return mgx_fail(diag, MGX_INVALID, "strings cannot be raw_data");
    if (h->typed && h->typed != field_of(shape->type))
        return mgx_fail(diag, MGX_INVALID, "data of type %s in field %u where field %u belongs",
                        mgx_type_name(shape->type), h->typed, field_of(shape->type));
    if (shape->type == MGX_STRING)
        return from_strings(h, shape, import->source.storage, out, diag);
    const bool is_raw =
        h->has_raw || ((h->typed == FLOAT_DATA || h->typed == DOUBLE_DATA) && as_raw(h, &raw));
    if (!is_raw && h->typed)
        return from_numbers(h, shape, out, diag);
    if (raw.size != raw_size(shape))
        return mgx_fail(diag, MGX_INVALID, "data of %zu bytes where its dimensions need %zu",
                        raw.size, raw_size(shape));
    if (!raw.size)
        return mgx_tensor_create(out, shape, diag); // no elements
    return from_raw(&raw, shape, out, diag);
}

enum mgx_status mgx_onnx_read_tensor(struct mgx_onnx_import *import, struct mgx_wire w,
                                     struct mgx_slice *name, struct mgx_tensor *out)
{
    struct header h;
    struct mgx_shape shape;
    struct mgx_region raw;
    *out = (struct mgx_tensor){0};
    enum mgx_status status = read_header(w, &h, import->diag);
    if (status == MGX_OK)
        status = check_header(&h, &shape, import);
    if (status == MGX_OK && h.location == 1) {
        status = external(import, &h, &shape, &raw);
        if (status == MGX_OK)
            status = raw.size ? from_raw(&raw, &shape, out, import->diag)
                              : mgx_tensor_create(out, &shape, import->diag);
    } else if (status == MGX_OK) {
        status = read_inside(import, &h, &shape, out);
    }
    if (status != MGX_OK) {
        mgx_tensor_release(out);
        if (h.name.size)
            mgx_where(import->diag, "tensor \"%.*s\"", MGX_SLICE(h.name));
    }
    assert(status != MGX_OK ||
           (mgx_shape_equal(&out->shape, &shape) && mgx_tensor_lies_inside(out)));
    if (name)
        *name = h.name;
    return status;
}

static enum mgx_status show_weight(struct mgx_onnx_import *import, const struct mgx_onnx_weight *w,
                                   struct mgx_tensor *out)
{
    struct header h = {.rank = w->dims.count, .type_number = w->type};
    struct mgx_shape shape;
    if (w->dims.count)
        memcpy(h.dims, w->dims.v, (size_t)w->dims.count * sizeof *h.dims);
    TRY(check_header(&h, &shape, import));
    if (shape.type == MGX_STRING)
        return mgx_fail(import->diag, MGX_INVALID, "strings have no bytes to show");
    if (w->region.size != raw_size(&shape))
        return mgx_fail(import->diag, MGX_INVALID,
                        "data of %zu bytes where its dimensions need %zu", w->region.size,
                        raw_size(&shape));
    return w->region.size ? from_raw(&w->region, &shape, out, import->diag)
                          : mgx_tensor_create(out, &shape, import->diag);
}

enum mgx_status mgx_onnx_show_weight(struct mgx_onnx_import *import,
                                     const struct mgx_onnx_weight *w, struct mgx_tensor *out)
{
    assert(w->dims.count >= 0 && w->dims.count <= MGX_MAX_RANK);
    *out = (struct mgx_tensor){0};
    const enum mgx_status status = show_weight(import, w, out);
    if (status != MGX_OK)
        mgx_where(import->diag, "tensor \"%.120s\"", w->name);
    return status;
}
