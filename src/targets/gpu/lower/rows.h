// SPDX-License-Identifier: MIT
// A row: what reductions, softmax and normalisations compute for one lane of their inputs, as a list
// of nodes, and the kernel that is written from it.
//
//     full nodes     one value per element of the lane
//     reduced nodes  one value per lane
//
//     x (full input)   m = mean(x)   d = x - m   v = mean(d * d)   r = rsqrt(v + e)   d * r * scale
//
// Every fold ends a stage: the elements are gone through once per stage, and full nodes that a
// later stage wants again are computed again. Inputs are read from memory once where a thread's
// share of the lane fits in registers.
#pragma once

#include "targets/gpu/emit/loop.h"
#include "targets/gpu/lower/lower.h"

enum { GPU_ROW_NODES = 96, GPU_ROW_OPERANDS = 4 };

enum gpu_node_kind {
    GPU_NODE_INPUT,    // of the offer, number `input`
    GPU_NODE_CONSTANT, // `ins` is a literal of one value
    GPU_NODE_SCALAR,   // `ins`, or the function named `function`, on the operands
    GPU_NODE_FOLD,     // of one full operand
};

struct gpu_fold {
    const struct mgx_op *op;
    const char *name, *expression; // of x and y
    const char *begin[4];          // pw_real, double, i64, u64
};

struct gpu_node {
    enum gpu_node_kind kind;
    enum mgx_type type;
    bool full;
    int stage; // folds that must have ended before
    int input;
    int in[GPU_ROW_OPERANDS], in_count; // nodes
    const struct mgx_ins *ins;
    const char *function;
    const struct gpu_fold *fold;
    bool mean;  // the fold's sum is divided by the length
    bool share; // quantizes what is 0 for the lowest byte and 1 for the highest
    bool real;  // a byte that is a pw_real here: its readers dequantize it
};

struct gpu_row {
    struct gpu_node nodes[GPU_ROW_NODES];
    int count, result;     // nodes; the one that is the result
    const char *functions; // text of the functions named by nodes
    bool in_lane[MGX_MAX_RANK];
    int64_t lens[MGX_MAX_RANK]; // of full values
    const struct mgx_ins *also; // what the results are left as once more (row_also.h); NULL
};

const struct gpu_fold *gpu_fold_find(const struct mgx_op *op);
// Adds a node; -1 when there are too many.
int gpu_row_add(struct gpu_row *row, const struct gpu_node *node);
// Finds the nodes of bytes whose text is short: `share` and `real` (row_bytes.c).
void gpu_row_find_bytes(struct gpu_row *row);
// Writes a node that is a share, declared.
void gpu_row_emit_share(struct mgx_str *out, const struct gpu_row *row, int k);
// The kernel. `result` is the last node.
enum mgx_plan_answer gpu_row_take(struct mgx_plan_offer *c, struct gpu_row *row);
