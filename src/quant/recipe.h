// SPDX-License-Identifier: MIT
// A recipe: how every product of a program is to be quantized. As text it is a file that people
// keep and edit (docs/precision.md is its specification):
//
//     migraphx quantization 1
//     type int8_type
//     instruction main:convolution:0 int8_type
//         input 0 -2.1 2.64
//     instruction main:dot:0 float_type
//         why "an error of 0.2 alone"
//     instruction main:dot:1 half_type
//         why "it would not be faster"
//     end 0123456789abcdef
//
// Holds: entries have names of their own, low <= 0 <= high are finite, numbers print with all their
// digits, so that what is read is what was written. Everything lies in the recipe's arena. The
// number behind `end` is a checksum of what stands before it; who edits the file takes it away.
#pragma once

#include "ir/module.h"

enum mgx_quant_method {
    MGX_QUANT_MAX,        // nothing that was seen is cut off
    MGX_QUANT_PERCENTILE, // but for the largest few of a hundred
    MGX_QUANT_ENTROPY,    // the distribution keeps its information best
    MGX_QUANT_ERROR,      // the mean square of the error is least
    MGX_QUANT_METHODS
};
extern const char *const mgx_quant_method_names[]; // "max", "percentile", "entropy", "error", NULL

enum mgx_quant_metric { MGX_QUANT_RELATIVE, MGX_QUANT_TOP, MGX_QUANT_METRICS };
extern const char *const mgx_quant_metric_names[]; // "relative", "top", NULL

struct mgx_recipe_input {
    bool known;
    double low, high;
};

struct mgx_recipe_entry {
    const char *name;   // "main:convolution:0": module, operator, its number there
    const char *origin; // what the model calls it; NULL if it is not known
    enum mgx_type
        type;        // of the factors; MGX_HALF: it computes in 16 bits, MGX_FLOAT: it stays wide,
    const char *why; // ... and why
    struct mgx_recipe_input in[2];
    struct mgx_doubles smooth; // input 0 is divided by it along its last axis; empty: it is not
    struct mgx_doubles means;  // of input 0 by channel, for correcting the bias; may be empty
    bool measured, weighed;    // are error and gain known?
    double error, gain;        // what quantizing it alone costs, and the microseconds it saves
};

struct mgx_recipe {
    struct mgx_arena arena;
    MGX_ARRAY(struct mgx_recipe_entry);
    enum mgx_type type;
    enum mgx_quant_method method;
    bool asymmetric, per_tensor;
    bool has_budget;
    double budget, error; // what was allowed, and what came out
    enum mgx_quant_metric metric;
};

// Does it compute with factors of 8 bits?
static inline bool mgx_recipe_is_narrow(const struct mgx_recipe_entry *e)
{
    return e->type == MGX_INT8 || mgx_type_is_fp8(e->type);
}

void mgx_recipe_init(struct mgx_recipe *r);
void mgx_recipe_fini(struct mgx_recipe *r);
enum mgx_status mgx_recipe_copy(struct mgx_recipe *out, const struct mgx_recipe *r,
                                struct mgx_diag *diag) MGX_NODISCARD;
// NULL if there is none of that name.
struct mgx_recipe_entry *mgx_recipe_find(const struct mgx_recipe *r, const char *name);

void mgx_recipe_print(struct mgx_str *out, const struct mgx_recipe *r);
enum mgx_status mgx_recipe_parse(struct mgx_recipe *out, const char *text, size_t size,
                                 struct mgx_diag *diag) MGX_NODISCARD;
// What each instruction costs and gains, for people.
void mgx_recipe_print_table(struct mgx_str *out, const struct mgx_recipe *r);

// A line for each product that stays in 16 bits, and by how much bytes would be slower.
void mgx_recipe_explain(struct mgx_str *out, const struct mgx_recipe *r);

// Puts the recipe into the program as comments, in the place of one that is there; reads it again.
// A program without one gives MGX_NOT_FOUND.
enum mgx_status mgx_recipe_attach(const struct mgx_recipe *r, struct mgx_program *p,
                                  struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_recipe_of(struct mgx_recipe *out, const struct mgx_program *p,
                              struct mgx_diag *diag) MGX_NODISCARD;
