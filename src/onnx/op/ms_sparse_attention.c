// SPDX-License-Identifier: MIT
// SparseAttention of com.microsoft: GroupQueryAttention whose queries see some blocks of the keys
// only. The blocks of every layout come as rows of a sparse matrix and are known beforehand; head h
// has layout h modulo their number.
//
// It becomes GroupQueryAttention with a bias that is -inf in the blocks that a query does not see:
// the blocks' table is looked up by the query's block, then by the keys'.
#include <math.h>

#include "base/size.h"
#include "onnx/build.h"

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, ROWS, COLUMNS, TOTAL, LENGTHS, COS, SIN };

struct blocks {
    int64_t layouts, count, size; // blocks of so many tokens along an axis
    int64_t stored;               // columns of a layout, with what fills it up
};

static enum mgx_status read_blocks(struct mgx_node *n, struct blocks *b)
{
    const struct mgx_shape *rows = &n->in[ROWS]->shape, *columns = &n->in[COLUMNS]->shape;
    if (rows->rank != 2 || columns->rank != 2 || rows->lens[0] != columns->lens[0] ||
        rows->lens[0] < 1 || rows->lens[1] < 2)
        return mgx_build_misfit(n, "block_col_indices", n->in[COLUMNS], "block_row_indices",
                                n->in[ROWS]);
    *b = (struct blocks){.layouts = rows->lens[0],
                         .count = rows->lens[1] - 1,
                         .size = mgx_onnx_int(n, "sparse_block_size", 0),
                         .stored = columns->lens[1]};
    const int64_t heads = mgx_onnx_int(n, "num_heads", 0);
    if (b->size < 1 || b->size > INT32_MAX || heads < 1 || heads % b->layouts != 0)
        return mgx_node_invalid(n, "blocks of %lld, %lld layouts for %lld heads",
                                (long long)b->size, (long long)b->layouts, (long long)heads);
    return MGX_OK;
}

// {layouts, count, count}: 0 where a block of queries sees a block of keys, else -inf.
static enum mgx_status table_of(struct mgx_node *n, const struct blocks *b, struct mgx_ints rows,
                                struct mgx_ints columns, struct mgx_ins **out)
{
    const int64_t lens[3] = {b->layouts, b->count, b->count};
    const struct mgx_shape shape = mgx_shape_make(MGX_FLOAT, 3, lens);
    TRY(mgx_shape_check(&shape, n->diag));
    double *v = MGX_NEW_ARRAY(n->scratch, double, mgx_shape_elements(&shape));
    if (!v)
        return mgx_fail_memory(n->diag);
    for (int64_t i = 0; i < mgx_shape_elements(&shape); i++)
        v[i] = -INFINITY;
    for (int64_t l = 0; l < b->layouts; l++)
        for (int64_t r = 0; r < b->count; r++) {
            const int64_t *row = rows.v + l * (b->count + 1) + r;
            if (row[0] < 0 || row[1] < row[0] || row[1] > b->stored)
                return mgx_node_invalid(n, "row %lld has columns %lld to %lld of %lld",
                                        (long long)r, (long long)row[0], (long long)row[1],
                                        (long long)b->stored);
            for (int64_t i = row[0]; i < row[1]; i++) {
                const int64_t column = columns.v[l * b->stored + i];
                if (column < 0 || column >= b->count)
                    return mgx_node_invalid(n, "column %lld of %lld blocks", (long long)column,
                                            (long long)b->count);
                v[(l * b->count + r) * b->count + column] = 0;
            }
        }
    *out = mgx_build_doubles(n, &shape, v);
    return mgx_node_status(n);
}

// The block of each token, one behind the last one being taken for that.
static struct mgx_ins *block_of(struct mgx_node *n, const struct blocks *b, struct mgx_ins *at)
{
    at = mgx_build_with(n, &mgx_op_div, at, (double)b->size);
    return mgx_build_with(n, &mgx_op_min, at, (double)(b->count - 1));
}

// {batch, heads, tokens, keys}
static struct mgx_ins *bias_of(struct mgx_node *n, const struct blocks *b, struct mgx_ins *table)
{
    const int64_t *q = n->in[QUERY]->shape.lens, keys = n->in[PAST_KEY]->shape.lens[2];
    const int64_t heads = mgx_onnx_int(n, "num_heads", 0), each = heads / b->layouts;
    struct mgx_ins *at = mgx_build_convert(n, n->in[LENGTHS], MGX_INT64);
    at = mgx_build_with(n, &mgx_op_sub, at, (double)q[1]);
    at = mgx_build_with(n, &mgx_op_max, at, 0);
    at = at ? mgx_build_per_axis(n, at, 0, 2) : NULL;
    at = mgx_build_add(n, at, mgx_build_iota(n, MGX_INT64, q[1]));
    struct mgx_ins *x = mgx_build_gather(n, table, block_of(n, b, at), 1);
    x = mgx_build_gather(n, x, block_of(n, b, mgx_build_iota(n, MGX_INT64, keys)), 3);
    x = mgx_build_transpose(n, x, (int64_t[]){1, 0, 2, 3}, 4); // {batch, layouts, tokens, keys}
    x = mgx_build_unsqueeze(n, x, (int64_t[]){1}, 1);
    x = mgx_build_expand(n, x, 5, (int64_t[]){q[0], each, b->layouts, q[1], keys});
    return mgx_build_reshape(n, x, (int64_t[]){q[0], heads, q[1], keys}, 4);
}

static enum mgx_status check(struct mgx_node *n)
{
    for (int i = 0; i <= LENGTHS; i++)
        if (!mgx_node_in(n, i) && i != KEY && i != VALUE)
            return mgx_node_invalid(n, "input %d is required", i);
    if (mgx_build_static(n) && (n->in[QUERY]->shape.rank != 3 || n->in[PAST_KEY]->shape.rank != 4 ||
                                n->in[LENGTHS]->shape.rank != 1))
        return mgx_node_invalid(n, "queries of rank %d, caches of rank %d, lengths of rank %d",
                                n->in[QUERY]->shape.rank, n->in[PAST_KEY]->shape.rank,
                                n->in[LENGTHS]->shape.rank);
    return MGX_OK;
}

static enum mgx_status import(struct mgx_node *n)
{
    struct mgx_ints rows = {0}, columns = {0};
    struct mgx_ins *table = NULL;
    struct blocks b;
    TRY(check(n));
    mgx_node_ask(n, ROWS, 2);
    if (!mgx_node_constant_ints(n, ROWS, &rows) || !mgx_node_constant_ints(n, COLUMNS, &columns) ||
        !mgx_build_static(n))
        return mgx_onnx_defer(n);
    TRY(read_blocks(n, &b));
    TRY(table_of(n, &b, rows, columns, &table));
    struct mgx_ins *lengths =
        mgx_build_with(n, &mgx_op_sub, mgx_build_convert(n, n->in[LENGTHS], MGX_INT64), 1);
    struct mgx_ins *in[11] = {
        n->in[QUERY],        n->in[KEY], n->in[VALUE],         n->in[PAST_KEY],
        n->in[PAST_VALUE],   lengths,    n->in[TOTAL],         mgx_node_in(n, COS),
        mgx_node_in(n, SIN), NULL,       bias_of(n, &b, table)};
    struct mgx_node plain = *n;
    plain.in = in;
    plain.in_count = MGX_COUNT(in);
    TRY(mgx_node_status(n));
    return mgx_onnx_ms_group_query_attention.import(&plain);
}
const struct mgx_onnx_op mgx_onnx_ms_sparse_attention = {
    .name = "SparseAttention", .domain = "com.microsoft", .import = import, .result = "034"};
