// SPDX-License-Identifier: MIT
// The table of verbs; see verbs.h.
#include "verbs.h"

const struct verb *const driver_verbs[] = {
#define VERB(name) &verb_##name,
    VERBS(VERB)
#undef VERB
        NULL};

const struct verb *find_verb(const char *name)
{
    for (const struct verb *const *v = driver_verbs; *v; v++)
        if (strcmp((*v)->name, name) == 0)
            return *v;
    return NULL;
}
