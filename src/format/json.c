// SPDX-License-Identifier: MIT
// JSON for trees of values: one line, bytes as {"bytes":[...]}, and the words NaN and Infinity that
// Python and C++ writers use. Bytes are read straight into memory, not as one value each.
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/number.h"
#include "base/size.h"
#include "format/tree.h"

// --- writing ---

static enum mgx_status put(struct mgx_sink *s, const char *text, size_t size, struct mgx_diag *diag)
{
    TRY(s->write(s, text, size, diag));
    s->at += size;
    return MGX_OK;
}

static enum mgx_status put_word(struct mgx_sink *s, const char *text, struct mgx_diag *diag)
{
    return put(s, text, strlen(text), diag);
}

static enum mgx_status put_text(struct mgx_sink *s, const char *text, size_t size,
                                struct mgx_diag *diag)
{
    size_t plain = 0; // what lies between this and i stands for itself
    TRY(put_word(s, "\"", diag));
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        char escaped[8];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        snprintf(escaped, sizeof escaped, c < 0x20 ? "\\u%04x" : "\\%c", c);
        TRY(put(s, text + plain, i - plain, diag));
        TRY(put_word(s, escaped, diag));
        plain = i + 1;
    }
    TRY(put(s, text + plain, size - plain, diag));
    return put_word(s, "\"", diag);
}

static enum mgx_status put_real(struct mgx_sink *s, double f, struct mgx_diag *diag)
{
    char text[40];
    if (isnan(f))
        return put_word(s, "NaN", diag);
    if (isinf(f))
        return put_word(s, f > 0 ? "Infinity" : "-Infinity", diag);
    mgx_number_format(text, sizeof text, "%.17g", f);
    if (!strpbrk(text, ".e"))
        strcat(text, ".0"); // stays a real when it is read
    return put_word(s, text, diag);
}

// Weights are most of what is written.
static size_t put_byte(char *out, unsigned byte)
{
    size_t size = 0;
    if (byte >= 100)
        out[size++] = (char)('0' + byte / 100);
    if (byte >= 10)
        out[size++] = (char)('0' + byte / 10 % 10);
    out[size++] = (char)('0' + byte % 10);
    return size;
}

static enum mgx_status put_bytes(struct mgx_sink *s, const uint8_t *data, size_t size,
                                 struct mgx_diag *diag)
{
    enum { PIECE = 4096 };
    char text[PIECE];
    size_t used = 0;
    TRY(put_word(s, "{\"bytes\":[", diag));
    for (size_t i = 0; i < size; i++) {
        if (used > PIECE - 4) {
            TRY(put(s, text, used, diag));
            used = 0;
        }
        if (i)
            text[used++] = ',';
        used += put_byte(text + used, data[i]);
    }
    TRY(put(s, text, used, diag));
    return put_word(s, "]}", diag);
}

static enum mgx_status write_value(struct mgx_sink *s, const struct mgx_value *v, int depth,
                                   struct mgx_diag *diag);

static enum mgx_status put_children(struct mgx_sink *s, const struct mgx_value *v, int depth,
                                    struct mgx_diag *diag)
{
    const bool map = v->kind == MGX_VALUE_MAP;
    TRY(put_word(s, map ? "{" : "[", diag));
    for (const struct mgx_value *child = v->first; child; child = child->next) {
        if (child != v->first)
            TRY(put_word(s, ",", diag));
        if (map) {
            TRY(put_text(s, child->key, strlen(child->key), diag));
            TRY(put_word(s, ":", diag));
        }
        TRY(write_value(s, child, depth + 1, diag));
    }
    return put_word(s, map ? "}" : "]", diag);
}

static enum mgx_status write_value(struct mgx_sink *s, const struct mgx_value *v, int depth,
                                   struct mgx_diag *diag)
{
    char text[24];
    if (depth > MGX_TREE_DEPTH)
        return mgx_fail(diag, MGX_LIMIT, "values are nested deeper than %d", MGX_TREE_DEPTH);
    switch (v->kind) {
    case MGX_VALUE_NIL:
        return put_word(s, "null", diag);
    case MGX_VALUE_BOOL:
        return put_word(s, v->i ? "true" : "false", diag);
    case MGX_VALUE_INT:
        snprintf(text, sizeof text, "%lld", (long long)v->i);
        return put_word(s, text, diag);
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

enum mgx_status mgx_json_write(struct mgx_sink *sink, const struct mgx_value *v,
                               struct mgx_diag *diag)
{
    return write_value(sink, v, 0, diag);
}

// --- reading ---

struct reader {
    const char *at, *end, *begin;
    struct mgx_arena *arena;
    size_t values;
    struct mgx_diag *diag;
};

static enum mgx_status bad(const struct reader *r, const char *what)
{
    return mgx_fail(r->diag, MGX_INVALID, "json: %s at byte %zu", what, (size_t)(r->at - r->begin));
}

static char peek(struct reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at))
        r->at++;
    return r->at < r->end ? *r->at : '\0';
}

