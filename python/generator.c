// SPDX-License-Identifier: MIT
// migraphx.generator: texts that a model continues, in tokens. Text and chats are migraphx.generate's.
//
// Holds: whatever may wait for a generator's lock waits without the interpreter's, which the thread
// that has the lock may need for a signal handler (interrupt.c).
#include "pymgx.h"

#include <stdlib.h>
#include <string.h>

static migraphx_generator_t of(PyObject *self)
{
    return ((struct py_generator *)self)->handle;
}

static PyObject *wrap(migraphx_generator_t take)
{
    struct py_generator *self = py_new(py.generator);
    if (self)
        self->handle = take;
    else
        migraphx_generator_destroy(take);
    return (PyObject *)self;
}

static PyObject *none_if(migraphx_status status)
{
    if (!OK(status))
        return py_fail();
    Py_RETURN_NONE;
}

// --- making ---

struct wishes {
    const char *target, *isa;
    Py_ssize_t context, piece, threads;
    PyObject *names, *states, *ends, *cards;
};

static int add_names(migraphx_generator_options_t options, PyObject *names)
{
    Py_ssize_t at = 0;
    PyObject *key, *value;
    if (names && names != Py_None && !PyDict_Check(names)) {
        PyErr_SetString(PyExc_TypeError, "names: a dict from roles to names");
        return -1;
    }
    while (names && names != Py_None && PyDict_Next(names, &at, &key, &value)) {
        const char *role = PyUnicode_AsUTF8AndSize(key, NULL);
        const char *name = role ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
        if (!name)
            return -1;
        if (!OK(migraphx_generator_options_set_name(options, role, name))) {
            py_fail();
            return -1;
        }
    }
    return 0;
}

static int add_states(migraphx_generator_options_t options, PyObject *states)
{
    Py_ssize_t at = 0;
    PyObject *key, *value;
    if (states && states != Py_None && !PyDict_Check(states)) {
        PyErr_SetString(PyExc_TypeError, "states: a dict from inputs to results");
        return -1;
    }
    while (states && states != Py_None && PyDict_Next(states, &at, &key, &value)) {
        const char *past = PyUnicode_AsUTF8AndSize(key, NULL);
        const char *present = past ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
        if (!present)
            return -1;
        if (!OK(migraphx_generator_options_add_state(options, past, present))) {
            py_fail();
            return -1;
        }
    }
    return 0;
}

// A sequence of whole numbers, to be freed; NULL with an exception set.
static int64_t *read_tokens(PyObject *sequence, size_t *size)
{
    PyObject *list = PySequence_List(sequence);
    const Py_ssize_t count = list ? PyList_Size(list) : 0;
    int64_t *tokens = list ? malloc(((size_t)count + 1) * sizeof *tokens) : NULL;
    if (list && !tokens)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; tokens && i < count; i++) {
        PyObject *whole = PyNumber_Index(PyList_GetItem(list, i));
        tokens[i] = whole ? PyLong_AsLongLong(whole) : -1;
        Py_XDECREF(whole);
        if (PyErr_Occurred()) {
            free(tokens);
            tokens = NULL;
        }
    }
    Py_XDECREF(list);
    *size = (size_t)count;
    return tokens;
}

static int add_ends(migraphx_generator_options_t options, PyObject *ends)
{
    size_t count = 0;
    if (!ends || ends == Py_None)
        return 0;
    int64_t *tokens = read_tokens(ends, &count);
    migraphx_status status = migraphx_status_success;
    for (size_t i = 0; tokens && i < count && OK(status); i++)
        status = migraphx_generator_options_add_end(options, tokens[i]);
    if (tokens && !OK(status))
        py_fail();
    free(tokens);
    return tokens && OK(status) ? 0 : -1;
}

