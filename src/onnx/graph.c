// SPDX-License-Identifier: MIT
// The walk over one graph: its nodes in order, calls of functions expanded; see graph.h.
//
// Nodes are taken in file order. One whose inputs are not there yet waits on a stack while the
// nodes that make them go first, so an unsorted graph costs one visit more per node and a long
// chain no C stack. A node met again while it waits closes a cycle. What the bodies of a node
// capture counts among its inputs. The body of a function has a scope of its own: its inputs, its
// attributes, its own opset imports, nothing of the caller.
#include "onnx/graph.h"

#include <assert.h>
#include <string.h>

enum state { NEW, WAITING, DONE };

static enum mgx_status call_function(struct mgx_node *n, const struct mgx_onnx_function *function);

// --- one node, its inputs at hand ---

static void blame_node(struct mgx_onnx_graph *g, const struct mgx_onnx_node_proto *proto,
                       int64_t opset)
{
    struct mgx_onnx_import *import = g->import;
    if (proto->name.size)
        mgx_where(import->diag, "node \"%.*s\" (%.*s, opset %lld)", MGX_SLICE(proto->name),
                  MGX_SLICE(proto->op_type), (long long)opset);
    else
        mgx_where(import->diag, "node making \"%.*s\" (%.*s, opset %lld)",
                  MGX_SLICE(proto->out.count ? proto->out.v[0] : proto->name),
                  MGX_SLICE(proto->op_type), (long long)opset);
}

// What of n comes from the node alone; texts go to the scratch arena.
static void describe_node(struct mgx_onnx_graph *g, const struct mgx_onnx_node_proto *proto,
                          struct mgx_node *n)
{
    struct mgx_onnx_import *import = g->import;
    struct mgx_arena *scratch = &import->scratch;
    const struct mgx_slice domain =
        mgx_onnx_is_standard(proto->domain) ? (struct mgx_slice){"", 0} : proto->domain;
    *n = (struct mgx_node){.name = mgx_arena_strndup(scratch, proto->name.text, proto->name.size),
                           .op_type =
                               mgx_arena_strndup(scratch, proto->op_type.text, proto->op_type.size),
                           .domain = mgx_arena_strndup(scratch, domain.text, domain.size),
                           .opset = mgx_onnx_opset_of(g, proto->domain),
                           .module = g->module,
                           .in_count = proto->in.count,
                           .out_count = proto->out.count,
                           .scratch = scratch,
                           .before = import->before,
                           .diag = import->diag,
                           .fold = &import->fold,
                           .graph = g,
                           .wire = proto};
}

static void find_inputs(struct mgx_onnx_graph *g, const struct mgx_onnx_node_proto *proto,
                        struct mgx_ins **in)
{
    for (int i = 0; i < proto->in.count; i++) {
        const struct mgx_onnx_value *value =
            proto->in.v[i].size ? mgx_onnx_graph_find(g, proto->in.v[i]) : NULL;
        in[i] = value ? value->ins : NULL;
    }
}

static enum mgx_status make_node(struct mgx_onnx_graph *g, const struct mgx_onnx_node_proto *proto,
                                 struct mgx_node *n)
{
    assert(g->module && g->module->program == g->import->program);
    struct mgx_arena *scratch = &g->import->scratch;
    describe_node(g, proto, n);
    struct mgx_ins **in = MGX_NEW_ARRAY(scratch, struct mgx_ins *, proto->in.count);
    n->out = MGX_NEW_ARRAY(scratch, struct mgx_ins *, proto->out.count);
    g->label = mgx_arena_printf(scratch, "%s_%d", n->op_type ? n->op_type : "", g->module->count);
    if (!n->name || !n->op_type || !n->domain || !in || !n->out || !g->label)
        return mgx_fail_memory(n->diag);
    find_inputs(g, proto, in);
    n->in = in;
    return MGX_OK;
}

