// SPDX-License-Identifier: MIT
// The walk over one scope: bodies, order, nodes; see graph.h.
//
// A node is imported when somebody asks for its result. One whose inputs are not there yet waits on
// a stack while the nodes that make them go first, so a long chain needs no C stack. A node met
// again while it waits closes a cycle.
#include <assert.h>
#include <string.h>

#include "tf/frames.h"

enum phase { NEW, WAITING, DONE };

// --- bodies ---

static enum mgx_status add_place(struct mgx_tf_import *import, struct mgx_tf_body *body,
                                 struct mgx_slice name, int64_t place)
{
    const uint32_t count = body->places.count;
    TRY(mgx_name_check(name, "the name of a node", import->diag));
    if (!mgx_map_putn(&body->places, name.text, name.size, (void *)(intptr_t)(place + 1)))
        return mgx_fail_memory(import->diag);
    if (body->places.count == count)
        return mgx_fail(import->diag, MGX_INVALID, "\"%.*s\" is defined twice", MGX_SLICE(name));
    return MGX_OK;
}

enum mgx_status mgx_tf_body_init(struct mgx_tf_import *import, struct mgx_messages nodes,
                                 const struct mgx_tf_function_def *function,
                                 struct mgx_tf_body *body)
{
    *body = (struct mgx_tf_body){.nodes = nodes, .function = function};
    for (int i = 0; i < nodes.count; i++) {
        struct mgx_slice name, op;
        TRY(mgx_tf_read_node_name(nodes.v[i], &name, &op, import->diag));
        body->switches |= mgx_slice_is(op, "Switch") || mgx_slice_is(op, "RefSwitch");
        TRY(add_place(import, body, name, i));
    }
    for (int i = 0; function && i < function->inputs.count; i++)
        TRY(add_place(import, body, mgx_tf_text_field(function->inputs.v[i], 1), nodes.count + i));
    return MGX_OK;
}

void mgx_tf_body_fini(struct mgx_tf_body *body)
{
    mgx_map_fini(&body->places);
    mgx_tf_frames_fini(body->frames);
}

// A scope's nodes count against the limit from the start.
static enum mgx_status count_nodes(struct mgx_tf_import *import, int64_t count)
{
    assert(count >= 0);
    import->node_count += count;
    if (import->node_count > import->options.limit_nodes)
        return mgx_fail(import->diag, MGX_LIMIT, "more than %lld nodes after expansion",
                        (long long)import->options.limit_nodes);
    return mgx_fold_check_time(&import->fold, import->diag);
}

enum mgx_status mgx_tf_graph_start(struct mgx_tf_graph *g)
{
    struct mgx_tf_import *import = g->import;
    g->depth = g->up ? g->up->depth + 1 : 1;
    if (g->depth > import->options.limit_depth)
        return mgx_fail(import->diag, MGX_LIMIT, "calls and bodies are nested deeper than %d",
                        import->options.limit_depth);
    TRY(count_nodes(import, g->body->nodes.count));
    g->states = MGX_NEW_ARRAY(&import->arena, struct mgx_tf_state, g->body->nodes.count);
    return g->states ? MGX_OK : mgx_fail_memory(import->diag);
}

// --- one node, its inputs at hand ---

static void blame_node(struct mgx_tf_graph *g, const struct mgx_tf_node_def *def)
{
    if (g->body->function)
        mgx_where(g->import->diag, "node \"%.*s\" (%.*s) of function \"%.*s\"",
                  MGX_SLICE(def->name), MGX_SLICE(def->op), MGX_SLICE(g->body->function->name));
    else
        mgx_where(g->import->diag, "node \"%.*s\" (%.*s)", MGX_SLICE(def->name),
                  MGX_SLICE(def->op));
}

// Which result of a node a reference names; in functions by the name of an output.
static int64_t result_of(const struct mgx_tf_state *s, const struct mgx_tf_reference *r)
{
    int64_t first = 0;
    const char *list = s->rule && s->rule->outputs && r->output.size ? s->rule->outputs : "";
    while (*list) {
        const size_t size = strcspn(list, ",");
        if (size == r->output.size && memcmp(list, r->output.text, size) == 0)
            return first + r->index;
        first++;
        list += size + (list[size] == ',');
    }
    return r->index;
}

