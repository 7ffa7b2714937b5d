// SPDX-License-Identifier: MIT
// The choice of a token: by the definition on small cases, and by frequency. What is expected is worked
// out here from the definition in draw.h, by sorting and summing in the plainest way.
#include "op/reference/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { MOST = 64 };

static struct mgx_sampling with(double temperature, int64_t k, double p, double min_p, double r)
{
    return (struct mgx_sampling){
        .temperature = temperature, .top_k = k, .top_p = p, .min_p = min_p, .repetition = r};
}

// --- the definition, worked out once more ---

static double scores_now[MOST];

static int by_score(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    if (scores_now[x] != scores_now[y])
        return scores_now[x] > scores_now[y] ? -1 : 1;
    return x - y;
}

// Probabilities of all tokens.
static void expect(const struct mgx_draw *d, double *out)
{
    int order[MOST];
    double w[MOST], sum = 0, part = 0;
    const struct mgx_sampling *s = d->sampling;
    for (int i = 0; i < d->size; i++) {
        double x = (double)d->scores[i] + (d->bias ? (double)d->bias[i] : 0);
        for (int64_t j = 0; j < d->length; j++)
            if (d->text[j] == i) {
                x = x > 0 ? x / s->repetition : x * s->repetition;
                break;
            }
        scores_now[i] = x;
        order[i] = i;
    }
    qsort(order, (size_t)d->size, sizeof *order, by_score);
    int count = (int)d->size;
    if (s->top_k && s->top_k < count)
        count = (int)s->top_k;
    for (int i = 0; i < count; i++)
        sum += w[i] = exp((scores_now[order[i]] - scores_now[order[0]]) / s->temperature);
    for (int i = 0; i < count; i++) {
        if (s->top_p < 1 && part >= s->top_p * sum && i > 0)
            count = i;
        else
            part += w[i];
    }
    memset(out, 0, MOST * sizeof *out);
    sum = 0;
    for (int i = 0; i < count; i++)
        if (w[i] >= s->min_p)
            sum += out[order[i]] = w[i];
    for (int i = 0; i < d->size; i++)
        out[i] /= sum;
}

// --- frequencies ---

static int64_t draw(const struct mgx_draw *d, struct mgx_draw_room *room)
{
    int64_t token = -1;
    struct mgx_diag diag;
    struct mgx_draw drawn = *d;
    drawn.u = mgx_draw_at(d->sampling->seed, d->length);
    mgx_diag_clear(&diag);
    if (mgx_draw_token(&drawn, room, &token, &diag) != MGX_OK) {
        printf("%s\n", diag.text);
        check_failures++;
    }
    return token;
}

// The sum of (seen - expected)^2 / expected lies below the 99.99th percentile of its distribution, as
// Wilson and Hilferty approximate it.
static void check_frequency(struct mgx_draw d)
{
    enum { DRAWS = 20000 };
    struct mgx_draw_room room = {0};
    struct mgx_sampling s = *d.sampling;
    double p[MOST], chi = 0;
    int seen[MOST] = {0}, cells = 0;
    expect(&d, p);
    d.sampling = &s;
    for (int i = 0; i < DRAWS; i++) {
        s.seed = (uint64_t)i;
        seen[draw(&d, &room)]++;
    }
    for (int i = 0; i < d.size; i++) {
        const double expected = p[i] * DRAWS;
        if (p[i] == 0)
            CHECK_INT(seen[i], 0);
        else {
            chi += (seen[i] - expected) * (seen[i] - expected) / expected;
            cells++;
        }
    }
    const double n = cells - 1, a = 2 / (9 * (n > 0 ? n : 1));
    const double limit = n > 0 ? n * pow(1 - a + 3.72 * sqrt(a), 3) : 1e-9;
    if (!(chi <= limit))
        CHECK_FAIL("chi-square %g of %d cells is above %g", chi, cells, limit);
    mgx_draw_room_fini(&room);
}

CASE(tokens_come_as_often_as_they_should)
{
    float scores[12], bias[12] = {0};
    const int64_t text[] = {1, 3, 3, 99, -1};
    for (int i = 0; i < 12; i++)
        scores[i] = (float)(2 * sin(7.0 * i));
    scores[5] = scores[4]; // equal ones
    bias[2] = -INFINITY;
    bias[7] = 1.5f;
    const struct mgx_sampling all[] = {
        with(1, 0, 1, 0, 1),           with(0.5, 0, 1, 0, 1), with(3, 0, 1, 0, 1),
        with(1, 4, 1, 0, 1),           with(1, 1, 1, 0, 1),   with(1, 0, 0.7, 0, 1),
        with(1, 0, 0, 0, 1),           with(1, 5, 0.6, 0, 1), with(1, 0, 1, 0.2, 1),
        with(0.8, 6, 0.9, 0.1, 1),     with(1, 0, 1, 0, 1.7), with(1, 0, 1, 0, 0.5),
        with(0.9, 8, 0.95, 0.05, 1.3), with(1, 100, 1, 0, 1)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        check_frequency(
            (struct mgx_draw){.sampling = &all[i], .scores = scores, .size = 12, .text = text});
        check_frequency((struct mgx_draw){.sampling = &all[i],
                                          .scores = scores,
                                          .bias = bias,
                                          .size = 12,
                                          .text = text,
                                          .length = 5});
    }
}

