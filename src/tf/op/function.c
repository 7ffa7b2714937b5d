// SPDX-License-Identifier: MIT
// Calls of the model's functions, which are imported in place: PartitionedCall, its stateful form,
// and in old graphs a node whose operator is a function's name.
#include <assert.h>
#include <string.h>

#include "tf/op/function.h"

static enum mgx_status find_results(struct mgx_tf_graph *g, struct mgx_ins **out)
{
    const struct mgx_tf_function_def *f = g->body->function;
    for (int i = 0; i < f->outputs.count; i++) {
        const struct mgx_slice name = mgx_tf_text_field(f->outputs.v[i], 1);
        struct mgx_wire value;
        TRY(mgx_name_check(name, "the name of a result", g->import->diag));
        TRY(mgx_tf_find_entry(&f->results, name, &value, g->import->diag));
        if (!value.p)
            return mgx_fail(g->import->diag, MGX_INVALID, "result \"%.*s\" is made by nobody",
                            MGX_SLICE(name));
        const struct mgx_slice reference = {(const char *)value.p, (size_t)(value.end - value.p)};
        TRY(mgx_tf_graph_value(g, reference, &out[i]));
    }
    return MGX_OK;
}

// Nodes that are there for what they do.
static enum mgx_status follow_effects(struct mgx_tf_graph *g)
{
    const struct mgx_messages *list = &g->body->function->control_results;
    for (int i = 0; g->effects && i < list->count; i++) {
        struct mgx_slice key;
        struct mgx_wire value;
        TRY(mgx_tf_read_entry(list->v[i], &key, &value, g->import->diag));
        const struct mgx_slice name = {(const char *)value.p, (size_t)(value.end - value.p)};
        TRY(mgx_tf_graph_effect(g, name, "the name of a function's effect"));
    }
    return MGX_OK;
}

// An argument that stands for several, by an attribute.
static bool is_list(struct mgx_wire argument)
{
    enum { NUMBER = 5, TYPES = 6 };
    return mgx_tf_text_field(argument, NUMBER).size || mgx_tf_text_field(argument, TYPES).size;
}

static enum mgx_status check_arguments(struct mgx_node *n, const struct mgx_tf_function_def *f,
                                       int count)
{
    enum { MANY = 1 << 13 };
    if (f->inputs.count != count)
        return mgx_node_invalid(n, "function \"%.*s\" takes %d arguments, given %d",
                                MGX_SLICE(f->name), f->inputs.count, count);
    if (f->outputs.count > MANY)
        return mgx_fail(n->diag, MGX_LIMIT, "function \"%.*s\" has %d results, %d are allowed",
                        MGX_SLICE(f->name), f->outputs.count, MANY);
    for (int i = 0; i < f->inputs.count + f->outputs.count; i++)
        if (is_list(i < f->inputs.count ? f->inputs.v[i] : f->outputs.v[i - f->inputs.count]))
            return mgx_node_unsupported(n, "function \"%.*s\" has an argument that is a list",
                                        MGX_SLICE(f->name));
    return MGX_OK;
}

enum mgx_status mgx_tf_call(struct mgx_node *n, struct mgx_tf_body *body, struct mgx_module *module,
                            struct mgx_ins *const *args, int arg_count, struct mgx_ins ***results,
                            int *result_count)
{
    assert(arg_count >= 0 && (args || !arg_count));
    const struct mgx_tf_function_def *f = body->function;
    TRY(check_arguments(n, f, arg_count));
    struct mgx_tf_graph g = {.import = n->tf->import,
                             .up = n->tf,
                             .module = module,
                             .body = body,
                             .args = args,
                             .arg_count = arg_count,
                             .call = n,
                             .effects = n->tf->effects};
    *result_count = f->outputs.count;
    *results = MGX_NEW_ARRAY(&g.import->arena, struct mgx_ins *, f->outputs.count);
    if (!*results)
        return mgx_fail_memory(n->diag);
    TRY(mgx_tf_graph_start(&g));
    TRY(find_results(&g, *results));
    return follow_effects(&g);
}

static enum mgx_status call(struct mgx_node *n)
{
    struct mgx_tf_body *body = NULL;
    if (strcmp(n->op_type, n->tf_rule->name) != 0) // a node of the function's name
        body = mgx_map_find(&n->tf->import->functions, n->op_type);
    if (!body)
        TRY(mgx_tf_function(n, "f", &body));
    return mgx_tf_call(n, body, n->module, n->in, n->in_count, &n->out, &n->out_count);
}
#define ANY (MGX_TF_TEXTS | MGX_TF_HANDLES | MGX_TF_COMPLEX)
const struct mgx_tf_op mgx_tf_partitioned_call = {
    .name = "PartitionedCall", .import = call, .takes = ANY};
const struct mgx_tf_op mgx_tf_stateful_partitioned_call = {
    .name = "StatefulPartitionedCall", .import = call, .takes = ANY};
