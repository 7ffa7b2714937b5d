// SPDX-License-Identifier: MIT
// Inputs and initialisers of a graph, and the shapes that inputs get.
//
// An initialiser is a literal at once, also where it is an input too. What the model leaves open
// about an input is settled by the options, in this order: the input's own sizes, sizes of named
// dimensions, the default for unknown dimensions, free ranges; else the size is 1. A dimension
// declared as 0 is an empty one unless an option speaks of unknown dimensions, because old
// exporters mean "unknown" by it. Names of dimensions are kept with dynamic_dims only: they print,
// and a caller that gives ranges expects to see nothing but those.
//
// Types beyond tensors: a sequence is MGX_SEQUENCE with one `sub`; an optional is a tuple of one
// member, or of none when it is empty.
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "onnx/graph.h"
#include "onnx/handed.h"

enum { TYPE_DEPTH = 8 }; // sequences of optionals of sequences ...

// --- dimensions ---

static bool is_set(const struct mgx_dim *d)
{
    return d->max > 0 && !(d->min == 1 && d->max == 1);
}

static struct mgx_dim fixed(int64_t size)
{
    return (struct mgx_dim){.min = size, .max = size};
}

struct declared { // one Dimension message
    bool has_value;
    int64_t value;
    const char *name; // NULL: none
};

static enum mgx_status read_dim(struct mgx_onnx_import *import, struct mgx_wire w,
                                struct declared *out)
{
    struct mgx_wire_field f;
    struct mgx_slice name = {"", 0};
    *out = (struct declared){0};
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 1)
            out->has_value = mgx_wire_int(&w, &f, &out->value);
        else if (f.number == 2)
            mgx_wire_bytes(&w, &f, &name);
    }
    if (w.bad)
        return mgx_wire_fail(&w, "Dimension", import->diag);
    const bool derived = name.size && name.text[0] == '='; // ours alone (window.c)
    if (!name.size || derived || out->has_value)
        return MGX_OK;
    return mgx_name_text(name, "the name of a dimension", &import->program->arena, &out->name,
                         import->diag);
}

// As the options have an axis of that name; false where they do not.
static bool settle_named(const struct mgx_onnx_options *o, const char *name, struct mgx_dim *out)
{
    for (int i = 0; name && i < o->dim_param_count; i++)
        if (strcmp(o->dim_params[i].name, name) == 0) {
            *out = o->dim_params[i].dim;
            if (o->dynamic_dims && !out->name && !mgx_dim_is_fixed(out))
                out->name = name;
            return true;
        }
    return false;
}

// Some exporters write one of these wherever they know no name, so axes that share it may differ.
static const char *name_of(const struct declared *d)
{
    static const char *const nobody[] = {"?", "-1", "None"};
    for (int i = 0; d->name && i < MGX_COUNT(nobody); i++)
        if (strcmp(d->name, nobody[i]) == 0)
            return NULL;
    return d->name;
}

// *assumed when nothing says how long it is and it becomes 1.
static struct mgx_dim settle(const struct mgx_onnx_options *o, const struct declared *d,
                             bool *assumed)
{
    assert(!d->has_value || !d->name || *d->name);
    *assumed = false;
    struct mgx_dim dim = o->default_dyn_dim;
    const bool asked = o->default_dim_value > 0 || is_set(&dim) || o->dynamic_dims;
    if (d->has_value && (d->value > 0 || (d->value == 0 && !asked)))
        return fixed(d->value);
    if (settle_named(o, d->name, &dim))
        return dim;
    if (is_set(&dim)) {
        if (o->dynamic_dims)
            dim.name = name_of(d);
        return dim;
    }
    if (o->default_dim_value > 0) {
        *assumed = o->default_dim_value == 1; // which is what many callers give who know no size
        return fixed(o->default_dim_value);
    }
    if (o->dynamic_dims)
        return (struct mgx_dim){.min = 0, .max = MGX_DIM_ANY, .name = name_of(d)};
    *assumed = true;
    return fixed(1);
}

