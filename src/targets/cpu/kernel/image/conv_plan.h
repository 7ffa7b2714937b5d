// SPDX-License-Identifier: MIT
// A convolution plan from inside: what the methods share. Private to conv_*.c.
#pragma once

#include "base/size.h"
#include "targets/cpu/kernel/image/conv.h"
#include "targets/cpu/kernel/product/output.h"
#include "targets/cpu/kernel/split.h"

// The output pixels in four dimensions, the last one along a tile. Neighbouring dimensions that are
// contiguous in every tensor have been merged.
enum { MGX_WALK_DIMS = 1 + MGX_CONV_DIMS };

struct mgx_conv_walk {
    int64_t size[MGX_WALK_DIMS];
    int64_t x[MGX_WALK_DIMS], y[MGX_WALK_DIMS], residual[MGX_WALK_DIMS], pixel[MGX_WALK_DIMS];
};

struct mgx_byte_dw_kernel;
struct mgx_byte_winograd_kernel;
struct mgx_dw_kernel;
struct mgx_winograd_kernel;

// What a method does. `prepare` decides everything that packing and running need and sets the sizes
// in the plan; it fails only for lack of memory or when a size does not fit.
struct mgx_conv_ops {
    bool (*fits)(const struct mgx_conv_plan *plan);   // can this method run the description at all?
    double (*cost)(const struct mgx_conv_plan *plan); // seconds on one thread, roughly
    enum mgx_status (*prepare)(struct mgx_conv_plan *plan, struct mgx_diag *diag);
    void (*pack)(const struct mgx_conv_plan *plan, const void *weights, void *packed, int part,
                 int parts);
    void (*run)(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                struct mgx_pool *pool);
    // NULL: whatever it is, it is too little to fetch ahead.
    struct mgx_ahead (*first_read)(const struct mgx_conv_plan *plan, const void *packed,
                                   int thread);
};

struct mgx_conv_plan {
    struct mgx_conv_desc d;
    enum mgx_conv_method method;
    const struct mgx_conv_ops *ops;
    const struct mgx_gemm_kernel *kernel;
    const struct mgx_end_kernel *ends; // of tiles in memory
    int64_t group_in, group_out;       // channels of one group
    // Number of an output pixel, for hooks; phases of a transposed convolution skip some.
    int64_t pixel_first, pixel_batch, pixel_space[MGX_CONV_DIMS];
    int64_t w_first; // where the first used weight is
    int64_t y_first, residual_first;
    size_t packed_bytes, thread_workspace, shared_workspace;
    int m_parts, n_parts; // tasks per group: row ranges x panel ranges

    // Tile methods; see conv_tile.c.
    struct mgx_conv_walk walk;
    int64_t *taps;                   // byte offsets of the kernel elements
    int64_t tap_count, depth;        // depth in groups of 32 bits
    int64_t slice_taps, slice_depth; // what a panel is cut into; slice_depth < depth: of one tap
    int64_t channel_groups;          // those of a pixel
    int64_t panel_chunks;            // of the largest panel, where there are such (chunk.h)
    bool converts_y;                 // tiles are finished in scratch, then stored
    int64_t chunks, rows;      // a row of the output is cut in chunks; rows of all chunks together
    int64_t block_rows;        // made at a time
    int64_t pixel;             // bytes from pixel to pixel of a tile
    int64_t pitch, plane, run; // of the copied input, in groups

    const struct mgx_winograd_kernel *winograd;
    int64_t tiles[2], block_tiles;
    bool by_rows;        // of the transformed weights
    int64_t depth_block; // channels at a time, by rows

    const struct mgx_byte_winograd_kernel *byte_winograd;
    const struct mgx_byte_dw_kernel *byte_depthwise;
    const struct mgx_dw_kernel *depthwise;
    // Of a depthwise convolution that another one feeds: the other's plan, and how many rows of
    // its output are kept. Row y of them stands in slot y % ring; both plans have this number.
    struct mgx_conv_plan *feed;
    int64_t ring;

    struct mgx_conv_plan **phases; // of a transposed convolution
    size_t *phase_packed;          // where each one's weights begin
    int phase_count;
};

extern const struct mgx_conv_ops mgx_conv_direct, mgx_conv_strip, mgx_conv_unrolled,
    mgx_conv_winograd2, mgx_conv_winograd4, mgx_conv_winograd_bytes, mgx_conv_depthwise,
    mgx_conv_depthwise_bytes, mgx_conv_phases;

