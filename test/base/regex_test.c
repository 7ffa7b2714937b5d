// SPDX-License-Identifier: MIT
// Expected answers are those of Python's re.fullmatch, worked out by hand where the two syntaxes
// differ.
#include "base/regex.h"

#include "check.h"

static int match(const char *pattern, const char *text)
{
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    struct mgx_diag diag = {0};
    struct mgx_regex *regex;
    bool yes = false;
    int answer = -1;
    if (mgx_regex_compile(&arena, pattern, strlen(pattern), &regex, &diag) == MGX_OK &&
        mgx_regex_match(&arena, regex, text, strlen(text), &yes, &diag) == MGX_OK)
        answer = yes;
    mgx_arena_fini(&arena);
    return answer;
}

// "begin-end" of the first and longest match, "-" without one.
static const char *search(const char *pattern, const char *text, size_t from, char out[32])
{
    struct mgx_arena arena;
    mgx_arena_init(&arena);
    struct mgx_diag diag = {0};
    struct mgx_regex *regex;
    size_t begin, end;
    snprintf(out, 32, "failed");
    if (mgx_regex_compile(&arena, pattern, strlen(pattern), &regex, &diag) == MGX_OK &&
        mgx_regex_search(&arena, regex, text, strlen(text), from, &begin, &end, &diag) == MGX_OK)
        snprintf(out, 32, end == (size_t)-1 ? "-" : "%zu-%zu", begin, end);
    mgx_arena_fini(&arena);
    return out;
}

CASE(searches_find_the_first_and_longest)
{
    static const struct {
        const char *pattern, *text;
        size_t from;
        const char *expected;
    } cases[] = {
        {"a+", "baac", 0, "1-3"},  {"a+", "baac", 2, "2-3"},    {"a+", "baac", 3, "-"},
        {"a|ab", "cab", 0, "1-3"}, {"x*", "ab", 0, "0-0"},      {"^a", "ba", 1, "-"},
        {"c$", "cbc", 0, "2-3"},   {".", "\xc3\xa9", 0, "0-2"}, {"b", "", 0, "-"},
    };
    char out[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_TEXT(search(cases[i].pattern, cases[i].text, cases[i].from, out), cases[i].expected);
}

CASE(full_matches)
{
    static const struct {
        const char *pattern, *text;
        int expected;
    } cases[] = {
        {"", "", 1},
        {"", "a", 0},
        {"a", "a", 1},
        {"a", "ab", 0},
        {"a*", "aaaa", 1},
        {"a*", "", 1},
        {"a+", "", 0},
        {"a?b", "b", 1},
        {"a|b|c", "c", 1},
        {"a|b|c", "d", 0},
        {"(ab|c)*d", "ababcd", 1},
        {"a{2,3}", "a", 0},
        {"a{2,3}", "aa", 1},
        {"a{2,3}", "aaa", 1},
        {"a{2,3}", "aaaa", 0},
        {"a{2}", "aa", 1},
        {"a{2,}", "aaaaa", 1},
        {"a{0,2}", "", 1},
        {"a{0,2}b", "aab", 1},
        {"a{0,2}b", "aaab", 0},
        {"(a|b){3}", "aba", 1},
        {"(a|b){3}", "abab", 0},
        {"[a-c]+", "abcabc", 1},
        {"[^a-c]", "d", 1},
        {"[^a-c]", "b", 0},
        {"[]a]", "]", 1},
        {"\\d+", "0129", 1},
        {"\\D", "x", 1},
        {"\\w+\\.\\w+", "a_1.b", 1},
        {".", "\n", 0},
        {".", "\xC3\xA9", 1},
        {"\xC3\xA9+", "\xC3\xA9\xC3\xA9", 1},
        {"[\xCE\xB1-\xCF\x89]+", "\xCE\xB2\xCE\xB3", 1},
        {"^abc$", "abc", 1},
        {"a.*?b", "axxb", 1},
        {"(?:x|y)z", "yz", 1},
        {"a{", "a{", 1},
        {"(a*)*", "aaaa", 1},
        {"(a|aa)+", "aaaaa", 1},
        {"(a{2}){2}", "aaaa", 1},
        {"(a{2}){2}", "aaa", 0},
        {"(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)", "account@gmail.com", 1},
        {"(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)", "account@hotmail.com", 0},
        {"www\\.[\\w.-]+\\.\\bcom\\b", "www.google.com", 1},
        {"www\\.[\\w.-]+\\.\\bcom\\b", "www.googlexcom", 0},
        {"a\\b", "a", 1},
        {"a\\bb", "ab", 0},
        {"a\\Bb", "ab", 1},
        {"a^b", "ab", 0},
        {"(^a|b)$", "b", 1},
        {"(a$|b)c", "ac", 0},
        {"\\w+[.@]{1}\\w+", "a@b", 1},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
        if (match(cases[i].pattern, cases[i].text) != cases[i].expected)
            CHECK_FAIL("\"%s\" on \"%s\" is %d", cases[i].pattern, cases[i].text,
                       match(cases[i].pattern, cases[i].text));
}

CASE(bad_patterns_are_refused)
{
    static const char *const bad[] = {"(",  ")",     "[",   "*a",      "a{3,2}",
                                      "\\", "[b-a]", "\\1", "a{2000}", "(((a{1000}){1000}){1000})"};
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++)
        if (match(bad[i], "a") != -1)
            CHECK_FAIL("\"%s\" was accepted", bad[i]);
}

CASE(no_blow_up)
{
    char pattern[200] = "", text[64] = "";
    for (int i = 0; i < 25; i++)
        strcat(pattern, "a?");
    for (int i = 0; i < 25; i++) {
        strcat(pattern, "a");
        strcat(text, "a");
    }
    CHECK_INT(match(pattern, text), 1);
}

TEST_MAIN(ROW(full_matches) ROW(searches_find_the_first_and_longest) ROW(bad_patterns_are_refused)
              ROW(no_blow_up))