static enum mgx_status shape_of_dims(struct mgx_onnx_import *import, enum mgx_type type, int rank,
                                     const struct mgx_dim *dims, struct mgx_shape *out)
{
    assert(rank >= 0 && rank <= MGX_MAX_RANK);
    struct mgx_dim *kept = MGX_NEW_ARRAY(&import->program->arena, struct mgx_dim, rank);
    if (!kept)
        return mgx_fail_memory(import->diag);
    for (int i = 0; i < rank; i++) {
        kept[i] = dims[i];
        if (dims[i].min < 0 || dims[i].max < dims[i].min || dims[i].max > MGX_DIM_ANY)
            return mgx_fail(import->diag, MGX_INVALID, "dimension %d ranges from %lld to %lld", i,
                            (long long)dims[i].min, (long long)dims[i].max);
    }
    *out = mgx_shape_dynamic(type, rank, kept);
    return mgx_shape_is_static(out) ? mgx_shape_check(out, import->diag) : MGX_OK;
}

// --- types ---

// ` 0 ("N")` behind what is there already.
static void put_open_axis(struct mgx_str *open, int axis, const char *name)
{
    assert(axis >= 0 && axis < MGX_MAX_RANK);
    mgx_str_printf(open, "%s %d", open->size ? "," : "", axis);
    if (name)
        mgx_str_printf(open, " (\"%s\")", name);
}

// `open` lists the axes that the model leaves open and nothing settles.
static enum mgx_status read_dims(struct mgx_onnx_import *import, struct mgx_wire shape,
                                 struct mgx_dim *dims, int *rank, struct mgx_str *open)
{
    struct mgx_wire_field f;
    *rank = 0;
    while (mgx_wire_next(&shape, &f)) {
        if (f.number != 1)
            continue;
        struct mgx_wire message;
        struct declared d;
        if (*rank == MGX_MAX_RANK)
            return mgx_fail(import->diag, MGX_LIMIT, "rank is above %d", MGX_MAX_RANK);
        if (!mgx_wire_message(&shape, &f, &message))
            break;
        TRY(read_dim(import, message, &d));
        bool assumed;
        dims[*rank] = settle(&import->options, &d, &assumed);
        if (assumed)
            put_open_axis(open, *rank, d.name);
        (*rank)++;
    }
    return shape.bad ? mgx_wire_fail(&shape, "TensorShapeProto", import->diag) : MGX_OK;
}

static const struct mgx_onnx_dims *given_dims(const struct mgx_onnx_options *o, const char *name)
{
    for (int i = 0; name && i < o->input_count; i++)
        if (strcmp(o->inputs[i].name, name) == 0)
            return &o->inputs[i];
    return NULL;
}

// Whoever gives other sizes later is told that these were only assumed.
static enum mgx_status hint_open_axes(struct mgx_onnx_import *import, const char *name,
                                      const struct mgx_str *open)
{
    assert(name && open->size);
    const bool several = strchr(mgx_str_text(open), ',') != NULL;
    const char *text = mgx_arena_printf(
        &import->scratch,
        "the model leaves ax%s%s open, and %s set to 1: default_dim_value, or sizes for this input "
        "(map_input_dims), give other lengths, dynamic_dims any length",
        several ? "es" : "is", mgx_str_text(open), several ? "they were" : "it was");
    return text && !open->failed ? mgx_program_hint(import->program, name, text, import->diag)
                                 : mgx_fail_memory(import->diag);
}

static enum mgx_status declared_type(struct mgx_onnx_import *import, struct mgx_wire shape,
                                     enum mgx_type type, const char *name, struct mgx_shape *out)
{
    struct mgx_dim dims[MGX_MAX_RANK];
    struct mgx_str open = {0};
    int rank;
    enum mgx_status status = read_dims(import, shape, dims, &rank, &open);
    if (status == MGX_OK && open.size && name)
        status = hint_open_axes(import, name, &open);
    mgx_str_fini(&open);
    TRY(status);
    return shape_of_dims(import, type, rank, dims, out);
}

