// SPDX-License-Identifier: MIT
// Attributes from text: the printed form "axis=1,mode=average" and relaxed JSON
// "{axis: 1, mode: 'average'}" are one grammar, because the field's kind says what may come:
//
//     attributes = [ "{" ] { key ( "=" | ":" ) value [ "," ] } [ "}" ]
//     value      = integer | number | string | list | shape | "null" (leaves the default)
//
// Comments ("#", "//") are for JSON only. Linear in the text; nothing nests but shapes, whose depth
// is bounded.
#include <assert.h>
#include <string.h>

#include "ir/op.h"
#include "ir/scan.h"

static enum mgx_status scan_enum(struct mgx_scan *s, const struct mgx_field *f, int64_t *out)
{
    assert(f->kind == MGX_FIELD_ENUM && f->names);
    const char next = mgx_scan_peek(s);
    const char *start = s->at, *name;
    if ((next >= '0' && next <= '9') || next == '-') {
        TRY(mgx_scan_int(s, out));
        if (mgx_field_admits(f, *out))
            return MGX_OK;
        return mgx_scan_fail(s, start, MGX_INVALID, "attribute '%s' has no value %lld", f->name,
                             (long long)*out);
    }
    TRY(mgx_scan_string(s, ",]}", &name));
    for (int i = 0; f->names[i]; i++)
        if (*name && strcmp(f->names[i], name) == 0) {
            *out = i;
            return MGX_OK;
        }
    return mgx_scan_fail(s, start, MGX_INVALID, "attribute '%s' has no value '%.80s'", f->name,
                         name);
}

static enum mgx_status scan_type(struct mgx_scan *s, const struct mgx_field *f, int64_t *out)
{
    TRY(mgx_scan_type(s, out));
    if (mgx_field_admits(f, *out))
        return MGX_OK;
    const enum mgx_type type = (enum mgx_type)(*out);
    return mgx_scan_fail(s, s->at, MGX_INVALID, "attribute '%s' cannot be %s", f->name,
                         mgx_type_name(type));
}

static enum mgx_status scan_bool(struct mgx_scan *s, bool *out)
{
    int64_t value;
    TRY(mgx_scan_int(s, &value));
    *out = value != 0;
    return MGX_OK;
}

static enum mgx_status scan_value(struct mgx_scan *s, const struct mgx_field *f, void *slot)
{
    switch (f->kind) {
    case MGX_FIELD_INT:
        return mgx_scan_int(s, slot);
    case MGX_FIELD_BOOL:
        return scan_bool(s, slot);
    case MGX_FIELD_FLOAT:
        return mgx_scan_double(s, slot);
    case MGX_FIELD_STRING:
        return mgx_scan_string(s, ",]}", slot);
    case MGX_FIELD_INTS:
        return mgx_scan_ints(s, slot);
    case MGX_FIELD_FLOATS:
        return mgx_scan_doubles(s, slot);
    case MGX_FIELD_STRINGS:
        return mgx_scan_strings(s, slot);
    case MGX_FIELD_ENUM:
        return scan_enum(s, f, slot);
    case MGX_FIELD_TYPE:
        return scan_type(s, f, slot);
    case MGX_FIELD_SHAPE:
        return mgx_scan_shape(s, slot);
    case MGX_FIELD_SHAPES:
        return mgx_scan_shapes(s, slot);
    default:
        assert(f->kind == MGX_FIELD_DIMS);
        return mgx_scan_dims(s, slot);
    }
}

// Keys of MIGraphX's text that say nothing here; old releases print them.
static bool is_obsolete(const char *name)
{
    return strcmp(name, "use_dynamic_same_auto_pad") == 0;
}

static enum mgx_status scan_field(struct mgx_scan *s, const struct mgx_op *op, void *attr)
{
    const char *start = s->at, *name;
    TRY(mgx_scan_string(s, "=:,]}{[", &name));
    if (!*name)
        return mgx_scan_expected(s, "the name of an attribute");
    if (!mgx_scan_accept(s, '=') && !mgx_scan_accept(s, ':'))
        return mgx_scan_expected(s, "'=' or ':'");
    const struct mgx_field *f = mgx_field_find(op, name);
    if (!f && is_obsolete(name)) {
        bool ignored;
        return scan_bool(s, &ignored);
    }
    if (!f) {
        const enum mgx_status status =
            mgx_fail(s->diag, MGX_INVALID, "No key '%.200s' in %s", name, op->name);
        mgx_scan_where(s, start);
        return status;
    }
    if (f->kind != MGX_FIELD_STRING && mgx_scan_accept_word(s, "null"))
        return MGX_OK;
    if (f->kind != MGX_FIELD_ENUM && f->names && mgx_scan_accept_word(s, "nullopt")) {
        *(int64_t *)((char *)attr + f->offset) = MGX_NONE;
        return MGX_OK;
    }
    const enum mgx_status status = scan_value(s, f, (char *)attr + f->offset);
    if (status != MGX_OK)
        mgx_where(s->diag, "attribute '%s' of %s", f->name, op->name);
    return status;
}

static bool at_close(struct mgx_scan *s, char close)
{
    const char next = mgx_scan_peek(s);
    return close ? next == close : s->at == s->end;
}

enum mgx_status mgx_scan_attr(struct mgx_scan *s, const struct mgx_op *op, char close, void **out)
{
    void *attr;
    TRY(mgx_attr_make(op, NULL, s->arena, &attr, s->diag));
    while (!at_close(s, close)) {
        TRY(scan_field(s, op, attr));
        if (!mgx_scan_accept(s, ',') && !at_close(s, close))
            return mgx_scan_expected(s, close == ']'   ? "',' or ']'"
                                        : close == '}' ? "',' or '}'"
                                                       : "','");
    }
    if (close)
        TRY(mgx_scan_expect(s, close));
    *out = attr;
    return MGX_OK;
}

enum mgx_status mgx_attr_parse(const struct mgx_op *op, const char *text, size_t size,
                               struct mgx_arena *arena, void **out, struct mgx_diag *diag)
{
    assert(op && text && out);
    *out = NULL;
    struct mgx_scan s = {.text = text,
                         .at = text,
                         .end = text + size,
                         .comments = true,
                         .arena = arena,
                         .diag = diag};
    if (!mgx_scan_accept(&s, '{')) {
        s.comments = false; // in the printed form strings stand bare, "//" and "#" among them
        return mgx_scan_attr(&s, op, '\0', out);
    }
    TRY(mgx_scan_attr(&s, op, '}', out));
    if (mgx_scan_peek(&s), s.at != s.end)
        return mgx_scan_expected(&s, "the end of the attributes");
    return MGX_OK;
}
