// SPDX-License-Identifier: MIT
// A compiled program, and what a caller asks of it: parameters by name, room for results.
#pragma once

#include "ir/carry.h"
#include "ir/module.h"

struct mgx_target;
struct mgx_params;
struct mgx_sizes;

// Of a step: what its instructions came from, microseconds with factors of 8 bits, and if they had
// 16.
typedef void mgx_weight_told(void *to, const struct mgx_strings *origin, double narrow,
                             double wide);

struct mgx_executable { // first member of a target's own struct, which sets the first of these
    const struct mgx_target *target;
    struct mgx_params *params;        // targets/params.h
    struct mgx_sizes *sizes;          // targets/sizes.h; NULL: there are no free sizes
    struct mgx_carry_options options; // it was compiled with
    const struct mgx_memory *memory;  // that parameters of known size lie in; NULL: the host's
};

struct mgx_named_tensor {
    const char *name;
    struct mgx_tensor tensor;
};

// Who is told how far tuning is: after every problem measured, how many these are now, how long all
// measuring has taken, and which share of the instructions is planned.
struct mgx_tuning_progress {
    void (*tell)(void *user, const char *problem, size_t measured, double seconds,
                 double share); // or NULL
    void *user;
};

struct mgx_tuning_options {
    bool strict;       // a problem that nobody measured is an error
    double seconds;    // of measuring; 0: as many as it takes
    const char *cache; // file; NULL: none
    struct mgx_tuning_progress progress;
};

struct mgx_run {
    // Every parameter of the program, in any order; extra ones are ignored.
    const struct mgx_named_tensor *params;
    int param_count;
    // The caller's array, one entry per result; each owns its value on success.
    struct mgx_tensor *results;
    int result_count;
    // Where the caller wants result k, row-major of this shape, before it is computed; NULL:
    // nowhere.
    // Of plans on the host; placed[k], NULL before the run, then has the answer.
    void *(*place)(void *user, int k, const struct mgx_shape *shape);
    void *place_user;
    void **placed;
    bool takes_growing; // results with room behind their lines (ir/tensor.h) stay as they are
    enum mgx_status (*trace)(void *user, const struct mgx_ins *ins, const struct mgx_tensor *value,
                             struct mgx_diag *diag);
    void *trace_user;
    // What a step of an instruction took, by the device's clock, after the run; where there is one
    // it is used instead of `trace`. An instruction may have several steps.
    void (*time)(void *user, const struct mgx_ins *ins, double microseconds);
    void *time_user;
    bool on_stream; // the caller's, of the device's driver; hosts have none and ignore it. Where no
    void *stream;   // step and no result is the host's, the run returns before its work is done
    uint64_t seed;
    size_t limit_bytes; // of the host's memory held at a time; 0: as much as there is
};

// Whether a result lies as callers expect it.
bool mgx_is_row_major(const struct mgx_shape *s);
// For targets, at the end of their passes: results leave row-major, whatever views made them. Those
// whose sizes are known only at run time are packed after it.
enum mgx_status mgx_program_pack_results(struct mgx_program *p,
                                         struct mgx_diag *diag) MGX_NODISCARD;
