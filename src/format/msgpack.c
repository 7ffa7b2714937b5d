// SPDX-License-Identifier: MIT
// msgpack, as far as a tree of values needs it: no extension types, maps with text keys.
//
// Bytes are written as a list of chunks whose joined content is the value. Before the one that
// holds the content come empty chunks of two and three bytes, as many as put it on a multiple of
// 64: a reader that maps the file can use it in place.
//
//     dc <count>  c4 00  c4 00 ... c5 00 00  c6 <size> <content at a multiple of 64>
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "format/tree.h"

enum { ALIGN = 64, LARGEST_CHUNK = 1 << 30 };

// --- writing ---

static enum mgx_status put(struct mgx_sink *s, const void *data, size_t size, struct mgx_diag *diag)
{
    assert(s->at <= UINT64_MAX - size);
    TRY(s->write(s, data, size, diag));
    s->at += size;
    return MGX_OK;
}

// The number that a reader makes of the bytes.
__attribute__((unused)) static uint64_t number_of(const uint8_t *bytes, int width)
{
    uint64_t number = 0;
    for (int i = 0; i < width; i++)
        number = number << 8 | bytes[i];
    return number;
}

// A type byte and a big-endian number of `width` bytes.
static enum mgx_status put_head(struct mgx_sink *s, unsigned type, uint64_t number, int width,
                                struct mgx_diag *diag)
{
    uint8_t bytes[9] = {(uint8_t)type};
    for (int i = 0; i < width; i++)
        bytes[1 + i] = (uint8_t)(number >> (8 * (width - 1 - i)));
    assert(width >= 0 && width <= 8 && (!width || bytes[width] == (uint8_t)number)); // last: lowest
    assert(number_of(bytes + 1, width) ==
           (width == 8 ? number : number & ((1ull << (8 * width)) - 1)));
    return put(s, bytes, (size_t)width + 1, diag);
}

static enum mgx_status put_int(struct mgx_sink *s, int64_t i, struct mgx_diag *diag)
{
    if (i >= -32 && i < 128)
        return put_head(s, (unsigned)(i & 0xff), 0, 0, diag);
    if (i >= INT16_MIN && i <= INT16_MAX)
        return put_head(s, 0xd1, (uint64_t)i, 2, diag);
    if (i >= INT32_MIN && i <= INT32_MAX)
        return put_head(s, 0xd2, (uint64_t)i, 4, diag);
    return put_head(s, 0xd3, (uint64_t)i, 8, diag);
}

static enum mgx_status put_real(struct mgx_sink *s, double f, struct mgx_diag *diag)
{
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    return put_head(s, 0xcb, bits, 8, diag);
}

static enum mgx_status put_text(struct mgx_sink *s, const char *text, size_t size,
                                struct mgx_diag *diag)
{
    assert(size <= UINT32_MAX && (text || !size));
    if (size < 32)
        TRY(put_head(s, 0xa0 | (unsigned)size, 0, 0, diag));
    else if (size <= UINT16_MAX)
        TRY(put_head(s, 0xda, size, 2, diag));
    else
        TRY(put_head(s, 0xdb, size, 4, diag));
    return put(s, text, size, diag);
}

static enum mgx_status put_bytes(struct mgx_sink *s, const uint8_t *data, size_t size,
                                 struct mgx_diag *diag)
{
    assert(data || !size);
    enum { LIST_HEAD = 3, BIN_HEAD = 5 };
    const size_t chunks = size / LARGEST_CHUNK + 1;
    size_t pad = (size_t)(-(s->at + LIST_HEAD + BIN_HEAD) % ALIGN);
    if (pad == 1)
        pad += ALIGN;
    const size_t threes = pad % 2, twos = (pad - 3 * threes) / 2;
    assert(pad != 1 && 2 * twos + 3 * threes == pad && twos + threes + chunks <= UINT16_MAX);
    TRY(put_head(s, 0xdc, twos + threes + chunks, 2, diag));
    for (size_t i = 0; i < twos; i++)
        TRY(put_head(s, 0xc4, 0, 1, diag));
    for (size_t i = 0; i < threes; i++)
        TRY(put_head(s, 0xc5, 0, 2, diag));
    for (size_t done = 0, i = 0; i < chunks; i++) {
        const size_t part = size - done < LARGEST_CHUNK ? size - done : LARGEST_CHUNK;
        TRY(put_head(s, 0xc6, part, 4, diag));
        assert(done || s->at % ALIGN == 0);
        if (part)
            TRY(put(s, data + done, part, diag));
        done += part;
    }
    return MGX_OK;
}

static enum mgx_status write_value(struct mgx_sink *s, const struct mgx_value *v, int depth,
                                   struct mgx_diag *diag);

