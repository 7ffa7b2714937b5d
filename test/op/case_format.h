// SPDX-License-Identifier: MIT
// The text form of operator cases, and its reader. A file is a list of cases; `#` starts a comment
// line, blank lines mean nothing, a line that starts with two blanks continues the one before.
//
//     op slice[axes={0},starts={1},ends={3}]      starts a case: operator and attributes as printed
//     in float {4} = 0 1 2 3                      inputs in order: type, lengths [strides] [= values]
//     shape float_type, {2}, {1}                  what the shape rule gives, as printed; optional
//     out float {2} {1} = 1 2                     what compute gives; strides only if they matter
//
// Instead of `out`:  fails TEXT    the shape rule fails with a message that contains TEXT
//                    aborts TEXT   the shape rule accepts, compute fails with such a message
// Also:              tol ABS REL   tolerance instead of one unit in the last place of the type
//                    skip stride   not again with inputs laid out otherwise
//                    skip dynamic  not again with ranges for lengths, and unranked
//
// Inputs:  `in float {[1..4], 3}` and `in float {[1..4 batch], [0..]}` are ranges (0.. is open),
// for the shape rule alone; `in float *` is unranked; `in known int64 {2} = 2 3` is a value that
// the shape rule knows (it otherwise sees shapes only); `in -` is an absent (`undefined`) operand.
// `in tuple 2` and `in sequence 2` are followed by that many lines `item <operand>`; `in sequence 0
// float` says what an empty one holds. The same forms serve `out`.
//
// Values come in row-major order of the lengths, whatever the strides. Numbers as C and numpy write
// them (nan, inf, -inf); strings in double quotes with \" \\ \n \xHH; complex numbers as re:im;
// fp4x2 as bytes.
//
// A case may be a whole program, run by the reference: `program`, its text, `end`, then `in` for
// each parameter in order of creation and `out` for each result (or `fails`, of the parser).
#pragma once

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "op/op.h"

enum { CASE_MAX_IN = 16 };

struct case_value {
    struct mgx_shape shape;
    struct mgx_tensor tensor; // empty without values
    bool absent, known, has_values, has_strides;
};

struct op_case {
    const char *file;
    int line;
    char *op;      // name[attributes]; NULL for a program
    char *program; // its text
    struct case_value in[CASE_MAX_IN], out[CASE_MAX_IN];
    int in_count, out_count;
    char *shape, *fails, *aborts;
    double tol_abs, tol_rel; // negative: by type
    bool skip_stride, skip_dynamic;
};

struct case_reader {
    const char *file;
    char *at;   // rest of the text, cut into lines as it is read
    int line;   // of the line in hand
    char *held; // a line read too far: the next call of case_line gives it again
    struct mgx_arena *arena;
    char error[256]; // first mistake in the file itself
};

static inline bool case_error(struct case_reader *r, const char *what, const char *near)
{
    if (!r->error[0])
        snprintf(r->error, sizeof r->error, "%s:%d: %s near \"%.40s\"", r->file, r->line, what,
                 near ? near : "");
    return false;
}

// --- lines and tokens ---

static inline char *skip_blanks(char *s)
{
    while (*s == ' ' || *s == '\n' || *s == '\t')
        s++;
    return s;
}

// Cuts off the next logical line (with its continuations); NULL at the end.
static inline char *case_line(struct case_reader *r)
{
    char *const held = r->held;
    r->held = NULL;
    if (held)
        return held;
    while (*r->at) {
        char *line = r->at, *end = strchr(line, '\n');
        r->line++;
        int more = 0;
        while (end && end[1] == ' ' && end[2] == ' ') {
            more++;
            end = strchr(end + 1, '\n');
        }
        r->at = end ? end + 1 : line + strlen(line);
        if (end)
            *end = 0;
        if (*line != '#' && *line)
            return line;
        r->line += more;
    }
    return NULL;
}

// If *s starts with `word` and a blank or the end follows, steps over it.
static inline bool take_word(char **s, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*s, word, n) != 0 || ((*s)[n] && (*s)[n] != ' ' && (*s)[n] != '\n'))
        return false;
    *s = skip_blanks(*s + n);
    return true;
}

// --- shapes ---

static inline bool read_dim(struct case_reader *r, char **s, struct mgx_dim *d)
{
    char *p = skip_blanks(*s);
    *d = (struct mgx_dim){0};
    if (*p != '[') {
        d->min = d->max = strtoll(p, s, 10);
        return *s != p || case_error(r, "a length", p);
    }
    d->min = strtoll(p + 1, &p, 10);
    if (strncmp(p, "..", 2) != 0)
        return case_error(r, "\"..\"", p);
    char *end;
    d->max = strtoll(p + 2, &end, 10);
    if (end == p + 2)
        d->max = MGX_DIM_ANY;
    p = skip_blanks(end);
    const size_t n = strcspn(p, "]");
    if (n)
        d->name = mgx_arena_strndup(r->arena, p, n);
    *s = p + n + 1;
    return p[n] == ']' || case_error(r, "\"]\"", p);
}