// Sizes given for an input whose declared rank is another are kept: a model may be wrong about
// itself. What fails then says so.
static enum mgx_status note_rank(struct mgx_onnx_import *import, struct mgx_wire shape,
                                 const char *name, int given)
{
    struct mgx_wire_field f;
    int rank = 0;
    for (struct mgx_wire w = shape; mgx_wire_next(&w, &f);)
        rank += f.number == 1;
    if (!shape.p || rank == given || import->rank_note)
        return MGX_OK;
    import->rank_note = mgx_arena_printf(&import->arena,
                                         "a model whose input \"%s\" was given %d sizes where it "
                                         "declares %d",
                                         name, given, rank);
    return import->rank_note ? MGX_OK : mgx_fail_memory(import->diag);
}

static enum mgx_status tensor_type(struct mgx_onnx_import *import, struct mgx_wire w,
                                   const char *name, struct mgx_shape *out)
{
    struct mgx_wire_field f;
    struct mgx_wire shape = {0};
    int64_t number = 0;
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 1)
            mgx_wire_int(&w, &f, &number);
        else if (f.number == 2)
            mgx_wire_once(&w, &f, &shape);
    }
    if (w.bad)
        return mgx_wire_fail(&w, "TypeProto.Tensor", import->diag);
    enum mgx_type type;
    TRY(mgx_onnx_type_of(number, &type, import->diag));
    const struct mgx_onnx_dims *given = given_dims(&import->options, name);
    if (given) {
        if (given->count > MGX_MAX_RANK)
            return mgx_fail(import->diag, MGX_LIMIT, "rank %d is above %d", given->count,
                            MGX_MAX_RANK);
        TRY(note_rank(import, shape, name, given->count));
        return shape_of_dims(import, type, given->count, given->dims, out);
    }
    if (!shape.p) {
        *out = mgx_shape_unranked(type);
        return MGX_OK;
    }
    return declared_type(import, shape, type, name, out);
}

// The message of a container type and its element's type.
static enum mgx_status element_type(struct mgx_wire w, struct mgx_wire *out, struct mgx_diag *diag)
{
    struct mgx_wire_field f;
    *out = (struct mgx_wire){0};
    while (mgx_wire_next(&w, &f))
        if (f.number == 1)
            mgx_wire_once(&w, &f, out);
    if (w.bad)
        return mgx_wire_fail(&w, "TypeProto", diag);
    return out->p ? MGX_OK : mgx_fail(diag, MGX_INVALID, "a container type without element type");
}

static enum mgx_status read_type(struct mgx_onnx_import *import, struct mgx_wire w,
                                 const char *name, int depth, struct mgx_shape *out)
{
    assert(depth <= TYPE_DEPTH);
    enum { TENSOR = 1, SEQUENCE = 4, MAP = 5, OPAQUE = 7, SPARSE = 8, OPTIONAL = 9 };
    struct mgx_wire value = {0};
    struct mgx_wire_field f;
    uint32_t kind = 0;
    while (mgx_wire_next(&w, &f)) {
        if (f.number == 6 || f.number == 2 || f.number == 3 || f.number > OPTIONAL)
            continue;
        if (mgx_wire_once(&w, &f, &value))
            kind = f.number;
    }
    if (w.bad)
        return mgx_wire_fail(&w, "TypeProto", import->diag);
    if (kind == TENSOR || kind == SPARSE)
        return tensor_type(import, value, name, out);
    if (kind != SEQUENCE && kind != OPTIONAL)
        return mgx_fail(import->diag, kind ? MGX_UNSUPPORTED : MGX_INVALID, "%s",
                        kind == MAP      ? "maps are not supported"
                        : kind == OPAQUE ? "opaque types are not supported"
                                         : "a value has no type");
    if (depth == TYPE_DEPTH)
        return mgx_fail(import->diag, MGX_LIMIT, "types are nested deeper than %d", TYPE_DEPTH);
    struct mgx_wire inner;
    TRY(element_type(value, &inner, import->diag));
    struct mgx_shape *element = MGX_NEW(&import->program->arena, struct mgx_shape);
    if (!element)
        return mgx_fail_memory(import->diag);
    TRY(read_type(import, inner, NULL, depth + 1, element));
    *out = kind == SEQUENCE ? mgx_shape_sequence(element) : mgx_shape_tuple(element, 1);
    return MGX_OK;
}

