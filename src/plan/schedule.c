// SPDX-License-Identifier: MIT
// The order of steps: what reads and writes what fixes a partial order; of the total orders that
// respect it, one is taken whose largest sum of live bytes is small.
//
//   given     the order of the program, which exporters often leave in layers
//   deep      from each sink back: of a step's inputs the one first whose making needs the most
//             room beyond what it leaves behind (Sethi and Ullman's rule)
//   greedy    of the steps that could come next, the one that lets most bytes go
//
// A root (a value with bytes of its own) lives from its first writer to its last reader. Writers of
// one root, the slices of a concat, stay in their order, and a reader follows every writer that
// came before it: so an edge to the last of them is enough.
//
// Holds: results do not depend on the order. The program's own order stays unless another lowers
// the peak. Cost: O(n log n) beside the greedy one, which stops after WORK looks.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "plan/build.h"

enum { WORK = 1 << 22 };

// Inputs of a step, and what it must follow, as ranges of one array.
struct graph {
    const struct mgx_build *build;
    const struct mgx_plan *plan; // of the build
    int steps, roots;
    int *out;                   // step -> root it writes, -1: none of the scratch block
    int *in_start;              // step -> first of its `in`
    int *in;                    // roots a step reads, each once
    int *before_start, *before; // steps a step must follow
    int *after_start, *after;   // and the other way round
    size_t *bytes;              // of a root
    int *readers;               // of a root
    struct mgx_arena arena;
};

static bool is_planned(const struct mgx_plan_value *root)
{
    return root->place == MGX_PLAN_SCRATCH && !root->dynamic;
}

// Roots are numbered in `first`, which means something only once the order is fixed.
static void number_roots(struct graph *g)
{
    g->roots = 0;
    for (int i = 0; i < g->build->all.count; i++)
        if (g->build->all.v[i]->root == g->build->all.v[i])
            g->build->all.v[i]->first = g->roots++;
}

static bool allocate(struct graph *g)
{
    const struct mgx_plan *plan = g->plan;
    int inputs = 0;
    for (int s = 0; s < plan->step_count; s++)
        inputs += plan->steps[s].in_count;
    struct mgx_arena *a = &g->arena;
    g->out = MGX_NEW_ARRAY(a, int, g->steps);
    g->in_start = MGX_NEW_ARRAY(a, int, g->steps + 1);
    g->in = MGX_NEW_ARRAY(a, int, inputs + 1);
    g->before_start = MGX_NEW_ARRAY(a, int, g->steps + 1);
    g->before = MGX_NEW_ARRAY(a, int, inputs + g->steps + 1);
    g->after_start = MGX_NEW_ARRAY(a, int, g->steps + 2);
    g->after = MGX_NEW_ARRAY(a, int, inputs + g->steps + 1);
    g->bytes = MGX_NEW_ARRAY(a, size_t, g->roots + 1);
    g->readers = MGX_NEW_ARRAY(a, int, g->roots + 1);
    return !a->failed;
}

// Adds `x` to the list that ends at list[*end], unless it is in its part from `begin` on. Steps
// read few roots; what reads many is a body with captures.
static void add_once(int *list, int begin, int *end, int x)
{
    for (int i = begin; i < *end; i++)
        if (list[i] == x)
            return;
    list[(*end)++] = x;
}

static void link_step(struct graph *g, int s, int *writer, int *in, int *before)
{
    const struct mgx_plan_step *step = &g->plan->steps[s];
    for (int i = 0; i < step->in_count; i++) {
        if (step->skip[i])
            continue;
        const struct mgx_plan_value *root = mgx_plan_root(step->in_value[i], NULL);
        if (writer[root->first] >= 0)
            add_once(g->before, g->before_start[s], before, writer[root->first]);
        if (is_planned(root))
            add_once(g->in, g->in_start[s], in, root->first);
    }
    const struct mgx_plan_value *root = mgx_plan_root(step->out_value, NULL);
    if (writer[root->first] >= 0)
        add_once(g->before, g->before_start[s], before, writer[root->first]);
    writer[root->first] = s;
    g->out[s] = -1;
    if (!is_planned(root))
        return;
    g->out[s] = root->first;
    g->bytes[root->first] = (size_t)mgx_shape_bytes(&root->shape);
}

