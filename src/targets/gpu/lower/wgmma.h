// SPDX-License-Identifier: MIT
// What the parts of the Hopper kernel's lowering share (kernel/wgmma.gpu): a product as it is read
// (wgmma_read.c), its text (wgmma_text.c), its tile (wgmma_tile.c), its constant operand
// (wgmma_pack.c), its step (wgmma.c).
#pragma once

#include "targets/gpu/device/device.h"
#include "targets/gpu/lower/product.h"
#include "targets/gpu/lower/race.h"

// How the matrix units are used. A block of the depth is 128 bytes of a row of a, but for the last.
enum gpu_wgmma_units {
    GPU_WGMMA_NARROW,   // half and bf16, 64 values a block
    GPU_WGMMA_TF32,     // floats as the units round them, 32 values a block
    GPU_WGMMA_SPLIT,    // floats as sums of three bf16: kernel/wgmma_split.gpu
    GPU_WGMMA_BYTES,    // bytes with or without a sign, 128 values a block, sums of 32 bits
    GPU_WGMMA_BYTES_64, // the same, 64 values a block: a block of the depth is 64 bytes of a row
    GPU_WGMMA_FP8, // OCP's kinds, which lie as bytes do; sums of every 128 values are added in float
    GPU_WGMMA_FP8_64, // the same of 64 values
    // Floats that become bytes on their way, 64 values a block, two rows of 128 bytes of a:
    // kernel/wgmma_quantize.gpu
    GPU_WGMMA_QUANTIZED,
};

enum { GPU_WGMMA_PIECES = 3 }; // of a split float

// The axes of an image, with one place and one tap where it has fewer than three.
enum { GPU_WGMMA_DEPTH, GPU_WGMMA_HEIGHT, GPU_WGMMA_WIDTH, GPU_WGMMA_AXES };

// An image that is packed before it is multiplied: down x across pixels become one with all their
// channels, padding of height and width included. `bytes` 0: it is read as it lies.
struct gpu_wgmma_fold {
    int down, across;
    int64_t channels, depth, height, width; // of the packed image
    int pad[GPU_WGMMA_AXES];                // of the image
    size_t bytes;
};

struct gpu_wgmma_product {
    struct gpu_product p;
    enum gpu_wgmma_units units;
    int block, line; // values of a in a block, and in 16 bytes
    size_t size;     // bytes of a value of a as it is multiplied
    int64_t rows;
    int row_axes[MGX_MAX_RANK], row_axis_count; // that a row's number counts through, outermost
                                                // first: in a's order of memory
    int column_axis;
    int64_t channels; // of one tap of what is read: the depth of a dot, or a unit's
    // Columns that read the same of a: all of them, or those of a few of a convolution's groups. Every
    // unit's weights are packed as if its columns read all its channels: zeros beside a group's own.
    int64_t unit;
    int groups_of_unit;
    int taps[GPU_WGMMA_AXES], channel_blocks, blocks;
    bool image;                // gathered by the copy engine
    struct gpu_tensor_map map; // of a, without its address
    int step[GPU_WGMMA_AXES], pad[GPU_WGMMA_AXES], far[GPU_WGMMA_AXES]; // of the gathering
    struct gpu_wgmma_fold fold;
    // Bytes that are not 0 beside an image that is gathered as it lies: most taps outside on either side, and how
    // many kinds of places there are (wgmma_border.c); 0: none.
    struct {
        int low[GPU_WGMMA_AXES], high[GPU_WGMMA_AXES], kinds;
    } border;
    // Results are bytes, finished four by four in registers: sixteen columns of b are packed in the order
    // that gives a thread four neighbours.
    bool quads;
    // Extra number summed - 1 is what a's rows sum up to times `zero`: it goes off before the results are
    // finished, and is 0 there (kernel/wgmma_ones.gpu). 0: none is.
    int summed, zero,
        beyond;  // beyond: values of a block behind the depth, where floats become bytes
    bool ranged; // it leaves the range of its results (ranged.h)
    bool alone;  // and the results perhaps not
    // Floats that become bytes: so many ranges are found in front, the first of them in one place; and which
    // of the extras is number 1 + i of byte_range's; 0: of another value.
    struct {
        int parts, first_parts;
        unsigned char number[GPU_CALL_INPUTS];
    } range;
    // Where weights go, in values: from row to row of taps, and from tap to tap.
    int64_t row_depth, tap_depth;
};

