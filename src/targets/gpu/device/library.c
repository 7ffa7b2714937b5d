// SPDX-License-Identifier: MIT
// Opening libraries by name; library.h says what for.
#include "targets/gpu/device/library.h"

#include <dlfcn.h>
#include <string.h>

static void *open_first(const char *const *names, const char **found)
{
    for (int i = 0; names[i]; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library) {
            *found = names[i];
            return library;
        }
    }
    return NULL;
}

// dlerror says why the last name was not opened: mostly that there is no such file, sometimes that
// a library it needs is too old, which is what the user must read.
static enum mgx_status fail_open(const char *what, const char *const *names, struct mgx_diag *diag)
{
    const char *why = dlerror();
    const bool absent = !why || strstr(why, "No such file");
    if (absent)
        return mgx_fail(diag, MGX_NOT_FOUND, "%s is not installed (no %s)", what, names[0]);
    return mgx_fail(diag, MGX_NOT_FOUND, "%s cannot be loaded: %s", what, why);
}

enum mgx_status gpu_library_open(const char *what, const char *const *names,
                                 const struct gpu_symbol *symbols, int count, void *table,
                                 struct mgx_diag *diag)
{
    void *first;
    memcpy(&first, (char *)table + symbols[0].offset, sizeof first);
    if (first)
        return MGX_OK;
    const char *found = NULL;
    void *library = open_first(names, &found);
    if (!library)
        return fail_open(what, names, diag);
    for (int i = count - 1; i >= 0; i--) { // the first one last: it says that all are there
        void *address = dlsym(library, symbols[i].name);
        if (!address && !symbols[i].optional) {
            dlclose(library);
            return mgx_fail(diag, MGX_NOT_FOUND, "%s (%s) is too old: it has no %s", what, found,
                            symbols[i].name);
        }
        memcpy((char *)table + symbols[i].offset, &address, sizeof address);
    }
    return MGX_OK;
}
