// SPDX-License-Identifier: MIT
// From a row to its kernel; rows.h says what a row is.
//
//     rows      lane 0 |t0 t1 .. t31 t0 ..|     T threads take a lane, V neighbours each; a block
//               lane 1 |t32 .. t63        |     has as many lanes as fit, and up to 1,024 threads
//                                               where few lanes are long
//
//     columns   where neighbouring elements in memory belong to neighbouring lanes (pixels of a
//               channels-last image): 32 lanes side by side, and T threads down each,
//               8 to 32
//
// Cost: every input is read once when it stays in registers, else once per stage. What all lanes share
// and only the last stage wants (scale and shift of a normalisation) is read there: it is near, and the
// registers are others'.
#include "targets/gpu/lower/rows.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/tensor.h"
#include "op/op.h"
#include "op/source.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/emit/wide.h"
#include "targets/gpu/lower/ranged.h"
#include "targets/gpu/lower/row_also.h"
#include "targets/gpu/lower/row_divide.h"

#define MINUS_INFINITY "FLOAT_OF_BITS(0xff800000u)"
#define PLUS_INFINITY "FLOAT_OF_BITS(0x7f800000u)"
#define ALL_ONES "((u64)0 - 1)"

static const struct gpu_fold folds[] = {
    {&mgx_op_reduce_sum, "fold_sum", "x + y", {"0", "0", "0", "0"}},
    {&mgx_op_reduce_mean, "fold_sum", "x + y", {"0", "0", "0", "0"}},
    {&mgx_op_reduce_prod, "fold_prod", "x * y", {"1", "1", "1", "1"}},
    {&mgx_op_reduce_max,
     "fold_max",
     "x != x || x > y ? x : y",
     {MINUS_INFINITY, MINUS_INFINITY, "(i64)((u64)1 << 63)", "0"}},
    {&mgx_op_reduce_min,
     "fold_min",
     "x != x || x < y ? x : y",
     {PLUS_INFINITY, PLUS_INFINITY, "(i64)(" ALL_ONES " >> 1)", ALL_ONES}},
    {&mgx_op_reduce_all, "fold_all", "x != 0 && y != 0 ? 1 : 0", {"1", "1", "1", "1"}},
    {&mgx_op_reduce_any, "fold_any", "x != 0 || y != 0 ? 1 : 0", {"0", "0", "0", "0"}},
};

static const char *const values[] = {"pw_real", "double", "i64", "u64"};

static int value_number(enum mgx_type type)
{
    int i = 0;
    while (strcmp(values[i], gpu_type_value(type)) != 0)
        i++;
    return i;
}

const struct gpu_fold *gpu_fold_find(const struct mgx_op *op)
{
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
        if (folds[i].op == op)
            return &folds[i];
    return NULL;
}

int gpu_row_add(struct gpu_row *row, const struct gpu_node *node)
{
    assert(row->count >= 0 && row->count <= GPU_ROW_NODES);
    if (row->count == GPU_ROW_NODES)
        return -1;
    struct gpu_node *n = &row->nodes[row->count];
    *n = *node;
    n->stage = 0;
    for (int i = 0; i < n->in_count; i++) {
        const struct gpu_node *in = &row->nodes[n->in[i]];
        const int stage = in->stage + (in->kind == GPU_NODE_FOLD);
        n->stage = stage > n->stage ? stage : n->stage;
    }
    return row->count++;
}

// --- text: nodes ---

static void emit_constant(struct mgx_str *out, const struct mgx_ins *ins)
{
    const enum mgx_type type = ins->shape.type;
    const struct mgx_tensor *t = ins->literal;
    const enum gpu_class class = gpu_type_class(type);
    if (type == MGX_DOUBLE && isfinite(mgx_load_double(type, t->data, 0))) {
        mgx_str_printf(out, "(double)%.17e", mgx_load_double(type, t->data, 0));
        return;
    }
    if (class == GPU_REAL || mgx_type_is_fp8(type)) {
        gpu_emit_real(out, mgx_load_double(type, t->data, 0));
        return;
    }
    const uint64_t bits = (uint64_t)mgx_load_int(type, t->data, 0);
    mgx_str_printf(out, "(%s)(((u64)%" PRIu32 "u << 32) | %" PRIu32 "u)", gpu_type_value(type),
                   (uint32_t)(bits >> 32), (uint32_t)bits);
}

