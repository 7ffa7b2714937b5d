// SPDX-License-Identifier: MIT
// Reading shapes. The forms, as docs/ir.md has them:
//
//     float_type, {2, 3}, {3, 1}            lengths, strides (packed where strides are left out)
//     dynamic, float_type, {n[1..4], 3}     ranges, with a name or without
//     unranked, float_type
//     [<shape>, <shape>]                    a tuple
//     sequence[<shape>]
//     {type: float_type, lens: [2, 3], strides: [3, 1]}
//
// Nesting is bounded by MAX_DEPTH, and every shape is checked before it is handed on.
#include <string.h>

#include "ir/scan.h"

enum { MAX_DEPTH = 16 };

// --- ranges ---

// "[1..4]", or "[1..]" without an end, after an optional name.
static enum mgx_status range(struct mgx_scan *s, struct mgx_dim *out)
{
    if (mgx_scan_peek(s) != '[')
        TRY(mgx_scan_string(s, "[,{}]", &out->name));
    TRY(mgx_scan_expect(s, '['));
    TRY(mgx_scan_int(s, &out->min));
    TRY(mgx_scan_expect(s, '.'));
    TRY(mgx_scan_expect(s, '.'));
    out->max = MGX_DIM_ANY;
    if (mgx_scan_peek(s) != ']')
        TRY(mgx_scan_int(s, &out->max));
    return mgx_scan_expect(s, ']');
}

static bool ascend(const struct mgx_ints *values)
{
    for (int i = 1; i < values->count; i++)
        if (values->v[i] <= values->v[i - 1])
            return false;
    return true;
}

// The rest of {min: 1, max: 4, optimals: [1, 4]} after its brace; newer versions of MIGraphX write
// {range: {min: 1, max: 4}, optimals: [1, 4], sym: ...}.
static enum mgx_status range_object(struct mgx_scan *s, int depth, struct mgx_dim *out)
{
    if (depth > MAX_DEPTH)
        return mgx_scan_fail(s, s->at, MGX_LIMIT, "ranges are nested deeper than %d", MAX_DEPTH);
    while (!mgx_scan_accept(s, '}')) {
        const char *name;
        struct mgx_ints optimals = {0};
        TRY(mgx_scan_key(s, &name));
        if (strcmp(name, "min") == 0)
            TRY(mgx_scan_int(s, &out->min));
        else if (strcmp(name, "max") == 0)
            TRY(mgx_scan_int(s, &out->max));
        else if (strcmp(name, "name") == 0)
            TRY(mgx_scan_string(s, ",}", &out->name));
        else if (strcmp(name, "range") == 0) {
            TRY(mgx_scan_expect(s, '{'));
            TRY(range_object(s, depth + 1, out));
        } else if (strcmp(name, "sym") == 0)
            TRY(mgx_scan_skip(s));
        else if (strcmp(name, "optimals") == 0) {
            TRY(mgx_scan_ints(s, &optimals));
            if (!ascend(&optimals))
                return mgx_scan_fail(s, s->at, MGX_INVALID, "optimals must ascend");
            out->optimals = optimals.v;
            out->optimal_count = optimals.count;
        } else
            return mgx_scan_fail(s, s->at, MGX_INVALID, "a range has no key '%s'", name);
        if (!mgx_scan_accept(s, ',') && mgx_scan_peek(s) != '}')
            return mgx_scan_expected(s, "',' or '}'");
    }
    return MGX_OK;
}

static enum mgx_status dim(struct mgx_scan *s, struct mgx_dim *out)
{
    const char next = mgx_scan_peek(s);
    if (next == '{') {
        s->at++;
        TRY(range_object(s, 0, out));
    } else if (next >= '0' && next <= '9') {
        TRY(mgx_scan_int(s, &out->min));
        out->max = out->min;
    } else
        TRY(range(s, out));
    if (out->min < 0 || out->max < out->min)
        return mgx_scan_fail(s, s->at, MGX_INVALID, "the range [%lld..%lld] is empty",
                             (long long)out->min, (long long)out->max);
    return MGX_OK;
}

static enum mgx_status dim_item(struct mgx_scan *s, void *user)
{
    struct mgx_dim *entry = mgx_scan_entry(s, user);
    return entry ? dim(s, entry) : MGX_NO_MEMORY;
}

enum mgx_status mgx_scan_dims(struct mgx_scan *s, struct mgx_dims *out)
{
    struct mgx_scan_array g = {.size = sizeof *out->v};
    TRY(mgx_scan_list(s, dim_item, &g));
    *out = (struct mgx_dims){g.v, (int)g.count};
    return MGX_OK;
}

// --- plain and dynamic shapes ---

static enum mgx_status check_rank(struct mgx_scan *s, int rank)
{
    if (rank <= MGX_MAX_RANK)
        return MGX_OK;
    return mgx_scan_fail(s, s->at, MGX_LIMIT, "rank %d is above the limit of %d", rank,
                         MGX_MAX_RANK);
}

