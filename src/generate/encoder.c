// SPDX-License-Identifier: MIT
// Branches that are taken, the part that makes keys and values, names that belong together.
#include "generate/encoder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "generate/beforehand.h"
#include "op/op.h"
#include "pass/pass.h"

#define BRANCH "use_cache_branch"
#define TOKENS "input_ids"
#define HIDDEN "encoder_hidden_states"

struct linker {
    const struct mgx_encoder_parts *parts;
    struct mgx_encoder *out;
    struct mgx_diag *diag;
};

// --- programs ---

static int result_called(const struct mgx_program *p, const char *name)
{
    for (int i = 0; i < p->output_names.count; i++)
        if (strcmp(p->output_names.v[i], name) == 0)
            return i;
    return -1;
}

static int parameter_called(const struct mgx_program *p, const char *name)
{
    const struct mgx_ins *param = mgx_find_parameter(mgx_program_main(p), name);
    return param ? mgx_parameter_index(param) : -1;
}

// The branch of a merged decoder: of later tokens, or of the first.
static enum mgx_status take_branch(struct mgx_program *p, bool later, struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *branch = mgx_find_parameter(m, BRANCH);
    struct mgx_tensor t;
    if (!mgx_shape_is_static(&branch->shape) || mgx_shape_elements(&branch->shape) != 1)
        return mgx_fail(diag, MGX_UNSUPPORTED, "input \"" BRANCH "\" should be one truth");
    TRY(mgx_tensor_create(&t, &branch->shape, diag));
    mgx_store_int(branch->shape.type, t.data, 0, later);
    struct mgx_ins *literal = mgx_add_literal(m, &t);
    mgx_tensor_release(&t);
    if (literal)
        mgx_replace_uses(branch, literal);
    return mgx_tidy(p, diag);
}

// --- the crossing ---

// The result of first tokens' decoder that an input of later ones' goes on from:
// past_key_values.0.encoder.key, present.0.encoder.key.
static int crossing_of(const struct mgx_program *first, const char *input, struct mgx_arena *arena)
{
    static const char past[] = "past_key_values", present[] = "present";
    if (strncmp(input, past, strlen(past)) != 0 || !strstr(input, ".encoder."))
        return -1;
    const char *name = mgx_arena_printf(arena, "%s%s", present, input + strlen(past));
    return name ? result_called(first, name) : -1;
}

static int inputs_of(const struct mgx_program *p, struct mgx_ins **out, int capacity)
{
    return mgx_module_parameters(mgx_program_main(p), out, capacity);
}

// Of first tokens' decoder stays what makes keys and values; they become its results, in the order
// of the inputs that take them.
static enum mgx_status keep_crossing(struct linker *l)
{
    struct mgx_program *first = l->out->stages[1];
    struct mgx_module *m = mgx_program_main(first);
    const int count = inputs_of(l->parts->decoder, NULL, 0);
    struct mgx_arena *arena = &l->out->arena;
    struct mgx_ins **inputs = MGX_NEW_ARRAY(arena, struct mgx_ins *, count + 1),
                   **results = MGX_NEW_ARRAY(arena, struct mgx_ins *, count + 1);
    int kept = 0;
    if (!inputs || !results)
        return mgx_fail_memory(l->diag);
    inputs_of(l->parts->decoder, inputs, count);
    for (int i = 0; i < count; i++) {
        const int at = crossing_of(first, mgx_parameter_name(inputs[i]), arena);
        if (at >= 0)
            results[kept++] = mgx_module_result(m, at);
    }
    if (!kept)
        return mgx_fail(l->diag, MGX_INVALID,
                        "the decoder of first tokens gives no keys and values of the encoder");
    first->output_names.count = 0;
    mgx_add_return(m, results, kept);
    return mgx_tidy(first, l->diag);
}

// A merged decoder parts in two; the one that stays takes one token at a time, since a graph that
// was traced with one has no mask for several.
static enum mgx_status part_decoder(struct linker *l)
{
    struct mgx_program *decoder = l->parts->decoder;
    const bool merged = mgx_find_parameter(mgx_program_main(decoder), BRANCH) != NULL;
    if (merged && !l->out->stages[1]) {
        TRY(mgx_program_clone(&l->out->stages[1], decoder, l->diag));
        TRY(take_branch(l->out->stages[1], false, l->diag));
        TRY(take_branch(decoder, true, l->diag));
    }
    l->out->by_one = l->out->stages[1] != NULL;
    if (l->out->by_one)
        TRY(keep_crossing(l));
    mgx_drop_unread(mgx_program_main(decoder));
    return MGX_OK;
}