// "    const pw_real n5 = ...;" for constants and scalars.
static void emit_node(struct mgx_str *out, const struct gpu_row *row, int k)
{
    const struct gpu_node *n = &row->nodes[k];
    const char *value = gpu_type_value(n->type);
    if (n->kind == GPU_NODE_CONSTANT) {
        mgx_str_printf(out, "    const %s n%d = ", value, k);
        emit_constant(out, n->ins);
        mgx_str_put(out, ";\n");
        return;
    }
    if (n->share) {
        gpu_row_emit_share(out, row, k);
        return;
    }
    mgx_str_printf(out, "    %s n%d;\n    ", value, k);
    if (n->function)
        mgx_str_printf(out, "%s(", n->function);
    else
        mgx_str_printf(out, "f%d(", k);
    for (int i = 0; i < n->in_count; i++)
        mgx_str_printf(out, "n%d, ", n->in[i]);
    mgx_str_printf(out, "&n%d);\n", k);
}

// --- text: elements ---

static struct gpu_chunk chunk_of(const struct gpu_row_division *d, const struct mgx_plan_offer *c,
                                 int input, const char *name)
{
    const enum mgx_type type = input < 0 ? c->out->type : c->in[input].type;
    const bool moves = d->inner.rank && d->inner.strides[input + 2][d->inner.rank - 1] != 0;
    return (struct gpu_chunk){name, gpu_type_memory(type), moves ? d->v : 1,
                              (int)mgx_type_size(type)};
}

static void emit_share_begin(struct mgx_str *out, const struct gpu_row_division *d, bool unroll)
{
    if (unroll)
        mgx_str_put(out, "#pragma unroll\n");
    mgx_str_printf(out,
                   "    for (int e = 0; e < %d; e++) {\n    const %s j = ((%s)e * %d + t) * %d;\n",
                   d->shares, d->length < INT32_MAX / 2 ? "int" : "i64",
                   d->length < INT32_MAX / 2 ? "int" : "i64", d->threads, d->v);
    if ((int64_t)d->shares * d->threads * d->v != d->length)
        mgx_str_printf(out, "    if (j < %" PRId64 ") {\n", d->length);
    else
        mgx_str_put(out, "    {\n");
    gpu_emit_offsets_of(out, &d->inner, "j", "to");
}

// Loads full inputs into chunks: those that are kept into c<input>[e], or the others that a stage needs
// into c<input>.
static void emit_loads(struct mgx_str *out, const struct gpu_row_division *d,
                       const struct mgx_plan_offer *c, const bool *needed)
{
    const bool declare = needed != NULL;
    for (int k = 0; k < d->row->count; k++) {
        const struct gpu_node *n = &d->row->nodes[k];
        if (!gpu_row_is_input(d, k) || gpu_row_is_kept(d, k) == declare || (needed && !needed[k]))
            continue;
        char name[24], array[16], at[40];
        snprintf(name, sizeof name, declare ? "c%d" : "c%d[e]", n->input);
        snprintf(array, sizeof array, "in%d", n->input);
        snprintf(at, sizeof at, "at%d + to%d", n->input + 2, n->input + 2);
        const struct gpu_chunk chunk = chunk_of(d, c, n->input, name);
        if (declare)
            gpu_emit_chunk(out, &chunk);
        gpu_emit_chunk_load(out, &chunk, array, at);
    }
}

static void emit_cache(struct mgx_str *out, const struct gpu_row_division *d,
                       const struct mgx_plan_offer *c)
{
    for (int k = 0; k < d->row->count; k++) {
        const struct gpu_node *n = &d->row->nodes[k];
        if (!gpu_row_is_input(d, k) || !gpu_row_is_kept(d, k))
            continue;
        char name[24];
        snprintf(name, sizeof name, "c%d[%d]", n->input, d->shares);
        const struct gpu_chunk chunk = chunk_of(d, c, n->input, name);
        gpu_emit_chunk(out, &chunk);
    }
    emit_share_begin(out, d, true);
    emit_loads(out, d, c, NULL);
    mgx_str_put(out, "    }\n    }\n");
}

