// SPDX-License-Identifier: MIT
// A set of names with a number for each: open addressing, at most half full.
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

static size_t hash(const char *name)
{
    uint64_t h = 1469598103934665603u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return (size_t)(h ^ h >> 29);
}

// Where the name is, or would be.
static size_t place_of(const struct names *n, const char *name)
{
    size_t at = hash(name) & (n->room - 1);
    while (n->keys[at] && strcmp(n->keys[at], name) != 0)
        at = (at + 1) & (n->room - 1);
    return at;
}

static bool grow(struct names *n)
{
    struct names more = {.room = n->room ? 2 * n->room : 64};
    more.keys = calloc(more.room, sizeof *more.keys);
    more.values = calloc(more.room, sizeof *more.values);
    if (!more.keys || !more.values) {
        names_fini(&more);
        return false;
    }
    for (size_t i = 0; i < n->room; i++)
        if (n->keys[i])
            names_put(&more, n->keys[i], n->values[i]);
    names_fini(n);
    *n = more;
    return true;
}

void names_fini(struct names *n)
{
    free(n->keys);
    free(n->values);
    *n = (struct names){0};
}

bool names_put(struct names *n, const char *name, size_t value)
{
    if (2 * (n->count + 1) > n->room && !grow(n))
        return false;
    const size_t at = place_of(n, name);
    if (n->keys[at])
        return true;
    n->keys[at] = name;
    n->values[at] = value;
    n->count++;
    return true;
}

bool names_find(const struct names *n, const char *name, size_t *value)
{
    const size_t at = n->room ? place_of(n, name) : 0;
    const bool found = n->room && n->keys[at];
    if (found && value)
        *value = n->values[at];
    return found;
}
