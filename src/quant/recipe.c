// SPDX-License-Identifier: MIT
// Recipes: their life; see recipe.h. The text is recipe_text.c's.
#include "quant/recipe.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *const mgx_quant_method_names[] = {"max", "percentile", "entropy", "error", NULL};
const char *const mgx_quant_metric_names[] = {"relative", "top", NULL};

void mgx_recipe_init(struct mgx_recipe *r)
{
    *r = (struct mgx_recipe){.type = MGX_INT8};
    mgx_arena_init(&r->arena);
}

void mgx_recipe_fini(struct mgx_recipe *r)
{
    mgx_arena_fini(&r->arena);
    *r = (struct mgx_recipe){0};
}

static struct mgx_doubles copy_of(struct mgx_arena *arena, struct mgx_doubles d)
{
    const double *v = mgx_arena_memdup(arena, d.v, (size_t)d.count * sizeof *d.v);
    return d.count && v ? (struct mgx_doubles){v, d.count} : (struct mgx_doubles){NULL, 0};
}

enum mgx_status mgx_recipe_copy(struct mgx_recipe *out, const struct mgx_recipe *r,
                                struct mgx_diag *diag)
{
    *out = *r;
    mgx_arena_init(&out->arena);
    out->array = (struct mgx_array){0};
    for (int64_t i = 0; i < r->count; i++) {
        struct mgx_recipe_entry e = r->v[i];
        e.name = mgx_arena_strdup(&out->arena, e.name);
        e.origin = mgx_arena_strdup(&out->arena, e.origin);
        e.why = mgx_arena_strdup(&out->arena, e.why);
        e.smooth = copy_of(&out->arena, e.smooth);
        e.means = copy_of(&out->arena, e.means);
        if (!MGX_PUSH(out, &out->arena, e))
            break;
    }
    if (!out->arena.failed)
        return MGX_OK;
    mgx_recipe_fini(out);
    return mgx_fail_memory(diag);
}

struct mgx_recipe_entry *mgx_recipe_find(const struct mgx_recipe *r, const char *name)
{
    assert(name);
    for (int64_t i = 0; i < r->count; i++)
        if (strcmp(r->v[i].name, name) == 0)
            return &r->v[i];
    return NULL;
}