static void emit_full_nodes(struct mgx_str *out, const struct gpu_row_division *d,
                            const struct mgx_plan_offer *c, const bool *needed)
{
    for (int k = 0; k < d->row->count; k++) {
        const struct gpu_node *n = &d->row->nodes[k];
        if (!needed[k] || !n->full || n->kind == GPU_NODE_FOLD)
            continue;
        if (n->kind != GPU_NODE_INPUT) {
            emit_node(out, d->row, k);
            continue;
        }
        char element[48];
        const struct gpu_chunk chunk = chunk_of(d, c, n->input, "");
        snprintf(element, sizeof element, "c%d%s.v[%s]", n->input,
                 gpu_row_is_kept(d, k) ? "[e]" : "", chunk.v > 1 ? "k" : "0");
        mgx_str_printf(out, "    const %s n%d = ", n->real ? "pw_real" : gpu_type_value(n->type),
                       k);
        if (n->real)
            mgx_str_printf(out, "(pw_real)%s", element);
        else
            gpu_emit_widened(out, n->type, element);
        mgx_str_put(out, ";\n");
    }
}

// What is left once more, a chunk for a chunk.
static struct gpu_chunk also_of(const struct gpu_row_division *d, const struct gpu_chunk *result)
{
    const enum mgx_type type = d->row->also->shape.type;
    return (struct gpu_chunk){"d", gpu_type_memory(type), result->v, (int)mgx_type_size(type)};
}

static void emit_last_value(struct mgx_str *out, const struct gpu_row_division *d,
                            enum mgx_type type)
{
    char value[16];
    snprintf(value, sizeof value, "n%d", d->row->result);
    mgx_str_put(out, "    c.v[k] = ");
    gpu_emit_narrowed(out, type, value);
    mgx_str_put(out, ";\n");
    if (d->row->also)
        gpu_row_also_value(out, d->row->also, type);
}

static void emit_last_stores(struct mgx_str *out, const struct gpu_row_division *d,
                             const struct gpu_chunk *result)
{
    char name[16];
    mgx_str_put(out, "    if (live) {\n");
    gpu_emit_chunk_store(out, result, "out", "at1 + to1");
    if (d->row->also) {
        const struct gpu_chunk also = also_of(d, result);
        gpu_emit_chunk_store(out, &also, "also", "at1 + to1");
    }
    for (int k = 0; k < d->v && d->ranged; k++) {
        snprintf(name, sizeof name, "c.v[%d]", k);
        gpu_emit_range_value(out, d->ranged, name);
    }
    mgx_str_put(out, "    }\n");
}

// The loop over a thread's elements in one stage.
static void emit_stage(struct mgx_str *out, const struct gpu_row_division *d,
                       const struct mgx_plan_offer *c, int stage)
{
    const struct gpu_row *row = d->row;
    const bool last = stage == d->stages;
    bool needed[GPU_ROW_NODES];
    gpu_row_need(d, stage, needed);
    emit_share_begin(out, d, d->cached);
    mgx_str_put(out, "    (void)to1;\n");
    emit_loads(out, d, c, needed);
    const struct gpu_chunk result = chunk_of(d, c, -1, "c");
    if (last)
        gpu_emit_chunk(out, &result);
    if (last && row->also) {
        const struct gpu_chunk also = also_of(d, &result);
        gpu_emit_chunk(out, &also);
    }
    mgx_str_printf(out, "#pragma unroll\n    for (int k = 0; k < %d; k++) {\n", d->v);
    emit_full_nodes(out, d, c, needed);
    for (int k = 0; k < row->count && !last; k++) {
        const struct gpu_node *n = &row->nodes[k];
        if (n->kind == GPU_NODE_FOLD && n->stage == stage)
            mgx_str_printf(out, "    n%d = %s_%s(n%d, n%d);\n", k, n->fold->name,
                           values[value_number(n->type)], k, n->in[0]);
    }
    if (last)
        emit_last_value(out, d, c->out->type);
    mgx_str_put(out, "    }\n");
    if (last)
        emit_last_stores(out, d, &result);
    mgx_str_put(out, "    }\n    }\n");
}

// --- text: folds across threads ---