static int add_cards(migraphx_generator_options_t options, PyObject *cards)
{
    enum { MOST = 8 };
    size_t count = 0, numbers[MOST];
    if (!cards || cards == Py_None)
        return 0;
    int64_t *list = read_tokens(cards, &count);
    bool good = list && count <= MOST;
    for (size_t i = 0; good && i < count; i++) {
        good = list[i] >= 0;
        numbers[i] = (size_t)list[i];
    }
    if (list && !good)
        PyErr_SetString(PyExc_ValueError, "cards: at most 8 numbers, 0 or more");
    free(list);
    if (!good)
        return -1;
    if (!OK(migraphx_generator_options_set_cards(options, numbers, count))) {
        py_fail();
        return -1;
    }
    return 0;
}

static int add_compile(migraphx_generator_options_t options, const struct wishes *w)
{
    migraphx_compile_options_t compile = NULL;
    migraphx_status status = migraphx_compile_options_create(&compile);
    if (OK(status))
        status = migraphx_compile_options_set_threads(compile, (size_t)w->threads);
    if (OK(status))
        status = migraphx_compile_options_set_isa(compile, w->isa);
    if (OK(status))
        status = migraphx_generator_options_set_compile_options(options, compile);
    migraphx_compile_options_destroy(compile);
    if (!OK(status))
        py_fail();
    return OK(status) ? 0 : -1;
}

static migraphx_generator_options_t make_options(const struct wishes *w)
{
    migraphx_generator_options_t options = NULL;
    if (!OK(migraphx_generator_options_create(&options)) ||
        !OK(migraphx_generator_options_set_target(options, w->target)) ||
        !OK(migraphx_generator_options_set_context(options, (size_t)w->context)) ||
        !OK(migraphx_generator_options_set_piece(options, (size_t)w->piece)))
        py_fail();
    else if (add_compile(options, w) == 0 && add_names(options, w->names) == 0 &&
             add_states(options, w->states) == 0 && add_ends(options, w->ends) == 0 &&
             add_cards(options, w->cards) == 0)
        return options;
    migraphx_generator_options_destroy(options);
    return NULL;
}

static PyObject *from_folder(PyObject *folder, migraphx_generator_options_t options)
{
    PyObject *path = NULL;
    migraphx_generator_t g = NULL;
    migraphx_status status;
    if (!PyUnicode_FSConverter(folder, &path))
        return NULL;
    const char *name = PyBytes_AsString(path);
    PY_WORK(status, migraphx_generator_load(&g, name, options));
    PyObject *made = OK(status) ? wrap(g) : py_fail();
    Py_DECREF(path);
    return made;
}

static PyObject *from_program(PyObject *program, migraphx_generator_options_t options)
{
    const migraphx_program_t handle = py_program_handle(program);
    migraphx_generator_t g = NULL;
    migraphx_status status;
    if (!handle)
        return NULL;
    PY_WORK(status, migraphx_generator_create(&g, handle, options));
    return OK(status) ? wrap(g) : py_fail();
}

static PyObject *generator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"source", "target",  "context", "piece", "names", "states",
                            "ends",   "threads", "isa",     "cards", NULL};
    struct wishes w = {.target = "cpu"};
    PyObject *source;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|s$nnOOOnzO:generator", names, &source,
                                     &w.target, &w.context, &w.piece, &w.names, &w.states, &w.ends,
                                     &w.threads, &w.isa, &w.cards))
        return NULL;
    if (w.context < 0 || w.piece < 0 || w.threads < 0) {
        PyErr_SetString(PyExc_ValueError, "context, piece and threads are 0 or more");
        return NULL;
    }
    migraphx_generator_options_t options = make_options(&w);
    if (!options)
        return NULL;
    const int is_program = PyObject_IsInstance(source, py.program);
    PyObject *made = is_program < 0 ? NULL
                     : is_program   ? from_program(source, options)
                                    : from_folder(source, options);
    migraphx_generator_options_destroy(options);
    return made;
}

