// SPDX-License-Identifier: MIT
// Roles by name, kinds of states by what reads them and by which lengths are open.
#include "generate/roles.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"

enum { PAST = 3 }; // of cache_append
enum { FIRST_ROOM = 128 };

struct finder {
    const struct mgx_program *p;
    const char **results; // names of all results
    const struct mgx_module *main;
    const struct mgx_role_names *names;
    struct mgx_ins **params;
    bool *taken; // by params
    int param_count;
    struct mgx_roles *out;
    struct mgx_arena *arena;
    struct mgx_diag *diag;
};

// --- finding by name ---

static int param_of(const struct finder *f, const char *name)
{
    for (int i = 0; i < f->param_count; i++)
        if (strcmp(mgx_parameter_name(f->params[i]), name) == 0)
            return i;
    return -1;
}

static int result_of(const struct finder *f, const char *name)
{
    for (int i = 0; i < f->out->result_count; i++)
        if (strcmp(f->results[i], name) == 0)
            return i;
    return -1;
}

// The parameter that the caller named, or the first that has one of the usual names; -1: none.
static enum mgx_status find_param(const struct finder *f, const char *given,
                                  const char *const *usual, const char *role, int *out)
{
    *out = given ? param_of(f, given) : -1;
    if (given && *out < 0)
        return mgx_fail(f->diag, MGX_INVALID, "the model has no input \"%.80s\", named as its %s",
                        given, role);
    for (; !given && *usual && *out < 0; usual++)
        *out = param_of(f, *usual);
    return MGX_OK;
}

static enum mgx_status read_role(struct finder *f, const char *given, const char *const *usual,
                                 const char *what, int most_rank, struct mgx_role *role)
{
    int at;
    TRY(find_param(f, given, usual, what, &at));
    if (at < 0)
        return MGX_OK;
    const struct mgx_shape *s = &f->params[at]->shape;
    if (!mgx_type_is_number(s->type) || s->unranked || s->rank > most_rank)
        return mgx_fail(f->diag, MGX_UNSUPPORTED,
                        "input \"%.80s\" is of %s and rank %d: its %s should be numbers of rank "
                        "%d or less",
                        mgx_parameter_name(f->params[at]), mgx_type_name(s->type), s->rank, what,
                        most_rank);
    f->taken[at] = true;
    role->name = mgx_arena_strdup(f->arena, mgx_parameter_name(f->params[at]));
    role->type = s->type;
    role->rank = s->rank;
    return role->name ? MGX_OK : mgx_fail_memory(f->diag);
}

static enum mgx_status read_inputs(struct finder *f)
{
    static const char *const tokens[] = {
        "input_ids", "decoder_input_ids", "ids", "id", "tokens", "input", NULL};
    static const char *const masks[] = {"attention_mask", "mask", NULL};
    static const char *const positions[] = {"position_ids", "positions", NULL};
    static const char *const lengths[] = {"seqlens_k", "lengths", NULL};
    static const char *const totals[] = {"total_sequence_length", "total_seq_len", "total", NULL};
    static const char *const branches[] = {"use_cache_branch", NULL};
    const struct mgx_role_names *n = f->names;
    struct mgx_roles *r = f->out;
    TRY(read_role(f, n->tokens, tokens, "tokens", 2, &r->tokens));
    TRY(read_role(f, n->mask, masks, "mask", 2, &r->mask));
    TRY(read_role(f, n->positions, positions, "positions", 2, &r->positions));
    TRY(read_role(f, n->lengths, lengths, "lengths", 2, &r->lengths));
    TRY(read_role(f, n->total, totals, "total", 1, &r->total));
    TRY(read_role(f, NULL, branches, "choice of a branch", 1, &r->branch));
    if (!r->tokens.name)
        return mgx_fail(f->diag, MGX_INVALID,
                        "no input of the model is known to take tokens: it should be called "
                        "\"input_ids\", or be named");
    if (r->tokens.rank != 2)
        return mgx_fail(f->diag, MGX_UNSUPPORTED, "tokens \"%s\" are of rank %d, not 2",
                        r->tokens.name, r->tokens.rank);
    const struct mgx_dim most = mgx_shape_dim(&f->params[param_of(f, r->tokens.name)]->shape, 1);
    r->most = most.max >= MGX_DIM_ANY ? 0 : most.max;
    return MGX_OK;
}

