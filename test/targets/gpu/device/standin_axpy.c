// SPDX-License-Identifier: MIT
// The stand-in's kernels where calls are tested, not kernels: text "compiles" to itself, and the one
// kernel there is, axpy, is here.
#include "standin.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_FOUND = 500, COMPILATION = 6, AXPY_PARAMS = 4 };

const struct standin_card *standin_card(void)
{
    static const struct standin_card card = {"gfx90a:sramecc+:xnack-", 64, 104, 64 << 20};
    return &card;
}

int standin_compile(const char *text, const char *arch, char **code, size_t *size, char **log)
{
    const bool error = strstr(text, "\n#error") || strncmp(text, "#error", 6) == 0;
    *log = error ? strdup(text) : NULL;
    *code = error ? NULL : strdup(text);
    *size = strlen(text) + 1;
    return error || strcmp(arch, standin_card()->arch) != 0 ? COMPILATION : OK;
}

int standin_load(const void *code, void **module)
{
    *module = strdup(code);
    return *module ? OK : NO_MEMORY;
}

void standin_unload(void *module)
{
    free(module);
}

static void axpy(void **p, unsigned threads)
{
    float *y = *(float **)p[0];
    const float *x = *(const float **)p[1], a = *(const float *)p[2];
    const int count = *(const int *)p[3];
    for (int i = 0; i < count && i < (int)threads; i++)
        y[i] = a * x[i] + y[i];
}

int standin_find(void *module, const char *name, void **kernel)
{
    *kernel = (void *)axpy;
    return strcmp(name, "axpy") == 0 && strstr(module, name) ? OK : NOT_FOUND;
}

int standin_launch(void *kernel, const struct standin_dims *d, void **params)
{
    if (kernel != (void *)axpy || d->grid[1] * d->grid[2] * d->block[1] * d->block[2] != 1 ||
        d->shared)
        return INVALID;
    axpy(params, d->grid[0] * d->block[0]);
    return OK;
}

void **standin_keep(void *kernel, void **params)
{
    (void)kernel;
    void **kept = malloc(AXPY_PARAMS * (sizeof *kept + sizeof(void *)));
    for (int i = 0; kept && i < AXPY_PARAMS; i++) {
        kept[i] = kept + AXPY_PARAMS + i;
        memcpy(kept[i], params[i], i < 2 ? sizeof(void *) : sizeof(int));
    }
    return kept;
}
