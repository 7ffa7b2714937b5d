// SPDX-License-Identifier: MIT
// What verifying shares: tolerances and comparisons.
#pragma once

#include "driver.h"

struct tolerance {
    double rms, atol, rtol;
    bool elementwise; // --atol or --rtol was given
};

struct difference { // of the last comparison that failed, else the largest of all
    double rms, largest;
};

// Says what differs.
bool compare_argument(const_migraphx_argument_t expected, const_migraphx_argument_t got,
                      const struct tolerance *t);
bool compare_all(migraphx_arguments_t expected, migraphx_arguments_t got,
                 const struct tolerance *t);
struct difference last_difference(void);
// Until results are compared again it is no number: a run that does not end has none.
void forget_difference(void);

// --- a model's folder (data_set.c) ---

bool find_model(const char *folder, char *path, size_t room);
// All data sets of the folder, with a compiled program.
bool verify_folder(const char *folder, migraphx_program_t program, const struct tolerance *t);
