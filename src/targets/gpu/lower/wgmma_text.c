// SPDX-License-Identifier: MIT
// The text of the Hopper kernel for one product: sizes, tile, epilogue, and the packing of images.
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "op/op.h"
#include "op/source.h"
#include "targets/gpu/emit/multiply.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/wgmma.h"

enum { LINE = 8, QUAD = 4 };

static bool is_fp8(enum mgx_type type) // of those that are read and written side by side
{
    return type == MGX_FP8E4M3FN || type == MGX_FP8E5M2;
}

// Words of eight values, for types whose lines are read whole; 0: of others.
static int words_of(enum mgx_type type)
{
    return mgx_type_is_byte(type) || is_fp8(type)   ? 2
           : mgx_type_is_half_or_bf16(type)         ? 4
           : type == MGX_FLOAT || type == MGX_INT32 ? 8
                                                    : 0;
}

// --- text: operands of the epilogue, eight columns at a time ---

enum kind {
    KIND_COLUMN, // a constant with one value a column: read before anything else
    KIND_WHOLE,  // lines of columns
    KIND_NUMBER, // one for all results: read once, before the products
    KIND_SINGLE, // anything else: value by value
};

struct line { // how an array lies
    enum kind kind;
    enum mgx_type type;
    int words; // of eight values
};

static bool is_lines(const struct gpu_wgmma_product *g, const struct mgx_shape *s, bool *one_row)
{
    const int *axes = g->row_axes, count = g->row_axis_count, column = g->column_axis;
    *one_row = true;
    for (int i = 0; i < count; i++) {
        if (s->lens[axes[i]] == 1 || s->strides[axes[i]] == 0)
            continue;
        *one_row = false;
        if (s->strides[axes[i]] % LINE)
            return false;
    }
    return s->strides[column] == 1 && s->lens[column] % LINE == 0 && g->unit % LINE == 0 &&
           words_of(s->type);
}

static struct line line_of(const struct mgx_plan_offer *c, const struct gpu_wgmma_product *g, int e)
{
    const struct mgx_shape *s = &c->in[g->p.extra[e]];
    bool one_row;
    struct line line = {KIND_SINGLE, s->type, words_of(s->type)};
    if (g->summed == e + 1)
        return line;
    if (gpu_is_number(s))
        line.kind = KIND_NUMBER;
    else if (is_lines(g, s, &one_row))
        line.kind = one_row && c->constant[g->p.extra[e]] ? KIND_COLUMN : KIND_WHOLE;
    return line;
}

// "const i64 NAME = ...": the offset of (row, column); rows are divided only where they must be.
static void emit_at(struct mgx_str *out, const char *name, const struct gpu_wgmma_product *g,
                    const struct mgx_shape *s, bool with_row)
{
    const int *axes = g->row_axes, count = g->row_axis_count, column = g->column_axis;
    int64_t stride = 0;
    mgx_str_printf(out, "    const i64 %s = (i64)column * %" PRId64, name,
                   s->lens[column] > 1 ? s->strides[column] : 0);
    if (with_row && gpu_wgmma_merge(s, axes, count, &stride)) {
        if (stride)
            mgx_str_printf(out, " + (i64)row * %" PRId64, stride);
    } else if (with_row) {
        int64_t below = 1;
        for (int i = count - 1; i >= 0; i--) {
            const int64_t len = s->lens[axes[i]];
            if (len > 1 && s->strides[axes[i]])
                mgx_str_printf(out, " + (i64)(row / %" PRId64 " %% %" PRId64 ") * %" PRId64, below,
                               len, s->strides[axes[i]]);
            below *= len;
        }
    }
    mgx_str_put(out, ";\n");
}

// One operand of the epilogue, as its functions have it.
static void emit_param(struct mgx_str *out, const struct mgx_plan_offer *c,
                       const struct gpu_wgmma_product *g, int e)
{
    const enum mgx_type type = c->in[g->p.extra[e]].type;
    if (line_of(c, g, e).kind == KIND_NUMBER)
        mgx_str_printf(out, "%s e%d", gpu_type_value(type), e);
    else
        mgx_str_printf(out, "const GLOBAL %s *e%d", gpu_type_memory(type), e);
}

static void emit_params(struct mgx_str *out, const struct mgx_plan_offer *c,
                        const struct gpu_wgmma_product *g)
{
    mgx_str_put(out, g->ranged ? ", struct extremes *seen" : "");
    if (g->units == GPU_WGMMA_SPLIT)
        mgx_str_put(out, ", const float *a, const u16 *b");
    for (int e = 0; e < g->p.extra_count; e++) {
        mgx_str_put(out, ", ");
        emit_param(out, c, g, e);
    }
}