// The length of an axis of an image, or of its weights; 1 where there is none.
static inline int64_t gpu_wgmma_len(const struct mgx_shape *s, int axis)
{
    const int at = s->rank - GPU_WGMMA_AXES + axis;
    return at >= 2 ? s->lens[at] : 1;
}

static inline int64_t gpu_wgmma_stride(const struct mgx_shape *s, int axis)
{
    const int at = s->rank - GPU_WGMMA_AXES + axis;
    return at >= 2 && s->lens[at] > 1 ? s->strides[at] : 0;
}

// Why this kernel does not take what is offered, perhaps with a wish; NULL if it does.
const char *gpu_wgmma_read(struct mgx_plan_offer *c, struct gpu_wgmma_product *g);
// The same of a product of bytes that are made of x on its way, as it lies, and have values put around
// them before that, by `pad`; NULL: none.
const char *gpu_wgmma_read_quantized(struct mgx_plan_offer *c, const struct mgx_shape *x,
                                     const struct mgx_ins *pad, struct gpu_wgmma_product *g);

// Microseconds of a launch that packs an image of values of so many bytes.
double gpu_wgmma_packing(const struct gpu_wgmma_product *g, double size);

// One stride for all of these axes together, in their order; false if there is none.
bool gpu_wgmma_merge(const struct mgx_shape *s, const int *axes, int count, int64_t *stride);

struct gpu_wgmma_tile {
    int rows, columns; // of the result
    int groups;        // warpgroups that multiply
    int deep;          // blocks along the depth in a stage
    int split;         // blocks of threads that share a tile along the depth
    int stages, per_multiprocessor;
    int part;   // columns of it that leave together
    bool stays; // blocks take one tile after the other
    bool turns; // and each of two warpgroups has its own
    enum gpu_wgmma_units units;
};

static inline bool gpu_wgmma_is_fp8(enum gpu_wgmma_units units)
{
    return units == GPU_WGMMA_FP8 || units == GPU_WGMMA_FP8_64;
}

// Values of eight bits, as they are multiplied?
static inline bool gpu_wgmma_is_narrow(enum gpu_wgmma_units units)
{
    return units == GPU_WGMMA_BYTES || units == GPU_WGMMA_BYTES_64 ||
           units == GPU_WGMMA_QUANTIZED || gpu_wgmma_is_fp8(units);
}

// Is a block of the depth 64 bytes of a row?
static inline bool gpu_wgmma_is_short(enum gpu_wgmma_units units)
{
    return units == GPU_WGMMA_BYTES_64 || units == GPU_WGMMA_FP8_64;
}

// Boxes of the copy engine that a block of a is.
static inline int gpu_wgmma_boxes(enum gpu_wgmma_units units)
{
    return units == GPU_WGMMA_QUANTIZED ? 2 : 1;
}

// Bytes of one row of a in a block, and of one column of b.
static inline int gpu_wgmma_a_bytes(enum gpu_wgmma_units units)
{
    return gpu_wgmma_is_short(units) ? 64 : 128 * gpu_wgmma_boxes(units);
}

static inline int gpu_wgmma_b_bytes(enum gpu_wgmma_units units)
{
    return gpu_wgmma_is_short(units) || units == GPU_WGMMA_QUANTIZED ? 64
           : units == GPU_WGMMA_SPLIT                                ? GPU_WGMMA_PIECES * 64
                                                                     : 128;
}

// In how many parts, of neighbouring columns, a block of fp8 is multiplied: two where three warpgroups leave no
// registers for all of a block's sums beside the others'.
static inline int gpu_wgmma_parts(const struct gpu_wgmma_tile *t)
{
    return gpu_wgmma_is_fp8(t->units) && t->groups == 3 && t->columns > 128 ? 2 : 1;
}

// Registers of a thread for sums: of fp8 a block's beside all others'.
static inline int gpu_wgmma_sums(const struct gpu_wgmma_tile *t)
{
    const int sums = t->rows / 64 * t->columns / 2 / (t->turns ? 1 : t->groups);
    return gpu_wgmma_is_fp8(t->units) ? sums + sums / gpu_wgmma_parts(t) : sums;
}

// Is the producer a warpgroup that lends its registers to those that multiply? Else it is a warp,
// and where warps are no multiple of four a quarter of the multiprocessor decides for all.
static inline bool gpu_wgmma_lends(const struct gpu_wgmma_tile *t)
{
    const int sums = gpu_wgmma_sums(t);
    if (t->units == GPU_WGMMA_SPLIT || t->groups == 1)
        return t->groups > 1;
    return t->per_multiprocessor == 1 && (t->groups == 3 || sums >= 96);
}

