// SPDX-License-Identifier: MIT
#include "base/settings.h"

#include <stdlib.h>
#include <string.h>

const char *mgx_setting(const struct mgx_settings *s, const char *name)
{
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->list[i].name, name) == 0)
            return s->list[i].value;
    return NULL;
}

bool mgx_setting_is_on(const struct mgx_settings *s, const char *name)
{
    return mgx_setting_int(s, name) != 0;
}

int mgx_setting_int(const struct mgx_settings *s, const char *name)
{
    const char *value = mgx_setting(s, name);
    return value ? atoi(value) : 0;
}

bool mgx_settings_put(struct mgx_settings *s, struct mgx_arena *arena, const char *name,
                      const char *value)
{
    struct mgx_setting *list = MGX_NEW_ARRAY(arena, struct mgx_setting, s->count + 1);
    char *own_name = mgx_arena_strdup(arena, name), *own_value = mgx_arena_strdup(arena, value);
    int count = 0;
    if (!list || !own_name || (value && !own_value))
        return false;
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->list[i].name, name) != 0)
            list[count++] = s->list[i];
    if (value)
        list[count++] = (struct mgx_setting){own_name, own_value};
    *s = (struct mgx_settings){list, count};
    return true;
}

bool mgx_settings_copy(struct mgx_settings *out, struct mgx_arena *arena,
                       const struct mgx_settings *in)
{
    struct mgx_settings own = {NULL, 0};
    for (int i = 0; i < in->count; i++)
        if (!mgx_settings_put(&own, arena, in->list[i].name, in->list[i].value))
            return false;
    *out = own;
    return true;
}