// Those of the kernel, which has a place for the ranges of its results, not for what it has seen, and
// places for numbers.
static void emit_kernel_params(struct mgx_str *out, const struct mgx_plan_offer *c,
                               const struct gpu_wgmma_product *g)
{
    mgx_str_put(out, "\n#define KERNEL_PARAMS");
    mgx_str_put(out, g->units == GPU_WGMMA_SPLIT ? ", const float *a, const u16 *b" : "");
    for (int e = 0; e < g->p.extra_count; e++)
        mgx_str_printf(out, ", const GLOBAL %s *%s%d", gpu_type_memory(c->in[g->p.extra[e]].type),
                       line_of(c, g, e).kind == KIND_NUMBER ? "far" : "e", e);
    mgx_str_put(out, g->border.kinds ? ", const GLOBAL i32 *border" : "");
    mgx_str_put(out, g->ranged ? ", GLOBAL float *ranges" : "");
    if (g->units == GPU_WGMMA_QUANTIZED)
        mgx_str_put(out, ", GLOBAL float *range_at, const GLOBAL float *first_at, const GLOBAL "
                         "float *second_at");
}

static void emit_struct(struct mgx_str *out, const struct mgx_plan_offer *c,
                        const struct gpu_wgmma_product *g, const char *name, enum kind kind,
                        int values)
{
    mgx_str_printf(out, "struct %s {\n    u32 none;\n", name);
    for (int e = 0; e < g->p.extra_count; e++) {
        const struct line line = line_of(c, g, e);
        if (line.kind == kind)
            mgx_str_printf(out, "    u32 e%d[%d];\n", e, line.words * values / LINE);
    }
    mgx_str_put(out, "};\n");
}

static void emit_loads(struct mgx_str *out, const struct mgx_plan_offer *c,
                       const struct gpu_wgmma_product *g, const char *name, enum kind kind,
                       int values)
{
    mgx_str_printf(out, "FUNCTION void load_%s(struct %s *x", name, name);
    emit_params(out, c, g);
    mgx_str_put(out, kind == KIND_COLUMN ? ", int column)\n{\n" : ", int row, int column)\n{\n");
    for (int e = 0; e < g->p.extra_count; e++) {
        const struct line line = line_of(c, g, e);
        char at[16];
        snprintf(at, sizeof at, "at%d", e);
        if (line.kind != kind)
            continue;
        emit_at(out, at, g, &c->in[g->p.extra[e]], kind == KIND_WHOLE);
        mgx_str_printf(out, "    read_words_%d(x->e%d, e%d + %s);\n", line.words * values / LINE, e,
                       e, at);
    }
    mgx_str_put(out, "}\n");
}

static const char *word_type(enum mgx_type type)
{
    return type == MGX_HALF        ? "half"
           : type == MGX_BF16      ? "bf16"
           : type == MGX_INT8      ? "int8"
           : type == MGX_UINT8     ? "uint8"
           : type == MGX_INT32     ? "int32"
           : type == MGX_FP8E4M3FN ? "e4m3fn"
           : type == MGX_FP8E5M2   ? "e5m2"
                                   : "float";
}

// Are results cut off to fp8's range as they are stored?
static bool is_cut(const struct gpu_wgmma_product *g)
{
    return g->p.tail && mgx_source_end(g->p.tail) == MGX_END_CUT;
}

// Of write_... and its kin.
static void put_word_type(struct mgx_str *out, const struct mgx_plan_offer *c,
                          const struct gpu_wgmma_product *g)
{
    mgx_str_printf(out, "%s%s", is_cut(g) ? "cut_" : "", word_type(c->out->type));
}

static void emit_operand(struct mgx_str *out, const struct mgx_plan_offer *c,
                         const struct gpu_wgmma_product *g, int number, int e)
{
    const bool real = gpu_product_is_real(&g->p, number);
    const struct mgx_shape *s = &c->in[g->p.extra[e]];
    const struct line line = line_of(c, g, e);
    mgx_str_printf(out, "        const %s v%d = ", real ? "float" : gpu_type_value(s->type),
                   number);
    if (g->summed == e + 1) {
        mgx_str_put(out, "0;\n");
        return;
    }
    if (line.kind == KIND_NUMBER) {
        mgx_str_printf(out, "e%d;\n", e);
        return;
    }
    if (line.kind == KIND_SINGLE) {
        char at[48], array[16];
        snprintf(at, sizeof at, "at%d + j * %" PRId64, e,
                 s->lens[g->column_axis] > 1 ? s->strides[g->column_axis] : 0);
        snprintf(array, sizeof array, "e%d", e);
        gpu_emit_load(out, s->type, array, at);
        mgx_str_put(out, ";\n");
        return;
    }
    mgx_str_printf(out, "%s_%s(%s->e%d, j);\n", real ? "real" : "value", word_type(s->type),
                   line.kind == KIND_COLUMN ? "columns" : "wide", e);
}