static enum mgx_status read_logits(struct finder *f)
{
    const char *given = f->names->logits;
    int at = result_of(f, given ? given : "logits");
    if (at < 0 && given)
        return mgx_fail(f->diag, MGX_INVALID, "the model has no result \"%.80s\"", given);
    at = at < 0 ? 0 : at;
    if (at >= f->out->result_count)
        return mgx_fail(f->diag, MGX_INVALID, "the model has no results");
    const struct mgx_shape *s = &mgx_module_result(f->main, at)->shape;
    if (!s->unranked && (s->rank < 2 || s->rank > 3 || !mgx_type_is_float(s->type)))
        return mgx_fail(f->diag, MGX_INVALID,
                        "result %d is of %s and rank %d: scores should be floats of rank 2 or 3",
                        at, mgx_type_name(s->type), s->rank);
    f->out->logits = at;
    f->out->logits_rank = s->unranked ? 0 : s->rank;
    const struct mgx_dim words =
        s->unranked ? (struct mgx_dim){.max = 1} : mgx_shape_dim(s, s->rank - 1);
    f->out->words = words.min == words.max ? words.max : 0;
    return MGX_OK;
}

// --- states ---

bool mgx_is_of_template(const char *name, const char *pattern, int *layer)
{
    const char *mark = strstr(pattern, "%d");
    const size_t before = mark ? (size_t)(mark - pattern) : strlen(pattern);
    *layer = -1;
    if (!mark)
        return strcmp(name, pattern) == 0;
    if (strncmp(name, pattern, before) != 0)
        return false;
    int number = 0, digits = 0;
    for (name += before; *name >= '0' && *name <= '9' && digits < 6; name++, digits++)
        number = 10 * number + (*name - '0');
    *layer = number;
    return digits > 0 && strcmp(name, mark + 2) == 0;
}

// The result that a template names for a layer.
static int result_of_template(const struct finder *f, const char *pattern, int layer)
{
    int found;
    for (int i = 0; i < f->out->result_count; i++)
        if (mgx_is_of_template(f->results[i], pattern, &found) && found == layer)
            return i;
    return -1;
}

static int given_result(const struct finder *f, const char *name)
{
    int layer;
    for (int i = 0; i < f->names->state_count; i++)
        if (mgx_is_of_template(name, f->names->states[i].past, &layer))
            return result_of_template(f, f->names->states[i].present, layer);
    return -1;
}

// The result called as `name` with `from`, which it begins with, exchanged for `to`.
static int renamed_result(const struct finder *f, const char *name, const char *from,
                          const char *to)
{
    const size_t begin = strlen(from);
    if (strncmp(name, from, begin) != 0)
        return -1;
    for (int i = 0; i < f->out->result_count; i++) {
        const char *other = f->results[i];
        const size_t size = strlen(to);
        if (strncmp(other, to, size) == 0 && strcmp(other + size, name + begin) == 0)
            return i;
    }
    return -1;
}

static int state_result(const struct finder *f, const char *name)
{
    static const char *const renamed[][2] = {{"past_key_values", "present"},
                                             {"past_key_values", "present_key_values"},
                                             {"past", "present"},
                                             {"past_states", "present"},
                                             {"past_", ""},
                                             {"past", "new"},
                                             {"", "present_"},
                                             {"", "new_"},
                                             {"", "next_"}};
    int at = given_result(f, name);
    for (int i = 0; i < MGX_COUNT(renamed) && at < 0; i++)
        at = renamed_result(f, name, renamed[i][0], renamed[i][1]);
    return at == f->out->logits ? -1 : at;
}

