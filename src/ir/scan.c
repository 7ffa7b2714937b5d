// SPDX-License-Identifier: MIT
// The cursor: space, numbers, strings, lists; see scan.h.
#include "ir/scan.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

// --- failures ---

struct place {
    long long line, column;
};

static struct place place_of(const struct mgx_scan *s, const char *at)
{
    assert(at >= s->text && at <= s->end);
    struct place p = {1, 1};
    for (const char *c = s->text; c < at; c++) {
        p.column++;
        if (*c == '\n')
            p = (struct place){p.line + 1, 1};
    }
    return p;
}

enum mgx_status mgx_scan_fail(struct mgx_scan *s, const char *at, enum mgx_status status,
                              const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    mgx_number_vformat(text, sizeof text, fmt, args);
    va_end(args);
    const struct place p = place_of(s, at);
    return mgx_fail(s->diag, status, "line %lld, column %lld: %s", p.line, p.column, text);
}

void mgx_scan_where(const struct mgx_scan *s, const char *at)
{
    mgx_where(s->diag, "line %lld", place_of(s, at).line);
}

enum mgx_status mgx_scan_expected(struct mgx_scan *s, const char *what)
{
    mgx_scan_space(s);
    if (s->at == s->end)
        return mgx_scan_fail(s, s->at, MGX_INVALID, "expected %s but the text ends", what);
    char found[32]; // up to the next space, unprintable bytes as '?'
    size_t size = 0;
    for (const char *c = s->at; c < s->end && !isspace((unsigned char)*c); c++) {
        if (size == sizeof found - 1)
            break;
        found[size++] = *c >= 0x20 && *c < 0x7f ? *c : '?';
    }
    found[size] = '\0';
    return mgx_scan_fail(s, s->at, MGX_INVALID, "expected %s but found '%s'", what, found);
}

// --- bytes ---

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

void mgx_scan_space(struct mgx_scan *s)
{
    assert(s->at >= s->text && s->at <= s->end);
    while (s->at < s->end) {
        if (is_space(*s->at))
            s->at++;
        else if (s->comments &&
                 (*s->at == '#' || (s->end - s->at > 1 && s->at[0] == '/' && s->at[1] == '/')))
            while (s->at < s->end && *s->at != '\n')
                s->at++;
        else
            break;
    }
}

char mgx_scan_peek(struct mgx_scan *s)
{
    mgx_scan_space(s);
    return s->at < s->end ? *s->at : '\0';
}

bool mgx_scan_accept(struct mgx_scan *s, char c)
{
    mgx_scan_space(s);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

bool mgx_scan_accept_word(struct mgx_scan *s, const char *word)
{
    assert(*word);
    mgx_scan_space(s);
    const size_t size = strlen(word), left = (size_t)(s->end - s->at);
    if (left < size || memcmp(s->at, word, size) != 0)
        return false;
    if (left > size && mgx_is_word_byte(s->at[size]))
        return false;
    s->at += size;
    return true;
}

enum mgx_status mgx_scan_expect(struct mgx_scan *s, char c)
{
    if (mgx_scan_accept(s, c))
        return MGX_OK;
    const char what[] = {'\'', c, '\'', '\0'};
    return mgx_scan_expected(s, what);
}

// --- numbers ---

// The bytes a number may be made of, as a string of at most `capacity` - 1.
static size_t number_token(struct mgx_scan *s, char *token, size_t capacity, bool range)
{
    assert(capacity > 1);
    mgx_scan_space(s);
    size_t size = 0;
    const char *c = s->at;
    for (; c < s->end && size < capacity - 1; c++) {
        if (range && c + 1 < s->end && c[0] == '.' && c[1] == '.')
            break; // "1..4" is two numbers
        if (!isalnum((unsigned char)*c) && *c != '+' && *c != '-' && *c != '.')
            break;
        token[size++] = *c;
    }
    token[size] = '\0';
    return size;
}

enum { NUMBER_SIZE = 64 };

// False unless all of the token is a number.
static bool to_double(const char *token, size_t size, double *out)
{
    char *end;
    *out = mgx_number_read(token, &end);
    return size > 0 && end == token + size;
}

static bool accept_bool(struct mgx_scan *s, bool *out)
{
    *out = mgx_scan_accept_word(s, "true");
    return *out || mgx_scan_accept_word(s, "false");
}

enum mgx_status mgx_scan_double(struct mgx_scan *s, double *out)
{
    bool truth;
    if (accept_bool(s, &truth)) {
        *out = truth;
        return MGX_OK;
    }
    char token[NUMBER_SIZE];
    const size_t size = number_token(s, token, sizeof token, false);
    if (!to_double(token, size, out))
        return mgx_scan_expected(s, "a number");
    if (isnan(*out))
        *out = NAN; // one NaN, so that equal texts give equal attributes
    s->at += size;
    return MGX_OK;
}

enum mgx_status mgx_scan_int(struct mgx_scan *s, int64_t *out)
{
    bool truth;
    if (accept_bool(s, &truth)) {
        *out = truth;
        return MGX_OK;
    }
    char token[NUMBER_SIZE], *end;
    const size_t size = number_token(s, token, sizeof token, true);
    errno = 0;
    const long long value = strtoll(token, &end, 10);
    double real;
    if (size > 0 && end == token + size && errno == 0)
        *out = value;
    else if (to_double(token, size, &real) && real == floor(real) && fabs(real) < 0x1p53)
        *out = (int64_t)real; // "2.0" and "1e3"
    else
        return mgx_scan_expected(s, "an integer");
    s->at += size;
    return MGX_OK;
}

enum mgx_status mgx_scan_type(struct mgx_scan *s, int64_t *out)
{
    const char next = mgx_scan_peek(s);
    if (isdigit((unsigned char)next)) {
        TRY(mgx_scan_int(s, out));
        if (*out >= 0 && *out < MGX_TYPE_COUNT)
            return MGX_OK;
        return mgx_scan_fail(s, s->at, MGX_INVALID, "type number %lld is not in 0..%d",
                             (long long)*out, MGX_TYPE_COUNT - 1);
    }
    const bool quoted = next == '"' && s->at++;
    const char *c = s->at;
    while (c < s->end && (mgx_is_word_byte(*c) || *c == ':'))
        c++;
    enum mgx_type type;
    if (!mgx_type_find(s->at, (size_t)(c - s->at), &type))
        return mgx_scan_expected(s, "a type");
    s->at = c;
    *out = type;
    return quoted ? mgx_scan_expect(s, '"') : MGX_OK;
}

// --- strings ---

static int hex4(const char *c, const char *end)
{
    int value = 0;
    for (int i = 0; i < 4; i++, c++) {
        if (c == end || !isxdigit((unsigned char)*c))
            return -1;
        const int lower = tolower((unsigned char)*c);
        value = value * 16 + (lower <= '9' ? lower - '0' : lower - 'a' + 10);
    }
    return value;
}

static char *put_utf8(char *out, int code)
{
    assert(code > 0 && code <= 0xffff);
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3f));
    } else { // a surrogate stays one: the bytes come from \u escapes of our own printing or JSON
        *out++ = (char)(0xe0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    }
    return out;
}

