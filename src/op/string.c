// SPDX-License-Identifier: MIT
// Operators on strings: string_concat, string_equal, string_split, string_normalizer,
// regex_full_match.
//
// New bytes lie in the run's string arena; what only moves keeps its pointers. Text is UTF-8;
// malformed bytes are kept.
#include <assert.h>
#include <string.h>

#include "base/regex.h"
#include "base/utf8.h"
#include "op/rule/rule.h"

static enum mgx_status require_strings(struct mgx_shape_call *c)
{
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i]->type != MGX_STRING)
            return mgx_fail(c->diag, MGX_INVALID, "%s: input %d is %s, not string_type",
                            c->op->name, i, mgx_type_name(c->in[i]->type));
    return MGX_OK;
}

static enum mgx_type bool_type(const struct mgx_shape_call *c)
{
    (void)c;
    return MGX_BOOL;
}

static struct mgx_string element(const struct mgx_tensor *t, int64_t i)
{
    assert(i >= 0 && t->shape.type == MGX_STRING);
    return ((const struct mgx_string *)t->data)[mgx_shape_index(&t->shape, i)];
}

static int compare(struct mgx_string a, struct mgx_string b)
{
    const size_t n = a.size < b.size ? a.size : b.size;
    const int order = n ? memcmp(a.text, b.text, n) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

// --- string_concat, string_equal ---

static enum mgx_status concat_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(require_strings(c));
    TRY(mgx_require_same_lens(c));
    *out = mgx_pointwise_shape(c, MGX_STRING);
    return MGX_OK;
}

static enum mgx_status concat(struct mgx_compute_call *c)
{
    const int64_t count = mgx_shape_elements(&c->out->shape);
    for (int64_t i = 0; i < count; i++) {
        const struct mgx_string a = element(c->in[0], i), b = element(c->in[1], i);
        char *joined;
        TRY(mgx_eval_text(c, a.size + b.size, &joined));
        if (a.size)
            memcpy(joined, a.text, a.size);
        if (b.size)
            memcpy(joined + a.size, b.text, b.size);
        ((struct mgx_string *)c->out->data)[mgx_shape_index(&c->out->shape, i)] =
            (struct mgx_string){joined, a.size + b.size};
    }
    return MGX_OK;
}

static enum mgx_status equal_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(require_strings(c));
    TRY(mgx_require_same_lens(c));
    *out = mgx_pointwise_shape(c, MGX_BOOL);
    return MGX_OK;
}

static enum mgx_status equal(struct mgx_compute_call *c)
{
    const int64_t count = mgx_shape_elements(&c->out->shape);
    for (int64_t i = 0; i < count; i++)
        mgx_store_int(MGX_BOOL, c->out->data, mgx_shape_index(&c->out->shape, i),
                      compare(element(c->in[0], i), element(c->in[1], i)) == 0);
    return MGX_OK;
}

const struct mgx_op mgx_op_string_concat = {
    .name = "string_concat",
    .meaning = "x followed by y",
    .in_min = 2,
    .in_max = 2,
    .shape = concat_shape,
    .compute = concat,
};

const struct mgx_op mgx_op_string_equal = {
    .name = "string_equal",
    .meaning = "x == y",
    .in_min = 2,
    .in_max = 2,
    .shape = equal_shape,
    .unranked_type = bool_type,
    .compute = equal,
};

// --- string_split ---
// Parts of every string along a new last axis, padded with empty strings, and how many there are.
// Without a delimiter runs of white space separate and none is empty; maxsplit < 0 is no limit.

struct split {
    const char *delimiter;
    int64_t maxsplit;
};

static const struct mgx_field split_fields[] = {
    MGX_TEXT(struct split, delimiter), MGX_INT(struct split, maxsplit), {0}};
static const struct split split_defaults = {.delimiter = "", .maxsplit = -1};

static enum mgx_status split_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    TRY(require_strings(c));
    const struct mgx_shape *x = c->in[0];
    if (x->rank == MGX_MAX_RANK)
        return mgx_fail(c->diag, MGX_LIMIT, "string_split: input has rank %d already", x->rank);
    struct mgx_shape *sub = MGX_NEW_ARRAY(c->arena, struct mgx_shape, 2);
    struct mgx_dim *dims = MGX_NEW_ARRAY(c->arena, struct mgx_dim, x->rank + 1);
    if (!sub || !dims)
        return mgx_fail_memory(c->diag);
    *out = mgx_shape_tuple(sub, 2);
    if (x->unranked) {
        sub[0] = *x;
        sub[1] = mgx_shape_unranked(MGX_INT64);
        return MGX_OK;
    }
    for (int i = 0; i < x->rank; i++)
        dims[i] = mgx_shape_dim(x, i);
    dims[x->rank] = (struct mgx_dim){.min = 0, .max = MGX_DIM_ANY};
    sub[0] = mgx_shape_from_dims(MGX_STRING, x->rank + 1, dims);
    sub[1] = mgx_shape_retype(x, MGX_INT64);
    return MGX_OK;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// The next part of *rest; false when there is none. `last`: take all that is left.