// n<k> of all threads of a lane folded; all of them get it.
static void emit_fold(struct mgx_str *out, const struct gpu_row_division *d, int k)
{
    const struct gpu_node *n = &d->row->nodes[k];
    const char *value = values[value_number(n->type)];
    char part[24], fold[48];
    snprintf(part, sizeof part, "part_%s", value);
    snprintf(fold, sizeof fold, "%s_%s", n->fold->name, value);
    const int apart = d->columns ? d->per_block : 1; // of two threads of a lane
    int within = d->columns ? 1 : d->threads < 32 ? d->threads : 32;
    if (d->threads == 1)
        return;
    if (within > 1) {
        mgx_str_put(out, "#ifdef SHUFFLE_XOR\n");
        for (int mask = within / 2; mask; mask /= 2)
            mgx_str_printf(out, "    n%d = %s(n%d, SHUFFLE_XOR(n%d, %d));\n", k, fold, k, k, mask);
        if (d->threads > within) {
            const int warps = d->threads / within;
            mgx_str_printf(out,
                           "    if (t %% %d == 0)\n        %s[THREAD / %d] = n%d;\n"
                           "    BARRIER();\n    n%d = %s[THREAD / %d * %d];\n"
                           "    for (int s = 1; s < %d; s++)\n"
                           "        n%d = %s(n%d, %s[THREAD / %d * %d + s]);\n    BARRIER();\n",
                           within, part, within, k, k, part, d->threads, warps, warps, k, fold, k,
                           part, d->threads, warps);
        }
        mgx_str_put(out, "#else\n");
    }
    mgx_str_printf(out,
                   "    %s[THREAD] = n%d;\n    for (int s = %d; s > 0; s /= 2) {\n"
                   "        BARRIER();\n        if (t < s)\n"
                   "            %s[THREAD] = %s(%s[THREAD], %s[THREAD + s * %d]);\n    }\n"
                   "    BARRIER();\n    n%d = %s[THREAD - t * %d];\n    BARRIER();\n",
                   part, k, d->threads / 2, part, fold, part, part, apart, k, part, apart);
    if (within > 1)
        mgx_str_put(out, "#endif\n");
}

static void emit_fold_functions(struct mgx_str *out, const struct gpu_row *row)
{
    for (int k = 0; k < row->count; k++) {
        const struct gpu_node *n = &row->nodes[k];
        bool done = n->kind != GPU_NODE_FOLD;
        for (int i = 0; i < k && !done; i++)
            done = row->nodes[i].kind == GPU_NODE_FOLD &&
                   strcmp(row->nodes[i].fold->name, n->fold->name) == 0 &&
                   value_number(row->nodes[i].type) == value_number(n->type);
        const char *value = done ? "" : gpu_type_value(n->type);
        if (!done)
            mgx_str_printf(out, "FUNCTION %s %s_%s(%s x, %s y)\n{\n    return %s;\n}\n\n", value,
                           n->fold->name, value, value, value, n->fold->expression);
    }
}

static void emit_parts(struct mgx_str *out, const struct gpu_row_division *d)
{
    for (int i = 0; i < 4; i++) {
        bool used = false;
        for (int k = 0; k < d->row->count; k++)
            used |=
                d->row->nodes[k].kind == GPU_NODE_FOLD && value_number(d->row->nodes[k].type) == i;
        if (used && d->threads > 1)
            mgx_str_printf(out, "    SHARED %s part_%s[%d];\n", values[i], values[i],
                           d->threads * d->per_block);
    }
}

// --- text: the kernel ---

static void emit_lane(struct mgx_str *out, const struct gpu_row_division *d)
{
    if (d->columns)
        mgx_str_printf(out, "    const int t = THREAD / %d, lane = BLOCK * %d + THREAD %% %d;\n",
                       d->per_block, d->per_block, d->per_block);
    else
        mgx_str_printf(out, "    const int t = THREAD %% %d, lane = BLOCK * %d + THREAD / %d;\n",
                       d->threads, d->per_block, d->threads);
    mgx_str_printf(out,
                   "    const int live = lane < %" PRId64 ", i = live ? lane : 0;\n    (void)t;\n",
                   d->lanes);
    gpu_emit_offsets(out, &d->outer);
}

