// SPDX-License-Identifier: MIT
// Programs and their modules: creation, destruction, lists; see module.h.
//
// A program is one arena plus the shares in literals' storages. Destroying it walks nothing but
// that list.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ir/carry.h"
#include "ir/link.h"

enum mgx_status mgx_program_create(struct mgx_program **out, const struct mgx_op_set *ops,
                                   struct mgx_diag *diag)
{
    *out = NULL;
    struct mgx_program *p = calloc(1, sizeof *p);
    if (!p)
        return mgx_fail_memory(diag);
    mgx_arena_init(&p->arena);
    mgx_arena_init(&p->module_arena);
    p->ops = ops;
    if (!mgx_program_add_module(p, "main")) {
        mgx_program_destroy(p);
        return mgx_fail_memory(diag);
    }
    *out = p;
    return MGX_OK;
}

static void drop(struct mgx_kept *kept)
{
    for (int64_t i = 0; i < kept->count; i++) {
        assert(i == 0 || kept->v[i] != kept->v[i - 1]); // mgx_keep
        mgx_storage_release(kept->v[i]);
    }
    free(kept->v);
}

void mgx_program_destroy(struct mgx_program *p)
{
    if (!p)
        return;
    if (p->executable && p->destroy_executable)
        p->destroy_executable(p->executable);
    mgx_carry_destroy(p->carry);
    drop(&p->literals);
    drop(&p->pinned);
    mgx_map_fini(&p->module_names);
    mgx_map_fini(&p->parameter_names);
    mgx_arena_fini(&p->arena);
    mgx_arena_fini(&p->module_arena);
    free(p);
}

enum mgx_status mgx_program_hint(struct mgx_program *p, const char *parameter, const char *text,
                                 struct mgx_diag *diag)
{
    assert(parameter && text && p->hints.count % 2 == 0);
    const char *name = mgx_arena_strdup(&p->arena, parameter);
    const char *copy = mgx_arena_strdup(&p->arena, text);
    const bool kept = name && copy && MGX_PUSH(&p->hints, &p->arena, name) &&
                      MGX_PUSH(&p->hints, &p->arena, copy);
    return kept ? MGX_OK : mgx_fail_memory(diag);
}

const char *mgx_program_find_hint(const struct mgx_program *p, const char *parameter)
{
    assert(p->hints.count % 2 == 0);
    for (int64_t i = 0; i + 1 < p->hints.count; i += 2)
        if (strcmp(p->hints.v[i], parameter) == 0)
            return p->hints.v[i + 1];
    return NULL;
}

enum mgx_status mgx_program_status(const struct mgx_program *p, struct mgx_diag *diag)
{
    if (p->diag.status != MGX_OK)
        return mgx_fail(diag, p->diag.status, "%s", p->diag.text);
    if (p->arena.failed)
        return mgx_fail_memory(diag);
    return MGX_OK;
}

struct mgx_module *mgx_program_main(const struct mgx_program *p)
{
    assert(p->module_count > 0);
    return p->modules[0];
}

struct mgx_module *mgx_program_find_module(const struct mgx_program *p, const char *name)
{
    return mgx_map_find(&p->module_names, name);
}

// `name`, or the first of name:n, name:n+1, ... that is free, n being the number of modules.
static const char *unique_name(struct mgx_program *p, const char *name)
{
    const char *candidate = mgx_arena_strdup(&p->arena, name);
    for (int i = p->module_count; candidate && mgx_program_find_module(p, candidate); i++)
        candidate = mgx_arena_printf(&p->arena, "%s:%d", name, i);
    assert(!candidate || !mgx_program_find_module(p, candidate));
    return candidate;
}

// The module list grows by doubling inside the arena; old arrays are left behind (they are small).
static bool list_module(struct mgx_program *p, struct mgx_module *m)
{
    const int count = p->module_count;
    if ((count & (count - 1)) == 0) { // 0, 1, 2, 4, 8, ...: full
        struct mgx_module **grown =
            MGX_NEW_ARRAY(&p->arena, struct mgx_module *, count ? 2 * count : 1);
        if (!grown)
            return false;
        if (count)
            memcpy(grown, p->modules, (size_t)count * sizeof *grown);
        p->modules = grown;
    }
    p->modules[p->module_count++] = m;
    assert(p->modules[0]->program == p && m->program == p);
    return true;
}

struct mgx_module *mgx_program_add_module(struct mgx_program *p, const char *name)
{
    struct mgx_module *m = MGX_NEW(&p->module_arena, struct mgx_module);
    if (!m) {
        mgx_fail_memory(&p->diag);
        return NULL;
    }
    m->program = p;
    m->name = unique_name(p, name);
    if (!m->name || !mgx_map_put(&p->module_names, m->name, m) || !list_module(p, m)) {
        mgx_fail_memory(&p->diag);
        return NULL;
    }
    return m;
}

void mgx_program_remove_module(struct mgx_program *p, struct mgx_module *m)
{
    int at = 0;
    while (at < p->module_count && p->modules[at] != m)
        at++;
    assert(at > 0 && at < p->module_count); // main stays
    assert(m->program == p && mgx_program_find_module(p, m->name) == m);
    while (m->last) { // frees the captures it holds on outer instructions
        struct mgx_ins *ins = m->last;
        assert(!ins->uses);
        mgx_remove(ins);
    }
    assert(!m->first && !m->count);
    mgx_map_put(&p->module_names, m->name, NULL); // overwriting cannot fail
    m->name = "";                                 // may be asked by whoever holds it still
    // In place: the array stays large enough for list_module, which grows it at powers of two only.
    memmove(p->modules + at, p->modules + at + 1,
            (size_t)(p->module_count - at - 1) * sizeof *p->modules);
    assert(p->modules[0] != m);
    p->module_count--;
}

// While no file of the process was ever lost this is one load.
static enum mgx_status check_files(const struct mgx_kept *kept, struct mgx_diag *diag)
{
    for (int64_t i = 0; mgx_file_any_lost() && i < kept->count; i++)
        if (mgx_file_lost_at(kept->v[i]->data))
            return mgx_fail(diag, MGX_IO, "a file with weights became shorter while in use");
    return MGX_OK;
}

enum mgx_status mgx_program_check_files(const struct mgx_program *p, struct mgx_diag *diag)
{
    return check_files(&p->literals, diag);
}

enum mgx_status mgx_program_drop_literals(struct mgx_program *p, struct mgx_diag *diag)
{
    struct mgx_kept live = {0};
    bool ok = true;
    if (p->handed_out)
        return MGX_OK;
    for (int m = 0; m < p->module_count; m++)
        for (const struct mgx_ins *ins = p->modules[m]->first; ins && ok; ins = ins->next)
            ok = !ins->literal || mgx_keep(&live, ins->literal->storage);
    struct mgx_kept old = ok ? p->literals : live;
    if (ok)
        p->literals = live;
    const enum mgx_status status = ok ? check_files(&old, diag) : mgx_fail_memory(diag);
    drop(&old);
    return status;
}

void mgx_program_pin(struct mgx_program *p, struct mgx_storage *retain)
{
    assert(retain);
    if (!mgx_keep(&p->pinned, retain))
        mgx_fail_memory(&p->diag);
}
