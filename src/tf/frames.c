// SPDX-License-Identifier: MIT
// Finding the frames of a graph; see frames.h. Nodes are read kind by kind, each kind when what it
// hangs on is known: Enter, Merge, Switch, Exit.
#include <assert.h>

#include "tf/frames.h"

#include "base/size.h"

enum kind { OTHER, ENTER, MERGE, SWITCH, NEXT, EXIT, TEST };

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

static struct mgx_tf_frame *need_frame(const struct pass *p, struct mgx_slice name)
{
    struct mgx_tf_frame *frame = mgx_map_findn(&p->f->by_name, name.text, name.size);
    if (frame)
        return frame;
    frame = MGX_NEW(&p->import->arena, struct mgx_tf_frame);
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
    struct mgx_tf_frame *frame =
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
    struct mgx_tf_frame_value v = {.enter = -1, .merge = node, .swap = -1, .next = -1};
    for (int i = 0; i < 2; i++) {
        if (kind_at(p, def, i) == ENTER)
            v.enter = node_at(p, def, i);
        else if (kind_at(p, def, i) == NEXT)
            v.next = node_at(p, def, i);
    }
    if (v.enter < 0 || v.next < 0)
        return MGX_OK; // the end of a condition
    struct mgx_tf_frame *frame = p->f->of[node] = p->f->of[v.enter];
    p->f->value[node] = (int)frame->values.count;
    return MGX_PUSH(&frame->values, &p->import->arena, v) ? MGX_OK
                                                          : mgx_fail_memory(p->import->diag);
}

static enum mgx_status see_switch(const struct pass *p, int node, const struct mgx_tf_node_def *def)
{
    const int merge = node_at(p, def, 0);
    if (kind_at(p, def, 0) != MERGE || !p->f->of[merge] || kind_at(p, def, 1) != TEST)
        return MGX_OK; // of a condition
    struct mgx_tf_frame *frame = p->f->of[node] = p->f->of[merge];
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
    struct mgx_tf_frame *frame = p->f->of[node] = p->f->of[swap];
    p->f->value[node] = p->f->value[swap];
    const struct mgx_tf_frame_exit exit = {node, p->f->value[swap]};
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
    f->of = MGX_NEW_ARRAY(&import->arena, struct mgx_tf_frame *, count);
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

enum mgx_status mgx_tf_first_input(const struct mgx_tf_graph *g, int node, struct mgx_slice *out)
{
    assert(node >= 0 && out);
    struct mgx_tf_import *import = g->import;
    struct mgx_tf_node_def def;
    TRY(mgx_tf_read_node(g->body->nodes.v[node], &import->scratch, &def, import->diag));
    if (!def.in.count)
        return mgx_fail(import->diag, MGX_INVALID, "node \"%.*s\" has no input",
                        MGX_SLICE(def.name));
    *out = def.in.v[0];
    return MGX_OK;
}

enum mgx_status mgx_tf_frame_of(struct mgx_tf_graph *g, struct mgx_slice exit,
                                struct mgx_tf_frame **out)
{
    assert(out && (exit.text || !exit.size));
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
    struct mgx_tf_frame *frame;
    TRY(mgx_tf_frame_of(g, exit, &frame));
    struct mgx_slice *list =
        MGX_NEW_ARRAY(&g->import->scratch, struct mgx_slice, frame->enters.count);
    if (!list)
        return mgx_fail_memory(g->import->diag);
    for (int64_t i = 0; i < frame->enters.count; i++)
        TRY(mgx_tf_first_input(g, frame->enters.v[i], &list[i]));
    *out = (struct mgx_names){list, (int)frame->enters.count};
    return MGX_OK;
}
