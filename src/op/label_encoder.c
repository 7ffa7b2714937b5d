// SPDX-License-Identifier: MIT
// label_encoder: replaces every element that is among the keys by the value beside it, every other
// one by a default (ONNX-ML LabelEncoder).
//
// One list of keys and one of values is given; integers, floats and strings may stand on either
// side. Keys are compared as x holds them: floats of type float as float, NaN equal to NaN. A key
// given twice counts where it stands last.
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/size.h"
#include "op/rule/rule.h"

struct label_encoder {
    struct mgx_doubles keys_floats;
    struct mgx_ints keys_int64s;
    struct mgx_strings keys_strings;
    struct mgx_doubles values_floats;
    struct mgx_ints values_int64s;
    struct mgx_strings values_strings;
    double default_float;
    int64_t default_int64;
    const char *default_string;
    int64_t out_type; // MGX_NONE: by the list of values: float, int64 or string
};

static const struct mgx_field fields[] = {MGX_REALS(struct label_encoder, keys_floats),
                                          MGX_INTS(struct label_encoder, keys_int64s),
                                          MGX_TEXTS(struct label_encoder, keys_strings),
                                          MGX_REALS(struct label_encoder, values_floats),
                                          MGX_INTS(struct label_encoder, values_int64s),
                                          MGX_TEXTS(struct label_encoder, values_strings),
                                          MGX_REAL(struct label_encoder, default_float),
                                          MGX_INT(struct label_encoder, default_int64),
                                          MGX_TEXT(struct label_encoder, default_string),
                                          MGX_OPTIONAL_TYPE(struct label_encoder, out_type),
                                          {0}};
static const struct label_encoder defaults = {
    .default_float = -0.0, .default_int64 = -1, .default_string = "_Unused", .out_type = MGX_NONE};

// --- shape ---

static int key_count(const struct label_encoder *a)
{
    return a->keys_floats.count + a->keys_int64s.count + a->keys_strings.count;
}

static int value_count(const struct label_encoder *a)
{
    return a->values_floats.count + a->values_int64s.count + a->values_strings.count;
}

static enum mgx_type result_type(const struct label_encoder *a)
{
    if (a->out_type >= 0 && a->out_type < MGX_TYPE_COUNT)
        return (enum mgx_type)a->out_type;
    return a->values_strings.count ? MGX_STRING : a->values_int64s.count ? MGX_INT64 : MGX_FLOAT;
}

static enum mgx_status check_lists(struct mgx_shape_call *c)
{
    const struct label_encoder *a = c->attr;
    const int key_lists = !!a->keys_floats.count + !!a->keys_int64s.count + !!a->keys_strings.count;
    const int value_lists =
        !!a->values_floats.count + !!a->values_int64s.count + !!a->values_strings.count;
    if (key_lists > 1 || value_lists > 1)
        return mgx_fail(c->diag, MGX_INVALID, "%s: %d lists of keys and %d of values, not one each",
                        c->op->name, key_lists, value_lists);
    if (key_count(a) != value_count(a))
        return mgx_fail(c->diag, MGX_INVALID, "%s: %d keys for %d values", c->op->name,
                        key_count(a), value_count(a));
    return MGX_OK;
}

static enum mgx_status shape(struct mgx_shape_call *c, struct mgx_shape *out)
{
    const struct label_encoder *a = c->attr;
    const enum mgx_type type = result_type(a), from = c->in[0]->type;
    TRY(check_lists(c));
    const bool fits = a->keys_strings.count  ? from == MGX_STRING
                      : a->keys_floats.count ? mgx_type_is_float(from)
                      : a->keys_int64s.count ? mgx_computes_as_int(from)
                                             : from == MGX_STRING || mgx_type_is_number(from);
    if (!fits)
        return mgx_fail(c->diag, MGX_INVALID, "%s: keys do not go with an input of %s", c->op->name,
                        mgx_type_name(from));
    if ((type == MGX_STRING) != (a->values_strings.count > 0) && value_count(a) > 0)
        return mgx_fail(c->diag, MGX_INVALID, "%s: values do not go with a result of %s",
                        c->op->name, mgx_type_name(type));
    if (type != MGX_STRING && !mgx_type_is_number(type))
        return mgx_fail(c->diag, MGX_INVALID, "%s: cannot make %s", c->op->name,
                        mgx_type_name(type));
    *out = mgx_pointwise_shape(c, type);
    return MGX_OK;
}

// --- compute ---