static inline int gpu_wgmma_threads(const struct gpu_wgmma_tile *t)
{
    return t->groups * 128 + (gpu_wgmma_lends(t) ? 128 : 32);
}

// Is a taken apart, or made, in registers, a row of 64 a warpgroup?
static inline bool gpu_wgmma_by_registers(enum gpu_wgmma_units units)
{
    return units == GPU_WGMMA_SPLIT || units == GPU_WGMMA_QUANTIZED;
}

// Split floats: does a warpgroup take the next block apart while one is multiplied? Where threads
// have the registers.
static inline bool gpu_wgmma_ahead(const struct gpu_wgmma_tile *t)
{
    return t->per_multiprocessor == 1 && t->groups < 3 && t->columns <= 128;
}

struct gpu_wgmma_size {
    int64_t rows, columns, unit;
    int blocks; // along the depth
    enum gpu_wgmma_units units;
    int multiprocessors;
    size_t shared_bytes; // most that a block of threads may have
    bool image;          // stages do not cross the end of the depth
    int result_bytes;    // of one value, and of what the epilogue reads for it
    bool pairs;          // results are finished in registers
};

enum { GPU_WGMMA_TILES = 24 };
// The tiles whose time, by a model of the card, is the shortest, the best one first; at most `most`
// and GPU_WGMMA_TILES. How many; never 0 for 64 rows and 32 columns fit every card.
int gpu_wgmma_rank(const struct gpu_wgmma_size *size, struct gpu_wgmma_tile *tiles, int most);
// What the model says of the best of them.
double gpu_wgmma_microseconds(const struct gpu_wgmma_size *size);
// Bytes of shared memory through which its results pass.
size_t gpu_wgmma_room(const struct gpu_wgmma_tile *t);
// Tiles of so many results.
int64_t gpu_wgmma_tiles(const struct gpu_wgmma_tile *t, int64_t rows, int64_t columns,
                        int64_t unit);
// "128x192 g2 d1 s1 n4 p1": rows, columns, groups, deep, split, stages, per multiprocessor; and
// " stays" where blocks take several tiles, " turns" where warpgroups do.
void gpu_wgmma_name(const struct gpu_wgmma_tile *t, struct mgx_str *out);
struct gpu_launch gpu_wgmma_launch(const struct gpu_wgmma_product *g,
                                   const struct gpu_wgmma_tile *t, int multiprocessors);

// --- wgmma_pack.c ---
// The constant operand as the kernel reads it: columns x blocks of the depth.
size_t gpu_wgmma_packed_bytes(const struct gpu_wgmma_product *g);
// False when out of memory.
bool gpu_wgmma_pack(const struct mgx_plan_machine *machine, const struct gpu_wgmma_product *g,
                    const struct mgx_tensor *weights, void *to);
// How the copy engine sees it at `address`, for a tile of so many columns.
struct gpu_tensor_map gpu_wgmma_map(const struct gpu_wgmma_product *g, void *address, int columns);
// The kernel's arguments; `a` and `b`: what the maps `map_a` and `map_b` describe. How many.
enum { GPU_WGMMA_ARGS = 5 };
int gpu_wgmma_args(const struct gpu_wgmma_product *g, const void *map_a, const void *map_b,
                   void *const *a, void *const *b, void *const *out, struct gpu_arg *list);

// --- wgmma_border.c ---
// Sets `border` of an image as it lies; false: what lies beside it cannot be done so.
bool gpu_wgmma_read_border(const struct mgx_plan_offer *c, struct gpu_wgmma_product *g);
// Of the table, which lies behind the packed constant operand.
size_t gpu_wgmma_border_bytes(const struct gpu_wgmma_product *g);
void gpu_wgmma_put_border(const struct gpu_wgmma_product *g, const struct mgx_tensor *weights,
                          void *to);
void gpu_wgmma_emit_border(struct mgx_str *out, const struct gpu_wgmma_product *g);

