// SPDX-License-Identifier: MIT
// The operator, the list of tokens that a text has, and the knobs.
#include "generate/choice.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "op/op.h"

// --- the operator ---

static struct mgx_ins *add_param(struct mgx_module *m, const char *name, enum mgx_type type,
                                 struct mgx_dim rows, struct mgx_dim columns)
{
    const struct mgx_dim dims[2] = {rows, columns};
    const struct mgx_shape shape = mgx_shape_dynamic(type, 2, dims);
    return mgx_add_parameter(m, name, &shape);
}

static void append_result(struct mgx_module *m, struct mgx_ins *result)
{
    const int count = mgx_module_result_count(m);
    struct mgx_ins **all = MGX_NEW_ARRAY(&m->program->arena, struct mgx_ins *, count + 1);
    if (!all || !result)
        return;
    for (int i = 0; i < count; i++)
        all[i] = mgx_module_result(m, i);
    all[count] = result;
    mgx_add_return(m, all, count + 1);
}

enum mgx_status mgx_choice_add(struct mgx_program *p, struct mgx_roles *roles,
                               struct mgx_diag *diag)
{
    struct mgx_module *m = mgx_program_main(p);
    struct mgx_ins *scores = mgx_module_result(m, roles->logits);
    const struct mgx_dim words = {.min = roles->words, .max = roles->words},
                         knobs = {.min = MGX_CHOICE_KNOBS, .max = MGX_CHOICE_KNOBS},
                         any = {.min = 1, .max = MGX_DIM_ANY},
                         rows = mgx_shape_dim(&mgx_find_parameter(m, roles->tokens.name)->shape, 0);
    assert(!p->executable && !roles->chooses);
    struct mgx_ins *const in[4] = {scores,
                                   add_param(m, MGX_CHOICE_KNOBS_NAME, MGX_DOUBLE, rows, knobs),
                                   add_param(m, MGX_CHOICE_SEEN_NAME, MGX_INT32, rows, any),
                                   add_param(m, MGX_CHOICE_BIAS_NAME, MGX_FLOAT, rows, words)};
    append_result(m, mgx_emit_before(mgx_module_return(m), &mgx_op_choose_token, NULL,
                                     MGX_IN(in[0], in[1], in[2], in[3])));
    roles->chooses = true;
    roles->result_count++;
    return mgx_program_status(p, diag);
}

// --- tokens that a text has ---

void mgx_seen_fini(struct mgx_seen *seen)
{
    free(seen->list);
    free(seen->bits);
    *seen = (struct mgx_seen){0};
}

static bool add(struct mgx_seen *seen, int64_t token)
{
    if (seen->bits[token / 64] >> (token % 64) & 1)
        return true;
    if (seen->count == seen->room) {
        const int64_t room = mgx_max_i64(64, 2 * seen->room);
        int32_t *more = realloc(seen->list, (size_t)room * sizeof *more);
        if (!more)
            return false;
        seen->list = more;
        seen->room = room;
    }
    seen->bits[token / 64] |= UINT64_C(1) << (token % 64);
    seen->list[seen->count++] = (int32_t)token;
    return true;
}

enum mgx_status mgx_seen_follow(struct mgx_seen *seen, const int64_t *tokens, int64_t length,
                                int64_t words, struct mgx_diag *diag)
{
    if (length < seen->upto)
        mgx_seen_fini(seen);
    if (!seen->bits)
        seen->bits = calloc((size_t)(words + 63) / 64, sizeof *seen->bits);
    if (!seen->bits)
        return mgx_fail_memory(diag);
    for (; seen->upto < length; seen->upto++) {
        const int64_t token = tokens[seen->upto];
        if (token >= 0 && token < words && !add(seen, token))
            return mgx_fail_memory(diag);
    }
    return MGX_OK;
}

// --- knobs ---

void mgx_choice_knobs(const struct mgx_choice *c, double out[MGX_CHOICE_KNOBS])
{
    const struct mgx_sampling plain = mgx_sampling_plain(), *s = c ? c->sampling : &plain;
    out[MGX_CHOICE_TEMPERATURE] = s->temperature;
    out[MGX_CHOICE_TOP_K] = (double)s->top_k;
    out[MGX_CHOICE_TOP_P] = s->top_p;
    out[MGX_CHOICE_MIN_P] = s->min_p;
    out[MGX_CHOICE_REPETITION] = s->repetition;
    out[MGX_CHOICE_DRAW] = c ? c->u : 0;
    out[MGX_CHOICE_SEEN] = c && c->seen ? (double)c->seen->count : 0;
    out[MGX_CHOICE_BIASED] = c && c->bias;
}