static bool has_room(const struct mgx_ins *param)
{
    for (const struct mgx_use *use = param->uses; use; use = use->next)
        if (use->user->op == &mgx_op_cache_append && use->slot == PAST)
            return true;
    return false;
}

// The axis of tokens: behind the first the one that is open; -1 where there is none, -2 for
// several.
static int open_axis(const struct mgx_shape *s)
{
    int axis = -1;
    for (int i = 1; i < s->rank; i++)
        if (!mgx_shape_is_static(s) && s->dims[i].min != s->dims[i].max)
            axis = axis == -1 ? i : -2;
    return axis;
}

static enum mgx_status refuse_state(const struct finder *f, const char *name,
                                    const struct mgx_shape *past, const struct mgx_shape *present)
{
    struct mgx_str a = {0}, b = {0};
    mgx_shape_print(&a, past);
    mgx_shape_print(&b, present);
    mgx_fail(f->diag, MGX_INVALID,
             "state \"%.80s\" is %.200s, but what a run gives for it is %.200s: the model should "
             "be read with its sizes left open",
             name, mgx_str_text(&a), mgx_str_text(&b));
    mgx_str_fini(&a);
    mgx_str_fini(&b);
    return MGX_INVALID;
}

static enum mgx_status read_kind(const struct finder *f, const struct mgx_ins *param,
                                 const struct mgx_ins *result, struct mgx_carried *c)
{
    const struct mgx_shape *s = &param->shape;
    if (s->unranked || s->rank < 1 || !mgx_type_is_number(s->type))
        return mgx_fail(f->diag, MGX_UNSUPPORTED, "state \"%.80s\" is of %s and rank %d", c->past,
                        mgx_type_name(s->type), s->rank);
    c->axis = open_axis(s);
    if (c->axis == -2)
        return mgx_fail(f->diag, MGX_UNSUPPORTED, "state \"%.80s\" has several open lengths",
                        c->past);
    c->kind = c->axis < 0       ? MGX_CARRIED_FIXED
              : has_room(param) ? MGX_CARRIED_ROOM
                                : MGX_CARRIED_GROWING;
    if (c->kind == MGX_CARRIED_FIXED && !mgx_shape_may_match(s, &result->shape))
        return refuse_state(f, c->past, s, &result->shape);
    return MGX_OK;
}

static enum mgx_status read_state(struct finder *f, int at)
{
    struct mgx_roles *r = f->out;
    struct mgx_carried *c = &r->carried[r->carried_count];
    const char *name = mgx_parameter_name(f->params[at]);
    const int result = state_result(f, name);
    if (result < 0 || result >= r->result_count)
        return mgx_fail(f->diag, MGX_INVALID,
                        "input \"%.80s\" is none that a generator knows: no tokens, mask, "
                        "positions or lengths, and no result is known to go on with it",
                        name);
    c->past = mgx_arena_strdup(f->arena, name);
    c->result = result;
    TRY(read_kind(f, f->params[at], mgx_module_result(f->main, result), c));
    if (!c->past || !mgx_shape_copy(f->arena, &f->params[at]->shape, &c->shape))
        return mgx_fail_memory(f->diag);
    r->has_kind[c->kind] = true;
    r->carried_count++;
    return MGX_OK;
}

static enum mgx_status take_given(struct finder *f)
{
    const struct mgx_role_names *n = f->names;
    const char **list = MGX_NEW_ARRAY(f->arena, const char *, n->given_count + 1);
    struct mgx_shape *shapes = MGX_NEW_ARRAY(f->arena, struct mgx_shape, n->given_count + 1);
    if (!list || !shapes)
        return mgx_fail_memory(f->diag);
    for (int i = 0; i < n->given_count; i++) {
        const int at = param_of(f, n->given[i]);
        if (at < 0)
            return mgx_fail(f->diag, MGX_INVALID, "the model has no input \"%.80s\"", n->given[i]);
        f->taken[at] = true;
        list[i] = mgx_arena_strdup(f->arena, n->given[i]);
        if (!mgx_shape_copy(f->arena, &f->params[at]->shape, &shapes[i]))
            return mgx_fail_memory(f->diag);
    }
    f->out->given = list;
    f->out->given_shapes = shapes;
    f->out->given_count = n->given_count;
    return f->arena->failed ? mgx_fail_memory(f->diag) : MGX_OK;
}