static PyObject *share(PyObject *self, PyObject *unused)
{
    migraphx_generator_t g = NULL;
    (void)unused;
    return OK(migraphx_generator_share(&g, of(self))) ? wrap(g) : py_fail();
}

static void generator_dealloc(PyObject *self)
{
    migraphx_generator_destroy(of(self));
    py_free(self);
}

// --- texts ---

static PyObject *add_text(PyObject *self, PyObject *unused)
{
    size_t text = 0;
    migraphx_status status;
    (void)unused;
    PY_WORK(status, migraphx_generator_add(&text, of(self)));
    return OK(status) ? PyLong_FromSize_t(text) : py_fail();
}

// A number of a text, or of tokens; -1 with an exception set.
static int read_number(PyObject *value, size_t *out)
{
    PyObject *whole = PyNumber_Index(value);
    *out = whole ? PyLong_AsSize_t(whole) : 0;
    Py_XDECREF(whole);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *fork_text(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "size", NULL};
    Py_ssize_t from, size;
    size_t text = 0;
    migraphx_status status;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nn:fork", names, &from, &size))
        return NULL;
    PY_WORK(status, migraphx_generator_fork(&text, of(self), (size_t)from, (size_t)size));
    return OK(status) ? PyLong_FromSize_t(text) : py_fail();
}

static PyObject *remove_text(PyObject *self, PyObject *value)
{
    size_t text;
    migraphx_status status;
    if (read_number(value, &text) < 0)
        return NULL;
    PY_WORK(status, migraphx_generator_remove(of(self), text));
    return none_if(status);
}

static PyObject *append_tokens(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "tokens", NULL};
    PyObject *sequence;
    Py_ssize_t text;
    size_t size;
    migraphx_status status;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nO:append", names, &text, &sequence))
        return NULL;
    int64_t *tokens = read_tokens(sequence, &size);
    if (!tokens)
        return NULL;
    PY_WORK(status, migraphx_generator_append(of(self), (size_t)text, tokens, size));
    free(tokens);
    return none_if(status);
}

static PyObject *rewind_text(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "size", NULL};
    Py_ssize_t text, size;
    migraphx_status status;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nn:rewind", names, &text, &size))
        return NULL;
    PY_WORK(status, migraphx_generator_rewind(of(self), (size_t)text, (size_t)size));
    return none_if(status);
}

static PyObject *list_of(const int64_t *tokens, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *item = PyLong_FromLongLong(tokens[i]);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *tokens_of(PyObject *self, PyObject *value)
{
    size_t text, size = 0;
    if (read_number(value, &text) < 0)
        return NULL;
    migraphx_status status;
    PY_WORK(status, migraphx_generator_size(&size, of(self), text));
    if (!OK(status))
        return py_fail();
    int64_t *tokens = malloc((size + 1) * sizeof *tokens);
    if (!tokens)
        return PyErr_NoMemory();
    PY_WORK(status, migraphx_generator_tokens(tokens, of(self), text, size));
    PyObject *list = OK(status) ? list_of(tokens, size) : py_fail();
    free(tokens);
    return list;
}

// --- choosing ---

static int read_real(PyObject *value, migraphx_sampling_t sampling,
                     migraphx_status (*set)(migraphx_sampling_t, double))
{
    if (!value || value == Py_None)
        return 0;
    const double number = PyFloat_AsDouble(value);
    if (PyErr_Occurred())
        return -1;
    if (OK(set(sampling, number)))
        return 0;
    py_fail();
    return -1;
}

static int read_whole(PyObject *value, unsigned long long *out)
{
    PyObject *whole = PyNumber_Index(value);
    *out = whole ? PyLong_AsUnsignedLongLong(whole) : 0;
    Py_XDECREF(whole);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *set_sampling(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text",  "temperature",        "top_k", "top_p",
                            "min_p", "repetition_penalty", "seed",  NULL};
    PyObject *t = NULL, *k = NULL, *p = NULL, *m = NULL, *r = NULL, *seed = NULL;
    Py_ssize_t text;
    migraphx_sampling_t s = NULL;
    unsigned long long number = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n|$OOOOOO:set_sampling", names, &text, &t, &k,
                                     &p, &m, &r, &seed))
        return NULL;
    if (!OK(migraphx_generator_sampling(&s, of(self))))
        return py_fail();
    int bad = read_real(t, s, migraphx_sampling_set_temperature) < 0 ||
              read_real(p, s, migraphx_sampling_set_top_p) < 0 ||
              read_real(m, s, migraphx_sampling_set_min_p) < 0 ||
              read_real(r, s, migraphx_sampling_set_repetition_penalty) < 0;
    if (!bad && k && k != Py_None && !(bad = read_whole(k, &number) < 0))
        migraphx_sampling_set_top_k(s, (size_t)number);
    if (!bad && seed && seed != Py_None && !(bad = read_whole(seed, &number) < 0))
        migraphx_sampling_set_seed(s, number);
    migraphx_status status = migraphx_status_bad_param;
    if (!bad)
        PY_WORK(status, migraphx_generator_set_sampling(of(self), (size_t)text, s));
    migraphx_sampling_destroy(s);
    return bad ? NULL : none_if(status);
}

