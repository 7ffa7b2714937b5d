// SPDX-License-Identifier: MIT
// Weights that folding leaves as instructions, since a copy of them would cost memory: a concat of
// literals (weights of several products joined into one), literals of 16 bits widened to float,
// concats of these, and packed weights that are dequantized.
//
//     literals in the model's file  ->  addresses without memory  ->  packed, all together
//
// The result gets a range of addresses, so that it is a constant like any other for whoever chooses
// kernels. Memory is there only while it is packed; then its pages go, and those of the file with
// them. Read by a step as it is, it stays.
//
// Products whose sizes are known only at run time pack such weights when they meet their first
// size, and whatever else comes to read them has them filled first (late.c, choice.c), under the
// lock of mgx_plan_late: to the end.
#pragma once

#include "plan/store.h"

// Makes literals of those that anything but a product reads, and, unless `late`, of those that a
// product reads whose sizes are known only at run time.
enum mgx_status mgx_plan_settle_joins(struct mgx_program *p, bool late,
                                      struct mgx_diag *diag) MGX_NODISCARD;
// Addresses for such weights in this physical shape; no memory lies behind them. NULL on failure.
const void *mgx_plan_join(struct mgx_plan_store *store, const struct mgx_ins *ins,
                          const struct mgx_shape *shape, struct mgx_diag *diag);
// The instruction whose value begins at `data`; NULL if that is no such constant. A kernel that
// knows what it is made of need not have it filled.
const struct mgx_ins *mgx_plan_join_of(const struct mgx_plan_store *store, const void *data);
// If `data` lies in a joined constant: its bytes are there until dropped, or (keep) to the end.
void mgx_plan_join_fill(struct mgx_plan_store *store, const void *data, bool keep);
void mgx_plan_join_drop(struct mgx_plan_store *store, const void *data);
// What a tensor that shows such bytes takes a share in; NULL: they are of no joined constant.
struct mgx_storage *mgx_plan_join_keeper(const struct mgx_plan_store *store, const void *data);

// --- private to join.c, which makes them, and joined.c, which reads them ---

struct mgx_plan_join {
    struct mgx_plan_join *next;
    const struct mgx_ins *ins;
    struct mgx_shape shape;
    unsigned char *data;
    size_t bytes;
    struct mgx_storage storage; // of data; tensors that share in it go before the plan does
    bool full, kept;
};

enum { MGX_PLAN_BEHIND = 4096 }; // kernels may read a vector beyond the end
// Writes all pieces where they belong, in `to`'s order of memory, by the machine's threads, if any.
void mgx_plan_join_write(const struct mgx_plan_machine *machine, const struct mgx_ins *ins,
                         const struct mgx_tensor *to);
