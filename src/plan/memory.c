// SPDX-License-Identifier: MIT
// Offsets in a scratch block, of each side: values and workspaces that live at the same time must
// not overlap.
//
//   bytes
//     ^   +-----+  +--------+
//     |   |  a  |  |   d    |        a, b, c, d: rectangles of (steps alive) x (bytes)
//     |   +-----+--+--------+
//     |   |    b    |   c   |
//     +---+---------+-------+--> steps
//
// Dynamic storage allocation is NP-hard. Greedy placement at the best gap is tried in several
// orders (by size, area, time, length); while the best is above the lower bound, the largest sum of
// live bytes at any step, the block that sticks out is placed earlier, at a random earlier turn,
// and what is no worse is kept. Who lives with whom is found once, by a sweep over the steps.
//
// Cost: O(n log n + pairs log n) per placement, within WORK for all together, QUICK_WORK for a plan
// that is made for one size among others: somebody waits for it. Beyond PAIRS pairs of
// blocks alive at once blocks are placed in order of time alone, in O(n log n + n gaps).
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/build.h"
#include "plan/gaps.h"

enum { ALIGN = 64, ORDERS = 4, PAIRS = 1 << 20, TRIES = 2000 };
enum { WORK = 1 << 22, QUICK_WORK = 1 << 18 };

struct block {
    size_t bytes, offset;
    int first, last;
    size_t *out; // where the offset goes
};

struct blocks {
    struct block *v; // by start
    int count;
    int *start, *near;           // blocks alive with block i: near[start[i]] to near[start[i + 1]]
    int *order, *turn;           // of placement, and its inverse
    int *placed;                 // room for the neighbours that have their place
    struct mgx_plan_block *plan; // what is planned: the least bytes so far, and the bound
};

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static void add(struct blocks *b, size_t bytes, int first, int last, size_t *out)
{
    if (bytes)
        b->v[b->count++] = (struct block){round_up(bytes), 0, first, last, out};
    else
        *out = 0;
}

