// SPDX-License-Identifier: MIT
// Growable string; see str.h. Capacity doubles, so n appends cost O(n).
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/size.h"

void mgx_str_fini(struct mgx_str *s)
{
    free(s->text);
    *s = (struct mgx_str){0};
}

// Makes room for `extra` more characters and the terminator.
static bool reserve(struct mgx_str *s, size_t extra)
{
    if (s->failed)
        return false;
    size_t need;
    if (!mgx_add_size(s->size, extra, &need) || !mgx_add_size(need, 1, &need)) {
        s->failed = true;
        return false;
    }
    if (need <= s->capacity)
        return true;
    size_t capacity = s->capacity ? s->capacity : 64;
    while (capacity < need && capacity <= (size_t)-1 / 2)
        capacity *= 2;
    if (capacity < need)
        capacity = need;
    char *grown = realloc(s->text, capacity);
    if (!grown) {
        s->failed = true;
        return false;
    }
    s->text = grown;
    s->capacity = capacity;
    return true;
}

void mgx_str_putn(struct mgx_str *s, const char *text, size_t size)
{
    if (!reserve(s, size))
        return;
    if (size)
        memcpy(s->text + s->size, text, size);
    s->size += size;
    s->text[s->size] = '\0';
}

void mgx_str_put(struct mgx_str *s, const char *text)
{
    mgx_str_putn(s, text, strlen(text));
}

void mgx_str_putc(struct mgx_str *s, char c)
{
    mgx_str_putn(s, &c, 1);
}

void mgx_str_vprintf(struct mgx_str *s, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int length = mgx_number_vformat(NULL, 0, fmt, args);
    if (length < 0)
        s->failed = true;
    else if (reserve(s, (size_t)length)) {
        mgx_number_vformat(s->text + s->size, (size_t)length + 1, fmt, again);
        s->size += (size_t)length;
    }
    va_end(again);
}

void mgx_str_printf(struct mgx_str *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mgx_str_vprintf(s, fmt, args);
    va_end(args);
}

const char *mgx_str_text(const struct mgx_str *s)
{
    return s->text ? s->text : "";
}

char *mgx_str_take(struct mgx_str *s)
{
    if (!s->failed && !s->text)
        mgx_str_putn(s, "", 0);
    char *text = s->failed ? NULL : s->text;
    if (!text)
        free(s->text);
    *s = (struct mgx_str){0};
    return text;
}