static bool next_part(struct mgx_string *rest, struct mgx_string by, bool last,
                      struct mgx_string *part)
{
    if (!rest->text)
        return false;
    if (!by.size)
        while (rest->size && is_space(*rest->text))
            rest->text++, rest->size--;
    if (!by.size && !rest->size)
        return false;
    size_t end = 0;
    while (end < rest->size && !last &&
           !(by.size
                 ? rest->size - end >= by.size && memcmp(rest->text + end, by.text, by.size) == 0
                 : is_space(rest->text[end])))
        end++;
    *part = (struct mgx_string){rest->text, last ? rest->size : end};
    if (last && !by.size)
        while (part->size && is_space(part->text[part->size - 1]))
            part->size--;
    if (last || end == rest->size) {
        rest->text = NULL;
    } else {
        rest->text += end + (by.size ? by.size : 1);
        rest->size -= end + (by.size ? by.size : 1);
    }
    return true;
}

// Parts of one string into `out` (NULL: only count), at most `room`.
static int64_t split_one(const struct split *a, struct mgx_string s, struct mgx_string *out)
{
    const struct mgx_string by = {a->delimiter, strlen(a->delimiter)};
    struct mgx_string part;
    int64_t count = 0;
    if (!s.text)
        s.text = "";
    while (next_part(&s, by, a->maxsplit >= 0 && count == a->maxsplit, &part)) {
        if (out)
            out[count] = part;
        count++;
    }
    return count;
}

static enum mgx_status split(struct mgx_compute_call *c)
{
    const struct split *a = c->attr;
    const struct mgx_tensor *x = c->in[0];
    const int64_t count = mgx_shape_elements(&x->shape);
    int64_t most = 0, lens[MGX_MAX_RANK];
    for (int64_t i = 0; i < count; i++) {
        const int64_t parts = split_one(a, element(x, i), NULL);
        most = parts > most ? parts : most;
    }
    for (int i = 0; i < x->shape.rank; i++)
        lens[i] = x->shape.lens[i];
    lens[x->shape.rank] = most;
    const struct mgx_shape shape = mgx_shape_make(MGX_STRING, x->shape.rank + 1, lens);
    const struct mgx_shape counts = mgx_shape_make(MGX_INT64, x->shape.rank, lens);
    struct mgx_tensor out[2] = {{.data = NULL}};
    enum mgx_status status = mgx_tensor_create(&out[0], &shape, c->diag);
    if (status == MGX_OK)
        status = mgx_tensor_create(&out[1], &counts, c->diag);
    if (status != MGX_OK) {
        mgx_tensor_release(&out[0]);
        return status;
    }
    for (int64_t i = 0; i < count; i++)
        ((int64_t *)out[1].data)[i] =
            split_one(a, element(x, i), (struct mgx_string *)out[0].data + i * most);
    return mgx_tensor_group(c->out, out, 2, false, c->diag);
}

const struct mgx_op mgx_op_string_split = {
    .name = "string_split",
    .meaning = "parts between delimiters, and their number",
    .fields = split_fields,
    .attr_size = sizeof(struct split),
    .defaults = &split_defaults,
    .in_min = 1,
    .in_max = 1,
    .flags = MGX_OP_UNRANKED,
    .shape = split_shape,
    .compute = split,
};

// --- string_normalizer ---
// Drops stop words, then maps case. A tensor that loses all its words keeps one empty string.

struct normalizer {
    const char *case_change_action; // NONE, LOWER, UPPER
    bool is_case_sensitive;
    struct mgx_strings stopwords;
};

static const struct mgx_field normalizer_fields[] = {
    MGX_TEXT(struct normalizer, case_change_action),
    MGX_FLAG(struct normalizer, is_case_sensitive),
    MGX_TEXTS(struct normalizer, stopwords),
    {0}};
static const struct normalizer normalizer_defaults = {.case_change_action = "NONE"};

static enum mgx_status normalizer_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct normalizer *a = c->attr;
    TRY(require_strings(c));
    TRY(mgx_require_rank(c, 0, 1, 2));
    const struct mgx_shape *x = c->in[0];
    if (x->rank == 2 && !x->dims && x->lens[0] != 1)
        return mgx_fail(c->diag, MGX_INVALID,
                        "string_normalizer: input of lengths {%lld, %lld}, must be {n} or {1, n}",
                        (long long)x->lens[0], (long long)x->lens[1]);
    if (!a->stopwords.count) {
        *out = mgx_shape_retype(x, MGX_STRING);
        return MGX_OK;
    }
    struct mgx_dim *dims = mgx_edit_dims(c, x, x->rank);
    if (!dims)
        return MGX_NO_MEMORY;
    dims[x->rank - 1] = (struct mgx_dim){.min = 1, .max = mgx_shape_dim(x, x->rank - 1).max + 1};
    *out = mgx_shape_from_dims(MGX_STRING, x->rank, dims);
    return MGX_OK;
}

