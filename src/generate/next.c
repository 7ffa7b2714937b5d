// SPDX-License-Identifier: MIT
// Running what is pending, and choosing what comes next.
//
//     next(texts):  alone, each with more than one token pending     pieces of model->piece tokens
//                   alone, each with tokens guessed behind it        one run, 16 tokens at most
//                   together, all others with one token pending      one run
//                   then choices for each, and the first of each is appended
#include "generate/next.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"

// --- running what is pending ---

static void count_run(struct mgx_texts *g, const struct mgx_track_run *run, bool given,
                      double seconds)
{
    struct mgx_generator_statistics *d = &g->done;
    *(given ? &d->prompt_tokens : &d->answer_tokens) += (double)(run->count * run->each);
    *(given ? &d->prompt_seconds : &d->answer_seconds) += seconds;
    d->runs++;
}

// The tracks of these texts go on by `each` tokens; the scores behind the last `scores` are kept.
// `chosen`, where it is not NULL, gets the token that follows each, or -1.
static enum mgx_status run_texts(struct mgx_texts *g, struct mgx_text *const *texts, int64_t count,
                                 int64_t each, int64_t scores, const struct mgx_choice *choices,
                                 int64_t *chosen, struct mgx_diag *diag)
{
    struct mgx_track **tracks = calloc((size_t)count, sizeof *tracks);
    float **logits = calloc((size_t)count, sizeof *logits);
    int64_t *tokens = calloc((size_t)(count * each), sizeof *tokens);
    const struct mgx_track_run run = {
        tracks, count, each, tokens, logits, scores, g->model->roles.words, choices, chosen};
    enum mgx_status status = tracks && logits && tokens ? MGX_OK : mgx_fail_memory(diag);
    bool given = false;
    for (int64_t i = 0; i < count && status == MGX_OK; i++) {
        const int64_t from = mgx_track_length(texts[i]->track);
        tracks[i] = texts[i]->track;
        logits[i] = texts[i]->logits;
        memcpy(tokens + i * each, texts[i]->v + from, (size_t)each * sizeof *tokens);
        given |= from < texts[i]->given;
    }
    const double start = mgx_clock_seconds();
    if (status == MGX_OK)
        status = mgx_states_run(g->states, &run, diag);
    if (status == MGX_OK)
        count_run(g, &run, given, mgx_clock_seconds() - start);
    for (int64_t i = 0; i < count && status == MGX_OK; i++)
        texts[i]->scored = mgx_track_length(texts[i]->track) >= texts[i]->count ? scores : 0;
    free(tracks);
    free(logits);
    free(tokens);
    return status;
}

static int64_t pending(const struct mgx_text *t)
{
    return t->count + t->ahead - mgx_track_length(t->track);
}

static enum mgx_status need_rows(const struct mgx_texts *g, struct mgx_text *t, int64_t rows,
                                 struct mgx_diag *diag)
{
    if (t->rows >= rows)
        return MGX_OK;
    float *more = realloc(t->logits, (size_t)(rows * g->model->roles.words) * sizeof *more);
    if (!more)
        return mgx_fail_memory(diag);
    t->logits = more;
    t->rows = rows;
    return MGX_OK;
}

// Scores that are not there take the last token once more.
static enum mgx_status need_scores(struct mgx_texts *g, size_t number, struct mgx_text *t,
                                   struct mgx_diag *diag)
{
    if (!t->count)
        return mgx_fail(diag, MGX_INVALID, "text %zu is empty: what should go on needs a token",
                        number);
    if (g->model->roles.given_count && !mgx_track_is_about(t->track))
        return mgx_fail(diag, MGX_INVALID,
                        "text %zu is about nothing yet: the model's encoder takes a source, which "
                        "comes before the first token",
                        number);
    TRY(need_rows(g, t, 1, diag));
    return t->scored || pending(t) ? MGX_OK : mgx_track_rewind(t->track, t->count - 1, diag);
}

