// SPDX-License-Identifier: MIT
// Reading the text form: a cursor over bytes that need not end in NUL.
//
// Holds: at <= end; every function skips white space (a newline is white space: lines may be
// wrapped anywhere) before it looks. A failure says line, column, what was expected and what is
// there. Strings and lists that are returned lie in `arena`. Nothing recurses but shapes, whose
// depth is bounded. Cost: linear in the bytes read; the line is counted only on failure.
#pragma once

#include "base/array.h"
#include "ir/attr.h"
#include "ir/tensor.h"

struct mgx_scan {
    const char *text, *at, *end;
    bool comments; // '#' and "//" start a comment that ends with the line
    struct mgx_arena *arena;
    struct mgx_diag *diag;
};

// "line 3, column 7: expected <what> but found <...>".
enum mgx_status mgx_scan_expected(struct mgx_scan *s, const char *what);
// The same with a free message, at `at`.
enum mgx_status mgx_scan_fail(struct mgx_scan *s, const char *at, enum mgx_status status,
                              const char *fmt, ...) MGX_PRINTF(4, 5);
// Adds "in line 3" to a failure that another part recorded.
void mgx_scan_where(const struct mgx_scan *s, const char *at);

void mgx_scan_space(struct mgx_scan *s);
char mgx_scan_peek(struct mgx_scan *s);           // next byte, 0 at the end
bool mgx_scan_accept(struct mgx_scan *s, char c); // consumes it if it is next
bool mgx_scan_accept_word(struct mgx_scan *s, const char *word);
enum mgx_status mgx_scan_expect(struct mgx_scan *s, char c) MGX_NODISCARD;
enum mgx_status mgx_scan_int(struct mgx_scan *s, int64_t *out) MGX_NODISCARD;
enum mgx_status mgx_scan_double(struct mgx_scan *s, double *out) MGX_NODISCARD;
// A quoted string, or the bytes up to one of `stops` (a newline inside becomes a space).
enum mgx_status mgx_scan_string(struct mgx_scan *s, const char *stops,
                                const char **out) MGX_NODISCARD;
enum mgx_status mgx_scan_type(struct mgx_scan *s, int64_t *out) MGX_NODISCARD; // name or number

// "{a, b}" or "[a, b]": calls `item` for each until the list is closed; a trailing comma is
// allowed, and a single item without braces is a list of one.
enum mgx_status mgx_scan_list(struct mgx_scan *s,
                              enum mgx_status (*item)(struct mgx_scan *s, void *user),
                              void *user) MGX_NODISCARD;
// A list of entries of one size in the arena.
struct mgx_scan_array {
    MGX_ARRAY(void);
    size_t size; // of an entry
};
// The next entry, zeroed; NULL when out of memory (recorded).
void *mgx_scan_entry(struct mgx_scan *s, struct mgx_scan_array *array);
// The lists of attributes.
enum mgx_status mgx_scan_ints(struct mgx_scan *s, struct mgx_ints *out) MGX_NODISCARD;
enum mgx_status mgx_scan_doubles(struct mgx_scan *s, struct mgx_doubles *out) MGX_NODISCARD;
// A key of an object, with the ':' or '=' behind it.
enum mgx_status mgx_scan_key(struct mgx_scan *s, const char **out) MGX_NODISCARD;
// One value of whatever form, to be forgotten.
enum mgx_status mgx_scan_skip(struct mgx_scan *s) MGX_NODISCARD;
enum mgx_status mgx_scan_strings(struct mgx_scan *s, struct mgx_strings *out) MGX_NODISCARD;
enum mgx_status mgx_scan_shapes(struct mgx_scan *s, struct mgx_shapes *out) MGX_NODISCARD;
enum mgx_status mgx_scan_dims(struct mgx_scan *s, struct mgx_dims *out) MGX_NODISCARD;

// A shape as mgx_shape_print writes it, or as an object {type: ..., lens: ..., strides: ...}.
enum mgx_status mgx_scan_shape(struct mgx_scan *s, struct mgx_shape *out) MGX_NODISCARD;
// Attributes "a=1,b={2}" (or with ':') up to `close`, which is consumed; 0 is the end of the text.
enum mgx_status mgx_scan_attr(struct mgx_scan *s, const struct mgx_op *op, char close,
                              void **out) MGX_NODISCARD;
// The values of a literal after its "{", up to and with its "}"; "..." gives zeros.
enum mgx_status mgx_scan_literal(struct mgx_scan *s, const struct mgx_shape *shape,
                                 struct mgx_tensor *out) MGX_NODISCARD;