// As floats, to be freed; NULL with an exception set.
static float *read_floats(PyObject *values, size_t *size)
{
    PyObject *list = PySequence_List(values);
    const Py_ssize_t count = list ? PyList_Size(list) : 0;
    float *own = list ? malloc(((size_t)count + 1) * sizeof *own) : NULL;
    if (list && !own)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; own && i < count; i++) {
        own[i] = (float)PyFloat_AsDouble(PyList_GetItem(list, i));
        if (PyErr_Occurred()) {
            free(own);
            own = NULL;
        }
    }
    Py_XDECREF(list);
    *size = (size_t)count;
    return own;
}

static PyObject *set_bias(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "values", NULL};
    PyObject *values;
    Py_ssize_t text;
    size_t size = 0;
    float *own = NULL;
    migraphx_status status;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nO:set_bias", names, &text, &values))
        return NULL;
    if (values != Py_None && !(own = read_floats(values, &size)))
        return NULL;
    PY_WORK(status, migraphx_generator_set_bias(of(self), (size_t)text, own, size));
    free(own);
    return none_if(status);
}

static PyObject *set_guesses(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "most", NULL};
    Py_ssize_t text, most;
    migraphx_status status;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nn:set_guesses", names, &text, &most))
        return NULL;
    PY_WORK(status, migraphx_generator_set_guesses(of(self), (size_t)text, (size_t)most));
    return none_if(status);
}

static PyObject *set_draft(PyObject *self, PyObject *draft)
{
    migraphx_status status;
    if (draft != Py_None && PyObject_IsInstance(draft, py.generator) != 1)
        return PyErr_Format(PyExc_TypeError, "a generator or None is wanted, not %R",
                            Py_TYPE(draft));
    const migraphx_generator_t handle = draft == Py_None ? NULL : of(draft);
    PY_WORK(status, migraphx_generator_set_draft(of(self), handle));
    return none_if(status);
}

// --- running ---

static PyObject *next_tokens(PyObject *self, PyObject *sequence)
{
    size_t count;
    int64_t *numbers = read_tokens(sequence, &count);
    size_t *texts = numbers ? malloc((count + 1) * sizeof *texts) : NULL;
    PyObject *list = NULL;
    if (numbers && !texts)
        PyErr_NoMemory();
    if (texts) {
        migraphx_status status;
        for (size_t i = 0; i < count; i++)
            texts[i] = (size_t)numbers[i];
        PY_WORK(status, migraphx_generator_next(numbers, of(self), texts, count));
        list = OK(status) ? list_of(numbers, count) : py_fail();
    }
    free(texts);
    free(numbers);
    return list;
}

