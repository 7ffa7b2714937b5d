// SPDX-License-Identifier: MIT
// Attribute accessors of a node; see node.h. A value is read from the file when a rule asks for it.
// Inside a function an attribute may name one of the call, which is followed here.
#include <assert.h>
#include <string.h>

#include "tf/graph.h"

static bool own_attribute(const struct mgx_node *n, struct mgx_slice name,
                          struct mgx_tf_attribute *out)
{
    const struct mgx_tf_node_def *def = n->wire;
    struct mgx_wire value;
    return mgx_tf_find_entry(&def->attributes, name, &value, n->diag) == MGX_OK && value.p &&
           mgx_tf_read_attribute(value, out, n->diag) == MGX_OK && out->kind != MGX_TF_NONE;
}

static struct mgx_slice text_of(const struct mgx_tf_attribute *a)
{
    return (struct mgx_slice){(const char *)a->body.p, (size_t)(a->body.end - a->body.p)};
}

bool mgx_tf_attribute(const struct mgx_node *n, const char *name, struct mgx_tf_attribute *out)
{
    assert(name && out);
    struct mgx_slice wanted = {name, strlen(name)};
    while (own_attribute(n, wanted, out)) { // a call's own scope lies further out each time
        if (out->kind != MGX_TF_PLACEHOLDER)
            return true;
        wanted = text_of(out);
        n = n->tf->call;
        if (!n)
            return false;
    }
    return false;
}

static const char *kind_name(enum mgx_tf_kind kind)
{
    static const char *const names[] = {"nothing",  "a list",        "text",      "an int",
                                        "a float",  "a bool",        "a type",    "a shape",
                                        "a tensor", "a placeholder", "a function"};
    return names[kind];
}

// False if it is absent; a value of another kind is a failure too.
static bool of_kind(const struct mgx_node *n, const char *name, enum mgx_tf_kind kind,
                    struct mgx_tf_attribute *out)
{
    if (!mgx_tf_attribute(n, name, out))
        return false;
    if (out->kind == kind)
        return true;
    mgx_fail(n->diag, MGX_INVALID, "attribute \"%s\" is %s, not %s", name, kind_name(out->kind),
             kind_name(kind));
    return false;
}

bool mgx_tf_has(const struct mgx_node *n, const char *name)
{
    struct mgx_tf_attribute a;
    return mgx_tf_attribute(n, name, &a);
}

int64_t mgx_tf_int(const struct mgx_node *n, const char *name, int64_t fallback)
{
    struct mgx_tf_attribute a;
    return of_kind(n, name, MGX_TF_INT, &a) ? a.number : fallback;
}

bool mgx_tf_flag(const struct mgx_node *n, const char *name, bool fallback)
{
    struct mgx_tf_attribute a;
    return of_kind(n, name, MGX_TF_BOOL, &a) ? a.number != 0 : fallback;
}

double mgx_tf_real(const struct mgx_node *n, const char *name, double fallback)
{
    struct mgx_tf_attribute a;
    return of_kind(n, name, MGX_TF_FLOAT, &a) ? (double)a.real : fallback;
}

const char *mgx_tf_text(const struct mgx_node *n, const char *name, const char *fallback)
{
    struct mgx_tf_attribute a;
    const char *text;
    if (!of_kind(n, name, MGX_TF_TEXT, &a) ||
        mgx_name_text(text_of(&a), name, n->scratch, &text, n->diag) != MGX_OK)
        return fallback;
    return text;
}