static void turn_edges(struct graph *g)
{
    int *start = g->after_start;
    for (int i = 0; i < g->before_start[g->steps]; i++)
        start[g->before[i] + 2]++;
    for (int s = 0; s < g->steps; s++)
        start[s + 2] += start[s + 1];
    for (int s = 0; s < g->steps; s++)
        for (int i = g->before_start[s]; i < g->before_start[s + 1]; i++)
            g->after[start[g->before[i] + 1]++] = s;
}

static bool build_graph(struct graph *g)
{
    number_roots(g);
    int *writer = MGX_NEW_ARRAY(&g->arena, int, g->roots + 1);
    if (!writer || !allocate(g))
        return false;
    memset(writer, -1, (size_t)g->roots * sizeof *writer);
    int in = 0, before = 0;
    for (int s = 0; s < g->steps; s++) {
        g->in_start[s] = in;
        g->before_start[s] = before;
        link_step(g, s, writer, &in, &before);
    }
    g->in_start[g->steps] = in;
    g->before_start[g->steps] = before;
    for (int i = 0; i < in; i++)
        g->readers[g->in[i]]++;
    turn_edges(g);
    return true;
}

// --- what an order needs ---

// Live bytes while steps are taken one by one. A root is alive from its first writer on; one that
// nobody reads goes with its writer.
struct walk {
    const struct graph *g;
    int *left; // readers to come
    bool *made;
    size_t live, peak;
};

static bool walk_begin(struct walk *w, struct graph *g)
{
    *w = (struct walk){.g = g,
                       .left = MGX_NEW_ARRAY(&g->arena, int, g->roots + 1),
                       .made = MGX_NEW_ARRAY(&g->arena, bool, g->roots + 1)};
    if (w->left && w->made)
        memcpy(w->left, g->readers, (size_t)g->roots * sizeof *w->left);
    return w->left && w->made;
}

// Bytes that come with step s and that go with it.
static void changes(const struct walk *w, int s, size_t *comes, size_t *goes)
{
    const struct graph *g = w->g;
    const int out = g->out[s];
    *comes = out >= 0 && !w->made[out] ? g->bytes[out] : 0;
    *goes = out >= 0 && w->left[out] == 0 ? g->bytes[out] : 0;
    for (int i = g->in_start[s]; i < g->in_start[s + 1]; i++)
        if (w->left[g->in[i]] == 1)
            *goes += g->bytes[g->in[i]];
}

// Whether the result can lie where an input of the same size ends.
static bool takes_over(const struct walk *w, int s)
{
    const struct graph *g = w->g;
    const struct mgx_plan_step *step = &g->plan->steps[s];
    if (step->in_place < 0 || g->out[s] < 0 || w->made[g->out[s]])
        return false;
    const struct mgx_plan_value *root = mgx_plan_root(step->in_value[step->in_place], NULL);
    return is_planned(root) && w->left[root->first] == 1 &&
           g->bytes[root->first] == g->bytes[g->out[s]];
}

static void walk_step(struct walk *w, int s)
{
    const struct graph *g = w->g;
    size_t comes, goes;
    changes(w, s, &comes, &goes);
    const size_t now = w->live + g->plan->steps[s].workspace + (takes_over(w, s) ? 0 : comes);
    if (now > w->peak)
        w->peak = now;
    w->live += comes;
    assert(w->live >= goes);
    w->live -= goes;
    if (g->out[s] >= 0)
        w->made[g->out[s]] = true;
    for (int i = g->in_start[s]; i < g->in_start[s + 1]; i++)
        w->left[g->in[i]]--;
}

static bool peak_of(struct graph *g, const int *order, size_t *peak)
{
    struct walk w;
    if (!walk_begin(&w, g))
        return false;
    for (int i = 0; i < g->steps; i++)
        walk_step(&w, order[i]);
    assert(w.live == 0); // all that came went
    *peak = w.peak;
    return true;
}

// --- deep ---

// Room that making a step's result takes as if all before it were a tree, and what it leaves.
struct need {
    size_t most, left;
};