static enum mgx_status read_states(struct finder *f)
{
    f->out->carried = MGX_NEW_ARRAY(f->arena, struct mgx_carried, f->param_count);
    if (!f->out->carried)
        return mgx_fail_memory(f->diag);
    for (int i = 0; i < f->param_count; i++)
        if (!f->taken[i])
            TRY(read_state(f, i));
    if (!f->out->carried_count)
        return mgx_fail(f->diag, MGX_INVALID,
                        "the model has no caches: every token would cost the whole text again");
    return MGX_OK;
}

// --- many texts in one run ---

static bool is_open_first(const struct mgx_shape *s)
{
    return s->rank > 0 && !mgx_shape_is_static(s) && s->dims[0].min != s->dims[0].max;
}

// Caches with room know each text's length by what says lengths; states without tokens need none,
// as long as no mask would have to end in zeros.
static bool takes_many(const struct finder *f)
{
    const struct mgx_roles *r = f->out;
    const bool says_lengths = r->lengths.name || r->mask.name;
    if (r->given_count || r->has_kind[MGX_CARRIED_GROWING] ||
        (r->has_kind[MGX_CARRIED_FIXED] && r->mask.name) ||
        (r->has_kind[MGX_CARRIED_ROOM] && !says_lengths) ||
        (r->positions.name && r->positions.rank != 2) ||
        !is_open_first(&f->params[param_of(f, r->tokens.name)]->shape))
        return false;
    for (int i = 0; i < r->carried_count; i++)
        if (!is_open_first(&r->carried[i].shape))
            return false;
    return true;
}

size_t mgx_roles_weights(const struct mgx_program *p)
{
    size_t bytes = 0;
    for (int i = 0; i < p->module_count; i++)
        MGX_EACH (ins, p->modules[i])
            if (ins->literal)
                bytes += mgx_shape_bytes(&ins->literal->shape);
    return bytes;
}

// As the model calls them; those without names as MIGraphX calls parameters for them.
static enum mgx_status name_results(struct finder *f)
{
    const struct mgx_strings *own = &f->p->output_names;
    f->results = MGX_NEW_ARRAY(f->arena, const char *, f->out->result_count + 1);
    for (int i = 0; f->results && i < f->out->result_count; i++)
        f->results[i] =
            i < own->count ? own->v[i] : mgx_arena_printf(f->arena, "main:#output_%d", i);
    return f->arena->failed ? mgx_fail_memory(f->diag) : MGX_OK;
}

enum mgx_status mgx_roles_find(struct mgx_roles *out, const struct mgx_program *p,
                               const struct mgx_role_names *names, struct mgx_arena *arena,
                               struct mgx_diag *diag)
{
    static const struct mgx_role_names none = {0};
    assert(!p->executable);
    *out = (struct mgx_roles){.weights = mgx_roles_weights(p), .first_room = FIRST_ROOM};
    struct finder f = {.p = p,
                       .main = mgx_program_main(p),
                       .names = names ? names : &none,
                       .out = out,
                       .arena = arena,
                       .diag = diag};
    f.param_count = mgx_module_parameters(f.main, NULL, 0);
    f.params = MGX_NEW_ARRAY(arena, struct mgx_ins *, f.param_count + 1);
    f.taken = MGX_NEW_ARRAY(arena, bool, f.param_count + 1);
    if (!f.params || !f.taken)
        return mgx_fail_memory(diag);
    mgx_module_parameters(f.main, f.params, f.param_count);
    out->result_count = mgx_module_result_count(f.main);
    TRY(name_results(&f));
    TRY(take_given(&f));
    TRY(read_inputs(&f));
    TRY(read_logits(&f));
    TRY(read_states(&f));
    out->takes_many = takes_many(&f);
    return MGX_OK;
}