static bool accept(struct reader *r, char c)
{
    if (peek(r) != c)
        return false;
    r->at++;
    return true;
}

static bool accept_word(struct reader *r, const char *word)
{
    const size_t size = strlen(word);
    if ((size_t)(r->end - r->at) < size || memcmp(r->at, word, size) != 0)
        return false;
    r->at += size;
    return true;
}

static enum mgx_status made(struct reader *r, struct mgx_value *v, struct mgx_value **out)
{
    *out = v;
    return v ? MGX_OK : mgx_fail_memory(r->diag);
}

// Four hexadecimal digits as UTF-8; surrogates are taken one by one, which is how they come out
// again.
static enum mgx_status read_code(struct reader *r, struct mgx_str *out)
{
    char digits[5] = "", *end;
    if (r->end - r->at < 4)
        return bad(r, "a text without an end");
    memcpy(digits, r->at, 4);
    const unsigned long code = strtoul(digits, &end, 16);
    if (*end || code == 0)
        return bad(r, "a wrong escape");
    r->at += 4;
    if (code < 0x80)
        mgx_str_putc(out, (char)code);
    else if (code < 0x800)
        mgx_str_printf(out, "%c%c", (int)(0xc0 | code >> 6), (int)(0x80 | (code & 0x3f)));
    else
        mgx_str_printf(out, "%c%c%c", (int)(0xe0 | code >> 12), (int)(0x80 | (code >> 6 & 0x3f)),
                       (int)(0x80 | (code & 0x3f)));
    return MGX_OK;
}

static enum mgx_status read_characters(struct reader *r, struct mgx_str *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    while (r->at < r->end && *r->at != '"') {
        char c = *r->at++;
        if (c == '\0')
            return bad(r, "a text with a NUL in it");
        if (c != '\\') {
            mgx_str_putc(out, c);
            continue;
        }
        c = r->at < r->end ? *r->at++ : '\0';
        const char *known = c ? strchr(from, c) : NULL;
        if (known)
            mgx_str_putc(out, to[known - from]);
        else if (c == 'u')
            TRY(read_code(r, out));
        else
            return bad(r, "a wrong escape");
    }
    if (r->at == r->end)
        return bad(r, "a text without an end");
    r->at++;
    return out->failed ? mgx_fail_memory(r->diag) : MGX_OK;
}

static enum mgx_status read_text(struct reader *r, const char **out)
{
    struct mgx_str text = {0};
    if (!accept(r, '"'))
        return bad(r, "a text was expected");
    enum mgx_status status = read_characters(r, &text);
    if (status == MGX_OK && !(*out = mgx_arena_strdup(r->arena, mgx_str_text(&text))))
        status = mgx_fail_memory(r->diag);
    mgx_str_fini(&text);
    return status;
}

static enum mgx_status read_number(struct reader *r, struct mgx_value **out)
{
    char text[64], *end;
    size_t size = 0;
    while (r->at < r->end && size + 1 < sizeof text && *r->at && strchr("+-.0123456789eE", *r->at))
        text[size++] = *r->at++;
    text[size] = '\0';
    errno = 0;
    if (!strpbrk(text, ".eE")) {
        const long long i = strtoll(text, &end, 10);
        if (size == 0 || *end || errno)
            return bad(r, "a value was expected");
        return made(r, mgx_value_int(r->arena, i), out);
    }
    const double f = mgx_number_read(text, &end);
    if (*end)
        return bad(r, "a wrong number");
    return made(r, mgx_value_real(r->arena, f), out);
}