static int by_need(const struct need *need, int a, int b)
{
    const size_t x = need[a].most - need[a].left, y = need[b].most - need[b].left;
    return x != y ? (x > y ? -1 : 1) : (a > b) - (a < b);
}

// Sorts what step s follows; lists are short, and sorted already where they came from a chain.
static void sort_before(struct graph *g, int s, const struct need *need)
{
    int *list = g->before + g->before_start[s];
    const int count = g->before_start[s + 1] - g->before_start[s];
    for (int i = 1; i < count; i++) {
        const int x = list[i];
        int at = i;
        for (; at > 0 && by_need(need, list[at - 1], x) > 0; at--)
            list[at] = list[at - 1];
        list[at] = x;
    }
}

static void find_need(struct graph *g, int s, struct need *need)
{
    sort_before(g, s, need);
    size_t sum = 0, most = 0;
    for (int i = g->before_start[s]; i < g->before_start[s + 1]; i++) {
        const struct need *n = &need[g->before[i]];
        most = sum + n->most > most ? sum + n->most : most;
        sum += n->left;
    }
    const size_t own = g->out[s] >= 0 ? g->bytes[g->out[s]] : 0;
    const size_t now = sum + own + g->plan->steps[s].workspace;
    need[s] = (struct need){now > most ? now : most, own};
}

// Depth first from the sinks, on a stack of its own.
static bool deep_order(struct graph *g, int *order)
{
    struct need *need = MGX_NEW_ARRAY(&g->arena, struct need, g->steps);
    int *stack = MGX_NEW_ARRAY(&g->arena, int, g->steps);
    int *next = MGX_NEW_ARRAY(&g->arena, int, g->steps); // what of `before` was looked at, + 1
    if (!need || !stack || !next)
        return false;
    for (int s = 0; s < g->steps; s++)
        find_need(g, s, need);
    int done = 0;
    for (int sink = 0; sink < g->steps; sink++) {
        int depth = 0;
        if (!next[sink] && g->after_start[sink] == g->after_start[sink + 1])
            stack[depth++] = sink;
        while (depth > 0) {
            const int s = stack[depth - 1], at = g->before_start[s] + next[s]++;
            if (at >= g->before_start[s + 1]) {
                order[done++] = s;
                depth--;
            } else if (!next[g->before[at]]) {
                stack[depth++] = g->before[at];
            }
        }
    }
    return done == g->steps;
}

// --- greedy ---

// The ready step after which least is alive, the earliest of equal ones.
static int pick(const struct walk *w, const int *ready, int count)
{
    int best = 0;
    int64_t least = INT64_MAX;
    for (int i = 0; i < count; i++) {
        size_t comes, goes;
        changes(w, ready[i], &comes, &goes);
        const int64_t growth = (int64_t)comes - (int64_t)goes;
        if (growth < least || (growth == least && ready[i] < ready[best])) {
            least = growth;
            best = i;
        }
    }
    return best;
}

// false also when there are too many steps to choose from.
static bool greedy_order(struct graph *g, int *order)
{
    struct walk w;
    int *ready = MGX_NEW_ARRAY(&g->arena, int, g->steps);
    int *waits = MGX_NEW_ARRAY(&g->arena, int, g->steps);
    if (!ready || !waits || !walk_begin(&w, g))
        return false;
    int count = 0, done = 0;
    int64_t work = 0;
    for (int s = 0; s < g->steps; s++) {
        waits[s] = g->before_start[s + 1] - g->before_start[s];
        if (!waits[s])
            ready[count++] = s;
    }
    while (count > 0 && (work += count) < WORK) {
        const int at = pick(&w, ready, count), s = ready[at];
        ready[at] = ready[--count];
        walk_step(&w, s);
        order[done++] = s;
        for (int i = g->after_start[s]; i < g->after_start[s + 1]; i++)
            if (--waits[g->after[i]] == 0)
                ready[count++] = g->after[i];
    }
    return done == g->steps;
}

// --- choosing ---

