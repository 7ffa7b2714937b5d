// SPDX-License-Identifier: MIT
// Generating text: options, sampling, and generators over src/generate.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "generate/choice.h"
#include "generate/config.h"
#include "generate/encoder.h"
#include "generate/generator.h"
#include "generate/hold.h"
#include "generate/last.h"
#include "generate/lengths.h"
#include "generate/part.h"
#include "generate/plans.h"
#include "generate/team.h"

enum { OPTION_LIST = 64 };

struct migraphx_generator_options {
    struct mgx_arena arena;
    const struct mgx_target *target;
    migraphx_compile_options_t compile; // NULL: the defaults
    size_t context, piece;              // 0: the default
    struct mgx_role_names names;        // texts in the arena
    struct mgx_state_names states[OPTION_LIST];
    int64_t ends[OPTION_LIST];
    int end_count;
    int cards[MGX_EXCHANGE_CARDS]; // by number; none: the one that the compile options say
    int card_count;
};

// One card of those that a model is made for; NULL exchange: it is alone.
struct place {
    int card;
    struct mgx_exchange *exchange;
    const struct migraphx_generator_options *options;
};

struct migraphx_sampling {
    struct mgx_sampling value;
};

// --- options ---

static void generator_options_fini(struct migraphx_generator_options *o)
{
    mgx_arena_fini(&o->arena);
    migraphx_compile_options_destroy(o->compile);
}

static enum mgx_status copy_compile(migraphx_compile_options_t *out,
                                    const_migraphx_compile_options_t in, struct mgx_diag *diag)
{
    migraphx_compile_options_t copy = NULL;
    if (in && (migraphx_compile_options_create(&copy) != migraphx_status_success ||
               migraphx_compile_options_assign_to(copy, in) != migraphx_status_success)) {
        migraphx_compile_options_destroy(copy);
        return mgx_fail_memory(diag);
    }
    *out = copy;
    return MGX_OK;
}

static enum mgx_status generator_options_copy(struct migraphx_generator_options *out,
                                              const struct migraphx_generator_options *in,
                                              struct mgx_diag *diag)
{
    *out = *in;
    out->compile = NULL;
    mgx_arena_init(&out->arena);
    const char **names[] = {&out->names.tokens,  &out->names.mask,  &out->names.positions,
                            &out->names.lengths, &out->names.total, &out->names.logits};
    for (int i = 0; i < MGX_COUNT(names); i++)
        *names[i] = mgx_arena_strdup(&out->arena, *names[i]);
    for (int i = 0; i < in->names.state_count; i++) {
        out->states[i].past = mgx_arena_strdup(&out->arena, in->states[i].past);
        out->states[i].present = mgx_arena_strdup(&out->arena, in->states[i].present);
    }
    out->names.states = NULL; // set where they are used: a handle holds no pointers into itself
    enum mgx_status status = out->arena.failed ? mgx_fail_memory(diag) : MGX_OK;
    if (status == MGX_OK)
        status = copy_compile(&out->compile, in->compile, diag);
    if (status != MGX_OK)
        generator_options_fini(out);
    return status;
}

API_HANDLE(generator_options)

migraphx_status migraphx_generator_options_create(migraphx_generator_options_t *out)
{
    API_NEED(out);
    API_DIAG(diag);
    struct migraphx_generator_options *o = API_NEW(struct migraphx_generator_options);
    if (!o)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    mgx_arena_init(&o->arena);
    o->target = mgx_target_find("cpu");
    *out = o;
    return migraphx_status_success;
}

migraphx_status
migraphx_generator_options_set_target(migraphx_generator_options_t generator_options,
                                      const char *name)
{
    API_NEED(generator_options);
    API_NEED(name);
    const struct mgx_target *target = mgx_target_find(name);
    if (!target)
        return mgx_api_bad("%s: there is no target \"%s\"", __func__, name);
    generator_options->target = target;
    return migraphx_status_success;
}

migraphx_status
migraphx_generator_options_set_compile_options(migraphx_generator_options_t generator_options,
                                               const_migraphx_compile_options_t compile_options)
{
    API_NEED(generator_options);
    API_DIAG(diag);
    migraphx_compile_options_t copy;
    const enum mgx_status status = copy_compile(&copy, compile_options, &diag);
    if (status == MGX_OK) {
        migraphx_compile_options_destroy(generator_options->compile);
        generator_options->compile = copy;
    }
    return mgx_api_leave(status, &diag);
}