// One escape after the backslash; never longer written than read.
static enum mgx_status escape(struct mgx_scan *s, const char **c, char **out)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *known = *c < s->end && **c ? strchr(from, **c) : NULL;
    if (known) {
        *(*out)++ = to[known - from];
        ++*c;
    } else if (*c < s->end && **c == 'u') {
        const int code = hex4(*c + 1, s->end);
        if (code <= 0)
            return mgx_scan_fail(s, *c, MGX_INVALID, "\\u needs four hex digits other than 0000");
        *out = put_utf8(*out, code);
        *c += 5;
    } else if (*c < s->end) {
        *(*out)++ = *(*c)++;
    }
    return MGX_OK;
}

static enum mgx_status quoted_string(struct mgx_scan *s, const char **out)
{
    const char *open = s->at, quote = *open, *close = open + 1;
    while (close < s->end && *close != quote)
        close += *close == '\\' && close + 1 < s->end ? 2 : 1;
    if (close >= s->end)
        return mgx_scan_fail(s, open, MGX_INVALID, "the string that starts here does not end");
    char *text = mgx_arena_alloc(s->arena, (size_t)(close - open));
    if (!text)
        return mgx_fail_memory(s->diag);
    *out = text;
    for (const char *c = open + 1; c < close;) {
        if (*c == '\0')
            return mgx_scan_fail(s, c, MGX_INVALID, "a string contains a zero byte");
        if (*c != '\\')
            *text++ = *c++;
        else {
            c++;
            TRY(escape(s, &c, &text));
        }
    }
    assert(text - *out < close - open); // an escape is never longer than it was
    s->at = close + 1;
    return MGX_OK;
}

enum mgx_status mgx_scan_string(struct mgx_scan *s, const char *stops, const char **out)
{
    const char next = mgx_scan_peek(s);
    if (next == '"' || next == '\'')
        return quoted_string(s, out);
    const char *c = s->at;
    while (c < s->end && *c != '\0' && !strchr(stops, *c))
        c++;
    if (c < s->end && *c == '\0')
        return mgx_scan_fail(s, c, MGX_INVALID, "the text contains a zero byte");
    size_t size = (size_t)(c - s->at);
    while (size && is_space(s->at[size - 1]))
        size--;
    char *text = mgx_arena_alloc(s->arena, size + 1);
    if (!text)
        return mgx_fail_memory(s->diag);
    *out = text;
    for (size_t i = 0; i < size; i++) { // a wrapped line: one space for newline and indentation
        const bool gap = is_space(s->at[i]);
        if (!gap || (i && !is_space(s->at[i - 1])))
            *text++ = gap ? ' ' : s->at[i];
    }
    s->at = c;
    return MGX_OK;
}

