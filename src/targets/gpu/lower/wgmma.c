// SPDX-License-Identifier: MIT
// Products and convolutions of 16-bit floats on Hopper's matrix units: kernel/wgmma.gpu with sizes,
// tile and epilogue written for the instruction.
//
//     dot           a: rows (all batches together) x depth, depth innermost; b: constant
//     convolution   a: channels last; 1 x 1 without steps is a dot, the rest is gathered by the copy
//                   engine; few channels are first packed so that a tap's row is one block of 64
//
// b is packed once, columns x depth with every tap filled up to blocks of 64, and lies on the card.
// Results lie as they like; whole lines are written at once where columns are innermost.
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op/op.h"
#include "plan/join.h"
#include "targets/gpu/emit/type.h"
#include "targets/gpu/kernel/text.h"
#include "targets/gpu/lower/product.h"
#include "targets/gpu/lower/wgmma.h"

enum { BLOCK = 64, MOST_LOW = 127, MOST_STEP = 8, MOST_FAR = 255, LINE = 8 };

// A product as this kernel sees it.
struct product {
    struct gpu_product p;
    int64_t rows, channels; // channels of one tap: the depth of a dot
    int taps_h, taps_w, channel_blocks, blocks;
    bool image;                  // gathered by the copy engine
    struct gpu_tensor_map map;   // of a, without its address
    int step[2], pad[2], far[2]; // height, width
};

struct call {             // state of a step
    struct gpu_call base; // first: its unit and its kernel
    struct gpu_tensor_map a;
    int a_in;
    _Alignas(64) unsigned char b[GPU_TENSOR_MAP_BYTES];
    // To pack b when the plan is complete:
    struct mgx_tensor weights;
    void *packed; // on the card
    int64_t columns, channels, blocks;
    int tile_columns;
    int taps_h, taps_w, channel_blocks;
    bool dot, bf16;
};

// --- what is offered ---

static bool is_narrow(enum mgx_type type)
{
    return type == MGX_HALF || type == MGX_BF16;
}

// One stride for all of these axes together, in their order; false if there is none.
static bool merge(const struct mgx_shape *s, const int *axes, int count, int64_t *stride)
{
    int64_t len = 1;
    *stride = 0;
    for (int i = count - 1; i >= 0; i--) {
        const int axis = axes[i];
        if (s->lens[axis] == 1)
            continue;
        if (len == 1)
            *stride = s->strides[axis];
        else if (s->strides[axis] != *stride * len)
            return false;
        len *= s->lens[axis];
    }
    return true;
}

// The axes that a row's number counts through, outermost first.
static int row_axes(const struct gpu_product *p, const struct mgx_shape *s, int *axes)
{
    int count = 0;
    for (int i = 0; i < s->rank; i++)
        if (i != (p->ins->op == &mgx_op_dot ? s->rank - 1 : 1))
            axes[count++] = i;
    return count;
}

static int column_axis(const struct gpu_product *p, const struct mgx_shape *s)
{
    return p->ins->op == &mgx_op_dot ? s->rank - 1 : 1;
}

static bool plain_matrix(struct product *g, const struct mgx_shape *a, const int *axes, int count,
                         int column)
{
    int64_t stride;
    if (!merge(a, axes, count, &stride) || (a->strides[column] != 1 && a->lens[column] > 1))
        return false;
    stride = g->rows == 1 || stride == 0 ? (a->lens[column] + LINE - 1) / LINE * LINE : stride;
    g->map = (struct gpu_tensor_map){.rank = 2,
                                     .bf16 = a->type == MGX_BF16,
                                     .lens = {(uint64_t)a->lens[column], (uint64_t)g->rows},
                                     .strides = {2, (uint64_t)stride * 2}};
    return stride % LINE == 0;
}

static const char *read_dot(struct mgx_plan_offer *c, struct product *g)
{
    const struct mgx_shape *a = &c->in[g->p.operand[0]], *b = &c->in[g->p.operand[1]];
    int axes[MGX_MAX_RANK];
    for (int i = 0; i < b->rank - 2; i++)
        if (b->lens[i] > 1 && b->strides[i])
            return "another right operand for every batch entry";
    g->rows = g->p.batches * g->p.rows;
    g->channels = g->p.depth;
    g->taps_h = g->taps_w = 1;
    if (plain_matrix(g, a, axes, row_axes(&g->p, a, axes), a->rank - 1))
        return NULL;
    c->want_in[g->p.operand[0]] = MGX_PLAN_ROW_MAJOR;
    return "rows of the left operand are not lines";
}

