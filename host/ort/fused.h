// SPDX-License-Identifier: MIT
// A graph that was taken: its program, and where its values come from and go to.
#pragma once

#include "plugin.h"

enum { STRING = 8 };

// A mask that grows with every token and only says how many there are (fill.c).
struct fill {
    bool there;
    size_t mask, caches; // places among what the program reads
};

struct filled { // of one run
    size_t lens[2];
    void *data;
};

struct fused {
    OrtNodeComputeInfo base;
    const struct host *host;
    migraphx_program_t program;
    size_t in_count, out_count;
    char **in_names; // by place among the node's inputs; NULL: the program does not read it
    migraphx_shape_datatype_t types[27]; // by the host's number of an element type
    int *out_elements;                   // of results, by the host's number
    bool has_values;                     // some result has no place (fused_is_value)
    char *name;
    struct fill fill;
    struct card_plans *plans; // of a card (card.h); NULL: the processor
};

OrtStatus *fill_find(struct fused *, const OrtGraph *, const OrtValueInfo *const *inputs);
// Makes the mask as long as the caches have room, where it is shorter; out->data is to be freed.
OrtStatus *fill_run(const struct fused *, migraphx_buffer *buffers, struct filled *out);

// A run of this thread that the host profiles, as migraphx_program_run_buffers does it; false where it
// profiles none, and nothing was done.
bool profiler_run(const struct fused *, migraphx_arguments_t *out, const migraphx_buffer *params,
                  size_t count, migraphx_place_callback_t place, void *data,
                  migraphx_status *status);

// Of an element type that addresses cannot hand over: strings, types narrower than a byte.
bool fused_is_value(int element);
OrtStatus *fused_compute(OrtNodeComputeInfo *, void *state, OrtKernelContext *);