// The loop that makes r[] of sums[], `many` neighbours.
static void emit_values(struct mgx_str *out, const struct mgx_plan_offer *c,
                        const struct gpu_wgmma_product *g, int many)
{
    const int count = g->p.tail ? g->p.tail->in_count : 1;
    mgx_str_printf(out, "#pragma unroll\n    for (int j = 0; j < %d; j++) {\n", many);
    for (int i = 0, e = 0; i < count; i++) {
        if (i == g->p.place || !g->p.tail)
            mgx_str_printf(out, "        const TAKEN v%d = (TAKEN)sums[j];\n", i);
        else
            emit_operand(out, c, g, i, e++);
    }
    if (g->p.tail)
        gpu_emit_body_call(out, c->out->type, count);
    mgx_str_printf(out, "        r[j] = (RESULT)%s;\n    }\n", g->p.tail ? "y" : "v0");
}

static void emit_single_places(struct mgx_str *out, const struct mgx_plan_offer *c,
                               const struct gpu_wgmma_product *g)
{
    for (int e = 0; e < g->p.extra_count; e++) {
        char at[16];
        snprintf(at, sizeof at, "at%d", e);
        if (line_of(c, g, e).kind == KIND_SINGLE)
            emit_at(out, at, g, &c->in[g->p.extra[e]], true);
    }
}

static void emit_finish_wide(struct mgx_str *out, const struct mgx_plan_offer *c,
                             const struct gpu_wgmma_product *g)
{
    mgx_str_put(out, "FUNCTION void finish_wide(C_TYPE *c");
    emit_params(out, c, g);
    mgx_str_put(out, ", const struct columns *columns, const struct wide *wide, int row, int "
                     "column, const SUM *sums)\n{\n    RESULT r[8];\n");
    emit_at(out, "at", g, c->out, true);
    emit_single_places(out, c, g);
    emit_values(out, c, g, LINE);
    if (g->ranged)
        mgx_str_put(out,
                    "#pragma unroll\n    for (int j = 0; j < 8; j++)\n        see(seen, r[j]);\n");
    mgx_str_put(out, g->alone ? "    if (c)\n        write_" : "    write_");
    put_word_type(out, c, g);
    mgx_str_put(out, "(c + at, r);\n}\n");
}

static bool leaves_lines(const struct mgx_plan_offer *c, const struct gpu_wgmma_product *g)
{
    bool one_row;
    return is_lines(g, c->out, &one_row);
}

// Two neighbouring results of 16 bits whose operands are columns' constants?
bool gpu_wgmma_pairs(const struct mgx_plan_offer *c, const struct gpu_wgmma_product *g)
{
    bool pairs = mgx_type_is_half_or_bf16(c->out->type) && leaves_lines(c, g);
    for (int e = 0; e < g->p.extra_count; e++)
        pairs = pairs && line_of(c, g, e).kind == KIND_COLUMN && line_of(c, g, e).words >= 4;
    return pairs;
}

static void emit_place(struct mgx_str *out, const struct mgx_plan_offer *c,
                       const struct gpu_wgmma_product *g)
{
    mgx_str_put(out, "FUNCTION C_TYPE *place_of(C_TYPE *c, int row, int column)\n{\n");
    emit_at(out, "at", g, c->out, true);
    mgx_str_put(out, "    return c + at;\n}\n");
}