static PyObject *logits_of(PyObject *self, PyObject *value)
{
    size_t text, size = 0;
    migraphx_shape_t shape = NULL;
    migraphx_argument_t argument = NULL;
    char *data = NULL;
    migraphx_status status;
    if (read_number(value, &text) < 0)
        return NULL;
    migraphx_generator_vocabulary(&size, of(self));
    if (!OK(migraphx_shape_create(&shape, migraphx_shape_float_type, &size, 1)))
        return py_fail();
    status = migraphx_argument_create_empty(&argument, shape);
    migraphx_shape_destroy(shape);
    if (OK(status))
        status = migraphx_argument_buffer(&data, argument);
    if (OK(status))
        PY_WORK(status, migraphx_generator_logits((float *)(void *)data, of(self), text, size));
    if (OK(status))
        return py_wrap_argument(argument, 0);
    migraphx_argument_destroy(argument);
    return py_fail();
}

// --- asking ---

static PyObject *is_end(PyObject *self, PyObject *value)
{
    PyObject *whole = PyNumber_Index(value);
    const long long token = whole ? PyLong_AsLongLong(whole) : 0;
    bool ends = false;
    Py_XDECREF(whole);
    if (PyErr_Occurred())
        return NULL;
    migraphx_generator_is_end(&ends, of(self), token);
    return PyBool_FromLong(ends);
}

static PyObject *vocabulary(PyObject *self, void *unused)
{
    size_t size = 0;
    (void)unused;
    migraphx_generator_vocabulary(&size, of(self));
    return PyLong_FromSize_t(size);
}

static PyObject *context(PyObject *self, void *unused)
{
    size_t size = 0;
    (void)unused;
    migraphx_generator_context(&size, of(self));
    return PyLong_FromSize_t(size);
}

static PyObject *start(PyObject *self, void *unused)
{
    int64_t token = -1;
    (void)unused;
    migraphx_generator_start(&token, of(self));
    if (token >= 0)
        return PyLong_FromLongLong(token);
    Py_RETURN_NONE;
}