// Reduced inputs, constants, and reduced scalars that need no more than `stage` folds.
static void emit_reduced(struct mgx_str *out, const struct gpu_row_division *d,
                         const struct mgx_plan_offer *c, int stage)
{
    for (int k = 0; k < d->row->count; k++) {
        const struct gpu_node *n = &d->row->nodes[k];
        if (n->full || n->stage != stage || n->kind == GPU_NODE_FOLD)
            continue;
        if (n->kind != GPU_NODE_INPUT) {
            emit_node(out, d->row, k);
            continue;
        }
        char array[16], at[16];
        snprintf(array, sizeof array, "in%d", n->input);
        snprintf(at, sizeof at, "at%d", n->input + 2);
        mgx_str_printf(out, "    const %s n%d = ",
                       n->real ? "pw_real" : gpu_type_value(c->in[n->input].type), k);
        gpu_emit_load(out, c->in[n->input].type, array, at);
        mgx_str_put(out, ";\n");
    }
}

static void emit_folds_of(struct mgx_str *out, const struct gpu_row_division *d,
                          const struct mgx_plan_offer *c, int stage)
{
    const struct gpu_row *row = d->row;
    for (int k = 0; k < row->count; k++)
        if (row->nodes[k].kind == GPU_NODE_FOLD && row->nodes[k].stage == stage)
            mgx_str_printf(out, "    %s n%d = %s;\n", gpu_type_value(row->nodes[k].type), k,
                           row->nodes[k].fold->begin[value_number(row->nodes[k].type)]);
    emit_stage(out, d, c, stage);
    for (int k = 0; k < row->count; k++) {
        if (row->nodes[k].kind != GPU_NODE_FOLD || row->nodes[k].stage != stage)
            continue;
        emit_fold(out, d, k);
        if (row->nodes[k].mean)
            mgx_str_printf(out, "    n%d /= (%s)%" PRId64 ";\n", k,
                           gpu_type_value(row->nodes[k].type), d->length);
    }
}

static const char *emit_functions(struct mgx_str *out, const struct mgx_plan_offer *c,
                                  const struct gpu_row *row)
{
    struct mgx_source s;
    struct mgx_diag quiet = {.status = MGX_OK};
    mgx_source_begin(&s, out);
    for (int k = 0; k < row->count; k++) {
        char name[16];
        const struct gpu_node *n = &row->nodes[k];
        snprintf(name, sizeof name, "f%d", k);
        s.real = n->in_count > 0 && row->nodes[n->in[0]].real; // which dequantizes it
        s.leaves = k == row->result;                           // storing it rounds it
        if (n->share)
            continue;
        if (n->kind == GPU_NODE_SCALAR && !n->function &&
            mgx_source_ins(&s, name, n->ins, &quiet) != MGX_OK)
            return "an operator or a type that has no scalar code";
    }
    const char *why = row->also ? gpu_row_also_body(&s, row->also) : NULL;
    if (why || (s.doubles && !gpu_has_double(c)))
        return why ? why : "the card has no double";
    mgx_str_put(out, row->functions ? row->functions : "");
    emit_fold_functions(out, row);
    return NULL;
}

// Constants that all lanes share are on their way before the kernel waits for the one ahead.
static void emit_wait(struct mgx_str *out, const struct mgx_plan_offer *c,
                      const struct gpu_row_division *d)
{
    enum { LINE = 128, MOST = 1 << 14 };
    for (int i = 0; i < c->in_count; i++) {
        const int64_t bytes = mgx_shape_space(&c->in[i]) * (int64_t)mgx_type_size(c->in[i].type);
        bool shared = c->constant[i] && bytes >= LINE && bytes <= MOST && c->in_offset &&
                      c->in_offset[i] % 4 == 0;
        for (int axis = 0; axis < d->outer.rank; axis++)
            shared = shared && d->outer.strides[i + 2][axis] == 0;
        if (shared)
            mgx_str_printf(out,
                           "    for (int p = THREAD * %d; p < %" PRId64 "; p += THREADS * %d)\n"
                           "        TOUCH((const GLOBAL char *)in%d + p);\n",
                           LINE, bytes - 3, LINE, i);
    }
    mgx_str_put(out, "    GRID_LAUNCH();\n    GRID_WAIT();\n");
}

