// SPDX-License-Identifier: MIT
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

enum { MOST_DEPTH = 32, MOST_VALUES = 1 << 20 };

struct reader {
    struct json_list *list;
    const char *at, *end;
};

static void skip_space(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool take(struct reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool take_text(struct reader *r, const char **text, size_t *size)
{
    if (!take(r, '"'))
        return false;
    *text = r->at;
    while (r->at < r->end && *r->at != '"')
        r->at += *r->at == '\\' && r->at + 1 < r->end ? 2 : 1;
    if (r->at >= r->end)
        return false;
    *size = (size_t)(r->at++ - *text);
    return true;
}

// The number of a new value; SIZE_MAX without memory.
static size_t add(struct json_list *l)
{
    if (l->count == l->room) {
        const size_t room = l->room ? 2 * l->room : 256;
        struct json *more = room > MOST_VALUES ? NULL : realloc(l->values, room * sizeof *more);
        if (!more)
            return SIZE_MAX;
        l->values = more;
        l->room = room;
    }
    l->values[l->count] = (struct json){0};
    return l->count++;
}

static bool take_word(struct reader *r, struct json *v)
{
    static const struct {
        const char *word;
        enum json_kind kind;
    } words[] = {{"null", JSON_NULL}, {"false", JSON_FALSE}, {"true", JSON_TRUE}};
    for (size_t i = 0; i < 3; i++) {
        const size_t size = strlen(words[i].word);
        if ((size_t)(r->end - r->at) >= size && memcmp(r->at, words[i].word, size) == 0) {
            *v = (struct json){.kind = words[i].kind, .text = r->at, .size = size};
            r->at += size;
            return true;
        }
    }
    const char *begin = r->at;
    while (r->at < r->end && (isalnum((unsigned char)*r->at) || strchr("+-.", *r->at)))
        r->at++;
    *v = (struct json){.kind = JSON_NUMBER, .text = begin, .size = (size_t)(r->at - begin)};
    return v->size > 0;
}

static bool take_value(struct reader *r, int depth, const char *key, size_t key_size);

static bool take_members(struct reader *r, int depth, bool named, char end)
{
    r->at++;
    if (take(r, end))
        return true;
    do {
        const char *key = NULL;
        size_t size = 0;
        if (named && !(take_text(r, &key, &size) && take(r, ':')))
            return false;
        if (!take_value(r, depth + 1, key, size))
            return false;
    } while (take(r, ','));
    return take(r, end);
}

static bool take_value(struct reader *r, int depth, const char *key, size_t key_size)
{
    struct json v = {0};
    skip_space(r);
    const size_t number = add(r->list);
    if (number == SIZE_MAX || depth > MOST_DEPTH || r->at == r->end)
        return false;
    const char *begin = r->at;
    bool good;
    if (*begin == '"') {
        v.kind = JSON_TEXT;
        good = take_text(r, &v.text, &v.size);
    } else if (*begin == '{' || *begin == '[') {
        const bool named = *begin == '{';
        good = take_members(r, depth, named, named ? '}' : ']');
        v = (struct json){.kind = named ? JSON_OBJECT : JSON_LIST, .text = begin};
        v.size = (size_t)(r->at - begin);
    } else {
        good = take_word(r, &v);
    }
    v.key = key;
    v.key_size = key_size;
    v.next = r->list->count;
    r->list->values[number] = v;
    return good;
}

bool json_read(struct json_list *out, const char *text, size_t size)
{
    *out = (struct json_list){0};
    struct reader r = {.list = out, .at = text, .end = text + size};
    if (take_value(&r, 0, NULL, 0))
        return true;
    json_fini(out);
    return false;
}

void json_fini(struct json_list *l)
{
    free(l->values);
    *l = (struct json_list){0};
}

const struct json *json_step(const struct json_list *l, const struct json *of,
                             const struct json *last)
{
    if (!of || (of->kind != JSON_LIST && of->kind != JSON_OBJECT))
        return NULL;
    const size_t number = last ? last->next : (size_t)(of - l->values) + 1;
    return number < of->next ? &l->values[number] : NULL;
}

size_t json_size(const struct json_list *l, const struct json *of)
{
    size_t count = 0;
    for (const struct json *v = NULL; (v = json_step(l, of, v));)
        count++;
    return count;
}

const struct json *json_find(const struct json_list *l, const struct json *of, const char *path)
{
    const size_t size = strcspn(path, ".");
    for (const struct json *v = NULL; (v = json_step(l, of, v));)
        if (v->key && v->key_size == size && memcmp(v->key, path, size) == 0)
            return path[size] ? json_find(l, v, path + size + 1) : v;
    return NULL;
}

bool json_integer(const struct json *v, int64_t *out)
{
    char digits[24] = "", *end;
    if (!v || (v->kind != JSON_NUMBER && v->kind != JSON_TEXT) || !v->size ||
        v->size >= sizeof digits)
        return false;
    memcpy(digits, v->text, v->size);
    *out = strtoll(digits, &end, 10);
    return !*end;
}

bool json_number(const struct json *v, double *out)
{
    char digits[40] = "", *end;
    if (!v || v->kind != JSON_NUMBER || !v->size || v->size >= sizeof digits)
        return false;
    memcpy(digits, v->text, v->size);
    *out = strtod(digits, &end);
    return !*end && isfinite(*out);
}

bool json_is_true(const struct json *v)
{
    return v && v->kind == JSON_TRUE;
}

bool json_equal(const struct json *v, const char *text)
{
    return v && v->kind == JSON_TEXT && v->size == strlen(text) &&
           memcmp(v->text, text, v->size) == 0;
}

bool json_key_equal(const struct json *v, const char *text)
{
    return v && v->key && v->key_size == strlen(text) && memcmp(v->key, text, v->key_size) == 0;
}

// --- copies ---

static char escaped(char c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    default:
        return c;
    }
}

// Letters beyond ASCII come as they are in the server's texts; \u of those within it is all there is.
static char *copy(const char *text, size_t size)
{
    char *out = malloc(size + 1), *to = out;
    for (size_t i = 0; out && i < size; i++) {
        if (text[i] != '\\' || i + 1 == size) {
            *to++ = text[i];
        } else if (text[++i] == 'u' && i + 4 < size) {
            char digits[5] = "";
            memcpy(digits, text + i + 1, 4);
            const unsigned long code = strtoul(digits, NULL, 16);
            *to++ = code < 0x80 ? (char)code : '?';
            i += 4;
        } else {
            *to++ = escaped(text[i]);
        }
    }
    if (out)
        *to = '\0';
    return out;
}

char *json_copy(const struct json *v)
{
    if (!v)
        return NULL;
    return v->kind == JSON_TEXT ? copy(v->text, v->size) : strndup(v->text, v->size);
}

char *json_copy_key(const struct json *v)
{
    return v && v->key ? copy(v->key, v->key_size) : NULL;
}