// The attributes of a convolution over two axes, within what the copy engine counts to.
static bool read_window(const struct mgx_plan_offer *c, struct product *g)
{
    const struct mgx_shape *w = &c->in[g->p.operand[1]];
    const struct mgx_ints step = mgx_ins_ints(g->p.ins, "stride");
    const struct mgx_ints far = mgx_ins_ints(g->p.ins, "dilation");
    const struct mgx_ints pad = mgx_ins_ints(g->p.ins, "padding");
    for (int i = 0; i < 2; i++) { // 0: height
        if (step.v[i] > MOST_STEP || pad.v[i] > MOST_LOW ||
            far.v[i] * (w->lens[i + 2] - 1) > MOST_FAR)
            return false;
        g->step[i] = (int)step.v[i];
        g->pad[i] = (int)pad.v[i];
        g->far[i] = (int)far.v[i];
    }
    g->taps_h = (int)w->lens[2];
    g->taps_w = (int)w->lens[3];
    return true;
}

// The map of an image; axes 1 to 3 of the map are axes 3, 2 and 0 of the shape.
static bool set_image(const struct mgx_plan_offer *c, struct product *g)
{
    static const int axis[] = {1, 3, 2, 0};
    const struct mgx_shape *x = &c->in[g->p.operand[0]];
    struct gpu_tensor_map *map = &g->map;
    g->image = true;
    *map = (struct gpu_tensor_map){.rank = 4, .image = true, .bf16 = x->type == MGX_BF16};
    for (int i = 0; i < 4; i++) {
        const int64_t len = x->lens[axis[i]], stride = x->strides[axis[i]];
        map->lens[i] = (uint64_t)len;
        map->strides[i] = len == 1 ? 16 : (uint64_t)stride * 2;
        if (len > 1 && (i ? stride <= 0 || stride % LINE : stride != 1))
            return false;
    }
    for (int i = 0; i < 2; i++) { // width first
        const int64_t last = (c->out->lens[3 - i] - 1) * g->step[1 - i] - g->pad[1 - i];
        const int64_t high = last - (x->lens[3 - i] - 1);
        map->low[i] = -g->pad[1 - i];
        map->high[i] = (int)high;
        map->step[i] = (unsigned)g->step[1 - i];
        if (high > MOST_LOW || high < -MOST_LOW)
            return false;
    }
    return true;
}

static bool is_point(const struct product *g)
{
    return g->taps_h == 1 && g->taps_w == 1 && g->step[0] == 1 && g->step[1] == 1 &&
           g->pad[0] == 0 && g->pad[1] == 0;
}

static const char *read_convolution(struct mgx_plan_offer *c, struct product *g)
{
    const struct mgx_shape *x = &c->in[g->p.operand[0]];
    int axes[MGX_MAX_RANK];
    if (x->rank != 4 || g->p.batches != 1)
        return "groups, or another number of axes than four";
    g->rows = g->p.rows;
    g->channels = x->lens[1];
    if (!read_window(c, g))
        return "steps, padding or dilation beyond the copy engine's";
    if (is_point(g) && plain_matrix(g, x, axes, row_axes(&g->p, x, axes), 1))
        return NULL;
    return set_image(c, g) ? NULL : "an image whose pixels are not lines of channels";
}

