// SPDX-License-Identifier: MIT
// Values of options as hosts write them down, for every plugin: yes and no, and sizes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <strings.h>

// False where the text says neither; the empty one says no.
static inline bool words_flag(const char *text, bool *out)
{
    static const char *const words[] = {"", "0", "false", "off", "1", "true", "on"};
    enum { COUNT = sizeof words / sizeof *words, FIRST_YES = 4 };
    for (int i = 0; i < COUNT; i++)
        if (strcasecmp(text, words[i]) == 0) {
            *out = i >= FIRST_YES;
            return true;
        }
    return false;
}

// False where the text is no number without a sign.
static inline bool words_size(const char *text, size_t *out)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    *out = (size_t)strtoull(text, &end, 10);
    return !*end;
}