migraphx_status
migraphx_generator_options_set_context(migraphx_generator_options_t generator_options, size_t value)
{
    API_NEED(generator_options);
    if (value > INT32_MAX)
        return mgx_api_bad("%s: %zu tokens are too many", __func__, value);
    generator_options->context = value;
    return migraphx_status_success;
}

migraphx_status migraphx_generator_options_set_piece(migraphx_generator_options_t generator_options,
                                                     size_t value)
{
    API_NEED(generator_options);
    if (value > INT32_MAX)
        return mgx_api_bad("%s: %zu tokens are too many", __func__, value);
    generator_options->piece = value;
    return migraphx_status_success;
}

migraphx_status migraphx_generator_options_set_cards(migraphx_generator_options_t generator_options,
                                                     const size_t *cards, size_t size)
{
    API_NEED(generator_options);
    if (size)
        API_NEED(cards);
    if (size > MGX_EXCHANGE_CARDS)
        return mgx_api_bad("%s: %zu cards, where %d go together", __func__, size,
                           MGX_EXCHANGE_CARDS);
    for (size_t i = 0; i < size; i++) {
        if (cards[i] > INT16_MAX)
            return mgx_api_bad("%s: there is no card %zu", __func__, cards[i]);
        for (size_t k = 0; k < i; k++)
            if (cards[k] == cards[i])
                return mgx_api_bad("%s: card %zu is named twice", __func__, cards[i]);
    }
    for (size_t i = 0; i < size; i++)
        generator_options->cards[i] = (int)cards[i];
    generator_options->card_count = (int)size;
    return migraphx_status_success;
}

migraphx_status migraphx_generator_options_set_name(migraphx_generator_options_t generator_options,
                                                    const char *role, const char *name)
{
    API_NEED(generator_options);
    API_NEED(role);
    API_NEED(name);
    API_DIAG(diag);
    struct mgx_role_names *n = &generator_options->names;
    const struct {
        const char *role, **place;
    } roles[] = {{"tokens", &n->tokens},   {"mask", &n->mask},   {"positions", &n->positions},
                 {"lengths", &n->lengths}, {"total", &n->total}, {"logits", &n->logits}};
    for (int i = 0; i < MGX_COUNT(roles); i++)
        if (strcmp(roles[i].role, role) == 0) {
            char *copy = mgx_arena_strdup(&generator_options->arena, name);
            if (!copy)
                return mgx_api_leave(mgx_fail_memory(&diag), &diag);
            *roles[i].place = copy;
            return migraphx_status_success;
        }
    return mgx_api_bad("%s: there is no role \"%s\": they are tokens, mask, positions, lengths, "
                       "total and logits",
                       __func__, role);
}

migraphx_status migraphx_generator_options_add_state(migraphx_generator_options_t generator_options,
                                                     const char *past, const char *present)
{
    API_NEED(generator_options);
    API_NEED(past);
    API_NEED(present);
    API_DIAG(diag);
    struct migraphx_generator_options *o = generator_options;
    if (o->names.state_count == OPTION_LIST)
        return mgx_api_bad("%s: more than %d states; \"%%d\" in a name stands for every layer",
                           __func__, OPTION_LIST);
    struct mgx_state_names *s = &o->states[o->names.state_count];
    s->past = mgx_arena_strdup(&o->arena, past);
    s->present = mgx_arena_strdup(&o->arena, present);
    if (!s->past || !s->present)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    o->names.state_count++;
    return migraphx_status_success;
}

migraphx_status migraphx_generator_options_add_end(migraphx_generator_options_t generator_options,
                                                   int64_t token)
{
    API_NEED(generator_options);
    if (token < 0 || token > INT32_MAX)
        return mgx_api_bad("%s: %lld is no token", __func__, (long long)token);
    if (generator_options->end_count == OPTION_LIST)
        return mgx_api_bad("%s: more than %d tokens", __func__, OPTION_LIST);
    generator_options->ends[generator_options->end_count++] = token;
    return migraphx_status_success;
}

// --- sampling ---

static void sampling_fini(struct migraphx_sampling *sampling)
{
    (void)sampling;
}

static enum mgx_status sampling_copy(struct migraphx_sampling *out,
                                     const struct migraphx_sampling *in, struct mgx_diag *diag)
{
    (void)diag;
    *out = *in;
    return MGX_OK;
}

API_HANDLE(sampling)

static migraphx_status new_sampling(migraphx_sampling_t *out, struct mgx_sampling value)
{
    API_DIAG(diag);
    struct migraphx_sampling *s = API_NEW(struct migraphx_sampling);
    if (!s)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    s->value = value;
    *out = s;
    return migraphx_status_success;
}

