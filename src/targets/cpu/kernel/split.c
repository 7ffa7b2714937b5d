// SPDX-License-Identifier: MIT
// Dividing work; see split.h.
#include "targets/cpu/kernel/split.h"

#include <assert.h>

#include "base/size.h"

enum { TASK_WORK = 1 << 20, TASKS_PER_THREAD = 4 };

int64_t mgx_split_tasks(double work, int threads)
{
    assert(work >= 0);
    if (threads < 2 || work < TASK_WORK)
        return 1;
    const int64_t most = (int64_t)threads * TASKS_PER_THREAD;
    const int64_t tasks = work / TASK_WORK > (double)most ? most : (int64_t)(work / TASK_WORK);
    return tasks < threads ? tasks : mgx_ceil_div(tasks, threads) * threads;
}

void mgx_split_output(int64_t rows, int64_t panels, double a_size, double b_size, int64_t parts,
                      int *row_parts, int *panel_parts)
{
    assert(rows >= 0 && panels >= 0 && parts >= 1);
    double least = -1;
    *row_parts = *panel_parts = 1;
    for (int64_t across = 1; across <= mgx_min_i64(panels, parts); across++) {
        const int64_t down = mgx_min_i64(mgx_ceil_div(parts, across), rows);
        // The largest rectangle times their number: what imbalance and idle threads cost.
        const double work = (double)mgx_ceil_div(panels, across) *
                            (double)mgx_ceil_div(rows, down) *
                            (double)mgx_max_i64(parts, across * down);
        const double traffic =
            ((double)across * a_size + (double)down * b_size) / (a_size + b_size);
        const double cost = work / ((double)panels * (double)rows) + 0.1 * traffic;
        if (least < 0 || cost < least) {
            least = cost;
            *row_parts = (int)down;
            *panel_parts = (int)across;
        }
    }
}
