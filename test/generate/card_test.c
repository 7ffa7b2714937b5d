// SPDX-License-Identifier: MIT
// Tracks in the memory of a card, which the host cannot touch: a decoder on the far target beside the
// same one on the CPU. Memory of the card that ends anywhere, calls that are cancelled, and what is shared.
#include "generate/generator.h"
#include "generate/plans.h"

#include "base/cancel.h"
#include "base/size.h"
#include "check.h"
#include "far/far.h"
#include "op/op.h"
#include "pass/pass.h"
#include "plan/plan.h"

enum { WORDS = 4 };

static const char decoder[] =
    "module: \"main\"\n"
    "ids = @param:input_ids -> dynamic, int64_type, {b[0..], t[0..]}\n"
    "lengths = @param:seqlens_k -> dynamic, int64_type, {b[0..]}\n"
    "total = @param:total_sequence_length -> int64_type, {1}, {0}\n"
    "table = @literal{1, 0, 2, -1, 0.5, 1, -2, 1, -1, 2, 1, 0, 0.25, -1, 0.75, 2} -> float_type, "
    "{4, 4}, {4, 1}\n"
    "one = @literal{1} -> int64_type, {1}, {0}\n"
    "x = gather[axis=0](table,ids)\n"
    "h = reshape[dims={0, 0, 1, 4}](x)\n"
    "q = transpose[permutation={0, 2, 1, 3}](h)\n"
    "past = @param:past_key_values.0.key -> dynamic, float_type, {b[0..], 1, p[0..], 4}\n"
    "ones = multibroadcast[out_lens={},out_dyn_dims={}](one,lengths)\n"
    "ends = add(lengths,ones)\n"
    "cache = cache_append(q,ends,total,past)\n"
    "y = cache_attention[scale=0.5,cap=0,window=0,bias=0,sink=0](q,cache,cache,ends)\n"
    "z = transpose[permutation={0, 2, 1, 3}](y)\n";
static const char every[] = "logits = reshape[dims={0, 0, 4}](z)\nr = @return(logits,cache)\n";
static const char sixteen[] = "w = slice[axes={1},starts={-16},ends={2147483647}](z)\n"
                              "logits = reshape[dims={0, 0, 4}](w)\nr = @return(logits,cache)\n";
static const char last[] = "w = slice[axes={1},starts={-1},ends={2147483647}](z)\n"
                           "logits = reshape[dims={0, 0, 4}](w)\nr = @return(logits,cache)\n";

// --- a target with a card's memory and no kernels of its own ---

static const struct mgx_target near;

static enum mgx_status compile_near(struct mgx_program *p,
                                    const struct mgx_compile_options *options,
                                    struct mgx_diag *diag)
{
    static const struct mgx_pass *const placed[] = {&mgx_pass_settle_caches, NULL};
    struct mgx_pass_options pass = options->pass;
    if (!options->offload_copy)
        TRY(mgx_run_passes(p, placed, &pass, diag));
    TRY(mgx_run_passes(p, mgx_pipeline_simplify, &pass, diag));
    if (options->simplified)
        TRY(mgx_program_clone(options->simplified, p, diag));
    far_outputs = !options->offload_copy;
    TRY(far_target.compile(p, options, diag));
    p->executable->target = &near;
    return MGX_OK;
}

static enum mgx_status memory_near(const char *device, const struct mgx_memory **out,
                                   struct mgx_diag *diag)
{
    (void)device, (void)diag;
    *out = &far_memory;
    return MGX_OK;
}

static const struct mgx_target near = {.name = "near",
                                       .memory = memory_near,
                                       .compile = compile_near,
                                       .bytes = mgx_plan_bytes,
                                       .run = mgx_plan_run,
                                       .destroy = mgx_plan_destroy,
                                       .explain = mgx_plan_explain};

static void must(bool good, const struct mgx_diag *diag)
{
    if (good)
        return;
    printf("%s\n", diag->text);
    exit(2);
}

