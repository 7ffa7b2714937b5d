// SPDX-License-Identifier: MIT
// Variables: handles, reading, assigning, and restoring from a SavedModel's table.
//
// A model's own restoring function is imported first, for its effects: RestoreV2 gives literals,
// AssignVariableOp hands them to variables, and whoever reads a variable afterwards reads a
// constant.
#include <string.h>

#include "base/size.h"
#include "tf/graph.h"

// --- the variables ---

static const char *variable_name(const struct mgx_node *n)
{
    const char *shared = mgx_tf_text(n, "shared_name", "");
    return *shared ? shared : n->name;
}

static enum mgx_status make(struct mgx_node *n, enum mgx_tf_handle_kind kind)
{
    struct mgx_tf_import *import = n->tf->import;
    const char *container = mgx_tf_text(n, "container", "");
    const char *name = mgx_arena_printf(&import->arena, "%s%s%s", container, *container ? "/" : "",
                                        variable_name(n));
    if (!name)
        return mgx_fail_memory(n->diag);
    struct mgx_ins *known = mgx_map_find(&import->variables, name);
    if (!known) {
        known = mgx_tf_new_handle(n, (struct mgx_tf_handle){.kind = kind, .name = name});
        if (!known || !mgx_map_put(&import->variables, name, known))
            return mgx_fail_memory(n->diag);
    }
    n->out[0] = known;
    return MGX_OK;
}

static enum mgx_status handle(struct mgx_node *n)
{
    return make(n, MGX_TF_VARIABLE);
}
const struct mgx_tf_op mgx_tf_var_handle_op = {.name = "VarHandleOp", .import = handle};

static enum mgx_status reference(struct mgx_node *n)
{
    return make(n, MGX_TF_REFERENCE);
}
const struct mgx_tf_op mgx_tf_variable = {.name = "Variable", .import = reference};
const struct mgx_tf_op mgx_tf_variable_v2 = {.name = "VariableV2", .import = reference};

// --- reading and assigning ---

static enum mgx_status need_variable(struct mgx_node *n, struct mgx_tf_handle **out)
{
    *out = n->in_count ? mgx_tf_handle_of(n, n->in[0]) : NULL;
    if (!*out || ((*out)->kind != MGX_TF_VARIABLE && (*out)->kind != MGX_TF_REFERENCE))
        return mgx_node_invalid(n, "input 0 is not a variable");
    return MGX_OK;
}

static enum mgx_status need_value(struct mgx_node *n, struct mgx_ins **out)
{
    struct mgx_tf_handle *variable;
    TRY(need_variable(n, &variable));
    *out = variable->value;
    return *out ? MGX_OK
                : mgx_node_invalid(n,
                                   "variable \"%s\" has no value (freeze the graph, or read its "
                                   "SavedModel)",
                                   variable->name);
}

static enum mgx_status read(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 1, 1));
    return need_value(n, &n->out[0]);
}
const struct mgx_tf_op mgx_tf_read_variable_op = {
    .name = "ReadVariableOp", .import = read, .takes = MGX_TF_HANDLES};

