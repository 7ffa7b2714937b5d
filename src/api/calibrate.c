// SPDX-License-Identifier: MIT
// Quantization by calibration: its options, and how programs are compiled and run for it.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/quantize.h"

// --- options ---

// What MIGraphX's own functions mean: int8, ranges as large as what was seen.
static void quantize_defaults(struct migraphx_quantize_options *o)
{
    *o = (struct migraphx_quantize_options){
        .values = {.type = MGX_INT8, .percentile = 99.99, .budget = -1}};
}

static void quantize_options_fini(struct migraphx_quantize_options *o)
{
    mgx_api_names_fini(&o->names);
    mgx_api_samples_fini(&o->samples);
    if (o->has_ranges)
        mgx_recipe_fini(&o->ranges);
}

static enum mgx_status quantize_options_copy(struct migraphx_quantize_options *out,
                                             const struct migraphx_quantize_options *in,
                                             struct mgx_diag *diag)
{
    *out = *in;
    out->has_ranges = false;
    out->samples = (struct mgx_api_samples){0};
    enum mgx_status status = mgx_api_names_copy(&out->names, &in->names, diag);
    if (status == MGX_OK)
        status = mgx_api_samples_copy(&out->samples, &in->samples, diag);
    if (status == MGX_OK && in->has_ranges) {
        status = mgx_recipe_copy(&out->ranges, &in->ranges, diag);
        out->has_ranges = status == MGX_OK;
    }
    if (status != MGX_OK)
        quantize_options_fini(out);
    return status;
}

API_HANDLE(quantize_options)

migraphx_status migraphx_quantize_options_create(migraphx_quantize_options_t *out)
{
    API_NEED(out);
    API_DIAG(diag);
    struct migraphx_quantize_options *o = API_NEW(struct migraphx_quantize_options);
    if (!o)
        return mgx_api_leave(mgx_fail_memory(&diag), &diag);
    quantize_defaults(o);
    o->values.keep = true;
    *out = o;
    return migraphx_status_success;
}

#define FLAG(name)                                                                                 \
    migraphx_status migraphx_quantize_options_set_##name(                                          \
        migraphx_quantize_options_t quantize_options, bool value)                                  \
    {                                                                                              \
        API_NEED(quantize_options);                                                                \
        quantize_options->values.name = value;                                                     \
        return migraphx_status_success;                                                            \
    }
FLAG(asymmetric)
FLAG(per_tensor)
FLAG(correct_bias)
FLAG(smooth)

migraphx_status
migraphx_quantize_options_set_reckon_time(migraphx_quantize_options_t quantize_options, bool value)
{
    API_NEED(quantize_options);
    quantize_options->reckon_time = value;
    return migraphx_status_success;
}

migraphx_status migraphx_quantize_options_set_type(migraphx_quantize_options_t quantize_options,
                                                   migraphx_shape_datatype_t type)
{
    API_NEED(quantize_options);
    enum mgx_type found;
    if (!mgx_api_type_in(type, &found))
        return mgx_api_bad("%s: there is no type %d", __func__, (int)type);
    quantize_options->values.type = found;
    return migraphx_status_success;
}

