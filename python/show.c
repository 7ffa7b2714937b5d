// SPDX-License-Identifier: MIT
// How arguments, programs and modules show themselves at a prompt and in a notebook.
//
// repr is short whatever the size: a few values at the edges of every axis, counts and names.
// Everything is in str, which is MIGraphX's printed form. _repr_html_ says the same in a small
// table, with every text escaped. An argument costs a copy of the values that are shown, a program
// its list of instructions.
#include "pymgx.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_BELOW = 64, MOST_SHOWN = 128, MOST_NAMED = 4, MOST_ROWS = 16, MOST_LINES = 40 };

// --- texts that grow ---

struct text {
    char *at; // NULL: empty so far
    size_t size;
    bool failed; // no memory
};

static void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *t, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int more = vsnprintf(NULL, 0, format, args);
    char *grown = more < 0 ? NULL : realloc(t->at, t->size + (size_t)more + 1);
    if (grown) {
        vsnprintf(grown + t->size, (size_t)more + 1, format, again);
        t->at = grown;
        t->size += (size_t)more;
    }
    t->failed = t->failed || !grown;
    va_end(again);
    va_end(args);
}

static void put_escaped(struct text *t, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        switch (text[i]) {
        case '&':
            put(t, "&amp;");
            break;
        case '<':
            put(t, "&lt;");
            break;
        case '>':
            put(t, "&gt;");
            break;
        case '"':
            put(t, "&quot;");
            break;
        case '\'':
            put(t, "&#39;");
            break;
        default:
            put(t, "%c", text[i]);
        }
}

// The text as str, or NULL with an exception.
static PyObject *finish(struct text *t)
{
    PyObject *result = NULL;
    if (t->failed)
        PyErr_NoMemory();
    else if (!PyErr_Occurred())
        result = PyUnicode_DecodeUTF8(t->at ? t->at : "", (Py_ssize_t)t->size, "replace");
    free(t->at);
    return result;
}

// --- values of a tensor ---

struct shown {
    const char *data;
    const size_t *lens, *strides;
    size_t rank, width;
    bool all;
    int count;                                      // of values that are shown
    size_t offsets[MOST_SHOWN], places[MOST_SHOWN]; // in bytes; row-major
    char (*texts)[48];
    int next; // that is printed
};

// How many entries of an axis are shown at its beginning, the fewer the farther it is from the last.
static size_t head(const struct shown *s, size_t axis)
{
    static const size_t heads[] = {3, 2, 1};
    const size_t from_last = s->rank - 1 - axis;
    return from_last < 3 ? heads[from_last] : 1;
}

// The entry that follows entry `i` - 1 where some are left out; `i` where none is.
static size_t skip(const struct shown *s, size_t axis, size_t i)
{
    const size_t n = s->lens[axis], h = head(s, axis);
    const size_t tail = s->rank - 1 - axis < 3 ? h : 0;
    return !s->all && i == h && n > h + tail ? n - tail : i;
}

static void collect(struct shown *s, size_t axis, size_t offset, size_t place)
{
    if (axis == s->rank) {
        if (s->count < MOST_SHOWN) {
            s->offsets[s->count] = offset;
            s->places[s->count++] = place;
        }
        return;
    }
    const size_t n = s->lens[axis];
    for (size_t i = 0; (i = skip(s, axis, i)) < n; i++)
        collect(s, axis + 1, offset + i * s->strides[axis] * s->width, place * n + i);
}

static void put_break(const struct shown *s, size_t axis, struct text *out)
{
    if (axis + 1 == s->rank)
        put(out, ", ");
    else
        put(out, ",\n%*s", (int)axis + 10, ""); // below the first bracket of "argument(["
}

static void print_nested(struct shown *s, size_t axis, struct text *out)
{
    if (axis == s->rank) {
        if (s->next < s->count)
            put(out, "%s", s->texts[s->next++]);
        return;
    }
    const size_t n = s->lens[axis];
    put(out, "[");
    for (size_t i = 0; i < n; i++) {
        const size_t from = skip(s, axis, i);
        if (i)
            put_break(s, axis, out);
        if (from > i)
            put(out, "...");
        if (from > i && from < n)
            put_break(s, axis, out);
        i = from;
        if (i < n)
            print_nested(s, axis + 1, out);
    }
    put(out, "]");
}

