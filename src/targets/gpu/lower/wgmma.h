// SPDX-License-Identifier: MIT
// What the parts of the Hopper kernel's lowering share (kernel/wgmma.gpu): a product as it is read
// (wgmma_read.c), its text (wgmma_text.c), its tile (wgmma_tile.c), its step (wgmma.c).
#pragma once

#include "targets/gpu/lower/product.h"

enum { GPU_WGMMA_BLOCK = 64 };

// An image that is packed before it is multiplied: fold x fold pixels become one with all their
// channels, padding included. `bytes` 0: it is read as it lies.
struct gpu_wgmma_fold {
    int fold;
    int64_t channels, height, width; // of the packed image
    int pad[2];                      // of the image: height, width
    size_t bytes;
};

struct gpu_wgmma_product {
    struct gpu_product p;
    int64_t rows;
    int row_axes[MGX_MAX_RANK], row_axis_count; // that a row's number counts through, outermost
                                                // first: in a's order of memory
    int column_axis;
    int64_t channels; // of one tap of what is read: the depth of a dot
    int taps_h, taps_w, channel_blocks, blocks;
    bool image;                  // gathered by the copy engine
    struct gpu_tensor_map map;   // of a, without its address
    int step[2], pad[2], far[2]; // height, width: of the gathering
    struct gpu_wgmma_fold fold;
    // Where weights go, in values: from row to row of taps, and from tap to tap.
    int64_t row_depth, tap_depth;
};

// Why this kernel does not take what is offered, perhaps with a wish; NULL if it does.
const char *gpu_wgmma_read(struct mgx_plan_offer *c, struct gpu_wgmma_product *g);

// One stride for all of these axes together, in their order; false if there is none.
bool gpu_wgmma_merge(const struct mgx_shape *s, const int *axes, int count, int64_t *stride);

struct gpu_wgmma_tile {
    int rows, columns; // of the result
    int groups;        // warpgroups that multiply
    int deep;          // blocks of 64 along the depth in a stage
    int split;         // blocks of threads that share a tile along the depth
    int stages, per_multiprocessor;
};

struct gpu_wgmma_size {
    int64_t rows, columns;
    int blocks; // of 64 along the depth
    int multiprocessors;
    size_t shared_bytes; // most that a block of threads may have
    bool image;          // stages do not cross the end of the depth
    int result_bytes;    // of one value, and of what the epilogue reads for it
};

enum { GPU_WGMMA_TILES = 24 };
// The tiles whose time, by a model of the card, is the shortest, the best one first; at most `most`
// and GPU_WGMMA_TILES. How many; never 0 for 64 rows and 32 columns fit every card.
int gpu_wgmma_rank(const struct gpu_wgmma_size *size, struct gpu_wgmma_tile *tiles, int most);
// Bytes of shared memory it takes, and those through which results pass.
size_t gpu_wgmma_shared(const struct gpu_wgmma_tile *t);
size_t gpu_wgmma_room(const struct gpu_wgmma_tile *t);
// "128x192 g2 d1 s1 n4 p1": rows, columns, groups, deep, split, stages, per multiprocessor.
void gpu_wgmma_name(const struct gpu_wgmma_tile *t, struct mgx_str *out);
struct gpu_launch gpu_wgmma_launch(const struct gpu_wgmma_product *g,
                                   const struct gpu_wgmma_tile *t);

// --- wgmma_tune.c ---
// *choice: the fastest of these tiles by measuring, or 0 where nothing is measured or known.
enum mgx_status gpu_wgmma_tune(struct mgx_plan_offer *c, const struct gpu_wgmma_product *g,
                               const struct gpu_wgmma_tile *tiles, int count,
                               int *choice) MGX_NODISCARD;

// The whole text for this tile. Why it cannot be written; NULL if it can.
const char *gpu_wgmma_emit(struct mgx_str *out, const struct mgx_plan_offer *c,
                           const struct gpu_wgmma_product *g, const struct gpu_wgmma_tile *t);
// Bytes of what the epilogue reads and writes for one value.
int gpu_wgmma_result_bytes(const struct mgx_plan_offer *c, const struct gpu_wgmma_product *g);
