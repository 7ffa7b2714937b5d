// SPDX-License-Identifier: MIT
// ai.onnx.ml: LabelEncoder, CategoryMapper and OneHotEncoder, all by the IR's label_encoder.
#include <assert.h>
#include <stdio.h>

#include "onnx/ml.h"

// Keys or values, wherever the node has them: three lists, of which one is used.
struct list {
    struct mgx_doubles reals;
    struct mgx_ints ints;
    struct mgx_strings texts;
    enum mgx_type type;
};

static const char *text_at(struct mgx_node *n, const struct mgx_tensor *t, int64_t i)
{
    assert(i >= 0 && t->shape.type == MGX_STRING);
    const struct mgx_string *s = (const struct mgx_string *)t->data + mgx_shape_index(&t->shape, i);
    return mgx_arena_strndup(n->scratch, s->size ? s->text : "", s->size);
}

// The values of a tensor attribute.
static bool list_of_tensor(struct mgx_node *n, const struct mgx_tensor *t, struct list *out)
{
    const int count = (int)mgx_shape_elements(&t->shape);
    out->type = t->shape.type;
    if (t->shape.type == MGX_STRING) {
        const char **v = MGX_NEW_ARRAY(n->scratch, const char *, count);
        for (int i = 0; v && i < count; i++)
            v[i] = text_at(n, t, i);
        out->texts = (struct mgx_strings){v, v ? count : 0};
        return v && !n->scratch->failed;
    }
    if (mgx_type_is_float(t->shape.type)) {
        double *v = MGX_NEW_ARRAY(n->scratch, double, count);
        if (v)
            mgx_tensor_to_doubles(t, v);
        out->reals = (struct mgx_doubles){v, v ? count : 0};
        return v;
    }
    int64_t *v = MGX_NEW_ARRAY(n->scratch, int64_t, count);
    if (v)
        mgx_tensor_to_ints(t, v);
    out->ints = (struct mgx_ints){v, v ? count : 0};
    return v;
}

// Attributes <what>_tensor, <what>_strings, <what>_int64s, <what>_floats.
static enum mgx_status find_list(struct mgx_node *n, const char *what, struct list *out)
{
    char name[32];
    *out = (struct list){.type = MGX_FLOAT};
    snprintf(name, sizeof name, "%s_tensor", what);
    const struct mgx_ins *tensor = mgx_onnx_has(n, name) ? mgx_onnx_tensor(n, name) : NULL;
    if (tensor) {
        if (mgx_shape_elements(&tensor->shape) > INT32_MAX)
            return mgx_node_invalid(n, "%s is too long", name);
        return list_of_tensor(n, tensor->literal, out) ? MGX_OK : mgx_fail_memory(n->diag);
    }
    snprintf(name, sizeof name, "%s_strings", what);
    out->texts = mgx_onnx_texts(n, name);
    snprintf(name, sizeof name, "%s_int64s", what);
    out->ints = mgx_onnx_ints(n, name);
    snprintf(name, sizeof name, "%s_floats", what);
    out->reals = mgx_onnx_reals(n, name);
    out->type = out->texts.count ? MGX_STRING : out->ints.count ? MGX_INT64 : MGX_FLOAT;
    return MGX_OK;
}

static struct mgx_ins *encode(struct mgx_node *n, struct mgx_ins *x, const struct list *keys,
                              const struct list *values, const struct list *other)
{
    const struct mgx_attr attrs[] = {
        mgx_reals("keys_floats", keys->reals.v, keys->reals.count),
        mgx_ints("keys_int64s", keys->ints.v, keys->ints.count),
        mgx_texts("keys_strings", keys->texts.v, keys->texts.count),
        mgx_reals("values_floats", values->reals.v, values->reals.count),
        mgx_ints("values_int64s", values->ints.v, values->ints.count),
        mgx_texts("values_strings", values->texts.v, values->texts.count),
        mgx_real("default_float", other->reals.count ? other->reals.v[0] : -0.0),
        mgx_int("default_int64", other->ints.count ? other->ints.v[0] : -1),
        mgx_text("default_string", other->texts.count ? other->texts.v[0] : "_Unused"),
        mgx_int("out_type", values->type),
        {0},
    };
    return mgx_build_emit(n, &mgx_op_label_encoder, attrs, MGX_IN(x));
}

// default_float, default_int64, default_string, which stand beside each other.
static struct list find_defaults(struct mgx_node *n, struct list *room)
{
    double *real = MGX_NEW(n->scratch, double);
    int64_t *integer = MGX_NEW(n->scratch, int64_t);
    const char **text = MGX_NEW(n->scratch, const char *);
    if (real && integer && text) {
        *real = mgx_onnx_real(n, "default_float", -0.0);
        *integer = mgx_onnx_int(n, "default_int64", -1);
        *text = mgx_onnx_text(n, "default_string", "_Unused");
        *room = (struct list){{real, 1}, {integer, 1}, {text, 1}, MGX_FLOAT};
    }
    return *room;
}