// A key as bytes: a string's own, or the eight of a number in `number`.
static size_t double_key(enum mgx_type type, double v, double *number)
{
    *number = isnan(v) ? (double)NAN : v == 0 ? 0 : type == MGX_FLOAT ? (double)(float)v : v;
    return sizeof *number;
}

// Entry i of the table is key i; its value in the map is &table[i].
struct entry {
    double real;
    int64_t integer;
};

static bool add_keys(const struct label_encoder *a, enum mgx_type type, struct entry *table,
                     struct mgx_map *map)
{
    bool ok = true;
    const int count = key_count(a);
    for (int i = 0; i < count && ok; i++) {
        if (a->keys_strings.count) {
            ok = mgx_map_putn(map, a->keys_strings.v[i], strlen(a->keys_strings.v[i]), &table[i]);
        } else if (a->keys_floats.count) {
            const size_t size = double_key(type, a->keys_floats.v[i], &table[i].real);
            ok = mgx_map_putn(map, (const char *)&table[i].real, size, &table[i]);
        } else {
            table[i].integer = a->keys_int64s.v[i];
            ok = mgx_map_putn(map, (const char *)&table[i].integer, sizeof table[i].integer,
                              &table[i]);
        }
    }
    return ok;
}

// Index of the key equal to element `at`, or -1.
static int64_t look_up(const struct mgx_tensor *x, int64_t at, const struct mgx_map *map,
                       const struct entry *table)
{
    assert(at >= 0);
    const enum mgx_type type = x->shape.type;
    const struct entry *found;
    if (type == MGX_STRING) {
        const struct mgx_string *s = (const struct mgx_string *)x->data + at;
        found = mgx_map_findn(map, s->size ? s->text : "", s->size);
    } else if (mgx_type_is_float(type)) {
        double key;
        const size_t size = double_key(type, mgx_load_double(type, x->data, at), &key);
        found = mgx_map_findn(map, (const char *)&key, size);
    } else {
        const int64_t key = mgx_load_int(type, x->data, at);
        found = mgx_map_findn(map, (const char *)&key, sizeof key);
    }
    return found ? found - table : -1;
}

static enum mgx_status put(struct mgx_compute_call *c, int64_t to, int64_t key)
{
    assert(to >= 0);
    const struct label_encoder *a = c->attr;
    const enum mgx_type type = c->out->shape.type;
    if (type == MGX_STRING) {
        const char *text = key < 0 ? a->default_string : a->values_strings.v[key];
        return mgx_eval_string(c, text, strlen(text), (struct mgx_string *)c->out->data + to);
    }
    if (key < 0 && mgx_computes_as_int(type))
        mgx_store_int(type, c->out->data, to, a->default_int64);
    else if (key < 0)
        mgx_store_double(type, c->out->data, to, a->default_float);
    else if (a->values_int64s.count)
        mgx_store_int(type, c->out->data, to, a->values_int64s.v[key]);
    else
        mgx_store_double(type, c->out->data, to, a->values_floats.v[key]);
    return MGX_OK;
}

static enum mgx_status compute(struct mgx_compute_call *c)
{
    const struct label_encoder *a = c->attr;
    const struct mgx_tensor *x = c->in[0];
    struct entry *table = MGX_NEW_ARRAY(c->scratch, struct entry, key_count(a));
    struct mgx_map map = {0};
    enum mgx_status status =
        table && add_keys(a, x->shape.type, table, &map) ? MGX_OK : mgx_fail_memory(c->diag);
    const struct mgx_shape *shapes[] = {&x->shape, &c->out->shape};
    struct mgx_walk w;
    for (mgx_walk_start(&w, shapes, 2); !w.done && status == MGX_OK; mgx_walk_next(&w))
        for (int64_t i = 0; i < w.run && status == MGX_OK; i++)
            status = put(c, w.offset[1] + i * w.step[1],
                         look_up(x, w.offset[0] + i * w.step[0], &map, table));
    mgx_map_fini(&map);
    return status;
}

static enum mgx_type unranked_type(const struct mgx_shape_call *c)
{
    return result_type(c->attr);
}

const struct mgx_op mgx_op_label_encoder = {
    .name = "label_encoder",
    .meaning = "y = values[i] where x = keys[i], else a default",
    .fields = fields,
    .attr_size = sizeof(struct label_encoder),
    .defaults = &defaults,
    .in_min = 1,
    .in_max = 1,
    .shape = shape,
    .unranked_type = unranked_type,
    .compute = compute,
};
