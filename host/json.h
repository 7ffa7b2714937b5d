// SPDX-License-Identifier: MIT
// Reading the JSON that hosts write: configurations of models, tables of ranges.
//
// A text becomes a flat list of values, each of which knows its place in the text; what is asked
// for is looked up by key and copied out. Hosts write such texts, so they are small, but nothing
// is believed: depth and size are bounded, and a text that is no JSON is an error.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT };

struct json {
    enum json_kind kind;
    const char *text; // where it begins, borrowed; of a text behind the quote
    size_t size;      // bytes there; of a text without its quotes
    const char *key;  // of a member of an object, NULL else
    size_t key_size;
    size_t next; // number of the value behind this one and all within it
};

struct json_list {
    struct json *values; // the first is the whole
    size_t count, room;
};

// False: no memory, or no JSON. The text is borrowed.
bool json_read(struct json_list *out, const char *text, size_t size);
void json_fini(struct json_list *);

// The member of that name; NULL where there is none, and of NULL. "a.b" is b of a.
const struct json *json_find(const struct json_list *, const struct json *, const char *path);
// The members of a list or an object one after the other, from NULL on; NULL after the last.
const struct json *json_step(const struct json_list *, const struct json *of,
                             const struct json *last);
size_t json_size(const struct json_list *, const struct json *);

// A number, also one that is written as a text.
bool json_integer(const struct json *, int64_t *out);
bool json_number(const struct json *, double *out); // not as a text; finite
bool json_is_true(const struct json *);
// Compares a text, or a key.
bool json_equal(const struct json *, const char *text);
bool json_key_equal(const struct json *, const char *text);
// A copy of a text without its escapes, of a key, of whatever else as it is written; free() it.
// NULL without memory, and of NULL.
char *json_copy(const struct json *);
char *json_copy_key(const struct json *);