static enum mgx_status label_encoder(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct list keys, values, other = {0};
    TRY(find_list(n, "keys", &keys));
    TRY(find_list(n, "values", &values));
    find_defaults(n, &other);
    if (mgx_onnx_has(n, "default_tensor"))
        TRY(find_list(n, "default", &other));
    n->out[0] = encode(n, n->in[0], &keys, &values, &other);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_label_encoder = {.name = "LabelEncoder",
                                                   .domain = "ai.onnx.ml",
                                                   .since = 2,
                                                   .import = label_encoder,
                                                   .takes = MGX_ONNX_TEXT};

// Strings to their place in a list or the other way round, by the type of the input.
static enum mgx_status by_place(struct mgx_node *n, struct mgx_strings texts,
                                struct mgx_ints numbers)
{
    if (n->in[0]->shape.type != MGX_STRING && n->in[0]->shape.type != MGX_INT64)
        return mgx_node_invalid(n, "input is %s, not strings or int64",
                                mgx_type_name(n->in[0]->shape.type));
    struct list words = {.texts = texts, .type = MGX_STRING};
    struct list places = {.ints = numbers, .type = MGX_INT64};
    struct list other = {0};
    find_defaults(n, &other);
    const bool from_text = n->in[0]->shape.type == MGX_STRING;
    n->out[0] =
        encode(n, n->in[0], from_text ? &words : &places, from_text ? &places : &words, &other);
    return MGX_OK;
}

static enum mgx_status label_encoder_1(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const struct mgx_strings texts = mgx_onnx_texts(n, "classes_strings");
    int64_t *v = MGX_NEW_ARRAY(n->scratch, int64_t, texts.count);
    for (int i = 0; v && i < texts.count; i++)
        v[i] = i;
    return v ? by_place(n, texts, (struct mgx_ints){v, texts.count}) : mgx_fail_memory(n->diag);
}
const struct mgx_onnx_op mgx_onnx_label_encoder_1 = {.name = "LabelEncoder",
                                                     .domain = "ai.onnx.ml",
                                                     .until = 1,
                                                     .import = label_encoder_1,
                                                     .takes = MGX_ONNX_TEXT,
                                                     .result = "o"};

static enum mgx_status category_mapper(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    const struct mgx_strings texts = mgx_onnx_texts(n, "cats_strings");
    const struct mgx_ints numbers = mgx_onnx_ints(n, "cats_int64s");
    if (texts.count != numbers.count)
        return mgx_node_invalid(n, "%d cats_strings for %d cats_int64s", texts.count,
                                numbers.count);
    return by_place(n, texts, numbers);
}
const struct mgx_onnx_op mgx_onnx_category_mapper = {.name = "CategoryMapper",
                                                     .domain = "ai.onnx.ml",
                                                     .import = category_mapper,
                                                     .takes = MGX_ONNX_TEXT,
                                                     .result = "o"};

// A new last axis of 0 and 1; what is in no category is all zeros, also where zeros=0 asks for an
// error.
static enum mgx_status one_hot_encoder(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    struct mgx_ins *x = n->in[0];
    if (mgx_build_rank(x) < 0)
        return mgx_onnx_defer(n);
    struct list cats = {0}, places = {.type = MGX_INT64}, other = {0};
    TRY(find_list(n, "cats", &cats));
    const int count = cats.texts.count ? cats.texts.count : cats.ints.count;
    int64_t *v = MGX_NEW_ARRAY(n->scratch, int64_t, count);
    for (int i = 0; v && i < count; i++)
        v[i] = i;
    if (!v)
        return mgx_fail_memory(n->diag);
    places.ints = (struct mgx_ints){v, count};
    if (!cats.texts.count)
        x = mgx_build_convert(n, x, MGX_INT64);
    struct mgx_ins *place = encode(n, x, &cats, &places, &other);
    place = mgx_build_unsqueeze(n, place, (const int64_t[]){mgx_build_rank(n->in[0])}, 1);
    struct mgx_ins *hot = mgx_build_equal(n, place, mgx_build_iota(n, MGX_INT64, count));
    n->out[0] = mgx_build_convert(n, hot, MGX_FLOAT);
    return MGX_OK;
}
const struct mgx_onnx_op mgx_onnx_one_hot_encoder = {.name = "OneHotEncoder",
                                                     .domain = "ai.onnx.ml",
                                                     .import = one_hot_encoder,
                                                     .takes = MGX_ONNX_TEXT,
                                                     .result = "f"};