static PyObject *statistics(PyObject *self, PyObject *unused)
{
    static const char *const names[] = {"prompt_tokens",  "prompt_seconds", "answer_tokens",
                                        "answer_seconds", "guessed_tokens", "right_tokens",
                                        "runs",           "weight_bytes",   "state_bytes"};
    PyObject *dict = PyDict_New();
    (void)unused;
    for (size_t i = 0; dict && i < sizeof names / sizeof *names; i++) {
        double value = 0;
        migraphx_status status;
        PY_WORK(status, migraphx_generator_statistic(&value, of(self), names[i]));
        PyObject *item = OK(status) ? PyFloat_FromDouble(value) : py_fail();
        if (!item || PyDict_SetItemString(dict, names[i], item) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(item);
    }
    return dict;
}

static PyMethodDef methods[] = {
    {"share", share, METH_NOARGS,
     "share($self, /)\n--\n\nAnother one of the same model, for another thread: weights are "
     "shared, "
     "texts are its own."},
    {"add", add_text, METH_NOARGS, "add($self, /)\n--\n\nBegins a text; gives its number."},
    {"fork", WITH_KEYWORDS(fork_text),
     "fork($self, /, text, size)\n--\n\nBegins a text with the first `size` tokens of another one, "
     "whose cache it shares."},
    {"remove", remove_text, METH_O, "remove($self, text, /)\n--\n\nEnds a text."},
    {"source_shapes", py_generator_source_shapes, METH_NOARGS,
     "source_shapes($self, /)\n--\n\nShapes of the inputs of the model's encoder by name; empty "
     "where it has none."},
    {"set_source", WITH_KEYWORDS(py_generator_set_source),
     "set_source($self, /, text, inputs)\n--\n\nWhat a text is about: runs the model's encoder on "
     "a dict of arrays."},
    {"append", WITH_KEYWORDS(append_tokens),
     "append($self, /, text, tokens)\n--\n\nAppends tokens; they run when next or logits need "
     "them."},
    {"rewind", WITH_KEYWORDS(rewind_text),
     "rewind($self, /, text, size)\n--\n\nTakes tokens back: the first `size` stay."},
    {"tokens", tokens_of, METH_O, "tokens($self, text, /)\n--\n\nAll tokens of a text, a list."},
    {"set_sampling", WITH_KEYWORDS(set_sampling),
     "set_sampling($self, /, text, *, temperature=None, top_k=None, top_p=None, min_p=None, "
     "repetition_penalty=None, seed=None)\n--\n\n"
     "How the next tokens of a text are chosen; None is what the model's folder says."},
    {"set_bias", WITH_KEYWORDS(set_bias),
     "set_bias($self, /, text, values)\n--\n\n"
     "What is added to the scores of the next tokens, a number for each of the vocabulary;\n"
     "-inf forbids one. None: nothing is added."},
    {"set_guesses", WITH_KEYWORDS(set_guesses),
     "set_guesses($self, /, text, most)\n--\n\n"
     "Runs of the text take up to `most` tokens more (15) that are guessed: what followed its\n"
     "last ones before, or what the draft says. Nothing but time changes. 0 guesses none."},
    {"set_draft", set_draft, METH_O,
     "set_draft($self, draft, /)\n--\n\nHas a smaller model of the same tokens guess for all "
     "texts; None: none."},
    {"next", next_tokens, METH_O,
     "next($self, texts, /)\n--\n\nThe next token of each of these texts, which is appended to it, "
     "as a list. They run together where the model can."},
    {"logits", logits_of, METH_O,
     "logits($self, text, /)\n--\n\nThe scores of what may follow a text, as the model gives "
     "them."},
    {"is_end", is_end, METH_O, "is_end($self, token, /)\n--\n\nWhether a token ends an answer."},
    {"statistics", statistics, METH_NOARGS,
     "statistics($self, /)\n--\n\nA dict of tokens, seconds and runs so far, for prompts and "
     "answers, and of the bytes held."},
    {NULL, NULL, 0, NULL}};

PyObject *py_make_generator_type(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"vocabulary", vocabulary, NULL, "How many tokens the model knows.", NULL},
        {"context", context, NULL, "The most tokens that a text may have; 0: no limit is known.",
         NULL},
        {"start", start, NULL,
         "The token that a text of a model with an encoder begins with, or None.", NULL},
        {NULL, NULL, NULL, NULL, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_new, (void *)generator_new},
        {Py_tp_dealloc, (void *)generator_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, properties},
        {Py_tp_doc,
         "generator(source, target='cpu', *, context=0, piece=0, names=None, states=None, "
         "ends=None, threads=0, isa=None, cards=None)\n--\n\n"
         "Texts that a model continues, token by token, with its caches kept between calls.\n\n"
         "source is a folder as ONNX Runtime GenAI, Optimum and mobius write it, or a program\n"
         "that was read with dynamic_dims=True. names says which input or result has a role\n"
         "(tokens, mask, positions, lengths, total, logits), states which input takes which\n"
         "result of the run before (%d: the layer), where they are not called as usual. context\n"
         "is the most tokens of a text, piece those of a prompt that run at once, ends are\n"
         "tokens that end an answer beside those that the folder names.\n\n"
         "    g = migraphx.generator(\"folder\")\n"
         "    text = g.add()\n"
         "    g.append(text, [1, 2, 3])\n"
         "    token, = g.next([text])"},
        {0, NULL}};
    static PyType_Spec spec = {"migraphx.generator", sizeof(struct py_generator), 0,
                               Py_TPFLAGS_DEFAULT, slots};
    return py_add_type(module, &spec);
}