static void format_value(char *out, size_t room, const char *type, double real, int64_t integer)
{
    if (strcmp(type, "bool_type") == 0)
        snprintf(out, room, integer ? "True" : "False");
    else if (strcmp(type, "uint64_type") == 0)
        snprintf(out, room, "%llu", (unsigned long long)integer);
    else if (strncmp(type, "int", 3) == 0 || strncmp(type, "uint", 4) == 0)
        snprintf(out, room, "%lld", (long long)integer);
    else
        snprintf(out, room, strcmp(type, "double_type") == 0 ? "%.9g" : "%.6g", real);
}

// The engine knows every type: it reads a packed copy of those that are shown.
static int read_numbers(struct shown *s, migraphx_shape_datatype_t type, const char *name)
{
    double reals[MOST_SHOWN];
    int64_t integers[MOST_SHOWN];
    size_t n = (size_t)s->count;
    migraphx_shape_t shape = NULL;
    migraphx_argument_t few = NULL;
    char *data;
    const bool made = OK(migraphx_shape_create(&shape, type, &n, 1)) &&
                      OK(migraphx_argument_create_empty(&few, shape)) &&
                      OK(migraphx_argument_buffer(&data, few));
    for (size_t i = 0; made && i < n; i++)
        memcpy(data + i * s->width, s->data + s->offsets[i], s->width);
    const bool read = made && OK(migraphx_argument_values(reals, n, few)) &&
                      OK(migraphx_argument_integers(integers, n, few));
    for (size_t i = 0; read && i < n; i++)
        format_value(s->texts[i], sizeof *s->texts, name, reals[i], integers[i]);
    migraphx_argument_destroy(few);
    migraphx_shape_destroy(shape);
    return read ? 0 : -1;
}

static void read_strings(struct shown *s, const_migraphx_argument_t argument)
{
    enum { LONGEST = 24 };
    for (int i = 0; i < s->count; i++) {
        const char *text;
        size_t size;
        if (!OK(migraphx_argument_string(&text, &size, argument, s->places[i])))
            continue;
        PyObject *start =
            PyUnicode_DecodeUTF8(text, (Py_ssize_t)(size < LONGEST ? size : LONGEST), "replace");
        PyObject *quoted = start ? PyObject_Repr(start) : NULL;
        const char *shown = quoted ? PyUnicode_AsUTF8AndSize(quoted, NULL) : NULL;
        snprintf(s->texts[i], sizeof *s->texts, "%s%s", shown ? shown : "?",
                 size > LONGEST ? "..." : "");
        Py_XDECREF(quoted);
        Py_XDECREF(start);
        PyErr_Clear();
    }
}

// False where there are no values to show: another type, a card's memory.
static bool put_values(struct text *out, const_migraphx_argument_t argument,
                       const_migraphx_shape_t shape, const char *name)
{
    struct shown s = {0};
    migraphx_shape_datatype_t type;
    size_t elements, shown;
    const char *device = "";
    char *data = NULL;
    if (!OK(migraphx_argument_device(&device, argument)) || strcmp(device, "host") != 0 ||
        !OK(migraphx_shape_rank(&s.rank, shape)) ||
        !OK(migraphx_shape_lengths(&s.lens, &shown, shape)) ||
        !OK(migraphx_shape_strides(&s.strides, &shown, shape)) ||
        !OK(migraphx_shape_elements(&elements, shape)) || !OK(migraphx_shape_type(&type, shape)) ||
        !OK(migraphx_type_size(&s.width, type)))
        return false;
    const bool strings = strcmp(name, "string_type") == 0;
    if (!strings && !OK(migraphx_argument_buffer(&data, argument)))
        return false;
    s.data = data;
    s.all = elements <= ALL_BELOW;
    s.texts = calloc(MOST_SHOWN, sizeof *s.texts);
    bool good = s.texts != NULL;
    if (good && elements)
        collect(&s, 0, 0, 0);
    if (good && strings)
        read_strings(&s, argument);
    else if (good && s.count)
        good = read_numbers(&s, type, name) == 0;
    if (good && elements)
        print_nested(&s, 0, out);
    else if (good)
        put(out, "[]");
    free(s.texts);
    return good;
}

// --- arguments ---

static const_migraphx_argument_t handle_of(PyObject *argument)
{
    return ((struct py_argument *)argument)->handle;
}

static void put_lengths(struct text *out, const_migraphx_shape_t shape)
{
    const size_t *lens;
    size_t rank = 0, shown;
    if (!OK(migraphx_shape_rank(&rank, shape)) || !OK(migraphx_shape_lengths(&lens, &shown, shape)))
        rank = 0;
    put(out, "(");
    for (size_t i = 0; i < rank; i++)
        put(out, "%s%zu", i ? ", " : "", lens[i]);
    put(out, rank == 1 ? ",)" : ")");
}

