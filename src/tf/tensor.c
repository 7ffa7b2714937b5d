// SPDX-License-Identifier: MIT
// TensorProto to a literal.
//
// Bytes in one piece (tensor_content, one packed list of floats) become views of the file where
// they may; numbers one by one are read into memory of their own. A list that is shorter than the
// tensor goes on with its last number; one number for all is one element and a broadcast, so a
// few bytes never ask for many.
//
// Holds: dims, type and size are compared here, once, for every tensor, wherever it stands.
// Cost: a view O(1), a copy O(bytes).
#include <assert.h>
#include <string.h>

#include "base/half.h"
#include "base/size.h"
#include "tf/graph.h"

enum field {
    CONTENT = 4,
    FLOATS = 5,
    DOUBLES = 6,
    INTS = 7,
    STRINGS = 8,
    COMPLEX = 9,
    INT64S = 10,
    BOOLS = 11,
    DCOMPLEX = 12,
    HALVES = 13,
    UINT32S = 16,
    UINT64S = 17,
    BYTES = 18,
};

struct header {
    int64_t type_number;
    struct mgx_shape shape;
    struct mgx_slice content; // text NULL: none
    uint32_t field;           // of the numbers, by type
    int width;                // of a number on the wire, 0 for a varint
    struct mgx_wire message;
};

// Types whose numbers have a field of their own; all others come as INTS.
static const struct {
    enum mgx_type type;
    uint32_t field;
    int width;
} number_fields[] = {
    {MGX_FLOAT, FLOATS, 4},        {MGX_DOUBLE, DOUBLES, 8}, {MGX_COMPLEX64, COMPLEX, 4},
    {MGX_COMPLEX128, DCOMPLEX, 8}, {MGX_STRING, STRINGS, 0}, {MGX_INT64, INT64S, 0},
    {MGX_BOOL, BOOLS, 0},          {MGX_HALF, HALVES, 0},    {MGX_BF16, HALVES, 0},
    {MGX_UINT32, UINT32S, 0},      {MGX_UINT64, UINT64S, 0}, {MGX_FP8E5M2, BYTES, 0},
    {MGX_FP8E4M3FN, BYTES, 0}};

static uint32_t field_of(enum mgx_type type, int *width)
{
    for (int i = 0; i < MGX_COUNT(number_fields); i++)
        if (number_fields[i].type == type) {
            *width = number_fields[i].width;
            return number_fields[i].field;
        }
    *width = 0;
    return INTS;
}

static enum mgx_status read_fields(struct mgx_node *n, struct mgx_wire w, struct header *h,
                                   struct mgx_wire *shape)
{
    struct mgx_wire_field f;
    *shape = mgx_wire_of("", 0);
    *h = (struct header){.message = w};
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 1)
            mgx_wire_int(&w, &f, &h->type_number);
        else if (f.number == 2)
            mgx_wire_message(&w, &f, shape);
        else if (f.number == CONTENT)
            mgx_wire_bytes(&w, &f, &h->content);
    }
    return w.bad ? mgx_wire_fail(&w, "TensorProto", n->diag) : MGX_OK;
}

static enum mgx_status read_header(struct mgx_node *n, struct mgx_wire w, struct header *h)
{
    struct mgx_wire shape;
    enum mgx_type type = MGX_FLOAT;
    int64_t lens[MGX_MAX_RANK];
    int rank = 0;
    TRY(read_fields(n, w, h, &shape));
    TRY(mgx_tf_type_of(h->type_number, &type, n->diag));
    TRY(mgx_tf_read_shape(shape, &rank, lens, n->diag));
    for (int i = 0; i < rank; i++)
        if (lens[i] < 0)
            return mgx_node_invalid(n, "a constant has a dimension that is unknown");
    if (rank < 0)
        return mgx_node_invalid(n, "a constant has an unknown rank");
    h->shape = mgx_shape_make(type, rank, lens);
    h->field = field_of(type, &h->width);
    TRY(mgx_shape_check(&h->shape, n->diag));
    const size_t most = n->tf->import->options.limit_bytes;
    if (mgx_shape_bytes(&h->shape) > most)
        return mgx_fail(n->diag, MGX_LIMIT, "tensor of %zu bytes is above the limit of %zu bytes",
                        mgx_shape_bytes(&h->shape), most);
    return MGX_OK;
}

