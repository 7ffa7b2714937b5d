// SPDX-License-Identifier: MIT
// Inputs by name, the stages one after the other, and what is kept of their results.
#include "generate/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "targets/target.h"

struct encoding {
    const struct mgx_encoder *e;
    struct mgx_named_tensor *inputs; // of the first stage, in its order
    int input_count;
    struct mgx_tensor *results[MGX_ENCODER_STAGES];
    struct mgx_tensor ones, token;
    struct mgx_arena arena;
    struct mgx_diag *diag;
};

// --- inputs ---

static enum mgx_status fail_input(const struct encoding *c, const char *name)
{
    struct mgx_str list = {0};
    for (int i = 0; i < c->input_count; i++)
        mgx_str_printf(&list, "%s\"%.80s\"", i ? ", " : "", c->inputs[i].name);
    mgx_fail(c->diag, MGX_INVALID, "the encoder has no input \"%.80s\": it takes %.500s", name,
             mgx_str_text(&list));
    mgx_str_fini(&list);
    return MGX_INVALID;
}

// A mask of ones, as long as the tokens that it masks.
static enum mgx_status make_mask(struct encoding *c, struct mgx_named_tensor *mask)
{
    const struct mgx_shape *type =
        &mgx_find_parameter(mgx_program_main(c->e->stages[0]), mask->name)->shape;
    const struct mgx_tensor *tokens = NULL;
    for (int i = 0; i < c->input_count; i++)
        if (strcmp(c->inputs[i].name, MGX_ENCODER_MASK) != 0 && c->inputs[i].tensor.data && !tokens)
            tokens = &c->inputs[i].tensor;
    if (!tokens || tokens->shape.rank != type->rank || !mgx_type_is_number(type->type))
        return MGX_OK;
    const struct mgx_shape shape = mgx_shape_make(type->type, type->rank, tokens->shape.lens);
    TRY(mgx_tensor_create(&c->ones, &shape, c->diag));
    for (int64_t i = 0; i < mgx_shape_elements(&shape); i++)
        mgx_store_int(shape.type, c->ones.data, i, 1);
    mask->tensor = mgx_tensor_borrow(&shape, c->ones.data);
    return MGX_OK;
}

static enum mgx_status seat_inputs(struct encoding *c, const struct mgx_named_tensor *inputs,
                                   int count)
{
    for (int i = 0; i < count; i++) {
        int at = 0;
        while (at < c->input_count && strcmp(c->inputs[at].name, inputs[i].name) != 0)
            at++;
        if (at == c->input_count)
            return fail_input(c, inputs[i].name);
        c->inputs[at].tensor = inputs[i].tensor;
    }
    for (int i = 0; i < c->input_count; i++)
        if (!c->inputs[i].tensor.data && strcmp(c->inputs[i].name, MGX_ENCODER_MASK) == 0)
            TRY(make_mask(c, &c->inputs[i]));
    for (int i = 0; i < c->input_count; i++)
        if (!c->inputs[i].tensor.data)
            return mgx_fail(c->diag, MGX_INVALID, "the encoder's input \"%.80s\" is not given",
                            c->inputs[i].name);
    return MGX_OK;
}

static enum mgx_status name_inputs(struct encoding *c)
{
    const struct mgx_program *p = c->e->stages[0];
    c->input_count = mgx_module_parameters(mgx_program_main(p), NULL, 0);
    struct mgx_ins **params = MGX_NEW_ARRAY(&c->arena, struct mgx_ins *, c->input_count + 1);
    c->inputs = MGX_NEW_ARRAY(&c->arena, struct mgx_named_tensor, c->input_count + 1);
    if (!params || !c->inputs)
        return mgx_fail_memory(c->diag);
    mgx_module_parameters(mgx_program_main(p), params, c->input_count);
    for (int i = 0; i < c->input_count; i++)
        c->inputs[i].name = mgx_parameter_name(params[i]);
    return MGX_OK;
}

// --- running ---

static const struct mgx_tensor *given(const struct encoding *c, const struct mgx_given *g)
{
    return g->stage == MGX_GIVEN_ANY_TOKEN   ? &c->token
           : g->stage == MGX_GIVEN_BY_CALLER ? &c->inputs[g->at].tensor
                                             : &c->results[g->stage][g->at];
}

static enum mgx_status run_stage(struct encoding *c, int stage,
                                 const struct mgx_named_tensor *inputs, int count)
{
    const struct mgx_program *p = c->e->stages[stage];
    const int results = mgx_module_result_count(mgx_program_main(p));
    c->results[stage] = MGX_NEW_ARRAY(&c->arena, struct mgx_tensor, results + 1);
    if (!c->results[stage])
        return mgx_fail_memory(c->diag);
    struct mgx_run run = {.params = inputs,
                          .param_count = count,
                          .results = c->results[stage],
                          .result_count = results};
    return mgx_program_run(p, &run, c->diag);
}

