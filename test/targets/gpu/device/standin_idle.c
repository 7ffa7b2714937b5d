// SPDX-License-Identifier: MIT
// The stand-in's kernels where a library's are tested: text "compiles" to itself, and every kernel
// takes the time that standin_slow(microseconds) asks for and writes nothing.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "standin.h"

#define API __attribute__((visibility("default")))

enum { OK = 0, NO_MEMORY = 2, NOT_FOUND = 500, COMPILATION = 6 };

API void standin_slow(int microseconds);

static int slow;

API void standin_slow(int microseconds)
{
    slow = microseconds;
}

const struct standin_card *standin_card(void)
{
    static const struct standin_card card = {STANDIN_ARCH, 64, 104, 1 << 30};
    return &card;
}

int standin_compile(const char *text, const char *arch, char **code, size_t *size, char **log)
{
    *log = NULL;
    *code = strdup(text);
    *size = strlen(text) + 1;
    return strcmp(arch, STANDIN_ARCH) == 0 ? OK : COMPILATION;
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

int standin_find(void *module, const char *name, void **kernel)
{
    *kernel = module;
    return strstr(module, name) ? OK : NOT_FOUND;
}

int standin_launch(void *kernel, const struct standin_dims *dims, void **params)
{
    (void)kernel, (void)dims, (void)params;
    if (slow)
        usleep((unsigned)slow);
    return OK;
}

void **standin_keep(void *kernel, void **params)
{
    (void)kernel, (void)params;
    return malloc(1);
}
