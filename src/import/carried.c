// SPDX-License-Identifier: MIT
// Shapes of values that a loop carries; see build.h.
#include "import/build.h"
#include "op/rule/rule.h"

struct mgx_shape mgx_build_plain(const struct mgx_shape *s)
{
    const bool tensor = s->type != MGX_TUPLE && s->type != MGX_SEQUENCE && !s->unranked;
    return tensor ? mgx_shape_retype(s, s->type) : *s;
}

// A length that moves may be any. False when out of memory.
static bool open_lengths(struct mgx_arena *arena, struct mgx_shape *s)
{
    struct mgx_dim *dims = MGX_NEW_ARRAY(arena, struct mgx_dim, s->rank);
    for (int i = 0; dims && i < s->rank; i++) {
        dims[i] = mgx_shape_dim(s, i);
        if (!mgx_dim_is_fixed(&dims[i]))
            dims[i] = (struct mgx_dim){.min = 0, .max = MGX_DIM_ANY};
    }
    if (dims)
        *s = mgx_shape_from_dims(s->type, s->rank, dims);
    return dims != NULL;
}

enum mgx_status mgx_build_widen(struct mgx_node *n, const struct mgx_shape *result, bool last,
                                struct mgx_shape *shape, bool *changed)
{
    struct mgx_arena *arena = &n->module->program->arena;
    struct mgx_shape joined;
    if (shape->type != result->type)
        return mgx_node_invalid(n, "a carried value is %s, the body makes it %s",
                                mgx_type_name(shape->type), mgx_type_name(result->type));
    if (shape->unranked || shape->type == MGX_SEQUENCE || shape->type == MGX_TUPLE ||
        mgx_shape_same_lens(shape, result))
        return MGX_OK;
    if (!mgx_shape_join(arena, shape, result, &joined))
        return mgx_fail_memory(n->diag);
    if (!joined.unranked && mgx_shape_same_lens(shape, &joined))
        return MGX_OK; // a part of what is allowed
    if (last)
        joined = mgx_shape_unranked(shape->type);
    if (!joined.unranked && !open_lengths(arena, &joined))
        return mgx_fail_memory(n->diag);
    *shape = joined;
    *changed = true;
    return MGX_OK;
}