static enum mgx_status poison_outputs(struct mgx_node *n)
{
    assert(n->graph->import->missing.poison || !n->out_count);
    for (int i = 0; i < n->out_count; i++)
        n->out[i] = n->graph->import->missing.poison;
    return MGX_OK;
}

// An operator without a rule: an `unknown` instruction if the caller wants that.
static enum mgx_status import_unknown(struct mgx_node *n)
{
    assert(!n->rule);
    struct mgx_ins **in = MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, n->in_count);
    if (!in)
        return mgx_fail_memory(n->diag);
    int count = 0;
    for (int i = 0; i < n->in_count; i++)
        if (n->in[i])
            in[count++] = n->in[i];
    struct mgx_ins *ins =
        mgx_build_emit_n(n, &mgx_op_unknown, MGX_ATTRS(mgx_text("op", n->op_type)), in, count);
    for (int i = 0; i < n->out_count; i++)
        n->out[i] = ins;
    return MGX_OK;
}

static enum mgx_status apply_rule(struct mgx_node *n, const struct mgx_onnx_node_proto *proto)
{
    assert(n->out_count == proto->out.count && n->in_count == proto->in.count);
    struct mgx_onnx_graph *g = n->graph;
    struct mgx_onnx_function *function = mgx_onnx_function_find(g->import, proto);
    if (function)
        return mgx_missing_reaches(&g->import->missing, n) ? poison_outputs(n)
                                                           : call_function(n, function);
    const char *why = NULL;
    const struct mgx_onnx_op *rule = mgx_onnx_rule_find(g, proto, &n->opset, &why);
    if (!rule && g->import->options.skip_unknown_operators)
        return import_unknown(n);
    if (!rule) {
        TRY(mgx_onnx_add_missing(n, why));
        return poison_outputs(n);
    }
    if (mgx_missing_reaches(&g->import->missing, n))
        return poison_outputs(n);
    n->rule = rule;
    enum mgx_status status = mgx_onnx_admit(n);
    if (status == MGX_OK)
        status = rule->import(n);
    if (status != MGX_UNSUPPORTED || g->import->final || g->import->options.quick_reject)
        return status;
    TRY(mgx_onnx_add_missing(n, g->import->diag->text));
    return poison_outputs(n);
}

// Does every name that the node gives stand for the output of its number?
__attribute__((unused)) static bool are_named(const struct mgx_node *n)
{
    const struct mgx_onnx_node_proto *proto = n->wire;
    for (int i = 0; i < n->out_count; i++) {
        const struct mgx_onnx_value *value =
            proto->out.v[i].size ? mgx_onnx_graph_find(n->graph, proto->out.v[i]) : NULL;
        if (value && value->ins != n->out[i])
            return false;
    }
    return true;
}

// Are the results of the types that the rule's row promises (node.h)? Not asked where the answer is
// in a body, a tensor or a list.
__attribute__((unused)) static bool are_of_promised_types(const struct mgx_node *n)
{
    const char *codes = n->rule ? n->rule->result : NULL;
    if (!codes || strpbrk(codes, "BCcv"))
        return true;
    for (int i = 0; i < n->out_count; i++) {
        bool sequence;
        enum mgx_type type;
        mgx_onnx_promised_type(n, i, &type, &sequence);
        const struct mgx_shape *s = n->out[i] ? &n->out[i]->shape : NULL;
        // What was no optional is handed on as it is.
        if (!s || s->type == MGX_TUPLE || (s->type == MGX_SEQUENCE && !sequence) ||
            (sequence && s->type == MGX_SEQUENCE && !s->sub_count))
            continue;
        if (sequence ? s->type != MGX_SEQUENCE || s->sub[0].type != type : s->type != type)
            return false;
    }
    return true;
}