// --- lists ---

enum mgx_status mgx_scan_list(struct mgx_scan *s,
                              enum mgx_status (*item)(struct mgx_scan *s, void *user), void *user)
{
    const char open = mgx_scan_peek(s);
    if (open != '{' && open != '[')
        return item(s, user);
    const char close = open == '{' ? '}' : ']';
    s->at++;
    while (!mgx_scan_accept(s, close)) {
        TRY(item(s, user));
        if (!mgx_scan_accept(s, ',') && mgx_scan_peek(s) != close)
            return mgx_scan_expected(s, close == '}' ? "',' or '}'" : "',' or ']'");
    }
    return MGX_OK;
}

void *mgx_scan_entry(struct mgx_scan *s, struct mgx_scan_array *g)
{
    assert(g->size > 0 && g->count >= 0);
    void *entry = g->count < INT32_MAX ? mgx_array_add(&g->array, g->size, s->arena) : NULL;
    if (!entry)
        mgx_fail_memory(s->diag);
    return entry;
}

static enum mgx_status int_item(struct mgx_scan *s, void *user)
{
    int64_t *entry = mgx_scan_entry(s, user);
    return entry ? mgx_scan_int(s, entry) : MGX_NO_MEMORY;
}

static enum mgx_status double_item(struct mgx_scan *s, void *user)
{
    double *entry = mgx_scan_entry(s, user);
    return entry ? mgx_scan_double(s, entry) : MGX_NO_MEMORY;
}

enum mgx_status mgx_scan_key(struct mgx_scan *s, const char **out)
{
    TRY(mgx_scan_string(s, ":=,{}[] \n\t", out));
    return mgx_scan_accept(s, '=') ? MGX_OK : mgx_scan_expect(s, ':');
}

enum mgx_status mgx_scan_skip(struct mgx_scan *s)
{
    const char *unused;
    int depth = 0;
    do {
        const char next = mgx_scan_peek(s);
        if (next == '{' || next == '[') {
            depth++;
            s->at++;
        } else if (depth && (next == '}' || next == ']')) {
            depth--;
            s->at++;
        } else if (depth && (next == ',' || next == ':' || next == '=')) {
            s->at++;
        } else if (depth && s->at == s->end) {
            return mgx_scan_expected(s, "'}' or ']'");
        } else {
            TRY(mgx_scan_string(s, ":=,{}[]", &unused));
        }
    } while (depth);
    return MGX_OK;
}

// An operator where its name is meant, {name: tanh, operator: {}}: how MIGraphX writes the
// activations of recurrent operators. What it says of the operator is not needed.
static enum mgx_status operator_name(struct mgx_scan *s, const char **out)
{
    const char *key, *start = s->at;
    *out = NULL;
    TRY(mgx_scan_expect(s, '{'));
    while (!mgx_scan_accept(s, '}')) {
        TRY(mgx_scan_key(s, &key));
        if (strcmp(key, "name") == 0)
            TRY(mgx_scan_string(s, ",}", out));
        else
            TRY(mgx_scan_skip(s));
        if (!mgx_scan_accept(s, ',') && mgx_scan_peek(s) != '}')
            return mgx_scan_expected(s, "',' or '}'");
    }
    return *out ? MGX_OK : mgx_scan_fail(s, start, MGX_INVALID, "an operator without a name");
}

static enum mgx_status string_item(struct mgx_scan *s, void *user)
{
    const char **entry = mgx_scan_entry(s, user);
    if (!entry)
        return MGX_NO_MEMORY;
    return mgx_scan_peek(s) == '{' ? operator_name(s, entry) : mgx_scan_string(s, ",]}", entry);
}

enum mgx_status mgx_scan_ints(struct mgx_scan *s, struct mgx_ints *out)
{
    struct mgx_scan_array g = {.size = sizeof *out->v};
    TRY(mgx_scan_list(s, int_item, &g));
    *out = (struct mgx_ints){g.v, (int)g.count};
    return MGX_OK;
}

enum mgx_status mgx_scan_doubles(struct mgx_scan *s, struct mgx_doubles *out)
{
    struct mgx_scan_array g = {.size = sizeof *out->v};
    TRY(mgx_scan_list(s, double_item, &g));
    *out = (struct mgx_doubles){g.v, (int)g.count};
    return MGX_OK;
}

enum mgx_status mgx_scan_strings(struct mgx_scan *s, struct mgx_strings *out)
{
    struct mgx_scan_array g = {.size = sizeof *out->v};
    TRY(mgx_scan_list(s, string_item, &g));
    *out = (struct mgx_strings){g.v, (int)g.count};
    return MGX_OK;
}
