// SPDX-License-Identifier: MIT
// Quantization: options, and the rewrites of uncompiled programs.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/quantize.h"
#include "quant/take_bytes.h"

struct migraphx_quantize_op_names {
    struct mgx_api_names names;
};

void mgx_api_names_fini(struct mgx_api_names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->items[i]);
    free(n->items);
}

enum mgx_status mgx_api_names_add(struct mgx_api_names *n, const char *name, struct mgx_diag *diag)
{
    for (size_t i = 0; i < n->count; i++)
        if (strcmp(n->items[i], name) == 0)
            return MGX_OK;
    char **items = reallocarray(n->items, n->count + 1, sizeof *items);
    if (!items)
        return mgx_fail_memory(diag);
    n->items = items;
    char *copy = strdup(name);
    if (!copy)
        return mgx_fail_memory(diag);
    items[n->count++] = copy;
    return MGX_OK;
}

enum mgx_status mgx_api_names_copy(struct mgx_api_names *out, const struct mgx_api_names *in,
                                   struct mgx_diag *diag)
{
    *out = (struct mgx_api_names){0};
    for (size_t i = 0; i < in->count; i++)
        TRY(mgx_api_names_add(out, in->items[i], diag));
    return MGX_OK;
}

void mgx_api_samples_fini(struct mgx_api_samples *s)
{
    for (size_t i = 0; i < s->count; i++)
        migraphx_program_parameters_destroy(s->items[i]);
    free(s->items);
}

migraphx_status mgx_api_samples_add(struct mgx_api_samples *s,
                                    const_migraphx_program_parameters_t data)
{
    API_DIAG(diag);
    migraphx_program_parameters_t *items = reallocarray(s->items, s->count + 1, sizeof *items);
    if (!items)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    s->items = items;
    migraphx_program_parameters_t copy = NULL;
    migraphx_status status = migraphx_program_parameters_create(&copy);
    if (status == migraphx_status_success)
        status = migraphx_program_parameters_assign_to(copy, data);
    if (status == migraphx_status_success)
        items[s->count++] = copy;
    else
        migraphx_program_parameters_destroy(copy);
    return status;
}

enum mgx_status mgx_api_samples_copy(struct mgx_api_samples *out, const struct mgx_api_samples *in,
                                     struct mgx_diag *diag)
{
    *out = (struct mgx_api_samples){0};
    for (size_t i = 0; i < in->count; i++)
        if (mgx_api_samples_add(out, in->items[i]) != migraphx_status_success)
            return mgx_fail_memory(diag);
    return MGX_OK;
}

// --- handles ---

static void quantize_op_names_fini(struct migraphx_quantize_op_names *n)
{
    mgx_api_names_fini(&n->names);
}

static enum mgx_status quantize_op_names_copy(struct migraphx_quantize_op_names *out,
                                              const struct migraphx_quantize_op_names *in,
                                              struct mgx_diag *diag)
{
    const enum mgx_status status = mgx_api_names_copy(&out->names, &in->names, diag);
    if (status != MGX_OK)
        quantize_op_names_fini(out);
    return status;
}

API_HANDLE(quantize_op_names)

static void quantize_int8_options_fini(struct migraphx_quantize_int8_options *o)
{
    mgx_api_names_fini(&o->names);
    mgx_api_samples_fini(&o->samples);
}

static enum mgx_status quantize_int8_options_copy(struct migraphx_quantize_int8_options *out,
                                                  const struct migraphx_quantize_int8_options *in,
                                                  struct mgx_diag *diag)
{
    enum mgx_status status = mgx_api_names_copy(&out->names, &in->names, diag);
    if (status == MGX_OK)
        status = mgx_api_samples_copy(&out->samples, &in->samples, diag);
    if (status != MGX_OK)
        quantize_int8_options_fini(out);
    return status;
}

API_HANDLE(quantize_int8_options)

static void quantize_fp8_options_fini(struct migraphx_quantize_fp8_options *o)
{
    mgx_api_samples_fini(&o->samples);
}

static enum mgx_status quantize_fp8_options_copy(struct migraphx_quantize_fp8_options *out,
                                                 const struct migraphx_quantize_fp8_options *in,
                                                 struct mgx_diag *diag)
{
    const enum mgx_status status = mgx_api_samples_copy(&out->samples, &in->samples, diag);
    if (status != MGX_OK)
        quantize_fp8_options_fini(out);
    return status;
}

API_HANDLE(quantize_fp8_options)

#define CREATE(T)                                                                                  \
    migraphx_status migraphx_##T##_create(migraphx_##T##_t *out)                                   \
    {                                                                                              \
        API_NEED(out);                                                                             \
        API_DIAG(diag);                                                                            \
        struct migraphx_##T *o = API_NEW(struct migraphx_##T);                                     \
        if (!o)                                                                                    \
            return mgx_api_leave(mgx_fail_memory(&diag), &diag);                                   \
        *out = o;                                                                                  \
        return migraphx_status_success;                                                            \
    }