// The next tokens of one text. Some exporters leave the axis of tokens open in a graph that takes
// one: where several fail and one does not, it is one from now on.
static enum mgx_status run_piece(struct mgx_texts *g, struct mgx_text *t, int64_t size,
                                 struct mgx_diag *diag)
{
    struct mgx_diag several, one;
    mgx_diag_clear(&several);
    mgx_diag_clear(&one);
    const enum mgx_status status = run_texts(g, &t, 1, size, 1, NULL, NULL, &several);
    if (status == MGX_OK) {
        g->takes_pieces |= size > 1;
        return MGX_OK;
    }
    if (size > 1 && !g->takes_pieces && status == MGX_INVALID &&
        run_texts(g, &t, 1, 1, 1, NULL, NULL, &one) == MGX_OK) {
        g->one_by_one = true;
        return MGX_OK;
    }
    if (diag)
        *diag = several;
    return status;
}

static int64_t most_of_a_run(const struct mgx_texts *g)
{
    const int64_t most = g->model->roles.most;
    return g->one_by_one ? 1 : most ? mgx_min_i64(most, g->model->piece) : g->model->piece;
}

// Alone, until nothing is pending.
static enum mgx_status run_alone(struct mgx_texts *g, struct mgx_text *t, struct mgx_diag *diag)
{
    while (pending(t))
        TRY(run_piece(g, t, mgx_min_i64(pending(t), most_of_a_run(g)), diag));
    return MGX_OK;
}

// --- guesses ---

enum { LONGEST_LOOK = 3 }; // tokens by which a text is looked up in itself

// What followed the last `look` tokens where the text had them before, the latest such place first;
// returns how many were found.
static int64_t look_up(const struct mgx_text *t, int64_t look, int64_t most, int64_t *out)
{
    const int64_t *last = t->v + t->count - look;
    for (int64_t at = t->count - look - 1; at >= 0; at--) {
        if (memcmp(t->v + at, last, (size_t)look * sizeof *last) != 0)
            continue;
        for (int64_t i = 0, from = at + look; i < most; i++, from++) // on into what is guessed
            out[i] = from < t->count ? t->v[from] : out[from - t->count];
        return most;
    }
    return 0;
}

// Brings the text's shadow in the draft to the same tokens.
static enum mgx_status follow(struct mgx_texts *draft, struct mgx_text *t, struct mgx_diag *diag)
{
    struct mgx_text *shadow = NULL;
    size_t number;
    int64_t same = 0;
    if (!t->shadow) {
        TRY(mgx_texts_add(draft, &number, diag));
        t->shadow = number + 1;
    }
    TRY(mgx_texts_find(draft, t->shadow - 1, &shadow, diag));
    const int64_t most = mgx_min_i64(shadow->count, t->count);
    while (same < most && shadow->v[same] == t->v[same])
        same++;
    TRY(mgx_texts_rewind(draft, t->shadow - 1, (size_t)same, diag));
    return mgx_texts_append(draft, t->shadow - 1, t->v + same, (size_t)(t->count - same), diag);
}

// What the draft would write; a draft that cannot (its context is full, say) guesses nothing.
static enum mgx_status ask_draft(struct mgx_texts *g, struct mgx_text *t, int64_t most,
                                 int64_t *out, int64_t *count, struct mgx_diag *diag)
{
    struct mgx_diag own;
    struct mgx_text *shadow;
    mgx_diag_clear(&own);
    enum mgx_status status = follow(g->draft, t, &own);
    for (*count = 0; *count < most && status == MGX_OK; *count += status == MGX_OK) {
        const size_t number = t->shadow - 1;
        status = mgx_texts_next(g->draft, &number, 1, &shadow, &out[*count], &own);
    }
    return mgx_status_is_final(status) ? mgx_fail(diag, status, "%s", own.text) : MGX_OK;
}