// --- names ---

static bool takes_named(const struct linker *l, const char *input, struct mgx_given *out)
{
    int layer, other;
    for (int i = 0; i < l->parts->name_count; i++) {
        const struct mgx_strings *results = &l->out->stages[0]->output_names;
        if (!mgx_is_of_template(input, l->parts->names[i].past, &layer))
            continue;
        for (int k = 0; k < results->count; k++)
            if (mgx_is_of_template(results->v[k], l->parts->names[i].present, &other) &&
                other == layer) {
                *out = (struct mgx_given){.stage = 0, .at = k};
                return true;
            }
    }
    return false;
}

// Where does an input come from, as far as the encoder itself gives it?
static bool takes_from_encoder(const struct linker *l, const char *input, struct mgx_given *out)
{
    const struct mgx_program *encoder = l->out->stages[0];
    const int same = result_called(encoder, input);
    *out = (struct mgx_given){.stage = 0, .at = same};
    if (same >= 0 || takes_named(l, input, out))
        return true;
    if (strcmp(input, HIDDEN) == 0) {
        out->at = 0;
        return true;
    }
    *out = (struct mgx_given){.stage = MGX_GIVEN_BY_CALLER,
                              .at = parameter_called(encoder, MGX_ENCODER_MASK)};
    return strcmp(input, "encoder_" MGX_ENCODER_MASK) == 0 && out->at >= 0;
}

// Those inputs of a program that the encoder gives; `crossing`: keys and values come one by one.
static enum mgx_status link_inputs(struct linker *l, const struct mgx_program *p, bool crossing,
                                   struct mgx_given **list, int *linked)
{
    struct mgx_arena *arena = &l->out->arena;
    const int count = inputs_of(p, NULL, 0);
    struct mgx_ins **inputs = MGX_NEW_ARRAY(arena, struct mgx_ins *, count + 1);
    int crossed = 0;
    *list = MGX_NEW_ARRAY(arena, struct mgx_given, count + 1);
    if (!inputs || !*list)
        return mgx_fail_memory(l->diag);
    inputs_of(p, inputs, count);
    for (int i = 0; i < count; i++) {
        const char *name = mgx_arena_strdup(arena, mgx_parameter_name(inputs[i]));
        struct mgx_given *g = &(*list)[*linked];
        if (!name)
            return mgx_fail_memory(l->diag);
        if (takes_from_encoder(l, name, g))
            ++*linked;
        else if (crossing && strstr(name, ".encoder.")) {
            *g = (struct mgx_given){.stage = 1, .at = crossed++};
            ++*linked;
        } else if (p == l->out->stages[1] && strcmp(name, TOKENS) == 0) {
            *g = (struct mgx_given){.stage = MGX_GIVEN_ANY_TOKEN};
            ++*linked;
        }
        g->name = name;
    }
    return MGX_OK;
}

// The encoder gives all that the crossing takes.
static enum mgx_status check_crossing(const struct linker *l)
{
    struct mgx_encoder *e = l->out;
    const int count = inputs_of(e->stages[1], NULL, 0);
    struct mgx_ins **inputs = MGX_NEW_ARRAY(&e->arena, struct mgx_ins *, count + 1);
    if (!inputs)
        return mgx_fail_memory(l->diag);
    inputs_of(e->stages[1], inputs, count);
    for (int i = 0; i < count; i++)
        if (i >= e->input_count[1] ||
            strcmp(e->inputs[1][i].name, mgx_parameter_name(inputs[i])) != 0)
            return mgx_fail(l->diag, MGX_UNSUPPORTED,
                            "what the decoder makes of the encoder's results depends on input "
                            "\"%.80s\" too",
                            mgx_parameter_name(inputs[i]));
    return MGX_OK;
}

// --- beforehand ---

static const struct mgx_given *given_called(const struct mgx_encoder *e, const char *name)
{
    for (int i = 0; i < e->given_count; i++)
        if (strcmp(e->given[i].name, name) == 0)
            return &e->given[i];
    return NULL;
}

