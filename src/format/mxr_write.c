// SPDX-License-Identifier: MIT
// A program as a tree of values; mxr.c writes the tree.
//
//     {version, migraphx_version, targets: [{name}], contexts: [{}], output_names,
//      modules: {<name>: {name, nodes: [{output, name, shape, normalized, operator, inputs,
//                                        literal?, module_inputs?, debug_symbols?}]}}}
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/version.h"
#include "format/format.h"
#include "format/mxr.h"
#include "format/mxr_read.h"
#include "format/mxr_write.h"
#include "ir/inside.h"

struct writer {
    struct mgx_arena *arena;
    const struct mgx_mxr_places *places; // of literals in a container; NULL: all are written here
    struct mgx_map names;                // instruction -> its name
    struct mgx_diag *diag;
};

// --- shapes and tensors ---

static struct mgx_value *dimensions(struct mgx_arena *arena, const struct mgx_shape *s)
{
    assert(!s->dims || s->rank > 0);
    struct mgx_value *list = mgx_value_new(arena, MGX_VALUE_LIST);
    for (int i = 0; s->dims && i < s->rank; i++) {
        struct mgx_value *dim = mgx_value_new(arena, MGX_VALUE_MAP);
        struct mgx_value *range = mgx_value_new(arena, MGX_VALUE_MAP);
        mgx_value_put(range, "min", mgx_value_int(arena, s->dims[i].min));
        mgx_value_put(range, "max", mgx_value_int(arena, s->dims[i].max));
        mgx_value_put(dim, "range", range);
        mgx_value_put(dim, "optimals",
                      mgx_value_ints(arena, s->dims[i].optimals, s->dims[i].optimal_count));
        mgx_value_put(dim, "sym", mgx_value_text(arena, s->dims[i].name ? s->dims[i].name : ""));
        mgx_value_add(list, dim);
    }
    return list;
}

// Does the shape read back as it was?
__attribute__((unused)) static bool reads_back(struct mgx_arena *arena, const struct mgx_value *v,
                                               const struct mgx_shape *s)
{
    struct mgx_shape back;
    struct mgx_diag quiet = {.status = MGX_OK};
    return arena->failed || mgx_mxr_read_shape(arena, v, 0, &back, &quiet) != MGX_OK ||
           arena->failed || mgx_shape_equal(&back, s);
}

// Recursion follows the nesting of tuples, which mgx_shape_check bounds.
static struct mgx_value *shape_value(struct mgx_arena *arena, const struct mgx_shape *s)
{
    static const int64_t one = 1, zero = 0; // how a scalar is shown
    struct mgx_value *v = mgx_value_new(arena, MGX_VALUE_MAP);
    struct mgx_value *sub = mgx_value_new(arena, MGX_VALUE_LIST);
    const bool group = s->type == MGX_TUPLE || s->type == MGX_SEQUENCE;
    const bool scalar = s->rank == 0 && !group && !s->unranked && !s->dims;
    const int rank = s->dims ? 0 : scalar ? 1 : s->rank;
    for (int i = 0; i < s->sub_count; i++)
        mgx_value_add(sub, shape_value(arena, &s->sub[i]));
    mgx_value_put(v, "type", mgx_value_text(arena, mgx_type_name(s->type)));
    mgx_value_put(v, "sub_shapes", sub);
    mgx_value_put(v, "lens", mgx_value_ints(arena, scalar ? &one : s->lens, rank));
    mgx_value_put(v, "strides", mgx_value_ints(arena, scalar ? &zero : s->strides, rank));
    mgx_value_put(v, "dynamic_dimensions", dimensions(arena, s));
    if (scalar) // a word of our own: MIGraphX has no rank 0
        mgx_value_put(v, "rank", mgx_value_int(arena, 0));
    if (s->unranked)
        mgx_value_put(v, "unranked", mgx_value_int(arena, 1));
    assert(reads_back(arena, v, s));
    return v;
}

static struct mgx_value *strings_value(struct mgx_arena *arena, const struct mgx_tensor *t)
{
    assert(t->shape.type == MGX_STRING && !mgx_tensor_memory(t));
    struct mgx_value *list = mgx_value_new(arena, MGX_VALUE_LIST);
    const struct mgx_string *v = t->data;
    for (int64_t i = 0; i < mgx_shape_elements(&t->shape); i++) {
        const struct mgx_string *s = &v[mgx_shape_index(&t->shape, i)];
        mgx_value_add(list, mgx_value_bytes(arena, s->text, s->size));
    }
    return list;
}