static struct mgx_generator *make(const char *end, const struct mgx_target *target)
{
    const struct mgx_compile_options options = {
        .threads = 1, .fast_math = true, .offload_copy = true};
    static const char *const names[] = {"logits", "present.0.key"};
    struct mgx_diag own, *diag = &own;
    struct mgx_generator *g = NULL;
    char text[4096];
    mgx_diag_clear(diag);
    snprintf(text, sizeof text, "%s%s", decoder, end);
    struct mgx_generator_model *m = mgx_generator_model_create();
    if (mgx_program_parse(&m->program, &mgx_ops, text, strlen(text), diag) == MGX_OK) {
        m->program->output_names = (struct mgx_strings){names, 2};
        m->piece = 100;
        m->few_scores = end == sixteen;
        if (mgx_roles_find(&m->roles, m->program, NULL, &m->arena, diag) == MGX_OK &&
            mgx_program_compile(m->program, target, &options, diag) == MGX_OK &&
            mgx_plans_create(&m->plans, m->program, &m->roles, diag) == MGX_OK)
            (void)!mgx_generator_create(&g, m, diag);
    }
    must(g && (m->plans != NULL) == (target == &near), diag);
    mgx_generator_model_release(m);
    return g;
}

// --- the same story on both ---

struct both {
    struct mgx_generator *card, *host;
    struct mgx_diag diag;
};

static struct both make_both(const char *end)
{
    return (struct both){.card = make(end, &near), .host = make(end, mgx_target_find("cpu"))};
}

static void destroy_both(struct both *b)
{
    mgx_generator_destroy(b->card);
    mgx_generator_destroy(b->host);
}

static size_t add(struct both *b)
{
    size_t x, y;
    must(mgx_generator_add(b->card, &x, &b->diag) == MGX_OK, &b->diag);
    must(mgx_generator_add(b->host, &y, &b->diag) == MGX_OK && x == y, &b->diag);
    return x;
}

static void append(struct both *b, size_t text, int64_t size)
{
    int64_t tokens[512];
    for (int64_t i = 0; i < size; i++)
        tokens[i] = (i * i + size + (int64_t)text) % WORDS;
    CHECK(mgx_generator_append(b->card, text, tokens, (size_t)size, &b->diag) == MGX_OK);
    CHECK(mgx_generator_append(b->host, text, tokens, (size_t)size, &b->diag) == MGX_OK);
}

static void back(struct both *b, size_t text, size_t size)
{
    CHECK(mgx_generator_rewind(b->card, text, size, &b->diag) == MGX_OK);
    CHECK(mgx_generator_rewind(b->host, text, size, &b->diag) == MGX_OK);
}

static size_t fork_at(struct both *b, size_t text, size_t size)
{
    size_t x, y;
    must(mgx_generator_fork(b->card, text, size, &x, &b->diag) == MGX_OK, &b->diag);
    must(mgx_generator_fork(b->host, text, size, &y, &b->diag) == MGX_OK && x == y, &b->diag);
    return x;
}

static void same_scores(struct both *b, size_t text)
{
    float x[WORDS] = {0}, y[WORDS] = {1};
    CHECK(mgx_generator_logits(b->card, text, x, WORDS, &b->diag) == MGX_OK);
    CHECK(mgx_generator_logits(b->host, text, y, WORDS, &b->diag) == MGX_OK);
    for (int i = 0; i < WORDS; i++)
        CHECK(fabsf(x[i] - y[i]) < 1e-5F);
}

static void next(struct both *b, const size_t *texts, size_t count, int times)
{
    int64_t x[4] = {0}, y[4] = {1};
    while (times--) {
        CHECK(mgx_generator_next(b->card, texts, count, x, &b->diag) == MGX_OK);
        CHECK(mgx_generator_next(b->host, texts, count, y, &b->diag) == MGX_OK);
        CHECK(memcmp(x, y, count * sizeof *x) == 0);
    }
}

static double bytes_of(const struct both *b)
{
    struct mgx_generator_statistics s;
    mgx_generator_statistics_of(b->card, &s);
    return s.state_bytes;
}

static void story(struct both *b)
{
    const size_t first = add(b), second = add(b), both[] = {first, second};
    append(b, first, 7);
    same_scores(b, first);
    append(b, first, 90); // filled up to a length, beyond the first room
    same_scores(b, first);
    append(b, second, 3);
    next(b, both, 2, 5);
    back(b, first, 60);
    next(b, both, 2, 3);
    const size_t third = fork_at(b, first, 62), end = fork_at(b, second, 11);
    const size_t all[] = {third, first, end, second};
    next(b, all, 4, 4);
    for (int i = 0; i < 4; i++)
        same_scores(b, all[i]);
    next(b, &second, 1, 2);
    same_scores(b, second);
}

