// SPDX-License-Identifier: MIT
// Which nodes of a graph the provider takes, and in which groups.
//
//   judged     the engine imports the graph and says of each node whether it takes it
//   crossing   a value that no run can hand over (a sequence, an optional) binds those that make
//              and read it together: all in one group, or none
//   levels     how many refused nodes lie one behind the other on the way to a node; nodes of one
//              level are one group. A way from a group through a refused node leads to a higher
//              level, so no group depends on itself through others.
//
// The bodies of a node that is taken are taken with it: asked for one by one, before it, they give
// nothing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

struct value {    // of the graph that is asked for
    size_t maker; // NOBODY: from around
    bool constant;
    bool crosses;
    bool leaves; // a result of the graph
};

struct reading {
    size_t node, value;
    bool by_body; // not an operand
};

struct partition {
    const struct host *host;
    bool on_card;
    const OrtNode **nodes;
    size_t count;
    const char **why; // per node; NULL: taken. Borrowed
    size_t *level;
    struct names names; // of values
    struct value *values;
    size_t value_count, value_room;
    struct reading *readings;
    size_t reading_count, reading_room;
};

static const size_t NOBODY = (size_t)-1;
static const char no_way[] = "its operands or results are of a kind that the host can hand to "
                             "nobody (sequences, optionals; strings and numbers of less than 8 "
                             "bits on a card), "
                             "and not all that make and read them are taken";

static const char forgotten[] =
    "a body of it reads a value from around that no operand is, which ONNX Runtime hands to its "
    "provider from version 1.27 on";

static bool room_for(void **list, size_t *room, size_t count, size_t size)
{
    if (count < *room)
        return true;
    const size_t more = *room ? 2 * *room : 64;
    void *grown = realloc(*list, more * size);
    if (grown) {
        *list = grown;
        *room = more;
    }
    return grown;
}

static void partition_fini(struct partition *p)
{
    free(p->nodes);
    free(p->why);
    free(p->level);
    free(p->values);
    free(p->readings);
    names_fini(&p->names);
}

// --- values ---

// A card's memory has no strings, and no bytes that several numbers share.
static bool is_hosts_alone(const struct value_type *type)
{
    enum { STRING = 8 };
    const int element = host_own_element(type->type.element);
    return element == STRING || narrow_bits(element) != 0;
}

static OrtStatus *find_value(struct partition *p, const OrtValueInfo *info, size_t *out)
{
    const char *name = value_name(p->host, info);
    if (names_find(&p->names, name, out))
        return NULL;
    struct value_type type;
    HOST_TRY(value_type_read(p->host, info, &type));
    if (!room_for((void **)&p->values, &p->value_room, p->value_count, sizeof *p->values) ||
        !names_put(&p->names, name, p->value_count))
        return host_no_memory(p->host);
    const bool constant = value_is_constant(p->host, info); // handed over once, whatever it is
    const bool crosses = type.crosses && !(p->on_card && is_hosts_alone(&type));
    *out = p->value_count;
    p->values[p->value_count++] =
        (struct value){.maker = NOBODY, .constant = constant, .crosses = crosses || constant};
    return NULL;
}

static OrtStatus *note_made(struct partition *p, size_t node)
{
    const OrtValueInfo **list;
    size_t count, value;
    HOST_TRY(list_Node_GetOutputs(p->host, p->nodes[node], &list, &count));
    OrtStatus *status = NULL;
    for (size_t i = 0; i < count && !status; i++) {
        if (!*value_name(p->host, list[i]))
            continue;
        status = find_value(p, list[i], &value);
        if (!status)
            p->values[value].maker = node;
    }
    free(list);
    return status;
}

static OrtStatus *note_list(struct partition *p, size_t node, const OrtValueInfo **list,
                            size_t count, bool by_body)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < count && !status; i++) {
        size_t value = 0;
        if (!*value_name(p->host, list[i]))
            continue;
        status = find_value(p, list[i], &value);
        if (!status && !room_for((void **)&p->readings, &p->reading_room, p->reading_count,
                                 sizeof *p->readings))
            status = host_no_memory(p->host);
        if (!status)
            p->readings[p->reading_count++] = (struct reading){node, value, by_body};
    }
    free(list);
    return status;
}

static OrtStatus *note_read(struct partition *p, size_t node)
{
    const OrtValueInfo **list;
    size_t count;
    HOST_TRY(list_Node_GetInputs(p->host, p->nodes[node], &list, &count));
    HOST_TRY(note_list(p, node, list, count, false));
    HOST_TRY(list_Node_GetImplicitInputs(p->host, p->nodes[node], &list, &count));
    return note_list(p, node, list, count, true);
}

