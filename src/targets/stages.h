// SPDX-License-Identifier: MIT
// Which passes a target runs: one constant table, a row for each stage, in the order in which they
// run; and what compiling is for every target whose executables are plans.
//
// A stage runs where the program and the machine are so as its row says. What a program's types
// are is looked at again behind every stage, since passes change them; that its values came
// quantized stays true. The table is what docs/passes.md and `migraphx-driver passes` print.
#pragma once

#include "targets/target.h"

enum mgx_fact {                   // of a program, of what it is compiled for, of the machine
    MGX_QUANTIZED = 1 << 0,       // values are dequantized
    MGX_INTEGER = 1 << 1,         // products of integers
    MGX_HALVES = 1 << 2,          // values of half
    MGX_BRAINS = 1 << 3,          // ... of bfloat16
    MGX_ROUNDS = 1 << 4,          // loops and scans in main
    MGX_RESULTS_PLACED = 1 << 5,  // the caller gives results their places before the run
    MGX_MULTIPLIES_BF16 = 1 << 6, // the machine, bfloat16 as it is
};

// Facts in words, "quantized and (halves or bfloat16)", for the row; empty: always.
struct mgx_stage {
    const char *name;
    const struct mgx_pass *const *passes; // up to NULL
    unsigned all, any, none;              // of enum mgx_fact: each, one at least, and none of them
    bool early;                           // kernels of floats are not asked yet (floats_pay)
    bool shared; // a copy of the program is kept behind it, for plans of other sizes
    int rounds;  // so often at most, while the number of instructions changes; 0: once
    const struct mgx_pass *const *between; // ... with these behind each round but the last
    size_t fold_limit_bytes; // of literals that folding may make, from here on; 0: as before
};

// Facts that the program itself has.
unsigned mgx_facts_of(const struct mgx_program *p);

// `facts`: mgx_facts_of, and those of the machine. The table ends with a row without passes.
enum mgx_status mgx_run_stages(struct mgx_program *p, const struct mgx_stage *stages,
                               unsigned facts, const struct mgx_pass_options *pass,
                               const struct mgx_compile_options *options,
                               struct mgx_diag *diag) MGX_NODISCARD;

// A line for each stage: name, when, passes, with tabs between.
void mgx_stages_print(struct mgx_str *out, const struct mgx_stage *stages);

// What a target with plans brings to compile().
struct mgx_planned_target {
    enum mgx_status (*create)(const struct mgx_compile_options *options,
                              struct mgx_plan_machine **out, struct mgx_diag *diag);
    enum mgx_status (*passes)(struct mgx_program *p, const struct mgx_plan_machine *machine,
                              const struct mgx_compile_options *options, struct mgx_diag *diag);
};
// Makes the machine, runs the passes unless the program was saved behind them, and plans.
enum mgx_status mgx_compile_planned(struct mgx_program *p, const struct mgx_planned_target *t,
                                    const struct mgx_compile_options *options,
                                    struct mgx_diag *diag) MGX_NODISCARD;