// --- bytes ---

enum mgx_status mgx_tf_from_region(struct mgx_node *n, const struct mgx_region *region,
                                   const struct mgx_shape *shape, struct mgx_tensor *out)
{
    assert(mgx_shape_is_static(shape));
    if (mgx_region_is_usable(region, shape)) {
        *out = mgx_region_show(region, shape);
        return MGX_OK;
    }
    TRY(mgx_tensor_create(out, shape, n->diag));
    mgx_region_copy(region, out->data);
    uint8_t *flags = out->data;
    for (size_t i = 0; shape->type == MGX_BOOL && i < region->size; i++)
        flags[i] = flags[i] != 0;
    return MGX_OK;
}

static enum mgx_status from_bytes(struct mgx_node *n, const struct header *h,
                                  struct mgx_slice bytes, struct mgx_tensor *out)
{
    const struct mgx_source *source = &n->tf->import->source;
    const struct mgx_region region = {(const uint8_t *)bytes.text, bytes.size, source->file,
                                      source->storage};
    if (bytes.size != mgx_shape_bytes(&h->shape))
        return mgx_node_invalid(n, "data of %zu bytes where its dimensions need %zu", bytes.size,
                                mgx_shape_bytes(&h->shape));
    return mgx_tf_from_region(n, &region, &h->shape, out);
}

// The numbers as bytes, if they lie in one piece and are as many as the tensor needs.
static bool in_one_piece(const struct header *h, struct mgx_slice *out)
{
    struct mgx_wire_field f;
    int pieces = 0;
    if (!h->width)
        return false;
    for (struct mgx_wire w = h->message; mgx_wire_next(&w, &f);)
        if (f.number == h->field) {
            if (pieces++ || f.type != MGX_WIRE_BYTES)
                return false;
            *out = (struct mgx_slice){(const char *)f.data, f.size};
        }
    return pieces == 1 && out->size == mgx_shape_bytes(&h->shape);
}

// --- numbers ---

static void store(enum mgx_type type, void *data, int64_t i, uint64_t bits)
{
    switch (type) {
    case MGX_FLOAT:
    case MGX_COMPLEX64:
        memcpy((char *)data + 4 * i, &bits, 4);
        break;
    case MGX_DOUBLE:
    case MGX_COMPLEX128:
        memcpy((char *)data + 8 * i, &bits, 8);
        break;
    case MGX_HALF:
    case MGX_BF16:
        memcpy((char *)data + 2 * i, &bits, 2);
        break;
    case MGX_BOOL:
        ((uint8_t *)data)[i] = bits != 0;
        break;
    default:
        mgx_store_int(type, data, i, (int64_t)bits);
    }
}

// Reads at most `room` numbers into `data`; returns how many there are.
static int64_t read_numbers(const struct header *h, void *data, int64_t room, struct mgx_wire *bad)
{
    struct mgx_wire_field f;
    struct mgx_wire w = h->message, list;
    int64_t count = 0;
    while (mgx_wire_next(&w, &f)) {
        if (f.number != h->field || !mgx_wire_packed(&w, &f, h->width, &list))
            continue;
        while (list.p < list.end) {
            uint64_t bits = 0;
            if (h->width) {
                memcpy(&bits, list.p, (size_t)h->width);
                list.p += h->width;
            } else if (!mgx_wire_varint(&list, &bits)) {
                w.bad = list.bad;
                break;
            }
            if (count < room)
                store(h->shape.type, data, count, bits);
            count++;
        }
    }
    *bad = w;
    return count;
}

static void repeat_last(struct mgx_tensor *t, int64_t from, int64_t total, size_t size)
{
    char *data = t->data;
    for (int64_t i = from; from > 0 && i < total; i++)
        memcpy(data + (size_t)i * size, data + (size_t)(from - 1) * size, size);
}