struct mgx_ints mgx_tf_ints(const struct mgx_node *n, const char *name)
{
    struct mgx_tf_attribute a;
    struct mgx_ints out = {0};
    if (!of_kind(n, name, MGX_TF_LIST, &a))
        return out;
    const size_t most = (size_t)(a.body.end - a.body.p);
    int64_t *v = MGX_NEW_ARRAY(n->scratch, int64_t, most);
    struct mgx_wire_field f;
    int count = 0;
    while (v && mgx_wire_next(&a.body, &f)) {
        struct mgx_wire list;
        uint64_t value;
        if (f.number != 3 || !mgx_wire_packed(&a.body, &f, 0, &list))
            continue;
        while (list.p < list.end && mgx_wire_varint(&list, &value))
            v[count++] = (int64_t)value;
        if (list.bad)
            a.body.bad = list.bad;
    }
    if (!v)
        mgx_fail_memory(n->diag);
    else if (a.body.bad)
        (void)!mgx_wire_fail(&a.body, name, n->diag);
    else
        out = (struct mgx_ints){v, count};
    return out;
}

struct mgx_strings mgx_tf_texts(const struct mgx_node *n, const char *name)
{
    enum { TEXTS = 2 };
    struct mgx_tf_attribute a;
    struct mgx_names list;
    struct mgx_want want = {.number = TEXTS, .names = &list};
    if (!of_kind(n, name, MGX_TF_LIST, &a) ||
        mgx_message_collect(a.body, &want, 1, name, n->scratch, n->diag) != MGX_OK)
        return (struct mgx_strings){0};
    const char **v = MGX_NEW_ARRAY(n->scratch, const char *, list.count);
    int count = 0;
    while (v && count < list.count &&
           mgx_name_text(list.v[count], name, n->scratch, &v[count], n->diag) == MGX_OK)
        count++;
    if (!v)
        mgx_fail_memory(n->diag);
    return (struct mgx_strings){v, count};
}

enum mgx_type mgx_tf_type(const struct mgx_node *n, const char *name, enum mgx_type fallback)
{
    struct mgx_tf_attribute a;
    enum mgx_type type = fallback;
    if (of_kind(n, name, MGX_TF_TYPE, &a))
        (void)!mgx_tf_type_of(a.number, &type, n->diag); // recorded
    return type;
}

enum mgx_status mgx_tf_shape(const struct mgx_node *n, const char *name, int *rank,
                             int64_t lens[MGX_MAX_RANK])
{
    struct mgx_tf_attribute a;
    *rank = -1;
    return of_kind(n, name, MGX_TF_SHAPE, &a) ? mgx_tf_read_shape(a.body, rank, lens, n->diag)
                                              : n->diag->status;
}

struct mgx_ins *mgx_tf_tensor(struct mgx_node *n, const char *name)
{
    struct mgx_tf_attribute a;
    if (of_kind(n, name, MGX_TF_TENSOR, &a))
        return mgx_tf_read_tensor(n, a.body);
    (void)mgx_node_invalid(n, "attribute \"%s\" is absent", name);
    return NULL;
}

// The function that a NameAttrList names.
static enum mgx_status function_of(const struct mgx_node *n, struct mgx_wire w,
                                   struct mgx_tf_body **out)
{
    const struct mgx_slice title = mgx_tf_text_field(w, 1);
    TRY(mgx_name_check(title, "the name of a function", n->diag));
    *out = mgx_map_findn(&n->tf->import->functions, title.text, title.size);
    return *out ? MGX_OK
                : mgx_fail(n->diag, MGX_INVALID, "the model has no function \"%.*s\"",
                           MGX_SLICE(title));
}

enum mgx_status mgx_tf_function(const struct mgx_node *n, const char *name,
                                struct mgx_tf_body **out)
{
    struct mgx_tf_attribute a;
    *out = NULL;
    if (!of_kind(n, name, MGX_TF_FUNCTION, &a))
        return mgx_fail(n->diag, MGX_INVALID, "attribute \"%s\" names no function", name);
    return function_of(n, a.body, out);
}