migraphx_status migraphx_sampling_create(migraphx_sampling_t *out)
{
    API_NEED(out);
    return new_sampling(out, mgx_sampling_plain());
}

#define REAL(setter, member, good, range)                                                          \
    migraphx_status migraphx_sampling_set_##setter(migraphx_sampling_t sampling, double value)     \
    {                                                                                              \
        API_NEED(sampling);                                                                        \
        if (!(good))                                                                               \
            return mgx_api_bad("%s: %g is not " range, __func__, value);                           \
        sampling->value.member = value;                                                            \
        return migraphx_status_success;                                                            \
    }
REAL(temperature, temperature, value >= 0 && value < INFINITY, "0 or more, and finite")
REAL(top_p, top_p, value >= 0 && value <= 1, "from 0 to 1")
REAL(min_p, min_p, value >= 0 && value <= 1, "from 0 to 1")
REAL(repetition_penalty, repetition, value > 0 && value < INFINITY, "above 0, and finite")

migraphx_status migraphx_sampling_set_top_k(migraphx_sampling_t sampling, size_t value)
{
    API_NEED(sampling);
    sampling->value.top_k = value > INT32_MAX ? 0 : (int64_t)value;
    return migraphx_status_success;
}

migraphx_status migraphx_sampling_set_seed(migraphx_sampling_t sampling, uint64_t value)
{
    API_NEED(sampling);
    sampling->value.seed = value;
    return migraphx_status_success;
}

// --- making generators ---

struct migraphx_generator {
    struct mgx_generator *g;
};

// What the caller says counts more than what a folder says.
static struct mgx_role_names names_of(const struct migraphx_generator_options *o,
                                      const struct mgx_role_names *folder)
{
    struct mgx_role_names n = *folder;
    if (!o)
        return n;
    const char *const own[] = {o->names.tokens,  o->names.mask,  o->names.positions,
                               o->names.lengths, o->names.total, o->names.logits};
    const char **const all[] = {&n.tokens, &n.mask, &n.positions, &n.lengths, &n.total, &n.logits};
    for (int i = 0; i < MGX_COUNT(own); i++)
        *all[i] = own[i] ? own[i] : *all[i];
    if (o->names.state_count) {
        n.states = o->states;
        n.state_count = o->names.state_count;
    }
    return n;
}

// Names of the decoder's inputs that the encoder gives.
static enum mgx_status name_given(struct mgx_generator_model *m, struct mgx_role_names *names,
                                  struct mgx_diag *diag)
{
    const struct mgx_encoder *e = m->encoder;
    const char **list = e ? MGX_NEW_ARRAY(&m->arena, const char *, e->given_count + 1) : NULL;
    if (!e)
        return MGX_OK;
    if (!list)
        return mgx_fail_memory(diag);
    for (int i = 0; i < e->given_count; i++)
        list[i] = e->given[i].name;
    names->given = list;
    names->given_count = e->given_count;
    return MGX_OK;
}

static enum mgx_status read_ends(struct mgx_generator_model *m,
                                 const struct migraphx_generator_options *o,
                                 const struct mgx_generate_config *config, struct mgx_diag *diag)
{
    const int own = o ? o->end_count : 0;
    int64_t *ends = MGX_NEW_ARRAY(&m->arena, int64_t, config->end_count + own + 1);
    if (!ends)
        return mgx_fail_memory(diag);
    for (int i = 0; i < config->end_count; i++)
        ends[m->end_count++] = config->ends[i];
    for (int i = 0; i < own; i++)
        ends[m->end_count++] = o->ends[i];
    m->ends = ends;
    return MGX_OK;
}

// Tokens come from the host and scores go there, whatever the options say of it.
static enum mgx_status compile_model(struct mgx_program *p, const struct place *at,
                                     struct mgx_diag *diag)
{
    const struct migraphx_generator_options *o = at->options;
    const struct mgx_target *target = o ? o->target : mgx_target_find("cpu");
    migraphx_compile_options_t own = NULL;
    TRY(copy_compile(&own, o ? o->compile : NULL, diag));
    if (!own && migraphx_compile_options_create(&own) != migraphx_status_success)
        return mgx_fail_memory(diag);
    (void)migraphx_compile_options_set_offload_copy(own, true);
    if (o && o->card_count)
        (void)migraphx_compile_options_set_device_id(own, o->cards[at->card]);
    own->values.exchange = at->exchange;
    const enum mgx_status status = mgx_api_compile(p, target, own, diag);
    migraphx_compile_options_destroy(own);
    return status;
}

