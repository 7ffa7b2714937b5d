// SPDX-License-Identifier: MIT
// Cards: which there are, their memory as the host has it, and runs over that.
//
//     cards   one list for all names of the provider, made when the host asks for devices
//     card    its name in the engine, the host's words for it, blocks of its memory, queues
//
// Holds: what the host is given (hardware, memory) lives until the library's last factory goes.
// Blocks that the host frees are kept for the next that asks, no more than were in use at a time.
#pragma once

#include <pthread.h>

#include "plugin.h"

enum { MOST_CARDS = 8, CARD_NAME = 24 };

struct block;

struct card {
    OrtAllocator allocator; // first: the host's calls come back with it
    const struct host *host;
    char name[CARD_NAME]; // "cuda:0"
    uint32_t vendor;
    const OrtHardwareDevice *hardware;
    OrtHardwareDevice *own; // of that: where the host had found none
    OrtMemoryInfo *memory;
    pthread_mutex_t lock; // of everything below
    struct block *used, *kept;
    size_t used_bytes, most_bytes, kept_bytes;
    migraphx_device_queue_t *queues; // that nobody has
    size_t queue_count, queue_room;
};

struct cards {
    struct host host;
    struct card list[MOST_CARDS];
    size_t count;
    int users; // factories
    bool looked;
    bool as_amds; // memory is said to be AMD's, whatever card it is
};

// Those that the engine finds, with the hardware that the host has found for them or one that stands
// for it. None is no failure.
OrtStatus *cards_find(struct cards *, const OrtHardwareDevice *const *devices, size_t count);
void cards_leave(struct cards *);
// NULL: it is none of them.
struct card *cards_of_hardware(struct cards *, const OrtHardwareDevice *);
struct card *cards_of_memory(struct cards *, const OrtMemoryInfo *);

// --- memory ---

OrtStatus *card_memory_init(struct card *, const struct host *);
void card_memory_fini(struct card *);
OrtStatus *card_transfer_create(struct cards *, OrtDataTransferImpl **out);

struct copy {
    void *to;
    const void *from;
    size_t size;
    migraphx_copy_t way;
};
// One after the other, and done when this returns.
OrtStatus *card_copy(struct card *, const struct copy *, size_t count);

// --- the host's own copies, between its nodes and those of the provider ---

OrtStatus *card_kernels(struct card *, const char *provider, OrtKernelRegistry **out);

// --- masks that grow with every token ---

struct fused;
struct filled;

// As fill_run does it (fused.h), within the card's memory.
OrtStatus *card_fill_run(struct card *, const struct fused *, migraphx_buffer *buffers,
                         struct filled *out);
void card_fill_end(struct card *, struct filled *);

// --- runs ---

struct card_plans;

// `program` is the fused one's: compiled for the card's memory, or with open sizes and copies.
OrtStatus *card_plans_create(struct card_plans **out, const struct fused *, struct card *,
                             bool make_plans);
void card_plans_destroy(struct card_plans *); // NULL is allowed
OrtStatus *card_compute(struct card_plans *, OrtKernelContext *, migraphx_buffer *buffers,
                        size_t count);