enum mgx_status mgx_tf_functions(const struct mgx_node *n, const char *name,
                                 struct mgx_tf_body ***out, int *count)
{
    enum { FUNCTIONS = 9 };
    struct mgx_tf_attribute a;
    struct mgx_messages list;
    struct mgx_want want = {.number = FUNCTIONS, .messages = &list};
    if (!of_kind(n, name, MGX_TF_LIST, &a))
        return mgx_fail(n->diag, MGX_INVALID, "attribute \"%s\" is no list of functions", name);
    TRY(mgx_message_collect(a.body, &want, 1, name, n->scratch, n->diag));
    *count = list.count;
    *out = MGX_NEW_ARRAY(n->scratch, struct mgx_tf_body *, list.count);
    if (!*out)
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < list.count; i++)
        TRY(function_of(n, list.v[i], &(*out)[i]));
    return MGX_OK;
}

// --- what many rules ask ---

enum mgx_status mgx_tf_channels_last(struct mgx_node *n, bool *last)
{
    const char *format = mgx_tf_text(n, "data_format", "NHWC");
    const size_t size = strlen(format);
    *last = size > 1 && format[size - 1] == 'C';
    if ((!*last && strncmp(format, "NC", 2) != 0) || strchr(format, '_'))
        return mgx_node_unsupported(n, "data_format \"%.40s\" is not supported", format);
    return MGX_OK;
}

// x with another order of axes; one that x has only just been brought from is x before it.
static struct mgx_ins *turn(struct mgx_node *n, struct mgx_ins *x, const int64_t *permutation)
{
    const int rank = x->shape.rank;
    bool back = mgx_is(x, &mgx_op_transpose);
    const struct mgx_ints before = back ? mgx_ins_ints(x, "permutation") : (struct mgx_ints){0};
    for (int i = 0; back && i < rank; i++)
        back = before.v[permutation[i]] == i;
    return back ? x->in[0] : mgx_build_transpose(n, x, permutation, rank);
}

struct mgx_ins *mgx_tf_to_channels_first(struct mgx_node *n, struct mgx_ins *x, bool last)
{
    assert(!last || !x || x->shape.rank >= 2); // NULL: of what has failed
    int64_t permutation[MGX_MAX_RANK] = {0};
    if (!x || !last || x->shape.rank < 3)
        return x;
    permutation[1] = x->shape.rank - 1;
    for (int i = 2; i < x->shape.rank; i++)
        permutation[i] = i - 1;
    return turn(n, x, permutation);
}

struct mgx_ins *mgx_tf_from_channels_first(struct mgx_node *n, struct mgx_ins *x, bool last)
{
    assert(!last || !x || x->shape.rank >= 2); // NULL: of what has failed
    int64_t permutation[MGX_MAX_RANK] = {0};
    if (!x || !last || x->shape.rank < 3)
        return x;
    const int rank = x->shape.rank;
    permutation[rank - 1] = 1;
    for (int i = 1; i < rank - 1; i++)
        permutation[i] = i + 1;
    return turn(n, x, permutation);
}

enum mgx_status mgx_tf_need_static(struct mgx_node *n)
{
    for (int i = 0; i < n->in_count; i++)
        if (n->in[i] && !mgx_build_is_static(n->in[i]))
            return mgx_node_unsupported(n, "input %d has a shape that is known at run time only",
                                        i);
    return MGX_OK;
}

enum mgx_status mgx_tf_need_ints(struct mgx_node *n, int i, const char *what, struct mgx_ints *out)
{
    assert(i >= 0 && what);
    if (mgx_node_constant_ints(n, i, out))
        return MGX_OK;
    return mgx_node_unsupported(n, "input %d (%s) is not a constant", i, what);
}

enum mgx_status mgx_tf_need_int(struct mgx_node *n, int i, const char *what, int64_t *out)
{
    assert(i >= 0 && what);
    if (mgx_build_constant_int(n, i, out))
        return MGX_OK;
    return mgx_node_unsupported(n, "input %d (%s) is not a constant number", i, what);
}

enum mgx_status mgx_tf_need_real(struct mgx_node *n, int i, const char *what, double *out)
{
    assert(i >= 0 && what);
    if (mgx_build_constant_double(n, i, out))
        return MGX_OK;
    return mgx_node_unsupported(n, "input %d (%s) is not a constant number", i, what);
}
