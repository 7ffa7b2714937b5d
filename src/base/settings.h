// SPDX-License-Identifier: MIT
// Values by name, as texts: what one of several readers knows, handed through by all who do not.
// "1" is on; what is not there has its reader's default. Lists are short: finding compares names.
#pragma once

#include "base/arena.h"

struct mgx_setting {
    const char *name, *value; // value NULL: as if it were not there
};

struct mgx_settings {
    const struct mgx_setting *list;
    int count;
};

// MGX_SETTINGS({"isa", "avx2"}, {"tf32", "1"}): for as long as the block that it stands in.
#define MGX_SETTINGS(...)                                                                          \
    ((struct mgx_settings){(const struct mgx_setting[]){__VA_ARGS__},                              \
                           sizeof((const struct mgx_setting[]){__VA_ARGS__}) /                     \
                               sizeof(struct mgx_setting)})

const char *mgx_setting(const struct mgx_settings *s, const char *name); // NULL: not set
bool mgx_setting_is_on(const struct mgx_settings *s, const char *name);
int mgx_setting_int(const struct mgx_settings *s, const char *name); // 0: not set, or no number

// Sets, replaces or with NULL takes away; name and value are copied. False when out of memory.
bool mgx_settings_put(struct mgx_settings *s, struct mgx_arena *arena, const char *name,
                      const char *value) MGX_NODISCARD;
// A list of one's own. False when out of memory.
bool mgx_settings_copy(struct mgx_settings *out, struct mgx_arena *arena,
                       const struct mgx_settings *in) MGX_NODISCARD;
