// SPDX-License-Identifier: MIT
// The table of all operators, made from the folder; const, sorted by name, searched by bisection.
#include <assert.h>
#include <string.h>

#include "op/op.h"

// The list is sorted by C name; MIGraphX's names are the same strings, so the order holds for them
// too.
static const struct mgx_op *const table[] = {
#define OP(name) &mgx_op_##name,
#include "op_list.inc"
#undef OP
};

enum { COUNT = sizeof table / sizeof *table };

static const struct mgx_op *const builtins[] = {&mgx_op_comment, &mgx_op_literal, &mgx_op_param,
                                                &mgx_op_return};

// `name` need not end in NUL and may hold any bytes.
static int compare(const char *name, size_t size, const char *with)
{
    assert(name && with);
    const size_t length = strlen(with);
    const int order = memcmp(name, with, size < length ? size : length);
    return order ? order : (size > length) - (size < length);
}

static const struct mgx_op *find_op(const char *name, size_t size)
{
    size_t low = 0, high = COUNT;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const int order = compare(name, size, table[middle]->name);
        if (order == 0)
            return table[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (compare(name, size, builtins[i]->name) == 0)
            return builtins[i];
    return NULL;
}

const struct mgx_op *mgx_op_find(const char *name)
{
    return find_op(name, strlen(name));
}

const struct mgx_op *const *mgx_op_all(int *count)
{
    *count = COUNT;
    return table;
}

static const struct mgx_op *find_in_set(const struct mgx_op_set *set, const char *name, size_t size)
{
    (void)set;
    return find_op(name, size);
}

const struct mgx_op_set mgx_ops = {.find = find_in_set};
