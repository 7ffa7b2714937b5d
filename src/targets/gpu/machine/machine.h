// SPDX-License-Identifier: MIT
// The GPU target's machine: one card, its memory as the plan wants it, and the code of one plan.
#pragma once

#include "base/array.h"
#include "plan/machine.h"
#include "targets/gpu/machine/code.h"
#include "targets/gpu/machine/exchange.h"

struct gpu_memory { // the card's memory, behind ir's interface
    struct mgx_memory base;
    struct gpu_device *device;
    char name[GPU_CARD_SIZE]; // "cuda:0"
};

struct gpu_machine {
    struct mgx_plan_machine base;
    struct gpu_device *device;
    struct gpu_memory *memory; // lives as long as anything that was allocated from it
    struct gpu_code code;
    const struct gpu_exchange *exchange; // of cards that go together; NULL: this one is alone
    bool tf32;               // what products of floats multiply may be rounded to 10 bits
    bool tf32_convolutions;  // that of convolutions alone may
    bool own_products;       // no library is ever asked
    const char *provider;    // the library that makes products where it can; NULL: none is named
    struct gpu_unit **units; // asked for while planning
    int unit_count, unit_capacity;
};

static inline struct gpu_machine *gpu_machine(const struct mgx_plan_machine *m)
{
    return (struct gpu_machine *)m;
}

// May what a product multiplies be rounded, be it a `dot` or a convolution?
static inline bool gpu_machine_rounds(const struct mgx_plan_machine *m, bool dot)
{
    return gpu_machine(m)->tf32 || (!dot && gpu_machine(m)->tf32_convolutions);
}

// The memory of a card; one per card and process, so storages that outlive a program stay valid.
// NULL when out of memory.
struct gpu_memory *gpu_memory_of(struct gpu_device *device);

// Runs kept as graphs of the device, where it has them.
extern const struct mgx_plan_recorder gpu_recorder;

// The stream behind a queue.
void *gpu_queue_stream(struct mgx_queue *queue);
