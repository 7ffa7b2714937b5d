// SPDX-License-Identifier: MIT
// Evaluation by reference compute: one operator, or a whole module with its captures.
//
// This is the meaning of a program. The ref target, constant folding, bodies of if/loop/scan and
// the fallback of every other target all end here. No SIMD, no threads. Static shapes are used as
// they are; a dynamic instruction gets its true shape from its shape rule on the actual inputs and
// their values, or from compute itself.
#pragma once

#include "ir/module.h"

// Values of one module's instructions during a run. Frames of enclosing modules are reached through
// `up`.
struct mgx_frame {
    const struct mgx_module *module;
    struct mgx_tensor *values; // by ins->index (mgx_module_number)
    const struct mgx_frame *up;
};

struct mgx_eval {
    struct mgx_arena *strings; // bytes of intermediate strings; lives as long as the run
    struct mgx_arena *scratch; // of what is evaluated now, innermost last; set inside
    const struct mgx_frame *frame;
    size_t limit_bytes; // largest single tensor that may be created; 0 = no limit
    uint64_t seed;      // of random operators without a seed of their own; advances
    int depth;          // of nested modules, bounded by MGX_EVAL_MAX_DEPTH
    int64_t rounds;     // of loops so far, at every depth, bounded by MGX_EVAL_MAX_ROUNDS
    int64_t members;    // of sequences copied by edits so far, bounded by MGX_EVAL_MAX_MEMBERS
    size_t created;     // bytes of values made so far since memory was last looked at
    // Called after every instruction of the outermost module when set; a status other than MGX_OK
    // ends the run.
    enum mgx_status (*trace)(void *user, const struct mgx_ins *ins, const struct mgx_tensor *value,
                             struct mgx_diag *diag);
    void *trace_user;
    // A target's better way, when set: offered every operator whose inputs are there, before its
    // reference compute. *done: *c->out owns the result. out_shape is what the shape rule says of
    // the actual inputs, still dynamic where only compute finds out.
    enum mgx_status (*offer)(void *user, struct mgx_compute_call *c, bool *done);
    // Inputs that `offer` takes at any address, when set; all others come as their type wants them.
    bool (*knows)(void *user, const struct mgx_tensor *t);
    // A target's memory for numbers, when set; mgx_tensor_create for the rest.
    enum mgx_status (*create)(void *user, const struct mgx_shape *shape, struct mgx_tensor *out,
                              struct mgx_diag *diag);
    void *offer_user;
    // Where the caller wants the result of this call, row-major of `out_shape`; NULL: nowhere, or
    // it is no result. Who asks must write all of it there. An input may lie there too.
    void *(*wanted)(void *user, const struct mgx_compute_call *c);
    void *wanted_user;
    // A target's better way for a body as a whole, when set: fills `results`, or is not done.
    enum mgx_status (*body)(void *user, const struct mgx_module *m, const struct mgx_tensor *args,
                            int arg_count, struct mgx_tensor *results, bool *done,
                            struct mgx_diag *diag);
    void *body_user;
};

// That place, empty where there is none.
static inline void *mgx_eval_wanted(const struct mgx_compute_call *c)
{
    return c->eval->wanted ? c->eval->wanted(c->eval->wanted_user, c) : NULL;
}

// A loop that never ends, nests of loops, sequences that grow and strings that double ask for any
// time and memory; these bounds are far above what honest programs need in one run.
enum {
    MGX_EVAL_MAX_DEPTH = 64,
    MGX_EVAL_MAX_ROUNDS = 1 << 21,
    MGX_EVAL_MAX_MEMBERS = 1 << 25,
    MGX_EVAL_MAX_STRING_BYTES = 1 << 30
};
// Views repeat values without memory, so that nothing but time bounds who reads them.
#define MGX_EVAL_MAX_ELEMENTS (INT64_C(1) << 38)

// One operator on given inputs. *out must be empty; on success it owns its value (a view shares the
// input's storage).
enum mgx_status mgx_eval_op(struct mgx_eval *e, const struct mgx_op *op, const void *attr,
                            const struct mgx_tensor *const *in, int in_count,
                            struct mgx_module *const *mod, int mod_count,
                            const struct mgx_shape *declared, struct mgx_tensor *out,
                            struct mgx_diag *diag) MGX_NODISCARD;

// Runs a numbered module. `args` are its parameters in order of creation (shared, not consumed);
// results (caller's array of mgx_module_result_count entries) own their values. Instructions of
// enclosing modules are read from e->frame.
enum mgx_status mgx_eval_module(struct mgx_eval *e, const struct mgx_module *m,
                                const struct mgx_tensor *args, int arg_count,
                                struct mgx_tensor *results, struct mgx_diag *diag) MGX_NODISCARD;

// Creates c->out with this shape, honouring the limit. For operators that size their result
// themselves.
enum mgx_status mgx_eval_create(struct mgx_compute_call *c,
                                const struct mgx_shape *shape) MGX_NODISCARD;
// The part of it that looks after the machine: who creates a value in another way calls it before.
enum mgx_status mgx_eval_count(struct mgx_compute_call *c, size_t bytes) MGX_NODISCARD;
// Makes a value lie in memory as its instruction is declared, if that is static and it does not:
// a view of what had ranges, or the branch of an `if`. Copies only then.
enum mgx_status mgx_eval_as_declared(struct mgx_compute_call *c, struct mgx_tensor *t,
                                     const struct mgx_shape *want) MGX_NODISCARD;
// Counts one round of a loop; MGX_LIMIT when the run has had too many.
enum mgx_status mgx_eval_round(struct mgx_compute_call *c) MGX_NODISCARD;
// Room for bytes of a string in the run's arena; MGX_LIMIT when the run has made
// MGX_EVAL_MAX_STRING_BYTES of them.
enum mgx_status mgx_eval_text(struct mgx_compute_call *c, size_t size, char **out) MGX_NODISCARD;
// Copies bytes there.
enum mgx_status mgx_eval_string(struct mgx_compute_call *c, const char *text, size_t size,
                                struct mgx_string *out) MGX_NODISCARD;
