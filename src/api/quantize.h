// SPDX-License-Identifier: MIT
// What the options of quantization share: names of operators, calibration samples, and the work.
#pragma once

#include "api/api.h"
#include "quant/quant.h"

struct mgx_api_names { // a growing set
    char **items;
    size_t count;
};

struct mgx_api_samples {
    migraphx_program_parameters_t *items;
    size_t count;
};

void mgx_api_names_fini(struct mgx_api_names *n);
enum mgx_status mgx_api_names_add(struct mgx_api_names *n, const char *name,
                                  struct mgx_diag *diag) MGX_NODISCARD;
enum mgx_status mgx_api_names_copy(struct mgx_api_names *out, const struct mgx_api_names *in,
                                   struct mgx_diag *diag) MGX_NODISCARD;
void mgx_api_samples_fini(struct mgx_api_samples *s);
migraphx_status mgx_api_samples_add(struct mgx_api_samples *s,
                                    const_migraphx_program_parameters_t data);
enum mgx_status mgx_api_samples_copy(struct mgx_api_samples *out, const struct mgx_api_samples *in,
                                     struct mgx_diag *diag) MGX_NODISCARD;
// Seconds of a run of a compiled program of a few parameters (time_run.c).
enum mgx_status mgx_api_time(const struct mgx_program *p, double *seconds,
                             struct mgx_diag *diag) MGX_NODISCARD;
// Products may be quantized, nothing else: bad_param for any other name.
migraphx_status mgx_api_products_only(const struct mgx_api_names *names, const char *who);

struct migraphx_quantize_int8_options {
    struct mgx_api_names names;
    struct mgx_api_samples samples;
};

struct migraphx_quantize_fp8_options {
    struct mgx_api_samples samples;
};

struct migraphx_quantize_options {
    struct mgx_quant_options values;
    struct mgx_api_names names;
    struct mgx_api_samples samples;
    struct mgx_recipe ranges; // given ones
    bool has_ranges;
    bool reckon_time; // what a budget weighs is not measured
    migraphx_quantize_callback_t progress;
    void *progress_data;
};
