// SPDX-License-Identifier: MIT
// --cards: numbers of cards, and how many runs a second a program on each of them makes.
//
// Each card has the program, its weights and inputs of its own, made as perf makes them for one.
// Every card runs alone first, then all run at a time, a thread for each, as often as --iterations
// says: so one sees what they take from each other (the host's threads, its memory, the links).
#include <pthread.h>

#include "driver.h"

enum { WARM = 3 };

bool read_cards(const struct options *o, struct cards *out)
{
    *out = (struct cards){.count = 0};
    const char *at = o->cards;
    for (bool more = at != NULL; more;) {
        char *end;
        const long number = strtol(at, &end, 10);
        more = *end == ',';
        bool good =
            end > at && (more || !*end) && number >= 0 && number <= 9999 && out->count < MOST_CARDS;
        for (int i = 0; good && i < out->count; i++)
            good = out->numbers[i] != (size_t)number;
        if (!good) {
            log_error(
                "--cards needs up to %d numbers, each once, with commas between them, not '%s'",
                MOST_CARDS, o->cards);
            return false;
        }
        out->numbers[out->count++] = (size_t)number;
        at = end + 1;
    }
    return true;
}

// --- one card ---

struct card {
    migraphx_program_t program;
    migraphx_program_parameters_t params;
    pthread_mutex_t *gate; // held until all may run; NULL: nobody else does
    int runs;
    double begin, end; // milliseconds
    bool good;
};

static bool run_often(struct card *c, int runs)
{
    for (int i = 0; i < runs; i++) {
        migraphx_arguments_t results = NULL;
        const migraphx_status status = migraphx_program_run(&results, c->program, c->params);
        migraphx_arguments_destroy(results);
        if (!OK(status))
            return false;
    }
    return true;
}

static void *work(void *card)
{
    struct card *c = card;
    if (c->gate) {
        pthread_mutex_lock(c->gate);
        pthread_mutex_unlock(c->gate);
    }
    c->begin = now_ms();
    c->good = run_often(c, c->runs);
    c->end = now_ms();
    return NULL;
}

static bool load(const struct options *o, size_t number, struct card *c)
{
    struct options of_card = *o;
    bool compiled = false;
    of_card.card = (int)number;
    if (!load_model(&of_card, &c->program) ||
        !OK(migraphx_program_is_compiled(&compiled, c->program)))
        return false;
    if (compiled) {
        log_error("--cards takes a model that is not compiled: a compiled one lies on one card");
        return false;
    }
    return quantize_model(&of_card, c->program) &&
           compile_model(&of_card, c->program, "gpu", false) && fix_sizes(&of_card, &c->program) &&
           make_inputs(&of_card, c->program, &c->params);
}

// --- all of them ---

static bool run_alone(struct card *each, struct cards *cards)
{
    for (int i = 0; i < cards->count; i++) {
        if (!run_often(&each[i], WARM))
            return false;
        work(&each[i]);
        if (!each[i].good)
            return false;
        cards->alone[i] = each[i].runs * 1e3 / (each[i].end - each[i].begin);
    }
    return true;
}

// From the first one's begin to the last one's end.
static bool reckon(const struct card *each, struct cards *cards)
{
    double begin = each[0].begin, end = each[0].end;
    for (int i = 0; i < cards->count; i++) {
        if (!each[i].good)
            return false;
        begin = each[i].begin < begin ? each[i].begin : begin;
        end = each[i].end > end ? each[i].end : end;
    }
    cards->together = cards->count * each[0].runs * 1e3 / (end - begin);
    return true;
}

static bool run_together(struct card *each, struct cards *cards)
{
    pthread_t threads[MOST_CARDS];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    int made = 0;
    pthread_mutex_lock(&gate);
    for (; made < cards->count; made++) {
        each[made].gate = &gate;
        if (pthread_create(&threads[made], NULL, work, &each[made]) != 0)
            break;
    }
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < made; i++)
        pthread_join(threads[i], NULL);
    if (made < cards->count)
        log_error("no threads to be had for %d cards", cards->count);
    return made == cards->count && reckon(each, cards);
}

bool time_cards(const struct options *o, struct cards *cards)
{
    struct card each[MOST_CARDS] = {{.program = NULL}};
    bool good = cards->count > 0;
    for (int i = 0; i < cards->count && good; i++) {
        log_info("Preparing card %zu ...", cards->numbers[i]);
        each[i].runs = o->iterations;
        good = load(o, cards->numbers[i], &each[i]);
    }
    work_begin("timing the cards", 0);
    good = good && run_alone(each, cards) && run_together(each, cards);
    work_end();
    for (int i = 0; i < cards->count; i++) {
        migraphx_program_parameters_destroy(each[i].params);
        migraphx_program_destroy(each[i].program);
    }
    return good;
}
