// SPDX-License-Identifier: MIT
// Bytes in a row's kernel. What is quantized and dequantized again stays a pw_real, and what a share
// is quantized to (scale_once, the last of its equations) takes two instructions instead of a
// division, comparisons and conversions through 64 bits; of a value half-way between two steps either
// comes out, as behind products.
#include <stdio.h>

#include "ir/tensor.h"
#include "op/op.h"
#include "targets/gpu/lower/rows.h"

static bool is_byte(enum mgx_type type)
{
    return type == MGX_INT8 || type == MGX_UINT8;
}

static bool is_number(const struct gpu_node *n, double value)
{
    return n->kind == GPU_NODE_CONSTANT &&
           mgx_load_double(n->ins->shape.type, n->ins->literal->data, 0) == value;
}

static bool is_share(const struct gpu_row *row, const struct gpu_node *n)
{
    if (n->kind != GPU_NODE_SCALAR || n->function || n->ins->op != &mgx_op_quantizelinear ||
        !is_byte(n->type) || row->nodes[n->in[0]].type != MGX_FLOAT)
        return false;
    const double low = mgx_type_lowest(n->type), steps = mgx_type_highest(n->type) - low;
    return is_number(&row->nodes[n->in[1]], (float)(1 / steps)) &&
           (n->in_count == 3 ? is_number(&row->nodes[n->in[2]], low) : low == 0);
}

// Do all that read node k dequantize it?
static bool is_dequantized(const struct gpu_row *row, int k)
{
    bool is = k != row->result;
    for (int j = 0; j < row->count && is; j++) {
        const struct gpu_node *n = &row->nodes[j];
        const bool dequantizes =
            n->kind == GPU_NODE_SCALAR && !n->function && n->ins->op == &mgx_op_dequantizelinear;
        for (int i = 0; i < n->in_count; i++)
            is = is && (n->in[i] != k || (dequantizes && i == 0));
    }
    return is;
}

void gpu_row_find_bytes(struct gpu_row *row)
{
    for (int k = 0; k < row->count; k++) {
        struct gpu_node *n = &row->nodes[k];
        n->share = is_share(row, n);
        n->real =
            is_byte(n->type) && (n->share || n->kind == GPU_NODE_INPUT) && is_dequantized(row, k);
    }
}

void gpu_row_emit_share(struct mgx_str *out, const struct gpu_row *row, int k)
{
    const struct gpu_node *n = &row->nodes[k];
    const int low = (int)mgx_type_lowest(n->type), high = (int)mgx_type_highest(n->type);
    const char *value = n->real ? "pw_real" : gpu_type_value(n->type);
    mgx_str_printf(out, "    const %s n%d = (%s)quick_%s_share(n%d, (float)%d, (float)%d%s);\n",
                   value, k, value, n->real ? "rounded" : "quantized", n->in[0], low, high,
                   n->real ? ", 0.0f" : "");
}
