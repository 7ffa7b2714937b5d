// SPDX-License-Identifier: MIT
// A small regular expression matcher in the syntax of RE2's common part: full matches, and the
// first and longest one.
//
// Literals, . [...] [^...] ranges, \d \w \s \b-free classes, ( ) groups (also (?:...)), |, * + ?
// {m,n} and their lazy forms (the same language), ^ and $ at the ends, escapes, UTF-8 by code
// points. No back-references, so matching is linear: O(text * states), with a bound on states. No
// recursion on the pattern's depth beyond a fixed limit.
#pragma once

#include "base/arena.h"

struct mgx_regex; // compiled, in an arena

// MGX_INVALID with what is wrong and where; MGX_LIMIT for patterns of too many states.
enum mgx_status mgx_regex_compile(struct mgx_arena *arena, const char *pattern, size_t size,
                                  struct mgx_regex **out, struct mgx_diag *diag) MGX_NODISCARD;
// Does the whole text match? `arena` holds two state sets during the call.
enum mgx_status mgx_regex_match(struct mgx_arena *arena, const struct mgx_regex *regex,
                                const char *text, size_t size, bool *out,
                                struct mgx_diag *diag) MGX_NODISCARD;
// The first match from byte `from` on, the longest that begins there: [*begin, *end). *end is
// (size_t)-1 where there is none. What is before `from` counts as white space. Cost: as many
// matches as there are places to begin.
enum mgx_status mgx_regex_search(struct mgx_arena *arena, const struct mgx_regex *regex,
                                 const char *text, size_t size, size_t from, size_t *begin,
                                 size_t *end, struct mgx_diag *diag) MGX_NODISCARD;
