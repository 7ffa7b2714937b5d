// SPDX-License-Identifier: MIT
// Offsets in one scratch block: values and workspaces that live at the same time must not overlap.
//
//   bytes
//     ^   +-----+  +--------+
//     |   |  a  |  |   d    |        a, b, c, d: rectangles of (steps alive) x (bytes)
//     |   +-----+--+--------+
//     |   |    b    |   c   |
//     +---+---------+-------+--> steps
//
// Dynamic storage allocation is NP-hard; greedy placement in several orders (by size, by time, by
// area) and keeping the best comes within a percent or two of the lower bound on networks. The
// lower bound, the largest sum of live bytes at any step, is computed and kept for the report.
// Cost: O(n * live) per order.
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "target/cpu/cpu.h"

enum { ALIGN = 64, ORDERS = 4 };

struct block {
    size_t bytes, offset;
    int first, last;
    size_t *out; // where the offset goes
};

struct blocks {
    struct block *v;
    int count;
    int order; // criterion of the sort in progress
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

static void collect(struct cpu_plan *plan, struct blocks *b)
{
    for (int i = 0; i < plan->all_count; i++) {
        struct cpu_value *value = plan->all[i];
        if (value->root == value && value->place == CPU_SCRATCH && value->last >= value->first &&
            !value->dynamic)
            add(b, value->bytes, value->first, value->last, &value->scratch);
    }
    for (int i = 0; i < plan->step_count; i++)
        add(b, plan->steps[i].workspace, i, i, &plan->steps[i].workspace_scratch);
}

static int by_offset(const void *x, const void *y)
{
    const struct block *a = *(const struct block *const *)x, *b = *(const struct block *const *)y;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int by_size(const void *x, const void *y)
{
    const struct block *a = x, *b = y;
    const int order = ORDER(b->bytes, a->bytes);
    return order                       ? order
           : ORDER(a->first, b->first) ? ORDER(a->first, b->first)
                                       : ORDER(a->out, b->out);
}

static int by_start(const void *x, const void *y)
{
    const struct block *a = x, *b = y;
    const int order = ORDER(a->first, b->first);
    return order ? order : by_size(x, y);
}

static int by_length(const void *x, const void *y)
{
    const struct block *a = x, *b = y;
    const int order = ORDER(b->last - b->first, a->last - a->first);
    return order ? order : by_size(x, y);
}

static int by_area(const void *x, const void *y)
{
    const struct block *a = x, *b = y;
    const double p = (double)a->bytes * (a->last - a->first + 1),
                 q = (double)b->bytes * (b->last - b->first + 1);
    const int order = ORDER(q, p);
    return order ? order : by_size(x, y);
}

// Places every block in the order of the array at the best gap between the blocks placed before
// that live at the same time; returns the block's total size.
static size_t place(struct blocks *b, struct block **near)
{
    size_t total = 0;
    for (int i = 0; i < b->count; i++) {
        struct block *x = &b->v[i];
        int count = 0;
        for (int j = 0; j < i; j++)
            if (b->v[j].first <= x->last && x->first <= b->v[j].last)
                near[count++] = &b->v[j];
        qsort(near, (size_t)count, sizeof *near, by_offset);
        size_t end = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
        for (int j = 0; j < count; j++) {
            const size_t gap = near[j]->offset > end ? near[j]->offset - end : 0;
            if (gap >= x->bytes && gap < best_gap) {
                best = end;
                best_gap = gap;
            }
            if (near[j]->offset + near[j]->bytes > end)
                end = near[j]->offset + near[j]->bytes;
        }
        x->offset = best != SIZE_MAX ? best : end;
        if (x->offset + x->bytes > total)
            total = x->offset + x->bytes;
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
    return most;
}

enum mgx_status cpu_plan_memory(struct cpu_plan *plan, struct mgx_diag *diag)
{
    static int (*const orders[ORDERS])(const void *, const void *) = {by_size, by_area, by_start,
                                                                      by_length};
    const size_t most = (size_t)plan->all_count + (size_t)plan->step_count + 1;
    struct blocks b = {.v = calloc(most, sizeof *b.v)};
    struct block **near = calloc(most, sizeof *near);
    size_t *change = calloc((size_t)plan->step_count + 2, sizeof *change);
    enum mgx_status status = b.v && near && change ? MGX_OK : mgx_fail_memory(diag);
    if (status == MGX_OK) {
        collect(plan, &b);
        plan->lower_bound_bytes = lower_bound(&b, plan->step_count, change);
        plan->scratch_bytes = SIZE_MAX;
        for (int i = 0; i < ORDERS && plan->scratch_bytes > plan->lower_bound_bytes; i++) {
            qsort(b.v, (size_t)b.count, sizeof *b.v, orders[i]);
            const size_t total = place(&b, near);
            if (total < plan->scratch_bytes) {
                plan->scratch_bytes = total;
                publish(&b);
            }
        }
    }
    free(b.v);
    free(near);
    free(change);
    return status;
}