static const char *emit(struct mgx_str *out, const struct mgx_plan_offer *c,
                        const struct gpu_row_division *d)
{
    enum mgx_type types[GPU_CALL_INPUTS];
    for (int i = 0; i < c->in_count; i++)
        types[i] = c->in[i].type;
    const char *why = emit_functions(out, c, d->row);
    if (why)
        return why;
    if (d->threads * d->per_block > GPU_ROW_BLOCK) // registers are dealt out for that many threads
        mgx_str_printf(out, "#define run BOUNDS(%d) run\n", d->threads * d->per_block);
    if (d->row->also)
        gpu_row_also_head(out, d->row->also, c->out->type, types, c->in_count);
    else
        gpu_emit_range_head(out, d->ranged, c->out->type, types, c->in_count);
    mgx_str_put(out, "{\n");
    gpu_emit_range_begin(out, d->ranged);
    emit_parts(out, d);
    emit_wait(out, c, d);
    emit_lane(out, d);
    if (d->cached)
        emit_cache(out, d, c);
    emit_reduced(out, d, c, 0);
    for (int stage = 0; stage < d->stages; stage++) {
        emit_folds_of(out, d, c, stage);
        emit_reduced(out, d, c, stage + 1);
    }
    if (d->row->nodes[d->row->result].full) {
        emit_stage(out, d, c, d->stages);
    } else {
        char value[16];
        snprintf(value, sizeof value, "n%d", d->row->result);
        mgx_str_put(out, "    if (t == 0 && live) {\n        ");
        gpu_emit_store(out, c->out->type, "out", "at1", value);
        mgx_str_put(out, "\n");
        gpu_emit_range_value(out, d->ranged, value);
        mgx_str_put(out, "    }\n");
    }
    gpu_emit_range_end(out, d->ranged);
    mgx_str_put(out, "}\n");
    return NULL;
}

// --- the offer ---

static const char *refuses(const struct mgx_plan_offer *c, const struct gpu_row *row)
{
    if (c->in_count + 2 > GPU_CALL_INPUTS || c->in_count + 2 > GPU_LOOP_ARRAYS)
        return "too many inputs";
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i].rank != c->out->rank)
            return "inputs of several ranks";
    for (int k = 0; k < row->count; k++) {
        const enum mgx_type type = row->nodes[k].type;
        const bool rounds = mgx_type_is_fp8(type) && row->nodes[k].kind != GPU_NODE_FOLD;
        if (gpu_type_class(type) == GPU_NONE && !rounds)
            return "a type that kernels do not compute";
        if (type == MGX_DOUBLE && !gpu_has_double(c))
            return "the card has no double";
        if (row->nodes[k].mean && mgx_type_size(type) == 8 && gpu_type_class(type) != GPU_REAL)
            return "a mean whose sum takes 128 bits";
    }
    if (row->also && (!row->nodes[row->result].full || gpu_is_ranged(c)))
        return "results that are left otherwise";
    return NULL;
}

static int in_place(const struct mgx_plan_offer *c, const struct gpu_row *row)
{
    for (int i = 0; i < c->in_count && row->nodes[row->result].full; i++)
        if (c->in[i].type == c->out->type && mgx_shape_equal(&c->in[i], c->out))
            return i;
    return -1;
}

enum mgx_plan_answer gpu_row_take(struct mgx_plan_offer *c, struct gpu_row *row)
{
    assert(row->result >= 0 && row->result < row->count);
    struct gpu_row_division d;
    struct mgx_str text = {0};
    const char *why = refuses(c, row);
    if (why)
        return gpu_decline(c, why);
    gpu_row_find_bytes(row);
    gpu_row_divide(&d, c, row);
    if (d.length <= 0 || d.shares == INT32_MAX || d.lanes >= INT32_MAX)
        return gpu_decline(c, "lanes that are empty, or too many");
    const struct gpu_launch how = {
        .grid = {(unsigned)((d.lanes + d.per_block - 1) / d.per_block), 1, 1},
        .block = {(unsigned)(d.threads * d.per_block), 1, 1}};
    if (gpu_is_ranged(c) && how.grid[0] <= GPU_RANGES_MOST)
        d.ranged = (int)how.block[0];
    why = emit(&text, c, &d);
    if (why) {
        mgx_str_fini(&text);
        return gpu_decline(c, why);
    }
    c->in_place = in_place(c, row);
    c->detail = d.columns ? "lanes side by side" : d.cached ? "lanes in registers" : "lanes";
    const enum mgx_plan_answer answer = gpu_take(c, &text, &how, NULL, c->in_count);
    if (answer == MGX_PLAN_TAKEN && d.ranged)
        gpu_leave_ranges(c, how.grid[0]);
    return answer;
}
