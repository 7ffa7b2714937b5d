// SPDX-License-Identifier: MIT
// Tensors out of files that others write: numpy's .npy and .npz, compressed or not, ONNX's
// TensorProto (.pb), and saved arguments.
//
// A file is data from a stranger: every size is checked against the file before it is used, and
// shapes by the engine.
#include <ctype.h>
#include <stdint.h>

#include "driver.h"
#include "inflate.h"

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

// --- .npz: a zip archive, whose directory is at its end ---

static uint32_t number(const uint8_t *at, int width)
{
    uint32_t n = 0;
    for (int i = 0; i < width; i++)
        n |= (uint32_t)at[i] << (8 * i);
    return n;
}

struct entry {
    char name[256]; // without .npy
    bool packed;
    struct bytes content;
    size_t size; // unpacked
};

// The entry of the directory at *at, and *at behind it. False if its bytes are not all there.
static bool next_entry(struct bytes file, size_t *at, struct entry *e)
{
    const uint8_t *h = file.at + *at;
    if (*at > file.size || file.size - *at < 46 || number(h, 4) != 0x02014b50)
        return false;
    const size_t name = number(h + 28, 2), skip = number(h + 30, 2) + number(h + 32, 2);
    const size_t size = number(h + 20, 4), local = number(h + 42, 4);
    const uint32_t method = number(h + 10, 2);
    if (file.size - *at - 46 < name + skip || name >= sizeof e->name || local > file.size ||
        file.size - local < 30 || (method != 0 && method != 8))
        return false;
    const uint8_t *l = file.at + local;
    const size_t begin = 30 + (size_t)number(l + 26, 2) + number(l + 28, 2);
    if (number(l, 4) != 0x04034b50 || begin > file.size - local || size > file.size - local - begin)
        return false;
    memcpy(e->name, h + 46, name);
    e->name[name > 4 && memcmp(h + 46 + name - 4, ".npy", 4) == 0 ? name - 4 : name] = '\0';
    e->packed = method == 8;
    e->content = (struct bytes){l + begin, size};
    e->size = number(h + 24, 4);
    *at += 46 + name + skip;
    return true;
}

// Where the directory is, and how many entries it has; by the record at the end of the file.
static bool find_directory(struct bytes file, size_t *at, uint32_t *count)
{
    enum { RECORD = 22, COMMENT = 65536 };
    for (size_t back = RECORD; back <= file.size && back < RECORD + COMMENT; back++) {
        const uint8_t *end = file.at + file.size - back;
        if (number(end, 4) != 0x06054b50)
            continue;
        *count = number(end + 10, 2);
        *at = number(end + 16, 4);
        return true;
    }
    return false;
}

static bool load_entry(const char *path, const struct entry *e, migraphx_argument_t *out)
{
    enum { MOST = 1040 }; // nothing unpacks to more times its size
    if (!e->packed)
        return load_npy(path, e->content, out);
    uint8_t *bytes = e->size / MOST <= e->content.size ? malloc(e->size + 1) : NULL;
    if (!bytes || !inflate(e->content.at, e->content.size, bytes, e->size)) {
        free(bytes);
        return damaged(path, "its compressed bytes are damaged");
    }
    const bool good = load_npy(path, (struct bytes){bytes, e->size}, out);
    free(bytes);
    return good;
}

typedef bool (*tensor_reader)(void *data, const char *name, migraphx_argument_t tensor);

static bool each_entry(const char *path, struct bytes file, tensor_reader each, void *data)
{
    size_t at = 0;
    uint32_t count = 0;
    struct entry e;
    if (!find_directory(file, &at, &count))
        return damaged(path, "is no .npz file");
    for (uint32_t i = 0; i < count; i++) {
        migraphx_argument_t tensor = NULL;
        if (!next_entry(file, &at, &e))
            return damaged(path, "is cut off, or packed in a way that is not read here");
        const bool good = load_entry(path, &e, &tensor) && each(data, e.name, tensor);
        migraphx_argument_destroy(tensor);
        if (!good)
            return false;
    }
    return true;
}

struct wanted {
    const char *name; // NULL: the first
    migraphx_argument_t tensor;
};

static bool keep_wanted(void *data, const char *name, migraphx_argument_t tensor)
{
    struct wanted *w = data;
    if (w->tensor || (w->name && strcmp(w->name, name) != 0))
        return true;
    return OK(migraphx_argument_share(&w->tensor, tensor));
}

static bool load_npz(const char *path, struct bytes b, const char *name, migraphx_argument_t *out)
{
    struct wanted w = {name, NULL};
    const bool good = each_entry(path, b, keep_wanted, &w);
    *out = w.tensor;
    if (good && !w.tensor)
        log_error("%s: has no array '%s'", path, name ? name : "");
    return good && w.tensor;
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

bool load_tensors(const char *path, tensor_reader each, void *data)
{
    size_t size;
    char *text = read_whole(path, &size);
    const bool good = text ? each_entry(path, (struct bytes){(uint8_t *)text, size}, each, data)
                           : damaged(path, "cannot be read");
    free(text);
    return good;
}