static OrtStatus *note_leaving(struct partition *p, const OrtGraph *graph)
{
    const OrtValueInfo **list;
    size_t count;
    HOST_TRY(list_Graph_GetOutputs(p->host, graph, &list, &count));
    OrtStatus *status = NULL;
    for (size_t i = 0; i < count && !status; i++) {
        size_t value = 0;
        status = find_value(p, list[i], &value);
        if (!status)
            p->values[value].leaves = true;
    }
    free(list);
    return status;
}

static OrtStatus *read_graph(struct partition *p, const OrtGraph *graph)
{
    OrtStatus *status = NULL;
    HOST_TRY(list_Graph_GetNodes(p->host, graph, &p->nodes, &p->count));
    p->why = calloc(p->count + 1, sizeof *p->why);
    p->level = calloc(p->count + 1, sizeof *p->level);
    if (!p->why || !p->level)
        return host_no_memory(p->host);
    for (size_t i = 0; i < p->count && !status; i++)
        status = note_made(p, i);
    for (size_t i = 0; i < p->count && !status; i++)
        status = note_read(p, i);
    return status ? status : note_leaving(p, graph);
}

// --- groups ---

// The node that makes what is read; NOBODY where it comes from around.
static size_t maker_of(const struct partition *p, const struct reading *r)
{
    return p->values[r->value].maker;
}

// Levels only grow, and no further than there are nodes: the graph has no cycle.
static void find_levels(struct partition *p)
{
    memset(p->level, 0, (p->count + 1) * sizeof *p->level);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < p->reading_count; i++) {
            const struct reading *r = &p->readings[i];
            const size_t maker = maker_of(p, r);
            if (maker == NOBODY)
                continue;
            const size_t least = p->level[maker] + (p->why[maker] && !p->why[r->node] ? 1 : 0);
            if (p->level[r->node] < least) {
                p->level[r->node] = least;
                changed = true;
            }
        }
    }
}

static bool in_one_group(const struct partition *p, size_t a, size_t b)
{
    return !p->why[a] && !p->why[b] && p->level[a] == p->level[b];
}

static bool refuse(struct partition *p, size_t node, const char *why)
{
    if (node == NOBODY || p->why[node])
        return false;
    p->why[node] = why;
    return true;
}

// Is it an operand of some node of the group?
static bool is_operand(const struct partition *p, size_t value, size_t group_of)
{
    for (size_t i = 0; i < p->reading_count; i++)
        if (p->readings[i].value == value && !p->readings[i].by_body &&
            in_one_group(p, p->readings[i].node, group_of))
            return true;
    return false;
}

// Before 1.27 the host forgets what only bodies of a group read from around it.
static bool is_forgotten(const struct partition *p, const struct reading *r)
{
    enum { REMEMBERS = 27 };
    return r->by_body && p->host->version < REMEMBERS && !p->values[r->value].constant &&
           !p->why[r->node] && !is_operand(p, r->value, r->node);
}

// Refuses those whose values would have to cross and cannot. True if there were any.
static bool refuse_crossing(struct partition *p)
{
    bool changed = false;
    for (size_t i = 0; i < p->value_count; i++)
        if (!p->values[i].crosses && p->values[i].leaves)
            changed |= refuse(p, p->values[i].maker, no_way);
    for (size_t i = 0; i < p->reading_count; i++) {
        const struct reading *r = &p->readings[i];
        const size_t maker = maker_of(p, r);
        if (maker != NOBODY && in_one_group(p, maker, r->node))
            continue;
        if (is_forgotten(p, r))
            changed |= refuse(p, r->node, forgotten);
        if (p->values[r->value].crosses)
            continue;
        changed |= refuse(p, r->node, no_way);
        changed |= refuse(p, maker, no_way);
    }
    return changed;
}

static void find_groups(struct partition *p)
{
    do
        find_levels(p);
    while (refuse_crossing(p));
}

static OrtStatus *add_group(const struct partition *p, size_t level, OrtEpGraphSupportInfo *info,
                            const OrtNode **room)
{
    const OrtNodeFusionOptions options = {.ort_version_supported = ORT_API_OLDEST,
                                          .drop_constant_initializers = true};
    size_t count = 0;
    for (size_t i = 0; i < p->count; i++)
        if (!p->why[i] && p->level[i] == level)
            room[count++] = p->nodes[i];
    return count ? p->host->EpGraphSupportInfo_AddNodesToFuse(info, room, count, &options) : NULL;
}

// Programs that were kept stand for themselves, whatever is around them.
static OrtStatus *add_kept(const struct provider *ep, struct partition *p,
                           OrtEpGraphSupportInfo *info)
{
    static const char apart[] = "it is a compiled program and goes by itself";
    const OrtNodeFusionOptions options = {.ort_version_supported = ORT_API_OLDEST};
    OrtStatus *status = NULL;
    for (size_t i = 0; i < p->count && !status; i++)
        if (context_is_own(ep, p->nodes[i])) {
            p->why[i] = apart;
            status = p->host->EpGraphSupportInfo_AddNodesToFuse(info, &p->nodes[i], 1, &options);
        }
    return status;
}