static enum mgx_status put_children(struct mgx_sink *s, const struct mgx_value *v, int depth,
                                    struct mgx_diag *diag)
{
    const bool map = v->kind == MGX_VALUE_MAP;
    size_t put = 0;
    assert(v->count <= UINT32_MAX);
    if (v->count < 16)
        TRY(put_head(s, (map ? 0x80 : 0x90) | (unsigned)v->count, 0, 0, diag));
    else
        TRY(put_head(s, map ? 0xdf : 0xdd, v->count, 4, diag));
    for (const struct mgx_value *child = v->first; child; child = child->next) {
        if (map)
            TRY(put_text(s, child->key, strlen(child->key), diag));
        TRY(write_value(s, child, depth + 1, diag));
        put++;
    }
    assert(put == v->count); // what the head said
    (void)put;
    return MGX_OK;
}

static enum mgx_status write_value(struct mgx_sink *s, const struct mgx_value *v, int depth,
                                   struct mgx_diag *diag)
{
    if (depth > MGX_TREE_DEPTH)
        return mgx_fail(diag, MGX_LIMIT, "values are nested deeper than %d", MGX_TREE_DEPTH);
    switch (v->kind) {
    case MGX_VALUE_NIL:
        return put_head(s, 0xc0, 0, 0, diag);
    case MGX_VALUE_BOOL:
        return put_head(s, v->i ? 0xc3 : 0xc2, 0, 0, diag);
    case MGX_VALUE_INT:
        return put_int(s, v->i, diag);
    case MGX_VALUE_REAL:
        return put_real(s, v->f, diag);
    case MGX_VALUE_TEXT:
        return put_text(s, v->data, v->size, diag);
    case MGX_VALUE_BYTES:
        return put_bytes(s, v->data, v->size, diag);
    default:
        return put_children(s, v, depth, diag);
    }
}

enum mgx_status mgx_msgpack_write(struct mgx_sink *sink, const struct mgx_value *v,
                                  struct mgx_diag *diag)
{
    return write_value(sink, v, 0, diag);
}

// --- reading ---

enum { KEYS = 64 };

struct reader {
    const uint8_t *at, *end;
    const uint8_t *begin;
    struct mgx_arena *arena;
    size_t values;
    const char *keys[KEYS]; // met last, by hash: a file has few, and each of them often
    struct mgx_diag *diag;
};

static enum mgx_status bad(const struct reader *r, const char *what)
{
    return mgx_fail(r->diag, MGX_INVALID, "msgpack: %s at byte %zu", what,
                    (size_t)(r->at - r->begin));
}

static enum mgx_status take_bytes(struct reader *r, size_t size, const uint8_t **out)
{
    assert(r->begin <= r->at && r->at <= r->end);
    if ((size_t)(r->end - r->at) < size)
        return bad(r, "the file ends within a value");
    *out = r->at;
    r->at += size;
    return MGX_OK;
}

static enum mgx_status number(struct reader *r, int width, uint64_t *out)
{
    assert(width == 1 || width == 2 || width == 4 || width == 8);
    const uint8_t *bytes;
    TRY(take_bytes(r, (size_t)width, &bytes));
    *out = 0;
    for (int i = 0; i < width; i++)
        *out = *out << 8 | bytes[i];
    return MGX_OK;
}

static enum mgx_status read_value(struct reader *r, int depth, struct mgx_value **out);

static enum mgx_status read_text(struct reader *r, uint64_t size, const char **out)
{
    const uint8_t *bytes;
    TRY(take_bytes(r, size, &bytes));
    if (memchr(bytes, 0, size))
        return bad(r, "a text with a NUL in it");
    *out = mgx_arena_strndup(r->arena, (const char *)bytes, size);
    return *out ? MGX_OK : mgx_fail_memory(r->diag);
}

static enum mgx_status read_key(struct reader *r, const char **out)
{
    uint64_t size;
    const uint8_t *type;
    TRY(take_bytes(r, 1, &type));
    if (*type >> 5 == 5)
        size = *type & 0x1f;
    else if (*type >= 0xd9 && *type <= 0xdb)
        TRY(number(r, 1 << (*type - 0xd9), &size));
    else
        return bad(r, "a key that is no text");
    if (size > (size_t)(r->end - r->at))
        return bad(r, "the file ends within a value");
    const char **known = &r->keys[size ? (size + r->at[0] + 7u * r->at[size - 1]) % KEYS : 0];
    if (*known && strlen(*known) == size && memcmp(*known, r->at, size) == 0) {
        r->at += size;
        *out = *known;
        return MGX_OK;
    }
    TRY(read_text(r, size, out));
    *known = *out;
    return MGX_OK;
}

static enum mgx_status read_children(struct reader *r, enum mgx_value_kind kind, uint64_t count,
                                     int depth, struct mgx_value **out)
{
    assert(kind == MGX_VALUE_LIST || kind == MGX_VALUE_MAP);
    if (count > (size_t)(r->end - r->at))
        return bad(r, "a count beyond the end of the file");
    struct mgx_value *v = *out = mgx_value_new(r->arena, kind);
    for (uint64_t i = 0; v && i < count; i++) {
        const char *key = NULL;
        struct mgx_value *child;
        if (kind == MGX_VALUE_MAP)
            TRY(read_key(r, &key));
        TRY(read_value(r, depth + 1, &child));
        child->key = key;
        mgx_value_add(v, child); // in the order of the file
    }
    return v ? MGX_OK : mgx_fail_memory(r->diag);
}