static void put_argument(struct text *out, const_migraphx_argument_t argument, int depth);

static void put_members(struct text *out, const_migraphx_argument_t argument, int depth)
{
    enum { DEEPEST = 4 };
    size_t count = 0;
    migraphx_argument_members_size(&count, argument);
    for (size_t i = 0; i < count; i++) {
        const_migraphx_argument_t member;
        put(out, i ? ", " : "");
        if (i == MOST_NAMED || depth == DEEPEST ||
            !OK(migraphx_argument_member(&member, argument, i))) {
            put(out, "... (%zu)", count);
            break;
        }
        put_argument(out, member, depth + 1);
    }
}

static void put_argument(struct text *out, const_migraphx_argument_t argument, int depth)
{
    const_migraphx_shape_t shape;
    migraphx_shape_datatype_t type;
    const char *name = "", *device = "host";
    if (!OK(migraphx_argument_shape(&shape, argument)) || !OK(migraphx_shape_type(&type, shape)) ||
        !OK(migraphx_type_name(&name, type))) {
        put(out, "argument()");
        return;
    }
    const bool tuple = strcmp(name, "tuple_type") == 0;
    put(out, "argument(");
    if (tuple || strcmp(name, "sequence_type") == 0) {
        put(out, tuple ? "(" : "[");
        put_members(out, argument, depth);
        put(out, tuple ? "))" : "])");
        return;
    }
    put(out, put_values(out, argument, shape, name) ? ", shape=" : "shape=");
    put_lengths(out, shape);
    put(out, ", dtype=%s", py_dtype_name(type));
    if (OK(migraphx_argument_device(&device, argument)) && strcmp(device, "host") != 0)
        put(out, ", in memory of %s", device);
    put(out, ")");
}

PyObject *py_argument_repr(PyObject *self)
{
    struct text out = {0};
    put_argument(&out, handle_of(self), 0);
    return finish(&out);
}

PyObject *py_argument_str(PyObject *self)
{
    char *text;
    return OK(migraphx_argument_to_string(&text, handle_of(self))) ? py_take_text(text) : py_fail();
}

PyObject *py_argument_html(PyObject *self, PyObject *unused)
{
    struct text out = {0}, plain = {0};
    const_migraphx_shape_t shape;
    size_t bytes = 0;
    (void)unused;
    put_argument(&plain, handle_of(self), 0);
    put(&out, "<div><b>migraphx.argument</b>");
    if (OK(migraphx_argument_shape(&shape, handle_of(self))) &&
        OK(migraphx_shape_bytes(&bytes, shape)) && bytes)
        put(&out, ", %zu bytes", bytes);
    put(&out, "<pre>");
    put_escaped(&out, plain.at ? plain.at : "", plain.size);
    put(&out, "</pre></div>");
    free(plain.at);
    return finish(&out);
}

// --- programs ---

static size_t count_instructions(const_migraphx_module_t module)
{
    migraphx_instructions_t list = NULL;
    size_t count = 0;
    if (OK(migraphx_module_instructions(&list, module)))
        migraphx_instructions_size(&count, list);
    migraphx_instructions_destroy(list);
    return count;
}

// "float_type, {2, 3}": as printed, without strides.
static void put_shape(struct text *out, PyObject *shape, bool html)
{
    char *text = NULL;
    if (!OK(migraphx_shape_to_string(&text, ((struct py_shape *)shape)->handle)))
        return;
    const char *strides = strstr(text, "}, {");
    const size_t size = strides ? (size_t)(strides - text) + 1 : strlen(text);
    if (html)
        put_escaped(out, text, size);
    else
        put(out, "%.*s", (int)size, text);
    migraphx_string_destroy(text);
}

struct ends {
    PyObject *names, *shapes; // lists; of results the names may be fewer
};

static struct ends find_ends(PyObject *self, bool inputs)
{
    struct ends e = {NULL, NULL};
    if (inputs) {
        PyObject *dict = PyObject_CallMethod(self, "get_parameter_shapes", NULL);
        e.names = dict ? PySequence_List(dict) : NULL;
        PyObject *values = dict ? PyObject_CallMethod(dict, "values", NULL) : NULL;
        e.shapes = values ? PySequence_List(values) : NULL;
        Py_XDECREF(values);
        Py_XDECREF(dict);
    } else {
        e.names = PyObject_CallMethod(self, "get_output_names", NULL);
        e.shapes = PyObject_CallMethod(self, "get_output_shapes", NULL);
    }
    PyErr_Clear(); // a program that is being built has no results yet
    return e;
}