// Positions of one text draw independently of each other: pairs of draws are uniform.
CASE(positions_draw_independently)
{
    enum { N = 4, DRAWS = 40000 };
    const float scores[N] = {0};
    const struct mgx_sampling s = with(1, 0, 1, 0, 1);
    struct mgx_draw_room room = {0};
    int64_t text[DRAWS / 100 + 1] = {0};
    int seen[N][N] = {0};
    double chi = 0;
    for (int i = 0; i < DRAWS; i++) {
        struct mgx_sampling own = s;
        own.seed = (uint64_t)(i / 100);
        struct mgx_draw d = {
            .sampling = &own, .scores = scores, .size = N, .text = text, .length = i % 100};
        const int64_t first = draw(&d, &room);
        d.length++;
        seen[first][draw(&d, &room)]++;
    }
    for (int i = 0; i < N * N; i++) {
        const double expected = DRAWS / (double)(N * N), x = (&seen[0][0])[i] - expected;
        chi += x * x / expected;
    }
    if (chi > 44.3) // 15 degrees of freedom, 99.99 %
        CHECK_FAIL("chi-square of pairs is %g", chi);
    mgx_draw_room_fini(&room);
}

CASE(without_chance_the_best_is_taken)
{
    const float scores[] = {1, 3, -2, 3, 0.5f};
    const float bias[] = {0, -INFINITY, 0, 0, 10};
    const struct mgx_sampling plain = mgx_sampling_plain(), tiny = with(1e-300, 0, 1, 0, 1);
    const int64_t text[] = {1, 1, 2};
    struct mgx_draw_room room = {0};
    struct mgx_draw d = {.sampling = &plain, .scores = scores, .size = 5, .text = text};
    CHECK_INT(draw(&d, &room), 1); // the first of equal ones
    d.bias = bias;
    CHECK_INT(draw(&d, &room), 4);
    d.bias = NULL;
    const struct mgx_sampling penalty = with(0, 0, 1, 0, 4);
    d.sampling = &penalty;
    d.length = 3;
    CHECK_INT(draw(&d, &room), 3);
    const float low[] = {-1, -1.5f};
    const int64_t first[] = {0};
    d = (struct mgx_draw){
        .sampling = &penalty, .scores = low, .size = 2, .text = first, .length = 1};
    CHECK_INT(draw(&d, &room), 1); // a score below 0 becomes lower too
    d = (struct mgx_draw){.sampling = &tiny, .scores = low, .size = 2, .text = first};
    CHECK_INT(draw(&d, &room), 0); // no overflow
    mgx_draw_room_fini(&room);
}

static void fails(const float *scores, const float *bias, const char *text)
{
    const struct mgx_sampling s = with(1, 2, 0.5, 0.1, 1);
    const struct mgx_draw d = {.sampling = &s, .scores = scores, .bias = bias, .size = 2};
    struct mgx_draw_room room = {0};
    struct mgx_diag diag;
    int64_t token = 0;
    mgx_diag_clear(&diag);
    CHECK_INT(mgx_draw_token(&d, &room, &token, &diag), MGX_INVALID);
    CHECK_TEXT(diag.text, text);
    mgx_draw_room_fini(&room);
}

// Without penalties and bias there is a shorter way, which a bias of nothing leaves. Few values: many are
// equal.
CASE(plain_scores_give_what_others_do)
{
    const struct mgx_sampling plain = mgx_sampling_plain();
    static const float values[] = {-INFINITY, -3, -0.0F, 0, 0.5F, 7};
    const float none[MOST + 40] = {0};
    struct mgx_draw_room room = {0};
    uint32_t random = 1;
    for (int size = 1; size <= MOST + 40; size++)
        for (int round = 0; round < 20; round++) {
            float scores[MOST + 40];
            for (int i = 0; i < size; i++) {
                random = random * 1664525 + 1013904223;
                scores[i] = values[(random >> 16) % (round % 2 ? 6 : 3)];
            }
            struct mgx_draw d = {.sampling = &plain, .scores = scores, .size = size};
            int64_t x = -1, y = -1;
            const enum mgx_status status = mgx_draw_token(&d, &room, &x, NULL);
            d.bias = none;
            CHECK_INT(mgx_draw_token(&d, &room, &y, NULL), status);
            CHECK(status != MGX_OK || x == y);
        }
    mgx_draw_room_fini(&room);
}

CASE(scores_that_say_nothing_are_refused)
{
    const float none[] = {-INFINITY, -INFINITY}, infinite[] = {1, INFINITY}, zero[] = {0, 0};
    fails((const float[]){1, NAN}, NULL, "the score of token 1 is no number, after 0 tokens");
    fails(infinite, NULL, "the score of token 1 is infinite, after 0 tokens");
    fails(none, infinite, "the score of token 1 is no number, after 0 tokens");
    fails(zero, none, "each of 2 tokens is forbidden, after 0 tokens");
}

TEST_MAIN(ROW(tokens_come_as_often_as_they_should) ROW(positions_draw_independently)
              ROW(without_chance_the_best_is_taken) ROW(plain_scores_give_what_others_do)
                  ROW(scores_that_say_nothing_are_refused))
