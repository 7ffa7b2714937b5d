// SPDX-License-Identifier: MIT
// Tensors out of files that others write: numpy's .npy and .npz, ONNX's TensorProto (.pb), and
// saved arguments.
//
// A file is data from a stranger: every size is checked against the file before it is used, and
// shapes by the engine.
#include <ctype.h>
#include <stdint.h>

#include "driver.h"

struct bytes {
    const uint8_t *at;
    size_t size;
};

enum { MAX_RANK = 16 };

// An argument of this type and shape with these values, as they lie in the file.
static bool make(const char *path, const char *type_name, const size_t *lens, size_t rank,
                 struct bytes values, migraphx_argument_t *out)
{
    migraphx_shape_datatype_t type;
    migraphx_shape_t shape = NULL;
    size_t size = 0;
    char *data;
    bool good = OK(migraphx_type_find(&type, type_name)) &&
                OK(rank ? migraphx_shape_create(&shape, type, (size_t *)lens, rank)
                        : migraphx_shape_create_scalar(&shape, type)) &&
                OK(migraphx_shape_bytes(&size, shape));
    if (good && size != values.size) {
        log_error("%s: %zu bytes of values, its shape has %zu", path, values.size, size);
        good = false;
    }
    good = good && OK(migraphx_argument_fill(out, shape, 0)) &&
           OK(migraphx_argument_buffer(&data, *out));
    if (good && size)
        memcpy(data, values.at, size);
    migraphx_shape_destroy(shape);
    return good;
}

static bool damaged(const char *path, const char *what)
{
    log_error("%s: %s", path, what);
    return false;
}

// --- .npy ---