// struct pair, what the results of two columns are computed with; load_pair(), finish_pair() and where
// a result lies.
static void emit_pairs(struct mgx_str *out, const struct mgx_plan_offer *c,
                       const struct gpu_wgmma_product *g)
{
    mgx_str_put(out, "struct pair {\n    u32 none;\n");
    for (int e = 0; e < g->p.extra_count; e++)
        mgx_str_printf(out, "    u32 e%d[%d];\n", e, line_of(c, g, e).words / 4);
    mgx_str_put(out, "};\nFUNCTION void load_pair(struct pair *x");
    emit_params(out, c, g);
    mgx_str_put(out, ", int column)\n{\n");
    for (int e = 0; e < g->p.extra_count; e++) {
        char at[16];
        snprintf(at, sizeof at, "at%d", e);
        emit_at(out, at, g, &c->in[g->p.extra[e]], false);
        for (int i = 0; i < line_of(c, g, e).words / 4; i++)
            mgx_str_printf(out, "    x->e%d[%d] = ((const GLOBAL u32 *)(e%d + %s))[%d];\n", e, i, e,
                           at, i);
    }
    mgx_str_put(out, "}\nFUNCTION u32 finish_pair(const struct pair *columns, SUM x0, SUM x1)\n{\n"
                     "    const SUM sums[2] = {x0, x1};\n    RESULT r[2];\n");
    emit_values(out, c, g, 2);
    mgx_str_printf(out, "    return pair_%s(r[0], r[1]);\n}\n", word_type(c->out->type));
    emit_place(out, c, g);
}

// touch_columns(): constants of four columns are brought near, by way of 16 bytes of shared memory that
// nobody reads: a load whose value is not used would be left out.
static void emit_touch(struct mgx_str *out, const struct mgx_plan_offer *c,
                       const struct gpu_wgmma_product *g)
{
    mgx_str_put(out, "FUNCTION void touch_columns(");
    for (int e = 0; e < g->p.extra_count; e++) {
        emit_param(out, c, g, e);
        mgx_str_put(out, ", ");
    }
    mgx_str_put(out, "u32 by, int column)\n{\n");
    for (int e = 0; e < g->p.extra_count; e++) {
        const struct line line = line_of(c, g, e);
        if (line.kind != KIND_COLUMN)
            continue;
        char at[16];
        snprintf(at, sizeof at, "at%d", e);
        emit_at(out, at, g, &c->in[g->p.extra[e]], false);
        mgx_str_printf(
            out,
            "    asm volatile(\"cp.async.ca.shared.global [%%0], [%%1], %d;\" ::\"r\"(by),"
            " \"l\"(e%d + %s) : \"memory\");\n",
            line.words * 4 * QUAD / LINE, e, at);
    }
    mgx_str_put(out, "}\n#define ARGS_ALONE ");
    for (int e = 0; e < g->p.extra_count; e++)
        mgx_str_printf(out, "e%d, ", e);
    mgx_str_put(out, "\n");
}

// struct quad_columns and quad_wide, what the results of four columns are computed with; how they are
// loaded, and finish_quad().
static void emit_quads(struct mgx_str *out, const struct mgx_plan_offer *c,
                       const struct gpu_wgmma_product *g)
{
    static const char *const names[] = {"quad_columns", "quad_wide"};
    for (int kind = KIND_COLUMN; kind <= KIND_WHOLE; kind++) {
        emit_struct(out, c, g, names[kind], (enum kind)kind, QUAD);
        emit_loads(out, c, g, names[kind], (enum kind)kind, QUAD);
    }
    emit_touch(out, c, g);
    mgx_str_put(out, "FUNCTION u32 finish_quad(const struct quad_columns *columns, const struct "
                     "quad_wide *wide");
    emit_params(out, c, g);
    mgx_str_put(out, ", int row, int column, SUM x0, SUM x1, SUM x2, SUM x3)\n{\n"
                     "    const SUM sums[4] = {x0, x1, x2, x3};\n    RESULT r[4];\n");
    emit_single_places(out, c, g);
    emit_values(out, c, g, QUAD);
    mgx_str_put(out, "    return four_");
    if (is_fp8(c->out->type))
        put_word_type(out, c, g);
    else
        mgx_str_put(out, "bytes");
    mgx_str_put(out, "(r);\n}\n");
    emit_place(out, c, g);
}

static void emit_operand_of_one(struct mgx_str *out, const struct mgx_plan_offer *c,
                                const struct gpu_wgmma_product *g, int number, int e)
{
    const struct mgx_shape *s = &c->in[g->p.extra[e]];
    const char *type = gpu_product_is_real(&g->p, number) ? "float" : gpu_type_value(s->type);
    char at[16], array[16];
    snprintf(at, sizeof at, "at%d", e);
    snprintf(array, sizeof array, "e%d", e);
    emit_at(out, at, g, s, true);
    mgx_str_printf(out, "    const %s v%d = ", type, number);
    if (g->summed == e + 1)
        mgx_str_put(out, "0");
    else if (line_of(c, g, e).kind == KIND_NUMBER)
        mgx_str_put(out, array);
    else
        gpu_emit_load(out, s->type, array, at);
    mgx_str_put(out, ";\n");
}

