// SPDX-License-Identifier: MIT
// Sums over two emulated cards (device/emulated), which CMake puts into LD_LIBRARY_PATH; without them
// there is nothing to test.
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "base/half.h"
#include "targets/gpu/machine/exchange.h"
#include "targets/target.h"

#include "targets/cpu/program.h"

enum { CARDS = 2 };

static bool find_emulated(void)
{
    void *library = dlopen("libamdhip64.so.7", RTLD_NOW);
    return library && dlsym(library, "standin_live");
}

struct side {
    struct mgx_exchange *exchange;
    int card;
    const char *text; // with %d for the card
    struct mgx_program *p;
    struct mgx_tensor x, y;
    bool good;
};

static enum mgx_status compile(struct side *s, struct mgx_diag *diag)
{
    char text[2048], device[8];
    snprintf(device, sizeof device, "hip:%d", s->card);
    snprintf(text, sizeof text, s->text, s->card, s->card);
    const struct mgx_compile_options options = {
        .offload_copy = true, .exchange = s->exchange, .own = MGX_SETTINGS({"device", device})};
    TRY(mgx_program_parse(&s->p, &mgx_ops, text, strlen(text), diag));
    return mgx_program_compile(s->p, mgx_target_find("gpu"), &options, diag);
}

static void *run(void *user)
{
    struct side *s = user;
    struct mgx_diag diag = {.status = MGX_OK};
    struct mgx_named_tensor param = {"x", s->x};
    struct mgx_run r = {.params = &param, .param_count = 1, .results = &s->y, .result_count = 1};
    s->good = mgx_program_run(s->p, &r, &diag) == MGX_OK;
    if (!s->good)
        printf("%s\n", diag.text);
    return NULL;
}

static bool run_both(struct side *s)
{
    pthread_t other;
    mgx_tensor_release(&s[0].y);
    mgx_tensor_release(&s[1].y);
    pthread_create(&other, NULL, run, &s[1]);
    run(&s[0]);
    pthread_join(other, NULL);
    return s[0].good && s[1].good;
}

static bool begin(struct side *s, const char *text, struct mgx_exchange **exchange)
{
    struct mgx_diag diag = {.status = MGX_OK};
    bool good = gpu_exchange_create("hip", (const int[]){0, 1}, CARDS, exchange, &diag) == MGX_OK;
    for (int i = 0; i < CARDS && good; i++) {
        s[i] = (struct side){.exchange = *exchange, .card = i, .text = text};
        good = compile(&s[i], &diag) == MGX_OK &&
               mgx_tensor_create(&s[i].x, &mgx_find_parameter(mgx_program_main(s[i].p), "x")->shape,
                                 &diag) == MGX_OK;
    }
    if (!good)
        printf("%s\n", diag.text);
    return good;
}

static void end(struct side *s, struct mgx_exchange *exchange)
{
    for (int i = 0; i < CARDS; i++) {
        mgx_tensor_release(&s[i].x);
        mgx_tensor_release(&s[i].y);
        mgx_program_destroy(s[i].p);
    }
    exchange->destroy(exchange);
}

static double value(int card, int round, int64_t i)
{
    return (double)((i * 7 + card * 13 + round) % 61) - 30;
}

static void fill(struct side *s, int round)
{
    for (int c = 0; c < CARDS; c++)
        for (int64_t i = 0; i < mgx_shape_elements(&s[c].x.shape); i++)
            mgx_store_double(s[c].x.shape.type, s[c].x.data, i, value(c, round, i));
}

// What differs from the sum times `times`, of both cards.
static int64_t count_wrong(const struct side *s, int round, double times)
{
    int64_t wrong = 0;
    for (int c = 0; c < CARDS; c++)
        for (int64_t i = 0; i < mgx_shape_elements(&s[c].y.shape); i++)
            wrong += mgx_load_double(s[c].y.shape.type, s[c].y.data, i) !=
                     times * (value(0, round, i) + value(1, round, i));
    return wrong;
}