static void guess(struct both *b, size_t text)
{
    CHECK(mgx_generator_set_guesses(b->card, text, 7, &b->diag) == MGX_OK);
    CHECK(mgx_generator_set_guesses(b->host, text, 7, &b->diag) == MGX_OK);
}

// A text is guessed ahead: several scores of a run are wanted.
CASE(guesses_need_the_scores_of_several_tokens)
{
    const char *const ends[] = {every, sixteen};
    for (int i = 0; i < MGX_COUNT(ends); i++) {
        struct mgx_generator_statistics s;
        struct both b = make_both(ends[i]);
        const size_t text = add(&b);
        append(&b, text, 90);
        guess(&b, text);
        next(&b, &text, 1, 60);
        same_scores(&b, text);
        mgx_generator_statistics_of(b.card, &s);
        CHECK(s.guessed_tokens > 0 && s.right_tokens > 0);
        destroy_both(&b);
    }
}

CASE(a_story)
{
    const char *const ends[] = {every, sixteen, last};
    const size_t before = far_memory_live();
    for (int i = 0; i < MGX_COUNT(ends); i++) {
        struct both b = make_both(ends[i]);
        story(&b);
        destroy_both(&b);
    }
    CHECK(far_memory_live() == before);
}

// Who stands at the end goes on where he is, with others behind him or not; who does not gets a copy.
CASE(who_stands_at_the_end_goes_on_in_place)
{
    struct both b = make_both(every);
    const size_t first = add(&b);
    append(&b, first, 20);
    next(&b, &first, 1, 1);
    const double one = bytes_of(&b);
    const size_t second = fork_at(&b, first, 20);
    next(&b, &first, 1, 3);
    CHECK(bytes_of(&b) == one);
    next(&b, &second, 1, 3);
    CHECK(bytes_of(&b) == 2 * one);
    back(&b, first, 5);
    next(&b, &first, 1, 3); // alone with its bytes by now
    CHECK(bytes_of(&b) == 2 * one);
    same_scores(&b, first);
    same_scores(&b, second);
    destroy_both(&b);
}

// --- what fails ---

// Memory of the card that ends after so many bytes more: what fails leaves all as it was.
CASE(no_memory_on_the_card_changes_nothing)
{
    const size_t steps[] = {0, 100, 1000, 2000, 4000, 8000, 16000};
    struct both b = make_both(every);
    const size_t first = add(&b), second = add(&b), both[] = {first, second};
    int failed = 0;
    append(&b, first, 6);
    append(&b, second, 9);
    next(&b, both, 2, 2);
    for (int i = 0; i < MGX_COUNT(steps); i++) {
        int64_t x[2];
        append(&b, first, 60);
        far_memory_limit(far_memory_live() + steps[i]);
        const enum mgx_status status = mgx_generator_next(b.card, both, 2, x, &b.diag);
        far_memory_limit(SIZE_MAX);
        CHECK(status == MGX_OK || status == MGX_NO_MEMORY);
        failed += status != MGX_OK;
        mgx_diag_clear(&b.diag);
        if (status == MGX_OK) {
            int64_t y[2];
            CHECK(mgx_generator_next(b.host, both, 2, y, &b.diag) == MGX_OK && x[0] == y[0]);
        }
        next(&b, both, 2, 1);
    }
    CHECK(failed >= 2);
    same_scores(&b, first);
    same_scores(&b, second);
    destroy_both(&b);
}

CASE(a_cancelled_call_can_be_made_again)
{
    struct mgx_cancel cancel = {0};
    struct both b = make_both(every);
    const size_t text = add(&b);
    int64_t token;
    append(&b, text, 300);
    CHECK(mgx_cancel_attach(&cancel));
    mgx_cancel_request(&cancel);
    CHECK(mgx_generator_next(b.card, &text, 1, &token, &b.diag) == MGX_CANCELLED);
    CHECK(mgx_cancel_reset(&cancel) && mgx_cancel_attach(NULL));
    mgx_diag_clear(&b.diag);
    next(&b, &text, 1, 3);
    same_scores(&b, text);
    destroy_both(&b);
}

TEST_MAIN(ROW(a_story) ROW(guesses_need_the_scores_of_several_tokens)
              ROW(who_stands_at_the_end_goes_on_in_place) ROW(no_memory_on_the_card_changes_nothing)
                  ROW(a_cancelled_call_can_be_made_again))
