// SPDX-License-Identifier: MIT
// Tiles of the Hopper kernel (kernel/wgmma.gpu): which there are, and which one suits a product.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

// The tile whose time, by a model of the card, is the shortest.
struct gpu_wgmma_tile gpu_wgmma_choose(const struct gpu_wgmma_size *size);
// Bytes of shared memory it takes, and those through which results pass.
size_t gpu_wgmma_shared(const struct gpu_wgmma_tile *t);
size_t gpu_wgmma_room(const struct gpu_wgmma_tile *t);
// Reads "128x192 g2 d1 s1 n4 p1" (rows, columns, groups, deep, split, stages, per multiprocessor).
bool gpu_wgmma_parse(const char *text, struct gpu_wgmma_tile *t);