// Might a model see more in its mask than how many tokens there are: which rows nobody has, or
// which tokens its states of fixed lengths leave out?
static bool is_asked(const struct mgx_roles *r)
{
    return r->held || (r->has_kind[MGX_CARRIED_FIXED] && r->mask.name);
}

// Plans of the program, which is rewritten for a card; NULL where there are none, or where it looks
// at more of its held caches than the mask, or makes more of the mask than that.
static enum mgx_status plans_of(struct mgx_generator_model *m, struct mgx_program *p,
                                const struct place *at, struct mgx_plans **plans,
                                struct mgx_diag *diag)
{
    bool good = !is_asked(&m->roles);
    TRY(compile_model(p, at, diag));
    TRY(mgx_plans_create(plans, p, &m->roles, diag));
    const struct mgx_states_source source = {p, &m->roles, *plans, m->context,
                                             m->few_scores ? MGX_GENERATOR_SCORES : 0};
    const enum mgx_status status = *plans && !good ? mgx_hold_check(&good, &source, diag) : MGX_OK;
    if (good)
        return status;
    mgx_plans_destroy(*plans);
    *plans = NULL;
    return status;
}

// A decoder that writes about something takes one token of one text at a time, and is told what
// follows from how long its caches are.
static enum mgx_status tell_lengths(struct mgx_generator_model *m, struct mgx_program *p,
                                    struct mgx_role_names *names, struct mgx_diag *diag)
{
    const int64_t words = m->roles.words;
    const int given = names->given_count;
    TRY(mgx_narrow_to_one(p, m->roles.tokens.name, diag));
    TRY(mgx_roles_find(&m->roles, p, names, &m->arena, diag));
    m->roles.words = words;
    TRY(mgx_lengths_take(&m->lengths, p, &m->roles, diag));
    const int said = m->lengths ? mgx_lengths_count(m->lengths) : 0;
    const char **all = MGX_NEW_ARRAY(&m->arena, const char *, given + said + 1);
    for (int i = 0; all && i < given; i++)
        all[i] = names->given[i];
    for (int i = 0; all && i < said; i++)
        all[given + i] = mgx_arena_printf(&m->arena, "said:%d", i);
    if (m->arena.failed)
        return mgx_fail_memory(diag);
    names->given = all;
    names->given_count = given + said;
    m->roles.said_count = said;
    return MGX_OK;
}

// The last of the given inputs are those that are said.
static void part_given(struct mgx_generator_model *m, int said)
{
    struct mgx_roles *r = &m->roles;
    r->given_count -= said;
    r->said = r->given + r->given_count;
    r->said_count = said;
    r->of_lengths = m->lengths;
}

// Caches that grow get room, and the last result is the next token.
static enum mgx_status rewrite_for_card(struct mgx_generator_model *m, struct mgx_program *p,
                                        struct mgx_role_names names, bool *done,
                                        struct mgx_diag *diag)
{
    const int64_t words = m->roles.words;
    *done = mgx_plans_take_roles(&m->roles);
    if (!*done) {
        if (m->encoder && !m->roles.mask.name)
            TRY(tell_lengths(m, p, &names, diag));
        const int said = m->roles.said_count;
        TRY(mgx_hold_caches(p, &m->roles, done, diag));
        names.lengths = MGX_HELD_ENDS;
        if (!*done)
            return MGX_OK;
        TRY(mgx_roles_find(&m->roles, p, &names, &m->arena, diag));
        m->roles.words = words;
        part_given(m, said);
        mgx_hold_roles(&m->roles, m->context);
    }
    return words <= MGX_CHOICE_WORDS ? mgx_choice_add(p, &m->roles, diag) : MGX_OK;
}

// A program of the card's own takes the model's place, if it can be made. A model that fails so is
// as it was.
static enum mgx_status plan_for_card(struct mgx_generator_model *m, struct mgx_role_names names,
                                     const struct place *at, struct mgx_diag *diag)
{
    const struct migraphx_generator_options *o = at->options;
    const struct mgx_roles before = m->roles;
    struct mgx_program *own = NULL;
    struct mgx_diag why;
    bool done = false;
    mgx_diag_clear(&why);
    if (!o || !o->target || !o->target->memory)
        return MGX_OK;
    enum mgx_status status = mgx_program_clone(&own, m->program, &why);
    if (status == MGX_OK)
        status = rewrite_for_card(m, own, names, &done, &why);
    if (status == MGX_OK && done)
        status = plans_of(m, own, at, &m->plans, &why);
    struct mgx_program *dropped = m->plans ? m->program : own;
    if (m->plans) {
        m->program = own;
        m->roles.weights = before.weights;
    } else {
        m->roles = before;
        mgx_lengths_destroy(m->lengths);
        m->lengths = NULL;
    }
    mgx_program_destroy(dropped);
    return mgx_status_is_final(status) ? mgx_fail(diag, status, "%s", why.text) : MGX_OK;
}