static const char *read(struct mgx_plan_offer *c, struct product *g)
{
    memset(g, 0, sizeof *g);
    const struct gpu_device *d = gpu_machine(c->machine)->device;
    if (!(d->properties.features & GPU_TENSOR_MAPS))
        return "no matrix units of Hopper's kind";
    const char *why = gpu_product_read(c, &g->p);
    if (why)
        return why;
    const enum mgx_type type = c->in[g->p.operand[0]].type;
    if (!is_narrow(type) || c->in[g->p.operand[1]].type != type)
        return "operands that are not both half or both bf16";
    if (!c->constant[g->p.operand[1]])
        return "a right operand that is computed";
    if (g->p.depth < LINE || mgx_shape_elements(c->out) == 0)
        return "hardly any depth, or no results";
    why = g->p.ins->op == &mgx_op_dot ? read_dot(c, g) : read_convolution(c, g);
    if (!why && c->in_offset && c->in_offset[g->p.operand[0]] % 16) {
        c->want_in[g->p.operand[0]] = MGX_PLAN_LIKE_RESULT;
        why = "a left operand that begins between multiples of 16 bytes";
    }
    g->channel_blocks = (int)((g->channels + BLOCK - 1) / BLOCK);
    g->blocks = g->taps_h * g->taps_w * g->channel_blocks;
    return why;
}

// --- text: operands of the epilogue, eight columns at a time ---

enum kind {
    KIND_COLUMN, // a constant with one value a column: read before anything else
    KIND_WHOLE,  // lines of columns
    KIND_SINGLE, // anything else: value by value
};

struct line { // how an array lies
    enum kind kind;
    enum mgx_type type;
    int words; // of eight values
};

static bool is_lines(const struct gpu_product *p, const struct mgx_shape *s, bool *one_row)
{
    int axes[MGX_MAX_RANK];
    const int count = row_axes(p, s, axes), column = column_axis(p, s);
    *one_row = true;
    for (int i = 0; i < count; i++) {
        if (s->lens[axes[i]] == 1 || s->strides[axes[i]] == 0)
            continue;
        *one_row = false;
        if (s->strides[axes[i]] % LINE)
            return false;
    }
    return s->strides[column] == 1 && s->lens[column] % LINE == 0 &&
           (is_narrow(s->type) || s->type == MGX_FLOAT);
}

static struct line line_of(const struct mgx_plan_offer *c, const struct gpu_product *p, int e)
{
    const struct mgx_shape *s = &c->in[p->extra[e]];
    bool one_row;
    struct line line = {KIND_SINGLE, s->type, is_narrow(s->type) ? 4 : 8};
    if (is_lines(p, s, &one_row))
        line.kind = one_row && c->constant[p->extra[e]] ? KIND_COLUMN : KIND_WHOLE;
    return line;
}

