// SPDX-License-Identifier: MIT
// See values.h.
#include "targets/values.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "op/op.h"

enum { MOST_ELEMENTS = 64, MOST_BYTES = 4096, WORD = 8 };

// --- what decides ---

struct search {
    struct mgx_map chosen; // parameters that a size follows from
    struct mgx_map seen;   // of the walk that is going on
    struct {
        MGX_ARRAY(const struct mgx_ins *);
    } found;     // parameters it came to
    bool failed; // out of memory
};

// A vector of open length has room for as many as may be.
static size_t room_of(const struct mgx_shape *s)
{
    const bool open = !mgx_shape_is_static(s);
    if (!mgx_type_is_number(s->type) || s->unranked || (open && s->rank != 1))
        return SIZE_MAX;
    const size_t bytes = open ? MOST_ELEMENTS * mgx_type_size(s->type) : mgx_shape_bytes(s);
    return bytes <= MOST_ELEMENTS * WORD ? bytes : SIZE_MAX;
}

// Lengths and literals are known without values.
static bool is_known(const struct mgx_ins *ins)
{
    return ins->literal || ins->op == &mgx_op_dimensions_of;
}

// Does `ins` follow from small parameters alone? They are noted.
static bool follows(struct search *s, const struct mgx_ins *ins, int depth)
{
    enum { DEEP = 200 };
    if (is_known(ins) || mgx_map_find_pointer(&s->seen, ins))
        return true;
    if (!mgx_map_put_pointer(&s->seen, ins, (void *)ins)) {
        s->failed = true;
        return false;
    }
    if (ins->op == &mgx_op_param) {
        const bool own = ins->owner == mgx_program_main(ins->owner->program);
        const bool small = own && room_of(&ins->shape) != SIZE_MAX;
        s->failed |= small && !MGX_PUSH(&s->found, NULL, ins);
        return small;
    }
    bool good = depth < DEEP && ins->in_count && ins->op->compute && !ins->mod_count &&
                (ins->op->expand || !(ins->op->flags & MGX_OP_IMPURE)) &&
                !(ins->op->flags & (MGX_OP_EFFECT | MGX_OP_BUILTIN));
    for (int i = 0; i < ins->in_count && good; i++)
        good = follows(s, ins->in[i], depth + 1);
    return good;
}

static void look_at(struct search *s, const struct mgx_ins *input)
{
    s->found.count = 0;
    if (follows(s, input, 0))
        for (int64_t i = 0; i < s->found.count; i++)
            s->failed |= !mgx_map_put_pointer(&s->chosen, s->found.v[i], (void *)s->found.v[i]);
    mgx_map_fini(&s->seen);
}

static void look_at_inputs(struct search *s, const struct mgx_ins *ins)
{
    const uint32_t which = ins->op->sized_by ? ins->op->sized_by(ins) : 0;
    for (int i = 0; which >> i && i < ins->in_count && i < 32; i++)
        if (which >> i & 1)
            look_at(s, ins->in[i]);
}

static bool search(struct search *s, const struct mgx_program *p)
{
    for (int m = 0; m < p->module_count; m++)
        for (const struct mgx_ins *ins = p->modules[m]->first; ins; ins = ins->next)
            look_at_inputs(s, ins);
    free(s->found.v);
    return !s->failed;
}

// --- totals of caches ---

enum { TOTAL = 2, PAST = 3, ROOM_AXIS = 2, MOST_CACHES = 1024 };

struct caches {
    int v[MOST_CACHES];
    int count;
};

static bool add_cache(struct caches *c, const struct mgx_ins *append)
{
    const struct mgx_ins *past = append->in_count > PAST ? append->in[PAST] : NULL;
    if (!past || past->op != &mgx_op_param || past->shape.rank != 4 || past->shape.unranked ||
        past->owner != mgx_program_main(past->owner->program) || c->count == MOST_CACHES)
        return false;
    c->v[c->count++] = mgx_parameter_index(past);
    return true;
}

// Does everything that reads `ins` take it for the total of a cache? The caches are noted.
static bool are_totals(const struct mgx_ins *ins, struct caches *c, int depth)
{
    enum { DEEP = 8 };
    for (const struct mgx_use *use = ins->uses; use; use = use->next) {
        const struct mgx_ins *user = use->user;
        const bool hands_on = user->op == &mgx_op_convert || user->op == &mgx_op_identity ||
                              user->op == &mgx_op_squeeze || user->op == &mgx_op_unsqueeze ||
                              user->op == &mgx_op_reshape;
        const bool good =
            user->op == &mgx_op_cache_append
                ? use->slot == TOTAL && add_cache(c, user)
                : hands_on && use->slot == 0 && depth < DEEP && are_totals(user, c, depth + 1);
        if (!good)
            return false;
    }
    return ins->uses;
}

