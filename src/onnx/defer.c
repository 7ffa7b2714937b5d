// SPDX-License-Identifier: MIT
// Deferring a node: it becomes a model of its own, kept in an attribute of onnx::deferred.
//
// The model is the node's bytes, the opsets in force, and its inputs (with what its bodies capture)
// as graph inputs. As base64 text it prints, parses, clones and saves like any other attribute. A
// node inside a function is wrapped in a function again, so that references to attributes stay what
// they were. See deferred.c for what becomes of it.
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "import/wire_write.h"
#include "onnx/deferred.h"

enum { MODEL_BYTES = 16 << 20 };

// --- writing the model ---

static void put_opsets(struct mgx_str *s, uint32_t field, struct mgx_onnx_opsets opsets)
{
    for (int i = 0; i < opsets.count; i++) {
        struct mgx_str opset = {0};
        mgx_wire_put_slice(&opset, 1, opsets.v[i].domain);
        mgx_wire_put_int(&opset, 2, opsets.v[i].version);
        mgx_wire_put_message(s, field, &opset);
    }
}

// What the deferred instruction reads and makes.
struct signature {
    struct mgx_slice *in; // names, each once; captured ones last
    struct mgx_ins **ins; // NULL: an absent argument of the enclosing function
    int in_count;
    struct mgx_slice *out; // results that have a name
    int *out_index;        // which output of the node each one is
    int out_count;
    bool wrap; // needs a function around the node
};

static const char wrapper_name[] = "node", wrapper_domain[] = "mgx.deferred";

// FunctionProto around the node.
static void put_wrapper(struct mgx_str *model, const struct mgx_node *n,
                        const struct signature *sig)
{
    const struct mgx_onnx_node_proto *node = n->wire;
    struct mgx_str f = {0};
    mgx_wire_put_text(&f, 1, wrapper_name);
    mgx_wire_put_text(&f, 10, wrapper_domain);
    for (int i = 0; i < sig->in_count; i++)
        mgx_wire_put_slice(&f, 4, sig->in[i]);
    for (int i = 0; i < sig->out_count; i++)
        mgx_wire_put_slice(&f, 5, sig->out[i]);
    mgx_wire_put_bytes(&f, 7, node->body.p, (size_t)(node->body.end - node->body.p));
    put_opsets(&f, 9, n->graph->opsets);
    mgx_wire_put_message(model, 25, &f);
}

// NodeProto that calls it, with what the references stand for.
static void put_call(struct mgx_str *graph, const struct mgx_node *n, const struct signature *sig)
{
    const struct mgx_onnx_call *call = n->graph->call;
    struct mgx_str node = {0};
    for (int i = 0; i < sig->in_count; i++)
        mgx_wire_put_slice(&node, 1, sig->ins[i] ? sig->in[i] : (struct mgx_slice){"", 0});
    for (int i = 0; i < sig->out_count; i++)
        mgx_wire_put_slice(&node, 2, sig->out[i]);
    mgx_wire_put_text(&node, 4, wrapper_name);
    mgx_wire_put_text(&node, 7, wrapper_domain);
    for (int i = 0; call && i < call->attribute_count; i++) {
        const struct mgx_onnx_attribute *a = &call->attributes[i];
        struct mgx_str attribute = {0};
        mgx_str_putn(&attribute, (const char *)a->body.p, (size_t)(a->body.end - a->body.p));
        mgx_wire_put_slice(&attribute, 1, a->name); // the last name counts
        mgx_wire_put_message(&node, 5, &attribute);
    }
    mgx_wire_put_message(graph, 1, &node);
}

static void put_graph(struct mgx_str *model, const struct mgx_node *n, const struct signature *sig)
{
    const struct mgx_onnx_node_proto *node = n->wire;
    struct mgx_str graph = {0};
    if (sig->wrap)
        put_call(&graph, n, sig);
    else
        mgx_wire_put_bytes(&graph, 1, node->body.p, (size_t)(node->body.end - node->body.p));
    for (int i = 0; i < sig->in_count; i++) {
        struct mgx_str value = {0};
        if (sig->ins[i]) {
            mgx_wire_put_slice(&value, 1, sig->in[i]);
            mgx_wire_put_message(&graph, 11, &value);
        }
    }
    for (int i = 0; i < sig->out_count; i++) {
        struct mgx_str value = {0};
        mgx_wire_put_slice(&value, 1, sig->out[i]);
        mgx_wire_put_message(&graph, 12, &value);
    }
    mgx_wire_put_message(model, 7, &graph);
}

static enum mgx_status write_model(struct mgx_node *n, const struct signature *sig,
                                   const char **out)
{
    const struct mgx_onnx_import *import = n->graph->import;
    const struct mgx_onnx_node_proto *node = n->wire;
    struct mgx_str model = {0};
    mgx_wire_put_int(&model, 1, import->model.ir_version);
    put_opsets(&model, 8, n->graph->opsets);
    for (int i = 0; node->has_graphs && i < import->model.functions.count; i++) {
        const struct mgx_wire f = import->model.functions.v[i]; // a body may call any of them
        mgx_wire_put_bytes(&model, 25, f.p, (size_t)(f.end - f.p));
    }
    if (sig->wrap)
        put_wrapper(&model, n, sig);
    put_graph(&model, n, sig);
    enum mgx_status status = MGX_OK;
    if (model.failed)
        status = mgx_fail_memory(n->diag);
    else if (model.size > MODEL_BYTES)
        status = mgx_node_unsupported(n,
                                      "needs sizes known only at run time, and its %zu bytes "
                                      "are more than can be kept until then",
                                      model.size);
    else if (!(*out =
                   mgx_base64_encode(&n->module->program->arena, mgx_str_text(&model), model.size)))
        status = mgx_fail_memory(n->diag);
    mgx_str_fini(&model);
    return status;
}

