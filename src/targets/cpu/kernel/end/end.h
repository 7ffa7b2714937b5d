// SPDX-License-Identifier: MIT
// The end of a product: what becomes of its sums before they leave the L1 cache. It is a list of
// steps, done one after the other on every value x of a tile, j its column, r the operand's value
// at its place, the operand a tensor like the result that one step of a list reads.
//
//     add        x + r
//     multiply   x * r
//     act        act(x)
//     columns    x * factor[j] + term[j]
//     block      what a block program makes of the tile
//     clamp      min(max(x / divisor, low), high), and low where x is no number
//     round      the nearest whole number, ties to even
//     table      table[round(x) - low] - zero
//     mix        x * keep + (r - zero) * share + term[j]       r a byte; either may be missing
//     scale      x * factor
//     byte       round(x) + zero, as a byte, or what a table has at that byte; ends the list
//
// A list without `byte` ends in floats, stored as the result's type. Lists are in the order above
// with two exceptions: a second add or multiply comes behind the activation instead of before, and
// a second clamp behind `mix`.
//
// Registers do the beginning of a list: a first add, and an activation that is a clamp; kernels of
// bytes do more of some lists, which `form` names. What is left is done on tiles in memory by
// mgx_end_tile. Every way gives the same bits; end_body.h is the meaning in code. Costs of a value
// in L1: some half an instruction for each step but activations and tables.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "targets/cpu/kernel/kernel.h"
#include "targets/cpu/kernel/type.h"
#include "targets/cpu/kernel/vector/act.h"

// A rectangle of finished results, rows `row`, `row + row_step`, ... of the output seen as a matrix
// [outer dimensions][columns]: rows of all batches of a multiplication, pixels of a convolution.
struct mgx_tile {
    float *data; // [rows][cols], rows `stride` floats apart; to be changed in place
    int64_t stride;
    int64_t row, row_step, col; // place in the output
    int rows, cols;
    int thread; // that runs it: an index into per-thread scratch memory
};

typedef void (*mgx_tile_hook)(void *user, const struct mgx_tile *tile);

enum mgx_end_kind {
    MGX_END_ADD,
    MGX_END_MULTIPLY,
    MGX_END_ACT,
    MGX_END_COLUMNS,
    MGX_END_BLOCK,
    MGX_END_CLAMP,
    MGX_END_ROUND,
    MGX_END_TABLE,
    MGX_END_MIX,
    MGX_END_SCALE,
    MGX_END_BYTE
};

// Arrays of columns and tables must outlive what uses the list.
struct mgx_end_step {
    enum mgx_end_kind kind;
    union {
        enum mgx_kernel_type type; // of the operand that `add` and `multiply` read
        struct {
            enum mgx_act act;
            float a, b;
            const float *column; // [columns] in place of a; NULL: none
        } act;
        struct {
            const float *factor, *term;
        } columns;
        mgx_tile_hook block; // its `user` is given with each run
        struct {
            float divisor, low, high; // a divisor of 1 is free
            bool spare;               // changes nothing where bytes are stored with saturation
        } clamp;
        struct {
            const uint8_t *table; // [256]
            int low, zero;
        } table;
        struct {
            float keep, share;
            const float *term;     // NULL: none. Tiles end in memory then, not in registers
            bool reads, is_signed; // an operand, of signed bytes
            int zero;
        } mix;
        float scale;
        struct {
            const uint8_t *table; // [256], by the byte as it lies in memory; NULL: none
            bool is_signed;
            int zero;
        } byte;
    };
};

// Lists that kernels of bytes end in registers without looking at each step; of the others they do
// one step after the other.
//
//     PLAIN     clamp, byte                           no divisor; the clamp spare
//     LOOKUP    clamp, byte with a table              the same
//     MIXED     clamp, [round,] mix, clamp, byte      the last clamp spare; an operand, no term
//     GRID      clamp, round, scale                   floats that were bytes; no divisor
//     FLOATS    nothing, or add
//
// FLOATS is not found in the list: who runs a kernel that has such a way sees it.
enum mgx_end_form {
    MGX_END_ANY,
    MGX_END_PLAIN,
    MGX_END_LOOKUP,
    MGX_END_MIXED,
    MGX_END_GRID,
    MGX_END_FLOATS,
    MGX_END_FORMS
};

enum { MGX_END_STEPS = 12 };

