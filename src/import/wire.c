// SPDX-License-Identifier: MIT
// Wire reader; see wire.h.
#include "import/wire.h"

#include <assert.h>
#include <string.h>

enum { MAX_VARINT = 10 };

static bool stop(struct mgx_wire *w, const char *why)
{
    assert(!w->bad && why);
    w->bad = why;
    return false;
}

static bool stop_short(struct mgx_wire *w, const char *why)
{
    w->cut = true;
    return stop(w, why);
}

bool mgx_wire_varint(struct mgx_wire *w, uint64_t *out)
{
    uint64_t value = 0;
    assert(w->p <= w->end);
    for (int i = 0; i < MAX_VARINT; i++) {
        if (w->p == w->end)
            return stop_short(w, "a number runs past the end");
        const uint8_t byte = *w->p++;
        if (i == MAX_VARINT - 1 && byte > 1)
            return stop(w, "a number is longer than 64 bits");
        value |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (!(byte & 0x80)) {
            *out = value;
            return true;
        }
    }
    return stop(w, "a number is longer than 10 bytes");
}

static bool fixed(struct mgx_wire *w, struct mgx_wire_field *f, size_t size)
{
    assert((size == 4 || size == 8) && w->p <= w->end);
    if ((size_t)(w->end - w->p) < size)
        return stop_short(w, "a number runs past the end");
    f->value = 0;
    memcpy(&f->value, w->p, size); // little endian on the wire and here
    f->data = w->p;
    f->size = size;
    w->p += size;
    return true;
}

static bool delimited(struct mgx_wire *w, struct mgx_wire_field *f)
{
    uint64_t size;
    if (!mgx_wire_varint(w, &size))
        return false;
    if (size > (uint64_t)(w->end - w->p))
        return stop_short(w, "a field is longer than what is left");
    f->data = w->p;
    f->size = (size_t)size;
    w->p += size;
    assert(w->p <= w->end && f->data + f->size == w->p);
    return true;
}

bool mgx_wire_next(struct mgx_wire *w, struct mgx_wire_field *f)
{
    assert(w->bad || w->p <= w->end);
    if (w->bad || w->p == w->end)
        return false;
    uint64_t tag;
    if (!mgx_wire_varint(w, &tag))
        return false;
    if (tag >> 3 == 0 || tag >> 32)
        return stop(w, "a field has no valid number");
    f->number = (uint32_t)(tag >> 3);
    f->type = (enum mgx_wire_type)(tag & 7);
    f->data = w->p;
    switch (tag & 7) {
    case MGX_WIRE_VARINT: {
        const bool ok = mgx_wire_varint(w, &f->value);
        f->size = (size_t)(w->p - f->data);
        return ok;
    }
    case MGX_WIRE_64:
        return fixed(w, f, 8);
    case MGX_WIRE_32:
        return fixed(w, f, 4);
    case MGX_WIRE_BYTES:
        return delimited(w, f);
    case 3:
    case 4:
        return stop(w, "a field is a group, which models do not have");
    default:
        return stop(w, "a field has an unknown wire type");
    }
}

static bool expect(struct mgx_wire *w, const struct mgx_wire_field *f, enum mgx_wire_type type,
                   const char *why)
{
    return f->type == type ? true : stop(w, why);
}

bool mgx_wire_int(struct mgx_wire *w, const struct mgx_wire_field *f, int64_t *out)
{
    if (!expect(w, f, MGX_WIRE_VARINT, "a field that should be an integer is not"))
        return false;
    *out = (int64_t)f->value;
    return true;
}

bool mgx_wire_float(struct mgx_wire *w, const struct mgx_wire_field *f, float *out)
{
    if (!expect(w, f, MGX_WIRE_32, "a field that should be a float is not"))
        return false;
    const uint32_t bits = (uint32_t)f->value;
    memcpy(out, &bits, sizeof bits);
    return true;
}

bool mgx_wire_bytes(struct mgx_wire *w, const struct mgx_wire_field *f, struct mgx_slice *out)
{
    if (!expect(w, f, MGX_WIRE_BYTES, "a field that should be text or bytes is not"))
        return false;
    *out = (struct mgx_slice){(const char *)f->data, f->size};
    return true;
}

bool mgx_wire_message(struct mgx_wire *w, const struct mgx_wire_field *f, struct mgx_wire *out)
{
    if (!expect(w, f, MGX_WIRE_BYTES, "a field that should be a message is not"))
        return false;
    *out = mgx_wire_sub(f);
    return true;
}

bool mgx_wire_once(struct mgx_wire *w, const struct mgx_wire_field *f, struct mgx_wire *out)
{
    if (out->p)
        return stop(w, "a message that may occur once occurs twice");
    return mgx_wire_message(w, f, out);
}

bool mgx_wire_packed(struct mgx_wire *w, const struct mgx_wire_field *f, int width,
                     struct mgx_wire *out)
{
    assert(width == 0 || width == 4 || width == 8);
    const enum mgx_wire_type single = width == 0   ? MGX_WIRE_VARINT
                                      : width == 4 ? MGX_WIRE_32
                                                   : MGX_WIRE_64;
    if (f->type != single && f->type != MGX_WIRE_BYTES)
        return stop(w, "a list of numbers has another wire type");
    *out = mgx_wire_sub(f);
    if (width && f->size % (size_t)width)
        return stop(w, "a packed list does not hold whole numbers");
    return true;
}

enum mgx_status mgx_wire_fail(const struct mgx_wire *w, const char *message, struct mgx_diag *diag)
{
    return mgx_fail(diag, MGX_INVALID, "malformed %s: %s", message, w->bad ? w->bad : "unreadable");
}

// --- UTF-8 ---

// Length of the sequence that `lead` starts and the lowest code point it may stand for; 0 if none.
static int sequence(unsigned char lead, uint32_t *code, uint32_t *lowest)
{
    if (lead >= 0xC2 && lead <= 0xDF)
        return *code = lead & 0x1F, *lowest = 0x80, 2;
    if (lead >= 0xE0 && lead <= 0xEF)
        return *code = lead & 0x0F, *lowest = 0x800, 3;
    if (lead >= 0xF0 && lead <= 0xF4)
        return *code = lead & 0x07, *lowest = 0x10000, 4;
    return 0;
}

bool mgx_utf8_valid(const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t i = 0;
    while (i < size) {
        if (p[i] < 0x80) {
            if (!p[i++])
                return false;
            continue;
        }
        uint32_t code = 0, lowest = 0;
        const int length = sequence(p[i], &code, &lowest);
        if (!length || size - i < (size_t)length)
            return false;
        for (int k = 1; k < length; k++) {
            const unsigned char next = p[i + (size_t)k];
            if ((next & 0xC0) != 0x80)
                return false;
            code = code << 6 | (next & 0x3F);
        }
        if (code < lowest || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
            return false;
        i += (size_t)length;
    }
    return true;
}