// One value, wherever its operands lie.
static void emit_finish_one(struct mgx_str *out, const struct mgx_plan_offer *c,
                            const struct gpu_wgmma_product *g)
{
    const int count = g->p.tail ? g->p.tail->in_count : 1;
    mgx_str_put(out, "FUNCTION void finish_one(C_TYPE *c");
    emit_params(out, c, g);
    mgx_str_put(out, ", int row, int column, SUM sum)\n{\n");
    emit_at(out, "at", g, c->out, true);
    for (int i = 0, e = 0; i < count; i++) {
        if (i == g->p.place || !g->p.tail) {
            mgx_str_printf(out, "    const TAKEN v%d = (TAKEN)sum;\n", i);
            continue;
        }
        emit_operand_of_one(out, c, g, i, e++);
    }
    if (g->p.tail)
        gpu_emit_body_call(out, c->out->type, count);
    mgx_str_put(out, g->alone ? "    if (c)\n        " : "    ");
    if (is_cut(g))
        mgx_str_printf(out, "c[at] = cut_%s(y);", word_type(c->out->type));
    else
        gpu_emit_store(out, c->out->type, "c", "at", g->p.tail ? "y" : "v0");
    mgx_str_printf(out, g->ranged ? "\n    see(seen, %s);\n}\n" : "\n}\n", g->p.tail ? "y" : "v0");
}

// --- text: the matrix instruction for a width ---

static const char *byte_type(const struct gpu_wgmma_product *g, int operand)
{
    const enum mgx_type type = g->p.ins->in[operand]->shape.type;
    return type == MGX_FP8E4M3FN ? "e4m3"
           : type == MGX_FP8E5M2 ? "e5m2"
           : type == MGX_INT8    ? "s8"
                                 : "u8";
}

static void emit_multiply(struct mgx_str *out, int columns, const struct gpu_wgmma_product *g)
{
    static const char *const types[] = {[GPU_MAP_HALF] = "f16",
                                        [GPU_MAP_BF16] = "bf16",
                                        [GPU_MAP_FLOAT] = "bf16",
                                        [GPU_MAP_TF32] = "tf32"};
    const bool bytes = gpu_wgmma_is_narrow(g->units);
    const struct gpu_multiply m = {.name = "multiply",
                                   .type = bytes ? byte_type(g, 0) : types[g->map.type],
                                   .of_b = bytes ? byte_type(g, 1) : NULL,
                                   .whole = bytes && !gpu_wgmma_is_fp8(g->units),
                                   .columns = columns,
                                   .registers = gpu_wgmma_by_registers(g->units)};
    gpu_emit_multiply(out, &m);
    mgx_str_printf(out, "#define SUMMED %d\n", g->summed > 0);
    mgx_str_put(out, g->summed ? "#define ONES_PARAM , i32 (*ones)[4]\n#define ONES_ARG , ones\n"
                               : "#define ONES_PARAM\n#define ONES_ARG\n");
    if (!g->summed)
        return;
    struct gpu_multiply ones = m;
    ones.name = "multiply_ones";
    ones.of_b = "u8";
    ones.columns = 8;
    gpu_emit_multiply(out, &ones);
    mgx_str_printf(out, "#define ZERO %d\n#define BEYOND %d\n", g->zero, g->beyond);
}

// Lengths and steps of a as the copy engine sees it: a matrix, or channels, width, height, depth, images.
static void emit_operand_sizes(struct mgx_str *out, const struct gpu_wgmma_product *g)
{
    const struct gpu_tensor_map *map = &g->map;
    const int images = GPU_WGMMA_AXES + 1, last = map->rank - 1;
    for (int i = 0; i < (g->image ? images + 1 : map->rank); i++) {
        const int at = g->image && i == images ? last : g->image && i >= last ? -1 : i;
        mgx_str_printf(out, "#define A_LEN%d %" PRIu64 "\n#define A_STEP%d %" PRIu64 "LL\n", i,
                       at < 0 ? 1 : map->lens[at], i,
                       at < 0   ? 0
                       : at > 0 ? map->strides[at] / g->size
                                : 1);
    }
}