static const char *type_of_npy(const char *descr)
{
    static const struct {
        const char *descr, *type;
    } types[] = {{"<f4", "float_type"},  {"<f8", "double_type"}, {"<f2", "half_type"},
                 {"<i8", "int64_type"},  {"<i4", "int32_type"},  {"<i2", "int16_type"},
                 {"|i1", "int8_type"},   {"<u8", "uint64_type"}, {"<u4", "uint32_type"},
                 {"<u2", "uint16_type"}, {"|u1", "uint8_type"},  {"|b1", "bool_type"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strncmp(descr, types[i].descr, 3) == 0)
            return types[i].type;
    return NULL;
}

// The value of a key in the header, which is a Python dictionary.
static const char *value_of(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    at = at ? strchr(at + strlen(key), ':') : NULL;
    while (at && (*++at == ' '))
        ;
    return at;
}

static bool load_npy(const char *path, struct bytes b, migraphx_argument_t *out)
{
    char header[1024];
    size_t lens[MAX_RANK], rank = 0;
    if (b.size < 12 || memcmp(b.at, "\x93NUMPY", 6) != 0)
        return damaged(path, "is no .npy file");
    const size_t begin = b.at[6] == 1 ? 10 : 12;
    const size_t size = (size_t)b.at[8] | (size_t)b.at[9] << 8 |
                        (begin == 12 ? (size_t)b.at[10] << 16 | (size_t)b.at[11] << 24 : 0);
    if (size >= sizeof header || size > b.size - begin)
        return damaged(path, "its header is too long");
    memcpy(header, b.at + begin, size);
    header[size] = '\0';
    const char *descr = value_of(header, "'descr'"), *order = value_of(header, "'fortran_order'");
    const char *shape = value_of(header, "'shape'");
    const char *type = descr && *descr == '\'' ? type_of_npy(descr + 1) : NULL;
    if (!type || !order || !shape || *shape != '(')
        return damaged(path, "a type that is not read here");
    if (strncmp(order, "False", 5) != 0)
        return damaged(path, "its columns come first (fortran_order)");
    for (char *end; rank < MAX_RANK && *shape && *shape != ')'; shape = end) {
        shape += strcspn(shape, "0123456789)");
        if (*shape == ')')
            break;
        lens[rank++] = strtoull(shape, &end, 10);
    }
    return make(path, type, lens, rank, (struct bytes){b.at + begin + size, b.size - begin - size},
                out);
}

// --- .npz: a zip archive whose entries numpy.savez does not compress ---

static uint32_t number(const uint8_t *at, int width)
{
    uint32_t n = 0;
    for (int i = 0; i < width; i++)
        n |= (uint32_t)at[i] << (8 * i);
    return n;
}

// The entry of this name (without .npy); without a name the first one.
static bool load_npz(const char *path, struct bytes b, const char *name, migraphx_argument_t *out)
{
    for (size_t at = 0; b.size - at >= 30 && number(b.at + at, 4) == 0x04034b50;) {
        const uint8_t *h = b.at + at;
        const size_t name_size = number(h + 26, 2), extra = number(h + 28, 2);
        size_t size = number(h + 18, 4);
        if (b.size - at - 30 < name_size + extra)
            return damaged(path, "is cut off");
        if (size == 0xffffffff && extra >= 20) // sizes of 8 bytes are in the extra field
            size = number(h + 30 + name_size + 12, 4);
        const size_t begin = at + 30 + name_size + extra;
        if (size > b.size - begin)
            return damaged(path, "is cut off");
        const char *entry = (const char *)h + 30;
        const bool wanted =
            !name || (name_size == strlen(name) + 4 && strncmp(entry, name, strlen(name)) == 0);
        if (wanted && number(h + 8, 2) != 0)
            return damaged(path, "is compressed; numpy.savez writes what is read here");
        if (wanted)
            return load_npy(path, (struct bytes){b.at + begin, size}, out);
        at = begin + size;
    }
    log_error("%s: has no array '%s'", path, name ? name : "");
    return false;
}

// --- TensorProto ---

static const char *const onnx_types[] = {NULL,          "float_type", "uint8_type", "int8_type",
                                         "uint16_type", "int16_type", "int32_type", "int64_type",
                                         NULL,          "bool_type",  "half_type",  "double_type",
                                         "uint32_type", "uint64_type"};

static bool varint(struct bytes *b, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && b->size; shift += 7) {
        const uint8_t byte = *b->at++;
        b->size--;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

struct proto {
    size_t lens[MAX_RANK], rank;
    uint64_t type;
    struct bytes raw, floats, ints, doubles; // typed data, packed
    struct bytes name;
};

// One field: its number, and its bytes or its value.
static bool next_field(struct bytes *b, uint64_t *key, uint64_t *value, struct bytes *content)
{
    *content = (struct bytes){NULL, 0};
    *value = 0;
    if (!varint(b, key))
        return false;
    const int kind = (int)(*key & 7);
    uint64_t size = kind == 1 ? 8 : 4;
    if (kind == 0)
        return varint(b, value);
    if ((kind != 1 && kind != 2 && kind != 5) || (kind == 2 && !varint(b, &size)) || size > b->size)
        return false;
    *content = (struct bytes){b->at, (size_t)size};
    b->at += size;
    b->size -= (size_t)size;
    return true;
}

static bool read_dims(struct bytes content, uint64_t value, struct proto *p)
{
    if (!content.at) {
        if (p->rank < MAX_RANK)
            p->lens[p->rank++] = (size_t)value;
        return p->rank < MAX_RANK;
    }
    while (content.size)
        if (p->rank == MAX_RANK || !varint(&content, &value))
            return false;
        else
            p->lens[p->rank++] = (size_t)value;
    return true;
}

static bool read_proto(struct bytes b, struct proto *p)
{
    uint64_t key, value;
    struct bytes content;
    while (b.size) {
        if (!next_field(&b, &key, &value, &content))
            return false;
        if (key >> 3 == 1 && !read_dims(content, value, p))
            return false;
        if (key >> 3 == 2)
            p->type = value;
        struct bytes *const to[] = {
            [4] = &p->floats, [5] = &p->ints,     [7] = &p->ints, [8] = &p->name,
            [9] = &p->raw,    [10] = &p->doubles, [11] = &p->ints};
        if (key >> 3 < sizeof to / sizeof *to && to[key >> 3] && content.at)
            *to[key >> 3] = content;
    }
    return true;
}

// Integers are stored as varints, whatever their type.
static uint8_t *widen(struct bytes ints, size_t width, size_t *size)
{
    uint8_t *out = malloc(ints.size * width + 1);
    uint64_t value;
    *size = 0;
    while (out && ints.size && varint(&ints, &value)) {
        memcpy(out + *size, &value, width);
        *size += width;
    }
    return out;
}

static bool load_proto(const char *path, struct bytes b, migraphx_argument_t *out)
{
    static const uint8_t widths[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8};
    struct proto p = {0};
    if (!read_proto(b, &p))
        return damaged(path, "is no TensorProto");
    const char *type = p.type < sizeof onnx_types / sizeof *onnx_types ? onnx_types[p.type] : NULL;
    if (!type)
        return damaged(path, "a type that is not read here");
    if (p.raw.at || p.floats.at || p.doubles.at || !p.ints.at)
        return make(path, type, p.lens, p.rank,
                    p.raw.at      ? p.raw
                    : p.floats.at ? p.floats
                                  : p.doubles,
                    out);
    struct bytes values;
    uint8_t *wide = widen(p.ints, widths[p.type], &values.size);
    values.at = wide;
    const bool good = wide && make(path, type, p.lens, p.rank, values, out);
    free(wide);
    return good;
}

bool tensor_file_name(const char *path, char *name, size_t room)
{
    size_t size;
    char *text = read_whole(path, &size);
    struct proto p = {0};
    const bool good = text && read_proto((struct bytes){(uint8_t *)text, size}, &p) &&
                      p.name.size > 0 && p.name.size < room;
    if (good) {
        memcpy(name, p.name.at, p.name.size);
        name[p.name.size] = '\0';
    }
    free(text);
    return good;
}

// --- files ---

bool load_tensor(const char *path, const char *name, migraphx_argument_t *out)
{
    const char *dot = strrchr(path, '.');
    *out = NULL;
    if (!dot || (strcmp(dot, ".npy") != 0 && strcmp(dot, ".npz") != 0 && strcmp(dot, ".pb") != 0))
        return OK(migraphx_argument_load(out, path));
    size_t size;
    char *text = read_whole(path, &size);
    const struct bytes b = {(uint8_t *)text, size};
    bool good = text != NULL;
    if (!good)
        log_error("cannot read %s", path);
    else if (strcmp(dot, ".npy") == 0)
        good = load_npy(path, b, out);
    else if (strcmp(dot, ".npz") == 0)
        good = load_npz(path, b, name, out);
    else
        good = load_proto(path, b, out);
    free(text);
    if (!good) {
        migraphx_argument_destroy(*out);
        *out = NULL;
    }
    return good;
}