enum mgx_status mgx_onnx_read_type(struct mgx_onnx_import *import, struct mgx_wire type,
                                   const char *name, struct mgx_shape *out)
{
    return read_type(import, type, name, 0, out);
}

// The last field of this number as a message; empty where there is none.
static struct mgx_wire field_of(struct mgx_wire w, uint32_t number)
{
    struct mgx_wire_field f;
    struct mgx_wire found = {0};
    while (mgx_wire_next(&w, &f))
        if (f.number == number && f.type == MGX_WIRE_BYTES)
            found = mgx_wire_of(f.data, f.size);
    return found;
}

int mgx_onnx_trailing_ones(struct mgx_wire type, int rank)
{
    enum { TENSOR = 1, SHAPE = 2 };
    struct mgx_wire shape = field_of(field_of(type, TENSOR), SHAPE), dim;
    struct mgx_wire_field f, value;
    int axis = 0;
    while (mgx_wire_next(&shape, &f) && axis < MGX_MAX_RANK) {
        int64_t length = 0;
        if (f.number != 1 || f.type != MGX_WIRE_BYTES)
            continue;
        for (dim = mgx_wire_of(f.data, f.size); mgx_wire_next(&dim, &value);)
            if (value.number == 1)
                mgx_wire_int(&dim, &value, &length);
        if (axis++ >= rank && length != 1)
            return 0;
    }
    return axis > rank ? axis - rank : 0;
}

// --- initialisers and inputs ---

static enum mgx_status add_initializers(struct mgx_onnx_graph *g, struct mgx_messages list,
                                        bool sparse)
{
    enum { CHECK_EVERY = 64 };
    struct mgx_onnx_import *import = g->import;
    for (int i = 0; i < list.count; i++) {
        struct mgx_slice name;
        struct mgx_tensor t;
        TRY((sparse ? mgx_onnx_read_sparse : mgx_onnx_read_tensor)(import, list.v[i], &name, &t));
        struct mgx_ins *ins = mgx_add_literal(g->module, &t);
        mgx_tensor_release(&t);
        if (!ins)
            return mgx_program_status(import->program, import->diag);
        if (!name.size)
            return mgx_fail(import->diag, MGX_INVALID, "initialiser %d has no name", i);
        TRY(mgx_onnx_graph_define(g, name, ins));
        if (i % CHECK_EVERY == 0)
            TRY(mgx_onnx_check_time(import));
    }
    return MGX_OK;
}

// Weights that a host keeps, or says the place of.
static enum mgx_status add_weights(struct mgx_onnx_graph *g)
{
    struct mgx_onnx_import *import = g->import;
    const struct mgx_onnx_handed *handed = g->depth == 1 ? import->handed : NULL;
    for (int64_t i = 0; handed && i < handed->weights.count; i++) {
        const struct mgx_onnx_weight *w = &handed->weights.v[i];
        struct mgx_tensor t;
        TRY(mgx_onnx_show_weight(import, w, &t));
        struct mgx_ins *ins = mgx_add_literal(g->module, &t);
        mgx_tensor_release(&t);
        if (!ins)
            return mgx_program_status(import->program, import->diag);
        TRY(mgx_onnx_graph_define(g, (struct mgx_slice){w->name, strlen(w->name)}, ins));
    }
    return MGX_OK;
}