// The third stage takes given inputs and nothing else.
static enum mgx_status link_beforehand(struct linker *l)
{
    struct mgx_encoder *e = l->out;
    const int count = inputs_of(e->stages[2], NULL, 0);
    struct mgx_ins **inputs = MGX_NEW_ARRAY(&e->arena, struct mgx_ins *, count + 1);
    e->inputs[2] = MGX_NEW_ARRAY(&e->arena, struct mgx_given, count + 1);
    if (!inputs || !e->inputs[2])
        return mgx_fail_memory(l->diag);
    inputs_of(e->stages[2], inputs, count);
    for (int i = 0; i < count; i++) {
        const struct mgx_given *g = given_called(e, mgx_parameter_name(inputs[i]));
        assert(g);
        e->inputs[2][e->input_count[2]++] = *g;
    }
    return MGX_OK;
}

// Those given inputs that the decoder still reads, and the told ones.
static enum mgx_status link_told(struct linker *l, int told)
{
    struct mgx_encoder *e = l->out;
    const struct mgx_module *m = mgx_program_main(l->parts->decoder);
    struct mgx_given *list = MGX_NEW_ARRAY(&e->arena, struct mgx_given, e->given_count + told);
    int count = 0;
    if (!list)
        return mgx_fail_memory(l->diag);
    for (int i = 0; i < e->given_count; i++)
        if (mgx_find_parameter(m, e->given[i].name))
            list[count++] = e->given[i];
    for (int i = 0; i < told; i++)
        list[count++] =
            (struct mgx_given){mgx_arena_printf(&e->arena, "told:%d", i), .stage = 2, .at = i};
    e->given = list;
    e->given_count = count;
    return e->arena.failed ? mgx_fail_memory(l->diag) : MGX_OK;
}

static enum mgx_status take_beforehand(struct linker *l)
{
    struct mgx_encoder *e = l->out;
    const char **names = MGX_NEW_ARRAY(&e->arena, const char *, e->given_count + 1);
    int told;
    if (!names)
        return mgx_fail_memory(l->diag);
    for (int i = 0; i < e->given_count; i++)
        names[i] = e->given[i].name;
    TRY(mgx_take_beforehand(l->parts->decoder, names, e->given_count, &e->stages[2], &told,
                            l->diag));
    if (!told)
        return MGX_OK;
    TRY(mgx_tidy(e->stages[2], l->diag));
    TRY(mgx_tidy(l->parts->decoder, l->diag));
    TRY(link_beforehand(l));
    return link_told(l, told);
}

static enum mgx_status link_all(struct linker *l)
{
    struct mgx_encoder *e = l->out;
    TRY(part_decoder(l));
    if (e->stages[1]) {
        TRY(link_inputs(l, e->stages[1], false, &e->inputs[1], &e->input_count[1]));
        TRY(check_crossing(l));
    }
    TRY(link_inputs(l, l->parts->decoder, e->stages[1], &e->given, &e->given_count));
    TRY(take_beforehand(l));
    for (int i = 0; i < MGX_ENCODER_STAGES; i++)
        e->weights += e->stages[i] ? mgx_roles_weights(e->stages[i]) : 0;
    return e->given_count ? MGX_OK
                          : mgx_fail(l->diag, MGX_INVALID,
                                     "no input of the decoder is known to take what the encoder "
                                     "gives: it should be called \"" HIDDEN "\"");
}

enum mgx_status mgx_encoder_link(struct mgx_encoder **out, const struct mgx_encoder_parts *parts,
                                 struct mgx_diag *diag)
{
    struct mgx_encoder *e = calloc(1, sizeof *e);
    if (!e) {
        mgx_program_destroy(parts->encoder);
        mgx_program_destroy(parts->first);
        return mgx_fail_memory(diag);
    }
    mgx_arena_init(&e->arena);
    e->stages[0] = parts->encoder;
    e->stages[1] = parts->first;
    const enum mgx_status status = link_all(&(struct linker){parts, e, diag});
    if (status == MGX_OK)
        *out = e;
    else
        mgx_encoder_destroy(e);
    return status;
}

void mgx_encoder_destroy(struct mgx_encoder *encoder)
{
    if (!encoder)
        return;
    for (int i = 0; i < MGX_ENCODER_STAGES; i++)
        mgx_program_destroy(encoder->stages[i]);
    mgx_arena_fini(&encoder->arena);
    free(encoder);
}