// "const i64 NAME = ...": the offset of (row, column); rows are divided only where they must be.
static void emit_at(struct mgx_str *out, const char *name, const struct gpu_product *p,
                    const struct mgx_shape *s, bool with_row)
{
    int axes[MGX_MAX_RANK];
    int64_t stride = 0;
    const int count = row_axes(p, s, axes), column = column_axis(p, s);
    mgx_str_printf(out, "    const i64 %s = (i64)column * %" PRId64, name,
                   s->lens[column] > 1 ? s->strides[column] : 0);
    if (with_row && merge(s, axes, count, &stride)) {
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

static void emit_params(struct mgx_str *out, const struct mgx_plan_offer *c,
                        const struct gpu_product *p)
{
    for (int e = 0; e < p->extra_count; e++)
        mgx_str_printf(out, ", const GLOBAL %s *e%d", gpu_type_memory(c->in[p->extra[e]].type), e);
}

static void emit_struct(struct mgx_str *out, const struct mgx_plan_offer *c,
                        const struct gpu_product *p, const char *name, enum kind kind)
{
    mgx_str_printf(out, "struct %s {\n    u32 none;\n", name);
    for (int e = 0; e < p->extra_count; e++) {
        const struct line line = line_of(c, p, e);
        if (line.kind == kind)
            mgx_str_printf(out, "    u32 e%d[%d];\n", e, line.words);
    }
    mgx_str_put(out, "};\n");
}

static void emit_loads(struct mgx_str *out, const struct mgx_plan_offer *c,
                       const struct gpu_product *p, const char *name, enum kind kind)
{
    mgx_str_printf(out, "FUNCTION void load_%s(struct %s *x", name, name);
    emit_params(out, c, p);
    mgx_str_put(out, kind == KIND_COLUMN ? ", int column)\n{\n" : ", int row, int column)\n{\n");
    for (int e = 0; e < p->extra_count; e++) {
        const struct line line = line_of(c, p, e);
        char at[16];
        snprintf(at, sizeof at, "at%d", e);
        if (line.kind != kind)
            continue;
        emit_at(out, at, p, &c->in[p->extra[e]], kind == KIND_WHOLE);
        mgx_str_printf(out, "    read_words_%d(x->e%d, e%d + %s);\n", line.words, e, e, at);
    }
    mgx_str_put(out, "}\n");
}

static const char *word_type(enum mgx_type type)
{
    return type == MGX_HALF ? "half" : type == MGX_BF16 ? "bf16" : "float";
}

static void emit_operand(struct mgx_str *out, const struct mgx_plan_offer *c,
                         const struct gpu_product *p, int number, int e)
{
    const struct mgx_shape *s = &c->in[p->extra[e]];
    const struct line line = line_of(c, p, e);
    mgx_str_printf(out, "        const %s v%d = ", gpu_type_value(s->type), number);
    if (line.kind == KIND_SINGLE) {
        char at[48], array[16];
        snprintf(at, sizeof at, "at%d + j * %" PRId64, e,
                 s->lens[column_axis(p, s)] > 1 ? s->strides[column_axis(p, s)] : 0);
        snprintf(array, sizeof array, "e%d", e);
        gpu_emit_load(out, s->type, array, at);
        mgx_str_put(out, ";\n");
        return;
    }
    mgx_str_printf(out, "value_%s(%s->e%d, j);\n", word_type(s->type),
                   line.kind == KIND_COLUMN ? "columns" : "wide", e);
}

static void emit_finish_wide(struct mgx_str *out, const struct mgx_plan_offer *c,
                             const struct gpu_product *p)
{
    const int count = p->tail ? p->tail->in_count : 1;
    mgx_str_put(out, "FUNCTION void finish_wide(C_TYPE *c");
    emit_params(out, c, p);
    mgx_str_put(out, ", const struct columns *columns, const struct wide *wide, int row, int "
                     "column, const float *sums)\n{\n    float r[8];\n");
    emit_at(out, "at", p, c->out, true);
    for (int e = 0; e < p->extra_count; e++) {
        char at[16];
        snprintf(at, sizeof at, "at%d", e);
        if (line_of(c, p, e).kind == KIND_SINGLE)
            emit_at(out, at, p, &c->in[p->extra[e]], true);
    }
    mgx_str_put(out, "#pragma unroll\n    for (int j = 0; j < 8; j++) {\n");
    for (int i = 0, e = 0; i < count; i++) {
        if (i == p->place || !p->tail)
            mgx_str_printf(out, "        const float v%d = sums[j];\n", i);
        else
            emit_operand(out, c, p, i, e++);
    }
    if (p->tail)
        gpu_emit_body_call(out, c->out->type, count);
    mgx_str_printf(out, "        r[j] = (float)%s;\n    }\n", p->tail ? "y" : "v0");
    mgx_str_printf(out, "    write_%s(c + at, r);\n}\n", word_type(c->out->type));
}

// One value, wherever its operands lie.
static void emit_finish_one(struct mgx_str *out, const struct mgx_plan_offer *c,
                            const struct gpu_product *p)
{
    const int count = p->tail ? p->tail->in_count : 1;
    mgx_str_put(out, "FUNCTION void finish_one(C_TYPE *c");
    emit_params(out, c, p);
    mgx_str_put(out, ", int row, int column, float sum)\n{\n");
    emit_at(out, "at", p, c->out, true);
    for (int i = 0, e = 0; i < count; i++) {
        if (i == p->place || !p->tail) {
            mgx_str_printf(out, "    const float v%d = sum;\n", i);
            continue;
        }
        const struct mgx_shape *s = &c->in[p->extra[e]];
        char at[16], array[16];
        snprintf(at, sizeof at, "at%d", e);
        snprintf(array, sizeof array, "e%d", e++);
        emit_at(out, at, p, s, true);
        mgx_str_printf(out, "    const %s v%d = ", gpu_type_value(s->type), i);
        gpu_emit_load(out, s->type, array, at);
        mgx_str_put(out, ";\n");
    }
    if (p->tail)
        gpu_emit_body_call(out, c->out->type, count);
    mgx_str_put(out, "    ");
    gpu_emit_store(out, c->out->type, "c", "at", p->tail ? "y" : "v0");
    mgx_str_put(out, "\n}\n");
}

// --- text: the matrix instruction for a width ---

static void emit_multiply(struct mgx_str *out, int columns, bool bf16)
{
    const int sums = columns / 2;
    const char *type = bf16 ? "bf16" : "f16";
    mgx_str_printf(out,
                   "FUNCTION void multiply(float (&d)[%d], u64 a, u64 b, int more)\n{\n"
                   "    asm volatile(\"{.reg .pred p; setp.ne.b32 p, %%%d, 0; "
                   "wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%s {",
                   sums, sums + 2, columns, type, type);
    for (int i = 0; i < sums; i++)
        mgx_str_printf(out, "%s%%%d", i ? "," : "", i);
    mgx_str_printf(out, "}, %%%d, %%%d, p, 1, 1, 0, 0;}\"\n        : ", sums, sums + 1);
    for (int i = 0; i < sums; i++)
        mgx_str_printf(out, "%s\"+f\"(d[%d])", i ? "," : "", i);
    mgx_str_put(out, "\n        : \"l\"(a), \"l\"(b), \"r\"(more));\n}\n");
}

static bool leaves_lines(const struct mgx_plan_offer *c, const struct gpu_product *p)
{
    bool one_row;
    return is_lines(p, c->out, &one_row);
}

static void emit_sizes(struct mgx_str *out, const struct mgx_plan_offer *c, const struct product *g,
                       const struct gpu_wgmma_tile *t)
{
    mgx_str_printf(out,
                   "#define M %" PRId64 "\n#define N %" PRId64 "\n#define BLOCKS %d\n"
                   "#define TILE_M %d\n#define TILE_N %d\n#define DEEP %d\n#define STAGES %d\n"
                   "#define GROUPS %d\n#define SPLIT %d\n#define PER_SM %d\n"
                   "#define ROOM_BYTES %zu\n",
                   g->rows, g->p.columns, g->blocks, t->rows, t->columns, t->deep, t->stages,
                   t->groups, t->split, t->per_multiprocessor, gpu_wgmma_room(t));
    mgx_str_printf(out, "#define IMAGE %d\n", g->image);
    if (!g->image)
        return;
    mgx_str_printf(out,
                   "#define OUT_H %" PRId64 "\n#define OUT_W %" PRId64 "\n"
                   "#define STEP_H %d\n#define STEP_W %d\n#define PAD_H %d\n#define PAD_W %d\n"
                   "#define FAR_H %d\n#define FAR_W %d\n#define TAPS_W %d\n"
                   "#define CHANNEL_BLOCKS %d\n",
                   c->out->lens[2], c->out->lens[3], g->step[0], g->step[1], g->pad[0], g->pad[1],
                   g->far[0], g->far[1], g->taps_w, g->channel_blocks);
}

static const char *emit(struct mgx_str *out, const struct mgx_plan_offer *c,
                        const struct product *g, const struct gpu_wgmma_tile *t)
{
    const struct gpu_product *p = &g->p;
    mgx_str_put(out, gpu_text_lines);
    const char *why = p->tail ? gpu_emit_body(out, c, p->tail) : NULL;
    if (why)
        return why;
    mgx_str_printf(out, "#define C_TYPE %s\n#define PARAMS", gpu_type_memory(c->out->type));
    emit_params(out, c, p);
    mgx_str_put(out, "\n#define ARGS");
    for (int e = 0; e < p->extra_count; e++)
        mgx_str_printf(out, ", e%d", e);
    mgx_str_put(out, "\n");
    emit_finish_one(out, c, p);
    emit_sizes(out, c, g, t);
    emit_struct(out, c, p, "columns", KIND_COLUMN);
    emit_struct(out, c, p, "wide", KIND_WHOLE);
    const bool lines = leaves_lines(c, p);
    mgx_str_printf(out, "#define WIDE_OK %d\n", lines);
    if (lines) {
        emit_loads(out, c, p, "columns", KIND_COLUMN);
        emit_loads(out, c, p, "wide", KIND_WHOLE);
        emit_finish_wide(out, c, p);
    }
    mgx_str_put(out, "#define ADDRESSES (u64)c");
    for (int e = 0; e < p->extra_count; e++)
        if (line_of(c, p, e).kind != KIND_SINGLE)
            mgx_str_printf(out, " | (u64)e%d", e);
    mgx_str_put(out, "\n");
    emit_multiply(out, t->columns, c->in[p->operand[0]].type == MGX_BF16);
    mgx_str_put(out, gpu_text_wgmma);
    return NULL;
}

// --- b ---

// Columns x (taps x channels, each tap filled up with zeros).
static void pack(const struct call *k, uint16_t *to)
{
    const struct mgx_shape *s = &k->weights.shape;
    const uint16_t *from = k->weights.data;
    const int64_t column = s->strides[k->dot ? s->rank - 1 : 0];
    const int64_t channel = s->strides[k->dot ? s->rank - 2 : 1];
    memset(to, 0, (size_t)(k->columns * k->blocks * BLOCK) * sizeof *to);
    for (int64_t n = 0; n < k->columns; n++)
        for (int h = 0; h < k->taps_h; h++)
            for (int w = 0; w < k->taps_w; w++) {
                uint16_t *row =
                    to + (n * k->blocks + (h * k->taps_w + w) * k->channel_blocks) * BLOCK;
                const uint16_t *at = from + n * column;
                if (!k->dot)
                    at += h * s->strides[2] + w * s->strides[3];
                for (int64_t i = 0; i < k->channels; i++)
                    row[i] = at[i * channel];
            }
}

static enum mgx_status bring_b(struct mgx_plan *plan, const struct call *k, struct mgx_diag *diag)
{
    const struct mgx_memory *memory = plan->machine->memory;
    const size_t bytes = (size_t)(k->columns * k->blocks * BLOCK) * sizeof(uint16_t);
    struct mgx_queue *queue = memory->queue_create(memory);
    uint16_t *host = malloc(bytes);
    enum mgx_status status = MGX_OK;
    if (!queue || !host)
        status = mgx_fail_memory(diag);
    if (status == MGX_OK) {
        mgx_plan_join_fill(&plan->store, k->weights.data, false);
        pack(k, host);
        mgx_plan_join_drop(&plan->store, k->weights.data);
        status = memory->copy_in(queue, k->packed, host, bytes, diag);
        const enum mgx_status done = memory->wait(queue, diag);
        status = status == MGX_OK ? done : status;
    }
    memory->queue_destroy(queue);
    free(host);
    return status;
}

static enum mgx_status finish(struct mgx_plan *plan, const struct mgx_plan_step *step,
                              struct mgx_diag *diag)
{
    struct call *k = step->state;
    struct gpu_device *d = gpu_machine(plan->machine)->device;
    const struct gpu_tensor_map b = {.address = k->packed,
                                     .bf16 = k->bf16,
                                     .rank = 2,
                                     .lens = {(uint64_t)(k->blocks * BLOCK), (uint64_t)k->columns},
                                     .strides = {2, (uint64_t)(k->blocks * BLOCK) * 2},
                                     .box = (unsigned)k->tile_columns};
    TRY(bring_b(plan, k, diag));
    TRY(gpu_unit_kernel(k->base.unit, "run", k->base.how.shared, &k->base.kernel, diag));
    return d->api->tensor_map(d, &b, k->b, diag);
}

// --- the step ---

static enum mgx_status run(const struct mgx_plan_step *step, const struct mgx_plan_args *args,
                           struct mgx_diag *diag)
{
    const struct call *k = step->state;
    struct gpu_device *d = gpu_machine(args->machine)->device;
    struct gpu_arg list[GPU_CALL_INPUTS + 3];
    _Alignas(64) unsigned char a[GPU_TENSOR_MAP_BYTES];
    struct gpu_tensor_map map = k->a;
    map.address = args->in[k->a_in];
    if ((uintptr_t)map.address % 16)
        return mgx_fail(diag, MGX_INVALID,
                        "the left operand lies at %p: this card wants multiples of 16 bytes",
                        map.address);
    TRY(d->api->tensor_map(d, &map, a, diag));
    list[0] = (struct gpu_arg){a, sizeof a, false};
    list[1] = (struct gpu_arg){k->b, sizeof k->b, false};
    list[2] = (struct gpu_arg){&args->out, sizeof args->out, true};
    for (int i = 0; i < k->base.in_count; i++)
        list[i + 3] = (struct gpu_arg){&args->in[k->base.in[i]], sizeof(void *), true};
    return d->api->launch(d, gpu_queue_stream(args->queue), k->base.kernel, &k->base.how, list,
                          k->base.in_count + 3, diag);
}

static struct gpu_wgmma_tile choose(const struct mgx_plan_offer *c, const struct product *g)
{
    const struct gpu_properties *card = &gpu_machine(c->machine)->device->properties;
    int bytes = (int)mgx_type_size(c->out->type);
    for (int e = 0; e < g->p.extra_count; e++)
        if (line_of(c, &g->p, e).kind == KIND_WHOLE)
            bytes += (int)mgx_type_size(c->in[g->p.extra[e]].type);
    return gpu_wgmma_choose(&(struct gpu_wgmma_size){.rows = g->rows,
                                                     .columns = g->p.columns,
                                                     .blocks = g->blocks,
                                                     .multiprocessors = card->units,
                                                     .shared_bytes = card->shared_bytes,
                                                     .image = g->image,
                                                     .result_bytes = bytes});
}

static enum mgx_plan_answer take(struct mgx_plan_offer *c, const struct product *g,
                                 const struct gpu_wgmma_tile *t, struct mgx_str *text)
{
    const int64_t tiles =
        ((g->rows + t->rows - 1) / t->rows) * ((g->p.columns + t->columns - 1) / t->columns);
    const size_t bytes = (size_t)g->p.columns * (size_t)g->blocks * BLOCK * sizeof(uint16_t);
    struct call *k = MGX_NEW(c->arena, struct call);
    void *packed = mgx_plan_device_take(c->store, bytes, c->diag);
    if (!k || !packed) {
        mgx_str_fini(text);
        return packed ? mgx_plan_no_memory(c) : MGX_PLAN_FAILED;
    }
    *k = (struct call){.a = g->map,
                       .a_in = g->p.operand[0],
                       .weights = *c->constant[g->p.operand[1]],
                       .packed = packed,
                       .columns = g->p.columns,
                       .tile_columns = t->columns,
                       .channels = g->channels,
                       .blocks = g->blocks,
                       .taps_h = g->taps_h,
                       .taps_w = g->taps_w,
                       .channel_blocks = g->channel_blocks,
                       .dot = g->p.ins->op == &mgx_op_dot,
                       .bf16 = g->map.bf16};
    k->a.box = (unsigned)t->rows;
    const struct gpu_launch how = {.grid = {(unsigned)(tiles * t->split), 1, 1},
                                   .block = {(unsigned)t->groups * 128 + 32, 1, 1},
                                   .shared = gpu_wgmma_shared(t),
                                   .cluster = (unsigned)t->split};
    const enum mgx_plan_answer answer =
        gpu_take_call(c, &k->base, text, &how, g->p.extra, g->p.extra_count);
    if (answer == MGX_PLAN_TAKEN) {
        c->skip_in[g->p.operand[1]] = true;
        c->state = k;
    }
    return answer;
}

static enum mgx_plan_answer prepare(struct mgx_plan_offer *c)
{
    struct product g;
    struct mgx_str text = {0}, detail = {0};
    const char *why = read(c, &g);
    if (why)
        return gpu_decline(c, why);
    struct gpu_wgmma_tile t = choose(c, &g);
    why = emit(&text, c, &g, &t);
    if (why) {
        mgx_str_fini(&text);
        return gpu_decline(c, why);
    }
    c->flops = 2.0 * (double)g.rows * (double)g.p.columns * (double)g.p.depth;
    mgx_str_printf(&detail, "wgmma %dx%d g%d d%d s%d n%d p%d%s%s", t.rows, t.columns, t.groups,
                   t.deep, t.split, t.stages, t.per_multiprocessor, g.image ? ", gathered" : "",
                   g.p.tail ? ", element-wise tail" : "");
    c->detail = mgx_arena_strdup(c->arena, mgx_str_text(&detail));
    mgx_str_fini(&detail);
    return take(c, &g, &t, &text);
}

static const struct gpu_family family = {finish};

const struct mgx_plan_kernel gpu_kernel_wgmma = {
    .name = "gpu::wgmma", .prepare = prepare, .run = run, .more = &family};
