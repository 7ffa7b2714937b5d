// SPDX-License-Identifier: MIT
// Passes that are spared where a program of the same kind needed none, and histories that do not fit.
#include "pass/engine/history.h"

#include "check.h"
#include "pass/pass.h"

// Of an odd length nothing is a special case. `extra` stands before the return.
static struct mgx_program *make(int length, const char *extra)
{
    char text[1024];
    snprintf(text, sizeof text,
             "module: \"main\"\n"
             "x = @param:x -> float_type, {%d, 3}, {3, 1}\n"
             "a = identity(x)\n"
             "b = transpose[permutation={1, 0}](a)\n"
             "c = transpose[permutation={1, 0}](b)\n"
             "d = neg(c)\n"
             "e = neg(d)\n"
             "f = relu(e)\n"
             "%s"
             "z = @return(%s)\n",
             length, extra, *extra ? "h" : "f");
    struct mgx_program *p = NULL;
    struct mgx_diag diag = {0};
    if (mgx_program_parse(&p, &mgx_ops, text, strlen(text), &diag) != MGX_OK)
        printf("%s\n", diag.text);
    return p;
}

static void count(void *user, const char *pass, const struct mgx_program *p, bool changed,
                  double microseconds)
{
    (void)pass, (void)p, (void)changed, (void)microseconds;
    ++*(int *)user;
}

// How many passes ran, -1 if one failed; `text` is what they left.
static int simplify(int length, const char *extra, struct mgx_pass_trail *trail,
                    struct mgx_str *text)
{
    int ran = 0;
    struct mgx_diag diag = {0};
    struct mgx_program *p = make(length, extra);
    const struct mgx_pass_options options = {
        .trail = trail, .trace = count, .trace_user = &ran, .verify = true};
    const enum mgx_status status = mgx_run_passes(p, mgx_pipeline_simplify, &options, &diag);
    mgx_program_print(text, p);
    mgx_program_destroy(p);
    return status == MGX_OK ? ran : -1;
}

// Without a trail, which is the meaning; with one that follows what is known.
static void compare(int length, const char *extra, const struct mgx_pass_history *const *known,
                    int known_count, bool spares)
{
    static struct mgx_pass_history made;
    struct mgx_str full = {0}, spared = {0};
    struct mgx_pass_trail trail = {.known = known, .known_count = known_count, .made = &made};
    made.count = made.rule_count = 0;
    const int all = simplify(length, extra, NULL, &full);
    const int some = simplify(length, extra, &trail, &spared);
    CHECK_TEXT(mgx_str_text(&spared), mgx_str_text(&full));
    CHECK(spares ? 2 * some < all && !trail.lost : some >= all / 2 && trail.lost);
    mgx_str_fini(&spared);
    mgx_str_fini(&full);
}

CASE(passes_that_found_nothing_are_spared)
{
    static const char longer[] = "g = convert[target_type=float_type](f)\nh = neg(g)\n";
    static struct mgx_pass_history one, two;
    const struct mgx_pass_history *const known[] = {&one, &two};
    struct mgx_pass_trail first = {.made = &one}, second = {.made = &two};
    struct mgx_str text = {0};
    const int all = simplify(5, "", NULL, &text), noting = simplify(5, "", &first, &text);
    CHECK_INT(noting, all);
    CHECK_INT(one.count, all);
    CHECK(one.rule_count > 0 && first.lost);
    compare(7, "", known, 1, true);
    compare(1, "", known, 1, true);
    compare(7, longer, known, 1, false); // another way
    (void)simplify(5, longer, &second, &text);
    compare(7, longer, known, 2, true);
    compare(7, "", known, 2, true);
    mgx_str_fini(&text);
}

static int runs;

static enum mgx_status look(struct mgx_pass_call *c, struct mgx_module *m)
{
    (void)c, (void)m;
    runs++;
    return MGX_OK;
}

CASE(a_pass_that_goes_by_sizes_always_runs)
{
    static const struct mgx_pass by_size = {
        .name = "by_size", .meaning = "looks", .module = look, .by_size = true};
    static const struct mgx_pass plain = {.name = "plain", .meaning = "looks", .module = look};
    static const struct mgx_pass *const passes[] = {&by_size, &plain, NULL};
    static struct mgx_pass_history history, made;
    const struct mgx_pass_history *const known[] = {&history};
    struct mgx_pass_trail first = {.made = &history};
    struct mgx_pass_trail second = {.known = known, .known_count = 1, .made = &made};
    struct mgx_diag diag = {0};
    struct mgx_program *p = make(5, "");
    CHECK_OK(mgx_run_passes(p, passes, &(struct mgx_pass_options){.trail = &first}, &diag), diag);
    CHECK_INT(runs, 2);
    CHECK_OK(mgx_run_passes(p, passes, &(struct mgx_pass_options){.trail = &second}, &diag), diag);
    CHECK_INT(runs, 3);
    mgx_program_destroy(p);
}

CASE(a_program_of_another_size_is_not_spared)
{
    static const struct mgx_pass plain = {.name = "plain", .meaning = "looks", .module = look};
    static const struct mgx_pass *const passes[] = {&plain, NULL};
    static struct mgx_pass_history history, made;
    const struct mgx_pass_history *const known[] = {&history};
    struct mgx_pass_trail first = {.made = &history};
    struct mgx_pass_trail second = {.known = known, .known_count = 1, .made = &made};
    struct mgx_diag diag = {0};
    struct mgx_program *p = make(5, ""), *q = make(5, "g = abs(f)\nh = neg(g)\n");
    CHECK_OK(mgx_run_passes(p, passes, &(struct mgx_pass_options){.trail = &first}, &diag), diag);
    runs = 0;
    CHECK_OK(mgx_run_passes(q, passes, &(struct mgx_pass_options){.trail = &second}, &diag), diag);
    CHECK_INT(runs, 1);
    CHECK(second.lost);
    mgx_program_destroy(q);
    mgx_program_destroy(p);
}

// More passes than a history has room for: those behind its end run.
CASE(a_history_ends)
{
    static const struct mgx_pass *passes[MGX_PASS_EVENTS + 10 + 1];
    static struct mgx_pass_history history, made;
    static const struct mgx_pass plain = {.name = "plain", .meaning = "looks", .module = look};
    const struct mgx_pass_history *const known[] = {&history};
    struct mgx_pass_trail first = {.made = &history};
    struct mgx_pass_trail second = {.known = known, .known_count = 1, .made = &made};
    struct mgx_diag diag = {0};
    struct mgx_program *p = make(5, "");
    for (int i = 0; i < MGX_PASS_EVENTS + 10; i++)
        passes[i] = &plain;
    CHECK_OK(mgx_run_passes(p, passes, &(struct mgx_pass_options){.trail = &first}, &diag), diag);
    runs = 0;
    CHECK_OK(mgx_run_passes(p, passes, &(struct mgx_pass_options){.trail = &second}, &diag), diag);
    CHECK_INT(runs, 10);
    CHECK(second.lost);
    mgx_program_destroy(p);
}

TEST_MAIN(ROW(passes_that_found_nothing_are_spared) ROW(a_pass_that_goes_by_sizes_always_runs)
              ROW(a_program_of_another_size_is_not_spared) ROW(a_history_ends))
