// SPDX-License-Identifier: MIT
// A graph that was taken: its program, and where its values come from and go to.
#pragma once

#include "plugin.h"

enum { STRING = 8 };

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
    struct card_plans *plans; // of a card (card.h); NULL: the processor
};

// A run of this thread that the host profiles, as migraphx_program_run_buffers does it; false where it
// profiles none, and nothing was done.
bool profiler_run(const struct fused *, migraphx_arguments_t *out, const migraphx_buffer *params,
                  size_t count, migraphx_place_callback_t place, void *data,
                  migraphx_status *status);

// Of an element type that addresses cannot hand over: strings, types narrower than a byte.
bool fused_is_value(int element);
OrtStatus *fused_compute(OrtNodeComputeInfo *, void *state, OrtKernelContext *);