static void emit_sizes(struct mgx_str *out, const struct mgx_plan_offer *c,
                       const struct gpu_wgmma_product *g, const struct gpu_wgmma_tile *t)
{
    mgx_str_printf(out,
                   "#define M %" PRId64 "\n#define N %" PRId64 "\n#define BLOCKS %d\n"
                   "#define TILE_M %d\n#define TILE_N %d\n#define DEEP %d\n#define STAGES %d\n"
                   "#define GROUPS %d\n#define SPLIT %d\n#define PER_SM %d\n"
                   "#define ROOM_BYTES %zu\n#define PART %d\n#define STAYS %d\n#define TURNS %d\n"
                   "#define LENDS %d\n#define ROWS_FIRST %d\n#define PROMOTES %d\n"
                   "#define PROMOTED %d\n",
                   g->rows, g->p.columns, g->blocks, t->rows, t->columns, t->deep, t->stages,
                   t->groups, t->split, t->per_multiprocessor, gpu_wgmma_room(t), t->part, t->stays,
                   t->turns, gpu_wgmma_lends(t), g->p.columns > g->rows, gpu_wgmma_is_fp8(g->units),
                   gpu_wgmma_parts(t));
    const int boxes = gpu_wgmma_boxes(g->units);
    mgx_str_printf(out,
                   "#define BOXES %d\n#define BLOCK_DEPTH %d\n#define ROW_BYTES %d\n"
                   "#define B_BYTES_OF_COLUMN %d\n"
                   "#define PIECES %d\n#define AHEAD %d\n#define IMAGE %d\n#define FOLDED %d\n",
                   boxes, g->block / boxes, gpu_wgmma_a_bytes(g->units) / boxes,
                   gpu_wgmma_b_bytes(g->units), g->units == GPU_WGMMA_SPLIT ? GPU_WGMMA_PIECES : 1,
                   gpu_wgmma_ahead(t), g->image, g->fold.bytes > 0);
    emit_operand_sizes(out, g);
    mgx_str_printf(out, "#define UNIT %" PRId64 "\n", g->unit);
    if (g->unit < g->p.columns)
        mgx_str_printf(out, "#define CHANNEL_OF(column) ((column) / UNIT * %" PRId64 ")\n",
                       g->channels);
    else
        mgx_str_put(out, "#define CHANNEL_OF(column) 0\n");
    if (!g->image)
        return;
    mgx_str_printf(out, "#define AXES %d\n#define CHANNEL_BLOCKS %d\n", g->map.rank - 2,
                   g->channel_blocks * boxes);
    for (int i = 0; i < GPU_WGMMA_AXES; i++) {
        const char axis = "DHW"[i];
        mgx_str_printf(out,
                       "#define OUT_%c %" PRId64 "\n#define STEP_%c %d\n#define PAD_%c %d\n"
                       "#define FAR_%c %d\n#define TAPS_%c %d\n",
                       axis, gpu_wgmma_len(c->out, i), axis, g->step[i], axis, g->pad[i], axis,
                       g->far[i], axis, g->taps[i]);
    }
}

// fold_bits(): the bits of one value as it is multiplied.
static void emit_make(struct mgx_str *out, const struct mgx_plan_offer *c,
                      const struct gpu_wgmma_product *g)
{
    mgx_str_put(out, "FUNCTION u32 fold_bits(FOLD_FROM x)\n{\n");
    if (!g->p.make) {
        mgx_str_put(out, g->line == 4   ? "    return BITS_OF_FLOAT(x);\n}\n"
                         : g->line == 8 ? "    return x;\n}\n"
                                        : "    return (u8)x;\n}\n");
        return;
    }
    const enum mgx_type from = c->in[g->p.operand[0]].type, to = g->p.make->shape.type;
    mgx_str_printf(out, "    %s y;\n    make(", gpu_type_value(to));
    gpu_emit_widened(out, from, "x");
    mgx_str_printf(out, ", &y);\n    return %s(y);\n}\n",
                   to == MGX_HALF   ? "to_half"
                   : to == MGX_BF16 ? "to_bf16"
                                    : "(u8)");
}

// Are all channels of a packed line neighbours in whole lines of the image, packed as they are?
static bool folds_lines(const struct gpu_wgmma_product *g, const struct mgx_shape *x)
{
    bool whole = !g->p.make && x->strides[1] == 1 && x->lens[1] % g->line == 0;
    for (int i = 0; i < x->rank; i++)
        whole = whole && (i == 1 || x->lens[i] == 1 || x->strides[i] % g->line == 0);
    return whole;
}

