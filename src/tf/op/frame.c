// SPDX-License-Identifier: MIT
// Control flow of the first version of TensorFlow: nodes that hand values on or let them die.
//
// A loop is a frame: values enter (Enter), meet what the last round made of them (Merge of Enter
// and NextIteration), go on or leave by a test (Switch by LoopCond), and leave (Exit). The whole
// frame is imported when the first of its values is asked for at an Exit, as the functional loop it
// stands for:
//
//     values = Enter.. ;  while (LoopCond(Merge.. = values))  values = NextIteration(Switch.. = values)
//
// Body and test are scopes of their own over the same nodes, in which Merge, Switch and Enter are
// already done.
//
// A condition is a Switch without a frame: what hangs on its two results is imported both, and
// Merge chooses between the values by the condition; where that is a constant, one side is dead.
// Cost: one pass over the nodes of a graph that has frames, once.
#include <string.h>

#include "base/array.h"
#include "base/size.h"
#include "tf/loop.h"

// --- frames of a graph ---

enum kind { OTHER, ENTER, MERGE, SWITCH, NEXT, EXIT, TEST };

struct frame_value {
    int enter, merge, swap, next; // nodes; swap is the Switch, -1 until it is found
};

struct frame_exit {
    int node, value;
};

struct frame {
    struct mgx_slice name;
    int test;              // LoopCond, -1 until it is found
    MGX_ARRAY(int) enters; // of the invariants too
    MGX_ARRAY(struct frame_value) values;
    MGX_ARRAY(struct frame_exit) exits;
};

struct mgx_tf_frames {
    struct mgx_map by_name; // struct frame *
    uint8_t *kinds;         // per node
    struct frame **of;      // per Merge, Switch and Exit of a loop
    int *value;             // ... which of the frame's values; of an Enter, which Enter
};

static uint8_t kind_of(struct mgx_slice op)
{
    static const struct {
        const char *name;
        uint8_t kind;
    } rows[] = {{"Enter", ENTER},    {"RefEnter", ENTER},       {"Merge", MERGE},
                {"RefMerge", MERGE}, {"Switch", SWITCH},        {"RefSwitch", SWITCH},
                {"Exit", EXIT},      {"RefExit", EXIT},         {"NextIteration", NEXT},
                {"LoopCond", TEST},  {"RefNextIteration", NEXT}};
    for (size_t i = 0; i < MGX_COUNT(rows); i++)
        if (mgx_slice_is(op, rows[i].name))
            return rows[i].kind;
    return OTHER;
}

// One pass over the nodes of a kind: `see` gets each.
struct pass {
    struct mgx_tf_import *import;
    const struct mgx_tf_body *body;
    struct mgx_tf_frames *f;
};

static enum mgx_status each(const struct pass *p, int kind,
                            enum mgx_status (*see)(const struct pass *p, int node,
                                                   const struct mgx_tf_node_def *def))
{
    struct mgx_arena *scratch = &p->import->scratch;
    for (int i = 0; i < p->body->nodes.count; i++) {
        if (kind >= 0 && p->f->kinds[i] != kind)
            continue;
        const struct mgx_arena_mark mark = mgx_arena_mark(scratch);
        struct mgx_tf_node_def def;
        TRY(mgx_tf_read_node(p->body->nodes.v[i], scratch, &def, p->import->diag));
        TRY(see(p, i, &def));
        mgx_arena_rewind(scratch, mark);
    }
    return MGX_OK;
}

// The node behind an input, -1 if it is none of this graph.
static int node_at(const struct pass *p, const struct mgx_tf_node_def *def, int i)
{
    if (i >= def->in.count)
        return -1;
    const int64_t place = mgx_tf_place(p->body, mgx_tf_reference_of(def->in.v[i]).name);
    return place >= 0 && place < p->body->nodes.count ? (int)place : -1;
}

static int kind_at(const struct pass *p, const struct mgx_tf_node_def *def, int i)
{
    const int node = node_at(p, def, i);
    return node < 0 ? OTHER : p->f->kinds[node];
}

