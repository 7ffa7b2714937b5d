// SPDX-License-Identifier: MIT
// Quantization: rewrites of an uncompiled program that trade digits for speed and memory.
// Parameters and results keep their types.
//
//     float.c      half and bfloat16: what computes in float computes narrower
//     quantize.c   8 bits: products of quantized values, by a recipe (recipe.h)
//     weights4.c   4 bits: the weights alone
//
// A recipe says for every product in what type it computes and between which values its inputs lie.
// It comes from calibration (calibrate.h), which runs the program on samples, or from a file.
#pragma once

#include "pass/pass.h"
#include "quant/recipe.h"

// Computes in half or bfloat16 what is float or double: the instructions whose operators are named,
// or all of them ("all", or no names). Constants are folded before they lose digits.
enum mgx_status mgx_quantize_float(struct mgx_program *p, enum mgx_type type,
                                   const char *const *names, size_t count,
                                   struct mgx_diag *diag) MGX_NODISCARD;

struct mgx_quant_options {
    enum mgx_type type; // int8, or an fp8 kind
    enum mgx_quant_method method;
    double percentile; // of MGX_QUANT_PERCENTILE: how many of a hundred values must fit
    bool asymmetric;   // activations become uint8 with a zero point
    bool per_tensor;   // one scale for all weights of a product, not one per channel of its result
    bool correct_bias; // the mean error that rounded weights make is taken off the result
    bool smooth;       // large channels of activations are scaled down, their weights up
    bool keep;         // the recipe stays in the program, as comments
    const char *const *names; // of operators: dot, convolution; none: both
    size_t name_count;
    double budget; // the error one accepts; negative: no search, all are quantized
    enum mgx_quant_metric metric;
};

// What quantizing needs of the world: a target, and samples to run programs on.
struct mgx_quant_runner {
    void *user;
    int samples;
    enum mgx_status (*compile)(void *user, struct mgx_program *p, struct mgx_diag *diag);
    // Results as struct mgx_run has them.
    enum mgx_status (*run)(void *user, const struct mgx_program *p, int sample,
                           struct mgx_tensor *results, int result_count, struct mgx_diag *diag);
    // Compiles a program, and gives the seconds of a run on any inputs, which lie where it reads
    // them. NULL: time is reckoned, not measured.
    enum mgx_status (*time)(void *user, struct mgx_program *p, double *seconds,
                            struct mgx_diag *diag);
    // Products that bytes do not pay for compute in half, the time of wide ones is half's: a card.
    bool halves;
    // What a model of time says of the steps of a program, which is good for nothing else then:
    // where they came from, microseconds with factors of 8 bits, and if those had 16. NULL: there
    // is no model.
    enum mgx_status (*weigh)(void *user, struct mgx_program *p,
                             void (*tell)(void *to, const struct mgx_strings *origin, double narrow,
                                          double wide),
                             void *to, struct mgx_diag *diag);
    // How far it is, "calibrating" 3 of 8; may be NULL.
    void (*progress)(void *user, const char *what, int done, int total);
};

// Quantizes the products of the program: by `given` where it is not NULL, else by what calibration
// finds; within the budget, if there is one. *out, which may be NULL, gets what was done
// (mgx_recipe_fini ends it). When it fails the program is as it was, but for the instructions,
// which are new ones.
enum mgx_status mgx_quantize(struct mgx_program *p, const struct mgx_quant_options *options,
                             const struct mgx_quant_runner *runner, const struct mgx_recipe *given,
                             struct mgx_recipe *out, struct mgx_diag *diag) MGX_NODISCARD;

// The weights of dot and convolution in 4 bits: a scale per `block` of them along what is summed
// (0: one per channel of the result), and a zero point each unless `symmetric`.
enum mgx_status mgx_quantize_weights4(struct mgx_program *p, int64_t block, bool symmetric,
                                      struct mgx_diag *diag) MGX_NODISCARD;

// How far the results of two compiled programs lie apart on the runner's samples.
struct mgx_quant_distance {
    double relative; // norm of the difference by the norm of `a`, of the result where it is largest
    double top;      // of all rows, how many have their largest value elsewhere
};
enum mgx_status mgx_quant_compare(const struct mgx_program *a, const struct mgx_program *b,
                                  const struct mgx_quant_runner *runner,
                                  struct mgx_quant_distance *out,
                                  struct mgx_diag *diag) MGX_NODISCARD;