// {1}, {0} is how rank 0 is written; so is {}, {}.
static enum mgx_status from_lists(struct mgx_scan *s, enum mgx_type type, struct mgx_ints lens,
                                  const struct mgx_ints *strides, struct mgx_shape *out)
{
    TRY(check_rank(s, lens.count));
    if (!strides) {
        *out = mgx_shape_make(type, lens.count, lens.v);
        return MGX_OK;
    }
    if (lens.count != strides->count)
        return mgx_scan_fail(s, s->at, MGX_INVALID, "a shape has %d lengths but %d strides",
                             lens.count, strides->count);
    if (lens.count == 1 && lens.v[0] == 1 && strides->v[0] == 0)
        *out = mgx_shape_scalar(type);
    else
        *out = mgx_shape_strided(type, lens.count, lens.v, strides->v);
    return MGX_OK;
}

// The type of a tensor; tuples and sequences have forms of their own.
static enum mgx_status tensor_type(struct mgx_scan *s, int64_t *out)
{
    const char *start = s->at;
    TRY(mgx_scan_type(s, out));
    if (*out == MGX_TUPLE || *out == MGX_SEQUENCE)
        return mgx_scan_fail(s, start, MGX_INVALID, "a tuple is written [shape, shape]");
    return MGX_OK;
}

static enum mgx_status plain(struct mgx_scan *s, struct mgx_shape *out)
{
    int64_t type;
    struct mgx_ints lens, strides;
    TRY(tensor_type(s, &type));
    TRY(mgx_scan_expect(s, ','));
    if (mgx_scan_peek(s) != '{')
        return mgx_scan_expected(s, "'{'");
    TRY(mgx_scan_ints(s, &lens));
    const char *after = s->at;
    if (!mgx_scan_accept(s, ',') || mgx_scan_peek(s) != '{') { // the comma is another's
        s->at = after;
        return from_lists(s, (enum mgx_type)type, lens, NULL, out);
    }
    TRY(mgx_scan_ints(s, &strides));
    return from_lists(s, (enum mgx_type)type, lens, &strides, out);
}

static enum mgx_status dynamic(struct mgx_scan *s, struct mgx_shape *out)
{
    int64_t type;
    struct mgx_dims dims;
    TRY(mgx_scan_expect(s, ','));
    TRY(tensor_type(s, &type));
    TRY(mgx_scan_expect(s, ','));
    if (mgx_scan_peek(s) != '{')
        return mgx_scan_expected(s, "'{'");
    TRY(mgx_scan_dims(s, &dims));
    TRY(check_rank(s, dims.count));
    *out = mgx_shape_dynamic((enum mgx_type)type, dims.count, dims.v);
    return MGX_OK;
}

static enum mgx_status unranked(struct mgx_scan *s, struct mgx_shape *out)
{
    int64_t type;
    TRY(mgx_scan_expect(s, ','));
    TRY(mgx_scan_type(s, &type));
    *out = mgx_shape_unranked((enum mgx_type)type);
    return MGX_OK;
}

// --- nested shapes ---

static enum mgx_status any(struct mgx_scan *s, int depth, struct mgx_shape *out);

// Members up to the bracket; a list as in mgx_scan_list, but one that knows its depth.
static enum mgx_status members(struct mgx_scan *s, int depth, struct mgx_scan_array *g)
{
    TRY(mgx_scan_expect(s, '['));
    while (!mgx_scan_accept(s, ']')) {
        struct mgx_shape *entry = mgx_scan_entry(s, g);
        if (!entry)
            return MGX_NO_MEMORY;
        struct mgx_shape member; // the array may move while a member is read
        const int at = g->count - 1;
        TRY(any(s, depth + 1, &member));
        ((struct mgx_shape *)g->v)[at] = member;
        if (!mgx_scan_accept(s, ',') && mgx_scan_peek(s) != ']')
            return mgx_scan_expected(s, "',' or ']'");
    }
    return MGX_OK;
}

static enum mgx_status aggregate(struct mgx_scan *s, int depth, bool sequence,
                                 struct mgx_shape *out)
{
    struct mgx_scan_array g = {.size = sizeof *out};
    TRY(members(s, depth, &g));
    if (sequence && g.count > 1)
        return mgx_scan_fail(s, s->at, MGX_INVALID, "a sequence has one shape, not %d",
                             (int)g.count);
    *out = mgx_shape_tuple(g.v, (int)g.count);
    if (sequence)
        out->type = MGX_SEQUENCE;
    return MGX_OK;
}

// What an object {type: ..., ...} may say; keys as MIGraphX serialises shapes.
struct object {
    int64_t type;
    struct mgx_ints lens, strides;
    struct mgx_dims dims;
    struct mgx_scan_array sub;
    int64_t unranked;
};

