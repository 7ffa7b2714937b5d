// SPDX-License-Identifier: MIT
// Regular expressions; see regex.h.
//
// The pattern becomes a program for a set of threads (Thompson's construction): SET consumes a code
// point, SPLIT goes both ways, JUMP one, ASSERT goes on where ^, $, \b or \B holds, MATCH accepts.
// Matching keeps the set of live states per code point, so it is linear and cannot blow up.
// Repetition {m,n} copies its operand, which MAX_STATES bounds.
#include "base/regex.h"

#include <string.h>

#include "base/array.h"
#include "base/utf8.h"

enum { MAX_STATES = 20000, MAX_DEPTH = 100, MAX_REPEAT = 1000 };

enum code { SET, SPLIT, JUMP, ASSERT, MATCH };

struct interval {
    uint32_t first, last;
};

struct state {
    enum code code;
    int x, y; // targets
    const struct interval *set;
    int set_count;
    bool negated;
    char assertion; // '^', '$', 'b' or 'B'
};

struct mgx_regex {
    MGX_ARRAY(struct state);
};

struct parser {
    struct mgx_arena *arena;
    const char *pattern;
    size_t size, at;
    int depth;
    struct mgx_regex *out;
    struct mgx_diag *diag;
};

// --- emitting ---

static enum mgx_status emit(struct parser *p, struct state s)
{
    struct mgx_regex *r = p->out;
    if (r->count >= MAX_STATES)
        return mgx_fail(p->diag, MGX_LIMIT, "regular expression needs more than %d states",
                        MAX_STATES);
    return MGX_PUSH(r, p->arena, s) ? MGX_OK : mgx_fail_memory(p->diag);
}

// Opens a gap of one state at `at`; targets beyond it move along.
static enum mgx_status insert(struct parser *p, int at, struct state s)
{
    TRY(emit(p, s));
    struct state *v = p->out->v;
    memmove(v + at + 1, v + at, (size_t)(p->out->count - 1 - at) * sizeof *v);
    v[at] = s;
    for (int i = at + 1; i < p->out->count; i++) {
        v[i].x += v[i].x >= at;
        v[i].y += v[i].y >= at;
    }
    return MGX_OK;
}

// A copy of states [from, to) at the end.
static enum mgx_status repeat(struct parser *p, int from, int to)
{
    const int shift = p->out->count - from;
    for (int i = from; i < to; i++) {
        struct state s = p->out->v[i];
        s.x += shift;
        s.y += shift;
        TRY(emit(p, s));
    }
    return MGX_OK;
}

static enum mgx_status bad(struct parser *p, const char *what)
{
    return mgx_fail(p->diag, MGX_INVALID, "regular expression \"%.*s\": %s at byte %zu",
                    (int)(p->size < 200 ? p->size : 200), p->pattern, what, p->at);
}

static bool next_is(const struct parser *p, char c)
{
    return p->at < p->size && p->pattern[p->at] == c;
}

static bool take_char(struct parser *p, char c)
{
    const bool yes = next_is(p, c);
    p->at += yes;
    return yes;
}

// --- sets ---

static const struct interval any[] = {{0, 9}, {11, 0x10FFFF}}; // all but newline
static const struct interval digits[] = {{'0', '9'}};
static const struct interval words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const struct interval spaces[] = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};

struct class_name {
    char letter;
    const struct interval *set;
    int count;
};

static const struct class_name classes[] = {{'d', digits, 1}, {'w', words, 4}, {'s', spaces, 3}};

static const struct class_name *find_class(char c)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (classes[i].letter == (c | 32))
            return &classes[i];
    return NULL;
}

static uint32_t escape(char c)
{
    static const char from[] = "ntrfva", to[] = "\n\t\r\f\v\a";
    const char *found = c ? strchr(from, c) : NULL;
    return found ? (uint32_t)(unsigned char)to[found - from] : (uint32_t)(unsigned char)c;
}

static enum mgx_status emit_set(struct parser *p, const struct interval *set, int count,
                                bool negated)
{
    return emit(p, (struct state){.code = SET, .set = set, .set_count = count, .negated = negated});
}

static enum mgx_status emit_one(struct parser *p, uint32_t code)
{
    struct interval *one = MGX_NEW(p->arena, struct interval);
    if (!one)
        return mgx_fail_memory(p->diag);
    *one = (struct interval){code, code};
    return emit_set(p, one, 1, false);
}

static enum mgx_status emit_assertion(struct parser *p, char assertion)
{
    return emit(p, (struct state){.code = ASSERT, .assertion = assertion});
}