static void check_sums(const char *text, double times)
{
    struct side s[CARDS] = {{0}};
    struct mgx_exchange *exchange = NULL;
    if (!find_emulated())
        return;
    CHECK(begin(s, text, &exchange));
    for (int round = 0; round < 3; round++) {
        fill(s, round);
        CHECK(run_both(s));
        CHECK_INT(count_wrong(s, round, times), 0);
    }
    end(s, exchange);
}

CASE(halves_are_added)
{
    check_sums("module: \"main\"\nx = @param:x -> half_type, {3, 70}, {70, 1}\n"
               "a = sum_over_cards[cards=2,card=%d](x)\n",
               1);
}

CASE(floats_are_added)
{
    check_sums("module: \"main\"\nx = @param:x -> float_type, {333}, {1}\n"
               "a = sum_over_cards[cards=2,card=%d](x)\n",
               1);
}

CASE(sums_follow_one_another)
{
    check_sums("module: \"main\"\nx = @param:x -> float_type, {2, 300}, {300, 1}\n"
               "a = sum_over_cards[cards=2,card=%d](x)\n"
               "b = sum_over_cards[cards=2,card=%d](a,a)\n",
               2);
}

CASE(what_is_larger_than_a_box_takes_several_sums)
{
    check_sums("module: \"main\"\nx = @param:x -> half_type, {1100000}, {1}\n"
               "a = sum_over_cards[cards=2,card=%d](x)\n",
               1);
}

static void *stop_later(void *user)
{
    struct mgx_exchange *exchange = user;
    usleep(20000);
    exchange->stop(exchange);
    return NULL;
}

CASE(a_card_that_is_alone_does_not_wait_for_ever)
{
    struct side s[CARDS] = {{0}};
    struct mgx_exchange *exchange = NULL;
    struct mgx_diag diag = {.status = MGX_OK};
    pthread_t other;
    if (!find_emulated())
        return;
    CHECK(begin(s,
                "module: \"main\"\nx = @param:x -> float_type, {64}, {1}\n"
                "a = sum_over_cards[cards=2,card=%d](x)\n",
                &exchange));
    fill(s, 0);
    pthread_create(&other, NULL, stop_later, exchange);
    run(&s[0]);
    pthread_join(other, NULL);
    CHECK(s[0].good && isnan(mgx_load_double(MGX_FLOAT, s[0].y.data, 63)));
    CHECK_OK(exchange->restart(exchange, &diag), diag);
    CHECK(run_both(s));
    CHECK_INT(count_wrong(s, 0, 1), 0);
    end(s, exchange);
}

CASE(cards_that_cannot_go_together_are_refused)
{
    struct mgx_exchange *exchange = NULL;
    struct mgx_diag diag = {.status = MGX_OK};
    if (!find_emulated())
        return;
    CHECK(gpu_exchange_create("hip", (const int[]){1, 1}, 2, &exchange, &diag) != MGX_OK);
    CHECK(strstr(diag.text, "the same"));
    mgx_diag_clear(&diag);
    CHECK(gpu_exchange_create("hip", (const int[]){0, 5}, 2, &exchange, &diag) != MGX_OK);
    CHECK(!exchange);
}

CASE(a_part_needs_the_cards_it_is_of)
{
    struct side s = {.text = "module: \"main\"\nx = @param:x -> float_type, {64}, {1}\n"
                             "a = sum_over_cards[cards=2,card=%d](x)\n"};
    struct mgx_diag diag = {.status = MGX_OK};
    if (!find_emulated())
        return;
    CHECK_OK(compile(&s, &diag), diag);
    CHECK_OK(mgx_tensor_create(&s.x, &mgx_find_parameter(mgx_program_main(s.p), "x")->shape, &diag),
             diag);
    memset(s.x.data, 0, 64 * sizeof(float));
    run(&s); // says why
    CHECK(!s.good);
    mgx_tensor_release(&s.x);
    mgx_program_destroy(s.p);
}

TEST_MAIN(ROW(halves_are_added) ROW(floats_are_added) ROW(sums_follow_one_another)
              ROW(what_is_larger_than_a_box_takes_several_sums)
                  ROW(a_card_that_is_alone_does_not_wait_for_ever)
                      ROW(cards_that_cannot_go_together_are_refused)
                          ROW(a_part_needs_the_cards_it_is_of))
