// SPDX-License-Identifier: MIT
// Between calibration, recipes and programs: the steps of quantizing, for quantize.c and budget.c.
#pragma once

#include "quant/quant.h"
#include "quant/site.h"
#include "quant/stats.h"

// Does to every site what the recipe's entry of the same place says (apply.c). Both have the same
// order and length.
enum mgx_status mgx_recipe_apply(const struct mgx_recipe *r, const struct mgx_sites *sites,
                                 bool correct_bias, struct mgx_diag *diag) MGX_NODISCARD;
// Computes the products of MGX_HALF in half, as quantize_fp16 would (halve.c); those of 16 bits
// stay what they are. Their instructions are others then.
enum mgx_status mgx_recipe_halve(const struct mgx_recipe *r, const struct mgx_sites *sites,
                                 struct mgx_diag *diag) MGX_NODISCARD;
// Lets sums of x and what narrow convolutions end with read `narrow`, x quantized and dequantized,
// as far as they stand behind it (residual.c): they add in bytes then, and nobody needs x in float.
void mgx_quant_share(struct mgx_ins *x, struct mgx_ins *narrow);
// Finds factors for the channels of activations that several products read, where they help, and
// changes ranges accordingly (smooth.c). `seen` as mgx_capture gives it.
enum mgx_status mgx_recipe_smooth(struct mgx_recipe *r, const struct mgx_sites *sites,
                                  struct mgx_stats *const *seen,
                                  struct mgx_diag *diag) MGX_NODISCARD;
// Makes entries wide until the budget is kept (budget.c).
enum mgx_status mgx_recipe_fit(struct mgx_recipe *r, const struct mgx_program *p,
                               const struct mgx_quant_options *options,
                               const struct mgx_quant_runner *runner,
                               struct mgx_diag *diag) MGX_NODISCARD;

// Leaves products in 16 bits that the runner's model says are slower in bytes (weigh.c). The recipe
// was applied to the sites of `narrow`, which was `wide` before.
enum mgx_status mgx_recipe_weigh(struct mgx_recipe *r, struct mgx_program *wide,
                                 const struct mgx_program *narrow, const struct mgx_sites *sites,
                                 const struct mgx_quant_options *options,
                                 const struct mgx_quant_runner *runner,
                                 struct mgx_diag *diag) MGX_NODISCARD;

// Results of all samples: of a compiled program, to be compared with another's (compare.c).
struct mgx_quant_results {
    struct mgx_tensor *v; // sample after sample
    int per_sample, samples;
};
enum mgx_status mgx_quant_results_take(struct mgx_quant_results *out, const struct mgx_program *p,
                                       const struct mgx_quant_runner *runner,
                                       struct mgx_diag *diag) MGX_NODISCARD;
void mgx_quant_results_fini(struct mgx_quant_results *r);
enum mgx_status mgx_quant_results_compare(const struct mgx_quant_results *a,
                                          const struct mgx_quant_results *b,
                                          struct mgx_quant_distance *out,
                                          struct mgx_diag *diag) MGX_NODISCARD;