static enum mgx_status see_kind(const struct pass *p, int node, const struct mgx_tf_node_def *def)
{
    p->f->kinds[node] = kind_of(def->op);
    return MGX_OK;
}

static struct frame *need_frame(const struct pass *p, struct mgx_slice name)
{
    struct frame *frame = mgx_map_findn(&p->f->by_name, name.text, name.size);
    if (frame)
        return frame;
    frame = MGX_NEW(&p->import->arena, struct frame);
    if (!frame || !mgx_map_putn(&p->f->by_name, name.text, name.size, frame)) {
        mgx_fail_memory(p->import->diag);
        return NULL;
    }
    frame->name = name;
    frame->test = -1;
    return frame;
}

static enum mgx_status see_enter(const struct pass *p, int node, const struct mgx_tf_node_def *def)
{
    static const struct mgx_slice key = {"frame_name", 10};
    struct mgx_wire w;
    struct mgx_tf_attribute a = {0};
    TRY(mgx_tf_find_entry(&def->attributes, key, &w, p->import->diag));
    if (w.p)
        TRY(mgx_tf_read_attribute(w, &a, p->import->diag));
    if (a.kind != MGX_TF_TEXT)
        return mgx_fail(p->import->diag, MGX_INVALID, "node \"%.*s\" enters no frame",
                        MGX_SLICE(def->name));
    TRY(mgx_name_check((struct mgx_slice){(const char *)a.body.p, (size_t)(a.body.end - a.body.p)},
                       "the name of a frame", p->import->diag));
    struct frame *frame =
        need_frame(p, (struct mgx_slice){(const char *)a.body.p, (size_t)(a.body.end - a.body.p)});
    if (!frame || !MGX_PUSH(&frame->enters, &p->import->arena, node))
        return mgx_fail_memory(p->import->diag);
    p->f->of[node] = frame;
    p->f->value[node] = (int)frame->enters.count - 1;
    return MGX_OK;
}

// A Merge of an Enter and a NextIteration is a value of the Enter's frame.
static enum mgx_status see_merge(const struct pass *p, int node, const struct mgx_tf_node_def *def)
{
    struct frame_value v = {.enter = -1, .merge = node, .swap = -1, .next = -1};
    for (int i = 0; i < 2; i++) {
        if (kind_at(p, def, i) == ENTER)
            v.enter = node_at(p, def, i);
        else if (kind_at(p, def, i) == NEXT)
            v.next = node_at(p, def, i);
    }
    if (v.enter < 0 || v.next < 0)
        return MGX_OK; // the end of a condition
    struct frame *frame = p->f->of[node] = p->f->of[v.enter];
    p->f->value[node] = (int)frame->values.count;
    return MGX_PUSH(&frame->values, &p->import->arena, v) ? MGX_OK
                                                          : mgx_fail_memory(p->import->diag);
}

static enum mgx_status see_switch(const struct pass *p, int node, const struct mgx_tf_node_def *def)
{
    const int merge = node_at(p, def, 0);
    if (kind_at(p, def, 0) != MERGE || !p->f->of[merge] || kind_at(p, def, 1) != TEST)
        return MGX_OK; // of a condition
    struct frame *frame = p->f->of[node] = p->f->of[merge];
    p->f->value[node] = p->f->value[merge];
    frame->values.v[p->f->value[merge]].swap = node;
    frame->test = node_at(p, def, 1);
    return MGX_OK;
}

static enum mgx_status see_exit(const struct pass *p, int node, const struct mgx_tf_node_def *def)
{
    const int swap = node_at(p, def, 0);
    if (kind_at(p, def, 0) != SWITCH || !p->f->of[swap])
        return mgx_fail(p->import->diag, MGX_INVALID, "node \"%.*s\" leaves no frame",
                        MGX_SLICE(def->name));
    struct frame *frame = p->f->of[node] = p->f->of[swap];
    p->f->value[node] = p->f->value[swap];
    const struct frame_exit exit = {node, p->f->value[swap]};
    return MGX_PUSH(&frame->exits, &p->import->arena, exit) ? MGX_OK
                                                            : mgx_fail_memory(p->import->diag);
}