static enum mgx_status check_result(struct mgx_node *n)
{
    if (n->diag->status != MGX_OK)
        return n->diag->status; // an accessor recorded it
    TRY(mgx_program_status(n->graph->import->program, n->diag));
    const struct mgx_onnx_node_proto *proto = n->wire;
    for (int i = 0; i < n->out_count; i++) {
        const struct mgx_slice name = proto->out.v[i];
        struct mgx_onnx_value *value =
            name.size ? mgx_map_findn(&n->graph->values, name.text, name.size) : NULL;
        if (value)
            value->ins = n->out[i];
    }
    assert(are_named(n) && are_of_promised_types(n));
    return MGX_OK;
}

static enum mgx_status count_node(struct mgx_onnx_import *import)
{
    enum { CHECK_EVERY = 64 };
    if (++import->node_count > import->options.limit_nodes)
        return mgx_fail(import->diag, MGX_LIMIT, "more than %lld nodes after expansion",
                        (long long)import->options.limit_nodes);
    if (import->scratch.failed)
        return mgx_fail_memory(import->diag);
    return import->node_count % CHECK_EVERY ? MGX_OK : mgx_onnx_check_time(import);
}

// Has the import a rule for the node?
static bool is_known(struct mgx_onnx_graph *g, const struct mgx_onnx_node_proto *proto)
{
    const char *why = NULL;
    int64_t opset = 0;
    return !mgx_onnx_function_find(g->import, proto) && mgx_onnx_rule_find(g, proto, &opset, &why);
}

// A node that names no result is nothing to anybody, but rules check it as if it had one without a
// name; one that nobody knows is let be.
static enum mgx_status import_node(struct mgx_onnx_graph *g,
                                   const struct mgx_onnx_node_proto *proto)
{
    TRY(count_node(g->import));
    struct mgx_slice nameless = {"", 0};
    struct mgx_onnx_node_proto checked = *proto;
    if (!proto->out.count && !is_known(g, proto))
        return MGX_OK;
    if (!proto->out.count)
        checked.out = (struct mgx_names){&nameless, 1};
    struct mgx_node n;
    uint32_t asked = 0;
    TRY(make_node(g, &checked, &n));
    n.asked = &asked;
    enum mgx_status status = apply_rule(&n, &checked);
    if (status == MGX_OK)
        status = check_result(&n);
    if (status == MGX_INVALID && !proto->has_graphs)
        g->import->misfit = true; // of this node; graphs say it of theirs
    if (status != MGX_OK)
        blame_node(g, proto, n.opset);
    return status;
}

// --- order ---

struct waiting { // a node whose inputs are being made
    int node;
    int next, count;  // of needs
    const int *needs; // nodes to do first
    struct mgx_arena_mark mark;
};

struct stack {
    MGX_ARRAY(struct waiting);
};

static enum mgx_status push(struct mgx_onnx_graph *g, struct stack *stack, struct waiting entry)
{
    assert(entry.node >= 0 && entry.node < g->nodes.count && entry.count > 0);
    if (!MGX_PUSH(stack, &g->import->arena, entry))
        return mgx_fail_memory(g->import->diag);
    g->state[entry.node] = WAITING;
    return MGX_OK;
}

// A name that a node reads: fails if nobody makes it; appends the maker to `needs` if that is to
// come.
static enum mgx_status need_name(struct mgx_onnx_graph *g, struct mgx_slice name, int *needs,
                                 int *count)
{
    assert(*count >= 0);
    if (!name.size)
        return MGX_OK;
    const struct mgx_onnx_value *value = mgx_map_findn(&g->values, name.text, name.size);
    if (value && value->node >= 0 && g->state[value->node] != DONE) {
        needs[(*count)++] = value->node;
        return MGX_OK;
    }
    if (!value)
        value = mgx_onnx_graph_find(g, name);
    if (!value)
        return mgx_fail(g->import->diag, MGX_INVALID,
                        "input \"%.*s\" is produced by no node, input or initialiser",
                        MGX_SLICE(name));
    if (!value->ins && value->node >= 0)
        return mgx_fail(g->import->diag, MGX_INVALID, "input \"%.*s\" was left without a value",
                        MGX_SLICE(name));
    return MGX_OK; // an input without instruction is an absent argument of a function
}