// "{1, [2..3], 4}"; false when there is no list or it is wrong.
static inline bool read_list(struct case_reader *r, char **s, struct mgx_dim *dims, int *count)
{
    char *p = skip_blanks(*s);
    *count = 0;
    if (*p != '{')
        return false;
    for (p = skip_blanks(p + 1); *p && *p != '}'; p = skip_blanks(p)) {
        if (*count == MGX_MAX_RANK || !read_dim(r, &p, &dims[(*count)++]))
            return false;
        p = skip_blanks(p);
        p += *p == ',';
    }
    *s = p + (*p == '}');
    return true;
}

static inline bool read_type(struct case_reader *r, char **s, enum mgx_type *type)
{
    char *p = skip_blanks(*s);
    const size_t n = strcspn(p, " \n{*");
    if (!mgx_type_find(p, n, type))
        return case_error(r, "a type", p);
    *s = p + n;
    return true;
}

static inline bool read_shape(struct case_reader *r, char **s, struct case_value *v)
{
    enum mgx_type type;
    struct mgx_dim strides[MGX_MAX_RANK];
    struct mgx_dim *dims = MGX_NEW_ARRAY(r->arena, struct mgx_dim, MGX_MAX_RANK);
    int rank, stride_count;
    if (!read_type(r, s, &type))
        return false;
    *s = skip_blanks(*s);
    if (**s == '*') {
        ++*s;
        v->shape = mgx_shape_unranked(type);
        return true;
    }
    if (!read_list(r, s, dims, &rank))
        return case_error(r, "lengths", *s);
    v->shape = mgx_shape_dynamic(type, rank, dims);
    v->has_strides = read_list(r, s, strides, &stride_count);
    if (v->has_strides && stride_count != rank)
        return case_error(r, "as many strides as lengths", *s);
    for (int i = 0; v->has_strides && i < rank; i++)
        v->shape.strides[i] = strides[i].min;
    return true;
}

// --- values ---

static inline bool read_string(struct case_reader *r, char **s, struct mgx_string *out)
{
    char *p = skip_blanks(*s);
    if (*p++ != '"')
        return case_error(r, "a string", p - 1);
    char *to = mgx_arena_alloc(r->arena, strcspn(p, "") + 1);
    *out = (struct mgx_string){to, 0};
    for (; *p && *p != '"'; p++) {
        unsigned byte = (unsigned char)*p;
        if (*p == '\\') {
            p++;
            byte = *p == 'n' ? '\n' : (unsigned char)*p;
            if (*p == 'x' && sscanf(p + 1, "%2x", &byte) == 1)
                p += 2;
        }
        to[out->size++] = (char)byte;
    }
    *s = p + (*p == '"');
    return true;
}

static inline bool read_complex(char **s, enum mgx_type type, void *data, int64_t at)
{
    char *p = *s;
    const double re = strtod(p, s);
    if (*s == p || **s != ':')
        return false;
    const double im = strtod(*s + 1, s);
    const enum mgx_type part = type == MGX_COMPLEX64 ? MGX_FLOAT : MGX_DOUBLE;
    mgx_store_double(part, data, 2 * at, re);
    mgx_store_double(part, data, 2 * at + 1, im);
    return true;
}

static inline bool read_number(char **s, enum mgx_type type, void *data, int64_t at)
{
    char *p = *s, *end;
    if (type == MGX_FP4X2)
        type = MGX_UINT8;
    if (mgx_type_is_float(type)) {
        mgx_store_double(type, data, at, strtod(p, &end));
    } else {
        const int64_t v = *p == '-' ? strtoll(p, &end, 10) : (int64_t)strtoull(p, &end, 10);
        mgx_store_int(type, data, at, v);
    }
    *s = end;
    return end != p && (!*end || *end == ' ' || *end == '\n');
}

static inline bool read_values(struct case_reader *r, char **s, struct case_value *v)
{
    if (mgx_tensor_create(&v->tensor, &v->shape, NULL) != MGX_OK)
        return case_error(r, "a shape that fits memory", *s);
    const enum mgx_type type = v->shape.type;
    if (type != MGX_STRING)
        memset(v->tensor.data, 0x5b, mgx_shape_bytes(&v->shape)); // gaps between strides
    const int64_t count = mgx_shape_elements(&v->shape);
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = mgx_shape_index(&v->shape, i);
        *s = skip_blanks(*s);
        bool good;
        if (type == MGX_STRING)
            good = read_string(r, s, (struct mgx_string *)v->tensor.data + at);
        else if (mgx_type_is_complex(type))
            good = read_complex(s, type, v->tensor.data, at);
        else
            good = read_number(s, type, v->tensor.data, at);
        if (!good)
            return case_error(r, "a value", *s);
    }
    *s = skip_blanks(*s);
    v->has_values = true;
    return !**s || case_error(r, "more values than elements", *s);
}