static enum mgx_status take_part(struct mgx_program *p, const struct place *at,
                                 struct mgx_diag *diag)
{
    int sums;
    TRY(mgx_part_take(p, at->card, at->options->card_count, &sums, diag));
    return sums ? MGX_OK
                : mgx_fail(diag, MGX_UNSUPPORTED, "no product of the model is one for %d cards",
                           at->options->card_count);
}

static enum mgx_status fail_cards(struct mgx_diag *diag)
{
    return mgx_fail(diag, MGX_UNSUPPORTED,
                    "several cards share a model that is all caches with room, which stay there: "
                    "this one is none");
}

// The program becomes the model's, also on failure.
static enum mgx_status fill_model(struct mgx_generator_model *m, struct mgx_program *take,
                                  const struct place *at, const struct mgx_generate_config *config,
                                  struct mgx_diag *diag)
{
    const struct migraphx_generator_options *o = at->options;
    struct mgx_role_names names = names_of(o, &config->names);
    m->program = take;
    m->start = config->start;
    TRY(name_given(m, &names, diag));
    if (at->exchange)
        TRY(take_part(m->program, at, diag));
    TRY(mgx_roles_find(&m->roles, m->program, &names, &m->arena, diag));
    if (m->encoder) {
        m->roles.most = m->encoder->by_one ? 1 : m->roles.most;
        m->roles.weights += m->encoder->weights;
    }
    if (at->exchange && m->roles.has_kind[MGX_CARRIED_FIXED])
        return fail_cards(diag);
    m->roles.words = m->roles.words ? m->roles.words : config->words;
    if (!m->roles.words || m->roles.words > INT32_MAX)
        return mgx_fail(diag, MGX_INVALID, "the model has %lld tokens: a number should be known",
                        (long long)m->roles.words);
    m->context = o && o->context ? (int64_t)o->context : config->context;
    m->piece = o && o->piece ? (int64_t)o->piece : m->piece;
    m->sampling = config->sampling;
    TRY(read_ends(m, o, config, diag));
    TRY(mgx_keep_last_scores(m->program, m->roles.logits, MGX_GENERATOR_SCORES, &m->few_scores,
                             diag));
    if (at->exchange) {
        TRY(mgx_part_take_scores(m->program, m->roles.logits, at->card, o->card_count, &(int){0},
                                 diag));
        m->roles.weights = mgx_roles_weights(m->program);
    }
    TRY(plan_for_card(m, names, at, diag));
    if (m->plans)
        return MGX_OK;
    if (at->exchange)
        return fail_cards(diag);
    TRY(compile_model(m->program, at, diag));
    return is_asked(&m->roles) ? MGX_OK : mgx_plans_create(&m->plans, m->program, &m->roles, diag);
}

// --- several cards ---

struct filling {
    struct mgx_generator_model *model;
    struct mgx_program *programs[MGX_EXCHANGE_CARDS];
    const struct migraphx_generator_options *options;
    const struct mgx_generate_config *config;
};

static enum mgx_status fill_card(void *user, int card, struct mgx_diag *diag)
{
    const struct filling *f = user;
    const struct place at = {card, f->model->exchange, f->options};
    const enum mgx_status status =
        fill_model(mgx_generator_model_at(f->model, card), f->programs[card], &at, f->config, diag);
    mgx_where(diag, "card %d", f->options->cards[card]);
    return status;
}

static void stop_others(void *user, int card)
{
    const struct filling *f = user;
    (void)card;
    f->model->exchange->stop(f->model->exchange);
}

// Which device, when the options leave it open, the environment says.
static enum mgx_status connect_cards(struct mgx_generator_model *m,
                                     const struct migraphx_generator_options *o,
                                     struct mgx_diag *diag)
{
    struct mgx_exchange *exchange;
    const char *device = o->compile ? mgx_setting(&o->compile->values.own, "device") : NULL;
    device = device ? device : mgx_api_environment()->gpu_device;
    if (!o->target->exchange)
        return mgx_fail(diag, MGX_UNSUPPORTED, "target \"%s\" has no cards that go together",
                        o->target->name);
    TRY(o->target->exchange(device, o->cards, o->card_count, &exchange, diag));
    return mgx_generator_model_share(m, o->card_count, exchange, diag);
}

