// SPDX-License-Identifier: MIT
// The whole test framework: CHECK-like macros, cases as functions, one line a case.
//
//     CASE(concat_joins_along_axis) { CHECK_INT(f(1), 2); }
//     TEST_MAIN(ROW(concat_joins_along_axis) ROW(another_case))
//
// A failed check prints file, line and both values and ends its case; the program goes on with the
// next one and exits with 1. With a case's name as argument only that one runs.
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rounds.h"

static int check_failures;

#define CASE(name) static void name(void)

#define CHECK_FAIL(...)                                                                            \
    do {                                                                                           \
        printf("%s:%d: ", __FILE__, __LINE__);                                                     \
        printf(__VA_ARGS__);                                                                       \
        printf("\n");                                                                              \
        check_failures++;                                                                          \
        return;                                                                                    \
    } while (0)

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            CHECK_FAIL("not true: %s", #condition);                                                \
    } while (0)

#define CHECK_INT(actual, expected)                                                                \
    do {                                                                                           \
        const long long a_ = (long long)(actual), e_ = (long long)(expected);                      \
        if (a_ != e_)                                                                              \
            CHECK_FAIL("%s is %lld, expected %lld", #actual, a_, e_);                              \
    } while (0)

#define CHECK_NEAR(actual, expected, tolerance)                                                    \
    do {                                                                                           \
        const double a_ = (actual), e_ = (expected);                                               \
        if (!(fabs(a_ - e_) <= (tolerance)) && !(isnan(a_) && isnan(e_)) && a_ != e_)              \
            CHECK_FAIL("%s is %.17g, expected %.17g", #actual, a_, e_);                            \
    } while (0)

#define CHECK_TEXT(actual, expected)                                                               \
    do {                                                                                           \
        const char *a_ = (actual), *e_ = (expected);                                               \
        if (strcmp(a_, e_) != 0)                                                                   \
            CHECK_FAIL("%s is\n<<%s>>\nexpected\n<<%s>>", #actual, a_, e_);                        \
    } while (0)

// `diag` is a struct mgx_diag the call has filled.
#define CHECK_OK(call, diag)                                                                       \
    do {                                                                                           \
        if ((call) != 0)                                                                           \
            CHECK_FAIL("%s: %s", #call, (diag).text);                                              \
    } while (0)

struct check_case {
    const char *name;
    void (*run)(void);
};

static inline int check_run(const struct check_case *cases, int argc, char **argv)
{
    int passed = 0, failed = 0;
    for (; cases->name; cases++) {
        if (argc > 1 && strcmp(argv[1], cases->name) != 0)
            continue;
        const int before = check_failures;
        cases->run();
        if (check_failures == before)
            passed++;
        else {
            failed++;
            printf("FAILED %s\n", cases->name);
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}

// TEST_MAIN(ROW(a) ROW(b)): lists the cases.
#define ROW(name) {#name, name},
#define TEST_MAIN(rows)                                                                            \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const struct check_case cases[] = {rows{NULL, NULL}};                               \
        return check_run(cases, argc, argv);                                                       \
    }