// After a backslash, outside brackets.
static enum mgx_status parse_escape(struct parser *p)
{
    if (p->at >= p->size)
        return bad(p, "nothing after a backslash");
    const char c = p->pattern[p->at];
    const struct class_name *named = find_class(c);
    if (named) {
        p->at++;
        return emit_set(p, named->set, named->count, c < 'a');
    }
    static const char positions[] = "bBAz", meanings[] = "bB^$";
    const char *position = c ? strchr(positions, c) : NULL;
    if (!position && ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z')))
        return bad(p, "an escape that is not supported");
    p->at++;
    if (position)
        return emit_assertion(p, meanings[position - positions]);
    return emit_one(p, escape(c));
}

static enum mgx_status set_member(struct parser *p, struct interval *set, int *count)
{
    const struct class_name *named = NULL;
    uint32_t first = mgx_utf8_next(p->pattern, p->size, &p->at);
    if (first == '\\') {
        if (p->at >= p->size)
            return bad(p, "nothing after a backslash");
        named = p->pattern[p->at] >= 'a' ? find_class(p->pattern[p->at]) : NULL;
        first = escape(p->pattern[p->at++]);
    }
    if (named) {
        for (int i = 0; i < named->count; i++)
            set[(*count)++] = named->set[i];
        return MGX_OK;
    }
    uint32_t last = first;
    if (p->at + 1 < p->size && next_is(p, '-') && p->pattern[p->at + 1] != ']') {
        p->at++;
        last = mgx_utf8_next(p->pattern, p->size, &p->at);
        if (last == '\\' && p->at < p->size)
            last = escape(p->pattern[p->at++]);
    }
    if (last < first)
        return bad(p, "a range that ends before it starts");
    set[(*count)++] = (struct interval){first, last};
    return MGX_OK;
}

// After '['.
static enum mgx_status parse_set(struct parser *p)
{
    const bool negated = take_char(p, '^');
    // At most 4 intervals per byte of the set.
    struct interval *set = MGX_NEW_ARRAY(p->arena, struct interval, 4 * (p->size - p->at) + 4);
    int count = 0;
    if (!set)
        return mgx_fail_memory(p->diag);
    if (take_char(p, ']'))
        set[count++] = (struct interval){']', ']'};
    while (p->at < p->size && !next_is(p, ']'))
        TRY(set_member(p, set, &count));
    if (!take_char(p, ']'))
        return bad(p, "a bracket is not closed");
    return emit_set(p, set, count, negated);
}

// --- the grammar: alternatives of sequences of repeated atoms ---

static enum mgx_status parse_alternatives(struct parser *p);

static enum mgx_status parse_atom(struct parser *p)
{
    if (take_char(p, '(')) {
        if (p->at + 1 < p->size && next_is(p, '?') && p->pattern[p->at + 1] == ':')
            p->at += 2;
        TRY(parse_alternatives(p));
        return take_char(p, ')') ? MGX_OK : bad(p, "a parenthesis is not closed");
    }
    if (take_char(p, '['))
        return parse_set(p);
    if (take_char(p, '\\'))
        return parse_escape(p);
    if (take_char(p, '.'))
        return emit_set(p, any, 2, false);
    if (take_char(p, '^'))
        return emit_assertion(p, '^');
    if (take_char(p, '$'))
        return emit_assertion(p, '$');
    if (next_is(p, '*') || next_is(p, '+') || next_is(p, '?'))
        return bad(p, "nothing to repeat");
    return emit_one(p, mgx_utf8_next(p->pattern, p->size, &p->at));
}

static bool parse_count(struct parser *p, int *out)
{
    int n = 0;
    const size_t start = p->at;
    while (p->at < p->size && p->pattern[p->at] >= '0' && p->pattern[p->at] <= '9' &&
           n <= MAX_REPEAT)
        n = 10 * n + (p->pattern[p->at++] - '0');
    *out = n;
    return p->at > start;
}

// {m}, {m,}, {m,n}: *high -1 is open. False (and p->at as before) if this is no repetition but a
// literal brace.
static bool parse_bounds(struct parser *p, int *low, int *high)
{
    const size_t start = p->at;
    if (take_char(p, '{') && parse_count(p, low)) {
        *high = *low;
        if (take_char(p, ',') && !parse_count(p, high))
            *high = -1;
        if (take_char(p, '}'))
            return true;
    }
    p->at = start;
    return false;
}

// The states from `from` on, zero or more times: L: split body, out; body; jump L.
static enum mgx_status star(struct parser *p, int from)
{
    TRY(insert(p, from, (struct state){.code = SPLIT, .x = from + 1}));
    TRY(emit(p, (struct state){.code = JUMP, .x = from}));
    p->out->v[from].y = p->out->count;
    return MGX_OK;
}

static enum mgx_status optional(struct parser *p, int from)
{
    TRY(insert(p, from, (struct state){.code = SPLIT, .x = from + 1}));
    p->out->v[from].y = p->out->count;
    return MGX_OK;
}

// The operand [from, to) between `low` and `high` times, once it stands there `low` times: copies
// that are optional, each after its own split. Of no times the operand itself is the first.
static enum mgx_status at_most(struct parser *p, int from, int to, int low, int high)
{
    const int moved = low == 0; // by its own split
    if (moved)
        TRY(optional(p, from));
    for (int i = low + moved; i < high; i++) {
        const int start = p->out->count;
        TRY(repeat(p, from + moved, to + moved));
        TRY(optional(p, start));
    }
    return MGX_OK;
}

// The same, `low` times and more: the last of `low` copies may be repeated.
static enum mgx_status at_least(struct parser *p, int from, int to, int low)
{
    int last = from;
    for (int i = 0; i < low; i++) {
        last = p->out->count;
        TRY(repeat(p, from, to));
    }
    return star(p, last);
}

static enum mgx_status bounded(struct parser *p, int from, int low, int high)
{
    const int to = p->out->count;
    if (low > MAX_REPEAT || high > MAX_REPEAT || (high >= 0 && high < low))
        return bad(p, "a repetition that is not possible");
    if (high < 0)
        return at_least(p, from, to, low);
    if (high == 0) {
        p->out->count = from;
        return MGX_OK;
    }
    for (int i = 1; i < low; i++)
        TRY(repeat(p, from, to));
    return at_most(p, from, to, low, high);
}

static enum mgx_status parse_repeated(struct parser *p)
{
    const int from = p->out->count;
    int low, high;
    TRY(parse_atom(p));
    for (;;) {
        if (take_char(p, '*')) {
            TRY(star(p, from));
        } else if (take_char(p, '+')) {
            TRY(bounded(p, from, 1, -1));
        } else if (take_char(p, '?')) {
            TRY(optional(p, from));
        } else if (next_is(p, '{') && parse_bounds(p, &low, &high)) {
            TRY(bounded(p, from, low, high));
        } else {
            return MGX_OK;
        }
        take_char(p, '?'); // lazy: the same language
    }
}

static enum mgx_status parse_alternatives(struct parser *p)
{
    if (++p->depth > MAX_DEPTH)
        return mgx_fail(p->diag, MGX_LIMIT, "regular expression is nested deeper than %d",
                        MAX_DEPTH);
    int from = p->out->count, last_jump = -1;
    for (;;) {
        while (p->at < p->size && !next_is(p, '|') && !next_is(p, ')'))
            TRY(parse_repeated(p));
        if (!take_char(p, '|'))
            break;
        TRY(optional(p, from)); // its second way leads to the next alternative
        TRY(emit(p, (struct state){.code = JUMP, .x = last_jump}));
        last_jump = p->out->count - 1; // jumps to the end are chained through x
        p->out->v[from].y = p->out->count;
        from = p->out->count;
    }
    while (last_jump >= 0) {
        const int next = p->out->v[last_jump].x;
        p->out->v[last_jump].x = p->out->count;
        last_jump = next;
    }
    p->depth--;
    return MGX_OK;
}

enum mgx_status mgx_regex_compile(struct mgx_arena *arena, const char *pattern, size_t size,
                                  struct mgx_regex **out, struct mgx_diag *diag)
{
    *out = MGX_NEW(arena, struct mgx_regex);
    if (!*out)
        return mgx_fail_memory(diag);
    struct parser p = {.arena = arena, .pattern = pattern, .size = size, .out = *out, .diag = diag};
    TRY(parse_alternatives(&p));
    if (p.at < p.size)
        return bad(&p, "a parenthesis too many");
    return emit(&p, (struct state){.code = MATCH});
}

// --- matching ---

static bool accepts(const struct state *s, uint32_t code)
{
    for (int i = 0; i < s->set_count; i++)
        if (code >= s->set[i].first && code <= s->set[i].last)
            return !s->negated;
    return s->negated;
}

enum { NOTHING = UINT32_MAX }; // no code point: before the first, after the last

struct place { // between two code points
    uint32_t before, after;
};

static bool is_word(uint32_t code)
{
    const struct state word = {.set = words, .set_count = 4};
    return code != NOTHING && accepts(&word, code);
}

static bool holds(char assertion, const struct place *at)
{
    if (assertion == '^')
        return at->before == NOTHING;
    if (assertion == '$')
        return at->after == NOTHING;
    return (is_word(at->before) != is_word(at->after)) == (assertion == 'b');
}

struct threads {
    int *v;
    int count;
    uint32_t *seen; // generation in which a state was added
};

// Adds a state and all that follow it without consuming; an explicit stack, every state at most
// once.
static void follow(const struct mgx_regex *r, struct threads *t, int *stack, int state,
                   uint32_t generation, const struct place *at)
{
    int depth = 0;
    stack[depth++] = state;
    while (depth) {
        const int i = stack[--depth];
        if (t->seen[i] == generation)
            continue;
        t->seen[i] = generation;
        const struct state *s = &r->v[i];
        if (s->code == SPLIT) {
            stack[depth++] = s->y;
            stack[depth++] = s->x;
        } else if (s->code == JUMP) {
            stack[depth++] = s->x;
        } else if (s->code == ASSERT) {
            if (holds(s->assertion, at))
                stack[depth++] = i + 1;
        } else {
            t->v[t->count++] = i;
        }
    }
}

struct matcher {
    const struct mgx_regex *r;
    struct threads now, then;
    int *stack;
    uint32_t generation;
};

static enum mgx_status matcher_init(struct matcher *m, struct mgx_arena *arena,
                                    const struct mgx_regex *r, struct mgx_diag *diag)
{
    const size_t n = (size_t)r->count;
    uint32_t *seen = MGX_NEW_ARRAY(arena, uint32_t, n);
    *m = (struct matcher){.r = r,
                          .now = {MGX_NEW_ARRAY(arena, int, n), 0, seen},
                          .then = {MGX_NEW_ARRAY(arena, int, n), 0, seen},
                          .stack = MGX_NEW_ARRAY(arena, int, 2 * n + 2)};
    return m->now.v && seen && m->then.v && m->stack ? MGX_OK : mgx_fail_memory(diag);
}

static bool is_done(const struct matcher *m)
{
    bool done = false;
    for (int i = 0; i < m->now.count; i++)
        done |= m->r->v[m->now.v[i]].code == MATCH;
    return done;
}

// From `from` on, with what is before it, as long as something may match: whether all of the text
// does; the end of the longest match, (size_t)-1 without one.
static bool advance(struct matcher *m, const char *text, size_t size, size_t from, uint32_t before,
                    size_t *longest)
{
    size_t next = from, at = from;
    struct place place = {before, from < size ? mgx_utf8_next(text, size, &next) : NOTHING};
    m->now.count = 0;
    *longest = (size_t)-1;
    follow(m->r, &m->now, m->stack, 0, ++m->generation, &place);
    while (m->now.count) {
        *longest = is_done(m) ? at : *longest;
        if (place.after == NOTHING)
            break;
        const uint32_t code = place.after;
        at = next;
        place = (struct place){code, next < size ? mgx_utf8_next(text, size, &next) : NOTHING};
        m->then.count = 0;
        m->generation++;
        for (int i = 0; i < m->now.count; i++)
            if (m->r->v[m->now.v[i]].code == SET && accepts(&m->r->v[m->now.v[i]], code))
                follow(m->r, &m->then, m->stack, m->now.v[i] + 1, m->generation, &place);
        const struct threads t = m->now;
        m->now = m->then;
        m->then = t;
    }
    return *longest == size;
}

enum mgx_status mgx_regex_match(struct mgx_arena *arena, const struct mgx_regex *r,
                                const char *text, size_t size, bool *out, struct mgx_diag *diag)
{
    struct matcher m;
    size_t longest;
    TRY(matcher_init(&m, arena, r, diag));
    *out = advance(&m, text, size, 0, NOTHING, &longest);
    return MGX_OK;
}

enum mgx_status mgx_regex_search(struct mgx_arena *arena, const struct mgx_regex *r,
                                 const char *text, size_t size, size_t from, size_t *begin,
                                 size_t *end, struct mgx_diag *diag)
{
    struct matcher m;
    TRY(matcher_init(&m, arena, r, diag));
    uint32_t before = from ? ' ' : NOTHING;
    for (*begin = from;; before = mgx_utf8_next(text, size, begin)) {
        advance(&m, text, size, *begin, before, end);
        if (*end != (size_t)-1 || *begin >= size)
            return MGX_OK;
    }
}