static enum mgx_status fill_cards(struct mgx_generator_model *m, struct mgx_program *take,
                                  const struct migraphx_generator_options *o,
                                  const struct mgx_generate_config *config, struct mgx_diag *diag)
{
    struct filling f = {.model = m, .programs = {take}, .options = o, .config = config};
    enum mgx_status status = connect_cards(m, o, diag);
    bool apart;
    for (int i = 1; i < o->card_count && status == MGX_OK; i++)
        status = mgx_program_clone(&f.programs[i], take, diag);
    if (status == MGX_OK)
        return mgx_team_run(m->team, fill_card, stop_others, &f, &apart, diag);
    for (int i = 0; i < o->card_count; i++)
        mgx_program_destroy(f.programs[i]);
    return status;
}

static enum mgx_status new_generator(migraphx_generator_t *out, struct mgx_generator_model *m,
                                     struct mgx_diag *diag)
{
    struct migraphx_generator *handle = API_NEW(struct migraphx_generator);
    if (!handle)
        return mgx_fail_memory(diag);
    const enum mgx_status status = mgx_generator_create(&handle->g, m, diag);
    if (status != MGX_OK)
        free(handle);
    else
        *out = handle;
    return status;
}

static enum mgx_status compile_encoder(struct mgx_encoder *e, const struct place *at,
                                       struct mgx_diag *diag)
{
    for (int i = 0; i < MGX_ENCODER_STAGES; i++)
        if (e->stages[i])
            TRY(compile_model(e->stages[i], at, diag));
    return MGX_OK;
}

// Both are taken, also on failure; `encoder` is linked, or NULL.
static enum mgx_status make_generator(migraphx_generator_t *out, struct mgx_program *take,
                                      struct mgx_encoder *encoder,
                                      const struct migraphx_generator_options *o,
                                      const struct mgx_generate_config *config,
                                      struct mgx_diag *diag)
{
    struct mgx_generator_model *m = mgx_generator_model_create();
    if (!m) {
        mgx_encoder_destroy(encoder);
        mgx_program_destroy(take);
        return mgx_fail_memory(diag);
    }
    const struct place alone = {.options = o};
    const bool shared = o && o->card_count > 1;
    m->encoder = encoder;
    enum mgx_status status =
        !encoder ? MGX_OK
        : shared ? mgx_fail(diag, MGX_UNSUPPORTED, "a model with an encoder is on one card")
                 : compile_encoder(encoder, &alone, diag);
    if (status != MGX_OK)
        mgx_program_destroy(take);
    else
        status = shared ? fill_cards(m, take, o, config, diag)
                        : fill_model(m, take, &alone, config, diag);
    if (status == MGX_OK)
        status = new_generator(out, m, diag);
    mgx_generator_model_release(m);
    return status;
}

migraphx_status migraphx_generator_create(migraphx_generator_t *out,
                                          const_migraphx_program_t program,
                                          const_migraphx_generator_options_t options)
{
    API_NEED(out);
    API_NEED_UNCOMPILED(program);
    API_DIAG(diag);
    const struct mgx_generate_config none = {.sampling = mgx_sampling_plain(), .start = -1};
    struct mgx_program *copy = NULL;
    enum mgx_status status = mgx_api_prove(program->p, &diag);
    if (status == MGX_OK)
        status = mgx_program_clone(&copy, program->p, &diag);
    if (status == MGX_OK)
        status = make_generator(out, copy, NULL, options, &none, &diag);
    return mgx_api_leave(status, &diag);
}

// The encoder of a folder, linked with its decoder; NULL where there is none.
static enum mgx_status load_encoder(struct mgx_encoder **out,
                                    const struct mgx_generate_config *config,
                                    const struct mgx_onnx_options *reading,
                                    struct mgx_program *decoder, struct mgx_diag *diag)
{
    struct mgx_encoder_parts parts = {
        .decoder = decoder, .names = config->crossed, .name_count = config->crossed_count};
    *out = NULL;
    if (!config->encoder)
        return MGX_OK;
    TRY(mgx_onnx_import_file(&parts.encoder, config->encoder, reading, diag));
    if (config->first) {
        const enum mgx_status status =
            mgx_onnx_import_file(&parts.first, config->first, reading, diag);
        if (status != MGX_OK) {
            mgx_program_destroy(parts.encoder);
            return status;
        }
    }
    return mgx_encoder_link(out, &parts, diag);
}