static OrtStatus *add_groups(const struct partition *p, OrtEpGraphSupportInfo *info)
{
    const OrtNode **room = calloc(p->count + 1, sizeof *room);
    size_t highest = 0;
    OrtStatus *status = room ? NULL : host_no_memory(p->host);
    for (size_t i = 0; i < p->count; i++)
        highest = p->level[i] > highest ? p->level[i] : highest;
    for (size_t level = 0; level <= highest && !status; level++)
        status = add_group(p, level, info, room);
    free(room);
    return status;
}

// --- what is said of it ---

static const char *operator_of(const struct host *h, const OrtNode *node, const char **name)
{
    const char *op = NULL;
    *name = NULL;
    OrtStatus *status = h->Node_GetOperatorType(node, &op);
    if (!status)
        status = h->Node_GetName(node, name);
    if (status)
        h->ReleaseStatus(status);
    return op ? op : "";
}

static void say(const struct provider *ep, const struct partition *p)
{
    enum { SHOWN = 10 };
    size_t refused = 0;
    for (size_t i = 0; i < p->count; i++) {
        const char *name, *op = operator_of(p->host, p->nodes[i], &name);
        if (p->why[i] && !context_is_own(ep, p->nodes[i]) && refused++ < SHOWN)
            host_log(p->host, ep->logger, ORT_LOG_WARNING, "%s does not take node \"%s\" (%s): %s",
                     ep->name, name ? name : "", op, p->why[i]);
    }
    host_log(p->host, ep->logger, refused > SHOWN ? ORT_LOG_WARNING : ORT_LOG_INFO,
             "%s takes %zu of %zu nodes", ep->name, p->count - refused, p->count);
}

// --- judgement ---

static OrtStatus *judge(const struct host *h, migraphx_onnx_graph_t graph, const char **why,
                        size_t count)
{
    migraphx_onnx_options_t options = NULL;
    migraphx_status status = graph_options(&options);
    if (status == migraphx_status_success)
        status = migraphx_onnx_graph_judge(graph, options);
    for (size_t i = 0; i < count && status == migraphx_status_success; i++)
        status = migraphx_onnx_graph_verdict(&why[i], graph, i);
    migraphx_onnx_options_destroy(options);
    return status == migraphx_status_success ? NULL : host_pass_on(h, "judging a graph");
}

// A failure is a no: whatever it is, it says so when the node's own graph is asked for.
static bool takes_node(const struct provider *ep, const OrtGraph *body, const OrtNode *node)
{
    const struct host *h = ep->host;
    migraphx_onnx_graph_t graph = NULL;
    const char *why = NULL;
    OrtStatus *status = graph_hand_over_node(h, body, node, &graph);
    if (!status)
        status = judge(h, graph, &why, 1);
    if (status || why)
        host_log(h, ep->logger, ORT_LOG_INFO, "bodies are asked for by themselves: %s",
                 status ? h->GetErrorMessage(status) : why);
    if (status)
        h->ReleaseStatus(status);
    const bool takes = !status && !why;
    migraphx_onnx_graph_destroy(graph);
    return takes;
}

// A graph that cannot be judged as a whole is the host's own.
static void refuse_all(const struct provider *ep, struct partition *p, OrtStatus *status)
{
    host_log(p->host, ep->logger, ORT_LOG_WARNING, "%s takes nothing of a graph: %s", ep->name,
             p->host->GetErrorMessage(status));
    p->host->ReleaseStatus(status);
    for (size_t i = 0; i < p->count; i++)
        p->why[i] = "its graph was not taken";
}

static OrtStatus *decide(struct provider *ep, const OrtGraph *graph, struct partition *p,
                         OrtEpGraphSupportInfo *info)
{
    migraphx_onnx_graph_t handed = NULL;
    HOST_TRY(read_graph(p, graph));
    OrtStatus *status = graph_hand_over(p->host, graph, NULL, 0, false, NULL, &handed);
    if (!status)
        status = judge(p->host, handed, p->why, p->count);
    if (status)
        refuse_all(ep, p, status);
    status = add_kept(ep, p, info);
    if (!status) {
        find_groups(p);
        say(ep, p);
        status = add_groups(p, info);
    }
    migraphx_onnx_graph_destroy(handed);
    return status;
}

OrtStatus *provider_capability(OrtEp *base, const OrtGraph *graph, OrtEpGraphSupportInfo *info)
{
    struct provider *ep = (struct provider *)base;
    const OrtNode *around = NULL;
    struct partition p = {.host = ep->host, .on_card = ep->card != NULL};
    HOST_TRY(ep->host->Graph_GetParentNode(graph, &around));
    if (around && takes_node(ep, graph, around))
        return NULL;
    OrtStatus *status = decide(ep, graph, &p, info);
    partition_fini(&p);
    return status;
}
