// SPDX-License-Identifier: MIT
// The rewrite, and the question whether it means the same.
#include "generate/hold.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "generate/heard.h"
#include "generate/state_card.h"
#include "op/op.h"
#include "pass/engine/emit.h"
#include "pass/engine/walk.h"

// --- the rewrite ---

enum { TOKEN_AXIS = 2 }; // of a cache {batch, heads, tokens, size}
enum { ROWS = 5 };       // of a cache without room, with which the question is asked

static const struct mgx_ins *strip(const struct mgx_ins *ins)
{
    while (mgx_is(ins, &mgx_op_identity) ||
           (mgx_is(ins, &mgx_op_convert) && ins->shape.type == ins->in[0]->shape.type))
        ins = ins->in[0];
    return ins;
}

// The concat that makes a result, if it is one of the cache and the new rows; else NULL.
static struct mgx_ins *grown(const struct mgx_module *m, const struct mgx_carried *c)
{
    const struct mgx_ins *result = strip(mgx_module_result(m, c->result)),
                         *past = mgx_find_parameter(m, c->past);
    if (!mgx_is(result, &mgx_op_concat) || result->owner != m || result->in_count != 2 ||
        strip(result->in[0]) != past || result->in[1]->shape.unranked ||
        result->in[1]->shape.rank != 4 || result->in[1]->shape.type != past->shape.type)
        return NULL;
    const int64_t axis = mgx_ins_int(result, "axis");
    return axis == TOKEN_AXIS || axis == TOKEN_AXIS - 4 ? (struct mgx_ins *)(uintptr_t)result
                                                        : NULL;
}

// Something says which rows there are: a mask; or, of one token at a time, what follows from
// lengths.
static bool says_rows(const struct mgx_module *m, const struct mgx_roles *r)
{
    const bool one = mgx_shape_is_static(&mgx_find_parameter(m, r->tokens.name)->shape);
    return r->given_count ? one && !r->mask.name && mgx_heard_fits(r)
                          : !one && r->mask.name && r->mask.rank == 2;
}

static bool suits(const struct mgx_module *m, const struct mgx_roles *r)
{
    if (!says_rows(m, r) || r->branch.name || r->lengths.name || r->has_kind[MGX_CARRIED_ROOM] ||
        !r->has_kind[MGX_CARRIED_GROWING] || mgx_find_parameter(m, MGX_HELD_ENDS))
        return false;
    for (int i = 0; i < r->carried_count; i++)
        if (r->carried[i].kind == MGX_CARRIED_GROWING &&
            (r->carried[i].axis != TOKEN_AXIS || !grown(m, &r->carried[i])))
            return false;
    return mgx_module_return(m) != NULL;
}

static struct mgx_ins *add_ends(struct mgx_module *m, const struct mgx_roles *r)
{
    const struct mgx_dim batch = mgx_shape_dim(&mgx_find_parameter(m, r->tokens.name)->shape, 0);
    const struct mgx_shape shape = batch.min == batch.max ? mgx_shape_make(MGX_INT64, 1, &batch.min)
                                                          : mgx_shape_dynamic(MGX_INT64, 1, &batch);
    return mgx_add_parameter(m, MGX_HELD_ENDS, &shape);
}

static void append_instead(struct mgx_module *m, const struct mgx_carried *c, struct mgx_ins *ends)
{
    struct mgx_ins *concat = grown(m, c), *past = mgx_find_parameter(m, c->past),
                   *where = mgx_module_return(m);
    struct mgx_ins *room = mgx_emit_before(
        where, &mgx_op_dimensions_of,
        MGX_ATTRS(mgx_int("start", TOKEN_AXIS), mgx_int("end", TOKEN_AXIS + 1)), MGX_IN(past));
    struct mgx_ins *append =
        mgx_emit_before(where, &mgx_op_cache_append, MGX_ATTRS(mgx_int("masked", ROWS + 1)),
                        MGX_IN(concat->in[1], ends, room, past));
    if (!append)
        return;
    mgx_copy_origin(append, concat);
    mgx_set_input(where, c->result, append);
}

