// SPDX-License-Identifier: MIT
// Copies between a caller's plain memory and a card at the pace of the link, in pieces:
//
//     in     the host's threads copy a piece into pinned memory, the card's copy engine takes it
//            from there while they are at the next one
//     out    the engine brings pieces into pinned memory; they go to the caller's when their place
//            is wanted again, or when the queue is waited for
//
// The driver's own way for such memory is one thread's copy, which waits for the card with every
// piece. Memory that is pinned already needs none of this, and goes as it is.
//
// Holds: one queue's, so one thread's at a time. Its pieces end before the card is given back.
// Cost: GPU_STAGE_SLOTS pieces of pinned memory, 16 MB, from a queue's first large copy to its end.
#pragma once

#include "ir/memory.h"
#include "targets/gpu/device/device.h"

enum {
    GPU_STAGE_SLOTS = 8,
    GPU_STAGE_PIECE = 2 << 20,  // bytes
    GPU_STAGE_LEAST = 16 << 10, // what is smaller goes the driver's way
};

struct gpu_stage_slot {
    void *event; // behind the card's copy; NULL before the first
    bool busy;   // the card may still be at it
    void *to;    // of a copy out: where the piece goes; NULL when it is there
    size_t bytes;
};

struct gpu_stage {
    struct mgx_memory_help help; // without a `spread` nothing is staged
    unsigned char *room;         // NULL before the first large copy
    bool refused;                // there is no pinned memory
    int next;                    // the oldest slot
    struct gpu_stage_slot slots[GPU_STAGE_SLOTS];
};

// Does a copy of so many bytes from or to this memory go by pieces?
bool gpu_stage_takes(struct gpu_stage *stage, struct gpu_device *d, const void *host, size_t bytes);
// Reads all of the host's bytes before it returns.
enum mgx_status gpu_stage_in(struct gpu_stage *stage, struct gpu_device *d, void *stream, void *to,
                             const void *host, size_t bytes, struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status gpu_stage_out(struct gpu_stage *stage, struct gpu_device *d, void *stream,
                              void *host, const void *from, size_t bytes,
                              struct mgx_diag *diag) MGX_NODISCARD;
// Waits for what copies out have under way, and brings it to its places. After a failure nothing is
// under way.
enum mgx_status gpu_stage_settle(struct gpu_stage *stage, struct gpu_device *d,
                                 struct mgx_diag *diag) MGX_NODISCARD;
// The card is done with all of it.
void gpu_stage_fini(struct gpu_stage *stage, struct gpu_device *d);