// The value of a reference whose node is done; *state is NULL for an argument.
static enum mgx_status find_value(struct mgx_tf_graph *g, struct mgx_slice text,
                                  struct mgx_ins **out, const struct mgx_tf_state **state)
{
    const struct mgx_tf_reference r = mgx_tf_reference_of(text);
    const int64_t place = mgx_tf_place(g->body, r.name);
    *out = NULL;
    *state = NULL;
    if (place >= g->body->nodes.count) {
        *out = g->args[place - g->body->nodes.count];
        return MGX_OK;
    }
    if (place < 0)
        return mgx_fail(g->import->diag, MGX_INVALID, "\"%.*s\" is produced by no node",
                        MGX_SLICE(text));
    const struct mgx_tf_state *s = *state = &g->states[place];
    if (r.control || s->dead)
        return MGX_OK;
    const int64_t k = result_of(s, &r);
    if (k < 0 || k >= s->out_count || !s->out[k])
        return mgx_fail(g->import->diag, MGX_INVALID, "\"%.*s\" has no such result",
                        MGX_SLICE(text));
    *out = s->out[k];
    return MGX_OK;
}

// A variable of the first version of TensorFlow is its value to whoever takes no handles.
static enum mgx_status read_reference(const struct mgx_node *n, struct mgx_ins **value)
{
    const struct mgx_tf_handle *handle = *value ? mgx_tf_handle_of(n, *value) : NULL;
    const bool taken = n->tf_rule && n->tf_rule->takes & MGX_TF_HANDLES;
    if (!handle || handle->kind != MGX_TF_REFERENCE || taken)
        return MGX_OK;
    *value = handle->value;
    return *value
               ? MGX_OK
               : mgx_fail(n->diag, MGX_INVALID,
                          "variable \"%s\" has no value (freeze the graph, or read its SavedModel)",
                          handle->name);
}

// --- conditions ---

static bool is_merge(const struct mgx_tf_node_def *def)
{
    return mgx_slice_is(def->op, "Merge") || mgx_slice_is(def->op, "RefMerge");
}

static const struct mgx_tf_guard *deeper(const struct mgx_tf_guard *a, const struct mgx_tf_guard *b)
{
    const struct mgx_tf_guard *x = a, *y = b;
    while (x && y) {
        x = x->up;
        y = y->up;
    }
    return y ? b : a;
}

struct input { // of a node
    struct mgx_ins *value;
    bool dead;
    const struct mgx_tf_guard *guard; // under which it is there
};

// What is behind a Switch runs under its condition; where that is known, one side is dead.
static enum mgx_status find_input(struct mgx_tf_graph *g, struct mgx_slice text, struct input *out)
{
    const struct mgx_tf_state *from;
    *out = (struct input){0};
    TRY(find_value(g, text, &out->value, &from));
    if (!from)
        return MGX_OK;
    out->dead = from->dead;
    out->guard = from->guard;
    const struct mgx_tf_reference r = mgx_tf_reference_of(text);
    if (!from->condition || r.control)
        return MGX_OK;
    const bool side = result_of(from, &r) == 1;
    struct mgx_tf_guard *guard = MGX_NEW(&g->import->arena, struct mgx_tf_guard);
    struct mgx_node asking = {.in = &from->condition,
                              .in_count = 1,
                              .module = g->module,
                              .scratch = &g->import->scratch,
                              .diag = g->import->diag,
                              .fold = &g->import->fold};
    int64_t known;
    if (!guard)
        return mgx_fail_memory(g->import->diag);
    *guard = (struct mgx_tf_guard){from->condition, side, from->guard};
    out->guard = guard;
    if (mgx_build_constant_int(&asking, 0, &known))
        out->dead |= side != (known != 0);
    return g->import->diag->status;
}

// --- the node ---

// In old graphs a function is called by a node of its name.
static const struct mgx_tf_op *rule_of(const struct mgx_tf_import *import, struct mgx_slice op)
{
    static const struct mgx_slice call = {"PartitionedCall", 15};
    const struct mgx_tf_op *rule = mgx_tf_rule_find(op);
    return rule || !mgx_map_findn(&import->functions, op.text, op.size) ? rule
                                                                        : mgx_tf_rule_find(call);
}

// What of n comes from the node alone; texts go to the scratch arena.
static void describe_node(struct mgx_tf_graph *g, const struct mgx_tf_node_def *def,
                          struct mgx_node *n)
{
    struct mgx_tf_import *import = g->import;
    struct mgx_arena *scratch = &import->scratch;
    *n = (struct mgx_node){.name = mgx_arena_strndup(scratch, def->name.text, def->name.size),
                           .op_type = mgx_arena_strndup(scratch, def->op.text, def->op.size),
                           .domain = "",
                           .module = g->module,
                           .scratch = scratch,
                           .diag = import->diag,
                           .fold = &import->fold,
                           .wire = def,
                           .tf = g,
                           .tf_rule = rule_of(import, def->op)};
}