// --- what knows no method (conv_base.c) ---
enum mgx_status mgx_conv_check(const struct mgx_conv_desc *d, struct mgx_diag *diag) MGX_NODISCARD;
// Fills in what follows from the description: kernel, groups, pixel numbers.
void mgx_conv_plan_derive(struct mgx_conv_plan *plan);
// A plan of no method yet for a description, which it checks.
enum mgx_status mgx_conv_plan_start(const struct mgx_conv_desc *desc, struct mgx_conv_plan **out,
                                    struct mgx_diag *diag) MGX_NODISCARD;
// Prepares a method that fits.
enum mgx_status mgx_conv_plan_use(struct mgx_conv_plan *plan, enum mgx_conv_method method,
                                  const struct mgx_conv_ops *ops,
                                  struct mgx_diag *diag) MGX_NODISCARD;

// --- ordinary convolutions (conv_method.c) ---
// A plan of one method for a checked description; used for phases, too.
enum mgx_status mgx_conv_plan_prepare(struct mgx_conv_plan *plan, enum mgx_conv_method method,
                                      struct mgx_diag *diag) MGX_NODISCARD;
// All methods that fit, best first; how many. And the best one.
int mgx_conv_plan_choices(const struct mgx_conv_plan *plan, struct mgx_conv_choice *choices);
enum mgx_conv_method mgx_conv_plan_choose(const struct mgx_conv_plan *plan);

// What a task of Winograd's method makes: tiles, in blocks of block_tiles at most, by panels of
// output channels.
struct mgx_conv_task {
    int64_t begin, count, blocks; // tiles
    int64_t first, end;           // panels
};

static inline struct mgx_conv_task mgx_conv_task(const struct mgx_conv_plan *plan, int task,
                                                 int64_t tiles, int64_t panels)
{
    const int i = task / plan->n_parts, j = task % plan->n_parts;
    const int64_t begin = tiles * i / plan->m_parts, end = tiles * (i + 1) / plan->m_parts;
    return (struct mgx_conv_task){begin, end - begin, mgx_ceil_div(end - begin, plan->block_tiles),
                                  panels * j / plan->n_parts, panels * (j + 1) / plan->n_parts};
}

// Where block b of a task begins; it ends where the next one does.
static inline int64_t mgx_conv_block(const struct mgx_conv_task *t, int64_t b)
{
    return t->begin + t->count * b / t->blocks;
}

// Whether kernels that know only floats may run it.
static inline bool mgx_conv_floats(const struct mgx_conv_desc *d)
{
    return mgx_kernel_is_plain(d->x_type) && mgx_kernel_is_plain(d->w_type) &&
           mgx_kernel_is_plain(d->y_type) && mgx_kernel_is_float(d->type) &&
           !mgx_output_widens(&d->end);
}

// Floats whose results are rounded to bf16: such kernels make them in scratch.
static inline bool mgx_conv_rounds(const struct mgx_conv_desc *d)
{
    return mgx_kernel_is_plain(d->x_type) && mgx_kernel_is_plain(d->w_type) &&
           d->y_type == MGX_KERNEL_BF16 && mgx_kernel_is_plain(d->type) &&
           !mgx_output_widens(&d->end);
}

static inline int64_t mgx_conv_taps(const struct mgx_conv_desc *d)
{
    return d->kernel[0] * d->kernel[1] * d->kernel[2];
}

static inline int64_t mgx_conv_pixels(const struct mgx_conv_desc *d)
{
    return d->batch * d->out[0] * d->out[1] * d->out[2];
}

// The taps of every output, 3 x 3, lie one behind the other, as models store them.
static inline bool mgx_winograd_is_row_major(const struct mgx_conv_desc *d)
{
    return d->w_space[2] == 1 && d->w_space[1] == 3 && d->w_in == 9;
}

// Computes rows [begin, end) of a tile method's plan on the calling thread; `own` is its scratch.
// Rows of a chunk follow each other: (image and slice, chunk, row of the output).
void mgx_conv_tile_rows(const struct mgx_conv_plan *plan, const struct mgx_conv_args *args,
                        int64_t begin, int64_t end, int thread, char *own);

// Estimated time: work is divided among threads, weights come from memory once and meanwhile. One
// core alone gets a part of what memory gives.
static inline double mgx_conv_seconds(const struct mgx_conv_plan *plan, double cycles,
                                      double weight_bytes)
{
    const double clock = 4e9, memory = 8e9; // only ratios matter
    const double threads = plan->d.threads > 1 ? plan->d.threads : 1;
    const double compute = cycles / clock / threads;
    const double fetch = weight_bytes / memory / (threads < 4 ? threads : 4);
    return compute > fetch ? compute + 0.1 * fetch : fetch + 0.1 * compute;
}