static enum mgx_status map_case(struct mgx_compute_call *c, struct mgx_string s,
                                uint32_t (*map)(uint32_t), struct mgx_string *out)
{
    char *bytes;
    TRY(mgx_eval_text(c, 4 * s.size + 1, &bytes)); // a code point may grow
    size_t size = 0;
    for (size_t at = 0; at < s.size;)
        size += mgx_utf8_put(bytes + size, map(mgx_utf8_next(s.text, s.size, &at)));
    *out = (struct mgx_string){bytes, size};
    return MGX_OK;
}

static enum mgx_status is_stopword(struct mgx_compute_call *c, struct mgx_string s, bool *yes)
{
    const struct normalizer *a = c->attr;
    *yes = false;
    struct mgx_string key = s;
    if (!a->is_case_sensitive)
        TRY(map_case(c, s, mgx_utf8_lower, &key));
    for (int i = 0; i < a->stopwords.count && !*yes; i++) {
        struct mgx_string word = {a->stopwords.v[i], strlen(a->stopwords.v[i])};
        if (!a->is_case_sensitive)
            TRY(map_case(c, word, mgx_utf8_lower, &word));
        *yes = compare(key, word) == 0;
    }
    return MGX_OK;
}

static enum mgx_status normalize(struct mgx_compute_call *c)
{
    const struct normalizer *a = c->attr;
    const int64_t count = mgx_shape_elements(&c->in[0]->shape);
    struct mgx_string *kept = MGX_NEW_ARRAY(c->scratch, struct mgx_string, count + 1);
    int64_t n = 0;
    if (!kept)
        return mgx_fail_memory(c->diag);
    for (int64_t i = 0; i < count; i++) {
        bool stop;
        const struct mgx_string s = element(c->in[0], i);
        TRY(is_stopword(c, s, &stop));
        if (stop)
            continue;
        kept[n] = s;
        if (strcmp(a->case_change_action, "LOWER") == 0)
            TRY(map_case(c, s, mgx_utf8_lower, &kept[n]));
        else if (strcmp(a->case_change_action, "UPPER") == 0)
            TRY(map_case(c, s, mgx_utf8_upper, &kept[n]));
        n++;
    }
    if (n == 0 && a->stopwords.count)
        kept[n++] = (struct mgx_string){"", 0};
    if (!c->out->storage) {
        const int rank = c->in[0]->shape.rank;
        const int64_t lens[2] = {rank == 2 ? 1 : n, n};
        const struct mgx_shape shape = mgx_shape_make(MGX_STRING, rank, lens);
        TRY(mgx_eval_create(c, &shape));
    }
    for (int64_t i = 0; i < n; i++)
        ((struct mgx_string *)c->out->data)[mgx_shape_index(&c->out->shape, i)] = kept[i];
    return MGX_OK;
}

const struct mgx_op mgx_op_string_normalizer = {
    .name = "string_normalizer",
    .meaning = "words without stop words, in one case",
    .fields = normalizer_fields,
    .attr_size = sizeof(struct normalizer),
    .defaults = &normalizer_defaults,
    .in_min = 1,
    .in_max = 1,
    .shape = normalizer_shape,
    .compute = normalize,
};

// --- regex_full_match ---

struct regex {
    const char *pattern;
};

static const struct mgx_field regex_fields[] = {MGX_TEXT(struct regex, pattern), {0}};
static const struct regex regex_defaults = {.pattern = ""};

static enum mgx_status regex_shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const char *pattern = ((const struct regex *)c->attr)->pattern;
    struct mgx_regex *unused;
    TRY(require_strings(c));
    TRY(mgx_regex_compile(c->arena, pattern, strlen(pattern), &unused, c->diag));
    *out = mgx_shape_retype(c->in[0], MGX_BOOL);
    return MGX_OK;
}

static enum mgx_status regex_match(struct mgx_compute_call *c)
{
    const char *pattern = ((const struct regex *)c->attr)->pattern;
    struct mgx_regex *regex;
    TRY(mgx_regex_compile(c->scratch, pattern, strlen(pattern), &regex, c->diag));
    const struct mgx_arena_mark mark = mgx_arena_mark(c->scratch);
    const int64_t count = mgx_shape_elements(&c->out->shape);
    for (int64_t i = 0; i < count; i++) {
        const struct mgx_string s = element(c->in[0], i);
        bool yes;
        TRY(mgx_regex_match(c->scratch, regex, s.text, s.size, &yes, c->diag));
        mgx_store_int(MGX_BOOL, c->out->data, mgx_shape_index(&c->out->shape, i), yes);
        mgx_arena_rewind(c->scratch, mark);
    }
    return MGX_OK;
}

const struct mgx_op mgx_op_regex_full_match = {
    .name = "regex_full_match",
    .meaning = "whether the whole of x matches the pattern",
    .fields = regex_fields,
    .attr_size = sizeof(struct regex),
    .defaults = &regex_defaults,
    .in_min = 1,
    .in_max = 1,
    .shape = regex_shape,
    .unranked_type = bool_type,
    .compute = regex_match,
};
