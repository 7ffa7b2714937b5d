// SPDX-License-Identifier: MIT
// Compiled forms of a program in a file: which of them is for this machine, and what compiling the
// program again takes when none is.
//
//     forms of the file --> those that fit (target usable, same kind of machine, same kernels)
//                       --> of these the best: gpu before cpu before ref, then the larger set
//     none fits         --> the portable program, else the graph of a form, compiled anew
#pragma once

#include "targets/target.h"

// What the caller of a load asks for.
struct mgx_form_wish {
    const char *target; // that its form is for; NULL: the best
    bool portable;      // the program that is not compiled
    bool trusted;       // compiled kernels of the file may be run
    // Of targets, from the environment: for what a file leaves open.
    const struct mgx_settings *given;
};

// The chooser for reading a file (ir/carry.h); `wish` lives as long.
struct mgx_carry_chooser mgx_form_chooser(const struct mgx_form_wish *wish);
// The same of a program that was alone in its file, if nobody chose. The options to compile it with
// live as long as the carry. Checks the literals if passes are going to read them.
enum mgx_status mgx_form_options(struct mgx_carry *c, const struct mgx_form_wish *wish,
                                 const struct mgx_target **target, struct mgx_compile_options *out,
                                 struct mgx_diag *diag) MGX_NODISCARD;