// down x across pixels to one; a line of channels a thread.
static void emit_fold(struct mgx_str *out, const struct mgx_plan_offer *c,
                      const struct gpu_wgmma_product *g)
{
    const struct mgx_shape *x = &c->in[g->p.operand[0]];
    const struct gpu_wgmma_fold *f = &g->fold;
    mgx_str_printf(out,
                   "#define DOWN %d\n#define ACROSS %d\n#define FOLD_LINES %" PRId64
                   "\n#define FOLD_W %" PRId64 "\n#define FOLD_H %" PRId64
                   "\n#define FOLD_D %" PRId64 "\n#define FOLD_COUNT %" PRId64
                   "\n#define FOLD_PAD_H %d\n#define FOLD_PAD_W %d\n",
                   f->down, f->across, f->channels / g->line, f->width, f->height, f->depth,
                   x->lens[0] * f->depth * f->height * f->width * f->channels / g->line,
                   f->pad[GPU_WGMMA_HEIGHT], f->pad[GPU_WGMMA_WIDTH]);
    mgx_str_printf(out, "#define FOLD_LINE %d\n#define FOLD_FROM %s\n#define FOLD_BESIDE %du\n",
                   g->line, gpu_type_memory(x->type), gpu_product_beside(&g->p) & 255);
    mgx_str_printf(out, "#define FOLD_WHOLE %d\n", folds_lines(g, x));
    emit_make(out, c, g);
    const bool few = mgx_shape_space(x) < INT32_MAX / 2 && f->bytes < INT32_MAX / 2;
    mgx_str_printf(out, "#define NUMBER %s\n", few ? "int" : "i64");
    mgx_str_printf(out,
                   "#define CHANNELS %" PRId64 "\n#define HEIGHT %" PRId64
                   "\n#define WIDTH %" PRId64 "\n#define IMAGE_STEP %" PRId64
                   "\n#define PLANE_STEP %" PRId64 "\n#define CHANNEL_STEP %" PRId64
                   "\n#define ROW_STEP %" PRId64 "\n#define PIXEL_STEP %" PRId64 "\n",
                   x->lens[1], gpu_wgmma_len(x, GPU_WGMMA_HEIGHT),
                   gpu_wgmma_len(x, GPU_WGMMA_WIDTH), x->lens[0] > 1 ? x->strides[0] : 0,
                   gpu_wgmma_stride(x, GPU_WGMMA_DEPTH), x->lens[1] > 1 ? x->strides[1] : 0,
                   gpu_wgmma_stride(x, GPU_WGMMA_HEIGHT), gpu_wgmma_stride(x, GPU_WGMMA_WIDTH));
    GPU_PUT(out, fold);
}

// NUMBERS(): what is one for all results; constants, and what is of a range that the block has joined.
// READ_NUMBERS(): what other kernels have written, behind loads of constants, which wait for nobody.
static void emit_numbers(struct mgx_str *out, const struct mgx_plan_offer *c,
                         const struct gpu_wgmma_product *g)
{
    struct mgx_str later = {0};
    mgx_str_put(out, "#define NUMBERS()");
    for (int e = 0; e < g->p.extra_count; e++) {
        const enum mgx_type type = c->in[g->p.extra[e]].type;
        const int near = g->range.parts ? g->range.number[e] : 0;
        const bool here = near || c->constant[g->p.extra[e]];
        char array[16], at[4];
        if (line_of(c, g, e).kind != KIND_NUMBER)
            continue;
        snprintf(array, sizeof array, near ? "near_range" : "far%d", e);
        snprintf(at, sizeof at, "%d", near ? near - 1 : 0);
        mgx_str_printf(out, " %s e%d = %s", gpu_type_value(type), e, here ? "" : "0;");
        if (!here)
            mgx_str_printf(&later, "%s e%d = ", later.size ? "" : " GRID_WAIT();", e);
        gpu_emit_load(here ? out : &later, type, array, at);
        mgx_str_put(here ? out : &later, ";");
    }
    mgx_str_printf(out, "\n#define READ_NUMBERS()%s\n", mgx_str_text(&later));
    mgx_str_fini(&later);
}