// Input i of the node as the next one of n, unless it is dead or a control input: those come last
// and have no value.
static enum mgx_status take_input(struct mgx_tf_graph *g, const struct mgx_tf_node_def *def, int i,
                                  struct mgx_tf_state *state, struct mgx_ins **in,
                                  struct mgx_node *n)
{
    struct input input;
    TRY(find_input(g, def->in.v[i], &input));
    TRY(read_reference(n, &input.value));
    state->dead |= input.dead && !is_merge(def);
    state->guard = deeper(state->guard, input.guard);
    if (!input.value || input.dead)
        return MGX_OK;
    if (!n->in_count)
        g->first_alive = i;
    g->guards[n->in_count] = input.guard;
    in[n->in_count++] = input.value;
    return MGX_OK;
}

static enum mgx_status make_node(struct mgx_tf_graph *g, const struct mgx_tf_node_def *def,
                                 struct mgx_tf_state *state, struct mgx_node *n)
{
    struct mgx_arena *scratch = &g->import->scratch;
    describe_node(g, def, n);
    struct mgx_ins **in = MGX_NEW_ARRAY(scratch, struct mgx_ins *, def->in.count);
    g->guards = MGX_NEW_ARRAY(scratch, const struct mgx_tf_guard *, def->in.count);
    if (!n->name || !n->op_type || !in || !g->guards)
        return mgx_fail_memory(n->diag);
    state->rule = n->tf_rule;
    for (int i = 0; i < def->in.count; i++)
        TRY(take_input(g, def, i, state, in, n));
    state->dead |= is_merge(def) && !n->in_count;
    n->in = in;
    return mgx_tf_results(n, n->tf_rule && n->tf_rule->results ? n->tf_rule->results : 1);
}

enum mgx_status mgx_tf_results(struct mgx_node *n, int64_t count)
{
    assert(count >= 0);
    enum { MANY = 1 << 17 }; // an attribute of a few bytes asks for them, so all nodes' together
    struct mgx_tf_import *import = n->tf->import;
    if (count < 0 || count > MANY)
        return mgx_fail(n->diag, MGX_LIMIT, "%lld results are not from 0 to %d", (long long)count,
                        MANY);
    if (count > 1 && (import->result_count += count) > MANY)
        return mgx_fail(n->diag, MGX_LIMIT, "nodes of several results have more than %d", MANY);
    struct mgx_ins **out = MGX_NEW_ARRAY(&import->arena, struct mgx_ins *, count);
    if (!out)
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < n->out_count && i < count; i++)
        out[i] = n->out[i];
    n->out = out;
    n->out_count = (int)count;
    return MGX_OK;
}

// --- operators that cannot be imported ---

static enum mgx_status poison_outputs(struct mgx_node *n)
{
    struct mgx_tf_import *import = n->tf->import;
    TRY(mgx_missing_poison(&import->missing, import->program, import->diag));
    enum { SOME = 64 };
    TRY(mgx_tf_results(n, SOME));
    for (int i = 0; i < n->out_count; i++)
        n->out[i] = import->missing.poison;
    return MGX_OK;
}

static enum mgx_status add_missing(struct mgx_node *n, const char *why)
{
    const struct mgx_tf_node_def *def = n->wire;
    const char *reason = mgx_arena_strdup(n->scratch, why);
    mgx_diag_clear(n->diag); // a rule's refusal becomes a row of the list
    if (!reason)
        return mgx_fail_memory(n->diag);
    TRY(mgx_missing_add(&n->tf->import->missing, n->op_type, reason, def->name, n->diag));
    return poison_outputs(n);
}

// An operator without a rule: an `unknown` instruction if the caller wants that.
static enum mgx_status import_unknown(struct mgx_node *n)
{
    n->out[0] = mgx_build_emit_n(n, &mgx_op_unknown, MGX_ATTRS(mgx_text("op", n->op_type)), n->in,
                                 n->in_count);
    return MGX_OK;
}

static enum mgx_status admit(struct mgx_node *n)
{
    const unsigned takes = n->tf_rule->takes;
    for (int i = 0; i < n->in_count; i++) {
        const enum mgx_type type = n->in[i]->shape.type;
        const bool handle = mgx_tf_handle_of(n, n->in[i]);
        if (handle && !(takes & MGX_TF_HANDLES))
            return mgx_node_invalid(n, "input %d is a variable or a list, not a tensor", i);
        if (!handle && type == MGX_STRING && !(takes & MGX_TF_TEXTS))
            return mgx_node_unsupported(n, "input %d is of strings", i);
        if (!handle && mgx_type_is_complex(type) && !(takes & MGX_TF_COMPLEX))
            return mgx_node_unsupported(n, "input %d is of complex numbers", i);
    }
    return MGX_OK;
}

