// SPDX-License-Identifier: MIT
// What a pass is, and the manager that runs pipelines of them.
//
// A pipeline is an explicit array of passes, because order is meaning. The manager does the
// housekeeping: after a pass that changed something it removes dead code, in debug builds it
// verifies, and it times, traces and skips by name.
#pragma once

#include "op/op.h"

struct mgx_region;        // region.h
struct mgx_product_roles; // product.h
struct mgx_pass_trail;    // history.h

// What is constant of a product of bytes.
struct mgx_bytes_known {
    bool left_zero, right, right_zero; // a zero point that is not there is known
};

// What a target tells passes of itself. They ask here what it takes, and know nothing else of it;
// one that says nothing multiplies floats, and takes every group.
struct mgx_pass_target {
    bool multiplies_bytes; // without zero points
    bool multiplies_fp8;   // as they are, with sums in float
    // Products of bytes leave the range of their results, and not those where nobody reads them.
    bool leaves_ranges;
    bool multiplies_bf16; // as it is, with sums in float ...
    // ... but for those that its kernels of floats do faster; NULL: there are none.
    bool (*floats_pay)(void *user, const struct mgx_ins *product);
    // Which products of bytes its kernels take; NULL: all.
    bool (*takes_bytes)(struct mgx_bytes_known known);
    int threads;        // that the program will be run by (0: not known)
    int64_t near_bytes; // that a thread reads fast (L2 of a CPU; 0: not known)
    // Does its product take what is done before it, or behind it? (mgx_target_takes)
    bool (*takes)(void *user, const struct mgx_product_roles *roles);
    // Its word on a region that fusion has found: does a kernel of its own take it, tagged so?
    // Without it every region becomes a group.
    bool (*supports)(void *user, const char *tag, const struct mgx_region *region);
    void *user;
};

struct mgx_pass_options {
    const char *const *disabled; // names of passes to skip
    int disabled_count;
    bool fast_math;
    size_t fold_limit_bytes; // largest literal that folding may create (0: a default of 64 MiB) ...
    size_t fold_total_bytes; // ... and all of them together (0: a default of 256 MiB)
    bool verify;             // after every pass, also in release builds
    struct mgx_pass_target target;
    // A target's better way to evaluate what is folded, when set (op/eval/eval.h).
    enum mgx_status (*offer)(void *user, struct mgx_compute_call *c, bool *done);
    void *offer_user;
    // Which passes need not run, and what those that run do; NULL: all run.
    struct mgx_pass_trail *trail;
    // Traces: called after each pass when set. `microseconds` is the pass's own time.
    void (*trace)(void *user, const char *pass, const struct mgx_program *p, bool changed,
                  double microseconds);
    // Called with the program as it was left by a pass that fails; for `trace_user` too.
    void (*failed)(void *user, const char *pass, const struct mgx_program *p, const char *why);
    void *trace_user;
};

struct mgx_rule_cache; // see rewrite.h

struct mgx_pass_call {
    struct mgx_program *program;
    struct mgx_arena *scratch;              // rewound after the pass: the IR may not point into it
    const struct mgx_pass_options *options; // never NULL
    bool changed;                           // the pass says so
    size_t folded_bytes;                    // kept over a pipeline, as is
    int64_t folded_work;                    // ... the number of elementary steps spent on folding
    struct mgx_rule_cache *rules;           // equations read so far, kept over a pipeline, or NULL
    struct mgx_diag *diag;
};

struct mgx_rules { // a table (rewrite.h)
    const struct mgx_rule *v;
    int count;
};

struct mgx_pass {
    const char *name;
    const char *meaning; // one line
    // One of the three: a table that rewrites each module, bodies first; a function over each,
    // which are never the bodies of fused kernels; or one over the program at once.
    struct mgx_rules rules;
    enum mgx_status (*module)(struct mgx_pass_call *c, struct mgx_module *m);
    enum mgx_status (*program)(struct mgx_pass_call *c);
    bool by_size; // whether it finds something depends on how large things are
};

// `passes` ends with NULL. `options` may be NULL.
enum mgx_status mgx_run_passes(struct mgx_program *p, const struct mgx_pass *const *passes,
                               const struct mgx_pass_options *options,
                               struct mgx_diag *diag) MGX_NODISCARD;