// Every step once, each behind what it must follow.
__attribute__((unused)) static bool is_order(const struct graph *g, const int *order, int *place)
{
    for (int i = 0; i < g->steps; i++)
        place[i] = -1;
    for (int i = 0; i < g->steps; i++) {
        if (order[i] < 0 || order[i] >= g->steps || place[order[i]] >= 0)
            return false;
        place[order[i]] = i;
    }
    for (int s = 0; s < g->steps; s++)
        for (int i = g->before_start[s]; i < g->before_start[s + 1]; i++)
            if (place[g->before[i]] >= place[s])
                return false;
    return true;
}

// How often the root of each operand of a step was written before it, and that of its result,
// which it writes once more. `writes` is by root, and goes on.
static void count_writes(const struct mgx_plan_step *step, int *writes, int *seen)
{
    for (int i = 0; i < step->in_count; i++)
        seen[i] = step->skip[i] ? 0 : writes[mgx_plan_root(step->in_value[i], NULL)->first];
    seen[step->in_count] = writes[mgx_plan_root(step->out_value, NULL)->first]++;
}

// Does every step find what it found in the given order: the slices of its operands written, of
// which there may be more than it reads, and as many of its result's?
__attribute__((unused)) static bool reads_enough(struct graph *g, const int *order)
{
    const struct mgx_plan_step *steps = g->plan->steps;
    int *writes = MGX_NEW_ARRAY(&g->arena, int, g->roots + 1);
    int **seen = MGX_NEW_ARRAY(&g->arena, int *, g->steps + 1), *now = NULL;
    bool enough = true;
    for (int s = 0; s < g->steps && writes && seen; s++)
        if ((seen[s] = MGX_NEW_ARRAY(&g->arena, int, steps[s].in_count + 1)))
            count_writes(&steps[s], writes, seen[s]);
    if (g->arena.failed)
        return true;
    memset(writes, 0, (size_t)g->roots * sizeof *writes);
    for (int i = 0; i < g->steps; i++) {
        const struct mgx_plan_step *step = &steps[order[i]];
        const int *before = seen[order[i]];
        if (!(now = MGX_NEW_ARRAY(&g->arena, int, step->in_count + 1)))
            return true;
        count_writes(step, writes, now);
        for (int k = 0; k < step->in_count; k++)
            enough = enough && now[k] >= before[k];
        enough = enough && now[step->in_count] == before[step->in_count];
    }
    return enough;
}

static bool take_order(struct mgx_build *b, const int *order)
{
    struct mgx_plan *plan = b->plan;
    struct mgx_plan_step *sorted =
        MGX_NEW_ARRAY(&plan->store.arena, struct mgx_plan_step, plan->step_count);
    if (!sorted)
        return false;
    for (int i = 0; i < plan->step_count; i++)
        sorted[i] = plan->steps[order[i]];
    plan->steps = sorted;
    return true;
}

typedef bool (*order_fn)(struct graph *g, int *order);

static bool schedule(struct mgx_build *b, struct graph *g)
{
    struct mgx_plan *plan = b->plan;
    static const order_fn orders[] = {deep_order, greedy_order};
    int *order = MGX_NEW_ARRAY(&g->arena, int, g->steps);
    int *best = MGX_NEW_ARRAY(&g->arena, int, g->steps);
    int *place = MGX_NEW_ARRAY(&g->arena, int, g->steps); // for the assertion
    if (!order || !best || !place || !build_graph(g))
        return false;
    for (int s = 0; s < g->steps; s++)
        order[s] = s;
    size_t least, given, peak;
    if (!peak_of(g, order, &given))
        return false;
    least = given;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        if (!orders[i](g, order))
            continue;
        assert(is_order(g, order, place) && reads_enough(g, order));
        if (!peak_of(g, order, &peak) || peak >= least)
            continue;
        least = peak;
        memcpy(best, order, (size_t)g->steps * sizeof *best);
    }
    plan->given_peak_bytes = given;
    plan->order_peak_bytes = least;
    return !g->arena.failed && (least == given || take_order(b, best));
}

enum mgx_status mgx_plan_build_schedule(struct mgx_build *b, struct mgx_diag *diag)
{
    struct graph g = {.build = b, .plan = b->plan, .steps = b->plan->step_count};
    mgx_arena_init(&g.arena);
    const bool good = schedule(b, &g);
    mgx_arena_fini(&g.arena);
    return good ? MGX_OK : mgx_fail_memory(diag);
}