static enum mgx_status find_guesses(struct mgx_texts *g, struct mgx_text *t, int64_t *count,
                                    struct mgx_diag *diag)
{
    int64_t most = mgx_min_i64(t->guesses, most_of_a_run(g) - 1);
    *count = 0;
    if (g->model->context)
        most = mgx_min_i64(most, g->model->context - t->count - 1);
    if (most <= 0 || g->model->roles.has_kind[MGX_CARRIED_FIXED])
        return MGX_OK;
    if (!mgx_array_reserve(&t->array, most + 1, sizeof *t->v, NULL))
        return mgx_fail_memory(diag);
    TRY(need_rows(g, t, most + 1, diag));
    if (g->draft)
        return ask_draft(g, t, most, t->v + t->count, count, diag);
    for (int64_t look = LONGEST_LOOK; look > 0 && !*count; look--)
        if (t->count > look)
            *count = look_up(t, look, most, t->v + t->count);
    return MGX_OK;
}

// One token is pending: it runs with what is guessed behind it. *ran is false without guesses.
static enum mgx_status run_guesses(struct mgx_texts *g, struct mgx_text *t, bool *ran,
                                   struct mgx_diag *diag)
{
    int64_t count = 0;
    if (t->guesses && g->model->roles.logits_rank != 2)
        TRY(find_guesses(g, t, &count, diag));
    *ran = count > 0;
    if (!*ran)
        return MGX_OK;
    TRY(run_texts(g, &t, 1, count + 1, count + 1, NULL, NULL, diag));
    g->done.guessed_tokens += (double)count;
    return MGX_OK;
}

// What a text brings to a choice on the card, for which there is room behind it.
static enum mgx_status describe_choice(const struct mgx_texts *g, struct mgx_text *t,
                                       struct mgx_choice *out, struct mgx_diag *diag)
{
    *out = (struct mgx_choice){.sampling = &t->sampling,
                               .u = mgx_draw_at(t->sampling.seed, t->count),
                               .bias = t->bias,
                               .bias_number = t->bias_number};
    if (t->sampling.repetition != 1) {
        TRY(mgx_seen_follow(&t->seen, t->v, t->count, g->model->roles.words, diag));
        out->seen = &t->seen;
    }
    return mgx_array_reserve(&t->array, 1, sizeof *t->v, NULL) ? MGX_OK : mgx_fail_memory(diag);
}

// One token of each: those that follow are chosen where the scores are, and stand ahead then.
static enum mgx_status run_and_choose(struct mgx_texts *g, struct mgx_text *const *texts,
                                      int64_t count, struct mgx_diag *diag)
{
    struct mgx_choice *choices = calloc((size_t)count, sizeof *choices);
    int64_t *chosen = calloc((size_t)count, sizeof *chosen);
    enum mgx_status status = choices && chosen ? MGX_OK : mgx_fail_memory(diag);
    for (int64_t i = 0; i < count && status == MGX_OK; i++)
        status = describe_choice(g, texts[i], &choices[i], diag);
    if (status == MGX_OK)
        status = run_texts(g, texts, count, 1, 1, choices, chosen, diag);
    for (int64_t i = 0; i < count && status == MGX_OK; i++)
        if (chosen[i] >= 0) {
            texts[i]->v[texts[i]->count] = chosen[i];
            texts[i]->ahead = 1;
            texts[i]->scored = 0;
        }
    free(choices);
    free(chosen);
    return status;
}

static enum mgx_status run_together(struct mgx_texts *g, struct mgx_text *const *texts,
                                    int64_t count, bool choosing, struct mgx_diag *diag)
{
    return choosing && g->model->plans && g->model->roles.chooses
               ? run_and_choose(g, texts, count, diag)
               : run_texts(g, texts, count, 1, 1, NULL, NULL, diag);
}

static enum mgx_status run_pending(struct mgx_texts *g, struct mgx_text *const *texts,
                                   int64_t count, bool choosing, struct mgx_diag *diag)
{
    struct mgx_text **together = calloc((size_t)count, sizeof *together);
    int64_t n = 0;
    enum mgx_status status = together ? MGX_OK : mgx_fail_memory(diag);
    for (int64_t i = 0; i < count && status == MGX_OK; i++) {
        bool ran = texts[i]->ahead > 0 || texts[i]->scored;
        if (!ran && pending(texts[i]) == 1)
            status = run_guesses(g, texts[i], &ran, diag);
        if (!ran && status == MGX_OK && g->model->roles.takes_many && pending(texts[i]) == 1)
            together[n++] = texts[i];
        else if (!ran && status == MGX_OK)
            status = run_alone(g, texts[i], diag);
    }
    if (status == MGX_OK && n)
        status = run_together(g, together, n, choosing, diag);
    free(together);
    return status;
}