// The nodes that must go before this one.
static enum mgx_status find_needs(struct mgx_onnx_graph *g, const struct mgx_onnx_node_proto *proto,
                                  struct waiting *entry)
{
    struct mgx_arena *scratch = &g->import->scratch;
    struct mgx_names captured = {0};
    if (proto->has_graphs)
        TRY(mgx_onnx_captures(g->import, proto, g->depth + 1, scratch, &captured));
    int *needs = MGX_NEW_ARRAY(scratch, int, (size_t)proto->in.count + (size_t)captured.count);
    if (!needs)
        return mgx_fail_memory(g->import->diag);
    for (int i = 0; i < proto->in.count; i++)
        TRY(need_name(g, proto->in.v[i], needs, &entry->count));
    for (int i = 0; i < captured.count; i++)
        TRY(need_name(g, captured.v[i], needs, &entry->count));
    entry->needs = needs;
    assert(entry->count <= proto->in.count + captured.count);
    return MGX_OK;
}

static enum mgx_status import_or_wait(struct mgx_onnx_graph *g, int node, struct stack *stack)
{
    struct mgx_arena *scratch = &g->import->scratch;
    struct waiting entry = {.node = node, .mark = mgx_arena_mark(scratch)};
    struct mgx_onnx_node_proto proto;
    enum mgx_status status = mgx_onnx_read_node(g->nodes.v[node], scratch, &proto, g->import->diag);
    if (status != MGX_OK) {
        mgx_onnx_blame_index(g, node);
        return status;
    }
    status = find_needs(g, &proto, &entry);
    if (status != MGX_OK) {
        blame_node(g, &proto, mgx_onnx_opset_of(g, proto.domain));
        return status;
    }
    if (entry.count)
        return push(g, stack, entry); // its scratch stays until it is done
    assert(g->state[node] != DONE);
    status = import_node(g, &proto);
    if (status != MGX_OK && g->import->verdicts && g->depth == 1)
        status = mgx_onnx_judge_refuse(g, node, &proto, status);
    TRY(status);
    g->state[node] = DONE;
    mgx_arena_rewind(scratch, entry.mark);
    return MGX_OK;
}

static enum mgx_status fail_cycle(struct mgx_onnx_graph *g, int node)
{
    struct mgx_onnx_node_proto proto;
    TRY(mgx_onnx_read_node(g->nodes.v[node], &g->import->scratch, &proto, g->import->diag));
    mgx_fail(g->import->diag, MGX_INVALID, "the graph has a cycle: this node needs its own result");
    blame_node(g, &proto, mgx_onnx_opset_of(g, proto.domain));
    return MGX_INVALID;
}

static enum mgx_status import_with_needs(struct mgx_onnx_graph *g, int node, struct stack *stack)
{
    TRY(import_or_wait(g, node, stack));
    while (stack->count) {
        struct waiting *top = &stack->v[stack->count - 1];
        while (top->next < top->count && g->state[top->needs[top->next]] == DONE)
            top->next++;
        if (top->next < top->count) {
            const int need = top->needs[top->next];
            if (g->state[need] == WAITING)
                return fail_cycle(g, need);
            TRY(import_or_wait(g, need, stack));
            continue;
        }
        const int ready = top->node;
        mgx_arena_rewind(&g->import->scratch, top->mark);
        stack->count--;
        TRY(import_or_wait(g, ready, stack));
        if (g->state[ready] != DONE)
            return mgx_fail(g->import->diag, MGX_IO, "the file changed while it was read");
    }
    return MGX_OK;
}

enum mgx_status mgx_onnx_graph_nodes(struct mgx_onnx_graph *g)
{
    struct stack stack = {0};
    for (int i = 0; i < g->nodes.count; i++)
        if (g->state[i] == NEW)
            TRY(import_with_needs(g, i, &stack));
    return MGX_OK;
}

// --- calls of functions ---