static void collect(const struct mgx_build *build, enum mgx_plan_side side, struct blocks *b)
{
    for (int i = 0; i < build->all.count; i++) {
        struct mgx_plan_value *value = build->all.v[i];
        if (value->root == value && value->place == MGX_PLAN_SCRATCH && value->side == side &&
            value->last >= value->first && !value->dynamic)
            add(b, value->bytes, value->first, value->last, &value->scratch);
    }
    for (int i = 0; i < build->plan->step_count; i++)
        if (build->plan->steps[i].side == side)
            add(b, build->plan->steps[i].workspace, mgx_plan_bundle_first(build->plan, i),
                mgx_plan_bundle_last(build->plan, i), &build->plan->steps[i].workspace_scratch);
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

// Of blocks that none of these tells apart the one that comes first in `v` is the first.
static int by_size(const struct block *a, const struct block *b)
{
    const int order = ORDER(b->bytes, a->bytes);
    return order ? order : ORDER(a->first, b->first);
}

static int by_start(const struct block *a, const struct block *b)
{
    const int order = ORDER(a->first, b->first);
    return order ? order : by_size(a, b);
}

static int by_length(const struct block *a, const struct block *b)
{
    const int order = ORDER(b->last - b->first, a->last - a->first);
    return order ? order : by_size(a, b);
}

static int by_area(const struct block *a, const struct block *b)
{
    const double p = (double)a->bytes * (a->last - a->first + 1),
                 q = (double)b->bytes * (b->last - b->first + 1);
    const int order = ORDER(q, p);
    return order ? order : by_size(a, b);
}

static int by_end(const struct block *a, const struct block *b)
{
    const int order = ORDER(a->last, b->last);
    return order ? order : by_start(a, b);
}

static int start_order(const void *x, const void *y)
{
    return by_start(x, y);
}

// --- who lives with whom ---

// Counts the pairs of blocks that live together, in all and in fill[i] of block i, and stores them
// when `near` is there. Stops once there are too many to store.
static int64_t sweep(const struct blocks *b, int *active, int *near, int *fill)
{
    int64_t pairs = 0;
    int alive = 0;
    for (int i = 0; i < b->count; i++) {
        int kept = 0;
        for (int k = 0; k < alive; k++)
            if (b->v[active[k]].last >= b->v[i].first)
                active[kept++] = active[k];
        alive = kept;
        for (int k = 0; k < alive; k++) {
            if (near) {
                near[fill[i]++] = active[k];
                near[fill[active[k]]++] = i;
            } else {
                fill[i]++;
                fill[active[k]]++;
            }
        }
        pairs += alive;
        if (pairs > PAIRS)
            return pairs;
        active[alive++] = i;
    }
    return pairs;
}

// false when out of memory; without `near` when there are too many pairs.
static bool find_neighbours(struct blocks *b)
{
    int *fill = calloc((size_t)b->count + 1, sizeof *fill);
    b->start = calloc((size_t)b->count + 1, sizeof *b->start);
    if (!fill || !b->start) {
        free(fill);
        return false;
    }
    const int64_t pairs = sweep(b, b->placed, NULL, fill);
    bool good = true;
    if (pairs <= PAIRS) {
        for (int i = 0; i < b->count; i++) {
            b->start[i + 1] = b->start[i] + fill[i];
            fill[i] = b->start[i];
        }
        b->near = malloc((2 * (size_t)pairs + 1) * sizeof *b->near);
        good = b->near != NULL;
        if (good)
            sweep(b, b->placed, b->near, fill);
    }
    free(fill);
    return good;
}

// --- placing ---

// Shell's sort, lowest first: of few, which is usual, an insertion.
static void sort_placed(const struct blocks *b, int count)
{
    int gap = 1;
    while (gap < count / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (int i = gap; i < count; i++) {
            const int x = b->placed[i];
            int at = i;
            for (; at >= gap && b->v[b->placed[at - gap]].offset > b->v[x].offset; at -= gap)
                b->placed[at] = b->placed[at - gap];
            b->placed[at] = x;
        }
}

// The neighbours that have a place, lowest first.
static int placed_near(const struct blocks *b, int i)
{
    int count = 0;
    for (int k = b->start[i]; k < b->start[i + 1]; k++)
        if (b->turn[b->near[k]] < b->turn[i])
            b->placed[count++] = b->near[k];
    sort_placed(b, count);
    return count;
}

// The lowest of the narrowest gaps that are wide enough; above all if there is none.
static size_t best_gap(const struct blocks *b, const struct block *x, int count)
{
    size_t end = 0, best = SIZE_MAX, narrowest = SIZE_MAX;
    for (int j = 0; j < count; j++) {
        const struct block *other = &b->v[b->placed[j]];
        const size_t gap = other->offset > end ? other->offset - end : 0;
        if (gap >= x->bytes && gap < narrowest) {
            best = end;
            narrowest = gap;
        }
        if (other->offset + other->bytes > end)
            end = other->offset + other->bytes;
    }
    return best != SIZE_MAX ? best : end;
}

// Places every block in turn; returns the total, and the block that reaches it.
static size_t place(struct blocks *b, int *highest)
{
    size_t total = 0;
    for (int k = 0; k < b->count; k++)
        b->turn[b->order[k]] = k;
    for (int k = 0; k < b->count; k++) {
        struct block *x = &b->v[b->order[k]];
        x->offset = best_gap(b, x, placed_near(b, b->order[k]));
        if (x->offset + x->bytes > total) {
            total = x->offset + x->bytes;
            *highest = b->order[k];
        }
    }
    return total;
}

static void publish(struct blocks *b)
{
    for (int i = 0; i < b->count; i++)
        *b->v[i].out = b->v[i].offset;
}

// The largest sum of live bytes: +bytes at first, -bytes after last.
static size_t lower_bound(const struct blocks *b, int steps, size_t *change)
{
    memset(change, 0, ((size_t)steps + 2) * sizeof *change);
    for (int i = 0; i < b->count; i++) {
        const int first = b->v[i].first < 0 ? 0 : b->v[i].first;
        change[first] += b->v[i].bytes;
        change[b->v[i].last + 1] -=
            b->v[i].bytes; // unsigned wrap-around cancels in the running sum
    }
    size_t live = 0, most = 0;
    for (int i = 0; i <= steps; i++) {
        live += change[i];
        if (live > most)
            most = live;
    }
    assert(live + change[steps + 1] == 0);
    return most;
}

// --- searching ---

typedef int (*compare_fn)(const struct block *a, const struct block *b);

// Shell's sort: the comparison needs the blocks, and equal sizes keep no order of their own.
static void sort_order(struct blocks *b, compare_fn compare)
{
    for (int i = 0; i < b->count; i++)
        b->order[i] = i;
    int gap = 1;
    while (gap < b->count / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (int i = gap; i < b->count; i++) {
            const int x = b->order[i];
            int at = i;
            for (; at >= gap; at -= gap) {
                const int other = b->order[at - gap];
                const int order = compare(&b->v[other], &b->v[x]);
                if (order < 0 || (order == 0 && other < x))
                    break;
                b->order[at] = other;
            }
            b->order[at] = x;
        }
    for (int i = 1; i < b->count; i++)
        assert(compare(&b->v[b->order[i - 1]], &b->v[b->order[i]]) <= 0);
}

static void move_turn(struct blocks *b, int from, int to)
{
    const int x = b->order[from];
    assert(0 <= to && to <= from && from < b->count);
    memmove(&b->order[to + 1], &b->order[to], (size_t)(from - to) * sizeof *b->order);
    b->order[to] = x;
}

static void move_back(struct blocks *b, int from, int to)
{
    const int x = b->order[to];
    memmove(&b->order[to], &b->order[to + 1], (size_t)(from - to) * sizeof *b->order);
    b->order[from] = x;
}

// A 256th above the bound is near enough to stop.
static bool is_good(const struct blocks *b)
{
    return b->plan->bytes <= b->plan->lower_bound_bytes + b->plan->lower_bound_bytes / 256;
}

static void keep_best(struct blocks *b, size_t total)
{
    if (total < b->plan->bytes) {
        b->plan->bytes = total;
        publish(b);
    }
}

// From the order in hand: what sticks out takes an earlier turn.
static void improve(struct blocks *b, size_t total, int highest, int tries)
{
    uint64_t random = 0x9E3779B97F4A7C15u;
    for (int i = 0; i < tries && !is_good(b); i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        const int from = b->turn[highest];
        if (from == 0)
            return;
        const int to = (int)(random % (uint64_t)from);
        move_turn(b, from, to);
        int top = highest;
        const size_t now = place(b, &top);
        keep_best(b, now);
        if (now <= total) {
            total = now;
            highest = top;
        } else {
            move_back(b, from, to);
            b->turn[highest] = from;
        }
    }
}

static void search(struct blocks *b, int64_t most_work)
{
    static const compare_fn orders[ORDERS] = {by_size, by_area, by_start, by_length};
    const int64_t work = b->start[b->count] + 4 * (int64_t)b->count + 1;
    for (int i = 0; i < ORDERS && !is_good(b); i++) {
        int highest = 0;
        sort_order(b, orders[i]);
        keep_best(b, place(b, &highest));
    }
    for (int i = 0; i < ORDERS && !is_good(b); i++) {
        int highest = 0;
        sort_order(b, orders[i]);
        const size_t total = place(b, &highest);
        improve(b, total, highest, (int)mgx_min_i64(TRIES, most_work / work));
    }
}

// Placement in order of time, each block in the best gap there is by then; SIZE_MAX when out of
// memory. `order` has the blocks as they end, `turn` the piece of each.
static size_t place_in_time(struct blocks *b)
{
    struct mgx_gaps gaps;
    size_t total = 0;
    int ended = 0;
    if (!mgx_gaps_init(&gaps, b->count))
        return SIZE_MAX;
    sort_order(b, by_end);
    for (int i = 0; i < b->count; i++) {
        struct block *x = &b->v[i];
        for (; b->v[b->order[ended]].last < x->first; ended++)
            mgx_gaps_give(&gaps, b->turn[b->order[ended]]);
        b->turn[i] = mgx_gaps_take(&gaps, x->bytes, &x->offset);
        total = total > x->offset + x->bytes ? total : x->offset + x->bytes;
    }
    mgx_gaps_fini(&gaps);
    return total;
}

// Do any two blocks that live at the same step share a byte? Looked at pair by pair, without the
// lists of neighbours that placement went by; of many blocks only the first.
__attribute__((unused)) static bool any_shared(const struct blocks *b)
{
    enum { MOST = 2048 };
    const int count = b->count < MOST ? b->count : MOST;
    for (int i = 0; i < count; i++)
        for (int k = i + 1; k < count; k++) {
            const struct block *x = &b->v[i], *y = &b->v[k];
            if (x->first <= y->last && y->first <= x->last && *x->out < *y->out + y->bytes &&
                *y->out < *x->out + x->bytes)
                return true;
        }
    return false;
}

// The planner's certificate: what lives together lies apart, and nothing reaches beyond the end.
__attribute__((unused)) static bool is_valid(const struct blocks *b)
{
    for (int i = 0; i < b->count; i++) {
        const struct block *x = &b->v[i];
        if (*x->out % ALIGN || *x->out + x->bytes > b->plan->bytes)
            return false;
        for (int k = b->near ? b->start[i] : 0; b->near && k < b->start[i + 1]; k++) {
            const struct block *y = &b->v[b->near[k]];
            if (*x->out < *y->out + y->bytes && *y->out < *x->out + x->bytes)
                return false;
        }
    }
    return true;
}

static enum mgx_status plan_blocks(const struct mgx_build *build, enum mgx_plan_side side,
                                   struct blocks *b, struct mgx_diag *diag)
{
    const int steps = build->plan->step_count;
    size_t *change = calloc((size_t)steps + 2, sizeof *change);
    if (!change)
        return mgx_fail_memory(diag);
    collect(build, side, b);
    b->plan->lower_bound_bytes = lower_bound(b, steps, change);
    free(change);
    qsort(b->v, (size_t)b->count, sizeof *b->v, start_order);
    b->plan->bytes = SIZE_MAX;
    if (!find_neighbours(b))
        return mgx_fail_memory(diag);
    if (b->near)
        search(b, build->plan->store.sharing ? QUICK_WORK : WORK);
    else
        keep_best(b, place_in_time(b));
    if (b->plan->bytes == SIZE_MAX)
        return mgx_fail_memory(diag);
    assert(b->plan->bytes >= b->plan->lower_bound_bytes);
    assert(is_valid(b) && !any_shared(b));
    return MGX_OK;
}

static enum mgx_status plan_side(const struct mgx_build *build, enum mgx_plan_side side,
                                 struct mgx_diag *diag)
{
    const size_t most = (size_t)build->all.count + (size_t)build->plan->step_count + 1;
    struct blocks b = {.v = calloc(most, sizeof *b.v),
                       .order = calloc(most, sizeof *b.order),
                       .turn = calloc(most, sizeof *b.turn),
                       .placed = calloc(most, sizeof *b.placed),
                       .plan = &build->plan->block[side]};
    const enum mgx_status status = b.v && b.order && b.turn && b.placed
                                       ? plan_blocks(build, side, &b, diag)
                                       : mgx_fail_memory(diag);
    free(b.v);
    free(b.start);
    free(b.near);
    free(b.order);
    free(b.turn);
    free(b.placed);
    return status;
}

enum mgx_status mgx_plan_build_memory(struct mgx_build *b, struct mgx_diag *diag)
{
    for (int side = 0; side < (b->plan->machine->memory ? MGX_PLAN_SIDES : 1); side++)
        TRY(plan_side(b, (enum mgx_plan_side)side, diag));
    return MGX_OK;
}