const char *gpu_wgmma_emit(struct mgx_str *out, const struct mgx_plan_offer *c,
                           const struct gpu_wgmma_product *g, const struct gpu_wgmma_tile *t)
{
    assert(t->columns > 0 && t->rows > 0);
    GPU_PUT(out, lines);
    if (g->ranged || g->range.parts) {
        mgx_str_printf(out, "#define GROUPS %d\n", t->groups);
        GPU_PUT(out, ordered_bits);
        GPU_PUT(out, wgmma_range);
    }
    if (g->units == GPU_WGMMA_QUANTIZED)
        GPU_PUT(out, range_scale);
    mgx_str_put(out, "__shared__ u8 near_table[256];\n"
                     "#define PW_LOOK_UP(table, i) near_table[i]\n");
    if (mgx_type_is_half_or_bf16(c->out->type) || is_fp8(c->out->type))
        mgx_str_put(out, "#define erf(x) narrow_erf(x)\n");
    const struct gpu_function both[] = {{.name = "body",
                                         .ins = g->p.tail,
                                         .real = g->p.real,
                                         .looks_up = true,
                                         .stored = true,
                                         .cut = is_cut(g)},
                                        {.name = "make", .ins = g->p.make}};
    const char *why = g->p.tail || g->p.make ? gpu_emit_functions(out, c, both, 2) : NULL;
    if (why)
        return why;
    const bool bytes = gpu_wgmma_is_narrow(g->units) && !gpu_wgmma_is_fp8(g->units);
    const bool whole = mgx_type_is_integral(c->out->type);
    mgx_str_printf(out, "#define SUM %s\n#define SUM_REGISTER \"%s\"\n#define RESULT %s\n",
                   bytes ? "i32" : "float", bytes ? "r" : "f", whole ? "i32" : "float");
    gpu_product_emit_real(out, &g->p);
    mgx_str_printf(out, "#define C_TYPE %s\n#define RANGED %d\n#define PARAMS",
                   gpu_type_memory(c->out->type), g->ranged);
    emit_params(out, c, g);
    emit_kernel_params(out, c, g);
    mgx_str_put(out, g->ranged ? "\n#define ARGS , seen" : "\n#define ARGS");
    if (g->units == GPU_WGMMA_SPLIT)
        mgx_str_put(out, ", a, b");
    for (int e = 0; e < g->p.extra_count; e++)
        mgx_str_printf(out, ", e%d", e);
    mgx_str_put(out, "\n");
    emit_finish_one(out, c, g);
    emit_sizes(out, c, g, t);
    emit_struct(out, c, g, "columns", KIND_COLUMN, LINE);
    emit_struct(out, c, g, "wide", KIND_WHOLE, LINE);
    const bool lines = leaves_lines(c, g);
    mgx_str_printf(out, "#define WIDE_OK %d\n#define ROWS_SIDE_BY_SIDE %d\n", lines,
                   c->out->strides[g->column_axis] != 1);
    if (lines) {
        emit_loads(out, c, g, "columns", KIND_COLUMN, LINE);
        emit_loads(out, c, g, "wide", KIND_WHOLE, LINE);
        emit_finish_wide(out, c, g);
    }
    mgx_str_printf(out, "#define PAIRS %d\n", gpu_wgmma_pairs(c, g));
    if (gpu_wgmma_pairs(c, g))
        emit_pairs(out, c, g);
    mgx_str_printf(out, "#define QUADS %d\n", g->quads);
    if (g->quads)
        emit_quads(out, c, g);
    mgx_str_put(out, "#define ADDRESSES (u64)c");
    for (int e = 0; e < g->p.extra_count; e++)
        if (line_of(c, g, e).kind < KIND_NUMBER)
            mgx_str_printf(out, " | (u64)e%d", e);
    mgx_str_put(out, "\n");
    emit_numbers(out, c, g);
    emit_multiply(out, t->columns / gpu_wgmma_parts(t), g);
    GPU_PUT(out, tiles);
    GPU_PUT(out, cluster);
    GPU_PUT(out, ring);
    if (g->summed)
        GPU_PUT(out, wgmma_ones);
    if (g->units == GPU_WGMMA_SPLIT)
        GPU_PUT(out, wgmma_split);
    if (g->units == GPU_WGMMA_QUANTIZED) {
        mgx_str_printf(out, "#define RANGE_PARTS %d\n#define FIRST_PARTS %d\n", g->range.parts,
                       g->range.first_parts);
        GPU_PUT(out, wgmma_quantize);
    }
    mgx_str_printf(out, "#define BORDER %d\n", g->border.kinds > 0);
    GPU_PUT(out, wgmma);
    if (g->border.kinds)
        gpu_wgmma_emit_border(out, g);
    GPU_PUT(out, wgmma_leave);
    if (g->fold.bytes)
        emit_fold(out, c, g);
    return NULL;
}

int gpu_wgmma_result_bytes(const struct mgx_plan_offer *c, const struct gpu_wgmma_product *g)
{
    int bytes = (int)mgx_type_size(c->out->type);
    for (int e = 0; e < g->p.extra_count; e++)
        if (line_of(c, g, e).kind == KIND_WHOLE)
            bytes += (int)mgx_type_size(c->in[g->p.extra[e]].type);
    return bytes;
}