static enum mgx_status apply_rule(struct mgx_node *n)
{
    struct mgx_tf_import *import = n->tf->import;
    if (mgx_missing_reaches(&import->missing, n))
        return poison_outputs(n);
    if (!n->tf_rule && import->options.skip_unknown_operators)
        return import_unknown(n);
    if (!n->tf_rule)
        return add_missing(n, "operator is not known");
    enum mgx_status status = admit(n);
    if (status == MGX_OK)
        status = n->tf_rule->import(n);
    return status == MGX_UNSUPPORTED ? add_missing(n, n->diag->text) : status;
}

static bool is_switch(const struct mgx_tf_node_def *def)
{
    return mgx_slice_is(def->op, "Switch") || mgx_slice_is(def->op, "RefSwitch");
}

static enum mgx_status import_node(struct mgx_tf_graph *g, int node,
                                   const struct mgx_tf_node_def *def)
{
    enum { CHECK_EVERY = 64 };
    struct mgx_tf_import *import = g->import;
    struct mgx_tf_state *state = &g->states[node];
    struct mgx_node n;
    TRY(make_node(g, def, state, &n));
    if (state->dead)
        return MGX_OK;
    TRY(apply_rule(&n));
    if (n.diag->status != MGX_OK)
        return n.diag->status; // an accessor recorded it
    TRY(mgx_program_status(import->program, n.diag));
    state->out = n.out;
    state->out_count = n.out_count;
    if (is_merge(def))
        state->guard = g->merged;
    if (is_switch(def) && n.in_count == 2)
        state->condition = n.in[1];
    if (import->scratch.failed || import->arena.failed)
        return mgx_fail_memory(import->diag);
    return node % CHECK_EVERY ? MGX_OK : mgx_fold_check_time(&import->fold, import->diag);
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

// The end of a loop, which is imported whole: its own input is inside.
static bool is_exit(const struct mgx_tf_node_def *def)
{
    return mgx_slice_is(def->op, "Exit") || mgx_slice_is(def->op, "RefExit");
}

static enum mgx_status find_needs(struct mgx_tf_graph *g, const struct mgx_tf_node_def *def,
                                  struct waiting *entry)
{
    struct mgx_names in = def->in;
    if (is_exit(def))
        TRY(mgx_tf_frame_needs(g, def->name, &in));
    int *needs = MGX_NEW_ARRAY(&g->import->scratch, int, in.count);
    if (!needs)
        return mgx_fail_memory(g->import->diag);
    for (int i = 0; i < in.count; i++) {
        const struct mgx_tf_reference r = mgx_tf_reference_of(in.v[i]);
        const int64_t place = mgx_tf_place(g->body, r.name);
        if (place < 0 && !r.control)
            return mgx_fail(g->import->diag, MGX_INVALID, "input \"%.*s\" is produced by no node",
                            MGX_SLICE(in.v[i]));
        if (place < 0 || place >= g->body->nodes.count || g->states[place].phase == DONE)
            continue;
        needs[entry->count++] = (int)place;
    }
    entry->needs = needs;
    return MGX_OK;
}

// Control inputs say nothing of values; only a walk for its effects follows them.
// What only checks or prints needs nothing but those.
static void drop_inputs(const struct mgx_tf_graph *g, struct mgx_tf_node_def *def)
{
    const struct mgx_tf_op *rule = mgx_tf_rule_find(def->op);
    while (rule && rule->no_inputs && def->in.count && !mgx_tf_reference_of(def->in.v[0]).control) {
        def->in.v++;
        def->in.count--;
    }
    while (!g->effects && !g->body->switches && def->in.count &&
           def->in.v[def->in.count - 1].size && def->in.v[def->in.count - 1].text[0] == '^')
        def->in.count--;
}

static enum mgx_status import_or_wait(struct mgx_tf_graph *g, int node, struct stack *stack)
{
    struct mgx_tf_import *import = g->import;
    struct mgx_arena *scratch = &import->scratch;
    struct waiting entry = {.node = node, .mark = mgx_arena_mark(scratch)};
    struct mgx_tf_node_def def;
    TRY(mgx_tf_read_node(g->body->nodes.v[node], scratch, &def, import->diag));
    drop_inputs(g, &def);
    enum mgx_status status = find_needs(g, &def, &entry);
    if (is_exit(&def))
        def.in.count = 0;
    if (status == MGX_OK && entry.count) { // its scratch stays until it is done
        if (!MGX_PUSH(stack, &import->arena, entry))
            return mgx_fail_memory(import->diag);
        g->states[node].phase = WAITING;
        return MGX_OK;
    }
    if (status == MGX_OK)
        status = import_node(g, node, &def);
    if (status != MGX_OK) {
        blame_node(g, &def);
        return status;
    }
    g->states[node].phase = DONE;
    mgx_arena_rewind(scratch, entry.mark);
    return MGX_OK;
}

static enum mgx_status fail_cycle(struct mgx_tf_graph *g, int node)
{
    struct mgx_tf_node_def def;
    TRY(mgx_tf_read_node(g->body->nodes.v[node], &g->import->scratch, &def, g->import->diag));
    mgx_fail(g->import->diag, MGX_INVALID, "the graph has a cycle: this node needs its own result");
    blame_node(g, &def);
    return MGX_INVALID;
}

static enum mgx_status import_with_needs(struct mgx_tf_graph *g, int node)
{
    struct stack stack = {0};
    TRY(import_or_wait(g, node, &stack));
    while (stack.count) {
        struct waiting *top = &stack.v[stack.count - 1];
        while (top->next < top->count && g->states[top->needs[top->next]].phase == DONE)
            top->next++;
        if (top->next < top->count) {
            const int need = top->needs[top->next];
            if (g->states[need].phase == WAITING)
                return fail_cycle(g, need);
            TRY(import_or_wait(g, need, &stack));
            continue;
        }
        const int ready = top->node;
        mgx_arena_rewind(&g->import->scratch, top->mark);
        stack.count--;
        TRY(import_or_wait(g, ready, &stack));
        if (g->states[ready].phase != DONE)
            return mgx_fail(g->import->diag, MGX_IO, "the file changed while it was read");
    }
    return MGX_OK;
}

enum mgx_status mgx_tf_graph_bind(struct mgx_tf_graph *g, int node, struct mgx_ins *value)
{
    assert(node >= 0);
    enum { BOTH = 2 };
    struct mgx_tf_state *state = &g->states[node];
    state->out = MGX_NEW_ARRAY(&g->import->arena, struct mgx_ins *, BOTH);
    if (!state->out)
        return mgx_fail_memory(g->import->diag);
    state->out[0] = state->out[1] = value;
    state->out_count = BOTH;
    state->phase = DONE;
    return MGX_OK;
}

enum mgx_status mgx_tf_graph_value(struct mgx_tf_graph *g, struct mgx_slice reference,
                                   struct mgx_ins **out)
{
    assert(out && (reference.text || !reference.size));
    const struct mgx_tf_reference r = mgx_tf_reference_of(reference);
    const int64_t place = mgx_tf_place(g->body, r.name);
    const struct mgx_tf_state *state;
    TRY(mgx_name_check(reference, "the name of a result", g->import->diag));
    if (place >= 0 && place < g->body->nodes.count) {
        const uint8_t phase = g->states[place].phase;
        if (phase == WAITING)
            return fail_cycle(g, (int)place);
        if (phase == NEW)
            TRY(import_with_needs(g, (int)place));
    }
    return find_value(g, reference, out, &state);
}

enum mgx_status mgx_tf_graph_effect(struct mgx_tf_graph *g, struct mgx_slice name, const char *what)
{
    struct mgx_ins *ignored;
    TRY(mgx_name_check(name, what, g->import->diag));
    char *reference = mgx_arena_alloc(&g->import->arena, name.size + 1);
    if (!reference)
        return mgx_fail_memory(g->import->diag);
    reference[0] = '^';
    if (name.size)
        memcpy(reference + 1, name.text, name.size);
    return mgx_tf_graph_value(g, (struct mgx_slice){reference, name.size + 1}, &ignored);
}

// --- handles ---

struct mgx_ins *mgx_tf_new_handle(struct mgx_node *n, struct mgx_tf_handle handle)
{
    struct mgx_tf_import *import = n->tf->import;
    struct mgx_tf_handle *kept = mgx_arena_memdup(&import->arena, &handle, sizeof handle);
    struct mgx_ins *ins = mgx_build_undefined(n);
    if (ins && (!kept || !mgx_map_put_pointer(&import->handles, ins, kept)))
        mgx_fail_memory(n->diag);
    return ins;
}

struct mgx_tf_handle *mgx_tf_handle_of(const struct mgx_node *n, const struct mgx_ins *ins)
{
    return mgx_map_find_pointer(&n->tf->import->handles, ins);
}