static bool note_caches(struct mgx_value *v, const struct mgx_ins *param, struct mgx_arena *arena)
{
    struct caches *c = MGX_NEW(arena, struct caches);
    if (!c)
        return false;
    if (mgx_shape_elements(&param->shape) == 1 && mgx_type_is_integral(param->shape.type) &&
        are_totals(param, c, 0)) {
        v->caches = c->v;
        v->cache_count = c->count;
    }
    return true;
}

// --- the list ---

bool mgx_values_find(struct mgx_values *out, const struct mgx_program *p, struct mgx_arena *arena)
{
    struct search s = {.failed = false};
    int count;
    struct mgx_ins **params = mgx_module_parameter_list(mgx_program_main(p), arena, &count);
    bool good = search(&s, p) && params;
    *out = (struct mgx_values){.list = MGX_NEW_ARRAY(arena, struct mgx_value, count)};
    good = good && out->list;
    for (int i = 0; i < count && good; i++) {
        if (!mgx_map_find_pointer(&s.chosen, params[i]))
            continue;
        const size_t room = (room_of(&params[i]->shape) + WORD - 1) / WORD * WORD;
        if (out->bytes + room > MOST_BYTES)
            continue;
        struct mgx_value *v = &out->list[out->count++];
        *v = (struct mgx_value){.param = i, .at = out->bytes, .room = room};
        out->bytes += room;
        good = note_caches(v, params[i], arena);
    }
    mgx_map_fini(&s.chosen);
    assert(!good || out->bytes <= MOST_BYTES);
    return good;
}

bool mgx_values_any(const struct mgx_program *p)
{
    struct mgx_arena arena;
    struct mgx_values v;
    mgx_arena_init(&arena);
    const bool any = mgx_values_find(&v, p, &arena) && v.count;
    mgx_arena_fini(&arena);
    return any;
}

// --- values ---

// The least room of its caches, where that is enough.
static void take_room(const struct mgx_value *v, const struct mgx_named_tensor *params, void *at)
{
    const enum mgx_type type = params[v->param].tensor.shape.type;
    int64_t least = INT64_MAX;
    for (int i = 0; i < v->cache_count; i++) {
        const int64_t room = params[v->caches[i]].tensor.shape.lens[ROOM_AXIS];
        least = room < least ? room : least;
    }
    const int64_t total = mgx_load_int(type, at, 0);
    if (v->cache_count && total > 0 && total <= least && least <= INT32_MAX)
        mgx_store_int(type, at, 0, least);
}

bool mgx_values_gather(const struct mgx_values *v, const struct mgx_named_tensor *params,
                       void *bytes)
{
    memset(bytes, 0, v->bytes);
    for (int i = 0; i < v->count; i++) {
        const struct mgx_tensor *t = &params[v->list[i].param].tensor;
        const size_t size = mgx_shape_bytes(&t->shape);
        assert(mgx_shape_is_standard(&t->shape));
        if (size > v->list[i].room)
            return false;
        if (size)
            memcpy((char *)bytes + v->list[i].at, t->data, size);
        if (v->list[i].cache_count)
            take_room(&v->list[i], params, (char *)bytes + v->list[i].at);
    }
    return true;
}

static enum mgx_status set(const struct mgx_value *v, struct mgx_ins *param, const char *bytes,
                           struct mgx_diag *diag)
{
    struct mgx_tensor t;
    const struct mgx_shape shape =
        mgx_shape_make(param->shape.type, param->shape.rank, param->shape.lens);
    const size_t size = mgx_shape_bytes(&shape);
    assert(mgx_shape_is_static(&param->shape) && size <= v->room);
    TRY(mgx_tensor_create(&t, &shape, diag));
    if (size)
        memcpy(t.data, bytes + v->at, size);
    struct mgx_ins *literal = mgx_add_literal(param->owner, &t);
    mgx_tensor_release(&t);
    if (literal)
        mgx_replace_uses(param, literal);
    return mgx_program_status(param->owner->program, diag);
}

enum mgx_status mgx_values_set(const struct mgx_values *v, struct mgx_program *p, const void *bytes,
                               struct mgx_diag *diag)
{
    int count;
    struct mgx_ins **params = mgx_module_parameter_list(mgx_program_main(p), &p->arena, &count);
    if (!params)
        return mgx_fail_memory(diag);
    for (int i = 0; i < v->count; i++)
        TRY(set(&v->list[i], params[v->list[i].param], bytes, diag));
    return MGX_OK;
}
