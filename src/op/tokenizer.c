// SPDX-License-Identifier: MIT
// tokenizer: every string as tokens along a new last axis, filled up with a padding string.
//
// Tokens are what lies between matches of the separators, one after the other, or the matches of an
// expression; a separator "" and the expression "." make each character a token. Those of fewer
// than `mincharnum` characters are dropped. With `mark` the tokens of a string stand between the
// strings 0x02 and 0x03, but where no string has any. An input without elements stays as it is.
#include <string.h>

#include "base/array.h"
#include "base/regex.h"
#include "base/utf8.h"
#include "op/rule/rule.h"

struct tokenizer {
    struct mgx_strings separators;
    const char *tokenexp, *pad_value;
    int64_t mincharnum;
    bool mark;
};

static const struct mgx_field fields[] = {
    MGX_TEXTS(struct tokenizer, separators), MGX_TEXT(struct tokenizer, tokenexp),
    MGX_TEXT(struct tokenizer, pad_value),   MGX_INT(struct tokenizer, mincharnum),
    MGX_FLAG(struct tokenizer, mark),        {0}};
static const struct tokenizer defaults = {.tokenexp = "", .pad_value = "", .mincharnum = 1};

// --- shape ---

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct tokenizer *a = c->attr;
    struct mgx_regex *unused;
    if (c->in[0]->type != MGX_STRING)
        return mgx_fail(c->diag, MGX_INVALID, "%s: input 0 is %s, not string_type", c->op->name,
                        mgx_type_name(c->in[0]->type));
    TRY(mgx_require_rank(c, 0, 1, 2));
    if (!a->tokenexp[0] && !a->separators.count)
        return mgx_fail(c->diag, MGX_INVALID, "%s: neither separators nor an expression",
                        c->op->name);
    TRY(mgx_regex_compile(c->arena, a->tokenexp, strlen(a->tokenexp), &unused, c->diag));
    for (int i = 0; i < a->separators.count; i++)
        TRY(mgx_regex_compile(c->arena, a->separators.v[i], strlen(a->separators.v[i]), &unused,
                              c->diag));
    const int rank = c->in[0]->rank;
    struct mgx_dim *dims = mgx_edit_dims(c, c->in[0], rank + 1);
    if (!dims)
        return MGX_NO_MEMORY;
    int64_t least = 1, most = 1;
    for (int i = 0; i < rank; i++) {
        least = dims[i].min ? least : 0;
        most = dims[i].max ? most : 0;
    }
    if (least == 0 && most != 0) { // whether there are elements decides the rank
        *out = mgx_shape_unranked(MGX_STRING);
        return MGX_OK;
    }
    dims[rank] = (struct mgx_dim){.min = 0, .max = MGX_DIM_ANY};
    *out = mgx_shape_from_dims(MGX_STRING, most ? rank + 1 : rank, dims);
    return MGX_OK;
}

// --- tokens ---

struct tokens { // of one string
    MGX_ARRAY(struct mgx_string);
};

struct run {
    struct mgx_compute_call *c;
    const struct tokenizer *a;
    struct mgx_regex *expression, **separators;
    bool characters;
};

static enum mgx_status add(const struct run *r, struct tokens *t, const char *text, size_t size)
{
    int64_t characters = 0;
    for (size_t at = 0; at < size; characters++)
        mgx_utf8_next(text, size, &at);
    if (characters < r->a->mincharnum)
        return MGX_OK;
    return MGX_PUSH(t, r->c->scratch, (struct mgx_string){text, size})
               ? MGX_OK
               : mgx_fail_memory(r->c->diag);
}

// The next match in s from *from on, which moves behind it, by a character where it is empty. False
// where there is none.
static enum mgx_status next_match(const struct run *r, const struct mgx_regex *by,
                                  struct mgx_string s, size_t *from, struct mgx_string *match,
                                  bool *found)
{
    const struct mgx_arena_mark mark = mgx_arena_mark(r->c->scratch);
    size_t begin, end;
    TRY(mgx_regex_search(r->c->scratch, by, s.text, s.size, *from, &begin, &end, r->c->diag));
    mgx_arena_rewind(r->c->scratch, mark);
    *found = end != (size_t)-1 && begin < s.size;
    if (!*found)
        return MGX_OK;
    *match = (struct mgx_string){s.text + begin, end - begin};
    *from = end;
    if (begin == end)
        mgx_utf8_next(s.text, s.size, from);
    return MGX_OK;
}

static enum mgx_status split_characters(const struct run *r, struct mgx_string s, struct tokens *t)
{
    for (size_t at = 0, from = 0; at < s.size; from = at) {
        mgx_utf8_next(s.text, s.size, &at);
        TRY(add(r, t, s.text + from, at - from));
    }
    return MGX_OK;
}