static Py_ssize_t count_ends(const struct ends *e)
{
    return e->shapes ? PyList_Size(e->shapes) : 0;
}

static const char *end_name(const struct ends *e, Py_ssize_t i)
{
    PyObject *name = e->names && i < PyList_Size(e->names) ? PyList_GetItem(e->names, i) : NULL;
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    PyErr_Clear();
    return text ? text : "";
}

static void drop_ends(struct ends *e)
{
    Py_XDECREF(e->names);
    Py_XDECREF(e->shapes);
}

static void put_ends(struct text *out, PyObject *self, bool inputs)
{
    struct ends e = find_ends(self, inputs);
    const Py_ssize_t count = count_ends(&e);
    for (Py_ssize_t i = 0; i < count; i++) {
        put(out, i ? "; " : inputs ? ", " : " -> ");
        if (i == MOST_NAMED) {
            put(out, "... (%zd)", count);
            break;
        }
        if (*end_name(&e, i))
            put(out, "%.80s: ", end_name(&e, i));
        put_shape(out, PyList_GetItem(e.shapes, i), false);
    }
    drop_ends(&e);
}

static void put_counts(struct text *out, PyObject *self)
{
    const migraphx_program_t program = py_program_handle(self);
    migraphx_module_t module = NULL;
    bool compiled = false;
    if (!program || !OK(migraphx_program_get_main_module(&module, program)) ||
        !OK(migraphx_program_is_compiled(&compiled, program)))
        return;
    const size_t count = count_instructions(module);
    put(out, "%zu instruction%s, %s", count, count == 1 ? "" : "s",
        compiled ? "compiled" : "not compiled");
}

PyObject *py_program_repr(PyObject *self)
{
    struct text out = {0};
    put(&out, "<migraphx.program: ");
    put_counts(&out, self);
    put_ends(&out, self, true);
    put_ends(&out, self, false);
    put(&out, ">");
    return finish(&out);
}

PyObject *py_program_str(PyObject *self)
{
    char *text;
    const migraphx_program_t program = py_program_handle(self);
    if (!program)
        return NULL;
    return OK(migraphx_program_to_string(&text, program)) ? py_take_text(text) : py_fail();
}

static void put_rows(struct text *out, PyObject *self, bool inputs)
{
    struct ends e = find_ends(self, inputs);
    const Py_ssize_t count = count_ends(&e);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (i == MOST_ROWS) {
            put(out, "<tr><td>...</td><td colspan=2>%zd in all</td></tr>", count);
            break;
        }
        const char *name = end_name(&e, i);
        put(out, "<tr><td>%s</td><td>", inputs ? "input" : "result");
        put_escaped(out, name, strlen(name));
        put(out, "</td><td>");
        put_shape(out, PyList_GetItem(e.shapes, i), true);
        put(out, "</td></tr>");
    }
    drop_ends(&e);
}

// The first lines of the printed form, each cut where it is long.
static void put_lines(struct text *out, const char *text)
{
    enum { LONGEST = 160 };
    int line = 0;
    for (; *text && line < MOST_LINES; line++) {
        const size_t size = strcspn(text, "\n");
        put_escaped(out, text, size < LONGEST ? size : LONGEST);
        put(out, size < LONGEST ? "\n" : "...\n");
        text += size + (text[size] == '\n');
    }
    if (*text)
        put(out, "... (print gives all)\n");
}

PyObject *py_program_html(PyObject *self, PyObject *unused)
{
    struct text out = {0};
    char *text = NULL;
    (void)unused;
    const migraphx_program_t program = py_program_handle(self);
    if (!program || !OK(migraphx_program_to_string(&text, program)))
        return PyErr_Occurred() ? NULL : py_fail();
    put(&out, "<div><b>migraphx.program</b>: ");
    put_counts(&out, self);
    put(&out, "<table>");
    put_rows(&out, self, true);
    put_rows(&out, self, false);
    put(&out, "</table><details><summary>instructions</summary><pre>");
    put_lines(&out, text);
    put(&out, "</pre></details></div>");
    migraphx_string_destroy(text);
    return finish(&out);
}

PyObject *py_module_repr(PyObject *self)
{
    const char *name = "";
    const migraphx_module_t module = ((struct py_module *)self)->handle;
    struct text out = {0};
    if (!OK(migraphx_module_name(&name, module)))
        return py_fail();
    const size_t count = count_instructions(module);
    put(&out, "<migraphx.module \"%s\": %zu instruction%s>", name, count, count == 1 ? "" : "s");
    return finish(&out);
}