static bool is_given(const struct mgx_onnx_attribute *list, int count, struct mgx_slice name)
{
    for (int i = 0; i < count; i++)
        if (mgx_slice_equal(list[i].name, name))
            return true;
    return false;
}

// The caller's attributes, but for those that refer to one which its own caller did not give.
static int bind_given(struct mgx_node *n, struct mgx_onnx_attribute *list)
{
    const struct mgx_onnx_node_proto *node = n->wire;
    int count = 0;
    for (int i = 0; i < node->attribute_count; i++) {
        const struct mgx_onnx_attribute *a = mgx_onnx_resolve(n->graph, &node->attributes[i]);
        if (!a)
            continue;
        list[count] = *a;
        list[count].name = node->attributes[i].name;
        if (!list[count].home)
            list[count].home = n->graph;
        count++;
    }
    return count;
}

// Values for the attributes that the body may refer to: the caller's, then defaults for the rest.
static enum mgx_status bind_attributes(struct mgx_node *n, const struct mgx_onnx_function *function,
                                       struct mgx_onnx_call *call)
{
    assert(function && call);
    const struct mgx_onnx_node_proto *node = n->wire;
    const struct mgx_messages defaults = function->proto.defaults;
    struct mgx_onnx_attribute *list = MGX_NEW_ARRAY(n->scratch, struct mgx_onnx_attribute,
                                                    node->attribute_count + defaults.count);
    if (!list)
        return mgx_fail_memory(n->diag);
    int count = bind_given(n, list);
    for (int i = 0; i < defaults.count; i++) {
        struct mgx_onnx_attribute a;
        TRY(mgx_onnx_read_attribute(defaults.v[i], &a, n->diag));
        if (!is_given(list, count, a.name))
            list[count++] = a;
    }
    *call = (struct mgx_onnx_call){function, list, count};
    assert(count <= node->attribute_count + defaults.count);
    return MGX_OK;
}

static enum mgx_status check_arity(const struct mgx_node *n,
                                   const struct mgx_onnx_function_proto *f)
{
    if (n->in_count > f->inputs.count)
        return mgx_fail(n->diag, MGX_INVALID, "function takes %d inputs, given %d", f->inputs.count,
                        n->in_count);
    if (n->out_count > f->outputs.count)
        return mgx_fail(n->diag, MGX_INVALID, "function gives %d outputs, asked for %d",
                        f->outputs.count, n->out_count);
    return MGX_OK;
}

static enum mgx_status walk_body(struct mgx_onnx_graph *g, struct mgx_node *n,
                                 const struct mgx_onnx_function_proto *f)
{
    for (int i = 0; i < f->inputs.count; i++)
        TRY(mgx_onnx_graph_define(g, f->inputs.v[i], i < n->in_count ? n->in[i] : NULL));
    TRY(mgx_onnx_graph_start(g));
    TRY(mgx_onnx_graph_nodes(g));
    const struct mgx_onnx_node_proto *node = n->wire;
    for (int i = 0; i < n->out_count; i++)
        if (node->out.v[i].size)
            TRY(mgx_onnx_graph_result(g, f->outputs.v[i], &n->out[i]));
    return MGX_OK;
}

static enum mgx_status call_function(struct mgx_node *n, const struct mgx_onnx_function *function)
{
    const struct mgx_onnx_function_proto *f = &function->proto;
    struct mgx_onnx_call call;
    TRY(check_arity(n, f));
    TRY(bind_attributes(n, function, &call));
    struct mgx_onnx_graph g = {.import = n->graph->import,
                               .module = n->module,
                               .call = &call,
                               .opsets =
                                   f->opsets.count ? f->opsets : n->graph->import->model.opsets,
                               .nodes = f->nodes,
                               .depth = n->graph->depth + 1};
    const enum mgx_status status = walk_body(&g, n, f);
    mgx_onnx_graph_fini(&g);
    if (status != MGX_OK)
        mgx_where(n->diag, "function \"%.*s\"", MGX_SLICE(f->name));
    return status;
}
