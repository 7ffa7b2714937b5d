// SPDX-License-Identifier: MIT
// Models of one node from a line of text, for tables of test cases:
//
//     Conv(x:f[1,4,5,5], w:f[6,2,3,3], -) group=2 strides=[1,1] auto_pad='VALID' @17 ->2
//
// Inputs: name:T[dims] is a graph input, name:T{v,v} a constant vector, name:T=v a constant scalar,
// "-" an absent one. T: f float, d double, h half, i int64, j int32, u uint8, c int8, b bool.
// Attributes: an integer, a real (with a point, or nan/inf), lists of them, 'text', lists of it.
// "@" gives the opset, "->" the number of outputs (y0, y1, ...). A mistake in the line aborts:
// these are tests.
#pragma once

#include <ctype.h>
#include <math.h>
#include <stdio.h>

#include "writer.h"

enum { TINY_MAX = 64 };

static inline int tiny_type(char c)
{
    static const char letters[] = "fdhijucb";
    static const int numbers[] = {1, 11, 10, 7, 6, 2, 3, 9};
    const char *at = strchr(letters, c);
    if (!at || !c)
        abort();
    return numbers[at - letters];
}

static inline void tiny_skip(const char **p)
{
    while (isspace((unsigned char)**p))
        (*p)++;
}

// "1,2,3" up to the closing bracket; `real` says whether any of them was one.
static inline int tiny_list(const char **p, char close, double *out, bool *real)
{
    int count = 0;
    *real = false;
    while (**p != close) {
        char *end;
        if (count == TINY_MAX)
            abort();
        out[count++] = strtod(*p, &end);
        for (const char *c = *p; c < end; c++)
            *real |= *c == '.' || *c == 'n';
        if (end == *p)
            abort();
        *p = end + strspn(end, ", ");
    }
    (*p)++;
    return count;
}

static inline void tiny_constant(struct pb *graph, const char *name, int type, const double *v,
                                 int count, int rank)
{
    struct pb t = pb_tensor(name, type, rank, (int64_t[]){count});
    struct pb raw = {0};
    for (int i = 0; i < count; i++) {
        const float f = (float)v[i];
        const int64_t n = (v[i] >= 0x1p63) ? INT64_MAX : isnan(v[i]) ? 0 : (int64_t)v[i];
        if (type == 1)
            pb_raw(&raw, &f, 4);
        else if (type == 11)
            pb_raw(&raw, &v[i], 8);
        else
            pb_raw(&raw, &n, type == 7 ? 8 : type == 6 ? 4 : type == 10 ? 2 : 1);
    }
    pb_bytes(&t, 9, raw.data, raw.size);
    pb_free(&raw);
    pb_initializer(graph, &t);
}

static inline void tiny_input(struct pb *graph, struct pb *node, const char **p)
{
    char name[32];
    int size = 0;
    double v[TINY_MAX];
    int64_t dims[TINY_MAX];
    bool real;
    tiny_skip(p);
    if (**p == '-') {
        (*p)++;
        pb_text(node, 1, "");
        return;
    }
    while (isalnum((unsigned char)**p) && size < 31)
        name[size++] = *(*p)++;
    name[size] = '\0';
    if (*(*p)++ != ':')
        abort();
    const int type = tiny_type(*(*p)++);
    const char open = *(*p)++;
    if (open == '[') {
        const int rank = tiny_list(p, ']', v, &real);
        for (int i = 0; i < rank; i++)
            dims[i] = (int64_t)v[i];
        pb_input(graph, name, type, rank, dims);
    } else if (open == '{') {
        const int count = tiny_list(p, '}', v, &real);
        tiny_constant(graph, name, type, v, count, 1);
    } else {
        char *end;
        v[0] = strtod(*p, &end);
        *p = end;
        tiny_constant(graph, name, type, v, 1, 0);
    }
    pb_text(node, 1, name);
}

// "'a','b'" up to the closing bracket.
static inline void tiny_texts(const char **p, struct pb *value)
{
    char text[64];
    while (**p == '\'') {
        const char *end = strchr(*p + 1, '\'');
        snprintf(text, sizeof text, "%.*s", (int)(end - *p - 1), *p + 1);
        pb_text(value, 9, text);
        *p = end + 1 + strspn(end + 1, ", ");
    }
    if (*(*p)++ != ']')
        abort();
}

static inline void tiny_attribute(struct pb *node, const char **p)
{
    char name[48], text[64];
    int size = 0;
    double v[TINY_MAX];
    bool real;
    while (**p != '=' && size < 47)
        name[size++] = *(*p)++;
    name[size] = '\0';
    (*p)++;
    struct pb value = {0};
    if (**p == '\'') {
        const char *end = strchr(*p + 1, '\'');
        snprintf(text, sizeof text, "%.*s", (int)(end - *p - 1), *p + 1);
        *p = end + 1;
        pb_attr_text(node, name, text);
    } else if (strncmp(*p, "['", 2) == 0) {
        (*p)++;
        tiny_texts(p, &value);
        pb_attribute(node, name, PB_STRINGS, &value);
    } else if (**p == '[') {
        (*p)++;
        const int count = tiny_list(p, ']', v, &real);
        for (int i = 0; i < count; i++) {
            if (real)
                pb_float(&value, 7, (float)v[i]);
            else
                pb_int(&value, 8, (int64_t)v[i]);
        }
        pb_attribute(node, name, real ? PB_FLOATS : PB_INTS, &value);
    } else {
        const char *begin = *p;
        char *end;
        const double number = strtod(begin, &end);
        real =
            memchr(begin, '.', (size_t)(end - begin)) || memchr(begin, 'n', (size_t)(end - begin));
        *p = end;
        if (real)
            pb_attr_float(node, name, (float)number);
        else
            pb_attr_int(node, name, strtoll(begin, NULL, 10));
    }
}

static inline struct pb tiny_model(const char *line)
{
    struct pb graph = {0}, node = {0};
    char op[48], domain[32] = "";
    int size = 0, outputs = 1;
    int64_t opset = 21;
    const char *p = line;
    while (*p != '(' && size < 47)
        op[size++] = *p++;
    op[size] = '\0';
    char *dot = strrchr(op, '.');
    if (dot) {
        snprintf(domain, sizeof domain, "%.*s", (int)(dot - op), op);
        memmove(op, dot + 1, strlen(dot));
    }
    for (p++, tiny_skip(&p); *p != ')'; p += strspn(p, ", "))
        tiny_input(&graph, &node, &p);
    p++;
    pb_text(&node, 4, op);
    pb_text(&node, 7, domain);
    for (tiny_skip(&p); *p; tiny_skip(&p)) {
        if (*p == '@')
            opset = strtoll(p + 1, (char **)&p, 10);
        else if (p[0] == '-' && p[1] == '>')
            outputs = (int)strtol(p + 2, (char **)&p, 10);
        else
            tiny_attribute(&node, &p);
    }
    for (int i = 0; i < outputs; i++) {
        snprintf(op, sizeof op, "y%d", i);
        pb_text(&node, 2, op);
        pb_output(&graph, op);
    }
    pb_message(&graph, 1, &node);
    struct pb model = pb_model(&graph, opset);
    if (*domain)
        pb_opset(&model, 8, domain, 1);
    return model;
}
