// SPDX-License-Identifier: MIT
// Generators over one small decoder of each kind: every allocation failing in turn, calls that are
// cancelled, and many texts in one run. What is expected is what the same calls give undisturbed.
#include "test_malloc.h"

#include "base/cancel.h"
#include "check.h"
#include "generate/decoders.h"

// --- one story of texts, step by step ---

// What comes out of it: tokens of two texts, and scores.
struct outcome {
    int64_t tokens[2][64];
    size_t sizes[2];
    float logits[WORDS];
};

// Does a call again until it succeeds; `faults` counts how often it had to.
#define AGAIN(call)                                                                                \
    do {                                                                                           \
        enum mgx_status status_;                                                                   \
        mgx_diag_clear(diag);                                                                      \
        while ((status_ = (call)) == MGX_NO_MEMORY && test_malloc_failed()) {                      \
            test_malloc_fail_after(-1);                                                            \
            mgx_diag_clear(diag);                                                                  \
            (*faults)++;                                                                           \
        }                                                                                          \
        if (status_ != MGX_OK)                                                                     \
            return status_;                                                                        \
    } while (0)

static enum mgx_status tell(struct mgx_generator *g, int *faults, struct outcome *out,
                            struct mgx_diag *diag)
{
    static const int64_t first[] = {1, 3, 0, 2, 2}, second[] = {2};
    const struct mgx_sampling chance = {
        .temperature = 1, .top_k = 3, .top_p = 0.95, .repetition = 1.2, .seed = 7};
    const float bias[WORDS] = {0.5f, 0, -0.5f, 0};
    size_t text[3];
    int64_t token[3];
    AGAIN(mgx_generator_add(g, &text[0], diag));
    AGAIN(mgx_generator_append(g, text[0], first, 5, diag));
    AGAIN(mgx_generator_set_sampling(g, text[0], &chance, diag));
    AGAIN(mgx_generator_next(g, text, 1, token, diag));
    AGAIN(mgx_generator_add(g, &text[1], diag));
    AGAIN(mgx_generator_append(g, text[1], second, 1, diag));
    AGAIN(mgx_generator_set_bias(g, text[1], bias, WORDS, diag));
    for (int i = 0; i < 4; i++)
        AGAIN(mgx_generator_next(g, text, 2, token, diag));
    AGAIN(mgx_generator_fork(g, text[0], 7, &text[2], diag));
    AGAIN(mgx_generator_next(g, text, 3, token, diag));
    AGAIN(mgx_generator_rewind(g, text[0], 6, diag));
    AGAIN(mgx_generator_next(g, text, 3, token, diag));
    AGAIN(mgx_generator_remove(g, text[1], diag));
    AGAIN(mgx_generator_append(g, text[2], first, 3, diag));
    text[1] = text[2];
    AGAIN(mgx_generator_next(g, text, 2, token, diag));
    AGAIN(mgx_generator_logits(g, text[0], out->logits, WORDS, diag));
    for (int i = 0; i < 2; i++) {
        AGAIN(mgx_generator_size(g, text[i], &out->sizes[i], diag));
        AGAIN(mgx_generator_tokens(g, text[i], out->tokens[i], out->sizes[i], diag));
    }
    return MGX_OK;
}

static enum mgx_status tell_anew(struct mgx_generator_model *m, int *faults, struct outcome *out,
                                 struct mgx_diag *diag)
{
    struct mgx_generator *g = NULL;
    AGAIN(mgx_generator_create(&g, m, diag));
    const enum mgx_status status = tell(g, faults, out, diag);
    mgx_generator_destroy(g);
    return status;
}

// With every allocation failing in turn the story ends as it does without.
static void survives(const char *body)
{
    struct mgx_generator_model *m = must_make(body);
    struct outcome expected = {.sizes = {0}};
    struct mgx_diag diag;
    int faults = 0;
    CHECK_OK(tell_anew(m, &faults, &expected, &diag), diag);
    CHECK_OK(tell_anew(m, &faults, &expected, &diag), diag); // what plans keep is there now
    bool again = true;
    for (long n = 0; again; n++) {
        struct outcome got = {.sizes = {0}};
        const long live = test_malloc_live();
        faults = 0;
        test_malloc_fail_after(n);
        const enum mgx_status status = tell_anew(m, &faults, &got, &diag);
        again = test_malloc_failed() || faults;
        test_malloc_fail_after(-1);
        if (status != MGX_OK)
            CHECK_FAIL("allocation %ld: %s", n, diag.text);
        CHECK_INT(test_malloc_live(), live);
        CHECK(memcmp(&got, &expected, sizeof got) == 0);
    }
    mgx_generator_model_release(m);
}

