// SPDX-License-Identifier: MIT
// choose_token: the next token of every text from the scores behind its last one.
//
//     scores {texts, words} or {texts, tokens, words}: of the last token
//     knobs  {texts, MGX_CHOICE_KNOBS} doubles (rule/choice.h)
//     seen   {texts, n} int32: the tokens that a text has, each once; the first knobs[SEEN] count
//     bias   {texts, words} floats, added to the scores where knobs[BIASED] is not 0
//         ->  {texts} int64
//
// The rule is reference/draw.h's. A token of -1 stands for a choice that cannot be made: a score is
// no number, or every token is forbidden; -2, which a target may give, for one that it leaves to
// whoever has the scores.
#include <assert.h>
#include <stdlib.h>

#include "base/size.h"
#include "op/reference/draw.h"
#include "op/rule/choice.h"
#include "op/rule/rule.h"

enum { SCORES, KNOBS, SEEN, BIAS };

static enum mgx_status require(struct mgx_shape_call *c, int i, enum mgx_type type,
                               const struct mgx_dim *second)
{
    const struct mgx_dim texts = mgx_shape_dim(c->in[SCORES], 0);
    TRY(mgx_require_rank(c, i, 2, 2));
    if (c->in[i]->type != type)
        return mgx_fail(c->diag, MGX_INVALID, "%s: input %d is %s, not %s", c->op->name, i,
                        mgx_type_name(c->in[i]->type), mgx_type_name(type));
    TRY(mgx_require_length(c, i, 0, &(struct mgx_dim){.min = texts.min, .max = texts.max}));
    return second ? mgx_require_length(c, i, 1, &(struct mgx_dim){second->min, second->max})
                  : MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct mgx_dim knobs = {.min = MGX_CHOICE_KNOBS, .max = MGX_CHOICE_KNOBS};
    TRY(mgx_require_rank(c, SCORES, 2, 3));
    TRY(mgx_require_float(c, SCORES));
    const struct mgx_dim words = mgx_shape_dim(c->in[SCORES], c->in[SCORES]->rank - 1);
    TRY(require(c, KNOBS, MGX_DOUBLE, &knobs));
    TRY(require(c, SEEN, MGX_INT32, NULL));
    TRY(require(c, BIAS, MGX_FLOAT, &words));
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[SCORES], 1);
    if (!dims)
        return MGX_NO_MEMORY;
    *out = mgx_shape_from_dims(MGX_INT64, 1, dims);
    return MGX_OK;
}

// Row b of what a text brings, as draw.h wants it.
struct row {
    float *scores, *bias;
    int64_t *seen;
    double knobs[MGX_CHOICE_KNOBS];
};

static void read_row(const struct mgx_compute_call *c, int64_t b, struct row *r)
{
    const struct mgx_tensor *scores = c->in[SCORES], *bias = c->in[BIAS], *seen = c->in[SEEN];
    const int last = scores->shape.rank - 1;
    const int64_t words = scores->shape.lens[last];
    const int64_t from = mgx_shape_offset(
        &scores->shape, (const int64_t[]){b, last == 2 ? scores->shape.lens[1] - 1 : 0, 0});
    for (int64_t i = 0; i < words; i++) {
        r->scores[i] = (float)mgx_load_double(scores->shape.type, scores->data,
                                              from + i * scores->shape.strides[last]);
        r->bias[i] = (float)mgx_load_double(
            MGX_FLOAT, bias->data, mgx_shape_offset(&bias->shape, (const int64_t[]){b, i}));
    }
    for (int64_t i = 0; i < seen->shape.lens[1]; i++)
        r->seen[i] = mgx_load_int(MGX_INT32, seen->data,
                                  mgx_shape_offset(&seen->shape, (const int64_t[]){b, i}));
    for (int64_t i = 0; i < MGX_CHOICE_KNOBS; i++)
        r->knobs[i] =
            mgx_load_double(MGX_DOUBLE, c->in[KNOBS]->data,
                            mgx_shape_offset(&c->in[KNOBS]->shape, (const int64_t[]){b, i}));
}

static int64_t choose(const struct mgx_compute_call *c, const struct row *r,
                      struct mgx_draw_room *room)
{
    const struct mgx_sampling how = {.temperature = r->knobs[MGX_CHOICE_TEMPERATURE],
                                     .top_k = (int64_t)r->knobs[MGX_CHOICE_TOP_K],
                                     .top_p = r->knobs[MGX_CHOICE_TOP_P],
                                     .min_p = r->knobs[MGX_CHOICE_MIN_P],
                                     .repetition = r->knobs[MGX_CHOICE_REPETITION]};
    const struct mgx_shape *scores = &c->in[SCORES]->shape;
    const struct mgx_draw d = {
        .sampling = &how,
        .scores = r->scores,
        .bias = r->knobs[MGX_CHOICE_BIASED] != 0 ? r->bias : NULL,
        .size = scores->lens[scores->rank - 1],
        .text = r->seen,
        .length = mgx_min_i64((int64_t)r->knobs[MGX_CHOICE_SEEN], c->in[SEEN]->shape.lens[1]),
        .u = r->knobs[MGX_CHOICE_DRAW]};
    int64_t token;
    return mgx_draw_token(&d, room, &token, NULL) == MGX_OK ? token : -1;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_shape *scores = &c->in[SCORES]->shape;
    const size_t words = (size_t)scores->lens[scores->rank - 1],
                 tokens = (size_t)c->in[SEEN]->shape.lens[1];
    struct mgx_draw_room room = {0};
    struct row r = {.scores = calloc(words + 1, sizeof *r.scores),
                    .bias = calloc(words + 1, sizeof *r.bias),
                    .seen = calloc(tokens + 1, sizeof *r.seen)};
    const bool good = r.scores && r.bias && r.seen;
    for (int64_t b = 0; b < scores->lens[0] && good; b++) {
        read_row(c, b, &r);
        mgx_store_int(MGX_INT64, c->out->data, b * c->out->shape.strides[0],
                      words ? choose(c, &r, &room) : -1);
    }
    mgx_draw_room_fini(&room);
    free(r.scores);
    free(r.bias);
    free(r.seen);
    return good ? MGX_OK : mgx_fail_memory(c->diag);
}

const struct mgx_op mgx_op_choose_token = {
    .name = "choose_token",
    .meaning = "the next token by temperature, cuts and a drawn number",
    .in_min = 4,
    .in_max = 4,
    .shape = shape,
    .compute = compute,
};