static enum mgx_status object_key(struct mgx_scan *s, int depth, struct object *o)
{
    const char *name;
    TRY(mgx_scan_key(s, &name));
    if (strcmp(name, "type") == 0)
        return mgx_scan_type(s, &o->type);
    if (strcmp(name, "lens") == 0)
        return mgx_scan_ints(s, &o->lens);
    if (strcmp(name, "strides") == 0)
        return mgx_scan_ints(s, &o->strides);
    if (strcmp(name, "dynamic_dimensions") == 0)
        return mgx_scan_dims(s, &o->dims);
    if (strcmp(name, "unranked") == 0)
        return mgx_scan_int(s, &o->unranked);
    if (strcmp(name, "dyn_strides") == 0) // of newer versions; ranges have no strides here
        return mgx_scan_skip(s);
    if (strcmp(name, "sub_shapes") == 0) {
        o->sub = (struct mgx_scan_array){.size = sizeof(struct mgx_shape)};
        return members(s, depth, &o->sub);
    }
    return mgx_scan_fail(s, s->at, MGX_INVALID, "a shape has no key '%s'", name);
}

static enum mgx_status object(struct mgx_scan *s, int depth, struct mgx_shape *out)
{
    struct object o = {.type = MGX_FLOAT};
    TRY(mgx_scan_expect(s, '{'));
    while (!mgx_scan_accept(s, '}')) {
        TRY(object_key(s, depth, &o));
        if (!mgx_scan_accept(s, ',') && mgx_scan_peek(s) != '}')
            return mgx_scan_expected(s, "',' or '}'");
    }
    const enum mgx_type type = (enum mgx_type)o.type;
    if (o.unranked) {
        *out = mgx_shape_unranked(type);
        return MGX_OK;
    }
    if (type == MGX_TUPLE || type == MGX_SEQUENCE) {
        if (type == MGX_SEQUENCE && o.sub.count > 1)
            return mgx_scan_fail(s, s->at, MGX_INVALID, "a sequence has one shape, not %d",
                                 (int)o.sub.count);
        *out = mgx_shape_tuple(o.sub.v, (int)o.sub.count);
        out->type = type;
        return MGX_OK;
    }
    if (o.dims.count) {
        TRY(check_rank(s, o.dims.count));
        *out = mgx_shape_dynamic(type, o.dims.count, o.dims.v);
        return MGX_OK;
    }
    return from_lists(s, type, o.lens, o.strides.count ? &o.strides : NULL, out);
}

static enum mgx_status any(struct mgx_scan *s, int depth, struct mgx_shape *out)
{
    if (depth > MAX_DEPTH)
        return mgx_scan_fail(s, s->at, MGX_LIMIT, "shapes are nested deeper than %d", MAX_DEPTH);
    const char next = mgx_scan_peek(s);
    if (next == '[')
        return aggregate(s, depth, false, out);
    if (next == '{')
        return object(s, depth, out);
    if (mgx_scan_accept_word(s, "sequence"))
        return aggregate(s, depth, true, out);
    if (mgx_scan_accept_word(s, "dynamic"))
        return dynamic(s, out);
    if (mgx_scan_accept_word(s, "unranked"))
        return unranked(s, out);
    return plain(s, out);
}

enum mgx_status mgx_scan_shape(struct mgx_scan *s, struct mgx_shape *out)
{
    const char *start = s->at;
    *out = (struct mgx_shape){0};
    TRY(any(s, 0, out));
    const enum mgx_status status = mgx_shape_check(out, s->diag);
    if (status != MGX_OK)
        mgx_scan_where(s, start);
    return status;
}

static enum mgx_status shape_item(struct mgx_scan *s, void *user)
{
    struct mgx_shape *entry = mgx_scan_entry(s, user);
    return entry ? mgx_scan_shape(s, entry) : MGX_NO_MEMORY;
}

// Is what follows one shape as an object, and no list in braces?
static bool begins_object(const struct mgx_scan *s)
{
    static const char *const keys[] = {"type", "lens", "strides", "dynamic_dimensions",
                                       "sub_shapes"};
    struct mgx_scan ahead = *s;
    if (!mgx_scan_accept(&ahead, '{'))
        return false;
    mgx_scan_accept(&ahead, '"');
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (mgx_scan_accept_word(&ahead, keys[i]))
            return true;
    return false;
}

// MIGraphX has one tuple where several shapes are meant; its members are the list.
static enum mgx_status one_shape(struct mgx_scan *s, struct mgx_shapes *out)
{
    struct mgx_scan_array g = {.size = sizeof *out->v};
    TRY(shape_item(s, &g));
    *out = (struct mgx_shapes){g.v, (int)g.count};
    if (out->v->type == MGX_TUPLE)
        *out = (struct mgx_shapes){out->v->sub, out->v->sub_count};
    return MGX_OK;
}

enum mgx_status mgx_scan_shapes(struct mgx_scan *s, struct mgx_shapes *out)
{
    struct mgx_scan_array g = {.size = sizeof *out->v};
    if (begins_object(s))
        return one_shape(s, out);
    const char next = mgx_scan_peek(s);
    if (next != '{' && next != '[')
        return mgx_scan_expected(s, "'{'");
    TRY(mgx_scan_list(s, shape_item, &g));
    *out = (struct mgx_shapes){g.v, (int)g.count};
    return MGX_OK;
}