// --- wgmma.c ---
struct gpu_wgmma_call {         // state of a step
    struct gpu_call base;       // first: its unit and its kernel
    struct gpu_wgmma_product g; // with the map of a
    unsigned char b[GPU_TENSOR_MAP_BYTES];
    void *fold; // kernel, where a is packed first
    struct gpu_launch fold_how;
    // To pack b when the plan is complete:
    struct mgx_tensor weights;
    void *packed; // on the card
    bool shared;  // that is done
    int tile_columns;
};
enum { GPU_WGMMA_MORE = 3 };
// Packs b and finds the kernels, when units are made; a launch, with arguments behind all others.
enum mgx_status gpu_wgmma_finish(struct mgx_plan *plan, struct gpu_wgmma_call *k,
                                 struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status gpu_wgmma_run(const struct gpu_wgmma_call *k, const struct mgx_plan_args *args,
                              void *const *more, int more_count,
                              struct mgx_diag *diag) MGX_NODISCARD;
struct gpu_wgmma_size gpu_wgmma_size_of(const struct mgx_plan_offer *c,
                                        const struct gpu_wgmma_product *g);

// --- wgmma_quantize.c ---
struct gpu_wgmma_quantizing {  // floats that become bytes
    struct mgx_shape x;        // as they lie
    const struct mgx_ins *pad; // puts zeros around them before; NULL: nothing does
    int parts, first_parts;    // ranges in front that it joins, 0: none; those in the first place
    unsigned char
        number[GPU_CALL_INPUTS]; // by the step's inputs: 1 + i of number i of byte_range's
    int summed, zero;            // as struct gpu_wgmma_product has them
    double saved;                // microseconds that the product takes less than that of bytes
};
// The step's product of bytes as one of the floats that they are made of. *out NULL: there is none.
enum mgx_status gpu_wgmma_quantize(struct mgx_plan *plan, const struct mgx_plan_step *step,
                                   struct gpu_wgmma_quantizing *q, struct gpu_wgmma_call **out,
                                   struct mgx_diag *diag) MGX_NODISCARD;

// The step's product as one that takes off what its extra `summed` - 1 is: sums of its rows times `zero`.
enum mgx_status gpu_wgmma_sum(struct mgx_plan *plan, const struct mgx_plan_step *step, int summed,
                              int zero, struct gpu_wgmma_call **out,
                              struct mgx_diag *diag) MGX_NODISCARD;

// --- wgmma.c ---
// The tile that measuring prefers, or the model's. False: none fits the card, or diag has a failure.
bool gpu_wgmma_choose(struct mgx_plan_offer *c, const struct gpu_wgmma_product *g,
                      struct gpu_wgmma_tile *t);

// --- wgmma_tune.c ---
struct gpu_wgmma_entry { // a tile, ready to be timed beside others
    const struct gpu_wgmma_product *g;
    struct gpu_launch how, fold_how;
    void *kernel, *fold; // fold: what packs the image before; NULL: it is left out
    _Alignas(64) unsigned char a[GPU_TENSOR_MAP_BYTES];
    _Alignas(64) unsigned char b[GPU_RACE_WEIGHTS][GPU_TENSOR_MAP_BYTES];
};
struct gpu_race_bytes gpu_wgmma_race_bytes(const struct mgx_plan_offer *c,
                                           const struct gpu_wgmma_product *g);
bool gpu_wgmma_enter(struct gpu_wgmma_entry *e, const struct mgx_plan_offer *c,
                     const struct gpu_wgmma_product *g, const struct gpu_wgmma_tile *tile,
                     const struct gpu_race *race, struct mgx_diag *diag);
// A launch of the entry `user`.
bool gpu_wgmma_turn(void *user, const struct gpu_race *race, int turn, struct mgx_diag *diag);
// *choice: the fastest of these tiles by measuring, or 0 where nothing is measured or known.
enum mgx_status gpu_wgmma_tune(struct mgx_plan_offer *c, const struct gpu_wgmma_product *g,
                               const struct gpu_wgmma_tile *tiles, int count,
                               int *choice) MGX_NODISCARD;

// The whole text for this tile. Why it cannot be written; NULL if it can.
const char *gpu_wgmma_emit(struct mgx_str *out, const struct mgx_plan_offer *c,
                           const struct gpu_wgmma_product *g, const struct gpu_wgmma_tile *t);
// Bytes of what the epilogue reads and writes for one value.
int gpu_wgmma_result_bytes(const struct mgx_plan_offer *c, const struct gpu_wgmma_product *g);
// Are results of 16 bits finished two by two in registers? Their operands are columns' constants.
bool gpu_wgmma_pairs(const struct mgx_plan_offer *c, const struct gpu_wgmma_product *g);