// As many numbers as there are, the last one repeated. One for all: a single element.
static enum mgx_status from_numbers(struct mgx_node *n, struct header *h, struct mgx_tensor *out)
{
    const int parts = mgx_type_is_complex(h->shape.type) ? 2 : 1;
    struct mgx_wire bad;
    uint64_t one[2] = {0};
    const int64_t given = read_numbers(h, one, parts, &bad), total = mgx_shape_elements(&h->shape);
    if (bad.bad)
        return mgx_wire_fail(&bad, "TensorProto", n->diag);
    if (given % parts || given / parts > total)
        return mgx_node_invalid(n, "data of %lld numbers where its dimensions need %lld",
                                (long long)given, (long long)(total * parts));
    if (given <= parts && total > 1) {
        h->shape = mgx_shape_scalar(h->shape.type);
        TRY(mgx_tensor_create(out, &h->shape, n->diag));
        memcpy(out->data, one, mgx_shape_bytes(&h->shape));
        return MGX_OK;
    }
    TRY(mgx_fold_spend(n->fold, mgx_shape_bytes(&h->shape), "a constant", n->diag));
    TRY(mgx_tensor_create(out, &h->shape, n->diag));
    memset(out->data, 0, mgx_shape_bytes(&h->shape));
    read_numbers(h, out->data, total * parts, &bad);
    repeat_last(out, given / parts, total, total ? mgx_shape_bytes(&h->shape) / (size_t)total : 0);
    return MGX_OK;
}

// --- strings ---

static enum mgx_status from_strings(struct mgx_node *n, const struct header *h,
                                    struct mgx_tensor *out)
{
    struct mgx_wire_field f;
    const int64_t total = mgx_shape_elements(&h->shape);
    TRY(mgx_fold_spend(n->fold, (size_t)total * sizeof(struct mgx_string), "strings", n->diag));
    TRY(mgx_strings_create(&h->shape, n->tf->import->source.storage, out, n->diag));
    struct mgx_string *strings = out->data, last = {"", 0};
    int64_t count = 0;
    for (struct mgx_wire w = h->message; mgx_wire_next(&w, &f);) {
        if (f.number != STRINGS || f.type != MGX_WIRE_BYTES)
            continue;
        last = (struct mgx_string){(const char *)f.data, f.size};
        if (count < total)
            strings[count] = last;
        count++;
    }
    for (int64_t i = count; i < total; i++)
        strings[i] = last;
    if (count > total)
        return mgx_node_invalid(n, "%lld strings where its dimensions need %lld", (long long)count,
                                (long long)total);
    return MGX_OK;
}

// --- together ---

static enum mgx_status read_tensor(struct mgx_node *n, struct header *h, struct mgx_tensor *out)
{
    struct mgx_slice bytes = h->content;
    const bool text = h->shape.type == MGX_STRING;
    if (text && bytes.size)
        return mgx_node_unsupported(n, "strings as tensor_content are not supported");
    if (text)
        return from_strings(n, h, out);
    if (bytes.size || in_one_piece(h, &bytes))
        return from_bytes(n, h, bytes, out);
    if (h->field == BYTES && mgx_shape_elements(&h->shape))
        return mgx_node_unsupported(n, "constants of %s one by one are not supported",
                                    mgx_type_name(h->shape.type));
    return from_numbers(n, h, out);
}

struct mgx_ins *mgx_tf_read_tensor(struct mgx_node *n, struct mgx_wire w)
{
    struct header h;
    struct mgx_tensor t = {0};
    if (read_header(n, w, &h) != MGX_OK)
        return NULL;
    const struct mgx_shape wanted = h.shape;
    const enum mgx_status status = read_tensor(n, &h, &t);
    struct mgx_ins *ins = status == MGX_OK ? mgx_add_literal(n->module, &t) : NULL;
    mgx_tensor_release(&t);
    if (!ins || mgx_shape_elements(&wanted) == mgx_shape_elements(&h.shape))
        return ins;
    return mgx_build_expand(n, ins, wanted.rank, wanted.lens);
}