static int place_of(const char *const *names, const char *name)
{
    assert(names && name);
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

migraphx_status migraphx_quantize_options_set_method(migraphx_quantize_options_t quantize_options,
                                                     const char *name)
{
    API_NEED(quantize_options);
    API_NEED(name);
    const int place = place_of(mgx_quant_method_names, name);
    if (place < 0)
        return mgx_api_bad("%s: '%s' is not max, percentile, entropy or error", __func__, name);
    quantize_options->values.method = (enum mgx_quant_method)place;
    return migraphx_status_success;
}

migraphx_status
migraphx_quantize_options_set_percentile(migraphx_quantize_options_t quantize_options, double value)
{
    API_NEED(quantize_options);
    if (!(value > 0 && value <= 100))
        return mgx_api_bad("%s: %g is not between 0 and 100", __func__, value);
    quantize_options->values.percentile = value;
    return migraphx_status_success;
}

migraphx_status migraphx_quantize_options_add_op_name(migraphx_quantize_options_t quantize_options,
                                                      const char *name)
{
    API_NEED(quantize_options);
    API_NEED(name);
    API_DIAG(diag);
    const struct mgx_api_names one = {(char **)&name, 1};
    const migraphx_status status = mgx_api_products_only(&one, __func__);
    if (status != migraphx_status_success)
        return status;
    return mgx_api_leave(mgx_api_names_add(&quantize_options->names, name, &diag), &diag);
}

migraphx_status
migraphx_quantize_options_add_calibration_data(migraphx_quantize_options_t quantize_options,
                                               migraphx_program_parameters_t data)
{
    API_NEED(quantize_options);
    API_NEED(data);
    return mgx_api_samples_add(&quantize_options->samples, data);
}

migraphx_status migraphx_quantize_options_set_budget(migraphx_quantize_options_t quantize_options,
                                                     const char *metric, double value)
{
    API_NEED(quantize_options);
    API_NEED(metric);
    const int place = place_of(mgx_quant_metric_names, metric);
    if (place < 0)
        return mgx_api_bad("%s: '%s' is not relative or top", __func__, metric);
    if (!(value <= 1e30)) // NaN too
        return mgx_api_bad("%s: %g is no error", __func__, value);
    quantize_options->values.metric = (enum mgx_quant_metric)place;
    quantize_options->values.budget = value < 0 ? -1 : value;
    return migraphx_status_success;
}

migraphx_status migraphx_quantize_options_set_ranges(migraphx_quantize_options_t quantize_options,
                                                     const char *text, size_t size)
{
    API_NEED(quantize_options);
    API_DIAG(diag);
    struct mgx_recipe ranges;
    if (size) {
        API_NEED(text);
        if (mgx_recipe_parse(&ranges, text, size, &diag) != MGX_OK)
            return mgx_api_leave(diag.status, &diag);
    }
    if (quantize_options->has_ranges)
        mgx_recipe_fini(&quantize_options->ranges);
    quantize_options->has_ranges = size > 0;
    if (size)
        quantize_options->ranges = ranges;
    return migraphx_status_success;
}

migraphx_status migraphx_quantize_options_set_progress(migraphx_quantize_options_t quantize_options,
                                                       migraphx_quantize_callback_t callback,
                                                       void *data)
{
    API_NEED(quantize_options);
    quantize_options->progress = callback;
    quantize_options->progress_data = data;
    return migraphx_status_success;
}

// --- running ---

struct world {
    const struct mgx_target *target;
    const struct migraphx_quantize_options *options;
};

static enum mgx_status compile(void *user, struct mgx_program *p, struct mgx_diag *diag)
{
    const struct world *w = user;
    // The samples lie on the host.
    const struct migraphx_compile_options options = {
        .values = {.fast_math = true, .offload_copy = true}};
    return mgx_api_compile(p, w->target, &options, diag);
}

static enum mgx_status run(void *user, const struct mgx_program *p, int sample,
                           struct mgx_tensor *results, int result_count, struct mgx_diag *diag)
{
    const struct world *w = user;
    const struct migraphx_program_parameters *data = w->options->samples.items[sample];
    struct mgx_run r = {.params = data->v,
                        .param_count = (int)data->count,
                        .results = results,
                        .result_count = result_count};
    return mgx_program_run(p, &r, diag);
}

static enum mgx_status time_program(void *user, struct mgx_program *p, double *seconds,
                                    struct mgx_diag *diag)
{
    const struct world *w = user;
    const struct migraphx_compile_options options = {.values = {.fast_math = true}};
    TRY(mgx_api_compile(p, w->target, &options, diag));
    return mgx_api_time(p, seconds, diag);
}

static enum mgx_status weigh(void *user, struct mgx_program *p, mgx_weight_told *tell, void *to,
                             struct mgx_diag *diag)
{
    const struct world *w = user;
    return mgx_api_weigh(p, w->target, tell, to, diag);
}

static void progress(void *user, const char *what, int done, int total)
{
    const struct world *w = user;
    w->options->progress(w->options->progress_data, what, (size_t)done, (size_t)total);
}

static struct mgx_quant_runner runner_of(struct world *w)
{
    // The reference's runs are no measure of anything.
    const bool timed = strcmp(w->target->name, "ref") != 0 && !w->options->reckon_time;
    return (struct mgx_quant_runner){.user = w,
                                     .samples = (int)w->options->samples.count,
                                     .compile = compile,
                                     .run = run,
                                     .time = timed ? time_program : NULL,
                                     .halves = w->target->memory != NULL,
                                     .weigh = timed && w->target->weigh ? weigh : NULL,
                                     .progress = w->options->progress ? progress : NULL};
}

// --- quantizing ---

static enum mgx_status quantize(struct mgx_program *p, const struct mgx_target *target,
                                const struct migraphx_quantize_options *o, char **ranges,
                                struct mgx_diag *diag)
{
    struct world w = {target, o};
    const struct mgx_quant_runner runner = runner_of(&w);
    struct mgx_quant_options values = o->values;
    struct mgx_recipe recipe;
    values.names = (const char *const *)o->names.items;
    values.name_count = o->names.count;
    TRY(mgx_api_prove(p, diag));
    TRY(mgx_quantize(p, &values, &runner, o->has_ranges ? &o->ranges : NULL, &recipe, diag));
    struct mgx_str text = {0};
    if (ranges)
        mgx_recipe_print(&text, &recipe);
    mgx_recipe_fini(&recipe);
    return ranges ? mgx_api_take_text(&text, ranges, diag) : MGX_OK;
}

// Quantizes for a target; *ranges, which may be NULL, gets what was found as text.
static migraphx_status quantize_program(migraphx_program_t program, const struct mgx_target *target,
                                        const struct migraphx_quantize_options *o, char **ranges)
{
    assert(program && o);
    if (program->p->executable)
        return mgx_api_bad("the program is compiled already: quantize it first, then compile it");
    API_DIAG(diag);
    return mgx_api_leave(quantize(program->p, target, o, ranges, &diag), &diag);
}

migraphx_status migraphx_quantize(char **ranges, migraphx_program_t program,
                                  migraphx_target_t target,
                                  const_migraphx_quantize_options_t options)
{
    API_NEED(program);
    API_NEED(target);
    API_NEED(options);
    return quantize_program(program, target->target, options, ranges);
}

// --- looking at it ---

migraphx_status migraphx_program_quantization(char **out, const_migraphx_program_t program)
{
    API_NEED(out);
    API_NEED(program);
    API_DIAG(diag);
    struct mgx_recipe recipe;
    struct mgx_str text = {0};
    if (mgx_recipe_of(&recipe, program->p, &diag) != MGX_OK)
        return mgx_api_leave(diag.status, &diag);
    mgx_recipe_print(&text, &recipe);
    mgx_recipe_fini(&recipe);
    return mgx_api_leave(mgx_api_take_text(&text, out, &diag), &diag);
}

migraphx_status migraphx_quantization_table(char **out, const char *ranges, size_t size)
{
    API_NEED(out);
    API_NEED(ranges);
    API_DIAG(diag);
    struct mgx_recipe recipe;
    struct mgx_str text = {0};
    if (mgx_recipe_parse(&recipe, ranges, size, &diag) != MGX_OK)
        return mgx_api_leave(diag.status, &diag);
    mgx_recipe_print_table(&text, &recipe);
    mgx_recipe_fini(&recipe);
    return mgx_api_leave(mgx_api_take_text(&text, out, &diag), &diag);
}

static enum mgx_status compiled_copy(struct world *w, const struct mgx_program *p,
                                     struct mgx_program **out, struct mgx_diag *diag)
{
    TRY(mgx_program_clone(out, p, diag));
    return compile(w, *out, diag);
}

static enum mgx_status compare_on(struct world *w, const struct mgx_program *program,
                                  const struct mgx_program *quantized,
                                  struct mgx_quant_distance *distance, struct mgx_diag *diag)
{
    const struct mgx_quant_runner runner = runner_of(w);
    struct mgx_program *a = NULL, *b = NULL;
    enum mgx_status status = compiled_copy(w, program, &a, diag);
    if (status == MGX_OK)
        status = compiled_copy(w, quantized, &b, diag);
    if (status == MGX_OK)
        status = mgx_quant_compare(a, b, &runner, distance, diag);
    mgx_program_destroy(a);
    mgx_program_destroy(b);
    return status;
}

migraphx_status migraphx_quantization_error(double *relative, double *top,
                                            const_migraphx_program_t program,
                                            const_migraphx_program_t quantized,
                                            migraphx_target_t target,
                                            const_migraphx_quantize_options_t options)
{
    API_NEED(relative);
    API_NEED(top);
    API_NEED(program);
    API_NEED(quantized);
    API_NEED(target);
    API_NEED(options);
    if (program->p->executable || quantized->p->executable)
        return mgx_api_bad("%s: programs are compared before they are compiled", __func__);
    if (!options->samples.count)
        return mgx_api_bad("%s: there are no samples to compare on", __func__);
    API_DIAG(diag);
    struct world w = {target->target, options};
    struct mgx_quant_distance distance = {0, 0};
    const enum mgx_status status = compare_on(&w, program->p, quantized->p, &distance, &diag);
    *relative = distance.relative;
    *top = distance.top;
    return mgx_api_leave(status, &diag);
}

// The samples and names are lent.
migraphx_status migraphx_quantize_int8(migraphx_program_t prog, migraphx_target_t target,
                                       migraphx_quantize_int8_options_t options)
{
    API_NEED(prog);
    API_NEED(target);
    API_NEED(options);
    struct migraphx_quantize_options all;
    const migraphx_status status = mgx_api_products_only(&options->names, "QUANTIZE_INT8");
    if (status != migraphx_status_success)
        return status;
    quantize_defaults(&all);
    all.names = options->names;
    all.samples = options->samples;
    return quantize_program(prog, target->target, &all, NULL);
}

migraphx_status migraphx_quantize_fp8(migraphx_program_t prog, migraphx_target_t target,
                                      migraphx_quantize_fp8_options_t options)
{
    API_NEED(prog);
    API_NEED(target);
    API_NEED(options);
    struct migraphx_quantize_options all;
    quantize_defaults(&all);
    all.values.type = MGX_FP8E4M3FN;
    all.samples = options->samples;
    return quantize_program(prog, target->target, &all, NULL);
}