// Made by mgx_end_then; what follows from the steps is kept, as it is asked for with every tile.
struct mgx_end {
    int count;
    enum mgx_end_form form;
    int in_registers; // steps that the registers of any kernel do
    int bytes;  // the first step that makes bytes, or floats of bytes; the count: there is none
    int reader; // the step that reads the operand, one more; 0: none does
    bool has_block;
    struct mgx_end_step step[MGX_END_STEPS];
};

// A list as kernels that end in registers get it, which look at its end and its beginning for every
// tile. step NULL: there is none, tiles end in floats.
struct mgx_end_list {
    const struct mgx_end_step *step, *last;
    enum mgx_end_form form;
};

static inline struct mgx_end_list mgx_end_whole(const struct mgx_end *end)
{
    return (struct mgx_end_list){end->step, &end->step[end->count - 1], end->form};
}

static inline bool mgx_end_list_makes_bytes(const struct mgx_end_list *list)
{
    return list->step && list->last->kind == MGX_END_BYTE;
}

// Appends a step.
void mgx_end_then(struct mgx_end *end, struct mgx_end_step step);
// Takes the block program out.
void mgx_end_drop_block(struct mgx_end *end);
// Floats to bytes by a scale and a zero point, and no more: two steps.
void mgx_end_to_byte(float scale, int zero, bool is_signed, struct mgx_end_step step[2]);
static inline int mgx_end_in_registers(const struct mgx_end *end)
{
    return end->in_registers;
}

static inline int mgx_end_bytes(const struct mgx_end *end)
{
    return end->bytes;
}

// The step that reads the operand; NULL if none does.
static inline const struct mgx_end_step *mgx_end_reader(const struct mgx_end *end)
{
    return end->reader ? &end->step[end->reader - 1] : NULL;
}

static inline bool mgx_end_has_block(const struct mgx_end *end)
{
    return end->has_block;
}

static inline bool mgx_end_makes_bytes(const struct mgx_end *end)
{
    return end->count && end->step[end->count - 1].kind == MGX_END_BYTE;
}

// Whether registers add the operand: before all else.
static inline bool mgx_end_adds_first(const struct mgx_end *end)
{
    return end->count && end->step[0].kind == MGX_END_ADD;
}

// Whether the operand is of bytes.
static inline bool mgx_end_reads_bytes(const struct mgx_end *end)
{
    const struct mgx_end_step *reader = mgx_end_reader(end);
    return reader && reader->kind == MGX_END_MIX;
}

// The activation; MGX_ACT_NONE without one.
enum mgx_act mgx_end_act(const struct mgx_end *end);

// An operand of `mix` is added as an unsigned byte times `share`; its zero point is in an offset
// that is added before, so that no byte is subtracted from, and every kernel does it so: they round
// alike. Signed bytes are unsigned ones that are this much larger.
static inline int mgx_end_raised(const struct mgx_end_step *mix)
{
    return mix->mix.is_signed ? 128 : 0;
}

static inline float mgx_end_offset(const struct mgx_end_step *mix)
{
    return mix->mix.share * (float)-(mix->mix.zero + mgx_end_raised(mix));
}

// --- in memory ---

// What a tile ends with besides its own floats.
struct mgx_end_place {
    const void *operand; // the tile's first value of it: floats, or bytes
    int64_t operand_row; // bytes
    void *hook_user;
    void *out; // where results go, rows `out_row` bytes apart; NULL: floats stay in the tile
    int64_t out_row;
    enum mgx_kernel_type type; // of `out`
    bool rounds;               // bf16 by the processor, of kernels that multiply it
};

// Steps first <= i < last.
struct mgx_end_kernel;
void mgx_end_tile(const struct mgx_end *end, int first, int last,
                  const struct mgx_end_kernel *kernel, const struct mgx_tile *tile,
                  const struct mgx_end_place *place);

// Prints the list: "add, relu, byte".
struct mgx_str;
void mgx_end_print(const struct mgx_end *end, struct mgx_str *out);

// `count` steps, none of them a block, on rows x cols floats, to floats or, by the last step,
// bytes. An activation that is none but a clamp comes first. What is in work may be left where the
// floats are.
struct mgx_end_rows {
    const float *from;
    int64_t from_row; // floats
    int64_t rows, cols, col;
    const char *operand;
    int64_t operand_row;
    char *to; // may be `from`
    int64_t to_row;
    bool rounds; // to bf16 in `to`; by sets that have an instruction for it
};

struct mgx_end_kernel {
    struct mgx_kernel base;
    void (*run)(const struct mgx_end_step *step, int count, const struct mgx_end_rows *rows);
};

MGX_KERNEL_KIND(end)