CREATE(quantize_op_names)
CREATE(quantize_int8_options)
CREATE(quantize_fp8_options)

migraphx_status migraphx_quantize_op_names_add(migraphx_quantize_op_names_t quantize_op_names,
                                               const char *name)
{
    API_NEED(quantize_op_names);
    API_NEED(name);
    API_DIAG(diag);
    return mgx_api_leave(mgx_api_names_add(&quantize_op_names->names, name, &diag), &diag);
}

migraphx_status
migraphx_quantize_int8_options_add_op_name(migraphx_quantize_int8_options_t quantize_int8_options,
                                           const char *name)
{
    API_NEED(quantize_int8_options);
    API_NEED(name);
    API_DIAG(diag);
    return mgx_api_leave(mgx_api_names_add(&quantize_int8_options->names, name, &diag), &diag);
}

migraphx_status migraphx_quantize_int8_options_add_calibration_data(
    migraphx_quantize_int8_options_t quantize_int8_options, migraphx_program_parameters_t data)
{
    API_NEED(quantize_int8_options);
    API_NEED(data);
    return mgx_api_samples_add(&quantize_int8_options->samples, data);
}

migraphx_status migraphx_quantize_fp8_options_add_calibration_data(
    migraphx_quantize_fp8_options_t quantize_fp8_options, migraphx_program_parameters_t data)
{
    API_NEED(quantize_fp8_options);
    API_NEED(data);
    return mgx_api_samples_add(&quantize_fp8_options->samples, data);
}

// --- the rewrites ---

// Compiled programs are immutable.
static migraphx_status quantize_float(migraphx_program_t prog, enum mgx_type type,
                                      const struct mgx_api_names *names)
{
    if (prog->p->executable)
        return mgx_api_bad("the program is compiled already: quantize it first, then compile it");
    API_DIAG(diag);
    enum mgx_status status = mgx_api_prove(prog->p, &diag);
    if (status == MGX_OK)
        status = mgx_quantize_float(prog->p, type, names ? (const char *const *)names->items : NULL,
                                    names ? names->count : 0, &diag);
    return mgx_api_leave(status, &diag);
}

#define QUANTIZE(name, type)                                                                       \
    migraphx_status migraphx_quantize_##name##_with_op_names(migraphx_program_t prog,              \
                                                             migraphx_quantize_op_names_t names)   \
    {                                                                                              \
        API_NEED(prog);                                                                            \
        API_NEED(names);                                                                           \
        return quantize_float(prog, type, &names->names);                                          \
    }                                                                                              \
    migraphx_status migraphx_quantize_##name(migraphx_program_t prog)                              \
    {                                                                                              \
        API_NEED(prog);                                                                            \
        return quantize_float(prog, type, NULL);                                                   \
    }
QUANTIZE(fp16, MGX_HALF)
QUANTIZE(bf16, MGX_BF16)

migraphx_status mgx_api_products_only(const struct mgx_api_names *names, const char *who)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], "dot") != 0 && strcmp(names->items[i], "convolution") != 0)
            return mgx_api_bad("%s: only support DOT and CONVOLUTION operation", who);
    return migraphx_status_success;
}

migraphx_status migraphx_take_bytes(migraphx_program_t program, const char *parameter,
                                    const double *scale, const double *offset, size_t size,
                                    bool channels_last)
{
    API_NEED(program);
    API_NEED(parameter);
    if (program->p->executable)
        return mgx_api_bad("the program is compiled already: say it first, then compile it");
    if (size > INT32_MAX || (!size && (scale || offset)))
        return mgx_api_bad("%s: %zu factors", __func__, size);
    for (size_t i = 0; i < size; i++)
        if ((scale && !isfinite(scale[i])) || (offset && !isfinite(offset[i])))
            return mgx_api_bad("%s: factor %zu is not finite", __func__, i);
    API_DIAG(diag);
    const struct mgx_bytes_input input = {.name = parameter,
                                          .scale = scale,
                                          .offset = offset,
                                          .count = (int64_t)size,
                                          .channels_last = channels_last};
    enum mgx_status status = mgx_api_prove(program->p, &diag);
    if (status == MGX_OK)
        status = mgx_take_bytes(program->p, &input, &diag);
    return mgx_api_leave(status, &diag);
}

migraphx_status migraphx_quantize_int4_weights(migraphx_program_t program, size_t block,
                                               bool symmetric)
{
    API_NEED(program);
    if (program->p->executable)
        return mgx_api_bad("the program is compiled already: quantize it first, then compile it");
    if (block > 1 << 20)
        return mgx_api_bad("%s: blocks of %zu weights are too large", __func__, block);
    API_DIAG(diag);
    enum mgx_status status = mgx_api_prove(program->p, &diag);
    if (status == MGX_OK)
        status = mgx_quantize_weights4(program->p, (int64_t)block, symmetric, &diag);
    return mgx_api_leave(status, &diag);
}