// Made once per graph, when the first Exit is met. The table of names goes with the body.
static enum mgx_status need_frames(struct mgx_tf_import *import, struct mgx_tf_body *body)
{
    if (body->frames)
        return MGX_OK;
    const int count = body->nodes.count;
    struct mgx_tf_frames *f = MGX_NEW(&import->arena, struct mgx_tf_frames);
    if (!f)
        return mgx_fail_memory(import->diag);
    body->frames = f;
    f->kinds = MGX_NEW_ARRAY(&import->arena, uint8_t, count);
    f->of = MGX_NEW_ARRAY(&import->arena, struct frame *, count);
    f->value = MGX_NEW_ARRAY(&import->arena, int, count);
    if (!f->kinds || !f->of || !f->value)
        return mgx_fail_memory(import->diag);
    const struct pass p = {import, body, f};
    TRY(each(&p, -1, see_kind));
    TRY(each(&p, ENTER, see_enter));
    TRY(each(&p, MERGE, see_merge));
    TRY(each(&p, SWITCH, see_switch));
    return each(&p, EXIT, see_exit);
}

void mgx_tf_frames_fini(struct mgx_tf_frames *f)
{
    if (f)
        mgx_map_fini(&f->by_name);
}

// --- one frame as a loop ---

// The input of a node, as the file has it.
static enum mgx_status input_of(const struct mgx_tf_graph *g, int node, struct mgx_slice *out)
{
    struct mgx_tf_import *import = g->import;
    struct mgx_tf_node_def def;
    TRY(mgx_tf_read_node(g->body->nodes.v[node], &import->scratch, &def, import->diag));
    if (!def.in.count)
        return mgx_fail(import->diag, MGX_INVALID, "node \"%.*s\" has no input",
                        MGX_SLICE(def.name));
    *out = def.in.v[0];
    return MGX_OK;
}

static enum mgx_status frame_of(struct mgx_tf_graph *g, struct mgx_slice exit, struct frame **out)
{
    TRY(need_frames(g->import, g->body));
    const int64_t place = mgx_tf_place(g->body, exit);
    *out = place >= 0 && place < g->body->nodes.count ? g->body->frames->of[place] : NULL;
    if (!*out)
        return mgx_fail(g->import->diag, MGX_INVALID, "the node leaves no frame");
    bool whole = (*out)->test >= 0;
    for (int64_t i = 0; i < (*out)->values.count; i++)
        whole &= (*out)->values.v[i].swap >= 0;
    if (whole)
        return MGX_OK;
    return mgx_fail(g->import->diag, MGX_UNSUPPORTED, "frame \"%.*s\" is no loop with a test",
                    MGX_SLICE((*out)->name));
}

enum mgx_status mgx_tf_frame_needs(struct mgx_tf_graph *g, struct mgx_slice exit,
                                   struct mgx_names *out)
{
    struct frame *frame;
    TRY(frame_of(g, exit, &frame));
    struct mgx_slice *list =
        MGX_NEW_ARRAY(&g->import->scratch, struct mgx_slice, frame->enters.count);
    if (!list)
        return mgx_fail_memory(g->import->diag);
    for (int64_t i = 0; i < frame->enters.count; i++)
        TRY(input_of(g, frame->enters.v[i], &list[i]));
    *out = (struct mgx_names){list, (int)frame->enters.count};
    return MGX_OK;
}

struct context {
    struct frame *frame;
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
    TRY(input_of(s, node, &reference));
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
static enum mgx_status is_fixed(const struct mgx_tf_graph *g, const struct frame_value *v,
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
    struct frame *frame;
    struct mgx_names entering;
    TRY(frame_of(g, def->name, &frame));
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