// {shape, data}, {shape, sub} for groups, {shape, strings}.
struct mgx_value *mgx_mxr_tensor_value(struct mgx_arena *arena, const struct mgx_tensor *t)
{
    assert(!mgx_tensor_memory(t) && mgx_tensor_lies_inside(t));
    struct mgx_value *v = mgx_value_new(arena, MGX_VALUE_MAP);
    struct mgx_shape shape = t->shape;
    if (shape.type == MGX_STRING) // their list is row-major, without gaps
        shape = mgx_shape_retype(&shape, MGX_STRING);
    mgx_value_put(v, "shape", shape_value(arena, &shape));
    if (t->shape.type == MGX_TUPLE || t->shape.type == MGX_SEQUENCE) {
        struct mgx_value *sub = mgx_value_new(arena, MGX_VALUE_LIST);
        for (int i = 0; i < t->sub_count; i++)
            mgx_value_add(sub, mgx_mxr_tensor_value(arena, &t->sub[i]));
        mgx_value_put(v, "sub", sub);
    } else if (t->shape.type == MGX_STRING)
        mgx_value_put(v, "strings", strings_value(arena, t));
    else
        mgx_value_put(v, "data", mgx_value_bytes(arena, t->data, mgx_shape_bytes(&t->shape)));
    return v;
}

// {shape, at} of a literal that lies in a container's data.
static struct mgx_value *literal_value(struct writer *w, const struct mgx_tensor *t)
{
    void *place = w->places ? mgx_map_find_pointer(&w->places->at, t->data) : NULL;
    assert(!place || mgx_type_is_number(t->shape.type));
    if (!place)
        return mgx_mxr_tensor_value(w->arena, t);
    struct mgx_value *v = mgx_value_new(w->arena, MGX_VALUE_MAP);
    mgx_value_put(v, "shape", shape_value(w->arena, &t->shape));
    mgx_value_put(v, "at", mgx_value_int(w->arena, (int64_t)(uintptr_t)place - 1));
    return v;
}

// --- instructions ---

// Attributes go through their JSON, which is the one place that knows how each kind is written.
static enum mgx_status operator_value(struct writer *w, const struct mgx_ins *ins,
                                      struct mgx_value **out)
{
    struct mgx_str json = {0};
    if (ins->op == &mgx_op_param) {
        const struct mgx_param_attr *attr = ins->attr;
        *out = mgx_value_new(w->arena, MGX_VALUE_MAP);
        mgx_value_put(*out, "parameter", mgx_value_text(w->arena, attr->parameter));
        mgx_value_put(*out, "order", mgx_value_int(w->arena, attr->order));
        return MGX_OK;
    }
    mgx_attr_print_json(&json, ins->op, ins->attr);
    const enum mgx_status status =
        json.failed ? mgx_fail_memory(w->diag)
                    : mgx_json_read(w->arena, mgx_str_text(&json), json.size, out, w->diag);
    mgx_str_fini(&json);
    return status;
}

static struct mgx_value *name_list(struct writer *w, struct mgx_ins *const *v, int count)
{
    assert(count >= 0 && (v || !count));
    struct mgx_value *list = mgx_value_new(w->arena, MGX_VALUE_LIST);
    for (int i = 0; i < count; i++)
        mgx_value_add(list, mgx_value_text(w->arena, mgx_map_find_pointer(&w->names, v[i])));
    return list;
}

static enum mgx_status node_value(struct writer *w, const struct mgx_ins *ins,
                                  struct mgx_value **out)
{
    struct mgx_value *node = *out = mgx_value_new(w->arena, MGX_VALUE_MAP), *attributes;
    struct mgx_value *yes = mgx_value_new(w->arena, MGX_VALUE_BOOL);
    TRY(operator_value(w, ins, &attributes));
    if (yes)
        yes->i = true;
    mgx_value_put(node, "output", mgx_value_text(w->arena, mgx_map_find_pointer(&w->names, ins)));
    assert(mgx_map_find_pointer(&w->names, ins)); // name_all came before
    mgx_value_put(node, "name", mgx_value_text(w->arena, ins->op->name));
    mgx_value_put(node, "shape", shape_value(w->arena, &ins->shape));
    mgx_value_put(node, "normalized", yes);
    mgx_value_put(node, "operator", attributes);
    mgx_value_put(node, "inputs", name_list(w, ins->in, ins->in_count));
    if (ins->literal)
        mgx_value_put(node, "literal", literal_value(w, ins->literal));
    struct mgx_value *bodies = ins->mod_count ? mgx_value_new(w->arena, MGX_VALUE_LIST) : NULL;
    for (int i = 0; i < ins->mod_count; i++)
        mgx_value_add(bodies, mgx_value_text(w->arena, ins->mod[i]->name));
    mgx_value_put(node, "module_inputs", bodies);
    struct mgx_value *origin = ins->origin.count ? mgx_value_new(w->arena, MGX_VALUE_LIST) : NULL;
    for (int i = 0; i < ins->origin.count; i++)
        mgx_value_add(origin, mgx_value_text(w->arena, ins->origin.v[i]));
    mgx_value_put(node, "debug_symbols", origin);
    return MGX_OK;
}

