// SPDX-License-Identifier: MIT
// Control flow of the first version of TensorFlow: nodes that hand values on or let them die.
//
// A loop, which frames.h finds, is imported whole when the first of its values is asked for at an
// Exit, as the functional loop it stands for:
//
//     values = Enter.. ;  while (LoopCond(Merge.. = values))  values = NextIteration(Switch.. = values)
//
// Body and test are scopes of their own over the same nodes, in which Merge, Switch and Enter are
// already done.
//
// A condition is a Switch without a frame: what hangs on its two results is imported both, and
// Merge chooses between the values by the condition; where that is a constant, one side is dead.
#include <string.h>

#include "tf/frames.h"
#include "tf/loop.h"

// --- one frame as a loop ---

struct context {
    struct mgx_tf_frame *frame;
    struct mgx_ins **entered; // per Enter
};

// A scope over the frame's nodes in which the values are given.
static enum mgx_status enter_scope(struct mgx_tf_loop *l, struct mgx_module *m,
                                   struct mgx_ins *const *values, struct mgx_tf_graph *s)
{
    const struct context *c = l->context;
    struct mgx_tf_graph *g = l->n->tf;
    *s = (struct mgx_tf_graph){.import = g->import,
                               .up = g,
                               .module = m,
                               .body = g->body,
                               .args = g->args,
                               .arg_count = g->arg_count,
                               .call = g->call,
                               .effects = g->effects};
    TRY(mgx_tf_graph_start(s));
    for (int64_t i = 0; i < c->frame->enters.count; i++)
        TRY(mgx_tf_graph_bind(s, c->frame->enters.v[i], c->entered[i]));
    for (int i = 0; i < l->count; i++) {
        TRY(mgx_tf_graph_bind(s, c->frame->values.v[i].merge, values[i]));
        TRY(mgx_tf_graph_bind(s, c->frame->values.v[i].swap, values[i]));
    }
    return MGX_OK;
}

static enum mgx_status value_in(struct mgx_tf_graph *s, int node, struct mgx_ins **out)
{
    struct mgx_slice reference;
    TRY(mgx_tf_first_input(s, node, &reference));
    TRY(mgx_tf_graph_value(s, reference, out));
    return *out ? MGX_OK
                : mgx_fail(s->import->diag, MGX_INVALID, "\"%.*s\" is dead in its loop",
                           MGX_SLICE(reference));
}

static enum mgx_status frame_test(struct mgx_tf_loop *l, struct mgx_module *m,
                                  struct mgx_ins *const *values, struct mgx_ins **out)
{
    const struct context *c = l->context;
    struct mgx_tf_graph s;
    TRY(enter_scope(l, m, values, &s));
    return value_in(&s, c->frame->test, out);
}

static enum mgx_status frame_step(struct mgx_tf_loop *l, struct mgx_module *m,
                                  struct mgx_ins *const *values, struct mgx_ins **next)
{
    const struct context *c = l->context;
    struct mgx_tf_graph s;
    TRY(enter_scope(l, m, values, &s));
    for (int i = 0; i < l->count; i++)
        TRY(value_in(&s, c->frame->values.v[i].next, &next[i]));
    return MGX_OK;
}

// Does a value come from its own Switch to its NextIteration, through any number of Identity?
static enum mgx_status is_fixed(const struct mgx_tf_graph *g, const struct mgx_tf_frame_value *v,
                                bool *out)
{
    enum { CHAIN = 100 };
    struct mgx_tf_import *import = g->import;
    int64_t node = v->next;
    *out = false;
    for (int i = 0; i < CHAIN; i++) {
        struct mgx_tf_node_def def;
        TRY(mgx_tf_read_node(g->body->nodes.v[node], &import->scratch, &def, import->diag));
        if ((i && !mgx_slice_is(def.op, "Identity")) || !def.in.count)
            return MGX_OK;
        node = mgx_tf_place(g->body, mgx_tf_reference_of(def.in.v[0]).name);
        *out = node == v->swap;
        if (*out || node < 0 || node >= g->body->nodes.count)
            return MGX_OK;
    }
    return MGX_OK;
}