// [1,2,3] straight into memory; the text has at least two characters per byte.
static enum mgx_status read_bytes(struct reader *r, struct mgx_value **out)
{
    enum { LOOK = 1 << 16 };
    struct mgx_str bytes = {0};
    enum mgx_status status = accept(r, '[') ? MGX_OK : bad(r, "a list of bytes was expected");
    for (bool first = true; status == MGX_OK && !accept(r, ']'); first = false) {
        unsigned value = 0;
        if (!first && !accept(r, ','))
            status = bad(r, "',' or ']' was expected");
        else if (!isdigit((unsigned char)peek(r)))
            status = bad(r, "a byte was expected");
        while (status == MGX_OK && r->at < r->end && isdigit((unsigned char)*r->at) && value < 256)
            value = 10 * value + (unsigned)(*r->at++ - '0');
        if (status == MGX_OK && value > 255)
            status = bad(r, "a byte above 255");
        if (status == MGX_OK && bytes.size % LOOK == 0)
            status = mgx_cancel_check(r->diag);
        mgx_str_putc(&bytes, (char)value);
    }
    if (status == MGX_OK) {
        void *copy = mgx_arena_alloc(r->arena, bytes.size);
        if (bytes.failed || !copy)
            status = mgx_fail_memory(r->diag);
        else {
            if (bytes.size)
                memcpy(copy, bytes.text, bytes.size);
            status = made(r, mgx_value_bytes(r->arena, copy, bytes.size), out);
        }
    }
    mgx_str_fini(&bytes);
    return status;
}

static enum mgx_status read_value(struct reader *r, int depth, struct mgx_value **out);

static enum mgx_status read_list(struct reader *r, int depth, struct mgx_value **out)
{
    struct mgx_value *list = *out = mgx_value_new(r->arena, MGX_VALUE_LIST);
    r->at++;
    while (list && !accept(r, ']')) {
        struct mgx_value *child;
        if (list->count && !accept(r, ','))
            return bad(r, "',' or ']' was expected");
        TRY(read_value(r, depth + 1, &child));
        mgx_value_add(list, child);
    }
    return list ? MGX_OK : mgx_fail_memory(r->diag);
}

static enum mgx_status read_map(struct reader *r, int depth, struct mgx_value **out)
{
    struct mgx_value *map = *out = mgx_value_new(r->arena, MGX_VALUE_MAP);
    r->at++;
    while (map && !accept(r, '}')) {
        struct mgx_value *child;
        const char *key;
        if (map->count && !accept(r, ','))
            return bad(r, "',' or '}' was expected");
        TRY(read_text(r, &key));
        if (!accept(r, ':'))
            return bad(r, "':' was expected");
        if (map->count == 0 && strcmp(key, "bytes") == 0) {
            TRY(read_bytes(r, out));
            return accept(r, '}') ? MGX_OK : bad(r, "'}' was expected");
        }
        TRY(read_value(r, depth + 1, &child));
        child->key = key;
        mgx_value_add(map, child);
    }
    return map ? MGX_OK : mgx_fail_memory(r->diag);
}

static enum mgx_status read_word(struct reader *r, struct mgx_value **out)
{
    if (accept_word(r, "null"))
        return made(r, mgx_value_new(r->arena, MGX_VALUE_NIL), out);
    if (accept_word(r, "NaN"))
        return made(r, mgx_value_real(r->arena, NAN), out);
    if (accept_word(r, "Infinity"))
        return made(r, mgx_value_real(r->arena, INFINITY), out);
    if (accept_word(r, "-Infinity"))
        return made(r, mgx_value_real(r->arena, -INFINITY), out);
    const bool yes = accept_word(r, "true");
    if (!yes && !accept_word(r, "false"))
        return read_number(r, out);
    TRY(made(r, mgx_value_new(r->arena, MGX_VALUE_BOOL), out));
    (*out)->i = yes;
    return MGX_OK;
}

static enum mgx_status read_value(struct reader *r, int depth, struct mgx_value **out)
{
    if (depth > MGX_TREE_DEPTH)
        return bad(r, "values nested too deeply");
    if (++r->values > MGX_TREE_MAX)
        return bad(r, "too many values");
    const char next = peek(r);
    if (next == '{')
        return read_map(r, depth, out);
    if (next == '[')
        return read_list(r, depth, out);
    if (next != '"')
        return read_word(r, out);
    const char *text;
    TRY(read_text(r, &text));
    return made(r, mgx_value_text(r->arena, text), out);
}

enum mgx_status mgx_json_read(struct mgx_arena *arena, const char *text, size_t size,
                              struct mgx_value **out, struct mgx_diag *diag)
{
    struct reader r = {.at = text, .begin = text, .arena = arena, .diag = diag};
    r.end = r.at + size;
    TRY(read_value(&r, 0, out));
    peek(&r);
    return r.at == r.end ? MGX_OK : bad(&r, "something after the end of the value");
}