static bool name_all(struct writer *w, const struct mgx_program *p)
{
    for (int i = 0; i < p->module_count; i++) {
        int at = 0;
        for (struct mgx_ins *ins = p->modules[i]->first; ins; ins = ins->next, at++) {
            char *name = mgx_arena_printf(w->arena, "%s:@%d", p->modules[i]->name, at);
            if (!name || !mgx_map_put_pointer(&w->names, ins, name))
                return false;
        }
    }
    return true;
}

static enum mgx_status module_value(struct writer *w, const struct mgx_module *m,
                                    struct mgx_value **out)
{
    struct mgx_value *nodes = mgx_value_new(w->arena, MGX_VALUE_LIST);
    *out = mgx_value_new(w->arena, MGX_VALUE_MAP);
    for (const struct mgx_ins *ins = m->first; ins; ins = ins->next) {
        struct mgx_value *node;
        TRY(node_value(w, ins, &node));
        mgx_value_add(nodes, node);
    }
    mgx_value_put(*out, "name", mgx_value_text(w->arena, m->name));
    mgx_value_put(*out, "nodes", nodes);
    if (m->bypass)
        mgx_value_put(*out, "bypass", mgx_value_int(w->arena, 1));
    return MGX_OK;
}

// --- programs ---

static void put_target(struct mgx_arena *arena, struct mgx_value *root, const char *target)
{
    struct mgx_value *targets = mgx_value_new(arena, MGX_VALUE_LIST);
    struct mgx_value *contexts = mgx_value_new(arena, MGX_VALUE_LIST);
    if (target) {
        struct mgx_value *one = mgx_value_new(arena, MGX_VALUE_MAP);
        mgx_value_put(one, "name", mgx_value_text(arena, target));
        mgx_value_add(targets, one);
        mgx_value_add(contexts, mgx_value_new(arena, MGX_VALUE_MAP));
    }
    mgx_value_put(root, "targets", targets);
    mgx_value_put(root, "contexts", contexts);
}

static enum mgx_status program_value(struct writer *w, const struct mgx_program *p,
                                     const char *target, struct mgx_value **out)
{
    struct mgx_value *root = *out = mgx_value_new(w->arena, MGX_VALUE_MAP);
    struct mgx_value *modules = mgx_value_new(w->arena, MGX_VALUE_MAP);
    struct mgx_value *names = mgx_value_new(w->arena, MGX_VALUE_LIST);
    if (!name_all(w, p))
        return mgx_fail_memory(w->diag);
    for (int i = 0; i < p->module_count; i++) {
        struct mgx_value *m;
        TRY(module_value(w, p->modules[i], &m));
        mgx_value_put(modules, p->modules[i]->name, m);
    }
    for (int i = 0; i < p->output_names.count; i++)
        mgx_value_add(names, mgx_value_text(w->arena, p->output_names.v[i]));
    mgx_value_put(root, "version", mgx_value_int(w->arena, MGX_MXR_VERSION));
    mgx_value_put(root, "migraphx_version", mgx_value_text(w->arena, MGX_VERSION));
    mgx_value_put(root, "modules", modules);
    mgx_value_put(root, "output_names", names);
    if (p->print_origins)
        mgx_value_put(root, "debug_symbols", mgx_value_int(w->arena, 1));
    put_target(w->arena, root, target);
    return w->arena->failed ? mgx_fail_memory(w->diag) : MGX_OK;
}

enum mgx_status mgx_mxr_program_value(struct mgx_arena *arena, const struct mgx_program *p,
                                      const char *target, const struct mgx_mxr_places *places,
                                      struct mgx_value **out, struct mgx_diag *diag)
{
    struct writer w = {.arena = arena, .places = places, .diag = diag};
    const enum mgx_status status = program_value(&w, p, target, out);
    mgx_map_fini(&w.names);
    return status;
}