// The first token, of as many texts as there are.
static enum mgx_status make_token(struct encoding *c)
{
    for (int i = 0; i < c->e->input_count[1]; i++) {
        const struct mgx_given *g = &c->e->inputs[1][i];
        if (g->stage != MGX_GIVEN_ANY_TOKEN)
            continue;
        const struct mgx_shape *type =
            &mgx_find_parameter(mgx_program_main(c->e->stages[1]), g->name)->shape;
        const struct mgx_shape *hidden = &c->results[0][0].shape;
        const int64_t lens[2] = {hidden->rank ? hidden->lens[0] : 1, 1};
        const struct mgx_shape shape = mgx_shape_make(type->type, 2, lens);
        TRY(mgx_tensor_create(&c->token, &shape, c->diag));
        memset(c->token.data, 0, mgx_shape_bytes(&shape));
    }
    return MGX_OK;
}

// A stage behind the encoder.
static enum mgx_status run_behind(struct encoding *c, int stage)
{
    const int count = c->e->input_count[stage];
    struct mgx_named_tensor *list = MGX_NEW_ARRAY(&c->arena, struct mgx_named_tensor, count + 1);
    if (!list)
        return mgx_fail_memory(c->diag);
    for (int i = 0; i < count; i++) {
        const struct mgx_given *g = &c->e->inputs[stage][i];
        list[i] = (struct mgx_named_tensor){g->name, *given(c, g)};
    }
    return run_stage(c, stage, list, count);
}

static enum mgx_status check_one(const struct encoding *c)
{
    const struct mgx_shape *s = &c->results[0][0].shape;
    if (s->rank == 0 || s->lens[0] == 1)
        return MGX_OK;
    return mgx_fail(c->diag, MGX_INVALID,
                    "a text is about one thing, and the encoder's result is of %lld of them",
                    (long long)s->lens[0]);
}

// Does it lie in memory of the caller's, or of an input that goes with the run? A result may be a
// view of an input.
static bool is_lent(const struct encoding *c, const struct mgx_tensor *t)
{
    bool lent = !t->storage;
    for (int i = 0; i < c->input_count; i++)
        lent |= t->storage == c->inputs[i].tensor.storage;
    return lent;
}

// What lies in the caller's memory is copied: he may write there afterwards, or give it back.
static enum mgx_status take_values(struct encoding *c, struct mgx_source **out)
{
    const struct mgx_encoder *e = c->e;
    struct mgx_source *s = calloc(1, sizeof *s + (size_t)e->given_count * sizeof s->values[0]);
    if (!s)
        return mgx_fail_memory(c->diag);
    *s = (struct mgx_source){.holders = 1, .count = e->given_count};
    *out = s;
    for (int i = 0; i < s->count; i++) {
        const struct mgx_tensor *t = given(c, &e->given[i]);
        if (is_lent(c, t))
            TRY(mgx_tensor_clone(&s->values[i], t, c->diag));
        else
            s->values[i] = mgx_tensor_share(t);
    }
    return MGX_OK;
}

static void drop_results(struct encoding *c)
{
    for (int i = 0; i < MGX_ENCODER_STAGES; i++) {
        if (!c->results[i])
            continue;
        const int count = mgx_module_result_count(mgx_program_main(c->e->stages[i]));
        for (int k = 0; k < count; k++)
            mgx_tensor_release(&c->results[i][k]);
    }
    mgx_tensor_release(&c->ones);
    mgx_tensor_release(&c->token);
}

static enum mgx_status encode(struct encoding *c, const struct mgx_named_tensor *inputs, int count,
                              struct mgx_source **out)
{
    TRY(name_inputs(c));
    TRY(seat_inputs(c, inputs, count));
    TRY(run_stage(c, 0, c->inputs, c->input_count));
    TRY(check_one(c));
    TRY(make_token(c));
    for (int i = 1; i < MGX_ENCODER_STAGES; i++)
        if (c->e->stages[i])
            TRY(run_behind(c, i));
    return take_values(c, out);
}

enum mgx_status mgx_encoder_run(struct mgx_source **out, const struct mgx_encoder *encoder,
                                const struct mgx_named_tensor *inputs, int count,
                                struct mgx_diag *diag)
{
    struct encoding c = {.e = encoder, .diag = diag};
    struct mgx_source *source = NULL;
    mgx_arena_init(&c.arena);
    const enum mgx_status status = encode(&c, inputs, count, &source);
    drop_results(&c);
    mgx_arena_fini(&c.arena);
    if (status == MGX_OK)
        *out = source;
    else
        mgx_source_release(source);
    return status;
}

struct mgx_source *mgx_source_hold(struct mgx_source *source)
{
    if (source)
        source->holders++;
    return source;
}

void mgx_source_leave(struct mgx_source *source)
{
    for (int i = 0; i < source->count && source->held; i++)
        mgx_tensor_release(&source->held[i]);
    free(source->held);
    source->held = NULL;
}

void mgx_source_release(struct mgx_source *source)
{
    if (!source || --source->holders)
        return;
    mgx_source_leave(source);
    for (int i = 0; i < source->count; i++)
        mgx_tensor_release(&source->values[i]);
    free(source);
}