static enum mgx_status import_exit(struct mgx_node *n)
{
    struct mgx_tf_graph *g = n->tf;
    const struct mgx_tf_node_def *def = n->wire;
    struct mgx_tf_frame *frame;
    struct mgx_names entering;
    TRY(mgx_tf_frame_of(g, def->name, &frame));
    TRY(mgx_tf_frame_needs(g, def->name, &entering));
    const int64_t count = frame->values.count;
    struct context c = {frame, MGX_NEW_ARRAY(n->scratch, struct mgx_ins *, frame->enters.count)};
    struct mgx_tf_loop l = {.n = n,
                            .count = (int)count,
                            .values = MGX_NEW_ARRAY(&g->import->arena, struct mgx_ins *, count),
                            .fixed = MGX_NEW_ARRAY(n->scratch, bool, count),
                            .test = frame_test,
                            .step = frame_step,
                            .context = &c};
    if (!c.entered || !l.values || !l.fixed)
        return mgx_fail_memory(n->diag);
    for (int i = 0; i < entering.count; i++)
        TRY(mgx_tf_graph_value(g, entering.v[i], &c.entered[i]));
    for (int i = 0; i < l.count; i++) {
        l.values[i] = c.entered[g->body->frames->value[frame->values.v[i].enter]];
        if (!l.values[i])
            return mgx_node_invalid(n, "value %d enters the loop dead", i);
        TRY(is_fixed(g, &frame->values.v[i], &l.fixed[i]));
    }
    TRY(mgx_tf_loop_import(&l));
    for (int64_t i = 0; i < frame->exits.count; i++)
        TRY(mgx_tf_graph_bind(g, frame->exits.v[i].node, l.values[frame->exits.v[i].value]));
    n->out[0] = l.values[g->body->frames->value[mgx_tf_place(g->body, def->name)]];
    return MGX_OK;
}
#define ANY (MGX_TF_TEXTS | MGX_TF_HANDLES | MGX_TF_COMPLEX)
static const char alone[] = "the node stands in no loop with a test";

static enum mgx_status import_alone(struct mgx_node *n)
{
    return mgx_node_unsupported(n, "%s", alone);
}

const struct mgx_tf_op mgx_tf_enter = {.name = "Enter", .import = import_alone, .takes = ANY};
const struct mgx_tf_op mgx_tf_exit = {.name = "Exit", .import = import_exit, .takes = ANY};
const struct mgx_tf_op mgx_tf_next_iteration = {
    .name = "NextIteration", .import = import_alone, .takes = ANY};
const struct mgx_tf_op mgx_tf_ref_enter = {
    .name = "RefEnter", .import = import_alone, .takes = ANY};
const struct mgx_tf_op mgx_tf_ref_exit = {.name = "RefExit", .import = import_exit, .takes = ANY};

// --- conditions ---

static enum mgx_status import_switch(struct mgx_node *n)
{
    TRY(mgx_node_need(n, 2, 2));
    if (mgx_tf_handle_of(n, n->in[1]) || n->in[1]->shape.type != MGX_BOOL)
        return mgx_node_invalid(n, "the condition is not a bool");
    TRY(mgx_tf_results(n, 2));
    n->out[0] = n->out[1] = n->in[0];
    return MGX_OK;
}
const struct mgx_tf_op mgx_tf_switch = {
    .name = "Switch", .import = import_switch, .takes = ANY, .outputs = "output_false,output_true"};
const struct mgx_tf_op mgx_tf_ref_switch = {.name = "RefSwitch",
                                            .import = import_switch,
                                            .takes = ANY,
                                            .outputs = "output_false,output_true"};

// The condition by which two values exclude each other: both hang on it, on different sides.
static const struct mgx_tf_guard *dividing(const struct mgx_tf_guard *a,
                                           const struct mgx_tf_guard *b)
{
    for (; a; a = a->up)
        for (const struct mgx_tf_guard *other = b; other; other = other->up)
            if (a->condition == other->condition && a->side != other->side)
                return a;
    return NULL;
}

static enum mgx_status choose(struct mgx_node *n, const struct mgx_tf_guard *by)
{
    struct mgx_ins *const yes = n->in[by->side ? 0 : 1], *const no = n->in[by->side ? 1 : 0];
    n->out[0] = yes;
    n->out[1] = mgx_build_where(n, by->condition, mgx_build_scalar(n, MGX_INT32, by->side ? 0 : 1),
                                mgx_build_scalar(n, MGX_INT32, by->side ? 1 : 0));
    if (yes == no)
        return MGX_OK;
    if (mgx_tf_handle_of(n, yes) || mgx_tf_handle_of(n, no))
        return mgx_node_unsupported(n, "the sides of a condition give different variables");
    if (yes->shape.type != no->shape.type || !mgx_shape_same_lens(&yes->shape, &no->shape))
        return mgx_node_unsupported(n, "the sides of a condition give different shapes");
    n->out[0] = mgx_build_where(n, by->condition, yes, no);
    return MGX_OK;
}

static enum mgx_status import_merge(struct mgx_node *n)
{
    struct mgx_tf_graph *g = n->tf;
    TRY(mgx_tf_results(n, 2));
    g->merged = NULL;
    if (n->in_count == 1) { // the other side is dead
        n->out[0] = n->in[0];
        n->out[1] = mgx_build_scalar(n, MGX_INT32, g->first_alive);
        g->merged = g->guards[0] ? g->guards[0]->up : NULL;
        return MGX_OK;
    }
    const struct mgx_tf_guard *by = n->in_count == 2 ? dividing(g->guards[0], g->guards[1]) : NULL;
    if (!by)
        return mgx_node_unsupported(n, "%d values that no condition divides", n->in_count);
    g->merged = by->up;
    return choose(n, by);
}
const struct mgx_tf_op mgx_tf_merge = {
    .name = "Merge", .import = import_merge, .takes = ANY, .outputs = "output,value_index"};
const struct mgx_tf_op mgx_tf_ref_merge = {
    .name = "RefMerge", .import = import_merge, .takes = ANY, .outputs = "output,value_index"};