static inline bool read_tensor(struct case_reader *r, char *s, struct case_value *v)
{
    v->known = take_word(&s, "known");
    if (take_word(&s, "-")) {
        v->absent = v->has_values = true;
        v->shape = mgx_shape_vector(MGX_FLOAT, 0);
        return mgx_tensor_create(&v->tensor, &v->shape, NULL) == MGX_OK;
    }
    if (!read_shape(r, &s, v))
        return false;
    s = skip_blanks(s);
    if (*s == '=') {
        s++;
        return read_values(r, &s, v);
    }
    return !*s || case_error(r, "\"=\" or the end of the line", s);
}

static inline bool read_operand(struct case_reader *r, char *s, struct case_value *v);

static inline bool read_items(struct case_reader *r, char *s, bool sequence, struct case_value *v)
{
    const int count = (int)strtol(s, &s, 10);
    struct mgx_tensor *items = MGX_NEW_ARRAY(r->arena, struct mgx_tensor, count);
    struct mgx_shape *sub = MGX_NEW_ARRAY(r->arena, struct mgx_shape, count + 1);
    for (int i = 0; i < count; i++) {
        struct case_value item = {0};
        char *line = case_line(r);
        if (!line || !take_word(&line, "item") || !read_operand(r, line, &item))
            return case_error(r, "an item", line);
        items[i] = item.tensor;
        sub[i] = item.shape;
    }
    if (count == 0) {
        enum mgx_type type;
        if (!read_type(r, &s, &type))
            return false;
        sub[0] = mgx_shape_unranked(type);
    }
    v->has_values = true;
    if (mgx_tensor_group(&v->tensor, items, count, sequence, NULL) != MGX_OK)
        return case_error(r, "items that make a group", s);
    const bool mixed = sequence && count > 1;
    if (mixed)
        sub[0] = mgx_shape_unranked(sub[0].type);
    v->shape = sequence ? mgx_shape_sequence(sub) : mgx_shape_tuple(sub, count);
    return true;
}

static inline bool read_operand(struct case_reader *r, char *s, struct case_value *v)
{
    if (take_word(&s, "tuple"))
        return read_items(r, s, false, v);
    if (take_word(&s, "sequence"))
        return read_items(r, s, true, v);
    return read_tensor(r, s, v);
}

static inline bool add_operand(struct case_reader *r, char *s, struct case_value *list, int *count)
{
    if (*count == CASE_MAX_IN)
        return case_error(r, "fewer operands", s);
    return read_operand(r, s, &list[(*count)++]);
}

// --- cases ---

static inline bool read_program(struct case_reader *r, struct op_case *c)
{
    char *end = strstr(r->at, "\nend\n");
    if (!end)
        return case_error(r, "\"end\" of the program", r->at);
    c->program = r->at;
    for (char *p = r->at; p < end; p++)
        r->line += *p == '\n';
    *(end + 1) = 0;
    r->at = end + 5;
    r->line += 2;
    return true;
}

static inline bool read_line(struct case_reader *r, char *line, struct op_case *c)
{
    if (take_word(&line, "in"))
        return add_operand(r, line, c->in, &c->in_count);
    if (take_word(&line, "out"))
        return add_operand(r, line, c->out, &c->out_count);
    if (take_word(&line, "shape"))
        c->shape = line;
    else if (take_word(&line, "fails"))
        c->fails = line;
    else if (take_word(&line, "aborts"))
        c->aborts = line;
    else if (take_word(&line, "tol"))
        c->tol_abs = strtod(line, &line), c->tol_rel = strtod(line, &line);
    else if (take_word(&line, "skip stride"))
        c->skip_stride = true;
    else if (take_word(&line, "skip dynamic"))
        c->skip_dynamic = true;
    else
        return case_error(r, "a line of a case", line);
    return true;
}

static inline bool starts_case(const char *line)
{
    return strncmp(line, "op ", 3) == 0 || strcmp(line, "program") == 0;
}

// Next case into *c; false at the end of the file or at a mistake in it (r->error).
static inline bool case_next(struct case_reader *r, struct op_case *c)
{
    char *line = case_line(r);
    *c = (struct op_case){.file = r->file, .line = r->line, .tol_abs = -1, .tol_rel = -1};
    if (!line)
        return false;
    if (!starts_case(line))
        return case_error(r, "\"op\" or \"program\"", line);
    if (take_word(&line, "op"))
        c->op = line;
    else if (!read_program(r, c))
        return false;
    while ((line = case_line(r))) {
        if (starts_case(line)) {
            r->held = line;
            return true;
        }
        if (!read_line(r, line, c))
            return false;
    }
    return true;
}

static inline void case_free(struct op_case *c)
{
    for (int i = 0; i < CASE_MAX_IN; i++) {
        mgx_tensor_release(&c->in[i].tensor);
        mgx_tensor_release(&c->out[i].tensor);
    }
}

// A file's text, to be freed.
static inline char *case_read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        return NULL;
    const long size = ftell(f);
    char *text = calloc((size_t)size + 1, 1);
    rewind(f);
    if (!text || fread(text, 1, (size_t)size, f) != (size_t)size)
        abort();
    fclose(f);
    return text;
}