static enum mgx_status add_input(struct mgx_onnx_graph *g, struct mgx_slice name,
                                 struct mgx_wire type, const struct mgx_shape *shape)
{
    struct mgx_onnx_import *import = g->import;
    const char *text;
    struct mgx_shape declared;
    TRY(mgx_name_text(name, "the name of an input", &import->scratch, &text, import->diag));
    if (!shape) {
        TRY(mgx_onnx_read_type(import, type, text, &declared));
        shape = &declared;
    }
    struct mgx_ins *ins = mgx_add_parameter(g->module, text, shape);
    if (!ins)
        return mgx_program_status(import->program, import->diag);
    return mgx_onnx_graph_define(g, name, ins);
}

static enum mgx_status add_bound(struct mgx_onnx_graph *g, struct mgx_slice name,
                                 const struct mgx_onnx_bound *bound)
{
    assert(bound->value || bound->shape);
    if (!bound->value)
        return add_input(g, name, (struct mgx_wire){0}, bound->shape);
    struct mgx_ins *ins = mgx_add_literal(g->module, bound->value);
    return ins ? mgx_onnx_graph_define(g, name, ins)
               : mgx_program_status(g->import->program, g->import->diag);
}

// Input i, which may be an initialiser, an argument, a bound value or a parameter to be.
static enum mgx_status place_input(struct mgx_onnx_graph *g,
                                   const struct mgx_onnx_graph_proto *proto, int i,
                                   const struct mgx_onnx_arguments *arguments)
{
    assert(i >= 0 && i < proto->inputs.count);
    struct mgx_onnx_import *import = g->import;
    struct mgx_slice name;
    struct mgx_wire type;
    TRY(mgx_onnx_read_value(proto->inputs.v[i], &name, &type, import->diag));
    if (!name.size)
        return mgx_fail(import->diag, MGX_INVALID, "input %d has no name", i);
    const struct mgx_onnx_value *constant = mgx_map_findn(&g->values, name.text, name.size);
    enum mgx_status status;
    if (constant)
        status =
            constant->ins->op == &mgx_op_literal && g->depth == 1
                ? MGX_OK
                : mgx_fail(import->diag, MGX_INVALID, "\"%.*s\" is defined twice", MGX_SLICE(name));
    else if (i < arguments->given_count)
        status = mgx_onnx_graph_define(g, name, arguments->given[i]);
    else if (g->depth == 1 && i < import->bound_count)
        status = add_bound(g, name, &import->bound[i]);
    else
        status =
            add_input(g, name, type, i < arguments->shape_count ? &arguments->shapes[i] : NULL);
    if (status != MGX_OK)
        mgx_where(import->diag, "input \"%.*s\"", MGX_SLICE(name));
    return status;
}

// Whoever runs a program looks its parameters up by name, one by one: more than any honest model
// has would only take time.
static enum mgx_status check_parameters(const struct mgx_onnx_graph *g)
{
    enum { MOST = 16384 };
    const int count = mgx_module_parameters(g->module, NULL, 0);
    return count <= MOST ? MGX_OK
                         : mgx_fail(g->import->diag, MGX_LIMIT,
                                    "the model has %d inputs, above the limit of %d", count, MOST);
}

enum mgx_status mgx_onnx_graph_inputs(struct mgx_onnx_graph *g,
                                      const struct mgx_onnx_graph_proto *proto,
                                      const struct mgx_onnx_arguments *arguments)
{
    assert(!g->values.count); // a scope's first names
    TRY(add_initializers(g, proto->initializers, false));
    TRY(add_initializers(g, proto->sparse, true));
    TRY(add_weights(g));
    for (int i = 0; i < proto->inputs.count; i++)
        TRY(place_input(g, proto, i, arguments));
    return check_parameters(g);
}