static enum mgx_status made(struct reader *r, struct mgx_value *v, struct mgx_value **out)
{
    *out = v;
    return v ? MGX_OK : mgx_fail_memory(r->diag);
}

static enum mgx_status read_float(struct reader *r, int width, struct mgx_value **out)
{
    assert(width == 4 || width == 8);
    uint64_t bits;
    float narrow;
    double wide;
    TRY(number(r, width, &bits));
    const uint32_t low = (uint32_t)bits;
    memcpy(&narrow, &low, sizeof narrow);
    memcpy(&wide, &bits, sizeof wide);
    return made(r, mgx_value_real(r->arena, width == 4 ? (double)narrow : wide), out);
}

static enum mgx_status read_int(struct reader *r, int width, bool is_signed, struct mgx_value **out)
{
    assert(width <= 8);
    uint64_t bits;
    TRY(number(r, width, &bits));
    if (!is_signed && bits > INT64_MAX)
        return bad(r, "an integer beyond 63 bits");
    if (is_signed && width < 8 && bits >> (8 * width - 1))
        bits |= ~(uint64_t)0 << (8 * width);
    return made(r, mgx_value_int(r->arena, (int64_t)bits), out);
}

static enum mgx_status read_bytes(struct reader *r, int width, struct mgx_value **out)
{
    uint64_t size;
    const uint8_t *bytes;
    TRY(number(r, width, &size));
    TRY(take_bytes(r, size, &bytes));
    return made(r, mgx_value_bytes(r->arena, bytes, size), out);
}

static enum mgx_status read_long_text(struct reader *r, uint64_t size, struct mgx_value **out)
{
    const char *text;
    TRY(read_text(r, size, &text));
    return made(r, mgx_value_text(r->arena, text), out);
}

// Types 0xc0 to 0xdf.
static enum mgx_status read_typed(struct reader *r, unsigned type, int depth,
                                  struct mgx_value **out)
{
    uint64_t size;
    if (type == 0xc0)
        return made(r, mgx_value_new(r->arena, MGX_VALUE_NIL), out);
    if (type == 0xc2 || type == 0xc3) {
        TRY(made(r, mgx_value_new(r->arena, MGX_VALUE_BOOL), out));
        (*out)->i = type == 0xc3;
        return MGX_OK;
    }
    if (type >= 0xc4 && type <= 0xc6)
        return read_bytes(r, 1 << (type - 0xc4), out);
    if (type == 0xca || type == 0xcb)
        return read_float(r, type == 0xca ? 4 : 8, out);
    if (type >= 0xcc && type <= 0xd3)
        return read_int(r, 1 << ((type - 0xcc) % 4), type >= 0xd0, out);
    if (type >= 0xd9 && type <= 0xdb) {
        TRY(number(r, 1 << (type - 0xd9), &size));
        return read_long_text(r, size, out);
    }
    if (type >= 0xdc && type <= 0xdf) {
        TRY(number(r, type & 1 ? 4 : 2, &size));
        return read_children(r, type < 0xde ? MGX_VALUE_LIST : MGX_VALUE_MAP, size, depth, out);
    }
    return bad(r, "a type that programs do not use");
}

static enum mgx_status read_value(struct reader *r, int depth, struct mgx_value **out)
{
    const uint8_t *type;
    if (depth > MGX_TREE_DEPTH)
        return bad(r, "values nested too deeply");
    if (++r->values > MGX_TREE_MAX)
        return bad(r, "too many values");
    TRY(take_bytes(r, 1, &type));
    if (*type < 0x80)
        return made(r, mgx_value_int(r->arena, *type), out);
    if (*type < 0x90)
        return read_children(r, MGX_VALUE_MAP, *type & 0x0f, depth, out);
    if (*type < 0xa0)
        return read_children(r, MGX_VALUE_LIST, *type & 0x0f, depth, out);
    if (*type < 0xc0)
        return read_long_text(r, *type & 0x1f, out);
    if (*type >= 0xe0)
        return made(r, mgx_value_int(r->arena, (int8_t)*type), out);
    return read_typed(r, *type, depth, out);
}

enum mgx_status mgx_msgpack_read(struct mgx_arena *arena, const void *data, size_t size,
                                 struct mgx_value **out, struct mgx_diag *diag)
{
    assert(data && out);
    struct reader r = {.at = data, .begin = data, .arena = arena, .diag = diag};
    r.end = r.at + size;
    TRY(read_value(&r, 0, out));
    return r.at == r.end ? MGX_OK : bad(&r, "something after the end of the value");
}
