// SPDX-License-Identifier: MIT
// The target interface: what compiles a program and runs it. A target is a folder
// src/targets/<name>/ with a const object mgx_target_<name>; the build finds it.
//
// compile() rewrites the program in place, so that the compiled graph prints, and hangs an
// executable on it. An executable is immutable: any number of threads may call run at once, each
// call takes a context of its own from the executable's pool. compile allocates, run does not (ref
// excepted, which is the plain meaning).
#pragma once

#include "base/settings.h"
#include "op/eval/eval.h"
#include "pass/pass.h"
#include "plan/exchange.h"
#include "plan/executable.h"

struct mgx_plan_machine;
struct mgx_stage;

// When a size that was met before gets a plan of its own (sizes.h), and where that is made.
enum mgx_specialise_mode {
    MGX_SPECIALISE_AUTO,       // beside the runs with several threads, else in the call
    MGX_SPECIALISE_NEVER,      // but for sizes named as optimal
    MGX_SPECIALISE_IN_CALL,    // by the run that meets it
    MGX_SPECIALISE_BACKGROUND, // by a thread of the program's own
};

struct mgx_compile_options {
    bool offload_copy;
    // May the set of values that are not finite, or the error of a sum, become another one than the
    // order of its terms makes it? (docs/api.md)
    bool fast_math;
    bool exhaustive_tune;
    bool only_steps; // struct mgx_plan_settings; set inside
    int threads;     // 0: as many as the process may use
    int team; // of workers, where several may be at work at a time: a card's programs have one
    struct mgx_tuning_options tune;
    // What one target alone reads: its target.c (or ref.c) says which and what they mean. Others
    // are not read.
    struct mgx_settings own;
    struct mgx_pass_options pass;
    enum mgx_specialise_mode specialise;
    size_t plan_bytes;             // of plans for sizes met at run time, all together; 0: 256 MiB
    struct mgx_exchange *exchange; // of the cards that the program is computed by; NULL: one
    // Of programs with free sizes, set inside:
    struct mgx_program **simplified; // where a copy goes after mgx_pipeline_simplify; or NULL
    struct mgx_plan_shared *shared;  // packed constants of all their plans (plan/shared.h); or NULL
    struct mgx_plan_makeshift *makeshift; // of a plan that a run waits for (plan/plan.h); or NULL
};

struct mgx_target {
    const char *name;
    // Whether this machine has what the target needs; `device` as in the options. NULL: always.
    enum mgx_status (*usable)(const char *device, struct mgx_diag *diag);
    // The memory that parameters of its programs lie in without offload_copy; `device` as above,
    // and ":n" for card n of whatever there is. It lasts as long as the process. NULL: the host's.
    enum mgx_status (*memory)(const char *device, const struct mgx_memory **out,
                              struct mgx_diag *diag);
    // Name of card `number` among those that `device` stands for, in room for 24 bytes, without
    // opening one where counting suffices; MGX_NOT_FOUND behind the last one. NULL where `memory`
    // is.
    enum mgx_status (*card)(const char *device, int number, char *name, struct mgx_diag *diag);
    // Brings together cards of these numbers among those that `device` stands for. NULL: a program
    // of the target is computed by itself.
    enum mgx_status (*exchange)(const char *device, const int *cards, int count,
                                struct mgx_exchange **out, struct mgx_diag *diag);
    enum mgx_status (*compile)(struct mgx_program *p, const struct mgx_compile_options *options,
                               struct mgx_diag *diag);
    // What an executable holds for itself alone. NULL: the target makes no plans for sizes met at
    // run time, its programs take any size as they are.
    size_t (*bytes)(const struct mgx_program *p);
    // Plans are made for values that decide sizes as well (values.h).
    bool sees_values;
    // Parameters are checked by mgx_program_run before.
    enum mgx_status (*run)(const struct mgx_program *p, struct mgx_run *run, struct mgx_diag *diag);
    void (*destroy)(struct mgx_executable *executable);
    // The compiled program in MIGraphX's words for such a target, for people; NULL: as any other.
    void (*print)(const struct mgx_program *p, struct mgx_str *out);
    // Appends, for every instruction of the compiled program, kernel, layout, threads and why not a
    // faster one.
    void (*explain)(const struct mgx_program *p, struct mgx_str *out);
    // The same as a table (migraphx_program_plan in extensions.h); NULL: there is none.
    void (*plan)(const struct mgx_program *p, struct mgx_str *out);
    // What the target's model of time says of the products of 8 bits of a program, which is planned
    // for it and good for nothing else then; nothing where this machine has none of the target's
    // cards, or one without a model. NULL: there is no model.
    enum mgx_status (*weigh)(struct mgx_program *p, const struct mgx_compile_options *options,
                             mgx_weight_told *tell, void *to, struct mgx_diag *diag);
    // What besides the kernels decides how constants are packed, and what passes make: "cpu avx2".
    // A program that was saved of that kind needs neither. NULL: it always does.
    enum mgx_status (*kind)(const struct mgx_compile_options *options, struct mgx_str *out,
                            struct mgx_diag *diag);
    // Of several kinds that this machine is, the one of greater worth runs faster. NULL: all the
    // same.
    uint64_t (*worth)(const struct mgx_compile_options *options);
    // The passes that it runs (stages.h); NULL: they are not a table.
    const struct mgx_stage *stages;
    // Which settings of its own a saved program keeps, NULL at the end; NULL: none.
    const char *const *keeps;
    // Makes a machine (plan/machine.h) that works on the host, for what a target with another
    // memory leaves there; it is the caller's to release. NULL: none is lent.
    enum mgx_status (*lend)(const struct mgx_compile_options *options,
                            struct mgx_plan_machine **out, struct mgx_diag *diag);
    // What a saved program is to carry; NULL: nothing.
    enum mgx_status (*carry)(const struct mgx_program *p, struct mgx_carry *out,
                             struct mgx_diag *diag);
};

#define TARGET(name) extern const struct mgx_target mgx_target_##name;
#include "target_list.inc"
#undef TARGET

const struct mgx_target *mgx_target_find(const char *name); // NULL if not built in
const struct mgx_target *const *mgx_target_all(int *count);

// Compiles once; a second call fails. Names the target in every message. When it fails the program
// is as it was, but for the instructions, which are new ones.
enum mgx_status mgx_program_compile(struct mgx_program *p, const struct mgx_target *target,
                                    const struct mgx_compile_options *options,
                                    struct mgx_diag *diag) MGX_NODISCARD;
// From a compiled program with free sizes: one for these lengths of its inputs, compiled as it was
// but for `offload_copy`, which shares its weights and lives by itself.
struct mgx_named_lens; // sizes.h
enum mgx_status mgx_program_fix(struct mgx_program **out, const struct mgx_program *p,
                                const struct mgx_named_lens *given, int count, bool offload_copy,
                                struct mgx_diag *diag) MGX_NODISCARD;
// Checks names and shapes of parameters ("Parameter not found: x", "Incorrect shape {..} for
// parameter: x should be: ..."), then runs. A program that was never compiled
// runs by the meaning of its operators, as target "ref" would run it, from a copy made each time.
enum mgx_status mgx_program_run(const struct mgx_program *p, struct mgx_run *run,
                                struct mgx_diag *diag) MGX_NODISCARD;