static enum mgx_status assign(struct mgx_node *n)
{
    struct mgx_tf_handle *variable;
    TRY(mgx_node_need(n, 2, 2));
    TRY(need_variable(n, &variable));
    const struct mgx_tf_handle *given = mgx_tf_handle_of(n, n->in[1]);
    if (given && given->kind != MGX_TF_NOTHING) // such a value is refused where it is used
        return mgx_node_unsupported(n, "a variable of something that is no tensor");
    if (n->module != mgx_program_main(n->module->program))
        return mgx_node_unsupported(n, "a variable is assigned in a loop or a branch");
    variable->value = n->in[1];
    n->out[0] = n->in[0];
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_assign = {
    .name = "Assign", .import = assign, .takes = MGX_TF_HANDLES};
const struct mgx_tf_op mgx_tf_assign_variable_op = {
    .name = "AssignVariableOp", .import = assign, .takes = MGX_TF_HANDLES};

static enum mgx_status is_initialized(struct mgx_node *n)
{
    struct mgx_tf_handle *variable;
    TRY(mgx_node_need(n, 1, 1));
    TRY(need_variable(n, &variable));
    n->out[0] = mgx_build_scalar(n, MGX_BOOL, variable->value != NULL);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_var_is_initialized_op = {
    .name = "VarIsInitializedOp", .import = is_initialized, .takes = MGX_TF_HANDLES};

// Rows of a variable, without reading all of it.
static enum mgx_status gather(struct mgx_node *n)
{
    struct mgx_ins *value;
    TRY(mgx_node_need(n, 2, 2));
    TRY(need_value(n, &value));
    if (mgx_tf_int(n, "batch_dims", 0))
        return mgx_node_unsupported(n, "batch_dims");
    n->out[0] = mgx_build_gather(n, value, n->in[1], 0);
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_resource_gather = {
    .name = "ResourceGather", .import = gather, .takes = MGX_TF_HANDLES};

// --- restoring ---

static enum mgx_status restore_one(struct mgx_node *n, struct mgx_string name, struct mgx_ins **out)
{
    struct mgx_tf_import *import = n->tf->import;
    struct mgx_shape shape;
    struct mgx_region region;
    struct mgx_tensor t = {0};
    const struct mgx_slice text = {name.text, name.size};
    TRY(mgx_tf_bundle_find(&import->bundle, text, &import->source, &import->arena, &shape, &region,
                           n->diag));
    TRY(mgx_tf_from_region(n, &region, &shape, &t));
    *out = mgx_add_literal(n->module, &t);
    mgx_tensor_release(&t);
    return MGX_OK;
}

// The DataType numbers of the results; what is no tensor of numbers is restored by nobody.
static struct mgx_ints result_types(struct mgx_node *n)
{
    struct mgx_tf_attribute a;
    struct mgx_ints out = {0};
    if (!mgx_tf_attribute(n, "dtypes", &a) || a.kind != MGX_TF_LIST)
        return out;
    int64_t *v = MGX_NEW_ARRAY(n->scratch, int64_t, a.body.end - a.body.p);
    struct mgx_wire_field f;
    while (v && mgx_wire_next(&a.body, &f)) {
        enum { TYPES = 6 };
        struct mgx_wire list;
        uint64_t value;
        if (f.number == TYPES && mgx_wire_packed(&a.body, &f, 0, &list))
            while (list.p < list.end && mgx_wire_varint(&list, &value))
                v[out.count++] = (int64_t)value;
    }
    out.v = v;
    return out;
}

// Each name may come with the part of the variable that is wanted; "" is all of it.
static enum mgx_status need_whole(struct mgx_node *n, int64_t count)
{
    const struct mgx_tensor *parts = mgx_node_constant(n, 2);
    if (!parts || parts->shape.type != MGX_STRING || mgx_shape_elements(&parts->shape) != count)
        return mgx_node_unsupported(n, "input 2 (shape_and_slices) is not as many constants as "
                                       "there are names");
    const struct mgx_string *list = parts->data;
    for (int64_t i = 0; i < count; i++)
        if (list[i].size)
            return mgx_node_unsupported(n, "part \"%.*s\" of a variable",
                                        (int)mgx_min_i64((int64_t)list[i].size, 120), list[i].text);
    return MGX_OK;
}

static enum mgx_status restore(struct mgx_node *n)
{
    enum { TEXT = 7 };
    struct mgx_tf_import *import = n->tf->import;
    TRY(mgx_node_need(n, 3, 3));
    const struct mgx_tensor *names = mgx_node_constant(n, 1);
    if (!names || names->shape.type != MGX_STRING)
        return mgx_node_unsupported(n, "input 1 (tensor_names) is not a constant");
    const int64_t count = mgx_shape_elements(&names->shape);
    const struct mgx_ints types = result_types(n);
    const struct mgx_string *list = names->data;
    if (types.count != count)
        return mgx_node_invalid(n, "%d types for %lld names", types.count, (long long)count);
    TRY(need_whole(n, count));
    TRY(mgx_tf_results(n, count));
    for (int i = 0; i < n->out_count; i++) {
        if (types.v[i] == TEXT) {
            n->out[i] = mgx_tf_new_handle(n, (struct mgx_tf_handle){.kind = MGX_TF_NOTHING});
            continue;
        }
        TRY(mgx_tf_bundle_open(&import->bundle, &import->source, &import->arena, n->diag));
        TRY(restore_one(n, list[i], &n->out[i]));
    }
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_restore_v2 = {
    .name = "RestoreV2", .import = restore, .takes = MGX_TF_TEXTS | MGX_TF_HANDLES};
