// SPDX-License-Identifier: MIT
// A long text takes memory for its states and its tokens, for what the program remembers of lengths, which
// is bounded (plan/choice.h), and for nothing else: a decoder of each kind writes a thousand tokens, or as
// many as the argument --tokens says, and prints what the process has.
#include <malloc.h>

#include "check.h"
#include "generate/decoders.h"
#include "plan/choice.h"
#include "targets/sizes.h"
#include "test_resident.h"

// What is left may differ by so much between the first part of a text and its end, and by so much more
// for each token: lists that double; and what the process has, which is pages with holes.
enum { SLACK = 64 << 10, SLACK_EACH = 16, PAGES = 2 << 20, PAGES_EACH = 1 << 10, PARTS = 4 };

static int64_t tokens = 1000;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

static double heap(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    return (double)mallinfo2().uordblks;
#else
    return 0;
#endif
}

struct use {
    double heap, resident; // beside what is counted
    double plans;
};

static struct use use_of(struct mgx_generator *g, int64_t size)
{
    const struct mgx_generator_model *m = mgx_generator_model_of(g);
    const struct mgx_target *cpu = mgx_target_find("cpu");
    const struct mgx_program *last = mgx_sizes_last(m->program->executable->sizes);
    const double plans = (double)(cpu->bytes(m->program) + (last ? cpu->bytes(last) : 0));
    struct mgx_generator_statistics done;
    mgx_generator_statistics_of(g, &done);
    const double counted = plans + done.state_bytes + 8 * (double)size;
    return (struct use){heap() - counted, (double)resident() - counted, plans};
}

static void check_flat(const char *name, const struct use *first, const struct use *last)
{
    if (last->heap > first->heap + SLACK + SLACK_EACH * (double)tokens)
        CHECK_FAIL("%s: %.0f KiB of the heap became %.0f", name, first->heap / 1024,
                   last->heap / 1024);
    if (last->resident > first->resident + PAGES + PAGES_EACH * (double)tokens)
        CHECK_FAIL("%s: %.0f resident KiB became %.0f", name, first->resident / 1024,
                   last->resident / 1024);
    CHECK(last->plans < 2 * MGX_PLAN_CHOICE_BYTES);
}

static void write_text(const char *body, const char *name)
{
    struct mgx_generator_model *m = must_make(body);
    struct mgx_generator *g = NULL;
    struct mgx_diag diag;
    size_t text;
    struct use first = {0}, last = {0};
    mgx_diag_clear(&diag);
    CHECK_OK(mgx_generator_create(&g, m, &diag), diag);
    CHECK_OK(mgx_generator_add(g, &text, &diag), diag);
    CHECK_OK(mgx_generator_append(g, text, (int64_t[]){2}, 1, &diag), diag);
    for (int64_t i = 1; i <= tokens; i++) {
        int64_t token;
        CHECK_OK(mgx_generator_next(g, &text, 1, &token, &diag), diag);
        if (i % (tokens / PARTS))
            continue;
        last = use_of(g, i);
        first = i == tokens / PARTS ? last : first;
        printf("%s: %lld tokens, %.0f KiB of plans, %.0f KiB beside, %.0f KiB resident\n", name,
               (long long)i, last.plans / 1024, last.heap / 1024, (double)resident() / 1024);
    }
    if (!sanitized) // which keeps what is freed
        check_flat(name, &first, &last);
    mgx_generator_destroy(g);
    mgx_generator_model_release(m);
}

CASE(memory_of_a_long_text_is_that_of_its_states)
{
    static const char *const names[] = {"room", "growing", "fixed"};
    for (int i = 0; i < MGX_COUNT(bodies); i++)
        write_text(bodies[i], names[i]);
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        ROW(memory_of_a_long_text_is_that_of_its_states){NULL, NULL}};
    if (argc == 3 && strcmp(argv[1], "--tokens") == 0) {
        tokens = atoll(argv[2]);
        argc = 1;
    }
    return check_run(cases, argc, argv);
}