// --- deferring ---

static void add_input(const struct mgx_node *n, struct signature *sig, struct mgx_slice name)
{
    if (!name.size)
        return;
    for (int i = 0; i < sig->in_count; i++)
        if (mgx_slice_equal(sig->in[i], name))
            return;
    const struct mgx_onnx_value *value = mgx_onnx_graph_find(n->graph, name);
    sig->ins[sig->in_count] = value ? value->ins : NULL;
    sig->wrap |= !sig->ins[sig->in_count];
    sig->in[sig->in_count++] = name;
}

static enum mgx_status make_signature(struct mgx_node *n, struct signature *sig)
{
    const struct mgx_onnx_node_proto *node = n->wire;
    struct mgx_names captured = {0};
    enum { MANY = 1000 };
    *sig = (struct signature){0};
    if (node->has_graphs)
        TRY(mgx_onnx_captures(n->graph->import, node, n->graph->depth + 1, n->scratch, &captured));
    const size_t room = (size_t)node->in.count + (size_t)captured.count;
    if (room > MANY)
        return mgx_node_unsupported(n, "needs sizes known only at run time, with %zu inputs", room);
    sig->in = MGX_NEW_ARRAY(n->scratch, struct mgx_slice, room);
    sig->ins = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, room);
    sig->out = MGX_NEW_ARRAY(n->scratch, struct mgx_slice, node->out.count);
    sig->out_index = MGX_NEW_ARRAY(n->scratch, int, node->out.count);
    if (!sig->in || !sig->ins || !sig->out || !sig->out_index)
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < node->in.count; i++)
        add_input(n, sig, node->in.v[i]);
    for (int i = 0; i < captured.count; i++)
        add_input(n, sig, captured.v[i]);
    for (int i = 0; i < node->out.count; i++)
        if (node->out.v[i].size) {
            sig->out_index[sig->out_count] = i;
            sig->out[sig->out_count++] = node->out.v[i];
        }
    for (int i = 0; i < node->attribute_count; i++)
        sig->wrap |= node->attributes[i].reference.size > 0;
    sig->wrap |= n->graph->call && node->has_graphs;
    return MGX_OK;
}

// The inputs of the instruction, by bit, that the rule asked for by their places in the node.
static int64_t asked_of(const struct mgx_node *n, const struct signature *sig)
{
    int64_t asked = 0;
    for (int i = 0, at = 0; i < sig->in_count && at < 32; at += sig->ins[i++] != NULL)
        for (int k = 0; k < n->in_count && k < 32; k++)
            if (sig->ins[i] && n->in[k] == sig->ins[i] && *n->asked >> k & 1)
                asked |= INT64_C(1) << at;
    return asked;
}

static enum mgx_status emit(struct mgx_node *n, const struct signature *sig, const char *model)
{
    const struct mgx_onnx_options *o = &n->graph->import->options;
    int64_t *types = MGX_NEW_ARRAY(n->scratch, int64_t, sig->out_count);
    struct mgx_ins **in = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, sig->in_count);
    if (!types || !in)
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < sig->out_count; i++) {
        bool sequence = false;
        const enum mgx_type type = mgx_onnx_result_type(n, sig->out_index[i], &sequence);
        types[i] = sequence ? -1 - (int64_t)type : (int64_t)type;
    }
    int count = 0;
    for (int i = 0; i < sig->in_count; i++)
        if (sig->ins[i])
            in[count++] = sig->ins[i];
    struct mgx_ins *ins = mgx_build_emit_n(
        n, &mgx_onnx_deferred,
        MGX_ATTRS(mgx_text("op_type", n->op_type), mgx_text("node", n->name),
                  mgx_int("opset", n->opset), mgx_ints("types", types, sig->out_count),
                  mgx_int("max_loop", o->max_loop_iterations),
                  mgx_int("limit_loop", o->limit_loop_iterations), mgx_text("model", model),
                  mgx_int("asks", asked_of(n, sig))),
        in, count);
    for (int i = 0; i < sig->out_count; i++)
        n->out[sig->out_index[i]] = sig->out_count == 1 ? ins : mgx_build_member(n, ins, i);
    return MGX_OK;
}

enum mgx_status mgx_onnx_defer(struct mgx_node *n)
{
    if (n->graph->import->final) {
        n->graph->import->gave_up = true;
        return mgx_node_unsupported(n, "needs sizes or values that are not known");
    }
    struct signature sig;
    const char *model = NULL;
    TRY(make_signature(n, &sig));
    TRY(write_model(n, &sig, &model));
    return emit(n, &sig, model);
}