CASE(lack_of_memory_changes_nothing)
{
    for (int i = 0; i < MGX_COUNT(bodies); i++)
        survives(bodies[i]);
}

// --- cancelled calls ---

CASE(cancelled_calls_can_be_made_again)
{
    for (int i = 0; i < MGX_COUNT(bodies); i++) {
        struct mgx_generator_model *m = must_make(bodies[i]);
        struct mgx_cancel flag = {.state = 0};
        struct mgx_generator *g = NULL;
        struct mgx_diag diag;
        size_t text = 0;
        const int64_t prompt[] = {0, 1, 2};
        int64_t token[3] = {-1, -1, -1};
        mgx_diag_clear(&diag);
        CHECK_OK(mgx_generator_create(&g, m, &diag), diag);
        CHECK_OK(mgx_generator_add(g, &text, &diag), diag);
        CHECK_OK(mgx_generator_append(g, text, prompt, 3, &diag), diag);
        CHECK(mgx_cancel_attach(&flag));
        mgx_cancel_request(&flag);
        CHECK_INT(mgx_generator_next(g, &text, 1, token, &diag), MGX_CANCELLED);
        CHECK(mgx_cancel_reset(&flag));
        mgx_diag_clear(&diag);
        CHECK_OK(mgx_generator_tokens(g, text, token, 3, &diag), diag);
        CHECK_INT(token[2], 2);
        CHECK_INT(mgx_generator_tokens(g, text, token, 4, &diag), MGX_INVALID);
        mgx_diag_clear(&diag);
        CHECK_OK(mgx_generator_next(g, &text, 1, token, &diag), diag);
        CHECK(mgx_cancel_attach(NULL));
        mgx_generator_destroy(g);
        mgx_generator_model_release(m);
    }
}

// --- many texts: a run for all, room that doubles ---

CASE(eight_texts_outgrow_their_room_together)
{
    struct mgx_generator_model *m = must_make(room);
    struct mgx_generator *g = NULL, *alone = NULL;
    struct mgx_generator_statistics done;
    struct mgx_diag diag;
    size_t texts[8], one;
    int64_t token[8], own;
    mgx_diag_clear(&diag);
    CHECK_OK(mgx_generator_create(&g, m, &diag), diag);
    CHECK_OK(mgx_generator_create(&alone, m, &diag), diag);
    CHECK_OK(mgx_generator_add(alone, &one, &diag), diag);
    for (int i = 0; i < 8; i++) {
        const int64_t prompt[] = {i % WORDS};
        CHECK_OK(mgx_generator_add(g, &texts[i], &diag), diag);
        CHECK_OK(mgx_generator_append(g, texts[i], prompt, 1, &diag), diag);
    }
    CHECK_OK(mgx_generator_append(alone, one, (int64_t[]){2}, 1, &diag), diag);
    for (int i = 0; i < 300; i++) { // past 128 and 256
        CHECK_OK(mgx_generator_next(g, texts, 8, token, &diag), diag);
        CHECK_OK(mgx_generator_next(alone, &one, 1, &own, &diag), diag);
        CHECK_INT(token[2], own);
        CHECK_INT(token[6], own);
    }
    mgx_generator_statistics_of(g, &done);
    CHECK_INT(done.runs, 300);
    CHECK_INT(done.state_bytes, 8 * 512 * 4 * sizeof(float));
    mgx_generator_destroy(g);
    mgx_generator_destroy(alone);
    mgx_generator_model_release(m);
}

TEST_MAIN(ROW(lack_of_memory_changes_nothing) ROW(cancelled_calls_can_be_made_again)
              ROW(eight_texts_outgrow_their_room_together))