// The texts of these numbers, each once, scored or with tokens ahead.
static enum mgx_status score(struct mgx_texts *g, const size_t *numbers, size_t count,
                             struct mgx_text **texts, bool choosing, struct mgx_diag *diag)
{
    for (size_t i = 0; i < count; i++) {
        TRY(mgx_texts_find(g, numbers[i], &texts[i], diag));
        for (size_t j = 0; j < i; j++)
            if (texts[j] == texts[i])
                return mgx_fail(diag, MGX_INVALID, "text %zu is named twice", numbers[i]);
        if (!texts[i]->ahead)
            TRY(need_scores(g, numbers[i], texts[i], diag));
        if (!texts[i]->ahead && choosing)
            TRY(mgx_texts_check_context(g, numbers[i], texts[i], 1, diag));
    }
    return run_pending(g, texts, (int64_t)count, choosing, diag);
}

// --- choosing what comes next ---

// The token at `at` behind the text, from the scores of that row.
static enum mgx_status choose(struct mgx_texts *g, const struct mgx_text *t, int64_t at,
                              int64_t *token, struct mgx_diag *diag)
{
    const struct mgx_draw d = {.sampling = &t->sampling,
                               .scores = t->logits + at * g->model->roles.words,
                               .bias = t->bias,
                               .size = g->model->roles.words,
                               .text = t->v,
                               .length = t->count + at,
                               .u = mgx_draw_at(t->sampling.seed, t->count + at)};
    return mgx_draw_token(&d, &g->room, token, diag);
}

// Tokens go ahead as long as they are those guessed; the first that is not is the last.
static enum mgx_status choose_ahead(struct mgx_texts *g, struct mgx_text *t, struct mgx_diag *diag)
{
    int64_t token = 0, at = 0;
    for (bool same = true; same && at < t->scored; at++) {
        TRY(choose(g, t, at, &token, diag));
        same = at + 1 < t->scored && t->v[t->count + at] == token;
        t->v[t->count + at] = token;
    }
    if (t->scored > 1)
        TRY(mgx_track_rewind(t->track, t->count + at - 1, diag));
    g->done.right_tokens += (double)(at - 1);
    g->done.answer_tokens -= (double)(t->scored - at);
    t->ahead = at;
    t->scored = 0;
    return MGX_OK;
}

enum mgx_status mgx_texts_next(struct mgx_texts *g, const size_t *numbers, size_t count,
                               struct mgx_text **texts, int64_t *tokens, struct mgx_diag *diag)
{
    TRY(score(g, numbers, count, texts, true, diag));
    for (size_t i = 0; i < count; i++) {
        if (texts[i]->ahead)
            continue;
        if (!mgx_array_reserve(&texts[i]->array, 1, sizeof *texts[i]->v, NULL))
            return mgx_fail_memory(diag);
        const enum mgx_status status = choose_ahead(g, texts[i], diag);
        if (status != MGX_OK) {
            mgx_where(diag, "text %zu", numbers[i]);
            return status;
        }
    }
    for (size_t i = 0; i < count; i++) {
        tokens[i] = texts[i]->v[texts[i]->count++];
        texts[i]->ahead--;
    }
    return MGX_OK;
}

enum mgx_status mgx_texts_logits(struct mgx_texts *g, size_t text, float *out, size_t size,
                                 struct mgx_diag *diag)
{
    struct mgx_text *t;
    if (size != (size_t)g->model->roles.words)
        return mgx_fail(diag, MGX_INVALID, "room for %zu scores, but the model has %lld tokens",
                        size, (long long)g->model->roles.words);
    TRY(mgx_texts_find(g, text, &t, diag));
    TRY(mgx_text_drop_ahead(t, diag));
    TRY(score(g, &text, 1, &t, false, diag));
    memcpy(out, t->logits, size * sizeof *out);
    return MGX_OK;
}
