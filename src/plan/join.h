// SPDX-License-Identifier: MIT
// Weights of several products that were joined into one: a concat of literals that folding leaves
// as it is, and that is packed piece by piece.
//
//     literals in the model's file  ->  addresses without memory  ->  packed, all together
//
// The concat gets a range of addresses, so that it is a constant like any other for whoever chooses
// kernels. Memory is there only while it is packed; then its pages go, and those of the file with
// them. Read by a step as it is, it stays.
#pragma once

#include "plan/store.h"

// Makes literals of those that anything but a planned product reads.
enum mgx_status mgx_plan_settle_joins(struct mgx_program *p, struct mgx_diag *diag) MGX_NODISCARD;
// Addresses for a concat in this physical shape; no memory lies behind them. NULL on failure.
const void *mgx_plan_join(struct mgx_plan_store *store, const struct mgx_ins *ins,
                          const struct mgx_shape *shape, struct mgx_diag *diag);
// If `data` lies in a joined constant: its bytes are there until dropped, or (keep) to the end.
void mgx_plan_join_fill(struct mgx_plan_store *store, const void *data, bool keep);
void mgx_plan_join_drop(struct mgx_plan_store *store, const void *data);