static enum mgx_status load(migraphx_generator_t *out, const char *folder,
                            const struct migraphx_generator_options *o, struct mgx_arena *arena,
                            struct mgx_diag *diag)
{
    const struct mgx_onnx_options reading = {.dynamic_dims = true};
    struct mgx_generate_config config;
    struct mgx_program *p;
    TRY(mgx_generate_config_read(&config, folder, arena, diag));
    TRY(mgx_onnx_import_file(&p, config.model, &reading, diag));
    struct mgx_encoder *encoder;
    enum mgx_status status = load_encoder(&encoder, &config, &reading, p, diag);
    if (status == MGX_OK)
        status = make_generator(out, p, encoder, o, &config, diag);
    else
        mgx_program_destroy(p);
    mgx_where(diag, "%s", folder);
    return status;
}

migraphx_status migraphx_generator_load(migraphx_generator_t *out, const char *folder,
                                        const_migraphx_generator_options_t options)
{
    API_NEED(out);
    API_NEED(folder);
    API_DIAG(diag);
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    const enum mgx_status status = load(out, folder, options, &arena, &diag);
    mgx_arena_fini(&arena);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_generator_share(migraphx_generator_t *out,
                                         const_migraphx_generator_t generator)
{
    API_NEED(out);
    API_NEED(generator);
    API_DIAG(diag);
    return mgx_api_leave(new_generator(out, mgx_generator_model_of(generator->g), &diag), &diag);
}

migraphx_status migraphx_generator_destroy(migraphx_generator_t generator)
{
    if (generator)
        mgx_generator_destroy(generator->g);
    free(generator);
    return migraphx_status_success;
}

// --- what the model says ---

migraphx_status migraphx_generator_vocabulary(size_t *out, const_migraphx_generator_t generator)
{
    API_NEED(out);
    API_NEED(generator);
    *out = (size_t)mgx_generator_model_of(generator->g)->roles.words;
    return migraphx_status_success;
}

migraphx_status migraphx_generator_context(size_t *out, const_migraphx_generator_t generator)
{
    API_NEED(out);
    API_NEED(generator);
    *out = (size_t)mgx_generator_model_of(generator->g)->context;
    return migraphx_status_success;
}

migraphx_status migraphx_generator_is_end(bool *out, const_migraphx_generator_t generator,
                                          int64_t token)
{
    API_NEED(out);
    API_NEED(generator);
    const struct mgx_generator_model *m = mgx_generator_model_of(generator->g);
    *out = false;
    for (int i = 0; i < m->end_count; i++)
        *out |= m->ends[i] == token;
    return migraphx_status_success;
}

migraphx_status migraphx_generator_sampling(migraphx_sampling_t *out,
                                            const_migraphx_generator_t generator)
{
    API_NEED(out);
    API_NEED(generator);
    return new_sampling(out, mgx_generator_model_of(generator->g)->sampling);
}

migraphx_status migraphx_generator_start(int64_t *out, const_migraphx_generator_t generator)
{
    API_NEED(out);
    API_NEED(generator);
    *out = mgx_generator_model_of(generator->g)->start;
    return migraphx_status_success;
}

migraphx_status migraphx_generator_source_shapes(migraphx_program_parameter_shapes_t *out,
                                                 const_migraphx_generator_t generator)
{
    API_NEED(out);
    API_NEED(generator);
    API_DIAG(diag);
    const struct mgx_encoder *e = mgx_generator_model_of(generator->g)->encoder;
    return mgx_api_leave(e ? mgx_api_parameter_shapes(out, mgx_program_main(e->stages[0]), &diag)
                           : mgx_api_named_shapes_new(out, NULL, NULL, 0, &diag),
                         &diag);
}

// --- texts ---

migraphx_status migraphx_generator_set_source(migraphx_generator_t generator, size_t text,
                                              const_migraphx_program_parameters_t inputs)
{
    API_NEED(generator);
    API_NEED(inputs);
    API_DIAG(diag);
    return mgx_api_leave(
        mgx_generator_set_source(generator->g, text, inputs->v, (size_t)inputs->count, &diag),
        &diag);
}

migraphx_status migraphx_generator_add(size_t *text, migraphx_generator_t generator)
{
    API_NEED(text);
    API_NEED(generator);
    API_DIAG(diag);
    return mgx_api_leave(mgx_generator_add(generator->g, text, &diag), &diag);
}

migraphx_status migraphx_generator_fork(size_t *text, migraphx_generator_t generator, size_t from,
                                        size_t size)
{
    API_NEED(text);
    API_NEED(generator);
    API_DIAG(diag);
    return mgx_api_leave(mgx_generator_fork(generator->g, from, size, text, &diag), &diag);
}

migraphx_status migraphx_generator_remove(migraphx_generator_t generator, size_t text)
{
    API_NEED(generator);
    API_DIAG(diag);
    return mgx_api_leave(mgx_generator_remove(generator->g, text, &diag), &diag);
}

migraphx_status migraphx_generator_append(migraphx_generator_t generator, size_t text,
                                          const int64_t *tokens, size_t size)
{
    API_NEED(generator);
    if (size)
        API_NEED(tokens);
    API_DIAG(diag);
    return mgx_api_leave(mgx_generator_append(generator->g, text, tokens, size, &diag), &diag);
}

migraphx_status migraphx_generator_rewind(migraphx_generator_t generator, size_t text, size_t size)
{
    API_NEED(generator);
    API_DIAG(diag);
    return mgx_api_leave(mgx_generator_rewind(generator->g, text, size, &diag), &diag);
}

migraphx_status migraphx_generator_size(size_t *out, migraphx_generator_t generator, size_t text)
{
    API_NEED(out);
    API_NEED(generator);
    API_DIAG(diag);
    return mgx_api_leave(mgx_generator_size(generator->g, text, out, &diag), &diag);
}

migraphx_status migraphx_generator_tokens(int64_t *out, migraphx_generator_t generator, size_t text,
                                          size_t size)
{
    API_NEED(out);
    API_NEED(generator);
    API_DIAG(diag);
    return mgx_api_leave(mgx_generator_tokens(generator->g, text, out, size, &diag), &diag);
}

migraphx_status migraphx_generator_set_sampling(migraphx_generator_t generator, size_t text,
                                                const_migraphx_sampling_t sampling)
{
    API_NEED(generator);
    API_NEED(sampling);
    API_DIAG(diag);
    return mgx_api_leave(mgx_generator_set_sampling(generator->g, text, &sampling->value, &diag),
                         &diag);
}

migraphx_status migraphx_generator_set_bias(migraphx_generator_t generator, size_t text,
                                            const float *values, size_t size)
{
    API_NEED(generator);
    API_DIAG(diag);
    return mgx_api_leave(mgx_generator_set_bias(generator->g, text, values, size, &diag), &diag);
}

migraphx_status migraphx_generator_set_guesses(migraphx_generator_t generator, size_t text,
                                               size_t most)
{
    API_NEED(generator);
    API_DIAG(diag);
    return mgx_api_leave(mgx_generator_set_guesses(generator->g, text, most, &diag), &diag);
}

migraphx_status migraphx_generator_set_draft(migraphx_generator_t generator,
                                             const_migraphx_generator_t draft)
{
    API_NEED(generator);
    API_DIAG(diag);
    struct mgx_generator_model *model = draft ? mgx_generator_model_of(draft->g) : NULL;
    return mgx_api_leave(mgx_generator_set_draft(generator->g, model, &diag), &diag);
}

migraphx_status migraphx_generator_next(int64_t *tokens, migraphx_generator_t generator,
                                        const size_t *texts, size_t size)
{
    API_NEED(tokens);
    API_NEED(generator);
    API_NEED(texts);
    API_DIAG(diag);
    return mgx_api_leave(mgx_generator_next(generator->g, texts, size, tokens, &diag), &diag);
}

migraphx_status migraphx_generator_logits(float *out, migraphx_generator_t generator, size_t text,
                                          size_t size)
{
    API_NEED(out);
    API_NEED(generator);
    API_DIAG(diag);
    return mgx_api_leave(mgx_generator_logits(generator->g, text, out, size, &diag), &diag);
}

migraphx_status migraphx_generator_statistic(double *out, migraphx_generator_t generator,
                                             const char *name)
{
    API_NEED(out);
    API_NEED(generator);
    API_NEED(name);
    struct mgx_generator_statistics s;
    mgx_generator_statistics_of(generator->g, &s);
    const struct {
        const char *name;
        double value;
    } all[] = {{"prompt_tokens", s.prompt_tokens},
               {"prompt_seconds", s.prompt_seconds},
               {"answer_tokens", s.answer_tokens},
               {"answer_seconds", s.answer_seconds},
               {"guessed_tokens", s.guessed_tokens},
               {"right_tokens", s.right_tokens},
               {"runs", s.runs},
               {"weight_bytes", s.weight_bytes},
               {"state_bytes", s.state_bytes}};
    for (int i = 0; i < MGX_COUNT(all); i++)
        if (strcmp(all[i].name, name) == 0) {
            *out = all[i].value;
            return migraphx_status_success;
        }
    return mgx_api_bad("%s: there is no statistic \"%s\"", __func__, name);
}