// What matches the expression.
static enum mgx_status find_all(const struct run *r, struct mgx_string s, struct tokens *t)
{
    struct mgx_string match;
    bool found = true;
    for (size_t from = 0; found;) {
        TRY(next_match(r, r->expression, s, &from, &match, &found));
        if (found)
            TRY(add(r, t, match.text, match.size));
    }
    return MGX_OK;
}

// What lies between matches of one separator.
static enum mgx_status split_by(const struct run *r, const struct mgx_regex *by,
                                struct mgx_string s, struct tokens *t)
{
    struct mgx_string match;
    bool found = true;
    for (size_t from = 0, begin = 0; found; begin = from) {
        TRY(next_match(r, by, s, &from, &match, &found));
        const size_t end = found ? (size_t)(match.text - s.text) : s.size;
        TRY(add(r, t, s.text + begin, end - begin));
    }
    return MGX_OK;
}

static enum mgx_status split_all(const struct run *r, struct mgx_string s, struct tokens *t)
{
    if (!MGX_PUSH(t, r->c->scratch, s))
        return mgx_fail_memory(r->c->diag);
    for (int i = 0; i < r->a->separators.count; i++) {
        struct tokens parts = {0};
        for (int64_t k = 0; k < t->count; k++)
            TRY(split_by(r, r->separators[i], t->v[k], &parts));
        *t = parts;
    }
    return MGX_OK;
}

static enum mgx_status tokens_of(const struct run *r, struct mgx_string s, struct tokens *t)
{
    if (!s.text)
        s.text = "";
    if (r->characters)
        return split_characters(r, s, t);
    return r->a->tokenexp[0] ? find_all(r, s, t) : split_all(r, s, t);
}

// --- compute ---

static enum mgx_status compile(struct run *r)
{
    const struct tokenizer *a = r->a;
    r->characters = strcmp(a->tokenexp, ".") == 0 ||
                    (!a->tokenexp[0] && a->separators.count == 1 && !a->separators.v[0][0]);
    r->separators = MGX_NEW_ARRAY(r->c->scratch, struct mgx_regex *, a->separators.count + 1);
    if (!r->separators)
        return mgx_fail_memory(r->c->diag);
    for (int i = 0; i < a->separators.count; i++)
        TRY(mgx_regex_compile(r->c->scratch, a->separators.v[i], strlen(a->separators.v[i]),
                              &r->separators[i], r->c->diag));
    return mgx_regex_compile(r->c->scratch, a->tokenexp, strlen(a->tokenexp), &r->expression,
                             r->c->diag);
}

static void put(const struct run *r, const struct tokens *t, int64_t room, struct mgx_string *to)
{
    int64_t at = 0;
    if (r->a->mark)
        to[at++] = (struct mgx_string){"\x02", 1};
    for (int64_t i = 0; i < t->count; i++)
        to[at++] = t->v[i];
    if (r->a->mark)
        to[at++] = (struct mgx_string){"\x03", 1};
    while (at < room)
        to[at++] = (struct mgx_string){r->a->pad_value, strlen(r->a->pad_value)};
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct mgx_tensor *x = c->in[0];
    const int64_t count = mgx_shape_elements(&x->shape);
    const int rank = x->shape.rank;
    struct run r = {.c = c, .a = c->attr};
    int64_t most = 0, lens[MGX_MAX_RANK];
    struct tokens *all = MGX_NEW_ARRAY(c->scratch, struct tokens, count + 1);
    if (!all)
        return mgx_fail_memory(c->diag);
    TRY(compile(&r));
    for (int64_t i = 0; i < count; i++) {
        const struct mgx_string *s = x->data;
        TRY(tokens_of(&r, s[mgx_shape_index(&x->shape, i)], &all[i]));
        most = all[i].count > most ? all[i].count : most;
    }
    memcpy(lens, x->shape.lens, (size_t)rank * sizeof *lens);
    lens[rank] = most ? most + 2 * r.a->mark : 0;
    const struct mgx_shape wide = mgx_shape_make(MGX_STRING, count ? rank + 1 : rank, lens);
    if (!c->out->storage)
        TRY(mgx_eval_create(c, &wide));
    for (int64_t i = 0; most && i < count; i++)
        put(&r, &all[i], lens[rank], (struct mgx_string *)c->out->data + i * lens[rank]);
    return MGX_OK;
}

const struct mgx_op mgx_op_tokenizer = {
    .name = "tokenizer",
    .meaning = "tokens of every string, filled up to the longest list of them",
    .fields = fields,
    .attr_size = sizeof(struct tokenizer),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 1,
    .shape = shape,
    .compute = compute,
};
