// SPDX-License-Identifier: MIT
// Cutting a program down to the part one wants to look at, for bug reports and bisection; and
// emptying it of its constants, for those who may not show their weights.
//
//     a b c d e @return   drop 1, keep 2:   x0 -> c d @return(d)
//     a b c d e @return   the first 3:      a b c @return(what of them nobody reads)
//
// Only instructions that compute count. What the kept ones read from the ones cut away becomes a
// parameter x0, x1, ... of the same shape; literals and parameters stay. Cost: O(instructions +
// uses).
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/size.h"
#include "ir/module.h"

static bool counts(const struct mgx_ins *ins)
{
    return !(ins->op->flags & MGX_OP_BUILTIN);
}

// Removes all from `from` to the end, last first, so that nothing removed is still read.
static void drop_tail(struct mgx_module *m, struct mgx_ins *const *list, int from, int to)
{
    assert(from >= 0 && from <= to);
    struct mgx_ins *ret = mgx_module_return(m);
    if (ret)
        mgx_remove(ret);
    for (int i = to - 1; i >= from; i--)
        if (!list[i]->uses)
            mgx_remove(list[i]);
}

static enum mgx_status cut_head(struct mgx_module *m, struct mgx_ins *const *list, int count,
                                struct mgx_diag *diag)
{
    assert(count >= 0);
    int made = 0;
    char name[24];
    for (int i = count - 1; i >= 0; i--) {
        if (list[i]->uses) {
            do
                snprintf(name, sizeof name, "x%d", made++);
            while (mgx_find_parameter(m, name));
            struct mgx_ins *param = mgx_add_parameter(m, name, &list[i]->shape);
            if (!param)
                return mgx_program_status(m->program, diag);
            mgx_replace_uses(list[i], param);
        }
        mgx_remove(list[i]);
    }
    return MGX_OK;
}

static enum mgx_status trim(struct mgx_module *m, struct mgx_ins *const *list, int count, int drop,
                            int keep, struct mgx_diag *diag)
{
    assert(drop >= 0 && keep >= 0 && drop < count);
    const int end = count - drop;
    const int begin = keep && keep < end ? end - keep : 0;
    assert(begin >= 0 && begin < end);
    if (drop) {
        drop_tail(m, list, end, count);
        if (!mgx_add_return(m, &list[end - 1], 1))
            return mgx_program_status(m->program, diag);
    }
    return cut_head(m, list, begin, diag);
}

// The instructions that count, to be freed; NULL when out of memory.
static struct mgx_ins **list_counted(const struct mgx_module *m, int *count)
{
    struct mgx_ins **list = calloc((size_t)m->count + 1, sizeof *list);
    *count = 0;
    MGX_EACH (ins, m) {
        if (list && counts(ins))
            list[(*count)++] = ins;
    }
    return list;
}

enum mgx_status mgx_program_trim(struct mgx_program *p, int drop, int keep, struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(p);
    int count;
    struct mgx_ins **list = list_counted(m, &count);
    if (!list)
        return mgx_fail_memory(diag);
    const enum mgx_status status =
        drop >= count
            ? mgx_fail(diag, MGX_INVALID, "cannot drop %d of %d instructions", drop, count)
            : trim(m, list, count, drop, keep, diag);
    free(list);
    return status;
}

// Tuples are left out where there is anything else: what is taken out of them is shown instead.
static bool shows(const struct mgx_ins *ins)
{
    return !ins->uses && ins->shape.type != MGX_TUPLE && ins->shape.type != MGX_SEQUENCE;
}

static enum mgx_status return_unread(struct mgx_module *m, struct mgx_ins **list, int count,
                                     struct mgx_diag *diag)
{
    assert(count > 0);
    int shown = 0;
    struct mgx_ins *last = list[count - 1];
    for (int i = 0; i < count; i++)
        if (shows(list[i]))
            list[shown++] = list[i];
    if (!shown)
        list[shown++] = last;
    mgx_add_return(m, list, shown);
    return mgx_program_status(m->program, diag);
}

enum mgx_status mgx_program_keep_first(struct mgx_program *p, int keep, struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(p);
    int count;
    struct mgx_ins **list = list_counted(m, &count);
    if (!list)
        return mgx_fail_memory(diag);
    enum mgx_status status = MGX_OK;
    if (keep < 1 || keep > count)
        status = mgx_fail(diag, MGX_INVALID, "cannot keep %d of %d instructions", keep, count);
    else if (keep < count) {
        drop_tail(m, list, keep, count);
        status = return_unread(m, list, keep, diag);
    }
    free(list);
    return status;
}

enum mgx_status mgx_program_replace_literals(struct mgx_program *p, struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(p);
    int made = 0;
    char name[32];
    MGX_EACH (ins, m) {
        if (!ins->literal)
            continue;
        do
            snprintf(name, sizeof name, "literal:%d", made++);
        while (mgx_find_parameter(m, name));
        struct mgx_ins *param = mgx_add_parameter(m, name, &ins->shape);
        if (!param)
            return mgx_program_status(p, diag);
        mgx_replace_uses(ins, param);
        mgx_remove(ins);
    }
    return MGX_OK;
}