enum mgx_status mgx_hold_caches(struct mgx_program *p, const struct mgx_roles *roles, bool *done,
                                struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(p);
    assert(!p->executable);
    *done = suits(m, roles);
    if (!*done)
        return MGX_OK;
    struct mgx_ins *ends = add_ends(m, roles);
    for (int i = 0; i < roles->carried_count && ends; i++)
        if (roles->carried[i].kind == MGX_CARRIED_GROWING)
            append_instead(m, &roles->carried[i], ends);
    return mgx_program_status(p, diag);
}

// Rows in steps that are worth a plan: its kernels depend on the room here.
void mgx_hold_roles(struct mgx_roles *roles, int64_t context)
{
    enum { FIRST = 1024 };
    roles->held = true;
    while (roles->first_room < FIRST && (!context || roles->first_room < context))
        roles->first_room *= 2;
}

// --- the question ---

enum { MOST_BYTES = 1 << 30 }; // of caches

static size_t bytes_of(const struct mgx_roles *r, int64_t room)
{
    size_t bytes = 0;
    for (int i = 0; i < r->carried_count; i++) {
        const struct mgx_shape shape = mgx_bundle_shape(&r->carried[i], 1, room);
        bytes += mgx_shape_bytes(&shape);
    }
    return bytes;
}

// The largest number that the model has on its own: no window is wider.
static int64_t largest_number(const struct mgx_module *m)
{
    enum { MOST = 1 << 20 };
    int64_t largest = 0;
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next) {
        const struct mgx_tensor *t = ins->literal;
        if (!t || !mgx_type_is_integral(t->shape.type) || mgx_shape_elements(&t->shape) != 1)
            continue;
        const int64_t value = mgx_load_int(t->shape.type, t->data, 0);
        largest = value <= MOST ? mgx_max_i64(largest, value) : largest;
    }
    return largest;
}

// The room to ask with: the largest that texts will have, or one that no window reaches across; 0
// where its caches would be too large.
static int64_t room_to_ask(const struct mgx_states_source *s)
{
    const int64_t window = largest_number(mgx_program_main(s->program));
    int64_t room = s->roles->first_room;
    while ((room <= 2 * window || room < s->context) && bytes_of(s->roles, 2 * room) <= MOST_BYTES)
        room *= 2;
    return room > 2 * window || (s->context && room >= s->context) ? room : 0;
}

// How far two results may lie apart for their arithmetic alone, of the largest.
static double allowed(enum mgx_type type)
{
    return type == MGX_BF16 ? 0.1 : type == MGX_HALF ? 0.02 : 2e-3;
}

static bool are_alike(const float *x, const float *y, int64_t count, double part)
{
    double most = 0, apart = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i]))
            return false;
        most = fmax(most, fabs((double)x[i]));
        apart = fmax(apart, fabs((double)x[i] - (double)y[i]));
    }
    return apart <= part * most;
}

static enum mgx_status ask(bool *good, struct mgx_states *s, float *scores, int64_t room,
                           struct mgx_diag *diag)
{
    const struct mgx_roles *r = s->source.roles;
    TRY(mgx_card_try(s, ROWS, r->held ? ROWS : ROWS + 1, scores, diag)); // no row is free
    TRY(mgx_card_try(s, ROWS, room, scores + r->words, diag));
    *good = are_alike(scores, scores + r->words, r->words, allowed(r->carried[0].shape.type));
    return MGX_OK;
}

enum mgx_status mgx_hold_check(bool *good, const struct mgx_states_source *source,
                               struct mgx_diag *diag)
{
    const int64_t room = room_to_ask(source);
    struct mgx_states *states = NULL;
    *good = false;
    if (!room)
        return MGX_OK;
    float *scores = calloc((size_t)source->roles->words, 2 * sizeof *scores);
    if (!scores)
        return mgx_fail_memory(diag);
    enum mgx_status status = mgx_states_create(&states, source, diag);
    if (status == MGX_OK)
        status = ask(good, states, scores, room, diag);
    mgx_states_destroy(states);
    free(scores);
    return status;
}
